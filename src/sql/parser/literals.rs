//! A fast path for VALUES: reads rows of literals directly from the text, as they make up most of a long
//! INSERT.
//!
//! The result is the same as through tokens, places included, and already normalised. At anything but a plain
//! literal this path gives up, and the whole statement goes through the tokens.

use sqlparser::ast::{Expr, Ident, UnaryOperator, Value};
use sqlparser::tokenizer::{Location, Span};

use crate::sql::lex::TextPiece;
use crate::sql::refused;

/// Longer numbers may be out of range; the tokens decide.
const DIGITS_MAX: usize = 38;

/// An INSERT, split at its rows.
pub(super) struct LiteralInsert<'a> {
    /// The text up to VALUES, inclusive.
    pub(super) head: TextPiece<'a>,
    pub(super) rows: Vec<Vec<Expr>>,
    /// The text after the rows.
    pub(super) tail: TextPiece<'a>,
}

/// Reads an INSERT; `None` if it is none, or its rows are not all literals.
pub(super) fn read(sql: &str) -> Option<LiteralInsert<'_>> {
    let first = sql.trim_start().get(..6)?;
    if !["insert", "upsert", "replac"].iter().any(|word| first.eq_ignore_ascii_case(word)) {
        return None;
    }
    let mut text = LiteralScanner { sql, at: 0, place: Location { line: 1, column: 1 } };
    text.skip_to_rows()?;
    let head = TextPiece::whole(&sql[..text.at]);
    let mut rows: Vec<Vec<Expr>> = Vec::new();
    loop {
        rows.push(text.row(rows.last().map_or(0, Vec::len))?);
        text.skip_blanks();
        if !text.takes(b',') {
            break;
        }
    }
    let tail = TextPiece { start: text.place, text: &sql[text.at..] };
    Some(LiteralInsert { head, rows, tail })
}

/// The text, and the position reached.
struct LiteralScanner<'a> {
    sql: &'a str,
    at: usize,
    place: Location,
}

impl<'a> LiteralScanner<'a> {
    fn peek(&self) -> Option<u8> {
        self.sql.as_bytes().get(self.at).copied()
    }

    /// Skips bytes of one line, which must be ASCII.
    fn skip(&mut self, bytes: usize) {
        self.at += bytes;
        self.place.column += bytes as u64;
    }

    fn takes(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        if is_next {
            self.skip(1);
        }
        is_next
    }

    fn skip_blanks(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b'\n' => {
                    self.at += 1;
                    self.place = Location { line: self.place.line + 1, column: 1 };
                }
                b' ' | b'\t' | b'\r' => self.skip(1),
                _ => return,
            }
        }
    }

    /// The letters, digits and `_` at the current position.
    fn word(&self) -> &'a str {
        let rest = &self.sql[self.at..];
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        &rest[..rest.bytes().take_while(|byte| is_part(byte)).count()]
    }

    /// Skips to the end of VALUES, if only names and a list of names come before it.
    fn skip_to_rows(&mut self) -> Option<()> {
        let mut depth = 0;
        loop {
            self.skip_blanks();
            let word = self.word();
            self.skip(word.len());
            match self.peek()? {
                _ if depth == 0 && word.eq_ignore_ascii_case("values") => return Some(()),
                _ if !word.is_empty() => {}
                b'(' if depth == 0 => {
                    depth += 1;
                    self.skip(1);
                }
                b')' if depth == 1 => {
                    depth -= 1;
                    self.skip(1);
                }
                b'.' | b',' => self.skip(1),
                quote @ (b'"' | b'`' | b'[') => {
                    let end = if quote == b'[' { ']' } else { char::from(quote) };
                    let name = self.sql[self.at + 1..].split(end).next()?;
                    if !name.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
                        return None;
                    }
                    self.skip(name.len() + 2);
                    self.peek()?;
                }
                _ => return None,
            }
        }
    }

    /// `(value, ...)`; `expected`: the likely number of values.
    fn row(&mut self, expected: usize) -> Option<Vec<Expr>> {
        self.skip_blanks();
        if !self.takes(b'(') {
            return None;
        }
        let mut row = Vec::with_capacity(expected);
        loop {
            self.skip_blanks();
            row.push(self.value()?);
            self.skip_blanks();
            if self.takes(b')') {
                return Some(row);
            }
            if !self.takes(b',') {
                return None;
            }
        }
    }

    fn value(&mut self) -> Option<Expr> {
        let start = self.place;
        match self.peek()? {
            b'\'' => {
                let text = self.quoted()?;
                let value = match refused::prints_otherwise(&text, '\'') {
                    true => Value::EscapedStringLiteral(text),
                    false => Value::SingleQuotedString(text),
                };
                Some(self.literal(value, start))
            }
            b'0'..=b'9' => self.number(),
            b'-' => {
                self.skip(1);
                let expr = Box::new(self.number()?);
                Some(Expr::UnaryOp { op: UnaryOperator::Minus, expr })
            }
            _ => {
                let word = self.word();
                self.skip(word.len());
                if word.eq_ignore_ascii_case("default") {
                    let span = Span::new(start, self.place);
                    return Some(Expr::Identifier(Ident { value: word.to_owned(), quote_style: None, span }));
                }
                let constants =
                    [("null", Value::Null), ("true", Value::Boolean(true)), ("false", Value::Boolean(false))];
                let constant = constants.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name));
                constant.map(|(_, value)| self.literal(value, start))
            }
        }
    }

    fn literal(&self, value: Value, start: Location) -> Expr {
        Expr::Value(value.with_span(Span::new(start, self.place)))
    }

    /// `12` or `1.25`
    fn number(&mut self) -> Option<Expr> {
        let (start, from) = (self.place, self.at);
        self.digits()?;
        if self.takes(b'.') {
            self.digits()?;
        }
        // Something else, such as 1e5, goes on here.
        let ends = matches!(self.peek()?, b',' | b')' | b' ' | b'\t' | b'\r' | b'\n');
        let digits = self.sql[from..self.at].to_owned();
        (ends && digits.len() <= DIGITS_MAX).then(|| self.literal(Value::Number(digits, false), start))
    }

    fn digits(&mut self) -> Option<()> {
        let count = self.sql.as_bytes()[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.skip(count);
        (count > 0).then_some(())
    }

    /// The text in single quotes; a doubled quote stands for one.
    fn quoted(&mut self) -> Option<String> {
        let mut text = String::new();
        self.skip(1);
        loop {
            let rest = &self.sql[self.at..];
            let len = rest.bytes().position(|byte| byte == b'\'')?;
            text.push_str(&rest[..len]);
            self.pass(&rest[..len]);
            self.skip(1);
            if !self.takes(b'\'') {
                return Some(text);
            }
            text.push('\'');
        }
    }

    /// Skips any text.
    fn pass(&mut self, text: &str) {
        self.at += text.len();
        match text.rfind('\n') {
            None => self.place.column += text.chars().count() as u64,
            Some(last) => {
                self.place.line += text.bytes().filter(|byte| *byte == b'\n').count() as u64;
                self.place.column = 1 + text[last + 1..].chars().count() as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::read;
    use crate::error::Result;
    use crate::sql::ast::Statement;
    use crate::sql::parser::{parse, parse_parts};

    fn fragment() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            "1",
            "-1",
            "- 1",
            "12.50",
            "-0.5",
            "1.",
            ".5",
            "1e5",
            "1_000",
            "0x1F",
            "'it''s'",
            "'a\\'",
            "'\\'''",
            "'ü\n'",
            "''",
            "''''",
            "'a' 'b'",
            "E'\\n'",
            "NULL",
            "null",
            "TRUE",
            "False",
            "default",
            "DEFAULT",
            "\"default\"",
            "x",
            "$1",
            "?",
            "1 + 1",
            "(1)",
            "DATE '2024-01-02'",
            "1::TEXT",
            "X'00'",
            "'long",
            "1/* c */",
            "99999999999999999999",
        ])
    }

    fn statement() -> impl Strategy<Value = String> {
        let blank = || prop::sample::select(vec!["", " ", "\n", "  \r\n\t", "-- c\n"]);
        let plain = || prop::sample::select(vec!["1", "'two'", "NULL", "-3.5", "true"]);
        let value =
            (prop_oneof![6 => plain(), 1 => fragment()], blank()).prop_map(|(v, b)| format!("{v}{b}"));
        let row = prop::collection::vec(value, 1..4).prop_map(|values| format!("({})", values.join(", ")));
        let rows =
            (prop::collection::vec(row, 1..4), blank()).prop_map(|(rows, b)| rows.join(&format!(",{b}")));
        let head = prop::sample::select(vec![
            "INSERT INTO t VALUES",
            "insert into t (a, \"b c\") values ",
            "UPSERT INTO s.t(a)VALUES",
            "INSERT INTO values VALUES ",
            "INSERT INTO \"values\" VALUES",
            "INSERT INTO t AS x (values) VALUES\n",
            "INSERT INTO t OVERRIDING USER VALUE VALUES",
            "INSERT INTO \"ü\" VALUES",
            "INSERT INTO t SELECT * FROM (VALUES",
            "INSERT INTO t -- c\n VALUES",
            "INSERT INTO t VALUES VALUES",
            "  INSERT INTO t DEFAULT VALUES",
            "INSERT t VALUES",
            "INSERT OR REPLACE INTO t VALUES",
        ]);
        let tail = prop::sample::select(vec![
            "",
            ";",
            " ; ;",
            " ON CONFLICT DO NOTHING",
            "\n  ON CONFLICT (a) DO UPDATE SET a = excluded.a RETURNING *",
            ")",
            ", ",
            " RETURNING a -- c",
            " UNION SELECT 1",
            "(1)",
            " x",
            " RETURNING ?",
            " RETURNING 'ü' || \n oops oops",
        ]);
        (head, rows, tail).prop_map(|(head, rows, tail)| format!("{head}{rows}{tail}"))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

        #[test]
        fn what_is_read_without_tokens_is_what_is_read_with_them(sql in statement()) {
            let shown = |parsed: Result<Statement>| match parsed {
                Ok(statement) => format!("{statement:?}"),
                Err(e) => e.to_string(),
            };
            prop_assert_eq!(shown(parse(&sql)), shown(parse_parts(&sql, None)), "{}", sql);
        }
    }

    #[test]
    fn plain_rows_are_read_and_others_left() {
        for sql in [
            "INSERT INTO t VALUES (1, 'two', NULL, -3.5, true, DEFAULT)",
            "upsert into \"t u\" (a, b)\nvalues\n(1, 'it''s'),\n (2, 'ü') ;",
            "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING RETURNING *",
        ] {
            let literals = read(sql).unwrap_or_else(|| panic!("{sql}"));
            parse_parts(sql, Some(literals)).unwrap();
        }
        assert!(read(&format!("INSERT INTO t VALUES ({})", "9".repeat(39))).is_none());
        for sql in [
            "INSERT INTO t VALUES ($1)",
            "INSERT INTO t VALUES (1 + 1)",
            "INSERT INTO t VALUES (1), (now())",
            "SELECT 1",
            "INSERT",
            "INSERT INTO t VALUES ('open",
        ] {
            assert!(read(sql).is_none(), "{sql}");
        }
    }
}
