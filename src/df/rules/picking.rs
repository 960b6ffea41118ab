//! Corrects what DataFusion gets wrong when it moves projections.
//!
//! DataFusion may put a projection below a filter, over the filter's input. It forgets that the filter picks columns
//! itself (`FilterExec::try_swapping_with_projection`, 55.2): the projection then reads other columns at its positions,
//! unnoticed if they have the same names. So such filters are split into a filter and a projection first.
//!
//! It may put one below a join, over the side whose order the join keeps. If the projection drops the sort columns, the
//! join forgets the order (`HashJoinExec::execute` asks its right side), while the sort above is gone already. In that
//! case projections stay where they are.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result as DfResult;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::df::below::picked_as;
use crate::df::tree::RewriteTree;

/// Wraps the rule that moves projections.
#[derive(Debug)]
pub struct PickApart(pub Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for PickApart {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        options: &ConfigOptions,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let ordered = ordered_joins(&plan);
        let apart = Arc::clone(&plan).rewrite_up(|node| {
            match node.downcast_ref::<FilterExec>().map(apart).transpose()?.flatten() {
                Some(plan) => Ok(Transformed::yes(plan)),
                None => Ok(Transformed::no(node)),
            }
        });
        let moved = self.0.optimize(apart.data()?, options)?;
        Ok(if ordered_joins(&moved) < ordered { plan } else { moved })
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// Joins (count) that keep the order of a side.
fn ordered_joins(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let join = plan.downcast_ref::<HashJoinExec>();
    let keeps = join.is_some_and(|join| join.right().output_ordering().is_some());
    usize::from(keeps) + plan.children().into_iter().map(ordered_joins).sum::<usize>()
}

/// The filter without its own projection, below a projection; `None` if it has none.
fn apart(filter: &FilterExec) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
    let Some(picked) = filter.projection() else { return Ok(None) };
    let whole = FilterExecBuilder::new(Arc::clone(filter.predicate()), Arc::clone(filter.input()))
        .with_default_selectivity(filter.default_selectivity())
        .with_fetch(filter.fetch())
        .build()?;
    picked_as(Arc::new(whole), picked.iter().copied(), &filter.schema()).map(Some)
}
