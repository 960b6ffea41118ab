//! Reads: a snapshot of the tree, overlaid with the memtables above it.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::Arc;

use super::memtable::{FoundEntry, Memtable};
use super::tree::{TreeReader, TreeView, aside};
use crate::error::{Error, Result};
use crate::key::KeyRange;
use crate::store::lent::Lent;
use crate::store::{
    ChangeCursor, Cursor, Direction, KeyspaceId, Merge, Reader, Snapshot, WriteBatch, one_or_none,
};

/// An estimate counts at most this many changes (count) of a range per memtable.
const COUNTED: usize = 200;

/// The state of the store as of a version.
#[derive(Clone)]
pub(super) struct StoreState {
    pub(super) version: u64,
    /// The memtable that is written to.
    pub(super) active: Arc<Memtable>,
    /// The memtable on its way into the tree, and the log segment that has its entries too.
    pub(super) sealed: Option<(Arc<Memtable>, u64)>,
    /// The changes that the tree keeps beside damaged keyspaces.
    pub(super) held: Arc<Memtable>,
    /// The tree below.
    pub(super) view: Arc<TreeView>,
}

impl Snapshot for StoreState {
    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(EmbeddedReader { state: self, tree: self.view.reader(), lent: OnceCell::new() }))
    }

    fn version(&self) -> u64 {
        self.version
    }
}

impl StoreState {
    /// The non-empty memtables, newest first.
    fn memtables(&self) -> impl Iterator<Item = &Memtable> {
        let sealed = self.sealed.as_ref().map(|(sealed, _)| sealed);
        std::iter::once(&self.active)
            .chain(sealed)
            .chain(std::iter::once(&self.held))
            .map(|memtable| &**memtable)
            .filter(|memtable| !memtable.is_empty())
    }

    /// Errors: `Corrupt`, naming the keyspace, when a batch writes into a held keyspace without clearing it first.
    pub(super) fn check_held(&self, batch: &WriteBatch) -> Result<()> {
        let mut cleared = HashSet::new();
        for mutation in batch.mutations.iter().filter(|_| !self.held.is_empty()) {
            let keyspace = mutation.keyspace();
            if mutation.change().is_none() {
                cleared.insert(keyspace);
            } else if self.held.more(keyspace).is_some() && !cleared.contains(&keyspace) {
                return Err(aside::refused(keyspace));
            }
        }
        Ok(())
    }

    /// The memtables with entries of a keyspace, newest first.
    fn memtables_of(&self, keyspace: KeyspaceId) -> impl Iterator<Item = &Memtable> {
        self.memtables().filter(move |memtable| memtable.more(keyspace).is_some())
    }
}

struct EmbeddedReader<'s> {
    state: &'s StoreState,
    tree: TreeReader<'s>,
    /// Keeps alive the entries whose values were lent; made on first use.
    lent: OnceCell<Box<Lent<FoundEntry<'s>>>>,
}

impl EmbeddedReader<'_> {
    /// The newest change of a key in the memtables, which may be a deletion; `None` if there is none.
    fn in_memtables(&self, keyspace: KeyspaceId, key: &[u8]) -> Option<Option<&[u8]>> {
        let version = self.state.version;
        let found = self.state.memtables().find_map(|memtable| memtable.get(keyspace, key, version))?;
        Some(self.lent.get_or_init(Box::default).lend(found).value())
    }
}

impl Reader for EmbeddedReader<'_> {
    fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<&[u8]>> {
        match self.in_memtables(keyspace, key) {
            Some(value) => Ok(value),
            None => self.tree.get(keyspace, key),
        }
    }

    fn get_many(&self, keyspace: KeyspaceId, keys: &[&[u8]]) -> Result<Vec<Option<&[u8]>>> {
        if self.state.memtables_of(keyspace).next().is_none() {
            return self.tree.get_many(keyspace, keys);
        }
        let newest: Vec<_> = keys.iter().map(|key| self.in_memtables(keyspace, key)).collect();
        let older: Vec<&[u8]> =
            keys.iter().zip(&newest).filter(|(_, found)| found.is_none()).map(|(key, _)| *key).collect();
        let mut older = self.tree.get_many(keyspace, &older)?.into_iter();
        Ok(newest.into_iter().map(|found| found.unwrap_or_else(|| older.next().flatten())).collect())
    }

    fn cursor<'a>(
        &'a self,
        keyspace: KeyspaceId,
        range: &KeyRange,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + 'a>> {
        let mut cursor = self.tree.cursor(keyspace, range, direction)?;
        let mut memtables: Vec<&Memtable> = self.state.memtables_of(keyspace).collect();
        if !range.is_empty() {
            // From the oldest to the newest.
            while let Some(memtable) = memtables.pop() {
                let changes = memtable.changes(keyspace, range, direction, self.state.version);
                cursor = Box::new(Merge::new(Some(cursor), changes, direction));
            }
        }
        Ok(cursor)
    }

    /// Off by memtable puts that overwrite a key and deletes that find none; 0 only if there are no entries.
    fn entries(&self, keyspace: KeyspaceId) -> Result<u64> {
        let in_tree = self.tree.entries(keyspace);
        let more = self.state.memtables().filter_map(|memtable| memtable.more(keyspace));
        let Some(more) = more.reduce(|a, b| a + b) else { return Ok(in_tree) };
        match in_tree.saturating_add_signed(more) {
            0 => one_or_none(self, keyspace),
            entries => Ok(entries),
        }
    }

    /// Off by memtable puts that overwrite a key and deletes that find none.
    fn estimate(&self, keyspace: KeyspaceId, range: &KeyRange) -> Result<Option<u64>> {
        let mut more = 0;
        for memtable in self.state.memtables_of(keyspace) {
            let mut changes = memtable.changes(keyspace, range, Direction::Forward, self.state.version);
            for n in 0.. {
                let Some((_, value)) = changes.peek() else { break };
                if n == COUNTED {
                    return Ok(None);
                }
                more += if value.is_some() { 1 } else { -1 };
                changes.advance();
            }
        }
        Ok(Some(self.tree.estimate(keyspace, range)?.saturating_add_signed(more)))
    }

    /// LMDB keeps a count; each key in a memtable is looked up in the tree to correct it.
    fn count(&self, keyspace: KeyspaceId) -> Result<Option<u64>> {
        let count = self.tree.count(keyspace)?;
        let mut more: i64 = 0;
        let memtables: Vec<&Memtable> = self.state.memtables_of(keyspace).collect();
        let version = self.state.version;
        for (n, memtable) in memtables.iter().enumerate() {
            let mut changes = memtable.changes(keyspace, &KeyRange::all(), Direction::Forward, version);
            let mut counted = 0;
            while let Some((key, value)) = changes.peek() {
                let is_newest =
                    memtables[..n].iter().all(|newer| newer.get(keyspace, key, version).is_none());
                if is_newest {
                    let was_there = self.tree.get(keyspace, key)?.is_some();
                    more += i64::from(value.is_some()) - i64::from(was_there);
                }
                counted += 1;
                changes.advance();
            }
            memtable.pass(counted);
        }
        let counted = count.checked_add_signed(more);
        counted
            .map(Some)
            .ok_or_else(|| Error::damaged("the data file is damaged", "it counts fewer entries than it has"))
    }

    /// Only the tree: what is in memtables was never on a page.
    fn verify(&self, keyspace: KeyspaceId, watch: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        self.tree.verify(keyspace, watch)
    }
}
