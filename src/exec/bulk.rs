//! Loads too large for one write batch: entries are gathered, sorted by key, and written in order
//! through the store's bulk door, as one atomic step.

use std::collections::{BTreeMap, HashMap};

use super::dml::{duplicate_index_key, duplicate_rowkey, rowkey_of};
use super::rekey;
use super::run::{Run, sort_all};
use super::stored;
use super::watch::Watch;
use crate::error::{Error, Result};
use crate::index::{entry_of, open_entry};
use crate::key::Rowkey;
use crate::schema::{Access, IndexDef, TableDef};
use crate::store::{BulkWriter, KeyspaceId};
use crate::value::Value;

/// Bytes of entries gathered before they are sorted and written.
const RUN_BYTES: usize = 256 << 20;

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
