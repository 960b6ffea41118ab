//! OFFSET, where rows lie in the order of the first column only that they are sorted by.
//!
//! For `ORDER BY at, id LIMIT 20 OFFSET 10000` over an index on `at`, DataFusion keeps 10,020 rows, each with all its
//! columns, to give out 20. But the rows with a smaller `at` than the first that is wanted come before it, in whatever
//! order: [`PageExec`] passes over the entries up to there, making nothing of them, and sorts what follows.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::concat;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::TryStreamExt;

use super::scan::ScanExec;
use crate::df::errors::{df_error, to_df};
use crate::df::kept::plan::picked;
use crate::df::operators::operator;
use crate::df::tree::RewriteTree;
use crate::error::Result;
use crate::row::value_at;

/// Rows (count) to pass over that are worth it.
const SKIP_MIN: usize = 500;

/// Rows (count) before the first one wanted among which those that are equal to it are looked for.
const EQUAL_EXPECTED: usize = 256;

/// Puts [`PageExec`] above the limits of sorts that are likely to have such rows.
#[derive(Debug)]
pub struct Pages;

impl PhysicalOptimizerRule for Pages {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> DfResult<Arc<dyn ExecutionPlan>> {
        plan.rewrite_up(|node| {
            Ok(match Page::of(&node) {
                Some(_) => Transformed::yes(Arc::new(PageExec { limit: node })),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "pages"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Some rows of a sorted scan, behind others.
struct Page<'p> {
    sort: &'p SortExec,
    scan: &'p ScanExec,
    skip: usize,
    fetch: usize,
}

impl Page<'_> {
    fn of(limit: &Arc<dyn ExecutionPlan>) -> Option<Page<'_>> {
        let limit = limit.downcast_ref::<GlobalLimitExec>()?;
        let (skip, fetch) = (limit.skip(), limit.fetch()?);
        let sort = limit.input().downcast_ref::<SortExec>().filter(|sort| sort.fetch().is_some())?;
        let (scan, _) = picked(sort.input())?;
        (skip >= SKIP_MIN && scan.is_led()).then_some(Page { sort, scan, skip, fetch })
    }

    /// The same rows of a scan that begins where they may be, so many rows behind its own beginning.
    fn behind(&self, scan: ScanExec, passed: usize) -> DfResult<Arc<dyn ExecutionPlan>> {
        let scan: Arc<dyn ExecutionPlan> = Arc::new(scan);
        let input = Arc::clone(self.sort.input()).rewrite_up(|node| {
            Ok(if node.is::<ScanExec>() {
                Transformed::yes(Arc::clone(&scan))
            } else {
                Transformed::no(node)
            })
        })?;
        let skip = self.skip - passed;
        let sort = SortExec::new(self.sort.expr().clone(), input.data).with_fetch(Some(skip + self.fetch));
        Ok(Arc::new(GlobalLimitExec::new(Arc::new(sort), skip, Some(self.fetch))))
    }

    /// The rows by which the scan is in order, the last of which is the first one wanted, and how many are before them;
    /// no rows, if there are not so many. `None`: it has them only with whole rows.
    async fn before(&self, rows: usize) -> Result<Option<(ArrayRef, usize)>> {
        let passed = self.skip.saturating_sub(rows);
        let Some(mut scan) = self.scan.leading(passed as u64, (self.skip - passed) as u64 + 1)? else {
            return Ok(None);
        };
        let mut columns = vec![arrow::array::new_empty_array(scan.schema().field(0).data_type())];
        while let Some(batch) = scan.next_batch()? {
            columns.push(Arc::clone(batch.column(0)));
            // Gives a waiting cancellation its turn.
            tokio::task::consume_budget().await;
        }
        let columns: Vec<&dyn Array> = columns.iter().map(|column| &**column).collect();
        Ok(Some((concat(&columns)?, passed)))
    }

    /// The plan that gives just these rows; `None`, if that takes no less.
    async fn plan(&self) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(ty) = self.scan.leading_type() else { return Ok(None) };
        for rows in [EQUAL_EXPECTED, self.skip] {
            let Some((leading, passed)) = self.before(rows).await? else { return Ok(None) };
            let Some(last) = leading.len().checked_sub(1).filter(|last| passed + last == self.skip) else {
                return Ok(None);
            };
            let value = value_at(&leading, last, ty)?;
            let mut first = last;
            while first > 0 && value_at(&leading, first - 1, ty)? == value {
                first -= 1;
            }
            // Those before may be equal, too.
            if first == 0 && passed > 0 {
                continue;
            }
            // By one more the sort sees that they are all there.
            let rows = self.skip - (passed + first) + self.fetch + 1;
            let from = self.scan.begun_at(value, rows as u64)?;
            return from.map(|scan| self.behind(scan, passed + first).map_err(df_error)).transpose();
        }
        Ok(None)
    }
}

/// A limit above a sort of a scan.
#[derive(Debug)]
struct PageExec {
    limit: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for PageExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageExec")
    }
}

impl ExecutionPlan for PageExec {
    operator!(PageExec(limit), _this => Arc::new(PageExec { limit }));

    fn properties(&self) -> &Arc<PlanProperties> {
        self.limit.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let limit = Arc::clone(&self.limit);
        let rows = async move {
            let page = match Page::of(&limit) {
                Some(page) => page.plan().await.map_err(to_df)?,
                None => None,
            };
            page.unwrap_or_else(|| Arc::clone(&limit)).execute(partition, context)
        };
        let rows = futures::stream::once(rows).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}
