//! Aggregates over a moving frame, without subtraction.
//!
//! DataFusion takes what leaves the frame away from what it has added up. Of doubles that leaves an error behind: once
//! 1e17 was there the rest is 0, NaN never goes away, and the variance of equal numbers is a little below 0. [`Moving`]
//! keeps its frame as a queue of two stacks: each value of the front one is the total of all from there on, so that dropping one is to pop it;
//! the values behind are added up as they come, and become the front when that is used up.

use std::fmt::Debug;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::Accumulator;

use crate::df::errors::to_df;
use crate::error::Error;

/// The total of some rows.
pub trait Total: Copy + Debug + Default + Send + Sync + 'static {
    /// The total of one row: its first value, and its second one, or 0.
    fn of(row: [f64; 2]) -> Self;

    /// The total of these and some more rows.
    fn and(self, more: Self) -> Self;
}

/// What an aggregate makes of a frame's total and its rows (count).
type Value<T> = fn(&T, usize) -> Option<f64>;

/// An aggregate over a frame.
#[derive(Debug)]
pub struct Moving<T> {
    /// Totals of the oldest rows, each with all younger ones of these; the oldest is last.
    front: Vec<T>,
    /// The other rows, oldest first, and their total.
    back: Vec<T>,
    back_total: T,
    value: Value<T>,
}

impl<T: Total> Moving<T> {
    pub fn of(value: Value<T>) -> Box<dyn Accumulator> {
        Box::new(Moving { front: Vec::new(), back: Vec::new(), back_total: T::default(), value })
    }
}

/// The rows without a NULL.
fn known(values: &[ArrayRef]) -> impl Iterator<Item = usize> {
    let rows = 0..values.first().map_or(0, |values| values.len());
    rows.filter(|row| values.iter().all(|values| values.is_valid(*row)))
}

impl<T: Total> Accumulator for Moving<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        let columns = values.iter().map(|values| cast(values, &DataType::Float64));
        let columns: Vec<ArrayRef> = columns.collect::<Result<_, _>>()?;
        for row in known(&columns) {
            let at = |column: &ArrayRef| column.as_primitive::<Float64Type>().value(row);
            let row = T::of([at(&columns[0]), columns.get(1).map_or(0.0, at)]);
            self.back.push(row);
            self.back_total = self.back_total.and(row);
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        for _ in known(values) {
            if self.front.is_empty() {
                let mut total = T::default();
                let totals = self.back.drain(..).rev().map(|row| {
                    total = row.and(total);
                    total
                });
                self.front.extend(totals);
                self.back_total = T::default();
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
        let total = self.front.last().copied().unwrap_or_default().and(self.back_total);
        Ok(ScalarValue::Float64((self.value)(&total, count).filter(|_| count > 0)))
    }

    fn state(&mut self) -> DfResult<Vec<ScalarValue>> {
        Err(to_df(Error::internal("a moving aggregate is not merged")))
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> DfResult<()> {
        Err(to_df(Error::internal("a moving aggregate is not merged")))
    }

    fn size(&self) -> usize {
        size_of_val(self) + (self.front.capacity() + self.back.capacity()) * size_of::<T>()
    }
}

/// A sum.
impl Total for f64 {
    fn of([value, _]: [f64; 2]) -> f64 {
        value
    }

    fn and(self, more: f64) -> f64 {
        self + more
    }
}
