//! Keeps the old version of a row when the row is changed or deleted.

use super::dml::rowkey_from;
use super::stored::Packer;
use crate::error::{Error, Result};
use crate::key::{ColumnId, KeyRange, Rowkey};
use crate::schema::TableDef;
use crate::store::{Direction, Reader, WriteBatch};
use crate::value::Value;

/// Stores the ended versions of a table's rows.
pub struct HistoryWriter<'t> {
    table: &'t TableDef,
    packer: Packer<'t>,
    written_at: ColumnId,
    ended_at: ColumnId,
    /// Ended versions kept per row (count), besides the current one.
    kept: usize,
    /// Length of the time, the last part of a version's rowkey, in bytes.
    time_bytes: usize,
}

impl<'t> HistoryWriter<'t> {
    /// `None` if the table keeps no versions.
    pub fn of(table: &'t TableDef) -> Option<HistoryWriter<'t>> {
        let (history, written_at, past) = (table.history.as_ref()?, table.written_at?, table.past()?);
        let ended_at = history.ended_at;
        let kept = history.versions.saturating_sub(1) as usize;
        let time_bytes = past.key.parts().last()?.facts().width?;
        Some(HistoryWriter { table: past, packer: Packer::new(past), written_at, ended_at, kept, time_bytes })
    }

    /// If the clock went back: `new`, written just after `old`. `None` otherwise.
    pub fn later(&self, old: &[Value], new: &[Value]) -> Option<Vec<Value>> {
        let at = usize::from(self.written_at.0);
        let Value::TimestampTz(old_us) = old[at] else { return None };
        (new[at] < old[at]).then(|| {
            let mut later = new.to_vec();
            later[at] = Value::TimestampTz(old_us.saturating_add(1));
            later
        })
    }

    /// Stores `old` as a version that ends now: `new` replaces it, or (`None`) it is deleted at `as_of_us`. A row
    /// written by the same transaction leaves no version.
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
        // Newest first; the one just written is the newest.
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
