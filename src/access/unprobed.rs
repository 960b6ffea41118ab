//! Statistics that look at less of the data: for a first choice, or for one that was made before.

use std::cell::Cell;

use super::cost::{COST, Statistics};
use super::probe::Jumps;
use crate::key::{ColumnId, KeyRanges};
use crate::plan::Skip;
use crate::schema::TableStatistics;
use crate::store::KeyspaceId;

/// Statistics that do not measure jumps, as if none led far.
pub struct Unprobed<'a> {
    stats: &'a dyn Statistics,
    measures_ranges: bool,
    lacks_jumps: Cell<bool>,
}

impl<'a> Unprobed<'a> {
    /// Nothing is measured: every range counts as long.
    pub fn new(stats: &'a dyn Statistics) -> Unprobed<'a> {
        Unprobed { stats, measures_ranges: false, lacks_jumps: Cell::new(false) }
    }

    /// Ranges are measured, and jumps in keyspaces so small that these are known anyway.
    pub fn but_for_ranges(stats: &'a dyn Statistics) -> Unprobed<'a> {
        Unprobed { measures_ranges: true, ..Unprobed::new(stats) }
    }

    /// Somebody has asked for jumps in vain.
    pub fn lacks_jumps(&self) -> bool {
        self.lacks_jumps.get()
    }
}

impl Statistics for Unprobed<'_> {
    fn entries(&self, keyspace: KeyspaceId) -> u64 {
        self.stats.entries(keyspace)
    }

    fn is_counted(&self, keyspace: KeyspaceId) -> bool {
        self.stats.is_counted(keyspace)
    }

    fn estimate(&self, keyspace: KeyspaceId, ranges: &KeyRanges) -> Option<u64> {
        if self.measures_ranges { self.stats.estimate(keyspace, ranges) } else { None }
    }

    fn probe(&self, keyspace: KeyspaceId, ranges: &KeyRanges, limit: u64) -> u64 {
        if self.measures_ranges { self.stats.probe(keyspace, ranges, limit) } else { limit }
    }

    fn collected(&self) -> Option<&TableStatistics> {
        self.stats.collected()
    }

    fn written_at(&self) -> Option<ColumnId> {
        self.stats.written_at()
    }

    fn jumps(&self, keyspace: KeyspaceId, ranges: &KeyRanges, skip: &Skip) -> Jumps {
        if self.measures_ranges && self.entries(keyspace) < COST.entries_min {
            return self.stats.jumps(keyspace, ranges, skip);
        }
        self.lacks_jumps.set(true);
        Jumps::default()
    }
}
