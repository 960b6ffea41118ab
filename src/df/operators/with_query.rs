//! Computes a query of WITH when it is first read, and keeps its rows for everyone else who reads it.
//!
//! Rows are kept in memory, or, if they are too many, on the disk.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, SpillFile, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::spill::SpillManager;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
    ReplaceChildrenOptions, execute_stream,
};
use futures::future::{BoxFuture, Shared};
use futures::{FutureExt, TryFutureExt, TryStreamExt, stream};

use crate::df::errors::to_df;
use crate::df::operators::in_one_part;
use crate::df::operators::join_rows::rows_of;
use crate::df::tree::RewriteTree;
use crate::error::Error;

/// Rows in memory, in bytes; beyond that they are kept on the disk. Small in tests, so that they see that, too.
const MEMORY_BYTES: usize = if cfg!(test) { 4 << 10 } else { 64 << 20 };

/// A place of a plan that reads a query of WITH.
#[derive(Clone, Debug)]
pub struct WithQueryExec {
    name: String,
    /// The same for all places of a plan that share the result.
    key: String,
    /// The same for all places that share the result; 0 until the plan is [open](WithQueryExec::opened).
    number: usize,
    source: Source,
    /// The result of this run; `None`: the plan has not been [started](WithQueryExec::anew).
    kept: Option<Arc<KeptRows>>,
    /// Expected rows (count).
    rows: Precision<usize>,
    properties: Arc<PlanProperties>,
}

/// Where a place has the plan of the query.
#[derive(Clone, Debug)]
enum Source {
    /// Out of sight of what is done with the plan around it.
    Hidden(Arc<dyn ExecutionPlan>),
    /// As its input.
    Input(Arc<dyn ExecutionPlan>),
    /// Another place has it.
    Elsewhere,
}

impl WithQueryExec {
    /// `key`: the same for all places of the plan that share the result.
    pub fn new(name: &str, key: &str, query: Arc<dyn ExecutionPlan>) -> WithQueryExec {
        WithQueryExec {
            name: name.to_owned(),
            key: key.to_owned(),
            number: 0,
            rows: rows_of(&query).map_or(Precision::Absent, |rows| Precision::Inexact(rows.ceil() as usize)),
            properties: in_one_part(&query),
            source: Source::Hidden(query),
            kept: None,
        }
    }

    fn of(plan: &Arc<dyn ExecutionPlan>) -> Option<&WithQueryExec> {
        plan.downcast_ref()
    }

    /// The plan in which the first place that shares a result has the query as its input.
    pub fn opened(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
        // Plans that are alternatives of each other do not share their results.
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let mut numbers = BTreeMap::new();
        let opened = plan.rewrite_down(|node| {
            let Some(place) = WithQueryExec::of(&node) else { return Ok(Transformed::no(node)) };
            let Source::Hidden(query) = &place.source else { return Ok(Transformed::no(node)) };
            let mut source = Source::Elsewhere;
            let number = *numbers.entry(place.key.clone()).or_insert_with(|| {
                source = Source::Input(Arc::clone(query));
                NEXT.fetch_add(1, Ordering::Relaxed)
            });
            Ok(Transformed::yes(Arc::new(WithQueryExec { number, source, ..place.clone() }) as _))
        });
        opened.data()
    }

    /// The plan with room for the results of one run.
    pub fn anew(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
        let mut results = BTreeMap::<usize, Arc<KeptRows>>::new();
        let anew = plan.rewrite_up(|node| {
            let Some(place) = WithQueryExec::of(&node) else { return Ok(Transformed::no(node)) };
            let kept = Arc::clone(results.entry(place.number).or_default());
            if let Source::Input(query) = &place.source {
                // A second one is the same plan.
                let _ = kept.query.set(Arc::clone(query));
            }
            let kept = Some(kept);
            Ok(Transformed::yes(Arc::new(WithQueryExec { kept, ..place.clone() }) as _))
        });
        anew.data()
    }
}

impl DisplayAs for WithQueryExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source {
            Source::Elsewhere => write!(f, "WithQueryExec: {}, as above", self.name),
            _ => write!(f, "WithQueryExec: {}", self.name),
        }
    }
}

impl ExecutionPlan for WithQueryExec {
    fn name(&self) -> &str {
        "WithQueryExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        match &self.source {
            Source::Input(query) => vec![query],
            Source::Hidden(_) | Source::Elsewhere => Vec::new(),
        }
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        Ok(match children.pop() {
            Some(query) => Arc::new(WithQueryExec { source: Source::Input(query), ..(*self).clone() }),
            None => self,
        })
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false; self.children().len()]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.children().len()]
    }

    fn partition_statistics(&self, _: Option<usize>) -> DfResult<Arc<Statistics>> {
        Ok(Arc::new(Statistics { num_rows: self.rows, ..Statistics::new_unknown(&self.schema()) }))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let kept = self.kept.clone().ok_or_else(|| to_df(Error::internal("a query of WITH has no place")))?;
        let batches = stream::once(async move { kept.read(context).await }).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}

/// The rows of a query, once somebody has asked for them.
#[derive(Default)]
struct KeptRows {
    query: OnceLock<Arc<dyn ExecutionPlan>>,
    found: OnceLock<FoundOnce>,
}

/// The same result, or error, for everyone who waits.
type FoundOnce = Shared<BoxFuture<'static, Result<Found, Arc<DataFusionError>>>>;

#[derive(Clone)]
enum Found {
    InMemory(Arc<[RecordBatch]>, #[expect(dead_code, reason = "it holds the memory")] Arc<MemoryReservation>),
    OnDisk(Arc<dyn SpillFile>),
}

impl fmt::Debug for KeptRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptRows").finish_non_exhaustive()
    }
}

impl KeptRows {
    /// The rows. Everyone who waits for them has them computed: whoever was first may be dropped.
    async fn read(&self, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let query = self.query.get().ok_or_else(|| to_df(Error::internal("a query of WITH went missing")))?;
        let spills = SpillManager::new(
            context.runtime_env(),
            SpillMetrics::new(&ExecutionPlanMetricsSet::new(), 0),
            query.schema(),
        );
        let found = self.found.get_or_init(|| {
            let computed = computed(Arc::clone(query), context, spills.clone());
            computed.map_err(Arc::new).boxed().shared()
        });
        match found.clone().await.map_err(DataFusionError::Shared)? {
            Found::InMemory(batches, _) => {
                let batches = (0..batches.len()).map(move |at| Ok(batches[at].clone()));
                Ok(Box::pin(RecordBatchStreamAdapter::new(query.schema(), stream::iter(batches))))
            }
            Found::OnDisk(file) => spills.read_spill_as_stream(file, None),
        }
    }
}

async fn computed(
    query: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    spills: SpillManager,
) -> DfResult<Found> {
    let consumer = MemoryConsumer::new("WithQueryExec").with_can_spill(true);
    let memory = consumer.register(context.memory_pool());
    let mut batches = execute_stream(query, context)?;
    let (mut kept, mut file) = (Vec::new(), None);
    while let Some(batch) = batches.try_next().await? {
        let bytes = batch.get_array_memory_size();
        kept.push(batch);
        if file.is_none() && (memory.size() + bytes > MEMORY_BYTES || memory.try_grow(bytes).is_err()) {
            file = Some(spills.create_in_progress_file("rows of a query of WITH")?);
            memory.free();
        }
        if let Some(file) = &mut file {
            kept.drain(..).try_for_each(|batch| file.append_batch(&batch).map(drop))?;
        }
    }
    let file = file.map(|mut file| file.finish()).transpose()?.flatten();
    Ok(file.map_or_else(|| Found::InMemory(kept.into(), Arc::new(memory)), Found::OnDisk))
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};
    use datafusion::datasource::memory::MemorySourceConfig;
    use datafusion::physical_plan::collect;
    use datafusion::physical_plan::union::UnionExec;

    use super::*;

    /// A plan with the numbers from 0, in batches of 100, read in two places.
    fn read_twice(count: i64) -> DfResult<Arc<dyn ExecutionPlan>> {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
        let batch = |from: i64| {
            let numbers = Int64Array::from_iter_values(from..count.min(from + 100));
            Ok(RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(numbers)])?)
        };
        let batches = (0..count).step_by(100).map(batch).collect::<DfResult<Vec<_>>>()?;
        let query = MemorySourceConfig::try_new_exec(&[batches], Arc::clone(&schema), None)?;
        let place = || Arc::new(WithQueryExec::new("w", "w (1)", Arc::clone(&query) as _)) as _;
        WithQueryExec::opened(UnionExec::try_new(vec![place(), place()])?)
    }

    #[tokio::test]
    async fn rows_beyond_the_memory_are_on_the_disk_and_all_places_have_them() -> DfResult<()> {
        for count in [0, 100, 10_000] {
            let plan = read_twice(count)?;
            let places = plan.children();
            assert_eq!(places.iter().map(|place| place.children().len()).collect::<Vec<_>>(), [1, 0]);
            for _ in 0..2 {
                let run = WithQueryExec::anew(Arc::clone(&plan))?;
                let batches = collect(Arc::clone(&run), Arc::default()).await?;
                let sums =
                    batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().iter());
                let (rows, sum) = sums.flatten().fold((0, 0), |(rows, sum), n| (rows + 1, sum + n));
                assert_eq!((rows, sum), (2 * count, count * (count - 1)));
                let kept = WithQueryExec::of(run.children()[1]).and_then(|place| place.kept.as_ref());
                let found = kept.and_then(|kept| kept.found.get()).and_then(Shared::peek);
                assert_eq!(matches!(found, Some(Ok(Found::OnDisk(_)))), count == 10_000);
            }
        }
        Ok(())
    }

    #[tokio::test]
    async fn a_plan_that_is_not_started_has_no_rows() -> DfResult<()> {
        assert!(collect(read_twice(1)?, Arc::default()).await.is_err());
        Ok(())
    }
}
