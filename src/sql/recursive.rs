//! Rewrites WITH RECURSIVE so that DataFusion does not ignore parts of it.
//!
//! DataFusion 55.2 takes the two sides of the UNION and ignores the rest of the query: its own WITH, its
//! LIMIT. It looks for the query's name in the second side only. It resolves the type of a parameter in the
//! first side too late for the second. And it casts the results of the steps to the types of the first rows,
//! even if that loses digits.

use std::ops::ControlFlow;

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    Cte, Expr, ObjectName, Query, SelectItem, SetExpr, SetOperator, SetQuantifier, UnaryOperator, Value,
    Visitor, VisitorMut, With,
};

use super::rewrite::{call, cast_to, parameter_place};
use super::visit::{or_break, or_error, visit, visit_mut};
use super::{name_of, parse_query, span_of, span_of_name};
use crate::error::{Error, Result};
use crate::value::{ColumnType, DECIMAL_DIGITS_MAX};

/// Prepares the recursive queries in a query; false if there are none. `type_of` gives the type of a
/// parameter. Errors: a query that reads itself other than once in its step, or that has an ORDER BY.
pub fn prepare_recursions(query: &mut Query, type_of: &dyn Fn(usize) -> Option<ColumnType>) -> Result<bool> {
    let mut preparing = Preparing { type_of, any: false };
    or_error(visit_mut(query, &mut preparing)).map(|()| preparing.any)
}

struct Preparing<'a> {
    type_of: &'a dyn Fn(usize) -> Option<ColumnType>,
    any: bool,
}

impl VisitorMut for Preparing<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let with = query.with.as_mut().filter(|with| with.recursive);
        let mut ctes = with.into_iter().flat_map(|with| &mut with.cte_tables);
        or_break(ctes.try_for_each(|cte| self.prepare(cte)))
    }
}

impl Preparing<'_> {
    fn prepare(&mut self, cte: &mut Cte) -> Result<()> {
        let name = name_of(&cte.alias.name);
        let query = &mut *cte.query;
        while !has_surroundings(query) && matches!(*query.body, SetExpr::Query(_)) {
            let whole = std::mem::replace(query, parse_query("SELECT 1")?);
            if let SetExpr::Query(inner) = *whole.body {
                *query = *inner;
            }
        }
        if hides(query, &name) || times_read(&query.body, &name) == 0 {
            // Here, too, DataFusion ignores the clauses around a UNION.
            if has_surroundings(query) && matches!(*query.body, SetExpr::SetOperation { .. }) {
                let whole = std::mem::replace(query, parse_query("SELECT 1")?);
                *query.body = SetExpr::Query(Box::new(whole));
            }
            return Ok(());
        }
        if let Some(order) = &query.order_by {
            return Err(Error::invalid(format!("ORDER BY inside the recursive query \"{name}\""))
                .why("its rows come step by step")
                .hint(format!("order what reads it: SELECT ... FROM {} ORDER BY ...", cte.alias.name))
                .at(span_of(order)));
        }
        if has_surroundings(query) {
            return inside_itself(cte);
        }
        let error = |what: &str| Error::invalid(format!("the recursive query \"{name}\" {what}"));
        let (left, right) = match &mut *query.body {
            SetExpr::SetOperation { op: SetOperator::Union, left, right, set_quantifier } => {
                if let SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName =
                    set_quantifier
                {
                    return Err(error("has a UNION BY NAME")
                        .hint("name the columns of its step in the order of the first ones")
                        .at(span_of_name(&cte.alias.name)));
                }
                (left, right)
            }
            _ => {
                return Err(error("reads itself, and not behind a UNION")
                    .why("it needs rows to begin with")
                    .hint("write first rows UNION ALL SELECT ... FROM it")
                    .at(span_of_name(&cte.alias.name)));
            }
        };
        if times_read(left, &name) > 0 || times_read(right, &name) > 1 {
            return Err(error("reads itself in several places")
                .why("it can do so once, behind its last UNION")
                .hint("read it once there, and join what tells the steps apart")
                .at(span_of_name(&cte.alias.name)));
        }
        self.any = true;
        each_output(left, &mut |output| self.give_type(output));
        each_output(right, &mut mark);
        Ok(())
    }

    /// Casts a lone parameter to the type of its value; a decimal gets as many digits before the point as
    /// possible.
    fn give_type(&self, output: &mut Expr) {
        let ty = match self.type_alone(output) {
            Some(ColumnType::Decimal { scale, .. }) => decimal(scale.into()),
            ty => ty,
        };
        if let Some(cast) = ty.and_then(|ty| cast_to(output, ty)) {
            *output = cast;
        }
    }

    fn type_alone(&self, output: &Expr) -> Option<ColumnType> {
        match output {
            Expr::Nested(inner) => self.type_alone(inner),
            Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => self.type_alone(expr),
            Expr::Value(value) => match &value.value {
                Value::Placeholder(name) => parameter_place(name).and_then(self.type_of),
                Value::Number(digits, _) if !digits.contains(['e', 'E']) => {
                    digits.split_once('.').and_then(|(_, fraction)| decimal(fraction.len()))
                }
                _ => None,
            },
            _ => None,
        }
    }
}

fn decimal(scale: usize) -> Option<ColumnType> {
    let scale = u8::try_from(scale).ok().filter(|scale| *scale <= DECIMAL_DIGITS_MAX)?;
    Some(ColumnType::Decimal { precision: DECIMAL_DIGITS_MAX, scale })
}

/// Marks a computed column of a step with a no-op call, to tell its own casts from those that DataFusion puts
/// on top.
fn mark(output: &mut Expr) {
    if !matches!(output, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_)) {
        let computed = std::mem::replace(output, Expr::value(Value::Null));
        *output = call("coalesce", [computed]);
    }
}

/// Does the query have clauses around its body?
fn has_surroundings(query: &Query) -> bool {
    query.with.is_some() || query.order_by.is_some() || query.limit_clause.is_some() || query.fetch.is_some()
}

/// Does its own WITH redefine the name?
fn hides(query: &Query, name: &str) -> bool {
    let mut given = query.with.iter().flat_map(|with| &with.cte_tables);
    given.any(|cte| name_of(&cte.alias.name) == name)
}

/// How often a part of a query reads the outer query of this name.
fn times_read(part: &SetExpr, name: &str) -> usize {
    let mut reading = Reading { name, hidden: 0, times: 0 };
    let _ = visit(part, &mut reading);
    reading.times
}

struct Reading<'n> {
    name: &'n str,
    /// Number of queries around the position that redefine the name.
    hidden: usize,
    times: usize,
}

impl Visitor for Reading<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.hidden += usize::from(hides(query, self.name));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.hidden -= usize::from(hides(query, self.name));
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let is_it = matches!(&relation.0[..], [part] if part.as_ident().is_some_and(|part| name_of(part) == self.name));
        self.times += usize::from(is_it && self.hidden == 0);
        ControlFlow::Continue(())
    }
}

/// Calls `change` for each output of a query.
fn each_output(query: &mut SetExpr, change: &mut dyn FnMut(&mut Expr)) {
    match query {
        SetExpr::Select(select) => {
            for item in &mut select.projection {
                if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                    change(expr);
                }
            }
        }
        SetExpr::Values(values) => values.rows.iter_mut().flat_map(|row| row.iter_mut()).for_each(change),
        SetExpr::Query(query) => each_output(&mut query.body, change),
        SetExpr::SetOperation { left, right, .. } => {
            each_output(left, change);
            each_output(right, change);
        }
        _ => {}
    }
}

/// Rewrites `c AS (WITH ... first UNION step LIMIT n)` as `c AS (WITH ... (WITH RECURSIVE c AS (first UNION
/// step) SELECT * FROM c LIMIT n))`.
fn inside_itself(cte: &mut Cte) -> Result<()> {
    let mut reading = parse_query(&format!("SELECT * FROM {}", cte.alias.name))?;
    let mut query = std::mem::replace(&mut *cte.query, reading.clone());
    cte.query.with = query.with.take();
    reading.limit_clause = query.limit_clause.take();
    reading.fetch = query.fetch.take();
    let inner = Cte { query: Box::new(query), ..cte.clone() };
    reading.with =
        Some(With { with_token: AttachedToken::empty(), recursive: true, cte_tables: vec![inner] });
    *cte.query.body = SetExpr::Query(Box::new(reading));
    Ok(())
}
