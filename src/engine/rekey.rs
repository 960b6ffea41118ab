//! ALTER TABLE REKEY: gives a table another key layout while it is read and written (online DDL).
//!
//! 1. The table's future definition is committed beside the current one, with its own keyspaces and a UNIQUE
//!    index over the new layout, which is then built as CREATE INDEX does. It finds rows that would share a
//!    rowkey, or that the layout refuses; from here on, writes of such rows are refused.
//! 2. The new families and indexes are backfilled, step by step. From now on every write goes to both tables
//!    ([`crate::exec::rekey`]).
//! 3. Both are compared at one snapshot. From there on every write keeps them equal.
//! 4. One change of the catalog puts the new table in the place of the old one, and frees the old keyspaces.
//!
//! Nobody reads the new table before that. Whatever stops the REKEY earlier leaves the table as it was: an
//! error or Ctrl-C undoes the work, and after a kill it resumes when the database is opened ([`resume`]).

use sqlparser::ast::Ident;

use super::Database;
use super::analyze;
use super::build::{self, Job};
use super::ddl::references::{refuse_if_set, refuse_without_key};
use super::ddl::{layout_warnings, primary_layout, table_if, views_pass};
use super::outcome::Warning;
use super::rekeying::being_rekeyed;
use super::view::StatementView;
use crate::catalog::{Catalog, CatalogEdit};
use crate::error::{Error, Kind, Result, sqlstate};
use crate::exec::rekey::verify;
use crate::exec::watch::Watch;
use crate::key::{ColumnId, KeyLayout};
use crate::schema::{IndexDef, IndexId, IndexState, Rekey, SortedBy, TableDef};
use crate::sql::{AlterTable, AlterTableOp, KeyExpr, name_of, name_sql, span_of_name};

/// Runs ALTER TABLE REKEY or ADD PRIMARY KEY, or resumes an unfinished one with the same layout. Gives its warnings.
pub fn rekey(db: &Database, alter: &AlterTable, keys: &[KeyExpr], watch: &Watch) -> Result<Vec<Warning>> {
    let Some(_exclusive) = db.shared.rekeying.try_lock() else {
        return Err(Error::new(Kind::Unavailable, "another table is being re-keyed")
            .why("one at a time reads and writes enough")
            .hint("run it again when that is done, or ALTER TABLE ... REKEY CANCEL there")
            .state(sqlstate::OBJECT_STATE));
    };
    let at = span_of_name(&alter.name);
    let defined = db.change_catalog(&watch.cancel, |catalog| {
        let Some(table) = table_if(catalog, &alter.name, alter.if_exists)? else { return Ok((None, None)) };
        if matches!(alter.op, AlterTableOp::AddKey { .. }) && table.row_number().is_none() {
            return Err(has_key(&table).at(at));
        }
        let layout = primary_layout(&table, keys)?;
        if table.history.is_some() {
            return Err(Error::unsupported(format!(
                "table \"{}\" keeps versions, by its rowkeys",
                table.name
            ))
            .hint(format!("ALTER TABLE {} SET (versions = 1) gives them up", name_sql(&table.name)))
            .state(sqlstate::OBJECT_STATE)
            .at(at));
        }
        if let Some(under_way) = &table.rekey {
            if under_way.next.key.makes_same_keys_as(&layout) {
                return Ok((Some((under_way.keys.id, no_longer_unique(&table, &under_way.next))), None));
            }
            return Err(being_rekeyed(&table, under_way).at(at));
        }
        let mut edit = catalog.edit();
        let rekey = plan(&mut edit, &table, layout).map_err(|e| e.at(at))?;
        let what = format!("\"{}\" cannot have this layout", table.name);
        refuse_without_key(catalog, &table, &rekey.next, &what).map_err(|e| e.at(at))?;
        refuse_if_set(&table, &rekey.next).map_err(|e| e.at(at))?;
        let (id, loose) = (rekey.keys.id, no_longer_unique(&table, &rekey.next));
        let mut switched = catalog.edit();
        switched.put_table(rekey.next.clone())?;
        views_pass(db, catalog, &switched.finish()?.0, StatementView::check_view).map_err(|e| e.at(at))?;
        edit.put_table(TableDef { rekey: Some(Box::new(rekey)), ..(*table).clone() })?;
        Ok((Some((id, loose)), Some(edit.finish()?)))
    })?;
    let Some((id, loose)) = defined else { return Ok(Vec::new()) };
    match run(db, id, watch) {
        Ok(warnings) => Ok(loose.into_iter().chain(warnings).collect()),
        Err(e) if find(&db.catalog(), id).is_none() => {
            let what = format!("the re-keying of \"{}\" was cancelled", name_of(&alter.name));
            Err(Error::new(Kind::Cancelled, what).why("the table is as it was").caused_by(e))
        }
        Err(e) => {
            // Report what stopped the REKEY; as a hint, that it could not be undone.
            let undone = undo(db, id);
            Err(match e.sqlstate() {
                _ if undone.is_err() => build::not_undone(
                    e,
                    "the table is being re-keyed still: that goes on when the database is opened again",
                ),
                sqlstate::UNIQUE => e,
                _ if e.kind() != Kind::Invalid => e,
                _ => e.hint("the table is as it was: change the row, or take a layout that can hold it"),
            })
        }
    }
}

/// The error for ADD PRIMARY KEY.
fn has_key(table: &TableDef) -> Error {
    Error::invalid(format!("table \"{}\" has a PRIMARY KEY already", table.name))
        .why(format!("its rowkeys are made of {}", table.key.sql()))
        .hint(format!("ALTER TABLE {} REKEY (...) gives it another one", name_sql(&table.name)))
        .state(sqlstate::INVALID_TABLE_DEFINITION)
}

/// The columns of the rowkey, if rows of the `next` table may have the same.
fn no_longer_unique(table: &TableDef, next: &TableDef) -> Option<Warning> {
    let unique = table.key.columns();
    let are_among = |columns: &[ColumnId]| columns.iter().all(|id| unique.contains(id));
    let mut keys = next.indexes.iter().filter(|index| index.unique && index.filter.is_none());
    if table.key.is_drawn()
        || table.row_number().is_some()
        || are_among(&next.key.columns())
        || keys.any(|index| are_among(&index.layout.columns()))
    {
        return None;
    }
    let names: Vec<String> = unique.iter().map(|id| name_sql(table.column_name(*id))).collect();
    let names = names.join(", ");
    Some(Warning {
        code: None,
        what: format!("rows of \"{}\" may have the same {names} from now on", table.name),
        why: "the rowkey was made of these columns alone, which kept them unique".to_owned(),
        hint: format!("CREATE UNIQUE INDEX ON {} ({names}) keeps them so", name_sql(&table.name)),
    })
}

/// The future table, and the index over the new layout.
///
/// Errors: the table has this layout already; an index that is not Ready, and which the new table would need.
fn plan(edit: &mut CatalogEdit, table: &TableDef, layout: KeyLayout) -> Result<Rekey> {
    if layout.makes_same_keys_as(&table.key) {
        return Err(Error::invalid(format!("\"{}\" has this layout already", table.name))
            .why(format!("its rowkeys are made of {}", table.key.sql()))
            .state(sqlstate::OBJECT_STATE));
    }
    if let Some(index) = table.indexes.iter().find(|index| index.state != IndexState::Ready) {
        return Err(Error::invalid(format!("index \"{}\" is {}", index.name, index.state.name()))
            .why("index tables move with their table, and this one may not hold what it should")
            .hint(format!("REPAIR INDEX {0}, or DROP INDEX {0}, then REKEY", name_sql(&index.name)))
            .state(sqlstate::OBJECT_STATE));
    }
    let mut next = TableDef { key: layout.clone(), rekey: None, ..table.clone() };
    next.split_at(Vec::new());
    // What has a key needs no numbers.
    table.row_number().into_iter().for_each(|id| next.columns[usize::from(id.0)].dropped = true);
    for id in layout.columns() {
        next.columns[usize::from(id.0)].nullable = false;
    }
    for family in &mut next.families {
        family.keyspace = edit.new_keyspace();
    }
    for index in &mut next.indexes {
        index.keyspace = edit.new_keyspace();
        index.point_at(&layout);
    }
    let keys = IndexDef {
        id: edit.new_index_id(),
        name: format!("next keys of {}", table.name),
        unique: true,
        layout,
        include: Vec::new(),
        given: Vec::new(),
        filter: None,
        filter_sql: None,
        state: IndexState::Building,
        keyspace: edit.new_keyspace(),
        holds_primary: false,
        sorted_by: SortedBy::default(),
    };
    Ok(Rekey { next, keys })
}

/// Runs the remaining steps; gives warnings about the new layout.
///
/// Errors: rows that the layout cannot hold; `Conflict` if it was cancelled meanwhile.
fn run(db: &Database, id: IndexId, watch: &Watch) -> Result<Vec<Warning>> {
    let stage = |catalog: &Catalog| find(catalog, id).map(|(_, rekey)| rekey.keys.state).ok_or_else(gone);
    if stage(&db.catalog())? == IndexState::Building {
        if let Some(taken) = build::steps(db, id, Job::Entries, watch)? {
            return Err(taken);
        }
        build::set_state(db, id, IndexState::Ready, &watch.cancel)?;
    }
    build::steps(db, id, Job::Rows, watch)?;
    let (catalog, snapshot) = db.view()?;
    let (table, rekey) = find(&catalog, id).ok_or_else(gone)?;
    verify(table, &rekey.next, &*snapshot, watch)?;
    let warnings = layout_warnings(&rekey.next, &rekey.next.key).into_iter();
    let mut warnings: Vec<Warning> = warnings.map(|w| w.of(&table.name)).collect();
    if !table.splits.is_empty() {
        let name = name_sql(&table.name);
        warnings.push(Warning {
            code: None,
            what: format!("the {} regions of {name} are one again", table.splits.len() + 1),
            why: "split points are keys of the old layout".into(),
            hint: format!("ALTER TABLE {name} SPLIT INTO {} FROM DATA", table.splits.len() + 1),
        });
    }
    db.change_catalog(&watch.cancel, |catalog| {
        let (table, rekey) = find(catalog, id).ok_or_else(gone)?;
        let mut edit = catalog.edit();
        edit.switch(table, rekey)?;
        let (next, batch) = edit.finish()?;
        views_pass(db, catalog, &next, StatementView::check_view)?;
        Ok(((), Some((next, batch))))
    })?;
    if catalog.statistics(table.id).is_some() {
        // If this fails, estimates are rougher until the next ANALYZE.
        let _ = analyze::analyze(db, &rekey.next, watch);
    }
    Ok(warnings)
}

/// Runs ALTER TABLE REKEY CANCEL.
pub fn cancel(db: &Database, name: &Ident, watch: &Watch) -> Result<()> {
    db.change_catalog(&watch.cancel, |catalog| {
        let table = catalog.table(&name_of(name)).map_err(|e| e.at(span_of_name(name)))?;
        let Some(rekey) = &table.rekey else {
            return Err(Error::invalid(format!("\"{}\" is not being re-keyed", table.name))
                .state(sqlstate::OBJECT_STATE)
                .at(span_of_name(name)));
        };
        let mut edit = catalog.edit();
        edit.drop_rekey(&table, rekey)?;
        Ok(((), Some(edit.finish()?)))
    })
}

/// Resumes unfinished re-keys. One whose rows do not fit the new layout is undone, and a new REKEY would name
/// the rows; after an error of the disk it stays for REKEY to continue.
pub fn resume(db: &Database, watch: &Watch) {
    let _exclusive = db.shared.rekeying.lock();
    let under_way: Vec<IndexId> = db.catalog().rekeyed().collect();
    for id in under_way {
        match run(db, id, watch) {
            Err(e) if e.kind() == Kind::Invalid => drop(undo(db, id)),
            Ok(_) | Err(_) => {}
        }
    }
}

fn undo(db: &Database, id: IndexId) -> Result<()> {
    db.change_catalog(&build::undoing(), |catalog| {
        let Some((table, rekey)) = find(catalog, id) else { return Ok(((), None)) };
        let mut edit = catalog.edit();
        edit.drop_rekey(table, rekey)?;
        Ok(((), Some(edit.finish()?)))
    })
}

fn find(catalog: &Catalog, id: IndexId) -> Option<(&TableDef, &Rekey)> {
    catalog.tables().find_map(|table| {
        let rekey = table.rekey.as_deref().filter(|rekey| rekey.keys.id == id)?;
        Some((&**table, rekey))
    })
}

fn gone() -> Error {
    Error::new(Kind::Conflict, "the re-keying was cancelled")
}
