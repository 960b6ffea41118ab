//! Makes the value of `(SELECT ...)` nullable, as it is NULL without a row.
//!
//! DataFusion 55.2 declares such a value NOT NULL if its column is, and then drops an `IS NULL` on it or refuses the
//! NULL. [`value_or_null`] wraps the column in an identity function that is declared nullable. Only of a column that is
//! stored the optimizer will not find out later that it is NOT NULL, as of `CASE WHEN true THEN 1 END`.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Projection};

use crate::df::expressions::step_types::MaybeNull;
use crate::df::table::TableSource;
use crate::df::tree::RewriteTree;

/// Makes a subquery's value nullable. Runs before all rules that check nullability.
pub fn value_or_null(expr: Expr, _: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::ScalarSubquery(subquery) = &expr else { return Ok(Transformed::no(expr)) };
    let plan = &subquery.subquery;
    let (qualifier, field) = plan.schema().qualified_field(0);
    // Several columns are an error elsewhere.
    let column = Column::new(qualifier.cloned(), field.name());
    if plan.schema().fields().len() > 1 || has_a_row(plan) || is_stored_nullable(&column, plan)? {
        return Ok(Transformed::no(expr));
    }
    let value = MaybeNull::of(Expr::Column(column));
    let value = value.alias_qualified(qualifier.cloned(), field.name());
    let plan = LogicalPlanBuilder::from(Arc::clone(plan)).project([value])?.build()?;
    Ok(Transformed::yes(Expr::ScalarSubquery(subquery.with_plan(Arc::new(plan)))))
}

/// The subquery as it was before [`value_or_null`]: where it becomes a left join, its value is nullable anyway.
pub fn as_written(plan: &LogicalPlan) -> DfResult<Cow<'_, LogicalPlan>> {
    let LogicalPlan::Projection(wrapped) = plan else { return Ok(Cow::Borrowed(plan)) };
    let [value] = &wrapped.expr[..] else { return Ok(Cow::Borrowed(plan)) };
    if !value.exists(|expr| Ok(MaybeNull::is(expr)))? {
        return Ok(Cow::Borrowed(plan));
    }
    let (mut input, mut of_input) = (&wrapped.input, None);
    if let LogicalPlan::Projection(Projection { expr, input: below, .. }) = &**input
        && let [expr] = &expr[..]
    {
        (input, of_input) = (below, Some(expr.clone().unalias()));
    }
    let mut inner = |expr: Expr| {
        Ok(match MaybeNull::value_in(&expr) {
            Some(column) => Transformed::yes(of_input.as_ref().unwrap_or(column).clone()),
            None => Transformed::no(expr),
        })
    };
    let name = wrapped.schema.qualified_field(0);
    let value = value.clone().unalias().rewrite_up(&mut inner).data()?;
    let value = value.alias_qualified(name.0.cloned(), name.1.name());
    LogicalPlanBuilder::from(Arc::clone(input)).project([value])?.build().map(Cow::Owned)
}

/// The column is one of a table, unchanged, that may be NULL there.
fn is_stored_nullable(column: &Column, mut plan: &LogicalPlan) -> DfResult<bool> {
    while let LogicalPlan::Sort(_) | LogicalPlan::Limit(_) = plan {
        plan = plan.inputs()[0];
    }
    let stored = TableSource::behind(column, plan)?.and_then(|(source, name)| source.field(&name));
    Ok(stored.is_some_and(|(_, is_nullable)| is_nullable))
}

/// The plan always has a row: totals have one even of no rows.
fn has_a_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => has_a_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => has_a_row(&alias.input),
        LogicalPlan::Sort(sort) => sort.fetch != Some(0) && has_a_row(&sort.input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(empty) => empty.produce_one_row,
        _ => false,
    }
}
