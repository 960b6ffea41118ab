//! Rewords DataFusion's messages about invalid queries: what is wrong, why, and what to write instead.

mod functions;
mod windows;

use self::functions::{functions, operators};
use self::windows::windows;
use crate::error::{Error, Kind, counted, sqlstate};

/// Our error for a message, whose types are in SQL's words already; `None` for a message that is clear enough.
pub fn reworded(text: &str) -> Option<Error> {
    let topics = [
        functions,
        operators,
        groups,
        conditions,
        limits,
        sets,
        names,
        subqueries,
        numbers,
        times_and_texts,
        recursion,
        windows,
        patterns,
        types,
        computing,
    ];
    topics.iter().find_map(|topic| topic(text))
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
    if let Some(expr) = between(text, "For SELECT DISTINCT, ORDER BY expressions ", " must appear") {
        return Some(
            error(
                format!("{expr} is not selected, and SELECT DISTINCT is ordered by what is"),
                sqlstate::GROUPING,
            )
            .why("the rows that become one may have different values of it")
            .hint(format!("select it as well, or GROUP BY the rest and ORDER BY min({expr})")),
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
    if text.starts_with("WITHIN GROUP is only supported for") {
        return Some(
            error("this function takes no WITHIN GROUP", sqlstate::GROUPING)
                .why("percentile_cont, percentile_disc and the like do")
                .hint("write the order inside: first_value(x ORDER BY y), string_agg(x, ',' ORDER BY y)"),
        );
    }
    if text == "COUNT DISTINCT with multiple arguments" {
        return Some(
            Error::unsupported("count(DISTINCT ...) takes one value")
                .hint("count the rows of (SELECT DISTINCT a, b FROM ...)"),
        );
    }
    None
}

fn conditions(text: &str) -> Option<Error> {
    if let Some(ty) = text.strip_prefix("Join condition must be boolean type, but got ") {
        return Some(
            error(format!("ON takes a condition, and this is {ty}"), sqlstate::DATATYPE_MISMATCH)
                .hint("write ON a.id = b.id, or CROSS JOIN for all pairs"),
        );
    }
    if text == "join condition should not be empty" {
        return Some(
            error("this join says nothing about which rows belong together", sqlstate::SYNTAX)
                .hint("write ON a.id = b.id or USING (id), or CROSS JOIN for all pairs"),
        );
    }
    if let Some(rest) = text.strip_prefix("Cannot create filter with non-boolean predicate '") {
        let ty = rest.rsplit_once(" returning ").map_or("no condition", |(_, ty)| ty);
        let error = error(format!("WHERE takes a condition, and this is {ty}"), sqlstate::DATATYPE_MISMATCH);
        return Some(error.hint("compare it with something, as in x <> 0"));
    }
    if text.starts_with("Cannot run range queries on datatype") {
        let what = "a window cannot be ordered by an interval, or by a row of values";
        return Some(
            error(what, sqlstate::WINDOWING)
                .hint("order it by numbers, as in extract(epoch FROM x), or by columns"),
        );
    }
    if let Some(types) = between(text, "Failed to coerce types ", " in BETWEEN expression") {
        let error = error(format!("BETWEEN cannot compare {types}"), sqlstate::DATATYPE_MISMATCH);
        return Some(
            error.hint("give it bounds of the value's type: x BETWEEN a AND a + INTERVAL '1 month'"),
        );
    }
    if text.starts_with("LATERAL syntax is not supported") {
        return Some(
            error(
                "RIGHT and FULL JOIN take no table that reads what is in front of it",
                sqlstate::UNSUPPORTED,
            )
            .hint("write LEFT JOIN, or JOIN"),
        );
    }
    if text.starts_with("Unnest should be rewritten") {
        return Some(
            error("unnest gives several rows, and stands in FROM or in a select list", sqlstate::GROUPING)
                .hint("write SELECT ... FROM (SELECT unnest(list) AS x FROM t) WHERE x = 1"),
        );
    }
    None
}

fn limits(text: &str) -> Option<Error> {
    if text == "TOP" {
        return Some(Error::unsupported("there is no TOP").hint("write LIMIT 10 at the end of the query"));
    }
    let rows = |clause: &str, given: &str| {
        Some(
            error(
                format!("{clause} takes a number of rows, not {}", given.trim_end_matches('.')),
                sqlstate::LIMIT_COUNT,
            )
            .hint(match given.starts_with('-') {
                true => format!("leave {clause} out"),
                false => format!("write {clause} 10"),
            }),
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
            error(
                format!("ORDER BY {at}: only {most} columns are selected"),
                sqlstate::INVALID_COLUMN_REFERENCE,
            )
            .hint("name the column, or count from 1"),
        );
    }
    if text.starts_with("Order by index starts at 1") {
        return Some(
            error("ORDER BY 0: columns are counted from 1", sqlstate::INVALID_COLUMN_REFERENCE)
                .hint("name the column, or count from 1"),
        );
    }
    if let Some(at) = between(text, "Cannot find column with position ", " in SELECT clause") {
        return Some(
            error(
                format!("GROUP BY {at}: fewer columns are selected than that"),
                sqlstate::INVALID_COLUMN_REFERENCE,
            )
            .hint("name the column, or count from 1"),
        );
    }
    None
}

fn sets(text: &str) -> Option<Error> {
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
                    "row {} has {}, those before it {wanted}",
                    row.parse::<u64>().map_or(0, |n| n + 1),
                    counted(got, "value")
                ))
                .hint("write NULL for what is missing"),
        );
    }
    if let Some(rest) = text.strip_prefix("Inconsistent data type across values list at row ")
        && let Some((_, rest)) = rest.split_once(" column ")
        && let Some((column, types)) = rest.split_once(". Was ")
        && let Some((one, other)) = types.split_once(" but found ")
    {
        let column = column.parse::<u64>().map_or(0, |n| n + 1);
        return Some(
            error(
                format!("column {column} of VALUES is {one} in one row and {other} in another"),
                sqlstate::DATATYPE_MISMATCH,
            )
            .hint(format!("CAST one of them, as in CAST(x AS {one})")),
        );
    }
    None
}

fn names(text: &str) -> Option<Error> {
    if let Some(name) = text.strip_prefix("Invalid qualifier ") {
        return Some(
            error(format!("there is no table \"{name}\" in this FROM"), sqlstate::UNDEFINED_TABLE)
                .hint("an alias hides the name of its table"),
        );
    }
    if text.starts_with("SELECT * with no tables specified") {
        return Some(
            error("* stands for the columns of a table, and there is none", sqlstate::SYNTAX)
                .hint("write SELECT * FROM t"),
        );
    }
    if let Some(name) = between(text, "WITH query name \"", "\" specified more than once") {
        return Some(
            error(format!("WITH defines \"{name}\" twice"), sqlstate::DUPLICATE_ALIAS)
                .hint("give one of them another name"),
        );
    }
    if let Some(rest) = text.strip_prefix("Source table contains ") {
        let (columns, rest) = rest.split_once(" columns but only ")?;
        let names = rest.split(' ').next()?;
        return Some(
            error(
                format!("{} for {}", counted(names, "name"), counted(columns, "column")),
                sqlstate::INVALID_COLUMN_REFERENCE,
            )
            .hint("name every column once"),
        );
    }
    if let Some(n) = text.strip_prefix("No value found for placeholder with id ") {
        return Some(
            error(format!("parameter {n} has no value"), sqlstate::UNDEFINED_PARAMETER)
                .about(n)
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

fn numbers(text: &str) -> Option<Error> {
    if let Some((integer, call)) = text.split_once("Array overflow on ") {
        let ty = match integer {
            of if of.ends_with("Int16") => "SMALLINT",
            of if of.ends_with("Int32") => "INTEGER",
            _ => "BIGINT",
        };
        let error = error(format!("{call} is out of range for {ty}"), sqlstate::OUT_OF_RANGE);
        return Some(error.hint("CAST the number to a wider type first"));
    }
    for (before, hint) in [
        ("Overflow happened on FACTORIAL(", "20 is the greatest number that has one"),
        (
            "Signed integer overflow in LCM(",
            "CAST both to DECIMAL(38, 0), and divide their product by gcd(a, b)",
        ),
        ("Signed integer overflow in GCD(", "leave out the smallest BIGINT"),
    ] {
        if let Some((_, arguments)) = text.split_once(before) {
            let name = before.rsplit(' ').next().unwrap_or_default().to_lowercase();
            let error =
                error(format!("{name}{arguments} is out of range for BIGINT"), sqlstate::OUT_OF_RANGE);
            return Some(error.hint(hint));
        }
    }
    if text == "cannot take square root of a negative number" {
        let error = error("a negative number has no square root", sqlstate::POWER);
        return Some(error.hint("write sqrt(abs(x)), or CASE WHEN x >= 0 THEN sqrt(x) END"));
    }
    if let Some(given) =
        between(text, "Percentile value must be between 0.0 and 1.0 inclusive, ", " is invalid")
    {
        let error = error(format!("{given} is no percentile"), sqlstate::OUT_OF_RANGE);
        return Some(error.why("it is a share, from 0 to 1").hint("write 0.95 for 95 %"));
    }
    None
}

fn times_and_texts(text: &str) -> Option<Error> {
    if text.starts_with("The dates that can be represented as nanoseconds") {
        let error = error("this time is out of range for nanoseconds", sqlstate::OUT_OF_RANGE);
        return Some(error.why("they end in the years 1677 and 2262").hint("write to_timestamp(x)"));
    }
    if text.contains("Date arithmetic overflow: ") {
        return Some(
            error("the date is out of range", sqlstate::OUT_OF_RANGE).why("years run from 0001 to 9999"),
        );
    }
    if let Some(rest) = text.strip_prefix("Error parsing timestamp from '")
        && let Some((value, rest)) = rest.split_once("' using format '")
        && let Some((format, why)) = rest.split_once("': ")
    {
        return Some(
            error(format!("'{value}' is not a time of format '{format}'"), sqlstate::INVALID_TEXT)
                .why(why.to_owned())
                .hint("write the format as strftime does, '%d/%m/%Y %H:%M:%S', or as to_char, 'DD/MM/YYYY HH24:MI:SS'"),
        );
    }
    for (side, bound, superlative) in [("large", ". Max is ", "greatest"), ("small", ". Min is ", "least")] {
        if let Some((value, rest)) =
            text.split_once(&format!(" is too {side} to store in a Decimal128 of precision "))
            && let Some((digits, most)) = rest.split_once(bound)
        {
            return Some(
                error(
                    format!("{value} does not fit a DECIMAL of {}", counted(digits, "digit")),
                    sqlstate::OUT_OF_RANGE,
                )
                .why(format!("the {superlative} is {most}"))
                .hint("write DECIMAL(p, s) with a greater p"),
            );
        }
    }
    if let Some((value, ty @ ("SMALLINT" | "INTEGER"))) =
        text.strip_prefix("Cannot cast ").and_then(|rest| rest.rsplit_once(" to "))
    {
        let article = if ty == "INTEGER" { "an" } else { "a" };
        return Some(
            error(format!("'{value}' is not {article} {ty}"), sqlstate::INVALID_TEXT).hint("write a number"),
        );
    }
    if text == "Arithmetic Overflow in AvgAccumulator" {
        return Some(
            error("the mean is out of range for a DECIMAL of 38 digits", sqlstate::OUT_OF_RANGE)
                .why("it has four digits more behind the point than its numbers")
                .hint("write avg(CAST(x AS DOUBLE))"),
        );
    }
    if text == "Timestamp out of range" {
        return Some(
            error("the time is out of range", sqlstate::DATETIME_OVERFLOW).why("years run from 0001 to 9999"),
        );
    }
    if text.starts_with("Percentile value for ") {
        return Some(
            error("percentile_cont takes a share that is the same for all rows", sqlstate::INVALID_PARAMETER)
                .hint("write a number from 0 to 1: percentile_cont(0.9) WITHIN GROUP (ORDER BY x)"),
        );
    }
    if let Some(encoding) = between(text, "Failed to decode value using ", ": ") {
        return Some(
            error(format!("this text is not {encoding}"), sqlstate::INVALID_TEXT)
                .why(text.split_once(": ").map_or("", |(_, why)| why).to_owned())
                .hint("decode(x, 'hex') takes two digits for each byte"),
        );
    }
    if let Some((name, known)) =
        text.strip_prefix("There is no built-in ").and_then(|rest| rest.split_once(", currently supported "))
    {
        return Some(
            error(format!("there is no {name}").replace(" named", ""), sqlstate::INVALID_PARAMETER)
                .why(known.replacen("are: ", "are ", 1)),
        );
    }
    if let Some(time) = between(text, "Cannot cast string '", "' to value of Time64(ns) type") {
        return Some(
            error(format!("'{time}' is not a TIME"), sqlstate::DATETIME_OVERFLOW)
                .hint("write it like 23:59:59.5"),
        );
    }
    if let Some(span) = between(text, "Unable to represent ", " in a signed 32-bit integer") {
        let span = span.split(" as ").next().unwrap_or(span);
        return Some(
            error(format!("{span} are out of range for an INTERVAL"), sqlstate::INTERVAL_OVERFLOW)
                .why("it has at most 2147483647 months and days")
                .hint("write a shorter one"),
        );
    }
    if let Some(date) = text.strip_prefix("Unable to parse date from ") {
        return Some(
            error(format!("there is no day {}", date.replace(", ", "-")), sqlstate::DATETIME_OVERFLOW)
                .hint("make_date takes a year, a month and a day"),
        );
    }
    None
}

fn recursion(text: &str) -> Option<Error> {
    if let Some(counts) = between(text, "must have the same number of columns (", ")")
        && text.starts_with("Non-recursive term")
        && let Some((first, again)) = counts.split_once(" != ")
    {
        return Some(
            error(
                format!("the parts of a recursive query have {first} and {again} columns"),
                sqlstate::SYNTAX,
            )
            .hint("give both sides of its UNION the same columns"),
        );
    }
    if text.contains("Multiple recursive references") || text.contains("Unexpected empty work table") {
        let error =
            error("a step of a recursive query reads the last one in a subquery", sqlstate::UNSUPPORTED);
        return Some(error.why("a step takes its rows once").hint("join what the subquery reads"));
    }
    if let Some(ty) = between(text, "Cannot automatically convert ", " to Null") {
        let error =
            error("a column of a recursive query is NULL in its first rows", sqlstate::DATATYPE_MISMATCH);
        return Some(
            error.why(format!("its steps make {ty} of it")).hint(format!("write CAST(NULL AS {ty}) there")),
        );
    }
    None
}

fn patterns(text: &str) -> Option<Error> {
    if text.contains("CompiledTooBig(") {
        return Some(
            error("this regular expression is too large", sqlstate::REGEX)
                .why("its repetitions are written out to more than 10 MiB")
                .hint("repeat less, as in a{1,100}, or write a*"),
        );
    }
    if let Some(at) = text.find("regex parse error") {
        let why = text[at..].lines().find_map(|line| line.trim().strip_prefix("error: "));
        return Some(
            error("this is not a regular expression", sqlstate::REGEX)
                .why(why.unwrap_or("it cannot be read").to_owned())
                .hint("write \\( for a parenthesis itself, and so for any other sign"),
        );
    }
    None
}

fn types(text: &str) -> Option<Error> {
    if let Some((from, to)) =
        text.strip_prefix("Unsupported CAST from ").and_then(|rest| rest.split_once(" to "))
    {
        return Some(
            error(format!("{from} cannot be cast to {to}"), sqlstate::CANNOT_CAST)
                .hint("CAST it to TEXT first, if that says it"),
        );
    }
    if let Some(ty) = text.strip_prefix("Unsupported SQL type ") {
        let error = error(format!("there is no type {ty}"), sqlstate::UNDEFINED_OBJECT);
        if let Some(instead) = crate::sql::type_instead(ty) {
            return Some(error.hint(instead));
        }
        return Some(error.hint("types are BOOLEAN, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, DECIMAL(p, s), TEXT, BYTEA, DATE, TIMESTAMP, TIMESTAMPTZ, UUID and JSON"));
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
        return Some(error(format!("a time has no part '{part}'"), sqlstate::INVALID_PARAMETER)
            .hint("parts are millennium, century, decade, year, quarter, month, week, day, dow, isodow, doy, hour, minute, second, milliseconds, microseconds and epoch"));
    }
    if text.starts_with("Substring without for/from") {
        return Some(
            error("substr takes a text and where to begin", sqlstate::UNDEFINED_FUNCTION)
                .hint("substr(s, from [, count])"),
        );
    }
    if text.starts_with("Invalid input syntax for type interval: ") {
        let given = text.rsplit(": ").next()?.trim_matches('"');
        return Some(
            error(format!("'{given}' is not an INTERVAL"), sqlstate::INVALID_TEXT)
                .about(given)
                .hint("write INTERVAL '1 day 2 hours'"),
        );
    }
    if let Some(zone) = between(text, "Invalid timezone \"", "\"") {
        return Some(
            error(format!("there is no time zone '{zone}'"), sqlstate::INVALID_PARAMETER)
                .hint("write 'Europe/Oslo' or '+01:00'"),
        );
    }
    None
}

/// Errors while a plan runs, with what stands before them.
fn computing(text: &str) -> Option<Error> {
    let plain = text.strip_prefix("Compute error: ")?;
    let plain = plain.strip_prefix("Execution error: ").unwrap_or(plain);
    Some(reworded(plain).unwrap_or_else(|| error(plain, sqlstate::INVALID_PARAMETER)))
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
            (
                "Function 'upper' requires String, but received VARBINARY (DataType: VARBINARY).\n\nHint: Use CAST.",
                "upper does not take VARBINARY",
            ),
            (
                "SELECT * with no tables specified is not valid",
                "* stands for the columns of a table, and there is none",
            ),
            ("The function 'uuid' expected zero argument but received 1", "uuid takes no arguments, not 1"),
            ("LIMIT must be >= 0, '-1' was provided", "LIMIT takes a number of rows, not -1"),
            ("OFFSET must be >=0, '-1' was provided", "OFFSET takes a number of rows, not -1"),
            ("regex parse error:\n    (\n    ^\nerror: unclosed group", "this is not a regular expression"),
            ("Date part 'X' not supported", "a time has no part 'X'"),
            (
                "17.5 is too large to store in a Decimal128 of precision 2. Max is 9.9",
                "17.5 does not fit a DECIMAL of 2 digits",
            ),
            (
                "-17.5 is too small to store in a Decimal128 of precision 2. Min is -9.9",
                "-17.5 does not fit a DECIMAL of 2 digits",
            ),
            (
                "Cannot get result type for decimal operation DECIMAL(38, 30) * DECIMAL(38, 30): Invalid argument \
                 error: Output scale of DECIMAL(38, 30) * DECIMAL(38, 30) would exceed max scale of 38",
                "DECIMAL(38, 30) * DECIMAL(38, 30) has too many digits behind the point",
            ),
            ("[return_type] SUM not supported for Null", "sum does not take *"),
            ("negative count not allowed: -1", "substr takes a count of characters, not -1"),
            ("field position must not be zero", "split_part counts parts from 1, not from 0"),
            ("invalid Unicode scalar value: -1", "-1 is no character"),
            (
                "Regular expression did not compile: CompiledTooBig(10485760)",
                "this regular expression is too large",
            ),
            (
                "Conflicting ordering requirements in aggregate functions is not supported",
                "two aggregates of one SELECT want their rows in different orders",
            ),
            ("Arithmetic Overflow in AvgAccumulator", "the mean is out of range for a DECIMAL of 38 digits"),
            (
                "Unable to represent 200000000 years as months in a signed 32-bit integer",
                "200000000 years are out of range for an INTERVAL",
            ),
            (
                "Expected a single character wrapped with single quotes, got 'é'",
                "ESCAPE takes one ASCII character, not 'é'",
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
        assert!(reworded("a message that is clear enough").is_none());
    }
}
