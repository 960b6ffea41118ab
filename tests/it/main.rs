//! Integration tests, one binary.

mod smoke;
