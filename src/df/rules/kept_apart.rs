//! Keeps some of DataFusion's rules away from plans that they get wrong.
//!
//! `=` and `IS NOT DISTINCT FROM` in one join: a join of DataFusion has a single answer to whether NULLs are equal, for
//! all its pairs. Where it was made from IS NOT DISTINCT FROM, two rules still add pairs from an `=` of a filter.
//!
//! Sums beside a DISTINCT: a sum of sums has a longer type than a sum, and a partial sum may overflow where the total
//! does not.

use arrow::datatypes::FieldRef;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{JoinType, NullEquality};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Expr, Join, LogicalPlan};

use crate::df::rewrite::LogicalInner;

/// Around a rule that adds pairs to a single join.
pub fn of_a_join(plan: LogicalPlan, rule: &LogicalInner<'_>) -> DfResult<Transformed<LogicalPlan>> {
    let mixes = matches!(&plan, LogicalPlan::Join(join) if equals_nulls(join));
    if mixes { Ok(Transformed::no(plan)) } else { rule(plan) }
}

/// Around a rule that groups by a DISTINCT argument first, and adds up the sums of those groups.
pub fn of_sums(plan: LogicalPlan, rule: &LogicalInner<'_>) -> DfResult<Transformed<LogicalPlan>> {
    if adds_up_numbers(&plan) { Ok(Transformed::no(plan)) } else { rule(plan) }
}

/// Around a rule that rebuilds the joins of a whole plan.
pub fn of_all_joins(plan: LogicalPlan, rule: &LogicalInner<'_>) -> DfResult<Transformed<LogicalPlan>> {
    let mixes = plan.exists(|node| Ok(is_inner(node)))?;
    if mixes { Ok(Transformed::no(plan)) } else { rule(plan) }
}

fn adds_up_numbers(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Aggregate(aggregate) = plan else { return false };
    // Sums of doubles have the same type and do not overflow.
    let is_sum = |(expr, field): (&Expr, &FieldRef)| {
        matches!(expr, Expr::AggregateFunction(AggregateFunction { func, params })
            if func.name() == "sum" && !params.distinct && !field.data_type().is_floating())
    };
    // The aggregates' fields come last.
    let fields = aggregate.schema.fields().iter().rev();
    aggregate.aggr_expr.iter().rev().zip(fields).any(is_sum)
}

fn is_inner(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Join(join) if join.join_type == JoinType::Inner && equals_nulls(join))
}

fn equals_nulls(join: &Join) -> bool {
    join.null_equality == NullEquality::NullEqualsNull && !join.on.is_empty()
}
