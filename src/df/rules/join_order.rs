//! Reorders joins whose tables are written in another order than is best to read.
//!
//! DataFusion joins tables in the order of the query, and chooses only the build side of each join. So `users JOIN
//! comments ON .. JOIN posts ON ..` with a condition on posts reads all users, to find the few posts among their
//! comments. Where few rows `s` are joined with `a JOIN b` by columns of `b` alone, this rule joins them with `b`
//! first, and the result looks up `a` by its key: `s JOIN (a JOIN b)` becomes `(s JOIN b) JOIN a`. The side `a` is the
//! build side of its join; the probe side is narrowed by a dynamic filter anyway.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result as DfResult;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::{PhysicalOptimizerContext, PhysicalOptimizerRule};
use datafusion::physical_plan::ExecutionPlan;
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
            let turned = turned(&node)?;
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
