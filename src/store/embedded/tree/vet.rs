//! What LMDB will read in order to write is looked at first, for it trusts its pages.
//!
//! A put reads the pages from the root to a leaf, and a delete those of the leaves beside it, too, which may take over
//! what is left of it. A delete that empties several of them reads one further now and then, which is not looked at.
//! Pages that the transaction has written itself are no damage of a disk's.

use std::collections::{BTreeSet, HashSet};

use super::Tree;
use super::aside::whose;
use super::btree::Btree;
use super::map::Pages;
use super::tally::Tally;
use super::view::{Trees, trees};
use crate::error::Result;
use crate::store::KeyspaceId;

/// The tree as it was when a write transaction began.
pub(super) struct Vet<'t> {
    pages: Pages<'t>,
    trees: Trees,
    /// Pages that were looked at.
    seen: HashSet<u64>,
    last: Option<Seen<'t>>,
    /// Keyspaces whose end was looked at.
    ends: HashSet<KeyspaceId>,
}

/// What LMDB is about to do with a key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Deed {
    /// It reads the leaf.
    Put,
    /// It reads the neighbours as well.
    Delete,
}

/// A leaf that was looked at, by the keys that belong there.
struct Seen<'t> {
    keyspace: KeyspaceId,
    from: Option<&'t [u8]>,
    to: Option<&'t [u8]>,
    deed: Deed,
}

impl<'t> Vet<'t> {
    /// `number`: of the last transaction that was committed.
    pub(super) fn new(tree: &'t Tree, number: u64) -> Result<Vet<'t>> {
        let (pages, trees) = trees(tree, number)?;
        Ok(Vet { pages, trees, seen: HashSet::new(), last: None, ends: HashSet::new() })
    }

    /// Errors: `Corrupt`, naming page and keyspace, when LMDB had better leave this alone.
    pub(super) fn before(&mut self, keyspace: KeyspaceId, key: &[u8], deed: Deed) -> Result<()> {
        let is_seen = |seen: &Seen<'_>| {
            seen.keyspace == keyspace
                && seen.deed >= deed
                && seen.from.is_none_or(|from| key >= from)
                && seen.to.is_none_or(|to| key < to)
        };
        if self.last.as_ref().is_some_and(is_seen) {
            return Ok(());
        }
        let Some(tree) = self.tree(keyspace) else { return Ok(()) };
        let mut place = tree.seek(key)?;
        let (from, to) = place.vet(&mut self.seen, deed == Deed::Delete)?;
        self.last = Some(Seen { keyspace, from, to, deed });
        Ok(())
    }

    /// The same before something is put behind all other keys.
    pub(super) fn before_append(&mut self, keyspace: KeyspaceId) -> Result<()> {
        if self.ends.contains(&keyspace) {
            return Ok(());
        }
        if let Some(tree) = self.tree(keyspace) {
            tree.end()?.vet(&mut self.seen, false)?;
        }
        self.ends.insert(keyspace);
        Ok(())
    }

    /// The same before all pages of a keyspace are given back: what its entries add up to, if it had any.
    pub(super) fn before_clear(&self, keyspace: KeyspaceId) -> Result<Option<Tally>> {
        self.tree(keyspace).map(Btree::check_pages).transpose()
    }

    /// Nothing that this keyspace had is there any more. Gives how many of its trees were given up before.
    pub(super) fn forget(&mut self, keyspace: KeyspaceId) -> usize {
        self.trees.remove(&keyspace).map_or(0, |root| root.given_up)
    }

    /// Keyspaces with changes beside them.
    pub(super) fn held(&self) -> BTreeSet<KeyspaceId> {
        self.trees.iter().filter(|(_, root)| root.entries > 0).filter_map(|(id, _)| whose(*id)).collect()
    }

    /// Entries that a keyspace had.
    pub(super) fn entries(&self, keyspace: KeyspaceId) -> u64 {
        self.trees.get(&keyspace).map_or(0, |root| root.entries)
    }

    /// What is created later has no pages of before.
    fn tree(&self, keyspace: KeyspaceId) -> Option<Btree<'t>> {
        let root = *self.trees.get(&keyspace)?;
        root.page.map(|_| Btree { pages: self.pages, keyspace, root })
    }
}
