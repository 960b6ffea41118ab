//! Restores orders that operators need and plans have lost.
//!
//! DataFusion 55.2 drops sorts by a column that is NULL in all rows. When it then moves sorts and projections into
//! joins, a join may forget that fact, and the final check refuses the plan. In that case this rule adds the missing
//! sorts.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result as DfResult;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, ExecutionPlanProperties, ReplaceChildrenOptions,
};

use crate::df::tree::RewriteTree;

type Plan = Arc<dyn ExecutionPlan>;

/// Wraps the final check: if it refuses a plan, missing sorts are added and it runs again.
#[derive(Debug)]
pub struct Satisfied(pub Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for Satisfied {
    fn optimize(&self, plan: Plan, options: &ConfigOptions) -> DfResult<Plan> {
        let checked = self.0.optimize(Arc::clone(&plan), options);
        checked.or_else(|_| self.0.optimize(plan.rewrite_up(sorted).data()?, options))
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// The operator with its inputs sorted as it requires.
fn sorted(node: Plan) -> DfResult<Transformed<Plan>> {
    let inputs = node.children().into_iter().zip(node.required_input_ordering());
    let mut is_new = false;
    let inputs = inputs.map(|(input, needed)| -> DfResult<Plan> {
        let Some(needed) = needed.map(|needed| needed.into_single()) else { return Ok(Arc::clone(input)) };
        if input.equivalence_properties().ordering_satisfy_requirement(needed.clone())? {
            return Ok(Arc::clone(input));
        }
        is_new = true;
        let order = needed.into_iter().map(PhysicalSortExpr::from);
        let Some(order) = LexOrdering::new(order) else { return Ok(Arc::clone(input)) };
        let is_spread = input.output_partitioning().partition_count() > 1;
        Ok(Arc::new(SortExec::new(order, Arc::clone(input)).with_preserve_partitioning(is_spread)))
    });
    let inputs = inputs.collect::<DfResult<Vec<_>>>()?;
    if !is_new {
        return Ok(Transformed::no(node));
    }
    let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    node.replace_children(inputs, recompute).map(Transformed::yes)
}
