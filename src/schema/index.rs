//! An index table: it has its own key layout, and its entries point at primary rowkeys.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::key::{ColumnId, KeyLayout, KeyPart};
use crate::plan::{Field, LayoutRole, Predicate};
use crate::store::KeyspaceId;

/// Identity of an index; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IndexId(pub u32);

/// Whether queries may use an index (after the FDB Record Layer's index states).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IndexState {
    /// Maintained by every write, but not read by queries: existing rows are still being added.
    Building,
    /// Maintained and read.
    Ready,
    /// Found to be wrong, or impossible to build; not read.
    Broken,
}

impl IndexState {
    /// As `SHOW INDEXES` prints it.
    pub fn name(self) -> &'static str {
        match self {
            IndexState::Building => "Building",
            IndexState::Ready => "Ready",
            IndexState::Broken => "Broken",
        }
    }
}

/// An index table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexDef {
    /// Identity.
    pub id: IndexId,
    /// Name; index tables and tables share one namespace.
    pub name: String,
    /// At most one row for each key without NULLs.
    pub unique: bool,
    /// The layout of its keys, before the pointer.
    pub layout: KeyLayout,
    /// `INCLUDE` columns, stored in the entry; ascending.
    pub include: Vec<ColumnId>,
    /// `INCLUDE` columns that need not be stored, because the entry's key or the pointer gives them; ascending. Empty in
    /// definitions of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<ColumnId>,
    /// `WHERE`: only rows for which this is true have an entry.
    pub filter: Option<Predicate>,
    /// Text of the `WHERE`.
    pub filter_sql: Option<String>,
    /// Whether queries may use it.
    pub state: IndexState,
    /// The keyspace of its entries.
    pub keyspace: KeyspaceId,
    /// The layout contains the whole primary key, so the pointer is in the value.
    pub holds_primary: bool,
    /// Cache of [`IndexDef::sorted_by`].
    #[serde(skip)]
    pub sorted_by: SortedBy,
}

/// The order of entries.
#[derive(Debug)]
pub struct EntryKey {
    /// The parts of their keys.
    pub layout: KeyLayout,
    /// Whether these are all parts.
    pub role: LayoutRole,
}

/// An [`EntryKey`], made on first use. It belongs to one definition of a table: clones do not copy it.
#[derive(Debug, Default)]
pub struct SortedBy(OnceLock<EntryKey>);

impl Clone for SortedBy {
    fn clone(&self) -> SortedBy {
        SortedBy::default()
    }
}

impl PartialEq for SortedBy {
    fn eq(&self, _: &SortedBy) -> bool {
        true
    }
}

impl IndexDef {
    /// What its entries are sorted by: its layout, followed by the pointer, a rowkey of `table`, up to the part that
    /// scatters over buckets. Only the layout if the pointer is not always in the key.
    pub fn sorted_by(&self, table: &KeyLayout) -> &EntryKey {
        self.sorted_by.0.get_or_init(|| {
            let has_pointer = !self.unique && !self.holds_primary;
            let scatters = |part: &KeyPart| part.is_random() || part.buckets().is_some();
            let all = table.parts().len();
            let parts = match has_pointer {
                true => table.parts().iter().position(scatters).unwrap_or(all),
                false => 0,
            };
            let role = if parts == all { LayoutRole::Primary } else { LayoutRole::Index };
            EntryKey { layout: self.layout.followed_by(table, parts), role }
        })
    }

    /// Makes its entries point at rows under `table`: columns that neither their rowkeys nor its own layout give are
    /// stored.
    pub fn point_at(&mut self, table: &KeyLayout) {
        let stored = |id: &ColumnId| !self.layout.decodable().contains(id) && !table.decodable().contains(id);
        (self.include, self.given) = self.declared().into_iter().partition(stored);
        self.holds_primary = self.layout.contains_columns(table);
    }

    /// The `INCLUDE` columns as declared, stored or not; ascending.
    pub fn declared(&self) -> Vec<ColumnId> {
        let mut declared = [&self.include[..], &self.given].concat();
        declared.sort_unstable();
        declared.dedup();
        declared
    }

    /// Columns that an entry gives without a fetch: decodable key columns and included ones. (Primary key columns can
    /// also be decoded from the pointer.)
    pub fn columns(&self) -> impl Iterator<Item = ColumnId> {
        self.layout.decodable().iter().chain(&self.include).copied()
    }

    /// Columns that its keys and its WHERE use.
    pub fn inputs(&self) -> impl Iterator<Item = ColumnId> {
        self.layout.columns().into_iter().chain(self.filter_inputs())
    }

    /// Columns that its WHERE uses.
    pub fn filter_inputs(&self) -> impl Iterator<Item = ColumnId> {
        self.filter.iter().flat_map(Predicate::fields).filter_map(|field| match field {
            Field::Column(id) => Some(id),
            Field::Rowkey | Field::PrimaryRowkey => None,
        })
    }

    /// The pointer is in the value, because the key is unique without it.
    pub fn pointer_in_value(&self, has_null: bool) -> bool {
        self.holds_primary || (self.unique && !has_null)
    }
}
