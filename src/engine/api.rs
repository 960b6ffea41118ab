//! The Rust API: one-line statements, typed rows and prepared statements.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde::de::value::{Error as SerdeError, MapDeserializer};
use serde::de::{DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::Database;
use super::native::TableHandle;
use super::outcome::{Outcome, OutputColumn, RowStream};
use super::session::{RETRIES, RETRIES_BESIDE, Session};
use crate::error::{Error, Kind, Result, sqlstate};
use crate::row::{ColumnBuilder, column_type_of, value_at};
use crate::sql::Splitter;
use crate::value::{ColumnType, Value};

impl Database {
    /// Runs one statement that returns no rows worth having; gives the number of rows written.
    ///
    /// Errors: a statement for later ones, such as BEGIN or SET: that takes a [`Session`].
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

    /// Runs a query; its rows are read while they are iterated.
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

    /// A query's record batches for async code, on a tokio runtime: [`RowStream::next_batch`].
    pub async fn query_async(&self, sql: &str, params: &[Value]) -> Result<RowStream> {
        Ok(Session::brief(self.clone()).execute_async(sql, params).await?.rows)
    }

    /// Parses a statement once, to run it many times.
    ///
    /// ```
    /// # fn main() -> rowkeydb::Result<()> {
    /// # let db = rowkeydb::Database::in_memory()?;
    /// # db.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, note TEXT)")?;
    /// let mut put = db.prepare("UPSERT INTO t VALUES ($1, $2)")?;
    /// put.execute(&[1.into(), "one".into()])?;
    /// put.execute(&[2.into(), "two".into()])?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn prepare(&self, sql: &str) -> Result<Prepared> {
        let statement = self.runtime().block_on(async { crate::sql::parse(sql) })?;
        Ok(Prepared { statement, lifted: crate::sql::lift(sql), session: Session::brief(self.clone()) })
    }

    /// Runs a script, a statement after the other, in a session of its own.
    ///
    /// Errors: that of the first statement that fails, those before it done; a transaction that is left open.
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
                .state("25001")),
        }
    }

    /// Begins a transaction: a session that commits with [`Session::execute`]`("COMMIT")` and rolls
    /// back when it is dropped.
    pub fn begin(&self) -> Result<Session> {
        let mut session = self.session();
        session.execute("BEGIN", &[])?;
        Ok(session)
    }

    /// Runs `work` in a transaction and commits it. When that conflicts with what others have committed
    /// meanwhile, everything is undone and `work` runs again, up to a hundred times; so it should do nothing
    /// that must not be done twice. An error of `work` rolls back.
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
    /// # assert_eq!(db.query("SELECT balance FROM accounts WHERE id = 2")?.next().unwrap()?.get::<i64>("balance")?, 10);
    /// # Ok(())
    /// # }
    /// ```
    pub fn transaction<T>(&self, mut work: impl FnMut(&mut Session) -> Result<T>) -> Result<T> {
        let mut retries = 0;
        let mut session = self.session();
        loop {
            session.execute("BEGIN", &[])?;
            let done = work(&mut session).and_then(|out| match session.in_transaction() {
                true => session.execute("COMMIT", &[]).map(|_| out),
                false => Ok(out),
            });
            match done {
                Err(e) if e.kind() == Kind::Conflict && retries < RETRIES => {}
                done => return done,
            }
            session.abandon();
            retries += 1;
            if retries == RETRIES_BESIDE {
                session.take_turn()?;
            }
        }
    }

    /// A table without SQL: get rows by key, scan key ranges.
    pub fn table(&self, name: &str) -> Result<TableHandle> {
        Ok(TableHandle::new(self.clone(), self.catalog().table(name)?))
    }
}

impl Session {
    /// Runs a script, a statement after the other. Errors: that of the first that fails; those before it are done.
    pub fn execute_batch(&mut self, script: &str) -> Result<()> {
        let mut splitter = Splitter::new();
        splitter.push(script);
        while let Some(statement) = splitter.next_statement() {
            written(self.execute(&statement.text, &[])?)?;
        }
        splitter.finish().map_or(Ok(()), |last| written(self.execute(&last.text, &[])?).map(drop))
    }

    /// Runs a query in this session; its rows are read while they are iterated.
    pub fn query(&mut self, sql: &str, params: &[Value]) -> Result<Rows> {
        Ok(Rows::new(self.execute(sql, params)?.rows))
    }
}

fn written(outcome: Outcome) -> Result<u64> {
    let affected = outcome.affected;
    outcome.rows.into_iter().try_for_each(|batch| batch.map(drop))?;
    Ok(affected.unwrap_or(0))
}

/// A parsed statement with a session of its own.
#[derive(Debug)]
pub struct Prepared {
    statement: crate::sql::Statement,
    lifted: Option<crate::sql::Lifted>,
    session: Session,
}

impl Prepared {
    /// Runs it; gives the number of rows written.
    pub fn execute(&mut self, params: &[Value]) -> Result<u64> {
        written(self.run(params)?)
    }

    /// Runs it as a query.
    pub fn query(&mut self, params: &[Value]) -> Result<Rows> {
        Ok(Rows::new(self.run(params)?.rows))
    }

    fn run(&mut self, params: &[Value]) -> Result<Outcome> {
        self.session.run_parsed(&self.statement, self.lifted.as_ref(), params)
    }
}

/// Typed rows of a query, one by one.
#[derive(Debug)]
pub struct Rows {
    stream: RowStream,
    schema: SchemaRef,
    ready: Ready,
}

/// Rows that have been read and not yet given out.
#[derive(Debug)]
enum Ready {
    Rows(std::vec::IntoIter<Vec<Value>>),
    Batch(Arc<RecordBatch>, usize),
}

impl Rows {
    pub(super) fn new(stream: RowStream) -> Rows {
        let schema = stream.schema();
        Rows { stream, schema, ready: Ready::Rows(Vec::new().into_iter()) }
    }

    /// Names and types of the columns.
    pub fn columns(&self) -> Arc<[OutputColumn]> {
        self.stream.columns()
    }

    /// Every row as a `T`, its fields named like the columns.
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

    /// The rows that are left as record batches, for those who want Arrow.
    pub fn batches(self) -> RowStream {
        let left = match self.ready {
            Ready::Rows(rows) if rows.len() == 0 => return self.stream,
            Ready::Rows(rows) => batch_of_values(&self.schema, rows),
            Ready::Batch(batch, at) => Ok(batch.slice(at, batch.num_rows() - at)),
        };
        self.stream.after(left)
    }
}

fn batch_of_values(schema: &SchemaRef, rows: impl Iterator<Item = Vec<Value>>) -> Result<RecordBatch> {
    let types = schema.fields().iter().map(|field| column_type_of(field));
    let types: Option<Vec<ColumnType>> = types.collect();
    let types = types.ok_or_else(|| Error::internal("rows of a type that is none of ours"))?;
    let mut builders: Vec<ColumnBuilder> = types.into_iter().map(|ty| ColumnBuilder::new(ty, 0)).collect();
    for row in rows {
        for (builder, value) in builders.iter_mut().zip(&row) {
            builder.append(value.as_ref())?;
        }
    }
    let arrays = builders.iter_mut().map(ColumnBuilder::finish).collect();
    RecordBatch::try_new(Arc::clone(schema), arrays)
        .map_err(|e| Error::internal("rows do not fit their batch").caused_by(e))
}

impl Iterator for Rows {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match &mut self.ready {
                Ready::Rows(rows) => {
                    if let Some(values) = rows.next() {
                        return Some(Ok(Row::of_values(Arc::clone(&self.schema), values)));
                    }
                }
                Ready::Batch(batch, at) if *at < batch.num_rows() => {
                    let row = Row::of_batch(Arc::clone(batch), *at);
                    *at += 1;
                    return Some(Ok(row));
                }
                Ready::Batch(..) => {}
            }
            self.ready = match self.stream.next_rows() {
                Some(Ok(rows)) => Ready::Rows(rows?.into_iter()),
                Some(Err(e)) => return Some(Err(e)),
                None => match self.stream.next()? {
                    Ok(batch) => Ready::Batch(Arc::new(batch), 0),
                    Err(e) => return Some(Err(e)),
                },
            }
        }
    }
}

/// One row.
#[derive(Clone, Debug)]
pub struct Row(Cells);

#[derive(Clone, Debug)]
enum Cells {
    Values(SchemaRef, Vec<Value>),
    Batch(Arc<RecordBatch>, usize),
}

impl Row {
    fn of_values(schema: SchemaRef, values: Vec<Value>) -> Row {
        Row(Cells::Values(schema, values))
    }

    fn of_batch(batch: Arc<RecordBatch>, at: usize) -> Row {
        Row(Cells::Batch(batch, at))
    }

    fn schema(&self) -> &SchemaRef {
        match &self.0 {
            Cells::Values(schema, _) => schema,
            Cells::Batch(batch, _) => batch.schema_ref(),
        }
    }

    /// The value of a column, as a Rust type. Errors: no such column; NULL for a type that has none; a
    /// value of another type.
    pub fn get<T: FromValue>(&self, column: &str) -> Result<T> {
        if let Some(value) = T::from_value(self.value(column)?) {
            return Ok(value);
        }
        let value = self.value(column)?;
        Err(Error::invalid(format!(
            "column \"{column}\" is {}, not a {}",
            crate::value::Literal(value.as_ref()),
            T::NAME
        ))
        .hint("ask for another type, or an Option for a column that may be NULL")
        .state(sqlstate::DATATYPE_MISMATCH))
    }

    /// Every value, in the order of the columns.
    pub fn values(&self) -> Result<Vec<Value>> {
        (0..self.schema().fields().len()).map(|column| self.value_at(column)).collect()
    }

    /// The value of a column.
    pub fn value(&self, column: &str) -> Result<Value> {
        let at = self.schema().index_of(column).map_err(|_| {
            Error::invalid(format!("the result has no column \"{column}\"")).state(sqlstate::UNDEFINED_COLUMN)
        })?;
        self.value_at(at)
    }

    fn value_at(&self, column: usize) -> Result<Value> {
        let (batch, at) = match &self.0 {
            Cells::Values(_, values) => return Ok(values[column].clone()),
            Cells::Batch(batch, at) => (batch, *at),
        };
        let field = batch.schema_ref().field(column);
        let ty = column_type_of(field).ok_or_else(|| {
            Error::unsupported(format!("column \"{}\" has type {}", field.name(), field.data_type()))
        })?;
        value_at(batch.column(column), at, ty)
    }

    /// The row as a `T`, its fields named like the columns.
    pub fn deserialize<T: DeserializeOwned>(&self) -> Result<T> {
        let fields = self.schema().fields();
        let entries: Result<Vec<(String, Cell)>> =
            fields.iter().enumerate().map(|(i, f)| Ok((f.name().clone(), Cell(self.value_at(i)?)))).collect();
        T::deserialize(MapDeserializer::new(entries?.into_iter())).map_err(|e: SerdeError| {
            Error::invalid(format!("the row does not fit the type: {e}")).state(sqlstate::DATATYPE_MISMATCH)
        })
    }
}

/// A value on its way into a serde type.
struct Cell(Value);

impl IntoDeserializer<'_, SerdeError> for Cell {
    type Deserializer = Cell;

    fn into_deserializer(self) -> Cell {
        self
    }
}

impl<'de> Deserializer<'de> for Cell {
    type Error = SerdeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Boolean(b) => visitor.visit_bool(b),
            Value::Int(i) => visitor.visit_i64(i),
            Value::Double(d) => visitor.visit_f64(d),
            Value::Text(t) => visitor.visit_string(t),
            Value::Bytes(b) => visitor.visit_byte_buf(b),
            // Times, decimals and UUIDs go as their exact text.
            other => visitor.visit_string(other.to_string()),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        match self.0 {
            Value::Decimal(..) => match self.0.to_string().parse() {
                Ok(d) => visitor.visit_f64(d),
                Err(_) => visitor.visit_string(self.0.to_string()),
            },
            other => Cell(other).deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Rust types that a column's value can be read as.
pub trait FromValue: Sized {
    /// For messages.
    const NAME: &'static str;

    /// `None` if the value is of another type, or NULL.
    fn from_value(value: Value) -> Option<Self>;
}

macro_rules! from_value {
    ($ty:ty, $value:ident => $out:expr) => {
        impl FromValue for $ty {
            const NAME: &'static str = stringify!($ty);

            fn from_value($value: Value) -> Option<Self> {
                $out
            }
        }
    };
}

from_value!(bool, v => if let Value::Boolean(b) = v { Some(b) } else { None });
from_value!(i16, v => if let Value::Int(i) = v { i.try_into().ok() } else { None });
from_value!(i32, v => if let Value::Int(i) = v { i.try_into().ok() } else { None });
from_value!(u32, v => if let Value::Int(i) = v { i.try_into().ok() } else { None });
from_value!(i64, v => if let Value::Int(i) = v { Some(i) } else { None });
from_value!(u64, v => if let Value::Int(i) = v { i.try_into().ok() } else { None });
from_value!(f32, v => match v {
    Value::Double(d) if d.is_nan() || f64::from(d as f32) == d => Some(d as f32),
    _ => None,
});
from_value!(f64, v => match v {
    Value::Double(d) => Some(d),
    Value::Decimal(..) => v.to_string().parse().ok(),
    _ => None,
});
from_value!(String, v => match v {
    Value::Text(t) => Some(t),
    Value::Null | Value::Bytes(_) => None,
    other => Some(other.to_string()),
});
from_value!(Vec<u8>, v => if let Value::Bytes(b) = v { Some(b) } else { None });
from_value!(Value, v => Some(v));

impl<T: FromValue> FromValue for Option<T> {
    const NAME: &'static str = T::NAME;

    fn from_value(value: Value) -> Option<Self> {
        if value.is_null() { Some(None) } else { T::from_value(value).map(Some) }
    }
}
