//! Turns comparisons of a function of a column with a literal into conditions on the column itself.
//!
//! `date_trunc('day', ts) = '2017-01-01'` becomes `ts >= '2017-01-01' AND ts < '2017-01-02'`, and `left(name, 3) =
//! 'ann'` becomes `name LIKE 'ann%'`, so both turn into key ranges. Each condition is true, false or unknown exactly
//! where the original comparison is.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, expr::ScalarFunction};

use super::comparison::{compare_value, never};
use super::expr::{FieldNames, value_of};
use crate::key::{TimeFormat, reversed, text_successor};
use crate::plan::{CmpOp, Field, LikePattern, PLAIN_ESCAPE, Predicate};
use crate::value::{ColumnType, US_PER_DAY, Value, unit_around};

/// The condition equivalent to `expr op value`; `None` if `expr` is no such function.
pub fn compare(expr: &Expr, op: CmpOp, value: &Value, names: &FieldNames) -> Option<Predicate> {
    match expr {
        Expr::Alias(alias) => compare(&alias.expr, op, value, names),
        Expr::Cast(cast) => {
            let Value::Date(days) = value else { return None };
            let stepped = Stepped::of(&cast.expr, names)?;
            stepped.compare(op, i64::from(*days).checked_mul(US_PER_DAY)?, "day")
        }
        Expr::ScalarFunction(call) => function(call, op, value, names),
        _ => None,
    }
}

fn function(call: &ScalarFunction, op: CmpOp, value: &Value, names: &FieldNames) -> Option<Predicate> {
    match (call.name(), &call.args[..], value) {
        ("date_trunc", [unit, of], Value::Timestamp(us) | Value::TimestampTz(us)) => {
            Stepped::of(of, names)?.compare(op, *us, text(unit)?)
        }
        ("to_char", [of, format], Value::Text(shown)) => {
            let format = TimeFormat::parse(text(format)?).ok()?;
            if format.sorts() {
                return Some(FormattedTime::of(of, format, names)?.compare(op, shown));
            }
            let (stepped, time) = (Stepped::of(of, names)?, format.parse_time(shown));
            match (time, format.unit(), op) {
                _ if !format.decodable() => None,
                (Some(time), Some(unit), CmpOp::Eq | CmpOp::Ne) => {
                    stepped.compare(op, time.and_utc().timestamp_micros(), unit)
                }
                (None, _, CmpOp::Eq) => Some(never(stepped.field)),
                (None, _, CmpOp::Ne) => Some(never(stepped.field).not()),
                _ => None,
            }
        }
        ("right", [of, count], Value::Text(end)) => ends(of, number(count)?, op, end, names),
        ("reverse", [of], Value::Text(turned)) => {
            let (Expr::Column(_), (field, ColumnType::Varchar)) = (of, names.of(of)?) else { return None };
            let equality = matches!(op, CmpOp::Eq | CmpOp::Ne);
            equality.then(|| Predicate::compare(field, op, Value::Text(reversed(turned))))
        }
        ("left", [of, count], Value::Text(start)) => starts(of, number(count)?, op, start, names),
        ("substr" | "substring", [of, from, count], Value::Text(start)) if number(from)? == 1 => {
            starts(of, number(count)?, op, start, names)
        }
        _ => None,
    }
}

/// A time column, rounded down to some unit.
struct Stepped {
    field: Field,
    ty: ColumnType,
}

impl Stepped {
    fn of(expr: &Expr, names: &FieldNames) -> Option<Stepped> {
        // A date is cast to its midnight.
        let (Expr::Column(_) | Expr::Cast(_)) = expr else { return None };
        let (field, ty) = names.of(expr)?;
        ty.is_time().then_some(Stepped { field, ty })
    }

    /// Compares the rounded time with `us`.
    fn compare(&self, op: CmpOp, us: i64, unit: &str) -> Option<Predicate> {
        let (start, next) = unit_around(unit, us)?;
        let at = |op: CmpOp, us: i64| {
            let value = match self.ty {
                ColumnType::TimestampTz => Value::TimestampTz(us),
                _ => Value::Timestamp(us),
            };
            compare_value(self.field, self.ty, op, value)
        };
        // The earliest time that rounds down to `us` or later.
        let reached = if start == us { us } else { next };
        match op {
            CmpOp::Eq if start == us => Some(Predicate::and([at(CmpOp::Ge, start)?, at(CmpOp::Lt, next)?])),
            CmpOp::Eq => Some(never(self.field)),
            CmpOp::Ne => Some(self.compare(CmpOp::Eq, us, unit)?.not()),
            CmpOp::Lt => at(CmpOp::Lt, reached),
            CmpOp::Ge => at(CmpOp::Ge, reached),
            CmpOp::Le => at(CmpOp::Lt, next),
            CmpOp::Gt => at(CmpOp::Ge, next),
        }
    }
}

/// `expr LIKE pattern`, if the pattern is a plain text or a prefix.
pub fn like(expr: &Expr, pattern: &LikePattern, names: &FieldNames) -> Option<Predicate> {
    let Expr::ScalarFunction(call) = expr else { return None };
    if let ("reverse", [of @ Expr::Column(_)]) = (call.name(), &call.args[..]) {
        let (field, ColumnType::Varchar) = names.of(of)? else { return None };
        let end = reversed(pattern.prefix());
        return match pattern.as_exact() {
            Some(text) => Some(Predicate::compare(field, CmpOp::Eq, Value::Text(reversed(text)))),
            None if pattern.is_prefix() => Some(Predicate::like(field, ending_with(&end)?, false)),
            None => None,
        };
    }
    let ("to_char", [of, format]) = (call.name(), &call.args[..]) else { return None };
    let format = TimeFormat::parse(text(format)?).ok().filter(TimeFormat::sorts)?;
    let shown = FormattedTime::of(of, format, names)?;
    if let Some(text) = pattern.as_exact() {
        return Some(shown.compare(CmpOp::Eq, text));
    }
    if !pattern.is_prefix() {
        return None;
    }
    let before = text_successor(pattern.prefix()).map(|to| shown.compare(CmpOp::Lt, &to));
    Some(Predicate::and([shown.compare(CmpOp::Ge, pattern.prefix())].into_iter().chain(before)))
}

/// A time shown as text in a format whose texts sort like the times: `to_char(ts, 'YYYY-MM')`.
struct FormattedTime {
    field: Field,
    ty: ColumnType,
    format: TimeFormat,
}

impl FormattedTime {
    fn of(expr: &Expr, format: TimeFormat, names: &FieldNames) -> Option<FormattedTime> {
        let Expr::Column(_) = expr else { return None };
        let (field, ty) = names.of(expr)?;
        ty.is_time().then_some(FormattedTime { field, ty, format })
    }

    fn compare(&self, op: CmpOp, text: &str) -> Predicate {
        let from = |beyond: bool| match self.format.first_at(text, beyond) {
            None => never(self.field),
            Some(us) => Predicate::compare(self.field, CmpOp::Ge, self.first(us)),
        };
        match op {
            CmpOp::Eq => Predicate::and([from(false), from(true).not()]),
            CmpOp::Ne => Predicate::and([from(false), from(true).not()]).not(),
            CmpOp::Lt => from(false).not(),
            CmpOp::Le => from(true).not(),
            CmpOp::Gt => from(true),
            CmpOp::Ge => from(false),
        }
    }

    /// The first value that is not before `us`; a date counts as its midnight.
    fn first(&self, us: i64) -> Value {
        match self.ty {
            ColumnType::Date => Value::Date((us + US_PER_DAY - 1).div_euclid(US_PER_DAY) as i32),
            ColumnType::TimestampTz => Value::TimestampTz(us),
            _ => Value::Timestamp(us),
        }
    }
}

/// `right(text, count)` equals `end`, or differs from it.
fn ends(of: &Expr, count: i64, op: CmpOp, end: &str, names: &FieldNames) -> Option<Predicate> {
    cut(of, count, op, end, names, |field| Some(Predicate::like(field, ending_with(end)?, false)))
}

fn ending_with(text: &str) -> Option<LikePattern> {
    LikePattern::new(LikePattern::plain(text, true, false), Some(PLAIN_ESCAPE)).ok()
}

/// `left(text, count)` equals `start`, or differs from it.
fn starts(of: &Expr, count: i64, op: CmpOp, start: &str, names: &FieldNames) -> Option<Predicate> {
    cut(of, count, op, start, names, |field| {
        let from = Predicate::compare(field, CmpOp::Ge, Value::Text(start.to_owned()));
        let to = text_successor(start).map(|to| Predicate::compare(field, CmpOp::Lt, Value::Text(to)));
        Some(Predicate::and(std::iter::once(from).chain(to)))
    })
}

/// At most `count` characters from one end of a text equal `part`, or differ from it. `has_there`: the text has `part`
/// at that end.
fn cut(
    of: &Expr,
    count: i64,
    op: CmpOp,
    part: &str,
    names: &FieldNames,
    has_there: impl Fn(Field) -> Option<Predicate>,
) -> Option<Predicate> {
    let (field, ColumnType::Varchar) = names.of(of)? else { return None };
    let count = usize::try_from(count).ok().filter(|count| *count > 0)?;
    let equal = match part.chars().count() {
        n if n > count => never(field),
        n if n < count => Predicate::compare(field, CmpOp::Eq, Value::Text(part.to_owned())),
        _ => has_there(field)?,
    };
    match op {
        CmpOp::Eq => Some(equal),
        CmpOp::Ne => Some(equal.not()),
        _ => None,
    }
}

/// The text of a literal.
pub(super) fn text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) => Some(text),
        _ => None,
    }
}

/// The integer of a literal.
pub(super) fn number(expr: &Expr) -> Option<i64> {
    let Expr::Literal(scalar, _) = expr else { return None };
    match value_of(scalar).ok()? {
        Value::Int(n) => Some(n),
        _ => None,
    }
}
