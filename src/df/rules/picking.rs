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

use datafusion::common::tree_node::TransformedResult;
use datafusion::error::Result as DfResult;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::df::below::picked_as;
use crate::df::rewrite::PlanInner;
use crate::df::tree::{RewriteTree, changed};

/// Around the rule that moves projections.
pub fn pick_apart(
    plan: Arc<dyn ExecutionPlan>,
    move_them: &PlanInner<'_>,
) -> DfResult<Arc<dyn ExecutionPlan>> {
    let ordered = ordered_joins(&plan);
    let apart = Arc::clone(&plan).rewrite_up(|node| {
        let apart = node.downcast_ref::<FilterExec>().map(apart).transpose()?.flatten();
        Ok(changed(apart, node))
    });
    let moved = move_them(apart.data()?)?;
    Ok(if ordered_joins(&moved) < ordered { plan } else { moved })
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
