//! The facts that LINT goes by: a sample of a table's rows, a count of its entries, and the queries in the
//! plan cache.

use std::sync::Arc;

use crate::access::{Access, Method};
use crate::design::lint::{ColumnFacts, KeyspaceFacts, QueryFacts, TableFacts, growth};
use crate::engine::analyze::{self, Sample};
use crate::engine::view::StatementView;
use crate::error::Result;
use crate::exec::scan::ScanSpec;
use crate::exec::watch::Watch;
use crate::key::{ColumnId, KeyLayout, KeyRange, Rowkey};
use crate::plan::Predicate;
use crate::schema::TableDef;
use crate::store::{Direction, KeyspaceId, Reader};

/// Measures `table`.
pub fn facts(view: &StatementView, table: &TableDef) -> Result<TableFacts> {
    let reader = view.snapshot.reader()?;
    let (statistics, sample) = analyze::look(&*reader, table, &view.watch)?;
    let columns = columns(table, statistics.rows, &sample);
    let families = table.family_ids().map(|id| (table.family(id).keyspace, &table.key));
    let indexes = table.indexes.iter().map(|index| (index.keyspace, &index.layout));
    let mut keyspaces = Vec::new();
    for (id, layout) in families.chain(indexes) {
        let splits = if id == table.rows() { &table.splits[..] } else { &[] };
        keyspaces.push((id, counted(&*reader, id, layout, splits, (&table.name, &view.watch))?));
    }
    let queries = queries(view, table)?;
    Ok(TableFacts { statistics, columns, keyspaces, queries })
}

/// Facts of the key columns.
fn columns(table: &TableDef, rows: u64, sample: &Sample) -> Vec<(ColumnId, ColumnFacts)> {
    let layouts = || std::iter::once(&table.key).chain(table.indexes.iter().map(|index| &index.layout));
    let leads = |id: ColumnId| layouts().any(|l| l.leading().is_some_and(|(_, part)| part.columns() == [id]));
    let of_keys = sample.iter().filter(|(id, _)| layouts().any(|layout| layout.columns().contains(id)));
    let facts = |(id, values): &(ColumnId, Vec<_>)| {
        let growth = if leads(*id) { growth(table, *id, rows, sample) } else { None };
        (*id, ColumnFacts { growth, ..ColumnFacts::of(values) })
    };
    of_keys.map(facts).collect()
}

fn counted(
    reader: &dyn Reader,
    id: KeyspaceId,
    layout: &KeyLayout,
    splits: &[Rowkey],
    (table, watch): (&str, &Watch),
) -> Result<KeyspaceFacts> {
    let (mut facts, label) = (KeyspaceFacts::default(), format!("looking at {table}"));
    let mut cursor = reader.cursor(id, &KeyRange::all(), Direction::Forward)?;
    while let Some((key, value)) = cursor.next()? {
        watch.tick(&label, facts.entries, None, "entries")?;
        facts.count(layout, splits, key, value);
    }
    Ok(facts)
}

/// A scan of `table` by a query in the plan cache.
pub struct KnownScan {
    /// The query, with its literals lifted out.
    pub sql: String,
    /// The rows it selects.
    pub predicate: Predicate,
    /// The access path.
    pub spec: Arc<ScanSpec>,
}

/// How the queries in the plan cache read `table`.
pub fn known_scans(view: &StatementView, table: &TableDef) -> Result<Vec<KnownScan>> {
    let mut found = Vec::new();
    for (sql, kept) in view.db.plans().kept(view.catalog.identity()) {
        let binding = view.binding(kept.params.clone());
        let scans = kept.plan.paths(&binding)?.into_iter().filter(|(_, spec)| spec.table.id == table.id);
        found.extend(scans.map(|(need, spec)| KnownScan {
            sql: sql.clone(),
            predicate: need.predicate,
            spec,
        }));
    }
    Ok(found)
}

fn queries(view: &StatementView, table: &TableDef) -> Result<Vec<QueryFacts>> {
    let fact = |sql: &str, spec: &ScanSpec, walk: &Access| {
        let index = walk.index(spec.source());
        let layout = index.map_or(&table.key, |index| &index.layout);
        let has_buckets = layout.parts().first().is_some_and(|part| part.buckets().is_some());
        let is_walk = matches!(walk.method, Method::Scan { .. });
        let ranges = match &walk.method {
            Method::Get(keys) => keys.len(),
            method => method.range_count(),
        };
        let fans_out = is_walk && has_buckets && ranges > 1;
        QueryFacts { sql: sql.to_owned(), index: index.map(|index| index.id), ranges, fans_out }
    };
    let scans = known_scans(view, table)?;
    let walks = scans.iter().flat_map(|scan| scan.spec.access.walks().iter().map(move |walk| (scan, walk)));
    Ok(walks.map(|(scan, walk)| fact(&scan.sql, &scan.spec, walk)).collect())
}
