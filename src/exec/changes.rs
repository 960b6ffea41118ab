//! Changes too many for one batch: gathered, sorted by key, and written through a bulk writer, as one atomic step.
//!
//! Each row changes entries of its indexes, which may be anywhere. Written row by row, or in parts, they would change
//! most pages of a tree again and again; an index whose pages are changed first and then emptied, more of them than
//! LMDB holds in memory, took minutes: it looks through all of them with each change. So each keyspace is written once,
//! from its first key to its last ([`Sorter`]).

use std::path::Path;

use super::dml::Writes;
use super::sorter::{Pile, Sorter};
use super::watch::Watch;
use crate::error::{Error, Result};
use crate::schema::TableDef;
use crate::store::{BulkWriter, KeyspaceId, Mutation};

/// Limit of changes in memory, in bytes; beyond it sorted runs are spilled to disk. Small in tests, so that they see
/// more than one run.
const GATHERED_BYTES: usize = if cfg!(test) { 4 << 10 } else { 32 << 20 };

/// In front of a value that is put. A change without it is a delete.
const PUT: u8 = 1;

/// Gathers the changes of one table; no two of them are of the same entry.
pub struct Changes<'t> {
    table: &'t TableDef,
    sorter: Sorter,
    /// The last change, as the sorter has it; kept for its capacity.
    encoded: Vec<u8>,
}

impl<'t> Changes<'t> {
    /// None yet. `folder`: where files may be created; `None`: all changes stay in memory.
    pub fn new(table: &'t TableDef, folder: Option<&Path>) -> Changes<'t> {
        let sorter = Sorter::new(folder.map(Path::to_owned), GATHERED_BYTES);
        Changes { table, sorter, encoded: Vec::new() }
    }

    /// Takes the writes so far. Later rows must not write the same entries: see [`Writes::are_apart`].
    ///
    /// Errors: as [`Sorter::make_room`].
    pub fn take(&mut self, writes: &mut Writes<'_>, watch: &Watch) -> Result<()> {
        for mutation in writes.drain() {
            self.encoded.clear();
            let key = match &mutation {
                Mutation::Put(_, key, value) => {
                    self.encoded.push(PUT);
                    self.encoded.extend_from_slice(value);
                    key
                }
                Mutation::Delete(_, key) => key,
                Mutation::Clear(_) => return Err(Error::internal("a row's change clears a keyspace")),
            };
            self.sorter.push(mutation.keyspace(), key, &self.encoded);
        }
        self.sorter.make_room(&watch.cancel)
    }

    /// Writes them into `writer`, where nobody sees them until it commits.
    pub fn write_to(mut self, writer: &mut dyn BulkWriter, watch: &Watch) -> Result<()> {
        for (keyspace, pile) in self.sorter.take() {
            let label = writing(self.table, keyspace);
            write_pile(keyspace, pile, &label, writer, watch)?;
        }
        Ok(())
    }
}

fn write_pile(
    keyspace: KeyspaceId,
    mut pile: Pile,
    label: &str,
    writer: &mut dyn BulkWriter,
    watch: &Watch,
) -> Result<()> {
    let (total, mut written) = (pile.len(), 0);
    let mut changes = pile.merge()?;
    writer.change_all(keyspace, total, &mut |take| {
        while let Some((key, encoded)) = changes.next()? {
            take((key, encoded.split_first().map(|(_, value)| value)))?;
            watch.tick(label, written, Some(total), "entries")?;
            written += 1;
        }
        Ok(())
    })?;
    watch.finish(label, total, "entries");
    Ok(())
}

/// What a progress bar says while a keyspace of `table` is written.
pub fn writing(table: &TableDef, keyspace: KeyspaceId) -> String {
    let index = table.maintained_indexes().find(|index| index.keyspace == keyspace);
    format!("writing {}", index.map_or(&table.name, |index| &index.name))
}
