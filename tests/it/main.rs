//! Integration tests, one binary.

mod bulk;
mod concurrent;
mod tpch;
