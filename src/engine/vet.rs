//! Checks DEFAULT and CHECK expressions before a table stores them.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema};
use sqlparser::ast::{Expr, Ident};

use super::plans::SourceQuery;
use super::rows::{assign, literal};
use super::session::Session;
use crate::df::query::Planner;
use crate::error::{Error, Result, Span, sqlstate};
use crate::row::{any_value_at, field};
use crate::schema::Column;
use crate::sql::visit::visit_expressions;
use crate::sql::{CheckDef, CreateTable, name_of, parse_query, span_of, span_of_name};
use crate::value::quoted_name;

/// Errors, with their places: a DEFAULT that names a column or does not fit its own; a CHECK that cannot be
/// planned, or is no condition; either, if it depends on more than one row.
pub async fn table(session: &Session, create: &CreateTable, columns: &[Column]) -> Result<()> {
    for (def, column) in create.columns.iter().zip(columns) {
        default(session, def.default.as_ref(), column).await?;
    }
    for one in &create.checks {
        check(session, &name_of(&create.name), columns.iter(), one).await?;
    }
    Ok(())
}

/// Errors, with their place: a CHECK of a table with this name and these columns that cannot be planned, is
/// no condition, or depends on more than one row.
pub async fn check(
    session: &Session,
    table: &str,
    columns: impl Iterator<Item = &Column>,
    check: &CheckDef,
) -> Result<()> {
    of_one_row(&check.expr, "a CHECK", Some(check.span))?;
    let view = session.view()?;
    let fields: Vec<_> = columns.map(|column| field(&column.name, column.ty, true)).collect();
    let query = parse_query(&format!("SELECT ({}) FROM {}", check.sql, quoted_name(table)))?;
    let rows = vec![(table.to_owned(), RecordBatch::new_empty(Arc::new(Schema::new(fields))))];
    let verdicts = view
        .select_from(SourceQuery::new(query), rows, &[])
        .await
        .map_err(|e| named_in(e.unplaced(), &check.expr).at(check.span))?;
    let ty = verdicts.schema().field(0).data_type().clone();
    if matches!(ty, DataType::Boolean | DataType::Null) {
        return Ok(());
    }
    Err(Error::invalid("a CHECK is a condition, and this is none")
        .hint("write a comparison, as in CHECK (amount >= 0)")
        .state(sqlstate::DATATYPE_MISMATCH)
        .at(check.span))
}

/// Points an error about an unknown column at its name, if that occurs once.
fn named_in(error: Error, expr: &Expr) -> Error {
    let mut found = Vec::new();
    let _ = visit_expressions(expr, |part| {
        let name = match part {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(parts) => parts.last(),
            _ => None,
        };
        let is_it = |name: &&Ident| error.what() == format!("there is no column \"{}\"", name_of(name));
        found.extend(name.filter(is_it).map(span_of_name));
        ControlFlow::<()>::Continue(())
    });
    match found[..] {
        [place] => error.at(place),
        _ => error,
    }
}

/// Errors, with their place: a DEFAULT that names a column, does not fit its own, or depends on more than one
/// row.
pub async fn default(session: &Session, default: Option<&Expr>, column: &Column) -> Result<()> {
    let Some(default) = default else { return Ok(()) };
    let place = span_of(default);
    of_one_row(default, "a DEFAULT", place)?;
    match literal(default, &[]).map_err(|e| e.at(place))? {
        Some(value) => assign(value, column).map(drop).map_err(|e| e.at(place)),
        None => {
            let query = parse_query(&format!("SELECT ({default})"))?;
            let computed = session.view()?.select(query, &[]).await;
            let value = computed.and_then(|computed| any_value_at(computed.column(0), 0));
            let fitted = value.and_then(|value| assign(value, column));
            fitted.map(drop).map_err(|e| e.unplaced().at(place))
        }
    }
}

/// Errors, with its place: a USING that depends on more than one row.
pub fn using(using: &Expr) -> Result<()> {
    of_one_row(using, "a column's new value", span_of(using))
}

/// Errors: a subquery, a window function or an aggregate, whose values depend on other rows.
fn of_one_row(expr: &Expr, what: &str, place: Option<Span>) -> Result<()> {
    let other = visit_expressions(expr, |expr| match expr {
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => ControlFlow::Break("a subquery"),
        Expr::Function(call) if call.over.is_some() => ControlFlow::Break("a window function"),
        Expr::Function(call) if Planner::shared().is_aggregate(call) => ControlFlow::Break("an aggregate"),
        _ => ControlFlow::Continue(()),
    });
    match other {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(other) => {
            Err(Error::invalid(format!("{what} is computed from one row, and {other} is not"))
                .hint("use literals, functions of them, and in a CHECK the columns of the row")
                .state(sqlstate::INVALID_TABLE_DEFINITION)
                .at(place))
        }
    }
}
