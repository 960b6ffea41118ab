//! Rows.
pub mod json;
