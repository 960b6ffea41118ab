//! Loads through the bulk door: rows that are new, however many, written in one atomic step while other writers wait.

use super::references::check_parents;
use super::rows::{PartialRows, complete};
use super::turns::ExclusivePermit;
use super::view::StatementView;
use crate::error::{Error, Kind, Result, sqlstate};
use crate::exec::bulk::{Loader, RowsBefore};
use crate::exec::transfer::RowCells;
use crate::key::ColumnId;
use crate::schema::TableDef;
use crate::sql::Overriding;
use crate::store::{BulkWriter, Reads, WriteBatch};
use crate::value::Value;

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
    let mut bulk = BulkStatement::open(view, table)?;
    let locked = bulk.locked()?;
    let is_empty = locked.snapshot.reader()?.entries(table.rows())? == 0;
    let before = (!is_empty).then(|| RowsBefore::new(&*locked.snapshot, locked.as_of_us));
    let loader = Loader::new(table, &mut *bulk.writer, before, &view.watch);
    let rows = fill(loader, &locked, table, (columns, overriding), skipped, next)?;
    bulk.finish()?;
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
    let mut completed = |rows: Vec<RowCells>, before: u64| {
        let cells = PartialRows { columns: columns.to_vec(), rows, overriding, before };
        let rows = locked.db.runtime().block_on(complete(locked, table, cells, &mut counters))?;
        let new = rows.iter().map(|row| (None, &**row));
        check_parents(locked, table, new, |at, error| error.of_row(before + at as u64))?;
        Ok(rows)
    };
    match skipped {
        None => loader.add_all(|| {
            let Some(rows) = next()? else { return Ok(None) };
            let first = before;
            before += rows.len() as u64;
            completed(rows, first).map(Some)
        })?,
        Some(skipped) => {
            while let Some(rows) = next()? {
                let first = before;
                before += rows.len() as u64;
                let fit: Vec<(u64, Vec<Value>)> = match completed(rows.clone(), first) {
                    Err(e) if is_of_one_row(&e) => {
                        let mut fit = Vec::with_capacity(rows.len());
                        for (number, row) in (first..).zip(rows) {
                            let row = skipped.unless_left_out(completed(vec![row], number))?;
                            fit.extend(row.into_iter().flatten().map(|row| (number, row)));
                        }
                        fit
                    }
                    fit => (first..).zip(fit?).collect(),
                };
                for (number, row) in fit {
                    loader.make_room()?;
                    skipped.unless_left_out(loader.add_if_free(&row).map_err(|e| e.of_row(number)))?;
                }
            }
        }
    }
    loader.write(&counters)?;
    loader.finish()
}

/// A statement at the bulk door: no other writer gets in until it is finished, or dropped.
pub struct BulkStatement<'v> {
    // Dropped before the permit.
    pub writer: Box<dyn BulkWriter + 'v>,
    _permit: ExclusivePermit<'v>,
    view: &'v StatementView,
    table: &'v TableDef,
}

impl<'v> BulkStatement<'v> {
    /// Opens the door for a statement that writes `table`.
    ///
    /// Errors: `Conflict` when what the view recorded, or a definition that the write relies on, has changed.
    pub fn open(view: &'v StatementView, table: &'v TableDef) -> Result<BulkStatement<'v>> {
        let (_permit, writer) = view.db.load(&view.watch.cancel)?;
        let opened = BulkStatement { writer, _permit, view, table };
        opened.check_reads()?;
        Ok(opened)
    }

    /// The statement's view from now on: what it reads, identity counters included, stays current and need not be
    /// recorded.
    pub fn locked(&self) -> Result<StatementView> {
        let view = self.view;
        Ok(StatementView {
            snapshot: view.db.store().snapshot()?,
            recording: None,
            // Rows date from now, however long the wait for another loader took.
            as_of_us: view.db.now_us(),
            ..view.clone()
        })
    }

    /// Commits what was written. Errors: as of [`BulkStatement::open`], or the statement is cancelled.
    pub fn finish(self) -> Result<()> {
        // Nobody else has written meanwhile, so this checks what was read since the first check.
        self.check_reads()?;
        // Last check for cancellation: a commit is not interrupted.
        self.view.watch.cancel.check()?;
        let BulkStatement { writer, _permit, .. } = self;
        writer.commit()
    }

    fn check_reads(&self) -> Result<()> {
        let BulkStatement { writer, view, table, .. } = self;
        let recorded = view.recording.as_ref().map(|recording| recording.reads());
        let mut reads = recorded.unwrap_or_else(|| Reads::new(view.snapshot.version()));
        // What rows refer to is looked at in the parents' keyspaces, which are these as long as their definitions stand.
        let parents = table.references.iter().filter_map(|of| view.catalog.table_by_id(of.parent));
        let tables = std::iter::once(*table).chain(parents.map(|parent| &**parent));
        let touched = reads.keyspaces().chain(tables.flat_map(TableDef::keyspaces)).collect();
        view.catalog.rely_on(&mut reads, &touched);
        writer.check(&reads)
    }
}
