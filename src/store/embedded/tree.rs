//! The tree below the log: LMDB, in `data.mdb`.
//!
//! Every write goes through a [`Writer`], which also notes up to which version the tree has everything, and has
//! looked at what LMDB is about to read ([`vet`]); what it had better not write there goes beside it ([`aside`]). Every read goes through a [`View`], which searches LMDB's pages
//! itself ([`btree`]). Values carry checksums ([`seal`]), keyspaces sums of these ([`tally`]), and the file is looked
//! at before it is mapped ([`header`]).
//!
//! # Why one huge map
//!
//! LMDB maps its file into memory once, and growing the map later needs a moment without any
//! transaction, which a busy database never has. The map only reserves addresses, so we reserve
//! 1 TiB at once, and half of that again and again where the system refuses. The file itself grows
//! as it is written, by plain writes: a full disk is an error of the commit, never a fault on access.

mod ahead;
pub(super) mod aside;
mod btree;
mod guess;
pub(super) mod header;
mod map;
mod meta;
mod page;
mod seal;
mod tally;
mod vet;
mod view;
mod writer;

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::Arc;

use heed::types::Bytes;
use heed::{CommitOrAbort, CommitToken, Env, EnvFlags, EnvOpenOptions, MdbError, OnCommit, WithoutTls};
use parking_lot::RwLock;

use crate::error::{Error, Kind, Result, sqlstate};
use crate::store::KeyspaceId;
use crate::store::directory::Directory;
use crate::store::trust::{self, Trust};
use map::Map;
use view::Trees;
pub(super) use view::{Seat, TreeReader, View};
pub(super) use writer::{At, Writer};

/// Addresses reserved for the map, in bytes: the first size to try and the last.
pub(super) const MAP_BYTES: (usize, usize) = (1 << 40, 1 << 30);

/// Keyspaces that can be created before the database must be opened again. Every transaction carries
/// a table of 49 bytes for each of these and each one that exists.
pub(super) const KEYSPACES_SPARE: u32 = 4096;

/// Most read transactions open at once.
const READERS_MAX: u32 = 1024;

/// Length of `lock.mdb`: a slot for each of them, and LMDB's header, which takes less than 1 KiB.
pub(super) const READERS_BYTES: u64 = 64 * READERS_MAX as u64 + 1024;

/// Holds up to which version the tree has everything, and what its keyspaces hold ([`tally`]).
const STATE: KeyspaceId = KeyspaceId(u32::MAX);
const VERSION_KEY: &[u8] = b"version";
/// What errors call LMDB's own tree of keyspaces.
const KEYSPACES: KeyspaceId = KeyspaceId(u32::MAX - 1);

/// One keyspace, as LMDB knows it.
type Keyspace = heed::Database<'static, Bytes, Bytes>;
type Keyspaces = HashMap<KeyspaceId, Keyspace>;

/// The tree, and the directory that it is in.
///
/// Fields drop in order: the map is closed before the lock is let go.
pub(super) struct Tree {
    pub(super) env: Env<WithoutTls>,
    /// The file, for reading.
    map: Map,
    /// To write, every keyspace that a committed transaction has created. Write-locked while a commit creates
    /// one, so that the next writer knows it.
    keyspaces: RwLock<Arc<Keyspaces>>,
    trust: Arc<Trust>,
    /// A second descriptor of the data file: the system tells it of every flush that failed since it was opened.
    witness: File,
    directory: Directory,
}

impl Tree {
    /// Opens the tree in `directory`, creating it if that is new.
    pub(super) fn open(directory: Directory, trust: Arc<Trust>) -> Result<Tree> {
        let file = directory.data_file();
        let checked = if directory.is_new() { None } else { Some(header::check(&file)?) };
        let existing = checked.as_ref().map_or(0, |checked| checked.meta.keyspaces.entries);
        directory.reserve_readers(READERS_BYTES)?;
        let (env, map, witness) = map_file(&directory, Some(existing))?;
        env.clear_stale_readers()?;
        // Where others had it open to read, LMDB believes what its last writer, killed perhaps, has told them of how far
        // it is, until somebody begins to write.
        env.write_txn()?.abort();
        let mut tree = Tree { env, map, keyspaces: RwLock::default(), trust, witness, directory };
        // Before LMDB reads what may be damaged.
        let trees = view::trees(&tree, tree.env.read_txn()?.id() as u64)?.1;
        if let Some(checked) = checked {
            checked.check_trees(&file, trees.values())?;
        }
        tree.keyspaces = RwLock::new(Arc::new(open_keyspaces(&tree.env, &trees)?));
        if tree.directory.is_new() {
            tree.begin()?.commit(0)?;
            tree.env.force_sync()?;
        }
        Ok(tree)
    }

    /// The tree in `directory`, to be read beside a process that writes it.
    pub(super) fn open_read_only(directory: Directory) -> Result<Tree> {
        // A read-only disk has no readers' table, and nobody who writes.
        let _ = directory.reserve_readers(READERS_BYTES);
        let (env, map, witness) = map_file(&directory, None)?;
        Ok(Tree { env, map, keyspaces: RwLock::default(), trust: Arc::default(), witness, directory })
    }

    /// What it is in.
    pub(super) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Waits for its turn and begins to write.
    pub(super) fn begin(&self) -> Result<Writer<'_>> {
        Writer::begin(self)
    }

    /// Those that can be written without creating them.
    pub(super) fn keyspaces(&self) -> Arc<Keyspaces> {
        self.keyspaces.read().clone()
    }

    /// What a commit or flush failed for in truth: LMDB reports a write cut short by a full disk as an I/O error.
    /// Unless it is just that, nothing is written any more.
    fn distrust(&self, e: heed::Error) -> heed::Error {
        if !matches!(e, heed::Error::Io(_)) {
            return e;
        }
        if self.witness.sync_data().is_ok() && self.directory.is_out_of_room() {
            return heed::Error::Io(io::ErrorKind::StorageFull.into());
        }
        self.trust.lose();
        e
    }
}

/// Maps the data file for LMDB and for us, reserving as much as the system grants: to write it, with the keyspaces that it
/// has, or only to read it, where LMDB itself looks at the first two pages only.
fn map_file(directory: &Directory, existing: Option<u64>) -> Result<(Env<WithoutTls>, Map, File)> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.max_readers(READERS_MAX);
    match existing {
        Some(existing) => {
            let most = u32::try_from(existing).ok().and_then(|n| n.checked_add(1 + KEYSPACES_SPARE));
            options.max_dbs(most.filter(|n| *n < 1 << 20).ok_or_else(|| {
                Error::corrupt("the data file is damaged")
                    .why(format!("it claims to hold {existing} keyspaces"))
            })?);
        }
        None => {
            // SAFETY: it takes away, and changes nothing that LMDB relies on.
            unsafe { options.flags(EnvFlags::READ_ONLY) };
        }
    }
    let (mut bytes, least) = MAP_BYTES;
    loop {
        // SAFETY: the file must not change under the map except through LMDB. To write, `LOCK` is held, so no other
        // process of ours writes, nor this one a second time, and `header::check` has seen that every page in use is
        // there. Who reads beside a writer is in LMDB's table of readers, so that no page it may read is written anew, and
        // `Pages` gives none that the file does not have. The path names a local directory that we own.
        let mapped = unsafe { options.map_size(bytes).open(directory.path()) }.and_then(|env| {
            let file = File::open(directory.data_file())?;
            Ok((env, Map::new(&file, bytes)?, file))
        });
        match mapped {
            Err(heed::Error::Io(e)) if is_too_much(&e) && bytes > least => bytes /= 2,
            result => return Ok(result?),
        }
    }
}

/// So many addresses are not to be had, here: under valgrind they are no argument.
fn is_too_much(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::OutOfMemory | io::ErrorKind::InvalidInput)
}

/// Handles of the keyspaces in the file, to write them. They are all opened at once: a handle serves only the
/// transactions that begin after it was opened, and a keyspace may be asked for at any time.
fn open_keyspaces(env: &Env<WithoutTls>, trees: &Trees) -> Result<Keyspaces> {
    let opened = env.open_databases_and_commit(env.read_txn()?, |opener, txn| -> Result<_> {
        let mut opened = Opened(Vec::new());
        for (id, root) in trees {
            let database = opener.open_database(txn, Some(&name_of(*id, root.given_up)))?;
            opened.0.extend(database.map(|database| (*id, database)));
        }
        Ok(CommitOrAbort::<_, ()>::Commit(opened))
    })?;
    Ok(opened.commit().unwrap_or_default())
}

/// A tree's name: the number of its keyspace, a `=` if it has the changes [beside](aside) that, and a `+` for each one
/// that was given up before it.
fn name_of(keyspace: KeyspaceId, given_up: usize) -> String {
    let (number, kind) = aside::whose(keyspace).map_or((keyspace, ""), |keyspace| (keyspace, "="));
    format!("{}{kind}{}", number.0, "+".repeat(given_up))
}

/// Which keyspace a tree of this name is of, and how many were given up before it.
fn keyspace_of(name: &[u8]) -> Result<(KeyspaceId, usize)> {
    let known = std::str::from_utf8(name).ok().and_then(|name| {
        let first = name.trim_end_matches('+');
        let number = KeyspaceId(first.strip_suffix('=').unwrap_or(first).parse().ok()?);
        let keyspace = if first.ends_with('=') { aside::beside(number) } else { number };
        Some((keyspace, name.len() - first.len()))
    });
    known.ok_or_else(|| {
        Error::corrupt(format!("the data file holds an unknown keyspace '{}'", name.escape_ascii()))
            .why("keyspaces are named by their number")
    })
}

/// Handles that turn permanent with the transaction that opened them.
struct Opened<'t>(Vec<(KeyspaceId, heed::Database<'t, Bytes, Bytes>)>);

impl OnCommit for Opened<'_> {
    type Committed = Keyspaces;

    fn on_commit(self, token: &CommitToken) -> Keyspaces {
        self.0.into_iter().map(|(id, database)| (id, database.on_commit(token))).collect()
    }
}

/// What a failure of LMDB means to the caller. Takes a reference, for one failed flush is reported to
/// every commit of its group.
fn explain(e: &heed::Error) -> Error {
    let unavailable = |what: &str| Error::new(Kind::Unavailable, what);
    match e {
        heed::Error::Io(e) if e.kind() == io::ErrorKind::StorageFull => trust::full(),
        heed::Error::Io(e) => trust::failed(e.to_string()),
        heed::Error::EnvAlreadyOpened => unavailable("the database is open in this process already")
            .why("a process opens a database once, to write or to read")
            .hint("share its Database handle; read_view() gives one for reading"),
        heed::Error::Mdb(MdbError::MapFull) => unavailable("the database has outgrown its address space")
            .why("less than it needs could be reserved when it was opened")
            .hint("raise the limit on virtual memory (ulimit -v) and open it again"),
        heed::Error::Mdb(MdbError::ReadersFull) => unavailable("too many threads read at once")
            .why(format!("at most {READERS_MAX} can"))
            .hint("finish some queries or transactions and retry"),
        heed::Error::Mdb(MdbError::DbsFull) => unavailable("too many new tables and indexes")
            .why(format!(
                "{KEYSPACES_SPARE} can be created, column families counted, while a database is open"
            ))
            .hint("close the database and open it again, which makes room for as many more")
            .state(sqlstate::LIMIT),
        heed::Error::Mdb(MdbError::Panic) => trust::read_only(),
        // What went wrong on a page spoils the transaction and makes a cursor too deep.
        heed::Error::Mdb(
            e @ (MdbError::Corrupted
            | MdbError::PageNotFound
            | MdbError::Invalid
            | MdbError::VersionMismatch
            | MdbError::BadTxn
            | MdbError::CursorFull),
        ) => Error::corrupt("the data file is damaged").why(e.to_string()).hint("restore it from a backup"),
        e => Error::internal(format!("the embedded store failed: {e}")),
    }
}

impl From<heed::Error> for Error {
    fn from(e: heed::Error) -> Self {
        explain(&e).caused_by(e)
    }
}
