//! Rows that are made of rows of several tables.
//!
//! Of a row of a join nothing is copied: it says which rows it is made of, and a value is taken out of the one that
//! has it when somebody asks.

use std::cmp::Ordering;
use std::sync::Arc;

use super::kept::NextRows;
use super::scan::BATCH_BYTES;
use crate::error::Result;
use crate::value::Value;

/// A column of one of the tables: the table's place among them, and the column's in its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnOf {
    pub table: usize,
    pub column: usize,
}

/// Rows of a table that were read together, and which of them.
pub type RowOf<'r> = (&'r Arc<NextRows>, usize);

/// Rows, each made of one row, or none, of each table.
#[derive(Debug)]
pub struct JoinedRows {
    /// What they are made of.
    parts: Vec<Arc<NextRows>>,
    /// Of each row one after the other, its row of each table.
    places: Vec<Option<Place>>,
    /// Columns of each row.
    columns: Arc<[ColumnOf]>,
    /// For each table, which of the parts has its last row.
    last: Vec<Option<u32>>,
    /// Bytes of the parts.
    bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    part: u32,
    row: u32,
}

impl JoinedRows {
    /// None yet, of so many tables.
    pub fn new(tables: usize, columns: Arc<[ColumnOf]>) -> JoinedRows {
        JoinedRows { parts: Vec::new(), places: Vec::new(), columns, last: vec![None; tables], bytes: 0 }
    }

    /// Of how many tables (count) a row of each is in them.
    pub fn tables(&self) -> usize {
        self.last.len()
    }

    /// How many rows (count).
    pub fn len(&self) -> usize {
        self.places.len() / self.tables()
    }

    /// Bytes that its rows are made of.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// It has as many bytes as it should.
    pub fn is_heavy(&self) -> bool {
        self.bytes >= BATCH_BYTES
    }

    /// Adds one that is made of these rows, one of each table; `None`: of NULLs.
    pub fn push<'r>(&mut self, rows: impl Iterator<Item = Option<RowOf<'r>>>) {
        for (table, row) in rows.enumerate() {
            let place = row.map(|(part, row)| Place { part: self.part(table, part), row: row as u32 });
            self.places.push(place);
        }
        debug_assert!(self.places.len().is_multiple_of(self.tables()));
    }

    /// Where a part is: most rows are made of the last ones.
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

    /// The value of a column in one of the rows.
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

    /// The row of a table that one of the rows is made of; `None`: a row of NULLs.
    pub fn row_of(&self, row: usize, table: usize) -> Option<RowOf<'_>> {
        let place = self.places[row * self.tables() + table]?;
        Some((&self.parts[place.part as usize], place.row as usize))
    }

    /// Puts them in an order of their keys.
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

    /// Leaves those behind the first `skip`, `most` of them.
    pub fn cut(&mut self, skip: usize, most: usize) {
        let (skip, tables) = (skip.min(self.len()), self.tables());
        self.places.truncate(skip.saturating_add(most).saturating_mul(tables));
        self.places.drain(..skip * tables);
    }
}
