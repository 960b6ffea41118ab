//! Loads too large for one write batch: entries are gathered, sorted by key, and written in order through a bulk
//! writer, as one atomic step.
//!
//! Each entry is written once, each keyspace from its first key to its last ([`Sorter`]): a B-tree that is appended
//! to fills its pages, and an LSM tree makes tables that do not overlap.

use std::path::Path;
use std::sync::mpsc;
use std::thread;

use super::changes::writing;
use super::dml::{Writes, duplicate_index_key, duplicate_rowkey, rowkey_of};
use super::rekey;
use super::sorter::{Pile, Sorter};
use super::stored::{self, Packer};
use super::watch::Watch;
use crate::error::{Error, Kind, Result};
use crate::index::{entry_of, open_entry};
use crate::key::{FastMap, FastSet, Rowkey};
use crate::schema::{IndexDef, TableDef, TrafficKind};
use crate::store::{BulkWriter, KeyspaceId, Snapshot, WriteBatch};
use crate::value::Value;

/// Limit of entries in memory, in bytes; beyond it sorted runs are spilled to disk.
const GATHERED_BYTES: usize = 128 * UNIT;

/// Limit of unique keys in memory, in bytes; beyond it everything gathered is written, and looked up in the store.
const TAKEN_BYTES: usize = 64 * UNIT;

/// Small in tests, so that they see more than one run.
const UNIT: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };

/// Chunks of rows (count) that may wait to become entries.
const CHUNKS_WAITING: usize = 1;

/// Loads rows through a bulk writer.
pub struct Loader<'a> {
    table: &'a TableDef,
    writer: &'a mut dyn BulkWriter,
    watch: &'a Watch,
    gathered: EntrySorter<'a>,
    /// The keyspaces are empty in the store, so keys can collide only within the sorter.
    fresh: bool,
    before: Option<RowsBefore<'a>>,
    taken: ClaimedKeys,
}

/// The rows that a table has when a load begins.
pub struct RowsBefore<'a> {
    snapshot: &'a dyn Snapshot,
    as_of_us: i64,
    /// Expired rows that were deleted, so that what has their rowkeys now is new.
    gone: FastSet<Rowkey>,
}

impl<'a> RowsBefore<'a> {
    /// Those of a snapshot. One that has expired by `as_of_us`, in microseconds since 1970, holds no key: it is
    /// deleted when met.
    pub fn new(snapshot: &'a dyn Snapshot, as_of_us: i64) -> Self {
        RowsBefore { snapshot, as_of_us, gone: FastSet::default() }
    }

    /// Deletes a row with all its entries, if it is one of these and has expired; whether it has.
    pub(super) fn purge(
        &mut self,
        table: &TableDef,
        rowkey: &Rowkey,
        writer: &mut dyn BulkWriter,
    ) -> Result<bool> {
        if table.ttl_us.is_none() || self.gone.contains(rowkey) {
            return Ok(false);
        }
        let reader = self.snapshot.reader()?;
        let found = stored::rows_of(&*reader, table, &[rowkey])?.into_iter().flatten().next();
        let Some(row) = found.filter(|row| !table.is_alive(&row.values, self.as_of_us)) else {
            return Ok(false);
        };
        let mut writes = Writes::new(table, WriteBatch::default(), self.as_of_us);
        writes.add(&*reader, rowkey, Some(&row), None)?;
        writes.finish(&*reader)?.write_to(writer)?;
        Ok(self.gone.insert(rowkey.clone()))
    }
}

/// Turns rows into entries, and sorts them.
struct EntrySorter<'a> {
    packer: Packer<'a>,
    /// For the next layout, while a REKEY is in progress.
    next: Option<Packer<'a>>,
    watch: &'a Watch,
    sorter: Sorter,
    rows: u64,
}

impl EntrySorter<'_> {
    fn add_new(&mut self, row: &[Value]) -> Result<()> {
        let number = self.rows;
        let added = rowkey_of(self.packer.table(), row).and_then(|rowkey| self.add(row, &rowkey));
        added.map_err(|e| e.of_row(number))
    }

    fn add(&mut self, row: &[Value], rowkey: &Rowkey) -> Result<()> {
        self.packer.table().touched(TrafficKind::Write, rowkey);
        let EntrySorter { packer, next, sorter, .. } = self;
        entries_of((packer, next), row, rowkey, &mut |keyspace, key, value| {
            sorter.push(keyspace, key, value);
        })?;
        self.rows += 1;
        self.sorter.make_room(&self.watch.cancel)
    }
}

/// Calls `f` with every entry of a row, including those under the next layout.
fn entries_of(
    (packer, next): (&Packer<'_>, &Option<Packer<'_>>),
    row: &[Value],
    rowkey: &Rowkey,
    f: &mut dyn FnMut(KeyspaceId, &Rowkey, &[u8]),
) -> Result<()> {
    packer.entries_of(row, rowkey, f)?;
    next.as_ref().map_or(Ok(()), |next| rekey::entries_of(next, row, rowkey, f))
}

/// Unique keys of the rows in the sorter, kept where [`Loader::add_if_free`] needs them.
#[derive(Default)]
struct ClaimedKeys {
    /// Each with the row that has it; `None`: the key is the rowkey itself.
    keys: FastMap<KeyspaceId, FastMap<Rowkey, Option<Rowkey>>>,
    /// Approximate memory used, in bytes.
    bytes: usize,
}

impl ClaimedKeys {
    /// The row that has the key.
    fn holder(&self, keyspace: KeyspaceId, key: &Rowkey) -> Option<Rowkey> {
        let holder = self.keys.get(&keyspace)?.get(key)?;
        Some(holder.as_ref().unwrap_or(key).clone())
    }

    /// Notes that a row has the key.
    fn add(&mut self, keyspace: KeyspaceId, key: Rowkey, holder: Option<Rowkey>) {
        self.bytes += size_of::<(Rowkey, Option<Rowkey>)>();
        self.bytes += key.len() + holder.as_ref().map_or(0, |holder| holder.len());
        self.keys.entry(keyspace).or_default().insert(key, holder);
    }
}

impl<'a> Loader<'a> {
    /// Begins a load of new rows into `table`, which has those of `before`; `None`: it has none yet.
    pub fn new(
        table: &'a TableDef,
        writer: &'a mut dyn BulkWriter,
        before: Option<RowsBefore<'a>>,
        watch: &'a Watch,
    ) -> Self {
        let sorter = Sorter::new(writer.folder().map(Path::to_owned), GATHERED_BYTES);
        let (packer, next) = (Packer::new(table), table.followed().map(Packer::new));
        let gathered = EntrySorter { packer, next, watch, sorter, rows: 0 };
        let fresh = before.is_none();
        Loader { table, writer, watch, gathered, fresh, before, taken: ClaimedKeys::default() }
    }

    /// Bounds the memory for unique keys; to be called before each [`Loader::add_if_free`].
    ///
    /// Errors: what was gathered cannot be written, which ends the load.
    pub fn make_room(&mut self) -> Result<()> {
        if self.taken.bytes >= TAKEN_BYTES { self.write_gathered() } else { Ok(()) }
    }

    /// [`Loader::add`] for a row that may be refused: then nothing of it has been gathered, and the load can go on.
    ///
    /// Errors: one of its keys is taken; a value that a key part cannot hold.
    pub fn add_if_free(&mut self, row: &[Value]) -> Result<()> {
        let table = self.table;
        let rowkey = rowkey_of(table, row)?;
        let mut keys = vec![(None, rowkey.clone())];
        for index in table.maintained_indexes().filter(|index| index.unique) {
            keys.extend(entry_of(table, index, row, &rowkey)?.map(|entry| (Some(index), entry.key)));
        }
        for (index, key) in &keys {
            let keyspace = index.map_or(table.rows(), |index| index.keyspace);
            let holder = match self.taken.holder(keyspace, key) {
                Some(holder) => Some(holder),
                None => self.written(*index, key)?.map(|(holder, _)| holder),
            };
            if let Some(holder) = holder {
                return Err(match index {
                    Some(index) => duplicate_index_key(table, index, key, &holder, &rowkey),
                    None => duplicate_rowkey(table, key),
                });
            }
        }
        let EntrySorter { packer, next, .. } = &self.gathered;
        entries_of((packer, next), row, &rowkey, &mut |_, _, _| ())?;
        for (index, key) in keys {
            match index {
                Some(index) => self.taken.add(index.keyspace, key, Some(rowkey.clone())),
                None => self.taken.add(table.rows(), key, None),
            }
        }
        self.gathered.add(row, &rowkey)
    }

    /// The row that holds a unique key in the store, and the entry there. An expired one holds none, and is deleted.
    fn written(&mut self, index: Option<&IndexDef>, key: &[u8]) -> Result<Option<(Rowkey, Vec<u8>)>> {
        if self.fresh {
            return Ok(None);
        }
        let keyspace = index.map_or(self.table.rows(), |index| index.keyspace);
        let Some(entry) = self.writer.get(keyspace, key)? else { return Ok(None) };
        let holder = match index {
            Some(index) => open_entry(index, key, &entry)?.pointer.into(),
            None => Rowkey::from(key),
        };
        let is_gone = match &mut self.before {
            Some(before) => before.purge(self.table, &holder, self.writer)?,
            None => false,
        };
        Ok((!is_gone).then_some((holder, entry)))
    }

    /// Adds a row. Errors: a value its key part cannot hold.
    pub fn add(&mut self, row: &[Value]) -> Result<()> {
        self.gathered.add_new(row)
    }

    /// Adds a row whose rowkey is known. Errors: a value that the key part of an index cannot hold.
    pub fn add_under(&mut self, row: &[Value], rowkey: &Rowkey) -> Result<()> {
        self.gathered.add(row, rowkey)
    }

    /// Adds all rows that `next` gives, chunk by chunk. If there are several chunks, another thread turns them into
    /// entries while this one reads.
    ///
    /// Errors: as [`Loader::add`], and those of `next`.
    pub fn add_all(&mut self, mut next: impl FnMut() -> Result<Option<Vec<Vec<Value>>>>) -> Result<()> {
        let gathered = &mut self.gathered;
        let mut add = move |row: &Vec<Value>| gathered.add_new(row);
        let Some(first) = next()? else { return Ok(()) };
        let second = match next() {
            Ok(Some(second)) => second,
            ended => return first.iter().try_for_each(add).and(ended.map(drop)),
        };
        let mut read_before = [first, second].into_iter();
        let mut next = || read_before.next().map_or_else(&mut next, |rows| Ok(Some(rows)));
        thread::scope(|scope| {
            let (give, given) = mpsc::sync_channel::<Vec<Vec<Value>>>(CHUNKS_WAITING);
            let adding = thread::Builder::new()
                .name("rowkeydb-entries".to_owned())
                .spawn_scoped(scope, move || given.iter().flatten().try_for_each(|row| add(&row)))
                .map_err(|e| {
                    Error::new(Kind::Unavailable, "the system has no thread to give").caused_by(e)
                })?;
            let read = loop {
                let rows = match next() {
                    Ok(Some(rows)) => rows,
                    ended => break ended.map(drop),
                };
                if give.send(rows).is_err() {
                    // The other thread has failed.
                    break Ok(());
                }
            };
            drop(give);
            let added =
                adding.join().map_err(|_| Error::internal("a thread that makes entries has panicked"))?;
            // An error while adding concerns earlier rows than one while reading.
            added.and(read)
        })
    }

    /// Writes what was gathered, refusing duplicate keys.
    fn write_gathered(&mut self) -> Result<()> {
        // Unique keys first, for that deletes expired rows that hold them: later it might take away other entries that
        // new rows have in their place.
        let table = self.table;
        let unique: Vec<KeyspaceId> =
            table.maintained_indexes().filter(|i| i.unique).map(|i| i.keyspace).collect();
        let is_unique = |keyspace: &KeyspaceId| *keyspace == table.rows() || unique.contains(keyspace);
        let piles = self.gathered.sorter.take().into_iter();
        let (unique, others): (Vec<_>, Vec<_>) = piles.partition(|(keyspace, _)| is_unique(keyspace));
        for (keyspace, pile) in unique {
            self.write_pile(keyspace, pile, true)?;
        }
        for (keyspace, pile) in others {
            self.write_pile(keyspace, pile, false)?;
        }
        // Rows added later may collide with those written now.
        self.fresh = false;
        self.taken = ClaimedKeys::default();
        Ok(())
    }

    /// Writes the entries of a keyspace, whose keys are `unique`.
    fn write_pile(&mut self, keyspace: KeyspaceId, mut pile: Pile, unique: bool) -> Result<()> {
        let table = self.table;
        let index = table.maintained_indexes().find(|i| i.keyspace == keyspace);
        let label = writing(table, keyspace);
        let total = pile.len();
        let (mut last_key, mut last_value) = (Vec::new(), Vec::new());
        let mut entries = pile.merge()?;
        let mut written = 0;
        while let Some((key, value)) = entries.next()? {
            if unique {
                let existing = match written > 0 && last_key == key {
                    true => Some(std::mem::take(&mut last_value)),
                    false => self.written(index, key)?.map(|(_, entry)| entry),
                };
                if let Some(existing) = existing {
                    return Err(self.collision(index, key, value, &existing));
                }
                last_key.clear();
                last_key.extend_from_slice(key);
                last_value.clear();
                last_value.extend_from_slice(value);
            }
            self.writer.put(keyspace, key, value)?;
            self.watch.tick(&label, written, Some(total), "entries")?;
            written += 1;
        }
        self.watch.finish(&label, total, "entries");
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

    /// Makes more changes in the same atomic step.
    pub fn write(&mut self, batch: &WriteBatch) -> Result<()> {
        batch.write_to(self.writer)
    }

    /// Writes all entries, for the writer's commit; gives the number of rows.
    pub fn finish(mut self) -> Result<u64> {
        self.write_gathered()?;
        Ok(self.gathered.rows)
    }
}

#[cfg(test)]
mod tests;
