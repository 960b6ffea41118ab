//! Top-k above lookup joins: the outer rows are sorted first, then joined until there are enough.
//!
//! For `SELECT o.id, c.name .. ORDER BY o.amount LIMIT 5` DataFusion joins all orders and keeps five of them. If nearly
//! every order finds its customer, the orders are sorted before the join instead. [`LookupJoinExec`] keeps their order,
//! so a limit above it stops the lookups after about five.

use std::sync::Arc;

use arrow::compute::SortOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result as DfResult;
use datafusion::physical_expr::{LexOrdering, PhysicalExprRef, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;

use super::instead::{MANY, over, swapped};
use super::{JoinKind, LookupJoinExec};
use crate::df::below::{column, picked, place};
use crate::df::operators::is_one_part;
use crate::df::operators::join_rows::rows_of;
use crate::df::tree::{RewriteTree, changed};
use crate::key::ColumnId;
use crate::plan::Field;

/// Most outer rows (count) that are sorted in memory.
const SORTED_MAX: f64 = 100_000.0;

/// A sort key: the index of a column, and its direction.
type SortColumn = (usize, SortOptions);

/// Moves top-k sorts by outer columns below lookup joins.
pub fn sorted_first(plan: Arc<dyn ExecutionPlan>) -> DfResult<Transformed<Arc<dyn ExecutionPlan>>> {
    plan.rewrite_up(|node| {
        let sort = node.downcast_ref::<SortExec>();
        Ok(changed(sort.map(below_joins).transpose()?.flatten(), node))
    })
}

/// The sort as a limit above joins of sorted rows; `None` if no join is below it, the joins may drop most rows, or the
/// sort keys are not the outer rows'.
fn below_joins(sort: &SortExec) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
    let Some(wanted) = sort.fetch() else { return Ok(None) };
    let is_one = is_one_part(sort.input());
    let by = sort.expr().iter().map(|by| Some((place(&by.expr)?, by.options)));
    let Some(by) = by.collect::<Option<Vec<SortColumn>>>().filter(|_| is_one) else { return Ok(None) };
    let joined = joined(sort.input(), &by, wanted)?;
    Ok(joined.map(|joined| Arc::new(GlobalLimitExec::new(joined, 0, Some(wanted))) as _))
}

/// The joins at the top of a plan, over sorted outer rows; `None` if there are none.
fn joined(
    plan: &Arc<dyn ExecutionPlan>,
    by: &[SortColumn],
    wanted: usize,
) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(join) = plan.downcast_ref::<LookupJoinExec>() {
        let Some(by) = mapped(by, |at| join.output_of(at).filter(|(side, _)| *side == 0).map(|(_, at)| at))
        else {
            return Ok(None);
        };
        let rows = join.may_stop_early().then(|| sorted(join.rows(), &by, wanted)).transpose()?.flatten();
        return rows.map(|rows| Ok(Arc::new(join.over_sorted(rows, wanted)?) as _)).transpose();
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        if let Some(lookup) = looked_up(join, by, wanted)? {
            return Ok(Some(lookup));
        }
        if JoinKind::of(join.join_type().swap()).is_none() {
            return Ok(None);
        }
        return swapped(join, |join, above| {
            let by = above.map_or_else(|| Some(by.to_vec()), |above| through(above, by));
            by.map_or(Ok(None), |by| looked_up(join, &by, wanted))
        });
    }
    let Some(by) = through(plan, by) else { return Ok(None) };
    let [input] = plan.children()[..] else { return Ok(None) };
    joined(input, &by, wanted)?.map(|input| over(plan, input)).transpose()
}

/// A hash join as a lookup join with its left side as the sorted outer rows.
fn looked_up(
    join: &HashJoinExec,
    by: &[SortColumn],
    wanted: usize,
) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
    let Some(lookup) = LookupJoinExec::of_first(join, wanted)? else { return Ok(None) };
    joined(&(Arc::new(lookup) as _), by, wanted)
}

/// Some join of the plan can read its table in the order of the sort, so that few of its rows are read.
fn comes_in_order(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let is_led = |join: &HashJoinExec, side: &Arc<dyn ExecutionPlan>, of_left: bool| {
        let Some((scan, columns)) = picked(side) else { return false };
        let key = |on: &(PhysicalExprRef, PhysicalExprRef)| {
            let column = *columns.get(place(if of_left { &on.0 } else { &on.1 })?)?;
            match scan.request.output_field(column)? {
                Field::Column(id) => Some(id),
                _ => None,
            }
        };
        let behind: Option<Vec<ColumnId>> = join.on().iter().map(key).collect();
        behind.is_some_and(|behind| scan.first_in_order(&behind).is_some())
    };
    let is_here = match (plan.downcast_ref::<HashJoinExec>(), plan.downcast_ref::<LookupJoinExec>()) {
        (Some(join), _) => is_led(join, join.left(), true) || is_led(join, join.right(), false),
        (_, Some(join)) => join.can_come_in_order(),
        _ => false,
    };
    is_here || plan.children().into_iter().any(comes_in_order)
}

/// The plan's rows in order, sorted below its own joins if possible; `None` if nothing would be saved.
fn sorted(
    plan: &Arc<dyn ExecutionPlan>,
    by: &[SortColumn],
    wanted: usize,
) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(joined) = joined(plan, by, wanted)? {
        return Ok(Some(joined));
    }
    let is_worth_it = rows_of(plan).is_some_and(|rows| {
        let is_merged = rows > MANY * wanted as f64 && comes_in_order(plan);
        rows > wanted as f64 && rows <= SORTED_MAX && !is_merged
    });
    let is_one = is_one_part(plan);
    let by = by.iter().map(|(at, options)| PhysicalSortExpr::new(column(plan, *at), *options));
    let order = LexOrdering::new(by).filter(|_| is_worth_it && is_one);
    Ok(order.map(|order| Arc::new(SortExec::new(order, Arc::clone(plan))) as _))
}

/// The sort keys as columns of the operator's input, if it passes rows through.
fn through(plan: &Arc<dyn ExecutionPlan>, by: &[SortColumn]) -> Option<Vec<SortColumn>> {
    if plan.is::<CooperativeExec>() {
        return Some(by.to_vec());
    }
    let projection = plan.downcast_ref::<ProjectionExec>()?;
    mapped(by, |at| place(&projection.expr().get(at)?.expr))
}

fn mapped(by: &[SortColumn], below: impl Fn(usize) -> Option<usize>) -> Option<Vec<SortColumn>> {
    by.iter().map(|(at, options)| Some((below(*at)?, *options))).collect()
}
