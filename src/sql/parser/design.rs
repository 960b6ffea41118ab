//! Parses statements about key design: LINT, DESCRIBE KEY, SIMULATE, ADVISE, and SPLIT.

use sqlparser::tokenizer::Token;

use super::Parser;
use crate::error::Result;
use crate::sql::ast::*;
use crate::value::{ColumnType, Value};

impl Parser<'_> {
    /// `KEY 'abc' OF t`, `KEY OF t`, `KEY t`, as opposed to a table called key.
    pub(super) fn starts_describe_key(&self) -> bool {
        let second = self.nth(1);
        self.peek_words(&["KEY"]) && !matches!(second, Token::EOF | Token::SemiColon | Token::Period)
    }

    pub(super) fn describe_key(&mut self) -> Result<Statement> {
        self.expect_word("KEY")?;
        let key = match &self.peek().token {
            Token::HexStringLiteral(digits) => {
                let (digits, place) = (digits.clone(), self.next_span());
                self.inner.advance_token();
                let bytes = Value::parse(&format!("\\x{digits}"), ColumnType::Varbinary);
                Some(bytes.map_err(|e| crate::error::Error::from(e).at(place))?)
            }
            Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) => {
                Some(Value::Text(self.text("a key")?))
            }
            _ => None,
        };
        if key.is_some() {
            self.expect_word("OF")?;
        } else {
            self.word("OF");
        }
        let of = self.object_name("a key in quotes, or OF and the name of a table or an index")?;
        Ok(Statement::Design(Box::new(Design::DescribeKey { key, of })))
    }

    pub(super) fn lint(&mut self) -> Result<Statement> {
        self.expect_word("LINT")?;
        let named = self.word("TABLE") || !(self.word("DATABASE") || self.at_end());
        let table = if named { Some(self.object_name("the name of a table")?) } else { None };
        Ok(Statement::Design(Box::new(Design::Lint { table })))
    }

    pub(super) fn simulate(&mut self) -> Result<Statement> {
        self.expect_word("SIMULATE")?;
        self.expect_word("WRITES")?;
        self.expect_word("ON")?;
        let table = self.object_name("the name of a table")?;
        let (mut source, mut regions, mut layouts, mut by) = (None, None, Vec::new(), None);
        while !self.at_end() {
            if source.is_none() && self.word("FROM") {
                source = Some(match self.token(&Token::LParen) {
                    true => {
                        let query = self.query()?;
                        self.expect_token(Token::RParen)?;
                        WritesFrom::Query(query)
                    }
                    false => WritesFrom::File(self.file_of_rows()?),
                });
            } else if regions.is_none() && self.word("INTO") {
                let from = self.here();
                let n = self.integer("a number of regions")?;
                regions = Some((n, self.span_since(from)));
                self.expect_word("REGIONS")?;
            } else if layouts.is_empty() && self.word("UNDER") {
                layouts = self.list(|p| {
                    p.expect_word("LAYOUT")?;
                    p.keys()
                })?;
            } else if by.is_none() && self.word("BY") {
                by = Some(self.simulated_by()?);
            } else {
                let clauses =
                    "FROM (a query) or 'a file', INTO n REGIONS, UNDER LAYOUT (...) or BY, once each";
                return Err(self.expected(clauses));
            }
        }
        let by = by.unwrap_or(SimulateBy::Layout);
        let simulate = Simulate { table, source, regions, layouts, by };
        Ok(Statement::Design(Box::new(Design::Simulate(simulate))))
    }

    fn simulated_by(&mut self) -> Result<SimulateBy> {
        Ok(match self.word("SLICE") {
            true => SimulateBy::Slice,
            false if !self.word("REGION") => return Err(self.expected("REGION or SLICE")),
            false if self.token(&Token::Comma) => {
                self.expect_word("SLICE")?;
                SimulateBy::RegionAndSlice
            }
            false => SimulateBy::Region,
        })
    }

    /// Reads the rest of EXPLAIN WHATIF.
    pub(super) fn whatif(&mut self) -> Result<Statement> {
        self.expect_token(Token::LParen)?;
        let layout = match (self.word("INDEX"), self.word("LAYOUT")) {
            (true, _) => false,
            (_, true) => true,
            _ => return Err(self.expected("INDEX (...) or LAYOUT (...)")),
        };
        let named = self.word(if layout { "OF" } else { "ON" });
        let table = if named { Some(self.object_name("the name of a table")?) } else { None };
        let keys = self.keys()?;
        let include = if !layout && self.word("INCLUDE") { self.names("a column")? } else { Vec::new() };
        if self.peek_token(&Token::Comma) {
            return Err(self
                .error("EXPLAIN WHATIF takes one change")
                .hint("ADVISE FOR (query) compares many"));
        }
        self.expect_token(Token::RParen)?;
        let change = HypotheticalChange { layout, table, keys, include };
        let query = self.query()?;
        Ok(Statement::Design(Box::new(Design::WhatIf { change, query })))
    }

    pub(super) fn advise(&mut self) -> Result<Statement> {
        self.expect_word("ADVISE")?;
        let mut queries = Vec::new();
        if self.word("FOR") {
            self.list(|p| {
                p.expect_token(Token::LParen)?;
                queries.push(*p.query()?);
                while p.token(&Token::SemiColon) {
                    queries.push(*p.query()?);
                }
                p.expect_token(Token::RParen)
            })?;
        } else if !self.at_end() {
            return Err(self.expected("FOR (query), (query)"));
        }
        Ok(Statement::Design(Box::new(Design::Advise { queries })))
    }

    /// Reads the rest of SPLIT: `ON (points)`, `AT (points)`, or `INTO n method`.
    pub(super) fn split(&mut self) -> Result<Split> {
        if self.word("ON") || self.word("AT") {
            self.expect_token(Token::LParen)?;
            let points = self.list(Self::expr)?;
            self.end_of_list()?;
            return Ok(Split::At(points));
        }
        if !self.word("INTO") {
            return Err(self.expected("ON, AT or INTO"));
        }
        let from = self.here();
        let regions = self.integer("a number of regions")?;
        let span = self.span_since(from);
        self.word("REGIONS");
        let method = if self.word("UNIFORM") {
            match self.word("FROM") {
                true => {
                    let first = self.expr()?;
                    self.expect_word("TO")?;
                    SplitMethod::Between(Box::new([first, self.expr()?]))
                }
                false => SplitMethod::Uniform,
            }
        } else if self.word("HEX") {
            SplitMethod::Hex
        } else if self.word("DECIMAL") {
            SplitMethod::Decimal
        } else if self.words(&["FROM", "DATA"]) {
            SplitMethod::FromData
        } else if self.at_end() {
            SplitMethod::Suited
        } else {
            return Err(self.expected("UNIFORM, HEX, DECIMAL or FROM DATA"));
        };
        Ok(Split::Into { regions, method, span })
    }
}
