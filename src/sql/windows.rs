//! Expands named windows: DataFusion 55.2 ignores the name in `OVER (w ORDER BY at)`, and knows none in DISTINCT ON,
//! QUALIFY, ORDER BY and subqueries of a select list.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Function, Ident, NamedWindowDefinition, NamedWindowExpr, Query, Select, SetExpr, VisitMut,
    WindowSpec, WindowType,
};

use super::visit::{or_break, or_error, visit_expressions_mut};
use super::{name_of, span_of_name};
use crate::error::{Error, Result, sqlstate};

/// The named windows of a SELECT, expanded.
type NamedWindows = Vec<(String, WindowSpec)>;

/// Expands the named windows of a SELECT; those of its subqueries are done already.
///
/// Errors: there is no window of the name; a clause that the named window has already.
pub(super) fn of_select(select: &mut Select) -> Result<()> {
    let known = known(&mut select.named_window)?;
    spell(&mut select.projection, &known)?;
    spell(&mut select.distinct, &known)?;
    spell(&mut select.qualify, &known)
}

/// Expands the windows in a query's ORDER BY. Errors: the same.
pub(super) fn of_order(query: &mut Query) -> Result<()> {
    let known = match &mut *query.body {
        SetExpr::Select(select) => known(&mut select.named_window)?,
        _ => NamedWindows::new(),
    };
    spell(&mut query.order_by, &known)
}

fn known(definitions: &mut [NamedWindowDefinition]) -> Result<NamedWindows> {
    let mut known = NamedWindows::new();
    for NamedWindowDefinition(name, window) in definitions {
        let spec = match window {
            NamedWindowExpr::NamedWindow(other) => named(other, &known)?.clone(),
            NamedWindowExpr::WindowSpec(spec) => {
                begin(spec, &known)?;
                spec.clone()
            }
        };
        known.push((name_of(name), spec));
    }
    Ok(known)
}

fn spell(exprs: &mut impl VisitMut, known: &NamedWindows) -> Result<()> {
    or_error(visit_expressions_mut(exprs, |expr| match expr {
        Expr::Function(Function { over: Some(over), .. }) => or_break(spell_window(over, known)),
        _ => ControlFlow::Continue(()),
    }))
}

fn spell_window(window: &mut WindowType, known: &NamedWindows) -> Result<()> {
    match window {
        WindowType::WindowSpec(spec) => begin(spec, known)?,
        WindowType::NamedWindow(name) => *window = WindowType::WindowSpec(named(name, known)?.clone()),
    }
    Ok(())
}

/// Copies the clauses of the named window into a specification that extends it.
fn begin(spec: &mut WindowSpec, known: &NamedWindows) -> Result<()> {
    let Some(name) = spec.window_name.take() else { return Ok(()) };
    let first = named(&name, known)?;
    let twice = |what: &str| {
        Error::invalid(format!("window \"{}\" has {what} of its own", name_of(&name)))
            .hint("write the whole window out, or name one that says less")
            .at(span_of_name(&name))
    };
    if !spec.partition_by.is_empty() {
        return Err(twice("partitions").why("a window that begins with another one takes its partitions"));
    }
    if !(spec.order_by.is_empty() || first.order_by.is_empty()) {
        return Err(twice("an order"));
    }
    if first.window_frame.is_some() {
        return Err(twice("a frame"));
    }
    spec.partition_by.clone_from(&first.partition_by);
    if spec.order_by.is_empty() {
        spec.order_by.clone_from(&first.order_by);
    }
    Ok(())
}

fn named<'k>(name: &Ident, known: &'k NamedWindows) -> Result<&'k WindowSpec> {
    let wanted = name_of(name);
    known.iter().find(|(known, _)| *known == wanted).map(|(_, spec)| spec).ok_or_else(|| {
        Error::invalid(format!("there is no window \"{wanted}\""))
            .hint("WINDOW name AS (PARTITION BY ... ORDER BY ...) behind the FROM defines one")
            .state(sqlstate::UNDEFINED_OBJECT)
            .at(span_of_name(name))
    })
}
