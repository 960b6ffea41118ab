//! Fetches the rows that index entries point at: a walk collects pointers, and the rows are read together, batch by
//! batch.

use std::ops::Range;

use super::pull::{Pull, TOGETHER, dangling};
use super::sink::Sink;
use super::spec::{BATCH_ROWS, ScanCounters};
use super::view::{RowScratch, see_entry};
use super::walk::{Visited, Walk};
use crate::error::{Error, Result};
use crate::index::open_entry;
use crate::key::KeyHead;

/// Expected number of pointers per walk (count), and bytes of each, for the first allocation.
const POINTERS_EXPECTED: usize = 16;
const KEY_BYTES_EXPECTED: usize = 16;

/// A row as read: the value of the default family, and those of the other families.
type Fetched<'a> = (&'a [u8], Vec<Option<&'a [u8]>>);

/// Rowkeys, end to end in one buffer.
struct Pointers {
    bytes: Vec<u8>,
    /// Where each one ends.
    ends: Vec<usize>,
}

impl Pointers {
    fn with_capacity(pointers: usize) -> Pointers {
        let (bytes, ends) = (Vec::with_capacity(pointers * KEY_BYTES_EXPECTED), Vec::with_capacity(pointers));
        Pointers { bytes, ends }
    }

    fn push(&mut self, pointer: &[u8]) {
        self.bytes.extend_from_slice(pointer);
        self.ends.push(self.bytes.len());
    }

    fn at(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.bytes[start..self.ends[i]]
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    /// The indexes of some of them, in key order.
    fn by_key(&self, some: Range<usize>) -> Vec<(KeyHead, usize)> {
        let mut by_key: Vec<(KeyHead, usize)> = some.map(|i| (KeyHead::of(self.at(i)), i)).collect();
        by_key.sort_unstable_by(|(head, a), (other, b)| {
            head.cmp(other).then_with(|| self.at(*a).cmp(self.at(*b)))
        });
        by_key
    }
}

/// Rows to be fetched, in the order of the entries that point at them unless any order will do.
pub(super) struct Fetch {
    pointers: Pointers,
    /// The pointers in key order, if the rows are given out in that order.
    by_key: Vec<(KeyHead, usize)>,
    /// Index of the next row to be given out.
    next: usize,
    /// How many rows (count) are read before any is given out.
    at_once: usize,
    /// The walk may find more pointers.
    more: bool,
}

impl Fetch {
    fn is_over(&self) -> bool {
        self.next == self.pointers.len()
    }

    /// Whether the walk may find more pointers.
    pub fn more(&self) -> bool {
        self.more
    }
}

impl<'a> Pull<'a> {
    /// Collects the pointers of a batch of entries, reads their rows, many of them in key order, and gives them out
    /// in index order, unless any order will do. `left`: a fetch that was not finished by the last call.
    pub fn walk_and_fetch(
        &self,
        walk: &mut Walk,
        left: &mut Option<Fetch>,
        out: &mut impl Sink,
    ) -> Result<bool> {
        let mut fetched = 0;
        loop {
            let wanted = out.rows_max() - out.rows();
            let mut fetch = match left.take() {
                Some(fetch) => fetch,
                None => self.pointers(walk, wanted)?,
            };
            let before = fetch.next;
            self.fetch(&mut fetch, out)?;
            fetched += fetch.next - before;
            if !fetch.is_over() {
                *left = Some(fetch);
                if out.is_full() || fetched >= BATCH_ROWS {
                    return Ok(true);
                }
                continue;
            }
            // Returns now and then even if few rows pass, so that the scan can be stopped.
            if !fetch.more || out.is_full() || fetch.pointers.len() < wanted || fetched >= BATCH_ROWS {
                return Ok(fetch.more);
            }
        }
    }

    /// The pointers of the next entries that pass the filter, at most `wanted`.
    pub fn pointers(&self, walk: &mut Walk, wanted: usize) -> Result<Fetch> {
        let index = self.index()?;
        let sources = self.spec.places.entries.as_ref();
        let sources = sources.ok_or_else(|| Error::internal("a fetch without its index"))?;
        let mut scratch = RowScratch::of(&self.spec.table, sources);
        let filter = &self.spec.access.entry_filter;
        let mut pointers = Pointers::with_capacity(wanted.min(POINTERS_EXPECTED));
        let more = walk.go(self.reader, self.counters, &mut |key, value| {
            let parts = open_entry(index, key, value)?;
            let taken = filter.is_true()
                || see_entry(self.spec, sources, index, &parts, &mut scratch, |view| filter.passes(view))?;
            if taken {
                pointers.push(parts.pointer);
            }
            Ok(Visited { taken, go_on: pointers.len() < wanted })
        })?;
        let mut fetch = Fetch { at_once: pointers.len(), pointers, by_key: Vec::new(), next: 0, more };
        // For a few rows key order gains nothing: they lie far apart anyway.
        if self.spec.any_order && fetch.pointers.len() > TOGETHER {
            fetch.by_key = fetch.pointers.by_key(0..fetch.pointers.len());
        }
        Ok(fetch)
    }

    /// Gives out the next rows, as many as `out` takes.
    fn fetch(&self, fetch: &mut Fetch, out: &mut impl Sink) -> Result<()> {
        let room = (out.rows_max() - out.rows()).min(fetch.at_once);
        let end = fetch.pointers.len().min(fetch.next + room);
        if self.spec.access.filter.is_true() && !out.looks() {
            out.append_empty(end - fetch.next);
            fetch.next = end;
            return Ok(());
        }
        if !self.spec.any_order && end - fetch.next > TOGETHER {
            return self.fetch_in_order(fetch, end, out);
        }
        let index = self.index()?;
        let scratch = &mut RowScratch::of(&self.spec.table, out.sources(&self.spec.places));
        while fetch.next < end && !out.is_full() {
            // So few that what was read is still in the processor's cache.
            let some = fetch.next..end.min(fetch.next + TOGETHER);
            let place = |i: usize| fetch.by_key.get(i).map_or(i, |(_, i)| *i);
            let keys: Vec<&[u8]> = some.clone().map(|i| fetch.pointers.at(place(i))).collect();
            ScanCounters::add(&self.counters.fetched, keys.len() as u64);
            for (key, value) in keys.iter().zip(self.get_many(self.spec.table.rows(), &keys)?) {
                let value = value.ok_or_else(|| dangling(self.spec, index, key))?;
                self.row_out(key, value, self.families(key)?.into_iter(), scratch, out)?;
            }
            fetch.next = some.end;
        }
        Ok(())
    }

    /// The same for many rows: reads them in key order, and gives them out in the order of the entries.
    fn fetch_in_order(&self, fetch: &mut Fetch, end: usize, out: &mut impl Sink) -> Result<()> {
        let (index, start, pointers) = (self.index()?, fetch.next, &fetch.pointers);
        let scratch = &mut RowScratch::of(&self.spec.table, out.sources(&self.spec.places));
        let mut rows: Vec<Fetched<'_>> = vec![(&[], Vec::new()); end - start];
        ScanCounters::add(&self.counters.fetched, rows.len() as u64);
        for some in pointers.by_key(start..end).chunks(TOGETHER) {
            let keys: Vec<&[u8]> = some.iter().map(|(_, i)| pointers.at(*i)).collect();
            let values = self.get_many(self.spec.table.rows(), &keys)?;
            for (((_, i), key), value) in some.iter().zip(&keys).zip(values) {
                let value = value.ok_or_else(|| dangling(self.spec, index, key))?;
                rows[i - start] = (value, self.families(key)?);
            }
        }
        for (value, families) in rows {
            if out.is_full() {
                // Rows are large: read fewer at once from here on.
                fetch.at_once = (2 * (fetch.next - start)).max(TOGETHER);
                break;
            }
            self.row_out(fetch.pointers.at(fetch.next), value, families.into_iter(), scratch, out)?;
            fetch.next += 1;
        }
        Ok(())
    }
}
