//! Running statements.

pub mod transfer;
