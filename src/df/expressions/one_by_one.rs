//! Splits BETWEEN and IN into comparisons with one operand each.
//!
//! DataFusion finds one type for all operands: `n BETWEEN 9007199254740993 AND 1e20` would compare doubles, which do
//! not tell 2^53 from its neighbour; `d IN (ts, '2023-12-31 12:00')` would take the text for a TIMESTAMP, though `d` is a
//! DATE. SQL defines both by comparisons of two operands (SQL:2016, 8.3 and 8.4).

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::{Expr, in_list};

use crate::df::rewrite::settled_type;

/// Splits them where BIGINTs meet both doubles and other types, or DATEs both timestamps of rows and others. Runs
/// before all rules that look for one type.
pub fn one_by_one(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let of = |expr: &Expr| settled_type(expr, schema).unwrap_or(DataType::Null);
    // Whether the second operand is of another kind of number or time.
    let differs = |expr: &Expr, other: &Expr| match of(expr) {
        DataType::Int64 | DataType::UInt64 => of(other).is_floating(),
        DataType::Date32 => matches!(of(other), DataType::Timestamp(..)) && other.any_column_refs(),
        _ => false,
    };
    Ok(match expr {
        Expr::Between(Between { expr, negated, low, high })
            if differs(&expr, &low) != differs(&expr, &high) && !expr.is_volatile() =>
        {
            let (a, b) = ((*expr).clone(), *expr);
            Transformed::yes(match negated {
                false => a.gt_eq(*low).and(b.lt_eq(*high)),
                true => a.lt(*low).or(b.gt(*high)),
            })
        }
        Expr::InList(InList { expr, list, negated })
            if list.iter().any(|other| differs(&expr, other)) && !expr.is_volatile() =>
        {
            let (apart, others): (Vec<Expr>, Vec<Expr>) =
                list.into_iter().partition(|other| differs(&expr, other));
            if others.is_empty() {
                return Ok(Transformed::no(in_list(*expr, apart, negated)));
            }
            let (apart, others) = (in_list((*expr).clone(), apart, negated), in_list(*expr, others, negated));
            Transformed::yes(if negated { others.and(apart) } else { others.or(apart) })
        }
        expr => Transformed::no(expr),
    })
}
