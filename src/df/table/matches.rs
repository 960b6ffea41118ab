//! Estimates what the rows with one value in each of some columns take: those that an outer row of a join finds.

use super::relation::LedKey;
use super::{Bound, ScanRequest};
use crate::access::{COST, Each, Path};
use crate::df::samples::Samples;
use crate::plan::{CmpOp, Field};

/// What the rows with the same values in some columns are expected to be.
#[derive(Clone, Copy)]
pub struct Matches {
    /// Number of rows.
    pub rows: f64,
    /// Cost of reading them, in entries walked.
    pub work: f64,
}

/// What was counted for values that the table has, by columns; `None`: there were no such values, or no key has them
/// together.
pub(super) type MatchSamples = Samples<Box<[Field]>, Option<Matches>>;

impl ScanRequest {
    /// The column leads some rowkey or index key, or stands behind columns there that have one value in each run.
    pub fn leads(&self, field: Field) -> bool {
        self.led_by(field).is_some()
    }

    /// That key's name: of the table or of an index.
    pub fn key_led_by(&self, field: Field) -> Option<&str> {
        Some(self.led_by(field)?.index.unwrap_or(&self.relation.table.name))
    }

    /// A key that has the column behind none but those with one value in each run.
    fn led_by(&self, field: Field) -> Option<LedKey<'_>> {
        self.relation.led_by(field, &[]).or_else(|| self.relation.led_by(field, &self.fixed))
    }

    /// Expected rows (count) with one value in each of these columns; `None` if no key is led by one of them, or if they
    /// cannot be counted: the error of a guess would multiply with each join.
    pub fn rows_matched(&self, bound: &Bound, fields: &[Field]) -> Option<f64> {
        if !fields.iter().any(|field| self.leads(*field)) {
            return None;
        }
        match self.are_all_known(bound, fields) {
            true => Some(self.guessed_rows(bound, fields)),
            false => self.sampled(bound, fields).map(|sample| sample.rows),
        }
    }

    /// [`ScanRequest::rows_matched`] and what it costs to read them; guessed if they cannot be counted.
    pub fn matches(&self, bound: &Bound, fields: &[Field]) -> Option<Matches> {
        let guess = self.guessed(bound, fields)?;
        if self.are_all_known(bound, fields) {
            return Some(Matches { rows: guess.rows.min(self.passing_rows(bound, fields)), ..guess });
        }
        let lower = |sample: Matches| Matches { rows: sample.rows, work: sample.work.min(guess.work) };
        Some(self.sampled(bound, fields).map_or(guess, lower))
    }

    /// [`ScanRequest::matches`] by statistics alone: few values may have most of the rows, and a sample would not tell.
    pub fn guessed(&self, bound: &Bound, fields: &[Field]) -> Option<Matches> {
        if !fields.iter().any(|field| self.leads(*field)) {
            return None;
        }
        let rows = self.guessed_rows(bound, fields);
        let is_covered = matches!(bound.spec.access.path, Path::IndexOnly(_));
        let entry = if is_covered { COST.entry } else { COST.entry + COST.fetch };
        let is_each = |each: &Each| each.of == fields && each.rows == 1 && !each.with_ties;
        // Unless only existence is asked, all rows of the value are read.
        let is_one = self.each.as_ref().is_some_and(is_each) && self.filters.is_empty();
        Some(Matches { rows, work: COST.seek + if is_one { entry } else { rows * entry } })
    }

    /// [`ScanRequest::guessed_rows`] by the number of rows that pass the filters.
    fn passing_rows(&self, bound: &Bound, fields: &[Field]) -> f64 {
        let varies = |field: &&Field| self.fixed.iter().all(|id| **field != Field::Column(*id));
        let values = fields.iter().filter(varies).map(|field| self.distinct(&bound.binding, *field));
        let share: Option<f64> = values.map(|values| Some(1.0 / values?.max(1.0))).product();
        share.map_or(f64::INFINITY, |share| bound.rows * share)
    }

    /// ANALYZE has counted the values of each column, or they are a whole rowkey.
    fn are_all_known(&self, bound: &Bound, fields: &[Field]) -> bool {
        self.is_rowkey(&|id| fields.contains(&Field::Column(id)))
            || fields.iter().all(|field| self.distinct(&bound.binding, *field).is_some())
    }

    fn guessed_rows(&self, bound: &Bound, fields: &[Field]) -> f64 {
        if self.is_rowkey(&|id| fields.contains(&Field::Column(id))) {
            return 1.0;
        }
        let before =
            fields.iter().find_map(|field| self.led_by(*field)).map_or_else(Vec::new, |led| led.before);
        let others = before.into_iter().map(Field::Column).filter(|field| !fields.contains(field));
        // The values of columns without statistics may depend on one another.
        let all = fields.iter().copied().chain(others);
        let (known, unknown): (Vec<Field>, Vec<Field>) =
            all.partition(|field| self.distinct(&bound.binding, *field).is_some());
        let share = self.share_of_equals(&known) * self.share_of_equals(&unknown[..unknown.len().min(1)]);
        self.entries(&bound.binding).max(COST.entries_min as f64) * share
    }

    /// Rows with values that some row has in these columns.
    fn sampled(&self, bound: &Bound, fields: &[Field]) -> Option<Matches> {
        let (columns, entries) = (Box::from(fields), self.entries(&bound.binding));
        self.samples.known(&columns, entries).unwrap_or_else(|| {
            let terms: Vec<_> = fields.iter().map(|field| (*field, CmpOp::Eq)).collect();
            let found = self.bound_for_values(bound, &terms).ok().flatten();
            let found = found.map(|found| Matches { rows: found.rows, work: found.spec.access.work() });
            self.samples.keep(columns, entries, found);
            found
        })
    }
}
