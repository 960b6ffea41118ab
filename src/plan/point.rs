//! The one key of a row whose key columns are all known: what most statements ask for, without the detour.

use std::collections::BTreeMap;

use super::predicate::{CmpOp, Field, Predicate};
use super::ranges::Ranges;
use crate::key::{ColumnId, KeyLayout, KeyRanges, Rowkey};
use crate::value::Value;

/// What [`ranges`](super::ranges()) finds for a primary key of which every column equals a literal, and for
/// nothing else. `None` if the condition is another one, or if no row can hold such values.
pub(super) fn point(predicate: &Predicate, layout: &KeyLayout) -> Option<Ranges> {
    let conditions = match predicate {
        Predicate::And(terms) => &terms[..],
        one => std::slice::from_ref(one),
    };
    let known = layout.undoable();
    if conditions.len() != known.len() {
        return None;
    }
    let mut values: Vec<Option<&Value>> = vec![None; known.len()];
    for condition in conditions {
        let Predicate::Compare { field: Field::Column(id), op: CmpOp::Eq, value } = condition else {
            return None;
        };
        let place = &mut values[known.iter().position(|c| c == id)?];
        if place.replace(value).is_some() {
            return None;
        }
    }
    // As many conditions as columns, and no column twice: every value is there.
    let values: Vec<&Value> = values.into_iter().collect::<Option<_>>()?;
    let at = |id: ColumnId| known.iter().position(|c| *c == id);
    let mut key = Vec::with_capacity(32);
    for part in layout.parts() {
        if part.is_random() || part.columns().iter().any(|c| at(*c).is_none()) {
            return None;
        }
        part.bytes_of(&|id| at(id).map_or(&Value::Null, |at| values[at]), &mut key).ok()?;
    }
    let fixed: BTreeMap<ColumnId, Value> = known.iter().copied().zip(values.into_iter().cloned()).collect();
    Some(Ranges {
        ranges: KeyRanges::of_points(vec![Rowkey::from(key)]),
        tight: true,
        residual: Predicate::True,
        points: true,
        fan_out: None,
        bound_parts: layout
            .parts()
            .iter()
            .rposition(|part| !part.columns().is_empty())
            .map_or(0, |at| at + 1),
        unbound_leading: false,
        fixed,
        skipping: None,
    })
}
