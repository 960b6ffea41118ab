//! Top-k above joins: stops reading early, in the order of one side, or in none.
//!
//! DataFusion sorts the output of a join, as its hash join keeps the order of one side only and reads the other
//! completely. A [`LookupJoinExec`] and a [`SeekJoinExec`] keep the order of their outer rows. So the sort above becomes
//! a limit, and reading ends as soon as there are enough rows; and where only a prefix of the sort keys is in order, the
//! sort ends once all ties of that prefix have come. That pays off where nearly each outer row finds a match. Otherwise
//! such a plan would read a table along an index for nothing, so it is given up.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result as DfResult;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, InputOrderMode};

use crate::df::below::{holds, passed_on};
use crate::df::operators::is_one_part;
use crate::df::operators::lookup::{self, LookupBy, LookupJoinExec};
use crate::df::operators::scan::ScanExec;
use crate::df::operators::seek::{self, SeekJoinExec};
use crate::df::tree::RewriteTree;

/// A plan of lookup joins whose consumer may stop its scans.
pub enum Early {
    /// Its scans stop early.
    Stops(Arc<dyn ExecutionPlan>),
    /// Its scans stop early if the outer rows find enough matches, which is uncertain.
    MayStop(Arc<dyn ExecutionPlan>),
    /// Some scan would be read to its end, unless the plan runs as [nested joins](lookup::Nested).
    No(Arc<dyn ExecutionPlan>),
}

/// Converts a plan to lookup and seek joins and removes sorts of sorted rows.
pub fn stopping(plan: Arc<dyn ExecutionPlan>) -> DfResult<Early> {
    let plan = lookup::instead_of_hashes_either_way(plan, LookupBy::Ranges)?;
    let plan = seek::in_order_of_rows(plan)?.rewrite_up(without_sort).data()?;
    let seeks = holds(&plan, &|node| node.is::<SeekJoinExec>());
    Ok(match may_stop(&plan) && !limits_sorted_groups(&plan) {
        true if !seeks && stops(&plan, false, &LookupJoinExec::is_promising) => Early::Stops(plan),
        true if stops(&plan, false, &|_| true) => Early::MayStop(plan),
        _ => Early::No(plan),
    })
}

/// The plan has an aggregate with a limit over sorted rows: DataFusion 55.2 takes an order that it had not planned with
/// for one that is wanted.
fn limits_sorted_groups(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let is_sorted = |groups: &AggregateExec| {
        groups.limit_options().is_some() && *groups.input_order_mode() != InputOrderMode::Linear
    };
    plan.downcast_ref().is_some_and(is_sorted) || plan.children().into_iter().any(limits_sorted_groups)
}

/// Some scan of the plan is stopped by its consumer.
pub fn may_stop(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref().is_some_and(ScanExec::may_stop) || plan.children().into_iter().any(may_stop)
}

/// Replaces a top-k sort of sorted rows by a limit.
fn without_sort(node: Arc<dyn ExecutionPlan>) -> DfResult<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(sort) = node.downcast_ref::<SortExec>() else { return Ok(Transformed::no(node)) };
    let (input, fetch) = (sort.input(), sort.fetch());
    let is_one = is_one_part(input);
    let known = input.equivalence_properties();
    // Its unique constraints may be wrong: see `kept_sorts`.
    if fetch.is_none()
        || !is_one
        || !known.constraints().is_empty()
        || !known.ordering_satisfy(sort.expr().clone())?
    {
        return Ok(Transformed::no(node));
    }
    Ok(Transformed::yes(Arc::new(GlobalLimitExec::new(Arc::clone(input), 0, fetch))))
}

/// The node is a top-k sort of rows that are sorted by a prefix of its keys.
fn ends_early(sort: &SortExec) -> bool {
    sort.fetch().is_some() && lookup::led(sort) > 0
}

/// Every scan whose consumer may stop it is read only as far as a limit above wants, if `promising` joins find matches.
fn stops(plan: &Arc<dyn ExecutionPlan>, limited: bool, promising: &dyn Fn(&LookupJoinExec) -> bool) -> bool {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return limited || !scan.may_stop();
    }
    if let Some(join) = plan.downcast_ref::<LookupJoinExec>() {
        return stops(join.rows(), limited && promising(join), promising);
    }
    if let Some(join) = plan.downcast_ref::<SeekJoinExec>() {
        return stops(join.rows(), limited, promising);
    }
    let is_sorted = |groups: &AggregateExec| *groups.input_order_mode() != InputOrderMode::Linear;
    let passes_on = plan.is::<ProjectionExec>()
        || passed_on(&**plan).is_some()
        || plan.downcast_ref().is_some_and(is_sorted);
    let ends = plan.is::<GlobalLimitExec>() || plan.downcast_ref().is_some_and(ends_early);
    let limited = ends || limited && passes_on;
    plan.children().into_iter().all(|child| stops(child, limited, promising))
}
