//! `SELECT EXISTS (SELECT 1 FROM t WHERE ..)`, `SELECT (SELECT max(n) FROM t) + 1`: a row of no table.
//!
//! DataFusion runs such a subquery as a plan of its own, before the one that has its value. If it is a total, it always
//! has one row, and the outer expressions are computed of that.

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{EmptyRelation, Expr, LogicalPlan, LogicalPlanBuilder, Projection, Subquery};

use super::correlated::outer_columns;
use crate::df::tree::RewriteTree;

/// Replaces a projection of a row of no table by one of the total that it asks for, if it asks for a single one.
pub fn total_of_no_table(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Projection(projection) = &plan else { return Ok(Transformed::no(plan)) };
    let LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: true, .. }) = &*projection.input else {
        return Ok(Transformed::no(plan));
    };
    let Some(total) = only_total(projection)? else { return Ok(Transformed::no(plan)) };
    let value = Expr::Column(Column::from(total.subquery.schema().qualified_field(0)));
    let computed = projection.expr.iter().zip(projection.schema.iter()).map(|(expr, (of, field))| {
        let replaced = expr.clone().rewrite_down(|expr| match expr {
            Expr::ScalarSubquery(_) => Ok(Transformed::new(value.clone(), true, TreeNodeRecursion::Jump)),
            expr => Ok(Transformed::no(expr)),
        });
        Ok(match replaced.data()? {
            named @ Expr::Alias(_) => named,
            other => other.alias_qualified(of.cloned(), field.name()),
        })
    });
    let computed = computed.collect::<DfResult<Vec<Expr>>>()?;
    let rows = LogicalPlanBuilder::from(total.subquery.clone());
    rows.project(computed)?.build().map(Transformed::yes)
}

/// The subquery of these expressions, if it is the only one, and always has one row.
fn only_total(projection: &Projection) -> DfResult<Option<Subquery>> {
    let mut found: Vec<Subquery> = Vec::new();
    let mut is_other = false;
    for expr in &projection.expr {
        expr.apply(|expr| {
            match expr {
                Expr::ScalarSubquery(subquery) if !found.contains(subquery) => found.push(subquery.clone()),
                Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) => is_other = true,
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    let total = if found.len() == 1 && !is_other { found.pop() } else { None };
    Ok(total.filter(|total| is_total(&total.subquery) && outer_columns(&total.subquery).is_empty()))
}

/// The plan has exactly one row.
pub fn is_total(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => is_total(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => is_total(&alias.input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        _ => false,
    }
}
