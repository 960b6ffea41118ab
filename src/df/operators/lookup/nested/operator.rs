//! Nested lookup joins below DataFusion's operators.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::error::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use parking_lot::Mutex;

use super::search::FEW_ROWS;
use super::{Nested, NestedRun};
use crate::df::errors::to_df;
use crate::df::operators::recursion::RecursionExec;
use crate::df::operators::{is_one_part, operator, over_changed};
use crate::df::table::Binding;
use crate::error::{Error, Result};

/// Runs a part of a plan as nested lookup joins.
pub struct NestedExec {
    nested: Arc<Nested>,
    /// The bound run, taken once; `None` in a cached plan.
    run: Mutex<Option<NestedRun>>,
    properties: Arc<PlanProperties>,
}

impl NestedExec {
    /// Replaces each part of a plan that can be nested lookup joins; `None` if there are none. `hashes`: the work of hash
    /// joins instead.
    pub fn below(
        plan: &Arc<dyn ExecutionPlan>,
        hashes: Option<f64>,
    ) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
        // The parts of a recursion run many times.
        if plan.is::<RecursiveQueryExec>() || plan.is::<RecursionExec>() {
            return Ok(None);
        }
        if is_one_part(plan)
            && let Some(nested) = Nested::of(plan, &plan.schema())
            && !nested.joins.is_empty()
            && !nested.gathers()
        {
            let (nested, run) = (Arc::new(nested.beside(hashes)), Mutex::default());
            let properties = Arc::clone(plan.properties());
            return Ok(Some(Arc::new(NestedExec { nested, run, properties })));
        }
        let below = plan.children().into_iter().map(|child| NestedExec::below(child, hashes));
        over_changed(plan, below.collect::<DfResult<_>>()?)
    }

    /// The operator for one run; `None`: as for [`Nested::run`].
    pub fn bind(&self, binding: &Binding) -> Result<Option<NestedExec>> {
        let bound = |run| NestedExec {
            nested: Arc::clone(&self.nested),
            run: Mutex::new(Some(run)),
            properties: Arc::clone(&self.properties),
        };
        Ok(self.nested.run(binding)?.map(bound))
    }
}

impl fmt::Debug for NestedExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NestedExec").field(&self.nested).finish()
    }
}

impl DisplayAs for NestedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NestedExec")
    }
}

impl ExecutionPlan for NestedExec {
    operator!(NestedExec(), this => this);

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn partition_statistics(&self, _: Option<usize>) -> DfResult<Arc<Statistics>> {
        let num_rows = Precision::Inexact(FEW_ROWS);
        Ok(Arc::new(Statistics { num_rows, ..Statistics::new_unknown(&self.schema()) }))
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let run = self.run.lock().take();
        let run = run.ok_or_else(|| to_df(Error::internal("a plan that is kept runs, or one runs twice")))?;
        let batches = futures::stream::try_unfold(run, |mut run| async move {
            // Gives a waiting cancellation its turn between two batches.
            tokio::task::consume_budget().await;
            let batch = run.next_batch().map_err(to_df)?;
            Ok(batch.map(|batch| (batch, run)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}
