//! Prices an access path over one sorted keyspace.

use std::sync::Arc;

use super::cost::{COST, Jumping, Sorted, Statistics, entries_in, jumping_in, residual_share, sorting};
use super::path::{Access, Method, Need, OrderBy, Path};
use super::selectivity::share_of_equals;
use crate::key::{ColumnId, KeyLayout, KeyOrder, KeyPart, Rowkey};
use crate::plan::{EachOf, FanOut, Field, Filter, Ranges, ShortIntervals, Skipping, ordering};
use crate::store::Direction;

/// Combinations of values of short intervals (count) that are merged, at most.
const MERGED_MAX: usize = 64;
/// The same, however few entries are expected: of a small table that is a guess.
const MERGED_MIN: usize = 8;

/// The access over one sorted keyspace, without the cost of fetches.
pub(super) fn candidate(
    sorted: Sorted<'_>,
    mut found: Ranges,
    need: &Need,
    stats: &dyn Statistics,
) -> Access {
    let each = each_of(sorted.layout, &found, need);
    if let Some((each, _)) = each {
        found.skipping = Some(Skipping::each(sorted.layout, each, found.skipping.as_ref(), &found.residual));
    }
    let scanned = entries_in(stats, sorted, &need.predicate, &found);
    // To seek each of several values must not take longer than to walk over all of them; a few always may.
    let most =
        need.limit.map_or(0, |_| ((scanned * COST.entry / COST.seek) as usize).clamp(MERGED_MIN, MERGED_MAX));
    let (direction, merge, ordered) = match (order_of(sorted.layout, &found, need, most), each) {
        // The first rows of each group come in one direction, so the scan must go that way, without a merge.
        (Some((direction, None)), Some((_, each))) if each.is_none_or(|each| each == direction) => {
            (direction, None, true)
        }
        (_, Some((_, each))) => (each.unwrap_or(Direction::Forward), None, need.order.is_empty()),
        // GETs are returned in key order: only scans can be merged.
        (Some((direction, merge)), None) if !(found.points && merge.is_some()) => (direction, merge, true),
        _ => (Direction::Forward, None, need.order.is_empty()),
    };
    let jumping = found.skipping.as_ref().and_then(|skipping| {
        let mut jumping = jumping_in(stats, sorted, (&need.predicate, &found), skipping, scanned)?;
        if let Some((each, _)) = each {
            let tied = each.tied.map_or(0.0, |_| scanned * ties(need, stats));
            jumping.possible = (jumping.possible * each.rows as f64 + tied).min(scanned);
        }
        Some((jumping, &skipping.residual))
    });
    let range_count = found.ranges.as_slice().len();
    let seeks = merge.as_ref().map_or(range_count, |merged: &FanOut| range_count.max(merged.prefix_count()));
    let limit = need.limit.filter(|_| ordered);
    let passing = residual_share(stats, &found.residual);
    let mut price = Price::of_walk(scanned, passing, jumping.map(|(j, _)| j), limit);
    if need.each.is_some() {
        price.cost += price.entries * passing * COST.needless;
    }
    let mut skip = None;
    if let (Some((jumping, residual)), Some(skipping)) = (jumping, &found.skipping) {
        let jumps = Price::of_jumps(jumping, residual_share(stats, residual), limit);
        if jumps.cost < price.cost {
            (price, skip) = (jumps, Some(Arc::new(skipping.clone())));
        }
    }
    let Price { entries, mut cost, all_entries, jumps } = price;
    cost += seeks as f64 * COST.seek;
    if !ordered {
        cost += sorting(all_entries);
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
        Method::Scan { ranges: found.ranges, direction, merge, skip }
    };
    let (entry_filter, filter) = (Filter::all(), filter.into());
    Access { path: Path::Primary, method, entry_filter, filter, ordered, entries, all_entries, jumps, cost }
}

/// The leading parts that form the groups of which a few rows are enough, and the direction in which those
/// come first, if it matters. If the key has only the front of their order, those that tie in it are needed as well.
fn each_of(layout: &KeyLayout, found: &Ranges, need: &Need) -> Option<(EachOf, Option<Direction>)> {
    let each = need.each.as_ref()?;
    if found.ranges.is_empty() || found.points {
        return None;
    }
    let covered_by = |field: &Field| {
        let Field::Column(id) = field else { return None };
        let covers = |part: &KeyPart| part.columns() == [*id] && part.facts().injective;
        match found.fixed.contains_key(id) {
            true => Some(0),
            false => layout.parts().iter().position(covers).map(|at| at + 1),
        }
    };
    let told = |part: &&KeyPart| part.columns().iter().all(|id| found.fixed.contains_key(id));
    let parts = match each.of.iter().map(covered_by).collect::<Option<Vec<_>>>()?.into_iter().max()? {
        // The rows in the ranges are one group, behind what all of them have in front.
        0 => layout.parts().iter().take_while(told).count(),
        parts => parts,
    };
    if parts == 0 || parts == layout.parts().len() {
        return None;
    }
    let is_fixed = |id: ColumnId| found.fixed.contains_key(&id) || each.of.contains(&Field::Column(id));
    let wanted: Vec<&OrderBy> =
        each.order.iter().filter(|by| !matches!(by.field, Field::Column(id) if is_fixed(id))).collect();
    let of_all = EachOf { parts, rows: each.rows, tied: None };
    if wanted.is_empty() {
        // Without an order, all rows of a group tie.
        return (!each.with_ties).then_some((of_all, None));
    }
    let given = ordering(layout, parts, &is_fixed);
    let (front, direction) = (1..=wanted.len()).rev().find_map(|front| {
        let direction = direction_of(&wanted[..front], &given)?;
        Some((front, direction))
    })?;
    let ends = |part: &KeyPart| part.columns() == [given[front - 1].0] && part.facts().order.is_some();
    let tied = match front == wanted.len() && !each.with_ties {
        true => None,
        false => Some(parts + 1 + layout.parts()[parts..].iter().position(ends)?),
    };
    Some((EachOf { tied, ..of_all }, Some(direction)))
}

/// The share of a group's rows that tie with a given one in the first column of the order.
fn ties(need: &Need, stats: &dyn Statistics) -> f64 {
    let first = need.each.as_ref().and_then(|each| each.order.first());
    share_of_equals(stats.collected(), first.map(|by| by.field).into_iter())
}

/// The price of a walk, without its seeks.
struct Price {
    /// Entries that are checked.
    entries: f64,
    cost: f64,
    /// Entries that would be checked, and sorted, without a limit.
    all_entries: f64,
    jumps: f64,
}

impl Price {
    /// Checks every entry until `limit` rows have passed the residual.
    fn of_walk(scanned: f64, passing: f64, jumping: Option<Jumping>, limit: Option<u64>) -> Price {
        let share = match jumping {
            Some(jumping) if scanned > 0.0 => (jumping.possible / scanned).min(passing),
            _ => passing,
        };
        let entries = limit.map_or(scanned, |limit| scanned.min(limit as f64 / share));
        Price { entries, cost: entries * COST.entry, all_entries: scanned, jumps: 0.0 }
    }

    /// Skips keys that cannot match, until `limit` rows have passed the residual.
    fn of_jumps(jumping: Jumping, passing: f64, limit: Option<u64>) -> Price {
        let possible = jumping.possible;
        let entries = limit.map_or(possible, |limit| possible.min(limit as f64 / passing));
        let jumps = if possible > 0.0 { jumping.jumps * entries / possible } else { jumping.jumps };
        let cost = jumps * (COST.entry + COST.seek) + entries * COST.entry;
        Price { entries, cost, all_entries: possible, jumps }
    }
}

/// The direction and merge in which a scan yields the wanted order, if it can. `most`: values of intervals (count) to
/// merge.
pub(super) fn order_of(
    layout: &KeyLayout,
    found: &Ranges,
    need: &Need,
    most: usize,
) -> Option<(Direction, Option<FanOut>)> {
    if need.order.is_empty() {
        return None;
    }
    let fixed = |id: ColumnId| found.fixed.contains_key(&id);
    if let Some(direction) = sorted_direction(layout, &need.order, &fixed) {
        return Some((direction, None));
    }
    let wanted = unfixed(&need.order, &fixed);
    // The fewest parts that suffice: with more, the merge would have more streams.
    (1..layout.parts().len()).find_map(|parts| {
        let direction = direction_of(&wanted, &ordering(layout, parts, &fixed))?;
        let intervals = ShortIntervals { within: &need.predicate, most };
        let fan_out = found.fan_out(layout, parts, intervals)?;
        let is_single = fan_out.is_single(&found.ranges);
        Some((direction, (!is_single).then_some(fan_out)))
    })
}

/// The direction in which a scan comes in the wanted order without a merge, if some columns are fixed.
pub(super) fn sorted_direction(
    layout: &KeyLayout,
    order: &[OrderBy],
    fixed: &dyn Fn(ColumnId) -> bool,
) -> Option<Direction> {
    let wanted = unfixed(order, fixed);
    // Ordering by the rowkey is the scan's own order.
    if let [only] = &wanted[..]
        && only.field == Field::Rowkey
    {
        return Some(if only.descending { Direction::Reverse } else { Direction::Forward });
    }
    direction_of(&wanted, &ordering(layout, 0, fixed))
}

/// What is left of an order if some columns are fixed.
fn unfixed<'o>(order: &'o [OrderBy], fixed: &dyn Fn(ColumnId) -> bool) -> Vec<&'o OrderBy> {
    order.iter().filter(|by| !matches!(by.field, Field::Column(id) if fixed(id))).collect()
}

/// The direction in which entries sorted as `given` come as `wanted`.
fn direction_of(wanted: &[&OrderBy], given: &[(ColumnId, KeyOrder)]) -> Option<Direction> {
    [Direction::Forward, Direction::Reverse].into_iter().find(|direction| {
        let matches = |(want, have): (&&OrderBy, &(ColumnId, KeyOrder))| {
            let descending = (have.1 == KeyOrder::Descending) != (*direction == Direction::Reverse);
            want.field == Field::Column(have.0) && want.descending == descending
        };
        wanted.len() <= given.len() && wanted.iter().zip(given).all(matches)
    })
}
