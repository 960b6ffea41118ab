//! Index tables: what entries a row has, and how they follow the row.

mod entry;
mod maintain;

pub use entry::{EntryParts, IndexEntry, check_length, entry_of, open_entry};
pub use maintain::index_changes;
