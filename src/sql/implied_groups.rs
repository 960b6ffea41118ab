//! `GROUP BY` a primary key implies all columns of its table: `SELECT o.*, count(*) .. GROUP BY o.id`.
//!
//! It is SQL's feature T301; PostgreSQL and SQLite allow it, and DataFusion does not. The columns that a query mentions
//! are added to the list. The key determines them, so they do not change the groups, and one too many does no harm.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, GroupByExpr, Ident, ObjectNamePart, OrderBy, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableFactor, Value, ValueWithSpan, Visitor, VisitorMut,
};

use super::scopes::factors;
use super::visit::{visit, visit_expressions, visit_mut};
use super::{is_our_schema, name_of, table_name_of};

/// A table whose rows are told apart by some columns.
pub struct KeyedTable {
    /// The columns of its key; not empty.
    pub key: Vec<String>,
    /// All of its columns.
    pub columns: Vec<String>,
}

/// The query with the GROUP BY lists of it and of its subqueries completed; `None` if there is nothing to add.
/// `table_of`: the table of a name, if its key is unique.
pub fn with_implied_groups(query: &Query, table_of: &dyn Fn(&str) -> Option<KeyedTable>) -> Option<Query> {
    if visit(query, &mut Groups).is_continue() {
        return None;
    }
    let mut query = query.clone();
    let mut add = Add { table_of, hidden: Vec::new(), has_added: false };
    let _ = visit_mut(&mut query, &mut add);
    add.has_added.then_some(query)
}

/// The last element of a marked GROUP BY list; no text of a query can be it.
pub const END_OF_GROUPS: &str = "\0groups";

/// The query with a mark at the end of each of its GROUP BY lists, behind which DataFusion puts the columns that it
/// takes for implied; `None` if there are no lists.
pub fn with_marked_groups(query: &Query) -> Option<Query> {
    if visit(query, &mut Groups).is_continue() {
        return None;
    }
    let mut query = query.clone();
    let _ = visit_mut(&mut query, &mut Mark);
    Some(query)
}

struct Mark;

impl VisitorMut for Mark {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let has_sets = |group: &Expr| {
            matches!(group, Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_) | Expr::Tuple(_))
        };
        if let GroupByExpr::Expressions(groups, modifiers) = &mut select.group_by
            && !groups.is_empty()
            && modifiers.is_empty()
            && !groups.iter().any(has_sets)
        {
            groups.push(Expr::value(Value::SingleQuotedString(END_OF_GROUPS.to_owned())));
        }
        ControlFlow::Continue(())
    }
}

/// Finds the first GROUP BY.
struct Groups;

impl Visitor for Groups {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        match &select.group_by {
            GroupByExpr::Expressions(groups, _) if groups.is_empty() => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }
}

struct Add<'a> {
    table_of: &'a dyn Fn(&str) -> Option<KeyedTable>,
    /// Names of CTEs, for each query around the position: they hide tables.
    hidden: Vec<Vec<String>>,
    has_added: bool,
}

impl VisitorMut for Add<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        self.hidden.push(with.map(|cte| name_of(&cte.alias.name)).collect());
        if let SetExpr::Select(select) = &mut *query.body {
            self.add(select, query.order_by.as_ref());
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.hidden.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        self.add(select, None);
        ControlFlow::Continue(())
    }
}

/// A column name and its qualifier, if it has one.
type QualifiedName = (Option<String>, String);

impl Add<'_> {
    fn add(&mut self, select: &mut Select, order_by: Option<&OrderBy>) {
        let GroupByExpr::Expressions(groups, modifiers) = &select.group_by else { return };
        let is_list =
            |group: &Expr| !matches!(group, Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_));
        if groups.is_empty() || !modifiers.is_empty() || !groups.iter().all(is_list) {
            return;
        }
        let grouped: Vec<QualifiedName> =
            groups.iter().filter_map(|group| grouped_by(group, select)).collect();
        let tables = self.tables(select);
        let is_keyed =
            |(called, table): &(String, KeyedTable)| table.key.iter().all(|key| is_in(&grouped, called, key));
        if !tables.iter().any(is_keyed) {
            return;
        }
        let mentioned = mentioned(select, order_by);
        let mut implied = Vec::new();
        for (called, table) in tables.iter().filter(|table| is_keyed(table)) {
            let all = shows_all(select, called);
            let is_implied = |column: &&String| {
                !is_in(&grouped, called, column) && (all || is_in(&mentioned, called, column))
            };
            implied.extend(table.columns.iter().filter(is_implied).map(|column| {
                let parts = [called, column].map(|name| Ident::with_quote('"', name.as_str()));
                Expr::CompoundIdentifier(parts.into())
            }));
        }
        self.has_added |= !implied.is_empty();
        if let GroupByExpr::Expressions(groups, _) = &mut select.group_by {
            groups.extend(implied);
        }
    }

    /// The tables of a FROM, by what they are called there.
    fn tables(&self, select: &Select) -> Vec<(String, KeyedTable)> {
        let table = |factor: &TableFactor| {
            let TableFactor::Table { name, alias, args: None, .. } = factor else { return None };
            let is_ours =
                |schema: &ObjectNamePart| schema.as_ident().is_some_and(|s| is_our_schema(&name_of(s)));
            let may_be_hidden = match &name.0[..] {
                [_] => true,
                [schema, _] if is_ours(schema) => false,
                _ => return None,
            };
            let name = table_name_of(name).ok()?;
            let called = match alias {
                Some(alias) if alias.columns.is_empty() => name_of(&alias.name),
                Some(_) => return None,
                None => name.clone(),
            };
            let is_hidden = may_be_hidden && self.hidden.iter().flatten().any(|hidden| *hidden == name);
            Some((called, (self.table_of)(&name).filter(|_| !is_hidden)?))
        };
        factors(&select.from).into_iter().filter_map(table).collect()
    }
}

/// The column that a grouping expression names, directly or by its position in the select list.
fn grouped_by(group: &Expr, select: &Select) -> Option<QualifiedName> {
    let alias = |item: &SelectItem| match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(name_of(alias)),
        _ => None,
    };
    match group {
        Expr::Value(ValueWithSpan { value: Value::Number(place, _), .. }) => {
            match select.projection.get(place.parse::<usize>().ok()?.checked_sub(1)?)? {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => column(expr),
                _ => None,
            }
        }
        // An alias may be meant.
        Expr::Identifier(name) if select.projection.iter().any(|item| alias(item) == Some(name_of(name))) => {
            None
        }
        group => column(group),
    }
}

fn column(expr: &Expr) -> Option<QualifiedName> {
    match expr {
        Expr::Identifier(name) => Some((None, name_of(name))),
        Expr::CompoundIdentifier(parts) => match &parts[..] {
            [table, name] => Some((Some(name_of(table)), name_of(name))),
            _ => None,
        },
        Expr::Nested(expr) => column(expr),
        _ => None,
    }
}

/// The columns that the clauses behind the groups mention, those in subqueries included.
fn mentioned(select: &Select, order_by: Option<&OrderBy>) -> Vec<QualifiedName> {
    let mut mentioned = Vec::new();
    let mut note = |expr: &Expr| {
        mentioned.extend(column(expr));
        ControlFlow::<()>::Continue(())
    };
    let _ = visit_expressions(&select.projection, &mut note);
    let _ = visit_expressions(&select.having, &mut note);
    let _ = visit_expressions(&select.qualify, &mut note);
    let _ = visit_expressions(&select.distinct, &mut note);
    if let Some(order_by) = order_by {
        let _ = visit_expressions(order_by, &mut note);
    }
    mentioned
}

/// The column of a table is one of these.
fn is_in(columns: &[QualifiedName], table: &str, column: &str) -> bool {
    columns.iter().any(|(of, name)| name == column && of.as_ref().is_none_or(|of| of == table))
}

/// `*` or `t.*` shows all columns of a table.
fn shows_all(select: &Select, table: &str) -> bool {
    select.projection.iter().any(|item| match item {
        SelectItem::Wildcard(_) => true,
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
            table_name_of(name).is_ok_and(|name| name == table)
        }
        _ => false,
    })
}
