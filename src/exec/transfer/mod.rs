//! Reads rows from files and writes rows into them: the formats behind COPY.
//!
//! In: [`open`] a file → [`RowChunks`] yields chunks of rows, each cell already of its column's type,
//! or *not given*, so that the column's default applies. A row that does not fit stops the copy, or is
//! skipped and counted ([`OnError`]); its error names line, column, value and reason.
//!
//! Out: [`create`] a file → a [`FileWriter`] takes record batches. The file appears under its name only when it is
//! complete: a copy that fails leaves nothing.
//!
//! What is written reads back as the same values, but for the JSON of a column in JSON lines, which comes back with other
//! blanks, its `null` as NULL, and for '' where [`TextOptions::null`] is ''. Both text formats read VARBINARY as hex with or without `\x`; CSV writes '' as `""` and
//! NULL as nothing.

mod csv;
mod file;
mod jsonl;
mod parquet;
mod rows_file;
mod text;

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use ::arrow::datatypes::SchemaRef;
use ::arrow::record_batch::RecordBatch;

pub use self::csv::{CsvOptions, CsvReader, CsvWriter};
pub use self::file::NewFile;
pub use self::jsonl::{JsonlReader, JsonlWriter};
pub use self::parquet::{ParquetReader, ParquetWriter};
pub use self::rows_file::RowsFile;
pub use self::text::{TextOptions, TextReader, TextWriter};
use crate::error::{Error, Kind, Result, sqlstate};
use crate::value::{CastError, ColumnType, Value, from_hex};

/// One row of a file, a cell for each target column; `None` where the file does not give one.
pub type RowCells = Vec<Option<Value>>;

/// The columns a file is read into, by name.
pub type TargetColumns = [(String, ColumnType)];

/// What to do with a row that does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// Fail the copy.
    #[default]
    Stop,
    /// Leave the row out and count it.
    Skip,
}

/// A file format and how to read or write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// Values between delimiters.
    Csv(CsvOptions),
    /// PostgreSQL's lines, with tabs and backslashes.
    Text(TextOptions),
    /// A JSON object a line.
    Jsonl,
    /// Apache Parquet.
    Parquet,
}

/// Takes the rows of a file. Dropped before [`finish`](FileWriter::finish), it leaves no file.
pub trait FileWriter: Send {
    /// Adds the rows of a batch of the writer's schema.
    fn write(&mut self, batch: &RecordBatch) -> Result<()>;

    /// Completes the file and puts it in its place. Gives how many values read back as NULL, which they are not.
    fn finish(self: Box<Self>) -> Result<u64>;
}

/// Opens a file to read rows into `target`.
///
/// Errors: `Unavailable` when there is no such file; `Invalid` when `target` lacks one of its columns.
pub fn open(
    path: &Path,
    format: &FileFormat,
    target: &TargetColumns,
    on_error: OnError,
) -> Result<RowChunks> {
    let file = File::open(path).map_err(|e| cannot("open", path, e))?;
    if file.metadata().is_ok_and(|found| found.is_dir()) {
        return Err(cannot("read", path, std::io::ErrorKind::IsADirectory.into()));
    }
    let text = |file| BufReader::with_capacity(1 << 16, file);
    let source: Box<dyn RowSource> = match format {
        FileFormat::Csv(options) => Box::new(CsvReader::new(text(file), target, options.clone())?),
        FileFormat::Text(options) => Box::new(TextReader::new(text(file), target, options.clone())?),
        FileFormat::Jsonl => Box::new(JsonlReader::new(text(file), target)?),
        FileFormat::Parquet => Box::new(ParquetReader::new(file, target)?),
    };
    Ok(RowChunks::new(source, on_error))
}

/// Starts a file to write rows of `schema` to.
///
/// Errors: `Unavailable` when it cannot be written there.
pub fn create(path: &Path, format: &FileFormat, schema: SchemaRef) -> Result<Box<dyn FileWriter>> {
    let file = NewFile::create(path)?;
    Ok(match format {
        FileFormat::Csv(options) => Box::new(CsvWriter::new(file, &schema, options.clone())?),
        FileFormat::Text(options) => Box::new(TextWriter::new(file, options.clone())?),
        FileFormat::Jsonl => Box::new(JsonlWriter::new(file, schema)?),
        FileFormat::Parquet => Box::new(ParquetWriter::new(file, schema)?),
    })
}

fn cannot(what: &str, path: &Path, e: std::io::Error) -> Error {
    let hint = match e.kind() {
        std::io::ErrorKind::NotFound => {
            "paths start where the program was started; an absolute one always works"
        }
        std::io::ErrorKind::PermissionDenied => "see who owns the file, or take another",
        _ => "see that it is a file, and that the disk has room",
    };
    Error::new(Kind::Unavailable, format!("cannot {what} '{}'", path.display()))
        .why(e.to_string())
        .hint(hint)
        .about(path.display().to_string())
        .state(sqlstate::IO)
        .caused_by(e)
}

/// A format's rows, one by one.
pub trait RowSource: Send {
    /// The next row, or why it is invalid: the inner error concerns this row alone, after the outer one reading
    /// cannot go on.
    fn next_row(&mut self) -> Result<Option<Result<RowCells>>>;

    /// Where the last row is: `line 17`, `row 17`.
    fn place(&self) -> String;

    /// Bytes of the file consumed so far.
    fn bytes_read(&self) -> u64;
}

/// The rows of a file in chunks; invalid ones are skipped or refused.
pub struct RowChunks {
    source: Box<dyn RowSource>,
    on_error: OnError,
    skipped: u64,
    first_skipped: Option<Error>,
}

impl RowChunks {
    fn new(source: Box<dyn RowSource>, on_error: OnError) -> Self {
        RowChunks { source, on_error, skipped: 0, first_skipped: None }
    }

    /// The next rows, after examining at most `rows_max` (at least 1); `None` at the end.
    ///
    /// Errors: under [`OnError::Stop`] `Invalid`, naming line, column and value; always `Invalid` when the rest of
    /// the file cannot be parsed, and `Unavailable` when it cannot be read.
    pub fn next_chunk(&mut self, rows_max: usize) -> Result<Option<Vec<RowCells>>> {
        let mut rows = Vec::new();
        let bytes_end = self.source.bytes_read().saturating_add(CHUNK_BYTES);
        // Skipped rows count too, so that a file of nothing else can be stopped.
        for looked_at in 0..rows_max.max(1) {
            match self.source.next_row()? {
                None if looked_at == 0 => return Ok(None),
                None => break,
                Some(Ok(row)) => rows.push(row),
                Some(Err(e)) if self.on_error == OnError::Stop => return Err(e),
                Some(Err(e)) => {
                    self.skipped += 1;
                    self.first_skipped.get_or_insert(e);
                }
            }
            if self.source.bytes_read() >= bytes_end {
                break;
            }
        }
        Ok(Some(rows))
    }

    /// The place of the next row for which this is true, such as `line 17`.
    ///
    /// Errors: those of `is_sought`; as [`RowChunks::next_chunk`].
    pub fn find(&mut self, is_sought: &mut dyn FnMut(&RowCells) -> Result<bool>) -> Result<Option<String>> {
        while let Some(row) = self.source.next_row()? {
            match row {
                Ok(row) if is_sought(&row)? => return Ok(Some(self.source.place())),
                Err(e) if self.on_error == OnError::Stop => return Err(e),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Bytes of the file consumed so far, for progress.
    pub fn bytes_read(&self) -> u64 {
        self.source.bytes_read()
    }

    /// Rows left out so far (count).
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Why the first of them was left out.
    pub fn first_skipped(&self) -> Option<&Error> {
        self.first_skipped.as_ref()
    }
}

/// Limit of a chunk of rows, in bytes of the file, roughly.
const CHUNK_BYTES: u64 = 8 << 20;

/// Longest line or record of a text file, in bytes: anything longer is a missing quote or not text.
const RECORD_BYTES_MAX: usize = 64 << 20;

/// What some programs begin a text file with.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Skips the byte order mark; gives its length.
fn skip_byte_order_mark(input: &mut impl BufRead) -> Result<u64> {
    if !input.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
        return Ok(0);
    }
    input.consume(BYTE_ORDER_MARK.len());
    Ok(BYTE_ORDER_MARK.len() as u64)
}

/// The index of `name` in `target`: exact, or else ignoring case.
fn position(target: &TargetColumns, name: &str) -> Option<usize> {
    let exact = target.iter().position(|(column, _)| column == name);
    exact.or_else(|| target.iter().position(|(column, _)| column.eq_ignore_ascii_case(name)))
}

/// The error for a column that `target` lacks; `place` precedes it, as in `line 3: `.
fn unknown_column(place: impl fmt::Display, target: &TargetColumns, name: &str) -> Error {
    let names: Vec<&str> = target.iter().map(|(column, _)| column.as_str()).collect();
    Error::invalid(format!("{place}there is no column {name} to copy into"))
        .hint(format!("the columns are {}", names.join(", ")))
        .state(sqlstate::UNDEFINED_COLUMN)
}

/// The columns of a file, in its order, as indexes into `target`.
fn positions<'a>(target: &TargetColumns, names: impl Iterator<Item = &'a str>) -> Result<Vec<usize>> {
    let mut found = Vec::new();
    for name in names {
        let at = position(target, name).ok_or_else(|| unknown_column("", target, name))?;
        if found.contains(&at) {
            return Err(Error::invalid(format!("the file has column {name} twice"))
                .hint("name each column once")
                .state(sqlstate::DUPLICATE_COLUMN));
        }
        found.push(at);
    }
    Ok(found)
}

/// The error for a cell that is not a value of its column's type; `place` is like `line 17` or `row 17`.
fn cell_error(place: impl fmt::Display, column: &str, e: CastError) -> Error {
    let mut error = Error::invalid(format!("{place}, column {column}: {e}")).state(e.sqlstate());
    if let Some(why) = e.why() {
        error = error.why(why);
    }
    match e.hint() {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// Parses a cell of a text file. Bytes may be hex without a prefix, as the writers write them.
fn parse_cell(text: &str, ty: ColumnType) -> Result<Value, CastError> {
    let bare_hex = if ty == ColumnType::Varbinary { from_hex(text) } else { None };
    bare_hex.map_or_else(|| Value::parse(text, ty), |bytes| Ok(Value::Bytes(bytes)))
}

#[cfg(test)]
mod tests;
