//! Reorders joins whose tables are written in another order than is best to read.
//!
//! DataFusion joins tables in the order of the query, and chooses only the build side of each join. So `users JOIN
//! comments ON .. JOIN posts ON ..` with a condition on posts reads all users, to find the few posts among their
//! comments. Where few rows `s` are joined with `a JOIN b` by columns of `b` alone, this rule joins them with `b`
//! first, and the result looks up `a` by its key: `s JOIN (a JOIN b)` becomes `(s JOIN b) JOIN a`. The side `a` is the
//! build side of its join; the probe side is narrowed by a dynamic filter anyway.
//!
//! The last message of each room that a user is in, by `m.id = (SELECT max(id) FROM message x WHERE x.room = m.room)`,
//! is a join of few rows `s` and `a`, filtered by groups `g` of which each row of `s` finds one: `(s JOIN a) SEMI JOIN
//! g` reads all messages of these rooms. It becomes `(s JOIN g) JOIN a`, which finds one of each.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result as DfResult;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::{PhysicalOptimizerContext, PhysicalOptimizerRule};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::joins::{HashJoinExec, HashJoinExecBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use crate::access::COST;
use crate::df::kept::plan::place;
use crate::df::operators::join_rows::{rows_of, rows_of_value};
use crate::df::operators::lookup::only_equates;
use crate::df::tree::RewriteTree;

type Plan = Arc<dyn ExecutionPlan>;

/// Most tables (count) that are moved.
const TABLES_MAX: usize = 12;

/// The rule that chooses build sides; it runs again after tables have been moved.
#[derive(Debug)]
pub struct FewestFirst(pub Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for FewestFirst {
    fn optimize(&self, plan: Plan, options: &ConfigOptions) -> DfResult<Plan> {
        fewest_first(plan, &|plan| self.0.optimize(plan, options))
    }

    fn optimize_with_context(&self, plan: Plan, context: &dyn PhysicalOptimizerContext) -> DfResult<Plan> {
        fewest_first(plan, &|plan| self.0.optimize_with_context(plan, context))
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

fn fewest_first(plan: Plan, choose: &dyn Fn(Plan) -> DfResult<Plan>) -> DfResult<Plan> {
    let mut plan = choose(plan)?;
    // Each round moves some table one join outwards.
    for _ in 0..TABLES_MAX {
        let turned = plan.rewrite_up(|node| {
            let turned = match turned(&node)? {
                None => grouped_first(&node)?,
                turned => turned,
            };
            Ok(turned.map_or_else(|| Transformed::no(node), Transformed::yes))
        })?;
        if !turned.transformed {
            return Ok(turned.data);
        }
        plan = choose(turned.data)?;
    }
    Ok(plan)
}

/// The reordered join, if this one joins few rows with a join and would be cheaper that way.
fn turned(node: &Plan) -> DfResult<Option<Plan>> {
    let Some(outer) = node.downcast_ref::<HashJoinExec>().filter(|join| is_plain(join)) else {
        return Ok(None);
    };
    let of_few = match outer.join_type() {
        JoinType::Inner => outer.left().schema().fields().len(),
        JoinType::RightSemi => 0,
        _ => return Ok(None),
    };
    let Some((inner, columns)) = joined(outer.right()) else { return Ok(None) };
    let (a, b) = (inner.left(), inner.right());
    let of_a = a.schema().fields().len();
    let of_b = b.schema().fields().len();

    let on_b = outer.on().iter().map(|(few, right)| {
        let at = columns.get(place(right)?)?.checked_sub(of_a)?;
        Some((Arc::clone(few), column(b, at)))
    });
    let on_a = inner.on().iter().map(|(left, right)| Some((place(left)?, place(right)?)));
    let (Some(on_b), Some(on_a)) = (on_b.collect::<Option<Vec<_>>>(), on_a.collect::<Option<Vec<_>>>())
    else {
        return Ok(None);
    };
    if rows_of_value(a, inner.on().iter().map(|(left, _)| left)).is_none() {
        return Ok(None);
    }
    let first = HashJoinExecBuilder::new(Arc::clone(outer.left()), Arc::clone(b), on_b, *outer.join_type());
    // An open partition mode would treat sides of unknown size as large.
    let mode = *outer.partition_mode();
    let first: Plan = Arc::new(first.with_partition_mode(mode).build()?);
    let (Some(asking), Some(of_all)) = (rows_of(&first), rows_of(a)) else { return Ok(None) };
    if asking * COST.fetch > of_all {
        return Ok(None);
    }
    let on_a = on_a.into_iter().map(|(of_a, of_b)| (column(&first, of_few + of_b), column(a, of_a)));
    let on_a = on_a.collect();
    let then = HashJoinExecBuilder::new(first, Arc::clone(a), on_a, JoinType::Inner);
    let then: Plan = Arc::new(then.with_partition_mode(mode).build()?);

    let stood_at = |at: usize| match at.checked_sub(of_few) {
        None => at,
        Some(at) if columns[at] < of_a => of_few + of_b + columns[at],
        Some(at) => of_few + columns[at] - of_a,
    };
    let all = || (0..of_few + columns.len()).collect();
    let output = outer.projection.as_ref().map_or_else(all, |output| output.to_vec());
    let schema = outer.schema();
    let named = output
        .into_iter()
        .zip(schema.fields())
        .map(|(at, field)| ProjectionExpr { expr: column(&then, stood_at(at)), alias: field.name().clone() });
    let named: Vec<ProjectionExpr> = named.collect();
    Ok(Some(Arc::new(ProjectionExec::try_new(named, then)?)))
}

/// A join of few rows and a table, filtered by groups that the rows alone determine: these are found before the table's
/// rows. `None` for other joins.
fn grouped_first(node: &Plan) -> DfResult<Option<Plan>> {
    let Some(outer) = node.downcast_ref::<HashJoinExec>().filter(|join| is_plain(join)) else {
        return Ok(None);
    };
    let (pairs, groups, swapped) = match outer.join_type() {
        JoinType::LeftSemi => (outer.left(), outer.right(), false),
        JoinType::RightSemi => (outer.right(), outer.left(), true),
        _ => return Ok(None),
    };
    let (Some((inner, columns)), Some(grouping)) = (joined(pairs), grouping(groups)) else { return Ok(None) };
    let Some(few) = rows_of(inner.left()) else { return Ok(None) };
    let of_few = inner.left().schema().fields().len();
    let table = inner.right();
    let one = rows_of_value(table, inner.on().iter().map(|(_, of_table)| of_table));
    if one.is_none_or(|one| one < 2.0) || rows_of(table).is_none_or(|all| few * COST.fetch > all) {
        return Ok(None);
    }
    let (mut of_rows, mut of_table) = (Vec::new(), Vec::new());
    for (left, right) in outer.on() {
        let (pair, group) = if swapped { (right, left) } else { (left, right) };
        let (Some(pair), Some(group)) = (place(pair), place(group)) else { return Ok(None) };
        let Some(column_of_pair) = columns.get(pair).copied() else { return Ok(None) };
        match column_of_pair.checked_sub(of_few) {
            None => of_rows.push((column_of_pair, group)),
            Some(at) => {
                let equal = inner.on().iter().find(|(_, right)| place(right) == Some(at));
                match equal.map(|(left, _)| place(left)) {
                    Some(Some(left)) => of_rows.push((left, group)),
                    Some(None) => return Ok(None),
                    None => of_table.push((at, group)),
                }
            }
        }
    }
    let is_told = |group: &usize| of_rows.iter().any(|(_, told)| told == group);
    if of_table.is_empty() || !grouping.iter().all(is_told) {
        return Ok(None);
    }
    let mode = *outer.partition_mode();
    let on = of_rows.iter().map(|(row, group)| (column(inner.left(), *row), column(groups, *group)));
    let join =
        HashJoinExecBuilder::new(Arc::clone(inner.left()), Arc::clone(groups), on.collect(), JoinType::Inner);
    let first: Plan = Arc::new(join.with_partition_mode(mode).build()?);
    let by_group = of_table.iter().map(|(at, group)| (column(&first, of_few + group), column(table, *at)));
    let on = inner.on().iter().map(|(row, at)| Some((column(&first, place(row)?), Arc::clone(at))));
    let Some(on) = on.collect::<Option<Vec<_>>>() else { return Ok(None) };
    let on = on.into_iter().chain(by_group).collect();
    let then = HashJoinExecBuilder::new(Arc::clone(&first), Arc::clone(table), on, JoinType::Inner);
    let then: Plan = Arc::new(then.with_partition_mode(mode).build()?);
    let behind = first.schema().fields().len() - of_few;
    let stands_at = |at: usize| if at < of_few { at } else { at + behind };
    let output: Vec<usize> = match &outer.projection {
        Some(output) => output.iter().map(|at| columns[*at]).collect(),
        None => columns,
    };
    let schema = outer.schema();
    let named = output.into_iter().zip(schema.fields()).map(|(at, field)| ProjectionExpr {
        expr: column(&then, stands_at(at)),
        alias: field.name().clone(),
    });
    let named: Vec<ProjectionExpr> = named.collect();
    Ok(Some(Arc::new(ProjectionExec::try_new(named, then)?)))
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
        let columns = projection.expr().iter().map(|output| below.get(place(&output.expr)?).copied());
        return Some((join, columns.collect::<Option<_>>()?));
    }
    let join = plan.downcast_ref::<HashJoinExec>()?;
    let all = || (0..join.left().schema().fields().len() + join.right().schema().fields().len()).collect();
    let columns = join.projection.as_ref().map_or_else(all, |output| output.to_vec());
    (is_plain(join) && *join.join_type() == JoinType::Inner).then_some((join, columns))
}

/// The join condition is equality only, and there is no limit.
fn is_plain(join: &HashJoinExec) -> bool {
    only_equates(join) && join.fetch().is_none()
}

fn column(plan: &Plan, at: usize) -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new(plan.schema().field(at).name(), at))
}
