//! A store that stops at a chosen step: for tests of what a crash leaves behind.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rowkeydb::store::{BulkWriter, KeyspaceId, Reads, Snapshot, Store, WriteBatch};
use rowkeydb::{Error, Kind, Result};

/// Counts the steps of a store, and stops it at a chosen one. Clones share the count.
#[derive(Clone, Debug)]
pub struct Fuse(Arc<Steps>);

#[derive(Debug)]
struct Steps {
    taken: AtomicU64,
    last: AtomicU64,
}

impl Fuse {
    /// Lets `steps` more steps pass; from the next one on everything fails.
    pub fn set(&self, steps: u64) {
        self.0.last.store(self.0.taken.load(Ordering::SeqCst) + steps, Ordering::SeqCst);
    }

    /// Steps so far (count).
    pub fn taken(&self) -> u64 {
        self.0.taken.load(Ordering::SeqCst)
    }

    /// The store has stopped.
    pub fn is_burnt(&self) -> bool {
        self.0.taken.load(Ordering::SeqCst) > self.0.last.load(Ordering::SeqCst)
    }

    /// Takes one more step. Errors: `Unavailable`, from the chosen one on.
    fn step(&self) -> Result<()> {
        self.0.taken.fetch_add(1, Ordering::SeqCst);
        self.check()
    }

    fn check(&self) -> Result<()> {
        if self.is_burnt() { Err(Error::new(Kind::Unavailable, "the store has stopped")) } else { Ok(()) }
    }
}

/// A store with a fuse. Steps are: before and after each commit, each entry of a bulk writer, before and after its
/// commit.
pub struct FailingStore<S> {
    inner: Arc<S>,
    fuse: Fuse,
}

impl<S: Store> FailingStore<S> {
    /// Wraps `inner`, which does not stop until the fuse is set.
    pub fn new(inner: Arc<S>) -> (FailingStore<S>, Fuse) {
        let fuse = Fuse(Arc::new(Steps { taken: AtomicU64::new(0), last: AtomicU64::new(u64::MAX) }));
        (FailingStore { inner, fuse: fuse.clone() }, fuse)
    }
}

impl<S: Store> Store for FailingStore<S> {
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        self.fuse.check()?;
        self.inner.snapshot()
    }

    fn commit(&self, batch: WriteBatch) -> Result<()> {
        self.fuse.step()?;
        self.inner.commit(batch)?;
        self.fuse.step()
    }

    fn bulk(&self) -> Result<Box<dyn BulkWriter + '_>> {
        self.fuse.check()?;
        Ok(Box::new(FailingBulk { inner: self.inner.bulk()?, fuse: self.fuse.clone() }))
    }

    fn recount(&self, keyspace: KeyspaceId, more: i64) {
        self.inner.recount(keyspace, more);
    }
}

struct FailingBulk<'s> {
    inner: Box<dyn BulkWriter + 's>,
    fuse: Fuse,
}

impl BulkWriter for FailingBulk<'_> {
    fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.fuse.check()?;
        self.inner.get(keyspace, key)
    }

    fn put(&mut self, keyspace: KeyspaceId, key: &[u8], value: &[u8]) -> Result<()> {
        self.fuse.step()?;
        self.inner.put(keyspace, key, value)
    }

    fn delete(&mut self, keyspace: KeyspaceId, key: &[u8]) -> Result<()> {
        self.fuse.step()?;
        self.inner.delete(keyspace, key)
    }

    fn folder(&self) -> Option<&Path> {
        self.inner.folder()
    }

    fn check(&self, reads: &Reads) -> Result<()> {
        self.inner.check(reads)
    }

    fn commit(self: Box<Self>) -> Result<()> {
        self.fuse.step()?;
        self.inner.commit()?;
        self.fuse.step()
    }
}
