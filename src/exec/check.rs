//! CHECK: is every row readable, and does every index hold exactly the entries its rows have?
//!
//! FULL walks both directions at one snapshot: it looks up the computed entries of each row, and for each entry loads
//! its row and computes the entry again. FAST walks each keyspace once and compares digests that do not depend on the
//! order (see [`Digest`]); only an index whose digest differs is then checked as in FULL. Either way the store also
//! verifies each keyspace ([`Reader::verify`]). The table is always walked directly, never by a plan that may use the
//! index under test. Memory use does not grow with the table, only with the problems found, of which there is a limit.

use std::collections::{BTreeSet, HashSet};

use xxhash_rust::xxh3::{xxh3_128, xxh3_128_with_seed};

use super::gets::Gets;
use super::stored;
use super::watch::Watch;
use crate::error::{Error, Kind, Result};
use crate::index::{IndexEntry, entry_of, open_entry};
use crate::key::{KeyRange, hex};
use crate::row::PackedRow;
use crate::schema::{IndexDef, IndexState, TableDef};
use crate::store::{Direction, KeyspaceId, Reader, Snapshot, damaged_entry};
use crate::value::{Literal, Value, name_sql};

/// The problem of an index entry that cannot be read.
const BAD_ENTRY: &str = "bad_index_encoding";

/// A problem that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problem {
    /// What kind: `missing_index_entry`, `dangling_index_entry`, `index_value_differs`, `duplicate_unique_value`,
    /// `bad_row_encoding`, `bad_index_encoding`, `key_not_canonical`, `null_in_not_null`, `orphan_data`,
    /// `index_not_ready`, `checksum`, `missing_parent`; of REPAIR TABLE, `damaged_row` and `entry_of_damaged_row`.
    pub problem: &'static str,
    /// Table.
    pub table: String,
    /// Index, if the problem concerns one.
    pub index: String,
    /// Primary rowkey, decoded.
    pub primary_key: String,
    /// Index key, decoded.
    pub index_key: String,
    /// Column whose values differ.
    pub column: String,
    /// Its value in the table.
    pub table_value: String,
    /// Its value in the index.
    pub index_value: String,
    /// What was found, in words.
    pub detail: String,
}

/// The result of a check.
#[derive(Debug, Default)]
pub struct Report {
    /// In the order they were found.
    pub problems: Vec<Problem>,
    /// Rows walked.
    pub rows: u64,
    /// Index entries walked.
    pub entries: u64,
    /// It was not cut short by the limit.
    pub complete: bool,
}

/// How thorough a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckDepth {
    /// Compares digests first.
    Fast,
    /// Checks every entry from both sides.
    Full,
}

/// Sum of the hashes of entries: equal for equal sets of entries, whatever their order.
///
/// Different sets agree by accident with probability 2^-128; this is no protection against crafted entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Digest {
    entries: u64,
    sum: u128,
}

impl Digest {
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        let of_key = xxh3_128(key);
        let of_both = of_key ^ xxh3_128_with_seed(value, of_key as u64);
        self.entries += 1;
        self.sum = self.sum.wrapping_add(of_both);
    }
}

/// Receives the checker, and a key with its value.
type Visit<'v, C> = dyn FnMut(&mut C, &[u8], &[u8]) -> Result<()> + 'v;

/// Receives the checker, and a row with its rowkey.
type VisitRow<'v, C> = dyn FnMut(&mut C, &[Value], &[u8]) -> Result<()> + 'v;

/// A check in progress.
pub struct Checker<'a> {
    snapshot: &'a dyn Snapshot,
    gets: Gets<'a>,
    watch: &'a Watch,
    limit: usize,
    report: Report,
    /// Keyspaces already verified.
    verified: BTreeSet<KeyspaceId>,
}

impl<'a> Checker<'a> {
    /// A check of what `snapshot` shows that stops after `limit` problems. No writes depend on what it reads.
    pub fn new(snapshot: &'a dyn Snapshot, watch: &'a Watch, limit: usize) -> Result<Self> {
        let (gets, report) = (Gets::unrecorded(snapshot)?, Report { complete: true, ..Report::default() });
        Ok(Checker { snapshot, gets, watch, limit, report, verified: BTreeSet::new() })
    }

    /// The result.
    pub fn finish(self) -> Report {
        self.report
    }

    /// Checks a table and some of its indexes.
    ///
    /// Errors: the store cannot be read at all; `Cancelled`.
    pub fn table(&mut self, table: &TableDef, indexes: &[&IndexDef], depth: CheckDepth) -> Result<()> {
        for index in indexes.iter().filter(|index| index.state != IndexState::Ready) {
            let detail =
                format!("it is {}; REPAIR INDEX {} builds it", index.state.name(), name_sql(&index.name));
            self.found(
                table,
                Some(index),
                Problem { problem: "index_not_ready", detail, ..Problem::default() },
            );
        }
        let mut digests = vec![Digest::default(); indexes.len()];
        self.rows(table, &mut |check, row, rowkey| {
            check.row(table, row, rowkey);
            for (index, digest) in indexes.iter().zip(&mut digests) {
                match (index.state, depth) {
                    (IndexState::Building, _) => {}
                    (IndexState::Ready, CheckDepth::Fast) => {
                        match entry_of(table, index, row, rowkey) {
                            Ok(Some(entry)) => digest.add(&entry.key, &entry.value),
                            Ok(None) => {}
                            // The check from both sides will report it.
                            Err(_) => digest.entries += 1,
                        }
                    }
                    (IndexState::Ready, CheckDepth::Full) | (IndexState::Broken, _) => {
                        check.entry_of_row(table, index, row, rowkey)?;
                    }
                }
            }
            Ok(())
        })?;
        for (index, digest) in indexes.iter().zip(digests) {
            match (index.state, depth) {
                (IndexState::Ready, CheckDepth::Full) => self.entries(table, index)?,
                (IndexState::Ready, CheckDepth::Fast) => self.compare(table, index, digest)?,
                (IndexState::Building | IndexState::Broken, _) => {}
            }
        }
        for family in table.families.iter().skip(1) {
            self.orphans(table, family.keyspace)?;
        }
        Ok(())
    }

    /// Checks the catalog's keyspace: the definitions and statistics. `analyzed`: the table whose statistics an error
    /// reports as damaged.
    ///
    /// Errors: as [`Checker::table`].
    pub fn definitions<'t>(
        &mut self,
        keyspace: KeyspaceId,
        analyzed: impl FnOnce(&Error) -> Option<&'t str>,
    ) -> Result<()> {
        match self.gets.reader().verify(keyspace, &mut |_| self.watch.cancel.check()) {
            Err(e) if e.kind() == Kind::Corrupt => {
                let (table, detail) = match analyzed(&e) {
                    Some(table) => (table, format!("{}; {}", said(&e), anew(table))),
                    None => ("", said(&e)),
                };
                let table = table.to_owned();
                self.keep(Problem { problem: "checksum", table, detail, ..Problem::default() });
                Ok(())
            }
            verified => verified,
        }
    }

    fn full(&self) -> bool {
        self.report.problems.len() >= self.limit
    }

    fn found(&mut self, table: &TableDef, index: Option<&IndexDef>, problem: Problem) {
        let index = index.map_or(String::new(), |i| i.name.clone());
        self.keep(Problem { table: table.name.clone(), index, ..problem });
    }

    fn keep(&mut self, problem: Problem) {
        match self.full() {
            true => self.report.complete = false,
            false => self.report.problems.push(problem),
        }
    }

    /// Walks a keyspace, and reports what is damaged. It goes on behind a damaged entry; a damaged page ends the walk:
    /// what follows cannot be reached.
    ///
    /// Errors: the store cannot be read; those of `visit`.
    fn walk(
        &mut self,
        table: &TableDef,
        index: Option<&IndexDef>,
        keyspace: KeyspaceId,
        visit: &mut Visit<'_, Self>,
    ) -> Result<()> {
        let label = format!("checking {}", index.map_or(&table.name, |i| &i.name));
        let reader = self.snapshot.unrecorded()?;
        let total = reader.entries(keyspace)?;
        let mut cursor = reader.cursor(keyspace, &KeyRange::all(), Direction::Forward)?;
        let (mut n, mut damaged) = (0, 0);
        while !self.full() {
            match cursor.next() {
                Ok(Some((key, value))) => {
                    self.gets.next()?;
                    visit(self, key, value)?;
                }
                Ok(None) => {
                    self.watch.finish(&label, n, "entries");
                    // That the keyspace cannot be verified with damaged entries in it goes without saying.
                    let unproved = if damaged == 0 { self.unproved(keyspace, n, &label)? } else { None };
                    if let Some(detail) = unproved {
                        self.found(
                            table,
                            index,
                            Problem { problem: "checksum", detail, ..Problem::default() },
                        );
                    }
                    return Ok(());
                }
                Err(e) => {
                    let Err(detail) = unless_damaged::<()>(Err(e.copied()))? else { return Ok(()) };
                    let Some(entry) = damaged_entry(&e) else {
                        self.found(
                            table,
                            index,
                            Problem { problem: "checksum", detail, ..Problem::default() },
                        );
                        return Ok(());
                    };
                    damaged += 1;
                    self.damaged(table, index, &entry.key, detail);
                    match index {
                        Some(_) => self.report.entries += 1,
                        None => self.report.rows += u64::from(keyspace == table.rows()),
                    }
                }
            }
            n += 1;
            self.watch.tick(&label, n, Some(total), "entries")?;
        }
        self.report.complete = false;
        Ok(())
    }

    /// Reports a damaged entry of a table or an index, unless that was done when it was looked up.
    fn damaged(&mut self, table: &TableDef, index: Option<&IndexDef>, key: &[u8], detail: String) {
        let problem = "checksum";
        let found = match index {
            Some(index) => {
                Problem { problem, index_key: shown_key(index, key), detail, ..Problem::default() }
            }
            None => Problem { problem, primary_key: table.key.show(key), detail, ..Problem::default() },
        };
        let of_index = index.map_or("", |index| &index.name);
        let is_it = |before: &Problem| {
            ["checksum", "bad_row_encoding"].contains(&before.problem)
                && (&before.table[..], &before.index[..]) == (&table.name[..], of_index)
                && before.index_key == found.index_key
                && (index.is_some() || before.primary_key == found.primary_key)
        };
        if !self.report.problems.iter().any(is_it) {
            self.found(table, index, found);
        }
    }

    /// Verifies a keyspace in which `n` entries were walked; gives what is wrong with it, if anything.
    fn unproved(&mut self, keyspace: KeyspaceId, n: u64, label: &str) -> Result<Option<String>> {
        if !self.verified.insert(keyspace) {
            return Ok(None);
        }
        let label = format!("{label} again");
        let reader = self.gets.reader();
        let count = reader.count(keyspace).and_then(|count| {
            reader.verify(keyspace, &mut |at| self.watch.step(&label, at, Some(n), "entries"))?;
            Ok(count)
        });
        Ok(match unless_damaged(count)? {
            Ok(Some(count)) if count != n => {
                Some(format!("{n} entries can be reached, the store counts {count}"))
            }
            Ok(_) => None,
            Err(detail) => Some(detail),
        })
    }

    /// Shows every row with its key to `visit`, and reports those that cannot be read.
    fn rows(&mut self, table: &TableDef, visit: &mut VisitRow<'_, Self>) -> Result<()> {
        self.walk(table, None, table.rows(), &mut |check, key, value| {
            check.report.rows += 1;
            match unless_damaged(stored::values_of(check.gets.reader(), table, key, value))? {
                Ok(row) => visit(check, &row, key),
                Err(detail) => {
                    let primary_key = table.key.show(key);
                    let problem =
                        Problem { problem: "bad_row_encoding", primary_key, detail, ..Problem::default() };
                    check.found(table, None, problem);
                    Ok(())
                }
            }
        })
    }

    /// Checks a row by itself: its rowkey must follow from its columns, and NOT NULL columns must have values.
    fn row(&mut self, table: &TableDef, row: &[Value], rowkey: &[u8]) {
        if !table.key.is_key_of(row, rowkey) {
            let detail = format!("the row's columns make another key than {}", hex(rowkey));
            let primary_key = table.key.show(rowkey);
            let problem = Problem { problem: "key_not_canonical", primary_key, detail, ..Problem::default() };
            self.found(table, None, problem);
        }
        for (id, column) in table.live_columns() {
            if !column.nullable && row[usize::from(id.0)].is_null() {
                let problem = Problem {
                    problem: "null_in_not_null",
                    primary_key: table.key.show(rowkey),
                    column: column.name.clone(),
                    table_value: "NULL".to_owned(),
                    detail: format!("column \"{}\" is NULL", column.name),
                    ..Problem::default()
                };
                self.found(table, None, problem);
            }
        }
    }

    /// Checks that the row's entry exists and is right.
    fn entry_of_row(
        &mut self,
        table: &TableDef,
        index: &IndexDef,
        row: &[Value],
        rowkey: &[u8],
    ) -> Result<()> {
        let primary_key = || table.key.show(rowkey);
        let expected = match entry_of(table, index, row, rowkey) {
            Ok(Some(entry)) => entry,
            Ok(None) => return Ok(()),
            Err(e) => {
                let (primary_key, detail) = (primary_key(), said(&e));
                let problem =
                    Problem { problem: "key_not_canonical", primary_key, detail, ..Problem::default() };
                self.found(table, Some(index), problem);
                return Ok(());
            }
        };
        let found = unless_damaged(self.gets.reader().get(index.keyspace, &expected.key))?;
        match &found {
            Ok(Some(value)) if *value == expected.value => return Ok(()),
            // While the index was Broken, rows that changed may have removed the entries of others.
            Ok(None) if index.state == IndexState::Broken => return Ok(()),
            _ => {}
        }
        let index_key = shown_key(index, &expected.key);
        let at = Problem { primary_key: primary_key(), index_key, ..Problem::default() };
        let problem = match found {
            Ok(Some(value)) => difference(self.gets.reader(), table, index, &expected, value, at)?,
            Ok(None) => {
                let detail = "the row has no entry".to_owned();
                Problem { problem: "missing_index_entry", detail, ..at }
            }
            Err(detail) => Problem { problem: "checksum", detail, ..at },
        };
        self.found(table, Some(index), problem);
        Ok(())
    }

    /// Checks that each entry belongs to a row.
    fn entries(&mut self, table: &TableDef, index: &IndexDef) -> Result<()> {
        // What was reported for the row that should have the entry: its key, and the row it points at if it can be read.
        let of_index = self.report.problems.iter().filter(|p| p.index == index.name);
        let said_of = |p: &Problem| {
            let pointer = (p.problem != BAD_ENTRY).then(|| p.index_value.clone());
            (p.index_key.clone(), pointer)
        };
        let mut said_before: HashSet<_> = of_index.map(said_of).collect();
        self.walk(table, Some(index), index.keyspace, &mut |check, key, value| {
            check.report.entries += 1;
            let parts = match open_entry(index, key, value) {
                Ok(parts) => parts,
                Err(e) => {
                    let index_key = shown_key(index, key);
                    if said_before.insert((index_key.clone(), None)) {
                        let detail = said(&e);
                        let problem = Problem { problem: BAD_ENTRY, index_key, detail, ..Problem::default() };
                        check.found(table, Some(index), problem);
                    }
                    return Ok(());
                }
            };
            // Unreadable rows were reported when the table was walked.
            let expected = entry_of_pointer(check.gets.reader(), table, index, parts.pointer);
            let Ok(expected) = unless_damaged(expected)? else { return Ok(()) };
            if expected.is_none_or(|entry| entry.key[..] != *key) {
                let (index_key, pointer) = (shown_key(index, key), table.key.show(parts.pointer));
                if !said_before.insert((index_key.clone(), Some(pointer.clone()))) {
                    return Ok(());
                }
                let problem = Problem {
                    problem: "dangling_index_entry",
                    primary_key: pointer,
                    index_key,
                    detail: "no row has this entry".to_owned(),
                    ..Problem::default()
                };
                check.found(table, Some(index), problem);
            }
            Ok(())
        })
    }

    /// Compares an index with the digest of its rows, and checks it from both sides if they differ.
    fn compare(&mut self, table: &TableDef, index: &IndexDef, expected: Digest) -> Result<()> {
        let before = self.report.problems.len();
        let mut digest = Digest::default();
        self.walk(table, Some(index), index.keyspace, &mut |check, key, value| {
            check.report.entries += 1;
            digest.add(key, value);
            Ok(())
        })?;
        if digest == expected || self.report.problems.len() > before {
            return Ok(());
        }
        let (rows, entries) = (self.report.rows, self.report.entries);
        // Unreadable rows have been reported.
        self.walk(table, None, table.rows(), &mut |check, key, value| {
            let row = stored::values_of(check.gets.reader(), table, key, value);
            match unless_damaged(row)? {
                Ok(row) => check.entry_of_row(table, index, &row, key),
                Err(_) => Ok(()),
            }
        })?;
        self.entries(table, index)?;
        (self.report.rows, self.report.entries) = (rows, entries);
        Ok(())
    }

    /// Reports family entries without a row.
    fn orphans(&mut self, table: &TableDef, keyspace: KeyspaceId) -> Result<()> {
        self.walk(table, None, keyspace, &mut |check, key, _| {
            if let Ok(None) = unless_damaged(check.gets.reader().get(table.rows(), key))? {
                let detail = "a column family holds a row that the table does not".to_owned();
                let primary_key = table.key.show(key);
                let problem = Problem { problem: "orphan_data", primary_key, detail, ..Problem::default() };
                check.found(table, None, problem);
            }
            Ok(())
        })
    }
}

/// The entry that the row at `pointer` should have; `None` if there is no such row, or it has no entry. Errors: it
/// cannot be read.
fn entry_of_pointer(
    reader: &dyn Reader,
    table: &TableDef,
    index: &IndexDef,
    pointer: &[u8],
) -> Result<Option<IndexEntry>> {
    let Some(value) = reader.get(table.rows(), pointer)? else { return Ok(None) };
    let row = stored::values_of(reader, table, pointer, value)?;
    Ok(entry_of(table, index, &row, pointer).unwrap_or(None))
}

/// Describes how an existing entry differs from the one that a row should have under the same key.
fn difference(
    reader: &dyn Reader,
    table: &TableDef,
    index: &IndexDef,
    expected: &IndexEntry,
    value: &[u8],
    at: Problem,
) -> Result<Problem> {
    let (found, wanted) =
        match (open_entry(index, &expected.key, value), open_entry(index, &expected.key, &expected.value)) {
            (Ok(found), Ok(wanted)) => (found, wanted),
            (Err(e), _) | (_, Err(e)) => {
                return Ok(Problem { problem: BAD_ENTRY, detail: said(&e), ..at });
            }
        };
    if found.pointer != wanted.pointer {
        let other = unless_damaged(entry_of_pointer(reader, table, index, found.pointer))?.ok().flatten();
        let (problem, detail) = match other.is_some_and(|other| other.key == expected.key) {
            true => ("duplicate_unique_value", "two rows have this key"),
            false => ("index_value_differs", "the entry points at another row"),
        };
        let (index_value, table_value) = (table.key.show(found.pointer), table.key.show(wanted.pointer));
        let (column, detail) = ("primary_rowkey".to_owned(), detail.to_owned());
        return Ok(Problem { problem, column, table_value, index_value, detail, ..at });
    }
    let shown = |packed: &Option<PackedRow<'_>>, id| {
        let value = packed.as_ref().map(|packed| packed.get(id, table.column(id).ty)).transpose();
        value.map(|value| {
            value.flatten().map_or_else(|| "NULL".to_owned(), |value| Literal(value).to_string())
        })
    };
    let differing = || -> Result<Option<Problem>> {
        let (found, wanted) = (found.include()?, wanted.include()?);
        for &id in &index.include {
            let (index_value, table_value) = (shown(&found, id)?, shown(&wanted, id)?);
            if index_value != table_value {
                let column = table.column_name(id).to_owned();
                let detail = "the included column has another value".to_owned();
                let problem = "index_value_differs";
                return Ok(Some(Problem { problem, column, table_value, index_value, detail, ..at.clone() }));
            }
        }
        Ok(None)
    };
    Ok(match differing() {
        Ok(Some(problem)) => problem,
        Ok(None) => {
            let detail = format!("it holds {}, the row has {}", hex(value), hex(&expected.value));
            Problem { problem: "index_value_differs", detail, ..at }
        }
        Err(e) => Problem { problem: BAD_ENTRY, detail: said(&e), ..at },
    })
}

/// The layout's part of an entry's key, for display.
pub(super) fn shown_key(index: &IndexDef, key: &[u8]) -> String {
    index.layout.show(&key[..index.layout.len_in(key).unwrap_or(key.len())])
}

/// How to repair damaged statistics of a table.
pub fn anew(table: &str) -> String {
    format!("ANALYZE {} writes its statistics anew", name_sql(table))
}

/// What was read, or what is damaged, in words: a problem to report.
///
/// Errors: it could not be read, which says nothing about the data.
fn unless_damaged<T>(read: Result<T>) -> Result<std::result::Result<T, String>> {
    match read {
        Ok(read) => Ok(Ok(read)),
        Err(e) if e.kind() == Kind::Corrupt => Ok(Err(said(&e))),
        Err(e) => Err(e),
    }
}

pub(super) fn said(e: &Error) -> String {
    match e.reason() {
        Some(why) => format!("{}: {why}", e.what()),
        None => e.what().to_owned(),
    }
}
