//! Refuses syntax of other databases that sqlparser reads, but the planner would ignore or print as Rust.
//!
//! Each error has a place: a clause that silently does nothing is worse than an error.

use sqlparser::ast::{
    AccessExpr, Array, ConnectByKind, DuplicateTreatment, Expr, ForClause, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, LimitClause, ObjectName, ObjectNamePart, Query, Select, SelectItem,
    Subscript, TableFactor, TableWithJoins, UnaryOperator, Value, ValueWithSpan,
};

use super::calls::called;
use super::star::{has_options, star_options};
use super::{span_of, table_function};
use crate::error::{Error, Result, Span, sqlstate};

/// Errors: FOR JSON, FOR XML. FOR UPDATE is accepted: a transaction reads one snapshot anyway.
pub(super) fn check_query(query: &Query) -> Result<()> {
    let what = match query.for_clause {
        None => return Ok(()),
        Some(ForClause::Json { .. }) => "FOR JSON",
        Some(ForClause::Xml { .. }) => "FOR XML",
        Some(ForClause::Browse) => "FOR BROWSE",
    };
    refuse(what, "COPY (SELECT ...) TO 'file.jsonl' writes rows as JSON", span_of(query))
}

/// Errors: LIMIT or OFFSET takes a literal that is no number of rows.
pub(super) fn check_limits(query: &Query) -> Result<()> {
    let (limit, offset) = match &query.limit_clause {
        None => return Ok(()),
        Some(LimitClause::LimitOffset { limit, offset, .. }) => {
            (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
        }
        Some(LimitClause::OffsetCommaLimit { limit, offset }) => (Some(limit), Some(offset)),
    };
    limit.map_or(Ok(()), |rows| check_rows("LIMIT", rows))?;
    offset.map_or(Ok(()), |rows| check_rows("OFFSET", rows))
}

fn check_rows(clause: &str, rows: &Expr) -> Result<()> {
    if let Expr::UnaryOp { op: UnaryOperator::Minus, expr } = rows
        && matches!(**expr, Expr::Value(_))
    {
        return Err(Error::invalid(format!("{clause} takes a number of rows, not {rows}"))
            .hint(format!("leave {clause} out"))
            .state(sqlstate::LIMIT_COUNT)
            .at(span_of(rows)));
    }
    let Expr::Value(given) = rows else { return Ok(()) };
    let is_number = match &given.value {
        Value::Null | Value::Placeholder(_) => true,
        Value::Number(digits, _) => digits.replace('_', "").parse::<i64>().is_ok(),
        _ => false,
    };
    if is_number {
        return Ok(());
    }
    Err(Error::invalid(format!("{clause} takes a number of rows, not {given}"))
        .why(format!("it is a whole number, at most {}", i64::MAX))
        .hint(format!("write {clause} 10"))
        .state(sqlstate::LIMIT_COUNT)
        .at(span_of(given)))
}

/// Errors: CONNECT BY and its clauses; GLOBAL JOIN.
pub(super) fn check_select(select: &Select) -> Result<()> {
    if let Some(clause) = select.connect_by.first() {
        let (what, at) = match clause {
            ConnectByKind::ConnectBy { relationships, .. } => ("CONNECT BY", relationships.first()),
            ConnectByKind::StartWith { condition, .. } => ("START WITH", Some(&**condition)),
        };
        return refuse(what, "write WITH RECURSIVE", at.and_then(span_of));
    }
    let rows = select.projection.iter().find_map(|item| match item {
        SelectItem::UnnamedExpr(row) | SelectItem::ExprWithAlias { expr: row, .. } if is_row(row) => {
            Some(row)
        }
        _ => None,
    });
    if let Some(row) = rows {
        return Err(Error::unsupported("a column holds one value, not a row of them")
            .hint("leave the parentheses out: then each is a column")
            .at(span_of(row)));
    }
    check_stars(&select.projection)?;
    select.from.iter().try_for_each(check_joins)
}

/// `(a, b)` or `ROW(a, b)`.
fn is_row(expr: &Expr) -> bool {
    match expr {
        Expr::Tuple(_) => true,
        Expr::Function(call) => called(call).as_deref() == Some("row"),
        _ => false,
    }
}

/// Errors: `count(DISTINCT *)`, `count(t.*)`: DataFusion would count as if there was only the `*`.
fn check_count(call: &Function) -> Result<()> {
    let FunctionArguments::List(list) = &call.args else { return Ok(()) };
    let [FunctionArg::Unnamed(arg)] = &list.args[..] else { return Ok(()) };
    let is_distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
    match arg {
        FunctionArgExpr::Wildcard if is_distinct => refuse(
            &format!("{call}"),
            "SELECT count(*) FROM (SELECT DISTINCT * FROM t) x counts different rows",
            span_of(call),
        ),
        FunctionArgExpr::QualifiedWildcard(table) => refuse(
            &format!("{call}"),
            &format!(
                "count(*) counts all rows; count({table}.id), of a column that is never NULL, those of {table}"
            ),
            span_of(call),
        ),
        _ => Ok(()),
    }
}

/// Errors: `*` beside another `*` of the same columns.
fn check_stars(items: &[SelectItem]) -> Result<()> {
    let stars: Vec<&SelectItem> =
        items.iter().filter(|item| star_options(item).is_some_and(|o| !has_options(o))).collect();
    let of_all = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_));
    let again = stars.iter().enumerate().find(|(at, star)| {
        stars[..*at]
            .iter()
            .any(|other| of_all(star) || of_all(other) || star.to_string() == other.to_string())
    });
    again.map_or(Ok(()), |(_, star)| {
        Err(Error::invalid(format!("{star} selects columns again"))
            .why("a * names each column as its table does, and two of one name could not be told apart")
            .hint("name those to be shown twice: SELECT *, id")
            .state(sqlstate::DUPLICATE_COLUMN)
            .at(span_of(*star)))
    })
}

fn check_joins(table: &TableWithJoins) -> Result<()> {
    match table.joins.iter().find(|join| join.global) {
        Some(join) => refuse("GLOBAL JOIN", "leave GLOBAL out", span_of(&join.relation)),
        None => Ok(()),
    }
}

/// Errors: samples, hints of other databases, ORDINALITY; PIVOT and similar tables.
pub(super) fn check_table(factor: &TableFactor) -> Result<()> {
    let place = || span_of(factor);
    match factor {
        TableFactor::Table { sample: Some(_), .. } | TableFactor::Derived { sample: Some(_), .. } => {
            refuse("TABLESAMPLE", "write WHERE random() < 0.1", place())
        }
        TableFactor::Table { with_hints, .. } if !with_hints.is_empty() => {
            refuse("a table WITH (...)", "hints are comments: SELECT /*+ INDEX(i) */ ...", place())
        }
        // sqlparser reads what follows as the table's name, without a place.
        TableFactor::Table { name, .. }
            if matches!(name.0.first(), Some(ObjectNamePart::Identifier(first))
                if first.quote_style.is_none() && first.value.starts_with('@')) =>
        {
            refuse("FROM @", "FROM takes tables, views, functions and subqueries", place())
        }
        TableFactor::Function { name, with_ordinality: true, .. } if table_function(name).is_some() => Ok(()),
        TableFactor::Table { with_ordinality: true, .. }
        | TableFactor::Function { with_ordinality: true, .. }
        | TableFactor::UNNEST { with_ordinality: true, .. } => {
            refuse("WITH ORDINALITY", "write row_number() OVER ()", place())
        }
        TableFactor::NestedJoin { table_with_joins, .. } => check_joins(table_with_joins),
        TableFactor::Table { .. }
        | TableFactor::Derived { .. }
        | TableFactor::Function { .. }
        | TableFactor::UNNEST { .. } => Ok(()),
        TableFactor::Pivot { .. } => refuse("PIVOT", "write sum(CASE WHEN ... THEN x END), ...", place()),
        TableFactor::Unpivot { .. } => refuse("UNPIVOT", "write SELECT ... UNION ALL SELECT ...", place()),
        _ => refuse("this kind of table", "FROM takes tables, views, functions and subqueries", place()),
    }
}

/// Errors: COLLATE; operators that only PostgreSQL has; names in the quotes of others; forms that the planner does not
/// know, and would give no place for.
pub(super) fn check_expr(expr: &Expr) -> Result<()> {
    match expr {
        Expr::Collate { expr: text, collation } => {
            Err(no_collation(&collation.to_string(), &text.to_string(), span_of(expr)))
        }
        Expr::CompoundFieldAccess { root, access_chain }
            if matches!(**root, Expr::Value(_)) || access_chain.iter().any(is_no_name) =>
        {
            match access_chain.iter().any(|access| matches!(access, AccessExpr::Subscript(_))) {
                true => refuse(
                    "[ ]",
                    "substr(text, 1, 1) is a part of a text; there are no arrays",
                    span_of(expr),
                ),
                false => {
                    refuse("this kind of access", "on both sides of the period stand names", span_of(expr))
                }
            }
        }
        Expr::CompoundFieldAccess { root, access_chain }
            if matches!(access_chain[..], [AccessExpr::Subscript(Subscript::Index { .. })]) =>
        {
            let [AccessExpr::Subscript(Subscript::Index { index })] = &access_chain[..] else {
                return Ok(());
            };
            let hint = match index {
                Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(_), .. }) => {
                    format!(
                        "{root} ->> {index} is a member of a JSON value, {root} -> {index} one that is JSON itself"
                    )
                }
                _ => format!(
                    "{root} -> {index} is an element of a JSON array, whose first is 0; substr({root}, 1, 1) is a part of a \
                     text"
                ),
            };
            refuse("[ ]", &hint, span_of(expr))
        }
        Expr::CompoundFieldAccess { root, access_chain }
            if matches!(**root, Expr::Nested(_)) && matches!(access_chain[..], [AccessExpr::Dot(_)]) =>
        {
            let hint = match &**root {
                Expr::Nested(inner) if matches!(**inner, Expr::Identifier(_)) => {
                    format!("write {inner}{}", access_chain[0])
                }
                _ => {
                    "a value has no fields: write table.column, or doc ->> 'name' of a JSON value".to_owned()
                }
            };
            refuse("this form of expression", &hint, span_of(expr))
        }
        Expr::Convert { expr: value, data_type: Some(ty), .. } => {
            refuse("CONVERT", &format!("write CAST({value} AS {ty})"), span_of(expr))
        }
        Expr::Convert { .. } => refuse("CONVERT", "leave it out: all text is UTF-8", span_of(expr)),
        Expr::Prefixed { value, .. } => {
            refuse("a prefix of a text", &format!("all text is UTF-8: write {value}"), span_of(expr))
        }
        Expr::Function(call) if called(call).as_deref() == Some("count") => check_count(call),
        Expr::Function(call)
            if called(call).is_some_and(|name| matches!(&*name, "current_timestamp" | "localtimestamp"))
                && matches!(&call.args, FunctionArguments::List(list) if !list.args.is_empty()) =>
        {
            Err(Error::unsupported(format!("{} takes no number of digits", call.name))
                .why("times have microseconds, six digits")
                .hint(format!("write {}; date_trunc('millisecond', now()) cuts a time off", call.name))
                .at(span_of(expr)))
        }
        Expr::OuterJoin(_) => refuse("(+)", "write LEFT JOIN", span_of(expr)),
        Expr::IsNormalized { .. }
        | Expr::InUnnest { .. }
        | Expr::MatchAgainst { .. }
        | Expr::Lambda(_)
        | Expr::MemberOf(_) => {
            Err(Error::unsupported("this form of expression is not supported").at(span_of(expr)))
        }
        Expr::Array(Array { elem, named: false }) if matches!(elem[..], [Expr::Identifier(_)]) => {
            refuse("[ ] around a name", "names stand in double quotes: \"order\"", span_of(expr))
        }
        Expr::UnaryOp { op, .. }
            if !matches!(op, UnaryOperator::Plus | UnaryOperator::Minus | UnaryOperator::Not) =>
        {
            let hint = match op {
                UnaryOperator::BitwiseNot => "write -x - 1",
                _ => "call a function: abs(x), sqrt(x), cbrt(x)",
            };
            refuse(&format!("the operator {op}"), hint, span_of(expr))
        }
        _ => Ok(()),
    }
}

/// `x.5`
fn is_no_name(access: &AccessExpr) -> bool {
    matches!(access, AccessExpr::Dot(part) if !matches!(part, Expr::Identifier(_)))
}

/// Turns `N'x'` and `U&'\0041'`, whose escapes are decoded already, into plain texts. Errors: `B'01'`.
pub(super) fn plain_text(value: &mut ValueWithSpan) -> Result<()> {
    match &mut value.value {
        // A plain text would print with one quote less: sqlparser would take the quotes for escaped already.
        Value::NationalStringLiteral(text) | Value::UnicodeStringLiteral(text)
            if prints_otherwise(text, '\'') =>
        {
            value.value = Value::EscapedStringLiteral(std::mem::take(text));
            Ok(())
        }
        Value::NationalStringLiteral(text) | Value::UnicodeStringLiteral(text) => {
            value.value = Value::SingleQuotedString(std::mem::take(text));
            Ok(())
        }
        Value::HexStringLiteral(digits) if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
            Err(Error::invalid(format!("x'{digits}' is not binary"))
                .hint("x'...' takes hex digits, two for a byte")
                .state(sqlstate::INVALID_TEXT)
                .at(span_of(value)))
        }
        // DataFusion would put a 0 before the first digit.
        Value::HexStringLiteral(digits) if digits.len() % 2 == 1 => {
            Err(Error::invalid(format!("x'{digits}' has half a byte"))
                .why("two digits are a byte")
                .hint(match &digits[..] {
                    "0" => "write x'00'".to_owned(),
                    _ => format!("write x'0{digits}' or x'{digits}0'"),
                })
                .state(sqlstate::INVALID_TEXT)
                .at(span_of(value)))
        }
        Value::SingleQuotedByteStringLiteral(_) => {
            refuse("a text of bits", "write bytes as X'ff'", span_of(value))
        }
        _ => Ok(()),
    }
}

/// Would sqlparser's printing change the text? It takes a doubled quote, or one after a backslash, for
/// escaped already.
pub(super) fn prints_otherwise(text: &str, quote: char) -> bool {
    text.split(quote).rev().skip(1).any(|before| before.ends_with('\\'))
        || text.as_bytes().windows(2).any(|pair| pair.iter().all(|b| char::from(*b) == quote))
}

/// Signs that editors and input methods write for others, what they are called, and what to write. To the tokenizer they
/// are letters.
const SIGNS: &[(char, &str, &str)] = &[
    ('，', "a full-width comma", "write ,"),
    ('；', "a full-width semicolon", "write ;"),
    ('（', "a full-width parenthesis", "write ("),
    ('）', "a full-width parenthesis", "write )"),
    ('＝', "a full-width equals sign", "write ="),
    ('＊', "a full-width asterisk", "write *"),
    ('“', "a curly quote", QUOTES),
    ('”', "a curly quote", QUOTES),
    ('‘', "a curly quote", QUOTES),
    ('’', "a curly quote", QUOTES),
    ('\u{200b}', "a zero-width space", "leave it out"),
    ('\u{2060}', "a word joiner, which cannot be seen", "leave it out"),
    ('\u{feff}', "a byte order mark, which cannot be seen", "leave it out"),
];

const QUOTES: &str = "a text stands in straight quotes, 'a', a name in \"a\"";

/// The error for the first of [these signs](SIGNS) in a name without quotes, and how many characters stand before it.
/// Parentheses may be part of a name: `amount（usd）`.
pub(super) fn odd_sign(word: &str) -> Option<(u64, Error)> {
    let is_name = !word.starts_with('（') && word.matches('（').count() == word.matches('）').count();
    let (at, (sign, called, hint)) = word.chars().enumerate().find_map(|(at, c)| {
        let sign = SIGNS.iter().find(|(sign, ..)| *sign == c && !(is_name && matches!(c, '（' | '）')))?;
        Some((at, sign))
    })?;
    let shown = match *hint {
        "leave it out" => format!("U+{:04X}", u32::from(*sign)),
        _ => format!("\"{sign}\""),
    };
    Some((at as u64, Error::invalid(format!("{shown} is {called}")).hint(*hint).state(sqlstate::SYNTAX)))
}

/// Is a collation the order that texts have?
pub(super) fn is_byte_order(collation: &ObjectName) -> bool {
    let name = collation.0.last().and_then(|part| part.as_ident());
    name.is_some_and(|name| {
        ["c", "posix", "binary", "default", "ucs_basic"]
            .iter()
            .any(|own| name.value.eq_ignore_ascii_case(own))
    })
}

/// The error for a COLLATE of a text.
pub(super) fn no_collation(name: &str, text: &str, at: Option<Span>) -> Error {
    // Behind a literal, it is about the column that this is compared with.
    let text = if text.starts_with('\'') { "x" } else { text };
    let hint = match name.trim_matches('"').eq_ignore_ascii_case("nocase") {
        true => format!(
            "compare lower({text}), or {text} ILIKE 'a%'; CREATE UNIQUE INDEX ON t (lower({text})) keeps it unique in \
             any case"
        ),
        false => "leave COLLATE out".to_owned(),
    };
    Error::unsupported("text has one order, that of its UTF-8 bytes").hint(hint).at(at)
}

fn refuse(what: &str, hint: &str, at: Option<Span>) -> Result<()> {
    Err(Error::unsupported(format!("{what} is not supported")).hint(hint).at(at))
}
