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

impl PreparedStatement {
    pub(super) fn statement(&self) -> &Statement {
        &self.parsed.statement
    }
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

    /// Errors: those of [`prepared_with`](Self::prepared_with), and of the statement.
    pub(super) async fn execute_prepared(
        &mut self,
        name: &Ident,
        args: &[Expr],
        params: &[Value],
    ) -> Result<Outcome> {
        let (named, values) = self.prepared_with(name, args, params)?;
        let outcome =
            self.run_lifted(StatementInput::Parsed(&named.parsed), named.lifted.as_ref(), &values).await;
        // The error's place refers to the text of PREPARE, not to this statement.
        outcome.map_err(Error::unplaced)
    }

    /// A prepared statement and the values of its parameters. Errors: no statement of this name; an argument that is no
    /// literal, or not of its parameter's type.
    pub(super) fn prepared_with(
        &self,
        name: &Ident,
        args: &[Expr],
        params: &[Value],
    ) -> Result<(Arc<PreparedStatement>, Vec<Value>)> {
        let Some(named) = self.prepared.get(&name_of(name)).cloned() else {
            return Err(not_prepared(name).hint("PREPARE it first"));
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
        Ok((named, values))
    }

    /// Forgets a prepared statement, or all of them. Errors: no statement of this name.
    pub(super) fn deallocate(&mut self, name: Option<&Ident>) -> Result<Outcome> {
        match name {
            Some(name) if self.prepared.remove(&name_of(name)).is_none() => return Err(not_prepared(name)),
            Some(_) => {}
            None => self.prepared.clear(),
        }
        Ok(self.done("DEALLOCATE"))
    }
}

fn not_prepared(name: &Ident) -> Error {
    Error::invalid(format!("there is no prepared statement \"{}\"", name_of(name)))
        .state(sqlstate::UNDEFINED_PREPARED)
        .at(span_of_name(name))
}
