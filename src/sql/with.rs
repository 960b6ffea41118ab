//! Moves the WITH before a writing statement, `WITH n AS (...) UPDATE ...`, to where it is used.
//!
//! Every outermost query of the statement gets the definitions, and a table of its FROM or USING that one of
//! them defines becomes a query.

use std::ops::ControlFlow;

use sqlparser::ast::{Ident, ObjectName, Query, SetExpr, TableAlias, TableFactor, VisitorMut, With};

use super::ast::Statement;
use super::shape::is_drawn;
use super::visit::{or_break, or_error, visit_expressions, visit_mut};
use super::{name_of, parse_query, span_of};
use crate::error::{Error, Result, Span};

/// Adds the definitions of a WITH to the queries of a statement. Errors: several of them read what is drawn, which would be
/// drawn anew for each.
pub(super) fn define(with: &With, statement: &mut Statement) -> Result<()> {
    let mut define = Define { with, depth: 0, reads: false, readers: 0 };
    or_error(visit_mut(statement, &mut define))?;
    match draws(with) {
        Some(place) if define.readers > 1 => Err(Error::unsupported(
            "what a WITH draws cannot be read in several places of a statement that writes",
        )
        .why("each place would draw it anew")
        .hint("read it once: INSERT ... SELECT u, u FROM n, or UPDATE ... FROM n")
        .at(place)),
        _ => Ok(()),
    }
}

/// Where something is drawn, if it is.
fn draws(with: &With) -> Option<Option<Span>> {
    let drawn = visit_expressions(with, |expr| match is_drawn(expr) {
        true => ControlFlow::Break(span_of(expr)),
        false => ControlFlow::Continue(()),
    });
    drawn.break_value()
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
    /// The outermost query around the position reads a definition.
    reads: bool,
    /// Outermost queries (count) that read one.
    readers: usize,
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

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.depth -= 1;
        if self.depth == 0 {
            // Definitions of its own may have the same names, or be recursive.
            if query.with.is_some() {
                *query = query_of(SetExpr::Query(Box::new(query.clone())));
            }
            query.with = Some(self.with.clone());
            self.readers += usize::from(std::mem::take(&mut self.reads));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        let TableFactor::Table { name, alias, .. } = factor else { return ControlFlow::Continue(()) };
        let Some(defined) = self.defines(name) else { return ControlFlow::Continue(()) };
        self.reads = true;
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        let subquery = Box::new(or_break(parse_query(&format!("SELECT * FROM {defined}")))?);
        let own = || TableAlias { explicit: true, name: defined.clone(), columns: Vec::new(), at: None };
        let alias = Some(alias.take().unwrap_or_else(own));
        *factor = TableFactor::Derived { lateral: false, subquery, alias, sample: None };
        ControlFlow::Continue(())
    }
}
