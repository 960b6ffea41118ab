//! `x IN (SELECT ...)`, `x < ANY (SELECT ...)` and `x < ALL (SELECT ...)` in three-valued logic: unknown if a NULL
//! keeps them from being true or false.
//!
//! DataFusion turns IN into a join. At the top of a WHERE that is right. Elsewhere the join marks each row as found or
//! not, which loses the unknown: `a OR x NOT IN (SELECT y ...)` is then true where some `y` is NULL. DataFusion also
//! drops the rest of a correlated subquery's WHERE when it looks for NULLs, and gets a NOT IN wrong whose `x` is no
//! column. In its ANY and ALL, a column of the subquery hides the outer one of the same name. [`spell_out`] uses EXISTS
//! instead, which does not depend on names and places.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, DFSchema, ExprSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::functions_aggregate::expr_fn::{max, min};
use datafusion::logical_expr::expr::{
    Cast, Exists, InList, InSubquery, SetComparison, SetQuantifier, TryCast,
};
use datafusion::logical_expr::utils::split_binary;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, col, lit, not, when,
};

use super::correlated::{UniqueNames, has_subquery, outer_columns, subquery_of};
use super::domain::not_widened;
use super::exists::set_of;
use crate::df::tree::RewriteTree;

/// Name of a subquery's column; columns that joins add have other names.
const MEMBER: &str = "__member";

/// Sets (count) that are put together, at most.
const SETS_MAX: usize = 9;

/// A WHERE's conjunct that DataFusion's join gets right, as false and unknown are the same there. For NOT IN, it checks
/// the nullability of columns, but not of expressions over them.
pub fn is_joined_well(term: &Expr) -> bool {
    let (inner, negated) = match term {
        Expr::Not(inner) => (&**inner, true),
        term => (term, false),
    };
    let is_column = |expr: &Expr| match expr {
        Expr::Cast(Cast { expr, .. }) => matches!(**expr, Expr::Column(_)),
        expr => matches!(expr, Expr::Column(_)),
    };
    match inner {
        Expr::InSubquery(InSubquery { expr, subquery, negated: inner }) => {
            outer_columns(&subquery.subquery).is_empty()
                && (is_column(expr) || negated == *inner && expr.any_column_refs() && !has_subquery(expr))
        }
        _ => false,
    }
}

/// `x = 5 OR x IN (SELECT y ..)` as `x IN (SELECT y .. UNION ALL SELECT 5)`, for a WHERE's conjunct: the join reads what
/// equals a member, where a mark on each row takes all rows. Other terms stay as they are.
pub fn in_one_set(term: Expr, schema: &DFSchema) -> DfResult<Expr> {
    let alternatives = split_binary(&term, Operator::Or);
    let is_set =
        |expr: &&Expr| matches!(expr, Expr::InSubquery(list) if !list.negated && is_joined_well(expr));
    let Some(Expr::InSubquery(list)) = alternatives.iter().copied().find(is_set) else { return Ok(term) };
    let first = &list.subquery.subquery;
    let members_ty = first.schema().field(0).data_type().clone();
    let is_it = |expr: &Expr| not_widened(expr, schema) == not_widened(&list.expr, schema);
    let mut sets = vec![members(first, MEMBER)?];
    for expr in &alternatives {
        let more: Vec<&Expr> = match expr {
            Expr::InSubquery(other) if std::ptr::eq(other, list) => continue,
            Expr::InSubquery(other) if is_set(expr) && other.expr == list.expr => {
                sets.push(members(&other.subquery.subquery, MEMBER)?);
                continue;
            }
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) if is_it(left) => vec![right],
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) if is_it(right) => vec![left],
            Expr::InList(InList { expr, list: values, negated: false }) if is_it(expr) => {
                values.iter().collect()
            }
            _ => return Ok(term),
        };
        for value in more {
            let ty = value.get_type(&DFSchema::empty());
            let is_constant = !value.any_column_refs() && !has_subquery(value) && !value.is_volatile();
            // What is beyond the members' type equals none. A parameter is told its type by the cast.
            let fits = ty.is_ok_and(|ty| ty == members_ty || ty.is_integer() && members_ty.is_integer());
            if !is_constant || !fits {
                return Ok(term);
            }
            let value = Expr::TryCast(TryCast::new(Box::new(value.clone()), members_ty.clone()));
            sets.push(LogicalPlanBuilder::empty(true).project([value.alias(MEMBER)])?.build()?);
        }
    }
    if !(2..=SETS_MAX).contains(&sets.len()) {
        return Ok(term);
    }
    let mut sets = sets.into_iter();
    let first = LogicalPlanBuilder::from(sets.next().unwrap_or_default());
    let all = sets.try_fold(first, LogicalPlanBuilder::union)?.build()?;
    let subquery = subquery_of(all);
    Ok(Expr::InSubquery(InSubquery { expr: list.expr.clone(), subquery, negated: false }))
}

/// Rewrites IN, ANY or ALL beside rows of `schema` by EXISTS. `whole`: a WHERE's conjunct, for which false will do for
/// unknown.
pub fn spell_out(expr: Expr, schema: &DFSchema, whole: bool, names: &UniqueNames) -> DfResult<Expr> {
    let expr = match expr {
        Expr::Not(inner) => negated(*inner),
        expr => expr,
    };
    let (x, subquery, op, is_all, negated) = match expr {
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            (expr, subquery, Operator::Eq, false, negated)
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
            (expr, subquery, op, quantifier == SetQuantifier::All, false)
        }
        expr => return Ok(expr),
    };
    // It holds for all if its negation holds for none.
    let op = op.negate().filter(|_| is_all).unwrap_or(op);
    // What is looked for may have been spelled out before, with members of its own.
    let member = if has_subquery(&x) { names.next("member") } else { MEMBER.to_owned() };
    let set = members(&set_of(&subquery.subquery), &member)?;
    let exists = |rows: LogicalPlan| Expr::Exists(Exists { subquery: subquery_of(rows), negated: false });
    let holds = |condition: Expr| -> DfResult<Expr> {
        Ok(exists(LogicalPlanBuilder::from(set.clone()).filter(condition)?.build()?))
    };
    let found = match extreme(&set, &member, op)? {
        Some(extreme) => Expr::BinaryExpr(BinaryExpr::new(x.clone(), op, Box::new(extreme))).is_true(),
        None => {
            let outer = Box::new(from_outside((*x).clone(), schema)?);
            holds(Expr::BinaryExpr(BinaryExpr::new(outer, op, Box::new(col(&member)))))?
        }
    };
    let if_found = is_all == negated;
    if whole && if_found {
        return Ok(found);
    }
    let mut unknown = Vec::new();
    if x.nullable(schema)? {
        unknown.push(x.is_null().and(exists(set.clone())));
    }
    if set.schema().field(0).is_nullable() {
        unknown.push(holds(col(&member).is_null())?);
    }
    if whole {
        return Ok(unknown.into_iter().fold(not(found), |all, unknown| all.and(not(unknown))));
    }
    let mut cases = when(found, lit(if_found));
    for unknown in unknown {
        cases = cases.when(unknown, lit(ScalarValue::Boolean(None)));
    }
    cases.otherwise(lit(!if_found))
}

/// The extreme value of the set that decides `x op ANY (set)`; `None` if there is none for this operator, or if it
/// depends on the outer row.
fn extreme(set: &LogicalPlan, member: &str, op: Operator) -> DfResult<Option<Expr>> {
    let extreme = match op {
        Operator::Lt | Operator::LtEq => max(col(member)),
        Operator::Gt | Operator::GtEq => min(col(member)),
        _ => return Ok(None),
    };
    let ty = set.schema().field(0).data_type();
    // MIN and MAX of doubles ignore NaN, and intervals compare by length.
    let is_exact = !ty.is_floating() && !matches!(ty, DataType::Interval(_));
    if !is_exact || !outer_columns(set).is_empty() {
        return Ok(None);
    }
    let one = LogicalPlanBuilder::from(set.clone()).aggregate(Vec::<Expr>::new(), [extreme])?.build()?;
    Ok(Some(Expr::ScalarSubquery(subquery_of(one))))
}

fn negated(expr: Expr) -> Expr {
    match expr {
        Expr::InSubquery(list) => Expr::InSubquery(InSubquery { negated: !list.negated, ..list }),
        expr => not(expr),
    }
}

/// The same rows, with another name for their column.
fn members(plan: &Arc<LogicalPlan>, member: &str) -> DfResult<LogicalPlan> {
    if let LogicalPlan::Projection(projection) = &**plan
        && let [expr] = &projection.expr[..]
    {
        let expr = expr.clone().unalias().alias(member);
        return LogicalPlanBuilder::from(Arc::clone(&projection.input)).project([expr])?.build();
    }
    let column = Expr::Column(Column::from(plan.schema().qualified_field(0)));
    LogicalPlanBuilder::from(Arc::clone(plan)).project([column.alias(member)])?.build()
}

/// The expression with its columns as outer references.
pub fn from_outside(expr: Expr, schema: &DFSchema) -> DfResult<Expr> {
    expr.rewrite_up(|expr| match expr {
        Expr::Column(column) => {
            let field = Arc::clone(schema.field_from_column(&column)?);
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        expr => Ok(Transformed::no(expr)),
    })
    .data()
}
