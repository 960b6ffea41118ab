//! Cells for people: Arrow arrays → the text that tables, CSV and Markdown show.
//!
//! The text is that of [`Value`](crate::value::Value): what `lpad` and `md5` see is what you see.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    DataType, Float64Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::error::{Error, Result};
use crate::value::ValueRef;

/// The cells of one batch, as text.
pub struct Cells<'a> {
    columns: Vec<Column<'a>>,
    rows: usize,
}

impl<'a> Cells<'a> {
    /// Looks at a batch.
    ///
    /// Errors: `Internal` on a type that Arrow cannot print.
    pub fn new(batch: &'a RecordBatch) -> Result<Self> {
        let columns =
            batch.columns().iter().map(|array| Column::new(array.as_ref())).collect::<Result<_>>()?;
        Ok(Cells { columns, rows: batch.num_rows() })
    }

    /// The rows, each as its cells; `None` is NULL.
    pub fn rows(&self) -> impl Iterator<Item = Result<Vec<Option<String>>>> {
        (0..self.rows).map(|row| self.columns.iter().map(|column| column.text(row)).collect())
    }
}

struct Column<'a> {
    array: &'a dyn Array,
    arrow: ArrayFormatter<'a>,
}

impl<'a> Column<'a> {
    fn new(array: &'a dyn Array) -> Result<Self> {
        const OPTIONS: FormatOptions<'_> = FormatOptions::new();
        Ok(Column { array, arrow: ArrayFormatter::try_new(array, &OPTIONS).map_err(unprintable)? })
    }

    fn text(&self, row: usize) -> Result<Option<String>> {
        if self.array.is_null(row) {
            return Ok(None);
        }
        // Arrow prints times with a `T` and a padded fraction, and doubles its own way.
        Ok(Some(match self.array.data_type() {
            DataType::Float64 => {
                ValueRef::Double(self.array.as_primitive::<Float64Type>().value(row)).to_string()
            }
            DataType::Timestamp(unit, zone) => {
                let us = micros(self.array, *unit, row);
                match zone {
                    None => ValueRef::Timestamp(us).to_string(),
                    Some(_) => ValueRef::TimestampTz(us).to_string(),
                }
            }
            _ => self.arrow.value(row).try_to_string().map_err(unprintable)?,
        }))
    }
}

fn micros(array: &dyn Array, unit: TimeUnit, row: usize) -> i64 {
    match unit {
        TimeUnit::Second => array.as_primitive::<TimestampSecondType>().value(row).saturating_mul(1_000_000),
        TimeUnit::Millisecond => {
            array.as_primitive::<TimestampMillisecondType>().value(row).saturating_mul(1_000)
        }
        TimeUnit::Microsecond => array.as_primitive::<TimestampMicrosecondType>().value(row),
        TimeUnit::Nanosecond => array.as_primitive::<TimestampNanosecondType>().value(row).div_euclid(1_000),
    }
}

fn unprintable(e: ArrowError) -> Error {
    Error::internal("a result cannot be printed").why(e.to_string()).caused_by(e)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, BinaryArray, Decimal128Array, Float64Array, TimestampMicrosecondArray,
        TimestampNanosecondArray,
    };

    use super::*;

    #[test]
    fn texts_are_those_of_values() {
        let arrays: [(&str, ArrayRef); 5] = [
            ("d", Arc::new(Float64Array::from(vec![Some(1.0), None]))),
            ("t", Arc::new(TimestampMicrosecondArray::from(vec![Some(1_500_000), None]))),
            ("z", Arc::new(TimestampNanosecondArray::from(vec![Some(-1), None]).with_timezone("+00:00"))),
            ("b", Arc::new(BinaryArray::from(vec![Some(&b"\x00\xff"[..]), None]))),
            (
                "m",
                Arc::new(
                    Decimal128Array::from(vec![Some(-5), None]).with_precision_and_scale(10, 2).unwrap(),
                ),
            ),
        ];
        let batch = RecordBatch::try_from_iter(arrays).unwrap();
        let rows: Vec<_> = Cells::new(&batch).unwrap().rows().collect::<Result<_>>().unwrap();
        let first: Vec<_> = rows[0].iter().map(|cell| cell.as_deref().unwrap()).collect();
        assert_eq!(first, ["1.0", "1970-01-01 00:00:01.5", "1969-12-31 23:59:59.999999+00", "00ff", "-0.05"]);
        assert_eq!(rows[1], [const { None }; 5]);
    }
}
