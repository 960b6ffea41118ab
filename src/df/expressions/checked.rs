//! Arithmetic that fails where a result does not fit its type.
//!
//! DataFusion's `+`, `-` and `*` of integers wrap around on overflow, those of decimals may give a 39th digit. Before
//! type coercion, [`wide_integers`] casts narrow operands to BIGINT, so that a product of two INTEGER columns fits, as
//! in SQLite; afterwards, [`CheckedNumbers`] replaces the operators by functions that fail on overflow. Integer division
//! fails for a zero already; here `/` and `%` of doubles do, too, and no operator of doubles gives -0, which Arrow sorts
//! before 0. For `sum`, see `exact_sum`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Datum};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, DecimalType, Field, FieldRef, Float32Type,
    Float64Type,
};
use arrow::error::ArrowError;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast,
};
use datafusion::optimizer::analyzer::AnalyzerRule;
use datafusion::physical_expr_common::datum::apply;

use super::long_decimals::{Digits, digits_of_result};
use crate::df::rewrite::{rewrite_expressions, settled_type};
use crate::value::canonical_double;

/// Casts the operands of `+`, `-` and `*` to BIGINT if both are narrower integers. Runs before type coercion.
pub fn wide_integers(mut expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let is_narrow =
        |e: &Expr| settled_type(e, schema).is_some_and(|ty| ty.is_integer() && ty != DataType::Int64);
    let operands = match &mut expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Plus | Operator::Minus | Operator::Multiply,
            right,
        }) if is_narrow(left) && is_narrow(right) => vec![left, right],
        Expr::Negative(inner) if is_narrow(inner) => vec![inner],
        _ => return Ok(Transformed::no(expr)),
    };
    for operand in operands {
        **operand = cast(std::mem::take(&mut **operand), DataType::Int64);
    }
    Ok(Transformed::yes(expr))
}

/// Replaces `+`, `-` and `*` of integers and long decimals, `*`, `/` and `%` of doubles; `-x` is `0 - x`.
#[derive(Debug)]
pub struct CheckedNumbers([Arc<ScalarUDF>; 5]);

impl CheckedNumbers {
    /// The rule. Runs after type coercion.
    pub fn new() -> Self {
        let function = |name, op, kernel| Arc::new(ScalarUDF::new_from_impl(Checked::new(name, op, kernel)));
        CheckedNumbers([
            function("add", Operator::Plus, numeric::add),
            function("subtract", Operator::Minus, numeric::sub),
            function("multiply", Operator::Multiply, |a, b| Ok(canonical(numeric::mul(a, b)?))),
            function("divide", Operator::Divide, |a, b| not_by_zero(numeric::div(a, b)?, b).map(canonical)),
            function("modulo", Operator::Modulo, |a, b| not_by_zero(numeric::rem(a, b)?, b).map(canonical)),
        ])
    }

    fn checked(&self, expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
        let [add, subtract, multiply, divide, modulo] = &self.0;
        let (left, op, right) = match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => (left, op, right),
            Expr::Negative(inner) => {
                let ty = inner.get_type(schema)?;
                if !is_plain(&ty) {
                    return Ok(Transformed::no(Expr::Negative(inner)));
                }
                let zero = Expr::Literal(ScalarValue::new_zero(&ty)?, None);
                if ty.is_floating() {
                    return Ok(Transformed::yes(zero - *inner));
                }
                (Box::new(zero), Operator::Minus, inner)
            }
            other => return with_one_zero(other, schema),
        };
        let (function, checked): (_, fn(&DataType) -> bool) = match op {
            Operator::Plus => (add, DataType::is_integer),
            Operator::Minus => (subtract, DataType::is_integer),
            Operator::Multiply => (multiply, is_plain),
            Operator::Divide => (divide, DataType::is_floating),
            Operator::Modulo => (modulo, DataType::is_floating),
            _ => return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))),
        };
        Ok(match (left.get_type(schema)?, right.get_type(schema)?) {
            (l, r) if checked(&l) && checked(&r) || may_be_long(op, (&left, &l), (&right, &r), schema) => {
                let function = Arc::clone(function);
                Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![*left, *right])))
            }
            _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
        })
    }
}

/// Two decimals have a sum, difference or product that may not fit 38 digits.
fn may_be_long(op: Operator, left: (&Expr, &DataType), right: (&Expr, &DataType), schema: &DFSchema) -> bool {
    let ((left, DataType::Decimal128(..)), (right, DataType::Decimal128(..))) = (left, right) else {
        return false;
    };
    let is_product_or_sum = matches!(op, Operator::Plus | Operator::Minus | Operator::Multiply);
    let fits = |(before, behind): Digits| before.saturating_add(behind) <= DECIMAL128_MAX_PRECISION;
    is_product_or_sum && !digits_of_result(op, left, right, schema).is_some_and(fits)
}

/// Integers and floats, but no decimals.
fn is_plain(ty: &DataType) -> bool {
    ty.is_integer() || ty.is_floating()
}

/// Adds zero to doubles that may be -0: rounded ones, and casts of texts.
fn with_one_zero(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let may_be_negative = match &expr {
        Expr::ScalarFunction(call) => matches!(call.name(), "ceil" | "round" | "trunc" | "signum"),
        Expr::Cast(cast) => cast.field.data_type().is_floating() && cast.expr.get_type(schema)?.is_string(),
        _ => false,
    };
    let ty = if may_be_negative { expr.get_type(schema)? } else { DataType::Null };
    if !ty.is_floating() {
        return Ok(Transformed::no(expr));
    }
    Ok(Transformed::yes(expr + Expr::Literal(ScalarValue::new_zero(&ty)?, None)))
}

impl AnalyzerRule for CheckedNumbers {
    fn name(&self) -> &str {
        "checked_numbers"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> DfResult<LogicalPlan> {
        rewrite_expressions(plan, &[|expr, schema: &DFSchema| self.checked(expr, schema)])
    }
}

/// Doubles with a single zero and a single NaN, see [`canonical_double`]; other types unchanged.
fn canonical(values: ArrayRef) -> ArrayRef {
    match values.data_type() {
        DataType::Float64 => {
            Arc::new(values.as_primitive::<Float64Type>().unary::<_, Float64Type>(canonical_double))
        }
        DataType::Float32 => {
            Arc::new(values.as_primitive::<Float32Type>().unary::<_, Float32Type>(|d| d + 0.0))
        }
        _ => values,
    }
}

/// `quotients`. Errors: one that is not NULL was divided by zero.
fn not_by_zero(quotients: ArrayRef, divisors: &dyn Datum) -> Result<ArrayRef, ArrowError> {
    let (divisors, is_scalar) = divisors.get();
    // Arrow's comparison tells -0 from 0.
    let zeros = match divisors.data_type() {
        DataType::Float64 => BooleanArray::from_unary(divisors.as_primitive::<Float64Type>(), |d| d == 0.0),
        DataType::Float32 => BooleanArray::from_unary(divisors.as_primitive::<Float32Type>(), |d| d == 0.0),
        _ => return Ok(quotients),
    };
    let by_zero = |row| zeros.is_valid(row) && zeros.value(row);
    if zeros.true_count() > 0
        && (0..quotients.len()).any(|row| quotients.is_valid(row) && by_zero(if is_scalar { 0 } else { row }))
    {
        return Err(ArrowError::DivideByZero);
    }
    Ok(quotients)
}

/// The operator that a function checks.
pub fn operator_of(function: &ScalarUDF) -> Option<Operator> {
    Some(function.inner().downcast_ref::<Checked>()?.op)
}

type Kernel = fn(&dyn Datum, &dyn Datum) -> Result<ArrayRef, ArrowError>;

/// A checked operator; both operands have the same type, or are decimals.
#[derive(Debug)]
struct Checked {
    name: &'static str,
    op: Operator,
    kernel: Kernel,
    signature: Signature,
}

impl Checked {
    fn new(name: &'static str, op: Operator, kernel: Kernel) -> Self {
        Checked { name, op, kernel, signature: Signature::any(2, Volatility::Immutable) }
    }

    /// `a op b`. Errors: a result does not fit its type, or is a decimal of more than 38 digits.
    fn results(&self, a: &dyn Datum, b: &dyn Datum) -> Result<ArrayRef, ArrowError> {
        match (self.kernel)(a, b) {
            // Arrow shows the digits of decimals without their points.
            Err(ArrowError::ArithmeticOverflow(_)) if a.get().0.data_type().is_decimal() => {
                let rows = if a.get().1 { b.get().0.len() } else { a.get().0.len() };
                let fails = |row: &usize| (self.kernel)(&operand(a, *row), &operand(b, *row)).is_err();
                Err(self.overflow(a, b, (0..rows).find(fails).unwrap_or_default()))
            }
            results => self.within_digits(results?, a, b),
        }
    }

    /// `results`. Errors: one of them is a decimal of more than 38 digits.
    fn within_digits(&self, results: ArrayRef, a: &dyn Datum, b: &dyn Datum) -> Result<ArrayRef, ArrowError> {
        let Some(decimals) = results.as_primitive_opt::<Decimal128Type>() else { return Ok(results) };
        let fits = |d| Decimal128Type::is_valid_decimal_precision(d, DECIMAL128_MAX_PRECISION);
        // The slot of a NULL holds any number.
        let is_long = |row: &usize| !fits(decimals.values()[*row]) && decimals.is_valid(*row);
        let Some(row) = (0..decimals.len()).find(is_long) else { return Ok(results) };
        Err(self.overflow(a, b, row))
    }

    /// The error for the decimals of a row, as Arrow words it.
    fn overflow(&self, a: &dyn Datum, b: &dyn Datum, row: usize) -> ArrowError {
        let shown = |of: &dyn Datum| {
            let decimal = operand(of, row);
            decimal.as_primitive_opt::<Decimal128Type>().map(|d| d.value_as_string(0)).unwrap_or_default()
        };
        let operation = format!("Overflow happened on: {} {} {}", shown(a), self.op, shown(b));
        ArrowError::ArithmeticOverflow(operation)
    }
}

/// The operand of one row.
fn operand(of: &dyn Datum, row: usize) -> ArrayRef {
    let (values, is_scalar) = of.get();
    values.slice(if is_scalar { 0 } else { row }, 1)
}

impl PartialEq for Checked {
    fn eq(&self, other: &Self) -> bool {
        self.op == other.op
    }
}

impl Eq for Checked {}

impl std::hash::Hash for Checked {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.op.hash(state);
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        self.name
    }

    /// The operator's name, so that references to the column stay valid.
    fn schema_name(&self, args: &[Expr]) -> DfResult<String> {
        let names: Vec<String> = args.iter().map(|arg| arg.schema_name().to_string()).collect();
        Ok(names.join(&format!(" {} ", self.op)))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> DfResult<DataType> {
        match args {
            [left @ DataType::Decimal128(..), right] => {
                BinaryTypeCoercer::new(left, &self.op, right).get_result_type()
            }
            args => Ok(args[0].clone()),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        Ok(Arc::new(Field::new(self.name, self.return_type(&types)?, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        apply(&args.args[0], &args.args[1], |a, b| self.results(a, b))
    }
}
