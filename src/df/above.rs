//! What is computed of the columns that come out of something that runs without streams.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion::error::Result as DfResult;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;

use super::open;
use crate::value::Value;

/// Projections, one above the other.
#[derive(Clone, Debug, Default)]
pub struct Above(Vec<Step>);

#[derive(Clone, Debug)]
struct Step {
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    /// Columns that come out.
    schema: SchemaRef,
    /// Parameters are in it.
    is_open: bool,
}

impl Above {
    /// Nothing is computed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Parameters are in it.
    pub fn is_open(&self) -> bool {
        self.0.iter().any(|step| step.is_open)
    }

    /// Adds what is computed of what came out so far.
    pub fn push(&mut self, projection: &ProjectionExec) {
        let exprs: Vec<_> = projection.expr().iter().map(|output| Arc::clone(&output.expr)).collect();
        let is_open = exprs.iter().any(open::is_open);
        self.0.push(Step { exprs, schema: projection.schema(), is_open });
    }

    /// The same with the parameters of a run; `None` if one has no value that suits.
    pub fn filled(&self, params: &[Value]) -> Option<Above> {
        let step = |step: &Step| {
            let exprs = step.exprs.iter().map(|expr| open::filled(expr, params)).collect::<Option<_>>()?;
            Some(Step { exprs, schema: Arc::clone(&step.schema), is_open: false })
        };
        self.0.iter().map(step).collect::<Option<_>>().map(Above)
    }

    /// What comes out of these rows.
    pub fn of(&self, mut rows: RecordBatch) -> DfResult<RecordBatch> {
        for Step { exprs, schema, .. } in &self.0 {
            let count = rows.num_rows();
            let values = exprs.iter().map(|expr| expr.evaluate(&rows)?.into_array(count));
            let values = values.collect::<DfResult<Vec<_>>>()?;
            let options = RecordBatchOptions::new().with_row_count(Some(count));
            rows = RecordBatch::try_new_with_options(Arc::clone(schema), values, &options)?;
        }
        Ok(rows)
    }
}
