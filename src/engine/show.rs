//! SHOW, DESCRIBE and CHECK, and the SQL text of definitions.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{Array, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Schema;
use sqlparser::ast::Ident;

use super::references::{missing_parents, parent_of, reference_sql};
use super::view::StatementView;
use crate::catalog::{CATALOG_KEYSPACE, Catalog, Relation, index_of};
use crate::df::query::Planner;
use crate::error::{Error, Result, counted, sqlstate};
use crate::exec::check::{CheckDepth, Checker, Problem};
use crate::plan::{LikePattern, PLAIN_ESCAPE};
use crate::row::{Compression, field};
use crate::schema::{Column, FamilyId, Identity, IndexDef, IndexState, Reference, TableDef, ViewDef};
use crate::sql::{Check, CheckTarget, Show, name_of, name_sql, span_of_name};
use crate::value::{ColumnType, length_text};

/// SHOW.
pub fn show(view: &StatementView, what: &Show) -> Result<RecordBatch> {
    let catalog = &view.catalog;
    match what {
        Show::Tables { like } => {
            let is_wanted = names_like(like.as_deref())?;
            let reader = view.snapshot.reader()?;
            let mut names = Vec::new();
            let (mut keys, mut rows, mut indexes) = (Vec::new(), Vec::new(), Vec::new());
            for table in catalog.tables().filter(|table| is_wanted(&table.name)) {
                names.push(table.name.clone());
                keys.push(table.key.sql());
                rows.push(reader.entries(table.rows())? as i64);
                indexes.push(table.indexes.len() as i64);
            }
            rows_of(vec![
                ("table", text(names)),
                ("rowkey", text(keys)),
                ("rows", numbers(rows)),
                ("indexes", numbers(indexes)),
            ])
        }
        Show::Views => {
            let (names, queries) = catalog.views().map(|v| (v.name.clone(), v.sql.clone())).unzip();
            rows_of(vec![("view", text(names)), ("query", text(queries))])
        }
        Show::Snapshots => {
            let now = view.db.store().snapshot()?.version();
            let (names, since) = view
                .moments
                .iter()
                .map(|(name, moment)| (name.clone(), now.saturating_sub(moment.snapshot.version()) as i64))
                .unzip();
            rows_of(vec![("snapshot", text(names)), ("commits_since", numbers(since))])
        }
        Show::Functions { like } => functions(like.as_deref()),
        Show::Indexes { table } => indexes(view, table.as_ref()),
        Show::CreateTable { name } => {
            let statements = match catalog.find(&name_of(name)) {
                Some(Relation::Table(table)) => {
                    let mut statements = definitions(&table);
                    statements.extend(references_sql(catalog, &table));
                    statements
                }
                Some(Relation::Index(table, id)) => vec![create_index_sql(&table, index_of(&table, id)?)],
                Some(Relation::View(view)) => vec![create_view_sql(&view)],
                None => return Err(catalog.unknown(&name_of(name)).at(span_of_name(name))),
            };
            rows_of(vec![("name", text(vec![name_of(name)])), ("sql", text(vec![statements.join(";\n")]))])
        }
        Show::Columns { name } => describe(view, name),
        Show::Statistics { name } => statistics(view, name),
        Show::Settings => view.settings.show_all(),
        Show::Setting { name } => view.settings.show(name),
        Show::Regions { name } => super::design::regions::show(view, name),
        Show::Traffic { name } => super::design::traffic::show(view, name),
    }
}

/// Whether a name matches the pattern of a SHOW, in any case.
fn names_like(like: Option<&str>) -> Result<impl Fn(&str) -> bool> {
    let pattern = like.map(|like| LikePattern::new(like, Some(PLAIN_ESCAPE))).transpose()?;
    Ok(move |name: &str| pattern.as_ref().is_none_or(|pattern| pattern.matches(name, true)))
}

/// SHOW FUNCTIONS: those whose names match a pattern.
fn functions(like: Option<&str>) -> Result<RecordBatch> {
    let is_wanted = names_like(like)?;
    let mut all = Planner::shared().functions();
    all.retain(|function| is_wanted(&function.name));
    let mut rows = TextTable::new(["function", "kind", "call", "gives"]);
    all.into_iter().for_each(|f| rows.row([f.name, f.kind.to_owned(), f.call, f.gives]));
    rows.finish()
}

fn indexes(view: &StatementView, table: Option<&Ident>) -> Result<RecordBatch> {
    let catalog = &view.catalog;
    let only = table.map(|name| view.table(name)).transpose()?;
    let reader = view.snapshot.reader()?;
    let (mut names, mut tables, mut keys, mut includes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut filters, mut unique, mut states, mut entries) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for table in catalog.tables().filter(|t| only.as_ref().is_none_or(|o| o.id == t.id)) {
        for index in &table.indexes {
            names.push(index.name.clone());
            tables.push(table.name.clone());
            keys.push(index.layout.sql());
            includes
                .push(table.included(index).map(|id| table.column_name(id)).collect::<Vec<_>>().join(", "));
            filters.push(index.filter_sql.clone().unwrap_or_default());
            unique.push(if index.unique { "yes" } else { "no" }.to_owned());
            states.push(index.state.name().to_owned());
            entries.push(reader.entries(index.keyspace)? as i64);
        }
    }
    rows_of(vec![
        ("index", text(names)),
        ("table", text(tables)),
        ("key", text(keys)),
        ("include", text(includes)),
        ("where", text(filters)),
        ("unique", text(unique)),
        ("state", text(states)),
        ("entries", numbers(entries)),
    ])
}

/// SHOW STATISTICS: a row for each column, then one for each prefix of a key.
fn statistics(view: &StatementView, name: &Ident) -> Result<RecordBatch> {
    let table = view.table(name)?;
    let Some(found) = view.catalog.statistics(table.id) else {
        return Err(Error::invalid(format!("there are no statistics of \"{}\"", table.name))
            .hint(format!("ANALYZE {} collects them", name_sql(&table.name)))
            .state(sqlstate::OBJECT_STATE));
    };
    let mut rows = TextTable::new(["of", "nulls", "distinct", "most_common", "histogram"]);
    rows.row(["rows".into(), String::new(), found.rows.to_string(), String::new(), String::new()]);
    let percent = |share: f64| format!("{:.1}%", share * 100.0);
    for (id, column) in found.columns.iter().filter(|(id, _)| !table.column(*id).dropped) {
        let common =
            column.common.iter().take(5).map(|(value, share)| format!("{value} ({})", percent(*share)));
        let bounds = match &column.bounds[..] {
            [] => String::new(),
            [only] => only.to_string(),
            [first, .., last] => format!("{first} .. {last} in {} parts", column.bounds.len() - 1),
        };
        let common = common.collect::<Vec<_>>().join(", ");
        let distinct = format!("{:.0}", column.distinct);
        rows.row([table.column_name(*id).to_owned(), percent(column.nulls), distinct, common, bounds]);
    }
    let indexes = table.indexes.iter().map(|index| (&index.name, index.keyspace, &index.layout));
    for (name, keyspace, layout) in std::iter::once((&table.name, table.rows(), &table.key)).chain(indexes) {
        for n in 1..=layout.parts().len() {
            let Some(distinct) = found.prefixes(keyspace, n) else { continue };
            let parts: Vec<&str> = layout.parts()[..n].iter().map(|part| part.sql()).collect();
            let what = format!("{name} ({})", parts.join(", "));
            rows.row([what, String::new(), distinct.to_string(), String::new(), String::new()]);
        }
    }
    rows.finish()
}

/// DESCRIBE: the columns, then the layout with a sample key.
pub fn describe(view: &StatementView, name: &Ident) -> Result<RecordBatch> {
    match view.catalog.find(&name_of(name)) {
        Some(Relation::Table(table)) => describe_table(view, &table),
        Some(Relation::Index(table, id)) => describe_index(view, &table, index_of(&table, id)?),
        Some(Relation::View(v)) => {
            let schema = view.view_schema(&v)?;
            let names = schema.fields().iter().map(|f| f.name().clone()).collect();
            let types = schema.fields().iter().map(|field| crate::row::type_name(field));
            rows_of(vec![("column", text(names)), ("type", text(types.collect()))])
        }
        None => Err(view.catalog.unknown(&name_of(name)).at(span_of_name(name))),
    }
}

fn describe_table(view: &StatementView, table: &TableDef) -> Result<RecordBatch> {
    let mut rows = Description::new();
    for (id, column) in table.live_columns() {
        let key = if table.is_key_column(id) { "key" } else { "" };
        let family =
            if table.families.len() > 1 { table.family(column.family).name.clone() } else { String::new() };
        rows.push(&column.name, &type_of(column), &attributes(column, &family), key);
    }
    let sample = view.first_key(table.rows())?.map(|key| table.key.show(&key)).unwrap_or_default();
    rows.push("rowkey", &table.key.sql(), &format!("e.g. {sample}"), "layout");
    for index in &table.indexes {
        let attributes = format!("{}{}", index.state.name(), attributes_of_index(table, index));
        rows.push(&index.name, &index.layout.sql(), &attributes, "index");
    }
    for check in &table.checks {
        rows.push(&check.name, &check.sql, "", "check");
    }
    for reference in &table.references {
        let sql = reference_sql(table, reference, parent_of(view, reference)?);
        rows.push(&reference.name, &sql, "", "foreign key");
    }
    let of_others = view.catalog.references_to(table.id).iter().filter(|of| of.child.id != table.id);
    for referrer in of_others {
        let (child, reference) = (&referrer.child, referrer.reference());
        let sql = reference_sql(child, reference, table);
        rows.push(&reference.name, &sql, &format!("of {}", child.name), "referred to");
    }
    for (name, value) in options(table) {
        rows.push(name, &value, "", "option");
    }
    if let Some(rekey) = &table.rekey {
        rows.push("rowkey", &rekey.next.key.sql(), IndexState::Building.name(), "next layout");
    }
    rows.finish()
}

fn describe_index(view: &StatementView, table: &TableDef, index: &IndexDef) -> Result<RecordBatch> {
    let mut rows = Description::new();
    for id in index.layout.columns() {
        rows.push(table.column_name(id), &type_of(table.column(id)), "", "key");
    }
    for id in table.included(index) {
        rows.push(table.column_name(id), &type_of(table.column(id)), "", "include");
    }
    rows.push("primary_rowkey", &table.key.sql(), &format!("of {}", table.name), "pointer");
    let sample = match view.first_key(index.keyspace)? {
        Some(key) => index.layout.len_in(&key).map(|n| index.layout.show(&key[..n])).unwrap_or_default(),
        None => String::new(),
    };
    rows.push("rowkey", &index.layout.sql(), &format!("e.g. {sample}"), "layout");
    if index.unique {
        rows.push("unique", "yes", "", "option");
    }
    if let Some(filter) = &index.filter_sql {
        rows.push("where", filter, "", "option");
    }
    rows.finish()
}

/// Problems (count) that CHECK lists without a LIMIT: they are kept in memory, and compared with each other.
const PROBLEMS_MAX: usize = 10_000;

/// CHECK: a row for each problem, then a summary. Also gives the number of problems.
pub fn check(view: &StatementView, check: &Check) -> Result<(u64, RecordBatch)> {
    let started = std::time::Instant::now();
    let catalog = &view.catalog;
    let depth = if check.fast { CheckDepth::Fast } else { CheckDepth::Full };
    let limit = check.limit.map_or(PROBLEMS_MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
    let mut checker = Checker::new(&*view.snapshot, &view.watch, limit)?;
    match &check.target {
        CheckTarget::Table(name) => {
            let table = catalog.table(&name_of(name)).map_err(|e| e.at(span_of_name(name)))?;
            checker.table(&table, &table.indexes.iter().collect::<Vec<_>>(), depth)?;
            table.past().map_or(Ok(()), |past| checker.table(past, &[], depth))?;
        }
        CheckTarget::Index(name) => {
            let (table, index) = catalog.index(&name_of(name)).map_err(|e| e.at(span_of_name(name)))?;
            checker.table(&table, &[&index], depth)?;
        }
        CheckTarget::Database => {
            checker.definitions(CATALOG_KEYSPACE, |e| catalog.damaged_statistics(e))?;
            for table in catalog.tables() {
                checker.table(table, &table.indexes.iter().collect::<Vec<_>>(), depth)?;
                table.past().map_or(Ok(()), |past| checker.table(past, &[], depth))?;
            }
        }
    }
    let mut report = checker.finish();
    if depth == CheckDepth::Full {
        let tables = match &check.target {
            CheckTarget::Table(name) => vec![view.table(name)?],
            CheckTarget::Index(_) => Vec::new(),
            CheckTarget::Database => catalog.tables().cloned().collect(),
        };
        for table in tables {
            let left = limit - report.problems.len().min(limit);
            report.problems.extend(missing_parents(view, &table, left)?);
            report.complete &= report.problems.len() < limit;
        }
    }
    let found = report.problems.len();
    let summary = Problem {
        problem: "summary",
        detail: format!(
            "{}, {} and {} checked in {:.1} s{}",
            counted(found, "problem"),
            counted(report.rows, "row"),
            counted(report.entries, "index entry"),
            started.elapsed().as_secs_f64(),
            if report.complete { "" } else { ", stopped at the limit" },
        ),
        ..Problem::default()
    };
    Ok((found as u64, problem_rows(report.problems.into_iter().chain([summary]))?))
}

/// Problems as rows.
pub(super) fn problem_rows(problems: impl Iterator<Item = Problem>) -> Result<RecordBatch> {
    let mut rows = TextTable::new([
        "problem",
        "table",
        "index",
        "primary_key",
        "index_key",
        "column",
        "table_value",
        "index_value",
        "detail",
    ]);
    for Problem { problem, table, index, primary_key, index_key, column, table_value, index_value, detail } in
        problems
    {
        let problem = problem.to_owned();
        rows.row([problem, table, index, primary_key, index_key, column, table_value, index_value, detail]);
    }
    rows.finish()
}

struct Description(TextTable<4>);

impl Description {
    fn new() -> Description {
        Description(TextTable::new(["column", "type", "attributes", "role"]))
    }

    fn push(&mut self, name: &str, ty: &str, attributes: &str, role: &str) {
        let attributes = if attributes == "e.g. " { "" } else { attributes };
        self.0.row([name, ty, attributes, role].map(str::to_owned));
    }

    fn finish(self) -> Result<RecordBatch> {
        self.0.finish()
    }
}

fn attributes(column: &Column, family: &str) -> String {
    let mut out = Vec::new();
    if !column.nullable {
        out.push("NOT NULL".to_owned());
    }
    if let Some(default) = &column.default {
        out.push(format!("DEFAULT {default}"));
    }
    if let Some(identity) = &column.identity {
        out.push(format!("GENERATED {} AS IDENTITY", if identity.always { "ALWAYS" } else { "BY DEFAULT" }));
    }
    if !family.is_empty() {
        out.push(format!("FAMILY {family}"));
    }
    out.join(" ")
}

/// What sets an index apart, behind its state: `, UNIQUE INCLUDE (a, b) WHERE c > 1`.
fn attributes_of_index(table: &TableDef, index: &IndexDef) -> String {
    let unique = if index.unique { " UNIQUE" } else { "" };
    match format!("{unique}{}", clauses_of_index(table, index)) {
        none if none.is_empty() => none,
        clauses => format!(",{clauses}"),
    }
}

/// The statements that make a table and its indexes.
pub fn definitions(table: &TableDef) -> Vec<String> {
    let indexes = table.indexes.iter().map(|index| create_index_sql(table, index));
    std::iter::once(create_table_sql(table)).chain(indexes).collect()
}

/// The statements that add a table's foreign keys: they come behind the tables and the UNIQUE indexes that they refer to.
pub fn references_sql(catalog: &Catalog, table: &TableDef) -> Vec<String> {
    referred_tables(catalog, table)
        .map(|(reference, parent)| add_reference_sql(table, reference, parent))
        .collect()
}

/// A table's foreign keys, and the tables that they refer to.
pub fn referred_tables<'c>(
    catalog: &'c Catalog,
    table: &'c TableDef,
) -> impl Iterator<Item = (&'c Reference, &'c TableDef)> {
    table.references.iter().filter_map(|of| Some((of, &**catalog.table_by_id(of.parent)?)))
}

/// `ALTER TABLE t ADD CONSTRAINT k FOREIGN KEY ..`
pub fn add_reference_sql(table: &TableDef, reference: &Reference, parent: &TableDef) -> String {
    let (name, sql) = (name_sql(&reference.name), reference_sql(table, reference, parent));
    format!("ALTER TABLE {} ADD CONSTRAINT {name} {sql}", name_sql(&table.name))
}

/// A column's type as it was declared, with its length.
fn type_of(column: &Column) -> String {
    match (column.ty, column.max_len) {
        (ColumnType::Varchar, Some(n)) => format!("VARCHAR({n})"),
        (ColumnType::Varbinary, Some(n)) => format!("VARBINARY({n})"),
        (ty, _) => ty.sql_name(),
    }
}

/// The CREATE TABLE statement of a table, without its indexes.
pub fn create_table_sql(table: &TableDef) -> String {
    let mut elements: Vec<String> = table.live_columns().map(|(_, column)| column_sql(column)).collect();
    elements.extend(
        table
            .checks
            .iter()
            .map(|check| format!("CONSTRAINT {} CHECK ({})", name_sql(&check.name), check.sql)),
    );
    elements.extend(table.family_ids().filter_map(|id| family_sql(table, id)));
    elements.extend(table.row_number().is_none().then(|| format!("PRIMARY KEY ({})", table.key.sql())));
    let mut out = format!("CREATE TABLE {} (\n  {}\n)", name_sql(&table.name), elements.join(",\n  "));
    let options: Vec<String> = options(table)
        .map(|(name, value)| match name {
            "ttl" => format!("ttl = '{value}'"),
            name => format!("{name} = {value}"),
        })
        .collect();
    if !options.is_empty() {
        let _ = write!(out, " WITH ({})", options.join(", "));
    }
    if !table.splits.is_empty() {
        let points: Vec<String> =
            table.splits.iter().map(|key| super::design::regions::literal(table, key)).collect();
        let _ = write!(out, " SPLIT ON ({})", points.join(", "));
    }
    out
}

/// The declaration of a column.
fn column_sql(column: &Column) -> String {
    let mut out = format!("{} {}", name_sql(&column.name), type_of(column));
    if !column.nullable && column.identity.is_none() {
        out.push_str(" NOT NULL");
    }
    if let Some(default) = &column.default {
        let _ = write!(out, " DEFAULT {default}");
    }
    if let Some(Identity { always, start, increment }) = column.identity {
        let kind = if always { "ALWAYS" } else { "BY DEFAULT" };
        let _ = write!(out, " GENERATED {kind} AS IDENTITY (START WITH {start} INCREMENT BY {increment})");
    }
    out
}

/// The declaration of a family, unless it is as it would be without one.
fn family_sql(table: &TableDef, id: FamilyId) -> Option<String> {
    let family = table.family(id);
    if id == FamilyId::DEFAULT && family.compression == Compression::None {
        return None;
    }
    let members = table.live_columns().filter(|(_, column)| column.family == id);
    let members: Vec<String> = members.map(|(_, column)| name_sql(&column.name)).collect();
    let with = match family.compression {
        Compression::Lz4 => " WITH (compression = 'lz4')",
        Compression::None => "",
    };
    Some(format!("FAMILY {} ({}){with}", name_sql(&family.name), members.join(", ")))
}

/// The options of a table and their values.
fn options(table: &TableDef) -> impl Iterator<Item = (&'static str, String)> {
    let ttl = table.ttl_us.map(|ttl_us| ("ttl", length_text(ttl_us)));
    let versions = table.history.as_ref().map(|history| ("versions", history.versions.to_string()));
    ttl.into_iter().chain(versions)
}

/// The CREATE VIEW statement of a view.
pub fn create_view_sql(view: &ViewDef) -> String {
    let columns: Vec<String> = view.columns.iter().map(|name| name_sql(name)).collect();
    let columns = if columns.is_empty() { String::new() } else { format!(" ({})", columns.join(", ")) };
    format!("CREATE VIEW {}{columns} AS {}", name_sql(&view.name), view.sql)
}

/// The CREATE INDEX statement of an index.
pub fn create_index_sql(table: &TableDef, index: &IndexDef) -> String {
    let unique = if index.unique { "UNIQUE " } else { "" };
    format!(
        "CREATE {unique}INDEX {} ON {} ({}){}",
        name_sql(&index.name),
        name_sql(&table.name),
        index.layout.sql(),
        clauses_of_index(table, index)
    )
}

/// ` INCLUDE (a, b) WHERE c > 1`
fn clauses_of_index(table: &TableDef, index: &IndexDef) -> String {
    let mut out = String::new();
    let names: Vec<String> =
        table.declared(index).into_iter().map(|id| name_sql(table.column_name(id))).collect();
    if !names.is_empty() {
        let _ = write!(out, " INCLUDE ({})", names.join(", "));
    }
    if let Some(filter) = &index.filter_sql {
        let _ = write!(out, " WHERE {filter}");
    }
    out
}

/// A table of texts, made row by row.
pub(super) struct TextTable<const N: usize> {
    names: [&'static str; N],
    columns: [Vec<String>; N],
}

impl<const N: usize> TextTable<N> {
    pub(super) fn new(names: [&'static str; N]) -> TextTable<N> {
        TextTable { names, columns: std::array::from_fn(|_| Vec::new()) }
    }

    pub(super) fn row(&mut self, cells: [String; N]) {
        self.columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(cell));
    }

    pub(super) fn finish(self) -> Result<RecordBatch> {
        rows_of(self.names.into_iter().zip(self.columns.map(text)).collect())
    }
}

pub(super) enum ShowColumn {
    Text(Vec<String>),
    Numbers(Vec<i64>),
    /// This many numbers, all unknown.
    Unknown(usize),
    Doubles(Vec<f64>),
}

pub(super) fn text(values: Vec<String>) -> ShowColumn {
    ShowColumn::Text(values)
}

pub(super) fn numbers(values: Vec<i64>) -> ShowColumn {
    ShowColumn::Numbers(values)
}

pub(super) fn rows_of(columns: Vec<(&str, ShowColumn)>) -> Result<RecordBatch> {
    let mut fields = Vec::with_capacity(columns.len());
    let mut arrays: Vec<Arc<dyn Array>> = Vec::with_capacity(columns.len());
    for (name, cells) in columns {
        match cells {
            ShowColumn::Text(values) => {
                fields.push(field(name, ColumnType::Varchar, false));
                arrays.push(Arc::new(StringArray::from(values)));
            }
            ShowColumn::Numbers(values) => {
                fields.push(field(name, ColumnType::BigInt, false));
                arrays.push(Arc::new(Int64Array::from(values)));
            }
            ShowColumn::Unknown(n) => {
                fields.push(field(name, ColumnType::BigInt, true));
                arrays.push(Arc::new(Int64Array::new_null(n)));
            }
            ShowColumn::Doubles(values) => {
                fields.push(field(name, ColumnType::Double, false));
                arrays.push(Arc::new(Float64Array::from(values)));
            }
        }
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        .map_err(|e| Error::internal("rows do not make a table").caused_by(e))
}
