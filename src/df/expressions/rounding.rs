//! Rounding to whole numbers and digits.

use std::sync::{Arc, LazyLock};

use arrow::array::AsArray;
use arrow::datatypes::{DECIMAL256_MAX_PRECISION, DataType, Float64Type};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::functions::math;
use datafusion::logical_expr::expr::{Cast, ScalarFunction, TryCast};
use datafusion::logical_expr::{ColumnarValue, Expr, ExprSchemable, ScalarUDF, Volatility, cast, create_udf};

use crate::df::rewrite::{integer, settled_type};

/// Rounds what is cast to an integer, decimals away from zero and floats to even, as an assignment does; Arrow cuts off
/// what is behind the point. Runs before type coercion.
pub fn rounded_casts(mut expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let (Expr::Cast(Cast { expr: of, field }) | Expr::TryCast(TryCast { expr: of, field })) = &mut expr
    else {
        return Ok(Transformed::no(expr));
    };
    let round = match settled_type(of, schema) {
        _ if !field.data_type().is_integer() => return Ok(Transformed::no(expr)),
        Some(DataType::Decimal128(_, 1..)) => {
            |of| math::round().call(vec![of, Expr::Literal(ScalarValue::Int32(Some(0)), None)])
        }
        Some(ty) if ty.is_floating() => |of| HALF_EVEN.call(vec![of]),
        _ => return Ok(Transformed::no(expr)),
    };
    **of = round(std::mem::take(&mut **of));
    Ok(Transformed::yes(expr))
}

/// The nearest whole number, or the even one of two, as a double.
static HALF_EVEN: LazyLock<ScalarUDF> = LazyLock::new(|| {
    let round = |args: &[ColumnarValue]| match args {
        [ColumnarValue::Scalar(ScalarValue::Float64(d))] => {
            Ok(ColumnarValue::Scalar(ScalarValue::Float64(d.map(f64::round_ties_even))))
        }
        args => {
            let doubles = ColumnarValue::values_to_arrays(args)?;
            let rounded =
                doubles[0].as_primitive::<Float64Type>().unary::<_, Float64Type>(f64::round_ties_even);
            Ok(ColumnarValue::Array(Arc::new(rounded)))
        }
    };
    let double = DataType::Float64;
    create_udf("round_half_even", vec![double.clone()], double, Volatility::Immutable, Arc::new(round))
});

/// Gives the argument of FLOOR and CEIL of a decimal one more digit: `ceil(0.5)` has one before the point. Makes the
/// digits of ROUND an INTEGER literal: its result type depends on them, and a cast would hide them until run time. Runs
/// before type coercion.
pub fn rounded_decimals(mut expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    if let Expr::ScalarFunction(ScalarFunction { func, args }) = &mut expr
        && func.name() == "round"
        && let [_, digits] = &mut args[..]
        && let Some(known) = integer(digits).and_then(|digits| i32::try_from(digits).ok())
    {
        *digits = Expr::Literal(ScalarValue::Int32(Some(known)), None);
        return Ok(Transformed::yes(expr));
    }
    if let Expr::ScalarFunction(ScalarFunction { func, args }) = &mut expr
        && matches!(func.name(), "floor" | "ceil")
        && let [arg] = &mut args[..]
        && let Ok(DataType::Decimal128(digits @ ..38, scale @ 1..)) = arg.get_type(schema)
    {
        *arg = cast(std::mem::take(arg), DataType::Decimal128(digits + 1, scale));
        return Ok(Transformed::yes(expr));
    }
    Ok(Transformed::no(expr))
}

/// Routes casts of decimals that lose digits through a longer type: in a comparison, DataFusion would compare the
/// uncast value. Runs after type coercion.
pub fn lossy_casts(mut expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    if let Expr::Cast(Cast { expr: of, field }) | Expr::TryCast(TryCast { expr: of, field }) = &mut expr
        && let Ok(DataType::Decimal128(_, scale @ 1..)) = of.get_type(schema)
        && match field.data_type() {
            DataType::Decimal128(_, to) => *to < scale,
            to => to.is_integer(),
        }
    {
        **of = cast(std::mem::take(&mut **of), DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale));
        return Ok(Transformed::yes(expr));
    }
    Ok(Transformed::no(expr))
}
