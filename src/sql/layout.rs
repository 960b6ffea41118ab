//! Turns key expressions into key parts.
//!
//! [`key_specs`] recognises the forms of the table below in the expressions of PRIMARY KEY and CREATE INDEX,
//! and nothing else. It checks names, arity and literals. What a form means for the bytes is defined in
//! `key`; whether the parts together are unambiguous is checked by the layout, which knows the types too.
//!
//! | form | transform |
//! |---|---|
//! | `col` | [`Transform::Column`] |
//! | `cast(col AS varchar)`, `col::text` | [`Transform::Text`] |
//! | `lpad(col, n [, '0'])` | [`Transform::Lpad`] |
//! | `rpad(col, n [, ' '])` | [`Transform::Rpad`] |
//! | `reverse(col)`, `reverse(lpad(col, n))` | [`Transform::Reverse`] |
//! | `reverse_bytes(col)` | [`Transform::ReverseBytes`] |
//! | `max - col`, `lpad(max - col, n)` | [`Transform::MaxMinus`] |
//! | `left(md5(col), k)`, `right(..)`, `substr(md5(col), i, k)` | [`Transform::Md5Hex`] |
//! | `md5(col)` | [`Transform::Md5`] |
//! | `col % n`, `mod(col, n)` | [`Transform::Modulo`] |
//! | `md5_bucket(col, ..., n)` | [`Transform::Md5Bucket`] |
//! | `random(n)` | [`Transform::Random`] |
//! | `to_char(col, 'format')` | [`Transform::ToChar`] |
//! | `code(col, 'name=code, ...')` | [`Transform::Code`] |
//! | `'_'` | [`Transform::Literal`] |

use std::collections::HashSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, UnaryOperator,
    Value,
};

use super::ast::KeyExpr;
use super::visit::visit_expressions;
use super::{name_of, to_span};
use crate::error::{Error, Result, counted, sqlstate};
use crate::key::{BUCKETS_MAX, ColumnId, MD5_DIGITS, PartSpec, Transform};
use crate::suggest::did_you_mean;
use crate::value::name_sql;

/// A column that key expressions can name: its folded name and its id.
pub type KeyColumn<'a> = (&'a str, ColumnId);

/// Characters of the widest fixed-width part; every store refuses longer keys.
const WIDTH_MAX: u64 = 1_000;

/// The key parts of key expressions, in order.
///
/// Errors, each at its key expression: UNDEFINED_COLUMN; INVALID_TABLE_DEFINITION for an expression that is
/// none of the forms, or has a wrong number, width or pad in it.
pub fn key_specs(keys: &[KeyExpr], columns: &[KeyColumn]) -> Result<Vec<PartSpec>> {
    let binder = Binder { columns };
    keys.iter().map(|key| binder.part(key).map_err(|e| e.at(key.span))).collect()
}

/// Is the expression one of the key forms, or a malformed one? No formula starts like a key form.
pub fn is_key_form(expr: &Expr) -> bool {
    let is_md5 =
        |text: &Expr| matches!(bare(text), Expr::Function(f) if function_name(f).as_deref() == Some("md5"));
    match bare(expr) {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_) => true,
        Expr::Cast { data_type, .. } if is_text_type(data_type) => {
            matches!(uncast(expr), Expr::Identifier(_))
        }
        Expr::BinaryOp { op: BinaryOperator::Modulo, .. } => true,
        Expr::BinaryOp { left, op: BinaryOperator::Minus, .. } => integer(left).is_some(),
        Expr::Substring { expr: text, .. } => is_md5(text),
        Expr::Function(function) => match function_name(function).as_deref() {
            Some("left" | "right" | "substr" | "substring") => {
                plain_args(function).is_some_and(|args| args.first().is_some_and(|text| is_md5(text)))
            }
            Some(name) => usage(name).is_some(),
            None => false,
        },
        _ => false,
    }
}

/// The error for an expression that an index cannot compute.
pub fn not_a_formula(expr: &Expr) -> Error {
    let error = wrong(format!("{expr} is neither a key part nor a formula"));
    let is_drawn = visit_expressions(expr, |part| match part {
        Expr::Function(call) if function_name(call).is_some_and(|name| VARYING.contains(&&*name)) => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    if is_drawn.is_break() {
        return error
            .why("an index computes it whenever its row is written, and must get the same every time")
            .hint("store the value in a column, and put that into the index");
    }
    error
        .why("an index computes it at each write with the few operations that it has itself, of some types")
        .hint(
            "formulas are made of columns, literals, upper, lower, trim, ltrim, rtrim, length, left, right, substr, ||, \
             coalesce, abs, +, -, *, date_trunc and parts of JSON; DESCRIBE shows the types",
        )
}

/// Functions that give something else each time, or from day to day.
const VARYING: &[&str] = &[
    "random",
    "now",
    "current_date",
    "current_time",
    "current_timestamp",
    "localtimestamp",
    "today",
    "uuid",
    "uuidv7",
    "gen_random_uuid",
];

struct Binder<'a> {
    columns: &'a [KeyColumn<'a>],
}

impl Binder<'_> {
    fn part(&self, key: &KeyExpr) -> Result<PartSpec> {
        let transform = self.transform(&key.expr)?;
        if key.descending && matches!(transform, Transform::Literal(_)) {
            return Err(wrong("a delimiter has no order").hint("leave out DESC"));
        }
        Ok(PartSpec { transform, descending: key.descending, sql: key.sql.clone() })
    }

    fn transform(&self, expr: &Expr) -> Result<Transform> {
        match bare(expr) {
            Expr::Identifier(_) => Ok(Transform::Column(self.column(expr)?)),
            Expr::Cast { expr, data_type, .. } if is_text_type(data_type) => {
                Ok(Transform::Text(self.column(expr)?))
            }
            Expr::BinaryOp { left, op: BinaryOperator::Modulo, right } => self.modulo(left, right),
            Expr::BinaryOp { left, op: BinaryOperator::Minus, right } => self.max_minus(left, right, None),
            Expr::Substring { expr: text, substring_from, substring_for, .. } => {
                self.substring(text, substring_from.as_deref(), substring_for.as_deref())
            }
            Expr::Function(function) => self.call(function, expr),
            other => match literal(other) {
                Some("") => Err(wrong("an empty delimiter").hint("write at least one character: '_'")),
                Some(text) => Ok(Transform::Literal(text.to_owned())),
                None => Err(not_a_form(expr)),
            },
        }
    }

    fn call(&self, function: &Function, whole: &Expr) -> Result<Transform> {
        let (Some(name), Some(args)) = (function_name(function), plain_args(function)) else {
            return Err(not_a_form(whole));
        };
        match (name.as_str(), args.as_slice()) {
            ("lpad" | "rpad", [text, pad, n]) if literal(bare(pad)).is_some() && integer(n).is_some() => {
                Err(wrong(format!("{name} takes the width before the pad"))
                    .hint(format!("write {name}({text}, {n}, {pad})")))
            }
            ("lpad", [text, n]) => self.lpad(text, n, '0'),
            ("lpad", [text, n, pad]) => self.lpad(text, n, one_char(pad)?),
            ("rpad", [text, n]) => self.rpad(text, n, ' '),
            ("rpad", [text, n, pad]) => self.rpad(text, n, one_char(pad)?),
            ("reverse", [text]) => self.reverse(text),
            ("reverse_bytes", [column]) => Ok(Transform::ReverseBytes(self.column(column)?)),
            ("left", [text, k]) => self.digits(text, 0, digit_count(k)?, whole),
            ("right", [text, k]) => {
                let k = digit_count(k)?;
                self.digits(text, MD5_DIGITS - k, k, whole)
            }
            ("substr" | "substring", [text, from]) => self.substring(text, Some(from), None),
            ("substr" | "substring", [text, from, k]) => self.substring(text, Some(from), Some(k)),
            ("md5", [column]) => Ok(Transform::Md5(self.text_of(column)?)),
            ("mod", [column, n]) => self.modulo(column, n),
            ("md5_bucket", [columns @ .., n]) if !columns.is_empty() => {
                let columns = columns.iter().map(|column| self.text_of(column));
                Ok(Transform::Md5Bucket { columns: columns.collect::<Result<_>>()?, buckets: buckets(n)? })
            }
            ("random", [n]) => Ok(Transform::Random { buckets: buckets(n)? }),
            ("to_char", [column, format]) => self.to_char(column, format),
            ("code", [column, codes]) => self.code(column, codes),
            (name, _) => Err(match usage(name) {
                Some(usage) => {
                    wrong(format!("{whole} is not how {name} is called")).hint(format!("write {usage}"))
                }
                None => not_a_form(whole),
            }),
        }
    }

    fn lpad(&self, text: &Expr, n: &Expr, pad: char) -> Result<Transform> {
        let width = width(n)?;
        if let Expr::BinaryOp { left, op: BinaryOperator::Minus, right } = uncast(text) {
            return match pad {
                '0' => self.max_minus(left, right, Some(width)),
                _ => {
                    Err(wrong("a number is padded with '0'")
                        .hint(format!("write lpad({}, {width})", bare(text))))
                }
            };
        }
        Ok(Transform::Lpad { column: self.text_of(text)?, width, pad })
    }

    fn rpad(&self, text: &Expr, n: &Expr, pad: char) -> Result<Transform> {
        Ok(Transform::Rpad { width: width(n)?, column: self.text_of(text)?, pad })
    }

    fn reverse(&self, text: &Expr) -> Result<Transform> {
        match bare(text) {
            Expr::Function(_) => match self.transform(text)? {
                Transform::Lpad { column, width, pad: '0' } => {
                    Ok(Transform::Reverse { column, width: Some(width) })
                }
                Transform::ToChar { column, .. } => Err(self.reversed_time(text, column)),
                _ => Err(wrong(format!("reverse({text}) is not a key part"))
                    .hint("write reverse(col) or reverse(lpad(col, n))")),
            },
            _ => Ok(Transform::Reverse { column: self.text_of(text)?, width: None }),
        }
    }

    fn reversed_time(&self, text: &Expr, column: ColumnId) -> Error {
        let name = self.columns.iter().find(|(_, id)| *id == column).map_or("ts", |(name, _)| name);
        let time = name_sql(name);
        wrong(format!("reverse({text}) is not a key part"))
            .why("it would sort by the last digits of a time first, so a range of times would fetch unwanted rows")
            .hint(format!("write {time}, or {time} DESC for the newest first; reverse_bytes({time}) scatters writes"))
    }

    fn max_minus(&self, max: &Expr, column: &Expr, width: Option<u16>) -> Result<Transform> {
        let Some(max) = integer(max) else {
            return Err(wrong(format!("{max} - {column} does not start with a number"))
                .hint("write the largest value: 999999 - col, or 9223372036854775807 - col"));
        };
        if max < 0 {
            return Err(wrong(format!("the largest value of {column} is negative: {max}")));
        }
        let digits = max.to_string().len();
        match width {
            Some(width) if digits > usize::from(width) => Err(wrong(format!(
                "{max} has {} and does not fit a width of {width}",
                counted(digits, "digit")
            ))
            .hint(format!("write lpad({max} - {column}, {digits})"))),
            _ => Ok(Transform::MaxMinus { column: self.column(column)?, max, width }),
        }
    }

    fn substring(&self, text: &Expr, from: Option<&Expr>, len: Option<&Expr>) -> Result<Transform> {
        let position = |expr| number(expr, "position among MD5 digits", MD5_DIGITS.into());
        let from = from.map_or(Ok(1), position)? as u8 - 1;
        let len = len.map_or(Ok(MD5_DIGITS - from), digit_count)?;
        if from + len > MD5_DIGITS {
            return Err(wrong(format!("digits {} to {} of an MD5", from + 1, from + len))
                .why(format!("an MD5 has {MD5_DIGITS} hex digits")));
        }
        self.digits(text, from, len, text)
    }

    /// Digits of `md5(col)`.
    fn digits(&self, text: &Expr, from: u8, len: u8, whole: &Expr) -> Result<Transform> {
        let Expr::Function(function) = bare(text) else { return Err(not_a_form(whole)) };
        match self.call(function, text)? {
            Transform::Md5(column) => Ok(Transform::Md5Hex { column, from, len }),
            _ => Err(not_a_form(whole)),
        }
    }

    fn modulo(&self, column: &Expr, n: &Expr) -> Result<Transform> {
        Ok(Transform::Modulo { column: self.column(column)?, buckets: buckets(n)? })
    }

    fn to_char(&self, column: &Expr, format: &Expr) -> Result<Transform> {
        let id = self.column(column)?;
        match literal(bare(format)) {
            Some(format) if !format.is_empty() => {
                Ok(Transform::ToChar { column: id, format: format.to_owned() })
            }
            _ => Err(wrong("to_char needs a format in quotes")
                .hint(format!("write to_char({column}, 'YYYY-MM-DD')"))),
        }
    }

    fn code(&self, column: &Expr, codes: &Expr) -> Result<Transform> {
        let id = self.column(column)?;
        match literal(bare(codes)) {
            Some(codes) => Ok(Transform::Code { column: id, codes: parse_codes(codes)? }),
            None => Err(wrong("code needs its names in quotes")
                .hint(format!("write {}", example_code(&column.to_string())))),
        }
    }

    /// The column of an expression for its text form: `col`, `cast(col AS varchar)`, `col::text`.
    fn text_of(&self, expr: &Expr) -> Result<ColumnId> {
        self.column(uncast(expr))
    }

    fn column(&self, expr: &Expr) -> Result<ColumnId> {
        let Expr::Identifier(ident) = bare(expr) else {
            return Err(wrong(format!("{expr} is not a column"))
                .hint("one column, and one function of it, make a key part"));
        };
        let name = name_of(ident);
        if let Some((_, id)) = self.columns.iter().find(|(known, _)| *known == name) {
            return Ok(*id);
        }
        let error = Error::invalid(format!("there is no column \"{name}\""))
            .state(sqlstate::UNDEFINED_COLUMN)
            .at(to_span(ident.span));
        Err(match did_you_mean(&name, self.columns.iter().map(|(known, _)| *known)) {
            Some(meant) => error.hint(format!("did you mean {meant}?")),
            None => error.hint(format!("columns here are {}", self.shown())),
        })
    }

    /// The first few columns, for messages.
    fn shown(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).take(COLUMNS_SHOWN).collect();
        let more = if self.columns.len() > COLUMNS_SHOWN { ", ..." } else { "" };
        names.join(", ") + more
    }
}

/// Columns that a message lists (count), at most.
const COLUMNS_SHOWN: usize = 10;

fn wrong(what: impl Into<String>) -> Error {
    Error::invalid(what).state(sqlstate::INVALID_TABLE_DEFINITION)
}

fn not_a_form(expr: &Expr) -> Error {
    let error = wrong(format!("{expr} is not a key part"));
    let mut joined = Vec::new();
    if join_parts(expr, &mut joined) && joined.len() > 1 {
        let parts: Vec<String> = joined.iter().map(|part| part.to_string()).collect();
        return error
            .why("the parts of a key follow each other anyway")
            .hint(format!("write them one after the other: {}", parts.join(", ")));
    }
    if let Expr::Function(function) = bare(expr)
        && let Some(name) = function_name(function)
        && let Some(meant) = did_you_mean(&name, FUNCTIONS.iter().copied()).filter(|meant| *meant != name)
    {
        return error.hint(format!("did you mean {meant}?"));
    }
    error.why("the engine must know how values order under it").hint(
        "key parts are: col, lpad(col, n), rpad(col, n, 'x'), cast(col AS varchar), reverse(col), \
         reverse(lpad(col, n)), reverse_bytes(col), max - col, lpad(max - col, n), left(md5(col), k), \
         right(md5(col), k), substr(md5(col), 1, k), md5(col), col % n, md5_bucket(col, n), random(n), \
         to_char(ts, 'format'), code(col, 'name=code, ...') and 'delimiter'",
    )
}

/// The operands of `||` and `concat`, in order; false if it is neither.
fn join_parts<'e>(expr: &'e Expr, parts: &mut Vec<&'e Expr>) -> bool {
    let operands = match bare(expr) {
        Expr::BinaryOp { left, op: BinaryOperator::StringConcat, right } => vec![&**left, &**right],
        Expr::Function(function) if function_name(function).as_deref() == Some("concat") => {
            plain_args(function).unwrap_or_default()
        }
        _ => return false,
    };
    for operand in operands {
        if !join_parts(operand, parts) {
            parts.push(operand);
        }
    }
    true
}

/// The functions of the key forms.
const FUNCTIONS: &[&str] = &[
    "lpad",
    "rpad",
    "reverse",
    "reverse_bytes",
    "left",
    "right",
    "substr",
    "md5",
    "mod",
    "md5_bucket",
    "random",
    "to_char",
    "code",
];

/// The calling form of a key function, for messages.
fn usage(name: &str) -> Option<&'static str> {
    Some(match name {
        "lpad" => "lpad(col, n) or lpad(col, n, 'x')",
        "rpad" => "rpad(col, n, 'x')",
        "reverse" => "reverse(col) or reverse(lpad(col, n))",
        "reverse_bytes" => "reverse_bytes(col)",
        "left" => "left(md5(col), k)",
        "right" => "right(md5(col), k)",
        "md5" => "md5(col)",
        "mod" => "mod(col, n)",
        "md5_bucket" => "md5_bucket(col, n)",
        "random" => "random(n)",
        "to_char" => "to_char(ts, 'YYYY-MM-DD')",
        "code" => "code(col, 'name=code, ...')",
        _ => return None,
    })
}

/// The expression without parentheses.
fn bare(mut expr: &Expr) -> &Expr {
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

/// The expression without parentheses and casts to text, which text functions imply.
fn uncast(expr: &Expr) -> &Expr {
    match bare(expr) {
        Expr::Cast { expr, data_type, .. } if is_text_type(data_type) => uncast(expr),
        other => other,
    }
}

fn is_text_type(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Varchar(None) | DataType::CharacterVarying(None) | DataType::Text | DataType::String(None)
    )
}

/// Lower-case name of a function without a schema.
fn function_name(function: &Function) -> Option<String> {
    match function.name.0.as_slice() {
        [part] => part.as_ident().map(name_of),
        _ => None,
    }
}

/// The arguments of a plain call: no DISTINCT, FILTER, OVER, IGNORE NULLS or names.
fn plain_args(function: &Function) -> Option<Vec<&Expr>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let plain = function.over.is_none()
        && function.filter.is_none()
        && function.null_treatment.is_none()
        && function.within_group.is_empty()
        && list.duplicate_treatment.is_none()
        && list.clauses.is_empty();
    let args = list.args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    if plain { args.collect() } else { None }
}

fn literal(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

fn integer(expr: &Expr) -> Option<i64> {
    match bare(expr) {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.parse().ok(),
            _ => None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => integer(expr)?.checked_neg(),
        _ => None,
    }
}

/// A whole number from 1 to `max`.
fn number(expr: &Expr, what: &str, max: u64) -> Result<u64> {
    match integer(expr).map(u64::try_from) {
        Some(Ok(n)) if (1..=max).contains(&n) => Ok(n),
        _ => Err(wrong(format!("{expr} is not a {what}")).hint(format!("write a number from 1 to {max}"))),
    }
}

fn width(expr: &Expr) -> Result<u16> {
    number(expr, "width", WIDTH_MAX).map(|n| n as u16)
}

fn buckets(expr: &Expr) -> Result<u32> {
    number(expr, "number of buckets", BUCKETS_MAX.into()).map(|n| n as u32)
}

fn digit_count(expr: &Expr) -> Result<u8> {
    number(expr, "number of MD5 digits", MD5_DIGITS.into()).map(|n| n as u8)
}

fn one_char(expr: &Expr) -> Result<char> {
    let mut chars = literal(bare(expr)).unwrap_or_default().chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => Ok(c),
        _ => Err(wrong(format!("{expr} is not a pad character")).hint("write one character in quotes: '0'")),
    }
}

fn example_code(name: &str) -> String {
    format!("code({name}, 'Taobao=tb, Tmall=tm')")
}

/// Parses `Taobao=tb, Tmall=tm`: distinct names and codes. No code may be a prefix of another, or they are
/// ambiguous.
pub fn parse_codes(text: &str) -> Result<Vec<(String, String)>> {
    let mut codes: Vec<(String, String)> = Vec::new();
    let mut names = HashSet::new();
    for pair in text.split(',') {
        let (name, code) = pair.split_once('=').unwrap_or_default();
        let (name, code) = (name.trim(), code.trim());
        if name.is_empty() || code.is_empty() {
            return Err(wrong(format!("'{}' is not of the form name=code", pair.trim()))
                .hint(format!("write {}", example_code("col"))));
        }
        if !names.insert(name.to_owned()) {
            return Err(wrong(format!("two codes for '{name}'")));
        }
        if let Some((other, _)) = codes.iter().find(|(_, known)| known == code) {
            return Err(wrong(format!("'{other}' and '{name}' have one code, '{code}'")));
        }
        codes.push((name.to_owned(), code.to_owned()));
    }
    Ok(codes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::ast::Statement;
    use crate::sql::parse;

    const COLUMNS: &[KeyColumn] =
        &[("id", ColumnId(0)), ("ts", ColumnId(1)), ("name", ColumnId(2)), ("Odd", ColumnId(3))];

    fn specs(keys: &str) -> std::result::Result<Vec<PartSpec>, String> {
        let sql = format!("CREATE INDEX i ON t ({keys})");
        match parse(&sql) {
            Ok(Statement::CreateIndex(index)) => key_specs(&index.keys, COLUMNS).map_err(|e| e.render(&sql)),
            Ok(other) => panic!("{other:?}"),
            Err(e) => Err(e.render(&sql)),
        }
    }

    #[test]
    fn every_form() {
        let (id, ts, name) = (ColumnId(0), ColumnId(1), ColumnId(2));
        let cases = [
            ("id", Transform::Column(id)),
            ("ID", Transform::Column(id)),
            ("(id)", Transform::Column(id)),
            ("\"Odd\"", Transform::Column(ColumnId(3))),
            ("id::varchar", Transform::Text(id)),
            ("cast(id AS TEXT)", Transform::Text(id)),
            ("lpad(id, 4)", Transform::Lpad { column: id, width: 4, pad: '0' }),
            ("LPAD(id::text, 4, '0')", Transform::Lpad { column: id, width: 4, pad: '0' }),
            ("lpad(name, 4, '-')", Transform::Lpad { column: name, width: 4, pad: '-' }),
            ("rpad(name, 9, 'x')", Transform::Rpad { column: name, width: 9, pad: 'x' }),
            ("rpad(name, 9)", Transform::Rpad { column: name, width: 9, pad: ' ' }),
            ("reverse(name)", Transform::Reverse { column: name, width: None }),
            ("reverse(id::varchar)", Transform::Reverse { column: id, width: None }),
            ("reverse(lpad(id, 12))", Transform::Reverse { column: id, width: Some(12) }),
            ("reverse_bytes(id)", Transform::ReverseBytes(id)),
            ("9223372036854775807 - id", Transform::MaxMinus { column: id, max: i64::MAX, width: None }),
            ("9223372036854775807 - ts", Transform::MaxMinus { column: ts, max: i64::MAX, width: None }),
            ("lpad(999999 - id, 6)", Transform::MaxMinus { column: id, max: 999_999, width: Some(6) }),
            (
                "lpad((999999 - id)::varchar, 6, '0')",
                Transform::MaxMinus { column: id, max: 999_999, width: Some(6) },
            ),
            ("left(md5(id), 4)", Transform::Md5Hex { column: id, from: 0, len: 4 }),
            ("right(md5(cast(id AS varchar)), 4)", Transform::Md5Hex { column: id, from: 28, len: 4 }),
            ("substr(md5(name), 1, 4)", Transform::Md5Hex { column: name, from: 0, len: 4 }),
            ("substring(md5(name) FROM 3 FOR 2)", Transform::Md5Hex { column: name, from: 2, len: 2 }),
            ("substring(md5(name), 31)", Transform::Md5Hex { column: name, from: 30, len: 2 }),
            ("md5(id)", Transform::Md5(id)),
            ("id % 16", Transform::Modulo { column: id, buckets: 16 }),
            ("mod(id, 16)", Transform::Modulo { column: id, buckets: 16 }),
            ("md5_bucket(id, name, 16)", Transform::Md5Bucket { columns: vec![id, name], buckets: 16 }),
            ("random(100)", Transform::Random { buckets: 100 }),
            ("to_char(ts, 'YYYY-MM-DD')", Transform::ToChar { column: ts, format: "YYYY-MM-DD".into() }),
            (
                "code(name, 'Taobao=tb, Tmall = tm')",
                Transform::Code {
                    column: name,
                    codes: vec![("Taobao".into(), "tb".into()), ("Tmall".into(), "tm".into())],
                },
            ),
            ("'_'", Transform::Literal("_".into())),
        ];
        for (sql, transform) in cases {
            let expected = PartSpec { transform, descending: false, sql: sql.to_owned() };
            assert_eq!(specs(sql), Ok(vec![expected]), "{sql}");
        }
    }

    #[test]
    fn parts_keep_their_order_direction_and_text() {
        let parts = specs("lpad( id,4 ) DESC, '_', ts ASC").unwrap();
        let shown: Vec<_> = parts.iter().map(|p| (p.sql.as_str(), p.descending)).collect();
        assert_eq!(shown, [("lpad( id,4 )", true), ("'_'", false), ("ts", false)]);
    }

    #[test]
    fn anything_else_is_refused_with_the_forms() {
        for sql in ["id + 1", "upper(name)", "id * 2", "left(name, 3)", "t.id", "now()", "42", "id % 16 + 1"]
        {
            let error = specs(sql).unwrap_err();
            assert!(error.contains("is not a key part\n  why: the engine must know"), "{error}");
            assert!(error.contains("key parts are: col, lpad(col, n)"), "{error}");
            assert!(error.ends_with(&"^".repeat(sql.len())), "{error}");
        }
    }

    #[test]
    fn mistakes_inside_a_form() {
        let cases = [
            ("idd", "there is no column \"idd\"\n hint: did you mean id?"),
            ("md5(nam)", "there is no column \"nam\"\n hint: did you mean name?"),
            ("lpda(id, 5)", "lpda(id, 5) is not a key part\n hint: did you mean lpad?"),
            ("odd", "there is no column \"odd\"\n hint: did you mean Odd?"),
            (
                "lpad(id)",
                "lpad(id) is not how lpad is called\n hint: write lpad(col, n) or lpad(col, n, 'x')",
            ),
            ("lpad(id, 0)", "0 is not a width\n hint: write a number from 1 to 1000"),
            ("lpad(id, n)", "n is not a width\n hint: write a number from 1 to 1000"),
            ("lpad(name, 4, 'ab')", "'ab' is not a pad character\n hint: write one character in quotes: '0'"),
            ("id % 0", "0 is not a number of buckets\n hint: write a number from 1 to 1000000"),
            (
                "lpad(999999 - id, 5)",
                "999999 has 6 digits and does not fit a width of 5\n hint: write lpad(999999 - id, 6)",
            ),
            ("left(md5(id), 33)", "33 is not a number of MD5 digits\n hint: write a number from 1 to 32"),
            ("substr(md5(id), 30, 9)", "digits 30 to 38 of an MD5\n  why: an MD5 has 32 hex digits"),
            (
                "code(name, 'a=x, b')",
                "'b' is not of the form name=code\n hint: write code(col, 'Taobao=tb, Tmall=tm')",
            ),
            ("code(name, 'a=x, b=x')", "'a' and 'b' have one code, 'x'"),
            ("''", "an empty delimiter\n hint: write at least one character: '_'"),
        ];
        for (sql, expected) in cases {
            let error = specs(sql).unwrap_err();
            // An unknown column is pointed at, a wrong form as a whole.
            let (at, len) = match sql.find("nam)") {
                Some(at) => (at, 3),
                None => (0, sql.len()),
            };
            let carets = "^".repeat(len);
            let place = format!("LINE 1: CREATE INDEX i ON t ({sql})\n{}{carets}", " ".repeat(29 + at));
            assert_eq!(error, format!("error: {expected}\n{place}"));
        }
        assert!(specs("'_' DESC").unwrap_err().contains("a delimiter has no order"));
    }
}
