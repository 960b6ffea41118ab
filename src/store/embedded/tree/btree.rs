//! One keyspace of one moment, searched and walked in mapped memory, page by page.
//!
//! LMDB's own search trusts what it reads: a flipped bit may lead it out of the map, which ends the process, or past an
//! entry that is there. This one trusts nothing, and proves what it does not find.
//!
//! # What is proved
//!
//! A value's checksum covers its keyspace and key ([`seal`](super::seal)), so an entry that is given is right. That
//! nothing lies between two places is shown by the entries around: two neighbours of one leaf whose checksums hold,
//! and the order of the entries next to them, for an offset that points at another node shows there. What no two
//! neighbours enclose ends a leaf; then the leaf must be whole, the branches above it must be, and all keys of the next
//! leaf must lie between the separators that led there. An entry is given once its order to the one behind it is seen.

use std::cmp::Ordering;

use super::map::Pages;
use super::meta::Root;
use super::page::{Page, Stored};
use super::seal::unseal;
use crate::error::{Error, Result};
use crate::key::hex;
use crate::store::{Direction, Entry, KeyspaceId};

/// A keyspace as it was.
#[derive(Clone, Copy)]
pub(super) struct Btree<'m> {
    pub(super) pages: Pages<'m>,
    pub(super) keyspace: KeyspaceId,
    pub(super) root: Root,
}

impl<'m> Btree<'m> {
    /// The value under `key`.
    #[inline]
    pub(super) fn get(self, key: &[u8]) -> Result<Option<&'m [u8]>> {
        let Some(mut number) = self.root.page else { return Ok(None) };
        for _ in 1..self.root.depth {
            let page = self.page(number, false)?;
            number = page.way_to(key).and_then(|at| page.child(at)).ok_or_else(|| self.damaged(number))?;
        }
        let leaf = self.page(number, true)?;
        let (at, found) = leaf.search(key).ok_or_else(|| self.damaged(number))?;
        if !found {
            return self.absent(key).map(|()| None);
        }
        let stored =
            leaf.value(at).and_then(|stored| self.value(stored)).ok_or_else(|| self.damaged(number))?;
        unseal(self.keyspace, key, stored).map(Some)
    }

    /// Proves that there is no `key`.
    fn absent(self, key: &[u8]) -> Result<()> {
        let place = self.seek(key)?;
        place.prove(Direction::Reverse, |below| below < key)?;
        place.prove(Direction::Forward, |above| above > key)
    }

    /// A page that is a leaf, or a branch.
    #[inline]
    fn page(self, number: u64, is_leaf: bool) -> Result<Page<'m>> {
        match self.pages.page(number) {
            Some(page) if page.is_leaf() == is_leaf => Ok(page),
            _ => Err(self.damaged(number)),
        }
    }

    #[inline]
    fn value(self, stored: Stored<'m>) -> Option<&'m [u8]> {
        match stored {
            Stored::Here(value) => Some(value),
            Stored::Long { page, bytes } => self.pages.long(page, bytes),
        }
    }

    /// The place before the first entry whose key is not less than `key`.
    pub(super) fn seek(self, key: &[u8]) -> Result<Place<'m>> {
        self.descend(|page| if page.is_leaf() { Some(page.search(key)?.0) } else { page.way_to(key) })
    }

    /// The place before the first entry.
    pub(super) fn start(self) -> Result<Place<'m>> {
        self.descend(|_| Some(0))
    }

    /// The place behind the last entry.
    pub(super) fn end(self) -> Result<Place<'m>> {
        self.descend(|page| Some(page.len() - usize::from(!page.is_leaf())))
    }

    fn descend(self, choose: impl Fn(&Page<'m>) -> Option<usize>) -> Result<Place<'m>> {
        let mut place = Place { tree: self, levels: Vec::with_capacity(self.root.depth.into()) };
        if let Some(number) = self.root.page {
            place.descend(number, choose)?;
        }
        Ok(place)
    }

    #[cold]
    fn damaged(self, page: u64) -> Error {
        Error::corrupt(format!("page {page} of data.mdb, of keyspace {}, is damaged", self.keyspace.0))
            .why("it is not a page of that tree, or points out of itself")
            .hint("restore the database from a backup; check the disk")
    }

    #[cold]
    fn misplaced(self, key: &[u8]) -> Error {
        Error::corrupt(format!("entry {} of keyspace {} is out of its place", hex(key), self.keyspace.0))
            .why("keys of one keyspace follow each other in order")
            .hint("restore the database from a backup; check the disk")
    }
}

/// A place between two entries of a keyspace: the pages from its root to a leaf, and where it is in each.
#[derive(Clone)]
pub(super) struct Place<'m> {
    tree: Btree<'m>,
    /// Branches, then a leaf; none if the keyspace is empty.
    levels: Vec<Level<'m>>,
}

#[derive(Clone, Copy)]
struct Level<'m> {
    page: Page<'m>,
    number: u64,
    /// Of a branch the child; of a leaf the entries before the place.
    at: usize,
    /// It was looked at as a whole.
    is_whole: bool,
}

impl<'m> Place<'m> {
    /// The next entry, which then lies behind the place; its value is sealed.
    #[inline]
    pub(super) fn step(&mut self, direction: Direction) -> Result<Option<Entry<'m>>> {
        let mut next = self.near(direction, 0);
        if next.is_none() && self.cross(direction)? {
            next = self.near(direction, 0);
        }
        let (Some(at), Some(leaf)) = (next, self.levels.last_mut()) else { return Ok(None) };
        leaf.at = match direction {
            Direction::Forward => at + 1,
            Direction::Reverse => at,
        };
        let leaf = *leaf;
        self.entry(&leaf, at).map(Some)
    }

    /// Which entry of the leaf is the `n`th from here.
    #[inline]
    fn near(&self, direction: Direction, n: usize) -> Option<usize> {
        let leaf = self.levels.last()?;
        match direction {
            Direction::Forward => Some(leaf.at + n).filter(|at| *at < leaf.page.len()),
            Direction::Reverse => leaf.at.checked_sub(n + 1),
        }
    }

    /// That `key` is no neighbour of the one before.
    pub(super) fn misplaced(&self, key: &[u8]) -> Error {
        self.tree.misplaced(key)
    }

    #[inline]
    fn entry(&self, leaf: &Level<'m>, at: usize) -> Result<Entry<'m>> {
        let entry = || Some((leaf.page.key(at)?, self.tree.value(leaf.page.value(at)?)?));
        entry().ok_or_else(|| self.tree.damaged(leaf.number))
    }

    /// Proves that no entry lies between the place and the next one in `direction`, whose key `suits`.
    pub(super) fn prove(&self, direction: Direction, suits: impl Fn(&[u8]) -> bool) -> Result<()> {
        let (Some(at), Some(leaf)) = (self.near(direction, 0), self.levels.last()) else {
            let mut beyond = self.clone();
            return if beyond.cross(direction)? {
                beyond.prove(direction, &suits as &dyn Fn(&[u8]) -> bool)
            } else {
                Ok(())
            };
        };
        let (key, stored) = self.entry(leaf, at)?;
        unseal(self.tree.keyspace, key, stored)?;
        if !suits(key) {
            return Err(self.tree.misplaced(key));
        }
        self.prove_order(direction, 1, key)
    }

    /// Proves that the `n`th entry of this leaf from here follows `key`, if there is one.
    pub(super) fn prove_order(&self, direction: Direction, n: usize, key: &[u8]) -> Result<()> {
        let (Some(at), Some(leaf)) = (self.near(direction, n), self.levels.last()) else { return Ok(()) };
        let next = leaf.page.key(at).ok_or_else(|| self.tree.damaged(leaf.number))?;
        let expected = match direction {
            Direction::Forward => Ordering::Greater,
            Direction::Reverse => Ordering::Less,
        };
        if next.cmp(key) == expected { Ok(()) } else { Err(self.tree.misplaced(next)) }
    }

    /// Goes to the near end of the next leaf in `direction`; false, and nothing changes, if this is the last one.
    #[cold]
    fn cross(&mut self, direction: Direction) -> Result<bool> {
        self.check_separators()?;
        for level in (0..self.levels.len()).rev() {
            self.check_whole(level)?;
            let Level { page, number, at, .. } = self.levels[level];
            let sibling = match direction {
                _ if page.is_leaf() => None,
                Direction::Forward => Some(at + 1).filter(|at| *at < page.len()),
                Direction::Reverse => at.checked_sub(1),
            };
            let Some(sibling) = sibling else { continue };
            self.levels[level].at = sibling;
            self.levels.truncate(level + 1);
            let child = page.child(sibling).ok_or_else(|| self.tree.damaged(number))?;
            self.descend(child, |page| match direction {
                Direction::Forward => Some(0),
                Direction::Reverse => Some(page.len() - usize::from(!page.is_leaf())),
            })?;
            (level + 1..self.levels.len()).try_for_each(|level| self.check_whole(level))?;
            self.check_separators()?;
            return Ok(true);
        }
        Ok(false)
    }

    /// All nodes of a page are there, and of a branch in order.
    fn check_whole(&mut self, level: usize) -> Result<()> {
        let level = &mut self.levels[level];
        level.is_whole = level.is_whole || level.page.is_whole();
        if level.is_whole { Ok(()) } else { Err(self.tree.damaged(level.number)) }
    }

    /// Goes down from page `number`, which is below the last level there is.
    fn descend(&mut self, mut number: u64, choose: impl Fn(&Page<'m>) -> Option<usize>) -> Result<()> {
        let tree = self.tree;
        loop {
            let is_leaf = self.levels.len() + 1 == usize::from(tree.root.depth);
            let page = tree.page(number, is_leaf)?;
            let at = choose(&page).ok_or_else(|| tree.damaged(number))?;
            self.levels.push(Level { page, number, at, is_whole: false });
            if is_leaf {
                return Ok(());
            }
            number = page.child(at).ok_or_else(|| tree.damaged(number))?;
        }
    }

    /// The keys of the leaf lie between the separators that led to it.
    fn check_separators(&self) -> Result<()> {
        let Some((leaf, branches)) = self.levels.split_last() else { return Ok(()) };
        let branches = || branches.iter().rev();
        let key_of =
            |level: &Level<'m>, at| level.page.key(at).ok_or_else(|| self.tree.damaged(level.number));
        if let Some(level) = branches().find(|level| level.at > 0) {
            let first = key_of(leaf, 0)?;
            if first < key_of(level, level.at)? {
                return Err(self.tree.misplaced(first));
            }
        }
        if let Some(level) = branches().find(|level| level.at + 1 < level.page.len()) {
            let last = key_of(leaf, leaf.page.len() - 1)?;
            if last >= key_of(level, level.at + 1)? {
                return Err(self.tree.misplaced(last));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
