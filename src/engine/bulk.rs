//! INSERT ... SELECT: turns a query's batches into rows; a few go into one write batch, many to the bulk
//! loader.
//!
//! The query reads the statement's snapshot, so `INSERT INTO t SELECT ... FROM t` terminates: the query does
//! not see what the loader writes. However many rows there are, memory holds one batch of them and the
//! loader's buffer.

use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::StreamExt;

use super::copy::load;
use super::plans::Asked;
use super::rows::values_of;
use super::view::View;
use crate::df::query::BatchStream;
use crate::error::Result;
use crate::exec::watch::CancelHandle;
use crate::key::ColumnId;
use crate::schema::TableDef;
use crate::value::Value;

/// More rows than this are worth the writer lock that a load holds while its query runs.
const FEW_ROWS: usize = 16_384;

/// A query's rows on their way into a table.
pub struct Source {
    batches: BatchStream,
    width: usize,
    rows: Vec<Vec<Option<Value>>>,
    cancel: CancelHandle,
}

impl Source {
    /// Starts the query.
    pub async fn open(view: &View, asked: Arc<Asked>, params: &[Value]) -> Result<Source> {
        let (batches, schema) = view.stream_again(asked, params).await?;
        Ok(Source {
            batches,
            width: schema.fields().len(),
            rows: Vec::new(),
            cancel: view.watch.cancel.clone(),
        })
    }

    /// Values per row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Reads all rows, or, if `may_load`, stops as soon as they are more than a few. Gives whether they are
    /// to be loaded.
    pub async fn gather(&mut self, may_load: bool) -> Result<bool> {
        while let Some(batch) = self.next_batch().await? {
            self.rows.extend(values_of(&batch)?);
            if may_load && self.rows.len() > FEW_ROWS {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The rows gathered, if `gather` has read them all.
    pub fn into_rows(self) -> Vec<Vec<Option<Value>>> {
        self.rows
    }

    /// Loads the rows gathered and all that follow in one atomic step; gives their number.
    pub fn load(mut self, view: &View, table: &TableDef, columns: &[ColumnId]) -> Result<u64> {
        let label = format!("inserting into {}", table.name);
        let runtime = view.db.runtime().clone();
        let mut read = 0;
        load(view, table, columns, None, || {
            let mut rows = std::mem::take(&mut self.rows);
            if rows.is_empty() {
                match runtime.block_on(self.next_batch())? {
                    Some(batch) => rows = values_of(&batch)?,
                    None => {
                        view.watch.finish(&label, read, "rows");
                        return Ok(None);
                    }
                }
            }
            read += rows.len() as u64;
            view.watch.step(&label, read, None, "rows")?;
            Ok(Some(rows))
        })
    }

    /// The next batch. Errors: the statement was cancelled.
    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let batches = &mut self.batches;
        self.cancel.guard(async { batches.next().await.transpose() }).await
    }
}
