//! Helpers shared by the engines' tests: a place for a database, and short ways to write and read.

use std::fs;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use super::{Direction, Durability, EmbeddedStore, KeyspaceId, LsmStore, Snapshot, Store, WriteBatch};
use crate::error::{Error, Result};
use crate::key::KeyRange;

pub(super) const A: KeyspaceId = KeyspaceId(1);
pub(super) const B: KeyspaceId = KeyspaceId(20);

/// An engine that keeps its databases in directories.
pub(super) trait Opens: Store + Sized {
    fn open_at(path: &Path, durability: Durability) -> Result<Self>;
}

impl Opens for EmbeddedStore {
    fn open_at(path: &Path, durability: Durability) -> Result<Self> {
        EmbeddedStore::open(path, durability)
    }
}

impl Opens for LsmStore {
    fn open_at(path: &Path, durability: Durability) -> Result<Self> {
        LsmStore::open(path, durability)
    }
}

/// A directory in which a database of one engine can be created.
pub(super) struct Place<S>(TempDir, PhantomData<S>);

impl<S: Opens> Place<S> {
    pub(super) fn new() -> Self {
        Place(tempfile::tempdir().unwrap(), PhantomData)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.0.path().join("db")
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub(super) fn open(&self) -> Result<S> {
        S::open_at(&self.path(), Durability::Sync)
    }

    /// For tests without power failures.
    pub(super) fn relaxed(&self) -> S {
        S::open_at(&self.path(), Durability::Relaxed).unwrap()
    }

    pub(super) fn refusal(&self) -> Error {
        self.open().err().expect("it should not open")
    }

    /// A copy of the files as they are now.
    pub(super) fn copy(&self) -> Self {
        let copied = Place::new();
        copy(&self.path(), &copied.path());
        copied
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let from = entry.unwrap().path();
        let to = to.join(from.file_name().unwrap());
        match from.is_dir() {
            true => copy(&from, &to),
            false => assert!(fs::copy(&from, &to).is_ok()),
        }
    }
}

pub(super) fn batch(build: impl FnOnce(&mut WriteBatch)) -> WriteBatch {
    let mut batch = WriteBatch::default();
    build(&mut batch);
    batch
}

pub(super) fn put(store: &impl Store, keyspace: KeyspaceId, key: &str, value: impl AsRef<[u8]>) {
    store.commit(batch(|b| b.put(keyspace, key, value.as_ref().to_vec()))).unwrap();
}

/// The current value.
pub(super) fn get(store: &impl Store, keyspace: KeyspaceId, key: &str) -> Option<Vec<u8>> {
    get_in(&store.snapshot().unwrap(), keyspace, key.as_bytes())
}

pub(super) fn get_in(snapshot: &Arc<dyn Snapshot>, keyspace: KeyspaceId, key: &[u8]) -> Option<Vec<u8>> {
    let reader = snapshot.reader().unwrap();
    reader.get(keyspace, key).unwrap().map(<[u8]>::to_vec)
}

pub(super) fn key(n: u32) -> String {
    format!("{n:06}")
}

/// Loads this number of entries of 500 bytes, with keys from `000000` on.
pub(super) fn fill(store: &impl Store, keyspace: KeyspaceId, entries: u32) {
    let mut bulk = store.bulk().unwrap();
    (0..entries).for_each(|n| bulk.put(keyspace, key(n).as_bytes(), &[7; 500]).unwrap());
    bulk.commit().unwrap();
}

pub(super) type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// All entries of a keyspace, in order.
pub(super) fn all(snapshot: &Arc<dyn Snapshot>, keyspace: KeyspaceId) -> Entries {
    let reader = snapshot.reader().unwrap();
    let mut cursor = reader.cursor(keyspace, &KeyRange::all(), Direction::Forward).unwrap();
    let mut entries = Vec::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        entries.push((key.to_vec(), value.to_vec()));
    }
    entries
}
