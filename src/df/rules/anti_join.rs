//! Turns `a LEFT JOIN b ON ... WHERE b.id IS NULL` into an anti join.
//!
//! A column of the right side that is never NULL there is NULL in null-extended rows only. DataFusion keeps such a join
//! and filters its rows; an anti join outputs no rows of `b`, and stops reading at the first match.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{JoinType, NullEquality, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder};

use crate::df::join_sides::as_type;
use crate::df::table::TableSource;
use crate::df::tree::changed;

/// The rule, for one node.
pub fn anti_join(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Filter(filter) = &plan else { return Ok(Transformed::no(plan)) };
    Ok(changed(rewritten(filter)?, plan))
}

fn rewritten(filter: &Filter) -> DfResult<Option<LogicalPlan>> {
    let LogicalPlan::Join(join) = &*filter.input else { return Ok(None) };
    if join.join_type != JoinType::Left || join.on.is_empty() {
        return Ok(None);
    }
    let (mut asks, mut others) = (false, Vec::new());
    for term in split_conjunction(&filter.predicate) {
        if is_missing(term, join)? {
            asks = true;
        } else {
            others.push(term.clone());
        }
    }
    if !asks {
        return Ok(None);
    }
    let anti = as_type(join, JoinType::LeftAnti)?;
    let left = join.left.schema().columns().into_iter().map(Expr::Column);
    let right = join.right.schema().iter().map(|(relation, field)| {
        let null = Expr::Literal(ScalarValue::try_from(field.data_type())?, None);
        Ok(null.alias_qualified(relation.cloned(), field.name()))
    });
    let columns = left.map(Ok).chain(right).collect::<DfResult<Vec<_>>>()?;
    let alone = LogicalPlanBuilder::from(LogicalPlan::Join(anti)).project(columns)?.build()?;
    Ok(Some(match conjunction(others) {
        Some(others) => LogicalPlan::Filter(Filter::try_new(others, Arc::new(alone))?),
        None => alone,
    }))
}

/// The term is true for exactly the null-extended rows.
fn is_missing(term: &Expr, join: &Join) -> DfResult<bool> {
    let Expr::IsNull(inner) = term else { return Ok(false) };
    let Expr::Column(column) = &**inner else { return Ok(false) };
    if !join.right.schema().has_column(column) {
        return Ok(false);
    }
    let is_equal = |(_, right): &(Expr, Expr)| matches!(right, Expr::Column(equal) if equal == column);
    if join.null_equality == NullEquality::NullEqualsNothing && join.on.iter().any(is_equal) {
        return Ok(true);
    }
    // DataFusion's nullability of computed columns is not reliable.
    let stored = TableSource::behind(column, &join.right)?;
    Ok(stored.and_then(|(source, name)| source.field(&name)).is_some_and(|(_, nullable)| !nullable))
}
