//! The cost model, in units of one entry scanned in order.
//!
//! The constants come from measurements (`point_get` and `range_scan` in `benches/peers`): an entry scanned costs about
//! 0.09 µs, a GET 1.3 µs, a seek about as much.

use std::collections::{BTreeMap, BTreeSet};

use super::path::Access;
use super::probe::Jumps;
use super::selectivity::{share_of_field, share_of_fields};
use crate::key::{ColumnId, KeyLayout, KeyPart, KeyRanges};
use crate::plan::{CmpOp, Field, Predicate, Ranges, Skip, Skipping, possible_values};
use crate::schema::{IndexDef, TableDef, TableStatistics};
use crate::store::KeyspaceId;
use crate::value::Value;

/// Every constant of the model.
pub struct CostModel {
    /// One entry visited by a cursor.
    pub entry: f64,
    /// One GET by key.
    pub get: f64,
    /// One GET of a batch.
    pub fetch: f64,
    /// Placing a cursor at the start of a range.
    pub seek: f64,
    /// Planning the key range of one more value, told at run time, along one path.
    pub learned: f64,
    /// One row that is given out where the first of its group would do.
    pub needless: f64,
    /// One comparison of a sort.
    pub compare: f64,
    /// Share of entries that an equality on one column leaves, without statistics.
    pub equal_share: f64,
    /// Share of entries that a range on one column leaves, without statistics, if one end is open.
    pub range_share: f64,
    /// The same with both ends bounded, or for LIKE: few such conditions select much of a table.
    pub between_share: f64,
    /// Share of entries that begin a new value of the unrestricted key parts, without statistics.
    pub jump_share: f64,
    /// Entries that a jump passes, if it is too far for steps and the store cannot tell.
    pub jump_entries: f64,
    /// Share of rows that a residual filter leaves, without statistics.
    pub residual_share: f64,
    /// Entries that a keyspace is assumed to have, at least.
    pub entries_min: u64,
    /// The same for a partial index.
    pub partial_entries_min: u64,
    /// Entries that a probe reads, at most, to measure a range.
    pub probe_entries: u64,
    /// Entries, at most, whose rows are fetched without asking how many there are, where only the whole table could be
    /// cheaper.
    pub unpriced_entries: u64,
    /// Share of a guess that a longer probe reads without statistics. It costs little compared with acting on a guess
    /// that is ten times too high.
    pub long_probe_share: f64,
    /// Entries that a longer probe reads, at most.
    pub long_probe_entries: u64,
    /// A probe of jumps, about, in entries: what costs less needs no better path.
    pub probe_of_jumps: f64,
    /// Jumps (count) beyond which a probe would not reach the end, so that ANALYZE's numbers are used.
    pub probed_jumps: f64,
    /// Entries (count) of a path below which combinations of indexes are not tried.
    pub short_entries: f64,
    /// Size of an index entry relative to a row, for scans of a whole index.
    pub index_entry_share: f64,
}

/// The one model.
pub const COST: CostModel = CostModel {
    entry: 1.0,
    get: 12.0,
    fetch: 6.0,
    seek: 12.0,
    learned: 25.0,
    needless: 2.0,
    compare: 0.1,
    equal_share: 0.01,
    range_share: 0.3,
    between_share: 0.02,
    jump_share: 0.02,
    jump_entries: 100.0,
    residual_share: 0.3,
    entries_min: 1000,
    partial_entries_min: 50,
    probe_entries: 200,
    unpriced_entries: 512,
    long_probe_share: 0.25,
    long_probe_entries: 4000,
    probe_of_jumps: 1000.0,
    probed_jumps: 200.0,
    short_entries: 32.0,
    index_entry_share: 0.8,
};

/// What the planner asks about the data.
pub trait Statistics {
    /// Entries in a keyspace.
    fn entries(&self, keyspace: KeyspaceId) -> u64;

    /// Is the exact number of entries known without reading them?
    fn is_counted(&self, _: KeyspaceId) -> bool {
        false
    }

    /// Estimated entries inside `ranges`; `None` if they have to be counted.
    fn estimate(&self, keyspace: KeyspaceId, ranges: &KeyRanges) -> Option<u64>;

    /// Entries inside `ranges`, counted up to `limit`.
    fn probe(&self, keyspace: KeyspaceId, ranges: &KeyRanges, limit: u64) -> u64;

    /// The statistics of ANALYZE, if it was run.
    fn collected(&self) -> Option<&TableStatistics>;

    /// The hidden write-time column; a condition on it is about expiry and true for nearly all rows.
    fn written_at(&self) -> Option<ColumnId>;

    /// Measures jumps inside `ranges`.
    fn jumps(&self, keyspace: KeyspaceId, ranges: &KeyRanges, skip: &Skip) -> Jumps;
}

/// A keyspace sorted by a layout.
#[derive(Clone, Copy)]
pub struct Sorted<'a> {
    /// The layout.
    pub layout: &'a KeyLayout,
    /// The keyspace.
    pub keyspace: KeyspaceId,
    /// Entries it is assumed to have, at least: the plan should not change with the first rows.
    pub entries_min: u64,
}

impl<'a> Sorted<'a> {
    /// The rows of a table.
    pub fn table(table: &'a TableDef) -> Self {
        Sorted { layout: &table.key, keyspace: table.rows(), entries_min: COST.entries_min }
    }

    /// The entries of an index, sorted by `layout`; a partial index is assumed to be smaller.
    pub fn index(index: &'a IndexDef, layout: &'a KeyLayout) -> Self {
        let entries_min = if index.filter.is_some() { COST.partial_entries_min } else { COST.entries_min };
        Sorted { layout, keyspace: index.keyspace, entries_min }
    }
}

/// Entries expected inside the ranges that were found for `predicate`.
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
    let collected = stats.collected();
    let independent = all
        * share_of_buckets(layout, predicate, found)
        * share(collected, predicate, &found.fixed, &bound_fields(layout, found));
    let guess = match prefix_share(collected, sorted, found) {
        // Columns may be correlated, such as city and country.
        Some(share) => independent.max(all * share),
        None => independent,
    };
    if stored < entries_min {
        return guess;
    }
    if let Some(entries) = stats.estimate(keyspace, &found.ranges) {
        return entries as f64;
    }
    let mut probed = 0;
    for most in [COST.probe_entries, long_probe(collected, guess)] {
        if most > probed {
            probed = stats.probe(keyspace, &found.ranges, most);
            if probed < most {
                return probed as f64;
            }
        }
    }
    guess.clamp(probed as f64, all.max(probed as f64))
}

/// Entries to probe before a guess is believed.
fn long_probe(collected: Option<&TableStatistics>, guess: f64) -> u64 {
    match collected {
        Some(_) => 0,
        None => ((guess * COST.long_probe_share) as u64).min(COST.long_probe_entries),
    }
}

/// Cost of sorting this many entries.
pub fn sorting(entries: f64) -> f64 {
    if entries > 1.0 { entries * entries.log2() * COST.compare } else { 0.0 }
}

/// Entries inside `ranges`, counted, if the keyspace is smaller than the model assumes; otherwise `None`.
pub fn counted_in(stats: &dyn Statistics, keyspace: KeyspaceId, ranges: &KeyRanges) -> Option<u64> {
    let stored = stats.entries(keyspace);
    match stored < COST.entries_min {
        true if ranges.is_all() => Some(stored),
        true => Some(stats.probe(keyspace, ranges, COST.entries_min)),
        false => None,
    }
}

/// The work of a skip scan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jumping {
    /// Times that a key cannot match and the walk jumps to the next that can.
    pub jumps: f64,
    /// Entries that can match.
    pub possible: f64,
}

/// Expected work of a skip scan over the ranges found for `predicate`, which hold `scanned` entries; `None`
/// if there is hardly anything to skip.
pub fn jumping_in(
    stats: &dyn Statistics,
    sorted: Sorted<'_>,
    (predicate, found): (&Predicate, &Ranges),
    skipping: &Skipping,
    scanned: f64,
) -> Option<Jumping> {
    let groups = |entries: f64| Jumping { jumps: entries, possible: entries };
    let expected = || {
        let bound = bound_fields(sorted.layout, found);
        let gap = skipping.by.fields().into_iter().filter(|field| !bound.contains(field)).collect();
        scanned * share(stats.collected(), predicate, &found.fixed, &gap)
    };
    if skipping.skip.each_of().is_some() && stats.entries(sorted.keyspace) < sorted.entries_min {
        return Some(groups(scanned * COST.jump_share));
    }
    if stats.entries(sorted.keyspace) < sorted.entries_min {
        if is_scattered(sorted.layout, predicate) {
            return None;
        }
        return Some(Jumping { jumps: scanned * COST.jump_share, possible: expected() });
    }
    let told = stats.collected().and_then(|c| c.prefixes(sorted.keyspace, skipping.gap)).map(|prefixes| {
        let read = scanned / (stats.entries(sorted.keyspace) as f64).max(1.0);
        if skipping.skip.each_of().is_some() {
            return groups((prefixes as f64 * read).clamp(1.0, scanned.max(1.0)));
        }
        // To each prefix, and after each of its possible values to the next.
        let values: f64 =
            possible_values(&skipping.by).values().map(|set| set.intervals().len() as f64).product();
        let prefixes = (prefixes as f64 * read).max(1.0);
        let of_each = 1.0 + values.max(1.0).min(scanned / prefixes);
        Jumping { jumps: (of_each * prefixes).min(scanned), possible: expected() }
    });
    if let Some(told) = told.filter(|told| told.jumps > COST.probed_jumps) {
        return Some(told);
    }
    let seen = stats.jumps(sorted.keyspace, &found.ranges, &skipping.skip);
    let (jumps, possible) = (seen.jumps as f64, seen.possible as f64);
    if seen.done {
        return Some(Jumping { jumps, possible });
    }
    if told.is_some() {
        return told;
    }
    // Of each group the first row is enough, also where the next group is near.
    let is_near = skipping.skip.each_of().is_none() && seen.seeks * 4 < seen.jumps;
    if is_near || seen.jumps == 0 {
        return None;
    }
    let passed = (seen.entries + seen.passed) as f64 / jumps;
    let all_jumps = scanned / passed;
    Some(Jumping { jumps: all_jumps, possible: possible / jumps * all_jumps })
}

/// Is an unrestricted hash in front, so that nearly every key has another value of it?
fn is_scattered(layout: &KeyLayout, predicate: &Predicate) -> bool {
    let known = predicate.fields();
    let is_known = |part: &KeyPart| part.columns().iter().any(|c| known.contains(&Field::Column(*c)));
    let gap = layout
        .parts()
        .iter()
        .take_while(|part| part.is_literal() || !part.facts().injective || !is_known(part));
    gap.into_iter().any(|part| !part.is_literal() && !part.facts().injective && part.buckets().is_none())
}

/// The columns of the bound parts but for those of buckets, each of which has many values, and the rowkey.
fn bound_fields(layout: &KeyLayout, found: &Ranges) -> BTreeSet<Field> {
    let parts = layout.parts().iter().take(found.bound_parts).filter(|part| part.buckets().is_none());
    let columns = parts.flat_map(|part| part.columns()).map(|id| Field::Column(*id));
    columns.chain([Field::Rowkey]).collect()
}

/// The share of all entries in the buckets that the ranges include, where no other bound part tells the hashed value.
/// Each listed value hashes to some bucket.
fn share_of_buckets(layout: &KeyLayout, predicate: &Predicate, found: &Ranges) -> f64 {
    let bound = layout.parts().iter().take(found.bound_parts);
    if bound.clone().all(|part| part.buckets().is_none()) {
        return 1.0;
    }
    let told = bound_fields(layout, found);
    let possible = possible_values(predicate);
    let share = |part: &KeyPart| {
        let buckets = f64::from(part.buckets()?);
        if let Some(named) = named_buckets(part, predicate) {
            return Some((named / buckets).min(1.0));
        }
        let fields = part.columns().iter().map(|id| Field::Column(*id)).filter(|field| !told.contains(field));
        let listed = |field| Some(possible.get(&field)?.points()?.len() as f64);
        let fields: Vec<Field> = fields.collect();
        let values = fields.iter().map(|field| listed(*field)).product::<Option<f64>>()?;
        (!fields.is_empty()).then(|| 1.0 - (1.0 - 1.0 / buckets).powf(values))
    };
    bound.filter_map(share).product()
}

/// The buckets (count) that a condition names: `id % 8 = 3`.
fn named_buckets(part: &KeyPart, predicate: &Predicate) -> Option<f64> {
    match predicate {
        Predicate::Part { part: named, op: CmpOp::Eq, .. } => part.computes(named).then_some(1.0),
        Predicate::And(terms) => terms.iter().find_map(|term| named_buckets(part, term)),
        Predicate::Or(terms) => terms.iter().map(|term| named_buckets(part, term)).sum(),
        _ => None,
    }
}

/// The share of all entries with one prefix of the bound parts, if all of them have one value.
fn prefix_share(collected: Option<&TableStatistics>, sorted: Sorted<'_>, found: &Ranges) -> Option<f64> {
    let mut bound = sorted.layout.parts().iter().take(found.bound_parts);
    let is_fixed = |part: &KeyPart| part.columns().iter().all(|c| found.fixed.contains_key(c));
    if found.bound_parts < 2 || !bound.all(is_fixed) {
        return None;
    }
    let prefixes = collected?.prefixes(sorted.keyspace, found.bound_parts)?;
    Some(1.0 / prefixes.max(1) as f64)
}

/// Share of rows that a filter leaves, as far as known.
pub fn residual_share(stats: &dyn Statistics, residual: &Predicate) -> f64 {
    let share = |residual: &Predicate| {
        if residual.is_true() {
            return 1.0;
        }
        match share_of_fields(stats.collected(), residual, &residual.fields()) {
            Some(share) if !residual.has_opaque() => share.max(1e-6),
            _ => COST.residual_share,
        }
    };
    let Some(written_at) = stats.written_at() else { return share(residual) };
    let others = |term: &Predicate| term.fields() != [Field::Column(written_at)];
    share(&Predicate::and(residual.clone().conjuncts().into_iter().filter(others)))
}

/// Rows (count) that an access is expected to output.
pub fn rows_of(stats: &dyn Statistics, access: &Access) -> f64 {
    access.entries * residual_share(stats, &access.entry_filter) * residual_share(stats, &access.filter)
}

/// Share of rows that pass a predicate, by guesses where there are no statistics.
pub fn passing_share(stats: &dyn Statistics, predicate: &Predicate) -> f64 {
    share(stats.collected(), predicate, &BTreeMap::new(), &predicate.fields().into_iter().collect())
}

/// Share of the entries that the conditions on the `bound` fields leave, assuming independence; `fixed`: columns of
/// which they tell the value.
pub fn share(
    collected: Option<&TableStatistics>,
    predicate: &Predicate,
    fixed: &BTreeMap<ColumnId, Value>,
    bound: &BTreeSet<Field>,
) -> f64 {
    let conjuncts = predicate.clone().conjuncts();
    let share_of = |field: &Field| {
        if let Some(share) = share_of_field(collected, predicate, *field) {
            return share;
        }
        if matches!(field, Field::Column(id) if fixed.contains_key(id)) {
            return COST.equal_share;
        }
        let about = || conjuncts.iter().filter(|p| p.fields() == [*field]);
        let (mut above, mut below, mut most) = (false, false, false);
        for condition in about() {
            match condition {
                Predicate::Compare { op: CmpOp::Gt | CmpOp::Ge, .. }
                | Predicate::Part { op: CmpOp::Gt | CmpOp::Ge, .. } => above = true,
                Predicate::Compare { op: CmpOp::Lt | CmpOp::Le, .. }
                | Predicate::Part { op: CmpOp::Lt | CmpOp::Le, .. } => below = true,
                Predicate::Compare { op: CmpOp::Eq, .. }
                | Predicate::Part { op: CmpOp::Eq, .. }
                | Predicate::IsNull { negated: false, .. } => return COST.equal_share,
                Predicate::In { values, negated: false, .. } => {
                    return (values.len() as f64 * COST.equal_share).min(COST.range_share);
                }
                Predicate::Like { negated: false, .. } => (above, below) = (true, true),
                Predicate::Compare { op: CmpOp::Ne, .. } | Predicate::In { negated: true, .. } => most = true,
                _ => {}
            }
        }
        match (above && below, *field == Field::Rowkey && about().next().is_none()) {
            (_, true) => 1.0,
            (false, _) if most && !above && !below => 1.0,
            (true, _) => COST.between_share,
            (false, _) => COST.range_share,
        }
    };
    bound.iter().map(share_of).product()
}
