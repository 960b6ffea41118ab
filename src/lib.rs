//! RowkeyDB: SQL over sorted keys.

pub mod error;
pub mod key;
pub mod sql;
pub mod store;
pub mod value;
