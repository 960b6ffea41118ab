//! Turns dynamic filters into conditions on a scan.
//!
//! DataFusion's hash join reads its build side first and then knows which keys of the probe side can match: a list of
//! values, if they are few, and their bounds. A scalar subquery runs before the rows that are compared with its result.
//! A scan that starts after that reads only what can match, by GETs or key ranges. A top-k sort knows more with every
//! batch: the scan drops rows that cannot become one of the first.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::{Cast, ColumnarValue, Expr, Operator, binary_expr, lit};
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, DynamicFilterPhysicalExpr, InListExpr, IsNotNullExpr, IsNullExpr,
    Literal,
};
use datafusion::physical_expr::scalar_subquery::ScalarSubqueryExpr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use crate::df::expr::{FieldNames, predicate};
use crate::plan::Predicate;
use crate::sql::balanced;

/// Most tuples (count) of several keys that are looked up as tuples; of more, the values of each key are looked up
/// separately.
pub const PAIRS_MAX: usize = 200;

/// The current condition of a dynamic filter: it holds for every row that passes the filter, perhaps for others.
/// `schema`: the columns of the filter; `values_max`: values (count) that are worth looking up.
pub fn condition_of(
    filter: &Arc<dyn PhysicalExpr>,
    schema: &Schema,
    names: &FieldNames,
    values_max: usize,
) -> Predicate {
    let Some(expr) = (FilterReader { schema, values_max }).condition(filter) else { return Predicate::True };
    let said = predicate(&expr, names).conjuncts();
    Predicate::and(said.into_iter().filter(|term| !term.has_opaque()))
}

/// The filter says more at run time than at planning.
pub fn is_late(filter: &Arc<dyn PhysicalExpr>) -> bool {
    is_joins(filter) || holds(filter, &|expr| expr.is::<ScalarSubqueryExpr>())
}

/// The filter is a dynamic filter of a join.
pub fn is_joins(filter: &Arc<dyn PhysicalExpr>) -> bool {
    holds(filter, &|expr| expr.is::<DynamicFilterPhysicalExpr>())
}

fn holds(filter: &Arc<dyn PhysicalExpr>, is_it: &dyn Fn(&dyn PhysicalExpr) -> bool) -> bool {
    filter.exists(|expr| Ok(is_it(&**expr))).unwrap_or(false)
}

/// Names of the columns in a filter.
pub fn columns(filter: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Vec<String> {
    let columns = collect_columns(filter).into_iter();
    let mut names: Vec<String> =
        columns.filter_map(|c| Some(schema.fields().get(c.index())?.name().clone())).collect();
    names.sort();
    names
}

/// Names of the columns for which the filter will list all values that pass.
pub fn equal_columns(filter: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Vec<String> {
    let is_equal = |binary: &BinaryExpr| {
        let side = |expr: &Arc<dyn PhysicalExpr>| expr.is::<Column>() || is_late(expr);
        *binary.op() == Operator::Eq && side(binary.left()) && side(binary.right())
    };
    let lists = is_joins(filter) || filter.downcast_ref::<BinaryExpr>().is_some_and(is_equal);
    if lists { columns(filter, schema) } else { Vec::new() }
}

/// Reads physical filter expressions.
struct FilterReader<'a> {
    schema: &'a Schema,
    values_max: usize,
}

impl FilterReader<'_> {
    /// A necessary condition for the filter; `None` if none is known.
    fn condition(&self, filter: &Arc<dyn PhysicalExpr>) -> Option<Expr> {
        if let Some(dynamic) = filter.downcast_ref::<DynamicFilterPhysicalExpr>() {
            return self.condition(&dynamic.current().ok()?);
        }
        if let Some(case) = filter.downcast_ref::<CaseExpr>() {
            // Branches are the partitions of the join: all together are what it can match.
            let branches = case.when_then_expr().iter().map(|(_, then)| then).chain(case.else_expr());
            let conditions = branches.map(|then| self.condition(then)).collect::<Option<_>>()?;
            return balanced(conditions, &Expr::or);
        }
        if let Some(binary) = filter.downcast_ref::<BinaryExpr>() {
            let both = || (self.condition(binary.left()), self.condition(binary.right()));
            match binary.op() {
                Operator::And => {
                    return match both() {
                        (Some(left), Some(right)) => Some(left.and(right)),
                        (left, right) => left.or(right),
                    };
                }
                Operator::Or => {
                    let (left, right) = both();
                    return Some(left?.or(right?));
                }
                _ => {}
            }
        }
        self.exact(filter)
    }

    /// The equivalent logical expression over the columns' names.
    fn exact(&self, filter: &Arc<dyn PhysicalExpr>) -> Option<Expr> {
        if let Some(column) = filter.downcast_ref::<Column>() {
            let name = self.schema.fields().get(column.index())?.name();
            return Some(Expr::Column(datafusion::common::Column::new_unqualified(name)));
        }
        if let Some(literal) = filter.downcast_ref::<Literal>() {
            return Some(lit(literal.value().clone()));
        }
        if let Some(cast) = filter.downcast_ref::<CastExpr>() {
            let inner = self.exact(cast.expr())?;
            return Some(Expr::Cast(Cast::new(Box::new(inner), cast.cast_type().clone())));
        }
        if let Some(list) = filter.downcast_ref::<InListExpr>() {
            return if list.negated() { None } else { self.listed(list) };
        }
        if let Some(null) = filter.downcast_ref::<IsNullExpr>() {
            return Some(self.exact(null.arg())?.is_null());
        }
        if let Some(value) = filter.downcast_ref::<IsNotNullExpr>() {
            return Some(self.exact(value.arg())?.is_not_null());
        }
        if filter.is::<ScalarSubqueryExpr>() {
            // It fails until the subquery has run.
            let value = filter.evaluate(&RecordBatch::new_empty(Arc::new(self.schema.clone()))).ok()?;
            let ColumnarValue::Scalar(value) = value else { return None };
            return Some(lit(value));
        }
        let binary = filter.downcast_ref::<BinaryExpr>()?;
        Some(binary_expr(self.exact(binary.left())?, *binary.op(), self.exact(binary.right())?))
    }

    /// `key IN (values)`; for several keys, the values are structs.
    fn listed(&self, list: &InListExpr) -> Option<Expr> {
        let values = list.list().iter().map(|value| Some(value.downcast_ref::<Literal>()?.value()));
        let Some(tuple) = list.expr().downcast_ref::<ScalarFunctionExpr>() else {
            let values = self.few(values.map(Option::<&ScalarValue>::cloned))?;
            return Some(self.exact(list.expr())?.in_list(values.into_iter().map(lit).collect(), false));
        };
        // Some keys may be unknown here: totals of an aggregate above.
        let keys: Vec<Option<Expr>> = tuple.args().iter().map(|key| self.exact(key)).collect();
        let of_row = |value: Option<&ScalarValue>, key: usize| -> Option<ScalarValue> {
            let ScalarValue::Struct(row) = value? else { return None };
            ScalarValue::try_from_array(row.columns().get(key)?, 0).ok()
        };
        let of_key = |key: usize| self.few(values.clone().map(|value| of_row(value, key)));
        let each: Vec<Option<HashSet<ScalarValue>>> = (0..keys.len()).map(of_key).collect();
        let varying = each.iter().filter(|values| values.as_ref().is_none_or(|v| v.len() > 1)).count();
        if let Some(keys) = keys.iter().cloned().collect::<Option<Vec<Expr>>>()
            && varying > 1
            && list.len() <= PAIRS_MAX.min(self.values_max)
        {
            let row = |value| (0..keys.len()).map(|key| of_row(value, key)).collect();
            let rows = values.map(row).collect::<Option<Vec<Vec<ScalarValue>>>>()?;
            let equal = |row: Vec<ScalarValue>| {
                keys.iter().zip(row).map(|(key, value)| key.clone().eq(lit(value))).reduce(Expr::and)
            };
            return balanced(rows.into_iter().map(equal).collect::<Option<_>>()?, &Expr::or);
        }
        // This is exact if only one key varies.
        let listed = keys
            .into_iter()
            .zip(each)
            .filter_map(|(key, values)| Some(key?.in_list(values?.into_iter().map(lit).collect(), false)));
        listed.reduce(Expr::and)
    }

    /// The distinct values; `None` if one is unknown, or if there are too many to look up.
    fn few(&self, values: impl Iterator<Item = Option<ScalarValue>>) -> Option<HashSet<ScalarValue>> {
        let mut few = HashSet::new();
        for value in values {
            few.insert(value?);
            if few.len() > self.values_max {
                return None;
            }
        }
        Some(few)
    }
}
