//! EXISTS as a count of rows.
//!
//! DataFusion 55.2 turns EXISTS into a join in filters only, and into a wrong one above totals or an OFFSET: it looks
//! for matching rows, but a total of none is a row, too. [`counted`] drops irrelevant nodes, and compares the number of
//! rows with zero where no join is possible.

use std::sync::Arc;

use datafusion::error::Result as DfResult;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::Exists;
use datafusion::logical_expr::{
    Distinct, Expr, FetchType, LogicalPlan, LogicalPlanBuilder, SkipType, Subquery, col, lit,
};

use super::correlated::subquery_of;

/// `[NOT] EXISTS (subquery)`: unchanged if DataFusion makes a join of it (`is_joined`), otherwise as a scalar subquery.
pub fn counted(
    subquery: Subquery,
    negated: bool,
    is_joined: &dyn Fn(&LogicalPlan) -> bool,
) -> DfResult<Expr> {
    if is_joined(&subquery.subquery) {
        return Ok(Expr::Exists(Exists { subquery: subquery_of((*subquery.subquery).clone()), negated }));
    }
    let Some(rows) = rows_of(&subquery.subquery)? else { return Ok(lit(!negated)) };
    let some = LogicalPlanBuilder::from(rows.clone()).project([lit(1_i64).alias("one")])?.build()?;
    if is_joined(&some) {
        return Ok(Expr::Exists(Exists { subquery: subquery_of(some), negated }));
    }
    // One is enough. Where outer columns are inside, a limit would be one for each outer row, which takes more.
    let rows = match subquery.outer_ref_columns.is_empty() && rows.all_out_ref_exprs().is_empty() {
        true => LogicalPlanBuilder::from(rows).limit(0, Some(1))?.build()?,
        false => rows,
    };
    let all = count(lit(1)).alias("rows");
    let is_there = match negated {
        true => col("rows").eq(lit(0_i64)),
        false => col("rows").gt(lit(0_i64)),
    };
    let plan = LogicalPlanBuilder::from(rows).aggregate(Vec::<Expr>::new(), [all])?.project([is_there])?;
    Ok(Expr::ScalarSubquery(subquery_of(plan.build()?)))
}

/// A simpler plan that has rows iff this one has; `None` if it always has one.
fn rows_of(plan: &LogicalPlan) -> DfResult<Option<LogicalPlan>> {
    match plan {
        LogicalPlan::Limit(limit) => match (limit.get_skip_type()?, limit.get_fetch_type()?) {
            (SkipType::Literal(0), FetchType::Literal(Some(1..))) => rows_of(&limit.input),
            _ => Ok(Some(plan.clone())),
        },
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => rows_of(&sort.input),
        LogicalPlan::Projection(projection) => rows_of(&projection.input),
        LogicalPlan::Window(window) => rows_of(&window.input),
        LogicalPlan::Distinct(Distinct::All(input)) => rows_of(input),
        LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => Ok(None),
        LogicalPlan::Aggregate(aggregate)
            if !aggregate.group_expr.iter().any(|group| matches!(group, Expr::GroupingSet(_))) =>
        {
            rows_of(&aggregate.input)
        }
        plan => Ok(Some(plan.clone())),
    }
}

/// The plan without sorts and DISTINCT, which do not matter for a set.
pub fn set_of(plan: &Arc<LogicalPlan>) -> Arc<LogicalPlan> {
    match &**plan {
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => set_of(&sort.input),
        LogicalPlan::Distinct(Distinct::All(input)) => set_of(input),
        _ => Arc::clone(plan),
    }
}
