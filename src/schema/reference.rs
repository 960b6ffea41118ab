//! FOREIGN KEY: columns whose values are those of a row in another table.

use serde::{Deserialize, Serialize};

use super::index::{IndexDef, IndexState};
use super::table::{TableDef, TableId};
use crate::key::{ColumnId, KeyLayout, KeyPart};

/// `FOREIGN KEY (columns) REFERENCES parent (parent_columns)`. Tables and columns are kept by their ids, so they may be
/// renamed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Reference {
    /// Name of the constraint.
    pub name: String,
    /// The columns that refer to a row of the parent; NULL in one of them refers to none.
    pub columns: Vec<ColumnId>,
    /// The table referred to; it may be the same.
    pub parent: TableId,
    /// Its columns that have the same values: those of its rowkey or of a UNIQUE index.
    pub parent_columns: Vec<ColumnId>,
    /// What becomes of the row when the parent's is deleted.
    pub on_delete: OnDelete,
    /// It is checked when the transaction ends, not when the statement does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deferred: bool,
}

/// What becomes of the rows that refer to a row which is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum OnDelete {
    /// The statement is refused if there are some when it ends.
    Refuse,
    /// They are deleted.
    Cascade,
    /// Their columns become NULL.
    SetNull,
    /// Their columns get their defaults.
    SetDefault,
}

impl OnDelete {
    /// Its words in SQL: `CASCADE`.
    pub fn name(self) -> &'static str {
        match self {
            OnDelete::Refuse => "NO ACTION",
            OnDelete::Cascade => "CASCADE",
            OnDelete::SetNull => "SET NULL",
            OnDelete::SetDefault => "SET DEFAULT",
        }
    }
}

/// What tells whether a parent has a row.
#[derive(Clone, Copy, Debug)]
pub enum ParentKey<'p> {
    /// The rowkey.
    Rowkey,
    /// An entry of a UNIQUE index.
    Index(&'p IndexDef),
}

impl Reference {
    /// What tells whether the parent has a row. `None`: nothing does, which no statement can bring about; or the only
    /// index that does is not Ready.
    pub fn key_in<'p>(&self, parent: &'p TableDef) -> Option<ParentKey<'p>> {
        let is_ready = |key: &ParentKey<'_>| match key {
            ParentKey::Rowkey => true,
            ParentKey::Index(index) => index.state == IndexState::Ready,
        };
        self.keys_in(parent).find(is_ready)
    }

    /// The parent's keys that tell whether it has a row, Ready or not.
    pub fn keys_in<'p>(&self, parent: &'p TableDef) -> impl Iterator<Item = ParentKey<'p>> {
        let rowkey = self.is_key(&parent.key).then_some(ParentKey::Rowkey);
        let tells = |index: &&IndexDef| index.unique && index.filter.is_none() && self.is_key(&index.layout);
        rowkey.into_iter().chain(parent.indexes.iter().filter(tells).map(ParentKey::Index))
    }

    /// A key of this layout, if it is unique, is one of the parent's columns: it is made of nothing else, and others have
    /// others, unlike padded texts, of which `9` and `09` share one.
    fn is_key(&self, layout: &KeyLayout) -> bool {
        let is_told =
            |id: &ColumnId| layout.parts().iter().any(|part| part.columns() == [*id] && part.tells_apart());
        let is_named = |id: &ColumnId| self.parent_columns.contains(id);
        !layout.is_drawn() && layout.columns().iter().all(is_named) && self.parent_columns.iter().all(is_told)
    }

    /// The layout of `child` that finds the rows that refer to a given one: `None` for its rowkey, or an index. Without
    /// any, they are found by reading all of them.
    pub fn path_in<'c>(&self, child: &'c TableDef) -> Option<Option<&'c IndexDef>> {
        // Behind delimiters and buckets, the first part says where an entry is.
        let leads = |parts: &[KeyPart]| {
            let mut parts = parts.iter().filter(|part| !part.is_literal() && part.buckets().is_none());
            parts.next().is_some_and(|part| part.columns().iter().all(|id| self.columns.contains(id)))
        };
        if leads(child.key.parts()) {
            return Some(None);
        }
        let finds = |index: &&IndexDef| {
            index.filter.is_none() && index.state != IndexState::Broken && leads(index.layout.parts())
        };
        child.indexes.iter().find(finds).map(Some)
    }
}
