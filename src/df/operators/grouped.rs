//! Runs the first step of a GROUP BY inside the scan.
//!
//! For several threads, DataFusion groups in two steps: each thread groups the rows it reads, and the partial groups
//! are merged. Over a scan of ours, the first step needs neither Arrow columns nor a look at each value
//! ([`crate::exec::groups`]). It gives what DataFusion's own first step would: partial groups, possibly several for one
//! value. The second step stays DataFusion's, which handles many groups.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result as DfResult;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputOrderMode, PlanProperties,
};

use super::scan::ScanExec;
use crate::df::below::{holds, picked, place};
use crate::df::cached::aggregates::ScanAggregate;
use crate::df::errors::to_df;
use crate::df::operators::{inputs, over_changed};
use crate::df::parallel;
use crate::error::Result;
use crate::exec::groups::Groups;
use crate::exec::scan::Scan;

/// Work, as of `Access::work`, from which two steps beat one.
pub const STEPS_WORK: f64 = 500.0;

/// Replaces first steps of aggregates by grouping scans, where possible.
pub fn in_scans(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    if !holds(&plan, &|node| node.is::<AggregateExec>()) {
        return Ok(plan);
    }
    below(&plan, None).map(|grouped| grouped.unwrap_or(plan))
}

/// [`in_scans`] for a part of a plan; `None` if it stays as it is. `filter_rows`: about how many rows feed its dynamic
/// filters.
fn below(
    plan: &Arc<dyn ExecutionPlan>,
    filter_rows: Option<f64>,
) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let grouped = match aggregate.mode() {
            AggregateMode::Single => in_two_steps(aggregate, filter_rows)?,
            _ => GroupedScan::of(aggregate).map(|grouped| Arc::new(grouped) as _),
        };
        if grouped.is_some() {
            return Ok(grouped);
        }
    }
    let inputs =
        parallel::inputs(plan, filter_rows).into_iter().map(|(input, filter_rows)| below(input, filter_rows));
    over_changed(plan, inputs.collect::<DfResult<_>>()?)
}

/// Splits a one-step aggregate, so that a scan does the first step; `None` if it cannot, or reads little.
fn in_two_steps(
    aggregate: &AggregateExec,
    filter_rows: Option<f64>,
) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
    let is_long = picked(aggregate.input())
        .and_then(|(scan, _)| scan.work(filter_rows))
        .is_some_and(|work| work >= STEPS_WORK);
    if !is_long || aggregate.group_expr().is_empty() || aggregate.limit_options().is_some() {
        return Ok(None);
    }
    let step = |mode, by, input| {
        let (functions, filters) = (aggregate.aggr_expr().to_vec(), aggregate.filter_expr().to_vec());
        AggregateExec::try_new(mode, by, functions, filters, input, aggregate.input_schema())
    };
    let by = aggregate.group_expr();
    let first = step(AggregateMode::Partial, by.clone(), Arc::clone(aggregate.input()))?;
    let Some(grouped) = GroupedScan::of(&first) else { return Ok(None) };
    let last = step(AggregateMode::Final, by.as_final(), Arc::new(grouped))?;
    Ok((last.schema() == aggregate.schema()).then(|| Arc::new(last) as _))
}

/// A scan that outputs partial groups: the states of DataFusion's functions.
#[derive(Clone, Debug)]
struct GroupedScan {
    scan: ScanExec,
    /// Positions of the grouping columns among the scan's columns.
    by: Vec<usize>,
    functions: Vec<ScanAggregate>,
    /// Schema of the aggregate that it replaces.
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl GroupedScan {
    /// The first step of an aggregate as a scan; `None` if a scan cannot do it.
    fn of(aggregate: &AggregateExec) -> Option<GroupedScan> {
        let is_first = *aggregate.mode() == AggregateMode::Partial;
        let ByScan { scan, by, functions } = by_scan(aggregate).filter(|_| is_first)?;
        Some(GroupedScan {
            scan: scan.clone(),
            by,
            functions,
            schema: aggregate.schema(),
            properties: Arc::clone(aggregate.properties()),
        })
    }

    fn start(&self, partition: usize, context: &TaskContext) -> Result<GroupingRun> {
        let scan = self.scan.start(partition)?;
        let groups = Groups::new(&self.by, self.functions.iter().map(|known| known.term), scan.spec());
        // A consumer that can spill gets a fair share only, and leaves the rest to others.
        let memory = MemoryConsumer::new("groups of a scan").with_can_spill(true);
        let memory = memory.register(context.memory_pool());
        Ok(GroupingRun { scan, groups, memory, more: true })
    }

    /// Reads rows until there are groups to output; `None` at the end.
    async fn next_batch(&self, grouping: &mut GroupingRun) -> DfResult<Option<RecordBatch>> {
        let GroupingRun { scan, groups, memory, more } = grouping;
        while *more {
            // Gives a waiting cancellation its turn.
            tokio::task::consume_budget().await;
            *more = scan.group(groups).map_err(to_df)?;
            if groups.is_large() || memory.try_resize(groups.size()).is_err() {
                break;
            }
        }
        if groups.is_empty() && !*more {
            return Ok(None);
        }
        memory.free();
        let (mut columns, totals) = groups.take().map_err(to_df)?;
        for (known, totals) in self.functions.iter().zip(&totals) {
            known.states(totals, &self.schema, &mut columns)?;
        }
        Ok(Some(RecordBatch::try_new(Arc::clone(&self.schema), columns)?))
    }
}

/// Grouping of a scan's rows by some of its columns.
pub struct ByScan<'p> {
    /// The scan.
    pub scan: &'p ScanExec,
    /// Positions of the grouping columns among the scan's columns.
    pub by: Vec<usize>,
    /// The functions, over the scan's columns.
    pub functions: Vec<ScanAggregate>,
}

/// The grouping that a one-step aggregate or a first step does; `None` if a scan cannot do it.
pub fn by_scan(aggregate: &AggregateExec) -> Option<ByScan<'_>> {
    let by = aggregate.group_expr();
    let is_simple = by.is_single()
        && !by.is_empty()
        && *aggregate.input_order_mode() == InputOrderMode::Linear
        && aggregate.limit_options().is_none();
    let (scan, columns) = picked(aggregate.input()).filter(|_| is_simple)?;
    let by = by.expr().iter().map(|(expr, _)| columns.get(place(expr)?).copied());
    let functions = ScanAggregate::all_of(aggregate)?.into_iter().map(|known| known.of_columns(&columns));
    Some(ByScan { scan, by: by.collect::<Option<_>>()?, functions: functions.collect::<Option<_>>()? })
}

/// State of a grouping scan.
struct GroupingRun {
    scan: Scan,
    groups: Groups,
    memory: MemoryReservation,
    more: bool,
}

impl DisplayAs for GroupedScan {
    fn fmt_as(&self, how: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.scan.fmt_as(how, f)
    }
}

impl ExecutionPlan for GroupedScan {
    inputs!(GroupedScan(), this => this);

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn apply_expressions(
        &self,
        see: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        self.scan.apply_expressions(see)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let (this, schema) = (Arc::new(self.clone()), Arc::clone(&self.schema));
        let batches = futures::stream::try_unfold(None, move |grouping| {
            let (this, context) = (Arc::clone(&this), Arc::clone(&context));
            async move {
                let mut grouping = match grouping {
                    Some(grouping) => grouping,
                    None => this.start(partition, &context).map_err(to_df)?,
                };
                Ok(this.next_batch(&mut grouping).await?.map(|batch| (batch, Some(grouping))))
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}
