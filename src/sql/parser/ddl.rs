//! Parses CREATE, DROP and TRUNCATE.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Ident};
use sqlparser::tokenizer::{Location, Token};

use super::Parser;
use super::dumps::numbers_itself;
use super::errors::elsewhere;
use crate::error::{Error, Result, Span, sqlstate};
use crate::sql::ast::*;
use crate::sql::visit::visit_expressions;
use crate::sql::{name_of, refused};
use crate::value::ColumnType;

/// The elements in the parentheses of CREATE TABLE, while they are read.
#[derive(Default)]
pub(super) struct Elements {
    /// The table's name; `None`: ALTER TABLE adds columns to it.
    table: Option<Ident>,
    pub(super) columns: Vec<ColumnDef>,
    pub(super) primary_key: Option<Vec<KeyExpr>>,
    pub(super) uniques: Vec<UniqueDef>,
    pub(super) checks: Vec<CheckDef>,
    pub(super) references: Vec<ReferenceDef>,
    families: Vec<FamilyDef>,
}

impl Parser<'_> {
    pub(super) fn create(&mut self) -> Result<Statement> {
        self.expect_word("CREATE")?;
        let or_replace = self.words(&["OR", "REPLACE"]);
        if self.word("VIEW") {
            return self.create_view(or_replace);
        }
        if or_replace {
            return Err(self.about_object(self.expected("VIEW")));
        }
        if self.word("TABLE") {
            return self.create_table();
        }
        if self.word("SNAPSHOT") {
            return Ok(Statement::CreateSnapshot { name: self.name("a name for the snapshot")? });
        }
        let unique = self.word("UNIQUE");
        if self.word("INDEX") {
            return self.create_index(unique);
        }
        if unique {
            return Err(self.expected("INDEX"));
        }
        let error = self.expected("TABLE, INDEX or VIEW");
        // In HBase's shell, names are texts.
        if let Token::SingleQuotedString(table) = &self.peek().token {
            return Err(error.hint(format!("write CREATE TABLE {table} (id BIGINT PRIMARY KEY, a TEXT)")));
        }
        let instead = self.peek_word().and_then(|word| elsewhere(&word.value));
        Err(self.about_object(error.hint(instead.unwrap_or("CREATE makes tables, indexes and views"))))
    }

    fn create_table(&mut self) -> Result<Statement> {
        let if_not_exists = self.if_not_exists();
        let name = self.object_name("the name of the table")?;
        let mut elements = Elements { table: Some(name.clone()), ..Elements::default() };
        if self.peek_words(&["LIKE"]) {
            return Err(self.no_copies(self.next_span()));
        }
        let is_of_query = self.peek_words(&["AS"]) || self.peek_words(&["WITH"]);
        if !is_of_query {
            self.expect_token(Token::LParen)?;
            self.list(|p| p.table_element(&mut elements))?;
            self.end_of_list()?;
        }
        self.kinds_of_table();
        let options = self.options()?;
        self.no_bare_option("WITH ")?;
        self.no_salt(elements.primary_key.as_deref().unwrap_or_default(), "PRIMARY KEY")?;
        let split = if self.word("SPLIT") { Some(self.split()?) } else { None };
        let query = match self.word("AS") {
            true => Some(self.query()?),
            false if is_of_query => return Err(self.expected("AS and a query")),
            false => None,
        };
        let Elements { columns, primary_key, uniques, checks, references, families, .. } = elements;
        Ok(Statement::CreateTable(Box::new(CreateTable {
            if_not_exists,
            name,
            columns,
            primary_key,
            uniques,
            checks,
            references,
            families,
            options,
            split,
            query,
        })))
    }

    /// SQLite's `WITHOUT ROWID` and `STRICT`, which hold for every table.
    fn kinds_of_table(&mut self) {
        while self.words(&["WITHOUT", "ROWID"]) || self.word("STRICT") {
            self.token(&Token::Comma);
        }
    }

    fn table_element(&mut self, elements: &mut Elements) -> Result<()> {
        if self.starts_family() {
            elements.families.push(self.family()?);
            return Ok(());
        }
        let name = match self.word("CONSTRAINT") {
            true => Some(self.name("the name of the constraint")?),
            false => None,
        };
        if self.primary_key(elements)? {
            elements.primary_key = Some(self.keys()?);
        } else if self.word("UNIQUE") {
            elements.uniques.push(UniqueDef { name, keys: self.keys()? });
        } else if self.word("CHECK") {
            elements.checks.push(self.check_constraint(name)?);
        } else if self.peek_words(&["FOREIGN", "KEY"]) {
            elements.references.push(self.foreign_key(name)?);
        } else if name.is_some() {
            return Err(self.expected("PRIMARY KEY, UNIQUE, CHECK or FOREIGN KEY"));
        } else if self.peek_words(&["INDEX"]) || self.peek_words(&["KEY"]) {
            let index = self.index_of_table(elements.table.as_ref());
            // It may be a column of that name.
            return self.column(elements).map_err(|e| match index {
                Some(index)
                    if e.what().starts_with("unknown type") || e.what().starts_with("expected a type") =>
                {
                    index
                }
                _ => e,
            });
        } else if self.peek_words(&["LIKE"]) {
            let like = self.next_span();
            // It may be a column of that name.
            return self.column(elements).map_err(|e| match e.what().starts_with("unknown type") {
                true => self.no_copies(like),
                false => e,
            });
        } else {
            self.column(elements)?;
        }
        Ok(())
    }

    /// The error for MySQL's `INDEX k (a, b)`, if that comes next.
    fn index_of_table(&self, table: Option<&Ident>) -> Option<Error> {
        let table = table?;
        let token = |n: usize| self.inner.peek_nth_token_ref(n);
        let (name, open) = match &token(1).token {
            Token::LParen => (String::new(), 1),
            Token::Word(name) => (format!("{name} "), 2),
            _ => return None,
        };
        let close = (open..).find(|n| matches!(token(*n).token, Token::RParen | Token::EOF))?;
        if token(open).token != Token::LParen || token(close).token == Token::EOF {
            return None;
        }
        let keys = self.source.text(token(open).span.start, token(close).span.end);
        Some(
            self.error("an index is a statement of its own")
                .hint(format!("behind this one, write CREATE INDEX {name}ON {table} {keys}")),
        )
    }

    /// Errors: Phoenix's `SALT_BUCKETS = 4` behind a key, of a table or an index.
    fn no_salt(&self, keys: &[KeyExpr], before: &str) -> Result<()> {
        if !self.peek_words(&["SALT_BUCKETS"]) {
            return Ok(());
        }
        let error = self.expected("the end of the statement");
        let buckets = match self.nth(2) {
            Token::Number(digits, _) => digits.as_str(),
            _ => "16",
        };
        let mut columns: Vec<String> = Vec::new();
        let mut add = |expr: &Expr| {
            match expr {
                Expr::Identifier(name) if !columns.contains(&name.to_string()) => {
                    columns.push(name.to_string())
                }
                _ => {}
            }
            ControlFlow::<()>::Continue(())
        };
        let _ = keys.iter().try_for_each(|key| visit_expressions(&key.expr, &mut add));
        if columns.is_empty() {
            return Err(error);
        }
        let parts = keys.iter().map(|key| key.sql.clone() + if key.descending { " DESC" } else { "" });
        let (columns, parts) = (columns.join(", "), parts.collect::<Vec<_>>().join(", "));
        Err(error.hint(format!(
            "lead the key with a bucket: {before} (md5_bucket({columns}, {buckets}), {parts})"
        )))
    }

    fn no_copies(&self, like: Span) -> Error {
        self.error_at("a table cannot be declared LIKE another", like)
            .hint("CREATE TABLE t (PRIMARY KEY (id)) AS SELECT * FROM u LIMIT 0 has the columns of u")
    }

    /// `FAMILY c (a, ...`, as opposed to a column called family, of type `varchar(10)` say.
    fn starts_family(&self) -> bool {
        self.peek_words(&["FAMILY"])
            && matches!(self.nth(1), Token::Word(_))
            && *self.nth(2) == Token::LParen
            && matches!(self.nth(3), Token::Word(_) | Token::RParen)
    }

    fn family(&mut self) -> Result<FamilyDef> {
        self.expect_word("FAMILY")?;
        let name = self.name("the name of the family")?;
        // A family may be empty: all its columns may have been dropped.
        let is_empty = *self.nth(1) == Token::RParen;
        let columns = match is_empty && self.token(&Token::LParen) && self.token(&Token::RParen) {
            true => Vec::new(),
            false => self.names("a column")?,
        };
        Ok(FamilyDef { name, columns, options: self.options()? })
    }

    /// Reads PRIMARY KEY, if it comes next; an error if it is the table's second.
    fn primary_key(&mut self, elements: &Elements) -> Result<bool> {
        let from = self.here();
        if !self.word("PRIMARY") {
            return Ok(false);
        }
        self.expect_word("KEY")?;
        if elements.primary_key.is_none() {
            return Ok(true);
        }
        Err(self
            .error_at("a second PRIMARY KEY", self.span_since(from))
            .why("a row is stored under one rowkey")
            .hint("write one PRIMARY KEY (a, b, ...) with all its parts; make the other a UNIQUE")
            .state(sqlstate::INVALID_TABLE_DEFINITION))
    }

    pub(super) fn check_constraint(&mut self, name: Option<sqlparser::ast::Ident>) -> Result<CheckDef> {
        self.expect_token(Token::LParen)?;
        let (expr, sql, span) = self.expr_text()?;
        self.expect_token(Token::RParen)?;
        Ok(CheckDef { name, expr, sql, span })
    }

    pub(super) fn column(&mut self, elements: &mut Elements) -> Result<()> {
        let from = self.here();
        let name = self.name("a column, constraint or FAMILY")?;
        if self.peek_token(&Token::Period) {
            return Err(self.column_of_family(&name));
        }
        let name_span = self.span_since(from);
        let type_from = self.here();
        // ALTER TABLE adds columns without constraints.
        let is_added = elements.table.is_none();
        let spec = self.column_type(&if is_added { String::new() } else { name.to_string() })?;
        let is_decimal = matches!(spec.data_type, ColumnType::Decimal { .. });
        let mut column = ColumnDef {
            name,
            data_type: spec.data_type,
            max_len: spec.max_len,
            without_digits: is_decimal && !self.text_since(type_from).contains('('),
            not_null: spec.serial,
            default: None,
            identity: spec.serial.then_some(Identity { always: false, start: 1, increment: 1 }),
            span: name_span,
        };
        let mut nullable = false;
        while self.column_option(&mut column, &mut nullable, elements)? {}
        column.span = self.span_since(from);
        let name = name_of(&column.name);
        if elements.columns.iter().any(|other| name_of(&other.name) == name) {
            return Err(self
                .error_at(format!("a second column \"{name}\""), name_span)
                .state(sqlstate::DUPLICATE_COLUMN));
        }
        elements.columns.push(column);
        Ok(())
    }

    /// The error for `f.c BIGINT`, as Phoenix has it.
    fn column_of_family(&self, family: &Ident) -> Error {
        let column = match self.nth(1) {
            Token::Word(word) => word.to_string(),
            _ => "c".to_owned(),
        };
        let ty = match self.nth(2) {
            Token::Word(word) => word.to_string(),
            _ => "BIGINT".to_owned(),
        };
        let is_added = self.inner.token_at(0).token == Token::make_keyword("ALTER");
        let hint = match is_added {
            true => format!("write the family behind the type: ADD {column} {ty} FAMILY {family}"),
            false => format!("write {column} alone, and behind the columns: FAMILY {family} ({column}, ...)"),
        };
        self.error("a column is not named together with its family").hint(hint)
    }

    /// Reads one option of a column; false if none comes next. `nullable` records that NULL was given.
    fn column_option(
        &mut self,
        column: &mut ColumnDef,
        nullable: &mut bool,
        elements: &mut Elements,
    ) -> Result<bool> {
        let from = self.here();
        let name = match self.word("CONSTRAINT") {
            true => Some(self.name("the name of the constraint")?),
            false => None,
        };
        if self.word("NOT") {
            self.expect_word("NULL")?;
            column.not_null = true;
            if *nullable {
                return Err(self.contradiction(from));
            }
        } else if self.word("NULL") {
            if column.not_null {
                return Err(self.contradiction(from));
            }
            *nullable = true;
        } else if self.peek_words(&["DEFAULT"]) {
            let default = self.default()?;
            if column.default.is_some() || column.identity.is_some() {
                return Err(self.second_default(from));
            }
            let table = elements.table.as_ref();
            match table.and_then(|table| numbers_itself(table, &column.name, &default)) {
                Some(identity) => column.identity = Some(identity),
                None => column.default = Some(default),
            }
        } else if self.primary_key(elements)? {
            // Phoenix has no comma before the key of the table.
            let is_of_table = name.is_some() && self.peek_token(&Token::LParen);
            elements.primary_key = Some(if is_of_table { self.keys()? } else { vec![key_of(column)] });
            self.no_order_of_key(&column.name)?;
            self.no_conflict_clause()?;
        } else if self.word("UNIQUE") {
            elements.uniques.push(UniqueDef { name, keys: vec![key_of(column)] });
            self.no_conflict_clause()?;
        } else if self.word("CHECK") {
            let check = self.check_constraint(name)?;
            elements.checks.push(check);
        } else if let Some(identity) = self.identity()? {
            if column.identity.replace(identity).is_some() || column.default.is_some() {
                return Err(self.second_default(from));
            }
        } else if self.peek_words(&["REFERENCES"]) {
            let columns = vec![column.name.clone()];
            elements.references.push(self.references(name, columns, from)?);
        } else if self.peek_words(&["COLLATE"]) {
            let place = self.next_span();
            self.expect_word("COLLATE")?;
            let collation = self.inner.parse_object_name(false);
            let collation = self.lift(collation)?;
            if !refused::is_byte_order(&collation) {
                let name = column.name.to_string();
                return Err(refused::no_collation(&collation.to_string(), &name, Some(place)));
            }
        } else if name.is_some() {
            return Err(self.expected("a constraint"));
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Errors: `PRIMARY KEY DESC`. ASC is skipped.
    fn no_order_of_key(&mut self, column: &Ident) -> Result<()> {
        if self.peek_words(&["DESC"]) {
            return Err(self
                .expected("\",\" or \")\"")
                .hint(format!("behind the columns, the key has an order: PRIMARY KEY ({column} DESC)")));
        }
        self.word("ASC");
        Ok(())
    }

    /// Errors: SQLite's `ON CONFLICT REPLACE` behind a key.
    fn no_conflict_clause(&self) -> Result<()> {
        match self.peek_words(&["ON", "CONFLICT"]) {
            true => Err(self.expected("\",\" or \")\"").hint(
                "the statement says it: UPSERT INTO t ... replaces, INSERT INTO t ... ON CONFLICT DO NOTHING keeps what is \
                 there",
            )),
            false => Ok(()),
        }
    }

    fn contradiction(&self, from: Location) -> Error {
        self.error_at("this column is both NULL and NOT NULL", self.span_since(from)).hint("keep one of them")
    }

    fn second_default(&self, from: Location) -> Error {
        self.error_at("this column has two defaults", self.span_since(from))
            .why("a DEFAULT and an identity both say what it gets when nothing is given")
            .hint("keep one of them")
    }

    /// `DEFAULT expr`; a NOT NULL after it belongs to the column, not to `expr`.
    pub(super) fn default(&mut self) -> Result<sqlparser::ast::Expr> {
        let option = self.inner.parse_optional_column_option();
        match self.lift(option)? {
            Some(sqlparser::ast::ColumnOption::Default(expr)) => Ok(expr),
            _ => Err(self.expected("DEFAULT and an expression")),
        }
    }

    /// Reads `GENERATED ... AS IDENTITY` or AUTOINCREMENT, if it comes next.
    pub(super) fn identity(&mut self) -> Result<Option<Identity>> {
        if self.word("AUTOINCREMENT") || self.word("AUTO_INCREMENT") {
            return Ok(Some(Identity { always: false, start: 1, increment: 1 }));
        }
        if !self.word("GENERATED") {
            return Ok(None);
        }
        let always = self.word("ALWAYS");
        if !always && !self.words(&["BY", "DEFAULT"]) {
            return Err(self.expected("ALWAYS or BY DEFAULT"));
        }
        self.expect_word("AS")?;
        if self.peek_token(&Token::LParen) {
            return Err(self
                .expected("IDENTITY")
                .why("columns computed from others are not stored")
                .hint("compute it in a view, or use the expression in an index: CREATE INDEX ON t (...)"));
        }
        self.expect_word("IDENTITY")?;
        let mut identity = Identity { always, start: 1, increment: 1 };
        if self.token(&Token::LParen) {
            while !self.token(&Token::RParen) {
                self.identity_option(&mut identity)?;
                self.token(&Token::Comma);
            }
        }
        Ok(Some(identity))
    }

    /// What pg_dump writes besides is so here, too: a sequence is called by its table and column, and has no bounds.
    fn identity_option(&mut self, identity: &mut Identity) -> Result<()> {
        if self.word("START") {
            self.word("WITH");
            identity.start = self.integer("a number")?;
        } else if self.word("INCREMENT") {
            self.word("BY");
            let from = self.here();
            identity.increment = self.integer("a number")?;
            if identity.increment == 0 {
                return Err(self.error_at("an identity cannot stand still", self.span_since(from)));
            }
        } else if self.words(&["SEQUENCE", "NAME"]) {
            self.object_name("the name of a sequence")?;
        } else if self.word("CACHE") {
            self.integer("a number")?;
        } else if !self.words(&["NO", "MINVALUE"])
            && !self.words(&["NO", "MAXVALUE"])
            && !self.words(&["NO", "CYCLE"])
        {
            return Err(self.expected("START WITH or INCREMENT BY"));
        }
        Ok(())
    }

    /// `(key [ASC | DESC], ...)`
    pub(super) fn keys(&mut self) -> Result<Vec<KeyExpr>> {
        self.expect_token(Token::LParen)?;
        let keys = self.list(Self::key)?;
        self.end_of_list()?;
        Ok(keys)
    }

    fn key(&mut self) -> Result<KeyExpr> {
        let (expr, sql, span) = self.expr_text()?;
        // PostgreSQL's `text_pattern_ops`: texts are in the order of their bytes anyway.
        if self.peek_word().is_some_and(|word| word.value.to_lowercase().ends_with("_pattern_ops")) {
            self.inner.advance_token();
        }
        let descending = self.word("DESC");
        if !descending {
            self.word("ASC");
        }
        self.nulls_order(descending)?;
        Ok(KeyExpr { expr, descending, sql, span })
    }

    /// NULLS FIRST or LAST may be written only if it is the order that applies anyway.
    fn nulls_order(&mut self, descending: bool) -> Result<()> {
        let (kept, other) = match descending {
            true => (["NULLS", "LAST"], ["NULLS", "FIRST"]),
            false => (["NULLS", "FIRST"], ["NULLS", "LAST"]),
        };
        if self.peek_words(&other) {
            let direction = if descending { "a descending" } else { "an ascending" };
            return Err(self
                .error(format!("{} is not possible here", other.join(" ")))
                .why(format!("in {direction} key part, NULLs sort {}", kept[1].to_lowercase()))
                .hint(format!("leave out {}", other.join(" "))));
        }
        self.words(&kept);
        Ok(())
    }

    /// `[WITH (name = value, ...)]`
    pub(super) fn options(&mut self) -> Result<Vec<OptionDef>> {
        if self.word("WITH") { self.options_in_parentheses() } else { Ok(Vec::new()) }
    }

    /// Errors: an option without parentheses, as Phoenix has it: `TTL = 86400`.
    pub(super) fn no_bare_option(&self, before: &str) -> Result<()> {
        let option = match () {
            () if self.peek_words(&["TTL"]) => "ttl = '30 days'",
            () if self.peek_words(&["VERSIONS"]) => "versions = 3",
            () => return Ok(()),
        };
        let error =
            self.expected(if before == "SET " { "\"(\"" } else { "WITH or the end of the statement" });
        Err(error.hint(format!("options stand in parentheses: {before}({option})")))
    }

    /// `(name = value, ...)`
    pub(super) fn options_in_parentheses(&mut self) -> Result<Vec<OptionDef>> {
        self.expect_token(Token::LParen)?;
        let options = self.list(|p| {
            let from = p.here();
            let name = name_of(&p.name("the name of an option")?);
            p.expect_token(Token::Eq)?;
            let value = p.option_value()?;
            Ok(OptionDef { name, value, span: p.span_since(from) })
        })?;
        self.end_of_list()?;
        Ok(options)
    }

    fn create_index(&mut self, unique: bool) -> Result<Statement> {
        self.word("CONCURRENTLY"); // Every build is online.
        let if_not_exists = self.if_not_exists();
        let name = match self.peek_words(&["ON"]) {
            true => None,
            false => Some(self.object_name("the name of the index, or ON")?),
        };
        self.expect_word("ON")?;
        let table = self.object_name("the name of the table")?;
        self.index_method()?;
        let keys = self.keys()?;
        self.index_method()?;
        let of_index = name.as_ref().map_or_else(String::new, |name| format!("{name} "));
        self.no_salt(
            &keys,
            &format!("CREATE {}INDEX {of_index}ON {table}", if unique { "UNIQUE " } else { "" }),
        )?;
        let include = if self.word("INCLUDE") { self.names("a column")? } else { Vec::new() };
        let (filter, filter_sql) = match self.word("WHERE") {
            true => {
                let (expr, sql, _) = self.expr_text()?;
                (Some(expr), Some(sql))
            }
            false => (None, None),
        };
        if self.peek_words(&["WITH"]) {
            return Err(self
                .expected("the end of the statement")
                .hint("leave it out: an index has no options"));
        }
        Ok(Statement::CreateIndex(Box::new(CreateIndex {
            unique,
            if_not_exists,
            name,
            table,
            keys,
            include,
            filter,
            filter_sql,
        })))
    }

    /// Skips `USING BTREE`. Errors: another method.
    fn index_method(&mut self) -> Result<()> {
        if !self.word("USING") || self.word("BTREE") {
            return Ok(());
        }
        let error = self.expected("BTREE").why("every index is sorted by its key");
        Err(error.hint("leave USING out"))
    }

    fn create_view(&mut self, or_replace: bool) -> Result<Statement> {
        let if_not_exists = self.if_not_exists();
        let name = self.object_name("the name of the view")?;
        let columns = if self.peek_token(&Token::LParen) { self.names("a column")? } else { Vec::new() };
        self.expect_word("AS")?;
        let from = self.here();
        let query = self.query()?;
        let sql = self.text_since(from);
        let view = CreateView { or_replace, if_not_exists, name, columns, query, sql };
        Ok(Statement::CreateView(Box::new(view)))
    }

    pub(super) fn drop(&mut self) -> Result<Statement> {
        self.expect_word("DROP")?;
        let mut statement = if self.word("TABLE") {
            let if_exists = self.if_exists();
            let names = self.list(|p| p.object_name("the name of a table"))?;
            Statement::DropTable { if_exists, names, cascade: false }
        } else if self.word("INDEX") {
            self.word("CONCURRENTLY"); // Nobody waits for it.
            let if_exists = self.if_exists();
            Statement::DropIndex { if_exists, name: self.object_name("the name of an index")? }
        } else if self.word("VIEW") {
            let if_exists = self.if_exists();
            Statement::DropView { if_exists, name: self.object_name("the name of a view")? }
        } else if self.word("SNAPSHOT") {
            let if_exists = self.if_exists();
            Statement::DropSnapshot { if_exists, name: self.name("the name of a snapshot")? }
        } else {
            let error = self.expected("TABLE, INDEX or VIEW");
            return Err(match self.hbase_hint() {
                Some(instead) => error.hint(instead),
                None => self.about_object(error),
            });
        };
        if let Statement::DropIndex { name, .. } = &statement
            && self.peek_words(&["ON"])
        {
            let hint = format!("write DROP INDEX {name}: no other table has an index of that name");
            return Err(self.expected("the end of the statement").hint(hint));
        }
        if self.peek_token(&Token::Comma) {
            let hint = format!("write a {} for each", statement.kind_name());
            return Err(self.expected("the end of the statement").hint(hint));
        }
        let cascades = !self.word("RESTRICT") && self.word("CASCADE");
        if let Statement::DropTable { cascade, .. } = &mut statement {
            *cascade = cascades;
        }
        Ok(statement)
    }

    pub(super) fn truncate(&mut self) -> Result<Statement> {
        self.expect_word("TRUNCATE")?;
        self.word("TABLE");
        let name = self.object_name("the name of a table")?;
        if self.peek_token(&Token::Comma) {
            return Err(self.expected("the end of the statement").hint("write a TRUNCATE for each table"));
        }
        if self.peek_words(&["RESTART"]) {
            return Err(self
                .error("TRUNCATE does not count anew")
                .why("what an identity has counted stays counted, so that no number comes twice")
                .hint(
                    "leave RESTART IDENTITY out; ALTER TABLE t ALTER COLUMN id RESTART WITH 1 counts anew",
                ));
        }
        self.words(&["CONTINUE", "IDENTITY"]);
        let cascade = !self.word("RESTRICT") && self.word("CASCADE");
        Ok(Statement::Truncate { name, cascade })
    }
}

/// The column as a key part.
fn key_of(column: &ColumnDef) -> KeyExpr {
    KeyExpr {
        expr: sqlparser::ast::Expr::Identifier(column.name.clone()),
        descending: false,
        sql: column.name.to_string(),
        span: column.span,
    }
}
