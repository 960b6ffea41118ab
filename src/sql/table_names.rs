//! Gives tables names of their own where DataFusion would take one for another.
//!
//! It takes `t` for the end of the name `"a.t"`. It puts a query of WITH where it is read, and looks at the tables of a
//! join together: what such a query or a subquery in FROM names of the row around is then looked for in the tables
//! beside it, if one of these is called like that row. A name of its own is marked, and
//! [`output_name`](super::output_name) removes the mark.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    SetExpr, TableAlias, TableFactor, TableWithJoins, VisitorMut, With,
};

use super::outer_names::table_called;
use super::outputs::MARK;
use super::scopes::factors;
use super::visit::visit_mut;
use super::{is_our_schema, name_of};

/// Renames tables of a query whose names contain a dot, or those of the rows around it.
pub fn name_tables(query: &mut Query) {
    let _ = visit_mut(query, &mut NameTables::default());
}

/// The tables of a SELECT.
struct Level {
    /// The number of queries around it, itself included.
    depth: usize,
    /// They are those of a query's only SELECT, which has not begun yet.
    is_ahead: bool,
    /// Its query has a WITH.
    has_with: bool,
    /// Names, and those that they have been given.
    tables: Vec<(String, String)>,
}

#[derive(Default)]
struct NameTables {
    /// For each query around the position, and each SELECT in it.
    levels: Vec<Level>,
    /// For each subquery in a FROM around the position, the depth whose tables it does not see.
    hidden: Vec<usize>,
    /// For each query around the position, its WITH.
    set_aside: Vec<Option<With>>,
    /// Names given so far (count).
    given: usize,
}

impl NameTables {
    fn depth(&self) -> usize {
        self.levels.last().map_or(0, |level| level.depth)
    }

    /// The levels that the position sees, innermost first.
    fn seen(&self) -> impl Iterator<Item = &Level> {
        self.levels.iter().rev().filter(|level| !self.hidden.contains(&level.depth))
    }

    /// Renames the tables of a SELECT where that matters, and gives all of their names. `has_with`: its query has one.
    fn tables(&mut self, select: &mut Select, has_with: bool) -> Vec<(String, String)> {
        let is_query = |factor: &&TableFactor| matches!(factor, TableFactor::Derived { lateral: false, .. });
        let is_beside = has_with || factors(&select.from).iter().any(is_query);
        let mut named = Vec::new();
        for table in &mut select.from {
            self.name(table, is_beside, &mut named);
        }
        named
    }

    /// The same of joined tables. `is_beside`: queries are put beside them that may name the rows around.
    fn name(&mut self, table: &mut TableWithJoins, is_beside: bool, named: &mut Vec<(String, String)>) {
        let joined = table.joins.iter_mut().map(|join| &mut join.relation);
        for factor in std::iter::once(&mut table.relation).chain(joined) {
            if let TableFactor::NestedJoin { table_with_joins, alias: None } = factor {
                self.name(table_with_joins, is_beside, named);
            }
            let Some(name) = table_called(factor) else { continue };
            if let Some(again) = named.iter().find(|(known, _)| *known == name).cloned() {
                rename(factor, &again.1);
                named.push(again);
                continue;
            }
            let around = self.seen().position(|level| level.tables.iter().any(|(known, _)| *known == name));
            let is_mixed_up = around
                .is_some_and(|around| is_beside || self.seen().take(around).any(|level| level.has_with));
            let mut own = name.clone();
            if is_mixed_up || name.contains('.') {
                // Equal subqueries stay equal, unless that is what mixes them up.
                self.given += usize::from(is_mixed_up);
                own = format!("{name}{MARK}{}", if is_mixed_up { self.given } else { 0 });
                rename(factor, &own);
            }
            named.push((name, own));
        }
    }

    /// The name that a table has been given in place of that in a query.
    fn own(&self, name: &Ident) -> Option<Ident> {
        let name_here = name_of(name);
        let mut tables = self.seen().flat_map(|level| &level.tables);
        let (_, own) = tables.find(|(known, _)| *known == name_here).filter(|(known, own)| known != own)?;
        Some(Ident { value: own.clone(), quote_style: Some('"'), span: name.span })
    }
}

impl VisitorMut for NameTables {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let (mut with, depth) = (query.with.take(), self.depth() + 1);
        let has_with = with.is_some();
        // Its queries do not see the query's tables.
        self.levels.push(Level { depth, is_ahead: false, has_with, tables: Vec::new() });
        for cte in with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            let _ = visit_mut(&mut *cte.query, self);
        }
        self.levels.pop();
        self.set_aside.push(with);
        // ORDER BY names the SELECT's tables but stands outside of it.
        let (is_ahead, tables) = match &mut *query.body {
            SetExpr::Select(select) => (true, self.tables(select, has_with)),
            _ => (false, Vec::new()),
        };
        self.levels.push(Level { depth, is_ahead, has_with, tables });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.levels.pop();
        query.with = self.set_aside.pop().flatten();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let depth = self.depth();
        let of_query = self.levels.last_mut().and_then(|level| {
            let is_ahead = std::mem::take(&mut level.is_ahead);
            is_ahead.then(|| level.tables.clone())
        });
        let tables = of_query.unwrap_or_else(|| self.tables(select, false));
        self.levels.push(Level { depth, is_ahead: false, has_with: false, tables });
        for item in &mut select.projection {
            if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = item
                && let Some(ObjectNamePart::Identifier(table)) = name.0.last()
                && let Some(own) = self.own(table)
            {
                *name = ObjectName::from(vec![own]);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<()> {
        self.levels.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if matches!(factor, TableFactor::Derived { lateral: false, .. }) {
            self.hidden.push(self.depth());
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if matches!(factor, TableFactor::Derived { lateral: false, .. }) {
            self.hidden.pop();
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::CompoundIdentifier(parts) = expr else { return ControlFlow::Continue(()) };
        let table = match &parts[..] {
            [table, _] => table,
            [schema, table, _] if is_our_schema(&name_of(schema)) => table,
            _ => return ControlFlow::Continue(()),
        };
        if let Some(own) = self.own(table) {
            parts.splice(..parts.len() - 1, [own]);
        }
        ControlFlow::Continue(())
    }
}

fn rename(factor: &mut TableFactor, own: &str) {
    let name = Ident::with_quote('"', own);
    match factor {
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::TableFunction { alias, .. }
        | TableFactor::UNNEST { alias, .. }
        | TableFactor::NestedJoin { alias, .. } => match alias {
            Some(alias) => alias.name = Ident { span: alias.name.span, ..name },
            None => *alias = Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None }),
        },
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_told_apart() {
        let cases = [
            (r#"SELECT t.a, "a.t".a FROM "a.t", t"#, r##"SELECT t.a, "a.t#0".a FROM "a.t" AS "a.t#0", t"##),
            (
                "SELECT (WITH w AS (SELECT x.a FROM v) SELECT x.b FROM u AS x, w) FROM t AS x",
                r##"SELECT (WITH w AS (SELECT x.a FROM v) SELECT "x#1".b FROM u AS "x#1", w) FROM t AS x"##,
            ),
            (
                "SELECT (SELECT u.b FROM (SELECT u.a) AS q FULL JOIN u ON q.a = u.a ORDER BY u.b) FROM u",
                r##"SELECT (SELECT "u#1".b FROM (SELECT u.a) AS q FULL JOIN u AS "u#1" ON q.a = "u#1".a ORDER BY "u#1".b) FROM u"##,
            ),
            (
                "SELECT t.c FROM t WHERE EXISTS (SELECT 1 FROM t WHERE t.b)",
                "SELECT t.c FROM t WHERE EXISTS (SELECT 1 FROM t WHERE t.b)",
            ),
        ];
        for (from, to) in cases {
            let mut query = crate::sql::parse_query(from).unwrap();
            name_tables(&mut query);
            assert_eq!(query.to_string().replace(MARK, "#"), to);
        }
    }
}
