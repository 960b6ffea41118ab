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
        ("SELECT CAST('1' AS DECIMAL(39, 2))", "'1'"),
        ("SELECT * FROM t LIMIT '1'", "'1'"),
        ("SELECT * FROM t WHERE (id, n, s) > (12)", "12"),
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
fn wrong_literals_are_pointed_at_where_a_plan_is_kept() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, s TEXT, at TIMESTAMP)").unwrap();
    for (sql, right) in [
        ("SELECT * FROM t WHERE id = 'x'", "'7'"),
        ("SELECT s, count(*) FROM t WHERE at > 'x' GROUP BY s", "'2024-01-01'"),
        ("SELECT a.s FROM t a JOIN t b ON b.id = a.id WHERE a.at > 'x'", "'2024-01-01'"),
    ] {
        for _ in 0..3 {
            assert_eq!(db.query(&sql.replace("'x'", right)).unwrap().count(), 0, "{sql}");
        }
        assert_eq!(pointed_at(&db, sql), "'x'", "{sql}");
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
fn rows_that_are_refused_are_pointed_at() {
    let db = Database::in_memory().unwrap();
    db.execute(
        "CREATE TABLE t (id INT, n INT NOT NULL, c INT CHECK (c > 0), u INT UNIQUE, s VARCHAR(3), \
         PRIMARY KEY (lpad(id, 2)))",
    )
    .unwrap();
    db.execute("INSERT INTO t (id, n, u) VALUES (50, 1, 50)").unwrap();
    for (sql, place, why) in [
        ("INSERT INTO t (n, id) VALUES (1, 1), (NULL, 2)", "NULL", "in row 2: it is NOT NULL"),
        ("INSERT INTO t (n, id) VALUES (1, 1), (7, NULL)", "NULL", "in row 2: it is part of the rowkey"),
        ("INSERT INTO t (id) VALUES (77)", "id", "it is NOT NULL"),
        ("INSERT INTO t VALUES (1, 1, 1), (2, 3, -1)", "2, 3, -1", "in row 2: c > 0 is false for"),
        ("UPSERT INTO t VALUES (1, 1, 1), (2, 3, -1)", "2, 3, -1", "in row 2: c > 0 is false for"),
        ("INSERT INTO t (n, id) VALUES (1, 1), (1, 50)", "50", "in row 2: a rowkey identifies one row"),
        ("INSERT INTO t (n, id) VALUES (1, 1), (1, 2), (1, 1)", "1", "in row 3: a rowkey identifies one row"),
        ("INSERT INTO t (n, id) VALUES (1, 1), (1, 222)", "222", "in row 2: the part is 2 wide"),
        ("INSERT INTO t (u, n, id) VALUES (2, 1, 1), (50, 1, 2)", "50", "in row 2: rowkeys 50 and 02"),
        ("UPSERT INTO t (u, n, id) VALUES (2, 1, 1), (50, 1, 2)", "50", "in row 2: rowkeys 50 and 02"),
        ("INSERT INTO t (n, id, s) VALUES (1, 1, 'abc'), (1, 2, 'abcd')", "'abcd'", "in row 2"),
        (
            "INSERT INTO t (n, id) VALUES (1, 1), (1, 50) ON CONFLICT (id) DO UPDATE SET c = -1",
            "1, 50",
            "in row 2: c > 0 is false for",
        ),
    ] {
        let error = db.execute(sql).unwrap_err();
        assert!(error.reason().unwrap_or_default().starts_with(why), "{sql}: {error}");
        assert_eq!(pointed_at(&db, sql), place, "{sql}");
    }
    for (sql, place) in [
        ("UPDATE t SET c = 1, n = NULL", "NULL"),
        ("UPDATE t SET c = n * 10000000000", "n * 10000000000"),
        ("UPDATE t SET s = 'abc' || 'd', n = n", "'abc' || 'd'"),
    ] {
        assert_eq!(pointed_at(&db, sql), place, "{sql}");
    }
}

#[test]
fn a_literal_that_is_there_twice_is_not_guessed_at() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (s TEXT PRIMARY KEY, n SMALLINT)").unwrap();
    let error = db.query("SELECT * FROM t WHERE s = 'x' AND n = 'x'").unwrap_err();
    assert_eq!(error.span(), None);
}

#[test]
fn a_call_that_means_nothing_is_pointed_at() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, s TEXT)").unwrap();
    for (sql, place) in [
        ("SELECT uper(s) FROM t", "uper"),
        ("SELECT id, sum(s) FROM t GROUP BY id", "sum"),
        ("SELECT upper(s, 2) FROM t", "upper"),
        ("SELECT bit_and(1.5) FROM t", "bit_and"),
    ] {
        assert_eq!(pointed_at(&db, sql), place, "{sql}");
    }
}

#[test]
fn a_name_that_is_nowhere_is_pointed_at() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, s TEXT)").unwrap();
    for (sql, place) in [
        ("SELECT * FROM t ORDER BY nosuch", "nosuch"),
        ("SELECT a.id FROM t a JOIN t b USING (nope)", "nope"),
        ("SELECT s::nosuch FROM t", "nosuch"),
        ("SELECT id FROM t QUALIFY row_number() OVER v = 1", "v"),
        ("SELECT id FROM t WHERE rowkey = '80'", "'80'"),
        ("UPDATE t SET s = 'x', WHERE id = 1", "WHERE"),
        ("SELECT * FROM t WHERE AND id = 1", "AND"),
        ("SELECT /* a\nb", "/"),
        ("SELECT '\nb", "'"),
    ] {
        assert_eq!(pointed_at(&db, sql), place, "{sql}");
    }
}

#[test]
fn what_stands_in_the_wrong_clause_is_pointed_at() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, a INT, b INT)").unwrap();
    db.execute("INSERT INTO t VALUES (9, 9, 9)").unwrap();
    for (sql, place) in [
        ("SELECT a FROM t WHERE a = 9 GROUP BY 9", "9"),
        ("SELECT a FROM t GROUP BY 1, 0", "0"),
        ("SELECT a FROM t WHERE a < 9 ORDER BY 9", "9"),
        ("SELECT a, b, count(*) FROM t WHERE b > 0 GROUP BY a", "b"),
        ("SELECT t.b, a FROM t GROUP BY a", "t.b"),
        ("SELECT count(*) FROM t WHERE id < 7 AND count(*) > 1", "count"),
        ("SELECT a % 0 FROM t", "0"),
        ("SELECT 7 / 0", "0"),
    ] {
        assert_eq!(pointed_at(&db, sql), place, "{sql}");
    }
    // A zero in the rows is none of the statement's.
    let read =
        db.query("SELECT a / (b - 9) FROM t").and_then(|mut rows| rows.try_for_each(|row| row.map(drop)));
    assert_eq!(read.unwrap_err().span(), None);
}

#[test]
fn what_means_nothing_is_told_with_a_way_out() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, a INT, s TEXT, b BOOLEAN, day DATE, at TIMESTAMP)")
        .unwrap();
    db.execute("INSERT INTO t VALUES (1, 2, 'x', true, '2024-01-01', '2024-01-01')").unwrap();
    for (sql, state) in [
        ("SELECT nosuch(1)", "42883"),
        ("SELECT row_number() FROM t", "42P20"),
        ("SELECT a + s FROM t", "42883"),
        ("SELECT a || b FROM t", "42883"),
        ("SELECT at + at FROM t", "42883"),
        ("SELECT NOT a FROM t", "42804"),
        ("SELECT a AND b FROM t", "42804"),
        ("SELECT a IS TRUE FROM t", "42804"),
        ("SELECT -s FROM t", "42883"),
        ("SELECT a LIKE 'x' FROM t", "42883"),
        ("SELECT s LIKE 'x' ESCAPE 'xy' FROM t", "22019"),
        ("SELECT s ~ '(' FROM t", "2201B"),
        ("SELECT regexp_replace(s, '(', 'x') FROM t", "2201B"),
        ("SELECT regexp_match(s, '[') FROM t", "2201B"),
        ("SELECT a, count(*) FROM t", "42803"),
        ("SELECT a FROM t HAVING a > 1", "42803"),
        ("SELECT count(*) FROM t WHERE count(*) > 1", "42803"),
        ("SELECT sum(sum(a)) FROM t", "42803"),
        ("SELECT sum(a) OVER w FROM t", "42704"),
        ("SELECT * FROM t LIMIT -1", "2201W"),
        ("SELECT * FROM t LIMIT 'x'", "2201W"),
        ("SELECT * FROM t OFFSET -1", "2201W"),
        ("SELECT * FROM t ORDER BY 99", "42P10"),
        ("SELECT * FROM t ORDER BY 0", "42P10"),
        ("SELECT a FROM t GROUP BY 99", "42P10"),
        ("SELECT 1 UNION SELECT 1, 2", "42601"),
        ("SELECT k FROM t UNION SELECT b FROM t", "42804"),
        ("SELECT (SELECT 1, 2)", "42601"),
        ("SELECT coalesce(day, true) FROM t", "42883"),
        ("SELECT CAST(b AS DATE) FROM t", "42846"),
        ("SELECT CAST(1 AS nosuch)", "42704"),
        ("SELECT ARRAY[1]", "0A000"),
        ("SELECT s[1] FROM t", "0A000"),
        ("SELECT t.s.x FROM t", "42703"),
        ("SELECT x.* FROM t", "42P01"),
        ("VALUES (1, 2), (3)", "42601"),
        ("SELECT extract(nosuch FROM at) FROM t", "22023"),
        ("SELECT substr('a')", "42883"),
        ("SELECT INTERVAL '1 nosuch'", "22P02"),
        ("SELECT at AT TIME ZONE 'nosuch' FROM t", "22023"),
        ("SELECT count(DISTINCT a, s) FROM t", "0A000"),
        ("SELECT string_agg(s) FROM t", "42883"),
        ("SELECT * FROM t SEMI JOIN t u ON t.k = u.k", "0A000"),
        ("WITH x AS (SELECT 1), x AS (SELECT 2) SELECT * FROM x", "42712"),
        ("WITH x(a, b) AS (SELECT 1) SELECT * FROM x", "42P10"),
        ("SELECT $1", "42P02"),
    ] {
        let error = db.query(sql).and_then(|mut rows| rows.try_for_each(|row| row.map(drop)));
        let error = error.expect_err(sql);
        assert_eq!(error.sqlstate(), state, "{sql}: {error}");
        assert!(error.fix().is_some(), "{sql}: {error}");
        for raw in ["DataFusion", "Expr", "Ident", "Utf8", "Int64", "arrow"] {
            assert!(!error.to_string().contains(raw), "{sql}: {error}");
        }
    }
}

#[test]
fn texts_in_double_quotes_are_told_of() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, s TEXT)").unwrap();
    for (sql, told) in [
        (
            "SELECT id FROM t WHERE s = \"it's\"",
            "columns here are id, s; a text stands in single quotes: 'it''s'",
        ),
        (
            "DELETE FROM t\nWHERE s IN (\"xyz\")",
            "columns here are id, s; a text stands in single quotes: 'xyz'",
        ),
        ("SELECT id FROM t WHERE s = \"ids\"", "did you mean \"id\"?"),
        ("SELECT id FROM t WHERE s = xyz", "columns here are id, s"),
    ] {
        assert_eq!(db.execute(sql).unwrap_err().fix(), Some(told), "{sql}");
    }
}

#[test]
fn what_an_error_is_about_is_pointed_at() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE q (id INT PRIMARY KEY, core INT, v TEXT, at TIMESTAMP, doc JSON)").unwrap();
    db.execute("INSERT INTO q (id) VALUES (1)").unwrap();
    for (sql, place) in [
        ("COPY tt TO 'out.csv'", "tt"),
        ("COPY q (nope) TO 'out.csv'", "nope"),
        ("COPY q FROM 'no/such/file.csv'", "'no/such/file.csv'"),
        ("INSERT INTO q (core, v) VALUES (1, 'a')", "core, v"),
        ("SELECT CAST(core AS UNSIGNED_LONG) FROM q", "UNSIGNED_LONG"),
        ("CREATE TABLE k (id INT, PRIMARY KEY (lpad(idd, 5)))", "idd"),
        ("CREATE TABLE k (id INT PRIMARY KEY, CHECK (nope > 1))", "nope"),
        ("CREATE INDEX ON q (lpad(idd, 5))", "idd"),
        ("SELECT * FROM q WHERE NOT (core + 1)", "core + 1"),
        ("SELECT * FROM q WHERE core + 1", "core + 1"),
        ("SELECT upper(v) + 1 FROM q", "upper(v) + 1"),
        ("SELECT * FROM q WHERE at - 1 > now()", "at - 1"),
        ("SELECT * FROM q WHERE id LIKE 'a%'", "id LIKE 'a%'"),
        ("SELECT at + INTERVAL 'foo' FROM q", "'foo'"),
        ("SELECT * FROM q WHERE id = $1", "$1"),
        ("SELECT to_date('2024-20-31', 'YYYY-MM-DD')", "'2024-20-31'"),
        ("SELECT first_value(id) WITHIN GROUP (ORDER BY v) FROM q", "first_value"),
        ("SELECT floor(at, 'DAY') FROM q", "floor"),
        ("SELECT q.id, doc.k FROM q", "doc.k"),
    ] {
        assert_eq!(pointed_at(&db, sql), place, "{sql}");
    }
}
