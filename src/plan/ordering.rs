//! The order in which a scan yields rows, and the buckets whose scans have to be merged for it.

use std::collections::{BTreeMap, BTreeSet};

use crate::key::{ColumnId, KeyLayout, KeyOrder, KeyPart, KeyRange, KeyRanges, Rowkey};
use crate::value::Value;

/// Most buckets whose scans are merged: each holds a cursor open.
const MERGED_MAX: usize = 1024;

/// A bucket part in front: keys lie in order within each bucket, and so does the merge of all buckets by
/// the bytes that follow the prefix.
#[derive(Clone, Debug, PartialEq)]
pub struct FanOut {
    /// The bucket part, as an index into the layout's parts.
    pub part: usize,
    /// The bytes up to and including the bucket, of every bucket, in order; all of one length.
    pub prefixes: Vec<Rowkey>,
}

impl FanOut {
    /// Length of every prefix, in bytes: merge by what follows.
    pub fn prefix_len(&self) -> usize {
        self.prefixes.first().map_or(0, |prefix| prefix.len())
    }

    /// `ranges`, bucket by bucket; buckets without a range are left out, and so are keys in no bucket.
    pub fn streams(&self, ranges: &KeyRanges) -> Vec<KeyRanges> {
        self.prefixes.iter().map(|p| within(p, ranges)).filter(|stream| !stream.is_empty()).collect()
    }

    /// The fan-out of rows whose `fixed` columns have these values; `None` if no bucket part is the first
    /// that can differ between them.
    pub(super) fn of(layout: &KeyLayout, fixed: &BTreeMap<ColumnId, Value>) -> Option<FanOut> {
        let mut head = Vec::new();
        for (i, part) in layout.parts().iter().enumerate() {
            if is_fixed(part, &|c| fixed.contains_key(&c)) {
                part.bytes_of(&|c| &fixed[&c], &mut head).ok()?;
                continue;
            }
            let prefixes = buckets(part)?.into_iter().map(|bucket| [&head[..], &bucket].concat().into());
            return Some(FanOut { part: i, prefixes: prefixes.collect() });
        }
        None
    }

    /// Only one bucket, if any, has a part in `ranges`: there is nothing to merge.
    pub(super) fn is_single(&self, ranges: &KeyRanges) -> bool {
        self.prefixes.iter().filter(|p| !within(p, ranges).is_empty()).take(2).count() < 2
    }
}

fn within(prefix: &Rowkey, ranges: &KeyRanges) -> KeyRanges {
    ranges.intersect(&KeyRanges::new(vec![KeyRange::prefix(prefix.clone())]))
}

/// The order in which a forward scan yields rows whose `fixed` columns have one value each: by these
/// columns, first to last; a reverse scan yields the opposite order. Where the first part that is not
/// fixed is a bucket, this is the order after the merge that [`FanOut`] describes.
pub fn ordering(layout: &KeyLayout, fixed: &dyn Fn(ColumnId) -> bool) -> Vec<(ColumnId, KeyOrder)> {
    let parts = layout.parts();
    let first = parts.iter().position(|part| !is_fixed(part, fixed)).unwrap_or(parts.len());
    let is_merged = parts.get(first).is_some_and(|part| buckets(part).is_some());
    order_of(&parts[first + usize::from(is_merged)..], fixed)
}

/// The same for rows that agree in the first `parts`, and in the `fixed` columns.
pub fn ordering_behind(
    layout: &KeyLayout,
    parts: usize,
    fixed: &dyn Fn(ColumnId) -> bool,
) -> Vec<(ColumnId, KeyOrder)> {
    order_of(&layout.parts()[parts..], fixed)
}

fn order_of(parts: &[KeyPart], fixed: &dyn Fn(ColumnId) -> bool) -> Vec<(ColumnId, KeyOrder)> {
    let mut order: Vec<(ColumnId, KeyOrder)> = Vec::new();
    let mut ordered = BTreeSet::new();
    for part in parts {
        // Among rows that are equal in a column so far, that column is as good as fixed.
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

/// Bytes follow from the fixed columns alone.
fn is_fixed(part: &KeyPart, fixed: &dyn Fn(ColumnId) -> bool) -> bool {
    !part.is_random() && part.columns().iter().all(|&c| fixed(c))
}

/// The byte strings of a bucket part, if they are few enough to merge.
fn buckets(part: &KeyPart) -> Option<Vec<Vec<u8>>> {
    part.fan_out().filter(|all| all.len() <= MERGED_MAX)
}
