//! Window frames of rows with a NULL sort key: `ORDER BY n DESC RANGE BETWEEN 2 PRECEDING AND CURRENT ROW`.
//!
//! Such a frame contains all rows with NULL. DataFusion 55.2 computes windows while rows arrive, and with NULLs last it
//! takes those that have arrived for all of them. So such windows wait for the end of their partition.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::WindowFrameUnits;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_expr::window::WindowExpr;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode};

use super::frames::is_offset;
use crate::df::tree::RewriteTree;

/// Replaces such windows by ones that read whole partitions.
pub fn whole_frames(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
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

/// The frame has an offset, and a sort key may be NULL and last.
fn ends_at_nulls(window: &Arc<dyn WindowExpr>, input: &Schema) -> bool {
    let frame = window.get_window_frame();
    // If nullability is unknown, assume NULLs.
    let nulls_last =
        |by: &PhysicalSortExpr| !by.options.nulls_first && by.expr.nullable(input).unwrap_or(true);
    frame.units == WindowFrameUnits::Range
        && (is_offset(&frame.start_bound) || is_offset(&frame.end_bound))
        && window.order_by().iter().any(nulls_last)
}
