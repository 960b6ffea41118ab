//! A write that other rows depend on: it runs in a transaction, and what follows from it belongs to it.
//!
//! 1. The statement writes; the rows that it wrote are compared before and after.
//! 2. Children of rows that are gone are deleted or changed, if their references say so (CASCADE, SET NULL, SET
//!    DEFAULT), by statements of which the same is true.
//! 3. When nothing more follows, what was left open is looked at: values that some row may have, and no parent. Whatever
//!    the statement did meanwhile, its end counts.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use sqlparser::ast::Ident;

use super::{Session, Whole};
use crate::catalog::Referrer;
use crate::engine::ddl::references::add_reference;
use crate::engine::outcome::{Outcome, Warning};
use crate::engine::references::{
    Bonds, Referred, Unchecked, follow_ups, lacking, left_alone, no_parent, parent_of, referred,
    still_referred,
};
use crate::engine::turns::Priority;
use crate::engine::view::StatementView;
use crate::engine::write::{StatementWrites, WriteInputs, writes_of};
use crate::error::{Error, Kind, Result};
use crate::exec::dml::ROWS_READ;
use crate::exec::stored;
use crate::key::Rowkey;
use crate::row::rows_of;
use crate::schema::{OnDelete, Reference, TableDef};
use crate::sql::{
    AlterTable, AlterTableOp, CreateTable, ForeignKeySetting, ReferenceDef, Statement, name_of,
};
use crate::store::{Mutation, WriteBatch};
use crate::value::ColumnType;

/// What a statement leaves to be done.
#[derive(Default)]
struct Consequences {
    /// Values that rows had which are deleted, for each reference from which something follows.
    follow: VecDeque<(Referrer, Vec<Referred>)>,
    /// What is looked at when nothing more follows.
    unchecked: Arc<Unchecked>,
}

impl Session {
    /// SQLite's `PRAGMA foreign_keys = OFF` and `defer_foreign_keys = ON`, with which its dumps begin: rows may come
    /// before those that they refer to, in the same transaction.
    pub(super) fn set_checks(&mut self, setting: ForeignKeySetting, is_on: bool) -> Option<Warning> {
        let is_off = setting == ForeignKeySetting::Checked && !is_on;
        self.checks_at_end = is_off || (setting == ForeignKeySetting::Deferred && is_on);
        is_off.then(|| Warning {
            code: None,
            what: "foreign keys are checked all the same".into(),
            why: "no row refers to one that is not there; in a transaction, COMMIT checks that from now on, and a table \
                  may refer to one that comes later"
                .into(),
            hint: "ALTER TABLE t DROP CONSTRAINT k drops one".into(),
        })
    }

    /// The table as SQLite stores it, if this is its dump: INTEGER has up to 64 bits there, and REAL always has.
    pub(in crate::engine) fn as_dumped<'c>(&self, create: &'c CreateTable) -> Cow<'c, CreateTable> {
        if !self.checks_at_end {
            return Cow::Borrowed(create);
        }
        let mut create = create.clone();
        for column in &mut create.columns {
            column.data_type = match column.data_type {
                ColumnType::SmallInt | ColumnType::Integer => ColumnType::BigInt,
                ColumnType::Real => ColumnType::Double,
                other => other,
            };
        }
        Cow::Owned(create)
    }

    /// The statement with the table called as it was declared, if this is a dump of SQLite, where names are the same in any
    /// case: it writes `CREATE TABLE "Album"` and `INSERT INTO Album`.
    pub(super) fn as_declared<'s>(&self, statement: &'s Statement) -> Cow<'s, Statement> {
        let Statement::Insert(insert) = statement else { return Cow::Borrowed(statement) };
        let name = &insert.table;
        if !self.checks_at_end || name.quote_style.is_some() {
            return Cow::Borrowed(statement);
        }
        let catalog = self.catalog();
        let mut alike = catalog.tables().filter(|table| table.name.eq_ignore_ascii_case(&name.value));
        match (alike.next(), alike.next()) {
            (Some(table), None) if table.name != name_of(name) => {
                let mut insert = insert.clone();
                insert.table = Ident { span: name.span, ..Ident::with_quote('"', &table.name) };
                Cow::Owned(Statement::Insert(insert))
            }
            _ => Cow::Borrowed(statement),
        }
    }

    /// The table to create without the foreign keys that refer to tables which come later, and these: in a transaction
    /// that checks foreign keys at its end, [`add_awaited`](Self::add_awaited) adds them.
    pub(in crate::engine) fn without_awaited<'c>(
        &self,
        create: &'c CreateTable,
    ) -> (Cow<'c, CreateTable>, Vec<ReferenceDef>) {
        let catalog = self.catalog();
        let is_missing = |name: &Ident| catalog.find(&name_of(name)).is_none();
        let waits = |reference: &ReferenceDef| {
            name_of(&reference.parent) != name_of(&create.name) && is_missing(&reference.parent)
        };
        let is_open = self.checks_at_end && self.open.is_some();
        if !is_open || !is_missing(&create.name) || !create.references.iter().any(waits) {
            return (Cow::Borrowed(create), Vec::new());
        }
        let mut create = create.clone();
        let (awaited, references) = std::mem::take(&mut create.references).into_iter().partition(waits);
        create.references = references;
        (Cow::Owned(create), awaited)
    }

    /// Keeps such foreign keys of a new table.
    pub(in crate::engine) fn keep_awaited(
        &mut self,
        table: &Ident,
        awaited: Vec<ReferenceDef>,
    ) -> Result<()> {
        if let Some(open) = self.open.as_mut().filter(|_| !awaited.is_empty()) {
            let table = open.catalog.table(&name_of(table))?.id;
            open.awaited.extend(awaited.into_iter().map(|reference| (table, reference)));
        }
        Ok(())
    }

    /// Adds the foreign keys that had to wait. Errors: what they refer to is still not there, or not for every row.
    pub(super) fn add_awaited(&mut self) -> Result<()> {
        let awaited = self.open()?.awaited.clone();
        if awaited.is_empty() {
            return Ok(());
        }
        let before = self.mark()?;
        for (table, reference) in awaited {
            // It may have another name by now, or be gone.
            let Some(table) = self.catalog().table_by_id(table).map(|table| table.name.clone()) else {
                continue;
            };
            let op = AlterTableOp::AddReference(Box::new(reference.clone()));
            let alter = AlterTable { if_exists: true, name: Ident::with_quote('"', &table), op };
            if let Err(e) = add_reference(self, &alter, &reference) {
                self.return_to(&before);
                return Err(e.in_front(&format!("{reference} of \"{table}\": ")).unplaced());
            }
        }
        self.open()?.awaited.clear();
        Ok(())
    }

    /// Runs a [bound](is_bound) statement: in the open transaction, or else in one of its own.
    pub(super) async fn write_bound(
        &mut self,
        statement: &Statement,
        given: WriteInputs<'_>,
        priority: Option<&Priority>,
    ) -> Result<Outcome> {
        let is_own = self.open.is_none();
        let mut whole = Whole::begin(self)?;
        if is_own {
            whole.session.begin(false)?;
        }
        let before = if is_own { Some(whole.session.view()?) } else { None };
        let written = whole.session.write_with_consequences(statement, given).await?;
        if let Some(before) = before {
            whole.session.commit_own(&before, priority).await?;
        }
        whole.is_done = true;
        Ok(written)
    }

    async fn write_with_consequences(
        &mut self,
        statement: &Statement,
        given: WriteInputs<'_>,
    ) -> Result<Outcome> {
        let mut left = Consequences::default();
        let before = self.view()?;
        let StatementWrites { affected, returning, .. } =
            self.write_step(statement, given, &mut left).await?;
        while let Some((referrer, gone)) = left.follow.pop_front() {
            let view = self.view()?;
            let (parent, reference) = (parent_of(&view, referrer.reference())?, referrer.reference());
            let gone = lacking(&view, reference, parent, gone.into_iter())?;
            for follow_up in follow_ups(&referrer, reference.on_delete, &gone) {
                let parsed = self.db.shared.statements.parse(&follow_up.sql)?;
                let given = WriteInputs { params: &follow_up.params, queries: &parsed.queries };
                let written = self.write_step(&parsed.statement, given, &mut left).await;
                written.map_err(|e| of_follow_up(e, reference))?;
            }
        }
        self.look_at(&left.unchecked, Some(&before)).await?;
        self.written(statement, affected, returning)
    }

    /// Errors: a deferred foreign key does not hold.
    pub(super) fn check_deferred(&self) -> Result<()> {
        match &self.open {
            Some(open) if !open.later.is_empty() => {
                self.db.shared.runtime.clone().block_on(self.look_at(&open.later, None))
            }
            _ => Ok(()),
        }
    }

    /// Errors: a row has one of these values, and no parent has it. `before`: a view from before the statement; `None`: of
    /// the whole transaction.
    pub(in crate::engine) async fn look_at(
        &self,
        unchecked: &Unchecked,
        before: Option<&StatementView>,
    ) -> Result<()> {
        let view = self.view()?;
        for (referrer, values) in unchecked.of(&view.catalog) {
            let (child, reference) = (&referrer.child, referrer.reference());
            let parent = parent_of(&view, reference)?;
            let gone = lacking(&view, reference, parent, values.into_iter())?;
            let Some(values) = self.first_child(&view, &referrer, &gone).await? else { continue };
            let Some(before) = before else { return Err(left_alone(child, reference, parent, &values)) };
            let then = before.catalog.table_by_id(parent.id);
            let was_there = match then {
                Some(parent) => {
                    lacking(before, reference, parent, std::iter::once(values.clone()))?.is_empty()
                }
                None => false,
            };
            return Err(match was_there {
                true => still_referred(&referrer, parent, &values),
                false => no_parent(child, reference, parent, &values),
            });
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
        let before = StatementView { later: before.later.clone().of_statement(&left.unchecked), ..before };
        let table = before.table(name)?;
        let mut writes = writes_of(&before, statement, given).await?;
        let referrers = Bonds::of(&before.catalog, &table, statement).to;
        let rowkeys = if referrers.is_empty() { BTreeSet::new() } else { rowkeys_in(&table, &writes.batch) };
        self.write_down(std::mem::take(&mut writes.batch));
        left.add(&table, referrers, (&before, &self.view()?), &rowkeys)?;
        Ok(writes)
    }

    /// The values of a row that refers by one of these.
    async fn first_child(
        &self,
        view: &StatementView,
        referrer: &Referrer,
        values: &[Referred],
    ) -> Result<Option<Referred>> {
        let (child, columns) = (&referrer.child, &referrer.reference().columns);
        let types: Vec<ColumnType> = columns.iter().map(|id| child.column(*id).ty).collect();
        for look in follow_ups(referrer, OnDelete::Refuse, values) {
            let parsed = self.db.shared.statements.parse(&look.sql)?;
            let Statement::Query(query) = &parsed.statement else {
                return Err(Error::internal("a look for children is no query"));
            };
            let asked = parsed.queries.source.of(Some(Vec::new()), || Ok((**query).clone()))?;
            let found = view.select_from(asked, Vec::new(), &look.params).await?;
            if let Some(values) = rows_of(&found, &types)?.pop() {
                return Ok(Some(values));
            }
        }
        Ok(None)
    }
}

impl Consequences {
    /// Adds what follows from a write of these rows; the two views are from before and after it.
    fn add(
        &mut self,
        table: &TableDef,
        referrers: Vec<Referrer>,
        (before, after): (&StatementView, &StatementView),
        rowkeys: &BTreeSet<Rowkey>,
    ) -> Result<()> {
        let mut deleted: Vec<BTreeSet<Referred>> = vec![BTreeSet::new(); referrers.len()];
        let mut changed = deleted.clone();
        let rowkeys: Vec<&[u8]> = rowkeys.iter().map(|rowkey| &rowkey[..]).collect();
        for rowkeys in rowkeys.chunks(ROWS_READ) {
            before.watch.cancel.check()?;
            let rows = |view: &StatementView| stored::rows_of(&*view.snapshot.reader()?, table, rowkeys);
            for (old, now) in rows(before)?.into_iter().zip(rows(after)?) {
                let (old, now) = (old.map(|row| row.values), now.map(|row| row.values));
                let of = |columns: &[_], row: &Option<Vec<_>>| referred(columns, row.as_ref()?);
                for (at, referrer) in referrers.iter().enumerate() {
                    let columns = &referrer.reference().parent_columns;
                    let gone = if now.is_none() { &mut deleted[at] } else { &mut changed[at] };
                    gone.extend(of(columns, &old).filter(|had| of(columns, &now).as_ref() != Some(had)));
                }
            }
        }
        for (referrer, (mut deleted, mut changed)) in
            referrers.into_iter().zip(deleted.into_iter().zip(changed))
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
                let (child, reference) = (&referrer.child, referrer.reference());
                if let Some(unchecked) = before.later.of(reference) {
                    unchecked.add(child, reference, changed);
                }
            }
        }
        Ok(())
    }
}

/// Do other rows depend on what the statement writes?
pub(super) fn is_bound(view: &StatementView, statement: &Statement) -> bool {
    if !view.catalog.has_references() {
        return false;
    }
    let table = statement.written_table().and_then(|name| view.catalog.table(&name_of(name)).ok());
    table.is_some_and(|table| !Bonds::of(&view.catalog, &table, statement).is_empty())
}

/// Names the reference that asked for what failed.
fn of_follow_up(error: Error, reference: &Reference) -> Error {
    let action = reference.on_delete.name();
    match error.kind() {
        Kind::Invalid => {
            error.in_front(&format!("ON DELETE {action} of \"{}\": ", reference.name)).unplaced()
        }
        _ => error.unplaced(),
    }
}

/// The rows that a batch writes or deletes.
fn rowkeys_in(table: &TableDef, batch: &WriteBatch) -> BTreeSet<Rowkey> {
    let is_of_row = |keyspace| table.families.iter().any(|family| family.keyspace == keyspace);
    let places = batch.mutations.iter().map(Mutation::place);
    places.filter(|(keyspace, _)| is_of_row(*keyspace)).map(|(_, rowkey)| rowkey.into()).collect()
}
