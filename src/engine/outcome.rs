//! What a statement gives back: rows as a stream of batches, a count, warnings.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::StreamExt;

use super::runtime::Runtime;
use crate::df::kept::alone::Alone;
use crate::df::query::BatchStream;
use crate::error::Result;
use crate::exec::kept::NextRows;
use crate::exec::scan::BATCH_ROWS;
use crate::exec::watch::CancelHandle;
use crate::row::column_type_of;

/// Something that works but may not be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// LINT's code for it, such as `RK001`, if it is one of its rules.
    pub code: Option<String>,
    /// What will happen.
    pub what: String,
    /// Why.
    pub why: String,
    /// What to write instead.
    pub hint: String,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let code = self.code.as_ref().map_or_else(String::new, |code| format!(" {code}"));
        write!(f, "warning{code}: {}\n  why: {}\n hint: {}", self.what, self.why, self.hint)
    }
}

/// One output column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputColumn {
    /// Name.
    pub name: String,
    /// SQL type.
    pub type_name: String,
}

/// The result of a statement: its tag, columns, rows, count of rows written, and warnings.
#[derive(Debug)]
pub struct Outcome {
    /// What ran: `SELECT`, `INSERT`, `CREATE TABLE`.
    pub tag: &'static str,
    /// Output columns; none if the statement returns no rows.
    pub columns: Arc<[OutputColumn]>,
    /// The rows, read while they are asked for.
    pub rows: RowStream,
    /// Rows written, if it writes.
    pub affected: Option<u64>,
    /// What the user should know although it worked.
    pub warnings: Vec<Warning>,
}

/// Record batches, one after the other. Iterate to block for each, or [`RowStream::next_batch`] to
/// await it.
pub struct RowStream {
    schema: SchemaRef,
    /// What comes before all that the source has.
    first: Option<Result<RecordBatch>>,
    source: Source,
    /// Rows (count) to read at once, for those who ask for them one by one.
    rows_max: usize,
    runtime: Runtime,
    cancel: CancelHandle,
}

/// Rows (count) that are read at once when they are asked for one by one: at first, then more and more.
const ROWS_FIRST: usize = 256;

/// Where rows come from.
pub(super) enum Source {
    /// Any plan.
    Batches(BatchStream),
    /// A plan that needs no threads.
    Alone(Box<Alone>),
    /// They are there already.
    Batch(Option<RecordBatch>),
}

impl std::fmt::Debug for RowStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RowStream({:?})", self.schema.fields().iter().map(|f| f.name()).collect::<Vec<_>>())
    }
}

impl RowStream {
    pub(super) fn new(
        schema: SchemaRef,
        source: Source,
        runtime: Runtime,
        cancel: CancelHandle,
    ) -> RowStream {
        RowStream { schema, first: None, source, rows_max: ROWS_FIRST, runtime, cancel }
    }

    /// The same batches behind another one.
    pub(super) fn after(self, first: Result<RecordBatch>) -> RowStream {
        let is_empty = first.as_ref().is_ok_and(|batch| batch.num_rows() == 0);
        RowStream { first: (!is_empty).then_some(first), ..self }
    }

    /// Columns of every batch.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The next batch, which may be empty; `None` at the end, and after an error.
    pub async fn next_batch(&mut self) -> Option<Result<RecordBatch>> {
        if self.first.is_some() {
            return self.first.take();
        }
        let Source::Batches(batches) = &mut self.source else { return self.next_ready() };
        let batch = self.cancel.guard(async { Ok(batches.next().await) }).await;
        self.or_end(batch.unwrap_or_else(|e| Some(Err(e))))
    }

    /// Nothing comes after an error: what failed half way would go on anywhere.
    fn or_end<T>(&mut self, next: Option<Result<T>>) -> Option<Result<T>> {
        if let Some(Err(_)) = &next {
            self.source = Source::Batch(None);
        }
        next
    }

    /// The next batch of a source that nobody waits for.
    fn next_ready(&mut self) -> Option<Result<RecordBatch>> {
        let next = match &mut self.source {
            Source::Alone(alone) => match self.cancel.check() {
                Ok(()) => alone.next_batch().transpose(),
                Err(e) => Some(Err(e)),
            },
            // It is too late to stop: what the statement wrote is written, and must not be called cancelled.
            Source::Batch(batch) => batch.take().map(Ok),
            Source::Batches(_) => None,
        };
        self.or_end(next)
    }

    /// The next rows, where they need not come in batches: `None` where they do.
    pub(super) fn next_rows(&mut self) -> Option<Result<Option<NextRows>>> {
        let Source::Alone(alone) = &mut self.source else { return None };
        let rows_max = self.rows_max;
        self.rows_max = (rows_max * 2).min(BATCH_ROWS);
        let rows = self.cancel.check().and_then(|()| alone.next_rows(rows_max));
        self.or_end(Some(rows))
    }

    /// Names and types of the columns.
    pub fn columns(&self) -> Arc<[OutputColumn]> {
        output_columns(&self.schema)
    }
}

/// Names and types of a schema's columns.
pub(super) fn output_columns(schema: &SchemaRef) -> Arc<[OutputColumn]> {
    let column = |field: &Arc<arrow::datatypes::Field>| OutputColumn {
        name: field.name().clone(),
        type_name: column_type_of(field).map_or_else(|| field.data_type().to_string(), |ty| ty.sql_name()),
    };
    schema.fields().iter().map(column).collect()
}

impl Iterator for RowStream {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.first.is_some() {
            return self.first.take();
        }
        if !matches!(self.source, Source::Batches(_)) {
            return self.next_ready();
        }
        let runtime = self.runtime.clone();
        runtime.block_on(async { self.next_batch().await.transpose() }).transpose()
    }
}
