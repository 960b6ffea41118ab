//! What reading costs, in units of one entry scanned in order.
//!
//! The constants come from the measurements in `design.md` §8: an entry scanned costs about 0.09 µs,
//! a GET 1.3 µs, a seek about as much.

use std::collections::BTreeSet;

use crate::key::{KeyLayout, KeyRanges};
use crate::plan::Ranges;
use crate::store::KeyspaceId;

/// Every constant of the model.
pub struct CostModel {
    /// One entry looked at while a cursor walks.
    pub entry: f64,
    /// One GET by key.
    pub get: f64,
    /// Placing a cursor at the start of a range.
    pub seek: f64,
    /// One comparison of a sort.
    pub compare: f64,
    /// Share of entries that an equality on one key part leaves, when nothing is known.
    pub equal_share: f64,
    /// Share of entries that a range on one key part leaves, when nothing is known.
    pub range_share: f64,
    /// Share of rows that a residual filter leaves, when nothing is known.
    pub residual_share: f64,
    /// Entries that a keyspace is taken to have at the least.
    pub entries_min: u64,
    /// Entries a probe reads at the most to learn how long a range is.
    pub probe_entries: u64,
    /// Size of an index entry against a row, for scans of a whole index table.
    pub index_entry_share: f64,
}

/// The one model.
pub const COST: CostModel = CostModel {
    entry: 1.0,
    get: 12.0,
    seek: 12.0,
    compare: 0.1,
    equal_share: 0.01,
    range_share: 0.3,
    residual_share: 0.3,
    entries_min: 1000,
    probe_entries: 200,
    index_entry_share: 0.8,
};

/// What the planner may ask about the data.
pub trait Statistics {
    /// Entries in a keyspace.
    fn entries(&self, keyspace: KeyspaceId) -> u64;

    /// Entries inside `ranges`, counted up to `limit`.
    fn probe(&self, keyspace: KeyspaceId, ranges: &KeyRanges, limit: u64) -> u64;
}

/// Entries expected inside `ranges`.
pub fn entries_in(stats: &dyn Statistics, layout: &KeyLayout, keyspace: KeyspaceId, ranges: &Ranges) -> f64 {
    if ranges.ranges.is_empty() {
        return 0.0;
    }
    if ranges.points {
        return ranges.ranges.as_slice().len() as f64;
    }
    let stored = stats.entries(keyspace);
    // A plan for an almost empty table should not change with its first rows.
    let all = stored.max(COST.entries_min) as f64;
    if ranges.ranges.is_all() {
        return all;
    }
    if stored < COST.entries_min {
        return guess(all, layout, ranges);
    }
    let probed = stats.probe(keyspace, &ranges.ranges, COST.probe_entries);
    if probed < COST.probe_entries {
        return probed as f64;
    }
    guess(all, layout, ranges).clamp(probed as f64, all.max(probed as f64))
}

/// A share of all entries by how much of the key is bound: to one value, part by part, and to an
/// interval or a list in the last part.
fn guess(all: f64, layout: &KeyLayout, ranges: &Ranges) -> f64 {
    let mut seen = BTreeSet::new();
    // A part that repeats a column, such as its salt, narrows nothing by itself.
    let bound = layout
        .parts()
        .iter()
        .take(ranges.bound_parts)
        .filter(|part| part.columns().iter().fold(false, |new, id| seen.insert(*id) || new));
    let shares = bound.map(|part| match part.columns().iter().all(|id| ranges.fixed.contains_key(id)) {
        true => COST.equal_share,
        false => COST.range_share,
    });
    // A prefix of the rowkey itself binds no part, yet narrows.
    all * shares.reduce(|a, b| a * b).unwrap_or(COST.range_share)
}
