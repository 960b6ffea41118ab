//! A batch of writes, applied atomically, with the reads it depends on.

use std::collections::BTreeSet;

use super::{BulkWriter, Change, Reads};
use crate::error::{Error, Result};
use crate::key::Rowkey;

/// A named, sorted space of keys: one per table family and one per index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct KeyspaceId(pub u32);

/// One change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Writes a value, replacing any old one.
    Put(KeyspaceId, Rowkey, Vec<u8>),
    /// Removes a key; no error if it is not there.
    Delete(KeyspaceId, Rowkey),
    /// Removes every key of the keyspace.
    Clear(KeyspaceId),
}

impl Mutation {
    /// Its keyspace.
    pub fn keyspace(&self) -> KeyspaceId {
        match self {
            Mutation::Put(keyspace, ..) | Mutation::Delete(keyspace, _) | Mutation::Clear(keyspace) => {
                *keyspace
            }
        }
    }

    /// Its keyspace and key; the key is empty if it clears the keyspace.
    pub fn place(&self) -> (KeyspaceId, &[u8]) {
        (self.keyspace(), self.change().map_or(&[], |(key, _)| key))
    }

    /// Bytes of its key and value.
    pub fn bytes(&self) -> usize {
        self.change().map_or(0, |(key, value)| key.len() + value.map_or(0, <[u8]>::len))
    }

    /// Its key and new value (`None`: deleted), if it changes a single key.
    pub fn change(&self) -> Option<Change<'_>> {
        match self {
            Mutation::Put(_, key, value) => Some((key, Some(value))),
            Mutation::Delete(_, key) => Some((key, None)),
            Mutation::Clear(_) => None,
        }
    }

    /// Writes it through a bulk writer, which cannot clear keyspaces.
    pub fn write_to(&self, writer: &mut dyn BulkWriter) -> Result<()> {
        match self.change_of_entry()? {
            (key, Some(value)) => writer.put(self.keyspace(), key, value),
            (key, None) => writer.delete(self.keyspace(), key),
        }
    }

    /// [`Mutation::change`] for a bulk writer. Errors: it clears the keyspace.
    pub fn change_of_entry(&self) -> Result<Change<'_>> {
        self.change().ok_or_else(|| Error::internal("a bulk writer is to clear a keyspace"))
    }
}

/// Changes that become visible and durable together, or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteBatch {
    /// What the mutations are based on. Checked first, in the same atomic step: the whole batch fails with
    /// [`Kind::Conflict`](crate::error::Kind::Conflict) if a later commit wrote into it.
    pub reads: Reads,
    /// Applied in order: a later change of a key wins.
    pub mutations: Vec<Mutation>,
}

impl WriteBatch {
    /// The keyspaces it reads or writes.
    pub fn keyspaces(&self) -> BTreeSet<KeyspaceId> {
        self.reads.keyspaces().chain(self.mutations.iter().map(Mutation::keyspace)).collect()
    }

    /// Bytes of its keys and values.
    pub fn bytes(&self) -> usize {
        self.mutations.iter().map(Mutation::bytes).sum()
    }

    /// Writes it through a bulk writer, which cannot clear keyspaces.
    pub fn write_to(&self, writer: &mut dyn BulkWriter) -> Result<()> {
        self.mutations.iter().try_for_each(|mutation| mutation.write_to(writer))
    }

    /// It writes nothing; its reads then need no check.
    pub fn is_empty(&self) -> bool {
        self.mutations.is_empty()
    }

    /// Writes a value.
    pub fn put(&mut self, keyspace: KeyspaceId, key: impl Into<Rowkey>, value: Vec<u8>) {
        self.mutations.push(Mutation::Put(keyspace, key.into(), value));
    }

    /// Removes a key.
    pub fn delete(&mut self, keyspace: KeyspaceId, key: impl Into<Rowkey>) {
        self.mutations.push(Mutation::Delete(keyspace, key.into()));
    }

    /// Removes every key of a keyspace.
    pub fn clear(&mut self, keyspace: KeyspaceId) {
        self.mutations.push(Mutation::Clear(keyspace));
    }
}
