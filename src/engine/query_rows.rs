//! INSERT ... SELECT: turns a query's batches into rows; a few go into one write batch, many to the bulk
//! loader, or, where they may meet existing rows, to `write::merge`.
//!
//! The query reads the statement's snapshot, so `INSERT INTO t SELECT ... FROM t` terminates: the query does
//! not see what is written. However many rows there are, memory holds one batch of them and a buffer in which
//! they are sorted.

use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::StreamExt;

use super::plans::SourceQuery;
use super::rows::values_of;
use super::view::StatementView;
use crate::df::query::BatchStream;
use crate::error::Result;
use crate::exec::transfer::RowCells;
use crate::exec::watch::CancelHandle;
use crate::schema::TableDef;
use crate::value::Value;

/// More rows than this are worth the writer lock that is held while the query runs. Small in tests, so that they
/// see both ways.
const FEW_ROWS: usize = if cfg!(test) { 64 } else { 16_384 };

/// A query's rows on their way into a table.
pub struct QueryRows {
    batches: BatchStream,
    width: usize,
    /// Rows not yet taken.
    rows: Vec<RowCells>,
    /// Rows taken (count).
    taken: u64,
    cancel: CancelHandle,
}

impl QueryRows {
    /// Starts the query. `in_order`: its rows come in the order in which one thread finds them.
    pub async fn open(
        view: &StatementView,
        asked: Arc<SourceQuery>,
        params: &[Value],
        in_order: bool,
    ) -> Result<QueryRows> {
        let (batches, schema) = view.stream_again(asked, params, in_order).await?;
        Ok(QueryRows {
            batches,
            width: schema.fields().len(),
            rows: Vec::new(),
            taken: 0,
            cancel: view.watch.cancel.clone(),
        })
    }

    /// Values per row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Reads all rows, or, if `may_be_many`, stops as soon as they are more than a few. Gives whether they are
    /// many.
    pub async fn gather(&mut self, may_be_many: bool) -> Result<bool> {
        while let Some(batch) = self.next_batch().await? {
            self.rows.extend(values_of(&batch)?);
            if may_be_many && self.rows.len() > FEW_ROWS {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The rows gathered, if `gather` has read them all.
    pub fn into_rows(self) -> Vec<RowCells> {
        self.rows
    }

    /// The rows gathered, and at the next calls those that follow. Blocks.
    ///
    /// Errors: those of the query; the statement was cancelled.
    pub fn next_rows(&mut self, view: &StatementView, table: &TableDef) -> Result<Option<Vec<RowCells>>> {
        let label = format!("inserting into {}", table.name);
        let mut rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            let Some(batch) = view.db.runtime().block_on(self.next_batch())? else {
                view.watch.finish(&label, self.taken, "rows");
                return Ok(None);
            };
            rows = values_of(&batch)?;
        }
        self.taken += rows.len() as u64;
        view.watch.step(&label, self.taken, None, "rows")?;
        Ok(Some(rows))
    }

    /// The next batch. Errors: the statement was cancelled.
    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let batches = &mut self.batches;
        self.cancel.guard(async { batches.next().await.transpose() }).await
    }
}
