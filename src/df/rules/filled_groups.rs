//! A group has at least one row, so what asks for that is true.
//!
//! `SELECT EXISTS (SELECT 1 FROM message m WHERE m.room = r.id) FROM room r` is joined to the rooms that have messages,
//! with `count(*) > 0` of each. Without that count, one message of each room is enough.

use datafusion::common::Column;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Operator, Projection, lit};
use datafusion::scalar::ScalarValue;

use crate::df::tree::{RewriteTree, changed};

/// The rule, for one node.
pub fn filled_groups(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Projection(projection) = &plan else { return Ok(Transformed::no(plan)) };
    let LogicalPlan::Aggregate(aggregate) = &*projection.input else { return Ok(Transformed::no(plan)) };
    let new = rewritten(projection, &counts(aggregate))?;
    Ok(changed(new, plan))
}

/// The columns that count the rows of groups.
fn counts(aggregate: &Aggregate) -> Vec<Column> {
    let groups = &aggregate.group_expr;
    // A total of no rows is still a row.
    if groups.is_empty() || groups.iter().any(|group| matches!(group, Expr::GroupingSet(_))) {
        return Vec::new();
    }
    let columns = aggregate.schema.columns().into_iter().skip(groups.len());
    let totals = columns.zip(&aggregate.aggr_expr);
    totals.filter(|(_, total)| is_count_of_rows(total)).map(|(column, _)| column).collect()
}

fn rewritten(projection: &Projection, counts: &[Column]) -> DfResult<Option<LogicalPlan>> {
    if counts.is_empty() {
        return Ok(None);
    }
    let mut is_new = false;
    let exprs = projection.expr.iter().zip(projection.schema.iter()).map(|(expr, (relation, field))| {
        let new = expr.clone().rewrite_up(|expr| Ok(changed(settled(&expr, counts), expr)))?;
        is_new |= new.transformed;
        match new.transformed {
            true => Ok(new.data.alias_qualified(relation.cloned(), field.name())),
            false => Ok(new.data),
        }
    });
    let exprs = exprs.collect::<DfResult<Vec<_>>>()?;
    if !is_new {
        return Ok(None);
    }
    Projection::try_new(exprs, projection.input.clone()).map(|new| Some(LogicalPlan::Projection(new)))
}

/// `count > 0` and `count = 0` of a group.
fn settled(expr: &Expr, counts: &[Column]) -> Option<Expr> {
    let Expr::BinaryExpr(compared) = expr else { return None };
    let (Expr::Column(column), Expr::Literal(ScalarValue::Int64(Some(0)), _)) =
        (&*compared.left, &*compared.right)
    else {
        return None;
    };
    match compared.op {
        _ if !counts.contains(column) => None,
        Operator::Gt => Some(lit(true)),
        Operator::Eq => Some(lit(false)),
        _ => None,
    }
}

fn is_count_of_rows(total: &Expr) -> bool {
    match total {
        Expr::Alias(alias) => is_count_of_rows(&alias.expr),
        Expr::AggregateFunction(total) => counts_rows(total),
        _ => false,
    }
}

/// `count(*)`
pub fn counts_rows(AggregateFunction { func, params }: &AggregateFunction) -> bool {
    let counts_all = |arg: &Expr| matches!(arg, Expr::Literal(value, _) if !value.is_null());
    func.name() == "count"
        && !params.distinct
        && params.filter.is_none()
        && params.args.iter().all(counts_all)
}
