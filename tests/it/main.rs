//! Integration tests, one binary.

mod bulk;
mod concurrent;
mod examples;
mod goldens;
mod indexes;
mod tpch;
