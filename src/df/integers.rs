//! Integer arithmetic that never wraps.
//!
//! DataFusion's `+`, `-`, `*` and `sum` wrap around on overflow. Before types are settled,
//! [`wide_integers`] makes the operands BIGINT, so that a product of two INTEGER columns fits, as it does in
//! SQLite; afterwards, [`CheckedIntegers`] puts functions that fail in the place of the operators.
//! Their division has an error for a zero already; `/` and `%` of doubles get the same, and no operator of
//! doubles gives a -0, which Arrow would take for less than 0.
//! [`ExactSum`] adds integers as 128-bit decimals, so that only a result which does not fit is an error.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Datum, Decimal128Array};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Float32Type, Float64Type, Int64Type};
use arrow::error::ArrowError;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::Result as DfResult;
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, BinaryExpr, ColumnarValue, EmitTo, Expr, ExprSchemable, GroupsAccumulator,
    LogicalPlan, Operator, ReturnFieldArgs, ReversedUDAF, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, cast,
};
use datafusion::optimizer::analyzer::AnalyzerRule;
use datafusion::physical_expr_common::datum::apply;

use super::rewrite::{rewrite_expressions, settled_type};
use crate::value::canonical_double;

/// Casts the operands of `+`, `-` and `*` to BIGINT if both are integers; it belongs before type coercion.
pub fn wide_integers(mut expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let is_narrow = |e: &Expr| settled_type(e, schema).is_some_and(|ty| ty.is_integer() && !is_bigint(&ty));
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

/// Replaces `+`, `-` and `*` of integers, `*`, `/` and `%` of doubles; `-x` is `0 - x`.
#[derive(Debug)]
pub struct CheckedIntegers([Arc<ScalarUDF>; 5]);

impl CheckedIntegers {
    /// The rule; it belongs behind type coercion.
    pub fn new() -> Self {
        let function = |name, op, kernel| Arc::new(ScalarUDF::new_from_impl(Checked::new(name, op, kernel)));
        CheckedIntegers([
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
            (l, r) if checked(&l) && checked(&r) => {
                let function = Arc::clone(function);
                Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![*left, *right])))
            }
            _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
        })
    }
}

/// Integers and floats, but no decimals.
fn is_plain(ty: &DataType) -> bool {
    ty.is_integer() || ty.is_floating()
}

/// Adds zero to what may be -0: a rounded double, or one that was a text.
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

impl AnalyzerRule for CheckedIntegers {
    fn name(&self) -> &str {
        "checked_integers"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> DfResult<LogicalPlan> {
        rewrite_expressions(plan, &|expr, schema| self.checked(expr, schema))
    }
}

/// Doubles with one zero and one NaN, as [`canonical_double`] has them; anything else as it is.
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

/// `quotients`, unless one of them that is not NULL was divided by zero.
fn not_by_zero(quotients: ArrayRef, divisors: &dyn Datum) -> Result<ArrayRef, ArrowError> {
    let (divisors, is_scalar) = divisors.get();
    // Arrow's own comparison tells -0 from 0.
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

type Kernel = fn(&dyn Datum, &dyn Datum) -> Result<ArrayRef, ArrowError>;

/// An operator of two integers of one type.
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

    /// As the operator is called, so that nothing that names it has to change.
    fn schema_name(&self, args: &[Expr]) -> DfResult<String> {
        let names: Vec<String> = args.iter().map(|arg| arg.schema_name().to_string()).collect();
        Ok(names.join(&format!(" {} ", self.op)))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> DfResult<DataType> {
        Ok(args[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name, args.arg_fields[0].data_type().clone(), nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        apply(&args.args[0], &args.args[1], self.kernel)
    }
}

/// `sum`, of integers by way of decimals, of everything else as it was.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct ExactSum(Sum);

/// Wide enough for 2^63 rows of 2^63.
const WIDE: DataType = DataType::Decimal128(38, 0);

/// The same arguments, the result being wide.
fn widened<'a>(args: &AccumulatorArgs<'a>) -> AccumulatorArgs<'a> {
    let return_field = Arc::new(Field::new(args.name, WIDE, true));
    AccumulatorArgs {
        return_field,
        schema: args.schema,
        ignore_nulls: args.ignore_nulls,
        order_bys: args.order_bys,
        is_reversed: args.is_reversed,
        name: args.name,
        is_distinct: args.is_distinct,
        exprs: args.exprs,
        expr_fields: args.expr_fields,
    }
}

fn is_bigint(ty: &DataType) -> bool {
    matches!(ty, DataType::Int64)
}

impl AggregateUDFImpl for ExactSum {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, args: &[DataType]) -> DfResult<DataType> {
        self.0.return_type(args)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        if !is_bigint(args.return_type()) {
            return self.0.accumulator(args);
        }
        Ok(Box::new(Narrowed(self.0.accumulator(widened(&args))?)))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        // Distinct values that come and go are known to DataFusion as integers only.
        if !is_bigint(args.return_type()) || args.is_distinct {
            return self.0.create_sliding_accumulator(args);
        }
        Ok(Box::new(Narrowed(self.0.create_sliding_accumulator(widened(&args))?)))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.0.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn GroupsAccumulator>> {
        if !is_bigint(args.return_type()) {
            return self.0.create_groups_accumulator(args);
        }
        Ok(Box::new(Narrowed(self.0.create_groups_accumulator(widened(&args))?)))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> DfResult<Vec<FieldRef>> {
        if !is_bigint(args.return_type()) {
            return self.0.state_fields(args);
        }
        let return_field = Arc::new(Field::new(args.name, WIDE, true));
        self.0.state_fields(StateFieldsArgs { return_field, ..args })
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

/// A sum of decimals, fed with integers and read as one.
#[derive(Debug)]
struct Narrowed<A>(A);

/// Integers as decimals.
fn wide(values: &[ArrayRef]) -> DfResult<Vec<ArrayRef>> {
    values
        .iter()
        .map(|array| {
            let decimals: Decimal128Array =
                array.as_primitive::<Int64Type>().unary::<_, Decimal128Type>(i128::from);
            Ok(Arc::new(decimals.with_data_type(WIDE)) as ArrayRef)
        })
        .collect()
}

/// A sum as BIGINT.
pub(super) fn narrow(sum: i128) -> Result<i64, ArrowError> {
    i64::try_from(sum)
        .map_err(|_| ArrowError::ArithmeticOverflow(format!("the sum {sum} is out of range for BIGINT")))
}

impl Accumulator for Narrowed<Box<dyn Accumulator>> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        self.0.update_batch(&wide(values)?)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        self.0.retract_batch(&wide(values)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.0.supports_retract_batch()
    }

    fn evaluate(&mut self) -> DfResult<ScalarValue> {
        Ok(match self.0.evaluate()? {
            ScalarValue::Decimal128(sum, ..) => ScalarValue::Int64(sum.map(narrow).transpose()?),
            other => other,
        })
    }

    fn state(&mut self) -> DfResult<Vec<ScalarValue>> {
        self.0.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> DfResult<()> {
        self.0.merge_batch(states)
    }

    fn size(&self) -> usize {
        self.0.size()
    }
}

impl GroupsAccumulator for Narrowed<Box<dyn GroupsAccumulator>> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> DfResult<()> {
        self.0.update_batch(&wide(values)?, groups, filter, total_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> DfResult<ArrayRef> {
        let sums = self.0.evaluate(emit_to)?;
        Ok(Arc::new(sums.as_primitive::<Decimal128Type>().try_unary::<_, Int64Type, _>(narrow)?))
    }

    fn state(&mut self, emit_to: EmitTo) -> DfResult<Vec<ArrayRef>> {
        self.0.state(emit_to)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], total_groups: usize) -> DfResult<()> {
        self.0.merge_batch(values, groups, total_groups)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> DfResult<Vec<ArrayRef>> {
        self.0.convert_to_state(&wide(values)?, filter)
    }

    fn size(&self) -> usize {
        self.0.size()
    }
}
