//! COPY: import from and export to files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::TryStreamExt;

use super::bulk::{Skipped, is_of_one_row, load};
use super::outcome::{Outcome, Warning};
use super::references::Unchecked;
use super::rows::PartialRows;
use super::session::Session;
use super::turns::{Defeats, Priority};
use super::view::columns_named;
use super::write::insert_cells;
use crate::error::{Error, Kind, Result, sqlstate};
use crate::exec::dml::rowkey_of;
use crate::exec::transfer::{self, CsvOptions, FileFormat, OnError, RowChunks, RowsFile, TextOptions};
use crate::exec::watch::Watch;
use crate::key::ColumnId;
use crate::schema::TableDef;
use crate::sql::{Copy, CopyFile, CopyFormat, CopySource, Overriding, span_of_name};
use crate::value::{Value, quoted_name};

/// Rows (count) per chunk on their way from a file to the loader; four chunks are in memory.
const CHUNK_ROWS: usize = 2048;

/// COPY takes the values of GENERATED ALWAYS columns, as in PostgreSQL: its own exports have them.
const GIVEN: Option<Overriding> = Some(Overriding::System);

/// Runs COPY; outside of a transaction again if it is defeated by a write or a new definition.
pub async fn run(session: &mut Session, copy: &Copy, params: &[Value]) -> Result<Outcome> {
    if copy.to {
        return copy_to(session, copy, params).await;
    }
    session.check_may_write()?;
    if session.in_transaction() {
        return copy_from(session, copy, None).await;
    }
    let mut defeats = Defeats::default();
    loop {
        match copy_from(session, copy, defeats.priority()).await {
            Err(e) => {
                // It may have been in a transaction of its own.
                session.abandon();
                defeats.again(e, &session.database().shared.turns, &session.watch().cancel)?;
            }
            copied => return copied,
        }
    }
}

fn format(file: &CopyFile) -> Result<FileFormat> {
    Ok(match file.format {
        CopyFormat::Csv => FileFormat::Csv(CsvOptions {
            header: file.header,
            delimiter: delimiter(file)?,
            null: file.null.clone(),
        }),
        CopyFormat::Text => {
            FileFormat::Text(TextOptions { delimiter: delimiter(file)?, null: file.null.clone() })
        }
        CopyFormat::Jsonl => FileFormat::Jsonl,
        CopyFormat::Parquet => FileFormat::Parquet,
    })
}

fn delimiter(file: &CopyFile) -> Result<u8> {
    u8::try_from(file.delimiter).map_err(|_| {
        Error::invalid(format!("{:?} cannot be a delimiter", file.delimiter))
            .hint("one ASCII character, such as ',' or '|'")
    })
}

/// The file's name for messages.
fn shown(file: &CopyFile) -> &str {
    file.path.as_deref().unwrap_or("STDIN")
}

/// The rows of a file, chunk by chunk.
pub struct FileRows<'a> {
    file: &'a CopyFile,
    path: PathBuf,
    table: &'a TableDef,
    columns: &'a [ColumnId],
    reader: RowChunks,
    size: Option<u64>,
    label: String,
}

impl<'a> FileRows<'a> {
    /// Opens the file, or the rows of STDIN; the cells of a row are these columns of `table`, in this order.
    ///
    /// Errors: no such file; a column in it that is none of these.
    pub fn open(
        file: &'a CopyFile,
        stdin: Option<&Path>,
        table: &'a TableDef,
        columns: &'a [ColumnId],
    ) -> Result<FileRows<'a>> {
        let path = match (&file.path, stdin) {
            (Some(path), _) => Path::new(path),
            (None, Some(rows)) => rows,
            (None, None) => return Err(no_stream("STDIN", "FROM")),
        };
        let reader = reader(file, path, table, columns)?;
        let size = std::fs::metadata(path).map(|m| m.len()).ok();
        let label = format!("reading {}", shown(file));
        Ok(FileRows { file, path: path.to_owned(), table, columns, reader, size, label })
    }

    /// The next rows; `None` at the end.
    pub fn next(&mut self, watch: &Watch) -> Result<Option<Vec<transfer::RowCells>>> {
        watch.step(&self.label, self.reader.bytes_read(), self.size, "bytes")?;
        let rows = self.reader.next_chunk(CHUNK_ROWS).map_err(|e| of_file(e, self.file))?;
        if rows.is_none() {
            watch.finish(&self.label, self.reader.bytes_read(), "bytes");
        }
        Ok(rows)
    }

    /// The error with the line of the row that it is about. The file is read again to find it.
    pub fn placed(&self, error: Error, watch: &Watch) -> Error {
        match self.place(&error, watch) {
            Ok(Some((place, earlier))) => {
                let error = error.in_front(&format!("{place}: "));
                earlier.into_iter().fold(error, |e, earlier| e.why(format!("{earlier} has it, too")))
            }
            // It says what is wrong all the same.
            Ok(None) | Err(_) => error,
        }
    }

    /// The place of the row that an error is about, and of the one before it that has its rowkey.
    fn place(&self, error: &Error, watch: &Watch) -> Result<Option<(String, Option<String>)>> {
        // A pipe gives its rows once.
        if !std::fs::metadata(&self.path)?.is_file() {
            return Ok(None);
        }
        let key = &self.table.key;
        let tells_rowkey = !key.is_drawn() && key.columns().iter().all(|id| self.columns.contains(id));
        if error.subject().row.is_none() && (error.subject().rowkey.is_none() || !tells_rowkey) {
            return Ok(None);
        }
        let mut again = reader(self.file, &self.path, self.table, self.columns)?;
        let mut passed = 0;
        if let Some(row) = error.subject().row {
            let place = again.find(&mut |_| {
                passed += 1;
                watch.cancel.tick(passed)?;
                Ok(passed == row + 1)
            })?;
            return Ok(place.map(|place| (place, None)));
        }
        let Some(rowkey) = &error.subject().rowkey else { return Ok(None) };
        let mut has_it = |cells: &transfer::RowCells| {
            passed += 1;
            watch.cancel.tick(passed)?;
            let mut row = vec![Value::Null; self.table.columns.len()];
            for (id, cell) in self.columns.iter().zip(cells) {
                row[usize::from(id.0)] = cell.clone().unwrap_or(Value::Null);
            }
            Ok(rowkey_of(self.table, &row).is_ok_and(|of_row| *of_row == rowkey[..]))
        };
        let Some(first) = again.find(&mut has_it)? else { return Ok(None) };
        Ok(Some(match again.find(&mut has_it) {
            Ok(Some(second)) => (second, Some(first)),
            _ => (first, None),
        }))
    }

    /// A warning about skipped rows.
    pub fn warnings(&self) -> Vec<Warning> {
        left_out(self.file, self.reader.skipped(), self.reader.first_skipped(), "").into_iter().collect()
    }
}

/// A reader of the file, or of the rows of STDIN, which are at `path`.
fn reader(file: &CopyFile, path: &Path, table: &TableDef, columns: &[ColumnId]) -> Result<RowChunks> {
    let target = |id: &ColumnId| (table.column_name(*id).to_owned(), table.column(*id).ty);
    let targets: Vec<_> = columns.iter().map(target).collect();
    let on_error = if file.skip_errors { OnError::Skip } else { OnError::Stop };
    transfer::open(path, &format(file)?, &targets, on_error).map_err(|e| of_file(e, file))
}

/// Names the file in an error about its contents.
fn of_file(error: Error, file: &CopyFile) -> Error {
    if error.kind() == Kind::Invalid && !error.what().contains(shown(file)) {
        return error.in_front(&format!("{}: ", shown(file)));
    }
    error
}

/// A warning about `rows` skipped rows of a file, if there are any.
fn left_out(file: &CopyFile, rows: u64, first: Option<&Error>, why: &str) -> Option<Warning> {
    let path = shown(file);
    Some(Warning {
        code: None,
        what: match rows {
            1 => format!("1 row of {path} was skipped{why}"),
            n => format!("{n} rows of {path} were skipped{why}"),
        },
        why: match first?.reason() {
            None => format!("the first of them: {}", first?.what()),
            Some(why) => format!("the first of them: {} ({why})", first?.what()),
        },
        hint: "without ON_ERROR SKIP it stops there".into(),
    })
}

/// A warning about values that a file has as NULL, if there are any.
fn nulls_written(file: &CopyFile, nulls: u64) -> Option<Warning> {
    let path = file.path.as_deref().unwrap_or("STDOUT");
    let what = match nulls {
        0 => return None,
        1 => format!("1 value of {path} reads back as NULL"),
        n => format!("{n} values of {path} read back as NULL"),
    };
    let (why, hint) = match file.format {
        CopyFormat::Text => ("'' is written as NULL is", "without NULL '' in the options they differ"),
        CopyFormat::Csv | CopyFormat::Jsonl | CopyFormat::Parquet => (
            "in JSON lines the null of a JSON column is written as NULL is",
            "FORMAT csv and FORMAT parquet tell them apart",
        ),
    };
    Some(Warning { code: None, what, why: why.into(), hint: hint.into() })
}

fn no_stream(stream: &str, way: &str) -> Error {
    Error::unsupported(format!("there is no {stream} here"))
        .why("rows come from and go to streams in scripts and on the command line, and not among results in JSON")
        .hint(format!("name a file: COPY t {way} 'file.csv'"))
}

async fn copy_to(session: &mut Session, copy: &Copy, params: &[Value]) -> Result<Outcome> {
    if copy.file.path.is_none() && !session.streams.has_stdout {
        return Err(no_stream("STDOUT", "TO"));
    }
    let view = session.view()?;
    let query = match &copy.source {
        CopySource::Query(query) => (**query).clone(),
        CopySource::Table { name, columns } => {
            let list: Vec<String> = columns.iter().map(|c| quoted_name(&crate::sql::name_of(c))).collect();
            let list = if list.is_empty() { "*".into() } else { list.join(", ") };
            let of = crate::sql::name_of(name);
            if view.catalog.find(&of).is_none() {
                return Err(view.catalog.unknown(&of).at(span_of_name(name)));
            }
            crate::sql::parse_query(&format!("SELECT {list} FROM {}", quoted_name(&of)))?
        }
    };
    let (mut stream, schema) = view.stream(query, params).await.map_err(|e| match &copy.source {
        CopySource::Query(_) => e,
        // Its place is one in the query that is made here.
        CopySource::Table { columns, .. } => {
            let unknown = columns
                .iter()
                .find(|c| e.what() == format!("there is no column \"{}\"", crate::sql::name_of(c)));
            e.unplaced().at(unknown.and_then(span_of_name))
        }
    })?;
    let mut stdout = match &copy.file.path {
        Some(_) => None,
        None => Some(session.rows_file()?),
    };
    let path = match (&copy.file.path, &mut stdout) {
        (Some(path), _) => Path::new(path),
        (None, Some(rows)) => rows.written()?,
        (None, None) => return Err(no_stream("STDOUT", "TO")),
    };
    let mut writer = transfer::create(path, &format(&copy.file)?, schema)?;
    let mut rows = 0;
    let label = format!("writing {}", copy.file.path.as_deref().unwrap_or("STDOUT"));
    while let Some(batch) = stream.try_next().await? {
        rows += batch.num_rows() as u64;
        writer.write(&batch)?;
        view.watch.step(&label, rows, None, "rows")?;
    }
    let nulls = writer.finish()?;
    view.watch.finish(&label, rows, "rows");
    let warnings = nulls_written(&copy.file, nulls).into_iter().collect();
    session.streams.output = stdout;
    Ok(Outcome { affected: Some(rows), warnings, ..session.done("COPY") })
}

async fn copy_from(session: &mut Session, copy: &Copy, priority: Option<&Priority>) -> Result<Outcome> {
    let CopySource::Table { name, columns } = &copy.source else {
        return Err(Error::invalid("COPY FROM needs a table").hint("COPY t FROM 'file.csv'"));
    };
    let view = session.view()?;
    let table = view.table(name)?;
    let columns: Vec<ColumnId> = if columns.is_empty() {
        table.live_columns().map(|(id, _)| id).collect()
    } else {
        columns_named(&table, columns)?
    };
    // A load draws each rowkey once. Other buckets are tried where rows are read.
    let may_draw_again = table.key.is_drawn() && !session.in_transaction();
    // Rows that refer to others of the same file are checked when all are written.
    let refers_to_itself = table.refers_to_itself();
    if may_draw_again && copy.file.skip_errors || refers_to_itself && !session.in_transaction() {
        drop(view);
        return in_a_transaction(session, copy, priority).await;
    }
    let stdin = session.streams.input.as_mut().map(RowsFile::written).transpose()?;
    let mut file = FileRows::open(&copy.file, stdin, &table, &columns)?;
    let mut taken = Skipped::default();
    let skipped = copy.file.skip_errors.then_some(&mut taken);
    let unchecked = refers_to_itself.then(Arc::default);
    let rows = match session.in_transaction() {
        false => load(&view, &table, (&columns, GIVEN), skipped, || file.next(&view.watch)),
        true => insert(session, (&table, &columns), &unchecked, skipped, &mut file).await,
    };
    if let Err(e) = &rows
        && e.sqlstate() == sqlstate::UNIQUE
        && may_draw_again
    {
        drop(view);
        return in_a_transaction(session, copy, priority).await;
    }
    if let (Ok(_), Some(unchecked)) = (&rows, &unchecked) {
        session.look_at(unchecked, Some(&view)).await.map_err(|e| of_file(e, &copy.file))?;
    }
    let placed = |e| file.placed(e, session.watch());
    let rows = rows.map_err(|e| {
        let error = of_file(placed(e), &copy.file);
        match error.sqlstate() {
            sqlstate::UNIQUE => error.hint("ON_ERROR skip leaves out such rows, and counts them"),
            _ => error,
        }
    })?;
    taken.first = taken.first.map(placed);
    let mut warnings = file.warnings();
    warnings.extend(left_out(
        &copy.file,
        taken.rows,
        taken.first.as_ref(),
        ", as the table does not take them",
    ));
    Ok(Outcome { affected: Some(rows), warnings, ..session.done("COPY") })
}

/// COPY FROM in a transaction of its own, which ends with the statement, whatever becomes of it.
async fn in_a_transaction(
    session: &mut Session,
    copy: &Copy,
    priority: Option<&Priority>,
) -> Result<Outcome> {
    session.begin(false)?;
    let before = session.view()?;
    let copied = Box::pin(copy_from(session, copy, None)).await?;
    session.commit_own(&before, priority).await?;
    Ok(copied)
}

/// Writes all rows of a file into the open transaction, a chunk at a time; gives their number. `unchecked`: where foreign
/// keys are kept, if rows may refer to later ones.
async fn insert(
    session: &mut Session,
    (table, columns): (&TableDef, &[ColumnId]),
    unchecked: &Option<Arc<Unchecked>>,
    mut skipped: Option<&mut Skipped>,
    file: &mut FileRows<'_>,
) -> Result<u64> {
    let target = (table, columns, unchecked);
    let (mut before, mut inserted) = (0, 0);
    while let Some(rows) = file.next(session.watch())? {
        let (first, n) = (before, rows.len() as u64);
        before += n;
        let again = if skipped.is_some() { rows.clone() } else { Vec::new() };
        match (insert_chunk(session, target, rows, first).await, &mut skipped) {
            (Err(e), Some(skipped)) if is_of_one_row(&e) => {
                for (number, row) in (first..).zip(again) {
                    let one = insert_chunk(session, target, vec![row], number).await;
                    inserted += u64::from(skipped.unless_left_out(one)?.is_some());
                }
            }
            (chunk, _) => {
                chunk?;
                inserted += n;
            }
        }
    }
    Ok(inserted)
}

async fn insert_chunk(
    session: &mut Session,
    (table, columns, unchecked): (&TableDef, &[ColumnId], &Option<Arc<Unchecked>>),
    rows: Vec<transfer::RowCells>,
    before: u64,
) -> Result<()> {
    let cells = PartialRows { columns: columns.to_vec(), rows, overriding: GIVEN, before };
    let mut view = session.view()?;
    if let Some(unchecked) = unchecked {
        view.later = view.later.of_statement(unchecked);
    }
    let written = insert_cells(&view, table, cells).await?;
    session.write_down(written.batch);
    Ok(())
}
