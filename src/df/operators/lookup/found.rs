//! Matches the outer rows of a lookup join with the rows found.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::row::{RowConverter, SortField};
use datafusion::error::Result as DfResult;

use super::{JoinKind, LookupJoinExec};
use crate::df::errors::to_df;
use crate::df::operators::until_enough::UntilEnough;
use crate::error::Result;
use crate::key::{FastMap, FastSet};

/// Index pairs of joined rows.
pub struct JoinedPairs {
    /// Indexes of outer rows; `None`: each outer row once, in order.
    pub rows: Option<UInt32Array>,
    /// Indexes of found rows.
    pub found: UInt32Array,
}

impl JoinedPairs {
    /// Outer rows by themselves, without columns of found rows.
    pub fn alone(rows: impl Iterator<Item = u32>) -> JoinedPairs {
        let rows: UInt32Array = rows.collect::<Vec<_>>().into();
        JoinedPairs { found: UInt32Array::new_null(rows.len()), rows: Some(rows) }
    }
}

/// Join keys as bytes.
pub struct JoinKeys(RowConverter);

impl JoinKeys {
    /// The keys of a join.
    pub fn new(join: &LookupJoinExec) -> Result<JoinKeys> {
        let schema = join.table.schema();
        let sorts = join
            .on
            .iter()
            .map(|equal| SortField::new(schema.field(equal.of_table.index()).data_type().clone()));
        Ok(JoinKeys(RowConverter::new(sorts.collect())?))
    }

    /// Visits each row's index and key; the key is `None` if a value is NULL, which equals nothing.
    pub fn each(&self, columns: &[ArrayRef], see: &mut dyn FnMut(u32, Option<&[u8]>)) -> Result<()> {
        for (row, key) in self.0.convert_columns(columns)?.iter().enumerate() {
            let is_known = columns.iter().all(|column| column.is_valid(row));
            see(row as u32, is_known.then_some(key.as_ref()));
        }
        Ok(())
    }

    /// The rows of each key.
    pub fn places(&self, columns: &[ArrayRef]) -> Result<RowsByKey> {
        let mut places = RowsByKey::default();
        self.each(columns, &mut |row, key| {
            let Some(key) = key else { return };
            match places.get_mut(key) {
                Some(rows) => rows.push(row),
                None => drop(places.insert(key.into(), vec![row])),
            }
        })?;
        Ok(places)
    }
}

/// Keys that have been looked up before.
pub type SeenKeys = FastSet<Box<[u8]>>;

/// Row indexes by key.
pub type RowsByKey = FastMap<Box<[u8]>, Vec<u32>>;

/// The matches of some outer rows, batch by batch.
pub struct FoundBy {
    join: Arc<LookupJoinExec>,
    rows: RecordBatch,
    keys: JoinKeys,
    places: RowsByKey,
    found: UntilEnough,
    is_over: bool,
}

impl FoundBy {
    /// The matches of these rows; in the order of the sort above the join, if these are `all` outer rows.
    pub fn new(join: Arc<LookupJoinExec>, rows: RecordBatch, all: bool) -> Result<FoundBy> {
        let (condition, scan) = (join.condition(&rows)?, join.scan()?);
        let found = match all {
            true => scan.of_condition_until_enough(condition)?,
            false => UntilEnough::all(scan.of_condition(condition)?),
        };
        let keys = JoinKeys::new(&join)?;
        let places = keys.places(&join.of_rows(&rows))?;
        Ok(FoundBy { join, rows, keys, places, found, is_over: false })
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let Some(found) = self.found.next_batch()? else { return Ok(None) };
        let (mut of_rows, mut of_found) = (Vec::new(), Vec::new());
        self.keys.each(&self.join.of_table(&found), &mut |at, key| {
            let rows = key.and_then(|key| self.places.get(key)).map_or(&[][..], |rows| rows);
            let rows = if self.join.kind == JoinKind::Found { &rows[..rows.len().min(1)] } else { rows };
            of_rows.extend_from_slice(rows);
            of_found.extend(rows.iter().map(|_| Some(at)));
        })?;
        let pairs = JoinedPairs { rows: Some(of_rows.into()), found: of_found.into() };
        self.join.paired(&self.rows, &found, &pairs).map(Some)
    }
}

impl Iterator for FoundBy {
    type Item = DfResult<RecordBatch>;

    fn next(&mut self) -> Option<DfResult<RecordBatch>> {
        if self.is_over {
            return None;
        }
        let batch = self.next_batch().map_err(to_df).transpose();
        self.is_over = !matches!(batch, Some(Ok(_)));
        batch
    }
}
