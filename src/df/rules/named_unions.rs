//! Removal of empty inputs, with the names of a UNION kept.
//!
//! A UNION has the column names of its first input. Once that one is gone, DataFusion's rule looks for them in the
//! inputs that are left, which have names of their own.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{LogicalPlan, Union};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::df::rewrite::named_as;

/// Propagation of empty relations, with those names.
#[derive(Debug)]
pub struct NamedUnions(pub Arc<dyn OptimizerRule + Send + Sync>);

impl OptimizerRule for NamedUnions {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> DfResult<Transformed<LogicalPlan>> {
        let LogicalPlan::Union(union) = &plan else { return self.0.rewrite(plan, config) };
        let mut left: Vec<_> = union.inputs.iter().filter(|input| !is_empty(input)).cloned().collect();
        if left.len() == union.inputs.len() || left.is_empty() {
            return self.0.rewrite(plan, config);
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
}

fn is_empty(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::EmptyRelation(empty) if !empty.produce_one_row)
}
