//! ADVISE: indexes and layouts that would serve some queries better, tried and measured.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::RecordBatch;
use sqlparser::ast::Query;

use super::scratch::{Scratch, tables_of};
use crate::access::{Need, index_for};
use crate::engine::build;
use crate::engine::ddl::primary_layout;
use crate::engine::show::{numbers, rows_of, text};
use crate::engine::view::View;
use crate::error::{Error, Result, sqlstate};
use crate::key::ColumnId;
use crate::plan::Field;
use crate::schema::TableDef;
use crate::sql::{CreateIndex, KeyExpr, Statement, name_of, name_sql, parse, parse_query};
use crate::value::Value;

/// Indexes proposed at the most.
const INDEXES_MAX: usize = 4;
/// A proposal must spare this share of what is read.
const WORTH: f64 = 0.1;
/// Columns that an index is made to hold beside its key, at the most.
const INCLUDE_MAX: usize = 4;

/// A query to be served.
struct Wanted {
    query: Query,
    params: Arc<[Value]>,
}

/// One row of the answer.
struct Proposal {
    sql: String,
    /// Rows and entries read by all queries together, before and after.
    reads: (u64, u64),
    /// Queries that read less, by number from 1.
    serves: Vec<usize>,
    /// Entries written for each row, before and after.
    writes: (u64, u64),
}

/// Proposals, each on top of those before it; then layouts, each by itself.
pub async fn rows(view: &View, queries: &[Query]) -> Result<RecordBatch> {
    let wanted = wanted(view, queries)?;
    let all: Vec<&Query> = wanted.iter().map(|w| &w.query).collect();
    let tables = tables_of(view, &all);
    let mut proposals = indexes(view, &tables, &wanted).await?;
    for table in &tables {
        proposals.extend(layout(view, &tables, table, &wanted).await?);
    }
    let serves = |p: &Proposal| p.serves.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let column = |of: fn(&Proposal) -> u64| numbers(proposals.iter().map(|p| of(p) as i64).collect());
    rows_of(vec![
        ("serves_queries", text(proposals.iter().map(serves).collect())),
        ("reads_before", column(|p| p.reads.0)),
        ("reads_after", column(|p| p.reads.1)),
        ("writes_before", column(|p| p.writes.0)),
        ("writes_after", column(|p| p.writes.1)),
        ("proposal", text(proposals.iter().map(|p| p.sql.clone()).collect())),
    ])
}

/// The queries given, or those whose plans are kept.
fn wanted(view: &View, queries: &[Query]) -> Result<Vec<Wanted>> {
    if !queries.is_empty() {
        let given = queries.iter().map(|query| Wanted { query: query.clone(), params: Arc::from([]) });
        return Ok(given.collect());
    }
    let kept = view.db.plans().kept(view.catalog.version()).into_iter();
    let known: Result<Vec<Wanted>> = kept
        .map(|(sql, plan)| Ok(Wanted { query: parse_query(&sql)?, params: Arc::clone(&plan.params) }))
        .collect();
    let known = known?;
    if known.is_empty() {
        return Err(Error::invalid("no query is known yet")
            .why("queries are known once they came twice since the database was opened")
            .hint("name them: ADVISE FOR (SELECT ...), (SELECT ...)")
            .state(sqlstate::OBJECT_STATE));
    }
    Ok(known)
}

/// Reads of each query, in the number of rows there really are.
async fn reads(view: &View, scratch: &Scratch, wanted: &[Wanted]) -> Result<Vec<u64>> {
    let mut all = Vec::with_capacity(wanted.len());
    for w in wanted {
        let tried = scratch.run(view, &w.query, &w.params).await?;
        let reads = tried.reads;
        all.push(scratch.scaled(&tried, reads.entries + reads.gets + reads.fetched));
    }
    Ok(all)
}

/// Adds, one by one, the index that spares most.
async fn indexes(view: &View, tables: &[Arc<TableDef>], wanted: &[Wanted]) -> Result<Vec<Proposal>> {
    let scratch = Scratch::new(view, tables, None)?;
    let mut candidates: Vec<String> = Vec::new();
    for w in wanted {
        for (need, spec) in scratch.run(view, &w.query, &w.params).await?.scans {
            for keys in key_lists(&spec.table, &need)? {
                let sql = create_index(&spec.table, &keys);
                let include = included(&spec.table, &need.output, &keys);
                let covering = include.map(|columns| format!("{sql} INCLUDE ({columns})"));
                candidates.extend(std::iter::once(sql).chain(covering));
            }
        }
    }
    let mut seen = BTreeSet::new();
    candidates.retain(|sql| seen.insert(sql.clone()));
    let mut before = reads(view, &scratch, wanted).await?;
    let mut proposals = Vec::new();
    while proposals.len() < INDEXES_MAX {
        let mut best: Option<(&String, Vec<u64>)> = None;
        for sql in &candidates {
            let create = create_of(sql)?;
            let name = create.name.as_ref().map_or_else(String::new, name_of);
            if scratch.db.catalog().find(&name).is_some() {
                continue;
            }
            build::create_index(&scratch.db, &create, &view.watch)?;
            let after = reads(view, &scratch, wanted).await?;
            scratch.db.execute(&format!("DROP INDEX {}", name_sql(&name)))?;
            if spares(&before, &after) && best.as_ref().is_none_or(|(_, reads)| total(&after) < total(reads))
            {
                best = Some((sql, after));
            }
        }
        let Some((sql, after)) = best else { break };
        let create = create_of(sql)?;
        let writes = entries_of(&*scratch.db.catalog().table(&name_of(&create.table))?);
        build::create_index(&scratch.db, &create, &view.watch)?;
        proposals.push(Proposal {
            serves: served(&before, &after),
            reads: (total(&before), total(&after)),
            writes: (writes, writes + 1),
            sql: sql.clone(),
        });
        before = after;
    }
    Ok(proposals)
}

fn total(reads: &[u64]) -> u64 {
    reads.iter().sum()
}

/// What is spared is worth a proposal.
fn spares(before: &[u64], after: &[u64]) -> bool {
    let (before, after) = (total(before), total(after));
    before > 0 && before.saturating_sub(after) as f64 >= WORTH * before as f64
}

/// A key part of a proposal: a column, perhaps descending.
type Key = (ColumnId, bool);

/// Keys that would serve a scan: the columns it compares; those, then the ones it is sorted by.
fn key_lists(table: &TableDef, need: &Need) -> Result<Vec<Vec<Key>>> {
    let Some(sql) = index_for(table, need) else { return Ok(Vec::new()) };
    let create = create_of(&sql)?;
    let key = |key: &KeyExpr| Some((table.column_id(key.sql.trim_matches('"'))?, key.descending));
    let Some(compared) = create.keys.iter().map(key).collect::<Option<Vec<Key>>>() else {
        return Ok(Vec::new());
    };
    let mut lists = vec![compared.clone()];
    let sorted = need.order.iter().map(|by| match by.field {
        Field::Column(id) if table.column(id).formula.is_none() => Some((id, by.descending)),
        _ => None,
    });
    if let Some(sorted) = sorted.collect::<Option<Vec<Key>>>() {
        let more: Vec<Key> =
            sorted.into_iter().filter(|(id, _)| compared.iter().all(|(there, _)| there != id)).collect();
        if !more.is_empty() {
            lists.push([compared, more].concat());
        }
    }
    Ok(lists)
}

/// `a, b DESC`
fn keys_sql(table: &TableDef, keys: &[Key]) -> String {
    let key = |(id, descending): &Key| {
        format!("{}{}", name_sql(table.column_name(*id)), if *descending { " DESC" } else { "" })
    };
    keys.iter().map(key).collect::<Vec<_>>().join(", ")
}

fn create_index(table: &TableDef, keys: &[Key]) -> String {
    let names: Vec<&str> = keys.iter().map(|(id, _)| table.column_name(*id)).collect();
    let name = format!("{}_by_{}", table.name, names.join("_"));
    format!("CREATE INDEX {} ON {} ({})", name_sql(&name), name_sql(&table.name), keys_sql(table, keys))
}

fn create_of(sql: &str) -> Result<CreateIndex> {
    match parse(sql)? {
        Statement::CreateIndex(create) => Ok(*create),
        _ => Err(Error::internal("a proposal that is no index")),
    }
}

/// Entries that a row is written as.
fn entries_of(table: &TableDef) -> u64 {
    (table.families.len() + table.indexes.len()) as u64
}

fn served(before: &[u64], after: &[u64]) -> Vec<usize> {
    let less = before.iter().zip(after).enumerate().filter(|(_, (before, after))| after < before);
    less.map(|(at, _)| at + 1).collect()
}

/// Columns that an index would have to hold so that no row is fetched; `None` if there are none, or many.
fn included(table: &TableDef, output: &[Field], keys: &[Key]) -> Option<String> {
    let there = |id: &ColumnId| table.key.undoable().contains(id) || keys.iter().any(|(key, _)| key == id);
    let columns = output.iter().flat_map(|field| match field {
        Field::Column(id) => table.sources(*id),
        Field::Rowkey | Field::PrimaryRowkey => Vec::new(),
    });
    let columns: BTreeSet<ColumnId> = columns.filter(|id| !there(id)).collect();
    let names: Vec<String> = columns.iter().map(|id| name_sql(table.column_name(*id))).collect();
    (1..=INCLUDE_MAX).contains(&names.len()).then(|| names.join(", "))
}

/// The layout that begins with the columns a query compares, if it serves all queries better than the
/// table's own.
async fn layout(
    view: &View,
    tables: &[Arc<TableDef>],
    table: &TableDef,
    wanted: &[Wanted],
) -> Result<Option<Proposal>> {
    let scratch = Scratch::new(view, tables, None)?;
    let mut candidates = BTreeSet::new();
    for w in wanted {
        for (need, spec) in scratch.run(view, &w.query, &w.params).await?.scans {
            if spec.table.name != table.name {
                continue;
            }
            for mut keys in key_lists(table, &need)? {
                let rest = table.key.columns().into_iter().map(|id| (id, false));
                let rest: Vec<Key> = rest.filter(|(id, _)| keys.iter().all(|(key, _)| key != id)).collect();
                keys.extend(rest);
                if keys.iter().all(|(id, _)| !table.column(*id).nullable) {
                    candidates.insert(keys_sql(table, &keys));
                }
            }
        }
    }
    let before = reads(view, &scratch, wanted).await?;
    let mut best: Option<Proposal> = None;
    for keys in candidates {
        let create = create_of(&format!("CREATE INDEX i ON {} ({keys})", name_sql(&table.name)))?;
        let Ok(layout) = primary_layout(table, &create.keys) else { continue };
        let other = Scratch::new(view, tables, Some((table, layout)))?;
        let after = reads(view, &other, wanted).await?;
        if spares(&before, &after) && best.as_ref().is_none_or(|best| total(&after) < best.reads.1) {
            let writes = entries_of(table);
            best = Some(Proposal {
                sql: format!("ALTER TABLE {} REKEY ({keys})", name_sql(&table.name)),
                serves: served(&before, &after),
                reads: (total(&before), total(&after)),
                writes: (writes, writes),
            });
        }
    }
    Ok(best)
}
