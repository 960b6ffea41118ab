//! Columns that are not selected in `ORDER BY (SELECT ...)`.
//!
//! DataFusion 55.2 carries missing columns up to a sort that names them directly, but ignores those in its subqueries.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Sort, SortExpr};

use super::correlated::{outer_columns, subquery_in};

/// Appends the columns that a sort's subqueries use to its sort keys, so that they are carried up. As the last keys,
/// they only break ties.
pub fn subqueries_in_order(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Sort(sort) = &plan else { return Ok(Transformed::no(plan)) };
    let mut missing: Vec<Column> = Vec::new();
    for by in &sort.expr {
        by.expr.apply(|expr| {
            for (_, column) in subquery_in(expr).map(|s| outer_columns(&s.subquery)).unwrap_or_default() {
                if !sort.input.schema().has_column(&column) && !missing.contains(&column) {
                    missing.push(column);
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    if missing.is_empty() {
        return Ok(Transformed::no(plan));
    }
    if let Ok(Some(sorted)) = carried(sort, &missing) {
        return Ok(Transformed::yes(sorted));
    }
    let more = missing.into_iter().map(|column| SortExpr::new(Expr::Column(column), true, true));
    let by: Vec<SortExpr> = sort.expr.iter().cloned().chain(more).collect();
    let sorted = LogicalPlanBuilder::from(Arc::clone(&sort.input)).sort_with_limit(by, sort.fetch);
    // If a column cannot be carried up, a later step reports it as missing.
    Ok(match sorted.and_then(LogicalPlanBuilder::build) {
        Ok(sorted) => Transformed::yes(sorted),
        Err(_) => Transformed::no(plan),
    })
}

/// The sort above the select list with these columns, which are left out above it: the sort may know them by other names
/// only, as of `SELECT k AS id .. ORDER BY (SELECT .. k ..)`. `None` if they are not there below the select list.
fn carried(sort: &Sort, columns: &[Column]) -> DfResult<Option<LogicalPlan>> {
    let LogicalPlan::Projection(list) = &*sort.input else { return Ok(None) };
    if !columns.iter().all(|column| list.input.schema().has_column(column)) {
        return Ok(None);
    }
    let more = columns.iter().cloned().map(Expr::Column);
    let rows =
        LogicalPlanBuilder::from(Arc::clone(&list.input)).project(list.expr.iter().cloned().chain(more))?;
    let sorted = Sort { input: Arc::new(rows.build()?), ..sort.clone() };
    let shown = sort.input.schema().columns().into_iter().map(Expr::Column);
    LogicalPlanBuilder::from(LogicalPlan::Sort(sorted)).project(shown)?.build().map(Some)
}
