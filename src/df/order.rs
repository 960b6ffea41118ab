//! Tells each table source which order and limit the statement wants of it.
//!
//! DataFusion asks a table for filters and a limit, but not for an order. So after the logical plan is
//! optimised, every `Sort` is followed down through projections, aliases and filters to the one table it
//! sorts; that source then prefers a path which gives the order for free, and DataFusion drops the sort.
//! The first rows of a join may be worth the same (`early`): then it is followed to that side whose columns it sorts by.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{Expr, Join, JoinType, LogicalPlan, Sort};

use super::rewrite::below;
use super::table::{Rows, TableSource};
use crate::access::OrderBy;

/// Most rows (count) that are worth being looked for one after the other.
const FEW: usize = 1000;

/// Whether sorts are followed into joins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Joins {
    /// They are not.
    Around,
    /// Those of the first few rows are.
    Into,
}

/// One wanted expression, largest or smallest first.
#[derive(Clone)]
struct Wanted {
    expr: Expr,
    descending: bool,
    nulls_first: bool,
}

/// The same plan, its sources knowing their order.
pub fn advise(plan: LogicalPlan, joins: Joins) -> DfResult<Transformed<LogicalPlan>> {
    plan.transform_down_with_subqueries(|node| {
        let LogicalPlan::Sort(sort) = &node else { return Ok(Transformed::no(node)) };
        let is_few = sort.fetch.is_some_and(|n| n <= FEW);
        if joins == Joins::Into && !(is_few && joins_first(&sort.input)) {
            return Ok(Transformed::no(node));
        }
        let wanted = sort.expr.iter();
        let wanted = wanted
            .map(|e| Wanted { expr: e.expr.clone(), descending: !e.asc, nulls_first: e.nulls_first })
            .collect();
        let rows = sort.fetch.map_or(Rows::All, |n| Rows::First(n as u64));
        match follow(&sort.input, wanted, rows, joins)? {
            Some(input) => {
                let sort = Sort { expr: sort.expr.clone(), input: Arc::new(input), fetch: sort.fetch };
                Ok(Transformed::yes(LogicalPlan::Sort(sort)))
            }
            None => Ok(Transformed::no(node)),
        }
    })
}

/// Rows are joined, and then nothing but computed from.
fn joins_first(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => joins_first(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => joins_first(&alias.input),
        LogicalPlan::Join(_) => true,
        _ => false,
    }
}

fn follow(
    plan: &LogicalPlan,
    wanted: Vec<Wanted>,
    rows: Rows,
    joins: Joins,
) -> DfResult<Option<LogicalPlan>> {
    match plan {
        LogicalPlan::Projection(projection) => {
            let below = |w: &Wanted| Some(Wanted { expr: below(&w.expr, projection)?, ..w.clone() });
            let Some(wanted) = wanted.iter().map(below).collect() else { return Ok(None) };
            rebuild(plan, follow(&projection.input, wanted, rows, joins)?)
        }
        LogicalPlan::SubqueryAlias(alias) => rebuild(plan, follow(&alias.input, wanted, rows, joins)?),
        // What is filtered up here, the source cannot count.
        LogicalPlan::Filter(filter) => rebuild(plan, follow(&filter.input, wanted, Rows::All, joins)?),
        LogicalPlan::Join(join) if joins == Joins::Into => {
            let (Rows::First(n) | Rows::About(n)) = rows else { return Ok(None) };
            let is_of = |side: &LogicalPlan| {
                let column = |w: &Wanted| match &w.expr {
                    Expr::Column(column) => side.schema().has_column(column),
                    _ => false,
                };
                wanted.iter().all(column)
            };
            let (mut left, mut right) = (Arc::clone(&join.left), Arc::clone(&join.right));
            let side = match join.join_type {
                _ if join.on.is_empty() || join.filter.is_some() => return Ok(None),
                JoinType::Inner | JoinType::Left if is_of(&left) => &mut left,
                JoinType::Inner | JoinType::Right if is_of(&right) => &mut right,
                _ => return Ok(None),
            };
            let Some(advised) = follow(side, wanted, Rows::About(n), joins)? else { return Ok(None) };
            *side = Arc::new(advised);
            Ok(Some(LogicalPlan::Join(Join { left, right, ..join.clone() })))
        }
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
            source.wanted = (order, rows);
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
