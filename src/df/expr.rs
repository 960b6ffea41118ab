//! Converts DataFusion's `Expr` to our [`Predicate`].
//!
//! A condition that the algebra cannot express becomes [`Predicate::Opaque`]: DataFusion evaluates it above the scan.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use sqlparser::ast::BinaryOperator;

use super::comparison::{compare_value, exact};
use super::formula::formula;
use super::literals::words;
use super::{inverse, of_parts};
use crate::df::expressions::long_decimals::has_room;
use crate::df::expressions::{like, quotients};
use crate::error::Result;
use crate::key::{PartExpr, prefix_end};
use crate::plan::{CmpOp, Field, Formula, LikePattern, PLAIN_ESCAPE, Predicate};
use crate::row::{any_value_at, arrow_type, column_type_of};
use crate::value::{ColumnType, Value, canonical_double};

/// Fields of one relation as queries name them.
#[derive(Clone, Debug, Default)]
pub struct FieldNames {
    /// Columns by name.
    pub columns: HashMap<String, (Field, ColumnType)>,
    /// Formulas that its indexes compute.
    pub formulas: Vec<ComputedField>,
    /// What its key and its indexes compute of columns.
    pub parts: Vec<Arc<PartExpr>>,
}

/// A formula, and the field that holds its value.
#[derive(Clone, Debug)]
pub struct ComputedField {
    /// The formula.
    pub formula: Formula,
    /// The hidden column that stores it.
    pub field: Field,
    /// Type of that column.
    pub ty: ColumnType,
    /// An index over all rows has it as its leading column.
    pub leads: bool,
}

impl FieldNames {
    /// The field that an expression reads, and the field's type.
    pub fn of(&self, expr: &Expr) -> Option<(Field, ColumnType)> {
        let computed = self.computed(expr).map(|computed| (computed.field, computed.ty));
        computed.or_else(|| self.of_column(expr))
    }

    /// The known formula that equals an expression.
    pub fn computed(&self, expr: &Expr) -> Option<&ComputedField> {
        if self.formulas.is_empty() || matches!(expr, Expr::Column(_)) {
            return None;
        }
        let (wanted, _) = formula(expr, self)?;
        self.formulas.iter().find(|known| known.formula == wanted)
    }

    fn of_column(&self, expr: &Expr) -> Option<(Field, ColumnType)> {
        match expr {
            Expr::Column(column) => self.columns.get(&column.name).copied(),
            // A cast that keeps values distinct and in order does not matter when comparing with a literal of the wider
            // type.
            Expr::Cast(cast) => {
                let (field, ty) = self.of(&cast.expr)?;
                keeps_order(ty, cast.field.data_type()).then_some((field, ty))
            }
            _ => None,
        }
    }
}

fn keeps_order(from: ColumnType, to: &arrow::datatypes::DataType) -> bool {
    use arrow::datatypes::DataType::{
        Decimal128, Float32, Float64, Int16, Int32, Int64, LargeUtf8, Utf8, Utf8View,
    };
    if matches!(to, Decimal128(..)) {
        return has_room(&arrow_type(from), to);
    }
    match from {
        // Midnight, in UTC.
        ColumnType::Date => [ColumnType::Timestamp, ColumnType::TimestampTz].map(arrow_type).contains(to),
        ColumnType::SmallInt => matches!(to, Int16 | Int32 | Int64 | Float32 | Float64),
        ColumnType::Integer => matches!(to, Int32 | Int64 | Float64),
        ColumnType::BigInt => matches!(to, Int64),
        ColumnType::Real => matches!(to, Float32 | Float64),
        ColumnType::Double => matches!(to, Float64),
        ColumnType::Varchar | ColumnType::Uuid | ColumnType::Json => {
            matches!(to, Utf8 | LargeUtf8 | Utf8View)
        }
        _ => false,
    }
}

/// The predicate of a filter expression.
pub fn predicate(expr: &Expr, names: &FieldNames) -> Predicate {
    known(expr, names).unwrap_or_else(|| opaque(expr))
}

/// A condition that is not of the algebra.
pub fn opaque(expr: &Expr) -> Predicate {
    Predicate::Opaque(words(&expr.to_string()))
}

fn known(expr: &Expr, names: &FieldNames) -> Option<Predicate> {
    match expr {
        Expr::Literal(ScalarValue::Boolean(Some(true)), _) => Some(Predicate::True),
        Expr::Literal(ScalarValue::Boolean(Some(false)), _) => Some(Predicate::False),
        Expr::Literal(ScalarValue::Boolean(None) | ScalarValue::Null, _) => Some(Predicate::Unknown),
        Expr::Alias(alias) => known(&alias.expr, names),
        Expr::Not(inner) => Some(predicate(inner, names).not()),
        Expr::IsTrue(inner) => is_certainly(true, inner, names),
        Expr::IsNotTrue(inner) => Some(is_certainly(true, inner, names)?.not()),
        Expr::IsFalse(inner) => is_certainly(false, inner, names),
        Expr::IsNotFalse(inner) => Some(is_certainly(false, inner, names)?.not()),
        Expr::IsNull(inner) | Expr::IsUnknown(inner) => {
            Some(Predicate::IsNull { field: names.of(inner)?.0, negated: false })
        }
        Expr::IsNotNull(inner) | Expr::IsNotUnknown(inner) => {
            Some(Predicate::IsNull { field: names.of(inner)?.0, negated: true })
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            Some(Predicate::and(vec![predicate(left, names), predicate(right, names)]))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            Some(Predicate::or(vec![predicate(left, names), predicate(right, names)]))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::IsNotDistinctFrom, right }) => {
            same(left, right, names).or_else(|| same(right, left, names))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::IsDistinctFrom, right }) => {
            Some(same(left, right, names).or_else(|| same(right, left, names))?.not())
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let op = comparison(*op)?;
            compare(left, op, right, names).or_else(|| compare(right, flipped(op), left, names))
        }
        Expr::Between(between) => {
            let low = compare(&between.expr, CmpOp::Ge, &between.low, names)?;
            let high = compare(&between.expr, CmpOp::Le, &between.high, names)?;
            let both = Predicate::and(vec![low, high]);
            Some(if between.negated { both.not() } else { both })
        }
        Expr::InList(list) => {
            if let Some(listed) = listed(list, names) {
                return Some(listed);
            }
            let any: Option<Vec<_>> =
                list.list.iter().map(|item| compare(&list.expr, CmpOp::Eq, item, names)).collect();
            let any = Predicate::or(any?);
            Some(if list.negated { any.not() } else { any })
        }
        Expr::Column(_) => {
            let (field, ColumnType::Boolean) = names.of(expr)? else { return None };
            Some(Predicate::Compare { field, op: CmpOp::Eq, value: Value::Boolean(true) })
        }
        Expr::ScalarFunction(call) => known_like(call, names),
        _ => None,
    }
}

/// `column IN (literals)`, all of the column's type: the dynamic filter of a join brings thousands.
fn listed(list: &InList, names: &FieldNames) -> Option<Predicate> {
    let Expr::Column(column) = &*list.expr else { return None };
    let (field, ty) = names.columns.get(&column.name).copied()?;
    let value = |item: &Expr| literal(item).filter(|value| !value.is_null()).and_then(|v| exact(ty, &v));
    let values: Option<Vec<Value>> = list.list.iter().map(value).collect();
    let any = Predicate::is_in(field, values?);
    Some(if list.negated { any.not() } else { any })
}

/// `column IS TRUE` or `IS FALSE`: never unknown.
fn is_certainly(truth: bool, column: &Expr, names: &FieldNames) -> Option<Predicate> {
    let (field, ColumnType::Boolean) = names.of(column)? else { return None };
    let is_it = Predicate::compare(field, CmpOp::Eq, Value::Boolean(truth));
    Some(Predicate::and([is_it, Predicate::is_null(field).not()]))
}

/// `left IS NOT DISTINCT FROM right`: never unknown.
fn same(left: &Expr, right: &Expr, names: &FieldNames) -> Option<Predicate> {
    let (field, ty) = names.of(left)?;
    let value = literal(right)?;
    if value.is_null() {
        return Some(Predicate::is_null(field));
    }
    let equal = compare_value(field, ty, CmpOp::Eq, value)?;
    Some(Predicate::and([equal, Predicate::is_null(field).not()]))
}

fn known_like(call: &ScalarFunction, names: &FieldNames) -> Option<Predicate> {
    let (text, pattern, case_insensitive) = match like::called(call) {
        Some((matches, text, pattern)) => {
            let Value::Text(pattern) = literal(pattern)? else { return None };
            (text, matches.pattern(&pattern).ok()?, matches.case_insensitive)
        }
        None => {
            let (text, part, pattern) = like::parted(call)?;
            let Value::Text(part) = literal(part)? else { return None };
            (text, LikePattern::new(pattern(&part), Some(PLAIN_ESCAPE)).ok()?, false)
        }
    };
    match names.of(text) {
        Some((field, ty)) if ty.is_text() => Some(Predicate::like(field, pattern, case_insensitive)),
        Some((field, ColumnType::Varbinary)) if !case_insensitive => bytes_like(field, &pattern, call),
        None if !case_insensitive => {
            inverse::like(text, &pattern, names).or_else(|| of_parts::like(text, &pattern, call, names))
        }
        _ => None,
    }
}

/// Bytes that match a pattern begin with those of its prefix; `None` if it has none.
fn bytes_like(field: Field, pattern: &LikePattern, call: &ScalarFunction) -> Option<Predicate> {
    let compare = |op, bytes: &[u8]| Predicate::compare(field, op, Value::Bytes(bytes.to_vec()));
    if let Some(exact) = pattern.as_exact() {
        return Some(compare(CmpOp::Eq, exact.as_bytes()));
    }
    let prefix = pattern.prefix().as_bytes();
    let mut terms = vec![compare(CmpOp::Ge, prefix), compare(CmpOp::Lt, &prefix_end(prefix)?)];
    if !pattern.is_prefix() {
        terms.push(opaque(&Expr::ScalarFunction(call.clone())));
    }
    Some(Predicate::and(terms))
}

pub(super) fn comparison(op: Operator) -> Option<CmpOp> {
    Some(match op {
        Operator::Eq => CmpOp::Eq,
        Operator::NotEq => CmpOp::Ne,
        Operator::Lt => CmpOp::Lt,
        Operator::LtEq => CmpOp::Le,
        Operator::Gt => CmpOp::Gt,
        Operator::GtEq => CmpOp::Ge,
        _ => return None,
    })
}

/// [`comparison`] for an operator of the parser.
pub(super) fn parsed_comparison(op: &BinaryOperator) -> Option<CmpOp> {
    Some(match op {
        BinaryOperator::Eq => CmpOp::Eq,
        BinaryOperator::NotEq => CmpOp::Ne,
        BinaryOperator::Lt => CmpOp::Lt,
        BinaryOperator::LtEq => CmpOp::Le,
        BinaryOperator::Gt => CmpOp::Gt,
        BinaryOperator::GtEq => CmpOp::Ge,
        _ => return None,
    })
}

fn compare(left: &Expr, op: CmpOp, right: &Expr, names: &FieldNames) -> Option<Predicate> {
    let value = literal(right)?;
    if value.is_null() {
        return names.of(left).map(|_| Predicate::Unknown);
    }
    let inverse =
        || inverse::compare(left, op, &value, names).or_else(|| of_parts::compare(left, op, &value, names));
    if let Some(ComputedField { field, ty, leads, .. }) = names.computed(left) {
        let computed = compare_value(*field, *ty, op, value.clone())?;
        // No index leads with the formula: a condition on the columns inside may still give a key range.
        let inside = if *leads { None } else { inverse() };
        return Some(Predicate::and(std::iter::once(computed).chain(inside)));
    }
    if let Some((field, text)) = as_bytes(left, &value, names) {
        return Some(Predicate::compare(field, op, text));
    }
    match names.of_column(left).or_else(|| as_doubles(left, &value, names)) {
        Some((field, ty)) => compare_value(field, ty, op, value),
        None => inverse(),
    }
}

/// The column of `CAST(text AS VARBINARY)` beside bytes that are those of a text: texts are in the order of their bytes.
fn as_bytes(expr: &Expr, value: &Value, names: &FieldNames) -> Option<(Field, Value)> {
    let (Expr::Cast(cast), Value::Bytes(bytes)) = (expr, value) else { return None };
    let of = names.of(&cast.expr).filter(|(_, ty)| *ty == ColumnType::Varchar);
    let is_bytes = cast.field.data_type() == &DataType::Binary;
    let text = std::str::from_utf8(bytes).ok().filter(|_| is_bytes)?;
    Some((of?.0, Value::Text(text.to_owned())))
}

/// The column of `CAST(column AS DOUBLE)`, which may round, beside a double.
fn as_doubles(expr: &Expr, value: &Value, names: &FieldNames) -> Option<(Field, ColumnType)> {
    let of = match expr {
        Expr::Cast(cast) if cast.field.data_type() == &DataType::Float64 => &cast.expr,
        expr => quotients::whole(expr)?,
    };
    names.of(of).filter(|(_, ty)| ty.is_exact() && matches!(value, Value::Double(_)))
}

/// The operator for exchanged sides.
pub(super) fn flipped(op: CmpOp) -> CmpOp {
    match op {
        CmpOp::Lt => CmpOp::Gt,
        CmpOp::Le => CmpOp::Ge,
        CmpOp::Gt => CmpOp::Lt,
        CmpOp::Ge => CmpOp::Le,
        CmpOp::Eq | CmpOp::Ne => op,
    }
}

/// The value of a literal expression.
fn literal(expr: &Expr) -> Option<Value> {
    match expr {
        Expr::Literal(scalar, _) => value_of(scalar).ok(),
        Expr::Alias(alias) => literal(&alias.expr),
        _ => None,
    }
}

/// A DataFusion scalar as a value.
pub fn value_of(scalar: &ScalarValue) -> Result<Value> {
    match scalar {
        scalar if scalar.is_null() => return Ok(Value::Null),
        ScalarValue::Int32(Some(number)) => return Ok(Value::Int((*number).into())),
        ScalarValue::Int64(Some(number)) => return Ok(Value::Int(*number)),
        ScalarValue::Float64(Some(double)) => return Ok(Value::Double(*double)),
        ScalarValue::Decimal128(Some(number), _, scale @ 0..) => {
            return Ok(Value::Decimal(*number, scale.unsigned_abs()));
        }
        ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => {
            return Ok(Value::Text(text.clone()));
        }
        _ => {}
    }
    let array = scalar.to_array().map_err(super::errors::df_error)?;
    any_value_at(&*array, 0)
}

/// The type of a parameter with this value; `None` for NULL.
pub fn type_of_value(value: &Value) -> Option<ColumnType> {
    let ty = scalar_of(value).ok()?.data_type();
    column_type_of(&arrow::datatypes::Field::new("", ty, true))
}

/// A value as DataFusion's scalar.
pub fn scalar_of(value: &Value) -> Result<ScalarValue> {
    Ok(match value {
        Value::Null => ScalarValue::Null,
        Value::Boolean(b) => ScalarValue::Boolean(Some(*b)),
        Value::Int(i) => ScalarValue::Int64(Some(*i)),
        Value::Double(d) => ScalarValue::Float64(Some(canonical_double(*d))),
        Value::Decimal(d, scale) => {
            let digits = d.unsigned_abs().checked_ilog10().map_or(1, |n| n as u8 + 1);
            ScalarValue::Decimal128(Some(*d), digits.max(*scale), *scale as i8)
        }
        Value::Text(t) => ScalarValue::Utf8(Some(t.clone())),
        Value::Bytes(b) => ScalarValue::Binary(Some(b.clone())),
        Value::Date(d) => ScalarValue::Date32(Some(*d)),
        Value::Timestamp(t) => ScalarValue::TimestampMicrosecond(Some(*t), None),
        Value::TimestampTz(t) => ScalarValue::TimestampMicrosecond(Some(*t), Some("+00:00".into())),
        Value::Uuid(_) => ScalarValue::Utf8(Some(value.to_string())),
    })
}
