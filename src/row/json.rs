//! Stand-in JSON cell writer.
use std::io::Write;

use arrow::array::Array;
use arrow::datatypes::{DataType, Field};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::error::{Error, Result};

/// Writes one cell as JSON.
pub fn write_json_cell(out: &mut impl Write, array: &dyn Array, row: usize, _field: &Field) -> Result<()> {
    let f = ArrayFormatter::try_new(array, &FormatOptions::default())
        .map_err(|e| Error::internal(e.to_string()))?;
    let text = f.value(row).to_string();
    if array.is_null(row) {
        write!(out, "null")?;
    } else if array.data_type().is_numeric() || *array.data_type() == DataType::Boolean {
        write!(out, "{text}")?;
    } else {
        write!(out, "{}", serde_json::to_string(&text).map_err(|e| Error::internal(e.to_string()))?)?;
    }
    Ok(())
}
