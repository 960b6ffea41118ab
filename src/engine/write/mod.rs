//! INSERT, UPSERT, UPDATE and DELETE: which rows, and then one batch.
//!
//! `insert` makes rows of its source, `change` finds the rows of an UPDATE or DELETE; both stage what becomes of
//! them, and [`Target::finish`] ends every statement: changes and index entries into one batch, then RETURNING.
//!
//! UPDATE and DELETE first run as a SELECT of the rowkeys (and new values) over the statement's
//! snapshot, through the same door as every query; only then is anything written. DataFusion's own
//! UPDATE and DELETE hooks are not used: they lose filters that hold subqueries.

mod change;
mod insert;
mod returned;

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

use arrow::array::RecordBatch;
use sqlparser::ast::{
    Expr, Ident, ObjectName, OptimizerHint, Query, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    TableFactor, TableWithJoins, Visit, Visitor,
};

use super::plans::KeptQueries;
use super::rows::{assign, batch_of, check_nulls, quote};
use super::view::{View, column_named};
use crate::error::{Error, Result, Span, sqlstate};
use crate::exec::dml::{Changes, RowWriter};
use crate::key::{ColumnId, Rowkey};
use crate::schema::TableDef;
use crate::sql::rewrite;
use crate::sql::visit::visit;
use crate::sql::{
    Assignment, InsertSource, Statement, is_default, name_of, parse_query, span_of, span_of_name,
    table_name_of,
};
use crate::store::WriteBatch;
use crate::value::Value;

use returned::Others;

pub use change::{delete, update};
pub use insert::{insert, insert_cells};

/// Name of the rowkey in the SELECT of an UPDATE or DELETE; no column can be called so by accident.
pub const ROWKEY: &str = "__rowkey";

/// What RETURNING's query reads the rows from; nothing can be called so by accident.
const WRITTEN: &str = "__written";

/// What a statement that writes is run with.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    pub params: &'a [Value],
    /// Those of its last run, if there was one.
    pub queries: &'a KeptQueries,
}

/// What a statement writes, before it is committed.
pub struct Written {
    /// All of it.
    pub batch: WriteBatch,
    /// Rows touched.
    pub affected: u64,
    /// RETURNING's rows.
    pub returning: Option<RecordBatch>,
}

/// Rows that a statement changes, worked out and not yet in a batch.
struct Changed {
    changes: Changes,
    /// Their rowkeys, in the statement's order.
    touched: Vec<Rowkey>,
}

/// The statement that changes them: what its end needs.
struct Target<'a> {
    view: &'a View,
    table: &'a TableDef,
    /// What the statement calls the table.
    name: String,
    returning: Option<&'a [SelectItem]>,
    params: &'a [Value],
    /// What RETURNING takes from other tables.
    others: Option<Others>,
}

impl<'a> Target<'a> {
    fn new(
        view: &'a View,
        table: &'a TableDef,
        (name, alias): (&Ident, &Option<Ident>),
        returning: &'a Option<Vec<SelectItem>>,
        params: &'a [Value],
    ) -> Self {
        Target {
            view,
            table,
            name: name_in(name, alias),
            returning: returning.as_deref(),
            params,
            others: None,
        }
    }

    /// Writes the changes into `batch`, index entries included, and answers RETURNING.
    async fn finish(self, changed: Changed, mut batch: WriteBatch) -> Result<Written> {
        let Changed { changes, touched } = changed;
        let changes = {
            let reader = self.view.snapshot.reader()?;
            let View { watch, as_of_us, .. } = self.view;
            RowWriter::resume(self.table, &*reader, watch, *as_of_us, changes).finish(&mut batch)?
        };
        let mut rows = Vec::new();
        if self.returning.is_some() {
            rows.reserve(touched.len());
            for rowkey in &touched {
                let row = changes.get(rowkey).and_then(|change| change.new.as_deref());
                rows.push(row.ok_or_else(|| Error::internal("a written row is not among the changes"))?);
            }
        }
        let returning = self.returning(&touched, rows.into_iter()).await?;
        Ok(Written { batch, affected: touched.len() as u64, returning })
    }

    /// RETURNING over rows as they are now, or as they were if they are gone.
    async fn returning(
        &self,
        rowkeys: &[Rowkey],
        rows: impl Iterator<Item = &[Value]>,
    ) -> Result<Option<RecordBatch>> {
        let Some(items) = self.returning else { return Ok(None) };
        items.iter().try_for_each(|item| of_each_row(self.view, item, "RETURNING"))?;
        let table = self.table;
        let mut batch = batch_of(table, rows, Some(rowkeys))?;
        if let Some(others) = &self.others {
            batch = others.beside(&batch)?;
        }
        let all = || table.live_columns().map(|(_, c)| quote(&c.name)).collect::<Vec<_>>().join(", ");
        let list: Vec<String> = items
            .iter()
            .map(|item| match item {
                SelectItem::Wildcard(_) => all(),
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(of), _)
                    if table_name_of(of).is_ok_and(|of| of == self.name) =>
                {
                    all()
                }
                // Of another table, which the query then says is not there.
                item => item.to_string(),
            })
            .collect();
        // What a subquery in it reads is the table as it was.
        let (written, name) = (quote(WRITTEN), quote(&self.name));
        let sql = format!("SELECT {} FROM {written} AS {name}", list.join(", "));
        self.view.compute(&sql, vec![(WRITTEN.to_owned(), batch)], self.params).await.map(Some)
    }
}

/// The query that finds the rows of a statement; `None` if it reads none.
pub fn explained_query(view: &View, statement: &Statement) -> Result<Option<Query>> {
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

/// What a statement writes that reads no rows: an INSERT of values puts rows, and an entry of each in these index
/// tables; a DELETE of all rows clears them.
pub fn explained_rows(view: &View, statement: &Statement) -> Result<String> {
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

/// Errors: an aggregate of the rows that a statement writes, or what gives several rows for one, in a clause that computes
/// a value from each of them.
fn of_each_row(view: &View, computed: &impl Visit, clause: &str) -> Result<()> {
    let mut others = OfOtherRows { view, depth: 0 };
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

/// Finds the first aggregate, or unnest, outside of subqueries; true: it is an aggregate.
struct OfOtherRows<'a> {
    view: &'a View,
    depth: usize,
}

impl Visitor for OfOtherRows<'_> {
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
                let is_aggregate = self.view.db.planner().is_aggregate(call);
                match is_aggregate || call.name.to_string().eq_ignore_ascii_case("unnest") {
                    true => ControlFlow::Break((span_of(expr), is_aggregate)),
                    false => ControlFlow::Continue(()),
                }
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Target columns of SET, and behind them the one that tells when a row was written. Errors: an unknown column; one that is set twice.
fn assigned_columns(table: &TableDef, assignments: &[Assignment]) -> Result<Vec<ColumnId>> {
    let mut targets = Vec::with_capacity(assignments.len());
    for assignment in assignments {
        if name_of(&assignment.column) == rewrite::ROWKEY && table.column_id(rewrite::ROWKEY).is_none() {
            let columns = table.key.columns().into_iter().map(|id| table.column_name(id));
            let columns = columns.collect::<Vec<_>>().join(", ");
            let what = format!("the rowkey of \"{}\" is made of its columns", table.name);
            let hint = format!("DELETE the row, and INSERT it with other values of {columns}");
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
    // Whatever is written of a row, it is as new as that.
    targets.extend(table.written_at);
    Ok(targets)
}

/// What SET gives its targets: values, as far as the statement tells them, and what a query computes.
struct Assigned<'a> {
    targets: &'a [ColumnId],
    exprs: Vec<Cow<'a, Expr>>,
    values: Vec<Option<Value>>,
}

impl<'a> Assigned<'a> {
    /// DEFAULT is what the column says. Errors: that does not parse.
    fn new(
        view: &View,
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
        let exprs: Vec<Cow<Expr>> = assignments.iter().zip(targets).map(expr).collect::<Result<_>>()?;
        exprs.iter().try_for_each(|expr| of_each_row(view, &**expr, "SET"))?;
        // Whatever is wrong with one, the query will say.
        let values = exprs.iter().map(|expr| view.value_of(expr, params).unwrap_or_default());
        let written_at = table.written_at.map(|_| Some(Value::TimestampTz(view.as_of_us)));
        let values = values.chain(written_at).collect();
        Ok(Assigned { targets, exprs, values })
    }

    /// Places of what is to be computed; `None` if a DEFAULT is, which the statement does not tell.
    fn computed(&self) -> Option<Vec<usize>> {
        let computed =
            self.exprs.iter().zip(&self.values).enumerate().filter(|(_, (_, value))| value.is_none());
        computed.map(|(at, (expr, _))| matches!(expr, Cow::Borrowed(_)).then_some(at)).collect()
    }

    /// What is to be computed, as items of a SELECT.
    fn items(&self) -> impl Iterator<Item = SelectItem> {
        let computed = self.exprs.iter().zip(&self.values).filter(|(_, value)| value.is_none());
        computed.enumerate().map(|(i, (expr, _))| named((**expr).clone(), &format!("__set_{i}")))
    }

    /// The columns' values, with what was computed. Errors: one does not fit its column.
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

    /// The row as it becomes. Errors: as [`Assigned::values`].
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
        check_nulls(table, &row)?;
        Ok(row)
    }
}

/// The error for a column whose new value would change the rowkey.
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

/// `SELECT 1 FROM t AS t`, to be filled in. To parse it for each statement would take longer than to find a row.
fn skeleton() -> Result<Query> {
    static PARSED: LazyLock<Option<Query>> = LazyLock::new(|| parse_query("SELECT 1 FROM t AS t").ok());
    PARSED.clone().ok_or_else(|| Error::internal("a query without its parts does not parse"))
}

/// What a query reads, instead of the one table of the skeleton: `table AS name, others`.
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

/// A column of what a query reads by this name.
fn column_item(name: &str, column: &str) -> SelectItem {
    let names = [name, column].map(|name| Ident::with_quote('"', name));
    SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names.into()))
}

fn named(expr: Expr, name: &str) -> SelectItem {
    SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) }
}

/// What the statement calls its table.
fn name_in(table: &Ident, alias: &Option<Ident>) -> String {
    name_of(alias.as_ref().unwrap_or(table))
}

#[cfg(test)]
mod tests;
