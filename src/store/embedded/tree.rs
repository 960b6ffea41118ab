//! The B-tree behind the log: LMDB, in `data.mdb`.
//!
//! Every write goes through a [`TreeWriter`]. It records up to which version the tree has everything, checks the pages
//! that LMDB is about to read ([`vet`]), and keeps changes that would go to a damaged page beside their keyspace
//! ([`aside`]). Every read goes through a [`TreeView`], which searches LMDB's pages itself ([`btree`]). Values carry
//! checksums ([`seal`]), keyspaces carry sums of these ([`tally`]), and the file is checked before it is mapped
//! ([`header`]).
//!
//! # Why one huge map
//!
//! LMDB maps its file into memory once, and growing the map later needs a moment without any transaction, which a
//! busy database never has. A map only reserves addresses, so we reserve 1 TiB at once, or half of that, repeatedly,
//! where the system refuses. The file itself grows as it is written, by plain writes: a full disk is an error of the
//! commit, never a fault on access.

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
mod write_cursor;
mod writer;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::Arc;

use heed::types::Bytes;
use heed::{
    CommitOrAbort, CommitToken, Env, EnvFlags, EnvOpenOptions, MdbError, OnCommit, RoTxn, WithoutTls,
};
use parking_lot::{Mutex, RwLock};

use crate::error::{Error, Kind, Result, sqlstate};
use crate::store::KeyspaceId;
use crate::store::directory::Directory;
use crate::store::trust::{self, Trust};
use map::Map;
use view::Trees;
pub(super) use view::{ReaderSlot, TreeReader, TreeView};
pub(super) use writer::{PutPosition, TreeWriter};

/// Addresses to reserve for the map, in bytes: the first size tried and the smallest.
pub(super) const MAP_BYTES: (usize, usize) = (1 << 40, 1 << 30);

/// Keyspaces that can be created before the database must be reopened, those aside that take the place of dropped ones.
/// LMDB allocates some 100 bytes for each of these and each existing one when it is opened, and 49 for each transaction.
pub(super) const KEYSPACES_SPARE: u32 = 1024;

/// Most read transactions open at once.
const READERS_MAX: u32 = 1024;

/// Length of `lock.mdb`: a slot for each reader, and LMDB's header, which takes less than 1 KiB.
pub(super) const READERS_BYTES: u64 = 64 * READERS_MAX as u64 + 1024;

/// Keyspace with the version up to which the tree has everything, and the tallies of all keyspaces ([`tally`]).
const STATE: KeyspaceId = KeyspaceId(u32::MAX);
const VERSION_KEY: &[u8] = b"version";
/// The number that errors give to LMDB's own tree of keyspaces.
const KEYSPACES: KeyspaceId = KeyspaceId(u32::MAX - 1);

/// LMDB's handle of a keyspace.
type KeyspaceHandle = heed::Database<'static, Bytes, Bytes>;
type Keyspaces = BTreeMap<KeyspaceId, KeyspaceHandle>;

/// The tree and its directory.
///
/// Fields drop in order: the map is closed before the lock is released.
pub(super) struct Tree {
    pub(super) env: Env<WithoutTls>,
    /// The file, for reading.
    map: Map,
    /// For writers: every keyspace that a committed transaction has created. Write-locked while a commit creates one,
    /// so that the next writer knows it.
    keyspaces: RwLock<Arc<Keyspaces>>,
    trust: Arc<Trust>,
    /// A second descriptor of the data file: the system tells it of every flush that failed since it was opened.
    witness: File,
    /// Held while they are checked, so that nothing is written meanwhile.
    are_free_pages_checked: Mutex<bool>,
    directory: Directory,
}

impl Tree {
    /// Opens the tree in `directory`, creating it if the directory is new.
    pub(super) fn open(directory: Directory, trust: Arc<Trust>) -> Result<Tree> {
        let file = directory.data_file();
        let existing = if directory.is_new() { 0 } else { header::check(&file)?.keyspaces.entries };
        directory.reserve_readers(READERS_BYTES)?;
        let (env, map, witness) = map_file(&directory, Some(existing))?;
        env.clear_stale_readers()?;
        // If readers kept the environment open, LMDB takes the newest transaction number from `lock.mdb`, where its
        // last writer, perhaps killed, has left it. Beginning to write corrects that.
        env.write_txn()?.abort();
        let tree = Tree::of(env, map, trust, witness, directory);
        let txn = tree.env.read_txn()?;
        // Before LMDB itself reads pages that may be damaged.
        let trees = view::trees(&tree, txn.id() as u64)?.1;
        *tree.keyspaces.write() = Arc::new(open_keyspaces(&tree.env, txn, &trees)?);
        if tree.directory.is_new() {
            tree.begin()?.commit(0)?;
            tree.env.force_sync()?;
        }
        Ok(tree)
    }

    /// The tree in `directory`, for reading beside a process that may write it.
    pub(super) fn open_read_only(directory: Directory) -> Result<Tree> {
        // Fails on a read-only disk, which has no reader table, but no writers either.
        let _ = directory.reserve_readers(READERS_BYTES);
        let (env, map, witness) = map_file(&directory, None)?;
        Ok(Tree::of(env, map, Arc::default(), witness, directory))
    }

    fn of(env: Env<WithoutTls>, map: Map, trust: Arc<Trust>, witness: File, directory: Directory) -> Tree {
        let (keyspaces, are_free_pages_checked) = (RwLock::default(), Mutex::new(false));
        Tree { env, map, keyspaces, trust, witness, are_free_pages_checked, directory }
    }

    /// Checks, before anything is written for the first time, the list from which LMDB takes pages for new data.
    /// `trees`: the newest ones.
    fn check_free_pages(&self, trees: &Trees) -> Result<()> {
        let mut checked = self.are_free_pages_checked.lock();
        if !*checked {
            header::check_free(&self.directory.data_file(), trees)?;
            *checked = true;
        }
        Ok(())
    }

    pub(super) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Waits for its turn and begins to write.
    pub(super) fn begin(&self) -> Result<TreeWriter<'_>> {
        TreeWriter::begin(self)
    }

    /// The keyspaces that can be written without creating them.
    pub(super) fn keyspaces(&self) -> Arc<Keyspaces> {
        self.keyspaces.read().clone()
    }

    /// The real cause of a failed commit or flush: LMDB reports a write cut short by a full disk as an I/O error. On
    /// any other I/O error nothing is written any more.
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

/// Maps the data file for LMDB and for us, reserving as much as the system grants. `existing`: the number of
/// keyspaces, to write; `None`: only to read, where LMDB itself reads no more than the two meta pages.
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
            // SAFETY: the flag only forbids writing, and changes nothing that LMDB relies on.
            unsafe { options.flags(EnvFlags::READ_ONLY) };
        }
    }
    let (mut bytes, least) = MAP_BYTES;
    loop {
        // SAFETY: the file must not change under the map except through LMDB. A writer holds `LOCK`, so no other
        // process of ours writes, nor this one a second time, and `header::check` has seen that every page in use is
        // there. A reader beside a writer is in LMDB's reader table, so that no page it may read is reused, and
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

/// The error says that the map is too large here: valgrind reports that as an invalid argument.
fn is_too_much(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::OutOfMemory | io::ErrorKind::InvalidInput)
}

/// Opens the handles of all keyspaces in the file, for writing. All at once: a handle serves only transactions that
/// begin after it was opened, and any keyspace may be asked for at any time.
fn open_keyspaces<'e>(
    env: &'e Env<WithoutTls>,
    txn: RoTxn<'e, WithoutTls>,
    trees: &Trees,
) -> Result<Keyspaces> {
    let opened = env.open_databases_and_commit(txn, |opener, txn| -> Result<_> {
        let mut opened = OpenedHandles(Vec::new());
        for (id, root) in trees {
            let database = opener.open_database(txn, Some(&name_of(*id, root.given_up)))?;
            opened.0.extend(database.map(|database| (*id, database)));
        }
        Ok(CommitOrAbort::<_, ()>::Commit(opened))
    })?;
    Ok(opened.commit().unwrap_or_default())
}

/// A tree's name: the number of its keyspace, a `=` if it holds the changes [beside](aside) that keyspace, and a `+`
/// for each earlier tree that was given up.
fn name_of(keyspace: KeyspaceId, given_up: usize) -> String {
    let (number, kind) = aside::whose(keyspace).map_or((keyspace, ""), |keyspace| (keyspace, "="));
    format!("{}{kind}{}", number.0, "+".repeat(given_up))
}

/// The keyspace of the tree with this name, and how many trees were given up before it.
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

/// Handles that become permanent when the transaction that opened them ends.
struct OpenedHandles<'t>(Vec<(KeyspaceId, heed::Database<'t, Bytes, Bytes>)>);

impl OnCommit for OpenedHandles<'_> {
    type Committed = Keyspaces;

    fn on_commit(self, token: &CommitToken) -> Keyspaces {
        self.0.into_iter().map(|(id, database)| (id, database.on_commit(token))).collect()
    }
}

/// Translates an error of LMDB. Takes a reference, because one failed flush is reported to every commit of its group.
fn explain(e: &heed::Error) -> Error {
    let unavailable = |what: &str| Error::new(Kind::Unavailable, what);
    match e {
        heed::Error::Io(e) if e.kind() == io::ErrorKind::StorageFull => trust::full(),
        heed::Error::Io(e) if e.kind() == io::ErrorKind::PermissionDenied => trust::failed(e.to_string())
            .hint("reading takes a right to read all of its files, and to write lock.mdb; or copy it"),
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
        // Corruption seen by LMDB. It also invalidates the transaction (BadTxn), and may make a cursor too deep.
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
