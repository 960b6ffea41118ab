//! `generate_series(start, stop, step)` and `range`, which leaves out `stop`: integers, or times with an INTERVAL.
//!
//! Arguments are computed before the table is planned ([`constants`]). Integers are DataFusion's; its times end in the
//! year 2262, and are nanoseconds, which no column has.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::{
    DataType, IntervalMonthDayNano, IntervalUnit, Schema, SchemaRef, TimestampMicrosecondType,
};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::execution::context::SessionState;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Volatility, col};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;

use crate::df::errors::to_df;
use crate::df::expr::value_of;
use crate::df::query::scalar_of;
use crate::error::{Error, Result, sqlstate};
use crate::row::field;
use crate::value::{ColumnType, Value, timestamp_in_range};

/// Rows (count) of a batch.
const BATCH_ROWS: usize = 8_192;

/// Registers both functions in a session, around those that it has.
pub fn register(state: &mut SessionState) {
    for (name, with_stop) in [("generate_series", true), ("range", false)] {
        if let Some(of_integers) = state.table_functions().get(name).map(|f| Arc::clone(f.function())) {
            state.register_udtf(name, Arc::new(Series { name, with_stop, of_integers }));
        }
    }
}

/// The value of an argument of a table function never changes, so that a plan with it may be kept.
pub fn is_fixed(arg: &Expr) -> bool {
    let changes = arg.exists(|expr| {
        Ok(match expr {
            Expr::Placeholder(_) => true,
            Expr::ScalarFunction(call) => call.func.signature().volatility != Volatility::Immutable,
            _ => false,
        })
    });
    !changes.unwrap_or(true)
}

/// Computes the arguments of a table function, with the values of `$1`, `$2`, ... and of `now()`, in microseconds since
/// 1970. An argument that cannot be computed stays as it is.
///
/// Errors: an argument that reads columns, or one that fails.
pub fn constants(
    name: &str,
    args: Vec<Expr>,
    state: &SessionState,
    params: &[Value],
    now_us: i64,
) -> DfResult<Vec<Expr>> {
    if args.iter().all(|arg| matches!(arg, Expr::Literal(..))) {
        return Ok(args);
    }
    let reads = |expr: &Expr| {
        Ok(matches!(
            expr,
            Expr::Column(_) | Expr::OuterReferenceColumn(..) | Expr::ScalarSubquery(_) | Expr::Exists(_)
        ))
    };
    for arg in &args {
        if arg.exists(reads)? {
            return Err(to_df(unknown(name)));
        }
    }
    let mut state = state.clone();
    let now = arrow::temporal_conversions::timestamp_us_to_datetime(now_us);
    state.execution_props_mut().query_execution_start_time = now.map(|now| now.and_utc());
    let named = args.iter().enumerate().map(|(at, arg)| arg.clone().alias(format!("arg{at}")));
    let row = LogicalPlanBuilder::empty(true).project(named)?.build()?;
    let values: Result<Vec<ScalarValue>> = params.iter().map(scalar_of).collect();
    let row = row.with_param_values(values.map_err(to_df)?)?;
    match state.optimize(&row)? {
        LogicalPlan::Projection(row) => Ok(row.expr.into_iter().map(Expr::unalias).collect()),
        _ => Ok(args),
    }
}

fn unknown(name: &str) -> Error {
    Error::invalid(format!("{name} takes values that are known before anything is read"))
        .why("columns and subqueries are read when the query runs, and its rows are planned before")
        .hint(format!("generate more than enough and keep some: JOIN {name}(1, 1000) AS s(n) ON s.n <= t.n"))
        .state(sqlstate::INVALID_PARAMETER)
}

#[derive(Debug)]
struct Series {
    name: &'static str,
    with_stop: bool,
    of_integers: Arc<dyn TableFunctionImpl>,
}

impl TableFunctionImpl for Series {
    fn call_with_args(&self, args: TableFunctionArgs) -> DfResult<Arc<dyn TableProvider>> {
        let values: Option<Vec<&ScalarValue>> = args.exprs().iter().map(Expr::as_literal).collect();
        let values = values.ok_or_else(|| to_df(unknown(self.name)))?;
        if !values.iter().any(|value| is_time(&value.data_type())) {
            let integers = self.integers(&values).map_err(to_df)?;
            return self.of_integers.call_with_args(TableFunctionArgs::new(&integers, args.session()));
        }
        let table = self.times(&values).map_err(to_df)?;
        let (schema, is_up) = (Arc::clone(&table.schema), table.is_up);
        let order = col("value").sort(is_up, is_up);
        Ok(Arc::new(StreamingTable::try_new(schema, vec![Arc::new(table)])?.with_sort_order(vec![order])))
    }
}

fn is_time(ty: &DataType) -> bool {
    matches!(ty, DataType::Timestamp(..) | DataType::Date32 | DataType::Interval(_))
}

impl Series {
    fn usage(&self) -> Error {
        let name = self.name;
        Error::invalid(format!("{name} takes a start, a stop and a step"))
            .why("they are integers, or times with an INTERVAL as the step")
            .hint(format!("{name}(1, 10), {name}(DATE '2024-01-01', DATE '2024-02-01', INTERVAL '1 day')"))
            .state(sqlstate::INVALID_PARAMETER)
    }

    fn no_step(&self) -> Error {
        Error::invalid(format!("{} would never end", self.name))
            .why("its step is zero")
            .hint("give it one above or below zero")
            .state(sqlstate::INVALID_PARAMETER)
    }

    /// The arguments as BIGINTs.
    fn integers(&self, values: &[&ScalarValue]) -> Result<Vec<Expr>> {
        if !(1..=3).contains(&values.len()) {
            return Err(self.usage());
        }
        let mut integers = Vec::with_capacity(values.len());
        for value in values {
            integers.push(match value_of(value)? {
                Value::Null => ScalarValue::Null,
                Value::Int(n) => ScalarValue::Int64(Some(n)),
                _ => return Err(self.usage()),
            });
        }
        if integers.get(2) == Some(&ScalarValue::Int64(Some(0))) {
            return Err(self.no_step());
        }
        Ok(integers.into_iter().map(|value| Expr::Literal(value, None)).collect())
    }

    fn times(&self, values: &[&ScalarValue]) -> Result<Times> {
        let [start, stop, step] = values else { return Err(self.usage()) };
        let is_zoned = |value: &ScalarValue| matches!(value.data_type(), DataType::Timestamp(_, Some(_)));
        let ty = match is_zoned(start) || is_zoned(stop) {
            true => ColumnType::TimestampTz,
            false => ColumnType::Timestamp,
        };
        let schema: SchemaRef = Arc::new(Schema::new(vec![field("value", ty, false)]));
        let (start, stop) = (self.time(start, ty)?, self.time(stop, ty)?);
        let (Some(next), Some(stop), Some(step)) = (start, stop, self.step(step)?) else {
            let step = IntervalMonthDayNano::new(0, 1, 0);
            return Ok(Times { schema, next: 1, stop: 0, step, is_up: true, with_stop: true });
        };
        let (months, days, nanos) = (step.months, step.days, step.nanoseconds);
        let is_up = months >= 0 && days >= 0 && nanos >= 0;
        if (months, days, nanos / 1_000) == (0, 0, 0) {
            return Err(self.no_step());
        }
        if !is_up && (months > 0 || days > 0 || nanos > 0) {
            return Err(Error::invalid(format!("the step of {} goes both up and down", self.name))
                .hint("write INTERVAL '1 month', or '-1 month'")
                .state(sqlstate::INVALID_PARAMETER));
        }
        Ok(Times { schema, next, stop, step, is_up, with_stop: self.with_stop })
    }

    /// Microseconds since 1970; `None` for NULL.
    fn time(&self, value: &ScalarValue, ty: ColumnType) -> Result<Option<i64>> {
        let value = value_of(value)?;
        let is_time = matches!(
            value,
            Value::Null | Value::Date(_) | Value::Timestamp(_) | Value::TimestampTz(_) | Value::Text(_)
        );
        if !is_time {
            return Err(self.usage());
        }
        match value.cast(ty)? {
            Value::Timestamp(us) | Value::TimestampTz(us) => Ok(Some(us)),
            _ => Ok(None),
        }
    }

    /// The step, which may be a text; `None` for NULL.
    fn step(&self, value: &ScalarValue) -> Result<Option<IntervalMonthDayNano>> {
        let is_one = matches!(value.data_type(), DataType::Interval(_) | DataType::Utf8 | DataType::Null);
        if !is_one {
            return Err(self.usage());
        }
        let to = DataType::Interval(IntervalUnit::MonthDayNano);
        match value.cast_to(&to).map_err(crate::df::errors::df_error)? {
            ScalarValue::IntervalMonthDayNano(step) => Ok(step),
            _ => Err(self.usage()),
        }
    }
}

/// Times from `next` on, in microseconds since 1970.
#[derive(Clone, Debug)]
struct Times {
    schema: SchemaRef,
    next: i64,
    stop: i64,
    step: IntervalMonthDayNano,
    is_up: bool,
    with_stop: bool,
}

impl Times {
    fn is_over(&self) -> bool {
        let is_beyond = if self.is_up { self.next > self.stop } else { self.next < self.stop };
        is_beyond || self.next == self.stop && !self.with_stop
    }

    /// The next batch; `None` after the last one. As in PostgreSQL, each time is a step from the one before: from
    /// January 31, months lead to February 29 and March 29.
    fn batch(&mut self, zone: Tz) -> Result<Option<RecordBatch>> {
        let mut times = Vec::new();
        while times.len() < BATCH_ROWS && !self.is_over() {
            times.push(self.next);
            let next = TimestampMicrosecondType::add_month_day_nano(self.next, self.step, zone);
            // The last step may lead out of the calendar.
            let beyond = if self.is_up { i64::MAX } else { i64::MIN };
            self.next = next.filter(|us| timestamp_in_range(*us)).unwrap_or(beyond);
        }
        if times.is_empty() {
            return Ok(None);
        }
        let ty = self.schema.field(0).data_type().clone();
        let times = TimestampMicrosecondArray::from(times).with_data_type(ty);
        Ok(Some(RecordBatch::try_new(Arc::clone(&self.schema), vec![Arc::new(times)])?))
    }
}

impl PartitionStream for Times {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut left = self.clone();
        let batches = "+00:00"
            .parse()
            .map_err(DataFusionError::from)
            .map(|zone: Tz| std::iter::from_fn(move || left.batch(zone).map_err(to_df).transpose()));
        let batches: Box<dyn Iterator<Item = DfResult<RecordBatch>> + Send> = match batches {
            Ok(batches) => Box::new(batches),
            Err(error) => Box::new(std::iter::once(Err(error))),
        };
        let batches = futures::stream::iter(batches);
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }
}
