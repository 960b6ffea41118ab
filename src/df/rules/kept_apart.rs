//! Plans that some rules of DataFusion's are not let at.
//!
//! `=` and `IS NOT DISTINCT FROM` in one join: a join of DataFusion's has one answer to whether two NULLs are equal, for
//! all of its pairs. Where it was made of IS NOT DISTINCT FROM, two of its rules go on to add pairs of an `=` that a
//! filter had.
//!
//! Orders of grouped joins: what is unique below a join is not unique above it, and DataFusion takes it to be again once
//! rows are grouped by it and by something else.
//!
//! Sums beside a DISTINCT: a sum of sums is of a longer type than a sum, and a sum of some rows may be too large where
//! that of all of them is not.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{JoinType, NullEquality};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Expr, Join, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// A rule that is not let at the plans that it would get wrong.
#[derive(Debug)]
pub struct KeptApart {
    rule: Arc<dyn OptimizerRule + Send + Sync>,
    mixes: fn(&LogicalPlan) -> bool,
}

impl KeptApart {
    /// A rule that adds pairs to the join it is shown.
    pub fn of_a_join(rule: Arc<dyn OptimizerRule + Send + Sync>) -> KeptApart {
        KeptApart { rule, mixes: |plan| matches!(plan, LogicalPlan::Join(join) if equals_nulls(join)) }
    }

    /// A rule that leaves out of an order what columns before it decide. Of groups above a join it takes a column for
    /// decided by one that was unique below the join.
    pub fn of_grouped_joins(rule: Arc<dyn OptimizerRule + Send + Sync>) -> KeptApart {
        KeptApart { rule, mixes: orders_grouped_join }
    }

    /// A rule that groups by what is DISTINCT first, and adds up the sums of those groups.
    pub fn of_sums(rule: Arc<dyn OptimizerRule + Send + Sync>) -> KeptApart {
        KeptApart { rule, mixes: adds_up_numbers }
    }

    /// A rule that makes other joins of those that it finds in a plan.
    pub fn of_all_joins(rule: Arc<dyn OptimizerRule + Send + Sync>) -> KeptApart {
        // What is asked of every node never fails.
        KeptApart { rule, mixes: |plan| plan.exists(|node| Ok(is_inner(node))).unwrap_or(true) }
    }
}

fn adds_up_numbers(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Aggregate(aggregate) = plan else { return false };
    // Doubles have one type, and no sum that is too large.
    let is_sum = |(expr, field): (&Expr, &FieldRef)| {
        matches!(expr, Expr::AggregateFunction(AggregateFunction { func, params })
            if func.name() == "sum" && !params.distinct && !field.data_type().is_floating())
    };
    // Of the fields, those come last.
    let fields = aggregate.schema.fields().iter().rev();
    aggregate.aggr_expr.iter().rev().zip(fields).any(is_sum)
}

fn orders_grouped_join(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Sort(sort) = plan else { return false };
    sort.input.exists(groups_a_join).unwrap_or(true)
}

fn groups_a_join(node: &LogicalPlan) -> DfResult<bool> {
    let groups = matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_));
    Ok(groups && node.exists(|node| Ok(matches!(node, LogicalPlan::Join(_))))?)
}

fn is_inner(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Join(join) if join.join_type == JoinType::Inner && equals_nulls(join))
}

fn equals_nulls(join: &Join) -> bool {
    join.null_equality == NullEquality::NullEqualsNull && !join.on.is_empty()
}

impl OptimizerRule for KeptApart {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> DfResult<Transformed<LogicalPlan>> {
        if (self.mixes)(&plan) { Ok(Transformed::no(plan)) } else { self.rule.rewrite(plan, config) }
    }
}
