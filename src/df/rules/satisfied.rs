//! Restores orders that operators need and plans have lost.
//!
//! DataFusion 55.2 drops sorts by a column that is NULL in all rows. When it then moves sorts and projections into
//! joins, a join may forget that fact, and the final check refuses the plan. In that case this rule adds the missing
//! sorts.
//!
//! It also takes rows for unsorted that it has sorted by a comparison of a computed value (see
//! [`window_keys`](super::window_keys)). Where such rows are merged, this rule makes the comparison a column.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result as DfResult;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, ExecutionPlanProperties, ReplaceChildrenOptions,
};

use crate::df::rewrite::PlanInner;
use crate::df::tree::RewriteTree;

type Plan = Arc<dyn ExecutionPlan>;

/// The final check: if it refuses a plan, missing sorts are added and it runs again.
pub fn satisfied(plan: Plan, check: &PlanInner<'_>) -> DfResult<Plan> {
    check(Arc::clone(&plan)).or_else(|_| {
        let plan = plan.rewrite_up(merged_by_columns).data()?;
        check(plan.rewrite_up(sorted).data()?)
    })
}

/// Merges rows by columns for the expressions whose order is not seen.
fn merged_by_columns(node: Plan) -> DfResult<Transformed<Plan>> {
    let Some(merge) = node.downcast_ref::<SortPreservingMergeExec>() else {
        return Ok(Transformed::no(node));
    };
    let input = merge.input();
    if input.equivalence_properties().ordering_satisfy(merge.expr().clone())? {
        return Ok(Transformed::no(node));
    }
    let (mut rows, mut fetch) = (input, merge.fetch());
    while let Some(sort) = rows.downcast_ref::<SortExec>().filter(|sort| sort.expr() == merge.expr()) {
        fetch = fetch.or(sort.fetch());
        rows = sort.input();
    }
    let given: Vec<ProjectionExpr> = all_columns(&rows.schema()).collect();
    let mut all = given.clone();
    let keys = merge.expr().iter().map(|by| {
        let (name, place) = (format!("__key_{}", all.len()), all.len());
        all.push(ProjectionExpr { expr: Arc::clone(&by.expr), alias: name.clone() });
        PhysicalSortExpr { expr: Arc::new(Column::new(&name, place)), options: by.options }
    });
    let Some(order) = LexOrdering::new(keys.collect::<Vec<_>>()) else { return Ok(Transformed::no(node)) };
    let computed = Arc::new(ProjectionExec::try_new(all, Arc::clone(rows))?);
    let sort = SortExec::new(order.clone(), computed).with_preserve_partitioning(true).with_fetch(fetch);
    let merge = SortPreservingMergeExec::new(order, Arc::new(sort)).with_fetch(fetch);
    Ok(Transformed::yes(Arc::new(ProjectionExec::try_new(given, Arc::new(merge))?)))
}

fn all_columns(schema: &Schema) -> impl Iterator<Item = ProjectionExpr> {
    schema.fields().iter().enumerate().map(|(place, field)| {
        let name = field.name().clone();
        ProjectionExpr { expr: Arc::new(Column::new(&name, place)), alias: name }
    })
}

/// The operator with its inputs sorted as it requires.
fn sorted(node: Plan) -> DfResult<Transformed<Plan>> {
    let inputs = node.children().into_iter().zip(node.required_input_ordering());
    let mut is_new = false;
    let inputs = inputs.map(|(input, needed)| -> DfResult<Plan> {
        let Some(needed) = needed.map(|needed| needed.into_single()) else { return Ok(Arc::clone(input)) };
        if input.equivalence_properties().ordering_satisfy_requirement(needed.clone())? {
            return Ok(Arc::clone(input));
        }
        is_new = true;
        let order = needed.into_iter().map(PhysicalSortExpr::from);
        let Some(order) = LexOrdering::new(order) else { return Ok(Arc::clone(input)) };
        let is_spread = input.output_partitioning().partition_count() > 1;
        Ok(Arc::new(SortExec::new(order, Arc::clone(input)).with_preserve_partitioning(is_spread)))
    });
    let inputs = inputs.collect::<DfResult<Vec<_>>>()?;
    if !is_new {
        return Ok(Transformed::no(node));
    }
    let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    node.replace_children(inputs, recompute).map(Transformed::yes)
}
