//! CREATE INDEX and REPAIR INDEX: an online backfill of an index. [`rekey`](super::rekey) builds by the same steps.
//!
//! 1. The definition is committed in state Building: from then on every write maintains the index, and no
//!    query reads it.
//! 2. The rows are walked step by step and their entries written through the bulk door; each step also stores
//!    how far it came. Rows are read and sorted beside other writers, as many as fit in memory, and written
//!    if nobody has changed the table meanwhile. Otherwise, all further steps run under the writer lock:
//!    short at first, then doubled, so that a large index is not rewritten again and again. Entries written
//!    since 1. are overwritten with the same bytes.
//! 3. The definition is committed in state Ready; or Broken, if a UNIQUE index found duplicate keys.
//!
//! REPAIR clears an index and builds it so; but a UNIQUE one that is Ready gets all its entries in one step, under the
//! writer lock, for they keep others from writing a key twice.
//!
//! Only one builder works on an index at a time: a second one would clear what the first has called Ready.
//!
//! A build that is killed continues after its last step when the database is opened again ([`resume`]). One
//! that fails is undone, and the table is untouched.
//!
//! In a transaction nobody else sees the index: its entries are part of the transaction's writes.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sqlparser::ast::Ident;

use super::Database;
use super::ddl::{free_name, index_layout, layout_warnings, new_index, new_name};
use super::expiry;
use super::formulas::Formulas;
use super::outcome::Warning;
use super::rekeying;
use super::session::Session;
use super::view::{StatementView, column_named};
use crate::catalog::{CATALOG_KEYSPACE, Catalog, CatalogEdit, build_key};
use crate::error::{Error, Kind, Result, sqlstate};
use crate::exec::build::{DuplicateKey, Most, ProgressCallback, SortedEntries, gather_entries, gather_rows};
use crate::exec::bulk::RowsBefore;
use crate::exec::watch::{CancelHandle, Watch};
use crate::key::{ColumnId, KeyRange, Rowkey};
use crate::schema::{IndexDef, IndexId, IndexState, TableDef};
use crate::sql::{CreateIndex, name_of, name_sql, span_of_name, unqualified};
use crate::store::{BulkWriter, Direction, Reads, Snapshot};

/// Runs CREATE INDEX; gives its warnings.
pub fn create_index(db: &Database, create: &CreateIndex, watch: &Watch) -> Result<Vec<Warning>> {
    let defined = db.change_catalog(&watch.cancel, |catalog| {
        let Some(Defined { mut edit, mut table, index, warnings }) = define(db, catalog, create)? else {
            return Ok((None, None));
        };
        let builder = Builder::with(db, index.id).ok_or_else(|| being_built(&index.name))?;
        table.indexes.push(index);
        edit.put_table(table)?;
        Ok((Some((builder, warnings)), Some(edit.finish()?)))
    })?;
    let Some((builder, warnings)) = defined else { return Ok(Vec::new()) };
    let id = builder.id;
    match build(db, &builder, watch) {
        Ok(()) => Ok(warnings),
        Err(Failure::Broken(e)) => Err(e),
        Err(Failure::Stopped(e)) => {
            // Report what stopped the build; as a hint, that it could not be undone.
            let undone = change_index(db, id, &undoing(), |edit, table, index| edit.drop_index(table, index));
            Err(match undone {
                Ok(()) => e,
                Err(_) => not_undone(
                    e,
                    "the index is there, Building: DROP INDEX it, or it is finished when the database is opened again",
                ),
            })
        }
    }
}

/// Runs CREATE INDEX in a transaction, over all rows that it sees; gives its warnings.
pub fn create_index_within(session: &mut Session, create: &CreateIndex) -> Result<Vec<Warning>> {
    if let Ok(table) = session.catalog().table(&name_of(&create.table)) {
        // Expired rows may occupy UNIQUE keys, or not fit into the index.
        session.purge(&table)?;
    }
    session.change_rows(|catalog, view, writer| {
        let Some(Defined { mut edit, mut table, index, warnings }) = define(&view.db, catalog, create)?
        else {
            return Ok((Vec::new(), None));
        };
        let mut examples = Vec::new();
        let taken = write_all(view, (&table, &index), writer, &mut examples)?;
        if taken > 0 {
            let hint = ", and there is no such index: change the rows, and create it then";
            return Err(not_unique(&table, &index, taken, &examples, hint));
        }
        table.indexes.push(IndexDef { state: IndexState::Ready, ..index });
        edit.put_table(table)?;
        Ok((warnings, Some(edit.finish()?)))
    })
}

/// Writes the entries of all rows that a statement sees; gives the number of those that were left out, as UNIQUE keys are
/// taken, and some of them as examples.
fn write_all(
    view: &StatementView,
    (table, index): (&TableDef, &IndexDef),
    writer: &mut dyn BulkWriter,
    examples: &mut Vec<DuplicateKey>,
) -> Result<u64> {
    let StatementView { snapshot, watch, as_of_us, .. } = view;
    let label = format!("building {}", index.name);
    let total = snapshot.reader()?.entries(table.rows())?;
    let (mut range, mut rows, mut taken) = (KeyRange::all(), 0, 0);
    let mut before = RowsBefore::new(&**snapshot, *as_of_us);
    loop {
        let progress = &mut |n| watch.step(&label, rows + n, Some(total), "rows");
        let gathered = gather_entries((table, index), &range, UNLOCKED_STEP, &**snapshot, progress)?;
        match index.unique {
            true => {
                taken +=
                    gathered.write_unique((table, index), &mut before, writer, examples, &watch.cancel)?;
            }
            false => gathered.write(writer, &watch.cancel)?,
        }
        rows += gathered.rows;
        match gathered.last {
            Some(last) => range.start = last.successor(),
            None => break,
        }
    }
    watch.finish(&label, rows, "rows");
    Ok(taken)
}

/// A new index, and its table, which now has the hidden columns of the index's formulas.
struct Defined {
    edit: CatalogEdit,
    table: TableDef,
    index: IndexDef,
    warnings: Vec<Warning>,
}

/// Defines the index, in state Building; `None` if it exists and IF NOT EXISTS was given.
fn define(db: &Database, catalog: &Catalog, create: &CreateIndex) -> Result<Option<Defined>> {
    let table = catalog.table(&name_of(&create.table)).map_err(|e| e.at(span_of_name(&create.table)))?;
    rekeying::refuse(&table)?;
    let name = match &create.name {
        Some(name) => new_name(name)?,
        None => free_name(catalog, &table, &create.keys, create.unique),
    };
    if create.if_not_exists && catalog.index(&name).is_ok() {
        return Ok(None);
    }
    catalog.check_free(&name).map_err(|e| e.at(create.name.as_ref().and_then(span_of_name)))?;
    let include =
        create.include.iter().map(|ident| column_named(&table, ident)).collect::<Result<Vec<ColumnId>>>()?;
    let mut table = (*table).clone();
    let mut formulas = Formulas { db, catalog, table: &mut table };
    let parts = formulas.of_keys(&create.keys)?;
    let filter = match (&create.filter, &create.filter_sql) {
        (Some(filter), Some(sql)) => {
            Some((formulas.condition(filter)?, unqualified(sql, &name_of(&create.table))?))
        }
        _ => None,
    };
    let layout = index_layout(&table, &create.keys, &parts)?;
    let mut edit = catalog.edit();
    let index = new_index(&mut edit, &table, name, create.unique, layout, &include, filter);
    let warnings = layout_warnings(&table, &index.layout).into_iter().map(|w| w.of(&index.name)).collect();
    Ok(Some(Defined { edit, table, index, warnings }))
}

/// What stopped a statement whose work could not be undone.
pub(super) fn not_undone(error: Error, hint: &str) -> Error {
    let is_stopped = error.kind() == Kind::Cancelled;
    let error = if is_stopped { error.why("what it had written could not be undone") } else { error };
    error.hint(hint)
}

/// A time limit for undoing a stopped statement, in case a long load holds the writer lock.
pub(super) fn undoing() -> CancelHandle {
    CancelHandle::within(Duration::from_millis(500))
}

/// Runs REPAIR INDEX: rebuilds the index from the table.
pub fn repair(session: &mut Session, name: &Ident) -> Result<()> {
    let (db, watch) = (&session.database().clone(), &session.watch().clone());
    let catalog = db.catalog();
    let (table, index) = catalog.index(&name_of(name)).map_err(|e| e.at(span_of_name(name)))?;
    if index.state == IndexState::Ready {
        rehearse(db, index.id, watch)?;
        if index.unique && !table.is_next_key(&index) && replace(session, name)? {
            return Ok(());
        }
    }
    let builder = db.change_catalog(&watch.cancel, |catalog| {
        let (table, index) = catalog.index(&name_of(name)).map_err(|e| e.at(span_of_name(name)))?;
        rekeying::refuse(&table)?;
        // Clearing what another builder writes would leave a Ready index with gaps.
        let builder =
            Builder::with(db, index.id).ok_or_else(|| being_built(&index.name).at(span_of_name(name)))?;
        let mut edit = catalog.edit();
        edit.batch.clear(index.keyspace);
        edit.set_state(&table, index.id, IndexState::Building)?;
        Ok((builder, Some(edit.finish()?)))
    })?;
    watch.cancel.note_committed("no query reads the index until REPAIR INDEX has run to its end");
    match build(db, &builder, watch) {
        Ok(()) => Ok(()),
        Err(Failure::Broken(e)) => Err(e),
        Err(Failure::Stopped(e)) => {
            // If this fails, the index stays Building, which no query reads either.
            let _ = set_state(db, builder.id, IndexState::Broken, &undoing());
            Err(e)
        }
    }
}

/// Replaces all entries of a UNIQUE index at once, while nobody else writes: without its entries, nothing would keep others
/// from writing a key twice. False: nothing was done, as its pages cannot be read, rows share a key already, or another builder
/// is at work.
fn replace(session: &mut Session, name: &Ident) -> Result<bool> {
    let replaced = session.change_rows(|catalog, view, writer| {
        let (table, index) = catalog.index(&name_of(name)).map_err(|e| e.at(span_of_name(name)))?;
        rekeying::refuse(&table)?;
        if index.state != IndexState::Ready {
            return Ok((false, None));
        }
        let reader = view.snapshot.reader()?;
        let mut cursor = reader.cursor(index.keyspace, &KeyRange::all(), Direction::Forward)?;
        for done in 0.. {
            let Some((key, _)) = cursor.next()? else { break };
            view.watch.cancel.tick(done)?;
            writer.delete(index.keyspace, key)?;
        }
        let taken = write_all(view, (&table, &index), writer, &mut Vec::new())?;
        Ok(match taken {
            0 => (true, Some(catalog.edit().finish()?)),
            _ => (false, None),
        })
    });
    match replaced {
        Err(e) if e.kind() == Kind::Corrupt => Ok(false),
        replaced => replaced,
    }
}

/// Makes all entries that an index will have, and writes none: rows that cannot be read, or do not fit into it, are met
/// while the old entries are still there.
fn rehearse(db: &Database, id: IndexId, watch: &Watch) -> Result<()> {
    let mut moment = BuildSnapshot::of(id, db.store().snapshot()?)?;
    let (_, total) = moment.label(Job::Entries)?;
    let label = format!("checking the rows for {}", moment.index.name);
    loop {
        let done = moment.progress.rows;
        let progress = &mut |rows| watch.step(&label, done + rows, Some(total), "rows");
        let gathered;
        (moment, gathered) = moment.gather(Job::Entries, UNLOCKED_STEP, progress)?;
        moment.progress.rows += gathered.rows;
        let Some(last) = gathered.last else { break };
        moment.progress.last = last.into_bytes();
    }
    watch.finish(&label, moment.progress.rows, "rows");
    Ok(())
}

/// Finishes the builds that were under way when the database was closed. An index that cannot be finished
/// (the disk is full, say) stays as it is: no query reads it, and REPAIR INDEX says why. One that the rows do
/// not fit into becomes Broken, or every open would try it again.
pub fn resume(db: &Database, watch: &Watch) {
    let building: Vec<IndexId> = db.catalog().building().collect();
    for id in building {
        if let Some(builder) = Builder::with(db, id)
            && let Err(Failure::Stopped(e)) = build(db, &builder, watch)
            && e.kind() == Kind::Invalid
        {
            let _ = set_state(db, id, IndexState::Broken, &undoing());
        }
    }
}

/// Indexes that are being built, each by one builder.
pub(super) type Building = Arc<Mutex<HashSet<IndexId>>>;

/// The right to build an index; there is one per index.
struct Builder {
    id: IndexId,
    all: Building,
}

impl Builder {
    /// `None` if the index is being built already.
    fn with(db: &Database, id: IndexId) -> Option<Builder> {
        let all = Arc::clone(&db.shared.building);
        let is_free = all.lock().insert(id);
        is_free.then(|| Builder { id, all })
    }
}

impl Drop for Builder {
    fn drop(&mut self) {
        self.all.lock().remove(&self.id);
    }
}

fn being_built(index: &str) -> Error {
    Error::new(Kind::Unavailable, format!("index \"{index}\" is being built"))
        .why("two would undo each other's work")
        .hint("wait until SHOW INDEXES says that it is Ready")
        .state(sqlstate::OBJECT_STATE)
}

/// Why an index is not Ready.
enum Failure {
    /// UNIQUE keys are taken; the index exists and is Broken.
    Broken(Error),
    /// The index is still Building.
    Stopped(Error),
}

impl From<Error> for Failure {
    fn from(e: Error) -> Failure {
        Failure::Stopped(e)
    }
}

/// How far a build has come, as stored in the catalog.
#[derive(Default, Serialize, Deserialize)]
struct BuildProgress {
    /// The last row that was done.
    last: Vec<u8>,
    /// Rows done.
    rows: u64,
    /// Rows left out because their keys were taken.
    taken: u64,
}

/// Rows (count) of the first step under the writer lock; each further step has twice as many.
const FIRST_STEP_ROWS: u64 = 512;

/// Limit of a step under the writer lock, where other writers wait.
const LOCKED: Most = Most { rows: u64::MAX, bytes: 64 << 20 };

/// Limit of a step that is read and sorted beside other writers.
const UNLOCKED_STEP: Most = Most { rows: u64::MAX, bytes: 128 << 20 };

/// Backfills the entries of rows older than the index, from the last step on.
fn build(db: &Database, builder: &Builder, watch: &Watch) -> Result<(), Failure> {
    let id = builder.id;
    match steps(db, id, Job::Entries, watch)? {
        None => Ok(set_state(db, id, IndexState::Ready, &watch.cancel)?),
        Some(taken) => {
            set_state(db, id, IndexState::Broken, &watch.cancel)?;
            Err(Failure::Broken(taken))
        }
    }
}

/// What is built.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Job {
    /// The entries of an index.
    Entries,
    /// The table under its next layout, which the index of a REKEY stands for.
    Rows,
}

/// Runs a job step by step, from the last step on; gives the error if rows share a UNIQUE key.
pub(super) fn steps(db: &Database, id: IndexId, job: Job, watch: &Watch) -> Result<Option<Error>> {
    if job == Job::Entries
        && let Some((table, _)) = db.catalog().index_by_id(id)
    {
        // Expired rows may occupy UNIQUE keys, or not fit into the index.
        expiry::purge_before(db, table, db.now_us(), watch)?;
    }
    let (examples, rows_max) = (Vec::new(), FIRST_STEP_ROWS);
    let mut steps = Steps { db, id, job, watch, examples, rows_max, is_quiet: true };
    loop {
        if let ControlFlow::Break(taken) = steps.step()? {
            return Ok(taken);
        }
    }
}

/// A job in progress.
struct Steps<'a> {
    db: &'a Database,
    id: IndexId,
    job: Job,
    watch: &'a Watch,
    /// Rows that share a UNIQUE key.
    examples: Vec<DuplicateKey>,
    /// Rows (count) of the next step under the writer lock.
    rows_max: u64,
    /// No other writer has changed the table so far.
    is_quiet: bool,
}

impl Steps<'_> {
    /// Commits the next step; at the end, gives the error if rows share a UNIQUE key.
    fn step(&mut self) -> Result<ControlFlow<Option<Error>>> {
        let (job, watch) = (self.job, self.watch);
        let beside = if self.is_quiet { Some(self.gather_beside()?) } else { None };
        let (load, mut writer) = self.db.load(&watch.cancel)?;
        let (moment, gathered) = match beside {
            Some((moment, gathered)) if writer.check(&moment.reads()).is_ok() => (moment, gathered),
            _ => self.gather_locked()?,
        };
        let (label, total) = moment.label(job)?;
        let BuildSnapshot { snapshot, table, index, mut progress, .. } = moment;
        if progress.rows == 0 {
            // What was found before a TRUNCATE is gone.
            self.examples.clear();
        }
        progress.rows += gathered.rows;
        // Progress is not reported under the writer lock: the callback might write.
        if job == Job::Entries && index.unique {
            // Rows go on expiring after the first purge.
            let mut before = RowsBefore::new(&*snapshot, self.db.now_us());
            let (examples, cancel) = (&mut self.examples, &watch.cancel);
            progress.taken +=
                gathered.write_unique((&table, &index), &mut before, &mut *writer, examples, cancel)?;
        } else {
            gathered.write(&mut *writer, &watch.cancel)?;
        }
        let is_last = gathered.last.is_none();
        if let Some(last) = gathered.last {
            progress.last = last.into_bytes();
            let bytes = serde_json::to_vec(&progress)
                .map_err(|e| Error::internal("progress cannot be written as JSON").caused_by(e))?;
            writer.put(CATALOG_KEYSPACE, &build_key(self.id), &bytes)?;
        }
        writer.commit()?;
        drop(load);
        if !is_last {
            watch.step(&label, progress.rows, Some(total), "rows")?;
            return Ok(ControlFlow::Continue(()));
        }
        watch.finish(&label, progress.rows, "rows");
        Ok(ControlFlow::Break(self.taken(&table, &index, progress.taken)))
    }

    /// The next entries, made beside other writers.
    fn gather_beside(&self) -> Result<(BuildSnapshot, SortedEntries)> {
        let moment = BuildSnapshot::of(self.id, self.db.store().snapshot()?)?;
        let (label, total) = moment.label(self.job)?;
        let done = moment.progress.rows;
        let progress = &mut |rows| self.watch.step(&label, done + rows, Some(total), "rows");
        progress(0)?;
        moment.gather(self.job, UNLOCKED_STEP, progress)
    }

    /// The next entries, made while nobody else writes, so that the snapshot is current.
    fn gather_locked(&mut self) -> Result<(BuildSnapshot, SortedEntries)> {
        self.is_quiet = false;
        let most = Most { rows: self.rows_max, ..LOCKED };
        self.rows_max = self.rows_max.saturating_mul(2);
        let moment = BuildSnapshot::of(self.id, self.db.store().snapshot()?)?;
        moment.gather(self.job, most, &mut |_| self.watch.cancel.check())
    }

    /// The error if UNIQUE keys are taken; `taken`: the rows that were left out (count).
    fn taken(&self, table: &TableDef, index: &IndexDef, taken: u64) -> Option<Error> {
        let hint = || match table.is_next_key(index) {
            true => ": add a part that tells them apart, or change the rows".to_owned(),
            false => format!(
                ", the index is Broken: change the rows and REPAIR INDEX {0}, or DROP INDEX {0}",
                name_sql(&index.name)
            ),
        };
        (taken > 0).then(|| not_unique(table, index, taken, &self.examples, &hint()))
    }
}

/// The snapshot and definitions that a step starts from.
struct BuildSnapshot {
    snapshot: Arc<dyn Snapshot>,
    catalog: Catalog,
    table: Arc<TableDef>,
    index: IndexDef,
    progress: BuildProgress,
}

impl BuildSnapshot {
    fn of(id: IndexId, snapshot: Arc<dyn Snapshot>) -> Result<BuildSnapshot> {
        let reader = snapshot.reader()?;
        let catalog = Catalog::load(&*reader)?;
        let (table, index) = catalog.index_by_id(id).ok_or_else(gone)?;
        let progress = match reader.get(CATALOG_KEYSPACE, &build_key(id))? {
            Some(bytes) => serde_json::from_slice(bytes).map_err(|e| {
                Error::corrupt(format!("the progress of building \"{}\" cannot be read", index.name))
                    .hint(again(table, index))
                    .caused_by(e)
            })?,
            None => BuildProgress::default(),
        };
        drop(reader);
        let (table, index) = (Arc::clone(table), index.clone());
        Ok(BuildSnapshot { snapshot, catalog, table, index, progress })
    }

    /// The progress label, and the number of rows in all.
    fn label(&self, job: Job) -> Result<(String, u64)> {
        let BuildSnapshot { table, index, .. } = self;
        let label = match (job, table.is_next_key(index)) {
            (Job::Entries, false) => format!("building {}", index.name),
            (Job::Entries, true) => format!("re-keying {}: keys", table.name),
            (Job::Rows, _) => format!("re-keying {}: rows", table.name),
        };
        Ok((label, self.snapshot.reader()?.entries(table.rows())?))
    }

    /// The sorted entries of rows not done yet.
    fn gather(
        self,
        job: Job,
        most: Most,
        progress: &mut ProgressCallback<'_>,
    ) -> Result<(BuildSnapshot, SortedEntries)> {
        let BuildSnapshot { table, index, .. } = &self;
        let range = match self.progress.rows {
            0 => KeyRange::all(),
            _ => KeyRange::starting_at(Rowkey::new(&self.progress.last[..]).successor()),
        };
        let gathered = match job {
            Job::Entries => gather_entries((table, index), &range, most, &*self.snapshot, progress)?,
            Job::Rows => {
                let next = table.followed().ok_or_else(gone)?;
                gather_rows((table, next), &range, most, &*self.snapshot, progress)?
            }
        };
        Ok((self, gathered))
    }

    /// What the entries were made from: the rows, the definitions, and how far the build was.
    fn reads(&self) -> Reads {
        let mut reads = Reads::new(self.snapshot.version());
        let families = self.table.family_ids().map(|id| self.table.family(id).keyspace).collect();
        self.catalog.rely_on(&mut reads, &families);
        families.iter().for_each(|keyspace| reads.add(*keyspace, KeyRange::all()));
        reads.add(CATALOG_KEYSPACE, KeyRange::point(build_key(self.index.id)));
        reads
    }
}

/// The statement that builds it anew, for hints.
fn again(table: &TableDef, index: &IndexDef) -> String {
    match table.is_next_key(index) {
        true => format!("ALTER TABLE {} REKEY CANCEL, then REKEY it again", name_sql(&table.name)),
        false => format!("REPAIR INDEX {} builds it anew", name_sql(&index.name)),
    }
}

fn gone() -> Error {
    Error::new(Kind::Conflict, "the index was dropped while it was being built")
}

/// The error for rows that a UNIQUE index, or the next layout of a table, cannot hold; `hint`: what to do.
fn not_unique(
    table: &TableDef,
    index: &IndexDef,
    taken: u64,
    examples: &[DuplicateKey],
    hint: &str,
) -> Error {
    let row = |rowkey: &Rowkey| table.key.show(rowkey);
    let pairs: Vec<String> = examples
        .iter()
        .map(|DuplicateKey { key, rows: (a, b) }| {
            format!("{} in rows {} and {}", index.layout.show(key), row(a), row(b))
        })
        .collect();
    let more = if taken > pairs.len() as u64 { ", and more" } else { "" };
    let which = match pairs.is_empty() {
        true => "they were found before the database was closed".to_owned(),
        false => format!("{}{more}", pairs.join(", ")),
    };
    let rows = if taken == 1 { "1 row has" } else { &format!("{taken} rows have") };
    let what = match table.is_next_key(index) {
        true => format!("{rows} a rowkey that another one has under the next layout of \"{}\"", table.name),
        false => format!("{rows} a key that exists already in unique index \"{}\"", index.name),
    };
    Error::invalid(what).why(which).hint(format!("the table is as it was{hint}")).state(sqlstate::UNIQUE)
}

pub(super) fn set_state(db: &Database, id: IndexId, state: IndexState, cancel: &CancelHandle) -> Result<()> {
    change_index(db, id, cancel, |edit, table, _| edit.set_state(table, id, state))
}

/// Changes the definition of an index, unless it was dropped.
fn change_index(
    db: &Database,
    id: IndexId,
    cancel: &CancelHandle,
    change: impl FnOnce(&mut CatalogEdit, &TableDef, &IndexDef) -> Result<()>,
) -> Result<()> {
    db.change_catalog(cancel, |catalog| {
        let Some((table, index)) = catalog.index_by_id(id) else { return Ok(((), None)) };
        let mut edit = catalog.edit();
        change(&mut edit, table, index)?;
        Ok(((), Some(edit.finish()?)))
    })
}
