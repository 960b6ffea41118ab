//! Compares expressions up to the spelling of names.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Ident, ObjectNamePart, OrderByExpr};

use super::name_of;
use super::visit::visit_expressions_mut;

/// The canonical form of an expression: names are folded.
pub(super) fn folded(expr: &Expr) -> Expr {
    let mut folded = expr.clone();
    let fold = |name: &mut Ident| *name = Ident::new(name_of(name));
    let _ = visit_expressions_mut(&mut folded, |expr| {
        match expr {
            Expr::Identifier(name) => fold(name),
            Expr::CompoundIdentifier(names) => names.iter_mut().for_each(fold),
            Expr::Function(call) => {
                let names = call.name.0.iter_mut().filter_map(|part| match part {
                    ObjectNamePart::Identifier(name) => Some(name),
                    ObjectNamePart::Function(_) => None,
                });
                names.for_each(fold);
            }
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    });
    folded
}

/// Drops repeated ORDER BY expressions, which have no effect, because DataFusion's `first_value` fails on
/// them.
pub(super) fn without_repeats(order: &mut Vec<OrderByExpr>) {
    if order.len() < 2 {
        return;
    }
    let mut named: Vec<Expr> = Vec::with_capacity(order.len());
    order.retain(|by| {
        let expr = folded(&by.expr);
        let is_new = !named.contains(&expr);
        named.push(expr);
        is_new
    });
}
