//! Joins of a few rows, one row after the other.
//!
//! An order, its items and their products: each table is asked what a prepared statement would be asked, with values of
//! the row at hand as parameters, and what comes out is made of the rows themselves. For a few rows that is cheaper than
//! the batches, hash tables and streams that long joins are made of. Whether there are few is seen by reading them: if
//! they are more, or take long to find, the plan runs in its other ways.

mod cut;
mod operator;
mod parts;
mod search;
mod totals;

use std::borrow::Cow;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::physical_plan::ExecutionPlan;

use self::cut::Cut;
pub use self::operator::NestedExec;
use self::parts::Parts;
pub use self::parts::led;
use self::search::Search;
use self::totals::TotalsOf;
use super::Kind;
use crate::access::Guards;
use crate::df::errors::df_error;
use crate::df::kept::above::Above;
use crate::df::kept::plan::renamed;
use crate::df::kept::template::Template;
use crate::df::operators::scan::ScanExec;
use crate::df::operators::trial::TrialExec;
use crate::df::table::Binding;
use crate::error::Result;
use crate::exec::joined::{ColumnOf, JoinedRows};
use crate::exec::kept::NextRows;
use crate::exec::watch::PlanText;
use crate::plan::Field;
use crate::value::ColumnType;

/// How many rows are few.
#[derive(Clone, Copy, Debug)]
struct Few {
    /// Of the first table (count), if all of them are asked for.
    rows: usize,
    /// That come out (count).
    found: usize,
    /// What it may take to find them, as of [`Access::work`](crate::access::Access::work).
    work: f64,
}

/// Where each row finds others by their rowkeys, which for many are cheaper to get together: some 0.4 ms.
const BY_ROWKEYS: Few = Few { rows: 64, found: 4096, work: 5_000.0 };

/// Where one finds them by a range, for which a cursor has to be placed in any case: some 4 ms.
const BY_RANGES: Few = Few { rows: 1024, found: 16_384, work: 60_000.0 };

/// Runs (count) that do without trying, at the most, after some that had too many rows.
const RUNS_WITHOUT: u32 = 63;

/// A plan, to be kept, of a scan and tables in which its rows look for others.
#[derive(Debug)]
pub struct Nested {
    first: ScanExec,
    joins: Vec<Join>,
    /// Where rows are sorted or limited, the lowest first; the last one is behind all joins.
    cuts: Vec<Cut>,
    /// What the joined rows show, and its names.
    output: Arc<[ColumnOf]>,
    below: SchemaRef,
    /// What is computed of that.
    above: Above,
    /// Columns that come out.
    schema: SchemaRef,
    few: Few,
    /// As many rows are read as that allows, and not only a few of the first table.
    is_tried: bool,
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
    /// What the table asks of these columns alone.
    asked: Vec<Template>,
    /// What a row finds comes to these.
    totals: Option<TotalsOf>,
    /// Reads what one row looks for: the values of the row stand behind the parameters.
    found: OnceLock<ScanExec>,
}

impl Nested {
    /// A plan whose joins are all lookups; `None` if it is something else, too, or nothing but a scan.
    pub fn of(plan: &Arc<dyn ExecutionPlan>, schema: &SchemaRef) -> Option<Nested> {
        let Parts { first, joins, cuts, output, schema: below, above, by_ranges } = Parts::of(plan)?;
        let sorts = cuts.iter().any(|cut| !cut.order.is_empty());
        let is_more = !joins.is_empty() || sorts || !above.is_empty();
        is_more.then(|| Nested {
            first,
            joins,
            cuts,
            output: output.into(),
            below,
            above,
            schema: Arc::clone(schema),
            few: if by_ranges { BY_RANGES } else { BY_ROWKEYS },
            is_tried: false,
            waiting: AtomicU32::new(0),
            backoff: AtomicU32::new(0),
        })
    }

    /// The first of a trial, if it is a plan of lookups that ends as soon as there are enough rows.
    pub fn of_trial(trial: &TrialExec, schema: &SchemaRef) -> Option<Nested> {
        let nested = Nested::of(trial.first(), schema)?;
        let ends = nested.cuts.iter().all(Cut::may_end) && !nested.above.changes_rows();
        ends.then(|| Nested { few: Few { work: trial.work(), ..BY_ROWKEYS }, is_tried: true, ..nested })
    }

    /// Its rows; `None` if they are not few, or the plan does not hold for this run.
    pub fn run(self: &Arc<Self>, binding: &Binding) -> Result<Option<NestedRun>> {
        // What a session allows a statement to read, operators count.
        if binding.guards != Guards::default() || self.waits() {
            return Ok(None);
        }
        let filled = match self.above.filled(&binding.params) {
            None => return Ok(None),
            Some(Cow::Borrowed(_)) => None,
            Some(Cow::Owned(filled)) => Some(filled),
        };
        let Some(search) = Search::new(self, binding)? else { return Ok(None) };
        let plan_text = search.plan_text();
        let Some(rows) = search.rows()? else {
            self.give_up();
            return Ok(None);
        };
        self.backoff.store(0, Ordering::Relaxed);
        Ok(Some(NestedRun { nested: Arc::clone(self), filled, plan_text, rows: Some(rows) }))
    }

    /// None yet of the rows behind so many joins.
    fn rows_of(&self, joins: usize) -> JoinedRows {
        JoinedRows::new(1 + joins, Arc::clone(&self.output))
    }

    /// It had too many rows lately.
    fn waits(&self) -> bool {
        let waiting = self.waiting.load(Ordering::Relaxed);
        self.waiting.store(waiting.saturating_sub(1), Ordering::Relaxed);
        waiting > 0
    }

    fn give_up(&self) {
        let backoff = (2 * self.backoff.load(Ordering::Relaxed) + 1).min(RUNS_WITHOUT);
        self.backoff.store(backoff, Ordering::Relaxed);
        self.waiting.store(backoff, Ordering::Relaxed);
    }
}

/// Joined rows, to be taken once.
pub struct NestedRun {
    nested: Arc<Nested>,
    /// What is computed, with the parameters in it, if there are any.
    filled: Option<Above>,
    plan_text: PlanText,
    rows: Option<JoinedRows>,
}

impl NestedRun {
    /// The line of EXPLAIN of its first scan, when it is asked for.
    pub fn plan_text(&self) -> PlanText {
        Arc::clone(&self.plan_text)
    }

    /// All rows; then `None`.
    pub fn next_rows(&mut self) -> Result<Option<NextRows>> {
        let Some(rows) = self.rows.take().map(NextRows::Joined) else { return Ok(None) };
        let Nested { above, below, schema, .. } = &*self.nested;
        let above = self.filled.as_ref().unwrap_or(above);
        if above.is_empty() {
            return Ok(Some(rows));
        }
        let computed = above.of(rows.batch_from(0, below)?).map_err(df_error)?;
        let batch = renamed(computed.columns().to_vec(), computed.num_rows(), schema)?;
        Ok(Some(NextRows::Batch(batch)))
    }

    /// The same as a batch.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let rows = self.next_rows()?;
        rows.map(|rows| rows.batch_from(0, &self.nested.schema)).transpose()
    }
}
