//! Fixed-width scalars as integers, and integers as bytes that sort.
//!
//! Every value of a fixed-width type has an *ordinal*: a signed integer that orders as the value does (`true`
//! is one more than `false`, the next double one more than the last). Its bytes are the ordinal, big-endian,
//! sign bit flipped. So bounds, gaps and clamping are integer arithmetic for all types. Bytes of variable
//! width that need an end are escaped instead.
//!
//! | type | bytes | ordinal |
//! |---|---|---|
//! | BOOLEAN | 1 | 00 false, 01 true |
//! | SMALLINT, INTEGER, BIGINT | 2, 4, 8 | the number |
//! | REAL, DOUBLE | 4, 8 | IEEE 754 bits, those of negative numbers inverted below the sign; -0 is 0, one NaN, greatest |
//! | DECIMAL(p, s) | 4 if p ≤ 9, 8 if p ≤ 18, else 16 | the unscaled number |
//! | DATE | 4 | days |
//! | TIMESTAMP, TIMESTAMPTZ | 8 | microseconds |
//! | UUID | 16 | its bytes |
//! | VARCHAR, VARBINARY | variable | none: 00 becomes 00 FF, and 00 01 ends it |

use super::problem::Rule;
use crate::value::{ColumnType, ValueRef};

/// Bytes of a fixed-width type; `None` for text, bytes and JSON.
pub(super) fn width(ty: ColumnType) -> Option<usize> {
    Some(match ty {
        ColumnType::Boolean => 1,
        ColumnType::SmallInt => 2,
        ColumnType::Integer | ColumnType::Real | ColumnType::Date => 4,
        ColumnType::BigInt | ColumnType::Double | ColumnType::Timestamp | ColumnType::TimestampTz => 8,
        ColumnType::Decimal { precision: ..=9, .. } => 4,
        ColumnType::Decimal { precision: ..=18, .. } => 8,
        ColumnType::Decimal { .. } | ColumnType::Uuid => 16,
        ColumnType::Varchar | ColumnType::Varbinary | ColumnType::Json => return None,
    })
}

/// Smallest and greatest ordinal of a fixed-width type.
pub(super) fn domain(ty: ColumnType) -> (i128, i128) {
    match ty {
        ColumnType::Boolean => (FALSE, FALSE + 1),
        ColumnType::Decimal { precision, .. } => {
            let max = power_of_ten(precision.into()) - 1;
            (-max, max)
        }
        ColumnType::Real => (real_ordinal(f32::NEG_INFINITY), real_ordinal(f32::NAN)),
        ColumnType::Double => (double_ordinal(f64::NEG_INFINITY), double_ordinal(f64::NAN)),
        ColumnType::SmallInt => (i16::MIN.into(), i16::MAX.into()),
        ColumnType::Integer | ColumnType::Date => (i32::MIN.into(), i32::MAX.into()),
        ColumnType::BigInt | ColumnType::Timestamp | ColumnType::TimestampTz => {
            (i64::MIN.into(), i64::MAX.into())
        }
        ColumnType::Uuid => (i128::MIN, i128::MAX),
        // No ordinals: an empty domain.
        ColumnType::Varchar | ColumnType::Varbinary | ColumnType::Json => (0, -1),
    }
}

/// The ordinal whose byte, with its sign bit flipped, is 00.
const FALSE: i128 = -128;

/// `10^n`, or the greatest integer if that is too large.
pub(super) fn power_of_ten(n: u32) -> i128 {
    10i128.checked_pow(n).unwrap_or(i128::MAX)
}

/// The greatest ordinal of `ty` that is not above `value`, and whether it is exactly `value`. It may lie
/// outside of the type's domain. `None` if the types cannot be compared.
pub(super) fn floor(ty: ColumnType, value: ValueRef<'_>) -> Option<(i128, bool)> {
    let exact = |n: i128| Some((n, true));
    match (ty, value) {
        (ColumnType::Boolean, ValueRef::Boolean(b)) => exact(FALSE + i128::from(b)),
        (ColumnType::SmallInt | ColumnType::Integer | ColumnType::BigInt, ValueRef::Int(i)) => {
            exact(i.into())
        }
        (ColumnType::SmallInt | ColumnType::Integer | ColumnType::BigInt, ValueRef::Decimal(d, from)) => {
            Some(rescale(d, from, 0))
        }
        (ColumnType::Decimal { scale, .. }, ValueRef::Decimal(d, from)) => Some(rescale(d, from, scale)),
        (ColumnType::Decimal { scale, .. }, ValueRef::Int(i)) => Some(rescale(i.into(), 0, scale)),
        (ColumnType::Double, ValueRef::Double(d)) => exact(double_ordinal(d)),
        (ColumnType::Real, ValueRef::Double(d)) => Some(floor_real(d)),
        (ColumnType::Date, ValueRef::Date(days)) => exact(days.into()),
        (ColumnType::Timestamp, ValueRef::Timestamp(us)) => exact(us.into()),
        (ColumnType::TimestampTz, ValueRef::TimestampTz(us)) => exact(us.into()),
        (ColumnType::Uuid, ValueRef::Uuid(bytes)) => exact(take(&bytes)),
        _ => None,
    }
}

/// The ordinal that stores `value`: rounded for a REAL; otherwise the value must fit exactly.
pub(super) fn ordinal(ty: ColumnType, value: ValueRef<'_>) -> Result<i128, Rule> {
    let (n, exact) = match (ty, value) {
        (ColumnType::Real, ValueRef::Double(d)) => (real_ordinal(d as f32), true),
        _ => floor(ty, value).ok_or_else(|| Rule::Type(ty.sql_name()))?,
    };
    let (min, max) = domain(ty);
    if exact && (min..=max).contains(&n) { Ok(n) } else { Err(Rule::Range(ty.sql_name())) }
}

/// The value of an ordinal; `None` if the type has no such ordinal.
pub(super) fn value(ty: ColumnType, n: i128) -> Option<ValueRef<'static>> {
    let value = match ty {
        // Every 64-bit pattern is valid.
        ColumnType::BigInt => return Some(ValueRef::Int(n.try_into().ok()?)),
        ColumnType::Timestamp => return Some(ValueRef::Timestamp(n.try_into().ok()?)),
        ColumnType::TimestampTz => return Some(ValueRef::TimestampTz(n.try_into().ok()?)),
        ColumnType::Boolean => ValueRef::Boolean(n != FALSE),
        ColumnType::SmallInt | ColumnType::Integer => ValueRef::Int(n.try_into().ok()?),
        ColumnType::Real => ValueRef::Double(real_of(n.try_into().ok()?).into()),
        ColumnType::Double => ValueRef::Double(double_of(n.try_into().ok()?)),
        ColumnType::Decimal { scale, .. } => ValueRef::Decimal(n, scale),
        ColumnType::Date => ValueRef::Date(n.try_into().ok()?),
        ColumnType::Uuid => ValueRef::Uuid((n ^ i128::MIN).to_be_bytes()),
        ColumnType::Varchar | ColumnType::Varbinary | ColumnType::Json => return None,
    };
    // Some bit patterns are invalid: a second NaN, -0, a boolean of 2, too many digits.
    (ordinal(ty, value) == Ok(n)).then_some(value)
}

/// Appends the `width` (at most 16) bytes of an ordinal.
pub(super) fn put(width: usize, n: i128, out: &mut Vec<u8>) {
    let flipped = n ^ (1 << (8 * width - 1));
    out.extend_from_slice(&flipped.to_be_bytes()[16 - width..]);
}

/// The ordinal of 1 to 16 bytes.
pub(super) fn take(bytes: &[u8]) -> i128 {
    // Fast path: most ordinals have 8 bytes.
    if let Ok(eight) = <[u8; 8]>::try_from(bytes) {
        return (i64::from_be_bytes(eight) ^ i64::MIN).into();
    }
    let magnitude = bytes.iter().fold(0u128, |n, &b| n << 8 | u128::from(b));
    let unused = 128 - 8 * bytes.len() as u32;
    ((magnitude << unused) as i128 ^ i128::MIN) >> unused
}

fn double_ordinal(d: f64) -> i128 {
    let bits = if d.is_nan() { f64::NAN } else { d + 0.0 }.to_bits() as i64;
    // The sign of a NaN is unspecified.
    let bits = if d.is_nan() { bits & i64::MAX } else { bits };
    i128::from(bits ^ ((bits >> 63) & i64::MAX))
}

fn real_ordinal(d: f32) -> i128 {
    let bits = if d.is_nan() { f32::NAN } else { d + 0.0 }.to_bits() as i32;
    let bits = if d.is_nan() { bits & i32::MAX } else { bits };
    i128::from(bits ^ ((bits >> 31) & i32::MAX))
}

fn double_of(n: i64) -> f64 {
    f64::from_bits((n ^ ((n >> 63) & i64::MAX)) as u64)
}

fn real_of(n: i32) -> f32 {
    f32::from_bits((n ^ ((n >> 31) & i32::MAX)) as u32)
}

fn floor_real(d: f64) -> (i128, bool) {
    let nearest = d as f32;
    let n = real_ordinal(nearest);
    match f64::from(nearest).partial_cmp(&d) {
        Some(std::cmp::Ordering::Less) => (n, false),
        Some(std::cmp::Ordering::Greater) => (n - 1, false),
        _ => (n, true),
    }
}

/// `n * 10^-from` as a multiple of `10^-to`, rounded down, and whether that is exact. Saturates.
fn rescale(n: i128, from: u8, to: u8) -> (i128, bool) {
    if to >= from {
        match n.checked_mul(power_of_ten(u32::from(to - from))) {
            Some(n) => (n, true),
            None if n < 0 => (i128::MIN, false),
            None => (i128::MAX, false),
        }
    } else {
        let power = power_of_ten(u32::from(from - to));
        (n.div_euclid(power), n.rem_euclid(power) == 0)
    }
}

/// The terminator of escaped bytes.
pub(super) const END: [u8; 2] = [0, 1];

/// Escapes `out[start..]` in place: 00 becomes 00 FF. Does not append the terminator.
pub(super) fn escape(out: &mut Vec<u8>, start: usize) {
    let zeros = out[start..].iter().filter(|&&b| b == 0).count();
    if zeros == 0 {
        return;
    }
    let mut from = out.len();
    out.resize(from + zeros, 0);
    let mut to = out.len();
    while to > from {
        from -= 1;
        if out[from] == 0 {
            to -= 1;
            out[to] = 0xFF;
        }
        to -= 1;
        out[to] = out[from];
    }
}

/// `bytes`, escaped, without the terminator.
pub(super) fn escaped(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    escape(&mut out, 0);
    out
}

/// Offset just after the terminator of escaped bytes that start at `at`, all XORed with `mask`; `None` if
/// there is no terminator, or a bad escape.
pub(super) fn escaped_end(key: &[u8], mut at: usize, mask: u8) -> Option<usize> {
    loop {
        at += key.get(at..)?.iter().position(|&b| b == mask)?;
        match key.get(at + 1)? ^ mask {
            0xFF => at += 2,
            1 => return Some(at + 2),
            _ => return None,
        }
    }
}

/// Undoes [`escape`]; `None` if nothing was escaped. `bytes` excludes the terminator.
pub(super) fn unescape(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut rest = bytes;
    let mut out: Option<Vec<u8>> = None;
    while let Some(zero) = rest.iter().position(|&b| b == 0) {
        out.get_or_insert_with(|| Vec::with_capacity(bytes.len())).extend_from_slice(&rest[..=zero]);
        rest = rest.get(zero + 2..).unwrap_or_default();
    }
    out.map(|mut out| {
        out.extend_from_slice(rest);
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::hex;
    use proptest::prelude::*;

    fn bytes(ty: ColumnType, v: ValueRef<'_>) -> String {
        let mut out = Vec::new();
        put(width(ty).unwrap(), ordinal(ty, v).unwrap(), &mut out);
        hex(&out)
    }

    #[test]
    fn worked_examples() {
        let money = ColumnType::Decimal { precision: 9, scale: 2 };
        let cases = [
            (ColumnType::Boolean, ValueRef::Boolean(false), "00"),
            (ColumnType::Boolean, ValueRef::Boolean(true), "01"),
            (ColumnType::SmallInt, ValueRef::Int(-1), "7fff"),
            (ColumnType::Integer, ValueRef::Int(7), "80000007"),
            (ColumnType::BigInt, ValueRef::Int(1_234_567_890), "80000000499602d2"),
            (ColumnType::Double, ValueRef::Double(0.0), "8000000000000000"),
            (ColumnType::Double, ValueRef::Double(-0.0), "8000000000000000"),
            (ColumnType::Double, ValueRef::Double(1.0), "bff0000000000000"),
            (ColumnType::Double, ValueRef::Double(-1.0), "400fffffffffffff"),
            (ColumnType::Double, ValueRef::Double(-f64::NAN), "fff8000000000000"),
            (ColumnType::Real, ValueRef::Double(0.1), "bdcccccd"),
            (money, ValueRef::Decimal(15, 1), "80000096"),
            (ColumnType::Date, ValueRef::Date(-1), "7fffffff"),
            (ColumnType::Uuid, ValueRef::Uuid([0xAB; 16]), "abababababababababababababababab"),
        ];
        for (ty, v, expected) in cases {
            assert_eq!(bytes(ty, v), expected, "{ty} {v}");
        }
    }

    #[test]
    fn values_outside_their_type_are_refused() {
        let money = ColumnType::Decimal { precision: 4, scale: 2 };
        for (ty, v) in [
            (ColumnType::SmallInt, ValueRef::Int(32768)),
            (money, ValueRef::Decimal(10_000, 2)),
            (money, ValueRef::Decimal(1, 3)),
            (money, ValueRef::Decimal(i128::MAX, 0)),
        ] {
            assert_eq!(ordinal(ty, v), Err(Rule::Range(ty.sql_name())), "{ty} {v}");
        }
        assert_eq!(ordinal(money, ValueRef::Text("1")), Err(Rule::Type("DECIMAL(4,2)".into())));
    }

    #[test]
    fn bounds_round_down() {
        let whole = ColumnType::Decimal { precision: 4, scale: 0 };
        assert_eq!(floor(whole, ValueRef::Decimal(-15, 1)), Some((-2, false)));
        assert_eq!(floor(ColumnType::Integer, ValueRef::Decimal(20, 1)), Some((2, true)));
        let (n, exact) = floor(ColumnType::Real, ValueRef::Double(0.1)).unwrap();
        assert!(!exact && f64::from(real_of(n as i32)) < 0.1 && f64::from(real_of(n as i32 + 1)) > 0.1);
    }

    #[test]
    fn bytes_of_no_value_have_no_value() {
        assert!(value(ColumnType::Boolean, take(&[2])).is_none());
        assert!(value(ColumnType::Double, take(&[0xFF; 8])).is_none(), "a second NaN");
        assert!(value(ColumnType::Double, -1).is_none(), "-0");
        assert!(value(ColumnType::Decimal { precision: 2, scale: 0 }, 100).is_none());
    }

    proptest! {
        #[test]
        fn doubles_sort_and_come_back(a: f64, b: f64) {
            let (x, y) = (double_ordinal(a), double_ordinal(b));
            prop_assert_eq!(x.cmp(&y), crate::value::compare_doubles(a, b));
            prop_assert_eq!(value(ColumnType::Double, x), Some(ValueRef::Double(a)));
        }

        #[test]
        fn ordinals_come_back(n: i64, m: i128, w in 8usize..16) {
            for (width, n) in [(w, i128::from(n)), (16, m)] {
                let mut out = Vec::new();
                put(width, n, &mut out);
                prop_assert_eq!(out.len(), width);
                prop_assert_eq!(take(&out), n);
            }
        }

        #[test]
        fn escapes_come_back(text in prop::collection::vec(prop::sample::select(vec![0u8, 1, 2, 254, 255]), 0..9)) {
            let mut out = escaped(&text);
            prop_assert_eq!(unescape(&out).unwrap_or(out.clone()), text);
            let len = out.len() + 2;
            out.extend(END);
            out.extend([0, 0, 1]);
            prop_assert_eq!(escaped_end(&out, 0, 0), Some(len));
            out.iter_mut().for_each(|b| *b = !*b);
            prop_assert_eq!(escaped_end(&out, 0, 0xFF), Some(len));
        }
    }
}
