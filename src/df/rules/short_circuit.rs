//! Short-circuits AND and OR: `a = 0 OR 10 / a > 3` must not fail where `a` is 0.
//!
//! DataFusion evaluates both sides of an AND or OR for all rows of a batch, so that a division fails for rows that the
//! other side has decided. [`short_circuits`] makes a CASE of it, which evaluates its branches for their own rows only.
//! It runs after the optimizer, which finds no key ranges in a CASE.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::split_binary_owned;
use datafusion::logical_expr::{BinaryExpr, Case, Expr, LogicalPlan, Operator, binary_expr, lit};

use crate::df::tree::{RewritePlan, RewriteTree};

/// Rewrites every AND and OR with a term that may fail, except in filters of scans.
pub fn short_circuits(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let mut risky = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            risky |= may_fail(expr)?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    if !risky {
        return Ok(plan);
    }
    let rewritten = plan.rewrite_up_with_subqueries(|node| {
        if matches!(node, LogicalPlan::TableScan(_)) {
            return Ok(Transformed::no(node));
        }
        let names = NamePreserver::new(&node);
        node.rewrite_own_expressions(|expr| {
            let name = names.save(&expr);
            Ok(expr.rewrite_down(decided_first)?.update_data(|expr| name.restore(expr)))
        })
    });
    rewritten.map(|rewritten| rewritten.data)
}

/// `a OR b` → `CASE WHEN a THEN true ELSE a OR b END`, `a AND b` → `CASE WHEN NOT a THEN false ELSE a AND b END`, where
/// `a` has all terms that cannot fail: the optimizer reorders terms anyway. Unknown stays unknown.
fn decided_first(expr: Expr) -> DfResult<Transformed<Expr>> {
    let op = match &expr {
        Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) if may_fail(&expr)? => {
            *op
        }
        _ => return Ok(Transformed::no(expr)),
    };
    let (mut sure, mut risky) = (None, None);
    for term in split_binary_owned(expr, op) {
        // A volatile term, which is evaluated twice in front, stays behind.
        let side = if may_fail(&term)? || term.is_volatile() { &mut risky } else { &mut sure };
        let term = term.rewrite_down(decided_first)?.data;
        *side = Some(match side.take() {
            Some(terms) => binary_expr(terms, op, term),
            None => term,
        });
    }
    let decided = match (sure, risky) {
        (Some(sure), Some(risky)) => {
            let (when, then) = if op == Operator::Or { (sure.clone(), true) } else { (!sure.clone(), false) };
            let branch = (Box::new(when), Box::new(lit(then)));
            Expr::Case(Case::new(None, vec![branch], Some(Box::new(binary_expr(sure, op, risky)))))
        }
        (Some(all), None) | (None, Some(all)) => all,
        (None, None) => lit(op == Operator::And),
    };
    Ok(Transformed::new(decided, true, TreeNodeRecursion::Jump))
}

/// Functions that not every value of their types may be given to.
const FAILING: [&str; 17] = [
    "as_json",
    "as_uuid",
    "cast",
    "chr",
    "code",
    "factorial",
    "json_array_length",
    "json_contains",
    "json_extract_path",
    "json_extract_path_text",
    "json_get",
    "json_get_text",
    "json_typeof",
    "ln",
    "log",
    "power",
    "sqrt",
];

/// The expression divides by what may be 0, or calls one of [`FAILING`].
fn may_fail(expr: &Expr) -> DfResult<bool> {
    expr.exists(|e| {
        Ok(match e {
            Expr::BinaryExpr(BinaryExpr { op: Operator::Divide | Operator::Modulo, right, .. }) => {
                !is_not_zero(right)
            }
            Expr::ScalarFunction(call) => match call.func.name() {
                "divide" | "modulo" => !call.args.get(1).is_some_and(is_not_zero),
                name => FAILING.contains(&name),
            },
            _ => false,
        })
    })
}

fn is_not_zero(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => {
            datafusion::common::ScalarValue::new_zero(&value.data_type()).is_ok_and(|zero| zero != *value)
        }
        _ => false,
    }
}
