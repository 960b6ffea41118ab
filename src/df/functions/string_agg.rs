//! `string_agg(x, ',' ORDER BY y)` that sorts for itself: DataFusion 55.2 takes its order for one that the input must
//! have, and refuses two aggregates that are ordered differently, although it does not rely on that order.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::error::Result as DfResult;
use datafusion::functions_aggregate::string_agg::StringAgg;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF, Signature,
};

/// DataFusion's function, for rows in any order.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct SortedStrings(StringAgg);

impl AggregateUDFImpl for SortedStrings {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, args: &[DataType]) -> DfResult<DataType> {
        self.0.return_type(args)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> DfResult<Vec<FieldRef>> {
        self.0.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        self.0.accumulator(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.0.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn GroupsAccumulator>> {
        self.0.create_groups_accumulator(args)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::SoftRequirement
    }

    fn with_beneficial_ordering(self: Arc<Self>, _: bool) -> DfResult<Option<Arc<dyn AggregateUDFImpl>>> {
        // It sorts all the same: what is in order already costs one comparison per row.
        Ok(Some(self))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::NotSupported
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.0.documentation()
    }
}
