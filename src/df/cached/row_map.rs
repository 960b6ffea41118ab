//! Expressions over rows of no table, planned once: CHECK, DEFAULT, RETURNING, ON CONFLICT; and `SELECT 1`.
//!
//! Such a query takes few rows, mostly one, and every writing statement runs some. So only its physical expressions are
//! kept, and evaluated without operators or streams.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;

use super::on_top::Above;
use crate::df::below::{output_schema, renamed};
use crate::df::contained::Stage;
use crate::error::Result;
use crate::value::Value;

/// A query over the rows of one batch, or over a row without columns.
#[derive(Debug)]
pub struct RowMap {
    /// Schema of the input rows.
    input: Option<SchemaRef>,
    /// Positions of the input columns that are read.
    columns: Vec<usize>,
    /// Simple operators over them.
    above: Above,
    schema: SchemaRef,
}

impl RowMap {
    /// `None` if the plan reads anything but `input`.
    pub fn new(plan: &Arc<dyn ExecutionPlan>, input: Option<&RecordBatch>) -> Option<RowMap> {
        let (above, node) = Above::off(plan);
        let columns = match input {
            Some(rows) if node.is::<DataSourceExec>() => {
                let (read, rows) = (node.schema(), rows.schema());
                let place = |field: &Arc<Field>| rows.index_of(field.name()).ok();
                read.fields().iter().map(place).collect::<Option<_>>()?
            }
            None if node.is::<PlaceholderRowExec>() => Vec::new(),
            _ => return None,
        };
        let schema = output_schema(&plan.schema());
        Some(RowMap { input: input.map(RecordBatch::schema), columns, above, schema })
    }

    /// It gives one output row for each input row, in order.
    pub fn is_of_each(&self) -> bool {
        !self.above.changes_rows()
    }

    /// The output rows; `None` if it was planned for another schema, or a parameter does not suit.
    pub fn apply(&self, rows: Option<&RecordBatch>, params: &[Value]) -> Result<Option<RecordBatch>> {
        let rows = match (rows, &self.input) {
            (Some(rows), Some(input)) if rows.schema_ref() == input => rows.project(&self.columns)?,
            (None, None) => renamed(Vec::new(), 1, &Arc::new(Schema::empty()))?,
            _ => return Ok(None),
        };
        Stage::Running
            .contain(|| self.above.filled(params).map(|above| above.of(rows, &self.schema)).transpose())
    }
}
