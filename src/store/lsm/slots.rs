//! Slots: the key prefixes that separate keyspaces within the one LSM tree.
//!
//! All keyspaces live in one tree, so that a batch over several of them is one step. Each has a *slot*, a number that
//! its keys begin with, four bytes, big-endian. A slot is never reused: a keyspace that is cleared loses its slot,
//! and the entries there are garbage that compaction removes ([`Dead`]).
//!
//! Slot 0 holds one entry, whose key is just the slot number: the slots themselves, as of some version.
//!
//! | bytes | holds, little-endian |
//! |---|---|
//! | 8 | the version |
//! | 4 | the next slot to give out |
//! | 16 each | keyspace (4), slot (4), number of entries (8), ordered by keyspace |

use std::collections::{BTreeMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lsm_tree::UserKey;
use lsm_tree::compaction::filter::Context;
use lsm_tree::compaction::{CompactionFilter, Factory, ItemAccessor, Verdict};
use parking_lot::RwLock;

use crate::store::KeyspaceId;

/// Number of a slot.
pub(super) type SlotId = u32;

/// Length of the slot number before each key.
pub(super) const SLOT_BYTES: usize = 4;

/// The key of the entry that holds the slots.
pub(super) const SLOTS_KEY: [u8; SLOT_BYTES] = [0; SLOT_BYTES];

/// The slot of a keyspace, and its number of entries.
pub(super) struct Slot {
    pub(super) id: SlotId,
    /// Puts minus deletes since the last exact count: exact if no key was written twice.
    entries: AtomicU64,
}

impl Slot {
    pub(super) fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Load and store need not be atomic together: there is only one writer.
    pub(super) fn count(&self, more: i64) {
        self.entries.store(self.entries().saturating_add_signed(more), Ordering::Relaxed);
    }
}

/// The slot of each keyspace that has entries.
#[derive(Clone)]
pub(super) struct Slots {
    slots: BTreeMap<KeyspaceId, Arc<Slot>>,
    next: SlotId,
}

impl Default for Slots {
    fn default() -> Self {
        Slots { slots: BTreeMap::new(), next: 1 }
    }
}

impl Slots {
    pub(super) fn get(&self, keyspace: KeyspaceId) -> Option<&Arc<Slot>> {
        self.slots.get(&keyspace)
    }

    /// The keyspace's slot; takes a new one if it has none.
    pub(super) fn get_or_take(&mut self, keyspace: KeyspaceId) -> &Arc<Slot> {
        if !self.slots.contains_key(&keyspace) {
            let id = self.take();
            self.set(keyspace, id, 0);
        }
        &self.slots[&keyspace]
    }

    /// Takes the next slot.
    pub(super) fn take(&mut self) -> SlotId {
        self.next += 1;
        self.next - 1
    }

    /// The slot that will be taken next.
    pub(super) fn next(&self) -> SlotId {
        self.next
    }

    /// Takes all slots before `next`.
    pub(super) fn skip_to(&mut self, next: SlotId) {
        self.next = self.next.max(next);
    }

    /// Gives the keyspace a slot; gives its old one.
    pub(super) fn set(&mut self, keyspace: KeyspaceId, id: SlotId, entries: u64) -> Option<SlotId> {
        let slot = Slot { id, entries: entries.into() };
        self.slots.insert(keyspace, Arc::new(slot)).map(|old| old.id)
    }

    /// Removes the keyspace's slot, and gives it.
    pub(super) fn remove(&mut self, keyspace: KeyspaceId) -> Option<SlotId> {
        self.slots.remove(&keyspace).map(|slot| slot.id)
    }

    pub(super) fn encode(&self, version: u64) -> Vec<u8> {
        let mut bytes = version.to_le_bytes().to_vec();
        bytes.extend(self.next.to_le_bytes());
        for (keyspace, slot) in &self.slots {
            bytes.extend(keyspace.0.to_le_bytes());
            bytes.extend(slot.id.to_le_bytes());
            bytes.extend(slot.entries().to_le_bytes());
        }
        bytes
    }

    /// The slots, and their version.
    pub(super) fn decode(bytes: &[u8]) -> Option<(Slots, u64)> {
        let (version, bytes) = bytes.split_first_chunk::<8>()?;
        let (next, bytes) = bytes.split_first_chunk::<4>()?;
        let (entries, []) = bytes.as_chunks::<16>() else { return None };
        let mut slots = Slots { next: u32::from_le_bytes(*next), ..Slots::default() };
        for entry in entries {
            let (keyspace, entry) = entry.split_first_chunk::<4>()?;
            let (id, entries) = entry.split_first_chunk::<4>()?;
            let entries = u64::from_le_bytes(*entries.first_chunk()?);
            slots.set(KeyspaceId(u32::from_le_bytes(*keyspace)), u32::from_le_bytes(*id), entries);
        }
        Some((slots, u64::from_le_bytes(*version)))
    }
}

/// `key` as it is in the tree.
pub(super) fn tree_key(slot: SlotId, key: &[u8]) -> UserKey {
    let mut bytes = Vec::with_capacity(SLOT_BYTES + key.len());
    bytes.extend(slot.to_be_bytes());
    bytes.extend(key);
    bytes.into()
}

/// Slots that no new snapshot reads. Compaction removes their entries; older snapshots that still read them keep the
/// previous tables. A panic while it is locked leaves it valid: slots are only ever added.
#[derive(Clone, Default)]
pub(super) struct Dead(Arc<AssertUnwindSafe<RwLock<DeadSlots>>>);

#[derive(Clone, Default)]
struct DeadSlots {
    /// Slots below this were dead when the database was opened, unless they are in `alive_at_open`.
    known_below: SlotId,
    alive_at_open: HashSet<SlotId>,
    /// Those that died later.
    buried: HashSet<SlotId>,
}

impl Dead {
    /// Marks all slots dead except those in use when the database is opened.
    pub(super) fn all_but(&self, slots: &Slots) {
        let mut dead = self.0.write();
        dead.known_below = slots.next;
        dead.alive_at_open = slots.slots.values().map(|slot| slot.id).chain([0]).collect();
    }

    pub(super) fn add(&self, slot: SlotId) {
        self.0.write().buried.insert(slot);
    }
}

impl Factory for Dead {
    fn name(&self) -> &str {
        "slots that nobody reads"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        // A dead slot never comes back to life, so a copy stays right for as long as the compaction takes.
        Box::new(self.0.read().clone())
    }
}

impl CompactionFilter for DeadSlots {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> lsm_tree::Result<Verdict> {
        let Some(slot) = item.key().first_chunk::<SLOT_BYTES>() else { return Ok(Verdict::Keep) };
        let slot = SlotId::from_be_bytes(*slot);
        let is_dead =
            slot < self.known_below && !self.alive_at_open.contains(&slot) || self.buried.contains(&slot);
        Ok(if is_dead { Verdict::Destroy } else { Verdict::Keep })
    }
}
