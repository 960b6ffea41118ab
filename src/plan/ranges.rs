//! Key ranges of a `WHERE`.
//!
//! Each alternative of the predicate is walked along the key ([`walk`](super::walk)) and intersected with its
//! conditions on the rowkey itself. The union of the alternatives is read; conjuncts that every alternative
//! guarantees need no check, the others are the residual filter. After CockroachDB's idxconstraint (`tight`,
//! remaining filters) and Selinger 1979 (sargable predicates).

use std::collections::{BTreeMap, BTreeSet};

use super::alternatives::{ConjunctFact, Fact, alternatives};
use super::predicate::{Field, Predicate};
use super::sets::{Side, ValueSet, as_point};
use super::short::short_ranges;
use super::skip::{Possible, Skipping};
use super::walk::{FieldConstraints, Reach, Sure};
use crate::key::{ColumnId, End, Interval, KeyLayout, KeyRange, KeyRanges, Rowkey, prefix_end};
use crate::value::Value;

/// Whether a layout is all of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutRole {
    /// The whole key: with every part fixed, the range is one key.
    Primary,
    /// The start of the key, followed by a pointer: with every part fixed, the range is a prefix.
    Index,
}

/// Limits on the number of ranges; others than the usual ones are for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RangeLimits {
    /// Most ranges (count), at least 1.
    pub(super) ranges_max: usize,
    /// Most alternatives (count) that ORs are multiplied out to, at least 1.
    pub(super) alternatives_max: usize,
}

impl RangeLimits {
    pub(super) const USUAL: RangeLimits = RangeLimits { ranges_max: 10_000, alternatives_max: 10_000 };
}

/// The ranges to read, and the residual filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranges {
    /// They contain the key of every row that matches; empty if none can. At most 10,000.
    pub ranges: KeyRanges,
    /// The residual filter: of the rows inside the ranges, it is true for exactly those that match.
    pub residual: Predicate,
    /// Each range is one key, to be read by a GET. Always false for an index and for an empty set of ranges.
    pub points: bool,
    /// Leading parts (count), up to the last one that narrows the ranges in every alternative.
    pub bound_parts: usize,
    /// Columns that have one known value in every row that matches.
    pub fixed: BTreeMap<ColumnId, Value>,
    /// Columns that have one of several known values in every row that matches.
    pub listed: BTreeMap<ColumnId, Vec<Value>>,
    /// Parts of the key that are restricted although a part before them is not, so that most keys inside the
    /// ranges can be skipped.
    pub skipping: Option<Skipping>,
}

/// Ranges that contain every row of `layout` for which `predicate` is true. Cannot fail: a condition that
/// does not map to ranges stays in [`Ranges::residual`].
pub fn ranges(predicate: &Predicate, layout: &KeyLayout, role: LayoutRole) -> Ranges {
    short_ranges(predicate, layout, role)
        .unwrap_or_else(|| search(predicate, layout, role, RangeLimits::USUAL))
}

/// [`ranges()`] of any predicate, without the short way.
pub(super) fn search(
    predicate: &Predicate,
    layout: &KeyLayout,
    role: LayoutRole,
    limits: RangeLimits,
) -> Ranges {
    let conjuncts = delimited(predicate.clone(), layout).conjuncts();
    let mut union = Union::new(limits.ranges_max.max(1));
    let mut possible = Possible::default();
    for terms in alternatives(&conjuncts, limits.alternatives_max) {
        let Some(known) = FieldConstraints::of(&terms, layout) else { continue };
        let reach = known.walk(layout, role, union.room());
        let Some(found) = AlternativeRanges::new(&terms, &known, reach, layout, role) else { continue };
        possible.add(known);
        union.add(found);
    }
    let narrowed = union.narrowed();
    let mut found = union.finish(conjuncts, possible.listed());
    if !found.ranges.is_empty() && !found.points {
        found.skipping = possible.skipping(layout, role, narrowed, &found.residual);
    }
    found
}

/// The condition with the delimiters of the layout in place of `_` in patterns for the rowkey, where every key has them:
/// so `rowkey LIKE '000123_2017%'` is a prefix of `lpad(id, 6), '_', day`.
fn delimited(predicate: Predicate, layout: &KeyLayout) -> Predicate {
    let all = |terms: Vec<Predicate>| terms.into_iter().map(|term| delimited(term, layout)).collect();
    match predicate {
        Predicate::Like { field: Field::Rowkey, pattern, negated, case_insensitive } => {
            let pattern = pattern.knowing(|at| layout.delimiter_at(at));
            Predicate::Like { field: Field::Rowkey, pattern, negated, case_insensitive }
        }
        Predicate::And(terms) => Predicate::And(all(terms)),
        Predicate::Or(terms) => Predicate::Or(all(terms)),
        other => other,
    }
}

/// The ranges of one alternative.
struct AlternativeRanges {
    ranges: KeyRanges,
    points: bool,
    bound_parts: usize,
    narrowed: usize,
    /// Conjuncts (by number) that the ranges do not guarantee.
    unsure: BTreeSet<usize>,
}

impl AlternativeRanges {
    /// `None` if no row can match.
    fn new(
        terms: &[ConjunctFact],
        known: &FieldConstraints,
        reach: Reach,
        layout: &KeyLayout,
        role: LayoutRole,
    ) -> Option<AlternativeRanges> {
        let Reach { mut ranges, mut points, bound_parts, narrowed, mut sure } = reach;
        if let Some(set) = known.values(Field::Rowkey) {
            let (allowed, single) = rowkey_ranges(set, layout, role);
            ranges = ranges.intersect(&allowed);
            points |= single;
            sure.insert(Sure::Values(Field::Rowkey));
        }
        let unsure = terms.iter().filter(|t| !is_sure(&t.fact, known, &sure)).map(|t| t.conjunct).collect();
        (!ranges.is_empty()).then_some(AlternativeRanges { ranges, points, bound_parts, narrowed, unsure })
    }
}

/// Do the ranges guarantee the fact, and does the fact express all of its condition?
fn is_sure(fact: &Fact, known: &FieldConstraints, sure: &BTreeSet<Sure>) -> bool {
    match fact {
        Fact::Values { field, exact, .. } => *exact && sure.contains(&Sure::Values(*field)),
        Fact::Suffix { column, suffix, exact } => {
            // The longest suffix of a column is mapped to ranges; it implies the shorter ones that it ends
            // with.
            let mapped = known.suffix(*column).is_some_and(|longest| longest.ends_with(suffix));
            *exact && mapped && sure.contains(&Sure::Suffix(*column))
        }
        Fact::Part { part, .. } => known.part_at(part).is_some_and(|at| sure.contains(&Sure::Part(at))),
        Fact::Inexpressible => false,
    }
}

/// The union of the alternatives.
struct Union {
    limit: usize,
    count: usize,
    ranges: Vec<KeyRange>,
    points: bool,
    bound_parts: usize,
    narrowed: usize,
    unsure: BTreeSet<usize>,
}

impl Union {
    fn new(limit: usize) -> Self {
        Union {
            limit,
            count: 0,
            ranges: Vec::new(),
            points: true,
            bound_parts: usize::MAX,
            narrowed: usize::MAX,
            unsure: BTreeSet::new(),
        }
    }

    /// Ranges (count) left for the next alternative.
    fn room(&self) -> usize {
        self.limit.saturating_sub(self.ranges.len()).max(1)
    }

    fn add(&mut self, found: AlternativeRanges) {
        self.count += 1;
        self.ranges.extend_from_slice(found.ranges.as_slice());
        self.points &= found.points;
        self.bound_parts = self.bound_parts.min(found.bound_parts);
        self.narrowed = self.narrowed.min(found.narrowed);
        self.unsure.extend(found.unsure);
    }

    /// Leading parts (count) whose conditions every range expresses fully.
    fn narrowed(&self) -> usize {
        if self.ranges.len() > self.limit { 0 } else { self.narrowed }
    }

    fn finish(self, conjuncts: Vec<Predicate>, listed: BTreeMap<ColumnId, ValueSet>) -> Ranges {
        let mut points = self.points && self.count > 0;
        let all = match points {
            true => KeyRanges::of_points(self.ranges.into_iter().map(|r| r.start).collect()),
            false => KeyRanges::new(self.ranges),
        };
        let fits = all.as_slice().len() <= self.limit;
        points &= fits;
        let ranges = all.coarsen(self.limit);
        let is_left = |i: &usize| !ranges.is_empty() && (!fits || self.unsure.contains(i));
        let left = conjuncts.into_iter().enumerate().filter(|(i, _)| is_left(i)).map(|(_, term)| term);
        let residual = Predicate::and(left);
        let fixed = listed.iter().filter_map(|(column, set)| Some((*column, set.only()?.clone())));
        let fixed: BTreeMap<ColumnId, Value> = fixed.collect();
        let several = listed.iter().filter(|(column, _)| !fixed.contains_key(column));
        let several =
            several.filter_map(|(column, set)| Some((*column, set.points()?.into_iter().cloned().collect())));
        Ranges {
            residual,
            points,
            bound_parts: if self.count > 0 { self.bound_parts } else { 0 },
            ranges,
            listed: several.collect(),
            fixed,
            skipping: None,
        }
    }
}

/// Ranges of exactly the keys whose layout's bytes are in `set`; and whether each is a single key.
fn rowkey_ranges(set: &ValueSet, layout: &KeyLayout, role: LayoutRole) -> (KeyRanges, bool) {
    let listed = set.intervals().iter().map(|i| as_point(i).and_then(bytes)).collect::<Option<Vec<_>>>();
    match (role, listed) {
        (LayoutRole::Primary, Some(keys)) => {
            (KeyRanges::of_points(keys.into_iter().map(Rowkey::from).collect()), true)
        }
        _ => (set.intervals().iter().map(|i| rowkey_range(i, layout, role)).collect(), false),
    }
}

fn rowkey_range(interval: &Interval, layout: &KeyLayout, role: LayoutRole) -> KeyRange {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    let cut = |value, side| bytes(value).map_or(End::Open, |y| cut(y, side, layout, role));
    let start = match &interval.lower {
        Unbounded => End::Before(Rowkey::default()),
        Included(y) => cut(y, Side::Before),
        Excluded(y) => cut(y, Side::After),
    };
    let end = match &interval.upper {
        Unbounded => End::Open,
        Included(y) => cut(y, Side::After),
        Excluded(y) => cut(y, Side::Before),
    };
    match start {
        End::Before(start) => KeyRange { start, end },
        End::Open => KeyRange::new(Rowkey::default(), Rowkey::default()),
    }
}

/// The position in the key space such that exactly the keys whose layout's bytes are less than `y` (behind `y`:
/// or equal to it) lie before it.
///
/// In an index, an entry's bytes L are followed by a pointer, which must not decide. Layouts are prefix-free
/// there, so at most one L can be a prefix of `y`: if it is shorter than `y`, all entries with that L are
/// less than `y`, whatever their pointers are. Any other L differs from `y` before either ends.
fn cut(y: &[u8], side: Side, layout: &KeyLayout, role: LayoutRole) -> End {
    let after = side == Side::After;
    let before = |key: Option<Vec<u8>>| key.map_or(End::Open, |key| End::Before(key.into()));
    if role == LayoutRole::Primary {
        let mut key = y.to_vec();
        key.extend(after.then_some(0));
        return before(Some(key));
    }
    match layout.len_in(y) {
        Ok(len) if len < y.len() || after => before(prefix_end(&y[..len])),
        _ => before(Some(y.to_vec())),
    }
}

/// Bytes of a rowkey literal.
fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Bytes(bytes) => Some(bytes),
        Value::Text(text) => Some(text.as_bytes()),
        _ => None,
    }
}
