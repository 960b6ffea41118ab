//! The write-optimised engine: our own write-ahead log in front of an LSM tree ([`lsm_tree`]).
//!
//! A commit joins the [`queue`](super::queue). The queue's leader writes all waiting batches as one record of the
//! [`log`](super::log), flushes once, and puts the entries into the tree's memtable. The threads of [`upkeep`] turn
//! full memtables into tables, and merge tables. All keyspaces share one tree, each with its own key prefix
//! ([`slots`]). Reads go through [`snapshot`] and a row cache ([`rows`]); loads write tables directly ([`bulk`]).
//!
//! The tree keeps many versions of a key, told apart by sequence number.
//!
//! # Numbers
//!
//! | number | is |
//! |---|---|
//! | sequence number | drawn from one counter by commits, one at a time under the writer lock, and by whatever the tree does to its list of tables |
//! | version | the sequence number of a commit, so there are gaps between versions |
//! | `below` | what a snapshot reads has smaller sequence numbers: the version's, and those of what the tree did since |
//! | slot | a keyspace's key prefix, counted by itself ([`slots`]) |
//! | segment, record | those of the log, counted by itself |
//!
//! # Files
//!
//! | file | holds |
//! |---|---|
//! | `FORMAT` | `rowkeydb format 4 lsm`; written last, so a directory that has it is a whole database |
//! | `LOCK` | empty; locked by the process that has the database open |
//! | `lsm/log-N` | commits that may be missing from the tables, in segments ([`log`](super::log)) |
//! | `lsm/acknowledged` | which segments count, and the last acknowledged record |
//! | `lsm/tree` | the tables, in blocks with checksums, and the tree's own metadata |
//!
//! # Opening
//!
//! The tables hold the slots as of some version, and everything before it. Records of later versions are replayed in
//! order; replaying one that is already in a table changes nothing.

mod bulk;
mod rows;
mod slots;
mod snapshot;
mod staging;
#[cfg(test)]
mod tests;
mod upkeep;

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use lsm_tree::{AbstractTree, AnyTree, Cache, Config, SequenceNumberCounter};
use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_128;

use super::directory::{Directory, damaged, is_full, unavailable};
use super::log::record::{self, LogOperation};
use super::log::{Log, Mark};
use super::queue::CommitQueue;
use super::recent::Recent;
use super::rules::{check_batch, may_exist};
use super::trust::{self, Trust};
use super::{BulkWriter, Durability, Engine, KeyspaceId, Mutation, Snapshot, Store, WriteBatch};
use crate::error::{Error, Result};
use bulk::LsmBulk;
use rows::RowCache;
use slots::{Dead, SLOTS_KEY, SlotId, Slots, tree_key};
use snapshot::{LsmSnapshot, LsmView, Views};
use upkeep::{Threads, Upkeep};

/// Size at which a memtable becomes a table, in bytes. After a crash a few memtables are replayed from the log. Small
/// in tests, so that they see many tables.
const MEMTABLE_BYTES: u64 = if cfg!(test) { 64 << 10 } else { 16 << 20 };

/// How large a log, in bytes, a clean close may leave for the next open to replay.
const LEFT_BYTES: u64 = 1 << 20;

/// Limit of the block cache, in bytes.
const CACHE_BYTES: u64 = 128 << 20;

/// A store in a directory, for one process at a time.
pub struct LsmStore {
    threads: Threads,
    shared: Arc<Shared>,
    queue: CommitQueue,
}

/// State shared by the store, its threads and its snapshots.
struct Shared {
    tree: AnyTree,
    /// The next sequence number; the tree draws from this counter too.
    sequence: SequenceNumberCounter,
    views: Views,
    rows: RowCache,
    /// The writer lock.
    writer: Mutex<WriterState>,
    dead: Dead,
    mark: Arc<Mark>,
    upkeep: Upkeep,
    trust: Arc<Trust>,
    directory: Directory,
}

/// State that only the current writer touches.
struct WriterState {
    log: Log,
    /// As they will be published.
    slots: Slots,
    recent: Recent,
}

impl LsmStore {
    /// Opens the database in `path`, creating it (but not the directories above) if there is none.
    ///
    /// Errors: `Unavailable` when it is open elsewhere, or the directory cannot be read or written; `Invalid` when `path`
    /// is not a database, or one of another engine; `Unsupported` when a newer program wrote it; `Corrupt` when a file is
    /// missing or damaged, or something that was acknowledged is not there.
    pub fn open(path: &Path, durability: Durability) -> Result<Self> {
        LsmStore::over(Directory::open(path, Some(Engine::Lsm))?, durability)
    }

    pub(super) fn over(directory: Directory, durability: Durability) -> Result<Self> {
        let folder = directory.lsm_folder();
        if directory.is_new() {
            fs::create_dir(&folder)?;
        }
        let sequence = SequenceNumberCounter::default();
        // The tree's own visibility counter, which we do not use; ours is in `Views`.
        let visible = SequenceNumberCounter::default();
        let dead = Dead::default();
        let trust = Arc::<Trust>::default();
        let config = Config::new(folder.join("tree"), sequence.clone(), visible)
            .use_cache(Arc::new(Cache::with_capacity_bytes(CACHE_BYTES)))
            .with_compaction_filter_factory(Some(Arc::new(dead.clone())));
        if !directory.is_new() {
            check_manifest(&folder)?;
        }
        let tree = config.open().map_err(explain)?;
        let stored = tree.get(SLOTS_KEY, u64::MAX).map_err(explain)?;
        let (mut slots, in_tables) = match &stored {
            Some(bytes) => {
                Slots::decode(bytes).ok_or_else(|| damaged(&folder, "tree", "its slots make no sense"))?
            }
            None => (Slots::default(), 0),
        };
        let mut last = tree.get_highest_seqno().unwrap_or(0).max(in_tables);
        let log = if directory.is_new() {
            Log::create(&folder, durability, trust.clone())?
        } else {
            Log::open(&folder, durability, trust.clone(), |content| {
                let (version, steps) = record::decode(content)
                    .ok_or_else(|| damaged(&folder, "log", "a record makes no sense"))?;
                if version > in_tables {
                    for step in &steps {
                        // A slot returned here is buried by `dead.all_but` below.
                        apply(&tree, &mut slots, version, step);
                    }
                }
                last = last.max(version);
                Ok(())
            })?
        };
        if directory.is_new() {
            directory.finish()?;
        }
        dead.all_but(&slots);
        sequence.fetch_max(last + 1);
        let view = LsmView { version: last, below: last + 1, slots: Arc::new(slots.clone()) };
        let shared = Arc::new(Shared {
            tree,
            sequence,
            views: Views::new(view),
            rows: RowCache::default(),
            mark: log.mark(),
            writer: Mutex::new(WriterState { log, slots, recent: Recent::default() }),
            dead,
            upkeep: Upkeep::default(),
            trust,
            directory,
        });
        Ok(LsmStore { threads: Threads::start(&shared)?, shared, queue: CommitQueue::default() })
    }
}

impl Store for LsmStore {
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        Ok(Arc::new(LsmSnapshot::new(&self.shared)))
    }

    fn commit(&self, batch: WriteBatch) -> Result<()> {
        check_batch(&batch)?;
        self.queue.submit(batch, |group| self.shared.apply_group(group))
    }

    fn bulk(&self) -> Result<Box<dyn BulkWriter + '_>> {
        Ok(Box::new(LsmBulk::new(&self.shared)))
    }

    fn recount(&self, keyspace: KeyspaceId, more: i64) {
        // If a load holds the writer lock, skip it: the next count finds the same difference.
        if let Some(writer) = self.shared.writer.try_lock()
            && let Some(slot) = writer.slots.get(keyspace)
        {
            slot.count(more);
        }
    }
}

impl Drop for LsmStore {
    /// Flushes what relaxed commits left unflushed, and moves a large memtable into tables, so that the next open is
    /// quick and verifies everything.
    fn drop(&mut self) {
        self.threads.stop();
        let mut writer = self.shared.writer.lock();
        if writer.log.bytes() > LEFT_BYTES
            && let Ok(sealed) = self.shared.seal(&mut writer)
        {
            drop(writer);
            // On failure the log still has it.
            let _ = upkeep::flush(&self.shared, sealed);
            writer = self.shared.writer.lock();
        }
        // Nobody is left to tell of a failure, and no promise depends on it.
        let _ = writer.log.close();
    }
}

impl Shared {
    /// Applies each batch whose reads still hold, in order, with one record and one flush.
    ///
    /// One result per batch. A batch whose reads do not hold is left out without failing the others; a disk failure
    /// fails them all, and nothing is written.
    fn apply_group(&self, group: &[WriteBatch]) -> Vec<Result<()>> {
        self.try_group(group).unwrap_or_else(|e| group.iter().map(|_| Err(e.copied())).collect())
    }

    fn try_group(&self, group: &[WriteBatch]) -> Result<Vec<Result<()>>> {
        let mut writer = self.writer.lock();
        self.trust.check()?;
        let (results, accepted) = writer.recent.accept(group);
        if accepted.iter().all(|batch| batch.is_empty()) {
            return Ok(results);
        }
        let mutations = || accepted.iter().flat_map(|batch| &batch.mutations);
        // What clears a keyspace may be what makes room.
        if !mutations().any(|mutation| matches!(mutation, Mutation::Clear(_))) {
            self.make_room(&mut writer)?;
        }
        let version = self.sequence.next();
        self.write(&mut writer, version, || mutations().map(LogOperation::from))?;
        accepted.iter().for_each(|batch| writer.recent.record(version, &batch.mutations));
        Ok(results)
    }

    /// Translates a failed write of the tree. Unless the disk is just full, nothing is written any more: the list of
    /// tables on the disk may already be the next one, and further work of the tree would contradict it.
    fn distrust(&self, e: lsm_tree::Error) -> Error {
        match e {
            lsm_tree::Error::Io(e) if is_full(&e) && self.directory.is_out_of_room() => {
                trust::full().caused_by(e)
            }
            lsm_tree::Error::Io(e) => self.trust.after_flush(e),
            e => explain(e),
        }
    }

    /// Commits `steps` as `version`: logs, applies and publishes them.
    fn write<'a, S: Iterator<Item = LogOperation<'a>>>(
        &self,
        writer: &mut WriterState,
        version: u64,
        steps: impl Fn() -> S,
    ) -> Result<()> {
        writer.log.append(|out| record::encode(out, version, steps()))?;
        // The tables of a cleared slot are dropped soon, so the record must be on the disk.
        if steps().any(|step| matches!(step, LogOperation::Clear(_))) {
            writer.log.flush()?;
        }
        let slots_before = writer.slots.next();
        let mut cleared = Vec::new();
        for step in steps() {
            cleared.extend(apply(&self.tree, &mut writer.slots, version, &step));
            if let LogOperation::Put(keyspace, key, _) | LogOperation::Delete(keyspace, key) = step
                && let Some(slot) = writer.slots.get(keyspace)
            {
                self.rows.forget(slot.id, key, version);
            }
        }
        let changed = writer.slots.next() != slots_before || !cleared.is_empty();
        self.publish(version, changed.then_some(&writer.slots));
        cleared.into_iter().for_each(|slot| self.bury(slot));
        Ok(())
    }

    /// Shows a version to new snapshots. The caller has the writer lock, so all sequence numbers drawn so far belong
    /// to complete changes.
    fn publish(&self, version: u64, slots: Option<&Slots>) {
        let slots = slots.map(|slots| Arc::new(slots.clone()));
        self.views.publish(|view| {
            view.version = version;
            view.below = self.sequence.get();
            view.slots = slots.unwrap_or_else(|| view.slots.clone());
        });
    }

    /// Lets new snapshots see what upkeep did to the tree: the same entries in fewer tables.
    fn refresh(&self) {
        if let Some(_writer) = self.writer.try_lock() {
            self.views.publish(|view| view.below = self.sequence.get());
        }
    }

    /// Only snapshots taken earlier still read `slot`: compaction may drop it.
    fn bury(&self, slot: SlotId) {
        self.dead.add(slot);
        self.upkeep.clear(slot);
    }

    /// Begins a new memtable if the active one is full; waits if upkeep lags behind.
    fn make_room(&self, writer: &mut WriterState) -> Result<()> {
        self.upkeep.pace(self);
        if self.tree.active_memtable().size() < MEMTABLE_BYTES {
            return Ok(());
        }
        self.upkeep.admit(self)?;
        let sealed = self.seal(writer)?;
        self.upkeep.flush(sealed);
        Ok(())
    }

    /// Ends the memtable and the log segment with the same entries; gives the segment's number. The memtable's last
    /// entry records the slots of that moment.
    fn seal(&self, writer: &mut WriterState) -> Result<u64> {
        let sealed = writer.log.rotate()?;
        let version = self.sequence.next();
        self.tree.insert(SLOTS_KEY, writer.slots.encode(version), version);
        self.tree.rotate_memtable();
        Ok(sealed)
    }
}

/// Refuses a tree whose list of tables is not the one it last wrote; `lsm_tree` does not check that itself.
///
/// `current` holds the list's number (8 bytes, little-endian), the XXH3-128 of the list (16 bytes), and a zero; the
/// list is in `vN`. After lsm-tree 3.1, `version/persist.rs`.
fn check_manifest(folder: &Path) -> Result<()> {
    let read = |name: &str| {
        fs::read(folder.join("tree").join(name)).map_err(|e| match e.kind() {
            ErrorKind::NotFound => damaged(folder, format!("tree/{name}"), "it is missing"),
            _ => unavailable("the list of tables cannot be read", e),
        })
    };
    let current = read("current")?;
    let Some((number, sum)) = current.split_first_chunk::<8>().filter(|(_, sum)| sum.len() == 17) else {
        let why = format!("it has {} bytes instead of 25", current.len());
        return Err(damaged(folder, "tree/current", why));
    };
    let list = format!("v{}", u64::from_le_bytes(*number));
    let expected = [&xxh3_128(&read(&list)?).to_le_bytes()[..], &[0]].concat();
    if *sum != expected {
        let why = "its bytes do not match the checksum in tree/current";
        return Err(damaged(folder, format!("tree/{list}"), why));
    }
    Ok(())
}

/// Applies a step to memtable and slots; gives the slot that it leaves unused, if any.
fn apply(tree: &AnyTree, slots: &mut Slots, version: u64, step: &LogOperation<'_>) -> Option<SlotId> {
    match *step {
        LogOperation::Put(keyspace, key, value) => {
            let slot = slots.get_or_take(keyspace);
            tree.insert(tree_key(slot.id, key), value, version);
            slot.count(1);
        }
        LogOperation::Delete(keyspace, key) => {
            if let Some(slot) = slots.get(keyspace).filter(|_| may_exist(key)) {
                tree.remove(tree_key(slot.id, key), version);
                slot.count(-1);
            }
        }
        LogOperation::Clear(keyspace) => return slots.remove(keyspace),
        LogOperation::TakeSlots(next) => slots.skip_to(next),
    }
    None
}

/// Translates an error of the tree.
fn explain(e: lsm_tree::Error) -> Error {
    use lsm_tree::Error as E;
    let why = match e {
        // If a file is too short, seeking from its end to before its start fails as invalid input.
        E::Io(e)
            if [ErrorKind::UnexpectedEof, ErrorKind::NotFound, ErrorKind::InvalidInput]
                .contains(&e.kind()) =>
        {
            return Error::damaged("a table file is missing or cut short", e.to_string()).caused_by(e);
        }
        E::Io(e) => return unavailable("a table file cannot be read or written", e),
        E::ChecksumMismatch { .. } => "the checksum of a block does not match its bytes",
        E::Decompress(_) => "a block cannot be decompressed",
        E::InvalidVersion(_) => "a file has an unknown format",
        E::Unrecoverable => "files that belong together are not all there",
        _ => "a block makes no sense",
    };
    Error::damaged("a table file is damaged", why).caused_by(e)
}
