//! A transaction: one snapshot, the changes made since, and what must still hold when they land.
//!
//! Each statement builds a [`WriteBatch`] over [`Transaction::view`], in which the transaction sees
//! its own writes, and [`Transaction::apply`] adds it to the buffer. [`Transaction::into_batch`]
//! turns the buffer into the one batch that [`Store::commit`](crate::store::Store::commit) takes;
//! its expectations make the store refuse it if another writer came in between.
//!
//! The buffer is made of persistent maps: a view and a savepoint share it and cost a few references.

mod overlay;

use std::sync::Arc;

use imbl::OrdMap;

use crate::error::Result;
use crate::key::Rowkey;
use crate::store::{Expectation, KeyspaceId, Mutation, Snapshot, WriteBatch, check_expectations};
use overlay::Overlay;

/// Buffered writes over one snapshot.
///
/// Nothing reaches the store until its batch is committed; dropped, it leaves nothing behind. Reads
/// that must still hold at commit are those that some batch expects; ranges are not guarded.
pub struct Transaction {
    base: Arc<dyn Snapshot>,
    pending: Pending,
}

/// What a transaction looked like at one moment; see [`Transaction::savepoint`].
#[derive(Clone)]
pub struct Savepoint(Pending);

/// Everything that a rollback undoes.
#[derive(Clone, Default)]
struct Pending {
    buffer: Buffer,
    /// By key, so that a key expected by many statements is checked once.
    expectations: OrdMap<(KeyspaceId, Rowkey), Option<Arc<[u8]>>>,
}

/// The changes of each keyspace.
type Buffer = OrdMap<KeyspaceId, Changes>;

/// What a transaction did to one keyspace.
#[derive(Clone, Default)]
struct Changes {
    /// Nothing of the base shows.
    cleared: bool,
    /// New values; `None` hides a key of the base.
    entries: OrdMap<Rowkey, Option<Arc<[u8]>>>,
    /// Puts less deletes among `entries`.
    net: i64,
}

impl Transaction {
    /// An empty transaction over `base`.
    pub fn new(base: Arc<dyn Snapshot>) -> Self {
        Transaction { base, pending: Pending::default() }
    }

    /// The snapshot with the transaction's own writes. Later writes do not show in it.
    pub fn view(&self) -> Arc<dyn Snapshot> {
        if self.pending.buffer.is_empty() {
            return self.base.clone();
        }
        Arc::new(Overlay::new(self.base.clone(), self.pending.buffer.clone()))
    }

    /// Checks `batch` against the transaction's own view and buffers it, whole or not at all.
    ///
    /// Expectations of keys that the transaction has not written yet are kept and checked once more
    /// when it commits, against what others have written by then.
    ///
    /// Errors: `Conflict` when an expectation does not hold; what the snapshot fails with.
    pub fn apply(&mut self, batch: WriteBatch) -> Result<()> {
        if !batch.expectations.is_empty() {
            let view = self.view();
            let reader = view.reader()?;
            check_expectations(&batch.expectations, |keyspace, key| reader.get(keyspace, key))?;
        }
        batch.expectations.into_iter().for_each(|expected| self.pending.expect(expected));
        batch.mutations.into_iter().for_each(|mutation| self.pending.write(mutation));
        Ok(())
    }

    /// Has written nothing.
    pub fn is_empty(&self) -> bool {
        self.pending.buffer.is_empty()
    }

    /// A mark to come back to.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint(self.pending.clone())
    }

    /// Forgets every write and expectation since `savepoint`, which can be used again.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) {
        self.pending = savepoint.0.clone();
    }

    /// Everything as one batch: the kept expectations, then per keyspace a clear, if there was one,
    /// and the changes in key order.
    pub fn into_batch(self) -> WriteBatch {
        let mut batch = WriteBatch::default();
        for ((keyspace, key), value) in self.pending.expectations {
            batch.expect(keyspace, key, value.map(|value| value.to_vec()));
        }
        for (keyspace, changes) in self.pending.buffer {
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
}

impl Pending {
    /// Keeps an expectation of the base; one of the transaction's own writes was settled by the view.
    fn expect(&mut self, expected: Expectation) {
        let own = self.buffer.get(&expected.keyspace).is_some_and(|changes| changes.covers(&expected.key));
        if !own {
            self.expectations.insert((expected.keyspace, expected.key), expected.value.map(Into::into));
        }
    }

    fn write(&mut self, mutation: Mutation) {
        match mutation {
            Mutation::Put(keyspace, key, value) => self.changes(keyspace).set(key, Some(value.into())),
            Mutation::Delete(keyspace, key) => self.changes(keyspace).set(key, None),
            Mutation::Clear(keyspace) => {
                *self.changes(keyspace) = Changes { cleared: true, ..Changes::default() };
            }
        }
    }

    fn changes(&mut self, keyspace: KeyspaceId) -> &mut Changes {
        self.buffer.entry(keyspace).or_default()
    }
}

impl Changes {
    /// Decides what `key` holds, whatever the base says.
    fn covers(&self, key: &[u8]) -> bool {
        self.cleared || self.entries.contains_key(key)
    }

    fn set(&mut self, key: Rowkey, change: Option<Arc<[u8]>>) {
        let weight = |change: &Option<Arc<[u8]>>| if change.is_some() { 1 } else { -1 };
        let old = if self.cleared && change.is_none() {
            // There is no base left to hide the key from.
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
    use super::*;
    use crate::error::Kind;
    use crate::store::{MemoryStore, Store};

    const T: KeyspaceId = KeyspaceId(1);

    fn store(entries: &[(&str, &str)]) -> MemoryStore {
        let store = MemoryStore::new();
        store.commit(puts(entries)).unwrap();
        store
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
    fn a_view_shows_own_writes_and_stays_as_it_was() {
        let store = store(&[("a", "old"), ("b", "kept")]);
        let mut txn = Transaction::new(store.snapshot().unwrap());
        let before = txn.view();
        txn.apply(puts(&[("a", "new")])).unwrap();
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
        let mut txn = Transaction::new(store.snapshot().unwrap());
        txn.apply(puts(&[("a", "1")])).unwrap();
        let savepoint = txn.savepoint();
        for _ in 0..2 {
            let mut batch = puts(&[("a", "2")]);
            batch.expect(T, "z", None);
            txn.apply(batch).unwrap();
            txn.rollback_to(&savepoint);
            assert_eq!(get(&txn.view(), "a").as_deref(), Some("1"));
        }
        assert_eq!(txn.into_batch(), puts(&[("a", "1")]));
    }

    #[test]
    fn an_expectation_is_kept_only_for_keys_not_written_before() {
        let store = store(&[("a", "0")]);
        let mut txn = Transaction::new(store.snapshot().unwrap());
        let mut first = puts(&[("a", "1")]);
        first.expect(T, "a", Some(b"0".to_vec()));
        let mut second = puts(&[("a", "2")]);
        second.expect(T, "a", Some(b"1".to_vec()));
        txn.apply(first).unwrap();
        txn.apply(second).unwrap();
        let mut expected = puts(&[("a", "2")]);
        expected.expect(T, "a", Some(b"0".to_vec()));
        assert_eq!(txn.into_batch(), expected);
    }

    #[test]
    fn a_batch_that_contradicts_the_view_changes_nothing() {
        let store = store(&[("a", "0")]);
        let mut txn = Transaction::new(store.snapshot().unwrap());
        txn.apply(puts(&[("b", "1")])).unwrap();
        let mut batch = puts(&[("a", "9")]);
        batch.expect(T, "b", None);
        assert_eq!(txn.apply(batch).unwrap_err().kind(), Kind::Conflict);
        assert_eq!(get(&txn.view(), "a").as_deref(), Some("0"));
    }

    #[test]
    fn the_later_of_two_transactions_conflicts() {
        let store = store(&[("hits", "0")]);
        let increment = || {
            let mut txn = Transaction::new(store.snapshot().unwrap());
            let mut batch = puts(&[("hits", "1")]);
            batch.expect(T, "hits", Some(b"0".to_vec()));
            txn.apply(batch).unwrap();
            txn.into_batch()
        };
        let (first, second) = (increment(), increment());
        store.commit(first).unwrap();
        assert_eq!(store.commit(second).unwrap_err().kind(), Kind::Conflict);
    }

    #[test]
    fn clear_hides_the_base_and_deletes_after_it_leave_no_trace() {
        let store = store(&[("a", "0"), ("b", "0")]);
        let mut txn = Transaction::new(store.snapshot().unwrap());
        let mut batch = WriteBatch::default();
        batch.clear(T);
        batch.put(T, "c", b"1".to_vec());
        batch.put(T, "d", b"1".to_vec());
        batch.delete(T, "d");
        batch.delete(T, "a");
        txn.apply(batch).unwrap();
        let view = txn.view();
        assert_eq!((get(&view, "a"), get(&view, "c").as_deref()), (None, Some("1")));
        assert_eq!(view.reader().unwrap().entries(T).unwrap(), 1);
        let mut expected = WriteBatch::default();
        expected.clear(T);
        expected.put(T, "c", b"1".to_vec());
        assert_eq!(txn.into_batch(), expected);
    }
}
