//! Finds the place in a statement that an error is about.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Ident, JoinConstraint, Select, Value, ValueWithSpan, Visitor};

use super::ast::Statement;
use super::rewrite::constraint_of;
use super::visit::visit;
use super::{name_of, span_of, to_span};
use crate::error::{Error, Span, sqlstate};

/// Whether [`point_at_literal`] may find a place for the error.
pub fn may_have_place(error: &Error) -> bool {
    let of_a_name = [sqlstate::UNDEFINED_COLUMN, sqlstate::UNDEFINED_OBJECT, sqlstate::UNDEFINED_FUNCTION];
    error.span().is_none() && (error.subject().literal.is_some() || of_a_name.contains(&error.sqlstate()))
}

/// Points an error about a text literal at the literal, if it occurs once, and one about a function or column
/// at its name.
pub fn point_at_literal(error: Error, statement: &Statement) -> Error {
    let Some(text) = error.subject().literal.clone() else { return point_at_call(error, statement) };
    let mut literals = Literals { text: &text, found: Vec::new() };
    let _ = visit(statement, &mut literals);
    match literals.found[..] {
        [place] => error.at(place),
        _ => error,
    }
}

/// Tells who wrote a text in double quotes, and got an error about a column, to write it in single ones.
pub fn meant_as_text(error: Error, sql: &str) -> Error {
    let Some(span) = error.span().filter(|_| error.sqlstate() == sqlstate::UNDEFINED_COLUMN) else {
        return error;
    };
    let line = sql.lines().nth(span.line.saturating_sub(1) as usize).unwrap_or_default();
    let named = line.chars().skip(span.column.saturating_sub(1) as usize).take(span.len as usize);
    let named: String = named.collect();
    let text =
        named.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).map(|text| text.replace('\'', "''"));
    match (text, error.fix().map(str::to_owned)) {
        (Some(text), Some(columns)) if columns.starts_with("columns here are") => {
            error.hint(format!("{columns}; a text stands in single quotes: '{text}'"))
        }
        _ => error,
    }
}

/// Handles errors about a column, whose message ends with its name in quotes.
fn point_at_name(error: Error, statement: &Statement) -> Error {
    let named = error.what().strip_prefix("there is no column \"").and_then(|rest| rest.strip_suffix('"'));
    let Some(name) = named.filter(|_| error.span().is_none()).map(str::to_owned) else { return error };
    let mut names = Names { name: &name, found: Vec::new() };
    let _ = visit(statement, &mut names);
    match names.found[..] {
        [place] => error.at(place),
        _ => error,
    }
}

struct Names<'a> {
    name: &'a str,
    found: Vec<Option<Span>>,
}

impl Names<'_> {
    fn look_at(&mut self, ident: &Ident) {
        if name_of(ident) == self.name {
            self.found.push(to_span(ident.span));
        }
    }
}

impl Visitor for Names<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(ident) => self.look_at(ident),
            Expr::CompoundIdentifier(parts) => parts.last().into_iter().for_each(|ident| self.look_at(ident)),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    // USING names columns outside of expressions.
    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        for join in select.from.iter().flat_map(|from| &from.joins) {
            if let Some(JoinConstraint::Using(columns)) = constraint_of(&join.join_operator) {
                let named = columns.iter().filter_map(|column| column.0.last()?.as_ident());
                named.for_each(|ident| self.look_at(ident));
            }
        }
        ControlFlow::Continue(())
    }
}

/// Handles errors about a type, whose message ends with its name.
fn point_at_cast(error: Error, statement: &Statement) -> Error {
    let Some(name) = error.what().strip_prefix("there is no type ").map(str::to_owned) else { return error };
    let mut casts = Casts { to: &name, found: Vec::new() };
    let _ = visit(statement, &mut casts);
    match casts.found[..] {
        [place] => error.at(place),
        _ => error,
    }
}

struct Casts<'a> {
    to: &'a str,
    found: Vec<Option<Span>>,
}

impl Visitor for Casts<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Cast { data_type, .. } = expr
            && data_type.to_string().eq_ignore_ascii_case(self.to)
        {
            self.found.push(span_of(expr));
        }
        ControlFlow::Continue(())
    }
}

/// Handles errors about a function, whose message begins with its name.
fn point_at_call(error: Error, statement: &Statement) -> Error {
    match error.sqlstate() {
        sqlstate::UNDEFINED_COLUMN => return point_at_name(error, statement),
        sqlstate::UNDEFINED_OBJECT => return point_at_cast(error, statement),
        _ => {}
    }
    if error.span().is_some() || error.sqlstate() != sqlstate::UNDEFINED_FUNCTION {
        return error;
    }
    let name = error.what().split(' ').next().unwrap_or_default().to_owned();
    let mut calls = Calls { name: &name, found: Vec::new() };
    let _ = visit(statement, &mut calls);
    match calls.found[..] {
        [place] => error.at(place),
        _ => error,
    }
}

struct Calls<'a> {
    name: &'a str,
    found: Vec<Option<Span>>,
}

impl Visitor for Calls<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Function(call) = expr
            && let Some(name) = call.name.0.last().and_then(|part| part.as_ident())
            && name.value.eq_ignore_ascii_case(self.name)
        {
            self.found.push(to_span(name.span));
        }
        ControlFlow::Continue(())
    }
}

struct Literals<'a> {
    text: &'a str,
    found: Vec<Option<Span>>,
}

impl Visitor for Literals<'_> {
    type Break = ();

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<()> {
        if matches!(&value.value, Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) if text == self.text)
        {
            self.found.push(to_span(value.span));
        }
        ControlFlow::Continue(())
    }
}
