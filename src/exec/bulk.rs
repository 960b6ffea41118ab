//! Loads too large for one write batch: entries are gathered, sorted by key, and written in order
//! through the store's bulk door, as one atomic step.

use std::collections::{BTreeMap, HashMap};

use super::dml::{duplicate_index_key, duplicate_rowkey, rowkey_of};
use super::rekey;
use super::run::{Run, sort_all};
use super::stored::{self, StoredRow};
use super::watch::Watch;
use crate::error::{Error, Result};
use crate::index::{entry_of, open_entry};
use crate::key::{KeyRange, Rowkey};
use crate::schema::{Access, IndexDef, TableDef};
use crate::store::{BulkWriter, Direction, KeyspaceId, Reader};
use crate::value::Value;

/// Bytes of entries gathered before they are sorted and written.
const RUN_BYTES: usize = 256 << 20;

/// Bytes of entries of one step of building an index: other writers wait for it.
const BUILD_BYTES: usize = 64 << 20;

/// Sorted runs of entries on their way to a bulk writer.
pub struct Loader<'a> {
    table: &'a TableDef,
    writer: Box<dyn BulkWriter + 'a>,
    watch: &'a Watch,
    gathered: BTreeMap<KeyspaceId, Run>,
    rows: u64,
    /// Keyspaces that were empty when the load began: only this load's own entries can collide.
    fresh: bool,
    /// Keys of the rows gathered that no other row may have, where they are asked for.
    taken: HashMap<(KeyspaceId, Rowkey), Rowkey>,
}

impl<'a> Loader<'a> {
    /// A load of new rows into `table`. `fresh`: the table has no rows yet.
    pub fn new(table: &'a TableDef, writer: Box<dyn BulkWriter + 'a>, fresh: bool, watch: &'a Watch) -> Self {
        let (gathered, taken) = (BTreeMap::new(), HashMap::new());
        Loader { table, writer, watch, gathered, rows: 0, fresh, taken }
    }

    /// [`Loader::add`] of a row whose keys are looked up first. Errors: one of them is taken; the load can go on.
    pub fn add_if_free(&mut self, row: &[Value]) -> Result<()> {
        let table = self.table;
        let rowkey = rowkey_of(table, row)?;
        let mut keys = vec![(None, rowkey.clone())];
        for index in table.kept().filter(|index| index.unique) {
            keys.extend(entry_of(table, index, row, &rowkey)?.map(|entry| (Some(index), entry.key)));
        }
        for (index, key) in &keys {
            let keyspace = index.map_or(table.rows(), |index| index.keyspace);
            let holder = match self.taken.get(&(keyspace, key.clone())) {
                Some(holder) => Some(holder.clone()),
                None if self.fresh => None,
                None => match (self.writer.get(keyspace, key)?, index) {
                    (Some(entry), Some(index)) => Some(open_entry(index, key, &entry)?.pointer.into()),
                    (Some(_), None) => Some(key.clone()),
                    (None, _) => None,
                },
            };
            if let Some(holder) = holder {
                return Err(match index {
                    Some(index) => duplicate_index_key(table, index, key, &holder, &rowkey),
                    None => duplicate_rowkey(table, key),
                });
            }
        }
        for (index, key) in keys {
            let keyspace = index.map_or(table.rows(), |index| index.keyspace);
            self.taken.insert((keyspace, key), rowkey.clone());
        }
        self.add(row)
    }

    /// Adds a row. Errors: a value its key part cannot hold.
    pub fn add(&mut self, row: &[Value]) -> Result<()> {
        let rowkey = rowkey_of(self.table, row)?;
        self.table.touched(Access::Write, &rowkey);
        let gathered = &mut self.gathered;
        let mut gather = |keyspace, key: &Rowkey, value: &[u8]| {
            gathered.entry(keyspace).or_default().push(key, value);
        };
        stored::entries_of(self.table, row, &rowkey, &mut gather)?;
        if let Some(next) = self.table.followed() {
            rekey::entries_of(next, row, &rowkey, &mut gather)?;
        }
        self.rows += 1;
        let size: usize = self.gathered.values().map(Run::size).sum();
        if size >= RUN_BYTES { self.write_run() } else { Ok(()) }
    }

    /// Sorts what was gathered and writes it, refusing keys that are taken.
    fn write_run(&mut self) -> Result<()> {
        let table = self.table;
        let mut runs = std::mem::take(&mut self.gathered);
        sort_all(runs.values_mut());
        for (keyspace, run) in runs {
            let index = table.kept().find(|i| i.keyspace == keyspace);
            let unique = keyspace == table.rows() || index.is_some_and(|i| i.unique);
            let label = format!("writing {}", index.map_or(&table.name, |i| &i.name));
            let total = run.len() as u64;
            let mut last: Option<(&[u8], &[u8])> = None;
            for (n, (key, value)) in run.iter().enumerate() {
                if unique {
                    let existing = match last {
                        Some((k, v)) if k == key => Some(v.to_vec()),
                        _ if self.fresh => None,
                        _ => self.writer.get(keyspace, key)?,
                    };
                    if let Some(existing) = existing {
                        return Err(self.collision(index, key, value, &existing));
                    }
                    last = Some((key, value));
                }
                self.writer.put(keyspace, key, value)?;
                if n % 8192 == 0 {
                    self.watch.step(&label, n as u64, Some(total), "entries")?;
                }
            }
            self.watch.finish(&label, total, "entries");
        }
        // A second run may meet what the first one wrote.
        self.fresh = false;
        self.taken.clear();
        Ok(())
    }

    fn collision(&self, index: Option<&IndexDef>, key: &[u8], value: &[u8], existing: &[u8]) -> Error {
        let Some(index) = index else { return duplicate_rowkey(self.table, key) };
        let pointers = open_entry(index, key, existing).and_then(|a| Ok((a, open_entry(index, key, value)?)));
        match pointers {
            Ok((a, b)) => duplicate_index_key(self.table, index, key, a.pointer, b.pointer),
            Err(e) => e,
        }
    }

    /// Rows added so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Puts `key` next to the rows, in the same atomic step.
    pub fn put(&mut self, keyspace: KeyspaceId, key: &[u8], value: &[u8]) -> Result<()> {
        self.writer.put(keyspace, key, value)
    }

    /// Writes the last run and makes everything durable, if `check` agrees; gives the number of rows.
    pub fn commit(mut self, check: impl FnOnce(&dyn BulkWriter) -> Result<()>) -> Result<u64> {
        self.write_run()?;
        check(&*self.writer)?;
        self.writer.commit()?;
        Ok(self.rows)
    }
}

/// What one step of building an index came to.
#[derive(Debug, Default)]
pub struct Built {
    /// The last row it looked at; `None` if no rows are left behind it.
    pub last: Option<Rowkey>,
    /// Rows it looked at.
    pub rows: u64,
    /// Rows left out because another one has their key in a UNIQUE index.
    pub taken: u64,
    /// The first few of them.
    pub examples: Vec<Taken>,
}

/// A key of a UNIQUE index that two rows want.
#[derive(Debug)]
pub struct Taken {
    /// The key.
    pub key: Rowkey,
    /// The row that has it, and the row that was left out.
    pub rows: (Rowkey, Rowkey),
}

/// Pairs of rows kept to be named (count).
const EXAMPLES_MAX: usize = 10;

/// Writes the entries of rows of `range`, from its start, until `rows_max` of them or a run of entries are done.
/// `reader` shows what is committed, with `writer` the only one to change it.
///
/// Errors: a value the layout cannot hold, naming the row; `Cancelled`.
pub fn build_step(
    (table, index): (&TableDef, &IndexDef),
    range: &KeyRange,
    rows_max: u64,
    reader: &dyn Reader,
    writer: &mut dyn BulkWriter,
    watch: &Watch,
) -> Result<Built> {
    let mut run = Run::default();
    let mut built = walk_step(table, range, rows_max, reader, watch, &mut |row| {
        if let Some(entry) = entry_of(table, index, &row.values, &row.rowkey)? {
            run.push(&entry.key, &entry.value);
        }
        Ok(run.size())
    })?;
    run.sort();
    for (key, value) in run.iter() {
        if index.unique
            && let Some(existing) = writer.get(index.keyspace, key)?
        {
            // A row written since the index is there has its entry already.
            let (a, b) = (open_entry(index, key, &existing)?, open_entry(index, key, value)?);
            if a.pointer != b.pointer {
                built.taken += 1;
                if built.examples.len() < EXAMPLES_MAX {
                    let rows = (a.pointer.into(), b.pointer.into());
                    built.examples.push(Taken { key: key.into(), rows });
                }
                continue;
            }
        }
        writer.put(index.keyspace, key, value)?;
    }
    Ok(built)
}

/// Like [`build_step`], of everything that the rows are in the table they are on their way to.
pub fn fill_step(
    (table, next): (&TableDef, &TableDef),
    range: &KeyRange,
    rows_max: u64,
    reader: &dyn Reader,
    writer: &mut dyn BulkWriter,
    watch: &Watch,
) -> Result<Built> {
    let mut runs: BTreeMap<KeyspaceId, Run> = BTreeMap::new();
    let built = walk_step(table, range, rows_max, reader, watch, &mut |row| {
        rekey::entries_of(next, &row.values, &row.rowkey, &mut |keyspace, key, value| {
            runs.entry(keyspace).or_default().push(key, value);
        })?;
        Ok(runs.values().map(Run::size).sum())
    })?;
    sort_all(runs.values_mut());
    for (keyspace, run) in runs {
        run.iter().try_for_each(|(key, value)| writer.put(keyspace, key, value))?;
    }
    Ok(built)
}

/// Shows rows of `range` to `gather`, which says how many bytes it has, until there are enough of either.
fn walk_step(
    table: &TableDef,
    range: &KeyRange,
    rows_max: u64,
    reader: &dyn Reader,
    watch: &Watch,
    gather: &mut dyn FnMut(&StoredRow) -> Result<usize>,
) -> Result<Built> {
    let mut built = Built::default();
    let mut cursor = reader.cursor(table.rows(), range, Direction::Forward)?;
    while let Some((key, value)) = cursor.next()? {
        built.rows += 1;
        let row = stored::row_of(reader, table, key, value)?;
        let size = gather(&row).map_err(|e| of_row(e, table, &row.rowkey))?;
        if built.rows.is_multiple_of(8192) {
            watch.cancel.check()?;
        }
        if built.rows >= rows_max || size >= BUILD_BYTES {
            built.last = Some(row.rowkey);
            break;
        }
    }
    Ok(built)
}

/// An error that a row of the table has.
fn of_row(e: Error, table: &TableDef, rowkey: &Rowkey) -> Error {
    let row = format!("row {} of \"{}\"", table.key.show(rowkey), table.name);
    let why = e.reason().map_or_else(|| row.clone(), |why| format!("{why}; {row}"));
    e.why(why)
}
