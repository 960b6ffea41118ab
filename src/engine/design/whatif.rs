//! EXPLAIN WHATIF: a query's plan and reads with one more index, or with another layout.

use std::sync::Arc;

use arrow::array::RecordBatch;
use sqlparser::ast::{Ident, Query};

use super::scratch::{ScratchDatabase, Tried, tables_of};
use crate::design::grouped;
use crate::engine::build;
use crate::engine::ddl::primary_layout;
use crate::engine::show::{rows_of, text};
use crate::engine::view::StatementView;
use crate::error::{Error, Result, counted, sqlstate};
use crate::schema::TableDef;
use crate::sql::{CreateIndex, HypotheticalChange, span_of_name};

/// The plan as it is and as it would be, with what each reads.
pub async fn rows(view: &StatementView, change: &HypotheticalChange, query: &Query) -> Result<RecordBatch> {
    let tables = tables_of(view, &[query]);
    let table = changed(view, change, &tables)?;
    let now = ScratchDatabase::new(view, &tables)?;
    let before = now.run(view, query, &[]).await?;
    let (then, after) = match change.layout {
        true => {
            let layout = primary_layout(&table, &change.keys)?;
            // Both runs use the same sample.
            let then = now.with_layout(&table, &layout, &view.watch)?;
            let after = then.run(view, query, &[]).await?;
            (then, after)
        }
        false => {
            let catalog = now.db.catalog();
            let mut names = std::iter::once("whatif".to_owned()).chain((2..).map(|n| format!("whatif{n}")));
            let name = names.find(|name| catalog.find(name).is_none());
            build::create_index(&now.db, &create(change, &table, name), &view.watch)?;
            let after = now.run(view, query, &[]).await?;
            (now, after)
        }
    };
    let mut lines = vec![format!("now: {}", said(&then, &before))];
    lines.extend(before.lines.iter().map(|line| format!("  {line}")));
    lines.push(format!("with {change}: {}", said(&then, &after)));
    lines.extend(after.lines.iter().map(|line| format!("  {line}")));
    if then.every() > 1 {
        lines.push(format!("estimated from one row in {}: the plans count those", grouped(then.every())));
    }
    rows_of(vec![("plan", text(lines))])
}

fn said(scratch: &ScratchDatabase, tried: &Tried) -> String {
    let about = if scratch.every() > 1 { "about " } else { "" };
    let reads = scratch.reads(tried);
    format!(
        "{about}{}, {}",
        counted(grouped(reads.entries), "entry"),
        counted(grouped(reads.gets + reads.fetched), "GET")
    )
}

/// The table to change: the one named, or the only one the query reads.
fn changed(
    view: &StatementView,
    change: &HypotheticalChange,
    tables: &[Arc<TableDef>],
) -> Result<Arc<TableDef>> {
    let Some(name) = &change.table else {
        return match tables {
            [only] => Ok(Arc::clone(only)),
            _ => Err(Error::invalid(format!("the query reads {} tables", tables.len()))
                .hint("say which one changes: INDEX ON t (...), LAYOUT OF t (...)")
                .state(sqlstate::SYNTAX)),
        };
    };
    let table = view.table(name)?;
    match tables.iter().any(|read| read.id == table.id) {
        true => Ok(table),
        false => Err(Error::invalid(format!("the query does not read \"{}\"", table.name))
            .hint("name a table that it reads")
            .at(span_of_name(name))),
    }
}

/// The change as a CREATE INDEX statement.
fn create(change: &HypotheticalChange, table: &TableDef, name: Option<String>) -> CreateIndex {
    CreateIndex {
        unique: false,
        if_not_exists: false,
        name: name.map(Ident::new),
        table: Ident::with_quote('"', table.name.clone()),
        keys: change.keys.clone(),
        include: change.include.clone(),
        filter: None,
        filter_sql: None,
    }
}
