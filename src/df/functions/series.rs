//! `generate_series(start, stop, step)` and `range`, which leaves out `stop`: integers, or times with an INTERVAL.
//!
//! Arguments are computed before the table is planned ([`constants`]). DataFusion's own has no expected number of rows,
//! so that joins would read the other side; its times end in the year 2262, and are nanoseconds, which no column has.

mod rows;

use std::sync::Arc;

use arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalUnit, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result as DfResult;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableType, Volatility};
use datafusion::physical_plan::ExecutionPlan;

pub use self::rows::SeriesExec;
use self::rows::{Rows, Step};
use crate::df::errors::to_df;
use crate::df::expr::scalar_of;
use crate::df::expr::value_of;
use crate::error::{Error, Result, sqlstate};
use crate::value::{ColumnType, Value};

/// Registers both functions in a session.
pub fn register(state: &mut SessionState) {
    for series in ALL {
        state.register_udtf(series.name, Arc::new(series));
    }
}

/// The value of an argument of a table function never changes, but for its parameters.
pub fn is_fixed(arg: &Expr) -> bool {
    let changes = arg.exists(|expr| {
        let Expr::ScalarFunction(call) = expr else { return Ok(false) };
        Ok(call.func.signature().volatility != Volatility::Immutable)
    });
    !changes.unwrap_or(true)
}

/// Computes the arguments of a table function, with the values of `$1`, `$2`, ... and of `now()`, in microseconds since
/// 1970. An argument that cannot be computed stays as it is.
///
/// Errors: an argument that fails.
pub fn constants(
    args: Vec<Expr>,
    state: &SessionState,
    params: &[Value],
    now_us: i64,
) -> DfResult<Vec<Expr>> {
    if args.iter().all(|arg| matches!(arg, Expr::Literal(..))) {
        return Ok(args);
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
        .why("what is drawn is drawn when the query runs, and its rows are planned before")
        .hint(format!(
            "generate more than enough and keep some: FROM {name}(1, 1000) AS s(n) WHERE s.n <= .."
        ))
        .state(sqlstate::INVALID_PARAMETER)
}

/// One of the two functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Series {
    name: &'static str,
    with_stop: bool,
}

/// Both of them.
const ALL: [Series; 2] =
    [Series { name: "generate_series", with_stop: true }, Series { name: "range", with_stop: false }];

impl TableFunctionImpl for Series {
    fn call_with_args(&self, args: TableFunctionArgs) -> DfResult<Arc<dyn TableProvider>> {
        let values: Option<Vec<&ScalarValue>> = args.exprs().iter().map(Expr::as_literal).collect();
        let values = values.ok_or_else(|| to_df(unknown(self.name)))?;
        Ok(Arc::new(SeriesTable(self.rows(&values).map_err(to_df)?)))
    }
}

#[derive(Debug)]
struct SeriesTable(Rows);

#[async_trait]
impl TableProvider for SeriesTable {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(SeriesExec::new(self.0.clone(), projection.is_none_or(|columns| !columns.is_empty()))))
    }
}

fn is_time(ty: &DataType) -> bool {
    matches!(ty, DataType::Timestamp(..) | DataType::Date32 | DataType::Interval(_))
}

impl Series {
    /// The function of this name.
    pub fn called(name: &str) -> Option<Series> {
        ALL.into_iter().find(|series| series.name == name)
    }

    /// The type of the rows that such arguments give.
    pub fn type_of(args: &[DataType]) -> ColumnType {
        let has_zone = |arg: &DataType| matches!(arg, DataType::Timestamp(_, Some(_)));
        match args {
            [start, stop, ..] if has_zone(start) || has_zone(stop) => ColumnType::TimestampTz,
            args if args.iter().any(is_time) => ColumnType::Timestamp,
            _ => ColumnType::BigInt,
        }
    }

    /// The rows of a call. Errors: arguments that give none.
    pub fn rows(self, values: &[&ScalarValue]) -> Result<Rows> {
        let types: Vec<DataType> = values.iter().map(|value| value.data_type()).collect();
        match Series::type_of(&types) {
            ColumnType::BigInt => self.integers(values),
            ty => self.times(values, ty),
        }
    }

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

    fn integers(&self, values: &[&ScalarValue]) -> Result<Rows> {
        let integer = |value: &&ScalarValue| match value_of(value)? {
            Value::Null => Ok(None),
            Value::Int(n) => Ok(Some(n)),
            _ => Err(self.usage()),
        };
        let integers = values.iter().map(integer).collect::<Result<Vec<_>>>()?;
        let (start, stop, step) = match integers[..] {
            [stop] => (Some(0), stop, Some(1)),
            [start, stop] => (start, stop, Some(1)),
            [start, stop, step] => (start, stop, step),
            _ => return Err(self.usage()),
        };
        let (Some(start), Some(stop), Some(step)) = (start, stop, step) else {
            return Ok(Rows::none(self.name, ColumnType::BigInt));
        };
        if step == 0 {
            return Err(self.no_step());
        }
        let with_stop = self.with_stop;
        Ok(Rows {
            name: self.name,
            ty: ColumnType::BigInt,
            next: Some(start),
            stop,
            step: Step::Number(step),
            is_up: step > 0,
            with_stop,
        })
    }

    fn times(&self, values: &[&ScalarValue], ty: ColumnType) -> Result<Rows> {
        let [start, stop, step] = values else { return Err(self.usage()) };
        let (start, stop) = (self.time(start, ty)?, self.time(stop, ty)?);
        let (Some(start), Some(stop), Some(step)) = (start, stop, self.step(step)?) else {
            return Ok(Rows::none(self.name, ty));
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
        let with_stop = self.with_stop;
        Ok(Rows {
            name: self.name,
            ty,
            next: Some(start),
            stop,
            step: Step::Interval(step),
            is_up,
            with_stop,
        })
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
