//! Sums of intervals: months, days and the rest are added up by themselves, in more bits than an interval has.

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Decimal128Type, Field, FieldRef, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
};
use arrow::error::ArrowError;
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::Accumulator;

/// The sum so far.
#[derive(Debug, Default)]
pub struct IntervalSum {
    months: i64,
    days: i64,
    nanoseconds: i128,
    /// Number of intervals in it; no sum without one.
    count: i64,
}

impl IntervalSum {
    /// The fields of its state.
    pub fn state_fields(name: &str) -> Vec<FieldRef> {
        let field = |part: &str, ty| Field::new(format!("{name}[{part}]"), ty, true).into();
        vec![
            field("months", DataType::Int64),
            field("days", DataType::Int64),
            field("nanoseconds", DataType::Decimal128(38, 0)),
            field("count", DataType::Int64),
        ]
    }

    fn add(&mut self, values: &ArrayRef, sign: i64) {
        for value in values.as_primitive::<IntervalMonthDayNanoType>().iter().flatten() {
            self.months += sign * i64::from(value.months);
            self.days += sign * i64::from(value.days);
            self.nanoseconds += i128::from(sign) * i128::from(value.nanoseconds);
            self.count += sign;
        }
    }
}

impl Accumulator for IntervalSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        self.add(&values[0], 1);
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        self.add(&values[0], -1);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> DfResult<ScalarValue> {
        let too_long = || ArrowError::ArithmeticOverflow("the sum is out of range for INTERVAL".to_owned());
        let narrow = |part: i64| i32::try_from(part).map_err(|_| too_long());
        let sum = match self.count {
            0 => None,
            _ => Some(IntervalMonthDayNano {
                months: narrow(self.months)?,
                days: narrow(self.days)?,
                nanoseconds: i64::try_from(self.nanoseconds).map_err(|_| too_long())?,
            }),
        };
        Ok(ScalarValue::IntervalMonthDayNano(sum))
    }

    fn state(&mut self) -> DfResult<Vec<ScalarValue>> {
        Ok(vec![
            ScalarValue::Int64(Some(self.months)),
            ScalarValue::Int64(Some(self.days)),
            ScalarValue::Decimal128(Some(self.nanoseconds), 38, 0),
            ScalarValue::Int64(Some(self.count)),
        ])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> DfResult<()> {
        let [months, days, count] = [0, 1, 3].map(|at| states[at].as_primitive::<Int64Type>());
        let nanoseconds = states[2].as_primitive::<Decimal128Type>();
        for state in 0..months.len() {
            self.months += months.value(state);
            self.days += days.value(state);
            self.nanoseconds += nanoseconds.value(state);
            self.count += count.value(state);
        }
        Ok(())
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}
