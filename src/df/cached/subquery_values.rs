//! Scalar subqueries in a cached plan: each run gets its own place for their results.
//!
//! DataFusion runs scalar subqueries first, and expressions read the results from a place that they share with the
//! operator that computed them. Two runs of one plan would share that place, too. So each run gets new operators and
//! expressions, where these are in filters and projections; a plan with one anywhere else is not kept.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::physical_planning_context::ScalarSubqueryResults;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::scalar_subquery::ScalarSubqueryExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;

use super::parameters::{stands_in_operators, with_exprs};
use crate::df::tree::RewriteTree;

/// Every read of a scalar subquery is where [`anew`] finds it.
pub fn can_be_anew(plan: &Arc<dyn ExecutionPlan>) -> bool {
    stands_in_operators(plan, &reads_any)
}

/// The plan with new places for the results of its scalar subqueries.
pub fn anew(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    plan.rewrite_up(|node| {
        let Some(exec) = node.downcast_ref::<ScalarSubqueryExec>() else { return Ok(Transformed::no(node)) };
        let (old, new) = (exec.results(), ScalarSubqueryResults::new(exec.subqueries().len()));
        let reads_old = |value: &ScalarSubqueryExpr| value.results() == old;
        let input = Arc::clone(exec.input()).rewrite_up(|node| {
            let change = |expr: &Arc<dyn PhysicalExpr>| reading(expr, &reads_old, &new);
            with_exprs(node, &|expr| holds(expr, &reads_old), &change).map(Transformed::yes)
        });
        let exec = ScalarSubqueryExec::new(input.data()?, exec.subqueries().to_vec(), new);
        Ok(Transformed::yes(Arc::new(exec) as _))
    })
    .data()
}

/// The expression reads the result of a scalar subquery.
pub fn reads_any(expr: &Arc<dyn PhysicalExpr>) -> bool {
    holds(expr, &|_| true)
}

fn holds(expr: &Arc<dyn PhysicalExpr>, is_it: &dyn Fn(&ScalarSubqueryExpr) -> bool) -> bool {
    let found = expr.exists(|expr| Ok(expr.downcast_ref().is_some_and(is_it)));
    found.unwrap_or(true)
}

/// The expression with the results read from another place.
fn reading(
    expr: &Arc<dyn PhysicalExpr>,
    is_it: &dyn Fn(&ScalarSubqueryExpr) -> bool,
    place: &ScalarSubqueryResults,
) -> DfResult<Arc<dyn PhysicalExpr>> {
    let read = Arc::clone(expr).rewrite_up(|expr| {
        let Some(value) = expr.downcast_ref::<ScalarSubqueryExpr>().filter(|value| is_it(value)) else {
            return Ok(Transformed::no(expr));
        };
        let field = value.return_field(&Schema::empty())?;
        #[expect(deprecated, reason = "it is told in no other way")]
        let at = value.index();
        let (ty, nullable) = (field.data_type().clone(), field.is_nullable());
        Ok(Transformed::yes(Arc::new(ScalarSubqueryExpr::new(ty, nullable, at, place.clone())) as _))
    });
    read.data()
}
