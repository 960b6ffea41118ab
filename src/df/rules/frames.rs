//! Window frames by the type of their sort key.
//!
//! The default frame reaches from the first row to the last peer of the current row, which takes no arithmetic on
//! values. DataFusion 55.2 refuses RANGE frames for types without arithmetic: for bytes, and so for binary rowkeys.
//!
//! It computes the ends of other RANGE frames in the type of the sort key. Where that overflows, or a distance does not
//! fit the type, the frame has no end, and NULLs are in it. For texts and truth values, it fails for some rows.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Sort, WindowFunctionParams};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, WindowFrame, WindowFrameBound, WindowFrameUnits, cast,
};

use crate::df::errors::to_df;
use crate::df::rewrite::{bare, rename_kept, settled_type};
use crate::df::tree::{RewritePlan, RewriteTree};
use crate::error::{Error, sqlstate};

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

/// Widens the integers that RANGE frames with a distance are ordered by, so that the ends of the frames fit their type,
/// and decimals that the distance itself does not fit. Runs before type coercion, on whole nodes: the windows of a node
/// have one order. Errors: what they are ordered by has no distances.
pub fn wide_frames(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Window(window) = &plan else { return Ok(Transformed::no(plan)) };
    let schema = window.input.schema();
    let mut types = Vec::new();
    for (params, order) in window.window_expr.iter().filter_map(with_distance) {
        check_distances(order, schema)?;
        types.extend(wide_type(params, order, schema));
    }
    let digits = |ty: &DataType| match ty {
        DataType::Decimal128(digits, _) => *digits,
        _ => 0,
    };
    let Some(wide) = types.into_iter().max_by_key(digits) else { return Ok(Transformed::no(plan)) };
    let names = NamePreserver::new(&plan);
    let widened = |expr| rename_kept(expr, &names, &mut |expr| expr.rewrite_up(|expr| widened(expr, &wide)));
    plan.rewrite_own_expressions(widened)
}

/// The window of a RANGE frame with a distance, and what it is ordered by.
fn with_distance(expr: &Expr) -> Option<(&WindowFunctionParams, &Sort)> {
    let Expr::WindowFunction(window) = bare(expr) else { return None };
    let WindowFrame { units, start_bound, end_bound, .. } = &window.params.window_frame;
    let is_by_value = *units == WindowFrameUnits::Range;
    let has_distance = is_by_value && (is_offset(start_bound) || is_offset(end_bound));
    Some((&window.params, window.params.order_by.first()?)).filter(|_| has_distance)
}

/// Errors: values of this type have no distance from each other.
fn check_distances(order: &Sort, schema: &DFSchema) -> DfResult<()> {
    let values = match order.expr.get_type(schema)? {
        ty if ty.is_string() => "texts",
        DataType::Boolean => "truth values",
        DataType::Binary | DataType::FixedSizeBinary(_) => "bytes",
        _ => return Ok(()),
    };
    Err(to_df(
        Error::invalid(format!("RANGE cannot take a distance between {values}"))
            .why("only numbers and times are at a distance from each other")
            .hint("write ROWS 1 PRECEDING for a number of rows, or order the window by a number")
            .state(sqlstate::WINDOWING),
    ))
}

/// The type that holds the ends of the window's frames: all sums and differences of a value and a distance. `None`: its
/// own type is as good, or nothing is known.
fn wide_type(params: &WindowFunctionParams, order: &Sort, schema: &DFSchema) -> Option<DataType> {
    // Within a partition, all values are the same.
    if params.partition_by.contains(&order.expr) {
        return None;
    }
    let WindowFrame { start_bound: start, end_bound: end, .. } = &params.window_frame;
    let ty = settled_type(&order.expr, schema)?;
    if let DataType::Decimal128(digits, scale) = ty {
        let whole = whole_digits(start).max(whole_digits(end)).saturating_add_signed(scale);
        return (whole > digits && whole <= DECIMAL128_MAX_PRECISION)
            .then_some(DataType::Decimal128(whole, scale));
    }
    let farthest = distance(start)?.max(distance(end)?);
    match ty {
        DataType::Int64 => Some(WIDEST),
        DataType::UInt64 => None,
        ty if ty.is_integer() && farthest < FARTHEST >> 2 => Some(DataType::Int64),
        ty if ty.is_integer() => Some(WIDEST),
        _ => None,
    }
}

/// Has room for any BIGINT and [`FARTHEST`] beside it: DataFusion compares the digits, however many there are.
const WIDEST: DataType = DataType::Decimal128(20, 0);

/// A distance that reaches from any BIGINT beyond any other.
const FARTHEST: u128 = 1 << 64;

/// The distance of a bound, at most [`FARTHEST`]; zero if it has none; `None` if it is no whole number.
fn distance(bound: &WindowFrameBound) -> Option<u128> {
    match bound {
        // Until type coercion, distances are the texts that were written.
        WindowFrameBound::Preceding(ScalarValue::Utf8(Some(by)))
        | WindowFrameBound::Following(ScalarValue::Utf8(Some(by))) => {
            let is_whole = !by.is_empty() && by.bytes().all(|digit| digit.is_ascii_digit());
            is_whole.then(|| by.parse().map_or(FARTHEST, |by: u128| by.min(FARTHEST)))
        }
        bound => (!is_offset(bound)).then_some(0),
    }
}

/// The digits before the point of a bound's distance.
fn whole_digits(bound: &WindowFrameBound) -> u8 {
    let (WindowFrameBound::Preceding(ScalarValue::Utf8(Some(by)))
    | WindowFrameBound::Following(ScalarValue::Utf8(Some(by)))) = bound
    else {
        return 0;
    };
    let whole = by.trim_start_matches('0').split('.').next().unwrap_or_default();
    u8::try_from(whole.len()).unwrap_or(u8::MAX)
}

/// Orders a window by values of a wider type.
fn widened(mut expr: Expr, wide: &DataType) -> DfResult<Transformed<Expr>> {
    let Expr::WindowFunction(window) = &mut expr else { return Ok(Transformed::no(expr)) };
    let WindowFunctionParams { order_by, window_frame: frame, .. } = &mut window.params;
    let Some(order) = order_by.first_mut() else { return Ok(Transformed::no(expr)) };
    order.expr = cast(std::mem::take(&mut order.expr), wide.clone());
    if frame.units == WindowFrameUnits::Range {
        let (start, end) = (within_reach(&frame.start_bound), within_reach(&frame.end_bound));
        *frame = WindowFrame::new_bounds(WindowFrameUnits::Range, start, end);
    }
    Ok(Transformed::yes(expr))
}

/// The bound with a distance that every wide type holds.
fn within_reach(bound: &WindowFrameBound) -> WindowFrameBound {
    let Some(by) = distance(bound).filter(|_| is_offset(bound)) else { return bound.clone() };
    let by = ScalarValue::Utf8(Some(by.to_string()));
    match bound {
        WindowFrameBound::Preceding(_) => WindowFrameBound::Preceding(by),
        WindowFrameBound::Following(_) => WindowFrameBound::Following(by),
        WindowFrameBound::CurrentRow => WindowFrameBound::CurrentRow,
    }
}

/// The bound is at some distance from the current row.
pub(in crate::df) fn is_offset(bound: &WindowFrameBound) -> bool {
    match bound {
        WindowFrameBound::CurrentRow => false,
        WindowFrameBound::Preceding(by) | WindowFrameBound::Following(by) => !by.is_null(),
    }
}
