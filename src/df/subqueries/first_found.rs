//! The first rows that each outer row finds: `(SELECT p.price FROM price p WHERE p.item = i.item AND p.at <= i.at ORDER
//! BY p.at DESC LIMIT 1)`.
//!
//! Such a subquery becomes a join with the table, in which the matches of each outer row are numbered. What tells the
//! outer rows apart is a key of theirs; without one, or for other subqueries, there is the more general
//! [`Domain`](super::domain::Domain), which reads the outer rows twice.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, JoinType};
use datafusion::datasource::source_as_provider;
use datafusion::error::Result as DfResult;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    Expr, ExprFunctionExt, FetchType, Filter, LogicalPlan, LogicalPlanBuilder, Operator, SkipType, SortExpr,
    col, lit,
};

use super::correlated::{UniqueNames, has_subquery, outer_columns, takes_outer};
use crate::df::rewrite::{bare, below};
use crate::df::rules::join_keys::leads;
use crate::df::table::TableSource;
use crate::df::tree::RewriteTree;

/// The first rows of a table that an outer row finds.
pub struct FirstRowsFound<'p> {
    /// The correlated filter.
    filter: &'p Filter,
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
        let is_plain = order.iter().all(|by| column(&by.expr).is_some())
            && outer_columns(&filter.input).is_empty()
            && !has_subquery(&filter.predicate);
        let first = FirstRowsFound { filter, order, rows, output };
        Ok(if is_plain && first.has_key()? { Some(first) } else { None })
    }

    /// The correlated conditions.
    fn correlated(&self) -> impl Iterator<Item = &Expr> {
        let terms = split_conjunction(&self.filter.predicate).into_iter();
        terms.filter(|term| takes_outer(term, &self.filter.input))
    }

    /// Some key of the table is led by a column that is compared with the outer row. With equal columns only, the rows
    /// themselves tell which outer row finds them.
    fn has_key(&self) -> DfResult<bool> {
        let (mut has_key, mut are_equal) = (false, true);
        for term in self.correlated() {
            let Expr::BinaryExpr(compared) = term else { continue };
            are_equal &= compared.op == Operator::Eq;
            for side in [&compared.left, &compared.right] {
                if let Expr::Column(column) = &**side {
                    has_key |= leads(column, &self.filter.input)?;
                }
            }
        }
        Ok(has_key && !are_equal)
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
        let Some(key) = key_of(outer)? else { return Ok(None) };
        let is_near = |(_, column): &(_, Column)| outer.schema().has_column(column);
        let reached = LogicalPlan::Filter(self.filter.clone());
        if !outer_columns(&reached).iter().all(is_near) {
            return Ok(None);
        }
        let name = names.next("found");
        let found = |column: &Column| Column::new(Some(name.clone()), column.name.clone());
        let moved = |expr: Expr| {
            expr.rewrite_up(|expr| {
                Ok(match &expr {
                    Expr::Column(column) => Transformed::yes(Expr::Column(found(column))),
                    Expr::OuterReferenceColumn(_, column) => Transformed::yes(Expr::Column(column.clone())),
                    _ => Transformed::no(expr),
                })
            })
            .data()
        };
        let table = Arc::clone(&self.filter.input);
        let is_own = |term: &&Expr| !takes_outer(term, &self.filter.input);
        let own = split_conjunction(&self.filter.predicate).into_iter().filter(is_own).cloned();
        let mut rows = LogicalPlanBuilder::from(table);
        for term in own {
            rows = rows.filter(term)?;
        }
        let on = self.correlated().map(|term| moved(term.clone())).collect::<DfResult<Vec<_>>>()?;
        let joined = LogicalPlanBuilder::from(outer.clone());
        let joined = joined.join_on(rows.alias(name.clone())?.build()?, kind, on)?;
        let by = self.order.iter().map(|by| Ok(SortExpr { expr: moved(by.expr.clone())?, ..by.clone() }));
        let by: Vec<SortExpr> = by.collect::<DfResult<_>>()?;
        let number = names.next("row");
        let key = key.into_iter().map(Expr::Column).collect();
        let numbers = row_number().partition_by(key).order_by(by).build()?.alias(&number);
        let output: Vec<Column> = self.output.iter().map(found).collect();
        let columns = outer.schema().columns().into_iter().chain(output.iter().cloned());
        let columns: Vec<Expr> = columns.map(Expr::Column).collect();
        let first = joined.window([numbers])?.filter(col(number).lt_eq(lit(self.rows as u64)))?;
        Ok(Some((first.project(columns)?.build()?, output)))
    }
}

/// Columns that tell the rows of a plan apart.
fn key_of(plan: &LogicalPlan) -> DfResult<Option<Vec<Column>>> {
    Ok(match plan {
        LogicalPlan::TableScan(scan) => {
            let provider = source_as_provider(&scan.source)?;
            let names = provider.downcast_ref::<TableSource>().and_then(TableSource::key_names);
            names.map(|names| {
                names.into_iter().map(|name| Column::new(Some(scan.table_name.clone()), name)).collect()
            })
        }
        LogicalPlan::Filter(_) | LogicalPlan::Sort(_) | LogicalPlan::Limit(_) | LogicalPlan::Window(_) => {
            key_of(plan.inputs()[0])?
        }
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => {
            let Some(key) = key_of(plan.inputs()[0])? else { return Ok(None) };
            let columns = plan.schema().columns();
            let shown = |key: Column| {
                let key = Expr::Column(key);
                let is_it =
                    |column: &&Column| below(&Expr::Column((*column).clone()), plan).as_ref() == Some(&key);
                columns.iter().find(is_it).cloned()
            };
            key.into_iter().map(shown).collect()
        }
        LogicalPlan::Join(join) => match join.join_type {
            JoinType::Inner | JoinType::Left => {
                let keys = key_of(&join.left)?.zip(key_of(&join.right)?);
                keys.map(|(left, right)| [left, right].concat())
            }
            JoinType::LeftSemi | JoinType::LeftAnti => key_of(&join.left)?,
            _ => None,
        },
        _ => None,
    })
}
