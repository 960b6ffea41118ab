//! Subqueries in the ON of a join.
//!
//! DataFusion 55.2 moves such a condition to the side whose columns it names outside the subquery, and loses sight of
//! those that the subquery takes from the other. [`subqueries_in_on`] puts it where it is answered right: above an inner
//! join, or below an outer one, on the side that is filled up with NULLs.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, JoinType};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, Join, LogicalPlan};

use super::correlated::{has_subquery, subquery_in};
use super::errors::to_df;
use crate::error::Error;

/// Moves the conditions of a join; it belongs before everything that looks at a WHERE.
pub fn subqueries_in_on(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Join(join) if join.filter.as_ref().is_some_and(has_subquery) => {
            moved(join).map(Transformed::yes)
        }
        plan => Ok(Transformed::no(plan)),
    }
}

fn moved(mut join: Join) -> DfResult<LogicalPlan> {
    let terms = join.filter.take().map(split_conjunction_owned).unwrap_or_default();
    let (subqueries, rest): (Vec<Expr>, Vec<Expr>) = terms.into_iter().partition(has_subquery);
    join.filter = conjunction(rest);
    let side = match join.join_type {
        JoinType::Inner => {
            let join = LogicalPlan::Join(join);
            return filtered(Arc::new(join), subqueries).map(Arc::unwrap_or_clone);
        }
        JoinType::Left => &mut join.right,
        JoinType::Right => &mut join.left,
        _ => return Err(refused()),
    };
    let is_there = |column: &Column| side.schema().has_column(column);
    if !subqueries.iter().all(|term| columns(term).iter().all(is_there)) {
        return Err(refused());
    }
    *side = filtered(Arc::clone(side), subqueries)?;
    Ok(LogicalPlan::Join(join))
}

fn filtered(input: Arc<LogicalPlan>, terms: Vec<Expr>) -> DfResult<Arc<LogicalPlan>> {
    let Some(predicate) = conjunction(terms) else { return Ok(input) };
    Ok(Arc::new(LogicalPlan::Filter(Filter::try_new(predicate, input)?)))
}

fn refused() -> datafusion::error::DataFusionError {
    to_df(
        Error::unsupported("a subquery in ON that needs both sides of an outer join")
            .why("it may name columns of the side that is filled up with NULLs, and of no other")
            .hint("join with a query in FROM that has the condition in its WHERE"),
    )
}

/// Columns of the join that a condition names, outside its subqueries and inside them.
fn columns(term: &Expr) -> Vec<Column> {
    let mut all: Vec<Column> = term.column_refs().into_iter().cloned().collect();
    // What is asked of every expression never fails.
    let _ = term.exists(|e| {
        let outer = subquery_in(e).into_iter().flat_map(|subquery| &subquery.outer_ref_columns);
        all.extend(outer.filter_map(|outer| match outer {
            Expr::OuterReferenceColumn(_, column) => Some(column.clone()),
            _ => None,
        }));
        Ok(false)
    });
    all
}
