//! `row_number`, `rank`, `dense_rank` and `ntile` as BIGINT.
//!
//! DataFusion 55.2 gives them as UInt64, which it has no division of its own for: beside a BIGINT it makes decimals of
//! both, and `row_number() / 3` had fractions.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, UInt64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::function::{ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::window_state::WindowAggState;
use datafusion::logical_expr::{
    Documentation, LimitEffect, PartitionEvaluator, Signature, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;

/// The functions.
pub const PLACES: [&str; 4] = ["row_number", "rank", "dense_rank", "ntile"];

/// One of them.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Place(pub Arc<WindowUDF>);

impl WindowUDFImpl for Place {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn expressions(&self, args: ExpressionArgs) -> Vec<Arc<dyn PhysicalExpr>> {
        self.0.expressions(args)
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> DfResult<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(PlaceEvaluator(self.0.partition_evaluator_factory(args)?)))
    }

    fn field(&self, args: WindowUDFFieldArgs) -> DfResult<FieldRef> {
        let field = self.0.field(args)?;
        Ok(Arc::new(Field::clone(&field).with_data_type(DataType::Int64)))
    }

    fn sort_options(&self) -> Option<SortOptions> {
        self.0.sort_options()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.0.documentation()
    }

    fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        self.0.inner().limit_effect(args)
    }
}

#[derive(Debug)]
struct PlaceEvaluator(Box<dyn PartitionEvaluator>);

impl PartitionEvaluator for PlaceEvaluator {
    fn memoize(&mut self, state: &mut WindowAggState) -> DfResult<()> {
        self.0.memoize(state)
    }

    fn get_range(&self, at: usize, rows: usize) -> DfResult<Range<usize>> {
        self.0.get_range(at, rows)
    }

    fn is_causal(&self) -> bool {
        self.0.is_causal()
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> DfResult<ArrayRef> {
        self.0.evaluate_all(values, rows).map(bigints)
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> DfResult<ScalarValue> {
        Ok(match self.0.evaluate(values, range)? {
            ScalarValue::UInt64(place) => ScalarValue::Int64(place.map(|place| place as i64)),
            value => value,
        })
    }

    fn evaluate_all_with_rank(&self, rows: usize, ranks: &[Range<usize>]) -> DfResult<ArrayRef> {
        self.0.evaluate_all_with_rank(rows, ranks).map(bigints)
    }

    fn supports_bounded_execution(&self) -> bool {
        self.0.supports_bounded_execution()
    }

    fn uses_window_frame(&self) -> bool {
        self.0.uses_window_frame()
    }

    fn include_rank(&self) -> bool {
        self.0.include_rank()
    }
}

/// Numbers of rows are less than 2^63.
fn bigints(places: ArrayRef) -> ArrayRef {
    match places.as_primitive_opt::<UInt64Type>() {
        Some(numbers) => Arc::new(numbers.unary::<_, Int64Type>(|place| place as i64)),
        None => places,
    }
}
