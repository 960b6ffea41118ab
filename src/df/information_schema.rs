//! `information_schema.tables`, `.columns` and `.views`: the definitions as tables, as the SQL standard has them
//! (ISO/IEC 9075-11), for queries and for programs that look for them there.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::TableSource;

use super::errors::to_df;
use crate::catalog::Catalog;
use crate::error::{Error, sqlstate};
use crate::row::type_name;
use crate::schema::{TableDef, ViewDef};
use crate::sql::INFORMATION_SCHEMA;

/// The name of every database, and of the schema of all tables.
const CATALOG: &str = "rowkeydb";
const SCHEMA: &str = "public";

/// A table of the schema. `columns_of` gives those of a view, if it can be planned. Errors: there is no such table.
pub fn table(
    name: &str,
    catalog: &Catalog,
    columns_of: &dyn Fn(&ViewDef) -> Option<SchemaRef>,
) -> DfResult<Arc<dyn TableSource>> {
    let rows = match name {
        "tables" => tables(catalog)?,
        "columns" => columns(catalog, columns_of)?,
        "views" => views(catalog)?,
        _ => {
            return Err(to_df(
                Error::invalid(format!("there is no table \"{name}\" in {INFORMATION_SCHEMA}"))
                    .hint("it has tables, columns and views; SHOW INDEXES lists index tables")
                    .state(sqlstate::UNDEFINED_TABLE),
            ));
        }
    };
    let table = MemTable::try_new(rows.schema(), vec![vec![rows]])?;
    Ok(provider_as_source(Arc::new(table)))
}

/// Rows of named columns, behind the two that each table begins with.
fn rows_of(rows: usize, columns: Vec<(&str, ArrayRef)>) -> DfResult<RecordBatch> {
    let same = |value: &'static str| Arc::new(StringArray::from(vec![value; rows])) as ArrayRef;
    let first = [("table_catalog", same(CATALOG)), ("table_schema", same(SCHEMA))];
    let nullable = first.into_iter().chain(columns).map(|(name, values)| (name, values, true));
    Ok(RecordBatch::try_from_iter_with_nullable(nullable)?)
}

fn texts<T: Into<Option<String>>>(values: impl IntoIterator<Item = T>) -> ArrayRef {
    Arc::new(values.into_iter().map(Into::into).collect::<StringArray>())
}

fn tables(catalog: &Catalog) -> DfResult<RecordBatch> {
    let tables = catalog.tables().map(|table| (table.name.clone(), "BASE TABLE".to_owned()));
    let views = catalog.views().map(|view| (view.name.clone(), "VIEW".to_owned()));
    let (names, types): (Vec<String>, Vec<String>) = tables.chain(views).unzip();
    rows_of(names.len(), vec![("table_name", texts(names)), ("table_type", texts(types))])
}

fn views(catalog: &Catalog) -> DfResult<RecordBatch> {
    let (names, queries): (Vec<String>, Vec<String>) =
        catalog.views().map(|view| (view.name.clone(), view.sql.clone())).unzip();
    rows_of(names.len(), vec![("table_name", texts(names)), ("view_definition", texts(queries))])
}

/// A row of `columns`.
struct ColumnRow {
    table: String,
    name: String,
    position: i64,
    default: Option<String>,
    nullable: bool,
    ty: String,
    length: Option<i64>,
}

fn columns(catalog: &Catalog, columns_of: &dyn Fn(&ViewDef) -> Option<SchemaRef>) -> DfResult<RecordBatch> {
    let mut rows: Vec<ColumnRow> = catalog.tables().flat_map(|table| of_table(table)).collect();
    for view in catalog.views() {
        rows.extend(columns_of(view).into_iter().flat_map(|schema| of_view(view, &schema)));
    }
    let number = |of: fn(&ColumnRow) -> Option<i64>| Arc::new(rows.iter().map(of).collect::<Int64Array>());
    let yes_or_no = |yes: bool| if yes { "YES" } else { "NO" }.to_owned();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("table_name", texts(rows.iter().map(|row| row.table.clone()))),
        ("column_name", texts(rows.iter().map(|row| row.name.clone()))),
        ("ordinal_position", number(|row| Some(row.position))),
        ("column_default", texts(rows.iter().map(|row| row.default.clone()))),
        ("is_nullable", texts(rows.iter().map(|row| yes_or_no(row.nullable)))),
        ("data_type", texts(rows.iter().map(|row| row.ty.clone()))),
        ("character_maximum_length", number(|row| row.length)),
    ];
    rows_of(rows.len(), columns)
}

fn of_table(table: &TableDef) -> Vec<ColumnRow> {
    let row = |(at, column): (usize, &crate::schema::Column)| ColumnRow {
        table: table.name.clone(),
        name: column.name.clone(),
        position: at as i64 + 1,
        default: column.default.clone(),
        nullable: column.nullable,
        ty: column.ty.sql_name(),
        length: column.max_len.map(i64::from),
    };
    table.live_columns().map(|(_, column)| column).enumerate().map(row).collect()
}

fn of_view(view: &ViewDef, schema: &SchemaRef) -> Vec<ColumnRow> {
    let row = |(at, field): (usize, &Arc<arrow::datatypes::Field>)| ColumnRow {
        table: view.name.clone(),
        name: field.name().clone(),
        position: at as i64 + 1,
        default: None,
        nullable: field.is_nullable(),
        ty: type_name(field),
        length: None,
    };
    schema.fields().iter().enumerate().map(row).collect()
}
