//! CSV: RFC 4180 with PostgreSQL's NULL.
//!
//! A quoted value is never NULL, so that '' (`""`) and NULL (nothing, or the null string) stay apart. The records are
//! split here because readers that return unquoted values cannot tell the two apart.

use std::io::{BufRead, Write};

use arrow::datatypes::Schema;
use arrow::record_batch::RecordBatch;

use super::{
    BYTE_ORDER_MARK, FileWriter, NewFile, RECORD_BYTES_MAX, RowCells, RowSource, TargetColumns, cell_error,
    parse_cell, positions, skip_byte_order_mark,
};
use crate::error::{Error, Result, counted, sqlstate};
use crate::row::write_text_cell;
use crate::value::{ColumnType, Value};

/// Around values that hold a delimiter, a quote or a line break; doubled inside.
const QUOTE: u8 = b'"';

/// How a CSV file is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvOptions {
    /// The first record names the columns.
    pub header: bool,
    /// Between values.
    pub delimiter: u8,
    /// What stands, unquoted, for NULL.
    pub null: String,
}

impl Default for CsvOptions {
    fn default() -> Self {
        CsvOptions { header: true, delimiter: b',', null: String::new() }
    }
}

impl CsvOptions {
    fn check(&self) -> Result<()> {
        let breaks = |b: u8| matches!(b, b'\r' | b'\n');
        let wrong = if breaks(self.delimiter) || !self.delimiter.is_ascii() {
            "the delimiter is a single ASCII character on the line"
        } else if self.delimiter == QUOTE {
            "a quote is no delimiter"
        } else if self.null.bytes().any(|b| b == self.delimiter || b == QUOTE || breaks(b)) {
            "the null string must not hold a delimiter, a quote or a line break"
        } else {
            return Ok(());
        };
        Err(Error::invalid("these CSV options do not go together").why(wrong))
    }
}

/// Reads the records of a CSV file as rows.
#[derive(Debug)]
pub struct CsvReader<R> {
    records: CsvRecords<R>,
    record: Record,
    target: Vec<(String, ColumnType)>,
    /// For each value of a record, its index in the target.
    places: Vec<usize>,
    null: String,
}

/// The error for a first line that does not name columns: it may be a row.
fn no_header(error: Error, names: &[&str]) -> Error {
    let others = [(";", "';'"), ("\t", "E'\\t'"), ("|", "'|'")];
    let other = |name: &str| others.iter().find(|(other, _)| name.contains(other));
    if let [name] = names
        && let Some((_, written)) = other(name)
    {
        return error
            .why(format!("the first line of the file is one name, {name}"))
            .hint(format!("WITH (DELIMITER {written})"));
    }
    let if_row = "if that line is a row: WITH (HEADER false)";
    let error = match names {
        [""] => Error::invalid("line 1 is empty").state(sqlstate::INVALID_TEXT),
        _ => error,
    };
    let hint = error.fix().map_or_else(|| if_row.to_owned(), |columns| format!("{columns}; {if_row}"));
    error.why("the first line of a CSV file names its columns").hint(hint)
}

impl<R: BufRead> CsvReader<R> {
    /// Reads the header, if there is one; without it the values are the columns of `target` in order.
    ///
    /// Errors: `Invalid` when the header names a column that `target` lacks, or one twice.
    pub fn new(mut input: R, target: &TargetColumns, options: CsvOptions) -> Result<Self> {
        options.check()?;
        let bytes_read = skip_byte_order_mark(&mut input)?;
        let mut records = CsvRecords { input, delimiter: options.delimiter, line: 1, bytes_read };
        let mut record = Record::default();
        let places = if options.header && records.read(&mut record)? {
            let names: Option<Vec<&str>> =
                record.values().map(|v| std::str::from_utf8(v.bytes).ok()).collect();
            let names = names.ok_or_else(|| not_utf8("line 1"))?;
            positions(target, names.iter().copied()).map_err(|e| no_header(e, &names))?
        } else {
            (0..target.len()).collect()
        };
        Ok(CsvReader { records, record, target: target.to_vec(), places, null: options.null })
    }

    /// The cells of the record that was just read.
    fn cells(&self) -> Result<RowCells> {
        let line = self.record.line;
        let (given, expected) = (self.record.ends.len(), self.places.len());
        if given != expected {
            return Err(Error::invalid(format!(
                "line {line}: {} for {}",
                counted(given, "value"),
                counted(expected, "column")
            ))
            .state(sqlstate::INVALID_TEXT));
        }
        let mut cells = vec![None; self.target.len()];
        for (value, &place) in self.record.values().zip(&self.places) {
            let (name, ty) = &self.target[place];
            let text = std::str::from_utf8(value.bytes)
                .map_err(|_| not_utf8(format_args!("line {line}, column {name}")))?;
            cells[place] = Some(if !value.quoted && text == self.null {
                Value::Null
            } else {
                parse_cell(text, *ty).map_err(|e| cell_error(format_args!("line {line}"), name, e))?
            });
        }
        Ok(cells)
    }
}

fn not_utf8(place: impl std::fmt::Display) -> Error {
    Error::invalid(format!("{place}: the text is not UTF-8"))
        .hint("convert the file to UTF-8")
        .state(sqlstate::INVALID_TEXT)
}

impl<R: BufRead + Send> RowSource for CsvReader<R> {
    fn next_row(&mut self) -> Result<Option<Result<RowCells>>> {
        while self.records.read(&mut self.record)? {
            // An empty line is a row only if the file has a single column.
            if self.places.len() == 1 || !self.record.is_blank() {
                return Ok(Some(self.cells()));
            }
        }
        Ok(None)
    }

    fn place(&self) -> String {
        format!("line {}", self.record.line)
    }

    fn bytes_read(&self) -> u64 {
        self.records.bytes_read
    }
}

/// One record: its values end to end, without quotes and doublings.
#[derive(Debug, Default)]
struct Record {
    bytes: Vec<u8>,
    /// Where each value ends, and whether it was quoted.
    ends: Vec<(usize, bool)>,
    /// 1-based line it starts on.
    line: u64,
}

struct RawValue<'a> {
    bytes: &'a [u8],
    quoted: bool,
}

impl Record {
    fn values(&self) -> impl Iterator<Item = RawValue<'_>> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(end, _)| *end));
        let values = starts.zip(&self.ends);
        values.map(|(start, &(end, quoted))| RawValue { bytes: &self.bytes[start..end], quoted })
    }

    fn is_blank(&self) -> bool {
        self.ends == [(0, false)]
    }
}

/// State of the splitter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// Before the first byte of a value.
    Start,
    /// In a value, outside quotes.
    Plain,
    /// Between quotes.
    Quoted,
    /// After a quote that closes the value, unless another quote follows.
    Closed,
}

/// Splits bytes into records.
#[derive(Debug)]
struct CsvRecords<R> {
    input: R,
    delimiter: u8,
    /// 1-based line of the next byte.
    line: u64,
    bytes_read: u64,
}

impl<R: BufRead> CsvRecords<R> {
    /// Reads the next record into `record`; `false` at the end of the file.
    fn read(&mut self, record: &mut Record) -> Result<bool> {
        record.bytes.clear();
        record.ends.clear();
        record.line = self.line;
        let (mut at, mut quoted) = (At::Start, false);
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return finish_at_end(record, at, quoted);
            }
            let mut used = 0;
            let mut complete = false;
            while used < buffer.len() && !complete {
                let run = plain_run(&buffer[used..], at, self.delimiter);
                if run > 0 {
                    record.bytes.extend_from_slice(&buffer[used..used + run]);
                    used += run;
                    at = if at == At::Quoted { At::Quoted } else { At::Plain };
                    continue;
                }
                let byte = buffer[used];
                used += 1;
                self.line += u64::from(byte == b'\n');
                at = match at {
                    At::Quoted if byte == QUOTE => At::Closed,
                    At::Start if byte == QUOTE => {
                        quoted = true;
                        At::Quoted
                    }
                    At::Closed if byte == QUOTE => {
                        record.bytes.push(byte);
                        At::Quoted
                    }
                    At::Start | At::Plain | At::Closed if byte == self.delimiter => {
                        record.ends.push((record.bytes.len(), quoted));
                        quoted = false;
                        At::Start
                    }
                    At::Start | At::Plain | At::Closed if byte == b'\n' => {
                        end_line(record, at, quoted);
                        complete = true;
                        At::Start
                    }
                    inside => {
                        record.bytes.push(byte);
                        if inside == At::Quoted { At::Quoted } else { At::Plain }
                    }
                };
            }
            self.input.consume(used);
            self.bytes_read += used as u64;
            if complete {
                return Ok(true);
            }
            if record.bytes.len() + record.ends.len() > RECORD_BYTES_MAX {
                return Err(endless(record, at));
            }
        }
    }
}

/// Number of bytes at the front without a special meaning.
fn plain_run(bytes: &[u8], at: At, delimiter: u8) -> usize {
    let special = |b: u8| match at {
        At::Quoted => b == QUOTE || b == b'\n',
        At::Plain => b == delimiter || b == b'\n',
        At::Start | At::Closed => b == delimiter || b == b'\n' || b == QUOTE,
    };
    bytes.iter().position(|&b| special(b)).unwrap_or(bytes.len())
}

/// Ends the last value of a line, without the carriage return of CRLF.
fn end_line(record: &mut Record, at: At, quoted: bool) {
    let start = record.ends.last().map_or(0, |(end, _)| *end);
    if at == At::Plain && record.bytes[start..].last() == Some(&b'\r') {
        record.bytes.pop();
    }
    record.ends.push((record.bytes.len(), quoted));
}

fn finish_at_end(record: &mut Record, at: At, quoted: bool) -> Result<bool> {
    if at == At::Quoted {
        return Err(endless(record, at));
    }
    if at == At::Start && record.ends.is_empty() {
        return Ok(false);
    }
    end_line(record, at, quoted);
    Ok(true)
}

fn endless(record: &Record, at: At) -> Error {
    let line = record.line;
    let error = match at {
        At::Quoted => Error::invalid(format!("line {line}: a quoted value is never closed"))
            .hint("double the quotes inside of values"),
        _ => Error::invalid(format!("line {line}: the record is longer than 64 MiB")),
    };
    error.state(sqlstate::INVALID_TEXT)
}

/// Writes rows as CSV.
pub struct CsvWriter {
    out: NewFile,
    options: CsvOptions,
    /// The cell being written, and the rows not yet passed on.
    cell: String,
    rows: Vec<u8>,
}

impl CsvWriter {
    /// Writes the header, if there is one.
    pub fn new(out: NewFile, schema: &Schema, options: CsvOptions) -> Result<Self> {
        options.check()?;
        let mut writer = CsvWriter { out, options, cell: String::new(), rows: Vec::new() };
        if writer.options.header {
            for (at, field) in schema.fields().iter().enumerate() {
                writer.cell.clone_from(field.name());
                writer.put(at, true);
            }
            writer.rows.push(b'\n');
        }
        Ok(writer)
    }

    /// Writes the cell, number `at` of its row; NULL if not `there`.
    fn put(&mut self, at: usize, there: bool) {
        let CsvOptions { delimiter, null, .. } = &self.options;
        let delimiter = *delimiter;
        if at > 0 {
            self.rows.push(delimiter);
        }
        let text = self.cell.as_bytes();
        let special = |b: &u8| *b == delimiter || *b == QUOTE || matches!(b, b'\n' | b'\r');
        // At the start of a file it would be skipped.
        let is_marked = at == 0 && text.starts_with(BYTE_ORDER_MARK);
        if !there {
            self.rows.extend_from_slice(null.as_bytes());
        } else if self.cell == *null || is_marked || text.iter().any(special) {
            self.rows.push(QUOTE);
            for &b in text {
                if b == QUOTE {
                    self.rows.push(QUOTE);
                }
                self.rows.push(b);
            }
            self.rows.push(QUOTE);
        } else {
            self.rows.extend_from_slice(text);
        }
    }
}

impl FileWriter for CsvWriter {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        for row in 0..batch.num_rows() {
            for (at, array) in batch.columns().iter().enumerate() {
                self.cell.clear();
                let there = write_text_cell(&mut self.cell, array, row)?;
                self.put(at, there);
            }
            self.rows.push(b'\n');
        }
        self.out.write_all(&self.rows)?;
        self.rows.clear();
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<u64> {
        self.out.write_all(&self.rows)?;
        self.out.commit().map(|()| 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Values of each record, quoted ones in angle brackets, read through a buffer of `capacity` bytes.
    fn split(text: &[u8], capacity: usize) -> Result<Vec<(u64, Vec<String>)>> {
        let input = std::io::BufReader::with_capacity(capacity, text);
        let mut records = CsvRecords { input, delimiter: b',', line: 1, bytes_read: 0 };
        let (mut record, mut out) = (Record::default(), Vec::new());
        while records.read(&mut record)? {
            let shown = record.values().map(|v| {
                let text = String::from_utf8_lossy(v.bytes);
                if v.quoted { format!("<{text}>") } else { text.into_owned() }
            });
            out.push((record.line, shown.collect()));
        }
        assert_eq!(records.bytes_read, text.len() as u64);
        Ok(out)
    }

    #[test]
    fn records_as_rfc_4180_has_them() {
        /// Line number and values of a record.
        type Expected<'a> = (u64, &'a [&'a str]);
        let cases: [(&str, &[Expected<'_>]); 8] = [
            ("a,b\n1,2\n", &[(1, &["a", "b"]), (2, &["1", "2"])]),
            ("a,b\r\n1,\r\n", &[(1, &["a", "b"]), (2, &["1", ""])]),
            ("\"a,\"\"b\"\"\",c", &[(1, &["<a,\"b\">", "c"])]),
            ("\"two\nlines\",x\ny,z", &[(1, &["<two\nlines>", "x"]), (3, &["y", "z"])]),
            ("\"\",\n", &[(1, &["<>", ""])]),
            ("\"a\r\"\r\n", &[(1, &["<a\r>"])]),
            ("a\"b,c d\n\n", &[(1, &["a\"b", "c d"]), (2, &[""])]),
            ("", &[]),
        ];
        for (text, expected) in cases {
            for capacity in [1, 2, 3, 100] {
                let records = split(text.as_bytes(), capacity).unwrap();
                let expected: Vec<_> = expected
                    .iter()
                    .map(|(line, values)| (*line, values.iter().map(|v| v.to_string()).collect::<Vec<_>>()))
                    .collect();
                assert_eq!(records, expected, "{text:?} by {capacity}");
            }
        }
    }

    #[test]
    fn an_open_quote_is_found_where_it_starts() {
        let error = split(b"a\n\"b\nc\nd", 100).unwrap_err();
        assert_eq!(error.what(), "line 2: a quoted value is never closed");
    }

    #[test]
    fn options_that_contradict_are_refused() {
        let base = CsvOptions::default();
        for bad in [
            CsvOptions { delimiter: b'"', ..base.clone() },
            CsvOptions { delimiter: b'\n', ..base.clone() },
            CsvOptions { null: "a,b".into(), ..base.clone() },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn noise_never_panics(text in "[a\",\r\n]{0,30}", capacity in 1usize..8) {
            // Buffer boundaries must not matter.
            prop_assert_eq!(split(text.as_bytes(), capacity).ok(), split(text.as_bytes(), 100).ok());
        }
    }
}
