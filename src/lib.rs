//! RowkeyDB: SQL over sorted keys.

pub mod access;
pub mod catalog;
pub mod error;
pub mod exec;
pub mod index;
pub mod key;
pub mod plan;
pub mod row;
pub mod schema;
pub mod store;
pub mod txn;
pub mod value;
