//! The Rust API: one-line statements, typed rows and prepared statements.

mod row;

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use serde::de::DeserializeOwned;

use super::Database;
use super::native::TableHandle;
use super::outcome::{Outcome, OutputColumn, RowStream};
use super::plans::Parsed;
use super::runtime::with_stack;
use super::session::Session;
use crate::error::{Error, Result, sqlstate};
use crate::exec::next_rows::NextRows;
use crate::sql::Splitter;
use crate::value::Value;
use row::RowBatch;
pub use row::{ColumnIndex, FromValue, Row};

impl Database {
    /// Runs one statement and gives the number of rows written; rows that it returns are read and dropped.
    /// Each call is a transaction of its own.
    ///
    /// Errors: those of the statement; a statement that only affects later ones, such as BEGIN, SET or
    /// PREPARE, which needs a [`Session`].
    ///
    /// ```
    /// # fn main() -> rowkeydb::Result<()> {
    /// let db = rowkeydb::Database::in_memory()?;
    /// db.execute("CREATE TABLE t (id BIGINT, note TEXT, PRIMARY KEY (reverse(lpad(id, 12))))")?;
    /// assert_eq!(db.execute("INSERT INTO t VALUES (1, 'one'), (2, 'two')")?, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn execute(&self, sql: &str) -> Result<u64> {
        self.execute_with(sql, &[])
    }

    /// [`Database::execute`] with values for `$1`, `$2`, ...
    pub fn execute_with(&self, sql: &str, params: &[Value]) -> Result<u64> {
        written(Session::brief(self.clone()).execute(sql, params)?)
    }

    /// [`Database::execute`] for async code, on a tokio runtime.
    pub async fn execute_async(&self, sql: &str, params: &[Value]) -> Result<u64> {
        let mut outcome = Session::brief(self.clone()).execute_async(sql, params).await?;
        while let Some(batch) = outcome.rows.next_batch().await {
            batch?;
        }
        Ok(outcome.affected.unwrap_or(0))
    }

    /// Runs a query; rows are read as you iterate.
    ///
    /// ```
    /// # fn main() -> rowkeydb::Result<()> {
    /// # let db = rowkeydb::Database::in_memory()?;
    /// # db.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, note TEXT)")?;
    /// # db.execute("INSERT INTO t VALUES (1, 'one'), (2, 'two')")?;
    /// for row in db.query("SELECT id, note FROM t WHERE id >= 2")? {
    ///     let row = row?;
    ///     assert_eq!((row.get::<i64>("id")?, row.get::<String>("note")?), (2, "two".to_owned()));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn query(&self, sql: &str) -> Result<Rows> {
        self.query_with(sql, &[])
    }

    /// [`Database::query`] with values for `$1`, `$2`, ...
    pub fn query_with(&self, sql: &str, params: &[Value]) -> Result<Rows> {
        Ok(Rows::new(Session::brief(self.clone()).execute(sql, params)?.rows))
    }

    /// Runs a query from async code, on a tokio runtime; read its record batches with
    /// [`RowStream::next_batch`].
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> rowkeydb::Result<()> {
    /// # let db = rowkeydb::Database::in_memory()?;
    /// let mut rows = db.query_async("SELECT $1 AS n", &[7.into()]).await?;
    /// while let Some(batch) = rows.next_batch().await {
    ///     assert_eq!(batch?.num_rows(), 1);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn query_async(&self, sql: &str, params: &[Value]) -> Result<RowStream> {
        Ok(Session::brief(self.clone()).execute_async(sql, params).await?.rows)
    }

    /// Parses a statement once, to run it any number of times.
    ///
    /// ```
    /// # fn main() -> rowkeydb::Result<()> {
    /// # let db = rowkeydb::Database::in_memory()?;
    /// # db.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, note TEXT)")?;
    /// let mut put = db.prepare("UPSERT INTO t VALUES ($1, $2)")?;
    /// put.execute(&[1.into(), "one".into()])?;
    /// put.execute(&[2.into(), "two".into()])?;
    /// db.transaction(|tx| {
    ///     put.execute_in(tx, &[3.into(), "three".into()])?;
    ///     put.execute_in(tx, &[4.into(), "four".into()])
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn prepare(&self, sql: &str) -> Result<Prepared> {
        let parsed = Parsed::new(with_stack(|| crate::sql::parse(sql))?);
        Ok(Prepared { parsed, lifted: crate::sql::lift(sql), session: Session::brief(self.clone()) })
    }

    /// Runs a script, statement by statement, in a session of its own.
    ///
    /// Errors: that of the first statement that fails, after which those before it remain done; the script
    /// ends inside a transaction, which is rolled back.
    ///
    /// ```
    /// # fn main() -> rowkeydb::Result<()> {
    /// # let db = rowkeydb::Database::in_memory()?;
    /// db.execute_batch("CREATE TABLE t (id BIGINT PRIMARY KEY); INSERT INTO t VALUES (1)")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn execute_batch(&self, script: &str) -> Result<()> {
        let mut session = self.session();
        session.execute_batch(script)?;
        match session.in_transaction() {
            false => Ok(()),
            true => Err(Error::invalid("the script ends inside a transaction")
                .why("what it did there is undone")
                .hint("end it with COMMIT")
                .state(sqlstate::IN_TRANSACTION)),
        }
    }

    /// Begins a transaction: the session commits with [`Session::commit`], and rolls back when dropped.
    ///
    /// ```
    /// # fn main() -> rowkeydb::Result<()> {
    /// # let db = rowkeydb::Database::in_memory()?;
    /// # db.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, note TEXT)")?;
    /// let mut tx = db.begin()?;
    /// tx.execute("INSERT INTO t VALUES ($1, $2)", &[1.into(), "one".into()])?;
    /// tx.commit()?;
    /// # assert_eq!(db.query("SELECT count(*) FROM t")?.one()?.get::<i64>(0)?, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn begin(&self) -> Result<Session> {
        let mut session = self.session();
        session.execute("BEGIN", &[])?;
        Ok(session)
    }

    /// Runs `work` in a transaction and commits it. If the commit conflicts with another transaction,
    /// everything is rolled back and `work` runs again, up to a hundred times; so it should have no side
    /// effects outside of the database. An error of `work` rolls back.
    ///
    /// ```
    /// # fn main() -> rowkeydb::Result<()> {
    /// # let db = rowkeydb::Database::in_memory()?;
    /// # db.execute("CREATE TABLE accounts (id INT PRIMARY KEY, balance BIGINT)")?;
    /// # db.execute("INSERT INTO accounts VALUES (1, 100), (2, 0)")?;
    /// db.transaction(|tx| {
    ///     tx.execute("UPDATE accounts SET balance = balance - 10 WHERE id = 1", &[])?;
    ///     tx.execute("UPDATE accounts SET balance = balance + 10 WHERE id = 2", &[])
    /// })?;
    /// # assert_eq!(db.query("SELECT balance FROM accounts WHERE id = 2")?.one()?.get::<i64>("balance")?, 10);
    /// # Ok(())
    /// # }
    /// ```
    pub fn transaction<T>(&self, mut work: impl FnMut(&mut Session) -> Result<T>) -> Result<T> {
        let mut session = self.session();
        loop {
            session.execute("BEGIN", &[])?;
            let done = work(&mut session).and_then(|out| match session.in_transaction() {
                true => session.commit().map(|()| out),
                false => Ok(out),
            });
            match done {
                Err(e) => session.again(e)?,
                done => return done,
            }
        }
    }

    /// Access to a table without SQL: get rows by key, scan key ranges.
    pub fn table(&self, name: &str) -> Result<TableHandle> {
        Ok(TableHandle::new(self.clone(), self.catalog().table(name)?))
    }
}

impl Session {
    /// Runs a script, statement by statement. Errors: that of the first that fails; those before it are done.
    pub fn execute_batch(&mut self, script: &str) -> Result<()> {
        let mut splitter = Splitter::new();
        splitter.push(script);
        while let Some(statement) = splitter.next_statement() {
            written(self.execute(&statement.text, &[])?)?;
        }
        splitter.finish().map_or(Ok(()), |last| written(self.execute(&last.text, &[])?).map(drop))
    }

    /// Commits the transaction.
    ///
    /// Errors: `Conflict` if others have changed something it read; then nothing is written.
    pub fn commit(&mut self) -> Result<()> {
        self.execute("COMMIT", &[]).map(drop)
    }

    /// Rolls back the transaction.
    pub fn rollback(&mut self) -> Result<()> {
        self.execute("ROLLBACK", &[]).map(drop)
    }

    /// Runs a query in this session; rows are read as you iterate.
    pub fn query(&mut self, sql: &str, params: &[Value]) -> Result<Rows> {
        Ok(Rows::new(self.execute(sql, params)?.rows))
    }
}

fn written(outcome: Outcome) -> Result<u64> {
    let affected = outcome.affected;
    outcome.rows.into_iter().try_for_each(|batch| batch.map(drop))?;
    Ok(affected.unwrap_or(0))
}

/// A prepared statement, like `rusqlite::Statement`. By default it runs outside of any transaction;
/// [`Prepared::execute_in`] and [`Prepared::query_in`] run it inside one.
#[derive(Debug)]
pub struct Prepared {
    parsed: Parsed,
    lifted: Option<crate::sql::Lifted>,
    session: Session,
}

impl Prepared {
    /// Runs the statement; gives the number of rows written.
    pub fn execute(&mut self, params: &[Value]) -> Result<u64> {
        written(self.run(params)?)
    }

    /// Runs the statement as a query.
    pub fn query(&mut self, params: &[Value]) -> Result<Rows> {
        Ok(Rows::new(self.run(params)?.rows))
    }

    /// [`Prepared::execute`] in a session, such as a transaction.
    pub fn execute_in(&self, session: &mut Session, params: &[Value]) -> Result<u64> {
        written(session.run_parsed(&self.parsed, self.lifted.as_ref(), params)?)
    }

    /// [`Prepared::query`] in a session, such as a transaction.
    pub fn query_in(&self, session: &mut Session, params: &[Value]) -> Result<Rows> {
        Ok(Rows::new(session.run_parsed(&self.parsed, self.lifted.as_ref(), params)?.rows))
    }

    fn run(&mut self, params: &[Value]) -> Result<Outcome> {
        self.session.run_parsed(&self.parsed, self.lifted.as_ref(), params)
    }
}

/// The rows of a query, as an iterator of `Result<Row>`; it ends after an error. Holds its snapshot until
/// dropped.
pub struct Rows {
    stream: RowStream,
    schema: SchemaRef,
    /// The current batch, and how many of its rows have been returned.
    ready: Option<(Arc<RowBatch>, usize)>,
}

impl Rows {
    pub(super) fn new(stream: RowStream) -> Rows {
        let schema = stream.schema();
        Rows { stream, schema, ready: None }
    }

    /// Names and types of the columns.
    pub fn columns(&self) -> Arc<[OutputColumn]> {
        self.stream.columns()
    }

    /// The single row, like `rusqlite`'s `query_row`.
    ///
    /// Errors: there is no row, or more than one.
    ///
    /// ```
    /// # fn main() -> rowkeydb::Result<()> {
    /// # let db = rowkeydb::Database::in_memory()?;
    /// # db.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, note TEXT)")?;
    /// let rows: u64 = db.query("SELECT count(*) FROM t")?.one()?.get(0)?;
    /// # assert_eq!(rows, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn one(self) -> Result<Row> {
        self.optional()?.ok_or_else(|| {
            Error::invalid("the query gives no row").why("exactly one is asked for").state(sqlstate::NO_DATA)
        })
    }

    /// The single row, or `None` if there is no row.
    ///
    /// Errors: there is more than one row.
    pub fn optional(mut self) -> Result<Option<Row>> {
        let row = self.next().transpose()?;
        match self.next().transpose()? {
            None => Ok(row),
            Some(_) => Err(Error::invalid("the query gives more than one row")
                .why("at most one row was expected")
                .hint("iterate over the rows, or add LIMIT 1")
                .state(sqlstate::CARDINALITY)),
        }
    }

    /// Converts every row to a `T`, whose fields are named like the columns.
    ///
    /// ```
    /// # fn main() -> rowkeydb::Result<()> {
    /// #[derive(serde::Deserialize)]
    /// struct Note { id: i64, note: Option<String> }
    /// # let db = rowkeydb::Database::in_memory()?;
    /// # db.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, note TEXT)")?;
    /// # db.execute("INSERT INTO t VALUES (1, NULL)")?;
    /// let notes: Vec<Note> = db.query("SELECT * FROM t")?.deserialize()?;
    /// assert_eq!((notes[0].id, &notes[0].note), (1, &None));
    /// # Ok(())
    /// # }
    /// ```
    pub fn deserialize<T: DeserializeOwned>(self) -> Result<Vec<T>> {
        self.map(|row| row?.deserialize()).collect()
    }

    /// The remaining rows as Arrow record batches.
    pub fn batches(self) -> RowStream {
        match self.ready {
            Some((ready, given)) if given < ready.rows.len() => {
                let batch = ready.rows.batch_from(given, &ready.schema);
                self.stream.after(batch)
            }
            _ => self.stream,
        }
    }
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stream.fmt(f)
    }
}

impl Iterator for Rows {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((rows, given)) = &mut self.ready
                && *given < rows.rows.len()
            {
                *given += 1;
                return Some(Ok(Row::new(Arc::clone(rows), *given - 1)));
            }
            let rows = match self.stream.next_rows() {
                Some(rows) => rows.transpose()?,
                None => self.stream.next()?.map(NextRows::Batch),
            };
            match rows {
                Ok(rows) => {
                    let schema = Arc::clone(&self.schema);
                    self.ready = Some((Arc::new(RowBatch { rows, schema }), 0));
                }
                Err(e) => return Some(Err(e)),
            }
        }
    }
}
