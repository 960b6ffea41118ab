//! How much the regions of a table are read and written, from the first time after the database was opened or they
//! were cut.
//!
//! Nothing of it is stored. A count is one atomic addition; now and then it looks at the clock, and keeps what
//! there was up to then, so that the last minutes can be seen slice by slice.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// Length of a slice of time.
pub const SLICE_MS: u64 = 10_000;
/// Slices kept (count).
pub const SLICES: usize = 60;
/// Counts of a region between two looks at the clock.
const LOOK_EVERY: u64 = 64;

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
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
    /// The slice after which the clock is news.
    slice: AtomicU64,
    marks: Mutex<VecDeque<Mark>>,
}

/// What there was when a slice was first seen.
struct Mark {
    slice: u64,
    counts: Vec<Counts>,
}

/// What was done in a slice of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Its number, from the first one on.
    pub number: u64,
    /// By region.
    pub counts: Vec<Counts>,
}

impl Traffic {
    /// Counts a row of `region`, of so many.
    pub fn count(&self, access: Access, region: usize, regions: usize) {
        let counters = self.0.get_or_init(|| Counters::new(regions));
        let Some(counter) = counters.regions.get(region) else { return };
        let before = counter[access as usize].fetch_add(1, Ordering::Relaxed);
        if before.is_multiple_of(LOOK_EVERY) {
            counters.mark(counters.since.elapsed().as_millis() as u64 / SLICE_MS);
        }
    }

    /// Rows read and written, by region; empty if none were.
    pub fn counts(&self) -> Vec<Counts> {
        self.0.get().map_or_else(Vec::new, Counters::counts)
    }

    /// The slices in which anything was done, of the last [`SLICES`], and the number of the one that goes on.
    pub fn slices(&self) -> (Vec<Slice>, u64) {
        let Some(counters) = self.0.get() else { return (Vec::new(), 0) };
        let now = counters.since.elapsed().as_millis() as u64 / SLICE_MS;
        (counters.slices(now), now)
    }
}

impl Counters {
    fn new(regions: usize) -> Counters {
        let regions: Box<[_]> = (0..regions).map(|_| [AtomicU64::new(0), AtomicU64::new(0)]).collect();
        let first = Mark { slice: 0, counts: vec![[0, 0]; regions.len()] };
        let marks = Mutex::new(VecDeque::from([first]));
        Counters { since: Instant::now(), regions, slice: AtomicU64::new(0), marks }
    }

    fn counts(&self) -> Vec<Counts> {
        let load = |counter: &[AtomicU64; 2]| counter.each_ref().map(|n| n.load(Ordering::Relaxed));
        self.regions.iter().map(load).collect()
    }

    fn mark(&self, slice: u64) {
        if slice <= self.slice.load(Ordering::Relaxed) {
            return;
        }
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever came first has seen it.
        if self.slice.fetch_max(slice, Ordering::Relaxed) < slice {
            marks.push_back(Mark { slice, counts: self.counts() });
            if marks.len() > SLICES {
                marks.pop_front();
            }
        }
    }

    fn slices(&self, now: u64) -> Vec<Slice> {
        let marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let ends = marks.iter().skip(1).map(|mark| mark.counts.clone()).chain([self.counts()]);
        let done = |(mark, end): (&Mark, Vec<Counts>)| {
            let less = |(end, start): (&Counts, &Counts)| [end[0] - start[0], end[1] - start[1]];
            Slice { number: mark.slice, counts: end.iter().zip(&mark.counts).map(less).collect() }
        };
        let slices = marks.iter().zip(ends).map(done);
        slices.filter(|slice| slice.number + SLICES as u64 > now).collect()
    }
}

/// Counters say nothing about a definition.
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
    fn slices_add_up_and_are_forgotten_in_time() {
        let counters = Counters::new(2);
        let add = |region: usize, access: Access, n| {
            counters.regions[region][access as usize].fetch_add(n, Ordering::Relaxed);
        };
        add(0, Access::Write, 5);
        counters.mark(2);
        add(1, Access::Write, 7);
        add(1, Access::Read, 1);
        counters.mark(2);
        assert_eq!(counters.counts(), [[0, 5], [1, 7]]);
        let slice = |number, counts: [Counts; 2]| Slice { number, counts: counts.to_vec() };
        assert_eq!(counters.slices(3), [slice(0, [[0, 5], [0, 0]]), slice(2, [[0, 0], [1, 7]])]);
        assert_eq!(counters.slices(60), [slice(2, [[0, 0], [1, 7]])]);
        (3..200).for_each(|slice| counters.mark(slice));
        assert_eq!(counters.marks.lock().unwrap().len(), SLICES);
    }
}
