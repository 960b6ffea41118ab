//! Window frames over binary sort keys.
//!
//! The default frame reaches from the first row to the last peer of the current row, which takes no arithmetic on
//! values. DataFusion 55.2 refuses RANGE frames for types without arithmetic: for bytes, and so for binary rowkeys.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{Expr, ExprSchemable, WindowFrame, WindowFrameBound, WindowFrameUnits};

/// Turns RANGE of such a window into GROUPS, which means the same if no bound is an offset.
pub fn frames_of_bytes(mut expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::WindowFunction(window) = &mut expr else { return Ok(Transformed::no(expr)) };
    let params = &mut window.params;
    let WindowFrame { units: WindowFrameUnits::Range, start_bound, end_bound, .. } = &params.window_frame
    else {
        return Ok(Transformed::no(expr));
    };
    let Some(first) = params.order_by.first() else { return Ok(Transformed::no(expr)) };
    let is_bytes = matches!(first.expr.get_type(schema)?, DataType::Binary | DataType::FixedSizeBinary(_));
    if !is_bytes || is_offset(start_bound) || is_offset(end_bound) {
        return Ok(Transformed::no(expr));
    }
    let (start, end) = (start_bound.clone(), end_bound.clone());
    params.window_frame = WindowFrame::new_bounds(WindowFrameUnits::Groups, start, end);
    Ok(Transformed::yes(expr))
}

/// The bound is at some distance from the current row.
pub(in crate::df) fn is_offset(bound: &WindowFrameBound) -> bool {
    match bound {
        WindowFrameBound::CurrentRow => false,
        WindowFrameBound::Preceding(by) | WindowFrameBound::Following(by) => !by.is_null(),
    }
}
