//! The short way to the ranges of what most statements ask for: the first columns of the key equal literals,
//! and the next one lies between two.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::predicate::{CmpOp, Field, Predicate};
use super::ranges::{Ranges, Target};
use super::sets::{as_point, closed};
use super::walk::after;
use crate::key::{ColumnId, Interval, KeyLayout, KeyRange, KeyRanges, Rowkey};
use crate::value::Value;

/// What [`search`](super::ranges::search) finds for equalities of the columns of the leading parts, an interval
/// of the column of the next, and conditions on columns that are not in the layout. `None` for any other
/// condition, and for values that no row can hold.
pub fn short_ranges(predicate: &Predicate, layout: &KeyLayout, target: Target) -> Option<Ranges> {
    let Short { ranges, residual, points, bound_parts, known } = short(predicate, layout, target)?;
    Some(Ranges {
        ranges,
        residual: Predicate::and(residual),
        points,
        bound_parts,
        unbound_leading: false,
        fixed: known.into_iter().map(|(id, value)| (id, value.clone())).collect(),
        listed: BTreeMap::new(),
        skipping: None,
    })
}

/// The one range of [`short_ranges`], if it holds just the rows that pass and is no GET.
pub fn short_stretch(predicate: &Predicate, layout: &KeyLayout, target: Target) -> Option<KeyRanges> {
    let found = short(predicate, layout, target)?;
    (found.residual.is_empty() && !found.points).then_some(found.ranges)
}

/// As of [`Ranges`]; `known`: what is fixed.
struct Short<'p> {
    ranges: KeyRanges,
    residual: Vec<Predicate>,
    points: bool,
    bound_parts: usize,
    known: Vec<(ColumnId, &'p Value)>,
}

fn short<'p>(predicate: &'p Predicate, layout: &KeyLayout, target: Target) -> Option<Short<'p>> {
    let conjuncts = match predicate {
        Predicate::And(terms) => &terms[..],
        one => std::slice::from_ref(one),
    };
    let mut known: Vec<(ColumnId, &Value)> = Vec::with_capacity(layout.undoable().len());
    let mut between: Option<Between<'_>> = None;
    let mut residual = Vec::new();
    for term in conjuncts {
        match term {
            Predicate::Compare { field: Field::Column(id), op: CmpOp::Eq, value }
                if layout.undoable().contains(id) =>
            {
                if known.iter().any(|(other, _)| other == id) {
                    return None;
                }
                known.push((*id, value));
            }
            Predicate::Compare { field: Field::Column(id), .. } if !in_layout(layout, *id) => {
                residual.push(term.clone());
            }
            Predicate::Compare { field: Field::Column(id), op, value } => {
                between.get_or_insert(Between::new(*id)).narrow(*id, *op, value)?;
            }
            _ => return None,
        }
    }
    if between.as_ref().is_some_and(|between| known.iter().any(|(id, _)| *id == between.column)) {
        return None;
    }
    let value = |id: ColumnId| known.iter().find(|(c, _)| *c == id).map(|(_, value)| *value);
    let is_known = |id: ColumnId| value(id).is_some();
    let is_asked = |id: ColumnId| is_known(id) || between.as_ref().is_some_and(|b| b.column == id);
    let (mut key, mut used, mut bound_parts) = (Vec::with_capacity(32), 0, 0);
    let mut image = None;
    let parts = layout.parts();
    for (at, part) in parts.iter().enumerate() {
        if part.is_random() {
            return None;
        }
        match part.columns() {
            [] => {}
            columns if columns.iter().all(|c| is_known(*c)) => bound_parts = at + 1,
            &[column] if between.as_ref().is_some_and(|between| between.column == column) => {
                let is_last = parts[at + 1..].iter().all(|p| !p.columns().iter().any(|c| is_asked(*c)));
                let interval = between.take().filter(|_| is_last)?.interval()?;
                image =
                    Some(part.image(&interval).filter(|image| image.tight && !image.range.is_empty())?.range);
                bound_parts = at + 1;
                break;
            }
            // Nothing further on is known, and no bucket waits there to be merged.
            _ if parts[at..].iter().any(|p| {
                p.is_random() || p.fan_out().is_some() || p.columns().iter().any(|c| is_asked(*c))
            }) =>
            {
                return None;
            }
            _ => break,
        }
        part.bytes_of(&|id| value(id).unwrap_or(&Value::Null), &mut key).ok()?;
        used = at + 1;
    }
    let bound = parts[..used].iter().flat_map(|part| part.columns());
    let is_bound = !known.is_empty() || image.is_some();
    if !is_bound || between.is_some() || !known.iter().all(|(id, _)| bound.clone().any(|c| c == id)) {
        return None;
    }
    let points = target == Target::Primary && used == parts.len();
    let ranges = match image {
        Some(image) => KeyRanges::new(vec![after(&key, &image)]),
        None if points => KeyRanges::of_points(vec![Rowkey::from(key)]),
        None => KeyRanges::new(vec![KeyRange::prefix(Rowkey::from(key))]),
    };
    Some(Short { ranges, residual, points, bound_parts, known })
}

/// A lower and an upper bound of one column, either of them or both.
struct Between<'v> {
    column: ColumnId,
    lower: Bound<&'v Value>,
    upper: Bound<&'v Value>,
}

impl<'v> Between<'v> {
    fn new(column: ColumnId) -> Self {
        Between { column, lower: Bound::Unbounded, upper: Bound::Unbounded }
    }

    /// Adds a bound; `None` if it is of another column, none at all, or the second one of its side.
    fn narrow(&mut self, column: ColumnId, op: CmpOp, value: &'v Value) -> Option<()> {
        let (side, bound) = match op {
            CmpOp::Gt => (&mut self.lower, Bound::Excluded(value)),
            CmpOp::Ge => (&mut self.lower, Bound::Included(value)),
            CmpOp::Lt => (&mut self.upper, Bound::Excluded(value)),
            CmpOp::Le => (&mut self.upper, Bound::Included(value)),
            CmpOp::Eq | CmpOp::Ne => return None,
        };
        let fits = column == self.column
            && *side == Bound::Unbounded
            && !matches!(value, Value::Null | Value::Boolean(_));
        fits.then(|| *side = bound)
    }

    /// `None` if nothing lies inside, or one value.
    fn interval(&self) -> Option<Interval> {
        let interval = closed(Interval { lower: self.lower.cloned(), upper: self.upper.cloned() })?;
        as_point(&interval).is_none().then_some(interval)
    }
}

fn in_layout(layout: &KeyLayout, id: ColumnId) -> bool {
    layout.parts().iter().any(|part| part.columns().contains(&id))
}
