//! The rows of a table that an outer row finds: what the correlated filter of a subquery lets through.
//!
//! `WHERE p.item = i.item AND p.at <= i.at` becomes the ON of a join. What tells the outer rows apart in it is a key of
//! theirs.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, JoinType};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, LogicalPlanBuilder, Operator};

use super::correlated::{UniqueNames, has_subquery, outer_columns, takes_outer};
use crate::df::rewrite::below;
use crate::df::rules::join_keys::leads;
use crate::df::table::TableSource;
use crate::df::tree::RewriteTree;

/// The rows that a correlated filter finds along a key.
pub struct RowsFound<'p> {
    filter: &'p Filter,
    /// A column that is not NULL in any of them.
    pub compared: Column,
}

impl<'p> RowsFound<'p> {
    /// `None` if anything but this filter connects them with the outer rows, or if no key finds them.
    pub fn of(filter: &'p Filter) -> DfResult<Option<RowsFound<'p>>> {
        let is_plain = outer_columns(&filter.input).is_empty() && !has_subquery(&filter.predicate);
        let compared = if is_plain { compared_along_key(filter)? } else { None };
        Ok(compared.map(|compared| RowsFound { filter, compared }))
    }

    /// The correlated conditions.
    fn correlated(&self) -> impl Iterator<Item = &'p Expr> {
        correlated(self.filter)
    }

    /// The outer rows, joined with what each finds; `None` if they have no key.
    pub fn beside(
        &self,
        outer: &LogicalPlan,
        kind: JoinType,
        names: &UniqueNames,
    ) -> DfResult<Option<Beside>> {
        let Some(key) = key_of(outer)? else { return Ok(None) };
        let is_near = |(_, column): &(_, Column)| outer.schema().has_column(column);
        if !outer_columns(&LogicalPlan::Filter(self.filter.clone())).iter().all(is_near) {
            return Ok(None);
        }
        let name = names.next("found");
        let mut rows = LogicalPlanBuilder::from(Arc::clone(&self.filter.input));
        let is_own = |term: &&Expr| !takes_outer(term, &self.filter.input);
        for term in split_conjunction(&self.filter.predicate).into_iter().filter(is_own) {
            rows = rows.filter(term.clone())?;
        }
        let rows = rows.alias(name.clone())?.build()?;
        let found = Found(name);
        let on = self.correlated().map(|term| found.moved(term.clone())).collect::<DfResult<Vec<_>>>()?;
        let joined = LogicalPlanBuilder::from(outer.clone()).join_on(rows, kind, on)?;
        Ok(Some(Beside { joined, key, found }))
    }
}

fn correlated(filter: &Filter) -> impl Iterator<Item = &Expr> {
    split_conjunction(&filter.predicate).into_iter().filter(|term| takes_outer(term, &filter.input))
}

/// A column that is compared with the outer row and leads some key of the table. `None` also with equal columns only:
/// then the rows themselves tell which outer row finds them.
fn compared_along_key(filter: &Filter) -> DfResult<Option<Column>> {
    let (mut compared_along_key, mut are_equal) = (None, true);
    for term in correlated(filter) {
        // NULL compares with nothing.
        let sides = match term {
            Expr::BinaryExpr(compared) => match compared.op {
                Operator::Eq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => {
                    vec![&compared.left, &compared.right]
                }
                _ => Vec::new(),
            },
            Expr::Between(between) if !between.negated => vec![&between.expr],
            _ => Vec::new(),
        };
        are_equal &= matches!(term, Expr::BinaryExpr(compared) if compared.op == Operator::Eq);
        for side in sides {
            if let Expr::Column(column) = &**side
                && leads(column, &filter.input)?
            {
                compared_along_key = Some(column.clone());
            }
        }
    }
    Ok(compared_along_key.filter(|_| !are_equal))
}

/// Outer rows, each with its matches.
pub struct Beside {
    pub joined: LogicalPlanBuilder,
    /// What tells the outer rows apart.
    pub key: Vec<Column>,
    pub found: Found,
}

/// The matches in a join, by their name there.
pub struct Found(pub String);

impl Found {
    /// A column of the matches.
    pub fn column(&self, name: &str) -> Column {
        Column::new(Some(self.0.clone()), name)
    }

    /// An expression of the subquery as one over the join.
    pub fn moved(&self, expr: Expr) -> DfResult<Expr> {
        let moved = expr.rewrite_up(|expr| {
            Ok(match &expr {
                Expr::Column(column) => Transformed::yes(Expr::Column(self.column(&column.name))),
                Expr::OuterReferenceColumn(_, column) => Transformed::yes(Expr::Column(column.clone())),
                _ => Transformed::no(expr),
            })
        });
        moved.data()
    }
}

/// Columns that tell the rows of a plan apart.
fn key_of(plan: &LogicalPlan) -> DfResult<Option<Vec<Column>>> {
    Ok(match plan {
        LogicalPlan::TableScan(scan) => {
            let names = TableSource::of(scan)?.and_then(|source| source.key_names());
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
        // Rows are grouped by all of these.
        LogicalPlan::Aggregate(aggregate) if !aggregate.group_expr.is_empty() => {
            let groups = aggregate.group_expr.iter().zip(plan.schema().columns());
            groups.map(|(group, column)| (!matches!(group, Expr::GroupingSet(_))).then_some(column)).collect()
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
