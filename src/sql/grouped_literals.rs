//! `SELECT 2024 AS year .. GROUP BY year`: DataFusion puts the literal in place of its name, and reads a number in GROUP
//! BY as the position of a column.

use sqlparser::ast::{
    CastKind, DataType, Expr, GroupByExpr, Select, SelectItem, UnaryOperator, Value, ValueWithSpan,
};

use super::name_of;

/// Casts the integer literals that a GROUP BY names, so that they are no positions.
pub(super) fn cast_grouped_literals(select: &mut Select) {
    let GroupByExpr::Expressions(groups, _) = &select.group_by else { return };
    for item in &mut select.projection {
        let SelectItem::ExprWithAlias { expr, alias } = item else { continue };
        let is_named =
            |group: &Expr| matches!(group, Expr::Identifier(name) if name_of(name) == name_of(alias));
        if is_integer(expr) && groups.iter().any(is_named) {
            *expr = Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(expr.clone()),
                data_type: DataType::BigInt(None),
                array: false,
                format: None,
            };
        }
    }
}

/// It is the literal of a BIGINT.
fn is_integer(expr: &Expr) -> bool {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => digits.parse::<i64>().is_ok(),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } | Expr::Nested(expr) => is_integer(expr),
        _ => false,
    }
}
