//! Our scan as a DataFusion execution plan.

use std::fmt;
use std::sync::Arc;

use arrow::compute::SortOptions;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, ReplaceChildrenOptions,
};

use super::query::to_df;
use crate::access::{OrderBy, describe};
use crate::exec::scan::{Counters, Scan, ScanSpec};
use crate::store::Snapshot;

/// One access of one statement.
#[derive(Clone)]
pub struct ScanExec {
    /// What is read, and how.
    pub spec: Arc<ScanSpec>,
    /// Rows at the most.
    pub limit: Option<u64>,
    /// Why this path.
    pub chosen: String,
    /// Why no other.
    pub rejected: Vec<(String, String)>,
    /// What it did so far.
    pub counters: Arc<Counters>,
    snapshot: Arc<dyn Snapshot>,
    properties: Arc<PlanProperties>,
}

impl ScanExec {
    /// A scan of `spec`; `order` is the statement's, given out if the access is ordered.
    pub fn new(
        spec: Arc<ScanSpec>,
        snapshot: Arc<dyn Snapshot>,
        limit: Option<u64>,
        order: Vec<OrderBy>,
        chosen: String,
        rejected: Vec<(String, String)>,
    ) -> ScanExec {
        let equivalence = if spec.access.ordered {
            EquivalenceProperties::new_with_orderings(Arc::clone(&spec.schema), sort_exprs(&spec, &order))
        } else {
            EquivalenceProperties::new(Arc::clone(&spec.schema))
        };
        let properties = Arc::new(PlanProperties::new(
            equivalence,
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        ScanExec { spec, limit, chosen, rejected, counters: Arc::default(), snapshot, properties }
    }

    /// The access in EXPLAIN's words.
    pub fn describe(&self, verbose: bool) -> String {
        let index = self.spec.index.as_ref();
        describe(&self.spec.table, index, self.spec.as_table, &self.spec.access, self.limit, verbose)
    }
}

/// The wanted order over the output columns, as far as they are all there.
fn sort_exprs(spec: &ScanSpec, order: &[OrderBy]) -> Option<Vec<PhysicalSortExpr>> {
    let sort_expr = |by: &OrderBy| {
        let at = spec.output.iter().position(|f| *f == by.field)?;
        let expr: Arc<dyn PhysicalExpr> = Arc::new(Column::new(spec.schema.field(at).name(), at));
        let options = SortOptions { descending: by.descending, nulls_first: !by.descending };
        Some(PhysicalSortExpr::new(expr, options))
    };
    let exprs: Option<Vec<_>> = order.iter().map(sort_expr).collect();
    exprs.filter(|e| !e.is_empty())
}

impl fmt::Debug for ScanExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(false))
    }
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(false))
    }
}

impl ExecutionPlan for ScanExec {
    fn name(&self) -> &str {
        "ScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, _partition: usize, _: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let scan = Scan::new(
            Arc::clone(&self.spec),
            Arc::clone(&self.snapshot),
            self.limit,
            Arc::clone(&self.counters),
        );
        let batches = futures::stream::try_unfold(scan, |mut scan| async move {
            // Gives a waiting cancellation its turn between two batches.
            tokio::task::consume_budget().await;
            Ok(scan.next_batch().map_err(to_df)?.map(|batch| (batch, scan)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.spec.schema), batches)))
    }

    fn partition_statistics(&self, _: Option<usize>) -> DfResult<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.spec.schema);
        statistics.num_rows = Precision::Inexact(self.spec.access.entries.ceil() as usize);
        Ok(Arc::new(statistics))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let limit = limit.map(|n| n as u64);
        // Rows are given out in order, so a smaller limit only stops sooner.
        let limit = match (self.limit, limit) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => b.or(a),
        };
        Some(Arc::new(ScanExec { limit, ..self.clone() }))
    }

    fn fetch(&self) -> Option<usize> {
        self.limit.and_then(|n| usize::try_from(n).ok())
    }
}
