//! Whether another path could be cheaper than one that fetches rows by an index, whatever the values of a statement.

use super::choose::{held_fields, implied, is_about};
use super::cost::{COST, Sorted, Statistics};
use super::path::{Access, Need, Path, Source};
use crate::plan::Field;
use crate::schema::IndexDef;

/// Only to read the whole table can be cheaper than this access: it fetches rows by an index, no other path finds fewer,
/// and none has all that is wanted without fetching.
pub(super) fn has_no_rival(source: Source<'_>, need: &Need, access: &Access) -> bool {
    let (Source::Table(table), Path::IndexFetch(own)) = (source, access.path) else { return false };
    // With a limit, a path in another order may stop sooner.
    if need.limit.is_some() || need.each.is_some() || is_about(&need.predicate, &table.key) {
        return false;
    }
    let wanted: Vec<Field> = need.output.iter().copied().chain(need.predicate.fields()).collect();
    let is_covering = |index: &IndexDef| {
        let held = held_fields(table, index);
        wanted.iter().all(|field| held.contains(field))
    };
    // None finds fewer than just those that pass.
    let may_find_fewer = |index: &IndexDef| {
        !access.passes_all()
            && index.id != own
            && (index.filter.is_some()
                || is_about(&need.predicate, &index.sorted_by(&table.key).layout)
                || !implied(table, index, &need.predicate).is_empty())
    };
    !table.indexes.iter().any(|index| may_find_fewer(index) || is_covering(index))
}

/// To fetch so many rows (count) costs less than to read the whole table.
pub(super) fn cheaper_than_the_table(rows: u64, source: Source<'_>, stats: &dyn Statistics) -> bool {
    let Source::Table(table) = source else { return false };
    let Sorted { keyspace, entries_min, .. } = Sorted::table(table);
    let all = stats.entries(keyspace).max(entries_min) as f64;
    rows as f64 * (COST.entry + COST.get) < all * COST.entry
}
