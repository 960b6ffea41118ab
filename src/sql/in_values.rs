//! Subqueries that are VALUES, as in `x IN (VALUES (1), (2))`, become SELECTs.

use sqlparser::ast::{Expr, Query, SetExpr, TableFactor};

use super::parser::parse_query;
use crate::error::Result;

/// Wraps the VALUES in a SELECT: DataFusion only takes a subquery whose columns have names.
pub(super) fn as_select(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::InSubquery { subquery, .. } | Expr::Subquery(subquery) | Expr::Exists { subquery, .. } => {
            selected(subquery)
        }
        _ => Ok(()),
    }
}

fn selected(query: &mut Query) -> Result<()> {
    if !matches!(*query.body, SetExpr::Values(_)) {
        return Ok(());
    }
    let mut around = parse_query("SELECT * FROM (VALUES (1)) AS listed")?;
    if let SetExpr::Select(select) = &mut *around.body
        && let Some(TableFactor::Derived { subquery, .. }) = select.from.first_mut().map(|f| &mut f.relation)
    {
        std::mem::swap(&mut subquery.body, &mut query.body);
        query.body = around.body;
    }
    Ok(())
}
