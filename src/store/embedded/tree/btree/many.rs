//! Looks up many keys at once, interleaving their searches step by step.
//!
//! A search spends most of its time waiting for memory, once for each page and each node it reads. Its own next step
//! depends on what it waits for, but the steps of other searches do not. So each search prefetches what it needs
//! next, and the others take their turn meanwhile. If keys ascend, as rows are often fetched in key order, a search that
//! goes through the same branch as the previous one starts there where the previous one ended; in a leaf, only if many
//! keys lie there. Keys close together are found in a leaf one after the other, without a descent for each; and one
//! proof of absence serves all missing keys in the same gap.

use super::{Btree, Gap};
use crate::error::Result;
use crate::store::embedded::tree::ahead::ask;
use crate::store::embedded::tree::guess::{Around, Narrowing};
use crate::store::embedded::tree::page::{Page, compare};
use crate::store::embedded::tree::seal::unseal;

/// Number of interleaved searches: about as many as a processor has loads in flight.
const LANES: usize = 16;

/// Keys (count) sought together in a leaf, on average, from which on each is sought from where the one before it was
/// found.
const CROWD: usize = 8;

/// How much of a value is prefetched before it is read, in bytes.
const ASKED_BYTES: usize = 512;

/// The search for one key in one page; it ends where `Page::search` ends.
#[derive(Clone, Copy)]
struct Search<'m> {
    page: Page<'m>,
    /// The page's number.
    number: u64,
    narrowing: Narrowing,
    /// The node at `narrowing.low` has the key.
    found: bool,
    /// Offset of the node to compare next, once it is prefetched.
    offset: usize,
}

impl<'m> Btree<'m> {
    /// The values under `keys`.
    pub(in crate::store::embedded::tree) fn get_many(self, keys: &[&[u8]]) -> Result<Vec<Option<&'m [u8]>>> {
        if let [key] = keys {
            return Ok(vec![self.get(key)?]);
        }
        let mut values = Vec::with_capacity(keys.len());
        let Some(root) = self.root.page else {
            values.resize(keys.len(), None);
            return Ok(values);
        };
        let mut searches: Vec<Search<'m>> = Vec::with_capacity(LANES.min(keys.len()));
        let (mut rest, mut gap) = (keys, None);
        while !rest.is_empty() {
            let n = match &searches[..] {
                [.., before, last] if before.number == last.number => {
                    let last_key = keys[keys.len() - rest.len() - 1];
                    self.follow(*last, last_key, rest, &mut values, &mut gap)?
                }
                _ => 0,
            };
            let keys;
            (keys, rest) = rest[n..].split_at(LANES.min(rest.len() - n));
            let ascend = keys.is_sorted_by(|a, b| compare(a, b).is_le());
            self.search_root(root, keys, ascend, &mut searches)?;
            for level in 2..=self.root.depth {
                self.search_level(&mut searches, keys, ascend, level == self.root.depth)?;
            }
            self.values(&searches, keys, &mut values, &mut gap)?;
        }
        Ok(values)
    }

    /// Searches the root. It is in cache, so these searches need no interleaving.
    #[inline]
    fn search_root(
        &self,
        root: u64,
        keys: &[&[u8]],
        ascend: bool,
        searches: &mut Vec<Search<'m>>,
    ) -> Result<()> {
        searches.clear();
        let page = self.page(root, self.root.depth == 1)?;
        for key in keys {
            let narrowing = match searches.last() {
                Some(Search { narrowing, .. }) if ascend => Narrowing::behind(narrowing.low, page.len()),
                _ => page.narrowing(key, None),
            };
            let mut search = Search { page, number: root, narrowing, found: false, offset: 0 };
            self.search_alone(&mut search, key)?;
            searches.push(search);
        }
        Ok(())
    }

    /// Searches the next level with all searches.
    #[inline]
    fn search_level(
        &self,
        searches: &mut [Search<'m>],
        keys: &[&[u8]],
        ascend: bool,
        to_leaf: bool,
    ) -> Result<()> {
        for search in &mut *searches {
            search.number = search.child().ok_or_else(|| self.damaged(search.number))?;
            self.pages.ask_header(search.number);
        }
        // Few keys in each leaf lie far from each other there, where nothing is in cache yet.
        let one_by_one = ascend && (!to_leaf || CROWD * pages_of(searches) <= searches.len());
        let mut before = None;
        for (search, key) in searches.iter_mut().zip(keys) {
            let page = self.page(search.number, to_leaf)?;
            // Same page as the previous key: searched below, from where that one ended.
            let follows = one_by_one && before.replace(search.number) == Some(search.number);
            search.narrowing =
                if follows { Narrowing::done(0) } else { page.narrowing(key, search.around()) };
            (search.page, search.found) = (page, false);
            self.ask(search)?;
        }
        self.search_page(searches, keys)?;
        for at in (1..searches.len()).filter(|_| one_by_one) {
            let Search { number, narrowing, .. } = searches[at - 1];
            let search = &mut searches[at];
            if search.number == number {
                search.narrowing = Narrowing::behind(narrowing.low, search.page.len());
                self.search_alone(search, keys[at])?;
            }
        }
        Ok(())
    }

    /// Looks up the keys that come next in the leaf where the last search ended, or in the proved gap, as long as
    /// they ascend. Gives how many it looked up.
    fn follow<'k>(
        &self,
        mut search: Search<'m>,
        mut before: &'k [u8],
        keys: &[&'k [u8]],
        values: &mut Vec<Option<&'m [u8]>>,
        gap: &mut Option<Gap<'m>>,
    ) -> Result<usize> {
        let Search { page, number, .. } = search;
        let end = page.key(page.len() - 1).ok_or_else(|| self.damaged(number))?;
        for (n, key) in keys.iter().enumerate() {
            let is_in_gap = gap.is_some_and(|gap| gap.has(key));
            if compare(before, key).is_ge() || !is_in_gap && compare(key, end).is_gt() {
                return Ok(n);
            }
            before = key;
            if is_in_gap {
                values.push(None);
                continue;
            }
            let low = search.narrowing.low + usize::from(search.found);
            search.narrowing = Narrowing::behind(low, page.len());
            self.search_alone(&mut search, key)?;
            let stored = self.stored(&search)?;
            values.push(self.open(key, &search, stored, gap)?);
        }
        Ok(keys.len())
    }

    /// Runs one search in each page, interleaved.
    fn search_page(&self, searches: &mut [Search<'m>], keys: &[&[u8]]) -> Result<()> {
        let mut go_on = true;
        while go_on {
            go_on = false;
            for (search, key) in searches.iter_mut().zip(keys).filter(|(search, _)| !search.is_done()) {
                let place = search.page.key_place(search.offset);
                let found = place.and_then(|place| search.page.slice(place));
                let node = compare(found.ok_or_else(|| self.damaged(search.number))?, key);
                search.found = search.narrowing.see(node);
                self.ask(search)?;
                go_on |= !search.is_done();
            }
        }
        Ok(())
    }

    /// Runs one search by itself.
    fn search_alone(&self, search: &mut Search<'m>, key: &[u8]) -> Result<()> {
        let place = search.page.search_by(search.narrowing, key);
        let (at, found) = place.ok_or_else(|| self.damaged(search.number))?;
        (search.narrowing, search.found) = (Narrowing::done(at), found);
        Ok(())
    }

    /// Prefetches the node that a search compares next.
    #[inline]
    fn ask(&self, search: &mut Search<'m>) -> Result<()> {
        if !search.is_done() {
            let offset = search.page.offset(search.narrowing.probe);
            search.offset = offset.ok_or_else(|| self.damaged(search.number))?;
            search.page.ask(search.offset);
        }
        Ok(())
    }

    /// Adds the values found in leaves.
    fn values(
        &self,
        searches: &[Search<'m>],
        keys: &[&[u8]],
        out: &mut Vec<Option<&'m [u8]>>,
        gap: &mut Option<Gap<'m>>,
    ) -> Result<()> {
        let first = out.len();
        for search in searches {
            let value = self.stored(search)?;
            ask(value.map_or(&[], |value| &value[..value.len().min(ASKED_BYTES)]));
            out.push(value);
        }
        for ((value, search), key) in out[first..].iter_mut().zip(searches).zip(keys) {
            *value = self.open(key, search, *value, gap)?;
        }
        Ok(())
    }

    /// In a leaf: the value that was found, still sealed.
    #[inline]
    fn stored(&self, search: &Search<'m>) -> Result<Option<&'m [u8]>> {
        if !search.found {
            return Ok(None);
        }
        let stored = search.page.entry(search.narrowing.low).and_then(|(_, stored)| self.value(stored));
        stored.map(Some).ok_or_else(|| self.damaged(search.number))
    }

    /// Unseals that value, or proves that there is none. `gap`: the last proved gap, where the next keys may lie too.
    #[inline]
    fn open(
        &self,
        key: &[u8],
        search: &Search<'m>,
        stored: Option<&'m [u8]>,
        gap: &mut Option<Gap<'m>>,
    ) -> Result<Option<&'m [u8]>> {
        if let Some(stored) = stored {
            return unseal(self.keyspace, key, stored).map(Some);
        }
        if !gap.is_some_and(|gap| gap.has(key)) {
            *gap = Some(self.absent(key, search.page, search.number, search.narrowing.low)?);
        }
        Ok(None)
    }
}

/// Number of pages of searches whose keys ascend.
fn pages_of(searches: &[Search<'_>]) -> usize {
    1 + searches.windows(2).filter(|two| two[0].number != two[1].number).count()
}

impl<'m> Search<'m> {
    #[inline]
    fn is_done(&self) -> bool {
        self.found || self.narrowing.is_done()
    }

    /// In a branch, when the search is done: the child that would have the key.
    #[inline]
    fn way(&self) -> Option<usize> {
        if self.found { Some(self.narrowing.low) } else { self.narrowing.low.checked_sub(1) }
    }

    /// The page number of that child.
    #[inline]
    fn child(&self) -> Option<u64> {
        self.page.child(self.way()?)
    }

    /// The separators around that child's keys.
    #[inline]
    fn around(&self) -> Option<Around<'m>> {
        self.page.around(self.way()?)
    }
}
