//! The store seam: sorted keyspaces of keys and packed values.
//!
//! A [`Store`] gives [`Snapshot`]s and takes [`WriteBatch`]es. A snapshot is a stable view; a
//! [`Reader`] is one thread's way into it, and a [`Cursor`] walks one key range forward or in
//! reverse, lending each entry without copying it.
//!
//! The seam is synchronous: the local engines answer out of mapped memory in about a microsecond,
//! and the executor crosses into async code once per batch of rows, not per entry. An engine behind
//! a network fetches a chunk whenever a cursor runs dry.

mod batch;
#[cfg(test)]
mod conformance;
mod embedded;
mod failing;
mod memory;
mod reads;
mod recent;
mod rules;
mod traced;

pub use batch::{KeyspaceId, Mutation, WriteBatch};
pub use embedded::{Durability, EmbeddedOptions, EmbeddedStore};
pub use failing::{FailingStore, Fuse};
pub use memory::MemoryStore;
pub use reads::{Reads, Recording};
pub use rules::KEY_BYTES_MAX;
pub use traced::{Trace, TracedStore};

pub(crate) use rules::bounds;

use std::sync::Arc;

use crate::error::Result;
use crate::key::KeyRange;

/// Way through a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Reverse,
}

/// How far one [`WriteBatch`] is atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomicity {
    /// Across all keyspaces.
    Database,
    /// Within one key of one keyspace (HBase).
    Row,
}

/// What an engine can promise; writers ask, never assume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// How far a batch is atomic.
    pub atomicity: Atomicity,
    /// Longest key, in bytes.
    pub key_bytes_max: usize,
    /// Survives the process.
    pub durable: bool,
}

/// A sorted key-value engine.
pub trait Store: Send + Sync {
    /// What it promises.
    fn capabilities(&self) -> Capabilities;

    /// A stable view of everything committed so far.
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>>;

    /// Checks and applies `batch` in one atomic step; durable when it returns, unless the engine
    /// was opened with a relaxed durability.
    ///
    /// Errors: `Conflict` when a later commit wrote into what the batch read, `Invalid` when a key is too long,
    /// `Unavailable` when the disk refuses. On any error nothing was written.
    fn commit(&self, batch: WriteBatch) -> Result<()>;

    /// Opens the bulk door: many entries, one atomic step.
    /// Other writers wait until it is committed or dropped.
    fn bulk(&self) -> Result<Box<dyn BulkWriter + '_>>;
}

/// Writes many entries in one atomic step; dropped without commit, it leaves nothing behind.
pub trait BulkWriter {
    /// The value now under `key`, this writer's own puts included.
    fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Writes one entry. Fastest in ascending key order within a keyspace.
    fn put(&mut self, keyspace: KeyspaceId, key: &[u8], value: &[u8]) -> Result<()>;

    /// Removes a key; no error if it is not there.
    fn delete(&mut self, keyspace: KeyspaceId, key: &[u8]) -> Result<()>;

    /// Errors: `Conflict` when a commit later than `reads` wrote into them. Until this writer ends, there
    /// will be no other one.
    fn check(&self, reads: &Reads) -> Result<()>;

    /// Makes everything visible and durable.
    fn commit(self: Box<Self>) -> Result<()>;
}

/// A stable view of a store: later commits do not show.
pub trait Snapshot: Send + Sync {
    /// One thread's way in. Hold it for one batch of rows, not for longer.
    fn reader(&self) -> Result<Box<dyn Reader + '_>>;

    /// A way in for estimates, which no answer depends on: nobody remembers what is read.
    fn unrecorded(&self) -> Result<Box<dyn Reader + '_>> {
        self.reader()
    }

    /// Number of commits this view includes: grows with every commit.
    fn version(&self) -> u64;
}

/// Reads of one snapshot by one thread.
pub trait Reader {
    /// The value under `key`.
    ///
    /// Errors: `Corrupt`, naming keyspace and key, when the bytes are not what was written.
    fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<&[u8]>>;

    /// Walks `range`.
    fn cursor<'a>(
        &'a self,
        keyspace: KeyspaceId,
        range: &KeyRange,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + 'a>>;

    /// Number of entries in the keyspace, exact or nearly so, without reading them.
    fn entries(&self, keyspace: KeyspaceId) -> Result<u64>;

    /// Exact number of entries in the keyspace, if it is known without reading them.
    fn count(&self, keyspace: KeyspaceId) -> Result<Option<u64>>;
}

/// Key and value of one entry, lent until the cursor moves.
pub type Entry<'a> = (&'a [u8], &'a [u8]);

/// A position in a range.
pub trait Cursor {
    /// The next entry, or `None` at the end of the range; after that, always `None`.
    fn next(&mut self) -> Result<Option<Entry<'_>>>;
}
