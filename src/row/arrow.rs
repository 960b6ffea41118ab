//! Typed values in Arrow columns, and back.
//!
//! Going in, [`field`] gives a column's Arrow field and a [`ColumnBuilder`](super::ColumnBuilder) takes its values. Coming
//! out, [`column_type_of`] finds the SQL type of a field, of ours or of any file's or expression's,
//! and [`value_at`] reads a cell as a value of that type.
//!
//! | SQL | Arrow |
//! |---|---|
//! | BOOLEAN, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE | Boolean, Int16, Int32, Int64, Float32, Float64 |
//! | DECIMAL(p,s) | Decimal128(p, s) |
//! | VARCHAR | Utf8 |
//! | VARBINARY | Binary |
//! | DATE | Date32 |
//! | TIMESTAMP, TIMESTAMPTZ | Timestamp(µs), Timestamp(µs, +00:00) |
//! | UUID, JSON | Utf8, with the SQL name under `rowkeydb.type` in the field's metadata |
//!
//! A UUID is its canonical lower-case text, because that orders as the bytes do and because a query
//! compares it with text literals.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes as dt;
use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};
use arrow::error::ArrowError;

use crate::error::{Error, Kind, Result, sqlstate};
use crate::value::{
    ColumnType, Interval, Value, ValueRef, date_in_range, date_of, datetime_of, timestamp_in_range,
};

/// Key of a field's metadata that holds the SQL name of a type Arrow has no name for.
const TYPE_KEY: &str = "rowkeydb.type";

/// The time zone of every TIMESTAMPTZ.
pub(super) const UTC: &str = "+00:00";

/// The Arrow type that holds values of `ty`.
pub fn arrow_type(ty: ColumnType) -> DataType {
    match ty {
        ColumnType::Boolean => DataType::Boolean,
        ColumnType::SmallInt => DataType::Int16,
        ColumnType::Integer => DataType::Int32,
        ColumnType::BigInt => DataType::Int64,
        ColumnType::Real => DataType::Float32,
        ColumnType::Double => DataType::Float64,
        ColumnType::Decimal { precision, scale } => DataType::Decimal128(precision, scale as i8),
        ColumnType::Varchar | ColumnType::Uuid | ColumnType::Json => DataType::Utf8,
        ColumnType::Varbinary => DataType::Binary,
        ColumnType::Date => DataType::Date32,
        ColumnType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        ColumnType::TimestampTz => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
    }
}

/// The Arrow field of a column.
pub fn field(name: impl Into<String>, ty: ColumnType, nullable: bool) -> Field {
    let field = Field::new(name, arrow_type(ty), nullable);
    match ty {
        ColumnType::Uuid | ColumnType::Json => {
            field.with_metadata(HashMap::from([(TYPE_KEY.to_owned(), ty.sql_name())]))
        }
        _ => field,
    }
}

/// The field of a text that is plain VARCHAR, not UUID or JSON, and says so.
pub fn plain_text_field() -> Field {
    let ty = ColumnType::Varchar;
    let metadata = HashMap::from([(TYPE_KEY.to_owned(), ty.sql_name())]);
    Field::new("", arrow_type(ty), true).with_metadata(metadata)
}

/// The SQL type of a field, [`field`]'s own or another's: the narrowest that holds its values, except for UInt64,
/// which becomes BIGINT, and Decimal256, which is cut to 38 digits. `None` for times of day, intervals, lists and
/// other types that SQL columns cannot have; their values read as text.
pub fn column_type_of(field: &Field) -> Option<ColumnType> {
    let ty = of_data_type(field.data_type())?;
    // Casts keep a field's metadata, so it is trusted only where it can be true.
    match field.metadata().get(TYPE_KEY).map(String::as_str) {
        Some("UUID") if ty == ColumnType::Varchar => Some(ColumnType::Uuid),
        Some("JSON") if ty == ColumnType::Varchar => Some(ColumnType::Json),
        _ => Some(ty),
    }
}

/// The fields have the same type, to Arrow and to SQL: a UUID is no VARCHAR.
pub fn is_same_type(one: &Field, other: &Field) -> bool {
    one.data_type() == other.data_type() && column_type_of(one) == column_type_of(other)
}

/// The SQL name of a field's type, which a result may have even if no column can: INTERVAL, TIME, lists.
pub fn type_name(field: &Field) -> String {
    if let Some(ty) = column_type_of(field) {
        return ty.sql_name();
    }
    match field.data_type() {
        DataType::Interval(_) | DataType::Duration(_) => "INTERVAL".to_owned(),
        DataType::Time32(_) | DataType::Time64(_) => "TIME".to_owned(),
        DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _) => {
            format!("{}[]", type_name(element))
        }
        DataType::Struct(_) => "RECORD".to_owned(),
        other => other.to_string(),
    }
}

fn of_data_type(ty: &DataType) -> Option<ColumnType> {
    Some(match ty {
        DataType::Boolean => ColumnType::Boolean,
        DataType::Int8 | DataType::UInt8 | DataType::Int16 => ColumnType::SmallInt,
        DataType::UInt16 | DataType::Int32 => ColumnType::Integer,
        DataType::UInt32 | DataType::Int64 | DataType::UInt64 => ColumnType::BigInt,
        DataType::Float16 | DataType::Float32 => ColumnType::Real,
        DataType::Float64 => ColumnType::Double,
        DataType::Decimal32(p, s) | DataType::Decimal64(p, s) => of_decimal(*p, *s),
        DataType::Decimal128(p, s) | DataType::Decimal256(p, s) => of_decimal(*p, *s),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => ColumnType::Varchar,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            ColumnType::Varbinary
        }
        DataType::Date32 | DataType::Date64 => ColumnType::Date,
        DataType::Timestamp(_, None) => ColumnType::Timestamp,
        DataType::Timestamp(_, Some(_)) => ColumnType::TimestampTz,
        DataType::Dictionary(_, values) => return of_data_type(values),
        _ => return None,
    })
}

fn of_decimal(precision: u8, scale: i8) -> ColumnType {
    // A negative scale counts zeros before the point, which are digits in SQL.
    let zeros = (-scale).max(0) as u8;
    let precision = precision.saturating_add(zeros).clamp(1, 38);
    ColumnType::Decimal { precision, scale: scale.clamp(0, precision as i8) as u8 }
}

/// The cell as the value it holds, borrowed; `None` for types without one (lists, intervals, ...).
pub(super) fn cell(array: &dyn Array, row: usize) -> Result<Option<ValueRef<'_>>> {
    if array.is_null(row) {
        return Ok(Some(ValueRef::Null));
    }
    /// The primitive at `row`.
    macro_rules! at {
        ($ty:ident) => {
            array.as_primitive::<dt::$ty>().value(row)
        };
    }
    Ok(Some(match array.data_type() {
        DataType::Null => ValueRef::Null,
        DataType::Boolean => ValueRef::Boolean(array.as_boolean().value(row)),
        DataType::Int8 => ValueRef::Int(at!(Int8Type).into()),
        DataType::Int16 => ValueRef::Int(at!(Int16Type).into()),
        DataType::Int32 => ValueRef::Int(at!(Int32Type).into()),
        DataType::Int64 => ValueRef::Int(at!(Int64Type)),
        DataType::UInt8 => ValueRef::Int(at!(UInt8Type).into()),
        DataType::UInt16 => ValueRef::Int(at!(UInt16Type).into()),
        DataType::UInt32 => ValueRef::Int(at!(UInt32Type).into()),
        DataType::UInt64 => match i64::try_from(at!(UInt64Type)) {
            Ok(i) => ValueRef::Int(i),
            Err(_) => ValueRef::Decimal(at!(UInt64Type).into(), 0),
        },
        DataType::Float16 => ValueRef::Double(at!(Float16Type).into()),
        DataType::Float32 => ValueRef::Double(at!(Float32Type).into()),
        DataType::Float64 => ValueRef::Double(at!(Float64Type)),
        DataType::Decimal32(_, s) => decimal(Some(at!(Decimal32Type).into()), *s)?,
        DataType::Decimal64(_, s) => decimal(Some(at!(Decimal64Type).into()), *s)?,
        DataType::Decimal128(_, s) => decimal(Some(at!(Decimal128Type)), *s)?,
        DataType::Decimal256(_, s) => decimal(at!(Decimal256Type).to_i128(), *s)?,
        DataType::Utf8 => ValueRef::Text(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => ValueRef::Text(array.as_string::<i64>().value(row)),
        DataType::Utf8View => ValueRef::Text(array.as_string_view().value(row)),
        DataType::Binary => ValueRef::Bytes(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => ValueRef::Bytes(array.as_binary::<i64>().value(row)),
        DataType::BinaryView => ValueRef::Bytes(array.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => ValueRef::Bytes(array.as_fixed_size_binary().value(row)),
        DataType::Date32 => date(at!(Date32Type).into())?,
        DataType::Date64 => date(at!(Date64Type).div_euclid(86_400_000))?,
        DataType::Timestamp(unit, zone) => {
            let us = match unit {
                TimeUnit::Second => scaled(at!(TimestampSecondType), 1_000_000)?,
                TimeUnit::Millisecond => scaled(at!(TimestampMillisecondType), 1_000)?,
                TimeUnit::Microsecond => at!(TimestampMicrosecondType),
                TimeUnit::Nanosecond => at!(TimestampNanosecondType).div_euclid(1_000),
            };
            if !timestamp_in_range(us) && datetime_of(us).is_none() {
                return Err(no_time("microseconds", us));
            }
            if zone.is_some() { ValueRef::TimestampTz(us) } else { ValueRef::Timestamp(us) }
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            return match cell(dictionary.keys(), row)? {
                Some(ValueRef::Int(key)) => cell(dictionary.values().as_ref(), key as usize),
                other => Ok(other),
            };
        }
        _ => return Ok(None),
    }))
}

fn scaled(ticks: i64, us: i64) -> Result<i64> {
    ticks.checked_mul(us).ok_or_else(|| out_of_range(format!("time {ticks}")))
}

fn decimal(unscaled: Option<i128>, scale: i8) -> Result<ValueRef<'static>> {
    let held = unscaled.and_then(|d| match u8::try_from(scale) {
        Ok(scale) => (scale <= 38).then_some(ValueRef::Decimal(d, scale)),
        Err(_) => crate::value::rescale(d, 0, scale.unsigned_abs()).map(|d| ValueRef::Decimal(d, 0)),
    });
    held.ok_or_else(|| out_of_range("a decimal"))
}

fn date(days: i64) -> Result<ValueRef<'static>> {
    let held = i32::try_from(days).ok().filter(|days| date_in_range(*days) || date_of(*days).is_some());
    held.map(ValueRef::Date).ok_or_else(|| no_time("days", days))
}

/// The error for a time that no calendar shows: others beyond the years of columns may be computed.
fn no_time(unit: &str, ticks: i64) -> Error {
    out_of_range(format!("the time {ticks} {unit} after 1970-01-01")).why("years run from 0001 to 9999")
}

fn out_of_range(what: impl std::fmt::Display) -> Error {
    Error::invalid(format!("{what} is out of range for SQL")).state(sqlstate::OUT_OF_RANGE)
}

/// The text of a cell without a column type: an interval as in PostgreSQL, anything else as Arrow prints it.
pub(super) fn printed(array: &dyn Array, row: usize) -> Result<String> {
    match interval(array, row) {
        Some(interval) => Ok(interval.to_string()),
        None => Ok(arrow::util::display::array_value_to_string(array, row)?),
    }
}

/// The interval, or difference of times, in a cell.
fn interval(array: &dyn Array, row: usize) -> Option<Interval> {
    macro_rules! length {
        ($ty:ident, $nanos:expr) => {
            Interval::of_length(i128::from(array.as_primitive::<dt::$ty>().value(row)) * $nanos)
        };
    }
    Some(match array.data_type() {
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let of = array.as_primitive::<dt::IntervalMonthDayNanoType>().value(row);
            Interval { months: of.months, days: of.days.into(), nanos: of.nanoseconds.into() }
        }
        DataType::Duration(TimeUnit::Second) => length!(DurationSecondType, 1_000_000_000),
        DataType::Duration(TimeUnit::Millisecond) => length!(DurationMillisecondType, 1_000_000),
        DataType::Duration(TimeUnit::Microsecond) => length!(DurationMicrosecondType, 1_000),
        DataType::Duration(TimeUnit::Nanosecond) => length!(DurationNanosecondType, 1),
        _ => return None,
    })
}

/// The cell as the value it holds: integers of any width as [`Value::Int`], times of any unit in microseconds (finer
/// ones truncated), and values without an SQL type as text.
///
/// Errors: `Invalid` when a decimal has more than 38 digits or a time does not fit.
pub fn any_value_at(array: &dyn Array, row: usize) -> Result<Value> {
    match cell(array, row)? {
        Some(value) => Ok(value.to_value()),
        None => Ok(Value::Text(printed(array, row)?)),
    }
}

/// Converts an array for [`ref_at`]: values without an SQL type become text.
pub fn as_values(array: &ArrayRef) -> Result<ArrayRef> {
    if of_data_type(array.data_type()).is_some() {
        return Ok(Arc::clone(array));
    }
    let text = |row| if array.is_null(row) { Ok(None) } else { printed(array, row).map(Some) };
    Ok(Arc::new((0..array.len()).map(text).collect::<Result<StringArray>>()?))
}

/// As [`any_value_at`], without a copy, for an array from [`as_values`].
pub fn ref_at(array: &dyn Array, row: usize) -> Result<ValueRef<'_>> {
    cell(array, row)?.ok_or_else(|| Error::internal(format!("{} is no type of SQL", array.data_type())))
}

/// The cell as a value of `ty`. Text in a column of JSON is not checked again.
///
/// Errors: as [`any_value_at`], and `Invalid` when the value does not cast to `ty`.
pub fn value_at(array: &dyn Array, row: usize, ty: ColumnType) -> Result<Value> {
    match (any_value_at(array, row)?, ty) {
        (Value::Text(text), ColumnType::Json) => Ok(Value::Text(text)),
        (value, ty) => Ok(value.cast(ty)?),
    }
}

/// The rows of a batch whose columns have the types `types`, in order.
///
/// Errors: as [`value_at`].
pub fn rows_of(batch: &RecordBatch, types: &[ColumnType]) -> Result<Vec<Vec<Value>>> {
    debug_assert_eq!(batch.num_columns(), types.len());
    let row = |at| batch.columns().iter().zip(types).map(|(array, ty)| value_at(array, at, *ty)).collect();
    (0..batch.num_rows()).map(row).collect()
}

impl From<ArrowError> for Error {
    fn from(e: ArrowError) -> Self {
        match e {
            ArrowError::IoError(_, io) => io.into(),
            ArrowError::DivideByZero => Error::division_by_zero(),
            ArrowError::ArithmeticOverflow(why) => {
                Error::invalid("a number is out of range").why(why).state(sqlstate::OUT_OF_RANGE)
            }
            ArrowError::CastError(why) | ArrowError::ParseError(why) => {
                Error::invalid("a value does not convert").why(why).state(sqlstate::INVALID_TEXT)
            }
            ArrowError::NotYetImplemented(what) => Error::new(Kind::Unsupported, what),
            other => Error::internal(other.to_string()).caused_by(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::ColumnBuilder;
    use crate::row::testing::{column_type, same, typed_value, value_of};
    use arrow::array::{
        Decimal128Array, Decimal256Array, DictionaryArray, Float32Array, Int32Array, ListArray, NullArray,
        TimestampNanosecondArray, TimestampSecondArray, UInt64Array,
    };
    use arrow::datatypes::{Int8Type, i256};
    use proptest::prelude::*;

    #[test]
    fn fields_remember_their_sql_types() {
        let uuid = field("id", ColumnType::Uuid, false);
        assert_eq!(uuid.data_type(), &DataType::Utf8);
        assert_eq!(column_type_of(&uuid), Some(ColumnType::Uuid));
        // A cast keeps the metadata of the original.
        assert_eq!(column_type_of(&uuid.with_data_type(DataType::Int32)), Some(ColumnType::Integer));
    }

    #[test]
    fn foreign_types_find_the_narrowest_home() {
        let decimal = |precision, scale| Some(ColumnType::Decimal { precision, scale });
        let dictionary = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::LargeUtf8));
        let cases = [
            (DataType::UInt8, Some(ColumnType::SmallInt)),
            (DataType::UInt16, Some(ColumnType::Integer)),
            (DataType::UInt64, Some(ColumnType::BigInt)),
            (DataType::Float16, Some(ColumnType::Real)),
            (DataType::Decimal32(9, 2), decimal(9, 2)),
            (DataType::Decimal128(5, -3), decimal(8, 0)),
            (DataType::Decimal256(76, 10), decimal(38, 10)),
            (DataType::Timestamp(TimeUnit::Second, None), Some(ColumnType::Timestamp)),
            (
                DataType::Timestamp(TimeUnit::Nanosecond, Some("Asia/Tokyo".into())),
                Some(ColumnType::TimestampTz),
            ),
            (dictionary, Some(ColumnType::Varchar)),
            (DataType::Duration(TimeUnit::Second), None),
        ];
        for (arrow, sql) in cases {
            assert_eq!(column_type_of(&Field::new("c", arrow.clone(), true)), sql, "{arrow}");
        }
    }

    #[test]
    fn foreign_values_come_in() {
        let dictionary: DictionaryArray<Int8Type> = ["b", "a", "b"].into_iter().collect();
        let cases: Vec<(ArrayRef, usize, ColumnType, &str)> = vec![
            (Arc::new(dictionary), 2, ColumnType::Varchar, "b"),
            (Arc::new(NullArray::new(1)), 0, ColumnType::Integer, "NULL"),
            (Arc::new(UInt64Array::from(vec![5])), 0, ColumnType::BigInt, "5"),
            (Arc::new(UInt64Array::from(vec![u64::MAX])), 0, ColumnType::Varchar, "18446744073709551615"),
            (Arc::new(TimestampSecondArray::from(vec![-1])), 0, ColumnType::Timestamp, "1969-12-31 23:59:59"),
            (Arc::new(TimestampNanosecondArray::from(vec![-1])), 0, ColumnType::Date, "1969-12-31"),
            (Arc::new(Decimal256Array::from(vec![i256::from(7)])), 0, ColumnType::Integer, "0"),
            (Arc::new(Int32Array::from(vec![70_000])), 0, ColumnType::Double, "70000.0"),
        ];
        for (array, row, ty, text) in cases {
            assert_eq!(value_at(&array, row, ty).unwrap().to_string(), text, "{array:?}");
        }
        let negative = Decimal128Array::from(vec![12]).with_precision_and_scale(5, -3).unwrap();
        assert!(same(&any_value_at(&negative, 0).unwrap(), &Value::Decimal(12_000, 0)));
        let list = ListArray::from_iter_primitive::<dt::Int32Type, _, _>([Some([Some(1), None])]);
        assert!(matches!(any_value_at(&list, 0).unwrap(), Value::Text(t) if t.starts_with("[1,")));
        assert!(ref_at(&list, 0).is_err());
        let list: ArrayRef = Arc::new(list);
        let texts = as_values(&list).unwrap();
        assert_eq!(ref_at(&texts, 0).unwrap().to_value(), any_value_at(&list, 0).unwrap());
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let cases: Vec<(ArrayRef, ColumnType)> = vec![
            (Arc::new(UInt64Array::from(vec![u64::MAX])), ColumnType::BigInt),
            (Arc::new(Decimal256Array::from(vec![i256::MAX])), ColumnType::Varchar),
            (Arc::new(TimestampSecondArray::from(vec![i64::MAX])), ColumnType::Timestamp),
            (Arc::new(Float32Array::from(vec![f32::NAN])), ColumnType::Integer),
            (Arc::new(StringArray::from(vec!["x"])), ColumnType::Uuid),
        ];
        for (array, ty) in cases {
            let error = value_at(&array, 0, ty).unwrap_err();
            assert_eq!(error.kind(), Kind::Invalid, "{error}");
        }
    }

    fn column() -> impl Strategy<Value = (ColumnType, Vec<Value>)> {
        column_type().prop_flat_map(|ty| {
            let value = prop_oneof![1 => Just(Value::Null), 4 => value_of(ty)];
            (Just(ty), prop::collection::vec(value, 0..12))
        })
    }

    proptest! {
        #[test]
        fn columns_come_back((ty, values) in column()) {
            let mut builder = ColumnBuilder::new(ty, values.len());
            values.iter().try_for_each(|v| builder.append(v.as_ref())).unwrap();
            prop_assert_eq!(builder.len(), values.len());
            let array = builder.finish().unwrap();
            prop_assert_eq!(array.data_type(), &arrow_type(ty));
            prop_assert_eq!(column_type_of(&field("c", ty, true)), Some(ty));
            for (row, value) in values.iter().enumerate() {
                let read = value_at(&array, row, ty).unwrap();
                prop_assert!(same(&read, value), "{:?} is not {:?}", read, value);
            }
        }

        #[test]
        fn uuids_order_as_text_as_they_do_as_bytes(a: [u8; 16], b: [u8; 16]) {
            let texts = Value::Uuid(a).to_string().cmp(&Value::Uuid(b).to_string());
            prop_assert_eq!(texts, a.cmp(&b));
        }

        #[test]
        fn rows_come_back((ty, value) in typed_value()) {
            let mut builder = ColumnBuilder::new(ty, 1);
            builder.append(value.as_ref()).unwrap();
            let batch = RecordBatch::try_from_iter([("c", builder.finish().unwrap())]).unwrap();
            let rows = rows_of(&batch, &[ty]).unwrap();
            prop_assert!(same(&rows[0][0], &value));
        }
    }
}
