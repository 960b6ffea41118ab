//! In an expression of ORDER BY, and in HAVING and QUALIFY, a name is a column before it is an output.
//!
//! `SELECT id, -c AS c FROM t ORDER BY c` sorts by the output, but `ORDER BY c * 2` by the column, as in PostgreSQL and
//! SQLite. DataFusion would take the output for both, so a column's name gets its table's in front. What is no column,
//! as in `SELECT a + b AS total FROM t ORDER BY total * 2`, is left to be an output.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Distinct, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, OrderByKind, Query, Select, SelectItem,
    SetExpr, TableFactor, TableWithJoins, VisitorMut,
};

use super::name_of;
use super::natural::{ColumnNames, columns_of_factor};
use super::rewrite::constraint_of;
use super::scopes::{Scopes, factors};
use super::using::{merged_by, replace_names};
use super::visit::visit_mut;
use super::wildcard::{alias_name, last_ident};

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
        self.scopes.enter(query, self.columns_of);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let renamed: Vec<String> = select.projection.iter().filter_map(renamed).collect();
        let from = &select.from;
        let named = |name: &Ident| self.column(name, &renamed, from);
        replace_names(&mut select.having, &named);
        replace_names(&mut select.qualify, &named);
        if let Some(Distinct::On(keys)) = &mut select.distinct {
            keys.iter_mut().filter(|key| bare_name(key).is_none()).for_each(|key| replace_names(key, &named));
        }
        ControlFlow::Continue(())
    }

    /// Now all queries of its WITH are defined.
    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let SetExpr::Select(select) = &*query.body
            && let Some(OrderByKind::Expressions(by)) = query.order_by.as_mut().map(|order| &mut order.kind)
            && !matches!(select.distinct, Some(Distinct::Distinct))
        {
            let renamed: Vec<String> = select.projection.iter().filter_map(renamed).collect();
            let named = |name: &Ident| self.column(name, &renamed, &select.from);
            by.iter_mut()
                .filter(|by| bare_name(&by.expr).is_none())
                .for_each(|by| replace_names(&mut by.expr, &named));
        }
        self.scopes.leave();
        ControlFlow::Continue(())
    }
}

impl Ordered<'_> {
    /// The column of a table that has the name of another output.
    fn column(&self, name: &Ident, renamed: &[String], from: &[TableWithJoins]) -> Option<Expr> {
        let column = Some(name_of(name)).filter(|name| renamed.contains(name))?;
        let tables = self.tables_with(&column, from);
        let of = |table: &ObjectName| {
            let parts = table.0.iter().map(|part| part.as_ident().cloned());
            parts.chain([Some(name.clone())]).collect::<Option<_>>().map(Expr::CompoundIdentifier)
        };
        let (first, others) = tables.split_first()?;
        let merging = if others.is_empty() { Vec::new() } else { merging(from, &column) };
        let mut sides = others.iter().zip(&merging);
        match others.len() == merging.len() {
            true => sides.try_fold(of(first)?, |left, (right, join)| merged_by(join, left, of(right)?)),
            false => None,
        }
    }

    /// The tables that have a column of this name.
    fn tables_with(&self, column: &String, from: &[TableWithJoins]) -> Vec<ObjectName> {
        let has_column = |factor: &&TableFactor| {
            let columns = columns_of_factor(factor, &self.scopes, self.columns_of);
            columns.is_some_and(|columns| columns.contains(column))
        };
        let name = |factor: &TableFactor| match factor {
            TableFactor::Table { name, alias, .. } => alias_name(alias).or_else(|| Some(name.clone())),
            TableFactor::Derived { alias, .. } | TableFactor::Function { alias, .. } => alias_name(alias),
            _ => None,
        };
        factors(from).into_iter().filter(has_column).filter_map(name).collect()
    }
}

/// The joins USING a column.
fn merging<'a>(from: &'a [TableWithJoins], column: &String) -> Vec<&'a JoinOperator> {
    let [table] = from else { return Vec::new() };
    let merges = |operator: &&JoinOperator| match constraint_of(operator) {
        Some(JoinConstraint::Using(names)) => {
            names.iter().filter_map(last_ident).any(|name| name_of(&name) == *column)
        }
        _ => false,
    };
    table.joins.iter().map(|join| &join.join_operator).filter(merges).collect()
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

/// The name, if the expression is nothing else.
pub(super) fn bare_name(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Nested(inner) => bare_name(inner),
        Expr::Identifier(name) => Some(name),
        _ => None,
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
            ("SELECT -id AS id FROM t LEFT JOIN u USING (id) ORDER BY abs(id)", "abs(t.id)"),
            ("SELECT -id AS id FROM t RIGHT JOIN u USING (id) ORDER BY abs(id)", "abs(u.id)"),
            ("SELECT -id AS id FROM t FULL JOIN u USING (id) ORDER BY abs(id)", "abs(coalesce(t.id, u.id))"),
            (
                "SELECT -id AS id FROM t RIGHT JOIN u USING (id) FULL JOIN t AS v USING (id) ORDER BY abs(id)",
                "abs(coalesce(u.id, v.id))",
            ),
            ("SELECT -x AS x FROM generate_series(1, 3) AS g(x) ORDER BY x + 0", "g.x + 0"),
            ("SELECT -x AS x FROM (VALUES (1), (2)) AS v(x) ORDER BY x + 0", "v.x + 0"),
            ("SELECT -c AS c FROM (SELECT * FROM t) AS s ORDER BY abs(c)", "abs(s.c)"),
            ("WITH q AS (SELECT * FROM t) SELECT -c AS c FROM q ORDER BY abs(c)", "abs(q.c)"),
            ("SELECT c AS id FROM t GROUP BY c, t.id HAVING t.id > 1 ORDER BY id", "id"),
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
