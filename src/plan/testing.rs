//! A table for tests, and rows that predicates can be evaluated on.

use super::predicate::{Field, RowView};
use crate::error::Result;
use crate::key::{ColumnId, ColumnInfo, KeyLayout, LayoutError, PartSpec, Tail, Transform};
use crate::value::{ColumnType, Value, ValueRef};

/// Columns of the table, each of another type.
pub(super) const COLUMNS: [(&str, ColumnType); 7] = [
    ("n", ColumnType::Integer),
    ("t", ColumnType::Varchar),
    ("b", ColumnType::Boolean),
    ("ts", ColumnType::Timestamp),
    ("d", ColumnType::Double),
    ("m", ColumnType::Decimal { precision: 3, scale: 1 }),
    ("s", ColumnType::Varchar),
];

pub(super) const N: ColumnId = ColumnId(0);
pub(super) const T: ColumnId = ColumnId(1);
pub(super) const B: ColumnId = ColumnId(2);
pub(super) const TS: ColumnId = ColumnId(3);
pub(super) const D: ColumnId = ColumnId(4);
pub(super) const M: ColumnId = ColumnId(5);
pub(super) const S: ColumnId = ColumnId(6);

pub(super) fn layout(
    parts: Vec<PartSpec>,
    nullable: [bool; COLUMNS.len()],
    tail: Tail,
) -> Result<KeyLayout, LayoutError> {
    let info = |c: ColumnId| {
        let at = usize::from(c.0);
        ColumnInfo { name: COLUMNS[at].0, ty: COLUMNS[at].1, nullable: nullable[at], identity: false }
    };
    KeyLayout::new(parts, &info, tail)
}

pub(super) fn asc(transform: Transform) -> PartSpec {
    PartSpec { sql: format!("{transform:?}"), transform, descending: false }
}

pub(super) fn desc(transform: Transform) -> PartSpec {
    PartSpec { descending: true, ..asc(transform) }
}

pub(super) fn lit(text: &str) -> PartSpec {
    asc(Transform::Literal(text.into()))
}

pub(super) fn name(field: Field) -> String {
    match field {
        Field::Column(c) => COLUMNS[usize::from(c.0)].0.into(),
        Field::Rowkey => "rowkey".into(),
        Field::PrimaryRowkey => "primary_rowkey".into(),
    }
}

pub(super) fn encode(layout: &KeyLayout, row: &[Value], entropy: u64) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    layout.encode(row, &|c| COLUMNS[usize::from(c.0)].0, entropy, &mut key).ok()?;
    Some(key)
}

/// A row, its layout's bytes, and an index entry's pointer.
pub(super) struct Row {
    pub(super) values: Vec<Value>,
    pub(super) rowkey: Value,
    pub(super) pointer: Vec<u8>,
}

impl RowView for Row {
    fn field(&self, field: Field) -> Result<ValueRef<'_>> {
        Ok(match field {
            Field::Column(c) => self.values[usize::from(c.0)].as_ref(),
            Field::Rowkey => self.rowkey.as_ref(),
            Field::PrimaryRowkey => ValueRef::Bytes(&self.pointer),
        })
    }
}

/// Layout bytes as the pseudo-column shows them.
pub(super) fn rowkey(layout: &KeyLayout, bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) if layout.is_text() => Value::Text(text.into()),
        _ => Value::Bytes(bytes.to_vec()),
    }
}
