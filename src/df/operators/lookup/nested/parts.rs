//! Takes a plan of nested lookup joins apart.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use datafusion::common::JoinType;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr, split_conjunction};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::Join;
use super::asks::Asked;
use super::cut::SortLimit;
use super::first::{FirstMatches, Numbered};
use super::scope::{AnyMatch, Scope};
use super::search::FEW_ROWS;
use super::totals::TotalsOf;
use crate::df::below::{passed_on, picked, picked_of, place, scan_of};
use crate::df::cached::on_top::Above;
use crate::df::cached::windows::Windows;
use crate::df::join_sides::{output_of, outputs};
use crate::df::operators::join_rows::rows_of;
use crate::df::operators::lookup::instead::hash_join_of;
use crate::df::operators::lookup::{JoinColumn, JoinKind, LookupJoinExec};
use crate::df::operators::scan::ScanExec;
use crate::df::operators::seek::SeekJoinExec;
use crate::df::table::OfRow;
use crate::df::wanted::FirstFound;
use crate::exec::next_rows::ColumnOf;
use crate::key::ColumnId;
use crate::plan::Field;
use crate::row::column_type_of;
use crate::value::ColumnType;

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
        if let Some(parts) = NestedParts::of_first_that_pass(plan) {
            return Some(parts);
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
                Some(order) => Some(below.sorted_for(sort, order)),
                None => below.made(plan),
            };
        }
        if let Some(join) = plan.downcast_ref::<LookupJoinExec>() {
            return NestedParts::looking_up(join);
        }
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            return NestedParts::of_hash_join(join).or_else(|| NestedParts::of_turned(join));
        }
        if let Some(join) = plan.downcast_ref::<SeekJoinExec>() {
            return NestedParts::seeking(join);
        }
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            let made = || NestedParts::of(filter.input())?.made(plan);
            return NestedParts::numbered(plan).or_else(made);
        }
        if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
            let below = NestedParts::of(aggregate.input())?;
            return match below.totals_found(aggregate) {
                Some((totals, output)) => below.adding_up_found(totals, output, plan),
                None => below.made(plan),
            };
        }
        if let Some((_, input)) = Windows::of(plan) {
            return NestedParts::of(input)?.made(plan);
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
        // A hash join's order is that of its right side: operators above may rely on it, also on keys that do not come
        // out.
        let (own, right) = (join.properties().output_ordering(), join.right().output_ordering());
        let parts = match own.zip(right) {
            None => parts,
            Some((own, right)) => {
                let order = parts.order_of_found(join, right);
                let order = order.or_else(|| parts.order(own).filter(|_| own.len() == right.len()));
                parts.sorted(order?, 0)
            }
        };
        Some(parts.limited(0, join.fetch()))
    }

    /// The order of the right side of a join whose rows are found last, if they are those of a scan.
    fn order_of_found(
        &self,
        join: &HashJoinExec,
        order: &LexOrdering,
    ) -> Option<Vec<(ColumnOf, SortOptions)>> {
        let (_, columns) = picked(join.right()).filter(|_| self.above.is_empty())?;
        let table = self.joins.len();
        let by = |by: &PhysicalSortExpr| {
            let column = *columns.get(place(&by.expr)?)?;
            Some((ColumnOf { table, column }, by.options))
        };
        order.iter().map(by).collect()
    }

    fn finding(join: &HashJoinExec) -> Option<NestedParts> {
        // Asked first: the sides may be deep, and taking them apart at each level adds up to a power of two.
        looks_up(*join.join_type()).then_some(())?;
        let rows = NestedParts::of(join.left())?;
        if join.filter().is_some() {
            return rows.filtered(join);
        }
        match FirstMatches::of(join) {
            Some(matches) => rows.finding_first(join, matches),
            None => match AnyMatch::of(join, &rows.output, rows.joins.len() + 1) {
                Some(matches) => rows.finding_any(join, matches),
                None => rows.adding_up(join),
            },
        }
    }

    /// The parts of a join whose left side is looked up.
    fn of_turned(join: &HashJoinExec) -> Option<NestedParts> {
        looks_up(join.join_type().swap()).then_some(())?;
        let turned = join.swap_inputs(*join.partition_mode()).ok()?;
        // The order of the join is that of its rows.
        let parts = NestedParts::finding(hash_join_of(&turned)?)?.limited(0, join.fetch());
        match turned.downcast_ref::<ProjectionExec>() {
            None => Some(parts),
            Some(projection) => parts.projected(projection, &turned),
        }
    }

    /// The parts of a limit above a filter of joined rows, or in it. Each row is held against the filter as it is found,
    /// and the first that pass are enough.
    fn of_first_that_pass(plan: &Arc<dyn ExecutionPlan>) -> Option<NestedParts> {
        let parts = if let Some(sort) = plan.downcast_ref::<SortExec>() {
            let parts = NestedParts::of_passing(sort.fetch().map(|_| sort.input())?)?;
            let order = parts.order(sort.expr())?;
            parts.sorted_for(sort, order)
        } else if let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() {
            NestedParts::of_passing(limit.input())?.limited(limit.skip(), limit.fetch())
        } else {
            plan.downcast_ref::<FilterExec>()?.fetch()?;
            NestedParts::of_passing(plan)?
        };
        parts.cuts.last().is_some_and(SortLimit::may_end).then_some(parts)
    }

    /// The rows of a join that pass a filter.
    fn of_passing(plan: &Arc<dyn ExecutionPlan>) -> Option<NestedParts> {
        if let Some(input) = passed_on(&**plan) {
            return NestedParts::of_passing(input);
        }
        let filter: &FilterExec = plan.downcast_ref()?;
        let mut parts = NestedParts::of(filter.input())?;
        let is_of_all =
            parts.cuts.last().is_some_and(|cut| cut.joins == parts.joins.len() && cut.cuts_nothing());
        if !is_of_all || !parts.above.is_empty() {
            return None;
        }
        let asked = |term| Asked::of(term, ColumnType::Boolean, &parts.schema, &parts.output);
        let terms =
            split_conjunction(filter.predicate()).into_iter().map(asked).collect::<Option<Vec<_>>>()?;
        let join = parts.joins.last_mut().filter(|join| join.scope.is_none())?;
        join.filter.extend(terms);
        if let Some(columns) = filter.projection() {
            parts.output = columns.iter().map(|at| parts.output.get(*at).copied()).collect::<Option<_>>()?;
        }
        Some(NestedParts { schema: filter.schema(), ..parts }.limited(0, filter.fetch()))
    }

    /// Sorts the rows for `sort`, whose keys are these columns. They come in the order of the first table.
    fn sorted_for(self, sort: &SortExec, order: Vec<(ColumnOf, SortOptions)>) -> NestedParts {
        let is_sorted = self.cuts.iter().any(|cut| !cut.order.is_empty());
        let given = self.first.properties().output_ordering().filter(|_| !is_sorted);
        let is_given = |((of, options), by): &(&(ColumnOf, SortOptions), &PhysicalSortExpr)| {
            of.table == 0 && place(&by.expr) == Some(of.column) && by.options == *options
        };
        let by_first = given.map_or(0, |given| order.iter().zip(given.iter()).take_while(is_given).count());
        let led = led(sort).max(by_first);
        self.sorted(order, led).limited(0, sort.fetch())
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

    /// The parts of a lookup join. What it looks up may be computed right below it.
    fn looking_up(join: &LookupJoinExec) -> Option<NestedParts> {
        // Right semi joins need to know what other rows have found.
        if join.kind == JoinKind::Found || join.in_order {
            return None;
        }
        let (parts, computed) = NestedParts::of_computed(&join.rows)?;
        let table = scan_of(&join.table)?;
        let is_asked = |id: ColumnId| join.on.iter().any(|equal| equal.key == id);
        let by_ranges = parts.by_ranges || !table.request.is_rowkey(&is_asked);
        let first = matches!(join.kind, JoinKind::Semi | JoinKind::Anti).then(FirstFound::any_one);
        let matches = Matches { first, ..Matches::default() };
        let equal = |equal: &JoinColumn| {
            let value = computed.of(equal.of_row.index())?;
            // An integer may be beyond the column's type: it equals nothing then.
            let given = value.return_field(&parts.schema).ok().and_then(|given| column_type_of(&given));
            let ty = given.filter(|given| given.is_integer()).unwrap_or(equal.ty);
            let asked = Asked::of(&value, ty, &parts.schema, &parts.output)?;
            Some((asked, OfRow::equal(equal.key, equal.ty)))
        };
        let on = join.on.iter().map(equal).collect::<Option<Vec<_>>>()?;
        let (of_rows, found) = (join.rows.schema().fields().len(), parts.joins.len() + 1);
        let column = |at: &usize| match at.checked_sub(of_rows) {
            Some(column) => Some(ColumnOf { table: found, column }),
            None => parts.output.get(place(&computed.of(*at)?)?).copied(),
        };
        let output = join.output.iter().map(column).collect::<Option<_>>()?;
        let joined = NestedParts { by_ranges, ..parts }.joined(join.kind, table, on, matches)?;
        Some(NestedParts { output, schema: join.schema(), ..joined })
    }

    /// The parts of the outer rows of a join, and what is computed of them right below it.
    pub(super) fn of_computed(rows: &Arc<dyn ExecutionPlan>) -> Option<(NestedParts, ComputedColumns<'_>)> {
        let mut rows = rows;
        while let Some(input) = passed_on(&**rows) {
            rows = input;
        }
        let computed = ComputedColumns(rows.downcast_ref());
        Some((NestedParts::of(computed.0.map_or(rows, ProjectionExec::input))?, computed))
    }

    /// Adds a join with aggregates of a table.
    fn adding_up(self, join: &HashJoinExec) -> Option<NestedParts> {
        let kind = JoinKind::of(*join.join_type())
            .filter(|kind| matches!(kind, JoinKind::Inner | JoinKind::Left))?;
        let (totals, table, on) = TotalsOf::of(join)?;
        let shown = join.right().schema().fields().len();
        let first = totals.first(&table, &on);
        let matches = Matches { totals: Some(totals), first, ..Matches::default() };
        let on = self.equal(&on)?;
        let joined = NestedParts { by_ranges: true, ..self }.joined(kind, &table, on, matches)?;
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
        // A scan of one group ends by itself behind its first rows.
        let ends = table.request.takes_all() && table.fetch().is_some_and(|rows| rows as u64 == first.rows);
        let all = ends.then(|| table.paged(0, None));
        let matches = Matches { first: Some(first), ..Matches::default() };
        let on = self.equal(&on)?;
        let rows = NestedParts { by_ranges: true, ..self };
        let joined = rows.joined(kind, all.as_ref().unwrap_or(table), on, matches)?;
        joined.with_output(&output, shown, join.schema())
    }

    /// A join's rows with the lowest numbers for each outer row: these are what it finds first.
    fn numbered(plan: &Arc<dyn ExecutionPlan>) -> Option<NestedParts> {
        let Numbered { input, columns, limit, parts: by } = Numbered::of(plan)?;
        let parts = NestedParts::seeking(input.downcast_ref()?).filter(|parts| parts.above.is_empty())?;
        let last = parts.joins.last()?;
        let finds_these = matches!(last.kind, JoinKind::Inner | JoinKind::Left)
            && last.totals.is_none()
            && last.residual.is_empty()
            && last.first.as_ref().is_some_and(|first| Some(first.rows) == limit);
        let by: Vec<ColumnOf> = by.iter().map(|at| parts.output.get(*at).copied()).collect::<Option<_>>()?;
        // The number begins anew with each outer row.
        if !finds_these || !parts.tell_outer_rows(&by) {
            return None;
        }
        let output = columns.into_iter().map(|at| parts.output.get(at?).copied()).collect::<Option<_>>()?;
        let parts = NestedParts { output, schema: plan.schema(), ..parts };
        // Operators above may rely on the order in which rows are numbered.
        parts.in_order_of(plan)
    }

    /// Sorts the rows as they come from `plan`.
    fn in_order_of(self, plan: &Arc<dyn ExecutionPlan>) -> Option<NestedParts> {
        match plan.output_ordering().map(|order| self.order(order)) {
            None => Some(self),
            Some(order) => Some(self.sorted(order?, 0)),
        }
    }

    /// Each row of the tables before the last one has other values in these columns: they have the rowkeys.
    fn tell_outer_rows(&self, by: &[ColumnOf]) -> bool {
        let Some((_, before)) = self.joins.split_last() else { return false };
        let is_told = |(table, scan): (usize, &ScanExec)| {
            let key = &scan.request.table().key;
            let has = |id: &ColumnId| {
                by.iter().any(|by| {
                    by.table == table && scan.request.output_field(by.column) == Some(Field::Column(*id))
                })
            };
            !key.is_drawn() && key.columns().iter().all(has)
        };
        let multiplies = |join: &&Join| {
            let is_one = join.first.as_ref().is_some_and(|first| first.rows == 1) || join.totals.is_some();
            !is_one && join.scope.is_none() && matches!(join.kind, JoinKind::Inner | JoinKind::Left)
        };
        let others = (1..).zip(before).filter(|(_, join)| multiplies(join));
        let mut outer = std::iter::once((0, &self.first)).chain(others.map(|(at, join)| (at, &join.table)));
        outer.all(is_told)
    }

    /// The totals of what each outer row finds in the last table, if the rows are grouped so; and the output columns.
    fn totals_found(&self, aggregate: &AggregateExec) -> Option<(TotalsOf, Vec<ColumnOf>)> {
        let (found, last) = (self.joins.len(), self.joins.last()?);
        let is_alone = last.kind == JoinKind::Left
            && last.totals.is_none()
            && last.residual.is_empty()
            && last.first.as_ref().is_none_or(|first| first.rows == 1)
            && self.above.is_empty()
            && self.cuts.last().is_some_and(|cut| cut.joins == found && cut.cuts_nothing());
        let columns = |(by, _): &(Arc<dyn PhysicalExpr>, String)| self.output.get(place(by)?).copied();
        let groups: Vec<ColumnOf> =
            aggregate.group_expr().expr().iter().map(columns).collect::<Option<_>>()?;
        let are_outer = groups.iter().all(|by| by.table < found) && self.tell_outer_rows(&groups);
        let totals = TotalsOf::found(aggregate, found, &self.output).filter(|_| is_alone && are_outer)?;
        let output = groups.into_iter().chain(self::columns(found, aggregate.aggr_expr().len())).collect();
        Some((totals, output))
    }

    /// Has the last table give these totals instead of its rows.
    fn adding_up_found(
        mut self,
        totals: TotalsOf,
        output: Vec<ColumnOf>,
        plan: &Arc<dyn ExecutionPlan>,
    ) -> Option<NestedParts> {
        self.joins.last_mut()?.totals = Some(totals);
        NestedParts { output, schema: plan.schema(), ..self }.in_order_of(plan)
    }

    /// Columns of the outer rows, and columns of a table that equal them.
    pub(super) fn equal(&self, on: &[JoinColumn]) -> Option<Vec<(Asked, OfRow)>> {
        let term = |equal: &JoinColumn| {
            let of_row = self.output.get(equal.of_row.index()).copied()?;
            Some((Asked::Column(of_row), OfRow::equal(equal.key, equal.ty)))
        };
        on.iter().map(term).collect()
    }

    /// Adds a join that looks for one match in several tables.
    fn finding_any(
        mut self,
        join: &HashJoinExec,
        AnyMatch { kind, tables }: AnyMatch,
    ) -> Option<NestedParts> {
        let column = |at| self.output.get(output_of(join, at)?.1).copied();
        let output = (0..join.schema().fields().len()).map(column).collect::<Option<_>>()?;
        let before = self.joins.len();
        let scope = Scope { wants_match: kind == JoinKind::Semi, levels: before + 1..=before + tables.len() };
        self.by_ranges = true;
        let mut joined = self;
        for (table, on) in tables {
            let is_last = joined.joins.len() + 1 == *scope.levels.end();
            let matches = Matches { first: is_last.then(FirstFound::any_one), ..Matches::default() };
            joined = joined.joined(JoinKind::Inner, &table, on, matches)?;
            joined.joins.last_mut()?.scope = Some(scope.clone());
        }
        Some(NestedParts { output, schema: join.schema(), ..joined })
    }

    /// Adds a join with a table that is asked this.
    pub(super) fn joined(
        mut self,
        kind: JoinKind,
        table: &ScanExec,
        on: Vec<(Asked, OfRow)>,
        Matches { totals, residual, first }: Matches,
    ) -> Option<NestedParts> {
        let is_plain = table.is_whole() && table.fetch().is_none() && !table.passes_over();
        if !is_plain || !self.above.is_empty() {
            return None;
        }
        let (of_row, on): (Vec<Asked>, Vec<OfRow>) = on.into_iter().unzip();
        let (asked, found) = (table.request.asked_of(&on), Default::default());
        self.joins.push(Join {
            kind,
            table: table.unbound(),
            of_row,
            on,
            asked,
            totals,
            residual,
            filter: Vec::new(),
            first,
            scope: None,
            found,
        });
        match self.cuts.last_mut() {
            // A cut that passes all rows moves behind this join.
            Some(cut) if cut.cuts_nothing() => cut.joins = self.joins.len(),
            _ => self.cuts.push(SortLimit::all(self.joins.len())),
        }
        Some(self)
    }

    /// Picks the output from the columns so far and the `shown` columns of the last table.
    pub(super) fn with_output(
        self,
        output: &[usize],
        shown: usize,
        schema: SchemaRef,
    ) -> Option<NestedParts> {
        let all: Vec<ColumnOf> = self.output.into_iter().chain(columns(self.joins.len(), shown)).collect();
        let output = output.iter().map(|at| all.get(*at).copied()).collect::<Option<_>>()?;
        Some(NestedParts { output, schema, ..self })
    }
}

/// The columns of outer rows, by what is below the projection that computes them, if there is one.
pub(super) struct ComputedColumns<'p>(Option<&'p ProjectionExec>);

impl ComputedColumns<'_> {
    /// The column at this position.
    pub(super) fn of(&self, at: usize) -> Option<Arc<dyn PhysicalExpr>> {
        match self.0 {
            Some(computed) => Some(Arc::clone(&computed.expr().get(at)?.expr)),
            None => Some(nameless(at)),
        }
    }
}

/// A column by its position: its name does not matter here.
pub(super) fn nameless(at: usize) -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new("", at))
}

/// Nested joins take the totals or the first matches of few rows on one side of this join, instead of looking up these
/// rows for all totals or matches.
pub fn finds_for_each(join: &HashJoinExec) -> bool {
    let finds = |join: &HashJoinExec| {
        let rows = rows_of(join.left()).zip(rows_of(join.right()));
        let are_few = rows.is_some_and(|(few, all)| few <= all.max(FEW_ROWS as f64));
        are_few && (FirstMatches::of(join).is_some() || TotalsOf::of(join).is_some() || looks_through(join))
    };
    let is_whole = |side| picked(side).is_some();
    if is_whole(join.left()) && is_whole(join.right()) {
        return false;
    }
    let turned = || join.swap_inputs(*join.partition_mode()).ok();
    finds(join) || turned().is_some_and(|turned| hash_join_of(&turned).is_some_and(finds))
}

/// An outer row looks through several tables for one match.
fn looks_through(join: &HashJoinExec) -> bool {
    let columns: Vec<ColumnOf> = columns(0, join.left().schema().fields().len()).collect();
    AnyMatch::of(join, &columns, 1).is_some()
}

/// The left side of the join can look rows up one by one.
fn looks_up(join: JoinType) -> bool {
    JoinKind::of(join).is_some_and(|kind| kind != JoinKind::Found)
}

/// What an outer row takes of its matches.
#[derive(Default)]
pub(super) struct Matches {
    pub totals: Option<TotalsOf>,
    /// Conditions that they have to pass.
    pub residual: Vec<Asked>,
    pub first: Option<FirstFound>,
}

/// Leading sort keys (count) by which the sort's input is sorted already.
pub fn led(sort: &SortExec) -> usize {
    let prefix = sort.input().equivalence_properties().extract_common_sort_prefix(sort.expr().clone());
    prefix.map_or(0, |(prefix, _)| prefix.len())
}

/// The first columns of a table.
pub(super) fn columns(table: usize, count: usize) -> impl Iterator<Item = ColumnOf> {
    (0..count).map(move |column| ColumnOf { table, column })
}
