//! Renames queries of WITH: those of nested WITHs that have the same name, and those that are read more than once.
//!
//! In SQL the inner one hides the outer; DataFusion has one list of names for a whole statement and refuses
//! the second. So the inner one gets a new name, `a (2)`, and is read under its old one as an alias. Of what is read
//! more than once, DataFusion copies the plan to each place: the name tells that these are the same.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use sqlparser::ast::{Ident, ObjectName, Query, TableAlias, TableFactor, VisitorMut, With};

use super::name_of;
use super::visit::visit_mut;

/// A query of WITH that has got a name of its own.
pub struct NamedQuery {
    /// As the statement calls it.
    pub name: String,
    /// As no other query of the statement is called.
    pub own: String,
}

/// Gives queries of WITH distinct names where it matters, and returns these. `next`: the number of the next one.
pub fn name_with_queries(query: &mut Query, next: &Cell<usize>) -> Vec<NamedQuery> {
    let mut reads = Reads::default();
    let _ = visit_mut(query, &mut reads);
    let mut naming =
        Naming { reads: reads.0, next, given: Vec::new(), set_aside: Vec::new(), named: Vec::new() };
    let _ = visit_mut(query, &mut naming);
    naming.named
}

/// How often (count) each name is read as a table.
#[derive(Default)]
struct Reads(BTreeMap<String, usize>);

impl VisitorMut for Reads {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let Some(name) = read_by(factor) {
            *self.0.entry(name_of(name)).or_default() += 1;
        }
        ControlFlow::Continue(())
    }
}

/// The name, if the factor can be a query of WITH.
fn read_by(factor: &TableFactor) -> Option<&Ident> {
    match factor {
        TableFactor::Table { name, args: None, .. } => match &name.0[..] {
            [part] => part.as_ident(),
            _ => None,
        },
        _ => None,
    }
}

struct Naming<'n> {
    reads: BTreeMap<String, usize>,
    next: &'n Cell<usize>,
    named: Vec<NamedQuery>,
    /// Names defined by the WITHs around the position, innermost last, and their new names.
    given: Vec<(String, String)>,
    /// For each query around the position, its WITH, already renamed, and the length of `given` before it.
    set_aside: Vec<(Option<With>, usize)>,
}

impl Naming<'_> {
    /// The name to give to a query of WITH.
    fn own_name(&mut self, name: &str, is_recursive: bool) -> String {
        let is_hidden = self.given.iter().any(|(given, _)| given == name);
        let reads = self.reads.get(name).copied().unwrap_or_default();
        // It may read itself.
        if !is_hidden && (is_recursive || reads < 2) {
            return name.to_owned();
        }
        let number = self.next.get();
        self.next.set(number + 1);
        let own = format!("{name} ({number})");
        self.named.push(NamedQuery { name: name.to_owned(), own: own.clone() });
        own
    }

    /// Renames the queries of a WITH; each sees those before it, or all of them if it is recursive.
    fn name(&mut self, with: &mut With) {
        let names: Vec<(String, String)> = with
            .cte_tables
            .iter()
            .map(|cte| {
                let name = name_of(&cte.alias.name);
                let own = self.own_name(&name, with.recursive);
                (name, own)
            })
            .collect();
        if with.recursive {
            self.given.extend(names.iter().cloned());
        }
        for (cte, (name, own)) in with.cte_tables.iter_mut().zip(names) {
            let _ = visit_mut(&mut *cte.query, self);
            if own != name {
                cte.alias.name = Ident::with_quote('"', own.clone());
            }
            if !with.recursive {
                self.given.push((name, own));
            }
        }
    }
}

impl VisitorMut for Naming<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let before = self.given.len();
        let mut with = query.with.take();
        if let Some(with) = &mut with {
            self.name(with);
        }
        self.set_aside.push((with, before));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let Some((with, before)) = self.set_aside.pop() {
            query.with = with;
            self.given.truncate(before);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let Some(read) = read_by(factor).map(name_of) else { return ControlFlow::Continue(()) };
        let given = self.given.iter().rev().find(|(given, _)| *given == read);
        if let Some((was, own)) = given.filter(|(was, own)| was != own)
            && let TableFactor::Table { name, alias, .. } = factor
        {
            *name = ObjectName::from(vec![Ident::with_quote('"', own.clone())]);
            alias.get_or_insert_with(|| TableAlias {
                explicit: true,
                name: Ident::with_quote('"', was.clone()),
                columns: Vec::new(),
                at: None,
            });
        }
        ControlFlow::Continue(())
    }
}
