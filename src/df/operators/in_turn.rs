//! Reads the inputs of a short UNION ALL one after the other.
//!
//! DataFusion reads each input on its own thread, and waking a thread takes longer than getting a row. That pays off
//! for long inputs only.

use std::fmt;
use std::sync::Arc;

use datafusion::error::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use futures::TryStreamExt;

use crate::df::below::holds;
use crate::df::operators::{in_one_part, is_one_part, operator, over_changed};
use crate::df::parallel;

/// Makes short unions of a plan read their inputs in turn.
pub fn short_unions(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    if !holds(&plan, &|node| node.is::<UnionExec>()) {
        return Ok(plan);
    }
    let plan = below(&plan)?.unwrap_or(plan);
    Ok(if is_short_union(&plan) { Arc::new(InTurnExec::new(plan)) } else { plan })
}

/// The plan with short unions replaced; `None` if there are none.
fn below(plan: &Arc<dyn ExecutionPlan>) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(together) = plan.downcast_ref::<CoalescePartitionsExec>()
        && is_short_union(together.input())
    {
        let in_turn = Arc::new(InTurnExec::new(Arc::clone(together.input())));
        return Ok(Some(match together.fetch() {
            None => in_turn,
            fetch => Arc::new(GlobalLimitExec::new(in_turn, 0, fetch)),
        }));
    }
    over_changed(plan, plan.children().into_iter().map(below).collect::<DfResult<_>>()?)
}

/// Its partitions are the independent inputs of a union, and read little.
fn is_short_union(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.output_partitioning().partition_count() > 1 && unites(plan) && !parallel::is_long(plan)
}

fn unites(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let passes_on = plan.is::<CooperativeExec>()
        || plan.is::<ProjectionExec>()
        || plan.is::<FilterExec>()
        || plan.is::<LocalLimitExec>()
        || plan.is::<UnionExec>();
    is_one_part(plan) || passes_on && plan.children().into_iter().all(unites)
}

/// Reads all partitions of its input, one after the other.
#[derive(Clone, Debug)]
struct InTurnExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl InTurnExec {
    fn new(input: Arc<dyn ExecutionPlan>) -> InTurnExec {
        // Each input may be sorted; their concatenation is not.
        let properties = in_one_part(&input);
        InTurnExec { input, properties }
    }
}

impl DisplayAs for InTurnExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InTurnExec")
    }
}

impl ExecutionPlan for InTurnExec {
    operator!(InTurnExec(input), this => Arc::new(InTurnExec { input, ..(*this).clone() }));

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let input = Arc::clone(&self.input);
        let partitions = 0..input.output_partitioning().partition_count();
        let batches = futures::stream::iter(partitions.map(Ok))
            .and_then(move |partition| std::future::ready(input.execute(partition, Arc::clone(&context))))
            .try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}
