//! INSERT, UPSERT, UPDATE and DELETE: finds the rows, then collects all changes in one write batch.
//!
//! `insert` makes rows of its source (`merge`: if they are many, and may meet existing ones), `change` finds the
//! rows of an UPDATE or DELETE; both stage the new rows (`stage`: those of an INSERT), and [`WriteTarget::finish`] ends every statement: changes
//! and index entries go into one batch, then RETURNING is answered.
//!
//! UPDATE and DELETE first run as a SELECT of the rowkeys (and new values) over the statement's snapshot,
//! planned like every query; only then is anything written. DataFusion's own UPDATE and DELETE hooks are not
//! used: they lose filters that hold subqueries.

mod change;
mod insert;
mod merge;
mod returned;
mod stage;

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::Schema;
use sqlparser::ast::{
    Expr, Ident, ObjectName, OptimizerHint, Query, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    TableFactor, TableWithJoins, Visit, Visitor,
};

use super::plans::{CachedQueries, SourceQuery};
use super::references::check_parents;
use super::rows::{always_identity, assign, batch_of, check_nulls};
use super::view::{StatementView, column_named};
use crate::df::query::Planner;
use crate::engine::numbers::number;
use crate::error::{Error, Result, Span, sqlstate};
use crate::exec::dml::{RowChange, RowChanges, Writes};
use crate::key::{ColumnId, Rowkey};
use crate::row::field;
use crate::schema::TableDef;
use crate::sql::rewrite::ROWKEY;
use crate::sql::visit::visit;
use crate::sql::{
    Assignment, InsertSource, Statement, expanded_star, is_default, name_of, parse_query, span_of,
    span_of_name, table_name_of,
};
use crate::store::WriteBatch;
use crate::value::{ColumnType, Value, quoted_name};

use returned::OtherColumns;

pub use insert::insert_cells;

/// Name of the rowkey in the SELECT of an UPDATE or DELETE; users cannot take it by accident.
pub const FOUND_ROWKEY: &str = "__rowkey";

/// Name of the relation that RETURNING selects from; users cannot take it by accident.
const WRITTEN: &str = "__written";

/// Name of the column that numbers the rows of such a relation.
const NUMBER: &str = "__n";

/// The parameters of a statement that writes, and its kept queries.
#[derive(Clone, Copy)]
pub struct WriteInputs<'a> {
    pub params: &'a [Value],
    /// The queries of its last run, if there was one.
    pub queries: &'a CachedQueries,
}

/// What a statement writes, before it is committed.
pub struct StatementWrites {
    /// All its writes.
    pub batch: WriteBatch,
    /// Rows written (count).
    pub affected: u64,
    /// The rows of RETURNING.
    pub returning: Option<RecordBatch>,
}

/// What an INSERT, UPSERT, UPDATE or DELETE writes.
pub async fn writes_of(
    view: &StatementView,
    statement: &Statement,
    given: WriteInputs<'_>,
) -> Result<StatementWrites> {
    match statement {
        Statement::Insert(insert) => insert::insert(view, insert, given).await,
        Statement::Update(update) => change::update(view, update, given).await,
        Statement::Delete(delete) => change::delete(view, delete, given).await,
        _ => Err(Error::internal("not a write")),
    }
}

/// Changed rows that are not yet in a batch.
#[derive(Default)]
struct StagedChanges {
    changes: RowChanges,
    /// The rowkeys, in the statement's order.
    touched: Vec<Rowkey>,
}

impl StagedChanges {
    /// Errors: a row refers to one that is not there. `number`: that of a row that was touched.
    fn check_parents(
        &self,
        view: &StatementView,
        table: &TableDef,
        number: impl Fn(usize) -> Option<u64>,
    ) -> Result<()> {
        // What an expired row refers to may be gone.
        let is_alive = |old: &&[Value]| table.is_alive(old, view.as_of_us);
        let rows = self.touched.iter().filter_map(|rowkey| {
            let RowChange { old, new } = self.changes.get(rowkey)?;
            Some((old.as_ref().map(|old| &*old.values).filter(is_alive), new.as_deref()?))
        });
        check_parents(view, table, rows, |at, error| number(at).into_iter().fold(error, Error::of_row))
    }
}

/// The statement that changes rows: what `finish` needs.
struct WriteTarget<'a> {
    view: &'a StatementView,
    table: &'a TableDef,
    /// The table's name or alias in the statement.
    name: String,
    returning: Option<&'a [SelectItem]>,
    params: &'a [Value],
    /// Columns of other tables for RETURNING.
    others: Option<OtherColumns>,
}

impl<'a> WriteTarget<'a> {
    fn new(
        view: &'a StatementView,
        table: &'a TableDef,
        (name, alias): (&Ident, &Option<Ident>),
        returning: &'a Option<Vec<SelectItem>>,
        params: &'a [Value],
    ) -> Self {
        WriteTarget {
            view,
            table,
            name: name_in(name, alias),
            returning: returning.as_deref(),
            params,
            others: None,
        }
    }

    /// Writes the changes into `batch`, index entries included, and answers RETURNING.
    async fn finish(self, changed: &StagedChanges, batch: WriteBatch) -> Result<StatementWrites> {
        let StagedChanges { changes, touched } = changed;
        let batch = {
            let StatementView { snapshot, watch, as_of_us, .. } = self.view;
            let reader = snapshot.reader()?;
            let mut writes = Writes::new(self.table, batch, *as_of_us);
            writes.add_all(&*reader, changes, watch)?;
            writes.finish(&*reader)?
        };
        let mut rows = Vec::new();
        if self.returning.is_some() {
            rows.reserve(touched.len());
            for rowkey in touched {
                let row = changes.get(rowkey).and_then(|change| change.new.as_deref());
                rows.push(row.ok_or_else(|| Error::internal("a written row is not among the changes"))?);
            }
        }
        let returning = self.returning(touched, rows.into_iter()).await?;
        Ok(StatementWrites { batch, affected: touched.len() as u64, returning })
    }

    /// RETURNING over the new rows, or over the old ones if they were deleted.
    async fn returning(
        &self,
        rowkeys: &[Rowkey],
        rows: impl Iterator<Item = &[Value]>,
    ) -> Result<Option<RecordBatch>> {
        let Some(items) = self.returning else { return Ok(None) };
        items.iter().try_for_each(|item| of_each_row(item, "RETURNING"))?;
        let table = self.table;
        let mut batch = batch_of(table, rows, Some(rowkeys))?;
        if let Some(others) = &self.others {
            batch = others.beside(&batch)?;
        }
        let columns: Vec<String> = table.live_columns().map(|(_, c)| c.name.clone()).collect();
        let mut list = Vec::with_capacity(items.len());
        for item in items {
            match item {
                SelectItem::Wildcard(options) => list.extend(expanded_star(options, &columns, None)?),
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(of), options)
                    if table_name_of(of).is_ok_and(|of| of == self.name) =>
                {
                    list.extend(expanded_star(options, &columns, None)?);
                }
                // A wildcard of another table: the query will report that it does not exist.
                item => list.push(item.clone()),
            }
        }
        let texts: Vec<String> = list.iter().map(SelectItem::to_string).collect();
        // Subqueries in RETURNING read the table as it was before.
        let (written, name) = (quoted_name(WRITTEN), quoted_name(&self.name));
        let mut sql = format!("SELECT {} FROM {written} AS {name}", texts.join(", "));
        // A subquery becomes a join, which may change the order of rows.
        if items.iter().any(|item| visit(item, &mut AnyQuery).is_break()) {
            batch = numbered(&batch)?;
            sql += &format!(" ORDER BY {name}.{NUMBER}");
        }
        let rows = vec![(WRITTEN.to_owned(), batch)];
        match self.view.compute(&sql, rows.clone(), self.params).await {
            Ok(batch) => Ok(Some(batch)),
            // The items themselves tell their places in the statement.
            Err(e) => {
                let query = select(&[], list, relations(WRITTEN, &self.name, &[])?, None)?;
                let asked = Arc::new(SourceQuery { query, lifted: None });
                let placed = self.view.select_from(asked, rows, self.params).await.err();
                Err(placed.unwrap_or_else(|| e.unplaced()))
            }
        }
    }
}

/// The query that EXPLAIN shows for a statement; `None` if it reads no rows. Errors: the statement names what is not there,
/// or may not be written.
pub fn explained_query(view: &StatementView, statement: &Statement) -> Result<Option<Query>> {
    if let Statement::Insert(insert) = statement {
        insert::check_columns(&*view.table(&insert.table)?, insert)?;
    }
    Ok(match statement {
        Statement::Query(query) => Some((**query).clone()),
        Statement::Insert(insert) => match &insert.source {
            InsertSource::Query(query) => Some((**query).clone()),
            InsertSource::Values(_) | InsertSource::DefaultValues => None,
        },
        Statement::Update(update) => Some(change::updated_rows(view, update)?),
        Statement::Delete(delete) if change::clears(view, &*view.table(&delete.table)?, delete)? => None,
        Statement::Delete(delete) => Some(change::deleted_rows(view, delete)?),
        other => {
            return Err(Error::unsupported(format!("EXPLAIN does not explain {}", other.kind_name()))
                .hint("it explains SELECT, INSERT, UPSERT, UPDATE and DELETE"));
        }
    })
}

/// What EXPLAIN shows for a statement that reads no rows: an INSERT of values, with the indexes it writes
/// entries to, or a DELETE that clears the table.
pub fn explained_rows(view: &StatementView, statement: &Statement) -> Result<String> {
    let (table, verb, rows) = match statement {
        Statement::Insert(insert) => {
            let rows = match &insert.source {
                InsertSource::Values(rows) => rows.len() as u64,
                InsertSource::DefaultValues | InsertSource::Query(_) => 1,
            };
            (view.table(&insert.table)?, "Put", format!("rows={rows}"))
        }
        Statement::Delete(delete) => {
            let table = view.table(&delete.table)?;
            let rows = view.snapshot.reader()?.entries(table.rows())?;
            (table, "Clear", format!("rows~{rows}"))
        }
        _ => return Err(Error::internal("a statement that reads rows is explained without them")),
    };
    let indexes: Vec<&str> = table.indexes.iter().map(|index| &*index.name).collect();
    Ok(match indexes.len() {
        0 => format!("{verb} {} {rows}", table.name),
        n => format!("{verb} {} {rows} indexes={n} [{}]", table.name, indexes.join(", ")),
    })
}

/// Errors: `computed` is evaluated once for each row, but contains an aggregate or a set-returning function.
fn of_each_row(computed: &impl Visit, clause: &str) -> Result<()> {
    let mut others = OfOtherRows { depth: 0 };
    let ControlFlow::Break((place, is_aggregate)) = visit(computed, &mut others) else { return Ok(()) };
    let (what, why, hint) = match is_aggregate {
        true => ("an aggregate", "it is computed from each row", "(SELECT max(x) FROM t)"),
        false => ("unnest", "it gives several rows", "(SELECT max(x) FROM unnest(list) AS u(x))"),
    };
    Err(Error::invalid(format!("{what} cannot stand in {clause}"))
        .why(why)
        .hint(format!("put it into a subquery, as in {hint}"))
        .state(sqlstate::GROUPING)
        .at(place))
}

/// The rows, and a column that numbers them.
fn numbered(rows: &RecordBatch) -> Result<RecordBatch> {
    let mut fields = rows.schema().fields().to_vec();
    fields.push(Arc::new(field(NUMBER, ColumnType::BigInt, false)));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows.num_rows() as i64));
    let columns = rows.columns().iter().cloned().chain([numbers]);
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns.collect())?)
}

/// Finds the first subquery.
struct AnyQuery;

impl Visitor for AnyQuery {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

/// Finds the first aggregate or unnest outside of subqueries; breaks with true for an aggregate.
struct OfOtherRows {
    depth: usize,
}

impl Visitor for OfOtherRows {
    type Break = (Option<Span>, bool);

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Self::Break> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Self::Break> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        match expr {
            Expr::Function(call) if self.depth == 0 && call.over.is_none() => {
                let is_aggregate = Planner::shared().is_aggregate(call);
                match is_aggregate || call.name.to_string().eq_ignore_ascii_case("unnest") {
                    true => ControlFlow::Break((span_of(expr), is_aggregate)),
                    false => ControlFlow::Continue(()),
                }
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// The target columns of SET, followed by the hidden write-time column, if any. Errors: an unknown column;
/// one that is set twice.
fn assigned_columns(table: &TableDef, assignments: &[Assignment]) -> Result<Vec<ColumnId>> {
    let mut targets = Vec::with_capacity(assignments.len());
    for assignment in assignments {
        if name_of(&assignment.column) == ROWKEY && table.column_id(ROWKEY).is_none() {
            let columns = table.key.columns().into_iter().map(|id| table.column_name(id));
            let columns = columns.collect::<Vec<_>>().join(", ");
            let (what, hint) = match table.row_number() {
                None => (
                    format!("the rowkey of \"{}\" is made of its columns", table.name),
                    format!("DELETE the row, and INSERT it with other values of {columns}"),
                ),
                Some(_) => (
                    format!("the rows of \"{}\" are numbered", table.name),
                    "DELETE the row, and INSERT it: it gets another number".to_owned(),
                ),
            };
            return Err(kept_rowkey(what, &assignment.column, hint));
        }
        let id = column_named(table, &assignment.column)?;
        if targets.contains(&id) {
            return Err(Error::invalid(format!("column \"{}\" is set twice", table.column_name(id)))
                .at(span_of_name(&assignment.column))
                .state(sqlstate::DUPLICATE_COLUMN));
        }
        targets.push(id);
    }
    // Every change of a row renews its write time.
    targets.extend(table.written_at);
    Ok(targets)
}

/// The new values of SET's targets: given by the statement, or computed by a query.
struct Assigned<'a> {
    targets: &'a [ColumnId],
    exprs: Vec<Cow<'a, Expr>>,
    values: Vec<Option<Value>>,
    /// Identity columns that take their next number; their value among `values` is NULL.
    numbered: Vec<ColumnId>,
}

impl<'a> Assigned<'a> {
    /// Resolves DEFAULT to the column's expression. Errors: that does not parse; a GENERATED ALWAYS column is set to
    /// something else.
    fn new(
        view: &StatementView,
        table: &TableDef,
        assignments: &'a [Assignment],
        (targets, params): (&'a [ColumnId], &[Value]),
    ) -> Result<Assigned<'a>> {
        let expr = |(assignment, target): (&'a Assignment, &ColumnId)| {
            let default = table.column(*target).default.as_deref();
            match is_default(&assignment.value) {
                false => Ok(Cow::Borrowed(&assignment.value)),
                true => {
                    let expr = view.db.shared.defaults.parse(default.unwrap_or("NULL"))?;
                    Ok(Cow::Owned(Arc::unwrap_or_clone(expr)))
                }
            }
        };
        let mut numbered = Vec::new();
        for (assignment, target) in assignments.iter().zip(targets) {
            let column = table.column(*target);
            match column.identity {
                Some(_) if is_default(&assignment.value) => numbered.push(*target),
                Some(identity) if identity.always => {
                    return Err(always_identity(column)
                        .hint("leave it out, or write DEFAULT for its next number")
                        .at(span_of_name(&assignment.column)));
                }
                _ => {}
            }
        }
        let exprs: Vec<Cow<Expr>> = assignments.iter().zip(targets).map(expr).collect::<Result<_>>()?;
        exprs.iter().try_for_each(|expr| of_each_row(&**expr, "SET"))?;
        // If the value is wrong, the query will report it.
        let values = exprs.iter().map(|expr| view.value_of(expr, params).unwrap_or_default());
        let written_at = table.written_at.map(|_| Some(Value::TimestampTz(view.as_of_us)));
        let values: Vec<Option<Value>> = values.chain(written_at).collect();
        // They must fit, also if no row takes them.
        for (value, id) in values.iter().zip(targets) {
            value.clone().map_or(Ok(Value::Null), |value| assign(value, table.column(*id)))?;
        }
        Ok(Assigned { targets, exprs, values, numbered })
    }

    /// Positions of the expressions to compute; `None` if one is a DEFAULT, which the statement's text does
    /// not contain.
    fn computed(&self) -> Option<Vec<usize>> {
        let computed =
            self.exprs.iter().zip(&self.values).enumerate().filter(|(_, (_, value))| value.is_none());
        computed.map(|(at, (expr, _))| matches!(expr, Cow::Borrowed(_)).then_some(at)).collect()
    }

    /// The expressions to compute, as items of a SELECT.
    fn items(&self) -> impl Iterator<Item = SelectItem> {
        let computed = self.exprs.iter().zip(&self.values).filter(|(_, value)| value.is_none());
        computed.enumerate().map(|(i, (expr, _))| named((**expr).clone(), &format!("__set_{i}")))
    }

    /// The targets' new values, `computed` included. Errors: one does not fit its column.
    fn values(
        &self,
        table: &TableDef,
        mut computed: impl Iterator<Item = Result<Value>>,
    ) -> impl Iterator<Item = Result<(ColumnId, Value)>> {
        self.targets.iter().zip(&self.values).map(move |(id, value)| {
            let value = value.clone().map(Ok).or_else(|| computed.next());
            let value = value.ok_or_else(|| Error::internal("SET of a value that nobody computed"))??;
            Ok((*id, assign(value, table.column(*id))?))
        })
    }

    /// The new row, but for its numbers. Errors: as [`Assigned::values`].
    fn row(
        &self,
        table: &TableDef,
        old: &[Value],
        computed: impl Iterator<Item = Result<Value>>,
    ) -> Result<Vec<Value>> {
        let mut row = old.to_vec();
        for assigned in self.values(table, computed) {
            let (id, value) = assigned?;
            row[usize::from(id.0)] = value;
        }
        Ok(row)
    }

    /// Gives rows made by [`Assigned::row`] their numbers. Advanced counters are written to `counters`.
    ///
    /// Errors: the numbers are used up; NULL in a NOT NULL column.
    fn complete(
        &self,
        view: &StatementView,
        table: &TableDef,
        rows: &mut [Vec<Value>],
        counters: &mut WriteBatch,
    ) -> Result<()> {
        let all: Vec<usize> = (0..rows.len()).collect();
        for id in &self.numbered {
            if let Some(identity) = table.column(*id).identity {
                number(view, table, (*id, identity), rows, &all, counters)?;
            }
        }
        rows.iter().try_for_each(|row| check_nulls(table, row))
    }
}

/// The error for a new value that would change the rowkey.
fn key_update(table: &TableDef, column: &Ident, hint: impl Into<String>) -> Error {
    let what = format!("column \"{}\" is part of the rowkey of \"{}\"", name_of(column), table.name);
    kept_rowkey(what, column, hint)
}

fn kept_rowkey(what: String, column: &Ident, hint: impl Into<String>) -> Error {
    Error::invalid(what)
        .why("a rowkey cannot be changed: the row must be deleted and inserted anew")
        .hint(hint)
        .state(sqlstate::KEY_RULE)
        .at(span_of_name(column))
}

/// `SELECT list FROM relations WHERE filter`; the parts keep their places in the statement's text.
fn select(
    hints: &[OptimizerHint],
    list: Vec<SelectItem>,
    from: Vec<TableWithJoins>,
    filter: Option<Expr>,
) -> Result<Query> {
    let mut query = skeleton()?;
    if let SetExpr::Select(select) = &mut *query.body {
        select.optimizer_hints = hints.to_vec();
        select.projection = list;
        select.from = from;
        select.selection = filter;
    }
    Ok(query)
}

/// `SELECT 1 FROM t AS t`, to be filled in. Parsing it for each statement would take longer than finding a
/// row.
fn skeleton() -> Result<Query> {
    static PARSED: LazyLock<Option<Query>> = LazyLock::new(|| parse_query("SELECT 1 FROM t AS t").ok());
    PARSED.clone().ok_or_else(|| Error::internal("a query without its parts does not parse"))
}

/// The FROM of a query: `table AS name, others`.
fn relations(table: &str, name: &str, others: &[TableWithJoins]) -> Result<Vec<TableWithJoins>> {
    let mut from = match *skeleton()?.body {
        SetExpr::Select(select) => select.from,
        _ => Vec::new(),
    };
    for relation in &mut from {
        if let TableFactor::Table { name: of, alias: Some(called), .. } = &mut relation.relation {
            *of = ObjectName::from(vec![Ident::with_quote('"', table)]);
            called.name = Ident::with_quote('"', name);
        }
    }
    from.extend(others.iter().cloned());
    Ok(from)
}

/// The column of a relation as a SELECT item.
fn column_item(name: &str, column: &str) -> SelectItem {
    let names = [name, column].map(|name| Ident::with_quote('"', name));
    SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names.into()))
}

fn named(expr: Expr, name: &str) -> SelectItem {
    SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) }
}

/// The table's name or alias in the statement.
fn name_in(table: &Ident, alias: &Option<Ident>) -> String {
    name_of(alias.as_ref().unwrap_or(table))
}

#[cfg(test)]
mod tests;
