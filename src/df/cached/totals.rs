//! Totals of one scan, run without streams: `SELECT count(*), sum(amount) FROM orders WHERE buyer = $1`.
//!
//! The scan itself computes the common functions (`exec::sums`), with several threads for many rows (`exec::shared`).
//! For all others, DataFusion's accumulators and expressions are called directly: the setup of its operators costs more
//! than reading a short range of keys.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::Accumulator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr_common::utils::evaluate_expressions_to_arrays;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, finalize_aggregation};
use datafusion::physical_plan::projection::ProjectionExec;

use super::aggregates::{ScanAggregate, TotalColumns};
use super::on_top::Above;
use super::parameters;
use crate::df::below::{passed_on, picked};
use crate::df::errors::df_error;
use crate::df::expr::value_of;
use crate::df::operators::scan::ScanExec;
use crate::df::parallel::OF_A_SET;
use crate::df::table::Binding;
use crate::error::Result;
use crate::exec::next_rows::NextRows;
use crate::exec::scan::{PARALLEL_WORK, Scan};
use crate::exec::shared::Adding;
use crate::exec::sums::Total;
use crate::exec::watch::PlanText;

/// An aggregate without groups over one scan, and the operators above it.
#[derive(Debug)]
pub struct Totals {
    scan: ScanExec,
    functions: Vec<Arc<AggregateFunctionExpr>>,
    /// Arguments of each function.
    inputs: Inputs,
    /// Schema of the totals.
    results: SchemaRef,
    /// Simple operators above the totals.
    above: Above,
    /// The functions, if a scan can compute all of them.
    known: Option<Vec<ScanAggregate>>,
    /// The output as integer arithmetic, if possible.
    columns: Option<TotalColumns>,
    /// The output schema.
    schema: SchemaRef,
}

impl Totals {
    /// The plan as totals with the columns of `schema`, if it is nothing more.
    pub fn of(root: &Arc<dyn ExecutionPlan>, schema: &SchemaRef) -> Option<Totals> {
        if let Some(projection) = root.downcast_ref::<ProjectionExec>() {
            let mut totals = Totals::of(projection.input(), schema)?;
            let exprs: Vec<_> = projection.expr().iter().map(|output| Arc::clone(&output.expr)).collect();
            totals.columns = totals.columns.and_then(|columns| columns.above(&exprs));
            totals.above.push(root)?;
            return (!totals.above.is_open()).then_some(totals);
        }
        if let Some(input) = passed_on(&**root) {
            return Totals::of(input, schema);
        }
        let aggregate = root.downcast_ref::<AggregateExec>()?;
        let functions = aggregate.aggr_expr();
        let is_small =
            |f: &Arc<AggregateFunctionExpr>| OF_A_SET.contains(&f.fun().name()) && !f.is_distinct();
        let is_simple = *aggregate.mode() == AggregateMode::Single
            && aggregate.group_expr().is_true_no_grouping()
            && aggregate.filter_expr().iter().all(Option::is_none)
            && functions.iter().all(is_small);
        let (scan, columns) = picked(aggregate.input()).filter(|(scan, _)| is_simple && scan.is_whole())?;
        let known = ScanAggregate::all_of(aggregate);
        Some(Totals {
            columns: known.as_deref().and_then(TotalColumns::of),
            known,
            scan: scan.pick(&columns, &aggregate.input_schema()),
            functions: functions.to_vec(),
            inputs: functions.iter().map(|f| f.expressions()).collect(),
            results: aggregate.schema(),
            above: Above::default(),
            schema: Arc::clone(schema),
        })
    }

    /// Totals without operators above.
    pub fn of_known(scan: ScanExec, known: Vec<ScanAggregate>, schema: &SchemaRef) -> Totals {
        Totals {
            scan,
            functions: Vec::new(),
            inputs: Vec::new(),
            results: Arc::clone(schema),
            above: Above::default(),
            columns: TotalColumns::of(&known),
            known: Some(known),
            schema: Arc::clone(schema),
        }
    }

    /// A run; `None`: as for [`ScanExec::bind`].
    pub fn run(self: &Arc<Self>, binding: &Binding) -> Result<Option<TotalsRun>> {
        let Some(rows) = self.scan.run(binding, &Arc::default())? else { return Ok(None) };
        let way = match &self.known {
            Some(known) => Way::Numbers(Adding::new(rows, known.iter().map(|known| known.term))?),
            None => {
                let functions = self.functions.iter().map(|f| f.create_accumulator());
                let Some(inputs) = self.filled(binding) else { return Ok(None) };
                Way::Batches(rows, functions.collect::<DfResult<Vec<_>>>().map_err(df_error)?, inputs)
            }
        };
        Ok(Some(TotalsRun { totals: Arc::clone(self), way, done: false }))
    }

    /// The arguments with the parameters of a run filled in; `None` if a value does not suit.
    fn filled(&self, binding: &Binding) -> Option<Inputs> {
        let of_function =
            |inputs: &Vec<_>| inputs.iter().map(|input| parameters::filled(input, &binding.params)).collect();
        self.inputs.iter().map(of_function).collect()
    }

    /// The output row for these totals.
    fn finish_numbers(&self, totals: &[Total]) -> Result<NextRows> {
        let known = || self.known.iter().flatten().zip(totals);
        // Each total must fit its own type, whatever is computed from it.
        let results = known().map(|(known, total)| known.result(total)).collect::<DfResult<Vec<_>>>();
        let results = results.map_err(df_error)?;
        let values = match &self.columns {
            Some(columns) => {
                columns.values(&known().map(|(known, total)| known.number(total)).collect::<Vec<_>>())
            }
            None => None,
        };
        if let Some(values) = values.as_ref().or(self.above.is_empty().then_some(&results)) {
            return values.iter().map(value_of).collect::<Result<_>>().map(NextRows::Row);
        }
        let results = results.iter().map(ScalarValue::to_array);
        self.finish(results.collect::<DfResult<Vec<_>>>().map_err(df_error)?)
    }

    fn finish(&self, results: Vec<ArrayRef>) -> Result<NextRows> {
        let row = RecordBatch::try_new(Arc::clone(&self.results), results)?;
        self.above.of(row, &self.schema).map(NextRows::Batch)
    }
}

fn add(batch: &RecordBatch, inputs: &Inputs, sums: &mut [Box<dyn Accumulator>]) -> DfResult<()> {
    for (inputs, sum) in inputs.iter().zip(sums) {
        sum.update_batch(&evaluate_expressions_to_arrays(inputs, batch)?)?;
    }
    Ok(())
}

/// How totals are computed.
enum Way {
    Numbers(Adding),
    /// Accumulators of DataFusion, with their arguments.
    Batches(Scan, Vec<Box<dyn Accumulator>>, Inputs),
}

type Inputs = Vec<Vec<Arc<dyn PhysicalExpr>>>;

/// A run of [`Totals`].
pub struct TotalsRun {
    totals: Arc<Totals>,
    way: Way,
    /// The result row has been returned.
    done: bool,
}

impl TotalsRun {
    /// Its EXPLAIN, rendered on demand.
    pub fn plan_text(&self) -> PlanText {
        match &self.way {
            Way::Numbers(adding) => adding.plan_text(),
            Way::Batches(rows, ..) => rows.plan_text(),
        }
    }

    /// The run is long enough for several threads, and only operators would share it.
    pub fn is_long(&self) -> bool {
        matches!(&self.way, Way::Batches(rows, ..) if rows.work() >= PARALLEL_WORK)
    }

    /// Adds some rows and returns an empty batch; after the last rows, the result row; then `None`.
    pub fn next_rows(&mut self) -> Result<Option<NextRows>> {
        let TotalsRun { totals, way, done, .. } = self;
        if *done {
            return Ok(None);
        }
        let row = match way {
            Way::Numbers(adding) => adding.step()?.map(|sums| totals.finish_numbers(&sums)),
            Way::Batches(rows, sums, inputs) => match rows.next_batch()? {
                Some(batch) => {
                    add(&batch, inputs, sums).map_err(df_error)?;
                    None
                }
                None => {
                    let results = finalize_aggregation(sums, &AggregateMode::Single);
                    Some(totals.finish(results.map_err(df_error)?))
                }
            },
        };
        *done = row.is_some();
        let none = || NextRows::Batch(RecordBatch::new_empty(Arc::clone(&totals.schema)));
        row.transpose().map(|row| Some(row.unwrap_or_else(none)))
    }

    /// [`TotalsRun::next_rows`] as a batch.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let rows = self.next_rows()?;
        rows.map(|rows| rows.batch_from(0, &self.totals.schema)).transpose()
    }
}
