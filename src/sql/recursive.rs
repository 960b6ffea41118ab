//! WITH RECURSIVE, so that DataFusion loses nothing of it.
//!
//! DataFusion 55.2 takes the two sides of the UNION and passes over whatever else the query has: its own WITH, its LIMIT.
//! It looks for the query's name in the second side only. What a parameter of the first side is, it does not ask in time
//! for the second. And what a step computes becomes what the first rows are, whatever is lost by that.

use std::ops::ControlFlow;

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    Cte, Expr, Query, SelectItem, SetExpr, SetOperator, Value, VisitMut, VisitorMut, With, visit_relations,
};

use super::rewrite::{call_of, parameter_number};
use super::{name_of, parse_expr, parse_query, span_of, span_of_name};
use crate::error::{Error, Result};
use crate::value::ColumnType;

/// Prepares the recursive queries in a query; false, if there is none. `type_of` tells of what type a parameter is.
/// Errors: one reads itself in its first rows, or twice; it is in an ORDER BY.
pub fn prepare_recursions(query: &mut Query, type_of: &dyn Fn(usize) -> Option<ColumnType>) -> Result<bool> {
    let mut preparing = Preparing { type_of, any: false };
    match VisitMut::visit(query, &mut preparing) {
        ControlFlow::Continue(()) => Ok(preparing.any),
        ControlFlow::Break(error) => Err(error),
    }
}

/// Digits of a DECIMAL, at the most.
const DIGITS_MAX: u8 = 38;

struct Preparing<'a> {
    type_of: &'a dyn Fn(usize) -> Option<ColumnType>,
    any: bool,
}

impl VisitorMut for Preparing<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let with = query.with.as_mut().filter(|with| with.recursive);
        for cte in with.into_iter().flat_map(|with| &mut with.cte_tables) {
            if let Err(error) = self.prepare(cte) {
                return ControlFlow::Break(error);
            }
        }
        ControlFlow::Continue(())
    }
}

impl Preparing<'_> {
    fn prepare(&mut self, cte: &mut Cte) -> Result<()> {
        let name = name_of(&cte.alias.name);
        let query = &mut *cte.query;
        let SetExpr::SetOperation { op: SetOperator::Union, left, right, .. } = &mut *query.body else {
            return Ok(());
        };
        let reads_itself = times_read(right, &name) > 0;
        if let Some(order) = query.order_by.as_ref().filter(|_| reads_itself) {
            return Err(Error::invalid(format!("ORDER BY inside the recursive query \"{name}\""))
                .why("its rows come step by step")
                .hint(format!("order what reads it: SELECT ... FROM {} ORDER BY ...", cte.alias.name))
                .at(span_of(order)));
        }
        if query.with.is_some()
            || query.order_by.is_some()
            || query.limit_clause.is_some()
            || query.fetch.is_some()
        {
            return inside_itself(cte);
        }
        if times_read(left, &name) > 0 || times_read(right, &name) > 1 {
            return Err(Error::invalid(format!(
                "the recursive query \"{name}\" reads itself in several places"
            ))
            .why("it can do so once, behind its last UNION")
            .hint("read it once there, and join what tells the steps apart")
            .at(span_of_name(&cte.alias.name)));
        }
        if reads_itself {
            self.any = true;
            each_output(left, &mut |output| self.give_type(output));
            each_output(right, &mut mark);
        }
        Ok(())
    }

    /// A parameter that stands alone gets the type of its value; a decimal as many digits as there can be before the point.
    fn give_type(&self, output: &mut Expr) {
        let Expr::Value(value) = &*output else { return };
        let ty = match &value.value {
            Value::Placeholder(name) => parameter_number(name).and_then(|at| (self.type_of)(at - 1)),
            Value::Number(digits, _) => {
                digits.split_once('.').and_then(|(_, fraction)| decimal(fraction.len()))
            }
            _ => None,
        };
        let ty = match ty {
            Some(ColumnType::Decimal { scale, .. }) => decimal(scale.into()),
            ty => ty,
        };
        if let Some(cast) = ty.and_then(|ty| parse_expr(&format!("CAST({value} AS {ty})")).ok()) {
            *output = cast;
        }
    }
}

fn decimal(scale: usize) -> Option<ColumnType> {
    let scale = u8::try_from(scale).ok().filter(|scale| *scale <= DIGITS_MAX)?;
    Some(ColumnType::Decimal { precision: DIGITS_MAX, scale })
}

/// A CAST at the top of a step is one that DataFusion put there: this, which comes to nothing, is above the others.
fn mark(output: &mut Expr) {
    if !matches!(output, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_)) {
        let computed = std::mem::replace(output, Expr::value(Value::Null));
        *output = call_of("coalesce", [computed]);
    }
}

/// How often a part of a query reads what has this name.
fn times_read(part: &SetExpr, name: &str) -> usize {
    let mut times = 0;
    let _: ControlFlow<()> = visit_relations(part, |relation| {
        let is_it =
            matches!(&relation.0[..], [part] if part.as_ident().is_some_and(|part| name_of(part) == name));
        times += usize::from(is_it);
        ControlFlow::Continue(())
    });
    times
}

/// What a query selects, if it is no UNION.
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
        _ => {}
    }
}

/// `c AS (WITH ... first UNION step LIMIT n)` becomes `c AS (WITH ... (WITH RECURSIVE c AS (first UNION step) SELECT *
/// FROM c LIMIT n))`.
fn inside_itself(cte: &mut Cte) -> Result<()> {
    let name = &cte.alias.name;
    let mut reading = parse_query(&format!("SELECT * FROM {name}"))?;
    let outer = parse_query(&format!("SELECT * FROM {name}"))?;
    let mut query = std::mem::replace(&mut *cte.query, outer);
    cte.query.with = query.with.take();
    reading.order_by = query.order_by.take();
    reading.limit_clause = query.limit_clause.take();
    reading.fetch = query.fetch.take();
    let inner = Cte { query: Box::new(query), ..cte.clone() };
    reading.with =
        Some(With { with_token: AttachedToken::empty(), recursive: true, cte_tables: vec![inner] });
    *cte.query.body = SetExpr::Query(Box::new(reading));
    Ok(())
}
