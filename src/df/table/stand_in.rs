//! Looks at the first rows on a path: for values as stand-ins for those that a plan will only learn at run time, and for
//! how many are equal.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::partition;

use super::{Bound, ScanRequest};
use crate::access::Method;
use crate::error::Result;
use crate::exec::scan::{Scan, field_type};
use crate::plan::{CmpOp, Field, Filter, Predicate};
use crate::row::value_at;

/// Entries (count) that are looked at.
const ENTRIES: usize = 64;

impl ScanRequest {
    /// The condition that these fields compare with values of the first rows on a path, whose filters are ignored.
    /// `None`: there is no such value, or no such path.
    pub fn stand_in(&self, bound: &Bound, terms: &[(Field, CmpOp)]) -> Result<Option<Predicate>> {
        let Some(rows) = self.first_rows(bound, terms.iter().map(|(field, _)| *field))? else {
            return Ok(None);
        };
        let relation = &self.relation;
        let mut conditions = Vec::with_capacity(terms.len());
        for (at, ((field, op), column)) in terms.iter().zip(rows.columns()).enumerate() {
            // The same value at both ends would close the range down to one key.
            let is_closed = |(other, other_op): &(Field, CmpOp)| {
                other == field && *other_op != CmpOp::Eq && *op != CmpOp::Eq
            };
            if terms[..at].iter().any(is_closed) {
                continue;
            }
            let ty = field_type(&relation.table, relation.index.as_ref(), *field);
            let Some(row) = (0..rows.num_rows()).find(|row| column.is_valid(*row)) else { return Ok(None) };
            conditions.push(Predicate::compare(*field, *op, value_at(column, row, ty)?));
        }
        Ok(Some(Predicate::and(conditions)))
    }

    /// The path for values that the table has in these fields; `None`: it has none, or the path is not one walk.
    pub fn bound_for_values(&self, bound: &Bound, terms: &[(Field, CmpOp)]) -> Result<Option<Bound>> {
        let Some(condition) = self.stand_in(bound, terms)? else { return Ok(None) };
        let found = self.narrow(bound, condition)?;
        Ok(Some(found).filter(|found| found.spec.access.method.is_one_walk()))
    }

    /// Rows (count) that are equal in these fields, on average, among the first on a path that is sorted by them.
    /// `None`: there are hardly any rows, or all are equal.
    pub fn ties(&self, bound: &Bound, fields: impl Iterator<Item = Field>) -> Result<Option<f64>> {
        let Some(rows) = self.first_rows(bound, fields)? else { return Ok(None) };
        let groups = partition(rows.columns())?.len();
        Ok((groups > 1).then(|| rows.num_rows() as f64 / groups as f64))
    }

    /// These fields of the first rows on a path, whose filters are ignored. `None`: there are no rows, or no such path.
    fn first_rows(&self, bound: &Bound, fields: impl Iterator<Item = Field>) -> Result<Option<RecordBatch>> {
        let columns: Option<Vec<usize>> = fields.map(|field| self.column_of(field)).collect();
        let mut access = bound.spec.access.clone();
        let Some(columns) = columns else { return Ok(None) };
        match &mut access.method {
            // No skip scan: that may take long.
            Method::Scan { skip, .. } => *skip = None,
            Method::Get(_) => {}
            Method::Empty | Method::Gather { .. } => return Ok(None),
        }
        (access.entry_filter, access.filter) = (Filter::all(), Filter::all());
        let schema = Arc::new(self.schema.project(&columns)?);
        let picked = self.pick(&columns, &schema);
        let spec = Arc::new(picked.spec(access, &picked.output));
        let snapshot = Arc::clone(&bound.binding.snapshot);
        let mut scan = Scan::new(spec, snapshot, Some(ENTRIES as u64), Arc::default());
        scan.next_batch_of(ENTRIES)
    }
}
