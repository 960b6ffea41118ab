//! SQLite's functions of times: `date`, `time`, `datetime`, `julianday`, `unixepoch` and `strftime`.
//!
//! `date('now')` and `date()` are calls of `now()` before they get here. A text is read as a cast to TIMESTAMPTZ reads it,
//! a number is a Julian day, or seconds after 1970 behind the modifier `unixepoch`. All times are in UTC.

use super::row_function::FunctionBuffers;
use crate::error::{Error, Result, sqlstate};
use crate::value::{
    ColumnType, US_PER_DAY, Value, ValueRef, shifted, show_time, timestamp_in_range, unit_around,
};

/// The Julian day on which 1970 began, at midnight.
const JULIAN_DAY_OF_1970: f64 = 2_440_587.5;

pub(super) fn date<'a>(args: &[ValueRef<'a>], _: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    let us = modified("date", args)?;
    Ok(us.map_or(ValueRef::Null, |us| ValueRef::Date(us.div_euclid(US_PER_DAY) as i32)))
}

pub(super) fn datetime<'a>(args: &[ValueRef<'a>], _: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    let us = modified("datetime", args)?;
    Ok(us.map_or(ValueRef::Null, |us| ValueRef::Timestamp(us.div_euclid(1_000_000) * 1_000_000)))
}

pub(super) fn time<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    let Some(us) = modified("time", args)? else { return Ok(ValueRef::Null) };
    show(us, "%H:%M:%S", &mut buffers.text)?;
    Ok(ValueRef::Text(&buffers.text))
}

pub(super) fn unixepoch<'a>(args: &[ValueRef<'a>], _: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    Ok(modified("unixepoch", args)?.map_or(ValueRef::Null, |us| ValueRef::Int(us.div_euclid(1_000_000))))
}

pub(super) fn julianday<'a>(args: &[ValueRef<'a>], _: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    Ok(modified("julianday", args)?.map_or(ValueRef::Null, |us| ValueRef::Double(julian_day(us))))
}

pub(super) fn strftime<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    let format = match args {
        [ValueRef::Null, ..] => return Ok(ValueRef::Null),
        [ValueRef::Text(format), _, ..] => format,
        _ => return Err(usage("strftime")),
    };
    let Some(us) = modified("strftime", &args[1..])? else { return Ok(ValueRef::Null) };
    let format = of_sqlite(format, us);
    show(us, &format, &mut buffers.text)?;
    Ok(ValueRef::Text(&buffers.text))
}

/// Appends a time by a format of strftime. Errors: the format has an unknown part.
pub(super) fn show(us: i64, format: &str, out: &mut String) -> Result<()> {
    show_time(us, format, out).ok_or_else(|| {
        Error::invalid(format!("'{format}' is no format of strftime"))
            .hint("%Y-%m-%d %H:%M:%S shows a time; a percent sign is written %%")
            .state(sqlstate::INVALID_DATETIME)
    })
}

/// The format with what SQLite means by `%f`, seconds with their thousandths, and `%J`, the Julian day.
fn of_sqlite(format: &str, us: i64) -> String {
    let mut own = String::with_capacity(format.len() + 8);
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            own.push(c);
            continue;
        }
        match chars.next() {
            Some('f') => own.push_str("%S%.3f"),
            Some('J') => own.push_str(&julian_day(us).to_string()),
            next => own.extend(std::iter::once('%').chain(next)),
        }
    }
    own
}

fn julian_day(us: i64) -> f64 {
    us as f64 / US_PER_DAY as f64 + JULIAN_DAY_OF_1970
}

/// The time that a value and its modifiers tell, in microseconds since 1970; `None` if one of them is NULL.
fn modified(name: &str, args: &[ValueRef<'_>]) -> Result<Option<i64>> {
    if args.iter().any(|arg| arg.is_null()) {
        return Ok(None);
    }
    let [time, modifiers @ ..] = args else { return Err(usage(name)) };
    let (is_epoch, modifiers) = match modifiers {
        [ValueRef::Text("unixepoch"), rest @ ..] => (true, rest),
        all => (false, all),
    };
    let mut us = match time {
        ValueRef::Date(days) => i64::from(*days) * US_PER_DAY,
        ValueRef::Timestamp(us) | ValueRef::TimestampTz(us) => *us,
        ValueRef::Text(text) => {
            let time = Value::Text((*text).to_owned()).cast(ColumnType::TimestampTz).map_err(|e| {
                let e = Error::from(e);
                if text.eq_ignore_ascii_case("now") { e.hint("write now() for it") } else { e }
            })?;
            let Value::TimestampTz(us) = time else { return Err(usage(name)) };
            us
        }
        ValueRef::Int(_) | ValueRef::Double(_) | ValueRef::Decimal(..) => {
            let Value::Double(number) = time.to_value().cast(ColumnType::Double)? else {
                return Err(usage(name));
            };
            let seconds = if is_epoch { number } else { (number - JULIAN_DAY_OF_1970) * 86_400.0 };
            (seconds * 1e6).round() as i64
        }
        _ => return Err(usage(name)),
    };
    for modifier in modifiers {
        let ValueRef::Text(modifier) = modifier else { return Err(usage(name)) };
        us = shifted_by(us, modifier).ok_or_else(|| unknown(modifier))?.ok_or_else(out_of_range)?;
    }
    if timestamp_in_range(us) { Ok(Some(us)) } else { Err(out_of_range()) }
}

/// The time as a modifier changes it; the inner `None`: it is out of range then.
fn shifted_by(us: i64, modifier: &str) -> Option<Option<i64>> {
    let modifier = modifier.trim().to_ascii_lowercase();
    if let Some(unit) = modifier.strip_prefix("start of ") {
        let unit = Some(unit.trim()).filter(|unit| ["day", "month", "year"].contains(unit))?;
        return Some(unit_around(unit, us).map(|(start, _)| start));
    }
    let (number, unit) = modifier.split_once(char::is_whitespace)?;
    let number: f64 = number.strip_prefix('+').unwrap_or(number).parse().ok()?;
    let unit = unit.trim();
    let length = match unit.strip_suffix('s').unwrap_or(unit) {
        "second" => 1_000_000,
        "minute" => 60_000_000,
        "hour" => 3_600_000_000,
        "day" => US_PER_DAY,
        unit @ ("month" | "year") => {
            let months = number * if unit == "year" { 12.0 } else { 1.0 };
            if months.fract() != 0.0 {
                return None;
            }
            // As in SQLite, a day that the month does not have is one of the next month.
            let shift = |(start, _)| Some(shifted(start, months as i64, 0, 0)? + (us - start));
            return Some(unit_around("month", us).and_then(shift));
        }
        _ => return None,
    };
    let by = number * length as f64;
    (number.is_finite()).then(|| us.checked_add(by.round() as i64).filter(|us| timestamp_in_range(*us)))
}

fn unknown(modifier: &str) -> Error {
    let error =
        Error::invalid(format!("there is no modifier '{modifier}'")).state(sqlstate::INVALID_DATETIME);
    match modifier.trim().to_ascii_lowercase().as_str() {
        "localtime" | "utc" => error
            .why("all times are in UTC")
            .hint("leave it out; now() AT TIME ZONE 'Asia/Tokyo' is the time there"),
        _ => error.hint(
            "there are '+N seconds', minutes, hours, days, months and years, 'start of day', 'start of month', \
             'start of year', and in front of them 'unixepoch' behind a number",
        ),
    }
}

fn out_of_range() -> Error {
    Error::invalid("the time is out of range")
        .why("years run from 0001 to 9999")
        .state(sqlstate::DATETIME_OVERFLOW)
}

fn usage(name: &str) -> Error {
    match name {
        "strftime" => Error::invalid("strftime takes a format, a time, and modifiers")
            .hint("strftime('%Y-%m', at), strftime('%H:%M', 'now', '+1 hour')"),
        _ => Error::invalid(format!("{name} takes a time and modifiers"))
            .hint(format!("{name}(at), {name}('now', '-7 days', 'start of day')")),
    }
}
