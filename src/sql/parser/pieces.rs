//! Queries, expressions and types on their own, outside a statement.

use sqlparser::ast::{DataType, Expr, Query, SelectItem, SetExpr};

use super::{parse, types};
use crate::error::{Error, Result, sqlstate};
use crate::sql::ast::Statement;
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

/// The column type that an SQL type stands for. Errors: none does.
pub fn column_type(data_type: &DataType) -> Result<ColumnType> {
    types::convert(data_type, &data_type.to_string()).map(|spec| spec.data_type)
}
