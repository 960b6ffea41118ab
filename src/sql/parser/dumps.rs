//! Statements in the dumps of SQLite and PostgreSQL that have nothing to do here.

use sqlparser::tokenizer::Token;

use super::Parser;
use crate::sql::ast::{ForeignKeySetting, Statement};

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
        let token = |n| &self.inner.peek_nth_token_ref(n).token;
        let word = |n| match token(n) {
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
        if *token(2) != Token::Eq {
            return None;
        }
        for _ in 0..4 {
            self.inner.advance_token();
        }
        Some(Statement::ForeignKeys { setting, is_on })
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
        let token = |n| &self.inner.peek_nth_token_ref(n).token;
        let is = |n, word: &str| matches!(token(n), Token::Word(w) if w.value.eq_ignore_ascii_case(word));
        // The counters of AUTOINCREMENT: an identity passes the numbers it is given.
        if self.peek_words(&["DELETE", "FROM"]) && is(2, "sqlite_sequence") {
            return Some("DELETE");
        }
        if self.peek_words(&["INSERT", "INTO"]) && is(2, "sqlite_sequence") {
            return Some("INSERT");
        }
        if self.peek_words(&["PRAGMA"]) && PRAGMAS.iter().any(|name| is(1, name)) && *token(2) == Token::Eq {
            return Some("PRAGMA");
        }
        // An empty search path, as pg_dump sets it.
        let sets_path = self.peek_words(&["SELECT", "pg_catalog"])
            && is(3, "set_config")
            && matches!(token(5), Token::SingleQuotedString(name) if name == "search_path");
        if sets_path {
            return Some("SET");
        }
        self.names_owner().then_some("ALTER TABLE")
    }

    /// `ALTER TABLE public.t OWNER TO somebody`: there are no users.
    fn names_owner(&self) -> bool {
        let token = |n| &self.inner.peek_nth_token_ref(n).token;
        let is = |n, word: &str| matches!(token(n), Token::Word(w) if w.value.eq_ignore_ascii_case(word));
        let mut at = 2;
        while is(at, "ONLY") || is(at, "IF") || is(at, "EXISTS") {
            at += 1;
        }
        if *token(at + 1) == Token::Period {
            at += 2;
        }
        self.peek_words(&["ALTER", "TABLE"]) && is(at + 1, "OWNER") && is(at + 2, "TO")
    }
}
