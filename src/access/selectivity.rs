//! Selectivity: the share of rows that a condition leaves, by ANALYZE's statistics.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::cost::COST;
use crate::key::Interval;
use crate::plan::{Field, LikePattern, Predicate, ValueSet, possible_values};
use crate::schema::{ColumnStatistics, TableStatistics};
use crate::value::Value;

/// Share of rows whose `field` has a value that `predicate` allows; `None` if nothing is known of it.
pub fn share_of_field(stats: Option<&TableStatistics>, predicate: &Predicate, field: Field) -> Option<f64> {
    stats?;
    share_in(stats, predicate, &possible_values(predicate), field)
}

/// The same for conditions on all of these fields, which are assumed to be independent.
pub fn share_of_fields(
    stats: Option<&TableStatistics>,
    predicate: &Predicate,
    fields: &[Field],
) -> Option<f64> {
    if stats.is_none() && !fields.is_empty() {
        return None;
    }
    let possible = possible_values(predicate);
    fields.iter().map(|field| share_in(stats, predicate, &possible, *field)).product()
}

fn share_in(
    stats: Option<&TableStatistics>,
    predicate: &Predicate,
    possible: &BTreeMap<Field, ValueSet>,
    field: Field,
) -> Option<f64> {
    let Field::Column(id) = field else { return None };
    let column = stats?.column(id)?;
    let of_set = share_of_set(column, possible.get(&field)?);
    Some(share_of_patterns(column, predicate, field).map_or(of_set, |share| share.min(of_set)))
}

/// Share of rows whose `field` matches the patterns that leave more than an interval to look at, such as `'%x'`, taking
/// the bounds of the histogram for a sample. `None` if there are no such patterns.
fn share_of_patterns(column: &ColumnStatistics, predicate: &Predicate, field: Field) -> Option<f64> {
    let patterns: Vec<_> = predicate.terms().iter().filter_map(|term| uneven_pattern(term, field)).collect();
    if patterns.is_empty() {
        return None;
    }
    let matches = |value: &Value| match value {
        Value::Text(text) if TableStatistics::may_be_cut(text) => None,
        Value::Text(text) => {
            Some(patterns.iter().all(|(pattern, any_case)| pattern.matches(text, *any_case)))
        }
        _ => Some(false),
    };
    let may_match = column.common.iter().filter(|(value, _)| matches(value).unwrap_or(true));
    let common: f64 = may_match.map(|(_, share)| share).sum();
    let sample: Vec<bool> = column.bounds.iter().filter_map(matches).collect();
    let others = match sample.iter().filter(|found| **found).count() as f64 {
        // Nothing is known of what is behind the cut.
        _ if sample.is_empty() => 1.0,
        found => found.max(0.5) / sample.len() as f64,
    };
    Some(common + column.others() * others)
}

/// The pattern, and whether it ignores case, if an interval does not tell what matches.
fn uneven_pattern(term: &Predicate, field: Field) -> Option<(&LikePattern, bool)> {
    match term {
        Predicate::Like { field: of, pattern, negated: false, case_insensitive } if *of == field => {
            let is_interval = !case_insensitive && (pattern.is_prefix() || pattern.as_exact().is_some());
            (!is_interval).then_some((pattern, *case_insensitive))
        }
        _ => None,
    }
}

/// Share of rows that equal one given value in each of these fields.
pub fn share_of_equals(stats: Option<&TableStatistics>, fields: impl Iterator<Item = Field>) -> f64 {
    let share = |field| match field {
        Field::Column(id) => {
            stats.and_then(|stats| stats.column(id)).map_or(COST.equal_share, |c| 1.0 / c.distinct.max(1.0))
        }
        Field::Rowkey | Field::PrimaryRowkey => 0.0,
    };
    fields.map(share).product()
}

fn share_of_set(column: &ColumnStatistics, set: &ValueSet) -> f64 {
    let nulls = if set.has_null() { column.nulls } else { 0.0 };
    let common = column.common.iter().filter(|(value, _)| set.contains(value.as_ref()));
    let (common, found) = common.fold((0.0, 0), |(sum, n), (_, share)| (sum + share, n + 1));
    let others = UncommonValues { column, share: column.others(), rare: column.rare() };
    // If values are listed, count those that are not among the common ones.
    let listed = set.points().map(|values| values.len() - usize::from(set.has_null()));
    let uncommon: f64 = match listed {
        Some(listed) => others.rare * listed.saturating_sub(found) as f64,
        None => set.intervals().iter().map(|interval| others.share_in(interval)).sum(),
    };
    (nulls + common + uncommon.min(others.share)).clamp(0.0, 1.0)
}

/// The values of a column that are not common.
struct UncommonValues<'a> {
    column: &'a ColumnStatistics,
    /// Share of rows with any of them, and with one of them.
    share: f64,
    rare: f64,
}

impl UncommonValues<'_> {
    /// Share of rows with an uncommon value in an interval.
    fn share_in(&self, interval: &Interval) -> f64 {
        let column = self.column;
        match (&interval.lower, &interval.upper) {
            (Bound::Included(a), Bound::Included(b)) if a == b => {
                if column.common.iter().any(|(value, _)| value == a) { 0.0 } else { self.rare }
            }
            (lower, upper) => {
                let from = match lower {
                    Bound::Unbounded => 0.0,
                    Bound::Included(value) => column.below(value),
                    Bound::Excluded(value) => column.up_to(value),
                };
                let to = match upper {
                    Bound::Unbounded => 1.0,
                    Bound::Included(value) => column.up_to(value),
                    Bound::Excluded(value) => column.below(value),
                };
                // Both ends are in the same bucket of the histogram: assume a part of it.
                let part = 0.5 / column.bounds.len().max(1) as f64;
                ((to - from).max(part.min(self.rare)) * self.share).max(0.0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::ColumnId;
    use crate::plan::CmpOp;

    const A: Field = Field::Column(ColumnId(0));

    /// Half of the rows have the same value, a tenth are NULL, the rest are 1 to 100.
    fn stats() -> TableStatistics {
        let bounds = (0..=10).map(|n| Value::Int(n * 10)).collect();
        let column =
            ColumnStatistics { nulls: 0.1, distinct: 101.0, common: vec![(Value::Int(1000), 0.5)], bounds };
        TableStatistics { columns: vec![(ColumnId(0), column)], ..TableStatistics::default() }
    }

    #[test]
    fn common_values_rare_ones_and_ranges() {
        let stats = stats();
        let share = |predicate: Predicate| share_of_field(Some(&stats), &predicate, A).unwrap();
        let compare = |op, n| Predicate::compare(A, op, Value::Int(n));
        let near = |a: f64, b: f64| (a - b).abs() < 0.03;
        assert!(near(share(compare(CmpOp::Eq, 1000)), 0.5));
        assert!(near(share(compare(CmpOp::Eq, 7)), 0.004));
        assert!(near(share(Predicate::is_null(A)), 0.1));
        assert!(near(share(compare(CmpOp::Le, 50)), 0.2));
        assert!(near(share(compare(CmpOp::Gt, 50)), 0.7));
        assert!(near(share(compare(CmpOp::Ne, 1000)), 0.4));
        assert!(near(share(Predicate::and([compare(CmpOp::Ge, 20), compare(CmpOp::Lt, 40)])), 0.08));
        assert_eq!(share_of_field(None, &compare(CmpOp::Eq, 1), A), None);
    }

    #[test]
    fn patterns_that_give_no_range() {
        let text = |n: u32| Value::Text(format!("name {n:03}"));
        let bounds = (0..=100).map(text).collect();
        let common = vec![(Value::Text("the end".into()), 0.2)];
        let column = ColumnStatistics { nulls: 0.1, distinct: 1000.0, common, bounds };
        let stats = TableStatistics { columns: vec![(ColumnId(0), column)], ..TableStatistics::default() };
        let like = |pattern: &str| Predicate::like(A, LikePattern::new(pattern, Some('\\')).unwrap(), false);
        let share = |predicate: Predicate| share_of_field(Some(&stats), &predicate, A).unwrap();
        let near = |a: f64, b: f64| (a - b).abs() < 0.01;
        assert!(near(share(like("%7")), 0.07));
        assert!(near(share(like("%end")), 0.2));
        assert!(near(share(like("%nowhere")), 0.003));
        assert!(near(share(Predicate::and([like("%0%"), like("name 1%")])), 0.003));
        assert!(near(share(like("%")), 0.9));
    }
}
