//! Nested lookup joins of few rows: each outer row looks up its matches in turn.
//!
//! Take an order, its items and their products: each table is asked what a prepared statement would ask, with values of
//! the outer row as parameters, and the output is made of the rows themselves. For few rows that is cheaper than
//! batches, hash tables and streams. Whether there are few is found out by reading: if there are more, or the search
//! takes long, the plan runs in one of its other forms.

mod asks;
mod cut;
mod filtered;
mod first;
mod operator;
mod parts;
mod scope;
mod search;
mod totals;

use std::borrow::Cow;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::physical_plan::ExecutionPlan;

use self::asks::Asked;
use self::cut::SortLimit;
pub use self::operator::NestedExec;
use self::parts::NestedParts;
pub use self::parts::{finds_for_each, led};
use self::scope::Scope;
use self::search::NestedSearch;
use self::totals::TotalsOf;
use super::JoinKind;
use crate::access::Guards;
use crate::df::cached::on_top::Above;
use crate::df::operators::scan::ScanExec;
use crate::df::operators::trial::SHARE;
use crate::df::table::template::Template;
use crate::df::table::{Binding, OfRow};
use crate::df::wanted::FirstFound;
use crate::error::Result;
use crate::exec::next_rows::{ColumnOf, JoinedRows, NextRows};
use crate::exec::watch::PlanText;

/// Limits of a nested run.
#[derive(Clone, Copy, Debug)]
struct Few {
    /// Rows of the first table (count), if all of them are wanted.
    rows: usize,
    /// Output rows (count).
    found: usize,
    /// Cost, as of [`Access::work`](crate::access::Access::work).
    work: f64,
    /// Cost of finding the range of one lookup along a known path.
    ranging: f64,
}

/// For lookups by rowkey, which for many rows are cheaper in batches: some 0.4 ms.
const BY_ROWKEYS: Few = Few { rows: 64, found: 4096, work: 5_000.0, ranging: 0.0 };

/// For lookups by range, each of which has to place a cursor in any case: some 4 ms.
const BY_RANGES: Few = Few { rows: 1024, found: 16_384, work: 60_000.0, ranging: 40.0 };

/// Limits for rows that are grouped: for more rows, the setup of an operator that groups them does not matter.
const GROUPED: Few = Few { rows: 128, found: 1024, ..BY_RANGES };

/// What it takes to choose the path of a lookup, in lookups along a known path.
const CHOOSING: u32 = 3;

/// Work of a run that is tried in any case: some 1 ms.
const TRIED: f64 = 15_000.0;

/// So many times its limit may a run take where hash joins would take longer.
const PATIENCE: f64 = 10.0;

/// What setting up hash joins takes, as work: some 0.4 ms.
const HASH_JOINS: f64 = 6_000.0;

/// Most runs (count) that skip the attempt after earlier ones had too many rows.
const RUNS_WITHOUT: u32 = 63;

/// A cached plan: a scan, and tables in which its rows look others up.
#[derive(Debug)]
pub struct Nested {
    first: ScanExec,
    joins: Vec<Join>,
    /// Sorts and limits, the innermost first; the last one comes after all joins.
    cuts: Vec<SortLimit>,
    /// Columns of the joined rows, and their schema.
    output: Arc<[ColumnOf]>,
    below: SchemaRef,
    /// Simple operators above them.
    above: Above,
    /// The output schema.
    schema: SchemaRef,
    few: Few,
    /// Set if it is the first plan of a trial: the work of the other plan. The limits alone decide, not the rows of the
    /// first table.
    tried: Option<f64>,
    /// Runs (count) left to skip, and the length of the last such pause.
    waiting: AtomicU32,
    backoff: AtomicU32,
}

/// A table in which outer rows look up their matches.
#[derive(Debug)]
struct Join {
    kind: JoinKind,
    /// The scan that a join of whole tables would use.
    table: ScanExec,
    /// Values of the outer row, and the table's columns that are compared with them.
    of_row: Vec<Asked>,
    on: Vec<OfRow>,
    /// Conditions of the table on the equal columns alone.
    asked: Vec<Template>,
    /// Aggregates of the matches, if only these come out.
    totals: Option<TotalsOf>,
    /// Conditions on an outer row and its match that no key serves.
    residual: Vec<Asked>,
    /// Conditions on what the join gives, null-extended rows included.
    filter: Vec<Asked>,
    /// Set if the first matches are enough.
    first: Option<FirstFound>,
    /// The semi or anti join of several tables that it is part of.
    scope: Option<Scope>,
    /// How the matches of one outer row are found; and those of another one, for which that would take too long.
    found: [OnceLock<Found>; 2],
}

/// How the matches of one outer row are found.
#[derive(Debug)]
struct Found {
    /// The scan; values of the outer row are parameters behind those of the statement.
    scan: ScanExec,
    /// Set if the first matches come in the front of their order only.
    first: Option<Arc<SortLimit>>,
}

impl Nested {
    /// A plan of lookup joins only; `None` if it has other operators, or is a mere scan.
    pub fn of(plan: &Arc<dyn ExecutionPlan>, schema: &SchemaRef) -> Option<Nested> {
        let NestedParts { first, joins, cuts, output, schema: below, above, by_ranges } =
            NestedParts::of(plan)?;
        let sorts = cuts.iter().any(|cut| !cut.order.is_empty());
        let is_more = !joins.is_empty() || sorts || !above.is_empty();
        let few = match (by_ranges, above.gathers()) {
            (true, true) => GROUPED,
            (true, false) => BY_RANGES,
            (false, _) => BY_ROWKEYS,
        };
        is_more.then(|| Nested {
            first,
            joins,
            cuts,
            output: output.into(),
            below,
            above,
            schema: Arc::clone(schema),
            few,
            tried: None,
            waiting: AtomicU32::new(0),
            backoff: AtomicU32::new(0),
        })
    }

    /// Rows are grouped, or windows computed of them, in memory.
    pub fn gathers(&self) -> bool {
        self.above.gathers()
    }

    /// Gives up where hash joins, whose reads are of this much work, would be done by then; goes on where they would not.
    pub fn beside(mut self, hashes: Option<f64>) -> Nested {
        let Some(hashes) = hashes else { return self };
        let enough = (2.0 * (hashes + HASH_JOINS)).max(TRIED);
        self.few.work = hashes.clamp(self.few.work, PATIENCE * self.few.work).min(enough);
        self
    }

    /// A plan of lookups that ends as soon as there are enough rows; it is tried for a while in place of one that is
    /// `otherwise` so much work.
    pub fn ending(plan: &Arc<dyn ExecutionPlan>, otherwise: f64, schema: &SchemaRef) -> Option<Nested> {
        let nested = Nested::of(plan, schema)?;
        let ends = nested.cuts.iter().all(SortLimit::may_end)
            && nested.cuts.iter().any(|cut| cut.least() < usize::MAX)
            && !nested.joins.is_empty()
            && !nested.above.changes_rows();
        // The other plan would have to be set up, too.
        let otherwise = otherwise + HASH_JOINS;
        let few = Few { work: SHARE * otherwise, ..BY_ROWKEYS };
        ends.then(|| Nested { few, tried: Some(otherwise), ..nested })
    }

    /// All rows; `None` if they are not few, or the plan does not hold for this run.
    pub fn run(self: &Arc<Self>, binding: &Binding) -> Result<Option<NestedRun>> {
        // Only operators enforce the session's limits on reads.
        if binding.guards != Guards::default() || self.waits() {
            return Ok(None);
        }
        let filled = match self.above.filled(&binding.params) {
            None => return Ok(None),
            Some(Cow::Borrowed(_)) => None,
            Some(Cow::Owned(filled)) => Some(filled),
        };
        let Some(search) = NestedSearch::new(self, binding)? else { return Ok(None) };
        let plan_text = search.plan_text();
        let Some(rows) = search.rows()? else {
            self.give_up();
            return Ok(None);
        };
        self.backoff.store(0, Ordering::Relaxed);
        Ok(Some(NestedRun { nested: Arc::clone(self), filled, plan_text, rows: Some(rows) }))
    }

    /// An empty set of rows that are joined from the first table and `joins` others.
    fn rows_of(&self, joins: usize) -> JoinedRows {
        JoinedRows::new(1 + joins, Arc::clone(&self.output))
    }

    /// It had too many rows lately, so this run skips the attempt.
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
    /// `above` with the parameters filled in, if it has any.
    filled: Option<Above>,
    plan_text: PlanText,
    rows: Option<JoinedRows>,
}

impl NestedRun {
    /// The EXPLAIN of its first scan, rendered on demand.
    pub fn plan_text(&self) -> PlanText {
        Arc::clone(&self.plan_text)
    }

    /// Skips rows, then gives so many; false if later operators change which rows there are.
    pub fn cut(&mut self, skip: usize, most: usize) -> bool {
        let can = !self.nested.above.changes_rows();
        if let Some(rows) = self.rows.as_mut().filter(|_| can) {
            rows.cut(skip, most);
        }
        can
    }

    /// All rows; then `None`.
    pub fn next_rows(&mut self) -> Result<Option<NextRows>> {
        let Some(rows) = self.rows.take().map(NextRows::Joined) else { return Ok(None) };
        let Nested { above, below, schema, .. } = &*self.nested;
        let above = self.filled.as_ref().unwrap_or(above);
        if above.is_empty() {
            return Ok(Some(rows));
        }
        above.of(rows.batch_from(0, below)?, schema).map(|batch| Some(NextRows::Batch(batch)))
    }

    /// [`NestedRun::next_rows`] as a batch.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let rows = self.next_rows()?;
        rows.map(|rows| rows.batch_from(0, &self.nested.schema)).transpose()
    }
}
