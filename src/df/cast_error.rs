//! Arrow's messages about values that cannot be cast, in SQL's words.

use crate::error::{Error, sqlstate};

/// The error for a value that is none of its type, from what Arrow says about it.
pub fn cast_error(what: &str) -> Error {
    malformed(what).or_else(|| out_of_range(what)).unwrap_or_else(|| {
        Error::invalid(what).hint("compare and cast only what has this type").state(sqlstate::INVALID_TEXT)
    })
}

fn malformed(what: &str) -> Option<Error> {
    let (value, ty) = match what.strip_prefix("Cannot cast string '") {
        Some(rest) => rest.strip_suffix(" type")?.rsplit_once("' to value of ")?,
        None => (between(what, "Error parsing timestamp from '", "': ")?, "Timestamp"),
    };
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
    let (value, ty) = what.strip_prefix("Can't cast value ")?.rsplit_once(" to type ")?;
    let error = Error::invalid(format!("{value} is out of range for {}", sql_name(ty)?));
    Some(error.hint("cast to a wider type").state(sqlstate::OUT_OF_RANGE))
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    Some(text.strip_prefix(before)?.rsplit_once(after)?.0)
}

/// What SQL calls an Arrow type.
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
        _ if arrow.starts_with("Decimal128") => "DECIMAL",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_types_in_sql() {
        for (arrow, ours) in [
            ("Cannot cast string 'it's' to value of Int32 type", "'it's' is not an INTEGER"),
            ("Error parsing timestamp from 'tuesday': too short", "'tuesday' is not a TIMESTAMP"),
            ("Can't cast value 40000 to type Int16", "40000 is out of range for SMALLINT"),
            ("Something else", "Something else"),
        ] {
            let error = cast_error(arrow);
            assert_eq!(error.what(), ours);
            assert!(error.fix().is_some());
        }
    }
}
