//! Computes what draws numbers as often as the statement says.
//!
//! - `ORDER BY random()`, `.. OVER (ORDER BY random())`: DataFusion would sort rows without a column, if nothing else is
//!   wanted of them, and fail; a number that is a column is drawn once for each row.
//! - `floor(random() * 6) IN (SELECT ..)`: what is compared with the set is part of each of several conditions that the
//!   IN is made of, so it is a column, too; likewise the middle of a BETWEEN, which becomes two comparisons.
//! - `(SELECT random()) - (SELECT random())`: DataFusion would run equal subqueries once. These get different names.

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::config::ConfigOptions;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Between, InSubquery, SetComparison};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::analyzer::AnalyzerRule;

use crate::df::rewrite::rename_kept;
use crate::df::subqueries::correlated::{UniqueNames, outer_columns, subquery_of};
use crate::df::tree::{RewritePlan, RewriteTree};
use crate::df::with_queries::draws;

/// The rule. Runs before subqueries are made joins.
#[derive(Debug)]
pub struct DrawnOnce;

impl AnalyzerRule for DrawnOnce {
    fn name(&self) -> &str {
        "drawn_once"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> DfResult<LogicalPlan> {
        // Few plans draw numbers.
        if !draws(&plan) {
            return Ok(plan);
        }
        let names = UniqueNames::default();
        plan.rewrite_up_with_subqueries(|node| drawn_once(node, &names)).data()
    }
}

fn drawn_once(node: LogicalPlan, names: &UniqueNames) -> DfResult<Transformed<LogicalPlan>> {
    let kept = NamePreserver::new(&node);
    let node = node.rewrite_own_expressions(|expr| {
        rename_kept(expr, &kept, &mut |expr| expr.rewrite_up(|expr| drawn_apart(expr, names)))
    })?;
    let Transformed { data: node, transformed, .. } = node;
    let [input] = node.inputs()[..] else { return Ok(Transformed::new_transformed(node, transformed)) };
    let mut drawn = Vec::new();
    let mut column = |expr: &mut Expr| {
        if expr.is_volatile() {
            let name = names.next("drawn");
            drawn.push(std::mem::take(expr).alias(&name));
            *expr = Expr::Column(Column::from_name(name));
        }
    };
    let is_sort = matches!(node, LogicalPlan::Sort(_));
    let mut changed = |mut expr: Expr| {
        if is_sort {
            column(&mut expr);
        }
        expr.rewrite_up(|mut expr| {
            match &mut expr {
                Expr::WindowFunction(call) => {
                    call.params.partition_by.iter_mut().for_each(&mut column);
                    call.params.order_by.iter_mut().for_each(|by| column(&mut by.expr));
                }
                Expr::InSubquery(InSubquery { expr, .. })
                | Expr::SetComparison(SetComparison { expr, .. }) => {
                    column(expr);
                }
                Expr::Between(Between { expr, .. }) => column(expr),
                _ => {}
            }
            Ok(Transformed::yes(expr))
        })
    };
    let exprs = node.expressions().into_iter().map(|expr| rename_kept(expr, &kept, &mut changed).data());
    let exprs: Vec<Expr> = exprs.collect::<DfResult<_>>()?;
    if drawn.is_empty() {
        return Ok(Transformed::new_transformed(node, transformed));
    }
    let columns = |plan: &LogicalPlan| plan.schema().columns().into_iter().map(Expr::Column);
    let below = columns(input).chain(drawn).collect::<Vec<_>>();
    let below = LogicalPlanBuilder::from(input.clone()).project(below)?.build()?;
    let above = LogicalPlanBuilder::from(node.with_new_exprs(exprs, vec![below])?);
    above.project(columns(&node))?.build().map(Transformed::yes)
}

/// A subquery that draws numbers under a name of its own.
fn drawn_apart(expr: Expr, names: &UniqueNames) -> DfResult<Transformed<Expr>> {
    let Expr::ScalarSubquery(query) = &expr else { return Ok(Transformed::no(expr)) };
    if !outer_columns(&query.subquery).is_empty() || !draws(&query.subquery) {
        return Ok(Transformed::no(expr));
    }
    let named = LogicalPlanBuilder::from(LogicalPlan::clone(&query.subquery)).alias(names.next("drawn"))?;
    Ok(Transformed::yes(Expr::ScalarSubquery(subquery_of(named.build()?))))
}
