//! Carries conditions on a join column over to the column it equals on the other side.
//!
//! In `x.tenant = 3 AND EXISTS (SELECT .. WHERE r.tenant = x.tenant ..)` only rows of `r` with `tenant = 3` can be found,
//! which may be one range of a key. DataFusion infers that for conditions above a join, and not for anti joins; those of
//! rewritten subqueries are below it. Nor does it infer `c.tenant = 3` where `a.tenant = 3`, `b.tenant = a.tenant` and
//! `c.tenant = b.tenant`: it no longer looks at the outer join when the condition has reached `b`.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, ExprSchema};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{Between, BinaryExpr, Distinct, Expr, Filter, Join, LogicalPlan, Operator};

use crate::df::join_sides::keeps;
use crate::df::tree::{RewriteTree, changed};

/// The rule, for one node. Runs before filters are pushed down.
pub fn carried(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(join) = &plan else { return Ok(Transformed::no(plan)) };
    Ok(changed(with_carried(join)?, plan))
}

/// A condition, and the only column that it is on.
type Condition = (Column, Expr);

/// The join with more conditions on a side whose rows are only found, not kept; `None` if there are none.
fn with_carried(join: &Join) -> DfResult<Option<LogicalPlan>> {
    // Where NULL among the found rows matters, none may go.
    if join.null_aware {
        return Ok(None);
    }
    let [keeps_left, keeps_right] = keeps(join.join_type);
    let columns = join.on.iter().filter_map(|(left, right)| Some((left.try_as_col()?, right.try_as_col()?)));
    let pairs: Vec<(&Column, &Column)> = columns.collect();
    let swapped: Vec<_> = pairs.iter().map(|(left, right)| (*right, *left)).collect();
    let right = if keeps_left { narrowed(&join.left, &join.right, &pairs)? } else { None };
    let left = if keeps_right { narrowed(&join.right, &join.left, &swapped)? } else { None };
    if left.is_none() && right.is_none() {
        return Ok(None);
    }
    let left = left.unwrap_or_else(|| Arc::clone(&join.left));
    let right = right.unwrap_or_else(|| Arc::clone(&join.right));
    Ok(Some(LogicalPlan::Join(Join { left, right, ..join.clone() })))
}

/// A side of a join with the conditions that the other one has on columns that are equal; `None` if it has them all.
fn narrowed(
    other: &LogicalPlan,
    found: &Arc<LogicalPlan>,
    equal: &[(&Column, &Column)],
) -> DfResult<Option<Arc<LogicalPlan>>> {
    let (of_other, of_found) = (known(other), known(found));
    let mut more: Vec<Expr> = Vec::new();
    for (from, to) in equal {
        if other.schema().field_from_column(from)?.data_type()
            != found.schema().field_from_column(to)?.data_type()
        {
            continue;
        }
        for (_, condition) in of_other.iter().filter(|(column, _)| column == *from) {
            let condition = renamed(condition.clone(), to)?;
            if !more.contains(&condition) && !of_found.iter().any(|(_, known)| *known == condition) {
                more.push(condition);
            }
        }
    }
    let Some(more) = conjunction(more) else { return Ok(None) };
    Ok(Some(Arc::new(LogicalPlan::Filter(Filter::try_new(more, Arc::clone(found))?))))
}

/// Conditions that hold for all rows of a plan, each on one of its columns.
fn known(plan: &LogicalPlan) -> Vec<Condition> {
    match plan {
        LogicalPlan::Filter(filter) => {
            let mut known = known(&filter.input);
            known.extend(split_conjunction(&filter.predicate).into_iter().filter_map(condition));
            known
        }
        LogicalPlan::TableScan(scan) => {
            scan.filters.iter().flat_map(split_conjunction).filter_map(condition).collect()
        }
        LogicalPlan::Projection(projection) => {
            outputs(known(&projection.input), plan, projection.expr.iter())
        }
        LogicalPlan::Aggregate(aggregate) => {
            outputs(known(&aggregate.input), plan, aggregate.group_expr.iter())
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let inner: Vec<Expr> = alias.input.schema().columns().into_iter().map(Expr::Column).collect();
            outputs(known(&alias.input), plan, inner.iter())
        }
        LogicalPlan::Sort(sort) => known(&sort.input),
        LogicalPlan::Limit(limit) => known(&limit.input),
        LogicalPlan::Distinct(Distinct::All(input)) => known(input),
        LogicalPlan::Join(join) => {
            let [keeps_left, keeps_right] = keeps(join.join_type);
            let mut all = if keeps_left { known(&join.left) } else { Vec::new() };
            if keeps_right {
                all.extend(known(&join.right));
            }
            all
        }
        _ => Vec::new(),
    }
}

/// Conditions on columns that come out of `plan` unchanged, as conditions on its output, which `exprs` compute.
fn outputs<'e>(
    known: Vec<Condition>,
    plan: &LogicalPlan,
    exprs: impl Iterator<Item = &'e Expr>,
) -> Vec<Condition> {
    let mut out = Vec::new();
    for (expr, to) in exprs.zip(plan.schema().columns()) {
        let Expr::Column(from) = expr.clone().unalias() else { continue };
        let of_it = known.iter().filter(|(column, _)| *column == from);
        out.extend(
            of_it.filter_map(|(_, condition)| Some((to.clone(), renamed(condition.clone(), &to).ok()?))),
        );
    }
    out
}

fn renamed(condition: Expr, to: &Column) -> DfResult<Expr> {
    let renamed = condition.rewrite_up(|expr| {
        Ok(match expr {
            Expr::Column(_) => Transformed::yes(Expr::Column(to.clone())),
            expr => Transformed::no(expr),
        })
    });
    renamed.map(|renamed| renamed.data)
}

/// Comparisons of one column with literals or parameters.
fn condition(term: &Expr) -> Option<Condition> {
    compared(term).map(|column| (column.clone(), term.clone()))
}

/// The column, if there is one only.
fn compared(term: &Expr) -> Option<&Column> {
    let is_constant = |expr: &Expr| matches!(expr, Expr::Literal(..) | Expr::Placeholder(_));
    match term {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And | Operator::Or, right }) => {
            compared(left).filter(|column| compared(right) == Some(*column))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => {
            match (&**left, &**right) {
                (Expr::Column(column), other) | (other, Expr::Column(column)) if is_constant(other) => {
                    Some(column)
                }
                _ => None,
            }
        }
        Expr::InList(InList { expr, list, negated: false }) if list.iter().all(is_constant) => {
            expr.try_as_col()
        }
        Expr::Between(Between { expr, low, high, negated: false })
            if is_constant(low) && is_constant(high) =>
        {
            expr.try_as_col()
        }
        _ => None,
    }
}
