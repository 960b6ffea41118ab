//! Subqueries in the ON of a join.
//!
//! DataFusion 55.2 moves such a condition to the side whose columns it names outside the subquery, and ignores columns
//! of the other side inside it. [`subqueries_in_on`] moves it where it is evaluated correctly: above an inner join, or
//! into the null-extended side of an outer join. A subquery value that depends on the other side, as in `ON m.id =
//! (SELECT max(id) FROM m WHERE m.room = room.id)`, becomes a column of that side.

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
    let (subqueries, mut rest): (Vec<Expr>, Vec<Expr>) = terms.into_iter().partition(has_subquery);
    let (side, kept) = match join.join_type {
        JoinType::Inner => {
            join.filter = conjunction(rest);
            let join = LogicalPlan::Join(join);
            return filtered(Arc::new(join), subqueries).map(Arc::unwrap_or_clone);
        }
        JoinType::Left => (&mut join.right, &mut join.left),
        JoinType::Right => (&mut join.left, &mut join.right),
        _ => return Err(refused()),
    };
    let has_all = |side: &LogicalPlan, columns: Vec<Column>| {
        columns.iter().all(|column| side.schema().has_column(column))
    };
    let (below, across): (Vec<Expr>, Vec<Expr>) =
        subqueries.into_iter().partition(|term| has_all(side, columns(term)));
    *side = filtered(Arc::clone(side), below)?;
    let mut values: Vec<Expr> = Vec::new();
    for term in across {
        let with_columns = term.rewrite_down(|expr| {
            let is_one = matches!(expr, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_));
            if !is_one || !has_all(kept, columns(&expr)) {
                return Ok(Transformed::no(expr));
            }
            let name = format!("__on_{}", values.len());
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
    if values.is_empty() {
        return Ok(LogicalPlan::Join(join));
    }
    let all = kept.schema().columns().into_iter().map(Expr::Column).chain(values).collect();
    *kept = Arc::new(LogicalPlan::Projection(Projection::try_new(all, Arc::clone(kept))?));
    let given = join.schema.columns().into_iter().map(Expr::Column).collect();
    let join = LogicalPlan::Join(join).recompute_schema()?;
    Projection::try_new(given, Arc::new(join)).map(LogicalPlan::Projection)
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
