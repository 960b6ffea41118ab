//! Runs nested lookup joins: a depth-first search for joined rows, table by table.

use std::cell::OnceCell;
use std::sync::{Arc, OnceLock};

use arrow::compute::SortOptions;

use super::asks::Asked;
use super::parts::columns;
use super::{CHOOSING, Found, Join, Nested, Scope, SortLimit, TotalsOf};
use crate::df::operators::lookup::JoinKind;
use crate::df::table::{Binding, OfRow};
use crate::df::wanted::FirstFound;
use crate::error::{Error, Result};
use crate::exec::next_rows::{ColumnOf, JoinedRows, NextRows, RowOf};
use crate::exec::scan::{BATCH_ROWS, Scan, ScanCounters, grown};
use crate::exec::sums::Sums;
use crate::exec::watch::PlanText;
use crate::plan::{CmpOp, Field, Predicate, RowView};
use crate::value::{Value, ValueRef};

/// Rows (count) of the first table that are read at a time.
pub(super) const FEW_ROWS: usize = 64;

/// Most matches (count) of an outer row that are sorted for the first of them.
const TIES_MAX: usize = 4096;

/// An outer row's values of the join columns.
struct JoinValues<'v> {
    on: &'v [OfRow],
    values: &'v [Value],
}

impl RowView for JoinValues<'_> {
    fn field(&self, field: Field) -> Result<ValueRef<'_>> {
        let at = self.on.iter().position(|term| term.tells(field));
        at.map(|at| self.values[at].as_ref()).ok_or_else(|| Error::internal("a column that no row tells"))
    }
}

/// Source of the rows of a level.
enum LevelSource<'n> {
    Rows(Scan),
    /// The first of them, which come sorted by the front of their order.
    Firsts(Scan, Arc<SortLimit>),
    /// The aggregates so far, and the outer row's values of the join columns.
    Totals(Scan, &'n TotalsOf, Sums, Box<[Value]>),
}

/// Rows of one table: the first one, or one in which the current outer row has looked up its matches.
#[derive(Default)]
pub(super) struct Level<'n> {
    /// Source of more rows.
    reading: Option<LevelSource<'n>>,
    rows: Option<Arc<NextRows>>,
    /// How many of `rows` have been taken; the last of these is the current one.
    looked_at: usize,
    /// A match has been found.
    has_found: bool,
}

impl Level<'_> {
    /// A level with this row only, as the current one.
    fn at(row: Option<RowOf<'_>>) -> Self {
        match row {
            Some((rows, row)) => {
                Level { rows: Some(Arc::clone(rows)), looked_at: row + 1, ..Level::default() }
            }
            None => Level::default(),
        }
    }

    /// The current row; `None`: a null-extended row.
    pub(super) fn row(&self) -> Option<RowOf<'_>> {
        let rows = self.rows.as_ref()?;
        Some((rows, self.looked_at.checked_sub(1)?))
    }

    /// Rows (count) that were read last.
    fn read_last(&self) -> usize {
        self.rows.as_ref().map_or(0, |rows| rows.len())
    }

    /// Makes the next row the current one; false if there is none yet.
    fn next(&mut self) -> bool {
        let is_there = self.rows.as_ref().is_some_and(|rows| self.looked_at < rows.len());
        self.looked_at += usize::from(is_there);
        is_there
    }

    pub(super) fn value(&self, column: usize) -> Result<Value> {
        self.row().map_or(Ok(Value::Null), |(rows, row)| rows.value(row, column))
    }

    /// Reads at most `most` more rows, possibly none yet; false if there are too many.
    fn read(&mut self, most: usize) -> Result<bool> {
        let (rows, is_over) = match &mut self.reading {
            None => return Ok(true),
            Some(LevelSource::Rows(scan)) => {
                let rows = scan.next_rows(most)?;
                (rows, scan.is_over())
            }
            Some(LevelSource::Firsts(scan, first)) => match firsts(scan, first)? {
                Some(rows) => (Some(NextRows::Joined(rows)), true),
                None => return Ok(false),
            },
            Some(LevelSource::Totals(scan, totals, sums, equal)) => {
                let is_over = !scan.add_up(sums)?;
                let row = if is_over { totals.row(sums, equal)? } else { None };
                (row.map(NextRows::Row), is_over)
            }
        };
        if is_over {
            self.reading = None;
        }
        (self.rows, self.looked_at) = (rows.map(Arc::new), 0);
        Ok(true)
    }

    /// Drops the remaining rows.
    fn close(&mut self) {
        (self.reading, self.rows, self.looked_at) = (None, None, 0);
    }
}

/// The first rows of a scan that comes sorted by the front of their order: all that tie with the last of them in that
/// front are read; `None`: these are too many.
fn firsts(scan: &mut Scan, first: &SortLimit) -> Result<Option<JoinedRows>> {
    let mut found = JoinedRows::new(1, columns(0, scan.schema().fields().len()).collect());
    let mut most = first.least();
    'reading: while let Some(rows) = scan.next_rows(most)? {
        let rows = Arc::new(rows);
        for row in 0..rows.len() {
            if first.ends_before(&found, |column| rows.value(row, column))? {
                break 'reading;
            }
            found.push([Some((&rows, row))].into_iter());
        }
        if found.len() > TIES_MAX || found.is_heavy() {
            return Ok(None);
        }
        most = grown(most, BATCH_ROWS);
    }
    first.of(&mut found)?;
    Ok(Some(found))
}

/// The search of one run.
pub(super) struct NestedSearch<'n> {
    nested: &'n Nested,
    binding: &'n Binding,
    /// Conditions of each table on its join columns.
    asked: Vec<Predicate>,
    plan_text: PlanText,
    counters: Arc<ScanCounters>,
    /// How each table's matches are found in this run, if none of the ways that are kept suits it; `None`: that has no
    /// path that every outer row can take.
    found: Vec<OnceCell<Option<Found>>>,
    /// Lookups so far (count); one whose path had to be chosen counts for several.
    lookups: u32,
    levels: Vec<Level<'n>>,
    /// The current level.
    at: usize,
    /// The level whose rows are output.
    last: usize,
    out: JoinedRows,
}

impl<'n> NestedSearch<'n> {
    /// `None`: the plan does not hold for this run.
    pub fn new(nested: &'n Nested, binding: &'n Binding) -> Result<Option<NestedSearch<'n>>> {
        let asked = nested.joins.iter().map(|join| {
            // Check the table's other conditions now: else only the first lookup would find out that a parameter does
            // not suit.
            join.table.request.predicate(binding)?;
            let asked = join.table.request.filled(&join.asked, binding)?;
            let is_told = |field: &Field| join.on.iter().any(|term| term.tells(*field));
            Some(asked).filter(|asked| asked.fields().iter().all(is_told))
        });
        let Some(asked) = asked.collect::<Option<_>>() else { return Ok(None) };
        let counters = Arc::<ScanCounters>::default();
        let Some(scan) = nested.first.run(binding, &counters)? else { return Ok(None) };
        let plan_text = scan.plan_text();
        let mut levels = Vec::with_capacity(1 + nested.joins.len());
        levels.push(Level { reading: Some(LevelSource::Rows(scan)), ..Level::default() });
        levels.resize_with(1 + nested.joins.len(), Level::default);
        let (at, last, out) = (0, 0, nested.rows_of(0));
        Ok(Some(NestedSearch {
            nested,
            binding,
            asked,
            plan_text,
            counters,
            found: nested.joins.iter().map(|_| OnceCell::new()).collect(),
            lookups: 0,
            levels,
            at,
            last,
            out,
        }))
    }

    /// The EXPLAIN of its first scan, rendered on demand.
    pub fn plan_text(&self) -> PlanText {
        Arc::clone(&self.plan_text)
    }

    /// All rows, or as many as are wanted; `None` if there are too many, or they cost too much.
    pub fn rows(mut self) -> Result<Option<JoinedRows>> {
        for (at, cut) in self.nested.cuts.iter().enumerate() {
            self.last = cut.joins;
            let before = std::mem::replace(&mut self.out, self.nested.rows_of(cut.joins));
            let is_done = match at {
                0 => self.begin(cut)?,
                _ => self.go_on_behind(&before, cut)?,
            };
            if !is_done {
                return Ok(None);
            }
            cut.of(&mut self.out)?;
        }
        Ok(Some(self.out))
    }

    /// Searches from the first table on, for as many rows as `cut` wants. False: that costs too much.
    fn begin(&mut self, cut: &SortLimit) -> Result<bool> {
        let (least, few) = (cut.least(), self.nested.few.rows);
        let is_read = self.levels[0].read(least.clamp(1, few))?;
        if !is_read || self.levels[0].reading.is_some() && least > few && self.nested.tried.is_none() {
            return Ok(false);
        }
        self.below(0, cut)
    }

    /// Continues the search from rows that join the tables before.
    fn go_on_behind(&mut self, rows: &JoinedRows, cut: &SortLimit) -> Result<bool> {
        for row in 0..rows.len() {
            if self.out.len() >= cut.wanted() {
                break;
            }
            for (table, level) in self.levels.iter_mut().enumerate().take(rows.tables()) {
                *level = Level::at(rows.row_of(row, table));
            }
            self.at = rows.tables() - 1;
            if !self.go_on()? || !self.below(rows.tables(), cut)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Searches in the levels from `first` on.
    fn below(&mut self, first: usize, cut: &SortLimit) -> Result<bool> {
        let (nested, wanted) = (self.nested, cut.wanted());
        while self.at >= first && self.out.len() < wanted {
            if self.out.len() >= nested.few.found || self.out.is_heavy() {
                return Ok(false);
            }
            let join = self.at.checked_sub(1).map(|join| &nested.joins[join]);
            let kind = join.map_or(JoinKind::Inner, |join| join.kind);
            let asks_for_one = join.is_some_and(Join::asks_for_one);
            let scope = join.and_then(|join| join.scope.as_ref());
            let level = &mut self.levels[self.at];
            if level.next() {
                if self.at == 0 && cut.ends_before(&self.out, |column| level.value(column))? {
                    break;
                }
                match join.map_or(Ok(Some(true)), |join| self.holds(&join.residual))? {
                    Some(true) => {}
                    Some(false) => continue,
                    None => return Ok(false),
                }
                let level = &mut self.levels[self.at];
                match scope {
                    Some(scope) if self.at == *scope.levels.end() => {
                        if !self.decide(scope, true)? {
                            return Ok(false);
                        }
                        continue;
                    }
                    // The tables behind decide.
                    Some(_) => {}
                    None => level.has_found = true,
                }
                if asks_for_one {
                    level.close();
                }
                match join.map_or(Ok(Some(true)), |join| self.holds(&join.filter))? {
                    Some(true) => {}
                    Some(false) => continue,
                    None => return Ok(false),
                }
                if kind != JoinKind::Anti && !self.go_on()? {
                    return Ok(false);
                }
            } else if level.reading.is_some() {
                let most = match join {
                    // Few may be enough. If they are not, more are read together.
                    None => cut.least().max(2 * level.read_last()).min(FEW_ROWS),
                    Some(_) if scope.is_some() => FEW_ROWS,
                    Some(_) => BATCH_ROWS,
                };
                let first = join.and_then(|join| join.first.as_ref());
                let is_read = level.read(first.map_or(most, |first| most.min(first.rows as usize)))?;
                if !is_read || self.has_spent(cut) {
                    return Ok(false);
                }
            } else if let Some(scope) = scope
                && self.at == *scope.levels.start()
                && !level.has_found
            {
                if !self.decide(scope, false)? {
                    return Ok(false);
                }
            } else if !level.has_found && matches!(kind, JoinKind::Left | JoinKind::Anti) {
                level.has_found = true;
                level.close();
                match join.map_or(Ok(Some(true)), |join| self.holds(&join.filter))? {
                    Some(true) => {}
                    Some(false) => continue,
                    None => return Ok(false),
                }
                if !self.go_on()? {
                    return Ok(false);
                }
            } else {
                level.close();
                match self.at.checked_sub(1) {
                    Some(above) => self.at = above,
                    None => break,
                }
            }
        }
        Ok(true)
    }

    /// The search has taken longer than it may. A trial goes on while what it has found says that it will take less than
    /// the other plan.
    fn has_spent(&self, cut: &SortLimit) -> bool {
        let Nested { few, tried, .. } = self.nested;
        let work = self.counters.work() + few.ranging * f64::from(self.lookups);
        let found = self.out.len() as f64;
        let is_ahead = |other: f64| work * found.max(cut.enough() as f64) <= other * found;
        work > few.work && !tried.is_some_and(is_ahead)
    }

    /// The current row passes a filter; `None` if that cannot be computed.
    fn holds(&self, filter: &[Asked]) -> Result<Option<bool>> {
        for term in filter {
            match term.value(&self.levels[..=self.at], &self.binding.params)? {
                Some(Value::Boolean(true)) => {}
                Some(_) => return Ok(Some(false)),
                None => return Ok(None),
            }
        }
        Ok(Some(true))
    }

    /// Ends the search in the tables of a scope. False: as [`NestedSearch::go_on`].
    fn decide(&mut self, scope: &Scope, has_match: bool) -> Result<bool> {
        let (first, last) = (*scope.levels.start(), *scope.levels.end());
        self.levels[first..=last].iter_mut().for_each(Level::close);
        self.levels[first].has_found = true;
        if has_match != scope.wants_match {
            self.at = first - 1;
            return Ok(true);
        }
        self.at = last;
        self.go_on()
    }

    /// Outputs the current rows, or looks them up in the next table. False: the next table has another path than the
    /// plan relies on, or what it is asked with cannot be computed.
    fn go_on(&mut self) -> Result<bool> {
        if self.at == self.last {
            self.out.push(self.levels[..=self.at].iter().map(Level::row));
            return Ok(true);
        }
        let join = &self.nested.joins[self.at];
        let params = &self.binding.params;
        let mut values = Vec::with_capacity(join.on.len());
        for asked in &join.of_row {
            let Some(value) = asked.value(&self.levels[..=self.at], params)? else { return Ok(false) };
            values.push(value);
        }
        let equal = JoinValues { on: &join.on, values: &values };
        // NULL compares with nothing, and nothing equals a value beyond its type.
        let may_find = |(term, value): (&OfRow, &Value)| {
            !value.is_null() && (term.op != CmpOp::Eq || term.ty.holds(value))
        };
        let finds =
            join.on.iter().zip(equal.values).all(may_find) && self.asked[self.at].eval(&equal)? == Some(true);
        let reading = match finds {
            true => {
                self.lookups += if join.found[0].get().is_some() { 1 } else { CHOOSING };
                let all = params.iter().cloned().chain(values).collect();
                let binding = Binding { params: all, may_sort: true, ..self.binding.clone() };
                let own = &self.found[self.at];
                let Some(reading) = join.open(params.len(), &binding, &self.counters, own)? else {
                    return Ok(false);
                };
                Some(reading)
            }
            false => None,
        };
        let of_nothing = match (&reading, &join.totals) {
            (None, Some(totals)) => totals.of_nothing()?,
            _ => None,
        };
        let rows = of_nothing.map(|row| Arc::new(NextRows::Row(row)));
        self.at += 1;
        self.levels[self.at] = Level { reading, rows, ..Level::default() };
        Ok(true)
    }
}

impl Join {
    /// Starts the lookup for an outer row whose values are in `binding`, behind the `params` parameters. `own`: how the
    /// matches are found in this run, if in no way that is kept. `None`: the first matches do not come first.
    fn open<'n>(
        &'n self,
        params: usize,
        binding: &Binding,
        counters: &Arc<ScanCounters>,
        own: &OnceCell<Option<Found>>,
    ) -> Result<Option<LevelSource<'n>>> {
        let source = |scan: Scan, found: &Found| match (&self.totals, &found.first) {
            (None, None) => LevelSource::Rows(scan),
            (None, Some(first)) => LevelSource::Firsts(scan, Arc::clone(first)),
            (Some(totals), _) => {
                let sums = totals.begin(scan.spec());
                LevelSource::Totals(scan, totals, sums, binding.params[params..].into())
            }
        };
        // The later one first: that of the first row took too long for another row.
        for found in self.found.iter().rev().filter_map(OnceLock::get) {
            if let Some(scan) = found.scan.run_known(binding, counters)? {
                return Ok(Some(source(scan, found)));
            }
        }
        let run = |found: &'n Found| -> Result<_> {
            Ok(found.scan.run_anew(binding, counters)?.map(|scan| source(scan, found)))
        };
        let has_both = self.found[1].get().is_some();
        if let Some(found) = self.found[0].get().filter(|found| has_both || !found.scan.request.is_known()) {
            // The values of other conditions may be those of this run only: `k.kind <> $1`.
            if has_both
                && let Some(found) = self.settled(params, binding, own)?
                && let Some(scan) = found.scan.run_known(binding, counters)?
            {
                return Ok(Some(source(scan, found)));
            }
            return run(found);
        }
        for found in self.ways(params) {
            if let Some(scan) = found.scan.settled(binding)? {
                let place = &self.found[usize::from(self.found[0].get().is_some())];
                return run(place.get_or_init(|| Found { scan, ..found }));
            }
            if let Some(scan) = found.scan.run(binding, counters)? {
                return Ok(Some(source(scan, &found)));
            }
        }
        Ok(None)
    }

    /// The best way that the rows behind this one can take, too, which `own` keeps for them.
    fn settled<'o>(
        &self,
        params: usize,
        binding: &Binding,
        own: &'o OnceCell<Option<Found>>,
    ) -> Result<Option<&'o Found>> {
        if let Some(known) = own.get() {
            return Ok(known.as_ref());
        }
        let way = |found: Found| {
            let scan = found.scan.settled(binding).transpose()?;
            Some(scan.map(|scan| Found { scan, ..found }))
        };
        let best = self.ways(params).find_map(way).transpose()?;
        Ok(own.get_or_init(|| best).as_ref())
    }

    /// Scans for one outer row, best first: of the first matches in their order, then in ever shorter fronts of it.
    fn ways(&self, params: usize) -> impl Iterator<Item = Found> {
        let in_order = Found { scan: self.table.of_row(&self.on, params, self.first.as_ref()), first: None };
        let first = self.first.as_ref().filter(|_| self.totals.is_none());
        let fronts = first.into_iter().flat_map(move |first| {
            (1..first.order.len()).rev().filter_map(move |front| self.in_front(first, front, params))
        });
        std::iter::once(in_order).chain(fronts)
    }

    /// A scan in the first `front` columns of the order; `None` if it does not give all of them to sort by.
    fn in_front(&self, first: &FirstFound, front: usize, params: usize) -> Option<Found> {
        let order = first.order.iter().map(|by| {
            let column = self.table.request.column_of(by.field)?;
            let options = SortOptions { descending: by.descending, nulls_first: !by.descending };
            Some((ColumnOf { table: 0, column }, options))
        });
        let mut sorted = SortLimit::sorted(0, order.collect::<Option<_>>()?, front);
        sorted.limit(0, usize::try_from(first.rows).ok());
        let rows = sorted.least() as u64;
        let led = FirstFound { order: first.order[..front].to_vec(), rows };
        let scan = self.table.of_row(&self.on, params, Some(&led)).of_about(rows);
        Some(Found { scan, first: Some(Arc::new(sorted)) })
    }

    /// Only the existence of a match matters.
    fn asks_for_one(&self) -> bool {
        matches!(self.kind, JoinKind::Semi | JoinKind::Anti)
    }
}
