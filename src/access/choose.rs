//! The choice of an access path.
//!
//! [`choose`] asks for the key ranges of a predicate over the primary layout and over each index
//! layout, prices every candidate and takes the cheapest; [`words`](super::words) say why, and why each index lost.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::cost::{COST, Jumping, Sorted, Statistics, counted_in, entries_in, jumping_in, residual_share};
use super::hints::Hints;
use super::words::{more, note, reason, unbound};
use crate::error::Result;
use crate::key::{ColumnId, KeyLayout, KeyOrder, KeyPart, KeyRanges, Rowkey};
use crate::plan::{FanOut, Field, Limits, Predicate, Ranges, Skipping, Target, ordering, ranges};
use crate::schema::{IndexDef, IndexId, IndexState, TableDef};
use crate::store::{Direction, KeyspaceId};

/// One column of an ORDER BY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderBy {
    /// What to order by.
    pub field: Field,
    /// Largest first. NULLs are smallest either way.
    pub descending: bool,
}

/// What a statement wants from one table or index table.
#[derive(Clone, Debug)]
pub struct Need {
    /// Which rows.
    pub predicate: Predicate,
    /// Which fields of them.
    pub output: Vec<Field>,
    /// In which order, if that matters.
    pub order: Vec<OrderBy>,
    /// How many at the most, counted after all filters and in that order.
    pub limit: Option<u64>,
    /// By which path.
    pub hints: Hints,
    /// One row is enough for each combination of values of these fields; all rows count, if there are none.
    pub distinct: Vec<Field>,
}

/// What is read: a table, or an index table as if it were one.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// The rows of a table, by whichever path is cheapest.
    Table(&'a TableDef),
    /// The entries of an index table.
    Index(&'a TableDef, &'a IndexDef),
}

/// Where the chosen entries lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// The table itself.
    Primary,
    /// An index table whose entries hold all that is needed.
    IndexOnly(IndexId),
    /// An index table, then a GET of each row.
    IndexFetch(IndexId),
}

/// How they are reached.
#[derive(Clone, Debug, PartialEq)]
pub enum Method {
    /// Nothing can match: the store is not asked.
    Empty,
    /// One GET for each key.
    Get(Vec<Rowkey>),
    /// A walk through each range.
    Scan {
        /// Sorted and disjoint.
        ranges: KeyRanges,
        /// Which way.
        direction: Direction,
        /// Buckets whose ranges are merged, so that rows come in the order of what follows the bucket.
        merge: Option<FanOut>,
        /// Jumps over keys inside the ranges that cannot match.
        skip: Option<Arc<Skipping>>,
    },
}

impl Method {
    /// Every entry is looked at.
    pub fn is_whole(&self) -> bool {
        self.is_unbound() && matches!(self, Method::Scan { skip: None, .. })
    }

    /// No part of the key bounds it from the front, though it may jump.
    pub(super) fn is_unbound(&self) -> bool {
        matches!(self, Method::Scan { ranges, .. } if ranges.is_all())
    }
}

/// A way to the rows, and what is left to check on the way.
#[derive(Clone, Debug)]
pub struct Access {
    /// Where.
    pub path: Path,
    /// How.
    pub method: Method,
    /// Checked on the index entry, before its row is fetched.
    pub entry_filter: Predicate,
    /// Checked on the row.
    pub filter: Predicate,
    /// The wanted order comes for free.
    pub ordered: bool,
    /// Entries it is expected to read.
    pub entries: f64,
    /// Price, in units of one entry scanned.
    pub cost: f64,
}

/// The chosen path, and why not the others.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The cheapest.
    pub access: Access,
    /// Why it was chosen, in words.
    pub chosen: String,
    /// Each index that was not, with the reason.
    pub rejected: Vec<(String, String)>,
    /// What would serve better, if much is read for want of an index.
    pub note: Option<String>,
}

/// Chooses how to read `source`. Errors: hints leave no path.
pub fn choose(source: Source<'_>, need: &Need, stats: &dyn Statistics) -> Result<Choice> {
    match source {
        Source::Index(_, index) => Ok(choose_entries(index, need, stats)),
        Source::Table(table) => choose_rows(table, need, stats),
    }
}

/// The access along one path, priced, and the keyspace it reads; `None` if the path cannot serve.
pub(super) fn path_access(
    source: Source<'_>,
    need: &Need,
    path: Path,
    stats: &dyn Statistics,
) -> Option<(Access, KeyspaceId)> {
    match (source, path) {
        (Source::Table(table), Path::Primary) if need.hints.allows_table() => {
            let found = key_ranges(need, &table.key, Target::Primary);
            Some((candidate(Sorted::table(table), found, need, stats), table.rows()))
        }
        (Source::Table(_), Path::Primary) => None,
        (Source::Table(table), Path::IndexOnly(id) | Path::IndexFetch(id)) => {
            let index = table.indexes.iter().find(|i| i.id == id && need.hints.allows(id))?;
            let access = index_path(table, index, need, stats).ok()?;
            Some((access, index.keyspace))
        }
        (Source::Index(_, index), _) => Some((entries_access(index, need, stats), index.keyspace)),
    }
}

fn entries_access(index: &IndexDef, need: &Need, stats: &dyn Statistics) -> Access {
    let found = key_ranges(need, &index.layout, Target::Index);
    let mut access = candidate(Sorted::index(index), found, need, stats);
    access.path = Path::IndexOnly(index.id);
    access.entry_filter = std::mem::replace(&mut access.filter, Predicate::True);
    access
}

fn choose_entries(index: &IndexDef, need: &Need, stats: &dyn Statistics) -> Choice {
    let mut access = entries_access(index, need, stats);
    settle(&mut access, index.keyspace, need, stats);
    Choice { chosen: reason(&access, &index.layout, need), access, rejected: Vec::new(), note: None }
}

fn choose_rows(table: &TableDef, need: &Need, stats: &dyn Statistics) -> Result<Choice> {
    let hints = &need.hints;
    let found = key_ranges(need, &table.key, Target::Primary);
    let (found_none, settled) = (found.ranges.is_empty(), found.points);
    let mut paths: Vec<(Option<&IndexDef>, Access)> = Vec::new();
    if hints.allows_table() || found_none {
        paths.push((None, candidate(Sorted::table(table), found, need, stats)));
    }
    let mut rejected = Vec::new();
    for index in &table.indexes {
        let access = if found_none {
            Err("nothing is read".to_owned())
        } else if !hints.allows(index.id) {
            Err("a hint rules it out".to_owned())
        } else if settled && !hints.asks_for(index.id) {
            Err("the rowkey is known".to_owned())
        } else {
            index_path(table, index, need, stats)
        };
        match access {
            Err(why) => rejected.push((index.name.clone(), why)),
            Ok(access) => paths.push((Some(index), access)),
        }
    }
    // Of equals, the first: the table before its indexes.
    let cheapest = (0..paths.len()).min_by(|&a, &b| paths[a].1.cost.total_cmp(&paths[b].1.cost));
    let Some(cheapest) = cheapest else { return Err(hints.unusable(&table.indexes, &rejected)) };
    let (index, mut best) = paths.swap_remove(cheapest);
    // The choice is made; from here on the numbers are for people.
    let (layout, keyspace) = index.map_or((&table.key, table.rows()), |i| (&i.layout, i.keyspace));
    settle(&mut best, keyspace, need, stats);
    for (index, mut access) in paths {
        let Some(index) = index else { continue };
        settle(&mut access, index.keyspace, need, stats);
        rejected.push((index.name.clone(), more(index, &access, &best)));
    }
    let position = |name: &str| table.indexes.iter().position(|i| i.name == name);
    rejected.sort_by_key(|(name, _)| position(name));
    let note = note(table, need, &best);
    Ok(Choice { chosen: reason(&best, layout, need), access: best, rejected, note })
}

/// The key ranges for a need, or all keys, if that is what a hint wants.
fn key_ranges(need: &Need, layout: &KeyLayout, target: Target) -> Ranges {
    if !need.hints.full {
        return ranges(&need.predicate, layout, target, Limits::default());
    }
    let all = ranges(&Predicate::True, layout, target, Limits::default());
    Ranges { residual: need.predicate.clone(), tight: need.predicate.is_true(), ..all }
}

/// Puts what there is in place of what the model took for granted of a keyspace that is almost empty.
fn settle(access: &mut Access, keyspace: KeyspaceId, need: &Need, stats: &dyn Statistics) {
    let Method::Scan { ranges, skip, .. } = &access.method else { return };
    let Some(mut entries) = counted_in(stats, keyspace, ranges) else { return };
    if let Some(skipping) = skip {
        let seen = stats.jumps(keyspace, ranges, &skipping.skip);
        entries = if seen.done { seen.possible } else { entries.min(access.entries as u64) };
    }
    access.entries = entries as f64;
    if let Some(limit) = need.limit
        && access.ordered
        && access.entry_filter.is_true()
        && access.filter.is_true()
    {
        access.entries = access.entries.min(limit as f64);
    }
}

/// The best use of one index, or why it cannot serve.
fn index_path(
    table: &TableDef,
    index: &IndexDef,
    need: &Need,
    stats: &dyn Statistics,
) -> Result<Access, String> {
    match index.state {
        IndexState::Ready => {}
        IndexState::Building => return Err("it is still being built".into()),
        IndexState::Broken => return Err("it is broken; REPAIR INDEX rebuilds it".into()),
    }
    if let (Some(filter), Some(sql)) = (&index.filter, &index.filter_sql)
        && !need.predicate.implies(filter)
    {
        return Err(format!("the query does not imply its WHERE {sql}"));
    }
    let mut need = seen_from(index, need);
    let held = held_fields(table, index);
    let covering = need.output.iter().chain(&need.predicate.fields()).all(|f| held.contains(f));
    if !covering {
        // Which entries become rows, the walk would not know.
        need.distinct.clear();
    }
    let need = &need;
    let found = key_ranges(need, &index.layout, Target::Index);
    let mut access = candidate(Sorted::index(index), found, need, stats);
    let asked = need.hints.asks_for(index.id);
    if access.method.is_whole()
        && !asked
        && !covering
        && index.filter.is_none()
        && (need.order.is_empty() || !access.ordered)
    {
        return Err(unbound(index));
    }
    (access.entry_filter, access.filter) =
        split(std::mem::replace(&mut access.filter, Predicate::True), &held);
    if covering {
        access.path = Path::IndexOnly(index.id);
        access.cost *= COST.index_entry_share;
    } else {
        access.path = Path::IndexFetch(index.id);
        let fetched_rows = residual_share(stats, &access.entry_filter);
        access.cost += access.entries * fetched_rows * COST.get;
    }
    Ok(access)
}

/// What is wanted of the table, as wanted of an index: there the table's rowkey is the pointer, and what
/// the index's own WHERE guarantees needs no check.
fn seen_from(index: &IndexDef, need: &Need) -> Need {
    let pointer = |field| match field {
        Field::Rowkey => Field::PrimaryRowkey,
        other => other,
    };
    let sure = |term: &Predicate| index.filter.as_ref().is_some_and(|filter| filter.implies(term));
    let open = need.predicate.clone().conjuncts().into_iter().filter(|term| !sure(term));
    Need {
        predicate: Predicate::and(open).map_fields(&pointer),
        output: need.output.clone(),
        order: need.order.iter().map(|by| OrderBy { field: pointer(by.field), ..*by }).collect(),
        limit: need.limit,
        hints: need.hints.clone(),
        distinct: need.distinct.iter().map(|field| pointer(*field)).collect(),
    }
}

/// Fields that an index entry gives without a fetch, as the table's queries name them.
fn held_fields(table: &TableDef, index: &IndexDef) -> BTreeSet<Field> {
    let columns = index.columns().chain(table.key.undoable().iter().copied());
    columns.map(Field::Column).chain([Field::Rowkey, Field::PrimaryRowkey]).collect()
}

/// Splits a filter into what an index entry can decide and the rest.
fn split(filter: Predicate, held: &BTreeSet<Field>) -> (Predicate, Predicate) {
    let (entry, row): (Vec<_>, Vec<_>) =
        filter.conjuncts().into_iter().partition(|p| p.fields().iter().all(|f| held.contains(f)));
    (Predicate::and(entry), Predicate::and(row))
}

/// A path over one sorted keyspace, without any fetches.
fn candidate(sorted: Sorted<'_>, mut found: Ranges, need: &Need, stats: &dyn Statistics) -> Access {
    if let Some(parts) = each_of(sorted.layout, &found, need) {
        found.skipping = Some(Skipping::each(sorted.layout, parts, found.skipping.as_ref(), &found.residual));
    }
    let scanned = entries_in(stats, sorted, &need.predicate, &found);
    let (direction, ordered) = match order_of(sorted.layout, &found, need) {
        // GETs come in key order, bucket by bucket: only scans are merged.
        Some(direction) if !(found.points && found.fan_out.is_some()) => (direction, true),
        _ => (Direction::Forward, need.order.is_empty()),
    };
    let jumping = found.skipping.as_ref().and_then(|skipping| {
        let jumping = jumping_in(stats, sorted, (&need.predicate, &found), skipping, scanned)?;
        Some((jumping, &skipping.residual))
    });
    let range_count = found.ranges.as_slice().len();
    let limit = need.limit.filter(|_| ordered);
    let passing = residual_share(stats, &found.residual);
    let mut price = Price::of_walk(scanned, passing, jumping.map(|(j, _)| j), limit);
    let mut skip = None;
    if let (Some((jumping, residual)), Some(skipping)) = (jumping, &found.skipping) {
        let jumps = Price::of_jumps(jumping, residual_share(stats, residual), limit);
        if jumps.cost < price.cost {
            (price, skip) = (jumps, Some(Arc::new(skipping.clone())));
        }
    }
    let Price { entries, mut cost, sorted: unsorted } = price;
    cost += range_count as f64 * COST.seek;
    if !ordered && unsorted > 1.0 {
        cost += unsorted * unsorted.log2() * COST.compare;
    }
    let filter = skip.as_ref().map_or(found.residual, |skip: &Arc<Skipping>| skip.residual.clone());
    let method = if found.ranges.is_empty() {
        Method::Empty
    } else if found.points {
        let mut keys: Vec<Rowkey> = found.ranges.as_slice().iter().map(|r| r.start.clone()).collect();
        if direction == Direction::Reverse {
            keys.reverse();
        }
        cost = range_count as f64 * COST.get;
        Method::Get(keys)
    } else {
        let merge = found.fan_out.filter(|_| ordered && !need.order.is_empty());
        Method::Scan { ranges: found.ranges, direction, merge, skip }
    };
    Access { path: Path::Primary, method, entry_filter: Predicate::True, filter, ordered, entries, cost }
}

/// The leading parts (count) that tell every field of which one row of each combination is enough.
fn each_of(layout: &KeyLayout, found: &Ranges, need: &Need) -> Option<usize> {
    if need.distinct.is_empty() || !need.order.is_empty() || found.ranges.is_empty() || found.points {
        return None;
    }
    let told_by = |field: &Field| {
        let Field::Column(id) = field else { return None };
        let tells = |part: &KeyPart| part.columns() == [*id] && part.facts().injective;
        match found.fixed.contains_key(id) {
            true => Some(0),
            false => layout.parts().iter().position(tells).map(|at| at + 1),
        }
    };
    let parts = need.distinct.iter().map(told_by).collect::<Option<Vec<_>>>()?.into_iter().max()?;
    (parts > 0 && parts < layout.parts().len()).then_some(parts)
}

/// What a walk comes to, but for the placing of its cursors.
struct Price {
    /// Entries that it takes a closer look at.
    entries: f64,
    cost: f64,
    /// Entries it would give to a sort.
    sorted: f64,
}

impl Price {
    /// Looking at every entry, until `limit` rows have passed the residual.
    fn of_walk(scanned: f64, passing: f64, jumping: Option<Jumping>, limit: Option<u64>) -> Price {
        let share = match jumping {
            Some(jumping) if scanned > 0.0 => (jumping.possible / scanned).min(passing),
            _ => passing,
        };
        let entries = limit.map_or(scanned, |limit| scanned.min(limit as f64 / share));
        Price { entries, cost: entries * COST.entry, sorted: scanned }
    }

    /// Jumping over what cannot match, until `limit` rows have passed the residual.
    fn of_jumps(jumping: Jumping, passing: f64, limit: Option<u64>) -> Price {
        let possible = jumping.possible;
        let entries = limit.map_or(possible, |limit| possible.min(limit as f64 / passing));
        let jumps = if possible > 0.0 { jumping.jumps * entries / possible } else { jumping.jumps };
        let cost = jumps * (COST.entry + COST.seek) + entries * COST.entry;
        Price { entries, cost, sorted: possible }
    }
}

/// The direction in which a scan gives the wanted order, if one does.
fn order_of(layout: &KeyLayout, found: &Ranges, need: &Need) -> Option<Direction> {
    if need.order.is_empty() {
        return None;
    }
    let fixed = |id: ColumnId| found.fixed.contains_key(&id);
    let wanted = need.order.iter().filter(|o| !matches!(o.field, Field::Column(id) if fixed(id)));
    let wanted: Vec<&OrderBy> = wanted.collect();
    // The rowkey's own order is the scan's, unless buckets are merged.
    if let [only] = &wanted[..]
        && only.field == Field::Rowkey
        && found.fan_out.is_none()
    {
        return Some(if only.descending { Direction::Reverse } else { Direction::Forward });
    }
    let given: Vec<(ColumnId, KeyOrder)> = ordering(layout, &fixed);
    for direction in [Direction::Forward, Direction::Reverse] {
        let matches = |(want, have): (&&OrderBy, &(ColumnId, KeyOrder))| {
            let descending = (have.1 == KeyOrder::Descending) != (direction == Direction::Reverse);
            want.field == Field::Column(have.0) && want.descending == descending
        };
        if wanted.len() <= given.len() && wanted.iter().zip(&given).all(matches) {
            return Some(direction);
        }
    }
    None
}
