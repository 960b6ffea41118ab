//! Access paths for repeated statements: reuses the path of an earlier run for other parameters.

use super::behind::BehindPrefix;
use super::choose::path_access;
use super::cost::{COST, Statistics};
use super::path::{Access, Method, Need, Path, Source};
use super::rivals::has_no_rival;
use super::stretch::{FirstRun, Stretch, few_enough, if_few, is_cheap, keys, stays_ordered};
use super::unprobed::Unprobed;
use crate::key::ColumnId;
use crate::plan::{CmpOp, Field, Predicate, RangeShape};
use crate::value::Value;

/// The path of the statement's previous run, if for these parameters too no other path can be much cheaper:
/// it reads nothing or one key, or only rows that match and need no fetch, or stops at a limit of ordered
/// rows, or reads few entries, or has no rival but the whole table.
pub fn choose_again(source: Source<'_>, need: &Need, path: Path, stats: &dyn Statistics) -> Option<Access> {
    if need.each.is_some() {
        // Whether it should jump from group to group depends on the number of groups.
        return None;
    }
    let unprobed = Unprobed::new(stats);
    let access = path_access(source, need, path, &unprobed)?;
    let looked_at = need.limit.map(|limit| limit.saturating_sub(need.offset));
    match behind_few(&access, source, need, looked_at, stats) {
        Some(entries) => Some(Access { entries: entries as f64, ..access }),
        None if is_cheap(&access, looked_at) => Some(access),
        None => {
            // Jumps along this path may be what is cheaper.
            let has_no_rival =
                |access: &Access| !unprobed.lacks_jumps() && has_no_rival(source, need, access);
            few_enough(access, has_no_rival, source, stats)
        }
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

/// The access of a statement, for any values: from parameters to key bytes without planning.
#[derive(Clone, Debug)]
pub struct Again {
    keys: KnownKeys,
    /// The conditions (positions) that the keys answer: comparisons of their columns.
    terms: Vec<usize>,
    /// The others, the fields that they read, and whether index entries decide them.
    rest: Vec<usize>,
    rest_fields: Vec<Field>,
    rest_of_entries: bool,
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
            let rest_fields = (run.filled)(&rest)?.fields();
            let keys = KnownKeys::Behind(Box::new(behind));
            Some(Again { keys, terms, rest, rest_fields, rest_of_entries: false })
        })
    }

    fn of_one_range(run: &FirstRun<'_>) -> Option<Again> {
        let FirstRun { source, need, access, conditions, value, filled, .. } = *run;
        let (layout, role) = keys(source, access.path)?;
        let is_of_keys = |(id, _): (ColumnId, CmpOp)| layout.has_column(id);
        let (terms, rest): (Vec<usize>, Vec<usize>) =
            (0..conditions.len()).partition(|at| conditions[*at].is_some_and(is_of_keys));
        let compared: Vec<(ColumnId, CmpOp)> = terms.iter().filter_map(|at| conditions[*at]).collect();
        let shape = RangeShape::of(&compared, layout, role)?;
        let rest_of_entries = !access.entry_filter.is_true();
        // Rows in an order, of which some may not pass, are left to the planner.
        let is_free = need.each.is_none() && !need.hints.full && (need.order.is_empty() || shape.is_point());
        let left = filled(&rest)?;
        if !(rest.is_empty() || is_free && access.checks(&left)) {
            return None;
        }
        let is_equal = |id| conditions.contains(&Some((id, CmpOp::Eq)));
        if !shape.is_point() && !stays_ordered(source, need, access, &is_equal) {
            return None;
        }
        let keys = match &access.method {
            Method::Get(keys) if shape.is_point() && keys.len() == 1 && access.path == Path::Primary => {
                KnownKeys::Get(shape)
            }
            Method::Scan { .. } if !shape.is_point() && rest.is_empty() => {
                KnownKeys::Stretch(Stretch::of(run)?, shape)
            }
            Method::Scan { ranges, .. } if !shape.is_point() => {
                let same = shape.ranges(layout, |term| value(*terms.get(term)?))? == *ranges;
                let stretch = Stretch::of_range(need, access).filter(|_| same)?;
                KnownKeys::Stretch(stretch.among_others(run), shape)
            }
            _ => return None,
        };
        Some(Again { keys, terms, rest, rest_fields: left.fields(), rest_of_entries })
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
    /// decide, because of a NULL or a value that no key can hold, because the other conditions read other fields now
    /// (`1 = 1 OR b = 2` reads none), or because much would be read. Also the number of entries within which an index
    /// range must end for the access to be valid.
    pub fn access<'v>(
        &self,
        source: Source<'_>,
        value: impl Fn(usize) -> Option<&'v Value>,
        rest: Predicate,
        looked_at: Option<u64>,
        stats: &dyn Statistics,
    ) -> Option<(Access, Option<usize>)> {
        if !rest.reads_exactly(&self.rest_fields) {
            return None;
        }
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
        let (layout, _) = keys(source, stretch.path())?;
        let mut access = stretch.reading(shape.ranges(layout, value)?);
        let place = if self.rest_of_entries { &mut access.entry_filter } else { &mut access.filter };
        *place = rest.into();
        if stretch.is_cheap(&access, looked_at) {
            return Some((access, None));
        }
        if matches!(access.path, Path::IndexFetch(_)) {
            // So few are read by one thread, whatever their number.
            return Some((Access { entries: 0.0, ..access }, Some(stretch.unpriced_max() as usize)));
        }
        if self.rest.is_empty() { None } else { if_few(access, source, stats).map(|access| (access, None)) }
    }
}
