//! What the property found, each as the statements that showed it.

use rowkeydb::{Database, Value};

/// Runs `setup`; `query` must give `expected` with the index and without it.
fn always(setup: &[&str], index: &str, query: &str, expected: &[&str]) {
    for create in [None, Some(index)] {
        let db = Database::in_memory().unwrap();
        for sql in setup.iter().chain(&create) {
            db.execute(sql).unwrap_or_else(|e| panic!("{}", e.render(sql)));
        }
        let answer =
            |row: rowkeydb::Result<rowkeydb::Row>| row.unwrap().get::<Value>("a").unwrap().to_string();
        let answers: Vec<String> = db.query(query).unwrap().map(answer).collect();
        assert_eq!(answers, expected, "{create:?}");
    }
}

#[test]
fn order_by_rowkey_is_not_the_order_of_an_index() {
    always(
        &["CREATE TABLE t (k INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 9), (2, 8), (3, 7)"],
        "CREATE INDEX i ON t (v)",
        "SELECT k AS a FROM t ORDER BY rowkey",
        &["1", "2", "3"],
    );
}

#[test]
fn minus_zero_is_zero_in_every_order() {
    always(
        &[
            "CREATE TABLE t (k INT PRIMARY KEY, d DOUBLE NOT NULL)",
            "INSERT INTO t VALUES (1, 0.0), (2, CAST('-0.0' AS DOUBLE)), (3, 0.0)",
        ],
        "CREATE INDEX i ON t (d, k)",
        "SELECT k AS a FROM t ORDER BY d, k",
        &["1", "2", "3"],
    );
}

#[test]
fn a_double_is_compared_with_a_decimal_as_a_double() {
    always(
        &[
            "CREATE TABLE t (k INT PRIMARY KEY, d DOUBLE)",
            "INSERT INTO t VALUES (1, 1e300), (2, 0.1), (3, 1.5)",
        ],
        "CREATE INDEX i ON t (d)",
        "SELECT k AS a FROM t WHERE d >= 0.1 AND d < 1e301 ORDER BY d",
        &["2", "3", "1"],
    );
}
