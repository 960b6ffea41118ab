//! Tables, column families, indexes and views, as the catalog stores them.

mod history;
mod index;
mod reference;
mod rekey;
mod statistics;
mod table;
mod traffic;

pub use history::History;
pub use index::{EntryKey, IndexDef, IndexId, IndexState, SortedBy};
pub use reference::{OnDelete, ParentKey, Reference};
pub use rekey::Rekey;
pub use statistics::{ColumnStatistics, TableStatistics};
pub use table::{
    CheckConstraint, Column, Compression, ENDED_AT, FAMILIES_MAX, Family, FamilyId, Identity, TableDef,
    TableId, Ttl, ViewDef, WRITTEN_AT,
};
pub use traffic::{Counts, Lately, Traffic, TrafficKind};
