//! Times by pattern and by parts: `to_char`, `make_timestamp`.

use super::row_function::FunctionBuffers;
use super::sqlite_times::show;
use crate::error::{Error, Result, sqlstate};
use crate::value::{ColumnType, TimePattern, US_PER_DAY, Value, ValueRef, timestamp_of};

/// `to_timestamp` with a pattern of PostgreSQL's: DataFusion's takes strftime's.
pub const TIME_OF_PATTERN: &str = "time_of_pattern";

/// `to_date` with such a pattern.
pub const DATE_OF_PATTERN: &str = "date_of_pattern";

/// `to_char(time, 'YYYY-MM-DD')`, with the formats of key layouts, and those of other widths; or one of strftime, which has
/// a `%`.
pub(super) fn to_char<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    match args {
        [ValueRef::Null, _] | [_, ValueRef::Null] => Ok(ValueRef::Null),
        [
            time @ (ValueRef::Date(_) | ValueRef::Timestamp(_) | ValueRef::TimestampTz(_)),
            ValueRef::Text(pattern),
        ] if pattern.contains('%') => {
            let us = match time {
                ValueRef::Date(days) => i64::from(*days) * US_PER_DAY,
                ValueRef::Timestamp(us) | ValueRef::TimestampTz(us) => *us,
                _ => return Ok(ValueRef::Null),
            };
            show(us, pattern, &mut buffers.text)?;
            Ok(ValueRef::Text(&buffers.text))
        }
        [
            time @ (ValueRef::Date(_) | ValueRef::Timestamp(_) | ValueRef::TimestampTz(_)),
            ValueRef::Text(pattern),
        ] => {
            let FunctionBuffers { text, format, .. } = buffers;
            let shown = pattern_of("to_char", pattern, format)?.show(*time, text);
            shown.ok_or_else(|| Error::invalid(format!("{time} is out of range")))?;
            Ok(ValueRef::Text(text))
        }
        _ => Err(Error::invalid("to_char takes a date or timestamp and a format")
            .hint("to_char(ts, 'YYYY-MM-DD HH24:MI:SS')")),
    }
}

/// A pattern, parsed anew unless it is the last one.
fn pattern_of<'a>(
    name: &str,
    pattern: &str,
    known: &'a mut Option<(String, TimePattern)>,
) -> Result<&'a TimePattern> {
    let (_, parsed) = match known.take() {
        Some(last) if last.0 == pattern => known.insert(last),
        _ => {
            let parsed = TimePattern::parse(pattern).map_err(|why| {
                Error::invalid(format!("{name} does not know this format"))
                    .why(why)
                    .hint(format!("{name}(x, 'DD Mon YYYY HH24:MI:SS')"))
                    .state(sqlstate::INVALID_DATETIME)
            })?;
            known.insert((pattern.to_owned(), parsed))
        }
    };
    Ok(parsed)
}

/// `to_timestamp('03/02/2017 09:00', 'DD/MM/YYYY HH24:MI')`.
pub(super) fn time_of_pattern<'a>(
    args: &[ValueRef<'a>],
    buffers: &'a mut FunctionBuffers,
) -> Result<ValueRef<'a>> {
    Ok(read_time("to_timestamp", args, buffers)?.map_or(ValueRef::Null, ValueRef::Timestamp))
}

/// `to_date('03/02/2017', 'DD/MM/YYYY')`.
pub(super) fn date_of_pattern<'a>(
    args: &[ValueRef<'a>],
    buffers: &'a mut FunctionBuffers,
) -> Result<ValueRef<'a>> {
    Ok(match read_time("to_date", args, buffers)?.map(|us| i32::try_from(us.div_euclid(US_PER_DAY))) {
        Some(Ok(days)) => ValueRef::Date(days),
        Some(Err(_)) | None => ValueRef::Null,
    })
}

/// Microseconds since 1970; `None` for NULL.
fn read_time(name: &str, args: &[ValueRef<'_>], buffers: &mut FunctionBuffers) -> Result<Option<i64>> {
    match args {
        [ValueRef::Null, _] | [_, ValueRef::Null] => Ok(None),
        [ValueRef::Text(text), ValueRef::Text(pattern)] => {
            let read = pattern_of(name, pattern, &mut buffers.format)?.read(text);
            read.map(Some).map_err(|why| {
                let error = Error::invalid(format!("'{text}' is not a time of format '{pattern}'"))
                    .why(why)
                    .about(*text)
                    .state(sqlstate::INVALID_TEXT);
                match minutes_as_months(pattern) {
                    true => error
                        .hint("mm is the month, in any case: minutes are MI, as in 'YYYY-MM-DD HH24:MI:SS'"),
                    false => error,
                }
            })
        }
        _ => Err(Error::invalid(format!("{name} takes a text and a format"))
            .hint(format!("{name}('31/12/2024', 'DD/MM/YYYY')"))),
    }
}

/// Does the pattern ask for the month behind the hour, as Java's patterns ask for minutes?
fn minutes_as_months(pattern: &str) -> bool {
    let pattern = pattern.to_ascii_uppercase();
    pattern.split_once("HH").is_some_and(|(_, behind)| behind.contains("MM"))
}

/// `make_timestamp(year, month, day, hour, minute, seconds)`.
pub(super) fn make_timestamp<'a>(args: &[ValueRef<'a>], _: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    use ValueRef::Int;
    let usage = || {
        Error::invalid("make_timestamp takes a year, a month, a day, an hour, a minute and seconds")
            .hint("make_timestamp(2024, 12, 31, 23, 59, 59.5)")
    };
    if args.len() == 6 && args.iter().any(|arg| arg.is_null()) {
        return Ok(ValueRef::Null);
    }
    let [Int(year), Int(month), Int(day), Int(hour), Int(minute), seconds] = args else {
        return Err(usage());
    };
    let micros = match seconds.to_value().cast(ColumnType::Decimal { precision: 20, scale: 6 })? {
        Value::Decimal(micros, _) => micros,
        _ => return Err(usage()),
    };
    let time = timestamp_of([*year, *month, *day, *hour, *minute], micros);
    time.map(ValueRef::Timestamp).ok_or_else(|| {
        Error::invalid(format!(
            "there is no time {year:04}-{month:02}-{day:02} {hour:02}:{minute:02} and {seconds} seconds"
        ))
        .state(sqlstate::DATETIME_OVERFLOW)
    })
}
