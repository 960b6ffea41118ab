//! The literals in the rows of VALUES.

use std::mem::discriminant;

use super::constant::{Constant, constant};
use super::tokens::{Class, Token};
use crate::value::Value;

/// Levels of parentheses in a row, at most.
const DEPTH_MAX: usize = 8;

/// A literal of a row: its tokens begin at the first number, and are as many as the second.
pub type Found = (usize, usize, Value);

/// The literals of the VALUES that begin at the token `at` and are alone in parentheses, as in `FROM (VALUES (7, 'a'),
/// (8, 'b')) AS v`; and the position of the parenthesis behind them. `None` if there is nothing to lift.
///
/// All literals of a column have to be of one kind: others decide each other's type.
pub fn literals_of_values(sql: &str, tokens: &[Token], at: usize) -> Option<(Vec<Found>, usize)> {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.text(sql) == text);
    if !tokens[at].is(sql, &["values"]) || !is(at.checked_sub(1)?, "(") {
        return None;
    }
    // The literals by column; `None`: something else stands there as well.
    let mut columns: Vec<Option<Vec<Found>>> = Vec::new();
    let mut next = at + 1;
    loop {
        if !is(next, "(") {
            return None;
        }
        let mut column = 0;
        loop {
            next += 1;
            let (found, len) = match constant(sql, tokens.get(next..)?) {
                Some((Constant::Value(value), len)) if is(next + len, ",") || is(next + len, ")") => {
                    (Some(Some((next, len, value))), len)
                }
                _ => {
                    let len = len_of_value(sql, &tokens[next..])?;
                    let is_null = len == 1 && tokens[next].is(sql, &["null"]);
                    (if is_null { Some(None) } else { None }, len)
                }
            };
            if columns.len() == column {
                columns.push(Some(Vec::new()));
            }
            let kept = columns[column].take().zip(found).filter(|(before, found)| {
                let kinds = before.last().zip(found.as_ref());
                kinds.is_none_or(|((.., a), (.., b))| discriminant(a) == discriminant(b))
            });
            columns[column] = kept.map(|(mut literals, found)| {
                literals.extend(found);
                literals
            });
            (next, column) = (next + len, column + 1);
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
    let mut literals: Vec<Found> = columns.into_iter().flatten().flatten().collect();
    literals.sort_unstable_by_key(|(at, ..)| *at);
    Some((literals, next)).filter(|(literals, _)| !literals.is_empty())
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
