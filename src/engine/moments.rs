//! Snapshots that users hold: named ones, which queries can read later, and read views.
//!
//! Nothing is copied: while a snapshot is held, the store does not reuse the pages that it sees. Snapshots
//! end with the process.

use std::sync::Arc;

use parking_lot::RwLock;
use sqlparser::ast::Ident;

use super::api::Rows;
use super::ddl::new_name;
use super::{Database, Session};
use crate::df::query::{Moment, Moments};
use crate::error::{Error, Result, sqlstate};
use crate::sql::{is_our_schema, name_of, span_of_name};
use crate::value::Value;

/// Named snapshots (count), at most: the store has room for a thousand, including those of running queries.
const HELD_MAX: usize = 64;

/// Named snapshots. A query that reads one keeps it alive, even after DROP SNAPSHOT.
#[derive(Default)]
pub struct NamedSnapshots(RwLock<Arc<Moments>>);

impl NamedSnapshots {
    /// The named snapshots that exist now.
    pub fn now(&self) -> Arc<Moments> {
        Arc::clone(&self.0.read())
    }
}

/// CREATE SNAPSHOT: names everything committed so far.
pub fn create(db: &Database, ident: &Ident) -> Result<()> {
    let name = new_name(ident)?;
    let mut held = db.shared.held.0.write();
    let refused = if is_our_schema(&name) {
        Error::invalid(format!("\"{name}\" is the schema of the tables as they are now"))
            .hint("take another name for the snapshot")
    } else if held.contains_key(&name) {
        Error::invalid(format!("there is a snapshot \"{name}\" already"))
            .hint("DROP SNAPSHOT ends it")
            .state(sqlstate::DUPLICATE_TABLE)
    } else if held.len() >= HELD_MAX {
        Error::invalid("too many snapshots")
            .why(format!("at most {HELD_MAX} are held at once"))
            .hint("DROP SNAPSHOT ends one; SHOW SNAPSHOTS lists them")
            .state(sqlstate::LIMIT)
    } else {
        Arc::make_mut(&mut held).insert(name, moment_of(db)?);
        return Ok(());
    };
    Err(refused.at(span_of_name(ident)))
}

/// Everything committed so far.
fn moment_of(db: &Database) -> Result<Moment> {
    let (catalog, snapshot) = db.view()?;
    Ok(Moment { catalog, snapshot, as_of_us: db.now_us() })
}

/// DROP SNAPSHOT. Queries that are reading it are not affected.
pub fn drop(db: &Database, ident: &Ident, if_exists: bool) -> Result<()> {
    let name = name_of(ident);
    let mut held = db.shared.held.0.write();
    match Arc::make_mut(&mut held).remove(&name) {
        None if !if_exists => Err(Error::invalid(format!("there is no snapshot \"{name}\""))
            .hint("SHOW SNAPSHOTS lists them")
            .state(sqlstate::UNDEFINED_OBJECT)
            .at(span_of_name(ident))),
        _ => Ok(()),
    }
}

/// A consistent view of the database as of one moment, for any number of queries in any number of threads.
/// Clones share it.
///
/// Writers go on meanwhile, unseen by the view. As long as it is held, what it sees takes up space in the
/// file, even if changed or deleted since.
///
/// ```
/// # fn main() -> rowkeydb::Result<()> {
/// # let db = rowkeydb::Database::in_memory()?;
/// # db.execute("CREATE TABLE t (id INT PRIMARY KEY)")?;
/// let before = db.read_view()?;
/// db.execute("INSERT INTO t VALUES (1)")?;
/// assert_eq!(before.query("SELECT * FROM t")?.count(), 0);
/// assert_eq!(db.query("SELECT * FROM t")?.count(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ReadView {
    db: Database,
    moment: Moment,
}

impl std::fmt::Debug for ReadView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReadView({:?}, version {})", self.db, self.moment.snapshot.version())
    }
}

impl Database {
    /// A view of everything committed so far, to be queried any number of times.
    pub fn read_view(&self) -> Result<ReadView> {
        Ok(ReadView { db: self.clone(), moment: moment_of(self)? })
    }
}

impl ReadView {
    /// Runs a query; rows are read as you iterate. Errors: the statement writes.
    pub fn query(&self, sql: &str) -> Result<Rows> {
        self.query_with(sql, &[])
    }

    /// [`ReadView::query`] with values for `$1`, `$2`, ...
    pub fn query_with(&self, sql: &str, params: &[Value]) -> Result<Rows> {
        self.session().query(sql, params)
    }

    /// A session in a `READ ONLY` transaction that sees this view.
    pub fn session(&self) -> Session {
        let mut session = self.db.session();
        session.read_at(&self.moment);
        session
    }
}
