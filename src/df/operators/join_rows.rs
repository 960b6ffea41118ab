//! About how many rows a join gives, or a recursive query.
//!
//! Where DataFusion does not know how many values a column has, it takes all rows of a semi join to find a partner, and of
//! another join each row of the smaller side to find one. So `WHERE author IN (SELECT .. FROM a JOIN b ..)` would read all
//! there is of the outer table to look for the few rows of the inner query in it, instead of asking for their authors.
//! Where a side of a join is one table with a key that begins with a column of the join, the rows of a value are counted,
//! and what DataFusion says is lowered to that. It is never raised: what is estimated too high is read last, and then
//! whatever it would have looked for is read whole; such numbers grow with each join. Of a recursive query DataFusion says
//! nothing, and what nothing is known of is read last, too: it is taken to give some rows for each that it begins with.

use std::sync::{Arc, LazyLock};

use datafusion::common::JoinType;
use datafusion::common::stats::Precision;
use datafusion::error::Result as DfResult;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::operator_statistics::{
    ExtendedStatistics, StatisticsProvider, StatisticsRegistry, StatisticsResult,
};
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::statistics::StatisticsArgs;

use crate::df::kept::plan::{picked, place};

static ESTIMATES: LazyLock<StatisticsRegistry> =
    LazyLock::new(|| StatisticsRegistry::with_providers(vec![Arc::new(JoinRows)]));

/// What operators tell of their rows, and joins by the keys of their tables: for DataFusion's choice of the side that a
/// join reads first, too.
pub fn estimates() -> StatisticsRegistry {
    ESTIMATES.clone()
}

/// Rows (count) that are expected to come out of a plan; `None` if nothing is known of that.
pub fn rows_of(plan: &Arc<dyn ExecutionPlan>) -> Option<f64> {
    known(&ESTIMATES.compute(&**plan).ok()?)
}

fn known(statistics: &ExtendedStatistics) -> Option<f64> {
    statistics.base().num_rows.get_value().map(|rows| *rows as f64)
}

/// Rows (count) that a recursive query gives for each that it begins with.
const RECURSED: f64 = 16.0;

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
        if plan.is::<RecursiveQueryExec>()
            && let Some(rows) = inputs.first().and_then(known)
        {
            Arc::make_mut(&mut own).num_rows = Precision::Inexact((rows * RECURSED).ceil() as usize);
        }
        Ok(StatisticsResult::Computed(ExtendedStatistics::new_arc(own)))
    }
}

/// Rows (count) of a join that may be fewer than DataFusion says, of so many rows on its left side and on its right.
fn rows_joined(join: &HashJoinExec, left: Option<f64>, right: Option<f64>) -> Option<f64> {
    let of_left = || join.on().iter().map(|(left, _)| left);
    let of_right = || join.on().iter().map(|(_, right)| right);
    let asks_right = left.and_then(|rows| Some(rows * rows_of_value(join.right(), of_right())?));
    let asks_left = right.and_then(|rows| Some(rows * rows_of_value(join.left(), of_left())?));
    let pairs = asks_right.into_iter().chain(asks_left).reduce(f64::min)?;
    match join.join_type() {
        JoinType::Inner => Some(pairs),
        JoinType::LeftSemi => Some(left?.min(pairs)),
        JoinType::RightSemi => Some(right?.min(pairs)),
        // The others give each row of a side at the least, which is what DataFusion takes them for.
        _ => None,
    }
}

/// Rows (count) that have one value of these columns, if the side of a join is one table with a key that one leads.
pub fn rows_of_value<'e>(
    side: &Arc<dyn ExecutionPlan>,
    on: impl Iterator<Item = &'e Arc<dyn PhysicalExpr>>,
) -> Option<f64> {
    let (scan, columns) = picked(side)?;
    let rows = on.filter_map(|expr| {
        let at = *columns.get(place(expr)?)?;
        scan.rows_of_value(scan.request.schema.field(at).name())
    });
    rows.reduce(f64::min)
}
