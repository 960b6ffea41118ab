//! Table functions of values that rows have, as in `FROM place p, json_array_elements_text(p.doc -> 'tags') AS tag`.
//!
//! As in PostgreSQL, they need no LATERAL to see the tables in front of them; one in a select list stands for what it
//! makes of each row; and the alias of one whose rows have one column is also the name of that column.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArguments, GroupByExpr, Ident, ObjectName, Query, Select,
    SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins, VisitorMut,
};

use super::outer_names::NamedColumns;
use super::scopes::factors;
use super::star::is_star;
use super::using::shows;
use super::visit::{or_error, visit_expressions, visit_mut};
use super::{name_of, span_of};
use crate::error::{Error, Result};

/// Names of each function, and the columns of the rows that it makes.
const FUNCTIONS: [(&[&str], &[&str]); 8] = [
    (&["json_each", "jsonb_each"], &["key", "value"]),
    (&["json_each_text", "jsonb_each_text"], &["key", "value"]),
    (&["json_array_elements", "jsonb_array_elements"], &["value"]),
    (&["json_array_elements_text", "jsonb_array_elements_text"], &["value"]),
    (&["json_object_keys", "jsonb_object_keys"], &["key"]),
    (&["string_to_table"], &["value"]),
    (&["generate_series"], &["value"]),
    (&["range"], &["value"]),
];

/// Functions whose rows are planned before anything is read, unless they depend on columns.
const SERIES: [&str; 2] = ["generate_series", "range"];

/// The first of a function's names, and the columns of its rows.
pub fn table_function(name: &ObjectName) -> Option<(&'static str, &'static [&'static str])> {
    let [part] = &name.0[..] else { return None };
    let name = name_of(part.as_ident()?);
    let (names, columns) = FUNCTIONS.iter().find(|(names, _)| names.contains(&name.as_str()))?;
    Some((names[0], columns))
}

/// Makes a table function see the tables in front of it.
pub(super) fn as_lateral(factor: &mut TableFactor) {
    if let TableFactor::Table { name, alias, args: Some(given), with_ordinality, .. } = factor
        && reads_rows(name, &given.args, *with_ordinality)
    {
        *factor = TableFactor::Function {
            lateral: true,
            name: name.clone(),
            args: std::mem::take(&mut given.args),
            with_ordinality: *with_ordinality,
            alias: alias.take(),
        };
    }
}

/// Is it a function whose rows are made while the query runs?
pub fn reads_rows(name: &ObjectName, args: &[FunctionArg], with_ordinality: bool) -> bool {
    let Some((name, _)) = table_function(name) else { return false };
    let reads = |expr: &Expr| {
        matches!(
            expr,
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Subquery(_) | Expr::Exists { .. }
        )
    };
    let see = |expr: &Expr| if reads(expr) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    !SERIES.contains(&name)
        || with_ordinality
        || args.iter().any(|arg| visit_expressions(arg, see).is_break())
}

/// Moves a table function of a select list into FROM. Errors: a place where it would make other rows there.
pub(super) fn into_from(select: &mut Select) -> Result<()> {
    let mut taker = Taker::default();
    let mut place = None;
    for (n, item) in select.projection.iter_mut().enumerate() {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            or_error(visit_mut(expr, &mut taker))?;
        }
        place = place.or(taker.taken.is_some().then_some(n));
    }
    let Taker { taken: Some(function), has_window, .. } = taker else { return Ok(()) };
    let refused = |why: &str| {
        let example = format!("FROM t, {}(..) AS f", function.name);
        Error::unsupported(format!("{} cannot stand in this select list", function.name))
            .why(why)
            .hint(format!("put it behind FROM: {example}"))
            .at(span_of(&function.name))
    };
    // Rows that are grouped by what it makes are made before.
    let is_its_output = |expr: &Expr| match (expr, place) {
        (Expr::Identifier(name), Some(n)) => select.projection.get(n).is_some_and(|item| shows(item, name)),
        (Expr::Value(number), Some(n)) => number.to_string() == (n + 1).to_string(),
        _ => false,
    };
    let makes_of_groups = match &select.group_by {
        GroupByExpr::Expressions(exprs, modifiers) => {
            (!exprs.is_empty() || !modifiers.is_empty()) && !exprs.iter().any(is_its_output)
        }
        GroupByExpr::All(_) => true,
    };
    if makes_of_groups {
        return Err(refused("it would make rows of groups"));
    }
    if has_window {
        return Err(refused(
            "a window function beside it would see each row once, not the rows that it makes",
        ));
    }
    if select.projection.iter().any(is_star) {
        return Err(refused("* beside it would show its columns as well"));
    }
    let FunctionArguments::List(given) = function.args else { return Ok(()) };
    let name = name_in(&function.name);
    let alias = TableAlias {
        explicit: true,
        columns: vec![TableAliasColumnDef { name: name.clone(), data_type: None }],
        name,
        at: None,
    };
    let relation = TableFactor::Function {
        lateral: true,
        name: function.name,
        args: given.args,
        with_ordinality: false,
        alias: Some(alias),
    };
    select.from.push(TableWithJoins { relation, joins: Vec::new() });
    Ok(())
}

/// The name of a function in a select list, which its rows and their column get there.
fn name_in(name: &ObjectName) -> Ident {
    let ident = name.0.last().and_then(|part| part.as_ident()).cloned();
    ident.unwrap_or_else(|| Ident::new(name.to_string()))
}

/// Takes the table function out of a select list.
#[derive(Default)]
struct Taker {
    /// Queries around the position.
    depth: usize,
    taken: Option<Function>,
    has_window: bool,
}

impl VisitorMut for Taker {
    type Break = Error;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let Expr::Function(function) = &*expr else { return ControlFlow::Continue(()) };
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        self.has_window |= function.over.is_some();
        let Some((name, columns)) = table_function(&function.name) else { return ControlFlow::Continue(()) };
        // PostgreSQL's range() makes a value.
        if name == SERIES[1] {
            return ControlFlow::Continue(());
        }
        let refused = |what: String, hint: &str| {
            ControlFlow::Break(Error::unsupported(what).hint(hint).at(span_of(&function.name)))
        };
        if self.taken.is_some() {
            return refused(
                "a select list has one function that makes rows".to_owned(),
                "put them behind FROM: FROM t, f(t.a) AS x, g(t.b) AS y",
            );
        }
        if columns.len() > 1 {
            return refused(
                format!("{} makes rows of {} columns", function.name, columns.len()),
                "put it behind FROM: FROM t, json_each(t.doc) AS e",
            );
        }
        let name = name_in(&function.name);
        let value = Expr::CompoundIdentifier(vec![name.clone(), name]);
        if let Expr::Function(function) = std::mem::replace(expr, value) {
            self.taken = Some(function);
        }
        ControlFlow::Continue(())
    }
}

/// Lets the alias of a table function of one column stand for the column: `tag` becomes `tag.value`. `is_column`: some
/// table has a column of this name; columns that the query itself names are considered, too.
pub fn name_made_values(query: &mut Query, is_column: &dyn Fn(&str) -> bool) {
    let named = NamedColumns::of(query);
    let _ = visit_mut(query, &mut NameValues { named: &named.0, is_column, levels: Vec::new() });
}

/// Names that a SELECT gives its outputs.
fn outputs(select: &Select) -> impl Iterator<Item = String> {
    select.projection.iter().filter_map(|item| match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(name_of(alias)),
        _ => None,
    })
}

/// The alias of a table function, and the one column of its rows.
fn value_of(factor: &TableFactor) -> Option<(String, &'static str)> {
    let (name, alias) = match factor {
        TableFactor::Table { name, alias: Some(alias), args: Some(_), with_ordinality: false, .. }
        | TableFactor::Function { name, alias: Some(alias), with_ordinality: false, .. } => (name, alias),
        _ => return None,
    };
    match table_function(name)? {
        (_, [column]) if alias.columns.is_empty() => Some((name_of(&alias.name), column)),
        _ => None,
    }
}

struct NameValues<'a> {
    named: &'a [String],
    is_column: &'a dyn Fn(&str) -> bool,
    /// Of each query and SELECT around the position.
    levels: Vec<Level>,
}

#[derive(Default)]
struct Level {
    /// Aliases of functions in its FROM, and their columns.
    functions: Vec<(String, &'static str)>,
    /// Names that it gives its own outputs.
    outputs: Vec<String>,
    /// It is what stands behind the SELECT, as ORDER BY.
    is_behind: bool,
}

impl Level {
    fn of(select: &Select, is_behind: bool) -> Level {
        let functions = factors(&select.from).into_iter().filter_map(value_of).collect();
        Level { functions, outputs: outputs(select).collect(), is_behind }
    }
}

impl NameValues<'_> {
    /// The column that the alias stands for.
    fn column(&self, alias: &Ident) -> Option<&'static str> {
        let name = name_of(alias);
        let has = |level: &&Level| level.functions.iter().any(|(alias, _)| *alias == name);
        let level = self.levels.iter().rev().find(has)?;
        let own = level.outputs.iter().filter(|output| **output == name).count();
        let others = self.named.iter().filter(|column| **column == name).count() > own;
        if others || level.is_behind && own > 0 || (self.is_column)(&name) {
            return None;
        }
        level.functions.iter().find(|(alias, _)| *alias == name).map(|(_, column)| *column)
    }

    fn named(&self, alias: &Ident) -> Option<Expr> {
        let column = Ident::with_span(alias.span, self.column(alias)?);
        Some(Expr::CompoundIdentifier(vec![alias.clone(), column]))
    }
}

impl VisitorMut for NameValues<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.levels.push(match &*query.body {
            SetExpr::Select(select) => Level::of(select, true),
            _ => Level::default(),
        });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.levels.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        self.levels.push(Level::of(select, false));
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(Expr::Identifier(alias)) = item
                && let Some(expr) = self.named(alias)
            {
                *item = SelectItem::ExprWithAlias { expr, alias: alias.clone() };
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<()> {
        self.levels.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(alias) = &*expr
            && let Some(named) = self.named(alias)
        {
            *expr = named;
        }
        ControlFlow::Continue(())
    }
}
