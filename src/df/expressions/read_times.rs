//! `to_timestamp(text or number)` and its like in microseconds: DataFusion's nanoseconds end in the year 2262.

use arrow::array::timezone::Tz;
use arrow::compute::kernels::cast_utils::string_to_datetime;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ExprSchemable, cast};

use crate::df::functions::{FunctionBuffers, row_function};
use crate::error::{Error, Result, sqlstate};
use crate::row::arrow_type;
use crate::value::{
    CastError, CastFault, ColumnType, Value, ValueRef, read_time, rescale, timestamp_in_range,
};

const SECOND: i64 = 1_000_000;

/// Rewrites such calls. Runs before type coercion.
pub fn read_times(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = &expr else { return Ok(Transformed::no(expr)) };
    // A cast is planned as a range of times.
    if let ("date", [time]) = (func.name(), &args[..])
        && matches!(time.get_type(schema), Ok(DataType::Timestamp(..)))
    {
        return Ok(Transformed::yes(cast(time.clone(), arrow_type(ColumnType::Date))));
    }
    let unit = match func.name() {
        "to_timestamp" | "to_timestamp_micros" => TimeUnit::Microsecond,
        "to_timestamp_millis" => TimeUnit::Millisecond,
        "to_timestamp_seconds" | "to_unixtime" => TimeUnit::Second,
        _ => return Ok(Transformed::no(expr)),
    };
    let [of, formats @ ..] = &args[..] else { return Ok(Transformed::no(expr)) };
    let Ok(ty) = of.get_type(schema) else { return Ok(Transformed::no(expr)) };
    let time = match ty {
        ty if ty.is_string() && !formats.iter().any(names_zone) => {
            row_function("to_timestamp", time_in_text, ColumnType::Timestamp).call(args.clone())
        }
        ty if ty.is_numeric() && func.name() == "to_timestamp" && formats.is_empty() => {
            row_function("to_timestamp", time_of, ColumnType::Timestamp).call(args.clone())
        }
        DataType::Timestamp(..) | DataType::Date32 if func.name() == "to_timestamp" && formats.is_empty() => {
            cast(of.clone(), arrow_type(ColumnType::Timestamp))
        }
        _ => return Ok(Transformed::no(expr)),
    };
    Ok(Transformed::yes(match (func.name(), unit) {
        ("to_unixtime", _) => func.call(vec![time]),
        (_, TimeUnit::Microsecond) => time,
        (_, unit) => cast(time, DataType::Timestamp(unit, None)),
    }))
}

/// The format has the name of a zone, which DataFusion reads.
fn names_zone(format: &Expr) -> bool {
    let Expr::Literal(format, _) = format else { return false };
    format.try_as_str().flatten().is_some_and(|format| format.contains("%Z"))
}

/// The time that a text is, by the first format that fits it; in UTC unless it says otherwise.
fn time_in_text<'a>(args: &[ValueRef<'a>], _: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    if args.iter().any(|arg| arg.is_null()) {
        return Ok(ValueRef::Null);
    }
    let usage = || {
        Error::invalid("to_timestamp takes a text and formats of strftime")
            .hint("to_timestamp('31/12/2024', '%d/%m/%Y')")
    };
    let [ValueRef::Text(text), formats @ ..] = args else { return Err(usage()) };
    let mut refused = None;
    for format in formats {
        let ValueRef::Text(format) = format else { return Err(usage()) };
        match read_time(text, format) {
            Ok(us) => return Ok(ValueRef::Timestamp(us)),
            Err(why) => {
                let error = Error::invalid(format!("'{text}' is not a time of format '{format}'"));
                refused = Some(error.why(why));
            }
        }
    }
    match refused {
        Some(error) => Err(error
            .hint("write the format as strftime does, as in '%d/%m/%Y %H:%M:%S'")
            .state(sqlstate::INVALID_TEXT)),
        None => time_as_written(text).map(ValueRef::Timestamp),
    }
}

/// The time in microseconds, as columns parse it, or with the name of a zone.
fn time_as_written(text: &str) -> Result<i64> {
    if let Ok(Value::TimestampTz(us)) = Value::parse(text, ColumnType::TimestampTz) {
        return Ok(us);
    }
    let zoned = "UTC".parse::<Tz>().and_then(|utc| string_to_datetime(&utc, text));
    if let Some(us) = zoned.ok().map(|time| time.timestamp_micros()).filter(|us| timestamp_in_range(*us)) {
        return Ok(us);
    }
    let fault = CastFault::Malformed(None);
    Err(CastError::new(ValueRef::Text(text), ColumnType::Timestamp, fault).into())
}

/// The time that many seconds after 1970-01-01.
fn time_of<'a>(args: &[ValueRef<'a>], _: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    let micros = match args {
        [ValueRef::Null] => return Ok(ValueRef::Null),
        [ValueRef::Int(seconds)] => seconds.checked_mul(SECOND),
        [ValueRef::Double(seconds)] => {
            // As a whole number of microseconds, a DOUBLE would lose some.
            let fraction = (seconds.fract() * SECOND as f64).round();
            let whole = Some(seconds.trunc()).filter(|whole| whole.abs() < 1e18);
            whole.and_then(|whole| (whole as i64).checked_mul(SECOND)?.checked_add(fraction as i64))
        }
        [ValueRef::Decimal(seconds, scale)] => {
            rescale(*seconds, *scale, 6).and_then(|micros| i64::try_from(micros).ok())
        }
        _ => return Err(Error::invalid("to_timestamp takes a number of seconds")),
    };
    let micros = micros.filter(|micros| timestamp_in_range(*micros)).ok_or_else(|| {
        Error::invalid("there is no such TIMESTAMP")
            .why("years run from 0001 to 9999, and to_timestamp takes seconds since 1970")
            .hint("divide milliseconds by 1000")
            .state(sqlstate::OUT_OF_RANGE)
    })?;
    Ok(ValueRef::Timestamp(micros))
}
