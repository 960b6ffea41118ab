//! `x IN (VALUES (1), (2))`: rows that are written out where a query stands.

use sqlparser::ast::{Expr, Query, SetExpr, TableFactor};

use super::parser::parse_query;
use crate::error::Result;

/// Puts a SELECT around the VALUES of a subquery, for DataFusion takes only one whose columns have names.
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
