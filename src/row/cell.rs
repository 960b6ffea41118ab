//! Prints one cell of a result: as text for tables and CSV, as JSON for machine-readable output and files.
//!
//! | value | text | JSON |
//! |---|---|---|
//! | NULL | the caller's choice | `null` |
//! | BOOLEAN | `true` | `true` |
//! | integers, DECIMAL | all digits | a number with all digits |
//! | REAL, DOUBLE | shortest digits that read back the same | a number; `"NaN"`, `"Infinity"`, `"-Infinity"` |
//! | VARCHAR | as it is | a string |
//! | JSON | as it is | nested as written, line breaks as spaces |
//! | VARBINARY | hex | a string of hex |
//! | DATE | `2017-01-01` | `"2017-01-01"` |
//! | TIMESTAMP | `2017-01-01 09:00:00.5` | `"2017-01-01T09:00:00.5"` |
//! | TIMESTAMPTZ | `2017-01-01 09:00:00+00` | `"2017-01-01T09:00:00Z"` |
//! | UUID | with dashes | a string |
//! | INTERVAL, difference of times | `1 year 2 mons 3 days 04:05:06.5` | a string of that |
//! | anything else | as Arrow prints it | a string of that |
//!
//! JSON has no numbers for NaN and infinity, and `null` would be another value: they are strings, which a DOUBLE
//! column reads back.

use std::fmt::Write as _;
use std::io::Write;

use arrow::array::Array;
use arrow::datatypes::{DataType, Field};
use serde::de::IgnoredAny;

use super::arrow::{cell, column_type_of, printed};
use crate::error::Result;
use crate::value::{ColumnType, ValueRef, datetime_of};

/// Appends the text form of a cell to `out`; `false`, and nothing appended, when it is NULL.
///
/// Errors: as [`value_at`](super::value_at).
pub fn write_text_cell(out: &mut String, array: &dyn Array, row: usize) -> Result<bool> {
    match shown(array, row)? {
        Some(ValueRef::Null) => return Ok(false),
        Some(ValueRef::Text(text)) => out.push_str(text),
        // Writing to a string does not fail.
        Some(value) => drop(write!(out, "{value}")),
        None => out.push_str(&printed(array, row)?),
    }
    Ok(true)
}

/// Writes the JSON form of a cell, on one line. `field` tells JSON from other text.
///
/// Errors: as [`value_at`](super::value_at), and those of `out`.
pub fn write_json_cell(out: &mut impl Write, array: &dyn Array, row: usize, field: &Field) -> Result<()> {
    let Some(value) = shown(array, row)? else {
        return string(out, &printed(array, row)?);
    };
    match value {
        ValueRef::Null => out.write_all(b"null")?,
        ValueRef::Boolean(_) | ValueRef::Int(_) | ValueRef::Decimal(..) => write!(out, "{value}")?,
        ValueRef::Double(d) if d.is_nan() => out.write_all(b"\"NaN\"")?,
        ValueRef::Double(f64::INFINITY) => out.write_all(b"\"Infinity\"")?,
        ValueRef::Double(f64::NEG_INFINITY) => out.write_all(b"\"-Infinity\"")?,
        ValueRef::Double(_) => write!(out, "{value}")?,
        ValueRef::Text(text) if column_type_of(field) == Some(ColumnType::Json) => nested(out, text)?,
        ValueRef::Text(text) => string(out, text)?,
        ValueRef::Timestamp(us) | ValueRef::TimestampTz(us) => write!(out, "\"{}\"", iso_8601(us, value))?,
        ValueRef::Bytes(_) | ValueRef::Date(_) | ValueRef::Uuid(_) => write!(out, "\"{value}\"")?,
    }
    Ok(())
}

/// The cell's value. For a REAL, the double with the same shortest digits, so that 0.1 prints as 0.1.
fn shown(array: &dyn Array, row: usize) -> Result<Option<ValueRef<'_>>> {
    let value = cell(array, row)?;
    match (value, array.data_type()) {
        (Some(ValueRef::Double(d)), DataType::Float16 | DataType::Float32) if d.is_finite() => {
            let digits = format!("{:e}", d as f32);
            Ok(Some(ValueRef::Double(digits.parse().unwrap_or(d))))
        }
        _ => Ok(value),
    }
}

fn string(out: &mut impl Write, text: &str) -> Result<()> {
    Ok(serde_json::to_writer(out, text).map_err(std::io::Error::from)?)
}

/// JSON text within JSON. If the text is not valid JSON (an expression may have changed it), it becomes a string.
fn nested(out: &mut impl Write, text: &str) -> Result<()> {
    if serde_json::from_str::<IgnoredAny>(text).is_err() {
        return string(out, text);
    }
    // Within JSON strings a line break is escaped, so these only separate tokens.
    for (at, line) in text.split(['\n', '\r']).enumerate() {
        if at > 0 {
            out.write_all(b" ")?;
        }
        out.write_all(line.as_bytes())?;
    }
    Ok(())
}

fn iso_8601(us: i64, value: ValueRef<'_>) -> String {
    let text = value.to_string();
    if datetime_of(us).is_none() {
        return text;
    }
    let text = text.replacen(' ', "T", 1);
    match text.strip_suffix("+00") {
        Some(wall) => format!("{wall}Z"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::testing::typed_value;
    use crate::row::{ColumnBuilder, field};
    use crate::value::Value;
    use proptest::prelude::*;

    /// Both forms of `value`, text first.
    fn forms(ty: ColumnType, value: &Value) -> (Option<String>, String) {
        let mut builder = ColumnBuilder::new(ty, 1);
        builder.append(value.as_ref()).unwrap();
        let array = builder.finish().unwrap();
        let (mut text, mut json) = (String::new(), Vec::new());
        let there = write_text_cell(&mut text, &array, 0).unwrap();
        write_json_cell(&mut json, &array, 0, &field("c", ty, true)).unwrap();
        (there.then_some(text), String::from_utf8(json).unwrap())
    }

    #[test]
    fn every_type_has_its_forms() {
        let text = |t: &str| Value::Text(t.into());
        let money = ColumnType::Decimal { precision: 38, scale: 2 };
        let cases = [
            (ColumnType::Integer, Value::Null, None, "null"),
            (ColumnType::Boolean, Value::Boolean(true), Some("true"), "true"),
            (ColumnType::BigInt, Value::Int(i64::MAX), Some("9223372036854775807"), "9223372036854775807"),
            (money, Value::Decimal(-5, 2), Some("-0.05"), "-0.05"),
            (ColumnType::Real, Value::Double(0.1f32.into()), Some("0.1"), "0.1"),
            (
                ColumnType::Double,
                Value::Double(0.1f32.into()),
                Some("0.10000000149011612"),
                "0.10000000149011612",
            ),
            (ColumnType::Double, Value::Double(1e300), Some("1e300"), "1e300"),
            (ColumnType::Double, Value::Double(f64::NAN), Some("NaN"), "\"NaN\""),
            (ColumnType::Double, Value::Double(f64::NEG_INFINITY), Some("-inf"), "\"-Infinity\""),
            (ColumnType::Varchar, text("a\"\n"), Some("a\"\n"), "\"a\\\"\\n\""),
            (ColumnType::Json, text("{\"a\":\n1.0}"), Some("{\"a\":\n1.0}"), "{\"a\": 1.0}"),
            (ColumnType::Json, text("{a}"), Some("{a}"), "\"{a}\""),
            (ColumnType::Varbinary, Value::Bytes(vec![0, 255]), Some("00ff"), "\"00ff\""),
            (ColumnType::Date, Value::Date(0), Some("1970-01-01"), "\"1970-01-01\""),
            (
                ColumnType::Timestamp,
                Value::Timestamp(1_500_000),
                Some("1970-01-01 00:00:01.5"),
                "\"1970-01-01T00:00:01.5\"",
            ),
            (
                ColumnType::TimestampTz,
                Value::TimestampTz(0),
                Some("1970-01-01 00:00:00+00"),
                "\"1970-01-01T00:00:00Z\"",
            ),
        ];
        for (ty, value, text, json) in cases {
            assert_eq!(forms(ty, &value), (text.map(str::to_owned), json.to_owned()), "{ty}");
        }
    }

    proptest! {
        #[test]
        fn text_reads_back((ty, value) in typed_value()) {
            let (text, json) = forms(ty, &value);
            prop_assert!(serde_json::from_str::<IgnoredAny>(&json).is_ok(), "{}", json);
            prop_assert!(!json.contains('\n'));
            prop_assert_eq!(text.is_none(), value.is_null());
            match text {
                Some(text) if ty != ColumnType::Varbinary => {
                    prop_assert_eq!(Value::parse(&text, ty).unwrap(), value);
                }
                _ => {}
            }
        }
    }
}
