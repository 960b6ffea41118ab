//! Settles the types of comparisons that are not expressions: with the rows of a subquery, of join columns, and of
//! UNION columns.
//!
//! They take one type by the same rules as the operands of `=`, which DataFusion's coercion of plans lacks: a decimal
//! gives way to a double, a date beside a timestamp is its midnight, a text beside a time is parsed as one.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{InList, InSubquery, SetComparison};
use datafusion::logical_expr::expr_schema::cast_subquery;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, Union, binary_expr,
};

use super::dates::at_midnight;
use super::doubles::doubles_win;
use super::long_decimals::long_decimals;
use super::text::{texts_as_times, time_beside_texts};

/// Gives a value and the rows of a subquery that it is compared with one type. Runs before type coercion.
pub fn beside_subqueries(mut expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let (value, subquery) = match &mut expr {
        Expr::InSubquery(InSubquery { expr, subquery, .. })
        | Expr::SetComparison(SetComparison { expr, subquery, .. }) => (expr, subquery),
        _ => return Ok(Transformed::no(expr)),
    };
    let Some(field) = subquery.subquery.schema().fields().first() else { return Ok(Transformed::no(expr)) };
    let both = binary_expr(std::mem::take(value), Operator::Eq, column_like(field));
    let both = compared(both, schema)?;
    let changed = both.transformed;
    if let Expr::BinaryExpr(BinaryExpr { left, right, .. }) = both.data {
        *value = left;
        *subquery = cast_subquery(subquery.clone(), &right.get_type(schema)?)?;
    }
    Ok(Transformed::new_transformed(expr, changed))
}

/// The same for join columns, such as those of INTERSECT.
pub fn beside_columns(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(mut join) = plan else { return Ok(Transformed::no(plan)) };
    let mut changed = false;
    for (left, right) in &mut join.on {
        let schema = join.left.schema().join(join.right.schema())?;
        let both = compared(binary_expr(std::mem::take(left), Operator::Eq, std::mem::take(right)), &schema)?;
        changed |= both.transformed;
        if let Expr::BinaryExpr(both) = both.data {
            (*left, *right) = (*both.left, *both.right);
        }
    }
    Ok(Transformed::new_transformed(LogicalPlan::Join(join), changed))
}

/// The same for the columns of a UNION.
pub fn in_union(union: Union) -> DfResult<Union> {
    let columns = union.inputs.iter().map(|input| input.schema().fields().len()).min().unwrap_or_default();
    let mut types = Vec::with_capacity(columns);
    let mut changed = false;
    for at in 0..columns {
        let mut fields = union.inputs.iter().map(|input| column_like(input.schema().field(at)));
        let Some(first) = fields.next() else { break };
        let list = InList { expr: Box::new(first), list: fields.collect(), negated: false };
        let all = settled(Expr::InList(list), union.schema.as_ref())?;
        changed |= all.transformed;
        let Expr::InList(InList { expr, list, .. }) = all.data else { break };
        let of_inputs = std::iter::once(*expr).chain(list).map(|column| column.get_type(&union.schema));
        let mut of_inputs = of_inputs.collect::<DfResult<Vec<DataType>>>()?;
        if let Some(time) = time_beside_texts(&of_inputs) {
            of_inputs.iter_mut().filter(|ty| ty.is_string()).for_each(|ty| *ty = time.clone());
            changed = true;
        }
        types.push(of_inputs);
    }
    if !changed || types.len() < columns {
        return Ok(union);
    }
    let inputs = union.inputs.into_iter().enumerate().map(|(input, plan)| {
        let of = |(at, (qualifier, field)): (usize, (Option<&_>, &FieldRef))| {
            let column = Expr::Column(Column::from((qualifier, field)));
            match types.get(at).and_then(|types| types.get(input)) {
                Some(ty) if ty != field.data_type() => {
                    Ok(column.cast_to(ty, plan.schema())?.alias_qualified(qualifier.cloned(), field.name()))
                }
                _ => Ok(column),
            }
        };
        let columns = plan.schema().iter().enumerate().map(of).collect::<DfResult<Vec<Expr>>>()?;
        Ok(Arc::new(LogicalPlanBuilder::from(plan).project(columns)?.build()?))
    });
    Union::try_new_with_loose_types(inputs.collect::<DfResult<_>>()?)
}

fn settled(operands: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    at_midnight(operands, schema)?.transform_data(|operands| doubles_win(operands, schema))
}

fn compared(mut operands: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let changed = match &mut operands {
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => texts_as_times(vec![left, right], schema),
        _ => false,
    };
    let operands = Transformed::new_transformed(operands, changed);
    operands
        .transform_data(|operands| settled(operands, schema))?
        .transform_data(|operands| long_decimals(operands, schema))
}

/// A stand-in column of this type that no schema needs to have.
fn column_like(field: &FieldRef) -> Expr {
    Expr::OuterReferenceColumn(Arc::clone(field), Column::from_name(field.name()))
}
