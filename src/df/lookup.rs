//! A join in which one side's rows tell the rowkeys of the other's.
//!
//! DataFusion's hash join reads both sides. Where the rows of one side are few, and what they are joined by is the
//! whole rowkey of a table, [`LookupJoinExec`] gets those rows of the table by their keys instead, for a batch of rows
//! at a time: each key once, in key order.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{concat_batches, filter_record_batch, kernels::cmp, take};
use arrow::datatypes::{DataType, Schema};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality, Statistics};
use datafusion::error::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
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
use crate::key::{ColumnId, Rowkey};
use crate::plan::Field;
use crate::row::{column_type_of, value_at};
use crate::value::{ColumnType, Value};

/// Puts lookups in the place of hash joins, where they read less.
pub fn instead_of_hashes(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| replaced(node, &|join| Ok(LookupJoinExec::of(join, None)?.map(executable))))
        .data()
}

/// The same in a plan that was made for other parameters, by which either side may have been the smaller one. Nothing
/// is known yet that a join would tell a scan.
pub fn instead_of_hashes_either_way(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        replaced(node, &|join| match LookupJoinExec::of(join, None)? {
            // What is above may live by the order of the rows.
            None if *join.join_type() == JoinType::Inner && join.properties().output_ordering().is_none() => {
                turned(join, None)
            }
            lookup => Ok(lookup.map(executable)),
        })
    })
    .data()
}

/// The same in the part of a recursive query that runs once for each step: there the rows of the last step are looked
/// up, however many the planner takes them for. What is joined otherwise is read anew with each step.
pub fn in_recursions(plan: Arc<dyn ExecutionPlan>) -> DfResult<Transformed<Arc<dyn ExecutionPlan>>> {
    let of_step = |join: &HashJoinExec| match (reads_step(join.left()), reads_step(join.right())) {
        (true, false) => Ok(LookupJoinExec::of(join, Some(1.0))?.map(executable)),
        (false, true) if *join.join_type() == JoinType::Inner => turned(join, Some(1.0)),
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
    let lookup = any.downcast_ref::<HashJoinExec>().map(instead).transpose()?.flatten();
    Ok(lookup.map_or_else(|| Transformed::no(Arc::clone(&node)), Transformed::yes))
}

/// A lookup for the rows of the right side, about so many, in the left one.
fn turned(join: &HashJoinExec, expected: Option<f64>) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
    let turned = join.swap_inputs(*join.partition_mode())?;
    let any: &dyn std::any::Any = &*turned;
    if let Some(join) = any.downcast_ref::<HashJoinExec>() {
        return Ok(LookupJoinExec::of(join, expected)?.map(executable));
    }
    // Its columns are put in order above it.
    let [below] = turned.children()[..] else { return Ok(None) };
    let below: &dyn std::any::Any = &**below;
    let join = below.downcast_ref::<HashJoinExec>();
    let lookup = join.map(|join| LookupJoinExec::of(join, expected)).transpose()?.flatten();
    let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    lookup.map(|lookup| turned.clone().replace_children(vec![executable(lookup)], keep)).transpose()
}

/// Rows, each with the one of a table whose rowkey it tells.
#[derive(Clone, Debug)]
pub struct LookupJoinExec {
    rows: Arc<dyn ExecutionPlan>,
    /// A [`ScanExec`] of the table.
    table: Arc<dyn ExecutionPlan>,
    on: Arc<[Equal]>,
    /// Rows that find nothing stay.
    outer: bool,
    /// Columns of both sides that come out.
    output: Arc<[usize]>,
    properties: Arc<PlanProperties>,
}

/// A column of the rows that equals one of the rowkey.
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
    fn of(join: &HashJoinExec, expected: Option<f64>) -> DfResult<Option<LookupJoinExec>> {
        let (rows, scan) = (join.left(), scan_of(join.right()));
        let is_plain = matches!(join.join_type(), JoinType::Inner | JoinType::Left)
            && join.filter().is_none()
            && join.fetch().is_none()
            && join.null_equality() == NullEquality::NullEqualsNothing
            && join.properties().output_ordering().is_none()
            && rows.output_partitioning().partition_count() == 1;
        let Some(scan) = scan.filter(|_| is_plain) else { return Ok(None) };
        let estimate = || {
            let estimate = StatisticsContext::new().compute(&**rows, &StatisticsArgs::new());
            estimate.ok().and_then(|rows| rows.num_rows.get_value().map(|n| *n as f64))
        };
        let Some(expected) = expected.or_else(estimate) else { return Ok(None) };
        let Some(on) = whole_key(join.on(), &rows.schema(), scan) else { return Ok(None) };
        let words = on.iter().map(|equal| format!("{}={}", equal.of_table.name(), equal.of_row.name()));
        if scan.bound().map_or(true, |bound| expected * COST.fetch > bound.spec.access.entries) {
            return Ok(None);
        }
        let Some(table) = scan.by_rows(ByRows { columns: words.collect(), rows: expected }) else {
            return Ok(None);
        };
        let columns = rows.schema().fields().len() + table.schema().fields().len();
        let output = match &join.projection {
            Some(output) => output.iter().copied().collect(),
            None => (0..columns).collect(),
        };
        let properties = PlanProperties::new(
            // What is above may live by them: that two columns are equal, for one, so that either sorts both.
            join.properties().equivalence_properties().clone(),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Some(LookupJoinExec {
            rows: Arc::clone(rows),
            table: Arc::new(table),
            on: on.into(),
            outer: *join.join_type() == JoinType::Left,
            output,
            properties: Arc::new(properties),
        }))
    }

    /// The rows of a batch, each with the one it finds.
    fn joined(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        let keys = self.keys(rows)?;
        let (found, at) = self.found(&keys, rows.num_rows())?;
        let at = self.equal(rows, &found, at)?;
        let (rows, at) = match self.outer || at.null_count() == 0 {
            true => (rows.clone(), at),
            false => {
                let finds = BooleanArray::from_iter(at.iter().map(|at| Some(at.is_some())));
                (filter_record_batch(rows, &finds)?, at.iter().flatten().map(Some).collect())
            }
        };
        let of_rows = rows.num_columns();
        let column = |column: &usize| match column.checked_sub(of_rows) {
            None => Ok(Arc::clone(rows.column(*column))),
            Some(column) => take(found.column(column), &at, None),
        };
        let columns = self.output.iter().map(column).collect::<std::result::Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        Ok(RecordBatch::try_new_with_options(self.schema(), columns, &options)?)
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
        let mut scan = self.scan()?.of_keys(wanted)?;
        let mut batches = Vec::new();
        while let Some(batch) = scan.next_batch()? {
            batches.push(batch);
        }
        let mut found = concat_batches(scan.schema(), &batches)?;
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

/// The scan that a plan is.
fn scan_of(plan: &Arc<dyn ExecutionPlan>) -> Option<&ScanExec> {
    let any: &dyn std::any::Any = &**plan;
    match any.downcast_ref::<CooperativeExec>() {
        Some(cooperative) => scan_of(cooperative.input()),
        None => any.downcast_ref(),
    }
}

/// What a join equates: of the rows, of the table.
type Pair = (Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>);

/// What a join equates, if it is each column of the table's rowkey and nothing else.
fn whole_key(on: &[Pair], rows: &Schema, scan: &ScanExec) -> Option<Vec<Equal>> {
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
    let on: Vec<Equal> = on.iter().map(equal).collect::<Option<_>>()?;
    let (mut asked, mut key) = (on.iter().map(|equal| equal.key).collect::<Vec<_>>(), table.key.columns());
    asked.sort_unstable();
    key.sort_unstable();
    (asked == key && !table.key.parts().iter().any(|part| part.is_random())).then_some(on)
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

    /// A row finds one at the most.
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
        let batches = rows.and_then(move |batch| std::future::ready(this.joined(&batch).map_err(to_df)));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}
