//! Golden scripts: `tests/plans/*` say SQL, and what it prints, plans or writes.
//!
//! ```text
//! > SELECT ...         the result
//! [plan]> SELECT ...   its plan, as EXPLAIN prints it
//! [ops]> UPDATE ...    what it writes to the store, in order
//! !> INSERT ...        the error
//! ```
//!
//! A line goes on after `\`. `UPDATE_GOLDENFILES=1 cargo test --test it goldens` writes the scripts anew:
//! then read the diff.

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use goldenscript::{Command, Context};
use parking_lot::Mutex;
use rowkeydb::Database;
use rowkeydb::shell::{Console, Place, Settings};
use rowkeydb::store::MemoryStore;

use crate::traced::{Trace, TracedStore};

/// Text written so far; clones share it.
#[derive(Clone, Default)]
struct Sheet(Arc<Mutex<Vec<u8>>>);

impl Sheet {
    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock())).expect("the shell writes UTF-8")
    }
}

impl Write for Sheet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A shell on a new database in memory.
struct Runner {
    console: Console,
    database: Database,
    trace: Trace,
    out: Sheet,
    err: Sheet,
}

impl Runner {
    fn new() -> Runner {
        let (store, trace) = TracedStore::new(MemoryStore::new());
        let database = Database::over_store(Box::new(store)).expect("a new database");
        let (out, err) = (Sheet::default(), Sheet::default());
        let (to_out, to_err) = (Box::new(out.clone()), Box::new(err.clone()));
        let console = Console::new(database.clone(), Settings::default(), to_out, to_err);
        Runner { console, database, trace, out, err }
    }

    fn statement(&mut self, sql: &str) -> Result<String, Box<dyn Error>> {
        let step = self.console.statement(sql, &Place::TOP);
        let (out, err) = (self.out.take(), self.err.take());
        match step {
            Ok(()) => Ok(err + &out),
            Err(_) => Err(err.trim_end().strip_prefix("error: ").unwrap_or(&err).into()),
        }
    }
}

impl goldenscript::Runner for Runner {
    type Command = Command;

    fn run(&mut self, command: &Command, context: &Context) -> Result<String, Box<dyn Error>> {
        let sql = &command.name;
        let is = |tag: &str| context.tags.contains(tag);
        self.trace.take();
        let printed = self.statement(&if is("plan") { format!("EXPLAIN {sql}") } else { sql.clone() })?;
        let lines = match is("ops") {
            true => self.database.show_mutations(&self.trace.take())?,
            false => vec![printed.trim_end().to_owned()],
        };
        match lines.is_empty() {
            true => Ok("nothing written\n".to_owned()),
            false => Ok(lines.join("\n") + "\n"),
        }
    }
}

fn script(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans").join(name);
    goldenscript::run(&mut Runner::new(), path).expect("the script can be read");
}

#[test]
fn parts() {
    script("parts");
}

#[test]
fn paths() {
    script("paths");
}

#[test]
fn indexes() {
    script("indexes");
}

#[test]
fn finds() {
    script("finds");
}

#[test]
fn joins() {
    script("joins");
}

#[test]
fn layouts() {
    script("layouts");
}

#[test]
fn order() {
    script("order");
}

#[test]
fn firsts() {
    script("firsts");
}

#[test]
fn foreign_keys() {
    script("foreign_keys");
}

#[test]
fn formulas() {
    script("formulas");
}

#[test]
fn functions() {
    script("functions");
}

#[test]
fn groups() {
    script("groups");
}

#[test]
fn guards() {
    script("guards");
}

#[test]
fn extremes() {
    script("extremes");
}

#[test]
fn hints() {
    script("hints");
}

#[test]
fn several() {
    script("several");
}

#[test]
fn skips() {
    script("skips");
}

#[test]
fn statistics() {
    script("statistics");
}

#[test]
fn with() {
    script("with");
}

#[test]
fn writes() {
    script("writes");
}

#[test]
fn keys() {
    script("keys");
}

#[test]
fn lint() {
    script("lint");
}

#[test]
fn seeks() {
    script("seeks");
}

#[test]
fn regions() {
    script("regions");
}

#[test]
fn rekey() {
    script("rekey");
}

#[test]
fn simulations() {
    // Where its file goes; what is built may lie elsewhere.
    std::fs::create_dir_all("target").unwrap();
    script("simulations");
}

#[test]
fn advice() {
    script("advice");
}

#[test]
fn changes() {
    script("changes");
}

#[test]
fn migrations() {
    script("migrations");
}
