//! Begins a part of a plan when its first row is asked for.
//!
//! An operator that gathers the rows of several threads starts these at once. Below the probe side of a join, their scans
//! would then begin before the build side has told which keys they need, and read everything.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::TryStreamExt;

use super::operator;
use super::scan::ScanExec;
use crate::df::below::holds;
use crate::df::tree::RewriteTree;

/// The plan with late starts of threads that read what a join tells.
pub fn once_told(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    let learns = |node: &dyn ExecutionPlan| node.downcast_ref().is_some_and(ScanExec::learns);
    plan.rewrite_up(|node| {
        let gathers = node.is::<CoalescePartitionsExec>() || node.is::<SortPreservingMergeExec>();
        Ok(match gathers && holds(&node, &learns) {
            true => Transformed::yes(Arc::new(LateExec { input: node })),
            false => Transformed::no(node),
        })
    })
    .data()
}

/// Passes the rows of its input on, which starts with the first of them.
#[derive(Debug)]
struct LateExec {
    input: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for LateExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LateExec")
    }
}

impl ExecutionPlan for LateExec {
    operator!(LateExec(input), _this => Arc::new(LateExec { input }));

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let input = Arc::clone(&self.input);
        let rows = async move { input.execute(partition, context) };
        let rows = futures::stream::once(rows).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}
