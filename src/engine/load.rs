//! Bulk loads from Rust: rows, sorted, through the store's bulk door.

use super::api::TableHandle;
use super::copy;
use crate::engine::OnProgress;
use crate::error::{Error, Result};
use crate::key::ColumnId;
use crate::value::Value;

/// Rows taken from the caller at a time, by count.
const CHUNK_ROWS: usize = 8192;

impl TableHandle {
    /// Adds many new rows, and their index entries, in one atomic step: the fastest way in. A row has
    /// one value for each column, in order. Gives the number of rows.
    ///
    /// Memory stays flat: entries are gathered up to a limit, sorted, and written. Other writers wait.
    ///
    /// Errors: a rowkey that exists, a value that does not fit its column or key part, a row of
    /// another length. Nothing of the load is there then.
    ///
    /// ```
    /// # fn main() -> rowkeydb::Result<()> {
    /// # let db = rowkeydb::Database::in_memory()?;
    /// db.execute("CREATE TABLE t (id BIGINT, note TEXT, PRIMARY KEY (reverse(lpad(id, 4))))")?;
    /// let rows = (1..=1000).map(|id| vec![id.into(), "a note".into()]);
    /// assert_eq!(db.table("t")?.load(rows)?, 1000);
    /// # Ok(())
    /// # }
    /// ```
    pub fn load(&self, rows: impl IntoIterator<Item = Vec<Value>>) -> Result<u64> {
        self.load_with(rows, None)
    }

    /// [`TableHandle::load`], telling how far it is.
    pub fn load_with(
        &self,
        rows: impl IntoIterator<Item = Vec<Value>>,
        on_progress: Option<OnProgress>,
    ) -> Result<u64> {
        let mut session = self.db.session();
        if let Some(on_progress) = on_progress {
            session.on_progress(on_progress);
        }
        let columns: Vec<ColumnId> = self.table.live_columns().map(|(id, _)| id).collect();
        let mut rows = rows.into_iter();
        let mut next = || {
            let chunk: Result<Vec<_>> =
                rows.by_ref().take(CHUNK_ROWS).map(|row| cells(row, columns.len())).collect();
            chunk.map(|chunk| (!chunk.is_empty()).then_some(chunk))
        };
        copy::load(&session.view()?, &self.table, &columns, &mut next)
    }
}

fn cells(row: Vec<Value>, columns: usize) -> Result<Vec<Option<Value>>> {
    if row.len() != columns {
        return Err(Error::invalid(format!("a row has {} values for {columns} columns", row.len()))
            .hint("give every row one value for each column, in order"));
    }
    Ok(row.into_iter().map(Some).collect())
}
