//! The embedded engine: a log before a B-tree, LMDB's, in one directory.
//!
//! A commit joins the [`queue`](super::queue); whoever leads it writes all that waits as one record of the
//! [`log`](super::log), flushes once, and puts the entries into a [`memtable`]. When that is full, or nobody has committed
//! for a while, it goes into the [`tree`] in one transaction, in order of keys, by a thread of its own ([`keeper`]); what is
//! written into the same page meanwhile is written once. A snapshot is what the tree had at some moment and the memtables
//! before it ([`snapshot`]); when these are empty, reads go straight into LMDB's map. What the log is no good for goes
//! into the tree at once: loads ([`bulk`]), very large commits, and those that create or clear a keyspace. What is
//! acknowledged and would go to a damaged page is kept beside the tree of its keyspace ([`tree::aside`]).
//!
//! Versions number the commits. When the disk fails, nothing is written any more ([`trust`](super::trust)).
//!
//! # Files
//!
//! | file | holds |
//! |---|---|
//! | `FORMAT` | `rowkeydb format 4`; written last, so a directory that has it is a whole database |
//! | `LOCK` | empty; locked by the process that has the database open to write |
//! | `data.mdb` | LMDB: one named database per keyspace, its name the keyspace's number in decimal, and a `+` behind it for each one before that was given up with its damaged pages; `7=` holds changes of 7 (`tree/aside.rs`); 4294967295 holds, under `version`, the last version that is in the tree, 8 bytes, little-endian, and under `tally ` and a keyspace's number, 4 bytes, big-endian, what that must hold (`tree/tally.rs`) |
//! | `lock.mdb` | LMDB's table of readers, of this process and others ([`read_only`]); worthless when nobody has the database open |
//! | `log/log-N` | commits that may be missing from the tree, in segments |
//! | `log/acknowledged` | which segments count, the last record that was acknowledged, and the version that the tree has at least |
//!
//! # Opening
//!
//! Records of later versions than the tree's go into a memtable. A clean close leaves none.

mod bulk;
mod keeper;
mod memtable;
mod read_only;
mod snapshot;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::slice::from_ref;
use std::sync::Arc;

use parking_lot::Mutex;

use super::directory::{Directory, damaged};
use super::log::record::{self, Step};
use super::log::{Log, Mark};
use super::queue::CommitQueue;
use super::recent::{Recent, Recorder};
use super::rules::check_batch;
use super::trust::Trust;
use super::{BulkWriter, Durability, Engine, KeyspaceId, Mutation, Snapshot, Store, WriteBatch};
use crate::error::{Error, Kind, Result};
use bulk::Bulk;
use keeper::Keeper;
use memtable::{ENTRY_BYTES, Memtable};
pub(super) use read_only::ReadOnlyStore;
use snapshot::{EmbeddedSnapshot, Moment};
use tree::{Seat, Tree, View, Writer};

/// Memory at which a memtable is full, in bytes. An unclean end leaves up to two of that to be read from the log.
/// Tests want to see many.
const MEMTABLE_BYTES: usize = if cfg!(test) { 64 << 10 } else { 32 << 20 };

/// Most of the log, in bytes, that a close leaves behind; none of it counts.
const LEFT_BYTES: u64 = 256 << 10;

/// A store in a directory, for one process at a time.
pub struct EmbeddedStore {
    keeper: Keeper,
    shared: Arc<Shared>,
    queue: CommitQueue,
}

/// What the store and its keeper hold on to.
struct Shared {
    /// What snapshots to come will see.
    newest: Mutex<Arc<Moment>>,
    /// The writer lock.
    writer: Mutex<Log>,
    /// Held while a memtable goes into the tree.
    moving: Mutex<()>,
    recent: Mutex<Recent>,
    mark: Arc<Mark>,
    trust: Arc<Trust>,
    tree: Arc<Tree>,
}

impl EmbeddedStore {
    /// Opens the database in `path`, creating it (but not the directories above) if there is none.
    ///
    /// Errors: `Unavailable` when it is open elsewhere or the directory cannot be written; `Invalid`
    /// when `path` is something else than a database of this engine; `Unsupported` when a newer program wrote it;
    /// `Corrupt` when a file is missing, truncated or damaged, or something that was acknowledged is not there.
    pub fn open(path: &Path, durability: Durability) -> Result<Self> {
        EmbeddedStore::over(Directory::open(path, Some(Engine::Lmdb))?, durability)
    }

    pub(super) fn over(directory: Directory, durability: Durability) -> Result<Self> {
        let folder = directory.log_folder();
        let is_new = directory.is_new();
        let trust = Arc::<Trust>::default();
        let tree = Arc::new(Tree::open(directory, trust.clone())?);
        let view = View::of(&tree)?;
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
                let (logged, steps) = record::decode(content)
                    .ok_or_else(|| damaged(&folder, "log", "a record makes no sense"))?;
                if logged > version {
                    // Every version is logged, or in the tree by then.
                    if logged != version + 1 {
                        return Err(parted(version, logged));
                    }
                    memtable.write(logged, steps.into_iter());
                    version = logged;
                }
                Ok(())
            })?
        };
        let mark = log.mark();
        if version < mark.settled() {
            return Err(too_old(version, mark.settled()));
        }
        // The process may have been killed before its last flush came to an end.
        if in_tree > mark.settled() {
            tree.env.force_sync()?;
            mark.settle(in_tree);
        }
        let is_behind = !memtable.is_empty();
        let held = Arc::new(held_by(&view, in_tree)?);
        let moment = Moment { version, active: Arc::new(memtable), full: None, held, view: Arc::new(view) };
        let shared = Arc::new(Shared {
            newest: Mutex::new(Arc::new(moment)),
            mark,
            writer: Mutex::new(log),
            moving: Mutex::default(),
            recent: Mutex::default(),
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
    /// One result per batch. A batch whose reads do not hold, or that asks for more than there is, is left out and
    /// spoils no other; a failure of the disk fails them all, and nothing is written.
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
        let mut log = shared.writer.lock();
        shared.trust.check()?;
        let version = shared.newest().version + 1;
        let mut recorder = shared.recorder(version);
        let (results, accepted) = recorder.accept(group);
        if accepted.iter().all(|batch| batch.is_empty()) {
            return Ok(results);
        }
        let mutations = || accepted.iter().flat_map(|batch| &batch.mutations);
        if shared.is_for_the_tree(&accepted) {
            shared.settle(&mut log)?;
            let seat = Seat::of(&shared.tree)?;
            let mut writer = shared.tree.begin()?;
            accepted.iter().try_for_each(|batch| writer.apply(&batch.mutations))?;
            writer.commit(version)?;
            shared.show_tree(version, seat)?;
        } else {
            self.make_room(&mut log)?;
            log.append(|out| record::encode(out, version, mutations().map(Step::from)))?;
            let newest = shared.newest();
            let was_empty = newest.active.is_empty();
            newest.active.write(version, mutations().map(Step::from));
            shared.show(|moment| moment.version = version);
            if was_empty {
                self.keeper.wake(shared);
            }
        }
        recorder.keep();
        Ok(results)
    }

    /// Begins a new memtable if the one there is full; waits if the one before is not in the tree yet.
    fn make_room(&self, log: &mut Log) -> Result<()> {
        if self.shared.newest().active.bytes() < MEMTABLE_BYTES {
            return Ok(());
        }
        self.shared.rotate(log)?;
        self.keeper.wake(&self.shared);
        Ok(())
    }
}

impl Store for EmbeddedStore {
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        Ok(Arc::new(EmbeddedSnapshot::new(self.shared.newest())))
    }

    fn commit(&self, batch: WriteBatch) -> Result<()> {
        check_batch(&batch)?;
        self.shared.newest().check_held(&batch)?;
        self.queue.submit(batch, |group| self.apply_group(group))
    }

    fn bulk(&self) -> Result<Box<dyn BulkWriter + '_>> {
        Ok(Box::new(Bulk::new(&self.shared)?))
    }
}

impl Drop for EmbeddedStore {
    /// What was acknowledged and flushed is on the disk already; this flushes the rest, and makes the next open quick and
    /// its proof complete.
    fn drop(&mut self) {
        self.keeper.stop();
        let mut log = self.shared.writer.lock();
        // If it fails, the log has it. Nobody is left to tell.
        let _ = self.shared.close(&mut log);
    }
}

impl Shared {
    fn recorder(&self, version: u64) -> Recorder<'_> {
        Recorder::new(self.recent.lock(), version)
    }

    fn newest(&self) -> Arc<Moment> {
        self.newest.lock().clone()
    }

    /// Shows something else to snapshots to come.
    fn show(&self, change: impl FnOnce(&mut Moment)) {
        let mut newest = self.newest.lock();
        let mut moment = Moment::clone(&newest);
        change(&mut moment);
        *newest = Arc::new(moment);
    }

    /// The tree has everything up to `version`, and no memtable has anything: so nobody else takes the `seat`.
    fn show_tree(&self, version: u64, seat: Seat) -> Result<()> {
        self.mark.settle(version);
        drop(seat);
        // Were it not shown, its number would be given out again.
        let (view, held) = self.look(version).inspect_err(|_| self.trust.lose())?;
        self.show(|moment| {
            moment.version = version;
            (moment.view, moment.held) = (view, held);
        });
        Ok(())
    }

    /// The tree, which has everything up to `version` now, and what it keeps beside damaged keyspaces.
    fn look(&self, version: u64) -> Result<(Arc<View>, Arc<Memtable>)> {
        let view = View::of(&self.tree)?;
        let held = held_by(&view, version)?;
        Ok((Arc::new(view), Arc::new(held)))
    }

    /// The log has no word for it, or the tree takes it better.
    fn is_for_the_tree(&self, batches: &[&WriteBatch]) -> bool {
        let there = self.tree.keyspaces();
        let mut mutations = batches.iter().flat_map(|batch| &batch.mutations);
        let filled = |batch: &&WriteBatch| batch.bytes() + ENTRY_BYTES * batch.mutations.len();
        batches.iter().map(filled).sum::<usize>() > MEMTABLE_BYTES
            || mutations.any(|mutation| match mutation {
                Mutation::Put(keyspace, ..) => !there.contains_key(keyspace),
                Mutation::Delete(..) => false,
                Mutation::Clear(_) => true,
            })
    }

    /// Ends the memtable and the segment of the log that has the same in it, once the one before is in the tree.
    fn rotate(&self, log: &mut Log) -> Result<()> {
        self.move_full()?;
        // Somebody else may have settled it meanwhile; an empty one has no version to move the tree to.
        if self.newest().active.is_empty() {
            return Ok(());
        }
        let segment = log.rotate()?;
        self.show(|moment| {
            let full = std::mem::take(&mut moment.active);
            moment.full = Some((full, segment));
        });
        Ok(())
    }

    /// Moves the full memtable into the tree, if there is one, and forgets what the log had of it.
    fn move_full(&self) -> Result<()> {
        let _moving = self.moving.lock();
        let Some((full, segment)) = self.newest().full.clone() else { return Ok(()) };
        self.trust.check()?;
        self.put_into_tree(&full)?;
        let (view, held) = self.look(full.version())?;
        self.show(|moment| {
            (moment.view, moment.held) = (view, held);
            moment.full = None;
        });
        self.mark.forget(segment)
    }

    /// Puts what was acknowledged into the tree. A keyspace that turns out to be damaged is held from then on
    /// ([`tree::aside`]), and keeps nothing else from getting there.
    fn put_into_tree(&self, memtable: &Memtable) -> Result<()> {
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
        self.mark.settle(memtable.version());
        // Other processes that were killed while they read.
        self.tree.env.clear_stale_readers()?;
        Ok(())
    }

    /// Leaves nothing in memtables. The caller has the writer lock, by which nothing comes after.
    fn settle(&self, log: &mut Log) -> Result<()> {
        self.rotate(log)?;
        self.move_full()
    }

    fn close(&self, log: &mut Log) -> Result<()> {
        self.trust.check()?;
        if log.bytes() > LEFT_BYTES {
            self.settle(log)?;
        } else {
            self.move_full()?;
            let active = &self.newest().active;
            if !active.is_empty() {
                self.put_into_tree(active)?;
            }
        }
        log.close()
    }
}

/// Makes the changes of a memtable. Errors: and in which keyspace.
fn take_in(writer: &mut Writer<'_>, memtable: &Memtable) -> Result<(), (KeyspaceId, Error)> {
    for newest in memtable.newest() {
        let (keyspace, change) = newest.change();
        writer.take_in(keyspace, change).map_err(|e| (keyspace, e))?;
    }
    writer.note_tallies()
}

/// The tree has `version`, and the log goes on with `logged`.
fn parted(version: u64, logged: u64) -> Error {
    Error::corrupt("the log does not go on where data.mdb ends")
        .why(format!("that has version {version}, and the log goes on with {logged}"))
        .hint("put back the files of one time, or restore the database from a backup")
}

/// There is everything up to `version`, and the tree had `settled` already.
fn too_old(version: u64, settled: u64) -> Error {
    Error::corrupt("data.mdb is damaged, or of an earlier time")
        .why(format!("it has version {version}, and had version {settled} already"))
        .hint("put back the files of one time, or restore the database from a backup")
}

/// What the tree, which has everything up to `version`, keeps beside damaged keyspaces.
fn held_by(view: &View, version: u64) -> Result<Memtable> {
    let held = Memtable::default();
    view.reader().show_held(|keyspace, (key, value)| {
        let step = match value {
            Some(value) => Step::Put(keyspace, key, value),
            None => Step::Delete(keyspace, key),
        };
        held.write(version, std::iter::once(step));
    })?;
    Ok(held)
}
