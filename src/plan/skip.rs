//! Skip scans: jumps over keys that cannot match, by conditions on parts behind one that is not restricted.
//!
//! With a key `(country, city, day)` and `city = 'X'`, the ranges hold every key. But each part on its own
//! has a set of possible bytes, so a key that cannot match tells where the next possible one is: after `(at,
//! A, ..)` comes `(at, X)`, after `(at, Y, ..)` the next country. A [`Skip`] answers for one key at a time;
//! the walk steps or seeks there, whichever is cheaper. After HBase's FuzzyRowFilter and Phoenix's
//! SkipScanFilter, which need listed values; here every part may have intervals.
//!
//! No key between a key and its answer can match (`proof.rs`). So a sieve may allow too much, but must never
//! exclude a possible value.

use std::collections::BTreeMap;

use super::predicate::{Field, Predicate};
use super::ranges::LayoutRole;
use super::sets::{ValueSet, as_point, truths};
use super::walk::FieldConstraints;
use crate::key::{ColumnId, End, KeyLayout, KeyPart, KeyRange, Rowkey, prefix_end};
use crate::value::Value;

/// Combinations (count) of values listed for a part of several columns, at most.
const COMBINATIONS_MAX: usize = 1024;

/// A skip scan and its residual filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Skipping {
    /// The possible keys.
    pub skip: Skip,
    /// Parts (count) before the first one that is skipped by.
    pub gap: usize,
    /// The conditions it skips by: those on parts that the ranges do not restrict.
    pub by: Predicate,
    /// The residual filter: of the rows with possible keys inside the ranges, it is true for exactly those
    /// that match.
    pub residual: Predicate,
}

/// The possible keys, described part by part.
#[derive(Clone, Debug, PartialEq)]
pub struct Skip {
    layout: KeyLayout,
    /// By part, up to the last restricted one; `None`: every value is possible.
    sieves: Vec<Option<Sieve>>,
    /// A few keys of each group are enough.
    each: Option<EachOf>,
}

/// How many keys are enough of those that agree in the leading parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EachOf {
    /// Leading parts that form a group (count).
    pub parts: usize,
    /// Keys (count) that are taken, at least 1.
    pub rows: u64,
    /// Set if more are taken: all that agree with the last of these in so many leading parts (count).
    pub tied: Option<usize>,
}

/// What a [`Skip`] is about, whatever the values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkipShape {
    /// By part: how many spans of it are possible (count); `None`: all.
    spans: Vec<Option<usize>>,
    each: Option<EachOf>,
}

/// The possible bytes from the start of one part on.
#[derive(Clone, Debug, PartialEq)]
struct Sieve {
    /// Sorted and disjoint; never empty.
    spans: Vec<ByteSpan>,
}

/// A range of bytes from the start of a part on, which may extend into later parts.
#[derive(Clone, Debug, PartialEq)]
struct ByteSpan {
    range: KeyRange,
    /// `Some`: the range starts with all bytes of one value, and this part follows.
    next: Option<usize>,
}

/// What is possible in any alternative of a predicate.
#[derive(Default)]
pub(super) struct Possible {
    alternatives: Vec<FieldConstraints>,
    /// By column of the layout; none if every value is possible.
    sets: BTreeMap<ColumnId, ValueSet>,
}

impl Possible {
    pub(super) fn add(&mut self, known: FieldConstraints) {
        self.alternatives.push(known);
    }

    /// Columns whose possible values can be listed, and these values.
    pub(super) fn listed(&self) -> BTreeMap<ColumnId, ValueSet> {
        let Some((first, others)) = self.alternatives.split_first() else { return BTreeMap::new() };
        let of_any = |(column, set): (ColumnId, ValueSet)| {
            let in_others = others.iter().map(|known| known.values(Field::Column(column)).cloned());
            let sets = in_others.collect::<Option<Vec<_>>>()?;
            let set = ValueSet::union([set].into_iter().chain(sets));
            set.points().is_some().then_some((column, set))
        };
        first.listed().into_iter().filter_map(of_any).collect()
    }

    /// `None` if no part after the first `narrowed` is restricted, which the ranges express fully.
    /// `residual`: the ranges' residual.
    pub(super) fn skipping(
        mut self,
        layout: &KeyLayout,
        role: LayoutRole,
        narrowed: usize,
        residual: &Predicate,
    ) -> Option<Skipping> {
        let is_known = |column: &ColumnId| {
            self.alternatives.iter().all(|known| known.values(Field::Column(*column)).is_some())
        };
        let says = |part: &KeyPart| !part.columns().is_empty() && part.columns().iter().all(is_known);
        if !layout.parts().iter().skip(narrowed).any(says) {
            return None;
        }
        for column in layout.columns() {
            let sets = self.alternatives.iter().map(|known| known.values(Field::Column(column)).cloned());
            let set = sets.collect::<Option<Vec<_>>>().map(ValueSet::union);
            if let Some(set) = set.filter(|set| !set.covers_not_null()) {
                self.sets.insert(column, set);
            }
        }
        if self.sets.is_empty() {
            return None;
        }
        let mut sure: Vec<ColumnId> = Vec::new();
        let mut gap: Vec<Field> = Vec::new();
        let mut before_gap = usize::MAX;
        let mut sieves: Vec<Option<Sieve>> = Vec::new();
        for (i, part) in layout.parts().iter().enumerate() {
            let sieve = self.sieve(i, layout, role);
            if let Some((_, all)) = &sieve {
                if i >= narrowed {
                    before_gap = before_gap.min(i);
                    gap.extend(part.columns().iter().copied().map(Field::Column));
                }
                if let (&[column], true) = (part.columns(), *all) {
                    sure.push(column);
                }
            }
            sieves.push(sieve.map(|(sieve, _)| sieve));
        }
        if gap.is_empty() {
            return None;
        }
        let last = sieves.iter().rposition(Option::is_some)?;
        sieves.truncate(last + 1);
        let is_sure = |term: &Predicate| {
            truths(term).is_some_and(|t| t.exact && sure.iter().any(|c| t.field == Field::Column(*c)))
        };
        let (by, left): (Vec<_>, Vec<_>) = (residual.clone().conjuncts(), residual.clone().conjuncts());
        let by = by.into_iter().filter(|term| term.fields().iter().any(|f| gap.contains(f)));
        Some(Skipping {
            skip: Skip { layout: layout.clone(), sieves, each: None },
            gap: before_gap,
            by: Predicate::and(by),
            residual: Predicate::and(left.into_iter().filter(|term| !is_sure(term))),
        })
    }

    /// The possible bytes of a part, and whether they guarantee that its column has a possible value; `None`
    /// if the part is not restricted.
    fn sieve(&self, i: usize, layout: &KeyLayout, role: LayoutRole) -> Option<(Sieve, bool)> {
        let part = &layout.parts()[i];
        let mut spans = Vec::new();
        let mut sure = true;
        match part.columns() {
            [] => return None,
            &[column] => {
                let set = self.sets.get(&column)?;
                static NULL: Value = Value::Null;
                if set.has_null() {
                    spans.extend(span_of(i, layout, role, &|_| &NULL));
                }
                for interval in set.intervals() {
                    if let Some(value) = as_point(interval) {
                        sure &= part.facts().injective;
                        spans.extend(span_of(i, layout, role, &|_| value));
                    } else {
                        let image = part.image(interval)?;
                        sure &= image.tight;
                        spans.push(ByteSpan { range: image.range, next: None });
                    }
                }
            }
            columns => {
                sure = false;
                for values in self.combinations(columns)? {
                    let value = |c| columns.iter().position(|&k| k == c).map_or(&Value::Null, |k| values[k]);
                    spans.extend(span_of(i, layout, role, &value));
                }
            }
        }
        Some((Sieve::new(spans)?, sure))
    }

    /// Every combination of the columns' values, if there are few.
    fn combinations(&self, columns: &[ColumnId]) -> Option<Vec<Vec<&Value>>> {
        let mut all: Vec<Vec<&Value>> = vec![Vec::new()];
        for &column in columns {
            let points = self.sets.get(&column)?.points()?;
            if all.len().saturating_mul(points.len()) > COMBINATIONS_MAX {
                return None;
            }
            all =
                all.iter().flat_map(|head| points.iter().map(move |p| [&head[..], &[*p]].concat())).collect();
        }
        Some(all)
    }
}

/// The keys in which part `i` has these values; `None` if it cannot hold them.
fn span_of<'v>(
    i: usize,
    layout: &KeyLayout,
    role: LayoutRole,
    value: &dyn Fn(ColumnId) -> &'v Value,
) -> Option<ByteSpan> {
    let parts = layout.parts();
    let mut bytes = Vec::new();
    parts[i].bytes_of(value, &mut bytes).ok()?;
    // Include the delimiter after a text: without it the text is a prefix of longer ones.
    let literals = parts[i + 1..].iter().take_while(|part| part.is_literal());
    let next = i + 1 + literals.clone().count();
    for literal in literals {
        literal.bytes_of(&|_| &Value::Null, &mut bytes).ok()?;
    }
    let whole = next == parts.len() && role == LayoutRole::Primary;
    let range = if whole { KeyRange::point(bytes) } else { KeyRange::prefix(bytes) };
    Some(ByteSpan { range, next: Some(next) })
}

/// A position relative to the spans.
enum SpanPosition {
    /// Inside a span, past its start.
    Inside,
    /// Before this span, or at its start.
    At(usize),
    /// After all spans.
    Past,
}

impl Sieve {
    /// `None` if nothing is possible, which is not handled by skipping.
    fn new(mut spans: Vec<ByteSpan>) -> Option<Sieve> {
        spans.retain(|span| !span.range.is_empty());
        spans.sort_by(|a, b| a.range.start.cmp(&b.range.start));
        let mut merged: Vec<ByteSpan> = Vec::with_capacity(spans.len());
        for span in spans {
            match merged.last_mut() {
                Some(last) if last.range.end > End::Before(span.range.start.clone()) => {
                    last.next = None;
                    last.range.end = last.range.end.clone().max(span.range.end);
                }
                _ => merged.push(span),
            }
        }
        (!merged.is_empty()).then_some(Sieve { spans: merged })
    }

    fn contains(&self, bytes: &[u8]) -> bool {
        let after = self.spans.partition_point(|span| *span.range.start <= *bytes);
        after > 0 && !self.spans[after - 1].range.is_past(bytes)
    }

    fn place(&self, bytes: &[u8]) -> SpanPosition {
        let at = self.spans.partition_point(|span| *span.range.start < *bytes);
        match self.spans.get(at) {
            Some(span) if *span.range.start == *bytes => SpanPosition::At(at),
            _ if at > 0 && !self.spans[at - 1].range.is_past(bytes) => SpanPosition::Inside,
            Some(_) => SpanPosition::At(at),
            None => SpanPosition::Past,
        }
    }

    /// The last span that starts before `bytes`.
    fn last_before(&self, bytes: &[u8]) -> Option<&ByteSpan> {
        let at = self.spans.partition_point(|span| *span.range.start < *bytes);
        self.spans.get(at.checked_sub(1)?)
    }
}

impl Skipping {
    /// A skip that takes a few keys of each group; literals after its parts belong to the group, as those after tied
    /// parts are tied, too. `known`: a skip that is made anyway; `residual`: the filter.
    pub fn each(
        layout: &KeyLayout,
        each: EachOf,
        known: Option<&Skipping>,
        residual: &Predicate,
    ) -> Skipping {
        let with_literals = |parts: usize| {
            parts + layout.parts()[parts..].iter().take_while(|part| part.is_literal()).count()
        };
        let all = || Skip { layout: layout.clone(), sieves: Vec::new(), each: None };
        let (skip, by, residual) = match known {
            Some(known) => (known.skip.clone(), known.by.clone(), known.residual.clone()),
            None => (all(), Predicate::True, residual.clone()),
        };
        let (parts, tied) = (with_literals(each.parts), each.tied.map(with_literals));
        let whole = EachOf { parts, tied, ..each };
        Skipping { skip: Skip { each: Some(whole), ..skip }, gap: each.parts, by, residual }
    }
}

impl Skip {
    /// The number of keys taken of each group, if limited.
    pub fn each_of(&self) -> Option<EachOf> {
        self.each
    }

    /// The prefix of a key that is its group; `None` if all keys are taken.
    pub fn group<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        self.leading(self.each?.parts, key)
    }

    /// The prefix of a key with which the keys behind it may be tied; `None` if they are not taken for that.
    pub fn tied<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        self.leading(self.each?.tied?, key)
    }

    /// The bytes of the first so many parts.
    fn leading<'k>(&self, parts: usize, key: &'k [u8]) -> Option<&'k [u8]> {
        let end = (0..parts).try_fold(0, |at, part| self.layout.end_of(part, key, at))?;
        key.get(..end)
    }

    /// The position after a group, in the sense of [`Skip::next`] and [`Skip::previous`].
    pub fn behind_group(group: &[u8], forward: bool) -> Option<Rowkey> {
        match forward {
            true => prefix_end(group).map(Rowkey::from),
            false => (!group.is_empty()).then(|| group.into()),
        }
    }

    /// May the key match? Stores in `starts` where its parts begin, up to the one that decided. A key that
    /// does not fit the layout counts as possible.
    pub fn is_possible(&self, key: &[u8], starts: &mut Vec<usize>) -> bool {
        starts.clear();
        let mut at = 0;
        for (i, sieve) in self.sieves.iter().enumerate() {
            starts.push(at);
            if sieve.as_ref().is_some_and(|sieve| !sieve.contains(&key[at..])) {
                return false;
            }
            if i + 1 < self.sieves.len() {
                match self.layout.end_of(i, key, at) {
                    Some(end) => at = end,
                    None => return true,
                }
            }
        }
        true
    }

    /// What it is about.
    pub fn shape(&self) -> SkipShape {
        let spans = self.sieves.iter().map(|sieve| sieve.as_ref().map(|sieve| sieve.spans.len()));
        SkipShape { spans: spans.collect(), each: self.each }
    }

    /// The next position to seek to: no key from `key` up to it, exclusive, is possible; `None` if none is
    /// possible after `key`. `starts`: from [`Skip::is_possible`], which returned false for `key`.
    pub fn next(&self, key: &[u8], starts: &[usize]) -> Option<Rowkey> {
        let mut next = key.to_vec();
        // Length of a common prefix of `next` and `key`, at least.
        let mut kept = key.len();
        for (i, &at) in starts.iter().enumerate().rev() {
            // From `next` on, keys do not share the bytes before this part.
            if at > kept {
                continue;
            }
            let Some(sieve) = &self.sieves[i] else { continue };
            match sieve.place(&next[at..]) {
                SpanPosition::Inside => {}
                SpanPosition::At(span) => {
                    next.truncate(at);
                    self.put_first(&sieve.spans[span], &mut next);
                    kept = at;
                }
                SpanPosition::Past => {
                    next = prefix_end(&next[..at])?;
                    kept = next.len() - 1;
                }
            }
        }
        Some(next.into())
    }

    /// The next position for a reverse walk: no key from it up to `key`, exclusive, is possible; `None` if
    /// none is possible before `key`. `starts`: from [`Skip::is_possible`], which returned false for `key`.
    pub fn previous(&self, key: &[u8], starts: &[usize]) -> Option<Rowkey> {
        let mut end = key.to_vec();
        for (i, &at) in starts.iter().enumerate().rev() {
            let Some(sieve) = &self.sieves[i] else { continue };
            match sieve.last_before(&end[at..]) {
                None => end.truncate(at),
                Some(span) if span.range.is_past(&end[at..]) => {
                    end.truncate(at);
                    self.put_last(span, &mut end);
                }
                Some(_) => {}
            }
        }
        (!end.is_empty()).then(|| end.into())
    }

    /// Appends the smallest possible bytes of a span, as far as they are known.
    fn put_first(&self, span: &ByteSpan, out: &mut Vec<u8>) {
        out.extend_from_slice(&span.range.start);
        if let Some(first) = self.sieve_after(span).and_then(|sieve| sieve.spans.first()) {
            self.put_first(first, out);
        }
    }

    /// Appends bytes that are greater than all possible ones of a span, but not greater than its end; the
    /// span has an end.
    fn put_last(&self, span: &ByteSpan, out: &mut Vec<u8>) {
        match (self.sieve_after(span).and_then(|sieve| sieve.spans.last()), &span.range.end) {
            (Some(last), _) if last.range.end != End::Open => {
                out.extend_from_slice(&span.range.start);
                self.put_last(last, out);
            }
            (_, End::Before(end)) => out.extend_from_slice(end),
            (_, End::Open) => {}
        }
    }

    /// The most jumps (count) to get over these keys in either direction: wherever keys agree in all that
    /// comes before a restricted part, one to each of its spans and one past them.
    #[cfg(test)]
    pub(super) fn jumps_max(&self, keys: &[&[u8]]) -> usize {
        let mut heads = std::collections::BTreeSet::new();
        let mut starts = Vec::new();
        for key in keys {
            self.is_possible(key, &mut starts);
            heads.extend(starts.iter().enumerate().map(|(part, &at)| (part, &key[..at])));
        }
        let spans = |part: usize| self.sieves[part].as_ref().map_or(0, |sieve| sieve.spans.len() + 1);
        heads.into_iter().map(|(part, _)| spans(part)).sum()
    }

    fn sieve_after(&self, span: &ByteSpan) -> Option<&Sieve> {
        self.sieves.get(span.next?)?.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::super::predicate::CmpOp;
    use super::super::ranges::{RangeLimits, ranges, search};
    use super::super::testing::{B, N, S, T, asc, encode, layout};
    use super::*;
    use crate::key::{Tail, Transform};

    fn key(n: i64, t: &str, s: &str) -> Vec<u8> {
        let mut row = vec![Value::Null; 7];
        row[0] = Value::Int(n);
        row[1] = Value::Text(t.into());
        row[6] = Value::Text(s.into());
        encode(&three_parts(), &row, 0).unwrap()
    }

    /// `(n, t, s)`, of which only `n` has a fixed width.
    fn three_parts() -> KeyLayout {
        let parts = [N, T, S].map(|column| asc(Transform::Column(column)));
        layout(parts.to_vec(), [false; 7], Tail::Nothing).unwrap()
    }

    fn text(column: ColumnId, op: CmpOp, value: &str) -> Predicate {
        Predicate::compare(Field::Column(column), op, Value::Text(value.into()))
    }

    fn skipping(predicate: &Predicate) -> Option<Skipping> {
        ranges(predicate, &three_parts(), LayoutRole::Primary).skipping
    }

    #[test]
    fn jumps_to_the_next_value_of_the_gap_and_back() {
        let Skipping { skip, residual, .. } = skipping(&text(T, CmpOp::Eq, "m")).unwrap();
        assert_eq!(residual, Predicate::True);
        let mut starts = Vec::new();
        let mut jump = |n, t| {
            let from = key(n, t, "x");
            assert!(!skip.is_possible(&from, &mut starts));
            (skip.next(&from, &starts).unwrap(), skip.previous(&from, &starts).unwrap())
        };
        let start_of = |n, t: &str| Rowkey::from(&key(n, t, "")[..]);
        let (next, previous) = jump(5, "a");
        assert_eq!(next, start_of(5, "m"));
        assert_eq!(previous, Rowkey::from(&key(5, "", "")[..4]));
        let (next, previous) = jump(5, "z");
        assert_eq!(next, Rowkey::from(&key(6, "", "")[..4]));
        assert!(*previous > key(5, "m", "zzz")[..] && *previous <= key(5, "m\0", "")[..]);
        assert!(skip.is_possible(&key(5, "m", "x"), &mut starts));
    }

    #[test]
    fn jumps_by_several_parts_at_once() {
        let both = [text(T, CmpOp::Eq, "m"), text(S, CmpOp::Gt, "k")];
        let Skipping { skip, .. } = skipping(&Predicate::and(both)).unwrap();
        let mut starts = Vec::new();
        assert!(!skip.is_possible(&key(1, "b", "z"), &mut starts));
        assert_eq!(*skip.next(&key(1, "b", "z"), &starts).unwrap(), [&key(1, "m", "k")[..], &[0]].concat());
        assert!(!skip.is_possible(&key(1, "m", "a"), &mut starts));
        assert_eq!(*skip.next(&key(1, "m", "a"), &starts).unwrap(), [&key(1, "m", "k")[..], &[0]].concat());
    }

    #[test]
    fn nothing_to_jump_over_where_the_ranges_say_it_all() {
        let n = |op, n| Predicate::compare(Field::Column(N), op, Value::Int(n));
        assert!(skipping(&n(CmpOp::Gt, 1)).is_none());
        assert!(skipping(&Predicate::and([n(CmpOp::Eq, 1), text(T, CmpOp::Gt, "a")])).is_none());
        assert!(skipping(&Predicate::is_null(Field::Column(B))).is_none());
        assert!(skipping(&Predicate::and([n(CmpOp::Gt, 1), text(T, CmpOp::Gt, "a")])).is_some());
    }

    #[test]
    fn values_beyond_the_limit_of_ranges_are_jumped_between() {
        let many = Predicate::is_in(Field::Column(N), (0..100).map(|n| Value::Int(2 * n)).collect());
        let limits = RangeLimits { ranges_max: 10, ..RangeLimits::USUAL };
        let found = search(&many, &three_parts(), LayoutRole::Primary, limits);
        assert_eq!(found.ranges.as_slice().len(), 1);
        let skip = found.skipping.unwrap().skip;
        let mut starts = Vec::new();
        assert!(!skip.is_possible(&key(7, "a", "b"), &mut starts));
        assert_eq!(*skip.next(&key(7, "a", "b"), &starts).unwrap(), key(8, "", "")[..4]);
    }
}
