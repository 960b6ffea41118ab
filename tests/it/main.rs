//! Integration tests, one binary.

mod bulk;
mod smoke;
mod tpch;
