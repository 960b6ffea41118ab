//! Definitions changed by a session: in force at once, or with its open transaction.
//!
//! A transaction that changes definitions has a draft of the catalog to itself. Its commit puts the draft in the place of
//! the catalog that the transaction began with, and is refused if that is not in force any more.

use std::sync::Arc;

use sqlparser::ast::Ident;

use super::{Open, Session};
use crate::catalog::Catalog;
use crate::engine::settings::Settings;
use crate::engine::view::View;
use crate::engine::{Changed, expiry};
use crate::error::Result;
use crate::exec::watch::Watch;
use crate::schema::TableDef;
use crate::store::{BulkWriter, WriteBatch};

impl Open {
    fn apply(&mut self, next: Option<(Catalog, WriteBatch)>) {
        if let Some((catalog, batch)) = next {
            self.transaction.apply(batch);
            self.catalog = Arc::new(catalog.draft());
        }
    }
}

impl Session {
    /// The definitions as its next statement sees them.
    pub(in crate::engine) fn catalog(&self) -> Arc<Catalog> {
        self.open.as_ref().map_or_else(|| self.db.catalog(), |open| Arc::clone(&open.catalog))
    }

    /// Who watches its statements.
    pub(in crate::engine) fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Changes definitions: `change` makes the next catalog from the current one. Errors: `Cancelled` before that.
    pub(in crate::engine) fn change_catalog<T>(
        &mut self,
        change: impl FnOnce(&Catalog) -> Changed<T>,
    ) -> Result<T> {
        self.check_may_write()?;
        let Some(open) = &mut self.open else {
            return self.db.change_catalog(&self.watch.cancel, change);
        };
        let (result, next) = change(&open.catalog)?;
        open.apply(next);
        Ok(result)
    }

    /// The same, together with what `change` writes into the rows that it sees: outside a transaction nobody else writes
    /// until the next catalog is in.
    pub(in crate::engine) fn change_rows<T>(
        &mut self,
        change: impl FnOnce(&Catalog, &View, &mut dyn BulkWriter) -> Changed<T>,
    ) -> Result<T> {
        self.check_may_write()?;
        if self.open.is_none() {
            let change = |catalog: &Catalog, writer: &mut dyn BulkWriter| {
                change(catalog, &self.unguarded_view()?, writer)
            };
            return self.db.change_rows(&self.watch.cancel, change);
        }
        let (view, before) = (self.unguarded_view()?, self.written()?);
        let open = self.open()?;
        let changed = change(&view.catalog, &view, &mut open.transaction.writer());
        let (result, next) = changed.inspect_err(|_| self.undo(&before))?;
        self.open()?.apply(next);
        Ok(result)
    }

    /// What its next statement sees, however much of it there is, and whether or not rows tell times so far.
    fn unguarded_view(&self) -> Result<View> {
        let as_of_us = self.open.as_ref().map_or_else(|| self.db.now_us(), |open| open.as_of_us);
        Ok(View { settings: Settings::default(), as_of_us, ..self.view()? })
    }

    /// PURGE, of one table or of all; gives the number of rows.
    pub(super) fn run_purge(&mut self, table: Option<&Ident>) -> Result<u64> {
        let view = self.view()?;
        match table {
            Some(name) => {
                let table = view.table(name)?;
                expiry::check_expires(&table)?;
                self.purge(&table)
            }
            None => view.catalog.tables().map(|table| self.purge(table)).sum(),
        }
    }

    /// Takes the rows of a table away that have expired, if they do; gives their number.
    pub(in crate::engine) fn purge(&mut self, table: &TableDef) -> Result<u64> {
        self.check_may_write()?;
        if self.open.is_none() {
            return expiry::purge_before(&self.db, table, self.db.now_us(), &self.watch);
        }
        let view = self.view()?;
        expiry::purge_in(&view, table, &mut |batch| self.write_down(batch))
    }
}
