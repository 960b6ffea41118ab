//! The read side of the LSM engine: snapshots by sequence number.
//!
//! A snapshot is a sequence number and the slots of its moment. The tree keeps the tables and memtables that a
//! snapshot reads for as long as it is among the [`Views`].

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use lsm_tree::{AbstractTree, Guard, IterGuardImpl, KvPair, UserKey, UserValue};
use parking_lot::Mutex;

use super::slots::{SLOT_BYTES, SlotId, Slots, tree_key};
use super::{Shared, explain};
use crate::error::Result;
use crate::key::{End, KeyRange};
use crate::store::lent::Lent;
use crate::store::rules::may_exist;
use crate::store::{Cursor, Direction, Entry, KEY_BYTES_MAX, KeyspaceId, Reader, Snapshot, one_or_none};

/// The newest view, and the open snapshots.
pub(super) struct Views(Mutex<State>);

struct State {
    newest: LsmView,
    /// Number of open snapshots by the sequence number they read below.
    open: BTreeMap<u64, usize>,
}

/// One moment of the store.
#[derive(Clone)]
pub(super) struct LsmView {
    pub(super) version: u64,
    /// Sequence numbers below this one are visible: those of commits, and of what upkeep did to the tree since.
    pub(super) below: u64,
    pub(super) slots: Arc<Slots>,
}

impl Views {
    pub(super) fn new(newest: LsmView) -> Views {
        Views(Mutex::new(State { newest, open: BTreeMap::new() }))
    }

    /// Makes a change visible. Only the writer calls it.
    pub(super) fn publish(&self, change: impl FnOnce(&mut LsmView)) {
        change(&mut self.0.lock().newest);
    }

    fn open(&self) -> LsmView {
        let mut state = self.0.lock();
        let view = state.newest.clone();
        *state.open.entry(view.below).or_default() += 1;
        view
    }

    fn close(&self, view: &LsmView) {
        let mut state = self.0.lock();
        if let Some(readers) = state.open.get_mut(&view.below) {
            *readers -= 1;
            if *readers == 0 {
                state.open.remove(&view.below);
            }
        }
    }

    /// The sequence number below which the oldest open snapshot reads, or a new one would.
    pub(super) fn oldest(&self) -> u64 {
        let state = self.0.lock();
        state.open.keys().next().copied().unwrap_or(u64::MAX).min(state.newest.below)
    }
}

/// A stable view.
pub(super) struct LsmSnapshot {
    view: LsmView,
    shared: Arc<Shared>,
}

impl LsmSnapshot {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        LsmSnapshot { view: shared.views.open(), shared: shared.clone() }
    }
}

impl Drop for LsmSnapshot {
    fn drop(&mut self) {
        self.shared.views.close(&self.view);
    }
}

impl Snapshot for LsmSnapshot {
    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(LsmReader { snapshot: self, lent: Lent::default() }))
    }

    fn version(&self) -> u64 {
        self.view.version
    }
}

struct LsmReader<'s> {
    snapshot: &'s LsmSnapshot,
    lent: Lent<UserValue>,
}

impl LsmReader<'_> {
    fn slot(&self, keyspace: KeyspaceId) -> Option<SlotId> {
        self.snapshot.view.slots.get(keyspace).map(|slot| slot.id)
    }

    fn walk(&self, slot: SlotId, range: &KeyRange) -> Option<EntryIterator> {
        walk(&self.snapshot.shared, slot, range, self.snapshot.view.below)
    }
}

impl Reader for LsmReader<'_> {
    fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<&[u8]>> {
        let Some(slot) = self.slot(keyspace).filter(|_| may_exist(key)) else {
            return Ok(None);
        };
        let LsmSnapshot { view, shared } = self.snapshot;
        let kept = shared.rows.get(slot, key, view.below);
        let value = match kept {
            Some(value) => Some(value),
            None => shared.tree.get(tree_key(slot, key), view.below).map_err(explain)?.inspect(|value| {
                shared.rows.keep(slot, key, value, view.below);
            }),
        };
        Ok(value.map(|value| &**self.lent.lend(value)))
    }

    fn cursor<'a>(
        &'a self,
        keyspace: KeyspaceId,
        range: &KeyRange,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + 'a>> {
        let entries = self.slot(keyspace).and_then(|slot| self.walk(slot, range));
        Ok(Box::new(LsmCursor { entries, direction, last: KvPair::default() }))
    }

    /// Puts minus deletes, so too high if a key was written twice; 0 only if there are no entries.
    fn entries(&self, keyspace: KeyspaceId) -> Result<u64> {
        let Some(slot) = self.snapshot.view.slots.get(keyspace) else { return Ok(0) };
        match slot.entries() {
            0 => one_or_none(self, keyspace),
            entries => Ok(entries),
        }
    }

    /// The tree does not read what it overwrites, so it cannot count.
    fn count(&self, _: KeyspaceId) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Nothing to do: tables have checksums, and are never rewritten in place, so none can be stale.
    fn verify(&self, _: KeyspaceId, _: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        Ok(())
    }
}

pub(super) type EntryIterator = Box<dyn DoubleEndedIterator<Item = IterGuardImpl> + Send>;

/// The entries of a slot in `range` below a sequence number; `None` if there cannot be any.
pub(super) fn walk(shared: &Shared, slot: SlotId, range: &KeyRange, below: u64) -> Option<EntryIterator> {
    // Longer bounds can be cut, since no key is that long; the tree accepts no keys above 64 KiB.
    let cut = |key: &[u8]| tree_key(slot, &key[..key.len().min(KEY_BYTES_MAX + 1)]);
    let start: UserKey = cut(&range.start);
    let end = match &range.end {
        End::Before(key) => cut(key),
        End::Open => tree_key(slot + 1, &[]),
    };
    (start < end).then(|| shared.tree.range((Bound::Included(start), Bound::Excluded(end)), below, None))
}

struct LsmCursor {
    /// `None` after the end.
    entries: Option<EntryIterator>,
    direction: Direction,
    /// The entry that is lent.
    last: KvPair,
}

impl Cursor for LsmCursor {
    fn next(&mut self) -> Result<Option<Entry<'_>>> {
        let Some(entries) = &mut self.entries else { return Ok(None) };
        let step = match self.direction {
            Direction::Forward => entries.next(),
            Direction::Reverse => entries.next_back(),
        };
        let Some(entry) = step else {
            self.entries = None;
            return Ok(None);
        };
        self.last = entry.into_inner().map_err(explain)?;
        Ok(Some((&self.last.0[SLOT_BYTES..], &self.last.1)))
    }
}
