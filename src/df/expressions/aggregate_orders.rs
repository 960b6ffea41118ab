//! Orders of aggregates: those that matter, and those that do not.

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::AggregateFunction;

/// Aggregates whose result depends on the order of the rows.
pub const IN_ORDER: [&str; 5] = ["array_agg", "string_agg", "first_value", "last_value", "nth_value"];

/// Removes the ORDER BY of aggregates that give the same in every order: most of DataFusion's treat the sort keys as a
/// second argument.
pub fn idle_orders(mut expr: Expr, _: &DFSchema) -> DfResult<Transformed<Expr>> {
    match &mut expr {
        Expr::AggregateFunction(AggregateFunction { func, params })
            if !IN_ORDER.contains(&func.name()) && !func.supports_within_group_clause() =>
        {
            let orders = std::mem::take(&mut params.order_by);
            Ok(Transformed::new(expr, !orders.is_empty(), TreeNodeRecursion::Continue))
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
