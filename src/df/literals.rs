//! Literals and types in DataFusion's texts of expressions, as SQL writes them.

use crate::value::{self, Interval, ValueRef};

/// Rewords literals and types outside of quotes: `Int64(1)` is 1, `Utf8("a")` is 'a', `AS Float64` is AS DOUBLE.
pub fn words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '\'') {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        let len = match from.strip_prefix('\'') {
            Some(quoted) => quoted.find('\'').map_or(from.len(), |end| end + 2),
            None => from.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(from.len()),
        };
        let (word, after) = from.split_at(len);
        let (to, after) = reworded(word, after).unwrap_or_else(|| (word.to_owned(), after));
        out.push_str(&to);
        rest = after;
    }
    out + rest
}

/// A word in SQL, and what follows it.
fn reworded<'t>(word: &str, after: &'t str) -> Option<(String, &'t str)> {
    if word == "count" {
        return after.strip_prefix("(Int64(1))").map(|after| ("count(*)".to_owned(), after));
    }
    if let Some(text) = after.strip_prefix("(\"") {
        let (inner, after) = text.split_once("\")")?;
        return Some((quoted(word, inner)?, after));
    }
    if let Some((inner, after)) = after.strip_prefix('(').and_then(in_parentheses) {
        match word {
            "Decimal128" => return Some((decimal(inner), after)),
            "Timestamp" => return Some((timestamp_type(inner).to_owned(), after)),
            "Interval" | "Duration" => return Some(("INTERVAL".to_owned(), after)),
            "TimestampMicrosecond" => return Some((timestamp(inner)?, after)),
            "Boolean" => return Some((inner.to_owned(), after)),
            word if type_name(word).is_some() => return Some((inner.to_owned(), after)),
            _ => {}
        }
    }
    type_name(word).map(|ty| (ty.to_owned(), after))
}

/// What is inside of the parentheses that are open, and what follows them.
fn in_parentheses(text: &str) -> Option<(&str, &str)> {
    let mut open = 1;
    let close = text.find(|c| {
        open += i32::from(c == '(') - i32::from(c == ')');
        open == 0
    })?;
    Some((&text[..close], &text[close + 1..]))
}

fn type_name(word: &str) -> Option<&'static str> {
    Some(match word {
        "Int16" => "SMALLINT",
        "Int32" => "INTEGER",
        "Int64" | "UInt64" => "BIGINT",
        "Float32" => "REAL",
        "Float64" => "DOUBLE",
        "Date32" => "DATE",
        "Decimal128" => "DECIMAL",
        "Utf8" | "Utf8View" | "LargeUtf8" => "VARCHAR",
        "BinaryView" => "VARBINARY",
        _ => return None,
    })
}

/// `Utf8("a")`, `Date32("2024-03-01")` and the like.
fn quoted(word: &str, inner: &str) -> Option<String> {
    if word == "IntervalMonthDayNano" {
        let mut numbers = inner.split(|c: char| !c.is_ascii_digit() && c != '-').filter(|n| !n.is_empty());
        let mut next = || numbers.next()?.parse::<i64>().ok();
        let (months, days, nanos) = (next()?, next()?, next()?);
        return Some(interval(months.try_into().ok()?, days.try_into().ok()?, nanos));
    }
    type_name(word).map(|_| format!("'{}'", inner.replace('\'', "''")))
}

/// Of `Timestamp(µs, "UTC")`, or `Timestamp(Microsecond, Some("UTC"))`.
fn timestamp_type(inner: &str) -> &'static str {
    if inner.contains('"') { "TIMESTAMPTZ" } else { "TIMESTAMP" }
}

/// `TimestampMicrosecond(1704067200000000, None)`
fn timestamp(inner: &str) -> Option<String> {
    let (us, zone) = inner.split_once(", ")?;
    let us = us.parse().ok()?;
    let value = if zone == "None" { ValueRef::Timestamp(us) } else { ValueRef::TimestampTz(us) };
    Some(value::Literal(value).to_string())
}

/// The literal `Decimal128(1.50,3,2)`, or a type.
fn decimal(inner: &str) -> String {
    match inner.split(',').collect::<Vec<_>>()[..] {
        [number, _, _] => number.to_owned(),
        _ => format!("DECIMAL({inner})"),
    }
}

/// The literal of an interval.
pub fn interval(months: i32, days: i32, nanos: i64) -> String {
    format!("INTERVAL '{}'", Interval { months, days: days.into(), nanos: nanos.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_sql() {
        let cases = [
            ("count(Int64(1))", "count(*)"),
            ("rows > Int64(0)", "rows > 0"),
            ("CAST(l.line AS Int64)", "CAST(l.line AS BIGINT)"),
            (r#"a = Utf8("it's") OR b = Date32("2024-03-01")"#, "a = 'it''s' OR b = '2024-03-01'"),
            ("a > TimestampMicrosecond(1704067200000000, None)", "a > '2024-01-01 00:00:00'"),
            ("a > Decimal128(1.50,3,2) + 1", "a > 1.50 + 1"),
            (
                "CAST(a AS Timestamp(µs)) - CAST(b AS Decimal128(5, 2))",
                "CAST(a AS TIMESTAMP) - CAST(b AS DECIMAL(5, 2))",
            ),
            (
                r#"CAST(a AS Timestamp(Microsecond, None)) < CAST(b AS Timestamp(Microsecond, Some("UTC")))"#,
                "CAST(a AS TIMESTAMP) < CAST(b AS TIMESTAMPTZ)",
            ),
            (
                r#"a + IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 1, nanoseconds: 0 }")"#,
                "a + INTERVAL '1 day'",
            ),
            ("'Int64(1)' || a", "'Int64(1)' || a"),
        ];
        for (from, to) in cases {
            assert_eq!(words(from), to);
        }
    }
}
