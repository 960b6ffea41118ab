//! Rust's types → values, and values → times of chrono's.

use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use uuid::Uuid;

use super::Value;

/// Days from the year 1, in which chrono counts, to 1970.
const DAYS_TO_1970: i32 = 719_163;

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

/// To the microsecond; what is less is left out.
impl From<NaiveDateTime> for Value {
    fn from(time: NaiveDateTime) -> Value {
        Value::Timestamp(time.and_utc().timestamp_micros())
    }
}

/// To the microsecond; what is less is left out.
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
        let Value::Date(days) = self else { return None };
        NaiveDate::from_num_days_from_ce_opt(days.checked_add(DAYS_TO_1970)?)
    }

    /// A TIMESTAMP, if it is one.
    pub fn timestamp(&self) -> Option<NaiveDateTime> {
        let Value::Timestamp(us) = self else { return None };
        Some(DateTime::from_timestamp_micros(*us)?.naive_utc())
    }

    /// A TIMESTAMPTZ, if it is one.
    pub fn instant(&self) -> Option<DateTime<Utc>> {
        let Value::TimestampTz(us) = self else { return None };
        DateTime::from_timestamp_micros(*us)
    }
}
