//! Bulk writes: entries go straight into the tree, and are appended where keys ascend.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use parking_lot::MutexGuard;

use super::tree::{PutPosition, ReaderSlot, TreeWriter};
use super::{Shared, WriterState};
use crate::error::Result;
use crate::store::recent::Touched;
use crate::store::rules::check_entry;
use crate::store::{BulkWriter, GiveChanges, KeyspaceId, Reads};

/// A bulk write. Fields drop in order: the lock is held to the end.
pub(super) struct EmbeddedBulk<'s> {
    shared: &'s Shared,
    writer: TreeWriter<'s>,
    /// The greatest key of each keyspace written to.
    tails: BTreeMap<KeyspaceId, Vec<u8>>,
    touched: Touched,
    lock: MutexGuard<'s, WriterState>,
}

impl<'s> EmbeddedBulk<'s> {
    /// Waits for the writer lock and begins.
    pub(super) fn new(shared: &'s Shared) -> Result<Self> {
        let mut lock = shared.writer.lock();
        shared.trust.check()?;
        shared.empty_memtables(&mut lock.log)?;
        Ok(EmbeddedBulk {
            shared,
            writer: shared.tree.begin()?,
            tails: BTreeMap::new(),
            touched: Touched::default(),
            lock,
        })
    }

    /// Whether `key` lies past the end of its keyspace; it then becomes the new end.
    fn place(&mut self, keyspace: KeyspaceId, key: &[u8]) -> Result<PutPosition> {
        let tail = match self.tails.entry(keyspace) {
            Entry::Occupied(tail) => tail.into_mut(),
            Entry::Vacant(tail) => tail.insert(self.writer.last_key(keyspace)?.unwrap_or_default().to_vec()),
        };
        if *key <= **tail {
            return Ok(PutPosition::Anywhere);
        }
        tail.clear();
        tail.extend_from_slice(key);
        Ok(PutPosition::End)
    }
}

impl BulkWriter for EmbeddedBulk<'_> {
    fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.writer.get(keyspace, key)?.map(<[u8]>::to_vec))
    }

    fn put(&mut self, keyspace: KeyspaceId, key: &[u8], value: &[u8]) -> Result<()> {
        check_entry(keyspace, key, value)?;
        self.touched.add(keyspace, key);
        let at = self.place(keyspace, key)?;
        self.writer.put(keyspace, key, value, at)
    }

    fn delete(&mut self, keyspace: KeyspaceId, key: &[u8]) -> Result<()> {
        self.touched.add(keyspace, key);
        self.writer.delete(keyspace, key)
    }

    fn change_all(&mut self, keyspace: KeyspaceId, changes: u64, give: &mut GiveChanges<'_>) -> Result<()> {
        let EmbeddedBulk { writer, touched, tails, .. } = self;
        tails.remove(&keyspace);
        writer.change_all(keyspace, changes, |take| {
            give(&mut |(key, value)| {
                value.map_or(Ok(()), |value| check_entry(keyspace, key, value))?;
                touched.add(keyspace, key);
                take((key, value))
            })
        })
    }

    fn folder(&self) -> Option<&Path> {
        Some(self.shared.tree.directory().path())
    }

    fn check(&self, reads: &Reads) -> Result<()> {
        self.lock.recent.check(reads)
    }

    fn commit(self: Box<Self>) -> Result<()> {
        let EmbeddedBulk { shared, writer, touched, mut lock, .. } = *self;
        let version = shared.newest().version + 1;
        let seat = ReaderSlot::of(&shared.tree)?;
        writer.commit(version)?;
        shared.show_tree(version, seat)?;
        lock.recent.record_touched(version, touched);
        Ok(())
    }
}
