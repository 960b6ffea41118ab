//! Lint rules about a table as a whole: its indexes, its families, its rows.

use super::fixes::parts_of;
use super::{Finding, LintRule, ROWS_ENOUGH, Severity, Subject, bytes, percent};
use crate::design::grouped;
use crate::design::splits::{suited, unreachable};
use crate::error::counted;
use crate::schema::{FamilyId, IndexDef, IndexState, Reference};
use crate::sql::name_sql;

/// Queries (count) that must be in the plan cache before an index is called unused.
const QUERIES_ENOUGH: usize = 3;
/// Share of the rows below which a family is sparse.
const SPARSE: f64 = 0.05;
/// Bytes of an average row, and of the largest one, from which rows are called wide.
const WIDE_MEAN: f64 = 16_384.0;
const WIDE_MAX: u64 = 1 << 20;
/// Regions are lumpy if the largest exceeds the average by this factor.
const LUMPY: f64 = 3.0;

pub(super) fn judge(s: &Subject<'_>) -> Vec<Finding> {
    let mut found = redundant_indexes(s);
    // A redundant index need not be called unused, too.
    let unused = unused_indexes(s).into_iter().filter(|unused| found.iter().all(|f| f.index != unused.index));
    let unused: Vec<Finding> = unused.collect();
    found.extend(unused);
    found.extend(unkeyed(s));
    found.extend(unindexed_references(s));
    found.extend(sparse_families(s));
    found.extend(wide_rows(s));
    found.extend(lumpy_regions(s));
    found
}

/// Indexes whose key is a prefix of another index's, or of the table's.
fn redundant_indexes(s: &Subject<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for index in
        s.table.indexes.iter().filter(|index| !index.unique && s.table.included(index).next().is_none())
    {
        let starts = |other: &[String]| other.starts_with(&parts_of(&index.layout));
        let by_other = s.table.indexes.iter().find(|other| {
            let same = parts_of(&other.layout) == parts_of(&index.layout);
            // Of two equal indexes, the younger is redundant.
            other.id != index.id
                && other.state == IndexState::Ready
                && other.filter_sql == index.filter_sql
                && starts(&parts_of(&other.layout))
                && (!same || other.id < index.id || s.table.included(other).next().is_some())
        });
        let key = parts_of(&s.table.key);
        let other = match by_other {
            Some(other) => format!("index \"{}\"", other.name),
            None if index.filter.is_none() && starts(&key) => format!("the rowkey of \"{}\"", s.table.name),
            None => continue,
        };
        let entries = s.facts.keyspace(index.keyspace).map_or(0, |counted| counted.entries);
        let seen = format!(
            "its key ({}) is how {other} begins; it has {}",
            index.layout.sql(),
            counted(grouped(entries), "entry")
        );
        let why = "whatever it finds the other one finds, and every write has to keep both";
        let subject = Subject { index: Some(index), ..*s };
        found.push(subject.finding(LintRule::RedundantIndex, seen, why, drop_index(index)));
    }
    found
}

/// A table whose rows are numbered as they come.
fn unkeyed(s: &Subject<'_>) -> Option<Finding> {
    s.table.row_number()?;
    let seen = "it has no PRIMARY KEY: its rows are numbered as they come".to_owned();
    let why = "without an index, each condition reads all of them";
    let is_filled = |index: &IndexDef| index.layout.columns().iter().all(|id| !s.table.column(*id).nullable);
    let mut keys = s.table.indexes.iter().filter(|index| index.unique && index.filter.is_none());
    let unique = keys.find(|index| is_filled(index));
    let counts = s.table.live_columns().find(|(_, column)| column.identity.is_some());
    let columns = counts.map(|(id, _)| vec![id]).or(unique.map(|index| index.layout.columns()));
    let table = name_sql(&s.table.name);
    let fix = match columns {
        Some(columns) => format!("ALTER TABLE {table} ADD PRIMARY KEY ({})", s.names(&columns)),
        None => format!("ALTER TABLE {table} ADD PRIMARY KEY (...), of columns that tell its rows apart"),
    };
    Some(s.finding(LintRule::Unkeyed, seen, why, fix))
}

/// Foreign keys that begin no key of the table.
fn unindexed_references(s: &Subject<'_>) -> Vec<Finding> {
    let unindexed = s.table.references.iter().filter(|reference| reference.path_in(s.table).is_none());
    let finding = |reference: &Reference| {
        let columns: Vec<String> =
            reference.columns.iter().map(|id| name_sql(s.table.column_name(*id))).collect();
        let columns = columns.join(", ");
        let seen = format!("no key begins with ({columns}), the foreign key \"{}\"", reference.name);
        let why = "a DELETE of rows that it refers to reads the whole table";
        let fix = format!("CREATE INDEX ON {} ({columns})", name_sql(&s.table.name));
        s.finding(LintRule::UnindexedReference, seen, why, fix)
    };
    unindexed.map(finding).collect()
}

fn drop_index(index: &IndexDef) -> String {
    format!("DROP INDEX {}", name_sql(&index.name))
}

/// Indexes that no query in the plan cache reads, and no foreign key.
fn unused_indexes(s: &Subject<'_>) -> Vec<Finding> {
    let queries = &s.facts.queries;
    if s.facts.known_queries() < QUERIES_ENOUGH {
        return Vec::new();
    }
    let is_read = |index: &IndexDef| {
        let finds_children =
            |of: &Reference| of.path_in(s.table).flatten().is_some_and(|path| path.id == index.id);
        queries.iter().any(|q| q.index == Some(index.id)) || s.table.references.iter().any(finds_children)
    };
    let unused = s.table.indexes.iter().filter(|index| !index.unique && !is_read(index));
    let finding = |index: &IndexDef| {
        let counted = s.facts.keyspace(index.keyspace);
        let size = counted.map_or(0, |counted| counted.key_bytes + counted.value_bytes);
        let seen = format!(
            "none of {} known queries reads it; it takes {}",
            s.facts.known_queries(),
            bytes(size as f64)
        );
        let why = "every write of a row writes its entry too";
        let subject = Subject { index: Some(index), ..*s };
        subject.finding(LintRule::UnusedIndex, seen, why, drop_index(index))
    };
    unused.map(finding).collect()
}

/// Families in which few rows have values.
fn sparse_families(s: &Subject<'_>) -> Vec<Finding> {
    let rows = s.facts.rows();
    if rows < 10 * ROWS_ENOUGH {
        return Vec::new();
    }
    let mut found = Vec::new();
    for id in s.table.family_ids().filter(|id| *id != FamilyId::DEFAULT) {
        let family = s.table.family(id);
        let entries = s.facts.keyspace(family.keyspace).map_or(0, |counted| counted.entries);
        let share = entries as f64 / rows as f64;
        let is_empty = s.table.live_columns().all(|(_, column)| column.family != id);
        if entries == 0 || share >= SPARSE || is_empty {
            continue;
        }
        let seen = format!(
            "family \"{}\" has {} for {} ({})",
            family.name,
            counted(grouped(entries), "entry"),
            counted(grouped(rows), "row"),
            percent(share)
        );
        let why =
            "regions are cut by the dense family, so the few entries of this one are spread over all of them";
        let fix = s.apart(id).unwrap_or_else(|| {
            format!("give the columns of {} a table of their own, with the same PRIMARY KEY", family.name)
        });
        found.push(s.finding(LintRule::SparseFamily, seen, why, fix));
    }
    found
}

/// Rows so large that a region holds few.
fn wide_rows(s: &Subject<'_>) -> Vec<Finding> {
    let families = || s.table.family_ids().filter_map(|id| s.facts.keyspace(s.table.family(id).keyspace));
    let total: u64 = families().map(|counted| counted.value_bytes).sum();
    let largest = families().map(|counted| counted.value_bytes_max).max().unwrap_or(0);
    let mean = total as f64 / s.facts.rows().max(1) as f64;
    if mean < WIDE_MEAN && largest < WIDE_MAX {
        return Vec::new();
    }
    let seen = format!("rows take {} on average, the largest {}", bytes(mean), bytes(largest as f64));
    let why = "a row is read and written whole, family by family, and regions are cut between rows only";
    let fix = "store more rows with fewer columns: make what repeats inside a row part of its key";
    let mut finding = s.finding(LintRule::WideRows, seen, why, fix.to_owned());
    finding.severity = if mean < WIDE_MEAN { Severity::Note } else { finding.severity };
    vec![finding]
}

/// Empty regions beside overfull ones: the split points do not fit the keys.
fn lumpy_regions(s: &Subject<'_>) -> Vec<Finding> {
    let n = s.table.splits.len() + 1;
    let Some(counted) = s.facts.keyspace(s.id()) else { return Vec::new() };
    if n == 1 {
        return Vec::new();
    }
    let average = s.facts.rows() as f64 / n as f64;
    let idle = unreachable(&s.table.key, &s.table.splits).len();
    let seen = match counted.regions.iter().enumerate().max_by_key(|(_, rows)| **rows) {
        Some((fullest, rows)) if average >= 20.0 => {
            let empty = n - counted.regions.iter().filter(|rows| **rows > 0).count();
            if empty == 0 && *rows as f64 <= LUMPY * average {
                return Vec::new();
            }
            format!(
                "{empty} of {n} regions are empty, and region {} holds {} of {} rows",
                fullest + 1,
                percent(*rows as f64 / s.facts.rows() as f64),
                grouped(s.facts.rows())
            )
        }
        _ if idle > 0 => format!("{idle} of {n} regions can hold no key"),
        _ => return Vec::new(),
    };
    let why =
        "a region without keys does no work, and one with many does it all: a split has to know the keys";
    let method = if suited(&s.table.key, n).is_some() { "" } else { " FROM DATA" };
    let fix = format!("ALTER TABLE {} SPLIT INTO {n}{method}", name_sql(&s.table.name));
    vec![s.finding(LintRule::LumpyRegions, seen, why, fix)]
}
