//! A cursor that writes entries in the order of their keys.
//!
//! LMDB's own put and delete search from the root each time, which is half of what they take. A cursor looks into the
//! leaf where it is first.

use heed::types::Bytes;
use heed::{MdbError, PutFlags, RwIter, RwTxn};

use super::KeyspaceHandle;

pub(super) struct WriteCursor<'w>(RwIter<'w, Bytes, Bytes>);

impl<'w> WriteCursor<'w> {
    pub(super) fn new(keyspace: KeyspaceHandle, txn: &'w mut RwTxn<'_>) -> heed::Result<WriteCursor<'w>> {
        Ok(WriteCursor(keyspace.iter_mut(txn)?))
    }

    pub(super) fn put(&mut self, key: &[u8], sealed: &[u8]) -> heed::Result<()> {
        self.put_with(PutFlags::empty(), key, sealed)
    }

    /// Puts an entry behind all others.
    pub(super) fn append(&mut self, key: &[u8], sealed: &[u8]) -> heed::Result<()> {
        self.put_with(PutFlags::APPEND, key, sealed)
    }

    /// Deletes an entry that exists.
    pub(super) fn delete(&mut self, key: &[u8]) -> heed::Result<()> {
        // heed's iterators do not search. A put that overwrites nothing does, and stays at what it finds.
        match self.put_with(PutFlags::NO_OVERWRITE, key, &[]) {
            Ok(()) | Err(heed::Error::Mdb(MdbError::KeyExist)) => {}
            Err(e) => return Err(e),
        }
        // SAFETY: as in `put_with`.
        unsafe { self.0.del_current() }.map(|_| ())
    }

    fn put_with(&mut self, flags: PutFlags, key: &[u8], sealed: &[u8]) -> heed::Result<()> {
        // SAFETY: a write ends what LMDB has lent of its pages. The iterator holds the transaction's only mutable
        // borrow, so nothing lent by the transaction is in use, and the iterator itself is never asked for an entry.
        // What is read in mapped memory are committed pages, which no write of this transaction changes.
        unsafe { self.0.put_current_with_options::<Bytes>(flags, key, sealed) }
    }
}
