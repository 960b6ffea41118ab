//! Rewords DataFusion's messages about invalid queries: what is wrong, why, and what to write instead.

use crate::error::{Error, Kind, sqlstate};
use crate::suggest::with_suggestion;

const NO_FUNCTION: &str = "42883";
const WINDOWING: &str = "42P20";
const NO_REGEX: &str = "2201B";
const POSITION: &str = "42P10";
const CANNOT_CAST: &str = "42846";

/// Functions that need an OVER clause.
const WINDOW_FUNCTIONS: &[&str] =
    &["row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"];

/// Names of functions in other databases, and our equivalent.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (&["len", "datalength"], "length(x)"),
    (&["mid"], "substr(x, from, count)"),
    (&["ucase"], "upper(x)"),
    (&["lcase"], "lower(x)"),
    (&["charindex", "locate"], "strpos(text, part)"),
    (&["year", "month", "day", "hour", "minute", "second", "dayofyear", "dayofweek"], "extract(year FROM x)"),
    (&["date"], "CAST(x AS DATE), or current_date"),
    (&["getdate", "sysdate", "getutcdate", "curdate", "current_datetime"], "now(), or current_date"),
    (&["strftime", "date_format", "formatdatetime"], "to_char(x, 'YYYY-MM-DD HH24:MI:SS')"),
    (&["datediff", "timestampdiff", "date_diff"], "a - b"),
    (&["datetime"], "CAST(x AS TIMESTAMP)"),
    (&["dateadd", "date_add", "adddate", "timestampadd"], "x + INTERVAL '1 day'"),
    (&["date_sub", "subdate"], "x - INTERVAL '1 day'"),
    (&["unix_timestamp", "unixepoch"], "extract(epoch FROM x)"),
    (&["julianday"], "extract(epoch FROM x) / 86400"),
    (&["mode"], "SELECT x FROM t GROUP BY x ORDER BY count(*) DESC LIMIT 1"),
    (&["percentile_disc"], "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)"),
    (&["if", "iif", "decode"], "CASE WHEN a = b THEN x ELSE y END"),
    (&["isnull"], "x IS NULL, or coalesce(x, y)"),
    (&["listagg", "wm_concat"], "string_agg(x, ',')"),
    (&["printf", "sprintf", "format"], "a || b, or to_char of a time"),
    (&["to_number", "cint", "int"], "CAST(x AS INTEGER)"),
    (&["last_insert_id", "last_insert_rowid", "lastval"], "INSERT ... RETURNING id"),
    (&["newid", "sys_guid"], "gen_random_uuid()"),
    (
        &["json_extract", "json_value", "json_query", "get_json_object"],
        "doc ->> 'city', or doc #>> '{tags,0}'",
    ),
    (&["json_type", "jsonb_type"], "json_typeof(doc)"),
    (&["json_set", "jsonb_set", "json_insert", "json_replace", "json_remove"], "the whole JSON value anew"),
];

/// Our error for a message, whose types are in SQL's words already; `None` for a message that is clear enough.
pub fn reworded(text: &str) -> Option<Error> {
    functions(text)
        .or_else(|| operators(text))
        .or_else(|| groups(text))
        .or_else(|| clauses(text))
        .or_else(|| subqueries(text))
        .or_else(|| values(text))
}

fn functions(text: &str) -> Option<Error> {
    if let Some(name) = between(text, "Invalid function '", "'") {
        if WINDOW_FUNCTIONS.contains(&name) {
            let error = error(format!("{name} looks at the rows around its own"), WINDOWING);
            return Some(error.hint(format!("write {name}(...) OVER (ORDER BY ...)")));
        }
        let near = between(text, "Did you mean '", "'");
        let unknown = error(format!("there is no function \"{name}\""), NO_FUNCTION);
        let elsewhere = ELSEWHERE.iter().find(|(names, _)| names.contains(&name.to_lowercase().as_str()));
        if let Some((_, ours)) = elsewhere {
            return Some(unknown.hint(format!("write {ours}")));
        }
        return Some(with_suggestion(
            unknown,
            name,
            near.into_iter(),
            "SHOW FUNCTIONS LIKE '%part%' looks for its name here: other databases may name it differently",
        ));
    }
    let arguments = |name: &str, given: &str| {
        error(format!("{name} does not take {given}"), NO_FUNCTION).hint("CAST what has another type")
    };
    if let Some(name) = text.strip_suffix(" does not take values of these types") {
        return Some(arguments(name, "values of these types"));
    }
    if let Some(name) = between(text, "Failed to coerce arguments to satisfy a call to '", "'") {
        if name == "string_agg" {
            // The message does not tell which of its two names was used.
            let error = error("string_agg and group_concat do not take one argument", NO_FUNCTION);
            return Some(error.hint("write string_agg(x, ','), or group_concat(x, ',')"));
        }
        let given = between(text, "coercion from ", " to the signature")?;
        return Some(arguments(name, &format!("({given})")));
    }
    if let Some(name) = between(text, "Function '", "' user-defined coercion failed") {
        return Some(arguments(name, "values of these types"));
    }
    if let Some(name) = between(text, "'", "' does not support zero arguments") {
        return Some(error(format!("{name} takes arguments"), NO_FUNCTION).hint(format!("write {name}(x)")));
    }
    let name = between(text, "Function '", "' ").or_else(|| between(text, "The function '", "' "))?;
    if let Some(given) = text.split(" but received ").nth(1) {
        if let Some(wanted) =
            between(text, " expects ", " arguments but").or_else(|| between(text, " expected ", " argument"))
        {
            let takes = match wanted {
                "zero" => "no arguments".to_owned(),
                "1" => "1 argument".to_owned(),
                more => format!("{more} arguments"),
            };
            return Some(
                error(format!("{name} takes {takes}, not {given}"), NO_FUNCTION)
                    .hint("leave out what is too much, or add what is missing"),
            );
        }
        let wanted = between(text, " expects ", " but received")
            .or_else(|| between(text, " requires ", ", but received"))?;
        let of_type = given.split_once("(DataType: ").map(|(_, ty)| ty.trim_end_matches('.'));
        let given = match of_type.and_then(|ty| ty.strip_suffix(')')).unwrap_or(given) {
            "String" => "a text",
            "Binary" => "bytes",
            "Boolean" => "a condition",
            given => given,
        };
        let error = error(format!("{name} does not take {given}"), NO_FUNCTION);
        return Some(
            error.why(format!("it takes {}", wanted.to_lowercase())).hint("CAST what has another type"),
        );
    }
    None
}

fn operators(text: &str) -> Option<Error> {
    let rest = |before: &str| text.strip_prefix(before);
    let undefined = |operation: &str| {
        let is_time = ["TIMESTAMP", "DATE"].iter().any(|ty| operation.starts_with(ty));
        let step = ["+", "-"].into_iter().find(|op| is_time && operation.contains(&format!(" {op} ")));
        error(format!("there is no operator for {operation}"), NO_FUNCTION)
            .why("the operator is not defined for values of these types")
            .hint(match step {
                Some(op) => format!("write {op} INTERVAL '1 day'"),
                None => "CAST one of them".to_owned(),
            })
    };
    if let Some(operator) = rest("Unsupported binary operator: ") {
        let (name, instead) = match operator {
            "PGOverlap" => ("&&", "write AND"),
            "PGStartsWith" => ("^@", "write starts_with(x, 'abc'), or x LIKE 'abc%'"),
            other => (other, "functions say more: abs(x), mod(x, y), power(x, y)"),
        };
        return Some(error(format!("there is no operator {name}"), NO_FUNCTION).hint(instead));
    }
    if let Some(operation) = rest("Cannot coerce arithmetic expression ") {
        return Some(undefined(operation.strip_suffix(" to valid types").unwrap_or(operation)));
    }
    if let Some(operation) = rest("Cannot get result type for temporal operation ") {
        return Some(undefined(operation.split(": ").next().unwrap_or(operation)));
    }
    if text.starts_with("Cannot infer common ")
        && let Some((_, operation)) = text.split_once(" operation ")
    {
        if let Some(ty) = operation.strip_suffix(" IS DISTINCT FROM BOOLEAN") {
            let error = error(format!("{ty} is neither true nor false"), sqlstate::DATATYPE_MISMATCH);
            return Some(error.hint("compare it with something, as in x <> 0"));
        }
        let is_logical = text.starts_with("Cannot infer common argument type for logical");
        return Some(match is_logical {
            true => error(format!("there is no {operation}"), sqlstate::DATATYPE_MISMATCH)
                .why("AND and OR take conditions")
                .hint("compare it with something, as in x <> 0"),
            false => undefined(operation),
        });
    }
    if let Some(ty) = rest("Unary operator 'NOT' requires a boolean expression, got ") {
        let error = error(format!("NOT takes a condition, and this is {ty}"), sqlstate::DATATYPE_MISMATCH);
        return Some(error.hint("compare it with something, as in x = 0"));
    }
    if rest("Unary operator '-' only supports").is_some() {
        let error = error("this cannot be negated", NO_FUNCTION);
        return Some(error.why("it is neither a number nor an interval").hint("CAST it to a number"));
    }
    if let Some(types) = between(text, "There isn't a common type to coerce ", " in LIKE expression") {
        let error = error(format!("LIKE compares texts, not {types}"), NO_FUNCTION);
        return Some(error.hint("write CAST(x AS TEXT) LIKE '...'"));
    }
    if let Some(given) = between(text, "Expected a single character wrapped with single quotes, got ", "\n")
        .or_else(|| text.split_once("wrapped with single quotes, got ").map(|(_, given)| given))
    {
        return Some(
            error(format!("ESCAPE takes one character, not {given}"), "22019").hint("write ESCAPE '\\'"),
        );
    }
    let (left, right) =
        text.strip_suffix(" in SetComparison")?.strip_prefix("expr type ")?.split_once(" can't cast to ")?;
    Some(undefined(&format!("{left} = {right}")))
}

fn groups(text: &str) -> Option<Error> {
    if text.contains("must be in GROUP BY or an aggregate function") {
        let column = between(text, "column \"", "\"")?;
        return Some(
            error(format!("{column} is neither in GROUP BY nor inside an aggregate"), sqlstate::GROUPING)
                .why("its rows become one, and may have different values of it")
                .hint(format!("GROUP BY it, too, or take min({column})")),
        );
    }
    if let Some(condition) = between(text, "HAVING clause references: ", " must appear") {
        return Some(
            error(format!("HAVING {condition} is about single rows"), sqlstate::GROUPING)
                .why("HAVING chooses among groups")
                .hint("write WHERE, or GROUP BY what it names"),
        );
    }
    if text.starts_with("Aggregate functions are not allowed in the WHERE") {
        return Some(
            error("an aggregate cannot stand in WHERE", sqlstate::GROUPING)
                .why("WHERE chooses the rows that are added up")
                .hint("write HAVING behind GROUP BY"),
        );
    }
    if text.starts_with("Aggregate function calls cannot be nested") {
        return Some(
            error("an aggregate stands inside another", sqlstate::GROUPING)
                .hint("take the inner one AS a column of a query in FROM"),
        );
    }
    if let Some(name) = between(text, "The window ", " is not defined") {
        let error = error(format!("there is no window \"{name}\""), sqlstate::UNDEFINED_OBJECT);
        return Some(error.hint(format!("write WINDOW {name} AS (ORDER BY ...) behind HAVING")));
    }
    if text == "COUNT DISTINCT with multiple arguments" {
        return Some(
            Error::unsupported("count(DISTINCT ...) takes one value")
                .hint("count the rows of (SELECT DISTINCT a, b FROM ...)"),
        );
    }
    None
}

fn clauses(text: &str) -> Option<Error> {
    if let Some(rest) = text.strip_prefix("Cannot create filter with non-boolean predicate '") {
        let ty = rest.rsplit_once(" returning ").map_or("no condition", |(_, ty)| ty);
        let error = error(format!("WHERE takes a condition, and this is {ty}"), sqlstate::DATATYPE_MISMATCH);
        return Some(error.hint("compare it with something, as in x <> 0"));
    }
    if text.starts_with("Cannot run range queries on datatype") {
        let what = "a window cannot be ordered by an interval, or by a row of values";
        return Some(
            error(what, WINDOWING).hint("order it by numbers, as in extract(epoch FROM x), or by columns"),
        );
    }
    if let Some(types) = between(text, "Failed to coerce types ", " in BETWEEN expression") {
        let error = error(format!("BETWEEN cannot compare {types}"), sqlstate::DATATYPE_MISMATCH);
        return Some(
            error.hint("give it bounds of the value's type: x BETWEEN a AND a + INTERVAL '1 month'"),
        );
    }
    if text.starts_with("Unnest should be rewritten") {
        return Some(
            error("unnest gives several rows, and stands in FROM or in a select list", sqlstate::GROUPING)
                .hint("write SELECT ... FROM (SELECT unnest(list) AS x FROM t) WHERE x = 1"),
        );
    }
    if text == "TOP" {
        return Some(Error::unsupported("there is no TOP").hint("write LIMIT 10 at the end of the query"));
    }
    let rows = |clause: &str, given: &str| {
        Some(
            error(format!("{clause} takes a number of rows, not {given}"), "2201W")
                .hint(format!("write {clause} 10")),
        )
    };
    for clause in ["LIMIT", "OFFSET"] {
        if let Some(given) =
            text.strip_prefix(clause).and_then(|rest| between(rest, "0, '", "' was provided"))
        {
            return rows(clause, given);
        }
        if let Some(given) =
            text.strip_prefix(&format!("Expected {clause} to be an integer or null, but got "))
        {
            return rows(clause, given);
        }
    }
    if let Some((at, most)) = text
        .strip_prefix("Order by column out of bounds, specified: ")
        .and_then(|rest| rest.split_once(", max: "))
    {
        return Some(
            error(format!("ORDER BY {at}: only {most} columns are selected"), POSITION)
                .hint("name the column, or count from 1"),
        );
    }
    if text.starts_with("Order by index starts at 1") {
        return Some(
            error("ORDER BY 0: columns are counted from 1", POSITION)
                .hint("name the column, or count from 1"),
        );
    }
    if let Some(at) = between(text, "Cannot find column with position ", " in SELECT clause") {
        return Some(
            error(format!("GROUP BY {at}: fewer columns are selected than that"), POSITION)
                .hint("name the column, or count from 1"),
        );
    }
    if let Some(set) = text.strip_suffix(" queries have different number of columns") {
        return Some(
            error(format!("the two sides of {set} have different numbers of columns"), sqlstate::SYNTAX)
                .hint("select as many on both sides; NULL AS x fills up"),
        );
    }
    if let Some(rest) = text.strip_prefix("Incompatible inputs for Union: Previous inputs were of type ") {
        let (one, rest) = rest.split_once(", but got incompatible type ")?;
        let (other, column) = rest.split_once(" on column ")?;
        return Some(
            error(
                format!("column {column} is {one} in one query and {other} in the next"),
                sqlstate::DATATYPE_MISMATCH,
            )
            .hint(format!("CAST one of them, as in CAST(x AS {one})")),
        );
    }
    if let Some(rest) = text.strip_prefix("Inconsistent data length across values list: got ") {
        let (got, rest) = rest.split_once(" values in row ")?;
        let (row, wanted) = rest.split_once(" but expected ")?;
        return Some(
            error("the rows of VALUES have different lengths", sqlstate::SYNTAX)
                .why(format!(
                    "row {} has {got} values, those before it {wanted}",
                    row.parse::<u64>().map_or(0, |n| n + 1)
                ))
                .hint("write NULL for what is missing"),
        );
    }
    if let Some(name) = text.strip_prefix("Invalid qualifier ") {
        return Some(
            error(format!("there is no table \"{name}\" in this FROM"), sqlstate::UNDEFINED_TABLE)
                .hint("an alias hides the name of its table"),
        );
    }
    if let Some(name) = between(text, "WITH query name \"", "\" specified more than once") {
        return Some(
            error(format!("WITH defines \"{name}\" twice"), "42712").hint("give one of them another name"),
        );
    }
    if let Some(rest) = text.strip_prefix("Source table contains ") {
        let (columns, rest) = rest.split_once(" columns but only ")?;
        let names = rest.split(' ').next()?;
        return Some(
            error(format!("{names} names for {columns} columns"), POSITION).hint("name every column once"),
        );
    }
    if let Some(n) = text.strip_prefix("No value found for placeholder with id ") {
        return Some(
            error(format!("parameter {n} has no value"), "42P02")
                .hint("give as many values as the statement has parameters"),
        );
    }
    if text.starts_with("Unsupported JOIN operator") {
        return Some(
            Error::unsupported("this kind of join is not supported")
                .hint("write WHERE EXISTS (SELECT 1 FROM ... WHERE ...), or NOT EXISTS"),
        );
    }
    None
}

fn subqueries(text: &str) -> Option<Error> {
    text.strip_prefix("Too many columns! The subquery should only return one column").map(|_| {
        error("a subquery that stands for a value gives one column, not several", sqlstate::SYNTAX)
            .hint("select one; EXISTS (SELECT ... WHERE a = x AND b = y) compares more")
    })
}

fn values(text: &str) -> Option<Error> {
    if let Some((integer, call)) = text.split_once("Array overflow on ") {
        let ty = match integer {
            of if of.ends_with("Int16") => "SMALLINT",
            of if of.ends_with("Int32") => "INTEGER",
            _ => "BIGINT",
        };
        let error = error(format!("{call} is out of range for {ty}"), sqlstate::OUT_OF_RANGE);
        return Some(error.hint("CAST the number to a wider type first"));
    }
    if let Some(hex) = between(text, "Invalid HexStringLiteral '", "'") {
        return Some(
            error(format!("x'{hex}' is not binary"), sqlstate::INVALID_TEXT)
                .hint("x'...' takes hex digits, two for a byte"),
        );
    }
    if let Some(rest) = text.strip_prefix("Error parsing timestamp from '")
        && let Some((value, rest)) = rest.split_once("' using format '")
        && let Some((format, why)) = rest.split_once("': ")
    {
        return Some(
            error(format!("'{value}' is not a time of format '{format}'"), sqlstate::INVALID_TEXT)
                .why(why.to_owned())
                .hint("write the format as strftime does, as in '%d/%m/%Y %H:%M:%S'"),
        );
    }
    let of_series = text.starts_with("Argument #") && text.contains(" must be an INTEGER or NULL, got ");
    if of_series || text == "Arguments must be literals" {
        return Some(
            error("generate_series takes integers that are written out", "22023")
                .why("how many rows it has must be known before anything is read")
                .hint("generate more than enough and filter, or WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 ...)"),
        );
    }
    if let Some((value, rest)) = text.split_once(" is too large to store in a Decimal128 of precision ")
        && let Some((digits, most)) = rest.split_once(". Max is ")
    {
        return Some(
            error(format!("{value} does not fit a DECIMAL of {digits} digits"), "22003")
                .why(format!("the greatest is {most}"))
                .hint("write DECIMAL(p, s) with a greater p"),
        );
    }
    if let Some(date) = text.strip_prefix("Unable to parse date from ") {
        return Some(
            error(format!("there is no day {}", date.replace(", ", "-")), "22008")
                .hint("make_date takes a year, a month and a day"),
        );
    }
    if let Some(counts) = between(text, "must have the same number of columns (", ")")
        && text.starts_with("Non-recursive term")
        && let Some((first, again)) = counts.split_once(" != ")
    {
        return Some(
            error(format!("the parts of a recursive query have {first} and {again} columns"), "42601")
                .hint("give both sides of its UNION the same columns"),
        );
    }
    if text.contains("Multiple recursive references") || text.contains("Unexpected empty work table") {
        let error = error("a step of a recursive query reads the last one in a subquery", "0A000");
        return Some(error.why("a step takes its rows once").hint("join what the subquery reads"));
    }
    if let Some(ty) = between(text, "Cannot automatically convert ", " to Null") {
        let error =
            error("a column of a recursive query is NULL in its first rows", sqlstate::DATATYPE_MISMATCH);
        return Some(
            error.why(format!("its steps make {ty} of it")).hint(format!("write CAST(NULL AS {ty}) there")),
        );
    }
    if text == "Expected an integer value" {
        return Some(
            error("lag and lead take a number of rows that is an integer", NO_FUNCTION)
                .hint("write lag(x, 2), or lag(x, 2, 0) for a value where there is no such row"),
        );
    }
    let of_window = text.starts_with("There is only support Literal types for field at idx");
    if of_window || text.starts_with("Expected a signed integer literal for the second argument of") {
        let function = if of_window { "lag, lead and ntile take" } else { "nth_value takes" };
        return Some(
            error(format!("{function} an integer that is written out"), "22023")
                .why("it is the same for all rows")
                .hint("write lag(x, 2), lead(x, 2), ntile(4), nth_value(x, 2)"),
        );
    }
    if text.starts_with("NTILE requires a positive integer") {
        return Some(error("ntile takes a number of groups, 1 or more", "22014").hint("write ntile(4)"));
    }
    if let Some(at) = text.find("regex parse error") {
        let why = text[at..].lines().find_map(|line| line.trim().strip_prefix("error: "));
        return Some(
            error("this is not a regular expression", NO_REGEX)
                .why(why.unwrap_or("it cannot be read").to_owned())
                .hint("write \\( for a parenthesis itself, and so for any other sign"),
        );
    }
    if let Some((from, to)) =
        text.strip_prefix("Unsupported CAST from ").and_then(|rest| rest.split_once(" to "))
    {
        return Some(
            error(format!("{from} cannot be cast to {to}"), CANNOT_CAST)
                .hint("CAST it to TEXT first, if that says it"),
        );
    }
    if let Some(ty) = text.strip_prefix("Unsupported SQL type ") {
        return Some(error(format!("there is no type {ty}"), sqlstate::UNDEFINED_OBJECT)
            .hint("types are BOOLEAN, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, DECIMAL(p, s), TEXT, BYTEA, DATE, TIMESTAMP, TIMESTAMPTZ, UUID and JSON"));
    }
    if text.starts_with("Could not plan array literal") || text.starts_with("GetFieldAccess not supported") {
        return Some(Error::unsupported("arrays are not supported").hint(
            "write x IN (1, 2) for x = ANY(ARRAY[1, 2]); keep values in rows of a table, or as JSON text",
        ));
    }
    if let Some(ty) = between(text, "Cannot access field at argument 1: type ", " is not Struct") {
        return Some(
            error(format!("a value of type {ty} has no fields"), sqlstate::UNDEFINED_COLUMN)
                .why("what stands before the point names a column, and no table of this FROM")
                .hint("write table.column, or doc ->> 'name' for a part of a JSON value"),
        );
    }
    if let Some(part) = between(text, "Date part '", "' not supported") {
        return Some(error(format!("a time has no part '{part}'"), "22023")
            .hint("parts are millennium, century, decade, year, quarter, month, week, day, dow, isodow, doy, hour, minute, second, milliseconds, microseconds and epoch"));
    }
    if text.starts_with("Substring without for/from") {
        return Some(
            error("substr takes a text and where to begin", NO_FUNCTION).hint("substr(s, from [, count])"),
        );
    }
    if text.starts_with("Invalid input syntax for type interval: ") {
        let given = text.rsplit(": ").next()?.trim_matches('"');
        return Some(
            error(format!("'{given}' is not an INTERVAL"), sqlstate::INVALID_TEXT)
                .hint("write INTERVAL '1 day 2 hours'"),
        );
    }
    if let Some(zone) = between(text, "Invalid timezone \"", "\"") {
        return Some(
            error(format!("there is no time zone '{zone}'"), "22023").hint("write 'Europe/Oslo' or '+01:00'"),
        );
    }
    let plain = text.strip_prefix("Compute error: ")?;
    let plain = plain.strip_prefix("Execution error: ").unwrap_or(plain);
    Some(error(plain, "22023"))
}

fn error(what: impl Into<String>, state: &'static str) -> Error {
    Error::new(Kind::Invalid, what).state(state)
}

/// The text after the first `before` and up to the next `after`.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(inner, _)| inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_what_why_and_how() {
        for (theirs, ours) in [
            ("Invalid function 'uper'.\nDid you mean 'upper'?", "there is no function \"uper\""),
            ("Invalid function 'rank'.\nDid you mean 'x'?", "rank looks at the rows around its own"),
            (
                "Cannot coerce arithmetic expression INTEGER + VARCHAR to valid types",
                "there is no operator for INTEGER + VARCHAR",
            ),
            ("Function 'upper' expects 1 arguments but received 2", "upper takes 1 argument, not 2"),
            (
                "Function 'bit_and' requires Integer, but received DOUBLE (DataType: DOUBLE).",
                "bit_and does not take DOUBLE",
            ),
            ("The function 'uuid' expected zero argument but received 1", "uuid takes no arguments, not 1"),
            ("LIMIT must be >= 0, '-1' was provided", "LIMIT takes a number of rows, not -1"),
            ("OFFSET must be >=0, '-1' was provided", "OFFSET takes a number of rows, not -1"),
            ("regex parse error:\n    (\n    ^\nerror: unclosed group", "this is not a regular expression"),
            ("Date part 'X' not supported", "a time has no part 'X'"),
            ("Arguments must be literals", "generate_series takes integers that are written out"),
            (
                "Argument #2 must be an INTEGER or NULL, got Column(Column { .. })",
                "generate_series takes integers that are written out",
            ),
            (
                "17.5 is too large to store in a Decimal128 of precision 2. Max is 9.9",
                "17.5 does not fit a DECIMAL of 2 digits",
            ),
            ("Unable to parse date from 2024, 2, 30", "there is no day 2024-2-30"),
            (
                "Non-recursive term and recursive term must have the same number of columns (1 != 2)",
                "the parts of a recursive query have 1 and 2 columns",
            ),
            (
                "Cannot automatically convert BIGINT to Null",
                "a column of a recursive query is NULL in its first rows",
            ),
        ] {
            let error = reworded(theirs).unwrap();
            assert_eq!(error.what(), ours);
            assert!(error.fix().is_some(), "{ours}");
        }
        assert!(reworded("Step cannot be zero").is_none());
    }
}
