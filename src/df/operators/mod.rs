//! Our physical operators, and the dynamic filters that reach them ([`dynamic_filter`], [`push_down`]).
//!
//! This module has the parts of the `ExecutionPlan` trait that all of them share.

pub(super) mod apart;
pub(super) mod dynamic_filter;
pub(super) mod few_first;
pub(super) mod grouped;
pub(super) mod in_turn;
pub(super) mod join_rows;
pub(super) mod late;
pub(super) mod lookup;
pub(super) mod pages;
pub(super) mod push_down;
pub(super) mod recursion;
pub(super) mod scan;
pub(super) mod seek;
pub(super) mod trial;
mod until_enough;
pub(super) mod with_query;
pub(super) mod yielding;

use std::sync::Arc;

use datafusion::error::Result as DfResult;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
    ReplaceChildrenOptions,
};

/// The operator over changed inputs that give the same rows, so its properties stay; `None` if none changed.
pub(in crate::df) fn over_changed(
    plan: &Arc<dyn ExecutionPlan>,
    inputs: Vec<Option<Arc<dyn ExecutionPlan>>>,
) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
    if inputs.iter().all(Option::is_none) {
        return Ok(None);
    }
    let or_as_it_was =
        |(old, new): (&Arc<dyn ExecutionPlan>, Option<_>)| new.unwrap_or_else(|| Arc::clone(old));
    let inputs = plan.children().into_iter().zip(inputs).map(or_as_it_was).collect();
    let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    Arc::clone(plan).replace_children(inputs, keep).map(Some)
}

/// Properties of an operator that gives all its rows, as they come, in a single partition.
pub(in crate::df) fn one_part(equivalence: EquivalenceProperties) -> Arc<PlanProperties> {
    let (emission, end) = (EmissionType::Incremental, Boundedness::Bounded);
    Arc::new(PlanProperties::new(equivalence, Partitioning::UnknownPartitioning(1), emission, end))
}

/// All rows come in a single partition.
pub(in crate::df) fn is_one_part(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.output_partitioning().partition_count() == 1
}

/// Properties of a plan's rows as a single partition without an order.
fn in_one_part(plan: &Arc<dyn ExecutionPlan>) -> Arc<PlanProperties> {
    let of = plan.properties();
    Arc::new(PlanProperties::new(
        EquivalenceProperties::new(plan.schema()),
        Partitioning::UnknownPartitioning(1),
        of.emission_type,
        of.boundedness,
    ))
}

/// Implements `ExecutionPlan` methods for an operator: its name, its inputs, and the same operator over other inputs.
macro_rules! inputs {
    ($own:ident($($input:ident),*), $this:ident => $made:expr) => {
        fn name(&self) -> &str {
            stringify!($own)
        }

        fn children(&self) -> Vec<&::std::sync::Arc<dyn ExecutionPlan>> {
            vec![$(&self.$input),*]
        }

        fn replace_children(
            self: ::std::sync::Arc<Self>,
            children: Vec<::std::sync::Arc<dyn ExecutionPlan>>,
            _: ::datafusion::physical_plan::ReplaceChildrenOptions,
        ) -> DfResult<::std::sync::Arc<dyn ExecutionPlan>> {
            let $this = self;
            let Ok([$($input),*]) = <[_; <[&str]>::len(&[$(stringify!($input)),*])]>::try_from(children) else {
                let error = concat!(stringify!($own), " is made from other inputs");
                return Err($crate::df::errors::to_df($crate::error::Error::internal(error)));
            };
            Ok($made)
        }

        fn with_new_children(
            self: ::std::sync::Arc<Self>,
            children: Vec<::std::sync::Arc<dyn ExecutionPlan>>,
        ) -> DfResult<::std::sync::Arc<dyn ExecutionPlan>> {
            let kept = ::datafusion::physical_plan::ChildrenPropertiesMode::Keep;
            self.replace_children(children, ::datafusion::physical_plan::ReplaceChildrenOptions::new(kept))
        }
    };
}

/// `inputs!` for an operator that shows no expressions.
macro_rules! operator {
    ($own:ident($($input:ident),*), $this:ident => $made:expr) => {
        $crate::df::operators::inputs!($own($($input),*), $this => $made);

        fn apply_expressions(
            &self,
            _: &mut dyn FnMut(
                &::std::sync::Arc<dyn ::datafusion::physical_expr::PhysicalExpr>,
            ) -> DfResult<::datafusion::common::tree_node::TreeNodeRecursion>,
        ) -> DfResult<::datafusion::common::tree_node::TreeNodeRecursion> {
            Ok(::datafusion::common::tree_node::TreeNodeRecursion::Continue)
        }
    };
}

pub(in crate::df) use {inputs, operator};
