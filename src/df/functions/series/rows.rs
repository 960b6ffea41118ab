//! The rows of a series, and the operator that gives them.

use std::fmt;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, TimestampMicrosecondArray};
use arrow::datatypes::{IntervalMonthDayNano, Schema, SchemaRef, TimestampMicrosecondType};
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalSortExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use crate::df::operators::{one_part, operator};
use crate::row::field;
use crate::value::{ColumnType, US_PER_DAY, ValueRef, timestamp_in_range};

/// Rows (count) of a batch.
const BATCH_ROWS: usize = 8_192;

/// From one row to the next.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// Not 0.
    Number(i64),
    /// At least a microsecond.
    Interval(IntervalMonthDayNano),
}

impl Step {
    /// `None` beyond the range of values.
    fn after(self, value: i64, zone: Tz) -> Option<i64> {
        match self {
            Step::Number(n) => value.checked_add(n),
            Step::Interval(step) => TimestampMicrosecondType::add_month_day_nano(value, step, zone)
                .filter(|us| timestamp_in_range(*us)),
        }
    }

    /// Its length, if months have 30 days.
    fn length(self) -> i128 {
        match self {
            Step::Number(n) => n.into(),
            Step::Interval(step) => {
                let days = 30 * i128::from(step.months) + i128::from(step.days);
                days * i128::from(US_PER_DAY) + i128::from(step.nanoseconds / 1_000)
            }
        }
    }
}

/// The rows from `next` on: integers, or microseconds since 1970.
#[derive(Clone, Debug)]
pub struct Rows {
    pub name: &'static str,
    pub ty: ColumnType,
    /// `None`: no more.
    pub next: Option<i64>,
    pub stop: i64,
    pub step: Step,
    pub is_up: bool,
    pub with_stop: bool,
}

impl Rows {
    /// No rows.
    pub fn none(name: &'static str, ty: ColumnType) -> Rows {
        Rows { name, ty, next: None, stop: 0, step: Step::Number(1), is_up: true, with_stop: true }
    }

    pub fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(vec![field("value", self.ty, false)]))
    }

    /// The next row, if it is not beyond the last one.
    fn next(&self) -> Option<i64> {
        self.next.filter(|next| {
            let is_before = if self.is_up { *next < self.stop } else { *next > self.stop };
            is_before || *next == self.stop && self.with_stop
        })
    }

    /// The number of rows; about, of months.
    fn count(&self) -> usize {
        let Some(next) = self.next() else { return 0 };
        let steps = (i128::from(self.stop) - i128::from(next)).checked_div(self.step.length());
        steps.and_then(|steps| usize::try_from(steps + 1).ok()).unwrap_or(usize::MAX)
    }

    /// The next values, none after the last one. As in PostgreSQL, each is a step from the one before: from January
    /// 31, months lead to February 29 and March 29.
    pub fn batch(&mut self, zone: Tz) -> Vec<i64> {
        let mut values = Vec::new();
        while let Some(next) = self.next().filter(|_| values.len() < BATCH_ROWS) {
            values.push(next);
            self.next = self.step.after(next, zone);
        }
        values
    }

    /// A value of [`batch`](Rows::batch).
    pub fn value(&self, value: i64) -> ValueRef<'static> {
        match self.ty {
            ColumnType::Timestamp => ValueRef::Timestamp(value),
            ColumnType::TimestampTz => ValueRef::TimestampTz(value),
            _ => ValueRef::Int(value),
        }
    }
}

/// Gives the rows of a series.
#[derive(Debug)]
pub struct SeriesExec {
    rows: Rows,
    properties: Arc<PlanProperties>,
}

impl SeriesExec {
    /// `with_values`: they are wanted, not only their number.
    pub fn new(rows: Rows, with_values: bool) -> SeriesExec {
        let schema = if with_values { rows.schema() } else { Arc::new(Schema::empty()) };
        let order = with_values.then(|| {
            let options = arrow::compute::SortOptions { descending: !rows.is_up, nulls_first: rows.is_up };
            [PhysicalSortExpr::new(Arc::new(Column::new("value", 0)), options)]
        });
        SeriesExec { rows, properties: one_part(EquivalenceProperties::new_with_orderings(schema, order)) }
    }
}

impl DisplayAs for SeriesExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rows { name, next, stop, .. } = &self.rows;
        match next {
            Some(start) => {
                write!(f, "SeriesExec: {name} {} .. {}", self.rows.value(*start), self.rows.value(*stop))
            }
            None => write!(f, "SeriesExec: {name}, empty"),
        }
    }
}

impl ExecutionPlan for SeriesExec {
    operator!(SeriesExec(), this => this);

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let zone: Tz = "+00:00".parse().map_err(DataFusionError::from)?;
        let (schema, mut rows) = (self.schema(), self.rows.clone());
        let batch = move || {
            let values = rows.batch(zone);
            if values.is_empty() {
                return None;
            }
            let options = RecordBatchOptions::new().with_row_count(Some(values.len()));
            let columns: Vec<ArrayRef> = schema
                .fields()
                .iter()
                .map(|field| -> ArrayRef {
                    match rows.ty {
                        ColumnType::BigInt => Arc::new(Int64Array::from(values.clone())),
                        _ => Arc::new(
                            TimestampMicrosecondArray::from(values.clone())
                                .with_data_type(field.data_type().clone()),
                        ),
                    }
                })
                .collect();
            Some(
                RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options)
                    .map_err(DataFusionError::from),
            )
        };
        let batches = futures::stream::iter(std::iter::from_fn(batch));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }

    fn partition_statistics(&self, _: Option<usize>) -> DfResult<Arc<Statistics>> {
        let num_rows = Precision::Inexact(self.rows.count());
        Ok(Arc::new(Statistics { num_rows, ..Statistics::new_unknown(&self.schema()) }))
    }
}
