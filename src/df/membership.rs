//! `x IN (SELECT ...)` as SQL has it: unknown, where a NULL is what keeps it from being false.
//!
//! DataFusion makes a join of it. At the top of a WHERE that is right, but elsewhere the join marks each
//! row as found or not found, which loses the third answer: `a OR x NOT IN (SELECT y ...)` is then true
//! where a `y` is NULL. It also loses the rest of a correlated subquery's WHERE when it looks for NULLs, and a
//! NOT IN whose `x` is a constant. [`null_aware_in`] spells the three answers out, for DataFusion to mark each.

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Subquery, lit, when,
};
use std::sync::Arc;

/// Rewrites the IN of a WHERE, HAVING or view; it belongs behind type coercion.
pub fn null_aware_in(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Filter(filter) = plan else { return Ok(Transformed::no(plan)) };
    let terms = split_conjunction_owned(filter.predicate);
    let spelled: DfResult<Vec<Expr>> = terms
        .into_iter()
        .map(|term| match is_joined_well(&term) {
            true => Ok(term),
            false => term.transform_up(|expr| spell_out(expr, &filter.input)).data(),
        })
        .collect();
    let predicate = conjunction(spelled?).unwrap_or(lit(true));
    Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?)))
}

/// A whole term of a WHERE that DataFusion's join answers right: what is not true may as well be false.
fn is_joined_well(term: &Expr) -> bool {
    let (inner, negated) = match term {
        Expr::Not(inner) => (&**inner, true),
        term => (term, false),
    };
    match inner {
        Expr::InSubquery(InSubquery { expr, subquery, negated: inner }) => {
            negated == *inner || (subquery.outer_ref_columns.is_empty() && expr.any_column_refs())
        }
        _ => false,
    }
}

/// `x IN (q)` → true if `x` is among them, unknown if `x` or one of them is NULL, otherwise false.
fn spell_out(expr: Expr, input: &LogicalPlan) -> DfResult<Transformed<Expr>> {
    let Expr::InSubquery(InSubquery { expr: x, subquery, negated }) = expr else {
        return Ok(Transformed::no(expr));
    };
    let unknown = || lit(ScalarValue::Boolean(None));
    let mut cases = when(
        Expr::InSubquery(InSubquery { expr: x.clone(), subquery: subquery.clone(), negated: false }),
        lit(!negated),
    );
    if x.nullable(input.schema())? {
        cases = cases.when(x.is_null().and(exists(subquery.clone())), unknown());
    }
    let (qualifier, field) = subquery.subquery.schema().qualified_field(0);
    if field.is_nullable() {
        let null = Expr::Column(Column::new(qualifier.cloned(), field.name())).is_null();
        let nulls = LogicalPlanBuilder::from((*subquery.subquery).clone()).filter(null)?.build()?;
        cases = cases.when(exists(subquery.with_plan(Arc::new(nulls))), unknown());
    }
    Ok(Transformed::yes(cases.otherwise(lit(negated))?))
}

fn exists(subquery: Subquery) -> Expr {
    Expr::Exists(Exists { subquery, negated: false })
}
