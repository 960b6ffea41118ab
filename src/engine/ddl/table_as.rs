//! CREATE TABLE .. AS: a table with the columns of a query, filled with its rows in the same atomic step.

use std::sync::Arc;

use arrow::datatypes::Field;
use sqlparser::ast::{Ident, Query};

use super::{columns, create_table};
use crate::engine::bulk::fill;
use crate::engine::outcome::Warning;
use crate::engine::plans::SourceQuery;
use crate::engine::query_rows::QueryRows;
use crate::engine::rows::in_row;
use crate::engine::session::Session;
use crate::engine::vet;
use crate::engine::view::StatementView;
use crate::error::{Error, Kind, Result, sqlstate};
use crate::exec::bulk::Loader;
use crate::key::ColumnId;
use crate::row::{column_type_of, type_name};
use crate::sql::{ColumnDef, CreateTable, name_of, name_sql, output_name, span_of_name};

/// Runs CREATE TABLE AS `query`; gives warnings and the number of rows, which is 0 if IF NOT EXISTS found a table.
pub async fn create_table_as(
    session: &mut Session,
    create: &CreateTable,
    query: &Query,
) -> Result<(Vec<Warning>, u64)> {
    let view = session.view()?;
    let of_query = view.columns_of(query.clone(), 0, &[])?;
    let create = CreateTable { columns: all_columns(create, of_query.fields())?, ..create.clone() };
    vet::table(session, &create, &columns(&create)?).await?;
    let asked = Arc::new(SourceQuery { query: query.clone(), lifted: None });
    let settings = view.settings;
    session.change_rows(|catalog, view, writer| {
        let view = StatementView { settings, ..view.clone() };
        let (warnings, next) = create_table(catalog, &create)?;
        let Some((after, batch)) = next else { return Ok(((warnings, 0), None)) };
        let table = after.table(&name_of(&create.name))?;
        if table.refers_to_itself() {
            return Err(Error::unsupported(format!("\"{}\" cannot refer to itself yet", table.name))
                .why("its rows are written while it is made")
                .hint(format!("ALTER TABLE {} ADD FOREIGN KEY (...) does that behind it", create.name))
                .at(create.references.first().map(|reference| reference.span)));
        }
        // Which row is stored under which key does not depend on the order in which they come.
        let mut source = view.db.runtime().block_on(QueryRows::open(&view, asked, &[], false))?;
        if source.width() != create.columns.len() {
            return Err(Error::new(Kind::Conflict, "what the query reads has been changed meanwhile")
                .hint("run the statement again"));
        }
        let given: Vec<ColumnId> = (0..source.width()).map(|at| ColumnId(at as u16)).collect();
        let loader = Loader::new(&table, writer, None, &view.watch);
        let next = || source.next_rows(&view, &table);
        let rows = fill(loader, &view, &table, (&given, None), None, next).map_err(in_row)?;
        Ok(((warnings, rows), Some((after, batch))))
    })
}

/// The definitions of the query's columns, in its order: those that `create` declares, and others of the query's types.
///
/// Errors: a declared column that the query does not have; a type that no column can have.
fn all_columns<'f>(
    create: &CreateTable,
    of_query: impl IntoIterator<Item = &'f Arc<Field>>,
) -> Result<Vec<ColumnDef>> {
    let mut declared = create.columns.clone();
    let mut all = Vec::new();
    for field in of_query {
        let name = output_name(field.name());
        all.push(match declared.iter().position(|def| name_of(&def.name) == name) {
            Some(at) => declared.remove(at),
            None => of_field(create, name, field)?,
        });
    }
    let Some(missing) = declared.first() else { return Ok(all) };
    let names: Vec<String> = all.iter().map(|def| name_sql(&name_of(&def.name))).collect();
    Err(Error::invalid(format!("the query has no column \"{}\"", name_of(&missing.name)))
        .why("a table made of a query has the query's columns")
        .hint(format!("columns of the query are {}", names.join(", ")))
        .state(sqlstate::UNDEFINED_COLUMN)
        .at(missing.span))
}

fn of_field(create: &CreateTable, name: &str, field: &Field) -> Result<ColumnDef> {
    let Some(data_type) = column_type_of(field) else {
        return Err(Error::invalid(format!("column \"{name}\" would be {}", type_name(field)))
            .why("columns of tables cannot have this type")
            .hint(format!(
                "declare it, CREATE TABLE {} ({name} VARCHAR, PRIMARY KEY ...), or cast it",
                create.name
            ))
            .state(sqlstate::DATATYPE_MISMATCH)
            .at(span_of_name(&create.name)));
    };
    Ok(ColumnDef {
        name: Ident::with_quote('"', name),
        data_type,
        max_len: None,
        without_digits: false,
        not_null: false,
        default: None,
        identity: None,
        span: span_of_name(&create.name).unwrap_or_default(),
    })
}
