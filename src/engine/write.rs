//! INSERT, UPSERT, UPDATE and DELETE: which rows, and then one batch.
//!
//! UPDATE and DELETE first run as a SELECT of the rowkeys (and new values) over the statement's
//! snapshot, through the same door as every query; only then is anything written. DataFusion's own
//! UPDATE and DELETE hooks are not used: they lose filters that hold subqueries.

use std::collections::HashSet;

use arrow::array::RecordBatch;
use sqlparser::ast::{
    Expr, Ident, LimitClause, OrderBy, OrderByKind, Query, SelectItem, SetExpr, TableWithJoins,
};

use super::bulk;
use super::rows::{
    Cells, assign, batch_of, check_constraints, check_nulls, complete, in_row, literal, quote, values_of,
};
use super::session::View;
use crate::error::{Error, Result, sqlstate};
use crate::exec::dml::{Changes, RowWriter};
use crate::key::{ColumnId, Rowkey};
use crate::schema::{IndexId, TableDef};
use crate::sql::{
    Assignment, Delete, Insert, InsertMode, InsertSource, Statement, Update, is_default, name_of,
    parse_query, span_of, span_of_name,
};
use crate::store::WriteBatch;
use crate::value::Value;

/// Name of the rowkey in the SELECT of an UPDATE or DELETE; no column can be called so by accident.
pub const ROWKEY: &str = "__rowkey";

/// What a statement writes, before it is committed.
pub struct Written {
    /// All of it.
    pub batch: WriteBatch,
    /// Rows touched.
    pub affected: u64,
    /// RETURNING's rows.
    pub returning: Option<RecordBatch>,
}

/// INSERT and UPSERT. `alone`: outside a transaction, where a large INSERT ... SELECT is loaded at
/// once and leaves no batch to commit.
pub async fn insert(view: &View, stmt: &Insert, params: &[Value], alone: bool) -> Result<Written> {
    let table = view.table(&stmt.table)?;
    let mut batch = WriteBatch::default();
    let may_load = alone && matches!(stmt.mode, InsertMode::Insert) && stmt.returning.is_none();
    let cells = match source_cells(view, &table, stmt, params, may_load).await? {
        Sourced::Cells(cells) => cells,
        Sourced::Loaded(affected) => return Ok(Written { batch, affected, returning: None }),
    };
    let given = cells.columns.clone();
    let rows = complete(view, &table, cells, &mut batch).await?;
    let mut staged = stage(view, &table, &stmt.mode, rows, &given)?;
    if !staged.conflicts.is_empty() {
        settle(view, &table, stmt, params, &mut staged).await?;
    }
    let Staged { changes, touched, .. } = staged;
    let affected = touched.len() as u64;
    let changes = finish(view, &table, changes, &mut batch)?;
    let returning = returning(
        view,
        &table,
        stmt.returning.as_deref(),
        &name_in(&stmt.table, &stmt.alias),
        &touched,
        &changes,
        params,
    )
    .await?;
    Ok(Written { batch, affected, returning })
}

fn finish(view: &View, table: &TableDef, changes: Changes, batch: &mut WriteBatch) -> Result<Changes> {
    let reader = view.snapshot.reader()?;
    RowWriter::resume(table, &*reader, changes).finish(batch)
}

/// What became of an INSERT's source.
enum Sourced<'a> {
    /// Its rows, to be written.
    Cells(Cells<'a>),
    /// So many rows, which are in the table already.
    Loaded(u64),
}

/// Columns and cells of an INSERT's source.
async fn source_cells<'a>(
    view: &View,
    table: &TableDef,
    stmt: &'a Insert,
    params: &[Value],
    may_load: bool,
) -> Result<Sourced<'a>> {
    let columns = target_columns(view, table, stmt)?;
    let (columns, rows) = match &stmt.source {
        InsertSource::DefaultValues => (Vec::new(), vec![Vec::new()]),
        InsertSource::Values(rows) => {
            let rows = values_cells(view, rows, params).await?;
            (fitting(stmt, columns, rows.iter().map(Vec::len))?, rows)
        }
        InsertSource::Query(query) => {
            let mut source = bulk::Source::open(view, (**query).clone(), params).await?;
            let columns = fitting(stmt, columns, std::iter::once(source.width()))?;
            if source.gather(may_load).await? {
                return source.load(view, table, &columns).map(Sourced::Loaded);
            }
            (columns, source.into_rows())
        }
    };
    let written = match &stmt.source {
        InsertSource::Values(rows) => &rows[..],
        InsertSource::DefaultValues | InsertSource::Query(_) => &[],
    };
    Ok(Sourced::Cells(Cells { columns, rows, overriding: stmt.overriding, before: 0, written }))
}

/// Columns an INSERT names; all of them if it names none.
fn target_columns(view: &View, table: &TableDef, stmt: &Insert) -> Result<Vec<ColumnId>> {
    if stmt.columns.is_empty() {
        return Ok(table.live_columns().map(|(id, _)| id).collect());
    }
    let columns: Vec<ColumnId> =
        stmt.columns.iter().map(|name| view.column(table, name)).collect::<Result<_>>()?;
    let distinct: HashSet<_> = columns.iter().collect();
    if distinct.len() < columns.len() {
        return Err(Error::invalid("a column is named twice")
            .at(stmt.columns.first().and_then(span_of_name))
            .state(sqlstate::DUPLICATE_COLUMN));
    }
    Ok(columns)
}

/// Those of `columns` that rows of these widths fill. Without a column list, fewer values stand for
/// the first columns.
///
/// Errors: a row with more or fewer values than that.
fn fitting(
    stmt: &Insert,
    mut columns: Vec<ColumnId>,
    widths: impl Iterator<Item = usize>,
) -> Result<Vec<ColumnId>> {
    for (at, width) in widths.enumerate() {
        if at == 0 && stmt.columns.is_empty() {
            columns.truncate(width);
        }
        if width != columns.len() {
            return Err(Error::invalid(format!(
                "row {} has {width} values for {} columns",
                at + 1,
                columns.len()
            ))
            .hint("give every row as many values as there are columns")
            .state("42601")
            .at(span_of_name(&stmt.table)));
        }
    }
    Ok(columns)
}

/// Cells of VALUES: literals as they are, all other expressions evaluated in one query.
async fn values_cells(view: &View, rows: &[Vec<Expr>], params: &[Value]) -> Result<Vec<Vec<Option<Value>>>> {
    let mut cells = Vec::with_capacity(rows.len());
    let mut computed: Vec<(usize, usize, &Expr)> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let mut out = Vec::with_capacity(row.len());
        for (i, expr) in row.iter().enumerate() {
            out.push(match literal(expr, params).map_err(|e| e.at(span_of(expr)))? {
                Some(value) => Some(value),
                None if is_default(expr) => None,
                None => {
                    computed.push((at, i, expr));
                    None
                }
            });
        }
        cells.push(out);
    }
    if !computed.is_empty() {
        let list = computed.iter().enumerate().map(|(i, (.., e))| named((*e).clone(), &format!("value_{i}")));
        let query = select(list.collect(), Vec::new(), None)?;
        let values = values_of(&view.select(query, params).await?)?;
        for ((at, i, _), value) in computed.into_iter().zip(values.into_iter().flatten()) {
            cells[at][i] = Some(value);
        }
    }
    Ok(cells)
}

/// An INSERT's rows sorted out against what is there.
struct Staged {
    changes: Changes,
    /// Rows written, in the statement's order.
    touched: Vec<Rowkey>,
    /// Rows that exist and that DO UPDATE is to change: rowkey, row as it is, row proposed.
    conflicts: Vec<(Rowkey, Vec<Value>, Vec<Value>)>,
}

/// What an ON CONFLICT answers to; anything else that is taken is an error.
#[derive(Default)]
struct Arbiter {
    /// A rowkey that exists.
    rowkey: bool,
    /// Keys that exist in these UNIQUE indexes.
    indexes: Vec<IndexId>,
}

impl Arbiter {
    /// What the columns in `target` identify; without any, everything that is unique.
    ///
    /// Errors: an unknown column; columns that are no key.
    fn new(view: &View, table: &TableDef, target: &[Ident]) -> Result<Arbiter> {
        let columns: HashSet<ColumnId> =
            target.iter().map(|name| view.column(table, name)).collect::<Result<_>>()?;
        let named =
            |key: &[ColumnId]| target.is_empty() || key.iter().copied().collect::<HashSet<_>>() == columns;
        let unique = table.indexes.iter().filter(|i| i.unique && named(&i.layout.columns()));
        let arbiter =
            Arbiter { rowkey: named(&table.key.columns()), indexes: unique.map(|i| i.id).collect() };
        if arbiter.rowkey || !arbiter.indexes.is_empty() {
            return Ok(arbiter);
        }
        let names: Vec<String> = target.iter().map(name_of).collect();
        Err(Error::invalid(format!("({}) is no key of table \"{}\"", names.join(", "), table.name))
            .why("ON CONFLICT names the columns of the primary key or of a UNIQUE index")
            .hint("leave the columns out: then DO NOTHING answers to every conflict")
            .state("42P10")
            .at(target.first().and_then(span_of_name)))
    }
}

fn stage(
    view: &View,
    table: &TableDef,
    mode: &InsertMode,
    rows: Vec<Vec<Value>>,
    given: &[ColumnId],
) -> Result<Staged> {
    let reader = view.snapshot.reader()?;
    let mut writer = RowWriter::new(table, &*reader);
    let mut touched: Vec<Rowkey> = Vec::with_capacity(rows.len());
    let arbiter = match mode {
        InsertMode::OnConflictDoNothing { target } | InsertMode::OnConflictUpdate { target, .. } => {
            Arbiter::new(view, table, target)?
        }
        InsertMode::Insert | InsertMode::Upsert => Arbiter::default(),
    };
    let mut met = HashSet::new();
    let mut conflicts: Vec<(Rowkey, Vec<Value>, Vec<Value>)> = Vec::new();
    let n = rows.len();
    for (at, row) in rows.into_iter().enumerate() {
        let rowkey = writer.rowkey(&row).map_err(|e| in_row(e, at, n))?;
        match mode {
            InsertMode::Insert => writer.insert(rowkey.clone(), row)?,
            InsertMode::Upsert => {
                let row = match writer.current(&rowkey)? {
                    Some(old) => overwrite(old, &row, given),
                    None => row,
                };
                writer.replace(&rowkey, row)?;
            }
            InsertMode::OnConflictDoNothing { .. } | InsertMode::OnConflictUpdate { .. } => {
                let holder = match writer.current(&rowkey)? {
                    Some(_) if arbiter.rowkey => Some(rowkey.clone()),
                    _ => writer.claim_unique(&row, &rowkey, &arbiter.indexes)?,
                };
                match (holder, mode) {
                    (None, _) => {
                        met.insert(rowkey.clone());
                        writer.insert(rowkey.clone(), row)?;
                    }
                    (Some(holder), InsertMode::OnConflictUpdate { .. }) => {
                        if !met.insert(holder.clone()) {
                            return Err(Error::invalid("ON CONFLICT DO UPDATE cannot change one row twice")
                                .why(format!(
                                    "two rows of the statement go to rowkey {}",
                                    table.key.show(&holder)
                                ))
                                .state("21000"));
                        }
                        let old = writer.current(&holder)?.map(<[Value]>::to_vec).unwrap_or_default();
                        conflicts.push((holder, old, row));
                        continue;
                    }
                    (Some(_), _) => continue,
                }
            }
        }
        touched.push(rowkey);
    }
    Ok(Staged { changes: writer.suspend(), touched, conflicts })
}

/// `old` with the given columns of `new`.
fn overwrite(old: &[Value], new: &[Value], given: &[ColumnId]) -> Vec<Value> {
    let mut row = old.to_vec();
    for id in given {
        row[usize::from(id.0)] = new[usize::from(id.0)].clone();
    }
    row
}

/// DO UPDATE: new values of the conflicting rows, from what is there and what was proposed.
async fn settle(
    view: &View,
    table: &TableDef,
    stmt: &Insert,
    params: &[Value],
    staged: &mut Staged,
) -> Result<()> {
    let InsertMode::OnConflictUpdate { assignments, filter, .. } = &stmt.mode else { return Ok(()) };
    let targets = assigned_columns(view, table, assignments)?;
    let conflicts = std::mem::take(&mut staged.conflicts);
    let keys: Vec<Rowkey> = conflicts.iter().map(|(key, ..)| key.clone()).collect();
    let old = batch_of(table, conflicts.iter().map(|(_, old, _)| &old[..]), Some(&keys))?;
    let new = batch_of(table, conflicts.iter().map(|(.., new)| &new[..]), None)?;
    // Both sides are numbered and joined on the number, so the expressions see one pair of rows.
    let t = quote(&name_in(&stmt.table, &stmt.alias));
    let numbered = |rows: &str| format!("(SELECT *, row_number() OVER () AS __n FROM {rows})");
    let mut query = parse_query(&format!(
        "SELECT {t}.__n FROM {} AS {t} JOIN {} AS excluded ON {t}.__n = excluded.__n ORDER BY 1",
        numbered("__old"),
        numbered("__excluded"),
    ))?;
    let always = parse_query("SELECT true")?;
    let Some(SelectItem::UnnamedExpr(always)) = projection(&always).and_then(<[_]>::first).cloned() else {
        return Err(Error::internal("a query without its column"));
    };
    let verdict = named(filter.as_deref().cloned().unwrap_or(always), "__passes");
    let values = assignments.iter().enumerate().map(|(i, a)| named(a.value.clone(), &format!("__set_{i}")));
    if let SetExpr::Select(select) = &mut *query.body {
        select.projection.extend(values.chain([verdict]));
    }
    let rows = vec![("__old".to_owned(), old), ("__excluded".to_owned(), new)];
    let results = values_of(&view.select_from(query, rows, params).await?)?;
    let mut updated = Vec::new();
    for (mut result, (rowkey, old, _)) in results.into_iter().zip(conflicts) {
        if result.pop() != Some(Value::Boolean(true)) {
            continue;
        }
        let row = with_assigned(table, &old, &targets, result.drain(1..))?;
        updated.push((rowkey, row));
    }
    let rows: Vec<Vec<Value>> = updated.iter().map(|(_, row)| row.clone()).collect();
    check_constraints(view, table, &rows).await?;
    for (rowkey, row) in updated {
        if let Some(change) = staged.changes.get_mut(&rowkey) {
            change.new = Some(row);
        }
        staged.touched.push(rowkey);
    }
    Ok(())
}

/// Target columns of SET. Errors: an unknown column; a key column, with the statements that do it.
fn assigned_columns(view: &View, table: &TableDef, assignments: &[Assignment]) -> Result<Vec<ColumnId>> {
    let mut targets = Vec::with_capacity(assignments.len());
    for assignment in assignments {
        let id = view.column(table, &assignment.column)?;
        if targets.contains(&id) {
            return Err(Error::invalid(format!("column \"{}\" is set twice", table.column_name(id)))
                .at(span_of_name(&assignment.column))
                .state(sqlstate::DUPLICATE_COLUMN));
        }
        targets.push(id);
    }
    Ok(targets)
}

fn with_assigned(
    table: &TableDef,
    old: &[Value],
    targets: &[ColumnId],
    values: impl Iterator<Item = Value>,
) -> Result<Vec<Value>> {
    let mut row = old.to_vec();
    for (id, value) in targets.iter().zip(values) {
        row[usize::from(id.0)] = assign(value, table.column(*id))?;
    }
    check_nulls(table, &row)?;
    Ok(row)
}

/// UPDATE.
pub async fn update(view: &View, stmt: &Update, params: &[Value]) -> Result<Written> {
    let table = view.table(&stmt.table)?;
    let targets = assigned_columns(view, &table, &stmt.assignments)?;
    if let Some(at) = targets.iter().position(|id| table.is_key_column(*id)) {
        return Err(key_update(&table, stmt, targets[at], at));
    }
    let query = update_query(&table, stmt, &targets)?;
    let found = view.select_rowkeys(query, ROWKEY, params).await?;
    let mut updates: Vec<(Rowkey, Vec<Value>)> = Vec::new();
    let mut seen = HashSet::new();
    for mut row in values_of(&found)? {
        let values = row.split_off(1);
        let rowkey = rowkey_of(row.pop())?;
        if seen.insert(rowkey.clone()) {
            updates.push((rowkey, values));
        }
    }
    let (changes, touched) = stage_updates(view, &table, &targets, updates)?;
    let rows: Vec<Vec<Value>> = if table.checks.is_empty() {
        Vec::new()
    } else {
        changes.values().filter_map(|change| change.new.clone()).collect()
    };
    check_constraints(view, &table, &rows).await?;
    let mut batch = WriteBatch::default();
    let changes = finish(view, &table, changes, &mut batch)?;
    let returning = returning(
        view,
        &table,
        stmt.returning.as_deref(),
        &name_in(&stmt.table, &stmt.alias),
        &touched,
        &changes,
        params,
    )
    .await?;
    Ok(Written { batch, affected: touched.len() as u64, returning })
}

/// The rowkeys and new values of an UPDATE.
fn update_query(table: &TableDef, stmt: &Update, targets: &[ColumnId]) -> Result<Query> {
    let mut list = vec![rowkey_item(&stmt.table, &stmt.alias)?];
    for (i, (assignment, target)) in stmt.assignments.iter().zip(targets).enumerate() {
        let value = match &table.column(*target).default {
            _ if !is_default(&assignment.value) => assignment.value.clone(),
            Some(sql) => crate::sql::parse_expr(sql)?,
            None => crate::sql::parse_expr("NULL")?,
        };
        list.push(named(value, &format!("__set_{i}")));
    }
    select(list, relations(&stmt.table, &stmt.alias, &stmt.from)?, stmt.filter.clone())
}

/// The rowkeys of a DELETE.
fn delete_query(stmt: &Delete) -> Result<Query> {
    let list = vec![rowkey_item(&stmt.table, &stmt.alias)?];
    let mut query = select(list, relations(&stmt.table, &stmt.alias, &stmt.using)?, stmt.filter.clone())?;
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

/// The query that finds the rows of a statement; `None` if it reads none.
pub fn explained_query(view: &View, statement: &Statement) -> Result<Option<Query>> {
    Ok(match statement {
        Statement::Query(query) => Some((**query).clone()),
        Statement::Insert(insert) => match &insert.source {
            InsertSource::Query(query) => Some((**query).clone()),
            InsertSource::Values(_) | InsertSource::DefaultValues => None,
        },
        Statement::Update(update) => {
            let table = view.table(&update.table)?;
            let targets = assigned_columns(view, &table, &update.assignments)?;
            Some(update_query(&table, update, &targets)?)
        }
        Statement::Delete(delete) => {
            view.table(&delete.table)?;
            Some(delete_query(delete)?)
        }
        other => {
            return Err(Error::unsupported(format!("EXPLAIN does not explain {}", other.kind_name()))
                .hint("it explains SELECT, INSERT, UPSERT, UPDATE and DELETE"));
        }
    })
}

/// `SELECT list FROM relations WHERE filter`; the parts keep their places in the statement's text.
fn select(list: Vec<SelectItem>, from: Vec<TableWithJoins>, filter: Option<Expr>) -> Result<Query> {
    let mut query = parse_query("SELECT 1")?;
    if let SetExpr::Select(select) = &mut *query.body {
        select.projection = list;
        select.from = from;
        select.selection = filter;
    }
    Ok(query)
}

fn projection(query: &Query) -> Option<&[SelectItem]> {
    match &*query.body {
        SetExpr::Select(select) => Some(&select.projection),
        _ => None,
    }
}

fn named(expr: Expr, name: &str) -> SelectItem {
    SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) }
}

/// What the statement calls its table.
fn name_in(table: &Ident, alias: &Option<Ident>) -> String {
    name_of(alias.as_ref().unwrap_or(table))
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
    targets: &[ColumnId],
    updates: Vec<(Rowkey, Vec<Value>)>,
) -> Result<(Changes, Vec<Rowkey>)> {
    let reader = view.snapshot.reader()?;
    let mut writer = RowWriter::new(table, &*reader);
    let mut touched = Vec::with_capacity(updates.len());
    for (rowkey, values) in updates {
        let Some(old) = writer.current(&rowkey)? else { continue };
        let row = with_assigned(table, old, targets, values.into_iter())?;
        writer.replace(&rowkey, row)?;
        touched.push(rowkey);
    }
    Ok((writer.suspend(), touched))
}

/// The error for an UPDATE of a key column: rowkeys cannot be changed.
fn key_update(table: &TableDef, stmt: &Update, id: ColumnId, at: usize) -> Error {
    let column = table.column_name(id);
    let names: Vec<&str> = table.live_columns().map(|(_, c)| c.name.as_str()).collect();
    let values: Vec<String> = names
        .iter()
        .map(|name| match stmt.assignments.iter().find(|a| name_of(&a.column) == **name) {
            Some(assignment) => assignment.value.to_string(),
            None => (*name).to_owned(),
        })
        .collect();
    let keys = stmt
        .assignments
        .iter()
        .filter(|a| table.column_id(&name_of(&a.column)).is_some_and(|id| table.is_key_column(id)));
    let keys: Vec<&Assignment> = keys.collect();
    let literals = keys.iter().all(|a| matches!(literal(&a.value, &[]), Ok(Some(_))));
    let hint = if literals {
        // The filter may find the new rows too: those stay.
        let new: Vec<String> = keys.iter().map(|a| format!("{} = {}", a.column, a.value)).collect();
        let new = new.join(" AND ");
        let (find, remove) = match &stmt.filter {
            Some(filter) => (format!(" WHERE {filter}"), format!("({filter}) AND NOT ({new})")),
            None => (String::new(), format!("NOT ({new})")),
        };
        format!(
            "BEGIN; INSERT INTO {t} ({}) SELECT {} FROM {t}{find}; DELETE FROM {t} WHERE {remove}; COMMIT",
            names.join(", "),
            values.join(", "),
            t = table.name,
        )
    } else {
        "in one transaction, INSERT the rows under their new keys and DELETE the old ones by theirs".into()
    };
    Error::invalid(format!("column \"{column}\" is part of the rowkey of \"{}\"", table.name))
        .why("a rowkey cannot be changed: the row must be deleted and inserted anew")
        .hint(hint)
        .state(sqlstate::KEY_RULE)
        .at(span_of_name(&stmt.assignments[at].column))
}

/// DELETE.
pub async fn delete(view: &View, stmt: &Delete, params: &[Value]) -> Result<Written> {
    let table = view.table(&stmt.table)?;
    let found = view.select_rowkeys(delete_query(stmt)?, ROWKEY, params).await?;
    let rowkeys: Vec<Rowkey> =
        values_of(&found)?.into_iter().map(|mut row| rowkey_of(row.pop())).collect::<Result<_>>()?;
    let (changes, touched) = stage_deletes(view, &table, rowkeys)?;
    let mut batch = WriteBatch::default();
    let changes = finish(view, &table, changes, &mut batch)?;
    let returning = returning(
        view,
        &table,
        stmt.returning.as_deref(),
        &name_in(&stmt.table, &stmt.alias),
        &touched,
        &changes,
        params,
    )
    .await?;
    Ok(Written { batch, affected: touched.len() as u64, returning })
}

fn stage_deletes(view: &View, table: &TableDef, rowkeys: Vec<Rowkey>) -> Result<(Changes, Vec<Rowkey>)> {
    let reader = view.snapshot.reader()?;
    let mut writer = RowWriter::new(table, &*reader);
    let mut touched = Vec::with_capacity(rowkeys.len());
    for rowkey in rowkeys {
        if writer.delete(&rowkey)? {
            touched.push(rowkey);
        }
    }
    Ok((writer.suspend(), touched))
}

fn rowkey_of(value: Option<Value>) -> Result<Rowkey> {
    match value {
        Some(Value::Text(text)) => Ok(Rowkey::new(text)),
        Some(Value::Bytes(bytes)) => Ok(Rowkey::new(bytes)),
        _ => Err(Error::internal("a row without a rowkey")),
    }
}

/// RETURNING over the rows as they are now, or as they were if they are gone.
async fn returning(
    view: &View,
    table: &TableDef,
    items: Option<&[SelectItem]>,
    name: &str,
    touched: &[Rowkey],
    changes: &Changes,
    params: &[Value],
) -> Result<Option<RecordBatch>> {
    let Some(items) = items else { return Ok(None) };
    let mut rows = Vec::with_capacity(touched.len());
    for rowkey in touched {
        let change = changes.get(rowkey);
        let row = change.and_then(|c| c.new.as_deref().or(c.old.as_ref().map(|old| &old.values[..])));
        rows.push(row.ok_or_else(|| Error::internal("a written row is not among the changes"))?);
    }
    let batch = batch_of(table, rows.into_iter(), Some(touched))?;
    let all = || table.live_columns().map(|(_, c)| quote(&c.name)).collect::<Vec<_>>().join(", ");
    let list: Vec<String> = items
        .iter()
        .map(|item| match item {
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => all(),
            item => item.to_string(),
        })
        .collect();
    let query = parse_query(&format!("SELECT {} FROM {}", list.join(", "), quote(name)))?;
    view.select_from(query, vec![(name.to_owned(), batch)], params).await.map(Some)
}
