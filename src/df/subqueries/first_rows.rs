//! Subqueries of the first few rows only.
//!
//! `SELECT id, (SELECT .. WHERE b.a = a.id ..) FROM a ORDER BY at LIMIT 20` is planned as a limit of a sort of columns, one
//! of which the subquery gives: for every row of `a`, before twenty of them are picked. Where the order does not hang on
//! what subqueries give, the rows are picked first here, and sorted once more behind.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::Sort as SortExpr;
use datafusion::logical_expr::{Expr, Limit, LogicalPlan, Projection, Sort, SubqueryAlias};

use super::correlated::is_pulled_up_total;
use crate::df::rewrite::below;

/// A limit moved under the columns that it has no part in, if subqueries that depend on the row are among them.
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
    /// It has come under a subquery.
    is_worth_it: bool,
}

impl FirstRows<'_> {
    /// The first rows of a plan, in this order, if any; `None` if the order hangs on what it computes.
    fn under(&mut self, plan: &LogicalPlan, order: Option<Vec<SortExpr>>) -> DfResult<Option<LogicalPlan>> {
        match (plan, order) {
            (LogicalPlan::Sort(sort), None) if sort.fetch.is_none() => {
                let first = self.under(&sort.input, Some(sort.expr.clone()))?;
                // Joins bring what subqueries give, and keep no order.
                Ok(first.map(|first| LogicalPlan::Sort(Sort { input: Arc::new(first), ..sort.clone() })))
            }
            (
                LogicalPlan::Projection(Projection { input, .. })
                | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }),
                order,
            ) => {
                let under = |by: &SortExpr| {
                    let expr = below(&by.expr, plan)?;
                    (!expr.is_volatile() && !holds_subquery(&expr)).then(|| SortExpr { expr, ..by.clone() })
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

fn holds_subquery(expr: &Expr) -> bool {
    let is_one = |e: &Expr| {
        matches!(e, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_))
    };
    expr.exists(|e| Ok(is_one(e))).unwrap_or(true)
}

/// It has a value for each row that takes more than a total of the rows with equal columns, which a join has for few rows
/// as it stands.
fn depends_on_the_row(expr: &Expr) -> bool {
    let depends = |e: &Expr| match e {
        Expr::ScalarSubquery(subquery) => {
            !subquery.outer_ref_columns.is_empty() && !is_pulled_up_total(&subquery.subquery)
        }
        _ => false,
    };
    expr.exists(|e| Ok(depends(e))).unwrap_or(false)
}
