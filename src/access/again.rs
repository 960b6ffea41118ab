//! Access paths for repeated statements: reuses the path of an earlier run for other parameters.

use super::behind::BehindPrefix;
use super::choose::path_access;
use super::cost::{COST, Statistics};
use super::path::{Access, Method, Need, Path, Source};
use super::unprobed::Unprobed;
use crate::key::{ColumnId, KeyLayout, KeyRanges};
use crate::plan::{CmpOp, Filter, LayoutRole, Predicate, RangeShape, short_stretch};
use crate::schema::EntryKey;
use crate::store::Direction;
use crate::value::Value;

/// The path of the statement's previous run, if for these parameters too no other path can be much cheaper:
/// it reads nothing or one key, or only rows that match and need no fetch, or stops at a limit of ordered
/// rows, or reads few entries.
pub fn choose_again(source: Source<'_>, need: &Need, path: Path, stats: &dyn Statistics) -> Option<Access> {
    if need.each.is_some() {
        // Whether it should jump from group to group depends on the number of groups.
        return None;
    }
    let access = along(source, need, path, stats)?;
    let looked_at = need.limit.map(|limit| limit.saturating_sub(need.offset));
    match behind_few(&access, source, need, looked_at, stats) {
        Some(entries) => Some(Access { entries: entries as f64, ..access }),
        None if is_cheap(&access, looked_at) => Some(access),
        None => if_few(access, source, stats),
    }
}

/// Rows (count) of a page, at most, for which the path of the previous page is reused without looking at
/// others.
const PAGE_ROWS: u64 = 1000;

/// Entries (count) read, at most, if few rows are read in order and all pass except a few at the front: of
/// `(a, b) > (1, 2)`, only those with `a = 1` may fail.
fn behind_few(
    access: &Access,
    source: Source<'_>,
    need: &Need,
    looked_at: Option<u64>,
    stats: &dyn Statistics,
) -> Option<u64> {
    let few = COST.probe_entries;
    let rows = looked_at.filter(|rows| *rows < PAGE_ROWS && access.ordered)?;
    let Method::Scan { skip: None, .. } = access.method else { return None };
    let any = match (&*access.entry_filter, &*access.filter) {
        (Predicate::Or(any), Predicate::True) | (Predicate::True, Predicate::Or(any)) => any,
        _ => return None,
    };
    let (field, op, value) = any.iter().find_map(|term| match term {
        Predicate::Compare { field, op, value } if *op != CmpOp::Eq && *op != CmpOp::Ne => {
            Some((*field, *op, value.clone()))
        }
        _ => None,
    })?;
    let front = Predicate::and([need.predicate.clone(), Predicate::compare(field, op.negated(), value)]);
    let front = along(source, &Need { predicate: front, ..need.clone() }, access.path, stats)?;
    let in_front = match &front.method {
        Method::Empty => 0,
        Method::Get(keys) => keys.len() as u64,
        Method::Scan { ranges, .. } => stats.probe(access.keyspace(source), ranges, few),
        Method::Gather { .. } => return None,
    };
    (in_front < few).then_some(rows + in_front)
}

/// The access along the same path, priced without probing the data, whatever it costs; `None` if the path
/// cannot serve.
pub fn along(source: Source<'_>, need: &Need, path: Path, stats: &dyn Statistics) -> Option<Access> {
    path_access(source, need, path, &Unprobed::new(stats))
}

/// The access, if it reads few entries.
fn if_few(mut access: Access, source: Source<'_>, stats: &dyn Statistics) -> Option<Access> {
    let Method::Scan { ranges, skip: None, .. } = &access.method else { return None };
    let (Entries::About(found) | Entries::AtLeast(found)) = entries_in(ranges, &access, source, stats);
    access.entries = found as f64;
    (found < COST.probe_entries).then_some(access)
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
fn is_cheap(access: &Access, looked_at: Option<u64>) -> bool {
    let is_short = || {
        looked_at.is_some_and(|rows| rows < COST.probe_entries) || !matches!(access.path, Path::IndexFetch(_))
    };
    match &access.method {
        Method::Empty | Method::Get(_) => true,
        Method::Scan { skip: Some(_), .. } | Method::Gather { .. } => false,
        Method::Scan { .. } => access.passes_all() && access.ordered && is_short(),
    }
}

/// The access of a statement, for any values: from parameters to key bytes without planning.
#[derive(Clone, Debug)]
pub struct Again {
    keys: KnownKeys,
    /// The conditions (positions) that the keys answer: comparisons of their columns.
    terms: Vec<usize>,
    /// The others, and whether index entries decide them.
    rest: Vec<usize>,
    rest_of_entries: bool,
}

/// A run of a statement, and the access chosen for it.
pub struct FirstRun<'r> {
    /// What was read.
    pub source: Source<'r>,
    /// What was wanted.
    pub need: &'r Need,
    /// The access.
    pub access: &'r Access,
    /// The conditions, of which comparisons of columns are given.
    pub conditions: &'r [Option<(ColumnId, CmpOp)>],
    /// What a comparison (position) compared with.
    pub value: &'r dyn Fn(usize) -> Option<&'r Value>,
    /// Some of the conditions (positions), with the values of the run.
    pub filled: &'r dyn Fn(&[usize]) -> Option<Predicate>,
}

/// Keys made from the values of comparisons.
#[derive(Clone, Debug)]
enum KnownKeys {
    /// A rowkey, for a GET.
    Get(RangeShape),
    /// One range.
    Stretch(Stretch, RangeShape),
    /// Several ranges behind a prefix.
    Behind(Box<BehindPrefix>),
}

impl Again {
    /// What a run tells about others; `None` if anything but its conditions influenced the choice.
    pub fn of(run: &FirstRun<'_>) -> Option<Again> {
        Again::of_one_range(run).or_else(|| {
            let (behind, terms, rest) = BehindPrefix::of(run)?;
            Some(Again { keys: KnownKeys::Behind(Box::new(behind)), terms, rest, rest_of_entries: false })
        })
    }

    fn of_one_range(run: &FirstRun<'_>) -> Option<Again> {
        let FirstRun { source, need, access, conditions, value, filled } = *run;
        let (layout, role) = keys(source, access.path)?;
        let is_of_keys = |(id, _): (ColumnId, CmpOp)| layout.has_column(id);
        let (terms, rest): (Vec<usize>, Vec<usize>) =
            (0..conditions.len()).partition(|at| conditions[*at].is_some_and(is_of_keys));
        let compared: Vec<(ColumnId, CmpOp)> = terms.iter().filter_map(|at| conditions[*at]).collect();
        let shape = RangeShape::of(&compared, layout, role)?;
        let rest_of_entries = !access.entry_filter.is_true();
        // Rows in an order, of which some may not pass, are left to the planner.
        let is_free = need.each.is_none() && !need.hints.full && (need.order.is_empty() || shape.is_point());
        let is_left = || Some(is_free && access.checks(&filled(&rest)?));
        if !rest.is_empty() && !is_left()? {
            return None;
        }
        let keys = match &access.method {
            Method::Get(keys) if shape.is_point() && keys.len() == 1 && access.path == Path::Primary => {
                KnownKeys::Get(shape)
            }
            Method::Scan { .. } if !shape.is_point() && rest.is_empty() => {
                KnownKeys::Stretch(Stretch::of(source, need, access)?, shape)
            }
            Method::Scan { ranges, .. } if !shape.is_point() => {
                let same = shape.ranges(layout, |term| value(*terms.get(term)?))? == *ranges;
                KnownKeys::Stretch(Stretch::of_range(need, access).filter(|_| same)?, shape)
            }
            _ => return None,
        };
        Some(Again { keys, terms, rest, rest_of_entries })
    }

    /// The conditions (positions) that the keys answer.
    pub fn terms(&self) -> &[usize] {
        &self.terms
    }

    /// The other conditions.
    pub fn rest(&self) -> &[usize] {
        &self.rest
    }

    /// The range, if it reads one, and no other condition is left.
    pub fn stretch(&self) -> Option<&Stretch> {
        match &self.keys {
            KnownKeys::Stretch(stretch, _) if self.rest.is_empty() => Some(stretch),
            _ => None,
        }
    }

    /// The access for some values, given by term, and the other conditions filled with them; `None` if the planner must
    /// decide, because of a NULL or a value that no key can hold, or because much would be read. Also the number of
    /// entries within which an index range must end for the access to be valid.
    pub fn access<'v>(
        &self,
        source: Source<'_>,
        value: impl Fn(usize) -> Option<&'v Value>,
        rest: Predicate,
        looked_at: Option<u64>,
        stats: &dyn Statistics,
    ) -> Option<(Access, Option<usize>)> {
        let (stretch, shape) = match &self.keys {
            KnownKeys::Get(shape) => {
                let (layout, _) = keys(source, Path::Primary)?;
                let keys = vec![shape.key(layout, &value)?];
                return Some((Access::of_keys(keys, rest, 1.0), None));
            }
            KnownKeys::Behind(behind) => {
                let access = behind.access(source, value, &rest)?;
                return match behind.stretch.is_cheap(&access, looked_at) {
                    true => Some((access, None)),
                    false => if_few(access, source, stats).map(|access| (access, None)),
                };
            }
            KnownKeys::Stretch(stretch, shape) => (stretch, shape),
        };
        let (layout, _) = keys(source, stretch.path)?;
        let mut access = stretch.reading(shape.ranges(layout, value)?);
        let place = if self.rest_of_entries { &mut access.entry_filter } else { &mut access.filter };
        *place = rest.into();
        if stretch.is_cheap(&access, looked_at) {
            return Some((access, None));
        }
        if matches!(access.path, Path::IndexFetch(_)) {
            // A number this small does not matter.
            return Some((Access { entries: 0.0, ..access }, Some(COST.probe_entries as usize)));
        }
        if self.rest.is_empty() { None } else { if_few(access, source, stats).map(|access| (access, None)) }
    }
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
}

impl Stretch {
    /// The path of an access of this kind, chosen by nothing but comparisons of columns.
    pub fn of(source: Source<'_>, need: &Need, access: &Access) -> Option<Stretch> {
        if need.hints.full {
            return None;
        }
        stretch(source, access.path, &need.predicate)?;
        Stretch::of_range(need, access)
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
        Stretch::of_range(need, access).filter(|_| is_one_range && !need.hints.full)
    }

    /// The path of an access that reads ranges one by one.
    pub(super) fn of_range(need: &Need, access: &Access) -> Option<Stretch> {
        let Method::Scan { direction, merge: None, skip: None, .. } = access.method else { return None };
        let Access { path, ordered, entries, .. } = *access;
        Some(Stretch { path, direction, ordered, entries, each: need.each.is_some() })
    }

    /// The access for other values of the same comparisons; `None` as for [`choose_again`].
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
            false => if_few(access, source, stats),
        }
    }

    /// The access for other values of the same comparisons, whatever it costs; `None` if it would not be of
    /// this kind.
    pub fn along(&self, source: Source<'_>, predicate: &Predicate) -> Option<Access> {
        if self.each {
            return None;
        }
        stretch(source, self.path, predicate).map(|ranges| self.reading(ranges))
    }

    fn is_cheap(&self, access: &Access, looked_at: Option<u64>) -> bool {
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
            cost: 0.0,
        }
    }
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
