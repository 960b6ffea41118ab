//! Tables without SQL: rows by key, scans of key ranges, and bulk loads.

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};

use super::api::{Row, Rows};
use super::outcome::{BatchSource, RowStream};
use super::rows::assign;
use super::view::column_of;
use super::{Database, OnProgress, bulk, damaged};
use crate::access::{Access, Method, Path};
use crate::catalog::Catalog;
use crate::df::cached::alone::Alone;
use crate::error::{Error, Kind, Result, counted};
use crate::exec::dml::rowkey_of;
use crate::exec::scan::{Scan, ScanCounters, ScanSources, ScanSpec};
use crate::exec::watch::CancelHandle;
use crate::key::{ColumnId, KeyRange, KeyRanges, Rowkey};
use crate::plan::{Field, Filter};
use crate::row::field;
use crate::schema::TableDef;
use crate::sql::rewrite::ROWKEY;
use crate::store::Direction;
use crate::value::{ColumnType, Value};

/// Rows taken from the caller at a time (count).
const CHUNK_ROWS: usize = 2048;

/// Access to a table without SQL. Get it from [`Database::table`]. Columns are those that the table has when the handle
/// is used, whatever they are called by then; columns added or dropped, or another layout, ask for a new handle.
#[derive(Clone, Debug)]
pub struct TableHandle {
    db: Database,
    /// As it was when the handle was taken.
    shape: Shape,
}

/// A definition of the table, and how its rows are read.
#[derive(Clone, Debug)]
struct Shape {
    table: Arc<TableDef>,
    /// Its columns, and the rowkey, unless a column has that name.
    output: Arc<[Field]>,
    /// Where to find them in a stored row.
    places: Arc<ScanSources>,
    schema: SchemaRef,
}

impl Shape {
    fn of(table: Arc<TableDef>) -> Shape {
        let mut fields: Vec<_> =
            table.live_columns().map(|(_, c)| field(&c.name, c.ty, c.nullable)).collect();
        let mut output: Vec<Field> = table.live_columns().map(|(id, _)| Field::Column(id)).collect();
        if !table.names_rowkey() {
            let ty = if table.key.is_text() { ColumnType::Varchar } else { ColumnType::Varbinary };
            fields.push(field(ROWKEY, ty, false));
            output.push(Field::Rowkey);
        }
        let places = ScanSources::new(&table, None, &access(Method::Empty), &output);
        let (output, places) = (output.into(), Arc::new(places));
        Shape { table, output, places, schema: Arc::new(Schema::new(fields)) }
    }
}

impl TableHandle {
    pub(super) fn new(db: Database, table: Arc<TableDef>) -> TableHandle {
        TableHandle { db, shape: Shape::of(table) }
    }

    /// The row with this rowkey.
    ///
    /// ```
    /// # fn main() -> rowkeydb::Result<()> {
    /// # let db = rowkeydb::Database::in_memory()?;
    /// db.execute("CREATE TABLE t (id BIGINT, note TEXT, PRIMARY KEY (lpad(id, 4)))")?;
    /// db.execute("INSERT INTO t VALUES (7, 'seven')")?;
    /// let row = db.table("t")?.get("0007")?.expect("the row is there");
    /// assert_eq!(row.get::<String>("note")?, "seven");
    /// # Ok(())
    /// # }
    /// ```
    pub fn get(&self, key: impl Into<Rowkey>) -> Result<Option<Row>> {
        let access = access(Method::Get(vec![key.into()]));
        self.rows(access, None)?.next().transpose()
    }

    /// The rowkey for these values of the key columns, given by name.
    ///
    /// Errors: an unknown column, or one that is missing; a value that its column or key part cannot hold; a
    /// layout with `random(n)`, or no PRIMARY KEY, so that rowkeys cannot be computed; a table whose columns were
    /// added or dropped since the handle was taken.
    ///
    /// ```
    /// # fn main() -> rowkeydb::Result<()> {
    /// # let db = rowkeydb::Database::in_memory()?;
    /// db.execute("CREATE TABLE t (id BIGINT, note TEXT, PRIMARY KEY (reverse(lpad(id, 4))))")?;
    /// assert_eq!(db.table("t")?.key(&[("id", 12.into())])?, "2100".into());
    /// # Ok(())
    /// # }
    /// ```
    pub fn key(&self, values: &[(&str, Value)]) -> Result<Rowkey> {
        let table = &*self.now(&self.db.catalog())?;
        if table.row_number().is_some() {
            return Err(Error::unsupported(format!("table \"{}\" has no PRIMARY KEY", table.name))
                .why("its rowkeys are numbers that no column has")
                .hint("ALTER TABLE .. ADD PRIMARY KEY (..) gives it one; SELECT rowkey tells the numbers"));
        }
        if table.key.is_drawn() {
            return Err(Error::unsupported(format!("keys of table \"{}\" are drawn", table.name))
                .why("its layout has random(n)")
                .hint("scan the buckets, or SELECT the row"));
        }
        let mut row = vec![Value::Null; table.columns.len()];
        for (name, value) in values {
            value.check()?;
            let id = column_of(table, name)?;
            row[usize::from(id.0)] = assign(value.clone(), table.column(id))?;
        }
        for id in table.key.columns() {
            let is_given = values.iter().any(|(name, _)| *name == table.column_name(id));
            if !is_given {
                let error = Error::invalid(format!("column \"{}\" has no value", table.column_name(id)));
                return Err(error.why("it is part of the rowkey"));
            }
        }
        rowkey_of(table, &row)
    }

    /// Rows whose key lies in `range`.
    ///
    /// ```
    /// # fn main() -> rowkeydb::Result<()> {
    /// # let db = rowkeydb::Database::in_memory()?;
    /// # db.execute("CREATE TABLE t (id BIGINT, note TEXT, PRIMARY KEY (lpad(id, 4)))")?;
    /// # db.execute("INSERT INTO t VALUES (7, 'seven'), (8, 'eight'), (9, 'nine')")?;
    /// let last: Vec<_> = db.table("t")?.scan("0007".."0009").reverse().limit(1).rows()?.collect::<Result<_, _>>()?;
    /// assert_eq!(last[0].get::<i64>("id")?, 8);
    /// # Ok(())
    /// # }
    /// ```
    pub fn scan<K: Into<Rowkey> + Clone>(&self, range: impl RangeBounds<K>) -> TableScan {
        let start = match range.start_bound() {
            Bound::Included(key) => key.clone().into(),
            Bound::Excluded(key) => key.clone().into().successor(),
            Bound::Unbounded => Rowkey::default(),
        };
        let range = match range.end_bound() {
            Bound::Included(key) => KeyRange::new(start, key.clone().into().successor()),
            Bound::Excluded(key) => KeyRange::new(start, key.clone()),
            Bound::Unbounded => KeyRange::starting_at(start),
        };
        TableScan { table: self.clone(), range, direction: Direction::Forward, limit: None }
    }

    /// Bulk load: adds many new rows and their index entries in one atomic step. This is the fastest way in.
    /// A row has one value for each column, in order. Gives the number of rows.
    ///
    /// Memory stays flat: entries are gathered up to a limit, sorted, and written. Other writers wait.
    ///
    /// Errors: a rowkey that exists; a value that does not fit its column or key part; a row of another
    /// length; a table whose columns were added or dropped since the handle was taken. Nothing is loaded then.
    ///
    /// ```
    /// # fn main() -> rowkeydb::Result<()> {
    /// # let db = rowkeydb::Database::in_memory()?;
    /// db.execute("CREATE TABLE t (id BIGINT, note TEXT, PRIMARY KEY (reverse(lpad(id, 4))))")?;
    /// let rows = (1..=1000).map(|id| vec![id.into(), "a note".into()]);
    /// assert_eq!(db.table("t")?.load(rows)?, 1000);
    /// # Ok(())
    /// # }
    /// ```
    pub fn load(&self, rows: impl IntoIterator<Item = Vec<Value>>) -> Result<u64> {
        self.load_with(rows, None)
    }

    /// [`TableHandle::load`] with a progress callback.
    pub fn load_with(
        &self,
        rows: impl IntoIterator<Item = Vec<Value>>,
        on_progress: Option<OnProgress>,
    ) -> Result<u64> {
        let mut session = self.db.session();
        if let Some(on_progress) = on_progress {
            session.on_progress(on_progress);
        }
        let view = session.view()?;
        let table = self.now(&view.catalog)?;
        if table.refers_to_itself() {
            return Err(Error::unsupported(format!("rows of \"{}\" may refer to later ones", table.name))
                .why("a load looks for what a row refers to before the others are there")
                .hint("COPY loads a file into it, and INSERT takes many rows"));
        }
        let columns: Vec<ColumnId> = table.live_columns().map(|(id, _)| id).collect();
        let mut rows = rows.into_iter();
        let mut next = || {
            let chunk: Result<Vec<_>> =
                rows.by_ref().take(CHUNK_ROWS).map(|row| cells(row, columns.len())).collect();
            chunk.map(|chunk| (!chunk.is_empty()).then_some(chunk))
        };
        let loaded = bulk::load(&view, &table, (&columns, None), None, &mut next);
        loaded.map_err(|e| damaged::of_whom(&view.catalog, e))
    }

    /// The current definition of the table. Indexes, and what columns are called and may hold, may have changed since
    /// the handle was taken.
    ///
    /// Errors: the table was dropped, columns were added or dropped, or its layout has changed.
    fn now(&self, catalog: &Catalog) -> Result<Arc<TableDef>> {
        let table = &self.shape.table;
        let columns = |table: &TableDef| table.live_columns().map(|(id, _)| id).collect::<Vec<_>>();
        let is_same = |now: &Arc<TableDef>| {
            Arc::ptr_eq(now, table)
                || now.key.makes_same_keys_as(&table.key)
                    && now.families == table.families
                    && columns(now) == columns(table)
        };
        match catalog.tables().find(|now| now.id == table.id).filter(|now| is_same(now)) {
            Some(now) => Ok(Arc::clone(now)),
            None => Err(Error::new(Kind::Conflict, format!("table \"{}\" is not what it was", table.name))
                .why("it was dropped, re-keyed or given other columns since the handle was taken")
                .hint(format!("take another one: db.table(\"{}\")", table.name))),
        }
    }

    fn rows(&self, mut access: Access, limit: Option<u64>) -> Result<Rows> {
        let (catalog, snapshot) = self.db.view()?;
        let now = self.now(&catalog)?;
        let is_same = Arc::ptr_eq(&now, &self.shape.table);
        let shape = if is_same { self.shape.clone() } else { Shape::of(now) };
        let Shape { table, output, mut places, schema } = shape;
        if let Some(ttl) = table.ttl() {
            access.filter = ttl.alive(self.db.now_us()).into();
            places = Arc::new(ScanSources::new(&table, None, &access, &output));
        }
        let spec = ScanSpec {
            table,
            index: None,
            as_table: false,
            access,
            output,
            places,
            schema: Arc::clone(&schema),
            any_order: false,
        };
        let scan = Scan::new(Arc::new(spec), snapshot, limit, Arc::<ScanCounters>::default());
        let runtime = self.db.runtime().clone();
        let source = BatchSource::Alone(Box::new(Alone::Scan(scan)));
        let stream = RowStream::new(schema, source, runtime, CancelHandle::default());
        Ok(Rows::new(stream.over(catalog)))
    }
}

fn access(method: Method) -> Access {
    Access {
        path: Path::Primary,
        method,
        entry_filter: Filter::all(),
        filter: Filter::all(),
        ordered: true,
        entries: 0.0,
        all_entries: 0.0,
        jumps: 0.0,
        cost: 0.0,
    }
}

/// A scan of a key range, to be configured and started with [`TableScan::rows`].
#[derive(Clone, Debug)]
pub struct TableScan {
    table: TableHandle,
    range: KeyRange,
    direction: Direction,
    limit: Option<u64>,
}

impl TableScan {
    /// Scans backwards, from the greatest key.
    #[must_use]
    pub fn reverse(mut self) -> Self {
        self.direction = Direction::Reverse;
        self
    }

    /// Returns at most `rows` rows.
    #[must_use]
    pub fn limit(mut self, rows: u64) -> Self {
        self.limit = Some(rows);
        self
    }

    /// Starts the scan.
    pub fn rows(self) -> Result<Rows> {
        let ranges = KeyRanges::one(self.range);
        let access = access(Method::Scan { ranges, direction: self.direction, merge: None, skip: None });
        self.table.rows(access, self.limit)
    }
}

fn cells(row: Vec<Value>, columns: usize) -> Result<Vec<Option<Value>>> {
    if row.len() != columns {
        return Err(Error::invalid(format!(
            "a row has {} for {}",
            counted(row.len(), "value"),
            counted(columns, "column")
        ))
        .hint("give every row one value for each column, in order"));
    }
    row.iter().try_for_each(Value::check)?;
    Ok(row.into_iter().map(Some).collect())
}
