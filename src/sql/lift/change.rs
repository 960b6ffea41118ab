//! Literal lifting of statements that change rows.

use super::constant::Constant;
use super::tokens::{Class, tokens};
use super::{Names, TEXT_BYTES, Walk, without};
use crate::value::Value;

/// Bytes of the longest INSERT worth lifting: a long one has many rows, and next to these its parsing is little.
const INSERT_BYTES: usize = 4096;

/// The text of an INSERT, UPDATE or DELETE, with its literals replaced by parameters, and their values.
#[derive(Clone, Debug, PartialEq)]
pub struct LiftedChange {
    pub text: String,
    pub values: Vec<Value>,
}

/// Lifts the literals of an INSERT, UPSERT, REPLACE, UPDATE or DELETE, so that texts which differ in their rows, or set or
/// ask for other values, are parsed once. Those of RETURNING stay: its columns are named by their text. `None` if it is
/// no such statement, has parameters, or is not worth it.
///
/// What errors say of the text that is left is about no text of the user's.
pub fn lift_change(sql: &str) -> Option<LiftedChange> {
    let text = sql.trim_start();
    let begins = |word: &str| text.get(..word.len()).is_some_and(|first| first.eq_ignore_ascii_case(word));
    let may_be = ["update", "delete"].into_iter().any(begins) && sql.len() <= TEXT_BYTES
        || ["insert", "upsert", "replace"].into_iter().any(begins) && sql.len() <= INSERT_BYTES;
    if !may_be {
        return None;
    }
    let (tokens, comments) = tokens(sql)?;
    if !comments.is_empty() {
        return lift_change(&without(sql, comments));
    }
    if tokens.iter().any(|token| token.class == Class::Parameter) {
        return None;
    }
    let mut walk = Walk::of(sql, &tokens, Names::Unseen, 0);
    walk.place.of_change = true;
    let lifted = walk.lifted()?;
    let value = |lifted| if let Constant::Value(value) = lifted { Some(value) } else { None };
    let values = lifted.values.into_iter().map(value).collect::<Option<_>>()?;
    Some(LiftedChange { text: lifted.text, values })
}
