//! What a part says of its width and its alphabet, for whoever judges a layout.

use super::layout::KeyLayout;
use super::part::KeyPart;
use super::text;
use super::transform::{Shape, Transform, bucket_width};
use crate::value::ColumnType;

/// The numbers that a part's text can be: `0..count`, written in `radix` with `width` digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digits {
    /// 10 or 16, in lower case.
    pub radix: u32,
    /// Digits of every number.
    pub width: usize,
    /// How many numbers there are.
    pub count: u128,
}

impl Digits {
    /// All numbers of so many digits; more than 31 hex or 38 decimal digits count as that many.
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

/// A part that fills values up to a fixed width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pad {
    /// Characters of every value.
    pub width: u16,
    /// The values are numbers.
    pub number: bool,
}

impl KeyPart {
    /// The digits that its values are; `None` for a part that is something else, or inverted.
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

    /// The width that values are filled up to.
    pub fn pad(&self) -> Option<Pad> {
        let number = self.form.ty().and_then(text::scale_of).is_some();
        match self.form.transform {
            Transform::Lpad { width, .. }
            | Transform::Rpad { width, .. }
            | Transform::Reverse { width: Some(width), .. } => Some(Pad { width, number }),
            _ => None,
        }
    }

    /// The SQL of the same part with another width, of the column called `name`; as it is, if it has none.
    pub fn sql_padded_to(&self, name: &str, width: u16) -> String {
        let with = |pad: char, usual: char| if pad == usual { String::new() } else { format!(", '{pad}'") };
        match self.form.transform {
            Transform::Lpad { pad, .. } => format!("lpad({name}, {width}{})", with(pad, '0')),
            Transform::Rpad { pad, .. } => format!("rpad({name}, {width}{})", with(pad, ' ')),
            Transform::Reverse { width: Some(_), .. } => format!("reverse(lpad({name}, {width}))"),
            _ => self.sql.clone(),
        }
    }

    /// It is one of some buckets, which [`KeyPart::fan_out`] lists.
    pub fn has_buckets(&self) -> bool {
        self.form.transform.buckets().is_some()
    }

    /// Its bytes take all values alike: those of a hash, or of a number turned around.
    pub fn is_even(&self) -> bool {
        let bytes = matches!(self.form.transform, Transform::Md5(_) | Transform::ReverseBytes(_));
        let uuid =
            matches!(self.form.transform, Transform::Column(_)) && self.form.ty() == Some(ColumnType::Uuid);
        (bytes || uuid) && !self.descending
    }

    /// Text of its column as it is, so that its bytes are as many as the value has.
    pub fn is_plain_text(&self) -> bool {
        self.form.is_plain() && self.form.ty().is_some_and(|ty| ty.is_text())
    }
}

impl KeyLayout {
    /// The first part that is no delimiter, with its place among the parts.
    pub fn leading(&self) -> Option<(usize, &KeyPart)> {
        self.parts().iter().enumerate().find(|(_, part)| !part.is_literal())
    }
}
