//! Helpers to write layouts in tests.

use super::{ColumnId, ColumnInfo, KeyLayout, LayoutError, PartSpec, Tail, Transform, Warning};
use crate::value::{ColumnType, Value, ValueRef};

/// A table's columns (name, type, nullable), for tests; column `n` is the `n`th.
pub(super) struct Table(pub Vec<(&'static str, ColumnType, bool)>);

impl Table {
    /// NOT NULL columns.
    pub fn new(columns: &[(&'static str, ColumnType)]) -> Table {
        Table(columns.iter().map(|&(name, ty)| (name, ty, false)).collect())
    }

    pub fn info(&self, c: ColumnId) -> ColumnInfo<'static> {
        let (name, ty, nullable) = self.0[usize::from(c.0)];
        ColumnInfo { name, ty, nullable, identity: name == "identity" }
    }

    pub fn layout(&self, parts: Vec<PartSpec>, tail: Tail) -> Result<KeyLayout, LayoutError> {
        KeyLayout::new(parts, &|c| self.info(c), tail)
    }

    /// A primary-key layout, which must be valid.
    pub fn primary(&self, parts: Vec<PartSpec>) -> KeyLayout {
        self.layout(parts, Tail::Nothing).unwrap()
    }

    pub fn warnings(&self, layout: &KeyLayout) -> Vec<Warning> {
        layout.warnings(&|c| self.info(c))
    }

    pub fn key(&self, layout: &KeyLayout, row: &[Value]) -> Vec<u8> {
        self.try_key(layout, row).unwrap()
    }

    pub fn try_key(&self, layout: &KeyLayout, row: &[Value]) -> Result<Vec<u8>, crate::error::Error> {
        let mut out = b"before".to_vec();
        match layout.encode(row, &|c| self.info(c).name, 5, &mut out) {
            Ok(()) => Ok(out.split_off(6)),
            Err(error) => {
                assert_eq!(out, b"before", "an error leaves the buffer alone");
                Err(error.into())
            }
        }
    }

    /// The key of a text layout, as text.
    pub fn text_key(&self, layout: &KeyLayout, row: &[Value]) -> String {
        assert!(layout.is_text(), "{layout:?}");
        String::from_utf8(self.key(layout, row)).unwrap()
    }
}

pub(super) fn asc(transform: Transform) -> PartSpec {
    PartSpec { sql: format!("{transform:?}"), transform, descending: false }
}

pub(super) fn desc(transform: Transform) -> PartSpec {
    PartSpec { descending: true, ..asc(transform) }
}

pub(super) fn sql(sql: &str, transform: Transform) -> PartSpec {
    PartSpec { sql: sql.to_owned(), transform, descending: false }
}

pub(super) fn col(n: u16) -> Transform {
    Transform::Column(ColumnId(n))
}

pub(super) fn text_of(n: u16) -> Transform {
    Transform::Text(ColumnId(n))
}

pub(super) fn lit(text: &str) -> Transform {
    Transform::Literal(text.to_owned())
}

pub(super) fn lpad(n: u16, width: u16) -> Transform {
    Transform::Lpad { column: ColumnId(n), width, pad: '0' }
}

pub(super) fn rpad(n: u16, width: u16, pad: char) -> Transform {
    Transform::Rpad { column: ColumnId(n), width, pad }
}

pub(super) fn reverse(n: u16, width: impl Into<Option<u16>>) -> Transform {
    Transform::Reverse { column: ColumnId(n), width: width.into() }
}

pub(super) fn max_minus(max: i64, n: u16, width: impl Into<Option<u16>>) -> Transform {
    Transform::MaxMinus { column: ColumnId(n), max, width: width.into() }
}

pub(super) fn md5_hex(n: u16, from: u8, len: u8) -> Transform {
    Transform::Md5Hex { column: ColumnId(n), from, len }
}

pub(super) fn to_char(n: u16, format: &str) -> Transform {
    Transform::ToChar { column: ColumnId(n), format: format.to_owned() }
}

pub(super) fn code(n: u16, codes: &[(&str, &str)]) -> Transform {
    let codes = codes.iter().map(|&(name, code)| (name.to_owned(), code.to_owned())).collect();
    Transform::Code { column: ColumnId(n), codes }
}

pub(super) fn text(t: &str) -> Value {
    Value::Text(t.to_owned())
}

/// A TIMESTAMP from `YYYY-MM-DD HH:MM:SS[.ffffff]`.
pub(super) fn time(t: &str) -> Value {
    super::text::read_text(ColumnType::Timestamp, t).map(ValueRef::to_value).unwrap()
}
