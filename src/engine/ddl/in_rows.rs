//! ALTERs that must read or rewrite the existing rows; other writers wait.

use sqlparser::ast::Ident;

use super::alter::{altered, changed_meanwhile, may_be_null, new_column};
use super::options::TableOptions;
use super::references::refuse_to_expire;
use super::{change, check, check_views, finish};
use crate::catalog::CatalogEdit;
use crate::engine::expiry;
use crate::engine::numbers::number;
use crate::engine::outcome::Warning;
use crate::engine::rows::{assign, check_null, defaults};
use crate::engine::session::Session;
use crate::engine::view::{StatementView, column_named};
use crate::error::{Error, Result, sqlstate};
use crate::exec::dml::ROWS_READ;
use crate::exec::stored::{self, Packer, StoredRow};
use crate::index::entry_of;
use crate::key::{ColumnId, KeyRange, Rowkey};
use crate::row::value_at;
use crate::schema::{IndexState, TableDef};
use crate::sql::{AddColumn, AlterTable, CheckDef, OptionDef, name_of, name_sql, parse_query, span_of_name};
use crate::store::{BulkWriter, Direction, WriteBatch};
use crate::value::{ColumnType, Value, quoted_name};

/// Changes a table and its rows; `change` gives the warnings, or `None` if there is nothing to change.
pub(super) fn alter_rows(
    session: &mut Session,
    alter: &AlterTable,
    change: impl FnOnce(
        &StatementView,
        &mut TableDef,
        &mut CatalogEdit,
        &mut dyn BulkWriter,
    ) -> Result<Option<Vec<Warning>>>,
) -> Result<Vec<Warning>> {
    session.change_rows(|catalog, view, writer| {
        let Some(table) = altered(catalog, alter)? else { return Ok((Vec::new(), None)) };
        let (mut table, mut edit) = ((*table).clone(), catalog.edit());
        let Some(warnings) = change(view, &mut table, &mut edit, writer)? else {
            return Ok((Vec::new(), None));
        };
        edit.put_table(table)?;
        let (after, batch) = edit.finish()?;
        check_views(&view.db, catalog, &after)?;
        Ok((warnings, Some((after, batch))))
    })
}

/// ADD COLUMN with NOT NULL, a DEFAULT or an identity: fills in the existing rows.
pub fn add_column(session: &mut Session, alter: &AlterTable, add: &AddColumn) -> Result<Vec<Warning>> {
    purge(session, alter)?;
    alter_rows(session, alter, |view, table, edit, writer| {
        let Some(warnings) = new_column(table, add)? else { return Ok(None) };
        let id = ColumnId(table.columns.len() as u16 - 1);
        Filling { view, table, id }
            .all(writer, &mut edit.batch)
            .map_err(|e| e.unplaced().at(add.column.span))?;
        Ok(Some(warnings))
    })
}

/// Removes expired rows: a new condition must not fail on them, and a longer `ttl` must not bring them back.
pub(super) fn purge(session: &mut Session, alter: &AlterTable) -> Result<()> {
    match session.catalog().table(&name_of(&alter.name)) {
        Ok(table) => session.purge(&table).map(drop),
        Err(_) => Ok(()),
    }
}

/// [`purge`] of the rows that have expired since then.
pub(super) fn purge_rest(view: &StatementView, table: &TableDef, writer: &mut dyn BulkWriter) -> Result<()> {
    expiry::purge_in(view, table, &mut |batch| batch.write_to(writer)).map(drop)
}

/// SET NOT NULL. Errors: an existing row is NULL in the column.
pub fn set_not_null(session: &mut Session, alter: &AlterTable, name: &Ident) -> Result<Vec<Warning>> {
    purge(session, alter)?;
    alter_rows(session, alter, |view, table, _, writer| {
        purge_rest(view, table, writer)?;
        let id = column_named(table, name)?;
        may_be_null(table, id, false).map_err(|e| e.at(span_of_name(name)))?;
        let (of, column) = (quoted_name(&table.name), quoted_name(&name_of(name)));
        let rows = count(view, &format!("{of} WHERE {column} IS NULL"))?;
        if rows > 0 {
            return Err(has_nulls(table, name, rows));
        }
        Ok(Some(Vec::new()))
    })
}

/// ADD CHECK. Errors: an existing row violates it; the name is taken.
pub fn add_check(session: &mut Session, alter: &AlterTable, def: &CheckDef) -> Result<Vec<Warning>> {
    purge(session, alter)?;
    alter_rows(session, alter, |view, table, _, writer| {
        let new = check(&table.name, (&table.checks, &table.references), def)?;
        purge_rest(view, table, writer)?;
        let of = name_sql(&table.name);
        let rows =
            count(view, &format!("{of} WHERE NOT ({})", new.sql)).map_err(|e| e.unplaced().at(def.span))?;
        if rows > 0 {
            return Err(Error::invalid(format!("check \"{}\" does not hold", new.name))
                .why(format!("{} is false for {} of table \"{}\"", new.sql, rows_of(rows), table.name))
                .hint(format!("SELECT * FROM {of} WHERE NOT ({}) shows them", new.sql))
                .state(sqlstate::CHECK)
                .at(def.span));
        }
        table.checks.push(new);
        Ok(Some(Vec::new()))
    })
}

/// SET (ttl = ..., versions = ...). Rows without a write time get that of the statement. Before a longer `ttl` takes
/// effect, rows that have expired while other DDL ran are purged, too.
///
/// Errors: an unknown option; an index that is not Ready; a layout that cannot keep versions; a view that
/// reads versions which would be dropped; other rows refer to those that would expire.
pub fn set_options(session: &mut Session, alter: &AlterTable, options: &[OptionDef]) -> Result<Vec<Warning>> {
    let wanted = TableOptions::new(options)?;
    purge(session, alter)?;
    let has_times = |table: &TableDef| table.written_at.is_some();
    let are_there = session.catalog().table(&name_of(&alter.name)).is_ok_and(|table| has_times(&table));
    if are_there || !wanted.need_times() {
        // A transaction has its own time, by which they were purged.
        let outside =
            (!session.in_transaction()).then(|| (session.database().clone(), session.watch().clone()));
        return change(session, |catalog| {
            let Some(mut table) = altered(catalog, alter)?.map(|table| (*table).clone()) else {
                return Ok((Vec::new(), None));
            };
            refuse_to_expire(catalog, &table, wanted)?;
            if let Some((db, watch)) = &outside
                && wanted.lengthen_ttl(&table)
            {
                expiry::purge_before(db, &table, db.now_us(), watch)?;
            }
            if !has_times(&table) && wanted.need_times() {
                return Err(changed_meanwhile(&table));
            }
            let mut edit = catalog.edit();
            wanted.apply(&mut edit, &mut table)?;
            edit.put_table(table)?;
            finish(edit, Vec::new())
        });
    }
    alter_rows(session, alter, |view, table, edit, writer| {
        if has_times(table) {
            return Err(changed_meanwhile(table));
        }
        refuse_to_expire(&view.catalog, table, wanted)?;
        write_times(view, table, writer)?;
        wanted.apply(edit, table)?;
        Ok(Some(Vec::new()))
    })
}

/// Makes rows and index entries store their write time from now on, and fills it in for existing rows.
fn write_times(view: &StatementView, table: &mut TableDef, writer: &mut dyn BulkWriter) -> Result<()> {
    if let Some(index) = table.indexes.iter().find(|index| index.state != IndexState::Ready) {
        return Err(Error::invalid(format!("index \"{}\" is {}", index.name, index.state.name()))
            .why("its entries have to tell when their rows were written")
            .hint(format!("REPAIR INDEX {0}, or DROP INDEX {0}, first", name_sql(&index.name)))
            .state(sqlstate::OBJECT_STATE));
    }
    let written_at = table.keep_write_times();
    table.indexes.iter_mut().for_each(|index| index.include.push(written_at));
    let now = Value::TimestampTz(view.as_of_us);
    Filling { view, table, id: written_at }.with_entries(&now, writer)
}

/// Number of rows for which a condition holds; `of`: table and condition, as after FROM.
pub(super) fn count(view: &StatementView, of: &str) -> Result<i64> {
    let query = parse_query(&format!("SELECT count(*) FROM {of}"))?;
    let counted = view.db.runtime().block_on(view.select(query, &[]))?;
    match value_at(counted.column(0), 0, ColumnType::BigInt)? {
        Value::Int(rows) => Ok(rows),
        _ => Err(Error::internal("a count that is no number")),
    }
}

pub(super) fn rows_of(rows: i64) -> String {
    match rows {
        1 => "1 row".to_owned(),
        rows => format!("{rows} rows"),
    }
}

fn has_nulls(table: &TableDef, name: &Ident, rows: i64) -> Error {
    let column = name_sql(&name_of(name));
    Error::invalid(format!("column \"{}\" cannot become NOT NULL", name_of(name)))
        .why(format!("it is NULL in {} of table \"{}\"", rows_of(rows), table.name))
        .hint(format!("UPDATE {} SET {column} = ... WHERE {column} IS NULL first", name_sql(&table.name)))
        .state(sqlstate::NOT_NULL)
        .at(span_of_name(name))
}

/// A column of a table, to be filled in for existing rows.
pub(super) struct Filling<'a> {
    pub view: &'a StatementView,
    pub table: &'a TableDef,
    pub id: ColumnId,
}

impl Filling<'_> {
    /// Fills all rows; `batch` gets the next identity number.
    fn all(&self, writer: &mut dyn BulkWriter, batch: &mut WriteBatch) -> Result<()> {
        self.each(|rowkeys| {
            let values = self.values(rowkeys.len(), batch)?;
            self.write(rowkeys, values, writer)
        })
    }

    /// Fills all rows and their index entries with one value, which every index includes.
    fn with_entries(&self, value: &Value, writer: &mut dyn BulkWriter) -> Result<()> {
        let Filling { table, id, .. } = self;
        self.each(|rowkeys| {
            self.write(rowkeys, vec![value.clone(); rowkeys.len()], writer)?;
            for (rowkey, StoredRow { values: mut row, .. }) in rowkeys.iter().zip(self.rows(rowkeys)?) {
                row[usize::from(id.0)] = value.clone();
                for index in &table.indexes {
                    if let Some(entry) = entry_of(table, index, &row, rowkey)? {
                        writer.put(index.keyspace, &entry.key, &entry.value)?;
                    }
                }
            }
            Ok(())
        })
    }

    /// Calls `fill` for all rows, a chunk at a time.
    pub fn each(&self, mut fill: impl FnMut(&[Rowkey]) -> Result<()>) -> Result<()> {
        let Filling { view, table, .. } = self;
        let label = format!("filling {}", table.column_name(self.id));
        let total = view.snapshot.reader()?.entries(table.rows())?;
        let (mut rest, mut filled) = (KeyRange::all(), 0);
        loop {
            let rowkeys = self.rowkeys(&rest)?;
            let Some(last) = rowkeys.last() else { break };
            rest.start = last.successor();
            fill(&rowkeys)?;
            filled += rowkeys.len() as u64;
            view.watch.step(&label, filled, Some(total), "rows")?;
        }
        view.watch.finish(&label, filled, "rows");
        Ok(())
    }

    /// The rows of a chunk.
    pub fn rows(&self, rowkeys: &[Rowkey]) -> Result<Vec<StoredRow>> {
        let keys: Vec<&[u8]> = rowkeys.iter().map(|key| &key[..]).collect();
        let rows = stored::rows_of(&*self.view.snapshot.reader()?, self.table, &keys)?;
        let there =
            |row: Option<StoredRow>| row.ok_or_else(|| Error::internal("a row went away beside a load"));
        rows.into_iter().map(there).collect()
    }

    /// The rowkeys of the next chunk.
    fn rowkeys(&self, range: &KeyRange) -> Result<Vec<Rowkey>> {
        let reader = self.view.snapshot.reader()?;
        let mut cursor = reader.cursor(self.table.rows(), range, Direction::Forward)?;
        let mut rowkeys = Vec::new();
        while rowkeys.len() < ROWS_READ
            && let Some((rowkey, _)) = cursor.next()?
        {
            rowkeys.push(Rowkey::from(rowkey));
        }
        Ok(rowkeys)
    }

    /// A value for each of `rows` rows. Errors: NULL, and the column is NOT NULL.
    fn values(&self, rows: usize, batch: &mut WriteBatch) -> Result<Vec<Value>> {
        let Filling { view, table, id } = *self;
        let (column, at) = (table.column(id), usize::from(id.0));
        if let Some(identity) = column.identity {
            let mut numbered = vec![vec![Value::Null; table.columns.len()]; rows];
            let wanted: Vec<usize> = (0..rows).collect();
            number(view, table, (id, identity), &mut numbered, &wanted, batch)?;
            return Ok(numbered.into_iter().map(|mut row| row.swap_remove(at)).collect());
        }
        let Some(sql) = &column.default else {
            return Err(Error::invalid(format!("column \"{}\" cannot be added as NOT NULL", column.name))
                .why("there are rows, and nothing says what they have in it")
                .hint("give it a DEFAULT")
                .state(sqlstate::NOT_NULL));
        };
        let values = view.db.runtime().block_on(defaults(view, sql, rows))?;
        let fitted = values.into_iter().map(|value| {
            let value = assign(value, column)?;
            check_null(table, id, &value)?;
            Ok(value)
        });
        fitted.collect()
    }

    fn write(&self, rowkeys: &[Rowkey], values: Vec<Value>, writer: &mut dyn BulkWriter) -> Result<()> {
        let Filling { view, table, id } = *self;
        let family = table.column(id).family;
        let keyspace = table.family(family).keyspace;
        let reader = view.snapshot.reader()?;
        let keys: Vec<&[u8]> = rowkeys.iter().map(|key| &key[..]).collect();
        let packer = Packer::new(table);
        for ((rowkey, value), sealed) in keys.iter().zip(values).zip(reader.get_many(keyspace, &keys)?) {
            if value.is_null() {
                continue;
            }
            let sealed = packer.reseal(family, sealed, &[(id, value)])?;
            writer.put(keyspace, rowkey, &sealed)?;
        }
        Ok(())
    }
}
