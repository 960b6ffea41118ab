//! Renames queries of nested WITHs that have the same name.
//!
//! In SQL the inner one hides the outer; DataFusion has one list of names for a whole statement and refuses
//! the second. So the inner one gets a new name, `a (2)`, and is read under its old one as an alias.

use std::ops::ControlFlow;

use sqlparser::ast::{Ident, ObjectName, Query, TableAlias, TableFactor, VisitorMut, With};

use super::name_of;
use super::visit::visit_mut;

/// Gives queries of nested WITHs distinct names.
pub fn name_with_queries(query: &mut Query) {
    let _ = visit_mut(query, &mut Naming::default());
}

#[derive(Default)]
struct Naming {
    /// Names defined by the WITHs around the position, innermost last, and their new names.
    given: Vec<(String, String)>,
    /// For each query around the position, its WITH, already renamed, and the length of `given` before it.
    set_aside: Vec<(Option<With>, usize)>,
}

impl Naming {
    /// Renames the queries of a WITH; each sees those before it, or all of them if it is recursive.
    fn name(&mut self, with: &mut With) {
        let names: Vec<(String, String)> = with
            .cte_tables
            .iter()
            .map(|cte| {
                let name = name_of(&cte.alias.name);
                let same = self.given.iter().filter(|(given, _)| *given == name).count();
                let own = if same == 0 { name.clone() } else { format!("{name} ({})", same + 1) };
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

impl VisitorMut for Naming {
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
        let TableFactor::Table { name, alias, args: None, .. } = factor else {
            return ControlFlow::Continue(());
        };
        let [part] = &name.0[..] else { return ControlFlow::Continue(()) };
        let Some(read) = part.as_ident().cloned() else { return ControlFlow::Continue(()) };
        let given = self.given.iter().rev().find(|(given, _)| *given == name_of(&read));
        if let Some((was, own)) = given.filter(|(was, own)| was != own) {
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
