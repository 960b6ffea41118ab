//! PostgreSQL's text format: a line for each row, values between tabs, `\N` for NULL, backslashes before characters that
//! would mean something else. A line `\.` ends the rows.

use std::io::{BufRead, Read, Write};

use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;

use super::{
    FileWriter, NewFile, RECORD_BYTES_MAX, RowCells, RowSource, TargetColumns, cell_error, parse_cell,
};
use crate::error::{Error, Result, counted, sqlstate};
use crate::row::write_text_cell;
use crate::value::{ColumnType, Value};

/// How a file of the text format is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Between values.
    pub delimiter: u8,
    /// What stands for NULL, before backslashes are read.
    pub null: String,
}

impl Default for TextOptions {
    fn default() -> Self {
        TextOptions { delimiter: b'\t', null: "\\N".to_owned() }
    }
}

impl TextOptions {
    /// Errors: what is written so could not be told apart when it is read.
    fn check(&self) -> Result<()> {
        let breaks = |b: u8| matches!(b, b'\r' | b'\n');
        let means_more = |b: u8| matches!(b, b'\\' | b'.' | b'a'..=b'z' | b'0'..=b'9');
        let wrong = if breaks(self.delimiter) || means_more(self.delimiter) || !self.delimiter.is_ascii() {
            "a delimiter is one ASCII character on the line, and no backslash, point, digit or small letter"
        } else if !self.is_null_apart() || self.null.bytes().any(breaks) || self.null == "\\." {
            "the null string must be a value: no delimiter or line break in it, no backslash at its end"
        } else {
            return Ok(());
        };
        Err(Error::invalid("these options of FORMAT text do not go together").why(wrong))
    }

    /// Whether a value that is NULL ends where the delimiter behind it begins.
    fn is_null_apart(&self) -> bool {
        let null = self.null.as_bytes();
        split(&[null, &[self.delimiter]].concat(), self.delimiter) == [null, b""]
    }
}

/// The characters that have a letter behind the backslash.
const LETTERS: [(u8, u8); 6] =
    [(b'b', 0x08), (b't', b'\t'), (b'n', b'\n'), (b'v', 0x0b), (b'f', 0x0c), (b'r', b'\r')];

/// Reads lines as rows.
#[derive(Debug)]
pub struct TextReader<R> {
    input: R,
    target: Vec<(String, ColumnType)>,
    options: TextOptions,
    line: Vec<u8>,
    /// 1-based number of the line.
    number: u64,
    bytes_read: u64,
}

impl<R: BufRead> TextReader<R> {
    /// Reads rows of all columns of `target`, in order. Errors: `Invalid`, of the options.
    pub fn new(input: R, target: &TargetColumns, options: TextOptions) -> Result<Self> {
        options.check()?;
        let target = target.to_vec();
        Ok(TextReader { input, target, options, line: Vec::new(), number: 0, bytes_read: 0 })
    }

    /// Reads the next line, without its end; `false` at the end of the rows.
    fn read_line(&mut self) -> Result<bool> {
        self.line.clear();
        self.number += 1;
        let mut limited = (&mut self.input).take(RECORD_BYTES_MAX as u64 + 1);
        let read = limited.read_until(b'\n', &mut self.line)?;
        self.bytes_read += read as u64;
        if read > RECORD_BYTES_MAX {
            return Err(Error::invalid(format!("line {}: the row is longer than 64 MiB", self.number))
                .state(sqlstate::INVALID_TEXT));
        }
        for end in *b"\n\r" {
            if self.line.last() == Some(&end) {
                self.line.pop();
            }
        }
        Ok(read > 0 && self.line != b"\\.")
    }

    fn cells(&self) -> Result<RowCells> {
        let values = split(&self.line, self.options.delimiter);
        if values.len() != self.target.len() {
            let (line, given, expected) = (self.number, values.len(), self.target.len());
            return Err(Error::invalid(format!(
                "line {line}: {} for {}",
                counted(given, "value"),
                counted(expected, "column")
            ))
            .state(sqlstate::INVALID_TEXT));
        }
        let cells = values.into_iter().zip(&self.target).map(|(raw, (name, ty))| {
            if raw == self.options.null.as_bytes() {
                return Ok(Some(Value::Null));
            }
            let text = String::from_utf8(unescaped(raw)).map_err(|_| {
                Error::invalid(format!("line {}, column {name}: the text is not UTF-8", self.number))
                    .hint("convert the file to UTF-8")
                    .state(sqlstate::INVALID_TEXT)
            })?;
            let place = format_args!("line {}", self.number);
            parse_cell(&text, *ty).map(Some).map_err(|e| cell_error(place, name, e))
        });
        cells.collect()
    }
}

impl<R: BufRead + Send> RowSource for TextReader<R> {
    fn next_row(&mut self) -> Result<Option<Result<RowCells>>> {
        Ok(if self.read_line()? { Some(self.cells()) } else { None })
    }

    fn place(&self) -> String {
        format!("line {}", self.number)
    }

    fn bytes_read(&self) -> u64 {
        self.bytes_read
    }
}

/// The values of a line; a delimiter behind a backslash belongs to its value.
fn split(line: &[u8], delimiter: u8) -> Vec<&[u8]> {
    let (mut values, mut start, mut at) = (Vec::new(), 0, 0);
    while at < line.len() {
        match line[at] {
            b'\\' => at += 1,
            byte if byte == delimiter => {
                values.push(&line[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    values.push(&line[start..]);
    values
}

/// A value without its backslashes: `\n` and the like, `\101` and `\x41` for a byte; any other character is itself.
fn unescaped(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        let Some((&escaped, behind)) = rest.split_first().filter(|_| byte == b'\\') else {
            out.push(byte);
            continue;
        };
        rest = behind;
        let (digits, radix) = match escaped {
            b'x' => (digits_at(behind, 16, 2), 16),
            b'0'..=b'7' => (1 + digits_at(behind, 8, 2), 8),
            _ => (0, 0),
        };
        let letter = LETTERS.iter().find(|(letter, _)| *letter == escaped);
        match (letter, digits) {
            (Some((_, byte)), _) => out.push(*byte),
            (None, 0) => out.push(escaped),
            (None, n) => {
                let from = raw.len() - behind.len() - usize::from(radix == 8);
                let value = raw[from..from + n].iter().fold(0u32, |value, digit| {
                    value * radix + char::from(*digit).to_digit(radix).unwrap_or_default()
                });
                out.push(value as u8);
                rest = &raw[from + n..];
            }
        }
    }
    out
}

/// Digits at the front (count), `most` at the most.
fn digits_at(bytes: &[u8], radix: u32, most: usize) -> usize {
    bytes.iter().take(most).take_while(|byte| char::from(**byte).is_digit(radix)).count()
}

/// Writes rows as lines.
pub struct TextWriter {
    out: NewFile,
    options: TextOptions,
    cell: String,
    rows: Vec<u8>,
    /// Empty texts written (count), if these read back as NULL.
    nulls: u64,
}

impl TextWriter {
    /// Writes to `out`. Errors: `Invalid`, of the options.
    pub fn new(out: NewFile, options: TextOptions) -> Result<Self> {
        options.check()?;
        Ok(TextWriter { out, options, cell: String::new(), rows: Vec::new(), nulls: 0 })
    }

    /// Writes the cell, which is not NULL and must not read so.
    fn put(&mut self) {
        let start = self.rows.len();
        let TextWriter { options, cell, rows, .. } = self;
        escape(cell.as_bytes(), options.delimiter, rows);
        if rows[start..] != *options.null.as_bytes() {
            return;
        }
        match cell.as_bytes().split_first() {
            Some((first, others)) => {
                rows.truncate(start);
                rows.extend(format!("\\x{first:02x}").bytes());
                escape(others, options.delimiter, rows);
            }
            None => self.nulls += 1,
        }
    }
}

/// Writes a text with backslashes where they are needed.
fn escape(text: &[u8], delimiter: u8, out: &mut Vec<u8>) {
    for &byte in text {
        match LETTERS.iter().find(|(_, meant)| *meant == byte) {
            Some((letter, _)) => out.extend([b'\\', *letter]),
            None if byte == b'\\' || byte == delimiter => out.extend([b'\\', byte]),
            None => out.push(byte),
        }
    }
}

impl FileWriter for TextWriter {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        for row in 0..batch.num_rows() {
            for (at, array) in batch.columns().iter().enumerate() {
                if at > 0 {
                    self.rows.push(self.options.delimiter);
                }
                self.cell.clear();
                // PostgreSQL reads hex only behind this.
                if matches!(array.data_type(), DataType::Binary | DataType::BinaryView) {
                    self.cell.push_str("\\x");
                }
                match write_text_cell(&mut self.cell, array, row)? {
                    true => self.put(),
                    false => self.rows.extend_from_slice(self.options.null.as_bytes()),
                }
            }
            self.rows.push(b'\n');
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

    fn rows(text: &str, target: &[(&str, ColumnType)]) -> Vec<Result<RowCells>> {
        let target: Vec<_> = target.iter().map(|(name, ty)| ((*name).to_owned(), *ty)).collect();
        let mut reader = TextReader::new(text.as_bytes(), &target, TextOptions::default()).unwrap();
        std::iter::from_fn(|| reader.next_row().unwrap()).collect()
    }

    #[test]
    fn values_nulls_and_backslashes() {
        let target = [("id", ColumnType::Integer), ("s", ColumnType::Varchar), ("b", ColumnType::Varbinary)];
        let text =
            "1\ta\\tb\\n\\\\c\\101\\x41\\\t\t\\\\x00ff\r\n2\t\t\\N\n3\t\\N\t\\\\x\n\\.\n4\tnot read\t\\N\n";
        let expected = [
            [Value::Int(1), Value::Text("a\tb\n\\cAA\t".into()), Value::Bytes(vec![0, 255])],
            [Value::Int(2), Value::Text(String::new()), Value::Null],
            [Value::Int(3), Value::Null, Value::Bytes(Vec::new())],
        ];
        let found: Vec<Vec<Value>> =
            rows(text, &target).into_iter().map(|row| row.unwrap().into_iter().flatten().collect()).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn errors_name_line_and_column() {
        let target = [("id", ColumnType::Integer), ("s", ColumnType::Varchar)];
        let errors: Vec<String> = rows("1\n2\tb\nx\tc\n", &target)
            .into_iter()
            .filter_map(|row| row.err().map(|e| e.what().to_owned()))
            .collect();
        assert_eq!(errors, ["line 1: 1 value for 2 columns", "line 3, column id: 'x' is not an INTEGER"]);
    }
}
