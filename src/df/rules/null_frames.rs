//! Frames at rows whose place in the order is NULL: `ORDER BY n DESC RANGE BETWEEN 2 PRECEDING AND CURRENT ROW`.
//!
//! Such a frame is all rows with NULL. DataFusion 55.2 computes windows while rows come in, and where NULLs are last, it
//! takes those that have come for all of them. So such windows wait for the last row of their partition.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::WindowFrameUnits;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_expr::window::WindowExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode};

use super::frames::is_offset;
use crate::df::tree::RewriteTree;

/// The rule.
#[derive(Debug)]
pub struct WholeFrames;

impl PhysicalOptimizerRule for WholeFrames {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> DfResult<Arc<dyn ExecutionPlan>> {
        plan.rewrite_up(|node| {
            let Some(window) = node.downcast_ref::<BoundedWindowAggExec>() else {
                return Ok(Transformed::no(node));
            };
            let input = window.input().schema();
            let is_sorted = window.input_order_mode == InputOrderMode::Sorted;
            if !is_sorted || !window.window_expr().iter().any(|window| ends_at_nulls(window, &input)) {
                return Ok(Transformed::no(node));
            }
            let spread = !window.partition_keys().is_empty();
            let whole =
                WindowAggExec::try_new(window.window_expr().to_vec(), Arc::clone(window.input()), spread)?;
            Ok(Transformed::yes(Arc::new(whole) as _))
        })
        .data()
    }

    fn name(&self) -> &str {
        "WholeFrames"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Its frames begin or end so far from a row, whose place may be NULL and is behind all others then.
fn ends_at_nulls(window: &Arc<dyn WindowExpr>, input: &Schema) -> bool {
    let frame = window.get_window_frame();
    // What cannot be asked may be NULL.
    let nulls_last =
        |by: &PhysicalSortExpr| !by.options.nulls_first && by.expr.nullable(input).unwrap_or(true);
    frame.units == WindowFrameUnits::Range
        && (is_offset(&frame.start_bound) || is_offset(&frame.end_bound))
        && window.order_by().iter().any(nulls_last)
}
