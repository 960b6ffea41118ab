//! Windows that are partitioned or ordered by a function or a comparison, as in `OVER (ORDER BY abs(a - b))`.
//!
//! DataFusion 55.2 derives the bounds of such a key from those of its operands. Those of a function or a CASE have no
//! type, so it fails, takes the key for unsorted right above its own sort, and the final check refuses the plan.
//! It takes rows for sorted by a constant, too, until it moves the constant into the inputs of a UNION below.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, LogicalPlan, LogicalPlanBuilder, Operator};

use crate::df::rewrite::{below, rename_kept};
use crate::df::tree::RewriteTree;

/// Computes such keys as columns below the window, and leaves out constants by which it is partitioned.
pub fn compared_keys(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Window(window) = &plan else { return Ok(Transformed::no(plan)) };
    let (mut keys, mut has_constants): (Vec<Expr>, bool) = (Vec::new(), false);
    let (input, names) = (&window.input, NamePreserver::new(&plan));
    let mut column_of = |key: Expr| {
        if !has_lost_bounds(&key) {
            return key;
        }
        let place = keys.iter().position(|known| *known == key).unwrap_or_else(|| {
            keys.push(key);
            keys.len() - 1
        });
        Expr::Column(Column::new_unqualified(name(place)))
    };
    let mut with_columns = |expr: Expr| {
        let Expr::WindowFunction(window) = expr else { return Ok(Transformed::no(expr)) };
        let mut window: WindowFunction = *window;
        let params = &mut window.params;
        let all = params.partition_by.len();
        params.partition_by.retain(|key| !is_constant(key, input));
        has_constants |= params.partition_by.len() < all;
        params.partition_by = params.partition_by.drain(..).map(&mut column_of).collect();
        for by in &mut params.order_by {
            by.expr = column_of(by.expr.clone());
        }
        Ok(Transformed::yes(Expr::WindowFunction(Box::new(window))))
    };
    let exprs = window.window_expr.iter().cloned();
    let exprs = exprs.map(|expr| rename_kept(expr, &names, &mut |e| e.rewrite_up(&mut with_columns)).data());
    let exprs: Vec<Expr> = exprs.collect::<DfResult<_>>()?;
    if keys.is_empty() && !has_constants {
        return Ok(Transformed::no(plan));
    }
    let columns = |plan: &LogicalPlan| plan.schema().columns().into_iter().map(Expr::Column);
    let computed = keys.into_iter().enumerate().map(|(n, key)| key.alias(name(n)));
    let input = LogicalPlanBuilder::from(Arc::clone(input));
    let input = input.project(columns(&window.input).chain(computed))?;
    input.window(exprs)?.project(columns(&plan))?.build().map(Transformed::yes)
}

/// The key is the same in all rows, as some projection below says.
fn is_constant(key: &Expr, plan: &LogicalPlan) -> bool {
    match (key, plan) {
        (Expr::Literal(..) | Expr::Placeholder(_), _) => true,
        (Expr::Cast(cast), plan) => is_constant(&cast.expr, plan),
        (Expr::Column(_), LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_)) => {
            below(key, plan).is_some_and(|key| is_constant(&key, plan.inputs()[0]))
        }
        _ => false,
    }
}

fn name(place: usize) -> String {
    format!("__key_{place}")
}

/// A comparison or a function is in the key. What cuts times off keeps their order, and is sought by it.
fn has_lost_bounds(key: &Expr) -> bool {
    let is_one = |expr: &Expr| match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => {
            matches!(op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
        }
        Expr::ScalarFunction(call) => !matches!(call.name(), "date_trunc" | "date_bin"),
        expr => matches!(expr, Expr::Between(Between { .. })),
    };
    key.exists(|expr| Ok(is_one(expr))).unwrap_or(true)
}
