//! Builds one Arrow column, value by value.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder,
    Float64Builder, Int16Builder, Int32Builder, Int64Builder, StringArray, TimestampMicrosecondBuilder,
};

use super::arrow::{UTC, arrow_type};
use super::packed::{decode_int, decode_wide, no_value, unpack};
use crate::error::{Error, Result, sqlstate};
use crate::key::ColumnId;
use crate::value::{ColumnType, ValueRef};

/// Collects the values of one column.
#[derive(Debug)]
pub struct ColumnBuilder {
    ty: ColumnType,
    inner: Inner,
    /// The column that text bytes come from, for error messages.
    column: ColumnId,
}

#[derive(Debug)]
enum Inner {
    Boolean(BooleanBuilder),
    SmallInt(Int16Builder),
    Integer(Int32Builder),
    BigInt(Int64Builder),
    Real(Float32Builder),
    Double(Float64Builder),
    Decimal(Decimal128Builder),
    /// UTF-8 is validated for all values at once at the end, which is faster than one by one.
    Text(BinaryBuilder),
    Bytes(BinaryBuilder),
    Date(Date32Builder),
    Timestamp(TimestampMicrosecondBuilder),
}

/// Runs `$body` with `$builder` bound to the builder, whatever its type.
macro_rules! each {
    ($inner:expr, $builder:ident => $body:expr) => {
        match $inner {
            Inner::Boolean($builder) => $body,
            Inner::SmallInt($builder) => $body,
            Inner::Integer($builder) => $body,
            Inner::BigInt($builder) => $body,
            Inner::Real($builder) => $body,
            Inner::Double($builder) => $body,
            Inner::Decimal($builder) => $body,
            Inner::Text($builder) => $body,
            Inner::Bytes($builder) => $body,
            Inner::Date($builder) => $body,
            Inner::Timestamp($builder) => $body,
        }
    };
}

/// Expected bytes of a text value, for the first allocation.
const TEXT_BYTES_EXPECTED: usize = 16;

impl ColumnBuilder {
    /// A builder for values of `ty` with room for `capacity` of them.
    pub fn new(ty: ColumnType, capacity: usize) -> Self {
        let bytes = capacity * TEXT_BYTES_EXPECTED;
        let timestamps = || TimestampMicrosecondBuilder::with_capacity(capacity);
        let inner = match ty {
            ColumnType::Boolean => Inner::Boolean(BooleanBuilder::with_capacity(capacity)),
            ColumnType::SmallInt => Inner::SmallInt(Int16Builder::with_capacity(capacity)),
            ColumnType::Integer => Inner::Integer(Int32Builder::with_capacity(capacity)),
            ColumnType::BigInt => Inner::BigInt(Int64Builder::with_capacity(capacity)),
            ColumnType::Real => Inner::Real(Float32Builder::with_capacity(capacity)),
            ColumnType::Double => Inner::Double(Float64Builder::with_capacity(capacity)),
            ColumnType::Decimal { .. } => {
                Inner::Decimal(Decimal128Builder::with_capacity(capacity).with_data_type(arrow_type(ty)))
            }
            ColumnType::Varchar | ColumnType::Uuid | ColumnType::Json => {
                Inner::Text(BinaryBuilder::with_capacity(capacity, bytes))
            }
            ColumnType::Varbinary => Inner::Bytes(BinaryBuilder::with_capacity(capacity, bytes)),
            ColumnType::Date => Inner::Date(Date32Builder::with_capacity(capacity)),
            ColumnType::Timestamp => Inner::Timestamp(timestamps()),
            ColumnType::TimestampTz => Inner::Timestamp(timestamps().with_timezone(UTC)),
        };
        ColumnBuilder { ty, inner, column: ColumnId(0) }
    }

    /// Number of values so far.
    pub fn len(&self) -> usize {
        use arrow::array::ArrayBuilder;
        each!(&self.inner, b => b.len())
    }

    /// No values so far.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds NULL.
    pub fn append_null(&mut self) {
        each!(&mut self.inner, b => b.append_null());
    }

    /// Adds the value in the `bytes` of a packed `column`, which has the builder's type.
    ///
    /// Errors: as [`unpack`] (for text only in [`ColumnBuilder::finish`]) and [`ColumnBuilder::append`].
    #[inline]
    pub fn append_packed(&mut self, column: ColumnId, bytes: &[u8]) -> Result<()> {
        // The most common types are appended without a value in between.
        let appended = match &mut self.inner {
            Inner::BigInt(b) => decode_int(bytes).map(|v| b.append_value(v)),
            Inner::Timestamp(b) => decode_int(bytes).map(|v| b.append_value(v)),
            Inner::Decimal(b) => decode_wide(bytes).map(|v| b.append_value(v)),
            Inner::Text(b) if self.ty.is_text() => {
                check_room(b.values_slice().len(), bytes.len())?;
                self.column = column;
                b.append_value(bytes);
                Some(())
            }
            _ => return self.append(unpack(column, self.ty, bytes)?),
        };
        appended.ok_or_else(|| no_value(column, self.ty, bytes))
    }

    /// Adds `value`.
    ///
    /// Errors: `Internal` when it is not of the builder's type; `Unsupported` when the column has more
    /// than 2 GiB of text.
    #[inline]
    pub fn append(&mut self, value: ValueRef<'_>) -> Result<()> {
        match (&mut self.inner, value) {
            (_, ValueRef::Null) => self.append_null(),
            (Inner::Boolean(b), ValueRef::Boolean(v)) => b.append_value(v),
            (Inner::SmallInt(b), ValueRef::Int(v)) => b.append_value(narrow(v, self.ty)?),
            (Inner::Integer(b), ValueRef::Int(v)) => b.append_value(narrow(v, self.ty)?),
            (Inner::BigInt(b), ValueRef::Int(v)) => b.append_value(v),
            (Inner::Real(b), ValueRef::Double(v)) => b.append_value(v as f32),
            (Inner::Double(b), ValueRef::Double(v)) => b.append_value(v),
            (Inner::Decimal(b), ValueRef::Decimal(v, s)) if has_scale(self.ty, s) => b.append_value(v),
            (Inner::Text(b), ValueRef::Text(v)) if self.ty.is_text() => {
                check_room(b.values_slice().len(), v.len())?;
                b.append_value(v);
            }
            (Inner::Text(b), ValueRef::Uuid(v)) if self.ty == ColumnType::Uuid => {
                check_room(b.values_slice().len(), uuid::fmt::Hyphenated::LENGTH)?;
                let mut text = uuid::Uuid::encode_buffer();
                b.append_value(uuid::Uuid::from_bytes(v).hyphenated().encode_lower(&mut text));
            }
            (Inner::Bytes(b), ValueRef::Bytes(v)) => {
                check_room(b.values_slice().len(), v.len())?;
                b.append_value(v);
            }
            (Inner::Date(b), ValueRef::Date(v)) => b.append_value(v),
            (Inner::Timestamp(b), ValueRef::Timestamp(v)) if self.ty == ColumnType::Timestamp => {
                b.append_value(v)
            }
            (Inner::Timestamp(b), ValueRef::TimestampTz(v)) if self.ty == ColumnType::TimestampTz => {
                b.append_value(v)
            }
            (_, value) => return Err(mismatch(value, self.ty)),
        }
        Ok(())
    }

    /// The finished column; the builder is then empty and can be reused.
    ///
    /// Errors: `Corrupt` when the bytes of a text are not UTF-8.
    pub fn finish(&mut self) -> Result<ArrayRef> {
        if let Inner::Text(b) = &mut self.inner {
            let bytes = b.finish();
            return match StringArray::try_from_binary(bytes.clone()) {
                Ok(texts) => Ok(Arc::new(texts)),
                Err(_) => Err(self.no_text(&bytes)),
            };
        }
        Ok(each!(&mut self.inner, b => Arc::new(b.finish())))
    }

    #[cold]
    fn no_text(&self, values: &BinaryArray) -> Error {
        let bad = values.iter().flatten().find(|bytes| std::str::from_utf8(bytes).is_err());
        no_value(self.column, self.ty, bad.unwrap_or_default())
    }
}

#[cold]
fn mismatch(value: ValueRef<'_>, ty: ColumnType) -> Error {
    Error::internal(format!("{value:?} in a column of {ty}"))
}

fn narrow<T: TryFrom<i64>>(i: i64, ty: ColumnType) -> Result<T> {
    T::try_from(i).map_err(|_| mismatch(ValueRef::Int(i), ty))
}

fn has_scale(ty: ColumnType, wanted: u8) -> bool {
    matches!(ty, ColumnType::Decimal { scale, .. } if scale == wanted)
}

/// Arrow counts the bytes of a column in 31 bits, and panics beyond.
fn check_room(used: usize, more: usize) -> Result<()> {
    if used + more <= i32::MAX as usize {
        return Ok(());
    }
    Err(Error::unsupported("more than 2 GiB of text in one batch of rows").state(sqlstate::LIMIT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn a_builder_refuses_another_types_value() {
        let mut builder = ColumnBuilder::new(ColumnType::SmallInt, 1);
        for value in [ValueRef::Boolean(true), ValueRef::Int(40_000)] {
            assert_eq!(builder.append(value).unwrap_err().kind(), Kind::Internal);
        }
        let mut builder = ColumnBuilder::new(ColumnType::Decimal { precision: 5, scale: 2 }, 1);
        assert!(builder.append(ValueRef::Decimal(1, 3)).is_err());
        assert!(builder.is_empty());
    }
}
