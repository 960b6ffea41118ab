//! Filters that pick columns, taken apart before projections move.
//!
//! DataFusion may put a projection below a filter, over the filter's input. It forgets that the filter picks columns
//! itself (`FilterExec::try_swapping_with_projection`, 55.2): then the projection takes what lies at its places in
//! the input, which is another column, silently so if it has the same name.

use std::any::Any;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result as DfResult;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

/// A rule that moves projections, over filters that pick no columns.
#[derive(Debug)]
pub struct PickApart(pub Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for PickApart {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        options: &ConfigOptions,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let plan = plan.transform_up(|node| {
            let any: &dyn Any = &*node;
            match any.downcast_ref::<FilterExec>().map(apart).transpose()?.flatten() {
                Some(plan) => Ok(Transformed::yes(plan)),
                None => Ok(Transformed::no(node)),
            }
        });
        self.0.optimize(plan.data()?, options)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// A projection over the filter; `None` if it picks no columns.
fn apart(filter: &FilterExec) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
    let Some(picked) = filter.projection() else { return Ok(None) };
    let whole = FilterExecBuilder::new(Arc::clone(filter.predicate()), Arc::clone(filter.input()))
        .with_default_selectivity(filter.default_selectivity())
        .with_fetch(filter.fetch())
        .build()?;
    let fields = filter.input().schema();
    let column = |at: &usize| {
        let name = fields.field(*at).name();
        ProjectionExpr { expr: Arc::new(Column::new(name, *at)), alias: name.clone() }
    };
    let columns: Vec<ProjectionExpr> = picked.iter().map(column).collect();
    Ok(Some(Arc::new(ProjectionExec::try_new(columns, Arc::new(whole))?)))
}
