//! Rows found by way of several indexes at once: any of them for OR, all of them for AND.

use std::collections::BTreeSet;

use super::candidate::{candidate, order_of};
use super::choose::{fields_of, held_fields, index_walk};
use super::cost::{COST, Sorted, Statistics, residual_share, share};
use super::path::{Access, Method, Need, Path, SetOp};
use crate::plan::{Field, Limits, Predicate, Ranges, Target, ranges};
use crate::schema::TableDef;
use crate::store::Direction;

/// Accesses put together at the most.
const BRANCHES_MAX: usize = 32;

/// ORs that are tried, at the most.
const UNIONS_MAX: usize = 32;

/// Of more ORs than that each is tried without the others: multiplied out, they would take long to plan.
const ORS_TOGETHER_MAX: usize = 4;

/// The best way to put together the rowkeys of several accesses. `found`: the ranges in the table itself;
/// `bounded`: how many indexes the predicate bounds by itself.
pub(super) fn several(
    table: &TableDef,
    need: &Need,
    (found, bounded): (&Ranges, usize),
    stats: &dyn Statistics,
) -> Option<Access> {
    if need.hints.full || table.indexes.is_empty() {
        return None;
    }
    let gather = Gather { table, need, found, stats };
    let intersection = if bounded > 1 { gather.intersection() } else { None };
    let ways = gather.unions().into_iter().chain(intersection);
    ways.min_by(|a, b| a.cost.total_cmp(&b.cost))
}

struct Gather<'a> {
    table: &'a TableDef,
    need: &'a Need,
    found: &'a Ranges,
    stats: &'a dyn Statistics,
}

impl Gather<'_> {
    /// For each OR, the union of what its alternatives give.
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

    /// The cheapest access for each alternative, those of one index made one; `None` if an alternative has none
    /// that is bound.
    fn branches(
        &self,
        terms: &[Predicate],
        alternative: &dyn Fn(&Predicate) -> Predicate,
    ) -> Option<Vec<Access>> {
        let mut grouped: Vec<(Path, Vec<Predicate>)> = Vec::new();
        for term in terms {
            let best = self.cheapest(&alternative(term))?;
            match grouped.iter_mut().find(|(path, _)| *path == best.path) {
                Some((_, together)) => together.push(term.clone()),
                None => grouped.push((best.path, vec![term.clone()])),
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
        let indexes = self.table.indexes.iter().map(|index| Path::IndexOnly(index.id));
        let ways = [Path::Primary].into_iter().chain(indexes);
        ways.filter_map(|path| self.along(path, predicate)).min_by(|a, b| a.cost.total_cmp(&b.cost))
    }

    /// The walk that gives the rowkeys of all rows that match, and perhaps of others; `None` if nothing bounds it.
    fn along(&self, path: Path, predicate: &Predicate) -> Option<Access> {
        let need = Need {
            predicate: predicate.clone(),
            output: vec![Field::Rowkey],
            order: Vec::new(),
            limit: None,
            hints: self.need.hints.clone(),
            each: None,
        };
        let mut access = match path {
            Path::Primary if need.hints.allows_table() => {
                let found = ranges(predicate, &self.table.key, Target::Primary, Limits::default());
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

    /// The rowkeys that each of a few indexes gives, as long as one more costs less than the fetches it saves.
    fn intersection(&self) -> Option<Access> {
        let index = |access: &Access| access.indexes().next().and_then(|id| self.table.index_by_id(id));
        let decided = |access: &Access| -> BTreeSet<Field> {
            let held = index(access).map(|index| held_fields(self.table, index)).unwrap_or_default();
            self.need.predicate.fields().into_iter().filter(|field| held.contains(field)).collect()
        };
        let paths = self.table.indexes.iter().map(|index| Path::IndexOnly(index.id));
        let walks = paths.filter_map(|path| self.along(path, &self.need.predicate));
        let mut walks: Vec<Access> = walks.filter(|walk| walk.method != Method::Empty).collect();
        walks.sort_by(|a, b| a.entries.total_cmp(&b.entries));
        let mut walks = walks.into_iter();
        let first = walks.next()?;
        let mut known = decided(&first);
        let mut left = first.entries * residual_share(self.stats, &first.entry_filter);
        let mut branches = vec![first];
        for walk in walks {
            let new: BTreeSet<Field> = decided(&walk).difference(&known).copied().collect();
            let share = share(self.stats.collected(), &self.need.predicate, self.found, &new);
            let saved = left * (1.0 - share) * COST.get;
            if !new.is_empty() && walk.cost + sorting(walk.entries) < saved {
                left *= share;
                known.extend(new);
                branches.push(walk);
            }
        }
        (branches.len() > 1).then(|| self.access(SetOp::Intersection, branches, left, false))
    }

    /// The branches as one access that fetches `rows` rows; `open`: they leave out some of the conditions.
    fn access(&self, set: SetOp, mut branches: Vec<Access>, rows: f64, open: bool) -> Access {
        // What a branch gives matches if its own filter says so. A row of a union may be any branch's.
        let taken = branches.iter_mut().map(|b| std::mem::replace(&mut b.filter, Predicate::True));
        let filters: Vec<Predicate> = taken.collect();
        let filter = match set {
            SetOp::Union if !open && filters.iter().all(Predicate::is_true) => Predicate::True,
            SetOp::Union => self.need.predicate.clone(),
            SetOp::Intersection => filters.into_iter().next().unwrap_or(Predicate::True),
        };
        let (direction, ordered) = match order_of(&self.table.key, self.found, self.need) {
            Some(direction) if self.found.fan_out.is_none() => (direction, true),
            _ => (Direction::Forward, self.need.order.is_empty()),
        };
        let from_key = fields_of(self.table, self.table.key.undoable().iter().copied().collect());
        let covering = self.need.output.iter().chain(&filter.fields()).all(|field| from_key.contains(field));
        let entries: f64 = branches.iter().map(|branch| branch.entries).sum();
        let walked: f64 = branches.iter().map(|branch| branch.cost).sum();
        let fetched = if covering { 0.0 } else { rows };
        let fetched = self.need.limit.filter(|_| ordered).map_or(fetched, |limit| fetched.min(limit as f64));
        let sorted = if ordered { 0.0 } else { sorting(rows) };
        Access {
            path: Path::Primary,
            method: Method::Gather { set, branches, direction, covering },
            entry_filter: Predicate::True,
            filter,
            ordered,
            entries,
            cost: walked + sorting(entries) + fetched * COST.get + sorted,
        }
    }
}

/// The condition says something about a field that keys are sorted by. One that does not finds no rows by itself.
fn bounds_one_of(sorted_by: &BTreeSet<Field>, term: &Predicate) -> bool {
    term.fields().iter().any(|field| sorted_by.contains(field))
}

/// What it costs to sort so many.
fn sorting(entries: f64) -> f64 {
    if entries > 1.0 { entries * entries.log2() * COST.compare } else { 0.0 }
}
