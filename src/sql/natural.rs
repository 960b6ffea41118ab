//! Rewrites NATURAL joins as USING the columns that both sides have, and gives aliases the names of all columns.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Ident, JoinConstraint, JoinOperator, ObjectName, Query, Select, SelectItem, SetExpr, TableAlias,
    TableAliasColumnDef, TableFactor, TableWithJoins, Value, VisitorMut,
};

use super::name_of;
use super::rewrite::{constraint_mut, constraint_of};
use super::scopes::{Scopes, factors};
use super::star::has_options;
use super::table_functions::table_function;
use super::using::{RowsFrom, rows_from};
use super::visit::visit_mut;
use super::wildcard::last_ident;

/// Rewrites every NATURAL join whose sides have known columns; `columns_of` gives those of a table or view, and
/// `hidden_of` those behind them that `*` does not show. Other joins stay as they are.
pub fn name_natural_columns(
    query: &mut Query,
    columns_of: &dyn Fn(&ObjectName) -> ColumnNames,
    hidden_of: &dyn Fn(&ObjectName) -> Vec<String>,
) {
    let _ = visit_mut(query, &mut Natural { columns_of, hidden_of, scopes: Scopes::default() });
}

/// Columns by name, in order; `None` if they are not known.
pub type ColumnNames = Option<Vec<String>>;

struct Natural<'a> {
    columns_of: &'a dyn Fn(&ObjectName) -> ColumnNames,
    hidden_of: &'a dyn Fn(&ObjectName) -> Vec<String>,
    scopes: Scopes,
}

impl VisitorMut for Natural<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.scopes.enter(query, self.columns_of);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.scopes.leave();
        ControlFlow::Continue(())
    }

    /// An alias may name the first columns only; DataFusion wants all of them.
    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let is_named =
            |factor: &mut TableFactor| alias_of(factor).is_some_and(|alias| !alias.columns.is_empty());
        if is_named(factor)
            && let Some(columns) = columns_of_factor(factor, &self.scopes, self.columns_of)
        {
            let hidden = match factor {
                TableFactor::Table { name, args: None, .. } if self.scopes.columns_of(name).is_none() => {
                    (self.hidden_of)(name)
                }
                _ => Vec::new(),
            };
            let Some(alias) = alias_of(factor) else { return ControlFlow::Continue(()) };
            let others = columns.into_iter().skip(alias.columns.len()).chain(hidden);
            alias.columns.extend(
                others
                    .map(|name| TableAliasColumnDef { name: Ident::with_quote('"', name), data_type: None }),
            );
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for table in select.from.iter_mut().filter(|table| is_natural(table)) {
            self.name(table);
        }
        ControlFlow::Continue(())
    }
}

impl Natural<'_> {
    /// Rewrites the joins, and gives the columns of the whole.
    fn name(&self, table: &mut TableWithJoins) -> ColumnNames {
        let mut left = self.columns(&mut table.relation);
        for join in &mut table.joins {
            let right = self.columns(&mut join.relation);
            if matches!(constraint_of(&join.join_operator), Some(JoinConstraint::Natural))
                && let (Some(left), Some(right)) = (&left, &right)
            {
                let is_common =
                    |(at, name): &(usize, &String)| right.contains(name) && !left[..*at].contains(name);
                let common = left.iter().enumerate().filter(is_common).map(|(_, name)| name);
                let common: Vec<&String> = common.collect();
                set(&mut join.join_operator, &common);
            }
            let shared: Vec<String> = match constraint_of(&join.join_operator) {
                Some(JoinConstraint::Using(names)) => {
                    names.iter().filter_map(last_ident).map(|name| name_of(&name)).collect()
                }
                Some(JoinConstraint::Natural) => return None,
                _ => Vec::new(),
            };
            left = match rows_from(&join.join_operator) {
                RowsFrom::Left => left,
                RowsFrom::Right => right,
                RowsFrom::Both => left.zip(right).map(|(left, right)| {
                    let own =
                        |columns: Vec<String>| columns.into_iter().filter(|name| !shared.contains(name));
                    shared.iter().cloned().chain(own(left)).chain(own(right)).collect()
                }),
            };
        }
        left
    }

    fn columns(&self, factor: &mut TableFactor) -> ColumnNames {
        match factor {
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let columns = self.name(table_with_joins);
                called_by(alias, columns)
            }
            factor => columns_of_factor(factor, &self.scopes, self.columns_of),
        }
    }
}

/// The columns of a table, or of a subquery that has a name, as the query calls them.
pub(super) fn columns_of_factor(
    factor: &TableFactor,
    scopes: &Scopes,
    columns_of: &dyn Fn(&ObjectName) -> ColumnNames,
) -> ColumnNames {
    match factor {
        TableFactor::Table { name, alias, args: None, .. } => {
            let columns = scopes.columns_of(name).cloned().unwrap_or_else(|| columns_of(name));
            called_by(alias, columns)
        }
        TableFactor::Table { name, alias, with_ordinality: false, .. }
        | TableFactor::Function { name, alias, with_ordinality: false, .. } => {
            let (_, columns) = table_function(name)?;
            called_by(alias, Some(columns.iter().map(|name| (*name).to_owned()).collect()))
        }
        TableFactor::Derived { subquery, alias: Some(alias), .. } => {
            called(alias, outputs_of(subquery, scopes, columns_of))
        }
        _ => None,
    }
}

fn alias_of(factor: &mut TableFactor) -> Option<&mut TableAlias> {
    match factor {
        TableFactor::Table { alias, .. } | TableFactor::Derived { alias, .. } => alias.as_mut(),
        _ => None,
    }
}

fn is_natural(table: &TableWithJoins) -> bool {
    let nested = |factor: &TableFactor| match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => is_natural(table_with_joins),
        _ => false,
    };
    let natural = |operator| matches!(constraint_of(operator), Some(JoinConstraint::Natural));
    nested(&table.relation)
        || table.joins.iter().any(|join| natural(&join.join_operator) || nested(&join.relation))
}

/// The columns, renamed by the alias if there is one.
pub(super) fn called_by(alias: &Option<TableAlias>, columns: ColumnNames) -> ColumnNames {
    match alias {
        Some(alias) => called(alias, columns),
        None => columns,
    }
}

/// The columns, with the first ones renamed by the alias.
pub(super) fn called(alias: &TableAlias, columns: ColumnNames) -> ColumnNames {
    let mut columns = columns?;
    if alias.columns.len() > columns.len() {
        return None;
    }
    for (column, name) in columns.iter_mut().zip(&alias.columns) {
        *column = name_of(&name.name);
    }
    Some(columns)
}

/// The output columns of a query, if they are known: it names them, or they are those of known tables.
pub(super) fn outputs_of(
    query: &Query,
    scopes: &Scopes,
    columns_of: &dyn Fn(&ObjectName) -> ColumnNames,
) -> ColumnNames {
    let mut body = &*query.body;
    while let SetExpr::SetOperation { left, .. } = body {
        body = left;
    }
    match body {
        SetExpr::Select(select) => {
            let columns = |factor: &TableFactor| match query.with {
                None => columns_of_factor(factor, scopes, columns_of),
                Some(_) => None,
            };
            let outputs = select.projection.iter().map(|item| output_of(item, &select.from, &columns));
            outputs.collect::<Option<Vec<_>>>().map(|outputs| outputs.concat())
        }
        SetExpr::Query(query) => outputs_of(query, scopes, columns_of),
        SetExpr::Values(values) => {
            let columns = values.rows.first()?.len();
            Some((1..=columns).map(|n| format!("column{n}")).collect())
        }
        _ => None,
    }
}

fn output_of(
    item: &SelectItem,
    from: &[TableWithJoins],
    columns: &dyn Fn(&TableFactor) -> ColumnNames,
) -> ColumnNames {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(vec![name_of(alias)]),
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(vec![name_of(name)]),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => Some(vec![name_of(parts.last()?)]),
        SelectItem::Wildcard(options) if !has_options(options) => {
            let merges_nothing = |operator: &JoinOperator| {
                matches!(rows_from(operator), RowsFrom::Both)
                    && matches!(
                        constraint_of(operator),
                        None | Some(JoinConstraint::On(_) | JoinConstraint::None)
                    )
            };
            let joins = |table: &TableWithJoins| {
                table.joins.iter().all(|join| merges_nothing(&join.join_operator))
                    && !matches!(table.relation, TableFactor::NestedJoin { .. })
            };
            let shown = from.iter().all(joins).then(|| factors(from))?;
            shown.into_iter().map(columns).collect::<Option<Vec<_>>>().map(|columns| columns.concat())
        }
        _ => None,
    }
}

/// Joins USING these columns; without any, ON TRUE.
fn set(operator: &mut JoinOperator, common: &[&String]) {
    let using: Vec<ObjectName> =
        common.iter().map(|name| ObjectName::from(vec![Ident::with_quote('"', name.as_str())])).collect();
    let named = match using.is_empty() {
        true => JoinConstraint::On(Expr::value(Value::Boolean(true))),
        false => JoinConstraint::Using(using),
    };
    if let Some(constraint) = constraint_mut(operator) {
        *constraint = named;
    }
}
