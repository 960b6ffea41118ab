//! Parquet files; columns are matched by name.

use std::fs::File;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::{FileWriter, NewFile, RowCells, RowSource, TargetColumns, cell_error, positions};
use crate::error::{Error, Result, sqlstate};
use crate::row::any_value_at;
use crate::value::ColumnType;

/// Rows decoded at a time.
const BATCH_ROWS: usize = 4096;

/// Reads the rows of a Parquet file. Times are truncated to microseconds; values without an SQL type (lists, structs,
/// times of day) become text.
pub struct ParquetReader {
    /// `None` after a failure: the decoder's state is undefined then.
    batches: Option<ParquetRecordBatchReader>,
    batch: Option<RecordBatch>,
    /// Next row of `batch`.
    at: usize,
    target: Vec<(String, ColumnType)>,
    /// For each column of the file, its index in the target.
    places: Vec<usize>,
    file_bytes: u64,
    rows: u64,
    rows_read: u64,
}

impl ParquetReader {
    /// Reads the file's footer.
    ///
    /// Errors: `Invalid` when it is not Parquet, or has a column that `target` lacks.
    pub fn new(file: File, target: &TargetColumns) -> Result<Self> {
        let file_bytes = file.metadata()?.len();
        // The Arrow schema that some writers embed adds nothing here, and makes arrow-ipc panic when damaged.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let builder = guarded(|| ParquetRecordBatchReaderBuilder::try_new_with_options(file, options))?;
        let places = positions(target, builder.schema().fields().iter().map(|f| f.name().as_str()))?;
        let rows = u64::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(0);
        Ok(ParquetReader {
            batches: Some(guarded(|| builder.with_batch_size(BATCH_ROWS).build())?),
            batch: None,
            at: 0,
            target: target.to_vec(),
            places,
            file_bytes,
            rows,
            rows_read: 0,
        })
    }

    /// Decodes the next batch.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let Some(batches) = &mut self.batches else {
            return Ok(None);
        };
        let batch = guarded(|| batches.next().transpose().map_err(undecoded));
        if batch.is_err() {
            self.batches = None;
        }
        batch
    }

    fn cells(&self, batch: &RecordBatch) -> Result<RowCells> {
        let row = self.rows_read;
        let mut cells = vec![None; self.target.len()];
        for (array, &place) in batch.columns().iter().zip(&self.places) {
            let (name, ty) = &self.target[place];
            let value = any_value_at(array, self.at).map_err(|e| {
                Error::invalid(format!("row {row}, column {name}: {}", e.what()))
                    .state(e.sqlstate())
                    .caused_by(e)
            })?;
            let value = value.cast(*ty).map_err(|e| cell_error(format_args!("row {row}"), name, e))?;
            cells[place] = Some(value);
        }
        Ok(cells)
    }
}

/// Runs a step of the Parquet decoder, which panics on some damaged files instead of returning an error.
fn guarded<T, E: Into<Error>>(step: impl FnOnce() -> Result<T, E>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(done) => done.map_err(Into::into),
        Err(_) => Err(unusable("its bytes are damaged")),
    }
}

/// The error for a batch that could not be read.
fn undecoded(e: ArrowError) -> Error {
    match e {
        ArrowError::IoError(..) | ArrowError::NotYetImplemented(_) => e.into(),
        e => unusable(e.to_string()).caused_by(e),
    }
}

fn unusable(why: impl Into<String>) -> Error {
    Error::invalid("the Parquet file cannot be used").why(why).state(sqlstate::IO)
}

impl RowSource for ParquetReader {
    fn next_row(&mut self) -> Result<Option<Result<RowCells>>> {
        while self.batch.as_ref().is_none_or(|batch| self.at == batch.num_rows()) {
            let Some(batch) = self.next_batch()? else {
                return Ok(None);
            };
            (self.batch, self.at) = (Some(batch), 0);
        }
        self.rows_read += 1;
        let row = self.batch.as_ref().map(|batch| self.cells(batch));
        self.at += 1;
        Ok(row)
    }

    fn place(&self) -> String {
        format!("row {}", self.rows_read)
    }

    /// An estimate, from the share of the rows read.
    fn bytes_read(&self) -> u64 {
        let share = u128::from(self.file_bytes) * u128::from(self.rows_read) / u128::from(self.rows.max(1));
        share as u64
    }
}

/// Limit of a row group, in bytes; it is also limited to a million rows.
const ROW_GROUP_BYTES: usize = 128 << 20;

/// Writes rows as Parquet, compressed with Snappy.
pub struct ParquetWriter {
    writer: ArrowWriter<NewFile>,
}

impl ParquetWriter {
    /// A writer of rows of `schema`.
    ///
    /// Errors: `Unsupported` when Parquet has no form for a column's type.
    pub fn new(out: NewFile, schema: SchemaRef) -> Result<Self> {
        // A row group is in memory until it is written.
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_bytes(Some(ROW_GROUP_BYTES))
            .build();
        Ok(ParquetWriter { writer: ArrowWriter::try_new(out, schema, Some(properties))? })
    }
}

impl FileWriter for ParquetWriter {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        Ok(self.writer.write(batch)?)
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        let mut out = self.writer.into_inner()?;
        out.flush()?;
        out.commit().map(|()| 0)
    }
}

impl From<ParquetError> for Error {
    fn from(e: ParquetError) -> Self {
        let e = match e {
            ParquetError::External(source) => match source.downcast::<std::io::Error>() {
                Ok(io) => return (*io).into(),
                Err(source) => ParquetError::External(source),
            },
            e => e,
        };
        let error = match &e {
            ParquetError::NYI(what) if what.contains("interval") => {
                Error::unsupported("a Parquet file cannot hold these intervals")
                    .hint("copy CAST(x AS TEXT), or extract(epoch FROM x)")
            }
            ParquetError::NYI(what) => Error::unsupported(format!("Parquet: {what}")),
            _ => unusable(e.to_string()),
        };
        error.caused_by(e)
    }
}
