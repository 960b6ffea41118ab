//! The rows that a join finds in a table, until the sort above it, which keeps the first few, has seen enough.
//!
//! `SELECT ... FROM follows f JOIN post p ON p.author = f.dst WHERE f.src = 7 ORDER BY p.at DESC LIMIT 20`: an index on
//! `(author, at DESC)` has the posts of each author in order, and merged they are all in order. The sort tells, by what
//! it has so far, which rows can still be among the first ones. In order, the first one that cannot is nearly the last.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use datafusion::common::ScalarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::collect_columns;

use crate::df::errors::df_error;
use crate::error::Result;
use crate::exec::scan::{BATCH_ROWS, Scan};

/// Rows (count) of the first batch.
const ROWS_FIRST: usize = 32;

/// A scan, which ends when the rows that would come are wanted no more, if it is in some order.
pub struct UntilEnough {
    scan: Scan,
    /// What a row must be to be wanted, more and more.
    wanted: Vec<Arc<dyn PhysicalExpr>>,
    /// Columns in whose order rows come. `wanted` may be about more of them, by which equal rows are in order.
    order: Vec<usize>,
    /// Rows of the next batch, at the most.
    rows: usize,
    last: Option<RecordBatch>,
    /// A row that is not wanted.
    unwanted: Option<RecordBatch>,
}

impl UntilEnough {
    /// `order`: columns of the scan, by which its rows are in order. `wanted`: conditions that a row which comes after
    /// others, in an order of these and perhaps more columns, fails if one of those does; a condition that is not about
    /// these columns is not heeded.
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

    /// The next rows, possibly none of them yet; `None` when there are no more, or nobody wants them.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.is_over()? {
            return Ok(None);
        }
        let batch = self.scan.next_batch_of(self.rows)?;
        let last = batch.as_ref().and_then(|batch| Some(batch.slice(batch.num_rows().checked_sub(1)?, 1)));
        if last.is_some() {
            // The more were not enough, the more are likely to be asked for.
            self.rows = (4 * self.rows).min(BATCH_ROWS);
            self.last = last;
        }
        Ok(batch)
    }

    /// No row after the last one is wanted.
    fn is_over(&mut self) -> Result<bool> {
        let Some(last) = &self.last else { return Ok(false) };
        if let Some(unwanted) = &self.unwanted {
            // Of the rows that are equal in the columns of the order, others may still be wanted.
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
