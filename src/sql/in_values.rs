//! VALUES: as a subquery, as in `x IN (VALUES (1), (2))`, they become a SELECT; what is written in a column takes one
//! type: texts beside times are times, decimals beside doubles are doubles; and a parameter has the type of its value.

use sqlparser::ast::{
    DataType, ExactNumberInfo, Expr, Parens, Query, SetExpr, TableFactor, TypedString, UnaryOperator, Value,
    ValueWithSpan,
};

use super::parser::{column_type, parse_query};
use super::rewrite::{cast_as, cast_to, parameter_place, take};
use crate::error::Result;
use crate::value::ColumnType;

/// Wraps the VALUES in a SELECT: DataFusion only takes a subquery whose columns have names.
pub(super) fn as_select(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::InSubquery { subquery, .. } | Expr::Subquery(subquery) | Expr::Exists { subquery, .. } => {
            selected(subquery)
        }
        _ => Ok(()),
    }
}

fn selected(query: &mut Query) -> Result<()> {
    if !matches!(*query.body, SetExpr::Values(_)) {
        return Ok(());
    }
    let mut around = parse_query("SELECT * FROM (VALUES (1)) AS listed")?;
    if let SetExpr::Select(select) = &mut *around.body
        && let Some(TableFactor::Derived { subquery, .. }) = select.from.first_mut().map(|f| &mut f.relation)
    {
        std::mem::swap(&mut subquery.body, &mut query.body);
        query.body = around.body;
    }
    Ok(())
}

/// Casts the texts in the rows of VALUES to the type of the times in the same column, and decimals to doubles beside
/// these: DataFusion refuses such texts or takes nanoseconds, and makes decimals of doubles. Parameters are cast to their
/// types, which `type_of` gives: to DataFusion, their columns would have none.
pub fn as_one_type(query: &mut Query, type_of: &dyn Fn(usize) -> Option<ColumnType>) {
    let mut bodies = vec![&mut *query.body];
    while let Some(body) = bodies.pop() {
        match body {
            SetExpr::SetOperation { left, right, .. } => bodies.extend([&mut **left, &mut **right]),
            SetExpr::Values(values) => {
                values
                    .rows
                    .iter_mut()
                    .flat_map(|row| row.iter_mut())
                    .for_each(|expr| as_own_type(expr, type_of));
                as_widest(&mut values.rows);
            }
            _ => {}
        }
    }
}

/// Digits (count) of a parameter that is a decimal, at least: that of another run may have more than this one's.
pub const PARAMETER_DIGITS: u8 = 18;

fn as_own_type(expr: &mut Expr, type_of: &dyn Fn(usize) -> Option<ColumnType>) {
    let Expr::Value(ValueWithSpan { value: Value::Placeholder(name), .. }) = expr else { return };
    let ty = match parameter_place(name).and_then(type_of) {
        Some(ColumnType::Decimal { precision, scale }) => {
            Some(ColumnType::Decimal { precision: precision.max(PARAMETER_DIGITS), scale })
        }
        ty => ty,
    };
    if let Some(cast) = ty.and_then(|ty| cast_to(expr, ty)) {
        *expr = cast;
    }
}

fn as_widest(rows: &mut [Parens<Vec<Expr>>]) {
    for at in 0..rows.first().map_or(0, |row| row.len()) {
        let types = rows.iter().filter_map(|row| written_type(row.get(at)?));
        let Some((widest, ty)) = types.max_by_key(|(width, _)| *width) else { continue };
        for expr in rows.iter_mut().filter_map(|row| row.get_mut(at)) {
            let is_other = match written_type(expr) {
                Some((width, _)) => width != widest && (width >= DATE) == (widest >= DATE),
                None => widest >= DATE && is_text(expr),
            };
            if is_other {
                *expr = cast_as(take(expr), ty.clone());
            }
        }
    }
}

fn is_text(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(_), .. }))
}

/// The width of a DATE; those of numbers are smaller, those of other times greater.
const DATE: u8 = 2;

/// The type that a value is written with, if it is a time, a decimal or a double; the one with the greatest number can
/// hold the others.
fn written_type(expr: &Expr) -> Option<(u8, DataType)> {
    match expr {
        Expr::TypedString(TypedString { data_type, .. }) | Expr::Cast { data_type, .. } => {
            Some(match column_type(data_type) {
                Ok(ColumnType::Decimal { .. }) => (0, data_type.clone()),
                Ok(ColumnType::Real | ColumnType::Double) => (1, DataType::DoublePrecision),
                Ok(ColumnType::Date) => (DATE, data_type.clone()),
                Ok(ColumnType::Timestamp) => (DATE + 1, data_type.clone()),
                Ok(ColumnType::TimestampTz) => (DATE + 2, data_type.clone()),
                _ => return None,
            })
        }
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => written_type(expr),
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => {
            if digits.contains(['e', 'E']) {
                return Some((1, DataType::DoublePrecision));
            }
            digits.contains('.').then_some((0, DataType::Decimal(ExactNumberInfo::None)))
        }
        _ => None,
    }
}
