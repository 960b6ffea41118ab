//! An atomic change: what it relies on, and what is then written.

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
    /// Writes a value, over any old one.
    Put(KeyspaceId, Rowkey, Vec<u8>),
    /// Removes a key; no error if it is not there.
    Delete(KeyspaceId, Rowkey),
    /// Removes every key of the keyspace.
    Clear(KeyspaceId),
}

impl Mutation {
    /// The keyspace it is in.
    pub fn keyspace(&self) -> KeyspaceId {
        match self {
            Mutation::Put(keyspace, ..) | Mutation::Delete(keyspace, _) | Mutation::Clear(keyspace) => {
                *keyspace
            }
        }
    }

    /// Where it is, down to the key, if it is of one.
    pub fn place(&self) -> (KeyspaceId, &[u8]) {
        (self.keyspace(), self.change().map_or(&[], |(key, _)| key))
    }

    /// Bytes of its key and value.
    pub fn bytes(&self) -> usize {
        self.change().map_or(0, |(key, value)| key.len() + value.map_or(0, <[u8]>::len))
    }

    /// The change of one key, if it is that.
    pub fn change(&self) -> Option<Change<'_>> {
        match self {
            Mutation::Put(_, key, value) => Some((key, Some(value))),
            Mutation::Delete(_, key) => Some((key, None)),
            Mutation::Clear(_) => None,
        }
    }

    /// Goes through the bulk door, which clears no keyspaces.
    pub fn write_to(&self, writer: &mut dyn BulkWriter) -> Result<()> {
        match self.change() {
            Some((key, Some(value))) => writer.put(self.keyspace(), key, value),
            Some((key, None)) => writer.delete(self.keyspace(), key),
            None => Err(Error::internal("a bulk writer is to clear a keyspace")),
        }
    }
}

/// Changes that become visible and durable together, or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteBatch {
    /// What the mutations were made from, checked first in the same atomic step: the whole batch fails with
    /// [`Kind::Conflict`](crate::error::Kind::Conflict) if a later commit wrote into it.
    pub reads: Reads,
    /// Applied in order: a later change of a key wins.
    pub mutations: Vec<Mutation>,
}

impl WriteBatch {
    /// Where it reads or writes anything.
    pub fn keyspaces(&self) -> BTreeSet<KeyspaceId> {
        self.reads.keyspaces().chain(self.mutations.iter().map(Mutation::keyspace)).collect()
    }

    /// Bytes of its keys and values.
    pub fn bytes(&self) -> usize {
        self.mutations.iter().map(Mutation::bytes).sum()
    }

    /// Writes nothing; what it read is then no matter to anybody.
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
