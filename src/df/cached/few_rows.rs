//! A scan of few rows, or several of them in sequence, and simple operators on top, run without streams: `SELECT
//! DISTINCT kind FROM event WHERE device = $1`, a window over the entries of an account, or the newest of a UNION ALL.

use std::sync::Arc;

use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::union::UnionExec;

use super::alone::{Alone, Single};
use super::on_top::Above;
use crate::df::below::picked;
use crate::df::operators::scan::ScanExec;
use crate::df::table::Binding;
use crate::df::wanted::RowGoal;
use crate::error::Result;
use crate::exec::scan::BATCH_ROWS;

/// Most rows (count) that are kept in memory; a scan whose estimate was so wrong goes through operators.
const ROWS_MAX: usize = 2 * BATCH_ROWS;

/// The rows, which are read to their end, and the operators.
#[derive(Debug)]
pub struct FewRows {
    rows: Single,
    above: Above,
    /// The schema of the rows, and that of the output.
    below: SchemaRef,
    schema: SchemaRef,
}

impl FewRows {
    /// The plan with the columns of `schema`; `None` if it has other operators, or might stop its scan.
    pub fn of(root: &Arc<dyn ExecutionPlan>, schema: &SchemaRef) -> Option<FewRows> {
        let (above, plan) = Above::all_off(root);
        if above.is_empty() || above.may_stop() {
            return None;
        }
        let below = plan.schema();
        let rows = match picked(plan) {
            Some((scan, columns)) => {
                let reads_all =
                    scan.is_whole() && scan.request.rows == RowGoal::All && scan.fetch().is_none();
                reads_all.then(|| Single::Scan(scan.pick(&columns, &below)))?
            }
            None if plan.is::<UnionExec>() && !is_stopped(plan) => Single::of(plan, &below)?,
            None => return None,
        };
        Some(FewRows { rows, above, below, schema: Arc::clone(schema) })
    }

    /// All result rows; `None` if there are many, or as for [`Single::run`].
    pub fn run(&self, binding: &Binding) -> Result<Option<Alone>> {
        let Some(above) = self.above.filled(&binding.params) else { return Ok(None) };
        let Some(mut run) = self.rows.run(binding)?.filter(|run| !run.is_long()) else { return Ok(None) };
        let (mut batches, mut rows) = (Vec::new(), 0);
        while let Some(batch) = run.next_batch()? {
            rows += batch.num_rows();
            if rows > ROWS_MAX {
                return Ok(None);
            }
            batches.push(batch);
        }
        let rows = concat_batches(&self.below, &batches)?;
        Ok(Some(Alone::Rows(Some(above.of(rows, &self.schema)?), run.plan_text())))
    }
}

/// A scan is to end when its consumer has enough.
fn is_stopped(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match plan.downcast_ref::<ScanExec>() {
        Some(scan) => matches!(scan.request.rows, RowGoal::About { .. }) && scan.fetch().is_none(),
        None => plan.children().into_iter().any(is_stopped),
    }
}
