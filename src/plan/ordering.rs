//! The order in which a scan yields rows, and which scans must be merged to get another order.

use std::collections::{BTreeMap, BTreeSet};

use super::predicate::{Field, Predicate};
use super::ranges::Ranges;
use super::sets::{Truths, truths};
use crate::key::{ColumnId, KeyLayout, KeyOrder, KeyPart, KeyRange, KeyRanges, Rowkey, prefix_end};
use crate::value::Value;

/// Scans merged (count), at most: each holds a cursor open.
const MERGED_MAX: usize = 1024;

/// Intervals whose values are listed, to merge what lies behind each.
#[derive(Clone, Copy)]
pub struct ShortIntervals<'p> {
    /// All rows meet this condition, which has them.
    pub within: &'p Predicate,
    /// Combinations of their values (count), at most; below 2 none are listed.
    pub most: usize,
}

/// The possible bytes of some leading parts that have few, such as a bucket or a column with listed values.
/// Keys are sorted within each prefix, so merging the scans of all prefixes by the bytes that follow gives
/// them in order.
#[derive(Clone, Debug, PartialEq)]
pub struct FanOut {
    /// The possible leading bytes, sorted; none is a prefix of another.
    prefixes: Vec<Rowkey>,
}

/// One of the scans to be merged.
pub struct Stream {
    /// The key ranges of its prefix.
    pub ranges: KeyRanges,
    /// Length of the prefix of all its keys: merge by the bytes after it.
    pub prefix_len: usize,
}

impl FanOut {
    /// `ranges`, split by prefix; prefixes without a range and keys without a prefix are left out.
    pub fn streams(&self, ranges: &KeyRanges) -> Vec<Stream> {
        self.nonempty(ranges).collect()
    }

    /// Prefixes (count).
    pub fn prefix_count(&self) -> usize {
        self.prefixes.len()
    }

    /// Does at most one prefix occur in `ranges`, so that nothing must be merged?
    pub fn is_single(&self, ranges: &KeyRanges) -> bool {
        self.nonempty(ranges).take(2).count() < 2
    }

    fn nonempty<'a>(&'a self, ranges: &'a KeyRanges) -> impl Iterator<Item = Stream> + 'a {
        let streams = self.prefixes.iter().map(|p| Stream { ranges: within(p, ranges), prefix_len: p.len() });
        streams.filter(|stream| !stream.ranges.is_empty())
    }
}

fn within(prefix: &Rowkey, ranges: &KeyRanges) -> KeyRanges {
    let all = ranges.as_slice();
    let from = all.partition_point(|range| range.is_past(prefix));
    let end = prefix_end(prefix);
    let to = end.map_or(all.len(), |end| all.partition_point(|range| *range.start < *end));
    let near = KeyRanges::new(all.get(from..to).unwrap_or_default().to_vec());
    near.intersect(&KeyRanges::one(KeyRange::prefix(prefix.clone())))
}

impl Ranges {
    /// The possible bytes of the first `parts` of the layout, and of literals after them; `None` if there are
    /// too many, or they are not known.
    pub fn fan_out(&self, layout: &KeyLayout, parts: usize, intervals: ShortIntervals<'_>) -> Option<FanOut> {
        let (leading, behind) = layout.parts().split_at_checked(parts)?;
        let literals = behind.iter().take_while(|part| part.is_literal());
        let listed = self.listed_of(intervals, leading);
        let mut branches = vec![Branch::default()];
        for part in leading.iter().chain(literals) {
            branches = self.branched(part, &listed, &branches)?;
        }
        let mut prefixes: Vec<Rowkey> = branches.into_iter().map(|branch| branch.bytes.into()).collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        let is_free = prefixes.windows(2).all(|two| !two[1].starts_with(&two[0]));
        is_free.then_some(FanOut { prefixes })
    }

    /// The values of columns that short intervals restrict.
    fn listed_of(
        &self,
        ShortIntervals { within, mut most }: ShortIntervals<'_>,
        parts: &[KeyPart],
    ) -> BTreeMap<ColumnId, Vec<Value>> {
        if most < 2 {
            return BTreeMap::new();
        }
        let truths: Vec<Truths> = within.terms().iter().filter_map(truths).collect();
        let of_part = |part: &KeyPart| {
            let &[column] = part.columns() else { return None };
            let mut sets = truths.iter().filter(|t| t.field == Field::Column(column)).map(|t| t.set.clone());
            let set = sets.next().map(|first| sets.fold(first, |all, set| all.intersect(&set)))?;
            let values: Vec<Value> = set.listed(part, most)?.points()?.into_iter().cloned().collect();
            most /= values.len().max(1);
            Some((column, values))
        };
        let is_known = |part: &&KeyPart| part.columns().iter().all(|id| self.knows(id));
        parts.iter().filter(|part| !is_known(part)).filter_map(of_part).collect()
    }

    fn knows(&self, id: &ColumnId) -> bool {
        self.fixed.contains_key(id) || self.listed.contains_key(id)
    }

    fn branched<'v>(
        &'v self,
        part: &KeyPart,
        short: &'v BTreeMap<ColumnId, Vec<Value>>,
        branches: &[Branch<'v>],
    ) -> Option<Vec<Branch<'v>>> {
        let is_known = |id: &ColumnId| self.knows(id) || short.contains_key(id);
        let mut next = Vec::new();
        if part.is_random() || !part.columns().iter().all(is_known) {
            let buckets = part.fan_out(MERGED_MAX / branches.len().max(1))?;
            let behind = |branch: &Branch<'v>, bucket: &[u8]| Branch {
                bytes: [&branch.bytes, bucket].concat(),
                values: branch.values.clone(),
            };
            next.extend(branches.iter().flat_map(|b| buckets.iter().map(move |bucket| behind(b, bucket))));
            return Some(next);
        }
        for branch in branches {
            let mut all = vec![branch.clone()];
            for &id in part.columns() {
                let listed = self.listed.get(&id).or_else(|| short.get(&id));
                let Some(listed) = listed.filter(|_| !branch.knows(id)) else { continue };
                if all.len() * listed.len() + next.len() > MERGED_MAX {
                    return None;
                }
                all = all.iter().flat_map(|b| listed.iter().map(move |value| b.with(id, value))).collect();
            }
            for mut branch in all {
                let Branch { bytes, values } = &mut branch;
                let told = |id| values.iter().find(|(known, _)| *known == id).map(|(_, value)| *value);
                let value = |id| told(id).or_else(|| self.fixed.get(&id)).unwrap_or(&Value::Null);
                part.bytes_of(&value, bytes).ok()?;
                next.push(branch);
            }
        }
        (next.len() <= MERGED_MAX).then_some(next)
    }
}

/// The bytes of some leading parts, and the listed values they were made from.
#[derive(Clone, Default)]
struct Branch<'v> {
    bytes: Vec<u8>,
    values: Vec<(ColumnId, &'v Value)>,
}

impl<'v> Branch<'v> {
    fn knows(&self, id: ColumnId) -> bool {
        self.values.iter().any(|(known, _)| *known == id)
    }

    fn with(&self, id: ColumnId, value: &'v Value) -> Branch<'v> {
        Branch { bytes: self.bytes.clone(), values: [&self.values[..], &[(id, value)]].concat() }
    }
}

/// The order in which a forward scan yields rows that agree in the first `parts`, and whose `fixed` columns
/// have one value each: by these columns, first to last; a reverse scan yields the opposite. It is also the
/// order of the merge that [`Ranges::fan_out`] describes for these parts.
pub fn ordering(
    layout: &KeyLayout,
    parts: usize,
    fixed: &dyn Fn(ColumnId) -> bool,
) -> Vec<(ColumnId, KeyOrder)> {
    let mut order: Vec<(ColumnId, KeyOrder)> = Vec::new();
    let mut ordered = BTreeSet::new();
    for part in layout.parts().iter().skip(parts) {
        // Among rows that are equal in a column so far, that column counts as fixed.
        if is_fixed(part, &|c| fixed(c) || ordered.contains(&c)) {
            continue;
        }
        let facts = part.facts();
        match (part.columns(), facts.order) {
            (&[column], Some(direction)) if facts.injective => {
                order.push((column, direction));
                ordered.insert(column);
            }
            _ => break,
        }
    }
    order
}

/// Are the part's bytes determined by the fixed columns?
fn is_fixed(part: &KeyPart, fixed: &dyn Fn(ColumnId) -> bool) -> bool {
    !part.is_random() && part.columns().iter().all(|&c| fixed(c))
}
