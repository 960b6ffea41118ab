//! Parses FOREIGN KEY and REFERENCES.

use sqlparser::ast::Ident;
use sqlparser::tokenizer::{Location, Token};

use super::Parser;
use crate::error::Result;
use crate::sql::ast::{OnDelete, ReferenceDef};

impl Parser<'_> {
    /// `FOREIGN KEY (columns) REFERENCES ...`
    pub(super) fn foreign_key(&mut self, name: Option<Ident>) -> Result<ReferenceDef> {
        let from = self.here();
        self.expect_word("FOREIGN")?;
        self.expect_word("KEY")?;
        // In MySQL, the name of an index.
        if !self.peek_token(&Token::LParen) {
            self.name("a column")?;
        }
        let columns = self.names("a column")?;
        self.references(name, columns, from)
    }

    /// `REFERENCES parent [(columns)]` and what follows it; the definition begins at `from`.
    pub(super) fn references(
        &mut self,
        name: Option<Ident>,
        columns: Vec<Ident>,
        from: Location,
    ) -> Result<ReferenceDef> {
        self.expect_word("REFERENCES")?;
        let parent = self.object_name("the name of the table that is referred to")?;
        let parent_columns =
            if self.peek_token(&Token::LParen) { self.names("a column")? } else { Vec::new() };
        let (mut on_delete, mut on_update, mut deferred) = (None, None, false);
        loop {
            let clause = self.here();
            if self.words(&["ON", "DELETE"]) {
                if on_delete.replace(self.action()?).is_some() {
                    return Err(self
                        .error_at("a second ON DELETE", self.span_since(clause))
                        .hint("keep one of them"));
                }
            } else if self.words(&["ON", "UPDATE"]) {
                on_update = (self.action()? != OnDelete::Refuse).then(|| self.span_since(clause));
            } else if self.word("MATCH") {
                // Of one column, all of it is NULL, or none.
                if !(self.word("SIMPLE") || columns.len() == 1 && self.word("FULL")) {
                    return Err(self
                        .expected("SIMPLE")
                        .why("a row with NULL in one of the columns refers to nothing")
                        .hint("a CHECK can ask that all of them are NULL, or none"));
                }
            } else if self.words(&["INITIALLY", "DEFERRED"]) {
                deferred = true;
            } else if self.words(&["INITIALLY", "IMMEDIATE"])
                || self.words(&["NOT", "DEFERRABLE"])
                || self.word("DEFERRABLE")
            {
                // As every constraint is.
            } else {
                break;
            }
        }
        if self.peek_words(&["NOT", "VALID"]) {
            return Err(self
                .error("a foreign key cannot be NOT VALID")
                .why("then rows might refer to nothing")
                .hint("leave it out: the rows that are there are checked at once"));
        }
        let (on_delete, span) = (on_delete.unwrap_or_default(), self.span_since(from));
        Ok(ReferenceDef { name, columns, parent, parent_columns, on_delete, on_update, deferred, span })
    }

    fn action(&mut self) -> Result<OnDelete> {
        if self.words(&["NO", "ACTION"]) || self.word("RESTRICT") {
            Ok(OnDelete::Refuse)
        } else if self.word("CASCADE") {
            Ok(OnDelete::Cascade)
        } else if self.words(&["SET", "NULL"]) {
            Ok(OnDelete::SetNull)
        } else if self.words(&["SET", "DEFAULT"]) {
            Ok(OnDelete::SetDefault)
        } else {
            Err(self.expected("NO ACTION, RESTRICT, CASCADE, SET NULL or SET DEFAULT"))
        }
    }
}
