//! Writes outcomes for people: an [`Outcome`] as table, CSV or Markdown.
//!
//! Rows are written as they come; only the table looks ahead, a thousand rows, to find column widths. The
//! `jsonl` format is in [`json`](super::json), since it covers errors and warnings too.

use std::io::{self, Write};

use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use clap::ValueEnum;
use unicode_width::UnicodeWidthStr;

use super::pager::Screen;
use super::table;
use crate::engine::{Outcome, OutputColumn};
use crate::error::{Error, Result, counted};
use crate::row::write_text_cell;

/// How results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Aligned columns, for people.
    #[default]
    Table,
    /// Comma-separated, with a header; NULL is empty, the empty string is "".
    Csv,
    /// One JSON object per statement, for programs.
    Jsonl,
    /// A Markdown table.
    Markdown,
}

impl OutputFormat {
    /// The format with this name in `.mode` and `--format`.
    pub fn named(name: &str) -> Option<OutputFormat> {
        OutputFormat::from_str(name, true).ok()
    }

    /// Its name.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Whether a row is written as a line for each column, instead of as a row of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expanded {
    /// Never.
    Off,
    /// Always.
    On,
    /// In a terminal, if the table would be wider than it and is not for the pager.
    #[default]
    Auto,
}

impl Expanded {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Expanded::Off => "off",
            Expanded::On => "on",
            Expanded::Auto => "auto",
        }
    }
}

/// Appearance of results in a terminal.
#[derive(Clone, Debug, Default)]
pub struct Style {
    /// ANSI colours.
    pub color: bool,
    /// Cells wider than this (in terminal columns) are cut and end in `…`; `None`: never.
    pub cell_width_max: Option<usize>,
    /// Write a line for each column of a row, instead of a table.
    pub expanded: Expanded,
    /// What stands for NULL; `None`: NULL.
    pub null: Option<String>,
    /// The terminal that the result goes to, with as many rows as do not need the pager.
    pub screen: Option<Screen>,
}

impl Style {
    /// What stands for NULL.
    pub fn null(&self) -> &str {
        self.null.as_deref().unwrap_or("NULL")
    }
}

/// Why a result was not written completely.
#[derive(Debug)]
pub enum RenderError {
    /// The statement failed while its rows were read.
    Query(Error),
    /// The output cannot be written.
    Output(io::Error),
}

impl From<Error> for RenderError {
    fn from(e: Error) -> Self {
        RenderError::Query(e)
    }
}

impl From<io::Error> for RenderError {
    fn from(e: io::Error) -> Self {
        RenderError::Output(e)
    }
}

/// Rows to be written.
pub struct ResultRows<'a> {
    /// The columns.
    pub columns: &'a [OutputColumn],
    /// The rows.
    pub batches: &'a mut dyn Iterator<Item = Result<RecordBatch>>,
}

/// One row as text; `None` is NULL.
pub type TextRow = Vec<Option<String>>;

impl ResultRows<'_> {
    /// The first batch with rows: for formats with a header, which a statement that fails before its first row should
    /// not leave behind.
    fn first(&mut self) -> Result<Option<RecordBatch>> {
        let mut batches = &mut *self.batches;
        Iterator::find(&mut batches, |batch| !matches!(batch, Ok(batch) if batch.num_rows() == 0)).transpose()
    }

    /// Calls `each` with every row and its schema.
    pub fn for_each(
        self,
        mut each: impl FnMut(&SchemaRef, TextRow) -> Result<(), RenderError>,
    ) -> Result<(), RenderError> {
        for batch in self.batches {
            let batch = batch?;
            for row in 0..batch.num_rows() {
                each(batch.schema_ref(), text_row(&batch, row)?)?;
            }
        }
        Ok(())
    }
}

fn text_row(batch: &RecordBatch, row: usize) -> Result<TextRow> {
    let cell = |array: &ArrayRef| {
        let mut text = String::new();
        Ok(write_text_cell(&mut text, array, row)?.then_some(text))
    };
    batch.columns().iter().map(cell).collect()
}

/// Writes an outcome. [`OutputFormat::Jsonl`] is not handled here and gives a table.
pub fn outcome(
    out: &mut dyn Write,
    format: OutputFormat,
    style: Style,
    outcome: Outcome,
) -> Result<(), RenderError> {
    let Outcome { columns, rows: mut batches, affected, tag, .. } = outcome;
    let plan = is_plan(tag, &columns);
    let rows = ResultRows { columns: &columns, batches: &mut batches };
    match format {
        OutputFormat::Csv => return if columns.is_empty() { drain(rows) } else { csv(out, rows) },
        _ if columns.is_empty() => drain(rows)?,
        OutputFormat::Markdown if plan => {
            writeln!(out, "```text")?;
            lines(out, rows)?;
            writeln!(out, "```\n")?;
        }
        OutputFormat::Markdown => markdown(out, rows, style.null())?,
        _ if plan => lines(out, rows)?,
        _ if tag == "LINT" => findings(out, rows, style.cell_width_max)?,
        _ if tag == "ADVISE" => proposals(out, rows)?,
        // Of a definition, a table that is too wide is easier to read than four lines for each column.
        _ if tag == "DESCRIBE" && style.expanded == Expanded::Auto => {
            table::write(out, rows, Style { expanded: Expanded::Off, ..style })?;
        }
        _ => table::write(out, rows, style)?,
    }
    match affected {
        Some(count) => writeln!(out, "{tag} {count}")?,
        None if columns.is_empty() => writeln!(out, "{tag}")?,
        None => {}
    }
    Ok(())
}

fn is_plan(tag: &str, columns: &[OutputColumn]) -> bool {
    tag.starts_with("EXPLAIN") && matches!(columns, [only] if only.name == "plan")
}

/// Reads all rows of a statement without columns.
fn drain(rows: ResultRows<'_>) -> Result<(), RenderError> {
    for batch in rows.batches {
        batch?;
    }
    Ok(())
}

/// Writes the last column, one cell per line, undecorated: for plans and definitions.
pub fn lines(out: &mut dyn Write, rows: ResultRows<'_>) -> Result<(), RenderError> {
    rows.for_each(|_, mut row| Ok(writeln!(out, "{}", row.pop().flatten().unwrap_or_default())?))
}

/// Writes LINT's findings like warnings, because sentences do not fit columns. They are wrapped at the
/// screen's width, except the SQL, which is to be copied.
fn findings(out: &mut dyn Write, rows: ResultRows<'_>, width: Option<usize>) -> Result<(), RenderError> {
    let mut n = 0;
    rows.for_each(|_, row| {
        let [code, severity, table, index, seen, why, fix] =
            &row.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>()[..]
        else {
            return Ok(());
        };
        let of = if index.is_empty() { table } else { index };
        n += 1;
        writeln!(out, "{}", wrapped(&format!("{code} {severity}: {of}: {seen}"), width))?;
        Ok(writeln!(out, "{}\n  fix: {fix}", wrapped(&format!("  why: {why}"), width))?)
    })?;
    Ok(writeln!(out, "{}", in_all(n, "finding").unwrap_or_else(|| "nothing found".into()))?)
}

/// `(2 findings)`; `None` if there are none.
fn in_all(n: usize, what: &str) -> Option<String> {
    (n > 0).then(|| format!("({})", counted(n, what)))
}

/// Writes ADVISE's proposals: SQL to be copied, followed by its effect.
fn proposals(out: &mut dyn Write, rows: ResultRows<'_>) -> Result<(), RenderError> {
    let mut n = 0;
    rows.for_each(|_, row| {
        let [serves, reads, reads_then, writes, writes_then, sql] =
            &row.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>()[..]
        else {
            return Ok(());
        };
        n += 1;
        let queries = if serves.contains(',') { "queries" } else { "query" };
        writeln!(
            out,
            "{n}. {sql}\n   serves {queries} {serves}: all read {}, before {reads}",
            if reads_then == "1" {
                "1 row or entry".to_owned()
            } else {
                format!("{reads_then} rows and entries")
            }
        )?;
        let entries = if writes_then == "1" { "entry" } else { "entries" };
        let before = if writes == writes_then { "as before".to_owned() } else { format!("before {writes}") };
        Ok(writeln!(out, "   each row is written as {writes_then} {entries}, {before}")?)
    })?;
    Ok(writeln!(out, "{}", in_all(n, "proposal").unwrap_or_else(|| "nothing would help".into()))?)
}

/// Wraps a line between words to `width`; continuation lines are indented.
fn wrapped(line: &str, width: Option<usize>) -> String {
    let Some(width) = width.filter(|width| line.width() > *width) else { return line.to_owned() };
    let (mut out, mut at) = (String::new(), 0);
    for word in line.split_inclusive(' ') {
        if at > 0 && at + word.trim_end().width() > width {
            out.truncate(out.trim_end().len());
            out.push_str("\n       ");
            at = 7;
        }
        out.push_str(word);
        at += word.width();
    }
    out
}

fn csv(out: &mut dyn Write, mut rows: ResultRows<'_>) -> Result<(), RenderError> {
    let first = rows.first()?;
    csv_line(out, rows.columns.iter().map(|column| Some(column.name.as_str())))?;
    let batches = &mut first.map(Ok).into_iter().chain(rows.batches);
    ResultRows { batches, ..rows }.for_each(|_, row| Ok(csv_line(out, row.iter().map(Option::as_deref))?))
}

/// One line of RFC 4180. Written here because the `csv` crate cannot tell NULL (nothing) from the
/// empty string (`""`).
fn csv_line<'a>(out: &mut dyn Write, cells: impl Iterator<Item = Option<&'a str>>) -> io::Result<()> {
    for (i, cell) in cells.enumerate() {
        if i > 0 {
            out.write_all(b",")?;
        }
        match cell {
            None => {}
            Some(text) if text.is_empty() || text.contains([',', '"', '\n', '\r']) => {
                write!(out, "\"{}\"", text.replace('"', "\"\""))?;
            }
            Some(text) => out.write_all(text.as_bytes())?,
        }
    }
    out.write_all(b"\n")
}

fn markdown(out: &mut dyn Write, mut rows: ResultRows<'_>, null: &str) -> Result<(), RenderError> {
    let (first, columns) = (rows.first()?, rows.columns);
    markdown_line(out, columns.iter().map(|column| markdown_cell(&column.name)))?;
    // The rule under the header shows the alignment.
    let rule = |is_numeric| if is_numeric { "---:" } else { "---" }.to_owned();
    match &first {
        Some(batch) => {
            markdown_line(out, batch.schema().fields().iter().map(|f| rule(f.data_type().is_numeric())))?;
        }
        None => markdown_line(out, columns.iter().map(|_| rule(false)))?,
    }
    let batches = &mut first.map(Ok).into_iter().chain(rows.batches);
    let written = ResultRows { columns, batches }.for_each(|_, row| {
        let cells = row.iter().map(|cell| markdown_cell(cell.as_deref().unwrap_or(null)));
        Ok(markdown_line(out, cells)?)
    });
    // A blank line ends the table, even if a failure has cut it short.
    writeln!(out)?;
    written
}

fn markdown_line(out: &mut dyn Write, cells: impl Iterator<Item = String>) -> io::Result<()> {
    out.write_all(b"|")?;
    for cell in cells {
        write!(out, " {cell} |")?;
    }
    out.write_all(b"\n")
}

fn markdown_cell(text: &str) -> String {
    text.replace('\\', "\\\\").replace('|', "\\|").replace("\r\n", "<br>").replace(['\n', '\r'], "<br>")
}

#[cfg(test)]
mod tests {
    use super::super::testing::{columns, orders};
    use super::*;

    fn written(render: impl Fn(&mut dyn Write, ResultRows<'_>) -> Result<(), RenderError>) -> String {
        let (columns, batch) = orders();
        let mut out = Vec::new();
        render(&mut out, ResultRows { columns: &columns, batches: &mut std::iter::once(Ok(batch)) }).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn sentences_end_at_the_width_of_the_screen() {
        let line = "  why: a salt is there to spread writes";
        assert_eq!(wrapped(line, None), line);
        assert_eq!(wrapped(line, Some(39)), line);
        assert_eq!(wrapped(line, Some(20)), "  why: a salt is\n       there to\n       spread writes");
        assert_eq!(wrapped("unbreakable", Some(5)), "unbreakable");
    }

    #[test]
    fn csv_tells_null_from_empty() {
        assert_eq!(
            written(csv),
            "order_id,note\n\
             7,paid\n\
             123456,\"a, \"\"b\"\"\nsecond line\"\n\
             ,\"\"\n\
             -1,\n"
        );
    }

    #[test]
    fn markdown_escapes_what_would_break_the_table() {
        assert_eq!(
            written(|out, rows| markdown(out, rows, "NULL")),
            "| order_id | note |\n\
             | ---: | --- |\n\
             | 7 | paid |\n\
             | 123456 | a, \"b\"<br>second line |\n\
             | NULL |  |\n\
             | -1 | NULL |\n\n"
        );
        assert_eq!(markdown_cell("a|b\\"), "a\\|b\\\\");
    }

    #[test]
    fn a_plan_is_known_by_its_statement_and_its_column() {
        assert!(is_plan("EXPLAIN", &columns(&[("plan", "VARCHAR")])));
        assert!(!is_plan("SELECT", &columns(&[("plan", "VARCHAR")])));
        assert!(!is_plan("EXPLAIN", &columns(&[("a", "VARCHAR"), ("plan", "VARCHAR")])));
    }

    #[test]
    fn a_statement_that_fails_before_its_first_row_leaves_no_header_and_one_that_fails_later_a_whole_table() {
        let (columns, batch) = orders();
        let (failure, empty) = (|| Err(Error::division_by_zero()), batch.slice(0, 0));
        type Render = fn(&mut dyn Write, ResultRows<'_>) -> Result<(), RenderError>;
        let written = |render: Render, batches: Vec<Result<RecordBatch>>| {
            let mut out = Vec::new();
            let rows = ResultRows { columns: &columns, batches: &mut batches.into_iter() };
            assert!(matches!(render(&mut out, rows), Err(RenderError::Query(_))));
            String::from_utf8(out).unwrap()
        };
        let in_markdown: Render = |out, rows| markdown(out, rows, "NULL");
        for render in [csv, in_markdown] {
            assert_eq!(written(render, vec![Ok(empty.clone()), failure()]), "");
        }
        assert_eq!(
            written(in_markdown, vec![Ok(batch.slice(0, 1)), failure()]),
            "| order_id | note |\n| ---: | --- |\n| 7 | paid |\n\n"
        );
    }

    #[test]
    fn an_error_on_the_way_comes_through() {
        let mut batches = std::iter::once(Err(Error::corrupt("bad entry")));
        let rows = ResultRows { columns: &[], batches: &mut batches };
        assert!(matches!(drain(rows), Err(RenderError::Query(e)) if e.what() == "bad entry"));
    }
}
