//! Descriptions of all functions: DataFusion's from its documentation, ours from here.

use datafusion::execution::context::SessionState;
use datafusion::logical_expr::Documentation;

use super::replacement::REPLACEMENT;
use crate::df::functions::{DATE_OF_PATTERN, ROWKEY_EXPLAIN, TIME_OF_PATTERN};

/// Description of a function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DescribedFunction {
    /// Its name.
    pub name: String,
    /// Scalar, aggregate, window or table.
    pub kind: &'static str,
    /// How it is called, with arguments.
    pub call: String,
    /// What it returns.
    pub gives: String,
}

/// Our functions, and those whose documentation would be wrong here: how they are called, and what they return.
const OWN: [(&str, &str, &str); 69] = [
    ("age", "age(timestamp [, timestamp])", "the time between two timestamps, or since one until now"),
    ("bool_or", "bool_or(condition)", "whether the condition holds for any row of a group"),
    ("coalesce", "coalesce(value, ..)", "the first of these that is not NULL"),
    ("code", "code(text, 'Taobao=tb, ..')", "the short code of a value in such a list, as in key layouts"),
    ("covar_pop", "covar_pop(y, x)", "the population covariance of two numbers"),
    ("current_catalog", "current_catalog", "the name of every database: rowkeydb"),
    ("current_database", "current_database()", "the name of every database: rowkeydb"),
    ("current_schema", "current_schema", "the one schema: public"),
    ("current_user", "current_user", "the name of every user: rowkeydb"),
    ("date", "date(time [, '+1 day', ..])", "the day of a time, shifted, as in SQLite"),
    (
        "date_bin",
        "date_bin(interval, timestamp [, origin])",
        "the beginning of the bin of this length that a time is in; one begins at the origin, or in 1970",
    ),
    ("date_format", "date_format(timestamp, '%Y-%m-%d')", "a time as text in a pattern of strftime"),
    (
        "date_trunc",
        "date_trunc('month', timestamp)",
        "the beginning of the month, day, hour, .. that a time is in",
    ),
    ("datetime", "datetime(time [, 'start of day', ..])", "a time to the second, shifted, as in SQLite"),
    ("format", "format('%s %05d', value, ..)", "values as text in a format, as printf"),
    (
        "generate_series",
        "generate_series(start, stop [, step])",
        "a row for each number or time from start to stop",
    ),
    ("hex", "hex(value)", "the hexadecimal digits of the bytes of a text or of bytes"),
    ("json_agg", "json_agg(value [ORDER BY ..])", "the values of a group as a JSON array"),
    (
        "json_array_elements",
        "FROM t, json_array_elements(t.json)",
        "a row for each element of an array: value",
    ),
    ("json_array_elements_text", "FROM t, json_array_elements_text(t.json)", "the same, values as text"),
    ("json_array_length", "json_array_length(json)", "number of elements; NULL for what is no array"),
    ("json_build_array", "json_build_array(value, ..)", "a JSON array of values"),
    ("json_build_object", "json_build_object('name', value, ..)", "a JSON object of names and values"),
    ("json_concat", "json_concat(json, json)", "the members or elements of both, also json || json"),
    (
        "json_contains",
        "json_contains(json, part)",
        "whether a JSON value has all of another, also json @> part",
    ),
    ("json_each", "FROM t, json_each(t.json)", "a row for each member of an object: key and value"),
    ("json_each_text", "FROM t, json_each_text(t.json)", "the same, values as text"),
    (
        "json_extract",
        "json_extract(json, '$.a[0]')",
        "the part of a JSON value at the end of a path, as text",
    ),
    (
        "json_extract_path",
        "json_extract_path(json, step, ..)",
        "the part of a JSON value at the end of a path, also json #> '{step, ..}'",
    ),
    (
        "json_extract_path_text",
        "json_extract_path_text(json, step, ..)",
        "the same as text, also json #>> '{step, ..}'",
    ),
    (
        "json_get",
        "json_get(json, step)",
        "a member of an object by name, or an element of an array by number, also json -> step",
    ),
    ("json_get_text", "json_get_text(json, step)", "the same as text, also json ->> step"),
    (
        "json_object_agg",
        "json_object_agg(name, value [ORDER BY ..])",
        "the names and values of a group as a JSON object",
    ),
    ("json_object_keys", "FROM t, json_object_keys(t.json)", "a row for each member of an object: key"),
    ("json_typeof", "json_typeof(json)", "object, array, string, number, boolean or null"),
    ("julianday", "julianday(time [, '+1 day', ..])", "the Julian day of a time, as in SQLite"),
    ("length", "length(text)", "characters of a text, or bytes of a VARBINARY"),
    ("lpad", "lpad(value, n [, pad])", "a value as text of n characters, padded in front"),
    (
        "make_timestamp",
        "make_timestamp(year, month, day, hour, minute, seconds)",
        "the timestamp that these make",
    ),
    ("max", "max(value)", "the greatest value of a group"),
    ("md5", "md5(value)", "the MD5 digest of a value, as 32 hex digits"),
    (
        "md5_bucket",
        "md5_bucket(value, .., n)",
        "a bucket number below n, of the values' MD5, as in key layouts",
    ),
    ("min", "min(value)", "the smallest value of a group"),
    ("mod", "mod(x, y)", "the rest of a division, also x % y"),
    ("now", "now()", "the time at which the statement began, in UTC"),
    ("octet_length", "octet_length(text)", "bytes of a text or a VARBINARY"),
    (
        "percentile_disc",
        "percentile_disc(0.5) WITHIN GROUP (ORDER BY value)",
        "the first value of a group at or behind a share of all, in their order",
    ),
    ("pg_typeof", "pg_typeof(value)", "the type of a value as PostgreSQL calls it"),
    ("printf", "printf('%s %05d %.2f', value, ..)", "values as text in a format"),
    ("quote", "quote(value)", "a value as it is written in SQL"),
    ("range", "range(start, stop [, step])", "a row for each value from start to stop, without stop"),
    ("repeat", "repeat(text, n)", "a text so many times"),
    (ROWKEY_EXPLAIN, "rowkey_explain('table', rowkey)", "a key of a table or an index, part by part"),
    ("rpad", "rpad(value, n [, pad])", "a value as text of n characters, padded behind"),
    ("session_user", "session_user", "the name of every user: rowkeydb"),
    (
        "strftime",
        "strftime('%Y-%m', time [, '+1 day', ..])",
        "a time as text in a pattern of strftime, shifted, as in SQLite",
    ),
    (
        "string_to_table",
        "FROM t, string_to_table(t.text, ',')",
        "a row for each part of a text between these: value",
    ),
    ("sum", "sum(number)", "the sum of a group"),
    ("time", "time(time [, '+1 hour', ..])", "the time of the day as text, shifted, as in SQLite"),
    (
        "to_char",
        "to_char(timestamp, 'DD Mon YYYY')",
        "a time as text in a pattern, of PostgreSQL or of strftime",
    ),
    ("to_date", "to_date(text, 'DD/MM/YYYY')", "the date in a text of a pattern, of to_char or of strftime"),
    ("to_json", "to_json(value)", "a value as JSON"),
    (
        "to_timestamp",
        "to_timestamp(text, 'DD/MM/YYYY HH24:MI')",
        "the time in a text of a pattern, of to_char or of strftime, or so many seconds after 1970",
    ),
    ("total", "total(number)", "the sum of a group as a DOUBLE, 0 of no rows"),
    ("tpch", "tpch('orders', scale)", "the rows of a table of TPC-H, of so many gigabytes all in all"),
    ("typeof", "typeof(value)", "the name of a value's type"),
    ("unicode", "unicode(text)", "the code point of the first character of a text"),
    ("unixepoch", "unixepoch(time [, '+1 day', ..])", "the seconds of a time after 1970, as in SQLite"),
    ("version", "version()", "the version of RowkeyDB"),
];

/// Functions of values that no column has, of files, or that others are made of; these are not shown.
const USELESS: [&str; 21] = [
    "as_json",
    "as_uuid",
    "cast_to_type",
    DATE_OF_PATTERN,
    "file_row_index",
    "get_field",
    "input_file_name",
    "json_element",
    "json_member",
    "json_of_elements",
    "json_of_members",
    REPLACEMENT,
    "row",
    "struct",
    TIME_OF_PATTERN,
    "try_as_json",
    "try_as_uuid",
    "try_cast_to_type",
    "union_extract",
    "union_tag",
    "with_metadata",
];

/// All functions, by name.
pub fn functions(state: &SessionState) -> Vec<DescribedFunction> {
    let scalar = state.scalar_functions().iter();
    let scalar = scalar.map(|(name, f)| described(name, "scalar", (f.name(), f.documentation())));
    let aggregate = state.aggregate_functions().iter();
    let aggregate = aggregate.map(|(name, f)| described(name, "aggregate", (f.name(), f.documentation())));
    let window = state.window_functions().iter();
    let window = window.map(|(name, f)| described(name, "window", (f.name(), f.documentation())));
    let table = state.table_functions().keys().map(|name| described(name, "table", (name, None)));
    // One depends on the catalog, the others are rewritten or planned by themselves: they are not registered.
    let others = [
        (ROWKEY_EXPLAIN, "scalar"),
        ("mod", "scalar"),
        ("total", "aggregate"),
        ("json_extract", "scalar"),
        ("json_agg", "aggregate"),
        ("json_object_agg", "aggregate"),
        ("json_each", "table"),
        ("json_each_text", "table"),
        ("json_array_elements", "table"),
        ("json_array_elements_text", "table"),
        ("json_object_keys", "table"),
        ("string_to_table", "table"),
    ];
    let others = others.into_iter().map(|(name, kind)| described(name, kind, (name, None)));
    let mut all: Vec<_> = scalar.chain(aggregate).chain(window).chain(table).chain(others).collect();
    all.retain(|f| !f.name.starts_with("arrow_") && !USELESS.contains(&&f.name[..]));
    all.sort();
    all
}

/// `of`: the function's own name, which differs from `name` for an alias, and DataFusion's documentation.
fn described(name: &str, kind: &'static str, of: (&str, Option<&Documentation>)) -> DescribedFunction {
    let own = OWN.iter().find(|(own, ..)| *own == name);
    let (call, gives) = match (own, of) {
        (Some((_, call, gives)), _) => ((*call).to_owned(), (*gives).to_owned()),
        (None, (other, _)) if other != name => (format!("{name}(..)"), format!("as {other}")),
        (None, (_, Some(words))) => (words.syntax_example.clone(), first_sentence(&words.description)),
        (None, (_, None)) => (format!("{name}(..)"), String::new()),
    };
    DescribedFunction { name: name.to_owned(), kind, call, gives }
}

/// The first sentence of a description: what a function returns, in one line and without marks and its full stop.
fn first_sentence(text: &str) -> String {
    let words: Vec<&str> = text.split("\n\n").next().unwrap_or_default().split_whitespace().collect();
    let line = without_links(&words.join(" ")).replace('`', "");
    let end = line.find(". ").unwrap_or(line.trim_end_matches(['.', ':']).len());
    line[..end].trim_start_matches("Returns ").to_owned()
}

/// `a [regular expression](https://..)` as `a regular expression`.
fn without_links(text: &str) -> String {
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, link)) = rest.split_once('[')
        && let Some((words, behind)) = link.split_once("](")
        && !words.contains('[')
        && let Some((_, behind)) = behind.split_once(')')
    {
        plain.push_str(before);
        plain.push_str(words);
        rest = behind;
    }
    plain + rest
}
