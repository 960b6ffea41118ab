//! Turns the cells that a statement gives into whole rows: casts, defaults, identities and constraints.

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use sqlparser::ast;
use std::sync::Arc;

use super::numbers::number;
use super::view::StatementView;
use crate::error::{Error, Result, counted, sqlstate};
use crate::key::{ColumnId, Rowkey};
use crate::row::{ColumnBuilder, any_value_at, field, value_at};
use crate::schema::{Column, TableDef};
use crate::sql::rewrite::ROWKEY;
use crate::sql::{Overriding, name_sql, parameter_place};
use crate::store::WriteBatch;
use crate::value::{CastError, CastFault, ColumnType, Value, quoted_name};

/// Values given for some columns of some rows; `None` stands for the default.
pub struct PartialRows {
    /// Columns of each row.
    pub columns: Vec<ColumnId>,
    /// One cell for each of `columns`.
    pub rows: Vec<Vec<Option<Value>>>,
    /// The OVERRIDING clause, for values given for identity columns.
    pub overriding: Option<Overriding>,
    /// Rows of the statement before these (count), for messages.
    pub before: u64,
}

/// Casts the cells to their columns, fills in the rest, and checks the constraints. Advanced identity
/// counters are written to `batch`.
///
/// Errors: as [`filled`]; NULL in a NOT NULL column; a CHECK that does not hold.
pub async fn complete(
    view: &StatementView,
    table: &TableDef,
    cells: PartialRows,
    batch: &mut WriteBatch,
) -> Result<Vec<Vec<Value>>> {
    let before = cells.before;
    let rows = filled(view, table, cells, batch).await?;
    for (number, row) in (before..).zip(&rows) {
        check_nulls(table, row).map_err(|e| e.of_row(number))?;
    }
    check_constraints(view, table, &rows).await.map_err(|e| e.renumbered(|at| before + at))?;
    Ok(rows)
}

/// Like [`complete`], without the constraints: for rows that may still be merged with existing ones.
///
/// Errors: a value that does not fit its column, naming row and column; a value for a GENERATED ALWAYS column.
pub async fn filled(
    view: &StatementView,
    table: &TableDef,
    cells: PartialRows,
    batch: &mut WriteBatch,
) -> Result<Vec<Vec<Value>>> {
    let n = cells.rows.len();
    let mut row = vec![Value::Null; table.columns.len()];
    if let Some(written_at) = table.written_at {
        row[usize::from(written_at.0)] = Value::TimestampTz(view.as_of_us);
    }
    let mut rows = vec![row; n];
    let mut missing: Vec<Vec<usize>> = vec![Vec::new(); table.columns.len()];
    let mut given = vec![false; table.columns.len()];
    for id in &cells.columns {
        given[usize::from(id.0)] = true;
    }
    for (id, _) in table.filled_columns() {
        if !given[usize::from(id.0)] {
            missing[usize::from(id.0)] = (0..n).collect();
        }
    }
    for (at, row) in cells.rows.into_iter().enumerate() {
        for (id, cell) in cells.columns.iter().zip(row) {
            let column = table.column(*id);
            match cell {
                None => missing[usize::from(id.0)].push(at),
                Some(value) => {
                    match (column.identity, cells.overriding) {
                        (Some(_), Some(Overriding::User)) => {
                            missing[usize::from(id.0)].push(at);
                            continue;
                        }
                        (Some(identity), None) if identity.always => return Err(always_identity(column)),
                        // As SQLite and MySQL have it.
                        (Some(_), None) if value.is_null() => {
                            missing[usize::from(id.0)].push(at);
                            continue;
                        }
                        _ => {}
                    }
                    let fit = assign(value, column).map_err(|e| e.of_row(cells.before + at as u64))?;
                    rows[at][usize::from(id.0)] = fit;
                }
            }
        }
    }
    for (id, column) in table.filled_columns() {
        let wanted = &missing[usize::from(id.0)];
        if let Some(identity) = column.identity {
            number(view, table, (id, identity), &mut rows, wanted, batch)?;
        } else if let Some(sql) = column.default.as_ref().filter(|_| !wanted.is_empty()) {
            let values = defaults(view, sql, wanted.len()).await?;
            for (value, at) in values.into_iter().zip(wanted) {
                rows[*at][usize::from(id.0)] = assign(value, column)?;
            }
        }
    }
    Ok(rows)
}

/// The value cast to its column's type and length.
pub fn assign(value: Value, column: &Column) -> Result<Value> {
    let value = match value {
        // SQLite's dumps write conditions so; comparisons take them, too.
        Value::Int(n @ (0 | 1)) if column.ty == ColumnType::Boolean => Value::Boolean(n == 1),
        value => value.cast(column.ty).map_err(|e| of_column(e, column))?,
    };
    if let Some(max) = column.max_len {
        let (len, unit) = match &value {
            Value::Text(text) => (text.chars().count(), "character"),
            Value::Bytes(bytes) => (bytes.len(), "byte"),
            _ => (0, ""),
        };
        if len > max as usize {
            return Err(Error::invalid(format!(
                "column \"{}\" takes {}, not {len}",
                column.name,
                counted(max, unit)
            ))
            .hint("shorten the value, or declare the column wider")
            .state(sqlstate::TOO_LONG)
            .of_column(&column.name));
        }
    }
    Ok(value)
}

/// Adds to an error which column it is about.
fn of_column(error: CastError, column: &Column) -> Error {
    let why = format!("column \"{}\" is {}", column.name, column.ty);
    let why = match &error.fault {
        CastFault::Malformed(Some(fault))
            if matches!(column.ty, ColumnType::Json | ColumnType::Timestamp) =>
        {
            format!("{why}; {fault}")
        }
        _ => why,
    };
    Error::from(error).why(why).of_column(&column.name)
}

/// The error, with the number of the row that it is about, if that is known.
pub fn in_row(error: Error) -> Error {
    match (error.subject().row, error.reason().map(str::to_owned)) {
        (None, _) => error,
        (Some(row), None) => error.why(format!("in row {}", row + 1)),
        (Some(row), Some(why)) => error.why(format!("in row {}: {why}", row + 1)),
    }
}

pub fn always_identity(column: &Column) -> Error {
    Error::invalid(format!("column \"{}\" numbers itself", column.name))
        .why("it is GENERATED ALWAYS AS IDENTITY")
        .hint("leave it out, write DEFAULT, or say OVERRIDING SYSTEM VALUE")
        .state(sqlstate::GENERATED_ALWAYS)
}

/// Errors: NULL in a NOT NULL column.
pub fn check_nulls(table: &TableDef, row: &[Value]) -> Result<()> {
    missing(table, row).next().map_or(Ok(()), |missing| Err(cannot_be_null(table, missing)))
}

/// Errors: NULL in this column although it is NOT NULL.
pub fn check_null(table: &TableDef, id: ColumnId, value: &Value) -> Result<()> {
    let column = table.column(id);
    if column.nullable || !value.is_null() { Ok(()) } else { Err(cannot_be_null(table, (id, column))) }
}

/// Errors: NULL in a NOT NULL column of the rowkey.
pub fn check_nulls_of_key(table: &TableDef, row: &[Value]) -> Result<()> {
    let of_key = missing(table, row).find(|(id, _)| table.is_key_column(*id));
    of_key.map_or(Ok(()), |missing| Err(cannot_be_null(table, missing)))
}

/// NOT NULL columns that are NULL in the row.
fn missing<'t>(table: &'t TableDef, row: &[Value]) -> impl Iterator<Item = (ColumnId, &'t Column)> {
    table.live_columns().filter(|(id, column)| !column.nullable && row[usize::from(id.0)].is_null())
}

fn cannot_be_null(table: &TableDef, (id, column): (ColumnId, &Column)) -> Error {
    let why = if table.is_key_column(id) { "it is part of the rowkey" } else { "it is NOT NULL" };
    let is_sole_key = || table.key.columns() == [id] && column.ty.is_integer() && column.default.is_none();
    let hint = match column.identity {
        Some(_) => "it numbers itself: leave it out, or write DEFAULT".to_owned(),
        None if is_sole_key() => {
            let column = format!("{} {}", name_sql(&column.name), column.ty);
            format!(
                "give it a value; declared {column} GENERATED BY DEFAULT AS IDENTITY, it would number itself"
            )
        }
        None => "give it a value".to_owned(),
    };
    Error::invalid(format!("column \"{}\" cannot be NULL", column.name))
        .why(why)
        .hint(hint)
        .state(sqlstate::NOT_NULL)
        .of_column(&column.name)
}

/// Errors: a CHECK that is false for a row (NULL passes); it tells which of `rows` that is.
pub async fn check_constraints(view: &StatementView, table: &TableDef, rows: &[Vec<Value>]) -> Result<()> {
    if table.checks.is_empty() || rows.is_empty() {
        return Ok(());
    }
    let list: Vec<String> =
        table.checks.iter().enumerate().map(|(i, check)| format!("({}) AS check_{i}", check.sql)).collect();
    let sql = format!("SELECT {} FROM {}", list.join(", "), quoted_name(&table.name));
    let batch = batch_of(table, rows.iter().map(Vec::as_slice), None)?;
    let verdicts = view.compute(&sql, vec![(table.name.clone(), batch)], &[]).await?;
    if verdicts.num_rows() != rows.len() {
        return Err(Error::internal("the CHECKs give another number of verdicts than there are rows"));
    }
    for (i, check) in table.checks.iter().enumerate() {
        for (at, row) in rows.iter().enumerate() {
            if value_at(verdicts.column(i), at, ColumnType::Boolean)? == Value::Boolean(false) {
                return Err(Error::invalid(format!("check \"{}\" does not hold", check.name))
                    .why(format!("{} is false for {}", check.sql, show_row(table, row)))
                    .state(sqlstate::CHECK)
                    .of_row(at as u64));
            }
        }
    }
    Ok(())
}

/// The first few columns, as in `a=1, b='x', ...`.
fn show_row(table: &TableDef, row: &[Value]) -> String {
    let mut columns = table.live_columns();
    let shown = columns.by_ref().take(6).map(|(id, column)| {
        format!("{}={}", column.name, crate::value::Literal(row[usize::from(id.0)].as_ref()))
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    if columns.next().is_some() { format!("{shown}, ...") } else { shown }
}

/// `n` values of a DEFAULT expression.
pub async fn defaults(view: &StatementView, sql: &str, n: usize) -> Result<Vec<Value>> {
    let expr = view.db.shared.defaults.parse(sql)?;
    if let Some(value) = view.value_of(&expr, &[])? {
        return Ok(vec![value; n]);
    }
    // Evaluate it over `n` rows: a default may differ for each, for example a random one.
    let mut builder = ColumnBuilder::new(ColumnType::BigInt, n);
    (0..n as i64).try_for_each(|i| builder.append(crate::value::ValueRef::Int(i)))?;
    let schema = Schema::new(vec![field("n", ColumnType::BigInt, false)]);
    let rows = RecordBatch::try_new(Arc::new(schema), vec![builder.finish()?])
        .map_err(|e| Error::internal("rows for a default").caused_by(e))?;
    let query = format!("SELECT ({sql}) AS value FROM default_rows");
    let values = view.compute(&query, vec![("default_rows".into(), rows)], &[]).await?;
    if values.num_rows() != n {
        return Err(Error::internal(format!(
            "DEFAULT {sql} gives {} values for {n} rows",
            values.num_rows()
        )));
    }
    (0..n).map(|i| any_value_at(values.column(0), i)).collect()
}

/// Rows as a batch of the table's live columns, with their rowkeys (as the pseudo-column) if given.
pub fn batch_of<'r>(
    table: &TableDef,
    rows: impl Iterator<Item = &'r [Value]>,
    rowkeys: Option<&[Rowkey]>,
) -> Result<RecordBatch> {
    let columns: Vec<(ColumnId, &Column)> = table.live_columns().collect();
    let mut builders: Vec<ColumnBuilder> =
        columns.iter().map(|(_, c)| ColumnBuilder::new(c.ty, 16)).collect();
    let mut fields: Vec<_> = columns.iter().map(|(_, c)| field(&c.name, c.ty, true)).collect();
    for row in rows {
        for ((id, _), builder) in columns.iter().zip(&mut builders) {
            builder.append(row[usize::from(id.0)].as_ref())?;
        }
    }
    if let Some(keys) = rowkeys
        && !table.names_rowkey()
    {
        let ty = if table.key.is_text() { ColumnType::Varchar } else { ColumnType::Varbinary };
        let mut builder = ColumnBuilder::new(ty, keys.len());
        for key in keys {
            builder.append(crate::exec::key_value(key, table.key.is_text())?)?;
        }
        fields.push(field(ROWKEY, ty, false));
        builders.push(builder);
    }
    let arrays = builders.iter_mut().map(ColumnBuilder::finish).collect::<Result<_>>()?;
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        .map_err(|e| Error::internal("rows do not fit their batch").caused_by(e))
}

/// The value of a literal or parameter; `None` for any other expression.
pub fn literal(expr: &ast::Expr, params: &[Value]) -> Result<Option<Value>> {
    use ast::{CastKind, Expr, UnaryOperator, Value as Sql};
    let value = match expr {
        Expr::Nested(inner) => return literal(inner, params),
        Expr::Value(value) => &value.value,
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            return Ok(literal(expr, params)?.and_then(Value::negated));
        }
        Expr::TypedString(typed) => {
            let Ok(ty) = crate::sql::column_type(&typed.data_type) else { return Ok(None) };
            let Some(text) = typed.value.value.clone().into_string() else { return Ok(None) };
            return Ok(Some(Value::Text(text).cast(ty)?));
        }
        Expr::Cast {
            kind: CastKind::Cast | CastKind::DoubleColon,
            expr,
            data_type,
            format: None,
            array: false,
        } => {
            let Ok(ty) = crate::sql::column_type(data_type) else { return Ok(None) };
            let Some(value) = literal(expr, params)? else { return Ok(None) };
            let is_same = value.is_null() || ty == ColumnType::Varchar && matches!(value, Value::Text(_));
            return Ok(if is_same { Some(value) } else { crate::sql::cast_constant(value, ty) });
        }
        _ => return Ok(None),
    };
    Ok(Some(match value {
        Sql::Null => Value::Null,
        Sql::Boolean(b) => Value::Boolean(*b),
        Sql::Number(digits, _) => match Value::number(digits) {
            Some(value) => value,
            None => return Ok(None),
        },
        Sql::SingleQuotedString(text) | Sql::EscapedStringLiteral(text) => Value::Text(text.clone()),
        Sql::DollarQuotedString(text) => Value::Text(text.value.clone()),
        Sql::HexStringLiteral(hex) => Value::parse(&format!("\\x{hex}"), ColumnType::Varbinary)?,
        Sql::Placeholder(name) => {
            let value = parameter_place(name).and_then(|at| params.get(at));
            let missing = || {
                Error::invalid(format!("parameter {name} has no value"))
                    .about(name)
                    .why(format!("{} were given", params.len()))
                    .state(sqlstate::PROTOCOL)
            };
            value.cloned().ok_or_else(missing)?
        }
        _ => return Ok(None),
    }))
}

/// All values of a batch, row by row.
pub fn values_of<V: From<Value>>(batch: &RecordBatch) -> Result<Vec<Vec<V>>> {
    let row = |_| Vec::with_capacity(batch.num_columns());
    let mut rows: Vec<Vec<V>> = (0..batch.num_rows()).map(row).collect();
    for column in batch.columns() {
        for (at, row) in rows.iter_mut().enumerate() {
            row.push(any_value_at(column, at)?.into());
        }
    }
    Ok(rows)
}
