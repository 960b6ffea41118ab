//! Parts of a time that DataFusion truncates or lacks: `extract(second FROM ts)` with its fraction, centuries, and all
//! parts of a difference of times, which DataFusion counts as totals in 32 bits.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, exec_err};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    lit,
};

/// How a part is computed from one that DataFusion knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Made {
    /// The microseconds of the minute, as a decimal with this scale.
    Fraction(i8),
    /// The decade, century or millennium of the year. Centuries start in year 1, decades in year 0.
    Years { length: i64, first: i64 },
    /// Of microseconds: the remainder modulo `whole`, in units of `unit`.
    Units { whole: i64, unit: i64 },
    /// Of microseconds: the total in seconds.
    Seconds,
}

const DURATION: DataType = DataType::Duration(TimeUnit::Microsecond);
const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Rewrites such parts. Runs before type coercion, as they change the type.
pub fn time_parts(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = &expr else { return Ok(Transformed::no(expr)) };
    let ("date_part", [Expr::Literal(part, _), time]) = (func.name(), &args[..]) else {
        return Ok(Transformed::no(expr));
    };
    let part = part.try_as_str().flatten().unwrap_or_default().to_lowercase();
    if let Ok(DataType::Duration(_)) = time.get_type(schema) {
        return Ok(match of_duration(&part) {
            Some(made) => {
                let micros = Expr::Cast(Cast::new(Box::new(time.clone()), DURATION));
                Transformed::yes(made.call(micros))
            }
            None => Transformed::no(expr),
        });
    }
    let (known, made) = match part.as_str() {
        "second" | "seconds" | "sec" | "s" => ("microsecond", Made::Fraction(6)),
        "millisecond" | "milliseconds" | "msec" | "ms" => ("microsecond", Made::Fraction(3)),
        "decade" | "decades" => ("year", Made::Years { length: 10, first: 0 }),
        "century" | "centuries" => ("year", Made::Years { length: 100, first: 1 }),
        "millennium" | "millennia" => ("year", Made::Years { length: 1000, first: 1 }),
        _ => return Ok(Transformed::no(expr)),
    };
    // For intervals, DataFusion gives whole seconds only.
    let known = match (made, time.get_type(schema)) {
        (Made::Fraction(_), Ok(DataType::Interval(IntervalUnit::MonthDayNano))) => time.clone(),
        _ => func.call(vec![lit(known), time.clone()]),
    };
    Ok(Transformed::yes(made.call(known)))
}

/// The parts of a difference as in PostgreSQL: days, then what is left in hours, minutes and seconds.
fn of_duration(part: &str) -> Option<Made> {
    Some(match part {
        "day" | "days" | "d" => Made::Units { whole: i64::MAX, unit: DAY },
        "hour" | "hours" | "hr" | "h" => Made::Units { whole: DAY, unit: HOUR },
        "minute" | "minutes" | "min" | "m" => Made::Units { whole: HOUR, unit: MINUTE },
        "second" | "seconds" | "sec" | "s" => Made::Fraction(6),
        "millisecond" | "milliseconds" | "msec" | "ms" => Made::Fraction(3),
        "microsecond" | "microseconds" | "usec" | "us" => Made::Units { whole: MINUTE, unit: 1 },
        "epoch" => Made::Seconds,
        _ => return None,
    })
}

impl Made {
    fn call(self, known: Expr) -> Expr {
        let part = Part { made: self, signature: Signature::any(1, Volatility::Immutable) };
        ScalarUDF::new_from_impl(part).call(vec![known])
    }
}

/// The expression is a result of [`time_parts`], whose new type the nodes above have not seen yet.
pub fn is_part(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if call.func.inner().is::<Part>())
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Part {
    made: Made,
    signature: Signature,
}

impl Part {
    fn of(&self, known: &ArrayRef) -> DfResult<ArrayRef> {
        let known: Int64Array = match known.as_primitive_opt::<IntervalMonthDayNanoType>() {
            Some(intervals) => intervals.unary(|interval| interval.nanoseconds % 60_000_000_000 / 1_000),
            None => cast(known, &DataType::Int64)?.as_primitive::<Int64Type>().clone(),
        };
        Ok(match self.made {
            Made::Fraction(scale) => {
                // Of a time DataFusion tells the microseconds of its minute already.
                let of_minute = |us: i64| i128::from(us % MINUTE);
                let digits: Decimal128Array = known.iter().map(|us| us.map(of_minute)).collect();
                Arc::new(digits.with_precision_and_scale(8, scale)?)
            }
            Made::Years { length, first } => {
                let which = |year: i64| (year - first).div_euclid(length) + first;
                Arc::new(known.unary::<_, Int64Type>(which))
            }
            Made::Units { whole, unit } => Arc::new(known.unary::<_, Int64Type>(|us| us % whole / unit)),
            Made::Seconds => Arc::new(known.unary::<_, Float64Type>(|us| us as f64 / SECOND as f64)),
        })
    }
}

impl ScalarUDFImpl for Part {
    fn name(&self) -> &str {
        "time_part"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        Ok(match self.made {
            Made::Fraction(scale) => DataType::Decimal128(8, scale),
            Made::Years { .. } | Made::Units { .. } => DataType::Int64,
            Made::Seconds => DataType::Float64,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let [known] = &args.args[..] else { return exec_err!("one part of a time makes another") };
        Ok(ColumnarValue::Array(self.of(&known.to_array(args.number_rows)?)?))
    }
}
