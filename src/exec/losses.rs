//! What REPAIR TABLE removes: the rows of a table that cannot be read, and the index entries that point at them.

use std::collections::BTreeMap;

use super::check::{Problem, said, shown_key};
use super::stored;
use super::watch::Watch;
use crate::error::{Kind, Result};
use crate::index::{EntryParts, open_entry};
use crate::key::{KeyRange, Rowkey};
use crate::schema::{FamilyId, IndexDef, TableDef};
use crate::store::{BulkWriter, Direction, Entry, KeyspaceId, Snapshot, damaged_entry};
use crate::value::{Literal, name_sql};

/// The rows of a table that cannot be read, and what the indexes have of them.
pub struct Losses {
    /// What is wrong with each row.
    rows: BTreeMap<Rowkey, String>,
    /// Index entries that point at them.
    entries: Vec<(KeyspaceId, Rowkey)>,
    /// About the entries, and about index tables that could not be read to their end.
    of_indexes: Vec<Problem>,
    /// Rows walked.
    walked: u64,
}

impl Losses {
    /// Reads a whole table, and its indexes if a row is damaged.
    ///
    /// Errors: `Corrupt` when it cannot be read to its end, because pages are damaged; `Cancelled`.
    pub fn of(snapshot: &dyn Snapshot, table: &TableDef, watch: &Watch) -> Result<Losses> {
        let mut found =
            Losses { rows: BTreeMap::new(), entries: Vec::new(), of_indexes: Vec::new(), walked: 0 };
        for family in table.family_ids() {
            found.find_rows(snapshot, table, family, watch)?;
        }
        if !found.rows.is_empty() {
            table.indexes.iter().try_for_each(|index| found.find_entries(snapshot, table, index, watch))?;
        }
        Ok(found)
    }

    /// Number of rows that cannot be read.
    pub fn rows(&self) -> u64 {
        self.rows.len() as u64
    }

    /// Number of index entries that point at them.
    pub fn entries(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Number of rows looked at.
    pub fn walked(&self) -> u64 {
        self.walked
    }

    fn find_rows(
        &mut self,
        snapshot: &dyn Snapshot,
        table: &TableDef,
        family: FamilyId,
        watch: &Watch,
    ) -> Result<()> {
        let keyspace = table.family(family).keyspace;
        each_entry(snapshot, keyspace, (&table.name, "rows"), watch, &mut |entry| {
            self.walked += u64::from(family == FamilyId::DEFAULT);
            match entry {
                Ok((key, value)) => {
                    if let Err(e) = stored::check_family(table, family, (key, value)) {
                        self.rows.insert(key.into(), said(&e));
                    }
                }
                Err(e) => {
                    let Some(entry) = damaged_entry(&e) else { return Err(e) };
                    self.rows.insert(entry.key[..].into(), said(&e));
                }
            }
            Ok(())
        })
    }

    /// Finds the entries of an index that point at the rows. One that is damaged itself is left to REPAIR INDEX.
    fn find_entries(
        &mut self,
        snapshot: &dyn Snapshot,
        table: &TableDef,
        index: &IndexDef,
        watch: &Watch,
    ) -> Result<()> {
        let walked = each_entry(snapshot, index.keyspace, (&index.name, "entries"), watch, &mut |entry| {
            match entry {
                Ok((key, value)) => {
                    if let Ok(parts) = open_entry(index, key, value)
                        && self.rows.contains_key(parts.pointer)
                    {
                        self.entries.push((index.keyspace, key.into()));
                        self.of_indexes.push(of_entry(table, index, key, &parts));
                    }
                }
                Err(e) if damaged_entry(&e).is_some() => {}
                Err(e) => return Err(e),
            }
            Ok(())
        });
        match walked {
            Err(e) if e.kind() == Kind::Corrupt => {
                let detail = format!("{}; REPAIR INDEX {} builds it anew", said(&e), name_sql(&index.name));
                let (table, index) = (table.name.clone(), index.name.clone());
                let problem = Problem { problem: "checksum", table, index, detail, ..Problem::default() };
                self.of_indexes.push(problem);
                Ok(())
            }
            walked => walked,
        }
    }

    /// Removes the rows, all families of them, and the entries.
    pub fn remove(&self, table: &TableDef, writer: &mut dyn BulkWriter) -> Result<()> {
        for family in table.family_ids() {
            let keyspace = table.family(family).keyspace;
            self.rows.keys().try_for_each(|rowkey| writer.delete(keyspace, rowkey))?;
        }
        self.entries.iter().try_for_each(|(keyspace, key)| writer.delete(*keyspace, key))
    }

    /// A problem for each row, then one for each entry.
    pub fn into_problems(self, table: &TableDef) -> impl Iterator<Item = Problem> {
        let (name, key) = (table.name.clone(), table.key.clone());
        let of_row = move |(rowkey, detail): (Rowkey, String)| Problem {
            problem: "damaged_row",
            table: name.clone(),
            primary_key: key.show(&rowkey),
            detail,
            ..Problem::default()
        };
        self.rows.into_iter().map(of_row).chain(self.of_indexes)
    }
}

/// Walks a keyspace, called `name`, to its end. `see` gets each entry, or why it cannot be read.
fn each_entry(
    snapshot: &dyn Snapshot,
    keyspace: KeyspaceId,
    (name, unit): (&str, &'static str),
    watch: &Watch,
    see: &mut dyn FnMut(Result<Entry<'_>>) -> Result<()>,
) -> Result<()> {
    let reader = snapshot.unrecorded()?;
    let (label, total) = (format!("reading {name}"), reader.entries(keyspace)?);
    let mut cursor = reader.cursor(keyspace, &KeyRange::all(), Direction::Forward)?;
    for n in 0.. {
        watch.tick(&label, n, Some(total), unit)?;
        let Some(entry) = cursor.next().transpose() else {
            watch.finish(&label, n, unit);
            break;
        };
        see(entry)?;
    }
    Ok(())
}

/// What an index has of a row that cannot be read.
fn of_entry(table: &TableDef, index: &IndexDef, key: &[u8], parts: &EntryParts<'_>) -> Problem {
    let included = parts.include().ok().flatten();
    let value = |id| included.as_ref()?.get(id, table.column(id).ty).ok().flatten();
    let columns = index
        .include
        .iter()
        .filter_map(|id| Some(format!("{} = {}", name_sql(table.column_name(*id)), Literal(value(*id)?))));
    let columns = columns.collect::<Vec<_>>().join(", ");
    Problem {
        problem: "entry_of_damaged_row",
        table: table.name.clone(),
        index: index.name.clone(),
        primary_key: table.key.show(parts.pointer),
        index_key: shown_key(index, key),
        detail: if columns.is_empty() { "points at it".to_owned() } else { format!("has {columns}") },
        ..Problem::default()
    }
}
