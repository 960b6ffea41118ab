//! CREATE INDEX and REPAIR INDEX: an index over rows that are already there.
//!
//! 1. The definition is committed in state Building: from then on every write keeps the index, and no
//!    query reads it.
//! 2. The rows of a snapshot are read, their entries sorted and written through the bulk door, under
//!    the writer lock and from each row as it is by then. What was written meanwhile is only overwritten
//!    with the same.
//! 3. The definition is committed in state Ready. If building fails, the index is dropped again and the
//!    table is untouched.

use std::sync::Arc;

use sqlparser::ast::{Expr, Ident, SetExpr};

use super::Database;
use super::ddl::{free_name, layout_warnings, new_index, new_name};
use super::outcome::Warning;
use super::rows::quote;
use crate::access::Guards;
use crate::catalog::Catalog;
use crate::df::query::Scope;
use crate::df::table::Binding;
use crate::error::{Error, Result, sqlstate};
use crate::exec::bulk::build_index;
use crate::exec::watch::Watch;
use crate::key::{ColumnId, KeyRange, Rowkey};
use crate::plan::Predicate;
use crate::schema::{IndexDef, IndexId, IndexState, TableDef};
use crate::sql::{CreateIndex, name_of, span_of, span_of_name};
use crate::store::Direction;

/// Runs CREATE INDEX; gives its warnings.
pub fn create_index(db: &Database, create: &CreateIndex, watch: &Watch) -> Result<Vec<Warning>> {
    let defined = db.change_catalog(|catalog| {
        let table = catalog.table(&name_of(&create.table)).map_err(|e| e.at(span_of_name(&create.table)))?;
        let name = match &create.name {
            Some(name) => new_name(name)?,
            None => free_name(catalog, &table, &create.keys),
        };
        if create.if_not_exists && catalog.index(&name).is_ok() {
            return Ok((None, None));
        }
        catalog.check_free(&name).map_err(|e| e.at(create.name.as_ref().and_then(span_of_name)))?;
        let include =
            create.include.iter().map(|ident| column(&table, ident)).collect::<Result<Vec<ColumnId>>>()?;
        let filter = match (&create.filter, &create.filter_sql) {
            (Some(filter), Some(sql)) => Some((condition(db, catalog, &table, filter)?, sql.clone())),
            _ => None,
        };
        let mut edit = catalog.edit();
        let index = new_index(&mut edit, &table, name, create.unique, &create.keys, &include, filter)?;
        let warnings = layout_warnings(&table, &index.layout);
        let id = index.id;
        let mut table = (*table).clone();
        table.indexes.push(index);
        edit.put_table(table.clone())?;
        Ok((Some((table, id, warnings)), Some(edit.finish()?)))
    })?;
    let Some((table, id, warnings)) = defined else { return Ok(Vec::new()) };
    match fill(db, &table, id, watch) {
        Ok(()) => set_state(db, &table.name, id, IndexState::Ready).map(|()| warnings),
        Err(e) => {
            drop_index(db, &table.name, id)?;
            Err(e)
        }
    }
}

/// The WHERE of an index as a predicate.
fn condition(db: &Database, catalog: &Catalog, table: &TableDef, filter: &Expr) -> Result<Predicate> {
    let mut query = crate::sql::parse_query(&format!("SELECT 1 FROM {}", quote(&table.name)))?;
    if let SetExpr::Select(select) = &mut *query.body {
        select.selection = Some(filter.clone());
    }
    let binding =
        Binding { snapshot: db.store().snapshot()?, params: Arc::from([]), guards: Guards::default() };
    let scope = Scope { catalog, binding, rowkeys: Vec::new(), rows: Vec::new() };
    db.planner().condition(query, &scope).map_err(|e| e.at(span_of(filter)))
}

fn column(table: &TableDef, ident: &Ident) -> Result<ColumnId> {
    table.column_id(&name_of(ident)).ok_or_else(|| {
        Error::invalid(format!("table \"{}\" has no column \"{}\"", table.name, name_of(ident)))
            .state(sqlstate::UNDEFINED_COLUMN)
            .at(span_of_name(ident))
    })
}

/// Runs REPAIR INDEX: builds it anew from the table.
pub fn repair(db: &Database, name: &Ident, watch: &Watch) -> Result<()> {
    let (table, id) = db.change_catalog(|catalog| {
        let (table, index) = catalog.index(&name_of(name)).map_err(|e| e.at(span_of_name(name)))?;
        let mut edit = catalog.edit();
        let mut table = (*table).clone();
        edit.batch.clear(index.keyspace);
        with_index(&mut table, index.id, |index| index.state = IndexState::Building);
        edit.put_table(table.clone())?;
        Ok(((table, index.id), Some(edit.finish()?)))
    })?;
    match fill(db, &table, id, watch) {
        Ok(()) => set_state(db, &table.name, id, IndexState::Ready),
        Err(e) => {
            set_state(db, &table.name, id, IndexState::Broken)?;
            Err(e)
        }
    }
}

fn with_index(table: &mut TableDef, id: IndexId, change: impl FnOnce(&mut IndexDef)) {
    if let Some(index) = table.indexes.iter_mut().find(|i| i.id == id) {
        change(index);
    }
}

/// Writes the entries of every row that was there when the index came.
fn fill(db: &Database, table: &TableDef, id: IndexId, watch: &Watch) -> Result<()> {
    let Some(index) = table.index_by_id(id) else { return Ok(()) };
    let mut rows: Vec<Rowkey> = Vec::new();
    {
        let snapshot = db.0.store.snapshot()?;
        let reader = snapshot.reader()?;
        let total = reader.entries(table.rows())?;
        let mut cursor = reader.cursor(table.rows(), &KeyRange::all(), Direction::Forward)?;
        while let Some((key, _)) = cursor.next()? {
            rows.push(key.into());
            if rows.len().is_multiple_of(65_536) {
                watch.step(&format!("reading {}", table.name), rows.len() as u64, Some(total), "rows")?;
            }
        }
    }
    if rows.is_empty() {
        return Ok(());
    }
    let mut writer = db.0.store.bulk()?;
    build_index(table, index, &rows, &mut *writer, watch)?;
    writer.commit()
}

fn set_state(db: &Database, table: &str, id: IndexId, state: IndexState) -> Result<()> {
    change_table(db, table, |table| with_index(table, id, |index| index.state = state))
}

fn drop_index(db: &Database, table: &str, id: IndexId) -> Result<()> {
    change_table(db, table, |table| table.indexes.retain(|i| i.id != id))
}

fn change_table(db: &Database, name: &str, change: impl FnOnce(&mut TableDef)) -> Result<()> {
    db.change_catalog(|catalog| {
        // The table may be gone by now: then so is its index.
        let Ok(table) = catalog.table(name) else { return Ok(((), None)) };
        let before = (*table).clone();
        let mut table = before.clone();
        change(&mut table);
        let mut edit = catalog.edit();
        let gone = before.indexes.iter().filter(|i| !table.indexes.iter().any(|left| left.id == i.id));
        gone.for_each(|index| edit.free_keyspace(index.keyspace));
        edit.put_table(table)?;
        Ok(((), Some(edit.finish()?)))
    })
}
