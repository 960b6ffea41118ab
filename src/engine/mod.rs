//! The embedded API: open a database, run statements, read rows.
//!
//! A [`Database`] is the store and the catalog in memory, shared by its clones. A [`Session`] is one
//! connection: it parses a statement ([`crate::sql`]), routes it (queries to [`view`], rows to
//! [`write`](mod@write), definitions to [`ddl`]) and returns an [`Outcome`].

mod analyze;
mod api;
mod background;
mod backup;
mod build;
mod bulk;
mod clock;
mod copy;
mod damaged;
mod ddl;
mod definitions;
mod design;
mod dump;
mod expiry;
mod formulas;
mod moments;
mod native;
mod numbers;
mod outcome;
mod plans;
mod query_rows;
mod references;
mod rekey;
mod rekeying;
mod repair;
mod rows;
mod runtime;
mod session;
mod settings;
mod show;
mod turns;
mod vet;
mod view;
mod write;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

pub use api::{ColumnIndex, FromValue, Prepared, Row, Rows};
pub use moments::ReadView;
pub use native::{TableHandle, TableScan};
pub use outcome::{Outcome, OutputColumn, RowStream, Warning};
pub use session::Session;

pub use crate::exec::transfer::RowsFile;
pub use crate::exec::watch::{CancelHandle, OnProgress, Progress};
pub use crate::store::{Durability, Engine};

use crate::catalog::{Catalog, Relation};
use crate::df::query::{Planner, SPILL_FOLDER};
use crate::df::table::names_of;
use crate::error::{Error, Kind, Result};
use crate::exec::trace::show_mutation;
use crate::exec::watch::Watch;
use crate::store::{self, BulkWriter, MemoryStore, Mutation, Snapshot, Store, WriteBatch};
use background::Background;
use definitions::Definitions;
use moments::NamedSnapshots;
use numbers::Numbers;
use plans::{Defaults, Plans, Statements};
use runtime::Runtime;
use turns::{ExclusivePermit, Priority, Turns};

/// How a database is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// How durable a commit is when it returns.
    pub durability: Durability,
    /// The engine that stores a new database; an existing one must have been made by it. `None`: the default
    /// for a new database, any for an existing one.
    pub engine: Option<Engine>,
    /// Open for reading only, as [`Database::open_read_only`] does.
    pub read_only: bool,
}

/// The result of DDL, with the next catalog and the batch that stores it; `None` if nothing changes.
type DdlResult<T> = Result<(T, Option<(Catalog, WriteBatch)>)>;

/// An open database. Clones share it; it is closed when the last clone, unread [`Rows`] and [`ReadView`] is
/// dropped.
#[derive(Clone)]
pub struct Database {
    shared: Arc<Shared>,
    /// Background threads.
    background: Arc<Background>,
}

struct Shared {
    store: Box<dyn Store>,
    definitions: Definitions,
    plans: Plans,
    statements: Statements,
    defaults: Defaults,
    runtime: Runtime,
    turns: Arc<Turns>,
    numbers: Numbers,
    /// Held while a table is re-keyed.
    rekeying: Mutex<()>,
    building: build::Building,
    /// Held while statistics are refreshed.
    refreshing: Mutex<analyze::Failed>,
    held: NamedSnapshots,
    /// Added to the clock by tests, in microseconds.
    #[cfg(test)]
    later_us: std::sync::atomic::AtomicI64,
    path: Option<PathBuf>,
    engine: Option<Engine>,
    is_read_only: bool,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.path() {
            Some(path) => write!(f, "Database({})", path.display()),
            None => f.write_str("Database(in memory)"),
        }
    }
}

impl Database {
    /// Opens the database in the directory `path`, or creates it.
    ///
    /// Errors: `Unavailable` when another process has it open or the disk refuses, `Invalid` when the
    /// directory is no database, `Unsupported` when its format is another version's, `Corrupt` when its files
    /// are damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Database> {
        Database::open_with(path, Options::default())
    }

    /// Opens the database in the directory `path` for reading, while another process may have it open and
    /// write: each statement, transaction and [`ReadView`] sees everything acknowledged before it began,
    /// definitions included. If no process writes, the directory may be read-only. A database of engine `lsm`
    /// can be open in only one process.
    ///
    /// Errors: as [`Database::open`]; `Invalid` when there is no database. Statements that write fail with
    /// SQLSTATE 25006.
    ///
    /// ```no_run
    /// # fn main() -> rowkeydb::Result<()> {
    /// let db = rowkeydb::Database::open_read_only("shop")?;
    /// let orders: i64 = db.query("SELECT count(*) FROM orders")?.one()?.get(0)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Database> {
        Database::open_with(path, Options { read_only: true, ..Options::default() })
    }

    /// Whether there is a database in the directory `path`.
    pub fn is_at(path: impl AsRef<Path>) -> bool {
        store::is_database(path.as_ref())
    }

    /// Opens the database in the directory `path` with options. Index builds and re-keys that were
    /// interrupted resume in the background; SHOW INDEXES lists those still Building, which no query reads.
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<Database> {
        let db = Database::open_as_left(path.as_ref(), options)?;
        if !options.read_only {
            db.background.build(&db);
            db.background.purge(&db);
        }
        Ok(db)
    }

    /// [`Database::open_with`], but finishes interrupted index builds and re-keys before it returns;
    /// `on_progress` is told how far they are.
    pub fn open_watched(
        path: impl AsRef<Path>,
        options: Options,
        on_progress: OnProgress,
    ) -> Result<Database> {
        let db = Database::open_as_left(path.as_ref(), options)?;
        if !options.read_only {
            background::resume(&db, &Watch { on_progress: Some(on_progress), ..Watch::default() });
            db.background.purge(&db);
        }
        Ok(db)
    }

    /// Opens a database without any background work.
    fn open_as_left(path: &Path, options: Options) -> Result<Database> {
        let (store, engine) = match options.read_only {
            true => store::open_read_only(path, options.engine)?,
            false => store::open(path, options.engine, options.durability)?,
        };
        if !options.read_only {
            match std::fs::remove_dir_all(path.join(SPILL_FOLDER)) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e.into()),
                _ => {}
            }
        }
        Database::over(store, Some((path.to_owned(), engine)), options.read_only)
    }

    /// A new database in memory; dropping its last clone frees it.
    pub fn in_memory() -> Result<Database> {
        Database::over(Box::new(MemoryStore::new()), None, false)
    }

    /// A database over any store, for tests; finishes interrupted builds first.
    #[doc(hidden)]
    pub fn over_store(store: Box<dyn Store>) -> Result<Database> {
        let db = Database::over(store, None, false)?;
        background::resume(&db, &Watch::default());
        Ok(db)
    }

    /// Shows mutations of the store, a line each, for tests. Errors: bytes that are none of ours.
    #[doc(hidden)]
    pub fn show_mutations(&self, mutations: &[Mutation]) -> Result<Vec<String>> {
        let catalog = self.catalog();
        let past = catalog.tables().filter_map(|table| table.past());
        let tables: Vec<_> = catalog.tables().chain(past).cloned().collect();
        mutations.iter().map(|mutation| show_mutation(&tables, mutation)).collect()
    }

    fn over(store: Box<dyn Store>, kept: Option<(PathBuf, Engine)>, is_read_only: bool) -> Result<Database> {
        let catalog = Catalog::load(&*store.snapshot()?.reader()?)?;
        let definitions = if is_read_only { Definitions::following } else { Definitions::new };
        let (path, engine) = kept.unzip();
        let shared = Arc::new(Shared {
            store,
            definitions: definitions(catalog),
            plans: Plans::default(),
            statements: Statements::default(),
            defaults: Defaults::default(),
            runtime: Runtime::default(),
            turns: Arc::default(),
            numbers: Numbers::default(),
            rekeying: Mutex::default(),
            building: build::Building::default(),
            refreshing: Mutex::default(),
            held: NamedSnapshots::default(),
            #[cfg(test)]
            later_us: Default::default(),
            path,
            engine,
            is_read_only,
        });
        Ok(Database { shared, background: Arc::default() })
    }

    /// Copies everything committed so far into a new directory, as a database of the same engine; gives the
    /// number of entries. Readers and writers go on meanwhile.
    ///
    /// Errors: `to` exists; the disk refuses; `Corrupt`, naming the entry, when this database is damaged.
    /// Nothing is left at `to` then.
    pub fn backup(&self, to: impl AsRef<Path>) -> Result<u64> {
        backup::backup(self, to.as_ref(), self.engine(), &Watch::default())
    }

    /// Like [`Database::backup`], into a database of the given engine.
    pub fn backup_into(&self, to: impl AsRef<Path>, engine: Engine) -> Result<u64> {
        backup::backup(self, to.as_ref(), Some(engine), &Watch::default())
    }

    /// Writes an SQL script that recreates this database: tables, rows, indexes and views of one snapshot. Not in it:
    /// when rows were written, their older versions, and statistics.
    pub fn dump(&self, out: &mut dyn Write) -> Result<()> {
        dump::dump(self, out)
    }

    /// The engine that stores the database; `None` in memory.
    pub fn engine(&self) -> Option<Engine> {
        self.shared.engine
    }

    /// The directory of the database; `None` in memory.
    pub fn path(&self) -> Option<&Path> {
        self.shared.path.as_deref()
    }

    /// Whether the database is open for reading only.
    pub fn is_read_only(&self) -> bool {
        self.shared.is_read_only
    }

    /// Errors: the database is open for reading only.
    fn check_may_write(&self) -> Result<()> {
        if self.is_read_only() { Err(store::read_only()) } else { Ok(()) }
    }

    /// A new connection.
    pub fn session(&self) -> Session {
        Session::new(self.clone())
    }

    /// Names of the tables, in order.
    pub fn table_names(&self) -> Vec<String> {
        self.catalog().tables().map(|t| t.name.clone()).collect()
    }

    /// Names of the settings.
    pub fn setting_names() -> impl Iterator<Item = String> {
        settings::names().map(str::to_owned)
    }

    /// What SHOW takes: settings, and words such as tables.
    pub fn shown_names() -> impl Iterator<Item = String> {
        settings::shown().map(str::to_owned)
    }

    /// Names of the views, in order.
    pub fn view_names(&self) -> Vec<String> {
        self.catalog().views().map(|v| v.name.clone()).collect()
    }

    /// Names of the index tables, in order.
    pub fn index_names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.catalog().tables().flat_map(|t| t.indexes.iter().map(|i| i.name.clone())).collect();
        names.sort();
        names
    }

    /// Column names of a table or an index table, in order, without `rowkey`; of a view, if it gives its own. None if
    /// there is no such thing.
    pub fn column_names(&self, relation: &str) -> Vec<String> {
        match self.catalog().find(relation) {
            Some(Relation::Table(table)) => names_of(&table, None),
            Some(Relation::Index(table, index)) => names_of(&table, table.index_by_id(index)),
            Some(Relation::View(view)) => view.columns.clone(),
            None => Vec::new(),
        }
    }

    /// Names of the functions, in order.
    pub fn function_names(&self) -> Vec<String> {
        Planner::shared().functions().into_iter().map(|function| function.name).collect()
    }

    fn plans(&self) -> &Plans {
        &self.shared.plans
    }

    fn store(&self) -> &dyn Store {
        &*self.shared.store
    }

    /// Waits for other loads, then opens the store's bulk door. The [`ExclusivePermit`] must be held as long. Errors:
    /// `Cancelled`.
    fn load(&self, cancel: &CancelHandle) -> Result<(ExclusivePermit<'_>, Box<dyn BulkWriter + '_>)> {
        self.check_may_write()?;
        let load = self.shared.turns.load(cancel)?;
        Ok((load, self.shared.store.bulk()?))
    }

    fn runtime(&self) -> &Runtime {
        &self.shared.runtime
    }

    fn catalog(&self) -> Arc<Catalog> {
        if self.is_read_only() {
            // Follow changes by another process; if this read fails, so will all others.
            let _ = self.view();
        }
        self.shared.definitions.current()
    }

    /// The catalog and a snapshot that match.
    fn view(&self) -> Result<(Arc<Catalog>, Arc<dyn Snapshot>)> {
        self.shared.definitions.view(self.store())
    }

    /// The time by which rows expire: microseconds since 1970.
    fn now_us(&self) -> i64 {
        let now_us = clock::now();
        #[cfg(test)]
        let now_us = now_us + self.shared.later_us.load(std::sync::atomic::Ordering::Relaxed);
        now_us
    }

    /// For tests: advances the clock.
    #[cfg(test)]
    pub(crate) fn pass(&self, micros: i64) {
        self.shared.later_us.fetch_add(micros, std::sync::atomic::Ordering::Relaxed);
    }

    /// [`Database::view`] for tests of what lies below.
    #[cfg(test)]
    pub(crate) fn moment(&self) -> (Arc<Catalog>, Arc<dyn Snapshot>) {
        self.view().unwrap()
    }

    /// Commits rows written under these definitions, once no other statement has priority.
    fn commit_rows(
        &self,
        mut batch: WriteBatch,
        catalog: &Catalog,
        cancel: &CancelHandle,
        priority: Option<&Priority>,
    ) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        self.check_may_write()?;
        let touched = batch.keyspaces();
        catalog.rely_on(&mut batch.reads, &touched);
        let _permit = self.shared.turns.commit(&batch, cancel, priority)?;
        // Last check for cancellation: a commit is not interrupted.
        cancel.check()?;
        self.shared.store.commit(batch).inspect_err(|e| self.shared.numbers.note(e))
    }

    /// Commits a transaction that also changed definitions: `draft`, which was made from `base`, becomes the
    /// catalog in force.
    ///
    /// Errors: `Conflict` if a definition has been changed by others meanwhile.
    fn commit_definitions(
        &self,
        batch: WriteBatch,
        (base, draft): (&Catalog, &Catalog),
        cancel: &CancelHandle,
        priority: Option<&Priority>,
    ) -> Result<()> {
        self.check_may_write()?;
        let definitions = self.shared.definitions.change(self.store(), cancel)?;
        let current = definitions.current();
        if current.version() != base.version() {
            return Err(Error::new(Kind::Conflict, "somebody else has changed a definition meanwhile")
                .why("this transaction also changes definitions, and began before that change")
                .hint("run the transaction again"));
        }
        let _permit = self.shared.turns.commit(&batch, cancel, priority)?;
        // Last check for cancellation: a commit is not interrupted.
        cancel.check()?;
        definitions.commit(self.store(), draft.settled(&current), || self.store().commit(batch))
    }

    /// Runs DDL: `change` makes the next catalog from the current one. Errors: `Cancelled` before that.
    fn change_catalog<T>(
        &self,
        cancel: &CancelHandle,
        change: impl FnOnce(&Catalog) -> DdlResult<T>,
    ) -> Result<T> {
        self.check_may_write()?;
        let definitions = self.shared.definitions.change(self.store(), cancel)?;
        let (result, next) = change(&definitions.current())?;
        if let Some((catalog, batch)) = next {
            let _permit = self.shared.turns.commit(&batch, cancel, None)?;
            definitions.commit(self.store(), catalog, || self.store().commit(batch))?;
        }
        Ok(result)
    }

    /// Like `change_catalog`, for DDL that also writes rows: no other writer gets in before it is committed.
    fn change_rows<T>(
        &self,
        cancel: &CancelHandle,
        change: impl FnOnce(&Catalog, &mut dyn BulkWriter) -> DdlResult<T>,
    ) -> Result<T> {
        let definitions = self.shared.definitions.change(self.store(), cancel)?;
        let (_load, mut writer) = self.load(cancel)?;
        let (result, next) = change(&definitions.current(), &mut *writer)?;
        if let Some((catalog, batch)) = next {
            batch.write_to(&mut *writer)?;
            // Last check for cancellation: a commit is not interrupted.
            cancel.check()?;
            definitions.commit(self.store(), catalog, || writer.commit())?;
        }
        Ok(result)
    }
}
