//! Parses values from text: literals, files, and text assigned to a column of another type.

use serde::de::IgnoredAny;

use super::cast::{CastError, CastFault, decimal, int_in_range};
use super::time::{ParsedTime, US_PER_DAY};
use super::{ColumnType, Value, ValueRef};

impl Value {
    /// Reads `text` as a value of `to`. Spaces around everything but text, JSON and bytes are ignored.
    ///
    /// - BOOLEAN: `true t yes y on 1`, `false f no n off 0`, in any case.
    /// - DECIMAL: exact, also in scientific notation; digits beyond the scale round half away from zero.
    /// - REAL, DOUBLE: the nearest value; `NaN` and `Infinity` too.
    /// - DATE, TIMESTAMP, TIMESTAMPTZ: ISO 8601 with a space or `T`; a date alone is its midnight, a
    ///   TIMESTAMPTZ without zone is UTC, and a TIMESTAMP or DATE with a zone other than UTC is refused.
    /// - VARBINARY: hex after `\x` or `0x`. UUID: any standard form.
    /// - JSON: checked, kept as written.
    pub fn parse(text: &str, to: ColumnType) -> Result<Value, CastError> {
        read(text, to).map_err(|fault| CastError::new(ValueRef::Text(text), to, fault))
    }
}

fn read(text: &str, to: ColumnType) -> Result<Value, CastFault> {
    let word = text.trim_ascii();
    match to {
        ColumnType::Varchar => Ok(Value::Text(text.to_owned())),
        ColumnType::Json => check_json(text).map(|()| Value::Text(text.to_owned())),
        ColumnType::Varbinary => bytes(text).map(Value::Bytes),
        ColumnType::Boolean => boolean(word).map(Value::Boolean).ok_or(CastFault::Malformed(None)),
        ColumnType::SmallInt | ColumnType::Integer | ColumnType::BigInt => int_in_range(int(word)?, to),
        ColumnType::Real => {
            let value: f32 = word.parse().map_err(|_| CastFault::Malformed(None))?;
            finite_as_written(value.into(), word)
        }
        ColumnType::Double => finite_as_written(word.parse().map_err(|_| CastFault::Malformed(None))?, word),
        ColumnType::Decimal { precision, scale } => {
            let numeral = Numeral::parse(word).ok_or(CastFault::Malformed(None))?;
            decimal(numeral.unscaled(scale), precision, scale)
        }
        ColumnType::Date => {
            let us = ParsedTime::parse(word)?.local()?;
            Ok(Value::Date(us.div_euclid(US_PER_DAY) as i32))
        }
        ColumnType::Timestamp => Ok(Value::Timestamp(ParsedTime::parse(word)?.local()?)),
        ColumnType::TimestampTz => Ok(Value::TimestampTz(ParsedTime::parse(word)?.instant()?)),
        ColumnType::Uuid => {
            let inner = word.strip_prefix('{').and_then(|w| w.strip_suffix('}')).unwrap_or(word);
            let uuid = uuid::Uuid::try_parse(inner).map_err(|_| CastFault::Malformed(None))?;
            Ok(Value::Uuid(uuid.into_bytes()))
        }
    }
}

fn boolean(word: &str) -> Option<bool> {
    let is = |names: &[&str]| names.iter().any(|name| word.eq_ignore_ascii_case(name));
    if is(&["true", "t", "yes", "y", "on", "1"]) {
        Some(true)
    } else if is(&["false", "f", "no", "n", "off", "0"]) {
        Some(false)
    } else {
        None
    }
}

fn int(word: &str) -> Result<i64, CastFault> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    word.parse().map_err(|e: std::num::ParseIntError| match e.kind() {
        PosOverflow | NegOverflow => CastFault::OutOfRange,
        _ => CastFault::Malformed(None),
    })
}

/// `value`, unless it is infinite although digits were written.
fn finite_as_written(value: f64, word: &str) -> Result<Value, CastFault> {
    if value.is_infinite() && word.bytes().any(|b| b.is_ascii_digit()) {
        return Err(CastFault::OutOfRange);
    }
    Ok(Value::Double(value))
}

/// Checks that `text` is JSON.
pub(super) fn check_json(text: &str) -> Result<(), CastFault> {
    serde_json::from_str::<IgnoredAny>(text)
        .map(drop)
        .map_err(|e| CastFault::Malformed(Some(no_json(text, &e))))
}

/// What is wrong, and where: `at "ot json", true, false or null was expected`.
fn no_json(text: &str, error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "it ends before the value does".to_owned();
    }
    let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    let at = line.floor_char_boundary(error.column().saturating_sub(1));
    // A word is told from its beginning on.
    let word = line[..at].rfind(|c: char| !c.is_alphanumeric()).map_or(0, |before| before + 1);
    let rest: String = line[word..].chars().take(SHOWN_OF_JSON).collect();
    let said = error.to_string();
    let said = said.split(" at line ").next().unwrap_or_default();
    let said = match said {
        "expected ident" | "expected value" => {
            "a value begins with {, [, \", a digit, -, true, false or null"
        }
        "trailing characters" => "the value has ended before",
        other => other,
    };
    match rest.is_empty() {
        true => said.to_owned(),
        false => format!("at {rest}: {said}"),
    }
}

/// Characters of a text that is no JSON, in a message.
const SHOWN_OF_JSON: usize = 20;

fn bytes(text: &str) -> Result<Vec<u8>, CastFault> {
    match text {
        "" => Ok(Vec::new()),
        text => digits_of(text).and_then(from_hex).ok_or(CastFault::Malformed(None)),
    }
}

/// Does a text stand for bytes where a text could, too? It begins with `\x`, or is hex behind `0x`.
pub fn is_hex(text: &str) -> bool {
    text.starts_with("\\x") || digits_of(text).and_then(from_hex).is_some()
}

fn digits_of(text: &str) -> Option<&str> {
    ["\\x", "0x", "0X"].iter().find_map(|prefix| text.strip_prefix(prefix))
}

/// The bytes of hex digits; `None` if there are other characters, or an odd number of digits.
pub fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect()
}

/// A decimal number as written: `whole.fraction * 10^exponent`.
pub(super) struct Numeral<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl<'a> Numeral<'a> {
    /// Reads the whole of `text`: a sign, digits with at most one point, an exponent.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = whole.bytes().chain(fraction.bytes());
        if mantissa.len() <= usize::from(mantissa.contains('.'))
            || !digits.clone().all(|b| b.is_ascii_digit())
        {
            return None;
        }
        Some(Numeral {
            negative: text.starts_with('-'),
            whole: whole.as_bytes(),
            fraction: fraction.as_bytes(),
            exponent: exponent.into(),
        })
    }

    /// The number times `10^scale`, rounded half away from zero; `None` if it does not fit an i128.
    pub(super) fn unscaled(&self, scale: u8) -> Option<i128> {
        // Digits before this position count, the one at it rounds, and those after it are ignored.
        let kept = self.whole.len() as i64 + self.exponent + i64::from(scale);
        let mut digits = self.whole.iter().chain(self.fraction).map(|b| i128::from(b - b'0'));
        let written = (self.whole.len() + self.fraction.len()) as i64;
        let taken = kept.clamp(0, written);
        let mut sum: i128 = 0;
        for digit in digits.by_ref().take(taken as usize) {
            sum = sum.checked_mul(10)?.checked_add(digit)?;
        }
        if kept > written && sum != 0 {
            sum = sum.checked_mul(10i128.checked_pow(u32::try_from(kept - written).ok()?)?)?;
        }
        let up = kept >= 0 && digits.next().is_some_and(|digit| digit >= 5);
        let magnitude = sum.checked_add(i128::from(up))?;
        Some(if self.negative { -magnitude } else { magnitude })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ColumnType::*;
    use proptest::prelude::*;

    const PRICE: ColumnType = Decimal { precision: 10, scale: 2 };

    #[test]
    fn texts_that_are_values() {
        let cases = [
            (" 12 ", Integer, "12"),
            ("+5", BigInt, "5"),
            ("-9223372036854775808", BigInt, "-9223372036854775808"),
            ("YES", Boolean, "true"),
            ("off", Boolean, "false"),
            ("1.005", PRICE, "1.01"),
            ("-1.005", PRICE, "-1.01"),
            ("1.00499999999999999999999999999999999999999999", PRICE, "1.00"),
            (".5", PRICE, "0.50"),
            ("5.", PRICE, "5.00"),
            ("1.5e3", PRICE, "1500.00"),
            ("12345e-7", PRICE, "0.00"),
            ("5e-3", PRICE, "0.01"),
            ("0e999999", PRICE, "0.00"),
            ("0.1", Double, "0.1"),
            ("nan", Double, "NaN"),
            ("-Infinity", Double, "-inf"),
            ("2017-01-01", Date, "2017-01-01"),
            ("2017-1-5 23:59", Date, "2017-01-05"),
            ("2017-01-01", Timestamp, "2017-01-01 00:00:00"),
            ("2017-01-01T09:00:00Z", Timestamp, "2017-01-01 09:00:00"),
            ("2017-01-01 09:00:00.25", Timestamp, "2017-01-01 09:00:00.25"),
            ("2017-01-01 09:00:00.1234565", Timestamp, "2017-01-01 09:00:00.123457"),
            ("2017-01-01 09:00:00", TimestampTz, "2017-01-01 09:00:00+00"),
            ("2017-01-01 09:00:00+08", TimestampTz, "2017-01-01 01:00:00+00"),
            ("2017-01-01T09:00-0330", TimestampTz, "2017-01-01 12:30:00+00"),
            ("2017-01-01 09:00:00 UTC", TimestampTz, "2017-01-01 09:00:00+00"),
            ("0001-01-01", Date, "0001-01-01"),
            ("9999-12-31 23:59:59.999999", Timestamp, "9999-12-31 23:59:59.999999"),
            ("{123e4567e89b12d3a456426614174000}", Uuid, "123e4567-e89b-12d3-a456-426614174000"),
            ("\\x00Ff", Varbinary, "00ff"),
            ("0x", Varbinary, ""),
            ("", Varbinary, ""),
            ("{\"a\" : 1.10}", Json, "{\"a\" : 1.10}"),
            (" as it is ", Varchar, " as it is "),
        ];
        for (text, to, shown) in cases {
            assert_eq!(Value::parse(text, to).expect(text).to_string(), shown, "{text} as {to}");
        }
    }

    #[test]
    fn texts_that_are_not() {
        let malformed = [
            ("", Integer),
            ("1.0", Integer),
            ("maybe", Boolean),
            ("", PRICE),
            (".", PRICE),
            ("1.2.3", PRICE),
            ("1e", PRICE),
            ("NaN", PRICE),
            ("2017-02-30", Date),
            ("2017-01-01 25:00", Timestamp),
            ("2017-01-01 09:00:00+08", Timestamp),
            ("2017-01-01x", Timestamp),
            ("2017-01-01T", Timestamp),
            ("2017-01-01 09:00:00+1", TimestampTz),
            ("123", Uuid),
            ("00ff", Varbinary),
            ("\\x0", Varbinary),
            ("{a: 1}", Json),
        ];
        for (text, to) in malformed {
            let error = Value::parse(text, to).expect_err(text);
            assert!(matches!(error.fault, CastFault::Malformed(_)), "{text} as {to}: {error:?}");
        }
        let outside = [
            ("40000", SmallInt),
            ("9223372036854775808", BigInt),
            ("123456789", PRICE),
            ("99999999.995", PRICE),
            ("1e999999", PRICE),
            ("1e400", Double),
            ("1e39", Real),
            ("0000-12-31", Date),
            ("10000-01-01", Date),
            ("9999-12-31 23:59:59.9999999", Timestamp),
            ("0001-01-01 00:00:00+01", TimestampTz),
        ];
        for (text, to) in outside {
            let error = Value::parse(text, to).expect_err(text);
            assert_eq!(error.fault, CastFault::OutOfRange, "{text} as {to}");
        }
    }

    #[test]
    fn a_dropped_time_zone_is_refused_with_the_reason() {
        let error = crate::error::Error::from(Value::parse("2017-01-01 09:00+08", Timestamp).unwrap_err());
        assert_eq!(error.what(), "'2017-01-01 09:00+08' is not a TIMESTAMP");
        assert_eq!(error.reason(), Some("its time zone is not UTC, and none is kept"));
    }

    proptest! {
        #[test]
        fn decimals_read_back(unscaled in -(10i128.pow(38) - 1)..10i128.pow(38), scale in 0u8..=38) {
            let value = Value::Decimal(unscaled, scale);
            let read = Value::parse(&value.to_string(), Decimal { precision: 38, scale }).unwrap();
            prop_assert!(matches!(read, Value::Decimal(u, s) if u == unscaled && s == scale));
        }

        #[test]
        fn times_read_back(us in -62_135_596_800_000_000i64..=253_402_300_799_999_999) {
            for (value, to) in [(Value::Timestamp(us), Timestamp), (Value::TimestampTz(us), TimestampTz)] {
                prop_assert_eq!(Value::parse(&value.to_string(), to).unwrap(), value);
            }
        }

        #[test]
        fn doubles_read_back(bits: u64) {
            let value = Value::Double(f64::from_bits(bits));
            prop_assert_eq!(Value::parse(&value.to_string(), Double).unwrap(), value);
        }

        #[test]
        fn noise_never_panics(text in "[-+ 0-9.eETtZ:]{0,24}|\\PC{0,24}") {
            for to in [Boolean, BigInt, Real, Double, PRICE, Varbinary, Date, Timestamp, TimestampTz, Uuid, Json] {
                let _ = Value::parse(&text, to);
            }
        }
    }
}
