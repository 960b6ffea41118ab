//! Parts of a time that DataFusion truncates or lacks: `extract(second FROM ts)` with its fraction, and centuries.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, IntervalMonthDayNanoType, IntervalUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, exec_err};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::ScalarFunction;
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
}

/// Rewrites such parts. Runs before type coercion, as they change the type.
pub fn time_parts(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = &expr else { return Ok(Transformed::no(expr)) };
    let ("date_part", [Expr::Literal(part, _), time]) = (func.name(), &args[..]) else {
        return Ok(Transformed::no(expr));
    };
    let part = part.try_as_str().flatten().unwrap_or_default().to_lowercase();
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
    let part = Part { made, signature: Signature::any(1, Volatility::Immutable) };
    Ok(Transformed::yes(ScalarUDF::new_from_impl(part).call(vec![known])))
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
                let digits: Decimal128Array = known.iter().map(|us| us.map(i128::from)).collect();
                Arc::new(digits.with_precision_and_scale(8, scale)?)
            }
            Made::Years { length, first } => {
                let which = |year: i64| (year - first).div_euclid(length) + first;
                Arc::new(known.unary::<_, Int64Type>(which))
            }
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
            Made::Years { .. } => DataType::Int64,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let [known] = &args.args[..] else { return exec_err!("one part of a time makes another") };
        Ok(ColumnarValue::Array(self.of(&known.to_array(args.number_rows)?)?))
    }
}
