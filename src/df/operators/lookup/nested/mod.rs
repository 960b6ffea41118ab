//! Joins of a few rows, one row after the other.
//!
//! An order, its items and their products: each table is asked what a prepared statement would be asked, with values of
//! the row at hand as parameters, and what comes out is made of the rows themselves. For a few rows that is cheaper than
//! the batches, hash tables and streams that long joins are made of. Whether there are few is seen by reading them: if
//! they are more, or take long to find, the plan runs in its other ways.

mod operator;
mod parts;
mod search;
mod totals;

use std::borrow::Cow;
use std::cmp::Ordering as Order;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;
use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use datafusion::physical_plan::ExecutionPlan;

pub use self::operator::NestedExec;
use self::parts::Parts;
use self::search::Search;
use self::totals::TotalsOf;
use super::Kind;
use crate::access::Guards;
use crate::df::errors::df_error;
use crate::df::kept::above::Above;
use crate::df::kept::plan::renamed;
use crate::df::kept::template::Template;
use crate::df::operators::scan::ScanExec;
use crate::df::table::Binding;
use crate::error::Result;
use crate::exec::joined::{ColumnOf, JoinedRows};
use crate::exec::kept::NextRows;
use crate::exec::watch::PlanText;
use crate::plan::Field;
use crate::value::{ColumnType, Value};

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
        let Some(mut rows) = search.rows()? else {
            self.give_up();
            return Ok(None);
        };
        if !self.order.is_empty() {
            rows.sort(self.limit, |rows, row| self.sort_key(rows, row), |a, b| self.compared(a, b))?;
        }
        self.backoff.store(0, Ordering::Relaxed);
        Ok(Some(NestedRun { nested: Arc::clone(self), filled, plan_text, rows: Some(rows) }))
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

    fn sort_key(&self, rows: &JoinedRows, row: usize) -> Result<Vec<Value>> {
        self.order.iter().map(|(of, _)| rows.value_of(row, *of)).collect()
    }

    /// Which of two rows comes first, by the values that they are sorted by.
    fn compared(&self, a: &[Value], b: &[Value]) -> Order {
        let reversed = |order: Order, is_reversed| if is_reversed { order.reverse() } else { order };
        let each =
            a.iter().zip(b).zip(&self.order).map(|((a, b), (_, by))| match (a.is_null(), b.is_null()) {
                (false, false) => reversed(a.cmp(b), by.descending),
                (a, b) => reversed(a.cmp(&b), by.nulls_first),
            });
        each.fold(Order::Equal, Order::then)
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
