//! Tells a table source when nobody can tell in which order its rows come: several threads may read them then.
//!
//! That is so under an aggregate whose result is the same in every order. Elsewhere rows keep the order of the
//! keys, even where a statement does not ask for it. A plan that reads little is left to one thread.

use std::any::Any;
use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;

use super::scan::ScanExec;
use super::table::TableSource;
use crate::exec::scan::PARALLEL_WORK;

/// Aggregates of a set: what they give does not depend on which row comes first, and but for DISTINCT they keep a
/// number or a value.
pub const OF_A_SET: [&str; 5] = ["count", "sum", "min", "max", "avg"];

/// The same plan, the sources under such aggregates told so.
pub fn advise(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let advised = plan.transform_down_with_subqueries(|node| {
        let LogicalPlan::Aggregate(aggregate) = &node else { return Ok(Transformed::no(node)) };
        if !aggregate.aggr_expr.iter().all(is_unordered) {
            return Ok(Transformed::no(node));
        }
        let Some(input) = in_any_order(&aggregate.input)? else { return Ok(Transformed::no(node)) };
        let Aggregate { group_expr, aggr_expr, .. } = aggregate;
        let aggregate = Aggregate::try_new(Arc::new(input), group_expr.clone(), aggr_expr.clone())?;
        Ok(Transformed::yes(LogicalPlan::Aggregate(aggregate)))
    })?;
    Ok(advised.data)
}

/// The plan reads much, or something of which we do not know how much it is.
pub fn is_long(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let children = plan.children();
    if !children.is_empty() {
        return children.into_iter().any(is_long);
    }
    let any: &dyn Any = &**plan;
    match any.downcast_ref::<ScanExec>() {
        Some(scan) => scan.bound().map_or(true, |bound| bound.spec.access.work() >= PARALLEL_WORK),
        None => !(any.is::<EmptyExec>() || any.is::<PlaceholderRowExec>() || any.is::<DataSourceExec>()),
    }
}

fn is_unordered(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_unordered(&alias.expr),
        Expr::AggregateFunction(call) => {
            OF_A_SET.contains(&call.func.name()) && call.params.order_by.is_empty()
        }
        _ => false,
    }
}

/// The plan, if it is one table with nothing above it that counts rows.
fn in_any_order(plan: &LogicalPlan) -> DfResult<Option<LogicalPlan>> {
    match plan {
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => {
            let inputs = plan.inputs();
            let Some(input) = inputs.first().map(|input| in_any_order(input)).transpose()?.flatten() else {
                return Ok(None);
            };
            plan.with_new_exprs(plan.expressions(), vec![input]).map(Some)
        }
        LogicalPlan::TableScan(scan) if scan.fetch.is_none() => {
            let provider = source_as_provider(&scan.source)?;
            let any: &dyn std::any::Any = &*provider;
            let Some(source) = any.downcast_ref::<TableSource>() else { return Ok(None) };
            let (mut scan, mut source) = (scan.clone(), source.clone());
            source.any_order = true;
            scan.source = provider_as_source(Arc::new(source));
            Ok(Some(LogicalPlan::TableScan(scan)))
        }
        _ => Ok(None),
    }
}
