//! Turns a statement's changes of rows into one atomic batch, index entries included.
//!
//! [`Writes`] takes a row's old and new values, and writes the families and index entries that differ. So UPDATE and
//! DELETE hold no more rows than they read at once. Where several changes may affect one row, as in an INSERT, a
//! [`ChangeSet`] first collects them by rowkey.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};

use super::past::HistoryWriter;
use super::rekey;
use super::stored::{self, ColumnProjection, Packer, StoredRow};
use super::watch::Watch;
use crate::error::{Error, Result, counted, sqlstate};
use crate::index::{check_length, entry_of, index_changes, open_entry};
use crate::key::{ColumnId, FastMap, FastSet, KEY_BYTES_MAX, KeyLayout, KeyPart, Rowkey, in_key_order};
use crate::schema::{FamilyId, IndexDef, IndexId, IndexState, TableDef, TrafficKind};
use crate::store::{KeyspaceId, Mutation, Reader, WriteBatch};
use crate::value::{Value, name_sql};

/// Rows (count) that are read together, and changed between two checks for cancellation.
pub const ROWS_READ: usize = 1024;

/// Limit of a statement's writes in memory, in bytes, if they are independent of each other. Small in tests, so that
/// they exceed it.
const MANY_BYTES: usize = if cfg!(test) { 4 << 10 } else { 16 << 20 };

/// The change of one row.
pub struct RowChange {
    /// The row before the statement.
    pub old: Option<StoredRow>,
    /// The row after it.
    pub new: Option<Vec<Value>>,
}

/// Collects the changes of one statement to one table.
pub struct ChangeSet<'a> {
    table: &'a TableDef,
    reader: &'a dyn Reader,
    watch: &'a Watch,
    as_of_us: i64,
    changes: RowChanges,
    /// Unique index keys taken by [`ChangeSet::claim_unique`], with the row that has each.
    claimed: FastMap<(KeyspaceId, Rowkey), Rowkey>,
}

/// Changes by rowkey.
pub type RowChanges = FastMap<Rowkey, RowChange>;

impl<'a> ChangeSet<'a> {
    /// Collects changes of `table`, read through `reader`, until `watch` is cancelled. Rows that have expired by
    /// `as_of_us`, in microseconds since 1970, count as absent, and are deleted when met.
    pub fn new(table: &'a TableDef, reader: &'a dyn Reader, watch: &'a Watch, as_of_us: i64) -> Self {
        let (changes, claimed) = (RowChanges::default(), FastMap::default());
        ChangeSet { table, reader, watch, as_of_us, changes, claimed }
    }

    /// The changes, for [`Writes::add_all`].
    pub fn into_changes(self) -> RowChanges {
        self.changes
    }

    /// The current row under `rowkey`, including this statement's own changes.
    pub fn current(&mut self, rowkey: &Rowkey) -> Result<Option<&[Value]>> {
        Ok(self.change(rowkey)?.new.as_deref())
    }

    /// Reads rows that are to be changed, all together, which is faster than one by one.
    pub fn read<'k>(&mut self, rowkeys: impl Iterator<Item = &'k Rowkey>) -> Result<()> {
        let unread: Vec<&[u8]> =
            rowkeys.filter(|key| !self.changes.contains_key(*key)).map(|key| &key[..]).collect();
        for keys in unread.chunks(ROWS_READ) {
            self.watch.cancel.check()?;
            for (key, old) in keys.iter().zip(stored::rows_of(self.reader, self.table, keys)?) {
                let is_alive = |row: &&StoredRow| self.table.is_alive(&row.values, self.as_of_us);
                let new = old.as_ref().filter(is_alive).map(|row| row.values.clone());
                self.changes.insert(Rowkey::from(*key), RowChange { old, new });
            }
        }
        Ok(())
    }

    fn change(&mut self, rowkey: &Rowkey) -> Result<&mut RowChange> {
        if !self.changes.contains_key(rowkey) {
            self.read(std::iter::once(rowkey))?;
        }
        self.changes.get_mut(rowkey).ok_or_else(|| Error::internal("a change went missing"))
    }

    /// Adds a row. Errors: its rowkey exists.
    pub fn insert(&mut self, rowkey: &Rowkey, values: Vec<Value>) -> Result<()> {
        let table = self.table;
        let change = self.change(rowkey)?;
        if change.new.is_some() {
            return Err(duplicate_rowkey(table, rowkey));
        }
        change.new = Some(values);
        Ok(())
    }

    /// The rowkey for a new row with these values, of a table whose key has a `random(n)` part: `drawn`, or that of
    /// another bucket if a row has it. `None`: all buckets are taken.
    pub fn free(&mut self, drawn: Rowkey, values: &[Value]) -> Result<Option<Rowkey>> {
        let buckets = self.table.key.parts().iter().filter_map(KeyPart::drawn_of).max();
        let (mut rowkey, first) = (drawn, entropy());
        for n in 0..=u64::from(buckets.unwrap_or_default()) {
            if self.current(&rowkey)?.is_none() {
                return Ok(Some(rowkey));
            }
            // Numbers that follow each other draw all buckets.
            rowkey = rowkey_from(self.table, values, first.wrapping_add(n))?;
        }
        Ok(None)
    }

    /// Stores a row, replacing any existing one.
    pub fn replace(&mut self, rowkey: &Rowkey, values: Vec<Value>) -> Result<()> {
        self.change(rowkey)?.new = Some(values);
        Ok(())
    }

    /// The row that already holds the key of `values` in one of these UNIQUE indexes. If there is none, the keys are
    /// claimed for the row under `rowkey`, which the caller then adds.
    pub fn claim_unique(
        &mut self,
        values: &[Value],
        rowkey: &Rowkey,
        indexes: &[IndexId],
    ) -> Result<Option<Rowkey>> {
        let mut keys = Vec::new();
        for index in self.table.indexes.iter().filter(|i| indexes.contains(&i.id)) {
            let entry = entry_of(self.table, index, values, rowkey)?;
            let Some(entry) = entry.filter(|entry| entry.claims) else { continue };
            if let Some(value) = self.reader.get(index.keyspace, &entry.key)? {
                let holder: Rowkey = open_entry(index, &entry.key, value)?.pointer.into();
                // That row may have expired, or been changed by this statement.
                let table = self.table;
                let now = match self.current(&holder)? {
                    Some(row) => entry_of(table, index, row, &holder)?,
                    None => None,
                };
                if now.is_some_and(|now| now.key == entry.key) {
                    return Ok(Some(holder));
                }
            }
            let key = (index.keyspace, entry.key);
            if let Some(holder) = self.claimed.get(&key) {
                return Ok(Some(holder.clone()));
            }
            keys.push(key);
        }
        self.claimed.extend(keys.into_iter().map(|key| (key, rowkey.clone())));
        Ok(None)
    }
}

/// Turns changes of rows into writes; each row may be changed once.
pub struct Writes<'a> {
    table: &'a TableDef,
    packer: Packer<'a>,
    /// For the next layout, while a REKEY is in progress.
    next: Option<Packer<'a>>,
    /// Each with the columns that its entries are made from.
    indexes: Vec<(&'a IndexDef, OnceCell<Vec<ColumnId>>)>,
    unique: UniqueCheck,
    /// Where old versions go, if the table keeps them.
    past: Option<HistoryWriter<'a>>,
    as_of_us: i64,
    batch: WriteBatch,
    /// The first `counted` mutations (count) have this many bytes.
    counted: usize,
    bytes: usize,
}

impl<'a> Writes<'a> {
    /// Writes added to those of `batch`, of a statement that began at `as_of_us`, in microseconds since 1970.
    pub fn new(table: &'a TableDef, batch: WriteBatch, as_of_us: i64) -> Self {
        let indexes = table.maintained_indexes().map(|index| (index, OnceCell::new())).collect();
        let (packer, next) = (Packer::new(table), table.followed().map(Packer::new));
        let (unique, past) = (UniqueCheck::default(), HistoryWriter::of(table));
        Writes { table, packer, next, indexes, unique, past, as_of_us, batch, counted: 0, bytes: 0 }
    }

    /// Changes rows, in the order of their keys, until `watch` is cancelled. Errors: as [`Writes::add`].
    pub fn add_all(&mut self, reader: &dyn Reader, changes: &RowChanges, watch: &Watch) -> Result<()> {
        let changes = in_key_order(changes.iter(), |(rowkey, _)| ((), rowkey));
        for (n, (rowkey, RowChange { old, new })) in changes.into_iter().enumerate() {
            if n.is_multiple_of(ROWS_READ) {
                watch.cancel.check()?;
            }
            self.add(reader, rowkey, old.as_ref(), new.as_deref()).map_err(|e| e.of_rowkey(rowkey))?;
        }
        Ok(())
    }

    /// Changes a row from `old` to `new`; `None`: absent.
    ///
    /// Errors: a value an index layout cannot hold.
    pub fn add(
        &mut self,
        reader: &dyn Reader,
        rowkey: &Rowkey,
        old: Option<&StoredRow>,
        new: Option<&[Value]>,
    ) -> Result<()> {
        let Writes { table, packer, unique, past, as_of_us, batch, .. } = self;
        if old.is_none() && new.is_none() {
            return Ok(());
        }
        table.touched(TrafficKind::Write, rowkey);
        let later = match (&past, old, new) {
            (Some(past), Some(old), Some(new)) => past.later(&old.values, new),
            _ => None,
        };
        let new = later.as_deref().or(new);
        unique.changes_rows |= old.is_some();
        packer.write_row(rowkey, old, new, batch)?;
        let old = old.map(|row| &row.values[..]);
        if let (Some(past), Some(old)) = (&past, old)
            && table.is_alive(old, *as_of_us)
        {
            past.end(reader, old, new, *as_of_us, batch)?;
        }
        self.change_entries(reader, rowkey, old, new)?;
        let next = self.next.as_ref();
        next.map_or(Ok(()), |next| rekey::follow(next, rowkey, old, new, &mut self.batch))
    }

    /// Changes the index entries of a row. Columns that no changed entry is made from may be NULL.
    ///
    /// Errors: a value an index layout cannot hold.
    pub fn change_entries(
        &mut self,
        reader: &dyn Reader,
        rowkey: &Rowkey,
        old: Option<&[Value]>,
        new: Option<&[Value]>,
    ) -> Result<()> {
        let Writes { table, indexes, unique, batch, .. } = self;
        for (index, columns) in indexes {
            if let (Some(old), Some(new)) = (old, new) {
                let columns = columns.get_or_init(|| stored_columns(table, index));
                if columns.iter().all(|id| old[usize::from(id.0)] == new[usize::from(id.0)]) {
                    continue;
                }
            }
            let entries = index_changes(table, index, rowkey, old, new)?;
            if let Some(key) = entries.delete
                && has_entry(reader, index, &key, rowkey)?
            {
                unique.deleted(index, &key);
                batch.delete(index.keyspace, key);
            }
            if let Some(entry) = entries.put {
                unique.put(index, &entry.key, rowkey);
                batch.put(index.keyspace, entry.key, entry.value);
            }
        }
        Ok(())
    }

    /// Changes only these columns of a row: see [`Writes::are_simple`]. `sealed`: the value of its default family.
    pub fn assign(&mut self, rowkey: Rowkey, sealed: &[u8], changed: &[(ColumnId, Value)]) -> Result<()> {
        self.table.touched(TrafficKind::Write, &rowkey);
        self.unique.changes_rows = true;
        let new = self.packer.reseal(FamilyId::DEFAULT, Some(sealed), changed)?;
        if new != sealed {
            self.batch.put(self.table.rows(), rowkey, new);
        }
        Ok(())
    }

    /// Deletes a row, but not its index entries: see [`Writes::are_simple`].
    pub fn remove(&mut self, rowkey: Rowkey) {
        self.table.touched(TrafficKind::Write, &rowkey);
        self.unique.changes_rows = true;
        self.batch.delete(self.table.rows(), rowkey);
    }

    /// The change affects only the default family and index entries: no version and no next layout depends on it.
    /// `changed`: the columns that change; `None`: rows are deleted.
    pub fn are_simple(table: &TableDef, changed: Option<&[ColumnId]>) -> bool {
        let is_simple = match changed {
            Some(changed) => changed.iter().all(|id| table.column(*id).family == FamilyId::DEFAULT),
            None => table.families.len() == 1,
        };
        is_simple && table.followed().is_none() && table.history.is_none()
    }

    /// The columns that the entries to be changed are made from; `None`: none are.
    pub fn sources_of_entries(table: &TableDef, changed: Option<&[ColumnId]>) -> Option<ColumnProjection> {
        let columns = table.maintained_indexes().map(|index| stored_columns(table, index));
        let is_changed = |columns: &Vec<ColumnId>| {
            changed.is_none_or(|changed| columns.iter().any(|id| changed.contains(id)))
        };
        let mut columns = columns.filter(is_changed).peekable();
        columns.peek()?;
        Some(ColumnProjection::only(table, columns.flatten()))
    }

    /// The writes so far take more memory than a commit should hold.
    pub fn are_many(&mut self) -> bool {
        let new = &self.batch.mutations[self.counted..];
        self.bytes += new.iter().map(|mutation| mutation.bytes() + size_of::<Mutation>()).sum::<usize>();
        self.counted = self.batch.mutations.len();
        self.bytes > MANY_BYTES
    }

    /// Takes the writes so far. Later rows must not write the same entries: see [`Writes::are_apart`].
    pub fn drain(&mut self) -> impl Iterator<Item = Mutation> {
        (self.counted, self.bytes) = (0, 0);
        self.unique = UniqueCheck::default();
        self.batch.mutations.drain(..)
    }

    /// No two rows write the same entry, so their order does not matter. `changed`: the columns that change; `None`:
    /// rows are deleted.
    pub fn are_apart(table: &TableDef, changed: Option<&[ColumnId]>) -> bool {
        let is_taken = |index: &IndexDef| {
            let changed = changed.unwrap_or_default();
            index.unique && stored_columns(table, index).iter().any(|id| changed.contains(id))
        };
        table.followed().is_none() && !table.maintained_indexes().any(is_taken)
    }

    /// The finished batch. A key of a UNIQUE index whose row has expired is free: that row is deleted.
    ///
    /// Errors: two rows with one key in a UNIQUE index.
    pub fn finish(mut self, reader: &dyn Reader) -> Result<WriteBatch> {
        let (table, unique) = (self.table, mem::take(&mut self.unique));
        // The rows that the statement writes, computed when needed; and the expired rows deleted besides.
        let (mut written, mut gone) = (None, FastSet::default());
        unique.verify(table, reader, &mut |holder| {
            if table.ttl_us.is_none() || gone.contains(holder) {
                return Ok(gone.contains(holder));
            }
            if written.get_or_insert_with(|| self.rowkeys()).contains(holder) {
                return Ok(false);
            }
            let found = stored::rows_of(reader, table, &[holder])?.into_iter().flatten().next();
            match found.filter(|row| !table.is_alive(&row.values, self.as_of_us)) {
                Some(row) => self.add(reader, holder, Some(&row), None)?,
                None => return Ok(false),
            }
            Ok(gone.insert(holder.clone()))
        })?;
        // If one row frees a key and another takes it, the key must end up taken: deletes go first.
        self.batch.mutations.sort_by_key(|m| !matches!(m, Mutation::Delete(..)));
        Ok(self.batch)
    }

    /// The rowkeys that are written.
    fn rowkeys(&self) -> FastSet<Rowkey> {
        let places = self.batch.mutations.iter().map(Mutation::place);
        let of_rows = places.filter(|(keyspace, _)| *keyspace == self.table.rows());
        of_rows.map(|(_, rowkey)| rowkey.into()).collect()
    }
}

/// Whether the entry under `key`, if it exists, belongs to the row under `rowkey`. While a UNIQUE index is being
/// built, or is broken, it may belong to another row.
fn has_entry(reader: &dyn Reader, index: &IndexDef, key: &Rowkey, rowkey: &Rowkey) -> Result<bool> {
    if !index.unique || index.state == IndexState::Ready {
        return Ok(true);
    }
    match reader.get(index.keyspace, key)? {
        Some(value) => Ok(open_entry(index, key, value)?.pointer == &rowkey[..]),
        None => Ok(false),
    }
}

/// The columns that the entries of an index are made from.
fn stored_columns(table: &TableDef, index: &IndexDef) -> Vec<ColumnId> {
    let columns = index.inputs().chain(index.include.iter().copied());
    columns.flat_map(|id| table.sources(id)).collect()
}

/// The rowkey under which a row of `table` is stored.
///
/// Errors: a value its key part cannot hold; a key that is empty or too long.
pub fn rowkey_of(table: &TableDef, values: &[Value]) -> Result<Rowkey> {
    rowkey_from(table, values, entropy())
}

/// As [`rowkey_of`], with `entropy` for `random(n)` parts.
pub fn rowkey_from(table: &TableDef, values: &[Value], entropy: u64) -> Result<Rowkey> {
    let mut key = Vec::with_capacity(64);
    table.key.encode(values, &|id| table.column_name(id), entropy, &mut key)?;
    if key.is_empty() {
        return Err(Error::invalid(format!("the rowkey of table \"{}\" would be empty", table.name))
            .why("every part of the key is the empty string")
            .state(sqlstate::KEY_RULE));
    }
    let value_of = |id: ColumnId| values[usize::from(id.0)].as_ref();
    check_length(table, None, &key, &value_of)?;
    // The rowkey of its versions must fit too: that has the time added, and terminates the last part.
    if let Some(past) = table.past()
        && 2 * key.len() + PAST_MORE > KEY_BYTES_MAX
    {
        let mut key = Vec::with_capacity(2 * KEY_BYTES_MAX);
        past.key.encode(values, &|id| table.column_name(id), entropy, &mut key)?;
        check_length(past, None, &key, &value_of)?;
    }
    Ok(key.into())
}

/// The rowkey of a version is at most twice as long as that of the row, plus this many bytes.
const PAST_MORE: usize = 16;

/// Entropy for `random(n)` parts: a sequence of [`drawn`] numbers, seeded by the clock.
pub fn entropy() -> u64 {
    static STATE: AtomicU64 = AtomicU64::new(0);
    if STATE.load(Ordering::Relaxed) == 0 {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let seed = now.map_or(1, |d| d.as_nanos() as u64) | 1;
        let _ = STATE.compare_exchange(0, seed, Ordering::Relaxed, Ordering::Relaxed);
    }
    drawn(STATE.fetch_add(1, Ordering::Relaxed))
}

/// Pseudo-random number `n` (splitmix64, Steele et al. 2014).
pub fn drawn(n: u64) -> u64 {
    let mut z = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The error for a duplicate rowkey.
pub fn duplicate_rowkey(table: &TableDef, rowkey: &[u8]) -> Error {
    let (why, hint) = match table.key.is_drawn() {
        true => {
            ("its bucket was drawn for two rows, and a load draws once", "INSERT and COPY try other buckets")
        }
        false => {
            ("a rowkey identifies one row", "UPSERT overwrites, ON CONFLICT DO NOTHING keeps the old row")
        }
    };
    let what = format!("rowkey {} exists already in table \"{}\"", table.key.show(rowkey), table.name);
    let error = Error::invalid(what).why(why).hint(hint).state(sqlstate::UNIQUE);
    of_key(error, table, &table.key).of_rowkey(rowkey)
}

/// Names the column of a key that is taken, if it is made of one.
fn of_key(error: Error, table: &TableDef, key: &KeyLayout) -> Error {
    match key.columns()[..] {
        [only] => error.of_column(table.column_name(only)),
        _ => error,
    }
}

/// The error for a row of which [all rowkeys](ChangeSet::free) are taken; `rowkey`: one of them.
pub fn all_taken(table: &TableDef, rowkey: &[u8]) -> Error {
    let buckets = table.key.parts().iter().find_map(KeyPart::drawn_of).unwrap_or_default();
    let exists = format!("rowkey {} exists already in table \"{}\"", table.key.show(rowkey), table.name);
    Error::invalid(format!("{exists}, and so do those of all other buckets"))
        .why(format!(
            "random({buckets}) lets {} have the same other parts of the key",
            counted(buckets, "row")
        ))
        .hint(
            "a column that tells these rows apart belongs into the key; ALTER TABLE .. REKEY (..) changes it",
        )
        .state(sqlstate::UNIQUE)
}

/// The error for a duplicate key of a UNIQUE index, which the row under `a` has and that under `b` would have.
pub fn duplicate_index_key(table: &TableDef, index: &IndexDef, key: &[u8], a: &[u8], b: &[u8]) -> Error {
    let (key, name) = (index.layout.show(key), &table.name);
    let rows =
        format!("rowkeys {} and {} of \"{name}\" would share it", table.key.show(a), table.key.show(b));
    let error = match table.is_next_key(index) {
        true => Error::invalid(format!("rowkey {key} is taken in the next layout of \"{name}\""))
            .hint(format!("change one of the rows, or ALTER TABLE {} REKEY CANCEL", name_sql(name))),
        false => Error::invalid(format!("key {key} exists already in unique index \"{}\"", index.name))
            .hint("change one of the rows, or drop the index"),
    };
    of_key(error, table, &index.layout).why(rows).state(sqlstate::UNIQUE).of_rowkey(b)
}

/// The unique index keys that a batch frees and takes.
#[derive(Default)]
struct UniqueCheck {
    deleted: FastSet<(KeyspaceId, Rowkey)>,
    puts: BTreeMap<(KeyspaceId, Rowkey), Vec<Rowkey>>,
    /// Rows that were there are changed or deleted; otherwise, rows are only added.
    changes_rows: bool,
}

impl UniqueCheck {
    fn deleted(&mut self, index: &IndexDef, key: &Rowkey) {
        if index.unique {
            self.deleted.insert((index.keyspace, key.clone()));
        }
    }

    fn put(&mut self, index: &IndexDef, key: &Rowkey, rowkey: &Rowkey) {
        if index.unique {
            self.puts.entry((index.keyspace, key.clone())).or_default().push(rowkey.clone());
        }
    }

    /// Checks that each key is taken by one row only. `frees`: whether the existing row with a key that another one
    /// takes is gone.
    ///
    /// Errors: two rows with one key.
    fn verify(
        &self,
        table: &TableDef,
        reader: &dyn Reader,
        frees: &mut dyn FnMut(&Rowkey) -> Result<bool>,
    ) -> Result<()> {
        let shared = |index: &IndexDef, key: &[u8], a: &[u8], b: &[u8]| {
            let error = duplicate_index_key(table, index, key, a, b);
            match self.changes_rows || table.is_next_key(index) {
                true => error,
                false => {
                    error.hint("INSERT .. ON CONFLICT DO NOTHING keeps the old row, DO UPDATE changes it")
                }
            }
        };
        for index in table.maintained_indexes().filter(|i| i.unique) {
            let puts = self.puts.range((index.keyspace, Rowkey::default())..);
            for (taken, rowkeys) in puts.take_while(|((keyspace, _), _)| *keyspace == index.keyspace) {
                let (keyspace, key) = taken;
                if let [a, b, ..] = &rowkeys[..] {
                    return Err(shared(index, key, a, b));
                }
                let existing = reader.get(*keyspace, key)?;
                let freed = self.deleted.contains(taken);
                if let Some(value) = existing
                    && !freed
                {
                    let holder = Rowkey::from(open_entry(index, key, value)?.pointer);
                    if holder != rowkeys[0] && !frees(&holder)? {
                        return Err(shared(index, key, &holder, &rowkeys[0]));
                    }
                }
            }
        }
        Ok(())
    }
}
