//! Speeds up OFFSET where rows are sorted by a prefix of the order only.
//!
//! For `ORDER BY at, id LIMIT 20 OFFSET 10000` over an index on `at`, DataFusion keeps 10,020 rows with all their
//! columns to output 20. But rows with a smaller `at` than the first wanted row precede it in any case: [`PageExec`]
//! skips their entries without reading rows, and sorts the rest.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::concat;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::TryStreamExt;

use super::scan::ScanExec;
use crate::df::below::picked;
use crate::df::errors::{df_error, to_df};
use crate::df::operators::operator;
use crate::df::tree::RewriteTree;
use crate::error::Result;
use crate::row::value_at;

/// Smallest OFFSET (rows) for which it pays off.
const SKIP_MIN: usize = 500;

/// Rows (count) before the page that are first searched for ties with its first row.
const EQUAL_EXPECTED: usize = 256;

/// Puts [`PageExec`] above limits of sorts whose input is sorted by a prefix.
pub fn pages(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    plan.rewrite_up(|node| {
        Ok(match Page::of(&node) {
            Some(_) => Transformed::yes(Arc::new(PageExec { limit: node })),
            None => Transformed::no(node),
        })
    })
    .data()
}

/// LIMIT and OFFSET of a sorted scan.
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

    /// The page over a scan that begins `passed` rows later.
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

    /// Values of the leading column up to the first row of the page, and the number of rows before them; fewer values
    /// if the scan ends earlier. `None`: reading the leading column takes whole rows.
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

    /// A plan that reads this page only; `None` if that saves nothing.
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
            // Earlier rows may tie, too.
            if first == 0 && passed > 0 {
                continue;
            }
            // One more: only the next row shows the sort that the page is complete.
            let rows = self.skip - (passed + first) + self.fetch + 1;
            let from = self.scan.begun_at(value, rows as u64)?;
            return from.map(|scan| self.behind(scan, passed + first).map_err(df_error)).transpose();
        }
        Ok(None)
    }
}

/// The limit of a sorted scan; it chooses its plan when executed.
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
