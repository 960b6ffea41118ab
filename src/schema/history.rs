//! Old versions of rows: `WITH (versions = 3)`.
//!
//! Ended versions are stored in a table of their own. It has the columns of the original table under the same ids
//! and, no longer hidden, the times when each version was written and when it ended. Its rowkeys are those of the
//! original table followed by the time of writing, newest first. So a condition on key columns is a range in both
//! tables, and everything that reads a table can read its history.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::table::{TableDef, TableId};
use super::traffic::Traffic;
use crate::key::{ColumnId, KeyLayout, Tail};
use crate::store::KeyspaceId;
use crate::value::ColumnType;

/// How a table keeps versions of its rows.
#[derive(Debug, Serialize, Deserialize)]
pub struct History {
    /// Versions kept of each row (count), including the current one.
    pub versions: u32,
    /// When a version ended: TIMESTAMPTZ, hidden, and NULL in the table itself.
    pub ended_at: ColumnId,
    /// Identity of the table of versions that have ended.
    pub id: TableId,
    /// The keyspaces of its families.
    pub keyspaces: Vec<KeyspaceId>,
    /// The layout of its rowkeys.
    pub key: KeyLayout,
    /// The definition of that table, made on first use. It belongs to one definition: clones do not copy it.
    #[serde(skip)]
    pub table: OnceLock<Arc<TableDef>>,
}

impl Clone for History {
    fn clone(&self) -> History {
        let History { versions, ended_at, id, keyspaces, key, .. } = self;
        let (keyspaces, key) = (keyspaces.clone(), key.clone());
        History { versions: *versions, ended_at: *ended_at, id: *id, keyspaces, key, table: OnceLock::new() }
    }
}

impl PartialEq for History {
    fn eq(&self, other: &History) -> bool {
        let parts = |h: &History| (h.versions, h.ended_at, h.id);
        parts(self) == parts(other) && self.keyspaces == other.keyspaces && self.key == other.key
    }
}

impl TableDef {
    /// The table of ended versions, if any are kept.
    pub fn past(&self) -> Option<&Arc<TableDef>> {
        let history = self.history.as_ref()?;
        Some(history.table.get_or_init(|| Arc::new(self.past_of(history))))
    }

    fn past_of(&self, history: &History) -> TableDef {
        let mut families = self.families.clone();
        families.iter_mut().zip(&history.keyspaces).for_each(|(family, of)| family.keyspace = *of);
        let mut columns = self.columns.clone();
        for column in &mut columns {
            // The times are shown, a row's number is not.
            column.hidden &= column.identity.is_some();
            column.dropped |= column.formula.is_some();
            (column.default, column.identity) = (None, None);
            // A column that is NOT NULL now may have been nullable before.
            column.nullable = true;
        }
        for id in history.key.columns() {
            columns[usize::from(id.0)].nullable = false;
        }
        TableDef {
            id: history.id,
            name: format!("versions of {}", self.name),
            columns,
            families,
            key: history.key.clone(),
            checks: Vec::new(),
            references: Vec::new(),
            indexes: Vec::new(),
            written_at: self.written_at,
            ttl_us: self.ttl_us,
            history: None,
            splits: Vec::new(),
            rekey: None,
            is_past: true,
            traffic: Traffic::default(),
        }
    }

    /// What is inconsistent in its history, if anything.
    pub(super) fn flaw_of_history(&self) -> Option<String> {
        let history = self.history.as_ref()?;
        let ty = |id: ColumnId| self.columns.get(usize::from(id.0)).map(|column| column.ty);
        let last = history.key.parts().last();
        let is_sound = ty(history.ended_at) == Some(ColumnType::TimestampTz)
            && history.keyspaces.len() == self.families.len()
            && history.key.is_sound(&ty, Tail::Nothing)
            && last.is_some_and(|part| {
                part.columns().first() == self.written_at.as_ref() && part.facts().width.is_some()
            });
        if is_sound { self.past()?.flaw() } else { Some("its versions make no sense".to_owned()) }
    }
}
