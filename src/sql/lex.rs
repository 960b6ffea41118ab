//! The lexer: SQL text to tokens with places, and places back to text and [`Span`]s.
//!
//! Tokens are sqlparser's, without blanks and comments (except hints), so that a token's neighbour is the
//! next one. `?` parameters are numbered here, and statements [nested](nesting::too_deep) too deeply for the
//! stack are refused here.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Whitespace, Word};

use crate::error::{Error, Result, Span, sqlstate};
use crate::sql::dialect::RowkeyDialect;
use crate::sql::{hints, nesting, quotes, refused, shape};

/// The text of one statement, and the offsets of its lines.
#[derive(Debug)]
pub(super) struct StatementText<'a> {
    sql: &'a str,
    /// Byte offset at which each line starts.
    lines: Vec<usize>,
    ascii: bool,
}

/// A part of the text.
#[derive(Clone, Copy)]
pub(super) struct TextPiece<'a> {
    /// Where it begins.
    pub(super) start: Location,
    pub(super) text: &'a str,
}

impl<'a> TextPiece<'a> {
    /// All of a text.
    pub(super) fn whole(text: &'a str) -> Self {
        TextPiece { start: Location { line: 1, column: 1 }, text }
    }

    /// Converts a place in the piece to one in the whole text.
    fn place(&self, at: Location) -> Location {
        match at.line {
            // No place.
            0 => at,
            1 => Location { line: self.start.line, column: self.start.column + at.column - 1 },
            line => Location { line: self.start.line + line - 1, column: at.column },
        }
    }
}

/// Bytes of a name, at most. Table names have a stricter limit elsewhere, but an expression's text becomes
/// the name of its column.
const WORD_BYTES_MAX: usize = 65_536;

/// Makes one text of `'a'`, a line break and `'b'`.
fn join_texts(tokens: &mut Vec<TokenWithSpan>) {
    tokens.dedup_by(|next, text| match (&mut text.token, &next.token) {
        (
            Token::SingleQuotedString(all) | Token::EscapedStringLiteral(all),
            Token::SingleQuotedString(more),
        ) if next.span.start.line > text.span.end.line => {
            all.push_str(more);
            text.span.end = next.span.end;
            true
        }
        _ => false,
    });
}

impl<'a> StatementText<'a> {
    pub(super) fn new(sql: &'a str) -> Self {
        let starts = sql.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1);
        StatementText { sql, lines: std::iter::once(0).chain(starts).collect(), ascii: sql.is_ascii() }
    }

    /// The statement's tokens, from these pieces of it. Errors: SYNTAX for an invalid token, an unclosed
    /// quote or comment, `1x`, `?` mixed with `$n`; LIMIT for too deep nesting.
    pub(super) fn tokens(
        &self,
        dialect: &RowkeyDialect,
        pieces: &[TextPiece<'_>],
    ) -> Result<Vec<TokenWithSpan>> {
        let mut tokens = Vec::new();
        for piece in pieces {
            let first = tokens.len();
            let text = quotes::in_double_quotes(piece.text);
            let read = Tokenizer::new(dialect, &text).tokenize_with_location_into_buf(&mut tokens);
            // The token that failed begins after the last good one.
            let behind = tokens[first..].last().map_or(Location { line: 1, column: 1 }, |t| t.span.end);
            read.map_err(|e| self.token_error(&e.message, piece.place(e.location), piece.place(behind)))?;
            for TokenWithSpan { span, .. } in &mut tokens[first..] {
                (span.start, span.end) = (piece.place(span.start), piece.place(span.end));
            }
        }
        self.no_odd_signs(&tokens)?;
        self.plain_numbers(&mut tokens)?;
        self.keep_hints(&mut tokens)?;
        join_texts(&mut tokens);
        // sqlparser would print such a text with one quote less, as a value and as an alias; E'..' is safe,
        // and is no alias.
        for TokenWithSpan { token, .. } in &mut tokens {
            if let Token::SingleQuotedString(text) = token
                && refused::prints_otherwise(text, '\'')
            {
                *token = Token::EscapedStringLiteral(std::mem::take(text));
            }
        }
        self.number_parameters(&mut tokens)?;
        let is_long =
            |t: &&TokenWithSpan| matches!(&t.token, Token::Word(word) if word.value.len() > WORD_BYTES_MAX);
        if let Some(word) = tokens.iter().find(is_long) {
            let Location { line, column } = word.span.start;
            return Err(Error::invalid("this name is too long")
                .why(format!("the most is {WORD_BYTES_MAX} bytes"))
                .state(sqlstate::LIMIT)
                .at(Span { line: line as u32, column: column as u32, len: 1 }));
        }
        // Statements are printed and parsed again; sqlparser's printing would change this name.
        let is_odd = |t: &&TokenWithSpan| {
            matches!(&t.token, Token::Word(Word { value, quote_style: Some(quote), .. })
                if refused::prints_otherwise(value, *quote))
        };
        if let Some(word) = tokens.iter().find(is_odd) {
            return Err(Error::unsupported(
                "a name cannot have two quotes side by side, nor one behind a backslash",
            )
            .state(sqlstate::SYNTAX)
            .at(self.span(word.span.start, word.span.end)));
        }
        if let Some(token) = nesting::too_deep(&tokens) {
            return Err(shape::too_deep().at(self.span(token.span.start, token.span.end)));
        }
        Ok(tokens)
    }

    /// Errors: a name without quotes has a sign that [stands for another](refused::odd_sign).
    fn no_odd_signs(&self, tokens: &[TokenWithSpan]) -> Result<()> {
        if self.ascii {
            return Ok(());
        }
        for TokenWithSpan { token, span } in tokens {
            if let Token::Word(Word { value, quote_style: None, .. }) = token
                && let Some((chars, error)) = refused::odd_sign(value)
            {
                let Location { line, column } = span.start;
                return Err(error.at(Span { line: line as u32, column: (column + chars) as u32, len: 1 }));
            }
        }
        Ok(())
    }

    /// Removes `_` from `1_000`. Errors: a number followed directly by a word, which would become its alias.
    fn plain_numbers(&self, tokens: &mut [TokenWithSpan]) -> Result<()> {
        for at in 0..tokens.len() {
            let Token::Number(digits, _) = &mut tokens[at].token else { continue };
            digits.retain(|c| c != '_');
            let from = tokens[at].span.start;
            if let Some(TokenWithSpan { token: Token::Word(word), span }) = tokens.get(at + 1)
                && word.quote_style.is_none()
            {
                return Err(Error::invalid(format!("\"{}\" is not a number", self.text(from, span.end)))
                    .why(format!("\"{}\" follows its digits", word.value))
                    .hint("put a blank after the number, or a name into double quotes")
                    .state(sqlstate::SYNTAX)
                    .at(self.span(from, span.end)));
            }
        }
        Ok(())
    }

    /// Drops blanks and comments, except hints.
    fn keep_hints(&self, tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
        // The previous word, if it is the last token, and whether a hint may follow it.
        let mut behind = (Keyword::NoKeyword, false);
        let mut misplaced = None;
        tokens.retain_mut(|t| {
            match &mut t.token {
                Token::Whitespace(Whitespace::MultiLineComment(comment)) if comment.starts_with('+') => {
                    if !behind.1 {
                        misplaced.get_or_insert(t.span);
                    }
                    *comment = hints::marked(comment, t.span.start.line, t.span.start.column);
                    return behind.1;
                }
                Token::Whitespace(_) => return false,
                Token::Word(word) => behind = (word.keyword, takes_hints(behind.0, word.keyword)),
                _ => behind = (Keyword::NoKeyword, false),
            }
            true
        });
        match misplaced {
            None => Ok(()),
            Some(span) => Err(Error::invalid("a hint stands right behind SELECT, UPDATE or DELETE")
                .hint("a comment that is not a hint does not start with +")
                .state(sqlstate::SYNTAX)
                .at(self.span(span.start, span.end))),
        }
    }

    /// The text from one place up to another.
    pub(super) fn text(&self, from: Location, to: Location) -> &'a str {
        self.sql.get(self.offset(from)..self.offset(to)).unwrap_or_default()
    }

    /// The place of the text between two places; of several lines, only the first.
    pub(super) fn span(&self, from: Location, to: Location) -> Span {
        let first_line = self.text(from, to).lines().next().unwrap_or_default();
        let len = first_line.trim_end().chars().count().max(1);
        Span { line: from.line as u32, column: from.column as u32, len: len as u32 }
    }

    fn offset(&self, at: Location) -> usize {
        let Some(&start) = self.lines.get((at.line as usize).wrapping_sub(1)) else { return self.sql.len() };
        let chars = (at.column as usize).saturating_sub(1);
        if self.ascii {
            return (start + chars).min(self.sql.len());
        }
        self.sql[start..].char_indices().nth(chars).map_or(self.sql.len(), |(at, _)| start + at)
    }

    /// `at`: where the tokenizer stopped; `from`: where the token begins.
    fn token_error(&self, message: &str, at: Location, from: Location) -> Error {
        if message.contains("encoded string literal")
            && let Some(error) = unreadable_escape(&self.sql[self.offset(at)..])
        {
            return error.at(self.span(at, at));
        }
        let is_dollar_quoted = message.contains("dollar");
        let what = match message {
            m if m.contains("string literal") => "this text has no closing quote".to_owned(),
            m if m.contains("multi-line comment") => "this comment has no closing */".to_owned(),
            m if m.contains("close delimiter") => "this quoted name has no closing \"".to_owned(),
            _ if is_dollar_quoted => "this $-quoted text has no closing delimiter".to_owned(),
            m => format!("cannot read this: {}", lower_first(m)),
        };
        let at = if is_dollar_quoted || message.contains("multi-line comment") { from } else { at };
        let mut error = Error::invalid(what).at(self.span(at, at)).state(sqlstate::SYNTAX);
        let lines = self.sql.lines().count().saturating_sub(at.line as usize - usize::from(at.line > 0));
        if lines > 1 {
            error =
                error.why(format!("it begins here, and everything behind it, {lines} lines, belongs to it"));
        }
        match message.contains("string literal") {
            true => error.hint("a quote inside text is doubled: 'it''s'"),
            false if is_dollar_quoted => error.hint("end it as it begins: $$it's$$, or $tag$it's$tag$"),
            false => error,
        }
    }

    /// Numbers `?` and `?n` as `$n`, left to right.
    fn number_parameters(&self, tokens: &mut [TokenWithSpan]) -> Result<()> {
        let (mut anonymous, mut numbered) = (0, false);
        for TokenWithSpan { token, span } in tokens {
            let Token::Placeholder(name) = token else { continue };
            let next = match name.strip_prefix('?') {
                Some("") => {
                    anonymous += 1;
                    Some(format!("${anonymous}"))
                }
                Some(number) => Some(format!("${number}")),
                None => None,
            };
            numbered |= name != "?";
            if numbered && anonymous > 0 {
                return Err(Error::invalid("? and numbered parameters in one statement")
                    .why("it would not be clear which value a ? takes")
                    .hint("write $1, $2, ... throughout, or ? throughout")
                    .at(self.span(span.start, span.end))
                    .state(sqlstate::SYNTAX));
            }
            if let Some(next) = next {
                *name = next;
            }
        }
        Ok(())
    }
}

/// May a hint follow `word`, which itself follows `before`? UPDATE and DELETE start a statement, except in DO
/// UPDATE and the like.
fn takes_hints(before: Keyword, word: Keyword) -> bool {
    match word {
        Keyword::SELECT => true,
        Keyword::UPDATE | Keyword::DELETE => !matches!(before, Keyword::DO | Keyword::FOR | Keyword::ON),
        _ => false,
    }
}

/// sqlparser's message, to be continued in ours.
pub(super) fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

/// The error for the first escape in a text `E'..'` that stands for no character; `None` if the text has no
/// end. sqlparser gives one message for both.
fn unreadable_escape(sql: &str) -> Option<Error> {
    let mut rest = sql.strip_prefix(['E', 'e'])?.strip_prefix('\'')?;
    let mut unreadable = None;
    loop {
        rest = &rest[rest.find(['\'', '\\'])?..];
        let len = match rest.strip_prefix("''") {
            Some(_) => 2,
            None if rest.starts_with('\'') => return unreadable,
            None => {
                let escape = &rest[..escape_len(rest)?];
                unreadable = unreadable.or_else(|| refused_escape(escape));
                escape.len()
            }
        };
        rest = &rest[len..];
    }
}

/// Bytes of the escape that `text` begins with.
fn escape_len(text: &str) -> Option<usize> {
    let kind = text[1..].chars().next()?;
    let (before, digits, radix) = match kind {
        'x' => (2, 2, 16),
        'u' => (2, 4, 16),
        'U' => (2, 8, 16),
        '0'..='7' => (1, 3, 8),
        other => return Some(1 + other.len_utf8()),
    };
    Some(before + text[before..].chars().take(digits).take_while(|c| c.is_digit(radix)).count())
}

fn refused_escape(escape: &str) -> Option<Error> {
    let (digits, radix) = match escape.as_bytes().get(1)? {
        b'x' if escape.len() == 2 => return None,
        b'x' | b'u' | b'U' => (&escape[2..], 16),
        b'0'..=b'7' => (&escape[1..], 8),
        _ => return None,
    };
    let is_byte = !escape.starts_with("\\u") && !escape.starts_with("\\U");
    let whole = escape.starts_with("\\u") && digits.len() == 4 || digits.len() == 8 || is_byte;
    let error = Error::invalid(format!("{escape} cannot stand in E'..'")).state(sqlstate::SYNTAX);
    // As in PostgreSQL, of a byte the lowest eight bits count.
    match u32::from_str_radix(digits, radix).map(|code| if is_byte { code & 0xff } else { code }) {
        Ok(0) if whole => Some(error.why("it is the NUL character").hint("'a' || chr(0) || 'b' has one")),
        Ok(128..) if is_byte => {
            Some(error.why("a byte above 7f is no character").hint("write the character itself, or \\u00e9"))
        }
        Ok(code) if whole && char::from_u32(code).is_some() => None,
        _ => Some(error.why("it is no character").hint("\\u has 4 hex digits, \\U has 8")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_spans_by_place() {
        let source = StatementText::new("SELECT 'é',\n  x + 1");
        let at = |line, column| Location { line, column };
        assert_eq!(source.text(at(1, 8), at(1, 11)), "'é'");
        assert_eq!(source.text(at(1, 12), at(2, 4)), "\n  x");
        assert_eq!(source.span(at(2, 3), at(2, 8)), Span { line: 2, column: 3, len: 5 });
        assert_eq!(source.text(at(9, 1), at(9, 2)), "");
    }
}
