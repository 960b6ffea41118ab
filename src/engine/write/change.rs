//! UPDATE and DELETE: a query finds the rows and their new values.

use std::collections::HashSet;

use sqlparser::ast::{Ident, LimitClause, OrderBy, OrderByKind, Query, SelectItem, SetExpr, TableWithJoins};

use super::returned::{Others, Returned};
use super::{Assigned, Changed, ROWKEY, Target, Written, assigned_columns, key_update, name_in, select};
use crate::engine::rows::{check_constraints, literal, quote, values_of};
use crate::engine::view::View;
use crate::error::{Error, Result};
use crate::exec::dml::RowWriter;
use crate::key::{ColumnId, Rowkey};
use crate::schema::TableDef;
use crate::sql::{Assignment, Delete, Update, name_of, name_sql, parse_query};
use crate::store::WriteBatch;
use crate::value::Value;

/// UPDATE.
pub async fn update(view: &View, stmt: &Update, params: &[Value]) -> Result<Written> {
    let table = view.table(&stmt.table)?;
    let targets = assigned_columns(&table, &stmt.assignments)?;
    if let Some(at) = targets.iter().position(|id| table.is_key_column(*id)) {
        return Err(key_update(&table, &stmt.assignments[at].column, move_rows(&table, stmt)));
    }
    let returned =
        Returned::new(&table, &name_in(&stmt.table, &stmt.alias), &stmt.returning, stmt.from.is_empty());
    let assigned = Assigned::new(view, &table, &stmt.assignments, (&targets, params))?;
    let query = update_query(stmt, &assigned, &returned)?;
    let found = view.select_rowkeys(query, ROWKEY, params).await?;
    let (found, taken) = returned.split(found)?;
    let mut updates: Vec<(Rowkey, Vec<Value>)> = Vec::new();
    for mut row in values_of(&found)? {
        let values = row.split_off(1);
        updates.push((rowkey_of(row.pop())?, values));
    }
    let others = Others::new(taken, updates.iter().map(|(rowkey, _)| rowkey));
    let mut seen = HashSet::new();
    updates.retain(|(rowkey, _)| seen.insert(rowkey.clone()));
    let changed = stage_updates(view, &table, (&targets, &assigned), updates)?;
    let rows: Vec<Vec<Value>> = if table.checks.is_empty() {
        Vec::new()
    } else {
        changed.changes.values().filter_map(|change| change.new.clone()).collect()
    };
    check_constraints(view, &table, &rows).await?;
    let target = Target::new(view, &table, (&stmt.table, &stmt.alias), &returned.items, params);
    Target { others, ..target }.finish(changed, WriteBatch::default()).await
}

/// DELETE.
pub async fn delete(view: &View, stmt: &Delete, params: &[Value]) -> Result<Written> {
    let table = view.table(&stmt.table)?;
    let returned =
        Returned::new(&table, &name_in(&stmt.table, &stmt.alias), &stmt.returning, stmt.using.is_empty());
    let found = view.select_rowkeys(delete_query(stmt, &returned)?, ROWKEY, params).await?;
    let (found, taken) = returned.split(found)?;
    let rowkeys: Vec<Rowkey> =
        values_of(&found)?.into_iter().map(|mut row| rowkey_of(row.pop())).collect::<Result<_>>()?;
    let others = Others::new(taken, rowkeys.iter());
    let changed = stage_deletes(view, &table, rowkeys)?;
    let target = Target::new(view, &table, (&stmt.table, &stmt.alias), &returned.items, params);
    Target { others, ..target }.finish(changed, WriteBatch::default()).await
}

/// The query that finds the rows of an UPDATE.
pub(super) fn updated_rows(view: &View, stmt: &Update) -> Result<Query> {
    let table = view.table(&stmt.table)?;
    let targets = assigned_columns(&table, &stmt.assignments)?;
    let assigned = Assigned::new(view, &table, &stmt.assignments, (&targets, &[]))?;
    let name = name_in(&stmt.table, &stmt.alias);
    update_query(stmt, &assigned, &Returned::new(&table, &name, &stmt.returning, stmt.from.is_empty()))
}

/// The query that finds the rows of a DELETE.
pub(super) fn deleted_rows(view: &View, stmt: &Delete) -> Result<Query> {
    let (table, name) = (view.table(&stmt.table)?, name_in(&stmt.table, &stmt.alias));
    delete_query(stmt, &Returned::new(&table, &name, &stmt.returning, stmt.using.is_empty()))
}

/// The rowkeys and computed values of an UPDATE, and what RETURNING takes from other tables.
fn update_query(stmt: &Update, assigned: &Assigned, returned: &Returned) -> Result<Query> {
    let mut list = vec![rowkey_item(&stmt.table, &stmt.alias)?];
    list.extend(assigned.items());
    list.extend(returned.selected());
    let from = relations(&stmt.table, &stmt.alias, &stmt.from)?;
    select(&stmt.hints, list, from, stmt.filter.clone())
}

/// The rowkeys of a DELETE, and what RETURNING takes from other tables.
fn delete_query(stmt: &Delete, returned: &Returned) -> Result<Query> {
    let mut list = vec![rowkey_item(&stmt.table, &stmt.alias)?];
    list.extend(returned.selected());
    let from = relations(&stmt.table, &stmt.alias, &stmt.using)?;
    let mut query = select(&stmt.hints, list, from, stmt.filter.clone())?;
    if !stmt.order_by.is_empty() {
        query.order_by =
            Some(OrderBy { kind: OrderByKind::Expressions(stmt.order_by.clone()), interpolate: None });
    }
    if stmt.limit.is_some() {
        query.limit_clause =
            Some(LimitClause::LimitOffset { limit: stmt.limit.clone(), offset: None, limit_by: Vec::new() });
    }
    Ok(query)
}

fn rowkey_item(table: &Ident, alias: &Option<Ident>) -> Result<SelectItem> {
    let sql = format!("{}.{ROWKEY}", quote(&name_in(table, alias)));
    crate::sql::parse_expr(&sql).map(SelectItem::UnnamedExpr)
}

fn relations(table: &Ident, alias: &Option<Ident>, others: &[TableWithJoins]) -> Result<Vec<TableWithJoins>> {
    let (name, alias) = (quote(&name_of(table)), quote(&name_in(table, alias)));
    let query = parse_query(&format!("SELECT 1 FROM {name} AS {alias}"))?;
    let mut from = match *query.body {
        SetExpr::Select(select) => select.from,
        _ => Vec::new(),
    };
    from.extend(others.iter().cloned());
    Ok(from)
}

fn stage_updates(
    view: &View,
    table: &TableDef,
    (targets, assigned): (&[ColumnId], &Assigned),
    updates: Vec<(Rowkey, Vec<Value>)>,
) -> Result<Changed> {
    let reader = view.snapshot.reader()?;
    let mut writer = RowWriter::new(table, &*reader, &view.watch);
    writer.read(updates.iter().map(|(rowkey, _)| rowkey))?;
    let mut touched = Vec::with_capacity(updates.len());
    for (rowkey, values) in updates {
        let Some(old) = writer.current(&rowkey)? else { continue };
        let row = assigned.row(table, old, targets, values)?;
        writer.replace(&rowkey, row)?;
        touched.push(rowkey);
    }
    Ok(Changed { changes: writer.suspend(), touched })
}

fn stage_deletes(view: &View, table: &TableDef, rowkeys: Vec<Rowkey>) -> Result<Changed> {
    let reader = view.snapshot.reader()?;
    let mut writer = RowWriter::new(table, &*reader, &view.watch);
    writer.read(rowkeys.iter())?;
    let mut touched = Vec::with_capacity(rowkeys.len());
    for rowkey in rowkeys {
        if writer.delete(&rowkey)? {
            touched.push(rowkey);
        }
    }
    Ok(Changed { changes: writer.suspend(), touched })
}

/// Statements that do what an UPDATE of key columns means.
fn move_rows(table: &TableDef, stmt: &Update) -> String {
    let (names, values): (Vec<String>, Vec<String>) = table
        .live_columns()
        .map(|(_, column)| {
            let name = name_sql(&column.name);
            let assigned = stmt.assignments.iter().find(|a| name_of(&a.column) == column.name);
            let value = assigned.map_or_else(|| name.clone(), |assignment| assignment.value.to_string());
            (name, value)
        })
        .unzip();
    let keys = stmt
        .assignments
        .iter()
        .filter(|a| table.column_id(&name_of(&a.column)).is_some_and(|id| table.is_key_column(id)));
    let keys: Vec<&Assignment> = keys.collect();
    let is_literal = |a: &&Assignment| matches!(literal(&a.value, &[]), Ok(Some(_)));
    if !stmt.from.is_empty() || !keys.iter().all(is_literal) {
        return "in one transaction, INSERT the rows under their new keys and DELETE the old ones by theirs"
            .into();
    }
    // The filter may find the new rows too: those stay.
    let new: Vec<String> = keys.iter().map(|a| format!("{} = {}", a.column, a.value)).collect();
    let new = new.join(" AND ");
    let (find, remove) = match &stmt.filter {
        Some(filter) => (format!(" WHERE {filter}"), format!("({filter}) AND NOT ({new})")),
        None => (String::new(), format!("NOT ({new})")),
    };
    let alias = stmt.alias.as_ref().map(|alias| format!(" AS {alias}")).unwrap_or_default();
    format!(
        "BEGIN; INSERT INTO {t} ({}) SELECT {} FROM {t}{alias}{find}; DELETE FROM {t}{alias} WHERE {remove}; COMMIT",
        names.join(", "),
        values.join(", "),
        t = name_sql(&table.name),
    )
}

fn rowkey_of(value: Option<Value>) -> Result<Rowkey> {
    match value {
        Some(Value::Text(text)) => Ok(Rowkey::new(text)),
        Some(Value::Bytes(bytes)) => Ok(Rowkey::new(bytes)),
        _ => Err(Error::internal("a row without a rowkey")),
    }
}
