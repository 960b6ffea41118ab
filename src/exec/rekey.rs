//! Keeps the next table of a REKEY in step with the current one: each row's form there follows from its values and
//! its current rowkey alone.
//!
//! So a write to the one implies a write to the other ([`follow`]), rows that nobody writes are copied by the same
//! rule ([`gather_rows`](super::build::gather_rows)), and both can be [compared](verify) without pointers between
//! them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::check::Digest;
use super::dml::{drawn, rowkey_from};
use super::gets::Gets;
use super::stored::{self, Packer};
use super::watch::Watch;
use crate::error::{Error, Kind, Result};
use crate::key::{KeyRange, Rowkey};
use crate::schema::TableDef;
use crate::store::{Direction, KeyspaceId, Snapshot, WriteBatch};
use crate::value::{Value, name_sql};

/// Calls `f` with every entry of a row in the next table; `old` is its current rowkey.
///
/// Errors: a value that a layout cannot hold.
pub fn entries_of(
    next: &Packer<'_>,
    row: &[Value],
    old: &[u8],
    f: &mut dyn FnMut(KeyspaceId, &Rowkey, &[u8]),
) -> Result<()> {
    // A `random(n)` part is drawn once per row: from its old rowkey, which does not change.
    let entropy = old.iter().fold(0, |entropy, byte| drawn(entropy ^ u64::from(*byte)));
    let rowkey = rowkey_from(next.table(), row, entropy)?;
    next.entries_of(row, &rowkey, f)
}

/// Writes the change of a row from `old` to `new` (`None`: absent) to the next table. An old row that does not fit
/// there has no entries, and can still be deleted, or changed into one that fits.
pub fn follow(
    next: &Packer<'_>,
    rowkey: &[u8],
    old: Option<&[Value]>,
    new: Option<&[Value]>,
    batch: &mut WriteBatch,
) -> Result<()> {
    let all = |row: Option<&[Value]>| {
        let mut entries = BTreeMap::new();
        let mut add = |keyspace, key: &Rowkey, value: &[u8]| {
            entries.insert((keyspace, key.clone()), value.to_vec());
        };
        row.map_or(Ok(()), |row| entries_of(next, row, rowkey, &mut add))?;
        Ok::<_, Error>(entries)
    };
    let before = match all(old) {
        Err(e) if e.kind() == Kind::Invalid => BTreeMap::new(),
        before => before?,
    };
    let mut after = all(new)?;
    for ((keyspace, key), value) in before {
        match after.entry((keyspace, key)) {
            Entry::Vacant(gone) => {
                let (keyspace, key) = gone.into_key();
                batch.delete(keyspace, key);
            }
            Entry::Occupied(same) if *same.get() == value => drop(same.remove()),
            Entry::Occupied(_) => {}
        }
    }
    after.into_iter().for_each(|((keyspace, key), value)| batch.put(keyspace, key, value));
    Ok(())
}

/// Compares `next` with what the rows of `table` should be there: each keyspace must have the same entries, by their
/// [digest](Digest).
///
/// Errors: they differ; a row that cannot be read; `Cancelled`.
pub fn verify(table: &TableDef, next: &TableDef, snapshot: &dyn Snapshot, watch: &Watch) -> Result<()> {
    let (reader, mut gets) = (snapshot.reader()?, Gets::of(snapshot)?);
    let label = format!("comparing {} with what it will be", table.name);
    let total = Some(reader.entries(table.rows())?);
    let mut expected: BTreeMap<KeyspaceId, Digest> =
        next.keyspaces().map(|keyspace| (keyspace, Digest::default())).collect();
    let next = Packer::new(next);
    let mut rows = reader.cursor(table.rows(), &KeyRange::all(), Direction::Forward)?;
    let mut n = 0;
    while let Some((key, value)) = rows.next()? {
        let row = stored::values_of(gets.next()?, table, key, value)?;
        entries_of(&next, &row, key, &mut |keyspace, key, value| {
            expected.entry(keyspace).or_default().add(key, value);
        })?;
        n += 1;
        watch.tick(&label, n, total, "rows")?;
    }
    for (keyspace, expected) in expected {
        let mut found = Digest::default();
        let mut entries = reader.cursor(keyspace, &KeyRange::all(), Direction::Forward)?;
        let mut walked: u64 = 0;
        while let Some((key, value)) = entries.next()? {
            found.add(key, value);
            walked += 1;
            watch.cancel.tick(walked)?;
        }
        if found != expected {
            return Err(Error::corrupt(format!(
                "table \"{}\" is not the same under its next layout",
                table.name
            ))
            .why(format!("keyspace {} has {walked} entries that do not agree with its rows", keyspace.0))
            .hint(format!(
                "the table is as it was: CHECK TABLE {}, then REKEY it again",
                name_sql(&table.name)
            )));
        }
    }
    watch.finish(&label, n, "rows");
    Ok(())
}
