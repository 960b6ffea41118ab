//! What DataFusion's trait asks of each of our operators, and each answers alike.

/// Methods of `ExecutionPlan` for an operator with these inputs: its name, its inputs, and the same operator made from
/// others of them.
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

/// The same for one whose expressions are nobody's business: `EXPLAIN`'s, at the most.
macro_rules! operator {
    ($own:ident($($input:ident),*), $this:ident => $made:expr) => {
        $crate::df::operator::inputs!($own($($input),*), $this => $made);

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

pub(super) use {inputs, operator};
