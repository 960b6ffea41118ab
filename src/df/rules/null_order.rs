//! `ORDER BY v NULLS LAST`: puts NULLs where keys have them, or reads them by themselves.
//!
//! In a key NULL is less than every value, so no scan has it at the other end. Where the WHERE leaves no NULL, it does
//! not matter. Otherwise the first rows are among the first without NULLs, in the order of a key, and the first of those
//! with NULL.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, NullEquality};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::Sort as SortExpr;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, JoinType, LogicalPlan, Operator, Sort, Union};

use super::extremes::{change_scan, first_rows};
use crate::access::OrderBy;
use crate::df::expr::comparison;
use crate::df::rewrite::{bare, below};
use crate::df::table::TableSource;
use crate::df::tree::RewritePlan;
use crate::df::wanted::{Wanted, WantedRows};

/// The same plan, with NULLs sorted as keys have them wherever that is the same.
pub fn as_in_keys(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let sorted = plan.rewrite_up_with_subqueries(|node| {
        let LogicalPlan::Sort(mut sort) = node else { return Ok(Transformed::no(node)) };
        let mut others = Vec::new();
        let mut changed = false;
        for (at, by) in sort.expr.iter_mut().enumerate().filter(|(_, by)| by.nulls_first != by.asc) {
            if has_no_null(&by.expr, &sort.input) {
                by.nulls_first = by.asc;
                changed = true;
            } else {
                others.push(at);
            }
        }
        if let ([at], Some(rows)) = (&others[..], sort.fetch)
            && let Some(apart) = nulls_apart(&sort.expr, *at, rows, &sort.input)?
        {
            sort.input = Arc::new(apart);
            changed = true;
        }
        let sort = LogicalPlan::Sort(sort);
        Ok(if changed { Transformed::yes(sort) } else { Transformed::no(sort) })
    });
    sorted.data()
}

/// No row of the plan has NULL there, whatever its parameters are.
fn has_no_null(expr: &Expr, plan: &LogicalPlan) -> bool {
    let Expr::Column(column) = bare(expr) else { return false };
    let field = plan.schema().maybe_index_of_column(column).map(|at| plan.schema().field(at));
    if field.is_some_and(|field| !field.is_nullable()) {
        return true;
    }
    let is_ruled_out = |filter: &Expr| split_conjunction(filter).into_iter().any(|e| rejects_null(e, column));
    match plan {
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Aggregate(_) => {
            below(expr, plan).is_some_and(|expr| has_no_null(&expr, plan.inputs()[0]))
        }
        LogicalPlan::Filter(filter) => is_ruled_out(&filter.predicate) || has_no_null(expr, &filter.input),
        LogicalPlan::Sort(Sort { input, .. }) => has_no_null(expr, input),
        LogicalPlan::Join(join) => {
            let side = |side: &LogicalPlan| side.schema().has_column(column) && has_no_null(expr, side);
            let (left, right) = (side(&join.left), side(&join.right));
            match join.join_type {
                JoinType::Inner => {
                    let is_key = |(a, b): &(Expr, Expr)| [a, b].contains(&bare(expr));
                    let never_equal = join.null_equality == NullEquality::NullEqualsNothing;
                    left || right || never_equal && join.on.iter().any(is_key)
                }
                JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti => left,
                JoinType::Right | JoinType::RightSemi | JoinType::RightAnti => right,
                _ => false,
            }
        }
        LogicalPlan::TableScan(scan) => scan.filters.iter().any(is_ruled_out),
        _ => false,
    }
}

/// The condition is not true where the column is NULL.
fn rejects_null(condition: &Expr, column: &Column) -> bool {
    let is_it = |expr: &Expr| {
        let mut expr = expr;
        while let Expr::Cast(cast) = expr {
            expr = &cast.expr;
        }
        let Expr::Column(of) = expr else { return false };
        let is_of = |(a, b)| a == b;
        of.name == column.name && of.relation.as_ref().zip(column.relation.as_ref()).is_none_or(is_of)
    };
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            rejects_null(left, column) && rejects_null(right, column)
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            rejects_null(left, column) || rejects_null(right, column)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            comparison(*op).is_some() && (is_it(left) || is_it(right))
        }
        Expr::Between(between) => is_it(&between.expr),
        Expr::InList(list) => is_it(&list.expr),
        Expr::IsNotNull(inner) => is_it(inner),
        _ => false,
    }
}

/// The first rows without NULL in the column of the sort key `at`, and the first of those with NULL; `None` if they do not
/// come in order.
fn nulls_apart(
    order: &[SortExpr],
    at: usize,
    rows: usize,
    input: &LogicalPlan,
) -> DfResult<Option<LogicalPlan>> {
    let column = |by: &SortExpr| match bare(&by.expr) {
        Expr::Column(column) => Some(column.clone()),
        _ => None,
    };
    let Some(keys) = order.iter().map(column).collect::<Option<Vec<Column>>>() else { return Ok(None) };
    let wanted = |source: &TableSource, columns: &[Column]| {
        let by = |(by, column): (&SortExpr, &Column)| {
            Some(OrderBy { field: source.field(&column.name)?.0, descending: !by.asc })
        };
        let order = order.iter().zip(columns).map(by).collect::<Option<_>>()?;
        Some(Wanted { order, what: WantedRows::First { rows: rows as u64, offset: 0 } })
    };
    let others = change_scan(input, &keys, &|scan, source, columns| {
        let mut scan = scan.clone();
        scan.filters.push(Expr::Column(columns[at].clone()).is_not_null());
        let wanted = wanted(source, columns)?;
        source.gives_first(wanted, scan.projection.as_ref(), &scan.filters, true).then_some(scan)
    })?;
    let nulls = change_scan(input, &keys, &|scan, source, columns| {
        let mut scan = scan.clone();
        scan.filters.push(Expr::Column(columns[at].clone()).is_null());
        let mut wanted = wanted(source, columns)?;
        wanted.order.remove(at);
        source.gives_first(wanted, scan.projection.as_ref(), &scan.filters, true).then_some(scan)
    })?;
    let (Some(others), Some(nulls)) = (others, nulls) else { return Ok(None) };
    let (mut natural, mut rest) = (order.to_vec(), order.to_vec());
    natural[at].nulls_first = natural[at].asc;
    rest.remove(at);
    let inputs = [first_rows(others, natural, rows)?, first_rows(nulls, rest, rows)?];
    let inputs = inputs.map(Arc::new).to_vec();
    Ok(Some(LogicalPlan::Union(Union { inputs, schema: Arc::clone(input.schema()) })))
}
