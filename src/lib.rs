//! RowkeyDB: SQL over sorted keys.

pub mod error;
pub mod key;
pub mod plan;
pub mod store;
pub mod value;
