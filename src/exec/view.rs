//! A view of one stored row as fields: [`Sources`] tell where each is found, and nothing is copied.

use std::cell::OnceCell;
use std::cmp::Ordering;

use super::sources::{FieldOrigin, KeyOrigin, Sources};
use super::spec::ScanSpec;
use super::stored::bad_rowkey;
use crate::access::{Path, Source};
use crate::error::{Error, Result};
use crate::index::EntryParts;
use crate::key::{BadKey, ColumnId, hex};
use crate::plan::{Field, RowView};
use crate::row::{self, PackedRow};
use crate::schema::{IndexDef, TableDef};
use crate::value::{ColumnType, Value, ValueRef, compare_bytes, name_sql};

/// One row in its stored form.
pub struct StoredRowView<'a> {
    spec: &'a ScanSpec,
    sources: &'a Sources,
    /// The table's rowkey.
    pub(super) pointer: &'a [u8],
    /// The part of an index entry's key before the pointer: its own rowkey, if the index is read as a table.
    pub(super) layout: &'a [u8],
    /// Columns decoded from keys, by [`ColumnId`].
    key_values: &'a [Value],
    /// The default family, or what an index entry includes; if it is read.
    pub packed: Option<PackedRow<'a>>,
    /// The other families read, in the order of [`Sources::families`].
    pub others: &'a [Option<PackedRow<'a>>],
    /// The values of [`Sources::formulas`], computed when asked for: for a row that the filter drops, a formula may
    /// fail.
    computed: &'a [OnceCell<Value>],
}

impl<'a> StoredRowView<'a> {
    /// A row of the table without its packed values.
    #[inline(always)]
    pub fn of_row(
        spec: &'a ScanSpec,
        sources: &'a Sources,
        rowkey: &'a [u8],
        scratch: &'a RowScratch,
    ) -> StoredRowView<'a> {
        StoredRowView {
            spec,
            sources,
            pointer: rowkey,
            layout: &[],
            key_values: &scratch.key_values,
            packed: None,
            others: &[],
            computed: &scratch.computed,
        }
    }
}

/// A field of a row, in the form in which it was found.
pub enum StoredField<'a> {
    /// As a value.
    Value(ValueRef<'a>),
    /// In a packed value: the bytes of this column.
    Packed(ColumnId, &'a [u8]),
}

impl StoredRowView<'_> {
    /// A field in its stored form.
    #[inline(always)]
    pub fn find(&self, field: Field) -> Result<StoredField<'_>> {
        let Field::Column(id) = field else { return self.rowkey(field).map(StoredField::Value) };
        let at = usize::from(id.0);
        let packed = match self.sources.slots[at] {
            FieldOrigin::Key(_) => return Ok(StoredField::Value(self.key_values[at].as_ref())),
            FieldOrigin::Packed => self.packed.as_ref(),
            FieldOrigin::Other(place) => self.others.get(place).and_then(Option::as_ref),
            FieldOrigin::Formula(place) => return self.computed(place).map(StoredField::Value),
        };
        if let Some(row) = packed
            && let Some(bytes) = row.bytes(id)
        {
            return Ok(StoredField::Packed(id, bytes));
        }
        Ok(StoredField::Value(ValueRef::Null))
    }

    /// The value of a formula, computed on first use.
    fn computed(&self, place: usize) -> Result<ValueRef<'_>> {
        let cell = &self.computed[place];
        if cell.get().is_none()
            && let Some(formula) = &self.spec.table.column(self.sources.formulas[place]).formula
        {
            let value = formula.eval(self)?;
            return Ok(cell.get_or_init(|| value).as_ref());
        }
        Ok(cell.get().map_or(ValueRef::Null, Value::as_ref))
    }

    fn rowkey(&self, field: Field) -> Result<ValueRef<'_>> {
        rowkey(self.spec, field, self.pointer, self.layout)
    }
}

impl RowView for StoredRowView<'_> {
    #[inline]
    fn field(&self, field: Field) -> Result<ValueRef<'_>> {
        match self.find(field)? {
            StoredField::Value(value) => Ok(value),
            StoredField::Packed(id, bytes) => row::unpack(id, self.spec.table.column(id).ty, bytes),
        }
    }

    #[inline]
    fn compared(&self, field: Field, with: &Value) -> Result<Option<Ordering>> {
        let (id, bytes) = match self.find(field)? {
            StoredField::Value(ValueRef::Null) => return Ok(None),
            StoredField::Value(value) => return Ok(Some(value.cmp(&with.as_ref()))),
            StoredField::Packed(id, bytes) => (id, bytes),
        };
        let ty = self.spec.table.column(id).ty;
        Ok(Some(match (ty, with) {
            // Compares the bytes directly where they need no decoding.
            (ColumnType::Varchar, Value::Text(text)) => compare_bytes(bytes, text.as_bytes()),
            (ColumnType::BigInt, Value::Int(with)) => {
                row::unpack_number(id, ty, bytes)?.cmp(&i128::from(*with))
            }
            (ColumnType::Decimal { scale, .. }, Value::Decimal(with, of)) if *of == scale => {
                row::unpack_number(id, ty, bytes)?.cmp(with)
            }
            _ => row::unpack(id, ty, bytes)?.cmp(&with.as_ref()),
        }))
    }
}

#[cold]
fn bad_entry(index: &IndexDef, key: &[u8], error: &BadKey) -> Error {
    Error::corrupt(format!("a key of index \"{}\" cannot be decoded", index.name))
        .why(format!("{error}; key {}", hex(key)))
        .hint(format!("CHECK INDEX {} lists what is wrong", name_sql(&index.name)))
}

/// The table's rowkey, or the key of an index that is read as a table.
fn rowkey<'a>(spec: &ScanSpec, field: Field, pointer: &'a [u8], layout: &'a [u8]) -> Result<ValueRef<'a>> {
    match spec.source() {
        Source::Index(_, index) if field == Field::Rowkey => key_value(layout, index.layout.is_text()),
        _ => key_value(pointer, spec.table.key.is_text()),
    }
}

/// A row that was found in a single entry.
#[derive(Clone, Copy)]
pub struct OneEntry<'a> {
    /// As in a [`StoredRowView`].
    pub pointer: &'a [u8],
    /// As in a [`StoredRowView`].
    pub layout: &'a [u8],
    /// As in a [`StoredRowView`].
    pub packed: Option<PackedRow<'a>>,
}

impl OneEntry<'_> {
    /// The value of a field, for which [`Sources::is_one_entry`] holds.
    pub fn value(&self, spec: &ScanSpec, field: Field) -> Result<Value> {
        let Field::Column(id) = field else {
            return Ok(rowkey(spec, field, self.pointer, self.layout)?.to_value());
        };
        if let FieldOrigin::Key(_) = spec.places.rows.slots[usize::from(id.0)] {
            return self.key_column(spec, id);
        }
        let value = self.packed.map(|row| row.get(id, spec.table.column(id).ty)).transpose()?;
        Ok(value.flatten().map_or(Value::Null, ValueRef::to_value))
    }

    fn key_column(&self, spec: &ScanSpec, id: ColumnId) -> Result<Value> {
        let table = &spec.table;
        match spec.index().filter(|_| matches!(spec.access.path, Path::IndexOnly(_))) {
            Some(index) if index.layout.decodable().contains(&id) => {
                index.layout.value_in(self.layout, id).map_err(|e| bad_entry(index, self.layout, &e))
            }
            _ => {
                let value = table.key.value_in(self.pointer, id);
                value.map_err(|e| bad_rowkey(table, self.pointer, &e.to_string()))
            }
        }
    }
}

/// A rowkey as a value: text if its layout is text, otherwise bytes.
pub fn key_value(bytes: &[u8], text: bool) -> Result<ValueRef<'_>> {
    if !text {
        return Ok(ValueRef::Bytes(bytes));
    }
    std::str::from_utf8(bytes)
        .map(ValueRef::Text)
        .map_err(|_| Error::corrupt("a text rowkey is not UTF-8").why(format!("key {}", hex(bytes))))
}

/// Decoded key columns and computed values of the current row; reused for the next one.
pub struct RowScratch {
    key_values: Vec<Value>,
    computed: Vec<OnceCell<Value>>,
}

impl RowScratch {
    /// With room for every column.
    pub fn new(table: &TableDef) -> RowScratch {
        RowScratch { key_values: vec![Value::Null; table.columns.len()], computed: Vec::new() }
    }

    /// With room for what `sources` decode from keys.
    pub fn of(table: &TableDef, sources: &Sources) -> RowScratch {
        let decodes = sources.in_layout + sources.in_pointer > 0;
        let columns = if decodes { table.columns.len() } else { 0 };
        RowScratch { key_values: vec![Value::Null; columns], computed: Vec::new() }
    }

    /// Begins a row: decodes the wanted columns of the rowkey.
    #[inline(always)]
    pub fn decode_rowkey(&mut self, spec: &ScanSpec, sources: &Sources, rowkey: &[u8]) -> Result<()> {
        self.begin(sources);
        self.decode_pointer(spec, sources, rowkey)
    }

    #[inline(always)]
    fn begin(&mut self, sources: &Sources) {
        if !sources.formulas.is_empty() {
            self.computed.clear();
            self.computed.resize_with(sources.formulas.len(), OnceCell::new);
        }
    }

    /// Begins a row: decodes only the columns of the rowkey that are compared.
    #[inline(always)]
    pub fn decode_compared(
        &mut self,
        spec: &ScanSpec,
        (sources, compared): (&Sources, &Sources),
        rowkey: &[u8],
    ) -> Result<()> {
        self.begin(sources);
        self.decode_pointer(spec, compared, rowkey)
    }

    /// Decodes the wanted columns of the rowkey.
    #[inline(always)]
    pub fn decode_pointer(&mut self, spec: &ScanSpec, sources: &Sources, rowkey: &[u8]) -> Result<()> {
        if sources.in_pointer > 0 { self.decode_columns_of(spec, sources, rowkey) } else { Ok(()) }
    }

    fn decode_columns_of(&mut self, spec: &ScanSpec, sources: &Sources, rowkey: &[u8]) -> Result<()> {
        let wanted = |id: ColumnId| sources.slots[usize::from(id.0)] == FieldOrigin::Key(KeyOrigin::Pointer);
        let set = &mut |id, value: ValueRef<'_>| self.set(id, value);
        let decoded = spec.table.key.decode_some(rowkey, sources.in_pointer, wanted, set);
        decoded.map(|_| ()).map_err(|e| bad_rowkey(&spec.table, rowkey, &e.to_string()))
    }

    /// Begins an index entry: decodes the wanted columns of its key, and of the rowkey it points at.
    #[inline(always)]
    pub fn decode_entry(
        &mut self,
        spec: &ScanSpec,
        sources: &Sources,
        index: &IndexDef,
        parts: &EntryParts<'_>,
    ) -> Result<()> {
        self.decode_rowkey(spec, sources, parts.pointer)?;
        if sources.in_layout > 0 { self.decode_layout(sources, index, parts) } else { Ok(()) }
    }

    fn decode_layout(&mut self, sources: &Sources, index: &IndexDef, parts: &EntryParts<'_>) -> Result<()> {
        let wanted = |id: ColumnId| sources.slots[usize::from(id.0)] == FieldOrigin::Key(KeyOrigin::Layout);
        let set = &mut |id, value: ValueRef<'_>| self.set(id, value);
        let decoded = index.layout.decode_some(parts.layout, sources.in_layout, wanted, set);
        decoded.map(|_| ()).map_err(|e| bad_entry(index, parts.layout, &e))
    }

    /// Begins a row that is not read: `known` gives the columns that its sources were made for.
    pub fn decode_known(
        &mut self,
        spec: &ScanSpec,
        sources: &Sources,
        rowkey: &[u8],
        known: impl Iterator<Item = (ColumnId, Value)>,
    ) -> Result<()> {
        self.decode_rowkey(spec, sources, rowkey)?;
        for (id, value) in known {
            self.key_values[usize::from(id.0)] = value;
        }
        Ok(())
    }

    fn set(&mut self, id: ColumnId, value: ValueRef<'_>) {
        let place = &mut self.key_values[usize::from(id.0)];
        match (place, value) {
            (Value::Text(old), ValueRef::Text(new)) => {
                old.clear();
                old.push_str(new);
            }
            (Value::Bytes(old), ValueRef::Bytes(new)) => {
                old.clear();
                old.extend_from_slice(new);
            }
            (place, value) => *place = value.to_value(),
        }
    }
}

/// Shows an index entry as a row to `see`.
// A callback, because returning the view would move it, which takes as long as all other work on an entry.
#[inline(always)]
pub fn see_entry<R>(
    spec: &ScanSpec,
    sources: &Sources,
    index: &IndexDef,
    parts: &EntryParts<'_>,
    scratch: &mut RowScratch,
    see: impl FnOnce(&StoredRowView<'_>) -> Result<R>,
) -> Result<R> {
    scratch.decode_entry(spec, sources, index, parts)?;
    let packed = parts.include()?;
    let mut view = StoredRowView::of_row(spec, sources, parts.pointer, scratch);
    (view.packed, view.layout) = (packed, parts.layout);
    see(&view)
}
