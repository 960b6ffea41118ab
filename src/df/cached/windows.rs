//! Window functions of rows in memory.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::concat;
use arrow::datatypes::SchemaRef;
use datafusion::common::utils::evaluate_partition_ranges;
use datafusion::error::Result as DfResult;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::window::WindowExpr;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode};

/// Window functions over the same partitions.
#[derive(Clone, Debug)]
pub struct Windows {
    functions: Vec<Arc<dyn WindowExpr>>,
    /// The output schema: the rows, then the functions' values.
    schema: SchemaRef,
}

impl Windows {
    /// The functions of an operator whose input is sorted by its partitions, and the input; `None` for other operators.
    pub fn of(plan: &Arc<dyn ExecutionPlan>) -> Option<(Windows, &Arc<dyn ExecutionPlan>)> {
        let (functions, input) = if let Some(bounded) = plan.downcast_ref::<BoundedWindowAggExec>() {
            let is_sorted = bounded.input_order_mode == InputOrderMode::Sorted;
            (is_sorted.then(|| bounded.window_expr())?, bounded.input())
        } else {
            let whole = plan.downcast_ref::<WindowAggExec>()?;
            (whole.window_expr(), whole.input())
        };
        Some((Windows { functions: functions.to_vec(), schema: plan.schema() }, input))
    }

    /// Some expression is like this.
    pub fn has(&self, is_it: &dyn Fn(&Arc<dyn PhysicalExpr>) -> bool) -> bool {
        self.functions.iter().any(|function| {
            let exprs = function.all_expressions();
            exprs.args.iter().chain(&exprs.partition_by_exprs).chain(&exprs.order_by_exprs).any(is_it)
        })
    }

    /// The rows, each with its values.
    pub fn of_rows(&self, rows: &RecordBatch) -> DfResult<RecordBatch> {
        let Some(first) = self.functions.first().filter(|_| rows.num_rows() > 0) else {
            return Ok(RecordBatch::new_empty(Arc::clone(&self.schema)));
        };
        let by = first.partition_by().iter().map(|by| {
            let values = by.evaluate(rows)?.into_array(rows.num_rows())?;
            Ok(arrow::compute::SortColumn { values, options: None })
        });
        let by = by.collect::<DfResult<Vec<_>>>()?;
        let partitions = evaluate_partition_ranges(rows.num_rows(), &by)?;
        let partitions: Vec<RecordBatch> =
            partitions.into_iter().map(|part| rows.slice(part.start, part.end - part.start)).collect();
        let values = |function: &Arc<dyn WindowExpr>| {
            let each = partitions.iter().map(|part| function.evaluate(part));
            let each: Vec<ArrayRef> = each.collect::<DfResult<_>>()?;
            let each: Vec<&dyn arrow::array::Array> = each.iter().map(AsRef::as_ref).collect();
            Ok(concat(&each)?)
        };
        let values = self.functions.iter().map(values).collect::<DfResult<Vec<_>>>()?;
        let columns = rows.columns().iter().cloned().chain(values).collect();
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}
