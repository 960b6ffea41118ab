//! A session: one connection with its transaction, prepared statements and settings. Runs statements.

mod admin;
mod ddl;
mod prepared;
mod references;
mod transactions;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arrow::array::{RecordBatch, StringArray};
use arrow::datatypes::{Schema, SchemaRef};

use futures::TryStreamExt;
use sqlparser::ast::Query;

use super::outcome::{BatchSource, Outcome, RowStream};
use super::plans::{CachedPlan, CachedQueries, Keyed, Parsed};
use super::references::{Later, Unchecked, explained};
use super::runtime::with_stack;
use super::settings::SessionSettings;
use super::turns::Defeats;
use super::view::{PlanAtHand, StatementView};
use super::write;
use super::{Database, copy, damaged, design};
use crate::catalog::{CATALOG_KEYSPACE, Catalog};
use crate::df::cached::plan::BoundPlan;
use crate::df::explain;
use crate::df::query::{Planner, SPILL_FOLDER};
use crate::error::{Error, Kind, Result, sqlstate};
use crate::exec::transfer::RowsFile;
use crate::exec::watch::{CancelHandle, OnProgress, Watch};
use crate::row::field;
use crate::schema::TableId;
use crate::sql::{self, Lifted, ReferenceDef, Statement};
use crate::txn::{Savepoint, Transaction};
use crate::value::{ColumnType, Value};
use prepared::PreparedStatement;

/// Why long-running work cannot be part of a transaction.
pub(super) const IN_STEPS: &str = "it is done in steps that are committed one by one, beside other writers";

/// Plan-cache prefix of users' queries.
const QUERY: &str = "";

/// An open transaction.
struct OpenTransaction {
    /// The definitions in force when it began.
    base: Arc<Catalog>,
    /// The definitions it sees: `base`, or a draft of its own.
    catalog: Arc<Catalog>,
    transaction: Transaction,
    /// When it began, in microseconds since 1970.
    as_of_us: i64,
    savepoints: Vec<(String, SavepointMark)>,
    /// What its deferred foreign keys have to look at.
    later: Arc<Unchecked>,
    /// Foreign keys of new tables to those that come later.
    awaited: Vec<(TableId, ReferenceDef)>,
}

/// The state of a transaction at a savepoint.
struct SavepointMark {
    catalog: Arc<Catalog>,
    written: Savepoint,
    /// Foreign keys that wait for their tables (count).
    awaited: usize,
    /// The settings, if SET LOCAL had set some.
    set_locally: Option<SessionSettings>,
}

/// A statement that writes in several steps: unless it is done, dropping it undoes them. Cancelling a statement drops its
/// future, and so may who waits for it.
struct Whole<'s> {
    session: &'s mut Session,
    /// The transaction that was open before; `None` if none was.
    before: Option<SavepointMark>,
    is_done: bool,
}

impl Whole<'_> {
    fn begin(session: &mut Session) -> Result<Whole<'_>> {
        let before = if session.open.is_some() { Some(session.mark()?) } else { None };
        Ok(Whole { session, before, is_done: false })
    }
}

impl Drop for Whole<'_> {
    fn drop(&mut self) {
        match &self.before {
            _ if self.is_done => {}
            Some(before) => self.session.return_to(before),
            None => self.session.abandon(),
        }
    }
}

/// The statement to run, as text or parsed.
#[derive(Clone, Copy)]
enum StatementInput<'a> {
    Sql(&'a str),
    Parsed(&'a Parsed),
}

/// How a statement is started.
enum Start<'l> {
    /// A cached plan was found, and it runs.
    Ran(Outcome),
    /// It must be planned; `Some`: the plan is to be kept.
    Plan(Option<(&'l Lifted, Keyed)>),
}

/// One connection to a database: its transaction, prepared statements and settings. Cheap to create; use one
/// per thread. Dropping it rolls an open transaction back.
pub struct Session {
    db: Database,
    open: Option<OpenTransaction>,
    prepared: HashMap<String, Arc<PreparedStatement>>,
    settings: SessionSettings,
    /// The settings after the transaction, if it has some of its own.
    lasting: Option<SessionSettings>,
    watch: Watch,
    /// Those of the transaction that it runs again and again until it is committed, if it does.
    defeats: Defeats,
    /// Its transactions check foreign keys at their end, as if all were deferred.
    checks_at_end: bool,
    /// It is made for a single statement.
    is_brief: bool,
    /// Where STDIN and STDOUT of a COPY are.
    pub(super) streams: Streams,
}

/// The streams of COPY.
#[derive(Default)]
pub(super) struct Streams {
    /// The rows for COPY FROM STDIN.
    pub input: Option<RowsFile>,
    /// The caller takes what COPY TO STDOUT writes.
    pub has_stdout: bool,
    /// The rows of COPY TO STDOUT.
    pub output: Option<RowsFile>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({:?})", self.db)
    }
}

impl Session {
    pub(super) fn new(db: Database) -> Session {
        Session {
            db,
            open: None,
            prepared: HashMap::new(),
            settings: SessionSettings::default(),
            lasting: None,
            watch: Watch::default(),
            defeats: Defeats::default(),
            checks_at_end: false,
            is_brief: false,
            streams: Streams::default(),
        }
    }

    /// A session for a single statement.
    pub(super) fn brief(db: Database) -> Session {
        Session { is_brief: true, ..Session::new(db) }
    }

    /// An empty file for rows of a COPY, beside the data. Errors: `Unavailable` when it cannot be made.
    pub fn rows_file(&self) -> Result<RowsFile> {
        let folder = self.db.path().filter(|_| !self.db.is_read_only());
        RowsFile::create(folder.map(|folder| folder.join(SPILL_FOLDER)).as_deref())
    }

    /// Gives COPY FROM STDIN its rows; `None`: it has none.
    pub fn give_rows(&mut self, rows: Option<RowsFile>) {
        self.streams.input = rows;
    }

    /// Lets COPY TO STDOUT write rows, which the caller then takes.
    pub fn let_rows_out(&mut self, has_stdout: bool) {
        self.streams.has_stdout = has_stdout;
    }

    /// The rows that COPY TO STDOUT has written.
    pub fn take_rows(&mut self) -> Option<RowsFile> {
        self.streams.output.take()
    }

    /// Runs one statement and waits for it, in the open transaction if there is one; `params` are its `$1`,
    /// `$2`, ... A query's rows are read as the outcome's stream is consumed.
    ///
    /// Errors: those of the statement. It has written nothing then, unless it works in steps, as ANALYZE,
    /// PURGE, REPAIR INDEX and CREATE UNIQUE INDEX do.
    pub fn execute(&mut self, sql: &str, params: &[Value]) -> Result<Outcome> {
        self.begin_watch();
        self.execute_source(StatementInput::Sql(sql), sql::lift(sql).as_ref(), params)
    }

    /// [`Session::execute`] for async code. Await it on a tokio runtime, or use the blocking
    /// form.
    pub async fn execute_async(&mut self, sql: &str, params: &[Value]) -> Result<Outcome> {
        self.begin_watch();
        params.iter().try_for_each(Value::check)?;
        let (text, lifted) = (StatementInput::Sql(sql), sql::lift(sql));
        let outcome = self.run_lifted(text, lifted.as_ref(), params).await;
        outcome.map_err(|e| self.explained(e, text))
    }

    /// [`Session::execute`] of a statement parsed before.
    pub(super) fn run_parsed(
        &mut self,
        statement: &Parsed,
        lifted: Option<&Lifted>,
        params: &[Value],
    ) -> Result<Outcome> {
        self.begin_watch();
        self.execute_source(StatementInput::Parsed(statement), lifted, params)
    }

    /// Starts a statement: its timeout begins, and it can be cancelled.
    pub(super) fn begin_watch(&self) {
        self.watch.cancel.start(self.settings.statement_timeout);
    }

    fn execute_source(
        &mut self,
        text: StatementInput<'_>,
        lifted: Option<&Lifted>,
        params: &[Value],
    ) -> Result<Outcome> {
        params.iter().try_for_each(Value::check)?;
        // As `run_lifted`, which would need the runtime also for what a cached plan does.
        let outcome = self.by_plan(lifted, params).and_then(|start| match start {
            Start::Ran(outcome) => Ok(outcome),
            Start::Plan(to_keep) => {
                let runtime = self.db.shared.runtime.clone();
                runtime.block_on(self.run_source(text, to_keep, params))
            }
        });
        outcome.map_err(|e| self.explained(e, text))
    }

    /// Runs a statement by its cached plan if there is one, or else as it is.
    async fn run_lifted(
        &mut self,
        text: StatementInput<'_>,
        lifted: Option<&Lifted>,
        params: &[Value],
    ) -> Result<Outcome> {
        match self.by_plan(lifted, params)? {
            Start::Ran(outcome) => Ok(outcome),
            Start::Plan(to_keep) => Box::pin(self.run_source(text, to_keep, params)).await,
        }
    }

    /// The error with the name of what is damaged, and a place in the statement.
    fn explained(&self, error: Error, text: StatementInput<'_>) -> Error {
        let error = match text {
            StatementInput::Parsed(parsed) => sql::point_at_literal(error, &parsed.statement),
            StatementInput::Sql(sql) if sql::may_have_place(&error) => match with_stack(|| sql::parse(sql)) {
                Ok(statement) => {
                    let error = sql::point_at_literal(error, &statement);
                    sql::meant_as_text(sql::point_in_text(error, sql), sql)
                }
                Err(_) => error,
            },
            StatementInput::Sql(sql) => sql::meant_as_text(error, sql),
        };
        damaged::of_whom(&self.db.catalog(), error)
    }

    /// Runs a query by its cached plan, or by one made without DataFusion, if there is one.
    fn by_plan<'l>(&self, lifted: Option<&'l Lifted>, params: &[Value]) -> Result<Start<'l>> {
        let Some(lifted) = lifted.filter(|lifted| lifted.own == params.len()) else {
            return Ok(Start::Plan(None));
        };
        let view = self.view()?;
        let Some((lifted, mut query)) = view.keyed(QUERY, Some(lifted), params) else {
            return Ok(Start::Plan(None));
        };
        loop {
            let kept = match view.plan_at_hand(lifted, &mut query, None)? {
                PlanAtHand::Plan(kept) => kept,
                PlanAtHand::New => return Ok(Start::Plan(Some((lifted, query)))),
                PlanAtHand::None => return Ok(Start::Plan(None)),
            };
            if let Some(ran) = self.run_cached(&kept, &view, &query)? {
                return Ok(Start::Ran(ran));
            }
            let Some(other) = query.other(&kept) else { return Ok(Start::Plan(None)) };
            query = other;
        }
    }

    /// Runs a cached plan; `None` if it does not hold for the query's parameters, or if another one is better for them.
    fn run_cached(&self, kept: &CachedPlan, view: &StatementView, query: &Keyed) -> Result<Option<Outcome>> {
        let (schema, source) = match view.bind(kept, query)? {
            None => return Ok(None),
            Some(BoundPlan::Alone(alone)) => {
                self.watch.cancel.plan(|| alone.plan_text());
                (kept.plan.schema(), BatchSource::Alone(alone))
            }
            Some(BoundPlan::Plan(plan)) => {
                let _threads = self.db.shared.runtime.enter()?;
                let (batches, schema) = Planner::shared().run(plan, &view.limits())?;
                (schema, BatchSource::Batches(batches))
            }
        };
        let rows = self.rows(schema, source).over(Arc::clone(&view.catalog));
        if !query.shown.is_empty() {
            return Ok(Some(Outcome::of_rows("SELECT", rows.named(|name| query.shown.name(name)))));
        }
        let columns = Arc::clone(&kept.columns);
        Ok(Some(Outcome { tag: "SELECT", columns, rows, affected: None, warnings: Vec::new() }))
    }

    /// Runs a statement; `to_keep`: the cache key of a query whose plan is to be kept.
    async fn run_source(
        &mut self,
        text: StatementInput<'_>,
        to_keep: Option<(&Lifted, Keyed)>,
        params: &[Value],
    ) -> Result<Outcome> {
        if let Some((lifted, query)) = to_keep {
            let view = self.view()?;
            let known = async { Ok(view.keep(lifted, &query, None).await) };
            if let Some(kept) = self.watch.cancel.guard(known).await?
                && let Some(outcome) = self.run_cached(&kept, &view, &query)?
            {
                return Ok(outcome);
            }
        }
        match text {
            StatementInput::Sql(sql) if params.is_empty() => {
                if let Some(outcome) = self.run_change(sql).await? {
                    return Ok(outcome);
                }
                self.run_async(&sql::parse(sql)?, &CachedQueries::default(), params).await
            }
            // It has parameters, so it will come again with other values.
            StatementInput::Sql(sql) => {
                let parsed = self.db.shared.statements.parse(sql)?;
                self.run_checked(&parsed, params).await
            }
            StatementInput::Parsed(parsed) => self.run_checked(parsed, params).await,
        }
    }

    /// Runs a statement that changes rows as the one that is left without its literals, which may be known from another
    /// text; `None` if it has to run as it is, be it for an error that says what is wrong with its own text. Of such
    /// errors nothing has been written; of an internal one nobody knows.
    async fn run_change(&mut self, sql: &str) -> Result<Option<Outcome>> {
        let Some(lifted) = sql::lift_change(sql) else { return Ok(None) };
        let Some(parsed) = self.db.shared.statements.kept(&lifted.text) else { return Ok(None) };
        match self.run_checked(&parsed, &lifted.values).await {
            Err(e) if matches!(e.kind(), Kind::Invalid | Kind::Unsupported) => Ok(None),
            ran => ran.map(Some),
        }
    }

    async fn run_checked(&mut self, parsed: &Parsed, params: &[Value]) -> Result<Outcome> {
        parsed.check("the statement", params.len())?;
        self.run_async(&parsed.statement, &parsed.queries, params).await
    }

    fn rows(&self, schema: SchemaRef, source: BatchSource) -> RowStream {
        RowStream::new(schema, source, self.db.shared.runtime.clone(), self.watch.cancel.clone())
    }

    async fn run_async(
        &mut self,
        statement: &Statement,
        queries: &CachedQueries,
        params: &[Value],
    ) -> Result<Outcome> {
        let cancel = self.watch.cancel.clone();
        // Boxed: futures are copied when moved, and this one has room for every kind of statement.
        match statement {
            // A timeout that is too short must not keep SET from changing it.
            Statement::Set { .. } => Box::pin(self.run(statement, queries, params)).await,
            Statement::Copy(_) | Statement::AlterTogether(_) => {
                let mut whole = Whole::begin(self)?;
                let ended = cancel.guard(Box::pin(whole.session.run(statement, queries, params))).await;
                whole.is_done = ended.is_ok();
                ended
            }
            _ => cancel.guard(Box::pin(self.run(statement, queries, params))).await,
        }
    }

    /// A handle that cancels this session's statements from another thread.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.watch.cancel.held()
    }

    /// Calls `f` while long statements run. It must not write to the database: a load keeps all other writers
    /// out, and would wait for it forever.
    pub fn on_progress(&mut self, f: OnProgress) {
        self.watch.on_progress = Some(f);
    }

    /// Whether a transaction is open.
    pub fn in_transaction(&self) -> bool {
        self.open.is_some()
    }

    /// The database.
    pub fn database(&self) -> &Database {
        &self.db
    }

    pub(super) fn view(&self) -> Result<StatementView> {
        let (catalog, snapshot, as_of_us) = match &self.open {
            Some(open) => (Arc::clone(&open.catalog), open.transaction.view(), open.as_of_us),
            None => {
                let (catalog, snapshot) = self.db.view()?;
                // Reading the clock takes a twentieth of the time of a GET.
                let as_of_us = if catalog.tells_times() { self.db.now_us() } else { 0 };
                (catalog, snapshot, as_of_us)
            }
        };
        let (watch, settings) = (self.watch.clone(), self.settings.clone());
        let moments = self.db.shared.held.now();
        let now = OnceLock::new();
        let (db, recording) = (self.db.clone(), None);
        let later = Later::of_transaction(self.open.as_ref().map(|open| &open.later), self.checks_at_end);
        let counts_alone = self.open.as_ref().is_some_and(|open| open.transaction.changes(CATALOG_KEYSPACE));
        Ok(StatementView {
            db,
            catalog,
            snapshot,
            recording,
            later,
            counts_alone,
            moments,
            watch,
            settings,
            now,
            as_of_us,
        })
    }

    async fn run(
        &mut self,
        statement: &Statement,
        queries: &CachedQueries,
        params: &[Value],
    ) -> Result<Outcome> {
        self.check_is_of_use(statement)?;
        let tag = statement.kind_name();
        match statement {
            Statement::Query(query) => self.run_query(query, params, tag).await,
            Statement::Explain(explain) => self.explain(explain, params).await,
            Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => {
                let written = self.write(statement, queries, params).await?;
                Ok(self.after_write(written, statement.written_table()))
            }
            Statement::Copy(copy) => {
                let copied = copy::run(self, copy, params).await?;
                Ok(self.after_write(copied, None))
            }
            Statement::Begin { .. }
            | Statement::Commit
            | Statement::Rollback { .. }
            | Statement::Savepoint { .. }
            | Statement::Release { .. } => self.run_transaction(statement),
            Statement::Prepare(prepare) => self.prepare(prepare),
            Statement::Execute { name, args } => self.execute_prepared(name, args, params).await,
            Statement::Deallocate { name } => self.deallocate(name.as_ref()),
            Statement::Set { local, name, value } => {
                if *local { self.set_local(name, value) } else { self.set(name, value) }?;
                Ok(self.done(tag))
            }
            Statement::ForeignKeys { setting, is_on } => {
                let warnings = self.set_checks(*setting, *is_on).into_iter().collect();
                Ok(Outcome { warnings, ..self.done(tag) })
            }
            Statement::Nothing { .. } => Ok(self.done(tag)),
            Statement::Design(statement) => design::run(self, statement).await,
            Statement::Show(_)
            | Statement::Describe { .. }
            | Statement::Check(_)
            | Statement::Analyze { .. }
            | Statement::Purge { .. }
            | Statement::CreateIndex(_)
            | Statement::CreateSnapshot { .. }
            | Statement::DropSnapshot { .. }
            | Statement::Backup { .. }
            | Statement::RepairIndex { .. }
            | Statement::RepairTable { .. } => self.run_admin(statement),
            definition => self.define(definition).await,
        }
    }

    /// Errors: the statement only affects later ones, and this session runs none.
    fn check_is_of_use(&self, statement: &Statement) -> Result<()> {
        let is_for_later =
            matches!(statement, Statement::Begin { .. } | Statement::Set { .. } | Statement::Prepare(_));
        if self.is_brief && is_for_later {
            return Err(Error::unsupported(format!("{} would do nothing here", statement.kind_name()))
                .why("each call runs in a session of its own, which ends with it")
                .hint("use db.session(), or db.begin() and db.transaction(..) for transactions"));
        }
        Ok(())
    }

    /// Errors: a transaction is open; `why`: the reason that the statement cannot be part of one.
    pub(super) fn outside_transaction(&self, tag: &str, why: &str) -> Result<()> {
        if self.open.is_some() {
            return Err(Error::unsupported(format!("{tag} cannot run inside a transaction"))
                .why(why)
                .hint("COMMIT first")
                .state(sqlstate::IN_TRANSACTION));
        }
        Ok(())
    }

    async fn run_query(&mut self, query: &Query, params: &[Value], tag: &'static str) -> Result<Outcome> {
        let view = self.view()?;
        let (stream, schema) = view.stream(query.clone(), params).await?;
        let rows = self.rows(schema, BatchSource::Batches(stream)).over(view.catalog);
        Ok(Outcome::of_rows(tag, rows))
    }

    async fn explain(&mut self, stmt: &sql::Explain, params: &[Value]) -> Result<Outcome> {
        let Statement::Execute { name, args } = &*stmt.statement else {
            return self.explain_statement(stmt, &stmt.statement, params).await;
        };
        let (named, values) = self.prepared_with(name, args, params)?;
        self.explain_statement(stmt, named.statement(), &values).await.map_err(Error::unplaced)
    }

    async fn explain_statement(
        &mut self,
        stmt: &sql::Explain,
        statement: &Statement,
        params: &[Value],
    ) -> Result<Outcome> {
        let view = self.view()?;
        if stmt.analyze && !matches!(statement, Statement::Query(_)) {
            return Err(Error::unsupported("EXPLAIN ANALYZE runs queries only")
                .why("it would have to write")
                .hint("EXPLAIN shows the plan without running it"));
        }
        let foreign_keys = explained(&view, statement)?;
        let Some(query) = write::explained_query(&view, statement)? else {
            let lines = std::iter::once(write::explained_rows(&view, statement)?).chain(foreign_keys);
            return self.text_outcome("EXPLAIN", "plan", lines.collect());
        };
        let is_of_rows = matches!(statement, Statement::Update(_) | Statement::Delete(_));
        let scope = view.scope(is_of_rows.then_some(write::FOUND_ROWKEY));
        let planner = Planner::shared();
        let plan = planner.physical(planner.plan(query, &scope, params)?, &view.limits(), false).await?;
        if stmt.analyze {
            let (mut stream, _) = planner.run(Arc::clone(&plan), &view.limits())?;
            while stream.try_next().await?.is_some() {}
        }
        let mut lines = match stmt.json {
            true => vec![explain::explain_json(&plan, stmt.analyze, stmt.verbose)?],
            false => explain::explain(&plan, stmt.analyze, stmt.verbose),
        };
        if !stmt.json {
            lines.extend(foreign_keys);
        }
        self.text_outcome("EXPLAIN", "plan", lines)
    }

    /// An outcome without rows.
    pub(super) fn done(&self, tag: &'static str) -> Outcome {
        let rows = self.rows(Arc::new(Schema::empty()), BatchSource::Batch(None));
        Outcome { tag, columns: Arc::from([]), rows, affected: None, warnings: Vec::new() }
    }

    /// An outcome with these rows.
    pub(super) fn table_outcome(&self, tag: &'static str, batch: RecordBatch) -> Result<Outcome> {
        let rows = self.rows(batch.schema(), BatchSource::Batch(Some(batch)));
        Ok(Outcome::of_rows(tag, rows))
    }

    /// An outcome with one text column.
    fn text_outcome(&self, tag: &'static str, column: &str, lines: Vec<String>) -> Result<Outcome> {
        let schema = Schema::new(vec![field(column, ColumnType::Varchar, false)]);
        let batch = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(StringArray::from(lines))])
            .map_err(|e| Error::internal("lines do not make a column").caused_by(e))?;
        self.table_outcome(tag, batch)
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::Database;

    #[test]
    fn the_future_of_a_statement_is_small() {
        let mut session = Database::in_memory().unwrap().session();
        let future = session.execute_async("SELECT 1", &[]);
        assert!(size_of_val(&future) < 16 << 10, "{} bytes are copied a few times", size_of_val(&future));
    }
}
