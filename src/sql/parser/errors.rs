//! Error messages of the parser: ours, and sqlparser's in the same words.

use sqlparser::keywords::Keyword;
use sqlparser::parser::ParserError;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Word};

use super::Parser;
use crate::error::{Error, Result, Span, sqlstate};
use crate::sql::lex::lower_first;
use crate::sql::shape;
use crate::suggest::did_you_mean;

/// First words of our statements.
pub const STATEMENTS: &[&str] = &[
    "ADVISE",
    "ALTER",
    "ANALYZE",
    "BACKUP",
    "BEGIN",
    "CHECK",
    "COMMIT",
    "COPY",
    "CREATE",
    "DEALLOCATE",
    "DELETE",
    "DESCRIBE",
    "DROP",
    "EXECUTE",
    "EXPLAIN",
    "INSERT",
    "LINT",
    "PREPARE",
    "PURGE",
    "RELEASE",
    "REPAIR",
    "RESET",
    "ROLLBACK",
    "SAVEPOINT",
    "SELECT",
    "SET",
    "SHOW",
    "SIMULATE",
    "START",
    "TRUNCATE",
    "UPDATE",
    "UPSERT",
    "VALUES",
    "WITH",
];

/// Words that start clauses, for "did you mean".
const CLAUSES: &[&str] = &[
    "AND",
    "AS",
    "CONFLICT",
    "DEFAULT",
    "EXISTS",
    "FAMILY",
    "FROM",
    "GROUP",
    "HAVING",
    "INCLUDE",
    "INDEX",
    "INTO",
    "JOIN",
    "LIMIT",
    "OFFSET",
    "ORDER",
    "PRIMARY",
    "RETURNING",
    "SET",
    "TABLE",
    "UNION",
    "VALUES",
    "WHERE",
    "WITH",
];

/// First words of statements of other databases, and of the HBase shell, and what to write here.
const STATEMENTS_ELSEWHERE: &[(&str, &str)] = &[
    ("FROM", "write SELECT * FROM t"),
    ("MERGE", "write INSERT ... ON CONFLICT, or UPSERT"),
    ("VACUUM", "nothing is needed: space is reused as rows are deleted"),
    ("PRAGMA", "DESCRIBE t lists columns, SHOW SETTINGS settings; SET name = value changes one"),
    ("REKEY", "write ALTER TABLE t REKEY (...), or ALTER TABLE t REKEY CANCEL"),
    ("SPLIT", "write ALTER TABLE t SPLIT INTO 4, or SPLIT ON ('key', ...)"),
    ("REINDEX", "REPAIR INDEX i builds an index anew"),
    ("USE", "one database is open at a time: start again with the other's path"),
    ("ATTACH", "one database is open at a time: start again with the other's path"),
    ("GRANT", "there are no users: the file's permissions decide; pg_dump --no-acl leaves them out"),
    ("REVOKE", "there are no users: the file's permissions decide; pg_dump --no-acl leaves them out"),
    ("SCAN", "write SELECT * FROM t WHERE id BETWEEN 1 AND 9: conditions on the key become ranges of it"),
    ("GET", "write SELECT * FROM t WHERE id = 1"),
    ("PUT", "write UPSERT INTO t (id, a) VALUES (1, 2)"),
    ("DELETEALL", "write DELETE FROM t WHERE id = 1"),
    ("INCR", "write UPDATE t SET hits = hits + 1 WHERE id = 1: it counts atomically"),
    ("COUNT", "write SELECT count(*) FROM t"),
    ("HELP", ".help lists the commands of the shell"),
    ("QUIT", ".quit leaves the shell"),
    ("EXIT", ".quit leaves the shell"),
    ("LIST", "SHOW TABLES lists them"),
    ("STATUS", "SHOW TABLES lists tables and their sizes, SHOW SETTINGS settings"),
    ("VERSION", "SELECT version()"),
    ("LOAD", "write COPY t FROM 'file.csv'"),
    ("LOCK", "nothing is needed: of two transactions that meet, the later one is refused and may try again"),
    ("DISABLE", "nothing is needed: DROP TABLE t drops a table"),
    ("FLUSH", "nothing is needed: every commit is on the disk"),
    ("OPTIMIZE", "nothing is needed: space is reused as rows are deleted; ANALYZE t collects statistics"),
];

/// Is it several words, the first of which begins a statement?
pub fn looks_like_statement(text: &str) -> bool {
    let first = text.trim().split_once(char::is_whitespace).map_or("", |(word, _)| word);
    STATEMENTS.iter().any(|word| word.eq_ignore_ascii_case(first))
}

/// For a table's other name in front of AS OF.
const MOMENT_FIRST: &str =
    "the moment comes before the other name: FROM t AS OF TIMESTAMP '2026-11-26 10:00' x";

impl Parser<'_> {
    pub(super) fn not_a_statement(&self, word: &str) -> Error {
        let error = self.expected("a statement");
        if let Some(instead) = self.hbase_hint() {
            return error.hint(instead);
        }
        if let Token::Backslash | Token::Period = self.peek().token {
            return error.hint("a command of the shell stands on a line of its own");
        }
        if self.peek_token(&Token::LBrace) {
            return error.hint("rowkeydb run --input jsonl FILE, or -, reads requests in JSON, one on each line; -c takes SQL");
        }
        if let Some(instead) = in_table(STATEMENTS_ELSEWHERE, word) {
            return error.hint(instead);
        }
        match did_you_mean(word, STATEMENTS.iter().copied()) {
            Some(meant) => error.hint(format!("did you mean {meant}?")),
            None => error,
        }
    }

    pub(super) fn error_at(&self, what: impl Into<String>, span: Span) -> Error {
        Error::invalid(what).state(sqlstate::SYNTAX).at(span)
    }

    /// Place of the next token, or of the end of the text.
    pub(super) fn next_span(&self) -> Span {
        let next = self.peek();
        match next.token {
            Token::EOF => self.source.span(self.here(), self.here()),
            _ => self.source.span(next.span.start, next.span.end),
        }
    }

    /// An error at the next token.
    pub(super) fn error(&self, what: impl Into<String>) -> Error {
        self.error_at(what, self.next_span())
    }

    /// "expected `what`, found the next token".
    pub(super) fn expected(&self, what: &str) -> Error {
        let next = self.peek();
        let error = self.error(format!("expected {what}, found {}", self.shown(next)));
        self.about_token(error, next)
    }

    /// The error for more tokens where the statement should end. In `SELECT a FORM t` it is about the word
    /// before: it was taken for an alias, but is more likely a misspelt clause.
    pub(super) fn expected_end(&self) -> Error {
        let mut taken = self.taken();
        let last = (taken.next(), taken.next());
        // sqlparser took it for the name of a column.
        if let (Some(word), Some(before)) = last
            && let Token::Word(Word { keyword: Keyword::AND | Keyword::OR, quote_style: None, .. }) =
                word.token
            && let Token::Word(Word { keyword: Keyword::WHERE | Keyword::ON | Keyword::HAVING, .. }) =
                before.token
        {
            let what = format!("expected a condition, found {}", self.shown(word));
            return self.error_at(what, self.source.span(word.span.start, word.span.end));
        }
        if let (Some(alias), Some(named)) = last
            && let Token::Word(Word { value, quote_style: None, keyword: Keyword::NoKeyword }) = &alias.token
            && let Token::RParen | Token::Word(Word { keyword: Keyword::NoKeyword, .. }) = &named.token
            && did_you_mean(value, CLAUSES.iter().copied()).is_some()
        {
            let what = format!("expected the end of the statement, found {}", self.shown(alias));
            return misspelt(self.error_at(what, self.source.span(alias.span.start, alias.span.end)), value);
        }
        let error = self.expected("the end of the statement");
        if self.peek_words(&["AS", "OF"]) {
            return error.hint(MOMENT_FIRST);
        }
        // It was taken for the table's other name.
        if self.is_behind(self.peek(), &["AS", "OF"]) {
            return error.hint("AS OF TIMESTAMP '2026-11-26 10:00:00', or AS OF SNAPSHOT before");
        }
        error
    }

    /// A token, for a message.
    fn shown(&self, token: &TokenWithSpan) -> String {
        match &token.token {
            Token::EOF => "the end of the statement".to_owned(),
            Token::SingleQuotedString(text) => format!("'{text}'"),
            _ => format!("\"{}\"", self.source.text(token.span.start, token.span.end).trim_matches('"')),
        }
    }

    /// Converts sqlparser's error to ours, at the token it speaks of.
    pub(super) fn lift<T>(&self, result: std::result::Result<T, ParserError>) -> Result<T> {
        result.map_err(|e| match e {
            ParserError::ParserError(message) | ParserError::TokenizerError(message) => {
                self.foreign(&message)
            }
            ParserError::RecursionLimitExceeded => shape::too_deep().at(self.next_span()),
        })
    }

    /// Parses `Expected: x, found: y at Line: 1, Column: 8`.
    fn foreign(&self, message: &str) -> Error {
        let (text, place) = match message.rsplit_once(" at Line: ") {
            Some((text, place)) => (text, parse_place(place)),
            None => (message, None),
        };
        let (expected, found) = match text.split_once(", found: ") {
            Some((expected, found)) => {
                (Some(expected.trim_start_matches("Expected").trim_start_matches([':', ' '])), found)
            }
            None => (None, ""),
        };
        let token = place.and_then(|place| self.token_said(place, found));
        // An operator behind its operand, such as the factorial 5!.
        if let Some(operator) = text.strip_prefix("No infix parser for token ") {
            return self.behind_operand(operator);
        }
        if text.eq_ignore_ascii_case("Scale field can only be of number type") {
            let place = self.taken().next().map(|token| self.source.span(token.span.start, token.span.end));
            return self
                .error_at(
                    "floor and ceil take a number of digits, and this is none",
                    place.unwrap_or(self.next_span()),
                )
                .hint("floor(x, 2) keeps two digits; of a time, date_trunc('day', t) keeps the day");
        }
        let what = match (expected, token) {
            (Some(expected), Some(token)) => {
                format!("expected {}, found {}", friendly(expected), self.shown(token))
            }
            (Some(expected), None) if found == "EOF" => {
                format!("expected {}, found the end of the statement", friendly(expected))
            }
            _ => lower_first(text),
        };
        let Some(token) = token else {
            let end = self.end_of_tokens();
            let span = if found == "EOF" { self.source.span(end, end) } else { self.next_span() };
            return self.error_at(what, span);
        };
        let error = self.error_at(what, self.source.span(token.span.start, token.span.end));
        // sqlparser takes the first two words of NEXT VALUE FOR for a column with an alias.
        if self.is_behind(token, &["VALUE", "FOR"]) {
            return error.hint(NO_SEQUENCES);
        }
        // The parser reads AS OF as FOR, where it may stand.
        if matches!(&token.token, Token::Word(word) if word.keyword == Keyword::FOR)
            && self.shown(token).eq_ignore_ascii_case("\"as\"")
        {
            let what = format!("expected the end of the statement, found {}", self.shown(token));
            let span = self.source.span(token.span.start, token.span.end);
            return self.error_at(what, span).hint(MOMENT_FIRST);
        }
        let is_value =
            matches!(token.token, Token::Word(_) | Token::Number(..) | Token::SingleQuotedString(_));
        if is_value && expected.is_some_and(|expected| expected.starts_with(BEHIND_IS)) {
            return error.hint(match self.is_behind(token, &["NOT"]) {
                true => {
                    format!("write x <> {found}; x IS DISTINCT FROM {found} takes NULL for another value")
                }
                false => {
                    format!("write x = {found}; x IS NOT DISTINCT FROM {found} takes NULL for another value")
                }
            });
        }
        self.about_token(error, token)
    }

    /// The error for the token taken last, which begins no operator.
    fn behind_operand(&self, operator: &str) -> Error {
        let Some(token) = self.taken().next() else { return self.expected("an operator") };
        let span = self.source.span(token.span.start, token.span.end);
        let error = self.error_at(format!("there is no operator {}", self.shown(token)), span);
        match operator {
            "ExclamationMark" => error.hint("factorial(5) is 120; NOT negates a condition"),
            _ => error,
        }
    }

    /// The token at a place in sqlparser's message, or the one before it, if the message names that one.
    fn token_said(&self, place: Location, found: &str) -> Option<&TokenWithSpan> {
        let at = (0..).map_while(|n| match self.inner.token_at(n) {
            token if token.token == Token::EOF => None,
            token => Some((n, token)),
        });
        let (n, token) = { at }.find(|(_, token)| token.span.start == place)?;
        let before = n.checked_sub(1).map(|n| self.inner.token_at(n));
        match before {
            Some(before) if token.token.to_string() != found && before.token.to_string() == found => {
                Some(before)
            }
            _ => Some(token),
        }
    }

    /// Adds what an unexpected token may have meant as a hint.
    fn about_token(&self, error: Error, token: &TokenWithSpan) -> Error {
        match &token.token {
            Token::Word(_)
                if self.is_behind(token, &["NEXT"])
                    && self.source.text(token.span.start, token.span.end).eq_ignore_ascii_case("value") =>
            {
                error.hint(NO_SEQUENCES)
            }
            // sqlparser takes it for the beginning of TABLE(f(x)).
            _ if self.is_behind(token, &["FROM", "TABLE"]) || self.is_behind(token, &["JOIN", "TABLE"]) => {
                error.hint("table is a reserved word: as a name, write \"table\"")
            }
            Token::Word(word) if word.quote_style.is_none() => misspelt(error, &word.value),
            Token::Char('`') | Token::LBracket => error.hint(DOUBLE_QUOTES),
            // PostgreSQL's operators `?`, `?|` and `?&`; elsewhere it is a parameter.
            _ if self.source.text(token.span.start, token.span.end) == "?" => {
                error.hint("a JSON value has a member if doc -> 'name' IS NOT NULL")
            }
            _ => error,
        }
    }

    /// Adds what to do in place of making or dropping an object of others, if the next token names one.
    pub(super) fn about_object(&self, error: Error) -> Error {
        match self.peek_word().and_then(|word| in_table(OBJECTS_ELSEWHERE, &word.value)) {
            Some(instead) => error.hint(instead),
            None => error,
        }
    }

    /// Do these words stand right before the token?
    fn is_behind(&self, token: &TokenWithSpan, words: &[&str]) -> bool {
        let tokens = (0..).map(|n| self.inner.token_at(n)).take_while(|t| t.token != Token::EOF);
        let before: Vec<_> = tokens.take_while(|t| t.span.start != token.span.start).collect();
        let is = |(token, word): (&&TokenWithSpan, &&str)| token.token.to_string().eq_ignore_ascii_case(word);
        before.len() >= words.len() && before[before.len() - words.len()..].iter().zip(words).all(is)
    }

    fn end_of_tokens(&self) -> Location {
        let tokens = (0..).map(|n| self.inner.token_at(n)).take_while(|t| t.token != Token::EOF);
        tokens.last().map_or(Location { line: 1, column: 1 }, |t| t.span.end)
    }
}

/// How sqlparser begins its list of what stands behind IS.
const BEHIND_IS: &str = "[NOT] NULL | TRUE";

/// The hint for names in other quotes.
const DOUBLE_QUOTES: &str = "names stand in double quotes: \"order\"";

/// Clauses and operators of other databases, and what to write here.
const ELSEWHERE: &[(&str, &str)] = &[
    ("OVERLAPS", "write a_start < b_end AND b_start < a_end"),
    ("REGEXP", "write x ~ 'pattern'"),
    ("RLIKE", "write x ~ 'pattern'"),
    ("GLOB", "write LIKE, with % and _, or x ~ 'pattern'"),
    ("MATCH", "write x LIKE '%word%', or x ~ 'pattern'"),
    ("DIV", "write a / b of integers"),
    ("SALT_BUCKETS", "lead the key with a bucket: PRIMARY KEY (md5_bucket(id, 16), id)"),
    ("STRICT", "leave it out: a column takes values of its type only"),
    ("ENGINE", "the engine is chosen with the database: rowkeydb --engine lsm FOLDER"),
    ("WITHOUT", "leave it out: every table is stored by its rowkey"),
    ("TBLPROPERTIES", "options stand in WITH (name = value)"),
    ("CLUSTERED", "leave it out: every table is stored by its rowkey"),
    ("IGNORE", "write INSERT INTO t ... ON CONFLICT DO NOTHING"),
    ("INDEXED", "indexes are named by a hint: SELECT /*+ INDEX(i) */ ..., or /*+ NO_INDEX */"),
    ("EXCLUDE", "a frame has all rows between its bounds; a row leaves itself out so: sum(x) OVER (...) - x"),
    ("ASYNC", "leave it out: others read and write while an index is built"),
    (
        "PARTITION",
        "leave it out: a table is sorted by its rowkey, and a range of it is read by itself; ALTER TABLE t SPLIT INTO 4 \
      cuts it into regions",
    ),
    (
        "INHERITS",
        "no table inherits: write all columns; CREATE TABLE t (PRIMARY KEY (id)) AS SELECT * FROM u LIMIT 0 has those of u",
    ),
    ("COMMENT", "leave it out, or write it behind -- in the script: definitions have no comments"),
    ("TABLESPACE", "leave it out: a database is one folder"),
    ("COMPRESSION", "it is one of a family: FAMILY f (a, b) WITH (compression = 'lz4')"),
    ("BLOOMFILTER", "leave it out"),
    ("DATA_BLOCK_ENCODING", "leave it out"),
    ("ROW_TIMESTAMP", "leave it out: a table WITH (versions = n) knows when rows were written"),
    ("SEQUENCE", NO_SEQUENCES),
    ("IMMUTABLE", "leave it out: what an UPDATE does not change is not written"),
    ("IMMUTABLE_ROWS", "leave it out: what an UPDATE does not change is not written"),
    ("TEMP", "CREATE TABLE, and DROP TABLE at the end; or give the query a name in WITH"),
    ("TEMPORARY", "CREATE TABLE, and DROP TABLE at the end; or give the query a name in WITH"),
    ("UNLOGGED", "leave it out: every commit is on the disk"),
    ("MATERIALIZED", "CREATE TABLE ... AS SELECT ... keeps what a query gives now"),
    ("LOCAL", "leave it out: an index is sorted as a whole"),
    ("GLOBAL", "leave it out: an index is sorted as a whole"),
];

/// What others CREATE and DROP, and what to do here.
const OBJECTS_ELSEWHERE: &[(&str, &str)] = &[
    ("SCHEMA", "there is one schema, public: a table can have sales_ in front of its name"),
    ("DATABASE", "a folder is a database: rowkeydb shop makes one, or opens it"),
    (
        "TYPE",
        "there are no types of one's own; an enumeration is a CHECK: kind TEXT CHECK (kind IN ('a', 'b'))",
    ),
    ("DOMAIN", "there are no types of one's own: write the type and its CHECK at each column"),
    ("EXTENSION", "there are no extensions: SHOW FUNCTIONS lists what is built in"),
    ("FUNCTION", "there are no functions of one's own; a view keeps a query: CREATE VIEW v AS SELECT ..."),
    ("PROCEDURE", "there are no procedures: keep the statements in a script, rowkeydb run FILE"),
    ("TRIGGER", "there are no triggers: a CHECK refuses rows, a DEFAULT fills them in"),
    ("VIRTUAL", "there are no virtual tables: x LIKE '%word%' or x ~ 'pattern' searches texts"),
    ("ROLE", "there are no users: the file's permissions decide"),
    ("USER", "there are no users: the file's permissions decide"),
];

const NO_SEQUENCES: &str = "a column counts by itself: id BIGINT GENERATED BY DEFAULT AS IDENTITY, or \
                             ALTER TABLE t ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY";

/// What to write in place of a word of other databases.
pub(super) fn elsewhere(word: &str) -> Option<&'static str> {
    in_table(ELSEWHERE, word)
}

fn in_table(table: &[(&str, &'static str)], word: &str) -> Option<&'static str> {
    table.iter().find(|(theirs, _)| theirs.eq_ignore_ascii_case(word)).map(|(_, instead)| *instead)
}

/// Adds the clause that a word may have meant as a hint.
fn misspelt(error: Error, word: &str) -> Error {
    if let Some(instead) = elsewhere(word) {
        return error.hint(instead);
    }
    let known = STATEMENTS.iter().chain(CLAUSES).any(|known| known.eq_ignore_ascii_case(word));
    match did_you_mean(word, CLAUSES.iter().copied()) {
        Some(meant) if !known => error.hint(format!("did you mean {meant}?")),
        _ => error,
    }
}

/// `1, Column: 8`
fn parse_place(text: &str) -> Option<Location> {
    let (line, column) = text.split_once(", Column: ")?;
    let column = column.split(|c: char| !c.is_ascii_digit()).next()?;
    Some(Location { line: line.parse().ok()?, column: column.parse().ok()? })
}

/// sqlparser's name for what it expected, in our words.
fn friendly(expected: &str) -> String {
    let expected = expected.trim_end_matches(':');
    match expected {
        "identifier" => "a name".to_owned(),
        behind if behind.starts_with(BEHIND_IS) => "NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM".to_owned(),
        "literal int" => "a whole number".to_owned(),
        "placeholder" => "the name of a variable that has a value".to_owned(),
        "end of statement" => "the end of the statement".to_owned(),
        punctuation if !punctuation.contains(char::is_alphanumeric) => format!("\"{punctuation}\""),
        other => other.to_owned(),
    }
}
