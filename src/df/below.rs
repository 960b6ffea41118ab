//! What is below operators that pass rows on: as they are, or with some of their columns.

use std::sync::Arc;

use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::projection::ProjectionExec;

use super::operators::scan::ScanExec;
use super::rules::kept_sorts::FixedExec;

/// The input of an operator that passes its rows on unchanged.
pub fn passed_on(plan: &dyn ExecutionPlan) -> Option<&Arc<dyn ExecutionPlan>> {
    let is_passed_on = plan.is::<CooperativeExec>() || plan.is::<FixedExec>();
    plan.children().first().copied().filter(|_| is_passed_on)
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

/// Position of the column, if the expression is one.
pub fn place(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}
