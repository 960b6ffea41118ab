//! Subqueries in CASE, AND and OR: `CASE WHEN b > 0 THEN (SELECT sum(v) / b FROM ..) END` must not fail where `b` is 0.
//!
//! Subqueries become joins, which compute them for all outer rows. So what decides that a value is not asked for goes
//! into the subquery, as a filter below each step that may well fail. The value of such a row is then another one, which
//! nobody sees. Subqueries that know nothing of the outer row, and those that hardly fail, stay as they are: joins that
//! know more conditions look for rows in fewer ways.

use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{
    conjunction, merge_schema, split_binary_owned, split_conjunction_owned,
};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Case, Expr, Filter, LogicalPlan, Operator, Projection, Sort, Window, binary_expr,
    lit,
};

use super::correlated::{has_subquery, outer_columns, subquery_mut, subquery_of};
use super::membership::from_outside;
use crate::df::rewrite::rename_kept;
use crate::df::rules::risk::{Risk, Risks};
use crate::df::tree::{RewritePlan, RewriteTree};

/// Guards the subqueries of a node.
pub fn guarded_subqueries(node: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    if !node.expressions().iter().any(has_subquery) {
        return Ok(Transformed::no(node));
    }
    let (names, schema) = (NamePreserver::new(&node), merge_schema(&node.inputs()));
    let outer = Outer { schema: &schema };
    // Of the terms of a WHERE, those without subqueries drop rows before the others are computed.
    let is_filter = matches!(node, LogicalPlan::Filter(_));
    node.rewrite_own_expressions(|expr| match is_filter {
        true => outer.each_guarded(Operator::And, split_conjunction_owned(expr), &[]).map(Transformed::yes),
        false => rename_kept(expr, &names, &mut |expr| outer.guarded(expr, &[]).map(Transformed::yes)),
    })
}

/// The rows around the subqueries of a node.
struct Outer<'n> {
    schema: &'n DFSchema,
}

impl Outer<'_> {
    /// The expression, whose value is only asked for where all `conditions` are true.
    fn guarded(&self, expr: Expr, conditions: &[Expr]) -> DfResult<Expr> {
        if !has_subquery(&expr) {
            return Ok(expr);
        }
        match expr {
            Expr::Case(case) => self.guarded_case(case, conditions),
            Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => {
                let terms = split_binary_owned(expr, op);
                let mut held = conditions.to_vec();
                // Terms without subqueries are evaluated first.
                held.extend(terms.iter().filter(|term| self.can_decide(term)).cloned().map(
                    |term| match op {
                        Operator::And => term.is_not_false(),
                        _ => term.is_not_true(),
                    },
                ));
                self.each_guarded(op, terms, &held)
            }
            expr => {
                let expr = expr
                    .map_children(|inner| self.guarded(inner, conditions).map(Transformed::yes))
                    .data()?;
                self.guarded_subquery(expr, conditions)
            }
        }
    }

    /// Guarded terms of an AND or OR, together again.
    fn each_guarded(&self, op: Operator, terms: Vec<Expr>, conditions: &[Expr]) -> DfResult<Expr> {
        let terms = terms.into_iter().map(|term| self.guarded(term, conditions));
        let together = terms.collect::<DfResult<Vec<_>>>()?.into_iter().reduce(|a, b| binary_expr(a, op, b));
        Ok(together.unwrap_or_else(|| lit(op == Operator::And)))
    }

    fn guarded_case(&self, case: Case, conditions: &[Expr]) -> DfResult<Expr> {
        let base = case.expr.map(|base| self.guarded(*base, conditions)).transpose()?;
        let mut held = conditions.to_vec();
        let mut branches = Vec::with_capacity(case.when_then_expr.len());
        for (when, then) in case.when_then_expr {
            let condition = match &base {
                Some(base) => base.clone().eq((*when).clone()),
                None => (*when).clone(),
            };
            let when = self.guarded(*when, &held)?;
            let decides = self.can_decide(&condition);
            held.extend(decides.then(|| condition.clone().is_true()));
            let then = self.guarded(*then, &held)?;
            if decides {
                held.pop();
                held.push(condition.is_not_true());
            }
            branches.push((Box::new(when), Box::new(then)));
        }
        let otherwise = case.else_expr.map(|otherwise| self.guarded(*otherwise, &held)).transpose()?;
        Ok(Expr::Case(Case::new(base.map(Box::new), branches, otherwise.map(Box::new))))
    }

    /// A subquery may have the condition as a filter.
    fn can_decide(&self, condition: &Expr) -> bool {
        let is_plain = !has_subquery(condition) && !condition.is_volatile() && !condition.contains_outer();
        is_plain && Risks { schema: self.schema }.of(condition) < Risk::High
    }

    fn guarded_subquery(&self, mut expr: Expr, conditions: &[Expr]) -> DfResult<Expr> {
        let Some(condition) = conjunction(conditions.iter().cloned()) else { return Ok(expr) };
        let Some(subquery) = subquery_mut(&mut expr) else { return Ok(expr) };
        let columns = outer_columns(&subquery.subquery);
        if columns.is_empty() || !columns.iter().all(|(_, column)| self.schema.has_column(column)) {
            return Ok(expr);
        }
        let condition = from_outside(condition, self.schema)?;
        let plan = Arc::unwrap_or_clone(Arc::clone(&subquery.subquery));
        *subquery = subquery_of(plan.rewrite_up(|node| asked_for(node, &condition)).data()?);
        Ok(expr)
    }
}

/// A step of a subquery that computes what may fail only where `condition` is true.
fn asked_for(node: LogicalPlan, condition: &Expr) -> DfResult<Transformed<LogicalPlan>> {
    let schema = merge_schema(&node.inputs());
    let risks = Risks { schema: &schema };
    let expressions = node.expressions();
    if !expressions.iter().any(|expr| risks.of(expr) == Risk::High) {
        return Ok(Transformed::no(node));
    }
    match &node {
        LogicalPlan::Filter(filter) => {
            let predicate = condition.clone().and(filter.predicate.clone());
            let filter = Filter::try_new(predicate, Arc::clone(&filter.input))?;
            Ok(Transformed::yes(LogicalPlan::Filter(filter)))
        }
        LogicalPlan::Projection(Projection { input, .. })
        | LogicalPlan::Aggregate(Aggregate { input, .. })
        | LogicalPlan::Window(Window { input, .. })
        | LogicalPlan::Sort(Sort { input, .. }) => {
            let asked_for = Filter::try_new(condition.clone(), Arc::clone(input))?;
            node.with_new_exprs(expressions, vec![LogicalPlan::Filter(asked_for)]).map(Transformed::yes)
        }
        _ => Ok(Transformed::no(node)),
    }
}
