//! EXCEPT ALL and INTERSECT ALL, where the number of equal rows matters.
//!
//! DataFusion 55.2 joins both sides as for EXCEPT and INTERSECT, so that one row on the right removes, or lets through,
//! all equal rows. [`numbered`] numbers equal rows on both sides and joins the first with the first, the second with
//! the second.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinType, NullEquality};
use datafusion::error::Result as DfResult;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Distinct, Expr, ExprFunctionExt, Join, LogicalPlan, LogicalPlanBuilder};

/// Rewrites the join that stands for one of them. It runs before all rules that make other joins. EXCEPT and INTERSECT
/// are told apart by distinct rows on the left.
pub fn numbered(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Join(join)
            if matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
                && join.null_equality == NullEquality::NullEqualsNull
                && !matches!(*join.left, LogicalPlan::Distinct(Distinct::All(_))) =>
        {
            let columns: Vec<Expr> = join.left.schema().columns().into_iter().map(Expr::Column).collect();
            let (left, nth) = with_numbers(&join.left, "__nth_left")?;
            let (right, other) = with_numbers(&join.right, "__nth_right")?;
            let on = join.on.iter().cloned().chain([(nth, other)]).collect();
            let join = Join::try_new(
                Arc::new(left),
                Arc::new(right),
                on,
                join.filter,
                join.join_type,
                join.join_constraint,
                join.null_equality,
                join.null_aware,
            )?;
            let plan = LogicalPlanBuilder::from(LogicalPlan::Join(join)).project(columns)?.build()?;
            Ok(Transformed::yes(plan))
        }
        plan => Ok(Transformed::no(plan)),
    }
}

/// Numbers equal rows.
fn with_numbers(plan: &Arc<LogicalPlan>, name: &str) -> DfResult<(LogicalPlan, Expr)> {
    let columns: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    let number = row_number().partition_by(columns).build()?.alias(name);
    let plan = LogicalPlanBuilder::from(Arc::clone(plan)).window([number])?.build()?;
    Ok((plan, Expr::Column(Column::new_unqualified(name))))
}
