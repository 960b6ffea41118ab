//! Passes dynamic filters down to scans: of hash joins, scalar subqueries and top-k sorts.
//!
//! DataFusion's own rule (`FilterPushdown`) follows a column down by name and takes the first match, which above a join
//! of tables with a common column name may be the wrong one. This rule follows positions.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TransformedResult;
use datafusion::error::Result as DfResult;
use datafusion::physical_expr::expressions::{Column, DynamicFilterPhysicalExpr, UnKnownColumn};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::filter_pushdown::FilterPushdownPhase;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;

use super::dynamic_filter::is_late;
use super::lookup::LookupJoinExec;
use super::over_changed;
use super::scan::ScanExec;
use super::seek::SeekJoinExec;
use crate::df::below::{passed_on, windows, with_columns};
use crate::df::join_sides::{keeps, output_of};
use crate::df::tree::{RewriteTree, changed};

type Plan = Arc<dyn ExecutionPlan>;
type Filter = Arc<dyn PhysicalExpr>;
/// How a scan takes a filter.
type Take<'a> = &'a dyn Fn(&ScanExec, &Filter) -> ScanExec;

/// The rule: passes all dynamic filters to the scans of a plan.
#[derive(Debug)]
pub struct PushDown;

impl PhysicalOptimizerRule for PushDown {
    fn optimize(&self, plan: Plan, options: &ConfigOptions) -> DfResult<Plan> {
        each(plan, &|node| match of_join(node, options)? {
            None => Ok(of_filter(node)?.or(of_sort(node)?)),
            pushed => Ok(pushed),
        })
    }

    fn name(&self) -> &str {
        "push_down"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Passes the dynamic filters of joins only, in a plan that was made without.
pub fn of_joins(plan: Plan, options: &ConfigOptions) -> DfResult<Plan> {
    each(plan, &|node| of_join(node, options))
}

/// Applies `push` to each operator of a plan.
fn each(plan: Plan, push: &dyn Fn(&Plan) -> DfResult<Option<Plan>>) -> DfResult<Plan> {
    let pushed = plan.rewrite_up(|node| {
        let pushed = push(&node)?;
        Ok(changed(pushed, node))
    });
    pushed.data()
}

/// Passes the dynamic filter of a join from its left side to its right side.
fn of_join(node: &Plan, options: &ConfigOptions) -> DfResult<Option<Plan>> {
    let Some(join) = node.downcast_ref::<HashJoinExec>() else { return Ok(None) };
    let learns = join.gather_filters_for_pushdown(FilterPushdownPhase::Post, Vec::new(), options)?;
    let Some(filter) = learns.self_filters().pop().and_then(|mut of_right| of_right.pop()) else {
        return Ok(None);
    };
    let Some(right) = pushed(join.right(), &filter, &ScanExec::with_dynamic_filter)? else { return Ok(None) };
    let Ok(filter) = Arc::downcast::<DynamicFilterPhysicalExpr>(filter) else { return Ok(None) };
    let join = join.builder().with_new_children(vec![Arc::clone(join.left()), right])?.build()?;
    Ok(Some(Arc::new(join.with_dynamic_filter_expr(filter)?)))
}

/// Passes a filter's comparisons with scalar subqueries to its input; the filter stays.
fn of_filter(node: &Plan) -> DfResult<Option<Plan>> {
    let Some(filter) = node.downcast_ref::<FilterExec>() else { return Ok(None) };
    let mut input = None;
    for term in split_conjunction(filter.predicate()).into_iter().filter(|term| is_late(term)) {
        if let Some(pushed) =
            pushed(input.as_ref().unwrap_or(filter.input()), term, &ScanExec::with_dynamic_filter)?
        {
            input = Some(pushed);
        }
    }
    over_changed(node, vec![input])
}

/// Passes the threshold of a top-k sort to its input.
fn of_sort(node: &Plan) -> DfResult<Option<Plan>> {
    let Some(sort) = node.downcast_ref::<SortExec>() else { return Ok(None) };
    let Some(filter) = sort.dynamic_expressions_produced().pop().filter(|_| sort.fetch().is_some()) else {
        return Ok(None);
    };
    let input = pushed(sort.input(), &filter, &ScanExec::with_threshold)?;
    over_changed(node, vec![input])
}

/// The plan with the filter, which is over its columns, passed to its scans; `None` if it reaches none. Rows that do
/// not pass may still come.
fn pushed(node: &Plan, filter: &Filter, take: Take<'_>) -> DfResult<Option<Plan>> {
    // With rows missing, the limit would let others through.
    if node.fetch().is_some() {
        return Ok(None);
    }
    if let Some(scan) = node.downcast_ref::<ScanExec>() {
        if scan.passes_over() {
            // The offset would skip other rows.
            return Ok(None);
        }
        return Ok(Some(Arc::new(take(scan, filter))));
    }
    let filters = below(node, filter)?.into_iter().chain(std::iter::repeat(None));
    let inputs = node.children().into_iter().zip(filters).map(|(input, filter)| match filter {
        Some(filter) => pushed(input, &filter, take),
        None => Ok(None),
    });
    over_changed(node, inputs.collect::<DfResult<_>>()?)
}

/// The filter over the columns of each input, as far as rows of the input that do not pass it may go.
fn below(node: &Plan, filter: &Filter) -> DfResult<Vec<Option<Filter>>> {
    let inputs = node.children();
    if passes_all(&**node) {
        return Ok(vec![Some(Arc::clone(filter))]);
    }
    if let Some(filtering) = node.downcast_ref::<FilterExec>() {
        return Ok(vec![match filtering.projection() {
            None => Some(Arc::clone(filter)),
            Some(kept) => with_columns(filter, &|at| column(inputs[0], *kept.get(at)?)),
        }]);
    }
    if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
        return Ok(vec![with_columns(filter, &|at| Some(Arc::clone(&projection.expr().get(at)?.expr)))]);
    }
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        let groups = aggregate.group_expr();
        if !groups.is_single() || groups.is_true_no_grouping() {
            return Ok(Vec::new());
        }
        // A condition on grouping columns drops whole groups; totals are unknown below.
        let column = |at: usize| -> Filter {
            match groups.expr().get(at) {
                Some((group, _)) => Arc::clone(group),
                None => Arc::new(UnKnownColumn::new("total")),
            }
        };
        let below = with_columns(filter, &|at| Some(column(at)));
        return Ok(vec![below.filter(|below| !collect_columns(below).is_empty())]);
    }
    if let Some(windows) = windows(&**node) {
        // A condition on columns that partition every window drops whole partitions.
        let partitions = |at: usize| {
            let is_it = |by: &Filter| by.downcast_ref::<Column>().is_some_and(|by| by.index() == at);
            windows.iter().all(|window| window.partition_by().iter().any(is_it))
        };
        let below = with_columns(filter, &|at| column(inputs[0], at).filter(|_| partitions(at)));
        return Ok(vec![below.filter(|below| !collect_columns(below).is_empty())]);
    }
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        let keeps = keeps(*join.join_type());
        return of_one_side(filter, &inputs, &|at| output_of(join, at).filter(|(side, _)| keeps[*side]));
    }
    if let Some(join) = node.downcast_ref::<LookupJoinExec>() {
        let sides = if join.takes_order() { &inputs[..] } else { &inputs[..1] };
        return of_one_side(filter, sides, &|at| join.output_of(at));
    }
    if let Some(join) = node.downcast_ref::<SeekJoinExec>() {
        return of_one_side(filter, &inputs[..1], &|at| join.output_of(at));
    }
    let is_union = node.is::<UnionExec>();
    Ok(inputs.iter().map(|_| is_union.then(|| Arc::clone(filter))).collect())
}

/// The filter over the columns of the first side of a join that has all of them. `place`: the side and the column there
/// behind an output column.
fn of_one_side(
    filter: &Filter,
    sides: &[&Plan],
    place: &dyn Fn(usize) -> Option<(usize, usize)>,
) -> DfResult<Vec<Option<Filter>>> {
    let mut below = Vec::with_capacity(sides.len());
    for (side, input) in sides.iter().enumerate() {
        let place = |at| place(at).filter(|(from, _)| *from == side);
        below.push(with_columns(filter, &|at| column(input, place(at)?.1)));
        if below[side].is_some() {
            break;
        }
    }
    Ok(below)
}

/// The output has the same rows and columns as the input.
fn passes_all(node: &dyn ExecutionPlan) -> bool {
    passed_on(node).is_some()
        || node.is::<CoalescePartitionsExec>()
        || node.is::<RepartitionExec>()
        || node.is::<SortExec>()
        || node.is::<SortPreservingMergeExec>()
}

fn column(plan: &Plan, at: usize) -> Option<Filter> {
    let schema = plan.schema();
    Some(Arc::new(Column::new(schema.fields().get(at)?.name(), at)))
}
