//! Normalises parsed statements to the form the engine expects.
//!
//! `normalise` runs at the end of every parse; [`parameter_count`] and [`mentions_rowkey`] inspect a
//! statement.

use std::ops::ControlFlow;

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, DataType, ExactNumberInfo, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Ident, JoinConstraint,
    JoinOperator, LimitClause, ObjectName, OrderBy, OrderByKind, Query, Select, SetExpr, TableFactor,
    TableWithJoins, UnaryOperator, Value, ValueWithSpan, Visit, Visitor, VisitorMut,
};

use super::ast::Statement;
use super::groups;
use super::hints::parse_hints;
use super::parser::{column_type, parse_expr, text_limit};
use super::same::without_repeats;
use super::shape::{Copies, balance};
use super::star::{excludes_rowkey, star_options};
use super::visit::{or_break, or_error, visit, visit_mut};
use super::{
    as_of, calls, dumped, hoisted, in_values, intervals, json_paths, name_of, nested_join, outputs, refused,
    row_values, span_of, table_functions, values_of_columns, windows,
};
use crate::error::{Error, Result, sqlstate};
use crate::value::ColumnType;

/// The pseudo-column of every table and index table.
pub const ROWKEY: &str = "rowkey";

/// Parameters of a statement (count), at most, as in PostgreSQL's protocol.
const PARAMETERS_MAX: usize = 65_535;

/// Expands `a < b < c` to `a < b AND b < c` and comparisons of rows to comparisons of elements; turns FLOAT
/// in casts into DOUBLE (DataFusion's FLOAT has 32 bits) and casts to VARCHAR(n) into `left`; puts intervals
/// into units; balances long chains. Outputs are called by their text before all this.
///
/// Errors: a statement that writes inside a query; SELECT INTO; what is [refused]; parameters that are not
/// `$n`, or in a definition; a number that is too large; LIMIT for conditions that are too long when
/// expanded.
pub(super) fn normalise(statement: &mut Statement) -> Result<()> {
    changed_rows(statement).map_or(Ok(()), row_values::spread_lookups)?;
    or_error(visit_mut(statement, &mut Normaliser::default()))?;
    let definition = matches!(
        statement,
        Statement::CreateTable(_)
            | Statement::CreateIndex(_)
            | Statement::CreateView(_)
            | Statement::AlterTable(_)
            | Statement::AlterTogether(_)
    );
    if definition && parameter_count(statement) > 0 {
        return Err(Error::invalid(format!("{} cannot take parameters", statement.kind_name()))
            .why("what it defines outlives the values")
            .hint("write the values into the statement")
            .state(sqlstate::SYNTAX));
    }
    Ok(())
}

/// The WHERE of an UPDATE or DELETE.
fn changed_rows(statement: &mut Statement) -> Option<&mut Expr> {
    match statement {
        Statement::Update(update) => update.filter.as_mut(),
        Statement::Delete(delete) => delete.filter.as_mut(),
        Statement::Explain(explain) => changed_rows(&mut explain.statement),
        Statement::Prepare(prepare) => changed_rows(&mut prepare.statement),
        _ => None,
    }
}

/// Number of the highest parameter `$n` in a statement, query or expression; 0 without parameters.
pub fn parameter_count(node: &impl Visit) -> usize {
    struct Highest(usize);
    impl Visitor for Highest {
        type Break = ();
        fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<()> {
            if let Value::Placeholder(name) = &value.value {
                self.0 = self.0.max(parameter_place(name).map_or(0, |at| at + 1));
            }
            ControlFlow::Continue(())
        }

        fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
            self.0 = self.0.max(as_of::parameter_of(name).map_or(0, |at| at + 1));
            ControlFlow::Continue(())
        }
    }
    let mut highest = Highest(0);
    let _ = visit(node, &mut highest);
    highest.0
}

/// Position of a parameter by its name: of `$1`, 0.
pub fn parameter_place(name: &str) -> Option<usize> {
    let number = name.strip_prefix('$')?.parse().ok().filter(|n| (1..=PARAMETERS_MAX).contains(n))?;
    Some(number - 1)
}

/// Does a statement, query or expression name the column `rowkey`, in whatever case or table?
pub fn mentions_rowkey(node: &impl Visit) -> bool {
    visit(node, &mut FindRowkey).is_break()
}

struct FindRowkey;

impl Visitor for FindRowkey {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) => found(is_rowkey(name)),
            Expr::CompoundIdentifier(parts) => found(parts.last().is_some_and(is_rowkey)),
            _ => ControlFlow::Continue(()),
        }
    }

    // EXCLUDE and USING name columns outside of expressions.
    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let excluded = select.projection.iter().filter_map(star_options).any(excludes_rowkey);
        found(excluded || select.from.iter().any(joins_on_rowkey))
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::NestedJoin { table_with_joins, .. } => found(joins_on_rowkey(table_with_joins)),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn joins_on_rowkey(table: &TableWithJoins) -> bool {
    table.joins.iter().filter_map(|join| constraint_of(&join.join_operator)).any(|constraint| {
        matches!(constraint, JoinConstraint::Using(columns)
            if columns.iter().any(|c| c.0.last().and_then(|p| p.as_ident()).is_some_and(is_rowkey)))
    })
}

fn found(it_is: bool) -> ControlFlow<()> {
    if it_is { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

pub(super) fn is_rowkey(name: &Ident) -> bool {
    name_of(name) == ROWKEY
}

/// The ON, USING or NATURAL of a join.
pub(super) fn constraint_of(operator: &JoinOperator) -> Option<&JoinConstraint> {
    match operator {
        JoinOperator::Join(c)
        | JoinOperator::Inner(c)
        | JoinOperator::Left(c)
        | JoinOperator::LeftOuter(c)
        | JoinOperator::Right(c)
        | JoinOperator::RightOuter(c)
        | JoinOperator::FullOuter(c)
        | JoinOperator::CrossJoin(c)
        | JoinOperator::Semi(c)
        | JoinOperator::LeftSemi(c)
        | JoinOperator::RightSemi(c)
        | JoinOperator::Anti(c)
        | JoinOperator::LeftAnti(c)
        | JoinOperator::RightAnti(c)
        | JoinOperator::StraightJoin(c) => Some(c),
        JoinOperator::AsOf { constraint, .. } => Some(constraint),
        JoinOperator::CrossApply
        | JoinOperator::OuterApply
        | JoinOperator::ArrayJoin
        | JoinOperator::LeftArrayJoin
        | JoinOperator::InnerArrayJoin => None,
    }
}

/// The constraint of a join that outputs rows of both sides.
pub(super) fn constraint_mut(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => Some(constraint),
        _ => None,
    }
}

#[derive(Default)]
struct Normaliser {
    copies: Copies,
    /// The texts of the outputs of each SELECT around the current place, by which they are named.
    written: Vec<Vec<Option<String>>>,
}

impl VisitorMut for Normaliser {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let plain = refused::check_query(query).and_then(|()| fetch_as_limit(query));
        or_break(plain.and_then(|()| refused::check_limits(query)))?;
        if let Some(OrderBy { kind: OrderByKind::Expressions(order), .. }) = &mut query.order_by {
            without_repeats(order);
        }
        let writes = match &mut *query.body {
            SetExpr::Insert(_) => "INSERT",
            SetExpr::Update(_) => "UPDATE",
            SetExpr::Delete(_) => "DELETE",
            SetExpr::Merge(_) => "MERGE",
            body => {
                balance(body);
                return ControlFlow::Continue(());
            }
        };
        ControlFlow::Break(
            match query.with {
                Some(_) => {
                    Error::unsupported(format!("{writes} cannot stand behind WITH")).hint(match writes {
                        "INSERT" => "write INSERT INTO t WITH ... SELECT ...",
                        "UPDATE" => "write UPDATE t SET ... WHERE id IN (WITH ... SELECT ...)",
                        "DELETE" => "write DELETE FROM t WHERE id IN (WITH ... SELECT ...)",
                        _ => "write INSERT ... ON CONFLICT, or UPSERT",
                    })
                }
                None => Error::unsupported(format!("{writes} cannot stand inside a query")).hint(
                    "INSERT INTO t WITH ... SELECT ... works; or write two statements in BEGIN ... COMMIT",
                ),
            }
            .at(span_of(query)),
        )
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        or_break(windows::of_order(query))
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        or_break(windows::of_select(select))?;
        if let Some(written) = self.written.pop() {
            outputs::name_as_written(select, written);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        self.written.push(select.projection.iter().map(outputs::written).collect());
        or_break(select.optimizer_hints.iter().try_for_each(|hint| parse_hints(hint).map(drop)))?;
        or_break(refused::check_select(select))?;
        or_break(table_functions::into_from(select))?;
        hoisted::out_of_subqueries(select);
        or_break(groups::written_out(&mut select.group_by, &mut self.copies))?;
        or_break(select.selection.as_mut().map_or(Ok(()), row_values::spread_lookups))?;
        match &select.into {
            None => ControlFlow::Continue(()),
            Some(into) => {
                let hint = format!("write CREATE TABLE {} AS SELECT ...", into.name);
                ControlFlow::Break(
                    Error::unsupported("SELECT INTO makes no table here").hint(hint).at(span_of(&into.name)),
                )
            }
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        table_functions::as_lateral(factor);
        let plain = refused::check_table(factor)
            .and_then(|()| as_of::resolve(factor))
            .and_then(|()| nested_join::as_subquery(factor))
            .and_then(|()| values_of_columns::as_union(factor));
        or_break(plain)
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Expr::BinaryOp { op, left, .. } = expr
            && is_order(op)
            && is_comparison(left)
        {
            return or_break(unchain(expr, &mut self.copies));
        }
        if let Expr::Between { low, .. } = expr
            && matches!(**low, Expr::Prior(_))
        {
            return or_break(either_way_round(expr, &mut self.copies));
        }
        while let Expr::Collate { expr: text, collation } = expr
            && refused::is_byte_order(collation)
        {
            *expr = take(text);
        }
        negate_outside(expr);
        dumped::as_written(expr);
        calls::planned(expr);
        or_break(json_paths::written_out(expr))?;
        intervals::in_units(expr);
        or_break(refused::check_expr(expr))?;
        or_break(in_values::as_select(expr))?;
        or_break(row_values::spread(expr, &mut self.copies))?;
        match expr {
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => keep_apart(expr),
            Expr::Cast { .. } => or_break(plain_cast(expr))?,
            Expr::TypedString(typed) => {
                widen_float(&mut typed.data_type);
                if is_decimal(&typed.data_type) {
                    or_break(
                        column_type(&typed.data_type).map(drop).map_err(|e| e.at(span_of(&typed.value))),
                    )?;
                }
            }
            Expr::Function(Function { args: FunctionArguments::List(args), .. }) => {
                for clause in &mut args.clauses {
                    if let FunctionArgumentClause::OrderBy(order) = clause {
                        without_repeats(order);
                    }
                }
            }
            _ => balance(expr),
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<Error> {
        match &value.value {
            Value::Placeholder(name) if parameter_place(name).is_none() => {
                let error = Error::invalid(format!("{name} is not a parameter"))
                    .why(format!("parameters are $1 to ${PARAMETERS_MAX}, or ?"))
                    .state(sqlstate::SYNTAX);
                let error = match name.strip_prefix(':') {
                    Some(variable) => error.hint(format!(
                        "in the shell, .set {variable} VALUE gives it a value; on the command line, --set \
                         {variable}=VALUE"
                    )),
                    None => error,
                };
                ControlFlow::Break(error.at(span_of(value)))
            }
            Value::Number(digits, _) if crate::value::Value::number(digits).is_none() => {
                let error = Error::invalid("this number is out of range");
                let error = match digits.contains(['e', 'E']) {
                    true => error.why("the largest is about 1.8e308"),
                    false => error
                        .why("a decimal has 38 digits at the most")
                        .hint("write fewer digits, or a DOUBLE, with an exponent: 1e40"),
                };
                ControlFlow::Break(error.state(sqlstate::OUT_OF_RANGE).at(span_of(value)))
            }
            _ => or_break(refused::plain_text(value)),
        }
    }
}

/// `FETCH FIRST n ROWS ONLY` becomes `LIMIT n`. Errors: WITH TIES, PERCENT; both FETCH and LIMIT.
fn fetch_as_limit(query: &mut Query) -> Result<()> {
    let Some(fetch) = query.fetch.take() else { return Ok(()) };
    if fetch.with_ties || fetch.percent {
        return Err(Error::unsupported("FETCH WITH TIES or PERCENT is not supported")
            .hint("write FETCH FIRST n ROWS ONLY; rank() OVER (ORDER BY ...) tells ties"));
    }
    let (offset, limit_by) = match query.limit_clause.take() {
        None => (None, Vec::new()),
        Some(LimitClause::LimitOffset { limit: None, offset, limit_by }) => (offset, limit_by),
        Some(_) => {
            return Err(Error::invalid("FETCH and LIMIT are one clause")
                .hint("leave one of them out")
                .state(sqlstate::SYNTAX));
        }
    };
    let one = || Expr::value(Value::Number("1".to_owned(), false));
    let limit = Some(fetch.quantity.unwrap_or_else(one));
    query.limit_clause = Some(LimitClause::LimitOffset { limit, offset, limit_by });
    Ok(())
}

/// Turns `(NOT EXISTS (..)) IS NULL`, as sqlparser reads it, into `NOT (EXISTS (..) IS NULL)`: NOT binds last.
fn negate_outside(expr: &mut Expr) {
    let (Expr::IsNull(asked)
    | Expr::IsNotNull(asked)
    | Expr::IsTrue(asked)
    | Expr::IsNotTrue(asked)
    | Expr::IsFalse(asked)
    | Expr::IsNotFalse(asked)
    | Expr::IsUnknown(asked)
    | Expr::IsNotUnknown(asked)) = expr
    else {
        return;
    };
    if let Expr::Exists { negated: negated @ true, .. } = &mut **asked {
        *negated = false;
        *expr = Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(take(expr)) };
    }
}

/// Keeps the parentheses in `-(-1)`: `--1` would be a comment.
fn keep_apart(negated: &mut Expr) {
    if matches!(negated, Expr::UnaryOp { op: UnaryOperator::Minus, .. }) {
        let inner = take(negated);
        *negated = Expr::Nested(Box::new(inner));
    }
}

/// Turns FLOAT into DOUBLE, and `CAST(x AS VARCHAR(n))` into the first `n` characters of `x`. Errors:
/// TIMESTAMP(n); a DECIMAL without usable digits; unknown types with something in parentheses.
fn plain_cast(cast: &mut Expr) -> Result<()> {
    let place = span_of(&*cast);
    let Expr::Cast { data_type, .. } = cast else { return Ok(()) };
    widen_float(data_type);
    // Modifiers of an unknown type would print without their quotes.
    let is_unknown = matches!(data_type, DataType::Custom(_, modifiers) if !modifiers.is_empty());
    let is_time =
        matches!(data_type, DataType::Timestamp(..) | DataType::Datetime(_) | DataType::TimestampNtz(_));
    if is_unknown || is_time || is_decimal(data_type) {
        column_type(data_type).map_err(|e| e.at(place))?;
    }
    let Some(limit) = text_limit(data_type) else { return Ok(()) };
    *data_type = DataType::Varchar(None);
    *cast = call("left", [take(cast), Expr::value(Value::Number(limit.to_string(), false))]);
    Ok(())
}

/// `CASE WHEN condition THEN result ELSE otherwise END`; `otherwise`: NULL if it is left out.
pub fn case_when(condition: Expr, result: Expr, otherwise: Option<Expr>) -> Expr {
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition, result }],
        else_result: otherwise.map(Box::new),
    }
}

/// A cast to a type as it is written.
pub fn cast_as(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

/// A cast to a type; `None` if the type cannot be written.
pub(super) fn cast_to(expr: &Expr, ty: ColumnType) -> Option<Expr> {
    parse_expr(&format!("CAST({expr} AS {ty})")).ok()
}

/// An argument of a function.
pub fn unnamed(expr: Expr) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
}

/// A call of a function with these arguments.
pub fn call(name: &str, args: impl IntoIterator<Item = Expr>) -> Expr {
    Expr::Function(Function {
        name: vec![Ident::new(name)].into(),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: args.into_iter().map(unnamed).collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// DataFusion has longer decimals, and makes 38 digits of their casts without a word.
fn is_decimal(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Decimal(_) | DataType::Numeric(_))
}

fn widen_float(data_type: &mut DataType) {
    if matches!(data_type, DataType::Float(_)) {
        *data_type = DataType::Double(ExactNumberInfo::None);
    }
}

fn is_order(op: &BinaryOperator) -> bool {
    matches!(op, BinaryOperator::Lt | BinaryOperator::LtEq | BinaryOperator::Gt | BinaryOperator::GtEq)
}

/// A comparison that is not in parentheses.
fn is_comparison(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryOp { op, .. } if is_order(op))
}

/// Expands `((a < b) < c) < d`, parsed from `a < b < c < d`, to `a < b AND b < c AND c < d`. Errors: too many
/// copies.
fn unchain(chain: &mut Expr, copies: &mut Copies) -> Result<()> {
    // The links from the last to the first: (c < d), (b < c), (a < b).
    let mut links: Vec<Expr> = Vec::new();
    let mut rest = take(chain);
    while let Expr::BinaryOp { left, op, right } = rest {
        if !(is_order(&op) && is_comparison(&left)) {
            links.push(Expr::BinaryOp { left, op, right });
            break;
        }
        let middle = match &*left {
            Expr::BinaryOp { right, .. } => right,
            _ => &left,
        };
        copies.count(middle, 1)?;
        let middle = middle.clone();
        links.push(Expr::BinaryOp { left: middle, op, right });
        rest = *left;
    }
    let all = links.into_iter().rev().reduce(|all, link| Expr::BinaryOp {
        left: Box::new(all),
        op: BinaryOperator::And,
        right: Box::new(link),
    });
    if let Some(all) = all {
        // Parentheses keep it a single operand.
        *chain = Expr::Nested(Box::new(all));
    }
    Ok(())
}

/// Expands `a BETWEEN SYMMETRIC x AND y`, as marked by [the dialect](super::dialect), to `(a BETWEEN x AND y
/// OR a BETWEEN y AND x)`; NOT BETWEEN likewise. Errors: too many copies.
fn either_way_round(between: &mut Expr, copies: &mut Copies) -> Result<()> {
    copies.count(between, 1)?;
    let Expr::Between { expr, negated, low, high } = take(between) else { return Ok(()) };
    let low = match *low {
        Expr::Prior(bound) => bound,
        other => Box::new(other),
    };
    let swapped = Expr::Between { expr: expr.clone(), negated, low: high.clone(), high: low.clone() };
    let op = if negated { BinaryOperator::And } else { BinaryOperator::Or };
    let left = Box::new(Expr::Between { expr, negated, low, high });
    *between = Expr::Nested(Box::new(Expr::BinaryOp { left, op, right: Box::new(swapped) }));
    Ok(())
}

/// The expression, in whose place NULL is left.
pub fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::Value(Value::Null.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::parse;

    fn rewritten(sql: &str) -> String {
        parse(sql).unwrap().to_string()
    }

    #[test]
    fn chained_comparisons() {
        let cases = [
            ("'abc' < rowkey < 'abcx'", "('abc' < rowkey AND rowkey < 'abcx')"),
            ("1 <= a < b <= 9", "(1 <= a AND a < b AND b <= 9)"),
            ("9 > a >= 1 AND b", "(9 > a AND a >= 1) AND b"),
            ("NOT 1 < a + 1 < 3", "NOT (1 < a + 1 AND a + 1 < 3)"),
            ("(1 < a) < b", "(1 < a) < b"),
            ("a < b", "a < b"),
            ("f(1 < a < 2) = x", "f((1 < a AND a < 2)) = x"),
            ("1 < a < (2 < b < 3)", "(1 < a AND a < ((2 < b AND b < 3)))"),
        ];
        for (from, to) in cases {
            assert_eq!(
                rewritten(&format!("SELECT 1 FROM t WHERE {from}")),
                format!("SELECT 1 FROM t WHERE {to}")
            );
            assert_eq!(
                rewritten(&format!("DELETE FROM t WHERE {from}")),
                format!("DELETE FROM t WHERE {to}")
            );
        }
    }

    #[test]
    fn parameters_are_numbered_from_left_to_right() {
        let statement =
            parse("UPDATE t SET a = ?, b = ? + 1 WHERE c IN (SELECT d FROM u WHERE e=?)").unwrap();
        assert_eq!(
            statement.to_string(),
            "UPDATE t SET a = $1, b = $2 + 1 WHERE c IN (SELECT d FROM u WHERE e = $3)"
        );
        assert_eq!(parameter_count(&statement), 3);
        assert_eq!(parameter_count(&parse("SELECT $7, $2").unwrap()), 7);
        assert_eq!(parameter_count(&parse("SELECT '?'").unwrap()), 0);
    }

    #[test]
    fn float_is_64_bits() {
        assert_eq!(
            rewritten("SELECT CAST(a AS FLOAT), b::float, c::real"),
            r#"SELECT CAST(a AS DOUBLE) AS "CAST(a AS FLOAT)", b::DOUBLE AS "b::FLOAT", c::REAL"#
        );
    }

    #[test]
    fn rowkey_is_found_wherever_it_is_named() {
        for sql in [
            "SELECT rowkey FROM t",
            "SELECT 1 FROM t WHERE t.ROWKEY = 'a'",
            "SELECT 1 FROM (SELECT a FROM t ORDER BY rowkey) x",
            "SELECT * EXCLUDE (rowkey) FROM t",
            "SELECT * FROM t JOIN u USING (rowkey)",
            "SELECT count(*) FROM (t JOIN u USING (rowkey))",
            "UPDATE t SET a = 1 WHERE \"rowkey\" = 'a'",
            "INSERT INTO t SELECT a, rowkey FROM u",
            "DELETE FROM t RETURNING rowkey",
            "WITH x AS (SELECT max(rowkey) FROM t) SELECT * FROM x",
        ] {
            assert!(mentions_rowkey(&parse(sql).unwrap()), "{sql}");
        }
        for sql in [
            "SELECT 'rowkey', \"ROWKEY\" FROM rowkey",
            "SELECT * FROM t AS rowkey",
            "SELECT rowkey.a FROM rowkey",
        ] {
            assert!(!mentions_rowkey(&parse(sql).unwrap()), "{sql}");
        }
    }
}
