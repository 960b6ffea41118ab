//! Limits the depth of parsed trees.
//!
//! Cloning and printing a tree recurse, in sqlparser and in DataFusion, and a thread's stack is limited. So
//! long chains of AND, OR and UNION, which sqlparser nests one level a term, are [balanced](balance), and a
//! tree that is still too deep is refused by [`check_depth`].

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, Query, SetExpr, SetOperator, SetQuantifier, Table, TableFactor, Value, Visitor,
};

use super::ast::Statement;
use super::span_of;
use super::visit::{visit, visit_expressions};
use crate::error::{Error, Result, sqlstate};

/// Terms of the shortest chain that is balanced (count).
const CHAIN_MIN: usize = 32;

/// Deepest tree, in units of the stack that cloning one operator takes. Measured: in a debug build, a clone
/// of a tree this deep fits the 2 MiB of a thread, whatever it is made of.
const DEPTH_MAX: usize = 360;
const OPERATOR: usize = 1;
const CALL: usize = 2;
const TABLE: usize = 2;
const SET_OPERATION: usize = 4;
const QUERY: usize = 6;

/// Most nested subqueries of expressions: DataFusion takes twice as long for each level.
const SUBQUERIES_MAX: usize = 12;

/// Nodes that expansions in one statement may copy (count), at most: nested expansions would double them at
/// each level.
const COPIES_MAX: usize = 100_000;

/// A tree whose nodes may join two trees by an associative operator.
pub(super) trait Chain: Sized {
    /// The operator.
    type Link: Copy + PartialEq;

    /// The operator that joins the two sides of this node, if it is associative.
    fn link(&self) -> Option<Self::Link>;
    /// The left side.
    fn left(&self) -> Option<&Self>;
    /// Both sides, or the node itself if it has none.
    fn split(self) -> std::result::Result<(Self, Self), Self>;
    /// The opposite of `split`.
    fn join(left: Self, link: Self::Link, right: Self) -> Self;
    /// A small tree that stands in while a node is taken apart.
    fn filler() -> Self;
}

/// Turns `((a OR b) OR c) OR d`, if long, into `(a OR b) OR (c OR d)`: the same terms in the same order,
/// log2(terms) deep.
pub(super) fn balance<C: Chain>(chain: &mut C) {
    let Some(link) = chain.link() else { return };
    let joined = |node: &C| node.link() == Some(link);
    let spine = std::iter::successors(Some(&*chain), |node| node.left());
    if spine.take_while(|node| joined(node)).count() < CHAIN_MIN {
        return;
    }
    let mut terms = Vec::new();
    let mut rest = std::mem::replace(chain, C::filler());
    while joined(&rest) {
        match rest.split() {
            Ok((left, right)) => {
                terms.push(right);
                rest = left;
            }
            Err(node) => {
                rest = node;
                break;
            }
        }
    }
    terms.push(rest);
    terms.reverse();
    *chain = balanced(terms, &|left, right| C::join(left, link, right)).unwrap_or_else(C::filler);
}

/// The parts joined by an operator, as a tree that is not deep; `None` for no parts.
pub fn balanced<T>(mut parts: Vec<T>, join: &impl Fn(T, T) -> T) -> Option<T> {
    if parts.len() < 2 {
        return parts.pop();
    }
    // Neighbours are joined pairwise, as far as there are pairs.
    let rest = parts.split_off(parts.len().div_ceil(2).next_power_of_two());
    Some(join(balanced(parts, join)?, balanced(rest, join)?))
}

/// AND is true, OR is false.
impl Chain for Expr {
    type Link = bool;

    fn link(&self) -> Option<bool> {
        match self {
            Expr::BinaryOp { op: BinaryOperator::And, .. } => Some(true),
            Expr::BinaryOp { op: BinaryOperator::Or, .. } => Some(false),
            _ => None,
        }
    }

    fn left(&self) -> Option<&Self> {
        match self {
            Expr::BinaryOp { left, .. } => Some(left),
            _ => None,
        }
    }

    fn split(self) -> std::result::Result<(Self, Self), Self> {
        match self {
            Expr::BinaryOp { left, right, .. } => Ok((*left, *right)),
            other => Err(other),
        }
    }

    fn join(left: Self, and: bool, right: Self) -> Self {
        let op = if and { BinaryOperator::And } else { BinaryOperator::Or };
        Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
    }

    fn filler() -> Self {
        Expr::Value(Value::Null.into())
    }
}

/// UNION of each quantifier.
impl Chain for SetExpr {
    type Link = SetQuantifier;

    fn link(&self) -> Option<SetQuantifier> {
        match self {
            SetExpr::SetOperation { op: SetOperator::Union, set_quantifier, .. } => Some(*set_quantifier),
            _ => None,
        }
    }

    fn left(&self) -> Option<&Self> {
        match self {
            SetExpr::SetOperation { left, .. } => Some(left),
            _ => None,
        }
    }

    fn split(self) -> std::result::Result<(Self, Self), Self> {
        match self {
            SetExpr::SetOperation { left, right, .. } => Ok((*left, *right)),
            other => Err(other),
        }
    }

    fn join(left: Self, set_quantifier: SetQuantifier, right: Self) -> Self {
        SetExpr::SetOperation {
            op: SetOperator::Union,
            set_quantifier,
            left: Box::new(left),
            right: Box::new(right),
        }
    }

    fn filler() -> Self {
        SetExpr::Table(Box::new(Table { table_name: None, schema_name: None }))
    }
}

/// Refuses a tree that is too deep to be cloned and printed. Errors: LIMIT.
pub(super) fn check_depth(statement: &Statement) -> Result<()> {
    match visit(statement, &mut Depth { units: 0, subqueries: 0 }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(too_deep()),
    }
}

pub(super) fn too_deep() -> Error {
    let (operators, calls) = (DEPTH_MAX / OPERATOR, DEPTH_MAX / CALL);
    Error::invalid("this is nested too deeply")
        .why(format!(
            "the most is about {calls} parentheses or calls, {SUBQUERIES_MAX} subqueries, or {operators} operators in a row"
        ))
        .hint("split the statement, or write x IN (...) for a long list")
        .state(sqlstate::LIMIT)
}

/// A call that gives another value each time.
pub(super) fn is_drawn(expr: &Expr) -> bool {
    let Expr::Function(call) = expr else { return false };
    let [name] = &call.name.0[..] else { return false };
    let is = |drawn: &&str| name.as_ident().is_some_and(|name| name.value.eq_ignore_ascii_case(drawn));
    ["random", "uuid", "gen_random_uuid"].iter().any(is)
}

fn drawn_anew() -> Error {
    Error::unsupported("what is drawn cannot stand in a comparison that is written out")
        .why("it would be drawn anew for each part of it")
        .hint("draw it in a subquery: FROM (SELECT random() AS x, ...)")
}

fn too_long() -> Error {
    Error::invalid("this condition is too long when written out")
        .why("a < b < c is short for a < b AND b < c, and rows are compared column by column")
        .hint("do not put such comparisons into each other")
        .state(sqlstate::LIMIT)
}

/// Nodes that expansions may still copy.
pub(super) struct Copies(usize);

impl Default for Copies {
    fn default() -> Self {
        Copies(COPIES_MAX)
    }
}

impl Copies {
    /// Counts `times` copies of `expr`. Errors: LIMIT, with its place; it draws a number, which would be another one in
    /// each copy.
    pub(super) fn count(&mut self, expr: &Expr, times: usize) -> Result<()> {
        if times == 0 {
            return Ok(());
        }
        let mut left = self.0 / times;
        let counted: ControlFlow<Error> = visit_expressions(expr, |expr| match left.checked_sub(1) {
            _ if is_drawn(expr) => ControlFlow::Break(drawn_anew().at(span_of(expr))),
            Some(rest) => {
                left = rest;
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(too_long()),
        });
        if let ControlFlow::Break(error) = counted {
            return Err(error.at(span_of(expr)));
        }
        self.0 = left * times;
        Ok(())
    }
}

/// Depth at the current position.
struct Depth {
    units: usize,
    subqueries: usize,
}

impl Depth {
    fn enter(&mut self, units: usize) -> ControlFlow<()> {
        self.units += units;
        if self.units > DEPTH_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn leave(&mut self, units: usize) -> ControlFlow<()> {
        self.units -= units;
        ControlFlow::Continue(())
    }
}

impl Visitor for Depth {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.subqueries += usize::from(is_subquery(expr));
        if self.subqueries > SUBQUERIES_MAX {
            return ControlFlow::Break(());
        }
        self.enter(units_of(expr))
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.subqueries -= usize::from(is_subquery(expr));
        self.leave(units_of(expr))
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.enter(units_of_query(query))
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.leave(units_of_query(query))
    }

    fn pre_visit_table_factor(&mut self, _: &TableFactor) -> ControlFlow<()> {
        self.enter(TABLE)
    }

    fn post_visit_table_factor(&mut self, _: &TableFactor) -> ControlFlow<()> {
        self.leave(TABLE)
    }
}

fn is_subquery(expr: &Expr) -> bool {
    matches!(expr, Expr::InSubquery { .. } | Expr::Exists { .. } | Expr::Subquery(_))
}

fn units_of(expr: &Expr) -> usize {
    match expr {
        Expr::BinaryOp { .. } | Expr::UnaryOp { .. } | Expr::Cast { .. } | Expr::Value(_) => OPERATOR,
        _ => CALL,
    }
}

fn units_of_query(query: &Query) -> usize {
    QUERY + SET_OPERATION * set_depth(&query.body)
}

/// Levels of set operations on the way to the deepest SELECT. The parser's own limit bounds a chain that is
/// not balanced, and a chain on the right needs parentheses, which make a query.
fn set_depth(body: &SetExpr) -> usize {
    let mut deepest = 0;
    let mut rest = vec![(body, 0)];
    while let Some((body, depth)) = rest.pop() {
        deepest = deepest.max(depth);
        if let SetExpr::SetOperation { left, right, .. } = body {
            rest.extend([(&**left, depth + 1), (&**right, depth + 1)]);
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::parse;

    fn depth_of(chain: &impl Chain) -> usize {
        std::iter::successors(Some(chain), |node| node.left()).count()
    }

    #[test]
    fn long_chains_become_shallow_and_print_the_same() {
        let conditions = (0..1_000).map(|n| format!("a = {n}")).collect::<Vec<_>>().join(" OR ");
        let sql = format!("SELECT * FROM t WHERE {conditions}");
        let statement = parse(&sql).unwrap();
        assert_eq!(statement.to_string(), sql);
        let Statement::Query(query) = statement else { panic!() };
        let SetExpr::Select(select) = &*query.body else { panic!() };
        assert_eq!(depth_of(select.selection.as_ref().unwrap()), 12); // ten ORs, one =, one column

        let sql = (0..1_000).map(|n| format!("SELECT {n}")).collect::<Vec<_>>().join(" UNION ALL ");
        let statement = parse(&sql).unwrap();
        assert_eq!(statement.to_string(), sql);
        let Statement::Query(query) = statement else { panic!() };
        assert_eq!(set_depth(&query.body), 10);
    }

    #[test]
    fn short_chains_stay_as_parsed() {
        let Statement::Query(query) = parse("SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4").unwrap()
        else {
            panic!()
        };
        assert_eq!(set_depth(&query.body), 3);
    }
}
