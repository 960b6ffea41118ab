//! A store that records what is written to it: for tests of what a statement writes.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use rowkeydb::Result;
use rowkeydb::store::{BulkWriter, KeyspaceId, Mutation, Reads, Snapshot, Store, WriteBatch};

/// Mutations in the order of their commits. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Trace(Arc<Mutex<Vec<Mutation>>>);

impl Trace {
    /// The mutations committed since the last call.
    pub fn take(&self) -> Vec<Mutation> {
        std::mem::take(&mut *self.0.lock())
    }

    fn extend(&self, mutations: Vec<Mutation>) {
        self.0.lock().extend(mutations);
    }
}

/// A store whose writes are traced.
pub struct TracedStore<S> {
    inner: S,
    trace: Trace,
}

impl<S: Store> TracedStore<S> {
    /// Wraps `inner`; gives the trace of what will be written to it.
    pub fn new(inner: S) -> (TracedStore<S>, Trace) {
        let trace = Trace::default();
        (TracedStore { inner, trace: trace.clone() }, trace)
    }
}

impl<S: Store> Store for TracedStore<S> {
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        self.inner.snapshot()
    }

    fn commit(&self, batch: WriteBatch) -> Result<()> {
        let mutations = batch.mutations.clone();
        self.inner.commit(batch)?;
        self.trace.extend(mutations);
        Ok(())
    }

    fn bulk(&self) -> Result<Box<dyn BulkWriter + '_>> {
        let inner = self.inner.bulk()?;
        Ok(Box::new(TracedBulk { inner, trace: self.trace.clone(), mutations: Vec::new() }))
    }

    fn recount(&self, keyspace: KeyspaceId, more: i64) {
        self.inner.recount(keyspace, more);
    }
}

struct TracedBulk<'s> {
    inner: Box<dyn BulkWriter + 's>,
    trace: Trace,
    mutations: Vec<Mutation>,
}

impl BulkWriter for TracedBulk<'_> {
    fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.inner.get(keyspace, key)
    }

    fn put(&mut self, keyspace: KeyspaceId, key: &[u8], value: &[u8]) -> Result<()> {
        self.inner.put(keyspace, key, value)?;
        self.mutations.push(Mutation::Put(keyspace, key.into(), value.to_vec()));
        Ok(())
    }

    fn delete(&mut self, keyspace: KeyspaceId, key: &[u8]) -> Result<()> {
        self.inner.delete(keyspace, key)?;
        self.mutations.push(Mutation::Delete(keyspace, key.into()));
        Ok(())
    }

    fn folder(&self) -> Option<&Path> {
        self.inner.folder()
    }

    fn check(&self, reads: &Reads) -> Result<()> {
        self.inner.check(reads)
    }

    fn commit(self: Box<Self>) -> Result<()> {
        self.inner.commit()?;
        self.trace.extend(self.mutations);
        Ok(())
    }
}
