//! `age(later, earlier)`: the interval between two times in years, months, days and the rest, as PostgreSQL counts it.

use std::sync::Arc;

use arrow::array::{AsArray, IntervalMonthDayNanoArray};
use arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalUnit, TimeUnit, TimestampMicrosecondType};
use datafusion::common::exec_err;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use crate::value::months_between;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Age(Signature);

impl Default for Age {
    fn default() -> Self {
        Age(Signature::user_defined(Volatility::Immutable))
    }
}

impl ScalarUDFImpl for Age {
    fn name(&self) -> &str {
        "age"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn coerce_types(&self, types: &[DataType]) -> DfResult<Vec<DataType>> {
        let time = |ty: &DataType| match ty {
            DataType::Timestamp(..) | DataType::Date32 | DataType::Utf8 | DataType::Null => {
                Ok(DataType::Timestamp(TimeUnit::Microsecond, None))
            }
            other => exec_err!("age takes times, not {other}"),
        };
        match types {
            [later, earlier] => Ok(vec![time(later)?, time(earlier)?]),
            _ => exec_err!("write age(later, earlier)"),
        }
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Interval(IntervalUnit::MonthDayNano))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let times = ColumnarValue::values_to_arrays(&args.args)?;
        let [later, earlier] = &times[..] else { return exec_err!("age takes two times") };
        let both = later
            .as_primitive::<TimestampMicrosecondType>()
            .iter()
            .zip(earlier.as_primitive::<TimestampMicrosecondType>());
        let ages = both.map(|(later, earlier)| {
            let (months, days, us) = months_between(later?, earlier?)?;
            Some(IntervalMonthDayNano::new(months, days, us * 1_000))
        });
        Ok(ColumnarValue::Array(Arc::new(ages.collect::<IntervalMonthDayNanoArray>())))
    }
}
