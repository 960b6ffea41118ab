//! `(SELECT coalesce(sum(x), 0) FROM t WHERE ..)` in a select list, or compared with a constant, as `coalesce((SELECT
//! sum(x) FROM t WHERE ..), 0)`.
//!
//! A subquery that adds up all its rows has one row, so what is computed of its total can be computed outside. Totals alone
//! are added up row by row where few rows ask for them; what is computed of them would be computed below a join.

use std::convert::Infallible;
use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Query,
    Select, SelectItem, SetExpr, UnaryOperator, VisitorMut,
};

use super::name_of;
use super::visit::visit_mut;

/// Aggregates that are totals of rows.
const TOTALS: [&str; 5] = ["avg", "count", "max", "min", "sum"];

/// Functions of a total and of constants.
const OF_TOTALS: [&str; 4] = ["abs", "coalesce", "ifnull", "round"];

/// Rewrites the subqueries of a query. What is compared with a column stays, for the column may be that of a key.
pub(super) fn out_of_subqueries(select: &mut Select) {
    let anywhere = |expr: &mut Expr| {
        let _ = visit_mut(expr, &mut Hoist { depth: 0, reach: Reach::Anywhere });
    };
    // An ORDER BY names the same as a SELECT DISTINCT.
    if select.distinct.is_none() {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                anywhere(expr);
            }
        }
        if let GroupByExpr::Expressions(groups, _) = &mut select.group_by {
            groups.iter_mut().for_each(anywhere);
        }
    }
    for condition in [&mut select.selection, &mut select.having].into_iter().flatten() {
        let _ = visit_mut(condition, &mut Hoist { depth: 0, reach: Reach::BesideConstants });
    }
}

/// Where subqueries are rewritten.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Anywhere,
    BesideConstants,
}

struct Hoist {
    /// The number of queries around the position.
    depth: usize,
    reach: Reach,
}

impl VisitorMut for Hoist {
    type Break = Infallible;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        match (self.reach, expr) {
            _ if self.depth > 0 => {}
            (Reach::Anywhere, expr) => hoist(expr),
            (Reach::BesideConstants, Expr::BinaryOp { left, op, right }) if compares(op) => {
                match (is_constant(left), is_constant(right)) {
                    (true, false) => hoist(right),
                    (false, true) => hoist(left),
                    _ => {}
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn hoist(expr: &mut Expr) {
    if let Expr::Subquery(query) = expr
        && let Some(hoisted) = hoisted(query)
    {
        *expr = hoisted;
    }
}

/// What a subquery computes of its total, with the subquery in place of the total.
fn hoisted(query: &Query) -> Option<Expr> {
    let is_whole = query.order_by.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
    let SetExpr::Select(select) = &*query.body else { return None };
    let adds_up_all = matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.is_empty())
        && select.having.is_none()
        && select.qualify.is_none()
        && select.distinct.is_none();
    let [SelectItem::UnnamedExpr(of_total) | SelectItem::ExprWithAlias { expr: of_total, .. }] =
        &select.projection[..]
    else {
        return None;
    };
    if !is_whole || !adds_up_all || is_total(of_total) {
        return None;
    }
    let mut hoisted = of_total.clone();
    let total = total_in(&mut hoisted)?;
    let mut inner = query.clone();
    if let SetExpr::Select(select) = &mut *inner.body {
        select.projection = vec![SelectItem::UnnamedExpr(total.clone())];
    }
    *total = Expr::Subquery(Box::new(inner));
    Some(hoisted)
}

/// The total of which, and of constants, an expression is computed.
fn total_in(expr: &mut Expr) -> Option<&mut Expr> {
    if is_total(expr) {
        return Some(expr);
    }
    match expr {
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => total_in(inner),
        Expr::BinaryOp { left, op, right } if is_arithmetic(op) => {
            match (is_constant(left), is_constant(right)) {
                (true, false) => total_in(right),
                (false, true) => total_in(left),
                _ => None,
            }
        }
        Expr::Function(call) if is_plain(call, &OF_TOTALS) => {
            let FunctionArguments::List(list) = &mut call.args else { return None };
            let mut computed = Vec::new();
            for arg in &mut list.args {
                let FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) = arg else { return None };
                if !is_constant(arg) {
                    computed.push(arg);
                }
            }
            match computed.pop() {
                Some(arg) if computed.is_empty() => total_in(arg),
                _ => None,
            }
        }
        _ => None,
    }
}

fn is_total(expr: &Expr) -> bool {
    matches!(expr, Expr::Function(call) if is_plain(call, &TOTALS))
}

/// One of these functions, and no window of it.
fn is_plain(call: &Function, names: &[&str]) -> bool {
    let [name] = &call.name.0[..] else { return false };
    call.over.is_none() && name.as_ident().is_some_and(|name| names.contains(&name_of(name).as_str()))
}

fn is_arithmetic(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Divide, Minus, Multiply, Plus};
    matches!(op, Divide | Minus | Multiply | Plus)
}

fn compares(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | Gt | GtEq | Lt | LtEq | NotEq)
}

fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Value(_) | Expr::TypedString(_) => true,
        Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } => is_constant(inner),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_computed_of_a_total_is_computed_outside() {
        let cases = [
            (
                "SELECT id, (SELECT coalesce(sum(x), 0) FROM u WHERE u.a = t.a) FROM t",
                "SELECT id, coalesce((SELECT sum(x) FROM u WHERE u.a = t.a), 0) FROM t",
            ),
            (
                "SELECT 1 + (SELECT round(avg(x) * 100, 2) AS y FROM u) AS z FROM t",
                "SELECT 1 + round((SELECT avg(x) FROM u) * 100, 2) AS z FROM t",
            ),
            (
                "SELECT id FROM t WHERE (SELECT coalesce(sum(x), 0) FROM u WHERE u.a = t.a) > $1",
                "SELECT id FROM t WHERE coalesce((SELECT sum(x) FROM u WHERE u.a = t.a), 0) > $1",
            ),
            (
                "SELECT (SELECT max(x) + 1 FROM u) FROM t GROUP BY (SELECT max(x) + 1 FROM u)",
                "SELECT (SELECT max(x) FROM u) + 1 FROM t GROUP BY (SELECT max(x) FROM u) + 1",
            ),
        ];
        let same = [
            "SELECT (SELECT sum(x) FROM u) FROM t",
            "SELECT (SELECT coalesce(sum(x), 0) FROM u GROUP BY a) FROM t",
            "SELECT (SELECT coalesce(sum(x), 0) FROM u LIMIT 1) FROM t",
            "SELECT (SELECT coalesce(sum(x), t.a) FROM u) FROM t",
            "SELECT (SELECT sum(x) / count(*) FROM u) FROM t",
            "SELECT (SELECT coalesce(x, 0) FROM u) FROM t",
            "SELECT DISTINCT (SELECT coalesce(max(x), 0) FROM u) FROM t",
            "SELECT id FROM t WHERE a = (SELECT coalesce(max(a), 0) FROM u)",
        ];
        for (from, to) in cases.into_iter().chain(same.map(|sql| (sql, sql))) {
            let mut query =
                sqlparser::parser::Parser::parse_sql(&sqlparser::dialect::GenericDialect {}, from).unwrap();
            let sqlparser::ast::Statement::Query(query) = &mut query[0] else { unreachable!() };
            let SetExpr::Select(select) = &mut *query.body else { unreachable!() };
            out_of_subqueries(select);
            assert_eq!(query.to_string(), to);
        }
    }
}
