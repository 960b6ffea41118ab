//! A row of no table: `SELECT 1`, `SELECT $1 + 1 AS next`, run without streams.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;

use super::above::Above;
use super::alone::Alone;
use super::plan::renamed;
use crate::df::errors::df_error;
use crate::error::Result;
use crate::value::Value;

/// What is computed of a row without columns.
#[derive(Debug)]
pub struct NoTable {
    above: Above,
    /// Columns that come out.
    schema: SchemaRef,
}

impl NoTable {
    /// The plan as such a row that comes out with the columns of `schema`, if it is no more than that.
    pub fn of(root: &Arc<dyn ExecutionPlan>, schema: &SchemaRef) -> Option<NoTable> {
        let (above, plan) = Above::off(root);
        plan.is::<PlaceholderRowExec>().then(|| NoTable { above, schema: Arc::clone(schema) })
    }

    /// The row; `None` if a parameter has no value that suits.
    pub fn run(&self, params: &[Value]) -> Result<Option<Alone>> {
        let Some(above) = self.above.filled(params) else { return Ok(None) };
        let row = renamed(Vec::new(), 1, &Arc::new(Schema::empty()))?;
        let rows = above.of(row).map_err(df_error)?;
        let rows = renamed(rows.columns().to_vec(), rows.num_rows(), &self.schema)?;
        Ok(Some(Alone::Rows(Some(rows), Arc::new(|| ("a row of no table".to_owned(), None)))))
    }
}
