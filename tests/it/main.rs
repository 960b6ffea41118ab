//! Integration tests, one binary.

mod concurrent;
