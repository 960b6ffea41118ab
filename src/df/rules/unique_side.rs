//! A semi join whose right side has each value once is an inner join without its columns.
//!
//! `WHERE campaign IN (SELECT id FROM campaign WHERE advertiser = 7)`: each row finds one campaign at most. As an inner
//! join, it can begin with the few campaigns, and look up the rows of each.

use datafusion::common::JoinType;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};

use crate::df::join_sides::as_type;
use crate::df::tree::RewritePlan;
use crate::df::unique::are_unique;

/// The rule, for a whole plan.
pub fn as_inner_joins(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    plan.rewrite_up_with_subqueries(as_inner_join).data()
}

fn as_inner_join(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(join) = &plan else { return Ok(Transformed::no(plan)) };
    if join.join_type != JoinType::LeftSemi || join.on.is_empty() || join.null_aware {
        return Ok(Transformed::no(plan));
    }
    let values = join.on.iter().map(|(_, right)| right.clone()).collect();
    // The sides of INTERSECT may have the same names.
    let is_named = join.left.schema().join(join.right.schema()).is_ok();
    if !is_named || !are_unique(values, &join.right)? {
        return Ok(Transformed::no(plan));
    }
    let inner = as_type(join, JoinType::Inner)?;
    let columns = join.left.schema().columns().into_iter().map(Expr::Column);
    let rows = LogicalPlanBuilder::from(LogicalPlan::Join(inner)).project(columns)?.build()?;
    Ok(Transformed::yes(rows))
}
