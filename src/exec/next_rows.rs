//! Rows for a consumer that asks for their values one by one: those of a scan, of a join, or of a batch.
//!
//! Nothing is copied for a join: a joined row says which rows it is made of, and a value is taken from its row when
//! it is asked for.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{FieldRef, SchemaRef};

use super::encoded::EncodedRows;
use super::spec::BATCH_BYTES;
use crate::error::{Error, Result};
use crate::row::{ColumnBuilder, column_type_of, value_at};
use crate::value::Value;

/// The next rows of some operator.
#[derive(Debug)]
pub enum NextRows {
    /// In their stored form.
    Encoded(EncodedRows),
    /// Rows of a join.
    Joined(JoinedRows),
    /// As Arrow columns.
    Batch(RecordBatch),
    /// A single row of these values.
    Row(Vec<Value>),
}

impl NextRows {
    /// Number of rows (count).
    pub fn len(&self) -> usize {
        match self {
            NextRows::Encoded(rows) => rows.len(),
            NextRows::Joined(rows) => rows.len(),
            NextRows::Batch(batch) => batch.num_rows(),
            NextRows::Row(_) => 1,
        }
    }

    /// Approximate memory used, in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            NextRows::Encoded(rows) => rows.bytes(),
            NextRows::Joined(rows) => rows.bytes(),
            NextRows::Batch(batch) => batch.get_array_memory_size(),
            NextRows::Row(values) => size_of_val(&values[..]),
        }
    }

    /// The value of a column in one of the rows.
    ///
    /// Errors: `Corrupt` as for [`EncodedRows::value`]; `Unsupported` for an Arrow type without an SQL type.
    pub fn value(&self, row: usize, column: usize) -> Result<Value> {
        let batch = match self {
            NextRows::Encoded(rows) => return rows.value(row, column),
            NextRows::Joined(rows) => return rows.value(row, column),
            NextRows::Row(values) => return Ok(values[column].clone()),
            NextRows::Batch(batch) => batch,
        };
        let field = batch.schema_ref().field(column);
        let ty = column_type_of(field).ok_or_else(|| {
            Error::unsupported(format!("column \"{}\" has type {}", field.name(), field.data_type()))
        })?;
        value_at(batch.column(column), row, ty)
    }

    /// The rows from `first` on, as a batch with the columns of `schema`.
    pub fn batch_from(&self, first: usize, schema: &SchemaRef) -> Result<RecordBatch> {
        if let NextRows::Batch(batch) = self {
            return Ok(batch.slice(first, batch.num_rows() - first));
        }
        let rows = self.len();
        let column = |(column, field): (usize, &FieldRef)| {
            let ty = column_type_of(field)
                .ok_or_else(|| Error::internal("rows of a type that is none of ours"))?;
            let mut builder = ColumnBuilder::new(ty, rows - first);
            for row in first..rows {
                builder.append(self.value(row, column)?.as_ref())?;
            }
            builder.finish()
        };
        let columns = schema.fields().iter().enumerate().map(column).collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows - first));
        RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
            .map_err(|e| Error::internal("rows do not fit their batch").caused_by(e))
    }
}

/// A column of a joined table: index of the table, and index of the column in its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnOf {
    pub table: usize,
    pub column: usize,
}

/// A row within rows of a table that were read together.
pub type RowOf<'r> = (&'r Arc<NextRows>, usize);

/// Joined rows, each made of one row, or none, of each table.
#[derive(Debug)]
pub struct JoinedRows {
    /// The batches of table rows they refer to.
    parts: Vec<Arc<NextRows>>,
    /// For each joined row in turn, its row of each table.
    places: Vec<Option<RowPosition>>,
    /// The columns of a joined row.
    columns: Arc<[ColumnOf]>,
    /// For each table, the part that was referred to last.
    last: Vec<Option<u32>>,
    /// Bytes of the parts.
    bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct RowPosition {
    part: u32,
    row: u32,
}

impl JoinedRows {
    /// No rows yet, of a join of this many tables.
    pub fn new(tables: usize, columns: Arc<[ColumnOf]>) -> JoinedRows {
        JoinedRows { parts: Vec::new(), places: Vec::new(), columns, last: vec![None; tables], bytes: 0 }
    }

    /// Number of joined tables (count).
    pub fn tables(&self) -> usize {
        self.last.len()
    }

    /// Number of rows (count).
    pub fn len(&self) -> usize {
        self.places.len() / self.tables()
    }

    /// Bytes of the parts they refer to.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The size limit of a batch is reached.
    pub fn is_heavy(&self) -> bool {
        self.bytes >= BATCH_BYTES
    }

    /// Adds a row made of one row of each table; `None`: a row of NULLs.
    pub fn push<'r>(&mut self, rows: impl Iterator<Item = Option<RowOf<'r>>>) {
        for (table, row) in rows.enumerate() {
            let place = row.map(|(part, row)| RowPosition { part: self.part(table, part), row: row as u32 });
            self.places.push(place);
        }
        debug_assert!(self.places.len().is_multiple_of(self.tables()));
    }

    /// The index of a part, added if new. Most rows refer to the last one.
    fn part(&mut self, table: usize, part: &Arc<NextRows>) -> u32 {
        match self.last[table] {
            Some(last) if Arc::ptr_eq(&self.parts[last as usize], part) => last,
            _ => {
                let at = self.parts.len() as u32;
                self.bytes += part.bytes();
                self.parts.push(Arc::clone(part));
                self.last[table] = Some(at);
                at
            }
        }
    }

    /// The value of a column in a joined row.
    ///
    /// Errors: those of [`NextRows::value`].
    pub fn value(&self, row: usize, column: usize) -> Result<Value> {
        self.value_of(row, self.columns[column])
    }

    /// The value of a column of one of the tables.
    ///
    /// Errors: those of [`NextRows::value`].
    pub fn value_of(&self, row: usize, of: ColumnOf) -> Result<Value> {
        let ColumnOf { table, column } = of;
        match self.places[row * self.tables() + table] {
            Some(place) => self.parts[place.part as usize].value(place.row as usize, column),
            None => Ok(Value::Null),
        }
    }

    /// The row of a table that a joined row refers to; `None`: a row of NULLs.
    pub fn row_of(&self, row: usize, table: usize) -> Option<RowOf<'_>> {
        let place = self.places[row * self.tables() + table]?;
        Some((&self.parts[place.part as usize], place.row as usize))
    }

    /// Sorts the rows by a key.
    ///
    /// Errors: those of `key`.
    pub fn sort<K>(
        &mut self,
        key: impl Fn(&JoinedRows, usize) -> Result<K>,
        compared: impl Fn(&K, &K) -> Ordering,
    ) -> Result<()> {
        let keyed = (0..self.len()).map(|row| Ok((key(self, row)?, row)));
        let mut keyed = keyed.collect::<Result<Vec<_>>>()?;
        keyed.sort_by(|(a, _), (b, _)| compared(a, b));
        let tables = self.tables();
        let rows = keyed.iter().flat_map(|(_, row)| &self.places[row * tables..][..tables]);
        self.places = rows.copied().collect();
        Ok(())
    }

    /// Drops the first `skip` rows, and all but `most` of the rest.
    pub fn cut(&mut self, skip: usize, most: usize) {
        let (skip, tables) = (skip.min(self.len()), self.tables());
        self.places.truncate(skip.saturating_add(most).saturating_mul(tables));
        self.places.drain(..skip * tables);
    }
}
