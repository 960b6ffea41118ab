//! Parses ALTER.

use sqlparser::ast::Ident;
use sqlparser::tokenizer::Token;

use super::Parser;
use super::ddl::Elements;
use super::dumps::numbers_itself;
use super::types::TypeSpec;
use crate::error::{Error, Result, Span};
use crate::sql::ast::*;

impl Parser<'_> {
    pub(super) fn alter(&mut self) -> Result<Statement> {
        self.expect_word("ALTER")?;
        if self.word("INDEX") {
            return self.rename_index();
        }
        if self.peek_words(&["SEQUENCE"]) {
            return Err(self.no_sequence());
        }
        if self.peek_words(&["VIEW"]) {
            return Err(self
                .error("a view cannot be altered")
                .hint("CREATE OR REPLACE VIEW v AS ... defines it anew; DROP VIEW and CREATE VIEW give it another name"));
        }
        if let Some(instead) = self.hbase_hint() {
            return Err(self.expected("TABLE").hint(instead));
        }
        self.expect_word("TABLE")?;
        let if_exists = self.if_exists();
        // No table has parts that inherit from it.
        if matches!(self.nth(1), Token::Word(_)) {
            self.word("ONLY");
        }
        let name = self.object_name("the name of a table")?;
        if !if_exists && self.adds_unique() {
            return self.added_unique(name);
        }
        let ops = self.list(|p| {
            let from = p.here();
            let ops = p.alter_op()?;
            let span = p.span_since(from);
            Ok(ops.into_iter().map(move |op| (op, span)))
        })?;
        let mut ops: Vec<(AlterTableOp, Span)> = ops.into_iter().flatten().collect();
        for (op, _) in &mut ops {
            if let AlterTableOp::AlterColumn { name: column, change } = op
                && let ColumnChange::SetDefault(default) = change
                && let Some(identity) = numbers_itself(&name, column, default)
            {
                *change = ColumnChange::AddIdentity(identity);
            }
        }
        if ops.len() == 1
            && let Some((op, _)) = ops.pop()
        {
            return Ok(Statement::AlterTable(Box::new(AlterTable { if_exists, name, op })));
        }
        let alone = |op: &AlterTableOp| {
            Some(match op {
                AlterTableOp::Rekey { .. } | AlterTableOp::CancelRekey => "REKEY",
                AlterTableOp::AddKey { .. } => "ADD PRIMARY KEY",
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

    /// The error for ALTER SEQUENCE, with what stands for `ALTER SEQUENCE s OWNED BY t.c`.
    fn no_sequence(&mut self) -> Error {
        let error =
            self.expected("TABLE, INDEX or VIEW").why("there are no sequences: a column counts by itself");
        while !self.at_end() && !self.words(&["OWNED", "BY"]) {
            self.inner.advance_token();
        }
        let owner = self.inner.parse_object_name(false).ok();
        let mut parts = owner.iter().flat_map(|name| &name.0).rev().filter_map(|part| part.as_ident());
        error.hint(match (parts.next(), parts.next()) {
            (Some(column), Some(table)) => format!(
                "leave out what is said of the sequence, and write ALTER TABLE {table} ALTER COLUMN {column} ADD GENERATED \
                 BY DEFAULT AS IDENTITY"
            ),
            _ => "ALTER TABLE t ALTER COLUMN id RESTART WITH 50 sets the next number".to_owned(),
        })
    }

    /// `ADD [CONSTRAINT u] UNIQUE (`
    fn adds_unique(&self) -> bool {
        let is_unique = |n| self.nth_is(n, "UNIQUE") && *self.nth(n + 1) == Token::LParen;
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

    /// One change; a column with REFERENCES is two.
    fn alter_op(&mut self) -> Result<Vec<AlterTableOp>> {
        if !self.word("ADD") {
            return self.other_op().map(|op| vec![op]);
        }
        if let Some(constraint) = self.new_constraint()? {
            return Ok(vec![constraint]);
        }
        // A column may be called so, and have a type with digits.
        let is_family = self.peek_words(&["FAMILY"]) && *self.nth(2) == Token::LParen;
        let place = self.next_span();
        self.word("COLUMN");
        self.add_column().map_err(|e| match is_family {
            true => self
                .error_at("a family cannot be added", place)
                .hint("make a table that has it, CREATE TABLE u (..., FAMILY f (a, b)), and copy the rows"),
            false => e,
        })
    }

    fn other_op(&mut self) -> Result<AlterTableOp> {
        if self.word("DROP") {
            if self.peek_words(&["PRIMARY", "KEY"]) {
                return Err(self
                    .error("a primary key cannot be dropped")
                    .hint("ALTER TABLE t REKEY (...) changes it"));
            }
            // DROP FOREIGN KEY is MySQL's.
            if self.word("CONSTRAINT") || self.words(&["FOREIGN", "KEY"]) {
                let if_exists = self.if_exists();
                let name = self.name("a constraint")?;
                // Nothing depends on a constraint.
                if !self.word("RESTRICT") {
                    self.word("CASCADE");
                }
                return Ok(AlterTableOp::DropConstraint { if_exists, name });
            }
            self.word("COLUMN");
            let if_exists = self.if_exists();
            return Ok(AlterTableOp::DropColumn { if_exists, name: self.name("a column")? });
        }
        if self.word("ALTER") {
            self.word("COLUMN");
            let name = self.name("a column")?;
            let change = self.column_change()?;
            return Ok(AlterTableOp::AlterColumn { name, change });
        }
        if self.words(&["RENAME", "TO"]) {
            return Ok(AlterTableOp::RenameTable { to: self.object_name("the new name")? });
        }
        if self.peek_words(&["RENAME", "CONSTRAINT"]) {
            return Err(self
                .error("a constraint cannot be renamed")
                .hint("DROP CONSTRAINT k, then ADD CONSTRAINT l with what it was"));
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
        let error = self.expected("ADD, ALTER, DROP, RENAME, REKEY, SET or SPLIT");
        Err(error.hint(match self.taken().next().map(|token| &token.token) {
            Some(Token::Comma) => "each change begins with its word: ADD a INT, ADD b INT",
            _ => "ALTER COLUMN c TYPE changes a column, REKEY (...) the key layout",
        }))
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
        if self.word("RESTART") {
            let has_number = self.word("WITH") || !self.at_end() && !self.peek_token(&Token::Comma);
            let next = if has_number { Some(self.integer("a number")?) } else { None };
            return Ok(ColumnChange::Restart(next));
        }
        if self.peek_words(&["ADD", "GENERATED"]) {
            self.expect_word("ADD")?;
            return match self.identity()? {
                Some(identity) => Ok(ColumnChange::AddIdentity(identity)),
                None => Err(self.expected("GENERATED")),
            };
        }
        let error = self.expected("TYPE, SET DEFAULT, DROP DEFAULT, SET NOT NULL, DROP NOT NULL or RESTART");
        let of_identity = [["SET", "GENERATED"], ["DROP", "IDENTITY"]];
        Err(match of_identity.iter().any(|words| self.peek_words(words)) {
            true => error.hint("CREATE TABLE declares it: id BIGINT GENERATED BY DEFAULT AS IDENTITY"),
            false => error,
        })
    }

    fn new_type(&mut self) -> Result<NewType> {
        let from = self.here();
        let TypeSpec { data_type, max_len, serial } = self.column_type("")?;
        if serial {
            return Err(self
                .error_at("a column cannot become SERIAL", self.span_since(from))
                .hint("ADD a column that numbers itself"));
        }
        let using = if self.word("USING") { Some(self.expr()?) } else { None };
        Ok(NewType { data_type, max_len, using })
    }

    /// The PRIMARY KEY, CHECK or FOREIGN KEY of ADD CONSTRAINT, if it is one.
    fn new_constraint(&mut self) -> Result<Option<AlterTableOp>> {
        let name = match self.word("CONSTRAINT") {
            true => Some(self.name("the name of the constraint")?),
            false => None,
        };
        if self.word("CHECK") {
            return Ok(Some(AlterTableOp::AddCheck(Box::new(self.check_constraint(name)?))));
        }
        if self.peek_words(&["FOREIGN", "KEY"]) {
            return Ok(Some(AlterTableOp::AddReference(Box::new(self.foreign_key(name)?))));
        }
        if self.words(&["PRIMARY", "KEY"]) {
            return Ok(Some(AlterTableOp::AddKey { keys: self.keys()? }));
        }
        match name {
            _ if self.peek_words(&["UNIQUE"]) => Err(self
                .error("UNIQUE is added by itself")
                .why("it is an index, which is built while others write")
                .hint("write ALTER TABLE t ADD UNIQUE (...) as a statement of its own")),
            Some(_) => Err(self.expected("PRIMARY KEY, CHECK or FOREIGN KEY")),
            None => Ok(None),
        }
    }

    fn add_column(&mut self) -> Result<Vec<AlterTableOp>> {
        let if_not_exists = self.if_not_exists();
        let from = self.here();
        let mut elements = Elements::default();
        self.column(&mut elements)?;
        let has_keys = elements.primary_key.is_some() || !elements.uniques.is_empty();
        if has_keys || !elements.checks.is_empty() || if_not_exists && !elements.references.is_empty() {
            return Err(Error::unsupported("a constraint cannot be added with a column")
                .why("the rows that are there would have to be checked, or moved")
                .hint("add the column first; then ADD CHECK (...) or ADD FOREIGN KEY (...), or CREATE UNIQUE INDEX for a UNIQUE")
                .at(self.span_since(from)));
        }
        let family = if self.word("FAMILY") { Some(self.name("the name of the family")?) } else { None };
        match elements.columns.pop() {
            Some(column) => {
                let add = AlterTableOp::AddColumn(Box::new(AddColumn { if_not_exists, column, family }));
                let references = elements.references.into_iter();
                Ok(std::iter::once(add)
                    .chain(references.map(|of| AlterTableOp::AddReference(Box::new(of))))
                    .collect())
            }
            None => Err(self.expected("a column")),
        }
    }
}
