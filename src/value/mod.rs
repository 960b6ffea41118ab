//! Column types, and values: the content of one column of one row.
//!
//! A [`Value`] owns its text or bytes; a [`ValueRef`] borrows them, so that a scan can look at a
//! packed row without copying it. Both order the same way: NULL first, then by the type's order.

use std::cmp::Ordering;
use std::fmt::{self, Write as _};

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, sqlstate};

mod cast;
mod convert;
mod interval;
mod json;
mod length;
mod name;
mod parse;
mod time;
mod time_pattern;

pub use cast::{CastError, CastFault, canonical_double, decimal_to_double, rescale};
pub use interval::Interval;
pub use json::{
    JsonStep, json_array_length, json_contains, json_dollar_path, json_elements, json_members, json_merged,
    json_part, json_path, json_text, json_type,
};
pub use length::{length_of, length_text};
pub use name::{is_reserved, name_sql, quoted_name};
pub use parse::{from_hex, is_hex};
pub use time::{
    US_PER_DAY, date_in_range, moment_at, months_between, read_time, shifted, show_time, start_of_months,
    timestamp_in_range, timestamp_of, unit_around,
};
pub use time_pattern::{Field as TimeField, TimePattern};

/// Most digits of a DECIMAL (count): what 128 bits hold.
pub const DECIMAL_DIGITS_MAX: u8 = 38;

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ColumnType {
    /// `BOOLEAN`
    Boolean,
    /// `SMALLINT`: 16-bit signed.
    SmallInt,
    /// `INTEGER`: 32-bit signed.
    Integer,
    /// `BIGINT`: 64-bit signed.
    BigInt,
    /// `REAL`: 32-bit IEEE 754.
    Real,
    /// `DOUBLE`, `FLOAT`: 64-bit IEEE 754.
    Double,
    /// `DECIMAL(precision, scale)`: exact, up to 38 digits.
    Decimal {
        /// Digits in all, 1 to 38.
        precision: u8,
        /// Digits after the point, 0 to `precision`.
        scale: u8,
    },
    /// `VARCHAR`, `TEXT`: UTF-8, ordered by bytes.
    Varchar,
    /// `VARBINARY`, `BYTEA`.
    Varbinary,
    /// `DATE`
    Date,
    /// `TIMESTAMP` without time zone, microseconds.
    Timestamp,
    /// `TIMESTAMPTZ`: an instant, microseconds, shown in UTC.
    TimestampTz,
    /// `UUID`: 16 bytes.
    Uuid,
    /// `JSON`: text that parses as JSON, kept as written.
    Json,
}

impl ColumnType {
    /// SQL name, as `SHOW CREATE TABLE` prints it.
    pub fn sql_name(self) -> String {
        match self {
            ColumnType::Boolean => "BOOLEAN".into(),
            ColumnType::SmallInt => "SMALLINT".into(),
            ColumnType::Integer => "INTEGER".into(),
            ColumnType::BigInt => "BIGINT".into(),
            ColumnType::Real => "REAL".into(),
            ColumnType::Double => "DOUBLE".into(),
            ColumnType::Decimal { precision, scale } => format!("DECIMAL({precision},{scale})"),
            ColumnType::Varchar => "VARCHAR".into(),
            ColumnType::Varbinary => "VARBINARY".into(),
            ColumnType::Date => "DATE".into(),
            ColumnType::Timestamp => "TIMESTAMP".into(),
            ColumnType::TimestampTz => "TIMESTAMPTZ".into(),
            ColumnType::Uuid => "UUID".into(),
            ColumnType::Json => "JSON".into(),
        }
    }

    /// Queries compare its values as their key bytes compare. Not floats, which have special rules for zeros and
    /// NaNs, and not JSON, which has no order.
    pub fn compares_as_bytes(self) -> bool {
        !matches!(self, ColumnType::Real | ColumnType::Double | ColumnType::Json)
    }

    /// `SMALLINT`, `INTEGER` or `BIGINT`.
    pub fn is_integer(self) -> bool {
        matches!(self, ColumnType::SmallInt | ColumnType::Integer | ColumnType::BigInt)
    }

    /// An integer or a DECIMAL.
    pub fn is_exact(self) -> bool {
        self.is_integer() || matches!(self, ColumnType::Decimal { .. })
    }

    /// DATE, TIMESTAMP or TIMESTAMPTZ.
    pub fn is_time(self) -> bool {
        matches!(self, ColumnType::Date | ColumnType::Timestamp | ColumnType::TimestampTz)
    }

    /// Held as [`Value::Text`].
    pub fn is_text(self) -> bool {
        matches!(self, ColumnType::Varchar | ColumnType::Json)
    }

    /// The type has this value, as far as it is an integer.
    pub fn holds(self, value: &Value) -> bool {
        match (self.integer_bounds(), value) {
            (Some((least, most)), Value::Int(n)) => (least..=most).contains(n),
            _ => true,
        }
    }

    /// Smallest and largest value of an integer type.
    pub fn integer_bounds(self) -> Option<(i64, i64)> {
        match self {
            ColumnType::SmallInt => Some((i16::MIN.into(), i16::MAX.into())),
            ColumnType::Integer => Some((i32::MIN.into(), i32::MAX.into())),
            ColumnType::BigInt => Some((i64::MIN, i64::MAX)),
            _ => None,
        }
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sql_name())
    }
}

/// A value of a column, owned.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Value {
    /// No value.
    Null,
    /// Of a `BOOLEAN`.
    Boolean(bool),
    /// Of any integer type.
    Int(i64),
    /// Of `REAL` (rounded to 32 bits when stored) and `DOUBLE`.
    #[serde(with = "json_double")]
    Double(f64),
    /// Of a `DECIMAL`: `unscaled * 10^-scale`. One of more than 38 digits, before or after the point, is refused where
    /// it is given.
    Decimal(i128, u8),
    /// Of `VARCHAR` and `JSON`.
    Text(String),
    /// Of `VARBINARY`.
    Bytes(Vec<u8>),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since 1970-01-01 00:00:00 in no time zone.
    Timestamp(i64),
    /// Microseconds since 1970-01-01 00:00:00 UTC.
    TimestampTz(i64),
    /// Of a `UUID`.
    Uuid([u8; 16]),
}

/// A value of a column, borrowed.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    /// No value.
    Null,
    /// See [`Value::Boolean`].
    Boolean(bool),
    /// See [`Value::Int`].
    Int(i64),
    /// See [`Value::Double`].
    Double(f64),
    /// See [`Value::Decimal`].
    Decimal(i128, u8),
    /// See [`Value::Text`].
    Text(&'a str),
    /// See [`Value::Bytes`].
    Bytes(&'a [u8]),
    /// See [`Value::Date`].
    Date(i32),
    /// See [`Value::Timestamp`].
    Timestamp(i64),
    /// See [`Value::TimestampTz`].
    TimestampTz(i64),
    /// See [`Value::Uuid`].
    Uuid([u8; 16]),
}

impl Value {
    /// Borrows the value.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::Null => ValueRef::Null,
            Value::Boolean(b) => ValueRef::Boolean(*b),
            Value::Int(i) => ValueRef::Int(*i),
            Value::Double(d) => ValueRef::Double(*d),
            Value::Decimal(d, s) => ValueRef::Decimal(*d, *s),
            Value::Text(t) => ValueRef::Text(t),
            Value::Bytes(b) => ValueRef::Bytes(b),
            Value::Date(d) => ValueRef::Date(*d),
            Value::Timestamp(t) => ValueRef::Timestamp(*t),
            Value::TimestampTz(t) => ValueRef::TimestampTz(*t),
            Value::Uuid(u) => ValueRef::Uuid(*u),
        }
    }

    /// It is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Errors: a decimal of more digits than any DECIMAL has. What a program gives may be one; all else here relies on
    /// there being none.
    pub fn check(&self) -> Result<()> {
        let Value::Decimal(unscaled, scale) = self else { return Ok(()) };
        let most = DECIMAL_DIGITS_MAX;
        if *scale <= most && unscaled.unsigned_abs() < 10u128.pow(most.into()) {
            return Ok(());
        }
        Err(Error::invalid(format!("{unscaled} with {scale} digits after the point is no DECIMAL"))
            .why(format!("a DECIMAL has {most} digits at the most"))
            .hint("round it, or give a double")
            .state(sqlstate::OUT_OF_RANGE))
    }

    /// A number as SQL writes it: an integer if it fits, an exact decimal if it has a point or more digits, a double
    /// if it has an exponent. `None` if it is not a number, has more than 38 digits as a decimal, or is too large for
    /// a double.
    pub fn number(digits: &str) -> Option<Value> {
        if let Ok(i) = digits.parse::<i64>() {
            return Some(Value::Int(i));
        }
        let scale = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        match digits.replace('.', "").parse::<i128>() {
            Ok(unscaled) if scale <= 38 && unscaled.unsigned_abs() < 10u128.pow(38) => {
                Some(Value::Decimal(unscaled, scale as u8))
            }
            // A double could not represent it exactly.
            _ if !digits.contains(['e', 'E']) => None,
            _ => digits.parse().ok().filter(|double: &f64| double.is_finite()).map(Value::Double),
        }
    }

    /// The number with the opposite sign; `None` if it is not a number. The least integer is one, though
    /// [`Value::number`] has read it without its sign.
    pub fn negated(self) -> Option<Value> {
        match self {
            Value::Int(i) => i.checked_neg().map(Value::Int),
            Value::Double(d) => Some(Value::Double(-d)),
            Value::Decimal(d, 0) if -d == i64::MIN.into() => Some(Value::Int(i64::MIN)),
            Value::Decimal(d, scale) => Some(Value::Decimal(-d, scale)),
            _ => None,
        }
    }
}

impl ValueRef<'_> {
    /// The whole number that represents it, which has the order of its type: an integer, a decimal without its point,
    /// the days of a date, the microseconds of a timestamp.
    #[inline]
    pub fn number(self) -> Option<i128> {
        Some(match self {
            ValueRef::Int(number) | ValueRef::Timestamp(number) | ValueRef::TimestampTz(number) => {
                number.into()
            }
            ValueRef::Decimal(number, _) => number,
            ValueRef::Date(days) => days.into(),
            _ => return None,
        })
    }

    /// Its approximate position on a number line, if its type is like numbers.
    pub fn place(self) -> Option<f64> {
        match self {
            ValueRef::Double(double) => Some(double),
            ValueRef::Decimal(unscaled, scale) => Some(unscaled as f64 / 10f64.powi(scale.into())),
            _ => self.number().map(|number| number as f64),
        }
    }

    /// Copies the value.
    pub fn to_value(self) -> Value {
        match self {
            ValueRef::Null => Value::Null,
            ValueRef::Boolean(b) => Value::Boolean(b),
            ValueRef::Int(i) => Value::Int(i),
            ValueRef::Double(d) => Value::Double(d),
            ValueRef::Decimal(d, s) => Value::Decimal(d, s),
            ValueRef::Text(t) => Value::Text(t.to_owned()),
            ValueRef::Bytes(b) => Value::Bytes(b.to_vec()),
            ValueRef::Date(d) => Value::Date(d),
            ValueRef::Timestamp(t) => Value::Timestamp(t),
            ValueRef::TimestampTz(t) => Value::TimestampTz(t),
            ValueRef::Uuid(u) => Value::Uuid(u),
        }
    }

    /// It is NULL.
    pub fn is_null(self) -> bool {
        matches!(self, ValueRef::Null)
    }

    fn rank(self) -> u8 {
        match self {
            ValueRef::Null => 0,
            ValueRef::Boolean(_) => 1,
            ValueRef::Int(_) => 2,
            ValueRef::Double(_) => 3,
            ValueRef::Decimal(..) => 4,
            ValueRef::Text(_) => 5,
            ValueRef::Bytes(_) => 6,
            ValueRef::Date(_) => 7,
            ValueRef::Timestamp(_) => 8,
            ValueRef::TimestampTz(_) => 9,
            ValueRef::Uuid(_) => 10,
        }
    }
}

/// Total order of doubles as SQL sees them: -0 equals 0, NaN equals NaN and is greatest.
pub fn compare_doubles(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn compare_decimals(a: i128, a_scale: u8, b: i128, b_scale: u8) -> Ordering {
    if a_scale == b_scale {
        return a.cmp(&b);
    }
    // Compare whole parts first, then fractions at the wider scale: neither can overflow.
    let (pa, pb) = (10i128.pow(a_scale.into()), 10i128.pow(b_scale.into()));
    let whole = a.div_euclid(pa).cmp(&b.div_euclid(pb));
    let wide = a_scale.max(b_scale);
    let fraction = |v: i128, p: i128, s: u8| v.rem_euclid(p) * 10i128.pow((wide - s).into());
    whole.then_with(|| fraction(a, pa, a_scale).cmp(&fraction(b, pb, b_scale)))
}

/// Order of bytes. An empty `String` or `Vec` has its bytes at no valid address, and comparing nothing with them takes 80
/// to 200 ns where the system's `memcmp` uses AVX-512: the fault of its masked load is suppressed, slowly.
pub fn compare_bytes(a: &[u8], b: &[u8]) -> Ordering {
    if a.is_empty() || b.is_empty() { a.len().cmp(&b.len()) } else { a.cmp(b) }
}

/// Order of two values of one column: NULL first, then the type's order. Values of different types
/// order by type; a column never holds both.
impl Ord for ValueRef<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (*self, *other) {
            (ValueRef::Boolean(a), ValueRef::Boolean(b)) => a.cmp(&b),
            (ValueRef::Int(a), ValueRef::Int(b)) => a.cmp(&b),
            (ValueRef::Double(a), ValueRef::Double(b)) => compare_doubles(a, b),
            (ValueRef::Decimal(a, sa), ValueRef::Decimal(b, sb)) => compare_decimals(a, sa, b, sb),
            (ValueRef::Text(a), ValueRef::Text(b)) => compare_bytes(a.as_bytes(), b.as_bytes()),
            (ValueRef::Bytes(a), ValueRef::Bytes(b)) => compare_bytes(a, b),
            (ValueRef::Date(a), ValueRef::Date(b)) => a.cmp(&b),
            (ValueRef::Timestamp(a), ValueRef::Timestamp(b)) => a.cmp(&b),
            (ValueRef::TimestampTz(a), ValueRef::TimestampTz(b)) => a.cmp(&b),
            (ValueRef::Uuid(a), ValueRef::Uuid(b)) => a.cmp(&b),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }
}

impl PartialOrd for ValueRef<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ValueRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for ValueRef<'_> {}

impl Ord for Value {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            // A fast path: long lists of integers are sorted.
            (Value::Int(a), Value::Int(b)) => a.cmp(b),
            _ => self.as_ref().cmp(&other.as_ref()),
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

/// Text form: numbers in decimal, times in ISO 8601 with a space, UUID with dashes, bytes in hex.
/// This is the text that `md5(col)`, `lpad(col, n)` and `reverse(col)` see. NULL prints `NULL`.
impl fmt::Display for ValueRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ValueRef::Null => f.write_str("NULL"),
            ValueRef::Boolean(b) => write!(f, "{b}"),
            ValueRef::Int(i) => write!(f, "{i}"),
            ValueRef::Double(d) => write_double(f, d),
            ValueRef::Decimal(d, scale) => write_decimal(f, d, scale),
            ValueRef::Text(t) => f.write_str(t),
            ValueRef::Bytes(b) => b.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
            ValueRef::Date(days) => match date_of(days) {
                Some(date) => write!(f, "{}", IsoDate(date)),
                None => write!(f, "date {days} out of range"),
            },
            ValueRef::Timestamp(us) => write_timestamp(f, us, ""),
            ValueRef::TimestampTz(us) => write_timestamp(f, us, "+00"),
            ValueRef::Uuid(u) => write!(f, "{}", uuid::Uuid::from_bytes(u)),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

/// A value as an SQL literal: text, times and bytes in quotes; `E'two\nlines'`, so that it stays in its line.
pub struct Literal<'a>(pub ValueRef<'a>);

impl fmt::Display for Literal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ValueRef::Text(t) if t.contains(char::is_control) => write_escaped(f, t),
            ValueRef::Text(t) => write!(f, "'{}'", t.replace('\'', "''")),
            ValueRef::Bytes(_) => write!(f, "X'{}'", self.0),
            ValueRef::Date(_) | ValueRef::Timestamp(_) | ValueRef::TimestampTz(_) | ValueRef::Uuid(_) => {
                write!(f, "'{}'", self.0)
            }
            other => write!(f, "{other}"),
        }
    }
}

/// An expression of SQL that gives the value: a [`Literal`], where there is one.
pub fn sql_of(value: &Value) -> String {
    match value {
        // A text is cast.
        Value::Double(d) if !d.is_finite() => format!("'{value}'"),
        Value::Text(text) if text.contains('\0') => {
            let pieces: Vec<String> =
                text.split('\0').map(|piece| Literal(ValueRef::Text(piece)).to_string()).collect();
            format!("({})", pieces.join(" || chr(0) || "))
        }
        value => Literal(value.as_ref()).to_string(),
    }
}

fn write_escaped(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("E'")?;
    for c in text.chars() {
        match c {
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            '\'' | '\\' => write!(f, "\\{c}")?,
            c if c.is_control() => write!(f, "\\u{:04x}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('\'')
}

/// A DOUBLE in JSON, which has no number for NaN and the infinities: those are text.
mod json_double {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(d: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        if d.is_finite() { serializer.serialize_f64(*d) } else { serializer.serialize_str(&d.to_string()) }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        let found = serde_json::Value::deserialize(deserializer)?;
        let double = match &found {
            serde_json::Value::String(text) => text.parse().ok(),
            number => number.as_f64(),
        };
        double.ok_or_else(|| D::Error::custom(format!("{found} is no DOUBLE")))
    }
}

struct IsoDate(NaiveDate);

impl fmt::Display for IsoDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = (self.0.year(), self.0.month(), self.0.day());
        let sign = if year < 0 { "-" } else { "" };
        write!(f, "{sign}{:04}-{month:02}-{day:02}", year.abs())
    }
}

/// Days from the year 1, in which chrono counts, to 1970.
const DAYS_TO_1970: i32 = 719_163;

/// Calendar date of a [`Value::Date`]; `None` outside chrono's years.
pub fn date_of(days: i32) -> Option<NaiveDate> {
    NaiveDate::from_num_days_from_ce_opt(days.checked_add(DAYS_TO_1970)?)
}

/// Calendar time of a [`Value::Timestamp`] or [`Value::TimestampTz`]; `None` outside chrono's years.
pub fn datetime_of(us: i64) -> Option<NaiveDateTime> {
    DateTime::from_timestamp_micros(us).map(|t| t.naive_utc())
}

fn write_timestamp(f: &mut fmt::Formatter<'_>, us: i64, zone: &str) -> fmt::Result {
    match datetime_of(us) {
        None => write!(f, "timestamp {us} out of range"),
        Some(t) => {
            write!(f, "{} {}", IsoDate(t.date()), t.format("%H:%M:%S"))?;
            let micros = us.rem_euclid(1_000_000);
            if micros != 0 {
                let digits = format!("{micros:06}");
                write!(f, ".{}", digits.trim_end_matches('0'))?;
            }
            f.write_str(zone)
        }
    }
}

fn write_double(f: &mut fmt::Formatter<'_>, d: f64) -> fmt::Result {
    if d.is_finite() && d.fract() == 0.0 && d.abs() < 1e15 {
        write!(f, "{d:.1}")
    } else if d.is_finite() && d != 0.0 && !(1e-5..1e15).contains(&d.abs()) {
        write!(f, "{d:e}")
    } else {
        write!(f, "{d}")
    }
}

fn write_decimal(f: &mut fmt::Formatter<'_>, d: i128, scale: u8) -> fmt::Result {
    if scale == 0 {
        return write!(f, "{d}");
    }
    let power = 10u128.pow(scale.into());
    let sign = if d < 0 { "-" } else { "" };
    let magnitude = d.unsigned_abs();
    write!(f, "{sign}{}.{:0width$}", magnitude / power, magnitude % power, width = scale.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_double_comes_back_from_json() {
        for d in [0.1, -0.0, 5e-324, f64::MAX, 7.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let json = serde_json::to_string(&Value::Double(d)).unwrap();
            let Value::Double(back) = serde_json::from_str(&json).unwrap() else { panic!("{json}") };
            assert!(back.to_bits() == d.to_bits() || back.is_nan() && d.is_nan(), "{json}");
        }
    }

    #[test]
    fn text_forms() {
        let cases = [
            (Value::Int(-5), "-5"),
            (Value::Double(1.0), "1.0"),
            (Value::Double(0.1), "0.1"),
            (Value::Double(1e300), "1e300"),
            (Value::Decimal(-5, 2), "-0.05"),
            (Value::Decimal(12345, 2), "123.45"),
            (Value::Date(0), "1970-01-01"),
            (Value::Timestamp(1_500_000), "1970-01-01 00:00:01.5"),
            (Value::TimestampTz(-1), "1969-12-31 23:59:59.999999+00"),
            (Value::Bytes(vec![0, 255]), "00ff"),
        ];
        for (value, text) in cases {
            assert_eq!(value.to_string(), text);
        }
    }

    #[test]
    fn order_is_nulls_first_and_exact_for_decimals() {
        assert!(Value::Null < Value::Int(i64::MIN));
        assert_eq!(Value::Double(-0.0), Value::Double(0.0));
        assert!(Value::Double(f64::INFINITY) < Value::Double(f64::NAN));
        assert_eq!(Value::Decimal(150, 2), Value::Decimal(15, 1));
        assert!(Value::Decimal(-151, 2) < Value::Decimal(-15, 1));
        assert!(Value::Decimal(i128::MAX, 0) > Value::Decimal(i128::MAX, 38));
    }
}
