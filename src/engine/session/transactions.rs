//! Writes, and the transactions around them.

use std::sync::Arc;

use sqlparser::ast::Ident;

use super::{Open, RETRIES, RETRIES_BESIDE, Session};
use crate::df::query::Moment;
use crate::engine::analyze;
use crate::engine::outcome::Outcome;
use crate::engine::plans::KeptQueries;
use crate::engine::turns::Turn;
use crate::engine::view::View;
use crate::engine::write::{self, Given, Written};
use crate::error::{Error, Kind, Result};
use crate::sql::{Statement, name_of, span_of_name};
use crate::store::Recording;
use crate::txn::Transaction;
use crate::value::Value;

impl Session {
    /// What a statement sees that writes; by itself, it has to remember what it reads.
    fn writing_view(&self) -> Result<View> {
        let view = self.view()?;
        if self.open.is_some() {
            return Ok(view);
        }
        let recording = Arc::new(Recording::new(view.snapshot));
        Ok(View { snapshot: recording.clone(), recording: Some(recording), ..view })
    }

    pub(super) async fn write(
        &mut self,
        statement: &Statement,
        queries: &KeptQueries,
        params: &[Value],
    ) -> Result<Outcome> {
        if self.open.as_ref().is_some_and(|open| open.transaction.is_read_only()) {
            return Err(Error::invalid("the transaction is READ ONLY")
                .hint("ROLLBACK and begin one that may write")
                .state("25006"));
        }
        let given = Given { params, queries };
        if self.open.is_some() {
            return Box::pin(self.write_once(statement, given, None)).await;
        }
        let (mut retries, mut turn) = (0, None);
        loop {
            match Box::pin(self.write_once(statement, given, turn.as_ref())).await {
                Err(e) if e.kind() == Kind::Conflict && retries < RETRIES => retries += 1,
                written => return written,
            }
            if retries == RETRIES_BESIDE {
                turn = Some(self.db.shared.turns.take(&self.watch.cancel)?);
            }
        }
    }

    /// Keeps others from committing until this session is dropped.
    pub(in crate::engine) fn take_turn(&mut self) -> Result<()> {
        self.turn = Some(self.db.shared.turns.take(&self.watch.cancel)?);
        Ok(())
    }

    /// What is to be done when rows have changed for good.
    pub(super) fn settled(&self, outcome: Outcome) -> Outcome {
        // Whoever has the turn would wait for itself.
        if self.open.is_none() && self.turn.is_none() {
            analyze::refresh(&self.db, &self.watch);
        }
        outcome
    }

    async fn write_once(
        &mut self,
        statement: &Statement,
        given: Given<'_>,
        turn: Option<&Turn>,
    ) -> Result<Outcome> {
        let view = self.writing_view()?;
        let alone = self.open.is_none();
        let Written { mut batch, affected, returning } = match statement {
            Statement::Insert(insert) => write::insert(&view, insert, given, alone).await?,
            Statement::Update(update) => write::update(&view, update, given).await?,
            Statement::Delete(delete) => write::delete(&view, delete, given).await?,
            _ => return Err(Error::internal("not a write")),
        };
        if let Some(recording) = &view.recording {
            batch.reads = recording.reads();
        }
        let catalog = Arc::clone(&view.catalog);
        drop(view);
        match &mut self.open {
            Some(open) => open.transaction.apply(batch),
            None => self.db.commit_rows(batch, &catalog, &self.watch.cancel, turn)?,
        }
        let outcome = match returning {
            Some(batch) => self.table_outcome(statement.kind_name(), batch)?,
            None => self.done(statement.kind_name()),
        };
        Ok(Outcome { affected: Some(affected), ..outcome })
    }

    pub(super) fn begin(&mut self, read_only: bool) -> Result<Outcome> {
        if self.open.is_some() {
            return Err(Error::invalid("a transaction is open already")
                .hint("COMMIT or ROLLBACK it first; SAVEPOINT nests")
                .state("25001"));
        }
        let (catalog, snapshot) = self.db.view()?;
        let transaction = match read_only {
            true => Transaction::read_only(snapshot),
            false => Transaction::new(Recording::new(snapshot)),
        };
        let as_of_us = self.db.now_us();
        self.open = Some(Open { catalog, transaction, as_of_us, savepoints: Vec::new() });
        Ok(self.done("BEGIN"))
    }

    /// Begins a transaction that reads a moment held elsewhere.
    pub(in crate::engine) fn read_at(&mut self, moment: &Moment) {
        let transaction = Transaction::read_only(Arc::clone(&moment.snapshot));
        let Moment { catalog, as_of_us, .. } = moment;
        self.open = Some(Open {
            catalog: Arc::clone(catalog),
            transaction,
            as_of_us: *as_of_us,
            savepoints: Vec::new(),
        });
    }

    fn open(&mut self) -> Result<&mut Open> {
        self.open
            .as_mut()
            .ok_or_else(|| Error::invalid("no transaction is open").hint("BEGIN starts one").state("25P01"))
    }

    pub(super) fn run_commit(&mut self) -> Result<Outcome> {
        self.open()?;
        if let Some(open) = self.open.take()
            && !open.transaction.is_empty()
        {
            let batch = open.transaction.into_batch();
            self.db.commit_rows(batch, &open.catalog, &self.watch.cancel, self.turn.as_ref())?;
        }
        Ok(self.done("COMMIT"))
    }

    pub(super) fn run_rollback(&mut self) -> Result<Outcome> {
        self.open()?;
        self.abandon();
        Ok(self.done("ROLLBACK"))
    }

    /// Rolls back whatever is open.
    pub(in crate::engine) fn abandon(&mut self) {
        self.open = None;
    }

    pub(super) fn savepoint(&mut self, name: &Ident) -> Result<Outcome> {
        let open = self.open()?;
        open.savepoints.push((name_of(name), open.transaction.savepoint()));
        Ok(self.done("SAVEPOINT"))
    }

    fn find_savepoint(&mut self, name: &Ident) -> Result<usize> {
        let wanted = name_of(name);
        let found = self.open()?.savepoints.iter().rposition(|(n, _)| *n == wanted);
        found.ok_or_else(|| {
            Error::invalid(format!("there is no savepoint \"{wanted}\""))
                .state("3B001")
                .at(span_of_name(name))
        })
    }

    pub(super) fn rollback_to(&mut self, name: &Ident) -> Result<Outcome> {
        let at = self.find_savepoint(name)?;
        let open = self.open()?;
        open.transaction.rollback_to(&open.savepoints[at].1);
        open.savepoints.truncate(at + 1);
        Ok(self.done("ROLLBACK"))
    }

    pub(super) fn release(&mut self, name: &Ident) -> Result<Outcome> {
        let at = self.find_savepoint(name)?;
        self.open()?.savepoints.truncate(at);
        Ok(self.done("RELEASE"))
    }
}
