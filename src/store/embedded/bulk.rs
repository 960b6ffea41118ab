//! Bulk writes: entries go straight into the tree, and are appended where keys ascend.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use parking_lot::MutexGuard;

use super::Shared;
use super::tree::{PutPosition, ReaderSlot, TreeWriter};
use crate::error::{Error, Result, sqlstate};
use crate::store::log::Log;
use crate::store::recent::{Recorder, Touched};
use crate::store::rules::check_entry;
use crate::store::trust;
use crate::store::{BulkWriter, KeyspaceId, Reads};

/// A bulk write. Fields drop in order: the locks are held to the end.
pub(super) struct EmbeddedBulk<'s> {
    shared: &'s Shared,
    writer: TreeWriter<'s>,
    /// The greatest key of each keyspace written to.
    tails: BTreeMap<KeyspaceId, Vec<u8>>,
    touched: Touched,
    version: u64,
    recorder: Recorder<'s>,
    _log: MutexGuard<'s, Log>,
}

impl<'s> EmbeddedBulk<'s> {
    /// Waits for the writer lock and begins.
    pub(super) fn new(shared: &'s Shared) -> Result<Self> {
        let mut log = shared.writer.lock();
        shared.trust.check()?;
        shared.empty_memtables(&mut log)?;
        let version = shared.newest().version + 1;
        Ok(EmbeddedBulk {
            shared,
            writer: shared.tree.begin()?,
            tails: BTreeMap::new(),
            touched: Touched::default(),
            version,
            recorder: shared.recorder(version),
            _log: log,
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

    /// The real cause of a failed change. Pages that do not fit into memory are written before the commit, and LMDB
    /// reports a write cut short by a full disk as an I/O error. These pages hold nothing committed.
    fn explain(&self, e: Error) -> Error {
        if e.sqlstate() == sqlstate::IO && self.shared.tree.directory().is_out_of_room() {
            return trust::full().caused_by(e);
        }
        e
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
        self.writer.put(keyspace, key, value, at).map_err(|e| self.explain(e))
    }

    fn delete(&mut self, keyspace: KeyspaceId, key: &[u8]) -> Result<()> {
        self.touched.add(keyspace, key);
        self.writer.delete(keyspace, key).map_err(|e| self.explain(e))
    }

    fn folder(&self) -> Option<&Path> {
        Some(self.shared.tree.directory().path())
    }

    fn check(&self, reads: &Reads) -> Result<()> {
        self.recorder.check(reads)
    }

    fn commit(self: Box<Self>) -> Result<()> {
        let EmbeddedBulk { shared, writer, touched, version, mut recorder, _log, .. } = *self;
        recorder.record_touched(touched);
        let seat = ReaderSlot::of(&shared.tree)?;
        writer.commit(version)?;
        shared.show_tree(version, seat)?;
        recorder.keep();
        Ok(())
    }
}
