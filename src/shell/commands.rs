//! Shell commands, such as `.tables`, `\d customer_order`, `.mode csv`: parses a line to a [`Command`].
//!
//! One table, [`COMMANDS`], defines how each command is written, what it does and how its arguments are
//! parsed; parsing, `.help` and completion all use it. A dot, a backslash and, as in Phoenix's shell, an exclamation
//! mark mean the same.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use super::render::{Expanded, OutputFormat};
use crate::error::{Error, Result, sqlstate};
use crate::suggest::did_you_mean;
use crate::value::{is_reserved, quoted_name};

/// A parsed command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// List the commands.
    Help,
    /// Leave.
    Quit,
    /// Nothing: `\restrict` of pg_dump.
    Nothing,
    /// Run a statement: `.tables`, `.indexes`, `.describe`.
    Sql(String),
    /// Draw a statement's heat map: in the terminal, or as a page in a file.
    Heatmap(String, Option<PathBuf>),
    /// Write the database as a script.
    Dump,
    /// Print the CREATE statements of one table or of all.
    Schema(Option<String>),
    /// Set the output format; without: print it.
    Mode(Option<OutputFormat>),
    /// Print how long statements take; without: toggle.
    Timing(Option<bool>),
    /// Show the plan before each query.
    Explain(Option<bool>),
    /// Write a line for each column of a row; without: on, or if it is, auto.
    Expanded(Option<Expanded>),
    /// Send long results through the pager.
    Pager(Option<bool>),
    /// Cut cells at this width; 0: never; without: at the screen's width.
    Width(Option<usize>),
    /// Show NULL as this text; without: as NULL.
    NullValue(Option<String>),
    /// Write the next result to a file.
    Once(PathBuf),
    /// Run the last statement again and again, with this pause.
    Watch(Duration),
    /// Write results to a file; without: to the screen again.
    Output(Option<PathBuf>),
    /// Run a script.
    Read(PathBuf),
    /// Print a text.
    Echo(String),
    /// Set a variable; without: list them.
    Set(Option<(String, String)>),
    /// Set a variable that is not set yet.
    Default(String, String),
    /// Forget a variable.
    Unset(String),
}

/// The definition of a command.
pub struct Spec {
    /// Names without dot or backslash, the one that `.help` shows first.
    pub names: &'static [&'static str],
    /// Its arguments, for `.help`.
    pub arguments: &'static str,
    /// What it does, for `.help`.
    pub help: &'static str,
    /// Its arguments are file names, for completion.
    pub takes_file: bool,
    parse: fn(&str) -> Result<Command>,
}

/// Every command, in the order of `.help`.
pub const COMMANDS: &[Spec] = &[
    spec(&["help", "?", "h"], "", "this list", |rest| match rest {
        "" => Ok(Command::Help),
        of => Err(Error::invalid(format!("there is no help on {of} here"))
            .hint(".help lists the commands; the guide has a table of statements")),
    }),
    spec(&["tables", "dt"], "[PATTERN]", "tables, or those whose names are like order%", |rest| {
        Ok(Command::Sql(show_like("TABLES", rest)))
    }),
    spec(&["schema"], "[TABLE]", "the CREATE statements of a table with its indexes, or of all", |rest| {
        let name = |rest: &str| match rest.starts_with('"') {
            true => unquoted(rest).into_owned(),
            false => rest.to_lowercase(),
        };
        Ok(Command::Schema(optional(rest).map(name)))
    }),
    spec(&["dump"], "", "the database as an SQL script, with its rows; .once FILE sends it there", |rest| {
        match rest {
            "" => Ok(Command::Dump),
            of => Err(bad_argument(format!("the dump of {of} alone is not possible"))
                .hint(".dump writes all tables; .schema TABLE the definitions of one")),
        }
    }),
    spec(&["indexes", "di"], "[TABLE]", "index tables and their states", |rest| {
        Ok(Command::Sql(match optional(rest) {
            None => "SHOW INDEXES".to_owned(),
            Some(table) => format!("SHOW INDEXES FROM {}", name(table)),
        }))
    }),
    spec(
        &["heatmap"],
        "TABLE|SIMULATION [FILE]",
        "draw reads and writes by region and time, here or in FILE.html",
        |rest| Ok(heatmap(required(rest, "a table, or SIMULATE WRITES ...")?)),
    ),
    spec(&["functions", "df"], "[PATTERN]", "functions, or those whose names are like date%", |rest| {
        Ok(Command::Sql(show_like("FUNCTIONS", rest)))
    }),
    spec(&["views", "dv"], "", "views", |_| Ok(Command::Sql("SHOW VIEWS".to_owned()))),
    spec(&["describe", "d"], "[TABLE]", "columns and key layout of a table", |rest| {
        Ok(Command::Sql(match optional(rest) {
            None => "SHOW TABLES".to_owned(),
            Some(table) => format!("DESCRIBE {}", name(table)),
        }))
    }),
    spec(&["mode"], "table|csv|jsonl|markdown", "how results are written", |rest| {
        optional(rest).map(format).transpose().map(Command::Mode)
    }),
    spec(&["timing", "timer"], "on|off", "print how long statements take", |rest| {
        Ok(Command::Timing(switch(rest)?))
    }),
    spec(&["explain"], "on|off", "print the plan before each query", |rest| {
        Ok(Command::Explain(switch(rest)?))
    }),
    spec(
        &["expanded", "x"],
        "on|off|auto",
        "a line for each column of a row; auto: if a table would be wider than the screen",
        |rest| expanded(rest).map(Command::Expanded),
    ),
    spec(&["pager"], "on|off", "long results go through $PAGER", |rest| Ok(Command::Pager(switch(rest)?))),
    spec(&["width"], "[N]", "cut cells at N columns; 0: never; without N: at the screen's width", |rest| {
        optional(rest).map(width).transpose().map(Command::Width)
    }),
    spec(&["nullvalue"], "[TEXT]", "what stands for NULL in tables", |rest| {
        Ok(Command::NullValue(optional(rest).map(|text| unquoted(text).into_owned())))
    }),
    spec(&["watch"], "[SECONDS]", "run the last statement every 2 seconds, say, until Ctrl-C", |rest| {
        pause(rest).map(Command::Watch)
    }),
    file_spec(&["once"], "FILE", "write the next result to a file", |rest| {
        required(rest, "a file").map(path).map(Command::Once)
    }),
    file_spec(&["output", "o"], "[FILE]", "write results to a file, or to the screen again", |rest| {
        Ok(Command::Output(optional(rest).map(path)))
    }),
    file_spec(&["read", "i", "ir"], "FILE", "run a script", |rest| {
        required(rest, "a file").map(path).map(Command::Read)
    }),
    spec(&["echo", "print"], "TEXT", "print a text", |rest| Ok(Command::Echo(unquoted(rest).into_owned()))),
    spec(&["set"], "[NAME VALUE]", "set a variable, written :NAME in SQL; or list them", |rest| {
        Ok(Command::Set(optional(rest).map(assignment)))
    }),
    spec(&["default"], "NAME VALUE", "set a variable unless it is set, as by --set", |rest| {
        let (name, value) = assignment(required(rest, "a name")?);
        Ok(Command::Default(name, value))
    }),
    spec(&["unset"], "NAME", "forget a variable", |rest| {
        required(rest, "a name").map(|name| Command::Unset(name.to_owned()))
    }),
    spec(&["quit", "q", "exit"], "", "leave", |_| Ok(Command::Quit)),
];

impl Spec {
    /// The words that its argument can be, if it is one of a list.
    pub fn choices(&self) -> impl Iterator<Item = String> {
        let is_list = self.arguments.chars().all(|c| c.is_ascii_lowercase() || c == '|');
        self.arguments.split('|').filter(move |word| is_list && !word.is_empty()).map(str::to_owned)
    }
}

type Parse = fn(&str) -> Result<Command>;

const fn spec(
    names: &'static [&'static str],
    arguments: &'static str,
    help: &'static str,
    parse: Parse,
) -> Spec {
    Spec { names, arguments, help, takes_file: false, parse }
}

const fn file_spec(
    names: &'static [&'static str],
    arguments: &'static str,
    help: &'static str,
    parse: Parse,
) -> Spec {
    Spec { names, arguments, help, takes_file: true, parse }
}

/// What a line for the shell begins with.
const MARKS: [char; 3] = ['.', '\\', '!'];

/// Is the line for the shell?
pub fn is_command(line: &str) -> bool {
    line.trim_start().starts_with(MARKS)
}

/// Is the line one of our commands?
pub fn is_known(line: &str) -> bool {
    line.split_whitespace().next().and_then(find).is_some()
}

/// Can the line, inside of a statement, only be meant as a command? No SQL begins with a backslash; a period begins one
/// only if more follows its word.
pub fn is_meant(line: &str) -> bool {
    let line = line.trim();
    let is_word = |name: &str| name.len() > 1 && name.bytes().all(|b| b.is_ascii_alphabetic());
    match line.strip_prefix('\\') {
        Some(name) => name.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '?' | '!')),
        None => line.strip_prefix('.').is_some_and(is_word),
    }
}

/// Parses a line for which [`is_command`] holds.
///
/// Errors: `Invalid` for an unknown command (the hint names the nearest one) or bad arguments.
pub fn parse(line: &str) -> Result<Command> {
    let line = line.trim().trim_end_matches(';').trim_end();
    let word_end = line.find(char::is_whitespace).unwrap_or(line.len());
    let (word, rest) = line.split_at(word_end);
    if matches!(word, "\\restrict" | "\\unrestrict") {
        return Ok(Command::Nothing);
    }
    let Some(spec) = find(word) else { return Err(unknown(word)) };
    (spec.parse)(rest.trim())
}

/// The command named `word`, with the mark in front of it.
pub fn find(word: &str) -> Option<&'static Spec> {
    let name = word.strip_prefix(MARKS)?;
    // psql's `\d+` tells more; here `\d` tells all.
    let name = name.strip_suffix('+').filter(|name| name.starts_with('d')).unwrap_or(name);
    COMMANDS.iter().find(|spec| spec.names.contains(&name))
}

/// Commands of other shells, and what to do here.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (&["gx"], ".expanded on, then the query; a statement ends with a semicolon"),
    (&["e", "edit", "p", "s"], "the arrow keys bring back what was typed; .read FILE runs a script"),
    (&["!", "shell", "system"], "Ctrl-Z leaves for a moment, and fg comes back"),
    (&["pset", "a", "t", "H"], ".mode, .expanded, .nullvalue and .pager say how results are written"),
    (&["g"], "a statement ends with a semicolon"),
    (
        &["l", "list", "c", "connect", "open", "databases", "attach"],
        "one database is open at a time: .quit, then rowkeydb FOLDER",
    ),
    (&["import", "copy"], "COPY t FROM 'file.csv'; COPY t TO 'file.csv' writes one"),
    (&["backup", "save"], "BACKUP TO 'folder'; rowkeydb restore turns it back"),
    (&["gset"], ".set NAME VALUE sets a variable; what a query finds is no value for it"),
    (
        &["if", "elif", "else", "endif"],
        "scripts have no conditions; IF NOT EXISTS and ON CONFLICT are some of statements",
    ),
    (&["cd"], "files are named from the folder in which rowkeydb was started; ~/ is your own"),
    (&["conninfo"], "the prompt tells which database is open"),
    (&["du", "dg", "dn", "dp", "z"], "there are no users, and one schema, public"),
    (&["ds"], "there are no sequences: columns number themselves, as .describe TABLE shows"),
    (&["encoding"], "all text is UTF-8"),
    (&["eqp"], ".explain on prints the plan before each query"),
    (&["show"], "SHOW SETTINGS lists what SET changes, .set the variables; .mode prints the mode"),
    (&["bail"], "a script stops at its first error; rowkeydb run --keep-going goes on"),
    (&["param", "parameter"], ".set NAME VALUE sets a variable, written :NAME in SQL"),
    (
        &["separator"],
        ".mode csv separates by commas; COPY t TO 'file.csv' WITH (DELIMITER ';') by another sign",
    ),
    (&["headers", "header"], "results have headers; .mode chooses how they are written"),
];

fn unknown(word: &str) -> Error {
    let name = word.get(1..).unwrap_or_default();
    if let Some((_, instead)) = ELSEWHERE.iter().find(|(theirs, _)| theirs.contains(&name)) {
        return Error::invalid(format!("there is no command {word}")).hint(*instead).state(sqlstate::SYNTAX);
    }
    let names = || COMMANDS.iter().flat_map(|spec| spec.names.iter().copied());
    let begun = || names().find(|known| name.len() > 1 && known.starts_with(name));
    let hint = match begun().or_else(|| did_you_mean(name, names())) {
        Some(near) => {
            format!("did you mean {}{near}? .help lists the commands", word.get(..1).unwrap_or("."))
        }
        None => ".help lists the commands".to_owned(),
    };
    Error::invalid(format!("there is no command {word}")).hint(hint).state(sqlstate::SYNTAX)
}

/// The longest pause of `.watch`: a day.
const PAUSE_MAX_S: f64 = 86_400.0;
/// Columns where descriptions begin and end in `.help`, in characters.
const HELP_COLUMN: usize = 28;
const HELP_WIDTH: usize = 80;

/// The text of `.help`.
pub fn help() -> String {
    let mut out = String::new();
    for spec in COMMANDS {
        let written = format!(".{} {}", spec.names[0], spec.arguments);
        let also: Vec<String> = spec.names[1..].iter().map(|name| format!("\\{name}")).collect();
        let also = if also.is_empty() { String::new() } else { format!("  ({})", also.join(", ")) };
        let mut left = written.as_str();
        if left.len() > HELP_COLUMN {
            out.push_str(std::mem::take(&mut left));
            out.push('\n');
        }
        for line in lines(&format!("{}{also}", spec.help), HELP_WIDTH - HELP_COLUMN - 1) {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{left:<HELP_COLUMN$} {line}");
            left = "";
        }
    }
    out.push_str(
        "Anything else is SQL and ends with a semicolon. Ctrl-C stops a statement.\n\
         About rowkeys: LINT; SIMULATE WRITES ON t; ADVISE FOR (query);\n\
         EXPLAIN WHATIF (INDEX (a, b)) query; SHOW REGIONS FROM t; DESCRIBE KEY OF t;\n\
         ALTER TABLE t REKEY (a, b);\n",
    );
    out
}

/// Wraps the text to lines of this width.
fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => line.extend([" ", word]),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// If the last word ends in `.html` it is a file; the rest is a table or a statement.
fn heatmap(rest: &str) -> Command {
    let file = rest.rsplit_once(char::is_whitespace).filter(|(_, last)| unquoted(last).ends_with(".html"));
    let (of, file) = file.map_or((rest, None), |(of, file)| (of.trim_end(), Some(path(file))));
    let first = of.split_once(char::is_whitespace).map(|(first, _)| first);
    let is_statement = first.is_some_and(|word| word.eq_ignore_ascii_case("simulate"));
    let sql = if is_statement { of.to_owned() } else { format!("SHOW TRAFFIC FROM {}", name(of)) };
    Command::Heatmap(sql, file)
}

/// SHOW of those whose names match a pattern, in which `*` is `%`, as in other shells.
fn show_like(what: &str, pattern: &str) -> String {
    match unquoted(pattern).replace('*', "%").replace('\'', "''") {
        pattern if pattern.is_empty() => format!("SHOW {what}"),
        pattern => format!("SHOW {what} LIKE '{pattern}'"),
    }
}

fn optional(rest: &str) -> Option<&str> {
    (!rest.is_empty()).then_some(rest)
}

fn required<'a>(rest: &'a str, what: &str) -> Result<&'a str> {
    optional(rest).ok_or_else(|| bad_argument(format!("{what} is missing")))
}

/// `NAME VALUE`.
fn assignment(rest: &str) -> (String, String) {
    let (name, value) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    (name.to_owned(), unquoted(value.trim()).into_owned())
}

fn switch(rest: &str) -> Result<Option<bool>> {
    match rest.to_ascii_lowercase().as_str() {
        "" => Ok(None),
        "on" | "true" | "1" => Ok(Some(true)),
        "off" | "false" | "0" => Ok(Some(false)),
        _ => Err(bad_argument(format!("\"{rest}\" is neither on nor off"))),
    }
}

fn expanded(rest: &str) -> Result<Option<Expanded>> {
    if rest.eq_ignore_ascii_case("auto") {
        return Ok(Some(Expanded::Auto));
    }
    let on = switch(rest).map_err(|_| bad_argument(format!("\"{rest}\" is none of on, off and auto")))?;
    Ok(on.map(|on| if on { Expanded::On } else { Expanded::Off }))
}

fn format(rest: &str) -> Result<OutputFormat> {
    OutputFormat::named(rest).ok_or_else(|| {
        bad_argument(format!("there is no mode \"{rest}\"")).hint(match rest {
            "line" | "lines" => ".expanded on writes a line for each column of a row",
            "json" => ".mode jsonl writes an object for each row",
            "tabs" | "tsv" | "list" => {
                "COPY (query) TO 'file' WITH (FORMAT text) writes tabs; .mode csv commas"
            }
            "insert" => ".dump writes INSERT statements, of all tables",
            _ => "table, csv, jsonl or markdown",
        })
    })
}

fn width(rest: &str) -> Result<usize> {
    rest.parse()
        .map_err(|_| bad_argument(format!("\"{rest}\" is not a width")).hint("for example: .width 40"))
}

fn pause(rest: &str) -> Result<Duration> {
    let seconds = rest.parse().ok().filter(|seconds| (0.1..=PAUSE_MAX_S).contains(seconds));
    match seconds.or(rest.is_empty().then_some(2.0)) {
        Some(seconds) => Ok(Duration::from_secs_f64(seconds)),
        None => Err(bad_argument(format!("\"{rest}\" is no pause"))
            .hint("write seconds, from 0.1 to 86400: .watch 5")),
    }
}

fn path(rest: &str) -> PathBuf {
    let file = unquoted(rest);
    let home = file.strip_prefix("~/").and_then(|tail| Some(std::env::home_dir()?.join(tail)));
    home.unwrap_or_else(|| PathBuf::from(&*file))
}

/// A name as SQL: unchanged if it is quoted, or plain and no keyword, otherwise quoted.
fn name(rest: &str) -> String {
    let plain = rest.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
    let quoted = rest.len() > 1 && rest.starts_with('"') && rest.ends_with('"');
    match (plain, quoted) {
        (_, true) => rest.to_owned(),
        (true, _) if is_reserved(rest) => quoted_name(&rest.to_lowercase()),
        (true, _) => rest.to_owned(),
        _ => quoted_name(rest),
    }
}

/// `rest` without surrounding quotes, which are doubled inside.
fn unquoted(rest: &str) -> Cow<'_, str> {
    let inside =
        |quote, doubled| Some(rest.strip_prefix(quote)?.strip_suffix(quote)?.replace(doubled, quote));
    inside("'", "''").or_else(|| inside("\"", "\"\"")).map_or(Cow::Borrowed(rest), Cow::Owned)
}

fn bad_argument(what: String) -> Error {
    Error::invalid(what).state(sqlstate::SYNTAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sql(text: &str) -> Command {
        Command::Sql(text.to_owned())
    }

    #[test]
    fn dot_and_backslash_mean_the_same() {
        let cases = [
            (".help", Command::Help),
            ("\\?", Command::Help),
            (".tables", sql("SHOW TABLES")),
            ("\\dt;", sql("SHOW TABLES")),
            ("\\d", sql("SHOW TABLES")),
            ("\\d customer_order", sql("DESCRIBE customer_order")),
            (".describe \"My Table\"", sql("DESCRIBE \"My Table\"")),
            (".describe my-table", sql("DESCRIBE \"my-table\"")),
            ("\\di", sql("SHOW INDEXES")),
            (".indexes t", sql("SHOW INDEXES FROM t")),
            (".indexes Order", sql("SHOW INDEXES FROM \"order\"")),
            (".schema \"we\"\"ird\"", Command::Schema(Some("we\"ird".to_owned()))),
            (".echo 'it''s'", Command::Echo("it's".to_owned())),
            (".schema", Command::Schema(None)),
            ("  .mode CSV  ", Command::Mode(Some(OutputFormat::Csv))),
            (".mode", Command::Mode(None)),
            ("\\timing", Command::Timing(None)),
            (".timing off", Command::Timing(Some(false))),
            ("\\x", Command::Expanded(None)),
            ("\\x AUTO", Command::Expanded(Some(Expanded::Auto))),
            (".expanded off", Command::Expanded(Some(Expanded::Off))),
            (".nullvalue '-'", Command::NullValue(Some("-".into()))),
            (".nullvalue", Command::NullValue(None)),
            (".once a.csv", Command::Once("a.csv".into())),
            ("\\watch", Command::Watch(Duration::from_secs(2))),
            (".watch 0.5;", Command::Watch(Duration::from_millis(500))),
            ("\\d+ t", sql("DESCRIBE t")),
            ("\\dt+", sql("SHOW TABLES")),
            (".width 40", Command::Width(Some(40))),
            (".output", Command::Output(None)),
            ("\\o 'a b.csv'", Command::Output(Some("a b.csv".into()))),
            ("\\i load.sql", Command::Read("load.sql".into())),
            ("\\ir load.sql", Command::Read("load.sql".into())),
            (".print x", Command::Echo("x".to_owned())),
            (".dump", Command::Dump),
            ("\\echo  two  words", Command::Echo("two  words".into())),
            ("\\set scale 0.01", Command::Set(Some(("scale".into(), "0.01".into())))),
            ("\\set who 'O''Brien'", Command::Set(Some(("who".into(), "O'Brien".into())))),
            ("\\set", Command::Set(None)),
            ("\\default scale 0.1", Command::Default("scale".into(), "0.1".into())),
            ("\\unset who", Command::Unset("who".into())),
            (".heatmap t", Command::Heatmap("SHOW TRAFFIC FROM t".into(), None)),
            (".heatmap simulated", Command::Heatmap("SHOW TRAFFIC FROM simulated".into(), None)),
            (
                ".heatmap my t 'a.html'",
                Command::Heatmap("SHOW TRAFFIC FROM \"my t\"".into(), Some("a.html".into())),
            ),
            (
                ".heatmap simulate writes on t  w.html;",
                Command::Heatmap("simulate writes on t".into(), Some("w.html".into())),
            ),
            (".exit", Command::Quit),
        ];
        for (line, command) in cases {
            assert!(is_command(line));
            assert_eq!(parse(line).unwrap(), command, "{line}");
        }
    }

    #[test]
    fn mistakes_are_answered_with_the_fix() {
        let cases = [
            (
                ".tabels",
                "error: there is no command .tabels\n hint: did you mean .tables? .help lists the commands",
            ),
            ("\\zzzzzz", "error: there is no command \\zzzzzz\n hint: .help lists the commands"),
            (
                ".tim",
                "error: there is no command .tim\n hint: did you mean .timing? .help lists the commands",
            ),
            (".mode xml", "error: there is no mode \"xml\"\n hint: table, csv, jsonl or markdown"),
            (".timing maybe", "error: \"maybe\" is neither on nor off"),
            (".expanded maybe", "error: \"maybe\" is none of on, off and auto"),
            (".read", "error: a file is missing"),
            (
                ".import",
                "error: there is no command .import\n hint: COPY t FROM 'file.csv'; COPY t TO 'file.csv' writes one",
            ),
            (
                "\\h select",
                "error: there is no help on select here\n \
                 hint: .help lists the commands; the guide has a table of statements",
            ),
            ("\\watch 0", "error: \"0\" is no pause\n hint: write seconds, from 0.1 to 86400: .watch 5"),
            (
                "\\! ls",
                "error: there is no command \\!\n hint: Ctrl-Z leaves for a moment, and fg comes back",
            ),
            (
                ".mode json",
                "error: there is no mode \"json\"\n hint: .mode jsonl writes an object for each row",
            ),
            (
                ".dump t",
                "error: the dump of t alone is not possible\n hint: .dump writes all tables; .schema TABLE the definitions of one",
            ),
            (
                ".bail on",
                "error: there is no command .bail\n hint: a script stops at its first error; rowkeydb run --keep-going goes on",
            ),
            (".width x", "error: \"x\" is not a width\n hint: for example: .width 40"),
        ];
        for (line, message) in cases {
            assert_eq!(parse(line).unwrap_err().to_string(), message, "{line}");
        }
    }

    #[test]
    fn inside_of_a_statement_a_line_may_be_sql() {
        for line in ["\\gset", "\\gset x", " \\?", ".tabels", ".tabels\n"] {
            assert!(is_meant(line), "{line}");
        }
        for line in [".name FROM t", ".name,", ".5", ".x", "\\.", "!= 3", "name"] {
            assert!(!is_meant(line), "{line}");
        }
    }

    #[test]
    fn a_command_may_be_any_text() {
        for line in [".", "\\", "\\é", ".;", "\\\\"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn help_lists_every_command_once() {
        assert!(help().lines().all(|line| line.len() <= HELP_WIDTH), "{}", help());
        for spec in COMMANDS {
            assert_eq!(help().matches(&format!(".{} ", spec.names[0])).count(), 1, "{}", spec.names[0]);
        }
    }
}
