//! Whether another path could be much cheaper than one that fetches rows by an index, whatever the values of a statement.
//!
//! If not, a run only asks how many rows there are, and not what each other path would cost. Hints, and indexes that are
//! not ready, are not looked at: they leave fewer paths, not more.

use std::collections::BTreeSet;

use super::choose::{fields_of, held_columns, is_about};
use super::cost::{COST, Sorted, Statistics};
use super::path::{Access, Need, Path, Source};
use crate::key::{ColumnId, KeyPart};
use crate::plan::Field;
use crate::schema::{IndexDef, TableDef};

/// Only to read the whole table could be much cheaper than this access: it fetches rows by an index, no other path finds
/// fewer, and the indexes do not have all that is wanted.
pub(super) fn has_no_rival(source: Source<'_>, need: &Need, access: &Access) -> bool {
    let (Source::Table(table), Path::IndexFetch(own)) = (source, access.path) else { return false };
    // With a limit, a path in another order may stop sooner; what is skipped need not be fetched by one in this order.
    let is_whole = need.limit.is_none() && need.offset == 0 && need.each.is_none();
    if !is_whole || is_about(&need.predicate, &table.key) {
        return false;
    }
    let may_find_fewer = |index: &IndexDef| {
        index.id != own
            && (index.filter.is_some()
                || is_about(&need.predicate, &index.sorted_by(&table.key).layout)
                || computes_from_condition(table, index, need))
    };
    let wanted: BTreeSet<Field> = need.output.iter().copied().chain(need.predicate.fields()).collect();
    let is_covering = |columns| wanted.is_subset(&fields_of(table, columns));
    let is_walked =
        |index: &&IndexDef| begins_with_condition(index, need) || computes_from_condition(table, index, need);
    let walked = table.indexes.iter().filter(is_walked);
    let together = walked.flat_map(|index| known_columns(table, index));
    // What passes is the least that any path finds.
    let finds_least = access.passes_all() || !table.indexes.iter().any(may_find_fewer);
    finds_least
        && !table.indexes.iter().any(|index| is_covering(known_columns(table, index)))
        && !is_covering(together.collect())
}

/// The columns that an entry has, or that are known of it: its index's own WHERE may tell the condition.
fn known_columns(table: &TableDef, index: &IndexDef) -> BTreeSet<ColumnId> {
    let told = index.filter.iter().flat_map(|filter| filter.fields()).filter_map(|field| match field {
        Field::Column(id) => Some(id),
        Field::Rowkey | Field::PrimaryRowkey => None,
    });
    held_columns(table, index).chain(told).collect()
}

/// Behind buckets, the index begins with what the condition is about, so that it may be walked beside another.
fn begins_with_condition(index: &IndexDef, need: &Need) -> bool {
    let asked = need.predicate.fields();
    let is_first = |part: &&KeyPart| !part.is_literal() && !part.is_random() && part.buckets().is_none();
    let first = index.layout.parts().iter().find(is_first);
    first.is_some_and(|part| part.columns().iter().any(|id| asked.contains(&Field::Column(*id))))
}

/// The index has a formula of a column in the condition, of which values may say something.
fn computes_from_condition(table: &TableDef, index: &IndexDef, need: &Need) -> bool {
    let asked = need.predicate.fields();
    table.formulas().any(|(id, formula)| {
        index.layout.has_column(id) && formula.columns().iter().any(|id| asked.contains(&Field::Column(*id)))
    })
}

/// Rows (count) up to which fetching them costs less than to read the whole table.
pub(super) fn rows_max(source: Source<'_>, stats: &dyn Statistics) -> u64 {
    let Source::Table(table) = source else { return 0 };
    let Sorted { keyspace, entries_min, .. } = Sorted::table(table);
    let all = stats.entries(keyspace).max(entries_min) as f64;
    (all * COST.entry / (COST.entry + COST.get)) as u64
}
