//! Half-open key ranges and sorted disjoint sets of them.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Bound;

use super::rowkey::{Rowkey, prefix_end};
use crate::value::compare_bytes;

/// The end of a range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// Just before this key.
    Before(Rowkey),
    /// No end.
    Open,
}

impl PartialOrd for End {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for End {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (End::Before(a), End::Before(b)) => a.cmp(b),
            (End::Before(_), End::Open) => Ordering::Less,
            (End::Open, End::Before(_)) => Ordering::Greater,
            (End::Open, End::Open) => Ordering::Equal,
        }
    }
}

/// A half-open range of keys from `start` (inclusive; the empty key is the smallest) to `end`.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyRange {
    /// First key that may be inside.
    pub start: Rowkey,
    /// The end, exclusive.
    pub end: End,
}

impl KeyRange {
    /// Every key.
    pub fn all() -> Self {
        KeyRange { start: Rowkey::default(), end: End::Open }
    }

    /// Keys in `[start, end)`.
    pub fn new(start: impl Into<Rowkey>, end: impl Into<Rowkey>) -> Self {
        KeyRange { start: start.into(), end: End::Before(end.into()) }
    }

    /// Keys in `[start, ...)`.
    pub fn starting_at(start: impl Into<Rowkey>) -> Self {
        KeyRange { start: start.into(), end: End::Open }
    }

    /// Just this key.
    pub fn point(key: impl Into<Rowkey>) -> Self {
        let start = key.into();
        let end = End::Before(start.successor());
        KeyRange { start, end }
    }

    /// Every key that starts with `prefix`.
    pub fn prefix(prefix: impl Into<Rowkey>) -> Self {
        let start = prefix.into();
        let end = match prefix_end(&start) {
            Some(key) => End::Before(key.into()),
            None => End::Open,
        };
        KeyRange { start, end }
    }

    /// As bounds for maps.
    pub fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let end = match &self.end {
            End::Before(key) => Bound::Excluded(&key[..]),
            End::Open => Bound::Unbounded,
        };
        (Bound::Included(&self.start[..]), end)
    }

    /// Is the range empty?
    pub fn is_empty(&self) -> bool {
        matches!(&self.end, End::Before(end) if *end <= self.start)
    }

    /// Does it contain `key`?
    pub fn contains(&self, key: &[u8]) -> bool {
        self.begins_by(key) && !self.is_past(key)
    }

    /// Does it begin at or before `key`?
    fn begins_by(&self, key: &[u8]) -> bool {
        compare_bytes(&self.start, key).is_le()
    }

    /// Does `key` lie at or after the end?
    pub fn is_past(&self, key: &[u8]) -> bool {
        matches!(&self.end, End::Before(end) if **end <= *key)
    }

    /// The only key inside, if the range was made by [`KeyRange::point`].
    pub fn as_point(&self) -> Option<&Rowkey> {
        match &self.end {
            End::Before(end)
                if end.len() == self.start.len() + 1
                    && end.last() == Some(&0)
                    && end.starts_with(&self.start) =>
            {
                Some(&self.start)
            }
            _ => None,
        }
    }

    /// The intersection.
    pub fn intersect(&self, other: &KeyRange) -> KeyRange {
        KeyRange {
            start: self.start.clone().max(other.start.clone()),
            end: self.end.clone().min(other.end.clone()),
        }
    }
}

impl fmt::Debug for KeyRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.end {
            End::Before(end) => write!(f, "[{:?} .. {end:?})", self.start),
            End::Open => write!(f, "[{:?} ..)", self.start),
        }
    }
}

/// Sorted, disjoint, non-empty ranges, which touch only if they were made as [points](KeyRanges::of_points).
#[derive(Clone, PartialEq, Eq, Default)]
pub struct KeyRanges(Vec<KeyRange>);

impl KeyRanges {
    /// No key.
    pub fn none() -> Self {
        KeyRanges(Vec::new())
    }

    /// Every key.
    pub fn all() -> Self {
        KeyRanges(vec![KeyRange::all()])
    }

    /// One range, which may be empty.
    pub fn one(range: KeyRange) -> Self {
        if range.is_empty() { KeyRanges::none() } else { KeyRanges(vec![range]) }
    }

    /// The union of `ranges`: sorted, merged where they touch, empty ones dropped.
    pub fn new(mut ranges: Vec<KeyRange>) -> Self {
        ranges.retain(|r| !r.is_empty());
        ranges.sort_by(|a, b| a.start.cmp(&b.start));
        let mut merged: Vec<KeyRange> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match merged.last_mut() {
                Some(last) if !matches!(&last.end, End::Before(end) if *end < range.start) => {
                    if range.end > last.end {
                        last.end = range.end;
                    }
                }
                _ => merged.push(range),
            }
        }
        KeyRanges(merged)
    }

    /// Like [`KeyRanges::new`], but adjacent points are not merged, so that each can be a GET.
    pub fn of_points(mut keys: Vec<Rowkey>) -> Self {
        keys.sort();
        keys.dedup();
        KeyRanges(keys.into_iter().map(KeyRange::point).collect())
    }

    /// The ranges, in key order.
    pub fn as_slice(&self) -> &[KeyRange] {
        &self.0
    }

    /// The same, owned.
    pub fn into_vec(self) -> Vec<KeyRange> {
        self.0
    }

    /// Is the set empty?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Does it contain every key?
    pub fn is_all(&self) -> bool {
        matches!(&self.0[..], [only] if *only == KeyRange::all())
    }

    /// Does it contain `key`?
    pub fn contains(&self, key: &[u8]) -> bool {
        let after = match self.0.last() {
            // Fast path for keys that arrive in ascending order.
            Some(last) if last.begins_by(key) => self.0.len(),
            _ => self.0.partition_point(|range| range.begins_by(key)),
        };
        after > 0 && self.0[after - 1].contains(key)
    }

    /// The union.
    pub fn union(&self, other: &KeyRanges) -> KeyRanges {
        KeyRanges::new(self.0.iter().chain(&other.0).cloned().collect())
    }

    /// The intersection.
    pub fn intersect(&self, other: &KeyRanges) -> KeyRanges {
        let (mut i, mut j, mut out) = (0, 0, Vec::new());
        while let (Some(a), Some(b)) = (self.0.get(i), other.0.get(j)) {
            let both = a.intersect(b);
            if !both.is_empty() {
                out.push(both);
            }
            if a.end <= b.end {
                i += 1;
            } else {
                j += 1;
            }
        }
        KeyRanges(out)
    }

    /// Fewer, wider ranges that contain all keys of this set: runs of equally many neighbours are merged, so
    /// that at most `limit` (at least 1) ranges are left.
    #[must_use]
    pub fn coarsen(self, limit: usize) -> KeyRanges {
        let n = self.0.len();
        if n <= limit {
            return self;
        }
        // Equal runs keep the ranges spread over the whole set.
        let run = n.div_ceil(limit.max(1));
        KeyRanges(
            self.0
                .chunks(run)
                .map(|c| KeyRange { start: c[0].start.clone(), end: c[c.len() - 1].end.clone() })
                .collect(),
        )
    }
}

/// Ranges of keys that share a prefix, without it; an open one ends with the prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangesBehind(Vec<KeyRange>);

impl RangesBehind {
    /// `None` if a range has other keys, too.
    pub fn of(ranges: &KeyRanges, prefix: &[u8]) -> Option<RangesBehind> {
        let KeyRange { end: last, .. } = KeyRange::prefix(prefix);
        let behind = |key: &Rowkey| key.strip_prefix(prefix).map(Rowkey::from);
        let range = |range: &KeyRange| {
            let end = match &range.end {
                end if *end == last => End::Open,
                End::Before(end) => End::Before(behind(end)?),
                End::Open => return None,
            };
            Some(KeyRange { start: behind(&range.start)?, end })
        };
        ranges.as_slice().iter().map(range).collect::<Option<_>>().map(RangesBehind)
    }

    /// The same ranges behind another prefix.
    pub fn after(&self, prefix: &Rowkey) -> KeyRanges {
        let key = |behind: &Rowkey| Rowkey::from([&prefix[..], behind].concat());
        let range = |KeyRange { start, end }: &KeyRange| KeyRange {
            start: key(start),
            end: match end {
                End::Before(end) => End::Before(key(end)),
                End::Open => KeyRange::prefix(prefix.clone()).end,
            },
        };
        KeyRanges(self.0.iter().map(range).collect())
    }
}

impl fmt::Debug for KeyRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

impl FromIterator<KeyRange> for KeyRanges {
    fn from_iter<T: IntoIterator<Item = KeyRange>>(iter: T) -> Self {
        KeyRanges::new(iter.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn points_stay_points() {
        let set = KeyRanges::of_points(vec!["b".into(), "a".into(), "b".into()]);
        assert_eq!(set.as_slice().len(), 2);
        assert_eq!(set.as_slice()[0].as_point(), Some(&Rowkey::from("a")));
        assert_eq!(KeyRange::prefix("a").as_point(), None);
    }

    /// Keys of up to two bytes out of three values, so that every set of ranges can be listed.
    fn universe() -> Vec<Vec<u8>> {
        let bytes = [0u8, 7, 0xFF];
        let mut keys = vec![vec![]];
        for a in bytes {
            keys.push(vec![a]);
            keys.extend(bytes.map(|b| vec![a, b]));
        }
        keys
    }

    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(vec![0u8, 7, 0xFF]), 0..3)
    }

    proptest! {
        #[test]
        fn ranges_behind_a_prefix_are_the_same_behind_another(
            behind in prop::collection::vec((key(), prop::option::of(key())), 0..4),
            prefixes in (key(), key()),
        ) {
            let under = |prefix: &[u8]| {
                let of_prefix = KeyRange::prefix(prefix);
                let range = |(start, end): &(Vec<u8>, Option<Vec<u8>>)| KeyRange {
                    start: [prefix, start].concat().into(),
                    end: end.as_ref().map_or(of_prefix.end.clone(), |end| End::Before([prefix, end].concat().into())),
                };
                KeyRanges::new(behind.iter().map(range).collect())
            };
            let (one, other) = (under(&prefixes.0), under(&prefixes.1));
            let found = RangesBehind::of(&one, &prefixes.0).unwrap();
            prop_assert_eq!(found.after(&prefixes.0.clone().into()), one);
            prop_assert_eq!(found.after(&prefixes.1.clone().into()), other);
        }
    }

    #[test]
    fn ranges_before_or_beyond_a_prefix_are_not_behind_it() {
        let of = |range| RangesBehind::of(&KeyRanges::one(range), b"b");
        assert_eq!(of(KeyRange::new("a", "b")), None);
        assert_eq!(of(KeyRange::new("b", "d")), None);
        assert_eq!(of(KeyRange::starting_at("b")), None);
        assert!(of(KeyRange::new("b1", "c")).is_some());
    }

    fn range() -> impl Strategy<Value = KeyRange> {
        (key(), prop::option::of(key())).prop_map(|(start, end)| match end {
            Some(end) => KeyRange::new(start, end),
            None => KeyRange::starting_at(start),
        })
    }

    fn ranges() -> impl Strategy<Value = Vec<KeyRange>> {
        prop::collection::vec(range(), 0..6)
    }

    proptest! {
        #[test]
        fn sets_agree_with_their_members(a in ranges(), b in ranges(), limit in 1usize..4) {
            let (sa, sb) = (KeyRanges::new(a.clone()), KeyRanges::new(b.clone()));
            let (both, either) = (sa.intersect(&sb), sa.union(&sb));
            let coarse = sa.clone().coarsen(limit);
            prop_assert!(coarse.as_slice().len() <= limit);
            for key in universe() {
                let in_a = a.iter().any(|r| r.contains(&key));
                let in_b = b.iter().any(|r| r.contains(&key));
                prop_assert_eq!(sa.contains(&key), in_a);
                prop_assert_eq!(both.contains(&key), in_a && in_b);
                prop_assert_eq!(either.contains(&key), in_a || in_b);
                prop_assert!(!in_a || coarse.contains(&key));
            }
            for pair in sa.as_slice().windows(2) {
                prop_assert!(matches!(&pair[0].end, End::Before(end) if *end < pair[1].start));
            }
        }
    }
}
