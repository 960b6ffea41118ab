//! `percentile_cont`, and `median` of decimals, from all of their digits.
//!
//! DataFusion 55.2 cuts the share of the way from one value to the next to six digits, and the median of decimals to their
//! scale: that of 1.00 and 2.01 would be 1.50. Its accumulators keep the values, from which [`FromValues`] takes the
//! result.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, FieldRef, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::functions_aggregate::median::Median;
use datafusion::functions_aggregate::percentile_cont::PercentileCont;
use datafusion::logical_expr::function::{AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Documentation, GroupsAccumulator, Signature};
use datafusion::physical_expr::expressions::Literal;

use crate::value::DECIMAL_DIGITS_MAX;

/// DataFusion's function, whose result is taken from all digits of the values.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct Exact<F>(pub F);

/// A function whose accumulators keep the values.
pub trait KeepsValues: AggregateUDFImpl {
    /// What is to be taken from them; `None`: what the function makes of them is exact.
    fn of(args: &AccumulatorArgs<'_>) -> Option<Of>;

    /// Type of the result, if it is another than the function's.
    fn type_of(args: &[DataType]) -> Option<DataType>;
}

impl KeepsValues for PercentileCont {
    fn of(args: &AccumulatorArgs<'_>) -> Option<Of> {
        let share = match args.exprs.get(1)?.downcast_ref::<Literal>()?.value() {
            ScalarValue::Float64(share) => (*share)?,
            ScalarValue::Float32(share) => f64::from((*share)?),
            _ => return None,
        };
        let is_descending = args.order_bys.first().is_some_and(|by| by.options.descending);
        Some(Of::Share(if is_descending { 1.0 - share } else { share }))
    }

    fn type_of(_: &[DataType]) -> Option<DataType> {
        None
    }
}

impl KeepsValues for Median {
    fn of(args: &AccumulatorArgs<'_>) -> Option<Of> {
        let of = args.expr_fields[0].data_type();
        (Median::type_of(std::slice::from_ref(of)).as_ref() == Some(args.return_type()))
            .then_some(Of::Decimals)
    }

    /// Half of a decimal has one digit more.
    fn type_of(args: &[DataType]) -> Option<DataType> {
        match args {
            [DataType::Decimal128(digits, scale)] if *digits < DECIMAL_DIGITS_MAX => {
                Some(DataType::Decimal128(digits + 1, scale + 1))
            }
            _ => None,
        }
    }
}

impl<F: KeepsValues + Debug + PartialEq + Eq + Hash + 'static> AggregateUDFImpl for Exact<F> {
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
        F::type_of(args).map_or_else(|| self.0.return_type(args), Ok)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        let (of, ty) = (F::of(&args), args.return_type().clone());
        let values = self.0.accumulator(args)?;
        Ok(match of {
            Some(of) => Box::new(FromValues { values, ty, of }),
            None => values,
        })
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> DfResult<Vec<FieldRef>> {
        self.0.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        F::of(&args).is_none() && self.0.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn GroupsAccumulator>> {
        self.0.create_groups_accumulator(args)
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        self.0.simplify()
    }

    fn supports_within_group_clause(&self) -> bool {
        self.0.supports_within_group_clause()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.0.documentation()
    }
}

/// The values that another accumulator has kept, and what is taken from them.
#[derive(Debug)]
struct FromValues {
    values: Box<dyn Accumulator>,
    /// Type of the result.
    ty: DataType,
    of: Of,
}

/// What is taken from the values.
#[derive(Clone, Copy, Debug)]
pub enum Of {
    /// The value behind a share of all, on the line between the two next to it.
    Share(f64),
    /// The median, with one more digit.
    Decimals,
}

impl Accumulator for FromValues {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        self.values.update_batch(values)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        self.values.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.values.supports_retract_batch()
    }

    fn evaluate(&mut self) -> DfResult<ScalarValue> {
        let state = self.values.state()?;
        let [ScalarValue::List(list)] = &state[..] else { return self.values.evaluate() };
        let value = match self.of {
            Of::Share(share) => {
                let values = cast(list.values(), &DataType::Float64)?;
                let mut values: Vec<f64> = values.as_primitive::<Float64Type>().iter().flatten().collect();
                ScalarValue::Float64(behind(&mut values, share)).cast_to(&self.ty)?
            }
            Of::Decimals => {
                let values = list.values().as_primitive::<Decimal128Type>().iter().flatten();
                let DataType::Decimal128(digits, scale) = self.ty else { return self.values.evaluate() };
                let median = middle(&mut values.collect::<Vec<i128>>()).map(|(low, high)| low * 5 + high * 5);
                ScalarValue::Decimal128(median, digits, scale)
            }
        };
        // A window function goes on with them.
        self.values.merge_batch(&[Arc::clone(list) as ArrayRef])?;
        Ok(value)
    }

    fn state(&mut self) -> DfResult<Vec<ScalarValue>> {
        self.values.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> DfResult<()> {
        self.values.merge_batch(states)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.size()
    }
}

/// The value behind a share of all.
fn behind(values: &mut [f64], share: f64) -> Option<f64> {
    let place = share * values.len().checked_sub(1)? as f64;
    let (low, high) = beside(values, place as usize, f64::total_cmp)?;
    let rest = place.fract();
    Some(if rest == 0.0 { low } else { low + (high - low) * rest })
}

/// The two values in the middle, or the one twice.
fn middle(values: &mut [i128]) -> Option<(i128, i128)> {
    let last = values.len().checked_sub(1)?;
    let (low, high) = beside(values, last / 2, i128::cmp)?;
    Some((low, if last % 2 == 0 { low } else { high }))
}

/// The value at this place of the sorted ones, and the next, if there is one.
fn beside<T: Copy>(
    values: &mut [T],
    place: usize,
    order: impl Fn(&T, &T) -> std::cmp::Ordering + Copy,
) -> Option<(T, T)> {
    let (_, low, above) = values.select_nth_unstable_by(place, order);
    let low = *low;
    Some((low, above.iter().copied().min_by(order).unwrap_or(low)))
}
