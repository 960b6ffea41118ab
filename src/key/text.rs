//! Values as text in keys: digits, padding, and parsing them back.

use std::io::Write;

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime};

use super::problem::Rule;
use super::scalar;
use crate::value::{ColumnType, ValueRef, date_of, datetime_of};

/// Does the type have a text form that parses back exactly? Doubles (`-0.0`, many digits) and JSON do not.
pub(super) fn reads_back(ty: ColumnType) -> bool {
    !matches!(ty, ColumnType::Real | ColumnType::Double | ColumnType::Varbinary | ColumnType::Json)
}

/// Digits after the point, for number types that can be padded; `None` for other types.
pub(super) fn scale_of(ty: ColumnType) -> Option<u8> {
    match ty {
        ColumnType::Decimal { scale, .. } => Some(scale),
        ty if ty.is_integer() => Some(0),
        _ => None,
    }
}

/// Greatest unscaled number that fits into `width` characters, the point included.
pub(super) fn greatest(width: u16, scale: u8) -> i128 {
    let digits = if scale == 0 { width } else { width.saturating_sub(1) };
    scalar::power_of_ten(digits.into()).saturating_sub(1)
}

/// Appends `n * 10^-scale`, which must not be negative, padded with zeros to `width` characters.
pub(super) fn put_digits(n: i128, scale: u8, width: u16, out: &mut Vec<u8>) -> Result<(), Rule> {
    let mut buffer = [0u8; 48];
    let digits = digits(u128::try_from(n).map_err(|_| Rule::Negative)?, scale, &mut buffer);
    let Some(fill) = usize::from(width).checked_sub(digits.len()) else {
        return Err(Rule::Wide { width, len: digits.len() });
    };
    out.resize(out.len() + fill, b'0');
    out.extend_from_slice(digits);
    Ok(())
}

/// Writes digits at the end of `buffer`, which has room for 39 digits and a point.
fn digits(mut n: u128, scale: u8, buffer: &mut [u8; 48]) -> &[u8] {
    let mut at = buffer.len();
    let mut push = |b: u8| {
        at -= 1;
        buffer[at] = b;
    };
    for _ in 0..scale {
        push(b'0' + (n % 10) as u8);
        n /= 10;
    }
    if scale > 0 {
        push(b'.');
    }
    // Most numbers fit 64 bits, where division is several times faster.
    while n > u64::MAX.into() {
        push(b'0' + (n % 10) as u8);
        n /= 10;
    }
    let mut n = n as u64;
    loop {
        push(b'0' + (n % 10) as u8);
        n /= 10;
        if n == 0 {
            break;
        }
    }
    &buffer[at..]
}

/// Any number with this many digits fits 64 bits.
const DIGITS_OF_64_BITS: usize = 19;

/// Parses the output of [`put_digits`].
pub(super) fn read_digits(text: &[u8], scale: u8) -> Option<i128> {
    let (whole, fraction) = match scale {
        0 => (text, &[][..]),
        _ => {
            let (whole, rest) = text.split_at_checked(text.len().checked_sub(usize::from(scale) + 1)?)?;
            (whole, rest.strip_prefix(b".")?)
        }
    };
    if whole.is_empty() {
        return None;
    }
    if fraction.is_empty() && whole.len() <= DIGITS_OF_64_BITS {
        let is_number = whole.iter().all(u8::is_ascii_digit);
        return is_number.then(|| whole.iter().fold(0, |n, b| n * 10 + u64::from(b - b'0')).into());
    }
    whole.iter().chain(fraction).try_fold(0i128, |n, b| {
        let digit = b.is_ascii_digit().then(|| i128::from(b - b'0'))?;
        n.checked_mul(10)?.checked_add(digit)
    })
}

/// Calls `f` with the bytes reversed.
pub(super) fn turned<T>(bytes: &[u8], f: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
    let mut buffer = [0u8; 64];
    match buffer.get_mut(..bytes.len()) {
        Some(short) => {
            short.copy_from_slice(bytes);
            short.reverse();
            f(short)
        }
        None => f(&bytes.iter().rev().copied().collect::<Vec<u8>>()),
    }
}

/// Number of pad characters that fill `t` up to `width`.
pub(super) fn fill(t: &str, width: u16) -> Result<usize, Rule> {
    if t.contains('\0') {
        return Err(Rule::Nul);
    }
    let len = t.chars().count();
    usize::from(width).checked_sub(len).ok_or(Rule::Wide { width, len })
}

/// Appends `count` pad characters.
pub(super) fn put_pads(pad: char, count: usize, out: &mut Vec<u8>) {
    let mut utf8 = [0; 4];
    let pad = pad.encode_utf8(&mut utf8).as_bytes();
    (0..count).for_each(|_| out.extend_from_slice(pad));
}

/// Appends the characters of `t`, reversed.
pub(super) fn put_reversed(t: &str, out: &mut Vec<u8>) {
    for c in t.chars().rev() {
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// Appends the text form of a value. Errors: a time outside of the calendar.
pub(super) fn put_text(value: ValueRef<'_>, out: &mut Vec<u8>) -> Result<(), Rule> {
    match value {
        ValueRef::Text(t) => out.extend_from_slice(t.as_bytes()),
        ValueRef::Date(days) if date_of(days).is_none() => return Err(Rule::Range("the calendar".into())),
        ValueRef::Timestamp(us) | ValueRef::TimestampTz(us) if datetime_of(us).is_none() => {
            return Err(Rule::Range("the calendar".into()));
        }
        // Writing to a Vec does not fail.
        other => drop(write!(out, "{other}")),
    }
    Ok(())
}

/// Parses the output of [`put_text`] for a type that [`reads_back`]; `None` for any other text.
pub(super) fn read_text<'a>(ty: ColumnType, text: &'a str) -> Option<ValueRef<'a>> {
    let value = match ty {
        ColumnType::Varchar => return Some(ValueRef::Text(text)),
        ColumnType::Boolean => ValueRef::Boolean(text.parse().ok()?),
        ColumnType::SmallInt | ColumnType::Integer | ColumnType::BigInt => ValueRef::Int(text.parse().ok()?),
        ColumnType::Decimal { scale, .. } => {
            let magnitude = read_digits(text.strip_prefix('-').unwrap_or(text).as_bytes(), scale)?;
            ValueRef::Decimal(if text.starts_with('-') { -magnitude } else { magnitude }, scale)
        }
        ColumnType::Date => {
            ValueRef::Date(read_date(text)?.signed_duration_since(NaiveDate::default()).num_days() as i32)
        }
        ColumnType::Timestamp => ValueRef::Timestamp(micros(read_time(text)?)),
        ColumnType::TimestampTz => ValueRef::TimestampTz(micros(read_time(text.strip_suffix("+00")?)?)),
        ColumnType::Uuid => ValueRef::Uuid(uuid::Uuid::try_parse(text).ok()?.into_bytes()),
        ColumnType::Real | ColumnType::Double | ColumnType::Varbinary | ColumnType::Json => return None,
    };
    Some(value)
}

/// Microseconds since 1970-01-01.
pub(super) fn micros(time: NaiveDateTime) -> i64 {
    time.and_utc().timestamp_micros()
}

/// The calendar time of a DATE's, TIMESTAMP's or TIMESTAMPTZ's ordinal.
pub(super) fn time_of(ty: ColumnType, n: i128) -> Option<NaiveDateTime> {
    match ty {
        ColumnType::Date => Some(date_of(n.try_into().ok()?)?.into()),
        _ => DateTime::from_timestamp_micros(n.try_into().ok()?).map(|t| t.naive_utc()),
    }
}

/// The ordinal of a calendar time in a DATE, TIMESTAMP or TIMESTAMPTZ; a DATE drops the time of day.
pub(super) fn time_ordinal(ty: ColumnType, time: NaiveDateTime) -> i128 {
    match ty {
        ColumnType::Date => micros(time).div_euclid(86_400_000_000).into(),
        _ => micros(time).into(),
    }
}

/// `YYYY-MM-DD`; years may be negative or take more digits.
fn read_date(text: &str) -> Option<NaiveDate> {
    let (year, rest) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let (month, day) = rest.strip_prefix('-')?.split_once('-')?;
    NaiveDate::from_ymd_opt(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?)
}

fn read_time(text: &str) -> Option<NaiveDateTime> {
    let (date, time) = text.split_once(' ')?;
    let (hms, fraction) = time.split_at_checked(8)?;
    let nanos: u32 = match fraction.strip_prefix('.') {
        Some(digits) if digits.len() <= 6 => format!("{digits:0<9}").parse().ok()?,
        Some(_) => return None,
        None if fraction.is_empty() => 0,
        None => return None,
    };
    let (hour, rest) = hms.split_once(':')?;
    let (minute, second) = rest.split_once(':')?;
    let time =
        NaiveTime::from_hms_nano_opt(hour.parse().ok()?, minute.parse().ok()?, second.parse().ok()?, nanos)?;
    Some(read_date(date)?.and_time(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn padded(n: i128, scale: u8, width: u16) -> Result<String, Rule> {
        let mut out = Vec::new();
        put_digits(n, scale, width, &mut out)?;
        assert_eq!(read_digits(&out, scale), Some(n));
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn digits_are_padded_and_read_back() {
        assert_eq!(padded(123, 0, 6).unwrap(), "000123");
        assert_eq!(padded(0, 0, 3).unwrap(), "000");
        assert_eq!(padded(5, 2, 6).unwrap(), "000.05");
        assert_eq!(padded(i128::MAX, 0, 39).unwrap(), i128::MAX.to_string());
        assert_eq!(padded(1234, 0, 3), Err(Rule::Wide { width: 3, len: 4 }));
        assert_eq!(padded(-1, 0, 3), Err(Rule::Negative));
        assert_eq!((greatest(4, 0), greatest(6, 2)), (9999, 99999));
    }

    #[test]
    fn text_forms_read_back() {
        let money = ColumnType::Decimal { precision: 5, scale: 2 };
        let cases = [
            (ColumnType::Boolean, ValueRef::Boolean(true)),
            (ColumnType::BigInt, ValueRef::Int(i64::MIN)),
            (money, ValueRef::Decimal(-5, 2)),
            (ColumnType::Date, ValueRef::Date(-800_000)),
            (ColumnType::Date, ValueRef::Date(3_000_000)),
            (ColumnType::Timestamp, ValueRef::Timestamp(-1)),
            (ColumnType::TimestampTz, ValueRef::TimestampTz(1_500_000)),
            (ColumnType::Uuid, ValueRef::Uuid([7; 16])),
            (ColumnType::Varchar, ValueRef::Text("é\0")),
        ];
        for (ty, value) in cases {
            let mut out = Vec::new();
            put_text(value, &mut out).unwrap();
            assert_eq!(read_text(ty, std::str::from_utf8(&out).unwrap()), Some(value), "{ty} {value}");
        }
    }

    #[test]
    fn noise_reads_as_nothing() {
        for text in ["", "-", "x", "2017-13-01", "2017-01-01 25:00:00", "é", "ééé", "2017-01-01 09:00:00é"]
        {
            for ty in [ColumnType::BigInt, ColumnType::Date, ColumnType::Timestamp, ColumnType::Uuid] {
                assert_eq!(read_text(ty, text), None, "{ty} {text}");
            }
        }
    }
}
