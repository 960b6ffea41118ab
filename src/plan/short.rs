//! The short way to the ranges of what most statements ask for: the first columns of the key equal literals.

use std::collections::BTreeMap;

use super::predicate::{CmpOp, Field, Predicate};
use super::ranges::{Ranges, Target};
use crate::key::{ColumnId, KeyLayout, KeyRange, KeyRanges, Rowkey};
use crate::value::Value;

/// What [`search`](super::ranges::search) finds for equalities of the columns of the leading parts, and
/// conditions on columns that are not in the layout. `None` for any other condition, and for values that no
/// row can hold.
pub(super) fn short(predicate: &Predicate, layout: &KeyLayout, target: Target) -> Option<Ranges> {
    let conjuncts = match predicate {
        Predicate::And(terms) => &terms[..],
        one => std::slice::from_ref(one),
    };
    let mut known: Vec<(ColumnId, &Value)> = Vec::with_capacity(layout.undoable().len());
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
            _ => return None,
        }
    }
    let value = |id: ColumnId| known.iter().find(|(c, _)| *c == id).map(|(_, value)| *value);
    let (mut key, mut used, mut bound_parts) = (Vec::with_capacity(32), 0, 0);
    let parts = layout.parts();
    for (at, part) in parts.iter().enumerate() {
        if part.is_random() {
            return None;
        }
        match part.columns() {
            [] => {}
            columns if columns.iter().all(|c| value(*c).is_some()) => bound_parts = at + 1,
            // Nothing further on is known, and no bucket waits there to be merged.
            _ if parts[at..].iter().any(|p| {
                p.is_random() || p.fan_out().is_some() || p.columns().iter().any(|c| value(*c).is_some())
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
    if known.is_empty() || !known.iter().all(|(id, _)| bound.clone().any(|c| c == id)) {
        return None;
    }
    let points = target == Target::Primary && used == parts.len();
    let ranges = match points {
        true => KeyRanges::of_points(vec![Rowkey::from(key)]),
        false => KeyRanges::new(vec![KeyRange::prefix(Rowkey::from(key))]),
    };
    let fixed: BTreeMap<ColumnId, Value> = known.iter().map(|(id, value)| (*id, (*value).clone())).collect();
    Some(Ranges {
        ranges,
        tight: residual.is_empty(),
        residual: Predicate::and(residual),
        points,
        fan_out: None,
        bound_parts,
        unbound_leading: false,
        fixed,
        skipping: None,
    })
}

fn in_layout(layout: &KeyLayout, id: ColumnId) -> bool {
    layout.parts().iter().any(|part| part.columns().contains(&id))
}
