//! The optimizer's choice of an access path.
//!
//! [`choose`] computes the key ranges of a predicate for the primary layout and for each index layout, prices
//! every candidate and takes the cheapest; [`words`](super::words) explain the choice, and why each index
//! lost.

use std::collections::BTreeSet;

use super::candidate::candidate;
use super::cost::{COST, Sorted, Statistics, counted_in, residual_share, sorting};
use super::path::{Access, Choice, Each, Method, Need, OrderBy, Path, Source};
use super::several::several;
use super::unprobed::Unprobed;
use super::words::{more, note, reason, unbound};
use crate::error::Result;
use crate::key::{ColumnId, KeyLayout};
use crate::plan::{Field, Filter, LayoutRole, Predicate, Ranges, possible_values, ranges};
use crate::schema::{EntryKey, IndexDef, IndexState, TableDef};

/// Chooses how to read `source`. Errors: hints exclude every path.
pub fn choose(source: Source<'_>, need: &Need, stats: &dyn Statistics) -> Result<Choice> {
    match source {
        Source::Index(table, index) => Ok(choose_entries(table, index, need, stats)),
        Source::Table(table) => {
            let unprobed = Unprobed::but_for_ranges(stats);
            let choice = choose_rows(table, need, &unprobed)?;
            match unprobed.lacks_jumps() && !is_surely_short(&choice.access, source, stats) {
                true => choose_rows(table, need, stats),
                false => Ok(choice),
            }
        }
    }
}

/// The access costs less than to look for a better one. Only a store that knows how long ranges are can tell.
fn is_surely_short(access: &Access, source: Source<'_>, stats: &dyn Statistics) -> bool {
    access.cost.max(access.all_entries) <= COST.probe_of_jumps
        && match &access.method {
            Method::Empty | Method::Get(_) => true,
            Method::Scan { ranges, .. } => stats.estimate(access.keyspace(source), ranges).is_some(),
            Method::Gather { .. } => false,
        }
}

/// The access along one path, priced; `None` if the path cannot serve.
pub fn path_access(source: Source<'_>, need: &Need, path: Path, stats: &dyn Statistics) -> Option<Access> {
    match (source, path) {
        (Source::Table(table), Path::Primary) if need.hints.allows_table() => {
            let found = key_ranges(need, &table.key, LayoutRole::Primary);
            Some(candidate(Sorted::table(table), found, need, stats))
        }
        (Source::Table(_), Path::Primary) => None,
        (Source::Table(table), Path::IndexOnly(id) | Path::IndexFetch(id)) => {
            let index = table.index_by_id(id).filter(|_| need.hints.allows(id))?;
            index_path(table, index, need, stats).ok()
        }
        (Source::Index(_, index), _) => Some(entries_access(index, need, stats)),
    }
}

fn entries_access(index: &IndexDef, need: &Need, stats: &dyn Statistics) -> Access {
    let found = key_ranges(need, &index.layout, LayoutRole::Index);
    let mut access = candidate(Sorted::index(index, &index.layout), found, need, stats);
    access.path = Path::IndexOnly(index.id);
    access.entry_filter = std::mem::replace(&mut access.filter, Filter::all());
    access
}

fn choose_entries(table: &TableDef, index: &IndexDef, need: &Need, stats: &dyn Statistics) -> Choice {
    let mut access = entries_access(index, need, stats);
    let source = Source::Index(table, index);
    count_if_small(&mut access, source, need, stats);
    let is_counted = access.is_counted(source, need, stats);
    let chosen = reason(&access, &index.layout, need, is_counted);
    Choice::of(access, chosen)
}

fn choose_rows(table: &TableDef, need: &Need, stats: &dyn Statistics) -> Result<Choice> {
    let hints = &need.hints;
    let found = key_ranges(need, &table.key, LayoutRole::Primary);
    let (found_none, settled) = (found.ranges.is_empty(), found.points);
    let mut paths: Vec<(Option<&IndexDef>, Access)> = Vec::new();
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
    let bounded = paths.iter().filter(|(_, access)| !access.method.is_whole()).count();
    // If a path is this short, considering several would cost more than it reads; and several read no less than one that
    // gives what is wanted and nothing else.
    let is_enough = |access: &Access| access.entries < COST.short_entries || gives_what_passes(access);
    let one_is_enough = paths.iter().any(|(_, access)| is_enough(access));
    let gathered = match found_none || settled || one_is_enough {
        true => None,
        false => several(table, need, (&found, bounded), stats),
    };
    if hints.allows_table() || found_none {
        paths.insert(0, (None, candidate(Sorted::table(table), found, need, stats)));
    }
    paths.extend(gathered.map(|gathered| (None, gathered)));
    let most = paths.iter().map(|(_, access)| access.all_entries).min_by(f64::total_cmp);
    if let (Some(limit), Some(most), None) = (need.limit, most, &need.each) {
        paths.iter_mut().for_each(|(_, access)| look_further(access, limit, most));
    }
    if need.limit.is_some() && need.each.is_none() && paths.iter().any(|(_, access)| stops_at_limit(access)) {
        let sorted = paths.iter_mut().map(|(_, access)| access).filter(|access| !access.ordered);
        sorted.for_each(|access| look_closer(access, Source::Table(table), stats));
    }
    // Among equals take the first: the table before indexes, one path before several.
    let cheapest = (0..paths.len()).min_by(|&a, &b| paths[a].1.cost.total_cmp(&paths[b].1.cost));
    let Some(cheapest) = cheapest else { return Err(hints.unusable(&table.indexes, &rejected)) };
    let (index, mut best) = paths.swap_remove(cheapest);
    // The choice is made; the numbers below are only for EXPLAIN.
    let source = Source::Table(table);
    count_if_small(&mut best, source, need, stats);
    for (index, mut access) in paths {
        let Some(index) = index else { continue };
        count_if_small(&mut access, source, need, stats);
        rejected.push((index.name.clone(), more(index, &access, &best)));
    }
    let is_read = |name: &str| best.indexes().any(|id| table.index_by_id(id).is_some_and(|i| i.name == name));
    rejected.retain(|(name, _)| !is_read(name));
    let position = |name: &str| table.indexes.iter().position(|i| i.name == name);
    rejected.sort_by_key(|(name, _)| position(name));
    let note = note(table, need, &best);
    let layout = index.map_or(&table.key, |index| &index.layout);
    let is_counted = best.is_counted(source, need, stats);
    Ok(Choice { chosen: reason(&best, layout, need, is_counted), access: best, rejected, note })
}

/// Corrects the price of a walk that stops at a limit by an upper bound of the matching rows, which may be
/// known from another path: if few match, they lie far apart.
fn look_further(access: &mut Access, limit: u64, most: f64) {
    let entries = (limit as f64 * access.all_entries / most.max(1.0)).min(access.all_entries);
    if access.ordered && !access.passes_all() && access.entries < entries {
        access.cost *= entries / access.entries;
        access.entries = entries;
    }
}

/// Its entries are what passes, in the order that is wanted, and no row has to be fetched.
fn gives_what_passes(access: &Access) -> bool {
    let is_read_through = match &access.method {
        Method::Scan { skip: None, .. } => !access.method.is_whole(),
        Method::Scan { skip: Some(skipping), .. } => skipping.skip.each_of().is_some(),
        Method::Empty | Method::Get(_) | Method::Gather { .. } => false,
    };
    access.ordered && access.passes_all() && is_read_through && !matches!(access.path, Path::IndexFetch(_))
}

/// No entry that this access reads before the limit is in vain, however large the table grows.
fn stops_at_limit(access: &Access) -> bool {
    access.ordered && access.passes_all() && matches!(access.method, Method::Scan { .. })
}

/// Corrects the price of a walk that reads and sorts all that match, in a small keyspace: the model's guess may be lower
/// than what is there already, and must not win by that against a walk that stops at the limit.
fn look_closer(access: &mut Access, source: Source<'_>, stats: &dyn Statistics) {
    let keyspace = access.keyspace(source);
    let Method::Scan { ranges, skip: None, .. } = &access.method else { return };
    let Some(entries) = counted_in(stats, keyspace, ranges).map(|entries| entries as f64) else { return };
    if access.entries < entries {
        let more = entries - access.entries;
        let fetched = match access.path {
            Path::IndexFetch(_) => more * residual_share(stats, &access.entry_filter),
            Path::Primary | Path::IndexOnly(_) => 0.0,
        };
        access.cost += more * COST.entry + fetched * COST.get + sorting(entries);
        access.entries = entries;
    }
}

/// The key ranges for a need, or all keys if a hint demands that.
fn key_ranges(need: &Need, layout: &KeyLayout, role: LayoutRole) -> Ranges {
    if !need.hints.full {
        return ranges(&need.predicate, layout, role);
    }
    let all = ranges(&Predicate::True, layout, role);
    Ranges { residual: need.predicate.clone(), ..all }
}

/// Replaces the model's minimum for a nearly empty keyspace by real counts.
fn count_if_small(access: &mut Access, source: Source<'_>, need: &Need, stats: &dyn Statistics) {
    if let Method::Gather { branches, .. } = &mut access.method {
        let need = Need { limit: None, ..need.clone() };
        branches.iter_mut().for_each(|branch| count_if_small(branch, source, &need, stats));
        access.entries = branches.iter().map(|branch| branch.entries).sum();
        return;
    }
    let keyspace = access.keyspace(source);
    let Method::Scan { ranges, skip, .. } = &access.method else { return };
    let Some(mut entries) = counted_in(stats, keyspace, ranges) else { return };
    if let Some(skipping) = skip {
        let seen = stats.jumps(keyspace, ranges, &skipping.skip);
        entries = if seen.done { seen.possible } else { entries.min(access.entries as u64) };
        access.jumps = if seen.done { seen.jumps as f64 } else { access.jumps };
    }
    access.entries = entries as f64;
    if let Some(limit) = need.limit
        && access.ordered
        && access.passes_all()
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
    let with_fetches = |access: Access| fetching(access, index, need, stats);
    let plain = index_walk(table, index, need, stats).map(with_fetches);
    match (plain, implying_walk(table, index, need, stats).map(with_fetches)) {
        // What is implied may be worth less than it seems.
        (Ok(plain), Some(implying)) if plain.cost <= implying.cost + COST.get => Ok(plain),
        (_, Some(implying)) => Ok(Access { cost: implying.cost + COST.get, ..implying }),
        (plain, None) => plain,
    }
}

/// The access, priced with its fetches.
fn fetching(mut access: Access, index: &IndexDef, need: &Need, stats: &dyn Statistics) -> Access {
    if access.path == Path::IndexOnly(index.id) {
        access.cost *= COST.index_entry_share;
    } else {
        let mut fetches = access.entries * residual_share(stats, &access.entry_filter);
        if access.ordered && access.filter.is_true() {
            fetches = (fetches - need.offset as f64).max(0.0);
        }
        access.cost += fetches * COST.get;
    }
    access
}

/// The walk through one index, priced without its fetches, or why the index cannot serve.
pub(super) fn index_walk(
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
    let EntryKey { layout, role } = index.sorted_by(&table.key);
    let asked = need.hints.asks_for(index.id);
    let is_in_the_way = !asked && !covering && index.filter.is_none();
    if is_in_the_way && need.order.is_empty() && need.each.is_none() && !is_about(&need.predicate, layout) {
        return Err(unbound(index));
    }
    let sorted = Sorted::index(index, layout);
    // A GET reads rows, so a single index entry is scanned.
    let ranges = |need: &Need| Ranges { points: false, ..key_ranges(need, layout, *role) };
    let mut access = candidate(sorted, ranges(&need), &need, stats);
    if need.each.is_some() && !split(access.filter.clone().into(), &held).1.is_true() {
        // The walk could not tell which entries lead to rows that pass.
        need.each = None;
        access = candidate(sorted, ranges(&need), &need, stats);
    }
    let need = &need;
    if access.method.is_whole() && is_in_the_way && (need.order.is_empty() || !access.ordered) {
        return Err(unbound(index));
    }
    let filter = std::mem::replace(&mut access.filter, Filter::all());
    (access.entry_filter, access.filter) = split(filter.into(), &held);
    access.path = if covering { Path::IndexOnly(index.id) } else { Path::IndexFetch(index.id) };
    Ok(access)
}

/// What the condition says of the formulas of an index.
fn implied(table: &TableDef, index: &IndexDef, predicate: &Predicate) -> Vec<Predicate> {
    let layout = &index.sorted_by(&table.key).layout;
    let asked = index.filter.as_ref().map(Predicate::fields).unwrap_or_default();
    let is_of_index = |id: ColumnId| layout.has_column(id) || asked.contains(&Field::Column(id));
    let mut formulas = table.formulas().filter(|(id, _)| is_of_index(*id)).peekable();
    if formulas.peek().is_none() {
        return Vec::new();
    }
    let possible = possible_values(predicate);
    formulas
        .filter_map(|(id, formula)| formula.implied(id, &possible))
        .flat_map(Predicate::conjuncts)
        .collect()
}

/// [`index_walk`] of a condition and what it implies for the index's formulas; `None` if that is nothing. What is implied
/// need not be checked, except where it saves fetches.
fn implying_walk(table: &TableDef, index: &IndexDef, need: &Need, stats: &dyn Statistics) -> Option<Access> {
    let implied = implied(table, index, &need.predicate);
    if implied.is_empty() {
        return None;
    }
    let terms = [&need.predicate].into_iter().chain(&implied).cloned();
    // How soon a LIMIT is reached is unknown: the conditions depend on each other.
    let need = Need { predicate: Predicate::and(terms), limit: None, offset: 0, ..need.clone() };
    let mut access = index_walk(table, index, &need, stats).ok()?;
    let held = held_fields(table, index);
    let is_decided = |field: &Field| match field {
        Field::Column(id) => table.sources(*id).iter().all(|id| held.contains(&Field::Column(*id))),
        _ => true,
    };
    let without = |filter: &mut Filter, saves: &dyn Fn(&Predicate) -> bool| {
        let terms = Predicate::from(std::mem::replace(filter, Filter::all())).conjuncts();
        let kept = terms.into_iter().filter(|term| saves(term) || !implied.contains(term));
        *filter = Predicate::and(kept).into();
    };
    // Where an entry decides the condition itself, what it implies saves nothing.
    without(&mut access.entry_filter, &|term| !term.fields().iter().all(is_decided));
    without(&mut access.filter, &|_| false);
    count_implied(&mut access, index, stats);
    Some(access)
}

/// Without statistics, a formula is expected to have as many values as a column has. It may have a few only, so that
/// its entries are counted, as far as that is worth it.
fn count_implied(access: &mut Access, index: &IndexDef, stats: &dyn Statistics) {
    let Method::Scan { ranges, skip: None, .. } = &access.method else { return };
    if stats.collected().is_some() || access.entries < COST.probe_entries as f64 {
        return;
    }
    let found = stats.probe(index.keyspace, ranges, COST.long_probe_entries);
    let many = stats.entries(index.keyspace) as f64 * COST.range_share;
    let entries = if found < COST.long_probe_entries { found as f64 } else { access.entries.max(many) };
    access.cost *= entries / access.entries;
    (access.entries, access.all_entries) = (entries, entries);
}

/// Does the condition restrict a column of the layout?
pub(super) fn is_about(predicate: &Predicate, layout: &KeyLayout) -> bool {
    let columns = layout.columns();
    predicate.fields().iter().any(|field| match field {
        Field::Column(id) => columns.contains(id),
        Field::Rowkey | Field::PrimaryRowkey => true,
    })
}

/// What is wanted of the table, in terms of an index: the table's rowkey is the entry's pointer, and
/// conditions that the index's own WHERE guarantees are dropped. Entries that differ in their pointer only come in its
/// order.
fn seen_from(index: &IndexDef, need: &Need) -> Need {
    let pointer = |field| match field {
        Field::Rowkey => Field::PrimaryRowkey,
        other => other,
    };
    let by_pointer = |by: &OrderBy| OrderBy { field: pointer(by.field), ..*by };
    let order = match differ_in_pointer(index, &|id| need.predicate.equals(id)) {
        true => need.order.clone(),
        false => need.order.iter().map(by_pointer).collect(),
    };
    let sure = |term: &Predicate| index.filter.as_ref().is_some_and(|filter| filter.implies(term));
    let open = need.predicate.clone().conjuncts().into_iter().filter(|term| !sure(term));
    Need {
        predicate: Predicate::and(open).map_fields(&pointer),
        output: need.output.clone(),
        order,
        limit: need.limit,
        offset: need.offset,
        hints: need.hints.clone(),
        each: need.each.as_ref().map(|each| Each {
            of: each.of.iter().map(|field| pointer(*field)).collect(),
            order: each.order.iter().map(by_pointer).collect(),
            rows: each.rows,
            with_ties: each.with_ties,
        }),
    }
}

/// The entries of an index for which these columns have one value differ in nothing but their pointer, which is in the key.
pub(super) fn differ_in_pointer(index: &IndexDef, is_equal: &dyn Fn(ColumnId) -> bool) -> bool {
    let mut columns = index.layout.parts().iter().flat_map(|part| part.columns());
    !index.unique && !index.holds_primary && columns.all(|id| is_equal(*id))
}

/// Fields that an index entry gives without a fetch, or that are computed from such fields, named as in
/// queries of the table.
pub(super) fn held_fields(table: &TableDef, index: &IndexDef) -> BTreeSet<Field> {
    fields_of(table, held_columns(table, index).collect())
}

/// The columns in an index entry, those of its pointer included.
pub(super) fn held_columns(table: &TableDef, index: &IndexDef) -> impl Iterator<Item = ColumnId> {
    index.columns().chain(table.key.decodable().iter().copied())
}

/// Fields given by, or computed from, these columns and the rowkey.
pub(super) fn fields_of(table: &TableDef, columns: BTreeSet<ColumnId>) -> BTreeSet<Field> {
    let computed = table.formulas().filter(|(_, formula)| formula.columns().is_subset(&columns));
    let computed: Vec<ColumnId> = computed.map(|(id, _)| id).collect();
    let fields = columns.into_iter().chain(computed).map(Field::Column);
    fields.chain([Field::Rowkey, Field::PrimaryRowkey]).collect()
}

/// Splits a filter into the part that an index entry can decide, and the rest.
fn split(filter: Predicate, held: &BTreeSet<Field>) -> (Filter, Filter) {
    let (entry, row): (Vec<_>, Vec<_>) =
        filter.conjuncts().into_iter().partition(|p| p.fields().iter().all(|f| held.contains(f)));
    (Predicate::and(entry).into(), Predicate::and(row).into())
}
