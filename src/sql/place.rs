//! Where in a statement an error belongs.

use std::ops::ControlFlow;

use sqlparser::ast::{Value, ValueWithSpan, Visit, Visitor};

use super::ast::Statement;
use super::to_span;
use crate::error::{Error, Span};

/// Points an error about a text literal at it, if the statement has that text once.
pub fn point_at_literal(error: Error, statement: &Statement) -> Error {
    let Some(text) = error.literal().map(str::to_owned) else { return error };
    let mut literals = Literals { text: &text, found: Vec::new() };
    let _ = statement.visit(&mut literals);
    match literals.found[..] {
        [place] => error.at(place),
        _ => error,
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
