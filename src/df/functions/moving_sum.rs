//! Sums and means of DOUBLEs over a moving frame, without subtraction.
//!
//! DataFusion takes what leaves the frame away from the sum. Of doubles that leaves an error behind: 1e17 + 1 - 1e17 is
//! 0, and NaN never goes away. [`MovingSum`] keeps the values of its frame as a queue of two stacks: each value of the
//! front one is the sum of all from there on, so that dropping one is to pop it; the values behind are added up as they
//! come, and become the front when that is used up.

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::function::AccumulatorArgs;

use crate::df::errors::to_df;
use crate::error::Error;

/// The sum of a frame, or its mean.
#[derive(Debug, Default)]
pub struct MovingSum {
    /// Sums of the oldest values, each with all younger ones of these; the oldest is last.
    front: Vec<f64>,
    /// The other values, oldest first, and their sum.
    back: Vec<f64>,
    back_sum: f64,
    is_mean: bool,
}

impl MovingSum {
    /// For frames of all their values; `None` for other types.
    pub fn of(args: &AccumulatorArgs<'_>, is_mean: bool) -> Option<Box<dyn Accumulator>> {
        let is_plain = *args.return_type() == DataType::Float64 && !args.is_distinct;
        is_plain.then(|| Box::new(MovingSum { is_mean, ..MovingSum::default() }) as Box<dyn Accumulator>)
    }
}

impl Accumulator for MovingSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        let values = cast(&values[0], &DataType::Float64)?;
        for value in values.as_primitive::<Float64Type>().iter().flatten() {
            self.back.push(value);
            self.back_sum += value;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        for _ in 0..values[0].len() - values[0].null_count() {
            if self.front.is_empty() {
                let mut sum = 0.0;
                let sums = self.back.drain(..).rev().map(|value| {
                    sum += value;
                    sum
                });
                self.front.extend(sums);
                self.back_sum = 0.0;
            }
            self.front.pop();
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> DfResult<ScalarValue> {
        let count = self.front.len() + self.back.len();
        let sum = self.front.last().copied().unwrap_or_default() + self.back_sum;
        let value = if self.is_mean { sum / count as f64 } else { sum };
        Ok(ScalarValue::Float64((count > 0).then_some(value)))
    }

    fn state(&mut self) -> DfResult<Vec<ScalarValue>> {
        Err(to_df(Error::internal("a moving sum is not merged")))
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> DfResult<()> {
        Err(to_df(Error::internal("a moving sum is not merged")))
    }

    fn size(&self) -> usize {
        size_of_val(self) + (self.front.capacity() + self.back.capacity()) * size_of::<f64>()
    }
}
