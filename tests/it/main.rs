//! Integration tests, one binary.

mod bulk;
mod concurrent;
mod indexes;
mod layers;
mod tpch;
