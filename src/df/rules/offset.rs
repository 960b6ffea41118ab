//! Applies OFFSET inside scans, which skip the first rows without reading their columns. The output then depends on
//! every skipped row, so no filter may narrow such a scan any more.

use std::sync::Arc;

use datafusion::common::tree_node::TransformedResult;
use datafusion::error::Result as DfResult;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;

use crate::df::operators::over_changed;
use crate::df::operators::scan::ScanExec;
use crate::df::tree::{RewriteTree, changed};

/// The rule.
pub fn offset(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    plan.rewrite_up(|node| {
        let limit = node.downcast_ref::<GlobalLimitExec>().filter(|limit| limit.skip() > 0);
        let without = limit.map(|limit| without_first(limit.input(), limit.skip(), limit.fetch()));
        Ok(changed(without.transpose()?.flatten(), node))
    })
    .data()
}

/// The plan with offset `skip` and limit `fetch`; `None` if it is not a single scan.
fn without_first(
    plan: &Arc<dyn ExecutionPlan>,
    skip: usize,
    fetch: Option<usize>,
) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return Ok(scan.without_first(skip, fetch).map(|scan| Arc::new(scan) as _));
    }
    if !plan.is::<ProjectionExec>() && !plan.is::<CooperativeExec>() {
        return Ok(None);
    }
    let [input] = plan.children()[..] else { return Ok(None) };
    over_changed(plan, vec![without_first(input, skip, fetch)?])
}
