//! Counts how much each region of a table is read and written, since the database was opened or the regions were cut.
//!
//! Nothing is stored. A count is one atomic addition; now and then it checks the clock and saves the counts so far,
//! so that the last minutes can be shown in slices of time.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::Mutex;

use crate::key::Rowkey;

/// Length of a slice of time, at first and at most: it doubles when there are too many slices.
const SLICE_MS: (u64, u64) = (1_000, 16_000);
/// Slices kept (count).
const SLICES: usize = 60;
/// Counts of a region between two checks of the clock.
const LOOK_EVERY: u64 = 64;

/// Kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficKind {
    /// A row was read by a query.
    Read,
    /// A row was written by a statement, whether it was committed or not.
    Write,
}

/// Rows read, rows written.
pub type Counts = [u64; 2];

/// Counters of a table's regions; clones share them.
#[derive(Clone, Default)]
pub struct Traffic(Arc<OnceLock<Counters>>);

struct Counters {
    since: Instant,
    regions: Box<[[AtomicU64; 2]]>,
    /// The region of the last row: the next one is often there too.
    last: AtomicUsize,
    /// Time of the next mark.
    next_ms: AtomicU64,
    marks: Mutex<Marks>,
}

/// The counts when each slice began, in order.
struct Marks {
    slice_ms: u64,
    all: Vec<(u64, Vec<Counts>)>,
}

/// Recent activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lately {
    /// Length of a slice of time.
    pub slice_ms: u64,
    /// Slices with any activity: number of the slice, and counts by region.
    pub slices: Vec<(u64, Vec<Counts>)>,
    /// Number of the current slice.
    pub now: u64,
    /// Milliseconds of the current slice that have passed.
    pub passed_ms: u64,
}

impl Traffic {
    /// Counts a row in its region, determined by `splits`.
    pub fn count(&self, access: TrafficKind, splits: &[Rowkey], rowkey: &[u8]) {
        let counters = self.0.get_or_init(|| Counters::new(splits.len() + 1));
        let Some(counter) = counters.regions.get(counters.region_of(splits, rowkey)) else { return };
        let before = counter[access as usize].fetch_add(1, Ordering::Relaxed);
        if before.is_multiple_of(LOOK_EVERY) {
            counters.mark(counters.since.elapsed().as_millis() as u64);
        }
    }

    /// Rows read and written, by region; empty if none were.
    pub fn counts(&self) -> Vec<Counts> {
        self.0.get().map_or_else(Vec::new, Counters::counts)
    }

    /// The last minutes; `None` if there was no activity yet.
    pub fn lately(&self) -> Option<Lately> {
        self.0.get().map(|counters| counters.lately(counters.since.elapsed().as_millis() as u64))
    }
}

impl Counters {
    fn new(regions: usize) -> Counters {
        let regions: Box<[_]> = (0..regions).map(|_| [AtomicU64::new(0), AtomicU64::new(0)]).collect();
        let first = (0, vec![[0, 0]; regions.len()]);
        let marks = Mutex::new(Marks { slice_ms: SLICE_MS.0, all: vec![first] });
        let next_ms = AtomicU64::new(SLICE_MS.0);
        Counters { since: Instant::now(), regions, last: AtomicUsize::new(0), next_ms, marks }
    }

    fn region_of(&self, splits: &[Rowkey], rowkey: &[u8]) -> usize {
        let last = self.last.load(Ordering::Relaxed);
        let from = last.checked_sub(1).and_then(|at| splits.get(at));
        let is_there = from.is_none_or(|from| from[..] <= *rowkey)
            && splits.get(last).is_none_or(|end| *rowkey < end[..]);
        if is_there {
            return last;
        }
        let region = splits.partition_point(|cut| cut[..] <= *rowkey);
        self.last.store(region, Ordering::Relaxed);
        region
    }

    fn counts(&self) -> Vec<Counts> {
        let load = |counter: &[AtomicU64; 2]| counter.each_ref().map(|n| n.load(Ordering::Relaxed));
        self.regions.iter().map(load).collect()
    }

    fn mark(&self, now_ms: u64) {
        if now_ms < self.next_ms.load(Ordering::Relaxed) {
            return;
        }
        let mut marks = self.marks.lock();
        let slice = now_ms / marks.slice_ms;
        if marks.all.last().is_some_and(|(last, _)| *last >= slice) {
            // Another thread has made the mark.
            return;
        }
        marks.all.push((slice, self.counts()));
        if marks.all.len() > SLICES {
            marks.make_room();
        }
        self.next_ms.store((now_ms / marks.slice_ms + 1) * marks.slice_ms, Ordering::Relaxed);
    }

    fn lately(&self, now_ms: u64) -> Lately {
        let marks = self.marks.lock();
        let (slice_ms, now) = (marks.slice_ms, now_ms / marks.slice_ms);
        let ends = marks.all.iter().skip(1).map(|(_, counts)| counts.clone()).chain([self.counts()]);
        let done = |((slice, start), end): (&(u64, Vec<Counts>), Vec<Counts>)| {
            let less = |(end, start): (&Counts, &Counts)| [end[0] - start[0], end[1] - start[1]];
            (*slice, end.iter().zip(start).map(less).collect())
        };
        let slices = marks.all.iter().zip(ends).map(done).filter(|(slice, _)| slice + SLICES as u64 > now);
        Lately { slice_ms, slices: slices.collect(), now, passed_ms: now_ms % slice_ms }
    }
}

impl Marks {
    /// Joins slices in pairs, or drops the oldest.
    fn make_room(&mut self) {
        if self.slice_ms >= SLICE_MS.1 {
            self.all.remove(0);
            return;
        }
        self.slice_ms *= 2;
        self.all.iter_mut().for_each(|(slice, _)| *slice /= 2);
        self.all.dedup_by_key(|(slice, _)| *slice);
    }
}

/// Counters are not part of a definition.
impl PartialEq for Traffic {
    fn eq(&self, _: &Traffic) -> bool {
        true
    }
}

impl fmt::Debug for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Traffic({:?})", self.counts())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_in_its_region_wherever_the_last_one_was() {
        let splits: Vec<Rowkey> = ["d", "m", "t"].map(Rowkey::from).into();
        let counters = Counters::new(splits.len() + 1);
        let keys = ["", "c", "d", "dd", "lzz", "m", "s", "t", "zz"];
        for before in keys {
            for key in keys {
                counters.region_of(&splits, before.as_bytes());
                let expected = splits.iter().filter(|cut| cut[..] <= *key.as_bytes()).count();
                assert_eq!(counters.region_of(&splits, key.as_bytes()), expected, "{before}, {key}");
            }
        }
    }

    #[test]
    fn slices_add_up_and_are_forgotten_in_time() {
        let counters = Counters::new(2);
        let add = |region: usize, access: TrafficKind, n| {
            counters.regions[region][access as usize].fetch_add(n, Ordering::Relaxed);
        };
        add(0, TrafficKind::Write, 5);
        counters.mark(2_100);
        add(1, TrafficKind::Write, 7);
        add(1, TrafficKind::Read, 1);
        counters.mark(2_900);
        assert_eq!(counters.counts(), [[0, 5], [1, 7]]);
        let both = vec![(0, vec![[0, 5], [0, 0]]), (2, vec![[0, 0], [1, 7]])];
        let lately = counters.lately(3_250);
        assert_eq!(lately, Lately { slice_ms: 1_000, slices: both.clone(), now: 3, passed_ms: 250 });
        assert_eq!(counters.lately(60_000).slices, both[1..]);
        // Pairs are joined, until slices have their full length.
        (3..60).for_each(|second| counters.mark(second * 1_000));
        let all = counters.lately(60_000);
        assert_eq!((all.slice_ms, all.slices.len()), (1_000, 58));
        (60..120).for_each(|second| counters.mark(second * 1_000));
        let all = counters.lately(120_000);
        assert_eq!((all.slice_ms, all.slices.len()), (2_000, 59));
        assert_eq!(all.slices[0], (1, vec![[0, 0], [1, 7]]));
        (120..100_000).for_each(|second| counters.mark(second * 1_000));
        let all = counters.lately(100_000_000);
        assert_eq!((all.slice_ms, all.now, all.slices.len()), (16_000, 6_250, 59));
        assert_eq!(counters.marks.lock().all.len(), SLICES);
    }
}
