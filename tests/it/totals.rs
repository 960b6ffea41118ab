//! Totals that a scan adds up are those of DataFusion: of any rows, NULLs, overflows and the order of doubles included.
//!
//! The first run of a query is DataFusion's, whole; from the second one on it is a plan that is kept, which adds the
//! common functions up where the rows are found.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rowkeydb::{Database, Value};

use crate::dice::{decimals, ints};

const COLUMNS: &str = "id INT PRIMARY KEY, g INT NOT NULL, s SMALLINT, i INTEGER, b BIGINT, d DOUBLE, r REAL, \
                       m DECIMAL(9, 2), w DECIMAL(38, 5), ts TIMESTAMP, tz TIMESTAMPTZ, day DATE, t VARCHAR";

const TOTALS: [&str; 33] = [
    "count(*)",
    "count(s), count(b), count(t), count(g)",
    "count(NULL), count(1)",
    "sum(s), sum(i), sum(b), sum(g)",
    "sum(d), sum(r)",
    "sum(m), sum(w)",
    "avg(s), avg(i), avg(b), avg(g)",
    "avg(d), avg(r)",
    "avg(m), avg(w)",
    "min(s), min(i), min(b), min(g)",
    "max(s), max(i), max(b), max(g)",
    "min(d), max(d), min(r), max(r)",
    "min(m), max(m), min(w), max(w)",
    "min(ts), max(ts), min(tz), max(tz), min(day), max(day)",
    "min(t), max(t)",
    "count(*) + sum(m)",
    "count(*) + sum(w)",
    "sum(m) - count(m), count(m) - sum(m)",
    "sum(m) + sum(w) - sum(m)",
    "sum(w) - max(w)",
    "sum(b) + count(*), count(*) * 2",
    "sum(m) * 2, sum(m) / count(*)",
    "sum(i) + sum(m)",
    "CAST(sum(b) AS DECIMAL(20, 2))",
    "CAST(count(*) AS DECIMAL(1, 0))",
    "CAST(max(i) AS DECIMAL(3, 1)) + max(m)",
    "CAST(sum(m) AS DECIMAL(4, 1))",
    "coalesce(sum(m), 0), abs(sum(i))",
    "sum(DISTINCT i), count(DISTINCT s)",
    "sum(i + 1), max(i - s), sum(-m)",
    "sum(i) FILTER (WHERE s > 0), count(*) FILTER (WHERE i IS NULL)",
    "max(i) - min(i), max(day) - min(day)",
    "sum(m) AS x, sum(m) AS y, count(*)",
];

/// A row but for its id.
fn row() -> impl Strategy<Value = Vec<Value>> {
    let odd = [f64::NAN, f64::INFINITY, -f64::INFINITY, f64::MAX, 5e-324, 0.0, -0.0, 0.1, 1e15 + 0.3];
    let double = prop_oneof![
        4 => (-1e6f64..1e6).prop_map(Value::Double),
        1 => prop::sample::select(odd.to_vec()).prop_map(Value::Double),
        1 => Just(Value::Null),
    ];
    let real = prop_oneof![(-1e6f32..1e6).prop_map(|f| Value::Double(f.into())), Just(Value::Null)];
    // From the year 1 to 9999.
    let us = || (-62_135_596_800_000_000i64..253_402_300_800_000_000).boxed();
    let text = prop_oneof!["[a-c]{0,3}".prop_map(Value::Text), Just(Value::Null)];
    (
        ((-5i64..5).prop_map(Value::Int), ints(i16::MIN.into(), i16::MAX.into())),
        (ints(i32::MIN.into(), i32::MAX.into()), ints(i64::MIN, i64::MAX), double, real),
        (decimals(9, 2), decimals(38, 5)),
        (us().prop_map(Value::Timestamp), us().prop_map(Value::TimestampTz)),
        ((-719_162i32..2_932_896).prop_map(Value::Date), text),
    )
        .prop_map(|((g, s), (i, b, d, r), (m, w), (ts, tz), (day, t))| {
            vec![g, s, i, b, d, r, m, w, ts, tz, day, t]
        })
}

/// The rows of a query, with its columns, as text: the bits of a double count.
fn only(db: &Database, sql: &str) -> String {
    let answer = || {
        let rows = db.query(sql)?;
        let columns = rows.columns();
        let rows = rows.map(|row| row?.values()).collect::<rowkeydb::Result<Vec<_>>>()?;
        Ok::<_, rowkeydb::Error>(format!("{columns:?} {rows:?}"))
    };
    answer().unwrap_or_else(|e| format!("{} {e}", e.sqlstate()))
}

fn filled(rows: &[Vec<Value>]) -> Database {
    let db = Database::in_memory().unwrap();
    db.execute(&format!("CREATE TABLE t ({COLUMNS})")).unwrap();
    db.execute("CREATE INDEX t_g ON t (g) INCLUDE (i, m, d)").unwrap();
    for (id, row) in rows.iter().enumerate() {
        let places: Vec<String> = (1..=row.len()).map(|n| format!("${n}")).collect();
        db.execute_with(&format!("INSERT INTO t VALUES ({id}, {})", places.join(", ")), row).unwrap();
    }
    db
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 16,
        max_shrink_iters: 200,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(5),
        ..ProptestConfig::default()
    })]

    #[test]
    fn totals_are_those_of_datafusion(
        rows in prop::collection::vec(row(), 0..12),
        some in prop::sample::subsequence(TOTALS.to_vec(), 8),
        which in prop::sample::select(vec!["true", "id > 3", "g = 2", "g > 1 AND id < 7", "s > 0", "false"]),
    ) {
        let db = filled(&rows);
        for totals in some {
            let sql = format!("SELECT {totals} FROM t WHERE {which}");
            let first = only(&db, &sql);
            for _ in 0..3 {
                prop_assert_eq!(&only(&db, &sql), &first, "{} of {:?}", sql, rows);
            }
        }
    }
}

/// Enough rows that several threads add them up.
fn long() -> Database {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, g INT NOT NULL, d DOUBLE, m DECIMAL(9, 2))").unwrap();
    db.execute(
        "INSERT INTO t SELECT value, value % 7, CASE WHEN value % 11 > 0 THEN value * 0.1 END, value % 1000 * 0.01
         FROM generate_series(1, 40000)",
    )
    .unwrap();
    db.execute("CREATE INDEX t_g ON t (g) INCLUDE (m)").unwrap();
    db
}

#[test]
fn many_rows_have_the_same_totals_every_time() {
    let db = long();
    for sql in [
        "SELECT count(*), sum(m), min(id), max(id), avg(m), count(d) FROM t",
        "SELECT count(*), sum(m), min(id), max(id) FROM t WHERE id > 5000 AND d IS NOT NULL",
        "SELECT count(*) + sum(m), count(*) FROM t WHERE g > 1",
        "SELECT sum(id), count(*) FROM t WHERE g > 1 AND d > 100",
    ] {
        let first = only(&db, sql);
        for _ in 0..20 {
            assert_eq!(only(&db, sql), first, "{sql}");
        }
    }
    // With several threads doubles are added in an order of their own, but it is always the same.
    let sql = "SELECT sum(d), avg(d) FROM t WHERE id > 10";
    let _ = (only(&db, sql), only(&db, sql));
    let kept = only(&db, sql);
    assert!((0..20).all(|_| only(&db, sql) == kept));
}

#[test]
fn totals_that_nobody_waits_for_are_let_go() {
    let db = long();
    let sql = "SELECT sum(m), count(d) FROM t WHERE g > 1 AND d > 10";
    let whole = only(&db, sql);
    for _ in 0..20 {
        drop(db.query(sql).unwrap().batches().next());
    }
    assert_eq!(only(&db, sql), whole);
}

#[test]
fn a_sum_out_of_range_is_an_error_with_several_threads_too() {
    let db = long();
    db.execute("CREATE TABLE big (id INT PRIMARY KEY, b BIGINT)").unwrap();
    db.execute("INSERT INTO big SELECT value, 9000000000000000000 FROM generate_series(1, 6000)").unwrap();
    for _ in 0..4 {
        assert!(only(&db, "SELECT sum(b) FROM big WHERE id > 0").starts_with("22003"));
        assert!(only(&db, "SELECT count(b) FROM big WHERE id > 0").contains("6000"));
    }
}

/// Of numbers inside, some sums fit i128 and no DECIMAL, and some do not even fit that.
#[test]
fn a_sum_of_decimals_out_of_range_is_the_same_error_every_time() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE big (id INT PRIMARY KEY, w DECIMAL(38, 5))").unwrap();
    db.execute(
        "INSERT INTO big SELECT v, 899999999999999999999999999999999.00000 FROM generate_series(1, 3) s(v)",
    )
    .unwrap();
    for sql in ["SELECT sum(w) FROM big WHERE id < 3", "SELECT sum(w) FROM big", "SELECT sum(w) - 1 FROM big"]
    {
        let first = only(&db, sql);
        assert!(first.starts_with("22003"), "{sql}: {first}");
        (0..4).for_each(|_| assert_eq!(only(&db, sql), first, "{sql}"));
    }
}

const GROUPS: [&str; 12] =
    ["g", "s", "i", "b", "d", "r", "m", "w", "t", "ts, day", "t, g, tz", "id - id % 2000, t"];

const OF_GROUPS: [&str; 8] = [
    "count(*), count(s), count(t), max(id)",
    "sum(s), sum(i), sum(g), avg(i), avg(g)",
    "sum(m), avg(m), avg(w), count(d), count(r)",
    "min(s), max(i), min(b), max(m), min(w)",
    "min(ts), max(tz), min(day)",
    "max(t), count(*)",
    "count(DISTINCT t), sum(id) FILTER (WHERE s > 0)",
    "min(id) + max(id)",
];

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 6,
        max_shrink_iters: 20,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(11),
        ..ProptestConfig::default()
    })]

    #[test]
    fn groups_of_many_rows_are_those_of_datafusion(
        kinds in prop::collection::vec(row(), 1..12),
        by in prop::sample::subsequence(GROUPS.to_vec(), 4),
        of in prop::sample::subsequence(OF_GROUPS.to_vec(), 3),
        which in prop::sample::select(vec!["true", "id > 500", "g >= -5", "g < 9 OR id < 6000"]),
    ) {
        let db = filled(&kinds);
        let columns = "g, s, i, b, d, r, m, w, ts, tz, day, t";
        db.execute(&format!(
            "INSERT INTO t SELECT v.value + 1000, {columns} FROM t JOIN generate_series(0, 6499) v
             ON v.value % {} = t.id",
            kinds.len()
        )).unwrap();
        for (by, of) in by.iter().flat_map(|by| of.iter().map(move |of| (by, of))) {
            let groups = |of: &str, from: &str| {
                let sql = format!("SELECT {by}, {of} FROM {from} WHERE {which} GROUP BY {by} ORDER BY {by}");
                let rows = db.query(&sql)?.map(|row| row?.values());
                rows.collect::<rowkeydb::Result<Vec<_>>>()
            };
            // A function with a FILTER leaves all of it to DataFusion.
            let expected = groups(&format!("{of}, count(*) FILTER (WHERE g > -100)"), "t").map(|mut rows| {
                rows.iter_mut().for_each(|row| drop(row.pop()));
                format!("{rows:?}")
            });
            let expected = expected.unwrap_or_else(|e| e.to_string());
            // By several threads, and by one.
            for from in ["t", "t", "(SELECT * FROM t ORDER BY id LIMIT 1000000) t"] {
                let found = groups(of, from).map_or_else(|e| e.to_string(), |rows| format!("{rows:?}"));
                prop_assert_eq!(&found, &expected, "{}, {} FROM {} WHERE {} of {:?}", by, of, from, which, kinds);
            }
        }
    }
}

#[test]
fn more_groups_than_memory_holds_come_in_pieces() {
    let db = long();
    let mut session = db.session();
    let mut all = |sql: &str| {
        let rows = session.query(sql, &[]).unwrap();
        let mut rows: Vec<Vec<Value>> = rows.map(|row| row.unwrap().values().unwrap()).collect();
        rows.sort();
        rows
    };
    let some = "SELECT m, g, count(*), sum(id), max(id) FROM t WHERE id > 7 GROUP BY m, g";
    let each = "SELECT id, count(*), sum(m), max(g) FROM t GROUP BY id";
    let few = "SELECT m, min(id), max(id), sum(id), avg(id), min(g), max(g), sum(g), avg(g), sum(m), avg(m), count(d)
               FROM t GROUP BY m";
    let expected = [all(some), all(each), all(few)];
    assert_eq!(expected.each_ref().map(Vec::len), [7_000, 40_000, 1_000]);
    all("SET memory_limit = '2MB'");
    for _ in 0..2 {
        assert!([all(some), all(each), all(few)] == expected);
    }
    all("SET memory_limit = '1200kB'");
    assert!(all(few) == expected[2]);
}

#[test]
fn what_a_join_finds_narrows_the_scan_below_groups() {
    let db = long();
    db.execute("CREATE INDEX t_m ON t (m)").unwrap();
    db.execute("CREATE TABLE u (id INT PRIMARY KEY, m DECIMAL(9, 2))").unwrap();
    db.execute("INSERT INTO u VALUES (1, 0.25), (2, 0.5)").unwrap();
    let sql = "SELECT u.id, s.n FROM u JOIN (SELECT m, count(*) AS n FROM t GROUP BY m) s ON s.m = u.m WHERE u.id = 2";
    for _ in 0..3 {
        let found: i64 = db.query(sql).unwrap().one().unwrap().get("n").unwrap();
        assert_eq!(found, 40);
    }
    let plan: Vec<String> = db
        .query(&format!("EXPLAIN ANALYZE {sql}"))
        .unwrap()
        .map(|line| line.unwrap().get(0).unwrap())
        .collect();
    let plan = plan.join("\n");
    assert!(plan.contains(" entries=40 "), "{plan}");
}

#[test]
fn values_of_any_type_make_groups() {
    let db = Database::in_memory().unwrap();
    db.execute(
        "CREATE TABLE t (id INT, name VARCHAR(4), u UUID, j JSON, ok BOOLEAN, raw VARBINARY, aside VARCHAR,
         FAMILY f (aside), PRIMARY KEY (reverse(lpad(id, 6)), name))",
    )
    .unwrap();
    db.execute("CREATE INDEX t_u ON t (u, name) INCLUDE (ok)").unwrap();
    db.execute(
        "INSERT INTO t SELECT value, chr(97 + value % 3), CASE WHEN value % 4 > 0 THEN
             '00000000-0000-0000-0000-00000000000' || value % 4 END, '{\"n\": ' || value % 5 || '}', value % 2 = 0,
             CAST(chr(97 + value % 6) AS BYTEA), CASE WHEN value % 3 > 0 THEN 'aside' || value % 7 END
         FROM generate_series(1, 8000)",
    )
    .unwrap();
    for (by, from) in [
        ("name", "t"),
        ("u", "t"),
        ("j, ok", "t"),
        ("ok", "t WHERE raw <> 'a'"),
        ("raw, name", "t"),
        ("aside, ok", "t"),
        ("u, name, ok", "t_u"),
        ("rowkey", "t_u WHERE ok"),
        ("name, ok", "t WHERE u > '00000000-0000-0000-0000-000000000001' AND ok"),
    ] {
        let rows = |of: &str| -> Vec<Vec<Value>> {
            let rows =
                db.query(&format!("SELECT {of}, {by} FROM {from} GROUP BY {by} ORDER BY {by}")).unwrap();
            rows.map(|row| row.unwrap().values().unwrap()).collect()
        };
        let by_datafusion: Vec<Vec<Value>> =
            rows("count(*) FILTER (WHERE 1 = length('a')), max(ok), count(*)");
        let expected: Vec<&[Value]> = by_datafusion.iter().map(|row| &row[2..]).collect();
        assert!(!expected.is_empty());
        for _ in 0..3 {
            assert_eq!(rows("count(*)"), expected, "{by} of {from}");
        }
    }
}

#[test]
fn groups_without_values_have_no_sum_and_no_mean() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, g INT, i INT, d DOUBLE, m DECIMAL(9, 2))").unwrap();
    db.execute(
        "INSERT INTO t SELECT value, nullif(value % 3, 2), CASE WHEN value % 3 > 0 THEN 4 END,
         CASE WHEN value % 3 > 0 THEN 0.5 END, CASE WHEN value % 3 > 0 THEN 1.25 END FROM generate_series(1, 6000)",
    )
    .unwrap();
    let rows = db
        .query(
            "SELECT g, count(*), count(m), sum(i), sum(d), sum(m), avg(i), avg(d), avg(m), min(m) FROM t
             GROUP BY g ORDER BY g",
        )
        .unwrap();
    let rows: Vec<String> = rows
        .map(|row| {
            row.unwrap().values().unwrap().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        })
        .collect();
    let values = "2000 2000 8000 1000.0 2500.00 4.0 0.5 1.250000 1.25";
    assert_eq!(
        rows,
        [
            format!("NULL {values}"),
            "0 2000 0 NULL NULL NULL NULL NULL NULL NULL".into(),
            format!("1 {values}")
        ]
    );
}
