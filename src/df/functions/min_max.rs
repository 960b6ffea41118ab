//! MIN and MAX: keeps UUIDs typed, and is right for groups of floats.
//!
//! The minimum of UUIDs is a UUID: that is in the field's metadata, which DataFusion drops.
//!
//! DataFusion 55.2 starts a group's minimum at the greatest finite number, so that a group of infinities gets that
//! number, and likewise for the maximum. Floats use one accumulator for each group instead.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, SetMonotonicity, Signature,
    StatisticsArgs,
};

/// `min` or `max` with these two corrections.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct OfGroups<F>(pub F);

impl<F: AggregateUDFImpl + Debug + PartialEq + Eq + Hash + 'static> AggregateUDFImpl for OfGroups<F> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, args: &[DataType]) -> DfResult<DataType> {
        self.0.return_type(args)
    }

    fn return_field(&self, args: &[FieldRef]) -> DfResult<FieldRef> {
        let types: Vec<DataType> = args.iter().map(|arg| arg.data_type().clone()).collect();
        let field = Field::new(self.name(), self.return_type(&types)?, self.is_nullable());
        let metadata = args.first().map(|arg| arg.metadata().clone()).unwrap_or_default();
        Ok(Arc::new(field.with_metadata(metadata)))
    }

    fn coerce_types(&self, args: &[DataType]) -> DfResult<Vec<DataType>> {
        self.0.coerce_types(args)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        self.0.accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        self.0.create_sliding_accumulator(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        !args.return_field.data_type().is_floating() && self.0.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn GroupsAccumulator>> {
        self.0.create_groups_accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> DfResult<Vec<FieldRef>> {
        self.0.state_fields(args)
    }

    fn is_descending(&self) -> Option<bool> {
        self.0.is_descending()
    }

    fn value_from_stats(&self, args: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        self.0.value_from_stats(args)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.0.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.0.reverse_expr()
    }

    fn set_monotonicity(&self, ty: &DataType) -> SetMonotonicity {
        self.0.set_monotonicity(ty)
    }
}
