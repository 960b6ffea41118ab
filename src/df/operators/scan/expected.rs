//! Predicts the path of a scan that a dynamic filter or a join will narrow.
//!
//! EXPLAIN shows that path. The values are not known then, so values from the table stand in for them.

use super::ScanExec;
use crate::access::{Described, Method, Path, RuntimeKeys};
use crate::df::operators::dynamic_filter;
use crate::df::table::Bound;
use crate::df::wanted::FirstFound;
use crate::plan::{CmpOp, Field, Filter, Predicate};

/// The expected access of a scan for each value or outer row that it is given.
pub struct ExpectedAccess {
    /// The path for one of these.
    pub bound: Bound,
    keys: RuntimeKeys,
}

impl ScanExec {
    /// The expected access, if about `filter_rows` rows feed its dynamic filters. `None`: it has none, it is running
    /// already, or it would read everything anyway.
    pub fn expected(&self, filter_rows: Option<f64>) -> Option<ExpectedAccess> {
        let (request, rows) = (&self.request, filter_rows?.max(1.0));
        let names =
            self.filters.iter().flat_map(|filter| dynamic_filter::equal_columns(filter, &request.schema));
        let names: Vec<String> = names.collect();
        let terms = names.iter().map(|name| Some((request.field_of(name)?, CmpOp::Eq)));
        let terms: Vec<_> = terms.collect::<Option<_>>()?;
        // From many rows, it gets the values of each column separately, not as tuples.
        let asked = if rows > dynamic_filter::PAIRS_MAX as f64 {
            terms.chunks(1)
        } else {
            terms.chunks(terms.len().max(1))
        };
        let cost = |bound: &Bound| bound.spec.access.cost;
        let expected = asked.filter_map(|terms| self.expected_for_values(terms));
        let expected = expected.min_by(|a, b| cost(&a.bound).total_cmp(&cost(&b.bound)))?;
        let is_less = rows * cost(&expected.bound) < cost(self.planned().ok()?);
        (is_less && (expected.bound.spec.access.ordered || !self.ordered)).then_some(expected)
    }

    /// The expected access for values of these columns, at any cost.
    pub fn expected_for_values(&self, terms: &[(Field, CmpOp)]) -> Option<ExpectedAccess> {
        let bound = self.request.bound_for_values(self.not_begun(terms)?, terms).ok()??;
        let chosen = match bound.spec.access.method {
            Method::Get(_) => "each value tells every part of the rowkey".to_owned(),
            _ => format!("{} for each value", bound.chosen),
        };
        Some(ExpectedAccess {
            bound: Bound { chosen, ..bound },
            keys: RuntimeKeys::ByValue(self.narrowed_by()),
        })
    }

    /// The expected access where each outer row asks along one of these paths, for the first rows or for all.
    pub fn expected_on_way(
        &self,
        terms: &[(Field, CmpOp)],
        first: Option<&FirstFound>,
        paths: &[Path],
    ) -> Option<ExpectedAccess> {
        let (planned, condition) = self.stand_in(terms)?;
        let way = self.request.way(planned, condition, first, paths).ok()??;
        Some(ExpectedAccess { bound: way.bound, keys: RuntimeKeys::ByRow(self.narrowed_by()) })
    }

    /// The expected access where each outer row asks in several places: for rows that satisfy any of these lists of
    /// terms.
    pub fn expected_in_places(&self, places: &[Vec<(Field, CmpOp)>]) -> Option<ExpectedAccess> {
        let each = places.iter().map(|terms| self.stand_in(terms)).collect::<Option<Vec<_>>>()?;
        let (planned, _) = each.first()?;
        let any = Predicate::or(each.iter().map(|(_, condition)| condition.clone()));
        let bound = self.request.narrow(planned, any).ok()?;
        if bound.spec.access.method.is_whole() {
            return None;
        }
        let chosen = format!("{} for each row", bound.chosen);
        Some(ExpectedAccess {
            bound: Bound { chosen, ..bound },
            keys: RuntimeKeys::ByRow(self.narrowed_by()),
        })
    }

    /// The path without the filter, and a sample condition in place of the filter.
    fn stand_in(&self, terms: &[(Field, CmpOp)]) -> Option<(&Bound, Predicate)> {
        let planned = self.not_begun(terms)?;
        Some((planned, self.request.stand_in(planned, terms).ok()??))
    }

    /// The path without the filter; `None`: there is no filter, or the scan is running already.
    fn not_begun(&self, terms: &[(Field, CmpOp)]) -> Option<&Bound> {
        let is_known = terms.is_empty() || self.narrowed.get().is_some();
        self.planned().ok().filter(|_| !is_known)
    }

    /// The expected access as EXPLAIN shows it, without the stand-in values.
    pub fn described_as(&self, expected: &ExpectedAccess, verbose: bool) -> Described {
        let Bound { spec, need, .. } = &expected.bound;
        let own = self.planned().map(|bound| bound.need.predicate.clone().conjuncts()).unwrap_or_default();
        let left = |filter: &Filter| {
            let terms = Predicate::from(filter.clone()).conjuncts();
            Filter::from(Predicate::and(terms.into_iter().filter(|term| own.contains(term))))
        };
        let mut access = spec.access.clone();
        (access.entry_filter, access.filter) = (left(&access.entry_filter), left(&access.filter));
        let mut described = spec.described_as(&access, self.limit.or(need.limit), verbose);
        described.told(expected.keys.clone());
        described
    }
}
