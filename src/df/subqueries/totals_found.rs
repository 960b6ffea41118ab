//! The totals of what each outer row finds: `(SELECT avg(r.value) FROM reading r WHERE r.device = a.device AND r.at >=
//! a.raised AND r.at < a.cleared)`.
//!
//! Such a subquery becomes a join with the table, which is grouped by the outer rows. For others there is the
//! [`Domain`](super::domain::Domain), see [`first_found`](super::first_found).

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema, JoinType};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::{Aggregate, BinaryExpr, Cast, Expr, LogicalPlan};

use super::correlated::{UniqueNames, has_subquery};
use super::rows_found::{Beside, RowsFound};
use crate::df::parallel::OF_A_SET;
use crate::df::rewrite::below;
use crate::df::rules::filled_groups::counts_rows;
use crate::df::tree::{RewriteTree, changed};

/// Totals of the rows of a table that an outer row finds.
pub struct TotalsFound<'p> {
    matches: RowsFound<'p>,
    /// The totals over the filter's input, and their columns.
    totals: Vec<(AggregateFunction, Column)>,
    /// What the subquery computes of these columns, and of the outer row.
    value: Expr,
}

impl<'p> TotalsFound<'p> {
    /// Takes a subquery apart; `None` if it is anything else, or if no key would give these rows.
    pub fn of(subquery: &'p LogicalPlan) -> DfResult<Option<TotalsFound<'p>>> {
        let Some((value, aggregate)) = totals_below(subquery) else { return Ok(None) };
        let mut plan = &*aggregate.input;
        let mut exprs = aggregate.aggr_expr.clone();
        let filter = loop {
            plan = match plan {
                LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => {
                    let Some(moved) = exprs.iter().map(|expr| below(expr, plan)).collect() else {
                        return Ok(None);
                    };
                    exprs = moved;
                    plan.inputs()[0]
                }
                LogicalPlan::Filter(filter) => break filter,
                _ => return Ok(None),
            }
        };
        let totals = exprs.into_iter().map(total_of_found).zip(aggregate.schema.columns());
        let totals: Option<Vec<_>> = totals.map(|(total, column)| Some((total?, column))).collect();
        let (Some(totals), Some(matches)) = (totals, RowsFound::of(filter)?) else { return Ok(None) };
        Ok(Some(TotalsFound { matches, totals, value }))
    }

    /// The outer rows without their `unused` columns, and the value of each; `None` if they have no key.
    pub fn beside(
        &self,
        outer: &LogicalPlan,
        unused: &[Column],
        names: &UniqueNames,
    ) -> DfResult<Option<(LogicalPlan, Expr)>> {
        if !has_outer_columns_of(&self.value, outer.schema()) {
            return Ok(None);
        }
        let Some(Beside { joined, key, found }) = self.matches.beside(outer, JoinType::Left, names)? else {
            return Ok(None);
        };
        let value = found.moved(self.marked_value()?)?;
        let taken = value.column_refs();
        let is_wanted =
            |column: &Column| !unused.contains(column) || key.contains(column) || taken.contains(column);
        let groups = outer.schema().columns().into_iter().filter(is_wanted).map(Expr::Column);
        let totals = self.totals.iter().enumerate().map(|(at, (total, column))| {
            let mut total = total.clone();
            // An outer row that finds nothing is there with NULL.
            total.params.args = match &total.params.args[..] {
                [Expr::Literal(..)] => vec![Expr::Column(found.column(&self.matches.compared.name))],
                args => args.iter().map(|arg| found.moved(arg.clone())).collect::<DfResult<_>>()?,
            };
            Ok(Expr::AggregateFunction(total).alias_qualified(Some(found.0.clone()), marked(column, at)))
        });
        let totals: Vec<Expr> = totals.collect::<DfResult<_>>()?;
        let rows = joined.aggregate(groups.collect::<Vec<_>>(), totals)?.build()?;
        Ok(Some((rows, value)))
    }

    /// The value, of totals that are named as in the join.
    fn marked_value(&self) -> DfResult<Expr> {
        let marked = self.value.clone().rewrite_up(|expr| {
            let Expr::Column(column) = &expr else { return Ok(Transformed::no(expr)) };
            let at = self.totals.iter().position(|(_, total)| total == column);
            Ok(changed(at.map(|at| Expr::Column(Column::from_name(marked(column, at)))), expr))
        });
        marked.data()
    }
}

/// All outer columns are those of the next query around it.
fn has_outer_columns_of(value: &Expr, outer: &DFSchema) -> bool {
    let is_farther =
        |expr: &Expr| Ok(matches!(expr, Expr::OuterReferenceColumn(_, column) if !outer.has_column(column)));
    !value.exists(is_farther).unwrap_or(true)
}

/// The name of a total in the join, other than that of the same total of the outer rows. [`shown`](crate::df::computed)
/// drops the mark.
fn marked(total: &Column, at: usize) -> String {
    format!("{}\0{at}", total.name)
}

/// The aggregate of a subquery without groups, and what is computed of it.
fn totals_below(subquery: &LogicalPlan) -> Option<(Expr, &Aggregate)> {
    let (mut plan, mut value) = (subquery, Expr::Column(subquery.schema().columns().into_iter().next()?));
    loop {
        plan = match plan {
            LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => {
                value = below(&value, plan)?;
                plan.inputs()[0]
            }
            LogicalPlan::Subquery(subquery) => &subquery.subquery,
            LogicalPlan::Aggregate(aggregate) => {
                let is_plain = aggregate.group_expr.is_empty() && !has_subquery(&value);
                return is_plain.then_some((value, aggregate));
            }
            _ => return None,
        }
    }
}

/// A total that passes over NULL, or counts rows; `None` for others.
fn total_of_found(total: Expr) -> Option<AggregateFunction> {
    let Expr::AggregateFunction(total) = total.unalias() else { return None };
    let AggregateFunctionParams { args, filter: None, order_by, .. } = &total.params else { return None };
    let [arg] = &args[..] else { return None };
    let is_plain = OF_A_SET.contains(&total.func.name()) && order_by.is_empty();
    (is_plain && (counts_rows(&total) || is_null_of_nulls(arg) && arg.any_column_refs())).then_some(total)
}

/// The expression is NULL if its columns are.
fn is_null_of_nulls(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) | Expr::Literal(..) => true,
        Expr::Cast(Cast { expr, .. }) | Expr::Negative(expr) => is_null_of_nulls(expr),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            op.is_numerical_operators() && is_null_of_nulls(left) && is_null_of_nulls(right)
        }
        _ => false,
    }
}
