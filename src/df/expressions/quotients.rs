//! Quotients of decimals, and decimals as doubles: each the double nearest to the exact value.
//!
//! DataFusion cuts a quotient four digits behind those of the dividend, so that `1.0 / 3 * 3000` is 999.99. A double
//! has sixteen digits, as in SQLite and DuckDB. Dividing two doubles would round three times: 0.3 / 0.1 is not 3 then.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Datum, Float64Array};
use arrow::datatypes::{DataType, Decimal128Type};
use arrow::error::ArrowError;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Cast, TryCast};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, cast,
};
use datafusion::physical_expr_common::datum::apply;

use crate::df::rewrite::settled_type;
use crate::value::decimal_to_double;

/// The quotient of two exact numbers of which at least one is a decimal; `None` if they are anything else. To be made
/// before type coercion.
pub fn quotient(left: &Expr, right: &Expr, schema: &DFSchema) -> Option<Expr> {
    let types = [settled_type(left, schema)?, settled_type(right, schema)?];
    let is_decimal = |ty: &DataType| matches!(ty, DataType::Decimal128(_, 0..));
    if !types.iter().any(is_decimal) || !types.iter().all(|ty| is_decimal(ty) || ty.is_integer()) {
        return None;
    }
    let exact = |operand: &Expr, ty: &DataType| match is_decimal(ty) {
        true => operand.clone(),
        false => cast(operand.clone(), DataType::Decimal128(INTEGER_DIGITS, 0)),
    };
    Some(DIVIDE.call(vec![exact(left, &types[0]), exact(right, &types[1])]))
}

/// Makes a quotient by one of a decimal that is cast to a double, if it may have more digits than a double holds: Arrow
/// divides two doubles then, which rounds up to three times. A parameter's value is cast by our rules anyway. Runs after
/// type coercion.
pub fn nearest_doubles(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let (Expr::Cast(Cast { expr: of, field }) | Expr::TryCast(TryCast { expr: of, field })) = &expr else {
        return Ok(Transformed::no(expr));
    };
    let has_more = match of.get_type(schema)? {
        DataType::Decimal128(precision, scale @ 0..) => precision > f64::DIGITS as u8 || scale > EXACT_POWER,
        _ => false,
    };
    if !has_more || field.data_type() != &DataType::Float64 || matches!(**of, Expr::Placeholder(_)) {
        return Ok(Transformed::no(expr));
    }
    let one = Expr::Literal(ScalarValue::Decimal128(Some(1), 1, 0), None);
    Ok(Transformed::yes(DIVIDE.call(vec![of.as_ref().clone(), one])))
}

/// What [`nearest_doubles`] has made a quotient of.
pub fn whole(expr: &Expr) -> Option<&Expr> {
    let Expr::ScalarFunction(call) = expr else { return None };
    match &call.args[..] {
        [of, Expr::Literal(ScalarValue::Decimal128(Some(1), 1, 0), _)] if call.name() == DIVIDE.name() => {
            Some(of)
        }
        _ => None,
    }
}

/// The greatest power of ten that is a double is that of this number.
const EXACT_POWER: i8 = 22;

static DIVIDE: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(DecimalQuotient::default())));

/// Digits of the longest integer.
const INTEGER_DIGITS: u8 = 20;

/// `a / b` of two DECIMALs.
#[derive(Debug, PartialEq, Eq, Hash)]
struct DecimalQuotient(Signature);

impl Default for DecimalQuotient {
    fn default() -> Self {
        DecimalQuotient(Signature::any(2, Volatility::Immutable))
    }
}

impl ScalarUDFImpl for DecimalQuotient {
    fn name(&self) -> &str {
        "divide"
    }

    /// The operator's name, so that references to the column stay valid.
    fn schema_name(&self, args: &[Expr]) -> DfResult<String> {
        let names: Vec<String> = args.iter().map(|arg| arg.schema_name().to_string()).collect();
        Ok(names.join(&format!(" {} ", Operator::Divide)))
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        apply(&args.args[0], &args.args[1], quotients)
    }
}

/// The quotients of two arrays of decimals, or of one and a scalar. Errors: a divisor is zero.
fn quotients(a: &dyn Datum, b: &dyn Datum) -> Result<ArrayRef, ArrowError> {
    let ((dividends, of_one), (divisors, by_one)) = (a.get(), b.get());
    let rows = if of_one { divisors.len() } else { dividends.len() };
    let scale = |array: &dyn Array| match array.data_type() {
        DataType::Decimal128(_, scale) => Ok(*scale),
        ty => Err(ArrowError::CastError(format!("{ty} is no DECIMAL"))),
    };
    let shift = i32::from(scale(divisors)?) - i32::from(scale(dividends)?);
    let (dividends, divisors) =
        (dividends.as_primitive::<Decimal128Type>(), divisors.as_primitive::<Decimal128Type>());
    let quotient = |row: usize| {
        let (n, d) = (if of_one { 0 } else { row }, if by_one { 0 } else { row });
        if dividends.is_null(n) || divisors.is_null(d) {
            return Ok(None);
        }
        nearest(dividends.value(n), divisors.value(d), shift).map(Some).ok_or(ArrowError::DivideByZero)
    };
    Ok(Arc::new((0..rows).map(quotient).collect::<Result<Float64Array, _>>()?))
}

/// The double next to `dividend * 10^shift / divisor`; `None` if the divisor is zero.
fn nearest(dividend: i128, divisor: i128, shift: i32) -> Option<f64> {
    if divisor == 0 {
        return None;
    }
    let by = |number: i128, zeros: u32| 10_u128.checked_pow(zeros)?.checked_mul(number.unsigned_abs());
    let (n, d) = match shift {
        0.. => (by(dividend, shift.unsigned_abs()), by(divisor, 0)),
        _ => (by(dividend, 0), by(divisor, shift.unsigned_abs())),
    };
    let magnitude = match (n, d) {
        // Both are doubles, so that a division rounds once.
        (Some(n), Some(d)) if n.max(d) <= 1 << f64::MANTISSA_DIGITS => n as f64 / d as f64,
        (Some(n), Some(d)) if d <= u128::MAX >> 1 => long_division(n, d),
        // 38 digits times a power of ten that exceeds 128 bits.
        _ => {
            let double = |n: i128, zeros: i32| decimal_to_double(n, 0) * 10_f64.powi(zeros.max(0));
            (double(dividend, shift) / double(divisor, -shift)).abs()
        }
    };
    let is_negative = (dividend < 0) != (divisor < 0);
    Some(if is_negative && magnitude != 0.0 { -magnitude } else { magnitude })
}

/// The double next to `n / d`, with the binary digits of the quotient one after the other. `d` must leave a bit free.
fn long_division(n: u128, d: u128) -> f64 {
    let (mut quotient, mut rest, mut exponent) = (n / d, n % d, 0);
    // Two more than a double has: the second stands for all behind it.
    while rest != 0 && quotient >> (f64::MANTISSA_DIGITS + 1) == 0 {
        rest <<= 1;
        quotient = quotient << 1 | u128::from(rest >= d);
        rest -= if rest >= d { d } else { 0 };
        exponent -= 1;
    }
    (quotient | u128::from(rest != 0)) as f64 * 2_f64.powi(exponent)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `n / d` in decimal digits, enough for `parse` to round them once.
    fn digits(n: u128, d: u128) -> f64 {
        let (mut text, mut rest) = (format!("{}.", n / d), n % d);
        for _ in 0..60 {
            rest *= 10;
            text.push_str(&(rest / d).to_string());
            rest %= d;
        }
        text.push(if rest == 0 { '0' } else { '1' });
        text.parse().unwrap()
    }

    #[test]
    fn quotients_are_those_of_the_decimals() {
        assert_eq!(nearest(3, 1, 0), Some(3.0), "0.3 / 0.1");
        assert_eq!(nearest(410, 1, -1), Some(41.0), "4.10 / 0.1");
        assert_eq!(nearest(-1005, 1, -3), Some(-1.005), "-1.005 / 1");
        assert_eq!(nearest(0, -7, 2).map(f64::is_sign_negative), Some(false));
        assert_eq!(nearest(1, 0, 0), None);
        assert_eq!(nearest(i128::MAX, 1, 38), Some(i128::MAX as f64 * 1e38));
    }

    proptest! {
        #[test]
        fn they_are_rounded_once(
            n in 0..10_u128.pow(36), d in 1..10_u128.pow(36), of in 0..36_u32, by in 0..36_u32,
        ) {
            let (n, d) = (n / 10_u128.pow(of), (d / 10_u128.pow(by)).max(1));
            prop_assert_eq!(nearest(n as i128, d as i128, 0), Some(digits(n, d)));
        }
    }
}
