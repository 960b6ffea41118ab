//! Joins in which each outer row gives a range of keys.
//!
//! For `g.tail = f.tail AND g.at < f.at`, the matches of a row are adjacent in an index on `(tail, at)`. DataFusion's
//! hash join compares all rows with the same tail, and without `=` its nested loop compares all pairs. [`SeekJoinExec`]
//! places a cursor for each outer row instead. Where one match is enough, or the first few in the order of the index,
//! as in `(SELECT max(at) FROM g WHERE g.tail = f.tail AND g.at < f.at)`, it reads no more than those. The matches of
//! `g.a = f.id OR g.b = f.id` are in several places, an index on `a` and one on `b`: each row seeks in one after the
//! other.

mod instead;

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::take;
use datafusion::common::stats::Precision;
use datafusion::common::{JoinSide, Statistics};
use datafusion::error::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::TryStreamExt;

pub use self::instead::{in_order_of_rows, instead_of_all_pairs, instead_of_pairs};
use super::lookup::{JoinKind, pieces};
use super::scan::{ExpectedAccess, ScanExec};
use crate::access::Path;
use crate::df::below::scan_of;
use crate::df::errors::{df_error, to_df};
use crate::df::operators::operator;
use crate::df::table::{OfRow, ProbePath};
use crate::df::wanted::FirstFound;
use crate::error::{Error, Result};
use crate::exec::scan::{BatchCollector, Scan};
use crate::plan::{CmpOp, Field, Predicate};
use crate::row::{any_value_at, value_at};
use crate::value::{ColumnType, Value};

/// Outer rows (count) of the first batch.
const ROWS_FIRST: usize = 16;

/// Outer rows, each joined with the rows of a table that it finds.
#[derive(Clone, Debug)]
pub struct SeekJoinExec {
    rows: Arc<dyn ExecutionPlan>,
    /// A [`ScanExec`] of the table.
    table: Arc<dyn ExecutionPlan>,
    /// Places where each outer row seeks; a row found in several places counts in the first.
    places: Arc<[SeekTarget]>,
    /// The residual filter on pairs.
    filter: Option<JoinFilter>,
    /// The side of `filter` and `output` that the outer rows are.
    rows_are: JoinSide,
    kind: JoinKind,
    /// Set if the first matches of each outer row are enough.
    first: Option<FirstFound>,
    /// Expected output rows (count) for each outer row, and what it costs to find them, in entries walked.
    each: f64,
    work_of_row: f64,
    output: Arc<[ColumnIndex]>,
    properties: Arc<PlanProperties>,
}

/// What each outer row of a seek join looks up.
pub struct SeekLookup<'j> {
    pub rows: &'j Arc<dyn ExecutionPlan>,
    pub table: &'j ScanExec,
    /// Values of the outer row, their types, and the columns of the table that are compared with them.
    pub terms: Vec<(&'j Arc<dyn PhysicalExpr>, ColumnType, OfRow)>,
    /// The residual filter on pairs, and the side there that the outer rows are.
    pub filter: Option<(&'j JoinFilter, JoinSide)>,
    /// Set if the first matches of each outer row are enough.
    pub first: Option<FirstFound>,
    /// Output columns: whether it is one of the table, and its position there.
    pub output: Vec<(bool, usize)>,
}

/// A place in a table: some key range for each outer row.
#[derive(Clone, Debug)]
struct SeekTarget {
    /// Conditions on the rows there.
    terms: Arc<[SeekTerm]>,
    /// The number of leading terms that all places share.
    common: usize,
    /// Keys that have it.
    paths: Arc<[Path]>,
}

/// A column of the table, compared with a value of the outer row.
#[derive(Clone, Debug)]
struct SeekTerm {
    column: String,
    field: Field,
    ty: ColumnType,
    /// The value is a wider integer than the column.
    is_wide: bool,
    op: CmpOp,
    /// Expression over the outer row.
    value: Arc<dyn PhysicalExpr>,
    /// Columns (positions) of the outer row that it may equal instead.
    or: Vec<usize>,
}

impl SeekTerm {
    /// The comparison with `value`, which may be beyond the column's type; `None`: no row passes it.
    fn compare(&self, value: Value) -> Option<Predicate> {
        let (least, most) = self.ty.integer_bounds().unwrap_or((i64::MIN, i64::MAX));
        let (op, value) = match (self.op, value) {
            (CmpOp::Lt | CmpOp::Le, Value::Int(n)) if n > most => (CmpOp::Le, Value::Int(most)),
            (CmpOp::Gt | CmpOp::Ge, Value::Int(n)) if n < least => (CmpOp::Ge, Value::Int(least)),
            (_, Value::Int(n)) if !(least..=most).contains(&n) => return None,
            fits => fits,
        };
        Some(Predicate::compare(self.field, op, value))
    }

    /// The values for these outer rows.
    fn of(&self, rows: &RecordBatch) -> DfResult<ArrayRef> {
        self.value.evaluate(rows)?.into_array(rows.num_rows())
    }
}

impl SeekJoinExec {
    /// The side of a join (0: outer rows, 1: table) and the column there behind an output column.
    pub fn output_of(&self, at: usize) -> Option<(usize, usize)> {
        let column = self.output.get(at)?;
        Some((usize::from(column.side != self.rows_are), column.index))
    }

    /// The outer rows.
    pub fn rows(&self) -> &Arc<dyn ExecutionPlan> {
        &self.rows
    }

    /// The table's scan, and its expected access for each outer row.
    pub fn table(&self) -> Option<(&ScanExec, Option<ExpectedAccess>)> {
        let scan = scan_of(&self.table)?;
        let terms_of = |place: &SeekTarget| place.terms.iter().map(|term| (term.field, term.op)).collect();
        let terms: Vec<Vec<_>> = self.places.iter().map(terms_of).collect();
        let expected = match (&terms[..], &self.places[..]) {
            ([terms], [place]) => scan.expected_on_way(terms, self.first.as_ref(), &place.paths),
            _ => scan.expected_in_places(&terms),
        };
        Some((scan, expected))
    }

    /// Cost of the first lookups, before any row comes out.
    pub fn work_at_first(&self) -> f64 {
        ROWS_FIRST as f64 * self.work_of_row
    }

    /// Which rows come out.
    pub fn kind(&self) -> JoinKind {
        self.kind
    }

    /// What each outer row looks up; `None` if it seeks in several places.
    pub fn as_lookup(&self) -> Option<SeekLookup<'_>> {
        let [place] = &self.places[..] else { return None };
        let terms = place.terms.iter().map(|term| {
            let SeekTerm { field, ty, op, .. } = *term;
            let of_value = if term.is_wide { ColumnType::BigInt } else { ty };
            term.or.is_empty().then_some((&term.value, of_value, OfRow { field, op, ty }))
        });
        let terms = terms.collect::<Option<_>>()?;
        let output = self.output.iter().map(|column| (column.side != self.rows_are, column.index)).collect();
        let (rows, table) = (&self.rows, scan_of(&self.table)?);
        let filter = self.filter.as_ref().map(|filter| (filter, self.rows_are));
        Some(SeekLookup { rows, table, terms, filter, first: self.first.clone(), output })
    }

    fn scan(&self) -> Result<&ScanExec> {
        scan_of(&self.table).ok_or_else(|| Error::internal("a join seeks in something that is no table"))
    }

    /// Some row of the table satisfies the condition.
    fn finds(&self, condition: Predicate, paths: &[Path]) -> Result<bool> {
        let one = FirstFound::any_one();
        let scan = self.scan()?.on_way(condition, Some(&one), paths, &mut None)?;
        let Some(mut scan) = scan else { return Ok(false) };
        let mut found = BatchCollector::new(scan.spec());
        while found.rows() == 0 {
            if !scan.next_into(&mut found)? {
                break;
            }
        }
        Ok(found.rows() > 0)
    }

    /// Columns of both sides for pairs of an outer row and a match.
    fn columns<'c>(
        &self,
        of: impl Iterator<Item = &'c ColumnIndex>,
        rows: (&RecordBatch, &UInt32Array),
        found: impl Fn(usize) -> Result<ArrayRef>,
    ) -> Result<Vec<ArrayRef>> {
        let column = |column: &ColumnIndex| match column.side == self.rows_are {
            true => Ok(take(rows.0.column(column.index), rows.1, None)?),
            false => found(column.index),
        };
        of.map(column).collect()
    }
}

/// The matches of one batch of outer rows, batch by batch.
struct Seeking {
    join: Arc<SeekJoinExec>,
    rows: RecordBatch,
    /// Values of each term of each place; `None` if the expression fails for some row.
    values: Vec<Vec<Option<ArrayRef>>>,
    /// The current outer row.
    at: usize,
    /// The current place of the outer row.
    place: usize,
    /// Excludes matches from places that the row has sought in before.
    unlike: Vec<Predicate>,
    /// The rest of the current place's range.
    scan: Option<Scan>,
    /// The current row has found a match.
    has_found: bool,
    /// The access path of each place.
    ways: Vec<Option<ProbePath>>,
}

impl Seeking {
    fn new(join: Arc<SeekJoinExec>, rows: RecordBatch) -> Seeking {
        let of_place = |place: &SeekTarget| place.terms.iter().map(|term| term.of(&rows).ok()).collect();
        let values = join.places.iter().map(of_place).collect();
        let ways = join.places.iter().map(|_| None).collect();
        let unlike = Vec::new();
        Seeking { join, rows, values, at: 0, place: 0, unlike, scan: None, has_found: false, ways }
    }

    /// Starts the scan for the current row and place; `None` if it finds nothing. Errors: a term cannot be evaluated
    /// for the row, and the row has a match otherwise.
    fn begin(&mut self) -> Result<Option<Scan>> {
        let join = Arc::clone(&self.join);
        let place = &join.places[self.place];
        let mut condition = Vec::with_capacity(place.terms.len());
        let mut failed = None;
        for (term, values) in place.terms.iter().zip(&self.values[self.place]) {
            let (values, at) = match values {
                Some(values) => (Arc::clone(values), self.at),
                None => match term.of(&self.rows.slice(self.at, 1)) {
                    Ok(value) => (value, 0),
                    Err(error) => {
                        failed = failed.or(Some(error));
                        continue;
                    }
                },
            };
            let value = |values: &ArrayRef, at| {
                let value =
                    || if term.is_wide { any_value_at(values, at) } else { value_at(values, at, term.ty) };
                values.is_valid(at).then(value).transpose()
            };
            let or = term.or.iter().map(|column| value(self.rows.column(*column), self.at));
            let known = std::iter::once(value(&values, at)).chain(or);
            let known: Vec<Value> = known.filter_map(Result::transpose).collect::<Result<_>>()?;
            condition.push(match <[Value; 1]>::try_from(known) {
                Ok([value]) => match term.compare(value) {
                    Some(compared) => compared,
                    None => return Ok(None),
                },
                // NULL equals nothing, and is not less than anything.
                Err(none) if none.is_empty() => return Ok(None),
                Err(some) => Predicate::is_in(term.field, some),
            });
        }
        let others = self.unlike.clone();
        if let Some(error) = failed {
            // A row without a match by the other terms does not evaluate this one.
            let condition = Predicate::and(condition.into_iter().chain(others));
            return if join.finds(condition, &place.paths)? { Err(df_error(error)) } else { Ok(None) };
        }
        if self.place + 1 < join.places.len() && join.kind.shows_found() {
            self.unlike.push(Predicate::or(condition[place.common..].iter().map(is_not_so)));
        }
        let condition = Predicate::and(condition.into_iter().chain(others));
        let way = &mut self.ways[self.place];
        join.scan()?.on_way(condition, join.first.as_ref(), &place.paths, way)
    }

    /// Moves to the next place, or to the next row's first place.
    fn go_on(&mut self) {
        self.scan = None;
        self.place += 1;
        if self.place == self.join.places.len() {
            (self.place, self.at) = (0, self.at + 1);
        }
    }

    /// The next output rows, possibly none of them yet; `None` at the end.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let first = self.at;
        let had_found = self.has_found;
        let (mut together, mut found_by) = (None, Vec::new());
        while self.at < self.rows.num_rows() {
            if self.scan.is_none() {
                if self.place == 0 {
                    self.has_found = false;
                    self.unlike.clear();
                }
                self.scan = self.begin()?;
            }
            let Some(scan) = &mut self.scan else {
                self.go_on();
                continue;
            };
            let (_, found) =
                together.get_or_insert_with(|| (Arc::clone(scan.schema()), BatchCollector::new(scan.spec())));
            let more = scan.next_into(found)?;
            found_by.resize(found.rows(), self.at as u32);
            if more {
                // The batch is full, or it is time to yield.
                break;
            }
            let is_full = found.is_full();
            self.go_on();
            if is_full {
                break;
            }
        }
        if first == self.rows.num_rows() {
            return Ok(None);
        }
        let found = together.map(|(schema, found)| found.finish(&schema)).transpose()?;
        self.come_out(first..self.at, had_found, &found_by.into(), found.as_ref()).map(Some)
    }

    /// The output for the outer rows that are `done`, and for matches of the one that is not.
    fn come_out(
        &mut self,
        done: std::ops::Range<usize>,
        had_found: bool,
        found_by: &UInt32Array,
        found: Option<&RecordBatch>,
    ) -> Result<RecordBatch> {
        let join = Arc::clone(&self.join);
        let passes = self.passes(found_by, found)?;
        let (mut rows, mut places): (Vec<u32>, Vec<Option<u32>>) = Default::default();
        let mut at = 0;
        for row in done.start..=done.end {
            let mut has_found = had_found && row == done.start;
            while at < found_by.len() && found_by.value(at) as usize == row {
                if passes(at) {
                    let comes = match join.kind {
                        JoinKind::Semi => !has_found,
                        JoinKind::Anti => false,
                        _ => true,
                    };
                    if comes {
                        rows.push(row as u32);
                        places.push(Some(at as u32));
                    }
                    has_found = true;
                }
                at += 1;
            }
            if row == done.end {
                self.has_found = has_found;
            } else if !has_found && matches!(join.kind, JoinKind::Left | JoinKind::Anti) {
                rows.push(row as u32);
                places.push(None);
            }
        }
        let (rows, places) = (UInt32Array::from(rows), UInt32Array::from(places));
        let table = join.table.schema();
        let of_found = |column: usize| match found {
            Some(found) => Ok(take(found.column(column), &places, None)?),
            None => Ok(arrow::array::new_null_array(table.field(column).data_type(), places.len())),
        };
        let columns = join.columns(join.output.iter(), (&self.rows, &rows), of_found)?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(join.schema(), columns, &options)?)
    }

    /// Tells which pairs pass the residual filter.
    fn passes(
        &self,
        found_by: &UInt32Array,
        found: Option<&RecordBatch>,
    ) -> Result<impl Fn(usize) -> bool + use<>> {
        let mask = match (&self.join.filter, found) {
            (Some(filter), Some(found)) => {
                let of_found = |column: usize| Ok(Arc::clone(found.column(column)));
                let indices = filter.column_indices().iter();
                let columns = self.join.columns(indices, (&self.rows, found_by), of_found)?;
                let options = RecordBatchOptions::new().with_row_count(Some(found_by.len()));
                let pairs =
                    RecordBatch::try_new_with_options(Arc::clone(filter.schema()), columns, &options)?;
                let value = filter.expression().evaluate(&pairs).map_err(df_error)?;
                Some(value.into_array(found_by.len()).map_err(df_error)?)
            }
            _ => None,
        };
        let mask = match &mask {
            Some(mask) => {
                let mask = mask.as_boolean_opt();
                Some(mask.ok_or_else(|| Error::internal("a join's condition is no boolean"))?.clone())
            }
            None => None,
        };
        Ok(move |at: usize| mask.as_ref().is_none_or(|mask| mask.is_valid(at) && mask.value(at)))
    }
}

impl Drop for Seeking {
    fn drop(&mut self) {
        let Ok(scan) = self.join.scan() else { return };
        self.ways.drain(..).flatten().for_each(|way| scan.went(way));
    }
}

impl DisplayAs for SeekJoinExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SeekJoinExec: join_type={:?}, on={}", self.kind, words(&self.places, &self.rows))?;
        if let Some(filter) = &self.filter {
            write!(f, ", filter={}", crate::df::explain::sql(filter.expression()))?;
        }
        match &self.first {
            Some(first) if self.kind.shows_found() => write!(f, ", first={}", first.rows),
            _ => Ok(()),
        }
    }
}

/// The term is false or unknown.
fn is_not_so(term: &Predicate) -> Predicate {
    let unknown = term.fields().into_iter().map(Predicate::is_null);
    Predicate::or(std::iter::once(Predicate::not(term.clone())).chain(unknown))
}

/// The join condition in words.
fn words(places: &[SeekTarget], rows: &Arc<dyn ExecutionPlan>) -> String {
    let [place] = places else {
        let common = places.first().map_or(&[][..], |place| &place.terms[..place.common]);
        let each = places.iter().map(|place| words_of(&place.terms[place.common..], rows));
        let any = format!("({})", each.collect::<Vec<_>>().join(" OR "));
        let common = (!common.is_empty()).then(|| words_of(common, rows));
        return common.into_iter().chain([any]).collect::<Vec<_>>().join(" AND ");
    };
    words_of(&place.terms, rows)
}

/// The value, or how the rows below compute it under a name of DataFusion's.
fn as_computed<'e>(
    value: &'e Arc<dyn PhysicalExpr>,
    rows: &'e Arc<dyn ExecutionPlan>,
) -> &'e Arc<dyn PhysicalExpr> {
    let computed = || {
        let column =
            value.downcast_ref::<Column>().filter(|column| column.name().starts_with(PUSHED_DOWN))?;
        Some(&rows.downcast_ref::<ProjectionExec>()?.expr().get(column.index())?.expr)
    };
    computed().unwrap_or(value)
}

/// The names of what DataFusion computes below a join for its filter.
const PUSHED_DOWN: &str = "join_proj_push_down_";

fn words_of(terms: &[SeekTerm], rows: &Arc<dyn ExecutionPlan>) -> String {
    let word = |term: &SeekTerm| {
        let value = crate::df::explain::sql(as_computed(&term.value, rows));
        match &term.or[..] {
            [] => format!("{} {} {value}", term.column, term.op.sql()),
            or => {
                let schema = rows.schema();
                let or = or.iter().map(|at| schema.field(*at).name().clone());
                let any: Vec<String> = std::iter::once(value).chain(or).collect();
                format!("{} IN ({})", term.column, any.join(", "))
            }
        }
    };
    terms.iter().map(word).collect::<Vec<_>>().join(" AND ")
}

impl ExecutionPlan for SeekJoinExec {
    operator!(SeekJoinExec(rows, table), this => Arc::new(SeekJoinExec { rows, table, ..(*this).clone() }));

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition), ChildStats::Skip]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> DfResult<Arc<Statistics>> {
        let rows = inputs.first().map_or(Precision::Absent, |rows| rows.num_rows);
        let come_out = |rows: &usize| Precision::Inexact((*rows as f64 * self.each).ceil() as usize);
        let num_rows = rows.get_value().map_or(Precision::Absent, come_out);
        Ok(Arc::new(Statistics { num_rows, ..Statistics::new_unknown(&self.schema()) }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let this = Arc::new(self.clone());
        let pieces = pieces(self.rows.execute(partition, context)?, ROWS_FIRST);
        let batches = pieces.map_ok(move |rows| {
            let seeking = Seeking::new(Arc::clone(&this), rows);
            futures::stream::try_unfold(seeking, |mut seeking| async move {
                // Gives a waiting cancellation its turn between two batches.
                tokio::task::consume_budget().await;
                let batch = seeking.next_batch().map_err(to_df)?;
                Ok(batch.map(|batch| (batch, seeking)))
            })
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches.try_flatten())))
    }
}
