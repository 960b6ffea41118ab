//! ADVISE: finds indexes and layouts that would serve a set of queries better, by trying and measuring them.
//!
//! The tables (large ones as a sample) are copied once ([`ScratchDatabase`]). The columns that the heaviest queries
//! compare and sort by suggest keys; each candidate is tried on the copy, and the one that saves most reads
//! is proposed. The next one is measured on top of it, and so on, starting with the one that saved most
//! before, so few are tried twice.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::RecordBatch;
use sqlparser::ast::{BinaryOperator, Expr, Query};

use super::scratch::{ScratchDatabase, Tried, tables_of};
use crate::access::{IndexPart, Need, key_for};
use crate::engine::build;
use crate::engine::ddl::references::{refuse_if_set, refuse_without_key};
use crate::engine::ddl::{layout_warnings, primary_layout};
use crate::engine::outcome::Warning;
use crate::engine::show::{numbers, rows_of, text};
use crate::engine::view::StatementView;
use crate::error::{Error, Kind, Result, sqlstate};
use crate::key::ColumnId;
use crate::plan::Field;
use crate::schema::TableDef;
use crate::sql::visit::{visit_expressions, visit_expressions_mut};
use crate::sql::{CreateIndex, Statement, name_of, name_sql, parse, parse_query};
use crate::value::Value;

/// Indexes proposed (count), at most.
const INDEXES_MAX: usize = 4;
/// Indexes and layouts of a table tried (count), at most; the heaviest queries suggest first.
const TRIED_MAX: (usize, usize) = (60, 8);
/// A proposal must save this share of all reads; a query must make up `WORTH_A_LOOK` of them to suggest one.
const WORTH: f64 = 0.1;
const WORTH_A_LOOK: f64 = 0.01;
/// INCLUDE columns of a proposed index (count), at most.
const INCLUDE_MAX: usize = 4;

/// A query to be served.
struct WorkloadQuery {
    query: Query,
    params: Arc<[Value]>,
    /// The tables that it reads.
    tables: Vec<Arc<TableDef>>,
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
    /// What CREATE INDEX or REKEY would say.
    warnings: Vec<Warning>,
}

/// Proposals: indexes, each measured on top of those before it; then layouts, each on its own. Also gives
/// warnings about them.
pub async fn rows(view: &StatementView, queries: &[Query]) -> Result<(RecordBatch, Vec<Warning>)> {
    let wanted = wanted(view, queries)?;
    let all: Vec<&Query> = wanted.iter().map(|w| &w.query).collect();
    let tables = tables_of(view, &all);
    let scratch = ScratchDatabase::new(view, &tables)?;
    let mut tried = Vec::with_capacity(wanted.len());
    for w in &wanted {
        tried.push(scratch.run(view, &w.query, &w.params).await?);
    }
    let workload = Workload { view, wanted, before: tried.iter().map(|t| scratch.reads(t).all()).collect() };
    let mut layouts = Vec::new();
    for table in &tables {
        layouts.extend(workload.layout(&scratch, table, &tried).await?);
    }
    let mut proposals = workload.indexes(&scratch, &tried).await?;
    proposals.extend(layouts);
    let serves = |p: &Proposal| p.serves.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let column = |of: fn(&Proposal) -> u64| numbers(proposals.iter().map(|p| of(p) as i64).collect());
    let rows = rows_of(vec![
        ("serves_queries", text(proposals.iter().map(serves).collect())),
        ("reads_before", column(|p| p.reads.0)),
        ("reads_after", column(|p| p.reads.1)),
        ("writes_before", column(|p| p.writes.0)),
        ("writes_after", column(|p| p.writes.1)),
        ("proposal", text(proposals.iter().map(|p| p.sql.clone()).collect())),
    ])?;
    let of_proposal = |(n, proposal): (usize, Proposal)| {
        let said = move |w: Warning| Warning { what: format!("proposal {}: {}", n + 1, w.what), ..w };
        proposal.warnings.into_iter().map(said)
    };
    Ok((rows, proposals.into_iter().enumerate().flat_map(of_proposal).collect()))
}

/// The given queries, or those in the plan cache.
fn wanted(view: &StatementView, queries: &[Query]) -> Result<Vec<WorkloadQuery>> {
    let wanted = |query: Query, params| WorkloadQuery { tables: tables_of(view, &[&query]), query, params };
    if !queries.is_empty() {
        return Ok(queries.iter().map(|query| wanted(query.clone(), Arc::from([]))).collect());
    }
    let kept = view.db.plans().kept(view.catalog.identity()).into_iter();
    let known: Result<Vec<WorkloadQuery>> =
        kept.map(|(sql, plan)| Ok(wanted(parse_query(&sql)?, Arc::clone(&plan.params)))).collect();
    let known = known?;
    if known.is_empty() {
        return Err(Error::invalid("no query is known yet")
            .why("queries are known once they came twice since the database was opened")
            .hint("name them: ADVISE FOR (SELECT ...), (SELECT ...)")
            .state(sqlstate::OBJECT_STATE));
    }
    Ok(known)
}

/// A candidate index.
struct Candidate {
    sql: String,
    create: CreateIndex,
    /// Reads it saved when it was last tried; on top of others it will hardly save more.
    spares: u64,
}

impl Candidate {
    fn new(sql: String) -> Option<Candidate> {
        match parse(&sql) {
            Ok(Statement::CreateIndex(create)) => Some(Candidate { sql, create: *create, spares: u64::MAX }),
            _ => None,
        }
    }

    fn name(&self) -> String {
        self.create.name.as_ref().map_or_else(String::new, name_of)
    }
}

/// The queries, and what each reads without any advice.
struct Workload<'a> {
    view: &'a StatementView,
    wanted: Vec<WorkloadQuery>,
    before: Vec<u64>,
}

impl Workload<'_> {
    /// What each query reads after `table` has changed, if it read `before` until then.
    async fn reads(&self, scratch: &ScratchDatabase, table: &str, before: &[u64]) -> Result<Vec<u64>> {
        let mut reads = before.to_vec();
        for (w, reads) in self.wanted.iter().zip(&mut reads) {
            if w.tables.iter().any(|read| read.name == table) {
                *reads = scratch.reads(&scratch.run(self.view, &w.query, &w.params).await?).all();
            }
        }
        Ok(reads)
    }

    /// The queries worth a look and what they did, those that read most first.
    fn heavy<'t>(&'t self, tried: &'t [Tried]) -> Vec<(&'t WorkloadQuery, &'t Tried)> {
        let least = WORTH_A_LOOK * total(&self.before) as f64;
        let mut heavy: Vec<usize> = (0..tried.len()).filter(|at| self.before[*at] as f64 >= least).collect();
        heavy.sort_by_key(|at| std::cmp::Reverse(self.before[*at]));
        heavy.into_iter().map(|at| (&self.wanted[at], &tried[at])).collect()
    }

    fn candidates(&self, tried: &[Tried]) -> Vec<Candidate> {
        let mut found: Vec<String> = Vec::new();
        for (w, tried) in self.heavy(tried) {
            for access in &tried.accesses {
                let table = &access.spec.table;
                for keys in key_lists(table, &access.need) {
                    let sql = create_index(table, &keys);
                    let include = included(table, &access.need.output, &keys);
                    let covering = include.map(|columns| format!("{sql} INCLUDE ({columns})"));
                    found.extend(std::iter::once(sql).chain(covering));
                }
            }
            if let [table] = &w.tables[..] {
                found.extend(compared(&w.query).iter().map(|expr| create_formula_index(table, expr)));
            }
        }
        let mut seen = BTreeSet::new();
        found.retain(|sql| seen.insert(sql.clone()));
        found.truncate(TRIED_MAX.0);
        found.into_iter().filter_map(Candidate::new).collect()
    }

    /// Proposes, one by one, the index that saves most.
    async fn indexes(&self, scratch: &ScratchDatabase, tried: &[Tried]) -> Result<Vec<Proposal>> {
        let mut candidates = self.candidates(tried);
        let mut before = self.before.clone();
        let mut proposals: Vec<Proposal> = Vec::new();
        while proposals.len() < INDEXES_MAX {
            candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.spares));
            let mut best: Option<(usize, Vec<u64>)> = None;
            for (at, candidate) in candidates.iter_mut().enumerate() {
                let spared = best.as_ref().map_or(0, |(_, after)| total(&before) - total(after));
                if candidate.spares <= spared {
                    break;
                }
                let label = format!("trying {}", candidate.name());
                self.view.watch.step(&label, at as u64, None, "indexes")?;
                let after = self.with_index(scratch, candidate, &before).await?;
                candidate.spares =
                    after.as_ref().map_or(0, |after| total(&before).saturating_sub(total(after)));
                if let Some(after) = after.filter(|_| candidate.spares > spared) {
                    best = Some((at, after));
                }
            }
            let Some((at, after)) = best.filter(|(_, after)| spares(&before, after)) else { break };
            let Candidate { sql, create, .. } = candidates.remove(at);
            let writes = entries_of(&*scratch.db.catalog().table(&name_of(&create.table))?);
            proposals.push(Proposal {
                serves: served(&before, &after),
                reads: (total(&before), total(&after)),
                writes: (writes, writes + 1),
                warnings: build::create_index(&scratch.db, &create, &self.view.watch)?,
                sql,
            });
            before = after;
        }
        Ok(proposals)
    }

    /// What the queries read with one more index; `None` if it cannot be built.
    async fn with_index(
        &self,
        scratch: &ScratchDatabase,
        candidate: &Candidate,
        before: &[u64],
    ) -> Result<Option<Vec<u64>>> {
        match build::create_index(&scratch.db, &candidate.create, &self.view.watch) {
            // The name is taken, an expression is no formula, or a value is too long for a key.
            Err(e) if matches!(e.kind(), Kind::Invalid | Kind::Unsupported) => return Ok(None),
            built => built?,
        };
        let after = self.reads(scratch, &name_of(&candidate.create.table), before).await?;
        scratch.db.execute(&format!("DROP INDEX {}", name_sql(&candidate.name())))?;
        Ok(Some(after))
    }

    /// A layout that starts with the columns a query compares, if it serves all queries together better than
    /// the table's own.
    async fn layout(
        &self,
        scratch: &ScratchDatabase,
        table: &TableDef,
        tried: &[Tried],
    ) -> Result<Option<Proposal>> {
        let mut candidates: Vec<Vec<IndexPart>> = Vec::new();
        let accesses = self.heavy(tried).into_iter().flat_map(|(_, tried)| &tried.accesses);
        for access in accesses.filter(|access| access.spec.table.name == table.name) {
            for mut keys in key_lists(table, &access.need) {
                let rest = table.key.columns().into_iter().map(|id| (id, false));
                let rest: Vec<IndexPart> =
                    rest.filter(|(id, _)| keys.iter().all(|(key, _)| key != id)).collect();
                keys.extend(rest);
                if keys.iter().all(|(id, _)| !table.column(*id).nullable) && !candidates.contains(&keys) {
                    candidates.push(keys);
                }
            }
        }
        let mut best: Option<Proposal> = None;
        for keys in candidates.into_iter().take(TRIED_MAX.1) {
            let keys = keys_sql(table, &keys);
            let Some(create) =
                Candidate::new(format!("CREATE INDEX i ON {} ({keys})", name_sql(&table.name)))
            else {
                continue;
            };
            let Ok(layout) = primary_layout(table, &create.create.keys) else { continue };
            let next = TableDef { key: layout.clone(), ..table.clone() };
            let breaks = refuse_without_key(&self.view.catalog, table, &next, "").is_err();
            if breaks || refuse_if_set(table, &next).is_err() {
                continue;
            }
            let other = match scratch.with_layout(table, &layout, &self.view.watch) {
                // It cannot hold the rows.
                Err(e) if e.kind() == Kind::Invalid => continue,
                other => other?,
            };
            let after = match self.reads(&other, &table.name, &self.before).await {
                // A query names a rowkey of the other layout.
                Err(e) if e.kind() == Kind::Invalid => continue,
                after => after?,
            };
            if spares(&self.before, &after) && best.as_ref().is_none_or(|best| total(&after) < best.reads.1) {
                let writes = entries_of(table);
                best = Some(Proposal {
                    sql: format!("ALTER TABLE {} REKEY ({keys})", name_sql(&table.name)),
                    serves: served(&self.before, &after),
                    reads: (total(&self.before), total(&after)),
                    writes: (writes, writes),
                    warnings: layout_warnings(table, &layout),
                });
            }
        }
        Ok(best)
    }
}

fn total(reads: &[u64]) -> u64 {
    reads.iter().sum()
}

/// Are enough reads saved for a proposal?
fn spares(before: &[u64], after: &[u64]) -> bool {
    let (before, after) = (total(before), total(after));
    before > 0 && before.saturating_sub(after) as f64 >= WORTH * before as f64
}

/// Keys that would serve a scan: the columns it compares; those followed by the ones it sorts by.
fn key_lists(table: &TableDef, need: &Need) -> Vec<Vec<IndexPart>> {
    let Some(compared) = key_for(table, need) else { return Vec::new() };
    let mut lists = vec![compared.clone()];
    let sorted = need.order.iter().map(|by| match by.field {
        Field::Column(id) if table.column(id).formula.is_none() => Some((id, by.descending)),
        _ => None,
    });
    if let Some(sorted) = sorted.collect::<Option<Vec<IndexPart>>>() {
        let more: Vec<IndexPart> =
            sorted.into_iter().filter(|(id, _)| compared.iter().all(|(there, _)| there != id)).collect();
        if !more.is_empty() {
            lists.push([compared, more].concat());
        }
    }
    lists
}

/// Expressions, such as `upper(name)`, that a query of one table compares.
fn compared(query: &Query) -> Vec<Expr> {
    let mut found = Vec::new();
    let _: ControlFlow<()> = visit_expressions(query, |expr| {
        use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq};
        match expr {
            Expr::BinaryOp { left, op: Eq | Lt | LtEq | Gt | GtEq, right } => {
                found.extend([(**left).clone(), (**right).clone()]);
            }
            Expr::Like { expr, .. } | Expr::InList { expr, .. } | Expr::Between { expr, .. } => {
                found.push((**expr).clone());
            }
            _ => {}
        }
        ControlFlow::Continue(())
    });
    let is_computed = |expr: &Expr| {
        matches!(expr, Expr::Function(_) | Expr::BinaryOp { .. } | Expr::Nested(_))
            || matches!(expr, Expr::Trim { .. } | Expr::Substring { .. } | Expr::Cast { .. })
    };
    found.retain(is_computed);
    for expr in &mut found {
        // There is only one table, so column names need no qualifier.
        let _: ControlFlow<()> = visit_expressions_mut(expr, |inner| {
            if let Expr::CompoundIdentifier(parts) = inner
                && let Some(last) = parts.pop()
            {
                *inner = Expr::Identifier(last);
            }
            ControlFlow::Continue(())
        });
    }
    found
}

/// `a, b DESC`
fn keys_sql(table: &TableDef, keys: &[IndexPart]) -> String {
    let key = |(id, descending): &IndexPart| {
        format!("{}{}", name_sql(table.column_name(*id)), if *descending { " DESC" } else { "" })
    };
    keys.iter().map(key).collect::<Vec<_>>().join(", ")
}

fn create_index(table: &TableDef, keys: &[IndexPart]) -> String {
    let names: Vec<&str> = keys.iter().map(|(id, _)| table.column_name(*id)).collect();
    create(table, &names.join("_"), &keys_sql(table, keys))
}

/// An index on an expression, named after it: `people_by_upper_name`.
fn create_formula_index(table: &TableDef, expr: &Expr) -> String {
    let sql = expr.to_string();
    let words = sql.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    create(table, &words.collect::<Vec<_>>().join("_").to_lowercase(), &sql)
}

fn create(table: &TableDef, by: &str, keys: &str) -> String {
    let name = name_sql(&format!("{}_by_{by}", table.name));
    format!("CREATE INDEX {name} ON {} ({keys})", name_sql(&table.name))
}

/// Entries (count) written for each row.
fn entries_of(table: &TableDef) -> u64 {
    (table.families.len() + table.indexes.len()) as u64
}

fn served(before: &[u64], after: &[u64]) -> Vec<usize> {
    let less = before.iter().zip(after).enumerate().filter(|(_, (before, after))| after < before);
    less.map(|(at, _)| at + 1).collect()
}

/// INCLUDE columns that make an index covering; `None` if none are needed, or too many.
fn included(table: &TableDef, output: &[Field], keys: &[IndexPart]) -> Option<String> {
    let there = |id: &ColumnId| table.key.decodable().contains(id) || keys.iter().any(|(key, _)| key == id);
    let columns = output.iter().flat_map(|field| match field {
        Field::Column(id) => table.sources(*id),
        Field::Rowkey | Field::PrimaryRowkey => Vec::new(),
    });
    let columns: BTreeSet<ColumnId> = columns.filter(|id| !there(id)).collect();
    let names: Vec<String> = columns.iter().map(|id| name_sql(table.column_name(*id))).collect();
    (1..=INCLUDE_MAX).contains(&names.len()).then(|| names.join(", "))
}
