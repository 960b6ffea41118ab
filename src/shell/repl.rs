//! The interactive prompt: passes typed lines to the [`Feeder`] and [`Console`].
//!
//! ```text
//! rowkeydb> SELECT 1     a statement begins
//!        -> AS n;        and goes on until its semicolon
//! rowkeydb*> COMMIT;     between BEGIN and COMMIT
//! ```
//!
//! Ctrl-C clears the line at the prompt and cancels a running statement; Ctrl-D leaves.

use std::borrow::Cow;
use std::cell::RefCell;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustyline::completion::Pair;
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::history::DefaultHistory;
use rustyline::{ColorMode, CompletionType, Config, Context, Editor, Helper, Hinter, Validator};

use super::commands::is_command;
use super::complete::Completion;
use super::console::{Console, Halt, Step};
use super::highlight::highlight;
use super::pager::Screen;
use super::script::{self, Feeder};
use crate::error::{Error, Result};

const PROMPT: &str = "rowkeydb> ";
const PROMPT_IN_TRANSACTION: &str = "rowkeydb*> ";
const HISTORY_ENTRIES_MAX: usize = 10_000;

/// Runs the prompt until the user leaves. `database` is its name, for the welcome.
///
/// Errors: there is no terminal, or it goes away.
pub fn run(console: &mut Console, database: &str) -> Result<()> {
    println!("RowkeyDB {}, {database}. Type .help for help, .quit to leave.", env!("CARGO_PKG_VERSION"));
    let step = Prompt::new(console)?.run();
    match step.and_then(|()| console.close()) {
        Err(Halt::Output(e)) => Err(e.into()),
        Ok(()) | Err(Halt::Quit | Halt::Failed) => Ok(()),
    }
}

struct Prompt<'a> {
    console: &'a mut Console,
    editor: Editor<PromptHelper, DefaultHistory>,
    history: Option<PathBuf>,
    running: Arc<AtomicBool>,
    feeder: Feeder,
    /// The statement typed so far.
    typed: Rc<RefCell<String>>,
}

impl<'a> Prompt<'a> {
    fn new(console: &'a mut Console) -> Result<Self> {
        let color = console.settings.color;
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .color_mode(if color { ColorMode::Enabled } else { ColorMode::Disabled })
            .auto_add_history(false)
            .build();
        let typed = Rc::default();
        let mut editor = Editor::with_config(config).map_err(no_terminal)?;
        editor.set_max_history_size(HISTORY_ENTRIES_MAX).map_err(no_terminal)?;
        editor.set_helper(Some(PromptHelper {
            before: Rc::clone(&typed),
            completion: Completion::new(console.database().clone()),
            color,
        }));
        let history = history_file();
        if let Some(path) = &history {
            // The history file may not exist yet.
            let _ = editor.load_history(path);
        }
        let running = cancel_on_ctrl_c(console)?;
        Ok(Prompt { console, editor, history, running, feeder: Feeder::new(None), typed })
    }

    fn run(mut self) -> Step {
        loop {
            let prompt = self.prompt();
            match self.editor.readline(prompt.as_str()) {
                Ok(line) => match self.take(&line) {
                    Err(Halt::Quit) => return Ok(()),
                    step => step?,
                },
                Err(ReadlineError::Interrupted) => self.start_over(),
                Err(ReadlineError::Eof) => return Ok(()),
                Err(ReadlineError::Io(e)) => return Err(Halt::Output(e)),
                Err(other) => return Err(Halt::Output(std::io::Error::other(other))),
            }
        }
    }

    fn prompt(&self) -> String {
        let first = if self.console.in_transaction() { PROMPT_IN_TRANSACTION } else { PROMPT };
        if self.feeder.is_open() { format!("{:>1$}", "-> ", first.len()) } else { first.to_owned() }
    }

    /// Adds a line and runs what it completes.
    fn take(&mut self, line: &str) -> Step {
        let line = if self.feeder.is_open() { line } else { plain_word(line).unwrap_or(line) };
        let text = format!("{line}\n");
        self.typed.borrow_mut().push_str(&text);
        let (columns, rows) = self.editor.dimensions().unwrap_or((80, 24));
        self.console.screen = Some(Screen { rows: rows.into(), columns: columns.into() });
        self.running.store(true, Ordering::SeqCst);
        // Pasted text comes as one entry of several lines.
        let step = match script::run_typed(self.console, &text, &mut self.feeder) {
            // The error has been reported; go on with the next entry.
            Err(Halt::Failed) => Ok(()),
            step => step,
        };
        self.running.store(false, Ordering::SeqCst);
        if !self.feeder.is_open() {
            self.remember();
            self.start_over();
        }
        step
    }

    /// Drops the statement typed so far; line numbers start at 1 again.
    fn start_over(&mut self) {
        self.feeder = Feeder::new(None);
        self.typed.borrow_mut().clear();
    }

    /// Adds the statement just run to the history, as one entry.
    fn remember(&mut self) {
        let entry = self.typed.borrow().trim().to_owned();
        if entry.is_empty() || !self.editor.add_history_entry(entry).unwrap_or(false) {
            return;
        }
        if let Some(path) = &self.history {
            // An unwritable history must not stop the user.
            let _ = self.editor.append_history(path);
        }
    }
}

/// The command for a word that all other shells have, if the line is just that.
fn plain_word(line: &str) -> Option<&'static str> {
    match line.trim().trim_end_matches(';').trim_end().to_ascii_lowercase().as_str() {
        "exit" | "quit" => Some(".quit"),
        "help" | "?" => Some(".help"),
        "list" => Some(".tables"),
        _ => None,
    }
}

/// Makes Ctrl-C cancel the running statement; the flag says whether one is running.
fn cancel_on_ctrl_c(console: &Console) -> Result<Arc<AtomicBool>> {
    let running = Arc::new(AtomicBool::new(false));
    let (cancel, watched) = (console.cancel_handle(), Arc::clone(&running));
    ctrlc::set_handler(move || {
        if watched.load(Ordering::SeqCst) {
            cancel.cancel();
        }
    })
    .map_err(|e| Error::internal("Ctrl-C cannot be caught").why(e.to_string()).caused_by(e))?;
    Ok(running)
}

/// `$XDG_STATE_HOME/rowkeydb/history`, by default under `~/.local/state`; `None` without a home directory.
fn history_file() -> Option<PathBuf> {
    let given = env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = given.or_else(|| Some(env::home_dir()?.join(".local/state")))?.join("rowkeydb");
    fs::create_dir_all(&folder).ok()?;
    Some(folder.join("history"))
}

fn no_terminal(e: ReadlineError) -> Error {
    Error::internal("the terminal cannot be used").why(e.to_string()).caused_by(e)
}

#[derive(Helper, Hinter, Validator)]
struct PromptHelper {
    /// The lines above the one being typed.
    before: Rc<RefCell<String>>,
    completion: Completion,
    color: bool,
}

impl rustyline::completion::Completer for PromptHelper {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        self.completion.complete(&self.before.borrow(), line, pos, context)
    }
}

impl Highlighter for PromptHelper {
    fn highlight<'l>(&self, line: &'l str, _pos: usize) -> Cow<'l, str> {
        let before = self.before.borrow();
        let command = before.is_empty() && is_command(line);
        if self.color && !command { Cow::Owned(highlight(&before, line)) } else { Cow::Borrowed(line) }
    }

    fn highlight_char(&self, _line: &str, _pos: usize, _kind: CmdKind) -> bool {
        self.color
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_every_shell() {
        assert!(["exit", "quit;", " EXIT ; "].into_iter().all(|line| plain_word(line) == Some(".quit")));
        assert_eq!(["help", "?", "list"].map(plain_word), [Some(".help"), Some(".help"), Some(".tables")]);
        assert_eq!(plain_word("exit now"), None);
    }
}
