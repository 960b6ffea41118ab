//! Syntax highlighting of SQL while it is typed.

use super::keywords::is_keyword;
use super::tokens::{Token, TokenKind, tokens};

const KEYWORD: &str = "\x1b[1;34m";
const TEXT: &str = "\x1b[32m";
const NUMBER: &str = "\x1b[36m";
const COMMENT: &str = "\x1b[2m";
const RESET: &str = "\x1b[0m";

/// `line` with colours. `before`: the statement's earlier lines, where a quote may have been opened.
pub fn highlight(before: &str, line: &str) -> String {
    let sql = format!("{before}{line}");
    let mut out = String::with_capacity(line.len() * 2);
    let mut at = 0;
    for token in tokens(&sql) {
        let shown = before.len().saturating_sub(at).min(token.text.len());
        at += token.text.len();
        paint(&mut out, color(&token), &token.text[shown..]);
    }
    out
}

fn paint(out: &mut String, color: Option<&str>, text: &str) {
    match color {
        Some(color) if !text.is_empty() => out.extend([color, text, RESET]),
        _ => out.push_str(text),
    }
}

fn color(token: &Token<'_>) -> Option<&'static str> {
    match token.kind {
        TokenKind::Word if is_keyword(token.text) => Some(KEYWORD),
        TokenKind::Text => Some(TEXT),
        TokenKind::Number => Some(NUMBER),
        TokenKind::Comment => Some(COMMENT),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Colours as letters, to keep tests readable.
    fn shown(before: &str, line: &str) -> String {
        let named = [(KEYWORD, "<k "), (TEXT, "<t "), (NUMBER, "<n "), (COMMENT, "<c "), (RESET, ">")];
        named.iter().fold(highlight(before, line), |text, (code, name)| text.replace(code, name))
    }

    #[test]
    fn keywords_texts_numbers_and_comments() {
        assert_eq!(shown("", "select a, 'x', 12 -- y"), "<k select> a, <t 'x'>, <n 12> <c -- y>");
    }

    #[test]
    fn a_quote_opened_above_is_still_open() {
        assert_eq!(shown("SELECT 'one\n", "select 2' from t"), "<t select 2'> <k from> t");
        assert_eq!(shown("/* é", " é */ 1"), "<c  é */> <n 1>");
    }
}
