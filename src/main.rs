//! The `rowkeydb` command: a shell, a script runner, a demo.

use std::fmt;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory, Parser, Subcommand};
use rowkeydb::demo;
use rowkeydb::engine::{self, Database, Engine};
use rowkeydb::error::{Error, Result, counted};
use rowkeydb::shell::script::{self, Input, ScriptSource};
use rowkeydb::shell::{self, Console, Halt, OutputFormat, ProgressLine, Settings, Step, Variables};

/// mimalloc: rows and statements make many small allocations, and an INSERT takes a fifth less work with it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const EXAMPLES: &str = "\
Examples:
  rowkeydb                              a shell on a database in memory
  rowkeydb shop                         a shell on the database in the folder shop
  rowkeydb shop -c 'SHOW TABLES'        one statement, or several with ; between them
  rowkeydb run --db shop load.sql       a script
  rowkeydb run --set day=7 report.sql   a script in which :day is 7
  echo 'SELECT 1;' | rowkeydb run -     statements as they arrive
  rowkeydb run --input jsonl -          {\"sql\": \"...\", \"params\": [...]} in, one JSON object out

Exit status: 0 when everything succeeded, 1 when a statement failed, 2 when the command line is wrong.";

const HEATMAP: &str = "\
Examples:
  rowkeydb heatmap --db shop 'SIMULATE WRITES ON orders INTO 16 REGIONS UNDER LAYOUT (order_time, order_id)'
  rowkeydb heatmap --setup 'CREATE TABLE t (id BIGINT PRIMARY KEY)' \\
    'SIMULATE WRITES ON t FROM (SELECT value AS id FROM generate_series(1, 100000) ORDER BY 1)
     UNDER LAYOUT (reverse(lpad(id, 12))), LAYOUT (md5_bucket(id, 16), id)'";

/// SQL over sorted keys: declare the rowkey, see every range it reads.
#[derive(Parser)]
#[command(name = "rowkeydb", version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
struct Cli {
    /// Folder of the database, made if it is not there; without it: in memory
    #[arg(conflicts_with = "db_option")]
    db: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Args, Default)]
struct Options {
    /// Folder of the database
    #[arg(long = "db", value_name = "DB")]
    db_option: Option<PathBuf>,
    /// What keeps a new database: lmdb (quickest) or lsm (smallest on the disk)
    #[arg(long, value_name = "ENGINE", value_parser = engine_named)]
    engine: Option<Engine>,
    /// Only read it, beside another process that has it open
    #[arg(long)]
    read_only: bool,
    /// Run these statements, then stop
    #[arg(short = 'c', long = "command", value_name = "SQL")]
    sql: Vec<String>,
    /// How results are written [default: table; jsonl with --input jsonl]
    #[arg(long, value_enum, hide_default_value = true)]
    format: Option<OutputFormat>,
    /// Go on after an error; the exit status is still 1
    #[arg(long)]
    keep_going: bool,
    /// What the lines of a script are
    #[arg(long, value_enum, default_value_t)]
    input: Input,
    /// Set a variable, written :NAME, :'NAME' or :"NAME" in SQL
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = assignment)]
    variables: Vec<(String, String)>,
}

#[derive(Subcommand)]
enum Command {
    /// Run scripts, one after the other, on one connection
    #[command(after_help = EXAMPLES)]
    Run {
        /// Scripts; - is standard input
        #[arg(value_name = "FILE", required_unless_present = "sql")]
        files: Vec<String>,
        #[command(flatten)]
        options: Options,
    },
    /// Write a database as an SQL script to standard output
    Dump {
        /// Folder of the database
        db: PathBuf,
    },
    /// Make a database of a backup that BACKUP TO 'folder' wrote
    Restore {
        /// Folder of the backup
        backup: PathBuf,
        /// Folder of the new database, which must not exist yet
        db: PathBuf,
        /// What keeps the new database: lmdb or lsm [default: what keeps the backup]
        #[arg(long, value_name = "ENGINE", value_parser = engine_named)]
        engine: Option<Engine>,
    },
    /// Print the entries of a table, index, family or the catalog: key in hex, then decoded
    Keydump {
        /// Folder of the database
        db: PathBuf,
        /// orders, orders_by_buyer, orders.details or catalog
        keyspace: String,
        /// Only keys that start with this text, or with these bytes if written 0x0a0b
        #[arg(long, default_value = "", hide_default_value = true)]
        prefix: String,
        /// So many entries at the most
        #[arg(long, value_name = "N", default_value_t = 1000)]
        limit: u64,
    },
    /// Draw where writes would go: a page of HTML, and blocks in the terminal
    #[command(after_help = HEATMAP)]
    Heatmap {
        /// Folder of the database; without it: in memory, for what --setup makes
        #[arg(long, value_name = "DB")]
        db: Option<PathBuf>,
        /// A SIMULATE statement, or SHOW TRAFFIC FROM a table that --setup reads and writes
        statement: String,
        /// Statements to run before, such as a CREATE TABLE that is being thought about
        #[arg(long, value_name = "SQL")]
        setup: Vec<String>,
        /// Where the page is written
        #[arg(short, long, value_name = "FILE", default_value = "heatmap.html")]
        out: PathBuf,
    },
    /// Fill a database with a marketplace and open the shell on it
    Demo {
        /// How many orders, up to 10 million
        #[arg(long, value_name = "N", default_value_t = 100_000,
              value_parser = clap::value_parser!(u64).range(1..=demo::ORDERS_MAX))]
        orders: u64,
        /// Folder of the database, made if it is not there; without it: in memory
        db: Option<PathBuf>,
        /// What keeps a new database: lmdb or lsm
        #[arg(long, value_name = "ENGINE", value_parser = engine_named)]
        engine: Option<Engine>,
    },
}

impl Options {
    /// How the database is opened.
    fn opening(&self) -> engine::Options {
        engine::Options { engine: self.engine, read_only: self.read_only, ..Default::default() }
    }
}

fn engine_named(name: &str) -> Result<Engine, String> {
    name.parse().map_err(|_| format!("write {}", Engine::ALL.map(Engine::name).join(" or ")))
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    // Validated here, so that a bad name ends the command with status 2.
    Variables::default().set(name, value).map_err(|e| match e.fix() {
        Some(fix) => format!("{}: {fix}", e.what()),
        None => e.what().to_owned(),
    })?;
    Ok((name.to_owned(), value.to_owned()))
}

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| refused(&error));
    let ended = match cli.command {
        Some(Command::Run { files, options }) => run(on_disk(options.db_option.clone()), &options, &files),
        Some(Command::Dump { db }) => dump(&db),
        Some(Command::Restore { backup, db, engine }) => restore(&backup, &db, engine),
        Some(Command::Keydump { db, keyspace, prefix, limit }) => keydump(&db, &keyspace, &prefix, limit),
        Some(Command::Heatmap { db, statement, setup, out }) => heatmap(db, &setup, &statement, &out),
        Some(Command::Demo { orders, db, engine }) => run_demo(on_disk(db), engine, orders),
        None => {
            if let Some(error) = cli.db.as_deref().and_then(misspelt) {
                eprintln!("{error}");
                return ExitCode::from(2);
            }
            let db = on_disk(cli.db.or_else(|| cli.options.db_option.clone()));
            if cli.options.sql.is_empty() && io::stdin().is_terminal() {
                open_shell(db, &cli.options)
            } else if cli.options.sql.is_empty() {
                run(db, &cli.options, &["-".to_owned()])
            } else {
                run(db, &cli.options, &[])
            }
        }
    };
    ended.unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::FAILURE
    })
}

/// Ends a wrong command line. clap takes what follows a database for a command.
fn refused(error: &clap::Error) -> ! {
    if let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg)
        && matches!(&option[..], "-f" | "--file")
    {
        let error = Error::invalid(format!("there is no option {option}"));
        eprintln!("{}", error.hint("scripts stand behind run: rowkeydb run --db shop load.sql"));
        std::process::exit(2)
    }
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand) else { error.exit() };
    let is_command = Cli::command().find_subcommand(given).is_some();
    let hint = if shell::looks_like_statement(given) {
        "a statement stands behind -c: rowkeydb shop -c 'SHOW TABLES'"
    } else if is_command && given == "run" || Path::new(given).is_file() {
        "name the database by --db: rowkeydb run --db shop load.sql"
    } else if is_command {
        "the command stands first, as in rowkeydb dump shop"
    } else {
        "statements stand behind -c: rowkeydb shop -c 'SHOW TABLES'; rowkeydb --help lists the commands"
    };
    eprintln!("{}", Error::invalid(format!("{given} cannot stand behind a database")).hint(hint));
    std::process::exit(2)
}

/// Catches mistyped subcommands, statements and scripts: `rowkeydb rnu` would create a database in a folder called rnu.
fn misspelt(folder: &Path) -> Option<Error> {
    let word = folder.to_str()?;
    let is_script = folder.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("sql"));
    if folder.is_file() && is_script {
        return Some(
            Error::invalid(format!("{word} is a script, and no folder of a database"))
                .hint(format!("rowkeydb run {word} runs it")),
        );
    }
    if folder.exists() {
        return None;
    }
    if is_script {
        return Some(
            Error::invalid(format!("there is no script {word}"))
                .hint(format!("for a new database in a folder of that name, write ./{word}")),
        );
    }
    if shell::looks_like_statement(word) {
        return Some(
            Error::invalid("this is a statement, and no folder of a database")
                .hint(format!("write -c in front of it; for a new database in that folder, write ./{word}")),
        );
    }
    let command = Cli::command();
    // clap adds these two.
    let names = command.get_subcommands().map(|c| c.get_name()).chain(["help", "version"]);
    let meant = match shell::did_you_mean(word, names)? {
        "version" => "--version",
        meant => meant,
    };
    Some(
        Error::invalid(format!("there is no command {word}, and no folder of that name"))
            .hint(format!("did you mean {meant}? For a new database in that folder, write ./{word}")),
    )
}

/// Runs `-c` statements, then files.
fn run(db: Option<PathBuf>, options: &Options, files: &[String]) -> Result<ExitCode> {
    let files: Vec<ScriptSource> = files.iter().map(|file| ScriptSource::named(file)).collect();
    if !options.keep_going {
        // Check this before creating a database for scripts that do not exist.
        files.iter().try_for_each(ScriptSource::check)?;
    }
    let mut console = console(open(db, options.opening())?, options)?;
    let texts = options.sql.iter().map(|sql| (ScriptSource::Text(sql.clone()), Input::Sql));
    let files = files.into_iter().map(|file| (file, options.input));
    let step = texts.chain(files).try_for_each(|(source, input)| script::run(&mut console, &source, input));
    Ok(ended(console, step))
}

fn open_shell(db: Option<PathBuf>, options: &Options) -> Result<ExitCode> {
    let name = named(&db, options.read_only);
    let mut console = console(open(db, options.opening())?, options)?;
    prompt(&mut console, &name)?;
    Ok(ExitCode::SUCCESS)
}

fn run_demo(db: Option<PathBuf>, engine: Option<Engine>, orders: u64) -> Result<ExitCode> {
    let name = named(&db, false);
    let progress = ProgressLine::default();
    let database = open(db, engine::Options { engine, ..Default::default() })?;
    let loaded = demo::run(&database, orders, progress.observer());
    progress.clear();
    report(format_args!("{}\n", loaded?))?;
    if io::stdin().is_terminal() && io::stdout().is_terminal() {
        let mut console = console(database, &Options::default())?;
        prompt(&mut console, &name)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn dump(db: &Path) -> Result<ExitCode> {
    match Database::open_read_only(db)?.dump(&mut BufWriter::new(io::stdout().lock())) {
        // The reader of the pipe has seen enough, as in `| head`.
        Err(e) if is_broken_pipe(&e) => Ok(ExitCode::SUCCESS),
        ended => ended.map(|()| ExitCode::SUCCESS),
    }
}

fn is_broken_pipe(error: &Error) -> bool {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    source.is_some_and(|source| source.kind() == io::ErrorKind::BrokenPipe)
}

/// Copies a backup, which is a database, and verifies its checksums.
fn restore(backup: &Path, db: &Path, engine: Option<Engine>) -> Result<ExitCode> {
    let backup = Database::open_read_only(backup)?;
    let entries = match engine {
        Some(engine) => backup.backup_into(db, engine)?,
        None => backup.backup(db)?,
    };
    report(format_args!("restored {} to {}\n", counted(entries, "entry"), db.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn keydump(db: &Path, keyspace: &str, prefix: &str, limit: u64) -> Result<ExitCode> {
    let prefix = match prefix.strip_prefix("0x") {
        Some(digits) => bytes_of_hex(digits)?,
        None => prefix.as_bytes().to_vec(),
    };
    let database = Database::open_read_only(db)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut closed = false;
    let more = database.keydump(keyspace, &prefix, limit, &mut |line| match writeln!(out, "{line}") {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
            closed = true;
            Err(e.into())
        }
        written => Ok(written?),
    });
    match more {
        // The reader of the pipe has seen enough, as in `| head`.
        Err(_) if closed => return Ok(ExitCode::SUCCESS),
        Err(e) => return Err(e),
        Ok(more) => {
            out.flush()?;
            if more {
                eprintln!("-- more entries follow: --limit N prints more, --prefix only some");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn heatmap(db: Option<PathBuf>, setup: &[String], statement: &str, out: &Path) -> Result<ExitCode> {
    let database = match db {
        None => Database::in_memory()?,
        Some(db) if setup.is_empty() || !Database::is_at(&db) => Database::open_read_only(&db)?,
        Some(db) => Database::open(&db)?,
    };
    let mut session = database.session();
    for sql in setup {
        let outcome = session.execute(sql, &[])?;
        outcome.warnings.iter().for_each(|warning| eprintln!("{warning}"));
        // The reads are counted, so read all rows.
        outcome.rows.into_iter().try_for_each(|batch| batch.map(drop))?;
    }
    let pictures = session.heatmap(statement)?;
    std::fs::write(out, pictures.html())
        .map_err(|e| Error::from(e).why(format!("{} cannot be written", out.display())))?;
    report(format_args!("{}{} has the pictures\n", pictures.blocks(has_color()), out.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a result. A closed pipe, as in `| head`, is no error.
fn report(text: fmt::Arguments<'_>) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_fmt(text).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::from(e).why("results cannot be written"))
        }
        _ => Ok(()),
    }
}

fn bytes_of_hex(digits: &str) -> Result<Vec<u8>> {
    // A number may have a sign, a digit has none.
    let is_hex = |pair: &&str| pair.bytes().all(|digit| digit.is_ascii_hexdigit());
    let pair = |at: usize| digits.get(at..at + 2).filter(is_hex);
    let byte = |at: usize| pair(at).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    bytes.ok_or_else(|| {
        Error::invalid(format!("\"{digits}\" is not hex")).hint("write two digits a byte, as in 0x0a0b")
    })
}

/// Opens a database, showing the progress of interrupted builds that are finished first.
fn open_showing(path: &Path, options: engine::Options) -> Result<Database> {
    let progress = ProgressLine::default();
    let db = Database::open_watched(path, options, progress.observer());
    progress.clear();
    db
}

/// The name of the database in the shell's greeting.
fn named(db: &Option<PathBuf>, is_read_only: bool) -> String {
    match db {
        Some(path) if is_read_only => format!("database {}, for reading only", path.display()),
        Some(path) => format!("database {}", path.display()),
        None => "a database in memory (nothing is kept)".to_owned(),
    }
}

fn prompt(console: &mut Console, name: &str) -> Result<()> {
    shell::repl(console, name)
}

/// The folder of a database; `None` in memory, which SQLite's shell calls `:memory:`.
fn on_disk(db: Option<PathBuf>) -> Option<PathBuf> {
    db.filter(|db| db.as_os_str() != ":memory:")
}

fn open(db: Option<PathBuf>, options: engine::Options) -> Result<Database> {
    let refused = match (db, options.engine, options.read_only) {
        (Some(db), ..) => return open_showing(&db, options),
        (None, None, false) => return Database::in_memory(),
        (None, Some(_), _) => Error::invalid("--engine says what keeps a database on the disk"),
        (None, None, true) => Error::invalid("--read-only reads a database that is on the disk"),
    };
    Err(refused.why("without a folder the database is in memory").hint("name a folder"))
}

fn console(db: Database, options: &Options) -> Result<Console> {
    let default = if options.input == Input::Jsonl { OutputFormat::Jsonl } else { OutputFormat::Table };
    let settings = Settings {
        format: options.format.unwrap_or(default),
        keep_going: options.keep_going,
        color: has_color(),
        ..Settings::default()
    };
    let mut console = Console::new(db, settings, Box::new(io::stdout()), Box::new(io::stderr()));
    for (name, value) in &options.variables {
        console.variables.set(name, value)?;
    }
    Ok(console)
}

/// Stdout is a terminal whose user has not asked for plain text (<https://no-color.org>).
fn has_color() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdout().is_terminal() && !refused && !dumb
}

/// Exit status of a run that ended in `step`.
fn ended(mut console: Console, step: Step) -> ExitCode {
    let step = match step {
        Err(Halt::Quit) => Ok(()),
        step => step,
    };
    match step.and_then(|()| console.close()) {
        // The reader of the pipe has seen enough, as in `| head`.
        Err(Halt::Output(e)) if e.kind() == io::ErrorKind::BrokenPipe => {}
        Err(Halt::Output(e)) => {
            let _ = writeln!(io::stderr(), "{}", Error::from(e).why("results cannot be written"));
            return ExitCode::FAILURE;
        }
        Ok(()) | Err(Halt::Quit | Halt::Failed) => {}
    }
    if console.failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
