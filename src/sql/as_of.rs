//! `orders AS OF SNAPSHOT before`: a table as it was.
//!
//! A snapshot is parsed as a schema: what the parser gives is `before.orders AS orders`. sqlparser reads another
//! spelling, `FOR SYSTEM_TIME AS OF before`, and only where it is told to, for the words of other such clauses
//! are names here. So [`spell`] changes the tokens, and [`resolve`] the table.

use sqlparser::ast::{Expr, ObjectNamePart, TableAlias, TableFactor, TableVersion};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{span_of, table_name_of};
use crate::error::{Error, Result, sqlstate};

const OURS: [&str; 3] = ["AS", "OF", "SNAPSHOT"];
const THEIRS: [&str; 4] = ["FOR", "SYSTEM_TIME", "AS", "OF"];

/// Spells each `AS OF SNAPSHOT` as sqlparser reads it; gives whether there is one.
pub(super) fn spell(tokens: &mut Vec<TokenWithSpan>) -> bool {
    let is = |t: &TokenWithSpan, word: &str| matches!(&t.token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word));
    let is_ours = |at: &[TokenWithSpan]| at.iter().zip(OURS).all(|(token, word)| is(token, word));
    let places: Vec<usize> =
        (0..tokens.len()).filter(|at| tokens[*at..].len() >= 3 && is_ours(&tokens[*at..])).collect();
    for at in places.iter().rev() {
        let spans = [0, 0, 1, 2].map(|n| tokens[at + n].span);
        let theirs =
            THEIRS.iter().zip(spans).map(|(word, span)| TokenWithSpan::new(Token::make_keyword(word), span));
        tokens.splice(*at..at + OURS.len(), theirs.collect::<Vec<_>>());
    }
    !places.is_empty()
}

/// Makes a snapshot the schema of the table that is read as of it. Errors: SYNTAX for what is not a name of a snapshot;
/// a schema that is not ours.
pub(super) fn resolve(factor: &mut TableFactor) -> Result<()> {
    let TableFactor::Table { name, alias, version, .. } = factor else { return Ok(()) };
    let Some(version) = version.take() else { return Ok(()) };
    let TableVersion::ForSystemTimeAsOf(Expr::Identifier(snapshot)) = version else {
        return Err(Error::invalid("AS OF SNAPSHOT takes the name of a snapshot")
            .hint("SHOW SNAPSHOTS lists them")
            .state(sqlstate::SYNTAX)
            .at(span_of(&*name)));
    };
    table_name_of(name)?;
    let Some(ObjectNamePart::Identifier(table)) = name.0.pop() else { return Ok(()) };
    alias.get_or_insert_with(|| TableAlias {
        explicit: true,
        name: table.clone(),
        columns: Vec::new(),
        at: None,
    });
    name.0 = vec![ObjectNamePart::Identifier(snapshot), ObjectNamePart::Identifier(table)];
    Ok(())
}
