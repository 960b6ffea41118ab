//! Subqueries in the ON of a join.
//!
//! DataFusion 55.2 moves such a condition to the side whose columns it names outside the subquery, and ignores columns
//! of the other side inside it. [`subqueries_in_on`] moves it where it is evaluated correctly: above an inner join, or
//! into the null-extended side of an outer join. Otherwise a subquery that depends on one side, as in `ON m.id = (SELECT
//! max(id) FROM m WHERE m.room = room.id)`, becomes a column of that side.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, Join, LogicalPlan, Projection};

use super::correlated::{has_subquery, subquery_in};
use crate::df::errors::to_df;
use crate::df::tree::RewriteTree;
use crate::error::Error;

/// Moves such conditions. Runs before all rules that look at a WHERE.
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
    let (mut subqueries, mut rest): (Vec<Expr>, Vec<Expr>) = terms.into_iter().partition(has_subquery);
    let extended = match join.join_type {
        JoinType::Inner => {
            join.filter = conjunction(rest);
            let join = LogicalPlan::Join(join);
            return filtered(Arc::new(join), subqueries).map(Arc::unwrap_or_clone);
        }
        JoinType::Left => Some(&mut join.right),
        JoinType::Right => Some(&mut join.left),
        JoinType::Full => None,
        _ => return Err(refused()),
    };
    if let Some(side) = extended {
        let (below, across) = subqueries.into_iter().partition(|term| has_all(side, &columns(term)));
        *side = filtered(Arc::clone(side), below)?;
        subqueries = across;
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for term in subqueries {
        let with_columns = term.rewrite_down(|expr| {
            if subquery_in(&expr).is_none() {
                return Ok(Transformed::no(expr));
            }
            let used = columns(&expr);
            let name = format!("__on_{}", left.len() + right.len());
            let values = match (has_all(&join.left, &used), has_all(&join.right, &used)) {
                (true, _) => &mut left,
                (_, true) => &mut right,
                _ => return Ok(Transformed::no(expr)),
            };
            values.push(expr.alias(&name));
            let column = Expr::Column(Column::new_unqualified(name));
            Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
        })?;
        if has_subquery(&with_columns.data) {
            return Err(refused());
        }
        rest.push(with_columns.data);
    }
    join.filter = conjunction(rest);
    if left.is_empty() && right.is_empty() {
        return Ok(LogicalPlan::Join(join));
    }
    join.left = with_values(join.left, left)?;
    join.right = with_values(join.right, right)?;
    let given = join.schema.columns().into_iter().map(Expr::Column).collect();
    let join = LogicalPlan::Join(join).recompute_schema()?;
    Projection::try_new(given, Arc::new(join)).map(LogicalPlan::Projection)
}

fn has_all(side: &LogicalPlan, columns: &[Column]) -> bool {
    columns.iter().all(|column| side.schema().has_column(column))
}

/// The rows of a side with more columns.
fn with_values(side: Arc<LogicalPlan>, values: Vec<Expr>) -> DfResult<Arc<LogicalPlan>> {
    if values.is_empty() {
        return Ok(side);
    }
    let all = side.schema().columns().into_iter().map(Expr::Column).chain(values).collect();
    Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(all, side)?)))
}

fn filtered(input: Arc<LogicalPlan>, terms: Vec<Expr>) -> DfResult<Arc<LogicalPlan>> {
    let Some(predicate) = conjunction(terms) else { return Ok(input) };
    Ok(Arc::new(LogicalPlan::Filter(Filter::try_new(predicate, input)?)))
}

fn refused() -> datafusion::error::DataFusionError {
    to_df(
        Error::unsupported("a subquery in ON that needs both sides of an outer join")
            .why("it may name columns of one side")
            .hint("join with a query in FROM that has the condition in its WHERE"),
    )
}

/// Columns of the join that a condition names, outside and inside its subqueries.
fn columns(term: &Expr) -> Vec<Column> {
    let mut all: Vec<Column> = term.column_refs().into_iter().cloned().collect();
    // The closure never fails.
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
