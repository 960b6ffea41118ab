//! The literals in the rows of VALUES.

use std::mem::{Discriminant, discriminant};

use super::constant::{Constant, constant};
use super::tokens::{Class, Token};
use crate::value::Value;

/// Levels of parentheses in a row, at most.
const DEPTH_MAX: usize = 8;

/// A literal of a row: its tokens begin at the first number, and are as many as the second.
pub type Found = (usize, usize, Value);

/// The literal that is all of a value in a row of an INSERT, at the token `at`, and its number of tokens.
pub fn value_of_row(sql: &str, tokens: &[Token], at: usize) -> Option<(Value, usize)> {
    let ends = |at: usize, by: [&str; 2]| tokens.get(at).is_some_and(|token| by.contains(&token.text(sql)));
    if !ends(at.checked_sub(1)?, ["(", ","]) {
        return None;
    }
    let token = tokens[at];
    let word = |word, value| token.is(sql, &[word]).then_some((value, 1));
    let literal = match constant(sql, &tokens[at..]) {
        Some((Constant::Value(value), len)) => Some((value, len)),
        Some((Constant::Now(..), _)) => None,
        None => word("null", Value::Null)
            .or_else(|| word("true", Value::Boolean(true)))
            .or_else(|| word("false", Value::Boolean(false))),
    };
    literal.filter(|(_, len)| ends(at + len, [",", ")"]))
}

/// The literals of the VALUES that begin at the token `at` and are alone in parentheses, as in `FROM (VALUES (7, 'a'),
/// (8, 'b')) AS v`; and the position of the parenthesis behind them. `None` if there is nothing to lift.
///
/// All literals of a column have to be of one kind: others decide each other's type.
pub fn literals_of_values(sql: &str, tokens: &[Token], at: usize) -> Option<(Vec<Found>, usize)> {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.text(sql) == text);
    if !tokens[at].is(sql, &["values"]) || !is(at.checked_sub(1)?, "(") {
        return None;
    }
    let mut columns: Vec<Column> = Vec::new();
    let mut literals: Vec<(usize, Found)> = Vec::new();
    let mut next = at + 1;
    loop {
        if !is(next, "(") {
            return None;
        }
        let mut number = 0;
        loop {
            next += 1;
            if columns.len() == number {
                columns.push(Column::default());
            }
            let column = &mut columns[number];
            match constant(sql, tokens.get(next..)?) {
                Some((Constant::Value(value), len)) if is(next + len, ",") || is(next + len, ")") => {
                    let kind = discriminant(&value);
                    column.stays |= *column.kind.get_or_insert(kind) != kind;
                    literals.push((number, (next, len, value)));
                    next += len;
                }
                _ => {
                    let len = len_of_value(sql, &tokens[next..])?;
                    column.stays |= len != 1 || !tokens[next].is(sql, &["null"]);
                    next += len;
                }
            }
            number += 1;
            if !is(next, ",") {
                break;
            }
        }
        // Past the end of the row.
        next += 1;
        if !is(next, ",") {
            break;
        }
        next += 1;
    }
    let of_sets = ["union", "except", "intersect"];
    if !is(next, ")") || tokens.iter().any(|token| token.is(sql, &of_sets)) {
        return None;
    }
    literals.retain(|(number, _)| !columns[*number].stays);
    let literals: Vec<Found> = literals.into_iter().map(|(_, found)| found).collect();
    Some((literals, next)).filter(|(literals, _)| !literals.is_empty())
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
