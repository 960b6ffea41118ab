//! The engine in memory: persistent maps, so that a snapshot is one reference.
//!
//! A writer copies the current [`State`] (a few references), changes the copy along the paths it
//! touches, and installs it; readers keep whatever state they took. Nothing waits for readers.

use std::path::Path;
use std::sync::Arc;

use imbl::OrdMap;
use imbl::ordmap::RangedIter;
use imbl::shared_ptr::DefaultSharedPtr;
use parking_lot::{Mutex, MutexGuard};

use super::recent::{Recent, Touched};
use super::rules::{check_batch, check_entry};
use super::{
    BulkWriter, Cursor, Direction, Entry, KeyspaceId, Mutation, Reader, Reads, Snapshot, Store, WriteBatch,
};
use crate::error::Result;
use crate::key::{KeyRange, Rowkey};

/// A store in memory, gone when dropped. Its limits are those of the embedded store.
#[derive(Default)]
pub struct MemoryStore {
    /// Held from before a writer copies `current` until it has installed its copy.
    writer: Mutex<Recent>,
    current: Mutex<State>,
}

/// Everything committed up to one moment.
#[derive(Clone, Default)]
struct State {
    version: u64,
    keyspaces: OrdMap<KeyspaceId, OrdMap<Rowkey, Arc<[u8]>>>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// The committed state.
    fn current(&self) -> State {
        self.current.lock().clone()
    }

    /// Waits for the writer lock; gives a copy of the committed state, to be changed and installed.
    fn next(&self) -> (State, MutexGuard<'_, Recent>) {
        let recent = self.writer.lock();
        let mut state = self.current();
        state.version += 1;
        (state, recent)
    }
}

impl Store for MemoryStore {
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        Ok(Arc::new(self.current()))
    }

    fn commit(&self, batch: WriteBatch) -> Result<()> {
        check_batch(&batch)?;
        let (mut state, mut recent) = self.next();
        recent.check(&batch.reads)?;
        recent.record(state.version, &batch.mutations);
        batch.mutations.into_iter().for_each(|mutation| state.apply(mutation));
        *self.current.lock() = state;
        Ok(())
    }

    fn bulk(&self) -> Result<Box<dyn BulkWriter + '_>> {
        let (state, recent) = self.next();
        Ok(Box::new(MemoryBulk { state, store: self, recent, touched: Touched::default() }))
    }
}

impl State {
    fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Option<&[u8]> {
        self.keyspaces.get(&keyspace)?.get(key).map(AsRef::as_ref)
    }

    fn apply(&mut self, mutation: Mutation) {
        match mutation {
            Mutation::Put(keyspace, key, value) => {
                self.keyspaces.entry(keyspace).or_default().insert(key, value.into());
            }
            Mutation::Delete(keyspace, key) => self.delete(keyspace, &key),
            Mutation::Clear(keyspace) => {
                self.keyspaces.remove(&keyspace);
            }
        }
    }

    fn delete(&mut self, keyspace: KeyspaceId, key: &[u8]) {
        if let Some(entries) = self.keyspaces.get_mut(&keyspace) {
            entries.remove(key);
        }
    }
}

impl Snapshot for State {
    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(MemoryReader(self)))
    }

    fn version(&self) -> u64 {
        self.version
    }
}

struct MemoryReader<'s>(&'s State);

impl Reader for MemoryReader<'_> {
    fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<&[u8]>> {
        Ok(self.0.get(keyspace, key))
    }

    fn cursor<'a>(
        &'a self,
        keyspace: KeyspaceId,
        range: &KeyRange,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + 'a>> {
        let inside = match self.0.keyspaces.get(&keyspace) {
            Some(entries) if !range.is_empty() => Some(entries.range::<_, [u8]>(range.bounds())),
            _ => None,
        };
        Ok(Box::new(MemoryCursor { inside, direction }))
    }

    fn entries(&self, keyspace: KeyspaceId) -> Result<u64> {
        Ok(self.0.keyspaces.get(&keyspace).map_or(0, |entries| entries.len() as u64))
    }

    fn count(&self, keyspace: KeyspaceId) -> Result<Option<u64>> {
        self.entries(keyspace).map(Some)
    }

    /// Nothing to do: it was never on a disk.
    fn verify(&self, _: KeyspaceId, _: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        Ok(())
    }
}

/// Lends the entries of a map iterator.
struct MemoryCursor<'s> {
    inside: Option<RangedIter<'s, Rowkey, Arc<[u8]>, DefaultSharedPtr>>,
    direction: Direction,
}

impl Cursor for MemoryCursor<'_> {
    fn next(&mut self) -> Result<Option<Entry<'_>>> {
        let Some(inside) = &mut self.inside else { return Ok(None) };
        let entry = match self.direction {
            Direction::Forward => inside.next(),
            Direction::Reverse => inside.next_back(),
        };
        Ok(entry.map(|(key, value)| (key.as_bytes(), value.as_ref())))
    }
}

/// Works on its own copy of the state, which only a commit installs.
struct MemoryBulk<'s> {
    state: State,
    store: &'s MemoryStore,
    recent: MutexGuard<'s, Recent>,
    touched: Touched,
}

impl BulkWriter for MemoryBulk<'_> {
    fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.state.get(keyspace, key).map(<[u8]>::to_vec))
    }

    fn put(&mut self, keyspace: KeyspaceId, key: &[u8], value: &[u8]) -> Result<()> {
        check_entry(keyspace, key, value)?;
        self.touched.add(keyspace, key);
        self.state.keyspaces.entry(keyspace).or_default().insert(key.into(), value.into());
        Ok(())
    }

    fn delete(&mut self, keyspace: KeyspaceId, key: &[u8]) -> Result<()> {
        self.touched.add(keyspace, key);
        self.state.delete(keyspace, key);
        Ok(())
    }

    fn folder(&self) -> Option<&Path> {
        None
    }

    fn check(&self, reads: &Reads) -> Result<()> {
        self.recent.check(reads)
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        self.recent.record_touched(self.state.version, self.touched);
        *self.store.current.lock() = self.state;
        Ok(())
    }
}
