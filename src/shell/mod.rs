//! The shell: SQL text in, results out, for people and for programs.
//!
//! ```text
//! repl (a person)      ─┐                       ┌─ table, render   for people
//! script (files, pipes) ├→ Feeder → Console ────┤
//! -c, jsonl requests   ─┘    │        │         └─ json            for programs
//!                         commands  engine
//! ```
//!
//! A [`Feeder`](script::Feeder) cuts text into statements and command lines. A [`Console`] runs them one at a
//! time: it substitutes variables, calls [`Session::execute`](crate::engine::Session::execute), and writes
//! the outcome in the chosen [`OutputFormat`], and errors with a caret. The prompt and pipes differ only in what
//! feeds it.

pub mod commands;
mod complete;
mod console;
mod highlight;
mod json;
mod keywords;
mod outlet;
mod pager;
mod progress;
mod render;
mod repl;
pub mod script;
mod table;
#[cfg(test)]
mod testing;
mod tokens;
mod variables;

pub use console::{Console, Halt, Place, Settings, Step};
pub use pager::Screen;
pub use progress::ProgressLine;
pub use render::{Expanded, OutputFormat};
pub use repl::run as repl;
pub use variables::Variables;

pub use crate::sql::looks_like_statement;
pub use crate::suggest::did_you_mean;
