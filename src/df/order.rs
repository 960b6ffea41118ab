//! Tells each table source which order and limit the statement wants of it.
//!
//! DataFusion asks a table for filters and a limit, but not for an order. So after the logical plan is
//! optimised, every `Sort` is followed down through projections, aliases and filters to the one table it
//! sorts; that source then prefers a path which gives the order for free, and DataFusion drops the sort.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{Expr, LogicalPlan, Sort};

use super::rewrite::below;
use super::table::TableSource;
use crate::access::OrderBy;

/// One wanted expression, largest or smallest first.
#[derive(Clone)]
struct Wanted {
    expr: Expr,
    descending: bool,
    nulls_first: bool,
}

/// The same plan, its sources knowing their order.
pub fn advise(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let advised = plan.transform_down_with_subqueries(|node| {
        let LogicalPlan::Sort(sort) = &node else { return Ok(Transformed::no(node)) };
        let wanted = sort.expr.iter();
        let wanted = wanted
            .map(|e| Wanted { expr: e.expr.clone(), descending: !e.asc, nulls_first: e.nulls_first })
            .collect();
        match follow(&sort.input, wanted, sort.fetch.map(|n| n as u64))? {
            Some(input) => {
                let sort = Sort { expr: sort.expr.clone(), input: Arc::new(input), fetch: sort.fetch };
                Ok(Transformed::yes(LogicalPlan::Sort(sort)))
            }
            None => Ok(Transformed::no(node)),
        }
    })?;
    Ok(advised.data)
}

fn follow(plan: &LogicalPlan, wanted: Vec<Wanted>, fetch: Option<u64>) -> DfResult<Option<LogicalPlan>> {
    match plan {
        LogicalPlan::Projection(projection) => {
            let below = |w: &Wanted| Some(Wanted { expr: below(&w.expr, projection)?, ..w.clone() });
            let Some(wanted) = wanted.iter().map(below).collect() else { return Ok(None) };
            rebuild(plan, follow(&projection.input, wanted, fetch)?)
        }
        LogicalPlan::SubqueryAlias(alias) => rebuild(plan, follow(&alias.input, wanted, fetch)?),
        // What is filtered up here, the source cannot count.
        LogicalPlan::Filter(filter) => rebuild(plan, follow(&filter.input, wanted, None)?),
        LogicalPlan::TableScan(scan) => {
            let provider = source_as_provider(&scan.source)?;
            let any: &dyn std::any::Any = &*provider;
            let Some(source) = any.downcast_ref::<TableSource>() else { return Ok(None) };
            let order = |w: &Wanted| {
                let Expr::Column(column) = &w.expr else { return None };
                let (field, nullable) = source.field(&column.name)?;
                let natural = w.nulls_first != w.descending;
                (natural || !nullable).then_some(OrderBy { field, descending: w.descending })
            };
            let Some(order) = wanted.iter().map(order).collect() else { return Ok(None) };
            let mut source = source.clone();
            source.wanted = (order, fetch);
            let mut scan = scan.clone();
            scan.source = provider_as_source(Arc::new(source));
            Ok(Some(LogicalPlan::TableScan(scan)))
        }
        _ => Ok(None),
    }
}

fn rebuild(plan: &LogicalPlan, input: Option<LogicalPlan>) -> DfResult<Option<LogicalPlan>> {
    input.map(|input| plan.with_new_exprs(plan.expressions(), vec![input])).transpose()
}
