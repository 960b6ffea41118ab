//! A transaction: a snapshot, the reads made of it, and the changes made since.
//!
//! Each statement builds a [`WriteBatch`] over [`Transaction::view`], in which the transaction sees its own writes,
//! and [`Transaction::apply`] adds it to the buffer. Statements that write without building a batch use
//! [`Transaction::writer`]. [`Transaction::into_batch`] turns the buffer and all reads into the one batch that
//! [`Store::commit`](crate::store::Store::commit) takes: the store refuses it if another writer has changed any of
//! the reads since the snapshot.
//!
//! The buffer consists of persistent maps: a view or a savepoint shares it and costs a few references.

mod emptied;
mod overlay;

use std::path::Path;
use std::sync::Arc;

use imbl::OrdMap;

use crate::error::Result;
use crate::key::Rowkey;
use crate::store::{BulkWriter, KeyspaceId, Mutation, Reads, Recording, Snapshot, WriteBatch};
use emptied::Emptied;
use overlay::Overlay;

/// Buffered writes over one snapshot.
///
/// Nothing reaches the store until its batch is committed; dropped, it leaves nothing behind.
pub struct Transaction {
    base: Arc<dyn Snapshot>,
    /// The base again, with the reads it records; `None`: the transaction is read-only, and reads are not recorded.
    recording: Option<Arc<Recording>>,
    buffer: Buffer,
}

/// The state of a transaction at one moment; see [`Transaction::savepoint`].
#[derive(Clone)]
pub struct Savepoint(Buffer);

/// The changes of each keyspace.
type Buffer = OrdMap<KeyspaceId, KeyspaceChanges>;

/// The changes of one keyspace.
#[derive(Clone, Default)]
struct KeyspaceChanges {
    /// The base is hidden.
    cleared: bool,
    /// New values; `None` hides a key of the base.
    entries: OrdMap<Rowkey, Option<Arc<[u8]>>>,
    /// Puts minus deletes among `entries`.
    net: i64,
    emptied: Emptied,
}

impl Transaction {
    /// An empty transaction over the base of `recording`.
    pub fn new(recording: Recording) -> Self {
        let recording = Arc::new(recording);
        Transaction { base: recording.clone(), recording: Some(recording), buffer: Buffer::default() }
    }

    /// A read-only transaction.
    pub fn read_only(base: Arc<dyn Snapshot>) -> Self {
        Transaction { base, recording: None, buffer: Buffer::default() }
    }

    /// It must not write.
    pub fn is_read_only(&self) -> bool {
        self.recording.is_none()
    }

    /// The snapshot with the transaction's own writes. Later writes do not show in it.
    pub fn view(&self) -> Arc<dyn Snapshot> {
        let base = Arc::clone(&self.base);
        if self.buffer.is_empty() { base } else { Arc::new(Overlay::new(base, self.buffer.clone())) }
    }

    /// Buffers the writes of a statement. The reads they depend on were made through the view, which records them.
    pub fn apply(&mut self, batch: WriteBatch) {
        batch.mutations.into_iter().for_each(|mutation| self.write(mutation));
    }

    /// A writer for statements that write step by step, and may read their own writes.
    pub fn writer(&mut self) -> impl BulkWriter + '_ {
        TransactionWriter(self)
    }

    /// It has written nothing.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// It has written to this keyspace.
    pub fn changes(&self, keyspace: KeyspaceId) -> bool {
        self.buffer.contains_key(&keyspace)
    }

    /// A mark for [`Transaction::rollback_to`].
    pub fn savepoint(&self) -> Savepoint {
        Savepoint(self.buffer.clone())
    }

    /// Undoes every write since `savepoint`, which can be used again. Reads stay recorded: what the transaction does
    /// next may depend on them.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) {
        self.buffer = savepoint.0.clone();
    }

    /// Everything as one batch: the reads, then for each keyspace a clear, if there was one, and the changes in key
    /// order.
    pub fn into_batch(self) -> WriteBatch {
        let reads = self.recording.map(|recording| recording.reads()).unwrap_or_default();
        let mut batch = WriteBatch { reads, ..WriteBatch::default() };
        for (keyspace, changes) in self.buffer {
            if changes.cleared {
                batch.clear(keyspace);
            }
            for (key, change) in changes.entries {
                match change {
                    Some(value) => batch.put(keyspace, key, value.to_vec()),
                    None => batch.delete(keyspace, key),
                }
            }
        }
        batch
    }

    fn write(&mut self, mutation: Mutation) {
        match mutation {
            Mutation::Put(keyspace, key, value) => self.changes_of(keyspace).set(key, Some(value.into())),
            Mutation::Delete(keyspace, key) => self.changes_of(keyspace).set(key, None),
            Mutation::Clear(keyspace) => {
                *self.changes_of(keyspace) = KeyspaceChanges { cleared: true, ..KeyspaceChanges::default() };
            }
        }
    }

    fn changes_of(&mut self, keyspace: KeyspaceId) -> &mut KeyspaceChanges {
        self.buffer.entry(keyspace).or_default()
    }
}

/// A transaction as a [`BulkWriter`]: puts take effect at once, and the transaction's commit makes them durable.
struct TransactionWriter<'t>(&'t mut Transaction);

impl BulkWriter for TransactionWriter<'_> {
    fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let view = self.0.view();
        let value = view.reader()?.get(keyspace, key)?.map(<[u8]>::to_vec);
        Ok(value)
    }

    fn put(&mut self, keyspace: KeyspaceId, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.changes_of(keyspace).set(key.into(), Some(value.into()));
        Ok(())
    }

    fn delete(&mut self, keyspace: KeyspaceId, key: &[u8]) -> Result<()> {
        self.0.changes_of(keyspace).set(key.into(), None);
        Ok(())
    }

    /// The buffer is in memory.
    fn folder(&self) -> Option<&Path> {
        None
    }

    /// Reads are checked when the transaction is committed.
    fn check(&self, _: &Reads) -> Result<()> {
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

impl KeyspaceChanges {
    fn set(&mut self, key: Rowkey, change: Option<Arc<[u8]>>) {
        if change.is_some() {
            self.emptied.put(&key);
        }
        let weight = |change: &Option<Arc<[u8]>>| if change.is_some() { 1 } else { -1 };
        let old = if self.cleared && change.is_none() {
            // There is no base left whose key must be hidden.
            self.entries.remove(&key)
        } else {
            self.net += weight(&change);
            self.entries.insert(key, change)
        };
        self.net -= old.as_ref().map_or(0, weight);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::error::Kind;
    use crate::key::{End, KeyRange};
    use crate::store::{Direction, MemoryStore, Reader, Store};

    const T: KeyspaceId = KeyspaceId(1);

    fn store(entries: &[(&str, &str)]) -> MemoryStore {
        let store = MemoryStore::new();
        store.commit(puts(entries)).unwrap();
        store
    }

    fn begin(store: &MemoryStore) -> Transaction {
        Transaction::new(Recording::new(store.snapshot().unwrap()))
    }

    /// Which keys of one byte are there.
    fn have(view: &Arc<dyn Snapshot>, keys: std::ops::Range<u8>) -> Vec<bool> {
        let keys: Vec<[u8; 1]> = keys.map(|key| [key]).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        // These are no reads of the transaction's.
        let (reader, each) = (view.unrecorded().unwrap(), view.unrecorded().unwrap());
        let values = reader.get_many(T, &keys).unwrap();
        let alike = keys.iter().zip(&values).all(|(key, value)| each.get(T, key).unwrap() == *value);
        assert!(alike, "{keys:?}: {values:?}");
        values.iter().map(Option::is_some).collect()
    }

    fn puts(entries: &[(&str, &str)]) -> WriteBatch {
        let mut batch = WriteBatch::default();
        entries.iter().for_each(|(key, value)| batch.put(T, *key, value.as_bytes().to_vec()));
        batch
    }

    fn get(snapshot: &Arc<dyn Snapshot>, key: &str) -> Option<String> {
        let reader = snapshot.reader().unwrap();
        let value = reader.get(T, key.as_bytes()).unwrap();
        value.map(|value| String::from_utf8(value.to_vec()).unwrap())
    }

    #[test]
    fn there_are_no_entries_only_if_there_are_none() {
        let store = store(&[("a", "1"), ("b", "1")]);
        let mut txn = begin(&store);
        let entries = |txn: &Transaction| txn.view().reader().unwrap().entries(T).unwrap();
        // Two keys that do not exist, but count as two deletes.
        let deletes = |keys: [&str; 2]| {
            let mut batch = WriteBatch::default();
            keys.into_iter().for_each(|key| batch.delete(T, key));
            batch
        };
        txn.apply(deletes(["x", "y"]));
        assert!(entries(&txn) > 0);
        txn.apply(deletes(["a", "b"]));
        assert_eq!(entries(&txn), 0);
    }

    #[test]
    fn a_view_shows_own_writes_and_stays_as_it_was() {
        let store = store(&[("a", "old"), ("b", "kept")]);
        let mut txn = begin(&store);
        let before = txn.view();
        txn.apply(puts(&[("a", "new")]));
        assert_eq!(get(&txn.view(), "a").as_deref(), Some("new"));
        assert_eq!(get(&txn.view(), "b").as_deref(), Some("kept"));
        assert_eq!(get(&before, "a").as_deref(), Some("old"));
        assert_eq!(get(&store.snapshot().unwrap(), "a").as_deref(), Some("old"));
        store.commit(txn.into_batch()).unwrap();
        assert_eq!(get(&store.snapshot().unwrap(), "a").as_deref(), Some("new"));
    }

    #[test]
    fn rollback_to_a_savepoint_works_twice() {
        let store = store(&[("a", "0")]);
        let mut txn = begin(&store);
        txn.apply(puts(&[("a", "1")]));
        let savepoint = txn.savepoint();
        for _ in 0..2 {
            txn.apply(puts(&[("a", "2"), ("z", "2")]));
            txn.rollback_to(&savepoint);
            assert_eq!(get(&txn.view(), "a").as_deref(), Some("1"));
        }
        assert_eq!(txn.into_batch().mutations, puts(&[("a", "1")]).mutations);
    }

    #[test]
    fn the_later_of_two_transactions_conflicts() {
        let store = store(&[("hits", "0")]);
        let increment = || {
            let mut txn = begin(&store);
            assert_eq!(get(&txn.view(), "hits").as_deref(), Some("0"));
            txn.apply(puts(&[("hits", "1")]));
            // The transaction's own writes are no conflict.
            assert_eq!(get(&txn.view(), "hits").as_deref(), Some("1"));
            txn.into_batch()
        };
        let (first, second) = (increment(), increment());
        store.commit(first).unwrap();
        assert_eq!(store.commit(second).unwrap_err().kind(), Kind::Conflict);
    }

    #[test]
    fn what_was_read_before_a_rollback_to_a_savepoint_still_counts() {
        let store = store(&[("a", "0")]);
        let mut txn = begin(&store);
        let savepoint = txn.savepoint();
        get(&txn.view(), "a");
        txn.rollback_to(&savepoint);
        txn.apply(puts(&[("b", "1")]));
        store.commit(puts(&[("a", "1")])).unwrap();
        assert_eq!(store.commit(txn.into_batch()).unwrap_err().kind(), Kind::Conflict);
    }

    #[test]
    fn clear_hides_the_base_and_deletes_after_it_leave_no_trace() {
        let store = store(&[("a", "0"), ("b", "0")]);
        let mut txn = begin(&store);
        let mut batch = WriteBatch::default();
        batch.clear(T);
        batch.put(T, "c", b"1".to_vec());
        batch.put(T, "d", b"1".to_vec());
        batch.delete(T, "d");
        batch.delete(T, "a");
        txn.apply(batch);
        let view = txn.view();
        assert_eq!((get(&view, "a"), get(&view, "c").as_deref()), (None, Some("1")));
        assert_eq!(view.reader().unwrap().entries(T).unwrap(), 1);
        let mut expected = WriteBatch::default();
        expected.clear(T);
        expected.put(T, "c", b"1".to_vec());
        assert_eq!(txn.into_batch().mutations, expected.mutations);
    }

    fn walk(
        view: &Arc<dyn Snapshot>,
        range: &KeyRange,
        direction: Direction,
        at_most: usize,
    ) -> Vec<Vec<u8>> {
        walk_by(&*view.reader().unwrap(), range, direction, at_most)
    }

    fn walk_by(reader: &dyn Reader, range: &KeyRange, direction: Direction, at_most: usize) -> Vec<Vec<u8>> {
        let mut cursor = reader.cursor(T, range, direction).unwrap();
        let next = || cursor.next().unwrap().map(|(key, _)| key.to_vec());
        std::iter::from_fn(next).take(at_most).collect()
    }

    #[test]
    fn a_queue_is_taken_from_its_front_without_passing_again_what_was_taken() {
        let keys: Vec<String> = (0..200).map(|n| format!("{n:03}")).collect();
        let entries: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), "job")).collect();
        for direction in [Direction::Forward, Direction::Reverse] {
            let store = store(&entries);
            let mut txn = begin(&store);
            let mut left = keys.clone();
            while !left.is_empty() {
                let first =
                    if direction == Direction::Forward { left.remove(0) } else { left.pop().unwrap() };
                assert_eq!(walk(&txn.view(), &KeyRange::all(), direction, 1), [first.as_bytes()]);
                let known =
                    txn.buffer.get(&T).map(|changes| changes.emptied.left_of(KeyRange::all(), direction));
                let deleted = keys.len() - left.len() - 1;
                let passed =
                    known.map_or(0, |known| keys.iter().filter(|k| !known.contains(k.as_bytes())).count());
                assert!(deleted - passed < 16, "{passed} of {deleted}");
                txn.write(Mutation::Delete(T, first.as_str().into()));
            }
            assert_eq!(walk(&txn.view(), &KeyRange::all(), direction, 1), [b""; 0]);
            // Walks that begin behind what is known have read it all the same.
            store.commit(puts(&[("0005", "late")])).unwrap();
            assert_eq!(store.commit(txn.into_batch()).unwrap_err().kind(), Kind::Conflict);
        }
    }

    proptest! {
        #[test]
        fn walks_find_what_is_there_and_have_read_what_they_passed(
            base in prop::collection::btree_set(0u8..100, 0..100),
            steps in prop::collection::vec((0u8..12, 0u8..100, 0u8..60, any::<bool>()), 1..60),
        ) {
            let store = MemoryStore::new();
            let mut batch = WriteBatch::default();
            base.iter().for_each(|key| batch.put(T, [*key].as_slice(), vec![0]));
            store.commit(batch).unwrap();
            let mut txn = begin(&store);
            let (mut there, mut cleared) = (base, false);
            let (mut read, mut saved) = (BTreeSet::new(), None);
            for (kind, from, len, forward) in steps {
                let (to, key) = (from.saturating_add(len), [from].as_slice().into());
                match kind {
                    0 | 1 => {
                        txn.write(Mutation::Put(T, key, vec![1]));
                        there.insert(from);
                    }
                    2..=6 => {
                        for key in from..to {
                            txn.write(Mutation::Delete(T, [key].as_slice().into()));
                            there.remove(&key);
                        }
                    }
                    7 if len == 0 => {
                        txn.write(Mutation::Clear(T));
                        (there, cleared) = (BTreeSet::new(), true);
                    }
                    8 if len < 20 => saved = Some((txn.savepoint(), there.clone(), cleared)),
                    9 if len < 20 && let Some((savepoint, keys, was_cleared)) = &saved => {
                        txn.rollback_to(savepoint);
                        (there, cleared) = (keys.clone(), *was_cleared);
                    }
                    _ => {
                        let mut range = KeyRange::new([from].as_slice(), [to].as_slice());
                        if len > 40 {
                            range.end = End::Open;
                        }
                        let direction = if forward { Direction::Forward } else { Direction::Reverse };
                        let inside = |key: &u8| range.contains(&[*key]);
                        let mut expected: Vec<u8> = there.iter().copied().filter(inside).collect();
                        if !forward {
                            expected.reverse();
                        }
                        expected.truncate(2);
                        if kind == 11 {
                            // What it passes, the transaction has not read.
                            walk_by(&*txn.view().unrecorded().unwrap(), &range, direction, 2);
                        }
                        prop_assert_eq!(walk(&txn.view(), &range, direction, 2).concat(), expected.clone());
                        let are_there: Vec<bool> = (from..to).map(|key| there.contains(&key)).collect();
                        prop_assert_eq!(have(&txn.view(), from..to), are_there);
                        if !cleared {
                            let is_passed = |key: u8| match expected.get(1) {
                                Some(last) if forward => key <= *last,
                                Some(last) => key >= *last,
                                None => true,
                            };
                            read.extend((0..=255).filter(inside).filter(|key| is_passed(*key)));
                        }
                    }
                }
            }
            let reads = txn.into_batch().reads;
            for key in read {
                prop_assert!(reads.contains(T, &[key]), "{key} was not read");
            }
        }
    }
}
