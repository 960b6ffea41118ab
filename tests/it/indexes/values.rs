//! Columns and the values they are tried with: few, so that rows collide, and hostile.

use rowkeydb::Value;
use rowkeydb::value::ColumnType;

/// Every type a key or an index can be made of.
pub const TYPES: [ColumnType; 13] = [
    ColumnType::BigInt,
    ColumnType::Varchar,
    ColumnType::Integer,
    ColumnType::Timestamp,
    ColumnType::Decimal { precision: 9, scale: 2 },
    ColumnType::Double,
    ColumnType::Varbinary,
    ColumnType::Date,
    ColumnType::SmallInt,
    ColumnType::Boolean,
    ColumnType::TimestampTz,
    ColumnType::Uuid,
    ColumnType::Real,
];

/// Forms a column can take in a key, `{}` standing for its name. Those behind `tame` refuse some values.
pub fn forms(ty: ColumnType) -> (&'static [&'static str], &'static [&'static str]) {
    const ANY: [&str; 4] = ["{}", "{} DESC", "left(md5({}), 2), {}", "md5_bucket({}, 3), {}"];
    match ty {
        ColumnType::BigInt | ColumnType::Integer | ColumnType::SmallInt => (
            &["{}", "{} DESC", "{} % 4, {} DESC", "md5_bucket({}, 3), {}", "reverse_bytes({})", "md5({})"],
            &["lpad({}, 5)", "reverse(lpad({}, 5))", "lpad(99999 - {}, 5)", "9999 - {}", "lpad({}, 6), '_'"],
        ),
        ColumnType::Varchar => (
            &["{}", "{} DESC", "md5_bucket({}, 3), {} DESC", "right(md5({}), 3), {}"],
            &["rpad({}, 6, ' ')", "{}, '_'", "reverse({})", "lpad({}, 6)"],
        ),
        ColumnType::Date | ColumnType::Timestamp => {
            (&ANY, &["to_char({}, 'YYYY-MM-DD HH24:MI:SS')", "to_char({}, 'DD-MM-YYYY'), '_', {}"])
        }
        _ => (&ANY, &[]),
    }
}

/// How a formula's value comes from its column's.
pub type Compute = fn(&Value) -> Value;

/// What is computed from a column, `{}` standing for its name, its type, and how; no value overflows.
pub fn formulas(ty: ColumnType) -> &'static [(&'static str, ColumnType, Compute)] {
    const DOUBLED: ColumnType = ColumnType::Decimal { precision: 30, scale: 2 };
    match ty {
        ColumnType::SmallInt | ColumnType::Integer => &[
            ("({} * 3) + 1", ColumnType::BigInt, |v| match v {
                Value::Int(i) => Value::Int(i * 3 + 1),
                other => other.clone(),
            }),
            ("{} - 1", ColumnType::BigInt, |v| match v {
                Value::Int(i) => Value::Int(i - 1),
                other => other.clone(),
            }),
        ],
        ColumnType::BigInt => &[("coalesce({}, 7)", ColumnType::BigInt, |v| match v {
            Value::Null => Value::Int(7),
            other => other.clone(),
        })],
        ColumnType::Decimal { .. } => &[
            ("{} * 2", DOUBLED, |v| match v {
                Value::Decimal(d, scale) => Value::Decimal(d * 2, *scale),
                other => other.clone(),
            }),
            ("abs({})", ColumnType::Decimal { precision: 9, scale: 2 }, |v| match v {
                Value::Decimal(d, scale) => Value::Decimal(d.abs(), *scale),
                other => other.clone(),
            }),
        ],
        ColumnType::Double => &[("abs({})", ColumnType::Double, |v| match v {
            Value::Double(d) => Value::Double(d.abs()),
            other => other.clone(),
        })],
        ColumnType::Varchar => &[
            ("upper({})", ColumnType::Varchar, |v| text(v, |t| t.to_uppercase())),
            ("lower(trim({}))", ColumnType::Varchar, |v| text(v, |t| t.trim_matches(' ').to_lowercase())),
            ("{} || 'x'", ColumnType::Varchar, |v| text(v, |t| format!("{t}x"))),
            ("left({}, 1)", ColumnType::Varchar, |v| text(v, |t| t.chars().take(1).collect())),
            ("right({}, 2)", ColumnType::Varchar, |v| {
                text(v, |t| t.chars().skip(t.chars().count().saturating_sub(2)).collect())
            }),
            ("substr({}, 2, 1)", ColumnType::Varchar, |v| text(v, |t| t.chars().skip(1).take(1).collect())),
            ("coalesce({}, 'b')", ColumnType::Varchar, |v| match v {
                Value::Null => Value::Text("b".into()),
                other => other.clone(),
            }),
            ("length({})", ColumnType::BigInt, |v| match v {
                Value::Text(t) => Value::Int(t.chars().count() as i64),
                other => other.clone(),
            }),
        ],
        ColumnType::Timestamp => &[
            ("date_trunc('day', {})", ColumnType::Timestamp, |v| match v {
                Value::Timestamp(us) => Value::Timestamp(us - us.rem_euclid(86_400_000_000)),
                other => other.clone(),
            }),
            ("date_trunc('hour', {})", ColumnType::Timestamp, |v| match v {
                Value::Timestamp(us) => Value::Timestamp(us - us.rem_euclid(3_600_000_000)),
                other => other.clone(),
            }),
        ],
        _ => &[],
    }
}

fn text(value: &Value, change: impl Fn(&str) -> String) -> Value {
    match value {
        Value::Text(t) => Value::Text(change(t)),
        other => other.clone(),
    }
}

/// Values of a type; a column has few of them, so that rows meet.
pub fn pool(ty: ColumnType) -> Vec<Value> {
    let ints = |values: &[i64]| values.iter().map(|&i| Value::Int(i)).collect();
    match ty {
        ColumnType::Boolean => vec![Value::Boolean(false), Value::Boolean(true)],
        ColumnType::SmallInt => {
            ints(&[0, 1, 2, 3, 5, 9, 255, 256, 30_000, -1, -256, i16::MIN.into(), i16::MAX.into()])
        }
        ColumnType::Integer => {
            ints(&[0, 1, 2, 3, 7, 10, 99, 100, 65_535, -1, -2, i32::MIN.into(), i32::MAX.into()])
        }
        ColumnType::BigInt => ints(&[
            0,
            1,
            2,
            3,
            7,
            10,
            99,
            100,
            255,
            256,
            9_999,
            99_999,
            4_294_967_296,
            -1,
            -2,
            -256,
            i64::MIN,
            i64::MIN + 1,
            i64::MAX,
        ]),
        ColumnType::Real => [0.0, -0.0, 1.0, 1.5, -1.5, 0.1f32, f32::MAX, f32::MIN_POSITIVE, f32::INFINITY]
            .iter()
            .map(|&f| Value::Double(f.into()))
            .collect(),
        ColumnType::Double => {
            let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE, -5e-324];
            let plain = [0.0, -0.0, 1.0, -1.0, 1.5, 0.1, 1e15];
            plain.iter().chain(&odd).map(|&d| Value::Double(d)).collect()
        }
        ColumnType::Decimal { scale, .. } => [0, 1, 100, 150, 151, -1, -100, 999_999_999, -999_999_999]
            .iter()
            .map(|&d| Value::Decimal(d, scale))
            .collect(),
        ColumnType::Varchar | ColumnType::Json => [
            "",
            "a",
            "b",
            "ab",
            "abc",
            "a_",
            "_",
            "a%",
            "A",
            "é",
            "éa",
            "host1",
            "host12",
            "a\u{1}",
            "a\0",
            "a\0b",
            "\0",
            "\u{ff}",
            "\u{10ffff}",
            " ",
            "a ",
            "00005",
            "it's",
            "\\",
        ]
        .iter()
        .map(|&t| Value::Text(t.into()))
        .collect(),
        ColumnType::Varbinary => {
            let bytes: [&[u8]; 10] =
                [b"", b"\0", b"\0\0", b"\0\xff", b"a", b"a\0", b"a\0\x01", b"\xff", b"\xff\xff", b"\x01"];
            bytes.iter().map(|b| Value::Bytes(b.to_vec())).collect()
        }
        ColumnType::Date => {
            [0, 1, 19_723, 19_724, -1, -719_162, 2_932_896].iter().map(|&d| Value::Date(d)).collect()
        }
        ColumnType::Timestamp | ColumnType::TimestampTz => {
            let day = 1_704_067_200_000_000;
            let times = [
                0,
                1,
                -1,
                day,
                day + 1_000_000,
                day + 1_500_000,
                day + 86_400_000_000,
                -62_135_596_800_000_000,
            ];
            let make = if ty == ColumnType::Timestamp { Value::Timestamp } else { Value::TimestampTz };
            times.iter().map(|&us| make(us)).collect()
        }
        ColumnType::Uuid => {
            let mut low = [0; 16];
            low[15] = 1;
            vec![Value::Uuid([0; 16]), Value::Uuid(low), Value::Uuid([0xff; 16]), Value::Uuid([0x61; 16])]
        }
    }
}

/// A value as a literal that queries read as the column's type; `None`: it must be a parameter.
pub fn literal(value: &Value, ty: ColumnType) -> Option<String> {
    Some(match value {
        Value::Text(t) if t.contains('\0') => return None,
        Value::Double(d) if !d.is_finite() => format!("CAST('{d}' AS {ty})"),
        Value::Double(_) | Value::Date(_) | Value::TimestampTz(_) | Value::Uuid(_) => {
            format!("CAST('{value}' AS {ty})")
        }
        Value::Timestamp(_) => format!("TIMESTAMP '{value}'"),
        _ => rowkeydb::value::Literal(value.as_ref()).to_string(),
    })
}

/// Values that every form of [`forms`] takes.
pub fn tame(ty: ColumnType) -> Vec<Value> {
    let keep: fn(&Value) -> bool = match ty {
        ColumnType::BigInt | ColumnType::Integer | ColumnType::SmallInt => {
            |v| matches!(v, Value::Int(0..=9_999))
        }
        ColumnType::Varchar => {
            |v| matches!(v, Value::Text(t) if !t.is_empty() && t.chars().all(|c| c.is_ascii_alphabetic()))
        }
        // A key that is nothing but an empty value is refused.
        ColumnType::Varbinary => |v| matches!(v, Value::Bytes(b) if !b.is_empty()),
        ColumnType::Date => |v| matches!(v, Value::Date(0..)),
        ColumnType::Timestamp => |v| matches!(v, Value::Timestamp(us) if us % 86_400_000_000 == 0),
        _ => |_| true,
    };
    pool(ty).into_iter().filter(keep).collect()
}
