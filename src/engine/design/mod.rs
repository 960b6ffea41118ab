//! Statements about the design of keys: what `design` knows, asked about the data.

mod keys;

use super::session::Session;
use super::{Outcome, show};
use crate::error::Result;
use crate::sql::Design;

/// Runs one.
pub fn run(session: &Session, statement: &Design) -> Result<Outcome> {
    let view = session.view()?;
    let rows = match statement {
        Design::DescribeKey { key, of } => keys::describe(&view, key.as_ref(), of)?,
        Design::Lint { .. } => show::rows_of(Vec::new())?,
    };
    session.table_outcome(statement.kind_name(), rows)
}
