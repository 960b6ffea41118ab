//! MIN and MAX of a column whose order an access gives: its first row is all that is read.
//!
//! Under `min(x)` without groups, only the row with the smallest x matters. So a sort by x that keeps one row
//! goes below the aggregate, and a source that gives the order drops the sort and stops at that row. Several
//! of them in one SELECT become aggregates of their own, joined row by row, if each is served so.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, JoinType};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder};

use super::table::TableSource;

/// Extremes of one aggregate, at the most.
const EXTREMES_MAX: usize = 4;

/// `min(column)` or `max(column)`.
struct Extreme<'p> {
    call: &'p Expr,
    column: &'p Column,
    is_max: bool,
}

/// The same plan, its extremes read from one end.
pub fn from_one_end(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let changed = plan.transform_up(|node| {
        let LogicalPlan::Aggregate(aggregate) = &node else { return Ok(Transformed::no(node)) };
        match rewritten(aggregate)? {
            Some(plan) => Ok(Transformed::yes(plan)),
            None => Ok(Transformed::no(node)),
        }
    })?;
    Ok(changed.data)
}

fn rewritten(aggregate: &Aggregate) -> DfResult<Option<LogicalPlan>> {
    let extremes: Option<Vec<Extreme<'_>>> = aggregate.aggr_expr.iter().map(extreme).collect();
    let Some(extremes) = extremes else { return Ok(None) };
    if !aggregate.group_expr.is_empty() || extremes.is_empty() || extremes.len() > EXTREMES_MAX {
        return Ok(None);
    }
    let mut each = Vec::with_capacity(extremes.len());
    for extreme in &extremes {
        let Some(input) = first_row(&aggregate.input, extreme, extremes.len() == 1)? else { return Ok(None) };
        let one =
            LogicalPlanBuilder::from(input).aggregate(Vec::<Expr>::new(), vec![extreme.call.clone()])?;
        each.push(one.build()?);
    }
    let columns: Vec<Expr> = aggregate.schema.columns().into_iter().map(Expr::Column).collect();
    let mut each = each.into_iter();
    let Some(first) = each.next() else { return Ok(None) };
    if each.len() == 0 {
        return Ok(Some(first));
    }
    // One row each, so that their product is one row, too.
    let joined = each.try_fold(LogicalPlanBuilder::from(first), |all, one| {
        all.join_on(one, JoinType::Inner, Vec::<Expr>::new())
    });
    Ok(Some(joined?.project(columns)?.build()?))
}

fn extreme(call: &Expr) -> Option<Extreme<'_>> {
    let Expr::AggregateFunction(AggregateFunction { func, params }) = call else { return None };
    let is_max = match func.name() {
        "min" => false,
        "max" => true,
        _ => return None,
    };
    let [Expr::Column(column)] = &params.args[..] else { return None };
    // DISTINCT changes nothing here, but a FILTER does.
    (params.filter.is_none() && params.order_by.is_empty()).then_some(Extreme { call, column, is_max })
}

/// The rows in the order of the column, the first only; `None` if the order does not come for free.
fn first_row(input: &LogicalPlan, extreme: &Extreme<'_>, alone: bool) -> DfResult<Option<LogicalPlan>> {
    let Some(input) = served(input, extreme, alone)? else { return Ok(None) };
    let sort = Expr::Column(extreme.column.clone()).sort(!extreme.is_max, !extreme.is_max);
    Ok(Some(LogicalPlanBuilder::from(input).sort_with_limit([sort], Some(1))?.build()?))
}

/// The input without NULLs of the column, if its table gives the order.
fn served(plan: &LogicalPlan, extreme: &Extreme<'_>, alone: bool) -> DfResult<Option<LogicalPlan>> {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => match served(&alias.input, extreme, alone)? {
            Some(input) => plan.with_new_exprs(plan.expressions(), vec![input]).map(Some),
            None => Ok(None),
        },
        LogicalPlan::TableScan(scan) if scan.fetch.is_none() => {
            let provider = source_as_provider(&scan.source)?;
            let any: &dyn std::any::Any = &*provider;
            let Some(source) = any.downcast_ref::<TableSource>() else { return Ok(None) };
            let Some((_, nullable)) = source.field(&extreme.column.name) else { return Ok(None) };
            let mut scan = scan.clone();
            if nullable {
                scan.filters.push(Expr::Column(extreme.column.clone()).is_not_null());
            }
            let serves = source.gives_first(&extreme.column.name, extreme.is_max, &scan.filters, alone);
            scan.source = provider_as_source(Arc::new(source.clone()));
            Ok(serves.then_some(LogicalPlan::TableScan(scan)))
        }
        _ => Ok(None),
    }
}
