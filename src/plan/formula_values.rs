//! What a condition on columns says of a formula of them: `at >= '2026-03-01'` holds only where `date_trunc('day', at)`
//! is that day or a later one, and `email = 'Ann@x.org'` only where `lower(email)` is `ann@x.org`. So an index on the
//! formula serves conditions on its columns, too.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::formula::{Formula, Function};
use super::predicate::{CmpOp, Field, Predicate, RowView};
use super::sets::{ValueSet, as_point};
use crate::error::{Error, Result};
use crate::key::{ColumnId, Interval};
use crate::value::{ColumnType, Value, ValueRef};

/// Intervals (count) of a column that are mapped one by one; of more, the one around them.
const INTERVALS_MAX: usize = 1024;

impl Formula {
    /// A condition on the formula, as column `id`, that is true wherever its columns have `possible` values; `None` if
    /// those say nothing of it.
    pub fn implied(&self, id: ColumnId, possible: &BTreeMap<Field, ValueSet>) -> Option<Predicate> {
        let columns = self.columns().into_iter();
        let sets = columns.map(|id| Some((id, possible.get(&Field::Column(id))?)));
        let sets: Vec<(ColumnId, &ValueSet)> = sets.collect::<Option<_>>()?;
        let known = sets.iter().map(|(id, set)| Some((*id, set.only()?)));
        let set = match (known.collect::<Option<Vec<_>>>(), &sets[..]) {
            (Some(known), _) => ValueSet::union([self.of_value(&known)?]),
            (None, [(column, set)]) => self.of_set(*column, set)?,
            _ => return None,
        };
        (!set.covers_not_null()).then(|| condition(Field::Column(id), &set))
    }

    /// The values of a formula of one column that has the values of `set`.
    fn of_set(&self, column: ColumnId, set: &ValueSet) -> Option<ValueSet> {
        if let Some(points) = set.points().filter(|points| points.len() <= INTERVALS_MAX) {
            let images = points.into_iter().map(|value| self.of_value(&[(column, value)]));
            return Some(ValueSet::union(images.collect::<Option<Vec<_>>>()?));
        }
        if !self.is_increasing() {
            return None;
        }
        let hull;
        let intervals = match set.intervals().len() <= INTERVALS_MAX {
            true => set.intervals(),
            false => {
                hull = set.hull()?;
                std::slice::from_ref(&hull)
            }
        };
        let image = |end: &Bound<Value>| match end {
            Bound::Included(value) | Bound::Excluded(value) => {
                // Where the formula has no value, no row lies.
                self.eval(&Known(&[(column, value)])).map_or(Bound::Unbounded, Bound::Included)
            }
            Bound::Unbounded => Bound::Unbounded,
        };
        let images = intervals.iter().map(|of| ValueSet::interval(image(&of.lower), image(&of.upper)));
        // An increasing formula is NULL where its column is.
        let null = set.has_null().then(ValueSet::null);
        Some(ValueSet::union(images.chain(null)))
    }

    /// The value for one value of each column; `None` if it cannot be computed.
    fn of_value(&self, known: &[(ColumnId, &Value)]) -> Option<ValueSet> {
        Some(match self.eval(&Known(known)).ok()? {
            Value::Null => ValueSet::null(),
            value => ValueSet::of_values([value]),
        })
    }

    /// Is it NULL where its one column is, and of two values never less for the greater one?
    fn is_increasing(&self) -> bool {
        let (function, args, ty) = match self {
            Formula::Column(_) => return true,
            Formula::Literal(_) => return false,
            Formula::Call { function, args, ty } => (*function, &args[..], *ty),
        };
        let is_exact = ty.is_integer() || matches!(ty, ColumnType::Decimal { .. });
        let of = match (function, args) {
            (Function::DateTrunc, [Formula::Literal(_), of])
            | (Function::Left, [of, Formula::Literal(_)])
            | (Function::Substr, [of, Formula::Literal(Value::Int(1)), Formula::Literal(_)]) => of,
            (Function::Add | Function::Subtract, [of, Formula::Literal(_)]) if is_exact => of,
            (Function::Multiply, [of, Formula::Literal(Value::Int(by))]) if is_exact && *by > 0 => of,
            (Function::Cast, [of]) if matches!(ty, ColumnType::Double | ColumnType::Timestamp) => of,
            _ => return false,
        };
        of.is_increasing()
    }
}

/// Values of some columns.
struct Known<'v>(&'v [(ColumnId, &'v Value)]);

impl RowView for Known<'_> {
    fn field(&self, field: Field) -> Result<ValueRef<'_>> {
        let known = self.0.iter().find(|(id, _)| field == Field::Column(*id));
        known
            .map(|(_, value)| value.as_ref())
            .ok_or_else(|| Error::internal("a formula reads another column"))
    }
}

/// The condition that `field` is in `set`.
fn condition(field: Field, set: &ValueSet) -> Predicate {
    let null = set.has_null().then(|| Predicate::is_null(field));
    let (points, intervals): (Vec<&Interval>, Vec<&Interval>) =
        set.intervals().iter().partition(|interval| as_point(interval).is_some());
    let points: Vec<Value> = points.into_iter().filter_map(as_point).cloned().collect();
    let points = (!points.is_empty()).then(|| Predicate::is_in(field, points));
    let intervals = intervals.into_iter().map(|Interval { lower, upper }| {
        let bound = |bound: &Bound<Value>, included, excluded| match bound {
            Bound::Included(value) => Some(Predicate::compare(field, included, value.clone())),
            Bound::Excluded(value) => Some(Predicate::compare(field, excluded, value.clone())),
            Bound::Unbounded => None,
        };
        let both = [bound(lower, CmpOp::Ge, CmpOp::Gt), bound(upper, CmpOp::Le, CmpOp::Lt)];
        match both {
            [None, None] => Predicate::is_null(field).not(),
            both => Predicate::and(both.into_iter().flatten()),
        }
    });
    Predicate::or(null.into_iter().chain(points).chain(intervals))
}
