//! An infallible SQL scanner: its tokens, concatenated, give the text again.
//!
//! The shell must tell words, quotes and comments apart in text that may be half typed: to highlight it
//! ([`highlight`](super::highlight)), to complete it ([`complete`](super::complete)) and to substitute
//! variables ([`variables`](super::variables)). An unclosed quote or comment runs to the end of the text.

use crate::sql::begins_name;

/// The kind of a [`Token`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Blanks and line ends.
    Space,
    /// `-- to the end of the line`, or `/* nested */`.
    Comment,
    /// A keyword or an unquoted name.
    Word,
    /// `12`, `1.5e-3`, `0xff`.
    Number,
    /// `'text'`, `E'text'`, `$tag$text$tag$`, quotes included.
    Text,
    /// `"name"`, `[name]` or one in backticks, quotes included.
    QuotedName,
    /// One character of anything else.
    Symbol,
}

/// A piece of SQL text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// Its kind.
    pub kind: TokenKind,
    /// Its text, as written.
    pub text: &'a str,
}

impl Token<'_> {
    /// Is it this symbol?
    pub fn is_symbol(&self, symbol: &str) -> bool {
        self.kind == TokenKind::Symbol && self.text == symbol
    }
}

/// The tokens of `sql`, in order and without gaps.
pub fn tokens(sql: &str) -> Tokens<'_> {
    Tokens { before: None, rest: sql }
}

/// Iterator of [`tokens`].
#[derive(Clone)]
pub struct Tokens<'a> {
    before: Option<char>,
    rest: &'a str,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let (kind, len) = first_token(self.before, self.rest)?;
        let (text, rest) = self.rest.split_at(len);
        (self.before, self.rest) = (text.chars().next_back(), rest);
        Some(Token { kind, text })
    }
}

/// Kind and length (bytes) of the first token of `sql`, behind a character.
fn first_token(before: Option<char>, sql: &str) -> Option<(TokenKind, usize)> {
    let mut chars = sql.chars();
    let first = chars.next()?;
    let second = chars.next();
    Some(match (first, second) {
        (c, _) if c.is_whitespace() => (TokenKind::Space, length_while(sql, char::is_whitespace)),
        ('-', Some('-')) => (TokenKind::Comment, length_while(sql, |c| !matches!(c, '\n' | '\r'))),
        ('/', Some('*')) => (TokenKind::Comment, block_comment(sql)),
        ('\'', _) => (TokenKind::Text, quoted(sql, '\'', false)),
        ('e' | 'E', Some('\'')) => (TokenKind::Text, 1 + quoted(&sql[1..], '\'', true)),
        ('"' | '`', _) => (TokenKind::QuotedName, quoted(sql, first, false)),
        ('[', _) if begins_name(before, second) => {
            (TokenKind::QuotedName, sql.find(']').map_or(sql.len(), |at| at + 1))
        }
        ('$', _) => match dollar_quoted(sql) {
            Some(len) => (TokenKind::Text, len),
            None => (TokenKind::Symbol, 1),
        },
        (c, _) if c.is_ascii_digit() => (TokenKind::Number, number(sql)),
        (c, _) if is_name_start(c) => (TokenKind::Word, length_while(sql, is_name_part)),
        (c, _) => (TokenKind::Symbol, c.len_utf8()),
    })
}

/// A letter or `_`.
pub fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// A letter, a digit, `_` or `$`.
pub fn is_name_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

fn length_while(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

/// Length of a quoted piece. A doubled quote does not end it; with `backslash`, neither does `\'`.
fn quoted(text: &str, quote: char, backslash: bool) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if backslash && c == '\\' {
            chars.next();
        } else if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return at + c.len_utf8();
        }
    }
    text.len()
}

/// Length of `$tag$ ... $tag$`; `None` if `text` does not begin with a tag (as `$1`).
fn dollar_quoted(text: &str) -> Option<usize> {
    let tag_len = text[1..].find('$')? + 2;
    let tag = &text[..tag_len];
    let name = &tag[1..tag_len - 1];
    if name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(is_name_part) {
        return None;
    }
    Some(text[tag_len..].find(tag).map_or(text.len(), |at| tag_len + at + tag_len))
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        let step = if rest.starts_with(b"/*") {
            depth += 1;
            2
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            2
        } else {
            1
        };
        at += step;
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

fn number(text: &str) -> usize {
    let len = length_while(text, |c| c.is_ascii_alphanumeric() || c == '.');
    // A sign belongs to a number only after its exponent's `e`.
    if text[..len].ends_with(['e', 'E']) && text[len..].starts_with(['+', '-']) {
        return len + 1 + length_while(&text[len + 1..], |c| c.is_ascii_digit());
    }
    len
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kinds(sql: &str) -> Vec<(TokenKind, &str)> {
        tokens(sql).filter(|t| t.kind != TokenKind::Space).map(|t| (t.kind, t.text)).collect()
    }

    #[test]
    fn tells_words_quotes_and_comments_apart() {
        use TokenKind::*;
        assert_eq!(
            kinds("SELECT x'00', 'it''s', \"a b\" -- note\n, 1.5e-3+2 /* a /* b */ c */ FROM t"),
            [
                (Word, "SELECT"),
                (Word, "x"),
                (Text, "'00'"),
                (Symbol, ","),
                (Text, "'it''s'"),
                (Symbol, ","),
                (QuotedName, "\"a b\""),
                (Comment, "-- note"),
                (Symbol, ","),
                (Number, "1.5e-3"),
                (Symbol, "+"),
                (Number, "2"),
                (Comment, "/* a /* b */ c */"),
                (Word, "FROM"),
                (Word, "t"),
            ]
        );
    }

    #[test]
    fn dollars_quote_or_number_parameters() {
        use TokenKind::*;
        assert_eq!(
            kinds("$$a;b$$ $q$ $$ $q$ $1"),
            [(Text, "$$a;b$$"), (Text, "$q$ $$ $q$"), (Symbol, "$"), (Number, "1"),]
        );
        assert_eq!(kinds(r"E'a\'b'"), [(Text, r"E'a\'b'")]);
    }

    #[test]
    fn what_is_left_open_runs_to_the_end() {
        use TokenKind::*;
        assert_eq!(kinds("'abc; --"), [(Text, "'abc; --")]);
        assert_eq!(kinds("/* x"), [(Comment, "/* x")]);
        assert_eq!(kinds("[x; --"), [(QuotedName, "[x; --")]);
    }

    #[test]
    fn names_may_stand_in_the_quotes_of_others() {
        use TokenKind::*;
        assert_eq!(
            kinds("[it's], `a;``b`, d[1]"),
            [
                (QuotedName, "[it's]"),
                (Symbol, ","),
                (QuotedName, "`a;``b`"),
                (Symbol, ","),
                (Word, "d"),
                (Symbol, "["),
                (Number, "1"),
                (Symbol, "]"),
            ]
        );
    }

    proptest! {
        #[test]
        fn tokens_together_are_the_text(sql in r#"[-a'"$/*\\:;.0-9é \n\[\]`]{0,40}"#) {
            let joined: String = tokens(&sql).map(|t| t.text).collect();
            prop_assert_eq!(joined, sql);
        }
    }
}
