//! Short-circuits AND and OR, and the filters of aggregates: `a = 0 OR 10 / a > 3` must not fail where `a` is 0.
//!
//! DataFusion evaluates both sides of an AND or OR for all rows of a batch, so that a division fails for rows that the
//! other side has decided. [`short_circuits`] makes a CASE of it, which evaluates its branches for their own rows only.
//! It runs after the optimizer, which finds no key ranges in a CASE.

use std::collections::BTreeMap;

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{merge_schema, split_binary_owned};
use datafusion::logical_expr::{BinaryExpr, Case, Expr, LogicalPlan, Operator, binary_expr, lit};

use super::risk::{Risk, Risks};
use crate::df::rewrite::rename_kept;
use crate::df::tree::{RewritePlan, RewriteTree};

/// Rewrites every AND and OR with a term that may fail, except in filters of scans.
pub fn short_circuits(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let rewritten = plan.rewrite_up_with_subqueries(|node| {
        if matches!(node, LogicalPlan::TableScan(_)) || !has_alternatives(&node)? {
            return Ok(Transformed::no(node));
        }
        let (names, schema) = (NamePreserver::new(&node), merge_schema(&node.inputs()));
        let guards = Guards::of(&node, &schema);
        node.rewrite_own_expressions(|expr| {
            rename_kept(expr, &names, &mut |expr| expr.rewrite_down(|expr| guards.decided_first(expr)))
        })
    });
    rewritten.map(|rewritten| rewritten.data)
}

/// `sum(a / b) FILTER (WHERE b <> 0)` → `sum(CASE WHEN b <> 0 THEN a / b END) FILTER (WHERE b <> 0)`: what may fail is
/// computed for the rows that pass.
pub fn guarded_by_filters(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let risks = Risks { schema };
    let mut expr = expr;
    let (operands, filter): (Vec<&mut Expr>, _) = match &mut expr {
        Expr::AggregateFunction(call) => {
            let params = &mut call.params;
            let order = params.order_by.iter_mut().map(|by| &mut by.expr);
            (params.args.iter_mut().chain(order).collect(), &params.filter)
        }
        Expr::WindowFunction(call) => (call.params.args.iter_mut().collect(), &call.params.filter),
        _ => return Ok(Transformed::no(expr)),
    };
    let filter = filter.as_ref().filter(|filter| !filter.is_volatile());
    let mut changed = false;
    for operand in operands.into_iter().filter(|operand| risks.of(operand) > Risk::None) {
        let Some(filter) = filter else { break };
        let branch = (filter.clone(), Box::new(std::mem::take(operand)));
        *operand = Expr::Case(Case::new(None, vec![branch], None));
        changed = true;
    }
    Ok(Transformed::new_transformed(expr, changed))
}

/// The node has an AND or an OR.
fn has_alternatives(node: &LogicalPlan) -> DfResult<bool> {
    let mut found = false;
    node.apply_expressions(|expr| {
        found |= expr.exists(|expr| Ok(logical(expr).is_some()))?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn logical(expr: &Expr) -> Option<Operator> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => Some(*op),
        _ => None,
    }
}

/// The rewrite of a node's expressions.
struct Guards<'n> {
    risks: Risks<'n>,
    /// The condition of a join: joins that seek rows read its terms, but not those in a CASE.
    is_of_join: bool,
}

impl<'n> Guards<'n> {
    fn of(node: &LogicalPlan, schema: &'n DFSchema) -> Guards<'n> {
        Guards { risks: Risks { schema }, is_of_join: matches!(node, LogicalPlan::Join(_)) }
    }

    /// `a OR b` → `CASE WHEN a THEN true ELSE a OR b END`, `a AND b` → `CASE WHEN NOT a THEN false ELSE a AND b END`,
    /// where `a` has all terms that cannot fail, and `b` first those that seldom do: the optimizer reorders terms
    /// anyway. Unknown stays unknown.
    fn decided_first(&self, expr: Expr) -> DfResult<Transformed<Expr>> {
        let Some(op) = logical(&expr).filter(|_| self.risk(&expr) > Risk::None) else {
            return Ok(Transformed::no(expr));
        };
        let mut groups: BTreeMap<Risk, Expr> = BTreeMap::new();
        for term in split_binary_owned(expr, op) {
            // A volatile term, which is evaluated twice in front, stays behind.
            let risk = if term.is_volatile() { Risk::High } else { self.risk(&term) };
            let term = term.rewrite_down(|expr| self.decided_first(expr))?.data;
            let terms = match groups.remove(&risk) {
                Some(terms) => binary_expr(terms, op, term),
                None => term,
            };
            groups.insert(risk, terms);
        }
        let decided = groups.into_values().rev().reduce(|rest, first| self.decides(first, op, rest));
        let decided = decided.unwrap_or_else(|| lit(op == Operator::And));
        Ok(Transformed::new(decided, true, TreeNodeRecursion::Jump))
    }

    /// `first op rest`, where `rest` is evaluated for the rows that `first` does not decide. In the condition of a
    /// join, `first` stays a term of its own: `a AND CASE WHEN NOT a THEN false ELSE b END`.
    fn decides(&self, first: Expr, op: Operator, rest: Expr) -> Expr {
        let (when, then) = match op {
            Operator::Or => (first.clone(), true),
            _ => (!first.clone(), false),
        };
        let case = |otherwise| {
            let branch = (Box::new(when), Box::new(lit(then)));
            Expr::Case(Case::new(None, vec![branch], Some(Box::new(otherwise))))
        };
        match self.is_of_join && op == Operator::And {
            true => first.and(case(rest)),
            false => case(binary_expr(first, op, rest)),
        }
    }

    fn risk(&self, expr: &Expr) -> Risk {
        if self.is_of_join { self.risks.of_join(expr) } else { self.risks.of(expr) }
    }
}
