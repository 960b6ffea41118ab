//! CHECK: is every row readable, and does every index hold exactly the entries its rows have?
//!
//! Both directions are walked at one snapshot: each row's entries are computed and looked up, and each
//! entry's row is loaded and its entry computed again. The table side is a raw walk of the store, never
//! a plan that may use the index under test. Memory is constant.

use super::stored::{self, StoredRow};
use super::watch::Watch;
use crate::error::{Error, Result};
use crate::index::{entry_of, open_entry};
use crate::key::{KeyRange, hex};
use crate::schema::{IndexDef, IndexState, TableDef};
use crate::store::{Direction, KeyspaceId, Reader};

/// One thing that is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problem {
    /// What kind: `missing_index_entry`, `dangling_index_entry`, `index_value_differs`,
    /// `bad_row_encoding`, `bad_index_encoding`, `key_not_canonical`, `null_in_not_null`,
    /// `orphan_data`, `index_not_ready`.
    pub problem: &'static str,
    /// Table.
    pub table: String,
    /// Index, if it is about one.
    pub index: String,
    /// Primary rowkey, decoded.
    pub primary_key: String,
    /// Index key, decoded.
    pub index_key: String,
    /// What was found.
    pub detail: String,
}

/// What a check looked at and found.
#[derive(Debug, Default)]
pub struct Report {
    /// In the order they were found.
    pub problems: Vec<Problem>,
    /// Rows walked.
    pub rows: u64,
    /// Index entries walked.
    pub entries: u64,
    /// Not cut short by the limit.
    pub complete: bool,
}

/// What is done with a checker, a key and its value.
type Visit<'v, C> = dyn FnMut(&mut C, &[u8], &[u8]) -> Result<()> + 'v;

/// A check under way.
pub struct Checker<'a> {
    reader: &'a dyn Reader,
    watch: &'a Watch,
    limit: usize,
    report: Report,
}

impl<'a> Checker<'a> {
    /// A check that stops after `limit` problems.
    pub fn new(reader: &'a dyn Reader, watch: &'a Watch, limit: usize) -> Self {
        let report = Report { complete: true, ..Report::default() };
        Checker { reader, watch, limit, report }
    }

    /// What was found.
    pub fn finish(self) -> Report {
        self.report
    }

    /// Checks a table and these of its indexes.
    ///
    /// Errors: the store cannot be read at all; `Cancelled`.
    pub fn table(&mut self, table: &TableDef, indexes: &[&IndexDef]) -> Result<()> {
        for index in indexes {
            if index.state != IndexState::Ready {
                let detail = format!("it is {}; REPAIR INDEX {} builds it", index.state.name(), index.name);
                self.found(
                    table,
                    Some(index),
                    Problem { problem: "index_not_ready", detail, ..Problem::default() },
                );
            }
        }
        let ready: Vec<&IndexDef> =
            indexes.iter().filter(|i| i.state == IndexState::Ready).copied().collect();
        self.rows(table, &ready)?;
        for index in ready {
            self.entries(table, index)?;
        }
        for family in table.families.iter().skip(1) {
            self.orphans(table, family.keyspace)?;
        }
        Ok(())
    }

    fn full(&self) -> bool {
        self.report.problems.len() >= self.limit
    }

    fn found(&mut self, table: &TableDef, index: Option<&IndexDef>, problem: Problem) {
        if self.full() {
            self.report.complete = false;
            return;
        }
        let index = index.map_or(String::new(), |i| i.name.clone());
        self.report.problems.push(Problem { table: table.name.clone(), index, ..problem });
    }

    /// Walks a keyspace. A damaged entry ends the walk: what follows cannot be reached.
    fn walk(
        &mut self,
        table: &TableDef,
        index: Option<&IndexDef>,
        keyspace: KeyspaceId,
        visit: &mut Visit<'_, Self>,
    ) -> Result<()> {
        let label = format!("checking {}", index.map_or(&table.name, |i| &i.name));
        let total = self.reader.entries(keyspace)?;
        let mut cursor = self.reader.cursor(keyspace, &KeyRange::all(), Direction::Forward)?;
        let mut n = 0;
        while !self.full() {
            match cursor.next() {
                Ok(None) => {
                    self.watch.finish(&label, n, "entries");
                    return Ok(());
                }
                Ok(Some((key, value))) => visit(self, key, value)?,
                Err(e) => {
                    let detail = said(&e);
                    self.found(table, index, Problem { problem: "checksum", detail, ..Problem::default() });
                    return Ok(());
                }
            }
            n += 1;
            if n % 4096 == 0 {
                self.watch.step(&label, n, Some(total), "entries")?;
            }
        }
        self.report.complete = false;
        Ok(())
    }

    fn rows(&mut self, table: &TableDef, indexes: &[&IndexDef]) -> Result<()> {
        self.walk(table, None, table.rows(), &mut |check, key, _| {
            check.report.rows += 1;
            check.row(table, indexes, key)
        })
    }

    fn row(&mut self, table: &TableDef, indexes: &[&IndexDef], key: &[u8]) -> Result<()> {
        let primary_key = table.key.show(key);
        let row = match stored::load(self.reader, table, key) {
            Ok(Some(row)) => row,
            Ok(None) => return Ok(()),
            Err(e) => {
                let detail = said(&e);
                self.found(
                    table,
                    None,
                    Problem { problem: "bad_row_encoding", primary_key, detail, ..Problem::default() },
                );
                return Ok(());
            }
        };
        for (id, column) in table.live_columns() {
            if !column.nullable && row.values[usize::from(id.0)].is_null() {
                let detail = format!("column \"{}\" is NULL", column.name);
                let primary_key = primary_key.clone();
                self.found(
                    table,
                    None,
                    Problem { problem: "null_in_not_null", primary_key, detail, ..Problem::default() },
                );
            }
        }
        for index in indexes {
            self.entry_of_row(table, index, &row, &primary_key)?;
        }
        Ok(())
    }

    /// The row's entry must be there as it should be.
    fn entry_of_row(
        &mut self,
        table: &TableDef,
        index: &IndexDef,
        row: &StoredRow,
        primary_key: &str,
    ) -> Result<()> {
        let primary_key = primary_key.to_owned();
        let expected = match entry_of(table, index, &row.values, &row.rowkey) {
            Ok(Some(entry)) => entry,
            Ok(None) => return Ok(()),
            Err(e) => {
                let detail = said(&e);
                self.found(
                    table,
                    Some(index),
                    Problem { problem: "key_not_canonical", primary_key, detail, ..Problem::default() },
                );
                return Ok(());
            }
        };
        let index_key = index.layout.show(&expected.key);
        let problem = match self.reader.get(index.keyspace, &expected.key) {
            Ok(Some(value)) if value == expected.value => return Ok(()),
            Ok(Some(value)) => (
                "index_value_differs",
                format!("it holds {}, the row has {}", hex(value), hex(&expected.value)),
            ),
            Ok(None) => ("missing_index_entry", "the row has no entry".to_owned()),
            Err(e) => ("checksum", said(&e)),
        };
        let (problem, detail) = problem;
        self.found(
            table,
            Some(index),
            Problem { problem, primary_key, index_key, detail, ..Problem::default() },
        );
        Ok(())
    }

    fn entries(&mut self, table: &TableDef, index: &IndexDef) -> Result<()> {
        self.walk(table, Some(index), index.keyspace, &mut |check, key, value| {
            check.report.entries += 1;
            let index_key = index.layout.show(key);
            let parts = match open_entry(index, key, value) {
                Ok(parts) => parts,
                Err(e) => {
                    let detail = said(&e);
                    check.found(
                        table,
                        Some(index),
                        Problem { problem: "bad_index_encoding", index_key, detail, ..Problem::default() },
                    );
                    return Ok(());
                }
            };
            let primary_key = table.key.show(parts.pointer);
            // Rows that cannot be read were reported when the table was walked.
            let expected = match stored::load(check.reader, table, parts.pointer) {
                Err(_) => return Ok(()),
                Ok(None) => None,
                Ok(Some(row)) => entry_of(table, index, &row.values, &row.rowkey).unwrap_or(None),
            };
            if expected.is_none_or(|entry| entry.key[..] != *key) {
                let detail = "no row has this entry".to_owned();
                check.found(
                    table,
                    Some(index),
                    Problem {
                        problem: "dangling_index_entry",
                        primary_key,
                        index_key,
                        detail,
                        ..Problem::default()
                    },
                );
            }
            Ok(())
        })
    }

    /// Family entries of rows that are not there.
    fn orphans(&mut self, table: &TableDef, keyspace: KeyspaceId) -> Result<()> {
        self.walk(table, None, keyspace, &mut |check, key, _| {
            if let Ok(None) = check.reader.get(table.rows(), key) {
                let detail = "a column family holds a row that the table does not".to_owned();
                let primary_key = table.key.show(key);
                check.found(
                    table,
                    None,
                    Problem { problem: "orphan_data", primary_key, detail, ..Problem::default() },
                );
            }
            Ok(())
        })
    }
}

fn said(e: &Error) -> String {
    match e.reason() {
        Some(why) => format!("{}: {why}", e.what()),
        None => e.what().to_owned(),
    }
}
