//! Many keys at once: their searches go step by step together.
//!
//! Most of the time of a search goes into waiting for memory, once for each page and for each node that it looks at.
//! What one search looks at next depends on what it waits for; what another one looks at does not. So each asks for what
//! it needs next, and the others have their turn while that comes.

use std::cmp::Ordering;

use super::Btree;
use crate::error::Result;
use crate::store::embedded::tree::ahead::ask;
use crate::store::embedded::tree::page::{Page, compare};
use crate::store::embedded::tree::seal::unseal;

/// Searches that go together: about as many lines of memory as a processor has on their way.
const LANES: usize = 16;

/// How much of a value is asked for before it is read, in bytes.
const ASKED_BYTES: usize = 512;

/// The search for one key in one page, which ends where `Page::search` ends.
struct Search<'m> {
    page: Page<'m>,
    /// The page's number.
    number: u64,
    /// Nodes that are still to be told apart, as of a binary search.
    low: usize,
    high: usize,
    /// The key is that of `low`.
    found: bool,
    /// Where the node in the middle is, once it is asked for.
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
        let mut searches = Vec::with_capacity(LANES.min(keys.len()));
        for keys in keys.chunks(LANES) {
            searches.clear();
            // The root is at hand.
            let page = self.page(root, self.root.depth == 1)?;
            for key in keys {
                let (low, found) = page.search(key).ok_or_else(|| self.damaged(root))?;
                searches.push(Search { page, number: root, low, high: low, found, offset: 0 });
            }
            for level in 2..=self.root.depth {
                for search in &mut searches {
                    let child = search.page.child(if search.found { search.low } else { search.low - 1 });
                    search.number = child.ok_or_else(|| self.damaged(search.number))?;
                    self.pages.ask_header(search.number);
                }
                for search in &mut searches {
                    *search = Search::of(self.page(search.number, level == self.root.depth)?, search.number);
                    self.ask(search)?;
                }
                self.search_page(&mut searches, keys)?;
            }
            self.values(&searches, keys, &mut values)?;
        }
        Ok(values)
    }

    /// One binary search in each page, halving by halving.
    fn search_page(self, searches: &mut [Search<'m>], keys: &[&[u8]]) -> Result<()> {
        let mut go_on = true;
        while go_on {
            go_on = false;
            for (search, key) in searches.iter_mut().zip(keys).filter(|(search, _)| !search.is_done()) {
                let place = search.page.key_place(search.offset);
                let found = place.and_then(|place| search.page.slice(place));
                match compare(found.ok_or_else(|| self.damaged(search.number))?, key) {
                    Ordering::Less => search.low = search.middle() + 1,
                    Ordering::Greater => search.high = search.middle(),
                    Ordering::Equal => (search.low, search.found) = (search.middle(), true),
                }
                self.ask(search)?;
                go_on |= !search.is_done();
            }
        }
        Ok(())
    }

    /// Asks for the node that a search looks at next.
    #[inline]
    fn ask(self, search: &mut Search<'m>) -> Result<()> {
        if !search.is_done() {
            search.offset = search.page.offset(search.middle()).ok_or_else(|| self.damaged(search.number))?;
            search.page.ask(search.offset);
        }
        Ok(())
    }

    /// Of leaves: the values that were found.
    fn values(self, searches: &[Search<'m>], keys: &[&[u8]], out: &mut Vec<Option<&'m [u8]>>) -> Result<()> {
        let first = out.len();
        for search in searches {
            if !search.found {
                out.push(None);
                continue;
            }
            let stored = search.page.entry(search.low).and_then(|(_, stored)| self.value(stored));
            let value = stored.ok_or_else(|| self.damaged(search.number))?;
            ask(&value[..value.len().min(ASKED_BYTES)]);
            out.push(Some(value));
        }
        for ((value, search), key) in out[first..].iter_mut().zip(searches).zip(keys) {
            match value {
                Some(stored) => *stored = unseal(self.keyspace, key, stored)?,
                None => self.absent(key, search.page, search.number, search.low)?,
            }
        }
        Ok(())
    }
}

impl<'m> Search<'m> {
    #[inline]
    fn of(page: Page<'m>, number: u64) -> Search<'m> {
        let (low, high) = (page.first_to_compare(), page.len());
        Search { page, number, low, high, found: false, offset: 0 }
    }

    #[inline]
    fn is_done(&self) -> bool {
        self.found || self.low >= self.high
    }

    #[inline]
    fn middle(&self) -> usize {
        (self.low + self.high) / 2
    }
}
