//! Checks the pages that LMDB will read in order to write, because LMDB trusts its pages.
//!
//! A put reads the pages from the root to a leaf; a delete also those of the two neighbour leaves, with which the
//! leaf may be merged. A delete that empties several leaves occasionally reads one further page, which is not
//! checked. Pages that the transaction itself has written are in memory and need no check.

use std::collections::{BTreeSet, HashSet};

use super::Tree;
use super::aside::whose;
use super::btree::{Btree, BtreePosition};
use super::map::Pages;
use super::tally::Tally;
use super::view::{Trees, trees};
use crate::error::Result;
use crate::store::{Direction, Entry, KeyspaceId};

/// The tree as it was when a write transaction began, and what was checked of it.
pub(super) struct Vet<'t> {
    pages: Pages<'t>,
    trees: Trees,
    /// Pages already checked.
    seen: HashSet<u64>,
    last: Option<CheckedLeaf<'t>>,
    /// Keyspaces whose last leaf was checked.
    ends: HashSet<KeyspaceId>,
}

/// What LMDB is about to do with a key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Deed {
    /// Reads the leaf.
    Put,
    /// Reads the neighbour leaves as well.
    Delete,
}

/// A leaf that was checked, with the separators around its keys.
struct CheckedLeaf<'t> {
    keyspace: KeyspaceId,
    place: BtreePosition<'t>,
    from: Option<&'t [u8]>,
    to: Option<&'t [u8]>,
    deed: Deed,
}

/// The entries that a keyspace had when a transaction began, in order. They can be read until it ends, even if their
/// pages are freed.
pub(super) struct OldEntries<'t> {
    place: Option<BtreePosition<'t>>,
    /// The next one, its value sealed.
    next: Option<Entry<'t>>,
}

impl<'t> OldEntries<'t> {
    /// Shows the entries before `key`, and passes the one under it.
    pub(super) fn pass_to(
        &mut self,
        key: &[u8],
        mut show: impl FnMut(&'t [u8], &'t [u8]) -> Result<()>,
    ) -> Result<()> {
        while let Some((here, sealed)) = self.next.filter(|(here, _)| *here <= key) {
            if here < key {
                show(here, sealed)?;
            }
            self.advance()?;
        }
        Ok(())
    }

    /// Shows all that are left.
    pub(super) fn pass_rest(self, mut show: impl FnMut(&'t [u8], &'t [u8]) -> Result<()>) -> Result<()> {
        let Some((key, sealed)) = self.next else { return Ok(()) };
        show(key, sealed)?;
        let Some(mut place) = self.place else { return Ok(()) };
        place.walk(Direction::Forward, |key, sealed| show(key, sealed).map(|()| true)).map(|_| ())
    }

    fn advance(&mut self) -> Result<()> {
        self.next = None;
        let Some(place) = &mut self.place else { return Ok(()) };
        place.walk(Direction::Forward, |key, sealed| {
            self.next = Some((key, sealed));
            Ok(false)
        })?;
        Ok(())
    }
}

impl<'t> Vet<'t> {
    /// `number`: the last committed transaction.
    pub(super) fn new(tree: &'t Tree, number: u64) -> Result<Vet<'t>> {
        let (pages, trees) = trees(tree, number)?;
        Ok(Vet { pages, trees, seen: HashSet::new(), last: None, ends: HashSet::new() })
    }

    /// The trees as they were.
    pub(super) fn trees(&self) -> &Trees {
        &self.trees
    }

    /// Checks the pages that LMDB will read. Errors: `Corrupt`, naming page and keyspace, when it must not read them.
    pub(super) fn before(&mut self, keyspace: KeyspaceId, key: &[u8], deed: Deed) -> Result<()> {
        let is_seen = |seen: &CheckedLeaf<'_>| {
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
        self.last = Some(CheckedLeaf { keyspace, place, from, to, deed });
        Ok(())
    }

    /// The value, sealed, that `key` had when the transaction began; to be asked after [`Vet::before`] of that key.
    pub(super) fn committed(&mut self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<&'t [u8]>> {
        match &mut self.last {
            Some(leaf) if leaf.keyspace == keyspace => leaf.place.sealed_here(key),
            _ => Ok(None),
        }
    }

    /// The same before an append behind all other keys.
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

    /// The same before all pages of a keyspace are freed. Gives the tally of its entries, if it had any.
    pub(super) fn before_clear(&self, keyspace: KeyspaceId) -> Result<Option<Tally>> {
        self.tree(keyspace).map(Btree::check_pages).transpose()
    }

    /// The entries that a keyspace had when the transaction began.
    pub(super) fn entries_of(&self, keyspace: KeyspaceId) -> Result<OldEntries<'t>> {
        let mut old = OldEntries { place: self.tree(keyspace).map(Btree::start).transpose()?, next: None };
        old.advance()?;
        Ok(old)
    }

    /// The keyspace's old pages are no longer used. Gives how many of its trees were given up before.
    pub(super) fn forget(&mut self, keyspace: KeyspaceId) -> usize {
        self.last.take_if(|leaf| leaf.keyspace == keyspace);
        self.trees.remove(&keyspace).map_or(0, |root| root.given_up)
    }

    /// Held keyspaces: those with changes kept beside them.
    pub(super) fn held(&self) -> BTreeSet<KeyspaceId> {
        self.trees.iter().filter(|(_, root)| root.entries > 0).filter_map(|(id, _)| whose(*id)).collect()
    }

    /// Entries (count) that a keyspace had when the transaction began.
    pub(super) fn entries(&self, keyspace: KeyspaceId) -> u64 {
        self.trees.get(&keyspace).map_or(0, |root| root.entries)
    }

    /// The tree as it was; `None` if it was empty or is created by this transaction.
    fn tree(&self, keyspace: KeyspaceId) -> Option<Btree<'t>> {
        let root = *self.trees.get(&keyspace)?;
        root.page.map(|_| Btree { pages: self.pages, keyspace, root, last_leaves: None })
    }
}
