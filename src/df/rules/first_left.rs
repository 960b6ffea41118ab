//! Pushes a top-k sort by columns of the left side below a left join.
//!
//! Each row of the left side comes out at least once, so the first rows of the join come from the first rows of that
//! side: `SELECT name, (SELECT count(*) FROM b WHERE b.a = a.id) FROM a ORDER BY name LIMIT 10` then counts for ten
//! rows only. DataFusion does this for a limit, but not for a sort.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::Sort as SortExpr;
use datafusion::logical_expr::{Join, JoinType, LogicalPlan, Projection, Sort, SubqueryAlias};

use crate::df::rewrite::below;
use crate::df::tree::RewritePlan;

/// The same plan, with top-k sorts below its left joins.
pub fn of_left_side(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let sorted_first = plan.rewrite_down_with_subqueries(|node| {
        let LogicalPlan::Sort(sort) = &node else { return Ok(Transformed::no(node)) };
        let Some(rows) = sort.fetch else { return Ok(Transformed::no(node)) };
        match first_left(&sort.input, sort.expr.clone(), rows)? {
            Some(input) => {
                Ok(Transformed::yes(LogicalPlan::Sort(Sort { input: Arc::new(input), ..sort.clone() })))
            }
            None => Ok(Transformed::no(node)),
        }
    });
    sorted_first.data()
}

/// Sorts the left side of a left join, if the plan is one below projections; `rows`: how many are wanted in this order.
fn first_left(plan: &LogicalPlan, order: Vec<SortExpr>, rows: usize) -> DfResult<Option<LogicalPlan>> {
    let input = match plan {
        LogicalPlan::Projection(Projection { input, .. })
        | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => {
            let under = |by: &SortExpr| Some(SortExpr { expr: below(&by.expr, plan)?, ..by.clone() });
            match order.iter().map(under).collect() {
                Some(order) => first_left(input, order, rows)?,
                None => None,
            }
        }
        LogicalPlan::Join(join) if join.join_type == JoinType::Left => {
            let left = join.left.schema();
            let is_left = |by: &SortExpr| {
                !by.expr.is_volatile()
                    && by.expr.column_refs().into_iter().all(|column| left.has_column(column))
            };
            let is_first = matches!(&*join.left, LogicalPlan::Sort(_) | LogicalPlan::Limit(_));
            if is_first || !order.iter().all(is_left) {
                return Ok(None);
            }
            let first = Sort { expr: order, input: Arc::clone(&join.left), fetch: Some(rows) };
            let left = Arc::new(LogicalPlan::Sort(first));
            return Ok(Some(LogicalPlan::Join(Join { left, ..join.clone() })));
        }
        _ => None,
    };
    input.map(|input| plan.with_new_exprs(plan.expressions(), vec![input])).transpose()
}
