//! Integration tests, one binary.

mod indexes;
