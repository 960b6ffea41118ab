//! Runs scripts while they arrive: bytes of a file or pipe are decoded and cut into statements and command
//! lines.
//!
//! `TextDecoder` decodes the bytes that are there, at most one line at a time, without waiting for more than it
//! needs; [`Feeder`] runs each statement as soon as its `;` has come, so a program may write a statement into
//! `rowkeydb run -` and read its answer before it writes the next.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;

use super::commands::{is_command, is_known, is_meant};
use super::console::{Console, Halt, Place, Step, io_error};
use crate::engine::RowsFile;
use crate::error::{Error, Result, Span, sqlstate};
use crate::sql::{Splitter, SqlText, reads_stdin};

/// Where a script comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptSource {
    /// Standard input, written `-`.
    Stdin,
    /// A file.
    File(PathBuf),
    /// The text itself.
    Text(String),
}

impl ScriptSource {
    /// The source named on the command line: `-` or a path.
    pub fn named(name: &str) -> ScriptSource {
        if name == "-" { ScriptSource::Stdin } else { ScriptSource::File(name.into()) }
    }

    fn name(&self) -> Option<String> {
        match self {
            ScriptSource::File(path) => Some(path.display().to_string()),
            ScriptSource::Stdin | ScriptSource::Text(_) => None,
        }
    }

    /// Errors: there is no such file, or it is a folder.
    pub fn check(&self) -> Result<()> {
        match self {
            ScriptSource::File(path) => match path.metadata().map_err(|e| self.unreadable(e))?.is_dir() {
                true => Err(Error::invalid(format!("{} is a folder, not a script", path.display()))
                    .hint("a database is named by --db: rowkeydb run --db shop load.sql")),
                false => Ok(()),
            },
            ScriptSource::Stdin | ScriptSource::Text(_) => Ok(()),
        }
    }

    fn unreadable(&self, e: io::Error) -> Error {
        let name = self.name().unwrap_or_else(|| "standard input".to_owned());
        io_error(format!("cannot read {name}"), e)
    }

    fn open(&self) -> io::Result<Box<dyn BufRead + '_>> {
        Ok(match self {
            ScriptSource::Stdin => Box::new(io::stdin().lock()),
            ScriptSource::File(path) => Box::new(BufReader::new(File::open(path)?)),
            ScriptSource::Text(text) => Box::new(text.as_bytes()),
        })
    }
}

/// What the lines of a source are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Input {
    /// SQL statements, each with a `;`, and shell commands.
    #[default]
    Sql,
    /// One request {"sql": "...", "params": [...]} a line.
    Jsonl,
}

/// Runs a whole source; a last statement without `;` runs too.
pub fn run(console: &mut Console, source: &ScriptSource, input: Input) -> Step {
    let top = Place { file: source.name(), line: 1 };
    let reader = match source.open() {
        Ok(reader) => reader,
        Err(e) => return console.fail_outside(source.unreadable(e), &Place::TOP),
    };
    let step = match (input, source) {
        (Input::Sql, ScriptSource::Text(text)) => {
            let mut feeder = Feeder { has_stdin: true, ..Feeder::new(None) };
            run_typed(console, text, &mut feeder).and_then(|()| feeder.finish(console))
        }
        (Input::Sql, _) => run_sql(console, TextDecoder::new(reader), top),
        (Input::Jsonl, _) => run_requests(console, TextDecoder::new(reader), top),
    };
    // What is left of a script that has failed does not run.
    console.more_follows = false;
    step
}

fn run_sql(console: &mut Console, mut pieces: TextDecoder<impl BufRead>, top: Place) -> Step {
    let mut feeder = Feeder { is_script: true, ..Feeder::new(top.file.clone()) };
    loop {
        let piece = pieces.next();
        console.more_follows = pieces.more_follows;
        match piece {
            Ok(Some(Piece::Text(text))) => feeder.feed(&text, console)?,
            Ok(Some(Piece::NoText(error))) => feeder.spoil(error, console)?,
            Ok(None) => return feeder.finish(console),
            Err(error) => return console.fail_outside(error, &top),
        }
    }
}

/// Runs typed text, and stops at a failure, reporting how much did not run.
///
/// Whoever typed the following statements assumed that the first would succeed: say, a DELETE after an
/// INSERT.
pub fn run_typed(console: &mut Console, text: &str, feeder: &mut Feeder) -> Step {
    let mut lines = text.split_inclusive('\n');
    let step = lines.try_for_each(|line| feeder.feed(line, console));
    if matches!(step, Err(Halt::Failed)) {
        let left = feeder.leave(lines);
        console.tell_left(left)?;
    }
    step
}

fn run_requests(console: &mut Console, mut pieces: TextDecoder<impl BufRead>, top: Place) -> Step {
    let mut place = top.clone();
    let (mut line, mut spoiled) = (String::new(), None);
    loop {
        let mut ended = false;
        let piece = pieces.next();
        console.more_follows = pieces.more_follows;
        match piece {
            Ok(Some(Piece::Text(text))) => line.push_str(&text),
            Ok(Some(Piece::NoText(error))) => {
                spoiled.get_or_insert(error);
            }
            Ok(None) => ended = true,
            Err(error) => return console.fail_outside(error, &top),
        }
        if ended || line.ends_with('\n') {
            match spoiled.take() {
                Some(error) => console.fail_outside(error, &top)?,
                None if line.trim().is_empty() => {}
                None => console.request(line.trim_end(), &place)?,
            }
            place.line += 1;
            line.clear();
        }
        if ended {
            return Ok(());
        }
    }
}

/// The one statement in `sql`, without its `;`.
///
/// Errors: `Invalid` when there is none, or more than one.
pub fn only_statement(sql: &str) -> Result<String> {
    let mut splitter = Splitter::new();
    splitter.push(sql);
    let first = splitter.next_statement().or_else(|| splitter.finish());
    let Some(first) = first else {
        return Err(Error::invalid("a request holds one statement")
            .why("this one is empty")
            .state(sqlstate::SYNTAX));
    };
    match splitter.next_statement().or_else(|| splitter.finish()) {
        None => Ok(first.text),
        Some(_) => Err(Error::invalid("a request holds one statement")
            .why("another one follows the first")
            .hint("send each on a line of its own")
            .state(sqlstate::SYNTAX)),
    }
}

/// Cuts text into statements and command lines and runs them on a [`Console`].
pub struct Feeder {
    file: Option<String>,
    splitter: Splitter,
    /// An unfinished line that may become a command.
    held: String,
    /// The next text starts a line.
    at_line_start: bool,
    /// 1-based number of the current line.
    line: u32,
    /// The current statement or command holds bytes that are no text, and has been refused: it does not run.
    spoiled: bool,
    /// A COPY FROM STDIN that waits for the end of its rows, and these.
    copy: Option<(SqlText, RowsFile)>,
    /// Its rows are on standard input, not in the script.
    has_stdin: bool,
    /// Nobody is there who would notice that what follows is not taken for rows.
    is_script: bool,
}

impl Feeder {
    /// A feeder at the start of a script; `file` is its name for messages.
    pub fn new(file: Option<String>) -> Self {
        Feeder {
            file,
            splitter: Splitter::new(),
            held: String::new(),
            at_line_start: true,
            line: 1,
            spoiled: false,
            copy: None,
            has_stdin: false,
            is_script: false,
        }
    }

    /// Has a statement begun but not ended?
    pub fn is_open(&self) -> bool {
        !self.held.is_empty() || self.splitter.is_open() || self.copy.is_some()
    }

    /// Takes text up to the end of a line at most, and runs what is complete.
    pub fn feed(&mut self, piece: &str, console: &mut Console) -> Step {
        self.held.push_str(piece);
        if self.copy.is_some() && self.at_line_start {
            return if self.held.ends_with('\n') { self.take_row(console) } else { Ok(()) };
        }
        let open = self.splitter.is_open();
        if self.at_line_start && (!open || self.splitter.is_between_tokens()) {
            let (command, ended) = (is_command(&self.held), self.held.ends_with('\n'));
            if !ended && (command || !open && self.held.trim().is_empty()) {
                return Ok(());
            }
            if self.is_command_here() {
                return self.run_command(console);
            }
        }
        let text = self.take_held();
        self.splitter.push(&text);
        self.run_statements(console)
    }

    /// Takes bytes that are no text, as `error` says: the statement or command they are in is refused, once, and does
    /// not run.
    fn spoil(&mut self, error: Error, console: &mut Console) -> Step {
        self.feed("\u{fffd}", console)?;
        if std::mem::replace(&mut self.spoiled, true) {
            return Ok(());
        }
        console.fail_outside(error, &self.place(1))
    }

    /// Runs the rest, which has no `;`.
    pub fn finish(&mut self, console: &mut Console) -> Step {
        if self.copy.is_some() {
            self.take_row(console)?;
            self.end_copy(console)?;
        }
        if self.is_command_here() {
            self.run_command(console)?;
        }
        let held = self.take_held();
        self.splitter.push(&held);
        self.run_statements(console)?;
        let rest = self.splitter.finish().filter(|_| !self.spoiled);
        rest.map_or(Ok(()), |rest| self.run_statement(rest, console))?;
        self.end_copy(console)
    }

    /// Drops what has not run, and `lines`; gives the number of statements and commands dropped.
    fn leave<'l>(&mut self, lines: impl Iterator<Item = &'l str>) -> usize {
        let mut commands = 0;
        for line in lines {
            match is_command(line) && !self.splitter.is_open() {
                true => commands += 1,
                false => self.splitter.push(line),
            }
        }
        let whole = std::iter::from_fn(|| self.splitter.next_statement()).count();
        let rest = self.splitter.finish().map_or(0, |_| 1);
        *self = Feeder { is_script: self.is_script, ..Feeder::new(self.file.take()) };
        commands + whole + rest
    }

    /// Is the line a command? Inside of a statement only a known one counts, such as a `\d` to look up a column's name,
    /// and what cannot be SQL.
    fn is_command_here(&self) -> bool {
        let counts = || !self.splitter.is_open() || is_known(&self.held) || is_meant(&self.held);
        is_command(&self.held) && counts()
    }

    fn run_command(&mut self, console: &mut Console) -> Step {
        let place = self.place(self.line);
        let line = self.take_held();
        // Keep the splitter's line count right.
        self.splitter.push("\n");
        match self.spoiled {
            // A statement that has begun is what is spoiled.
            true => {
                self.spoiled = self.splitter.is_open();
                Ok(())
            }
            false => console.command(&line, &place),
        }
    }

    fn run_statements(&mut self, console: &mut Console) -> Step {
        // What stands behind COPY FROM STDIN on its line comes after the rows.
        while self.copy.is_none()
            && let Some(statement) = self.splitter.next_statement()
        {
            if !std::mem::take(&mut self.spoiled) {
                self.run_statement(statement, console)?;
            }
        }
        Ok(())
    }

    fn run_statement(&mut self, statement: SqlText, console: &mut Console) -> Step {
        let place = self.place(statement.line);
        if !reads_stdin(&statement.text, self.is_script) {
            return console.statement(&statement.text, &place);
        }
        let rows = console.rows_file().and_then(|mut rows| {
            if self.has_stdin {
                rows.add_all(&mut io::stdin().lock())?;
            }
            Ok(rows)
        });
        match rows {
            Ok(rows) => self.copy = Some((statement, rows)),
            Err(error) => return console.fail_outside(error, &place),
        }
        if self.has_stdin { self.end_copy(console) } else { Ok(()) }
    }

    /// Takes a line of the rows behind COPY FROM STDIN; `\.` ends them.
    fn take_row(&mut self, console: &mut Console) -> Step {
        let line = self.take_held();
        // Keep the splitter's line count right.
        self.splitter.push("\n");
        if line.trim_end_matches(['\n', '\r']) == "\\." {
            self.end_copy(console)?;
            return self.run_statements(console);
        }
        let Some((statement, rows)) = &mut self.copy else { return Ok(()) };
        let Err(error) = rows.add(line.as_bytes()) else { return Ok(()) };
        let line = statement.line;
        console.fail_outside(error, &self.place(line))
    }

    /// Runs the COPY whose rows are all there.
    fn end_copy(&mut self, console: &mut Console) -> Step {
        let Some((statement, rows)) = self.copy.take().filter(|_| !std::mem::take(&mut self.spoiled)) else {
            return Ok(());
        };
        console.copy_in(&statement.text, rows, &self.place(statement.line))
    }

    fn take_held(&mut self) -> String {
        self.at_line_start = self.held.ends_with('\n');
        self.line += u32::from(self.at_line_start);
        std::mem::take(&mut self.held)
    }

    fn place(&self, line: u32) -> Place {
        Place { file: self.file.clone(), line }
    }
}

/// A piece of a source.
enum Piece {
    /// Text, never empty, up to the end of a line at most.
    Text(String),
    /// Bytes that begin no character; the error says so.
    NoText(Error),
}

/// Decodes bytes to text as they arrive, not past the end of a line. Skips a byte order mark.
struct TextDecoder<R> {
    reader: R,
    /// Bytes not decoded yet.
    pending: Vec<u8>,
    line: u32,
    at_start: bool,
    /// Another line is at hand.
    more_follows: bool,
}

impl<R: BufRead> TextDecoder<R> {
    fn new(reader: R) -> Self {
        TextDecoder { reader, pending: Vec::new(), line: 1, at_start: true, more_follows: false }
    }

    /// The next piece; `None` at the end.
    ///
    /// Errors: `Unavailable` when reading fails.
    fn next(&mut self) -> Result<Option<Piece>> {
        loop {
            let (whole, strange) = match str::from_utf8(&self.pending) {
                Ok(text) => (text.len(), None),
                Err(e) => (e.valid_up_to(), e.error_len()),
            };
            match strange.filter(|_| whole == 0) {
                Some(len) => return Ok(Some(self.no_text(len))),
                None if whole > 0 => {
                    let text = self.take(whole)?;
                    if !text.is_empty() {
                        return Ok(Some(Piece::Text(text)));
                    }
                }
                // A character cut short.
                None if !self.fill()? => {
                    let len = self.pending.len();
                    return Ok((len > 0).then(|| self.no_text(len)));
                }
                None => {}
            }
        }
    }

    /// Takes pending bytes that are text.
    fn take(&mut self, len: usize) -> Result<String> {
        let text = String::from_utf8(self.pending.drain(..len).collect())
            .map_err(|_| Error::internal("a piece is no text"))?;
        self.line += u32::from(text.ends_with('\n'));
        let is_marked = std::mem::take(&mut self.at_start) && text.starts_with('\u{feff}');
        Ok(if is_marked { text.replacen('\u{feff}', "", 1) } else { text })
    }

    /// Takes pending bytes that are none.
    fn no_text(&mut self, len: usize) -> Piece {
        let byte = self.pending[0];
        self.pending.drain(..len);
        Piece::NoText(self.not_utf8(byte))
    }

    /// Adds the bytes that are there, up to the end of the line, to those pending; false at the end.
    fn fill(&mut self) -> Result<bool> {
        let there = loop {
            match self.reader.fill_buf() {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other.map_err(|e| io_error(format!("cannot read line {}", self.line), e))?,
            }
        };
        let line = |text: &[u8]| text.iter().position(|&b| b == b'\n').map(|at| at + 1);
        let len = line(there).unwrap_or(there.len());
        self.more_follows = line(&there[len..]).is_some();
        self.pending.extend_from_slice(&there[..len]);
        self.reader.consume(len);
        Ok(len > 0)
    }

    fn not_utf8(&self, byte: u8) -> Error {
        Error::invalid(format!("line {} is not UTF-8", self.line))
            .why(format!("byte {byte:02X} begins no character"))
            .hint("save the script as UTF-8; write binary values as X'00ff'")
            .state(sqlstate::CHARACTER_ENCODING)
            .at(Span { line: self.line, column: 1, len: 1 })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::super::console::Settings;
    use super::super::render::OutputFormat;
    use super::super::testing::{Sheet, console};
    use super::*;

    fn csv() -> Settings {
        Settings { format: OutputFormat::Csv, keep_going: true, ..Settings::default() }
    }

    fn run_bytes(bytes: &[u8]) -> (String, String) {
        let (mut console, out, err) = console(csv());
        let top = Place { file: Some("s.sql".into()), line: 1 };
        run_sql(&mut console, TextDecoder::new(bytes), top).unwrap();
        (out.take(), err.take())
    }

    #[test]
    fn a_line_knows_whether_another_is_at_hand() {
        let mut pieces = TextDecoder::new(&b"SELECT 1;\nSELECT 2;\nSELECT"[..]);
        let mut follows = || pieces.next().unwrap().map(|_| pieces.more_follows);
        assert_eq!(
            [follows(), follows(), follows(), follows()],
            [Some(true), Some(false), Some(false), None]
        );
    }

    #[test]
    fn nothing_follows_a_script_that_has_failed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.sql");
        std::fs::write(&path, "SELEC 1;\nSELECT 2;\nSELECT 3;\n").unwrap();
        let (mut console, ..) = console(Settings::default());
        let step = run(&mut console, &ScriptSource::File(path), Input::Sql);
        assert!(matches!(step, Err(Halt::Failed)));
        assert!(!console.more_follows);
    }

    #[test]
    fn statements_and_commands_in_order() {
        let script =
            "\u{feff}\\set n 2\n-- first\nSELECT 1 AS n;\n  \\echo two\nSELECT :n AS n;SELECT 3\n AS n";
        assert_eq!(run_bytes(script.as_bytes()), ("n\n1\ntwo\nn\n2\nn\n3\n".into(), String::new()));
        assert_eq!(run_bytes(b"\\echo last line without an end").0, "last line without an end\n");
        assert_eq!(run_bytes(b" \n\n-- nothing\n"), (String::new(), String::new()));
    }

    #[test]
    fn a_backslash_inside_a_statement_is_no_command() {
        let (out, err) = run_bytes(b"SELECT '\n\\echo no\n' AS n;");
        assert_eq!((out.as_str(), err.as_str()), ("n\n\"\n\\echo no\n\"\n", ""));
    }

    #[test]
    fn a_command_between_the_lines_of_a_statement_runs_by_itself() {
        let (out, err) = run_bytes(b"SELECT 1 AS n,\n\\echo hello\n.5 AS m;");
        assert_eq!((out.as_str(), err.as_str()), ("hello\nn,m\n1,0.5\n", ""));
    }

    #[test]
    fn what_cannot_be_sql_is_an_unknown_command_inside_of_a_statement() {
        let (out, err) = run_bytes(b"SELECT 1 AS n\n\\gset\n.tabels\n;");
        assert_eq!(out, "n\n1\n");
        assert!(err.contains("s.sql:2: error: there is no command \\gset\n hint: .set NAME VALUE"), "{err}");
        assert!(
            err.contains("s.sql:3: error: there is no command .tabels\n hint: did you mean .tables?"),
            "{err}"
        );
    }

    #[test]
    fn names_may_stand_in_the_quotes_of_others() {
        let (out, err) = run_bytes(b"SELECT 1 AS [it's; a], 2 AS `b;\n.c`; SELECT 3 AS n;");
        assert_eq!((out.as_str(), err.as_str()), ("it's; a,\"b;\n.c\"\n1,2\nn\n3\n", ""));
    }

    #[test]
    fn what_stands_behind_a_failure_does_not_run() {
        let (mut console, out, err) = console(Settings { format: OutputFormat::Csv, ..Settings::default() });
        let mut type_in = |text: &str| {
            let _ = run_typed(&mut console, text, &mut Feeder::new(None));
            (out.take(), err.take())
        };
        type_in("CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1), (2);\n");
        let (_, err) =
            type_in("BEGIN; INSERT INTO t VALUES (1); DELETE FROM t WHERE id = 2;\n.tables\nCOMMIT\n");
        assert!(err.contains("\nnote: 3 more statements did not run\n"), "{err}");
        assert!(err.contains("\n  why: the transaction is still open\n hint: "), "{err}");
        assert_eq!(type_in("ROLLBACK; SELECT count(*) AS n FROM t;\n").0, "n\n2\n");
        assert!(type_in("SELEC 1; SELECT 2;\n").1.ends_with("\nnote: one more statement did not run\n"));
        assert!(!type_in("SELEC 1;\n").1.contains("note"));
    }

    #[test]
    fn errors_name_the_line_of_the_script() {
        let (_, err) = run_bytes(b"\\set a 1\n\nSELECT 1 AS n;\n\nSELEC 1;\n.modd csv\n");
        assert!(err.contains("s.sql:5: error: "), "{err}");
        assert!(err.contains("LINE 5: SELEC 1\n        ^"), "{err}");
        assert!(err.contains("s.sql:6: error: there is no command .modd"), "{err}");
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_with_their_line() {
        let (out, err) = run_bytes(b"SELECT 1 AS n;\nSELECT '\xff';\nSELECT 2 AS n;");
        assert_eq!(out, "n\n1\nn\n2\n", "the statements around it run");
        assert!(err.starts_with("s.sql:2: error: line 2 is not UTF-8\n  why: byte FF begins"), "{err}");
        let (out, err) =
            run_bytes(b".echo one\n.echo \xff\n.echo two\nSELECT '\xff', '\xff\n\xff'; SELECT 3 AS n;");
        assert_eq!((&out[..], err.matches("is not UTF-8").count()), ("one\ntwo\nn\n3\n", 2));
        assert!(run_bytes(b"SELECT '\xe6\xb7").1.contains("line 1 is not UTF-8"), "cut inside a character");
    }

    #[test]
    fn a_machine_gets_an_object_for_what_is_no_text_and_for_an_unknown_command() {
        let settings = Settings { format: OutputFormat::Jsonl, ..csv() };
        let numbered = |run: &dyn Fn(&mut Console) -> Step| {
            let (mut console, out, err) = console(settings.clone());
            run(&mut console).unwrap();
            assert_eq!(err.take(), "");
            let object = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
            let seen = |o: serde_json::Value| (o["statement"].as_u64(), o["error"]["line"].as_u64());
            out.take().lines().map(object).map(seen).collect::<Vec<_>>()
        };
        let bytes = b"select 1;\nselect '\xff';\nselect 2;\n.modd\n";
        let found = numbered(&|console| run_sql(console, TextDecoder::new(&bytes[..]), Place::TOP));
        assert_eq!(found, [(Some(1), None), (Some(2), Some(2)), (Some(3), None), (Some(4), Some(4))]);
        let lines = b"{\"sql\": \"select 1\"}\n{\"sql\": \"select '\xff'\"}\n{\"sql\": \"select 2\"}";
        let found = numbered(&|console| run_requests(console, TextDecoder::new(&lines[..]), Place::TOP));
        assert_eq!(found, [(Some(1), None), (Some(2), Some(2)), (Some(3), None)]);
    }

    #[test]
    fn a_missing_file_is_named() {
        let (mut console, _, err) = console(Settings::default());
        let source = ScriptSource::named("no/such/file.sql");
        assert!(run(&mut console, &source, Input::Sql).is_err());
        assert!(err.take().starts_with("error: cannot read no/such/file.sql\n  why: "));
    }

    /// A reader that gives one chunk per read and records what was written before it.
    struct Dialogue {
        chunks: std::vec::IntoIter<&'static [u8]>,
        out: Sheet,
        seen: std::rc::Rc<std::cell::RefCell<Vec<String>>>,
    }

    impl Read for Dialogue {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.seen.borrow_mut().push(self.out.take());
            let chunk = self.chunks.next().unwrap_or_default();
            buffer[..chunk.len()].copy_from_slice(chunk);
            Ok(chunk.len())
        }
    }

    #[test]
    fn answers_come_as_soon_as_the_semicolon() {
        let (mut console, out, _) = console(csv());
        let chunks: Vec<&'static [u8]> =
            vec![b"SELECT 1 ", b"AS n;", b"\n\\ec", b"ho \xe6", b"\xb7\x98\n", b"SELECT 2 AS n;"];
        let seen = std::rc::Rc::default();
        let reader = Dialogue { chunks: chunks.into_iter(), out, seen: std::rc::Rc::clone(&seen) };
        run_sql(&mut console, TextDecoder::new(BufReader::new(reader)), Place::TOP).unwrap();
        assert_eq!(*seen.borrow(), ["", "", "n\n1\n", "", "", "淘\n", "n\n2\n"]);
    }

    #[test]
    fn rows_stand_behind_copy_from_stdin() {
        let script = "CREATE TABLE t (id INT PRIMARY KEY, s TEXT);\n\n-- Data\nCOPY public.t (id, s) FROM stdin; SELECT 7 AS n;\n\
            1\ta;\\tb\n2\t\\N\nx\t'\n\\.\n\\restrict key\nSELECT * FROM t;\n";
        let rows = script.replace("x\t'\n", "");
        assert_eq!(run_bytes(rows.as_bytes()), ("n\n7\nid,s\n1,a;\tb\n2,\n".into(), String::new()));
        let (out, err) = run_bytes(script.as_bytes());
        assert_eq!(out, "n\n7\nid,s\n");
        assert!(err.contains("STDIN: line 3, column id: 'x' is not an INTEGER"), "{err}");
        // In whatever pieces, without an end, and as CSV.
        let csv = "CREATE TABLE t (id INT PRIMARY KEY, s TEXT);COPY t FROM STDIN (FORMAT csv);\n1,\"x\ny\"";
        let (mut console, out, err) = console(self::csv());
        let mut feeder = Feeder::new(None);
        csv.split_inclusive(['T', '\n', '1']).for_each(|piece| feeder.feed(piece, &mut console).unwrap());
        assert!(feeder.is_open());
        feeder.finish(&mut console).unwrap();
        run_typed(&mut console, "COPY t TO STDOUT;COPY t TO STDOUT (FORMAT csv, HEADER)", &mut feeder)
            .unwrap();
        feeder.finish(&mut console).unwrap();
        assert_eq!((out.take().as_str(), err.take().as_str()), ("1\tx\\ny\nid,s\n1,\"x\ny\"\n", ""));
    }

    #[test]
    fn rows_behind_a_copy_that_is_refused_are_no_statements() {
        for copy in
            ["COPY shop.item (id, name) FROM stdin;", "copy t (a, b) FROM STDIN WITH (FORMAT binary);"]
        {
            let script = format!(
                "CREATE TABLE t (a INT PRIMARY KEY);\n-- Data\n{copy}\n1\tit's; DROP TABLE t; -- in it\n\\.\nSELECT 8 AS n;\n"
            );
            let (mut console, out, err) = console(csv());
            run_sql(&mut console, TextDecoder::new(script.as_bytes()), Place::TOP).unwrap();
            assert_eq!(out.take(), "n\n8\n");
            assert_eq!(err.take().matches("error:").count(), 1, "{copy}");
        }
    }

    #[test]
    fn requests_come_one_a_line() {
        let settings = Settings { format: OutputFormat::Jsonl, ..csv() };
        let (mut console, out, _) = console(settings);
        let lines = "{\"sql\": \"SELECT 1 AS n\"}\n\n{bad\n{\"sql\": \"SELECT $1 AS n\", \"params\": [2]}";
        run(&mut console, &ScriptSource::Text(lines.into()), Input::Jsonl).unwrap();
        let out = out.take();
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].contains("\"rows\":[[1]]"));
        assert!(lines[1].starts_with("{\"statement\":2,\"error\":{\"kind\":\"invalid\""));
        assert!(lines[1].contains("\"line\":3"));
        assert!(lines[2].contains("\"rows\":[[2]]"));
    }

    #[test]
    fn a_script_that_reads_itself_ends() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("loop.sql");
        std::fs::write(&path, format!(".read {}\n", path.display())).unwrap();
        let (mut console, _, err) = console(Settings::default());
        assert!(run(&mut console, &ScriptSource::File(path), Input::Sql).is_err());
        assert!(err.take().contains("more than 16 deep"));
    }
}
