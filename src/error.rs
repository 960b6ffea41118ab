//! The error type of this crate.
//!
//! An [`Error`] says *what* went wrong, *why*, and *how to fix it*, and points into the SQL when it can. Its
//! [`Kind`] tells the caller what to do next; its SQLSTATE tells programs the same.
//!
//! ```text
//! error: rowkey part "id" has no end
//!   why: it is variable-width and "day" follows it
//!  hint: write lpad(id, n), put a delimiter literal after it, or move it last
//! LINE 2:   PRIMARY KEY (cast(id AS varchar), day)
//!                        ^^^^^^^^^^^^^^^^^^^
//! ```

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use unicode_width::UnicodeWidthChar;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What the caller should do next (after SlateDB RFC 7: few kinds, each a different next step).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Fix the statement or the data in it.
    Invalid,
    /// Another transaction changed the same data: retry the transaction.
    Conflict,
    /// A resource is busy, full or missing: retry later, or free it.
    Unavailable,
    /// Bytes on disk are not what was written: stop, and run CHECK DATABASE.
    Corrupt,
    /// Valid SQL that this engine does not support.
    Unsupported,
    /// The user cancelled the statement, or its timeout passed.
    Cancelled,
    /// A bug in this crate: report it.
    Internal,
}

impl Kind {
    /// Lower-case name, as in `jsonl` output.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Invalid => "invalid",
            Kind::Conflict => "conflict",
            Kind::Unavailable => "unavailable",
            Kind::Corrupt => "corrupt",
            Kind::Unsupported => "unsupported",
            Kind::Cancelled => "cancelled",
            Kind::Internal => "internal",
        }
    }

    fn default_sqlstate(self) -> &'static str {
        match self {
            Kind::Invalid => "42000",
            Kind::Conflict => "40001",
            Kind::Unavailable => "57P03",
            Kind::Corrupt => "XX001",
            Kind::Unsupported => sqlstate::UNSUPPORTED,
            Kind::Cancelled => "57014",
            Kind::Internal => "XX000",
        }
    }
}

/// SQLSTATE codes this crate raises (PostgreSQL, Appendix A).
pub mod sqlstate {
    /// Malformed SQL.
    pub const SYNTAX: &str = "42601";
    /// No such table or index.
    pub const UNDEFINED_TABLE: &str = "42P01";
    /// No such column.
    pub const UNDEFINED_COLUMN: &str = "42703";
    /// A table, index or view of that name exists already.
    pub const DUPLICATE_TABLE: &str = "42P07";
    /// Two columns of the same name.
    pub const DUPLICATE_COLUMN: &str = "42701";
    /// An aggregate where none is allowed, or beside it a column that is not grouped.
    pub const GROUPING: &str = "42803";
    /// A table definition that cannot work, such as an ambiguous key layout.
    pub const INVALID_TABLE_DEFINITION: &str = "42P16";
    /// Operands of incompatible types.
    pub const DATATYPE_MISMATCH: &str = "42804";
    /// A text that is no value of the type.
    pub const INVALID_TEXT: &str = "22P02";
    /// A number outside the range of its type.
    pub const OUT_OF_RANGE: &str = "22003";
    /// A value wider than its column or key part.
    pub const TOO_LONG: &str = "22001";
    /// A value that a key part cannot hold.
    pub const KEY_RULE: &str = "22023";
    /// NULL in a NOT NULL column.
    pub const NOT_NULL: &str = "23502";
    /// A rowkey or a key of a UNIQUE index that exists already.
    pub const UNIQUE: &str = "23505";
    /// A foreign key that is violated.
    pub const FOREIGN_KEY: &str = "23503";
    /// A CHECK constraint that is violated.
    pub const CHECK: &str = "23514";
    /// A write in a read-only transaction or database.
    pub const READ_ONLY: &str = "25006";
    /// More memory than the statement may use.
    pub const OUT_OF_MEMORY: &str = "53200";
    /// A limit of the store, such as the longest key, is exceeded.
    pub const LIMIT: &str = "54000";
    /// A file that cannot be read or written.
    pub const IO: &str = "58030";
    /// No such setting.
    pub const UNDEFINED_OBJECT: &str = "42704";
    /// The object is in a state that does not allow the statement.
    pub const OBJECT_STATE: &str = "55000";
    /// A statement that is not allowed on this kind of object.
    pub const WRONG_OBJECT: &str = "42809";
    /// No row where one is asked for.
    pub const NO_DATA: &str = "02000";
    /// Another number of parameters than the statement has.
    pub const PROTOCOL: &str = "08P01";
    /// What is not supported.
    pub const UNSUPPORTED: &str = "0A000";
    /// More rows than one where one is asked for, or one row twice.
    pub const CARDINALITY: &str = "21000";
    /// NULL where a function takes none.
    pub const NULL_NOT_ALLOWED: &str = "22004";
    /// A text that is no time of the format.
    pub const INVALID_DATETIME: &str = "22007";
    /// A time out of range.
    pub const DATETIME_OVERFLOW: &str = "22008";
    /// An identity column has used up its numbers.
    pub const SEQUENCE_LIMIT: &str = "2200H";
    /// A substring of negative length.
    pub const SUBSTRING: &str = "22011";
    /// A number is divided by zero.
    pub const DIVISION_BY_ZERO: &str = "22012";
    /// `ntile` into no groups.
    pub const NTILE: &str = "22014";
    /// An INTERVAL out of range.
    pub const INTERVAL_OVERFLOW: &str = "22015";
    /// `nth_value` of no row.
    pub const NTH_VALUE: &str = "22016";
    /// An ESCAPE that is not one character.
    pub const ESCAPE_CHARACTER: &str = "22019";
    /// A text that is no regular expression.
    pub const REGEX: &str = "2201B";
    /// A root or power that does not exist.
    pub const POWER: &str = "2201F";
    /// A LIMIT that is no number of rows.
    pub const LIMIT_COUNT: &str = "2201W";
    /// Bytes that are not UTF-8.
    pub const CHARACTER_ENCODING: &str = "22021";
    /// An argument or option that makes no sense.
    pub const INVALID_PARAMETER: &str = "22023";
    /// A pattern that ends with its escape character.
    pub const ESCAPE_SEQUENCE: &str = "22025";
    /// A text that is no JSON.
    pub const INVALID_JSON: &str = "22032";
    /// A statement that cannot be part of a transaction.
    pub const IN_TRANSACTION: &str = "25001";
    /// A statement that needs a transaction.
    pub const NO_TRANSACTION: &str = "25P01";
    /// No such prepared statement.
    pub const UNDEFINED_PREPARED: &str = "26000";
    /// Another object depends on what would be dropped or changed.
    pub const DEPENDENT: &str = "2BP01";
    /// No such savepoint.
    pub const UNDEFINED_SAVEPOINT: &str = "3B001";
    /// A text that cannot be a name.
    pub const INVALID_NAME: &str = "42602";
    /// Several columns have the name.
    pub const AMBIGUOUS_COLUMN: &str = "42702";
    /// A constraint or family of that name exists already.
    pub const DUPLICATE_OBJECT: &str = "42710";
    /// Two relations of a query have the name.
    pub const DUPLICATE_ALIAS: &str = "42712";
    /// A cast between types that have none.
    pub const CANNOT_CAST: &str = "42846";
    /// No function or operator of that name takes such arguments.
    pub const UNDEFINED_FUNCTION: &str = "42883";
    /// A value for a column that takes generated ones only.
    pub const GENERATED_ALWAYS: &str = "428C9";
    /// A parameter without a value.
    pub const UNDEFINED_PARAMETER: &str = "42P02";
    /// A prepared statement of that name exists already.
    pub const DUPLICATE_PREPARED: &str = "42P05";
    /// A column that cannot be named here.
    pub const INVALID_COLUMN_REFERENCE: &str = "42P10";
    /// A foreign key that could not be kept.
    pub const INVALID_FOREIGN_KEY: &str = "42830";
    /// A window, or a window function, where none can be.
    pub const WINDOWING: &str = "42P20";
}

/// A place in the SQL text: 1-based line and column, and length, all in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct Span {
    /// 1-based line.
    pub line: u32,
    /// 1-based column, in characters.
    pub column: u32,
    /// Length in characters; at least 1 when shown.
    pub len: u32,
}

/// What went wrong, why, and how to fix it.
#[derive(Debug)]
pub struct Error(Box<Detail>);

#[derive(Clone, Debug)]
struct Detail {
    kind: Kind,
    sqlstate: &'static str,
    what: String,
    why: Option<String>,
    hint: Option<String>,
    span: Option<Span>,
    about: About,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

/// What an error is about in a statement and its rows, so that the caller can point at it.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    /// The wrong text literal.
    pub literal: Option<String>,
    /// The number of rows that the statement, or its file, gives before the one that is refused.
    pub row: Option<u64>,
    /// The name of the column whose value is refused.
    pub column: Option<String>,
    /// The rowkey of the row that is refused.
    pub rowkey: Option<Vec<u8>>,
}

/// How many things there are, in words: `1 row`, `7 rows`, `1,000 entries`.
pub fn counted(n: impl fmt::Display, thing: &str) -> String {
    let n = n.to_string();
    match thing.strip_suffix('y') {
        _ if n == "1" => format!("1 {thing}"),
        Some(stem) => format!("{n} {stem}ies"),
        None => format!("{n} {thing}s"),
    }
}

/// Bytes of a part of a message, at most: a name in a file may be very long.
const PART_BYTES_MAX: usize = 600;

/// Width (characters) of a line of SQL in a message if the terminal's width is unknown.
pub const LINE_WIDTH: usize = 120;

/// A line of SQL is never cut to less than this.
const LINE_WIDTH_MIN: usize = 30;

/// The text, with its middle cut out if it is too long.
fn within_limit(text: String) -> String {
    if text.len() <= PART_BYTES_MAX {
        return text;
    }
    let head = text.floor_char_boundary(PART_BYTES_MAX / 2);
    let tail = text.ceil_char_boundary(text.len() - PART_BYTES_MAX / 3);
    format!("{}[...]{}", &text[..head], &text[tail..])
}

impl Error {
    /// An error of `kind` with the message `what` and the kind's default SQLSTATE.
    pub fn new(kind: Kind, what: impl Into<String>) -> Self {
        Error(Box::new(Detail {
            kind,
            sqlstate: kind.default_sqlstate(),
            what: within_limit(what.into()),
            why: None,
            hint: None,
            span: None,
            about: About::default(),
            source: None,
        }))
    }

    /// An error of the statement or its data ([`Kind::Invalid`]).
    pub fn invalid(what: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, what)
    }

    /// An error of damaged data ([`Kind::Corrupt`]).
    pub fn corrupt(what: impl Into<String>) -> Self {
        Self::new(Kind::Corrupt, what)
    }

    /// An error of data that only a backup can bring back ([`Kind::Corrupt`]).
    pub fn damaged(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::corrupt(what).why(why).hint("restore the database from a backup; check the disk")
    }

    /// An error of SQL that is not supported ([`Kind::Unsupported`]).
    pub fn unsupported(what: impl Into<String>) -> Self {
        Self::new(Kind::Unsupported, what)
    }

    /// The error for division by zero, for all numeric types.
    pub(crate) fn division_by_zero() -> Self {
        Error::invalid("division by zero")
            .hint("x / nullif(y, 0) is NULL then")
            .state(sqlstate::DIVISION_BY_ZERO)
    }

    /// An error of this crate itself ([`Kind::Internal`]).
    pub fn internal(what: impl Into<String>) -> Self {
        Self::new(Kind::Internal, what)
    }

    /// A copy, which shares the cause.
    pub fn copied(&self) -> Self {
        Error(self.0.clone())
    }

    /// Adds the reason.
    #[must_use]
    pub fn why(mut self, why: impl Into<String>) -> Self {
        self.0.why = Some(within_limit(why.into()));
        self
    }

    /// Puts a place, such as a file name, in front of the message.
    #[must_use]
    pub fn in_front(mut self, place: &str) -> Self {
        self.0.what = within_limit(format!("{place}{}", self.0.what));
        self
    }

    /// Adds the plan that ran into a limit to the reason, uncut, because its ranges are what the user needs
    /// to see.
    #[must_use]
    pub fn plan(mut self, plan: &str) -> Self {
        let reason = self.0.why.take().map_or_else(String::new, |why| why + "; ");
        self.0.why = Some(format!("{reason}the plan is {plan}"));
        self
    }

    /// Adds the fix.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(within_limit(hint.into()));
        self
    }

    /// Points at a place in the SQL, unless the error has a place already.
    #[must_use]
    pub fn at(mut self, span: impl Into<Option<Span>>) -> Self {
        if self.0.span.is_none() {
            self.0.span = span.into();
        }
        self
    }

    /// Removes the place: it refers to a text that is not the user's.
    #[must_use]
    pub fn unplaced(mut self) -> Self {
        self.0.span = None;
        self
    }

    /// Names the wrong text literal, so that the caller can point at it in the statement.
    #[must_use]
    pub fn about(mut self, literal: impl Into<String>) -> Self {
        self.0.about.literal = Some(literal.into());
        self
    }

    /// Says which row is refused, unless that is known already: `row` others of the statement are before it.
    #[must_use]
    pub(crate) fn of_row(mut self, row: u64) -> Self {
        self.0.about.row.get_or_insert(row);
        self
    }

    /// Counts the row that is refused anew: what was `row` becomes `number(row)`.
    #[must_use]
    pub(crate) fn renumbered(mut self, number: impl FnOnce(u64) -> u64) -> Self {
        self.0.about.row = self.0.about.row.map(number);
        self
    }

    /// Names the column whose value is refused, unless that is known already.
    #[must_use]
    pub(crate) fn of_column(mut self, name: &str) -> Self {
        self.0.about.column.get_or_insert_with(|| name.to_owned());
        self
    }

    /// Says which row is refused, unless that is known already.
    #[must_use]
    pub(crate) fn of_rowkey(mut self, rowkey: &[u8]) -> Self {
        self.0.about.rowkey.get_or_insert_with(|| rowkey.to_vec());
        self
    }

    /// What it is about, as far as that is known.
    pub(crate) fn subject(&self) -> &About {
        &self.0.about
    }

    /// Sets the SQLSTATE, from [`sqlstate`].
    #[must_use]
    pub fn state(mut self, sqlstate: &'static str) -> Self {
        self.0.sqlstate = sqlstate;
        self
    }

    /// Chains the error that caused this one.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into().into());
        self
    }

    /// The kind: what to do next.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Five-character SQLSTATE.
    pub fn sqlstate(&self) -> &'static str {
        self.0.sqlstate
    }

    /// What went wrong, in one line.
    pub fn what(&self) -> &str {
        &self.0.what
    }

    /// The reason, if it adds something.
    pub fn reason(&self) -> Option<&str> {
        self.0.why.as_deref()
    }

    /// How to fix it, if known.
    pub fn fix(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The place in the SQL, if known.
    pub fn span(&self) -> Option<Span> {
        self.0.span
    }

    /// Moves the place down by `lines`, for a statement that starts at line `lines + 1` of a script.
    #[must_use]
    pub fn shifted(mut self, lines: u32) -> Self {
        if let Some(span) = &mut self.0.span {
            span.line += lines;
        }
        self
    }

    /// The whole message, with a caret under the place in `sql`; no newline at the end.
    pub fn render(&self, sql: &str) -> String {
        self.render_at(sql, 1, LINE_WIDTH)
    }

    /// [`Error::render`] for a statement that starts at line `first_line` (1-based) of a script: `LINE`
    /// counts from the top of the script. The line of the place is cut to `width` characters.
    pub fn render_at(&self, sql: &str, first_line: u32, width: usize) -> String {
        let mut out = self.to_string();
        let Some(span) = self.0.span else { return out };
        let Some(line) = sql.lines().nth(span.line.saturating_sub(1) as usize) else {
            return out;
        };
        let label = format!("LINE {}: ", span.line + first_line.saturating_sub(1));
        // A long line is cut around the place, so that the caret stays below it.
        let mut shown: Vec<char> = line.chars().collect();
        let (mut column, room) = (span.column.saturating_sub(1) as usize, width.saturating_sub(label.len()));
        if room >= LINE_WIDTH_MIN && shown.len() > room {
            let from = column.saturating_sub(room / 2).min(shown.len() - room);
            let is_cut = from + room < shown.len();
            shown = shown[from..from + room].to_vec();
            column = column.saturating_sub(from);
            if from > 0 {
                shown[0] = '…';
            }
            if is_cut {
                shown[room - 1] = '…';
            }
        }
        // Terminals give some characters two cells, or none.
        let cells = |c: &char| if *c == '\t' { "\t".to_owned() } else { " ".repeat(c.width().unwrap_or(0)) };
        let before: String = shown.iter().take(column).map(cells).collect();
        let indent = " ".repeat(label.len()) + &before;
        let under = shown.iter().skip(column).take(span.len.max(1) as usize);
        let carets = "^".repeat(under.map(|c| c.width().unwrap_or(1)).sum::<usize>().max(1));
        let shown: String = shown.into_iter().collect();
        out.push_str(&format!("\n{label}{shown}\n{indent}{carets}"));
        out
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.0.what)?;
        if let Some(why) = &self.0.why {
            write!(f, "\n  why: {why}")?;
        }
        if let Some(hint) = &self.0.hint {
            write!(f, "\n hint: {hint}")?;
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|e| e as &(dyn StdError + 'static))
    }
}

/// One of ours that went through a library of files comes out as it was.
impl From<std::io::Error> for Error {
    fn from(e: std::io::Error) -> Self {
        e.downcast()
            .unwrap_or_else(|e| Error::new(Kind::Unavailable, e.to_string()).state(sqlstate::IO).caused_by(e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_no_plural() {
        assert_eq!(
            [counted(1, "row"), counted(0, "row"), counted(1, "entry"), counted("1,000", "entry")],
            ["1 row", "0 rows", "1 entry", "1,000 entries"]
        );
    }

    #[test]
    fn a_part_that_is_too_long_loses_its_middle() {
        let name = format!("<{}>", "é".repeat(1_000_000));
        let told = Error::invalid(format!("there is no {name} here")).why(&name).hint("short");
        assert!(told.what().starts_with("there is no <éé") && told.what().ends_with("é> here"), "{told}");
        assert!(told.to_string().len() < 1200, "{told}");
        assert_eq!(told.fix(), Some("short"));
    }

    #[test]
    fn a_plan_stays_whole() {
        let plan = format!("RangeScan t ranges=2 ['{}' .. '{}')", "a".repeat(500), "b".repeat(500));
        let told = Error::invalid("too much").why("max_gets is 1").plan(&plan);
        assert_eq!(told.reason(), Some(format!("max_gets is 1; the plan is {plan}").as_str()));
    }

    #[test]
    fn caret_points_at_the_place() {
        let sql = "CREATE TABLE t (id INT, day DATE,\n  PRIMARY KEY (cast(id AS varchar), day))";
        let error = Error::invalid("rowkey part \"id\" has no end")
            .why("it is variable-width and \"day\" follows it")
            .hint("move it last")
            .at(Span { line: 2, column: 16, len: 19 });
        assert_eq!(
            error.render(sql),
            "error: rowkey part \"id\" has no end\n  why: it is variable-width and \"day\" follows it\n \
             hint: move it last\nLINE 2:   PRIMARY KEY (cast(id AS varchar), day))\n                       ^^^^^^^^^^^^^^^^^^^"
        );
    }

    #[test]
    fn carets_stand_below_wide_characters() {
        let error = Error::invalid("x").at(Span { line: 1, column: 14, len: 2 });
        let shown = error.render("select '日本', 名前");
        assert_eq!(shown, "error: x\nLINE 1: select '日本', 名前\n                       ^^^^");
    }

    #[test]
    fn lines_count_from_the_top_of_the_script() {
        let error = Error::invalid("no such column").at(Span { line: 2, column: 3, len: 1 });
        assert_eq!(
            error.render_at("SELECT a,\n  b", 40, LINE_WIDTH),
            "error: no such column\nLINE 41:   b\n           ^"
        );
    }

    #[test]
    fn long_lines_are_cut_to_the_screen() {
        let sql = format!("SELECT {}, wibble, {} FROM t", "a".repeat(60), "b".repeat(60));
        let error = Error::invalid("x").at(Span { line: 1, column: 70, len: 6 });
        let shown = error.render_at(&sql, 1, 48);
        assert_eq!(
            shown,
            "error: x\nLINE 1: …aaaaaaaaaaaaaaaaa, wibble, bbbbbbbbbbb…\n                            ^^^^^^"
        );
        assert!(shown.lines().all(|line| line.chars().count() <= 48));
        let at_the_end = Error::invalid("x").at(Span { line: 1, column: 144, len: 1 });
        assert!(
            at_the_end
                .render_at(&sql, 1, 48)
                .ends_with(" FROM t\n                                               ^")
        );
    }

    #[test]
    fn a_place_outside_the_text_is_left_out() {
        let error = Error::invalid("x").at(Span { line: 9, column: 1, len: 1 });
        assert_eq!(error.render("SELECT 1"), "error: x");
    }
}
