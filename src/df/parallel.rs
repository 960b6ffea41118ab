//! Tells a table source when the order of its rows cannot be observed, so that several threads may read them.
//!
//! That holds under an aggregate whose result is the same in every order. Elsewhere rows keep the order of the keys,
//! even where a statement does not ask for it. A plan that reads little is left to one thread.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Operator};
use datafusion::physical_expr::expressions::BinaryExpr;
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;

use super::cached::open_values::OpenValuesExec;
use super::operators::dynamic_filter::is_late;
use super::operators::join_rows::rows_of;
use super::operators::lookup::{LookupJoinExec, NestedExec};
use super::operators::recursion::RecursionExec;
use super::operators::scan::ScanExec;
use super::operators::seek::SeekJoinExec;
use super::operators::with_query::WithQueryExec;
use super::table::TableSource;
use crate::df::rewrite::bare;
use crate::df::tree::RewritePlan;
use crate::exec::scan::PARALLEL_WORK;

/// Threads (count) that are expected to share a plan.
const SHARED_BY: f64 = 2.0;

/// Aggregates whose result does not depend on the order of rows. Without DISTINCT, their state is a single number or
/// value.
pub const OF_A_SET: [&str; 5] = ["count", "sum", "min", "max", "avg"];

/// The same plan, with `any_order` set in the sources under such aggregates.
pub fn advise(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let advised = plan.rewrite_down_with_subqueries(|node| {
        let LogicalPlan::Aggregate(aggregate) = &node else { return Ok(Transformed::no(node)) };
        if !aggregate.aggr_expr.iter().all(is_unordered) {
            return Ok(Transformed::no(node));
        }
        let Some(input) = in_any_order(&aggregate.input)? else { return Ok(Transformed::no(node)) };
        let Aggregate { group_expr, aggr_expr, .. } = aggregate;
        let aggregate = Aggregate::try_new(Arc::new(input), group_expr.clone(), aggr_expr.clone())?;
        Ok(Transformed::yes(LogicalPlan::Aggregate(aggregate)))
    })?;
    Ok(advised.data)
}

/// The plan reads much, or an unknown amount.
pub fn is_long(plan: &Arc<dyn ExecutionPlan>) -> bool {
    reads_much(plan, None)
}

/// Estimated cost of all reads of a plan, as in [`Access::work`](crate::access::Access::work); unknown costs count as
/// zero.
pub fn work(plan: &Arc<dyn ExecutionPlan>) -> f64 {
    work_of(plan, None, Some(0.0)).unwrap_or_default()
}

/// Several threads are done with a plan before one is with another.
pub fn is_shorter(of_threads: &Arc<dyn ExecutionPlan>, alone: &Arc<dyn ExecutionPlan>) -> bool {
    work(of_threads) <= SHARED_BY * work(alone)
}

/// [`work`], if all costs are known.
pub fn known_work(plan: &Arc<dyn ExecutionPlan>) -> Option<f64> {
    work_of(plan, None, None)
}

fn work_of(plan: &Arc<dyn ExecutionPlan>, filter_rows: Option<f64>, unknown: Option<f64>) -> Option<f64> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return scan.work(filter_rows).or(unknown);
    }
    if let Some(join) = plan.downcast_ref::<LookupJoinExec>() {
        return Some(work_of(join.rows(), filter_rows, unknown)? + join.work().or(unknown)?);
    }
    inputs(plan, filter_rows)
        .into_iter()
        .map(|(input, filter_rows)| work_of(input, filter_rows, unknown))
        .sum()
}

/// [`is_long`] for a part of a plan; `filter_rows`: about how many rows feed its dynamic filters, if it has any.
fn reads_much(plan: &Arc<dyn ExecutionPlan>, filter_rows: Option<f64>) -> bool {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return scan.work(filter_rows).is_none_or(|work| work >= PARALLEL_WORK);
    }
    if let Some(join) = plan.downcast_ref::<LookupJoinExec>() {
        return reads_much(join.rows(), filter_rows) || join.work().is_none_or(|work| work >= PARALLEL_WORK);
    }
    if plan.is::<SeekJoinExec>() || plan.is::<RecursionExec>() {
        return plan.children().first().is_some_and(|rows| reads_much(rows, filter_rows));
    }
    let is_small = plan.is::<EmptyExec>()
        || plan.is::<PlaceholderRowExec>()
        || plan.is::<DataSourceExec>()
        || plan.is::<OpenValuesExec>()
        || plan.is::<WithQueryExec>()
        || plan.is::<NestedExec>();
    match &inputs(plan, filter_rows)[..] {
        [] => !is_small,
        inputs => inputs.iter().any(|(input, filter_rows)| reads_much(input, *filter_rows)),
    }
}

/// The inputs of an operator, each with about how many rows (count) feed dynamic filters on it. `filter_rows`: the same for
/// the operator itself.
pub fn inputs(
    plan: &Arc<dyn ExecutionPlan>,
    filter_rows: Option<f64>,
) -> Vec<(&Arc<dyn ExecutionPlan>, Option<f64>)> {
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let of_left = rows_of(join.left()).into_iter().chain(filter_rows).reduce(f64::min);
        return vec![(join.left(), filter_rows), (join.right(), of_left)];
    }
    let is_one = plan
        .downcast_ref::<FilterExec>()
        .is_some_and(|filter| split_conjunction(filter.predicate()).into_iter().any(equals_subquery));
    let filter_rows = if is_one { Some(1.0) } else { filter_rows };
    plan.children().into_iter().map(|input| (input, filter_rows)).collect()
}

/// The term compares for equality with the value of a scalar subquery.
fn equals_subquery(term: &Arc<dyn PhysicalExpr>) -> bool {
    term.downcast_ref::<BinaryExpr>().is_some_and(|equal| *equal.op() == Operator::Eq) && is_late(term)
}

fn is_unordered(expr: &Expr) -> bool {
    let Expr::AggregateFunction(call) = bare(expr) else { return false };
    OF_A_SET.contains(&call.func.name()) && call.params.order_by.is_empty()
}

/// The plan with `any_order` set in its source, if it reads one table without a limit.
fn in_any_order(plan: &LogicalPlan) -> DfResult<Option<LogicalPlan>> {
    match plan {
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => {
            let inputs = plan.inputs();
            let Some(input) = inputs.first().map(|input| in_any_order(input)).transpose()?.flatten() else {
                return Ok(None);
            };
            plan.with_new_exprs(plan.expressions(), vec![input]).map(Some)
        }
        LogicalPlan::TableScan(scan) if scan.fetch.is_none() => {
            let Some(source) = TableSource::of(scan)? else { return Ok(None) };
            Ok(Some(LogicalPlan::TableScan(source.changed_in(scan, |source| source.any_order = true))))
        }
        _ => Ok(None),
    }
}
