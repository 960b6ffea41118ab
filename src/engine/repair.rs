//! REPAIR TABLE: removes the rows that cannot be read, and their index entries, in one commit, and says which.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use sqlparser::ast::Ident;

use super::Database;
use super::rekeying;
use super::show::problem_rows;
use crate::catalog::Catalog;
use crate::error::Result;
use crate::exec::check::Problem;
use crate::exec::losses::Losses;
use crate::exec::watch::Watch;
use crate::schema::TableDef;
use crate::sql::{name_of, span_of_name};
use crate::store::Snapshot;

/// Runs REPAIR TABLE; gives the number of rows removed, and a row for each of them and each of their index entries.
pub fn table(db: &Database, name: &Ident, dry_run: bool, watch: &Watch) -> Result<(u64, RecordBatch)> {
    let (catalog, snapshot) = db.view()?;
    let table = of_name(&catalog, name)?;
    let found = losses(&table, &*snapshot, watch)?;
    if dry_run || found.iter().all(|(_, losses)| losses.rows() == 0) {
        return Ok((0, report(found, dry_run)?));
    }
    let (_load, mut writer) = db.load(&watch.cancel)?;
    // Nobody else writes now, so this is what there is. Progress is not reported: the callback might write.
    let (catalog, snapshot) = db.view()?;
    let table = of_name(&catalog, name)?;
    let found = losses(&table, &*snapshot, &Watch { cancel: watch.cancel.clone(), ..Watch::default() })?;
    found.iter().try_for_each(|(table, losses)| losses.remove(table, &mut *writer))?;
    // Last check for cancellation: a commit is not interrupted.
    watch.cancel.check()?;
    writer.commit()?;
    Ok((found.iter().map(|(_, losses)| losses.rows()).sum(), report(found, dry_run)?))
}

fn of_name(catalog: &Catalog, name: &Ident) -> Result<Arc<TableDef>> {
    let table = catalog.table(&name_of(name)).map_err(|e| e.at(span_of_name(name)))?;
    rekeying::refuse(&table)?;
    Ok(table)
}

/// What is lost of a table, and of its history.
fn losses<'t>(
    table: &'t TableDef,
    snapshot: &dyn Snapshot,
    watch: &Watch,
) -> Result<Vec<(&'t TableDef, Losses)>> {
    let tables = std::iter::once(table).chain(table.past().map(|past| &**past));
    tables.map(|table| Ok((table, Losses::of(snapshot, table, watch)?))).collect()
}

fn report(found: Vec<(&TableDef, Losses)>, dry_run: bool) -> Result<RecordBatch> {
    let sum = |count: fn(&Losses) -> u64| found.iter().map(|(_, losses)| count(losses)).sum::<u64>();
    let detail = format!(
        "{} damaged rows of {}, and {} index entries of them, {}",
        sum(Losses::rows),
        sum(Losses::walked),
        sum(Losses::entries),
        if dry_run { "would be removed" } else { "removed" },
    );
    let summary = Problem { problem: "summary", detail, ..Problem::default() };
    let problems = found.into_iter().flat_map(|(table, losses)| losses.into_problems(table));
    problem_rows(problems.chain([summary]))
}
