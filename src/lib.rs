//! RowkeyDB: SQL over sorted keys.

pub mod error;
pub mod exec;
pub mod key;
pub mod row;
pub mod store;
pub mod value;
