//! Transforms: what a key part does to its column, and the properties of each transform.
//!
//! A [`Transform`] as written becomes a [`Form`] once its column's type is known. A form writes the part's
//! *content*, without NULL, terminator or inversion; the part adds those.

use std::fmt::Write as _;

use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};

use super::part::{Facts, KeyOrder};
use super::problem::Rule;
use super::time_format::TimeFormat;
use super::{scalar, text};
use crate::value::{ColumnType, ValueRef};

/// Position of a column in its table; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ColumnId(pub u16);

/// One SQL form of a key part. Widths count characters for text and digits for numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the text of a variant speaks of its fields")]
pub enum Transform {
    /// `'_'`: a literal delimiter.
    Literal(String),
    /// `col`: order-preserving binary.
    Column(ColumnId),
    /// `cast(col AS VARCHAR)`: the column's text form, unpadded.
    Text(ColumnId),
    /// `lpad(col, width, pad)`; numbers are padded with '0'.
    Lpad { column: ColumnId, width: u16, pad: char },
    /// `rpad(col, width, pad)`.
    Rpad { column: ColumnId, width: u16, pad: char },
    /// `reverse(col)`, or `reverse(lpad(col, width))`: the text form, zero-padded if there is a width, reversed.
    Reverse { column: ColumnId, width: Option<u16> },
    /// `reverse_bytes(col)`: the bytes of the binary form, last first.
    ReverseBytes(ColumnId),
    /// `max - col` in binary, or `lpad(max - col, width)` in text.
    MaxMinus { column: ColumnId, max: i64, width: Option<u16> },
    /// `left|right|substr(md5(col), ...)`: hex digits `from..from + len` of the MD5 of the text form.
    Md5Hex { column: ColumnId, from: u8, len: u8 },
    /// `md5(col)`: the 16 bytes of the MD5 of the text form.
    Md5(ColumnId),
    /// `col % buckets`: decimal text, as wide as `buckets - 1`.
    Modulo { column: ColumnId, buckets: u32 },
    /// `md5_bucket(col, ..., buckets)`: decimal text, as wide as `buckets - 1`.
    Md5Bucket { columns: Vec<ColumnId>, buckets: u32 },
    /// `random(buckets)`: drawn at insert; decimal text, as wide as `buckets - 1`.
    Random { buckets: u32 },
    /// `to_char(col, format)`: formatted time.
    ToChar { column: ColumnId, format: String },
    /// `code(col, 'name=code, ...')`.
    Code { column: ColumnId, codes: Vec<(String, String)> },
}

impl Transform {
    /// Input columns: none for a literal and for `random(n)`.
    pub fn columns(&self) -> &[ColumnId] {
        match self {
            Transform::Literal(_) | Transform::Random { .. } => &[],
            Transform::Md5Bucket { columns, .. } => columns,
            Transform::Column(column)
            | Transform::Text(column)
            | Transform::Lpad { column, .. }
            | Transform::Rpad { column, .. }
            | Transform::Reverse { column, .. }
            | Transform::ReverseBytes(column)
            | Transform::MaxMinus { column, .. }
            | Transform::Md5Hex { column, .. }
            | Transform::Md5(column)
            | Transform::Modulo { column, .. }
            | Transform::ToChar { column, .. }
            | Transform::Code { column, .. } => std::slice::from_ref(column),
        }
    }

    /// The number of buckets; `None` if the transform is no bucket.
    pub fn buckets(&self) -> Option<u32> {
        match self {
            Transform::Modulo { buckets, .. }
            | Transform::Md5Bucket { buckets, .. }
            | Transform::Random { buckets } => Some(*buckets),
            _ => None,
        }
    }
}

/// The size of a part's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Binary, always this many bytes.
    Binary(usize),
    /// Text, always this many bytes.
    Text(usize),
    /// Text, always this many characters.
    Chars(u16),
    /// Any number of bytes.
    Variable,
}

/// Of contents alone: the width is unknown.
impl Facts {
    const DERIVED: Facts = Facts { injective: false, order: None, decodable: false, width: None };
    const EXACT: Facts = Facts { injective: true, decodable: true, ..Facts::DERIVED };
    const ASCENDING: Facts = Facts { order: Some(KeyOrder::Ascending), ..Facts::EXACT };
    const DESCENDING: Facts = Facts { order: Some(KeyOrder::Descending), ..Facts::EXACT };
}

/// A transform bound to the type of its column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Form {
    pub transform: Transform,
    /// Types of its columns, in order.
    pub types: Vec<ColumnType>,
    /// The format of `to_char`.
    pub time: Option<TimeFormat>,
}

/// A column's value as input of a transform.
enum Input<'a> {
    Number(ColumnType, i128),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl<'a> Input<'a> {
    fn new(ty: ColumnType, value: ValueRef<'a>) -> Result<Self, Rule> {
        match value {
            ValueRef::Text(t) if ty.is_text() => Ok(Input::Text(t)),
            ValueRef::Bytes(b) if ty == ColumnType::Varbinary => Ok(Input::Bytes(b)),
            _ => Ok(Input::Number(ty, scalar::ordinal(ty, value)?)),
        }
    }

    /// The value as the column stores it: rescaled, rounded, without -0.
    fn value(&self) -> ValueRef<'a> {
        match *self {
            Input::Number(ty, n) => scalar::value(ty, n).unwrap_or(ValueRef::Null),
            Input::Text(t) => ValueRef::Text(t),
            Input::Bytes(b) => ValueRef::Bytes(b),
        }
    }
}

impl Form {
    /// Type of the (first) column; `None` for a literal and `random(n)`.
    pub fn ty(&self) -> Option<ColumnType> {
        self.types.first().copied()
    }

    /// Is the content the text or bytes unchanged?
    pub fn is_plain(&self) -> bool {
        match self.transform {
            Transform::Column(_) | Transform::Text(_) => {
                self.ty().is_some_and(|ty| scalar::width(ty).is_none())
            }
            _ => false,
        }
    }

    /// The size of the content.
    pub fn shape(&self) -> Shape {
        let scalar = self.ty().and_then(scalar::width);
        let number = self.ty().and_then(text::scale_of).is_some();
        match &self.transform {
            Transform::Literal(t) => Shape::Text(t.len()),
            Transform::Column(_) | Transform::ReverseBytes(_) => {
                scalar.map_or(Shape::Variable, Shape::Binary)
            }
            Transform::Text(_) | Transform::Reverse { width: None, .. } => Shape::Variable,
            Transform::Lpad { width, .. } | Transform::Reverse { width: Some(width), .. } if number => {
                Shape::Text((*width).into())
            }
            Transform::Lpad { width, .. }
            | Transform::Rpad { width, .. }
            | Transform::Reverse { width: Some(width), .. } => Shape::Chars(*width),
            Transform::MaxMinus { width: None, .. } => Shape::Binary(8),
            Transform::MaxMinus { width: Some(width), .. } => Shape::Text((*width).into()),
            Transform::Md5Hex { len, .. } => Shape::Text((*len).into()),
            Transform::Md5(_) => Shape::Binary(16),
            Transform::Modulo { buckets, .. }
            | Transform::Md5Bucket { buckets, .. }
            | Transform::Random { buckets } => Shape::Text(bucket_width(*buckets).into()),
            Transform::ToChar { .. } => Shape::Text(self.time.as_ref().map_or(0, TimeFormat::width)),
            Transform::Code { codes, .. } => match codes.first() {
                Some((_, first)) if codes.iter().all(|(_, code)| code.len() == first.len()) => {
                    Shape::Text(first.len())
                }
                _ => Shape::Variable,
            },
        }
    }

    /// How values map to contents. Contents sort as values do if nothing follows them.
    // Hot: called for every entry, and most parts are plain columns.
    #[inline]
    pub fn facts(&self) -> Facts {
        let is_number = || self.ty().and_then(text::scale_of).is_some();
        match &self.transform {
            Transform::Literal(_) => Facts { decodable: false, ..Facts::EXACT },
            Transform::Column(_) => Facts::ASCENDING,
            Transform::Text(_) if self.is_plain() => Facts::ASCENDING,
            Transform::Lpad { .. } if is_number() => Facts::ASCENDING,
            Transform::Reverse { width: Some(_), .. } if !is_number() => Facts::DERIVED,
            Transform::Text(_)
            | Transform::Rpad { .. }
            | Transform::Reverse { .. }
            | Transform::ReverseBytes(_)
            | Transform::Code { .. } => Facts::EXACT,
            Transform::MaxMinus { .. } => Facts::DESCENDING,
            Transform::ToChar { .. } => match &self.time {
                Some(format) if format.decodable() && format.sorts() => Facts::ASCENDING,
                Some(format) if format.decodable() => Facts::EXACT,
                _ => Facts::DERIVED,
            },
            Transform::Lpad { .. }
            | Transform::Md5Hex { .. }
            | Transform::Md5(_)
            | Transform::Modulo { .. }
            | Transform::Md5Bucket { .. }
            | Transform::Random { .. } => Facts::DERIVED,
        }
    }

    /// Appends the content of one column's value, which is not NULL.
    pub fn put(&self, value: ValueRef<'_>, out: &mut Vec<u8>) -> Result<(), Rule> {
        let Some(ty) = self.ty() else { return Err(Rule::Drawn) };
        let input = Input::new(ty, value)?;
        match (&self.transform, &input) {
            (Transform::Code { codes, .. }, Input::Text(name)) => put_code(codes, name, out),
            (Transform::Md5Hex { from, len, .. }, _) => {
                put_hex(&hash([input.value()].into_iter()), (*from).into(), (*len).into(), out);
                Ok(())
            }
            (Transform::Md5(_), _) => {
                out.extend_from_slice(&hash([input.value()].into_iter()));
                Ok(())
            }
            (Transform::Text(_), _) => text::put_text(input.value(), out),
            (Transform::Reverse { width: None, .. }, Input::Number(..)) => {
                let start = out.len();
                text::put_text(input.value(), out)?;
                out[start..].reverse();
                Ok(())
            }
            (_, Input::Number(_, n)) => self.put_number(*n, out),
            (_, Input::Text(t)) => self.put_string(t, out),
            (_, Input::Bytes(bytes)) => {
                out.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Appends the content of a number's ordinal; also used for bounds.
    pub fn put_number(&self, n: i128, out: &mut Vec<u8>) -> Result<(), Rule> {
        let ty = self.ty().unwrap_or(ColumnType::BigInt);
        let (binary, scale) = (scalar::width(ty).unwrap_or(8), text::scale_of(ty).unwrap_or(0));
        match &self.transform {
            Transform::ReverseBytes(_) => {
                let start = out.len();
                scalar::put(binary, n, out);
                out[start..].reverse();
                Ok(())
            }
            Transform::Lpad { width, .. } => text::put_digits(n, scale, *width, out),
            Transform::Reverse { width: Some(width), .. } => {
                let start = out.len();
                text::put_digits(n, scale, *width, out)?;
                out[start..].reverse();
                Ok(())
            }
            Transform::MaxMinus { max, width, .. } => {
                let left = i128::from(*max) - n;
                match width {
                    Some(_) if left < 0 => Err(Rule::AboveMax(*max)),
                    Some(width) => text::put_digits(left, 0, *width, out),
                    None if i64::try_from(left).is_err() => {
                        Err(Rule::Range("64 bits, once subtracted".into()))
                    }
                    None => {
                        scalar::put(8, left, out);
                        Ok(())
                    }
                }
            }
            Transform::Modulo { buckets, .. } => {
                put_bucket(n.rem_euclid((*buckets).into()) as u32, *buckets, out)
            }
            Transform::ToChar { .. } => self.put_time(ty, n, out),
            _ => {
                scalar::put(binary, n, out);
                Ok(())
            }
        }
    }

    fn put_time(&self, ty: ColumnType, n: i128, out: &mut Vec<u8>) -> Result<(), Rule> {
        let Some(format) = &self.time else { return Err(Rule::Drawn) };
        let (min, max) = self.domain();
        if !(min..=max).contains(&n) {
            return Err(Rule::Year);
        }
        let time = text::time_of(ty, n).ok_or(Rule::Year)?;
        if format.decodable() && format.floor(time) != time {
            return Err(Rule::Finer(format.pattern().to_owned()));
        }
        format.put(time, out);
        Ok(())
    }

    fn put_string(&self, t: &str, out: &mut Vec<u8>) -> Result<(), Rule> {
        match &self.transform {
            Transform::Lpad { width, pad, .. } => {
                let fill = text::fill(t, *width)?;
                text::put_pads(*pad, fill, out);
                out.extend_from_slice(t.as_bytes());
            }
            Transform::Rpad { width, pad, .. } => {
                let fill = text::fill(t, *width)?;
                if t.ends_with(*pad) {
                    return Err(Rule::EndsInPad(*pad));
                }
                out.extend_from_slice(t.as_bytes());
                text::put_pads(*pad, fill, out);
            }
            Transform::Reverse { width, .. } => {
                let fill = width.map_or(Ok(0), |width| text::fill(t, width))?;
                text::put_reversed(t, out);
                text::put_pads('0', fill, out);
            }
            _ => out.extend_from_slice(t.as_bytes()),
        }
        Ok(())
    }

    /// The ordinals that the form can hold, among those of its column's type.
    pub fn domain(&self) -> (i128, i128) {
        let Some(ty) = self.ty() else { return (0, -1) };
        let (min, max) = scalar::domain(ty);
        let (low, high) = match &self.transform {
            Transform::Lpad { width, .. } | Transform::Reverse { width: Some(width), .. } => {
                (0, text::greatest(*width, text::scale_of(ty).unwrap_or(0)))
            }
            Transform::MaxMinus { max, width, .. } => {
                let max = i128::from(*max);
                match width {
                    Some(width) => (max.saturating_sub(text::greatest(*width, 0)), max),
                    None => (max - i128::from(i64::MAX), max - i128::from(i64::MIN)),
                }
            }
            // 0000-01-01 and 9999-12-31.
            Transform::ToChar { .. } if ty == ColumnType::Date => (FIRST_DAY, LAST_DAY),
            Transform::ToChar { .. } => (FIRST_DAY * DAY_US, (LAST_DAY + 1) * DAY_US - 1),
            _ => (min, max),
        };
        (min.max(low), max.min(high))
    }

    /// Passes the value that a content encodes to `f`; `None` if it is invalid, or the form cannot be
    /// decoded.
    pub fn get(&self, content: &[u8], f: &mut dyn FnMut(ValueRef<'_>)) -> Option<()> {
        let ty = self.ty()?;
        match &self.transform {
            Transform::Column(_) if ty == ColumnType::Varbinary => f(ValueRef::Bytes(content)),
            Transform::Column(_) | Transform::Text(_) if self.is_plain() => {
                f(ValueRef::Text(std::str::from_utf8(content).ok()?));
            }
            Transform::Text(_) => f(text::read_text(ty, std::str::from_utf8(content).ok()?)?),
            Transform::Rpad { pad, .. } => {
                f(ValueRef::Text(std::str::from_utf8(content).ok()?.trim_end_matches(*pad)));
            }
            Transform::Reverse { width: None, .. } => {
                let mut turned = Vec::with_capacity(content.len());
                text::put_reversed(std::str::from_utf8(content).ok()?, &mut turned);
                f(text::read_text(ty, std::str::from_utf8(&turned).ok()?)?);
            }
            Transform::Code { codes, .. } => {
                let (name, _) = codes.iter().find(|(_, code)| code.as_bytes() == content)?;
                f(ValueRef::Text(name));
            }
            _ => f(scalar::value(ty, self.get_number(ty, content)?)?),
        }
        Some(())
    }

    fn get_number(&self, ty: ColumnType, content: &[u8]) -> Option<i128> {
        let scale = text::scale_of(ty).unwrap_or(0);
        match &self.transform {
            Transform::Column(_) => Some(scalar::take(content)),
            Transform::ReverseBytes(_) => text::turned(content, |bytes| Some(scalar::take(bytes))),
            Transform::Lpad { .. } => text::read_digits(content, scale),
            Transform::Reverse { .. } => text::turned(content, |bytes| text::read_digits(bytes, scale)),
            Transform::MaxMinus { max, width, .. } => {
                let left = match width {
                    Some(_) => text::read_digits(content, 0)?,
                    None => scalar::take(content),
                };
                i128::from(*max).checked_sub(left)
            }
            Transform::ToChar { .. } => {
                let format = self.time.as_ref().filter(|format| format.decodable())?;
                let time = format.parse_time(std::str::from_utf8(content).ok()?)?;
                Some(text::time_ordinal(ty, time))
            }
            _ => None,
        }
    }
}

/// Days from 1970-01-01 to 0000-01-01 and 9999-12-31.
const FIRST_DAY: i128 = -719_528;
const LAST_DAY: i128 = 2_932_896;
const DAY_US: i128 = 86_400_000_000;

fn put_code(codes: &[(String, String)], name: &str, out: &mut Vec<u8>) -> Result<(), Rule> {
    match codes.iter().find(|(known, _)| known == name) {
        Some((_, code)) => {
            out.extend_from_slice(code.as_bytes());
            Ok(())
        }
        None => Err(Rule::NoCode(codes.iter().map(|(known, _)| known.clone()).collect())),
    }
}

/// Digits of a bucket number (count): those of the last bucket.
pub(super) fn bucket_width(buckets: u32) -> u16 {
    (buckets.max(2) - 1).ilog10() as u16 + 1
}

/// Appends a bucket number as text.
pub(super) fn put_bucket(bucket: u32, buckets: u32, out: &mut Vec<u8>) -> Result<(), Rule> {
    text::put_digits(bucket.into(), 0, bucket_width(buckets), out)
}

/// The bucket of `md5_bucket(values, buckets)` as its part writes it: decimal text, as wide as `buckets - 1`.
/// `buckets` is at least 1.
pub fn md5_bucket<'a>(values: impl Iterator<Item = ValueRef<'a>>, buckets: u32) -> String {
    let width = usize::from(bucket_width(buckets));
    format!("{:0width$}", bucket_of(values, buckets))
}

/// Hex digits of an MD5 (count).
pub const MD5_DIGITS: u8 = 32;

/// The hex digits of `md5(value)`.
pub fn md5_digits(value: ValueRef<'_>) -> String {
    let mut digits = String::with_capacity(MD5_DIGITS.into());
    put_md5_digits(value, &mut digits);
    digits
}

/// Appends the hex digits of `md5(value)`.
pub fn put_md5_digits(value: ValueRef<'_>, out: &mut String) {
    let digest = hash(std::iter::once(value));
    out.extend((0..32).map(|at| char::from(hex_digit(&digest, at))));
}

/// The bucket of several columns' values, none NULL: the first 8 bytes of their hash, modulo `buckets`.
pub(super) fn bucket_of<'a>(values: impl Iterator<Item = ValueRef<'a>>, buckets: u32) -> u32 {
    let digest = hash(values);
    let (head, _) = digest.split_at(8);
    let number = head.iter().fold(0u64, |n, &b| n << 8 | u64::from(b));
    (number % u64::from(buckets.max(1))) as u32
}

/// `value` as its column stores it, for hashing, so that equal values have one text form.
pub(super) fn normal<'a>(ty: ColumnType, value: ValueRef<'a>) -> Result<ValueRef<'a>, Rule> {
    Ok(Input::new(ty, value)?.value())
}

/// MD5 of the text forms of `values`, joined by 00 bytes.
fn hash<'a>(values: impl Iterator<Item = ValueRef<'a>>) -> [u8; 16] {
    struct Feed<'m>(&'m mut Md5);
    impl std::fmt::Write for Feed<'_> {
        fn write_str(&mut self, s: &str) -> std::fmt::Result {
            self.0.update(s.as_bytes());
            Ok(())
        }
    }
    let mut md5 = Md5::new();
    for (i, value) in values.enumerate() {
        if i > 0 {
            md5.update([0]);
        }
        // Feeding a hash does not fail.
        let _ = write!(Feed(&mut md5), "{value}");
    }
    md5.finalize().into()
}

fn put_hex(digest: &[u8; 16], from: usize, len: usize, out: &mut Vec<u8>) {
    out.extend((from..from + len).map(|at| hex_digit(digest, at)));
}

fn hex_digit(digest: &[u8; 16], at: usize) -> u8 {
    let byte = digest[at / 2];
    let digit = if at.is_multiple_of(2) { byte >> 4 } else { byte & 15 };
    b"0123456789abcdef"[usize::from(digit)]
}
