//! Literal lifting: computes a query's plan-cache key, so that texts which differ only in compared literals
//! are planned once.
//!
//! `SELECT * FROM t WHERE id = 7 AND day >= DATE '2024-01-01'` becomes `... WHERE id = $1 AND day >= $2` with
//! two values. A literal is lifted only if it is a whole side of a comparison, or the number of OFFSET: `= 7
//! AND`, but not `= 7 + x`, `LIMIT 7` or `lpad(id, 7)`, which shape the plan. A sum of literals counts as
//! one: `7 + 2`, or `TIMESTAMP '2024-01-01' - INTERVAL '1 day'`. IN lists are padded to 1, 2, 4, 8 .. values
//! by repeating the last one, so that lists of similar length share a plan. In a select list, literals are
//! lifted only from columns with an `AS` name: other columns are named by their text. There is no parsing:
//! this runs on every statement before the plan cache is asked, so it walks the bytes once.

use std::cell::OnceCell;
use std::fmt::Write as _;
use std::ops::Range;

use crate::value::{ColumnType, Value};

/// Bytes of the longest text worth keeping.
const TEXT_BYTES: usize = 32_768;
/// Literals lifted from one text (count), at most; longer IN lists are planned as they are.
const VALUES: usize = 1024;

/// Levels of nested parentheses, at most.
const DEPTH_MAX: i32 = 60;

/// A lifted value.
#[derive(Clone, Debug, PartialEq)]
pub enum Compared {
    /// A literal.
    Value(Value),
    /// The current time or day, plus so many microseconds.
    Now(Clock, i64),
}

impl Compared {
    /// The value at the time `now` (microseconds since 1970 in UTC).
    pub fn value(&self, now: impl FnOnce() -> i64) -> Value {
        match self {
            Compared::Value(value) => value.clone(),
            Compared::Now(clock, more) => clock.at(now().saturating_add(*more)),
        }
    }
}

/// What a clock function returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// `now()`: a TIMESTAMP.
    Time,
    /// `current_date`: a DATE.
    Day,
}

impl Clock {
    /// The function of this name.
    pub fn named(name: &str) -> Option<Clock> {
        match name.to_ascii_lowercase().as_str() {
            "now" | "current_timestamp" => Some(Clock::Time),
            "current_date" | "today" => Some(Clock::Day),
            _ => None,
        }
    }

    /// Its value at a time, in microseconds since 1970 in UTC.
    pub fn at(self, micros: i64) -> Value {
        match self {
            Clock::Time => Value::Timestamp(micros),
            Clock::Day => Value::Date(micros.div_euclid(DAY_MICROS) as i32),
        }
    }
}

const DAY_MICROS: i64 = 86_400_000_000;

/// The largest parameter number.
const PARAMETER_MAX: usize = u16::MAX as usize;

/// A query's text, with its compared literals replaced by parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Lifted {
    /// The text; parameters of the statement itself keep their numbers.
    pub text: String,
    /// Values of the parameters past the statement's own.
    pub values: Vec<Compared>,
    /// The number of parameters in the statement itself.
    pub own: usize,
}

/// Lifts the literals of a query; `None` if it is no query, or not worth keeping.
pub fn lift(sql: &str) -> Option<Lifted> {
    // Skip other statements, such as INSERT, without tokenizing them.
    let first = sql.trim_start().bytes().next()?;
    if sql.len() > TEXT_BYTES || first.is_ascii_alphabetic() && !matches!(first, b's' | b'S' | b'w' | b'W') {
        return None;
    }
    let tokens = tokens(sql)?;
    let first = tokens.first()?;
    if !["select", "with"].iter().any(|word| first.text(sql).eq_ignore_ascii_case(word)) {
        return None;
    }
    let own = tokens.iter().filter_map(|t| t.parameter(sql)).max().unwrap_or(0);
    // The parser will refuse such a parameter.
    if own > PARAMETER_MAX {
        return None;
    }
    let mut lifted = Lifted { text: String::with_capacity(sql.len() + 8), values: Vec::new(), own };
    // Depth of parentheses of an IN list, or of a row compared with something.
    let (mut copied, mut in_list, mut list_depth) = (0, false, 0);
    // One bit for each open parenthesis, the innermost lowest: is it in a select list?
    let (mut selects, mut depth) = (0_u64, 0_i32);
    let called = OnceCell::new();
    let mut next = 0;
    while next < tokens.len() {
        let at = next;
        let before = at.checked_sub(1).map(|before| tokens[before]);
        match (tokens[at].class, sql.as_bytes()[tokens[at].start]) {
            (Class::Other, b'(') => {
                (selects, depth) = (selects << 1, depth + 1);
                let opens_list = |before: Token| before.class == Class::Comparison || before.is(sql, &["in"]);
                if before.is_some_and(opens_list) {
                    (in_list, list_depth) = (true, depth);
                }
            }
            (Class::Other, b')') => (selects, depth) = (selects >> 1, depth - 1),
            (Class::Word, b's' | b'S') if tokens[at].is(sql, &["select"]) => selects |= 1,
            // The FROM of IS DISTINCT FROM is followed by no table.
            (Class::Word, b'f' | b'F')
                if tokens[at].is(sql, &["from"])
                    && !before.is_some_and(|before| before.is(sql, &["distinct"])) =>
            {
                selects &= !1;
            }
            _ => {}
        }
        if !(0..=DEPTH_MAX).contains(&depth) {
            return None;
        }
        let may_lift = || {
            let called = || called.get_or_init(|| called_by_their_text(sql, &tokens));
            selects == 0 || !called().iter().any(|column| column.contains(&at))
        };
        if in_list && let Some((values, len)) = list_of_in(sql, &tokens, at).filter(|_| may_lift()) {
            if lifted.values.len() + values.len() > VALUES {
                return None;
            }
            lifted.text.push_str(&sql[copied..tokens[at].end]);
            for (n, value) in values.into_iter().enumerate() {
                lifted.values.push(value);
                let comma = if n == 0 { "" } else { ", " };
                // Writing to a string cannot fail.
                let _ = write!(lifted.text, "{comma}${}", own + lifted.values.len());
            }
            copied = tokens[at + len].start;
            (next, in_list) = (at + len, false);
            continue;
        }
        let lifts = compared_literal(sql, &tokens, at, in_list).filter(|_| may_lift());
        next += lifts.as_ref().map_or(1, |(_, len)| *len);
        let Some((value, len)) = lifts else {
            // A row inside the list ends here.
            let is_row = tokens[at].text(sql) == ")" && depth >= list_depth;
            in_list &= is_row || is_list(sql, &tokens[at]);
            continue;
        };
        if lifted.values.len() == VALUES {
            return None;
        }
        lifted.values.push(value);
        lifted.text.push_str(&sql[copied..tokens[at].start]);
        let _ = write!(lifted.text, "${}", own + lifted.values.len());
        copied = tokens[at + len - 1].end;
    }
    lifted.text.push_str(&sql[copied..]);
    Some(lifted)
}

/// Columns of select lists whose literals stay: those without an alias, because they are named by their text;
/// and all of them if GROUP BY or ORDER BY contains a literal, because it may refer to the same expression.
fn called_by_their_text(sql: &str, tokens: &[Token]) -> Vec<Range<usize>> {
    let mut columns: Vec<(Range<usize>, bool)> = Vec::new();
    let mut end = |(_, from): List, end: usize| {
        let is_named = match &tokens[..end] {
            [.., word, name] => {
                word.is(sql, &["as"]) && (name.class == Class::Word || name.text(sql).starts_with('"'))
            }
            _ => false,
        };
        columns.push((from..end, is_named));
    };
    // The select lists around the position.
    let mut lists: Vec<List> = Vec::new();
    let (mut depth, mut sorts, mut sorts_by_literals) = (0, false, false);
    for (at, token) in tokens.iter().enumerate() {
        let is_in_list = lists.last().is_some_and(|(list, _)| *list == depth);
        match (token.class, token.text(sql)) {
            (Class::Comparison, _) => sorts_by_literals |= sorts,
            (Class::Other, "(") => depth += 1,
            (Class::Other, ")") => {
                (depth, sorts) = (depth - 1, false);
                lists.pop_if(|(list, _)| *list > depth).into_iter().for_each(|list| end(list, at));
            }
            (Class::Other, ",") if is_in_list => {
                lists.pop().into_iter().for_each(|list| end(list, at));
                lists.push((depth, at + 1));
            }
            (Class::Word, _) if token.is(sql, &["select"]) => lists.push((depth, at + 1)),
            (Class::Word, _) => {
                // The FROM of IS DISTINCT FROM is followed by no table.
                let is_distinct =
                    at.checked_sub(1).is_some_and(|before| tokens[before].is(sql, &["distinct"]));
                let begins = token.is(sql, &["group", "order"]);
                let ends = token
                    .is(sql, &["from", "where", "having", "limit", "offset", "union", "except", "intersect"]);
                if is_in_list && (begins || ends) && !is_distinct {
                    lists.pop().into_iter().for_each(|list| end(list, at));
                }
                sorts = begins || sorts && !ends;
                sorts_by_literals |= sorts && token.is(sql, &["in", "between", "like"]);
            }
            _ => {}
        }
    }
    lists.into_iter().for_each(|list| end(list, tokens.len()));
    let stays = |(_, is_named): &(Range<usize>, bool)| sorts_by_literals || !is_named;
    columns.into_iter().filter(stays).map(|(column, _)| column).collect()
}

/// A select list: its depth of parentheses, and where its last column begins.
type List = (i32, usize);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Word,
    Number,
    Text,
    Parameter,
    /// `=`, `<`, `>`, `<=`, `>=`, `<>`, `!=`
    Comparison,
    Other,
}

#[derive(Clone, Copy)]
struct Token {
    class: Class,
    start: usize,
    end: usize,
}

impl Token {
    fn text<'a>(&self, sql: &'a str) -> &'a str {
        &sql[self.start..self.end]
    }

    fn is(&self, sql: &str, words: &[&str]) -> bool {
        self.class == Class::Word && words.iter().any(|word| self.text(sql).eq_ignore_ascii_case(word))
    }

    fn parameter(&self, sql: &str) -> Option<usize> {
        (self.class == Class::Parameter).then(|| sql[self.start + 1..self.end].parse().ok()).flatten()
    }
}

/// The literal at `at` and its number of tokens, if it is a whole side of a comparison; `in_list`: the tokens
/// before it belong to an IN list.
fn compared_literal(sql: &str, tokens: &[Token], at: usize, in_list: bool) -> Option<(Compared, usize)> {
    let before = tokens.get(at.checked_sub(1)?)?;
    let one_of = |words: &[&str]| before.is(sql, words);
    let between = || one_of(&["and"]) && is_upper_bound(sql, tokens, at - 1);
    let opens = before.class == Class::Comparison
        || one_of(&["between", "like"])
        || one_of(&["offset"]) && token_is_number(tokens, at)
        || matches!(before.text(sql), "(" | ",") && in_list
        || between();
    if !opens {
        return None;
    }
    let (value, len) = literal(sql, &tokens[at..])?;
    let closes = tokens.get(at + len).is_none_or(|after| {
        matches!(after.text(sql), ")" | ";")
            || after.text(sql) == "," && in_list
            || after.is(sql, &BEHIND_A_COMPARISON)
    });
    closes.then_some((value, len))
}

/// Words that may follow a comparison.
const BEHIND_A_COMPARISON: [&str; 23] = [
    "and",
    "or",
    "then",
    "when",
    "else",
    "end",
    "as",
    "join",
    "inner",
    "left",
    "right",
    "full",
    "cross",
    "where",
    "order",
    "group",
    "having",
    "window",
    "limit",
    "offset",
    "union",
    "except",
    "intersect",
];

/// The literals of an IN list that opens at the token `at`, padded to a power of two, and the number of
/// tokens up to the closing parenthesis; `None` if the list is empty or contains anything else.
fn list_of_in(sql: &str, tokens: &[Token], at: usize) -> Option<(Vec<Compared>, usize)> {
    if tokens[at].text(sql) != "(" || !tokens.get(at.checked_sub(1)?)?.is(sql, &["in"]) {
        return None;
    }
    let (mut values, mut len) = (Vec::new(), 0);
    loop {
        let (value, of_value) = literal(sql, tokens.get(at + len + 1..)?)?;
        values.push(value);
        len += 1 + of_value;
        match tokens.get(at + len)?.text(sql) {
            "," => {}
            ")" => break,
            _ => return None,
        }
    }
    let last = values.last()?.clone();
    let more = values.len().next_power_of_two();
    values.resize(if more <= VALUES { more } else { values.len() }, last);
    Some((values, len))
}

/// The literal, or sum of literals, at the start of the tokens, and its number of tokens.
fn literal(sql: &str, tokens: &[Token]) -> Option<(Compared, usize)> {
    let token = |n: usize| tokens.get(n);
    let here = token(0)?;
    let (value, len) = match here.class {
        Class::Text => (Value::Text(text_of(here.text(sql))), 1),
        Class::Number => (Value::number(here.text(sql))?, 1),
        Class::Other if here.text(sql) == "-" && token(1)?.class == Class::Number => {
            (Value::number(token(1)?.text(sql))?.negated()?, 2)
        }
        Class::Word if token(1).is_some_and(|next| next.class == Class::Text) => {
            let ty = match here.text(sql).to_ascii_lowercase().as_str() {
                "date" => ColumnType::Date,
                "timestamp" => ColumnType::Timestamp,
                _ => return None,
            };
            (Value::Text(text_of(token(1)?.text(sql))).cast(ty).ok()?, 2)
        }
        Class::Word => return of_clock(sql, tokens),
        _ => return None,
    };
    let (value, more) = added(sql, value, tokens.get(len..)?)?;
    Some((Compared::Value(value), len + more))
}

/// Adds whole numbers or intervals of fixed length that follow a literal; also gives the number of tokens
/// used. `None` if the sum is out of range.
fn added(sql: &str, mut value: Value, tokens: &[Token]) -> Option<(Value, usize)> {
    let text = |n: usize| tokens.get(n).map_or("", |t: &Token| t.text(sql));
    let mut len = 0;
    loop {
        let sign = match text(len) {
            "+" => 1,
            "-" => -1,
            _ => return Some((value, len)),
        };
        let more = tokens.get(len + 1)?;
        let (sum, of_more) = match value {
            Value::Int(n) if more.class == Class::Number => match Value::number(more.text(sql))? {
                Value::Int(more) => (Value::Int(n.checked_add(sign * more)?), 1),
                _ => return None,
            },
            Value::Timestamp(us) if more.is(sql, &["interval"]) => {
                let (n, unit, of_interval) = interval(sql, tokens.get(len + 2..)?)?;
                (Value::Timestamp(us.checked_add(sign * n * unit)?), 1 + of_interval)
            }
            _ => return None,
        };
        (value, len) = (sum, len + 1 + of_more);
    }
}

fn token_is_number(tokens: &[Token], at: usize) -> bool {
    tokens.get(at).is_some_and(|token| token.class == Class::Number)
}

/// A call of the clock with an interval of fixed length added or subtracted, if any; also its number of
/// tokens.
fn of_clock(sql: &str, tokens: &[Token]) -> Option<(Compared, usize)> {
    let text = |n: usize| tokens.get(n).map_or("", |t: &Token| t.text(sql));
    let clock = Clock::named(text(0))?;
    let len = if (text(1), text(2)) == ("(", ")") { 3 } else { 1 };
    // Without parentheses these may be column names.
    if len == 1 && matches!(text(0).to_ascii_lowercase().as_str(), "now" | "today") {
        return None;
    }
    let sign = match text(len) {
        "+" => 1,
        "-" => -1,
        _ => return Some((Compared::Now(clock, 0), len)),
    };
    let more = &tokens[len + 1..];
    let (micros, of_more) = match more.first()? {
        days if days.class == Class::Number && clock == Clock::Day => {
            let days = days.text(sql).parse::<i64>().ok().filter(|days| *days <= DAYS_MAX)?;
            (days * DAY_MICROS, 1)
        }
        word if word.is(sql, &["interval"]) => {
            let (n, unit, of_interval) = interval(sql, &more[1..])?;
            // A day plus hours is a timestamp, not a date.
            if clock == Clock::Day && unit % DAY_MICROS != 0 {
                return None;
            }
            (n * unit, 1 + of_interval)
        }
        _ => return None,
    };
    Some((Compared::Now(clock, sign * micros), len + 1 + of_more))
}

/// The furthest lifted day from today, in days; none of these is out of range.
const DAYS_MAX: i64 = 1_000_000;

/// The amount and the unit (in microseconds) of `'7 days'` or `'7' DAY`, and the number of tokens; `None` if
/// the length depends on the calendar, or the spelling is another.
fn interval(sql: &str, tokens: &[Token]) -> Option<(i64, i64, usize)> {
    let quoted = tokens.first().filter(|token| token.class == Class::Text)?;
    let length = text_of(quoted.text(sql));
    let (n, unit, len) = match length.trim().split_once(' ') {
        Some((n, unit)) => (n, unit.trim(), 1),
        None => (length.trim(), tokens.get(1)?.text(sql), 2),
    };
    let unit = unit.to_ascii_lowercase();
    // A unit after the quotes has no plural.
    let unit = match if len == 1 { unit.trim_end_matches('s') } else { &unit } {
        "second" => 1_000_000,
        "minute" => 60_000_000,
        "hour" => 3_600_000_000,
        "day" => DAY_MICROS,
        "week" => 7 * DAY_MICROS,
        _ => return None,
    };
    let n = n.parse::<i64>().ok()?;
    let micros = n.checked_mul(unit)?;
    (micros.unsigned_abs() <= DAYS_MAX as u64 * DAY_MICROS as u64).then_some((n, unit, len))
}

/// Can the token be part of a list of literals?
fn is_list(sql: &str, token: &Token) -> bool {
    match token.class {
        Class::Number | Class::Text | Class::Parameter => true,
        Class::Other => matches!(token.text(sql), "(" | "," | "-"),
        Class::Word | Class::Comparison => false,
    }
}

/// Does the AND at `at` separate the bounds of a BETWEEN whose lower bound is a literal?
fn is_upper_bound(sql: &str, tokens: &[Token], at: usize) -> bool {
    let is_literal = |t: &Token| {
        matches!(t.class, Class::Number | Class::Text | Class::Parameter)
            || t.is(sql, &["date", "timestamp"])
            || matches!(t.text(sql), "-" | "+")
    };
    tokens[..at].iter().rev().take(5).find(|t| !is_literal(t)).is_some_and(|t| t.is(sql, &["between"]))
}

/// A text literal's value.
fn text_of(quoted: &str) -> String {
    quoted[1..quoted.len() - 1].replace("''", "'")
}

/// Tokens without blanks and comments; `None` if the text contains something that must not be touched.
fn tokens(sql: &str) -> Option<Vec<Token>> {
    let bytes = sql.as_bytes();
    let mut tokens: Vec<Token> = Vec::with_capacity(sql.len() / 4);
    let mut at = 0;
    let end_of = |from: usize, go: fn(u8) -> bool| {
        bytes[from..].iter().position(|b| !go(*b)).map_or(bytes.len(), |n| from + n)
    };
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80;
    while at < bytes.len() {
        let start = at;
        let next = bytes.get(at + 1).copied();
        let class = match bytes[at] {
            b if b.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'-' if next == Some(b'-') => {
                at = end_of(at, |b| b != b'\n');
                continue;
            }
            b'/' if next == Some(b'*') => {
                at += 2 + sql[at + 2..].find("*/")? + 2;
                // Comments nest. Hints shape the plan and stay in the text.
                if sql[start + 2..at - 2].contains("/*") {
                    return None;
                }
                continue;
            }
            // `->`, `->>`, `#>` and the like compare nothing.
            b'-' | b'#' | b'@' if next == Some(b'>') => {
                at = end_of(at + 1, |b| b == b'>');
                Class::Other
            }
            b'\'' => {
                at = end_of_quoted(bytes, at, b'\'')?;
                // `E'..'` and `X'..'` have other rules.
                if tokens.last().is_some_and(|t| t.class == Class::Word && t.end == start) {
                    return None;
                }
                Class::Text
            }
            b'"' => {
                at = end_of_quoted(bytes, at, b'"')?;
                Class::Other
            }
            b'$' if next.is_some_and(|b| b.is_ascii_digit()) => {
                at = end_of(at + 1, |b| b.is_ascii_digit());
                Class::Parameter
            }
            b'$' | b'?' | b'`' => return None,
            b if b.is_ascii_digit() || b == b'.' && next.is_some_and(|b| b.is_ascii_digit()) => {
                at = end_of(at, |b| b.is_ascii_alphanumeric() || b == b'.' || b == b'_');
                let signed =
                    matches!(bytes[at - 1], b'e' | b'E') && matches!(bytes.get(at), Some(b'+' | b'-'));
                if signed {
                    at = end_of(at + 1, |b| b.is_ascii_digit());
                }
                Class::Number
            }
            b'=' | b'<' | b'>' | b'!' => {
                at = end_of(at, |b| matches!(b, b'=' | b'<' | b'>' | b'!'));
                match &sql[start..at] {
                    "=" | "<" | ">" | "<=" | ">=" | "<>" | "!=" => Class::Comparison,
                    _ => Class::Other,
                }
            }
            b if is_word(b) => {
                at = end_of(at, |b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$') || b >= 0x80);
                Class::Word
            }
            _ => {
                at += 1;
                Class::Other
            }
        };
        tokens.push(Token { class, start, end: at });
    }
    Some(tokens)
}

/// The position after the closing quote; a doubled quote is part of the text.
fn end_of_quoted(bytes: &[u8], start: usize, quote: u8) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += bytes.get(at..)?.iter().position(|b| *b == quote)? + 1;
        if bytes.get(at) != Some(&quote) {
            return Some(at);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests;
