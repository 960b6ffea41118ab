//! A table on its way to another key layout.

use serde::{Deserialize, Serialize};

use super::index::{IndexDef, IndexState};
use super::table::TableDef;

/// What ALTER TABLE REKEY has every write keep besides the table, and no query reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rekey {
    /// The table as it will be: the same columns and names; layout, families and index tables in keyspaces of
    /// their own.
    pub next: TableDef,
    /// Which row has which rowkey in `next`: a UNIQUE index over the new layout. It is built first, and finds
    /// rows that would share a key. Its id stands for the whole.
    pub keys: IndexDef,
}

impl Rekey {
    /// The new table, once it is being filled: from then on every write goes there, too.
    pub fn followed(&self) -> Option<&TableDef> {
        (self.keys.state == IndexState::Ready).then_some(&self.next)
    }
}
