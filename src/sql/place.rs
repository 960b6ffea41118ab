//! Finds the place in a statement that an error is about.

use std::collections::HashSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, DataType, Expr, Function, GroupByExpr, Ident, JoinConstraint, OrderByKind, Query, Select,
    TableFactor, UnaryOperator, Value, ValueWithSpan, Visitor,
};

use super::ast::Statement;
use super::calls::called;
use super::rewrite::constraint_of;
use super::visit::{visit, visit_expressions};
use super::{name_of, span_of, span_of_names, to_span};
use crate::error::{Error, Span, sqlstate};

/// Whether [`point_at_literal`] may find a place for the error.
pub fn may_have_place(error: &Error) -> bool {
    let told = [
        sqlstate::UNDEFINED_COLUMN,
        sqlstate::UNDEFINED_OBJECT,
        sqlstate::UNDEFINED_FUNCTION,
        sqlstate::INVALID_COLUMN_REFERENCE,
        sqlstate::GROUPING,
        sqlstate::DIVISION_BY_ZERO,
        sqlstate::DATATYPE_MISMATCH,
    ];
    error.span().is_none() && (error.subject().literal.is_some() || told.contains(&error.sqlstate()))
}

/// Points an error about a text literal at the literal, if it occurs once, and one about a function or column
/// at its name.
pub fn point_at_literal(error: Error, statement: &Statement) -> Error {
    let Some(text) = error.subject().literal.clone() else { return point_at_call(error, statement) };
    let mut literals = Literals { text: &text, found: Vec::new() };
    let _ = visit(statement, &mut literals);
    match literals.found[..] {
        [place] => error.at(place),
        _ => error,
    }
}

/// Points an error about a word or text that is none of an expression's, such as a file's name, at it, if it occurs once.
pub fn point_in_text(error: Error, sql: &str) -> Error {
    let Some(text) = error.subject().literal.clone().filter(|_| error.span().is_none()) else { return error };
    let quoted = format!("'{}'", text.replace('\'', "''"));
    let is_apart = |at: usize| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        !sql[..at].ends_with(is_part) && !sql[at + text.len()..].starts_with(is_part)
    };
    let mut places: Vec<usize> = sql.match_indices(&quoted).map(|(at, _)| at).collect();
    let mut len = quoted.chars().count();
    if places.is_empty() && !text.is_empty() {
        places = sql.match_indices(&text).map(|(at, _)| at).filter(|at| is_apart(*at)).collect();
        len = text.chars().count();
    }
    let [at] = places[..] else { return error };
    let before = &sql[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    error.at(Span { line: line as u32, column: column as u32, len: len as u32 })
}

/// Tells who wrote a text in double quotes, and got an error about a column, to write it in single ones.
pub fn meant_as_text(error: Error, sql: &str) -> Error {
    let Some(span) = error.span().filter(|_| error.sqlstate() == sqlstate::UNDEFINED_COLUMN) else {
        return error;
    };
    let line = sql.lines().nth(span.line.saturating_sub(1) as usize).unwrap_or_default();
    let named = line.chars().skip(span.column.saturating_sub(1) as usize).take(span.len as usize);
    let named: String = named.collect();
    let text =
        named.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).map(|text| text.replace('\'', "''"));
    match (text, error.fix().map(str::to_owned)) {
        (Some(text), Some(columns)) if columns.starts_with("columns here are") => {
            error.hint(format!("{columns}; a text stands in single quotes: '{text}'"))
        }
        _ => error,
    }
}

/// Handles errors about a column, whose message ends with its name in quotes.
fn point_at_name(error: Error, statement: &Statement) -> Error {
    let named = error.what().strip_prefix("there is no column \"").and_then(|rest| rest.strip_suffix('"'));
    let Some(name) = named.filter(|_| error.span().is_none()).map(str::to_owned) else { return error };
    let mut names = Names { name: &name, found: Vec::new() };
    let _ = visit(statement, &mut names);
    match names.found[..] {
        [place] => error.at(place),
        _ => error,
    }
}

struct Names<'a> {
    name: &'a str,
    found: Vec<Option<Span>>,
}

impl Names<'_> {
    fn look_at(&mut self, ident: &Ident) {
        if name_of(ident) == self.name {
            self.found.push(to_span(ident.span));
        }
    }
}

impl Visitor for Names<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(ident) => self.look_at(ident),
            Expr::CompoundIdentifier(parts) => parts.last().into_iter().for_each(|ident| self.look_at(ident)),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    // USING names columns outside of expressions.
    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        for join in select.from.iter().flat_map(|from| &from.joins) {
            if let Some(JoinConstraint::Using(columns)) = constraint_of(&join.join_operator) {
                let named = columns.iter().filter_map(|column| column.0.last()?.as_ident());
                named.for_each(|ident| self.look_at(ident));
            }
        }
        ControlFlow::Continue(())
    }
}

/// Handles errors about a type, whose message ends with its name.
fn point_at_cast(error: Error, statement: &Statement) -> Error {
    let Some(name) = error.what().strip_prefix("there is no type ").map(str::to_owned) else { return error };
    let mut casts = Casts { to: &name, found: Vec::new() };
    let _ = visit(statement, &mut casts);
    match casts.found[..] {
        [place] => error.at(place),
        _ => error,
    }
}

struct Casts<'a> {
    to: &'a str,
    found: Vec<Option<Span>>,
}

impl Visitor for Casts<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Cast { data_type, .. } = expr
            && data_type.to_string().eq_ignore_ascii_case(self.to)
        {
            self.found.push(match data_type {
                DataType::Custom(name, _) => span_of(name),
                _ => span_of(expr),
            });
        }
        ControlFlow::Continue(())
    }
}

/// Handles errors about a function, whose message begins with its name.
fn point_at_call(error: Error, statement: &Statement) -> Error {
    match error.sqlstate() {
        sqlstate::UNDEFINED_COLUMN if error.what().ends_with("has no fields") => {
            return point_at_member(error, statement);
        }
        sqlstate::UNDEFINED_COLUMN => return point_at_name(error, statement),
        sqlstate::UNDEFINED_OBJECT => return point_at_cast(error, statement),
        sqlstate::INVALID_COLUMN_REFERENCE | sqlstate::GROUPING | sqlstate::DIVISION_BY_ZERO => {
            return point_at_clause(error, statement);
        }
        _ => {}
    }
    if error.span().is_some() {
        return error;
    }
    if let Some(sought) = operation(error.what()) {
        let mut operations = Operations { sought, found: Vec::new() };
        let _ = visit(statement, &mut operations);
        return match operations.found[..] {
            [place] => error.at(place),
            _ => error,
        };
    }
    if error.sqlstate() != sqlstate::UNDEFINED_FUNCTION {
        return error;
    }
    let name = error.what().split(' ').next().unwrap_or_default().to_owned();
    let mut calls = Calls { name: &name, found: Vec::new() };
    let _ = visit(statement, &mut calls);
    match calls.found[..] {
        [place] => error.at(place),
        _ => error,
    }
}

/// The operation that an error is about, as [`operator_of`] names it.
fn operation(what: &str) -> Option<&str> {
    if what.starts_with("NOT takes") {
        return Some("NOT");
    }
    if what.starts_with("LIKE compares") {
        return Some("LIKE");
    }
    if what.starts_with("WHERE takes a condition") {
        return Some("WHERE");
    }
    let operands = what.strip_prefix("there is no operator for ")?;
    operands
        .split(' ')
        .find(|word| !word.is_empty() && !word.contains(|c: char| c.is_alphanumeric() || "(),".contains(c)))
}

fn operator_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::UnaryOp { op: UnaryOperator::Not, .. } => Some("NOT".to_owned()),
        Expr::Like { .. } | Expr::ILike { .. } => Some("LIKE".to_owned()),
        Expr::BinaryOp { op, .. } => Some(op.to_string()),
        _ => None,
    }
}

struct Operations<'a> {
    sought: &'a str,
    found: Vec<Option<Span>>,
}

impl Visitor for Operations<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if operator_of(expr).is_some_and(|operator| operator == self.sought) {
            self.found.push(span_of(expr));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        if self.sought == "WHERE" {
            self.found.extend(select.selection.iter().map(span_of));
        }
        ControlFlow::Continue(())
    }
}

/// Handles the error about `d.a` for a member of a JSON value: it says what to write, if the statement has one such name.
fn point_at_member(error: Error, statement: &Statement) -> Error {
    let mut members = Members::default();
    let _ = visit(statement, &mut members);
    let Members { tables, found } = members;
    let is_table = |name: &Ident| tables.contains(&name_of(name));
    let member = found.iter().filter_map(|parts| match &parts[..] {
        [column, member] if !is_table(column) => Some((column.to_string(), member, parts)),
        [table, column, member] if is_table(table) => Some((format!("{table}.{column}"), member, parts)),
        _ => None,
    });
    match &member.collect::<Vec<_>>()[..] {
        [(column, member, parts)] => error
            .hint(format!("write {column} ->> '{}' for a part of a JSON value", member.value))
            .at(span_of_names(parts)),
        _ => error,
    }
}

#[derive(Default)]
struct Members {
    /// Names of tables, and their other names.
    tables: HashSet<String>,
    found: Vec<Vec<Ident>>,
}

impl Visitor for Members {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        match table {
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Derived { alias: Some(alias), .. } => {
                self.tables.insert(name_of(&alias.name));
            }
            TableFactor::Table { name, .. } => {
                self.tables.extend(name.0.last().and_then(|part| part.as_ident()).map(name_of));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr {
            self.found.push(parts.clone());
        }
        ControlFlow::Continue(())
    }
}

/// Handles errors about what stands in a clause, or divides by zero.
fn point_at_clause(error: Error, statement: &Statement) -> Error {
    let what = error.what().to_owned();
    let of = |clause: &str| what.strip_prefix(clause).and_then(|rest| rest.split(':').next());
    let sought = match (of("GROUP BY "), of("ORDER BY "), what.split_once(" is neither in GROUP BY")) {
        _ if error.span().is_some() => return error,
        (Some(number), ..) => Sought::Group(number),
        (_, Some(number), _) => Sought::Order(number),
        (.., Some((column, _))) => Sought::Selected(column.rsplit('.').next().unwrap_or(column)),
        _ if error.sqlstate() == sqlstate::DIVISION_BY_ZERO => Sought::Zero,
        _ if what.ends_with("cannot stand in WHERE") => Sought::AggregateInWhere,
        _ if what.ends_with("takes no WITHIN GROUP") => Sought::WithinGroup,
        _ => return error,
    };
    let mut clauses = Clauses { sought, found: Vec::new() };
    let _ = visit(statement, &mut clauses);
    match clauses.found[..] {
        [place] => error.at(place),
        _ => error,
    }
}

/// What an error about a clause is about.
enum Sought<'a> {
    /// A number in GROUP BY.
    Group(&'a str),
    /// A number in ORDER BY.
    Order(&'a str),
    /// A column in a select list.
    Selected(&'a str),
    /// A zero that something is divided by. Others may be found in the rows.
    Zero,
    /// An aggregate in WHERE.
    AggregateInWhere,
    /// A call WITHIN GROUP.
    WithinGroup,
}

struct Clauses<'a> {
    sought: Sought<'a>,
    found: Vec<Option<Span>>,
}

/// The place of a number, if `expr` is this one.
fn place_of_number(expr: &Expr, sought: &str) -> Option<Option<Span>> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::Number(number, _), span }) if number == sought => {
            Some(to_span(*span))
        }
        _ => None,
    }
}

impl Visitor for Clauses<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if let (Sought::Order(number), Some(order)) = (&self.sought, &query.order_by)
            && let OrderByKind::Expressions(keys) = &order.kind
        {
            self.found.extend(keys.iter().filter_map(|key| place_of_number(&key.expr, number)));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        match (&self.sought, &select.group_by, &select.selection) {
            (Sought::Group(number), GroupByExpr::Expressions(keys, _), _) => {
                self.found.extend(keys.iter().filter_map(|key| place_of_number(key, number)));
            }
            (Sought::Selected(column), ..) => {
                let mut names = Names { name: column, found: Vec::new() };
                let _ = visit(&select.projection, &mut names);
                self.found.append(&mut names.found);
            }
            (Sought::AggregateInWhere, _, Some(condition)) => {
                let _ = visit_expressions(condition, |expr| {
                    match expr {
                        Expr::Function(call) if is_aggregate(call) => self.found.push(span_of(expr)),
                        // It may have aggregates of its own.
                        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => {
                            self.found.push(None)
                        }
                        _ => {}
                    }
                    ControlFlow::<()>::Continue(())
                });
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let (
            Sought::Zero,
            Expr::BinaryOp { op: BinaryOperator::Divide | BinaryOperator::Modulo, right, .. },
        ) = (&self.sought, expr)
        {
            // Of several, any may have found a zero in the rows.
            self.found.push(place_of_number(right, "0").flatten());
        }
        if let (Sought::WithinGroup, Expr::Function(call)) = (&self.sought, expr)
            && !call.within_group.is_empty()
        {
            self.found.push(span_of(&call.name));
        }
        ControlFlow::Continue(())
    }
}

/// Is it a call of one of the aggregates that conditions are usually about?
fn is_aggregate(call: &Function) -> bool {
    called(call).is_some_and(|name| ["count", "sum", "min", "max", "avg"].contains(&&*name))
}

struct Calls<'a> {
    name: &'a str,
    found: Vec<Option<Span>>,
}

impl Visitor for Calls<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Function(call) = expr
            && let Some(name) = call.name.0.last().and_then(|part| part.as_ident())
            && name.value.eq_ignore_ascii_case(self.name)
        {
            self.found.push(to_span(name.span));
        }
        ControlFlow::Continue(())
    }
}

struct Literals<'a> {
    text: &'a str,
    found: Vec<Option<Span>>,
}

impl Visitor for Literals<'_> {
    type Break = ();

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<()> {
        if matches!(&value.value, Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) | Value::Placeholder(text) if text == self.text)
        {
            self.found.push(to_span(value.span));
        }
        ControlFlow::Continue(())
    }
}
