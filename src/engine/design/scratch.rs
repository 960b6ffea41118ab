//! Tables copied into a database in memory, to try on them what is only being thought about.
//!
//! Nothing is pretended: the layout or index is there, over the same rows or a sample of them, and the
//! planner, the executor and their counters are the real ones.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use futures::TryStreamExt;
use sqlparser::ast::Query;

use crate::access::Need;
use crate::catalog::Relation;
use crate::df::explain::{self, Reads};
use crate::engine::view::View;
use crate::engine::{Database, analyze};
use crate::error::{Error, Result, sqlstate};
use crate::exec::bulk::Loader;
use crate::exec::scan::ScanSpec;
use crate::exec::stored;
use crate::key::{KeyLayout, KeyRange};
use crate::schema::{IndexDef, IndexState, TableDef};
use crate::sql::{parse_query, relations_of};
use crate::store::Direction;
use crate::value::Value;

/// Rows of a table that are copied, about; of a larger one, every so-many-th.
const ROWS: u64 = 50_000;

/// A copy of some tables.
pub struct Scratch {
    /// It.
    pub db: Database,
    /// Of the largest table, one row in so many is here.
    pub every: u64,
}

/// What one query did on a scratch database.
pub struct Tried {
    /// EXPLAIN ANALYZE.
    pub lines: Vec<String>,
    /// What it read, all in all.
    pub reads: Reads,
    /// What each of its scans wanted, and how it was done.
    pub scans: Vec<(Need, Arc<ScanSpec>)>,
}

/// Tables that queries name, those inside their views included; none twice.
pub fn tables_of(view: &View, queries: &[&Query]) -> Vec<Arc<TableDef>> {
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

impl Scratch {
    /// Copies `tables`, one of them perhaps with another layout, and all views.
    pub fn new(
        view: &View,
        tables: &[Arc<TableDef>],
        other: Option<(&TableDef, KeyLayout)>,
    ) -> Result<Scratch> {
        let db = Database::in_memory()?;
        let mut every = 1;
        for table in tables {
            let layout =
                other.as_ref().filter(|(changed, _)| changed.id == table.id).map(|(_, layout)| layout);
            let copy = define(&db, table, layout)?;
            let filled = fill(view, table, &copy, &db);
            every = every.max(match layout {
                Some(layout) => filled.map_err(|e| under(layout, e))?,
                None => filled?,
            });
            if view.catalog.statistics(table.id).is_some() {
                analyze::analyze(&db, &copy, &view.watch)?;
            }
        }
        db.change_catalog(|catalog| {
            let mut edit = catalog.edit();
            view.catalog.views().try_for_each(|v| edit.put_view((**v).clone()))?;
            Ok(((), Some(edit.finish()?)))
        })?;
        Ok(Scratch { db, every })
    }

    /// Runs a query and counts.
    pub async fn run(&self, view: &View, query: &Query, params: &[Value]) -> Result<Tried> {
        let here =
            View { watch: view.watch.clone(), settings: view.settings.clone(), ..self.db.session().view()? };
        let (query, rowkeys) = here.prepare(query.clone())?;
        let scope = here.scope(rowkeys, Vec::new());
        let planner = self.db.planner();
        let plan = planner.physical(planner.plan(query, &scope, params)?).await?;
        let (mut stream, _) = planner.run(Arc::clone(&plan), &view.limits())?;
        while stream.try_next().await?.is_some() {
            view.watch.cancel.check()?;
        }
        Ok(Tried {
            lines: explain::explain(&plan, true, false),
            reads: explain::reads(&plan),
            scans: explain::needs(&plan),
        })
    }

    /// What a query reads, all together, as much as it would in the whole tables.
    pub fn scaled(&self, tried: &Tried, n: u64) -> u64 {
        // What stops at a limit stops there among more rows too.
        let stops = tried
            .scans
            .iter()
            .all(|(need, spec)| need.limit.is_some() && (need.order.is_empty() || spec.access.ordered));
        if stops { n } else { n * self.every }
    }
}

/// The error of rows that a layout which is only tried cannot hold.
fn under(layout: &KeyLayout, error: Error) -> Error {
    let why = format!("LAYOUT ({}) is tried on the rows of the table", layout.sql());
    match error.sqlstate() {
        sqlstate::UNIQUE => {
            error.why(format!("two rows share it: {why}")).hint("add a column that tells them apart")
        }
        _ => error.why(why),
    }
}

/// The same definition under other keyspaces.
fn define(db: &Database, table: &TableDef, layout: Option<&KeyLayout>) -> Result<TableDef> {
    db.change_catalog(|catalog| {
        let mut edit = catalog.edit();
        let mut copy = table.clone();
        copy.id = edit.new_table_id();
        copy.split_at(Vec::new());
        copy.rekey = None;
        copy.families.iter_mut().for_each(|family| family.keyspace = edit.new_keyspace());
        if let Some(layout) = layout {
            copy.key = layout.clone();
        }
        let indexes = table.indexes.iter().filter(|index| index.state == IndexState::Ready);
        let index = |index: &IndexDef| IndexDef {
            id: edit.new_index_id(),
            keyspace: edit.new_keyspace(),
            holds_primary: index.layout.contains_columns(&copy.key),
            ..index.clone()
        };
        copy.indexes = indexes.map(index).collect();
        edit.put_table(copy.clone())?;
        Ok((copy, Some(edit.finish()?)))
    })
}

/// Copies rows; gives of how many each is one.
fn fill(view: &View, table: &TableDef, copy: &TableDef, db: &Database) -> Result<u64> {
    let reader = view.snapshot.reader()?;
    let every = reader.entries(table.rows())?.div_ceil(ROWS).max(1);
    let mut loader = Loader::new(copy, db.store().bulk()?, true, &view.watch);
    let mut cursor = reader.cursor(table.rows(), &KeyRange::all(), Direction::Forward)?;
    let mut n: u64 = 0;
    while let Some((key, _)) = cursor.next()? {
        if n.is_multiple_of(8192) {
            view.watch.step(&format!("copying {}", table.name), n, None, "rows")?;
        }
        if n.is_multiple_of(every)
            && let Some(row) = stored::load(&*reader, table, key)?
        {
            loader.add(&row.values)?;
        }
        n += 1;
    }
    loader.commit(|_| Ok(()))?;
    Ok(every)
}
