//! The read side: an LMDB read transaction, and cursors in it.
//!
//! To begin one costs about as much as a GET, for LMDB clears a table with a place for every keyspace.
//! So a snapshot that ends while nothing newer is committed leaves its transaction to the next
//! snapshot. A commit ends those left over, lest they keep old pages from reuse.

use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use heed::types::Bytes;
use heed::{RoRange, RoRevRange, RoTxn, WithoutTls};

use super::seal::unseal;
use super::{Keyspace, Keyspaces, Shared};

/// Most read transactions kept for later: about as many as there are threads that read.
const IDLE_MAX: usize = 16;
use crate::error::{Error, Result};
use crate::key::{KeyRange, hex};
use crate::store::rules::bounds;
use crate::store::{Cursor, Direction, Entry, KeyspaceId, Reader, Snapshot};

/// A stable view. The fields drop in order: the transaction ends before the map may close.
pub(super) struct EmbeddedSnapshot {
    view: Arc<View>,
    shared: Arc<Shared>,
}

/// A read transaction and what it can see; while it is open, no page of that is reused.
pub(super) struct View {
    txn: Mutex<RoTxn<'static, WithoutTls>>,
    /// Those that existed when it began; any other reads as empty.
    keyspaces: Arc<Keyspaces>,
    version: u64,
}

impl EmbeddedSnapshot {
    pub(super) fn new(shared: &Arc<Shared>) -> Result<Self> {
        let view = match shared.reuse() {
            Some(view) => view,
            None => Arc::new(View::begin(shared)?),
        };
        Ok(EmbeddedSnapshot { view, shared: shared.clone() })
    }
}

impl Drop for EmbeddedSnapshot {
    fn drop(&mut self) {
        self.shared.retire(&self.view);
    }
}

impl View {
    fn begin(shared: &Shared) -> Result<Self> {
        // Held while the transaction begins, so that both tell of the same moment.
        let keyspaces = shared.keyspaces.read().unwrap_or_else(PoisonError::into_inner);
        let txn = shared.env.clone().static_read_txn()?;
        Ok(View { version: txn.id() as u64, txn: Mutex::new(txn), keyspaces: keyspaces.clone() })
    }
}

impl Shared {
    /// An idle view of everything committed so far.
    fn reuse(&self) -> Option<Arc<View>> {
        self.idle().pop().filter(|view| self.is_newest(view))
    }

    /// Keeps `view` for the next snapshot, if it can still serve one.
    fn retire(&self, view: &Arc<View>) {
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX && self.is_newest(view) {
            idle.push(view.clone());
        }
    }

    /// Ends the idle transactions, since a commit is about to make them old.
    pub(super) fn end_idle(&self) {
        self.idle().clear();
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Arc<View>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_newest(&self, view: &View) -> bool {
        view.version == self.env.info().last_txn_id as u64
    }
}

impl Snapshot for EmbeddedSnapshot {
    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        let txn = self.view.txn.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Box::new(EmbeddedReader { txn, keyspaces: &self.view.keyspaces }))
    }

    /// LMDB's transaction number.
    fn version(&self) -> u64 {
        self.view.version
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
        let (start, end) = bounds(range);
        // The far end is ours to find: see `EmbeddedCursor::next`.
        let steps = match (self.keyspace(keyspace), direction) {
            (Some(database), Direction::Forward) if !range.is_empty() => {
                Steps::Forward(database.range(&self.txn, &(start, Bound::Unbounded))?)
            }
            (Some(database), Direction::Reverse) if !range.is_empty() => {
                Steps::Reverse(database.rev_range(&self.txn, &(Bound::Unbounded, end))?)
            }
            _ => Steps::Done,
        };
        Ok(Box::new(EmbeddedCursor { keyspace, range: range.clone(), last: None, steps }))
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
    range: KeyRange,
    /// The key before, which stays mapped as long as the transaction.
    last: Option<&'a [u8]>,
    steps: Steps<'a>,
}

enum Steps<'a> {
    Forward(RoRange<'a, Bytes, Bytes>),
    Reverse(RoRevRange<'a, Bytes, Bytes>),
    /// LMDB would start over from the other end.
    Done,
}

impl Cursor for EmbeddedCursor<'_> {
    /// A damaged key may look as if the range ended before it, and a damaged page may lead astray. So the
    /// entry that ends the range is checked like one inside, and keys must follow each other.
    fn next(&mut self) -> Result<Option<Entry<'_>>> {
        let (step, forward) = match &mut self.steps {
            Steps::Forward(range) => (range.next(), true),
            Steps::Reverse(range) => (range.next(), false),
            Steps::Done => (None, true),
        };
        let Some(entry) = step else {
            self.steps = Steps::Done;
            return Ok(None);
        };
        let (key, stored) = entry?;
        let value = unseal(self.keyspace, key, stored)?;
        let (follows, ended) = match forward {
            true => (self.last.map_or(*key >= *self.range.start, |last| key > last), self.range.is_past(key)),
            false => {
                (self.last.map_or(!self.range.is_past(key), |last| key < last), *key < *self.range.start)
            }
        };
        if !follows {
            return Err(misplaced(self.keyspace, key));
        }
        if ended {
            self.steps = Steps::Done;
            return Ok(None);
        }
        self.last = Some(key);
        Ok(Some((key, value)))
    }
}

#[cold]
fn misplaced(keyspace: KeyspaceId, key: &[u8]) -> Error {
    Error::corrupt(format!("entry {} of keyspace {} is out of its place", hex(key), keyspace.0))
        .why("keys of one keyspace follow each other in order")
        .hint("restore the database from a backup; check the disk")
}
