//! Integration tests, one binary.

mod bulk;
mod carets;
mod check;
mod cli;
mod concurrent;
mod crash;
mod dice;
mod examples;
mod goldens;
mod hostile;
mod indexes;
mod isolation;
mod layers;
mod plans;
mod reopen;
mod slt;
mod sqlite;
mod tpch;
