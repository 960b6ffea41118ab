//! Errors about a value point at it.

use rowkeydb::Database;

fn pointed_at<'s>(db: &Database, sql: &'s str) -> &'s str {
    let error = db.query(sql).and_then(|mut rows| rows.try_for_each(|row| row.map(drop)));
    let error = error.expect_err(sql);
    let span = error.span().unwrap_or_else(|| panic!("{sql} points nowhere: {error}"));
    let line = sql.lines().nth(span.line as usize - 1).expect("the line is there");
    let from = span.column as usize - 1;
    &line[from..from + span.len as usize]
}

#[test]
fn wrong_literals_are_pointed_at() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, n SMALLINT, s TEXT, at TIMESTAMP)").unwrap();
    for (sql, place) in [
        ("SELECT * FROM t WHERE id = 'x'", "'x'"),
        ("SELECT * FROM t\nWHERE at BETWEEN '2024-01-01' AND 'tuesday'", "'tuesday'"),
        ("SELECT CAST('y' AS DATE)", "'y'"),
        ("DELETE FROM t WHERE at > 'z'", "'z'"),
        ("INSERT INTO t (id, n, s) VALUES (1, 1, 'x'), (2, 'x', 'x')", "'x'"),
        ("INSERT INTO t (id, n) VALUES\n(1, 1),\n(2, 99999)", "99999"),
        ("UPDATE t SET n = 'many' WHERE id = 1", "'many'"),
    ] {
        db.execute("UPSERT INTO t (id) VALUES (1)").unwrap();
        assert_eq!(pointed_at(&db, sql), place, "{sql}");
    }
}

#[test]
fn of_equal_cells_the_wrong_one_is_pointed_at() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (s TEXT PRIMARY KEY, n SMALLINT)").unwrap();
    let sql = "INSERT INTO t VALUES ('x', 'x')";
    let error = db.execute(sql).unwrap_err();
    assert_eq!(error.span().map(|s| s.column), Some(28));
}

#[test]
fn a_literal_that_is_there_twice_is_not_guessed_at() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (s TEXT PRIMARY KEY, n SMALLINT)").unwrap();
    let error = db.query("SELECT * FROM t WHERE s = 'x' AND n = 'x'").unwrap_err();
    assert_eq!(error.span(), None);
}
