//! The result of a statement: rows as a stream of batches, a row count, warnings.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use futures::StreamExt;

use super::damaged;
use super::runtime::Runtime;
use crate::catalog::Catalog;
use crate::df::below::renamed;
use crate::df::cached::alone::Alone;
use crate::df::query::BatchStream;
use crate::error::Result;
use crate::exec::next_rows::NextRows;
use crate::exec::scan::BATCH_ROWS;
use crate::exec::watch::CancelHandle;
use crate::row::type_name;
use crate::value::name_sql;

/// A warning: the statement works but may not do what was meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The code of a LINT rule, such as `RK001`, if the warning comes from one.
    pub code: Option<String>,
    /// What will happen.
    pub what: String,
    /// Why.
    pub why: String,
    /// What to write instead.
    pub hint: String,
}

impl Warning {
    /// The warning with the name of the table or index that it is about in front, for scripts make many.
    pub(crate) fn of(self, name: &str) -> Warning {
        Warning { what: format!("{}: {}", name_sql(name), self.what), ..self }
    }
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
    /// The statement's tag: `SELECT`, `INSERT`, `CREATE TABLE`.
    pub tag: &'static str,
    /// Output columns; none if the statement returns no rows.
    pub columns: Arc<[OutputColumn]>,
    /// The rows, read as the stream is consumed.
    pub rows: RowStream,
    /// Number of rows written, if the statement writes.
    pub affected: Option<u64>,
    /// Warnings about a statement that succeeded.
    pub warnings: Vec<Warning>,
}

impl Outcome {
    /// The outcome of a statement that gives rows and writes none.
    pub(super) fn of_rows(tag: &'static str, rows: RowStream) -> Outcome {
        Outcome { tag, columns: rows.columns(), rows, affected: None, warnings: Vec::new() }
    }
}

/// A stream of record batches. Iterate to block for each, or await [`RowStream::next_batch`].
pub struct RowStream {
    schema: SchemaRef,
    /// A batch that comes before those of `source`.
    first: Option<Result<RecordBatch>>,
    source: BatchSource,
    /// Rows (count) to read at once when rows are fetched one by one.
    rows_max: usize,
    runtime: Runtime,
    cancel: CancelHandle,
    /// The definitions of what it reads, if it reads.
    catalog: Option<Arc<Catalog>>,
    /// Batches come under other names than those of `schema`.
    renames: bool,
}

/// Initial number of rows read at once when rows are fetched one by one; it doubles each time.
const ROWS_FIRST: usize = 256;

/// Where the rows come from.
pub(super) enum BatchSource {
    /// Any plan, as a stream.
    Batches(BatchStream),
    /// A plan that runs in the caller's thread.
    Alone(Box<Alone>),
    /// Rows in memory.
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
        source: BatchSource,
        runtime: Runtime,
        cancel: CancelHandle,
    ) -> RowStream {
        RowStream {
            schema,
            first: None,
            source,
            rows_max: ROWS_FIRST,
            runtime,
            cancel,
            catalog: None,
            renames: false,
        }
    }

    /// The stream, whose errors name the table or index of this catalog that is damaged.
    pub(super) fn over(self, catalog: Arc<Catalog>) -> RowStream {
        RowStream { catalog: Some(catalog), ..self }
    }

    /// The stream with other names for its columns.
    pub(super) fn named(self, name: impl Fn(&str) -> String) -> RowStream {
        let fields =
            self.schema.fields().iter().map(|field| field.as_ref().clone().with_name(name(field.name())));
        RowStream { schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())), renames: true, ..self }
    }

    /// The stream with a batch put in front.
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
        if let Some(first) = self.first.take() {
            return self.out(Some(first));
        }
        let BatchSource::Batches(batches) = &mut self.source else { return self.next_ready() };
        let batch = self.cancel.guard(async { Ok(batches.next().await) }).await;
        self.out(batch.unwrap_or_else(|e| Some(Err(e))))
    }

    /// Ends the stream after an error: a plan that failed half way must not be continued.
    fn or_end<T>(&mut self, next: Option<Result<T>>) -> Option<Result<T>> {
        let Some(Err(error)) = next else { return next };
        self.source = BatchSource::Batch(None);
        Some(Err(match &self.catalog {
            Some(catalog) => damaged::of_whom(catalog, error),
            None => error,
        }))
    }

    /// A batch as it is given out.
    fn out(&mut self, next: Option<Result<RecordBatch>>) -> Option<Result<RecordBatch>> {
        let named = |batch: RecordBatch| match self.renames {
            true => renamed(batch.columns().to_vec(), batch.num_rows(), &self.schema),
            false => Ok(batch),
        };
        let next = next.map(|batch| batch.and_then(named));
        self.or_end(next)
    }

    /// The next batch of a source that needs no waiting.
    fn next_ready(&mut self) -> Option<Result<RecordBatch>> {
        let next = match &mut self.source {
            BatchSource::Alone(alone) => match self.cancel.check() {
                Ok(()) => alone.next_batch().transpose(),
                Err(e) => Some(Err(e)),
            },
            // Not cancellable any more: the statement's writes are done.
            BatchSource::Batch(batch) => batch.take().map(Ok),
            BatchSource::Batches(_) => None,
        };
        self.out(next)
    }

    /// The next rows without making a batch of them; `None` if the source only gives batches.
    pub(super) fn next_rows(&mut self) -> Option<Result<Option<NextRows>>> {
        let BatchSource::Alone(alone) = &mut self.source else { return None };
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
        type_name: type_name(field),
    };
    schema.fields().iter().map(column).collect()
}

impl Iterator for RowStream {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(first) = self.first.take() {
            return self.out(Some(first));
        }
        if !matches!(self.source, BatchSource::Batches(_)) {
            return self.next_ready();
        }
        let runtime = self.runtime.clone();
        runtime.block_on(async { self.next_batch().await.transpose() }).transpose()
    }
}
