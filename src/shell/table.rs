//! Rows → the aligned table that psql users know.
//!
//! ```text
//!  order_id | note
//! ----------+-------
//!         7 | two  +
//!           | lines
//!      NULL |
//! (2 rows)
//! ```
//!
//! Widths are those of the first [`LOOK_AHEAD_ROWS`] rows; after these, rows are written as they come
//! and a wider cell pushes its line out. A `+` says that the cell goes on below. A table that is wider than
//! the terminal is written with a line for each column of a row (see `Table::write_expanded`).

use std::io::{self, Write};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::render::{Expanded, RenderError, ResultRows, Style, TextRow};
use crate::error::counted;

/// Rows held back to find the column widths (count).
const LOOK_AHEAD_ROWS: usize = 1_000;
/// The header, the rule below it, the count of the rows and the empty line.
const LINES_AROUND_ROWS: usize = 4;
/// Columns between tab stops.
const TAB_WIDTH: usize = 8;

/// Writes the rows, their count and an empty line.
pub fn write(out: &mut dyn Write, rows: ResultRows<'_>, style: Style) -> Result<(), RenderError> {
    let titles = rows.columns.iter().map(|column| column.name.clone()).collect();
    let mut table = Table::new(out, titles, style);
    rows.for_each(|schema, row| {
        let numeric = || schema.fields().iter().map(|f| f.data_type().is_numeric()).collect();
        Ok(table.add(row, numeric)?)
    })?;
    Ok(table.finish()?)
}

/// A cell as shown: its lines, with control characters escaped, and whether it is NULL.
struct Cell {
    lines: Vec<String>,
    null: bool,
}

impl Cell {
    fn new(text: Option<&str>, style: &Style) -> Cell {
        let lines = text.unwrap_or(style.null()).split('\n').map(visible);
        let lines = match style.cell_width_max {
            Some(width) => lines.map(|line| shortened(line, width)).collect(),
            None => lines.collect(),
        };
        Cell { lines, null: text.is_none() }
    }

    /// A line of the cell; NULL is dimmed.
    fn shown(&self, line: &str, style: &Style) -> String {
        if self.null && style.color { format!("\x1b[2m{line}\x1b[0m") } else { line.to_owned() }
    }

    fn width(&self) -> usize {
        self.lines.iter().map(|line| line.width()).max().unwrap_or(0)
    }
}

struct Column {
    width: usize,
    right: bool,
}

struct Table<'a> {
    out: &'a mut dyn Write,
    style: Style,
    titles: Vec<String>,
    columns: Vec<Column>,
    /// Rows held back; `None` once the first line has been written.
    held: Option<Vec<TextRow>>,
    /// A line for each column of a row.
    expanded: bool,
    count: u64,
    written: u64,
}

impl<'a> Table<'a> {
    fn new(out: &'a mut dyn Write, titles: Vec<String>, style: Style) -> Self {
        let width = |title: &String| Cell::new(Some(title), &style).width();
        let columns = titles.iter().map(|title| Column { width: width(title), right: false }).collect();
        let expanded = style.expanded == Expanded::On;
        let held = (!expanded).then(Vec::new);
        Table { out, style, titles, columns, held, expanded, count: 0, written: 0 }
    }

    /// Adds a row; `numeric` says which columns are numeric, and is called for the first row.
    fn add(&mut self, row: TextRow, numeric: impl Fn() -> Vec<bool>) -> io::Result<()> {
        if self.count == 0 {
            for (column, numeric) in self.columns.iter_mut().zip(numeric()) {
                column.right = numeric;
            }
        }
        self.count += 1;
        let Some(held) = &mut self.held else { return self.write_row(&row) };
        for (column, cell) in self.columns.iter_mut().zip(cells(&row, &self.style)) {
            column.width = column.width.max(cell.width());
        }
        held.push(row);
        if held.len() == LOOK_AHEAD_ROWS { self.write_held() } else { Ok(()) }
    }

    fn finish(mut self) -> io::Result<()> {
        self.write_held()?;
        writeln!(self.out, "({})\n", counted(self.count, "row"))
    }

    /// Writes the header and the rows held back, once.
    fn write_held(&mut self) -> io::Result<()> {
        let Some(held) = self.held.take() else { return Ok(()) };
        self.expanded = self.style.expanded == Expanded::Auto && self.would_wrap(&held);
        if !self.expanded {
            let titles: Vec<Cell> =
                self.titles.iter().map(|title| Cell::new(Some(title), &self.style)).collect();
            self.write_line(&titles)?;
            writeln!(self.out, "{}", self.rule())?;
        }
        held.iter().try_for_each(|row| self.write_row(row))
    }

    /// Is the table too wide for the terminal, but not so long that it goes through the pager?
    fn would_wrap(&self, rows: &[TextRow]) -> bool {
        let Some(screen) = self.style.screen else { return false };
        let lines =
            || rows.iter().map(|row| height(&cells(row, &self.style))).sum::<usize>() + LINES_AROUND_ROWS;
        self.rule().len() > screen.columns && lines() <= screen.rows
    }

    fn rule(&self) -> String {
        let rule: Vec<String> = self.columns.iter().map(|column| "-".repeat(column.width + 2)).collect();
        rule.join("+")
    }

    fn write_row(&mut self, row: &TextRow) -> io::Result<()> {
        self.written += 1;
        if self.expanded { self.write_expanded(row) } else { self.write_line(&cells(row, &self.style)) }
    }

    /// Writes a line for each column.
    ///
    /// ```text
    /// -[ 1 ]---+--------
    /// order_id | 123456
    /// note     | two
    ///          | lines
    /// (1 row)
    /// ```
    fn write_expanded(&mut self, row: &TextRow) -> io::Result<()> {
        let style = Style { cell_width_max: None, ..self.style.clone() };
        let titles: Vec<String> = self.titles.iter().map(|title| visible(title)).collect();
        let width = titles.iter().map(|title| title.width()).max().unwrap_or(0);
        writeln!(self.out, "{:-<width$}-+--------", format!("-[ {} ]", self.written))?;
        for (title, cell) in titles.iter().zip(row) {
            let cell = Cell::new(cell.as_deref(), &style);
            let mut title = title.as_str();
            for line in &cell.lines {
                let padding = " ".repeat(width - title.width());
                let line = format!("{title}{padding} | {}", cell.shown(line, &style));
                writeln!(self.out, "{}", line.trim_end())?;
                title = "";
            }
        }
        Ok(())
    }

    /// Writes a row of the table.
    fn write_line(&mut self, cells: &[Cell]) -> io::Result<()> {
        (0..height(cells)).try_for_each(|nth| {
            let line = self.line(cells, nth);
            writeln!(self.out, "{}", line.trim_end())
        })
    }

    /// The `nth` line of a row.
    fn line(&self, cells: &[Cell], nth: usize) -> String {
        let mut line = String::new();
        for (i, (column, cell)) in self.columns.iter().zip(cells).enumerate() {
            let text = cell.lines.get(nth).map_or("", String::as_str);
            let padding = " ".repeat(column.width.saturating_sub(text.width()));
            let shown = cell.shown(text, &self.style);
            line.push_str(if i == 0 { " " } else { "| " });
            let (before, after) = if column.right { (padding.as_str(), "") } else { ("", padding.as_str()) };
            line.extend([before, &shown, after]);
            line.push(if nth + 1 < cell.lines.len() { '+' } else { ' ' });
        }
        line
    }
}

/// The cells of a row of a table.
fn cells(row: &TextRow, style: &Style) -> Vec<Cell> {
    row.iter().map(|cell| Cell::new(cell.as_deref(), style)).collect()
}

/// Lines that a row of a table has.
fn height(cells: &[Cell]) -> usize {
    cells.iter().map(|cell| cell.lines.len()).max().unwrap_or(1)
}

/// `text` with tabs expanded and other control characters escaped: a cell must not move the cursor or change
/// colours.
fn visible(text: &str) -> String {
    if !text.contains(char::is_control) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut column = 0;
    for c in text.chars() {
        let from = out.len();
        match c {
            '\t' => out.push_str(&" ".repeat(TAB_WIDTH - column % TAB_WIDTH)),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
        column += out[from..].width();
    }
    out
}

/// `text` cut to `width` columns; the last one is `…` if it was cut.
fn shortened(text: String, width: usize) -> String {
    if text.width() <= width {
        return text;
    }
    let mut used = 0;
    let kept = text.chars().take_while(|c| {
        used += c.width().unwrap_or(0);
        used < width
    });
    kept.chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, StringArray};
    use arrow::record_batch::RecordBatch;

    use super::super::pager::Screen;
    use super::super::testing::{columns, orders};
    use super::*;
    use crate::engine::OutputColumn;

    fn shown(columns: &[OutputColumn], batches: Vec<RecordBatch>, style: Style) -> String {
        let mut out = Vec::new();
        write(&mut out, ResultRows { columns, batches: &mut batches.into_iter().map(Ok) }, style).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn texts(cells: &[&str]) -> RecordBatch {
        let array: ArrayRef = Arc::new(StringArray::from(cells.to_vec()));
        RecordBatch::try_from_iter([("t", array)]).unwrap()
    }

    #[test]
    fn numbers_stand_right_and_cells_may_have_lines() {
        let (columns, batch) = orders();
        let lines = [
            " order_id | note",
            "----------+-------------",
            "        7 | paid",
            "   123456 | a, \"b\"     +",
            "          | second line",
            "     NULL |",
            "       -1 | NULL",
            "(4 rows)",
            "",
            "",
        ];
        assert_eq!(shown(&columns, vec![batch], Style::default()), lines.join("\n"));
    }

    #[test]
    fn expanded_rows_have_a_line_for_each_column() {
        let (columns, batch) = orders();
        let lines = [
            "-[ 1 ]---+--------",
            "order_id | 123456",
            "note     | a, \"b\"",
            "         | second line",
            "-[ 2 ]---+--------",
            "order_id | NULL",
            "note     |",
            "(2 rows)",
            "",
            "",
        ];
        let style = Style { cell_width_max: Some(4), expanded: Expanded::On, ..Style::default() };
        assert_eq!(shown(&columns, vec![batch.slice(1, 2)], style), lines.join("\n"));
    }

    #[test]
    fn a_table_wider_than_the_screen_is_expanded_unless_the_pager_shows_it() {
        let (columns, batch) = orders();
        let first = |rows, width, expanded| {
            let screen = Some(Screen { rows, columns: width });
            let style = Style { expanded, screen, ..Style::default() };
            shown(&columns, vec![batch.clone()], style).starts_with("-[ 1 ]")
        };
        // It has 24 columns and 9 lines.
        assert!(!first(9, 24, Expanded::Auto));
        assert!(first(9, 23, Expanded::Auto));
        assert!(!first(8, 23, Expanded::Auto));
        assert!(!first(9, 23, Expanded::Off));
        assert!(first(9, 24, Expanded::On));
    }

    #[test]
    fn an_expanded_row_is_not_cut() {
        let screen = Some(Screen { rows: 24, columns: 4 });
        let style = Style { cell_width_max: Some(4), screen, ..Style::default() };
        assert_eq!(
            shown(&columns(&[("t", "VARCHAR")]), vec![texts(&["abcdefgh"])], style),
            "-[ 1 ]-+--------\nt | abcdefgh\n(1 row)\n\n"
        );
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let expected = " t\n------\n 淘宝\n ab\n é\n(3 rows)\n\n";
        assert_eq!(
            shown(&columns(&[("t", "VARCHAR")]), vec![texts(&["淘宝", "ab", "é"])], Style::default()),
            expected
        );
    }

    #[test]
    fn nothing_is_still_a_table() {
        assert_eq!(
            shown(&columns(&[("a", "BIGINT"), ("b", "BIGINT")]), vec![], Style::default()),
            " a | b\n---+---\n(0 rows)\n\n"
        );
    }

    #[test]
    fn null_is_dimmed_on_a_screen() {
        let array: ArrayRef = Arc::new(Int64Array::from(vec![None]));
        let batch = RecordBatch::try_from_iter([("n", array)]).unwrap();
        let style = Style { color: true, ..Style::default() };
        assert_eq!(
            shown(&columns(&[("n", "BIGINT")]), vec![batch], style),
            " n\n------\n \x1b[2mNULL\x1b[0m\n(1 row)\n\n".replace(" n\n", "    n\n")
        );
    }

    #[test]
    fn null_may_be_shown_as_another_text() {
        let (columns, batch) = orders();
        let style = Style { null: Some("-".into()), ..Style::default() };
        assert!(shown(&columns, vec![batch], style).ends_with("\n        - |\n       -1 | -\n(4 rows)\n\n"));
    }

    #[test]
    fn cells_wider_than_the_screen_are_cut() {
        let style = Style { cell_width_max: Some(4), ..Style::default() };
        assert_eq!(
            shown(&columns(&[("t", "VARCHAR")]), vec![texts(&["abcd", "abcde", "淘宝网"])], style),
            " t\n------\n abcd\n abc…\n 淘…\n(3 rows)\n\n"
        );
    }

    #[test]
    fn control_characters_cannot_reach_the_terminal() {
        assert_eq!(visible("a\tb\x1b[31m\r\u{7f}"), "a       b\\x1b[31m\\r\\x7f");
    }

    #[test]
    fn rows_after_the_look_ahead_stream_with_the_widths_found() {
        let mut cells = vec!["ab"; LOOK_AHEAD_ROWS];
        cells.push("wider");
        let shown = shown(&columns(&[("t", "VARCHAR")]), vec![texts(&cells)], Style::default());
        assert!(shown.starts_with(" t\n----\n ab\n"));
        assert!(shown.ends_with(" ab\n wider\n(1001 rows)\n\n"));
    }
}
