//! JSON Lines for programs: requests and results, one object per line.
//!
//! ```text
//! in   {"sql": "SELECT amount FROM payment WHERE payment_id = $1", "params": [7]}
//! out  {"statement":1,"columns":["amount"],"types":["DECIMAL(10,2)"],"rows":[[10.50]],"affected":0,"warnings":[],"elapsed_us":412}
//! out  {"statement":2,"error":{"kind":"invalid","message":"...","why":null,"hint":null,"sqlstate":"42P01","line":1,"column":15}}
//! ```
//!
//! A statement gives exactly one object, so its rows are held until the last one has been read: only then is
//! it known that none of them failed.

use std::time::Instant;

use arrow::record_batch::RecordBatch;
use serde::de::Error as Unread;
use serde::{Deserialize, Serialize};
use serde_json::value::Value as Json;

use super::render::ResultRows;
use crate::engine::Warning;
use crate::error::{Error, Result, Span, sqlstate};
use crate::row::write_json_cell;
use crate::value::Value;

/// A statement and the values of its `$1`, `$2`, ...
#[derive(Debug, PartialEq)]
pub struct Request {
    /// One SQL statement.
    pub sql: String,
    /// Its parameters.
    pub params: Vec<Value>,
}

impl Request {
    /// Parses one line of `--input jsonl`.
    ///
    /// Errors: `Invalid`, with what is wrong in the JSON and where.
    pub fn parse(line: &str) -> Result<Request> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, expecting = "an object")]
        struct Wire {
            sql: String,
            #[serde(default)]
            params: Vec<Json>,
        }
        // To serde, an array of the fields would be one as well.
        let is_array = line.trim_start().starts_with('[');
        let read =
            if is_array { Err(Unread::custom("expected an object")) } else { serde_json::from_str(line) };
        let wire: Wire = read.map_err(|e: serde_json::Error| {
            // The place is told as that of any error is.
            let why = e.to_string();
            Error::invalid("this line is not a request")
                .why(why.split(" at line ").next().unwrap_or_default())
                .hint("write one JSON object a line: {\"sql\": \"SELECT $1\", \"params\": [1]}")
                .state(sqlstate::SYNTAX)
                .at(Span { line: 1, column: e.column().max(1) as u32, len: 1 })
                .caused_by(e)
        })?;
        Ok(Request { sql: wire.sql, params: wire.params.into_iter().map(value_of).collect() })
    }
}

/// A JSON value as a parameter; arrays and objects become JSON text. The engine casts it to the type needed.
fn value_of(json: Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(b) => Value::Boolean(b),
        Json::Number(n) => number(n.as_str()),
        Json::String(text) => Value::Text(text),
        nested => Value::Text(nested.to_string()),
    }
}

/// Integers and plain decimals are exact, as far as they fit; other numbers become doubles, or are left as texts for the
/// engine to refuse.
fn number(text: &str) -> Value {
    let double = || text.parse().ok().filter(|double: &f64| double.is_finite()).map(Value::Double);
    Value::number(text).or_else(double).unwrap_or_else(|| Value::Text(text.to_owned()))
}

/// The output line of a statement that succeeded, with `\n`.
///
/// Errors: the statement fails while its rows are read.
pub fn success(
    statement: u64,
    rows: ResultRows<'_>,
    affected: Option<u64>,
    warnings: &[Warning],
    started: Instant,
) -> Result<Vec<u8>> {
    let names: Vec<&str> = rows.columns.iter().map(|column| column.name.as_str()).collect();
    let types: Vec<&str> = rows.columns.iter().map(|column| column.type_name.as_str()).collect();
    let head = format!(
        "{{\"statement\":{statement},\"columns\":{},\"types\":{},\"rows\":[",
        json(&names),
        json(&types)
    );
    let mut line = head.into_bytes();
    write_rows(&mut line, rows.batches)?;
    let warnings: Vec<WireWarning<'_>> = warnings.iter().map(WireWarning::from).collect();
    let tail = format!(
        "],\"affected\":{},\"warnings\":{},\"elapsed_us\":{}}}\n",
        affected.unwrap_or(0),
        json(&warnings),
        started.elapsed().as_micros()
    );
    line.extend_from_slice(tail.as_bytes());
    Ok(line)
}

fn write_rows(line: &mut Vec<u8>, batches: impl Iterator<Item = Result<RecordBatch>>) -> Result<()> {
    let mut first = true;
    for batch in batches {
        let batch = batch?;
        let schema = batch.schema();
        for row in 0..batch.num_rows() {
            line.extend_from_slice(if first { b"[" } else { b",[" });
            first = false;
            for (i, (array, field)) in batch.columns().iter().zip(schema.fields()).enumerate() {
                if i > 0 {
                    line.push(b',');
                }
                write_json_cell(line, array.as_ref(), row, field)?;
            }
            line.push(b']');
        }
    }
    Ok(())
}

/// The output line of a statement that failed, with `\n`.
pub fn failure(statement: u64, error: &Error) -> Vec<u8> {
    let span = error.span();
    let error = WireError {
        kind: error.kind().name(),
        message: error.what(),
        why: error.reason(),
        hint: error.fix(),
        sqlstate: error.sqlstate(),
        line: span.map(|span| span.line),
        column: span.map(|span| span.column),
    };
    format!("{{\"statement\":{statement},\"error\":{}}}\n", json(&error)).into_bytes()
}

#[derive(Serialize)]
struct WireError<'a> {
    kind: &'a str,
    message: &'a str,
    why: Option<&'a str>,
    hint: Option<&'a str>,
    sqlstate: &'a str,
    line: Option<u32>,
    column: Option<u32>,
}

#[derive(Serialize)]
struct WireWarning<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    message: &'a str,
    why: &'a str,
    hint: &'a str,
}

impl<'a> From<&'a Warning> for WireWarning<'a> {
    fn from(warning: &'a Warning) -> Self {
        let Warning { code, what, why, hint } = warning;
        WireWarning { code: code.as_deref(), message: what, why, hint }
    }
}

/// `value` as JSON text. Serializing strings, numbers and lists of them cannot fail.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{columns, orders};
    use super::*;
    use crate::engine::OutputColumn;

    fn object(
        columns: &[OutputColumn],
        batches: Vec<RecordBatch>,
        affected: Option<u64>,
        warnings: &[Warning],
    ) -> Json {
        let rows = ResultRows { columns, batches: &mut batches.into_iter().map(Ok) };
        let line = String::from_utf8(success(3, rows, affected, warnings, Instant::now()).unwrap()).unwrap();
        assert_eq!(line.matches('\n').count(), 1, "one line: {line}");
        let mut object: Json = serde_json::from_str(&line).unwrap();
        assert!(object["elapsed_us"].is_u64());
        object.as_object_mut().unwrap().remove("elapsed_us");
        object
    }

    #[test]
    fn rows_are_arrays_in_the_order_of_the_columns() {
        let (columns, batch) = orders();
        let expected = serde_json::json!({
            "statement": 3,
            "columns": ["order_id", "note"],
            "types": ["BIGINT", "VARCHAR"],
            "rows": [[7, "paid"], [123456, "a, \"b\"\nsecond line"], [null, ""], [-1, null]],
            "affected": 0,
            "warnings": []
        });
        assert_eq!(object(&columns, vec![batch], None, &[]), expected);
    }

    #[test]
    fn writes_carry_their_count_and_warnings() {
        let warning = Warning { code: None, what: "w".into(), why: "y".into(), hint: "h".into() };
        let object = object(&[], vec![], Some(2), &[warning]);
        assert_eq!(object["rows"], serde_json::json!([]));
        assert_eq!(object["affected"], 2);
        assert_eq!(object["warnings"], serde_json::json!([{"message": "w", "why": "y", "hint": "h"}]));
    }

    #[test]
    fn a_row_that_fails_leaves_no_half_object() {
        let (_, batch) = orders();
        let columns = columns(&[("order_id", "BIGINT"), ("note", "VARCHAR")]);
        let mut batches = vec![Ok(batch), Err(Error::corrupt("bad entry"))].into_iter();
        let rows = ResultRows { columns: &columns, batches: &mut batches };
        assert_eq!(success(1, rows, None, &[], Instant::now()).unwrap_err().what(), "bad entry");
    }

    #[test]
    fn errors_name_everything_they_know() {
        let error =
            Error::invalid("no table \"t\"").hint("SHOW TABLES").at(Span { line: 2, column: 5, len: 1 });
        assert_eq!(
            String::from_utf8(failure(9, &error)).unwrap(),
            "{\"statement\":9,\"error\":{\"kind\":\"invalid\",\"message\":\"no table \\\"t\\\"\",\"why\":null,\
             \"hint\":\"SHOW TABLES\",\"sqlstate\":\"42000\",\"line\":2,\"column\":5}}\n"
        );
    }

    #[test]
    fn parameters_keep_every_digit() {
        let line = r#"{"sql": "x", "params": [1, -9223372036854775808, 9223372036854775808, 0.10, -1.5, 1e3, true, null, "t", [1]]}"#;
        let params = Request::parse(line).unwrap().params;
        let shown: Vec<String> = params.iter().map(|p| format!("{p:?}")).collect();
        assert_eq!(
            shown,
            [
                "Int(1)",
                "Int(-9223372036854775808)",
                "Decimal(9223372036854775808, 0)",
                "Decimal(10, 2)",
                "Decimal(-15, 1)",
                "Double(1000.0)",
                "Boolean(true)",
                "Null",
                "Text(\"t\")",
                "Text(\"[1]\")",
            ]
        );
    }

    #[test]
    fn bad_requests_say_what_is_wrong() {
        for line in ["{", "[]", "{}", r#"{"sql": 1}"#, r#"{"sql": "x", "parms": []}"#] {
            let error = Request::parse(line).unwrap_err();
            assert_eq!(error.what(), "this line is not a request", "{line}");
            assert!(!error.reason().unwrap_or_default().contains("column"), "{error}");
        }
    }
}
