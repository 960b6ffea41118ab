//! AVG of decimals, rounded: DataFusion 55.2 truncates the mean.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Decimal128Array};
use arrow::datatypes::{DataType, Decimal128Type, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::functions_aggregate::average::Avg;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
};

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
        let Some((to, wider)) = one_digit_more(&args) else { return self.0.accumulator(args) };
        let of = self.0.accumulator(AccumulatorArgs { return_field: wider, ..args })?;
        Ok(Box::new(Rounded { of, to }))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.0.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn GroupsAccumulator>> {
        let Some((to, wider)) = one_digit_more(&args) else { return self.0.create_groups_accumulator(args) };
        let of = self.0.create_groups_accumulator(AccumulatorArgs { return_field: wider, ..args })?;
        Ok(Box::new(RoundedGroups { of, to }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> DfResult<Vec<FieldRef>> {
        self.0.state_fields(args)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.0.reverse_expr()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.0.documentation()
    }
}

/// Precision and scale of a decimal.
type Digits = (u8, i8);

/// Precision and scale of a decimal mean, and a field with one more digit; `None` for other types, and where there is
/// no room.
fn one_digit_more(args: &AccumulatorArgs<'_>) -> Option<(Digits, FieldRef)> {
    let DataType::Decimal128(precision, scale) = *args.return_field.data_type() else { return None };
    let most = DECIMAL_DIGITS_MAX;
    if scale >= most as i8 {
        return None;
    }
    let wider = DataType::Decimal128((precision + 1).min(most), scale + 1);
    let field = (*args.return_field).clone().with_data_type(wider);
    Some(((precision, scale), field.into()))
}

/// Rounds to the nearest, halves away from zero.
fn round(tenths: i128) -> i128 {
    (tenths + 5 * tenths.signum()) / 10
}

#[derive(Debug)]
struct Rounded {
    of: Box<dyn Accumulator>,
    to: Digits,
}

impl Accumulator for Rounded {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        self.of.update_batch(values)
    }

    fn evaluate(&mut self) -> DfResult<ScalarValue> {
        let (precision, scale) = self.to;
        Ok(match self.of.evaluate()? {
            ScalarValue::Decimal128(mean, ..) => ScalarValue::Decimal128(mean.map(round), precision, scale),
            other => other,
        })
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
        self.of.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.of.supports_retract_batch()
    }
}

struct RoundedGroups {
    of: Box<dyn GroupsAccumulator>,
    to: Digits,
}

impl GroupsAccumulator for RoundedGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> DfResult<()> {
        self.of.update_batch(values, groups, filter, total)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> DfResult<ArrayRef> {
        let means = self.of.evaluate(emit_to)?;
        let rounded: Decimal128Array = means.as_primitive::<Decimal128Type>().unary(round);
        let (precision, scale) = self.to;
        Ok(Arc::new(rounded.with_precision_and_scale(precision, scale)?))
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
        self.of.convert_to_state(values, filter)
    }

    fn size(&self) -> usize {
        self.of.size()
    }
}
