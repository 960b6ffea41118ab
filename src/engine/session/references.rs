//! A write that other rows depend on: it runs in a transaction, and what follows from it belongs to it.
//!
//! 1. The statement writes; the rows that it wrote are compared before and after.
//! 2. Children of rows that are gone are deleted or changed, if their references say so (CASCADE, SET NULL, SET
//!    DEFAULT), by statements of which the same is true.
//! 3. When nothing more follows, the references that refuse to lose a parent are checked, and those of new rows to
//!    their own table: whatever the statement did meanwhile, its end counts.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::{Session, Whole};
use crate::catalog::Referrer;
use crate::engine::outcome::Outcome;
use crate::engine::references::{
    Bonds, Referred, check_there, deferred_by, follow_ups, lacking, on_delete_sql, parent_of, referred,
    still_referred,
};
use crate::engine::rows::values_of;
use crate::engine::turns::Defeats;
use crate::engine::view::StatementView;
use crate::engine::write::{StatementWrites, WriteInputs, writes_of};
use crate::error::{Error, Kind, Result};
use crate::exec::dml::ROWS_READ;
use crate::exec::stored;
use crate::key::Rowkey;
use crate::schema::{OnDelete, Reference, TableDef};
use crate::sql::{Statement, name_of};
use crate::store::{Mutation, WriteBatch};

/// What a statement leaves to be done.
#[derive(Default)]
struct Consequences {
    /// Values that rows had which are deleted, for each reference from which something follows.
    follow: VecDeque<(Referrer, Vec<Referred>)>,
    /// Values that rows had which are deleted, or have others now, if no row may refer to them any more.
    refuse: Vec<(Referrer, Vec<Referred>)>,
    /// Values by which new rows refer to their own table, with the reference's position.
    own: Vec<(Arc<TableDef>, usize, BTreeSet<Referred>)>,
}

impl Session {
    /// Do other rows depend on what the statement writes?
    pub(super) fn is_bound(&self, statement: &Statement) -> bool {
        let catalog = self.catalog();
        let table = statement.written_table().and_then(|name| catalog.table(&name_of(name)).ok());
        table.is_some_and(|table| !Bonds::of(&catalog, &table, statement).is_empty())
    }

    /// Runs a [bound](Session::is_bound) statement: in the open transaction, or else in one of its own.
    pub(super) async fn write_bound(
        &mut self,
        statement: &Statement,
        given: WriteInputs<'_>,
    ) -> Result<Outcome> {
        if self.open.is_some() {
            let mut whole = Whole::begin(self)?;
            let written = whole.session.write_with_consequences(statement, given).await;
            whole.is_done = written.is_ok();
            return written;
        }
        let mut defeats = Defeats::default();
        loop {
            match self.write_in_own_transaction(statement, given, &defeats).await {
                Err(e) => defeats.again(e, &self.db.shared.turns, &self.watch.cancel)?,
                written => return written,
            }
        }
    }

    async fn write_in_own_transaction(
        &mut self,
        statement: &Statement,
        given: WriteInputs<'_>,
        defeats: &Defeats,
    ) -> Result<Outcome> {
        let whole = Whole::begin(self)?;
        whole.session.begin(false)?;
        let written = whole.session.write_with_consequences(statement, given).await?;
        whole.session.look_at_deferred().await?;
        if let Some(open) = whole.session.open.take() {
            open.commit(&whole.session.db, &whole.session.watch.cancel, defeats.priority())?;
        }
        Ok(written)
    }

    async fn write_with_consequences(
        &mut self,
        statement: &Statement,
        given: WriteInputs<'_>,
    ) -> Result<Outcome> {
        let mut left = Consequences::default();
        let StatementWrites { affected, returning, .. } =
            self.write_step(statement, given, &mut left).await?;
        while let Some((referrer, gone)) = left.follow.pop_front() {
            let gone = self.still_gone(&referrer, gone)?;
            for follow_up in follow_ups(&referrer, referrer.reference().on_delete, &gone) {
                let parsed = self.db.shared.statements.parse(&follow_up.sql)?;
                let given = WriteInputs { params: &follow_up.params, queries: &parsed.queries };
                let written = self.write_step(&parsed.statement, given, &mut left).await;
                written.map_err(|e| of_follow_up(e, referrer.reference()))?;
            }
        }
        let view = self.view()?;
        for (referrer, gone) in left.refuse {
            match deferred_by(&view, referrer.reference()) {
                Some(deferred) => deferred.add(&referrer.child, referrer.reference(), gone),
                None => self.refuse_if_referred(&view, &referrer, gone).await?,
            }
        }
        for (table, at, values) in left.own {
            check_there(&view, &table, &table.references[at], values.into_iter())?;
        }
        self.written(statement, affected, returning)
    }

    /// Errors: a deferred foreign key does not hold.
    pub(super) fn check_deferred(&mut self) -> Result<()> {
        match self.open.as_ref().is_none_or(|open| open.deferred.is_empty()) {
            true => Ok(()),
            false => self.db.shared.runtime.clone().block_on(self.look_at_deferred()),
        }
    }

    async fn look_at_deferred(&self) -> Result<()> {
        let Some(open) = &self.open else { return Ok(()) };
        let view = self.view()?;
        for (referrer, values) in open.deferred.of(&open.catalog) {
            self.refuse_if_referred(&view, &referrer, values).await?;
        }
        Ok(())
    }

    /// Writes into the open transaction; adds what follows from it to `left`.
    async fn write_step(
        &mut self,
        statement: &Statement,
        given: WriteInputs<'_>,
        left: &mut Consequences,
    ) -> Result<StatementWrites> {
        let name = statement.written_table().ok_or_else(|| Error::internal("not a write"))?;
        let before = self.view()?;
        let table = before.table(name)?;
        let mut writes = writes_of(&before, statement, given).await?;
        let bonds = Bonds::of(&before.catalog, &table, statement);
        let rowkeys = if bonds.is_empty() { BTreeSet::new() } else { rowkeys_in(&table, &writes.batch) };
        self.write_down(std::mem::take(&mut writes.batch));
        left.add(&table, bonds, (&before, &self.view()?), &rowkeys)?;
        Ok(writes)
    }

    /// Those of the values that no row of the parent has now.
    fn still_gone(&self, referrer: &Referrer, gone: Vec<Referred>) -> Result<Vec<Referred>> {
        let (view, reference) = (self.view()?, referrer.reference());
        lacking(&view, reference, parent_of(&view, reference)?, gone.into_iter())
    }

    /// Errors: a row refers to one that is gone.
    async fn refuse_if_referred(
        &self,
        view: &StatementView,
        referrer: &Referrer,
        gone: Vec<Referred>,
    ) -> Result<()> {
        let gone = self.still_gone(referrer, gone)?;
        for look in follow_ups(referrer, OnDelete::Refuse, &gone) {
            let parsed = self.db.shared.statements.parse(&look.sql)?;
            let Statement::Query(query) = &parsed.statement else {
                return Err(Error::internal("a look for children is no query"));
            };
            let asked = parsed.queries.source.of(Some(Vec::new()), || Ok((**query).clone()))?;
            let found = view.select_from(asked, Vec::new(), &look.params).await?;
            if let Some(values) = values_of(&found)?.first() {
                return Err(still_referred(referrer, parent_of(view, referrer.reference())?, values));
            }
        }
        Ok(())
    }
}

impl Consequences {
    /// Adds what follows from a write of these rows; the two views are from before and after it.
    fn add(
        &mut self,
        table: &Arc<TableDef>,
        bonds: Bonds,
        (before, after): (&StatementView, &StatementView),
        rowkeys: &BTreeSet<Rowkey>,
    ) -> Result<()> {
        let mut deleted: Vec<BTreeSet<Referred>> = vec![BTreeSet::new(); bonds.to.len()];
        let mut changed = deleted.clone();
        let mut new: Vec<BTreeSet<Referred>> = vec![BTreeSet::new(); bonds.own.len()];
        let rowkeys: Vec<&[u8]> = rowkeys.iter().map(|rowkey| &rowkey[..]).collect();
        for rowkeys in rowkeys.chunks(ROWS_READ) {
            before.watch.cancel.check()?;
            let rows = |view: &StatementView| stored::rows_of(&*view.snapshot.reader()?, table, rowkeys);
            for (old, now) in rows(before)?.into_iter().zip(rows(after)?) {
                let (old, now) = (old.map(|row| row.values), now.map(|row| row.values));
                let of = |columns: &[_], row: &Option<Vec<_>>| referred(columns, row.as_ref()?);
                for (at, referrer) in bonds.to.iter().enumerate() {
                    let columns = &referrer.reference().parent_columns;
                    let gone = if now.is_none() { &mut deleted[at] } else { &mut changed[at] };
                    gone.extend(of(columns, &old).filter(|had| of(columns, &now).as_ref() != Some(had)));
                }
                for (at, new) in bonds.own.iter().zip(&mut new) {
                    let columns = &table.references[*at].columns;
                    let has = of(columns, &now);
                    new.extend(has.filter(|has| of(columns, &old).as_ref() != Some(has)));
                }
            }
        }
        for (referrer, (mut deleted, mut changed)) in
            bonds.to.into_iter().zip(deleted.into_iter().zip(changed))
        {
            match referrer.reference().on_delete {
                OnDelete::Refuse => changed.append(&mut deleted),
                // The default may be what is deleted.
                OnDelete::SetDefault => changed.extend(deleted.iter().cloned()),
                OnDelete::Cascade | OnDelete::SetNull => {}
            }
            if !deleted.is_empty() {
                self.follow.push_back((referrer.clone(), deleted.into_iter().collect()));
            }
            if !changed.is_empty() {
                self.refuse.push((referrer, changed.into_iter().collect()));
            }
        }
        let new = bonds.own.into_iter().zip(new).filter(|(_, new)| !new.is_empty());
        self.own.extend(new.map(|(at, new)| (Arc::clone(table), at, new)));
        Ok(())
    }
}

/// Names the reference that asked for what failed.
fn of_follow_up(error: Error, reference: &Reference) -> Error {
    let action = on_delete_sql(reference.on_delete).trim_start();
    match error.kind() {
        Kind::Invalid => error.in_front(&format!("{action} of \"{}\": ", reference.name)).unplaced(),
        _ => error.unplaced(),
    }
}

/// The rows that a batch writes or deletes.
fn rowkeys_in(table: &TableDef, batch: &WriteBatch) -> BTreeSet<Rowkey> {
    let is_of_row = |keyspace| table.families.iter().any(|family| family.keyspace == keyspace);
    let places = batch.mutations.iter().map(Mutation::place);
    places.filter(|(keyspace, _)| is_of_row(*keyspace)).map(|(_, rowkey)| rowkey.into()).collect()
}
