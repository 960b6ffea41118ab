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
        let (mut on_delete, mut on_update, mut deferred) = (OnDelete::default(), None, false);
        loop {
            let clause = self.here();
            if self.words(&["ON", "DELETE"]) {
                on_delete = self.action()?;
            } else if self.words(&["ON", "UPDATE"]) {
                on_update = (self.action()? != OnDelete::Refuse).then(|| self.span_since(clause));
            } else if self.word("MATCH") {
                if !self.word("SIMPLE") {
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
        let span = self.span_since(from);
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
