//! DUMP: writes a database as an SQL script that recreates it.
//!
//! Tables with their rows and indexes come first, then foreign keys, then views, all from one snapshot. Identity columns
//! continue where they were. What the script does not bring back: when rows were written (a `ttl` begins anew), older
//! versions of rows, and ANALYZE's statistics; `random(n)` parts of keys are drawn anew. BACKUP keeps all of that.

use std::collections::BTreeSet;
use std::io::Write;

use super::Database;
use super::session::Session;
use super::show::{
    add_reference_sql, create_index_sql, create_table_sql, create_view_sql, definitions, references_sql,
    referred_tables,
};
use crate::catalog::{CATALOG_KEYSPACE, Catalog, Relation, identity_key, index_of};
use crate::error::{Error, Result};
use crate::key::ColumnId;
use crate::schema::{IndexState, ParentKey, TableDef, ViewDef};
use crate::sql::{name_sql, parse_query, relations_of};
use crate::store::Reader;
use crate::value::sql_of;

/// Bytes of a statement after which the next row begins a new one.
const STATEMENT_BYTES: usize = 64 << 10;

/// Writes the script.
///
/// Errors: those of reading; `out` fails.
pub fn dump(db: &Database, out: &mut dyn Write) -> Result<()> {
    let mut session = db.session();
    session.execute("BEGIN READ ONLY", &[])?;
    let view = session.view()?;
    writeln!(out, "-- a dump of RowkeyDB; run it over an empty database: rowkeydb run --db FOLDER FILE")?;
    for table in view.catalog.tables() {
        let mut table = (**table).clone();
        continue_identities(&*view.snapshot.reader()?, &mut table)?;
        writeln!(out, "\n{};", create_table_sql(&table))?;
        rows(&mut session, &table, out)?;
        for index in &table.indexes {
            let sql = create_index_sql(&table, index);
            match index.state {
                IndexState::Broken => left_out(out, "Broken", &sql)?,
                IndexState::Ready | IndexState::Building => writeln!(out, "{sql};")?,
            }
        }
    }
    for table in view.catalog.tables().filter(|table| !table.references.is_empty()) {
        writeln!(out)?;
        for (reference, parent) in referred_tables(&view.catalog, table) {
            let sql = add_reference_sql(table, reference, parent);
            let is_there = |key| !matches!(key, ParentKey::Index(index) if index.state == IndexState::Broken);
            match reference.keys_in(parent).any(is_there) {
                true => writeln!(out, "{sql};")?,
                false => left_out(out, "its key is Broken", &sql)?,
            }
        }
    }
    for def in in_order(&view.catalog) {
        let sql = create_view_sql(def);
        writeln!(out)?;
        match view.view_schema(def) {
            Ok(_) => writeln!(out, "{sql};")?,
            Err(e) => left_out(out, &format!("it cannot be read ({})", e.what()), &sql)?,
        }
    }
    Ok(out.flush()?)
}

impl Database {
    /// The statements that define a table with its indexes, or a view. Without a name: all of them, each
    /// after those it depends on.
    ///
    /// Errors: there is nothing of this name.
    pub fn definitions(&self, of: Option<&str>) -> Result<Vec<String>> {
        let (catalog, _) = self.view()?;
        match of.map(|name| catalog.find(name)) {
            None => {
                let views = in_order(&catalog).into_iter().map(create_view_sql);
                let tables = catalog.tables().flat_map(|table| definitions(table));
                let references = catalog.tables().flat_map(|table| references_sql(&catalog, table));
                Ok(tables.chain(references).chain(views).collect())
            }
            Some(Some(Relation::View(view))) => Ok(vec![create_view_sql(&view)]),
            Some(Some(Relation::Index(table, id))) => {
                Ok(vec![create_index_sql(&table, index_of(&table, id)?)])
            }
            Some(Some(Relation::Table(table))) => {
                Ok(definitions(&table).into_iter().chain(references_sql(&catalog, &table)).collect())
            }
            Some(None) => Err(catalog.unknown(of.unwrap_or_default())),
        }
    }
}

/// A statement that would make the script fail, as a comment.
fn left_out(out: &mut dyn Write, why: &str, sql: &str) -> Result<()> {
    writeln!(out, "-- {why}, so left out:")?;
    format!("{sql};").lines().try_for_each(|line| writeln!(out, "-- {line}"))?;
    Ok(())
}

/// Makes the table's identities start with the next number.
fn continue_identities(reader: &dyn Reader, table: &mut TableDef) -> Result<()> {
    let id = table.id;
    for (at, column) in table.columns.iter_mut().enumerate() {
        let Some(identity) = &mut column.identity else { continue };
        if let Some(bytes) = reader.get(CATALOG_KEYSPACE, &identity_key(id, ColumnId(at as u16)))? {
            identity.start = serde_json::from_slice(bytes).map_err(|e| {
                Error::corrupt(format!("the counter of column \"{}\" cannot be read", column.name))
                    .caused_by(e)
            })?;
        }
    }
    Ok(())
}

/// INSERT statements for every row.
fn rows(session: &mut Session, table: &TableDef, out: &mut dyn Write) -> Result<()> {
    let columns: Vec<String> = table.live_columns().map(|(_, column)| name_sql(&column.name)).collect();
    let columns = columns.join(", ");
    let always = table.live_columns().any(|(_, c)| c.identity.is_some_and(|identity| identity.always));
    let overriding = if always { " OVERRIDING SYSTEM VALUE" } else { "" };
    let name = name_sql(&table.name);
    let head = format!("INSERT INTO {name} ({columns}){overriding} VALUES");
    let mut written = 0;
    for row in session.query(&format!("SELECT /*+ FULL */ {columns} FROM {name}"), &[])? {
        let values: Vec<String> = row?.values()?.iter().map(sql_of).collect();
        let line = format!("({})", values.join(", "));
        match written {
            0 => write!(out, "{head}\n  {line}")?,
            _ => write!(out, ",\n  {line}")?,
        }
        written += line.len();
        if written >= STATEMENT_BYTES {
            writeln!(out, ";")?;
            written = 0;
        }
    }
    if written > 0 {
        writeln!(out, ";")?;
    }
    Ok(())
}

/// Views in dependency order.
fn in_order(catalog: &Catalog) -> Vec<&ViewDef> {
    let mut left: Vec<(&ViewDef, BTreeSet<String>)> = Vec::new();
    for view in catalog.views() {
        left.push((view, parse_query(&view.sql).as_ref().map(relations_of).unwrap_or_default()));
    }
    let mut ordered = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let waits = |mentioned: &BTreeSet<String>, view: &ViewDef| {
            left.iter().any(|(other, _)| other.name != view.name && mentioned.contains(&other.name))
        };
        let free = left.iter().position(|(view, mentioned)| !waits(mentioned, view));
        ordered.push(left.remove(free.unwrap_or(0)).0);
    }
    ordered
}
