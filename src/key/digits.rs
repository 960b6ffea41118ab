//! The width and alphabet of a part's bytes, for judging layouts and cutting regions.

use super::layout::KeyLayout;
use super::part::KeyPart;
use super::text;
use super::transform::{Shape, Transform, bucket_width};
use crate::value::{ColumnType, Literal, ValueRef};

/// The numbers that a part's text can be: `0..count`, written in `radix` with `width` digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digits {
    /// 10 or 16, in lower case.
    pub radix: u32,
    /// Digits of every number (count).
    pub width: usize,
    /// How many numbers there are.
    pub count: u128,
}

impl Digits {
    /// All numbers of `width` digits; more than 31 hex or 38 decimal digits count as that many.
    pub fn all(radix: u32, width: usize) -> Digits {
        let width = width.min(if radix == 16 { 31 } else { 38 });
        Digits { radix, width, count: u128::from(radix).pow(width as u32) }
    }

    /// One of the numbers as text.
    pub fn write(self, n: u128) -> String {
        let width = self.width;
        if self.radix == 16 { format!("{n:0width$x}") } else { format!("{n:0width$}") }
    }
}

/// A part that pads values to a fixed width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pad {
    /// Characters of every value.
    pub width: u16,
    /// The values are numbers.
    pub number: bool,
}

impl KeyPart {
    /// The digits of its values; `None` if the part is something else, or inverted.
    pub fn digits(&self) -> Option<Digits> {
        let Shape::Text(width) = self.form.shape() else { return None };
        if self.descending {
            return None;
        }
        match &self.form.transform {
            Transform::Md5Hex { .. } => Some(Digits::all(16, width)),
            transform => match transform.buckets() {
                Some(buckets) => {
                    let width = bucket_width(buckets).into();
                    Some(Digits { radix: 10, width, count: buckets.into() })
                }
                None => self.pad().filter(|pad| pad.number).map(|_| Digits::all(10, width)),
            },
        }
    }

    /// The width that values are padded to.
    pub fn pad(&self) -> Option<Pad> {
        let number = self.form.ty().and_then(text::scale_of).is_some();
        match self.form.transform {
            Transform::Lpad { width, .. }
            | Transform::Rpad { width, .. }
            | Transform::Reverse { width: Some(width), .. } => Some(Pad { width, number }),
            _ => None,
        }
    }

    /// The part's SQL with another pad width, for the column `name`; unchanged if it has no pad.
    pub fn sql_padded_to(&self, name: &str, width: u16) -> String {
        let with = |pad: char, usual: char| match pad == usual {
            true => String::new(),
            false => format!(", {}", Literal(ValueRef::Text(pad.encode_utf8(&mut [0; 4])))),
        };
        match self.form.transform {
            Transform::Lpad { pad, .. } => format!("lpad({name}, {width}{})", with(pad, '0')),
            Transform::Rpad { pad, .. } => format!("rpad({name}, {width}{})", with(pad, ' ')),
            Transform::Reverse { width: Some(_), .. } => format!("reverse(lpad({name}, {width}))"),
            _ => self.sql.clone(),
        }
    }

    /// Are its bytes distributed evenly, as those of a hash or a byte-reversed number?
    pub fn is_even(&self) -> bool {
        let bytes = matches!(self.form.transform, Transform::Md5(_) | Transform::ReverseBytes(_));
        let uuid =
            matches!(self.form.transform, Transform::Column(_)) && self.form.ty() == Some(ColumnType::Uuid);
        (bytes || uuid) && !self.descending
    }

    /// Is it its column's text unchanged, so that it is as long as the value?
    pub fn is_plain_text(&self) -> bool {
        self.form.is_plain() && self.form.ty().is_some_and(|ty| ty.is_text())
    }
}

impl KeyLayout {
    /// The first part that is no delimiter, with its index.
    pub fn leading(&self) -> Option<(usize, &KeyPart)> {
        self.parts().iter().enumerate().find(|(_, part)| !part.is_literal())
    }
}
