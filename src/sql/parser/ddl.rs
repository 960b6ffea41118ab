//! Parses CREATE, DROP, ALTER and TRUNCATE.

use sqlparser::ast::Ident;
use sqlparser::tokenizer::{Location, Token};

use super::Parser;
use super::errors::elsewhere;
use super::types::TypeSpec;
use crate::error::{Error, Result, sqlstate};
use crate::sql::ast::*;
use crate::sql::{name_of, refused};
use crate::value::ColumnType;

/// The elements in the parentheses of CREATE TABLE, while they are read.
#[derive(Default)]
struct Elements {
    columns: Vec<ColumnDef>,
    primary_key: Option<Vec<KeyExpr>>,
    uniques: Vec<UniqueDef>,
    checks: Vec<CheckDef>,
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
            return Err(self.expected("VIEW"));
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
        let instead = self.peek_word().and_then(|word| elsewhere(&word.value));
        let hint = instead.unwrap_or("CREATE makes tables, indexes and views");
        Err(self.expected("TABLE, INDEX or VIEW").hint(hint))
    }

    fn create_table(&mut self) -> Result<Statement> {
        let if_not_exists = self.if_not_exists();
        let name = self.object_name("the name of the table")?;
        if self.word("AS") {
            let query = self.query()?;
            return Ok(Statement::CreateTableAs(Box::new(CreateTableAs { if_not_exists, name, query })));
        }
        self.expect_token(Token::LParen)?;
        let mut elements = Elements::default();
        self.list(|p| p.table_element(&mut elements))?;
        self.end_of_list()?;
        self.kinds_of_table();
        let options = self.options()?;
        self.no_bare_option("WITH ")?;
        let split = if self.word("SPLIT") { Some(self.split()?) } else { None };
        let Elements { columns, primary_key, uniques, checks, families } = elements;
        Ok(Statement::CreateTable(Box::new(CreateTable {
            if_not_exists,
            name,
            columns,
            primary_key,
            uniques,
            checks,
            families,
            options,
            split,
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
            return Err(self.no_foreign_keys());
        } else if name.is_some() {
            return Err(self.expected("PRIMARY KEY, UNIQUE or CHECK"));
        } else {
            self.column(elements)?;
        }
        Ok(())
    }

    /// `FAMILY c (a, ...`, as opposed to a column called family, of type `varchar(10)` say.
    fn starts_family(&self) -> bool {
        let token = |n| &self.inner.peek_nth_token_ref(n).token;
        self.peek_words(&["FAMILY"])
            && matches!(token(1), Token::Word(_))
            && *token(2) == Token::LParen
            && matches!(token(3), Token::Word(_) | Token::RParen)
    }

    fn family(&mut self) -> Result<FamilyDef> {
        self.expect_word("FAMILY")?;
        let name = self.name("the name of the family")?;
        // A family may be empty: all its columns may have been dropped.
        let is_empty = self.inner.peek_nth_token_ref(1).token == Token::RParen;
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

    fn check_constraint(&mut self, name: Option<sqlparser::ast::Ident>) -> Result<CheckDef> {
        self.expect_token(Token::LParen)?;
        let (expr, sql, span) = self.expr_text()?;
        self.expect_token(Token::RParen)?;
        Ok(CheckDef { name, expr, sql, span })
    }

    fn no_foreign_keys(&self) -> Error {
        Error::unsupported("foreign keys are not checked")
            .hint("leave the constraint out; index the column, and join on it")
            .at(self.next_span())
    }

    fn column(&mut self, elements: &mut Elements) -> Result<()> {
        let from = self.here();
        let name = self.name("a column, constraint or FAMILY")?;
        if self.peek_token(&Token::Period) {
            return Err(self.column_of_family(&name));
        }
        let name_span = self.span_since(from);
        let type_from = self.here();
        let spec = self.column_type()?;
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
        let column = match &self.inner.peek_nth_token_ref(1).token {
            Token::Word(word) => word.value.as_str(),
            _ => "c",
        };
        let hint = format!("write {column} alone, and behind the columns: FAMILY {family} ({column}, ...)");
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
            if column.default.replace(default).is_some() || column.identity.is_some() {
                return Err(self.second_default(from));
            }
        } else if self.primary_key(elements)? {
            // Phoenix has no comma before the key of the table.
            let is_of_table = name.is_some() && self.peek_token(&Token::LParen);
            elements.primary_key = Some(if is_of_table { self.keys()? } else { vec![key_of(column)] });
        } else if self.word("UNIQUE") {
            elements.uniques.push(UniqueDef { name, keys: vec![key_of(column)] });
        } else if self.word("CHECK") {
            let check = self.check_constraint(name)?;
            elements.checks.push(check);
        } else if let Some(identity) = self.identity()? {
            if column.identity.replace(identity).is_some() || column.default.is_some() {
                return Err(self.second_default(from));
            }
        } else if self.peek_words(&["REFERENCES"]) {
            return Err(self.no_foreign_keys());
        } else if self.peek_words(&["COLLATE"]) {
            return Err(refused::no_collation(Some(self.next_span())));
        } else if name.is_some() {
            return Err(self.expected("a constraint"));
        } else {
            return Ok(false);
        }
        Ok(true)
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
    fn default(&mut self) -> Result<sqlparser::ast::Expr> {
        let option = self.inner.parse_optional_column_option();
        match self.lift(option)? {
            Some(sqlparser::ast::ColumnOption::Default(expr)) => Ok(expr),
            _ => Err(self.expected("DEFAULT and an expression")),
        }
    }

    /// Reads `GENERATED ... AS IDENTITY` or AUTOINCREMENT, if it comes next.
    fn identity(&mut self) -> Result<Option<Identity>> {
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
        } else {
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
    fn no_bare_option(&self, before: &str) -> Result<()> {
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
    fn options_in_parentheses(&mut self) -> Result<Vec<OptionDef>> {
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
        let include = if self.word("INCLUDE") { self.names("a column")? } else { Vec::new() };
        let (filter, filter_sql) = match self.word("WHERE") {
            true => {
                let (expr, sql, _) = self.expr_text()?;
                (Some(expr), Some(sql))
            }
            false => (None, None),
        };
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
        let statement = if self.word("TABLE") {
            let if_exists = self.if_exists();
            Statement::DropTable { if_exists, names: self.list(|p| p.object_name("the name of a table"))? }
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
            return Err(self.expected("TABLE, INDEX or VIEW"));
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
        if !self.word("RESTRICT") {
            self.word("CASCADE");
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
                .error("numbers do not begin again")
                .why("what an identity has counted stays counted, so that no number comes twice")
                .hint("leave RESTART IDENTITY out; or DROP TABLE, and CREATE TABLE anew"));
        }
        self.words(&["CONTINUE", "IDENTITY"]);
        if !self.word("RESTRICT") {
            self.word("CASCADE");
        }
        Ok(Statement::Truncate { name })
    }

    pub(super) fn alter(&mut self) -> Result<Statement> {
        self.expect_word("ALTER")?;
        if self.word("INDEX") {
            return self.rename_index();
        }
        if self.peek_words(&["VIEW"]) {
            return Err(self
                .error("a view cannot be altered")
                .hint("CREATE OR REPLACE VIEW v AS ... defines it anew; DROP VIEW and CREATE VIEW give it another name"));
        }
        self.expect_word("TABLE")?;
        let if_exists = self.if_exists();
        // No table has parts that inherit from it.
        if matches!(self.inner.peek_nth_token_ref(1).token, Token::Word(_)) {
            self.word("ONLY");
        }
        let name = self.object_name("the name of a table")?;
        if !if_exists && self.adds_unique() {
            return self.added_unique(name);
        }
        let mut ops = self.list(|p| {
            let from = p.here();
            Ok((p.alter_op()?, p.span_since(from)))
        })?;
        if ops.len() == 1
            && let Some((op, _)) = ops.pop()
        {
            return Ok(Statement::AlterTable(Box::new(AlterTable { if_exists, name, op })));
        }
        let alone = |op: &AlterTableOp| {
            Some(match op {
                AlterTableOp::Rekey { .. } | AlterTableOp::CancelRekey => "REKEY",
                AlterTableOp::RenameTable { .. } | AlterTableOp::RenameColumn { .. } => "RENAME",
                _ => return None,
            })
        };
        if let Some((what, span)) = ops.iter().find_map(|(op, span)| Some((alone(op)?, *span))) {
            return Err(self
                .error_at(format!("{what} stands alone in its ALTER TABLE"), span)
                .hint("write an ALTER TABLE for each change"));
        }
        let changes = ops.into_iter().map(|(op, _)| AlterTable { if_exists, name: name.clone(), op });
        Ok(Statement::AlterTogether(changes.collect()))
    }

    /// `ADD [CONSTRAINT u] UNIQUE (`
    fn adds_unique(&self) -> bool {
        let is_unique = |n| {
            let token = |n| &self.inner.peek_nth_token_ref(n).token;
            matches!(token(n), Token::Word(w) if w.value.eq_ignore_ascii_case("UNIQUE"))
                && *token(n + 1) == Token::LParen
        };
        self.peek_words(&["ADD", "UNIQUE"]) && is_unique(1)
            || self.peek_words(&["ADD", "CONSTRAINT"]) && is_unique(3)
    }

    /// The UNIQUE index that `ADD UNIQUE (a, ...)` stands for.
    fn added_unique(&mut self, table: Ident) -> Result<Statement> {
        self.expect_word("ADD")?;
        let name = match self.word("CONSTRAINT") {
            true => Some(self.name("the name of the constraint")?),
            false => None,
        };
        self.expect_word("UNIQUE")?;
        Ok(Statement::CreateIndex(Box::new(CreateIndex {
            unique: true,
            if_not_exists: false,
            name,
            table,
            keys: self.keys()?,
            include: Vec::new(),
            filter: None,
            filter_sql: None,
        })))
    }

    fn rename_index(&mut self) -> Result<Statement> {
        let if_exists = self.if_exists();
        let name = self.object_name("the name of an index")?;
        if !self.words(&["RENAME", "TO"]) {
            return Err(self
                .expected("RENAME TO")
                .why("an index cannot be altered otherwise")
                .hint("REPAIR INDEX i builds it anew; DROP INDEX and CREATE INDEX make another one"));
        }
        Ok(Statement::RenameIndex { if_exists, name, to: self.object_name("the new name")? })
    }

    fn alter_op(&mut self) -> Result<AlterTableOp> {
        if self.word("ADD") {
            if let Some(check) = self.new_constraint()? {
                return Ok(AlterTableOp::AddCheck(Box::new(check)));
            }
            self.word("COLUMN");
            return self.add_column();
        }
        if self.word("DROP") {
            if self.peek_words(&["PRIMARY", "KEY"]) {
                return Err(self
                    .error("a primary key cannot be dropped")
                    .hint("ALTER TABLE t REKEY (...) changes it"));
            }
            if self.word("CONSTRAINT") {
                let if_exists = self.if_exists();
                return Ok(AlterTableOp::DropConstraint { if_exists, name: self.name("a constraint")? });
            }
            self.word("COLUMN");
            let if_exists = self.if_exists();
            return Ok(AlterTableOp::DropColumn { if_exists, name: self.name("a column")? });
        }
        if self.word("ALTER") {
            self.word("COLUMN");
            let name = self.name("a column")?;
            return Ok(AlterTableOp::AlterColumn { name, change: self.column_change()? });
        }
        if self.words(&["RENAME", "TO"]) {
            return Ok(AlterTableOp::RenameTable { to: self.object_name("the new name")? });
        }
        if self.peek_words(&["RENAME", "CONSTRAINT"]) {
            return Err(self
                .error("a constraint cannot be renamed")
                .hint("DROP CONSTRAINT k, then ADD CONSTRAINT l CHECK (...)"));
        }
        if self.word("RENAME") {
            self.word("COLUMN");
            let from = self.name("a column, or TO")?;
            self.expect_word("TO")?;
            return Ok(AlterTableOp::RenameColumn { from, to: self.name("the new name")? });
        }
        if self.word("SPLIT") {
            return Ok(AlterTableOp::Split(self.split()?));
        }
        if self.words(&["REKEY", "CANCEL"]) {
            return Ok(AlterTableOp::CancelRekey);
        }
        if self.word("REKEY") {
            return Ok(AlterTableOp::Rekey { keys: self.keys()? });
        }
        if self.word("SET") {
            self.no_bare_option("SET ")?;
            return Ok(AlterTableOp::SetOptions(self.options_in_parentheses()?));
        }
        Err(self
            .expected("ADD, ALTER, DROP, RENAME, REKEY, SET or SPLIT")
            .hint("ALTER COLUMN c TYPE changes a column, REKEY (...) the key layout"))
    }

    fn column_change(&mut self) -> Result<ColumnChange> {
        if self.words(&["SET", "NOT", "NULL"]) {
            return Ok(ColumnChange::SetNotNull);
        }
        if self.words(&["DROP", "NOT", "NULL"]) {
            return Ok(ColumnChange::DropNotNull);
        }
        if self.words(&["DROP", "DEFAULT"]) {
            return Ok(ColumnChange::DropDefault);
        }
        if self.peek_words(&["SET", "DEFAULT"]) {
            self.expect_word("SET")?;
            return Ok(ColumnChange::SetDefault(Box::new(self.default()?)));
        }
        if self.words(&["SET", "DATA", "TYPE"]) || self.word("TYPE") {
            return Ok(ColumnChange::SetType(Box::new(self.new_type()?)));
        }
        Err(self.expected("TYPE, SET DEFAULT, DROP DEFAULT, SET NOT NULL or DROP NOT NULL"))
    }

    fn new_type(&mut self) -> Result<NewType> {
        let from = self.here();
        let TypeSpec { data_type, max_len, serial } = self.column_type()?;
        if serial {
            return Err(self
                .error_at("a column cannot become SERIAL", self.span_since(from))
                .hint("ADD a column that numbers itself"));
        }
        let using = if self.word("USING") { Some(self.expr()?) } else { None };
        Ok(NewType { data_type, max_len, using })
    }

    /// The CHECK of ADD CONSTRAINT, if it is one.
    fn new_constraint(&mut self) -> Result<Option<CheckDef>> {
        let name = match self.word("CONSTRAINT") {
            true => Some(self.name("the name of the constraint")?),
            false => None,
        };
        if self.word("CHECK") {
            return self.check_constraint(name).map(Some);
        }
        if self.peek_words(&["FOREIGN", "KEY"]) {
            return Err(self.no_foreign_keys());
        }
        let other = ["UNIQUE", "PRIMARY"].iter().find(|word| self.peek_words(&[word]));
        match (other, name) {
            (Some(other), _) => Err(self
                .error(format!("{other} cannot be added to a table"))
                .why("the rows that are there would have to be moved, or indexed")
                .hint(match *other {
                    "UNIQUE" => "write CREATE UNIQUE INDEX ON t (...)",
                    _ => "write PRIMARY KEY (...) into the CREATE TABLE; ALTER TABLE t REKEY (...) changes a key",
                })),
            (None, Some(_)) => Err(self.expected("CHECK")),
            (None, None) => Ok(None),
        }
    }

    fn add_column(&mut self) -> Result<AlterTableOp> {
        let if_not_exists = self.if_not_exists();
        let from = self.here();
        let mut elements = Elements::default();
        self.column(&mut elements)?;
        if elements.primary_key.is_some() || !elements.uniques.is_empty() || !elements.checks.is_empty() {
            return Err(Error::unsupported("a constraint cannot be added with a column")
                .why("the rows that are there would have to be checked, or moved")
                .hint("add the column first; then ADD CHECK (...), or CREATE UNIQUE INDEX for a UNIQUE")
                .at(self.span_since(from)));
        }
        let family = if self.word("FAMILY") { Some(self.name("the name of the family")?) } else { None };
        match elements.columns.pop() {
            Some(column) => {
                Ok(AlterTableOp::AddColumn(Box::new(AddColumn { if_not_exists, column, family })))
            }
            None => Err(self.expected("a column")),
        }
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
