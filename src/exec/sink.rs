//! Sinks: consumers of a scan's rows. Here are Arrow columns and a mere count; others keep rows as stored, sums, or
//! groups.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{Field, FieldRef, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};

use super::sources::{ScanSources, Sources};
use super::spec::{BATCH_BYTES, ScanSpec};
use super::view::{StoredField, StoredRowView};
use crate::error::{Error, Result};
use crate::row::ColumnBuilder;

/// Takes the rows of one pull.
pub(super) trait Sink {
    /// Where the fields that it reads from a view are found: all those of the scan, or only those that the filter
    /// compares if all are in one entry, which it copies.
    fn sources<'p>(&self, places: &'p ScanSources) -> &'p Sources {
        &places.rows
    }

    /// Adds the wanted fields of a row.
    fn append(&mut self, spec: &ScanSpec, view: &StoredRowView<'_>) -> Result<()>;

    /// It wants more than the number of rows.
    fn looks(&self) -> bool {
        true
    }

    /// Number of rows, and limit.
    fn room(&self) -> &Room;

    /// The same, mutable.
    fn room_mut(&mut self) -> &mut Room;

    /// Adds rows without fields.
    fn append_empty(&mut self, rows: usize) {
        self.room_mut().rows += rows;
    }

    /// Rows so far.
    fn rows(&self) -> usize {
        self.room().rows
    }

    /// Most rows it takes.
    fn rows_max(&self) -> usize {
        self.room().rows_max
    }

    /// The size limit of a batch is reached.
    fn is_heavy(&self) -> bool {
        false
    }

    fn is_full(&self) -> bool {
        self.rows() >= self.rows_max() || self.is_heavy()
    }
}

/// Number of rows (count) in a sink, and the most it takes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room {
    pub rows: usize,
    pub rows_max: usize,
}

/// Rows that pass the filter, merely counted.
pub(super) struct Passed(Room);

impl Passed {
    pub fn new(rows_max: usize) -> Passed {
        Passed(Room { rows: 0, rows_max })
    }
}

impl Sink for Passed {
    fn sources<'p>(&self, places: &'p ScanSources) -> &'p Sources {
        if places.rows.is_one_entry() { &places.compared } else { &places.rows }
    }

    fn append(&mut self, _: &ScanSpec, _: &StoredRowView<'_>) -> Result<()> {
        self.append_empty(1);
        Ok(())
    }

    fn looks(&self) -> bool {
        false
    }

    fn room(&self) -> &Room {
        &self.0
    }

    fn room_mut(&mut self) -> &mut Room {
        &mut self.0
    }
}

/// Rows as Arrow columns.
pub(super) struct ArrowSink {
    builders: Vec<ColumnBuilder>,
    /// Bytes of packed values; only these may be long.
    bytes: usize,
    room: Room,
}

impl ArrowSink {
    pub fn new(spec: &ScanSpec, rows_max: usize, rows_expected: usize) -> ArrowSink {
        let types = (0..spec.output.len()).map(|column| spec.type_of(column));
        let capacity = rows_max.min(rows_expected);
        let builders = types.map(|ty| ColumnBuilder::new(ty, capacity)).collect();
        ArrowSink { builders, bytes: 0, room: Room { rows: 0, rows_max } }
    }

    pub fn finish(mut self, schema: &SchemaRef) -> Result<RecordBatch> {
        let arrays: Vec<ArrayRef> =
            self.builders.iter_mut().map(ColumnBuilder::finish).collect::<Result<_>>()?;
        let is_missing =
            |(field, array): &(&FieldRef, &ArrayRef)| !field.is_nullable() && array.null_count() > 0;
        if let Some((field, _)) = schema.fields().iter().zip(&arrays).find(is_missing) {
            return Err(no_value_in(field));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.room.rows));
        RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)
            .map_err(|e| Error::internal("a batch does not fit its schema").caused_by(e))
    }
}

/// The error for a row without a value in a column that is NOT NULL.
#[cold]
pub(super) fn no_value_in(column: &Field) -> Error {
    Error::corrupt("a row is damaged")
        .why(format!("its column \"{}\" is NOT NULL and has no value", column.name()))
        .hint("CHECK DATABASE lists what is wrong")
}

impl Sink for ArrowSink {
    fn append(&mut self, spec: &ScanSpec, view: &StoredRowView<'_>) -> Result<()> {
        for (builder, field) in self.builders.iter_mut().zip(&*spec.output) {
            match view.find(*field)? {
                StoredField::Value(value) => builder.append(value)?,
                StoredField::Packed(column, bytes) => {
                    self.bytes += bytes.len();
                    builder.append_packed(column, bytes)?;
                }
            }
        }
        self.room.rows += 1;
        Ok(())
    }

    fn room(&self) -> &Room {
        &self.room
    }

    fn room_mut(&mut self) -> &mut Room {
        &mut self.room
    }

    fn is_heavy(&self) -> bool {
        self.bytes >= BATCH_BYTES
    }
}
