//! A join in which one side's rows tell where the other's are.
//!
//! DataFusion's hash join reads both sides. Where the rows of one side are few, and what they are joined by is the
//! whole rowkey of a table, [`LookupJoinExec`] gets those rows of the table by their keys instead, for a batch of rows
//! at a time: each key once, in key order. Where no more than a few are likely to be asked for at all, the same goes for
//! rows that are found by ranges: of a key's beginning, or of an index.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{concat_batches, kernels::cmp, take};
use arrow::datatypes::{DataType, Schema};
use arrow::row::{RowConverter, SortField};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality, Statistics};
use datafusion::error::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::work_table::WorkTableExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    Partitioning, PlanProperties, ReplaceChildrenOptions,
};
use futures::TryStreamExt;

use super::errors::to_df;
use super::scan::{ByRows, ScanExec};
use crate::access::COST;
use crate::error::{Error, Result};
use crate::exec::scan::Scan;
use crate::key::{ColumnId, Rowkey};
use crate::plan::{Field, Predicate};
use crate::row::{column_type_of, value_at};
use crate::value::{ColumnType, Value};

/// How the rows of a table are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// By their rowkeys, so that each row finds one at the most.
    Rowkeys,
    /// By those, or else by the values of some columns that a rowkey or an index begins with.
    Ranges,
}

/// Rows (count) that look for others together, at the most.
const ROWS_MAX: usize = 1024;

/// The same at first, where each may find many and somebody stops when there are enough.
const ROWS_FIRST: usize = 4;

/// Puts lookups in the place of hash joins, where they read less.
pub fn instead_of_hashes(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    let lookup = |join: &HashJoinExec| LookupJoinExec::of(join, By::Rowkeys, None);
    plan.transform_up(|node| replaced(node, &|join| Ok(lookup(join)?.map(executable)))).data()
}

/// The same in a plan that was made for other parameters, by which either side may have been the smaller one. Nothing
/// is known yet that a join would tell a scan.
pub fn instead_of_hashes_either_way(
    plan: Arc<dyn ExecutionPlan>,
    by: By,
) -> DfResult<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        replaced(node, &|join| match LookupJoinExec::of(join, by, None)? {
            // An order that it has is that of its right side, whose rows come in theirs then.
            None if matches!(join.join_type(), JoinType::Inner | JoinType::Right) => turned(join, by, None),
            lookup => Ok(lookup.map(executable)),
        })
    })
    .data()
}

/// The same in the part of a recursive query that runs once for each step: there the rows of the last step are looked
/// up, however many the planner takes them for. What is joined otherwise is read anew with each step.
pub fn in_recursions(plan: Arc<dyn ExecutionPlan>) -> DfResult<Transformed<Arc<dyn ExecutionPlan>>> {
    let of_step = |join: &HashJoinExec| match (reads_step(join.left()), reads_step(join.right())) {
        (true, false) => Ok(LookupJoinExec::of(join, By::Ranges, Some(1.0))?.map(executable)),
        (false, true) if *join.join_type() == JoinType::Inner => turned(join, By::Ranges, Some(1.0)),
        _ => Ok(None),
    };
    plan.transform_up(|node| {
        let any: &dyn std::any::Any = &*node;
        if !any.is::<RecursiveQueryExec>() {
            return Ok(Transformed::no(node));
        }
        let [first, again] = node.children()[..] else { return Ok(Transformed::no(node)) };
        let again = Arc::clone(again).transform_up(|node| replaced(node, &of_step))?;
        if !again.transformed {
            return Ok(Transformed::no(node));
        }
        let children = vec![Arc::clone(first), again.data];
        let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        node.replace_children(children, recompute).map(Transformed::yes)
    })
}

/// Reads what the last step of a recursive query gave.
fn reads_step(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let any: &dyn std::any::Any = &**plan;
    any.is::<WorkTableExec>() || plan.children().into_iter().any(reads_step)
}

fn executable(lookup: LookupJoinExec) -> Arc<dyn ExecutionPlan> {
    Arc::new(lookup)
}

/// What stands for a hash join, if anything does.
type Instead<'i> = dyn Fn(&HashJoinExec) -> DfResult<Option<Arc<dyn ExecutionPlan>>> + 'i;

fn replaced(
    node: Arc<dyn ExecutionPlan>,
    instead: &Instead<'_>,
) -> DfResult<Transformed<Arc<dyn ExecutionPlan>>> {
    let any: &dyn std::any::Any = &*node;
    let Some(join) = any.downcast_ref::<HashJoinExec>() else { return Ok(Transformed::no(node)) };
    Ok(match (instead(join)?, join.fetch()) {
        (None, _) => Transformed::no(node),
        (Some(lookup), None) => Transformed::yes(lookup),
        (Some(lookup), fetch) => Transformed::yes(Arc::new(GlobalLimitExec::new(lookup, 0, fetch))),
    })
}

/// A lookup for the rows of the right side, about so many, in the left one.
fn turned(join: &HashJoinExec, by: By, expected: Option<f64>) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
    let turned = join.swap_inputs(*join.partition_mode())?;
    let any: &dyn std::any::Any = &*turned;
    if let Some(join) = any.downcast_ref::<HashJoinExec>() {
        return Ok(LookupJoinExec::of(join, by, expected)?.map(executable));
    }
    // Its columns are put in order above it.
    let [below] = turned.children()[..] else { return Ok(None) };
    let below: &dyn std::any::Any = &**below;
    let join = below.downcast_ref::<HashJoinExec>();
    let lookup = join.map(|join| LookupJoinExec::of(join, by, expected)).transpose()?.flatten();
    let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    lookup.map(|lookup| turned.clone().replace_children(vec![executable(lookup)], keep)).transpose()
}

/// Rows, each with those of a table that it finds.
#[derive(Clone, Debug)]
pub struct LookupJoinExec {
    rows: Arc<dyn ExecutionPlan>,
    /// A [`ScanExec`] of the table.
    table: Arc<dyn ExecutionPlan>,
    on: Arc<[Equal]>,
    by: By,
    /// Rows (count) that look together at first.
    together: usize,
    /// Rows that find nothing stay.
    outer: bool,
    /// Columns of both sides that come out.
    output: Arc<[usize]>,
    properties: Arc<PlanProperties>,
}

/// Which rows go together.
struct Pairs {
    /// Places among the rows, ascending; `None`: each is there once.
    rows: Option<UInt32Array>,
    /// Places among what was found.
    found: UInt32Array,
}

/// A column of the rows that equals one of the table.
#[derive(Clone, Debug)]
struct Equal {
    of_row: Column,
    of_table: Column,
    key: ColumnId,
    ty: ColumnType,
}

impl LookupJoinExec {
    /// The same join by lookups, of about so many rows; `None` if it has to read the table otherwise, or that is
    /// quicker.
    fn of(join: &HashJoinExec, by: By, expected: Option<f64>) -> DfResult<Option<LookupJoinExec>> {
        let (rows, scan) = (join.left(), scan_of(join.right()));
        // A step of a recursion is read to its end.
        let is_stopped = expected.is_none();
        let is_plain = matches!(join.join_type(), JoinType::Inner | JoinType::Left)
            && join.filter().is_none()
            && join.null_equality() == NullEquality::NullEqualsNothing
            && join.properties().output_ordering().is_none()
            && rows.output_partitioning().partition_count() == 1;
        let Some(scan) = scan.filter(|scan| is_plain && !scan.passes_over()) else { return Ok(None) };
        let estimate = || {
            let estimate = StatisticsContext::new().compute(&**rows, &StatisticsArgs::new());
            estimate.ok().and_then(|rows| rows.num_rows.get_value().map(|n| *n as f64))
        };
        let Some(expected) = expected.or_else(estimate) else { return Ok(None) };
        if scan.bound().map_or(true, |bound| expected * COST.fetch > bound.spec.access.entries) {
            return Ok(None);
        }
        let Some(on) = equal_columns(join.on(), &rows.schema(), scan) else { return Ok(None) };
        let (table, by) = if is_whole_key(&on, scan) {
            let words = on.iter().map(|equal| format!("{}={}", equal.of_table.name(), equal.of_row.name()));
            (scan.by_rows(ByRows { columns: words.collect(), rows: expected }), By::Rowkeys)
        } else if by == By::Ranges && on.iter().any(|equal| scan.request.leads(equal.of_table.name())) {
            (Some(scan.by_values(on.iter().map(|equal| equal.of_table.name()))), By::Ranges)
        } else {
            return Ok(None);
        };
        let Some(table) = table else { return Ok(None) };
        let columns = rows.schema().fields().len() + table.schema().fields().len();
        let output: Arc<[usize]> = match &join.projection {
            Some(output) => output.iter().copied().collect(),
            None => (0..columns).collect(),
        };
        // What is above may live by them: that two columns are equal, for one, so that either sorts both.
        let mut equivalence = join.properties().equivalence_properties().clone();
        if let Some(order) = rows.output_ordering() {
            equivalence.add_ordering(order.iter().map_while(|by| above(by, &output, &join.schema())));
        }
        let properties = PlanProperties::new(
            equivalence,
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Some(LookupJoinExec {
            rows: Arc::clone(rows),
            table: Arc::new(table),
            on: on.into(),
            by,
            together: if by == By::Ranges && is_stopped { ROWS_FIRST } else { ROWS_MAX },
            outer: *join.join_type() == JoinType::Left,
            output,
            properties: Arc::new(properties),
        }))
    }

    /// The rows of a batch, each with what it finds.
    fn joined(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        let (found, pairs) = match self.by {
            By::Rowkeys => self.by_rowkeys(rows)?,
            By::Ranges => self.by_values(rows)?,
        };
        let of_rows = rows.num_columns();
        let column = |column: &usize| match (column.checked_sub(of_rows), &pairs.rows) {
            (None, None) => Ok(Arc::clone(rows.column(*column))),
            (None, Some(at)) => take(rows.column(*column), at, None),
            (Some(column), _) => take(found.column(column), &pairs.found, None),
        };
        let columns = self.output.iter().map(column).collect::<std::result::Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(pairs.found.len()));
        Ok(RecordBatch::try_new_with_options(self.schema(), columns, &options)?)
    }

    /// What rows of a batch find by the rowkeys that they tell.
    fn by_rowkeys(&self, rows: &RecordBatch) -> Result<(RecordBatch, Pairs)> {
        let keys = self.keys(rows)?;
        let (found, at) = self.found(&keys, rows.num_rows())?;
        let at = self.equal(rows, &found, at)?;
        if self.outer || at.null_count() == 0 {
            return Ok((found, Pairs { rows: None, found: at }));
        }
        let (rows, at): (Vec<u32>, Vec<u32>) =
            (0..).zip(&at).filter_map(|(row, at)| Some((row, at?))).unzip();
        Ok((found, Pairs { rows: Some(rows.into()), found: at.into() }))
    }

    /// What rows of a batch find by the values of columns.
    fn by_values(&self, rows: &RecordBatch) -> Result<(RecordBatch, Pairs)> {
        let mut condition = Vec::with_capacity(self.on.len());
        for equal in &*self.on {
            let column = rows.column(equal.of_row.index());
            let known = (0..rows.num_rows()).filter(|row| column.is_valid(*row));
            let values = known.map(|row| value_at(column, row, equal.ty)).collect::<Result<_>>()?;
            condition.push(Predicate::is_in(Field::Column(equal.key), values));
        }
        let found = all_of(self.scan()?.of_condition(Predicate::and(condition))?)?;
        let columns = |of: &dyn Fn(&Equal) -> ArrayRef| self.on.iter().map(of).collect::<Vec<_>>();
        let told = columns(&|equal| Arc::clone(rows.column(equal.of_row.index())));
        let there = columns(&|equal| Arc::clone(found.column(equal.of_table.index())));
        let sorts = there.iter().map(|column| SortField::new(column.data_type().clone()));
        let converter = RowConverter::new(sorts.collect())?;
        let is_known = |columns: &[ArrayRef], row: usize| columns.iter().all(|column| column.is_valid(row));
        let mut places: HashMap<_, Vec<u32>> = HashMap::new();
        let keys = converter.convert_columns(&there)?;
        for (at, key) in keys.iter().enumerate().filter(|(at, _)| is_known(&there, *at)) {
            places.entry(key).or_default().push(at as u32);
        }
        let (mut of_rows, mut of_found) = (Vec::new(), Vec::new());
        for (row, key) in converter.convert_columns(&told)?.iter().enumerate() {
            let known = if is_known(&told, row) { places.get(&key) } else { None };
            let found = known.map_or(&[][..], |places| places);
            of_rows.extend(found.iter().map(|_| row as u32));
            of_found.extend(found.iter().copied().map(Some));
            if found.is_empty() && self.outer {
                of_rows.push(row as u32);
                of_found.push(None);
            }
        }
        Ok((found, Pairs { rows: Some(of_rows.into()), found: of_found.into() }))
    }

    /// The rowkeys that rows of a batch tell, ascending, with the rows' places. A value that no rowkey can be made of
    /// finds nothing.
    fn keys(&self, rows: &RecordBatch) -> Result<Vec<(Rowkey, usize)>> {
        let table = self.scan()?.request.table();
        let mut values = vec![Value::Null; table.columns.len()];
        let mut keys = Vec::with_capacity(rows.num_rows());
        for row in 0..rows.num_rows() {
            for equal in &*self.on {
                let value = value_at(rows.column(equal.of_row.index()), row, equal.ty)?;
                values[usize::from(equal.key.0)] = value;
            }
            if self.on.iter().any(|equal| values[usize::from(equal.key.0)].is_null()) {
                continue;
            }
            let mut key = Vec::with_capacity(32);
            let value = |id: ColumnId| &values[usize::from(id.0)];
            if table.key.parts().iter().all(|part| part.bytes_of(&value, &mut key).is_ok()) {
                keys.push((Rowkey::new(key), row));
            }
        }
        keys.sort_unstable();
        Ok(keys)
    }

    /// The rows of the table with these rowkeys, each once, and for each of `n` rows which of them it finds.
    fn found(&self, keys: &[(Rowkey, usize)], n: usize) -> Result<(RecordBatch, Vec<Option<u32>>)> {
        let mut wanted: Vec<Rowkey> = keys.iter().map(|(key, _)| key.clone()).collect();
        wanted.dedup();
        let mut found = all_of(self.scan()?.of_keys(wanted)?)?;
        let rowkeys = found.remove_column(found.num_columns() - 1);
        let rowkey = |at: usize| match rowkeys.data_type() {
            DataType::Utf8 => rowkeys.as_string::<i32>().value(at).as_bytes(),
            _ => rowkeys.as_binary::<i32>().value(at),
        };
        let (mut at, mut places) = (0, vec![None; n]);
        for (key, row) in keys {
            while at < rowkeys.len() && rowkey(at) < &key[..] {
                at += 1;
            }
            if at < rowkeys.len() && rowkey(at) == &key[..] {
                places[*row] = Some(at as u32);
            }
        }
        Ok((found, places))
    }

    /// `at`, but for the rows that differ from what they found: a part of the key may take something off a value.
    fn equal(&self, rows: &RecordBatch, found: &RecordBatch, at: Vec<Option<u32>>) -> Result<UInt32Array> {
        let mut at = UInt32Array::from(at);
        for equal in &*self.on {
            let values = take(found.column(equal.of_table.index()), &at, None)?;
            let equal = cmp::eq(rows.column(equal.of_row.index()), &values)?;
            at = at.iter().zip(&equal).map(|(at, equal)| at.filter(|_| equal == Some(true))).collect();
        }
        Ok(at)
    }

    fn scan(&self) -> Result<&ScanExec> {
        scan_of(&self.table).ok_or_else(|| Error::internal("a lookup in something that is no table"))
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

/// The order by a column of the rows as one by a column that comes out.
fn above(by: &PhysicalSortExpr, output: &[usize], schema: &Schema) -> Option<PhysicalSortExpr> {
    let any: &dyn std::any::Any = &*by.expr;
    let column = any.downcast_ref::<Column>()?;
    let at = output.iter().position(|below| *below == column.index())?;
    Some(PhysicalSortExpr::new(Arc::new(Column::new(schema.field(at).name(), at)), by.options))
}

/// The scan that a plan is.
pub(super) fn scan_of(plan: &Arc<dyn ExecutionPlan>) -> Option<&ScanExec> {
    let any: &dyn std::any::Any = &**plan;
    match any.downcast_ref::<CooperativeExec>() {
        Some(cooperative) => scan_of(cooperative.input()),
        None => any.downcast_ref(),
    }
}

/// What a join equates: of the rows, of the table.
type Pair = (Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>);

/// What a join equates, if these are columns whose values are equal where their bytes are.
fn equal_columns(on: &[Pair], rows: &Schema, scan: &ScanExec) -> Option<Vec<Equal>> {
    let table = scan.request.keyed()?;
    let column = |expr: &Arc<dyn PhysicalExpr>| {
        let any: &dyn std::any::Any = &**expr;
        any.downcast_ref::<Column>().cloned()
    };
    let equal = |(of_row, of_table): &Pair| {
        let (of_row, of_table) = (column(of_row)?, column(of_table)?);
        let Field::Column(key) = scan.request.output_field(of_table.index())? else { return None };
        let ty = table.column(key).ty;
        // Zeros and NaNs are equal by other rules than bytes are.
        let is_exact = !matches!(ty, ColumnType::Real | ColumnType::Double | ColumnType::Json);
        let (row, found) = (rows.field(of_row.index()), scan.request.schema.field(of_table.index()));
        let is_same = column_type_of(row) == Some(ty) && row.data_type() == found.data_type();
        (is_exact && is_same).then_some(Equal { of_row, of_table, key, ty })
    };
    on.iter().map(equal).collect()
}

/// They are the columns of the table's rowkey, each of them.
fn is_whole_key(on: &[Equal], scan: &ScanExec) -> bool {
    let key = &scan.request.table().key;
    let (mut asked, mut columns) = (on.iter().map(|equal| equal.key).collect::<Vec<_>>(), key.columns());
    asked.sort_unstable();
    columns.sort_unstable();
    asked == columns && !key.parts().iter().any(|part| part.is_random())
}

impl DisplayAs for LookupJoinExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = self.on.iter().map(|equal| format!("({}, {})", equal.of_row, equal.of_table));
        let kind = if self.outer { "Left" } else { "Inner" };
        write!(f, "LookupJoinExec: join_type={kind}, on=[{}]", on.collect::<Vec<_>>().join(", "))
    }
}

impl ExecutionPlan for LookupJoinExec {
    fn name(&self) -> &str {
        "LookupJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.rows, &self.table]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let [rows, table] = <[_; 2]>::try_from(children)
            .map_err(|_| to_df(Error::internal("a lookup join has two inputs")))?;
        Ok(Arc::new(LookupJoinExec { rows, table, ..(*self).clone() }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition), ChildStats::Skip]
    }

    /// A row finds one at the most, or mostly few.
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
        let this = self.clone();
        let mut together = self.together;
        let pieces = rows.map_ok(move |batch| {
            let (mut pieces, mut at) = (Vec::new(), 0);
            while at < batch.num_rows() {
                let piece = batch.slice(at, together.min(batch.num_rows() - at));
                at += piece.num_rows();
                pieces.push(Ok(piece));
                // The more were not enough, the more are likely to be asked for.
                together = (4 * together).min(ROWS_MAX);
            }
            futures::stream::iter(pieces)
        });
        let batches =
            pieces.try_flatten().and_then(move |rows| std::future::ready(this.joined(&rows).map_err(to_df)));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}
