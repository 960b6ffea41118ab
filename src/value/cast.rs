//! Type conversion of values, by the rules of PostgreSQL's assignment casts.
//!
//! [`Value::cast`] converts a value of any type to a column's type; [`Value::parse`] (in `parse`) does the same for
//! text from a literal or a file. Both are strict: a value that does not fit is a [`CastError`] naming the value, the
//! type and the reason.
//!
//! | from | to | rule |
//! |---|---|---|
//! | NULL | any | NULL |
//! | any | VARCHAR | the text form |
//! | text | any | [`Value::parse`] |
//! | integer | integer, REAL, DOUBLE, DECIMAL | in range, or refused |
//! | REAL, DOUBLE | integer | rounded, halves to even, as PostgreSQL does |
//! | REAL, DOUBLE | DECIMAL | through its shortest decimal form, then rounded to the scale |
//! | DECIMAL | integer, DECIMAL | rounded to the scale, halves away from zero |
//! | DATE, TIMESTAMP, TIMESTAMPTZ | each other | a date is its midnight, time zones are UTC |
//! | UUID | VARBINARY and back | its 16 bytes |
//!
//! Everything else is refused: an integer is neither a boolean nor a time.

use std::fmt;

use super::time::{US_PER_DAY, date_in_range, timestamp_in_range};
use super::{ColumnType, Value, ValueRef};
use crate::error::{Error, counted, sqlstate};

/// Characters of a value shown in an error.
const SHOWN_CHARS_MAX: usize = 60;

/// The error for a value that cannot have its target type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CastError {
    /// The value as SQL shows it, cut at 60 characters.
    pub value: String,
    /// The target type.
    pub to: ColumnType,
    /// What is wrong with it.
    pub fault: CastFault,
}

/// Why a value cannot have a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CastFault {
    /// Text that is not a value of the type, with details if there are any.
    Malformed(Option<String>),
    /// A value the type understands but cannot hold.
    OutOfRange,
    /// A value whose type does not convert; names that type.
    NoCast(&'static str),
}

impl CastError {
    /// The error for `value`, which is included in the message.
    pub fn new(value: ValueRef<'_>, to: ColumnType, fault: CastFault) -> Self {
        CastError { value: shown(value), to, fault }
    }

    /// The reason, if it says more than the message.
    pub fn why(&self) -> Option<String> {
        match &self.fault {
            CastFault::Malformed(detail) => detail.clone(),
            CastFault::OutOfRange => Some(capacity(self.to)),
            CastFault::NoCast(from) => Some(format!("{from} value does not convert to {}", self.to)),
        }
    }

    /// How a value of the type is written.
    pub fn hint(&self) -> Option<&'static str> {
        match (&self.fault, self.to) {
            (CastFault::OutOfRange, _) => None,
            (_, ColumnType::Date | ColumnType::Timestamp | ColumnType::TimestampTz)
                if let Some(instead) = moment(&self.value, self.to) =>
            {
                Some(instead)
            }
            (_, ColumnType::SmallInt | ColumnType::Integer | ColumnType::BigInt) => {
                Some("write a whole number")
            }
            (_, ColumnType::Real | ColumnType::Double | ColumnType::Decimal { .. }) => Some("write a number"),
            (_, ColumnType::Boolean) => Some("write true or false"),
            (_, ColumnType::Date) => Some("write 'YYYY-MM-DD'"),
            (_, ColumnType::Timestamp) => Some("write 'YYYY-MM-DD HH:MM:SS', without a time zone"),
            (_, ColumnType::TimestampTz) => Some("write 'YYYY-MM-DD HH:MM:SS+00'"),
            (_, ColumnType::Varbinary) => {
                Some("write '\\x' or '0x' and two hex digits a byte, as in '\\x00ff'")
            }
            (_, ColumnType::Uuid) => {
                Some("write 32 hex digits, as in '123e4567-e89b-12d3-a456-426614174000'")
            }
            (_, ColumnType::Json) => {
                Some("write '{\"a\": 1}', '[1, 2]', or a text in double quotes: '\"a\"'")
            }
            _ => None,
        }
    }

    /// SQLSTATE of the fault.
    pub fn sqlstate(&self) -> &'static str {
        match self.fault {
            CastFault::Malformed(_) => sqlstate::INVALID_TEXT,
            CastFault::OutOfRange => sqlstate::OUT_OF_RANGE,
            CastFault::NoCast(_) => sqlstate::DATATYPE_MISMATCH,
        }
    }
}

/// What to write for PostgreSQL's and SQLite's names of moments, in quotes as [`shown`] gives them, and for a time with
/// a zone where none is kept.
fn moment(shown: &str, to: ColumnType) -> Option<&'static str> {
    let text = shown.strip_prefix('\'')?.strip_suffix('\'')?;
    match text.trim().to_ascii_lowercase().as_str() {
        "now" if to == ColumnType::Date => Some("write CURRENT_DATE"),
        "now" => Some("write now()"),
        "today" => Some("write CURRENT_DATE"),
        "yesterday" => Some("write CURRENT_DATE - 1"),
        "tomorrow" => Some("write CURRENT_DATE + 1"),
        _ if to == ColumnType::Timestamp && Value::parse(text, ColumnType::TimestampTz).is_ok() => {
            Some("leave the time zone out, or use the type TIMESTAMPTZ, which reads it")
        }
        _ => None,
    }
}

impl fmt::Display for CastError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fault {
            CastFault::OutOfRange => write!(f, "{} is out of range for {}", self.value, self.to),
            _ if self.to == ColumnType::Json => write!(f, "{} is not JSON", self.value),
            _ if self.to == ColumnType::Integer => write!(f, "{} is not an INTEGER", self.value),
            _ => write!(f, "{} is not a {}", self.value, self.to),
        }
    }
}

impl std::error::Error for CastError {}

impl From<CastError> for Error {
    fn from(e: CastError) -> Self {
        let mut error = Error::invalid(e.to_string()).state(e.sqlstate());
        if let Some(text) = e.value.strip_prefix('\'').and_then(|v| v.strip_suffix('\'')) {
            error = error.about(text);
        }
        if let Some(why) = e.why() {
            error = error.why(why);
        }
        match e.hint() {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

/// The range of values of `to`.
fn capacity(to: ColumnType) -> String {
    match to {
        ColumnType::Decimal { precision, scale } => {
            format!(
                "{to} has room for {} before the point",
                counted(precision.saturating_sub(scale), "digit")
            )
        }
        ColumnType::Date | ColumnType::Timestamp | ColumnType::TimestampTz => {
            "years run from 0001 to 9999".into()
        }
        ColumnType::Real => "REAL goes up to 3.4e38".into(),
        ColumnType::Double => "DOUBLE goes up to 1.8e308".into(),
        _ => match to.integer_bounds() {
            Some((min, max)) => format!("{to} holds {min} to {max}"),
            None => format!("{to} cannot hold it"),
        },
    }
}

/// `value` as a literal of at most 60 characters and an ellipsis.
fn shown(value: ValueRef<'_>) -> String {
    let cut = |text: &str| match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    };
    match value {
        ValueRef::Text(t) => format!("'{}'", cut(t)),
        // Each byte has two digits: further bytes would only be cut again.
        ValueRef::Bytes(b) => {
            format!("X'{}'", cut(&ValueRef::Bytes(&b[..b.len().min(SHOWN_CHARS_MAX)]).to_string()))
        }
        other => cut(&other.to_string()),
    }
}

impl Value {
    /// Converts the value to type `to`, by the table in the module's documentation. Doubles become canonical: one
    /// zero, one NaN.
    pub fn cast(self, to: ColumnType) -> Result<Value, CastError> {
        match self.cast_any(to)? {
            Value::Double(d) => Ok(Value::Double(canonical_double(d))),
            value => Ok(value),
        }
    }

    fn cast_any(self, to: ColumnType) -> Result<Value, CastError> {
        match (self, to) {
            (Value::Null, _) => Ok(Value::Null),
            (Value::Text(t), ColumnType::Varchar) => Ok(Value::Text(t)),
            (Value::Text(t), ColumnType::Json) => match super::parse::check_json(&t) {
                Ok(()) => Ok(Value::Text(t)),
                Err(fault) => Err(CastError::new(ValueRef::Text(&t), to, fault)),
            },
            (Value::Text(t), to) => Value::parse(&t, to),
            (Value::Bytes(b), ColumnType::Varbinary) => Ok(Value::Bytes(b)),
            (value, ColumnType::Varchar) => Ok(Value::Text(value.to_string())),
            (value, to) => convert(value.as_ref(), to).map_err(|f| CastError::new(value.as_ref(), to, f)),
        }
    }
}

fn convert(value: ValueRef<'_>, to: ColumnType) -> Result<Value, CastFault> {
    match value {
        ValueRef::Boolean(b) if to == ColumnType::Boolean => Ok(Value::Boolean(b)),
        ValueRef::Int(i) => from_int(i, to),
        ValueRef::Double(d) => from_double(d, to),
        ValueRef::Decimal(d, scale) => from_decimal(d, scale, to),
        ValueRef::Date(days) => from_date(days, to),
        ValueRef::Timestamp(us) => from_timestamp(us, to, "a TIMESTAMP"),
        ValueRef::TimestampTz(us) => from_timestamp(us, to, "a TIMESTAMPTZ"),
        ValueRef::Uuid(u) if to == ColumnType::Uuid => Ok(Value::Uuid(u)),
        ValueRef::Uuid(u) if to == ColumnType::Varbinary => Ok(Value::Bytes(u.to_vec())),
        ValueRef::Bytes(b) if to == ColumnType::Uuid => {
            let wrong = || CastFault::Malformed(Some(format!("it has {} bytes, a UUID 16", b.len())));
            Ok(Value::Uuid(b.try_into().map_err(|_| wrong())?))
        }
        other => Err(CastFault::NoCast(kind(other))),
    }
}

/// The kind of a value, with an article.
fn kind(value: ValueRef<'_>) -> &'static str {
    match value {
        ValueRef::Null => "a NULL",
        ValueRef::Boolean(_) => "a BOOLEAN",
        ValueRef::Int(_) => "an integer",
        ValueRef::Double(_) => "a DOUBLE",
        ValueRef::Decimal(..) => "a DECIMAL",
        ValueRef::Text(_) => "a VARCHAR",
        ValueRef::Bytes(_) => "a VARBINARY",
        ValueRef::Date(_) => "a DATE",
        ValueRef::Timestamp(_) => "a TIMESTAMP",
        ValueRef::TimestampTz(_) => "a TIMESTAMPTZ",
        ValueRef::Uuid(_) => "a UUID",
    }
}

/// `i` as a value of the integer type `to`.
pub(super) fn int_in_range(i: i64, to: ColumnType) -> Result<Value, CastFault> {
    let (min, max) = to.integer_bounds().ok_or(CastFault::NoCast("an integer"))?;
    if (min..=max).contains(&i) { Ok(Value::Int(i)) } else { Err(CastFault::OutOfRange) }
}

fn from_int(i: i64, to: ColumnType) -> Result<Value, CastFault> {
    match to {
        ColumnType::Double => Ok(Value::Double(i as f64)),
        ColumnType::Real => Ok(Value::Double((i as f32).into())),
        ColumnType::Decimal { precision, scale } => decimal(rescale(i.into(), 0, scale), precision, scale),
        _ => int_in_range(i, to),
    }
}

fn from_double(d: f64, to: ColumnType) -> Result<Value, CastFault> {
    match to {
        ColumnType::Double => Ok(Value::Double(d)),
        ColumnType::Real => real(d),
        ColumnType::Decimal { precision, scale } => {
            let text = format!("{d:e}");
            let numeral = super::parse::Numeral::parse(&text).ok_or(CastFault::OutOfRange)?;
            decimal(numeral.unscaled(scale), precision, scale)
        }
        _ if to.is_integer() => {
            let rounded = d.round_ties_even();
            // 2^63 is a double, but not a BIGINT; NaN fails both comparisons.
            if rounded >= -(2f64.powi(63)) && rounded < 2f64.powi(63) {
                int_in_range(rounded as i64, to)
            } else {
                Err(CastFault::OutOfRange)
            }
        }
        _ => Err(CastFault::NoCast("a DOUBLE")),
    }
}

/// `d` rounded to 32 bits; a finite value stays finite.
fn real(d: f64) -> Result<Value, CastFault> {
    let rounded = d as f32;
    if rounded.is_infinite() && d.is_finite() {
        return Err(CastFault::OutOfRange);
    }
    Ok(Value::Double(rounded.into()))
}

fn from_decimal(d: i128, from: u8, to: ColumnType) -> Result<Value, CastFault> {
    match to {
        ColumnType::Decimal { precision, scale } => decimal(rescale(d, from, scale), precision, scale),
        ColumnType::Double => Ok(Value::Double(decimal_to_double(d, from))),
        ColumnType::Real => {
            // Directly from the digits: by way of a double it would be rounded twice.
            let text = ValueRef::Decimal(d, from).to_string();
            real_from_digits(&text)
        }
        _ if to.is_integer() => {
            let whole = rescale(d, from, 0).ok_or(CastFault::OutOfRange)?;
            int_in_range(i64::try_from(whole).map_err(|_| CastFault::OutOfRange)?, to)
        }
        _ => Err(CastFault::NoCast("a DECIMAL")),
    }
}

fn real_from_digits(text: &str) -> Result<Value, CastFault> {
    let value: f32 = text.parse().map_err(|_| CastFault::OutOfRange)?;
    Ok(Value::Double(value.into()))
}

/// `d` with only one zero and one NaN. Sorts and filters that compare bits, as Arrow's do, then agree with keys, in
/// which -0 equals 0 and NaN equals NaN.
pub fn canonical_double(d: f64) -> f64 {
    if d.is_nan() { f64::NAN } else { d + 0.0 }
}

/// The double nearest to `d * 10^-scale`.
pub fn decimal_to_double(d: i128, scale: u8) -> f64 {
    // If both operands are exact, the quotient is the nearest double (Clinger 1990).
    if d.unsigned_abs() < 1 << 53 && scale <= 22 {
        return d as f64 / 10f64.powi(scale.into());
    }
    ValueRef::Decimal(d, scale).to_string().parse().unwrap_or(f64::NAN)
}

fn from_date(days: i32, to: ColumnType) -> Result<Value, CastFault> {
    if !date_in_range(days) {
        return Err(CastFault::OutOfRange);
    }
    let midnight = i64::from(days) * US_PER_DAY;
    match to {
        ColumnType::Date => Ok(Value::Date(days)),
        ColumnType::Timestamp => Ok(Value::Timestamp(midnight)),
        ColumnType::TimestampTz => Ok(Value::TimestampTz(midnight)),
        _ => Err(CastFault::NoCast("a DATE")),
    }
}

fn from_timestamp(us: i64, to: ColumnType, kind: &'static str) -> Result<Value, CastFault> {
    if !timestamp_in_range(us) {
        return Err(CastFault::OutOfRange);
    }
    match to {
        ColumnType::Date => Ok(Value::Date(us.div_euclid(US_PER_DAY) as i32)),
        ColumnType::Timestamp => Ok(Value::Timestamp(us)),
        ColumnType::TimestampTz => Ok(Value::TimestampTz(us)),
        _ => Err(CastFault::NoCast(kind)),
    }
}

/// `unscaled` as a value of `DECIMAL(precision, scale)`, if it is `Some` and has at most `precision` digits.
pub(super) fn decimal(unscaled: Option<i128>, precision: u8, scale: u8) -> Result<Value, CastFault> {
    let limit = 10u128.checked_pow(precision.into()).unwrap_or(u128::MAX);
    match unscaled {
        Some(d) if d.unsigned_abs() < limit => Ok(Value::Decimal(d, scale)),
        _ => Err(CastFault::OutOfRange),
    }
}

/// The unscaled form at scale `to` of `d * 10^-from`: exact, or rounded half away from zero. `None` when it does not
/// fit.
pub fn rescale(d: i128, from: u8, to: u8) -> Option<i128> {
    if to >= from {
        return match d {
            0 => Some(0),
            _ => d.checked_mul(10i128.checked_pow((to - from).into())?),
        };
    }
    let Some(power) = 10i128.checked_pow((from - to).into()) else {
        return Some(0);
    };
    let (quotient, rest) = (d / power, d % power);
    // `power` is even and at least 10, so the half is exact.
    let carry = if rest.unsigned_abs() >= power.unsigned_abs() / 2 { d.signum() } else { 0 };
    Some(quotient + carry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ColumnType::*;

    const PRICE: ColumnType = Decimal { precision: 5, scale: 2 };

    #[test]
    fn casts_that_hold() {
        let cases = [
            (Value::Int(7), SmallInt, "7"),
            (Value::Int(7), PRICE, "7.00"),
            (Value::Int(7), Varchar, "7"),
            (Value::Double(2.5), Integer, "2"),
            (Value::Double(3.5), Integer, "4"),
            (Value::Double(-2.5), BigInt, "-2"),
            (Value::Double(0.1), PRICE, "0.10"),
            (Value::Double(0.125), PRICE, "0.13"),
            (Value::Decimal(25, 1), Integer, "3"),
            (Value::Decimal(-25, 1), Integer, "-3"),
            (Value::Decimal(12345, 4), PRICE, "1.23"),
            (Value::Decimal(-12350, 4), PRICE, "-1.24"),
            (Value::Decimal(1, 1), Double, "0.1"),
            (Value::Decimal(123_456_789_012_345_678, 17), Double, "1.2345678901234567"),
            (Value::Date(1), Timestamp, "1970-01-02 00:00:00"),
            (Value::Timestamp(-1), Date, "1969-12-31"),
            (Value::Timestamp(0), TimestampTz, "1970-01-01 00:00:00+00"),
            (Value::Text(" 12 ".into()), Integer, "12"),
            (Value::Bytes(vec![0; 16]), Uuid, "00000000-0000-0000-0000-000000000000"),
            (Value::Null, Json, "NULL"),
        ];
        for (value, to, text) in cases {
            let name = format!("{value:?} to {to}");
            assert_eq!(value.cast(to).expect(&name).to_string(), text, "{name}");
        }
    }

    #[test]
    fn casts_that_are_refused_say_why() {
        let cases = [
            (Value::Int(70_000), SmallInt, "70000 is out of range for SMALLINT", "22003"),
            (Value::Int(1000), PRICE, "1000 is out of range for DECIMAL(5,2)", "22003"),
            (Value::Decimal(999_995, 3), PRICE, "999.995 is out of range for DECIMAL(5,2)", "22003"),
            (Value::Double(f64::NAN), BigInt, "NaN is out of range for BIGINT", "22003"),
            (Value::Double(9.3e18), BigInt, "9.3e18 is out of range for BIGINT", "22003"),
            (Value::Double(1e39), Real, "1e39 is out of range for REAL", "22003"),
            (Value::Date(i32::MAX), Timestamp, "date 2147483647 out of range", "22003"),
            (Value::Int(0), Timestamp, "0 is not a TIMESTAMP", "42804"),
            (Value::Boolean(true), Integer, "true is not an INTEGER", "42804"),
            (Value::Text("abc".into()), PRICE, "'abc' is not a DECIMAL(5,2)", "22P02"),
        ];
        for (value, to, what, state) in cases {
            let error = Error::from(value.cast(to).expect_err(what));
            assert!(error.what().starts_with(what), "{error}");
            assert_eq!(error.sqlstate(), state, "{error}");
        }
    }

    #[test]
    fn long_values_are_cut() {
        let error = Value::Text("é".repeat(100)).cast(Integer).unwrap_err();
        assert_eq!(error.value, format!("'{}…'", "é".repeat(60)));
    }

    #[test]
    fn a_real_is_held_as_the_double_it_equals() {
        let value = Value::Double(0.1).cast(Real).unwrap();
        assert_eq!(value, Value::Double(f64::from(0.1f32)));
    }

    #[test]
    fn there_is_one_zero_and_one_nan() {
        for (odd, plain) in [(-0.0, 0.0), (-f64::NAN, f64::NAN)] {
            for to in [Real, Double] {
                let Value::Double(d) = Value::Double(odd).cast(to).unwrap() else { panic!("no double") };
                assert_eq!(d.to_bits(), f64::to_bits(plain));
            }
        }
    }
}
