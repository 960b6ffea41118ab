//! Estimates the number of rows of joins, groups and recursive queries.
//!
//! Without distinct counts, DataFusion assumes that every row of a semi join finds a partner, and for other joins that
//! each row of the smaller side finds one. So `WHERE author IN (SELECT .. FROM a JOIN b ..)` would read the whole outer
//! table to find the few rows of the inner query, instead of looking these authors up. Where one side of a join is a
//! table with a key led by a join column, the rows per value are known, and DataFusion's estimate is lowered
//! accordingly. It is never raised: the side with the larger estimate is read last, and then its lookups turn into full
//! reads; such errors multiply with each join. Groups are estimated by the rows of each. For a recursive query,
//! DataFusion has no estimate, which would put it last, too: it is assumed to give some rows for each initial row.

use std::sync::{Arc, LazyLock};

use datafusion::common::JoinType;
use datafusion::common::stats::Precision;
use datafusion::error::Result as DfResult;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::operator_statistics::{
    ExtendedStatistics, StatisticsProvider, StatisticsRegistry, StatisticsResult,
};
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::unnest::UnnestExec;

use crate::df::below::{picked, place};

static ESTIMATES: LazyLock<StatisticsRegistry> =
    LazyLock::new(|| StatisticsRegistry::with_providers(vec![Arc::new(JoinRows)]));

/// Row estimates of operators, with joins estimated by the keys of their tables; they also guide DataFusion's choice of
/// the build side.
pub fn estimates() -> StatisticsRegistry {
    ESTIMATES.clone()
}

/// Expected rows (count) of a plan; `None` if unknown.
pub fn rows_of(plan: &Arc<dyn ExecutionPlan>) -> Option<f64> {
    known(&ESTIMATES.compute(&**plan).ok()?)
}

fn known(statistics: &ExtendedStatistics) -> Option<f64> {
    statistics.base().num_rows.get_value().map(|rows| *rows as f64)
}

/// Expected rows (count) of a recursive query for each initial row.
const RECURSED: f64 = 16.0;

/// Expected rows (count) that a table function makes of each row.
const MADE: f64 = 4.0;

#[derive(Debug)]
struct JoinRows;

impl StatisticsProvider for JoinRows {
    fn compute_statistics(
        &self,
        plan: &dyn ExecutionPlan,
        inputs: &[ExtendedStatistics],
    ) -> DfResult<StatisticsResult> {
        let of_inputs: Vec<_> = inputs.iter().map(|input| Arc::clone(input.base_arc())).collect();
        let mut own = plan.statistics_from_inputs(&of_inputs, &StatisticsArgs::new())?;
        if let Some(join) = plan.downcast_ref::<HashJoinExec>()
            && let [left, right] = inputs
            && let Some(rows) = rows_joined(join, known(left), known(right))
        {
            let own = &mut Arc::make_mut(&mut own).num_rows;
            *own = own.min(&Precision::Inexact(rows.ceil() as usize));
        }
        if let Some(aggregate) = plan.downcast_ref::<AggregateExec>()
            && let Some(groups) = groups_of(aggregate)
        {
            let own = &mut Arc::make_mut(&mut own).num_rows;
            *own = own.min(&Precision::Inexact(groups.ceil() as usize));
        }
        if plan.is::<RecursiveQueryExec>()
            && let Some(rows) = inputs.first().and_then(known)
        {
            Arc::make_mut(&mut own).num_rows = Precision::Inexact((rows * RECURSED).ceil() as usize);
        }
        if let Some(unnest) = plan.downcast_ref::<UnnestExec>()
            && let Some(rows) = inputs.first().and_then(known)
        {
            let made = if unnest.list_column_indices().is_empty() { rows } else { rows * MADE };
            Arc::make_mut(&mut own).num_rows = Precision::Inexact(made.ceil() as usize);
        }
        Ok(StatisticsResult::Computed(ExtendedStatistics::new_arc(own)))
    }
}

/// Upper estimate of a join's rows (count) from the rows on its left and right side; `None` where it has nothing to add
/// to DataFusion's.
fn rows_joined(join: &HashJoinExec, left: Option<f64>, right: Option<f64>) -> Option<f64> {
    let of_left = || join.on().iter().map(|(left, _)| left);
    let of_right = || join.on().iter().map(|(_, right)| right);
    let asks_right = left.and_then(|rows| Some(rows * rows_matched(join.right(), of_right())?));
    let asks_left = right.and_then(|rows| Some(rows * rows_matched(join.left(), of_left())?));
    let pairs = asks_right.into_iter().chain(asks_left).reduce(f64::min)?;
    match join.join_type() {
        JoinType::Inner => Some(pairs),
        JoinType::LeftSemi => Some(left?.min(pairs)),
        JoinType::RightSemi => Some(right?.min(pairs)),
        // Other joins keep each row of a side, which DataFusion's estimate accounts for.
        _ => None,
    }
}

/// Expected groups (count) of the rows of one scan, if their columns lead a key.
fn groups_of(aggregate: &AggregateExec) -> Option<f64> {
    let groups = aggregate.group_expr();
    if !groups.is_single() || groups.is_empty() {
        return None;
    }
    let bound = picked(aggregate.input())?.0.bound().ok()?;
    if bound.spec.access.jumps_each() {
        // They give about a row of each group.
        return None;
    }
    let of = groups.expr().iter().map(|(expr, _)| expr);
    Some(bound.rows / rows_matched(aggregate.input(), of)?.max(1.0))
}

/// Expected rows (count) with one value in each of these columns, if the side is a single table with a key that one of
/// them leads.
pub fn rows_matched<'e>(
    side: &Arc<dyn ExecutionPlan>,
    on: impl Iterator<Item = &'e Arc<dyn PhysicalExpr>>,
) -> Option<f64> {
    let (scan, columns) = picked(side)?;
    let fields = on.filter_map(|expr| scan.request.output_field(*columns.get(place(expr)?)?));
    scan.request.rows_matched(scan.bound().ok()?, &fields.collect::<Vec<_>>())
}
