//! COPY: files in and out.

use std::path::Path;
use std::sync::Arc;

use futures::TryStreamExt;

use super::outcome::{Outcome, Warning};
use super::rows::{Cells, complete};
use super::session::Session;
use super::view::View;
use crate::catalog::Catalog;
use crate::error::{Error, Kind, Result, sqlstate};
use crate::exec::bulk::Loader;
use crate::exec::transfer::{self, CsvOptions, Format, OnError};
use crate::key::ColumnId;
use crate::schema::TableDef;
use crate::sql::{Copy, CopyFormat, CopySource};
use crate::store::{BulkWriter, Mutation, WriteBatch};
use crate::value::Value;

/// Rows read from a file before they go to the loader.
const CHUNK_ROWS: usize = 8192;

/// Runs COPY.
pub async fn run(session: &mut Session, copy: &Copy, params: &[Value]) -> Result<Outcome> {
    if copy.to { copy_to(session, copy, params).await } else { copy_from(session, copy).await }
}

fn format(copy: &Copy) -> Result<Format> {
    Ok(match copy.format {
        CopyFormat::Csv => {
            let delimiter = u8::try_from(copy.delimiter).map_err(|_| {
                Error::invalid(format!("{:?} cannot be a delimiter", copy.delimiter))
                    .hint("one ASCII character, such as ',' or '|'")
            })?;
            Format::Csv(CsvOptions {
                header: copy.header,
                delimiter,
                null: copy.null.clone(),
                ..CsvOptions::default()
            })
        }
        CopyFormat::Jsonl => Format::Jsonl,
        CopyFormat::Parquet => Format::Parquet,
    })
}

async fn copy_to(session: &mut Session, copy: &Copy, params: &[Value]) -> Result<Outcome> {
    let view = session.view()?;
    let query = match &copy.source {
        CopySource::Query(query) => (**query).clone(),
        CopySource::Table { name, columns } => {
            let list: Vec<String> =
                columns.iter().map(|c| super::rows::quote(&crate::sql::name_of(c))).collect();
            let list = if list.is_empty() { "*".into() } else { list.join(", ") };
            let name = crate::sql::name_of(name);
            crate::sql::parse_query(&format!("SELECT {list} FROM {}", super::rows::quote(&name)))?
        }
    };
    let (mut stream, schema) = view.stream(query, params).await?;
    let mut writer = transfer::create(Path::new(&copy.path), &format(copy)?, schema)?;
    let mut rows = 0;
    let label = format!("writing {}", copy.path);
    while let Some(batch) = stream.try_next().await? {
        rows += batch.num_rows() as u64;
        writer.write(&batch)?;
        view.watch.step(&label, rows, None, "rows")?;
    }
    writer.finish()?;
    view.watch.finish(&label, rows, "rows");
    Ok(Outcome { affected: Some(rows), ..session.done("COPY") })
}

async fn copy_from(session: &mut Session, copy: &Copy) -> Result<Outcome> {
    if session.in_transaction() {
        return Err(Error::unsupported("COPY FROM cannot run inside a transaction")
            .why("it is one atomic step of its own")
            .hint("COMMIT first")
            .state("25001"));
    }
    let CopySource::Table { name, columns } = &copy.source else {
        return Err(Error::invalid("COPY FROM needs a table").hint("COPY t FROM 'file.csv'"));
    };
    let view = session.view()?;
    let table = view.table(name)?;
    let columns: Vec<ColumnId> = if columns.is_empty() {
        table.live_columns().map(|(id, _)| id).collect()
    } else {
        columns.iter().map(|c| view.column(&table, c)).collect::<Result<_>>()?
    };
    let targets: Vec<_> =
        columns.iter().map(|id| (table.column_name(*id).to_owned(), table.column(*id).ty)).collect();
    let on_error = if copy.skip_errors { OnError::Skip } else { OnError::Stop };
    let path = Path::new(&copy.path);
    let mut reader = transfer::open(path, &format(copy)?, &targets, on_error)?;
    let size = std::fs::metadata(path).map(|m| m.len()).ok();
    let label = format!("reading {}", copy.path);
    let mut taken = Skipped::default();
    let rows = load(&view, &table, &columns, copy.skip_errors.then_some(&mut taken), || {
        view.watch.step(&label, reader.bytes_read(), size, "bytes")?;
        reader.next_chunk(CHUNK_ROWS)
    })
    .map_err(|e| match e.sqlstate() {
        sqlstate::UNIQUE => e.hint("ON_ERROR skip leaves out such rows, and counts them"),
        _ => e,
    })?;
    view.watch.finish(&label, reader.bytes_read(), "bytes");
    let mut warnings = Vec::new();
    for (skipped, first, what) in [
        (reader.skipped(), reader.first_skipped(), ""),
        (taken.rows, taken.first.as_ref(), ", as their keys are taken"),
    ] {
        let Some(first) = first else { continue };
        warnings.push(Warning {
            code: None,
            what: match skipped {
                1 => format!("1 row of {} was skipped{what}", copy.path),
                n => format!("{n} rows of {} were skipped{what}", copy.path),
            },
            why: format!("the first of them: {}", first.what()),
            hint: "without ON ERROR SKIP the copy stops there".into(),
        });
    }
    Ok(Outcome { affected: Some(rows), warnings, ..session.done("COPY") })
}

/// Rows that a load left out because their keys are taken.
#[derive(Default)]
pub struct Skipped {
    rows: u64,
    /// Why the first of them was.
    first: Option<Error>,
}

/// Writes all rows that `next` gives, cell by cell of `columns`, in one atomic step; those whose keys are taken are
/// an error, or `skipped`.
///
/// Errors: `Conflict` when what the view recorded, or `next` is still reading through it, has changed.
pub fn load(
    view: &View,
    table: &TableDef,
    columns: &[ColumnId],
    mut skipped: Option<&mut Skipped>,
    mut next: impl FnMut() -> Result<Option<Vec<Vec<Option<Value>>>>>,
) -> Result<u64> {
    let writer = view.db.store().bulk()?;
    let check = |writer: &dyn BulkWriter| match &view.recording {
        Some(recording) => writer.check(&recording.reads()),
        None => Ok(()),
    };
    // Nobody else writes now, so a second look is needed only at what will have been read by then.
    check(&*writer)?;
    // No other writer moves now: identity counters read here are the ones to go on from.
    let locked = View {
        db: view.db.clone(),
        catalog: Arc::clone(&view.catalog),
        snapshot: view.db.store().snapshot()?,
        recording: None,
        moments: Arc::clone(&view.moments),
        watch: view.watch.clone(),
        settings: view.settings.clone(),
    };
    let fresh = {
        let reader = locked.snapshot.reader()?;
        if Catalog::load(&*reader)?.version() != view.catalog.version() {
            return Err(
                Error::new(Kind::Conflict, "a definition changed meanwhile").hint("run the statement again")
            );
        }
        reader.entries(table.rows())? == 0
    };
    let mut loader = Loader::new(table, writer, fresh, &view.watch);
    // Identity counters move from chunk to chunk and are written at the end.
    let mut counters = WriteBatch::default();
    while let Some(rows) = next()? {
        let cells = Cells {
            columns: columns.to_vec(),
            rows,
            overriding: None,
            before: loader.rows() as usize,
            written: &[],
        };
        let rows = view.db.runtime().block_on(complete(&locked, table, cells, &mut counters))?;
        for row in &rows {
            let Some(skipped) = &mut skipped else {
                loader.add(row)?;
                continue;
            };
            match loader.add_if_free(row) {
                Err(e) if e.sqlstate() == sqlstate::UNIQUE => {
                    skipped.rows += 1;
                    skipped.first.get_or_insert(e);
                }
                added => added?,
            }
        }
    }
    for mutation in counters.mutations {
        if let Mutation::Put(keyspace, key, value) = mutation {
            loader.put(keyspace, &key, &value)?;
        }
    }
    loader.commit(check)
}
