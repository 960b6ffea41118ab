//! Keeps index entries in step with a row that changes.

use super::entry::{IndexEntry, entry_of};
use crate::error::{Kind, Result};
use crate::key::Rowkey;
use crate::schema::{IndexDef, IndexState, TableDef};
use crate::value::Value;

/// The change of one index.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct IndexChange {
    /// Entry to remove.
    pub delete: Option<Rowkey>,
    /// Entry to write.
    pub put: Option<IndexEntry>,
}

/// The change of `index` when the row under `rowkey` goes from `old` to `new` (`None`: absent).
/// An unchanged entry gives no change; one with only a new value is overwritten. A row older than the index has no
/// entry if it does not fit into the index: it can still be deleted, or changed into one that fits.
pub fn index_changes(
    table: &TableDef,
    index: &IndexDef,
    rowkey: &[u8],
    old: Option<&[Value]>,
    new: Option<&[Value]>,
) -> Result<IndexChange> {
    let entry = |row: Option<&[Value]>| match row {
        Some(row) => entry_of(table, index, row, rowkey),
        None => Ok(None),
    };
    let before = match entry(old) {
        Err(e) if e.kind() == Kind::Invalid && index.state != IndexState::Ready => None,
        before => before?,
    };
    Ok(match (before, entry(new)?) {
        (Some(old), Some(new)) if old == new => IndexChange::default(),
        (Some(old), Some(new)) if old.key == new.key => IndexChange { delete: None, put: Some(new) },
        (old, new) => IndexChange { delete: old.map(|e| e.key), put: new },
    })
}
