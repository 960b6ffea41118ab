//! Moments that are held: snapshots by name, which queries go back to, and read views.
//!
//! Nothing is copied: the store does not reuse what they see as long as they are held. They end with the process.

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

/// Snapshots held by name at the most: the store has room for a thousand, those of running queries included.
const HELD_MAX: usize = 64;

/// Snapshots by name. Whoever reads one keeps it, dropped or not.
#[derive(Default)]
pub struct Held(RwLock<Arc<Moments>>);

impl Held {
    /// Those that there are now.
    pub fn now(&self) -> Arc<Moments> {
        Arc::clone(&self.0.read())
    }
}

/// CREATE SNAPSHOT: all that is committed now, by a name.
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

/// All that is committed now.
fn moment_of(db: &Database) -> Result<Moment> {
    let (catalog, snapshot) = db.view()?;
    Ok(Moment { catalog, snapshot, as_of_us: db.now_us() })
}

/// DROP SNAPSHOT. Queries that read it go on.
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

/// The database at one moment, for any number of queries in any number of threads. Clones share it.
///
/// Writers go on meanwhile, and nothing of that shows. As long as it is held, what it sees takes its place in the
/// file, changed or deleted as it may be by now.
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
    /// Everything that is committed now, to be read as often as need be.
    pub fn read_view(&self) -> Result<ReadView> {
        Ok(ReadView { db: self.clone(), moment: moment_of(self)? })
    }
}

impl ReadView {
    /// Runs a query; its rows are read while they are iterated. Errors: the statement writes.
    pub fn query(&self, sql: &str) -> Result<Rows> {
        self.query_with(sql, &[])
    }

    /// [`ReadView::query`] with values for `$1`, `$2`, ...
    pub fn query_with(&self, sql: &str, params: &[Value]) -> Result<Rows> {
        self.session().query(sql, params)
    }

    /// A session in a `READ ONLY` transaction of this moment.
    pub fn session(&self) -> Session {
        let mut session = self.db.session();
        session.read_at(&self.moment);
        session
    }
}
