//! A change of a table's key layout in progress (ALTER TABLE REKEY).

use serde::{Deserialize, Serialize};

use super::index::{IndexDef, IndexState};
use super::table::TableDef;

/// What writes maintain besides the table during ALTER TABLE REKEY. No query reads it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rekey {
    /// The table as it will be: the same columns and names; layout, families and indexes in keyspaces of their own.
    pub next: TableDef,
    /// A UNIQUE index over the new layout, with the rowkey of each row in `next`. It is built first, and finds rows
    /// that would share a key. Its id identifies the whole REKEY.
    pub keys: IndexDef,
}

impl Rekey {
    /// The next table, once it is being filled: from then on every write goes there too.
    pub fn followed(&self) -> Option<&TableDef> {
        (self.keys.state == IndexState::Ready).then_some(&self.next)
    }
}
