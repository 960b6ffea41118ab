//! A row that changes → the version of it that ends.

use super::dml::rowkey_from;
use super::stored::Packer;
use crate::error::{Error, Result};
use crate::key::{ColumnId, KeyRange, Rowkey};
use crate::schema::TableDef;
use crate::store::{Direction, Reader, WriteBatch};
use crate::value::Value;

/// Where versions go that have ended.
pub struct Past<'t> {
    table: &'t TableDef,
    packer: Packer<'t>,
    written_at: ColumnId,
    ended_at: ColumnId,
    /// Versions of a row that are kept (count), besides the newest.
    kept: usize,
    /// Bytes that the time takes, the last part of a rowkey.
    time_bytes: usize,
}

impl<'t> Past<'t> {
    /// That of a table; `None`, if it keeps no versions.
    pub fn of(table: &'t TableDef) -> Option<Past<'t>> {
        let (history, written_at, past) = (table.history.as_ref()?, table.written_at?, table.past()?);
        let ended_at = history.ended_at;
        let kept = history.versions.saturating_sub(1) as usize;
        let time_bytes = past.key.parts().last()?.facts().width?;
        Some(Past { table: past, packer: Packer::new(past), written_at, ended_at, kept, time_bytes })
    }

    /// What comes to the place of `old`, if the clock has gone back since that was written: as new as can be.
    pub fn later(&self, old: &[Value], new: &[Value]) -> Option<Vec<Value>> {
        let at = usize::from(self.written_at.0);
        let Value::TimestampTz(old_us) = old[at] else { return None };
        (new[at] < old[at]).then(|| {
            let mut later = new.to_vec();
            later[at] = Value::TimestampTz(old_us.saturating_add(1));
            later
        })
    }

    /// The row was `old` until now, when another comes to its place, or none, at `as_of_us`. What was written by the same
    /// transaction is no version.
    pub fn end(
        &self,
        reader: &dyn Reader,
        old: &[Value],
        new: Option<&[Value]>,
        as_of_us: i64,
        batch: &mut WriteBatch,
    ) -> Result<()> {
        let written_at = usize::from(self.written_at.0);
        let ended_at = match (new, &old[written_at]) {
            (Some(new), _) => new[written_at].clone(),
            // The clock may have gone back.
            (None, Value::TimestampTz(old_us)) if as_of_us < *old_us => {
                Value::TimestampTz(old_us.saturating_add(1))
            }
            (None, _) => Value::TimestampTz(as_of_us),
        };
        if self.kept == 0 || ended_at <= old[written_at] {
            return Ok(());
        }
        let mut version = old.to_vec();
        version[usize::from(self.ended_at.0)] = ended_at;
        let rowkey = rowkey_from(self.table, &version, 0)?;
        self.packer.entries_of(&version, &rowkey, &mut |keyspace, key, value| {
            batch.put(keyspace, key.clone(), value.to_vec());
        })?;
        let Some(of_row) = rowkey.len().checked_sub(self.time_bytes) else {
            return Err(Error::internal("a version without its time"));
        };
        // Newest first; this one is newer than any.
        let range = KeyRange::prefix(&rowkey[..of_row]);
        let mut cursor = reader.cursor(self.table.rows(), &range, Direction::Forward)?;
        let mut versions = 1;
        while let Some((key, _)) = cursor.next()? {
            if key == &rowkey[..] {
                continue;
            }
            versions += 1;
            if versions > self.kept {
                let families = self.table.families.iter();
                families.for_each(|family| batch.delete(family.keyspace, Rowkey::from(key)));
            }
        }
        Ok(())
    }
}
