//! Messages about window functions and their frames.

use super::error;
use crate::error::{Error, sqlstate};

pub(super) fn windows(text: &str) -> Option<Error> {
    if text.contains("`retract_batch` is not implemented") {
        let call = text.rsplit_once("implemented: ").map_or("", |(_, call)| call);
        let function = call.split('(').next().filter(|name| !name.is_empty()).unwrap_or("this aggregate");
        return Some(
            Error::unsupported(format!("{function} cannot leave out rows that a window frame has passed"))
                .hint(
                    "let the frame begin with UNBOUNDED PRECEDING, or take max, min, sum or count of a CASE",
                ),
        );
    }
    if text.starts_with("Invalid window frame: start bound") {
        return Some(
            error("the frame ends before it begins", sqlstate::WINDOWING)
                .hint("write both bounds: ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING"),
        );
    }
    if text.starts_with("Invalid window frame: frame offsets for ROWS / GROUPS") {
        return Some(
            error("a frame goes back or forth by a whole number of rows", sqlstate::WINDOWING)
                .hint("write 1 FOLLOWING for -1 PRECEDING"),
        );
    }
    if text.starts_with("Invalid window frame: frame offsets for RANGE") {
        return Some(
            Error::unsupported("a frame of RANGE whose length is no number, text or interval as written")
                .hint("write it in: RANGE BETWEEN INTERVAL '1 day' PRECEDING AND CURRENT ROW"),
        );
    }
    if text.starts_with("QUALIFY clause requires window functions") {
        return Some(
            error("QUALIFY names no window function", sqlstate::WINDOWING)
                .why("it chooses rows by what windows compute")
                .hint("write WHERE, or HAVING, for other conditions"),
        );
    }
    if text.starts_with("OVER and WITHIN GROUP clause cannot be used together") {
        return Some(
            Error::unsupported("an aggregate WITHIN GROUP is no window function")
                .hint("take it in a query with GROUP BY, and join with that"),
        );
    }
    if text == "Expected an integer value" {
        return Some(
            error("lag and lead take a number of rows that is an integer", sqlstate::UNDEFINED_FUNCTION)
                .hint("write lag(x, 2), or lag(x, 2, 0) for a value where there is no such row"),
        );
    }
    if text.starts_with("There is only support Literal types for field at idx: 2") {
        return Some(
            error("lag and lead take one value for all rows that lack another", sqlstate::INVALID_PARAMETER)
                .hint("write coalesce(lag(x) OVER (ORDER BY t), y) for a value of the row"),
        );
    }
    let of_window = text.starts_with("There is only support Literal types for field at idx");
    if of_window || text.starts_with("Expected a signed integer literal for the second argument of") {
        let function = if of_window { "lag, lead and ntile take" } else { "nth_value takes" };
        return Some(
            error(format!("{function} an integer that is written out"), sqlstate::INVALID_PARAMETER)
                .why("it is the same for all rows")
                .hint("write lag(x, 2), lead(x, 2), ntile(4), nth_value(x, 2)"),
        );
    }
    if text.starts_with("NTILE requires a positive integer") {
        return Some(
            error("ntile takes a number of groups, 1 or more", sqlstate::NTILE).hint("write ntile(4)"),
        );
    }
    None
}
