//! Types of parameters that are compared with times.
//!
//! A parameter takes the type of its peer when the query is resolved, which is before our rules make a TIMESTAMP of a
//! date plus an hour, or of `tz AT TIME ZONE 'UTC'`. A literal would be cast to that type; this rule makes sure that a
//! parameter is, too.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable};
use datafusion::optimizer::analyzer::type_coercion::TypeCoercionRewriter;

use super::dates::at_midnight;

/// Gives parameters the type of the times that they are compared with, then both sides of the comparison one type.
pub fn times(mut expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let changed = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => {
            beside(left, std::iter::once(&mut **right), schema)
                || beside(right, std::iter::once(&mut **left), schema)
        }
        Expr::Between(Between { expr, low, high, .. }) => beside(expr, [&mut **low, &mut **high], schema),
        Expr::InList(InList { expr, list, .. }) => beside(expr, list, schema),
        _ => false,
    };
    Transformed::new_transformed(expr, changed).transform_data(|expr| at_midnight(expr, schema))
}

fn beside<'e>(of: &Expr, compared: impl IntoIterator<Item = &'e mut Expr>, schema: &DFSchema) -> bool {
    let mut wanted = None;
    let mut changed = false;
    for expr in compared {
        let Expr::Placeholder(param) = expr else { continue };
        let Some(ty) = param.field.as_ref().map(|field| field.data_type()).filter(|ty| ty.is_temporal())
        else {
            continue;
        };
        let wanted = wanted.get_or_insert_with(|| coerced_type(of, schema).filter(DataType::is_temporal));
        if let Some(wanted) = wanted.as_ref().filter(|wanted| *wanted != ty) {
            param.field = Some(Arc::new(Field::new(&param.id, wanted.clone(), true)));
            changed = true;
        }
    }
    changed
}

/// The type of an expression after type coercion of its parts.
fn coerced_type(expr: &Expr, schema: &DFSchema) -> Option<DataType> {
    let mut coercion = TypeCoercionRewriter::new(schema);
    let coerced = expr.clone().rewrite(&mut coercion).ok()?.data;
    coerced.get_type(schema).ok()
}
