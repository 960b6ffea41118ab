//! Calls of a query as DataFusion knows them: functions of other databases, facts such as `current_user`, and casts that
//! it does not do.

use std::ops::ControlFlow;

use sqlparser::ast::{self, Query, UnaryOperator, VisitorMut};

use crate::df::functions::json_building::{BETWEEN, JSON_AGGREGATES};
use crate::df::functions::replacement::{REPLACEMENT, replacement};
use crate::df::functions::{DATE_OF_PATTERN, TIME_OF_PATTERN};
use crate::error::{Error, Result, sqlstate};
use crate::sql::rewrite::{cast_as, take, unnamed};
use crate::sql::visit::{visit_expressions, visit_mut};
use crate::sql::{balanced, name_of, span_of};
use crate::value::ColumnType;
use crate::value::json_dollar_path;

/// Errors: a call of a scalar function (`is_scalar`) with a clause that only aggregates or windows take.
pub fn check_calls(query: &Query, is_scalar: &dyn Fn(&str) -> bool) -> Result<()> {
    let call = visit_expressions(query, |expr| match expr {
        ast::Expr::Function(call) => {
            let name = call.name.0.last().and_then(|part| part.as_ident());
            match idle_clause(call) {
                Some(clause) if name.is_some_and(|name| is_scalar(&name_of(name))) => {
                    ControlFlow::Break((call.clone(), clause))
                }
                _ => ControlFlow::Continue(()),
            }
        }
        _ => ControlFlow::Continue(()),
    });
    match call {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break((call, clause)) => {
            Err(Error::invalid(format!("{} does not take {clause}", call.name))
                .why("it is computed from one row; only aggregates and window functions see others")
                .hint(format!("leave out {clause}"))
                .state(sqlstate::WRONG_OBJECT)
                .at(span_of(&call)))
        }
    }
}

fn idle_clause(call: &ast::Function) -> Option<&'static str> {
    let list = match &call.args {
        ast::FunctionArguments::List(list) => Some(list),
        _ => None,
    };
    let clauses = [
        (call.filter.is_some(), "FILTER"),
        (call.over.is_some(), "OVER"),
        (!call.within_group.is_empty(), "WITHIN GROUP"),
        (call.null_treatment.is_some(), "IGNORE or RESPECT NULLS"),
        (list.is_some_and(|list| list.duplicate_treatment.is_some()), "DISTINCT or ALL"),
        (list.is_some_and(|list| !list.clauses.is_empty()), "ORDER BY or the like"),
    ];
    clauses.into_iter().find(|(there, _)| *there).map(|(_, clause)| clause)
}

/// Rewrites numbers and calls for DataFusion: a number with an exponent is a double, one beyond BIGINT a decimal; a
/// plus sign is dropped; `mod(a, b)` is `a % b`; NULL in `sum` and `avg` is a number; a cast to UUID or JSON, which are
/// texts to DataFusion, becomes a call of a parsing function; SUBSTRING and POSITION are `substr` and `strpos`; VALUES
/// have one type in a column; GROUP BY the name of an integer is not taken for a position. `type_of` gives the type of a
/// parameter.
///
/// PostgreSQL's names without parentheses, such as `current_user`, are calls, too, unless a table has such a column
/// (`is_column`).
pub fn plain_calls(
    query: &mut Query,
    is_column: &dyn Fn(&str) -> bool,
    type_of: &dyn Fn(usize) -> Option<ColumnType>,
) {
    let _ = visit_mut(query, &mut PlainCalls { is_column, type_of });
}

struct PlainCalls<'a> {
    is_column: &'a dyn Fn(&str) -> bool,
    type_of: &'a dyn Fn(usize) -> Option<ColumnType>,
}

impl VisitorMut for PlainCalls<'_> {
    type Break = ();

    /// An output that is a call without parentheses keeps its name.
    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        crate::sql::as_one_type(query, self.type_of);
        if let ast::SetExpr::Select(select) = &mut *query.body {
            for item in &mut select.projection {
                if let ast::SelectItem::UnnamedExpr(expr) = item
                    && let (Some(name), Some(call)) = (bare_name(expr).cloned(), fact(expr, self.is_column))
                {
                    *item = ast::SelectItem::ExprWithAlias { expr: call, alias: name };
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<()> {
        let ast::GroupByExpr::Expressions(groups, _) = &select.group_by else {
            return ControlFlow::Continue(());
        };
        for item in &mut select.projection {
            let ast::SelectItem::ExprWithAlias { expr, alias } = item else { continue };
            let is_it = |group: &ast::Expr| matches!(group, ast::Expr::Identifier(name) if name_of(name) == name_of(alias));
            if is_integer(expr) && groups.iter().any(is_it) {
                *expr = cast_as(take(expr), ast::DataType::BigInt(None));
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } = expr
            && let Some(digits) = digits_of(inner)
            // The smallest BIGINT has no positive counterpart, so it takes its sign along.
            && without_gaps(digits).parse() == Ok(i64::MIN.unsigned_abs())
        {
            *digits = i64::MIN.to_string();
            *expr = take(inner);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        match expr {
            ast::Expr::UnaryOp { op: UnaryOperator::Plus, expr: inner } => *expr = take(inner),
            ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Number(digits, _), .. })
                if digits.contains(['e', 'E']) =>
            {
                let text = ast::Expr::value(ast::Value::SingleQuotedString(digits.clone()));
                *expr = cast_as(text, ast::DataType::DoublePrecision);
            }
            // DataFusion has UInt64 for these, but few sums and casts for it.
            ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Number(digits, _), .. })
                if without_gaps(digits).parse().is_ok_and(|number: u64| number > i64::MAX.unsigned_abs()) =>
            {
                digits.push('.');
            }
            ast::Expr::Cast { expr: of, data_type, kind, .. } => {
                let tries = matches!(kind, ast::CastKind::TryCast | ast::CastKind::SafeCast);
                if let Some(reader) = reader_of(data_type, tries) {
                    *expr = crate::sql::call(reader, [take(of)]);
                }
            }
            ast::Expr::Identifier(_) => {
                if let Some(call) = fact(expr, self.is_column) {
                    *expr = call;
                }
            }
            ast::Expr::Like { any: true, .. } | ast::Expr::ILike { any: true, .. } => {
                if let Some(alternatives) = like_each(expr) {
                    *expr = alternatives;
                }
            }
            ast::Expr::TypedString(typed) => {
                if let Some(reader) = reader_of(&typed.data_type, false) {
                    *expr = crate::sql::call(reader, [ast::Expr::Value(typed.value.clone())]);
                }
            }
            ast::Expr::Function(ast::Function { args: ast::FunctionArguments::None, .. }) => {
                if let Some(call) = fact(expr, self.is_column) {
                    *expr = call;
                }
            }
            ast::Expr::Function(_) => plain_call(expr),
            // DataFusion would plan these with its own functions, which do not take bytes.
            ast::Expr::Substring { expr: of, substring_from, substring_for, .. }
                if substring_from.is_some() || substring_for.is_some() =>
            {
                let first = || Box::new(ast::Expr::value(ast::Value::Number("1".to_owned(), false)));
                let from = substring_from.take().unwrap_or_else(first);
                let args = [take(of), *from].into_iter().chain(substring_for.take().map(|count| *count));
                *expr = crate::sql::call("substr", args);
            }
            ast::Expr::Position { expr: part, r#in: of } => {
                *expr = crate::sql::call("strpos", [take(of), take(part)]);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// A call that DataFusion does not have, or understands otherwise, as one that it has.
fn plain_call(expr: &mut ast::Expr) {
    let ast::Expr::Function(call) = expr else { return };
    let name = call.name.to_string().to_lowercase();
    if let Some(json) = json_aggregate(&name, call) {
        *expr = json;
        return;
    }
    if name == "regexp_replace"
        && let Some(with) = arguments(call).into_iter().nth(2)
    {
        *with = match text_of(with) {
            Some(text) => ast::Expr::value(ast::Value::SingleQuotedString(replacement(text))),
            None => crate::sql::call(REPLACEMENT, [take(with)]),
        };
        return;
    }
    let is_plain = call.filter.is_none() && call.over.is_none();
    match (name.as_str(), &mut arguments(call)[..]) {
        ("mod", [left, right]) if is_plain => {
            let [left, right] = [take(left), take(right)].map(Box::new);
            *expr = ast::Expr::BinaryOp { left, op: ast::BinaryOperator::Modulo, right };
        }
        ("sum" | "avg", [arg]) if is_null(arg) => {
            **arg = cast_as(take(arg), ast::DataType::BigInt(None));
        }
        // DataFusion's is UInt64.
        ("approx_distinct", _) => *expr = cast_as(take(expr), ast::DataType::BigInt(None)),
        // SQLite's `total`: a DOUBLE, and zero for no rows.
        ("total", [arg]) => {
            **arg = cast_as(take(arg), ast::DataType::DoublePrecision);
            call.name = vec![ast::Ident::new("sum")].into();
            let zero = ast::Expr::value(ast::Value::Number("0".to_owned(), false));
            let args = [take(expr), cast_as(zero, ast::DataType::DoublePrecision)];
            *expr = crate::sql::call("coalesce", args);
        }
        // A pattern of strftime's has a %.
        ("to_timestamp" | "to_date", [_, pattern])
            if is_plain && text_of(pattern).is_some_and(|pattern| !pattern.contains('%')) =>
        {
            let reader = if name == "to_date" { DATE_OF_PATTERN } else { TIME_OF_PATTERN };
            call.name = vec![ast::Ident::new(reader)].into();
        }
        // SQLite's: the time of the statement.
        ("date" | "time" | "datetime" | "julianday" | "unixepoch", []) if is_plain => {
            *expr = crate::sql::call(&name, [crate::sql::call("now", [])]);
        }
        ("date" | "time" | "datetime" | "julianday" | "unixepoch", [time, ..])
        | ("strftime", [_, time, ..])
            if is_plain && is_text(time, "now") =>
        {
            **time = crate::sql::call("now", []);
        }
        ("strftime", [format]) if is_plain => {
            *expr = crate::sql::call("strftime", [take(format), crate::sql::call("now", [])]);
        }
        // SQLite's, as text.
        ("json_extract" | "jsonb_extract", [_, path]) if is_plain => {
            if let Some(steps) = text_of(path).and_then(json_dollar_path) {
                let steps = steps.into_iter().map(|step| ast::Value::SingleQuotedString(step).into());
                let steps = steps.map(ast::Expr::Value);
                let of = take(arguments(call)[0]);
                *expr = crate::sql::call("json_extract_path_text", [of].into_iter().chain(steps));
            }
        }
        // DataFusion's `base64` has no padding.
        ("encode", [_, format]) if is_text(format, "base64") => {
            **format = ast::Expr::value(ast::Value::SingleQuotedString("base64pad".to_owned()));
        }
        ("age", [from]) if is_plain => {
            *expr = crate::sql::call("age", [crate::sql::call("current_date", []), take(from)]);
        }
        _ => {}
    }
}

/// Calls that are written without parentheses.
const FACTS: [&str; 5] =
    ["current_user", "session_user", "current_catalog", "current_schema", "localtimestamp"];

/// Such a call; the column, where a table has one of that name.
fn fact(expr: &ast::Expr, is_column: &dyn Fn(&str) -> bool) -> Option<ast::Expr> {
    let name = bare_name(expr)?;
    let fact = FACTS.into_iter().find(|fact| fact.eq_ignore_ascii_case(&name.value))?;
    if is_column(fact) {
        return Some(ast::Expr::Identifier(name.clone()));
    }
    Some(match fact {
        "localtimestamp" => {
            let ty = ast::DataType::Timestamp(None, ast::TimezoneInfo::None);
            cast_as(crate::sql::call("now", []), ty)
        }
        fact => crate::sql::call(fact, []),
    })
}

/// The name of a column, or of a call without parentheses.
fn bare_name(expr: &ast::Expr) -> Option<&ast::Ident> {
    let name = match expr {
        ast::Expr::Identifier(name) => name,
        ast::Expr::Function(ast::Function { name, args: ast::FunctionArguments::None, .. }) => {
            match &name.0[..] {
                [name] => name.as_ident()?,
                _ => return None,
            }
        }
        _ => return None,
    };
    name.quote_style.is_none().then_some(name)
}

/// Longest `x LIKE ANY (..)` that is rewritten, in characters of `x` times patterns.
const LIKE_ANY_MAX: usize = 1 << 20;

/// `x LIKE ANY (a, b)` as `x LIKE a OR x LIKE b`; `None` unless the patterns are written out.
fn like_each(like: &mut ast::Expr) -> Option<ast::Expr> {
    let (ast::Expr::Like { any, expr, pattern, .. } | ast::Expr::ILike { any, expr, pattern, .. }) = like
    else {
        return None;
    };
    let patterns = match &mut **pattern {
        ast::Expr::Tuple(patterns) => patterns,
        ast::Expr::Array(array) => &mut array.elem,
        ast::Expr::Nested(pattern) => match &mut **pattern {
            ast::Expr::Array(array) => &mut array.elem,
            pattern => &mut vec![take(pattern)],
        },
        _ => return None,
    };
    if expr.to_string().len().saturating_mul(patterns.len()) > LIKE_ANY_MAX {
        return None;
    }
    let patterns = std::mem::take(patterns);
    *any = false;
    let each = patterns.into_iter().map(|one| {
        let mut like = like.clone();
        if let ast::Expr::Like { pattern, .. } | ast::Expr::ILike { pattern, .. } = &mut like {
            **pattern = one;
        }
        like
    });
    let either = |left, right| ast::Expr::BinaryOp {
        left: Box::new(left),
        op: ast::BinaryOperator::Or,
        right: Box::new(right),
    };
    balanced(each.collect(), &either).map(|any| ast::Expr::Nested(Box::new(any)))
}

/// `json_agg(x ORDER BY y)` as `json_of_elements(string_agg(json_element(x), ', ' ORDER BY y))`; `json_object_agg` and
/// SQLite's names alike. `None` for any other call.
fn json_aggregate(name: &str, call: &mut ast::Function) -> Option<ast::Expr> {
    let (whole, part) =
        match (JSON_AGGREGATES.iter().find(|(names, ..)| names.contains(&name)), arguments(call)) {
            (Some((_, whole, part @ "json_element")), args) if args.len() == 1 => (whole, part),
            (Some((_, whole, part @ "json_member")), args) if args.len() == 2 => (whole, part),
            _ => return None,
        };
    let part = crate::sql::call(part, arguments(call).into_iter().map(take));
    let between = ast::Expr::value(ast::Value::SingleQuotedString(BETWEEN.to_owned()));
    if let ast::FunctionArguments::List(list) = &mut call.args {
        list.args = [part, between].map(unnamed).into();
    }
    call.name = vec![ast::Ident::new("string_agg")].into();
    Some(crate::sql::call(whole, [ast::Expr::Function(call.clone())]))
}

/// The function that parses a value of a type that is a text in Arrow; `tries`: it gives NULL where parsing fails.
fn reader_of(ty: &ast::DataType, tries: bool) -> Option<&'static str> {
    match (ty, tries) {
        (ast::DataType::Uuid, false) => Some("as_uuid"),
        (ast::DataType::Uuid, true) => Some("try_as_uuid"),
        (ast::DataType::JSON | ast::DataType::JSONB, false) => Some("as_json"),
        (ast::DataType::JSON | ast::DataType::JSONB, true) => Some("try_as_json"),
        _ => None,
    }
}

fn is_text(expr: &ast::Expr, text: &str) -> bool {
    text_of(expr).is_some_and(|value| value.eq_ignore_ascii_case(text))
}

/// A text literal.
fn text_of(expr: &ast::Expr) -> Option<&str> {
    match expr {
        ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::SingleQuotedString(text), .. }) => {
            Some(text)
        }
        _ => None,
    }
}

/// An integer literal that is a BIGINT.
fn is_integer(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::UnaryOp { op: UnaryOperator::Minus, expr } => is_integer(expr),
        ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Number(digits, _), .. }) => {
            without_gaps(digits).parse::<i64>().is_ok()
        }
        _ => false,
    }
}

/// The digits of a number literal.
fn digits_of(expr: &mut ast::Expr) -> Option<&mut String> {
    match expr {
        ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Number(digits, _), .. }) => Some(digits),
        _ => None,
    }
}

/// Digits without their separators.
fn without_gaps(digits: &str) -> String {
    digits.replace('_', "")
}

/// Arguments of a call; empty unless all are expressions.
fn arguments(call: &mut ast::Function) -> Vec<&mut ast::Expr> {
    let ast::FunctionArguments::List(list) = &mut call.args else { return Vec::new() };
    let exprs = list.args.iter_mut().map(|arg| match arg {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    exprs.collect::<Option<_>>().unwrap_or_default()
}

fn is_null(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Null, .. }))
}
