//! What `regexp_replace` puts in place of a match.

use super::FunctionBuffers;
use crate::error::{Error, Result};
use crate::value::ValueRef;

/// The function that is [`replacement`] of a text that is computed.
pub const REPLACEMENT: &str = "regexp_replacement";

/// What `regexp_replace` puts in place of a match, for DataFusion: to it, `$` is what `\` is in PostgreSQL.
pub fn replacement(with: &str) -> String {
    let mut out = String::with_capacity(with.len());
    let mut chars = with.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('$', _) => out.push_str("$$"),
            ('\\', Some('\\')) => {
                chars.next();
                out.push('\\');
            }
            ('\\', Some('&')) => {
                chars.next();
                out.push_str("${0}");
            }
            ('\\', Some(digit)) if digit.is_ascii_digit() => {
                out.push_str(&format!("${{{digit}}}"));
                chars.next();
            }
            (c, _) => out.push(c),
        }
    }
    out
}

/// [`replacement`], as a function of SQL.
pub(super) fn regexp_replacement<'a>(
    args: &[ValueRef<'a>],
    buffers: &'a mut FunctionBuffers,
) -> Result<ValueRef<'a>> {
    match args {
        [ValueRef::Null] => Ok(ValueRef::Null),
        [ValueRef::Text(with)] => {
            buffers.text = replacement(with);
            Ok(ValueRef::Text(&buffers.text))
        }
        _ => Err(Error::invalid("regexp_replace puts a text in place of a match")),
    }
}
