//! JSON lines: one object per line, its members the columns.
//!
//! Members are split, but not decoded, so that numbers keep all their digits and a JSON column keeps its text as
//! written. A column without a member is not given; one with `null` is NULL, even in a JSON column, as others write NULL
//! so: `null` is the one JSON value that does not survive a round trip, and the writer counts how often it was written.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{BufRead, Read, Write};

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use serde::de::IgnoredAny;

use super::{
    FileWriter, NewFile, RECORD_BYTES_MAX, RowCells, RowSource, TargetColumns, cell_error, parse_cell,
    position, skip_byte_order_mark, unknown_column,
};
use crate::error::{Error, Result, sqlstate};
use crate::row::write_json_cell;
use crate::value::{CastError, CastFault, ColumnType, Value, ValueRef};

/// Reads the lines of a file as rows.
#[derive(Debug)]
pub struct JsonlReader<R> {
    input: R,
    target: Vec<(String, ColumnType)>,
    line: Vec<u8>,
    /// 1-based number of `line`.
    number: u64,
    bytes_read: u64,
}

impl<R: BufRead> JsonlReader<R> {
    /// Reads objects with members named as the columns of `target`, or some of them.
    pub fn new(mut input: R, target: &TargetColumns) -> Result<Self> {
        let bytes_read = skip_byte_order_mark(&mut input)?;
        Ok(JsonlReader { input, target: target.to_vec(), line: Vec::new(), number: 0, bytes_read })
    }

    /// Reads a line; `false` at the end of the file.
    fn read_line(&mut self) -> Result<bool> {
        self.line.clear();
        let read = (&mut self.input).take(RECORD_BYTES_MAX as u64).read_until(b'\n', &mut self.line)?;
        self.bytes_read += read as u64;
        self.number += 1;
        if read == RECORD_BYTES_MAX && self.line.last() != Some(&b'\n') {
            return Err(self.error("it is longer than 64 MiB"));
        }
        Ok(read > 0)
    }

    /// The cells of the line that was just read.
    fn cells(&self) -> Result<RowCells> {
        let text = std::str::from_utf8(&self.line).map_err(|_| {
            let not_utf8 = format!("line {}: the text is not UTF-8", self.number);
            Error::invalid(not_utf8).hint("convert the file to UTF-8").state(sqlstate::INVALID_TEXT)
        })?;
        let mut cells = vec![None; self.target.len()];
        let mut next = 0;
        for (name, raw) in members(text).map_err(|why| self.error(why))? {
            // Most lines have the columns in order.
            let is_next = self.target.get(next).is_some_and(|(column, _)| *column == name);
            let found = if is_next { Some(next) } else { position(&self.target, &name) };
            let Some(at) = found else {
                return Err(unknown_column(format_args!("line {}: ", self.number), &self.target, &name));
            };
            next = at + 1;
            if cells[at].is_some() {
                return Err(self.error(format!("it has \"{name}\" twice")));
            }
            let (column, ty) = &self.target[at];
            let place = format_args!("line {}", self.number);
            cells[at] = Some(value(raw, *ty).map_err(|e| cell_error(place, column, e))?);
        }
        Ok(cells)
    }

    fn error(&self, why: impl Into<String>) -> Error {
        Error::invalid(format!("line {} is not a JSON object", self.number))
            .why(why)
            .state(sqlstate::INVALID_TEXT)
    }
}

impl<R: BufRead + Send> RowSource for JsonlReader<R> {
    fn next_row(&mut self) -> Result<Option<Result<RowCells>>> {
        while self.read_line()? {
            if !self.line.trim_ascii().is_empty() {
                return Ok(Some(self.cells()));
            }
        }
        Ok(None)
    }

    fn place(&self) -> String {
        format!("line {}", self.number)
    }

    fn bytes_read(&self) -> u64 {
        self.bytes_read
    }
}

/// The members of the object in `text`: names, and values as written. The error says what is wrong.
fn members(text: &str) -> Result<Vec<(Cow<'_, str>, &str)>, String> {
    let mut rest = text;
    let mut members = Vec::new();
    expect(&mut rest, '{')?;
    if expect(&mut rest, '}').is_err() {
        loop {
            let name = item(&mut rest)?;
            let name = unquoted(name).ok_or_else(|| format!("{name} is not a name"))?;
            expect(&mut rest, ':')?;
            members.push((name, item(&mut rest)?));
            if expect(&mut rest, ',').is_err() {
                break;
            }
        }
        expect(&mut rest, '}')?;
    }
    match rest.trim_ascii_start().chars().next() {
        None => Ok(members),
        Some(next) => Err(format!("{next} follows it")),
    }
}

/// Takes `wanted` and the space before it.
fn expect(rest: &mut &str, wanted: char) -> Result<(), String> {
    let text = rest.trim_ascii_start();
    *rest = text.strip_prefix(wanted).ok_or_else(|| match text.chars().next() {
        Some(found) => format!("{wanted} is expected where {found} stands"),
        None => format!("it ends before {wanted}"),
    })?;
    Ok(())
}

/// Takes one JSON value and gives its text.
fn item<'a>(rest: &mut &'a str) -> Result<&'a str, String> {
    let text = rest.trim_ascii_start();
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    match stream.next() {
        Some(Ok(IgnoredAny)) => {
            let (item, after) = text.split_at(stream.byte_offset());
            *rest = after;
            Ok(item)
        }
        Some(Err(e)) => {
            // The position in the message is relative to the value, not the line.
            let message = e.to_string();
            Err(message.split(" at line ").next().unwrap_or_default().to_owned())
        }
        None => Err("it ends before a value".into()),
    }
}

/// The text of a JSON string; `None` for another value, or one with half a surrogate pair.
fn unquoted(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(raw).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// A JSON value as a value of `ty`.
fn value(raw: &str, ty: ColumnType) -> Result<Value, CastError> {
    let malformed =
        |why: &str| CastError::new(ValueRef::Text(raw), ty, CastFault::Malformed(Some(why.into())));
    match raw.as_bytes().first() {
        Some(b'n') => Ok(Value::Null),
        _ if ty == ColumnType::Json => Ok(Value::Text(raw.to_owned())),
        Some(b'"') => match unquoted(raw) {
            Some(text) => parse_cell(&text, ty),
            None => Err(malformed("its escapes are not Unicode")),
        },
        Some(b'{' | b'[') => Err(malformed("objects and arrays are values of JSON columns only")),
        Some(b't' | b'f') => Value::parse(raw, ty),
        // In JSON 1.0 and 1e3 are integers too.
        _ if ty.is_integer() && raw.contains(['.', 'e', 'E']) => {
            let whole = Value::parse(raw, ColumnType::Decimal { precision: 38, scale: 0 });
            whole.and_then(|v| v.cast(ty)).map_err(|e| CastError { to: ty, ..e })
        }
        _ => Value::parse(raw, ty),
    }
}

/// Writes rows as JSON lines; NULLs as `null`, so that no default takes their place when read.
pub struct JsonlWriter {
    out: NewFile,
    schema: SchemaRef,
    /// `{"a":`, `,"b":`, ...: what comes before each column's value.
    leads: Vec<String>,
    rows: Vec<u8>,
    /// Values written as `null` that are not NULL, but JSON (count).
    nulls: u64,
}

impl JsonlWriter {
    /// A writer of objects with the fields of `schema`. Errors: two of one name.
    pub fn new(out: NewFile, schema: SchemaRef) -> Result<Self> {
        let mut taken = HashSet::new();
        if let Some(field) = schema.fields().iter().find(|field| !taken.insert(field.name())) {
            return Err(Error::invalid(format!("two columns are called \"{}\"", field.name()))
                .why("an object has one member of each name")
                .hint("give one of them another name with AS")
                .state(sqlstate::DUPLICATE_COLUMN));
        }
        let lead = |(at, name): (usize, &str)| {
            let name = serde_json::to_string(name).map_err(std::io::Error::from)?;
            Ok(format!("{}{name}:", if at == 0 { '{' } else { ',' }))
        };
        let names = schema.fields().iter().map(|f| f.name().as_str());
        let leads = names.enumerate().map(lead).collect::<Result<_>>()?;
        Ok(JsonlWriter { out, schema, leads, rows: Vec::new(), nulls: 0 })
    }
}

impl FileWriter for JsonlWriter {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        for row in 0..batch.num_rows() {
            for ((lead, array), field) in self.leads.iter().zip(batch.columns()).zip(self.schema.fields()) {
                self.rows.extend_from_slice(lead.as_bytes());
                let start = self.rows.len();
                write_json_cell(&mut self.rows, array, row, field)?;
                let is_null = self.rows[start..].trim_ascii() == b"null";
                self.nulls += u64::from(is_null && array.is_valid(row));
            }
            self.rows.extend_from_slice(b"}\n");
        }
        self.out.write_all(&self.rows)?;
        self.rows.clear();
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        self.out.commit().map(|()| self.nulls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn members_keep_their_values_as_written() {
        let text = r#" { "a" : 1.10 , "b\u00e9":{"x": [1, 2]},"c":"q\"" , "d":null} "#;
        let expected = [("a", "1.10"), ("bé", r#"{"x": [1, 2]}"#), ("c", r#""q\"""#), ("d", "null")];
        let members = members(text).unwrap();
        assert_eq!(members.iter().map(|(n, r)| (&**n, *r)).collect::<Vec<_>>(), expected);
        assert!(super::members("{}").unwrap().is_empty());
    }

    #[test]
    fn what_is_no_object_is_refused() {
        let cases = [
            ("[1]", "{ is expected where [ stands"),
            ("{\"a\":1", "it ends before }"),
            ("{\"a\":1,}", "expected value"),
            ("{\"a\" 1}", ": is expected where 1 stands"),
            ("{1:1}", "1 is not a name"),
            ("{\"a\":01}", "invalid number"),
            ("{} {}", "{ follows it"),
        ];
        for (text, why) in cases {
            assert_eq!(members(text).unwrap_err(), why, "{text}");
        }
    }

    #[test]
    fn a_member_that_comes_twice_is_refused() {
        let target = [("a".to_owned(), ColumnType::Integer)];
        let mut reader = JsonlReader::new(&b"{\"a\": null, \"a\": 2}"[..], &target[..]).unwrap();
        let error = reader.next_row().unwrap().unwrap().unwrap_err();
        assert_eq!(error.reason(), Some("it has \"a\" twice"));
    }

    #[test]
    fn json_values_become_sql_values() {
        let money = ColumnType::Decimal { precision: 20, scale: 2 };
        let cases = [
            ("12345678901234567.89", money, "12345678901234567.89"),
            ("\"1.5\"", money, "1.50"),
            ("1e3", ColumnType::Integer, "1000"),
            ("9223372036854775807", ColumnType::BigInt, "9223372036854775807"),
            ("\"NaN\"", ColumnType::Double, "NaN"),
            ("true", ColumnType::Boolean, "true"),
            ("5", ColumnType::Varchar, "5"),
            ("{\"a\":  1}", ColumnType::Json, "{\"a\":  1}"),
            ("\"x\"", ColumnType::Json, "\"x\""),
            ("null", ColumnType::Json, "NULL"),
            ("\"2017-01-01T09:00:00Z\"", ColumnType::TimestampTz, "2017-01-01 09:00:00+00"),
            ("\"00ff\"", ColumnType::Varbinary, "00ff"),
        ];
        for (raw, ty, shown) in cases {
            assert_eq!(value(raw, ty).expect(raw).to_string(), shown, "{raw} as {ty}");
        }
        for (raw, ty) in [
            ("[1]", ColumnType::Varchar),
            ("true", ColumnType::Integer),
            ("1e30", ColumnType::BigInt),
            ("5", ColumnType::Timestamp),
            ("\"\\ud800\"", ColumnType::Varchar),
        ] {
            assert!(value(raw, ty).is_err(), "{raw} as {ty}");
        }
    }

    proptest! {
        #[test]
        fn noise_never_panics(text in r#"[{}":,a1\[\]\\é ]{0,24}"#) {
            let ours = members(&text);
            let theirs = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&text);
            prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{:?} {:?}", ours, theirs);
        }
    }
}
