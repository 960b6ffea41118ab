//! Functions that evaluate an argument only if those before it do not tell the result.

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};

use crate::df::errors::to_df;
use crate::error::{Error, sqlstate};

/// Largest arguments (nodes) of a function that is expanded.
const LAZY_NODES_MAX: usize = 20_000;

/// Expands the functions that DataFusion implements only as a CASE. Its simplifier would do it, but
/// [`ThreeValued`](super::three_valued::ThreeValued) keeps arguments with an AND or OR from it.
pub fn lazy_functions(expr: Expr, _: &DFSchema) -> DfResult<Transformed<Expr>> {
    match expr {
        Expr::ScalarFunction(ScalarFunction { func, args })
            if matches!(func.name(), "coalesce" | "nvl" | "nvl2") =>
        {
            // The CASE repeats each argument but the last.
            let nodes: usize = args.iter().map(size).sum();
            if nodes > LAZY_NODES_MAX {
                let error = Error::invalid(format!("calls of {} are nested too deeply", func.name()));
                return Err(to_df(error.hint("give one call all the values").state(sqlstate::LIMIT)));
            }
            Ok(match func.simplify(args, &SimplifyContext::builder().build())? {
                ExprSimplifyResult::Simplified(expr) => Transformed::yes(expr),
                ExprSimplifyResult::Original(args) => {
                    Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args }))
                }
            })
        }
        expr => Ok(Transformed::no(expr)),
    }
}

fn size(expr: &Expr) -> usize {
    let mut nodes = 0;
    let _ = expr.apply(|_| {
        nodes += 1;
        Ok(TreeNodeRecursion::Continue)
    });
    nodes
}
