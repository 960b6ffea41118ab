//! Runs recursive queries whose steps look at one row at a time: `SELECT n + 1 FROM t WHERE n < 1000`.
//!
//! DataFusion sets up the plan of a step anew for each step and passes its rows on: for a counter, one plan and one
//! batch for each number. Where a step only filters rows and computes columns, its rows do not depend on each other.
//! [`RecursionExec`] takes batches from a queue, appends their results to the queue, and outputs many together.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr_common::utils::evaluate_expressions_to_arrays;
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::{FilterExec, batch_filter};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::work_table::WorkTableExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::{StreamExt, stream};

use crate::df::below::passed_on;
use crate::df::errors::to_df;
use crate::df::tree::RewriteTree;
use crate::error::Error;

/// Makes [`RecursionExec`] run the recursive queries it can.
pub fn row_by_row(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    plan.rewrite_up(|node| {
        let steps = node.downcast_ref::<RecursiveQueryExec>().and_then(BatchOperations::of);
        Ok(match steps {
            Some(_) => Transformed::yes(Arc::new(RecursionExec { query: node })),
            None => Transformed::no(node),
        })
    })
    .data()
}

/// A [`RecursiveQueryExec`] whose steps look at one row at a time.
#[derive(Debug)]
pub struct RecursionExec {
    query: Arc<dyn ExecutionPlan>,
}

impl RecursionExec {
    fn query(&self) -> DfResult<&RecursiveQueryExec> {
        self.query.downcast_ref().ok_or_else(|| to_df(Error::internal("a recursion is no recursive query")))
    }
}

/// An operation on a batch of rows.
enum BatchOperation {
    Keep(Arc<dyn PhysicalExpr>),
    Pick(Arc<[usize]>),
    Compute(Arc<[Arc<dyn PhysicalExpr>]>, SchemaRef),
}

/// The operations of a recursive term, innermost first.
struct BatchOperations(Vec<BatchOperation>);

impl BatchOperations {
    /// The steps of a query; `None` if a step reads anything but the previous rows, or looks at several at a time.
    fn of(query: &RecursiveQueryExec) -> Option<BatchOperations> {
        let mut steps = Vec::new();
        let mut plan = query.recursive_term();
        loop {
            if let Some(last) = plan.downcast_ref::<WorkTableExec>() {
                // It may read a subset of the columns, and does not tell which.
                let all = query.schema().fields().len();
                let is_whole = last.name() == query.name() && last.schema().fields().len() == all;
                steps.reverse();
                return is_whole.then_some(BatchOperations(steps));
            }
            if let Some(filter) = plan.downcast_ref::<FilterExec>().filter(|filter| filter.fetch().is_none())
            {
                if let Some(picked) = filter.projection() {
                    steps.push(BatchOperation::Pick(picked.iter().copied().collect()));
                }
                steps.push(BatchOperation::Keep(Arc::clone(filter.predicate())));
            } else if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
                let outputs = projection.expr().iter().map(|output| Arc::clone(&output.expr));
                steps.push(BatchOperation::Compute(outputs.collect(), projection.schema()));
            } else if !(passed_on(&**plan).is_some()
                || plan.is::<RepartitionExec>()
                || plan.is::<CoalescePartitionsExec>() && plan.fetch().is_none())
            {
                return None;
            }
            let [input] = plan.children()[..] else { return None };
            plan = input;
        }
    }

    fn apply(&self, mut rows: RecordBatch) -> DfResult<RecordBatch> {
        for step in &self.0 {
            if rows.num_rows() == 0 {
                break;
            }
            rows = match step {
                BatchOperation::Keep(condition) => batch_filter(&rows, condition)?,
                BatchOperation::Pick(columns) => rows.project(columns)?,
                BatchOperation::Compute(outputs, schema) => {
                    let columns = evaluate_expressions_to_arrays(&**outputs, &rows)?;
                    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
                    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?
                }
            };
        }
        Ok(rows)
    }
}

/// State of a running recursive query.
struct Running {
    steps: BatchOperations,
    /// The initial rows, until all have come.
    first: Option<SendableRecordBatchStream>,
    /// Rows that no step has been applied to yet.
    queue: VecDeque<RecordBatch>,
    /// Memory of the queue.
    memory: MemoryReservation,
    /// Set for UNION, which drops rows that were there before.
    seen: Option<DistinctRows>,
    /// Rows (count) to collect for the next output batch.
    together: usize,
    together_max: usize,
    /// The error that ended the recursion.
    failed: Option<DataFusionError>,
}

impl Running {
    async fn next(&mut self) -> DfResult<Option<RecordBatch>> {
        if let Some(first) = &mut self.first {
            if let Some(rows) = first.next().await {
                return self.push(rows?).map(Some);
            }
            self.first = None;
        }
        let mut out = Vec::new();
        let mut count = 0;
        while count < self.together && self.failed.is_none() {
            let Some(rows) = self.queue.pop_front() else { break };
            self.memory.shrink(rows.get_array_memory_size());
            match self.steps.apply(rows).and_then(|rows| self.push(rows)) {
                Ok(rows) if rows.num_rows() == 0 => {}
                Ok(rows) => {
                    count += rows.num_rows();
                    out.push(rows);
                }
                // Earlier rows are output first: a consumer that has enough never sees the error.
                Err(error) => self.failed = Some(error),
            }
        }
        // Start small: a consumer of a few rows does not wait for thousands.
        self.together = (self.together * 2).min(self.together_max);
        match &out[..] {
            [] => self.failed.take().map_or(Ok(None), Err),
            [one] => Ok(Some(one.clone())),
            [one, ..] => Ok(Some(concat_batches(one.schema_ref(), &out)?)),
        }
    }

    /// Queues the new rows and returns them.
    fn push(&mut self, rows: RecordBatch) -> DfResult<RecordBatch> {
        let rows = match &mut self.seen {
            Some(seen) if rows.num_rows() > 0 => seen.only_new(rows)?,
            _ => rows,
        };
        if rows.num_rows() > 0 {
            self.memory.try_grow(rows.get_array_memory_size())?;
            self.queue.push_back(rows.clone());
        }
        Ok(rows)
    }
}

/// The rows that a `UNION` has output so far.
struct DistinctRows {
    rows: Box<dyn GroupValues>,
    memory: MemoryReservation,
    /// Positions in `rows` of the current batch's rows.
    places: Vec<usize>,
}

impl DistinctRows {
    fn only_new(&mut self, rows: RecordBatch) -> DfResult<RecordBatch> {
        let mut new = self.rows.len();
        self.rows.intern(rows.columns(), &mut self.places)?;
        self.memory.try_resize(self.rows.size())?;
        let is_new = self.places.drain(..).map(|place| {
            let is_new = place == new;
            new += usize::from(is_new);
            is_new
        });
        let is_new: BooleanArray = is_new.map(Some).collect();
        Ok(if is_new.true_count() == rows.num_rows() { rows } else { filter_record_batch(&rows, &is_new)? })
    }
}

impl DisplayAs for RecursionExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let query = self.query().map_err(|_| fmt::Error)?;
        write!(f, "RecursionExec: name={}, is_distinct={}", query.name(), query.is_distinct())
    }
}

impl ExecutionPlan for RecursionExec {
    fn name(&self) -> &str {
        "RecursionExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.query.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.query.children()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        how: ReplaceChildrenOptions,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let query = Arc::clone(&self.query).replace_children(children, how)?;
        Ok(Arc::new(RecursionExec { query }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let query = self.query()?;
        // The plan may have changed since it was optimised.
        let Some(steps) = BatchOperations::of(query) else { return self.query.execute(partition, context) };
        let memory = |name: &str| MemoryConsumer::new(name).register(context.memory_pool());
        let seen = || -> DfResult<DistinctRows> {
            let rows = new_group_values(self.schema(), &GroupOrdering::None)?;
            Ok(DistinctRows { rows, memory: memory("rows of a recursive query"), places: Vec::new() })
        };
        let running = Running {
            steps,
            seen: query.is_distinct().then(seen).transpose()?,
            memory: memory("steps of a recursive query"),
            first: Some(query.static_term().execute(partition, Arc::clone(&context))?),
            queue: VecDeque::new(),
            together: 1,
            together_max: context.session_config().batch_size(),
            failed: None,
        };
        let rows = stream::try_unfold(running, |mut running| async move {
            Ok(running.next().await?.map(|rows| (rows, running)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}
