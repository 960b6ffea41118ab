//! Orders joins by what few rows look for in them.
//!
//! A hash join passes the values of its build side down to the scans of its probe side. So `13 jobs ANTI JOIN (needs JOIN
//! jobs)` reads what 13 jobs need, and not all needs; but by the number of these, all jobs would be read first, to join
//! them with. The scan that is asked is told how much that will be, and the joins around it are ordered anew.

use std::sync::Arc;

use datafusion::error::Result as DfResult;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;

use super::{Plan, search};
use crate::access::COST;
use crate::df::below::{holds, place};
use crate::df::join_sides::{keeps, output_of};
use crate::df::operators::join_rows::rows_of;
use crate::df::operators::over_changed;
use crate::df::operators::scan::ScanExec;
use crate::df::rewrite::PlanInner;
use crate::df::table::Matches;

/// How many times less than all rows must be asked for: estimates err.
const LESS: f64 = 2.0;

/// A join of few rows with joins that it looks something up in, with these in another order; `None` for other plans.
pub fn in_order_for_few(plan: &Plan, choose: &PlanInner<'_>) -> DfResult<Option<Plan>> {
    // The values of the left side narrow the right one.
    let is_told = |join: &&HashJoinExec| !join.null_aware && join.join_type().on_lr_is_preserved().1;
    let Some(join) = plan.downcast_ref::<HashJoinExec>().filter(is_told) else { return Ok(None) };
    let is_join = |node: &dyn ExecutionPlan| node.is::<HashJoinExec>() || node.is::<NestedLoopJoinExec>();
    let columns: Option<Vec<usize>> = join.on().iter().map(|(_, right)| place(right)).collect();
    let (Some(rows), Some(columns)) = (rows_of(join.left()), columns) else { return Ok(None) };
    if !holds(join.right(), &is_join) {
        return Ok(None);
    }
    let Some(asked) = asked(join.right(), &columns, rows)? else { return Ok(None) };
    let ordered = search::in_best_order(asked)?.data;
    over_changed(plan, vec![None, Some(choose(ordered)?)])
}

/// The plan with a scan that knows that about so many rows ask for values of these columns; `None` if that is not far
/// less than all.
fn asked(plan: &Plan, columns: &[usize], rows: f64) -> DfResult<Option<Plan>> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return Ok(asked_scan(scan, columns, rows).map(|scan| Arc::new(scan) as Plan));
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let below = columns.iter().map(|at| place(&projection.expr().get(*at)?.expr));
        let Some(below) = below.collect::<Option<Vec<_>>>() else { return Ok(None) };
        return over_changed(plan, vec![asked(projection.input(), &below, rows)?]);
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let groups = aggregate.group_expr();
        let below = columns.iter().map(|at| place(&groups.expr().get(*at)?.0));
        let below = below.collect::<Option<Vec<_>>>().filter(|_| groups.is_single());
        let Some(below) = below else { return Ok(None) };
        return over_changed(plan, vec![asked(aggregate.input(), &below, rows)?]);
    }
    let Some(join) = plan.downcast_ref::<HashJoinExec>() else { return Ok(None) };
    let sides = [join.left(), join.right()].into_iter().zip(keeps(*join.join_type())).enumerate();
    let asked = sides.map(|(side, (input, keeps))| {
        let outputs = columns.iter().filter_map(|at| output_of(join, *at));
        let of_side: Vec<usize> = outputs.filter(|(of, _)| *of == side).map(|(_, at)| at).collect();
        if keeps && !of_side.is_empty() { asked(input, &of_side, rows) } else { Ok(None) }
    });
    over_changed(plan, asked.collect::<DfResult<_>>()?)
}

fn asked_scan(scan: &ScanExec, columns: &[usize], rows: f64) -> Option<ScanExec> {
    let fields = columns.iter().map(|at| scan.request.output_field(*at));
    let each = scan.request.matches(scan.bound().ok()?, &fields.collect::<Option<Vec<_>>>()?)?;
    // Rows that find nothing ask as well.
    let expected = Matches { rows: rows * each.rows.max(1.0), work: rows * (COST.seek + each.work) };
    (expected.work * LESS < scan.expected_work()?).then(|| scan.expecting(expected))
}
