//! What reading costs, in units of one entry scanned in order.
//!
//! The constants come from the measurements in `design.md` §8: an entry scanned costs about 0.09 µs,
//! a GET 1.3 µs, a seek about as much.

use std::collections::BTreeSet;

use crate::key::{KeyLayout, KeyRanges};
use crate::plan::{CmpOp, Field, Predicate, Ranges};
use crate::schema::{IndexDef, TableDef};
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
    /// Share of entries that an equality on one column leaves, when nothing is known.
    pub equal_share: f64,
    /// Share of entries that a range on one column leaves, when nothing is known and one end is open.
    pub range_share: f64,
    /// The same with both ends bounded, or with a LIKE: few ask for much of a table in this way.
    pub between_share: f64,
    /// Share of rows that a residual filter leaves, when nothing is known.
    pub residual_share: f64,
    /// Entries that a keyspace is taken to have at the least.
    pub entries_min: u64,
    /// The same for an index with a WHERE.
    pub partial_entries_min: u64,
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
    between_share: 0.02,
    residual_share: 0.3,
    entries_min: 1000,
    partial_entries_min: 50,
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

/// Entries sorted by a layout.
#[derive(Clone, Copy)]
pub struct Sorted<'a> {
    /// What they are sorted by.
    pub layout: &'a KeyLayout,
    /// Where they lie.
    pub keyspace: KeyspaceId,
    /// Entries it is taken to have at the least: a plan should not change with the first rows.
    pub entries_min: u64,
}

impl<'a> Sorted<'a> {
    /// The rows of a table.
    pub fn table(table: &'a TableDef) -> Self {
        Sorted { layout: &table.key, keyspace: table.rows(), entries_min: COST.entries_min }
    }

    /// The entries of an index; those of a partial one are few.
    pub fn index(index: &'a IndexDef) -> Self {
        let entries_min = if index.filter.is_some() { COST.partial_entries_min } else { COST.entries_min };
        Sorted { layout: &index.layout, keyspace: index.keyspace, entries_min }
    }
}

/// Entries expected inside the ranges found for `predicate`.
pub fn entries_in(stats: &dyn Statistics, sorted: Sorted<'_>, predicate: &Predicate, found: &Ranges) -> f64 {
    if found.ranges.is_empty() {
        return 0.0;
    }
    if found.points {
        return found.ranges.as_slice().len() as f64;
    }
    let Sorted { layout, keyspace, entries_min } = sorted;
    let stored = stats.entries(keyspace);
    let all = stored.max(entries_min) as f64;
    if found.ranges.is_all() {
        return all;
    }
    let guess = all * share(layout, predicate, found);
    if stored < entries_min {
        return guess;
    }
    let probed = stats.probe(keyspace, &found.ranges, COST.probe_entries);
    if probed < COST.probe_entries {
        return probed as f64;
    }
    guess.clamp(probed as f64, all.max(probed as f64))
}

/// Entries inside `ranges` of a keyspace that has fewer than the model takes it to have; they are counted.
pub fn counted_in(stats: &dyn Statistics, keyspace: KeyspaceId, ranges: &KeyRanges) -> Option<u64> {
    let stored = stats.entries(keyspace);
    match stored < COST.entries_min {
        true if ranges.is_all() => Some(stored),
        true => Some(stats.probe(keyspace, ranges, COST.entries_min)),
        false => None,
    }
}

/// The share of all entries that the conditions on the bound parts leave, each column counted once.
fn share(layout: &KeyLayout, predicate: &Predicate, found: &Ranges) -> f64 {
    let parts = layout.parts().iter().take(found.bound_parts);
    let columns = parts.flat_map(|part| part.columns()).map(|id| Field::Column(*id));
    let bound: BTreeSet<Field> = columns.chain([Field::Rowkey]).collect();
    let conjuncts = predicate.clone().conjuncts();
    let share_of = |field: &Field| {
        if matches!(field, Field::Column(id) if found.fixed.contains_key(id)) {
            return COST.equal_share;
        }
        let about = || conjuncts.iter().filter(|p| p.fields() == [*field]);
        let (mut above, mut below) = (false, false);
        for condition in about() {
            match condition {
                Predicate::Compare { op: CmpOp::Gt | CmpOp::Ge, .. } => above = true,
                Predicate::Compare { op: CmpOp::Lt | CmpOp::Le, .. } => below = true,
                Predicate::Compare { op: CmpOp::Eq, .. } | Predicate::IsNull { negated: false, .. } => {
                    return COST.equal_share;
                }
                Predicate::In { values, negated: false, .. } => {
                    return (values.len() as f64 * COST.equal_share).min(COST.range_share);
                }
                Predicate::Like { negated: false, .. } => (above, below) = (true, true),
                _ => {}
            }
        }
        match (above && below, *field == Field::Rowkey && about().next().is_none()) {
            (_, true) => 1.0,
            (true, _) => COST.between_share,
            (false, _) => COST.range_share,
        }
    };
    bound.iter().map(share_of).product()
}
