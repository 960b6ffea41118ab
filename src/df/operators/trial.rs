//! Tries a plan of lookups before the plan that reads the tables in full.
//!
//! `SELECT .. FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id AND o.amount > 900) ORDER
//! BY c.id LIMIT 10`: if one customer in ten has such an order, looking up the orders of the first hundred is enough;
//! if one in ten thousand has, reading both tables once takes far less. Nobody knows beforehand. So the lookups begin,
//! and give up after a small fraction of the other plan's work.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::RecordBatch;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::TryStreamExt;

use crate::df::operators::lookup::LookupJoinExec;
use crate::df::operators::scan::ScanExec;
use crate::df::operators::seek::SeekJoinExec;
use crate::df::operators::{in_one_part, is_one_part, operator};
use crate::df::parallel;
use crate::df::tree::RewriteTree;
use crate::exec::scan::ScanCounters;

/// Fraction of the other plan's work that a trial may take.
pub const SHARE: f64 = 0.125;

/// Fraction that its first batch of lookups may take, as the budget is not checked before that.
const BEGIN_SHARE: f64 = 0.5;

/// Smallest budget, as of [`Access::work`](crate::access::Access::work), that is worth a trial.
const WORK_MIN: f64 = 250.0;

/// Most rows (count) of a trial: they are buffered until the trial is complete.
const ROWS_MAX: usize = 16_384;

/// The rows of one plan, or, if that takes too long, of another plan with the same result.
#[derive(Clone, Debug)]
pub struct TrialExec {
    first: Arc<dyn ExecutionPlan>,
    otherwise: Arc<dyn ExecutionPlan>,
    work: f64,
    properties: Arc<PlanProperties>,
}

impl TrialExec {
    /// Tries `first`, whose scans its consumer may stop, before `otherwise`. `otherwise` alone, if it is too cheap for
    /// a trial, or if `first` may take too much before the first check of its budget.
    pub fn of(first: &Arc<dyn ExecutionPlan>, otherwise: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let all = parallel::work(&otherwise);
        let work = SHARE * all;
        let is_worth_it = work >= WORK_MIN && begins_within(first, all * BEGIN_SHARE);
        if !is_worth_it
            || !is_one_part(first)
            || !is_one_part(&otherwise)
            || first.schema() != otherwise.schema()
        {
            return otherwise;
        }
        let (first, properties) = (Arc::clone(first), in_one_part(&otherwise));
        Arc::new(TrialExec { first, otherwise, work, properties })
    }

    /// The plan that is tried.
    pub fn first(&self) -> &Arc<dyn ExecutionPlan> {
        &self.first
    }

    /// The plan to fall back to.
    pub fn otherwise(&self) -> &Arc<dyn ExecutionPlan> {
        &self.otherwise
    }

    /// Work of the other plan, as of [`Access::work`](crate::access::Access::work).
    pub fn work_otherwise(&self) -> f64 {
        self.work / SHARE
    }
}

impl DisplayAs for TrialExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TrialExec: entries<={:.0}", self.work)
    }
}

impl ExecutionPlan for TrialExec {
    operator!(TrialExec(first, otherwise), this => {
        Arc::new(TrialExec { first, otherwise, ..(*this).clone() })
    });

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let budget = Arc::new(Budget::new(&self.first, self.work));
        let first = budget.over(&self.first)?.execute(0, Arc::clone(&context))?;
        let otherwise = Arc::clone(&self.otherwise);
        let batches = futures::stream::once(async move {
            let found = all_of(first).await?.filter(|_| !budget.is_spent());
            match found {
                Some(found) => {
                    let schema = otherwise.schema();
                    let found = futures::stream::iter(found.into_iter().map(Ok));
                    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, found)) as SendableRecordBatchStream)
                }
                None => otherwise.execute(0, context),
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches.try_flatten())))
    }
}

/// The first lookups of each join take no more than that.
fn begins_within(plan: &Arc<dyn ExecutionPlan>, work: f64) -> bool {
    let first = match (plan.downcast_ref::<LookupJoinExec>(), plan.downcast_ref::<SeekJoinExec>()) {
        (Some(join), _) => join.work_at_first(),
        (_, Some(join)) => Some(join.work_at_first()),
        _ => Some(0.0),
    };
    first.is_some_and(|first| first <= work)
        && plan.children().into_iter().all(|child| begins_within(child, work))
}

/// All rows; `None` if there are too many.
async fn all_of(mut rows: SendableRecordBatchStream) -> DfResult<Option<Vec<RecordBatch>>> {
    let (mut all, mut count) = (Vec::new(), 0);
    while let Some(batch) = rows.try_next().await? {
        count += batch.num_rows();
        if count > ROWS_MAX {
            return Ok(None);
        }
        all.push(batch);
    }
    Ok(Some(all))
}

/// Budget of a trial.
#[derive(Debug)]
struct Budget {
    scans: Vec<Arc<ScanCounters>>,
    work: f64,
    /// The budget was exceeded, so the rows are incomplete.
    is_spent: AtomicBool,
}

impl Budget {
    fn new(plan: &Arc<dyn ExecutionPlan>, work: f64) -> Budget {
        let mut scans = Vec::new();
        counters_of(plan, &mut scans);
        Budget { scans, work, is_spent: AtomicBool::new(false) }
    }

    fn is_spent(&self) -> bool {
        self.is_spent.load(Ordering::Relaxed)
    }

    /// The plan, with the scans that may be stopped ending when the budget is spent.
    fn over(self: &Arc<Self>, plan: &Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
        let watched = Arc::clone(plan).rewrite_up(|node| {
            Ok(match node.downcast_ref().is_some_and(ScanExec::may_stop) {
                true => {
                    let budget = Arc::clone(self);
                    Transformed::yes(Arc::new(WithinExec { rows: node, budget }) as Arc<dyn ExecutionPlan>)
                }
                false => Transformed::no(node),
            })
        });
        watched.data()
    }
}

fn counters_of(plan: &Arc<dyn ExecutionPlan>, scans: &mut Vec<Arc<ScanCounters>>) {
    scans.extend(plan.downcast_ref::<ScanExec>().map(|scan| Arc::clone(&scan.counters)));
    plan.children().into_iter().for_each(|child| counters_of(child, scans));
}

/// Passes rows on while they are within a budget.
#[derive(Clone, Debug)]
struct WithinExec {
    rows: Arc<dyn ExecutionPlan>,
    budget: Arc<Budget>,
}

impl DisplayAs for WithinExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WithinExec")
    }
}

impl ExecutionPlan for WithinExec {
    operator!(WithinExec(rows), this => Arc::new(WithinExec { rows, ..(*this).clone() }));

    fn properties(&self) -> &Arc<PlanProperties> {
        self.rows.properties()
    }

    fn execute(&self, part: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let (rows, budget) = (self.rows.execute(part, context)?, Arc::clone(&self.budget));
        let within = futures::stream::try_unfold((rows, budget), |(mut rows, budget)| async move {
            let work: f64 = budget.scans.iter().map(|scan| scan.work()).sum();
            if work > budget.work {
                budget.is_spent.store(true, Ordering::Relaxed);
                return Ok(None);
            }
            Ok(rows.try_next().await?.map(|batch| (batch, (rows, budget))))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), within)))
    }
}
