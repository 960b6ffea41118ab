//! The first rows that each outer row finds: `(SELECT p.price FROM price p WHERE p.item = i.item AND p.at <= i.at ORDER
//! BY p.at DESC LIMIT 1)`.
//!
//! Such a subquery becomes a join with the table, in which the matches of each outer row are numbered. What tells the
//! outer rows apart is a key of theirs; without one, or for other subqueries, there is the more general
//! [`Domain`](super::domain::Domain), which reads the outer rows twice.

use datafusion::common::{Column, JoinType};
use datafusion::error::Result as DfResult;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Expr, ExprFunctionExt, FetchType, LogicalPlan, SkipType, SortExpr, col, lit};

use super::correlated::UniqueNames;
use super::rows_found::{Beside, RowsFound};
use crate::df::rewrite::{bare, below};

/// The first rows of a table that an outer row finds.
pub struct FirstRowsFound<'p> {
    matches: RowsFound<'p>,
    /// Sort keys.
    order: Vec<SortExpr>,
    /// How many (count).
    rows: usize,
    /// Columns of the filter's input that come out.
    output: Vec<Column>,
}

impl<'p> FirstRowsFound<'p> {
    /// Takes a subquery apart; `None` if it is anything else, or if no key would give these rows.
    pub fn of(subquery: &'p LogicalPlan) -> DfResult<Option<FirstRowsFound<'p>>> {
        let columns = subquery.schema().columns();
        let mut output: Vec<Expr> = columns.into_iter().map(Expr::Column).collect();
        let (mut plan, mut order, mut rows) = (subquery, None::<Vec<SortExpr>>, None);
        let filter = loop {
            plan = match plan {
                LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => {
                    let moved = |expr: &Expr| below(expr, plan);
                    let Some(outputs) = output.iter().map(moved).collect() else { return Ok(None) };
                    output = outputs;
                    if let Some(by) = order {
                        let moved = |by: SortExpr| Some(SortExpr { expr: moved(&by.expr)?, ..by });
                        let Some(by) = by.into_iter().map(moved).collect() else { return Ok(None) };
                        order = Some(by);
                    }
                    plan.inputs()[0]
                }
                LogicalPlan::Subquery(subquery) => &subquery.subquery,
                LogicalPlan::Limit(limit) if rows.is_none() && order.is_none() => {
                    let (SkipType::Literal(0), FetchType::Literal(Some(fetch @ 1..))) =
                        (limit.get_skip_type()?, limit.get_fetch_type()?)
                    else {
                        return Ok(None);
                    };
                    rows = Some(fetch);
                    &limit.input
                }
                LogicalPlan::Sort(sort) if order.is_none() && (sort.fetch.is_none() || rows.is_none()) => {
                    (order, rows) = (Some(sort.expr.clone()), sort.fetch.or(rows));
                    &sort.input
                }
                LogicalPlan::Filter(filter) => break filter,
                _ => return Ok(None),
            }
        };
        let column = |expr: &Expr| match bare(expr) {
            Expr::Column(column) => Some(column.clone()),
            _ => None,
        };
        let (Some(order), Some(rows)) = (order, rows) else { return Ok(None) };
        let Some(output) = output.iter().map(column).collect() else { return Ok(None) };
        if !order.iter().all(|by| column(&by.expr).is_some()) {
            return Ok(None);
        }
        let found = RowsFound::of(filter)?.map(|matches| FirstRowsFound { matches, order, rows, output });
        Ok(found)
    }

    /// One row at most.
    pub fn is_one(&self) -> bool {
        self.rows == 1
    }

    /// The outer rows, each with its first rows, and the columns of these; `None` if the outer rows have no key.
    pub fn beside(
        &self,
        outer: &LogicalPlan,
        kind: JoinType,
        names: &UniqueNames,
    ) -> DfResult<Option<(LogicalPlan, Vec<Column>)>> {
        let Some(Beside { joined, key, found }) = self.matches.beside(outer, kind, names)? else {
            return Ok(None);
        };
        let by =
            self.order.iter().map(|by| Ok(SortExpr { expr: found.moved(by.expr.clone())?, ..by.clone() }));
        let by: Vec<SortExpr> = by.collect::<DfResult<_>>()?;
        let number = names.next("row");
        let key = key.into_iter().map(Expr::Column).collect();
        let numbers = row_number().partition_by(key).order_by(by).build()?.alias(&number);
        let output: Vec<Column> = self.output.iter().map(|column| found.column(&column.name)).collect();
        let mut columns = outer.schema().columns();
        // A subquery may give one twice.
        for column in &output {
            if !columns.contains(column) {
                columns.push(column.clone());
            }
        }
        let columns: Vec<Expr> = columns.into_iter().map(Expr::Column).collect();
        let first = joined.window([numbers])?.filter(col(number).lt_eq(lit(self.rows as u64)))?;
        Ok(Some((first.project(columns)?.build()?, output)))
    }
}
