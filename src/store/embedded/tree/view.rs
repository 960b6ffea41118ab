//! The read side of the tree: LMDB read transactions of one moment, and cursors in them.
//!
//! To begin one costs about as much as a GET, for LMDB clears a table with a place for every keyspace. So transactions
//! are kept and used again, as long as somebody wants to see that moment.
//!
//! LMDB lets one thread at a time into a transaction. Several threads that read one view get a transaction
//! each, as long as nothing newer is in the tree; after that they take turns with those there are.

use std::ops::Bound;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use heed::types::Bytes;
use heed::{RoRange, RoRevRange, RoTxn, WithoutTls};

use super::seal::unseal;
use super::{Keyspace, Keyspaces, STATE, Tree, VERSION_KEY};
use crate::error::{Error, Result};
use crate::key::{KeyRange, hex};
use crate::store::rules::bounds;
use crate::store::{Cursor, Direction, Entry, KeyspaceId};

/// One moment of the tree; while it is there, no page of that is reused. The fields drop in order: the transactions end
/// before the map may close.
pub(in crate::store::embedded) struct View {
    txns: Mutex<Txns>,
    /// One was given back, and somebody waits.
    returned: Condvar,
    /// Those that existed when it began; any other reads as empty.
    keyspaces: Arc<Keyspaces>,
    /// LMDB's number of the moment.
    number: usize,
    tree: Arc<Tree>,
}

type Txn = RoTxn<'static, WithoutTls>;

/// Transactions nobody reads in.
struct Txns {
    idle: Vec<Txn>,
    /// Threads that wait for one.
    waiting: usize,
}

impl View {
    /// The tree as it is now.
    pub(in crate::store::embedded) fn of(tree: &Arc<Tree>) -> Result<View> {
        // Held while the transaction begins, so that both tell of the same moment.
        let keyspaces = tree.keyspaces.read().unwrap_or_else(PoisonError::into_inner);
        let txn = tree.env.clone().static_read_txn()?;
        let number = txn.id();
        let txns = Mutex::new(Txns { idle: vec![txn], waiting: 0 });
        let keyspaces = keyspaces.clone();
        Ok(View { txns, returned: Condvar::new(), keyspaces, number, tree: tree.clone() })
    }

    /// Up to which version it has everything.
    pub(in crate::store::embedded) fn version(&self) -> Result<u64> {
        let reader = self.reader();
        let version =
            reader.get(STATE, VERSION_KEY)?.and_then(|bytes| Some(u64::from_le_bytes(*bytes.first_chunk()?)));
        version.ok_or_else(|| {
            Error::corrupt("the data file is damaged")
                .why("it does not say up to where it has what the log had")
                .hint("restore the database from a backup")
        })
    }

    /// One thread's way in.
    pub(in crate::store::embedded) fn reader(&self) -> TreeReader<'_> {
        TreeReader { txn: Some(self.take()), view: self }
    }

    /// A transaction for the calling thread alone.
    fn take(&self) -> Txn {
        let mut txns = self.txns();
        loop {
            if let Some(txn) = txns.idle.pop().or_else(|| self.another()) {
                return txn;
            }
            txns.waiting += 1;
            txns = self.returned.wait(txns).unwrap_or_else(PoisonError::into_inner);
            txns.waiting -= 1;
        }
    }

    /// One more of the same moment; `None` once something newer is in the tree, or too many are open: then
    /// those there are have to do.
    fn another(&self) -> Option<Txn> {
        let txn = self.tree.env.clone().static_read_txn().ok()?;
        (txn.id() == self.number).then_some(txn)
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

pub(in crate::store::embedded) struct TreeReader<'v> {
    /// Given back in the end.
    txn: Option<Txn>,
    view: &'v View,
}

impl Drop for TreeReader<'_> {
    fn drop(&mut self) {
        self.txn.take().into_iter().for_each(|txn| self.view.give_back(txn));
    }
}

impl TreeReader<'_> {
    /// The keyspace, and the transaction to read it in; `None` if there is nothing in it.
    fn keyspace(&self, keyspace: KeyspaceId) -> Option<(&Keyspace, &Txn)> {
        self.view.keyspaces.get(&keyspace).zip(self.txn.as_ref())
    }

    pub(in crate::store::embedded) fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<&[u8]>> {
        // LMDB refuses to look up the empty key, which nothing is stored under.
        let Some((database, txn)) = self.keyspace(keyspace).filter(|_| !key.is_empty()) else {
            return Ok(None);
        };
        let stored = database.get(txn, key)?;
        stored.map(|stored| unseal(keyspace, key, stored)).transpose()
    }

    pub(in crate::store::embedded) fn cursor<'a>(
        &'a self,
        keyspace: KeyspaceId,
        range: &KeyRange,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + 'a>> {
        let (start, end) = bounds(range);
        // The far end is ours to find: see `TreeCursor::next`.
        let steps = match (self.keyspace(keyspace), direction) {
            (Some((database, txn)), Direction::Forward) if !range.is_empty() => {
                Steps::Forward(database.range(txn, &(start, Bound::Unbounded))?)
            }
            (Some((database, txn)), Direction::Reverse) if !range.is_empty() => {
                Steps::Reverse(database.rev_range(txn, &(Bound::Unbounded, end))?)
            }
            _ => Steps::Done,
        };
        Ok(Box::new(TreeCursor { keyspace, range: range.clone(), last: None, steps }))
    }

    /// LMDB counts as it writes.
    pub(in crate::store::embedded) fn entries(&self, keyspace: KeyspaceId) -> Result<u64> {
        Ok(match self.keyspace(keyspace) {
            Some((database, txn)) => database.len(txn)?,
            None => 0,
        })
    }
}

struct TreeCursor<'a> {
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

impl Cursor for TreeCursor<'_> {
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
