//! Splits BETWEEN and IN into comparisons with one operand each.
//!
//! DataFusion finds one type for all operands: `n BETWEEN 9007199254740993 AND 1e20` would compare doubles, which do
//! not tell 2^53 from its neighbour. SQL defines both by comparisons of two operands (SQL:2016, 8.3 and 8.4).

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::{Expr, in_list};

use crate::df::rewrite::settled_type;

/// Splits them where BIGINTs meet both doubles and other types. Runs before type coercion.
pub fn one_by_one(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let of = |expr: &Expr| settled_type(expr, schema).unwrap_or(DataType::Null);
    let is_float = |expr: &Expr| of(expr).is_floating();
    let is_long = |expr: &Expr| matches!(of(expr), DataType::Int64 | DataType::UInt64) && !expr.is_volatile();
    Ok(match expr {
        Expr::Between(Between { expr, negated, low, high })
            if is_long(&expr) && is_float(&low) != is_float(&high) =>
        {
            let (a, b) = ((*expr).clone(), *expr);
            Transformed::yes(match negated {
                false => a.gt_eq(*low).and(b.lt_eq(*high)),
                true => a.lt(*low).or(b.gt(*high)),
            })
        }
        Expr::InList(InList { expr, list, negated }) if is_long(&expr) && list.iter().any(is_float) => {
            let (floats, others): (Vec<Expr>, Vec<Expr>) = list.into_iter().partition(is_float);
            if others.is_empty() {
                return Ok(Transformed::no(in_list(*expr, floats, negated)));
            }
            let (floats, others) =
                (in_list((*expr).clone(), floats, negated), in_list(*expr, others, negated));
            Transformed::yes(if negated { others.and(floats) } else { others.or(floats) })
        }
        expr => Transformed::no(expr),
    })
}
