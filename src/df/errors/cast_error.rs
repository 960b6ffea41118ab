//! Translates Arrow's messages about failed casts into SQL's terms.

use crate::error::{Error, sqlstate};

/// The error for a value that cannot be cast, from Arrow's message.
pub fn cast_error(what: &str) -> Error {
    malformed(what).or_else(|| out_of_range(what)).or_else(|| overflowing(what)).unwrap_or_else(|| {
        Error::invalid(what).hint("compare and cast only what has this type").state(sqlstate::INVALID_TEXT)
    })
}

/// Rewrites a message of DataFusion: SQL's names of types, literals as in SQL, and no list of candidate signatures.
pub fn sql_words(text: &str) -> String {
    let text = text.strip_prefix("Internal error: ").unwrap_or(text);
    let text = text
        .split(" failed to match any signature")
        .next()
        .map_or(text, |head| if head.len() < text.len() { head } else { text });
    let text = text.split(". No function matches the given name").next().unwrap_or(text);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic()) {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        let len = from.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(from.len());
        let (word, after) = from.split_at(len);
        rest = after;
        let Some(name) = arrow_name(word) else {
            out.push_str(word);
            continue;
        };
        // `Int64(1)` is a literal, `Timestamp(µs)` a type.
        match after.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
            Some((_, after)) if name == "TIMESTAMP" || name == "INTERVAL" => {
                out.push_str(name);
                rest = after;
            }
            Some((literal, after)) if name != "DECIMAL" => {
                out.push_str(literal);
                rest = after;
            }
            _ => out.push_str(name),
        }
    }
    out.push_str(rest);
    match out.strip_prefix("Function '").and_then(|out| out.strip_suffix('\'')) {
        Some(function) => format!("{function} does not take values of these types"),
        None => out,
    }
}

fn arrow_name(word: &str) -> Option<&'static str> {
    match word {
        "Utf8" | "Utf8View" | "LargeUtf8" => Some("VARCHAR"),
        "Binary" | "BinaryView" | "LargeBinary" => Some("VARBINARY"),
        "Timestamp" | "Interval" | "Decimal128" | "Boolean" => sql_name(word),
        word if word.ends_with(|c: char| c.is_ascii_digit()) => sql_name(word),
        _ => None,
    }
}

fn malformed(what: &str) -> Option<Error> {
    let (value, ty) = match what.strip_prefix("Cannot cast string '") {
        Some(rest) => rest.strip_suffix(" type")?.rsplit_once("' to value of ")?,
        None => (between(what, "Error parsing timestamp from '", "': ")?, "Timestamp"),
    };
    // No column has this type: only frames do.
    if ty == "UInt64" {
        let error =
            Error::invalid(format!("'{value}' is not a number of rows")).state(sqlstate::INVALID_TEXT);
        return Some(error.hint("write ROWS 1 PRECEDING, or RANGE for a distance between values"));
    }
    let ty = sql_name(ty)?;
    let article = if ty.starts_with('I') { "an" } else { "a" };
    let hint = match ty {
        "DATE" => "write 'YYYY-MM-DD'",
        "TIMESTAMP" => "write 'YYYY-MM-DD HH:MM:SS'",
        "BOOLEAN" => "write true or false",
        _ => "write a number",
    };
    Some(Error::invalid(format!("'{value}' is not {article} {ty}")).hint(hint).state(sqlstate::INVALID_TEXT))
}

fn out_of_range(what: &str) -> Option<Error> {
    let (value, ty) = match what.strip_prefix("value of ") {
        Some(rest) => rest.split_once(" is out of range ")?,
        None => what.strip_prefix("Can't cast value ")?.rsplit_once(" to type ")?,
    };
    let error = Error::invalid(format!("{value} is out of range for {}", sql_name(ty)?));
    Some(error.hint("cast to a wider type, such as DOUBLE").state(sqlstate::OUT_OF_RANGE))
}

/// `Cannot cast to Decimal128(5, 2). Overflowing on 1e300`; a decimal is shown there without its point.
fn overflowing(what: &str) -> Option<Error> {
    let (ty, rest) = what.strip_prefix("Cannot cast to ")?.split_once(". ")?;
    let given = rest.strip_prefix("Overflowing on ");
    let is_double = |given: &&str| given.contains(|c: char| !c.is_ascii_digit() && c != '-');
    if ty.starts_with("Interval") {
        let error = Error::invalid("this time is out of range for an INTERVAL");
        return Some(
            error
                .why("it has nanoseconds, and room for 292 years of them")
                .hint("leave out the CAST: a difference of times is as long as it has to be")
                .state(sqlstate::INTERVAL_OVERFLOW),
        );
    }
    let value = given.filter(is_double).unwrap_or("this number");
    let error = Error::invalid(format!("{value} is out of range for {}", sql_words(ty)));
    Some(error.hint("cast to a wider type, such as DOUBLE").state(sqlstate::OUT_OF_RANGE))
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    Some(text.strip_prefix(before)?.rsplit_once(after)?.0)
}

/// SQL's name of an Arrow type.
fn sql_name(arrow: &str) -> Option<&'static str> {
    Some(match arrow {
        "Boolean" => "BOOLEAN",
        "Int16" => "SMALLINT",
        "Int32" => "INTEGER",
        "Int64" => "BIGINT",
        "Float32" => "REAL",
        "Float64" => "DOUBLE",
        "Date32" => "DATE",
        _ if arrow.starts_with("Timestamp") => "TIMESTAMP",
        _ if arrow.starts_with("Interval") => "INTERVAL",
        _ if arrow.starts_with("Decimal128") => "DECIMAL",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_in_sql() {
        for (arrow, ours) in [
            (
                "Cannot coerce arithmetic expression Utf8 + Int64 to valid types",
                "Cannot coerce arithmetic expression VARCHAR + BIGINT to valid types",
            ),
            ("HAVING clause references: t.id > Int64(1) must", "HAVING clause references: t.id > 1 must"),
            ("compares Timestamp(µs) = Boolean", "compares TIMESTAMP = BOOLEAN"),
            (
                "Unsupported CAST from Int64 to Interval(MonthDayNano)",
                "Unsupported CAST from BIGINT to INTERVAL",
            ),
            (
                "Internal error: Function 'sum' failed to match any signature, errors: x",
                "sum does not take values of these types",
            ),
        ] {
            assert_eq!(sql_words(arrow), ours);
        }
    }

    #[test]
    fn values_and_types_in_sql() {
        for (arrow, ours) in [
            ("Cannot cast string 'it's' to value of Int32 type", "'it's' is not an INTEGER"),
            ("Cannot cast string '1.5' to value of UInt64 type", "'1.5' is not a number of rows"),
            ("Error parsing timestamp from 'tuesday': too short", "'tuesday' is not a TIMESTAMP"),
            (
                "Cannot cast to Decimal128(5, 2). Overflowing on 1e300",
                "1e300 is out of range for DECIMAL(5, 2)",
            ),
            ("Cannot cast to Decimal128(5, 2). Overflowing on NaN", "NaN is out of range for DECIMAL(5, 2)"),
            (
                "Cannot cast to Decimal128(38, 38). Overflowing on 155",
                "this number is out of range for DECIMAL(38, 38)",
            ),
            (
                "Cannot cast to Interval(MonthDayNano). Overflowing on 315506361600000000",
                "this time is out of range for an INTERVAL",
            ),
            ("Can't cast value 40000 to type Int16", "40000 is out of range for SMALLINT"),
            ("value of 40000 is out of range Int16", "40000 is out of range for SMALLINT"),
            ("Something else", "Something else"),
        ] {
            let error = cast_error(arrow);
            assert_eq!(error.what(), ours);
            assert!(error.fix().is_some());
        }
    }
}
