//! Conditions on what a key part computes: `lpad(id, 4) = '0007'`, where a key or an index has `lpad(id, 4)`.
//!
//! The expression is recognised as that of a part, whatever casts DataFusion put around the column. Where it can be
//! undone, the condition becomes one on the column: `id = 7`. Any other becomes [`Predicate::Part`].

use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use std::sync::Arc;

use super::comparison::{compare_value, exact, never};
use super::expr::{FieldNames, flipped, opaque};
use super::inverse::{number, text};
use crate::key::{ColumnId, MD5_DIGITS, PartExpr, Transform, reversed, text_successor};
use crate::plan::{CmpOp, Field, LikePattern, Predicate};
use crate::row::column_type_of;
use crate::value::{ColumnType, Value};

/// `expr op value`; `None` if no key part computes the expression.
pub fn compare(expr: &Expr, op: CmpOp, value: &Value, names: &FieldNames) -> Option<Predicate> {
    let Some(part) = part_of(expr, names) else {
        let (Reversed { part, padding: false }, Value::Text(text)) = (Reversed::of(expr, names)?, value)
        else {
            return None;
        };
        let &[column] = part.columns() else { return None };
        return undone(part, Field::Column(column), op, &Value::Text(reversed(text)), names);
    };
    let value = exact(part.ty(), value)?;
    if let &[column] = part.columns()
        && let Some(found) = undone(part, Field::Column(column), op, &value, names)
    {
        return Some(found);
    }
    // Other names have no code, which is an error that a comparison must not hide.
    (!part.is_partial()).then(|| Predicate::Part { part: Arc::clone(part), op, value })
}

/// `expr LIKE pattern`, if the pattern is a plain text, a prefix, or a suffix of what a part reverses. `call`: the
/// condition.
pub fn like(
    expr: &Expr,
    pattern: &LikePattern,
    call: &ScalarFunction,
    names: &FieldNames,
) -> Option<Predicate> {
    if let Some(text) = pattern.as_exact() {
        return compare(expr, CmpOp::Eq, &Value::Text(text.to_owned()), names);
    }
    if pattern.is_suffix() {
        let Reversed { part, padding } = Reversed::of(expr, names)?;
        let end = pattern.suffix();
        let compare = |op, value| Some(Predicate::Part { part: Arc::clone(part), op, value });
        let begins = begins_with(&reversed(end), compare)?;
        // Only zeros can be of the padding, which the text does not have.
        let is_exact = !padding || !end.starts_with('0');
        return Some(if is_exact {
            begins
        } else {
            Predicate::and([begins, opaque(&Expr::ScalarFunction(call.clone()))])
        });
    }
    if !pattern.is_prefix() {
        return None;
    }
    begins_with(pattern.prefix(), |op, value| compare(expr, op, &value, names))
}

/// A comparison of texts with those that begin so.
fn begins_with(prefix: &str, compare: impl Fn(CmpOp, Value) -> Option<Predicate>) -> Option<Predicate> {
    let from = compare(CmpOp::Ge, Value::Text(prefix.to_owned()))?;
    match text_successor(prefix) {
        Some(to) => Some(Predicate::and([from, compare(CmpOp::Lt, Value::Text(to))?])),
        None => Some(from),
    }
}

/// A key part that reverses what an expression computes.
struct Reversed<'n> {
    part: &'n Arc<PartExpr>,
    /// The part pads with zeros, the expression does not.
    padding: bool,
}

impl<'n> Reversed<'n> {
    /// Of `lpad(number, width)`, or of a number's text.
    fn of(expr: &Expr, names: &'n FieldNames) -> Option<Reversed<'n>> {
        let find =
            |wanted: &dyn Fn(&Transform) -> bool| names.parts.iter().find(|part| wanted(part.transform()));
        if let Expr::ScalarFunction(call) = expr {
            let Transform::Lpad { column, width, pad: '0' } = called(call, names)? else { return None };
            let wanted = Transform::Reverse { column, width: Some(width) };
            return find(&|known| *known == wanted).map(|part| Reversed { part, padding: false });
        }
        let Expr::Cast(cast) = expr else { return None };
        let (of, _) = integer(&cast.expr, names)?;
        if column_type_of(&cast.field)? != ColumnType::Varchar {
            return None;
        }
        let width_of = |known: &Transform| match known {
            Transform::Reverse { column, width } if *column == of => Some(width.is_some()),
            _ => None,
        };
        let part = find(&|known| width_of(known).is_some())?;
        Some(Reversed { part, padding: width_of(part.transform()) == Some(true) })
    }
}

/// The condition on the part's column.
fn undone(part: &PartExpr, field: Field, op: CmpOp, value: &Value, names: &FieldNames) -> Option<Predicate> {
    let is_difference = part.ty() == ColumnType::BigInt;
    let op = match op {
        CmpOp::Eq | CmpOp::Ne => op,
        // MAX - col runs backwards.
        _ if is_difference => flipped(op),
        _ => return None,
    };
    let ty = names.columns.values().find(|(known, _)| *known == field)?.1;
    match part.undone(value)? {
        Some(found) => compare_value(field, ty, op, found),
        None if op == CmpOp::Eq => Some(never(field)),
        None if op == CmpOp::Ne => Some(never(field).not()),
        None => None,
    }
}

/// The key part that computes an expression.
fn part_of<'n>(expr: &Expr, names: &'n FieldNames) -> Option<&'n Arc<PartExpr>> {
    if names.parts.is_empty() {
        return None;
    }
    let wanted = transform(expr, names)?;
    names.parts.iter().find(|part| *part.transform() == wanted)
}

/// The transform of a key part that an expression writes.
fn transform(expr: &Expr, names: &FieldNames) -> Option<Transform> {
    match expr {
        Expr::Alias(alias) => transform(&alias.expr, names),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Modulo, right }) => {
            let (column, _) = integer(left, names)?;
            Some(Transform::Modulo { column, buckets: count(right)? })
        }
        Expr::ScalarFunction(call) => called(call, names),
        _ => None,
    }
}

fn called(call: &ScalarFunction, names: &FieldNames) -> Option<Transform> {
    match (call.name(), &call.args[..]) {
        ("lpad", [padded, width, pad @ ..]) => lpad(padded, count(width)?, pad, names),
        ("rpad", [padded, width, pad @ ..]) => {
            let (column, ColumnType::Varchar) = column(padded, names)? else { return None };
            Some(Transform::Rpad { column, width: count(width)?, pad: pad_of(pad, ' ')? })
        }
        ("reverse", [of]) => match of {
            Expr::ScalarFunction(inner) => match called(inner, names)? {
                Transform::Lpad { column, width, pad: '0' } => {
                    Some(Transform::Reverse { column, width: Some(width) })
                }
                _ => None,
            },
            of => Some(Transform::Reverse { column: hashed(of, names)?, width: None }),
        },
        ("subtract", [max, of]) => {
            let (column, _) = integer(of, names)?;
            Some(Transform::MaxMinus { column, max: number(max)?, width: None })
        }
        ("md5", [of]) => Some(Transform::Md5(hashed(of, names)?)),
        ("left", [digest, len]) => digits(digest, Some(0), count(len)?, names),
        ("right", [digest, len]) => digits(digest, None, count(len)?, names),
        ("substr" | "substring", [digest, from, len @ ..]) => {
            let from = count::<u8>(from)?.checked_sub(1)?;
            let len = match len {
                [] => MD5_DIGITS.checked_sub(from)?,
                [len, ..] => count(len)?,
            };
            digits(digest, Some(from), len, names)
        }
        ("md5_bucket", [of @ .., buckets]) => {
            let columns = of.iter().map(|of| hashed(of, names)).collect::<Option<_>>()?;
            Some(Transform::Md5Bucket { columns, buckets: count(buckets)? })
        }
        ("to_char", [of, format]) => {
            let (column, _) = column(of, names)?;
            Some(Transform::ToChar { column, format: text(format)?.to_owned() })
        }
        ("code", [of, codes]) => {
            let (column, _) = column(of, names)?;
            Some(Transform::Code { column, codes: crate::sql::parse_codes(text(codes)?).ok()? })
        }
        _ => None,
    }
}

fn lpad(of: &Expr, width: u16, pad: &[Expr], names: &FieldNames) -> Option<Transform> {
    if let Some((column, ColumnType::Varchar)) = column(of, names) {
        return Some(Transform::Lpad { column, width, pad: pad_of(pad, ' ')? });
    }
    if pad_of(pad, '0')? != '0' {
        return None;
    }
    if let Expr::ScalarFunction(call) = of {
        return match called(call, names)? {
            Transform::MaxMinus { column, max, .. } => {
                Some(Transform::MaxMinus { column, max, width: Some(width) })
            }
            _ => None,
        };
    }
    let (column, ty) = column(of, names)?;
    let is_number = ty.is_integer() || matches!(ty, ColumnType::Decimal { .. });
    is_number.then_some(Transform::Lpad { column, width, pad: '0' })
}

/// The character to pad with.
fn pad_of(pad: &[Expr], otherwise: char) -> Option<char> {
    let [pad] = pad else { return pad.is_empty().then_some(otherwise) };
    let mut chars = text(pad)?.chars();
    chars.next().filter(|_| chars.next().is_none())
}

/// Digits of `md5(col)`; `from`: `None` for the last ones.
fn digits(digest: &Expr, from: Option<u8>, len: u8, names: &FieldNames) -> Option<Transform> {
    let Expr::ScalarFunction(call) = digest else { return None };
    let Transform::Md5(column) = called(call, names)? else { return None };
    let from = from.or_else(|| MD5_DIGITS.checked_sub(len))?;
    Some(Transform::Md5Hex { column, from, len })
}

fn column(expr: &Expr, names: &FieldNames) -> Option<(ColumnId, ColumnType)> {
    let Expr::Column(column) = expr else { return None };
    match names.columns.get(&column.name)? {
        (Field::Column(id), ty) => Some((*id, *ty)),
        _ => None,
    }
}

/// A column of integers, maybe widened.
fn integer(expr: &Expr, names: &FieldNames) -> Option<(ColumnId, ColumnType)> {
    match expr {
        Expr::Cast(cast) if column_type_of(&cast.field)? == ColumnType::BigInt => integer(&cast.expr, names),
        _ => column(expr, names).filter(|(_, ty)| ty.is_integer()),
    }
}

/// A column whose text form is hashed, maybe cast without changing that form.
fn hashed(expr: &Expr, names: &FieldNames) -> Option<ColumnId> {
    let Expr::Cast(cast) = expr else { return column(expr, names).map(|(id, _)| id) };
    match column_type_of(&cast.field)? {
        ColumnType::BigInt | ColumnType::Varchar => Some(integer(&cast.expr, names)?.0),
        _ => None,
    }
}

fn count<T: TryFrom<i64>>(expr: &Expr) -> Option<T> {
    T::try_from(number(expr)?).ok()
}
