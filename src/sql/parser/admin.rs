//! Parses EXPLAIN, ANALYZE, PURGE, transactions, prepared statements, SHOW, DESCRIBE, CHECK, REPAIR, BACKUP,
//! SET, RESET.

use sqlparser::ast::Ident;
use sqlparser::tokenizer::Token;

use super::Parser;
use crate::error::{Result, sqlstate};
use crate::sql::ast::*;
use crate::sql::name_of;
use crate::value::Value;

/// Options of PostgreSQL's EXPLAIN.
const EXPLAINED_ELSEWHERE: &[&str] =
    &["BUFFERS", "COSTS", "GENERIC_PLAN", "MEMORY", "SERIALIZE", "SETTINGS", "SUMMARY", "TIMING", "WAL"];

impl Parser<'_> {
    pub(super) fn explain(&mut self) -> Result<Statement> {
        self.expect_word("EXPLAIN")?;
        if self.word("WHATIF") {
            return self.whatif();
        }
        if self.peek_words(&["QUERY", "PLAN"]) {
            return Err(self.expected("a statement").hint("EXPLAIN SELECT ... shows its plan"));
        }
        let (mut verbose, mut analyze, mut json) = (false, false, false);
        if self.starts_explain_options() {
            self.token(&Token::LParen);
            self.list(|p| p.explain_option(&mut verbose, &mut analyze, &mut json))?;
            self.expect_token(Token::RParen)?;
        }
        loop {
            if self.word("ANALYZE") || self.word("ANALYSE") {
                analyze = true;
            } else if self.word("VERBOSE") {
                verbose = true;
            } else if self.words(&["FORMAT", "JSON"]) {
                json = true;
            } else {
                break;
            }
        }
        let (statement, _) = self.inner_statement("EXPLAIN")?;
        Ok(Statement::Explain(Box::new(Explain { verbose, analyze, json, statement })))
    }

    /// `(ANALYZE, ...`, as opposed to `(SELECT ...`.
    fn starts_explain_options(&self) -> bool {
        let second = self.nth(1);
        let mut options = ["ANALYZE", "ANALYSE", "VERBOSE", "FORMAT"].iter().chain(EXPLAINED_ELSEWHERE);
        self.peek_token(&Token::LParen)
            && matches!(second, Token::Word(w) if options.any(|o| w.value.eq_ignore_ascii_case(o)))
    }

    fn explain_option(&mut self, verbose: &mut bool, analyze: &mut bool, json: &mut bool) -> Result<()> {
        if self.word("FORMAT") {
            *json = self.word("JSON");
            if !*json && !self.word("TEXT") {
                return Err(self.expected("TEXT or JSON"));
            }
            return Ok(());
        }
        let option = if self.word("ANALYZE") || self.word("ANALYSE") {
            analyze
        } else if self.word("VERBOSE") {
            verbose
        } else {
            let error = self.expected("ANALYZE, VERBOSE or FORMAT");
            return Err(match EXPLAINED_ELSEWHERE.iter().any(|option| self.peek_words(&[option])) {
                true => error.hint("leave it out: ANALYZE counts what each access reads"),
                false => error,
            });
        };
        *option = self.switch();
        Ok(())
    }

    /// The statement inside EXPLAIN or PREPARE, with its text.
    fn inner_statement(&mut self, outer: &str) -> Result<(Box<Statement>, String)> {
        // Checked before parsing: EXPLAIN EXPLAIN ... must not recurse.
        let wraps = ["EXPLAIN", "PREPARE"].iter().any(|word| self.peek_words(&[word]));
        let wrong = self.expected("SELECT, INSERT, UPSERT, UPDATE or DELETE");
        if wraps {
            return Err(wrong);
        }
        let from = self.here();
        let statement = self.statement()?;
        let planned = matches!(
            statement,
            Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_)
        );
        if planned || (outer == "EXPLAIN" && matches!(statement, Statement::Execute { .. })) {
            Ok((Box::new(statement), self.text_since(from)))
        } else {
            Err(wrong)
        }
    }

    pub(super) fn analyze(&mut self) -> Result<Statement> {
        Ok(Statement::Analyze { table: self.table_if_any()? })
    }

    pub(super) fn purge(&mut self) -> Result<Statement> {
        Ok(Statement::Purge { table: self.table_if_any()? })
    }

    /// Skips the statement's first word, then reads `[TABLE] name`, or nothing.
    fn table_if_any(&mut self) -> Result<Option<Ident>> {
        self.inner.advance_token();
        self.word("TABLE");
        if self.at_end() { Ok(None) } else { self.object_name("the name of a table").map(Some) }
    }

    pub(super) fn at_end(&self) -> bool {
        self.peek_token(&Token::EOF) || self.peek_token(&Token::SemiColon)
    }

    pub(super) fn begin(&mut self) -> Result<Statement> {
        let start = self.word("START");
        if start {
            self.expect_word("TRANSACTION")?;
        } else {
            self.expect_word("BEGIN")?;
            // SQLite's lock modes are accepted and ignored: snapshots need no locks.
            let _ = self.word("DEFERRED") || self.word("IMMEDIATE") || self.word("EXCLUSIVE");
            self.transaction_word();
        }
        let mut read_only = false;
        while !self.at_end() {
            if self.words(&["READ", "ONLY"]) {
                read_only = true;
            } else if self.words(&["READ", "WRITE"]) {
                read_only = false;
            } else if self.words(&["ISOLATION", "LEVEL"]) {
                self.isolation_level()?;
            } else {
                return Err(self.expected("READ ONLY, READ WRITE or ISOLATION LEVEL"));
            }
            self.token(&Token::Comma);
        }
        Ok(Statement::Begin { read_only })
    }

    /// Every isolation level is accepted, and gives the strongest.
    fn isolation_level(&mut self) -> Result<()> {
        let levels: [&[&str]; 5] = [
            &["SERIALIZABLE"],
            &["SNAPSHOT"],
            &["REPEATABLE", "READ"],
            &["READ", "COMMITTED"],
            &["READ", "UNCOMMITTED"],
        ];
        match levels.iter().any(|level| self.words(level)) {
            true => Ok(()),
            false => Err(self.expected("SERIALIZABLE or another isolation level")),
        }
    }

    fn transaction_word(&mut self) {
        let _ = self.word("TRANSACTION") || self.word("WORK");
    }

    pub(super) fn commit(&mut self) -> Result<Statement> {
        self.inner.advance_token();
        self.transaction_word();
        Ok(Statement::Commit)
    }

    pub(super) fn rollback(&mut self) -> Result<Statement> {
        self.inner.advance_token();
        self.transaction_word();
        if !self.word("TO") {
            return Ok(Statement::Rollback { to: None });
        }
        self.word("SAVEPOINT");
        Ok(Statement::Rollback { to: Some(self.name("the name of a savepoint")?) })
    }

    pub(super) fn savepoint(&mut self) -> Result<Statement> {
        self.expect_word("SAVEPOINT")?;
        Ok(Statement::Savepoint { name: self.name("the name of a savepoint")? })
    }

    pub(super) fn release(&mut self) -> Result<Statement> {
        self.expect_word("RELEASE")?;
        self.word("SAVEPOINT");
        Ok(Statement::Release { name: self.name("the name of a savepoint")? })
    }

    pub(super) fn prepare(&mut self) -> Result<Statement> {
        self.expect_word("PREPARE")?;
        let name = self.name("a name for the prepared statement")?;
        let types = match self.token(&Token::LParen) {
            true => {
                let types = self.list(|p| Ok(p.column_type("")?.data_type))?;
                self.expect_token(Token::RParen)?;
                types
            }
            false => Vec::new(),
        };
        self.expect_word("AS")?;
        let (statement, sql) = self.inner_statement("PREPARE")?;
        Ok(Statement::Prepare(Box::new(Prepare { name, types, statement, sql })))
    }

    pub(super) fn execute(&mut self) -> Result<Statement> {
        self.expect_word("EXECUTE")?;
        let name = self.name("the name of a prepared statement")?;
        let mut args = Vec::new();
        if self.token(&Token::LParen) && !self.token(&Token::RParen) {
            args = self.list(Self::expr)?;
            self.expect_token(Token::RParen)?;
        }
        Ok(Statement::Execute { name, args })
    }

    pub(super) fn deallocate(&mut self) -> Result<Statement> {
        self.expect_word("DEALLOCATE")?;
        self.word("PREPARE");
        match self.word("ALL") {
            true => Ok(Statement::Deallocate { name: None }),
            false => Ok(Statement::Deallocate {
                name: Some(self.name("the name of a prepared statement, or ALL")?),
            }),
        }
    }

    pub(super) fn show(&mut self) -> Result<Statement> {
        self.expect_word("SHOW")?;
        Ok(Statement::Show(self.show_what()?))
    }

    /// The pattern of `LIKE 'pattern'`, if that follows.
    fn like(&mut self, what: &str) -> Result<Option<String>> {
        if self.word("LIKE") { self.text(what).map(Some) } else { Ok(None) }
    }

    fn show_what(&mut self) -> Result<Show> {
        if self.word("TABLES") {
            Ok(Show::Tables { like: self.like("a pattern, as in LIKE 'order%'")? })
        } else if self.word("VIEWS") {
            Ok(Show::Views)
        } else if self.word("SNAPSHOTS") {
            Ok(Show::Snapshots)
        } else if self.word("FUNCTIONS") {
            Ok(Show::Functions { like: self.like("a pattern, as in LIKE 'date%'")? })
        } else if self.word("INDEXES") || self.word("INDEX") || self.word("INDICES") {
            let of_table = self.preposition() || self.word("ON");
            let table = if of_table { Some(self.object_name("the name of a table")?) } else { None };
            Ok(Show::Indexes { table })
        } else if self.word("CREATE") {
            if !["TABLE", "INDEX", "VIEW"].iter().any(|kind| self.word(kind)) {
                return Err(self.expected("TABLE, INDEX or VIEW"));
            }
            Ok(Show::CreateTable { name: self.object_name("the name of a table, index or view")? })
        } else if self.word("REGIONS") {
            self.preposition();
            Ok(Show::Regions { name: self.object_name("the name of a table or an index")? })
        } else if self.word("TRAFFIC") {
            if !self.preposition() {
                return Err(self.expected("FROM and the name of a table"));
            }
            Ok(Show::Traffic { name: self.object_name("the name of a table")? })
        } else if self.word("COLUMNS") {
            self.preposition();
            Ok(Show::Columns { name: self.object_name("the name of a table")? })
        } else if self.word("STATISTICS") {
            let _ = self.preposition() || self.word("FOR");
            Ok(Show::Statistics { name: self.object_name("the name of a table")? })
        } else if self.word("SETTINGS") || self.word("ALL") {
            Ok(Show::Settings)
        } else {
            Ok(Show::Setting {
                name: self.setting(
                    "TABLES, VIEWS, INDEXES, COLUMNS, CREATE TABLE, CREATE INDEX, REGIONS, TRAFFIC, STATISTICS, \
                     SNAPSHOTS, FUNCTIONS, SETTINGS or a setting",
                )?,
            })
        }
    }

    fn preposition(&mut self) -> bool {
        self.word("FROM") || self.word("IN") || self.word("OF")
    }

    pub(super) fn describe(&mut self) -> Result<Statement> {
        self.inner.advance_token();
        if self.starts_describe_key() {
            return self.describe_key();
        }
        self.word("TABLE");
        Ok(Statement::Describe { name: self.object_name("the name of a table, view or index")? })
    }

    pub(super) fn check(&mut self) -> Result<Statement> {
        self.expect_word("CHECK")?;
        let target = if self.word("DATABASE") {
            CheckTarget::Database
        } else if self.word("TABLE") {
            CheckTarget::Table(self.object_name("the name of a table")?)
        } else if self.word("INDEX") {
            CheckTarget::Index(self.object_name("the name of an index")?)
        } else {
            return Err(self.expected("TABLE, INDEX or DATABASE"));
        };
        let fast = self.word("FAST");
        if !fast {
            self.word("FULL");
        }
        let limit = if self.word("LIMIT") { Some(self.count("a number")?) } else { None };
        Ok(Statement::Check(Check { target, fast, limit }))
    }

    fn count(&mut self, what: &str) -> Result<u64> {
        let from = self.here();
        u64::try_from(self.integer(what)?).map_err(|_| {
            self.error_at("this cannot be negative", self.span_since(from)).state(sqlstate::OUT_OF_RANGE)
        })
    }

    pub(super) fn backup(&mut self) -> Result<Statement> {
        self.expect_word("BACKUP")?;
        self.expect_word("TO")?;
        Ok(Statement::Backup { path: self.text("the path of a directory, in quotes")? })
    }

    pub(super) fn repair(&mut self) -> Result<Statement> {
        self.expect_word("REPAIR")?;
        if self.word("TABLE") {
            let table = self.object_name("the name of a table")?;
            return Ok(Statement::RepairTable { table, dry_run: self.words(&["DRY", "RUN"]) });
        }
        if !self.word("INDEX") {
            return Err(self.expected("TABLE or INDEX"));
        }
        let index = self.object_name("the name of an index")?;
        Ok(Statement::RepairIndex { index, dry_run: self.words(&["DRY", "RUN"]) })
    }

    pub(super) fn set(&mut self) -> Result<Statement> {
        self.expect_word("SET")?;
        let local = self.word("LOCAL");
        let _ = !local && self.word("SESSION");
        if self.words(&["TIME", "ZONE"]) {
            return Ok(Statement::Set { local, name: "time_zone".to_owned(), value: self.option_value()? });
        }
        let name = self.setting("the name of a setting")?;
        if !self.token(&Token::Eq) && !self.word("TO") {
            let error = self.expected("\"=\"");
            return Err(match name.as_str() {
                "names" => error.hint("leave it out: every text is UTF-8"),
                "transaction" => error.hint("write BEGIN READ ONLY; all isolation levels are the strongest"),
                _ => error,
            });
        }
        let is_path = name == "search_path" && !self.peek_words(&["DEFAULT"]);
        let value = if is_path { self.search_path()? } else { self.option_value()? };
        Ok(Statement::Set { local, name, value })
    }

    /// The schemas of `SET search_path = "$user", public`.
    fn search_path(&mut self) -> Result<Value> {
        let schema = |p: &mut Self| match p.peek().token {
            Token::Word(_) => p.name("a schema").map(|name| name_of(&name)),
            _ => p.option_value().map(|value| value.to_string()),
        };
        Ok(Value::Text(self.list(schema)?.join(", ")))
    }

    /// `RESET name`, `RESET ALL`: back to the default.
    pub(super) fn reset(&mut self) -> Result<Statement> {
        self.expect_word("RESET")?;
        let name =
            if self.word("ALL") { "all".to_owned() } else { self.setting("the name of a setting, or ALL")? };
        Ok(Statement::Set { local: false, name, value: Value::Null })
    }

    /// A name with dots, in lower case.
    fn setting(&mut self, what: &str) -> Result<String> {
        let mut name = name_of(&self.name(what)?);
        while self.token(&Token::Period) {
            name.push('.');
            name.push_str(&name_of(&self.name(what)?));
        }
        // PostgreSQL's name for it.
        Ok(if name == "timezone" { "time_zone".to_owned() } else { name })
    }
}
