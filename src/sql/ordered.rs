//! In an expression of ORDER BY, a name is a column before it is an output.
//!
//! `SELECT id, -c AS c FROM t ORDER BY c` sorts by the output, but `ORDER BY c * 2` by the column, as in PostgreSQL and
//! SQLite. DataFusion would take the output for both, so a column's name gets its table's in front. What is no column,
//! as in `SELECT a + b AS total FROM t ORDER BY total * 2`, is left to be an output.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Distinct, Expr, Ident, ObjectName, OrderByKind, Query, Select, SelectItem, SetExpr, TableFactor,
    TableWithJoins, VisitorMut,
};

use super::name_of;
use super::natural::{ColumnNames, columns_of_factor};
use super::scopes::{Scopes, factors};
use super::using::replace_names;
use super::visit::visit_mut;
use super::wildcard::alias_name;

/// Names the tables of such columns; `columns_of` gives the columns of a table or view, if known.
pub fn name_ordered_columns(query: &mut Query, columns_of: &dyn Fn(&ObjectName) -> ColumnNames) {
    let _ = visit_mut(query, &mut Ordered { columns_of, scopes: Scopes::default() });
}

struct Ordered<'a> {
    columns_of: &'a dyn Fn(&ObjectName) -> ColumnNames,
    scopes: Scopes,
}

impl VisitorMut for Ordered<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.scopes.enter(query);
        ControlFlow::Continue(())
    }

    /// Now all queries of its WITH are defined.
    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let SetExpr::Select(select) = &*query.body
            && let Some(OrderByKind::Expressions(by)) = query.order_by.as_mut().map(|order| &mut order.kind)
            && !matches!(select.distinct, Some(Distinct::Distinct))
        {
            let renamed: Vec<String> = select.projection.iter().filter_map(renamed).collect();
            by.iter_mut().for_each(|by| self.name(&mut by.expr, &renamed, select));
        }
        self.scopes.leave();
        ControlFlow::Continue(())
    }
}

impl Ordered<'_> {
    fn name(&self, by: &mut Expr, renamed: &[String], select: &Select) {
        if renamed.is_empty() || is_name(by) {
            return;
        }
        replace_names(by, &|column| {
            let name = Some(name_of(column)).filter(|name| renamed.contains(name))?;
            let tables = self.tables_with(&name, &select.from);
            let [table] = &tables[..] else { return None };
            let parts = table.0.iter().map(|part| part.as_ident().cloned());
            parts.chain([Some(column.clone())]).collect::<Option<_>>().map(Expr::CompoundIdentifier)
        });
    }

    /// The tables that have a column of this name.
    fn tables_with(&self, column: &String, from: &[TableWithJoins]) -> Vec<ObjectName> {
        let has_column = |factor: &&TableFactor| {
            let columns = columns_of_factor(factor, &self.scopes, self.columns_of);
            columns.is_some_and(|columns| columns.contains(column))
        };
        let name = |factor: &TableFactor| match factor {
            TableFactor::Table { name, alias, .. } => alias_name(alias).or_else(|| Some(name.clone())),
            TableFactor::Derived { alias, .. } => alias_name(alias),
            _ => None,
        };
        factors(from).into_iter().filter(has_column).filter_map(name).collect()
    }
}

/// The name of an output that may be another one than the column of this name.
fn renamed(item: &SelectItem) -> Option<String> {
    let SelectItem::ExprWithAlias { expr, alias } = item else { return None };
    let is_column = |column: &Ident| name_of(column) == name_of(alias);
    let is_same = match expr {
        Expr::Identifier(column) => is_column(column),
        Expr::CompoundIdentifier(parts) => parts.last().is_some_and(is_column),
        _ => false,
    };
    (!is_same).then(|| name_of(alias))
}

fn is_name(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_name(inner),
        expr => matches!(expr, Expr::Identifier(_)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_an_expression_is_a_column() {
        let columns_of = |name: &ObjectName| match name.to_string().as_str() {
            "t" => Some(vec!["id".to_owned(), "c".to_owned()]),
            "u" => Some(vec!["id".to_owned(), "d".to_owned()]),
            _ => None,
        };
        let cases = [
            ("SELECT -c AS c FROM t ORDER BY c", "c"),
            ("SELECT -c AS c FROM t ORDER BY (c)", "(c)"),
            ("SELECT -c AS c FROM t ORDER BY c * 2, c", "t.c * 2, c"),
            ("SELECT sum(c) AS c FROM t AS x GROUP BY id ORDER BY sum(C)", "sum(x.C)"),
            ("SELECT c + id AS total FROM t ORDER BY total * 2", "total * 2"),
            ("SELECT c AS c, id AS x FROM t ORDER BY c + x", "c + x"),
            ("SELECT id AS d FROM t ORDER BY d + 1", "d + 1"),
            ("SELECT t.id AS d FROM t JOIN u ON t.id = u.id ORDER BY d + 1", "u.d + 1"),
            ("SELECT -t.id AS id FROM t JOIN u ON t.id = u.id ORDER BY -id", "-id"),
            ("SELECT -e AS e FROM (SELECT c AS e FROM t) AS s ORDER BY abs(e)", "abs(s.e)"),
            ("WITH u AS (SELECT c AS e FROM t) SELECT -e AS e FROM u ORDER BY abs(e)", "abs(u.e)"),
            ("SELECT DISTINCT -c AS c FROM t ORDER BY c * 2", "c * 2"),
        ];
        for (sql, order) in cases {
            let mut query = crate::sql::parse_query(sql).unwrap();
            name_ordered_columns(&mut query, &columns_of);
            assert!(query.to_string().ends_with(&format!("ORDER BY {order}")), "{sql}: {query}");
        }
    }
}
