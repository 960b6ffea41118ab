//! Sorts whole rows by their rowkeys, on disk if they exceed the memory limit.

use std::mem;
use std::path::Path;

use super::sorter::Sorter;
use super::watch::CancelHandle;
use crate::error::{Error, Result};
use crate::key::{ColumnId, Rowkey};
use crate::row::{PackedRow, pack};
use crate::schema::TableDef;
use crate::value::{ColumnType, Value};

/// Memory limit, in bytes. Small in tests, so that they see more than one run.
const ROOM_BYTES: usize = if cfg!(test) { 4 << 10 } else { 64 << 20 };

/// Length of the number before a packed row, in bytes.
const NUMBER_BYTES: usize = 8;

/// Gathers rows in any order, and gives them in order of their rowkeys.
pub struct RowSorter<'t> {
    table: &'t TableDef,
    columns: Vec<(ColumnId, ColumnType)>,
    sorter: Sorter,
    rows: u64,
}

/// A row to be written.
pub struct NumberedRow {
    pub rowkey: Rowkey,
    /// Its values, by [`ColumnId`].
    pub row: Vec<Value>,
    /// How many rows of the source are before it.
    pub number: u64,
}

impl<'t> RowSorter<'t> {
    /// An empty sorter of rows of `table`. `folder`: where files may be created; `None`: all rows stay in memory.
    pub fn new(table: &'t TableDef, folder: Option<&Path>) -> RowSorter<'t> {
        let columns = table.stored_columns().map(|(id, column)| (id, column.ty)).collect();
        RowSorter { table, columns, sorter: Sorter::new(folder.map(Path::to_owned), ROOM_BYTES), rows: 0 }
    }

    /// Number of rows.
    pub fn len(&self) -> u64 {
        self.rows
    }

    /// Adds a row.
    pub fn add(&mut self, NumberedRow { rowkey, row, number }: &NumberedRow) -> Result<()> {
        let mut packed = number.to_le_bytes().to_vec();
        pack(self.columns.iter().map(|(id, ty)| (*id, *ty, row[usize::from(id.0)].as_ref())), &mut packed)?;
        self.sorter.push(self.table.rows(), rowkey, &packed);
        self.rows += 1;
        Ok(())
    }

    /// Moves the rows to disk if they exceed the memory limit. Errors: as [`Sorter::make_room`].
    pub fn make_room(&mut self, cancel: &CancelHandle) -> Result<()> {
        self.sorter.make_room(cancel)
    }

    /// Calls `f` with all rows, in parts of at least `rows_min` rows, but for the last part. Those with one rowkey
    /// are in one part, in the order of their numbers.
    ///
    /// Errors: those of `f`; `Corrupt` when the disk returns other bytes than were written, `Unavailable` when it
    /// refuses.
    pub fn each_part(
        mut self,
        rows_min: usize,
        f: &mut dyn FnMut(Vec<NumberedRow>) -> Result<()>,
    ) -> Result<()> {
        let Some(mut pile) = self.sorter.take().remove(&self.table.rows()) else { return Ok(()) };
        let mut rows = pile.merge()?;
        let mut part: Vec<NumberedRow> = Vec::new();
        while let Some((key, value)) = rows.next()? {
            if part.len() >= rows_min && part.last().is_some_and(|last| *last.rowkey != *key) {
                f(in_order(mem::take(&mut part)))?;
            }
            let (row, number) = self.row(value)?;
            part.push(NumberedRow { rowkey: key.into(), row, number });
        }
        if part.is_empty() { Ok(()) } else { f(in_order(part)) }
    }

    /// The row of an entry's value, and its number.
    fn row(&self, value: &[u8]) -> Result<(Vec<Value>, u64)> {
        let (number, packed) = value
            .split_first_chunk::<NUMBER_BYTES>()
            .ok_or_else(|| Error::internal("a sorted row without a number"))?;
        let packed = PackedRow::new(packed)?;
        let mut row = vec![Value::Null; self.table.columns.len()];
        for (id, ty) in &self.columns {
            if let Some(value) = packed.get(*id, *ty)? {
                row[usize::from(id.0)] = value.to_value();
            }
        }
        Ok((row, u64::from_le_bytes(*number)))
    }
}

/// Rows with one rowkey in the order of their numbers.
fn in_order(mut part: Vec<NumberedRow>) -> Vec<NumberedRow> {
    let by_rowkey = part.chunk_by_mut(|a, b| a.rowkey == b.rowkey);
    by_rowkey.for_each(|rows| rows.sort_unstable_by_key(|row| row.number));
    part
}
