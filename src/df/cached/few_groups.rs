//! GROUP BY over a scan of few rows, run without streams: `SELECT status, count(*) FROM orders WHERE buyer = $1 GROUP
//! BY status`.
//!
//! The scan groups and adds up its rows (`exec::groups`). For few rows that is all; DataFusion's second aggregation
//! step and the setup of its operators would cost more.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};

use super::aggregates::ScanAggregate;
use super::alone::Alone;
use super::on_top::Above;
use crate::access::Method;
use crate::df::errors::df_error;
use crate::df::operators::grouped::{ByScan, STEPS_WORK, by_scan};
use crate::df::operators::scan::ScanExec;
use crate::df::table::Binding;
use crate::error::Result;
use crate::exec::groups::Groups;
use crate::exec::sums::Total;

/// An aggregate with groups over one scan, and the operators above it.
#[derive(Debug)]
pub struct FewGroups {
    scan: ScanExec,
    /// Positions of the grouping columns among the scan's columns.
    by: Vec<usize>,
    functions: Vec<ScanAggregate>,
    /// Schema of the groups.
    results: SchemaRef,
    above: Above,
    /// The output schema.
    schema: SchemaRef,
}

impl FewGroups {
    /// The plan as groups with the columns of `schema`, if it is nothing more.
    pub fn of(root: &Arc<dyn ExecutionPlan>, schema: &SchemaRef) -> Option<FewGroups> {
        let (above, plan) = Above::off(root);
        let aggregate = plan.downcast_ref::<AggregateExec>()?;
        let is_one_step = *aggregate.mode() == AggregateMode::Single;
        let ByScan { scan, by, functions } = by_scan(aggregate).filter(|_| is_one_step)?;
        scan.is_whole().then(|| FewGroups {
            scan: scan.clone(),
            by,
            functions,
            results: aggregate.schema(),
            above,
            schema: Arc::clone(schema),
        })
    }

    /// All result rows; `None` if the scan is long, or as for [`ScanExec::bind`].
    pub fn run(&self, binding: &Binding) -> Result<Option<Alone>> {
        let Some(above) = self.above.filled(&binding.params) else { return Ok(None) };
        let Some(mut scan) = self.scan.run(binding, &Arc::default())? else { return Ok(None) };
        let spec = scan.spec();
        // Different paths may encode the same value in different bytes, which would split its group.
        if scan.work() >= STEPS_WORK || matches!(spec.access.method, Method::Gather { .. }) {
            return Ok(None);
        }
        let mut groups = Groups::new(&self.by, self.functions.iter().map(|known| known.term), spec);
        if scan.group(&mut groups)? && !scan.is_over() {
            return Ok(None);
        }
        let rows = self.rows(&mut groups)?;
        Ok(Some(Alone::Rows(Some(above.of(rows, &self.schema)?), scan.plan_text())))
    }

    fn rows(&self, groups: &mut Groups) -> Result<RecordBatch> {
        if groups.is_empty() {
            return Ok(RecordBatch::new_empty(Arc::clone(&self.results)));
        }
        let (mut columns, totals) = groups.take()?;
        for (known, totals) in self.functions.iter().zip(&totals) {
            let results = totals.iter().map(|total: &Total| known.result(total));
            let results = results.collect::<DfResult<Vec<_>>>().and_then(ScalarValue::iter_to_array);
            columns.push(results.map_err(df_error)?);
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.results), columns)?)
    }
}
