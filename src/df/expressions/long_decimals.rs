//! How many digits decimals have; comparisons of those that have no common type of 38 digits.
//!
//! `d < 12345678901234567890123456789012345678` has 38 digits before the point, a DECIMAL(30,8) eight behind it.
//! DataFusion drops digits before the point, and values that have them fail to cast. Arrow's longer decimals hold any
//! two of ours.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Case, Cast};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, cast};

use super::doubles::peers;
use crate::df::rewrite::settled_type;

/// Casts compared decimals and integers to longer ones where needed. Runs before type coercion.
pub fn long_decimals(mut expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let compares = match &expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => op.supports_propagation(),
        expr => matches!(expr, Expr::Between(_) | Expr::InList(_) | Expr::Case(Case { expr: Some(_), .. })),
    };
    // The compared operands of a CASE come before its results.
    let compared = if compares { peers(&mut expr).into_iter().next() } else { None };
    let changed = compared.is_some_and(|compared| lengthen(compared, schema));
    Ok(if changed { Transformed::yes(expr) } else { Transformed::no(expr) })
}

/// Digits before the point, and behind it.
pub type Digits = (u8, u8);

/// Casts `peers` to a long decimal that holds them all, if 38 digits do not; true if it did.
fn lengthen(peers: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    let types: Vec<DataType> = peers
        .iter()
        .map(|peer| match &**peer {
            // A parameter takes the type of its peer.
            Expr::Placeholder(_) => DataType::Null,
            peer => settled_type(peer, schema).unwrap_or(DataType::Null),
        })
        .collect();
    if !types.iter().any(DataType::is_decimal) {
        return false;
    }
    let known = peers.iter().zip(&types).filter(|(_, ty)| !ty.is_null());
    let Some(digits) = known.map(|(peer, ty)| digits(peer, ty)).collect::<Option<Vec<Digits>>>() else {
        return false;
    };
    let before = digits.iter().map(|(before, _)| *before).max().unwrap_or_default();
    let behind = digits.iter().map(|(_, behind)| *behind).max().unwrap_or_default();
    let long = DECIMAL128_MAX_PRECISION + 1..=DECIMAL256_MAX_PRECISION;
    if !long.contains(&before.saturating_add(behind)) {
        return false;
    }
    let ty = DataType::Decimal256(DECIMAL256_MAX_PRECISION, behind as i8);
    for (peer, _) in peers.into_iter().zip(types).filter(|(_, ty)| !ty.is_null()) {
        *peer = cast(std::mem::take(peer), ty.clone());
    }
    true
}

/// Most digits of a value of an exact type; of a literal, its own. `None` for other types.
fn digits(expr: &Expr, ty: &DataType) -> Option<Digits> {
    let all = |number: u128| number.checked_ilog10().map_or(0, |log| log as u8 + 1);
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(number)), _) => Some((all(number.unsigned_abs().into()), 0)),
        Expr::Literal(ScalarValue::Decimal128(Some(number), _, scale @ 0..), _) => {
            let scale = scale.unsigned_abs();
            Some((all(number.unsigned_abs()).saturating_sub(scale), scale))
        }
        _ => digits_of_type(ty),
    }
}

/// Most digits of a value of an exact type; `None` for other types.
fn digits_of_type(ty: &DataType) -> Option<Digits> {
    Some(match ty {
        DataType::Decimal128(precision, scale @ 0..) | DataType::Decimal256(precision, scale @ 0..) => {
            (precision.saturating_sub(scale.unsigned_abs()), scale.unsigned_abs())
        }
        DataType::Int8 | DataType::UInt8 => (3, 0),
        DataType::Int16 | DataType::UInt16 => (5, 0),
        DataType::Int32 | DataType::UInt32 => (10, 0),
        DataType::Int64 => (19, 0),
        DataType::UInt64 => (20, 0),
        _ => return None,
    })
}

/// Each value of one exact type is one of the other, too.
pub fn has_room(from: &DataType, to: &DataType) -> bool {
    let room = digits_of_type(from).zip(digits_of_type(to));
    room.is_some_and(|(from, to)| from.0 <= to.0 && from.1 <= to.1)
}

/// Most digits of a sum, difference or product of two decimals; `None` if they are not known.
pub fn digits_of_result(op: Operator, left: &Expr, right: &Expr, schema: &DFSchema) -> Option<Digits> {
    let ((a, s), (b, t)) = (most_digits(left, schema)?, most_digits(right, schema)?);
    match op {
        Operator::Plus | Operator::Minus => Some((a.max(b).saturating_add(1), s.max(t))),
        Operator::Multiply => Some((a.saturating_add(b), s.saturating_add(t))),
        _ => None,
    }
}

fn most_digits(expr: &Expr, schema: &DFSchema) -> Option<Digits> {
    match expr {
        // Another run of the plan may bring a longer value.
        Expr::Placeholder(_) => None,
        // Coercion casts the 1 of `1 - d` to a type of 20 digits. A cast to fewer digits may round up: 9.9 to 10.
        Expr::Cast(Cast { expr: literal, field }) if matches!(**literal, Expr::Literal(..)) => {
            let (most, behind) = digits(expr, field.data_type())?;
            let own = digits(literal, &DataType::Null);
            Some((own.map_or(most, |(before, _)| before.saturating_add(1)), behind))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => digits_of_result(*op, left, right, schema),
        expr => digits(expr, &expr.get_type(schema).ok()?),
    }
}
