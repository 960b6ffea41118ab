//! The order that a subquery in FROM, a query of WITH or a view asks for.
//!
//! SQL promises an order only to the result of a statement. PostgreSQL and SQLite keep that of a subquery as well, as
//! far as nothing above it has another, and people rely on it: `SELECT string_agg(name, ', ') FROM (SELECT name FROM t
//! ORDER BY at) s`, or a view that ends in ORDER BY, with a LIMIT behind its name. DataFusion 55.2 drops these sorts.
//!
//! Its planner is told to leave them where they are written, and here each is moved up to where it shows: the end of
//! the statement, a LIMIT, and the aggregates, windows and DISTINCT ON that depend on an order and have none. Keys that
//! a subquery does not select are carried up in hidden columns. All other sorts are dropped.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, Expr, Filter, Limit, LogicalPlan, Projection, Sort, SortExpr,
    SubqueryAlias, Window, WindowFrame, WindowFrameUnits,
};

use crate::df::expressions::aggregate_orders::IN_ORDER;
use crate::df::rewrite::bare;
use crate::df::subqueries::correlated::has_subquery;
use crate::df::tree::{RewritePlan, RewriteTree};

/// Window functions that number rows, or take values from others, by their places.
const BY_PLACE: [&str; 7] = ["row_number", "lag", "lead", "ntile", "first_value", "last_value", "nth_value"];

/// Window functions that tell rows apart only by an order of their own.
const BY_ORDER: [&str; 4] = ["rank", "dense_rank", "percent_rank", "cume_dist"];

/// Moves the sorts of a whole statement to where they show, and drops those that do not.
pub fn inner_orders(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    if !has_inner_sort(&plan)? {
        return Ok(plan);
    }
    let moved = sorted(plan)?.rewrite_down_with_subqueries(|node| {
        let node = told(node)?;
        match node {
            // What is below them keeps its order.
            LogicalPlan::Limit(_) | LogicalPlan::Projection(_) | LogicalPlan::Subquery(_) => {
                Ok(Transformed::yes(node))
            }
            node => node.map_children(|input| unsorted(input).map(Transformed::yes)),
        }
    });
    moved.data()
}

/// There is a sort besides that of the statement's own result.
fn has_inner_sort(plan: &LogicalPlan) -> DfResult<bool> {
    let mut sorts = 0;
    plan.apply_with_subqueries(|node| {
        sorts += usize::from(matches!(node, LogicalPlan::Sort(_)));
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut top = plan;
    while let LogicalPlan::Projection(Projection { input, .. }) | LogicalPlan::Limit(Limit { input, .. }) =
        top
    {
        top = input;
    }
    Ok(sorts > usize::from(matches!(top, LogicalPlan::Sort(_))))
}

/// The plan without the sort at its top.
fn unsorted(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    match plan {
        LogicalPlan::Sort(Sort { input, fetch: None, .. }) => Ok(Arc::unwrap_or_clone(input)),
        LogicalPlan::Projection(_) | LogicalPlan::Subquery(_) => {
            plan.map_children(|input| unsorted(input).map(Transformed::yes)).data()
        }
        plan => Ok(plan),
    }
}

/// The plan with the order of the subqueries below at its top, if it has none of its own.
fn sorted(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let Some(Unsorted { plan: input, keys }) = (Search { copies: false }).below(&plan)? else {
        return Ok(plan);
    };
    let columns = plan.schema().columns();
    let hides = input.schema().fields().len() > columns.len();
    let sorted = LogicalPlan::Sort(Sort { expr: keys, input: Arc::new(input), fetch: None });
    if !hides {
        return Ok(sorted);
    }
    let columns = columns.into_iter().map(Expr::Column).collect();
    Projection::try_new(columns, Arc::new(sorted)).map(LogicalPlan::Projection)
}

/// The node with the order of its input, if its result depends on one and it has none of its own.
fn told(node: LogicalPlan) -> DfResult<LogicalPlan> {
    match node {
        LogicalPlan::Limit(limit) => {
            let input = Arc::new(sorted(Arc::unwrap_or_clone(limit.input))?);
            Ok(LogicalPlan::Limit(Limit { input, ..limit }))
        }
        LogicalPlan::Aggregate(aggregate) if aggregate.aggr_expr.iter().any(wants_order) => {
            let Some(Unsorted { plan, keys }) = (Search { copies: true }).below(&aggregate.input)? else {
                return Ok(LogicalPlan::Aggregate(aggregate));
            };
            let exprs = ordered(&LogicalPlan::Aggregate(aggregate.clone()), &aggregate.aggr_expr, &keys);
            Aggregate::try_new(Arc::new(plan), aggregate.group_expr, exprs).map(LogicalPlan::Aggregate)
        }
        LogicalPlan::Window(window) if window.window_expr.iter().any(wants_order) => {
            let Some(Unsorted { plan, keys }) = (Search { copies: true }).below(&window.input)? else {
                return Ok(LogicalPlan::Window(window));
            };
            let columns = window.schema.columns().into_iter().map(Expr::Column).collect();
            let window = in_order(&window, plan, &keys)?;
            Projection::try_new(columns, Arc::new(window)).map(LogicalPlan::Projection)
        }
        LogicalPlan::Distinct(Distinct::On(distinct)) if distinct.sort_expr.is_none() => {
            let Some(Unsorted { plan, keys }) = (Search { copies: true }).below(&distinct.input)? else {
                return Ok(LogicalPlan::Distinct(Distinct::On(distinct)));
            };
            let DistinctOn { on_expr, select_expr, .. } = distinct;
            let starts_so =
                on_expr.iter().enumerate().all(|(n, on)| keys.get(n).is_some_and(|key| key.expr == *on));
            let first = on_expr.iter().filter(|_| !starts_so).map(|on| on.clone().sort(true, true));
            let keys = first.chain(keys.iter().cloned()).collect();
            let distinct = DistinctOn::try_new(on_expr, select_expr, Some(keys), Arc::new(plan))?;
            Ok(LogicalPlan::Distinct(Distinct::On(distinct)))
        }
        node => Ok(node),
    }
}

/// A plan that is not sorted, perhaps with hidden columns behind its own, and the keys that it is to be sorted by.
struct Unsorted {
    plan: LogicalPlan,
    keys: Vec<SortExpr>,
}

/// How the order of a plan is looked for.
#[derive(Clone, Copy)]
struct Search {
    /// Also below a LIMIT, whose own sort stays.
    copies: bool,
}

impl Search {
    /// The order that the rows of a plan have by a subquery below; `None` if there is none, or if it is the plan's own.
    fn below(self, plan: &LogicalPlan) -> DfResult<Option<Unsorted>> {
        let mut top = plan;
        while let LogicalPlan::Projection(Projection { input, .. }) = top {
            top = input;
        }
        let is_own = !self.copies && matches!(top, LogicalPlan::Sort(_));
        if is_own { Ok(None) } else { self.found(plan, false) }
    }

    /// The plan without its sort, unless it `stays`.
    fn found(self, plan: &LogicalPlan, stays: bool) -> DfResult<Option<Unsorted>> {
        Ok(match plan {
            LogicalPlan::Sort(Sort { expr, input, fetch: None })
                if !expr.iter().any(|key| has_subquery(&key.expr)) =>
            {
                let plan = if stays { plan.clone() } else { LogicalPlan::clone(input) };
                Some(Unsorted { plan, keys: expr.clone() })
            }
            LogicalPlan::Limit(limit) if self.copies => {
                self.found(&limit.input, true)?.map(|Unsorted { plan, keys }| {
                    let plan = LogicalPlan::Limit(Limit { input: Arc::new(plan), ..limit.clone() });
                    Unsorted { plan, keys }
                })
            }
            LogicalPlan::Filter(filter) => {
                let Some(Unsorted { plan, keys }) = self.found(&filter.input, stays)? else {
                    return Ok(None);
                };
                let filter = Filter::try_new(filter.predicate.clone(), Arc::new(plan))?;
                Some(Unsorted { plan: LogicalPlan::Filter(filter), keys })
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let Some(below) = self.found(&alias.input, stays)? else { return Ok(None) };
                Some(renamed(below, alias)?)
            }
            LogicalPlan::Projection(projection) => {
                let Some(below) = self.found(&projection.input, stays)? else { return Ok(None) };
                Some(carried(below, projection)?)
            }
            LogicalPlan::Window(window) if window.window_expr.iter().all(keeps_order) => {
                let Some(Unsorted { plan, keys }) = self.found(&window.input, stays)? else {
                    return Ok(None);
                };
                Some(Unsorted { plan: in_order(window, plan, &keys)?, keys })
            }
            _ => None,
        })
    }
}

/// The keys under the names that an alias gives them.
fn renamed(below: Unsorted, alias: &SubqueryAlias) -> DfResult<Unsorted> {
    let Unsorted { plan, keys } = below;
    let below = Arc::clone(plan.schema());
    let alias = SubqueryAlias::try_new(Arc::new(plan), alias.alias.clone())?;
    let keys = keys.into_iter().map(|key| {
        let expr = key.expr.rewrite_up(|expr| {
            let Expr::Column(column) = &expr else { return Ok(Transformed::no(expr)) };
            let at = below.index_of_column(column)?;
            Ok(Transformed::yes(Expr::Column(Column::from(alias.schema.qualified_field(at)))))
        });
        Ok(SortExpr { expr: expr.data()?, ..key })
    });
    let keys = keys.collect::<DfResult<_>>()?;
    Ok(Unsorted { plan: LogicalPlan::SubqueryAlias(alias), keys })
}

/// The keys as columns of a projection: those that it selects, and hidden ones.
fn carried(below: Unsorted, projection: &Projection) -> DfResult<Unsorted> {
    let mut exprs = projection.expr.clone();
    let keys = below.keys.into_iter().map(|key| {
        let column = match projection.expr.iter().position(|expr| *bare(expr) == key.expr) {
            Some(at) => Column::from(projection.schema.qualified_field(at)),
            None => {
                let name = format!("__order_{}", exprs.len());
                exprs.push(key.expr.alias(&name));
                Column::new_unqualified(name)
            }
        };
        SortExpr { expr: Expr::Column(column), ..key }
    });
    let keys = keys.collect();
    let plan = LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(below.plan))?);
    Ok(Unsorted { plan, keys })
}

/// The windows over rows that are sorted by these keys.
fn in_order(window: &Window, input: LogicalPlan, keys: &[SortExpr]) -> DfResult<LogicalPlan> {
    let exprs = ordered(&LogicalPlan::Window(window.clone()), &window.window_expr, keys);
    Window::try_new(exprs, Arc::new(input)).map(LogicalPlan::Window)
}

/// The calls of a node under their old names, those that depend on an order with these keys.
fn ordered(node: &LogicalPlan, calls: &[Expr], keys: &[SortExpr]) -> Vec<Expr> {
    let names = NamePreserver::new(node);
    let ordered = calls.iter().map(|call| {
        if !wants_order(call) {
            return call.clone();
        }
        let name = names.save(call);
        let mut call = call.clone().unalias();
        match &mut call {
            Expr::AggregateFunction(AggregateFunction { params, .. }) => params.order_by = keys.to_vec(),
            Expr::WindowFunction(function) => function.params.order_by = keys.to_vec(),
            _ => {}
        }
        name.restore(call)
    });
    ordered.collect()
}

/// The result of this aggregate or window function depends on the order of its rows, and it has none of its own.
fn wants_order(call: &Expr) -> bool {
    match bare(call) {
        Expr::AggregateFunction(AggregateFunction { func, params }) => {
            params.order_by.is_empty() && !params.distinct && IN_ORDER.contains(&func.name())
        }
        Expr::WindowFunction(function) => {
            let WindowFunction { fun, params } = &**function;
            let by_place = BY_PLACE.contains(&fun.name()) || IN_ORDER.contains(&fun.name());
            let by_frame = params.window_frame != WindowFrame::new(None) && !BY_ORDER.contains(&fun.name());
            // Frames of equal rows take rows without an order for equal.
            let by_rows = params.window_frame.units == WindowFrameUnits::Rows;
            params.order_by.is_empty() && by_rows && (by_place || by_frame)
        }
        _ => false,
    }
}

/// The window function leaves the rows where they are.
fn keeps_order(call: &Expr) -> bool {
    let Expr::WindowFunction(function) = bare(call) else { return false };
    function.params.order_by.is_empty() && function.params.partition_by.is_empty()
}
