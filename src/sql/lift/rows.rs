//! The literals in the rows of VALUES.

use std::mem::{Discriminant, discriminant};

use super::constant::{Constant, constant};
use super::tokens::{Class, Token};
use crate::value::Value;

/// Levels of parentheses in a row, at most.
const DEPTH_MAX: usize = 8;

/// A literal of a row: its tokens begin at the first number, and are as many as the second.
pub type Found = (usize, usize, Value);

/// The literals of the rows of an INSERT, whose VALUES is the token `at`, and the position behind them. `None` if these are
/// no rows, or there is a query in one.
pub fn literals_of_rows(sql: &str, tokens: &[Token], at: usize) -> Option<(Vec<Found>, usize)> {
    let (values, end) = values_of(sql, tokens, at)?;
    let literal = |RowValue { at, len, literal, .. }: RowValue| {
        let named = || {
            let words =
                [("null", Value::Null), ("true", Value::Boolean(true)), ("false", Value::Boolean(false))];
            words.into_iter().find(|(word, _)| len == 1 && tokens[at].is(sql, &[word]))
        };
        Some((at, len, literal.or_else(|| Some(named()?.1))?))
    };
    Some((values.into_iter().filter_map(literal).collect(), end))
}

/// The literals of the VALUES that begin at the token `at` and are alone in parentheses, as in `FROM (VALUES (7, 'a'),
/// (8, 'b')) AS v`; and the position of the parenthesis behind them. `None` if there is nothing to lift.
///
/// All literals of a column have to be of one kind: others decide each other's type.
pub fn literals_of_values(sql: &str, tokens: &[Token], at: usize) -> Option<(Vec<Found>, usize)> {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.text(sql) == text);
    if !is(at.checked_sub(1)?, "(") {
        return None;
    }
    let (values, end) = values_of(sql, tokens, at)?;
    let of_sets = ["union", "except", "intersect"];
    if !is(end, ")") || tokens.iter().any(|token| token.is(sql, &of_sets)) {
        return None;
    }
    let mut columns: Vec<Column> = Vec::new();
    for RowValue { column, at, len, literal } in &values {
        if columns.len() == *column {
            columns.push(Column::default());
        }
        let column = &mut columns[*column];
        column.stays |= match literal.as_ref().map(discriminant) {
            Some(kind) => *column.kind.get_or_insert(kind) != kind,
            None => *len != 1 || !tokens[*at].is(sql, &["null"]),
        };
    }
    let literal = |RowValue { column, at, len, literal }: RowValue| {
        literal.filter(|_| !columns[column].stays).map(|value| (at, len, value))
    };
    let literals: Vec<Found> = values.into_iter().filter_map(literal).collect();
    Some((literals, end)).filter(|(literals, _)| !literals.is_empty())
}

/// A value of a row: its tokens begin at `at`, and are `len`.
struct RowValue {
    /// Its number in the row.
    column: usize,
    at: usize,
    len: usize,
    /// `None`: it is something else.
    literal: Option<Value>,
}

/// The values of the rows behind the token `at`, a VALUES, and the position behind them.
fn values_of(sql: &str, tokens: &[Token], at: usize) -> Option<(Vec<RowValue>, usize)> {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.text(sql) == text);
    if !tokens[at].is(sql, &["values"]) {
        return None;
    }
    let (mut values, mut next) = (Vec::new(), at + 1);
    loop {
        if !is(next, "(") {
            return None;
        }
        let mut column = 0;
        loop {
            let at = next + 1;
            let (literal, len) = match constant(sql, tokens.get(at..)?) {
                Some((Constant::Value(value), len)) if is(at + len, ",") || is(at + len, ")") => {
                    (Some(value), len)
                }
                _ => (None, len_of_value(sql, &tokens[at..])?),
            };
            values.push(RowValue { column, at, len, literal });
            (column, next) = (column + 1, at + len);
            if !is(next, ",") {
                break;
            }
        }
        // Past the end of the row.
        next += 1;
        if !is(next, ",") {
            return Some((values, next));
        }
        next += 1;
    }
}

/// A column of the rows.
#[derive(Default)]
struct Column {
    /// Of its first literal.
    kind: Option<Discriminant<Value>>,
    /// It has literals of another kind, or something else than literals and NULL.
    stays: bool,
}

/// The number of tokens up to the `,` or `)` behind a value; `None` for a subquery, or if there is no end.
fn len_of_value(sql: &str, tokens: &[Token]) -> Option<usize> {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token.text(sql) {
            "," | ")" if depth == 0 => return Some(at),
            "(" => depth += 1,
            ")" => depth -= 1,
            _ if token.class == Class::Word && token.is(sql, &["select", "values"]) => return None,
            _ => {}
        }
        if depth > DEPTH_MAX {
            return None;
        }
    }
    None
}
