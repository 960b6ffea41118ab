//! Evaluates subqueries for the first few rows only.
//!
//! `SELECT id, (SELECT .. WHERE b.a = a.id ..) FROM a ORDER BY at LIMIT 20` is planned as a top-k sort above the
//! projection with the subquery: it is evaluated for every row of `a`, of which twenty are kept. Where the order does
//! not depend on subqueries, this rule keeps the rows first, and sorts once more above.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::Sort as SortExpr;
use datafusion::logical_expr::{Expr, Limit, LogicalPlan, Projection, Sort, SubqueryAlias};

use super::correlated::{has_subquery, is_pulled_up_total};
use crate::df::rewrite::below;

/// Moves a limit below projections with correlated subqueries.
pub fn first_rows(node: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Limit(limit) = &node else { return Ok(Transformed::no(node)) };
    let mut first = FirstRows { limit, is_worth_it: false };
    let moved = first.under(&limit.input, None)?;
    Ok(match moved.filter(|_| first.is_worth_it) {
        Some(moved) => Transformed::yes(moved),
        None => Transformed::no(node),
    })
}

struct FirstRows<'l> {
    limit: &'l Limit,
    /// A projection with a correlated subquery was passed.
    is_worth_it: bool,
}

impl FirstRows<'_> {
    /// The plan with the limit moved down, for rows in this order, if any; `None` if a sort key cannot be moved along.
    fn under(&mut self, plan: &LogicalPlan, order: Option<Vec<SortExpr>>) -> DfResult<Option<LogicalPlan>> {
        match (plan, order) {
            (LogicalPlan::Sort(sort), None) if sort.fetch.is_none() => {
                let first = self.under(&sort.input, Some(sort.expr.clone()))?;
                // The subqueries become joins, which do not keep the order.
                Ok(first.map(|first| LogicalPlan::Sort(Sort { input: Arc::new(first), ..sort.clone() })))
            }
            (
                LogicalPlan::Projection(Projection { input, .. })
                | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }),
                order,
            ) => {
                let under = |by: &SortExpr| {
                    let expr = below(&by.expr, plan)?;
                    (!expr.is_volatile() && !has_subquery(&expr)).then(|| SortExpr { expr, ..by.clone() })
                };
                let order = match order {
                    None => None,
                    Some(order) => match order.iter().map(under).collect() {
                        Some(order) => Some(order),
                        None => return Ok(None),
                    },
                };
                self.is_worth_it |= plan.expressions().iter().any(depends_on_the_row);
                let Some(input) = self.under(input, order)? else { return Ok(None) };
                plan.with_new_exprs(plan.expressions(), vec![input]).map(Some)
            }
            (plan, order) => {
                let input = Arc::new(plan.clone());
                let input = match order {
                    None => input,
                    Some(expr) => Arc::new(LogicalPlan::Sort(Sort { expr, input, fetch: None })),
                };
                Ok(Some(LogicalPlan::Limit(Limit { input, ..self.limit.clone() })))
            }
        }
    }
}

/// The expression has a correlated subquery other than a simple total: DataFusion's join handles such totals well for
/// few rows.
fn depends_on_the_row(expr: &Expr) -> bool {
    let depends = |e: &Expr| match e {
        Expr::ScalarSubquery(subquery) => {
            !subquery.outer_ref_columns.is_empty() && !is_pulled_up_total(&subquery.subquery)
        }
        _ => false,
    };
    expr.exists(|e| Ok(depends(e))).unwrap_or(false)
}
