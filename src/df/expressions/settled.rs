//! Settles types that depend on several parts of a query, before our own rules rely on them.
//!
//! Until type coercion, DataFusion gives a UNION the types of its first input, and a CASE the type of its first branch:
//! `x` of `SELECT v AS x .. UNION ALL SELECT m ..` is an INTEGER until then, and a DECIMAL after. A rule for integers
//! would be applied to a decimal. What AT TIME ZONE gives depends on such types, and they on what it gives.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion, TreeNodeRewriter};
use datafusion::common::{DFSchema, Result as DfResult};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, RecursiveQuery, Union};
use datafusion::optimizer::analyzer::AnalyzerRule;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercionRewriter;

use super::beside::in_union;
use super::dates::at_midnight;
use super::doubles::doubles_win;
use super::step_types::as_planned;
use super::text::texts_beside_branches;
use super::time_parts::is_part;
use super::time_zone::{at_time_zone, is_at_time_zone};
use crate::df::rewrite::{branches, named_as, rename_kept};
use crate::df::tree::{RewritePlan, RewriteTree};

/// The rule. Runs before all rules that look at types.
#[derive(Debug)]
pub struct Settled;

impl AnalyzerRule for Settled {
    fn name(&self) -> &str {
        "settled"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> DfResult<LogicalPlan> {
        let mut mixes = false;
        plan.apply_with_subqueries(|node| {
            mixes |= match node {
                LogicalPlan::Union(union) => differs(union),
                node => has_mixed(node)?,
            };
            Ok(if mixes { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if mixes { Ok(settled(plan)?.data) } else { Ok(plan) }
    }
}

fn settled(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    if let LogicalPlan::RecursiveQuery(RecursiveQuery {
        name,
        static_term,
        recursive_term,
        is_distinct,
        ..
    }) = plan
    {
        let planned = Arc::clone(static_term.schema());
        let first = as_planned(settled(Arc::unwrap_or_clone(static_term))?.data, &planned)?;
        let step = settled(Arc::unwrap_or_clone(recursive_term))?.data;
        let query = RecursiveQuery::try_new(name, Arc::new(first), Arc::new(step), is_distinct)?;
        return Ok(Transformed::yes(LogicalPlan::RecursiveQuery(query)));
    }
    let plan = plan.map_subqueries(settled)?.data.map_children(settled)?.data;
    let plan = match plan {
        // Its schema is the one of its first input as it was planned.
        LogicalPlan::Union(union) => {
            let union = Union::try_new_with_loose_types(union.inputs)?;
            named(match differs(&union) {
                true => TypeCoercionRewriter::coerce_union(in_union(union)?)?,
                false => LogicalPlan::Union(union),
            })?
        }
        // Parameters of LIMIT are numbers already.
        LogicalPlan::Limit(limit) => LogicalPlan::Limit(limit),
        plan => {
            let (schema, names) = (merge_schema(&plan.inputs()), NamePreserver::new(&plan));
            let settle = |expr| {
                rename_kept(expr, &names, &mut |expr: Expr| {
                    let branches = expr.rewrite_up(|expr| {
                        at_time_zone(expr, &schema)?.transform_data(|expr| of_branches(expr, &schema))
                    });
                    let branches = branches?.data;
                    let (expr, _) = branches.rewrite_up(untyped)?.data.infer_placeholder_types(&schema)?;
                    Ok(Transformed::yes(expr))
                })
            };
            plan.rewrite_own_expressions(settle)?.data
        }
    };
    plan.recompute_schema().map(Transformed::yes)
}

/// Gives the inputs of a union its names. DataFusion moves the casts above it into each input, by these names.
fn named(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let LogicalPlan::Union(mut union) = plan else { return Ok(plan) };
    fn names(schema: &DFSchema) -> impl Iterator<Item = &String> {
        schema.fields().iter().map(|field| field.name())
    }
    for input in &mut union.inputs {
        if !names(input.schema()).eq(names(&union.schema)) {
            *input = named_as(Arc::clone(input), &union.schema)?;
        }
    }
    Ok(LogicalPlan::Union(union))
}

/// Drops the types of parameters that are compared with something, so that they are inferred anew, from what it is now.
/// Others have their type from the value that they were planned with, and keep it.
fn untyped(mut expr: Expr) -> DfResult<Transformed<Expr>> {
    let compared: Vec<&mut Expr> = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if !op.is_numerical_operators() => vec![left, right],
        Expr::Between(between) => vec![&mut between.low, &mut between.high],
        Expr::InList(list) => list.list.iter_mut().collect(),
        Expr::InSubquery(query) => vec![&mut query.expr],
        Expr::SetComparison(query) => vec![&mut query.expr],
        Expr::Like(like) | Expr::SimilarTo(like) => vec![&mut like.pattern],
        _ => Vec::new(),
    };
    let mut has_changed = false;
    for side in compared {
        if let Expr::Placeholder(param) = side {
            has_changed |= param.field.take().is_some();
        }
    }
    Ok(Transformed::new_transformed(expr, has_changed))
}

/// Some input has other types than the union.
fn differs(union: &Union) -> bool {
    fn types(schema: &DFSchema) -> impl Iterator<Item = &DataType> {
        schema.fields().iter().map(|field| field.data_type())
    }
    union.inputs.iter().any(|input| !types(input.schema()).eq(types(&union.schema)))
}

fn has_mixed(node: &LogicalPlan) -> DfResult<bool> {
    let (mut found, mut schema) = (false, None);
    node.apply_expressions(|expr| {
        found |= expr.exists(|expr| {
            // Merge the schemas only if needed: few expressions have branches.
            let chooses = !branches(expr).is_empty();
            Ok(is_part(expr)
                || is_at_time_zone(expr)
                || chooses && is_mixed(expr, schema.get_or_insert_with(|| merge_schema(&node.inputs()))))
        })?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// The branches are of several types.
fn is_mixed(expr: &Expr, schema: &DFSchema) -> bool {
    let types = branches(expr).into_iter().map(|branch| branch.get_type(schema));
    let Ok(mut types) = types.collect::<DfResult<Vec<DataType>>>() else { return false };
    types.retain(|ty| !ty.is_null());
    types.windows(2).any(|pair| pair[0] != pair[1])
}

/// Casts the branches to their common type.
fn of_branches(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    if !is_mixed(&expr, schema) {
        return Ok(Transformed::no(expr));
    }
    let expr = texts_beside_branches(expr, schema)?
        .transform_data(|expr| at_midnight(expr, schema))?
        .transform_data(|expr| doubles_win(expr, schema))?;
    TypeCoercionRewriter::new(schema).f_up(expr.data)
}
