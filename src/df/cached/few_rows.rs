//! A scan of few rows, and simple operators on top of it, run without streams: `SELECT DISTINCT kind FROM event WHERE
//! device = $1`, or a window over the entries of an account.

use std::sync::Arc;

use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use datafusion::physical_plan::ExecutionPlan;

use super::alone::Alone;
use super::on_top::Above;
use crate::df::below::picked;
use crate::df::operators::scan::ScanExec;
use crate::df::table::Binding;
use crate::df::wanted::RowGoal;
use crate::error::Result;
use crate::exec::scan::{BATCH_ROWS, PARALLEL_WORK};

/// Most rows (count) that are kept in memory; a scan whose estimate was so wrong goes through operators.
const ROWS_MAX: usize = 2 * BATCH_ROWS;

/// The scan, which is read to its end, and the operators.
#[derive(Debug)]
pub struct FewRows {
    scan: ScanExec,
    above: Above,
    /// The output schema.
    schema: SchemaRef,
}

impl FewRows {
    /// The plan with the columns of `schema`; `None` if it has other operators, or might stop its scan.
    pub fn of(root: &Arc<dyn ExecutionPlan>, schema: &SchemaRef) -> Option<FewRows> {
        let (above, plan) = Above::all_off(root);
        let (scan, columns) = picked(plan)?;
        let reads_all = scan.is_whole() && scan.request.rows == RowGoal::All && scan.fetch().is_none();
        (reads_all && !above.is_empty() && !above.may_stop()).then(|| FewRows {
            scan: scan.pick(&columns, &plan.schema()),
            above,
            schema: Arc::clone(schema),
        })
    }

    /// All result rows; `None` if there are many, or as for [`ScanExec::bind`].
    pub fn run(&self, binding: &Binding) -> Result<Option<Alone>> {
        let Some(above) = self.above.filled(&binding.params) else { return Ok(None) };
        let Some(mut scan) = self.scan.run(binding, &Arc::default())? else { return Ok(None) };
        if scan.work() >= PARALLEL_WORK {
            return Ok(None);
        }
        let (mut batches, mut rows) = (Vec::new(), 0);
        while let Some(batch) = scan.next_batch()? {
            rows += batch.num_rows();
            if rows > ROWS_MAX {
                return Ok(None);
            }
            batches.push(batch);
        }
        let rows = concat_batches(scan.schema(), &batches)?;
        Ok(Some(Alone::Rows(Some(above.of(rows, &self.schema)?), scan.plan_text())))
    }
}
