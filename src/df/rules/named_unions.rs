//! Removal of empty inputs, with the names of a UNION kept.
//!
//! A UNION has the column names of its first input. Once that one is gone, DataFusion's rule looks for them in the
//! inputs that are left, which have names of their own.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{LogicalPlan, Union};

use crate::df::rewrite::{LogicalInner, named_as};

/// Propagation of empty relations, with those names.
pub fn named_unions(plan: LogicalPlan, propagate: &LogicalInner<'_>) -> DfResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Union(union) = &plan else { return propagate(plan) };
    let mut left: Vec<_> = union.inputs.iter().filter(|input| !is_empty(input)).cloned().collect();
    if left.len() == union.inputs.len() || left.is_empty() {
        return propagate(plan);
    }
    let first = Arc::clone(&left[0]);
    if first.schema() != &union.schema {
        left[0] = named_as(first, &union.schema)?;
    }
    Ok(Transformed::yes(match left.len() {
        1 => Arc::unwrap_or_clone(left.remove(0)),
        _ => LogicalPlan::Union(Union { inputs: left, schema: Arc::clone(&union.schema) }),
    }))
}

fn is_empty(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::EmptyRelation(empty) if !empty.produce_one_row)
}
