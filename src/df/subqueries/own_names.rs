//! Names for the columns by which a subquery depends on the row around it.
//!
//! DataFusion 55.2 joins the subquery under an alias, and moves its correlated conditions into the join. There, only
//! names tell its columns apart: `b.c` and `d.c` are both `c` of the alias, and the first one is taken for either.
//! [`own_names`] gives such columns other names first.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, LogicalPlanBuilder};

use super::correlated::{UniqueNames, takes_outer};
use crate::df::tree::RewriteTree;

/// The subquery with names of their own for the columns in its correlated conditions that share one, with each other or
/// with a column that the subquery gives; `None` if none do.
pub fn own_names(subquery: &LogicalPlan, names: &UniqueNames) -> DfResult<Option<LogicalPlan>> {
    renamed(subquery, &subquery.schema().columns(), names)
}

fn renamed(plan: &LogicalPlan, given: &[Column], names: &UniqueNames) -> DfResult<Option<LogicalPlan>> {
    if let LogicalPlan::Filter(filter) = plan {
        let terms = split_conjunction_owned(filter.predicate.clone()).into_iter();
        let (correlated, plain): (Vec<Expr>, Vec<Expr>) =
            terms.partition(|term| takes_outer(term, &filter.input));
        if let Some(condition) = conjunction(correlated) {
            return apart(filter, condition, conjunction(plain), given, names);
        }
    }
    match plan {
        LogicalPlan::Filter(_)
        | LogicalPlan::Projection(_)
        | LogicalPlan::Subquery(_)
        | LogicalPlan::Aggregate(_) => {
            let Some(input) = renamed(plan.inputs()[0], given, names)? else { return Ok(None) };
            plan.with_new_exprs(plan.expressions(), vec![input]).map(Some)
        }
        _ => Ok(None),
    }
}

/// The filter over columns that have other names below its correlated `condition`, and their own above.
fn apart(
    filter: &Filter,
    condition: Expr,
    plain: Option<Expr>,
    given: &[Column],
    names: &UniqueNames,
) -> DfResult<Option<LogicalPlan>> {
    let used = condition.column_refs();
    let shares_name = |column: &&&Column| {
        let mut others = used.iter().copied().chain(given);
        others.any(|other| other != **column && other.name == column.name)
    };
    let own: BTreeMap<Column, Column> = used
        .iter()
        .filter(shares_name)
        .map(|column| ((*column).clone(), Column::from_name(names.next("own"))))
        .collect();
    if own.is_empty() {
        return Ok(None);
    }
    let columns = filter.input.schema().columns();
    let below = columns.iter().map(|column| {
        let expr = Expr::Column(column.clone());
        own.get(column).map_or(expr.clone(), |own| expr.alias(&own.name))
    });
    let above = columns.iter().map(|column| match own.get(column) {
        Some(own) => Expr::Column(own.clone()).alias_qualified(column.relation.clone(), &column.name),
        None => Expr::Column(column.clone()),
    });
    let condition = condition.rewrite_up(|expr| {
        let own = if let Expr::Column(column) = &expr { own.get(column) } else { None };
        Ok(match own {
            Some(own) => Transformed::yes(Expr::Column(own.clone())),
            None => Transformed::no(expr),
        })
    });
    let mut rows = LogicalPlanBuilder::from(Arc::clone(&filter.input));
    if let Some(plain) = plain {
        rows = rows.filter(plain)?;
    }
    rows.project(below)?.filter(condition.data()?)?.project(above)?.build().map(Some)
}
