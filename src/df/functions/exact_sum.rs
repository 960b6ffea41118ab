//! Sums that never wrap around.
//!
//! DataFusion's `sum` wraps around on overflow, for integers, decimals and lengths of time. [`ExactSum`] adds up in a
//! wider type, so that only a result that does not fit is an error.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Decimal256Array};
use arrow::compute::cast;
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type,
    DecimalType, Field, FieldRef, Int64Type, IntervalUnit, i256,
};
use arrow::error::ArrowError;
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
};

use super::interval_sum::IntervalSum;
use super::moving::Moving;
use crate::df::errors::to_df;
use crate::error::Error;
use crate::exec::sums::TOO_LONG;

/// `sum`: integers and differences of times are added up as decimals, long decimals as longer ones, intervals by their
/// parts ([`IntervalSum`]), doubles of moving frames without subtraction ([`Moving`]), all else as in DataFusion.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct ExactSum(Sum);

/// The same arguments for another result type.
fn widened<'a>(args: &AccumulatorArgs<'a>, wide: DataType) -> AccumulatorArgs<'a> {
    let return_field = Arc::new(Field::new(args.name, wide, true));
    AccumulatorArgs { return_field, ..args.clone() }
}

/// The type to add up in: wide enough for 2^63 rows of the largest values. `None`: the type itself, as the sum of a
/// shorter decimal has ten digits more than its values.
fn wide_type(ty: &DataType) -> Option<DataType> {
    match ty {
        DataType::Int64 | DataType::Duration(_) => Some(DataType::Decimal128(38, 0)),
        DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale) => {
            Some(DataType::Decimal256(DECIMAL256_MAX_PRECISION, *scale))
        }
        _ => None,
    }
}

fn is_interval(ty: &DataType) -> bool {
    matches!(ty, DataType::Interval(IntervalUnit::MonthDayNano))
}

/// Integers, or differences of times in their unit, as decimals.
pub(super) fn integers_as_decimals(array: &ArrayRef) -> DfResult<Decimal128Array> {
    let integers = cast(array, &DataType::Int64)?;
    Ok(integers.as_primitive::<Int64Type>().unary::<_, Decimal128Type>(i128::from))
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
        match wide_type(args.return_type()) {
            _ if is_interval(args.return_type()) && !args.is_distinct => Ok(Box::<IntervalSum>::default()),
            Some(wide) => Ok(Narrowed::of(&args, self.0.accumulator(widened(&args, wide))?)),
            None => self.0.accumulator(args),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        if args.is_distinct {
            // DataFusion's supports integers only, of which the sum wraps around.
            return Err(to_df(
                Error::unsupported("sum(DISTINCT ..) cannot leave out rows that a window frame has passed")
                    .hint("let the frame begin with UNBOUNDED PRECEDING"),
            ));
        }
        match wide_type(args.return_type()) {
            _ if *args.return_type() == DataType::Float64 => Ok(Moving::<f64>::of(|sum, _| Some(*sum))),
            _ if is_interval(args.return_type()) => Ok(Box::<IntervalSum>::default()),
            Some(wide) => Ok(Narrowed::of(&args, self.0.create_sliding_accumulator(widened(&args, wide))?)),
            None => self.0.create_sliding_accumulator(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        !is_interval(args.return_type()) && self.0.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn GroupsAccumulator>> {
        match wide_type(args.return_type()) {
            Some(wide) => Ok(Narrowed::of(&args, self.0.create_groups_accumulator(widened(&args, wide))?)),
            None => self.0.create_groups_accumulator(args),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> DfResult<Vec<FieldRef>> {
        if is_interval(args.return_type()) && !args.is_distinct {
            return Ok(IntervalSum::state_fields(args.name));
        }
        let Some(wide) = wide_type(args.return_type()) else { return self.0.state_fields(args) };
        let return_field = Arc::new(Field::new(args.name, wide, true));
        self.0.state_fields(StateFieldsArgs { return_field, ..args })
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

/// An accumulator of a wider type than its input and result.
#[derive(Debug)]
struct Narrowed<A> {
    sums: A,
    /// Type of the result.
    ty: DataType,
}

impl<A> Narrowed<A> {
    fn of(args: &AccumulatorArgs<'_>, sums: A) -> Box<Narrowed<A>> {
        Box::new(Narrowed { sums, ty: args.return_type().clone() })
    }

    /// Casts values to the wider type.
    fn wide(&self, values: &[ArrayRef]) -> DfResult<Vec<ArrayRef>> {
        let wide = |array: &ArrayRef| -> DfResult<ArrayRef> {
            Ok(match wide_type(&self.ty) {
                Some(ty @ DataType::Decimal256(..)) => {
                    let decimals = array.as_primitive::<Decimal128Type>();
                    let wide: Decimal256Array = decimals.unary::<_, Decimal256Type>(i256::from_i128);
                    Arc::new(wide.with_data_type(ty))
                }
                Some(ty) => Arc::new(integers_as_decimals(array)?.with_data_type(ty)),
                None => Arc::clone(array),
            })
        };
        values.iter().map(wide).collect()
    }

    /// Casts sums to the result type. Errors: one is out of range.
    fn narrowed(&self, sums: &ArrayRef) -> DfResult<ArrayRef> {
        Ok(match sums.data_type() {
            DataType::Decimal256(..) => {
                let sums = sums.as_primitive::<Decimal256Type>();
                let narrowed = sums.try_unary::<_, Decimal128Type, _>(narrow_decimal)?;
                Arc::new(narrowed.with_data_type(self.ty.clone()))
            }
            _ => {
                let sums = sums.as_primitive::<Decimal128Type>().try_unary::<_, Int64Type, _>(narrow)?;
                cast(&sums, &self.ty)?
            }
        })
    }
}

/// Casts a sum to BIGINT.
pub(in crate::df) fn narrow(sum: i128) -> Result<i64, ArrowError> {
    i64::try_from(sum)
        .map_err(|_| ArrowError::ArithmeticOverflow(format!("the sum {sum} is out of range for BIGINT")))
}

/// Casts a sum to a DECIMAL of 38 digits.
fn narrow_decimal(sum: i256) -> Result<i128, ArrowError> {
    sum.to_i128().ok_or_else(too_long).and_then(of_38_digits)
}

/// Errors: the sum has more than 38 digits.
pub(in crate::df) fn of_38_digits(sum: i128) -> Result<i128, ArrowError> {
    let fits = Decimal128Type::is_valid_decimal_precision(sum, DECIMAL128_MAX_PRECISION);
    fits.then_some(sum).ok_or_else(too_long)
}

fn too_long() -> ArrowError {
    ArrowError::ArithmeticOverflow(TOO_LONG.into())
}

impl Accumulator for Narrowed<Box<dyn Accumulator>> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        let values = self.wide(values)?;
        self.sums.update_batch(&values)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        let values = self.wide(values)?;
        self.sums.retract_batch(&values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.sums.supports_retract_batch()
    }

    fn evaluate(&mut self) -> DfResult<ScalarValue> {
        let sum = self.sums.evaluate()?.to_array()?;
        ScalarValue::try_from_array(&self.narrowed(&sum)?, 0)
    }

    fn state(&mut self) -> DfResult<Vec<ScalarValue>> {
        self.sums.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> DfResult<()> {
        self.sums.merge_batch(states)
    }

    fn size(&self) -> usize {
        self.sums.size()
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
        let values = self.wide(values)?;
        self.sums.update_batch(&values, groups, filter, total_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> DfResult<ArrayRef> {
        let sums = self.sums.evaluate(emit_to)?;
        self.narrowed(&sums)
    }

    fn state(&mut self, emit_to: EmitTo) -> DfResult<Vec<ArrayRef>> {
        self.sums.state(emit_to)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], total_groups: usize) -> DfResult<()> {
        self.sums.merge_batch(values, groups, total_groups)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> DfResult<Vec<ArrayRef>> {
        self.sums.convert_to_state(&self.wide(values)?, filter)
    }

    fn size(&self) -> usize {
        self.sums.size()
    }
}
