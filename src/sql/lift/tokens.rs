//! Tokens of a query, found in one walk over its bytes.

use std::ops::Range;

use crate::sql::begins_name;

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Word,
    /// In quotes.
    Name,
    Number,
    Text,
    Parameter,
    /// `=`, `<`, `>`, `<=`, `>=`, `<>`, `!=`
    Comparison,
    Other,
}

/// A token, and where it is in the text.
#[derive(Clone, Copy)]
pub struct Token {
    pub class: Class,
    pub start: usize,
    pub end: usize,
}

impl Token {
    pub fn text<'a>(&self, sql: &'a str) -> &'a str {
        &sql[self.start..self.end]
    }

    /// One of these words, in any case.
    pub fn is(&self, sql: &str, words: &[&str]) -> bool {
        self.class == Class::Word && words.iter().any(|word| self.text(sql).eq_ignore_ascii_case(word))
    }

    /// Its number, if it is a parameter.
    pub fn parameter(&self, sql: &str) -> Option<usize> {
        (self.class == Class::Parameter).then(|| sql[self.start + 1..self.end].parse().ok()).flatten()
    }
}

/// Tokens without blanks and comments, and the comments but for hints; `None` if the text contains something that must
/// not be touched.
pub fn tokens(sql: &str) -> Option<(Vec<Token>, Vec<Range<usize>>)> {
    let bytes = sql.as_bytes();
    let (mut tokens, mut comments) = (Vec::<Token>::with_capacity(sql.len() / 4), Vec::new());
    let mut at = 0;
    let end_of = |from: usize, go: fn(u8) -> bool| {
        bytes[from..].iter().position(|b| !go(*b)).map_or(bytes.len(), |n| from + n)
    };
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80;
    while at < bytes.len() {
        let start = at;
        let next = bytes.get(at + 1).copied();
        let class = match bytes[at] {
            b if b.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'-' if next == Some(b'-') => {
                at = end_of(at, |b| !matches!(b, b'\n' | b'\r'));
                comments.push(start..at);
                continue;
            }
            b'/' if next == Some(b'*') => {
                at += 2 + sql[at + 2..].find("*/")? + 2;
                let comment = &sql[start + 2..at - 2];
                // Comments nest.
                if comment.contains("/*") {
                    return None;
                }
                // Hints shape the plan and stay in the text.
                if !comment.starts_with('+') {
                    comments.push(start..at);
                }
                continue;
            }
            // `->`, `->>`, `#>` and the like compare nothing.
            b'-' | b'#' | b'@' if next == Some(b'>') => {
                at = end_of(at + 1, |b| b == b'>');
                Class::Other
            }
            b'\'' => {
                at = end_of_quoted(bytes, at, b'\'')?;
                // `E'..'` and `X'..'` have other rules.
                if tokens.last().is_some_and(|t| t.class == Class::Word && t.end == start) {
                    return None;
                }
                Class::Text
            }
            quote @ (b'"' | b'`') => {
                at = end_of_quoted(bytes, at, quote)?;
                Class::Name
            }
            b'[' if begins_name(sql[..at].chars().next_back(), sql[at + 1..].chars().next()) => {
                at += sql[at..].find(']')? + 1;
                Class::Name
            }
            b'$' if next.is_some_and(|b| b.is_ascii_digit()) => {
                at = end_of(at + 1, |b| b.is_ascii_digit());
                Class::Parameter
            }
            b'$' | b'?' => return None,
            b if b.is_ascii_digit() || b == b'.' && next.is_some_and(|b| b.is_ascii_digit()) => {
                at = end_of(at, |b| b.is_ascii_alphanumeric() || b == b'.' || b == b'_');
                let signed =
                    matches!(bytes[at - 1], b'e' | b'E') && matches!(bytes.get(at), Some(b'+' | b'-'));
                if signed {
                    at = end_of(at + 1, |b| b.is_ascii_digit());
                }
                Class::Number
            }
            b'=' | b'<' | b'>' | b'!' => {
                at = end_of(at, |b| matches!(b, b'=' | b'<' | b'>' | b'!'));
                match &sql[start..at] {
                    "=" | "<" | ">" | "<=" | ">=" | "<>" | "!=" => Class::Comparison,
                    _ => Class::Other,
                }
            }
            b if is_word(b) => {
                at = end_of(at, |b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$') || b >= 0x80);
                // Blanks beyond ASCII.
                if !bytes[start..at].is_ascii() && sql[start..at].contains(char::is_whitespace) {
                    return None;
                }
                Class::Word
            }
            _ => {
                at += 1;
                Class::Other
            }
        };
        tokens.push(Token { class, start, end: at });
    }
    Some((tokens, comments))
}

/// A text literal's value.
pub fn text_of(quoted: &str) -> String {
    quoted[1..quoted.len() - 1].replace("''", "'")
}

/// The position after the closing quote; a doubled quote is part of the text.
fn end_of_quoted(bytes: &[u8], start: usize, quote: u8) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += bytes.get(at..)?.iter().position(|b| *b == quote)? + 1;
        if bytes.get(at) != Some(&quote) {
            return Some(at);
        }
        at += 1;
    }
}
