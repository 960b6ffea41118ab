//! Totals of several scans in one row: `SELECT min(ts), max(ts) FROM events WHERE host = $1` reads each from its own
//! end of a key.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::CrossJoinExec;

use super::alone::{Alone, one_of_all};
use super::on_top::Above;
use super::totals::{Totals, TotalsRun};
use crate::df::below::renamed;
use crate::df::table::Binding;
use crate::error::{Error, Result};

/// Totals of several scans, and the operators above their row.
#[derive(Debug)]
pub struct Beside {
    each: Vec<Arc<Totals>>,
    /// Schema of all totals together.
    results: SchemaRef,
    above: Above,
    /// The output schema.
    schema: SchemaRef,
}

impl Beside {
    /// The plan as totals side by side, if it is nothing more.
    pub fn of(root: &Arc<dyn ExecutionPlan>, schema: &SchemaRef) -> Option<Beside> {
        let (above, joined) = Above::off(root);
        let mut each = Vec::new();
        gather(joined, &mut each)?;
        let results = joined.schema();
        (each.len() > 1).then(|| Beside { each, results, above, schema: Arc::clone(schema) })
    }

    /// The row; `None` if a parameter does not suit, or operators do better.
    pub fn run(&self, binding: &Binding) -> Result<Option<Alone>> {
        let Some(above) = self.above.filled(&binding.params) else { return Ok(None) };
        let (mut columns, mut texts) = (Vec::new(), Vec::with_capacity(self.each.len()));
        for totals in &self.each {
            let run = totals.run(binding)?.filter(|run| !run.is_long());
            let Some(run) = run else { return Ok(None) };
            texts.push(run.plan_text());
            columns.extend_from_slice(row_of(run)?.columns());
        }
        let row = above.of(renamed(columns, 1, &self.results)?, &self.schema)?;
        Ok(Some(Alone::Rows(Some(row), one_of_all(texts))))
    }
}

/// Collects the totals below cross joins, in the order of their columns; `None` if there is anything else.
fn gather(plan: &Arc<dyn ExecutionPlan>, each: &mut Vec<Arc<Totals>>) -> Option<()> {
    if let Some(join) = plan.downcast_ref::<CrossJoinExec>() {
        gather(join.left(), each)?;
        return gather(join.right(), each);
    }
    each.push(Arc::new(Totals::of(plan, &plan.schema())?));
    Some(())
}

fn row_of(mut run: TotalsRun) -> Result<RecordBatch> {
    while let Some(batch) = run.next_batch()? {
        if batch.num_rows() == 1 {
            return Ok(batch);
        }
    }
    Err(Error::internal("totals without a row"))
}
