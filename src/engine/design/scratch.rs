//! Scratch databases: tables copied into memory, to try indexes and layouts that are only considered.
//!
//! Nothing is simulated: the layout or index exists, over the same rows or a sample of them, and the planner,
//! the executor and their counters are the real ones.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use futures::TryStreamExt;
use sqlparser::ast::{Expr, Query};

use crate::access::Method;
use crate::catalog::{Catalog, Relation};
use crate::df::explain::{self, AccessWork, Ran};
use crate::df::query::Planner;
use crate::engine::view::StatementView;
use crate::engine::write::FOUND_ROWKEY;
use crate::engine::{Database, analyze};
use crate::error::{Error, Result, sqlstate};
use crate::exec::bulk::Loader;
use crate::exec::stored;
use crate::exec::watch::{CancelHandle, Watch};
use crate::key::{KeyLayout, KeyRange};
use crate::schema::{IndexDef, IndexState, TableDef};
use crate::sql::visit::visit_expressions;
use crate::sql::{parse_query, relations_of};
use crate::store::{Direction, Reader, Snapshot};
use crate::value::Value;

/// Rows (count) copied of a table, about; a larger one is sampled evenly.
const ROWS: u64 = 50_000;

/// A copy of some tables.
pub struct ScratchDatabase {
    /// The database with the copies.
    pub db: Database,
    /// Of a sampled table, only one row in so many was copied.
    sampled: BTreeMap<String, u64>,
}

/// What one query did on a scratch database.
pub struct Tried {
    /// The lines of EXPLAIN ANALYZE.
    pub lines: Vec<String>,
    /// What each access did.
    pub accesses: Vec<Ran>,
}

/// The tables that queries read, also through views; each once.
pub fn tables_of(view: &StatementView, queries: &[&Query]) -> Vec<Arc<TableDef>> {
    let mut names: Vec<String> = queries.iter().flat_map(|query| relations_of(query)).collect();
    let (mut seen, mut found) = (HashSet::new(), BTreeMap::new());
    while let Some(name) = names.pop() {
        match view.catalog.find(&name) {
            Some(Relation::Table(table) | Relation::Index(table, _)) => {
                found.insert(table.id, table);
            }
            Some(Relation::View(inner)) if seen.insert(name) => {
                names.extend(parse_query(&inner.sql).iter().flat_map(relations_of));
            }
            Some(Relation::View(_)) | None => {}
        }
    }
    found.into_values().collect()
}

impl ScratchDatabase {
    /// Copies `tables` and all views.
    pub fn new(view: &StatementView, tables: &[Arc<TableDef>]) -> Result<ScratchDatabase> {
        ScratchDatabase::of(&view.catalog, &*view.snapshot, tables, None, &view.watch)
    }

    /// A copy of the same rows in which `table` has another layout.
    ///
    /// Errors: rows that the layout cannot hold, or that would share a key.
    pub fn with_layout(
        &self,
        table: &TableDef,
        layout: &KeyLayout,
        watch: &Watch,
    ) -> Result<ScratchDatabase> {
        let (catalog, snapshot) = self.db.view()?;
        let tables: Vec<Arc<TableDef>> = catalog.tables().cloned().collect();
        let copy = ScratchDatabase::of(&catalog, &*snapshot, &tables, Some((&table.name, layout)), watch)?;
        Ok(ScratchDatabase { sampled: self.sampled.clone(), ..copy })
    }

    fn of(
        catalog: &Catalog,
        snapshot: &dyn Snapshot,
        tables: &[Arc<TableDef>],
        other: Option<(&str, &KeyLayout)>,
        watch: &Watch,
    ) -> Result<ScratchDatabase> {
        let mut scratch = ScratchDatabase { db: Database::in_memory()?, sampled: BTreeMap::new() };
        let reader = snapshot.reader()?;
        for table in tables {
            let every = match other.filter(|(name, _)| *name == table.name) {
                Some((_, layout)) => {
                    scratch.copy(&*reader, table, layout, watch).map_err(|e| under(layout, e))?
                }
                None => scratch.copy(&*reader, table, &table.key, watch)?,
            };
            if every > 1 {
                scratch.sampled.insert(table.name.clone(), every);
            }
            if catalog.statistics(table.id).is_some() {
                analyze::analyze(&scratch.db, &*scratch.db.catalog().table(&table.name)?, watch)?;
            }
        }
        scratch.db.change_catalog(&watch.cancel, |there| {
            let mut edit = there.edit();
            catalog.views().try_for_each(|v| edit.put_view((**v).clone()))?;
            Ok(((), Some(edit.finish()?)))
        })?;
        Ok(scratch)
    }

    /// Copies a table or a sample of it; gives `n` if one row in `n` was copied.
    fn copy(&self, reader: &dyn Reader, table: &TableDef, layout: &KeyLayout, watch: &Watch) -> Result<u64> {
        let copy = self.define(table, layout)?;
        let every = reader.entries(table.rows())?.div_ceil(ROWS).max(1);
        let label = format!("copying {}", table.name);
        let mut writer = self.db.store().bulk()?;
        let mut loader = Loader::new(&copy, &mut *writer, None, watch);
        let mut cursor = reader.cursor(table.rows(), &KeyRange::all(), Direction::Forward)?;
        let mut n: u64 = 0;
        while let Some((key, value)) = cursor.next()? {
            watch.tick(&label, n, None, "rows")?;
            if n.is_multiple_of(every) {
                let row = stored::values_of(reader, table, key, value)?;
                // A bucket is drawn once for each row.
                match *layout == table.key {
                    true => loader.add_under(&row, &key.into())?,
                    false => loader.add(&row)?,
                }
            }
            n += 1;
        }
        loader.finish()?;
        writer.commit()?;
        Ok(every)
    }

    /// The same definition with another layout, new keyspaces and a single region.
    fn define(&self, table: &TableDef, layout: &KeyLayout) -> Result<TableDef> {
        self.db.change_catalog(&CancelHandle::default(), |catalog| {
            let mut edit = catalog.edit();
            let mut copy = table.clone();
            copy.id = edit.new_table_id();
            copy.split_at(Vec::new());
            (copy.rekey, copy.history) = (None, None);
            copy.references.clear();
            copy.families.iter_mut().for_each(|family| family.keyspace = edit.new_keyspace());
            copy.key = layout.clone();
            let indexes = table.indexes.iter().filter(|index| index.state == IndexState::Ready);
            let index = |index: &IndexDef| {
                let (id, keyspace) = (edit.new_index_id(), edit.new_keyspace());
                let mut index = IndexDef { id, keyspace, ..index.clone() };
                index.point_at(layout);
                index
            };
            copy.indexes = indexes.map(index).collect();
            edit.put_table(copy.clone())?;
            Ok((copy, Some(edit.finish()?)))
        })
    }

    /// Runs a query and counts its reads.
    pub async fn run(&self, view: &StatementView, query: &Query, params: &[Value]) -> Result<Tried> {
        let here = StatementView {
            watch: view.watch.clone(),
            settings: view.settings.clone(),
            ..self.db.session().view()?
        };
        let planner = Planner::shared();
        let rowkey = names(query, FOUND_ROWKEY).then_some(FOUND_ROWKEY);
        let plan = planner.plan(query.clone(), &here.scope(rowkey), params)?;
        let plan = planner.physical(plan, &view.limits(), false).await?;
        let (mut stream, _) = planner.run(Arc::clone(&plan), &view.limits())?;
        while stream.try_next().await?.is_some() {
            view.watch.cancel.check()?;
        }
        Ok(Tried { lines: explain::explain(&plan, true, false), accesses: explain::ran(&plan) })
    }

    /// For the table sampled most sparsely: one row in so many was copied.
    pub fn every(&self) -> u64 {
        self.sampled.values().copied().max().unwrap_or(1)
    }

    /// What the query would read from the full tables.
    pub fn reads(&self, tried: &Tried) -> AccessWork {
        let mut all = AccessWork::default();
        for access in &tried.accesses {
            let times = self.times(access);
            all.entries += times * access.reads.entries;
            all.gets += times * access.reads.gets;
            all.fetched += times * access.reads.fetched;
        }
        all
    }

    /// The factor from what an access read here to the full table.
    fn times(&self, Ran { need, spec, is_narrowed, .. }: &Ran) -> u64 {
        let every = self.sampled.get(&spec.table.name).copied().unwrap_or(1);
        // A scan that stops at a LIMIT stops there in the full table too, and a GET stays one GET.
        let stops = need.limit.is_some() && (need.order.is_empty() || spec.access.ordered);
        let is_known = !is_narrowed && spec.access.walks().iter().all(|w| matches!(w.method, Method::Get(_)));
        if stops || is_known { 1 } else { every }
    }
}

/// The query names this column, as that of an UPDATE or DELETE names the rowkey of its rows.
fn names(query: &Query, column: &str) -> bool {
    let found = visit_expressions(query, |expr| match expr {
        Expr::Identifier(name) if name.value == column => ControlFlow::Break(()),
        Expr::CompoundIdentifier(parts) if parts.last().is_some_and(|name| name.value == column) => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// The error for rows that a layout on trial cannot hold.
fn under(layout: &KeyLayout, error: Error) -> Error {
    let why = format!("LAYOUT ({}) is tried on the rows of the table", layout.sql());
    match error.sqlstate() {
        sqlstate::UNIQUE => {
            error.why(format!("two rows share it: {why}")).hint("add a column that tells them apart")
        }
        _ => error.why(why),
    }
}
