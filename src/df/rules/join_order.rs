//! Reorders joins whose tables are written in another order than is best to read.
//!
//! DataFusion joins tables in the order of the query, and chooses only the build side of each join. So `users JOIN
//! comments ON .. JOIN posts ON ..` with a condition on posts reads all users, to find the few posts among their
//! comments. Inner joins are put in the cheapest order ([`search`]). Where few rows look for something in joins, as in
//! `WHERE EXISTS (SELECT .. FROM comments JOIN users ..)`, the order is the one that is best for these ([`asked`]).
//!
//! Where few rows `s` filter `a JOIN b` by columns of `b` alone (`author IN (SELECT ..)`), they filter `b` first, and
//! the result looks up `a` by its key: `s SEMI JOIN (a JOIN b)` becomes `(s SEMI JOIN b) JOIN a`. The side `a` is the
//! build side of its join; the probe side is narrowed by a dynamic filter anyway.
//!
//! The last message of each room that a user is in, by `m.id = (SELECT max(id) FROM message x WHERE x.room = m.room)`,
//! is a join of few rows `s` and `a`, filtered by groups `g` of which each row of `s` finds one: `(s JOIN a) SEMI JOIN
//! g` reads all messages of these rooms. It becomes `(s JOIN g) JOIN a`, which finds one of each.

mod asked;
mod search;

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::common::tree_node::TransformedResult;
use datafusion::error::Result as DfResult;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::joins::{HashJoinExec, HashJoinExecBuilder};
use datafusion::physical_plan::projection::ProjectionExec;

use crate::access::COST;
use crate::df::below::{column, picked_as, picked_of, place};
use crate::df::join_sides::outputs;
use crate::df::operators::join_rows::{rows_matched, rows_of};
use crate::df::operators::lookup::only_equates;
use crate::df::rewrite::PlanInner;
use crate::df::tree::{RewriteTree, changed};

type Plan = Arc<dyn ExecutionPlan>;
type Expr = Arc<dyn PhysicalExpr>;

/// Most tables (count) that are moved.
const TABLES_MAX: usize = 12;

/// Around the rule that chooses build sides; it runs again after tables have been moved.
pub fn fewest_first(plan: Plan, choose: &PlanInner<'_>) -> DfResult<Plan> {
    let mut plan = choose(plan)?;
    let ordered = search::in_best_order(plan)?;
    plan = if ordered.transformed { choose(ordered.data)? } else { ordered.data };
    // Each round moves some table one join outwards.
    for _ in 0..TABLES_MAX {
        let turned = plan.rewrite_up(|node| {
            let turned = match turned(&node)? {
                None => grouped_first(&node)?,
                turned => turned,
            };
            Ok(changed(turned, node))
        })?;
        if !turned.transformed {
            plan = turned.data;
            break;
        }
        plan = choose(turned.data)?;
    }
    // The sides of these joins are final: by its estimate alone, what is asked for may look like the smaller one.
    plan.rewrite_down(|node| Ok(changed(asked::in_order_for_few(&node, choose)?, node))).data()
}

/// The reordered semi join, if few rows filter a join and would be cheaper that way.
fn turned(node: &Plan) -> DfResult<Option<Plan>> {
    let Some(outer) = node.downcast_ref::<HashJoinExec>().filter(|join| is_plain(join)) else {
        return Ok(None);
    };
    if *outer.join_type() != JoinType::RightSemi {
        return Ok(None);
    }
    let Some((inner, columns)) = joined(outer.right()) else { return Ok(None) };
    let (a, b) = (inner.left(), inner.right());
    let (of_a, of_b) = (a.schema().fields().len(), b.schema().fields().len());

    let on_b = outer.on().iter().map(|(few, right)| {
        let at = columns.get(place(right)?)?.checked_sub(of_a)?;
        Some((Arc::clone(few), column(b, at)))
    });
    let on_a = inner.on().iter().map(|(left, right)| Some((place(left)?, place(right)?)));
    let (Some(on_b), Some(on_a)) = (on_b.collect::<Option<Vec<_>>>(), on_a.collect::<Option<Vec<_>>>())
    else {
        return Ok(None);
    };
    if rows_matched(a, inner.on().iter().map(|(left, _)| left)).is_none() {
        return Ok(None);
    }
    let first = HashJoinExecBuilder::new(Arc::clone(outer.left()), Arc::clone(b), on_b, JoinType::RightSemi);
    // An open partition mode would treat sides of unknown size as large.
    let mode = *outer.partition_mode();
    let first: Plan = Arc::new(first.with_partition_mode(mode).build()?);
    let (Some(asking), Some(of_all)) = (rows_of(&first), rows_of(a)) else { return Ok(None) };
    if asking * COST.fetch > of_all {
        return Ok(None);
    }
    let on_a = on_a.into_iter().map(|(of_a, of_b)| (column(&first, of_b), column(a, of_a))).collect();
    let then = HashJoinExecBuilder::new(first, Arc::clone(a), on_a, JoinType::Inner);
    let then: Plan = Arc::new(then.with_partition_mode(mode).build()?);

    let stood_at = |at: usize| at.checked_sub(of_a).unwrap_or(of_b + at);
    let output = outer.projection.as_ref().map_or_else(|| (0..columns.len()).collect(), |o| o.to_vec());
    let output = output.into_iter().map(|at| stood_at(columns[at]));
    picked_as(then, output, &outer.schema()).map(Some)
}

/// A join of few rows and a table, filtered by groups that the rows alone determine: these are found before the table's
/// rows. `None` for other joins.
fn grouped_first(node: &Plan) -> DfResult<Option<Plan>> {
    let Some(outer) = node.downcast_ref::<HashJoinExec>().filter(|join| is_plain(join)) else {
        return Ok(None);
    };
    let Some((pairs, groups, on)) = filtered_by(outer) else { return Ok(None) };
    let (Some((inner, columns)), Some(grouping)) = (joined(pairs), grouping(groups)) else { return Ok(None) };
    let (few, table) = (inner.left(), inner.right());
    let found_by_each = rows_matched(table, inner.on().iter().map(|(_, of_table)| of_table));
    let are_few = rows_of(few).zip(rows_of(table)).is_some_and(|(few, all)| few * COST.fetch <= all);
    if !are_few || found_by_each.is_none_or(|rows| rows < 2.0) {
        return Ok(None);
    }
    let Some((of_few, of_table)) = by_side(inner, &columns, &on) else { return Ok(None) };
    let is_told = |group: &usize| of_few.iter().any(|(_, told)| told == group);
    if of_table.is_empty() || !grouping.iter().all(is_told) {
        return Ok(None);
    }

    let join = |left: &Plan, right: &Plan, on: Vec<(Expr, Expr)>| -> DfResult<Plan> {
        let join = HashJoinExecBuilder::new(Arc::clone(left), Arc::clone(right), on, JoinType::Inner);
        Ok(Arc::new(join.with_partition_mode(*outer.partition_mode()).build()?))
    };
    let width = few.schema().fields().len();
    let on_groups = of_few.iter().map(|(of_few, group)| (column(few, *of_few), column(groups, *group)));
    let first = join(few, groups, on_groups.collect())?;
    let by_group = of_table.iter().map(|(at, group)| (column(&first, width + group), column(table, *at)));
    let equal = |(of_few, of_table): &(Expr, Expr)| Some((column(&first, place(of_few)?), of_table.clone()));
    let Some(on) = inner.on().iter().map(equal).collect::<Option<Vec<_>>>() else { return Ok(None) };
    let then = join(&first, table, on.into_iter().chain(by_group).collect())?;

    let behind = groups.schema().fields().len();
    let output: Vec<usize> = match &outer.projection {
        Some(output) => output.iter().map(|at| columns[*at]).collect(),
        None => columns,
    };
    let output = output.into_iter().map(|at| if at < width { at } else { at + behind });
    picked_as(then, output, &outer.schema()).map(Some)
}

/// Columns (positions) of the two sides of a join that are equal.
type EqualColumns = Vec<(usize, usize)>;

/// The rows that a semi join filters, and those that it filters by; `None` for other joins.
fn filtered_by(join: &HashJoinExec) -> Option<(&Plan, &Plan, EqualColumns)> {
    let of_left = |(left, right): &(Expr, Expr)| Some((place(left)?, place(right)?));
    let of_right = |(left, right): &(Expr, Expr)| Some((place(right)?, place(left)?));
    Some(match join.join_type() {
        JoinType::LeftSemi => {
            (join.left(), join.right(), join.on().iter().map(of_left).collect::<Option<_>>()?)
        }
        JoinType::RightSemi => {
            (join.right(), join.left(), join.on().iter().map(of_right).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// Splits the columns that equal others, of a join's output, into those of its left and of its right side. A column of
/// the right side that equals one of the left side counts as that.
fn by_side(
    join: &HashJoinExec,
    output: &[usize],
    equal: &EqualColumns,
) -> Option<(EqualColumns, EqualColumns)> {
    let width = join.left().schema().fields().len();
    let (mut of_left, mut of_right) = (Vec::new(), Vec::new());
    for (at, other) in equal {
        let Some(of_table) = output.get(*at)?.checked_sub(width) else {
            of_left.push((output[*at], *other));
            continue;
        };
        match join.on().iter().find(|(_, right)| place(right) == Some(of_table)) {
            Some((left, _)) => of_left.push((place(left)?, *other)),
            None => of_right.push((of_table, *other)),
        }
    }
    Some((of_left, of_right))
}

/// The output columns (positions) that are the groups of a grouped plan: no two rows agree in all of them.
fn grouping(plan: &Plan) -> Option<Vec<usize>> {
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let below = grouping(projection.input())?;
        let stands_at =
            |group: usize| projection.expr().iter().position(|output| place(&output.expr) == Some(group));
        return below.into_iter().map(stands_at).collect();
    }
    let aggregate = plan.downcast_ref::<AggregateExec>()?;
    let groups = aggregate.group_expr();
    let is_whole = !matches!(aggregate.mode(), AggregateMode::Partial | AggregateMode::PartialReduce);
    (is_whole && groups.is_single() && !groups.is_true_no_grouping())
        .then(|| (0..groups.expr().len()).collect())
}

/// An inner join, and the columns of its sides that the plan outputs.
fn joined(plan: &Plan) -> Option<(&HashJoinExec, Vec<usize>)> {
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let (join, below) = joined(projection.input())?;
        return Some((join, picked_of(projection, &below)?));
    }
    let join = plan.downcast_ref::<HashJoinExec>()?;
    (is_plain(join) && *join.join_type() == JoinType::Inner).then(|| (join, outputs(join)))
}

/// The join condition is equality only, and there is no limit.
fn is_plain(join: &HashJoinExec) -> bool {
    only_equates(join) && join.fetch().is_none()
}
