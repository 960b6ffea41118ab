//! Makes the value of `(SELECT ...)` nullable, as it is NULL without a row.
//!
//! DataFusion 55.2 declares such a value NOT NULL if its column is, and then drops an `IS NULL` on it or refuses the
//! NULL. [`value_or_null`] wraps the column in an identity function that is declared nullable. Only of a column that is
//! stored the optimizer will not find out later that it is NOT NULL, as of `CASE WHEN true THEN 1 END`.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};

use super::correlated::outer_columns;
use crate::df::expressions::step_types::MaybeNull;
use crate::df::table::TableSource;

/// Makes a subquery's value nullable. Runs before all rules that check nullability.
pub fn value_or_null(expr: Expr, _: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::ScalarSubquery(subquery) = &expr else { return Ok(Transformed::no(expr)) };
    let plan = &subquery.subquery;
    let (qualifier, field) = plan.schema().qualified_field(0);
    // Several columns are an error elsewhere; correlated subqueries become left joins, which are nullable anyway.
    let column = Column::new(qualifier.cloned(), field.name());
    if plan.schema().fields().len() > 1
        || has_a_row(plan)
        || is_stored_nullable(&column, plan)?
        || !outer_columns(plan).is_empty()
    {
        return Ok(Transformed::no(expr));
    }
    let value = MaybeNull::of(Expr::Column(column));
    let value = value.alias_qualified(qualifier.cloned(), field.name());
    let plan = LogicalPlanBuilder::from(Arc::clone(plan)).project([value])?.build()?;
    Ok(Transformed::yes(Expr::ScalarSubquery(subquery.with_plan(Arc::new(plan)))))
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
