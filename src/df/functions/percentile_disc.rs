//! `percentile_disc(0.5) WITHIN GROUP (ORDER BY x)`: the first value at or behind a share of all, one that is there.
//! DataFusion has `percentile_cont` only.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::{SortOptions, concat, filter, is_not_null, sort_to_indices};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};
use datafusion::physical_expr::expressions::Literal;

use crate::df::errors::to_df;
use crate::error::{Error, sqlstate};

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct PercentileDisc(Signature);

impl Default for PercentileDisc {
    fn default() -> Self {
        PercentileDisc(Signature::user_defined(Volatility::Immutable))
    }
}

impl AggregateUDFImpl for PercentileDisc {
    fn name(&self) -> &str {
        "percentile_disc"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn coerce_types(&self, types: &[DataType]) -> DfResult<Vec<DataType>> {
        match types {
            [of, share] if share.is_numeric() || share.is_null() => Ok(vec![of.clone(), DataType::Float64]),
            _ => Err(usage()),
        }
    }

    fn return_type(&self, types: &[DataType]) -> DfResult<DataType> {
        types.first().cloned().ok_or_else(usage)
    }

    fn return_field(&self, args: &[FieldRef]) -> DfResult<FieldRef> {
        let of = args.first().ok_or_else(usage)?;
        Ok(Arc::new(of.as_ref().clone().with_name(self.name()).with_nullable(true)))
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        let share = args.exprs.get(1).and_then(|share| share.downcast_ref::<Literal>());
        let share = match share.map(Literal::value) {
            Some(ScalarValue::Float64(Some(share))) if (0.0..=1.0).contains(share) => *share,
            _ => return Err(usage()),
        };
        let descending = args.order_bys.first().is_some_and(|by| by.options.descending);
        let ty = args.expr_fields[0].data_type().clone();
        Ok(Box::new(ValuesInOrder { values: Vec::new(), ty, share, descending }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> DfResult<Vec<FieldRef>> {
        let item = Field::new_list_field(args.input_fields[0].data_type().clone(), true);
        Ok(vec![Arc::new(Field::new(args.name, DataType::List(Arc::new(item)), true))])
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }
}

fn usage() -> datafusion::error::DataFusionError {
    to_df(
        Error::invalid("percentile_disc takes a number from 0 to 1, and an order")
            .hint("percentile_disc(0.5) WITHIN GROUP (ORDER BY x)")
            .state(sqlstate::INVALID_PARAMETER),
    )
}

#[derive(Debug)]
struct ValuesInOrder {
    /// Those that are not NULL.
    values: Vec<ArrayRef>,
    ty: DataType,
    /// From 0 to 1.
    share: f64,
    descending: bool,
}

impl ValuesInOrder {
    fn all(&self) -> DfResult<Option<ArrayRef>> {
        let values: Vec<&dyn Array> = self.values.iter().map(|values| &**values).collect();
        if values.is_empty() { Ok(None) } else { Ok(Some(concat(&values)?)) }
    }
}

impl Accumulator for ValuesInOrder {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        let values = filter(&values[0], &is_not_null(&values[0])?)?;
        if !values.is_empty() {
            self.values.push(values);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> DfResult<ScalarValue> {
        let Some(values) = self.all()? else { return ScalarValue::try_from(&self.ty) };
        let place = ((self.share * values.len() as f64).ceil() as usize).max(1);
        let order = SortOptions { descending: self.descending, nulls_first: false };
        let sorted = sort_to_indices(&values, Some(order), Some(place))?;
        ScalarValue::try_from_array(&values, sorted.value(place - 1) as usize)
    }

    fn state(&mut self) -> DfResult<Vec<ScalarValue>> {
        let values = match self.all()? {
            Some(values) => values,
            None => arrow::array::new_empty_array(&self.ty),
        };
        Ok(vec![SingleRowListArrayBuilder::new(values).build_list_scalar()])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> DfResult<()> {
        states[0].as_list::<i32>().iter().flatten().try_for_each(|values| self.update_batch(&[values]))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.iter().map(|values| values.get_array_memory_size()).sum::<usize>()
    }
}
