//! A keyspace as of one moment, searched and walked in mapped memory, page by page.
//!
//! LMDB's own search trusts what it reads: a flipped bit may lead it out of the map, which ends the process, or past
//! an existing entry. This search trusts nothing, and proves that what it does not find is not there.
//!
//! # What is proved
//!
//! A value's checksum covers its keyspace and key ([`seal`](super::seal)), so an entry that is returned is right.
//! That no entry lies between two positions is proved by the entries around the gap: two neighbours in one leaf whose
//! keys are proved ([`prove_key`]), and whose order to the next entries on either side is right (a damaged offset that
//! points at another node would break it). A gap at the end of a leaf takes more: the leaf and the branches above it must be
//! whole, and all keys of the next leaf must lie between the separators that led there. That a leaf is the last one is
//! proved once for each view ([`LastLeaves`]). A walk gives an entry only after checking its order to the next one.
//!
//! [`prove_key`] proves a key, [`Btree::prove_gap_here`] a gap within a leaf, [`BtreePosition::prove_gap`] one that may
//! reach into the next leaf ([`BtreePosition::cross`]), [`BtreePosition::prove_start`] that a walk begins where it
//! should. What LMDB will read in order to write is checked whole ([`BtreePosition::vet`]), and so is what it frees
//! ([`census`]).
//!
//! Not detected here: a stale page or root, that is, one of an earlier moment in the place of the current one. The
//! [`tally`](super::tally) of a keyspace detects that.

mod census;
mod many;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use parking_lot::Mutex;

use super::ahead::Ahead;
use super::map::Pages;
use super::meta::Root;
use super::page::{Node, Page, Stored, compare};
use super::seal::{prove_key, unseal};
use crate::error::{Error, Result};
use crate::key::{End, FastMap, KeyRange, hex};
use crate::store::{DamagedKeyspace, Direction, Entry, KeyspaceId};

/// An estimate counts the entries of up to so many leaves (count).
const COUNTED_LEAVES: usize = 8;

/// The B-tree of a keyspace, as of one moment.
#[derive(Clone, Copy)]
pub(super) struct Btree<'m> {
    pub(super) pages: Pages<'m>,
    pub(super) keyspace: KeyspaceId,
    pub(super) root: Root,
    pub(super) last_leaves: Option<&'m LastLeaves>,
}

/// The last leaf of each keyspace of a view, once proved: keys that are added mostly lie behind all others, and each is
/// looked for before.
#[derive(Default)]
pub(super) struct LastLeaves(Mutex<FastMap<KeyspaceId, u64>>);

impl LastLeaves {
    fn has(&self, keyspace: KeyspaceId, number: u64) -> bool {
        self.0.lock().get(&keyspace) == Some(&number)
    }

    fn add(&self, keyspace: KeyspaceId, number: u64) {
        self.0.lock().insert(keyspace, number);
    }
}

/// Lower bound (included) and upper bound (excluded) of the keys of a page.
pub(super) type Separators<'m> = (Option<&'m [u8]>, Option<&'m [u8]>);

/// A proved gap: two keys with no entry between them; `None`: an end of the keyspace.
#[derive(Clone, Copy)]
struct Gap<'m> {
    below: Option<&'m [u8]>,
    above: Option<&'m [u8]>,
}

impl Gap<'_> {
    fn has(&self, key: &[u8]) -> bool {
        self.below.is_none_or(|below| below < key) && self.above.is_none_or(|above| key < above)
    }
}

impl<'m> Btree<'m> {
    /// The value under `key`.
    #[inline]
    pub(super) fn get(self, key: &[u8]) -> Result<Option<&'m [u8]>> {
        let Some(mut number) = self.root.page else { return Ok(None) };
        let mut around = None;
        for _ in 1..self.root.depth {
            let page = self.page(number, false)?;
            let way = page.way_to(key, around).and_then(|at| Some((at, page.child(at)?)));
            let (at, child) = way.ok_or_else(|| self.damaged(number))?;
            self.pages.ask_header(child);
            (number, around) = (child, page.around(at));
        }
        let leaf = self.page(number, true)?;
        let (at, found) = leaf.search(key, around).ok_or_else(|| self.damaged(number))?;
        if !found {
            return self.absent(key, leaf, number, at).map(|_| None);
        }
        let stored =
            leaf.entry(at).and_then(|(_, stored)| self.value(stored)).ok_or_else(|| self.damaged(number))?;
        unseal(self.keyspace, key, stored).map(Some)
    }

    /// Proves that `key`, which belongs before entry `at` of a leaf, is missing. Gives the whole gap that was proved.
    fn absent(self, key: &[u8], leaf: Page<'m>, number: u64, at: usize) -> Result<Gap<'m>> {
        let leaf = Level { page: leaf, number, at, is_whole: false };
        let (is_below, is_above) = (|below: &[u8]| below < key, |above: &[u8]| above > key);
        let below = self.prove_gap_here(&leaf, Direction::Reverse, is_below)?;
        let above = self.prove_gap_here(&leaf, Direction::Forward, is_above)?;
        let is_last = || self.last_leaves.is_some_and(|leaves| leaves.has(self.keyspace, number));
        if below.is_some() && (above.is_some() || is_last()) {
            return Ok(Gap { below, above });
        }
        let place = self.seek(key)?;
        let below = place.prove_gap(Direction::Reverse, is_below)?;
        let above = place.prove_gap(Direction::Forward, is_above)?;
        let is_here = place.levels.last().is_some_and(|leaf| leaf.number == number);
        if let Some(leaves) = self.last_leaves.filter(|_| above.is_none() && is_here) {
            leaves.add(self.keyspace, number);
        }
        Ok(Gap { below, above })
    }

    /// Proves that no entry lies between a position in a leaf and the next entry there. Gives that entry's key, which
    /// must suit; `None` if the leaf ends there.
    fn prove_gap_here(
        self,
        leaf: &Level<'m>,
        direction: Direction,
        suits: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<&'m [u8]>> {
        let Some(at) = leaf.near(direction, 0) else { return Ok(None) };
        let (key, stored) = self.entry(leaf, at)?;
        prove_key(self.keyspace, key, stored)?;
        if !suits(key) {
            return Err(self.misplaced(key));
        }
        if let Some(next) = leaf.near(direction, 1) {
            let next = leaf.page.key(next).ok_or_else(|| self.damaged(leaf.number))?;
            if !follows(direction, next, key) {
                return Err(self.misplaced(next));
            }
        }
        Ok(Some(key))
    }

    /// Checks that the keys of a page lie between separators.
    fn check_keys(self, page: Page<'m>, number: u64, from: Option<&[u8]>, to: Option<&[u8]>) -> Result<()> {
        let ends = [page.first_to_compare(), page.len() - 1].map(|at| page.key(at));
        let [Some(first), Some(last)] = ends else { return Err(self.damaged(number)) };
        if from.is_some_and(|from| first < from) {
            return Err(self.misplaced(first));
        }
        if to.is_some_and(|to| last >= to) {
            return Err(self.misplaced(last));
        }
        Ok(())
    }

    /// Checks that the keys of a leaf are in order, and that its long values exist.
    fn check_leaf(self, leaf: &Level<'m>) -> Result<()> {
        let is_there = |at| leaf.page.entry(at).and_then(|(_, stored)| self.value(stored)).is_some();
        let is_right = leaf.page.is_ordered() && (0..leaf.page.len()).all(is_there);
        if is_right { Ok(()) } else { Err(self.damaged(leaf.number)) }
    }

    #[inline]
    fn entry(self, leaf: &Level<'m>, at: usize) -> Result<Entry<'m>> {
        let entry = leaf.page.entry(at).and_then(|(key, stored)| Some((key, self.value(stored)?)));
        entry.ok_or_else(|| self.damaged(leaf.number))
    }

    /// Page `number`, which must be a leaf, or a branch if not `is_leaf`.
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
            Stored::Long { page, bytes } => self.pages.long(page, bytes, self.root.long_pages),
            Stored::Tree(_) => None,
        }
    }

    /// The position before the first entry whose key is not less than `key`.
    pub(super) fn seek(self, key: &[u8]) -> Result<BtreePosition<'m>> {
        self.descend(|page, above| towards(key, page, above))
    }

    /// The position before the first entry.
    pub(super) fn start(self) -> Result<BtreePosition<'m>> {
        self.descend(|_, _| Some(0))
    }

    /// The position behind the last entry.
    pub(super) fn end(self) -> Result<BtreePosition<'m>> {
        self.descend(|page, _| Some(page.len() - usize::from(!page.is_leaf())))
    }

    /// About how many entries lie in a range; exact if it spans few leaves.
    pub(super) fn estimate(self, range: &KeyRange) -> Result<u64> {
        let start = self.seek(&range.start)?;
        let end = match &range.end {
            End::Before(key) => self.seek(key)?,
            End::Open => self.end()?,
        };
        start.entries_to(&end)
    }

    fn descend(self, choose: impl Choose<'m>) -> Result<BtreePosition<'m>> {
        let mut place = BtreePosition {
            tree: self,
            levels: Vec::with_capacity(self.root.depth.into()),
            ahead: Ahead::default(),
        };
        if let Some(number) = self.root.page {
            place.descend(number, choose)?;
        }
        Ok(place)
    }

    #[cold]
    fn damaged(self, page: u64) -> Error {
        Error::damaged(
            format!("page {page} of data.mdb, of keyspace {}, is damaged", self.keyspace.0),
            "it is not a page of that tree, or points out of itself",
        )
        .caused_by(DamagedKeyspace(self.keyspace))
    }

    #[cold]
    fn misplaced(self, key: &[u8]) -> Error {
        Error::damaged(
            format!("entry {} of keyspace {} is out of its place", hex(key), self.keyspace.0),
            "keys of one keyspace follow each other in order",
        )
        .caused_by(DamagedKeyspace(self.keyspace))
    }
}

/// A position between two entries of a keyspace: the pages from the root to a leaf, and the position in each.
#[derive(Clone)]
pub(super) struct BtreePosition<'m> {
    tree: Btree<'m>,
    /// Branches, then a leaf; none if the keyspace is empty.
    levels: Vec<Level<'m>>,
    /// The prefetch of the next leaf, as far as it was not issued yet.
    ahead: Ahead<'m>,
}

#[derive(Clone, Copy)]
struct Level<'m> {
    page: Page<'m>,
    number: u64,
    /// In a branch: index of the child; in a leaf: number of entries before the position.
    at: usize,
    /// The page has passed `check_whole`.
    is_whole: bool,
}

/// Where in a page the first entry is whose key is not less than `key`, given the level above.
#[inline]
fn towards(key: &[u8], page: &Page<'_>, above: Option<&Level<'_>>) -> Option<usize> {
    let around = above.and_then(|above| above.page.around(above.at));
    if page.is_leaf() { Some(page.search(key, around)?.0) } else { page.way_to(key, around) }
}

/// Chooses where to go in a page, given the level above.
trait Choose<'m>: Fn(&Page<'m>, Option<&Level<'m>>) -> Option<usize> {}

impl<'m, F: Fn(&Page<'m>, Option<&Level<'m>>) -> Option<usize>> Choose<'m> for F {}

impl Level<'_> {
    /// Index of the `n`th entry of a leaf from here.
    #[inline]
    fn near(&self, direction: Direction, n: usize) -> Option<usize> {
        match direction {
            Direction::Forward => Some(self.at + n).filter(|at| *at < self.page.len()),
            Direction::Reverse => self.at.checked_sub(n + 1),
        }
    }

    /// Moves past entry `at` of a leaf, the next one.
    #[inline]
    fn pass(&mut self, direction: Direction, at: usize) {
        self.at = match direction {
            Direction::Forward => at + 1,
            Direction::Reverse => at,
        };
    }
}

/// `key` comes after `before` in this direction.
#[inline]
fn follows(direction: Direction, key: &[u8], before: &[u8]) -> bool {
    match direction {
        Direction::Forward => compare(key, before).is_gt(),
        Direction::Reverse => compare(key, before).is_lt(),
    }
}

impl<'m> BtreePosition<'m> {
    /// Shows the following entries to `visit`, their values sealed, each after checking its order to the next one.
    /// True: `visit` has stopped the walk, and the position is behind the last entry shown; false: there are no more.
    #[inline]
    pub(super) fn walk(
        &mut self,
        direction: Direction,
        visit: impl FnMut(&'m [u8], &'m [u8]) -> Result<bool>,
    ) -> Result<bool> {
        let tree = self.tree;
        self.walk_nodes(direction, |node| tree.value(node.stored()?), visit)
    }

    /// Walks a tree of trees: shows each name and the description of its tree.
    pub(super) fn walk_trees(
        &mut self,
        visit: impl FnMut(&'m [u8], &'m [u8]) -> Result<bool>,
    ) -> Result<bool> {
        let root_of = |node: &Node<'m>| match node.stored()? {
            Stored::Tree(root) => Some(root),
            Stored::Here(_) | Stored::Long { .. } => None,
        };
        self.walk_nodes(Direction::Forward, root_of, visit)
    }

    /// Walks like [`BtreePosition::walk`], showing what `bytes_of` makes of each entry; `None` from it: the entry is
    /// damaged.
    #[inline]
    fn walk_nodes(
        &mut self,
        direction: Direction,
        bytes_of: impl Fn(&Node<'m>) -> Option<&'m [u8]>,
        mut visit: impl FnMut(&'m [u8], &'m [u8]) -> Result<bool>,
    ) -> Result<bool> {
        let tree = self.tree;
        loop {
            let Some(leaf) = self.levels.last_mut() else { return Ok(false) };
            let Level { page, number, .. } = *leaf;
            let damaged = || tree.damaged(number);
            let node = |at: usize| Ok::<_, Error>((at, page.node(at).ok_or_else(damaged)?));
            let mut next = leaf.near(direction, 0).map(node).transpose()?;
            while let Some((at, here)) = next {
                self.ahead.ask();
                leaf.pass(direction, at);
                let behind = leaf.near(direction, 0).map(node).transpose()?;
                if let Some((_, behind)) = &behind
                    && !follows(direction, behind.key, here.key)
                {
                    return Err(tree.misplaced(behind.key));
                }
                if !visit(here.key, bytes_of(&here).ok_or_else(damaged)?)? {
                    return Ok(true);
                }
                next = behind;
            }
            if !self.cross(direction)? {
                return Ok(false);
            }
        }
    }

    /// Moves as [`Btree::seek`] would, but searches in the lowest page from here up below which `key` lies.
    pub(super) fn seek(&mut self, key: &[u8]) -> Result<()> {
        let is_below =
            |(from, to): Separators<'m>| from.is_none_or(|from| from <= key) && to.is_none_or(|to| key < to);
        let mut level = self.levels.len().saturating_sub(1);
        while level > 0 && !is_below(self.separators_of(level)?) {
            level -= 1;
        }
        let Some(&Level { page, number, .. }) = self.levels.get(level) else { return Ok(()) };
        let damaged = || self.tree.damaged(number);
        let at = towards(key, &page, self.levels[..level].last()).ok_or_else(damaged)?;
        let below = if page.is_leaf() { None } else { Some(page.child(at).ok_or_else(damaged)?) };
        self.levels[level].at = at;
        if let Some(child) = below {
            self.levels.truncate(level + 1);
            self.ahead = Ahead::default();
            self.descend(child, |page, above| towards(key, page, above))?;
        }
        Ok(())
    }

    /// Proves that no entry lies between the position and the next entry in `direction`. Gives that entry's key,
    /// which must suit; `None` if there is none.
    fn prove_gap(&self, direction: Direction, suits: impl Fn(&[u8]) -> bool) -> Result<Option<&'m [u8]>> {
        let Some(leaf) = self.levels.last() else { return Ok(None) };
        if let Some(key) = self.tree.prove_gap_here(leaf, direction, &suits)? {
            return Ok(Some(key));
        }
        let mut beyond = self.clone();
        match (beyond.cross(direction)?, beyond.levels.last()) {
            (true, Some(leaf)) => self.tree.prove_gap_here(leaf, direction, &suits),
            _ => Ok(None),
        }
    }

    /// Proves that a walk of the range may start here: the entry passed last is not in it, and the first one is.
    pub(super) fn prove_start(&self, range: &KeyRange, direction: Direction) -> Result<()> {
        let is_before = |key: &[u8]| match direction {
            Direction::Forward => *key < *range.start,
            Direction::Reverse => range.is_past(key),
        };
        match direction {
            Direction::Forward => self.prove_gap(Direction::Reverse, is_before)?,
            Direction::Reverse => self.prove_gap(Direction::Forward, is_before)?,
        };
        let first = self.levels.last().and_then(|leaf| Some((leaf, leaf.near(direction, 0)?)));
        let Some((leaf, at)) = first else { return Ok(()) };
        let key = leaf.page.key(at).ok_or_else(|| self.tree.damaged(leaf.number))?;
        if is_before(key) { Err(self.tree.misplaced(key)) } else { Ok(()) }
    }

    /// The value under `key`, sealed, if this leaf has it, whose keys are in order. Looks at the next entries first, where
    /// it is if keys are asked for in order.
    pub(super) fn sealed_here(&mut self, key: &[u8]) -> Result<Option<&'m [u8]>> {
        let Some(leaf) = self.levels.last_mut() else { return Ok(None) };
        let mut near = [leaf.at, leaf.at + 1].into_iter();
        let at = match near.find(|at| *at < leaf.page.len() && leaf.page.key(*at) == Some(key)) {
            Some(at) => at,
            None => match leaf.page.search(key, None) {
                Some((at, true)) => at,
                Some((_, false)) => return Ok(None),
                None => return Err(self.tree.damaged(leaf.number)),
            },
        };
        leaf.at = at;
        let leaf = *leaf;
        self.tree.entry(&leaf, at).map(|(_, sealed)| Some(sealed))
    }

    /// Goes to the near end of the next leaf in `direction`. False, and nothing changes, if this is the last leaf.
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
            // Whoever walks this far will probably want the leaf after that too.
            let after = match direction {
                Direction::Forward => Some(sibling + 1),
                Direction::Reverse => sibling.checked_sub(1),
            };
            let after = after.and_then(|at| page.child(at));
            let child = page.child(sibling).ok_or_else(|| self.tree.damaged(number))?;
            self.descend(child, |page, _| match direction {
                Direction::Forward => Some(0),
                Direction::Reverse => Some(page.len() - usize::from(!page.is_leaf())),
            })?;
            (level + 1..self.levels.len()).try_for_each(|level| self.check_whole(level))?;
            self.check_separators()?;
            if let (Some(after), Some(leaf)) = (after, self.levels.last()) {
                self.ahead = self.tree.pages.ahead(after, leaf.page.len());
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// About how many entries lie between this position and `end`, which is not before it; see [`Btree::estimate`].
    fn entries_to(&self, end: &BtreePosition<'m>) -> Result<u64> {
        let differ = |(a, b): (&Level<'m>, &Level<'m>)| a.at != b.at;
        let Some(level) = self.levels.iter().zip(&end.levels).position(differ) else { return Ok(0) };
        let (from, to) = (&self.levels[level], &end.levels[level]);
        if level + 1 == self.levels.len() {
            return Ok(to.at.saturating_sub(from.at) as u64);
        }
        if level + 2 == self.levels.len() && to.at.saturating_sub(from.at) <= COUNTED_LEAVES {
            let [.., first] = &self.levels[..] else { return Ok(0) };
            let [.., last] = &end.levels[..] else { return Ok(0) };
            let mut entries = first.page.len() - first.at + last.at;
            for at in from.at + 1..to.at {
                let child = from.page.child(at).ok_or_else(|| self.tree.damaged(from.number))?;
                entries += self.tree.page(child, true)?.len();
            }
            return Ok(entries as u64);
        }
        // Assumes that all children of a page hold the same number of entries.
        let share = |place: &BtreePosition<'m>| {
            place
                .levels
                .iter()
                .rev()
                .fold(0.0, |below, Level { page, at, .. }| (*at as f64 + below) / page.len() as f64)
        };
        Ok(((share(end) - share(self)).max(0.0) * self.tree.root.entries as f64) as u64)
    }

    /// Checks that all nodes of a page are there, and those of a branch in order.
    fn check_whole(&mut self, level: usize) -> Result<()> {
        let level = &mut self.levels[level];
        level.is_whole = level.is_whole || level.page.is_whole();
        if level.is_whole { Ok(()) } else { Err(self.tree.damaged(level.number)) }
    }

    /// Goes down from page `number`, a child of the last level.
    fn descend(&mut self, mut number: u64, choose: impl Choose<'m>) -> Result<()> {
        let tree = self.tree;
        loop {
            let is_leaf = self.levels.len() + 1 == usize::from(tree.root.depth);
            let page = tree.page(number, is_leaf)?;
            let at = choose(&page, self.levels.last()).ok_or_else(|| tree.damaged(number))?;
            self.levels.push(Level { page, number, at, is_whole: false });
            if is_leaf {
                return Ok(());
            }
            number = page.child(at).ok_or_else(|| tree.damaged(number))?;
            tree.pages.ask_header(number);
        }
    }

    /// The page numbers from the root to the leaf.
    #[cfg(test)]
    pub(super) fn numbers(&self) -> Vec<u64> {
        self.levels.iter().map(|level| level.number).collect()
    }

    /// Checks that the keys of the leaf lie between the separators that led to it.
    fn check_separators(&self) -> Result<()> {
        let Some(leaf) = self.levels.last() else { return Ok(()) };
        let (from, to) = self.separators()?;
        self.tree.check_keys(leaf.page, leaf.number, from, to)
    }

    /// The separators around the leaf: its keys are at least the first and less than the second.
    fn separators(&self) -> Result<Separators<'m>> {
        self.separators_of(self.levels.len().saturating_sub(1))
    }

    /// The separators around the page of a level.
    fn separators_of(&self, level: usize) -> Result<Separators<'m>> {
        let branches = || self.levels.iter().take(level).rev();
        let key_of =
            |level: &Level<'m>, at| level.page.key(at).ok_or_else(|| self.tree.damaged(level.number));
        let from = branches().find(|level| level.at > 0).map(|level| key_of(level, level.at));
        let to =
            branches().find(|level| level.at + 1 < level.page.len()).map(|level| key_of(level, level.at + 1));
        Ok((from.transpose()?, to.transpose()?))
    }

    /// Checks the pages from the root to here that are not yet in `seen`, and those of the two neighbour leaves if
    /// `and_beside`.
    pub(super) fn vet(&mut self, seen: &mut HashSet<u64>, and_beside: bool) -> Result<Separators<'m>> {
        for at in 0..self.levels.len() {
            if seen.insert(self.levels[at].number) {
                self.check_whole(at)?;
                if self.levels[at].page.is_leaf() {
                    self.tree.check_leaf(&self.levels[at])?;
                }
            }
        }
        self.check_separators()?;
        for direction in [Direction::Forward, Direction::Reverse].into_iter().filter(|_| and_beside) {
            let mut beside = self.clone();
            if beside.cross(direction)? {
                beside.vet(seen, false)?;
            }
        }
        self.separators()
    }
}
