//! `date_trunc('month', ts)` for any time that a column can hold.
//!
//! DataFusion's own computes dates, and units from weeks up, in nanoseconds, which end in the year 2262.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, AsArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit, TimestampMicrosecondType};
use datafusion::common::exec_err;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use crate::df::errors::to_df;
use crate::error::{Error, Result, sqlstate};
use crate::value::{ValueRef, unit_around};

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct DateTrunc(Signature);

impl Default for DateTrunc {
    fn default() -> Self {
        DateTrunc(Signature::user_defined(Volatility::Immutable))
    }
}

impl ScalarUDFImpl for DateTrunc {
    fn name(&self) -> &str {
        "date_trunc"
    }

    fn aliases(&self) -> &[String] {
        static ALIASES: LazyLock<[String; 1]> = LazyLock::new(|| ["datetrunc".to_owned()]);
        &*ALIASES
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn coerce_types(&self, types: &[DataType]) -> DfResult<Vec<DataType>> {
        let [_, time] = types else { return exec_err!("write date_trunc('day', time)") };
        let time = match time {
            DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
            DataType::Date32 | DataType::Date64 | DataType::Utf8 | DataType::Null => {
                DataType::Timestamp(TimeUnit::Microsecond, None)
            }
            other => return exec_err!("date_trunc takes a unit and a time, not {other}"),
        };
        Ok(vec![DataType::Utf8, time])
    }

    fn return_type(&self, types: &[DataType]) -> DfResult<DataType> {
        Ok(types[1].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), args.arg_fields[1].data_type().clone(), nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let [unit, time] = &args.args[..] else { return exec_err!("date_trunc takes a unit and a time") };
        let times = time.to_array(args.number_rows)?;
        let times = times.as_primitive::<TimestampMicrosecondType>();
        let truncated: Result<TimestampMicrosecondArray> = match unit {
            ColumnarValue::Scalar(unit) => match unit.try_as_str().flatten().map(str::to_lowercase) {
                Some(unit) => times.iter().map(|us| us.map(|us| truncated(&unit, us)).transpose()).collect(),
                None => Ok(TimestampMicrosecondArray::new_null(times.len())),
            },
            ColumnarValue::Array(units) => {
                let both = units.as_string::<i32>().iter().zip(times);
                let row = |(unit, us): (Option<&str>, Option<i64>)| match (unit, us) {
                    (Some(unit), Some(us)) => truncated(&unit.to_lowercase(), us).map(Some),
                    _ => Ok(None),
                };
                both.map(row).collect()
            }
        };
        let truncated = truncated.map_err(to_df)?.with_data_type(times.data_type().clone());
        Ok(ColumnarValue::Array(Arc::new(truncated)))
    }

    fn output_ordering(&self, args: &[ExprProperties]) -> DfResult<SortProperties> {
        Ok(match args {
            [unit, time] if unit.sort_properties == SortProperties::Singleton => time.sort_properties,
            _ => SortProperties::Unordered,
        })
    }
}

fn truncated(unit: &str, us: i64) -> Result<i64> {
    if let Some((start, _)) = unit_around(unit, us) {
        return Ok(start);
    }
    Err(match unit_around(unit, 0) {
        Some(_) => Error::invalid(format!("{} is out of range for date_trunc", ValueRef::Timestamp(us)))
            .state(sqlstate::OUT_OF_RANGE),
        None => Error::invalid(format!("date_trunc does not know the unit '{unit}'")).hint(
            "the units are microsecond, millisecond, second, minute, hour, day, week, month, quarter and year",
        ),
    })
}
