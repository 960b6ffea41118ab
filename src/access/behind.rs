//! The ranges of a repeated statement whose equal columns make up a prefix of the keys: `k.assignee = u.id AND k.status
//! <> 'done'`. For other values of these columns, the same ranges lie behind another prefix.

use super::path::{Access, Method, Source};
use super::stretch::{FirstRun, Stretch, keys};
use crate::key::{ColumnId, RangesBehind};
use crate::plan::{CmpOp, Field, Filter, Predicate, RangeShape};
use crate::value::Value;

/// What is read behind a prefix, as long as the other conditions are as they were.
#[derive(Clone, Debug)]
pub(super) struct BehindPrefix {
    /// The prefix.
    shape: RangeShape,
    /// The other conditions, as they were.
    others: Predicate,
    ranges: RangesBehind,
    pub(super) stretch: Stretch,
    entry_filter: Filter,
    filter: Filter,
}

impl BehindPrefix {
    /// Also gives the conditions (positions) that make up the prefix, and the others.
    pub(super) fn of(run: &FirstRun<'_>) -> Option<(BehindPrefix, Vec<usize>, Vec<usize>)> {
        let FirstRun { source, need, access, conditions, value, filled, .. } = *run;
        let (layout, role) = keys(source, access.path)?;
        let Method::Scan { ranges, .. } = &access.method else { return None };
        let is_equal = |at: &usize| matches!(conditions[*at], Some((id, CmpOp::Eq)) if layout.has_column(id));
        let (terms, rest): (Vec<usize>, Vec<usize>) = (0..conditions.len()).partition(is_equal);
        let equal: Vec<(ColumnId, CmpOp)> = terms.iter().filter_map(|at| conditions[*at]).collect();
        let others = filled(&rest)?;
        let shape = RangeShape::of(&equal, layout, role).filter(|shape| shape.is_prefix(layout, &others))?;
        // What else is asked says the same whatever these columns equal.
        let is_apart = |predicate: &Predicate| {
            let is_other = |field: &Field| matches!(field, Field::Column(id) if equal.iter().all(|(told, _)| told != id));
            !predicate.has_opaque() && predicate.fields().iter().all(is_other)
        };
        // The value of a formula of these columns may have been implied.
        let (Source::Table(table) | Source::Index(table, _)) = source;
        let is_told = |id: &ColumnId| equal.iter().any(|(told, _)| told == id);
        let mut computed = table.formulas().filter(|(id, _)| layout.has_column(*id));
        let are_apart = [&others, &*access.entry_filter, &*access.filter].into_iter().all(is_apart)
            && !computed.any(|(_, formula)| formula.columns().iter().any(is_told));
        if !are_apart || need.each.is_some() || need.hints.full {
            return None;
        }
        let prefix = shape.key(layout, &|term| value(*terms.get(term)?))?;
        let behind = BehindPrefix {
            ranges: RangesBehind::of(ranges, &prefix)?,
            stretch: Stretch::of_range(need, access)?,
            entry_filter: access.entry_filter.clone(),
            filter: access.filter.clone(),
            shape,
            others,
        };
        Some((behind, terms, rest))
    }

    /// The access for some values, given by term; `None` if the other conditions differ, or no key can hold a value.
    pub(super) fn access<'v>(
        &self,
        source: Source<'_>,
        value: impl Fn(usize) -> Option<&'v Value>,
        others: &Predicate,
    ) -> Option<Access> {
        let (layout, _) = keys(source, self.stretch.path())?;
        if *others != self.others {
            return None;
        }
        let access = self.stretch.reading(self.ranges.after(&self.shape.key(layout, &value)?));
        Some(Access { entry_filter: self.entry_filter.clone(), filter: self.filter.clone(), ..access })
    }
}
