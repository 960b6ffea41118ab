//! Steps of building an index, or the next table of a REKEY: the rows there are, read and sorted as the entries they
//! become, and these written in order.

use std::collections::BTreeMap;

use super::rekey;
use super::run::{Run, sort_all};
use super::stored::{self, Wanted};
use crate::error::{Error, Result};
use crate::index::{entry_of, open_entry};
use crate::key::{KeyRange, Rowkey};
use crate::schema::{IndexDef, TableDef};
use crate::store::{BulkWriter, Direction, KeyspaceId, Reader};
use crate::value::Value;

/// Entries of rows, sorted.
pub struct Gathered {
    runs: BTreeMap<KeyspaceId, Run>,
    /// The last row it is of; `None` if no rows are left behind it.
    pub last: Option<Rowkey>,
    /// Rows it is of.
    pub rows: u64,
}

/// How much is gathered at the most.
#[derive(Clone, Copy)]
pub struct Most {
    /// Rows (count).
    pub rows: u64,
    /// Bytes of entries.
    pub bytes: usize,
}

/// Rows, or entries, between two reports.
const TOLD_EVERY: u64 = 8192;

/// Hears now and then how many rows, or entries, are done; its error ends it.
pub type Told<'t> = dyn FnMut(u64) -> Result<()> + 't;

/// One more is done.
fn tell(done: &mut u64, told: &mut Told<'_>) -> Result<()> {
    *done += 1;
    if done.is_multiple_of(TOLD_EVERY) { told(*done) } else { Ok(()) }
}

/// The entries in `index` of rows of `range`, from its start, as `reader` shows them.
///
/// Errors: a value the layout cannot hold, naming the row.
pub fn gather_entries(
    (table, index): (&TableDef, &IndexDef),
    range: &KeyRange,
    most: Most,
    reader: &dyn Reader,
    told: &mut Told<'_>,
) -> Result<Gathered> {
    let wanted = Wanted::only(table, index.inputs().chain(index.include.iter().copied()));
    gather((table, &wanted), range, most, reader, told, &mut |row, rowkey, runs| {
        if let Some(entry) = entry_of(table, index, row, rowkey)? {
            runs.entry(index.keyspace).or_default().push(&entry.key, &entry.value);
        }
        Ok(())
    })
}

/// Like [`gather_entries`], of everything that the rows are in the table they are on their way to.
pub fn gather_rows(
    (table, next): (&TableDef, &TableDef),
    range: &KeyRange,
    most: Most,
    reader: &dyn Reader,
    told: &mut Told<'_>,
) -> Result<Gathered> {
    gather((table, &Wanted::ALL), range, most, reader, told, &mut |row, rowkey, runs| {
        rekey::entries_of(next, row, rowkey, &mut |keyspace, key, value| {
            runs.entry(keyspace).or_default().push(key, value);
        })
    })
}

/// Makes entries of a row.
type Entries<'e> = dyn FnMut(&[Value], &Rowkey, &mut BTreeMap<KeyspaceId, Run>) -> Result<()> + 'e;

fn gather(
    (table, wanted): (&TableDef, &Wanted),
    range: &KeyRange,
    most: Most,
    reader: &dyn Reader,
    told: &mut Told<'_>,
    entries: &mut Entries<'_>,
) -> Result<Gathered> {
    let mut gathered = Gathered { runs: BTreeMap::new(), last: None, rows: 0 };
    let mut values = Vec::new();
    let mut cursor = reader.cursor(table.rows(), range, Direction::Forward)?;
    while let Some((key, value)) = cursor.next()? {
        tell(&mut gathered.rows, told)?;
        stored::values_into(reader, table, (key, value), wanted, &mut values)?;
        let rowkey = Rowkey::from(key);
        entries(&values, &rowkey, &mut gathered.runs).map_err(|e| of_row(e, table, &rowkey))?;
        let bytes: usize = gathered.runs.values().map(Run::size).sum();
        if gathered.rows >= most.rows || bytes >= most.bytes {
            gathered.last = Some(rowkey);
            break;
        }
    }
    sort_all(gathered.runs.values_mut());
    Ok(gathered)
}

/// An error that a row of the table has.
fn of_row(e: Error, table: &TableDef, rowkey: &Rowkey) -> Error {
    let row = format!("row {} of \"{}\"", table.key.show(rowkey), table.name);
    let why = e.reason().map_or_else(|| row.clone(), |why| format!("{why}; {row}"));
    e.why(why)
}

/// Rows that were left out because another one has their key in a UNIQUE index.
#[derive(Debug, Default)]
pub struct LeftOut {
    /// How many.
    pub rows: u64,
    /// The first few of them.
    pub examples: Vec<Taken>,
}

/// A key of a UNIQUE index that two rows want.
#[derive(Debug)]
pub struct Taken {
    /// The key.
    pub key: Rowkey,
    /// The row that has it, and the row that was left out.
    pub rows: (Rowkey, Rowkey),
}

/// Pairs of rows kept to be named (count).
const EXAMPLES_MAX: usize = 10;

impl Gathered {
    /// Writes the entries, over what is there; `told` hears of it.
    pub fn write(&self, writer: &mut dyn BulkWriter, told: &mut Told<'_>) -> Result<()> {
        let mut entries = 0;
        for (keyspace, run) in &self.runs {
            for (key, value) in run.iter() {
                tell(&mut entries, told)?;
                writer.put(*keyspace, key, value)?;
            }
        }
        Ok(())
    }

    /// Writes entries of a UNIQUE index but for those whose keys other rows have.
    pub fn write_unique(
        &self,
        index: &IndexDef,
        writer: &mut dyn BulkWriter,
        told: &mut Told<'_>,
    ) -> Result<LeftOut> {
        let mut left_out = LeftOut::default();
        let mut entries = 0;
        for (key, value) in self.runs.get(&index.keyspace).into_iter().flat_map(Run::iter) {
            tell(&mut entries, told)?;
            if let Some(existing) = writer.get(index.keyspace, key)? {
                // A row written since the index is there has its entry already.
                let (a, b) = (open_entry(index, key, &existing)?, open_entry(index, key, value)?);
                if a.pointer != b.pointer {
                    left_out.rows += 1;
                    if left_out.examples.len() < EXAMPLES_MAX {
                        let rows = (a.pointer.into(), b.pointer.into());
                        left_out.examples.push(Taken { key: key.into(), rows });
                    }
                    continue;
                }
            }
            writer.put(index.keyspace, key, value)?;
        }
        Ok(left_out)
    }
}
