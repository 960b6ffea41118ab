//! The parser: text of one statement to [`Statement`].
//!
//! [`parse`] makes tokens and chooses a reader by the first word. Statements are read here, word by word;
//! their queries, expressions and types are read by sqlparser, over the same tokens. Finally the statement is
//! put into the form the engine expects ([`rewrite::normalise`]).
//!
//! Every error points at a token: ours at the current one, sqlparser's at the place in its message.

mod admin;
mod alter;
mod copy;
mod ddl;
mod design;
mod dml;
mod dumps;
mod errors;
mod hbase;
mod literals;
mod pieces;
mod references;
#[cfg(test)]
mod tests;
mod types;

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{Expr, Ident, ObjectName, Query, SetExpr, TableFactor, TableWithJoins, With};
use sqlparser::parser::Parser as SqlParser;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Word};

pub use errors::{STATEMENTS, looks_like_statement};
pub(super) use pieces::text_limit;
pub use pieces::{
    column_type, names_column, parse_expr, parse_query, rename_column, type_instead, unqualified,
};

pub use crate::value::is_reserved;

use super::ast::{InsertSource, Statement};
use super::dialect::RowkeyDialect;
use super::lex::{StatementText, TextPiece};
use super::nesting::PARSED_DEPTH_MAX;
use super::{as_of, rewrite, shape, star};
use crate::error::{Result, Span, sqlstate};
use crate::value::Value;
use literals::LiteralInsert;

/// Parses one statement, with or without a `;`. Errors: SYNTAX, with the place; unsupported statements;
/// LIMIT for one nested too deeply.
pub fn parse(sql: &str) -> Result<Statement> {
    // If the fast path fails, parse from tokens, for the error message.
    let read = literals::read(sql).and_then(|literals| parse_parts(sql, Some(literals)).ok());
    read.map_or_else(|| parse_parts(sql, None), Ok)
}

/// Is it a COPY FROM STDIN, whose rows follow it? `in_script`: also if it is refused, or its rows would be taken for
/// statements.
pub fn reads_stdin(sql: &str, in_script: bool) -> bool {
    let named =
        |word: &str| sql.as_bytes().windows(word.len()).any(|w| w.eq_ignore_ascii_case(word.as_bytes()));
    named("copy")
        && named("stdin")
        && match parse(sql) {
            Ok(Statement::Copy(copy)) => !copy.to && copy.file.path.is_none(),
            Ok(_) => false,
            Err(_) => in_script && begins_as_copy_in(sql),
        }
}

/// `COPY .. FROM STDIN`, whatever else it says.
fn begins_as_copy_in(sql: &str) -> bool {
    let tokens = StatementText::new(sql).tokens(&RowkeyDialect::default(), &[TextPiece::whole(sql)]);
    let word = |token: TokenWithSpan| match token.token {
        Token::Whitespace(_) => None,
        Token::Word(word) => Some(word.value.to_lowercase()),
        _ => Some(String::new()),
    };
    let words: Vec<String> = tokens.unwrap_or_default().into_iter().filter_map(word).collect();
    words.first().is_some_and(|first| first == "copy")
        && words.windows(2).any(|pair| pair == ["from", "stdin"])
}

/// `literals`: the rows, if the fast path has read them.
fn parse_parts(sql: &str, literals: Option<LiteralInsert<'_>>) -> Result<Statement> {
    recursive::set_minimum_stack_size(STACK_KEPT);
    let source = StatementText::new(sql);
    let (pieces, rows) = match literals {
        Some(LiteralInsert { head, rows, tail }) => (vec![head, tail], Some(rows)),
        None => (vec![TextPiece::whole(sql)], None),
    };
    let mut tokens = source.tokens(&RowkeyDialect::default(), &pieces)?;
    let as_of = as_of::spell(&mut tokens);
    star::respell(&mut tokens);
    let dialect = RowkeyDialect::for_tokens(tokens.len(), as_of);
    let inner = SqlParser::new(&dialect)
        .with_recursion_limit(8 * PARSED_DEPTH_MAX)
        .with_tokens_with_locations(tokens);
    let mut parser = Parser { inner, source: &source, has_rows: rows.is_some() };
    let mut statement = parser.statement()?;
    parser.end()?;
    if parser.has_rows {
        return Err(parser.expected("VALUES"));
    }
    rewrite::normalise(&mut statement)?;
    shape::check_depth(&statement)?;
    // These rows are normalised already.
    if let (Statement::Insert(insert), Some(rows)) = (&mut statement, rows) {
        insert.source = InsertSource::Values(rows);
    }
    Ok(statement)
}

/// Bytes of stack that sqlparser finds at each level of nesting, or else moves to a new stack. Its own 128
/// KiB are less than `((t JOIN u ...` needs between two checks, in a debug build. The setting is global to
/// the process; DataFusion's planner keeps as much.
const STACK_KEPT: usize = 512 << 10;

/// A position in the tokens of one statement.
struct Parser<'a> {
    inner: SqlParser<'a>,
    source: &'a StatementText<'a>,
    /// The rows after VALUES have been read by the fast path and are not among the tokens.
    has_rows: bool,
}

impl Parser<'_> {
    fn statement(&mut self) -> Result<Statement> {
        if self.peek_token(&Token::LParen) {
            return Ok(Statement::Query(self.query()?));
        }
        if let Some(setting) = self.foreign_key_setting() {
            return Ok(setting);
        }
        if let Some(counters) = self.counters()? {
            return Ok(counters);
        }
        if let Some(nothing) = self.of_dump() {
            return Ok(nothing);
        }
        let word = self.peek_word().map(|word| word.value.to_ascii_uppercase());
        match word.as_deref().unwrap_or_default() {
            "SELECT" | "VALUES" => Ok(Statement::Query(self.query()?)),
            "WITH" => self.with(),
            "TABLE" => self.query().map(Statement::Query),
            "INSERT" | "UPSERT" | "REPLACE" => self.insert(),
            "UPDATE" => self.update(),
            "DELETE" => self.delete(),
            "CREATE" => self.create(),
            "DROP" => self.drop(),
            "ALTER" => self.alter(),
            "TRUNCATE" => self.truncate(),
            "EXPLAIN" => self.explain(),
            "ANALYZE" | "ANALYSE" => self.analyze(),
            "PURGE" => self.purge(),
            "BEGIN" | "START" => self.begin(),
            "COMMIT" | "END" => self.commit(),
            "ROLLBACK" | "ABORT" => self.rollback(),
            "SAVEPOINT" => self.savepoint(),
            "RELEASE" => self.release(),
            "PREPARE" => self.prepare(),
            "EXECUTE" => self.execute(),
            "DEALLOCATE" => self.deallocate(),
            "COPY" => self.copy(),
            "SHOW" => self.show(),
            "DESCRIBE" | "DESC" => self.describe(),
            "CHECK" => self.check(),
            "BACKUP" => self.backup(),
            "LINT" => self.lint(),
            "SIMULATE" => self.simulate(),
            "ADVISE" => self.advise(),
            "REPAIR" => self.repair(),
            "SET" => self.set(),
            "RESET" => self.reset(),
            other => Err(self.not_a_statement(other)),
        }
    }

    /// Reads WITH and the query or the writing statement after it.
    fn with(&mut self) -> Result<Statement> {
        self.expect_word("WITH")?;
        let with_token = AttachedToken(self.inner.get_current_token().clone());
        let recursive = self.word("RECURSIVE");
        let cte_tables = self.inner.parse_comma_separated(SqlParser::parse_cte);
        let with = With { with_token, recursive, cte_tables: self.lift(cte_tables)? };
        if ["INSERT", "UPSERT", "REPLACE", "UPDATE", "DELETE"].iter().any(|word| self.peek_words(&[word])) {
            let mut statement = self.statement()?;
            crate::sql::with::define(&with, &mut statement)?;
            return Ok(statement);
        }
        if self.peek_words(&["WITH"]) {
            return Err(self.expected("SELECT"));
        }
        let mut query = self.query()?;
        query.with = Some(with);
        Ok(Statement::Query(query))
    }

    /// Only semicolons may follow.
    fn end(&mut self) -> Result<()> {
        if self.token(&Token::SemiColon) {
            while self.token(&Token::SemiColon) {}
            if !self.peek_token(&Token::EOF) {
                return Err(self.error("only one statement can stand here").hint("send one after the other"));
            }
        }
        if self.peek_token(&Token::EOF) {
            return Ok(());
        }
        for clause in ["GROUP", "ORDER"] {
            if !self.peek_words(&[clause, "BY"]) && self.word(clause) {
                return Err(self.expected("BY"));
            }
        }
        Err(self.expected_end())
    }

    /// `TABLE t`, which is `SELECT * FROM t`.
    fn whole_table(&mut self) -> Result<Box<Query>> {
        let table = self.object_name("the name of a table")?;
        let mut query = parse_query("SELECT * FROM t")?;
        if let SetExpr::Select(select) = &mut *query.body
            && let [TableWithJoins { relation: TableFactor::Table { name, .. }, .. }] = &mut select.from[..]
        {
            *name = ObjectName::from(vec![table]);
        }
        Ok(Box::new(query))
    }

    // What sqlparser reads.

    fn query(&mut self) -> Result<Box<Query>> {
        if self.word("TABLE") {
            return self.whole_table();
        }
        let query = self.inner.parse_query();
        self.lift(query)
    }

    fn expr(&mut self) -> Result<Expr> {
        let expr = self.inner.parse_expr();
        self.lift(expr)
    }

    /// An expression with its text and place.
    fn expr_text(&mut self) -> Result<(Expr, String, Span)> {
        let from = self.here();
        let expr = self.expr()?;
        Ok((expr, self.text_since(from), self.span_since(from)))
    }

    // Tokens.

    fn peek(&self) -> &TokenWithSpan {
        self.inner.peek_token_ref()
    }

    fn peek_token(&self, token: &Token) -> bool {
        self.peek().token == *token
    }

    /// The next token, if it is a word without quotes.
    fn peek_word(&self) -> Option<&Word> {
        match &self.peek().token {
            Token::Word(word) if word.quote_style.is_none() => Some(word),
            _ => None,
        }
    }

    /// The token behind the `n` next ones.
    fn nth(&self, n: usize) -> &Token {
        &self.inner.peek_nth_token_ref(n).token
    }

    /// That token is this word.
    fn nth_is(&self, n: usize, expected: &str) -> bool {
        matches!(self.nth(n), Token::Word(word) if word.value.eq_ignore_ascii_case(expected))
    }

    /// Are the next tokens these words?
    fn peek_words(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(n, expected)| {
            matches!(self.nth(n),
                Token::Word(Word { value, quote_style: None, .. }) if value.eq_ignore_ascii_case(expected))
        })
    }

    /// Takes the words, if all of them come next.
    fn words(&mut self, words: &[&str]) -> bool {
        let here = self.peek_words(words);
        if here {
            words.iter().for_each(|_| self.inner.advance_token());
        }
        here
    }

    fn word(&mut self, word: &str) -> bool {
        self.words(&[word])
    }

    fn token(&mut self, token: &Token) -> bool {
        self.inner.consume_token(token)
    }

    fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.word(word) { Ok(()) } else { Err(self.expected(word)) }
    }

    fn expect_token(&mut self, token: Token) -> Result<()> {
        if self.token(&token) { Ok(()) } else { Err(self.expected(&format!("\"{token}\""))) }
    }

    /// `IF NOT EXISTS`
    fn if_not_exists(&mut self) -> bool {
        self.words(&["IF", "NOT", "EXISTS"])
    }

    /// `IF EXISTS`
    fn if_exists(&mut self) -> bool {
        self.words(&["IF", "EXISTS"])
    }

    /// `)` after a list.
    fn end_of_list(&mut self) -> Result<()> {
        if self.token(&Token::RParen) { Ok(()) } else { Err(self.expected("\",\" or \")\"")) }
    }

    // Parts that many statements share.

    /// A name: quoted, or a word that is not reserved.
    fn name(&mut self, what: &str) -> Result<Ident> {
        match &self.peek().token {
            Token::Word(word) if word.quote_style.is_some() && !word.value.is_empty() => {}
            Token::Word(word) if word.quote_style.is_none() && !is_reserved(&word.value) => {}
            Token::Word(word) if word.quote_style.is_none() => {
                let hint = format!("{} is a reserved word: as a name, write \"{}\"", word.value, word.value);
                return Err(self.expected(what).hint(hint));
            }
            Token::SingleQuotedString(text) => {
                let hint = format!("names stand in double quotes: \"{text}\"");
                return Err(self.expected(what).hint(hint));
            }
            _ => return Err(self.expected(what)),
        }
        let name = self.inner.parse_identifier();
        self.lift(name)
    }

    /// The name of a table, view or index, perhaps after `public.` or `main.`.
    fn object_name(&mut self, what: &str) -> Result<Ident> {
        let from = self.here();
        let mut parts = vec![self.name(what)?];
        while self.token(&Token::Period) {
            parts.push(self.name(what)?);
        }
        super::last_part(&parts).map_err(|e| e.at(self.span_since(from)))
    }

    /// `(a, b)`
    fn names(&mut self, what: &str) -> Result<Vec<Ident>> {
        self.expect_token(Token::LParen)?;
        let names = self.list(|p| p.name(what))?;
        self.end_of_list()?;
        Ok(names)
    }

    /// One or more, between commas.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.token(&Token::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// `[AS] alias`, where the words of `stop` do not count as an alias.
    fn alias(&mut self, stop: &[&str]) -> Result<Option<Ident>> {
        let explicit = self.word("AS");
        let is_name = match &self.peek().token {
            Token::Word(Word { value, quote_style: None, .. }) => {
                !is_reserved(value) && !stop.iter().any(|word| value.eq_ignore_ascii_case(word))
            }
            Token::Word(_) => true,
            _ => false,
        };
        if explicit || is_name { self.name("an alias").map(Some) } else { Ok(None) }
    }

    /// Text in single quotes.
    fn text(&mut self, what: &str) -> Result<String> {
        match &self.peek().token {
            Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => {
                let text = text.clone();
                self.inner.advance_token();
                Ok(text)
            }
            _ => Err(self.expected(what)),
        }
    }

    /// A whole number, perhaps negative.
    fn integer(&mut self, what: &str) -> Result<i64> {
        let from = self.here();
        let negative = self.token(&Token::Minus);
        let Token::Number(digits, _) = &self.peek().token else { return Err(self.expected(what)) };
        let number = match negative {
            true => format!("-{digits}").parse(),
            false => digits.parse(),
        };
        let number: Result<i64, _> = number;
        self.inner.advance_token();
        number.map_err(|_| {
            let what = format!("\"{}\" is no 64-bit integer", self.text_since(from));
            self.error_at(what, self.span_since(from)).state(sqlstate::OUT_OF_RANGE)
        })
    }

    /// The value of an option or setting: text, a number, or a word.
    fn option_value(&mut self) -> Result<Value> {
        match &self.peek().token {
            Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) => {
                Ok(Value::Text(self.text("a value")?))
            }
            Token::Number(digits, _) if digits.contains(['.', 'e', 'E']) => {
                let number = digits.parse().map_err(|_| self.expected("a number"))?;
                self.inner.advance_token();
                Ok(Value::Double(number))
            }
            Token::Number(..) | Token::Minus => self.integer("a number").map(Value::Int),
            Token::Word(Word { value, quote_style: None, .. }) => {
                let value = match value.to_ascii_lowercase().as_str() {
                    "true" | "on" => Value::Boolean(true),
                    "false" | "off" => Value::Boolean(false),
                    "null" | "default" => Value::Null,
                    _ => Value::Text(value.clone()),
                };
                self.inner.advance_token();
                Ok(value)
            }
            _ => Err(self.expected("a value")),
        }
    }

    /// `[TRUE | FALSE | ON | OFF]` after the name of a switch; without a value it is on.
    fn switch(&mut self) -> bool {
        if self.word("FALSE") || self.word("OFF") {
            return false;
        }
        if !self.peek_words(&["ON", "ERROR"]) {
            let _ = self.word("TRUE") || self.word("ON");
        }
        true
    }

    // Places.

    /// Start of the next token; the end of the text, if there is none.
    fn here(&self) -> Location {
        let next = self.peek();
        if next.token == Token::EOF { self.end_of_last() } else { next.span.start }
    }

    /// End of the last token taken; attempts to read past the end do not count.
    fn end_of_last(&self) -> Location {
        self.taken().next().map_or(Location { line: 1, column: 1 }, |t| t.span.end)
    }

    /// The tokens taken, the last one first.
    fn taken(&self) -> impl Iterator<Item = &TokenWithSpan> {
        (0..self.inner.index()).rev().map(|n| self.inner.token_at(n)).filter(|t| t.token != Token::EOF)
    }

    fn text_since(&self, from: Location) -> String {
        self.source.text(from, self.end_of_last()).to_owned()
    }

    fn span_since(&self, from: Location) -> Span {
        self.source.span(from, self.end_of_last())
    }
}
