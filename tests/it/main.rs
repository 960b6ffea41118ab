//! Integration tests, one binary.

mod cli;
mod concurrent;
mod indexes;
mod reopen;
mod slt;
