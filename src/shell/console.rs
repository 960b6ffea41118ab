//! A console: one connection with its settings, which runs statements and commands and writes the results.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::commands::{self, Command};
use super::json::{self, Request};
use super::outlet::Outlet;
use super::pager::{Pager, Screen};
use super::progress::ProgressLine;
use super::render::{self, Expanded, OutputFormat, RenderError, ResultRows, Style};
use super::script::{self, Input, ScriptSource};
use super::tokens::{TokenKind, tokens};
use super::variables::Variables;
use crate::engine::{CancelHandle, Database, Outcome, RowsFile, Session, Warning};
use crate::error::{Error, Kind, LINE_WIDTH, Result, Span, sqlstate};
use crate::value::Value;

/// Depth to which scripts may read each other; it stops a script that reads itself.
const READ_DEPTH_MAX: usize = 16;

/// How often `.watch` looks for a Ctrl-C.
const LOOK_UP: Duration = Duration::from_millis(50);

/// Settings of a console, changed by `.mode`, `.timing` and so on.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// How results are written.
    pub format: OutputFormat,
    /// Continue after an error.
    pub keep_going: bool,
    /// Print how long each statement took.
    pub timing: bool,
    /// Print the plan before each query.
    pub explain: bool,
    /// Write a line for each column of a row, instead of a table.
    pub expanded: Expanded,
    /// Do not start a pager.
    pub no_pager: bool,
    /// Cut cells at this width; 0: never; `None`: at the screen's width, if there is a screen.
    pub width: Option<usize>,
    /// What stands for NULL in tables; `None`: NULL.
    pub null: Option<String>,
    /// ANSI colours in results.
    pub color: bool,
}

/// Place of a statement, for messages.
#[derive(Clone, Debug)]
pub struct Place {
    /// Name of its file; `None` at the prompt, in `-c` and in a pipe.
    pub file: Option<String>,
    /// 1-based line of its start.
    pub line: u32,
}

impl Place {
    /// The start of a text without a name.
    pub const TOP: Place = Place { file: None, line: 1 };

    /// `file:line: `, or nothing for a text without a name.
    fn prefix(&self, span: Option<Span>) -> String {
        let line = self.line + span.map_or(0, |span| span.line.saturating_sub(1));
        self.file.as_ref().map_or_else(String::new, |file| format!("{file}:{line}: "))
    }
}

/// Why execution stops.
#[derive(Debug)]
pub enum Halt {
    /// `.quit`.
    Quit,
    /// A statement failed and has been reported, and `keep_going` is off.
    Failed,
    /// The output cannot be written.
    Output(io::Error),
}

impl From<io::Error> for Halt {
    fn from(e: io::Error) -> Self {
        Halt::Output(e)
    }
}

/// Continue, or halt.
pub type Step = Result<(), Halt>;

/// A connection, its settings and its output.
pub struct Console {
    /// How statements run and results look.
    pub settings: Settings,
    /// Script variables.
    pub variables: Variables,
    /// The terminal, if a person is watching.
    pub screen: Option<Screen>,
    /// More is at hand to be run next: nobody waits for this result to go on.
    pub more_follows: bool,
    db: Database,
    session: Session,
    progress: ProgressLine,
    out: Outlet,
    err: Box<dyn Write>,
    /// The file that `.output` has set.
    file: Option<BufWriter<File>>,
    /// The file that `.once` has set.
    once: Option<BufWriter<File>>,
    /// The last statement, for `.watch`.
    last: Option<String>,
    /// How long the pager took of the running statement.
    paged: Duration,
    statements: u64,
    read_depth: usize,
    failed: bool,
}

impl Console {
    /// A new connection to `db`: results go to `out`, errors and warnings to `err`.
    pub fn new(db: Database, settings: Settings, out: Box<dyn Write + Send>, err: Box<dyn Write>) -> Self {
        let progress = ProgressLine::default();
        let mut session = db.session();
        session.on_progress(progress.observer());
        Console {
            settings,
            variables: Variables::default(),
            screen: None,
            more_follows: false,
            db,
            session,
            progress,
            out: Outlet::new(out),
            err,
            file: None,
            once: None,
            last: None,
            paged: Duration::ZERO,
            statements: 0,
            read_depth: 0,
            failed: false,
        }
    }

    /// The database it is connected to.
    pub fn database(&self) -> &Database {
        &self.db
    }

    /// A handle that cancels the running statement from another thread.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.session.cancel_handle()
    }

    /// Whether a transaction is open.
    pub fn in_transaction(&self) -> bool {
        self.session.in_transaction()
    }

    /// Whether anything has failed.
    pub fn failed(&self) -> bool {
        self.failed
    }

    /// Runs one statement of a script or the prompt, after substituting variables.
    pub fn statement(&mut self, sql: &str, place: &Place) -> Step {
        // Behind -c, and between files that were joined, too, a byte order mark is none of SQL's.
        let sql = self.variables.substitute(sql.trim_start_matches('\u{feff}')).into_owned();
        if self.settings.explain && self.settings.format != OutputFormat::Jsonl && is_query(&sql) {
            self.print_plan(&sql)?;
        }
        let step = self.run(&sql, &[], &sql, place);
        self.last = Some(sql);
        step
    }

    /// A file for the rows behind a COPY FROM STDIN.
    pub fn rows_file(&self) -> Result<RowsFile> {
        self.session.rows_file()
    }

    /// Runs COPY FROM STDIN with these rows.
    pub fn copy_in(&mut self, sql: &str, rows: RowsFile, place: &Place) -> Step {
        self.session.give_rows(Some(rows));
        self.statement(sql, place)
    }

    /// Runs one line of `--input jsonl`.
    pub fn request(&mut self, line: &str, place: &Place) -> Step {
        let request = Request::parse(line).and_then(|request| {
            let sql = script::only_statement(&request.sql)?;
            Ok(Request { sql, ..request })
        });
        match request {
            Ok(request) => self.run(&request.sql, &request.params, &request.sql, &Place::TOP),
            Err(error) => {
                self.statements += 1;
                self.fail(error, line, place)
            }
        }
    }

    /// Runs a line that begins with `.` or `\`.
    pub fn command(&mut self, line: &str, place: &Place) -> Step {
        match commands::parse(line) {
            Ok(command) => self.perform(command, place),
            Err(error) => self.fail_outside(error, place),
        }
    }

    /// Reports an error outside of a statement, such as a missing file or a command that there is not. A machine gets
    /// an object for it, as for a statement.
    pub fn fail_outside(&mut self, error: Error, place: &Place) -> Step {
        if self.settings.format == OutputFormat::Jsonl {
            self.statements += 1;
            let span = error.span().unwrap_or(Span { line: 1, column: 1, len: 1 });
            return self.fail(error.at(span), "", place);
        }
        self.tell(&format!("{}{error}", place.prefix(error.span())))?;
        self.go_on_after_failure()
    }

    /// Reports how many statements did not run after a failure, and the state of the transaction.
    pub fn tell_left(&mut self, statements: usize) -> io::Result<()> {
        let what = match statements {
            0 => return Ok(()),
            1 => "one more statement did not run".to_owned(),
            n => format!("{n} more statements did not run"),
        };
        let open = match self.in_transaction() {
            true => {
                "\n  why: the transaction is still open\n \
                 hint: ROLLBACK undoes what it has done so far, COMMIT keeps it"
            }
            false => "",
        };
        self.tell(&format!("note: {what}{open}"))
    }

    /// Ends the connection, with a warning if an open transaction is lost.
    pub fn close(&mut self) -> Step {
        if self.in_transaction() {
            self.tell("warning: the transaction still open here is rolled back\n hint: end it with COMMIT")?;
        }
        Ok(self.writer().flush()?)
    }

    /// `typed`: the statement as the user typed it, for messages.
    fn run(&mut self, sql: &str, params: &[Value], typed: &str, place: &Place) -> Step {
        self.statements += 1;
        let started = Instant::now();
        self.session.let_rows_out(self.settings.format != OutputFormat::Jsonl);
        let outcome = self.session.execute(sql, params).map_err(RenderError::Query);
        self.session.give_rows(None);
        if matches!(&outcome, Ok(Outcome { tag: "CHECK", affected: Some(1..), .. })) {
            // The statement succeeded, but it has found problems.
            self.failed = true;
        }
        // What is durable from now on is told at once.
        let is_query = matches!(&outcome, Ok(Outcome { tag: "SELECT", .. }));
        let may_wait = self.more_follows && (is_query || self.in_transaction());
        let printed = match self.session.take_rows() {
            Some(mut rows) => outcome.and_then(|outcome| {
                rows.copy_to(self.writer())?;
                Ok(self.warn(&outcome.warnings)?)
            }),
            None => outcome.and_then(|outcome| self.print(outcome, started)),
        };
        self.progress.clear();
        let paged = std::mem::take(&mut self.paged);
        let step = match printed {
            Ok(()) => self.print_time(started.elapsed().saturating_sub(paged)).map_err(Halt::from),
            Err(RenderError::Query(error)) => self.fail(error, typed, place),
            Err(RenderError::Output(error)) => Err(error.into()),
        };
        if may_wait && !self.writes_file() {
            return step.and(self.out.flush_soon().map_err(Halt::from));
        }
        step.and(self.end_result())
    }

    /// What `.once` has sent to a file ends with the result.
    fn end_result(&mut self) -> Step {
        self.writer().flush()?;
        self.once = None;
        Ok(())
    }

    fn print(&mut self, mut outcome: Outcome, started: Instant) -> Result<(), RenderError> {
        let warnings = std::mem::take(&mut outcome.warnings);
        if self.settings.format == OutputFormat::Jsonl {
            let rows = ResultRows { columns: &outcome.columns, batches: &mut outcome.rows };
            let line = json::success(self.statements, rows, outcome.affected, &warnings, started)?;
            return Ok(self.writer().write_all(&line)?);
        }
        let (format, style) = (self.settings.format, self.style());
        self.on_screen(|out| render::outcome(out, format, style, outcome))?;
        Ok(self.warn(&warnings)?)
    }

    /// Prints a definition or a plan, without decoration.
    fn print_lines(&mut self, outcome: Outcome) -> Result<(), RenderError> {
        let Outcome { columns, mut rows, .. } = outcome;
        self.on_screen(|out| render::lines(out, ResultRows { columns: &columns, batches: &mut rows }))
    }

    /// Prints the plan of `sql`; an error is left for the statement itself to report.
    fn print_plan(&mut self, sql: &str) -> Step {
        let Ok(outcome) = self.session.execute(&format!("EXPLAIN {sql}"), &[]) else { return Ok(()) };
        match self.print_lines(outcome) {
            Err(RenderError::Output(e)) => Err(e.into()),
            Ok(()) | Err(RenderError::Query(_)) => Ok(writeln!(self.writer())?),
        }
    }

    fn print_time(&mut self, elapsed: Duration) -> io::Result<()> {
        // Other formats are read by programs.
        if self.settings.timing
            && matches!(self.settings.format, OutputFormat::Table | OutputFormat::Markdown)
        {
            writeln!(self.writer(), "Time: {}", shown(elapsed))?;
        }
        Ok(())
    }

    fn fail(&mut self, error: Error, sql: &str, place: &Place) -> Step {
        if self.settings.format == OutputFormat::Jsonl {
            let line = json::failure(self.statements, &error.shifted(place.line.saturating_sub(1)));
            self.writer().write_all(&line)?;
            self.writer().flush()?;
        } else {
            let width = self.screen.map_or(LINE_WIDTH, |screen| screen.columns);
            let message = error.render_at(sql, place.line, width);
            self.tell(&format!("{}{message}", place.prefix(error.span())))?;
        }
        self.go_on_after_failure()
    }

    fn go_on_after_failure(&mut self) -> Step {
        self.failed = true;
        if self.settings.keep_going { Ok(()) } else { Err(Halt::Failed) }
    }

    /// Writes `message` to stderr, after flushing stdout.
    fn tell(&mut self, message: &str) -> io::Result<()> {
        self.out.flush()?;
        writeln!(self.err, "{message}")?;
        self.err.flush()
    }

    fn warn(&mut self, warnings: &[Warning]) -> io::Result<()> {
        warnings.iter().try_for_each(|warning| self.tell(&warning.to_string()))
    }

    /// Writes `text` for a person: to stdout, or to stderr if stdout is jsonl.
    fn say(&mut self, text: &str) -> Step {
        let jsonl = self.settings.format == OutputFormat::Jsonl;
        let out: &mut dyn Write = if jsonl { &mut self.err } else { self.writer() };
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    }

    /// Confirms a setting to a person at the prompt; scripts stay silent.
    fn confirm(&mut self, text: &str) -> Step {
        if self.screen.is_some() { self.say(&format!("{text}\n")) } else { Ok(()) }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self.once.as_mut().or(self.file.as_mut()) {
            Some(file) => file,
            None => &mut self.out,
        }
    }

    fn writes_file(&self) -> bool {
        self.once.is_some() || self.file.is_some()
    }

    /// The terminal, if results go there.
    fn result_screen(&self) -> Option<Screen> {
        self.screen.filter(|_| !self.writes_file())
    }

    fn style(&self) -> Style {
        let cell_width_max = match self.settings.width {
            Some(0) => None,
            Some(width) => Some(width),
            None => self.result_screen().map(|screen| screen.columns),
        };
        let Settings { color, expanded, no_pager, .. } = self.settings;
        let rows = |screen: Screen| if no_pager { usize::MAX } else { screen.unpaged() };
        let screen = self.result_screen().map(|screen| Screen { rows: rows(screen), ..screen });
        let null = self.settings.null.clone();
        Style { color: color && !self.writes_file(), cell_width_max, expanded, null, screen }
    }

    /// Writes a result, through the pager if it is longer than the screen.
    fn on_screen(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), RenderError>,
    ) -> Result<(), RenderError> {
        let Some(screen) = self.result_screen().filter(|_| !self.settings.no_pager) else {
            return write(self.writer());
        };
        let mut pager = Pager::new(&mut self.out, screen.unpaged());
        let written = write(&mut pager);
        self.paged += pager.finish()?;
        match written {
            // The user has left the pager.
            Err(RenderError::Output(e)) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other,
        }
    }
}

/// Execution of commands.
impl Console {
    fn perform(&mut self, command: Command, place: &Place) -> Step {
        match command {
            Command::Help => self.say(&commands::help()),
            Command::Quit => Err(Halt::Quit),
            Command::Nothing => Ok(()),
            // The user did not type the statement.
            Command::Sql(sql) => self.run(&sql, &[], "", place),
            Command::Heatmap(sql, file) => self.heatmap(&sql, file, place),
            Command::Dump => self.dump(place),
            Command::Schema(table) => self.schema(table, place),
            Command::Mode(None) => self.say(&format!("{}\n", self.settings.format.name())),
            Command::Mode(Some(format)) => {
                self.settings.format = format;
                Ok(())
            }
            Command::Timing(on) => {
                let on = on.unwrap_or(!self.settings.timing);
                self.settings.timing = on;
                self.confirm(&format!("timing is {}", on_off(on)))
            }
            Command::Explain(on) => {
                let on = on.unwrap_or(!self.settings.explain);
                self.settings.explain = on;
                self.confirm(&format!("plans are {}", on_off(on)))
            }
            Command::Expanded(expanded) => {
                let other = match self.settings.expanded {
                    Expanded::On => Expanded::Auto,
                    Expanded::Off | Expanded::Auto => Expanded::On,
                };
                self.settings.expanded = expanded.unwrap_or(other);
                self.confirm(&format!("expanded display is {}", self.settings.expanded.name()))
            }
            Command::Pager(on) => {
                let on = on.unwrap_or(self.settings.no_pager);
                self.settings.no_pager = !on;
                self.confirm(&format!("the pager is {}", on_off(on)))
            }
            Command::Width(width) => {
                self.settings.width = width;
                Ok(())
            }
            Command::NullValue(null) => {
                self.settings.null = null;
                Ok(())
            }
            Command::Output(path) => self.redirect(path, place),
            Command::Once(path) => match create(&path) {
                Ok(file) => {
                    self.once = Some(file);
                    Ok(())
                }
                Err(error) => self.fail_outside(error, place),
            },
            Command::Watch(every) => self.watch(every, place),
            Command::Read(path) => self.read(path, place),
            Command::Echo(text) => {
                let text = self.variables.substitute(&text).into_owned();
                self.say(&format!("{text}\n"))
            }
            Command::Set(None) => {
                let list: String =
                    self.variables.iter().map(|(name, value)| format!("{name} = {value}\n")).collect();
                self.say(&list)
            }
            Command::Set(Some((name, value))) => {
                let set = self.variables.set(&name, value);
                set.or_else(|error| self.fail_outside(error, place))
            }
            Command::Default(name, value) => {
                let set = self.variables.set_default(&name, value);
                set.or_else(|error| self.fail_outside(error, place))
            }
            Command::Unset(name) => {
                self.variables.unset(&name);
                Ok(())
            }
        }
    }

    fn heatmap(&mut self, sql: &str, file: Option<PathBuf>, place: &Place) -> Step {
        let heatmap = self.session.heatmap(sql);
        self.progress.clear();
        let pictures = match heatmap {
            Ok(pictures) => pictures,
            Err(error) => return self.fail(error, sql, place),
        };
        let Some(path) = file else {
            let color = self.style().color;
            return self.say(&pictures.blocks(color));
        };
        match std::fs::write(&path, pictures.html()) {
            Ok(()) => self.confirm(&format!("{} has the pictures", path.display())),
            Err(e) => self.fail_outside(io_error(format!("cannot write {}", path.display()), e), place),
        }
    }

    fn schema(&mut self, of: Option<String>, place: &Place) -> Step {
        match self.db.definitions(of.as_deref()) {
            Ok(definitions) => {
                let script: String = definitions.iter().map(|sql| format!("{sql};\n")).collect();
                self.say(&script).and(self.end_result())
            }
            Err(error) => self.fail_outside(error, place),
        }
    }

    fn dump(&mut self, place: &Place) -> Step {
        let db = self.db.clone();
        match db.dump(self.writer()) {
            Ok(()) => self.end_result(),
            Err(error) => self.fail_outside(error, place),
        }
    }

    fn redirect(&mut self, path: Option<PathBuf>, place: &Place) -> Step {
        self.writer().flush()?;
        self.file = None;
        let Some(path) = path else { return Ok(()) };
        match create(&path) {
            Ok(file) => self.file = Some(file),
            Err(error) => return self.fail_outside(error, place),
        }
        Ok(())
    }

    /// Runs the last statement again and again, until it fails or Ctrl-C.
    fn watch(&mut self, every: Duration, place: &Place) -> Step {
        let Some(sql) = self.last.clone() else {
            let error = Error::invalid("there is no statement to repeat").hint("run one, then .watch 2");
            return self.fail_outside(error, place);
        };
        let cancel = self.cancel_handle();
        let failed = std::mem::take(&mut self.failed);
        let no_pager = std::mem::replace(&mut self.settings.no_pager, true);
        let step = loop {
            let step = self.run(&sql, &[], &sql, &Place::TOP);
            if step.is_err() || self.failed || !slept(every, &cancel) {
                break step;
            }
        };
        self.settings.no_pager = no_pager;
        self.failed |= failed;
        step
    }

    fn read(&mut self, path: PathBuf, place: &Place) -> Step {
        if self.read_depth == READ_DEPTH_MAX {
            let error = Error::invalid(format!("scripts read each other more than {READ_DEPTH_MAX} deep"))
                .hint("does this script read itself?");
            return self.fail_outside(error, place);
        }
        let source = ScriptSource::File(path.clone());
        if let Err(error) = source.check() {
            return self.fail_outside(error, place);
        }
        self.read_depth += 1;
        let step = script::run(self, &source, Input::Sql);
        self.read_depth -= 1;
        if matches!(step, Err(Halt::Failed)) && self.screen.is_some() {
            self.tell(&format!("note: the rest of {} did not run", path.display()))?;
        }
        step
    }
}

/// An error of the operating system, about `what`.
pub(super) fn io_error(what: String, e: io::Error) -> Error {
    Error::new(Kind::Unavailable, what).why(e.to_string()).state(sqlstate::IO).caused_by(e)
}

fn create(path: &Path) -> Result<BufWriter<File>> {
    let file = File::create(path).map_err(|e| io_error(format!("cannot write {}", path.display()), e))?;
    Ok(BufWriter::new(file))
}

/// Waits; false if Ctrl-C has come meanwhile.
fn slept(time: Duration, cancel: &CancelHandle) -> bool {
    let end = Instant::now() + time;
    while !cancel.is_asked() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        thread::sleep(left.min(LOOK_UP));
    }
    false
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// Begins with SELECT or WITH.
fn is_query(sql: &str) -> bool {
    let first = tokens(sql).find(|t| !matches!(t.kind, TokenKind::Space | TokenKind::Comment));
    first.is_some_and(|t| ["select", "with"].contains(&t.text.to_ascii_lowercase().as_str()))
}

/// `0.4 ms`, `1.25 s`, `2 min 5 s`.
fn shown(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    match seconds {
        s if s < 1.0 => format!("{:.1} ms", s * 1_000.0),
        s if s < 60.0 => format!("{s:.2} s"),
        _ => format!("{} min {} s", elapsed.as_secs() / 60, elapsed.as_secs() % 60),
    }
}

#[cfg(test)]
mod tests;
