//! Comparison and multiplication of intervals.
//!
//! DataFusion 55.2 compares the months of two intervals, then the days, then the rest: 24 hours are less than a day,
//! and so are the 60 days between two timestamps, which are all in the rest. It does not multiply intervals.
//! [`interval_lengths`] and [`IntervalProducts`] follow PostgreSQL: a month is 30 days, a day 24 hours.
//!
//! The difference of two timestamps is a length in Arrow. Where it meets an interval, it becomes one of days and a rest
//! ([`differences_in_days`]), so that both have the same parts.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, IntervalMonthDayNanoArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, DurationMicrosecondType, Float64Type, Int64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, exec_err};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, lit,
};
use sqlparser::ast::BinaryOperator;

use super::dates::{times_of_day, typed_nulls};
use super::doubles::peers;
use crate::df::errors::to_df;
use crate::df::rewrite::settled_type;
use crate::error::{Error, Result, sqlstate};

const DAY_NANOS: i128 = 24 * 60 * 60 * 1_000_000_000;
const MONTH_DAYS: i128 = 30;

/// Plans products and quotients, and sums with NULL and TIME, which DataFusion refuses before any analyzer rule runs.
#[derive(Debug)]
pub struct IntervalProducts;

impl ExprPlanner for IntervalProducts {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> DfResult<PlannerResult<RawBinaryExpr>> {
        typed_nulls(&mut expr, schema);
        times_of_day(&mut expr, schema);
        differences_as_intervals(&mut expr, schema);
        let ty = |expr: &Expr| settled_type(expr, schema).unwrap_or(DataType::Null);
        let (left, right) = (ty(&expr.left), ty(&expr.right));
        let divided = expr.op == BinaryOperator::Divide;
        let is_interval = |ty: &DataType| matches!(ty, DataType::Interval(_));
        let RawBinaryExpr { left: first, right: second, .. } = &expr;
        let (interval, number) = match expr.op {
            BinaryOperator::Multiply | BinaryOperator::Divide if is_interval(&left) && right.is_numeric() => {
                (first, second)
            }
            BinaryOperator::Multiply if left.is_numeric() && is_interval(&right) => (second, first),
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let args = [interval.clone(), number.clone(), lit(divided)];
        let output = DataType::Interval(IntervalUnit::MonthDayNano);
        Ok(PlannerResult::Planned(call("interval_times", output, args)))
    }
}

/// Rewrites comparisons to compare lengths. Runs before type coercion.
pub fn interval_lengths(mut expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let operands = match &mut expr {
        expr @ (Expr::BinaryExpr(_) | Expr::Between(_) | Expr::InList(_)) => {
            peers(expr).into_iter().flatten().collect::<Vec<_>>()
        }
        _ => return Ok(Transformed::no(expr)),
    };
    let types: Vec<DataType> = operands.iter().filter_map(|expr| settled_type(expr, schema)).collect();
    let is_interval = |ty: &DataType| matches!(ty, DataType::Interval(_));
    let is_length = |ty: &DataType| is_interval(ty) || matches!(ty, DataType::Duration(_));
    if types.len() < operands.len() || !types.iter().any(is_interval) || !types.iter().all(is_length) {
        return Ok(Transformed::no(expr));
    }
    for operand in operands {
        *operand = call("interval_length", DataType::Decimal128(38, 0), [std::mem::take(operand)]);
    }
    Ok(Transformed::yes(expr))
}

/// Makes intervals of differences that are multiplied or divided, or moved by: a date, or another interval.
fn differences_as_intervals(expr: &mut RawBinaryExpr, schema: &DFSchema) {
    let ty = |expr: &Expr| settled_type(expr, schema).unwrap_or(DataType::Null);
    let (left, right) = (ty(&expr.left), ty(&expr.right));
    let is_difference = |ty: &DataType| matches!(ty, DataType::Duration(_));
    let meets = |other: &DataType| match expr.op {
        BinaryOperator::Multiply | BinaryOperator::Divide => other.is_numeric(),
        BinaryOperator::Plus | BinaryOperator::Minus => {
            matches!(other, DataType::Date32 | DataType::Interval(_))
        }
        _ => false,
    };
    let difference = match (is_difference(&left), is_difference(&right)) {
        (true, false) if meets(&right) => &mut expr.left,
        (false, true) if meets(&left) => &mut expr.right,
        _ => return,
    };
    *difference = in_days(std::mem::take(difference));
}

/// Replaces casts of differences to intervals, which would have all in the rest. Runs after type coercion.
pub fn differences_in_days(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    match expr {
        Expr::Cast(Cast { expr, field })
            if matches!(field.data_type(), DataType::Interval(IntervalUnit::MonthDayNano))
                && matches!(expr.get_type(schema)?, DataType::Duration(_)) =>
        {
            Ok(Transformed::yes(in_days(*expr)))
        }
        expr => Ok(Transformed::no(expr)),
    }
}

fn in_days(difference: Expr) -> Expr {
    call(IN_DAYS, DataType::Interval(IntervalUnit::MonthDayNano), [difference])
}

/// The interval of so many days.
pub fn interval_of_days(days: Expr) -> Expr {
    call(DAYS, DataType::Interval(IntervalUnit::MonthDayNano), [days])
}

const DAYS: &str = "interval_of_days";
const IN_DAYS: &str = "difference_in_days";

fn call<const N: usize>(name: &'static str, output: DataType, args: [Expr; N]) -> Expr {
    let signature = Signature::any(N, Volatility::Immutable);
    ScalarUDF::new_from_impl(Computed { name, output, signature }).call(args.to_vec())
}

/// `interval_length(interval)` in nanoseconds, `interval_of_days(number)`, `difference_in_days(length)`, or
/// `interval_times(interval, number, whether it is divided)`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Computed {
    name: &'static str,
    output: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for Computed {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        Ok(self.output.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let computed: ArrayRef = match &arrays[..] {
            [days] if self.name == DAYS => {
                let days = cast(days, &DataType::Int64)?;
                let days = days.as_primitive::<Int64Type>().iter();
                let intervals: Result<IntervalMonthDayNanoArray> =
                    days.map(|days| days.map(of_days).transpose()).collect();
                Arc::new(intervals.map_err(to_df)?)
            }
            [difference] if self.name == IN_DAYS => {
                let micros = cast(difference, &DataType::Duration(TimeUnit::Microsecond))?;
                let micros = micros.as_primitive::<DurationMicrosecondType>().iter();
                Arc::new(micros.map(|micros| micros.map(parted)).collect::<IntervalMonthDayNanoArray>())
            }
            [interval] => Arc::new(lengths(interval)?.with_precision_and_scale(38, 0)?),
            [interval, number, divided] => {
                let interval = cast(interval, &DataType::Interval(IntervalUnit::MonthDayNano))?;
                let number = cast(number, &DataType::Float64)?;
                let parts = interval.as_primitive::<IntervalMonthDayNanoType>().iter();
                let rows = parts.zip(number.as_primitive::<Float64Type>()).zip(divided.as_boolean());
                let products = rows.map(|row| match row {
                    ((Some(interval), Some(by)), Some(divided)) => times(interval, by, divided).map(Some),
                    _ => Ok(None),
                });
                let products: Result<IntervalMonthDayNanoArray> = products.collect();
                Arc::new(products.map_err(to_df)?)
            }
            _ => return exec_err!("{} takes an interval", self.name),
        };
        Ok(ColumnarValue::Array(computed))
    }
}

fn lengths(array: &ArrayRef) -> DfResult<Decimal128Array> {
    if let DataType::Duration(_) = array.data_type() {
        let array = cast(array, &DataType::Duration(TimeUnit::Microsecond))?;
        let micros = array.as_primitive::<DurationMicrosecondType>().iter();
        return Ok(micros.map(|micros| micros.map(|micros| i128::from(micros) * 1000)).collect());
    }
    let array = cast(array, &DataType::Interval(IntervalUnit::MonthDayNano))?;
    let length = |part: IntervalMonthDayNano| {
        let days = i128::from(part.months) * MONTH_DAYS + i128::from(part.days);
        days * DAY_NANOS + i128::from(part.nanoseconds)
    };
    Ok(array.as_primitive::<IntervalMonthDayNanoType>().iter().map(|part| part.map(length)).collect())
}

fn of_days(days: i64) -> Result<IntervalMonthDayNano> {
    let days = i32::try_from(days).map_err(|_| {
        Error::invalid(format!("a date cannot be moved by {days} days"))
            .why("years run from 0001 to 9999")
            .state(sqlstate::OUT_OF_RANGE)
    })?;
    Ok(IntervalMonthDayNano::new(0, days, 0))
}

/// A length in microseconds as days and a rest.
fn parted(micros: i64) -> IntervalMonthDayNano {
    const DAY: i64 = (DAY_NANOS / 1000) as i64;
    // 64 bits of microseconds are 107 million days.
    IntervalMonthDayNano::new(0, (micros / DAY) as i32, micros % DAY * 1000)
}

/// Seconds of a day.
const DAY_SECONDS: f64 = 86_400.0;

/// A product or quotient: the fraction of a month carries over to the days, that of a day to the rest, in microseconds.
fn times(interval: IntervalMonthDayNano, by: f64, divided: bool) -> Result<IntervalMonthDayNano> {
    if divided && by == 0.0 {
        return Err(Error::division_by_zero());
    }
    let part = |part: f64| if divided { part / by } else { part * by };
    // To a millionth of a day or a second, as PostgreSQL does.
    let rounded = |value: f64| (value * 1e6).round() / 1e6;
    let months = part(f64::from(interval.months));
    let mut days = part(f64::from(interval.days)) + rounded(months.fract() * MONTH_DAYS as f64);
    let mut seconds = rounded(days.fract() * DAY_SECONDS);
    if seconds.abs() >= DAY_SECONDS {
        (days, seconds) = (days.round(), 0.0);
    }
    let micros = part(interval.nanoseconds as f64 / 1e3) + seconds * 1e6;
    let is_within = |part: f64, max: f64| part.abs() < max;
    if !(is_within(months, i32::MAX as f64) && is_within(days, i32::MAX as f64) && is_within(micros, 9.2e15))
    {
        return Err(Error::invalid("the interval is out of range").state(sqlstate::OUT_OF_RANGE));
    }
    let nanoseconds = micros.round() as i64 * 1000;
    Ok(IntervalMonthDayNano::new(months.trunc() as i32, days.trunc() as i32, nanoseconds))
}
