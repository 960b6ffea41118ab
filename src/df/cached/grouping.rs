//! GROUP BY, DISTINCT and totals of rows in memory.
//!
//! DataFusion's operator reads a stream and can spill. For the rows of a join of few tables, which are at hand, its
//! setup takes longer than its work; so its accumulators are used without it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow::compute::{filter, prep_null_mask_filter};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::cast::as_boolean_array;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::{GroupsAccumulatorAdapter, PhysicalExpr};
use datafusion::physical_expr_common::utils::evaluate_expressions_to_arrays;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::group_values::new_group_values;
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};

use super::parameters;
use crate::df::below::brought_together;
use crate::value::Value;

/// An aggregate.
#[derive(Clone, Debug)]
pub struct Grouping {
    by: Vec<Arc<dyn PhysicalExpr>>,
    functions: Vec<Function>,
    /// The output schema: groups, then results.
    schema: SchemaRef,
}

/// An aggregate function of some rows.
#[derive(Clone, Debug)]
struct Function {
    call: Arc<AggregateFunctionExpr>,
    /// Only rows that pass.
    filter: Option<Arc<dyn PhysicalExpr>>,
}

impl Grouping {
    /// The grouping of an operator, of one step or of the last of two, and its input; `None` if it has grouping sets, or
    /// depends on the order of its rows.
    pub fn of(aggregate: &AggregateExec) -> Option<(Grouping, &Arc<dyn ExecutionPlan>)> {
        let first = match aggregate.mode() {
            AggregateMode::Single => aggregate,
            AggregateMode::Final | AggregateMode::FinalPartitioned => first_step(aggregate.input())?,
            _ => return None,
        };
        let is_whole = |step: &AggregateExec| step.group_expr().is_single() && step.limit_options().is_none();
        let is_plain = first.aggr_expr().iter().all(|call| call.order_bys().is_empty());
        let functions = first.aggr_expr().iter().zip(first.filter_expr());
        let function = |(call, filter): (&Arc<_>, &Option<_>)| Function {
            call: Arc::clone(call),
            filter: filter.clone(),
        };
        let grouping = || Grouping {
            by: first.group_expr().input_exprs(),
            functions: functions.map(function).collect(),
            schema: aggregate.schema(),
        };
        (is_whole(first) && is_whole(aggregate) && is_plain).then(|| (grouping(), first.input()))
    }

    /// Some expression is like this.
    pub fn has(&self, is_it: &dyn Fn(&Arc<dyn PhysicalExpr>) -> bool) -> bool {
        self.by.iter().any(is_it)
            || self.functions.iter().any(|Function { call, filter }| {
                call.expressions().iter().any(is_it) || filter.iter().any(is_it)
            })
    }

    /// The grouping with the parameters of a run filled in; `None` if a value does not suit.
    pub fn filled(&self, params: &[Value]) -> Option<Grouping> {
        let fill = |expr: &Arc<dyn PhysicalExpr>| parameters::filled(expr, params);
        let filled = |Function { call, filter }: &Function| {
            let args = call.expressions().iter().map(fill).collect::<Option<Vec<_>>>()?;
            let call = Arc::new(call.with_new_expressions(args, Vec::new())?);
            Some(Function { call, filter: filter.as_ref().map(fill).map_or(Some(None), |f| f.map(Some))? })
        };
        Some(Grouping {
            by: self.by.iter().map(fill).collect::<Option<_>>()?,
            functions: self.functions.iter().map(filled).collect::<Option<_>>()?,
            schema: Arc::clone(&self.schema),
        })
    }

    /// The groups of these rows, in the order in which they come first.
    pub fn of_rows(&self, rows: &RecordBatch) -> DfResult<RecordBatch> {
        let count = rows.num_rows();
        if self.by.is_empty() {
            let totals = self.functions.iter().map(|function| function.total(rows));
            return Ok(RecordBatch::try_new(Arc::clone(&self.schema), totals.collect::<DfResult<_>>()?)?);
        }
        if count == 0 {
            return Ok(RecordBatch::new_empty(Arc::clone(&self.schema)));
        }
        let keys = evaluate_expressions_to_arrays(&self.by, rows)?;
        let fields = self.schema.fields().iter().take(keys.len()).cloned().collect::<Vec<_>>();
        let mut groups = new_group_values(Arc::new(Schema::new(fields)), &GroupOrdering::None)?;
        let mut group_of = Vec::with_capacity(count);
        groups.intern(&keys, &mut group_of)?;
        let results = self.functions.iter().map(|function| function.of_groups(rows, &group_of, groups.len()));
        let results = results.collect::<DfResult<Vec<_>>>()?;
        let mut columns = groups.emit(EmitTo::All)?;
        columns.extend(results);
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

/// The step that groups the rows of each thread.
fn first_step(plan: &Arc<dyn ExecutionPlan>) -> Option<&AggregateExec> {
    match brought_together(plan) {
        Some(input) => first_step(input),
        None => plan.downcast_ref::<AggregateExec>().filter(|step| *step.mode() == AggregateMode::Partial),
    }
}

impl Function {
    fn args(&self, rows: &RecordBatch) -> DfResult<Vec<ArrayRef>> {
        evaluate_expressions_to_arrays(&self.call.expressions(), rows)
    }

    /// Tells which rows count.
    fn passes(&self, rows: &RecordBatch) -> DfResult<Option<BooleanArray>> {
        let Some(filter) = &self.filter else { return Ok(None) };
        let passes = filter.evaluate(rows)?.into_array(rows.num_rows())?;
        let passes = as_boolean_array(&passes)?;
        Ok(Some(if passes.null_count() > 0 { prep_null_mask_filter(passes) } else { passes.clone() }))
    }

    /// The result for all rows.
    fn total(&self, rows: &RecordBatch) -> DfResult<ArrayRef> {
        let (mut args, passes) = (self.args(rows)?, self.passes(rows)?);
        if let Some(passes) = &passes {
            args = args.iter().map(|arg| filter(arg, passes)).collect::<Result<_, _>>()?;
        }
        let mut accumulator = self.call.create_accumulator()?;
        accumulator.update_batch(&args)?;
        accumulator.evaluate()?.to_array()
    }

    /// The result for each group.
    fn of_groups(&self, rows: &RecordBatch, group_of: &[usize], groups: usize) -> DfResult<ArrayRef> {
        let (args, passes) = (self.args(rows)?, self.passes(rows)?);
        let mut accumulator: Box<dyn GroupsAccumulator> = if self.call.groups_accumulator_supported() {
            self.call.create_groups_accumulator()?
        } else {
            let call = Arc::clone(&self.call);
            Box::new(GroupsAccumulatorAdapter::new(move || call.create_accumulator()))
        };
        accumulator.update_batch(&args, group_of, passes.as_ref(), groups)?;
        accumulator.evaluate(EmitTo::All)
    }
}
