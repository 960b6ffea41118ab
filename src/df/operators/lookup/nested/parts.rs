//! Takes a plan of nested lookup joins apart.

use std::sync::{Arc, OnceLock};

use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::Join;
use super::cut::SortLimit;
use super::first::FirstMatches;
use super::search::FEW_ROWS;
use super::totals::TotalsOf;
use crate::df::below::{passed_on, picked, picked_of, place, scan_of};
use crate::df::cached::on_top::Above;
use crate::df::join_sides::outputs;
use crate::df::operators::join_rows::rows_of;
use crate::df::operators::lookup::instead::hash_join_of;
use crate::df::operators::lookup::{JoinColumn, JoinKind, LookupJoinExec};
use crate::df::operators::scan::ScanExec;
use crate::df::wanted::FirstFound;
use crate::exec::joined::ColumnOf;
use crate::key::ColumnId;
use crate::plan::Field;

/// The parts of a plan.
pub struct NestedParts {
    pub first: ScanExec,
    pub joins: Vec<Join>,
    /// Sorts and limits, the innermost first; the last one comes after all joins.
    pub cuts: Vec<SortLimit>,
    /// Columns of the joined rows, and their schema.
    pub output: Vec<ColumnOf>,
    pub schema: SchemaRef,
    /// Simple operators above them.
    pub above: Above,
    /// Some table is looked up by range.
    pub by_ranges: bool,
}

impl NestedParts {
    /// The parts of a plan; `None` if it has other operators.
    pub fn of(plan: &Arc<dyn ExecutionPlan>) -> Option<NestedParts> {
        if let Some(input) = passed_on(&**plan) {
            return NestedParts::of(input);
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            return NestedParts::of(projection.input())?.projected(projection, plan);
        }
        if let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() {
            let below = NestedParts::of(limit.input())?;
            // Limit below projections: they need to compute the limited rows only.
            if below.above.changes_rows() {
                return below.made(plan);
            }
            return Some(below.limited(limit.skip(), limit.fetch()));
        }
        if let Some(sort) = plan.downcast_ref::<SortExec>() {
            let below = NestedParts::of(sort.input())?;
            return match below.order(sort.expr()) {
                Some(order) => Some(below.sorted(order, led(sort)).limited(0, sort.fetch())),
                None => below.made(plan),
            };
        }
        if let Some(join) = plan.downcast_ref::<LookupJoinExec>() {
            return NestedParts::of(&join.rows)?.looking_up(join);
        }
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            return NestedParts::of_hash_join(join).or_else(|| NestedParts::of_turned(join));
        }
        let scan = plan.downcast_ref::<ScanExec>().filter(|scan| scan.is_whole())?;
        Some(NestedParts {
            first: scan.unbound(),
            joins: Vec::new(),
            cuts: vec![SortLimit::all(0)],
            output: columns(0, scan.request.schema.fields().len()).collect(),
            schema: plan.schema(),
            above: Above::default(),
            by_ranges: false,
        })
    }

    /// The parts of a join whose right side is looked up for each row of its left side.
    fn of_hash_join(join: &HashJoinExec) -> Option<NestedParts> {
        let parts = NestedParts::finding(join)?;
        // A hash join's order is that of its right side: operators above may rely on it.
        let order = join.properties().output_ordering().map(|order| parts.order(order));
        let parts = match order {
            None => parts,
            Some(order) => parts.sorted(order?, 0),
        };
        Some(parts.limited(0, join.fetch()))
    }

    fn finding(join: &HashJoinExec) -> Option<NestedParts> {
        let rows = NestedParts::of(join.left())?;
        match FirstMatches::of(join) {
            Some(matches) => rows.finding_first(join, matches),
            None => rows.adding_up(join),
        }
    }

    /// The parts of a join whose left side is looked up.
    fn of_turned(join: &HashJoinExec) -> Option<NestedParts> {
        JoinKind::of(join.join_type().swap())?;
        let turned = join.swap_inputs(*join.partition_mode()).ok()?;
        // The order of the join is that of its rows.
        let parts = NestedParts::finding(hash_join_of(&turned)?)?.limited(0, join.fetch());
        match turned.downcast_ref::<ProjectionExec>() {
            None => Some(parts),
            Some(projection) => parts.projected(projection, &turned),
        }
    }

    /// Applies a projection, which is `plan`.
    fn projected(self, projection: &ProjectionExec, plan: &Arc<dyn ExecutionPlan>) -> Option<NestedParts> {
        match picked_of(projection, &self.output).filter(|_| self.above.is_empty()) {
            Some(output) => Some(NestedParts { output, schema: plan.schema(), ..self }),
            None => self.made(plan),
        }
    }

    /// Adds an operator above the joined rows.
    fn made(mut self, plan: &Arc<dyn ExecutionPlan>) -> Option<NestedParts> {
        self.above.push(plan)?;
        Some(self)
    }

    /// The sort keys, if they are columns of the tables and no operator is above the joins yet.
    fn order(&self, order: &[PhysicalSortExpr]) -> Option<Vec<(ColumnOf, SortOptions)>> {
        let by = |by: &PhysicalSortExpr| Some((*self.output.get(place(&by.expr)?)?, by.options));
        order.iter().map(by).collect::<Option<_>>().filter(|_| self.above.is_empty())
    }

    fn sorted(mut self, order: Vec<(ColumnOf, SortOptions)>, led: usize) -> NestedParts {
        // A cut that passes all rows is replaced.
        self.cuts.pop_if(|cut| cut.cuts_nothing());
        self.cuts.push(SortLimit::sorted(self.joins.len(), order, led));
        self
    }

    fn limited(mut self, skip: usize, fetch: Option<usize>) -> NestedParts {
        if let Some(cut) = self.cuts.last_mut() {
            cut.limit(skip, fetch);
        }
        self
    }

    /// Adds a lookup join.
    fn looking_up(self, join: &LookupJoinExec) -> Option<NestedParts> {
        // Right semi joins need to know what other rows have found.
        if join.kind == JoinKind::Found || join.in_order {
            return None;
        }
        let table = scan_of(&join.table)?;
        let shown = if join.kind.shows_found() { table.request.schema.fields().len() } else { 0 };
        let is_asked = |id: ColumnId| join.on.iter().any(|equal| equal.key == id);
        let by_ranges = self.by_ranges || !table.request.is_rowkey(&is_asked);
        let first = matches!(join.kind, JoinKind::Semi | JoinKind::Anti).then(FirstFound::any_one);
        let matches = Matches { totals: None, first };
        let joined = NestedParts { by_ranges, ..self }.joined(join.kind, table, &join.on, matches)?;
        joined.with_output(&join.output, shown, join.schema())
    }

    /// Adds a join with aggregates of a table.
    fn adding_up(self, join: &HashJoinExec) -> Option<NestedParts> {
        let kind = JoinKind::of(*join.join_type())
            .filter(|kind| matches!(kind, JoinKind::Inner | JoinKind::Left))?;
        let (totals, table, on) = TotalsOf::of(join)?;
        let shown = join.right().schema().fields().len();
        let first = totals.first(&table, &on);
        let matches = Matches { totals: Some(totals), first };
        let joined = NestedParts { by_ranges: true, ..self }.joined(kind, &table, &on, matches)?;
        joined.with_output(&outputs(join), shown, join.schema())
    }

    /// Adds a join with the first matches in a table.
    fn finding_first(self, join: &HashJoinExec, matches: FirstMatches<'_>) -> Option<NestedParts> {
        let kind = JoinKind::of(*join.join_type())
            .filter(|kind| matches!(kind, JoinKind::Inner | JoinKind::Left))?;
        let FirstMatches { table, on, first, columns } = matches;
        let of_rows = join.left().schema().fields().len();
        let output = outputs(join).into_iter().map(|at| match at.checked_sub(of_rows) {
            Some(of_right) => of_rows + columns[of_right],
            None => at,
        });
        let output: Vec<usize> = output.collect();
        let shown = table.request.schema.fields().len();
        let matches = Matches { totals: None, first: Some(first) };
        let joined = NestedParts { by_ranges: true, ..self }.joined(kind, table, &on, matches)?;
        joined.with_output(&output, shown, join.schema())
    }

    fn joined(
        mut self,
        kind: JoinKind,
        table: &ScanExec,
        on: &[JoinColumn],
        Matches { totals, first }: Matches,
    ) -> Option<NestedParts> {
        let is_plain = table.is_whole() && table.fetch().is_none() && !table.passes_over();
        let of_row = on.iter().map(|equal| self.output.get(equal.of_row.index()).copied());
        let of_row = of_row.collect::<Option<_>>().filter(|_| is_plain && self.above.is_empty())?;
        let on: Vec<_> = on.iter().map(|equal| (Field::Column(equal.key), equal.ty)).collect();
        let (asked, found) = (table.request.asked_of(&on), OnceLock::new());
        self.joins.push(Join { kind, table: table.unbound(), of_row, on, asked, totals, first, found });
        match self.cuts.last_mut() {
            // A cut that passes all rows moves behind this join.
            Some(cut) if cut.cuts_nothing() => cut.joins = self.joins.len(),
            _ => self.cuts.push(SortLimit::all(self.joins.len())),
        }
        Some(self)
    }

    /// Picks the output from the columns so far and the `shown` columns of the last table.
    fn with_output(self, output: &[usize], shown: usize, schema: SchemaRef) -> Option<NestedParts> {
        let all: Vec<ColumnOf> = self.output.into_iter().chain(columns(self.joins.len(), shown)).collect();
        let output = output.iter().map(|at| all.get(*at).copied()).collect::<Option<_>>()?;
        Some(NestedParts { output, schema, ..self })
    }
}

/// Nested joins take the totals or the first matches of few rows on one side of this join, instead of looking up these
/// rows for all totals or matches.
pub fn finds_for_each(join: &HashJoinExec) -> bool {
    let finds = |join: &HashJoinExec| {
        let rows = rows_of(join.left()).zip(rows_of(join.right()));
        let are_few = rows.is_some_and(|(few, all)| few <= all.max(FEW_ROWS as f64));
        are_few && (FirstMatches::of(join).is_some() || TotalsOf::of(join).is_some())
    };
    let is_whole = |side| picked(side).is_some();
    if is_whole(join.left()) && is_whole(join.right()) {
        return false;
    }
    let turned = || join.swap_inputs(*join.partition_mode()).ok();
    finds(join) || turned().is_some_and(|turned| hash_join_of(&turned).is_some_and(finds))
}

/// What an outer row takes of its matches.
struct Matches {
    totals: Option<TotalsOf>,
    first: Option<FirstFound>,
}

/// Leading sort keys (count) by which the sort's input is sorted already.
pub fn led(sort: &SortExec) -> usize {
    let prefix = sort.input().equivalence_properties().extract_common_sort_prefix(sort.expr().clone());
    prefix.map_or(0, |(prefix, _)| prefix.len())
}

fn columns(table: usize, count: usize) -> impl Iterator<Item = ColumnOf> {
    (0..count).map(move |column| ColumnOf { table, column })
}
