//! Expressions over rows that are in no table, planned once: CHECK, DEFAULT, RETURNING, ON CONFLICT.
//!
//! Such a query takes few rows, mostly one, and comes with every statement that writes. So it is kept as the physical
//! expressions alone, which are evaluated without operators or streams.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;

use super::open;
use super::plan::{output_schema, renamed};
use crate::df::errors::df_error;
use crate::error::Result;
use crate::value::Value;

/// A query over the rows of one batch, or over none, that gives one row for each.
#[derive(Debug)]
pub struct RowMap {
    /// Columns of the rows.
    input: Option<SchemaRef>,
    /// Places of those that are read.
    columns: Vec<usize>,
    /// Projections, each over the one before it.
    steps: Vec<Step>,
    schema: SchemaRef,
}

#[derive(Debug)]
struct Step {
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    schema: SchemaRef,
}

impl RowMap {
    /// `None` if the plan over rows of this schema is more than projections.
    pub fn new(plan: &Arc<dyn ExecutionPlan>, input: Option<&RecordBatch>) -> Option<RowMap> {
        let mut steps = Vec::new();
        let mut node = plan;
        loop {
            if let Some(cooperative) = node.downcast_ref::<CooperativeExec>() {
                node = cooperative.input();
            } else if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
                let exprs = projection.expr().iter().map(|output| Arc::clone(&output.expr)).collect();
                steps.push(Step { exprs, schema: projection.schema() });
                node = projection.input();
            } else {
                break;
            }
        }
        steps.reverse();
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
        Some(RowMap { input: input.map(RecordBatch::schema), columns, steps, schema })
    }

    /// What comes of the rows; `None` if it was planned for other ones, or does not hold for these parameters.
    pub fn apply(&self, rows: Option<&RecordBatch>, params: &[Value]) -> Result<Option<RecordBatch>> {
        let mut batch = match (rows, &self.input) {
            (Some(rows), Some(input)) if rows.schema_ref() == input => rows.project(&self.columns)?,
            (None, None) => renamed(Vec::new(), 1, &Arc::new(Schema::empty()))?,
            _ => return Ok(None),
        };
        let n = batch.num_rows();
        for step in &self.steps {
            let mut columns = Vec::with_capacity(step.exprs.len());
            for expr in &step.exprs {
                let Some(expr) = open::filled(expr, params) else { return Ok(None) };
                let value = expr.evaluate(&batch).and_then(|value| value.into_array(n));
                columns.push(value.map_err(df_error)?);
            }
            batch = renamed(columns, n, &step.schema)?;
        }
        renamed(batch.columns().to_vec(), n, &self.schema).map(Some)
    }
}
