//! DUMP: a database as an SQL script that makes it again.
//!
//! Tables with their rows, then index tables, then views, all of one moment. Identity columns go on where they
//! were. What the script cannot say: a `random(n)` part of a key is drawn anew.

use std::io::Write;

use super::Database;
use super::session::Session;
use super::show::{create_index_sql, create_table_sql, create_view_sql};
use crate::catalog::{CATALOG_KEYSPACE, Catalog, identity_key};
use crate::error::{Error, Result};
use crate::key::ColumnId;
use crate::schema::{IndexState, TableDef, ViewDef};
use crate::sql::name_sql;
use crate::store::Reader;
use crate::value::{Literal, Value};

/// Bytes of a statement at which the next row begins a new one.
const STATEMENT_BYTES: usize = 64 << 10;

/// Writes the script.
///
/// Errors: what reading runs into; `out` fails.
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
            if index.state == IndexState::Broken {
                writeln!(out, "-- Broken, so left out:")?;
                write!(out, "-- ")?;
            }
            writeln!(out, "{};", create_index_sql(&table, index))?;
        }
    }
    for view in in_order(&view.catalog) {
        writeln!(out, "\n{};", create_view_sql(view))?;
    }
    Ok(out.flush()?)
}

/// Makes the table's identities start with the number they would give out next.
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

/// INSERTs of every row.
fn rows(session: &mut Session, table: &TableDef, out: &mut dyn Write) -> Result<()> {
    let columns: Vec<String> = table.live_columns().map(|(_, column)| name_sql(&column.name)).collect();
    let columns = columns.join(", ");
    let always = table.live_columns().any(|(_, c)| c.identity.is_some_and(|identity| identity.always));
    let overriding = if always { " OVERRIDING SYSTEM VALUE" } else { "" };
    let name = name_sql(&table.name);
    let head = format!("INSERT INTO {name} ({columns}){overriding} VALUES");
    let mut written = 0;
    for row in session.query(&format!("SELECT /*+ FULL */ {columns} FROM {name}"), &[])? {
        let values: Vec<String> = row?.values()?.iter().map(literal).collect();
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

fn literal(value: &Value) -> String {
    match value {
        // There is no number for these, but a text that is cast.
        Value::Double(d) if !d.is_finite() => format!("'{value}'"),
        value => Literal(value.as_ref()).to_string(),
    }
}

/// Views, those after the others that mention them.
fn in_order(catalog: &Catalog) -> Vec<&ViewDef> {
    let mut left: Vec<&ViewDef> = catalog.views().map(|view| &**view).collect();
    let mut ordered = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let free = left.iter().position(|view| {
            !left.iter().any(|other| other.name != view.name && view.sql.contains(&other.name))
        });
        ordered.push(left.remove(free.unwrap_or(0)));
    }
    ordered
}
