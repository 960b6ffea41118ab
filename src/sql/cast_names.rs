//! Tells expressions apart that differ in casts only.
//!
//! DataFusion 55.2 gives `sum(a)` and `sum(CAST(a AS DOUBLE))` one name, and refuses two columns of one name below the
//! select list, where no AS can help. Such casts become a `CASE` that says the type: the optimizer drops it.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::ops::ControlFlow;

use sqlparser::ast::{Expr, GroupByExpr, Query, Select, Value, Visitor};

use super::rewrite::case_when;
use super::visit::{visit, visit_expressions, visit_expressions_mut};

/// Rewrites the casts in calls and groups of the query that would get one name.
pub fn tell_casts_apart(query: &mut Query) {
    let find = |expr: &Expr| match expr {
        Expr::Cast { .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    if visit_expressions(&*query, find).is_continue() {
        return;
    }
    let mut named = Named::default();
    let _ = visit(&*query, &mut named);
    let alike: HashSet<String> = named.0.into_values().filter(|texts| texts.len() > 1).flatten().collect();
    if alike.is_empty() {
        return;
    }
    let _ = visit_expressions_mut(query, |expr| {
        if alike.contains(&expr.to_string()) {
            say_types(expr);
        }
        ControlFlow::<()>::Continue(())
    });
}

/// Texts of calls and groups, by their texts without casts.
#[derive(Default)]
struct Named(HashMap<String, HashSet<String>>);

impl Named {
    fn add(&mut self, expr: &Expr) {
        let mut bare = expr.clone();
        let _ = visit_expressions_mut(&mut bare, |expr| {
            if let Expr::Cast { expr: of, .. } = expr {
                *expr = std::mem::replace(of, Expr::value(Value::Null));
            }
            ControlFlow::<()>::Continue(())
        });
        self.0.entry(bare.to_string()).or_default().insert(expr.to_string());
    }
}

impl Visitor for Named {
    type Break = Infallible;

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Infallible> {
        if let GroupByExpr::Expressions(groups, _) = &select.group_by {
            groups.iter().for_each(|group| self.add(group));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Infallible> {
        if matches!(expr, Expr::Function(_)) {
            self.add(expr);
        }
        ControlFlow::Continue(())
    }
}

/// Makes `CASE WHEN 'DOUBLE' IS NOT NULL THEN CAST(a AS DOUBLE) END` of each cast.
fn say_types(expr: &mut Expr) {
    let _ = visit_expressions_mut(expr, |expr| {
        if let Expr::Cast { data_type, .. } = expr {
            let ty = Expr::value(Value::SingleQuotedString(data_type.to_string()));
            let condition = Expr::IsNotNull(Box::new(ty));
            let result = std::mem::replace(expr, Expr::value(Value::Null));
            *expr = case_when(condition, result, None);
        }
        ControlFlow::<()>::Continue(())
    });
}
