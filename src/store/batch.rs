//! An atomic change: what must still be true, and what is then written.

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

/// What a key must hold when the batch is applied, or the whole batch fails with
/// [`Kind::Conflict`](crate::error::Kind::Conflict).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// Keyspace of the key.
    pub keyspace: KeyspaceId,
    /// The key.
    pub key: Rowkey,
    /// The value it must hold; `None`: it must not exist.
    pub value: Option<Vec<u8>>,
}

/// Changes that become visible and durable together, or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteBatch {
    /// Checked first, in the same atomic step.
    pub expectations: Vec<Expectation>,
    /// Applied in order: a later change of a key wins.
    pub mutations: Vec<Mutation>,
}

impl WriteBatch {
    /// Nothing to check and nothing to write.
    pub fn is_empty(&self) -> bool {
        self.expectations.is_empty() && self.mutations.is_empty()
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

    /// Requires a key to hold this value (`None`: not to exist).
    pub fn expect(&mut self, keyspace: KeyspaceId, key: impl Into<Rowkey>, value: Option<Vec<u8>>) {
        self.expectations.push(Expectation { keyspace, key: key.into(), value });
    }
}
