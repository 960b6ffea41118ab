//! RETURNING of columns of other tables, those of FROM and USING.
//!
//! Their values are known when rows are found, but RETURNING is answered after rows are written. So the query
//! that finds the rows selects these columns too, and RETURNING sees them as additional columns of the table. The query
//! also selects the table's own columns that have no name in front: it is refused if another table has them, too.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use arrow::array::{RecordBatch, UInt64Array};
use arrow::compute::take;
use arrow::datatypes::{Field, Schema};
use sqlparser::ast::{
    Expr, Ident, Query, SelectItem, SelectItemQualifiedWildcardKind, TableFactor, TableWithJoins, VisitorMut,
};

use super::named;
use crate::catalog::Relation;
use crate::engine::view::StatementView;
use crate::error::{Error, Result};
use crate::schema::TableDef;
use crate::sql::rewrite::ROWKEY;
use crate::sql::scopes::factors;
use crate::sql::visit::visit_mut;
use crate::sql::{expanded_star, name_of, name_sql, table_name_of};

/// The items of RETURNING, and what the query that finds rows must select for them.
pub struct Returned {
    /// The items, rewritten to the table's and the taken columns.
    pub items: Option<Vec<SelectItem>>,
    /// Columns of other tables, called [`column()`], and behind them own ones that may be ambiguous.
    taken: Vec<Expr>,
}

/// Columns taken from other tables, for each row found.
pub struct OtherColumns {
    columns: RecordBatch,
    /// For each row written, its position in `columns`.
    places: UInt64Array,
}

impl Returned {
    /// For a statement that calls its table `name` and reads `others`. Errors: `x.*` where the columns of `x`
    /// are unknown.
    pub fn new(
        view: &StatementView,
        table: &TableDef,
        name: &str,
        returning: &Option<Vec<SelectItem>>,
        others: &[TableWithJoins],
    ) -> Result<Returned> {
        let is_joined = !others.is_empty();
        let mut items = Vec::new();
        for item in returning.iter().flatten() {
            match item {
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(of), options)
                    if table_name_of(of)? != name =>
                {
                    let called = table_name_of(of)?;
                    let columns = columns_of(view, &called, others)?;
                    items.extend(expanded_star(options, &columns, Some(&called))?);
                }
                item => items.push(item.clone()),
            }
        }
        let mut items = returning.is_some().then_some(items);
        let mut take = Take { table, name, taken: Vec::new(), bare: Vec::new(), depth: 0 };
        for item in items.iter_mut().flatten().filter(|_| is_joined) {
            let SelectItem::UnnamedExpr(expr) = item else {
                let _ = visit_mut(item, &mut take);
                continue;
            };
            let called = match &*expr {
                Expr::CompoundIdentifier(parts) => parts.last().cloned(),
                Expr::Identifier(name) => Some(name.clone()),
                _ => None,
            };
            let called = called.unwrap_or_else(|| Ident::with_quote('"', expr.to_string()));
            let written = expr.clone();
            let _ = visit_mut(expr, &mut take);
            if *expr != written {
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: called };
            }
        }
        let Take { mut taken, bare, .. } = take;
        taken.extend(bare);
        Ok(Returned { items, taken })
    }

    /// Whether RETURNING needs no columns of other tables.
    pub fn takes_nothing(&self) -> bool {
        self.taken.is_empty()
    }

    /// The items to add to the query that finds rows.
    pub fn selected(&self) -> impl Iterator<Item = SelectItem> {
        self.taken.iter().enumerate().map(|(n, expr)| named(expr.clone(), &column(n)))
    }

    /// Splits the found rows into the table's own columns and those taken from other tables.
    pub fn split(&self, found: RecordBatch) -> Result<(RecordBatch, RecordBatch)> {
        let own = found.num_columns() - self.taken.len();
        let part = |columns: Range<usize>| found.project(&columns.collect::<Vec<_>>());
        Ok((part(0..own)?, part(own..found.num_columns())?))
    }
}

impl OtherColumns {
    /// `places`: positions of the rows written.
    pub fn new(columns: RecordBatch, places: impl Iterator<Item = u64>) -> Option<OtherColumns> {
        (columns.num_columns() > 0)
            .then(|| OtherColumns { columns, places: UInt64Array::from_iter_values(places) })
    }

    /// Appends the columns to the rows written.
    pub fn beside(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut fields: Vec<Arc<Field>> = batch.schema().fields().iter().cloned().collect();
        let mut columns = batch.columns().to_vec();
        for (n, values) in self.columns.columns().iter().enumerate() {
            fields.push(Arc::new(Field::new(column(n), values.data_type().clone(), true)));
            columns.push(take(values, &self.places, None)?);
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
            .map_err(|e| Error::internal("columns of other tables do not fit the rows").caused_by(e))
    }
}

/// The columns of one of `others`, by its name or alias in the statement.
fn columns_of(view: &StatementView, called: &str, others: &[TableWithJoins]) -> Result<Vec<String>> {
    for factor in factors(others) {
        let TableFactor::Table { name, alias, .. } = factor else { continue };
        let name = table_name_of(name)?;
        match alias {
            Some(alias) if name_of(&alias.name) != called => continue,
            Some(alias) if !alias.columns.is_empty() => break,
            None if name != called => continue,
            _ => {}
        }
        match view.catalog.find(&name) {
            Some(Relation::Table(table)) => {
                return Ok(table.live_columns().map(|(_, column)| column.name.clone()).collect());
            }
            Some(Relation::View(def)) => {
                let schema = view.view_schema(&def)?;
                return Ok(schema.fields().iter().map(|field| field.name().clone()).collect());
            }
            Some(Relation::Index(..)) | None => break,
        }
    }
    Err(Error::unsupported(format!("the columns of \"{called}\" are not known in RETURNING"))
        .hint(format!("name them, as in {}.id", name_sql(called))))
}

/// The name of a taken column; users cannot take it by accident.
fn column(n: usize) -> String {
    format!("__other_{n}")
}

/// Replaces columns of other tables by the names of taken columns, except inside subqueries.
struct Take<'a> {
    table: &'a TableDef,
    name: &'a str,
    taken: Vec<Expr>,
    /// The table's own columns without a name in front.
    bare: Vec<Expr>,
    depth: usize,
}

impl Take<'_> {
    fn is_other(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Identifier(column) => {
                let column = name_of(column);
                self.table.column_id(&column).is_none() && column != ROWKEY
            }
            Expr::CompoundIdentifier(parts) => {
                matches!(&parts[..], [table, _] if name_of(table) != self.name)
            }
            _ => false,
        }
    }
}

impl VisitorMut for Take<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        if self.is_other(expr) {
            let known = self.taken.iter().position(|taken| taken == expr);
            let n = known.unwrap_or(self.taken.len());
            let taken = std::mem::replace(expr, Expr::Identifier(Ident::with_quote('"', column(n))));
            if known.is_none() {
                self.taken.push(taken);
            }
        } else if matches!(expr, Expr::Identifier(column) if name_of(column) != ROWKEY)
            && !self.bare.contains(expr)
        {
            self.bare.push(expr.clone());
        }
        ControlFlow::Continue(())
    }
}
