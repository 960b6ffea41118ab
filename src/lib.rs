//! RowkeyDB: SQL over sorted keys.

pub mod access;
pub mod catalog;
pub mod demo;
pub mod df;
pub mod engine;
pub mod error;
pub mod exec;
pub mod index;
pub mod key;
pub mod plan;
pub mod row;
pub mod schema;
pub mod shell;
pub mod sql;
pub mod store;
pub mod suggest;
pub mod txn;
pub mod value;

pub use engine::{Database, Options, Outcome, Row, Rows, Session};
pub use error::{Error, Kind, Result};
pub use value::Value;
