//! A plan that is tried before another one, which reads more for certain.
//!
//! `SELECT .. FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id AND o.amount > 900)
//! ORDER BY c.id LIMIT 10`: if one customer in ten has such an order, to look up the orders of the first hundred is
//! enough; if one in ten thousand has, to read both tables once takes far less. Which it is nobody knows beforehand. So
//! the lookups begin, and give way when they have taken a small part of what the other plan takes.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::RecordBatch;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use futures::TryStreamExt;

use crate::df::operators::lookup::LookupJoinExec;
use crate::df::operators::scan::ScanExec;
use crate::df::operators::{in_one_part, operator};
use crate::df::parallel;
use crate::df::tree::RewriteTree;
use crate::exec::scan::Counters;

/// The part of the other plan's work that a trial may take.
const SHARE: f64 = 0.125;

/// The part that its first rows may take, before anybody looks.
const BEGIN_SHARE: f64 = 0.5;

/// With less than this, as of [`Access::work`](crate::access::Access::work), nothing is worth a trial.
const WORK_MIN: f64 = 250.0;

/// Rows (count) that a trial may find: they wait until it is known that they are all.
const ROWS_MAX: usize = 16_384;

/// The rows of one plan, or else those of another one that gives the same.
#[derive(Clone, Debug)]
pub struct TrialExec {
    first: Arc<dyn ExecutionPlan>,
    otherwise: Arc<dyn ExecutionPlan>,
    work: f64,
    properties: Arc<PlanProperties>,
}

impl TrialExec {
    /// `first`, whose scans were asked for about so many rows, before `otherwise`; `otherwise` alone, if that takes so
    /// little that there is nothing to try, or `first` so much before it can be told how far it is.
    pub fn of(first: &Arc<dyn ExecutionPlan>, otherwise: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let all = parallel::work(&otherwise);
        let work = SHARE * all;
        let is_one = |plan: &Arc<dyn ExecutionPlan>| plan.output_partitioning().partition_count() == 1;
        let is_worth_it = work >= WORK_MIN && begins_within(first, all * BEGIN_SHARE);
        if !is_worth_it || !is_one(first) || !is_one(&otherwise) || first.schema() != otherwise.schema() {
            return otherwise;
        }
        let (first, properties) = (Arc::clone(first), in_one_part(&otherwise));
        Arc::new(TrialExec { first, otherwise, work, properties })
    }

    /// What is tried first.
    pub fn first(&self) -> &Arc<dyn ExecutionPlan> {
        &self.first
    }

    /// The other plan.
    pub fn otherwise(&self) -> &Arc<dyn ExecutionPlan> {
        &self.otherwise
    }

    /// What the first may take, as of [`Access::work`](crate::access::Access::work).
    pub fn work(&self) -> f64 {
        self.work
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

/// What the first few rows of a plan look up takes no more than that.
fn begins_within(plan: &Arc<dyn ExecutionPlan>, work: f64) -> bool {
    let join = plan.downcast_ref::<LookupJoinExec>();
    join.is_none_or(|join| join.work_at_first().is_some_and(|first| first <= work))
        && plan.children().into_iter().all(|child| begins_within(child, work))
}

/// All rows; `None`: they are too many.
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

/// What a plan may take.
#[derive(Debug)]
struct Budget {
    scans: Vec<Arc<Counters>>,
    work: f64,
    /// It took more, and its rows are not all.
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

    /// The plan, whose scans that were asked for about so many rows end when it is spent.
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

fn counters_of(plan: &Arc<dyn ExecutionPlan>, scans: &mut Vec<Arc<Counters>>) {
    scans.extend(plan.downcast_ref::<ScanExec>().map(|scan| Arc::clone(&scan.counters)));
    plan.children().into_iter().for_each(|child| counters_of(child, scans));
}

/// Rows, as long as they are within a budget.
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
