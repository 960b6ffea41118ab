//! The read side: an LMDB read transaction, and cursors in it.
//!
//! To begin one costs about as much as a GET, for LMDB clears a table with a place for every keyspace.
//! So a snapshot that ends while nothing newer is committed leaves its transaction to the next
//! snapshot. A commit ends those left over, lest they keep old pages from reuse.
//!
//! LMDB lets one thread at a time into a transaction. Several threads that read one snapshot get a transaction
//! each, as long as nothing newer is committed; after that they take turns with those there are.

use std::ops::Bound;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use heed::types::Bytes;
use heed::{RoRange, RoRevRange, RoTxn, WithoutTls};

use super::seal::unseal;
use super::{Keyspace, Keyspaces, Shared};
use crate::error::{Error, Result};
use crate::key::{KeyRange, hex};
use crate::store::rules::bounds;
use crate::store::{Cursor, Direction, Entry, KeyspaceId, Reader, Snapshot};

/// Most read transactions kept for later: about as many as there are threads that read.
const IDLE_MAX: usize = 16;

/// A stable view. The fields drop in order: the transaction ends before the map may close.
pub(super) struct EmbeddedSnapshot {
    view: Arc<View>,
    shared: Arc<Shared>,
}

/// Read transactions of one moment and what they can see; while one is open, no page of that is reused.
pub(super) struct View {
    txns: Mutex<Txns>,
    /// One was given back, and somebody waits.
    returned: Condvar,
    /// Those that existed when it began; any other reads as empty.
    keyspaces: Arc<Keyspaces>,
    version: u64,
}

type Txn = RoTxn<'static, WithoutTls>;

/// Transactions nobody reads in.
struct Txns {
    idle: Vec<Txn>,
    /// Threads that wait for one.
    waiting: usize,
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
        let version = txn.id() as u64;
        let txns = Mutex::new(Txns { idle: vec![txn], waiting: 0 });
        Ok(View { txns, returned: Condvar::new(), keyspaces: keyspaces.clone(), version })
    }

    /// A transaction for the calling thread alone.
    fn take(&self, shared: &Shared) -> Txn {
        let mut txns = self.txns();
        loop {
            if let Some(txn) = txns.idle.pop().or_else(|| self.another(shared)) {
                return txn;
            }
            txns.waiting += 1;
            txns = self.returned.wait(txns).unwrap_or_else(PoisonError::into_inner);
            txns.waiting -= 1;
        }
    }

    /// One more of the same moment; `None` once something newer is committed, or too many are open: then
    /// those there are have to do.
    fn another(&self, shared: &Shared) -> Option<Txn> {
        let txn = shared.env.clone().static_read_txn().ok()?;
        (txn.id() as u64 == self.version).then_some(txn)
    }

    fn give_back(&self, txn: Txn) {
        let mut txns = self.txns();
        txns.idle.push(txn);
        // To wake nobody would cost a system call, too.
        if txns.waiting > 0 {
            self.returned.notify_one();
        }
    }

    fn txns(&self) -> MutexGuard<'_, Txns> {
        self.txns.lock().unwrap_or_else(PoisonError::into_inner)
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
        Ok(Box::new(EmbeddedReader { txn: Some(self.view.take(&self.shared)), view: &self.view }))
    }

    /// LMDB's transaction number.
    fn version(&self) -> u64 {
        self.view.version
    }
}

struct EmbeddedReader<'s> {
    /// Given back in the end.
    txn: Option<Txn>,
    view: &'s View,
}

impl EmbeddedReader<'_> {
    /// The keyspace, and the transaction to read it in; `None` if there is nothing in it.
    fn keyspace(&self, keyspace: KeyspaceId) -> Option<(&Keyspace, &Txn)> {
        self.view.keyspaces.get(&keyspace).zip(self.txn.as_ref())
    }
}

impl Drop for EmbeddedReader<'_> {
    fn drop(&mut self) {
        self.txn.take().into_iter().for_each(|txn| self.view.give_back(txn));
    }
}

impl Reader for EmbeddedReader<'_> {
    fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<&[u8]>> {
        // LMDB refuses to look up the empty key, which nothing is stored under.
        let Some((database, txn)) = self.keyspace(keyspace).filter(|_| !key.is_empty()) else {
            return Ok(None);
        };
        let stored = database.get(txn, key)?;
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
            (Some((database, txn)), Direction::Forward) if !range.is_empty() => {
                Steps::Forward(database.range(txn, &(start, Bound::Unbounded))?)
            }
            (Some((database, txn)), Direction::Reverse) if !range.is_empty() => {
                Steps::Reverse(database.rev_range(txn, &(Bound::Unbounded, end))?)
            }
            _ => Steps::Done,
        };
        Ok(Box::new(EmbeddedCursor { keyspace, range: range.clone(), last: None, steps }))
    }

    fn entries(&self, keyspace: KeyspaceId) -> Result<u64> {
        Ok(match self.keyspace(keyspace) {
            Some((database, txn)) => database.len(txn)?,
            None => 0,
        })
    }

    /// LMDB counts as it writes.
    fn count(&self, keyspace: KeyspaceId) -> Result<Option<u64>> {
        self.entries(keyspace).map(Some)
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
