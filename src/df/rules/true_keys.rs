//! Keys of grouped rows: columns whose values occur once.
//!
//! Rows that are grouped by `customer` have each customer once; joined with their orders they no longer do. When these
//! are grouped by customer and item, DataFusion 55.2 takes the customer for a key again, as it was one below the join.
//! It then drops columns of the next GROUP BY, a DISTINCT, sort keys, and repeated rows of a join. [`by_true_keys`]
//! takes such keys away from rules that rely on them.
//!
//! DataFusion also completes GROUP BY lists by what their columns determine, and would split the groups by columns that
//! such a key does not determine. [`grouped_as_written`] drops those.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Dependency, FunctionalDependence, FunctionalDependencies};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, lit};

use crate::df::rewrite::LogicalInner;
use crate::df::tree::RewritePlan;
use crate::sql::END_OF_GROUPS;

/// Around a rule that looks at a whole plan and relies on its keys.
pub fn by_true_keys(plan: LogicalPlan, rule: &LogicalInner<'_>) -> DfResult<Transformed<LogicalPlan>> {
    rule(true_keys(plan)?)
}

/// Around a rule that looks at single nodes: it relies on the keys of sorted and of distinct rows.
pub fn by_true_keys_of_rows(
    plan: LogicalPlan,
    rule: &LogicalInner<'_>,
) -> DfResult<Transformed<LogicalPlan>> {
    let relies = matches!(plan, LogicalPlan::Sort(_) | LogicalPlan::Distinct(_));
    rule(if relies { true_keys(plan)? } else { plan })
}

/// Corrects the keys of all nodes of a plan.
fn true_keys(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let mut is_wrong = false;
    plan.apply_with_subqueries(|node| {
        is_wrong |= is_wrongly_keyed(node);
        Ok(if is_wrong { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !is_wrong {
        return Ok(plan);
    }
    let corrected = plan.rewrite_up_with_subqueries(|node| match keys_of(&node) {
        [] => Ok(Transformed::no(node)),
        _ => corrected(node).map(Transformed::yes),
    });
    corrected.data()
}

fn keys_of(node: &LogicalPlan) -> &[FunctionalDependence] {
    node.schema().functional_dependencies()
}

fn is_wrongly_keyed(node: &LogicalPlan) -> bool {
    let LogicalPlan::Aggregate(aggregate) = node else { return false };
    keys_of(node).iter().any(|key| !is_true(key, aggregate))
}

/// Rows that have a wrong key are grouped: DataFusion may have added columns to the list which the key implies.
pub fn groups_by_wrong_keys(plan: &LogicalPlan) -> bool {
    let mut is_wrong = false;
    // The closures never fail.
    let _ = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Aggregate(aggregate) = node {
            is_wrong |= aggregate.input.exists(|node| Ok(is_wrongly_keyed(node))).unwrap_or(true);
        }
        Ok(if is_wrong { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    is_wrong
}

/// Drops such columns from the marked lists of a plan (see [`with_marked_groups`](crate::sql::with_marked_groups)).
pub fn grouped_as_written(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let corrected = plan.rewrite_up_with_subqueries(|node| {
        let node = match node {
            LogicalPlan::Aggregate(mut aggregate) => {
                unmark(&mut aggregate);
                LogicalPlan::Aggregate(aggregate)
            }
            node => node,
        };
        corrected(node).map(Transformed::yes)
    });
    corrected.data()
}

fn unmark(aggregate: &mut Aggregate) {
    let mark = lit(END_OF_GROUPS);
    let Some(end) = aggregate.group_expr.iter().position(|expr| *expr == mark) else { return };
    let implied = aggregate.group_expr.split_off(end);
    let input = aggregate.input.schema();
    let told = told(&aggregate.group_expr, input);
    aggregate.group_expr.extend(implied.into_iter().skip(1).filter(|expr| follows(expr, &told, input)));
}

/// The other columns that the rows are grouped by follow from the key.
fn is_true(key: &FunctionalDependence, aggregate: &Aggregate) -> bool {
    let (groups, input) = (&aggregate.group_expr, aggregate.input.schema());
    let sources: Vec<Expr> = key.source_indices.iter().filter_map(|n| groups.get(*n)).cloned().collect();
    let told = told(&sources, input);
    groups
        .iter()
        .enumerate()
        .all(|(n, group)| key.source_indices.contains(&n) || follows(group, &told, input))
}

/// The places of these columns and of those that they determine.
fn told(columns: &[Expr], input: &DFSchema) -> Vec<usize> {
    let place = |expr: &Expr| match expr {
        Expr::Column(column) => input.maybe_index_of_column(column),
        _ => None,
    };
    let columns: Vec<usize> = columns.iter().filter_map(place).collect();
    let known = input.functional_dependencies().iter();
    let known = known.filter(|known| known.source_indices.iter().all(|n| columns.contains(n)));
    known.flat_map(|known| &known.target_indices).chain(&columns).copied().collect()
}

fn follows(expr: &Expr, told: &[usize], input: &DFSchema) -> bool {
    let mut columns = expr.column_refs().into_iter().map(|column| input.maybe_index_of_column(column));
    !expr.is_volatile() && columns.all(|n| n.is_some_and(|n| told.contains(&n)))
}

/// The node with the schema that its inputs and its groups give it.
fn corrected(node: LogicalPlan) -> DfResult<LogicalPlan> {
    let node = node.recompute_schema()?;
    if !is_wrongly_keyed(&node) {
        return Ok(node);
    }
    let LogicalPlan::Aggregate(mut aggregate) = node else { return Ok(node) };
    let keys = aggregate.schema.functional_dependencies().iter();
    let mut keys: Vec<_> = keys.filter(|key| is_true(key, &aggregate)).cloned().collect();
    if keys.is_empty() {
        let groups = aggregate.schema.fields().len() - aggregate.aggr_expr.len();
        let is_nullable = aggregate.schema.fields()[..groups].iter().any(|field| field.is_nullable());
        let all = (0..aggregate.schema.fields().len()).collect();
        let key = FunctionalDependence::new((0..groups).collect(), all, is_nullable);
        keys.push(key.with_mode(Dependency::Single));
    }
    let schema = (*aggregate.schema).clone();
    let schema = schema.with_functional_dependencies(FunctionalDependencies::new(keys))?;
    aggregate.schema = Arc::new(schema);
    Ok(LogicalPlan::Aggregate(aggregate))
}
