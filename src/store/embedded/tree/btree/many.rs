//! Many keys at once: their searches go step by step together.
//!
//! Most of the time of a search goes into waiting for memory, once for each page and for each node that it looks at.
//! What one search looks at next depends on what it waits for; what another one looks at does not, and the processor
//! waits for all of them at the same time.

use std::cmp::Ordering;

use super::Btree;
use crate::error::Result;
use crate::store::embedded::tree::page::{Page, compare};
use crate::store::embedded::tree::seal::unseal;

/// Searches that go together: about as many loads as a processor has under way.
const LANES: usize = 16;

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
    /// Where the node in the middle is, and where its key begins and ends.
    offset: usize,
    key: (usize, usize),
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
            for _ in keys {
                searches.push(Search::of(self.page(root, self.root.depth == 1)?, root));
            }
            for level in 2..=self.root.depth {
                self.search_page(&mut searches, keys)?;
                for search in &mut searches {
                    let child = search.page.child(if search.found { search.low } else { search.low - 1 });
                    search.number = child.ok_or_else(|| self.damaged(search.number))?;
                }
                for search in &mut searches {
                    *search = Search::of(self.page(search.number, level == self.root.depth)?, search.number);
                }
            }
            self.search_page(&mut searches, keys)?;
            self.values(&searches, keys, &mut values)?;
        }
        Ok(values)
    }

    /// One binary search in each page, halving by halving.
    fn search_page(self, searches: &mut [Search<'m>], keys: &[&[u8]]) -> Result<()> {
        let mut go_on = true;
        while go_on {
            for search in searches.iter_mut().filter(|search| !search.is_done()) {
                search.offset =
                    search.page.offset(search.middle()).ok_or_else(|| self.damaged(search.number))?;
            }
            for search in searches.iter_mut().filter(|search| !search.is_done()) {
                let place =
                    search.page.key_place(search.offset).ok_or_else(|| self.damaged(search.number))?;
                search.key = (place.start, place.end);
            }
            go_on = false;
            for (search, key) in searches.iter_mut().zip(keys).filter(|(search, _)| !search.is_done()) {
                let (start, end) = search.key;
                let found = search.page.slice(start..end).ok_or_else(|| self.damaged(search.number))?;
                match compare(found, key) {
                    Ordering::Less => search.low = search.middle() + 1,
                    Ordering::Greater => search.high = search.middle(),
                    Ordering::Equal => (search.low, search.found) = (search.middle(), true),
                }
                go_on |= !search.is_done();
            }
        }
        Ok(())
    }

    /// Of leaves: the values that were found.
    fn values(self, searches: &[Search<'m>], keys: &[&[u8]], out: &mut Vec<Option<&'m [u8]>>) -> Result<()> {
        let first = out.len();
        let mut ends = 0;
        for search in searches {
            if !search.found {
                out.push(None);
                continue;
            }
            let stored = search.page.entry(search.low).and_then(|(_, stored)| self.value(stored));
            let value = stored.ok_or_else(|| self.damaged(search.number))?;
            // The far end is loaded, too.
            ends ^= value.last().copied().unwrap_or_default();
            out.push(Some(value));
        }
        std::hint::black_box(ends);
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
        Search { page, number, low, high, found: false, offset: 0, key: (0, 0) }
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
