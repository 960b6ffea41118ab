//! What a scan reads, and what it counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::datatypes::SchemaRef;

use super::sources::{ScanSources, field_type};
use super::watch::PlanText;
use crate::access::{Access, COST, Described, Method, Path, Source, describe};
use crate::plan::Field;
use crate::row::column_type_of;
use crate::schema::{FamilyId, IndexDef, IndexId, TableDef};
use crate::value::ColumnType;

/// Most rows in a batch.
pub const BATCH_ROWS: usize = 8192;

/// Limit of the bytes of values in a batch; rows that were read together may exceed it.
pub(super) const BATCH_BYTES: usize = 16 << 20;

/// What a scan did, in entries, keys and bytes; shared with everyone who watches it.
#[derive(Debug, Default)]
pub struct ScanCounters {
    /// GETs by key.
    pub gets: AtomicU64,
    /// Cursors placed.
    pub seeks: AtomicU64,
    /// Entries looked at.
    pub entries: AtomicU64,
    /// Rows fetched for index entries.
    pub fetched: AtomicU64,
    /// Rows given out.
    pub returned: AtomicU64,
    /// Key and value bytes read.
    pub bytes: AtomicU64,
}

impl ScanCounters {
    /// Adds to one of them.
    pub fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }

    /// The work done, in the units of [`Access::work`].
    pub fn work(&self) -> f64 {
        let ScanCounters { gets, seeks, entries, fetched, .. } = self;
        let of = |(counter, cost): (&AtomicU64, f64)| cost * counter.load(Ordering::Relaxed) as f64;
        [(gets, COST.get), (seeks, COST.seek), (entries, COST.entry), (fetched, COST.fetch)]
            .map(of)
            .iter()
            .sum()
    }
}

/// What to scan; fixed when the statement is planned.
#[derive(Debug)]
pub struct ScanSpec {
    /// The table.
    pub table: Arc<TableDef>,
    /// The index that is walked, or read as a table.
    pub index: Option<IndexId>,
    /// The statement reads the index itself as a table: `rowkey` is the index's key.
    pub as_table: bool,
    /// How to reach the rows.
    pub access: Access,
    /// Fields of each row, in the schema's order.
    pub output: Arc<[Field]>,
    /// Where the fields are found, for output and for the filter.
    pub places: Arc<ScanSources>,
    /// The batches' schema.
    pub schema: SchemaRef,
    /// Rows may be given out in any order.
    pub any_order: bool,
}

impl ScanSpec {
    /// The definition of the index, if one is used.
    pub fn index(&self) -> Option<&IndexDef> {
        self.index.and_then(|id| self.table.index_by_id(id))
    }

    /// Type in which the values of this column are given out: for an integer, it may be a wider one than the table's.
    pub(super) fn type_of(&self, column: usize) -> ColumnType {
        let index = self.index().filter(|_| self.as_table);
        let ty = field_type(&self.table, index, self.output[column]);
        let given = || column_type_of(self.schema.fields().get(column)?);
        if ty.is_integer() { given().unwrap_or(ty) } else { ty }
    }

    /// As EXPLAIN shows it. `verbose`: with the bytes of each range.
    pub fn described(&self, limit: Option<u64>, verbose: bool) -> Described {
        self.described_as(&self.access, limit, verbose)
    }

    /// The same, with the filters of `access`, which is the same otherwise.
    pub fn described_as(&self, access: &Access, limit: Option<u64>, verbose: bool) -> Described {
        let families = self.families().iter().map(|id| self.table.family(*id).name.clone()).collect();
        Described { families, ..describe(self.source(), access, limit, verbose) }
    }

    /// The families that are read, if the table has several: the default one tells which rows there are.
    fn families(&self) -> Vec<FamilyId> {
        let reads_rows = match (&self.access.method, self.access.path) {
            (Method::Empty, _) | (_, Path::IndexOnly(_)) => false,
            (Method::Gather { covering, .. }, _) => !covering,
            _ => !self.as_table,
        };
        if !reads_rows || self.table.families.len() == 1 {
            return Vec::new();
        }
        let others = self.places.rows.families.iter().filter(|family| **family != FamilyId::DEFAULT);
        std::iter::once(FamilyId::DEFAULT).chain(others.copied()).collect()
    }

    /// Its line of EXPLAIN, computed when asked for.
    pub fn plan_text(self: &Arc<Self>) -> PlanText {
        let spec = Arc::clone(self);
        Arc::new(move || (spec.described(None, false).to_string(), None))
    }

    /// The table or index that is read.
    pub fn source(&self) -> Source<'_> {
        match self.index() {
            Some(index) if self.as_table => Source::Index(&self.table, index),
            _ => Source::Table(&self.table),
        }
    }
}
