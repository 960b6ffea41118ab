//! Statements about key design: runs the analyses of [`crate::design`] on the data.

mod advise;
mod heatmap;
mod keys;
mod measure;
pub mod regions;
mod scratch;
mod simulate;
pub mod traffic;
mod whatif;

use arrow::array::RecordBatch;
use sqlparser::ast::Ident;

use super::Outcome;
use super::session::Session;
use super::show::TextTable;
use super::view::StatementView;
use crate::design::lint::{Finding, lint};
use crate::error::Result;
use crate::sql::Design;

/// Runs a design statement.
pub async fn run(session: &Session, statement: &Design) -> Result<Outcome> {
    let view = session.view()?;
    let mut warnings = Vec::new();
    let rows = match statement {
        Design::DescribeKey { key, of } => keys::describe(&view, key.as_ref(), of)?,
        Design::Lint { table } => lint_rows(&view, table.as_ref())?,
        Design::Simulate(wanted) => {
            let (rows, found) = simulate::rows(&view, wanted).await?;
            warnings = found;
            rows
        }
        Design::WhatIf { change, query } => whatif::rows(&view, change, query).await?,
        Design::Advise { queries } => {
            let (rows, found) = advise::rows(&view, queries).await?;
            warnings = found;
            rows
        }
    };
    Ok(Outcome { warnings, ..session.table_outcome(statement.kind_name(), rows)? })
}

/// LINT: a row for each finding, the worst first.
fn lint_rows(view: &StatementView, table: Option<&Ident>) -> Result<RecordBatch> {
    let tables = match table {
        Some(name) => vec![view.table(name)?],
        None => view.catalog.tables().cloned().collect(),
    };
    let mut found = Vec::new();
    for table in tables {
        found.extend(lint(&table, &measure::facts(view, &table)?));
    }
    found.sort_by_key(|finding| finding.severity);
    let mut rows = TextTable::new(["code", "severity", "table", "index", "seen", "why", "fix"]);
    for Finding { rule, severity, table, index, seen, why, fix } in found {
        rows.row([rule.code(), severity.name().to_owned(), table, index, seen, why, fix]);
    }
    rows.finish()
}
