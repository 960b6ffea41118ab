//! Parses queries, expressions and types outside of a statement.

use std::ops::ControlFlow;

use sqlparser::ast::{DataType, Expr, Ident, Query, SelectItem, SetExpr};

use super::{parse, types};
use crate::error::{Error, Result, sqlstate};
use crate::sql::ast::Statement;
use crate::sql::name_of;
use crate::sql::visit::{visit_expressions, visit_expressions_mut};
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

/// Renames a column in an expression's text; the text stays as it is if it does not name the column. Errors:
/// it is no expression.
pub fn rename_column(sql: &str, from: &str, to: &str) -> Result<String> {
    let quoted = crate::sql::name_sql(to) != to;
    let to = if quoted { Ident::with_quote('"', to) } else { Ident::new(to) };
    rename(sql, |expr| match expr {
        Expr::Identifier(ident) if name_of(ident) == from => Some(to.clone()),
        _ => None,
    })
}

/// Does an expression name the column? Errors: it is no expression.
pub fn names_column(sql: &str, column: &str) -> Result<bool> {
    let found = visit_expressions(&parse_expr(sql)?, |expr| match expr {
        Expr::Identifier(ident) if name_of(ident) == column => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    Ok(found.is_break())
}

/// An expression over one table, without the table's name before its columns. It is stored so, as the table
/// may be renamed. Errors: it is no expression.
pub fn unqualified(sql: &str, table: &str) -> Result<String> {
    rename(sql, |expr| match expr {
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [.., of, column] if name_of(of) == table => Some(column.clone()),
            _ => None,
        },
        _ => None,
    })
}

fn rename(sql: &str, name: impl Fn(&Expr) -> Option<Ident>) -> Result<String> {
    let mut expr = parse_expr(sql)?;
    let mut renamed = false;
    let _: ControlFlow<()> = visit_expressions_mut(&mut expr, |e| {
        if let Some(name) = name(e) {
            renamed = true;
            *e = Expr::Identifier(name);
        }
        ControlFlow::Continue(())
    });
    Ok(if renamed { expr.to_string() } else { sql.to_owned() })
}

/// The length to which a cast to an SQL type cuts a text; `None`: no limit, or the type is not text.
pub fn text_limit(data_type: &DataType) -> Option<u32> {
    types::convert(data_type, "", "").ok().filter(|spec| spec.data_type == ColumnType::Varchar)?.max_len
}

/// The column type that an SQL type stands for. Errors: none does.
pub fn column_type(data_type: &DataType) -> Result<ColumnType> {
    types::convert(data_type, &data_type.to_string(), "").map(|spec| spec.data_type)
}

/// What to write for a type of another database; `None` for one we do not know.
pub fn type_instead(written: &str) -> Option<String> {
    types::instead(written, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_do_without_the_name_of_their_table() {
        let cases = [
            ("t.a > 0 AND \"t\".b = public.t.c", "a > 0 AND b = c"),
            ("upper( a )", "upper( a )"),
            ("u.a > 0", "u.a > 0"),
        ];
        for (from, to) in cases {
            assert_eq!(unqualified(from, "t").unwrap(), to);
        }
    }
}
