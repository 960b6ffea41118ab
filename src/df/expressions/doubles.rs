//! Turns decimals beside doubles into doubles, and reals beside integers.
//!
//! DataFusion turns the double of `d > 1.5` into a decimal, which fails for great values and hides the column from its
//! keys. SQL has it the other way round: the exact number gives way (SQL:2016, 9.5).
//!
//! DataFusion turns an integer or a decimal beside a REAL into a REAL, which has 24 bits: 16,777,217 would equal
//! 16,777,216, and an amount would be rounded to seven digits.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Between, Case, InList, ScalarFunction};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, cast};

use super::quotients::quotient;
use crate::df::rewrite::{is_exactly, settled_type};
use crate::value::decimal_to_double;

/// Applies these rules to the operands of an expression. Runs before type coercion.
pub fn doubles_win(mut expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    if let Expr::BinaryExpr(BinaryExpr { left, op, right }) = &mut expr
        && op.is_numerical_operators()
        && *op != Operator::Divide
    {
        let types = types_of(&[left, right], schema);
        let changed = widen_reals(vec![left, right], &types);
        return Ok(if changed { Transformed::yes(expr) } else { Transformed::no(expr) });
    }
    if let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Divide, right }) = &expr
        && let Some(quotient) = quotient(left, right, schema)
    {
        return Ok(Transformed::yes(quotient));
    }
    // What may be a decimal in another run of the plan is divided as a double.
    let divided = matches!(&expr, Expr::BinaryExpr(BinaryExpr { op: Operator::Divide, .. }));
    let mut changed = false;
    for peers in peers(&mut expr) {
        changed |= settle(peers, schema, divided);
    }
    Ok(if changed { Transformed::yes(expr) } else { Transformed::no(expr) })
}

/// Groups of operands of an expression that take one type each.
pub fn peers(expr: &mut Expr) -> Vec<Vec<&mut Expr>> {
    let peers: Vec<&mut Expr> = match expr {
        Expr::Case(Case { expr: Some(expr), when_then_expr, else_expr }) => {
            let (whens, thens): (Vec<_>, Vec<_>) =
                when_then_expr.iter_mut().map(|(when, then)| (&mut **when, &mut **then)).unzip();
            let compared = std::iter::once(&mut **expr).chain(whens).collect();
            return vec![compared, thens.into_iter().chain(else_expr.as_deref_mut()).collect()];
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if op.supports_propagation() || *op == Operator::Divide =>
        {
            vec![left, right]
        }
        Expr::Between(Between { expr, low, high, .. }) => vec![expr, low, high],
        Expr::InList(InList { expr, list, .. }) => std::iter::once(&mut **expr).chain(list).collect(),
        Expr::Case(Case { expr: None, when_then_expr, else_expr }) => {
            when_then_expr.iter_mut().map(|(_, then)| then).chain(else_expr).map(|e| &mut **e).collect()
        }
        Expr::ScalarFunction(ScalarFunction { func, args })
            if matches!(func.name(), "coalesce" | "nullif" | "nvl" | "greatest" | "least") =>
        {
            args.iter_mut().collect()
        }
        _ => return Vec::new(),
    };
    vec![peers]
}

fn types_of(peers: &[&mut Expr], schema: &DFSchema) -> Vec<DataType> {
    peers.iter().map(|peer| settled_type(peer, schema).unwrap_or(DataType::Null)).collect()
}

/// Turns the decimals among `peers` into doubles if there is a float, or if they are `divided`; true if it did.
fn settle(peers: Vec<&mut Expr>, schema: &DFSchema, divided: bool) -> bool {
    let types = types_of(&peers, schema);
    let has_float = types.iter().any(DataType::is_floating);
    let is_decimal = |ty: &DataType| match ty {
        DataType::Decimal128(..) | DataType::Decimal256(..) => true,
        // With a narrower integer it would become a decimal before it meets the float.
        DataType::UInt64 => has_float,
        _ => false,
    };
    if !types.iter().any(is_decimal) {
        return widen_reals(peers, &types);
    }
    if !(divided || has_float) {
        return false;
    }
    let gives_way = |ty: &DataType| is_decimal(ty) || (divided && ty.is_integer());
    for (peer, _) in peers.into_iter().zip(&types).filter(|(_, ty)| gives_way(ty)) {
        *peer = double(std::mem::take(peer));
    }
    true
}

/// Turns the reals among `peers` into doubles if there is an exact number that a real may not hold; true if it did.
fn widen_reals(peers: Vec<&mut Expr>, types: &[DataType]) -> bool {
    let is_wider = |(peer, ty): (&&mut Expr, &DataType)| match &**peer {
        // The value of a parameter decides, in each run.
        Expr::Placeholder(_) => false,
        Expr::Literal(..) => ty.is_integer() && !is_exactly(peer, &DataType::Float32),
        _ => matches!(
            ty,
            DataType::Int32
                | DataType::Int64
                | DataType::UInt32
                | DataType::UInt64
                | DataType::Decimal128(..)
        ),
    };
    let has_real = types.contains(&DataType::Float32) && !types.contains(&DataType::Float64);
    if !has_real || !peers.iter().zip(types).any(is_wider) {
        return false;
    }
    for (peer, _) in peers.into_iter().zip(types).filter(|(_, ty)| **ty == DataType::Float32) {
        *peer = cast(std::mem::take(peer), DataType::Float64);
    }
    true
}

/// The expression as a double; a decimal literal exactly as if it had been written as a double.
fn double(expr: Expr) -> Expr {
    match expr {
        Expr::Literal(ScalarValue::Decimal128(Some(d), _, scale), metadata) if (0..=38).contains(&scale) => {
            Expr::Literal(ScalarValue::Float64(Some(decimal_to_double(d, scale as u8))), metadata)
        }
        other => cast(other, DataType::Float64),
    }
}
