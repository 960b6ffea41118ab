//! Time travel: `orders AS OF SNAPSHOT before`, `orders AS OF TIMESTAMP '2026-11-26 10:00'`, `VERSIONS OF
//! orders`.
//!
//! The moment is encoded as a schema: the parsed table is `before.orders AS orders`. sqlparser knows only the
//! spelling `FOR SYSTEM_TIME AS OF before`, and only if the dialect enables it, because words of similar
//! clauses are names in our SQL. So [`spell`] rewrites the tokens before parsing, and [`resolve`] the parsed
//! table.

use std::str::FromStr;

use sqlparser::ast::{
    BinaryOperator, Expr, Ident, Interval, ObjectName, ObjectNamePart, TableAlias, TableFactor, TableVersion,
    Value as SqlValue, ValueWithSpan,
};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::lift::Clock;
use super::rewrite::parameter_place;
use super::{span_of, table_name_of};
use crate::error::{Error, Result, Span, sqlstate};
use crate::value::{ColumnType, Value, is_reserved, length_of};

/// The schema of VERSIONS OF. No named snapshot can have this name.
const VERSIONS: &str = "/versions";

/// Prefixes of the schema of a table AS OF a time: of microseconds since 1970, of microseconds before now, and of
/// the position of a parameter.
const AS_OF: &str = "/as of ";
const AGO: &str = "/ago ";
const PARAMETER: &str = "/parameter ";

/// What a schema made by this module stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsOf<'n> {
    /// A named snapshot.
    Snapshot(&'n str),
    /// A time, in microseconds since 1970.
    Time(i64),
    /// This many microseconds before now.
    Ago(i64),
    /// The value of the parameter at this position.
    Parameter(usize),
    /// All versions.
    Versions,
}

impl AsOf<'_> {
    /// Decodes a schema.
    pub fn of(schema: &str) -> AsOf<'_> {
        fn number<N: FromStr>(schema: &str, prefix: &str) -> Option<N> {
            schema.strip_prefix(prefix)?.parse().ok()
        }
        let of_table = || (schema == VERSIONS).then_some(AsOf::Versions);
        number(schema, AS_OF)
            .map(AsOf::Time)
            .or_else(|| number(schema, AGO).map(AsOf::Ago))
            .or_else(|| number(schema, PARAMETER).map(AsOf::Parameter))
            .or_else(of_table)
            .unwrap_or(AsOf::Snapshot(schema))
    }
}

/// The position of the parameter whose value is a table's time.
pub(super) fn parameter_of(table: &ObjectName) -> Option<usize> {
    let [schema, _] = &table.0[..] else { return None };
    match AsOf::of(&schema.as_ident()?.value) {
        AsOf::Parameter(at) => Some(at),
        _ => None,
    }
}

/// Rewrites our clauses to sqlparser's spelling; gives whether there are any.
pub(super) fn spell(tokens: &mut Vec<TokenWithSpan>) -> bool {
    let is = |t: &TokenWithSpan, word: &str| matches!(&t.token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word));
    let starts = |at: &[TokenWithSpan], words: &[&str]| {
        at.len() > words.len() && at.iter().zip(words).all(|(token, word)| is(token, word))
    };
    let mut found = false;
    for at in (0..tokens.len()).rev() {
        let rest = &tokens[at..];
        // The number of tokens to replace; the moment follows them.
        let ours = if starts(rest, &["AS", "OF", "SNAPSHOT"]) {
            3
        } else if starts(rest, &["AS", "OF", "TIMESTAMP"]) {
            // A time is a typed literal, so TIMESTAMP stays in front of it.
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

/// sqlparser's words, with the places of ours.
fn theirs(ours: &[TokenWithSpan]) -> [TokenWithSpan; 4] {
    let word = |(at, word): (usize, &str)| {
        TokenWithSpan::new(Token::make_keyword(word), ours[at.min(ours.len() - 1)].span)
    };
    [(0, "FOR"), (0, "SYSTEM_TIME"), (1, "AS"), (2, "OF")].map(word)
}

/// Encodes a table's moment as its schema. Errors: SYNTAX if it is neither the name of a snapshot nor a time;
/// another schema than ours.
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
        TableVersion::ForSystemTimeAsOf(Expr::Value(ValueWithSpan {
            value: SqlValue::Placeholder(name),
            span,
        })) => {
            let at = parameter_place(&name).ok_or_else(|| no_moment(place))?;
            Ident { span, ..Ident::with_quote('"', format!("{PARAMETER}{at}")) }
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
