//! Comparisons of a column with a value of any type, as conditions on the column's own values.

use crate::plan::{CmpOp, Field, Predicate};
use crate::value::{ColumnType, US_PER_DAY, Value, compare_doubles, decimal_to_double};

/// A comparison with a literal of any type, converted exactly to the column's type.
pub fn compare_value(field: Field, ty: ColumnType, op: CmpOp, value: Value) -> Option<Predicate> {
    if let (ColumnType::Date, Value::Timestamp(us) | Value::TimestampTz(us)) = (ty, &value) {
        return with_midnight(field, op, *us);
    }
    if let (true, Value::Double(d)) = (ty.is_exact(), &value) {
        return with_double(field, ty, op, *d);
    }
    match exact(ty, &value) {
        Some(value) => Some(Predicate::Compare { field, op, value }),
        None => Some(between_values(field, op, Floor::of(ty, &value)?)),
    }
}

/// A comparison of a date, which is its midnight, with a time in microseconds.
fn with_midnight(field: Field, op: CmpOp, us: i64) -> Option<Predicate> {
    let day = Value::Date(i32::try_from(us.div_euclid(US_PER_DAY)).ok()?);
    let compare = |op| Some(Predicate::compare(field, op, day));
    if us.rem_euclid(US_PER_DAY) == 0 {
        return compare(op);
    }
    match op {
        CmpOp::Eq => Some(never(field)),
        CmpOp::Ne => Some(never(field).not()),
        CmpOp::Lt | CmpOp::Le => compare(CmpOp::Le),
        CmpOp::Gt | CmpOp::Ge => compare(CmpOp::Gt),
    }
}

/// The literal as a value of the column's type, if no information is lost.
pub fn exact(ty: ColumnType, value: &Value) -> Option<Value> {
    let cast = value.clone().cast(ty).ok()?;
    let same = match (&cast, value) {
        (Value::Int(a), Value::Double(b)) => *a as f64 == *b && a.unsigned_abs() < 1 << 53,
        (Value::Int(a), Value::Decimal(b, s)) => Value::Decimal(i128::from(*a), 0) == Value::Decimal(*b, *s),
        (Value::Double(a), Value::Double(b)) => a == b || a.is_nan() && b.is_nan(),
        (Value::Double(a), Value::Int(b)) => *a as i64 == *b && b.unsigned_abs() < 1 << 53,
        (Value::Double(_), Value::Decimal(..)) | (Value::Decimal(..), Value::Double(_)) => false,
        (Value::Decimal(..), Value::Decimal(..)) => cast == *value,
        (Value::Decimal(..), Value::Int(b)) => cast == Value::Decimal(i128::from(*b), 0),
        (Value::Uuid(_), Value::Text(text)) => cast.to_string() == *text,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Text(_), Value::Text(_))
        | (Value::Bytes(_), Value::Bytes(_))
        | (Value::Boolean(_), Value::Boolean(_))
        | (Value::Date(_), Value::Date(_))
        | (Value::Timestamp(_), Value::Timestamp(_))
        | (Value::TimestampTz(_), Value::TimestampTz(_))
        | (Value::Uuid(_), Value::Uuid(_)) => cast == *value,
        _ => false,
    };
    same.then_some(cast)
}

/// A comparison of an exact number with a double: the number is rounded to one, as `CAST(number AS DOUBLE)` is. From
/// 2^53 on several integers are the same double.
fn with_double(field: Field, ty: ColumnType, op: CmpOp, d: f64) -> Option<Predicate> {
    let numbers = Numbers::of(ty)?;
    let first = numbers.first(|n| compare_doubles(n, d).is_ge());
    let last = numbers.first(|n| compare_doubles(n, d).is_gt()) - 1;
    if last < first {
        return Some(between_values(field, op, numbers.floor(last)));
    }
    let (first, last) = (numbers.value(first), numbers.value(last));
    Some(match op {
        CmpOp::Lt | CmpOp::Ge => Predicate::compare(field, op, first),
        CmpOp::Le | CmpOp::Gt => Predicate::compare(field, op, last),
        CmpOp::Eq | CmpOp::Ne if first == last => Predicate::compare(field, op, first),
        CmpOp::Eq | CmpOp::Ne => {
            let equal = [(CmpOp::Ge, first), (CmpOp::Le, last)];
            let equal = Predicate::and(equal.map(|(op, value)| Predicate::compare(field, op, value)));
            if op == CmpOp::Eq { equal } else { equal.not() }
        }
    })
}

/// A comparison of a column with a number that no value of it equals.
fn between_values(field: Field, op: CmpOp, floor: Floor) -> Predicate {
    let (every, none) = (|| never(field).not(), || never(field));
    // Nothing lies strictly between floor and the literal, so < and <= are <= floor.
    match (op, floor) {
        (CmpOp::Eq, _) => none(),
        (CmpOp::Ne, _) => every(),
        (CmpOp::Lt | CmpOp::Le, Floor::Value(floor)) => Predicate::compare(field, CmpOp::Le, floor),
        (CmpOp::Gt | CmpOp::Ge, Floor::Value(floor)) => Predicate::compare(field, CmpOp::Gt, floor),
        (CmpOp::Lt | CmpOp::Le, Floor::BehindAll) | (CmpOp::Gt | CmpOp::Ge, Floor::BeforeAll) => every(),
        (CmpOp::Lt | CmpOp::Le, Floor::BeforeAll) | (CmpOp::Gt | CmpOp::Ge, Floor::BehindAll) => none(),
    }
}

/// The values of an exact type, as integers.
struct Numbers {
    min: i128,
    max: i128,
    /// Decimals have a scale.
    scale: Option<u8>,
}

impl Numbers {
    fn of(ty: ColumnType) -> Option<Numbers> {
        if let ColumnType::Decimal { precision, scale } = ty {
            let max = 10i128.checked_pow(precision.into())? - 1;
            return Some(Numbers { min: -max, max, scale: Some(scale) });
        }
        let (min, max) = ty.integer_bounds()?;
        Some(Numbers { min: min.into(), max: max.into(), scale: None })
    }

    fn value(&self, n: i128) -> Value {
        match self.scale {
            Some(scale) => Value::Decimal(n, scale),
            None => Value::Int(n as i64),
        }
    }

    /// The double next to a number, as a cast gives it.
    fn double(&self, n: i128) -> f64 {
        self.scale.map_or(n as f64, |scale| decimal_to_double(n, scale))
    }

    /// The first number that, as a double, satisfies a condition that all behind it do; one behind the last if none.
    fn first(&self, reaches: impl Fn(f64) -> bool) -> i128 {
        let (mut from, mut to) = (self.min, self.max + 1);
        while from < to {
            let middle = (from & to) + ((from ^ to) >> 1);
            if reaches(self.double(middle)) {
                to = middle;
            } else {
                from = middle + 1;
            }
        }
        from
    }

    fn floor(&self, floor: i128) -> Floor {
        match floor {
            floor if floor < self.min => Floor::BeforeAll,
            floor if floor > self.max => Floor::BehindAll,
            floor => Floor::Value(self.value(floor)),
        }
    }
}

/// Where a number lies among the values of a type, none of which it is.
enum Floor {
    BeforeAll,
    /// The greatest value below it.
    Value(Value),
    BehindAll,
}

impl Floor {
    fn of(ty: ColumnType, value: &Value) -> Option<Floor> {
        if let (ColumnType::Real, Value::Double(d)) = (ty, value) {
            let nearest = *d as f32;
            let floor = if f64::from(nearest) > *d { nearest.next_down() } else { nearest };
            return Some(Floor::Value(Value::Double(f64::from(floor))));
        }
        let numbers = Numbers::of(ty)?;
        let scale = numbers.scale.unwrap_or(0);
        let floor = match value {
            Value::Int(i) if numbers.scale.is_none() => i128::from(*i),
            Value::Decimal(d, from) => d
                .div_euclid(10i128.pow(from.saturating_sub(scale).into()))
                .saturating_mul(10i128.pow(scale.saturating_sub(*from).into())),
            _ => return None,
        };
        Some(numbers.floor(floor))
    }
}

/// False for every value, unknown for NULL.
pub fn never(field: Field) -> Predicate {
    Predicate::Or(vec![Predicate::is_null(field).not(), Predicate::Unknown]).not()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::ColumnId;
    use crate::plan::Values;
    use proptest::prelude::*;

    /// An exact type, one of its values, and a double near it.
    fn beside() -> impl Strategy<Value = (ColumnType, i128, f64)> {
        let decimal = |precision, scale| ColumnType::Decimal { precision, scale };
        let types =
            [ColumnType::SmallInt, ColumnType::BigInt, decimal(4, 2), decimal(20, 3), decimal(38, 30)];
        (prop::sample::select(types.to_vec()), any::<i128>(), 0..128_u32, -3..4_i32).prop_map(
            |(ty, random, shift, ulps)| {
                let numbers = Numbers::of(ty).unwrap();
                let n = (random >> shift).clamp(numbers.min, numbers.max);
                let near = (0..ulps.abs())
                    .fold(numbers.double(n), |d, _| if ulps < 0 { d.next_down() } else { d.next_up() });
                (ty, n, near)
            },
        )
    }

    proptest! {
        #[test]
        fn exact_numbers_beside_doubles_compare_as_doubles((ty, n, d) in beside()) {
            let numbers = Numbers::of(ty).unwrap();
            let nearest: f64 = numbers.value(n).to_string().parse().unwrap();
            for op in [CmpOp::Eq, CmpOp::Ne, CmpOp::Lt, CmpOp::Le, CmpOp::Gt, CmpOp::Ge] {
                let predicate = compare_value(Field::Column(ColumnId(0)), ty, op, Value::Double(d)).unwrap();
                let found = predicate.eval(&Values(&[numbers.value(n)])).unwrap();
                let wanted = op.holds(compare_doubles(nearest, d));
                prop_assert_eq!(found, Some(wanted), "{} {} {}", numbers.value(n), op.sql(), d);
            }
        }
    }

    #[test]
    fn what_no_number_reaches_is_every_one_or_none() {
        let compare =
            |op, d| compare_value(Field::Column(ColumnId(0)), ColumnType::BigInt, op, Value::Double(d));
        for (op, d, wanted) in [
            (CmpOp::Lt, f64::NAN, true),
            (CmpOp::Ge, f64::INFINITY, false),
            (CmpOp::Gt, f64::NEG_INFINITY, true),
            (CmpOp::Eq, f64::NAN, false),
            (CmpOp::Eq, -0.0, true),
            (CmpOp::Lt, 1e300, true),
        ] {
            let found = compare(op, d).unwrap().eval(&Values(&[Value::Int(0)])).unwrap();
            assert_eq!(found, Some(wanted), "0 {} {d}", op.sql());
        }
    }
}
