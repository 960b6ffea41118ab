//! What a statement gives back.
use arrow::record_batch::RecordBatch;

use crate::error::Result;

/// Name and type of a result column.
pub struct OutputColumn {
    /// Name.
    pub name: String,
    /// SQL type.
    pub type_name: String,
}

/// Not fatal.
pub struct Warning {
    /// Part of the key.
    pub part: usize,
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
    /// Fix.
    pub hint: String,
}

/// Batches.
pub struct RowStream(pub Box<dyn Iterator<Item = Result<RecordBatch>> + Send>);

impl Iterator for RowStream {
    type Item = Result<RecordBatch>;
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

/// What a statement gives back.
pub struct Outcome {
    /// Columns; empty when no rows are returned.
    pub columns: Vec<OutputColumn>,
    /// Rows.
    pub rows: RowStream,
    /// Rows written.
    pub affected: Option<u64>,
    /// Warnings.
    pub warnings: Vec<Warning>,
    /// Statement kind.
    pub tag: &'static str,
}
