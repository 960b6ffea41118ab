//! AVG of decimals, rounded: DataFusion 55.2 truncates the mean. Differences of times are added up as decimals, for
//! its sums of them wrap around.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Decimal128Array, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, FieldRef, Int64Type, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::functions_aggregate::average::Avg;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
};

use super::exact_sum::{integers_as_decimals, narrow};
use super::moving::Moving;
use crate::value::DECIMAL_DIGITS_MAX;

/// DataFusion's function, computed with one more digit and rounded.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct RoundedAvg(Avg);

impl AggregateUDFImpl for RoundedAvg {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn aliases(&self) -> &[String] {
        self.0.aliases()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, args: &[DataType]) -> DfResult<DataType> {
        self.0.return_type(args)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        let Some(to) = Mean::of(args.return_type()) else { return self.0.accumulator(args) };
        let fields = [to.field_of(&args.expr_fields[0])];
        let args =
            AccumulatorArgs { return_field: to.wider(&args.return_field), expr_fields: &fields, ..args };
        Ok(Box::new(Rounded { of: self.0.accumulator(args)?, to }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        match *args.return_type() == DataType::Float64 && !args.is_distinct {
            true => Ok(Moving::<f64>::of(|sum, count| Some(sum / count as f64))),
            false => self.accumulator(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.0.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn GroupsAccumulator>> {
        let Some(to) = Mean::of(args.return_type()) else { return self.0.create_groups_accumulator(args) };
        let fields = [to.field_of(&args.expr_fields[0])];
        let args =
            AccumulatorArgs { return_field: to.wider(&args.return_field), expr_fields: &fields, ..args };
        Ok(Box::new(Rounded { of: self.0.create_groups_accumulator(args)?, to }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> DfResult<Vec<FieldRef>> {
        let Some(to) = Mean::of(args.return_type()) else { return self.0.state_fields(args) };
        let fields = [to.field_of(&args.input_fields[0])];
        let return_field = to.wider(&args.return_field);
        self.0.state_fields(StateFieldsArgs { return_field, input_fields: &fields, ..args })
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.0.reverse_expr()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.0.documentation()
    }
}

/// The type of a mean that is computed with one more digit.
#[derive(Clone, Copy, Debug)]
enum Mean {
    /// Precision and scale.
    Decimal(u8, i8),
    /// A difference of times.
    Duration(TimeUnit),
}

/// A difference of times as a decimal.
const DURATION: DataType = DataType::Decimal128(DECIMAL_DIGITS_MAX, 0);

impl Mean {
    /// `None` for other types, and where there is no room.
    fn of(ty: &DataType) -> Option<Mean> {
        match *ty {
            DataType::Decimal128(precision, scale) if scale < DECIMAL_DIGITS_MAX as i8 => {
                Some(Mean::Decimal(precision, scale))
            }
            DataType::Duration(unit) => Some(Mean::Duration(unit)),
            _ => None,
        }
    }

    /// The field of the values that are added up, instead of `field`.
    fn field_of(self, field: &FieldRef) -> FieldRef {
        match self {
            Mean::Decimal(..) => Arc::clone(field),
            Mean::Duration(_) => (**field).clone().with_data_type(DURATION).into(),
        }
    }

    /// The field of the mean with one more digit.
    fn wider(self, mean: &FieldRef) -> FieldRef {
        let ty = match self {
            Mean::Decimal(precision, scale) => {
                DataType::Decimal128((precision + 1).min(DECIMAL_DIGITS_MAX), scale + 1)
            }
            Mean::Duration(_) => DataType::Decimal128(DECIMAL_DIGITS_MAX, 1),
        };
        (**mean).clone().with_data_type(ty).into()
    }

    /// The values to add up.
    fn taken(self, values: &[ArrayRef]) -> DfResult<Vec<ArrayRef>> {
        let taken = |array: &ArrayRef| -> DfResult<ArrayRef> {
            Ok(match self {
                Mean::Decimal(..) => Arc::clone(array),
                Mean::Duration(_) => Arc::new(integers_as_decimals(array)?.with_data_type(DURATION)),
            })
        };
        values.iter().map(taken).collect()
    }

    /// The means, rounded.
    fn rounded(self, means: &ArrayRef) -> DfResult<ArrayRef> {
        let rounded: Decimal128Array = means.as_primitive::<Decimal128Type>().unary(round);
        match self {
            Mean::Decimal(precision, scale) => {
                Ok(Arc::new(rounded.with_precision_and_scale(precision, scale)?))
            }
            Mean::Duration(unit) => {
                let means: Int64Array = rounded.try_unary::<_, Int64Type, _>(narrow)?;
                Ok(cast(&means, &DataType::Duration(unit))?)
            }
        }
    }
}

/// Rounds to the nearest, halves away from zero.
fn round(tenths: i128) -> i128 {
    (tenths + 5 * tenths.signum()) / 10
}

/// An accumulator of means with one more digit.
#[derive(Debug)]
struct Rounded<A> {
    of: A,
    to: Mean,
}

impl Accumulator for Rounded<Box<dyn Accumulator>> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        self.of.update_batch(&self.to.taken(values)?)
    }

    fn evaluate(&mut self) -> DfResult<ScalarValue> {
        let mean = self.of.evaluate()?.to_array()?;
        ScalarValue::try_from_array(&self.to.rounded(&mean)?, 0)
    }

    fn size(&self) -> usize {
        self.of.size()
    }

    fn state(&mut self) -> DfResult<Vec<ScalarValue>> {
        self.of.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> DfResult<()> {
        self.of.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        self.of.retract_batch(&self.to.taken(values)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.of.supports_retract_batch()
    }
}

impl GroupsAccumulator for Rounded<Box<dyn GroupsAccumulator>> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> DfResult<()> {
        self.of.update_batch(&self.to.taken(values)?, groups, filter, total)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> DfResult<ArrayRef> {
        let means = self.of.evaluate(emit_to)?;
        self.to.rounded(&means)
    }

    fn state(&mut self, emit_to: EmitTo) -> DfResult<Vec<ArrayRef>> {
        self.of.state(emit_to)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], total: usize) -> DfResult<()> {
        self.of.merge_batch(values, groups, total)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> DfResult<Vec<ArrayRef>> {
        self.of.convert_to_state(&self.to.taken(values)?, filter)
    }

    fn size(&self) -> usize {
        self.of.size()
    }
}
