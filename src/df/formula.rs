//! Converts DataFusion's `Expr` to our [`Formula`], where possible.
//!
//! The expressions come from an analysed plan: types are settled, functions resolved. Anything not listed here is no
//! formula, as it may not be deterministic.

use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::{Case, ScalarFunction};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

use super::expr::{FieldNames, value_of};
use super::expressions::long_decimals::has_room;
use crate::plan::{Field, Formula, Function};
use crate::row::{arrow_type, column_type_of};
use crate::value::{ColumnType, DECIMAL_DIGITS_MAX, Value};

/// The formula equal to an expression, and the expression's type; `None` if there is none. A single column counts as a
/// formula. The formula's own type may be narrower: a cast that changes no value is dropped.
pub fn formula(expr: &Expr, names: &FieldNames) -> Option<(Formula, ColumnType)> {
    match expr {
        Expr::Alias(alias) => formula(&alias.expr, names),
        Expr::Column(column) => match names.columns.get(&column.name)? {
            (Field::Column(id), ty) => Some((Formula::Column(*id), *ty)),
            _ => None,
        },
        Expr::Literal(scalar, _) => literal(scalar),
        Expr::Cast(cast) => {
            let to = column_type_of(&cast.field)?;
            let is_ours = arrow_type(to) == *cast.field.data_type();
            widened(formula(&cast.expr, names)?, to).filter(|_| is_ours)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let function = match op {
                Operator::Plus => Function::Add,
                Operator::Minus => Function::Subtract,
                Operator::Multiply => Function::Multiply,
                Operator::StringConcat => Function::Concat,
                _ => return None,
            };
            call(function, vec![formula(left, names)?, formula(right, names)?])
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) => {
            let args: Option<Vec<_>> = args.iter().map(|arg| formula(arg, names)).collect();
            call(function_of(func.name())?, args?)
        }
        Expr::Case(case) => coalesced(case, names),
        _ => None,
    }
}

/// The largest formulas inside an expression, single columns aside.
pub fn formulas_in(expr: &Expr, names: &FieldNames) -> Vec<Formula> {
    let mut found = Vec::new();
    let _ = expr.apply(|e| {
        Ok(match formula(e, names) {
            Some((formula, _)) if formula.ty().is_some() => {
                found.push(formula);
                TreeNodeRecursion::Jump
            }
            _ => TreeNodeRecursion::Continue,
        })
    });
    found
}

fn literal(scalar: &ScalarValue) -> Option<(Formula, ColumnType)> {
    let ty = match scalar {
        ScalarValue::Int16(_) => ColumnType::SmallInt,
        ScalarValue::Int32(_) => ColumnType::Integer,
        ScalarValue::Int64(_) => ColumnType::BigInt,
        ScalarValue::Float64(_) => ColumnType::Double,
        ScalarValue::Utf8(_) => ColumnType::Varchar,
        ScalarValue::Decimal128(_, precision, scale) => {
            ColumnType::Decimal { precision: *precision, scale: u8::try_from(*scale).ok()? }
        }
        _ => return None,
    };
    let value = value_of(scalar).ok().filter(|value| !value.is_null())?;
    Some((Formula::Literal(value), ty))
}

fn function_of(name: &str) -> Option<Function> {
    Some(match name {
        "upper" => Function::Upper,
        "lower" => Function::Lower,
        "btrim" | "trim" => Function::Trim,
        "ltrim" => Function::TrimStart,
        "rtrim" => Function::TrimEnd,
        "length" | "char_length" | "character_length" => Function::Length,
        "substr" | "substring" => Function::Substr,
        "left" => Function::Left,
        "right" => Function::Right,
        "abs" => Function::Abs,
        "add" => Function::Add,
        "subtract" => Function::Subtract,
        "multiply" => Function::Multiply,
        "date_trunc" => Function::DateTrunc,
        "json_get" => Function::JsonGet,
        "json_get_text" => Function::JsonGetText,
        "json_extract_path" => Function::JsonPath,
        "json_extract_path_text" => Function::JsonPathText,
        _ => return None,
    })
}

/// The call with these arguments, if their types and values fit.
fn call(function: Function, args: Vec<(Formula, ColumnType)>) -> Option<(Formula, ColumnType)> {
    use ColumnType::{BigInt, Double, Json, Timestamp, TimestampTz, Varchar};
    let (mut formulas, types): (Vec<Formula>, Vec<ColumnType>) = args.into_iter().unzip();
    let at_least =
        |formula: &Formula, least: i64| matches!(formula, Formula::Literal(Value::Int(n)) if *n >= least);
    let are_steps = |steps: &[Formula]| {
        let is_step = |step: &Formula| matches!(step, Formula::Literal(Value::Text(_) | Value::Int(_)));
        steps.iter().all(is_step)
    };
    let ty = match (function, &types[..], &formulas[..]) {
        (Function::Upper | Function::Lower, [Varchar], _)
        | (Function::Trim | Function::TrimStart | Function::TrimEnd, [Varchar], _)
        | (Function::Concat, [Varchar, Varchar], _) => Varchar,
        (Function::Length, [Varchar], _) => BigInt,
        // Negative counts and positions below 1 mean something else.
        (Function::Left | Function::Right, [Varchar, _], [_, n]) if at_least(n, 0) => Varchar,
        (Function::Substr, [Varchar, _], [_, from]) if at_least(from, 1) => Varchar,
        (Function::Substr, [Varchar, ..], [_, from, n]) if at_least(from, 1) && at_least(n, 0) => Varchar,
        (Function::Abs, [ty], _) if ty.is_integer() || matches!(ty, Double | ColumnType::Decimal { .. }) => {
            *ty
        }
        (Function::Add | Function::Subtract | Function::Multiply, [a, b], _) => sum(function, *a, *b)?,
        (
            Function::DateTrunc,
            [Varchar, ty @ (Timestamp | TimestampTz)],
            [Formula::Literal(Value::Text(unit)), _],
        ) if crate::value::unit_around(unit, 0).is_some() => *ty,
        (Function::JsonGet | Function::JsonPath, [Json, ..], [_, steps @ ..]) if are_steps(steps) => Json,
        (Function::JsonGetText | Function::JsonPathText, [Json, ..], [_, steps @ ..]) if are_steps(steps) => {
            Varchar
        }
        _ => return None,
    };
    if matches!(function, Function::Add | Function::Multiply) {
        // 2 * amount is amount * 2.
        formulas.sort_by_key(|formula| match formula {
            Formula::Call { .. } => (0, 0),
            Formula::Column(id) => (1, id.0),
            Formula::Literal(_) => (2, 0),
        });
    }
    Some((Formula::Call { function, args: formulas, ty }.canonical(), ty))
}

/// DataFusion's result type of a sum, difference or product.
fn sum(function: Function, a: ColumnType, b: ColumnType) -> Option<ColumnType> {
    let decimal = |ty: ColumnType| match ty {
        ColumnType::Decimal { precision, scale } => Some((precision, scale)),
        ty if ty.is_integer() => Some((20, 0)),
        _ => None,
    };
    if a.is_integer() && b.is_integer() {
        return Some(ColumnType::BigInt);
    }
    if (a, b) == (ColumnType::Double, ColumnType::Double) {
        return Some(ColumnType::Double);
    }
    let ((p, s), (q, t)) = (decimal(a)?, decimal(b)?);
    let (precision, scale) = match function {
        Function::Multiply => (p.saturating_add(q).saturating_add(1), s.checked_add(t)?),
        _ => ((p - s.min(p)).max(q - t.min(q)) + s.max(t) + 1, s.max(t)),
    };
    (scale <= DECIMAL_DIGITS_MAX)
        .then_some(ColumnType::Decimal { precision: precision.min(DECIMAL_DIGITS_MAX), scale })
}

/// A lossless cast. Between integers and decimals, it leaves the formula as it is.
fn widened(of: (Formula, ColumnType), to: ColumnType) -> Option<(Formula, ColumnType)> {
    let (inner, from) = of;
    let is_same = match (from, to) {
        (from, to) if from == to => true,
        (from, ColumnType::Decimal { .. }) => has_room(&arrow_type(from), &arrow_type(to)),
        (from, to) => match (from.integer_bounds(), to.integer_bounds()) {
            (Some((least, _)), Some((least_to, _))) => least_to <= least,
            _ => false,
        },
    };
    if is_same {
        return Some((inner, to));
    }
    let exact = match to {
        ColumnType::Double => from == ColumnType::Real || from.is_integer(),
        ColumnType::Varchar => from.is_integer(),
        ColumnType::Timestamp => from == ColumnType::Date,
        _ => false,
    };
    exact.then(|| (Formula::Call { function: Function::Cast, args: vec![inner], ty: to }, to))
}

/// `CASE WHEN a IS NOT NULL THEN a ... ELSE b END`, the expansion of `coalesce`.
fn coalesced(case: &Case, names: &FieldNames) -> Option<(Formula, ColumnType)> {
    if case.expr.is_some() {
        return None;
    }
    let mut args = Vec::with_capacity(case.when_then_expr.len() + 1);
    for (when, then) in &case.when_then_expr {
        match &**when {
            Expr::IsNotNull(tested) if is_same(tested, then) => args.push(formula(then, names)?),
            _ => return None,
        }
    }
    args.push(formula(case.else_expr.as_ref()?, names)?);
    let ty = args.first()?.1;
    let fits = args.iter().all(|(_, other)| *other == ty);
    let args = args.into_iter().map(|(formula, _)| formula).collect();
    fits.then_some((Formula::Call { function: Function::Coalesce, args, ty }, ty))
}

/// The two are the same expression, up to a cast.
fn is_same(tested: &Expr, then: &Expr) -> bool {
    tested == then || matches!(then, Expr::Cast(cast) if *cast.expr == *tested)
}
