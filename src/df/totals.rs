//! Totals of one scan: `SELECT count(*), sum(amount) FROM orders WHERE buyer = $1`, run without streams.
//!
//! The functions and the expressions over them stay DataFusion's. What is left out is what its plans bring along for
//! the sake of long ones, and costs more than a short range of keys takes to read.

use std::any::Any;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::Accumulator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, finalize_aggregation};
use datafusion::physical_plan::projection::ProjectionExec;

use super::errors::df_error;
use super::open;
use super::parallel::OF_A_SET;
use super::plan::{picked, renamed};
use super::scan::ScanExec;
use super::table::Binding;
use crate::error::Result;
use crate::exec::scan::{PARALLEL_ENTRIES, Scan};
use crate::exec::watch::PlanText;

/// An aggregate without groups over one scan, and what is made of its results.
#[derive(Debug)]
pub struct Totals {
    scan: ScanExec,
    functions: Vec<Arc<AggregateFunctionExpr>>,
    /// What each function takes of a row.
    inputs: Vec<Vec<Arc<dyn PhysicalExpr>>>,
    /// Columns of the results.
    results: SchemaRef,
    /// Expressions over the results, and over those, with their columns.
    above: Vec<(Vec<Arc<dyn PhysicalExpr>>, SchemaRef)>,
    /// Columns that come out.
    schema: SchemaRef,
}

impl Totals {
    /// The plan as totals that come out with the columns of `schema`, if it is no more than that.
    pub fn of(root: &Arc<dyn ExecutionPlan>, schema: &SchemaRef) -> Option<Totals> {
        let any: &dyn Any = &**root;
        if let Some(projection) = any.downcast_ref::<ProjectionExec>() {
            let mut totals = Totals::of(projection.input(), schema)?;
            let exprs: Vec<_> = projection.expr().iter().map(|output| Arc::clone(&output.expr)).collect();
            if exprs.iter().any(open::is_open) {
                return None;
            }
            totals.above.push((exprs, root.schema()));
            return Some(totals);
        }
        let aggregate = any.downcast_ref::<AggregateExec>()?;
        let functions = aggregate.aggr_expr();
        let is_small =
            |f: &Arc<AggregateFunctionExpr>| OF_A_SET.contains(&f.fun().name()) && !f.is_distinct();
        let is_simple = *aggregate.mode() == AggregateMode::Single
            && aggregate.group_expr().is_true_no_grouping()
            && aggregate.filter_expr().iter().all(Option::is_none)
            && functions.iter().all(is_small);
        let (scan, columns) = picked(aggregate.input()).filter(|_| is_simple)?;
        Some(Totals {
            scan: scan.pick(&columns, &aggregate.input_schema()),
            functions: functions.to_vec(),
            inputs: functions.iter().map(|f| f.expressions()).collect(),
            results: aggregate.schema(),
            above: Vec::new(),
            schema: Arc::clone(schema),
        })
    }

    /// Ready to be added up; `None`: as of [`ScanExec::bind`].
    pub fn run(self: &Arc<Self>, binding: &Binding) -> Result<Option<Adding>> {
        let Some(scan) = self.scan.run(binding)? else { return Ok(None) };
        let functions = self.functions.iter().map(|f| f.create_accumulator());
        let sums = functions.collect::<DfResult<Vec<_>>>().map_err(df_error)?;
        Ok(Some(Adding { totals: Arc::clone(self), rows: scan, sums, done: false }))
    }

    fn add(&self, batch: &RecordBatch, sums: &mut [Box<dyn Accumulator>]) -> DfResult<()> {
        for (inputs, sum) in self.inputs.iter().zip(sums) {
            let values = inputs.iter().map(|input| input.evaluate(batch)?.into_array(batch.num_rows()));
            sum.update_batch(&values.collect::<DfResult<Vec<_>>>()?)?;
        }
        Ok(())
    }

    fn finish(&self, sums: &mut [Box<dyn Accumulator>]) -> DfResult<RecordBatch> {
        let results = finalize_aggregation(sums, &AggregateMode::Single)?;
        let mut row = RecordBatch::try_new(Arc::clone(&self.results), results)?;
        for (exprs, schema) in &self.above {
            let values = exprs.iter().map(|expr| expr.evaluate(&row)?.into_array(1));
            row = RecordBatch::try_new(Arc::clone(schema), values.collect::<DfResult<Vec<_>>>()?)?;
        }
        Ok(row)
    }
}

/// Totals under way.
pub struct Adding {
    totals: Arc<Totals>,
    rows: Scan,
    sums: Vec<Box<dyn Accumulator>>,
    /// The totals are out.
    done: bool,
}

impl Adding {
    /// Its line of EXPLAIN, when it is asked for.
    pub fn plan_text(&self) -> PlanText {
        self.rows.plan_text()
    }

    /// Worth the work of more than one thread.
    pub fn is_long(&self) -> bool {
        self.rows.expected() >= PARALLEL_ENTRIES
    }

    /// Adds some rows, which gives a batch without rows; after the last ones, the totals; then `None`.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let Adding { totals, rows, sums, done } = self;
        if *done {
            return Ok(None);
        }
        if let Some(batch) = rows.next_batch()? {
            totals.add(&batch, sums).map_err(df_error)?;
            return Ok(Some(RecordBatch::new_empty(Arc::clone(&totals.schema))));
        }
        *done = true;
        let row = totals.finish(sums).map_err(df_error)?;
        renamed(row.columns().to_vec(), 1, &totals.schema).map(Some)
    }
}
