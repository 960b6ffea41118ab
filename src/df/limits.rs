//! Sorts stay above limits: `SELECT * FROM (SELECT ... LIMIT 3) ORDER BY x` sorts three rows.
//!
//! DataFusion 55.2 takes the rows of a LIMIT without an order to be any rows. It pushes the sort below the limit, which
//! gives out others then, fewer where it has an OFFSET, and none ever where it stopped what has no end. While it moves
//! sorts, a [`LimitedExec`] stands above each limit, which nothing passes.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
    ReplaceChildrenOptions,
};

use super::errors::to_df;
use crate::error::Error;

/// A rule that moves sorts, and none of them below a limit.
#[derive(Debug)]
pub struct AboveLimits(pub Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for AboveLimits {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        options: &ConfigOptions,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let is_limit = |node: &Arc<dyn ExecutionPlan>| (&**node as &dyn Any).is::<GlobalLimitExec>();
        let fixed = plan.transform_up(|node| {
            Ok(match is_limit(&node) {
                true => Transformed::yes(Arc::new(LimitedExec { input: node })),
                false => Transformed::no(node),
            })
        })?;
        let moved = self.0.optimize(fixed.data, options)?;
        moved
            .transform_up(|node| {
                let any: &dyn Any = &*node;
                let input = any.downcast_ref::<LimitedExec>().map(|limited| Arc::clone(&limited.input));
                Ok(input.map_or_else(|| Transformed::no(node), Transformed::yes))
            })
            .data()
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// The rows that a limit gives out, whatever is done with them.
#[derive(Debug)]
struct LimitedExec {
    input: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for LimitedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LimitedExec")
    }
}

impl ExecutionPlan for LimitedExec {
    fn name(&self) -> &str {
        "LimitedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    /// What it is asked to keep is pushed further down.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let [input] = <[_; 1]>::try_from(children)
            .map_err(|_| to_df(Error::internal("what is limited is one input")))?;
        Ok(Arc::new(LimitedExec { input }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        Err(to_df(Error::internal("it stands in plans only that are being made")))
    }
}
