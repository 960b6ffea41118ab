//! The embedded engine: a write-ahead log in front of a B-tree (LMDB's), in one directory.
//!
//! A commit joins the [`queue`](super::queue). The queue's leader writes all waiting batches as one record of the
//! [`log`](super::log), flushes once (group commit), and puts the entries into a [`memtable`]. A thread of its own
//! ([`keeper`]) moves the memtable into the [`tree`] when it is full, when walks had to pass much in it that is deleted
//! or outdated, or when nobody has committed for a while: in one transaction, in key order, so that changes of the same
//! page are written once. A [`snapshot`] combines a view of the tree with the memtables above it; when these are empty,
//! reads go straight into LMDB's map.
//!
//! Four kinds of writes bypass the log and go into the tree directly: loads ([`bulk`]), very large commits, large
//! ones whose changes lie close together, and commits that create or clear a keyspace. Acknowledged changes that would
//! go to a damaged page are kept beside the tree of their keyspace ([`tree::aside`]).
//!
//! Versions number the commits. After a disk failure nothing is written any more ([`trust`](super::trust)).
//!
//! # Files
//!
//! | file | holds |
//! |---|---|
//! | `FORMAT` | `rowkeydb format 4`; written last, so a directory that has it is a whole database |
//! | `LOCK` | empty; locked by the process that has the database open to write |
//! | `data.mdb` | LMDB: one named database per keyspace, named by the keyspace's number in decimal, followed by one `+` for each earlier tree of it that was given up with its damaged pages; `7=` holds changes of 7 (`tree/aside.rs`); 4294967295 holds, under `version`, the last version that is in the tree, 8 bytes, little-endian, and under `tally ` and a keyspace's number, 4 bytes, big-endian, what that keyspace must hold (`tree/tally.rs`) |
//! | `lock.mdb` | LMDB's reader table, shared with other processes ([`read_only`]); worthless when nobody has the database open |
//! | `log/log-N` | commits that may be missing from the tree, in segments |
//! | `log/acknowledged` | which segments count, the last acknowledged record, and a version that the tree has reached at least |
//!
//! # Opening
//!
//! Log records of later versions than the tree's are replayed into a memtable. A clean close leaves none.

mod bulk;
mod keeper;
mod memtable;
mod read_only;
mod snapshot;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::slice::from_ref;
use std::sync::Arc;

use parking_lot::Mutex;

use super::directory::{Directory, damaged};
use super::log::record::{self, LogOperation};
use super::log::{Log, Mark};
use super::queue::CommitQueue;
use super::recent::Recent;
use super::rules::check_batch;
use super::trust::Trust;
use super::{BulkWriter, Durability, Engine, KeyspaceId, Mutation, Snapshot, Store, WriteBatch};
use crate::error::{Error, Kind, Result};
use crate::key::KeyRange;
use bulk::EmbeddedBulk;
use keeper::Keeper;
use memtable::{ENTRY_BYTES, Memtable, Newest};
pub(super) use read_only::ReadOnlyStore;
use snapshot::StoreState;
use tree::{ReaderSlot, Tree, TreeView, TreeWriter};

/// Size at which a memtable is full, in bytes. After a crash up to two memtables are replayed from the log. Small in
/// tests, so that they see many.
const MEMTABLE_BYTES: usize = if cfg!(test) { 64 << 10 } else { 32 << 20 };

/// Memory, in bytes, that batches must take in a memtable to go into the tree because they are dense. Smaller ones would
/// gain less than the second flush takes.
const DENSE_BYTES: usize = if cfg!(test) { 512 } else { 256 << 10 };

/// Entries (count) of the tree for each changed one that batches may have between their first and last key to be dense:
/// half of each page that is written for them is new.
const ENTRIES_PER_CHANGE: u64 = 2;

/// How large a log, in bytes, a clean close may leave behind; all of it is in the tree by then.
const LEFT_BYTES: u64 = 256 << 10;

/// A store in a directory, for one process at a time.
pub struct EmbeddedStore {
    keeper: Keeper,
    shared: Arc<Shared>,
    queue: CommitQueue,
}

/// State shared by the store and its keeper thread.
struct Shared {
    /// What new snapshots see.
    newest: Mutex<Arc<StoreState>>,
    /// The writer lock.
    writer: Mutex<WriterState>,
    /// Held while a memtable goes into the tree.
    moving: Mutex<()>,
    mark: Arc<Mark>,
    trust: Arc<Trust>,
    tree: Arc<Tree>,
}

/// State that only the current writer touches.
struct WriterState {
    log: Log,
    recent: Recent,
}

impl EmbeddedStore {
    /// Opens the database in `path`, creating it (but not the directories above) if there is none.
    ///
    /// Errors: `Unavailable` when it is open elsewhere or the directory cannot be written; `Invalid`
    /// when `path` is something else than a database of this engine; `Unsupported` when a newer program wrote it;
    /// `Corrupt` when a file is missing, truncated or damaged, or an acknowledged commit is not there.
    pub fn open(path: &Path, durability: Durability) -> Result<Self> {
        EmbeddedStore::over(Directory::open(path, Some(Engine::Lmdb))?, durability)
    }

    pub(super) fn over(directory: Directory, durability: Durability) -> Result<Self> {
        let folder = directory.log_folder();
        let is_new = directory.is_new();
        let trust = Arc::<Trust>::default();
        let tree = Arc::new(Tree::open(directory, trust.clone())?);
        let view = TreeView::of(&tree)?;
        view.reader().check_keyspaces()?;
        let in_tree = view.version()?;
        let mut version = in_tree;
        let memtable = Memtable::default();
        let log = if is_new {
            fs::create_dir(&folder)?;
            let log = Log::create(&folder, durability, trust.clone())?;
            tree.directory().finish()?;
            log
        } else {
            Log::open(&folder, durability, trust.clone(), |content| {
                replay(&folder, content, &memtable, &mut version)
            })?
        };
        let mark = log.mark();
        if version < mark.settled() {
            return Err(too_old(version, mark.settled()));
        }
        // The last commit of the tree may not be on the disk, and no flush writes what one has failed to write. One
        // more commit brings the same.
        if in_tree > mark.settled() {
            tree.begin()?.commit(in_tree)?;
            mark.note_in_tree(in_tree);
        }
        let is_behind = !memtable.is_empty();
        let held = Arc::new(held_by(&view, in_tree)?);
        let state =
            StoreState { version, active: Arc::new(memtable), sealed: None, held, view: Arc::new(view) };
        let shared = Arc::new(Shared {
            newest: Mutex::new(Arc::new(state)),
            mark,
            writer: Mutex::new(WriterState { log, recent: Recent::default() }),
            moving: Mutex::default(),
            trust,
            tree,
        });
        let keeper = Keeper::default();
        if is_behind {
            keeper.wake(&shared);
        }
        Ok(EmbeddedStore { keeper, shared, queue: CommitQueue::default() })
    }

    /// Applies each batch whose reads still hold, in order, with one flush.
    ///
    /// One result per batch. A batch whose reads do not hold, or that exceeds a limit, is left out without failing
    /// the others; a disk failure fails them all, and nothing is written.
    fn apply_group(&self, group: &[WriteBatch]) -> Vec<Result<()>> {
        self.try_group(group).unwrap_or_else(|e| {
            if group.len() > 1 && self.shared.trust.check().is_ok() {
                return group.iter().flat_map(|batch| self.apply_group(from_ref(batch))).collect();
            }
            group.iter().map(|_| Err(e.copied())).collect()
        })
    }

    fn try_group(&self, group: &[WriteBatch]) -> Result<Vec<Result<()>>> {
        let shared = &self.shared;
        let mut lock = shared.writer.lock();
        let WriterState { log, recent } = &mut *lock;
        shared.trust.check()?;
        let newest = shared.newest();
        newest.view.check_free_pages()?;
        let version = newest.version + 1;
        let (results, accepted) = recent.accept(group);
        if accepted.iter().all(|batch| batch.is_empty()) {
            return Ok(results);
        }
        let mutations = || accepted.iter().flat_map(|batch| &batch.mutations);
        if shared.is_for_the_tree(&accepted, log.flushes()) {
            shared.empty_memtables(log)?;
            let seat = ReaderSlot::of(&shared.tree)?;
            let mut writer = shared.tree.begin()?;
            accepted.iter().try_for_each(|batch| writer.apply(&batch.mutations))?;
            writer.commit(version)?;
            shared.show_tree(version, seat)?;
        } else {
            self.make_room(log)?;
            log.append(|out| record::encode(out, version, mutations().map(LogOperation::from)))?;
            let newest = shared.newest();
            let was_empty = newest.active.is_empty();
            newest.active.write(version, mutations().map(LogOperation::from));
            shared.show(|state| state.version = version);
            if was_empty {
                self.keeper.wake(shared);
            }
        }
        accepted.iter().for_each(|batch| recent.record(version, &batch.mutations));
        Ok(results)
    }

    /// Begins a new memtable if the active one is full, or in the way of reads; a full one waits if the previous one
    /// is not in the tree yet.
    fn make_room(&self, log: &mut Log) -> Result<()> {
        let newest = self.shared.newest();
        let may_stay = newest.sealed.is_some() || !newest.active.is_in_the_way();
        if newest.active.bytes() < MEMTABLE_BYTES && may_stay {
            return Ok(());
        }
        self.shared.seal(log)?;
        self.keeper.wake(&self.shared);
        Ok(())
    }
}

impl Store for EmbeddedStore {
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        Ok(self.shared.newest())
    }

    fn commit(&self, batch: WriteBatch) -> Result<()> {
        check_batch(&batch)?;
        self.shared.newest().check_held(&batch)?;
        self.queue.submit(batch, |group| self.apply_group(group))
    }

    fn bulk(&self) -> Result<Box<dyn BulkWriter + '_>> {
        Ok(Box::new(EmbeddedBulk::new(&self.shared)?))
    }
}

impl Drop for EmbeddedStore {
    /// Flushes what relaxed commits left unflushed, and moves the memtables into the tree, so that the next open is
    /// quick and verifies everything.
    fn drop(&mut self) {
        self.keeper.stop();
        // On failure the log still has it, and nobody is left to tell.
        let _ = self.shared.close(&mut self.shared.writer.lock().log);
    }
}

impl Shared {
    fn newest(&self) -> Arc<StoreState> {
        self.newest.lock().clone()
    }

    /// Publishes a new [`StoreState`] for the snapshots to come.
    fn show(&self, change: impl FnOnce(&mut StoreState)) {
        let mut newest = self.newest.lock();
        let mut state = StoreState::clone(&newest);
        change(&mut state);
        *newest = Arc::new(state);
    }

    /// Shows the tree, which now has everything up to `version`; the memtables are empty.
    fn show_tree(&self, version: u64, seat: ReaderSlot) -> Result<()> {
        self.mark.note_in_tree(version);
        // The commit is in the tree: if it stayed invisible, its version would be used a second time.
        let (view, held) = self.look(version, seat).inspect_err(|_| self.trust.lose())?;
        self.show(|state| {
            state.version = version;
            (state.view, state.held) = (view, held);
        });
        Ok(())
    }

    /// A view of the tree, which now has everything up to `version`, and what it keeps beside damaged keyspaces. It
    /// takes the `seat`.
    fn look(&self, version: u64, seat: ReaderSlot) -> Result<(Arc<TreeView>, Arc<Memtable>)> {
        let view = TreeView::seated(&self.tree, seat)?;
        let held = held_by(&view, version)?;
        Ok((Arc::new(view), Arc::new(held)))
    }

    /// The batches must bypass the log, which has no record for what they do, are too large for a memtable, or are
    /// taken faster by the tree. `flushes`: the log would flush them, too.
    fn is_for_the_tree(&self, batches: &[&WriteBatch], flushes: bool) -> bool {
        let there = self.tree.keyspaces();
        let mut mutations = batches.iter().flat_map(|batch| &batch.mutations);
        let filled = |batch: &&WriteBatch| batch.bytes() + ENTRY_BYTES * batch.mutations.len();
        let bytes = batches.iter().map(filled).sum::<usize>();
        bytes > MEMTABLE_BYTES
            || mutations.any(|mutation| match mutation {
                Mutation::Put(keyspace, ..) => !there.contains_key(keyspace),
                Mutation::Delete(..) => false,
                Mutation::Clear(_) => true,
            })
            || flushes && bytes >= DENSE_BYTES && self.is_dense(batches, bytes)
    }

    /// The changes lie close together, so that the tree takes them faster than log and memtable would, and reads are
    /// not held up by a memtable afterwards. What would have to be moved before is less than their `bytes`.
    fn is_dense(&self, batches: &[&WriteBatch], bytes: usize) -> bool {
        let newest = self.newest();
        let sealed = newest.sealed.as_ref().map_or(0, |(sealed, _)| sealed.bytes());
        let waiting = newest.active.bytes() + sealed;
        if bytes < waiting {
            return false;
        }
        let mut spans = BTreeMap::<KeyspaceId, Span<'_>>::new();
        for mutation in batches.iter().flat_map(|batch| &batch.mutations) {
            let (keyspace, key) = mutation.place();
            let span = spans.entry(keyspace).or_insert(Span { first: key, last: key, changes: 0 });
            (span.first, span.last) = (span.first.min(key), span.last.max(key));
            span.changes += 1;
        }
        let tree = newest.view.reader();
        spans.iter().all(|(keyspace, Span { first, last, changes })| {
            // What cannot be read is reported by whoever has to read it.
            let entries = tree.estimate(*keyspace, &KeyRange::new(*first, *last));
            entries.is_ok_and(|entries| entries <= ENTRIES_PER_CHANGE * changes)
        })
    }

    /// Ends the active memtable, and the log segment with the same entries, once the previous memtable is in the
    /// tree.
    fn seal(&self, log: &mut Log) -> Result<()> {
        self.move_sealed()?;
        // It may have been moved meanwhile; an empty memtable has no version to advance the tree to.
        if self.newest().active.is_empty() {
            return Ok(());
        }
        let segment = log.rotate()?;
        self.show(|state| {
            let active = std::mem::take(&mut state.active);
            state.sealed = Some((active, segment));
        });
        Ok(())
    }

    /// Moves the sealed memtable into the tree, if there is one, and releases its log segment.
    fn move_sealed(&self) -> Result<()> {
        let _moving = self.moving.lock();
        let Some((sealed, segment)) = self.newest().sealed.clone() else { return Ok(()) };
        self.trust.check()?;
        let seat = ReaderSlot::of(&self.tree)?;
        self.put_into_tree(&sealed)?;
        let (view, held) = self.look(sealed.version(), seat)?;
        self.show(|state| {
            (state.view, state.held) = (view, held);
            state.sealed = None;
        });
        self.mark.forget(segment)
    }

    /// Writes the entries of a memtable into the tree. A keyspace that turns out to be damaged is held from then on
    /// ([`tree::aside`]), so that the others still get there.
    fn put_into_tree(&self, memtable: &Memtable) -> Result<()> {
        if memtable.is_empty() {
            return Ok(());
        }
        let mut damaged = BTreeSet::new();
        let writer = loop {
            let mut writer = self.tree.begin()?;
            damaged.iter().for_each(|keyspace| writer.hold(*keyspace));
            match take_in(&mut writer, memtable) {
                Ok(()) => break writer,
                Err((keyspace, e)) if e.kind() == Kind::Corrupt && damaged.insert(keyspace) => {}
                Err((_, e)) => return Err(e),
            }
        };
        writer.commit(memtable.version())?;
        self.mark.note_in_tree(memtable.version());
        // Readers in other processes may have been killed. Whom this fails to clear keeps pages until the next time.
        let _ = self.tree.env.clear_stale_readers();
        Ok(())
    }

    /// Empties the memtables. The caller has the writer lock, so nothing is added meanwhile.
    fn empty_memtables(&self, log: &mut Log) -> Result<()> {
        self.seal(log)?;
        self.move_sealed()
    }

    fn close(&self, log: &mut Log) -> Result<()> {
        self.trust.check()?;
        let moved = match log.bytes() > LEFT_BYTES {
            true => self.empty_memtables(log),
            // A small log stays: the next open skips its records.
            false => self.move_sealed().and_then(|()| self.put_into_tree(&self.newest().active)),
        };
        // The log keeps what could not be moved.
        log.close().and(moved)
    }
}

/// Where the changes of a keyspace lie.
struct Span<'b> {
    first: &'b [u8],
    last: &'b [u8],
    changes: u64,
}

/// Applies the changes of a memtable. Errors: with the keyspace that failed.
fn take_in(writer: &mut TreeWriter<'_>, memtable: &Memtable) -> Result<(), (KeyspaceId, Error)> {
    let mut newest = memtable.newest().peekable();
    while let Some((keyspace, _)) = newest.peek().map(Newest::change) {
        let taken = writer.take_in(keyspace, |take| {
            while let Some(next) = newest.next_if(|next| next.change().0 == keyspace) {
                take(next.change().1)?;
            }
            Ok(())
        });
        taken.map_err(|e| (keyspace, e))?;
    }
    writer.note_tallies()
}

/// Puts what a record of the log in `folder` says into a memtable, unless `version` has it already.
///
/// Errors: `Corrupt` when it makes no sense, or is not of the next version.
fn replay(folder: &Path, record: &[u8], memtable: &Memtable, version: &mut u64) -> Result<()> {
    let (logged, steps) =
        record::decode(record).ok_or_else(|| damaged(folder, "log", "a record makes no sense"))?;
    if logged <= *version {
        return Ok(());
    }
    // Each version is in the log, or went straight into the tree.
    if logged != *version + 1 {
        return Err(Error::corrupt("the log does not go on where data.mdb ends")
            .why(format!("that has version {version}, and the log goes on with {logged}"))
            .hint("put back the files of one time, or restore the database from a backup"));
    }
    memtable.write(logged, steps.into_iter());
    *version = logged;
    Ok(())
}

/// The error for lost commits: tree and log end with `version`, but the tree had `settled` already.
fn too_old(version: u64, settled: u64) -> Error {
    Error::corrupt("data.mdb is damaged, or of an earlier time")
        .why(format!("it has version {version}, and had version {settled} already"))
        .hint("put back the files of one time, or restore the database from a backup")
}

/// A memtable of the changes kept beside damaged keyspaces, in a tree that has everything up to `version`.
fn held_by(view: &TreeView, version: u64) -> Result<Memtable> {
    let held = Memtable::default();
    view.reader().show_held(|keyspace, (key, value)| {
        let step = match value {
            Some(value) => LogOperation::Put(keyspace, key, value),
            None => LogOperation::Delete(keyspace, key),
        };
        held.write(version, std::iter::once(step));
    })?;
    Ok(held)
}
