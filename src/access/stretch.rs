//! What one run of a statement says of the next: the path it took, and whether that is good enough not to look at others.

use super::candidate::sorted_direction;
use super::choose::differ_in_pointer;
use super::cost::{COST, Statistics};
use super::path::{Access, Method, Need, Path, Source};
use super::rivals::{has_no_rival, rows_max};
use crate::key::{ColumnId, KeyLayout, KeyRanges};
use crate::plan::{CmpOp, Field, Filter, LayoutRole, Predicate, short_stretch};
use crate::schema::EntryKey;
use crate::store::Direction;
use crate::value::Value;

/// A run of a statement, and the access chosen for it.
pub struct FirstRun<'r> {
    /// What was read.
    pub source: Source<'r>,
    /// What was wanted.
    pub need: &'r Need,
    /// The access.
    pub access: &'r Access,
    /// What is known of the data.
    pub stats: &'r dyn Statistics,
    /// The conditions, of which comparisons of columns are given.
    pub conditions: &'r [Option<(ColumnId, CmpOp)>],
    /// What a comparison (position) compared with.
    pub value: &'r dyn Fn(usize) -> Option<&'r Value>,
    /// Some of the conditions (positions), with the values of the run.
    pub filled: &'r dyn Fn(&[usize]) -> Option<Predicate>,
}

/// A path that reads one key range with no residual filter. The statement fixes its direction, the parameters
/// only its bounds: so the path can be reused and priced without looking at others.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    path: Path,
    direction: Direction,
    ordered: bool,
    /// Counted for the first parameters.
    entries: f64,
    /// Only a few rows of each group are needed: with many rows, jumping from group to group would be better.
    each: bool,
    /// Whatever the values, only to read the whole table could be much cheaper.
    has_no_rival: bool,
    /// Entries (count) up to which their rows are fetched without asking how many there are, or how large the table is.
    unpriced_max: u64,
}

impl Stretch {
    /// The path of an access of this kind, chosen by nothing but comparisons of columns.
    pub(super) fn of(run: &FirstRun<'_>) -> Option<Stretch> {
        let FirstRun { source, need, access, .. } = *run;
        if need.hints.full {
            return None;
        }
        stretch(source, access.path, &need.predicate)?;
        Some(Stretch::of_range(need, access)?.among_others(run))
    }

    /// The path of an access that reads one range, for a condition beside `others`, which are left to check.
    pub fn beside(
        source: Source<'_>,
        need: &Need,
        access: &Access,
        condition: &Predicate,
        others: &Predicate,
    ) -> Option<Stretch> {
        let is_one_range = access.checks(others) && stretch(source, access.path, condition).is_some();
        let is_equal = |id| need.predicate.equals(id);
        let serves = is_one_range && !need.hints.full && stays_ordered(source, need, access, &is_equal);
        Stretch::of_range(need, access).filter(|_| serves)
    }

    /// The same, knowing the other paths of the run.
    pub(super) fn among_others(self, run: &FirstRun<'_>) -> Stretch {
        let FirstRun { source, need, access, stats, .. } = *run;
        if !has_no_rival(source, need, access) {
            return self;
        }
        let unpriced_max = rows_max(source, stats).min(COST.unpriced_entries).max(self.unpriced_max);
        Stretch { has_no_rival: true, unpriced_max, ..self }
    }

    /// The path of an access that reads ranges one by one.
    pub(super) fn of_range(need: &Need, access: &Access) -> Option<Stretch> {
        let Method::Scan { direction, merge: None, skip: None, .. } = access.method else { return None };
        let Access { path, ordered, entries, .. } = *access;
        let each = need.each.is_some();
        let (has_no_rival, unpriced_max) = (false, COST.probe_entries);
        Some(Stretch { path, direction, ordered, entries, each, has_no_rival, unpriced_max })
    }

    /// The access for other values of the same comparisons; `None` as for [`choose_again`](super::choose_again).
    pub fn access(
        &self,
        source: Source<'_>,
        predicate: &Predicate,
        looked_at: Option<u64>,
        stats: &dyn Statistics,
    ) -> Option<Access> {
        let access = self.reading(stretch(source, self.path, predicate)?);
        match self.is_cheap(&access, looked_at) {
            true => Some(counted(access, source, looked_at, stats)),
            false => few_enough(access, |_| self.has_no_rival, source, stats),
        }
    }

    /// Entries (count) up to which their rows are fetched, whatever other paths cost.
    pub(super) fn unpriced_max(&self) -> u64 {
        self.unpriced_max
    }

    /// The access for other values of the same comparisons, whatever it costs; `None` if it would not be of
    /// this kind.
    pub fn along(&self, source: Source<'_>, predicate: &Predicate) -> Option<Access> {
        if self.each {
            return None;
        }
        stretch(source, self.path, predicate).map(|ranges| self.reading(ranges))
    }

    pub(super) fn is_cheap(&self, access: &Access, looked_at: Option<u64>) -> bool {
        !self.each && is_cheap(access, looked_at)
    }

    pub(super) fn path(&self) -> Path {
        self.path
    }

    /// The access that reads these ranges.
    pub(super) fn reading(&self, ranges: KeyRanges) -> Access {
        let Stretch { path, direction, ordered, entries, .. } = *self;
        Access {
            path,
            method: match ranges.is_empty() {
                true => Method::Empty,
                false => Method::Scan { ranges, direction, merge: None, skip: None },
            },
            entry_filter: Filter::all(),
            filter: Filter::all(),
            ordered,
            entries,
            all_entries: entries,
            jumps: 0.0,
            cost: 0.0,
        }
    }
}

/// Does an access that comes in the wanted order do so for other values, too? `a BETWEEN 1 AND 1` fixes `a`, as `=`
/// does, but other bounds will not.
pub(super) fn stays_ordered(
    source: Source<'_>,
    need: &Need,
    access: &Access,
    is_equal: &dyn Fn(ColumnId) -> bool,
) -> bool {
    if need.order.is_empty() || !access.ordered {
        return true;
    }
    let (Some((layout, _)), Method::Scan { direction, .. }) = (keys(source, access.path), &access.method)
    else {
        return false;
    };
    // The rowkey is an entry's pointer.
    let by_pointer = need.order.iter().any(|by| by.field == Field::Rowkey);
    let is_sorted = match (source, access.path) {
        (Source::Table(table), Path::IndexOnly(id) | Path::IndexFetch(id)) if by_pointer => {
            table.index_by_id(id).is_some_and(|index| differ_in_pointer(index, is_equal))
        }
        _ => true,
    };
    is_sorted && sorted_direction(layout, &need.order, is_equal) == Some(*direction)
}

/// The key range along this path that needs no residual filter, if there is one.
fn stretch(source: Source<'_>, path: Path, predicate: &Predicate) -> Option<KeyRanges> {
    let (layout, role) = keys(source, path)?;
    short_stretch(predicate, layout, role)
}

/// The layout of the keys along this path.
pub(super) fn keys(source: Source<'_>, path: Path) -> Option<(&KeyLayout, LayoutRole)> {
    Some(match (source, path) {
        (Source::Table(table), Path::Primary) => (&table.key, LayoutRole::Primary),
        (Source::Table(table), Path::IndexOnly(id) | Path::IndexFetch(id)) => {
            let index = table.index_by_id(id).filter(|index| index.filter.is_none())?;
            let EntryKey { layout, role } = index.sorted_by(&table.key);
            (layout, *role)
        }
        (Source::Index(_, index), _) => (&index.layout, LayoutRole::Index),
    })
}

/// The access, if it reads few entries.
pub(super) fn if_few(access: Access, source: Source<'_>, stats: &dyn Statistics) -> Option<Access> {
    few_enough(access, |_| false, source, stats)
}

/// The access, if it reads few entries, or if it `has_no_rival` and costs less than to read the whole table.
pub(super) fn few_enough(
    mut access: Access,
    has_no_rival: impl FnOnce(&Access) -> bool,
    source: Source<'_>,
    stats: &dyn Statistics,
) -> Option<Access> {
    let Method::Scan { ranges, skip: None, .. } = &access.method else { return None };
    let Entries::About(found) = entries_in(ranges, &access, source, stats) else { return None };
    let (rows, seeks) = (found as f64, ranges.as_slice().len() as u64);
    let fetch = if matches!(access.path, Path::IndexFetch(_)) { COST.get } else { 0.0 };
    (access.entries, access.all_entries) = (rows, rows);
    access.cost = rows * (COST.entry + fetch) + seeks as f64 * COST.seek;
    let is_enough = found < COST.probe_entries
        || found.saturating_add(seeks) < rows_max(source, stats) && has_no_rival(&access);
    is_enough.then_some(access)
}

/// Entries (count) in some ranges.
enum Entries {
    About(u64),
    /// A walk up to a bound did not come to their end.
    AtLeast(u64),
}

/// The entries in the ranges of an access, by the store's estimate or else by a walk up to a bound.
fn entries_in(ranges: &KeyRanges, access: &Access, source: Source<'_>, stats: &dyn Statistics) -> Entries {
    let keyspace = access.keyspace(source);
    match stats.estimate(keyspace, ranges) {
        Some(found) => Entries::About(found),
        None => match stats.probe(keyspace, ranges, COST.probe_entries) {
            found if found < COST.probe_entries => Entries::About(found),
            at_least => Entries::AtLeast(at_least),
        },
    }
}

/// The access, with the number of its entries: what is done with the rows may depend on how many there are.
fn counted(access: Access, source: Source<'_>, looked_at: Option<u64>, stats: &dyn Statistics) -> Access {
    let Method::Scan { ranges, .. } = &access.method else { return access };
    let found = match entries_in(ranges, &access, source, stats) {
        Entries::About(found) => found as f64,
        // It may be many more: as many as in the first run are a guess.
        Entries::AtLeast(found) => access.all_entries.max(found as f64),
    };
    let entries = looked_at.map_or(found, |rows| found.min(rows as f64));
    Access { entries, all_entries: found, ..access }
}

/// Whatever the data is, no path could be much cheaper. `looked_at`: the most rows (count) read.
pub(super) fn is_cheap(access: &Access, looked_at: Option<u64>) -> bool {
    let is_short = || {
        looked_at.is_some_and(|rows| rows < COST.probe_entries) || !matches!(access.path, Path::IndexFetch(_))
    };
    match &access.method {
        Method::Empty | Method::Get(_) => true,
        Method::Scan { skip: Some(_), .. } | Method::Gather { .. } => false,
        Method::Scan { .. } => access.passes_all() && access.ordered && is_short(),
    }
}
