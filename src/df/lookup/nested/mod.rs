//! Joins of a few rows, one row after the other.
//!
//! An order, its items and their products: each table is asked what a prepared statement would be asked, with values of
//! the row at hand as parameters, and what comes out is made of the rows themselves. For a few rows that is cheaper than
//! the batches, hash tables and streams that long joins are made of. Whether there are few is seen by reading those of
//! the first table: if they are more, the plan runs in its other ways.

mod operator;
mod parts;
mod sort_key;
mod totals;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;
use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use datafusion::physical_plan::ExecutionPlan;

pub use self::operator::NestedExec;
use self::parts::Parts;
use self::sort_key::SortKey;
use self::totals::TotalsOf;
use super::Kind;
use crate::access::Guards;
use crate::df::above::Above;
use crate::df::errors::df_error;
use crate::df::plan::renamed;
use crate::df::scan::ScanExec;
use crate::df::table::Binding;
use crate::error::{Error, Result};
use crate::exec::joined::{ColumnOf, JoinedRows, RowOf};
use crate::exec::kept::NextRows;
use crate::exec::scan::{BATCH_ROWS, Scan};
use crate::exec::sums::Sums;
use crate::exec::watch::PlanText;
use crate::plan::{Field, Predicate, RowView};
use crate::value::{ColumnType, Value, ValueRef};

/// Rows (count) of the first table, at the most, or those among which the first rows of a result are.
const FEW_ROWS: usize = 64;

/// Rows (count) that are sorted, at the most, and pulls of scans that find them.
const SORTED_ROWS: usize = 4096;
const SORTED_PULLS: usize = 1024;

/// Pulls of scans (count) that look for the first rows of many.
const FIRST_PULLS: usize = 4 * FEW_ROWS;

/// Pulls of scans (count) between two looks at whether somebody wants to stop.
const PULLS: usize = 256;

/// Runs (count) that do without trying, at the most, after some that had too many rows.
const RUNS_WITHOUT: u32 = 63;

/// A plan, to be kept, of a scan and tables in which its rows look for others.
#[derive(Debug)]
pub struct Nested {
    first: ScanExec,
    joins: Vec<Join>,
    /// The rows are sorted by these.
    order: Vec<(ColumnOf, SortOptions)>,
    /// Rows (count) that come out at the most.
    limit: usize,
    /// What the joined rows show, and its names.
    output: Arc<[ColumnOf]>,
    below: SchemaRef,
    /// What is computed of that.
    above: Above,
    /// Columns that come out.
    schema: SchemaRef,
    /// Runs (count) to do without, and so many after the next time that there are too many rows.
    waiting: AtomicU32,
    backoff: AtomicU32,
}

/// A table in which rows look for others.
#[derive(Debug)]
struct Join {
    kind: Kind,
    /// As the join would read it.
    table: ScanExec,
    /// Columns of the rows, and those of the table that they equal.
    of_row: Vec<ColumnOf>,
    on: Vec<(Field, ColumnType)>,
    /// What they find comes to these.
    totals: Option<TotalsOf>,
    /// Reads what one row looks for: the values of the row stand behind the parameters.
    found: OnceLock<ScanExec>,
}

/// Values of the columns that a join equates.
struct Equal<'v> {
    on: &'v [(Field, ColumnType)],
    values: &'v [Value],
}

impl RowView for Equal<'_> {
    fn field(&self, field: Field) -> Result<ValueRef<'_>> {
        let at = self.on.iter().position(|(known, _)| *known == field);
        at.map(|at| self.values[at].as_ref()).ok_or_else(|| Error::internal("a column that no row tells"))
    }
}

impl Nested {
    /// A plan whose joins are all lookups; `None` if it is something else, too, or nothing but a scan.
    pub fn of(plan: &Arc<dyn ExecutionPlan>, schema: &SchemaRef) -> Option<Nested> {
        let Parts { first, joins, order, limit, output, schema: below, above } = Parts::of(plan)?;
        let is_more = !joins.is_empty() || !order.is_empty() || !above.is_empty();
        is_more.then(|| Nested {
            first,
            joins,
            order,
            limit: limit.unwrap_or(usize::MAX),
            output: output.into(),
            below,
            above,
            schema: Arc::clone(schema),
            waiting: AtomicU32::new(0),
            backoff: AtomicU32::new(0),
        })
    }

    /// Ready to run; `None` if this run is none of few rows, or the plan does not hold for it.
    pub fn run(self: &Arc<Self>, binding: &Binding) -> Result<Option<NestedRun>> {
        // What a session allows a statement to read, operators count.
        if binding.guards != Guards::default() || self.waits() {
            return Ok(None);
        }
        let above = match self.above.is_open() {
            true => self.above.filled(&binding.params),
            false => Some(self.above.clone()),
        };
        let asked = self.joins.iter().map(|join| join.table.request.asked_of(&join.on, &binding.params));
        let (Some(above), Some(asked)) = (above, asked.collect::<Option<_>>()) else { return Ok(None) };
        let Some(mut scan) = self.first.run(binding)? else { return Ok(None) };
        let plan_text = scan.plan_text();
        let sorts = !self.order.is_empty();
        let rows = scan.next_rows(if sorts { FEW_ROWS } else { self.limit.clamp(1, FEW_ROWS) })?;
        let are_all = scan.is_over();
        if !are_all && (sorts || self.limit > FEW_ROWS) {
            return Ok(self.give_up());
        }
        let mut levels = Vec::with_capacity(1 + self.joins.len());
        let reading = (!are_all).then_some(Reading::Rows(scan));
        levels.push(Level { reading, rows: rows.map(Arc::new), ..Level::default() });
        levels.resize_with(1 + self.joins.len(), Level::default);
        let (nested, binding, left) = (Arc::clone(self), binding.clone(), self.limit);
        let mut run =
            NestedRun { nested, binding, asked, above, plan_text, levels, at: 0, left, ready: None };
        if (sorts || !are_all) && !self.found_ahead(&mut run)? {
            return Ok(self.give_up());
        }
        self.backoff.store(0, Ordering::Relaxed);
        Ok(Some(run))
    }

    /// Finds the rows before any is asked for: all that are to be sorted, or the first ones of many. False if they are
    /// too many, or not found soon.
    fn found_ahead(&self, run: &mut NestedRun) -> Result<bool> {
        let mut rows = run.no_rows();
        if self.order.is_empty() {
            let more = run.advance(&mut rows, self.limit, FIRST_PULLS)?;
            if more && rows.len() < self.limit {
                return Ok(false);
            }
        } else {
            if run.advance(&mut rows, SORTED_ROWS, SORTED_PULLS)? {
                return Ok(false);
            }
            rows.sort(self.limit, |rows, row| self.sort_key(rows, row))?;
        }
        (run.ready, run.left) = (Some(rows), 0);
        Ok(true)
    }

    /// It had too many rows lately.
    fn waits(&self) -> bool {
        let waiting = self.waiting.load(Ordering::Relaxed);
        self.waiting.store(waiting.saturating_sub(1), Ordering::Relaxed);
        waiting > 0
    }

    fn give_up(&self) -> Option<NestedRun> {
        let backoff = (2 * self.backoff.load(Ordering::Relaxed) + 1).min(RUNS_WITHOUT);
        self.backoff.store(backoff, Ordering::Relaxed);
        self.waiting.store(backoff, Ordering::Relaxed);
        None
    }

    fn sort_key(&self, rows: &JoinedRows, row: usize) -> Result<Vec<SortKey>> {
        let key = |(of, options): &(ColumnOf, SortOptions)| {
            Ok(SortKey { value: rows.value_of(row, *of)?, options: *options })
        };
        self.order.iter().map(key).collect()
    }
}

impl Join {
    /// Reads what a row with these values looks for; `binding`: they stand behind `params` parameters.
    fn open(&self, params: usize, binding: &Binding) -> Result<Reading> {
        let scan = match self.found.get() {
            Some(scan) => scan.run(binding)?,
            None => {
                let scan = self.table.of_row(&self.on, params, self.asks_for_one());
                match scan.settled(binding)? {
                    Some(settled) => self.found.get_or_init(|| settled).run(binding)?,
                    None => scan.run(binding)?,
                }
            }
        };
        let no_path = || Error::internal("a row has a value that its partner's column cannot have");
        let scan = scan.ok_or_else(no_path)?;
        Ok(match &self.totals {
            None => Reading::Rows(scan),
            Some(totals) => {
                let sums = totals.begin(scan.spec());
                Reading::Totals(scan, sums, binding.params[params..].into())
            }
        })
    }

    /// Whether there is one is all that is asked.
    fn asks_for_one(&self) -> bool {
        matches!(self.kind, Kind::Semi | Kind::Anti)
    }
}

/// Where the rows of a level come from.
enum Reading {
    Rows(Scan),
    /// What they have come to so far, and the values that they are looked for by.
    Totals(Scan, Sums, Box<[Value]>),
}

/// Rows of one table: of the first one, or those that the row at hand of the tables before it has found.
#[derive(Default)]
struct Level {
    /// Where more of them come from.
    reading: Option<Reading>,
    rows: Option<Arc<NextRows>>,
    /// How many of these have been looked at; the last one of them is at hand.
    looked_at: usize,
    /// One has been found.
    has_found: bool,
}

impl Level {
    /// The row at hand; `None`: a row of NULLs.
    fn row(&self) -> Option<RowOf<'_>> {
        let rows = self.rows.as_ref()?;
        Some((rows, self.looked_at.checked_sub(1)?))
    }

    /// Takes the next of its rows at hand.
    fn next(&mut self) -> bool {
        let is_there = self.rows.as_ref().is_some_and(|rows| self.looked_at < rows.len());
        self.looked_at += usize::from(is_there);
        is_there
    }

    fn value(&self, column: usize) -> Result<Value> {
        self.row().map_or(Ok(Value::Null), |(rows, row)| rows.value(row, column))
    }

    /// Reads more of its rows, possibly none of them yet; false at the end.
    fn read(&mut self, join: Option<&Join>) -> Result<bool> {
        let (rows, is_over) = match &mut self.reading {
            None => return Ok(false),
            Some(Reading::Rows(scan)) => {
                let most = match join {
                    None => FEW_ROWS,
                    Some(join) if join.asks_for_one() => 1,
                    Some(_) => BATCH_ROWS,
                };
                let rows = scan.next_rows(most)?;
                (rows, scan.is_over())
            }
            Some(Reading::Totals(scan, sums, equal)) => {
                let is_over = !scan.add_up(sums)?;
                let totals = join.and_then(|join| join.totals.as_ref()).filter(|_| is_over);
                let row = totals.map(|totals| totals.row(sums, equal)).transpose()?.flatten();
                (row.map(NextRows::Row), is_over)
            }
        };
        if is_over {
            self.reading = None;
        }
        (self.rows, self.looked_at) = (rows.map(Arc::new), 0);
        Ok(true)
    }

    /// Nothing more of it is wanted.
    fn close(&mut self) {
        (self.reading, self.rows, self.looked_at) = (None, None, 0);
    }
}

/// Joins under way.
pub struct NestedRun {
    nested: Arc<Nested>,
    binding: Binding,
    /// What each table asks of the columns that its join equates.
    asked: Vec<Predicate>,
    /// What is computed, with the parameters in it.
    above: Above,
    plan_text: PlanText,
    levels: Vec<Level>,
    /// The level whose rows are looked at.
    at: usize,
    /// Rows (count) that are still to come out, at the most.
    left: usize,
    /// All rows, if they have been found before any is asked for.
    ready: Option<JoinedRows>,
}

impl NestedRun {
    /// The line of EXPLAIN of its first scan, when it is asked for.
    pub fn plan_text(&self) -> PlanText {
        Arc::clone(&self.plan_text)
    }

    /// The next rows, possibly none of them yet; `None` at the end.
    pub fn next_rows(&mut self, rows_max: usize) -> Result<Option<NextRows>> {
        let Some(rows) = self.next_joined(rows_max)?.map(NextRows::Joined) else { return Ok(None) };
        if self.above.is_empty() {
            return Ok(Some(rows));
        }
        let Nested { below, schema, .. } = &*self.nested;
        let computed = self.above.of(rows.batch_from(0, below)?).map_err(df_error)?;
        let batch = renamed(computed.columns().to_vec(), computed.num_rows(), schema)?;
        Ok(Some(NextRows::Batch(batch)))
    }

    /// The same as a batch.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let rows = self.next_rows(BATCH_ROWS)?;
        rows.map(|rows| rows.batch_from(0, &self.nested.schema)).transpose()
    }

    fn next_joined(&mut self, rows_max: usize) -> Result<Option<JoinedRows>> {
        if let Some(rows) = self.ready.take() {
            return Ok(Some(rows));
        }
        if self.left == 0 {
            return Ok(None);
        }
        let mut rows = self.no_rows();
        let more = self.advance(&mut rows, rows_max.min(self.left), PULLS)?;
        self.left = if more { self.left - rows.len() } else { 0 };
        Ok((more || rows.len() > 0).then_some(rows))
    }

    fn no_rows(&self) -> JoinedRows {
        JoinedRows::new(self.levels.len(), Arc::clone(&self.nested.output))
    }

    /// Adds the next rows, up to `rows_max` of them and no more than memory should hold, found in so many pulls at the
    /// most; false at the end.
    fn advance(&mut self, out: &mut JoinedRows, rows_max: usize, mut pulls: usize) -> Result<bool> {
        let nested = Arc::clone(&self.nested);
        while out.len() < rows_max && !out.is_heavy() {
            let join = self.at.checked_sub(1).map(|join| &nested.joins[join]);
            let kind = join.map_or(Kind::Inner, |join| join.kind);
            let level = &mut self.levels[self.at];
            if level.next() {
                level.has_found = true;
                if join.is_some_and(Join::asks_for_one) {
                    level.close();
                }
                if kind != Kind::Anti {
                    self.go_on(out)?;
                }
            } else if level.reading.is_some() {
                if pulls == 0 {
                    return Ok(true);
                }
                pulls -= 1;
                level.read(join)?;
            } else if !level.has_found && matches!(kind, Kind::Left | Kind::Anti) {
                level.has_found = true;
                level.close();
                self.go_on(out)?;
            } else {
                level.close();
                match self.at.checked_sub(1) {
                    Some(above) => self.at = above,
                    None => return Ok(false),
                }
            }
        }
        Ok(true)
    }

    /// The rows at hand come out, or look for others in the next table.
    fn go_on(&mut self, out: &mut JoinedRows) -> Result<()> {
        let Some(join) = self.nested.joins.get(self.at) else {
            out.push(self.levels.iter().map(Level::row));
            return Ok(());
        };
        let params = self.binding.params.len();
        let mut values = Vec::with_capacity(params + join.on.len());
        values.extend_from_slice(&self.binding.params);
        for ColumnOf { table, column } in &join.of_row {
            values.push(self.levels[*table].value(*column)?);
        }
        let equal = Equal { on: &join.on, values: &values[params..] };
        // NULL equals nothing.
        let finds = equal.values.iter().all(|value| !value.is_null())
            && self.asked[self.at].eval(&equal)? == Some(true);
        let binding = Binding { params: values.into(), ..self.binding.clone() };
        let reading = if finds { Some(join.open(params, &binding)?) } else { None };
        self.at += 1;
        self.levels[self.at] = Level { reading, ..Level::default() };
        Ok(())
    }
}
