//! RowkeyDB: an embedded SQL database over sorted keys.
//!
//! A table's PRIMARY KEY declares the bytes of its rowkeys. The engine turns `WHERE` into GETs and key
//! ranges, updates indexes with every write, and shows each range that it reads in EXPLAIN.
//!
//! ```
//! # fn main() -> rowkeydb::Result<()> {
//! let db = rowkeydb::Database::in_memory()?;
//! db.execute("CREATE TABLE orders (order_id BIGINT, item TEXT, PRIMARY KEY (reverse(lpad(order_id, 12))))")?;
//! db.execute("INSERT INTO orders VALUES (240001000000, 'tea')")?;
//! let item: String = db.query("SELECT item FROM orders WHERE order_id = 240001000000")?.one()?.get("item")?;
//! assert_eq!(item, "tea");
//! let mut plan = db.query("EXPLAIN SELECT item FROM orders WHERE order_id = 240001000000")?;
//! let read: String = plan.next().expect("a line")?.get("plan")?;
//! assert_eq!(read, "Get orders keys=1 ['000000100042' <- order_id=240001000000]");
//! # Ok(())
//! # }
//! ```
//!
//! A [`Database`] is opened once and cloned freely; a [`Session`] is one connection, with its transaction.
//! [`guide`] is for its users, by subject; [`architecture`] is a tour of everything below.

#![warn(missing_docs)]
// Module docs are written for contributors, and link to private items.
#![allow(rustdoc::private_intra_doc_links)]

mod access;
#[doc(hidden)]
pub mod catalog;
#[doc(hidden)]
pub mod demo;
#[doc(hidden)]
pub mod design;
mod df;
#[doc(hidden)]
pub mod engine;
#[doc(hidden)]
pub mod error;
mod exec;
mod index;
#[doc(hidden)]
pub mod key;
#[doc(hidden)]
pub mod plan;
#[doc(hidden)]
pub mod row;
#[doc(hidden)]
pub mod schema;
#[doc(hidden)]
pub mod shell;
#[doc(hidden)]
pub mod sql;
#[doc(hidden)]
pub mod store;
mod suggest;
mod txn;
#[doc(hidden)]
pub mod value;

#[doc = include_str!("ARCHITECTURE.md")]
pub mod architecture {}

/// What a user should know, by subject: what is too long for the README.
pub mod guide {
    #[doc = include_str!("guide/statements.md")]
    pub mod statements {}

    #[doc = include_str!("guide/keys.md")]
    pub mod keys {}

    #[doc = include_str!("guide/plans.md")]
    pub mod plans {}

    #[doc = include_str!("guide/design.md")]
    pub mod design {}

    #[doc = include_str!("guide/versions.md")]
    pub mod versions {}

    #[doc = include_str!("guide/safety.md")]
    pub mod safety {}

    #[doc = include_str!("guide/engines.md")]
    pub mod engines {}
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use engine::{
    CancelHandle, ColumnIndex, Database, Durability, Engine, FromValue, OnProgress, Options, Outcome,
    OutputColumn, Prepared, Progress, ReadView, Row, RowStream, Rows, Session, TableHandle, TableScan,
    Warning,
};
pub use error::{Error, Kind, Result, Span, sqlstate};
pub use key::Rowkey;
pub use value::{ColumnType, Literal, Value, ValueRef};
