//! Makes scans below a limit begin with small batches.
//!
//! A join that gives at most ten rows asks its scan for batches until it has them: a first batch of thousands of rows
//! is a waste.

use std::sync::Arc;

use datafusion::error::Result as DfResult;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::windows::BoundedWindowAggExec;

use super::lookup::LookupJoinExec;
use super::scan::ScanExec;
use super::seek::SeekJoinExec;
use crate::df::below::passed_on;
use crate::df::operators::over_changed;

/// Tells scans how few rows may be enough, for a consumer of at most `rows` rows, if known.
pub fn few_first(plan: Arc<dyn ExecutionPlan>, rows: Option<usize>) -> DfResult<Arc<dyn ExecutionPlan>> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return Ok(match rows {
            Some(rows) => Arc::new(scan.few_first(rows)),
            None => plan,
        });
    }
    let aggregate = plan.downcast_ref::<AggregateExec>();
    let groups =
        aggregate.and_then(AggregateExec::limit_options).filter(|limit| limit.descending().is_none());
    let groups = groups.map(|limit| limit.limit());
    let own = match plan.downcast_ref::<GlobalLimitExec>() {
        Some(limit) => limit.fetch().map(|fetch| fetch.saturating_add(limit.skip())),
        None => plan.fetch(),
    };
    let rows = own.into_iter().chain(groups).chain(rows).min();
    let is_asked = |child: usize| match child {
        // A hash join reads its build side completely.
        1 => plan.is::<HashJoinExec>() || plan.is::<UnionExec>(),
        // If each row is its own group, as many rows as groups are enough.
        0 => streams(&*plan) || groups.is_some(),
        _ => plan.is::<UnionExec>(),
    };
    let few = |(at, child): (usize, &Arc<dyn ExecutionPlan>)| {
        let few = few_first(Arc::clone(child), rows.filter(|_| is_asked(at)))?;
        Ok((!Arc::ptr_eq(&few, child)).then_some(few))
    };
    let inputs = plan.children().into_iter().enumerate().map(few).collect::<DfResult<_>>()?;
    Ok(over_changed(&plan, inputs)?.unwrap_or(plan))
}

/// The operator handles each row of its (first) input as it comes, or soon after.
fn streams(plan: &dyn ExecutionPlan) -> bool {
    passed_on(plan).is_some()
        || plan.is::<ProjectionExec>()
        || plan.is::<FilterExec>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<LocalLimitExec>()
        || plan.is::<LookupJoinExec>()
        || plan.is::<SeekJoinExec>()
        || plan.is::<UnionExec>()
        || plan.is::<BoundedWindowAggExec>()
}
