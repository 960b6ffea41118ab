//! Loads through the bulk door: rows that are new, however many, written in one atomic step while other writers wait.

use super::rows::{PartialRows, complete};
use super::view::StatementView;
use crate::error::{Error, Kind, Result, sqlstate};
use crate::exec::bulk::{Loader, RowsBefore};
use crate::exec::transfer::RowCells;
use crate::key::ColumnId;
use crate::schema::TableDef;
use crate::sql::Overriding;
use crate::store::{BulkWriter, Reads, WriteBatch};

/// Rows that a load skipped because the table does not accept them.
#[derive(Default)]
pub struct Skipped {
    /// Their number.
    pub rows: u64,
    /// Why the first of them was skipped.
    pub first: Option<Error>,
}

impl Skipped {
    /// The result for a row; `None` if the row is skipped. Errors: one that is not about this row alone.
    pub fn unless_left_out<T>(&mut self, of_row: Result<T>) -> Result<Option<T>> {
        match of_row {
            Err(e) if is_of_one_row(&e) => {
                self.rows += 1;
                self.first.get_or_insert(e);
                Ok(None)
            }
            other => other.map(Some),
        }
    }
}

/// Is the error about a single row, so that other rows may be fine?
pub fn is_of_one_row(e: &Error) -> bool {
    e.kind() == Kind::Invalid || e.sqlstate() == sqlstate::UNIQUE
}

/// Writes all rows that `next` gives, as cells of `columns`, in one atomic step; `overriding`: which values
/// identity columns take. Rows that the table does not accept, for their keys or its constraints, are an error,
/// or counted in `skipped`.
///
/// Errors: `Conflict` when anything the view recorded, or a definition `load` relies on, has changed.
pub fn load(
    view: &StatementView,
    table: &TableDef,
    (columns, overriding): (&[ColumnId], Option<Overriding>),
    skipped: Option<&mut Skipped>,
    next: impl FnMut() -> Result<Option<Vec<RowCells>>>,
) -> Result<u64> {
    let (_load, mut writer) = view.db.load(&view.watch.cancel)?;
    check_reads(view, table, &*writer)?;
    let locked = locked(view)?;
    let is_empty = locked.snapshot.reader()?.entries(table.rows())? == 0;
    let before = (!is_empty).then(|| RowsBefore::new(&*locked.snapshot, locked.as_of_us));
    let loader = Loader::new(table, &mut *writer, before, &view.watch);
    let rows = fill(loader, &locked, table, (columns, overriding), skipped, next)?;
    commit(view, table, writer)?;
    Ok(rows)
}

/// Writes the rows of [`load`] through a loader; they are there once its writer commits. Gives their number.
pub fn fill(
    mut loader: Loader<'_>,
    locked: &StatementView,
    table: &TableDef,
    (columns, overriding): (&[ColumnId], Option<Overriding>),
    skipped: Option<&mut Skipped>,
    mut next: impl FnMut() -> Result<Option<Vec<RowCells>>>,
) -> Result<u64> {
    // Identity counters advance from chunk to chunk and are written at the end.
    let mut counters = WriteBatch::default();
    let mut before = 0;
    let mut completed = |rows: Vec<RowCells>, before: usize| {
        let cells = PartialRows { columns: columns.to_vec(), rows, overriding, before, written: &[] };
        locked.db.runtime().block_on(complete(locked, table, cells, &mut counters))
    };
    match skipped {
        None => loader.add_all(|| {
            let Some(rows) = next()? else { return Ok(None) };
            let first = before;
            before += rows.len();
            completed(rows, first).map(Some)
        })?,
        Some(skipped) => {
            while let Some(rows) = next()? {
                let first = before;
                before += rows.len();
                let fit = match completed(rows.clone(), first) {
                    Err(e) if is_of_one_row(&e) => {
                        let one = |(at, row)| skipped.unless_left_out(completed(vec![row], first + at));
                        let fit = rows.into_iter().enumerate().map(one).collect::<Result<Vec<_>>>()?;
                        fit.into_iter().flatten().flatten().collect()
                    }
                    fit => fit?,
                };
                for row in fit {
                    loader.make_room()?;
                    skipped.unless_left_out(loader.add_if_free(&row))?;
                }
            }
        }
    }
    counters.mutations.iter().try_for_each(|mutation| loader.write(mutation))?;
    loader.finish()
}

/// The view of a statement that has the bulk door open: no other writer gets in, so what it reads, identity
/// counters included, stays current and need not be recorded.
pub fn locked(view: &StatementView) -> Result<StatementView> {
    Ok(StatementView {
        snapshot: view.db.store().snapshot()?,
        recording: None,
        // Rows date from now, however long the wait for another loader took.
        as_of_us: view.db.now_us(),
        ..view.clone()
    })
}

/// Ends a statement that wrote through the bulk door. Errors: as of [`check_reads`], or the statement is cancelled.
pub fn commit(view: &StatementView, table: &TableDef, writer: Box<dyn BulkWriter + '_>) -> Result<()> {
    // Nobody else has written meanwhile, so this checks what was read since the first check.
    check_reads(view, table, &*writer)?;
    // Last check for cancellation: a commit is not interrupted.
    view.watch.cancel.check()?;
    writer.commit()
}

/// Errors: `Conflict` when what the view recorded, or a definition that a write of `table` relies on, has changed.
pub fn check_reads(view: &StatementView, table: &TableDef, writer: &dyn BulkWriter) -> Result<()> {
    let recorded = view.recording.as_ref().map(|recording| recording.reads());
    let mut reads = recorded.unwrap_or_else(|| Reads::new(view.snapshot.version()));
    let touched = reads.keyspaces().chain(table.keyspaces()).collect();
    view.catalog.rely_on(&mut reads, &touched);
    writer.check(&reads)
}
