//! `date_bin(stride, time [, origin])` for any time that a column can hold.
//!
//! DataFusion's own counts nanoseconds, which end in the year 2262, and gives NULL beyond.

use std::sync::Arc;

use arrow::array::{Array, AsArray, TimestampMicrosecondArray};
use arrow::datatypes::{
    DataType, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::common::exec_err;
use datafusion::error::Result as DfResult;
use datafusion::functions::datetime::date_bin::DateBinFunc;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use crate::df::errors::to_df;
use crate::error::{Error, Result, sqlstate};
use crate::value::{US_PER_DAY, ValueRef, start_of_months, timestamp_in_range};

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct DateBin {
    signature: Signature,
    /// DataFusion's, for a TIME of day.
    of_day: DateBinFunc,
}

impl Default for DateBin {
    fn default() -> Self {
        let signature = Signature::user_defined(Volatility::Immutable);
        DateBin { signature, of_day: DateBinFunc::default() }
    }
}

impl ScalarUDFImpl for DateBin {
    fn name(&self) -> &str {
        "date_bin"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> DfResult<Vec<DataType>> {
        let ([stride, time] | [stride, time, _]) = types else {
            return exec_err!("write date_bin(INTERVAL '1 hour', time)");
        };
        let stride = match stride {
            DataType::Interval(_) | DataType::Duration(_) | DataType::Utf8 | DataType::Null => {
                DataType::Interval(IntervalUnit::MonthDayNano)
            }
            other => return exec_err!("date_bin takes an interval and a time, not {other}"),
        };
        let time = match time {
            DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
            DataType::Date32 | DataType::Date64 | DataType::Utf8 | DataType::Null => {
                DataType::Timestamp(TimeUnit::Microsecond, None)
            }
            DataType::Time32(_) | DataType::Time64(_) => DataType::Time64(TimeUnit::Nanosecond),
            other => return exec_err!("date_bin takes an interval and a time, not {other}"),
        };
        let mut all = vec![time; types.len()];
        all[0] = stride;
        Ok(all)
    }

    fn return_type(&self, types: &[DataType]) -> DfResult<DataType> {
        Ok(types[1].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        if args.args.iter().any(|arg| matches!(arg.data_type(), DataType::Time64(_))) {
            return self.of_day.invoke_with_args(args);
        }
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [strides, times, origins @ ..] = &arrays[..] else {
            return exec_err!("date_bin takes an interval and a time");
        };
        let strides = strides.as_primitive::<IntervalMonthDayNanoType>();
        let origins = origins.first().map(|origins| origins.as_primitive::<TimestampMicrosecondType>());
        let zoned = times.data_type().clone();
        let times = times.as_primitive::<TimestampMicrosecondType>();
        let bin = |row: usize| {
            let is_null = strides.is_null(row)
                || times.is_null(row)
                || origins.is_some_and(|origins| origins.is_null(row));
            if is_null {
                return Ok(None);
            }
            let origin = origins.map_or(0, |origins| origins.value(row));
            start_of_bin(strides.value(row), times.value(row), origin).map(Some)
        };
        let bins: Result<TimestampMicrosecondArray> = (0..times.len()).map(bin).collect();
        Ok(ColumnarValue::Array(Arc::new(bins.map_err(to_df)?.with_data_type(zoned))))
    }

    fn output_ordering(&self, args: &[ExprProperties]) -> DfResult<SortProperties> {
        let is_fixed = |arg: &ExprProperties| arg.sort_properties == SortProperties::Singleton;
        Ok(match args {
            [stride, time, origin @ ..] if is_fixed(stride) && origin.iter().all(is_fixed) => {
                time.sort_properties
            }
            _ => SortProperties::Unordered,
        })
    }
}

/// The start of the bin that `us` is in; one bin starts at `origin`. Both in microseconds.
fn start_of_bin(stride: IntervalMonthDayNano, us: i64, origin: i64) -> Result<i64> {
    let IntervalMonthDayNano { months, days, nanoseconds } = stride;
    let nanos = i128::from(days) * i128::from(US_PER_DAY) * 1000 + i128::from(nanoseconds);
    let start = match (months, nanos) {
        (0, 1..) => {
            let since = (i128::from(us) - i128::from(origin)) * 1000;
            let start = i128::from(origin) + (since.div_euclid(nanos) * nanos).div_euclid(1000);
            i64::try_from(start).ok()
        }
        (1.., 0) => start_of_months(months, us, origin),
        (1.., 1..) => {
            return Err(Error::invalid("the stride of date_bin has months, and days or a time, too")
                .why("months differ in length")
                .hint("write INTERVAL '1 month', or INTERVAL '30 days'"));
        }
        _ => {
            return Err(Error::invalid("the stride of date_bin is not positive")
                .hint("write date_bin(INTERVAL '15 minutes', time)")
                .state(sqlstate::OUT_OF_RANGE));
        }
    };
    start.filter(|start| timestamp_in_range(*start)).ok_or_else(|| {
        Error::invalid(format!("the bin of {} is out of range for a TIMESTAMP", ValueRef::Timestamp(us)))
            .why("it starts before the year 1")
            .hint("write a shorter stride, or a later origin")
            .state(sqlstate::OUT_OF_RANGE)
    })
}
