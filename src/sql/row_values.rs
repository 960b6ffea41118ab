//! Expands comparisons of row values: `(a, b) > (1, 2)` becomes `a > 1 OR a = 1 AND b > 2`.
//!
//! So nothing after the parser knows of rows, and the planner turns them into tight ranges like any other OR.
//! NULL elements follow SQL: rows are compared left to right, up to the first pair that is not equal or not
//! known; rows are equal if all pairs are, and differ if any pair does. A row looked up in a subquery becomes
//! EXISTS, and one compared with the row of a subquery becomes a subquery that compares them.

use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query,
    SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins, UnaryOperator, Value,
};

use super::calls::called;
use super::shape::Copies;
use super::span_of;
use super::star::is_star;
use crate::error::{Error, Result, sqlstate};

/// Expands `expr` itself, if it compares rows; its operands are visited later.
///
/// Errors: rows of different length; a row and one value; too many copies.
pub(super) fn spread(expr: &mut Expr, copies: &mut Copies) -> Result<()> {
    if let Some(spread) = spread_form(expr, copies)? {
        // Parentheses keep it a single operand.
        *expr = Expr::Nested(Box::new(spread));
    }
    Ok(())
}

fn spread_form(expr: &Expr, copies: &mut Copies) -> Result<Option<Expr>> {
    use BinaryOperator as Op;
    Ok(match expr {
        Expr::BinaryOp {
            left,
            op: op @ (Op::Eq | Op::NotEq | Op::Lt | Op::LtEq | Op::Gt | Op::GtEq),
            right,
        } => match (pair(left, right)?, elements(left), &**right) {
            (Some((left, right)), ..) => {
                copied(&left, op, &right, copies)?;
                compared(&left, op, &right)
            }
            (None, Some(fields), Expr::Subquery(subquery)) => {
                let Around { mut query, columns } = Around::new(subquery, &fields, left)?;
                copied(&fields, op, &columns, copies)?;
                if let (SetExpr::Select(select), Some(compared)) =
                    (&mut *query.body, compared(&fields, op, &columns))
                {
                    select.projection = vec![SelectItem::UnnamedExpr(compared)];
                }
                Some(Expr::Subquery(Box::new(query)))
            }
            _ => None,
        },
        Expr::InList { expr: row, list, negated } => {
            let Some(fields) = elements(row) else { return Ok(None) };
            copies.count(row, list.len().saturating_sub(1))?;
            let equal = |item: &Expr| Ok(equal(&fields, &values(row, fields.len(), item)?));
            let any = any_of(list.iter().map(equal).collect::<Result<Vec<_>>>()?.into_iter().flatten());
            any.map(|any| unless(*negated, any))
        }
        Expr::InSubquery { expr: row, subquery, negated } if elements(row).is_some() => {
            copies.count(expr, 1)?;
            let exists = |subquery| Expr::Exists { subquery, negated: false };
            let among = |possibly| lookup(row, subquery, possibly).map(|found| found.map(exists));
            let (Some(sure), Some(doubt)) = (among(false)?, among(true)?) else { return Ok(None) };
            // NULL if no row is equal, but one may be.
            let doubt = binary(&Expr::Value(Value::Null.into()), BinaryOperator::And, &doubt);
            Some(unless(*negated, binary(&sure, BinaryOperator::Or, &doubt)))
        }
        Expr::Between { expr: row, low, high, negated } => {
            let Some(fields) = elements(row) else { return Ok(None) };
            let (low, high) = (values(row, fields.len(), low)?, values(row, fields.len(), high)?);
            copies.count(row, 1)?;
            copied(&fields, &Op::GtEq, &low, copies)?;
            copied(&fields, &Op::LtEq, &high, copies)?;
            let low = compared(&fields, &Op::GtEq, &low);
            let high = compared(&fields, &Op::LtEq, &high);
            all_of([low, high].into_iter().flatten().map(nested)).map(|both| unless(*negated, both))
        }
        Expr::IsNull(row) => each(row, |field| Expr::IsNull(Box::new(field))),
        Expr::IsNotNull(row) => each(row, |field| Expr::IsNotNull(Box::new(field))),
        Expr::IsNotDistinctFrom(left, right) => {
            let same = |(a, b)| Expr::IsNotDistinctFrom(Box::new(a), Box::new(b));
            pair(left, right)?.and_then(|(a, b)| all_of(a.into_iter().zip(b).map(same)))
        }
        Expr::IsDistinctFrom(left, right) => {
            let differ = |(a, b)| Expr::IsDistinctFrom(Box::new(a), Box::new(b));
            pair(left, right)?.and_then(|(a, b)| any_of(a.into_iter().zip(b).map(differ)))
        }
        _ => None,
    })
}

/// Expands `(a, b) [NOT] IN (SELECT ...)` where it is a conjunct of WHERE: there, NULL counts as false.
/// Errors: the subquery visibly has another number of columns.
pub(super) fn spread_lookups(filter: &mut Expr) -> Result<()> {
    match filter {
        Expr::Nested(inner) => return spread_lookups(inner),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            spread_lookups(left)?;
            return spread_lookups(right);
        }
        _ => {}
    }
    if let Some(exists) = whole_lookup(filter, false)? {
        *filter = exists;
    }
    Ok(())
}

fn whole_lookup(expr: &Expr, not: bool) -> Result<Option<Expr>> {
    match expr {
        Expr::Nested(inner) => whole_lookup(inner, not),
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => whole_lookup(expr, !not),
        Expr::InSubquery { expr: row, subquery, negated } => {
            let negated = *negated != not;
            // For NOT IN, a row that may be equal suffices to reject.
            let found = lookup(row, subquery, negated)?;
            Ok(found.map(|subquery| Expr::Exists { subquery, negated }))
        }
        _ => Ok(None),
    }
}

/// Alias of a subquery in which a row is looked up.
pub const LOOKED_UP: &str = "(row)";

/// The subquery, filtered to rows that are equal to `row`, or, if `possibly`, may be equal; `None` if `row`
/// is no row.
fn lookup(row: &Expr, subquery: &Query, possibly: bool) -> Result<Option<Box<Query>>> {
    let Some(fields) = elements(row) else { return Ok(None) };
    let Around { mut query, columns } = Around::new(subquery, &fields, row)?;
    let equal = columns.iter().zip(&fields).map(|(theirs, field)| {
        let equal = binary(theirs, BinaryOperator::Eq, field);
        if possibly { Expr::IsNotFalse(Box::new(nested(equal))) } else { equal }
    });
    if let SetExpr::Select(select) = &mut *query.body {
        select.selection = all_of(equal);
    }
    Ok(Some(Box::new(query)))
}

/// `SELECT 1 FROM (subquery) AS "(row)"`, and the columns of that.
struct Around {
    query: Query,
    columns: Vec<Expr>,
}

impl Around {
    /// Around a subquery whose rows are compared with `fields`, which are written as `row`. Errors: it visibly has another
    /// number of columns.
    fn new(subquery: &Query, fields: &[Expr], row: &Expr) -> Result<Around> {
        if let SetExpr::Select(select) = &*subquery.body
            && !select.projection.iter().any(is_star)
            && select.projection.len() != fields.len()
        {
            return Err(different(fields.len(), select.projection.len(), row));
        }
        // No outer column has such a name, so names in `fields` still refer to outer columns.
        let name = |i: usize| Ident::with_quote('"', format!("({i})"));
        let found = Ident::with_quote('"', LOOKED_UP);
        let names = 0..fields.len();
        let columns = names.clone().map(|i| Expr::CompoundIdentifier(vec![found.clone(), name(i)])).collect();
        let mut query = super::parse_query("SELECT 1")?;
        if let SetExpr::Select(select) = &mut *query.body {
            let columns = names.map(|i| TableAliasColumnDef { name: name(i), data_type: None }).collect();
            let relation = TableFactor::Derived {
                lateral: false,
                subquery: Box::new(subquery.clone()),
                alias: Some(TableAlias { explicit: true, name: found, columns, at: None }),
                sample: None,
            };
            select.from = vec![TableWithJoins { relation, joins: Vec::new() }];
        }
        Ok(Around { query, columns })
    }
}

/// The elements of `(a, b)` or `ROW(a, b)`.
fn elements(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Tuple(elements) => Some(elements.clone()),
        Expr::Nested(inner) => elements(inner),
        Expr::Function(call @ Function { args: FunctionArguments::List(list), .. })
            if called(call).as_deref() == Some("row") && !list.args.is_empty() =>
        {
            let element = |arg: &FunctionArg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
                _ => None,
            };
            list.args.iter().map(element).collect()
        }
        _ => None,
    }
}

/// The elements of both sides of a comparison of rows. `None`: neither is a row, or one is not written out.
fn pair(left: &Expr, right: &Expr) -> Result<Option<(Vec<Expr>, Vec<Expr>)>> {
    match (elements(left), elements(right)) {
        (Some(a), Some(b)) if a.len() == b.len() => Ok(Some((a, b))),
        (Some(a), Some(b)) => Err(different(a.len(), b.len(), right)),
        (Some(a), None) if is_single(right) => Err(different(a.len(), 1, right)),
        (None, Some(b)) if is_single(left) => Err(different(1, b.len(), left)),
        _ => Ok(None),
    }
}

/// The expression is one value, and no subquery, which may give a row.
fn is_single(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_single(inner),
        Expr::Value(_) | Expr::Identifier(_) | Expr::CompoundIdentifier(_) => true,
        Expr::UnaryOp { .. } | Expr::BinaryOp { .. } | Expr::Cast { .. } => true,
        _ => false,
    }
}

/// The elements of a row that is compared with `row`, of `len` elements.
fn values(row: &Expr, len: usize, value: &Expr) -> Result<Vec<Expr>> {
    match elements(value) {
        Some(values) if values.len() == len => Ok(values),
        Some(values) => Err(different(len, values.len(), value)),
        None => Err(different(len, 1, value)).map_err(|e| e.at(span_of(value).or(span_of(row)))),
    }
}

fn different(left: usize, right: usize, at: &Expr) -> Error {
    Error::invalid("rows of different length are compared")
        .why(format!("{left} on the left, {right} on the right"))
        .hint("write as many values as there are columns")
        .state(sqlstate::DATATYPE_MISMATCH)
        .at(span_of(at))
}

/// Counts the copies made by [`compared`]: all but the last elements are copied once for each later pair.
fn copied(left: &[Expr], op: &BinaryOperator, right: &[Expr], copies: &mut Copies) -> Result<()> {
    if matches!(op, BinaryOperator::Eq | BinaryOperator::NotEq) {
        return Ok(());
    }
    let elements = |side: &[Expr], copies: &mut Copies| {
        side.iter().rev().enumerate().try_for_each(|(times, element)| copies.count(element, times))
    };
    elements(left, copies)?;
    elements(right, copies)
}

fn compared(left: &[Expr], op: &BinaryOperator, right: &[Expr]) -> Option<Expr> {
    use BinaryOperator as Op;
    let strict = match op {
        Op::Eq => return equal(left, right),
        Op::NotEq => return any_of((0..left.len()).map(|i| binary(&left[i], Op::NotEq, &right[i]))),
        Op::LtEq => &Op::Lt,
        Op::GtEq => &Op::Gt,
        strict => strict,
    };
    // All pairs before are equal, and this one decides.
    any_of((0..left.len()).filter_map(|decides| {
        let op = if decides + 1 == left.len() { op } else { strict };
        let last = binary(&left[decides], op.clone(), &right[decides]);
        let before = (0..decides).map(|i| binary(&left[i], Op::Eq, &right[i]));
        all_of(before.chain([last]))
    }))
}

fn equal(left: &[Expr], right: &[Expr]) -> Option<Expr> {
    all_of(left.iter().zip(right).map(|(a, b)| binary(a, BinaryOperator::Eq, b)))
}

fn each(row: &Expr, of: impl Fn(Expr) -> Expr) -> Option<Expr> {
    all_of(elements(row)?.into_iter().map(of))
}

/// Builds a binary expression; operands that may bind looser than a comparison get parentheses.
fn binary(left: &Expr, op: BinaryOperator, right: &Expr) -> Expr {
    let operand = |expr: &Expr| match expr {
        Expr::Value(_)
        | Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::Nested(_)
        | Expr::Tuple(_) => Box::new(expr.clone()),
        other => Box::new(nested(other.clone())),
    };
    Expr::BinaryOp { left: operand(left), op, right: operand(right) }
}

fn all_of(terms: impl Iterator<Item = Expr>) -> Option<Expr> {
    joined(terms, BinaryOperator::And)
}

fn any_of(terms: impl Iterator<Item = Expr>) -> Option<Expr> {
    joined(terms, BinaryOperator::Or)
}

/// A left-deep chain, as the parser makes it; it is balanced later.
fn joined(terms: impl Iterator<Item = Expr>, op: BinaryOperator) -> Option<Expr> {
    terms.reduce(|all, term| Expr::BinaryOp { left: Box::new(all), op: op.clone(), right: Box::new(term) })
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

fn unless(negated: bool, expr: Expr) -> Expr {
    match negated {
        true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(nested(expr)) },
        false => expr,
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::parse;

    #[test]
    fn rows_become_conditions_on_their_elements() {
        let cases = [
            ("(a, b) = (1, 2)", "(a = 1 AND b = 2)"),
            ("(a, b) <> (1, 2)", "(a <> 1 OR b <> 2)"),
            ("(a, b) > (1, 2)", "(a > 1 OR a = 1 AND b > 2)"),
            ("(a, b, c) <= (1, 2, 3)", "(a < 1 OR a = 1 AND b < 2 OR a = 1 AND b = 2 AND c <= 3)"),
            ("ROW(a, b) < ROW(x + 1, y)", "(a < (x + 1) OR a = (x + 1) AND b < y)"),
            ("(a, b) IN ((1, 2), (3, 4))", "(a = 1 AND b = 2 OR a = 3 AND b = 4)"),
            ("(a, b) NOT IN ((1, 2))", "(NOT (a = 1 AND b = 2))"),
            (
                "(a, b) BETWEEN (1, 2) AND (3, 4)",
                "((a > 1 OR a = 1 AND b >= 2) AND (a < 3 OR a = 3 AND b <= 4))",
            ),
            ("(1, 2) < (a, b) < (3, 4)", "((1 < a OR 1 = a AND 2 < b) AND (a < 3 OR a = 3 AND b < 4))"),
            ("(a, b) IS NULL", "(a IS NULL AND b IS NULL)"),
            ("((a, b), c) = ((1, 2), 3)", "((a = 1 AND b = 2) AND c = 3)"),
            ("(a, b) IS DISTINCT FROM (1, 2)", "(a IS DISTINCT FROM 1 OR b IS DISTINCT FROM 2)"),
            ("(a) = (1)", "(a) = (1)"),
        ];
        for (from, to) in cases {
            let written = parse(&format!("SELECT 1 FROM t WHERE {from}")).unwrap().to_string();
            let plain = written.strip_prefix("SELECT 1 FROM t WHERE ").unwrap();
            assert_eq!(
                plain.replace("((1 < a OR 1 = a AND 2 < b))", "(1 < a OR 1 = a AND 2 < b)"),
                to,
                "{from}"
            );
        }
    }

    #[test]
    fn rows_must_be_of_one_length() {
        for sql in [
            "(a, b) = (1, 2, 3)",
            "(a, b) IN ((1, 2), (3))",
            "(a, b) > 1",
            "(a, b) IN (1)",
            "(a, b) > (1)",
            "((a + 1)) < (a, b)",
        ] {
            let error = parse(&format!("SELECT 1 FROM t WHERE {sql}")).unwrap_err();
            assert_eq!(error.what(), "rows of different length are compared", "{sql}");
            assert!(error.span().is_some(), "{sql}");
        }
    }
}
