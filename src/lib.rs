//! RowkeyDB: SQL over sorted keys.
//!
//! Declare which bytes a table's rowkey is made of; the engine turns `WHERE` into GETs and key ranges, keeps
//! index tables in step with every write, and shows each range it reads.
//!
//! ```
//! # fn main() -> rowkeydb::Result<()> {
//! let db = rowkeydb::Database::in_memory()?;
//! db.execute("CREATE TABLE orders (order_id BIGINT, item TEXT, PRIMARY KEY (reverse(lpad(order_id, 12))))")?;
//! db.execute("INSERT INTO orders VALUES (240001000000, 'tea')")?;
//! let plan = db.query("EXPLAIN SELECT item FROM orders WHERE order_id = 240001000000")?.next().unwrap()?;
//! assert_eq!(plan.get::<String>("plan")?, "Get orders keys=1 ['000000100042' <- order_id=240001000000]");
//! # Ok(())
//! # }
//! ```
//!
//! A [`Database`] is opened, queried and cloned freely; a [`Session`] is one connection, with its
//! transaction. [`architecture`] is the tour of everything below.

#![warn(missing_docs)]
// The modules' own texts are for those who work on them, and lead into what is private.
#![allow(rustdoc::private_intra_doc_links)]

pub mod access;
pub mod catalog;
pub mod demo;
pub mod design;
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

#[doc = include_str!("ARCHITECTURE.md")]
pub mod architecture {}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use engine::{Database, Engine, Options, Outcome, Row, Rows, Session};
pub use error::{Error, Kind, Result};
pub use value::Value;
