//! A fast path to the key ranges of common statements: equalities on the first columns of the key, and
//! perhaps an interval of the next one.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::predicate::{CmpOp, Field, Predicate};
use super::ranges::{LayoutRole, Ranges};
use super::sets::{as_point, closed};
use super::walk::after;
use crate::key::{ColumnId, Interval, KeyLayout, KeyPart, KeyRange, KeyRanges, Rowkey};
use crate::value::Value;

/// The result of [`search`](super::ranges::search) for equalities on the columns of the leading parts, an
/// interval of the next column, and conditions on columns outside of the layout. `None` for any other
/// condition, and for values that no row can hold.
pub fn short_ranges(predicate: &Predicate, layout: &KeyLayout, role: LayoutRole) -> Option<Ranges> {
    let ShortCondition { shape, values, residual } = short(predicate, layout, role)?;
    Some(Ranges {
        ranges: shape.ranges(layout, |term| values.get(term).copied())?,
        residual: Predicate::and(residual),
        points: shape.points,
        bound_parts: shape.bound_parts,
        fixed: shape.known.iter().map(|(id, term)| (*id, values[*term].clone())).collect(),
        listed: BTreeMap::new(),
        skipping: None,
    })
}

/// The range of [`short_ranges`], if it needs no residual filter and is no GET; also that of an interval which is empty or
/// a single value, where the search would have chosen otherwise.
pub fn short_stretch(predicate: &Predicate, layout: &KeyLayout, role: LayoutRole) -> Option<KeyRanges> {
    let ShortCondition { shape, values, residual } = short(predicate, layout, role)?;
    let is_stretch = residual.is_empty() && !shape.points;
    is_stretch.then(|| shape.any_ranges(layout, |term| values.get(term).copied())).flatten()
}

/// A condition taken apart: its comparisons of the layout's columns, their values, and the rest.
struct ShortCondition<'p> {
    shape: RangeShape,
    values: Vec<&'p Value>,
    residual: Vec<Predicate>,
}

fn short<'p>(predicate: &'p Predicate, layout: &KeyLayout, role: LayoutRole) -> Option<ShortCondition<'p>> {
    let (mut terms, mut values, mut residual) = (Vec::new(), Vec::new(), Vec::new());
    for term in predicate.terms() {
        match term {
            Predicate::Compare { field: Field::Column(id), op, value } if layout.has_column(*id) => {
                terms.push((*id, *op));
                values.push(value);
            }
            other if is_outside(layout, other) => residual.push(other.clone()),
            _ => return None,
        }
    }
    Some(ShortCondition { shape: RangeShape::of(&terms, layout, role)?, values, residual })
}

/// The form of a key range for comparisons of given columns, independent of the values: leading parts made of
/// columns with an equality, and an interval of the next part.
#[derive(Clone, Debug)]
pub struct RangeShape {
    /// Columns with an equality, and the numbers of the terms that give their values.
    known: Vec<(ColumnId, usize)>,
    /// Leading parts (count) made of these columns.
    used: usize,
    /// The interval of the next part.
    between: Option<Between>,
    /// Bound leading parts (count), including that of the interval.
    bound_parts: usize,
    /// It is one whole rowkey.
    points: bool,
}

impl RangeShape {
    /// `None` for any other kind of comparisons.
    pub fn of(terms: &[(ColumnId, CmpOp)], layout: &KeyLayout, role: LayoutRole) -> Option<RangeShape> {
        let mut known: Vec<(ColumnId, usize)> = Vec::with_capacity(terms.len());
        let mut between: Option<Between> = None;
        for (term, (id, op)) in terms.iter().enumerate() {
            if *op == CmpOp::Eq && layout.decodable().contains(id) {
                if known.iter().any(|(other, _)| other == id) {
                    return None;
                }
                known.push((*id, term));
            } else {
                between.get_or_insert(Between::new(*id)).narrow(*id, *op, term)?;
            }
        }
        if between.as_ref().is_some_and(|between| known.iter().any(|(id, _)| *id == between.column)) {
            return None;
        }
        let is_known = |id: &ColumnId| known.iter().any(|(c, _)| c == id);
        let is_asked = |id: &ColumnId| is_known(id) || between.as_ref().is_some_and(|b| b.column == *id);
        // A later part cannot add to a column that an earlier part gives exactly.
        let is_open =
            |id: &ColumnId, at| is_asked(id) && !(is_known(id) && layout.giver(*id).is_some_and(|g| g < at));
        let (mut used, mut bound_parts, mut is_between) = (0, 0, false);
        let parts = layout.parts();
        for (at, part) in parts.iter().enumerate() {
            if part.is_random() {
                return None;
            }
            match part.columns() {
                [] => {}
                columns if columns.iter().all(is_known) => bound_parts = at + 1,
                [column] if between.as_ref().is_some_and(|between| between.column == *column) => {
                    // Nor to this one's column, if this part gives it exactly.
                    let is_given = |id: &ColumnId| id == column && layout.giver(*id) == Some(at);
                    let mut later = parts[at + 1..].iter().flat_map(|part| part.columns());
                    if later.any(|id| is_open(id, at) && !is_given(id)) {
                        return None;
                    }
                    (bound_parts, is_between) = (at + 1, true);
                    break;
                }
                // No later part is restricted, and no bucket must be fanned out.
                _ if parts[at..].iter().any(|part| {
                    let is_asked = part.columns().iter().any(|id| is_open(id, at));
                    part.is_random() || part.buckets().is_some() || is_asked
                }) =>
                {
                    return None;
                }
                _ => break,
            }
            used = at + 1;
        }
        let is_used = |id: &ColumnId| parts[..used].iter().any(|part| part.columns().contains(id));
        let is_bound = !known.is_empty() || is_between;
        if !is_bound || between.is_some() != is_between || !known.iter().all(|(id, _)| is_used(id)) {
            return None;
        }
        let points = role == LayoutRole::Primary && used == parts.len();
        Some(RangeShape { known, used, between, bound_parts, points })
    }

    /// Is it one whole rowkey, for any values?
    pub fn is_point(&self) -> bool {
        self.points
    }

    /// It is a prefix, for any values of the compared columns, and ranges behind it that other conditions give do not
    /// depend on these values: no part has one of these columns once more, or only behind parts that nothing is said of.
    pub fn is_prefix(&self, layout: &KeyLayout, others: &Predicate) -> bool {
        let behind = &layout.parts()[self.used..];
        let is_known =
            |part: &KeyPart| part.columns().iter().any(|id| self.known.iter().any(|(known, _)| known == id));
        let said = others.fields();
        let is_open = |part: &KeyPart| {
            !part.is_literal() && part.columns().iter().all(|id| !said.contains(&Field::Column(*id)))
        };
        let before = behind.iter().position(is_known).map(|again| &behind[..again]);
        self.between.is_none() && !self.points && before.is_none_or(|before| before.iter().any(is_open))
    }

    /// The range for some values, given by term. `None` for values that no row can hold, and for those that
    /// need the general search.
    pub fn ranges<'v>(
        &self,
        layout: &KeyLayout,
        value: impl Fn(usize) -> Option<&'v Value>,
    ) -> Option<KeyRanges> {
        if let Some(between) = &self.between
            && between.interval(&value)?.as_ref().and_then(as_point).is_some()
        {
            return None;
        }
        self.any_ranges(layout, value).filter(|ranges| !ranges.is_empty())
    }

    /// [`RangeShape::ranges`], also if the interval is empty or a single value.
    pub fn any_ranges<'v>(
        &self,
        layout: &KeyLayout,
        value: impl Fn(usize) -> Option<&'v Value>,
    ) -> Option<KeyRanges> {
        let key = self.key(layout, &value)?;
        Some(match &self.between {
            Some(between) => {
                let Some(interval) = between.interval(value)? else { return Some(KeyRanges::none()) };
                let image = layout.parts()[self.used].image(&interval)?;
                let is_exact = image.tight && !image.range.is_empty();
                KeyRanges::one(after(&key, &Some(image).filter(|_| is_exact)?.range))
            }
            None if self.points => KeyRanges::of_points(vec![key]),
            None => KeyRanges::one(KeyRange::prefix(key)),
        })
    }

    /// The prefix of the keys for some values, or the whole key; `None`: as for [`RangeShape::ranges`].
    pub fn key<'v>(&self, layout: &KeyLayout, value: &impl Fn(usize) -> Option<&'v Value>) -> Option<Rowkey> {
        // NULL equals nothing.
        if self.known.iter().any(|(_, term)| value(*term).is_none_or(Value::is_null)) {
            return None;
        }
        let of_column = |id: ColumnId| {
            let known = self.known.iter().find(|(column, _)| *column == id);
            known.and_then(|(_, term)| value(*term)).unwrap_or(&Value::Null)
        };
        let mut key = Vec::with_capacity(32);
        for part in &layout.parts()[..self.used] {
            part.bytes_of(&of_column, &mut key).ok()?;
        }
        Some(key.into())
    }
}

/// A lower bound, an upper bound, or both, of one column; bounds are numbers of terms.
#[derive(Clone, Debug)]
struct Between {
    column: ColumnId,
    lower: Bound<usize>,
    upper: Bound<usize>,
}

impl Between {
    fn new(column: ColumnId) -> Self {
        Between { column, lower: Bound::Unbounded, upper: Bound::Unbounded }
    }

    /// Adds a bound; `None` if it is on another column, is no bound, or its side has one already.
    fn narrow(&mut self, column: ColumnId, op: CmpOp, term: usize) -> Option<()> {
        let (side, bound) = match op {
            CmpOp::Gt => (&mut self.lower, Bound::Excluded(term)),
            CmpOp::Ge => (&mut self.lower, Bound::Included(term)),
            CmpOp::Lt => (&mut self.upper, Bound::Excluded(term)),
            CmpOp::Le => (&mut self.upper, Bound::Included(term)),
            CmpOp::Eq | CmpOp::Ne => return None,
        };
        let fits = column == self.column && *side == Bound::Unbounded;
        fits.then(|| *side = bound)
    }

    /// `Some(None)`: it is empty. `None`: a bound is NULL, or of a type that this is not for.
    fn interval<'v>(&self, value: impl Fn(usize) -> Option<&'v Value>) -> Option<Option<Interval>> {
        let bound = |bound: &Bound<usize>| {
            let known = match bound {
                Bound::Unbounded => return Some(Bound::Unbounded),
                Bound::Included(term) | Bound::Excluded(term) => value(*term)?,
            };
            let fits = !matches!(known, Value::Null | Value::Boolean(_));
            fits.then(|| bound.map(|_| known.clone()))
        };
        Some(closed(Interval { lower: bound(&self.lower)?, upper: bound(&self.upper)? }))
    }
}

/// The condition is on columns outside of the layout, and on nothing else.
fn is_outside(layout: &KeyLayout, condition: &Predicate) -> bool {
    let is_other = |field: &Field| matches!(field, Field::Column(id) if !layout.has_column(*id));
    let fields = condition.fields();
    !condition.has_opaque() && !fields.is_empty() && fields.iter().all(is_other)
}
