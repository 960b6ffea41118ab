//! UPSERT and INSERT ... ON CONFLICT of many rows: these are sorted by rowkey, on disk if need be, and then compared
//! with those that are there, a part at a time. All is written in one atomic step.
//!
//! Rows with one rowkey come into one part, in the order of their source, so what an earlier part writes
//! concerns no later one. A UNIQUE index would see it: tables with one are written in one batch.

use super::insert::{changed, proposed};
use super::{StagedChanges, WriteInputs};
use crate::engine::bulk::BulkStatement;
use crate::engine::query_rows::QueryRows;
use crate::engine::rows::PartialRows;
use crate::engine::view::StatementView;
use crate::error::Result;
use crate::exec::changes::Changes;
use crate::exec::dml::{ROWS_READ, Writes};
use crate::exec::row_sorter::RowSorter;
use crate::key::ColumnId;
use crate::schema::TableDef;
use crate::sql::Insert;
use crate::store::WriteBatch;

/// Rows of different rowkeys write different entries, so they may be compared in parts; a drawn rowkey may have to be
/// drawn again, among those of other parts.
pub(super) fn can_merge(table: &TableDef) -> bool {
    !table.key.is_drawn()
        && table.followed().is_none()
        && !table.maintained_indexes().any(|index| index.unique)
}

/// Writes the rows of `source`, which fill `columns`; gives how many rows were written. Other writers wait.
///
/// Errors: those of the statement; `Conflict` when something that was read has changed.
pub(super) fn merge(
    view: &StatementView,
    table: &TableDef,
    stmt: &Insert,
    given: WriteInputs<'_>,
    (mut source, columns): (QueryRows, Vec<ColumnId>),
) -> Result<u64> {
    let (runtime, watch) = (view.db.runtime(), &view.watch);
    let mut bulk = BulkStatement::open(view, table)?;
    let locked = bulk.locked()?;
    // Identity counters advance from batch to batch and are written at the end.
    let mut counters = WriteBatch::default();
    let mut rows = RowSorter::new(table, bulk.writer.folder());
    while let Some(cells) = source.next_rows(view, table)? {
        let (columns, before) = (columns.clone(), rows.len());
        let cells = PartialRows { columns, rows: cells, overriding: stmt.overriding, before };
        for row in runtime.block_on(proposed(&locked, table, &stmt.mode, cells, &mut counters))? {
            rows.add(&row)?;
            rows.make_room(&watch.cancel)?;
        }
    }
    let total = rows.len();
    let mut writes = Writes::new(table, WriteBatch::default(), locked.as_of_us);
    let mut gathered = Changes::new(table, bulk.writer.folder());
    let (mut done, mut affected) = (0, 0);
    rows.each_part(ROWS_READ, &mut |part| {
        done += part.len() as u64;
        watch.step("merging rows", done, Some(total), "rows")?;
        let StagedChanges { changes, touched } =
            runtime.block_on(changed(&locked, table, stmt, given, (part, &columns), &mut counters))?;
        affected += touched.len() as u64;
        writes.add_all(&*locked.snapshot.reader()?, &changes, watch)?;
        gathered.take(&mut writes, watch)
    })?;
    watch.finish("merging rows", total, "rows");
    gathered.write_to(&mut *bulk.writer, watch)?;
    counters.write_to(&mut *bulk.writer)?;
    bulk.finish()?;
    Ok(affected)
}
