//! Statements in the dumps of SQLite and PostgreSQL that have nothing to do here, or say how far columns have counted.

use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Value, ValueWithSpan};
use sqlparser::tokenizer::Token;

use super::Parser;
use crate::error::Result;
use crate::sql::ast::{Counter, CounterName, ForeignKeySetting, Identity, Statement};
use crate::sql::name_of;

/// Settings of SQLite that its dumps, and scripts that load them, begin with.
const PRAGMAS: &[&str] = &[
    "APPLICATION_ID",
    "AUTO_VACUUM",
    "CACHE_SIZE",
    "ENCODING",
    "JOURNAL_MODE",
    "LEGACY_ALTER_TABLE",
    "LOCKING_MODE",
    "PAGE_SIZE",
    "SYNCHRONOUS",
    "TEMP_STORE",
    "USER_VERSION",
    "WRITABLE_SCHEMA",
];

impl Parser<'_> {
    /// Reads `PRAGMA foreign_keys = OFF` or `PRAGMA defer_foreign_keys = ON`, if this is one.
    pub(super) fn foreign_key_setting(&mut self) -> Option<Statement> {
        if !self.peek_words(&["PRAGMA"]) {
            return None;
        }
        let word = |n| match self.nth(n) {
            Token::Word(word) => word.value.to_lowercase(),
            Token::SingleQuotedString(text) | Token::Number(text, _) => text.to_lowercase(),
            _ => String::new(),
        };
        let setting = match word(1).as_str() {
            "foreign_keys" => ForeignKeySetting::Checked,
            "defer_foreign_keys" => ForeignKeySetting::Deferred,
            _ => return None,
        };
        let is_on = match word(3).as_str() {
            "on" | "1" | "true" | "yes" => true,
            "off" | "0" | "false" | "no" => false,
            _ => return None,
        };
        if *self.nth(2) != Token::Eq {
            return None;
        }
        self.skip(4);
        Some(Statement::ForeignKeys { setting, is_on })
    }

    /// Reads how far columns have counted, if this says it: a statement about `sqlite_sequence`, where SQLite's
    /// AUTOINCREMENT counts, or a call of PostgreSQL's `setval`.
    pub(super) fn counters(&mut self) -> Result<Option<Statement>> {
        let from = self.here();
        let (kind, counters) = if self.peek_words(&["INSERT", "INTO"]) && self.nth_is(2, "sqlite_sequence") {
            self.skip(3);
            if self.peek_token(&Token::LParen) {
                self.names("a column")?;
            }
            self.expect_word("VALUES")?;
            let counters = self.list(|p| {
                p.expect_token(Token::LParen)?;
                let table = p.text("the name of a table, a text")?;
                p.expect_token(Token::Comma)?;
                let last = p.integer("a number")?;
                p.expect_token(Token::RParen)?;
                Ok(of_table(table, last))
            })?;
            ("INSERT", counters)
        } else if self.peek_words(&["UPDATE"]) && self.nth_is(1, "sqlite_sequence") && self.nth_is(2, "SET") {
            self.skip(3);
            self.name("seq")?;
            self.expect_token(Token::Eq)?;
            let last = self.integer("a number")?;
            ("UPDATE", vec![of_table(self.counted_table()?, last)])
        } else if self.peek_words(&["DELETE", "FROM"])
            && self.nth_is(2, "sqlite_sequence")
            && self.nth_is(3, "WHERE")
        {
            self.skip(3);
            ("DELETE", vec![of_table(self.counted_table()?, 0)])
        } else if let Some((counter, tokens)) = self.setval() {
            self.skip(tokens);
            ("SELECT", vec![counter])
        } else {
            return Ok(None);
        };
        Ok(Some(Statement::Counters { kind, counters, sql: self.text_since(from) }))
    }

    /// `WHERE name = 't'`
    fn counted_table(&mut self) -> Result<String> {
        self.expect_word("WHERE")?;
        self.name("name")?;
        self.expect_token(Token::Eq)?;
        self.text("the name of a table, a text")
    }

    /// `SELECT setval('t_id_seq', 40 [, true])`, and the number of its tokens.
    fn setval(&self) -> Option<(Counter, usize)> {
        let at = if self.nth_is(1, "pg_catalog") && *self.nth(2) == Token::Period { 3 } else { 1 };
        if !self.peek_words(&["SELECT"]) || !self.nth_is(at, "setval") || *self.nth(at + 1) != Token::LParen {
            return None;
        }
        let sign = usize::from(*self.nth(at + 4) == Token::Minus);
        let (Token::SingleQuotedString(name), Token::Comma, Token::Number(last, _)) =
            (self.nth(at + 2), self.nth(at + 3), self.nth(at + 4 + sign))
        else {
            return None;
        };
        let at = at + sign;
        let (is_taken, tokens) = match (self.nth(at + 5), self.nth(at + 7)) {
            (Token::RParen, _) => (true, at + 6),
            (Token::Comma, Token::RParen) if self.nth_is(at + 6, "true") => (true, at + 8),
            (Token::Comma, Token::RParen) if self.nth_is(at + 6, "false") => (false, at + 8),
            _ => return None,
        };
        let is_end = matches!(self.nth(tokens), Token::SemiColon | Token::EOF);
        let of = CounterName::Sequence(sequence(name).to_owned());
        let last = if sign == 1 { format!("-{last}") } else { last.clone() };
        last.parse().ok().filter(|_| is_end).map(|last| (Counter { of, last, is_taken }, tokens))
    }

    fn skip(&mut self, tokens: usize) {
        for _ in 0..tokens {
            self.inner.advance_token();
        }
    }

    /// Reads a statement that has nothing to do here, if this is one.
    pub(super) fn of_dump(&mut self) -> Option<Statement> {
        let kind = self.kind_of_dump()?;
        let from = self.here();
        while !self.at_end() {
            self.inner.advance_token();
        }
        Some(Statement::Nothing { kind, sql: self.text_since(from) })
    }

    fn kind_of_dump(&self) -> Option<&'static str> {
        // All counters, which the dump then tells.
        if self.peek_words(&["DELETE", "FROM"]) && self.nth_is(2, "sqlite_sequence") {
            return Some("DELETE");
        }
        if self.peek_words(&["PRAGMA"])
            && PRAGMAS.iter().any(|name| self.nth_is(1, name))
            && *self.nth(2) == Token::Eq
        {
            return Some("PRAGMA");
        }
        // An empty search path, as pg_dump sets it.
        let sets_path = self.peek_words(&["SELECT", "pg_catalog"])
            && self.nth_is(3, "set_config")
            && matches!(self.nth(5), Token::SingleQuotedString(name) if name == "search_path");
        if sets_path {
            return Some("SET");
        }
        // Nothing keeps them.
        if self.peek_words(&["COMMENT", "ON"]) {
            return Some("COMMENT");
        }
        if let Some(kind) = self.kind_of_sequence() {
            return Some(kind);
        }
        self.kind_of_upkeep()
    }

    /// `CREATE SEQUENCE public.t_id_seq`, as pg_dump writes it, and what it says of it: the column that draws its numbers
    /// from there [counts by itself](CounterName::own_sequence).
    fn kind_of_sequence(&self) -> Option<&'static str> {
        let word = |n| match self.nth(n) {
            Token::Word(word) => word.value.as_str(),
            _ => "",
        };
        if *self.nth(3) != Token::Period {
            return None;
        }
        if self.peek_words(&["CREATE", "SEQUENCE"]) {
            return self.counts_by_one(5).then_some("CREATE SEQUENCE");
        }
        let owned = [5, 6].map(|at| word(at).to_uppercase());
        let is_owned = owned[0] == "OWNED"
            && owned[1] == "BY"
            && *self.nth(8) == Token::Period
            && *self.nth(10) == Token::Period;
        let is_own = is_owned && word(4) == CounterName::own_sequence(word(9), word(11));
        let is_of_user = owned[0] == "OWNER" && owned[1] == "TO";
        (self.peek_words(&["ALTER", "SEQUENCE"]) && (is_own || is_of_user)).then_some("ALTER SEQUENCE")
    }

    /// From token `at` on, a sequence is what the numbers of a column are: 1, 2, 3 and so on.
    fn counts_by_one(&self, mut at: usize) -> bool {
        let is_one = |n| matches!(self.nth(n), Token::Number(number, _) if number == "1");
        while !matches!(self.nth(at), Token::SemiColon | Token::EOF) {
            let by = usize::from(self.nth_is(at + 1, "WITH") || self.nth_is(at + 1, "BY"));
            at += match () {
                () if (self.nth_is(at, "START") || self.nth_is(at, "INCREMENT")) && is_one(at + 1 + by) => {
                    2 + by
                }
                () if self.nth_is(at, "NO")
                    && (self.nth_is(at + 1, "MINVALUE") || self.nth_is(at + 1, "MAXVALUE")) =>
                {
                    2
                }
                () if self.nth_is(at, "AS") || self.nth_is(at, "CACHE") => 2,
                () => return false,
            };
        }
        true
    }

    /// What says whose something is, or how PostgreSQL stores it.
    fn kind_of_upkeep(&self) -> Option<&'static str> {
        // Behind the name of a table or view.
        let of_table = |of: &str| {
            let mut at = 2;
            while self.nth_is(at, "ONLY") || self.nth_is(at, "IF") || self.nth_is(at, "EXISTS") {
                at += 1;
            }
            if *self.nth(at + 1) == Token::Period {
                at += 2;
            }
            self.peek_words(&["ALTER", of]).then_some(at + 1)
        };
        let is_kept = |at: usize| {
            let says = |words: &[&str]| words.iter().enumerate().all(|(n, word)| self.nth_is(at + n, word));
            says(&["OWNER", "TO"])
                || says(&["CLUSTER", "ON"])
                || says(&["REPLICA", "IDENTITY"])
                || (self.nth_is(at, "ENABLE") || self.nth_is(at, "DISABLE")) && self.nth_is(at + 1, "TRIGGER")
                || says(&["ALTER", "COLUMN"])
                    && self.nth_is(at + 3, "SET")
                    && (self.nth_is(at + 4, "STATISTICS") || self.nth_is(at + 4, "STORAGE"))
        };
        if of_table("TABLE").is_some_and(is_kept) {
            return Some("ALTER TABLE");
        }
        if of_table("VIEW").is_some_and(|at| self.nth_is(at, "OWNER") && self.nth_is(at + 1, "TO")) {
            return Some("ALTER VIEW");
        }
        let our_schema = self.peek_words(&["CREATE", "SCHEMA"])
            && (self.nth_is(2, "public")
                || self.nth_is(2, "IF")
                    && self.nth_is(3, "NOT")
                    && self.nth_is(4, "EXISTS")
                    && self.nth_is(5, "public"));
        let drops_sequence = self.peek_words(&["DROP", "SEQUENCE", "IF", "EXISTS"]);
        let kinds = [
            (our_schema, "CREATE SCHEMA"),
            (drops_sequence, "DROP SEQUENCE"),
            (self.peek_words(&["SET", "SESSION", "AUTHORIZATION"]), "SET"),
        ];
        kinds.into_iter().find(|(is_it, _)| *is_it).map(|(_, kind)| kind)
    }
}

/// What `SET DEFAULT nextval('public.t_id_seq'::regclass)` of column `t.id` says: that it numbers itself.
pub(super) fn numbers_itself(table: &Ident, column: &Ident, default: &Expr) -> Option<Identity> {
    let Expr::Function(call) = default else { return None };
    let FunctionArguments::List(list) = &call.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(of))] = &list.args[..] else { return None };
    let of = match of {
        Expr::Cast { expr, .. } => expr,
        of => of,
    };
    let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(of), .. }) = of else { return None };
    let function = call.name.0.last()?.as_ident()?;
    let is_own = function.value.eq_ignore_ascii_case("nextval")
        && sequence(of) == CounterName::own_sequence(&name_of(table), &name_of(column));
    is_own.then_some(Identity { always: false, start: 1, increment: 1 })
}

/// The name in `public."T_id_seq"`.
fn sequence(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(_, name)| name).trim_matches('"')
}

fn of_table(table: String, last: i64) -> Counter {
    Counter { of: CounterName::Table(table), last, is_taken: true }
}
