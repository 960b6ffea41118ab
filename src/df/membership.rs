//! `x IN (SELECT ...)` as SQL has it: unknown, where a NULL is what keeps it from being false.
//!
//! DataFusion makes a join of it. At the top of a WHERE that is right, but elsewhere the join marks each
//! row as found or not found, which loses the third answer: `a OR x NOT IN (SELECT y ...)` is then true
//! where a `y` is NULL. It also loses the rest of a correlated subquery's WHERE when it looks for NULLs, and a
//! NOT IN whose `x` is a constant. [`null_aware_in`] spells the three answers out, for DataFusion to mark each. Outside
//! a WHERE it makes no join of it at all; there the rows that answer are counted.

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema, ExprSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{
    conjunction, find_out_reference_exprs, merge_schema, split_conjunction_owned,
};
use datafusion::logical_expr::{
    Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Subquery, lit, when,
};
use std::sync::Arc;

use super::exists::{counted, has_column};
use super::rewrite::rename_kept;

/// Rewrites every IN but that of a join; it belongs behind type coercion.
pub fn null_aware_in(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let filter = match plan {
        LogicalPlan::Filter(filter) => filter,
        LogicalPlan::Join(_) => return Ok(Transformed::no(plan)),
        plan => {
            let (names, schema) = (NamePreserver::new(&plan), merge_schema(&plan.inputs()));
            let count = |expr| {
                rename_kept(expr, &names, &mut |expr| {
                    expr.transform_up(|expr| spell_out(expr, &schema, &counted_among, &|q| counted_rows(q)))
                })
            };
            return plan.map_expressions(count);
        }
    };
    let terms = split_conjunction_owned(filter.predicate);
    let spelled: DfResult<Vec<Expr>> = terms
        .into_iter()
        .map(|term| match is_joined_well(&term) {
            true => Ok(term),
            false => {
                let schema = filter.input.schema();
                term.transform_up(|expr| spell_out(expr, schema, &among, &|q| Ok(exists(q)))).data()
            }
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

/// `x IN (q)` → true if `x` is `among` them, unknown if `x` or one of them is NULL, otherwise false.
fn spell_out(
    expr: Expr,
    schema: &DFSchema,
    among: &dyn Fn(Expr, Subquery, &DFSchema) -> DfResult<Expr>,
    exists: &dyn Fn(Subquery) -> DfResult<Expr>,
) -> DfResult<Transformed<Expr>> {
    let Expr::InSubquery(InSubquery { expr: x, subquery, negated }) = expr else {
        return Ok(Transformed::no(expr));
    };
    let unknown = || lit(ScalarValue::Boolean(None));
    let mut cases = when(among((*x).clone(), subquery.clone(), schema)?, lit(!negated));
    if x.nullable(schema)? {
        cases = cases.when(x.is_null().and(exists(subquery.clone())?), unknown());
    }
    if subquery.subquery.schema().field(0).is_nullable() {
        let nulls = narrowed(&subquery, |y| y.is_null())?;
        cases = cases.when(exists(nulls)?, unknown());
    }
    Ok(Transformed::yes(cases.otherwise(lit(negated))?))
}

fn among(x: Expr, subquery: Subquery, _: &DFSchema) -> DfResult<Expr> {
    Ok(Expr::InSubquery(InSubquery { expr: Box::new(x), subquery, negated: false }))
}

/// `x IN (q)` as `EXISTS (SELECT ... FROM (q) WHERE y = x)`: true where that is, otherwise false.
fn counted_among(x: Expr, mut subquery: Subquery, schema: &DFSchema) -> DfResult<Expr> {
    let outer = |e: Expr| match e {
        Expr::Column(column) => {
            let field = Arc::clone(schema.field_from_column(&column)?);
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        e => Ok(Transformed::no(e)),
    };
    let columns = x.column_refs();
    if columns.iter().any(|column| has_column(&subquery.subquery, column)) {
        let apart = LogicalPlanBuilder::from((*subquery.subquery).clone()).alias("(among)")?.build()?;
        subquery = subquery.with_plan(Arc::new(apart));
    }
    let x = x.clone().transform_up(outer).data()?;
    subquery.outer_ref_columns.extend(find_out_reference_exprs(&x));
    counted_rows(narrowed(&subquery, |y| y.eq(x))?)
}

fn counted_rows(subquery: Subquery) -> DfResult<Expr> {
    counted(exists(subquery)).data()
}

/// The rows of a subquery with one column for which something is true of it.
fn narrowed(subquery: &Subquery, is_true: impl FnOnce(Expr) -> Expr) -> DfResult<Subquery> {
    let (qualifier, field) = subquery.subquery.schema().qualified_field(0);
    let y = Expr::Column(Column::new(qualifier.cloned(), field.name()));
    let rows = LogicalPlanBuilder::from((*subquery.subquery).clone()).filter(is_true(y))?.build()?;
    Ok(subquery.with_plan(Arc::new(rows)))
}

fn exists(subquery: Subquery) -> Expr {
    Expr::Exists(Exists { subquery, negated: false })
}
