//! Moves the WITH before a writing statement, `WITH n AS (...) UPDATE ...`, to where it is used.
//!
//! Every outermost query of the statement gets the definitions, and a table of its FROM or USING that one of
//! them defines becomes a query.

use std::ops::ControlFlow;

use sqlparser::ast::{Ident, ObjectName, Query, SetExpr, TableAlias, TableFactor, VisitorMut, With};

use super::ast::Statement;
use super::visit::{or_break, or_error, visit_mut};
use super::{name_of, parse_query};
use crate::error::{Error, Result};

/// Adds the definitions of a WITH to the queries of a statement.
pub(super) fn define(with: &With, statement: &mut Statement) -> Result<()> {
    or_error(visit_mut(statement, &mut Define { with, depth: 0 }))
}

/// A query of this body alone.
fn query_of(body: SetExpr) -> Query {
    Query {
        with: None,
        body: Box::new(body),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

struct Define<'a> {
    with: &'a With,
    /// The number of queries around the position.
    depth: usize,
}

impl Define<'_> {
    fn defines(&self, name: &ObjectName) -> Option<Ident> {
        let [part] = &name.0[..] else { return None };
        let name = part.as_ident()?;
        let mut defined = self.with.cte_tables.iter().map(|cte| name_of(&cte.alias.name));
        defined.any(|defined| defined == name_of(name)).then(|| name.clone())
    }
}

impl VisitorMut for Define<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        if self.depth == 0 {
            // Definitions of its own may have the same names, or be recursive.
            if query.with.is_some() {
                *query = query_of(SetExpr::Query(Box::new(query.clone())));
            }
            query.with = Some(self.with.clone());
        }
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        let TableFactor::Table { name, alias, .. } = factor else { return ControlFlow::Continue(()) };
        let Some(defined) = self.defines(name).filter(|_| self.depth == 0) else {
            return ControlFlow::Continue(());
        };
        let subquery = Box::new(or_break(parse_query(&format!("SELECT * FROM {defined}")))?);
        let own = || TableAlias { explicit: true, name: defined.clone(), columns: Vec::new(), at: None };
        let alias = Some(alias.take().unwrap_or_else(own));
        *factor = TableFactor::Derived { lateral: false, subquery, alias, sample: None };
        ControlFlow::Continue(())
    }
}
