//! `orders AS OF SNAPSHOT before`, `orders AS OF TIMESTAMP '2026-11-26 10:00'`, `VERSIONS OF orders`: a table as it was.
//!
//! What it is read as of is parsed as a schema: what the parser gives is `before.orders AS orders`. sqlparser reads
//! another spelling, `FOR SYSTEM_TIME AS OF before`, and only where it is told to, for the words of other such clauses
//! are names here. So [`spell`] changes the tokens, and [`resolve`] the table.

use sqlparser::ast::{
    BinaryOperator, Expr, Ident, Interval, ObjectNamePart, TableAlias, TableFactor, TableVersion,
    Value as SqlValue,
};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::lift::Clock;
use super::{span_of, table_name_of};
use crate::error::{Error, Result, Span, sqlstate};
use crate::value::{ColumnType, Value, is_reserved, length_of};

/// The schema of the versions of all tables. No snapshot that a statement makes is called so.
const VERSIONS: &str = "/versions";

/// What the schemas of tables as of a time begin with, before microseconds since 1970; and before microseconds till now.
const AS_OF: &str = "/as of ";
const AGO: &str = "/ago ";

/// What a table in a schema of ours is read as of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsOf<'n> {
    /// A snapshot by its name.
    Snapshot(&'n str),
    /// A time, in microseconds since 1970.
    Time(i64),
    /// So many microseconds before now.
    Ago(i64),
    /// All that there was.
    Versions,
}

impl AsOf<'_> {
    /// What a schema stands for.
    pub fn of(schema: &str) -> AsOf<'_> {
        let number = |prefix: &str| schema.strip_prefix(prefix)?.parse().ok();
        match (number(AS_OF), number(AGO)) {
            (Some(time_us), _) => AsOf::Time(time_us),
            (_, Some(micros)) => AsOf::Ago(micros),
            _ if schema == VERSIONS => AsOf::Versions,
            _ => AsOf::Snapshot(schema),
        }
    }
}

/// Spells each of our clauses as sqlparser reads it; gives whether there is one.
pub(super) fn spell(tokens: &mut Vec<TokenWithSpan>) -> bool {
    let is = |t: &TokenWithSpan, word: &str| matches!(&t.token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word));
    let starts = |at: &[TokenWithSpan], words: &[&str]| {
        at.len() > words.len() && at.iter().zip(words).all(|(token, word)| is(token, word))
    };
    let mut found = false;
    for at in (0..tokens.len()).rev() {
        let rest = &tokens[at..];
        // So many tokens become theirs; what tells the moment follows.
        let ours = if starts(rest, &["AS", "OF", "SNAPSHOT"]) {
            3
        } else if starts(rest, &["AS", "OF", "TIMESTAMP"]) {
            // A time is a literal with its type in front.
            if matches!(rest[3].token, Token::SingleQuotedString(_)) { 2 } else { 3 }
        } else if starts(rest, &["VERSIONS", "OF"]) && is_name(&rest[2]) {
            let parts = rest[3..].chunks_exact(2);
            let more = parts.take_while(|next| next[0].token == Token::Period && is_name(&next[1])).count();
            let behind = at + 3 + 2 * more;
            let versions =
                TokenWithSpan::new(Token::SingleQuotedString(VERSIONS.to_owned()), tokens[behind - 1].span);
            tokens.splice(behind..behind, theirs(&tokens[at..at + 2]).into_iter().chain([versions]));
            tokens.drain(at..at + 2);
            found = true;
            continue;
        } else {
            continue;
        };
        tokens.splice(at..at + ours, theirs(&tokens[at..at + ours]));
        found = true;
    }
    found
}

fn is_name(token: &TokenWithSpan) -> bool {
    matches!(&token.token, Token::Word(word) if word.quote_style.is_some() || !is_reserved(&word.value.to_lowercase()))
}

/// sqlparser's words in the places of ours.
fn theirs(ours: &[TokenWithSpan]) -> [TokenWithSpan; 4] {
    let word = |(at, word): (usize, &str)| {
        TokenWithSpan::new(Token::make_keyword(word), ours[at.min(ours.len() - 1)].span)
    };
    [(0, "FOR"), (0, "SYSTEM_TIME"), (1, "AS"), (2, "OF")].map(word)
}

/// Makes what a table is read as of its schema. Errors: SYNTAX for what is not a name of a snapshot, or a time; a
/// schema that is not ours.
pub(super) fn resolve(factor: &mut TableFactor) -> Result<()> {
    let TableFactor::Table { name, alias, version, .. } = factor else { return Ok(()) };
    let Some(version) = version.take() else { return Ok(()) };
    let place = match &version {
        TableVersion::ForSystemTimeAsOf(moment) => span_of(moment).or_else(|| span_of(&*name)),
        _ => span_of(&*name),
    };
    let schema = match version {
        TableVersion::ForSystemTimeAsOf(Expr::Identifier(snapshot)) => snapshot,
        TableVersion::ForSystemTimeAsOf(Expr::TypedString(time)) => {
            let span = time.value.span;
            let text = time.value.value.into_string().unwrap_or_default();
            let time = Value::Text(text).cast(ColumnType::TimestampTz);
            let Value::TimestampTz(time_us) = time.map_err(|e| Error::from(e).at(place))? else {
                return Err(no_moment(place));
            };
            Ident { span, ..Ident::with_quote('"', format!("{AS_OF}{time_us}")) }
        }
        TableVersion::ForSystemTimeAsOf(Expr::Value(value))
            if value.value == SqlValue::SingleQuotedString(VERSIONS.to_owned()) =>
        {
            Ident { span: value.span, ..Ident::with_quote('"', VERSIONS) }
        }
        TableVersion::ForSystemTimeAsOf(time) => match ago(&time) {
            Some(micros) => Ident::with_quote('"', format!("{AGO}{micros}")),
            None => return Err(no_moment(place)),
        },
        _ => return Err(no_moment(place)),
    };
    table_name_of(name)?;
    let Some(ObjectNamePart::Identifier(table)) = name.0.pop() else { return Ok(()) };
    alias.get_or_insert_with(|| TableAlias {
        explicit: true,
        name: table.clone(),
        columns: Vec::new(),
        at: None,
    });
    name.0 = vec![ObjectNamePart::Identifier(schema), ObjectNamePart::Identifier(table)];
    Ok(())
}

/// The microseconds in `now() - INTERVAL '1 hour'`.
fn ago(time: &Expr) -> Option<i64> {
    match time {
        Expr::Function(call) => {
            let clock = Clock::named(&table_name_of(&call.name).ok()?);
            (clock == Some(Clock::Time)).then_some(0)
        }
        Expr::BinaryOp { left, op: BinaryOperator::Minus, right } if ago(left) == Some(0) => {
            let Expr::Interval(Interval { value, leading_field: None, .. }) = &**right else { return None };
            match &**value {
                Expr::Value(length) => length_of(&length.value.clone().into_string()?),
                _ => None,
            }
        }
        _ => None,
    }
}

fn no_moment(place: Option<Span>) -> Error {
    Error::invalid("AS OF takes the name of a snapshot, or a time")
        .hint("AS OF SNAPSHOT before, AS OF TIMESTAMP '2026-11-26 10:00:00', or now() - INTERVAL '1 hour'")
        .state(sqlstate::SYNTAX)
        .at(place)
}
