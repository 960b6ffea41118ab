//! Integration tests, one binary.

mod backup;
mod bulk;
mod carets;
mod check;
mod cli;
mod concurrent;
mod crash;
mod damage;
mod dice;
mod engines;
mod examples;
mod faults;
mod formulas;
mod fuzz;
mod goldens;
mod hostile;
mod indexes;
mod isolation;
mod layers;
mod limits;
mod plans;
mod rekey;
mod reopen;
mod slt;
mod sqlite;
mod tpch;
