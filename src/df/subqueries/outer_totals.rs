//! An aggregate whose arguments are columns of an outer query alone is that query's, as in `(SELECT max(t.a) FROM u)` beside
//! FROM t: SQL adds up the rows of t there (SQL:2016, 6.9 and 10.9). DataFusion would add up those of u.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::AggregateFunctionParams;
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::correlated::has_subquery;
use crate::df::errors::to_df;
use crate::error::{Error, sqlstate};

/// Errors: there is such an aggregate.
pub fn are_none(plan: &LogicalPlan) -> DfResult<()> {
    plan.apply_with_subqueries(|node| {
        let LogicalPlan::Aggregate(aggregate) = node else { return Ok(TreeNodeRecursion::Continue) };
        for total in &aggregate.aggr_expr {
            total.apply(|expr| match expr {
                Expr::AggregateFunction(call) if is_outer(&call.params)? => Err(to_df(
                    Error::unsupported(format!("{} of columns of the query around it", call.func.name()))
                        .why("SQL adds up the rows of that query there, not those of the subquery")
                        .hint("leave the aggregate out, or move it into the outer query")
                        .state(sqlstate::GROUPING),
                )),
                _ => Ok(TreeNodeRecursion::Continue),
            })?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// What an aggregate names are columns of outer queries, and no others; subqueries may name any.
fn is_outer(params: &AggregateFunctionParams) -> DfResult<bool> {
    let AggregateFunctionParams { args, filter, order_by, .. } = params;
    let orders = order_by.iter().map(|by| &by.expr);
    let mut has_outer = false;
    for expr in args.iter().chain(filter.as_deref()).chain(orders) {
        if has_subquery(expr) || expr.exists(|expr| Ok(matches!(expr, Expr::Column(_))))? {
            return Ok(false);
        }
        has_outer |= expr.exists(|expr| Ok(matches!(expr, Expr::OuterReferenceColumn(..))))?;
    }
    Ok(has_outer)
}
