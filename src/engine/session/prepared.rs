//! PREPARE and EXECUTE.

use std::sync::Arc;

use sqlparser::ast::{Expr, Ident};

use super::{Session, StatementInput};
use crate::engine::outcome::Outcome;
use crate::engine::plans::Parsed;
use crate::engine::rows::literal;
use crate::error::{Error, Result, sqlstate};
use crate::sql::{self, Lifted, Prepare, Statement, name_of, span_of, span_of_name};
use crate::value::{ColumnType, Value};

/// A prepared statement.
pub struct PreparedStatement {
    parsed: Parsed,
    /// The types of its first parameters, if declared.
    types: Vec<ColumnType>,
    /// Its text, if it is a query: the key of its plan.
    lifted: Option<Lifted>,
}

impl Session {
    pub(super) fn prepare(&mut self, prepare: &Prepare) -> Result<Outcome> {
        let name = name_of(&prepare.name);
        if self.prepared.contains_key(&name) {
            return Err(Error::invalid(format!("there is a prepared statement \"{name}\" already"))
                .hint(format!("DEALLOCATE {} first", prepare.name))
                .state(sqlstate::DUPLICATE_PREPARED)
                .at(span_of_name(&prepare.name)));
        }
        let parsed = Parsed::new((*prepare.statement).clone());
        if prepare.types.len() > parsed.parameters {
            return Err(Error::invalid("there are more types than parameters")
                .why(format!("{} and {}", prepare.types.len(), parsed.parameters))
                .state(sqlstate::SYNTAX)
                .at(span_of_name(&prepare.name)));
        }
        let text = matches!(parsed.statement, Statement::Query(_)).then(|| parsed.statement.to_string());
        let lifted = text.and_then(|text| sql::lift(&text));
        self.prepared
            .insert(name, Arc::new(PreparedStatement { parsed, types: prepare.types.clone(), lifted }));
        Ok(self.done("PREPARE"))
    }

    /// Errors: no statement of this name; an argument that is no literal, or not of its parameter's type.
    pub(super) async fn execute_prepared(
        &mut self,
        name: &Ident,
        args: &[Expr],
        params: &[Value],
    ) -> Result<Outcome> {
        let Some(named) = self.prepared.get(&name_of(name)).cloned() else {
            let error = Error::invalid(format!("there is no prepared statement \"{}\"", name_of(name)));
            return Err(error
                .hint("PREPARE it first")
                .state(sqlstate::UNDEFINED_PREPARED)
                .at(span_of_name(name)));
        };
        let what = format!("\"{}\"", name_of(name));
        named.parsed.check(&what, args.len()).map_err(|e| e.at(span_of_name(name)))?;
        let mut values = Vec::with_capacity(args.len());
        for (n, arg) in args.iter().enumerate() {
            let value = literal(arg, params)?.ok_or_else(|| {
                Error::unsupported("EXECUTE takes literals").hint("write the value itself").at(span_of(arg))
            })?;
            values.push(match named.types.get(n) {
                Some(ty) => value.cast(*ty).map_err(|e| Error::from(e).at(span_of(arg)))?,
                None => value,
            });
        }
        let outcome =
            self.run_lifted(StatementInput::Parsed(&named.parsed), named.lifted.as_ref(), &values).await;
        // The error's place refers to the text of PREPARE, not to this statement.
        outcome.map_err(Error::unplaced)
    }

    /// Forgets a prepared statement, or all of them.
    pub(super) fn deallocate(&mut self, name: Option<&Ident>) -> Outcome {
        match name {
            Some(name) => drop(self.prepared.remove(&name_of(name))),
            None => self.prepared.clear(),
        }
        self.done("DEALLOCATE")
    }
}
