//! Qualifies references to outer tables in a subquery: `t.k` becomes `public.t.k`.
//!
//! DataFusion reads `t.k` as field `k` of a column `t`, if the subquery has such a column, before it looks at
//! the tables of outer queries. A name of three parts is unambiguous.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Ident, Query, Select, SelectItem, SetExpr, TableAlias, TableFactor};
use sqlparser::ast::{Visitor, VisitorMut};

use super::name_of;
use super::scopes::factors;
use super::visit::{visit, visit_mut};

/// The schema of every table.
const SCHEMA: &str = "public";

/// Qualifies outer tables where a column of the same name might be meant. `is_column`: some table has a
/// column of this name; columns that the query itself names are considered, too.
pub fn name_outer_tables(query: &mut Query, is_column: &dyn Fn(&str) -> bool) {
    let named = NamedColumns::of(query);
    let is_column = |name: &str| named.0.iter().any(|n| n == name) || is_column(name);
    let _ = visit_mut(query, &mut NameTables { is_column: &is_column, levels: Vec::new() });
}

/// Columns that a query names.
#[derive(Default)]
pub(super) struct NamedColumns(pub(super) Vec<String>);

impl Visitor for NamedColumns {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        with.for_each(|cte| self.add(&cte.alias));
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                self.0.push(name_of(alias));
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let Some(alias) = alias_of(factor) {
            self.add(alias);
        }
        ControlFlow::Continue(())
    }
}

impl NamedColumns {
    pub(super) fn of(query: &Query) -> NamedColumns {
        let mut named = NamedColumns::default();
        let _ = visit(query, &mut named);
        named
    }

    fn add(&mut self, alias: &TableAlias) {
        self.0.extend(alias.columns.iter().map(|column| name_of(&column.name)));
    }
}

struct NameTables<'a> {
    is_column: &'a dyn Fn(&str) -> bool,
    /// For each query around the position, and each SELECT in it, the names of its tables.
    levels: Vec<(usize, Vec<String>)>,
}

impl NameTables<'_> {
    /// The number of queries around the position.
    fn depth(&self) -> usize {
        self.levels.last().map_or(0, |(depth, _)| *depth)
    }
}

impl VisitorMut for NameTables<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        // ORDER BY names the SELECT's tables but stands outside of it.
        let tables = match &*query.body {
            SetExpr::Select(select) => tables_of(select),
            _ => Vec::new(),
        };
        self.levels.push((self.depth() + 1, tables));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.levels.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        self.levels.push((self.depth(), tables_of(select)));
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<()> {
        self.levels.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::CompoundIdentifier(parts) = expr else { return ControlFlow::Continue(()) };
        let [table, _] = &parts[..] else { return ControlFlow::Continue(()) };
        let name = name_of(table);
        let nearest = self.levels.iter().rev().find(|(_, tables)| tables.contains(&name));
        if nearest.is_some_and(|(depth, _)| *depth < self.depth()) && (self.is_column)(&name) {
            parts.insert(0, Ident::with_span(table.span, SCHEMA));
        }
        ControlFlow::Continue(())
    }
}

/// The names or aliases of the tables in a FROM.
pub(super) fn tables_of(select: &Select) -> Vec<String> {
    factors(&select.from).into_iter().filter_map(table_called).collect()
}

/// The name or alias of a table in a FROM.
pub(super) fn table_called(factor: &TableFactor) -> Option<String> {
    match factor {
        _ if let Some(alias) = alias_of(factor) => Some(name_of(&alias.name)),
        TableFactor::Table { name, .. } => name.0.last()?.as_ident().map(name_of),
        _ => None,
    }
}

fn alias_of(factor: &TableFactor) -> Option<&TableAlias> {
    match factor {
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::TableFunction { alias, .. }
        | TableFactor::UNNEST { alias, .. }
        | TableFactor::NestedJoin { alias, .. } => alias.as_ref(),
        _ => None,
    }
}
