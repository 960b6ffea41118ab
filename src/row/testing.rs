//! Strategies for values of every type, for the property tests of this module and its neighbours.

use proptest::prelude::*;

use crate::value::{ColumnType, Value};

/// A column type and a value, possibly NULL, that it can hold.
pub(crate) fn typed_value() -> impl Strategy<Value = (ColumnType, Value)> {
    column_type().prop_flat_map(|ty| (Just(ty), prop_oneof![1 => Just(Value::Null), 6 => value_of(ty)]))
}

/// Any column type.
pub(crate) fn column_type() -> impl Strategy<Value = ColumnType> {
    use ColumnType::*;
    let plain = [
        Boolean,
        SmallInt,
        Integer,
        BigInt,
        Real,
        Double,
        Varchar,
        Varbinary,
        Date,
        Timestamp,
        TimestampTz,
        Uuid,
        Json,
    ];
    let decimal = (1u8..=38)
        .prop_flat_map(|precision| (Just(precision), 0..=precision))
        .prop_map(|(precision, scale)| Decimal { precision, scale });
    prop_oneof![6 => prop::sample::select(plain.to_vec()), 1 => decimal]
}

/// A value of `ty`, including edge cases, but never NULL.
pub(crate) fn value_of(ty: ColumnType) -> BoxedStrategy<Value> {
    let days = -719_162..=2_932_896;
    let micros = prop_oneof![
        Just(0i64),
        -62_135_596_800_000_000i64..=253_402_300_799_999_999,
        (-62_135_596_800i64..=253_402_300_799).prop_map(|s| s * 1_000_000),
    ];
    match ty {
        ColumnType::Boolean => any::<bool>().prop_map(Value::Boolean).boxed(),
        ColumnType::SmallInt => any::<i16>().prop_map(|i| Value::Int(i.into())).boxed(),
        ColumnType::Integer => any::<i32>().prop_map(|i| Value::Int(i.into())).boxed(),
        ColumnType::BigInt => prop_oneof![any::<i64>(), -300i64..300, Just(i64::MIN), Just(i64::MAX)]
            .prop_map(Value::Int)
            .boxed(),
        ColumnType::Real => any::<u32>().prop_map(|b| Value::Double(f32::from_bits(b).into())).boxed(),
        ColumnType::Double => prop_oneof![
            any::<u64>().prop_map(f64::from_bits),
            (-1000i32..1000).prop_map(|i| f64::from(i) / 4.0),
        ]
        .prop_map(Value::Double)
        .boxed(),
        ColumnType::Decimal { precision, scale } => {
            let limit = 10i128.pow(precision.into());
            prop_oneof![1 - limit..limit, -(limit.min(1000) - 1)..limit.min(1000)]
                .prop_map(move |d| Value::Decimal(d, scale))
                .boxed()
        }
        ColumnType::Varchar => "\\PC{0,20}|[\",\n\r\\\\é ]{0,6}".prop_map(Value::Text).boxed(),
        ColumnType::Varbinary => prop::collection::vec(any::<u8>(), 0..20).prop_map(Value::Bytes).boxed(),
        ColumnType::Date => days.prop_map(Value::Date).boxed(),
        ColumnType::Timestamp => micros.prop_map(Value::Timestamp).boxed(),
        ColumnType::TimestampTz => micros.prop_map(Value::TimestampTz).boxed(),
        ColumnType::Uuid => any::<[u8; 16]>().prop_map(Value::Uuid).boxed(),
        ColumnType::Json => prop::sample::select(vec![
            "{}",
            "[1, 2.50, null]",
            "{\"b\": 1,\n \"a\": \"x, y\"}",
            "\"text\"",
            "12345678901234567890.123",
            "true",
        ])
        .prop_map(|text| Value::Text(text.into()))
        .boxed(),
    }
}

/// Equal to the bit, except for the payload of a NaN.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Double(a), Value::Double(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
        (Value::Decimal(a, s), Value::Decimal(b, t)) => a == b && s == t,
        (a, b) => a == b,
    }
}
