//! Checks a whole tree.

use super::{Btree, Separators};
use crate::error::{Error, Result};
use crate::store::embedded::tree::page::Stored;
use crate::store::embedded::tree::seal::unseal;
use crate::store::embedded::tree::tally::Tally;

/// What a check of a whole tree has found.
#[derive(Default)]
struct TreeCensus {
    /// Branches and leaves (count).
    pages: u64,
    long_pages: u64,
    tally: Tally,
    #[cfg(test)]
    numbers: Vec<u64>,
}

impl<'m> Btree<'m> {
    /// Checks that every page is whole and in its place, including those of long values, and that there are as many
    /// as the root says. Gives the tally of the entries.
    pub(in crate::store::embedded::tree) fn check_pages(self) -> Result<Tally> {
        let mut found = TreeCensus::default();
        if let Some(root) = self.root.page {
            self.check_below(root, 1, (None, None), &mut found)?;
        }
        let TreeCensus { pages, long_pages, tally, .. } = found;
        if (pages + long_pages, long_pages) == (self.root.pages, self.root.long_pages) {
            return Ok(tally);
        }
        Err(Error::damaged(
            format!("keyspace {} of data.mdb is damaged", self.keyspace.0),
            format!("it has {pages} pages and {long_pages} of long values, and not as many as its root says"),
        ))
    }

    #[cfg(test)]
    pub(in crate::store::embedded::tree) fn numbers(self) -> Result<Vec<u64>> {
        let mut found = TreeCensus::default();
        self.root.page.map_or(Ok(()), |root| self.check_below(root, 1, (None, None), &mut found))?;
        Ok(found.numbers)
    }

    /// Checks page `number` and all below it, down to the leaves.
    fn check_below(
        self,
        number: u64,
        depth: u16,
        (from, to): Separators<'m>,
        found: &mut TreeCensus,
    ) -> Result<()> {
        let is_leaf = depth == self.root.depth;
        let page = self.page(number, is_leaf)?;
        let damaged = || self.damaged(number);
        found.pages += 1;
        #[cfg(test)]
        found.numbers.push(number);
        if !page.is_whole() || !page.is_ordered() {
            return Err(damaged());
        }
        if page.first_to_compare() < page.len() {
            self.check_keys(page, number, from, to)?;
        }
        for at in 0..page.len() {
            if is_leaf {
                let (key, stored) = page.entry(at).ok_or_else(damaged)?;
                let value = self.value(stored).ok_or_else(damaged)?;
                if let Stored::Long { page, .. } = stored {
                    unseal(self.keyspace, key, value)?;
                    let pages = self.pages.count_of_long(page).ok_or_else(damaged)?;
                    found.long_pages += pages;
                    #[cfg(test)]
                    found.numbers.extend(page..page + pages);
                }
                found.tally.add(value);
                continue;
            }
            let key = |at| page.key(at).ok_or_else(damaged);
            let from = if at == 0 { from } else { Some(key(at)?) };
            let to = if at + 1 == page.len() { to } else { Some(key(at + 1)?) };
            self.check_below(page.child(at).ok_or_else(damaged)?, depth + 1, (from, to), found)?;
        }
        Ok(())
    }
}
