//! A row of a result, and its values as Rust types.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use serde::de::value::{Error as SerdeError, MapDeserializer};
use serde::de::{DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use uuid::Uuid;

use crate::error::{Error, Result, sqlstate};
use crate::exec::next_rows::NextRows;
use crate::value::{Value, decimal_to_double};

/// A row of a result.
#[derive(Clone)]
pub struct Row {
    rows: Arc<RowBatch>,
    at: usize,
}

/// Rows that were read in one batch, and their schema.
pub(super) struct RowBatch {
    pub rows: NextRows,
    pub schema: SchemaRef,
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = f.debug_map();
        for (at, name) in self.columns().enumerate() {
            match self.value_at(at) {
                Ok(value) => row.entry(&name, &value),
                Err(error) => row.entry(&name, &error),
            };
        }
        row.finish()
    }
}

impl Row {
    pub(super) fn new(rows: Arc<RowBatch>, at: usize) -> Row {
        Row { rows, at }
    }

    fn schema(&self) -> &SchemaRef {
        &self.rows.schema
    }

    /// Names of the columns.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = &str> {
        self.schema().fields().iter().map(|field| field.name().as_str())
    }

    /// The value of a column, by name or 0-based position, as a Rust type. Errors: no such column; NULL, and
    /// the type is not an `Option`; a value of another type.
    pub fn get<T: FromValue>(&self, column: impl ColumnIndex) -> Result<T> {
        let at = column.place_in(self)?;
        if let Some(value) = T::from_value(self.value_at(at)?) {
            return Ok(value);
        }
        let (name, value) = (self.schema().field(at).name(), self.value_at(at)?);
        Err(Error::invalid(format!(
            "column \"{name}\" is {}, not a {}",
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

    /// The value of a column, by name or 0-based position.
    pub fn value(&self, column: impl ColumnIndex) -> Result<Value> {
        self.value_at(column.place_in(self)?)
    }

    fn value_at(&self, column: usize) -> Result<Value> {
        self.rows.rows.value(self.at, column)
    }

    /// Converts the row to a `T`, whose fields are named like the columns.
    pub fn deserialize<T: DeserializeOwned>(&self) -> Result<T> {
        let fields = self.schema().fields();
        let entries: Result<Vec<(&str, Cell)>> = fields
            .iter()
            .enumerate()
            .map(|(i, f)| Ok((f.name().as_str(), Cell(self.value_at(i)?))))
            .collect();
        T::deserialize(MapDeserializer::new(entries?.into_iter())).map_err(|e: SerdeError| {
            Error::invalid(format!("the row does not fit the type: {e}")).state(sqlstate::DATATYPE_MISMATCH)
        })
    }
}

/// Names a column of a row: by its name, or by its position, from 0 on.
pub trait ColumnIndex {
    /// The column's position. Errors: there is no such column.
    fn place_in(&self, row: &Row) -> Result<usize>;
}

impl ColumnIndex for &str {
    fn place_in(&self, row: &Row) -> Result<usize> {
        row.schema().index_of(self).map_err(|_| {
            Error::invalid(format!("the result has no column \"{self}\"")).state(sqlstate::UNDEFINED_COLUMN)
        })
    }
}

impl ColumnIndex for &String {
    fn place_in(&self, row: &Row) -> Result<usize> {
        self.as_str().place_in(row)
    }
}

impl ColumnIndex for usize {
    fn place_in(&self, row: &Row) -> Result<usize> {
        let columns = row.columns().len();
        if *self < columns {
            return Ok(*self);
        }
        Err(Error::invalid(format!("the result has no column {self}"))
            .why(format!("it has {columns}, counted from 0"))
            .state(sqlstate::UNDEFINED_COLUMN))
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

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, SerdeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SerdeError> {
        match self.0 {
            Value::Text(variant) => visitor.visit_enum(variant.into_deserializer()),
            other => Cell(other).deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// Rust types that a column's value can be converted to.
pub trait FromValue: Sized {
    /// The name of the type in error messages.
    const NAME: &'static str;

    /// `None` if the value has another type, or is NULL and `Self` is not an `Option`.
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
from_value!(i8, v => int(&v));
from_value!(i16, v => int(&v));
from_value!(i32, v => int(&v));
from_value!(i64, v => int(&v));
from_value!(u8, v => int(&v));
from_value!(u16, v => int(&v));
from_value!(u32, v => int(&v));
from_value!(u64, v => int(&v));
from_value!(usize, v => int(&v));
from_value!(f32, v => match v {
    Value::Double(d) if d.is_nan() || f64::from(d as f32) == d => Some(d as f32),
    _ => None,
});
from_value!(f64, v => match v {
    Value::Double(d) => Some(d),
    Value::Decimal(d, scale) => Some(decimal_to_double(d, scale)),
    _ => None,
});
from_value!(String, v => match v {
    Value::Text(t) => Some(t),
    Value::Null | Value::Bytes(_) => None,
    other => Some(other.to_string()),
});
from_value!(Vec<u8>, v => if let Value::Bytes(b) = v { Some(b) } else { None });
from_value!(NaiveDate, v => v.date());
from_value!(NaiveDateTime, v => v.timestamp());
from_value!(DateTime<Utc>, v => v.instant());
from_value!(Uuid, v => if let Value::Uuid(bytes) = v { Some(Uuid::from_bytes(bytes)) } else { None });
from_value!(Value, v => Some(v));

fn int<T: TryFrom<i64>>(value: &Value) -> Option<T> {
    if let Value::Int(int) = value { T::try_from(*int).ok() } else { None }
}

impl<T: FromValue> FromValue for Option<T> {
    const NAME: &'static str = T::NAME;

    fn from_value(value: Value) -> Option<Self> {
        if value.is_null() { Some(None) } else { T::from_value(value).map(Some) }
    }
}
