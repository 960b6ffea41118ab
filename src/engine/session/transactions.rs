//! Statements that write, and BEGIN, COMMIT, ROLLBACK and savepoints.

use std::sync::Arc;

use arrow::array::RecordBatch;
use sqlparser::ast::Ident;

use super::references::is_bound;
use super::{OpenTransaction, SavepointMark, Session};
use crate::catalog::Catalog;
use crate::df::query::Moment;
use crate::engine::Database;
use crate::engine::analyze;
use crate::engine::outcome::Outcome;
use crate::engine::plans::CachedQueries;
use crate::engine::turns::{Defeats, Priority};
use crate::engine::view::StatementView;
use crate::engine::write::{StatementWrites, WriteInputs, writes_of};
use crate::error::{Error, Result, sqlstate};
use crate::exec::watch::CancelHandle;
use crate::sql::{Statement, name_of, span_of_name};
use crate::store::{Recording, WriteBatch};
use crate::txn::Transaction;
use crate::value::Value;

impl OpenTransaction {
    fn new(base: Arc<Catalog>, transaction: Transaction, as_of_us: i64) -> OpenTransaction {
        let (catalog, savepoints, later) = (Arc::clone(&base), Vec::new(), Arc::default());
        OpenTransaction { catalog, base, transaction, as_of_us, savepoints, later, awaited: Vec::new() }
    }

    /// Commits what it has written.
    pub(super) fn commit(
        self,
        db: &Database,
        cancel: &CancelHandle,
        priority: Option<&Priority>,
    ) -> Result<()> {
        let OpenTransaction { base, catalog, transaction, .. } = self;
        if transaction.is_empty() {
            return Ok(());
        }
        let batch = transaction.into_batch();
        if Arc::ptr_eq(&base, &catalog) {
            return db.commit_rows(batch, &base, cancel, priority);
        }
        db.commit_definitions(batch, (&base, &catalog), cancel, priority)?;
        db.background.purge(db);
        Ok(())
    }
}

impl Session {
    /// The view of a statement that writes; outside of a transaction it records what it reads.
    fn writing_view(&self) -> Result<StatementView> {
        let view = self.view()?;
        if self.open.is_some() {
            return Ok(view);
        }
        let recording = Arc::new(Recording::new(view.snapshot));
        Ok(StatementView { snapshot: recording.clone(), recording: Some(recording), ..view })
    }

    pub(super) async fn write(
        &mut self,
        statement: &Statement,
        queries: &CachedQueries,
        params: &[Value],
    ) -> Result<Outcome> {
        self.check_may_write()?;
        let statement = &*self.as_declared(statement);
        let given = WriteInputs { params, queries };
        let mut defeats = Defeats::default();
        loop {
            let view = self.writing_view()?;
            // By these definitions, or else it is refused: a foreign key may be added meanwhile.
            let priority = defeats.priority();
            let written = match is_bound(&view, statement) {
                true => {
                    drop(view);
                    Box::pin(self.write_bound(statement, given, priority)).await
                }
                false => Box::pin(self.write_once(view, statement, given, priority)).await,
            };
            match written {
                Err(e) if self.open.is_none() => {
                    defeats.again(e, &self.db.shared.turns, &self.watch.cancel)?;
                }
                written => return written,
            }
        }
    }

    /// Errors: the transaction is READ ONLY, or the database is.
    pub(in crate::engine) fn check_may_write(&self) -> Result<()> {
        self.db.check_may_write()?;
        if self.open.as_ref().is_some_and(|open| open.transaction.is_read_only()) {
            return Err(Error::invalid("the transaction is READ ONLY")
                .hint("ROLLBACK and begin one that may write")
                .state(sqlstate::READ_ONLY));
        }
        Ok(())
    }

    /// Rolls back a transaction that failed, so that it can begin again. Errors: those of [`Defeats::again`].
    pub(in crate::engine) fn again(&mut self, error: Error) -> Result<()> {
        self.abandon();
        self.defeats.again(error, &self.db.shared.turns, &self.watch.cancel)
    }

    /// Refreshes statistics after a write is committed, if needed: those of this table, or of all.
    pub(super) fn after_write(&self, outcome: Outcome, table: Option<&Ident>) -> Outcome {
        // A session that has priority would wait for itself.
        if self.open.is_none() && self.defeats.priority().is_none() {
            analyze::refresh(&self.db, table.map(name_of).as_deref(), &self.watch);
        }
        outcome
    }

    async fn write_once(
        &mut self,
        view: StatementView,
        statement: &Statement,
        given: WriteInputs<'_>,
        priority: Option<&Priority>,
    ) -> Result<Outcome> {
        let StatementWrites { mut batch, affected, returning } = writes_of(&view, statement, given).await?;
        if let Some(recording) = &view.recording {
            batch.reads = recording.reads();
        }
        let catalog = Arc::clone(&view.catalog);
        drop(view);
        // Behind the commit nothing may fail.
        let outcome = self.written(statement, affected, returning)?;
        match &mut self.open {
            Some(open) => open.transaction.apply(batch),
            None => self.db.commit_rows(batch, &catalog, &self.watch.cancel, priority)?,
        }
        Ok(outcome)
    }

    /// The outcome of a statement that has written rows.
    pub(super) fn written(
        &self,
        statement: &Statement,
        affected: u64,
        returning: Option<RecordBatch>,
    ) -> Result<Outcome> {
        let outcome = match returning {
            Some(batch) => self.table_outcome(statement.kind_name(), batch)?,
            None => self.done(statement.kind_name()),
        };
        Ok(Outcome { affected: Some(affected), ..outcome })
    }

    /// BEGIN, COMMIT, ROLLBACK and savepoints.
    pub(super) fn run_transaction(&mut self, statement: &Statement) -> Result<Outcome> {
        match statement {
            Statement::Begin { read_only } => self.begin(*read_only),
            Statement::Commit => self.run_commit().map(|committed| self.after_write(committed, None)),
            Statement::Rollback { to: None } => self.run_rollback(),
            Statement::Rollback { to: Some(name) } => self.rollback_to(name),
            Statement::Savepoint { name } => self.savepoint(name),
            Statement::Release { name } => self.release(name),
            _ => Err(Error::internal(format!("{} is not about a transaction", statement.kind_name()))),
        }
    }

    pub(in crate::engine) fn begin(&mut self, read_only: bool) -> Result<Outcome> {
        if self.open.is_some() {
            return Err(Error::invalid("a transaction is open already")
                .hint("COMMIT or ROLLBACK it first; SAVEPOINT nests")
                .state(sqlstate::IN_TRANSACTION));
        }
        let (catalog, snapshot) = self.db.view()?;
        let transaction = match read_only {
            true => Transaction::read_only(snapshot),
            false => Transaction::new(Recording::new(snapshot)),
        };
        self.open = Some(OpenTransaction::new(catalog, transaction, self.db.now_us()));
        Ok(self.done("BEGIN"))
    }

    /// Begins a transaction that reads a given snapshot.
    pub(in crate::engine) fn read_at(&mut self, moment: &Moment) {
        let transaction = Transaction::read_only(Arc::clone(&moment.snapshot));
        self.open = Some(OpenTransaction::new(Arc::clone(&moment.catalog), transaction, moment.as_of_us));
    }

    /// Adds a batch to the writes of the open transaction.
    pub(in crate::engine) fn write_down(&mut self, batch: WriteBatch) {
        if let Some(open) = &mut self.open {
            open.transaction.apply(batch);
        }
    }

    pub(super) fn open(&mut self) -> Result<&mut OpenTransaction> {
        self.open.as_mut().ok_or_else(|| {
            Error::invalid("no transaction is open").hint("BEGIN starts one").state(sqlstate::NO_TRANSACTION)
        })
    }

    /// `SET`: as long as the session, whatever becomes of the transaction.
    pub(super) fn set(&mut self, name: &str, value: &Value) -> Result<()> {
        let marks = self.open.iter_mut().flat_map(|open| &mut open.savepoints);
        let at_marks = marks.filter_map(|(_, mark)| mark.set_locally.as_mut());
        let mut all = [&mut self.settings].into_iter().chain(&mut self.lasting).chain(at_marks);
        all.try_for_each(|settings| settings.set(name, value))
    }

    /// `SET LOCAL`: until the transaction ends. Errors: none is open.
    pub(super) fn set_local(&mut self, name: &str, value: &Value) -> Result<()> {
        let outside =
            |e: Error| e.hint("SET without LOCAL lasts as long as the session; BEGIN starts a transaction");
        self.open().map(drop).map_err(outside)?;
        let before = self.settings.clone();
        self.settings.set(name, value)?;
        self.lasting.get_or_insert(before);
        Ok(())
    }

    /// Undoes what SET LOCAL has set.
    fn restore_settings(&mut self) {
        if let Some(lasting) = self.lasting.take() {
            self.settings = lasting;
        }
    }

    /// COMMIT. Errors: a row refers to one that is not there, or a table does; the transaction stays open then, to be
    /// mended.
    pub(in crate::engine) fn run_commit(&mut self) -> Result<Outcome> {
        self.open()?;
        self.add_awaited()?;
        self.check_deferred()?;
        let defeats = std::mem::take(&mut self.defeats);
        let committed = self.commit_open(defeats.priority());
        self.defeats = defeats;
        committed?;
        self.defeats.yield_priority();
        Ok(self.done("COMMIT"))
    }

    /// Commits the transaction that a statement has begun for itself, `before` it wrote: what a transaction may leave to
    /// its COMMIT, it has to mend itself.
    pub(in crate::engine) async fn commit_own(
        &mut self,
        before: &StatementView,
        priority: Option<&Priority>,
    ) -> Result<()> {
        if let Some(open) = &self.open {
            self.look_at(&open.later, Some(before)).await?;
        }
        self.commit_open(priority)
    }

    /// Commits the open transaction; with the priority of who has lost conflicts with it before.
    fn commit_open(&mut self, priority: Option<&Priority>) -> Result<()> {
        self.restore_settings();
        match self.open.take() {
            Some(open) => open.commit(&self.db, &self.watch.cancel, priority),
            None => Ok(()),
        }
    }

    fn run_rollback(&mut self) -> Result<Outcome> {
        self.open()?;
        self.abandon();
        Ok(self.done("ROLLBACK"))
    }

    /// Rolls back the open transaction, if any.
    pub(in crate::engine) fn abandon(&mut self) {
        self.open = None;
        self.restore_settings();
    }

    /// The current state of the open transaction, for a savepoint.
    pub(super) fn mark(&mut self) -> Result<SavepointMark> {
        let set_locally = self.lasting.as_ref().map(|_| self.settings.clone());
        let open = self.open()?;
        Ok(SavepointMark {
            catalog: Arc::clone(&open.catalog),
            written: open.transaction.savepoint(),
            awaited: open.awaited.len(),
            set_locally,
        })
    }

    fn savepoint(&mut self, name: &Ident) -> Result<Outcome> {
        let mark = self.mark()?;
        self.open()?.savepoints.push((name_of(name), mark));
        Ok(self.done("SAVEPOINT"))
    }

    fn find_savepoint(&mut self, name: &Ident) -> Result<usize> {
        let wanted = name_of(name);
        let found = self.open()?.savepoints.iter().rposition(|(n, _)| *n == wanted);
        found.ok_or_else(|| {
            Error::invalid(format!("there is no savepoint \"{wanted}\""))
                .state(sqlstate::UNDEFINED_SAVEPOINT)
                .at(span_of_name(name))
        })
    }

    fn rollback_to(&mut self, name: &Ident) -> Result<Outcome> {
        let at = self.find_savepoint(name)?;
        let open = self.open()?;
        open.savepoints.truncate(at + 1);
        if let Some((of, mark)) = open.savepoints.pop() {
            self.return_to(&mark);
            self.open()?.savepoints.push((of, mark));
        }
        Ok(self.done("ROLLBACK"))
    }

    /// Undoes what the open transaction has done since the mark.
    pub(super) fn return_to(&mut self, mark: &SavepointMark) {
        if let Some(open) = &mut self.open {
            open.transaction.rollback_to(&mark.written);
            open.catalog = Arc::clone(&mark.catalog);
            open.awaited.truncate(mark.awaited);
        }
        match &mark.set_locally {
            Some(settings) => self.settings.clone_from(settings),
            None => self.restore_settings(),
        }
    }

    fn release(&mut self, name: &Ident) -> Result<Outcome> {
        let at = self.find_savepoint(name)?;
        self.open()?.savepoints.truncate(at);
        Ok(self.done("RELEASE"))
    }
}
