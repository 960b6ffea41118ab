//! Answers the planner's questions about sizes from the snapshot that a query reads.

use super::samples::Samples;
use crate::access::{COST, Jumps, Statistics, probe_jumps};
use crate::error::Result;
use crate::key::{ColumnId, KeyRanges};
use crate::plan::{Skip, SkipShape};
use crate::schema::TableStatistics;
use crate::store::{Direction, KeyspaceId, Snapshot};

/// Ranges (count) to estimate one by one; of more, evenly spaced ones stand for all.
const RANGES_ESTIMATED: usize = 64;

/// How far the jumps of skip scans led through one long range, by keyspace and by what they skip: to find out takes as
/// long as to read some hundred entries.
pub type JumpSamples = Samples<(KeyspaceId, SkipShape), Jumps>;

/// Statistics of the snapshot. Data that cannot be read counts as empty: the scan itself reports it.
pub struct StoreStatistics<'a> {
    /// The snapshot of the query.
    pub snapshot: &'a dyn Snapshot,
    /// What ANALYZE found, if it ran.
    pub collected: Option<&'a TableStatistics>,
    /// As [`Statistics::written_at`].
    pub written_at: Option<ColumnId>,
    /// What earlier runs have found out.
    pub jumps: &'a JumpSamples,
}

impl Statistics for StoreStatistics<'_> {
    fn collected(&self) -> Option<&TableStatistics> {
        self.collected
    }

    fn written_at(&self) -> Option<ColumnId> {
        self.written_at
    }

    fn entries(&self, keyspace: KeyspaceId) -> u64 {
        self.snapshot.unrecorded().and_then(|r| r.entries(keyspace)).unwrap_or(0)
    }

    fn is_counted(&self, keyspace: KeyspaceId) -> bool {
        let count = self.snapshot.unrecorded().and_then(|reader| reader.count(keyspace));
        matches!(count, Ok(Some(_)))
    }

    fn estimate(&self, keyspace: KeyspaceId, ranges: &KeyRanges) -> Option<u64> {
        let ranges = ranges.as_slice();
        let every = (ranges.len() / RANGES_ESTIMATED).max(1);
        let reader = self.snapshot.unrecorded().ok()?;
        // The scan itself reports a damaged page.
        let asked = ranges.iter().step_by(every);
        let mut entries = asked.map(|range| reader.estimate(keyspace, range).ok().flatten());
        entries.try_fold(0u64, |sum, entries| sum.checked_add(entries?))?.checked_mul(every as u64)
    }

    fn probe(&self, keyspace: KeyspaceId, ranges: &KeyRanges, limit: u64) -> u64 {
        let count = || -> Result<u64> {
            let reader = self.snapshot.unrecorded()?;
            let mut n = 0;
            for range in ranges.as_slice().iter().take(limit as usize) {
                let mut cursor = reader.cursor(keyspace, range, Direction::Forward)?;
                while n < limit && cursor.next()?.is_some() {
                    n += 1;
                }
            }
            Ok(n)
        };
        count().unwrap_or(0)
    }

    fn jumps(&self, keyspace: KeyspaceId, ranges: &KeyRanges, skip: &Skip) -> Jumps {
        let (asked, entries) = ((keyspace, skip.shape()), self.entries(keyspace));
        let is_long = ranges.as_slice().len() == 1 && entries >= COST.entries_min;
        if let Some(known) = self.jumps.known(&asked, entries as f64).filter(|_| is_long) {
            return known;
        }
        let probe = || probe_jumps(&*self.snapshot.unrecorded()?, keyspace, ranges, skip);
        let Ok(found) = probe() else { return Jumps::default() };
        if is_long && !found.done {
            self.jumps.keep(asked, entries as f64, found);
        }
        found
    }
}
