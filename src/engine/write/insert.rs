//! INSERT and UPSERT: makes rows of the source, and computes what DO UPDATE makes of existing ones.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema};
use sqlparser::ast::{Expr, Ident, Query, SelectItem, Value as Sql, Visitor};

use super::stage::{Conflict, StagedInsert, changed_twice, stage};
use super::{
    Assigned, NUMBER, StagedChanges, StatementWrites, WriteInputs, WriteTarget, assigned_columns,
    column_item, key_update, merge, name_in, named, numbered, of_each_row, relations, select,
};
use crate::engine::bulk::load;
use crate::engine::query_rows::QueryRows;
use crate::engine::rows::{
    PartialRows, batch_of, check_constraints, check_nulls_of_key, complete, filled, in_row, values_of,
};
use crate::engine::view::{StatementView, columns_named};
use crate::error::{Error, Result, counted, sqlstate};
use crate::exec::dml::rowkey_of;
use crate::exec::row_sorter::NumberedRow;
use crate::key::{ColumnId, Rowkey};
use crate::schema::TableDef;
use crate::sql::visit::{visit, visit_expressions_mut};
use crate::sql::{
    Insert, InsertMode, InsertSource, case_when, is_default, name_of, span_of, span_of_all, span_of_name,
    span_of_names,
};
use crate::store::WriteBatch;
use crate::value::Value;

/// Name of the relation that DO UPDATE computes from.
const PAIRS: &str = "__pairs";

/// How the rows of an INSERT go into the store, if they are many.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Route {
    /// As few rows do: in one batch.
    Batch,
    /// Through the bulk door, sorted by the keys of their entries.
    Load,
    /// Through the bulk door, sorted by rowkey and compared with those that are there.
    Merge,
}

impl Route {
    fn of(view: &StatementView, table: &TableDef, stmt: &Insert) -> Route {
        // The view of a transaction records nothing: the transaction itself does.
        let is_whole = view.recording.is_some() && stmt.returning.is_none();
        match stmt.mode {
            _ if !is_whole || !matches!(stmt.source, InsertSource::Query(_)) => Route::Batch,
            // A load purges expired rows first, which may be rows that the statement has read.
            InsertMode::Insert if table.ttl_us.is_none() => Route::Load,
            _ if merge::can_merge(table) => Route::Merge,
            _ => Route::Batch,
        }
    }
}

/// INSERT and UPSERT. Outside of a transaction a large INSERT ... SELECT goes through the store's bulk door, and leaves
/// no batch to commit.
pub async fn insert(view: &StatementView, stmt: &Insert, given: WriteInputs<'_>) -> Result<StatementWrites> {
    let table = view.table(&stmt.table)?;
    let route = Route::of(view, &table, stmt);
    let mut inserted = insert_by(view, &table, stmt, given, route).await;
    // A load draws each rowkey once. Other buckets are tried where rows are read.
    if route == Route::Load
        && table.key.is_drawn()
        && inserted.as_ref().is_err_and(|e| e.sqlstate() == sqlstate::UNIQUE)
    {
        inserted = insert_by(view, &table, stmt, given, Route::Batch).await;
    }
    inserted.map_err(|e| placed(e, &table, stmt))
}

async fn insert_by(
    view: &StatementView,
    table: &TableDef,
    stmt: &Insert,
    given: WriteInputs<'_>,
    route: Route,
) -> Result<StatementWrites> {
    let mut batch = WriteBatch::default();
    let cells = match source_cells(view, table, stmt, given, route != Route::Batch).await? {
        Sourced::Cells(cells) => cells,
        Sourced::Many(mut source, columns) => {
            check_replaced(table, stmt, &columns)?;
            let affected = match route {
                Route::Load => {
                    let next = || source.next_rows(view, table);
                    load(view, table, (&columns, stmt.overriding), None, next)?
                }
                Route::Merge => merge::merge(view, table, stmt, given, (source, columns))?,
                Route::Batch => return Err(Error::internal("rows for a batch were left unread")),
            };
            return Ok(StatementWrites { batch, affected, returning: None });
        }
    };
    let columns = cells.columns.clone();
    check_replaced(table, stmt, &columns)?;
    let proposed = proposed(view, table, &stmt.mode, cells, &mut batch).await?;
    let changed = changed(view, table, stmt, given, (proposed, &columns), &mut batch).await?;
    let target = WriteTarget::new(view, table, (&stmt.table, &stmt.alias), &stmt.returning, given.params);
    let number = |e: Error| match &e.subject().rowkey {
        Some(rowkey) if stmt.mode.writes_each() => {
            let number = changed.touched.iter().rposition(|touched| **touched == rowkey[..]);
            number.into_iter().fold(e, |e, number| e.of_row(number as u64))
        }
        _ => e,
    };
    target.finish(&changed, batch).await.map_err(number)
}

/// The error with the place of the row that it is about: its number, and where it is written.
fn placed(error: Error, table: &TableDef, stmt: &Insert) -> Error {
    let InsertSource::Values(rows) = &stmt.source else { return in_row(error) };
    let written = error.subject().row.and_then(|row| rows.get(row as usize));
    let Some(written) = written.filter(|_| error.span().is_none()) else { return error };
    let error = if rows.len() > 1 { in_row(error) } else { error };
    let column = error.subject().column.as_deref().and_then(|name| table.column_id(name));
    let columns = target_columns(table, stmt).unwrap_or_default();
    let value = columns.iter().position(|id| Some(*id) == column).and_then(|at| written.get(at));
    // One that is not among those given, but has no default.
    let missing = || span_of_names(&stmt.columns).filter(|_| column.is_some_and(|id| !columns.contains(&id)));
    error.at(value.and_then(span_of).or_else(missing).or_else(|| span_of_all(written)))
}

/// The rows that the cells make. Advanced identity counters are written to `batch`.
///
/// Errors: as [`filled`], and, but for an UPSERT, as [`complete`]: columns that this omits keep their values, so
/// constraints are checked after the merge.
pub(super) async fn proposed(
    view: &StatementView,
    table: &TableDef,
    mode: &InsertMode,
    cells: PartialRows,
    batch: &mut WriteBatch,
) -> Result<Vec<NumberedRow>> {
    let is_upsert = matches!(mode, InsertMode::Upsert);
    let before = cells.before;
    let rows = match is_upsert {
        true => filled(view, table, cells, batch).await?,
        false => complete(view, table, cells, batch).await?,
    };
    let proposed = |(number, row): (u64, Vec<Value>)| {
        let complete = if is_upsert { check_nulls_of_key(table, &row) } else { Ok(()) };
        let rowkey = complete.and_then(|()| rowkey_of(table, &row)).map_err(|e| e.of_row(number))?;
        Ok(NumberedRow { rowkey, row, number })
    };
    (before..).zip(rows).map(proposed).collect()
}

/// What becomes of the proposed rows beside those that exist. `columns`: those given by the statement. Advanced
/// identity counters are written to `batch`.
pub(super) async fn changed(
    view: &StatementView,
    table: &TableDef,
    stmt: &Insert,
    given: WriteInputs<'_>,
    (proposed, columns): (Vec<NumberedRow>, &[ColumnId]),
    batch: &mut WriteBatch,
) -> Result<StagedChanges> {
    let is_told = stmt.mode.writes_each() && !table.references.is_empty();
    let written = if is_told { &proposed[..] } else { &[] };
    let numbers_written: Vec<u64> = written.iter().map(|row| row.number).collect();
    let mut staged = stage(view, table, &stmt.mode, proposed, columns)?;
    let (merged, numbers) = &staged.merged;
    check_constraints(view, table, merged).await.map_err(|e| e.renumbered(|at| numbers[at as usize]))?;
    match staged.conflicts.is_empty() {
        true => check_updates(view, table, stmt, given).await?,
        false => compute_updates(view, table, stmt, given, &mut staged, batch).await?,
    }
    staged.changed.check_parents(view, table, |at| numbers_written.get(at).copied())?;
    Ok(staged.changed)
}

/// Inserts cells that come from no statement.
pub async fn insert_cells(
    view: &StatementView,
    table: &TableDef,
    cells: PartialRows,
) -> Result<StatementWrites> {
    let mut batch = WriteBatch::default();
    let (columns, before) = (cells.columns.clone(), cells.before);
    let proposed = proposed(view, table, &InsertMode::Insert, cells, &mut batch).await?;
    let staged = stage(view, table, &InsertMode::Insert, proposed, &columns)?;
    staged.changed.check_parents(view, table, |at| Some(before + at as u64))?;
    let name = Ident::with_quote('"', &table.name);
    let target = WriteTarget::new(view, table, (&name, &None), &None, &[]);
    target.finish(&staged.changed, batch).await
}

/// The source of an INSERT.
enum Sourced {
    /// All rows.
    Cells(PartialRows),
    /// Many rows, most of them still to be read, and the columns they fill.
    Many(QueryRows, Vec<ColumnId>),
}

/// Columns and cells of an INSERT's source.
async fn source_cells(
    view: &StatementView,
    table: &TableDef,
    stmt: &Insert,
    given: WriteInputs<'_>,
    may_be_many: bool,
) -> Result<Sourced> {
    let columns = target_columns(table, stmt)?;
    let (columns, rows) = match &stmt.source {
        InsertSource::DefaultValues => (Vec::new(), vec![Vec::new()]),
        InsertSource::Values(rows) => {
            let rows = values_cells(view, rows, given).await?;
            (fitting(stmt, columns, rows.iter().map(Vec::len))?, rows)
        }
        InsertSource::Query(query) => {
            let asked = given.queries.source.of(Some(Vec::new()), || Ok((**query).clone()))?;
            // Which of two rows with one key comes first matters, and so does which is numbered first.
            let in_order = !matches!(stmt.mode, InsertMode::Insert)
                || table.filled_columns().any(|(_, column)| column.identity.is_some());
            let mut source = QueryRows::open(view, asked, given.params, in_order).await?;
            let columns = fitting(stmt, columns, std::iter::once(source.width()))?;
            if source.gather(may_be_many).await? {
                return Ok(Sourced::Many(source, columns));
            }
            (columns, source.into_rows())
        }
    };
    Ok(Sourced::Cells(PartialRows { columns, rows, overriding: stmt.overriding, before: 0 }))
}

/// Errors: a REPLACE that is no UPSERT: it gives no value for a column, which an UPSERT keeps, or may find rows by
/// another key, which an UPSERT refuses.
fn check_replaced(table: &TableDef, stmt: &Insert, columns: &[ColumnId]) -> Result<()> {
    if !stmt.replaces {
        return Ok(());
    }
    let refused = |why: String, hint: String| {
        let what = format!("rows of \"{}\" cannot be replaced so", table.name);
        Err(Error::unsupported(what).why(why).hint(hint).at(span_of_name(&stmt.table)))
    };
    if let Some((_, column)) = table.live_columns().find(|(id, _)| !columns.contains(id)) {
        return refused(
            format!("nothing says what becomes of column \"{}\"", column.name),
            "give it a value, or DEFAULT; or write UPSERT INTO, which keeps what an existing row has"
                .to_owned(),
        );
    }
    match table.indexes.iter().find(|index| index.unique) {
        Some(index) => refused(
            format!("index \"{}\" is UNIQUE, so one row may stand in the way of several", index.name),
            "DELETE them first, in one transaction; or write UPSERT INTO, which goes by the primary key alone"
                .to_owned(),
        ),
        None => Ok(()),
    }
}

/// Errors: the statement names a column that is not there, or twice, or gives a row of VALUES too many values or too few.
pub(super) fn check_columns(table: &TableDef, stmt: &Insert) -> Result<()> {
    let columns = target_columns(table, stmt)?;
    match &stmt.source {
        InsertSource::Values(rows) => fitting(stmt, columns, rows.iter().map(|row| row.len())).map(drop),
        InsertSource::Query(_) | InsertSource::DefaultValues => Ok(()),
    }
}

/// Columns that an INSERT names; all of them if it names none. Errors: an UPSERT, where no key tells what it overwrites.
fn target_columns(table: &TableDef, stmt: &Insert) -> Result<Vec<ColumnId>> {
    if matches!(stmt.mode, InsertMode::Upsert) && table.row_number().is_some() {
        return Err(Error::invalid(format!("table \"{}\" has no PRIMARY KEY", table.name))
            .why("that tells which rows are overwritten")
            .hint(format!("INSERT adds rows; ALTER TABLE {} ADD PRIMARY KEY (...) makes a key", stmt.table))
            .state(sqlstate::OBJECT_STATE)
            .at(span_of_name(&stmt.table)));
    }
    if stmt.columns.is_empty() {
        return Ok(table.live_columns().map(|(id, _)| id).collect());
    }
    columns_named(table, &stmt.columns)
}

/// The columns that rows of these widths fill. Without a column list, fewer values stand for the first
/// columns.
///
/// Errors: a row with another number of values.
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
                "row {} has {} for {}",
                at + 1,
                counted(width, "value"),
                counted(columns.len(), "column")
            ))
            .hint("give every row as many values as there are columns")
            .state(sqlstate::SYNTAX)
            .at(span_of_name(&stmt.table)));
        }
    }
    Ok(columns)
}

/// Expressions (count) that are computed by one query: to plan a query takes longer than in proportion to its columns.
const COMPUTED_TOGETHER: usize = 128;

/// Cells of VALUES: literals are taken as they are, all other expressions computed by queries.
async fn values_cells(
    view: &StatementView,
    rows: &[Vec<Expr>],
    given: WriteInputs<'_>,
) -> Result<Vec<Vec<Option<Value>>>> {
    let mut cells = Vec::with_capacity(rows.len());
    let mut computed: Vec<(usize, usize, &Expr)> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let mut out = Vec::with_capacity(row.len());
        for (i, expr) in row.iter().enumerate() {
            out.push(match view.value_of(expr, given.params).map_err(|e| e.at(span_of(expr)))? {
                Some(value) => Some(value),
                None if is_default(expr) => None,
                None => {
                    of_each_row(expr, "VALUES")?;
                    computed.push((at, i, expr));
                    None
                }
            });
        }
        cells.push(out);
    }
    if computed.is_empty() {
        return Ok(cells);
    }
    let places = computed.iter().flat_map(|(at, i, _)| [*at, *i]).collect();
    let together = computed.chunks(COMPUTED_TOGETHER);
    let asked = given.queries.source.all_of(Some(places), || {
        let query = |together: &[(usize, usize, &Expr)]| {
            let items = together.iter().enumerate();
            let list = items.map(|(i, (.., e))| named((*e).clone(), &format!("value_{i}")));
            select(&[], list.collect(), Vec::new(), None)
        };
        together.clone().map(query).collect()
    })?;
    for (together, asked) in together.zip(&*asked) {
        let values = values_of(&view.select_from(Arc::clone(asked), Vec::new(), given.params).await?)?;
        for ((at, i, _), value) in together.iter().zip(values.into_iter().flatten()) {
            cells[*at][*i] = Some(value);
        }
    }
    Ok(cells)
}

/// Each existing row beside the proposed one, whose columns are called `excluded.a`, and a number.
fn pairs(old: &RecordBatch, new: &RecordBatch) -> Result<RecordBatch> {
    let mut fields: Vec<Field> = old.schema().fields().iter().map(|f| f.as_ref().clone()).collect();
    fields.extend(new.schema().fields().iter().map(|f| f.as_ref().clone().with_name(excluded(f.name()))));
    let columns = old.columns().iter().chain(new.columns()).cloned().collect();
    numbered(&RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

fn excluded(column: &str) -> String {
    format!("excluded.{column}")
}

/// Turns `excluded.a` into the name of a single column.
fn name_excluded(expr: &mut Expr) {
    if let Expr::CompoundIdentifier(parts) = expr
        && let [of, column] = &parts[..]
        && name_of(of) == "excluded"
    {
        let span = column.span;
        *expr = Expr::Identifier(Ident { span, ..Ident::with_quote('"', excluded(&name_of(column))) });
    }
}

/// Selects each pair's number, the computed values, and whether it passes the WHERE; `name`: the table's name
/// in the statement.
fn settling(name: &str, assigned: &Assigned, filter: Option<&Expr>) -> Result<Query> {
    let verdict = filter.cloned().unwrap_or_else(|| Expr::value(Sql::Boolean(true)));
    // The rows that are left alone need no values, which may not be there.
    let guarded = assigned.items().map(|item| match (item, filter) {
        (SelectItem::ExprWithAlias { expr, alias }, Some(filter)) => {
            SelectItem::ExprWithAlias { expr: case_when(filter.clone(), expr, None), alias }
        }
        (item, _) => item,
    });
    let mut computed: Vec<SelectItem> = guarded.chain([named(verdict, "__passes")]).collect();
    let _ = visit_expressions_mut(&mut computed, |expr| {
        name_excluded(expr);
        ControlFlow::<()>::Continue(())
    });
    // A table may be called `excluded`, too.
    let list = [column_item(name, NUMBER)].into_iter().chain(computed).collect();
    select(&[], list, relations(PAIRS, name, &[])?, None)
}

/// Plans DO UPDATE though nothing conflicts, if that may tell that it is wrong, and it has not been planned yet.
async fn check_updates(
    view: &StatementView,
    table: &TableDef,
    stmt: &Insert,
    given: WriteInputs<'_>,
) -> Result<()> {
    let InsertMode::OnConflictUpdate { assignments, filter, .. } = &stmt.mode else { return Ok(()) };
    if !given.queries.rows.is_new() {
        return Ok(());
    }
    let targets = assigned_columns(table, assignments)?;
    // What is not kept would be planned each time.
    let is_kept = Assigned::new(view, table, assignments, (&targets, given.params))?.computed().is_some();
    let mut plain = PlainColumns { table, name: &name_in(&stmt.table, &stmt.alias) };
    let mut exprs = assignments.iter().map(|assignment| &assignment.value).chain(filter.as_deref());
    if !is_kept || exprs.all(|expr| visit(expr, &mut plain).is_continue()) {
        return Ok(());
    }
    let mut nothing = StagedInsert::default();
    compute_updates(view, table, stmt, given, &mut nothing, &mut WriteBatch::default()).await
}

/// Stops at what only a plan can judge, or would refuse: a text with other literals is not worth one.
struct PlainColumns<'t> {
    table: &'t TableDef,
    /// What the statement calls it.
    name: &'t str,
}

impl Visitor for PlainColumns<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let is_column = |column: &Ident| self.table.column_id(&name_of(column)).is_some();
        let is_plain = match expr {
            Expr::Identifier(column) => is_column(column),
            Expr::CompoundIdentifier(parts) => match &parts[..] {
                [of, column] => [self.name, "excluded"].contains(&&*name_of(of)) && is_column(column),
                _ => false,
            },
            Expr::Value(_) | Expr::BinaryOp { .. } | Expr::UnaryOp { .. } | Expr::Nested(_) => true,
            Expr::IsNull(_) | Expr::IsNotNull(_) | Expr::IsDistinctFrom(..) | Expr::IsNotDistinctFrom(..) => {
                true
            }
            _ => false,
        };
        if is_plain { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

/// DO UPDATE: computes the conflicting rows' new values from the existing and the proposed rows. Advanced identity
/// counters are written to `batch`.
///
/// Errors: a column of the rowkey is set to another value; a row is changed twice.
async fn compute_updates(
    view: &StatementView,
    table: &TableDef,
    stmt: &Insert,
    given: WriteInputs<'_>,
    staged: &mut StagedInsert,
    batch: &mut WriteBatch,
) -> Result<()> {
    let InsertMode::OnConflictUpdate { assignments, filter, .. } = &stmt.mode else { return Ok(()) };
    let targets = assigned_columns(table, assignments)?;
    let conflicts = std::mem::take(&mut staged.conflicts);
    let keys: Vec<Rowkey> = conflicts.iter().map(|conflict| conflict.rowkey.clone()).collect();
    let old = batch_of(table, conflicts.iter().map(|conflict| &conflict.old[..]), Some(&keys))?;
    let new = batch_of(table, conflicts.iter().map(|conflict| &conflict.proposed[..]), None)?;
    let assigned = Assigned::new(view, table, assignments, (&targets, given.params))?;
    let name = name_in(&stmt.table, &stmt.alias);
    let asked =
        given.queries.rows.of(assigned.computed(), || settling(&name, &assigned, filter.as_deref()))?;
    let rows = vec![(PAIRS.to_owned(), pairs(&old, &new)?)];
    let mut results: Vec<Vec<Value>> = values_of(&view.select_from(asked, rows, given.params).await?)?;
    // A subquery becomes a join, which may change the order of rows.
    results.sort_unstable_by(|a, b| a[0].cmp(&b[0]));
    if results.len() != conflicts.len() {
        return Err(Error::internal("DO UPDATE gives another number of rows than there are"));
    }
    let (mut updated, mut rows) = (Vec::with_capacity(results.len()), Vec::with_capacity(results.len()));
    let mut numbers = Vec::with_capacity(results.len());
    let (mut met, mut left) = (HashSet::new(), HashSet::new());
    for (mut result, Conflict { place, number, rowkey, old, .. }) in results.into_iter().zip(conflicts) {
        // What the WHERE leaves alone may come again, but not what was changed.
        if met.contains(&rowkey) {
            return Err(changed_twice(table, &rowkey));
        }
        if result.pop() != Some(Value::Boolean(true)) {
            left.insert(place);
            continue;
        }
        let row = assigned.row(table, &old, result.drain(1..).map(Ok))?;
        if !table.key.is_key_of(&row, &rowkey) {
            let moved = |id: &ColumnId| {
                let at = usize::from(id.0);
                table.is_key_column(*id) && row[at] != old[at]
            };
            let at = targets.iter().position(moved).unwrap_or_default();
            let hint = "set it to the value it has, or leave it out of SET";
            return Err(key_update(table, &assignments[at].column, hint));
        }
        met.insert(rowkey.clone());
        updated.push(rowkey);
        numbers.push(number);
        rows.push(row);
    }
    assigned.complete(view, table, &mut rows, batch)?;
    check_constraints(view, table, &rows).await.map_err(|e| e.renumbered(|at| numbers[at as usize]))?;
    for (rowkey, row) in updated.into_iter().zip(rows) {
        if let Some(change) = staged.changed.changes.get_mut(&rowkey) {
            change.new = Some(row);
        }
    }
    let touched = std::mem::take(&mut staged.changed.touched).into_iter().enumerate();
    let stay = touched.filter(|(place, _)| !left.contains(place));
    staged.changed.touched = stay.map(|(_, rowkey)| rowkey).collect();
    Ok(())
}
