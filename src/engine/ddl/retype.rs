//! ALTER COLUMN ... TYPE: the column keeps its place, and its values are written anew; other writers wait.

use sqlparser::ast::{Expr, Ident};

use super::alter::refuse_if_used;
use super::in_rows::{Filling, alter_rows, purge, purge_rest};
use crate::engine::outcome::Warning;
use crate::engine::rows::{assign, batch_of, check_null, defaults};
use crate::engine::session::Session;
use crate::engine::view::{StatementView, column_named};
use crate::error::{Error, Result, sqlstate};
use crate::exec::stored::{Packer, StoredRow};
use crate::key::{ColumnId, KeyPart, Rowkey};
use crate::row::any_value_at;
use crate::schema::TableDef;
use crate::sql::{AlterTable, NewType, name_of, name_sql, rename_column, span_of_name};
use crate::store::{BulkWriter, WriteBatch};
use crate::value::{Value, quoted_name};

/// SET DATA TYPE.
///
/// Errors: a value that does not fit the new type, or the DEFAULT; the rowkey, an index, a CHECK, a foreign key or a view
/// needs the column as it is; the table keeps versions.
pub fn set_type(
    session: &mut Session,
    alter: &AlterTable,
    name: &Ident,
    new: &NewType,
) -> Result<Vec<Warning>> {
    purge(session, alter)?;
    alter_rows(session, alter, |view, table, edit, writer| {
        let (old, id) = (table.clone(), column_named(table, name)?);
        let column = &mut table.columns[usize::from(id.0)];
        let is_same_type = column.ty == new.data_type && new.using.is_none();
        let was_shorter = |max: u32| column.max_len.is_some_and(|before| before <= max);
        let needs_no_look = is_same_type && new.max_len.is_none_or(was_shorter);
        (column.ty, column.max_len) = (new.data_type, new.max_len);
        if !is_same_type {
            may_change(&old, id, name, new).map_err(|e| e.at(span_of_name(name)))?;
        }
        let retyping = Retyping { view, old: &old, new: table, id, using: new.using.as_ref() };
        if !needs_no_look {
            purge_rest(view, &old, writer)?;
            retyping.all(writer).map_err(|e| e.unplaced().at(span_of_name(name)))?;
        }
        if !is_same_type {
            // They hold values of the old type.
            edit.forget_statistics(table.id);
        }
        Ok(Some(Vec::new()))
    })
}

/// The statements that give a column of the rowkey another type.
fn by_another_column(table: &TableDef, id: ColumnId, new: &NewType) -> Result<String> {
    let (of, name, ty) = (name_sql(&table.name), table.column_name(id), new.data_type);
    let taken = |other: &String| table.live_columns().any(|(_, column)| column.name == *other);
    let mut other = format!("{name}_new");
    while taken(&other) {
        other += "_new";
    }
    let part = |part: &KeyPart| {
        let written = part.written();
        Ok(match written.strip_suffix(" DESC") {
            Some(expr) => rename_column(expr, name, &other)? + " DESC",
            None => rename_column(&written, name, &other)?,
        })
    };
    let parts = table.key.parts().iter().map(part).collect::<Result<Vec<String>>>()?;
    let (name, other, layout) = (name_sql(name), name_sql(&other), parts.join(", "));
    Ok(format!(
        "ALTER TABLE {of} ADD COLUMN {other} {ty}; UPDATE {of} SET {other} = CAST({name} AS {ty}); ALTER TABLE {of} REKEY \
         ({layout}); ALTER TABLE {of} DROP COLUMN {name}; ALTER TABLE {of} RENAME COLUMN {other} TO {name}"
    ))
}

/// Errors: something needs the column's type as it is.
fn may_change(table: &TableDef, id: ColumnId, name: &Ident, new: &NewType) -> Result<()> {
    let what = "cannot change its type";
    if table.is_key_column(id) {
        return Err(Error::invalid(format!("column \"{}\" {what}", name_of(name)))
            .why("the rowkey uses it")
            .hint(by_another_column(table, id, new)?)
            .state(sqlstate::DEPENDENT));
    }
    refuse_if_used(table, id, name, what)?;
    let refused = |why: &str, hint: String| {
        Err(Error::invalid(format!("column \"{}\" {what}", name_of(name)))
            .why(why.to_owned())
            .hint(hint)
            .state(sqlstate::DEPENDENT))
    };
    if table.history.is_some() {
        let hint = format!("ALTER TABLE {} SET (versions = 1) gives them up", name_sql(&table.name));
        return refused("the table keeps versions, which have it", hint);
    }
    match table.column(id).identity.is_some() && !new.data_type.is_integer() {
        true => refused("it numbers itself", "SMALLINT, INTEGER and BIGINT can".to_owned()),
        false => Ok(()),
    }
}

/// A column on its way from one type to another.
struct Retyping<'a> {
    view: &'a StatementView,
    old: &'a TableDef,
    new: &'a TableDef,
    id: ColumnId,
    using: Option<&'a Expr>,
}

impl Retyping<'_> {
    /// Writes the column of all rows anew.
    fn all(&self, writer: &mut dyn BulkWriter) -> Result<()> {
        let Retyping { view, old, new, id, .. } = *self;
        let column = new.column(id);
        if let Some(sql) = &column.default {
            let fits = || assign(view.db.runtime().block_on(defaults(view, sql, 1))?.remove(0), column);
            fits().map_err(|e| {
                let (of, column) = (name_sql(&new.name), name_sql(&column.name));
                e.hint(format!("its DEFAULT is {sql}: ALTER TABLE {of} ALTER {column} DROP DEFAULT first"))
            })?;
        }
        let packer = Packer::new(new);
        let filling = Filling { view, table: old, id };
        filling.each(|rowkeys| {
            let rows = rowkeys.iter().zip(filling.rows(rowkeys)?);
            // What has expired is purged in the same step.
            let is_alive = |(_, row): &(_, StoredRow)| old.is_alive(&row.values, view.as_of_us);
            let (rowkeys, rows): (Vec<&Rowkey>, Vec<StoredRow>) = rows.filter(is_alive).unzip();
            let mut batch = WriteBatch::default();
            for ((rowkey, row), value) in rowkeys.into_iter().zip(&rows).zip(self.values(&rows)?) {
                let fitted = assign(value, column).and_then(|value| {
                    check_null(new, id, &value)?;
                    Ok(value)
                });
                let mut values = row.values.clone();
                values[usize::from(id.0)] =
                    fitted.map_err(|e| e.hint(format!("the row has rowkey {}", old.key.show(rowkey))))?;
                packer.write_row(rowkey, Some(row), Some(&values), &mut batch)?;
            }
            batch.write_to(writer)
        })
    }

    /// The new values of these rows, before they are cast.
    fn values(&self, rows: &[StoredRow]) -> Result<Vec<Value>> {
        let Some(using) = self.using else {
            let old = |row: &StoredRow| row.values[usize::from(self.id.0)].clone();
            return Ok(rows.iter().map(old).collect());
        };
        let Retyping { view, old, .. } = self;
        let batch = batch_of(old, rows.iter().map(|row| &row.values[..]), None)?;
        let sql = format!("SELECT ({using}) FROM {}", quoted_name(&old.name));
        let computed =
            view.db.runtime().block_on(view.compute(&sql, vec![(old.name.clone(), batch)], &[]))?;
        if computed.num_rows() != rows.len() {
            return Err(Error::invalid("USING gives another number of values than there are rows")
                .state(sqlstate::DATATYPE_MISMATCH));
        }
        (0..rows.len()).map(|at| any_value_at(computed.column(0), at)).collect()
    }
}
