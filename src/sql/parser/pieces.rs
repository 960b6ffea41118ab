//! Queries, expressions and types on their own, outside a statement.

use std::ops::ControlFlow;

use sqlparser::ast::{DataType, Expr, Ident, Query, SelectItem, SetExpr, visit_expressions_mut};

use super::{parse, types};
use crate::error::{Error, Result, sqlstate};
use crate::sql::ast::Statement;
use crate::sql::name_of;
use crate::value::ColumnType;

/// Parses a query. Errors: SYNTAX; the text is another statement.
pub fn parse_query(sql: &str) -> Result<Query> {
    match parse(sql)? {
        Statement::Query(query) => Ok(*query),
        other => Err(Error::invalid(format!("{} is not a query", other.kind_name())).state(sqlstate::SYNTAX)),
    }
}

/// Parses an expression, such as a stored DEFAULT. Errors: SYNTAX.
pub fn parse_expr(sql: &str) -> Result<Expr> {
    let query = parse_query(&format!("SELECT {sql}"))?;
    let item = match *query.body {
        SetExpr::Select(select) => select.projection.into_iter().next(),
        _ => None,
    };
    match item {
        Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) => Ok(expr),
        _ => Err(Error::invalid(format!("{sql} is not an expression")).state(sqlstate::SYNTAX)),
    }
}

/// An expression in which a column is called otherwise; as it was, if it does not name that. Errors: it is no
/// expression.
pub fn rename_column(sql: &str, from: &str, to: &str) -> Result<String> {
    let mut expr = parse_expr(sql)?;
    let mut named = false;
    let _: ControlFlow<()> = visit_expressions_mut(&mut expr, |e| {
        if let Expr::Identifier(ident) = e
            && name_of(ident) == from
        {
            named = true;
            let quoted = crate::sql::name_sql(to) != to;
            *e = Expr::Identifier(if quoted { Ident::with_quote('"', to) } else { Ident::new(to) });
        }
        ControlFlow::Continue(())
    });
    Ok(if named { expr.to_string() } else { sql.to_owned() })
}

/// The characters that a cast to an SQL type leaves of a text; `None` for all, or a type that is no text.
pub fn text_limit(data_type: &DataType) -> Option<u32> {
    types::convert(data_type, "").ok().filter(|spec| spec.data_type == ColumnType::Varchar)?.max_len
}

/// The column type that an SQL type stands for. Errors: none does.
pub fn column_type(data_type: &DataType) -> Result<ColumnType> {
    types::convert(data_type, &data_type.to_string()).map(|spec| spec.data_type)
}
