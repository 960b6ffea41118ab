//! Answers the planner's questions about sizes from the snapshot that a query reads.

use std::sync::{Arc, Mutex, PoisonError};

use crate::access::{COST, Jumps, Statistics, probe_jumps};
use crate::error::Result;
use crate::key::{ColumnId, KeyRanges};
use crate::plan::{Skip, SkipShape};
use crate::schema::TableStatistics;
use crate::store::{Direction, KeyspaceId, Snapshot};

/// Ranges (count) to estimate one by one; of more, evenly spaced ones stand for all.
const RANGES_ESTIMATED: usize = 64;

/// How far the jumps of skip scans led through one long range, by keyspace and by what they skip. All runs of a cached
/// plan share it: to find out takes as long as to read some hundred entries.
#[derive(Clone, Debug, Default)]
pub struct JumpSamples(Arc<Mutex<Vec<JumpSample>>>);

#[derive(Debug)]
struct JumpSample {
    keyspace: KeyspaceId,
    shape: SkipShape,
    /// Entries (count) of the keyspace at the time.
    entries: u64,
    jumps: Jumps,
}

impl JumpSamples {
    /// The sample of a keyspace with so many entries, taken if there is none, or if it has grown or shrunk since.
    fn of(
        &self,
        (keyspace, entries): (KeyspaceId, u64),
        skip: &Skip,
        probe: impl FnOnce() -> Jumps,
    ) -> Jumps {
        let shape = skip.shape();
        let is_it = |sample: &JumpSample| sample.keyspace == keyspace && sample.shape == shape;
        let holds = |sample: &JumpSample| {
            entries.max(sample.entries) as f64 <= GROWN * entries.min(sample.entries) as f64
        };
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sample) = known().iter().find(|sample| is_it(sample) && holds(sample)) {
            return sample.jumps;
        }
        let jumps = probe();
        if !jumps.done {
            let mut known = known();
            known.retain(|sample| !is_it(sample));
            known.push(JumpSample { keyspace, shape, entries, jumps });
        }
        jumps
    }
}

/// A sample of a table that has grown, or shrunk, this many times is taken anew.
pub const GROWN: f64 = 2.0;

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
        let probe =
            || -> Result<Jumps> { probe_jumps(&*self.snapshot.unrecorded()?, keyspace, ranges, skip) };
        let probe = || probe().unwrap_or_default();
        match (self.entries(keyspace), ranges.as_slice()) {
            (entries, [_]) if entries >= COST.entries_min => self.jumps.of((keyspace, entries), skip, probe),
            _ => probe(),
        }
    }
}
