//! Values that occur once in the rows of a plan.

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, JoinType};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable, Join, LogicalPlan, Operator, Projection, SubqueryAlias,
};

use super::rewrite::below;
use super::table::TableSource;

/// No two rows of the plan have the same `values`; false if that is not known.
pub fn are_unique(mut values: Vec<Expr>, mut plan: &LogicalPlan) -> DfResult<bool> {
    loop {
        plan = match plan {
            LogicalPlan::Projection(Projection { input, .. })
            | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => {
                values = values.iter().filter_map(|expr| below(expr, plan)).collect();
                input
            }
            LogicalPlan::Filter(filter) => {
                let settled = |term| settled_column(term, filter.input.schema());
                values.extend(split_conjunction(&filter.predicate).into_iter().filter_map(settled));
                &filter.input
            }
            LogicalPlan::Join(Join { left, right, on, join_type, .. }) => match join_type {
                JoinType::LeftSemi | JoinType::LeftAnti => left,
                // If each left row finds at most one.
                JoinType::Inner | JoinType::Left
                    if are_unique(on.iter().map(|(_, right)| right.clone()).collect(), right)? =>
                {
                    left
                }
                _ => return Ok(false),
            },
            LogicalPlan::TableScan(scan) => {
                let schema = scan.projected_schema.as_ref();
                // Values of the other side of a join may have the names of columns here.
                values
                    .retain(|value| value.column_refs().into_iter().all(|column| schema.has_column(column)));
                values.extend(scan.filters.iter().filter_map(|filter| settled_column(filter, schema)));
                return Ok(TableSource::of(scan)?.is_some_and(|source| source.are_unique(&values)));
            }
            _ => return Ok(false),
        }
    }
}

/// The column that a condition fixes to a single value.
fn settled_column(condition: &Expr, schema: &DFSchema) -> Option<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else { return None };
    let is_value = |expr: &Expr| matches!(expr, Expr::Literal(..) | Expr::Placeholder(_));
    let column = match (is_value(left), is_value(right)) {
        (false, true) => left,
        (true, false) => right,
        _ => return None,
    };
    let column = match &**column {
        // Casts of shorter integers are injective.
        Expr::Cast(Cast { expr, field }) if field.data_type() == &DataType::Int64 => {
            let is_shorter = expr.get_type(schema).is_ok_and(|ty| ty.is_signed_integer());
            Some(&**expr).filter(|_| is_shorter)?
        }
        column => column,
    };
    matches!(column, Expr::Column(_)).then(|| column.clone())
}
