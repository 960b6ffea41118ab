//! What an index computes is what a query computes: every function of formulas, over any values.
//!
//! The index table gives out what [`Formula::eval`](rowkeydb::plan::Formula) computed when a row was written, and a
//! query over the table what DataFusion computes. A row that one of them refuses, the other must refuse.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rowkeydb::{Database, Value};

use crate::dice::{decimals, ints};

const COLUMNS: &str = "id INT PRIMARY KEY, t VARCHAR, u VARCHAR, s SMALLINT, i INTEGER, b BIGINT, d DOUBLE, r REAL, \
                       m DECIMAL(9, 2), n DECIMAL(20, 5), ts TIMESTAMP, tz TIMESTAMPTZ, day DATE, j JSON";

/// As an index table names its columns.
const FORMULAS: [&str; 49] = [
    "upper(t)",
    "lower(t)",
    "trim(t)",
    "ltrim(t)",
    "rtrim(t)",
    "length(t)",
    "substr(t, 2)",
    "substr(t, 1, 2)",
    "left(t, 3)",
    "right(t, 3)",
    "right(t, 0)",
    "t || u",
    "t || '-' || u",
    "upper(left(trim(t), 2)) || lower(u)",
    "coalesce(t, u)",
    "coalesce(t, u, 'none')",
    "coalesce(i, b)",
    "coalesce(m, 0)",
    "coalesce(n, m)",
    "abs(s)",
    "abs(i)",
    "abs(b)",
    "abs(d)",
    "abs(m)",
    "i + 1",
    "s * i",
    "b - i",
    "b * 2 + s",
    "d * 2",
    "d + i",
    "d - 0.1",
    "d + r",
    "m * 2",
    "m + n",
    "m - 1",
    "i * m",
    "n * m - b",
    "t || i",
    "length(t || u) * 2",
    "date_trunc('hour', ts)",
    "date_trunc('week', tz)",
    "date_trunc('month', ts)",
    "date_trunc('quarter', day)",
    "j ->> 'a'",
    "j ->> -2",
    "(j -> 'b') ->> 0",
    "(j -> 1) ->> 'a'",
    "json_extract_path_text(j, 'b', '1', 'a')",
    "upper(json_extract_path_text(j, '0')) || t",
];

fn text() -> BoxedStrategy<Value> {
    let odd = ["", " ", "  a ", "ß", "ΑΣ", "Σ", "İi", "ŉ", "ﬁ", "a\0", "\u{10ffff}", "e\u{301}", "\u{a0}x\t"];
    prop_oneof![
        2 => "[a-zA-Zé ß]{0,6}".prop_map(Value::Text),
        1 => any::<String>().prop_map(Value::Text),
        2 => prop::sample::select(odd.to_vec()).prop_map(|t| Value::Text(t.to_owned())),
        1 => Just(Value::Null),
    ]
    .boxed()
}

fn json() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just(" 1.50".to_owned()),
        Just("true ".to_owned()),
        text().prop_map(|text| serde_json::to_string(&text.to_string()).unwrap()),
    ];
    let inner = leaf.prop_recursive(3, 20, 3, |inner| {
        let member = (prop::sample::select(vec!["a", "b", "0"]), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(|of| format!("[{}]", of.join(" , "))),
            prop::collection::vec(member, 0..4).prop_map(|of| {
                let of: Vec<String> =
                    of.into_iter().map(|(name, part)| format!("\"{name}\": {part}")).collect();
                format!("{{{}}}", of.join(","))
            }),
        ]
    });
    prop_oneof![9 => inner.prop_map(Value::Text), 1 => Just(Value::Null)].boxed()
}

/// A row but for its id.
fn row() -> impl Strategy<Value = Vec<Value>> {
    let odd = [f64::NAN, f64::INFINITY, -f64::INFINITY, f64::MAX, 5e-324, 0.0, -0.0, 0.1, 1e15 + 0.3];
    let double = prop_oneof![
        2 => any::<f64>().prop_map(Value::Double),
        2 => prop::sample::select(odd.to_vec()).prop_map(Value::Double),
        1 => Just(Value::Null),
    ];
    let real = prop_oneof![any::<f32>().prop_map(|f| Value::Double(f.into())), Just(Value::Null)];
    // From the year 1 to 9999.
    let us = || (-62_135_596_800_000_000i64..253_402_300_800_000_000).boxed();
    (
        (text(), text(), ints(i16::MIN.into(), i16::MAX.into()), ints(i32::MIN.into(), i32::MAX.into())),
        (ints(i64::MIN, i64::MAX), double, real, decimals(9, 2), decimals(20, 5)),
        (us().prop_map(Value::Timestamp), us().prop_map(Value::TimestampTz)),
        ((-719_162i32..2_932_896).prop_map(Value::Date), json()),
    )
        .prop_map(|((t, u, s, i), (b, d, r, m, n), (ts, tz), (day, j))| {
            vec![t, u, s, i, b, d, r, m, n, ts, tz, day, j]
        })
}

/// The value of a formula, as the query's DataFusion or the index has it.
fn only(db: &Database, sql: &str) -> Result<Value, String> {
    let mut rows = db.query(sql).map_err(|e| e.to_string())?;
    let row = rows.next().ok_or("no row")?.map_err(|e| e.to_string())?;
    row.values().map(|mut values| values.remove(0)).map_err(|e| e.to_string())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        max_shrink_iters: 200,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(3),
        ..ProptestConfig::default()
    })]

    #[test]
    fn an_index_computes_what_a_query_computes(row in row(), some in prop::sample::subsequence(FORMULAS.to_vec(), 6)) {
        let db = Database::in_memory().unwrap();
        db.execute(&format!("CREATE TABLE t ({COLUMNS})")).unwrap();
        let places: Vec<String> = (1..=row.len()).map(|n| format!("${n}")).collect();
        db.execute_with(&format!("INSERT INTO t VALUES (1, {})", places.join(", ")), &row).unwrap();
        for formula in some {
            let query = only(&db, &format!("SELECT {formula} AS x FROM t"));
            let created = db.execute(&format!("CREATE INDEX i ON t (({formula}))"));
            match (created, query) {
                (Ok(_), Ok(query)) => {
                    let index = only(&db, "SELECT * FROM i").unwrap();
                    prop_assert_eq!(&index, &query, "{} of {:?}", formula, row);
                    db.execute("DROP INDEX i").unwrap();
                }
                (Err(e), query) => prop_assert!(
                    query.is_err() && e.sqlstate() == "22003", "{} of {:?}: {}, but {:?}", formula, row, e, query
                ),
                (Ok(_), Err(e)) => prop_assert!(false, "{} of {:?} is indexed, but {}", formula, row, e),
            }
        }
    }
}
