//! Combines several indexes: the union of their rowkeys for OR, the intersection for AND.

use std::collections::{BTreeMap, BTreeSet};

use super::candidate::{candidate, order_of};
use super::choose::{fields_of, held_fields, index_walk};
use super::cost::{COST, Sorted, Statistics, residual_share, share, sorting};
use super::path::{Access, Method, Need, Path, SetOp, Source};
use super::stretch::if_few;
use super::unprobed::Unprobed;
use crate::plan::{Field, Filter, LayoutRole, Predicate, Ranges, ranges};
use crate::schema::{IndexDef, IndexId, TableDef};
use crate::store::Direction;

/// Accesses combined (count), at most.
const BRANCHES_MAX: usize = 32;

/// ORs tried (count), at most.
const UNIONS_MAX: usize = 32;

/// Consecutive alternatives (count) over the same fields with the same cheapest walk, after which the rest is
/// assumed to have it too: a join of several columns may bring thousands.
const ALIKE: usize = 8;

/// With more ORs than this (count), each is tried alone: multiplied out, they would take long to plan.
const ORS_TOGETHER_MAX: usize = 4;

/// The best combinations of several accesses' rowkeys. `found`: the ranges in the table itself; `bounded`:
/// how many indexes the predicate bounds by itself.
pub(super) fn several(
    table: &TableDef,
    need: &Need,
    (found, bounded): (&Ranges, usize),
    stats: &dyn Statistics,
) -> Option<Access> {
    if need.hints.full || table.indexes.is_empty() {
        return None;
    }
    let combiner = IndexCombiner { table, need, found, stats, only: None };
    let mut ways = combiner.unions();
    // The cheapest walks may have to fetch all rows where dearer ones are covering.
    let covering: Vec<IndexId> = combiner.covering_all().collect();
    if covering.len() > 1 && covering.len() < table.indexes.len() {
        ways.extend(IndexCombiner { only: Some(covering), ..combiner }.unions());
    }
    if bounded > 1 {
        ways.extend(combiner.intersections());
    }
    ways.into_iter().min_by(|a, b| a.cost.total_cmp(&b.cost))
}

/// The walk of each alternative of a union, by the fields that it names.
#[derive(Clone, Debug, PartialEq)]
pub struct UnionPaths(Vec<(Vec<Field>, Path)>);

impl UnionPaths {
    /// Those of an access; `None` if it is no union of one OR's alternatives.
    pub fn of(table: &TableDef, need: &Need, access: &Access, stats: &dyn Statistics) -> Option<UnionPaths> {
        let Method::Gather { set: SetOp::Union, branches, .. } = &access.method else { return None };
        let found = ranges(&need.predicate, &table.key, LayoutRole::Primary);
        let combiner = IndexCombiner { table, need, found: &found, stats, only: None };
        let conjuncts = need.predicate.clone().conjuncts();
        let (at, terms) = only_or(&conjuncts)?;
        let path = |term: &Predicate| {
            let walk = combiner.cheapest(&beside(&conjuncts, at, term.clone()))?;
            let is_one = branches.iter().any(|branch| branch.path == walk.path);
            is_one.then(|| (term.fields(), walk.path))
        };
        let paths: Vec<_> = terms.iter().map(path).collect::<Option<_>>()?;
        (paths.len() == branches.len()).then_some(UnionPaths(paths))
    }

    /// The union along the same walks for other values; `None` if one of them reads more than a few entries.
    pub fn access(&self, table: &TableDef, need: &Need, stats: &dyn Statistics) -> Option<Access> {
        if need.each.is_some() || need.hints.full {
            return None;
        }
        let found = ranges(&need.predicate, &table.key, LayoutRole::Primary);
        let unprobed = Unprobed::new(stats);
        let combiner = IndexCombiner { table, need, found: &found, stats: &unprobed, only: None };
        let conjuncts = need.predicate.clone().conjuncts();
        let (at, terms) = only_or(&conjuncts).filter(|(_, terms)| terms.len() == self.0.len())?;
        let mut branches = Vec::with_capacity(terms.len());
        for (term, (fields, path)) in terms.iter().zip(&self.0) {
            if term.fields() != *fields {
                return None;
            }
            let walk = combiner.along(*path, &beside(&conjuncts, at, term.clone()))?;
            branches.push(match &walk.method {
                Method::Empty => continue,
                Method::Get(_) => walk,
                _ => if_few(walk, Source::Table(table), stats)?,
            });
        }
        let gives = branches.iter().map(|branch| branch.entries).sum();
        (branches.len() > 1).then(|| combiner.access(SetOp::Union, branches, gives, false))
    }
}

/// The OR among some conditions, if there is one, and its alternatives.
fn only_or(conjuncts: &[Predicate]) -> Option<(usize, &[Predicate])> {
    let mut ors = conjuncts.iter().enumerate().filter_map(|(at, conjunct)| match conjunct {
        Predicate::Or(terms) => Some((at, &terms[..])),
        _ => None,
    });
    ors.next().filter(|_| ors.next().is_none())
}

/// The conditions with this one in place of that at the position `at`.
fn beside(conjuncts: &[Predicate], at: usize, term: Predicate) -> Predicate {
    let others = conjuncts.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, other)| other.clone());
    Predicate::and(others.chain([term]))
}

struct IndexCombiner<'a> {
    table: &'a TableDef,
    need: &'a Need,
    found: &'a Ranges,
    stats: &'a dyn Statistics,
    /// If set, only these indexes may be walked.
    only: Option<Vec<IndexId>>,
}

impl IndexCombiner<'_> {
    /// The covering indexes.
    fn covering_all(&self) -> impl Iterator<Item = IndexId> {
        let covers = |index: &&IndexDef| {
            let held = held_fields(self.table, index);
            self.need.output.iter().all(|field| held.contains(field))
        };
        self.table.indexes.iter().filter(covers).map(|index| index.id)
    }

    /// For each OR, the union of its alternatives' accesses.
    fn unions(&self) -> Vec<Access> {
        let conjuncts = self.need.predicate.clone().conjuncts();
        let is_or = |term: &Predicate| matches!(term, Predicate::Or(_));
        let together = conjuncts.iter().filter(|term| is_or(term)).count() <= ORS_TOGETHER_MAX;
        let sorted_by = self.sorted_by();
        let each = conjuncts.iter().enumerate().filter_map(|(at, conjunct)| match conjunct {
            Predicate::Or(terms) if terms.iter().all(|term| bounds_one_of(&sorted_by, term)) => {
                Some((at, terms))
            }
            _ => None,
        });
        let unions = each.take(UNIONS_MAX).filter_map(|(at, terms)| {
            let stays = |(i, term): &(usize, &Predicate)| *i != at && (together || !is_or(term));
            let rest = || conjuncts.iter().enumerate().filter(stays).map(|(_, term)| term.clone());
            let alternative = |term: &Predicate| Predicate::and(rest().chain([term.clone()]));
            let branches = self.branches(terms, &alternative)?;
            let gives =
                branches.iter().map(|b| b.entries * residual_share(self.stats, &b.entry_filter)).sum();
            Some(self.access(SetOp::Union, branches, gives, !together))
        });
        unions.collect()
    }

    /// The fields that the table or an index is sorted by.
    fn sorted_by(&self) -> BTreeSet<Field> {
        let indexes = self.table.indexes.iter().map(|index| &index.layout);
        let parts = indexes.chain([&self.table.key]).flat_map(|layout| layout.parts());
        let columns = parts.flat_map(|part| part.columns()).copied().map(Field::Column);
        columns.chain([Field::Rowkey, Field::PrimaryRowkey]).collect()
    }

    /// The cheapest access for each alternative, merged if they use the same index; `None` if an alternative
    /// has no bounded access.
    fn branches(
        &self,
        terms: &[Predicate],
        alternative: &dyn Fn(&Predicate) -> Predicate,
    ) -> Option<Vec<Access>> {
        let mut grouped: Vec<(Path, Vec<Predicate>)> = Vec::new();
        let mut seen: BTreeMap<Vec<Field>, (Path, usize)> = BTreeMap::new();
        for term in terms {
            let fields = term.fields();
            let path = match seen.get(&fields) {
                Some((path, ALIKE..)) => *path,
                before => {
                    let best = self.cheapest(&alternative(term))?.path;
                    let alike = before.filter(|(path, _)| *path == best).map_or(0, |(_, alike)| *alike);
                    seen.insert(fields, (best, alike + 1));
                    best
                }
            };
            match grouped.iter_mut().find(|(other, _)| *other == path) {
                Some((_, together)) => together.push(term.clone()),
                None => grouped.push((path, vec![term.clone()])),
            }
        }
        if grouped.len() < 2 || grouped.len() > BRANCHES_MAX {
            return None;
        }
        let mut branches = Vec::with_capacity(grouped.len());
        for (path, together) in grouped {
            let access = self.along(path, &alternative(&Predicate::or(together)))?;
            if access.method != Method::Empty {
                branches.push(access);
            }
        }
        Some(branches)
    }

    fn cheapest(&self, predicate: &Predicate) -> Option<Access> {
        let may_be = |id: &IndexId| self.only.as_ref().is_none_or(|only| only.contains(id));
        let indexes = self.table.indexes.iter().map(|index| index.id).filter(may_be).map(Path::IndexOnly);
        let ways = [Path::Primary].into_iter().chain(indexes);
        ways.filter_map(|path| self.along(path, predicate)).min_by(|a, b| a.cost.total_cmp(&b.cost))
    }

    /// A walk that gives the rowkeys of all matching rows, and perhaps of others; `None` if nothing bounds
    /// it.
    fn along(&self, path: Path, predicate: &Predicate) -> Option<Access> {
        let need = Need {
            predicate: predicate.clone(),
            output: [Field::Rowkey].into(),
            order: Vec::new(),
            limit: None,
            offset: 0,
            hints: self.need.hints.clone(),
            each: None,
        };
        let mut access = match path {
            Path::Primary if need.hints.allows_table() => {
                let found = ranges(predicate, &self.table.key, LayoutRole::Primary);
                candidate(Sorted::table(self.table), found, &need, self.stats)
            }
            Path::Primary => return None,
            Path::IndexOnly(id) | Path::IndexFetch(id) => {
                let index = self.table.index_by_id(id).filter(|_| need.hints.allows(id))?;
                index_walk(self.table, index, &need, self.stats).ok()?
            }
        };
        if access.method.is_whole() {
            return None;
        }
        access.path = path;
        Some(access)
    }

    /// Intersections of a few indexes, adding one as long as it costs less than the fetches it saves; also
    /// with further indexes that make the whole covering.
    fn intersections(&self) -> Vec<Access> {
        let paths = self.table.indexes.iter().map(|index| Path::IndexOnly(index.id));
        let walks = paths.filter_map(|path| self.along(path, &self.need.predicate));
        let mut walks: Vec<Access> = walks.filter(|walk| walk.method != Method::Empty).collect();
        walks.sort_by(|a, b| a.entries.total_cmp(&b.entries));
        let Some((first, others)) = walks.split_first() else { return Vec::new() };
        let first = Common::of(self, first.clone());
        let mut all = first.clone();
        for walk in others {
            let more = all.with(self, walk);
            let saved = (all.rows - more.rows) * COST.get;
            if more.known.len() > all.known.len() && walk.cost + sorting(walk.entries) < saved {
                all = more;
            }
        }
        let covering = [&first, &all].map(|common| self.covering_rest(common, others));
        let mut ways: Vec<Common> = covering.into_iter().flatten().chain([all]).collect();
        ways.retain(|common| common.branches.len() > 1);
        ways.into_iter()
            .map(|common| self.access(SetOp::Intersection, common.branches, common.rows, false))
            .collect()
    }

    /// Adds walks whose entries hold needed fields that are still missing; `None` if a field is in no index.
    fn covering_rest(&self, common: &Common, walks: &[Access]) -> Option<Common> {
        let wanted: BTreeSet<Field> =
            self.need.output.iter().copied().chain(common.filter().fields()).collect();
        let missing = |common: &Common| {
            let covered = self.covered_by(&common.branches);
            wanted.iter().filter(|field| !covered.contains(field)).count()
        };
        let mut common = common.clone();
        for walk in walks {
            let more = common.with(self, walk);
            if missing(&more) < missing(&common) {
                common = more;
            }
        }
        (missing(&common) == 0).then_some(common)
    }

    /// The fields that the entries of several walks hold together.
    fn covered_by(&self, branches: &[Access]) -> BTreeSet<Field> {
        let indexes = branches.iter().flat_map(Access::indexes).filter_map(|id| self.table.index_by_id(id));
        let columns = indexes.flat_map(IndexDef::columns).chain(self.table.key.decodable().iter().copied());
        fields_of(self.table, columns.collect())
    }

    /// The branches as one access that fetches `rows` rows; `open`: they do not check all conditions.
    fn access(&self, set: SetOp, mut branches: Vec<Access>, rows: f64, open: bool) -> Access {
        // A row matches if its branch's filter passes. In a union, any branch may have given the row.
        let taken = branches.iter_mut().map(|b| std::mem::replace(&mut b.filter, Filter::all()).into());
        let filters: Vec<Predicate> = taken.collect();
        let filter = match set {
            SetOp::Union if !open && filters.iter().all(Predicate::is_true) => Predicate::True,
            SetOp::Union => self.need.predicate.clone(),
            SetOp::Intersection => filters.into_iter().next().unwrap_or(Predicate::True),
        };
        let (direction, ordered) = match order_of(&self.table.key, self.found, self.need, 0) {
            Some((direction, None)) => (direction, true),
            _ => (Direction::Forward, self.need.order.is_empty()),
        };
        let covers = |branches: &[Access]| {
            let covered = self.covered_by(branches);
            self.need.output.iter().chain(&filter.fields()).all(|field| covered.contains(field))
        };
        let covering = match set {
            SetOp::Union => branches
                .iter()
                .filter(|b| b.indexes().next().is_some())
                .all(|b| covers(std::slice::from_ref(b))),
            SetOp::Intersection => covers(&branches),
        };
        let entries: f64 = branches.iter().map(|branch| branch.entries).sum();
        let walked: f64 = branches.iter().map(|branch| branch.cost).sum();
        // Rowkeys that no index entry proves to exist must be looked up.
        let keys = branches.iter().filter(|b| b.indexes().next().is_none()).map(|b| b.entries).sum::<f64>();
        let fetched = if covering { keys.min(rows) } else { rows };
        let fetched = self.need.limit.filter(|_| ordered).map_or(fetched, |limit| fetched.min(limit as f64));
        let sorted = if ordered { 0.0 } else { sorting(rows) };
        Access {
            path: Path::Primary,
            method: Method::Gather { set, branches, direction, covering },
            entry_filter: Filter::all(),
            filter: filter.into(),
            ordered,
            entries,
            all_entries: entries,
            jumps: 0.0,
            cost: walked + sorting(entries) + fetched * COST.get + sorted,
        }
    }
}

/// An intersection of walks.
#[derive(Clone)]
struct Common {
    branches: Vec<Access>,
    /// Fields that one of the walks has decided.
    known: BTreeSet<Field>,
    /// Expected number of rowkeys.
    rows: f64,
}

impl Common {
    fn of(combiner: &IndexCombiner<'_>, walk: Access) -> Common {
        let rows = walk.entries * residual_share(combiner.stats, &walk.entry_filter);
        Common { known: Common::decided(combiner, &walk), branches: vec![walk], rows }
    }

    /// Adds a walk, unless it is there already.
    fn with(&self, combiner: &IndexCombiner<'_>, walk: &Access) -> Common {
        let mut common = self.clone();
        if self.branches.iter().all(|branch| branch.path != walk.path) {
            let new: BTreeSet<Field> =
                Common::decided(combiner, walk).difference(&self.known).copied().collect();
            common.rows *=
                share(combiner.stats.collected(), &combiner.need.predicate, &combiner.found.fixed, &new);
            common.known.extend(new);
            common.branches.push(walk.clone());
        }
        common
    }

    /// The residual filter; that of the first walk is checked on every row.
    fn filter(&self) -> &Predicate {
        self.branches.first().map_or(&Predicate::True, |first| &first.filter)
    }

    fn decided(combiner: &IndexCombiner<'_>, walk: &Access) -> BTreeSet<Field> {
        let index = walk.indexes().next().and_then(|id| combiner.table.index_by_id(id));
        let held = index.map(|index| held_fields(combiner.table, index)).unwrap_or_default();
        combiner.need.predicate.fields().into_iter().filter(|field| held.contains(field)).collect()
    }
}

/// Does the condition restrict a field that keys are sorted by? Otherwise it cannot find rows by itself.
fn bounds_one_of(sorted_by: &BTreeSet<Field>, term: &Predicate) -> bool {
    term.fields().iter().any(|field| sorted_by.contains(field))
}
