//! What a plan is made of: the scan below operators that pass rows on, operators anywhere in it, and its columns.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result as DfResult;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::window::WindowExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};

use super::operators::scan::ScanExec;
use super::rules::kept_sorts::FixedExec;
use super::tree::{RewriteTree, changed};
use crate::error::{Error, Result, sqlstate};
use crate::sql;

/// The input of an operator that passes its rows on unchanged.
pub fn passed_on(plan: &dyn ExecutionPlan) -> Option<&Arc<dyn ExecutionPlan>> {
    let is_passed_on = plan.is::<CooperativeExec>() || plan.is::<FixedExec>();
    plan.children().first().copied().filter(|_| is_passed_on)
}

/// The input of an operator that passes rows on, or brings those of several threads together: here there is one.
pub fn brought_together(plan: &Arc<dyn ExecutionPlan>) -> Option<&Arc<dyn ExecutionPlan>> {
    if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() {
        let sort = merge.input().downcast_ref::<SortExec>()?;
        let is_same = sort.expr() == merge.expr() && sort.fetch() == merge.fetch();
        return is_same.then_some(merge.input());
    }
    if let Some(together) = plan.downcast_ref::<CoalescePartitionsExec>() {
        return together.fetch().is_none().then_some(together.input());
    }
    passed_on(&**plan)
}

/// The scan, if the plan is one.
pub fn scan_of(plan: &Arc<dyn ExecutionPlan>) -> Option<&ScanExec> {
    match plan.downcast_ref::<CooperativeExec>() {
        Some(cooperative) => scan_of(cooperative.input()),
        None => plan.downcast_ref(),
    }
}

/// The plan is a single scan, possibly with columns picked and renamed.
pub fn is_scan(plan: &Arc<dyn ExecutionPlan>) -> bool {
    picked(plan).is_some_and(|(scan, _)| scan.is_whole())
}

/// The plan's scan, and the scan columns that it outputs, if it does nothing else.
pub fn picked(plan: &Arc<dyn ExecutionPlan>) -> Option<(&ScanExec, Vec<usize>)> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return Some((scan, (0..scan.request.schema.fields().len()).collect()));
    }
    if let Some(cooperative) = plan.downcast_ref::<CooperativeExec>() {
        return picked(cooperative.input());
    }
    let projection = plan.downcast_ref::<ProjectionExec>()?;
    let (scan, below) = picked(projection.input())?;
    Some((scan, picked_of(projection, &below)?))
}

/// What a projection picks of what is known of the columns below it, if it does nothing else.
pub fn picked_of<T: Clone>(projection: &ProjectionExec, below: &[T]) -> Option<Vec<T>> {
    projection.expr().iter().map(|output| below.get(place(&output.expr)?).cloned()).collect()
}

/// The columns (positions) that a projection picks, if it does nothing else.
pub fn picks(projection: &ProjectionExec) -> Option<Vec<usize>> {
    projection.expr().iter().map(|output| place(&output.expr)).collect()
}

/// The column of a plan at this position.
pub fn column(plan: &Arc<dyn ExecutionPlan>, at: usize) -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new(plan.schema().field(at).name(), at))
}

/// The columns of a plan at these positions, under the names of a schema.
pub fn picked_as(
    plan: Arc<dyn ExecutionPlan>,
    columns: impl IntoIterator<Item = usize>,
    names: &Schema,
) -> DfResult<Arc<dyn ExecutionPlan>> {
    let named = columns.into_iter().zip(names.fields());
    let named = named.map(|(at, field)| (column(&plan, at), field.name().clone()));
    let named: Vec<(Arc<dyn PhysicalExpr>, String)> = named.collect();
    Ok(Arc::new(ProjectionExec::try_new(named, plan)?))
}

/// Position of the column, if the expression is one.
pub fn place(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}

/// The plan has an operator of this kind.
pub fn holds(plan: &Arc<dyn ExecutionPlan>, is_it: &dyn Fn(&dyn ExecutionPlan) -> bool) -> bool {
    is_it(&**plan) || plan.children().into_iter().any(|child| holds(child, is_it))
}

/// The windows of an operator that adds their columns to those of its input.
pub fn windows(plan: &dyn ExecutionPlan) -> Option<&[Arc<dyn WindowExpr>]> {
    let bounded = plan.downcast_ref::<BoundedWindowAggExec>().map(|windows| windows.window_expr());
    bounded.or_else(|| plan.downcast_ref::<WindowAggExec>().map(|windows| windows.window_expr()))
}

/// The batches of one query in one.
///
/// Errors: invalid, if the texts or bytes of a column are more than 2 GiB, which is where Arrow's batches end.
pub fn in_one(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<RecordBatch> {
    arrow::compute::concat_batches(schema, batches).map_err(|error| match error {
        ArrowError::OffsetOverflowError(_) => {
            Error::invalid("the rows that the statement finds have more than 2 GiB in one column")
                .hint("change fewer rows at a time, by a condition on the key")
                .state(sqlstate::LIMIT)
        }
        error => Error::internal("batches of one query differ").caused_by(error),
    })
}

/// A batch of these columns under the names of a schema.
pub fn renamed(columns: Vec<ArrayRef>, rows: usize, schema: &SchemaRef) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// A plan's schema under the names that the statement gave.
pub fn output_schema(schema: &SchemaRef) -> SchemaRef {
    let marked = |field: &Arc<Field>| sql::output_name(field.name()) != field.name();
    if !schema.fields().iter().any(marked) {
        return Arc::clone(schema);
    }
    let fields = schema.fields().iter().map(|f| f.as_ref().clone().with_name(sql::output_name(f.name())));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The expression with expressions in place of its columns (positions); `None` if one has none.
pub fn with_columns(
    expr: &Arc<dyn PhysicalExpr>,
    of: &dyn Fn(usize) -> Option<Arc<dyn PhysicalExpr>>,
) -> Option<Arc<dyn PhysicalExpr>> {
    let mut has_all = true;
    let moved = Arc::clone(expr).rewrite_up(|expr| {
        let Some(at) = place(&expr) else { return Ok(Transformed::no(expr)) };
        let column = of(at);
        has_all &= column.is_some();
        Ok(changed(column, expr))
    });
    moved.ok().filter(|_| has_all).map(|moved| moved.data)
}
