//! Tells each table source which order and limit the statement wants.
//!
//! DataFusion pushes filters and limits into a table, but no order. So after logical optimisation, every `Sort` is
//! followed down through projections, aliases and filters to the one table it sorts. That source then prefers a path
//! that gives the order for free, and DataFusion drops the sort. The same is done for each input of a UNION ALL, whose
//! rows are then merged, and for the sorts of windows.
//!
//! A top-k sort above a join is followed into the side whose columns it sorts by, if reading that side in order may pay
//! off (`early`), as is one above groups of a join, if each comes from one row of that side. Above other groups, it asks
//! the table for the first ones.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Sort as SortExpr, WindowFunctionParams};
use datafusion::logical_expr::{
    Aggregate, Expr, FetchType, Join, LogicalPlan, Projection, SkipType, SubqueryAlias, Union, Window,
};

use super::join_sides::keeps;
use super::rewrite::below;
use super::table::TableSource;
use super::wanted::{FirstFound, Wanted, WantedRows};
use crate::access::OrderBy;
use crate::df::tree::RewritePlan;
use crate::df::unique::are_unique;

/// Largest top-k (rows) that is followed into a join.
const FEW: usize = 5000;

/// Groups (count) of which one is expected to pass HAVING.
const HAVING: u64 = 10;

/// Rows (count) of which one is expected to pass a filter above their source.
const FILTERED: u64 = 4;

/// Whether and how sorts and limits are followed into joins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Joins {
    /// Not followed.
    Around,
    /// Small sorts and limits are followed; where no order decides, into the left side.
    Left,
    /// Small limits are followed, into the right side.
    Right,
}

/// A sort key.
#[derive(Clone)]
struct SortKey {
    expr: Expr,
    descending: bool,
    nulls_first: bool,
}

/// The same plan, with order and limit set in its sources.
pub fn advise(plan: LogicalPlan, joins: Joins) -> DfResult<Transformed<LogicalPlan>> {
    // Offset of the limit directly above, and offset plus limit.
    let mut above = None;
    let is_followed = |rows: Option<usize>, input: &LogicalPlan| match joins {
        Joins::Around => true,
        Joins::Left | Joins::Right => rows.is_some_and(|rows| rows <= FEW) && joins_rows(input),
    };
    plan.rewrite_down_with_subqueries(|node| {
        let limited = match &node {
            LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => above,
            _ => above.take(),
        };
        let asked = match &node {
            LogicalPlan::Limit(limit) => {
                above = match (limit.get_skip_type()?, limit.get_fetch_type()?) {
                    (SkipType::Literal(skip), FetchType::Literal(Some(fetch))) => Some((skip, skip + fetch)),
                    _ => None,
                };
                let few = above.filter(|(_, rows)| is_followed(Some(*rows), &limit.input));
                // Without joins and groups, DataFusion pushes the limit down itself.
                let is_seen = joins != Joins::Around || groups_rows(&limit.input);
                few.filter(|_| is_seen).map(|few| (&limit.input, Vec::new(), first(few)))
            }
            LogicalPlan::Window(window) if joins == Joins::Around => {
                Some((&window.input, sorted_for(window), WantedRows::All))
            }
            LogicalPlan::Sort(sort) if joins != Joins::Right && is_followed(sort.fetch, &sort.input) => {
                let limited = limited.filter(|(_, rows)| sort.fetch == Some(*rows));
                let what = limited.or(sort.fetch.map(|rows| (0, rows))).map_or(WantedRows::All, first);
                Some((&sort.input, sort.expr.iter().map(SortKey::of).collect(), what))
            }
            _ => None,
        };
        let Some((input, order, what)) = asked else { return Ok(Transformed::no(node)) };
        match follow(input, order, what, joins)? {
            Some(input) => node.with_new_exprs(node.expressions(), vec![input]).map(Transformed::yes),
            None => Ok(Transformed::no(node)),
        }
    })
}

/// The first rows, after an offset.
fn first((offset, rows): (usize, usize)) -> WantedRows {
    WantedRows::First { rows: rows as u64, offset: offset as u64 }
}

/// The input below projections and aliases.
fn computed_from(plan: &LogicalPlan) -> &LogicalPlan {
    match plan {
        LogicalPlan::Projection(projection) => computed_from(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => computed_from(&alias.input),
        _ => plan,
    }
}

/// The plan reads a table.
fn is_of_rows(plan: &LogicalPlan) -> bool {
    matches!(computed_from(plan), LogicalPlan::TableScan(_))
}

/// The plan is a join, or groups of one.
fn joins_rows(plan: &LogicalPlan) -> bool {
    match computed_from(plan) {
        LogicalPlan::Join(_) => true,
        LogicalPlan::Aggregate(aggregate) => {
            matches!(computed_from(&aggregate.input), LogicalPlan::Join(_))
        }
        LogicalPlan::Filter(filter) => joins_rows(&filter.input),
        _ => false,
    }
}

/// The rows of each group come from one row of a side of the join below.
fn are_of_one_row(aggregate: &Aggregate) -> DfResult<bool> {
    let (mut groups, mut plan) = (aggregate.group_expr.clone(), &*aggregate.input);
    while let LogicalPlan::Projection(Projection { input, .. })
    | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) = plan
    {
        groups = groups.iter().filter_map(|expr| below(expr, plan)).collect();
        plan = input;
    }
    let LogicalPlan::Join(join) = plan else { return Ok(false) };
    Ok(are_unique(groups.clone(), &join.left)? || are_unique(groups, &join.right)?)
}

fn groups_rows(plan: &LogicalPlan) -> bool {
    matches!(computed_from(plan), LogicalPlan::Aggregate(_))
}

/// The order in which a window needs its rows.
fn sorted_for(window: &Window) -> Vec<SortKey> {
    let Some(Expr::WindowFunction(call)) = window.window_expr.first().map(|expr| expr.clone().unalias())
    else {
        return Vec::new();
    };
    let WindowFunctionParams { partition_by, order_by, .. } = &call.params;
    partition_by.iter().map(SortKey::in_key_order).chain(order_by.iter().map(SortKey::of)).collect()
}

impl SortKey {
    /// Ascending, as keys are.
    fn in_key_order(expr: &Expr) -> SortKey {
        SortKey { expr: expr.clone(), descending: false, nulls_first: true }
    }

    fn of(sort: &SortExpr) -> SortKey {
        SortKey { expr: sort.expr.clone(), descending: !sort.asc, nulls_first: sort.nulls_first }
    }
}

/// The longest prefix of an order that `into` can map, and what is wanted in that prefix.
fn front<T>(
    order: &[SortKey],
    what: WantedRows,
    into: impl Fn(&SortKey) -> Option<T>,
) -> Option<(Vec<T>, WantedRows)> {
    let front: Vec<T> = order.iter().map_while(into).collect();
    match what {
        _ if front.len() == order.len() => Some((front, what)),
        WantedRows::First { rows, .. } | WantedRows::Led(rows) if !front.is_empty() => {
            Some((front, WantedRows::Led(rows)))
        }
        WantedRows::Found(_) if !front.is_empty() => Some((front, what)),
        _ => None,
    }
}

fn follow(
    plan: &LogicalPlan,
    order: Vec<SortKey>,
    what: WantedRows,
    joins: Joins,
) -> DfResult<Option<LogicalPlan>> {
    match plan {
        LogicalPlan::Projection(Projection { input, .. })
        | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => {
            let below = |by: &SortKey| Some(SortKey { expr: below(&by.expr, plan)?, ..by.clone() });
            let Some((order, what)) = front(&order, what, below) else { return Ok(None) };
            rebuild(plan, follow(input, order, what, joins)?)
        }
        LogicalPlan::Filter(filter) => {
            let what = match what {
                WantedRows::First { rows, .. } if groups_rows(&filter.input) => {
                    WantedRows::Groups(rows.saturating_mul(HAVING))
                }
                WantedRows::Led(_) | WantedRows::Groups(_) => return Ok(None),
                WantedRows::Found(_) => what,
                // The source cannot count rows that are filtered above it.
                WantedRows::First { rows, .. } | WantedRows::About(rows)
                    if joins != Joins::Around || is_of_rows(&filter.input) =>
                {
                    WantedRows::About(rows.saturating_mul(FILTERED))
                }
                _ => WantedRows::All,
            };
            rebuild(plan, follow(&filter.input, order, what, joins)?)
        }
        // How many rows are made of each is not known. In their order, the rows that are made are, too.
        LogicalPlan::Unnest(unnest) if matches!(what, WantedRows::All | WantedRows::First { .. }) => {
            let is_kept = |by: &SortKey| matches!(&by.expr, Expr::Column(column) if unnest.input.schema().has_column(column) && !unnest.exec_columns.contains(column));
            if !order.iter().all(is_kept) {
                return Ok(None);
            }
            rebuild(plan, follow(&unnest.input, order, WantedRows::All, joins)?)
        }
        LogicalPlan::Aggregate(aggregate) => {
            let (WantedRows::First { rows: n, .. } | WantedRows::Groups(n)) = what else { return Ok(None) };
            let grouped = |by: &SortKey| Some(SortKey { expr: below(&by.expr, plan)?, ..by.clone() });
            let order = match order.is_empty() {
                // The first groups are any: those that a key has first.
                true if joins == Joins::Around => {
                    Some(aggregate.group_expr.iter().map(SortKey::in_key_order).collect())
                }
                _ => order.iter().map(grouped).collect(),
            };
            let Some(order) = order else { return Ok(None) };
            let what = match joins {
                Joins::Around => WantedRows::Groups(n),
                Joins::Left | Joins::Right if are_of_one_row(aggregate)? => WantedRows::About(n),
                Joins::Left | Joins::Right => return Ok(None),
            };
            rebuild(plan, follow(&aggregate.input, order, what, joins)?)
        }
        LogicalPlan::Join(join) => follow_join(join, order, what, joins),
        LogicalPlan::Union(union) => follow_union(union, &order, what, joins),
        LogicalPlan::TableScan(scan) => {
            let Some(source) = TableSource::of(scan)? else { return Ok(None) };
            let order_by = |by: &SortKey| {
                let Expr::Column(column) = &by.expr else { return None };
                let (field, nullable) = source.field(&column.name)?;
                let natural = by.nulls_first != by.descending;
                (natural || !nullable).then_some(OrderBy { field, descending: by.descending })
            };
            let Some((order, what)) = front(&order, what, order_by) else { return Ok(None) };
            let told = source.changed_in(scan, |source| match what {
                WantedRows::Found(rows) => source.first_found = Some(FirstFound { order, rows }),
                _ => source.wanted = Wanted { order, what },
            });
            Ok(Some(LogicalPlan::TableScan(told)))
        }
        _ => Ok(None),
    }
}

/// Follows the side whose columns the order names. A prefix of the order is enough where the sort above can stop early.
fn follow_join(
    join: &Join,
    mut order: Vec<SortKey>,
    what: WantedRows,
    joins: Joins,
) -> DfResult<Option<LogicalPlan>> {
    let found = match (what, joins) {
        (WantedRows::First { rows, .. } | WantedRows::Led(rows) | WantedRows::Found(rows), Joins::Around) => {
            WantedRows::Found(rows)
        }
        (WantedRows::First { rows, .. } | WantedRows::About(rows), Joins::Left | Joins::Right) => {
            WantedRows::About(rows)
        }
        _ => return Ok(None),
    };
    let front = |side: &LogicalPlan| {
        let is_of_side = |by: &&SortKey| match &by.expr {
            Expr::Column(column) => side.schema().has_column(column),
            _ => false,
        };
        let columns = order.iter().take_while(is_of_side).count();
        (columns == order.len() || columns > 0 && joins != Joins::Around).then_some(columns)
    };
    let (mut left, mut right) = (Arc::clone(&join.left), Arc::clone(&join.right));
    // Without a condition, each row of one side is joined with all of the other.
    if join.on.is_empty() && join.filter.is_none() {
        return Ok(None);
    }
    let [keeps_left, keeps_right] = keeps(join.join_type);
    let of_left = front(&left).filter(|_| keeps_left);
    let of_right = front(&right).filter(|_| keeps_right);
    let (side, columns) = match (of_left, of_right) {
        (None, None) => return Ok(None),
        (Some(_), Some(columns)) if joins == Joins::Right => (&mut right, columns),
        (Some(columns), _) => (&mut left, columns),
        (None, Some(columns)) => (&mut right, columns),
    };
    order.truncate(columns);
    let Some(advised) = follow(side, order, found, joins)? else { return Ok(None) };
    *side = Arc::new(advised);
    Ok(Some(LogicalPlan::Join(Join { left, right, ..join.clone() })))
}

/// The first rows of a union are among the first rows of its inputs.
fn follow_union(
    union: &Union,
    order: &[SortKey],
    what: WantedRows,
    joins: Joins,
) -> DfResult<Option<LogicalPlan>> {
    let what = match what {
        // The skipped rows may all come from one input.
        WantedRows::First { rows, .. } => WantedRows::First { rows, offset: 0 },
        WantedRows::All | WantedRows::Led(_) => what,
        WantedRows::About(_) | WantedRows::Groups(_) | WantedRows::Found(_) => return Ok(None),
    };
    let columns = |by: &SortKey| match &by.expr {
        Expr::Column(column) => union.schema.maybe_index_of_column(column),
        _ => None,
    };
    let Some((places, what)) = front(order, what, columns) else { return Ok(None) };
    let of_input = |input: &Arc<LogicalPlan>| {
        let by = |(by, at): (&SortKey, &usize)| {
            let column = Expr::Column(Column::from(input.schema().qualified_field(*at)));
            SortKey { expr: column, ..by.clone() }
        };
        follow(input, order.iter().zip(&places).map(by).collect(), what, joins)
    };
    let followed = union.inputs.iter().map(of_input).collect::<DfResult<Vec<_>>>()?;
    if followed.iter().all(Option::is_none) {
        return Ok(None);
    }
    let or_as_it_was = |(followed, input): (Option<LogicalPlan>, &Arc<LogicalPlan>)| {
        followed.map_or_else(|| Arc::clone(input), Arc::new)
    };
    let inputs = followed.into_iter().zip(&union.inputs).map(or_as_it_was).collect();
    Ok(Some(LogicalPlan::Union(Union { inputs, schema: Arc::clone(&union.schema) })))
}

fn rebuild(plan: &LogicalPlan, input: Option<LogicalPlan>) -> DfResult<Option<LogicalPlan>> {
    input.map(|input| plan.with_new_exprs(plan.expressions(), vec![input])).transpose()
}
