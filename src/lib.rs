//! RowkeyDB: SQL over sorted keys.

pub mod demo;
pub mod engine;
pub mod error;
pub mod key;
pub mod row;
pub mod shell;
pub mod sql;
pub mod store;
pub mod value;
