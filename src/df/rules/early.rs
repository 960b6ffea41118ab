//! The first rows of a join, in an order that one of its sides has, or in none.
//!
//! DataFusion sorts what a join gives, for its hash join keeps the order of one side only, and reads the other whole. A
//! [`LookupJoinExec`] keeps the order of the rows it looks up for: the sort above it is done already, so reading ends as
//! soon as there are enough rows; and a sort by more columns than are in order already ends when those of its rows that
//! are equal in them have come. That is worth it where nearly each row finds its partner. What else there is of such
//! a query would read a table along an index for nothing; so the plan is given up if it does not come out like that.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result as DfResult;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, InputOrderMode};

use super::kept_sorts::FixedExec;
use crate::df::operators::few_first::ends_early;
use crate::df::operators::lookup::{self, By, LookupJoinExec};
use crate::df::operators::scan::ScanExec;
use crate::df::tree::RewriteTree;

/// A plan with such joins, whose scans were asked for about so many rows.
pub enum Early {
    /// They read no further than that.
    Stops(Arc<dyn ExecutionPlan>),
    /// So it is if their rows find enough, which they may not.
    MayStop(Arc<dyn ExecutionPlan>),
    /// One of them would read on.
    No,
}

/// The plan, made so.
pub fn stopping(plan: Arc<dyn ExecutionPlan>) -> DfResult<Early> {
    let plan = lookup::instead_of_hashes_either_way(plan, By::Ranges)?;
    let plan = plan.rewrite_up(without_sort).data()?;
    Ok(match may_stop(&plan) && !limits_sorted_groups(&plan) {
        true if stops(&plan, false, &LookupJoinExec::is_promising) => Early::Stops(plan),
        true if stops(&plan, false, &|_| true) => Early::MayStop(plan),
        _ => Early::No,
    })
}

/// There are groups of which the first few are wanted, in whatever order: DataFusion 55.2 takes an order that their rows
/// have, and that it had not planned with, for one that is wanted.
fn limits_sorted_groups(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let is_sorted = |groups: &AggregateExec| {
        groups.limit_options().is_some() && *groups.input_order_mode() != InputOrderMode::Linear
    };
    plan.downcast_ref().is_some_and(is_sorted) || plan.children().into_iter().any(limits_sorted_groups)
}

/// Somebody in the plan stops reading a scan when there are enough rows.
pub fn may_stop(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref().is_some_and(ScanExec::may_stop) || plan.children().into_iter().any(may_stop)
}

/// A limit in the place of a sort of what is sorted.
fn without_sort(node: Arc<dyn ExecutionPlan>) -> DfResult<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(sort) = node.downcast_ref::<SortExec>() else { return Ok(Transformed::no(node)) };
    let (input, fetch) = (sort.input(), sort.fetch());
    let is_one = input.output_partitioning().partition_count() == 1;
    let known = input.equivalence_properties();
    // Which columns are unique, it may have wrong: see `kept_sorts`.
    if fetch.is_none()
        || !is_one
        || !known.constraints().is_empty()
        || !known.ordering_satisfy(sort.expr().clone())?
    {
        return Ok(Transformed::no(node));
    }
    Ok(Transformed::yes(Arc::new(GlobalLimitExec::new(Arc::clone(input), 0, fetch))))
}

/// Every scan that was asked for about so many rows is read no further than a limit above it wants, if those joins give
/// rows that are `promising`.
fn stops(plan: &Arc<dyn ExecutionPlan>, limited: bool, promising: &dyn Fn(&LookupJoinExec) -> bool) -> bool {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return limited || !scan.may_stop();
    }
    if let Some(join) = plan.downcast_ref::<LookupJoinExec>() {
        return stops(join.rows(), limited && promising(join), promising);
    }
    let passes_on = plan.is::<ProjectionExec>() || plan.is::<CooperativeExec>() || plan.is::<FixedExec>();
    let ends = plan.is::<GlobalLimitExec>() || plan.downcast_ref().is_some_and(ends_early);
    let limited = ends || limited && passes_on;
    plan.children().into_iter().all(|child| stops(child, limited, promising))
}
