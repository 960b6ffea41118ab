//! Subqueries where DataFusion 55.2 does not take them.
//!
//! It makes a join of an EXISTS in a filter only; elsewhere [`counted_exists`] asks whether the rows are more than
//! none, which DataFusion can answer there too. It sorts by no subquery, and adds up none: [`subqueries_as_columns`] makes a column
//! of it. And it finds no join for a condition on a table in FROM that itself takes columns from around: [`plain_exists`] puts the
//! condition inside.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result as DfResult;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::Exists;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::find_out_reference_exprs;
use datafusion::logical_expr::{
    Expr, FetchType, Filter, LogicalPlan, LogicalPlanBuilder, SkipType, col, lit,
};

use super::rewrite::rename_kept;

/// Gives a subquery by which rows are sorted, grouped or added up a column of its own.
pub fn subqueries_as_columns(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let has_one = |plan: &LogicalPlan| plan.expressions().iter().any(has_subquery);
    match plan {
        LogicalPlan::Sort(_) if has_one(&plan) => {
            let columns: Vec<Expr> = plan.schema().iter().map(Expr::from).collect();
            let sorted = over_columns(plan)?;
            Ok(Transformed::yes(LogicalPlanBuilder::from(sorted).project(columns)?.build()?))
        }
        LogicalPlan::Aggregate(_) if has_one(&plan) => over_columns(plan).map(Transformed::yes),
        plan => Ok(Transformed::no(plan)),
    }
}

/// A node with one input, below which its subqueries are columns.
fn over_columns(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let Some(input) = plan.inputs().first().map(|input| (*input).clone()) else { return Ok(plan) };
    let mut columns: Vec<Expr> = input.schema().iter().map(Expr::from).collect();
    let names = NamePreserver::new(&plan);
    let mut as_column = |e: Expr| {
        if !is_subquery(&e) {
            return Ok(Transformed::no(e));
        }
        let name = format!("(subquery {})", columns.len());
        columns.push(e.alias(&name));
        let column = Expr::Column(Column::new_unqualified(name));
        Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
    };
    let exprs: DfResult<Vec<Expr>> = plan
        .expressions()
        .into_iter()
        .map(|e| rename_kept(e, &names, &mut |e| e.transform_down(&mut as_column)).data())
        .collect();
    let exprs = exprs?;
    let below = LogicalPlanBuilder::from(input).project(columns)?.build()?;
    plan.with_new_exprs(exprs, vec![below])
}

/// Makes `EXISTS (SELECT ... FROM (SELECT x AS a FROM t WHERE u = outer) s WHERE a = b)` one query of `t`.
pub fn plain_exists(expr: Expr, _: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::Exists(Exists { subquery, negated }) = expr else { return Ok(Transformed::no(expr)) };
    let plan = without_columns(&subquery.subquery);
    let flat = match plan {
        LogicalPlan::Filter(filter) if !has_subquery(&filter.predicate) => flattened(filter)?,
        _ => None,
    };
    Ok(match flat {
        Some(plan) => {
            let subquery = subquery.with_plan(Arc::new(plan));
            Transformed::yes(Expr::Exists(Exists { subquery, negated }))
        }
        None => Transformed::no(Expr::Exists(Exists { subquery, negated })),
    })
}

/// What the SELECT gives of a row does not matter for whether there is one.
fn without_columns(plan: &LogicalPlan) -> &LogicalPlan {
    match plan {
        LogicalPlan::Projection(projection) => without_columns(&projection.input),
        plan => plan,
    }
}

/// The condition below the columns and names it is written in; `None` if what is there takes no columns from around.
fn flattened(filter: &Filter) -> DfResult<Option<LogicalPlan>> {
    let (mut predicate, mut below) = (filter.predicate.clone(), &filter.input);
    loop {
        let (above, inner, exprs) = match &**below {
            LogicalPlan::SubqueryAlias(named) => {
                let same = named.input.schema().iter().map(Expr::from).collect();
                (&named.schema, &named.input, same)
            }
            LogicalPlan::Projection(picked) if !picked.expr.iter().any(Expr::is_volatile) => {
                (&picked.schema, &picked.input, picked.expr.clone())
            }
            _ => break,
        };
        let put = |e: Expr| {
            let at = match &e {
                Expr::Column(column) => above.maybe_index_of_column(column),
                _ => None,
            };
            Ok(at.map_or(Transformed::no(e), |at| Transformed::yes(exprs[at].clone().unalias())))
        };
        predicate = predicate.transform_up(put).data()?;
        below = inner;
    }
    let takes = taken_columns(&predicate);
    if below.all_out_ref_exprs().is_empty() || takes.iter().any(|column| has_column(below, column)) {
        return Ok(None);
    }
    while let LogicalPlan::Filter(inner) = &**below {
        predicate = inner.predicate.clone().and(predicate);
        below = &inner.input;
    }
    LogicalPlanBuilder::from(Arc::clone(below)).filter(predicate)?.project([lit(1)])?.build().map(Some)
}

/// The columns that an expression takes from around its query.
fn taken_columns(expr: &Expr) -> Vec<Column> {
    let taken = find_out_reference_exprs(expr).into_iter();
    taken
        .filter_map(|e| if let Expr::OuterReferenceColumn(_, column) = e { Some(column) } else { None })
        .collect()
}

/// The plan or one below it has such a column: there, DataFusion would take it for the one from around.
pub(super) fn has_column(plan: &LogicalPlan, column: &Column) -> bool {
    plan.exists(|node| Ok(node.schema().has_column(column))).unwrap_or(true)
}

fn is_subquery(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_))
}

fn has_subquery(expr: &Expr) -> bool {
    expr.exists(|e| Ok(is_subquery(e))).unwrap_or(true)
}

/// Rewrites the EXISTS of a node that is no filter and no join.
pub fn counted_exists(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    if matches!(plan, LogicalPlan::Filter(_) | LogicalPlan::Join(_)) {
        return Ok(Transformed::no(plan));
    }
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expr| rename_kept(expr, &names, &mut |expr| expr.transform_up(counted)))
}

/// An EXISTS as a comparison of how many rows there are; any other expression as it is.
pub(super) fn counted(expr: Expr) -> DfResult<Transformed<Expr>> {
    let Expr::Exists(Exists { subquery, negated }) = expr else { return Ok(Transformed::no(expr)) };
    let rows = unlimited(&subquery.subquery)?;
    let all = count(lit(1)).alias("rows");
    let is_there = match negated {
        true => col("rows").eq(lit(0_i64)),
        false => col("rows").gt(lit(0_i64)),
    };
    let plan = LogicalPlanBuilder::from(rows).aggregate(Vec::<Expr>::new(), [all])?.project([is_there])?;
    Ok(Transformed::yes(Expr::ScalarSubquery(subquery.with_plan(Arc::new(plan.build()?)))))
}

/// The plan without a LIMIT that leaves a row, if there is one.
fn unlimited(plan: &LogicalPlan) -> DfResult<LogicalPlan> {
    if let LogicalPlan::Limit(limit) = plan
        && let (SkipType::Literal(0), FetchType::Literal(Some(1..))) =
            (limit.get_skip_type()?, limit.get_fetch_type()?)
    {
        return unlimited(&limit.input);
    }
    Ok(plan.clone())
}
