//! Conversions from Rust's types to values, and from values to chrono's times.

use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use uuid::Uuid;

use super::{DAYS_TO_1970, Value, date_of, datetime_of};

macro_rules! value_from {
    ($($ty:ty => $variant:ident),* $(,)?) => {
        $(impl From<$ty> for Value {
            fn from(value: $ty) -> Value {
                Value::$variant(value.into())
            }
        })*
    };
}

value_from! {
    bool => Boolean,
    i8 => Int,
    i16 => Int,
    i32 => Int,
    i64 => Int,
    u8 => Int,
    u16 => Int,
    u32 => Int,
    f32 => Double,
    f64 => Double,
    &str => Text,
    &String => Text,
    String => Text,
    &[u8] => Bytes,
    Vec<u8> => Bytes,
}

impl From<NaiveDate> for Value {
    fn from(date: NaiveDate) -> Value {
        Value::Date(chrono::Datelike::num_days_from_ce(&date) - DAYS_TO_1970)
    }
}

/// Truncated to the microsecond.
impl From<NaiveDateTime> for Value {
    fn from(time: NaiveDateTime) -> Value {
        Value::Timestamp(time.and_utc().timestamp_micros())
    }
}

/// Truncated to the microsecond.
impl From<DateTime<Utc>> for Value {
    fn from(time: DateTime<Utc>) -> Value {
        Value::TimestampTz(time.timestamp_micros())
    }
}

impl From<Uuid> for Value {
    fn from(uuid: Uuid) -> Value {
        Value::Uuid(uuid.into_bytes())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

impl Value {
    /// A DATE, if it is one.
    pub fn date(&self) -> Option<NaiveDate> {
        if let Value::Date(days) = self { date_of(*days) } else { None }
    }

    /// A TIMESTAMP, if it is one.
    pub fn timestamp(&self) -> Option<NaiveDateTime> {
        if let Value::Timestamp(us) = self { datetime_of(*us) } else { None }
    }

    /// A TIMESTAMPTZ, if it is one.
    pub fn instant(&self) -> Option<DateTime<Utc>> {
        if let Value::TimestampTz(us) = self { datetime_of(*us).map(|time| time.and_utc()) } else { None }
    }
}
