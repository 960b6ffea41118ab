//! Scans that a limit above them stops begin with a few rows.
//!
//! A join that gives ten rows at the most asks a scan for batches until it has them. The first one had thousands of rows.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::error::Result as DfResult;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::windows::BoundedWindowAggExec;

use super::lookup::{self, LookupJoinExec};
use super::scan::ScanExec;
use super::seek::SeekJoinExec;
use crate::df::operators::over_changed;
use crate::df::rules::kept_sorts::FixedExec;

/// Tells scans how few rows will do.
#[derive(Debug)]
pub struct FewFirst;

impl PhysicalOptimizerRule for FewFirst {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> DfResult<Arc<dyn ExecutionPlan>> {
        few_first(plan, None)
    }

    fn name(&self) -> &str {
        "few_first"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The plan, of which somebody wants so many rows, if that is known.
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
    let rows = plan.fetch().into_iter().chain(groups).chain(rows).min();
    let is_asked = |child: usize| match child {
        // The other side of a join is read whole.
        1 => plan.is::<HashJoinExec>() || plan.is::<UnionExec>(),
        // As many groups as there are rows, if each row is one.
        0 => streams(&*plan) || groups.is_some() || plan.downcast_ref().is_some_and(ends_early),
        _ => plan.is::<UnionExec>(),
    };
    let few = |(at, child): (usize, &Arc<dyn ExecutionPlan>)| {
        let few = few_first(Arc::clone(child), rows.filter(|_| is_asked(at)))?;
        Ok((!Arc::ptr_eq(&few, child)).then_some(few))
    };
    let inputs = plan.children().into_iter().enumerate().map(few).collect::<DfResult<_>>()?;
    Ok(over_changed(&plan, inputs)?.unwrap_or(plan))
}

/// A sort that keeps the first few of rows that are in order by some of its columns ends when these change.
pub fn ends_early(sort: &SortExec) -> bool {
    sort.fetch().is_some() && lookup::led(sort) > 0
}

/// A row of its (first) input comes out, or does not, before the next one is asked for, or not much later.
fn streams(plan: &dyn ExecutionPlan) -> bool {
    plan.is::<ProjectionExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<FixedExec>()
        || plan.is::<FilterExec>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<LocalLimitExec>()
        || plan.is::<LookupJoinExec>()
        || plan.is::<SeekJoinExec>()
        || plan.is::<UnionExec>()
        || plan.is::<BoundedWindowAggExec>()
}
