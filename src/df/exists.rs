//! EXISTS outside a WHERE.
//!
//! DataFusion 55.2 makes a join of it in a filter only. Elsewhere [`counted_exists`] asks whether the rows are more
//! than none, which DataFusion can answer there too.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result as DfResult;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::Exists;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, FetchType, LogicalPlan, LogicalPlanBuilder, SkipType, col, lit};

use super::rewrite::rename_kept;

/// Rewrites the EXISTS of a node that is no filter and no join.
pub fn counted_exists(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    if matches!(plan, LogicalPlan::Filter(_) | LogicalPlan::Join(_)) {
        return Ok(Transformed::no(plan));
    }
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expr| rename_kept(expr, &names, &mut |expr| expr.transform_up(counted)))
}

fn counted(expr: Expr) -> DfResult<Transformed<Expr>> {
    let Expr::Exists(Exists { subquery, negated }) = expr else { return Ok(Transformed::no(expr)) };
    let rows = unlimited(&subquery.subquery)?;
    let all = count(lit(1)).alias("rows");
    let is_there = match negated {
        true => col("rows").eq(lit(0_i64)),
        false => col("rows").gt(lit(0_i64)),
    };
    let plan = LogicalPlanBuilder::from(rows).aggregate(Vec::<Expr>::new(), [all])?.project([is_there])?;
    Ok(Transformed::yes(Expr::ScalarSubquery(subquery.with_plan(Arc::new(plan.build()?)))))
}

/// The plan without a LIMIT that leaves a row, if there is one.
fn unlimited(plan: &LogicalPlan) -> DfResult<LogicalPlan> {
    if let LogicalPlan::Limit(limit) = plan
        && let (SkipType::Literal(0), FetchType::Literal(Some(1..))) =
            (limit.get_skip_type()?, limit.get_fetch_type()?)
    {
        return unlimited(&limit.input);
    }
    Ok(plan.clone())
}
