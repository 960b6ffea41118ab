//! Bulk writes: sorted entries become tables directly, bypassing log and memtable.
//!
//! Entries gather in memory. A few of them are committed like a batch. When they become many, they are *staged*:
//! written as tables under slots that nobody reads yet, one for each keyspace. The commit then is one more table,
//! which enters the tree in one atomic step:
//!
//! - The staged slot of a keyspace that was empty becomes that keyspace's slot, without moving an entry.
//! - Entries and deletes staged for any other keyspace are copied into the table, under the keyspace's existing slot.
//! - The table also holds the new slots.
//!
//! A writer that is dropped leaves dead staged slots behind. They are not reused, because their numbers were taken in
//! the log first.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use lsm_tree::{AbstractTree, Guard, UserValue};
use parking_lot::MutexGuard;

use super::slots::{SLOT_BYTES, SLOTS_KEY, SlotId, Slots, tree_key};
use super::snapshot::walk;
use super::staging::StagingBuffer;
use super::{Shared, WriterState, explain};
use crate::error::Result;
use crate::key::KeyRange;
use crate::store::log::record::{self, LogOperation};
use crate::store::recent::Touched;
use crate::store::rules::{check_entry, may_exist};
use crate::store::{BulkWriter, KeyspaceId, Reads};

/// Size of gathered entries at which they are staged, in bytes.
const GATHERED_BYTES: usize = 64 * UNIT;

/// Size of a sorted run at which an out-of-order entry causes staging, in bytes.
const RUN_BYTES: usize = 8 * UNIT;

/// Size up to which entries are committed like a batch, in bytes.
const FEW_BYTES: usize = 2 * UNIT;

/// Small in tests, so that they see all three.
const UNIT: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };

pub(super) struct LsmBulk<'s> {
    shared: &'s Shared,
    /// Held to the end: there is no other writer meanwhile.
    writer: MutexGuard<'s, WriterState>,
    touched: Touched,
    gathered: StagingBuffer,
    staged: Staging<'s>,
    /// Puts minus deletes.
    more: HashMap<KeyspaceId, i64>,
}

/// The staged slots; when dropped, they are buried.
struct Staging<'s> {
    shared: &'s Shared,
    keyspaces: BTreeMap<KeyspaceId, StagedKeyspace>,
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        self.keyspaces.values().for_each(|staged| self.shared.bury(staged.slot));
    }
}

/// The staged entries of a keyspace.
struct StagedKeyspace {
    slot: SlotId,
    /// The keyspace was empty.
    is_first: bool,
}

impl<'s> LsmBulk<'s> {
    /// Waits for the writer lock and begins.
    pub(super) fn new(shared: &'s Shared) -> Self {
        LsmBulk {
            shared,
            writer: shared.writer.lock(),
            touched: Touched::default(),
            gathered: StagingBuffer::default(),
            staged: Staging { shared, keyspaces: BTreeMap::new() },
            more: HashMap::new(),
        }
    }
}

impl BulkWriter for LsmBulk<'_> {
    fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if !may_exist(key) {
            return Ok(None);
        }
        if let Some(gathered) = self.gathered.get(keyspace, key) {
            return Ok(gathered.map(<[u8]>::to_vec));
        }
        let found = |slot| self.shared.tree.get(tree_key(slot, key), u64::MAX).map_err(explain);
        if let Some(staged) = self.staged.keyspaces.get(&keyspace)
            && let Some(value) = found(staged.slot)?
        {
            let value = if staged.is_first { Some(value) } else { unstaged(&value) };
            return Ok(value.map(|value| value.to_vec()));
        }
        let own = self.writer.slots.get(keyspace).map(|slot| found(slot.id)).transpose()?;
        Ok(own.flatten().map(|value| value.to_vec()))
    }

    fn put(&mut self, keyspace: KeyspaceId, key: &[u8], value: &[u8]) -> Result<()> {
        check_entry(keyspace, key, value)?;
        self.touched.add(keyspace, key);
        *self.more.entry(keyspace).or_default() += 1;
        self.gather(keyspace, key, Some(value))
    }

    fn delete(&mut self, keyspace: KeyspaceId, key: &[u8]) -> Result<()> {
        if may_exist(key) {
            self.touched.add(keyspace, key);
            *self.more.entry(keyspace).or_default() -= 1;
            self.gather(keyspace, key, None)?;
        }
        Ok(())
    }

    fn folder(&self) -> Option<&Path> {
        Some(self.shared.directory.path())
    }

    fn check(&self, reads: &Reads) -> Result<()> {
        self.writer.recent.check(reads)
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        let version = if self.staged.keyspaces.is_empty() && self.gathered.bytes() <= FEW_BYTES {
            self.shared.make_room(&mut self.writer)?;
            let version = self.shared.sequence.next();
            self.shared.write(&mut self.writer, version, || self.gathered.steps())?;
            version
        } else {
            self.finish()?
        };
        self.writer.recent.record_touched(version, self.touched);
        Ok(())
    }
}

impl LsmBulk<'_> {
    /// Adds a change; stages what was gathered if that has become much, or this one is out of order.
    fn gather(&mut self, keyspace: KeyspaceId, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        if self.gathered.bytes() > RUN_BYTES && !self.gathered.follows(keyspace, key) {
            self.stage()?;
        }
        self.gathered.put(keyspace, key, value);
        if self.gathered.bytes() > GATHERED_BYTES { self.stage() } else { Ok(()) }
    }

    /// Writes the gathered entries into staged slots.
    fn stage(&mut self) -> Result<()> {
        self.shared.trust.check()?;
        let keyspaces: Vec<KeyspaceId> = self.gathered.keyspaces();
        let mut slots = self.writer.slots.clone();
        let mut new = Vec::new();
        for keyspace in keyspaces.iter().filter(|keyspace| !self.staged.keyspaces.contains_key(keyspace)) {
            let is_first = match self.writer.slots.get(*keyspace) {
                Some(slot) => self.stored(slot.id).next().is_none(),
                None => true,
            };
            new.push((*keyspace, StagedKeyspace { slot: slots.take(), is_first }));
        }
        if !new.is_empty() {
            // The slots are logged as taken before anything is stored under them. Snapshots see no change.
            let (version, next) = (self.shared.sequence.next(), slots.next());
            self.writer
                .log
                .append(|out| record::encode(out, version, std::iter::once(LogOperation::TakeSlots(next))))?;
            self.writer.slots.skip_to(next);
            self.staged.keyspaces.extend(new);
        }
        let staged = |keyspace| self.staged.keyspaces.get(keyspace).map(|staged| (staged, *keyspace));
        let mut by_slot: Vec<_> = keyspaces.iter().filter_map(staged).collect();
        by_slot.sort_unstable_by_key(|(staged, _)| staged.slot);
        // Ingestion also flushes the memtable to a table; its entries must not be on the disk before their log
        // records.
        self.writer.log.flush()?;
        let failed = |e| self.shared.distrust(e);
        let mut table = self.shared.tree.ingestion().map_err(failed)?;
        for (StagedKeyspace { slot, is_first }, keyspace) in by_slot {
            for (key, value) in self.gathered.entries(keyspace) {
                let key = tree_key(*slot, key);
                match value {
                    Some(value) if *is_first => table.write(key, value),
                    None if *is_first => table.write_tombstone(key),
                    value => table.write(key, staged_value(value)),
                }
                .map_err(failed)?;
            }
        }
        table.finish().map_err(failed)?;
        self.gathered = StagingBuffer::default();
        Ok(())
    }

    /// All entries now in a slot.
    fn stored(&self, slot: SlotId) -> impl Iterator<Item = Result<(Vec<u8>, UserValue)>> {
        let entries = walk(self.shared, slot, &KeyRange::all(), u64::MAX);
        entries.into_iter().flatten().map(|entry| {
            let (key, value) = entry.into_inner().map_err(explain)?;
            Ok((key[SLOT_BYTES..].to_vec(), value))
        })
    }

    /// Writes the last table, which makes everything durable; gives its version.
    fn finish(&mut self) -> Result<u64> {
        // If anything is staged, everything has to be.
        if !self.staged.keyspaces.is_empty() && self.gathered.bytes() > 0 {
            self.stage()?;
        }
        let LastSlots { slots, targets, buried } = self.last_slots();
        let version = self.shared.sequence.next();
        self.write_last(&slots, version, targets)?;
        self.writer.slots = slots;
        self.shared.rows.forget_all(version);
        self.shared.publish(version, Some(&self.writer.slots));
        self.staged.keyspaces.clear();
        buried.into_iter().for_each(|slot| self.shared.bury(slot));
        // All of the log is in tables now.
        if self.writer.log.bytes() > super::LEFT_BYTES
            && let Ok(sealed) = self.shared.seal(&mut self.writer)
        {
            self.shared.upkeep.flush(sealed);
        }
        self.shared.upkeep.merge();
        Ok(version)
    }

    /// The slots as they will be, with the new numbers of entries.
    fn last_slots(&self) -> LastSlots {
        let mut slots = self.writer.slots.clone();
        let (mut targets, mut buried) = (Vec::new(), Vec::new());
        let mut keyspaces = self.gathered.keyspaces();
        keyspaces.extend(self.staged.keyspaces.keys());
        keyspaces.sort_unstable();
        keyspaces.dedup();
        for keyspace in keyspaces {
            let more = self.more.get(&keyspace).copied().unwrap_or(0);
            let staged = self.staged.keyspaces.get(&keyspace);
            if let Some(staged) = staged.filter(|staged| staged.is_first) {
                buried.extend(slots.set(keyspace, staged.slot, more.max(0) as u64));
                targets.push(Target { slot: staged.slot, staged: None, keyspace });
            } else {
                let staged = staged.map(|staged| staged.slot);
                buried.extend(staged);
                let old = slots.get_or_take(keyspace);
                let (slot, entries) = (old.id, old.entries().saturating_add_signed(more));
                // A new counter, so that snapshots with the old slots do not see the new count.
                slots.set(keyspace, slot, entries);
                targets.push(Target { slot, staged, keyspace });
            }
        }
        targets.sort_unstable_by_key(|target| target.slot);
        LastSlots { slots, targets, buried }
    }

    /// Writes the slots, and the entries that are not in the tree yet or under a staged slot.
    fn write_last(&mut self, slots: &Slots, version: u64, targets: Vec<Target>) -> Result<()> {
        self.shared.trust.check()?;
        self.writer.log.flush()?;
        let failed = |e| self.shared.distrust(e);
        let mut table = self.shared.tree.ingestion().map_err(failed)?;
        table.write(SLOTS_KEY, slots.encode(version)).map_err(failed)?;
        for Target { slot, staged, keyspace } in targets {
            let mut write = |key: &[u8], value: Option<UserValue>| match value {
                Some(value) => table.write(tree_key(slot, key), value).map_err(failed),
                None => table.write_tombstone(tree_key(slot, key)).map_err(failed),
            };
            // Only one of the two loops has entries: if anything was staged, everything was.
            for entry in staged.into_iter().flat_map(|slot| self.stored(slot)) {
                let (key, value) = entry?;
                write(&key, unstaged(&value))?;
            }
            for (key, value) in self.gathered.entries(keyspace) {
                write(key, value.map(UserValue::from))?;
            }
        }
        table.finish().map_err(failed)
    }
}

/// What the last table makes of the slots.
struct LastSlots {
    slots: Slots,
    /// By slot.
    targets: Vec<Target>,
    /// Slots that nothing refers to any more.
    buried: Vec<SlotId>,
}

/// Where the entries of a keyspace go.
struct Target {
    slot: SlotId,
    /// The staged slot that they are copied from.
    staged: Option<SlotId>,
    keyspace: KeyspaceId,
}

/// A staged value of a keyspace that has entries: 1 and the value, or 0 for a delete.
fn staged_value(value: Option<&[u8]>) -> Vec<u8> {
    value.map_or_else(|| vec![0], |value| [&[1], value].concat())
}

/// The value in a staged one; `None`: a delete.
fn unstaged(value: &UserValue) -> Option<UserValue> {
    (value.first() == Some(&1)).then(|| UserValue::from(&value[1..]))
}
