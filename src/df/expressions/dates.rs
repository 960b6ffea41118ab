//! Dates and timestamps combined with each other, with intervals, days, and times of day.
//!
//! DataFusion 55.2 gives a DATE for `DATE '2020-01-01' + INTERVAL '1 hour'` and drops the hour, and compares a date
//! with a timestamp in nanoseconds, which end in the year 2262. [`at_midnight`] turns such dates into timestamps first,
//! or a timestamp that a date is compared with into its day, where that says the same: the date may be part of a key.
//! [`whole_days`] sees to it that a date has room for any number of days.

use std::sync::Arc;

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, Operator, cast};
use sqlparser::ast::BinaryOperator;

use super::doubles::peers;
use super::intervals::interval_of_days;
use crate::df::rewrite::settled_type;

/// Rewrites the operands of an expression. Runs before type coercion.
pub fn at_midnight(mut expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let changed = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Plus | Operator::Minus, right }) => {
            let timed = with_time(left, right, schema) || with_time(right, left, schema);
            let both: Vec<&mut Expr> = vec![left, right];
            if timed { timestamps(both, None, schema) } else { beside_timestamps(both, schema) }
        }
        expr => {
            let mut changed = on_their_days(expr, schema);
            for peers in peers(expr) {
                changed |= beside_timestamps(peers, schema);
            }
            changed
        }
    };
    Ok(Transformed::new_transformed(expr, changed))
}

/// Gives a NULL beside a time or an interval the type of a usual operand: DataFusion takes the time's, of which there
/// are no sums and products.
pub(super) fn typed_nulls(expr: &mut RawBinaryExpr, schema: &DFSchema) {
    let RawBinaryExpr { left, op, right } = expr;
    let is_null = |expr: &Expr| {
        // A parameter without a type yet is a NULL to DataFusion.
        let has_parameter = expr.exists(|expr| Ok(matches!(expr, Expr::Placeholder(_)))).unwrap_or(true);
        !has_parameter && settled_type(expr, schema) == Some(DataType::Null)
    };
    let (of, null) = if is_null(right) { (left, right) } else { (right, left) };
    if !is_null(null) {
        return;
    }
    let ty = match (op, settled_type(of, schema)) {
        (BinaryOperator::Plus, Some(DataType::Date32 | DataType::Timestamp(..))) => {
            DataType::Interval(IntervalUnit::MonthDayNano)
        }
        (BinaryOperator::Multiply | BinaryOperator::Divide, Some(DataType::Interval(_))) => DataType::Float64,
        _ => return,
    };
    let typed = match &*null {
        Expr::Literal(..) => ScalarValue::try_from(&ty).ok().map(|null| Expr::Literal(null, None)),
        _ => None,
    };
    *null = typed.unwrap_or_else(|| cast(std::mem::take(null), ty));
}

/// Makes a length of a TIME that is added to a date or a timestamp, or taken from it, and a timestamp of the date:
/// DataFusion makes one in nanoseconds, which end in the year 2262, and refuses timestamps.
pub(super) fn times_of_day(expr: &mut RawBinaryExpr, schema: &DFSchema) {
    let RawBinaryExpr { left, op, right } = expr;
    let is_time = |ty: &Option<DataType>| matches!(ty, Some(DataType::Time32(_) | DataType::Time64(_)));
    let types = [&*left, &*right].map(|side| settled_type(side, schema));
    let (moment, time, ty) = match (op, types) {
        (BinaryOperator::Plus | BinaryOperator::Minus, [ty, other]) if is_time(&other) => (left, right, ty),
        (BinaryOperator::Plus, [other, ty]) if is_time(&other) => (right, left, ty),
        _ => return,
    };
    match ty {
        Some(DataType::Timestamp(..)) => {}
        Some(DataType::Date32) => {
            let midnight = DataType::Timestamp(TimeUnit::Microsecond, None);
            *moment = cast(std::mem::take(moment), midnight);
        }
        _ => return,
    }
    let steps = [
        DataType::Time64(TimeUnit::Nanosecond),
        DataType::Int64,
        DataType::Duration(TimeUnit::Nanosecond),
        DataType::Duration(TimeUnit::Microsecond),
    ];
    *time = steps.into_iter().fold(std::mem::take(time), cast);
}

/// Makes an interval of the days that are added to a date, or taken from it: DataFusion counts them in nanoseconds,
/// which are 292 years at most. Runs before type coercion.
pub fn whole_days(mut expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let of = |expr: &Expr| settled_type(expr, schema).unwrap_or(DataType::Null);
    let is_date = |expr: &Expr| of(expr) == DataType::Date32;
    let days = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Plus | Operator::Minus, right })
            if is_date(left) && of(right).is_integer() =>
        {
            right
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Plus, right })
            if of(left).is_integer() && is_date(right) =>
        {
            left
        }
        _ => return Ok(Transformed::no(expr)),
    };
    **days = interval_of_days(std::mem::take(&mut **days));
    Ok(Transformed::yes(expr))
}

/// The operands are a date and an interval that may have a time of day.
fn with_time(date: &Expr, interval: &Expr, schema: &DFSchema) -> bool {
    let may_be = match interval {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _) => interval.nanoseconds != 0,
        Expr::Literal(..) => false,
        expr => matches!(settled_type(expr, schema), Some(DataType::Interval(_) | DataType::Duration(_))),
    };
    may_be && settled_type(date, schema) == Some(DataType::Date32)
}

/// Compares a date with the day of a row's time, if it asks whether its midnight is not later than that, or whether it
/// is; true if it does. Of a time that is known, the planner makes key ranges anyway.
fn on_their_days(expr: &mut Expr, schema: &DFSchema) -> bool {
    let (date, time) = match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::LtEq | Operator::Gt, right }) => (left, right),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::GtEq | Operator::Lt, right }) => (right, left),
        _ => return false,
    };
    let is_of_row = |expr: &Expr| expr.exists(|expr| Ok(is_column(expr))).unwrap_or(false);
    let is_exact = |ty: DataType| matches!(ty, DataType::Timestamp(TimeUnit::Microsecond, _));
    let are_compared = is_of_row(date)
        && is_of_row(time)
        && settled_type(date, schema) == Some(DataType::Date32)
        && settled_type(time, schema).is_some_and(is_exact);
    if are_compared {
        **time = cast(std::mem::take(&mut **time), DataType::Date32);
    }
    are_compared
}

fn is_column(expr: &Expr) -> bool {
    matches!(expr, Expr::Column(_) | Expr::OuterReferenceColumn(..))
}

/// Turns dates into timestamps if there is a timestamp beside them; true if there are both.
fn beside_timestamps(exprs: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    let types: Vec<_> = exprs.iter().map(|expr| settled_type(expr, schema)).collect();
    let zone = types.iter().flatten().find_map(|ty| match ty {
        DataType::Timestamp(_, zone) => Some(zone.clone()),
        _ => None,
    });
    match zone {
        Some(zone) if types.contains(&Some(DataType::Date32)) => timestamps(exprs, zone, schema),
        _ => false,
    }
}

/// Turns all dates, and timestamps finer than a column can hold, into timestamps in microseconds.
fn timestamps(exprs: Vec<&mut Expr>, zone: Option<Arc<str>>, schema: &DFSchema) -> bool {
    for expr in exprs {
        let ty = match settled_type(expr, schema) {
            Some(DataType::Date32) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
            Some(DataType::Timestamp(TimeUnit::Nanosecond, zone)) => {
                DataType::Timestamp(TimeUnit::Microsecond, zone)
            }
            _ => continue,
        };
        let inner = std::mem::take(expr);
        *expr = Expr::Cast(Cast::new(Box::new(inner), ty));
    }
    true
}
