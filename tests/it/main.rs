//! Integration tests, one binary.

mod concurrent;
mod layers;
