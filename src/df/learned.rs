//! What a join learns of its smaller side, as a condition on the scan of the larger.
//!
//! DataFusion's hash join reads one side first and then knows which keys the other can match: a list of values, if
//! they are few, and their bounds. A scan that starts after that reads only those, by GETs or key ranges.

use std::any::Any;
use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Cast, Expr, Operator, binary_expr, lit};
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, DynamicFilterPhysicalExpr, InListExpr, Literal,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use super::expr::{FieldNames, predicate};
use crate::plan::Predicate;

/// The condition that a filter sets now: true for every row that passes the filter, perhaps for others.
/// `schema`: the columns that the filter is about.
pub fn learned(filter: &Arc<dyn PhysicalExpr>, schema: &Schema, names: &FieldNames) -> Predicate {
    let Some(expr) = logical(filter, schema) else { return Predicate::True };
    let said = predicate(&expr, names).conjuncts();
    Predicate::and(said.into_iter().filter(|term| !term.has_opaque()))
}

/// The filter comes from an operator that narrows it while the plan runs.
pub fn is_dynamic(filter: &Arc<dyn PhysicalExpr>) -> bool {
    filter.exists(|expr| Ok(as_any(expr).is::<DynamicFilterPhysicalExpr>())).unwrap_or(false)
}

/// Names of the columns that filters are about, each once.
pub fn columns(filters: &[Arc<dyn PhysicalExpr>], schema: &Schema) -> Vec<String> {
    let mut names = Vec::new();
    for filter in filters {
        // Only a filter that cannot be read has no names to show.
        let _ = filter.apply(|expr| {
            if let Some(column) = as_any(expr).downcast_ref::<Column>()
                && let Some(field) = schema.fields().get(column.index())
                && !names.contains(field.name())
            {
                names.push(field.name().clone());
            }
            Ok(TreeNodeRecursion::Continue)
        });
    }
    names
}

fn as_any(expr: &Arc<dyn PhysicalExpr>) -> &dyn Any {
    &**expr
}

/// The filter as an expression over the columns' names; `None` for what it cannot say.
fn logical(filter: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<Expr> {
    let any = as_any(filter);
    if let Some(dynamic) = any.downcast_ref::<DynamicFilterPhysicalExpr>() {
        return logical(&dynamic.current().ok()?, schema);
    }
    if let Some(column) = any.downcast_ref::<Column>() {
        let name = schema.fields().get(column.index())?.name();
        return Some(Expr::Column(datafusion::common::Column::new_unqualified(name)));
    }
    if let Some(literal) = any.downcast_ref::<Literal>() {
        return Some(lit(literal.value().clone()));
    }
    if let Some(cast) = any.downcast_ref::<CastExpr>() {
        let inner = logical(cast.expr(), schema)?;
        return Some(Expr::Cast(Cast::new(Box::new(inner), cast.cast_type().clone())));
    }
    if let Some(list) = any.downcast_ref::<InListExpr>() {
        return if list.negated() { None } else { listed(list, schema) };
    }
    if let Some(case) = any.downcast_ref::<CaseExpr>() {
        // Which keys are in which partition of the join: all of them together are what it can match.
        let branches = case.when_then_expr().iter().map(|(_, then)| then).chain(case.else_expr());
        let branches = branches.map(|then| logical(then, schema)).collect::<Option<Vec<_>>>()?;
        return any_of(branches);
    }
    let binary = any.downcast_ref::<BinaryExpr>()?;
    let (left, right) = (logical(binary.left(), schema), logical(binary.right(), schema));
    match (binary.op(), left, right) {
        (op, Some(left), Some(right)) => Some(binary_expr(left, *op, right)),
        // Of an AND, either half is a condition by itself.
        (Operator::And, left, right) => left.or(right),
        _ => None,
    }
}

/// `key IN (values)`; of several keys the values come as structs.
fn listed(list: &InListExpr, schema: &Schema) -> Option<Expr> {
    let values = list.list().iter().map(|value| Some(as_any(value).downcast_ref::<Literal>()?.value()));
    let Some(tuple) = as_any(list.expr()).downcast_ref::<ScalarFunctionExpr>() else {
        let values = values.map(|value| value.cloned().map(lit)).collect::<Option<_>>()?;
        return Some(logical(list.expr(), schema)?.in_list(values, false));
    };
    let keys = tuple.args().iter().map(|key| logical(key, schema)).collect::<Option<Vec<_>>>()?;
    let equal = |value: Option<&ScalarValue>| {
        let ScalarValue::Struct(row) = value? else { return None };
        let fields = row.columns().iter().zip(&keys).map(|(column, key)| {
            let value = ScalarValue::try_from_array(column, 0).ok()?;
            Some(key.clone().eq(lit(value)))
        });
        fields.collect::<Option<Vec<_>>>()?.into_iter().reduce(Expr::and)
    };
    any_of(values.map(equal).collect::<Option<_>>()?)
}

/// Any of the conditions, as a tree that is not deeper than it must be.
fn any_of(mut conditions: Vec<Expr>) -> Option<Expr> {
    while conditions.len() > 1 {
        let mut rest = conditions.into_iter();
        let mut pairs = Vec::new();
        while let Some(first) = rest.next() {
            pairs.push(match rest.next() {
                Some(second) => first.or(second),
                None => first,
            });
        }
        conditions = pairs;
    }
    conditions.pop()
}
