//! The read side: an LMDB read transaction, and cursors in it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use heed::types::Bytes;
use heed::{RoRange, RoRevRange, RoTxn, WithoutTls};

use super::seal::unseal;
use super::{Keyspace, Keyspaces, Shared};
use crate::error::Result;
use crate::key::KeyRange;
use crate::store::rules::bounds;
use crate::store::{Cursor, Direction, Entry, KeyspaceId, Reader, Snapshot};

/// A read transaction, open for as long as the snapshot lives; meanwhile no page that it can see is
/// reused. The fields drop in order: the transaction ends before the map may close.
pub(super) struct EmbeddedSnapshot {
    txn: Mutex<RoTxn<'static, WithoutTls>>,
    /// Those that existed when it began; any other reads as empty.
    keyspaces: Arc<Keyspaces>,
    version: u64,
    _shared: Arc<Shared>,
}

impl EmbeddedSnapshot {
    pub(super) fn new(shared: &Arc<Shared>) -> Result<Self> {
        // Held while the transaction begins, so that both tell of the same moment.
        let keyspaces = shared.keyspaces.read().unwrap_or_else(PoisonError::into_inner);
        let txn = shared.env.clone().static_read_txn()?;
        Ok(EmbeddedSnapshot {
            version: txn.id() as u64,
            txn: Mutex::new(txn),
            keyspaces: keyspaces.clone(),
            _shared: shared.clone(),
        })
    }
}

impl Snapshot for EmbeddedSnapshot {
    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        let txn = self.txn.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Box::new(EmbeddedReader { txn, keyspaces: &self.keyspaces }))
    }

    /// LMDB's transaction number.
    fn version(&self) -> u64 {
        self.version
    }
}

/// LMDB lets one thread at a time into a transaction.
struct EmbeddedReader<'s> {
    txn: MutexGuard<'s, RoTxn<'static, WithoutTls>>,
    keyspaces: &'s Keyspaces,
}

impl EmbeddedReader<'_> {
    fn keyspace(&self, keyspace: KeyspaceId) -> Option<&Keyspace> {
        self.keyspaces.get(&keyspace)
    }
}

impl Reader for EmbeddedReader<'_> {
    fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<&[u8]>> {
        // LMDB refuses to look up the empty key, which nothing is stored under.
        let Some(database) = self.keyspace(keyspace).filter(|_| !key.is_empty()) else {
            return Ok(None);
        };
        let stored = database.get(&self.txn, key)?;
        stored.map(|stored| unseal(keyspace, key, stored)).transpose()
    }

    fn cursor<'a>(
        &'a self,
        keyspace: KeyspaceId,
        range: &KeyRange,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + 'a>> {
        let steps = match (self.keyspace(keyspace), direction) {
            (Some(database), Direction::Forward) if !range.is_empty() => {
                Steps::Forward(database.range(&self.txn, &bounds(range))?)
            }
            (Some(database), Direction::Reverse) if !range.is_empty() => {
                Steps::Reverse(database.rev_range(&self.txn, &bounds(range))?)
            }
            _ => Steps::Done,
        };
        Ok(Box::new(EmbeddedCursor { keyspace, steps }))
    }

    fn entries(&self, keyspace: KeyspaceId) -> Result<u64> {
        Ok(match self.keyspace(keyspace) {
            Some(database) => database.len(&self.txn)?,
            None => 0,
        })
    }
}

struct EmbeddedCursor<'a> {
    keyspace: KeyspaceId,
    steps: Steps<'a>,
}

enum Steps<'a> {
    Forward(RoRange<'a, Bytes, Bytes>),
    Reverse(RoRevRange<'a, Bytes, Bytes>),
    /// LMDB would start over from the other end.
    Done,
}

impl Cursor for EmbeddedCursor<'_> {
    fn next(&mut self) -> Result<Option<Entry<'_>>> {
        let step = match &mut self.steps {
            Steps::Forward(range) => range.next(),
            Steps::Reverse(range) => range.next(),
            Steps::Done => None,
        };
        let Some(entry) = step else {
            self.steps = Steps::Done;
            return Ok(None);
        };
        let (key, stored) = entry?;
        Ok(Some((key, unseal(self.keyspace, key, stored)?)))
    }
}
