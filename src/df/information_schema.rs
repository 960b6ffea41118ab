//! `information_schema`: the definitions as tables, as the SQL standard has them (ISO/IEC 9075-11), for queries and for
//! programs that look for them there.
//!
//! Of constraints, programs ask three tables by `constraint_name`: `table_constraints` says what kind it is,
//! `key_column_usage` which columns it is on, `constraint_column_usage` which columns of the parent it refers to. Names
//! that are not given are unique, as they contain the table's; those that are given are unique in their table.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::TableSource;

use super::errors::to_df;
use crate::catalog::Catalog;
use crate::error::{Error, sqlstate};
use crate::key::ColumnId;
use crate::row::type_name;
use crate::schema::{IndexDef, IndexState, ParentKey, Reference, TableDef, ViewDef};
use crate::sql::{CATALOG_HINT, INFORMATION_SCHEMA};

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
        "table_constraints" => table_constraints(catalog)?,
        "key_column_usage" => key_columns(catalog)?,
        "constraint_column_usage" => columns_used(catalog)?,
        "referential_constraints" => referential_constraints(catalog)?,
        _ => {
            return Err(to_df(
                Error::invalid(format!("there is no table \"{name}\" in {INFORMATION_SCHEMA}"))
                    .hint(CATALOG_HINT)
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

/// A constraint of a table.
struct Constraint<'c> {
    name: String,
    kind: &'static str,
    table: &'c TableDef,
    /// Of PRIMARY KEY, UNIQUE and FOREIGN KEY.
    columns: Vec<ColumnId>,
    reference: Option<&'c Reference>,
}

fn constraints(catalog: &Catalog) -> Vec<Constraint<'_>> {
    catalog.tables().flat_map(|table| constraints_of(table)).collect()
}

fn constraints_of(table: &TableDef) -> Vec<Constraint<'_>> {
    let constraint = |name: &str, kind, columns| Constraint {
        name: name.to_owned(),
        kind,
        table,
        columns,
        reference: None,
    };
    let is_keyed = table.row_number().is_none();
    let primary = is_keyed.then(|| constraint(&primary_key_of(table), "PRIMARY KEY", table.key.columns()));
    let mut all: Vec<Constraint<'_>> = primary.into_iter().collect();
    let is_constraint =
        |index: &&IndexDef| index.unique && index.filter.is_none() && index.state == IndexState::Ready;
    let unique = table.indexes.iter().filter(is_constraint);
    all.extend(unique.map(|index| constraint(&index.name, "UNIQUE", index.layout.columns())));
    all.extend(table.checks.iter().map(|check| constraint(&check.name, "CHECK", Vec::new())));
    all.extend(table.references.iter().map(|reference| Constraint {
        reference: Some(reference),
        ..constraint(&reference.name, "FOREIGN KEY", reference.columns.clone())
    }));
    all
}

/// The name that PostgreSQL gives a primary key.
fn primary_key_of(table: &TableDef) -> String {
    format!("{}_pkey", table.name)
}

fn table_constraints(catalog: &Catalog) -> DfResult<RecordBatch> {
    let all = constraints(catalog);
    let deferred = |of: &Constraint| of.reference.is_some_and(|reference| reference.deferred);
    let yes_or_no = |of: &Constraint| if deferred(of) { "YES" } else { "NO" }.to_owned();
    rows_of(
        all.len(),
        vec![
            ("constraint_name", texts(all.iter().map(|of| of.name.clone()))),
            ("table_name", texts(all.iter().map(|of| of.table.name.clone()))),
            ("constraint_type", texts(all.iter().map(|of| of.kind.to_owned()))),
            ("is_deferrable", texts(all.iter().map(yes_or_no))),
            ("initially_deferred", texts(all.iter().map(yes_or_no))),
        ],
    )
}

/// A row for each column of a constraint, with its position, and that of the parent's column in its key.
fn key_columns(catalog: &Catalog) -> DfResult<RecordBatch> {
    let all = constraints(catalog);
    let rows: Vec<(&Constraint, ColumnId, i64)> = all
        .iter()
        .flat_map(|of| of.columns.iter().zip(1..).map(move |(column, position)| (of, *column, position)))
        .collect();
    let in_parent = |(of, _, position): &(&Constraint, ColumnId, i64)| {
        let reference = of.reference?;
        let parent = catalog.table_by_id(reference.parent)?;
        let key = match reference.key_in(parent)? {
            ParentKey::Rowkey => parent.key.columns(),
            ParentKey::Index(index) => index.layout.columns(),
        };
        let column = reference.parent_columns.get(*position as usize - 1)?;
        Some(key.iter().position(|other| other == column)? as i64 + 1)
    };
    let numbers = |values: Vec<Option<i64>>| Arc::new(Int64Array::from(values)) as ArrayRef;
    rows_of(
        rows.len(),
        vec![
            ("constraint_name", texts(rows.iter().map(|(of, ..)| of.name.clone()))),
            ("table_name", texts(rows.iter().map(|(of, ..)| of.table.name.clone()))),
            ("column_name", texts(rows.iter().map(|(of, id, _)| of.table.column_name(*id).to_owned()))),
            ("ordinal_position", numbers(rows.iter().map(|(.., position)| Some(*position)).collect())),
            ("position_in_unique_constraint", numbers(rows.iter().map(in_parent).collect())),
        ],
    )
}

/// The columns that a constraint relies on: its own, and of a foreign key those of the parent.
fn columns_used(catalog: &Catalog) -> DfResult<RecordBatch> {
    let mut rows: Vec<(String, String, String)> = Vec::new();
    for of in constraints(catalog) {
        let (table, columns) = match of.reference {
            None => (of.table, &of.columns),
            Some(reference) => match catalog.table_by_id(reference.parent) {
                Some(parent) => (&**parent, &reference.parent_columns),
                None => continue,
            },
        };
        let row = |id: &ColumnId| (table.name.clone(), table.column_name(*id).to_owned(), of.name.clone());
        rows.extend(columns.iter().map(row));
    }
    rows_of(
        rows.len(),
        vec![
            ("table_name", texts(rows.iter().map(|row| row.0.clone()))),
            ("column_name", texts(rows.iter().map(|row| row.1.clone()))),
            ("constraint_name", texts(rows.iter().map(|row| row.2.clone()))),
        ],
    )
}

fn referential_constraints(catalog: &Catalog) -> DfResult<RecordBatch> {
    let mut rows: Vec<(String, Option<String>, &str)> = Vec::new();
    for reference in catalog.tables().flat_map(|table| &table.references) {
        let key = catalog.table_by_id(reference.parent).and_then(|parent| {
            Some(match reference.key_in(parent)? {
                ParentKey::Rowkey => primary_key_of(parent),
                ParentKey::Index(index) => index.name.clone(),
            })
        });
        rows.push((reference.name.clone(), key, reference.on_delete.name()));
    }
    let same = |value: &str| texts(vec![value.to_owned(); rows.len()]);
    rows_of(
        rows.len(),
        vec![
            ("constraint_name", texts(rows.iter().map(|row| row.0.clone()))),
            ("unique_constraint_name", texts(rows.iter().map(|row| row.1.clone()))),
            ("match_option", same("NONE")),
            ("update_rule", same("NO ACTION")),
            ("delete_rule", texts(rows.iter().map(|row| row.2.to_owned()))),
        ],
    )
}
