//! `t, LATERAL (VALUES (t.low), (t.high)) AS v(price)`: several rows of each, made of its columns; the same in a
//! subquery's FROM, where they are those of a query around it.
//!
//! DataFusion's VALUES see no columns, its subqueries of no table do: rows that have any are written as
//! `SELECT t.low AS column1 UNION ALL SELECT t.high`.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Ident, SelectItem, SetExpr, SetOperator, SetQuantifier, TableFactor, Values};

use super::parse_query;
use super::visit::visit_expressions;
use crate::error::Result;

/// Rewrites such rows.
pub(super) fn as_union(factor: &mut TableFactor) -> Result<()> {
    if let TableFactor::Derived { subquery, .. } = factor
        && let SetExpr::Values(Values { rows, .. }) = &mut *subquery.body
        && rows.iter().flat_map(|row| row.iter()).any(sees_columns)
    {
        let rows = std::mem::take(rows).into_iter().map(|row| selected(row.content));
        let union = rows.reduce(|above, row| {
            Ok(Box::new(SetExpr::SetOperation {
                op: SetOperator::Union,
                set_quantifier: SetQuantifier::All,
                left: above?,
                right: row?,
            }))
        });
        if let Some(union) = union {
            subquery.body = union?;
        }
    }
    Ok(())
}

fn sees_columns(expr: &Expr) -> bool {
    let see = |expr: &Expr| match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    visit_expressions(expr, see).is_break()
}

/// `SELECT a AS column1, b AS column2`: the names that VALUES give.
fn selected(row: Vec<Expr>) -> Result<Box<SetExpr>> {
    let mut query = parse_query("SELECT 1")?;
    if let SetExpr::Select(select) = &mut *query.body {
        let named = |(at, expr)| {
            let alias = Ident::new(format!("column{}", at + 1));
            SelectItem::ExprWithAlias { expr, alias }
        };
        select.projection = row.into_iter().enumerate().map(named).collect();
    }
    Ok(query.body)
}
