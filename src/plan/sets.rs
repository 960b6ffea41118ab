//! Sets of values of one column, which describe the values that a condition allows.

use std::ops::Bound;
use std::sync::Arc;

use super::like::LikePattern;
use super::predicate::{CmpOp, Field, Predicate};
use crate::key::{Interval, KeyPart, prefix_end, text_successor};
use crate::value::{Value, ValueRef};

/// A set of values of one column: NULL or not, and intervals of the others.
///
/// Intervals are sorted, disjoint, not empty, and do not touch; only single values may be neighbours, so that
/// `IN (1, 2)` can still be listed. Discrete types (integers, dates, times, booleans) have closed bounds, so
/// that `x > 5 AND x < 7` is the point 6.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueSet {
    null: bool,
    /// Shared, as there may be thousands of intervals.
    intervals: Arc<Vec<Interval>>,
}

impl ValueSet {
    /// The empty set, without NULL.
    pub fn none() -> Self {
        ValueSet { null: false, intervals: Arc::default() }
    }

    /// All values and NULL.
    pub fn all() -> Self {
        ValueSet { null: true, ..Self::not_null() }
    }

    /// All values except NULL.
    pub fn not_null() -> Self {
        Self::interval(Bound::Unbounded, Bound::Unbounded)
    }

    /// Only NULL.
    pub fn null() -> Self {
        ValueSet { null: true, intervals: Arc::default() }
    }

    /// Keeps the intervals that `keep` says; what is not, is left out whole.
    pub fn retain(&mut self, keep: impl Fn(&Interval) -> bool) {
        if !self.intervals.iter().all(&keep) {
            Arc::make_mut(&mut self.intervals).retain(keep);
        }
    }

    /// The values between two bounds; empty if the bounds cross.
    pub fn interval(lower: Bound<Value>, upper: Bound<Value>) -> Self {
        Self::of_intervals(false, vec![Interval { lower, upper }])
    }

    /// The values of the set that a key part can hold, each one listed; `None` if there are more than `max`.
    pub fn listed(&self, part: &KeyPart, max: usize) -> Option<ValueSet> {
        let mut all = Vec::new();
        for interval in self.intervals.iter() {
            let values = part.values_in(interval, max.checked_sub(all.len())?)?;
            all.extend(values.into_iter().map(point));
        }
        Some(ValueSet { null: self.null, intervals: Arc::new(all) })
    }

    /// These values, none NULL.
    pub fn of_values(values: impl IntoIterator<Item = Value>) -> Self {
        let mut values: Vec<Value> = values.into_iter().collect();
        if values.iter().any(|value| matches!(value, Value::Boolean(_))) {
            return Self::of_intervals(false, values.into_iter().map(point).collect());
        }
        // Values of other types stay a list, which usually arrives sorted.
        if !values.is_sorted_by(|a, b| a < b) {
            values.sort();
            values.dedup();
        }
        ValueSet { null: false, intervals: Arc::new(values.into_iter().map(point).collect()) }
    }

    fn of_intervals(null: bool, intervals: Vec<Interval>) -> Self {
        let mut intervals: Vec<Interval> = intervals.into_iter().filter_map(closed).collect();
        intervals.sort_by(|a, b| lower_cut(a).cmp(&lower_cut(b)));
        let mut merged: Vec<Interval> = Vec::with_capacity(intervals.len());
        for next in intervals {
            match merged.last_mut() {
                Some(last) if touch(last, &next) => {
                    if upper_cut(last) < upper_cut(&next) {
                        last.upper = next.upper;
                    }
                }
                _ => merged.push(next),
            }
        }
        ValueSet { null, intervals: Arc::new(merged) }
    }

    /// Does it contain NULL?
    pub fn has_null(&self) -> bool {
        self.null
    }

    /// The intervals of values other than NULL, sorted.
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }

    /// Is the set empty?
    pub fn is_empty(&self) -> bool {
        !self.null && self.intervals.is_empty()
    }

    /// Does it contain every value other than NULL?
    pub fn covers_not_null(&self) -> bool {
        use Bound::{Included, Unbounded};
        use Value::Boolean;
        let [only] = &self.intervals[..] else { return false };
        matches!(
            (&only.lower, &only.upper),
            (Unbounded, Unbounded) | (Included(Boolean(false)), Included(Boolean(true)))
        )
    }

    /// Does it contain `value`?
    pub fn contains(&self, value: ValueRef<'_>) -> bool {
        if value.is_null() {
            return self.null;
        }
        let value = value.to_value();
        let after = self.intervals.partition_point(|i| lower_cut(i) <= Cut::At(&value, Side::Before));
        after > 0 && Cut::At(&value, Side::Before) < upper_cut(&self.intervals[after - 1])
    }

    /// Its values, NULL first, if they can be listed.
    pub fn points(&self) -> Option<Vec<&Value>> {
        static NULL: Value = Value::Null;
        let null = self.null.then_some(Some(&NULL));
        null.into_iter().chain(self.intervals.iter().map(as_point)).collect()
    }

    /// Its only value, which may be NULL, if there is exactly one.
    pub fn only(&self) -> Option<&Value> {
        match self.intervals.len() + usize::from(self.null) {
            1 => self.points()?.pop(),
            _ => None,
        }
    }

    /// The smallest interval around all values except NULL; `None` if there are none.
    pub fn hull(&self) -> Option<Interval> {
        let (first, last) = (self.intervals.first()?, self.intervals.last()?);
        Some(Interval { lower: first.lower.clone(), upper: last.upper.clone() })
    }

    /// The union of `sets`.
    pub fn union(sets: impl IntoIterator<Item = ValueSet>) -> ValueSet {
        let mut sets = sets.into_iter();
        let (first, second) = (sets.next(), sets.next());
        let Some(second) = second else { return first.unwrap_or_else(ValueSet::none) };
        let (mut null, mut intervals) = (false, Vec::new());
        for set in first.into_iter().chain([second]).chain(sets) {
            null |= set.null;
            intervals.extend(Arc::unwrap_or_clone(set.intervals));
        }
        Self::of_intervals(null, intervals)
    }

    /// The intersection.
    #[must_use]
    pub fn intersect(&self, other: &ValueSet) -> ValueSet {
        let is_shorter = self.intervals.len() <= other.intervals.len();
        let (few, many) = if is_shorter { (self, other) } else { (other, self) };
        let null = self.null && other.null;
        if let [around] = &few.intervals[..]
            && many.lies_in(around)
        {
            return ValueSet { null, intervals: Arc::clone(&many.intervals) };
        }
        let (mut rest, mut intervals) = (&many.intervals[..], Vec::new());
        for a in few.intervals.iter() {
            // Binary search, because a single value is often looked for in a list of a thousand.
            rest = &rest[rest.partition_point(|b| upper_cut(b) <= lower_cut(a))..];
            for b in rest.iter().take_while(|b| lower_cut(b) < upper_cut(a)) {
                let lower = if lower_cut(a) >= lower_cut(b) { &a.lower } else { &b.lower };
                let upper = if upper_cut(a) <= upper_cut(b) { &a.upper } else { &b.upper };
                intervals.push(Interval { lower: lower.clone(), upper: upper.clone() });
            }
        }
        // Pieces of sorted disjoint intervals are sorted and disjoint.
        ValueSet { null, intervals: Arc::new(intervals) }
    }

    /// Do all values except NULL lie in an interval?
    fn lies_in(&self, around: &Interval) -> bool {
        let ends = self.intervals.first().zip(self.intervals.last());
        ends.is_none_or(|(first, last)| {
            lower_cut(around) <= lower_cut(first) && upper_cut(last) <= upper_cut(around)
        })
    }

    /// The values other than NULL that are not in the set.
    #[must_use]
    pub fn complement(&self) -> ValueSet {
        let mut gaps = Vec::with_capacity(self.intervals.len() + 1);
        let mut lower = Some(Bound::Unbounded);
        for interval in self.intervals.iter() {
            if let (Some(lower), Some(upper)) = (lower, beyond(&interval.lower)) {
                gaps.push(Interval { lower, upper });
            }
            lower = beyond(&interval.upper);
        }
        gaps.extend(lower.map(|lower| Interval { lower, upper: Bound::Unbounded }));
        Self::of_intervals(false, gaps)
    }

    /// Is it a subset of `other`?
    pub fn is_subset(&self, other: &ValueSet) -> bool {
        let outside = self.intersect(&other.complement());
        outside.is_empty() && (other.null || !self.null)
    }
}

/// What a condition says of one field: it is true only for values in `set`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Truths {
    pub(super) field: Field,
    pub(super) set: ValueSet,
    /// It is true for all of them.
    pub(super) exact: bool,
}

/// The values of its field for which `predicate` can be true; `None` if it is about no field, or about
/// several. A tuple counts as a condition on its first field, inexactly. Rowkeys are sets of
/// [`Value::Bytes`], also if they are text.
pub(super) fn truths(predicate: &Predicate) -> Option<Truths> {
    let (field, set, exact) = match predicate {
        Predicate::Compare { field, op, value } => (*field, compared(*op, plain(*field, value)), true),
        Predicate::In { negated: true, null_in_list: true, field, .. } => (*field, ValueSet::none(), true),
        Predicate::In { field, values, negated, .. } => {
            let listed = ValueSet::of_values(values.iter().map(|v| plain(*field, v)));
            (*field, if *negated { listed.complement() } else { listed }, true)
        }
        Predicate::Like { field, pattern, negated, case_insensitive } => {
            let (set, exact) = liked(*field, pattern, *case_insensitive);
            match (negated, exact) {
                (false, _) => (*field, set, exact),
                (true, true) => (*field, set.complement(), true),
                (true, false) => (*field, ValueSet::not_null(), false),
            }
        }
        Predicate::IsNull { field, negated: false } => (*field, ValueSet::null(), true),
        Predicate::IsNull { field, negated: true } => (*field, ValueSet::not_null(), true),
        Predicate::Tuple { fields, op, values } => {
            let (field, value) = (*fields.first()?, values.first()?);
            // (a, b) > (1, 2) can hold for a = 1, too, but for no a < 1.
            (field, compared(op.loose(), plain(field, value)), false)
        }
        Predicate::And(terms) => {
            let terms = same_field(terms)?;
            let set = terms[1..].iter().fold(terms[0].set.clone(), |set, t| set.intersect(&t.set));
            (terms[0].field, set, terms.iter().all(|t| t.exact))
        }
        Predicate::Or(terms) => {
            let terms = same_field(terms)?;
            let (field, exact) = (terms[0].field, terms.iter().all(|t| t.exact));
            (field, ValueSet::union(terms.into_iter().map(|t| t.set)), exact)
        }
        Predicate::True | Predicate::False | Predicate::Unknown => return None,
        Predicate::Part { .. } | Predicate::Opaque(_) => return None,
    };
    Some(Truths { field, set, exact })
}

/// The truths of terms that are all about one field; never empty.
fn same_field(terms: &[Predicate]) -> Option<Vec<Truths>> {
    let all: Vec<Truths> = terms.iter().map(truths).collect::<Option<_>>()?;
    let first = all.first()?.field;
    all.iter().all(|t| t.field == first).then_some(all)
}

/// The value, as bytes if it is a rowkey's.
fn plain(field: Field, value: &Value) -> Value {
    match (field, value) {
        (Field::Rowkey | Field::PrimaryRowkey, Value::Text(t)) => Value::Bytes(t.clone().into_bytes()),
        _ => value.clone(),
    }
}

/// The values that compare so with a literal.
pub(super) fn compared(op: CmpOp, value: Value) -> ValueSet {
    use Bound::{Excluded, Included, Unbounded};
    match op {
        _ if value.is_null() => ValueSet::none(),
        CmpOp::Eq => ValueSet::interval(Included(value.clone()), Included(value)),
        CmpOp::Ne => ValueSet::of_values([value]).complement(),
        CmpOp::Lt => ValueSet::interval(Unbounded, Excluded(value)),
        CmpOp::Le => ValueSet::interval(Unbounded, Included(value)),
        CmpOp::Gt => ValueSet::interval(Excluded(value), Unbounded),
        CmpOp::Ge => ValueSet::interval(Included(value), Unbounded),
    }
}

/// The values that may match a pattern, and whether all of them do.
fn liked(field: Field, pattern: &LikePattern, case_insensitive: bool) -> (ValueSet, bool) {
    if case_insensitive {
        return (ValueSet::not_null(), false);
    }
    if let Some(text) = pattern.as_exact() {
        return (ValueSet::of_values([plain(field, &Value::Text(text.to_owned()))]), true);
    }
    let set = match (pattern.prefix(), field) {
        ("", _) => ValueSet::not_null(),
        (prefix, Field::Column(_)) => {
            let upper =
                text_successor(prefix).map_or(Bound::Unbounded, |end| Bound::Excluded(Value::Text(end)));
            ValueSet::interval(Bound::Included(Value::Text(prefix.to_owned())), upper)
        }
        (prefix, Field::Rowkey | Field::PrimaryRowkey) => {
            let upper = prefix_end(prefix.as_bytes())
                .map_or(Bound::Unbounded, |end| Bound::Excluded(Value::Bytes(end)));
            ValueSet::interval(Bound::Included(Value::Bytes(prefix.as_bytes().to_vec())), upper)
        }
    };
    (set, pattern.is_prefix())
}

/// A position between values: before or after one, or beyond all of them.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Cut<'v> {
    Lowest,
    At(&'v Value, Side),
    Highest,
}

/// A side of what is ordered, a value or a key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Before,
    After,
}

fn lower_cut(interval: &Interval) -> Cut<'_> {
    match &interval.lower {
        Bound::Unbounded => Cut::Lowest,
        Bound::Included(v) => Cut::At(v, Side::Before),
        Bound::Excluded(v) => Cut::At(v, Side::After),
    }
}

fn upper_cut(interval: &Interval) -> Cut<'_> {
    match &interval.upper {
        Bound::Unbounded => Cut::Highest,
        Bound::Included(v) => Cut::At(v, Side::After),
        Bound::Excluded(v) => Cut::At(v, Side::Before),
    }
}

fn point(value: Value) -> Interval {
    Interval { lower: Bound::Included(value.clone()), upper: Bound::Included(value) }
}

/// The interval's only value, if it has just one.
pub(super) fn as_point(interval: &Interval) -> Option<&Value> {
    match (&interval.lower, &interval.upper) {
        (Bound::Included(a), Bound::Included(b)) if a == b => Some(a),
        _ => None,
    }
}

/// The bound that continues where this one ends; `None` if it is unbounded.
fn beyond(bound: &Bound<Value>) -> Option<Bound<Value>> {
    match bound {
        Bound::Unbounded => None,
        Bound::Included(v) => Some(Bound::Excluded(v.clone())),
        Bound::Excluded(v) => Some(Bound::Included(v.clone())),
    }
}

/// Is there nothing between `a` and `b`? `a` must start first.
fn touch(a: &Interval, b: &Interval) -> bool {
    let neighbours = || match (&a.upper, &b.lower) {
        (Bound::Included(last), Bound::Included(first)) => neighbour(last, 1) == Neighbour::Is(first.clone()),
        _ => false,
    };
    // Two booleans are all values, so they merge; other listed values stay a list.
    let is_list = || as_point(a).is_some() && as_point(b).is_some() && !is_boolean(&a.upper);
    upper_cut(a) >= lower_cut(b) || (neighbours() && !is_list())
}

/// The interval with closed bounds, if its type is discrete; `None` if it is empty.
pub(super) fn closed(interval: Interval) -> Option<Interval> {
    let lower = match interval.lower {
        Bound::Excluded(v) => match neighbour(&v, 1) {
            Neighbour::Is(next) => Bound::Included(next),
            Neighbour::None => return None,
            Neighbour::Uncounted => Bound::Excluded(v),
        },
        Bound::Unbounded if is_boolean(&interval.upper) => Bound::Included(Value::Boolean(false)),
        other => other,
    };
    let upper = match interval.upper {
        Bound::Excluded(v) => match neighbour(&v, -1) {
            Neighbour::Is(previous) => Bound::Included(previous),
            Neighbour::None => return None,
            Neighbour::Uncounted => Bound::Excluded(v),
        },
        Bound::Unbounded if is_boolean(&lower) => Bound::Included(Value::Boolean(true)),
        other => other,
    };
    let interval = Interval { lower, upper };
    (lower_cut(&interval) < upper_cut(&interval)).then_some(interval)
}

fn is_boolean(bound: &Bound<Value>) -> bool {
    matches!(bound, Bound::Included(Value::Boolean(_)) | Bound::Excluded(Value::Boolean(_)))
}

#[derive(PartialEq)]
enum Neighbour {
    Is(Value),
    /// The value is the last (or first) of its type.
    None,
    /// The type is dense, or its neighbours are not worth computing.
    Uncounted,
}

/// The value `step` (1 or -1) away.
fn neighbour(value: &Value, step: i8) -> Neighbour {
    let moved = match value {
        Value::Boolean(b) => (*b != (step > 0)).then_some(Value::Boolean(!b)),
        Value::Int(i) => i.checked_add(step.into()).map(Value::Int),
        Value::Date(d) => d.checked_add(step.into()).map(Value::Date),
        Value::Timestamp(t) => t.checked_add(step.into()).map(Value::Timestamp),
        Value::TimestampTz(t) => t.checked_add(step.into()).map(Value::TimestampTz),
        _ => return Neighbour::Uncounted,
    };
    moved.map_or(Neighbour::None, Neighbour::Is)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::ColumnId;
    use proptest::prelude::*;

    const A: Field = Field::Column(ColumnId(0));

    fn set(predicate: Predicate) -> ValueSet {
        truths(&predicate).unwrap().set
    }

    fn int(op: CmpOp, value: i64) -> Predicate {
        Predicate::compare(A, op, Value::Int(value))
    }

    #[test]
    fn countable_types_have_closed_bounds() {
        let six = set(Predicate::and([int(CmpOp::Gt, 5), int(CmpOp::Lt, 7)]));
        assert_eq!(six.only(), Some(&Value::Int(6)));
        assert!(set(int(CmpOp::Gt, i64::MAX)).is_empty());
        let not_true = set(Predicate::compare(A, CmpOp::Ne, Value::Boolean(true)));
        assert_eq!(not_true.only(), Some(&Value::Boolean(false)));
        let split = ValueSet::union([set(int(CmpOp::Le, 5)), set(int(CmpOp::Ge, 6))]);
        assert!(split.covers_not_null() && !split.has_null());
    }

    #[test]
    fn listed_neighbours_stay_a_list() {
        let listed = ValueSet::of_values([1, 2, 3].map(Value::Int));
        assert_eq!(listed.points().map(|p| p.len()), Some(3));
        let between = set(Predicate::and([int(CmpOp::Ge, 1), int(CmpOp::Le, 3)]));
        assert!(between.is_subset(&listed) && listed.is_subset(&between));
        assert!(ValueSet::of_values([false, true].map(Value::Boolean)).covers_not_null());
    }

    #[test]
    fn null_matches_only_is_null() {
        assert!(!set(int(CmpOp::Ne, 1)).has_null());
        let or_null = Predicate::or([int(CmpOp::Eq, 1), Predicate::is_null(A)]);
        assert_eq!(set(or_null).points(), Some(vec![&Value::Null, &Value::Int(1)]));
        let values = vec![Value::Int(1), Value::Int(2), Value::Null];
        assert!(set(Predicate::is_in(A, values).not()).is_empty());
    }

    #[test]
    fn like_prefix_is_an_interval() {
        let like = |field, p: &str| {
            let pattern = LikePattern::new(p, None).unwrap();
            let t = truths(&Predicate::like(field, pattern, false)).unwrap();
            (t.set, t.exact)
        };
        let text = |t: &str| Value::Text(t.into());
        let expected = ValueSet::interval(Bound::Included(text("ab")), Bound::Excluded(text("ac")));
        assert_eq!(like(A, "ab%"), (expected.clone(), true));
        assert_eq!(like(A, "ab%c"), (expected, false));
        assert_eq!(like(A, "%"), (ValueSet::not_null(), true));
        let bytes = |b: &[u8]| Value::Bytes(b.to_vec());
        let expected = ValueSet::interval(Bound::Included(bytes(b"a\x7f")), Bound::Excluded(bytes(b"a\x80")));
        assert_eq!(like(Field::Rowkey, "a\u{7f}%"), (expected, true));
    }

    #[test]
    fn a_tuple_bounds_its_first_field() {
        let tuple = |op| {
            let fields = vec![A, Field::Column(ColumnId(1))];
            set(Predicate::tuple(fields, op, vec![Value::Int(5), Value::Int(7)]).unwrap())
        };
        assert_eq!(tuple(CmpOp::Gt), set(int(CmpOp::Ge, 5)));
        assert_eq!(tuple(CmpOp::Le), set(int(CmpOp::Le, 5)));
        assert_eq!(tuple(CmpOp::Lt), set(int(CmpOp::Le, 5)));
    }

    fn value() -> impl Strategy<Value = Value> {
        (0i64..8).prop_map(Value::Int)
    }

    /// The same numbers as doubles, whose bounds stay open.
    fn open(v: Value) -> Value {
        match v {
            Value::Int(i) => Value::Double(i as f64),
            other => other,
        }
    }

    fn bound() -> impl Strategy<Value = Bound<Value>> {
        prop_oneof![
            Just(Bound::Unbounded),
            value().prop_map(Bound::Included),
            value().prop_map(Bound::Excluded),
        ]
    }

    fn sets() -> impl Strategy<Value = ValueSet> {
        (any::<bool>(), prop::collection::vec((bound(), bound()), 0..4)).prop_map(|(null, pairs)| {
            let intervals = pairs.into_iter().map(|(lower, upper)| Interval { lower, upper }).collect();
            ValueSet::of_intervals(null, intervals)
        })
    }

    proptest! {
        #[test]
        fn sets_agree_with_their_members(a in sets(), b in sets(), doubles: bool) {
            let as_is = |v: Value| v;
            let change: &dyn Fn(Value) -> Value = if doubles { &open } else { &as_is };
            let convert = |s: &ValueSet| {
                let intervals = s.intervals.iter().map(|i| Interval {
                    lower: i.lower.clone().map(change),
                    upper: i.upper.clone().map(change),
                });
                ValueSet::of_intervals(s.null, intervals.collect())
            };
            let (a, b) = (convert(&a), convert(&b));
            let (both, either) = (a.intersect(&b), ValueSet::union([a.clone(), b.clone()]));
            let others = a.complement();
            let universe = (-1i64..9).map(|i| change(Value::Int(i))).chain([Value::Null]);
            let mut subset = true;
            for v in universe {
                let v = v.as_ref();
                prop_assert_eq!(both.contains(v), a.contains(v) && b.contains(v));
                prop_assert_eq!(either.contains(v), a.contains(v) || b.contains(v));
                prop_assert_eq!(others.contains(v), !v.is_null() && !a.contains(v));
                subset &= !a.contains(v) || b.contains(v);
            }
            prop_assert!(!a.is_subset(&b) || subset);
            // The same set, although a list may have become an interval.
            let (twice, not_null) = (a.complement().complement(), a.intersect(&ValueSet::not_null()));
            prop_assert!(twice.is_subset(&not_null) && not_null.is_subset(&twice));
        }
    }
}
