//! Orders of aggregates: those that matter, and those that do not.

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, SortExpr};

/// Aggregates whose result depends on the order of the rows.
pub const IN_ORDER: [&str; 5] = ["array_agg", "string_agg", "first_value", "last_value", "nth_value"];

/// The ORDER BY of DISTINCT ON without keys that it has already.
pub fn distinct_on_orders(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Distinct(Distinct::On(mut distinct)) = plan else { return Ok(Transformed::no(plan)) };
    let has_idle = distinct.sort_expr.as_mut().is_some_and(without_repeats);
    let distinct = LogicalPlan::Distinct(Distinct::On(distinct));
    Ok(Transformed::new(distinct, has_idle, TreeNodeRecursion::Continue))
}

/// Removes keys that are there already, and tells whether there were any: DataFusion 55.2 panics where they are given
/// twice.
fn without_repeats(order: &mut Vec<SortExpr>) -> bool {
    let (mut known, before) = (Vec::new(), order.len());
    order.retain(|by| {
        let is_new = !known.contains(&by.expr);
        known.push(by.expr.clone());
        is_new
    });
    order.len() < before
}

/// Removes the ORDER BY of aggregates that give the same in every order: most of DataFusion's treat the sort keys as a
/// second argument. Of others, keys that are there already.
pub fn idle_orders(mut expr: Expr, _: &DFSchema) -> DfResult<Transformed<Expr>> {
    match &mut expr {
        Expr::AggregateFunction(AggregateFunction { func, params })
            if !IN_ORDER.contains(&func.name()) && !func.supports_within_group_clause() =>
        {
            let orders = std::mem::take(&mut params.order_by);
            Ok(Transformed::new(expr, !orders.is_empty(), TreeNodeRecursion::Continue))
        }
        Expr::AggregateFunction(AggregateFunction { params, .. }) => {
            let has_idle = without_repeats(&mut params.order_by);
            Ok(Transformed::new(expr, has_idle, TreeNodeRecursion::Continue))
        }
        _ => Ok(Transformed::no(expr)),
    }
}

/// Sorts the distinct values of an aggregate that depends on their order and has none, as PostgreSQL does: DataFusion
/// takes them as they come out of a hash table.
pub fn distinct_orders(mut expr: Expr, _: &DFSchema) -> DfResult<Transformed<Expr>> {
    match &mut expr {
        Expr::AggregateFunction(AggregateFunction { func, params })
            if params.distinct && params.order_by.is_empty() && IN_ORDER.contains(&func.name()) =>
        {
            params.order_by.extend(params.args.first().map(|value| value.clone().sort(true, true)));
            Ok(Transformed::yes(expr))
        }
        _ => Ok(Transformed::no(expr)),
    }
}
