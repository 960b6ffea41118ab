//! Hands the hints of a statement to the tables they name.

use std::cell::RefCell;
use std::collections::BTreeSet;

use sqlparser::ast::Query;

use crate::access::Hints;
use crate::catalog::{Catalog, Relation};
use crate::error::{Error, Result, sqlstate};
use crate::schema::{IndexDef, TableDef};
use crate::sql::{Hint, HintKind, take_hints};

/// The hints of one statement, and the hinted names that occurred in it.
#[derive(Default)]
pub struct Hinted {
    hints: RefCell<Vec<Hint>>,
    found: RefCell<BTreeSet<String>>,
}

impl Hinted {
    /// Moves the hints of a query, which is a part of the statement, in here.
    pub fn take(&self, query: &mut Query) -> Result<()> {
        self.hints.borrow_mut().extend(take_hints(query)?);
        Ok(())
    }

    /// The hints for a table, or for an index table read as one.
    pub fn about(&self, table: &TableDef, as_table: Option<&IndexDef>) -> Hints {
        let relation = as_table.map_or(&table.name, |index| &index.name);
        let mut hints = Hints::default();
        for hint in self.hints.borrow().iter() {
            if hint.kind != HintKind::Index && hint.names.is_empty() {
                apply_to_all(hint, &mut hints);
            }
            for (name, span) in &hint.names {
                let index = table.indexes.iter().find(|i| i.name == *name && as_table.is_none());
                match (hint.kind, index) {
                    (HintKind::Full, _) if name == relation => hints.full = true,
                    (HintKind::Index, Some(index)) => hints.only.get_or_insert_default().push(index.id),
                    (HintKind::NoIndex, Some(index)) => hints.without.push(index.id),
                    // The table in front of its index is allowed: INDEX(orders by_buyer).
                    (HintKind::Index | HintKind::NoIndex, None)
                        if *name == table.name && hint.names.len() > 1 => {}
                    (HintKind::NoIndex, None) if name == relation => apply_to_all(hint, &mut hints),
                    _ => continue,
                }
                hints.span = hints.span.or(*span);
                self.found.borrow_mut().insert(name.clone());
            }
        }
        hints
    }

    /// Errors: a hint names something that the statement does not read.
    pub fn check(&self, catalog: &Catalog) -> Result<()> {
        let hints = self.hints.borrow();
        let found = self.found.borrow();
        let Some((hint, (name, span))) = hints
            .iter()
            .flat_map(|hint| hint.names.iter().map(move |name| (hint, name)))
            .find(|(_, (name, _))| !found.contains(name))
        else {
            return Ok(());
        };
        Err(names_nothing(hint.kind, name, catalog).at(*span))
    }
}

fn apply_to_all(hint: &Hint, hints: &mut Hints) {
    match hint.kind {
        HintKind::Full => hints.full = true,
        HintKind::NoIndex => drop(hints.only.get_or_insert_default()),
        HintKind::Index => {}
    }
    hints.span = hints.span.or(hint.span);
}

fn names_nothing(kind: HintKind, name: &str, catalog: &Catalog) -> Error {
    match (kind, catalog.find(name)) {
        (HintKind::Full, None) => catalog.unknown(name),
        (HintKind::Index | HintKind::NoIndex, None) => {
            let error =
                Error::invalid(format!("there is no index \"{name}\"")).state(sqlstate::UNDEFINED_TABLE);
            let names = catalog.tables().flat_map(|t| &t.indexes).map(|i| i.name.as_str());
            crate::suggest::with_suggestion(error, name, names, "SHOW INDEXES lists them")
        }
        (_, Some(Relation::Index(table, _))) => {
            Error::invalid(format!("the hint names \"{name}\", an index of \"{}\"", table.name))
                .why("the statement does not read that table")
                .state(sqlstate::WRONG_OBJECT)
        }
        (HintKind::Index, Some(_)) => Error::invalid(format!("\"{name}\" is not an index"))
            .hint("write INDEX(name_of_the_index)")
            .state(sqlstate::WRONG_OBJECT),
        (_, Some(_)) => {
            Error::invalid(format!("the hint names \"{name}\", which the statement does not read"))
                .hint("write the table's name, not its alias")
                .state(sqlstate::WRONG_OBJECT)
        }
    }
}
