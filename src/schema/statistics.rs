//! Statistics of a table's values, collected by ANALYZE for the planner's estimates.
//!
//! Shares are relative to all rows, including NULLs, so that they stay right as a table grows.

use serde::{Deserialize, Serialize};

use crate::key::ColumnId;
use crate::store::KeyspaceId;
use crate::value::Value;

/// Statistics of one table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableStatistics {
    /// Rows in the table at the time.
    pub rows: u64,
    /// Rows sampled.
    pub sampled: u64,
    /// By column.
    pub columns: Vec<(ColumnId, ColumnStatistics)>,
    /// For the table and each index: the number of distinct prefixes of one part, two parts, ... among its keys.
    pub prefixes: Vec<(KeyspaceId, Vec<u64>)>,
}

/// Statistics of one column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ColumnStatistics {
    /// Share of NULLs.
    pub nulls: f64,
    /// Distinct values other than NULL, estimated.
    pub distinct: f64,
    /// The most common values and their shares, the most common first.
    pub common: Vec<(Value, f64)>,
    /// Bounds that divide the other values into parts of equal size, in order.
    pub bounds: Vec<Value>,
}

impl TableStatistics {
    /// Bytes kept of a text value; cutting a histogram bound moves it a little.
    pub const TEXT_BYTES: usize = 64;

    /// Is a text that was kept perhaps the front of a longer one? It is cut between characters, of up to four bytes.
    pub fn may_be_cut(text: &str) -> bool {
        text.len() + 4 > TableStatistics::TEXT_BYTES
    }

    /// The statistics of one column.
    pub fn column(&self, id: ColumnId) -> Option<&ColumnStatistics> {
        self.columns.iter().find(|(c, _)| *c == id).map(|(_, column)| column)
    }

    /// The number of distinct prefixes of `parts` parts (at least one) among the keys of a keyspace.
    pub fn prefixes(&self, keyspace: KeyspaceId, parts: usize) -> Option<u64> {
        let (_, counts) = self.prefixes.iter().find(|(k, _)| *k == keyspace)?;
        counts.get(parts.checked_sub(1)?).copied()
    }
}

impl ColumnStatistics {
    /// Share of rows whose value is not NULL and not among the common ones.
    pub fn others(&self) -> f64 {
        (1.0 - self.nulls - self.common.iter().map(|(_, share)| share).sum::<f64>()).max(0.0)
    }

    /// Share of rows with one given value that is not common, all of these being equally frequent.
    pub fn rare(&self) -> f64 {
        self.others() / (self.distinct - self.common.len() as f64).max(1.0)
    }

    /// Share of the other values that are less than `value`.
    pub fn below(&self, value: &Value) -> f64 {
        self.share_of(value, &|bound| bound < value)
    }

    /// Share of the other values that are less than or equal to `value`.
    pub fn up_to(&self, value: &Value) -> f64 {
        self.share_of(value, &|bound| bound <= value)
    }

    fn share_of(&self, value: &Value, is_before: &dyn Fn(&Value) -> bool) -> f64 {
        let parts = self.bounds.len().saturating_sub(1);
        if parts == 0 {
            return 0.5;
        }
        let at = self.bounds.partition_point(is_before);
        match at {
            0 => 0.0,
            n if n > parts => 1.0,
            n => {
                let within = within(&self.bounds[n - 1], &self.bounds[n], value);
                ((n - 1) as f64 + within) / parts as f64
            }
        }
    }
}

/// Relative position of a value between two bounds, from 0 to 1; 0.5 if it cannot be determined.
fn within(lower: &Value, upper: &Value, value: &Value) -> f64 {
    let share = || {
        let [lower, upper, value] = [lower, upper, value].map(|value| value.as_ref().place());
        let (lower, upper, value) = (lower?, upper?, value?);
        let share = (value - lower) / (upper - lower);
        share.is_finite().then_some(share.clamp(0.0, 1.0))
    };
    share().unwrap_or(0.5)
}
