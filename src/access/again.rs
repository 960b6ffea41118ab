//! The choice for a statement that has run before, with other parameters.

use super::choose::path_access;
use super::cost::{COST, Statistics};
use super::path::{Access, Method, Need, Path, Source};
use super::probe::Jumps;
use crate::key::KeyRanges;
use crate::plan::{Predicate, Skip, Target, short_ranges};
use crate::schema::TableStatistics;
use crate::store::{Direction, KeyspaceId};

/// The path that served the same statement before, if for these parameters too it cannot cost much more than any
/// other, so that none need be looked at: nothing or one key to read, nothing but rows that are wanted and need no
/// fetch, a limit on rows that lie in order, or few entries.
pub fn choose_again(source: Source<'_>, need: &Need, path: Path, stats: &dyn Statistics) -> Option<Access> {
    let mut access = path_access(source, need, path, &Unprobed(stats))?;
    match &access.method {
        Method::Empty | Method::Get(_) => Some(access),
        Method::Scan { skip: Some(_), .. } | Method::Gather { .. } => None,
        Method::Scan { ranges, .. } => {
            let reads_all = access.entry_filter.is_true() && access.filter.is_true();
            if reads_all && access.ordered && is_good_anyhow(path, need.limit) {
                return Some(access);
            }
            access.entries = few_entries(stats, access.keyspace(source), ranges)?;
            Some(access)
        }
    }
}

/// Reading nothing but wanted rows in the wanted order cannot cost much more than any other path does.
fn is_good_anyhow(path: Path, limit: Option<u64>) -> bool {
    limit.is_some_and(|limit| limit < COST.probe_entries) || !matches!(path, Path::IndexFetch(_))
}

/// How many entries there are, if they are few.
fn few_entries(stats: &dyn Statistics, keyspace: KeyspaceId, ranges: &KeyRanges) -> Option<f64> {
    let found = stats.probe(keyspace, ranges, COST.probe_entries);
    (found < COST.probe_entries).then_some(found as f64)
}

/// A path that reads one range of keys and needs to check nothing. What a statement wants decides which way it
/// goes, its parameters only where it begins and ends: the same path, priced without a look at the others.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    path: Path,
    direction: Direction,
    ordered: bool,
    /// As they were priced for the first parameters.
    entries: f64,
    cost: f64,
}

impl Stretch {
    /// The path of an access, if it is of this kind, chosen by nothing but comparisons of columns.
    pub fn of(source: Source<'_>, need: &Need, access: &Access) -> Option<Stretch> {
        let Method::Scan { direction, merge: None, skip: None, .. } = access.method else { return None };
        if need.each.is_some() || need.hints.full {
            return None;
        }
        stretch(source, access.path, &need.predicate)?;
        let Access { path, ordered, entries, cost, .. } = *access;
        Some(Stretch { path, direction, ordered, entries, cost })
    }

    /// The access for other values of the same comparisons; `None` as of [`choose_again`].
    pub fn access(
        &self,
        source: Source<'_>,
        predicate: &Predicate,
        limit: Option<u64>,
        stats: &dyn Statistics,
    ) -> Option<Access> {
        let ranges = stretch(source, self.path, predicate)?;
        let Stretch { path, direction, ordered, entries, cost } = *self;
        let mut access = Access {
            path,
            method: Method::Scan { ranges, direction, merge: None, skip: None },
            entry_filter: Predicate::True,
            filter: Predicate::True,
            ordered,
            entries,
            cost,
        };
        if !ordered || !is_good_anyhow(path, limit) {
            let Method::Scan { ranges, .. } = &access.method else { return None };
            access.entries = few_entries(stats, access.keyspace(source), ranges)?;
        }
        Some(access)
    }
}

/// The one range of keys along this path that holds just the rows that pass.
fn stretch(source: Source<'_>, path: Path, predicate: &Predicate) -> Option<KeyRanges> {
    let (layout, target) = match (source, path) {
        (Source::Table(table), Path::Primary) => (&table.key, Target::Primary),
        (Source::Table(table), Path::IndexOnly(id) | Path::IndexFetch(id)) => {
            (&table.index_by_id(id).filter(|index| index.filter.is_none())?.layout, Target::Index)
        }
        (Source::Index(_, index), _) => (&index.layout, Target::Index),
    };
    let found = short_ranges(predicate, layout, target)?;
    (found.tight && !found.points).then_some(found.ranges)
}

/// Statistics without a look at the data: every range is long.
struct Unprobed<'a>(&'a dyn Statistics);

impl Statistics for Unprobed<'_> {
    fn entries(&self, keyspace: KeyspaceId) -> u64 {
        self.0.entries(keyspace)
    }

    fn probe(&self, _: KeyspaceId, _: &KeyRanges, limit: u64) -> u64 {
        limit
    }

    fn collected(&self) -> Option<&TableStatistics> {
        self.0.collected()
    }

    fn jumps(&self, _: KeyspaceId, _: &KeyRanges, _: &Skip) -> Jumps {
        Jumps::default()
    }
}
