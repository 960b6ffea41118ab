//! Many keys at once: their searches go step by step together.
//!
//! Most of the time of a search goes into waiting for memory, once for each page and for each node that it looks at.
//! What one search looks at next depends on what it waits for; what another one looks at does not. So each asks for what
//! it needs next, and the others have their turn while that comes. Where keys ascend, one whose way goes through the same
//! page as the way of the one before it begins where that one left off: many rows are got in the order of their keys. Keys
//! that lie close together are looked for in a leaf one after the other, without a way down for each; and of such as are
//! not there one proof does for all that lie in the same gap.

use super::{Btree, Gap};
use crate::error::Result;
use crate::store::embedded::tree::ahead::ask;
use crate::store::embedded::tree::guess::{Around, Narrowing};
use crate::store::embedded::tree::page::{Page, compare};
use crate::store::embedded::tree::seal::unseal;

/// Searches that go together: about as many lines of memory as a processor has on their way.
const LANES: usize = 16;

/// How much of a value is asked for before it is read, in bytes.
const ASKED_BYTES: usize = 512;

/// The search for one key in one page, which ends where `Page::search` ends.
#[derive(Clone, Copy)]
struct Search<'m> {
    page: Page<'m>,
    /// The page's number.
    number: u64,
    narrowing: Narrowing,
    /// The key is that of the node where it ended.
    found: bool,
    /// Where the node to look at next is, once it is asked for.
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
            searches.clear();
            let ascend = keys.is_sorted_by(|a, b| compare(a, b).is_le());
            // The root is at hand.
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
            for level in 2..=self.root.depth {
                for search in &mut searches {
                    search.number = search.child().ok_or_else(|| self.damaged(search.number))?;
                    self.pages.ask_header(search.number);
                }
                let mut before = None;
                for (search, key) in searches.iter_mut().zip(keys) {
                    let page = self.page(search.number, level == self.root.depth)?;
                    // In one page with the key before it, and behind that.
                    let follows = ascend && before.replace(search.number) == Some(search.number);
                    search.narrowing =
                        if follows { Narrowing::halving(0, 0) } else { page.narrowing(key, search.around()) };
                    (search.page, search.found) = (page, false);
                    self.ask(search)?;
                }
                self.search_page(&mut searches, keys)?;
                for at in (1..searches.len()).filter(|_| ascend) {
                    let Search { number, narrowing, .. } = searches[at - 1];
                    let search = &mut searches[at];
                    if search.number == number {
                        search.narrowing = Narrowing::behind(narrowing.low, search.page.len());
                        self.search_alone(search, keys[at])?;
                    }
                }
            }
            self.values(&searches, keys, &mut values, &mut gap)?;
        }
        Ok(values)
    }

    /// The values of the keys that come next in the leaf where a search has ended, or in the gap, as far as they ascend;
    /// how many.
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

    /// One search in each page, step by step.
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

    /// One search by itself.
    fn search_alone(&self, search: &mut Search<'m>, key: &[u8]) -> Result<()> {
        let place = search.page.search_by(search.narrowing, key);
        let (at, found) = place.ok_or_else(|| self.damaged(search.number))?;
        (search.narrowing, search.found) = (Narrowing::halving(at, at), found);
        Ok(())
    }

    /// Asks for the node that a search looks at next.
    #[inline]
    fn ask(&self, search: &mut Search<'m>) -> Result<()> {
        if !search.is_done() {
            let offset = search.page.offset(search.narrowing.probe);
            search.offset = offset.ok_or_else(|| self.damaged(search.number))?;
            search.page.ask(search.offset);
        }
        Ok(())
    }

    /// Of leaves: the values that were found.
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

    /// Of a leaf: the value that was found, sealed.
    #[inline]
    fn stored(&self, search: &Search<'m>) -> Result<Option<&'m [u8]>> {
        if !search.found {
            return Ok(None);
        }
        let stored = search.page.entry(search.narrowing.low).and_then(|(_, stored)| self.value(stored));
        stored.map(Some).ok_or_else(|| self.damaged(search.number))
    }

    /// That value opened, or the proof that there is none. `gap`: one that is proved, where the next keys may lie, too.
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

impl<'m> Search<'m> {
    #[inline]
    fn is_done(&self) -> bool {
        self.found || self.narrowing.is_done()
    }

    /// Of a branch, at its end: which child would have the key.
    #[inline]
    fn way(&self) -> Option<usize> {
        if self.found { Some(self.narrowing.low) } else { self.narrowing.low.checked_sub(1) }
    }

    /// The page of that child.
    #[inline]
    fn child(&self) -> Option<u64> {
        self.page.child(self.way()?)
    }

    /// The keys between which those of that child lie.
    #[inline]
    fn around(&self) -> Option<Around<'m>> {
        self.page.around(self.way()?)
    }
}
