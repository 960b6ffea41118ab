//! The storage interface: sorted keyspaces of keys and packed values.
//!
//! A [`Store`] gives [`Snapshot`]s and takes [`WriteBatch`]es. A snapshot is a stable view; a [`Reader`] is one
//! thread's access to it, and a [`Cursor`] walks one key range forward or in reverse, lending each entry without
//! copying it.
//!
//! The interface is synchronous: the local engines answer from mapped memory in about a microsecond, and the executor
//! crosses into async code once per batch of rows, not per entry. An engine behind a network would fetch a chunk
//! whenever a cursor runs dry.

mod batch;
#[cfg(test)]
mod conformance;
mod directory;
mod embedded;
mod lent;
mod log;
mod lsm;
mod memory;
mod merge;
mod queue;
mod reads;
mod recent;
mod rules;
#[cfg(test)]
mod testing;
mod trust;

pub use batch::{KeyspaceId, Mutation, WriteBatch};
pub use directory::{is_database, is_full, sync_directory};
pub use embedded::EmbeddedStore;
pub use lsm::LsmStore;
pub use memory::MemoryStore;
pub use reads::{Reads, Recording};

pub(crate) use merge::{Change, ChangeCursor, Merge};

pub use crate::key::KEY_BYTES_MAX;

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::{Error, Kind, Result, sqlstate};
use crate::key::KeyRange;
use directory::Directory;
use embedded::ReadOnlyStore;

/// A storage engine, chosen when a database is created and never changed afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// A log in front of a B-tree (LMDB) in one mapped file: fastest reads.
    #[default]
    Lmdb,
    /// A log in front of sorted tables that are merged (an LSM tree): smaller files, and no page is ever copied.
    Lsm,
}

impl Engine {
    /// All engines.
    pub const ALL: [Engine; 2] = [Engine::Lmdb, Engine::Lsm];

    /// `lmdb` or `lsm`.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Lmdb => "lmdb",
            Engine::Lsm => "lsm",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Engine {
    type Err = Error;

    fn from_str(name: &str) -> Result<Engine> {
        Engine::ALL
            .into_iter()
            .find(|engine| engine.name() == name)
            .ok_or_else(|| Error::invalid(format!("there is no engine \"{name}\"")).hint("name lmdb or lsm"))
    }
}

/// How safe a commit is when it returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Survives a crash of the process and of the machine: every commit is on the disk.
    #[default]
    Sync,
    /// Survives a crash of the process, but not of the machine: the operating system writes commits out when it
    /// likes, at the latest when the store closes or has 32 MiB of them (`lsm`: 16). After a power failure the last
    /// commits may be missing; the database is then consistent, as it was after an earlier commit.
    Relaxed,
}

/// Opens the database in `path`, creating it (but not the directories above) if there is none. `engine`: the engine
/// of a new database, [`Engine::default`] if `None`; an existing database must have it. Gives the store and its
/// engine.
///
/// Errors: `Unavailable` when the database is open elsewhere or the directory cannot be written; `Invalid` when
/// `path` is not a database, or one of another engine; `Unsupported` when a newer program wrote it; `Corrupt` when
/// its files are damaged.
pub fn open(path: &Path, engine: Option<Engine>, durability: Durability) -> Result<(Box<dyn Store>, Engine)> {
    let directory = Directory::open(path, engine)?;
    let engine = directory.engine();
    let store: Result<Box<dyn Store>> = match engine {
        Engine::Lmdb => EmbeddedStore::over(directory, durability).map(|store| Box::new(store) as _),
        Engine::Lsm => LsmStore::over(directory, durability).map(|store| Box::new(store) as _),
    };
    Ok((store.map_err(|e| of_database(e, path))?, engine))
}

/// Names the database in an error about a damaged file of it.
fn of_database(error: Error, path: &Path) -> Error {
    if error.kind() == Kind::Corrupt && !Path::new(error.what()).starts_with(path) {
        return error.in_front(&format!("database {}: ", path.display()));
    }
    error
}

/// Opens the database in `path` for reading only. With [`Engine::Lmdb`] another process may have it open to write at
/// the same time: each snapshot then shows all that process has acknowledged. `engine`: the engine it must have.
///
/// Errors: as [`open`]; `Invalid` when there is no database.
pub fn open_read_only(path: &Path, engine: Option<Engine>) -> Result<(Box<dyn Store>, Engine)> {
    let directory = Directory::open_read_only(path, engine)?;
    match directory.engine() {
        Engine::Lmdb => {
            let store = ReadOnlyStore::over(directory).map_err(|e| of_database(e, path))?;
            Ok((Box::new(store), Engine::Lmdb))
        }
        Engine::Lsm => open(path, engine, Durability::Sync),
    }
}

/// The error for a write to a database opened with [`open_read_only`].
pub fn read_only() -> Error {
    Error::invalid("the database is open for reading only")
        .hint("open it without --read-only, or Options::read_only, when no other process has it open")
        .state(sqlstate::READ_ONLY)
}

/// Order in which a range is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Reverse,
}

/// A sorted key-value engine.
pub trait Store: Send + Sync {
    /// A stable view of everything committed so far.
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>>;

    /// Checks and applies `batch` in one atomic step over all keyspaces. It is durable when this returns, unless the
    /// engine was opened with a relaxed durability.
    ///
    /// Errors: `Conflict` when a later commit wrote into what the batch read, `Invalid` when a key is too long,
    /// `Unavailable` when the disk refuses. On any error nothing was written.
    fn commit(&self, batch: WriteBatch) -> Result<()>;

    /// Begins a bulk write: many entries in one atomic step. Other writers wait until it is committed or dropped.
    fn bulk(&self) -> Result<Box<dyn BulkWriter + '_>>;

    /// Corrects [`Reader::entries`]: a count of the keyspace found `more` entries than that (fewer if negative).
    fn recount(&self, _: KeyspaceId, _more: i64) {}
}

impl<S: Store + ?Sized> Store for Arc<S> {
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        (**self).snapshot()
    }

    fn commit(&self, batch: WriteBatch) -> Result<()> {
        (**self).commit(batch)
    }

    fn bulk(&self) -> Result<Box<dyn BulkWriter + '_>> {
        (**self).bulk()
    }

    fn recount(&self, keyspace: KeyspaceId, more: i64) {
        (**self).recount(keyspace, more);
    }
}

/// Writes many entries in one atomic step; dropped without commit, it leaves nothing behind.
pub trait BulkWriter {
    /// The value now under `key`, including this writer's own puts.
    fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Writes one entry. Fastest in ascending key order within a keyspace.
    fn put(&mut self, keyspace: KeyspaceId, key: &[u8], value: &[u8]) -> Result<()>;

    /// Removes a key; no error if it is not there.
    fn delete(&mut self, keyspace: KeyspaceId, key: &[u8]) -> Result<()>;

    /// Makes about `changes` changes of one keyspace, as puts and deletes one by one would. `give` hands them over, in
    /// ascending order of their keys.
    fn change_all(&mut self, keyspace: KeyspaceId, _changes: u64, give: &mut GiveChanges<'_>) -> Result<()> {
        give(&mut |(key, value)| match value {
            Some(value) => self.put(keyspace, key, value),
            None => self.delete(keyspace, key),
        })
    }

    /// A folder for temporary files: beside the data, where there must be room anyway, and not in a memory-backed
    /// file system. `None` if the data itself is in memory.
    fn folder(&self) -> Option<&Path>;

    /// Errors: `Conflict` when a commit later than `reads` wrote into them. No other commit happens before this
    /// writer ends.
    fn check(&self, reads: &Reads) -> Result<()>;

    /// Makes everything visible and durable.
    fn commit(self: Box<Self>) -> Result<()>;
}

/// A stable view of a store: later commits do not show.
pub trait Snapshot: Send + Sync {
    /// One thread's access. Hold it for one batch of rows, not longer.
    fn reader(&self) -> Result<Box<dyn Reader + '_>>;

    /// A reader for estimates, which no answer depends on: its reads are not recorded for conflict checks.
    fn unrecorded(&self) -> Result<Box<dyn Reader + '_>> {
        self.reader()
    }

    /// Grows with every commit that this view includes; it may skip numbers.
    fn version(&self) -> u64;
}

/// Reads of one snapshot by one thread.
pub trait Reader {
    /// The value under `key`.
    ///
    /// Errors: `Corrupt`, naming keyspace and key, when the bytes are not what was written.
    fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<&[u8]>>;

    /// The values under many keys, in their order, as [`Reader::get`] gives them one by one.
    fn get_many(&self, keyspace: KeyspaceId, keys: &[&[u8]]) -> Result<Vec<Option<&[u8]>>> {
        keys.iter().map(|key| self.get(keyspace, key)).collect()
    }

    /// Walks `range`.
    fn cursor<'a>(
        &'a self,
        keyspace: KeyspaceId,
        range: &KeyRange,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + 'a>>;

    /// Number of entries in the keyspace, exact or nearly so, without reading them. 0 only if there are none (loads
    /// rely on this); too high where a key was written twice.
    fn entries(&self, keyspace: KeyspaceId) -> Result<u64>;

    /// About how many entries lie in `range`, more exact the fewer there are; `None` if that takes a walk. No answer
    /// may depend on it.
    fn estimate(&self, _: KeyspaceId, _: &KeyRange) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Exact number of entries in the keyspace, if it is known without reading them.
    fn count(&self, keyspace: KeyspaceId) -> Result<Option<u64>>;

    /// Proves that the keyspace holds what was written into it, where reading alone cannot: that the disk returns the
    /// latest version of each page. `watch` is told how many entries were checked, and may stop it with an error.
    ///
    /// Errors: `Corrupt`, naming the keyspace; an error of `watch`.
    fn verify(&self, keyspace: KeyspaceId, watch: &mut dyn FnMut(u64) -> Result<()>) -> Result<()>;
}

/// 1 if the keyspace has an entry, otherwise 0. For readers whose approximate count came out as 0.
pub fn one_or_none(reader: &(impl Reader + ?Sized), keyspace: KeyspaceId) -> Result<u64> {
    let mut cursor = reader.cursor(keyspace, &KeyRange::all(), Direction::Forward)?;
    Ok(cursor.next()?.map_or(0, |_| 1))
}

/// Source of the error about an entry whose bytes are not what was written.
#[derive(Debug)]
pub struct DamagedEntry {
    /// The entry's keyspace.
    pub keyspace: KeyspaceId,
    /// The key, as read.
    pub key: Vec<u8>,
}

impl fmt::Display for DamagedEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry {} of keyspace {}", crate::key::hex(&self.key), self.keyspace.0)
    }
}

impl std::error::Error for DamagedEntry {}

/// The damaged entry that an error is about; `None`: it is about something else.
pub fn damaged_entry(error: &Error) -> Option<&DamagedEntry> {
    std::error::Error::source(error)?.downcast_ref()
}

/// Source of the error about a keyspace whose pages are damaged.
#[derive(Debug)]
pub struct DamagedKeyspace(pub KeyspaceId);

impl fmt::Display for DamagedKeyspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "keyspace {}", self.0.0)
    }
}

impl std::error::Error for DamagedKeyspace {}

/// Key and value of one entry, lent until the cursor moves.
pub type Entry<'a> = (&'a [u8], &'a [u8]);

/// Takes key and value of an entry; gives false to stop.
pub type Visit<'v> = dyn FnMut(&[u8], &[u8]) -> Result<bool> + 'v;

/// Takes a change of an entry.
pub type TakeChange<'t> = dyn FnMut(Change<'_>) -> Result<()> + 't;

/// Hands changes over, one by one.
pub type GiveChanges<'g> = dyn FnMut(&mut TakeChange<'_>) -> Result<()> + 'g;

/// A position in a range.
pub trait Cursor {
    /// The next entry, or `None` at the end of the range; after that, always `None`. After an error about a
    /// [`DamagedEntry`] it goes on behind that entry.
    fn next(&mut self) -> Result<Option<Entry<'_>>>;

    /// Goes on in another range, in the same direction, as a new cursor there would; searches from where it is, as that
    /// is near if the ranges follow each other. False: it cannot do that, and is of no more use.
    fn move_to(&mut self, _: &KeyRange) -> Result<bool> {
        Ok(false)
    }

    /// Shows the following entries to `visit`, as [`Cursor::next`] gives them one by one. True: `visit` stopped the
    /// walk. False: the range ended.
    fn walk(&mut self, visit: &mut Visit<'_>) -> Result<bool> {
        while let Some((key, value)) = self.next()? {
            if !visit(key, value)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
