//! Joins that look up the rows of one side, given the rows of the other.
//!
//! DataFusion's hash join reads both sides. Where the outer rows are few and are joined by the whole rowkey of a table,
//! [`LookupJoinExec`] gets the rows of the table by key instead, a batch of outer rows at a time: each key once, in key
//! order. Where only a few rows are likely to be wanted at all, it also looks rows up by range: of a key prefix, or of
//! an index. Semi and anti joins work the same way. Below a top-k sort, the table is read for all outer rows at once,
//! in the order of the sort.

mod alone;
mod found;
mod instead;
mod nested;
mod sorted;

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{concat_batches, kernels::cmp, take, take_record_batch};
use arrow::datatypes::DataType;
use datafusion::common::stats::Precision;
use datafusion::common::{JoinType, Statistics};
use datafusion::error::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{Stream, StreamExt, TryStreamExt};

pub use self::alone::Lookups;
use self::found::{FoundBy, JoinKeys, JoinedPairs, SeenKeys};
pub use self::instead::{
    EqualPair, are_all_lookups, are_worth_it, given_as, in_recursions, instead_of_all_hashes,
    instead_of_hashes, instead_of_hashes_either_way, nulls_match_nothing, once_is_enough, only_equates,
    order_above,
};
pub use self::nested::{Nested, NestedExec, NestedRun, led};
pub use self::sorted::sorted_first;
use super::scan::{ExpectedAccess, FEW_ROWS, ScanExec};
use crate::access::{COST, Method};
use crate::df::below::{picked, scan_of};
use crate::df::errors::to_df;
use crate::df::operators::join_rows::rows_of;
use crate::df::operators::operator;
use crate::df::table::Bound;
use crate::error::{Error, Result};
use crate::exec::scan::{Scan, grown};
use crate::key::{ColumnId, KeyHead, Rowkey};
use crate::plan::{CmpOp, Field, Predicate};
use crate::row::{any_value_at, value_at};
use crate::value::{ColumnType, Value};

/// How the rows of a table are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupBy {
    /// By rowkey, so that each outer row finds one row at most.
    Rowkeys,
    /// By rowkey, or by values of the leading columns of a rowkey or an index.
    Ranges,
}

/// Worst-case cost of the lookups of a semi or anti join, relative to a hash join; and the same where most outer rows
/// are expected to qualify.
const LONGER: f64 = 3.0;
const LONGER_MOST: f64 = 8.0;

/// Selectivity (one row in so many pass) down to which an inner join's search for its first rows is worth a try.
const RARELY: f64 = 20.0;

/// What a join does with an outer row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// Inner join: the row comes out with each row that it finds.
    Inner,
    /// Left join: as `Inner`, or null-extended if it finds none.
    Left,
    /// Semi join: the row comes out if it finds one.
    Semi,
    /// Anti join: the row comes out if it finds none.
    Anti,
    /// Right semi join: each row found comes out, once.
    Found,
}

impl JoinKind {
    /// The kind for a join whose left side has the outer rows; `None` for joins that cannot be lookup joins.
    pub fn of(join: JoinType) -> Option<JoinKind> {
        Some(match join {
            JoinType::Inner => JoinKind::Inner,
            JoinType::Left => JoinKind::Left,
            JoinType::LeftSemi => JoinKind::Semi,
            JoinType::LeftAnti => JoinKind::Anti,
            JoinType::RightSemi => JoinKind::Found,
            _ => return None,
        })
    }

    /// Columns of the rows found come out.
    pub fn shows_found(self) -> bool {
        matches!(self, JoinKind::Inner | JoinKind::Left | JoinKind::Found)
    }

    /// Columns of the outer row come out.
    fn shows_row(self) -> bool {
        self != JoinKind::Found
    }
}

/// Most outer rows (count) that are looked up together.
const ROWS_MAX: usize = 1024;

/// The same for the first batch, where each may find many and the consumer may stop early.
const ROWS_FIRST: usize = 4;

/// Outer rows, each joined with the rows of a table that it finds.
#[derive(Clone, Debug)]
pub struct LookupJoinExec {
    rows: Arc<dyn ExecutionPlan>,
    /// A [`ScanExec`] of the table.
    table: Arc<dyn ExecutionPlan>,
    on: Arc<[JoinColumn]>,
    by: LookupBy,
    /// Outer rows (count) of the first lookup.
    together: usize,
    /// So many rows that find something are enough, and nearly each does.
    wanted: Option<usize>,
    kind: JoinKind,
    /// Rows come in the order of the top-k sort above, if that is cheap.
    in_order: bool,
    /// Output columns: those of the outer rows are numbered first, then those of the table.
    output: Arc<[usize]>,
    properties: Arc<PlanProperties>,
}

/// A column of the outer rows that equals one of the table.
#[derive(Clone, Debug)]
struct JoinColumn {
    of_row: Column,
    of_table: Column,
    key: ColumnId,
    ty: ColumnType,
}

impl JoinColumn {
    /// The value in an outer row, in the type of the table's column. NULL, which finds nothing, if it is beyond that.
    fn value(&self, rows: &RecordBatch, row: usize) -> Result<Value> {
        let column = rows.column(self.of_row.index());
        if !self.ty.is_integer() {
            return value_at(column, row, self.ty);
        }
        let value = any_value_at(column, row)?;
        Ok(if self.ty.holds(&value) { value } else { Value::Null })
    }
}

impl LookupJoinExec {
    /// The outer rows.
    pub fn rows(&self) -> &Arc<dyn ExecutionPlan> {
        &self.rows
    }

    /// The table's scan, and its expected access for each value of the outer rows.
    pub fn table(&self) -> Option<(&ScanExec, Option<ExpectedAccess>)> {
        let scan = scan_of(&self.table)?;
        let terms: Vec<_> = self.on.iter().map(|equal| (Field::Column(equal.key), CmpOp::Eq)).collect();
        let by_ranges = self.by == LookupBy::Ranges;
        Some((scan, by_ranges.then(|| scan.expected_for_values(&terms)).flatten()))
    }

    /// A few outer rows are likely to give an output row; and if none does, looking all of them up does not take much
    /// longer than reading the table.
    pub fn is_promising(&self) -> bool {
        let Some(scan) = scan_of(&self.table) else { return false };
        let Ok(bound) = scan.bound() else { return false };
        // Conditions on the join columns apply to both sides.
        let is_equal = |field| self.on.iter().any(|equal| Field::Column(equal.key) == field);
        let finds_most = bound.need.predicate.fields().into_iter().all(is_equal);
        // The rows of `bound` may be those that are looked up.
        let finds_some = || scan.request.passing(bound) * RARELY >= scan.request.entries(&bound.binding);
        let most = match self.kind {
            JoinKind::Left => return true,
            JoinKind::Inner if finds_most => return true,
            // One in so many is found soon.
            JoinKind::Inner if finds_some() => LONGER_MOST,
            JoinKind::Inner => return false,
            // All outer rows are looked up together.
            JoinKind::Found => return false,
            JoinKind::Semi if finds_most => LONGER_MOST,
            JoinKind::Anti if self.leaves_most(bound) => LONGER_MOST,
            JoinKind::Semi | JoinKind::Anti => LONGER,
        };
        let of_one = match self.by {
            LookupBy::Rowkeys => Some(COST.fetch),
            LookupBy::Ranges => self.work_of_one(),
        };
        let (Some(rows), Some(of_one)) = (all_rows(&self.rows), of_one) else { return false };
        rows * of_one <= most * (rows + bound.spec.access.cost)
    }

    /// The join keeps the order of the outer rows and nearly each of them finds a match, so that a limit above may stop
    /// it soon.
    fn may_stop_early(&self) -> bool {
        !self.in_order && matches!(self.kind, JoinKind::Inner | JoinKind::Left) && self.is_promising()
    }

    /// The table has so few distinct values that most outer rows find none.
    fn leaves_most(&self, bound: &Bound) -> bool {
        let Some(scan) = scan_of(&self.table) else { return false };
        let of_rows = |equal: &JoinColumn| {
            let (rows, columns) = picked(&self.rows)?;
            let field = rows.request.output_field(*columns.get(equal.of_row.index())?)?;
            rows.request.distinct(&rows.bound().ok()?.binding, field)
        };
        let passing = scan.request.passing(bound);
        let are_few = |equal: &JoinColumn| {
            let known = scan.request.distinct(&bound.binding, Field::Column(equal.key));
            let of_table = known.map_or(passing, |known| known.min(passing));
            of_rows(equal).is_some_and(|of_rows| 2.0 * of_table <= of_rows)
        };
        self.on.iter().any(are_few)
    }

    /// Cost of looking up one outer row by range, in entries walked.
    fn work_of_one(&self) -> Option<f64> {
        let scan = scan_of(&self.table)?;
        let of_one = scan.request.guessed(scan.bound().ok()?, &self.fields())?;
        Some(of_one.work)
    }

    /// The columns of the table that equal one of an outer row.
    fn fields(&self) -> Vec<Field> {
        self.on.iter().map(|equal| Field::Column(equal.key)).collect()
    }

    /// Cost of the first lookups, before any row comes out; zero for lookups by rowkey.
    pub fn work_at_first(&self) -> Option<f64> {
        match self.by {
            LookupBy::Rowkeys => Some(0.0),
            LookupBy::Ranges => Some(self.together.min(FEW_ROWS) as f64 * self.work_of_one()?),
        }
    }

    /// Rows may come in the order of a top-k sort above, if a dynamic filter of the sort is passed in.
    pub fn takes_order(&self) -> bool {
        self.in_order
    }

    /// The side of a join (0: outer rows, 1: table) and the column there behind an output column.
    pub fn output_of(&self, at: usize) -> Option<(usize, usize)> {
        let of_rows = if self.kind.shows_row() { self.rows.schema().fields().len() } else { 0 };
        let at = *self.output.get(at)?;
        Some(at.checked_sub(of_rows).map_or((0, at), |of_table| (1, of_table)))
    }

    /// Cost without reading the outer rows, in entries walked; `None` if unknown.
    pub fn work(&self) -> Option<f64> {
        let scan = scan_of(&self.table)?;
        match self.by {
            LookupBy::Rowkeys => {
                let looked_up = rows_of(&self.rows).map(|rows| rows * COST.fetch);
                Some(looked_up.into_iter().fold(scan.work(None)?, f64::min))
            }
            // In order, the first few rows are enough.
            LookupBy::Ranges if self.in_order => Some(0.0),
            LookupBy::Ranges => Some(rows_of(&self.rows)? * self.work_of_one()?),
        }
    }

    /// [`LookupJoinExec::joined`], without outer rows whose matches have come out before (`seen`).
    fn joined_anew(&self, rows: RecordBatch, seen: &mut SeenKeys) -> Result<RecordBatch> {
        self.joined(&self.not_seen(rows, seen)?)
    }

    /// Joins a batch of outer rows with what they find.
    fn joined(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        let (found, pairs) = match self.by {
            LookupBy::Rowkeys => self.by_rowkeys(rows)?,
            LookupBy::Ranges => self.by_values(rows)?,
        };
        self.paired(rows, &found, &pairs)
    }

    fn paired(&self, rows: &RecordBatch, found: &RecordBatch, pairs: &JoinedPairs) -> Result<RecordBatch> {
        let of_rows = if self.kind.shows_row() { rows.num_columns() } else { 0 };
        let column = |column: &usize| match (column.checked_sub(of_rows), &pairs.rows) {
            (None, None) => Ok(Arc::clone(rows.column(*column))),
            (None, Some(at)) => take(rows.column(*column), at, None),
            (Some(column), _) => take(found.column(column), &pairs.found, None),
        };
        let columns = self.output.iter().map(column).collect::<std::result::Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(pairs.found.len()));
        Ok(RecordBatch::try_new_with_options(self.schema(), columns, &options)?)
    }

    /// Looks a batch of outer rows up by rowkey.
    fn by_rowkeys(&self, rows: &RecordBatch) -> Result<(RecordBatch, JoinedPairs)> {
        let (keys, of_rows) = self.keys(rows)?;
        let (found, of_keys) = self.found(keys)?;
        let at = of_rows.iter().map(|key| of_keys[(*key)?]).collect();
        let at = self.equal(rows, &found, at)?;
        let rows = 0..at.len() as u32;
        let finds = |row: &u32| at.is_valid(*row as usize);
        let pairs = match self.kind {
            JoinKind::Left => JoinedPairs { rows: None, found: at },
            JoinKind::Inner if at.null_count() == 0 => JoinedPairs { rows: None, found: at },
            JoinKind::Inner => JoinedPairs {
                rows: Some(rows.filter(finds).collect()),
                found: at.iter().filter(Option::is_some).collect(),
            },
            JoinKind::Semi => JoinedPairs::alone(rows.filter(finds)),
            JoinKind::Anti => JoinedPairs::alone(rows.filter(|row| !finds(row))),
            JoinKind::Found => {
                let mut found: Vec<u32> = at.iter().flatten().collect();
                found.sort_unstable();
                found.dedup();
                JoinedPairs { rows: None, found: found.into() }
            }
        };
        Ok((found, pairs))
    }

    /// Looks a batch of outer rows up by values of columns.
    fn by_values(&self, rows: &RecordBatch) -> Result<(RecordBatch, JoinedPairs)> {
        let found = all_of(self.scan()?.of_condition(self.condition(rows)?)?)?;
        let keys = JoinKeys::new(self)?;
        let places = keys.places(&self.of_table(&found))?;
        let (mut of_rows, mut of_found) = (Vec::new(), Vec::new());
        keys.each(&self.of_rows(rows), &mut |row, key| {
            let found = key.and_then(|key| places.get(key)).map_or(&[][..], |places| places);
            let comes_alone = match self.kind {
                JoinKind::Inner | JoinKind::Found => false,
                JoinKind::Left | JoinKind::Anti => found.is_empty(),
                JoinKind::Semi => !found.is_empty(),
            };
            if self.kind.shows_found() {
                of_rows.extend(found.iter().map(|_| row));
                of_found.extend(found.iter().copied().map(Some));
            }
            if comes_alone {
                of_rows.push(row);
                of_found.push(None);
            }
        })?;
        Ok((found, JoinedPairs { rows: Some(of_rows.into()), found: of_found.into() }))
    }

    /// The condition on the table for a batch of outer rows.
    fn condition(&self, rows: &RecordBatch) -> Result<Predicate> {
        let mut condition = Vec::with_capacity(self.on.len());
        for equal in &*self.on {
            let column = rows.column(equal.of_row.index());
            let known = (0..rows.num_rows()).filter(|row| column.is_valid(*row));
            let values = known.map(|row| equal.value(rows, row)).collect::<Result<Vec<_>>>()?;
            let values = values.into_iter().filter(|value| !value.is_null()).collect();
            condition.push(Predicate::is_in(Field::Column(equal.key), values));
        }
        Ok(Predicate::and(condition))
    }

    fn of_rows(&self, rows: &RecordBatch) -> Vec<ArrayRef> {
        self.on.iter().map(|equal| Arc::clone(rows.column(equal.of_row.index()))).collect()
    }

    fn of_table(&self, found: &RecordBatch) -> Vec<ArrayRef> {
        self.on.iter().map(|equal| Arc::clone(found.column(equal.of_table.index()))).collect()
    }

    /// The distinct rowkeys of a batch of outer rows, ascending, and for each row the index of its key. Values that
    /// cannot be encoded in a rowkey find nothing.
    fn keys(&self, rows: &RecordBatch) -> Result<(Vec<Rowkey>, Vec<Option<usize>>)> {
        let table = self.scan()?.request.table();
        let mut values = vec![Value::Null; table.columns.len()];
        let mut told = Vec::with_capacity(rows.num_rows());
        for row in 0..rows.num_rows() {
            for equal in &*self.on {
                values[usize::from(equal.key.0)] = equal.value(rows, row)?;
            }
            if self.on.iter().any(|equal| values[usize::from(equal.key.0)].is_null()) {
                continue;
            }
            let mut key = Vec::with_capacity(32);
            let value = |id: ColumnId| &values[usize::from(id.0)];
            if table.key.parts().iter().all(|part| part.bytes_of(&value, &mut key).is_ok()) {
                told.push((KeyHead::of(&key), Rowkey::new(key), row));
            }
        }
        told.sort_unstable_by(|(head, key, _), (other, than, _)| head.cmp(other).then_with(|| key.cmp(than)));
        let mut keys: Vec<Rowkey> = Vec::with_capacity(told.len());
        let mut of_rows = vec![None; rows.num_rows()];
        for (_, key, row) in told {
            if keys.last() != Some(&key) {
                keys.push(key);
            }
            of_rows[row] = Some(keys.len() - 1);
        }
        Ok((keys, of_rows))
    }

    /// The rows of the table with these rowkeys, which ascend, and for each key the row it found.
    fn found(&self, keys: Vec<Rowkey>) -> Result<(RecordBatch, Vec<Option<u32>>)> {
        let scan = self.scan()?.of_keys(keys)?;
        let spec = Arc::clone(scan.spec());
        let mut found = all_of(scan)?;
        let Method::Get(keys) = &spec.access.method else {
            return Err(Error::internal("rows are looked up without keys"));
        };
        let rowkeys = found.remove_column(found.num_columns() - 1);
        let rowkey = |at: usize| match rowkeys.data_type() {
            DataType::Utf8 => rowkeys.as_string::<i32>().value(at).as_bytes(),
            _ => rowkeys.as_binary::<i32>().value(at),
        };
        let mut at = 0;
        let places = keys.iter().map(|key| {
            while at < rowkeys.len() && rowkey(at) < &key[..] {
                at += 1;
            }
            (at < rowkeys.len() && rowkey(at) == &key[..]).then_some(at as u32)
        });
        Ok((found, places.collect()))
    }

    /// Drops matches with unequal values: a key part may shorten a value.
    fn equal(&self, rows: &RecordBatch, found: &RecordBatch, at: Vec<Option<u32>>) -> Result<UInt32Array> {
        let mut at = UInt32Array::from(at);
        for equal in &*self.on {
            let values = take(found.column(equal.of_table.index()), &at, None)?;
            let equal = cmp::eq(rows.column(equal.of_row.index()), &values)?;
            at = at.iter().zip(&equal).map(|(at, equal)| at.filter(|_| equal == Some(true))).collect();
        }
        Ok(at)
    }

    /// Joins all outer rows; in order, if they are few enough for one lookup.
    async fn in_order(
        self: Arc<Self>,
        mut pieces: impl Stream<Item = DfResult<RecordBatch>> + Send + Unpin + 'static,
    ) -> DfResult<impl Stream<Item = DfResult<RecordBatch>>> {
        let mut first = Vec::new();
        while first.iter().map(RecordBatch::num_rows).sum::<usize>() <= ROWS_MAX {
            match pieces.try_next().await? {
                Some(piece) => first.push(piece),
                None => break,
            }
        }
        let rows = first.iter().map(RecordBatch::num_rows).sum::<usize>();
        let all = concat_batches(&self.rows.schema(), &first)?;
        let first = if rows <= ROWS_MAX { vec![all] } else { first };
        let mut seen = SeenKeys::default();
        let found = futures::stream::iter(first.into_iter().map(Ok)).chain(pieces).map_ok(move |piece| {
            let found = self
                .not_seen(piece, &mut seen)
                .and_then(|piece| FoundBy::new(Arc::clone(&self), piece, rows <= ROWS_MAX));
            futures::stream::once(std::future::ready(found.map_err(to_df)))
                .map_ok(futures::stream::iter)
                .try_flatten()
        });
        Ok(found.try_flatten())
    }

    /// The outer rows with keys that have not been looked up before, if each match comes out once only.
    fn not_seen(&self, rows: RecordBatch, seen: &mut SeenKeys) -> Result<RecordBatch> {
        if self.kind != JoinKind::Found {
            return Ok(rows);
        }
        let mut new = Vec::new();
        JoinKeys::new(self)?.each(&self.of_rows(&rows), &mut |row, key| {
            if key.is_some_and(|key| !seen.contains(key) && seen.insert(key.into())) {
                new.push(row);
            }
        })?;
        Ok(take_record_batch(&rows, &UInt32Array::from(new))?)
    }

    fn scan(&self) -> Result<&ScanExec> {
        scan_of(&self.table).ok_or_else(|| Error::internal("a lookup in something that is no table"))
    }
}

/// Splits batches into pieces of `together` rows at first, then of more and more: a consumer that wanted more wants
/// many.
pub(in crate::df) fn pieces(
    rows: SendableRecordBatchStream,
    mut together: usize,
) -> impl Stream<Item = DfResult<RecordBatch>> + Send + Unpin {
    let pieces = rows.map_ok(move |batch| {
        let (mut pieces, mut at) = (Vec::new(), 0);
        while at < batch.num_rows() {
            let piece = batch.slice(at, together.min(batch.num_rows() - at));
            at += piece.num_rows();
            pieces.push(Ok(piece));
            together = grown(together, ROWS_MAX);
        }
        futures::stream::iter(pieces)
    });
    pieces.try_flatten()
}

/// Most rows (count) of a plan that is read to its end, judged by its first scan.
fn all_rows(plan: &Arc<dyn ExecutionPlan>) -> Option<f64> {
    match scan_of(plan) {
        Some(scan) => scan.request.rows_of_all(scan.bound().ok()?).ok(),
        None => all_rows(plan.children().first()?),
    }
}

/// All rows of a scan.
fn all_of(mut scan: Scan) -> Result<RecordBatch> {
    let mut batches = Vec::new();
    while let Some(batch) = scan.next_batch()? {
        batches.push(batch);
    }
    Ok(concat_batches(scan.schema(), &batches)?)
}

impl DisplayAs for LookupJoinExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = self.on.iter().map(|equal| format!("({}, {})", equal.of_row, equal.of_table));
        write!(f, "LookupJoinExec: join_type={:?}, on=[{}]", self.kind, on.collect::<Vec<_>>().join(", "))
    }
}

impl ExecutionPlan for LookupJoinExec {
    operator!(LookupJoinExec(rows, table), this => Arc::new(LookupJoinExec { rows, table, ..(*this).clone() }));

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition), ChildStats::Skip]
    }

    /// Assumes one match for each outer row.
    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> DfResult<Arc<Statistics>> {
        let num_rows = inputs.first().map_or(Precision::Absent, |rows| rows.num_rows.to_inexact());
        Ok(Arc::new(Statistics { num_rows, ..Statistics::new_unknown(&self.schema()) }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let rows = self.rows.execute(partition, context)?;
        let this = Arc::new(self.clone());
        let pieces = pieces(rows, self.together);
        if self.in_order {
            let batches = futures::stream::once(this.in_order(pieces)).try_flatten();
            return Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)));
        }
        let mut seen = SeenKeys::default();
        let batches =
            pieces.map(move |rows| rows.and_then(|rows| this.joined_anew(rows, &mut seen).map_err(to_df)));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}
