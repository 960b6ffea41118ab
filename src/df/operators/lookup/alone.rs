//! Lookup joins that run on the calling thread.
//!
//! For a short join, most time goes into the setup of streams and futures. A plan that is a scan with lookup joins
//! above needs neither: it takes a batch from the scan and applies the joins to it.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;

use super::{LookupJoinExec, ROWS_MAX, SeenKeys};
use crate::df::below::{picks, renamed};
use crate::df::operators::scan::ScanExec;
use crate::error::Result;
use crate::exec::scan::{Scan, grown};
use crate::exec::watch::PlanText;

/// A scan, and the steps applied to each of its batches.
pub struct Lookups {
    scan: Scan,
    /// Size of the next batch (rows).
    rows: usize,
    steps: Vec<LookupStep>,
    /// Rows (count) left of the limit.
    left: usize,
    /// The output schema.
    schema: SchemaRef,
}

enum LookupStep {
    /// Picks columns.
    Pick(Vec<usize>),
    /// Joins the rows with what they find.
    Join(Box<LookupJoinExec>, SeenKeys),
}

impl Lookups {
    /// A bound plan, ready to run, with the columns of `schema`; `None` if it has other operators. Errors: LIMIT, if it
    /// would read more than is allowed.
    pub fn of(plan: &Arc<dyn ExecutionPlan>, schema: &SchemaRef) -> Result<Option<Lookups>> {
        let (mut plan, mut left) = (plan, usize::MAX);
        if let Some(limit) = plan.downcast_ref::<GlobalLimitExec>().filter(|limit| limit.skip() == 0) {
            (plan, left) = (limit.input(), limit.fetch().unwrap_or(usize::MAX));
        }
        let mut steps = Vec::new();
        loop {
            if let Some(scan) = plan.downcast_ref::<ScanExec>() {
                if !scan.is_whole() || steps.is_empty() {
                    return Ok(None);
                }
                let rows = scan.rows_at_first().min(ROWS_MAX);
                steps.reverse();
                return Ok(Some(Lookups {
                    scan: scan.start(0)?,
                    rows,
                    steps,
                    left,
                    schema: Arc::clone(schema),
                }));
            }
            plan = if let Some(cooperative) = plan.downcast_ref::<CooperativeExec>() {
                cooperative.input()
            } else if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
                let Some(columns) = picks(projection) else { return Ok(None) };
                steps.push(LookupStep::Pick(columns));
                projection.input()
            } else if let Some(join) = plan
                .downcast_ref::<LookupJoinExec>()
                .filter(|join| join.together == ROWS_MAX && !join.in_order)
            {
                steps.push(LookupStep::Join(Box::new(join.clone()), SeenKeys::default()));
                &join.rows
            } else {
                return Ok(None);
            };
        }
    }

    /// The EXPLAIN of its scan, rendered on demand.
    pub fn plan_text(&self) -> PlanText {
        self.scan.plan_text()
    }

    /// The next rows, possibly none of them yet; `None` at the end.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.left == 0 {
            return Ok(None);
        }
        let Some(mut batch) = self.scan.next_batch_of(self.rows)? else { return Ok(None) };
        self.rows = grown(self.rows, ROWS_MAX);
        for step in &mut self.steps {
            batch = match step {
                LookupStep::Pick(columns) => batch.project(columns)?,
                LookupStep::Join(join, seen) => join.joined_anew(batch, seen)?,
            };
        }
        let rows = batch.num_rows().min(self.left);
        self.left -= rows;
        renamed(batch.slice(0, rows).columns().to_vec(), rows, &self.schema).map(Some)
    }
}
