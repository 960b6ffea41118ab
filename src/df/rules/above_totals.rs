//! Keeps conditions without columns above aggregates: `SELECT count(*) FROM t HAVING 1 > 2` gives no row.
//!
//! DataFusion 55.2 pushes such a condition below the aggregate, like conditions on grouping columns. But a total of no
//! rows is still a row, and so is the one that ROLLUP adds.
//!
//! Conditions on groups by what is drawn stay as well: below, they would be about other draws. So do all conditions on
//! rows that several places share.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Aggregate, Expr, Filter, LogicalPlan};

use crate::df::rewrite::LogicalInner;
use crate::df::with_queries::is_fixed;

/// Filter pushdown, without those conditions.
pub fn above_totals(plan: LogicalPlan, push: &LogicalInner<'_>) -> DfResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Aggregate(aggregate) = filtered(&plan) else {
        let is_fixed = matches!(plan, LogicalPlan::Filter(_)) && is_fixed(filtered(&plan));
        return if is_fixed { Ok(Transformed::no(plan)) } else { push(plan) };
    };
    let (stay, go): (Vec<Expr>, Vec<Expr>) =
        conditions(&plan).into_iter().partition(|condition| stays(condition, aggregate));
    if stay.is_empty() {
        return push(plan);
    }
    let input = LogicalPlan::Aggregate(aggregate.clone());
    let Some(go) = conjunction(go) else { return Ok(Transformed::no(plan)) };
    let pushed = push(LogicalPlan::Filter(Filter::try_new(go, Arc::new(input))?))?;
    pushed.map_data(|pushed| {
        let Some(all) = conjunction(conditions(&pushed).into_iter().chain(stay)) else {
            return Ok(pushed);
        };
        Filter::try_new(all, Arc::new(filtered(&pushed).clone())).map(LogicalPlan::Filter)
    })
}

/// The plan below its topmost filters.
fn filtered(plan: &LogicalPlan) -> &LogicalPlan {
    if let LogicalPlan::Filter(filter) = plan { filtered(&filter.input) } else { plan }
}

/// The conditions of a plan's topmost filters, the innermost first.
fn conditions(plan: &LogicalPlan) -> Vec<Expr> {
    let LogicalPlan::Filter(filter) = plan else { return Vec::new() };
    let mut all = conditions(&filter.input);
    all.extend(split_conjunction_owned(filter.predicate.clone()));
    all
}

/// The condition must stay above the aggregate.
fn stays(condition: &Expr, aggregate: &Aggregate) -> bool {
    let groups = &aggregate.group_expr;
    let has_total = groups.is_empty() || groups.iter().any(|expr| matches!(expr, Expr::GroupingSet(_)));
    condition.is_volatile()
        || has_total && condition.column_refs().is_empty()
        || groups.iter().any(Expr::is_volatile)
}
