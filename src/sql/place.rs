//! Where in a statement an error belongs.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Value, ValueWithSpan, Visit, Visitor};

use super::ast::Statement;
use super::to_span;
use crate::error::{Error, Span};

/// Points an error about a text literal at it, if the statement has that text once, and one about a function at its
/// call.
pub fn point_at_literal(error: Error, statement: &Statement) -> Error {
    let Some(text) = error.literal().map(str::to_owned) else { return point_at_call(error, statement) };
    let mut literals = Literals { text: &text, found: Vec::new() };
    let _ = statement.visit(&mut literals);
    match literals.found[..] {
        [place] => error.at(place),
        _ => error,
    }
}

/// An error about a function begins with its name.
fn point_at_call(error: Error, statement: &Statement) -> Error {
    if error.span().is_some() || error.sqlstate() != UNDEFINED_FUNCTION {
        return error;
    }
    let name = error.what().split(' ').next().unwrap_or_default().to_owned();
    let mut calls = Calls { name: &name, found: Vec::new() };
    let _ = statement.visit(&mut calls);
    match calls.found[..] {
        [place] => error.at(place),
        _ => error,
    }
}

/// SQLSTATE of a call that means nothing.
const UNDEFINED_FUNCTION: &str = "42883";

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
