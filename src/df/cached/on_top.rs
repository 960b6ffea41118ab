//! Simple operators above a plan that runs without streams: projections, filters, groups, windows, sorts and
//! limits of batches in memory.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::compute::{lexsort_to_indices, take_record_batch};
use arrow::datatypes::SchemaRef;
use datafusion::error::Result as DfResult;
use datafusion::physical_expr::projection::ProjectionRef;
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_expr_common::utils::evaluate_expressions_to_arrays;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::{FilterExec, batch_filter};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;

use super::grouping::Grouping;
use super::windows::Windows;
use super::{parameters, subquery_values};
use crate::df::below::{brought_together, renamed};
use crate::df::errors::df_error;
use crate::error::Result;
use crate::value::Value;

/// The steps, the innermost first.
#[derive(Clone, Debug, Default)]
pub struct Above {
    steps: Vec<SimpleOperator>,
    /// A step has open parameters.
    is_open: bool,
}

#[derive(Clone, Debug)]
enum SimpleOperator {
    /// A projection.
    Compute(Vec<Arc<dyn PhysicalExpr>>, SchemaRef),
    /// A filter, with a projection of its input unless all columns come out.
    Filter(Arc<dyn PhysicalExpr>, Option<ProjectionRef>),
    /// Groups.
    Group(Grouping),
    /// Window functions.
    Window(Windows),
    /// A sort, or a top-k.
    Sort(Vec<PhysicalSortExpr>, Option<usize>),
    /// Skip so many rows, then take at most so many.
    Limit(usize, usize),
}

impl Above {
    /// Splits a plan into the simple operators on top of groups or windows, and the rest below them.
    pub fn off(plan: &Arc<dyn ExecutionPlan>) -> (Above, &Arc<dyn ExecutionPlan>) {
        let is_on_top =
            |step: &SimpleOperator| !matches!(step, SimpleOperator::Group(_) | SimpleOperator::Window(_));
        Above::off_while(plan, &is_on_top)
    }

    /// Splits a plan into all simple operators on top, and the rest below them.
    pub fn all_off(plan: &Arc<dyn ExecutionPlan>) -> (Above, &Arc<dyn ExecutionPlan>) {
        Above::off_while(plan, &|_| true)
    }

    fn off_while<'p>(
        mut plan: &'p Arc<dyn ExecutionPlan>,
        is_on_top: &dyn Fn(&SimpleOperator) -> bool,
    ) -> (Above, &'p Arc<dyn ExecutionPlan>) {
        let mut steps = Vec::new();
        loop {
            if let Some(input) = brought_together(plan) {
                plan = input;
                continue;
            }
            let step = SimpleOperator::of(plan).filter(|(step, _)| step.is_alone() && is_on_top(step));
            let Some((step, input)) = step else { break };
            steps.push(step);
            plan = input;
        }
        steps.reverse();
        (Above { is_open: steps.iter().any(SimpleOperator::is_open), steps }, plan)
    }

    /// There are no steps.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// A step has open parameters.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// The steps change the number or the order of rows.
    pub fn changes_rows(&self) -> bool {
        self.steps.iter().any(|step| !matches!(step, SimpleOperator::Compute(..)))
    }

    /// A step computes from several rows together.
    pub fn gathers(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, SimpleOperator::Group(_) | SimpleOperator::Window(_)))
    }

    /// A limit would stop the steps before they have seen all rows.
    pub fn may_stop(&self) -> bool {
        let waits =
            |step: &SimpleOperator| matches!(step, SimpleOperator::Group(_) | SimpleOperator::Sort(..));
        let mut before = self.steps.iter().take_while(|step| !waits(step));
        before.any(|step| matches!(step, SimpleOperator::Limit(..)))
    }

    /// Adds an operator as the last step; `None` if it is not a simple one.
    pub fn push(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Option<()> {
        let (step, _) = SimpleOperator::of(plan).filter(|(step, _)| step.is_alone())?;
        self.is_open |= step.is_open();
        self.steps.push(step);
        Some(())
    }

    /// The steps with the parameters of a run filled in; `None` if a value does not suit.
    pub fn filled(&self, params: &[Value]) -> Option<Cow<'_, Above>> {
        if !self.is_open {
            return Some(Cow::Borrowed(self));
        }
        let steps = self.steps.iter().map(|step| step.filled(params)).collect::<Option<_>>()?;
        Some(Cow::Owned(Above { steps, is_open: false }))
    }

    /// Applies the steps to these rows; the columns come out under the names of `schema`.
    pub fn of(&self, rows: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
        let rows = self.steps.iter().try_fold(rows, |rows, step| step.of_rows(rows)).map_err(df_error)?;
        renamed(rows.columns().to_vec(), rows.num_rows(), schema)
    }
}

fn computed(projection: &ProjectionExec) -> SimpleOperator {
    let exprs = projection.expr().iter().map(|output| Arc::clone(&output.expr)).collect();
    SimpleOperator::Compute(exprs, projection.schema())
}

impl SimpleOperator {
    /// A plan's top operator as a step, and its input; `None` for other operators.
    fn of(plan: &Arc<dyn ExecutionPlan>) -> Option<(SimpleOperator, &Arc<dyn ExecutionPlan>)> {
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            return Some((computed(projection), projection.input()));
        }
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            let step = || SimpleOperator::Filter(Arc::clone(filter.predicate()), filter.projection().clone());
            return filter.fetch().is_none().then(|| (step(), filter.input()));
        }
        if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
            let (grouping, input) = Grouping::of(aggregate)?;
            return Some((SimpleOperator::Group(grouping), input));
        }
        if let Some((windows, input)) = Windows::of(plan) {
            return Some((SimpleOperator::Window(windows), input));
        }
        if let Some(sort) = plan.downcast_ref::<SortExec>() {
            return Some((SimpleOperator::Sort(sort.expr().to_vec(), sort.fetch()), sort.input()));
        }
        // Of sorted inputs, such as those of a UNION ALL.
        if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() {
            return Some((SimpleOperator::Sort(merge.expr().to_vec(), merge.fetch()), merge.input()));
        }
        let limit = plan.downcast_ref::<GlobalLimitExec>()?;
        Some((SimpleOperator::Limit(limit.skip(), limit.fetch().unwrap_or(usize::MAX)), limit.input()))
    }

    fn is_open(&self) -> bool {
        self.has(&parameters::is_open)
    }

    /// The step needs its input rows only, and no value of a scalar subquery, which an operator above would provide.
    fn is_alone(&self) -> bool {
        !self.has(&subquery_values::reads_any)
    }

    fn has(&self, is_it: &dyn Fn(&Arc<dyn PhysicalExpr>) -> bool) -> bool {
        match self {
            SimpleOperator::Compute(exprs, _) => exprs.iter().any(is_it),
            SimpleOperator::Filter(predicate, _) => is_it(predicate),
            SimpleOperator::Group(grouping) => grouping.has(is_it),
            SimpleOperator::Window(windows) => windows.has(is_it),
            SimpleOperator::Sort(by, _) => by.iter().any(|by| is_it(&by.expr)),
            SimpleOperator::Limit(..) => false,
        }
    }

    fn filled(&self, params: &[Value]) -> Option<SimpleOperator> {
        Some(match self {
            SimpleOperator::Compute(exprs, schema) => {
                let exprs =
                    exprs.iter().map(|expr| parameters::filled(expr, params)).collect::<Option<_>>()?;
                SimpleOperator::Compute(exprs, Arc::clone(schema))
            }
            SimpleOperator::Filter(predicate, columns) => {
                SimpleOperator::Filter(parameters::filled(predicate, params)?, columns.clone())
            }
            SimpleOperator::Group(grouping) => SimpleOperator::Group(grouping.filled(params)?),
            SimpleOperator::Window(windows) if windows.has(&parameters::is_open) => return None,
            SimpleOperator::Window(_) | SimpleOperator::Sort(..) | SimpleOperator::Limit(..) => self.clone(),
        })
    }

    fn of_rows(&self, rows: RecordBatch) -> DfResult<RecordBatch> {
        let count = rows.num_rows();
        match self {
            // Of no rows nothing is computed: some of DataFusion's functions panic when they are asked to.
            SimpleOperator::Compute(_, schema) if count == 0 => {
                Ok(RecordBatch::new_empty(Arc::clone(schema)))
            }
            SimpleOperator::Filter(_, columns) if count == 0 => match columns {
                Some(columns) => Ok(rows.project(columns)?),
                None => Ok(rows),
            },
            SimpleOperator::Sort(..) if count == 0 => Ok(rows),
            SimpleOperator::Compute(exprs, schema) => {
                let values = evaluate_expressions_to_arrays(exprs, &rows)?;
                let options = RecordBatchOptions::new().with_row_count(Some(count));
                Ok(RecordBatch::try_new_with_options(Arc::clone(schema), values, &options)?)
            }
            SimpleOperator::Filter(predicate, columns) => {
                let passed = batch_filter(&rows, predicate)?;
                Ok(match columns {
                    Some(columns) => passed.project(columns)?,
                    None => passed,
                })
            }
            SimpleOperator::Group(grouping) => grouping.of_rows(&rows),
            SimpleOperator::Window(windows) => windows.of_rows(&rows),
            SimpleOperator::Sort(by, fetch) => {
                let columns = by.iter().map(|by| by.evaluate_to_sort_column(&rows));
                let order = lexsort_to_indices(&columns.collect::<DfResult<Vec<_>>>()?, *fetch)?;
                Ok(take_record_batch(&rows, &order)?)
            }
            SimpleOperator::Limit(skip, fetch) => {
                let skip = (*skip).min(count);
                Ok(rows.slice(skip, (*fetch).min(count - skip)))
            }
        }
    }
}
