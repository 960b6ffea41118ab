//! A statement's view of the database (catalog, snapshot, settings), and the queries run on it.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use futures::TryStreamExt;
use futures::future::BoxFuture;
use sqlparser::ast::{Expr, Ident, Query};

use super::Database;
use super::clock;
use super::plans::{CachedPlan, Keyed, PlanCacheEntry, SourceQuery};
use super::references::Later;
use super::rows::literal;
use super::runtime::with_stack;
use super::settings::SessionSettings;
use crate::catalog::Catalog;
use crate::df::below::in_one;
use crate::df::cached::page::DependsOn;
use crate::df::cached::plain;
use crate::df::cached::plan::{BoundPlan, UnboundPlan};
use crate::df::cached::row_map::RowMap;
use crate::df::query::{BatchStream, Moments, NameScope, Planner, RunLimits};
use crate::df::table::Binding;
use crate::df::ways::Threads;
use crate::error::{Error, Result, counted, sqlstate};
use crate::exec::watch::Watch;
use crate::key::{ColumnId, KeyRange};
use crate::schema::{TableDef, ViewDef};
use crate::sql::rewrite::ROWKEY;
use crate::sql::{self, Lifted, Statement, name_of, name_sql, span_of_name};
use crate::store::{Direction, KeyspaceId, Recording, Snapshot};
use crate::value::{Value, quoted_name};

/// Plan-cache prefix of projections over rows that are in no table.
const MAP: &str = "map ";
/// Plan-cache prefix of queries whose batches go into a table.
const STREAM: &str = "stream ";

/// What one statement sees: a catalog and a snapshot that match.
#[derive(Clone)]
pub struct StatementView {
    pub db: Database,
    pub catalog: Arc<Catalog>,
    pub snapshot: Arc<dyn Snapshot>,
    /// The same snapshot, recording what is read, for a statement that writes outside of a transaction.
    pub recording: Option<Arc<Recording>>,
    /// Foreign keys that are not checked at once.
    pub later: Later,
    /// Its transaction has changed counters or definitions, so identity columns count in it alone.
    pub counts_alone: bool,
    /// Named snapshots.
    pub moments: Arc<Moments>,
    pub watch: Watch,
    pub settings: SessionSettings,
    /// The time of the statement, set when it is first asked for.
    pub now: OnceLock<i64>,
    /// When the statement or its transaction began, in microseconds since 1970: rows that expired before are
    /// not seen. Arbitrary if no table stores write times.
    pub as_of_us: i64,
}

/// The plan of a query, before DataFusion is asked.
pub enum PlanAtHand {
    Plan(Arc<CachedPlan>),
    /// There is none yet: [`StatementView::keep`] makes one.
    New,
    /// It has to be planned each time.
    None,
}

/// The column of a table that an identifier names.
///
/// Errors: there is none; the hint suggests a similar name.
pub fn column_named(table: &TableDef, name: &Ident) -> Result<ColumnId> {
    column_of(table, &name_of(name)).map_err(|e| e.at(span_of_name(name)))
}

/// The columns that a list names. Errors: an unknown one; one that is named twice.
pub fn columns_named(table: &TableDef, names: &[Ident]) -> Result<Vec<ColumnId>> {
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let column = column_named(table, name)?;
        if columns.contains(&column) {
            return Err(Error::invalid(format!("column \"{}\" is named twice", name_of(name)))
                .at(span_of_name(name))
                .state(sqlstate::DUPLICATE_COLUMN));
        }
        columns.push(column);
    }
    Ok(columns)
}

/// Like [`column_named`], for a name without a place.
pub fn column_of(table: &TableDef, name: &str) -> Result<ColumnId> {
    table.column_id(name).ok_or_else(|| {
        if name == ROWKEY {
            if table.row_number().is_some() {
                return Error::invalid(format!("the rows of \"{}\" are numbered", table.name))
                    .why("it has no PRIMARY KEY, and the rowkey is the number")
                    .hint("leave it out; WHERE, SELECT and ORDER BY know it as rowkey")
                    .state(sqlstate::UNDEFINED_COLUMN);
            }
            let key = &table.key;
            return Error::invalid(format!("the rowkey of \"{}\" is made of its columns", table.name))
                .why(format!("it is {}", key.sql()))
                .hint("name these columns; WHERE, SELECT and ORDER BY know it as rowkey")
                .state(sqlstate::UNDEFINED_COLUMN);
        }
        let error = Error::invalid(format!("table \"{}\" has no column \"{name}\"", table.name))
            .state(sqlstate::UNDEFINED_COLUMN);
        let names = table.live_columns().map(|(_, c)| c.name.as_str());
        crate::suggest::with_suggestion(
            error,
            name,
            names,
            &format!("DESCRIBE {} lists its columns", name_sql(&table.name)),
        )
    })
}

/// The position of the family of a table that has this name. Errors: there is none; the hint lists them.
pub fn family_named(table: &TableDef, name: &str) -> Result<usize> {
    table.families.iter().position(|family| family.name == name).ok_or_else(|| {
        let names: Vec<&str> = table.families.iter().map(|family| family.name.as_str()).collect();
        Error::invalid(format!("table \"{}\" has no family \"{name}\"", table.name))
            .hint(format!("its families: {}", names.join(", ")))
            .state(sqlstate::UNDEFINED_OBJECT)
    })
}

impl StatementView {
    /// The value of an expression that needs no query: a literal, a parameter or the time.
    ///
    /// Errors: a missing parameter; a text that is no value of its type.
    pub fn value_of(&self, expr: &Expr, params: &[Value]) -> Result<Option<Value>> {
        Ok(literal(expr, params)?.or_else(|| clock::told(expr, || self.now_us())))
    }

    /// The table an identifier names.
    pub fn table(&self, name: &Ident) -> Result<Arc<TableDef>> {
        self.catalog.table(&name_of(name)).map_err(|e| e.at(span_of_name(name)))
    }

    /// The first key of a table or index, as an example for the user.
    pub fn first_key(&self, keyspace: KeyspaceId) -> Result<Option<Vec<u8>>> {
        let reader = self.snapshot.reader()?;
        let mut cursor = reader.cursor(keyspace, &KeyRange::all(), Direction::Forward)?;
        Ok(cursor.next()?.map(|(key, _)| key.to_vec()))
    }

    /// What the names of a query stand for; every table has its rowkey as a column of this name, too.
    pub fn scope<'a>(&'a self, rowkey: Option<&'a str>) -> NameScope<'a> {
        let (binding, moments) = (self.binding(Arc::from([])), &self.moments);
        let rowkeys = [ROWKEY].into_iter().chain(rowkey).collect();
        NameScope {
            catalog: &self.catalog,
            moments,
            binding,
            rowkeys,
            rows: Vec::new(),
            now_us: self.now_us(),
        }
    }

    /// The resource limits of a run.
    pub fn limits(&self) -> RunLimits<'_> {
        // Do not spill into the folder of a database that another process writes.
        let folder = self.db.path().filter(|_| !self.db.is_read_only());
        let memory = self.settings.memory_limit;
        RunLimits { memory, folder, cancel: &self.watch.cancel, now_us: self.now_us() }
    }

    /// The cache key of a query, which takes the first of `params`; `None` if its plan is not worth keeping.
    pub fn keyed<'l>(
        &self,
        kind: &str,
        lifted: Option<&'l Lifted>,
        params: &[Value],
    ) -> Option<(&'l Lifted, Keyed)> {
        let lifted = lifted?;
        let params = params.get(..lifted.own)?;
        Some((lifted, Keyed::new(kind, lifted, params, self.settings.guards, || self.now_us())?))
    }

    /// What `now()` is in all parts of the statement, in microseconds since 1970.
    fn now_us(&self) -> i64 {
        *self.now.get_or_init(clock::now)
    }

    /// Runs a query and gives all its rows.
    pub async fn select(&self, query: Query, params: &[Value]) -> Result<RecordBatch> {
        self.select_from(SourceQuery::new(query), Vec::new(), params).await
    }

    /// Runs a query over rows that are in no table. If it computes values from each row by itself, its plan
    /// is kept.
    // Boxed, like everything that calls DataFusion: futures are copied when moved, and most statements do not
    // get here.
    pub fn select_from<'a>(
        &'a self,
        asked: Arc<SourceQuery>,
        rows: Vec<(String, RecordBatch)>,
        params: &'a [Value],
    ) -> BoxFuture<'a, Result<RecordBatch>> {
        Box::pin(async move {
            if let Some(batch) = self.map_rows(asked.lifted.as_ref(), &rows, params).await? {
                return Ok(batch);
            }
            // Without rows of its own, it is a query whose subqueries read tables: `VALUES (7, (SELECT max(n) ..))`.
            let again = rows.is_empty().then(|| asked.lifted.as_ref());
            if let Some((lifted, mut keyed)) = self.keyed(STREAM, again.flatten(), params)
                && let Some(batch) = self.select_kept(lifted, &mut keyed, None).await?
            {
                return Ok(batch);
            }
            self.select_once(Arc::unwrap_or_clone(asked).query, rows, params).await
        })
    }

    /// Like [`StatementView::select_from`], for a text, which is parsed only if its plan is not kept.
    pub fn compute<'a>(
        &'a self,
        sql: &'a str,
        rows: Vec<(String, RecordBatch)>,
        params: &'a [Value],
    ) -> BoxFuture<'a, Result<RecordBatch>> {
        Box::pin(async move {
            match self.map_rows(sql::lift_named(sql).as_ref(), &rows, params).await? {
                Some(batch) => Ok(batch),
                None => self.select_once(sql::parse_query(sql)?, rows, params).await,
            }
        })
    }

    async fn select_once(
        &self,
        query: Query,
        rows: Vec<(String, RecordBatch)>,
        params: &[Value],
    ) -> Result<RecordBatch> {
        let scope = NameScope { rows, ..self.scope(None) };
        Planner::shared().collect(query, &scope, params, &self.limits()).await
    }

    /// Runs a query as a kept projection over rows, if it is one.
    async fn map_rows(
        &self,
        lifted: Option<&Lifted>,
        rows: &[(String, RecordBatch)],
        params: &[Value],
    ) -> Result<Option<RecordBatch>> {
        let Some((lifted, mut keyed)) = self.keyed(MAP, lifted, params) else {
            return Ok(None);
        };
        let (plans, catalog) = (self.db.plans(), self.catalog.identity());
        let known = match plans.find(&mut keyed, catalog) {
            Some(known) => known,
            None => {
                let map = self.map_to_keep(lifted, &keyed, rows).await.ok().flatten();
                let known = map.map_or(PlanCacheEntry::Each, |map| PlanCacheEntry::Map(Arc::new(map)));
                plans.put(&keyed, catalog, known.clone());
                known
            }
        };
        match known {
            PlanCacheEntry::Map(map) => map.apply(rows.first().map(|(_, rows)| rows), &keyed.params),
            _ => Ok(None),
        }
    }

    async fn map_to_keep(
        &self,
        lifted: &Lifted,
        query: &Keyed,
        rows: &[(String, RecordBatch)],
    ) -> Result<Option<RowMap>> {
        let ast = sql::parse_query(&lifted.text)?;
        let binding = self.binding(Arc::clone(&query.params));
        let scope = NameScope { binding, rows: rows.to_vec(), ..self.scope(None) };
        Planner::shared().keep_map(ast, &scope, &self.watch.cancel).await
    }

    /// Runs a query in which every table has its rowkey as a column of this name; its plan is kept like those
    /// of users' queries.
    pub fn select_rowkeys<'a>(
        &'a self,
        asked: Arc<SourceQuery>,
        name: &'a str,
        params: &'a [Value],
    ) -> BoxFuture<'a, Result<RecordBatch>> {
        Box::pin(async move {
            if let Some((lifted, mut keyed)) = self.keyed(name, asked.lifted.as_ref(), params)
                && let Some(batch) = self.select_kept(lifted, &mut keyed, Some(name)).await?
            {
                return Ok(batch);
            }
            let query = Arc::unwrap_or_clone(asked).query;
            let scope = self.scope(Some(name));
            Planner::shared().collect(query, &scope, params, &self.limits()).await
        })
    }

    /// The rows of a query by its cached plan, if one fits.
    async fn select_kept(
        &self,
        lifted: &Lifted,
        query: &mut Keyed,
        rowkey: Option<&str>,
    ) -> Result<Option<RecordBatch>> {
        let Some((run, schema)) = self.bind_cached(lifted, query, rowkey).await? else { return Ok(None) };
        let batches: Vec<RecordBatch> = match run {
            BoundPlan::Alone(mut alone) => {
                let next = || self.watch.cancel.check().and_then(|()| alone.next_batch()).transpose();
                std::iter::from_fn(next).collect::<Result<_>>()?
            }
            BoundPlan::Plan(plan) => {
                let (batches, _) = Planner::shared().run(plan, &self.limits())?;
                batches.try_collect().await?
            }
        };
        in_one(&schema, &batches).map(Some)
    }

    /// Binds the cached plan of a query, if one fits.
    async fn bind_cached(
        &self,
        lifted: &Lifted,
        query: &mut Keyed,
        rowkey: Option<&str>,
    ) -> Result<Option<(BoundPlan, SchemaRef)>> {
        loop {
            let kept = match self.plan_at_hand(lifted, query, rowkey)? {
                PlanAtHand::Plan(kept) => Some(kept),
                PlanAtHand::New => self.keep(lifted, query, rowkey).await,
                PlanAtHand::None => None,
            };
            let Some(kept) = kept else { return Ok(None) };
            if let Some(run) = self.bind(&kept, query)? {
                return Ok(Some((run, kept.plan.schema())));
            }
            let Some(other) = query.other(&kept) else { return Ok(None) };
            *query = other;
        }
    }

    /// Like [`StatementView::stream`], for the query inside a statement that may come again: its plan is kept.
    /// `in_order`: the rows come in the order in which one thread finds them.
    pub fn stream_again<'a>(
        &'a self,
        asked: Arc<SourceQuery>,
        params: &'a [Value],
        in_order: bool,
    ) -> BoxFuture<'a, Result<(BatchStream, SchemaRef)>> {
        Box::pin(async move {
            let run = match self.keyed(STREAM, asked.lifted.as_ref(), params) {
                Some((lifted, mut keyed)) => self.bind_cached(lifted, &mut keyed, None).await?,
                None => None,
            };
            match run.filter(|(run, _)| !(in_order && run.is_shared())) {
                None => self.stream_by(Arc::unwrap_or_clone(asked).query, params, in_order).await,
                Some((BoundPlan::Plan(plan), _)) => Planner::shared().run(plan, &self.limits()),
                Some((BoundPlan::Alone(mut alone), schema)) => {
                    let next = std::iter::from_fn(move || alone.next_batch().transpose());
                    Ok((Box::pin(futures::stream::iter(next)) as BatchStream, schema))
                }
            }
        })
    }

    /// Runs a query and gives its batches as a stream, and their schema.
    pub fn stream<'a>(
        &'a self,
        query: Query,
        params: &'a [Value],
    ) -> BoxFuture<'a, Result<(BatchStream, SchemaRef)>> {
        self.stream_by(query, params, false)
    }

    /// [`StatementView::stream`], `by_one_thread` if need be.
    fn stream_by<'a>(
        &'a self,
        query: Query,
        params: &'a [Value],
        by_one_thread: bool,
    ) -> BoxFuture<'a, Result<(BatchStream, SchemaRef)>> {
        Box::pin(async move {
            let planner = Planner::shared();
            let plan = planner.plan(query, &self.scope(None), params)?;
            let plan = planner.physical(plan, &self.limits(), by_one_thread).await?;
            planner.run(plan, &self.limits())
        })
    }

    /// The cached plan of a query, or one made without DataFusion, which is kept. Every table has its rowkey as a column
    /// of this name, too.
    pub fn plan_at_hand(
        &self,
        lifted: &Lifted,
        query: &mut Keyed,
        rowkey: Option<&str>,
    ) -> Result<PlanAtHand> {
        let (plans, catalog) = (self.db.plans(), self.catalog.identity());
        match plans.find(query, catalog) {
            Some(PlanCacheEntry::Plan(kept)) if kept.plan.lacks_threads() => {
                query.threads = Threads::Wanted;
                return Ok(PlanAtHand::New);
            }
            Some(PlanCacheEntry::Plan(kept)) => return Ok(PlanAtHand::Plan(kept)),
            Some(_) => return Ok(PlanAtHand::None),
            None => {}
        }
        let Some(plan) = self.plain(lifted, query, rowkey)? else { return Ok(PlanAtHand::New) };
        plans.put(query, catalog, PlanCacheEntry::Plan(Arc::clone(&plan)));
        Ok(PlanAtHand::Plan(plan))
    }

    /// Plans a query and keeps the plan; every table has its rowkey as a column of this name, too. Errors are
    /// not reported here: the query's own run will, with the right places.
    pub async fn keep(
        &self,
        lifted: &Lifted,
        query: &Keyed,
        rowkey: Option<&str>,
    ) -> Option<Arc<CachedPlan>> {
        let plan = match sql::parse(&lifted.text) {
            Ok(Statement::Query(ast)) => self.plan_to_keep(*ast, query, rowkey).await.ok().flatten(),
            _ => None,
        };
        let (plans, catalog) = (self.db.plans(), self.catalog.identity());
        let Some((plan, of)) = plan else {
            plans.put(query, catalog, PlanCacheEntry::Each);
            return None;
        };
        let kept = Arc::new(CachedPlan::new(plan, &query.params));
        let known = PlanCacheEntry::Plan(Arc::clone(&kept));
        // A plan that depends on fewer values than are in the key holds for this key.
        if query.depends_on.covers(&of) {
            plans.put(query, catalog, known);
        } else {
            plans.put(&query.with_values(&of), catalog, known);
            plans.put(query, catalog, PlanCacheEntry::ByValues(of));
        }
        Some(kept)
    }

    /// A plan made without DataFusion, if possible; every table has its rowkey as a column of this name, too.
    fn plain(&self, lifted: &Lifted, query: &Keyed, rowkey: Option<&str>) -> Result<Option<Arc<CachedPlan>>> {
        with_stack(|| {
            let Ok(Statement::Query(ast)) = sql::parse(&lifted.text) else { return Ok(None) };
            let binding = self.binding(Arc::clone(&query.params));
            let plan = plain::plan(&ast, &NameScope { binding, ..self.scope(rowkey) })?;
            Ok(plan.map(|plan| Arc::new(CachedPlan::new(plan, &query.params))))
        })
    }

    async fn plan_to_keep(
        &self,
        ast: Query,
        query: &Keyed,
        rowkey: Option<&str>,
    ) -> Result<Option<(UnboundPlan, DependsOn)>> {
        let binding = self.binding(Arc::clone(&query.params));
        let scope = NameScope { binding, ..self.scope(rowkey) };
        Planner::shared().keep(ast, &scope, &query.depends_on, query.threads, &self.watch.cancel).await
    }

    /// A run of a cached plan; `None` if another plan is better for the query's parameters.
    pub fn bind(&self, kept: &CachedPlan, query: &Keyed) -> Result<Option<BoundPlan>> {
        let binding = self.binding(Arc::clone(&query.params));
        kept.plan.bind(&Binding { may_sort: query.is_other, ..binding })
    }

    /// What a cached plan needs to run.
    pub fn binding(&self, params: Arc<[Value]>) -> Binding {
        Binding {
            snapshot: Arc::clone(&self.snapshot),
            params,
            guards: self.settings.guards,
            as_of_us: self.as_of_us,
            may_sort: true,
        }
    }

    /// Output columns of a view.
    pub fn view_schema(&self, view: &ViewDef) -> Result<Schema> {
        let query = sql::parse_query(&format!("SELECT * FROM {}", quoted_name(&view.name)))?;
        let schema = Planner::shared().columns_of(query, &self.scope(None), &[])?;
        Ok(schema.as_arrow().clone())
    }

    /// Errors: a view that cannot be read, whatever its tables hold.
    pub fn check_view(&self, view: &ViewDef) -> Result<()> {
        let query = sql::parse_query(&format!("SELECT * FROM {}", quoted_name(&view.name)))?;
        Planner::shared().optimised(query, &self.scope(None)).map(drop)
    }

    /// Output columns of a query that is to be a view or a table. Errors: it cannot be planned; it has another number of
    /// columns than `names` (0: any), or two that are called the same.
    pub fn columns_of(&self, query: Query, names: usize, params: &[Value]) -> Result<Schema> {
        let schema = Planner::shared().columns_of(query, &self.scope(None), params)?;
        let columns = schema.fields().len();
        if names != 0 && names != columns {
            return Err(Error::invalid(format!(
                "{} for {}",
                counted(names, "name"),
                counted(columns, "column")
            ))
            .hint("name every column of the query, or none")
            .state(sqlstate::SYNTAX));
        }
        let mut seen = HashSet::new();
        let mut of_query = schema.fields().iter().map(|field| sql::output_name(field.name()));
        match of_query.find(|name| names == 0 && !seen.insert(*name)) {
            None => Ok(schema.as_arrow().clone()),
            Some(name) => Err(Error::invalid(format!("two columns are called \"{name}\""))
                .why("a table or view has each name once")
                .hint("give one of them another name: x AS y")
                .state(sqlstate::DUPLICATE_COLUMN)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_queries_are_planned_without_datafusion() {
        let db = Database::in_memory().unwrap();
        db.execute_batch(
            "CREATE TABLE t (id INT, a INT, s TEXT, ok BOOLEAN, at TIMESTAMP, r REAL, d DECIMAL(9, 2), PRIMARY KEY (lpad(id, 6)));
             CREATE INDEX t_by_a ON t (a, at DESC);
             CREATE VIEW v AS SELECT id FROM t;
             INSERT INTO t SELECT v, v % 9, 's' || v, v % 2 = 0, now(), 1, 1 FROM generate_series(1, 100) g(v)",
        )
        .unwrap();
        let plain = [
            "SELECT * FROM t WHERE id = 7",
            "SELECT q.S AS text, \"id\", id FROM public.t q WHERE (7 = q.id) AND s > 'a' AND ok",
            "SELECT s FROM t WHERE a = 3 ORDER BY at DESC LIMIT 10 OFFSET 2",
            "SELECT s FROM t WHERE a BETWEEN 2 AND 3 AND at < now() AND NOT ok AND r IS NULL",
            "SELECT s FROM t WHERE id NOT IN (1, 2, 3) AND a IS NOT NULL AND ok = TRUE",
            "SELECT rowkey, s FROM t WHERE rowkey >= '1' ORDER BY rowkey",
            "SELECT a FROM t_by_a WHERE a = 1",
            "SELECT id FROM t WHERE rowkey LIKE '0000%' OR (a = 1 AND NOT (s NOT LIKE 'a%' OR s ILIKE 'B_'))",
            "SELECT count(*), sum(a) AS total, count(s), sum(d) FROM t WHERE id < 50",
            "SELECT id FROM t LIMIT 3",
            "SELECT id FROM t WHERE id > 2.5 AND NOT a = 0.5",
        ];
        let others = [
            "SELECT *, rowkey FROM t",
            "SELECT id + 1 FROM t",
            "SELECT nothing FROM t",
            "SELECT id FROM v",
            "SELECT id FROM t, t q",
            "SELECT id FROM t WHERE r = 1",
            "SELECT id FROM t ORDER BY s",
            "SELECT a AS id FROM t ORDER BY id",
            "SELECT DISTINCT id FROM t",
            "SELECT max(id) FROM t",
            "SELECT sum(r) FROM t",
            "SELECT count(*) FROM t LIMIT 1",
            "SELECT a, count(*) FROM t GROUP BY a",
            "SELECT id FROM t WHERE q.id = 1",
            "SELECT /*+ FULL(t) */ id FROM t WHERE a = 1",
        ];
        let session = db.session();
        let is_plain = |sql: &str| {
            let lifted = sql::lift(sql);
            let view = session.view().unwrap();
            let (lifted, query) = view.keyed("", lifted.as_ref(), &[]).unwrap();
            view.plain(lifted, &query, None).unwrap().is_some()
        };
        plain.into_iter().for_each(|sql| assert!(is_plain(sql), "{sql}"));
        others.into_iter().for_each(|sql| assert!(!is_plain(sql), "{sql}"));
    }
}
