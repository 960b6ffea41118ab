//! The write side: one LMDB write transaction, by way of a group of batches or of the bulk door.
//!
//! LMDB admits one write transaction at a time, and that is the writer lock: whoever begins a
//! [`Writer`] waits until the one before is committed or dropped.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use heed::types::Bytes;
use heed::{CommitOrAbort, PutFlags, RwTxn};

use super::seal::{seal, unseal};
use super::{Keyspace, Keyspaces, Shared, explain};
use crate::error::{Error, Result};
use crate::store::recent::{Recorder, Touched};
use crate::store::rules::check_entry;
use crate::store::{BulkWriter, KeyspaceId, Mutation, Reads, WriteBatch};

/// An open write transaction; dropped, it leaves nothing behind.
pub(super) struct Writer<'s> {
    shared: &'s Shared,
    txn: RwTxn<'s>,
    /// Held a little longer than the transaction, so that the next writer finds this one's keys recorded.
    recorder: Recorder<'s>,
    /// The committed keyspaces, and those this transaction has created.
    keyspaces: Arc<Keyspaces>,
    has_created: bool,
    /// The last value written, sealed; kept for its capacity.
    sealed: Vec<u8>,
}

/// Failures that spoil the transaction; explained once per batch it held.
type LmdbResult<T> = Result<T, heed::Error>;

impl<'s> Writer<'s> {
    /// Waits for its turn and begins.
    pub(super) fn begin(shared: &'s Shared) -> LmdbResult<Self> {
        let txn = shared.env.write_txn()?;
        let recent = shared.recent.lock().unwrap_or_else(PoisonError::into_inner);
        // Behind the lock, which a writer that fails holds until everybody knows of it.
        shared.check_trust()?;
        let recorder = Recorder::new(recent, txn.id() as u64);
        shared.end_idle();
        // Read after the lock is ours: only writers add keyspaces.
        let keyspaces = shared.keyspaces();
        Ok(Writer { shared, txn, recorder, keyspaces, has_created: false, sealed: Vec::new() })
    }

    /// Applies each batch whose reads still hold, in order, in one transaction with one flush.
    ///
    /// One result per batch. A batch whose reads do not hold is left out and spoils no other; a
    /// failure of the disk fails them all, and nothing is written.
    pub(super) fn apply_group(shared: &'s Shared, group: &[WriteBatch]) -> Vec<Result<()>> {
        Self::try_group(shared, group).unwrap_or_else(|e| group.iter().map(|_| Err(explain(&e))).collect())
    }

    fn try_group(shared: &'s Shared, group: &[WriteBatch]) -> LmdbResult<Vec<Result<()>>> {
        let mut writer = Self::begin(shared)?;
        let mut results = Vec::with_capacity(group.len());
        for batch in group {
            let checked = writer.recorder.check(&batch.reads);
            if checked.is_ok() {
                writer.recorder.record(&batch.mutations);
                writer.apply(&batch.mutations)?;
            }
            results.push(checked);
        }
        if results.iter().any(Result::is_ok) {
            writer.commit()?;
        }
        Ok(results)
    }

    fn apply(&mut self, mutations: &[Mutation]) -> LmdbResult<()> {
        mutations.iter().try_for_each(|mutation| match mutation {
            Mutation::Put(keyspace, key, value) => self.put(*keyspace, key, value, PutFlags::empty()),
            Mutation::Delete(keyspace, key) => self.delete(*keyspace, key),
            Mutation::Clear(keyspace) => self.clear(*keyspace),
        })
    }

    fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<&[u8]>> {
        let Some(database) = self.keyspaces.get(&keyspace).filter(|_| !key.is_empty()) else {
            return Ok(None);
        };
        let stored = database.get(&self.txn, key)?;
        stored.map(|stored| unseal(keyspace, key, stored)).transpose()
    }

    fn last_key(&self, keyspace: KeyspaceId) -> LmdbResult<Option<&[u8]>> {
        let Some(database) = self.keyspaces.get(&keyspace) else { return Ok(None) };
        Ok(database.last(&self.txn)?.map(|(key, _)| key))
    }

    fn put(&mut self, keyspace: KeyspaceId, key: &[u8], value: &[u8], flags: PutFlags) -> LmdbResult<()> {
        let database = match self.keyspaces.get(&keyspace) {
            Some(database) => *database,
            None => self.create(keyspace)?,
        };
        seal(&mut self.sealed, keyspace, key, value);
        database.put_with_flags(&mut self.txn, flags, key, &self.sealed)
    }

    fn delete(&mut self, keyspace: KeyspaceId, key: &[u8]) -> LmdbResult<()> {
        if let Some(database) = self.keyspaces.get(&keyspace).filter(|_| !key.is_empty()) {
            database.delete(&mut self.txn, key)?;
        }
        Ok(())
    }

    fn clear(&mut self, keyspace: KeyspaceId) -> LmdbResult<()> {
        match self.keyspaces.get(&keyspace) {
            Some(database) => database.clear(&mut self.txn),
            None => Ok(()),
        }
    }

    /// Creates a keyspace, in a nested transaction because heed gives handles out only at the end of
    /// one. The handle is good for this transaction at once, and for others when this one commits.
    fn create(&mut self, keyspace: KeyspaceId) -> LmdbResult<Keyspace> {
        let env = &self.shared.env;
        let created =
            env.create_databases_and_commit(env.nested_write_txn(&mut self.txn)?, |opener, txn| {
                let database = opener.create_database::<Bytes, Bytes>(txn, Some(&keyspace.0.to_string()))?;
                Ok::<_, heed::Error>(CommitOrAbort::Commit::<_, heed::Error>(database))
            })?;
        let database = Result::from(created)?;
        Arc::make_mut(&mut self.keyspaces).insert(keyspace, database);
        self.has_created = true;
        Ok(database)
    }

    fn commit(self) -> LmdbResult<()> {
        if self.has_created {
            let mut keyspaces = self.shared.keyspaces.write().unwrap_or_else(PoisonError::into_inner);
            self.txn.commit().map_err(|e| self.shared.distrust(e))?;
            *keyspaces = self.keyspaces;
        } else {
            self.txn.commit().map_err(|e| self.shared.distrust(e))?;
        }
        // A transaction that changed no page was no commit, and its number is given out again.
        if self.shared.env.info().last_txn_id as u64 == self.recorder.version() {
            self.recorder.keep();
        }
        Ok(())
    }
}

/// The bulk door: appends where keys ascend, which fills pages to the brim and searches nothing.
pub(super) struct Bulk<'s> {
    writer: Writer<'s>,
    /// No key of the keyspace is greater than this.
    tails: HashMap<KeyspaceId, Vec<u8>>,
    touched: Touched,
}

impl<'s> Bulk<'s> {
    pub(super) fn new(writer: Writer<'s>) -> Self {
        Bulk { writer, tails: HashMap::new(), touched: Touched::default() }
    }

    /// Whether `key` lies past the end of its keyspace, which it then becomes.
    fn extends(&mut self, keyspace: KeyspaceId, key: &[u8]) -> LmdbResult<bool> {
        let tail = match self.tails.entry(keyspace) {
            std::collections::hash_map::Entry::Occupied(tail) => tail.into_mut(),
            std::collections::hash_map::Entry::Vacant(tail) => {
                tail.insert(self.writer.last_key(keyspace)?.unwrap_or_default().to_vec())
            }
        };
        let extends = *key > **tail;
        if extends {
            tail.clear();
            tail.extend_from_slice(key);
        }
        Ok(extends)
    }
}

impl BulkWriter for Bulk<'_> {
    fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.writer.get(keyspace, key)?.map(<[u8]>::to_vec))
    }

    fn put(&mut self, keyspace: KeyspaceId, key: &[u8], value: &[u8]) -> Result<()> {
        check_entry(keyspace, key, value)?;
        self.touched.add(keyspace, key);
        let flags = if self.extends(keyspace, key)? { PutFlags::APPEND } else { PutFlags::empty() };
        Ok(self.writer.put(keyspace, key, value, flags)?)
    }

    fn delete(&mut self, keyspace: KeyspaceId, key: &[u8]) -> Result<()> {
        self.touched.add(keyspace, key);
        self.writer.delete(keyspace, key).map_err(Error::from)
    }

    fn check(&self, reads: &Reads) -> Result<()> {
        self.writer.recorder.check(reads)
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        self.writer.recorder.record_touched(self.touched);
        self.writer.commit().map_err(Error::from)
    }
}
