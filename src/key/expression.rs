//! Key parts as the expressions that they compute, so that a condition on the expression bounds the part.
//!
//! `lpad(id, 4) = '0007'` says what the bytes of the part `lpad(id, 4)` are. A [`PartExpr`] has the value that a query
//! computes for any row, also for one that the part cannot hold (SQL cuts texts that are too long, and remainders may be
//! negative). For each row that the part does hold, its content is that value's text; only `max - col`, `md5(col)` and
//! `col % n` are stored in another form.

use std::ops::Bound;

use super::image::{Cut, Image, Interval, Span};
use super::part::KeyPart;
use super::text;
use super::transform::{ColumnId, Form, Shape, Transform, md5_bucket, md5_digits, put_bucket};
use crate::value::{ColumnType, Value, ValueRef, datetime_of};

/// The expression of a key part, over the columns of one row.
#[derive(Clone, Debug)]
pub struct PartExpr {
    form: Form,
    sql: String,
}

impl PartialEq for PartExpr {
    fn eq(&self, other: &PartExpr) -> bool {
        self.form == other.form
    }
}

impl PartExpr {
    /// The expression of a part; `None` if it is a column, a delimiter or random, or a query cannot write it.
    pub fn of(part: &KeyPart) -> Option<PartExpr> {
        let ty = part.form.ty()?;
        let (is_number, is_text) = (text::scale_of(ty).is_some(), ty == ColumnType::Varchar);
        let is_known = match &part.form.transform {
            Transform::Lpad { .. } | Transform::Reverse { width: Some(_), .. } => is_number || is_text,
            Transform::Rpad { .. } | Transform::Code { .. } => is_text,
            Transform::Reverse { width: None, .. }
            | Transform::MaxMinus { .. }
            | Transform::Modulo { .. } => ty.is_integer(),
            // A key drops the sign of zeros.
            Transform::Md5Hex { .. } | Transform::Md5(_) | Transform::Md5Bucket { .. } => {
                use ColumnType::{Double, Json, Real};
                !part.form.types.iter().any(|ty| matches!(ty, Real | Double | Json))
            }
            Transform::ToChar { .. } => part.form.time.is_some(),
            Transform::Literal(_)
            | Transform::Column(_)
            | Transform::Text(_)
            | Transform::ReverseBytes(_)
            | Transform::Random { .. } => false,
        };
        is_known.then(|| PartExpr { form: part.form.clone(), sql: part.sql().to_owned() })
    }

    /// What it computes.
    pub fn transform(&self) -> &Transform {
        &self.form.transform
    }

    /// Its columns.
    pub fn columns(&self) -> &[ColumnId] {
        self.form.transform.columns()
    }

    /// Its SQL, as the key has it.
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// Type of its values: a text, or a number.
    pub fn ty(&self) -> ColumnType {
        match self.form.transform {
            Transform::Modulo { .. } | Transform::MaxMinus { width: None, .. } => ColumnType::BigInt,
            _ => ColumnType::Varchar,
        }
    }

    /// Number of buckets, if its values are buckets.
    pub fn buckets(&self) -> Option<u32> {
        self.form.transform.buckets()
    }

    /// Its value, as a query computes it, for these values of its columns. NULL for a name without a code, too.
    pub fn value(&self, of: &[ValueRef<'_>]) -> Value {
        let [first, ..] = of else { return Value::Null };
        if of.iter().any(|value| value.is_null()) {
            return Value::Null;
        }
        match &self.form.transform {
            Transform::Lpad { width, pad, .. } => Value::Text(padded(*first, *width, *pad)),
            Transform::Rpad { width, pad, .. } => {
                let text = first.to_string();
                let pads = std::iter::repeat(*pad);
                Value::Text(text.chars().chain(pads).take((*width).into()).collect())
            }
            Transform::Reverse { width, .. } => {
                let text = width.map_or_else(|| first.to_string(), |width| padded(*first, width, '0'));
                Value::Text(reversed(&text))
            }
            Transform::MaxMinus { max, width, .. } => {
                let ValueRef::Int(n) = first else { return Value::Null };
                match (max.checked_sub(*n), width) {
                    (None, _) => Value::Null,
                    (Some(left), None) => Value::Int(left),
                    (Some(left), Some(width)) => Value::Text(padded(ValueRef::Int(left), *width, '0')),
                }
            }
            Transform::Md5Hex { from, len, .. } => {
                let (from, len) = (usize::from(*from), usize::from(*len));
                Value::Text(md5_digits(*first)[from..from + len].to_owned())
            }
            Transform::Md5(_) => Value::Text(md5_digits(*first)),
            Transform::Md5Bucket { buckets, .. } => Value::Text(md5_bucket(of.iter().copied(), *buckets)),
            Transform::Modulo { buckets, .. } => match first {
                ValueRef::Int(n) => Value::Int(n % i64::from(*buckets)),
                _ => Value::Null,
            },
            Transform::ToChar { .. } => self.shown_time(*first).map_or(Value::Null, Value::Text),
            Transform::Code { codes, .. } => {
                let found = codes.iter().find(|(name, _)| ValueRef::Text(name) == *first);
                found.map_or(Value::Null, |(_, code)| Value::Text(code.clone()))
            }
            Transform::Literal(_)
            | Transform::Column(_)
            | Transform::Text(_)
            | Transform::ReverseBytes(_)
            | Transform::Random { .. } => Value::Null,
        }
    }

    fn shown_time(&self, of: ValueRef<'_>) -> Option<String> {
        let us = match of {
            ValueRef::Timestamp(us) | ValueRef::TimestampTz(us) => us,
            ValueRef::Date(days) => i64::from(days).checked_mul(crate::value::US_PER_DAY)?,
            _ => return None,
        };
        let mut shown = Vec::new();
        self.form.time.as_ref()?.put(datetime_of(us)?, &mut shown);
        String::from_utf8(shown).ok()
    }

    /// The only value of its column for which it has this value; `Some(None)`: there is none. `None`: several values of
    /// the column may have it, or that is not known.
    pub fn undone(&self, value: &Value) -> Option<Option<Value>> {
        if let (Transform::MaxMinus { max, width: None, .. }, Value::Int(left)) =
            (&self.form.transform, value)
        {
            return max.checked_sub(*left).map(|n| Some(Value::Int(n)));
        }
        let Value::Text(shown) = value else { return None };
        let of_number =
            |shown: &str| self.form.ty()?.is_integer().then(|| shown.parse().ok().map(Value::Int));
        let found = match &self.form.transform {
            Transform::Lpad { pad: '0', .. } => of_number(shown)?,
            Transform::Reverse { .. } => of_number(&reversed(shown))?,
            Transform::MaxMinus { max, width: Some(_), .. } => {
                let left: Option<i64> = shown.parse().ok();
                left.and_then(|left| max.checked_sub(left)).map(Value::Int)
            }
            Transform::Code { codes, .. } => {
                let name = codes.iter().find(|(_, code)| code == shown);
                name.map(|(name, _)| Value::Text(name.clone()))
            }
            _ => return None,
        };
        // A number may have been written otherwise, such as `+7`.
        Some(found.filter(|found| self.value(&[found.as_ref()]) == *value))
    }

    /// Is it an error for some values of its column, as `code` is for other names?
    pub fn is_partial(&self) -> bool {
        matches!(self.form.transform, Transform::Code { .. })
    }

    /// Rows that have one value of it are all rows with the same content.
    pub fn is_content(&self) -> bool {
        // A bucket has negative remainders, too.
        !matches!(self.form.transform, Transform::Modulo { .. })
    }
}

/// `lpad(value, width, pad)`: a longer text is cut, a longer number is not, and its sign stays in front.
fn padded(value: ValueRef<'_>, width: u16, pad: char) -> String {
    let (text, width) = (value.to_string(), usize::from(width));
    let len = text.chars().count();
    let is_text = matches!(value, ValueRef::Text(_));
    if len >= width {
        return if is_text { text.chars().take(width).collect() } else { text };
    }
    let (sign, digits) = text.split_at(usize::from(!is_text && text.starts_with('-')));
    let pads: String = std::iter::repeat_n(pad, width - len).collect();
    format!("{sign}{pads}{digits}")
}

/// The characters of a text, last one first.
pub fn reversed(text: &str) -> String {
    text.chars().rev().collect()
}

/// What a condition on a part's expression says of its bytes.
impl KeyPart {
    /// Is this its expression?
    pub fn computes(&self, expr: &PartExpr) -> bool {
        self.form == expr.form
    }

    /// The part's bytes in every row for which its expression has this value; `Some(None)`: there is no such row. `None`
    /// if this part cannot say.
    pub fn bytes_of_result(&self, value: &Value) -> Option<Option<Vec<u8>>> {
        let content = match (&self.form.transform, value) {
            (Transform::Modulo { buckets, .. }, Value::Int(n)) => {
                let count = i64::from(*buckets);
                let mut content = Vec::new();
                let put = put_bucket(n.rem_euclid(count) as u32, *buckets, &mut content);
                (put.is_ok() && n.unsigned_abs() < u64::from(*buckets)).then_some(content)
            }
            (Transform::Md5(_), Value::Text(digits)) => bytes_of_hex(digits),
            (_, Value::Text(text)) => {
                let (len, width) = self.result_width(text)?;
                (len == width && !text.contains('\0')).then(|| text.clone().into_bytes())
            }
            _ => return None,
        };
        Some(content.map(|content| self.enclosed(content)))
    }

    /// The range of every row whose expression lies in `interval`; `None` if this part cannot bound intervals of it.
    pub fn image_of_results(&self, interval: &Interval) -> Option<Image> {
        let lower = match &interval.lower {
            Bound::Unbounded => Cut::First,
            Bound::Included(value) => self.cut_at(value, false)?,
            Bound::Excluded(value) => self.cut_at(value, true)?,
        };
        let upper = match &interval.upper {
            Bound::Unbounded => Cut::Last,
            Bound::Included(value) => self.cut_at(value, true)?,
            Bound::Excluded(value) => self.cut_at(value, false)?,
        };
        Some(self.image_of(Span::exact(lower, upper)))
    }

    /// The position before or after the contents that are a text; all contents have one width.
    fn cut_at(&self, value: &Value, after: bool) -> Option<Cut> {
        let Value::Text(text) = value else { return None };
        let (len, width) = self.result_width(text)?;
        if text.is_empty() {
            return Some(Cut::First);
        }
        Some(match len.cmp(&width) {
            // A longer text comes after the content that it starts with.
            std::cmp::Ordering::Greater => {
                let start: Vec<u8> = match self.form.shape() {
                    Shape::Chars(_) => text.chars().take(width).collect::<String>().into_bytes(),
                    _ => text.as_bytes().get(..width)?.to_vec(),
                };
                Cut::After(start)
            }
            std::cmp::Ordering::Equal if after => Cut::After(text.as_bytes().to_vec()),
            _ => Cut::Before(text.as_bytes().to_vec()),
        })
    }

    /// Length of a text, in the unit of the part's width, and that width; `None` if contents are no texts of one width.
    fn result_width(&self, text: &str) -> Option<(usize, usize)> {
        match self.form.shape() {
            Shape::Text(width) => Some((text.len(), width)),
            Shape::Chars(width) => Some((text.chars().count(), width.into())),
            Shape::Binary(_) | Shape::Variable => None,
        }
    }
}

/// The 16 bytes of an MD5 in lower case.
fn bytes_of_hex(digits: &str) -> Option<Vec<u8>> {
    let is_hex = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    if digits.len() != 32 || !digits.bytes().all(is_hex) {
        return None;
    }
    let byte = |at: usize| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok();
    (0..16).map(byte).collect()
}
