//! Rows copied in their stored form, and decoded only when a value is asked for.
//!
//! Whoever reads rows one by one often wants few of their columns. Each value is decoded straight to where it is
//! needed.

use std::sync::Arc;

use super::sink::{Room, Sink, no_value_in};
use super::sources::{ScanSources, Sources};
use super::spec::{BATCH_BYTES, ScanSpec};
use super::view::{OneEntry, StoredRowView};
use crate::error::Result;
use crate::key::ColumnId;
use crate::plan::Field;
use crate::row::{self, PackedRow};
use crate::value::Value;

/// Expected rows (count) and bytes, for the first allocation.
const ROWS_EXPECTED: usize = 10;
const BYTES_EXPECTED: usize = 4096;

/// Of a packed value longer than this, in bytes, only the wanted columns are kept.
const PACKED_BYTES: usize = 1024;

/// Rows of a scan whose fields are all in one entry: see [`super::scan::Scan::next_rows`].
#[derive(Debug)]
pub struct EncodedRows {
    spec: Arc<ScanSpec>,
    /// For each row: its rowkey, the layout part of its key if it is an index entry, and its packed value.
    bytes: Vec<u8>,
    ends: Vec<Ends>,
    room: Room,
}

/// Where the parts of a row end.
#[derive(Debug)]
struct Ends {
    pointer: usize,
    layout: usize,
    packed: usize,
}

impl EncodedRows {
    /// No rows yet, at most `rows_max`.
    pub(super) fn new(spec: Arc<ScanSpec>, rows_max: usize) -> EncodedRows {
        EncodedRows { spec, bytes: Vec::new(), ends: Vec::new(), room: Room { rows: 0, rows_max } }
    }

    /// Number of rows (count).
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// There are no rows.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Memory used, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The value of one of the scan's columns in a row.
    ///
    /// Errors: `Corrupt` when its bytes are not a value of its type, or it is NULL but declared NOT NULL.
    pub fn value(&self, row: usize, column: usize) -> Result<Value> {
        let start = if row == 0 { 0 } else { self.ends[row - 1].packed };
        let Ends { pointer, layout, packed } = self.ends[row];
        let packed = &self.bytes[layout..packed];
        let packed = (!packed.is_empty()).then(|| PackedRow::again(packed));
        let (pointer, layout) = (&self.bytes[start..pointer], &self.bytes[pointer..layout]);
        let value = OneEntry { pointer, layout, packed }.value(&self.spec, self.spec.output[column])?;
        match self.spec.schema.field(column) {
            column if value.is_null() && !column.is_nullable() => Err(no_value_in(column)),
            _ => Ok(value),
        }
    }

    /// Copies only the wanted columns of a long packed value.
    #[cold]
    fn keep_wanted(&mut self, packed: &PackedRow<'_>) -> Result<()> {
        let is_wanted = |id: &ColumnId| self.spec.output.contains(&Field::Column(*id));
        if packed.columns().all(|id| is_wanted(&id)) {
            self.bytes.extend_from_slice(packed.as_bytes());
            return Ok(());
        }
        row::repack(packed, packed.columns().filter(is_wanted).map(|id| (id, None)), &mut self.bytes)
    }
}

impl Sink for EncodedRows {
    fn sources<'p>(&self, places: &'p ScanSources) -> &'p Sources {
        &places.compared
    }

    fn append(&mut self, _: &ScanSpec, view: &StoredRowView<'_>) -> Result<()> {
        let packed = view.packed.as_ref().map_or(&[][..], PackedRow::as_bytes);
        if self.ends.is_empty() {
            let rows = self.room.rows_max.min(ROWS_EXPECTED);
            let bytes = rows * (view.pointer.len() + view.layout.len() + packed.len());
            self.bytes.reserve(bytes.min(BYTES_EXPECTED));
            self.ends.reserve(rows);
        }
        self.bytes.extend_from_slice(view.pointer);
        let pointer = self.bytes.len();
        self.bytes.extend_from_slice(view.layout);
        let layout = self.bytes.len();
        match &view.packed {
            Some(row) if packed.len() > PACKED_BYTES => self.keep_wanted(row)?,
            _ => self.bytes.extend_from_slice(packed),
        }
        self.ends.push(Ends { pointer, layout, packed: self.bytes.len() });
        self.room.rows += 1;
        Ok(())
    }

    fn append_empty(&mut self, rows: usize) {
        let end = self.bytes.len();
        self.ends.resize_with(self.ends.len() + rows, || Ends { pointer: end, layout: end, packed: end });
        self.room.rows += rows;
    }

    fn room(&self) -> &Room {
        &self.room
    }

    fn room_mut(&mut self) -> &mut Room {
        &mut self.room
    }

    fn is_heavy(&self) -> bool {
        self.bytes.len() >= BATCH_BYTES
    }
}
