//! Keeps the types of outer columns in subqueries up to date.
//!
//! A subquery copies the type of each outer column when it is planned. The analyzer may change that type: `id - c` of
//! two INTEGERs becomes a BIGINT, a CASE gets the common type of its branches. The subquery's comparisons are coerced
//! by the copy, so it is updated before type coercion, and once more if the coercion itself has changed such a type.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchema, ExprSchema};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, Join, LogicalPlan};
use datafusion::optimizer::analyzer::AnalyzerRule;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;

use super::correlated::{has_subquery, outer_columns};
use crate::df::rewrite::rename_kept;
use crate::df::tree::{RewritePlan, RewriteTree};

/// DataFusion's type coercion, with current types of outer columns.
#[derive(Debug)]
pub struct Coercion(pub TypeCoercion);

impl AnalyzerRule for Coercion {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn analyze(&self, plan: LogicalPlan, options: &ConfigOptions) -> DfResult<LogicalPlan> {
        if !takes_from_around(&plan)? {
            return self.0.analyze(plan, options);
        }
        let plan = self.0.analyze(up_to_date(plan)?.data, options)?;
        let again = up_to_date(plan)?;
        if again.transformed { self.0.analyze(again.data, options) } else { Ok(again.data) }
    }
}

/// Some subquery of the plan uses outer columns.
fn takes_from_around(plan: &LogicalPlan) -> DfResult<bool> {
    let mut takes = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            takes |= expr.contains_outer();
            Ok(if takes { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    Ok(takes)
}

fn up_to_date(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    plan.rewrite_down_with_subqueries(|node| {
        if let LogicalPlan::Join(join) = &node {
            if outer_columns(&join.right).is_empty() {
                return Ok(Transformed::no(node));
            }
            let right = retyped(join.right.as_ref().clone(), join.left.schema())?;
            return Ok(
                right.update_data(|right| LogicalPlan::Join(Join { right: right.into(), ..join.clone() }))
            );
        }
        if !node.expressions().iter().any(has_subquery) {
            return Ok(Transformed::no(node));
        }
        let schema = merge_schema(&node.inputs());
        let node = node.map_subqueries(|subquery| retyped(subquery, &schema))?;
        if node.transformed { node.map_data(LogicalPlan::recompute_schema) } else { Ok(node) }
    })
}

/// The subquery with its outer columns typed as in this schema.
fn retyped(subquery: LogicalPlan, schema: &DFSchema) -> DfResult<Transformed<LogicalPlan>> {
    subquery.rewrite_up_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        let node = node.rewrite_own_expressions(|expr| {
            rename_kept(expr, &names, &mut |expr| {
                expr.rewrite_up(|expr| {
                    let Expr::OuterReferenceColumn(field, column) = &expr else {
                        return Ok(Transformed::no(expr));
                    };
                    Ok(match schema.field_from_column(column) {
                        Ok(now)
                            if now.data_type() != field.data_type()
                                || now.is_nullable() && !field.is_nullable() =>
                        {
                            Transformed::yes(Expr::OuterReferenceColumn(now.clone(), column.clone()))
                        }
                        _ => Transformed::no(expr),
                    })
                })
            })
        })?;
        if node.transformed { node.map_data(LogicalPlan::recompute_schema) } else { Ok(node) }
    })
}
