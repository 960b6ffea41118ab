//! DDL in a session: it takes effect at once, or with the commit of the open transaction.
//!
//! A transaction that changes definitions works on its own draft of the catalog. Its commit replaces the
//! catalog that the transaction began with, and fails if that is not in force any more.

use std::sync::Arc;

use sqlparser::ast::Ident;

use super::{OpenTransaction, Session};
use crate::catalog::Catalog;
use crate::engine::outcome::{Outcome, Warning};
use crate::engine::settings::SessionSettings;
use crate::engine::view::StatementView;
use crate::engine::{DdlResult, ddl, expiry};
use crate::error::Result;
use crate::exec::watch::Watch;
use crate::schema::TableDef;
use crate::sql::{AlterTable, Statement};
use crate::store::{BulkWriter, WriteBatch};

impl OpenTransaction {
    fn apply(&mut self, next: Option<(Catalog, WriteBatch)>) {
        if let Some((catalog, batch)) = next {
            self.transaction.apply(batch);
            self.catalog = Arc::new(catalog.draft());
        }
    }
}

impl Session {
    /// The definitions as the next statement sees them.
    pub(in crate::engine) fn catalog(&self) -> Arc<Catalog> {
        self.open.as_ref().map_or_else(|| self.db.catalog(), |open| Arc::clone(&open.catalog))
    }

    /// Cancellation and progress of its statements.
    pub(in crate::engine) fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Runs DDL: `change` makes the next catalog from the current one. Errors: `Cancelled` before that.
    pub(in crate::engine) fn change_catalog<T>(
        &mut self,
        change: impl FnOnce(&Catalog) -> DdlResult<T>,
    ) -> Result<T> {
        self.check_may_write()?;
        let Some(open) = &mut self.open else {
            return self.db.change_catalog(&self.watch.cancel, change);
        };
        let (result, next) = change(&open.catalog)?;
        open.apply(next);
        Ok(result)
    }

    /// Like `change_catalog`, for DDL that also writes the rows that it sees: outside of a transaction, no
    /// other writer gets in before it is committed.
    pub(in crate::engine) fn change_rows<T>(
        &mut self,
        change: impl FnOnce(&Catalog, &StatementView, &mut dyn BulkWriter) -> DdlResult<T>,
    ) -> Result<T> {
        self.check_may_write()?;
        if self.open.is_none() {
            let change = |catalog: &Catalog, writer: &mut dyn BulkWriter| {
                change(catalog, &self.unguarded_view()?, writer)
            };
            return self.db.change_rows(&self.watch.cancel, change);
        }
        let (view, before) = (self.unguarded_view()?, self.mark()?);
        let open = self.open()?;
        let changed = change(&view.catalog, &view, &mut open.transaction.writer());
        let (result, next) = changed.inspect_err(|_| self.return_to(&before))?;
        self.open()?.apply(next);
        Ok(result)
    }

    /// A statement that changes definitions.
    pub(super) async fn define(&mut self, statement: &Statement) -> Result<Outcome> {
        let tag = statement.kind_name();
        let warnings = match statement {
            Statement::CreateTable(create) if let Some(query) = &create.query => {
                let (warnings, rows) = ddl::create_table_as(self, create, query).await?;
                let created = Outcome { warnings, affected: Some(rows), ..self.done(tag) };
                return Ok(self.after_write(created, None));
            }
            Statement::AlterTogether(changes) => self.alter_together(changes).await?,
            definition => ddl::run(self, definition).await?,
        };
        self.db.background.purge(&self.db);
        Ok(Outcome { warnings, ..self.done(tag) })
    }

    /// Several ALTER TABLEs, of which all happen or none: in the open transaction, or else in one of their own.
    async fn alter_together(&mut self, changes: &[AlterTable]) -> Result<Vec<Warning>> {
        if self.open.is_some() {
            return self.alter_each(changes).await;
        }
        let (watch, settings) = (self.watch.clone(), self.settings.clone());
        let checks_at_end = self.checks_at_end;
        let mut own = Session { watch, settings, checks_at_end, ..Session::new(self.db.clone()) };
        loop {
            own.begin(false)?;
            let altered = own.alter_each(changes).await;
            match altered.and_then(|warnings| own.run_commit().map(|_| warnings)) {
                Err(e) => own.again(e)?,
                altered => return altered,
            }
        }
    }

    async fn alter_each(&mut self, changes: &[AlterTable]) -> Result<Vec<Warning>> {
        let mut warnings = Vec::new();
        for alter in changes {
            let alter = Statement::AlterTable(Box::new(alter.clone()));
            warnings.extend(ddl::run(self, &alter).await?);
        }
        Ok(warnings)
    }

    /// The view of the next statement without its limits, and with the time even if no table stores write
    /// times.
    fn unguarded_view(&self) -> Result<StatementView> {
        let as_of_us = self.open.as_ref().map_or_else(|| self.db.now_us(), |open| open.as_of_us);
        Ok(StatementView { settings: SessionSettings::default(), as_of_us, ..self.view()? })
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

    /// Purges the expired rows of a table, if it has a `ttl`; gives their number.
    pub(in crate::engine) fn purge(&mut self, table: &TableDef) -> Result<u64> {
        self.check_may_write()?;
        if self.open.is_none() {
            return expiry::purge_before(&self.db, table, self.db.now_us(), &self.watch);
        }
        let view = self.view()?;
        expiry::purge_in(&view, table, &mut |batch| {
            self.write_down(batch);
            Ok(())
        })
    }
}
