//! Index tables: which entries a row has, and how they change with it.

mod entry;
mod maintain;

pub use entry::{EntryParts, IndexEntry, check_length, entry_of, open_entry};
pub use maintain::index_changes;
