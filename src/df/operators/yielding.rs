//! Adds yield points to a running plan, so that it can be cancelled.
//!
//! A scan yields every few batches. But a join that has read both sides makes many batches without ever waiting, and so
//! does its consumer: without a yield point above the join, a cancellation waits until it is done.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result as DfResult;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;

use crate::df::tree::RewriteTree;

/// Adds a yield point above every operator with several inputs.
pub fn yielding(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    plan.rewrite_up(|plan| {
        Ok(match plan.children().len() {
            0 | 1 => Transformed::no(plan),
            _ => Transformed::yes(Arc::new(CooperativeExec::new(plan))),
        })
    })
    .data()
}
