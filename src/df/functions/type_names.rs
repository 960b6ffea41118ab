//! `typeof` and `pg_typeof`.

use arrow::datatypes::DataType;

use super::row_function::FunctionBuffers;
use crate::error::{Error, Result};
use crate::row::column_type_of;
use crate::value::{ColumnType, ValueRef};

/// `typeof(x)`, in SQLite's words where it has the type.
pub(super) fn type_of<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    let ([value], [field]) = (args, &buffers.fields[..]) else { return Err(one_value("typeof")) };
    Ok(ValueRef::Text(match value {
        ValueRef::Null => "null",
        ValueRef::Boolean(_) => "boolean",
        ValueRef::Int(_) => "integer",
        ValueRef::Double(_) => "real",
        ValueRef::Decimal(..) => "decimal",
        ValueRef::Text(_) => match column_type_of(field) {
            Some(ColumnType::Uuid) => "uuid",
            Some(ColumnType::Json) => "json",
            _ if matches!(field.data_type(), DataType::Interval(_)) => "interval",
            _ => "text",
        },
        ValueRef::Bytes(_) => "blob",
        ValueRef::Date(_) => "date",
        ValueRef::Timestamp(_) => "timestamp",
        ValueRef::TimestampTz(_) => "timestamptz",
        ValueRef::Uuid(_) => "uuid",
    }))
}

/// `pg_typeof(x)`: the type of the expression in PostgreSQL's words.
pub(super) fn pg_type_of<'a>(_: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    let [field] = &buffers.fields[..] else { return Err(one_value("pg_typeof")) };
    let name = match (column_type_of(field), field.data_type()) {
        (_, DataType::Null) => "unknown",
        (Some(ColumnType::Boolean), _) => "boolean",
        (Some(ColumnType::SmallInt), _) => "smallint",
        (Some(ColumnType::Integer), _) => "integer",
        (Some(ColumnType::BigInt), _) => "bigint",
        (Some(ColumnType::Real), _) => "real",
        (Some(ColumnType::Double), _) => "double precision",
        (Some(ColumnType::Decimal { .. }), _) => "numeric",
        (Some(ColumnType::Varchar), _) => "text",
        (Some(ColumnType::Varbinary), _) => "bytea",
        (Some(ColumnType::Date), _) => "date",
        (Some(ColumnType::Timestamp), _) => "timestamp without time zone",
        (Some(ColumnType::TimestampTz), _) => "timestamp with time zone",
        (Some(ColumnType::Uuid), _) => "uuid",
        (Some(ColumnType::Json), _) => "json",
        (None, DataType::Interval(_) | DataType::Duration(_)) => "interval",
        (None, DataType::Time32(_) | DataType::Time64(_)) => "time without time zone",
        (None, _) => "anyelement",
    };
    Ok(ValueRef::Text(name))
}

fn one_value(name: &str) -> Error {
    Error::invalid(format!("{name} takes one value")).hint(format!("write {name}(x)"))
}
