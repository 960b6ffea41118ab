//! Parses INSERT, UPSERT, UPDATE and DELETE.

use sqlparser::ast::{self, Expr, Ident, OptimizerHint, OptimizerHintStyle, SelectItem, TableWithJoins};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, Whitespace, Word};

use super::Parser;
use crate::error::{Error, Result, counted, sqlstate};
use crate::sql::ast::*;
use crate::sql::span_of_name;
use crate::suggest::did_you_mean;

impl Parser<'_> {
    pub(super) fn insert(&mut self) -> Result<Statement> {
        let replaces = self.words(&["REPLACE"]) || self.words(&["INSERT", "OR", "REPLACE"]);
        let ignores = self.words(&["INSERT", "OR", "IGNORE"]);
        let upsert = replaces || self.word("UPSERT");
        if !upsert && !ignores {
            self.expect_word("INSERT")?;
        }
        if self.peek_words(&["OR"]) {
            let hint =
                "write INSERT INTO: a statement that fails changes nothing; ROLLBACK ends its transaction";
            return Err(self.expected("INTO").hint(hint));
        }
        self.expect_word("INTO")?;
        let table = self.object_name("the name of a table")?;
        let alias = self.alias(&["OVERRIDING", "DEFAULT"])?;
        // A misspelt VALUES was taken for the table's other name.
        if let Some(alias) = &alias
            && self.peek_token(&Token::LParen)
            && matches!(self.nth(1), Token::Number(..) | Token::SingleQuotedString(_))
            && did_you_mean(&alias.value, ["VALUES"]).is_some()
        {
            let error = Error::invalid(format!("expected VALUES or SELECT, found \"{}\"", alias.value));
            return Err(error.hint("did you mean VALUES?").state(sqlstate::SYNTAX).at(span_of_name(alias)));
        }
        let columns = match self.starts_columns() {
            true => self.names("a column").map_err(|e| self.dynamic_column(e, &table))?,
            false => Vec::new(),
        };
        let overriding = self.overriding()?;
        let source = self.insert_source()?;
        let mode = match upsert {
            true if self.peek_words(&["ON", "CONFLICT"]) || self.peek_words(&["ON", "DUPLICATE"]) => {
                return Err(self
                    .error("UPSERT has no conflicts")
                    .hint("write INSERT ... ON CONFLICT (key) DO UPDATE SET column = excluded.column"));
            }
            true => InsertMode::Upsert,
            false if ignores => InsertMode::OnConflictDoNothing { target: Vec::new() },
            false => self.on_conflict()?,
        };
        let returning = self.returning()?;
        let insert = Insert { table, alias, columns, source, mode, replaces, returning, overriding };
        Ok(Statement::Insert(Box::new(insert)))
    }

    /// `(a, ...`, as opposed to `(SELECT ...`.
    fn starts_columns(&self) -> bool {
        let second = self.nth(1);
        let query = |w: &Word| {
            let starts = ["SELECT", "WITH", "VALUES"];
            w.quote_style.is_none() && starts.iter().any(|word| w.value.eq_ignore_ascii_case(word))
        };
        self.peek_token(&Token::LParen)
            && !matches!(second, Token::LParen)
            && !matches!(second, Token::Word(w) if query(w))
    }

    /// Adds a hint to the error for `(id, x VARCHAR)`, as Phoenix declares a column for one statement.
    fn dynamic_column(&self, error: Error, table: &Ident) -> Error {
        match (self.taken().next().map(|token| &token.token), self.peek_word()) {
            (Some(Token::Word(column)), Some(ty)) => error.hint(format!(
                "declare the column first: ALTER TABLE {table} ADD {column} {ty}; or keep what varies in a JSON column"
            )),
            _ => error,
        }
    }

    fn overriding(&mut self) -> Result<Option<Overriding>> {
        if !self.word("OVERRIDING") {
            return Ok(None);
        }
        let which = if self.word("SYSTEM") {
            Overriding::System
        } else if self.word("USER") {
            Overriding::User
        } else {
            return Err(self.expected("SYSTEM VALUE or USER VALUE"));
        };
        self.expect_word("VALUE")?;
        Ok(Some(which))
    }

    fn insert_source(&mut self) -> Result<InsertSource> {
        if self.words(&["DEFAULT", "VALUES"]) {
            return Ok(InsertSource::DefaultValues);
        }
        if self.word("VALUES") {
            let rows = if std::mem::take(&mut self.has_rows) { Vec::new() } else { self.list(Self::row)? };
            return Ok(InsertSource::Values(rows));
        }
        let starts = ["SELECT", "WITH"];
        if starts.iter().any(|word| self.peek_words(&[word])) || self.peek_token(&Token::LParen) {
            return Ok(InsertSource::Query(self.query()?));
        }
        let error = self.expected("VALUES or SELECT");
        Err(match self.peek_words(&["SET"]) {
            true => error.hint("write INSERT INTO t (a, b) VALUES (1, 2)"),
            false => error,
        })
    }

    /// `(value, ...)`
    fn row(&mut self) -> Result<Vec<Expr>> {
        self.expect_token(Token::LParen)?;
        let row = self.list(Self::value_or_default)?;
        self.end_of_list()?;
        Ok(row)
    }

    /// An expression, or the bare word DEFAULT as an identifier.
    fn value_or_default(&mut self) -> Result<Expr> {
        if let Some(literal) = self.literal() {
            return Ok(literal);
        }
        let Some(word) = self.peek_word().filter(|w| w.value.eq_ignore_ascii_case("default")) else {
            return self.expr();
        };
        let word = word.clone().into_ident(self.peek().span);
        self.inner.advance_token();
        Ok(Expr::Identifier(word))
    }

    /// A number or text that is a whole cell, as most are, read without the expression parser.
    fn literal(&mut self) -> Option<Expr> {
        let (here, after) = (self.inner.peek_token_ref(), self.inner.peek_nth_token_ref(1));
        if !matches!(after.token, Token::Comma | Token::RParen) {
            return None;
        }
        let value = match &here.token {
            Token::Number(digits, long) => ast::Value::Number(digits.clone(), *long),
            Token::SingleQuotedString(text) => ast::Value::SingleQuotedString(text.clone()),
            _ => return None,
        };
        let value = value.with_span(here.span);
        self.inner.advance_token();
        Some(Expr::Value(value))
    }

    fn on_conflict(&mut self) -> Result<InsertMode> {
        if self.peek_words(&["ON", "DUPLICATE"]) {
            return Err(self
                .expected("ON CONFLICT")
                .hint("write ON CONFLICT (id) DO UPDATE SET a = excluded.a, with the columns of the key; or UPSERT INTO t"));
        }
        if !self.word("ON") {
            return Ok(InsertMode::Insert);
        }
        self.expect_word("CONFLICT")?;
        if self.peek_words(&["ON", "CONSTRAINT"]) {
            return Err(self.expected("the columns in conflict").hint("write ON CONFLICT (column, ...)"));
        }
        let target = if self.peek_token(&Token::LParen) { self.conflict_columns()? } else { Vec::new() };
        if self.peek_words(&["WHERE"]) {
            return Err(self
                .expected("DO")
                .hint("leave WHERE out: the columns alone say which index, partial or not"));
        }
        self.expect_word("DO")?;
        if self.word("NOTHING") {
            return Ok(InsertMode::OnConflictDoNothing { target });
        }
        if !self.words(&["UPDATE", "SET"]) {
            return Err(self.expected("NOTHING or UPDATE SET"));
        }
        let assignments = self.assignments()?;
        Ok(InsertMode::OnConflictUpdate { target, assignments, filter: self.filter()?.map(Box::new) })
    }

    /// `(a, b)` behind ON CONFLICT. Errors: an expression, as in `(lower(a))`.
    fn conflict_columns(&mut self) -> Result<Vec<Ident>> {
        let from = self.here();
        let names = self.names("a column");
        match self.peek_token(&Token::LParen) {
            true => Err(self
                .error_at("ON CONFLICT names columns, not expressions", self.span_since(from))
                .why("the columns of the primary key or of a UNIQUE index say which rows are in conflict")
                .hint("leave them out: ON CONFLICT DO NOTHING answers to every conflict")),
            false => names,
        }
    }

    pub(super) fn update(&mut self) -> Result<Statement> {
        self.expect_word("UPDATE")?;
        if self.peek_words(&["STATISTICS"]) && *self.nth(1) != Token::make_keyword("SET") {
            return Err(self.expected("the name of a table and SET").hint("ANALYZE t collects statistics"));
        }
        let hints = self.hints();
        if self.peek_words(&["OR"]) {
            let error = self.expected("the name of a table");
            return Err(error.hint("leave it out: an UPDATE that cannot change all its rows changes none"));
        }
        let table = self.object_name("the name of a table")?;
        let alias = self.alias(&[])?;
        self.expect_word("SET")?;
        let assignments = self.assignments()?;
        let from = if self.word("FROM") { self.tables()? } else { Vec::new() };
        let filter = self.filter()?;
        for clause in ["ORDER", "LIMIT"] {
            if self.peek_words(&[clause]) {
                let by = if clause == "ORDER" { " BY" } else { "" };
                return Err(self
                    .error(format!("UPDATE takes no {clause}{by}"))
                    .hint("UPDATE t SET ... WHERE rowkey IN (SELECT rowkey FROM t ORDER BY ... LIMIT n)"));
            }
        }
        let returning = self.returning()?;
        Ok(Statement::Update(Box::new(Update { hints, table, alias, assignments, from, filter, returning })))
    }

    pub(super) fn delete(&mut self) -> Result<Statement> {
        self.expect_word("DELETE")?;
        let hints = self.hints();
        if !self.word("FROM") {
            let instead = self.hbase_hint().unwrap_or_else(|| "write DELETE FROM t WHERE ...".to_owned());
            return Err(self.expected("FROM").hint(instead));
        }
        let table = self.object_name("the name of a table")?;
        let alias = self.alias(&[])?;
        let using = if self.word("USING") { self.tables()? } else { Vec::new() };
        let filter = self.filter()?;
        let order_by = match self.words(&["ORDER", "BY"]) {
            true => self.list(|p| {
                let order = p.inner.parse_order_by_expr();
                p.lift(order)
            })?,
            false => Vec::new(),
        };
        let limit = if self.word("LIMIT") { Some(self.expr()?) } else { None };
        let returning = self.returning()?;
        let delete = Delete { hints, table, alias, using, filter, order_by, limit, returning };
        Ok(Statement::Delete(Box::new(delete)))
    }

    /// Reads the hints that come next.
    fn hints(&mut self) -> Vec<OptimizerHint> {
        let mut hints = Vec::new();
        while let Token::Whitespace(Whitespace::MultiLineComment(comment)) =
            self.inner.peek_token_no_skip().token
            && let Some((prefix, text)) = comment.split_once('+')
        {
            let (prefix, text) = (prefix.to_owned(), text.to_owned());
            hints.push(OptimizerHint { prefix, text, style: OptimizerHintStyle::MultiLine });
            self.inner.next_token_no_skip();
        }
        hints
    }

    fn tables(&mut self) -> Result<Vec<TableWithJoins>> {
        self.list(|p| {
            let table = p.inner.parse_table_and_joins();
            p.lift(table)
        })
    }

    fn filter(&mut self) -> Result<Option<Expr>> {
        if self.word("WHERE") { self.expr().map(Some) } else { Ok(None) }
    }

    fn returning(&mut self) -> Result<Option<Vec<SelectItem>>> {
        if !self.word("RETURNING") {
            return Ok(None);
        }
        let items = self.list(|p| {
            let item = p.inner.parse_select_item();
            p.lift(item)
        })?;
        Ok(Some(items))
    }

    /// `a = 1, (b, c) = (2, 3)`
    fn assignments(&mut self) -> Result<Vec<Assignment>> {
        Ok(self.list(Self::assignment)?.into_iter().flatten().collect())
    }

    fn assignment(&mut self) -> Result<Vec<Assignment>> {
        if self.peek_token(&Token::LParen) {
            return self.row_assignment();
        }
        let clauses = ["WHERE", "FROM", "RETURNING"];
        if let Some(clause) = clauses.into_iter().find(|clause| self.peek_words(&[clause]))
            && self.taken().next().is_some_and(|t| t.token == Token::Comma)
        {
            return Err(self.expected("a column").hint(format!("leave out the comma before {clause}")));
        }
        let column = self.name("a column")?;
        if self.peek_token(&Token::Period) {
            return Err(self.expected("\"=\"").hint("columns to set are named without their table"));
        }
        self.expect_token(Token::Eq)?;
        Ok(vec![Assignment { column, value: self.value_or_default()? }])
    }

    /// `(b, c) = (2, 3)`, or `= ROW (2, 3)`
    fn row_assignment(&mut self) -> Result<Vec<Assignment>> {
        let from = self.here();
        let columns: Vec<Ident> = self.names("a column")?;
        self.expect_token(Token::Eq)?;
        self.word("ROW");
        if matches!(self.nth(1), Token::Word(word) if word.keyword == Keyword::SELECT) {
            return Err(Error::unsupported("several columns cannot be set from one subquery")
                .hint("write UPDATE ... SET a = s.a, b = s.b FROM (SELECT ...) AS s WHERE ...")
                .at(self.span_since(from)));
        }
        let values = self.row()?;
        if values.len() != columns.len() {
            let what =
                format!("{}, but {}", counted(columns.len(), "column"), counted(values.len(), "value"));
            return Err(self.error_at(what, self.span_since(from)));
        }
        let pairs = columns.into_iter().zip(values);
        Ok(pairs.map(|(column, value)| Assignment { column, value }).collect())
    }
}
