//! Reads the table of a join in the order of a top-k sort above, until the sort has enough.
//!
//! `SELECT ... FROM follows f JOIN post p ON p.author = f.dst WHERE f.src = 7 ORDER BY p.at DESC LIMIT 20`: an index on
//! `(author, at DESC)` has the posts of each author in order, and a merge of these has all in order. The sort's dynamic
//! filter tells which rows can still be among the first. With rows in order, reading ends soon after the first one that
//! cannot.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use datafusion::common::ScalarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::collect_columns;

use crate::df::errors::df_error;
use crate::error::Result;
use crate::exec::scan::{BATCH_ROWS, Scan, grown};

/// Rows (count) of the first batch.
const ROWS_FIRST: usize = 32;

/// A scan that, if its rows come in an order, ends when no further row can be wanted.
pub struct UntilEnough {
    scan: Scan,
    /// Dynamic filters of the sort above, which tighten while it runs.
    wanted: Vec<Arc<dyn PhysicalExpr>>,
    /// Columns by which the rows come sorted. `wanted` may read more columns, which break ties.
    order: Vec<usize>,
    /// Most rows (count) of the next batch.
    rows: usize,
    last: Option<RecordBatch>,
    /// A row that failed a filter.
    unwanted: Option<RecordBatch>,
}

impl UntilEnough {
    /// `order`: columns of the scan by which its rows are sorted. `wanted`: filters that, once a row has failed, fail
    /// for all later rows in an order by these and perhaps more columns; filters that do not read all columns of
    /// `order` are ignored.
    pub fn new(scan: Scan, order: Vec<usize>, mut wanted: Vec<Arc<dyn PhysicalExpr>>) -> UntilEnough {
        wanted.retain(|condition| {
            let columns = collect_columns(condition);
            order.iter().all(|at| columns.iter().any(|column| column.index() == *at))
        });
        UntilEnough { scan, wanted, order, rows: ROWS_FIRST, last: None, unwanted: None }
    }

    /// All rows of a scan.
    pub fn all(scan: Scan) -> UntilEnough {
        UntilEnough { rows: BATCH_ROWS, ..UntilEnough::new(scan, Vec::new(), Vec::new()) }
    }

    /// The next rows, possibly none of them yet; `None` if there are no more, or none that are wanted.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.is_over()? {
            return Ok(None);
        }
        let batch = self.scan.next_batch_of(self.rows)?;
        let last = batch.as_ref().and_then(|batch| Some(batch.slice(batch.num_rows().checked_sub(1)?, 1)));
        if last.is_some() {
            self.rows = grown(self.rows, BATCH_ROWS);
            self.last = last;
        }
        Ok(batch)
    }

    /// No row after the last one is wanted.
    fn is_over(&mut self) -> Result<bool> {
        let Some(last) = &self.last else { return Ok(false) };
        if let Some(unwanted) = &self.unwanted {
            // Rows with equal sort columns may still pass.
            let is_equal = |column: &usize| -> Result<bool> {
                let value =
                    |row: &RecordBatch| ScalarValue::try_from_array(row.column(*column), 0).map_err(df_error);
                Ok(value(unwanted)? == value(last)?)
            };
            for column in &self.order {
                if !is_equal(column)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        for condition in &self.wanted {
            let passes = condition.evaluate(last).and_then(|value| value.into_array(1)).map_err(df_error)?;
            let fails =
                passes.as_boolean_opt().is_some_and(|passes| passes.iter().next() == Some(Some(false)));
            if fails {
                self.unwanted = Some(last.clone());
                let by_order =
                    collect_columns(condition).iter().all(|column| self.order.contains(&column.index()));
                return Ok(by_order);
            }
        }
        Ok(false)
    }
}
