//! Nonsense, malice and mistakes: each gets one clear error or the right answer, soon, and nothing is broken.

mod much;

use std::time::{Duration, Instant};

use rowkeydb::{Database, Error, Kind, Session, Value};

/// Longest that any of it may take, in a debug build on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn database() -> Database {
    let db = Database::in_memory().unwrap();
    for sql in [
        "CREATE TABLE t (id BIGINT PRIMARY KEY, n INTEGER, s TEXT, at TIMESTAMP, p DECIMAL(8,2), f DOUBLE)",
        "CREATE INDEX by_s ON t (s, n DESC)",
        "CREATE UNIQUE INDEX by_n ON t (n)",
        "CREATE TABLE k (host TEXT, day DATE, v BYTEA, PRIMARY KEY (rpad(host, 8, ' '), to_char(day, 'YYYY-MM-DD')))",
        "CREATE VIEW w AS SELECT id, n FROM t WHERE n > 1",
        "INSERT INTO t VALUES (1, 1, 'one', '2024-01-01', 1.5, 0.5), (2, 2, 'two', NULL, NULL, NULL), (3, NULL, NULL, NULL, 3, 3)",
        "INSERT INTO k VALUES ('h', '2024-01-01', '\\x00ff')",
    ] {
        db.execute(sql).unwrap_or_else(|e| panic!("{sql}: {}", e.render(sql)));
    }
    db
}

/// Rows of the answer.
pub(crate) fn run(session: &mut Session, sql: &str, params: &[Value]) -> Result<usize, Error> {
    let started = Instant::now();
    let outcome = session.execute(sql, params)?;
    let mut rows = 0;
    for batch in outcome.rows {
        rows += batch?.num_rows();
    }
    assert!(started.elapsed() < PATIENCE, "{:?} for {}", started.elapsed(), shown(sql));
    Ok(rows)
}

/// What is wrong with an error: it is for people, has a message of a reasonable length, and is neither a bug nor
/// one of Rust's.
pub(crate) fn flaw(error: &Error) -> Option<String> {
    let text = error.to_string();
    let foreign = [
        "Utf8",
        "Int64",
        "DataFusion",
        "Arrow",
        "panicked",
        "Some(",
        "Schema error",
        "Internal",
        "Ident {",
        "Literal(",
    ];
    let sound = !matches!(error.kind(), Kind::Internal | Kind::Corrupt)
        && !error.what().is_empty()
        && text.chars().count() < 2_000
        && !foreign.iter().any(|word| text.contains(word));
    (!sound).then(|| text.chars().take(300).collect())
}

/// The beginning of a statement.
fn shown(sql: &str) -> String {
    sql.chars().take(160).collect()
}

pub(crate) fn check_error(sql: &str, error: &Error) {
    assert_eq!(flaw(error), None, "{}", shown(sql));
    // It can be shown under any text.
    error.render(sql);
}

fn check(db: &Database) {
    for table in db.table_names() {
        assert_eq!(db.query(&format!("CHECK TABLE {table}")).unwrap().count(), 1, "{table}");
    }
    let rows: Vec<(i64, Option<i64>)> = db
        .query("SELECT id, n FROM t ORDER BY id")
        .unwrap()
        .map(|row| row.and_then(|row| Ok((row.get("id")?, row.get("n")?))).unwrap())
        .collect();
    assert_eq!(rows, [(1, Some(1)), (2, Some(2)), (3, None)]);
}

fn refused(statements: &[&str]) {
    let db = database();
    let mut session = db.session();
    let mut wrong = Vec::new();
    for sql in statements {
        match run(&mut session, sql, &[]) {
            Ok(rows) => wrong.push(format!("{sql}: {rows} rows")),
            Err(e) => wrong.extend(flaw(&e).map(|flaw| format!("{sql}: {flaw}"))),
        }
        assert!(!session.in_transaction(), "{sql}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    check(&db);
}

#[test]
fn malformed_sql() {
    refused(&[
        "SELEC 1",
        "SELECT",
        "SELECT FROM",
        "SELECT 1 FROM",
        "SELECT 1 +",
        "SELECT (1",
        "SELECT 1)",
        "SELECT 'never closed",
        "SELECT \"never closed",
        "SELECT /* never closed",
        "SELECT $$never closed",
        "SELECT 1 FROM t WHERE",
        "SELECT 1 FROM t WHERE id =",
        "SELECT 1 FROM t GROUP",
        "SELECT 1 FROM t ORDER id",
        "SELECT 1 FROM t LIMIT",
        "SELECT 1 FROM t LIMIT x",
        "SELECT 1,, 2",
        "SELECT 1 2 3",
        "SELECT * * FROM t",
        "SELECT CASE WHEN 1 END",
        "SELECT CASE END",
        "SELECT 1 IN ()",
        "SELECT 1 BETWEEN 2",
        "SELECT x'zz'",
        "SELECT B'01'",
        "SELECT 0b11",
        "SELECT 0o17",
        "SELECT 1x",
        "SELECT 3_",
        "SELECT 1e",
        "SELECT 1.2.3",
        "SELECT \u{0}",
        "\u{feff}\u{feff}",
        "; SELECT",
        "DROP",
        "CREATE",
        "CREATE TABLE",
        "CREATE TABLE x",
        "CREATE TABLE x (",
        "CREATE TABLE x (id)",
        "CREATE TABLE x (id BIGINT PRIMARY KEY,)",
        "INSERT t VALUES (1)",
        "INSERT INTO t",
        "INSERT INTO t VALUES",
        "INSERT INTO t VALUES ()",
        "UPDATE t",
        "UPDATE t SET",
        "UPDATE t SET n",
        "UPDATE SET n = 1",
        "DELETE t",
        "DELETE FROM",
        "BEGIN BEGIN",
        "COPY",
        "COPY t",
        "COPY t FROM",
        "EXPLAIN",
        "EXPLAIN EXPLAIN EXPLAIN",
        "🦀",
        "SELECT 🦀",
    ]);
}

#[test]
fn names_that_mean_nothing() {
    refused(&[
        "SELECT nope FROM t",
        "SELECT t.nope FROM t",
        "SELECT x.id FROM t",
        "SELECT * FROM nope",
        "SELECT * FROM other.t",
        "SELECT * FROM a.b.c.d.t",
        "SELECT nope(1)",
        "SELECT sum(nope) FROM t",
        "SELECT * FROM nope()",
        "SELECT id FROM t, k, t",
        "SELECT id FROM t x JOIN t y ON x.id = y.id",
        "SELECT * FROM t JOIN k USING (nope)",
        "SELECT * FROM t ORDER BY nope",
        "SELECT * FROM t ORDER BY 99",
        "SELECT id FROM t ORDER BY 0",
        "SELECT * FROM t GROUP BY 99",
        "SELECT id, count(*) FROM t GROUP BY n",
        "SELECT id FROM t HAVING id > 1",
        "SELECT count(*) FROM t WHERE count(*) > 1",
        "SELECT sum(sum(n)) FROM t",
        "INSERT INTO nope VALUES (1)",
        "INSERT INTO t (nope) VALUES (1)",
        "INSERT INTO t (id, id) VALUES (1, 2)",
        "INSERT INTO w VALUES (1, 2)",
        "INSERT INTO by_s VALUES (1, 2)",
        "UPDATE nope SET n = 1",
        "UPDATE t SET nope = 1",
        "UPDATE t SET n = 1, n = 2",
        "UPDATE w SET n = 1",
        "DELETE FROM nope",
        "DELETE FROM w",
        "DELETE FROM t WHERE nope = 1",
        "DELETE FROM t RETURNING nope",
        "DROP TABLE nope",
        "DROP TABLE w",
        "DROP VIEW t",
        "DROP VIEW nope",
        "DROP INDEX nope",
        "DROP INDEX t",
        "ALTER TABLE nope ADD COLUMN x INT",
        "ALTER TABLE t ADD COLUMN n INT",
        "ALTER TABLE t DROP COLUMN nope",
        "ALTER TABLE t DROP COLUMN id",
        "TRUNCATE nope",
        "DESCRIBE nope",
        "SHOW nope",
        "CHECK TABLE nope",
        "CHECK INDEX nope",
        "REPAIR INDEX nope",
        "ANALYZE nope",
        "CREATE INDEX x ON nope (a)",
        "CREATE INDEX x ON t (nope)",
        "CREATE INDEX x ON w (n)",
        "CREATE INDEX by_s ON t (n)",
        "CREATE TABLE t (id BIGINT PRIMARY KEY)",
        "CREATE VIEW t AS SELECT 1",
        "CREATE VIEW x AS SELECT nope FROM t",
        "CREATE VIEW x (a, b) AS SELECT 1",
        "EXECUTE nope",
        "RELEASE nope",
        "ROLLBACK TO nope",
        "COMMIT",
        "ROLLBACK",
        "COPY nope FROM 'x.csv'",
        "COPY t (nope) FROM 'x.csv'",
        "COPY t FROM '/there/is/no/such/file.csv'",
        "COPY t TO '/there/is/no/such/directory/x.csv'",
        "WITH x AS (SELECT 1) SELECT * FROM y",
        "WITH x AS (SELECT 1), x AS (SELECT 2) SELECT * FROM x",
    ]);
}

/// Other databases know them. None is read and then passed over.
#[test]
fn clauses_of_others() {
    refused(&[
        "SELECT id FROM t TABLESAMPLE BERNOULLI (10)",
        "SELECT id FROM (SELECT id FROM t) x TABLESAMPLE SYSTEM (10)",
        "SELECT id FROM t START WITH id = 1 CONNECT BY PRIOR id = n",
        "SELECT id FROM t CONNECT BY PRIOR id = n",
        "SELECT * FROM t WITH ORDINALITY",
        "SELECT * FROM tpch('region', 1) WITH ORDINALITY AS r",
        "SELECT id FROM t WITH (NOLOCK)",
        "SELECT id FROM t FOR JSON AUTO",
        "SELECT id FROM t FOR XML RAW",
        "SELECT * FROM t GLOBAL JOIN k ON true",
        "SELECT * FROM (t GLOBAL JOIN k ON true)",
        "SELECT upper(s) FILTER (WHERE false) FROM t",
        "SELECT upper(DISTINCT s) FROM t",
        "SELECT upper(s ORDER BY id) FROM t",
        "SELECT upper(s) WITHIN GROUP (ORDER BY id) FROM t",
        "SELECT upper(s) OVER () FROM t",
        "SELECT upper(s) IGNORE NULLS FROM t",
        "CREATE INDEX x ON t (md5(id) IGNORE NULLS)",
        "SELECT s COLLATE \"de_DE\" FROM t",
        "SELECT id FROM t ORDER BY s COLLATE \"de_DE\"",
        "SELECT * FROM t PIVOT (sum(n) FOR s IN ('one', 'two'))",
        "SELECT * FROM t UNPIVOT (v FOR c IN (n, id))",
        "SELECT @ -1",
        "SELECT |/ 4",
        "SELECT CAST(at AS TIMESTAMP(0)) FROM t",
        "SELECT id FROM nosuch.t AS OF SNAPSHOT s",
        "COPY t TO '/tmp/x.csv' (FORMAT csv, FORMAT csv)",
        "COPY t TO '/tmp/x.jsonl' (HEADER)",
        "COPY t TO '/tmp/x.parquet' (DELIMITER ';')",
        "COPY t TO '/tmp/x.csv' (ON_ERROR skip)",
        "COPY t TO '/tmp/x.csv' WITH",
        "COPY (SELECT 1 AS a, 2 AS a) TO '/tmp/x.jsonl'",
    ]);
}

#[test]
fn values_that_do_not_fit() {
    refused(&[
        "SELECT repeat('x', 1000000000)",
        "SELECT length(repeat(s, 9223372036854775807)) FROM t",
        "SELECT repeat('x', 'y')",
        "INSERT INTO t VALUES (1, 1, 'again', NULL, NULL, NULL)",
        "INSERT INTO t VALUES (9, 1, 'the same n', NULL, NULL, NULL)",
        "INSERT INTO t (id) VALUES (NULL)",
        "INSERT INTO t (n) VALUES (9)",
        "INSERT INTO t (id, n) VALUES (9)",
        "INSERT INTO t (id, n) VALUES (9, 9), (10)",
        "INSERT INTO t VALUES (9, 9, 9, 9, 9, 9, 9)",
        "INSERT INTO t (id) VALUES (9223372036854775808)",
        "INSERT INTO t (id, n) VALUES (9, 2147483648)",
        "INSERT INTO t (id, n) VALUES (9, 'x')",
        "INSERT INTO t (id, n) VALUES (9, true)",
        "INSERT INTO t (id, n) VALUES (9, 1 / 0)",
        "INSERT INTO t (id, p) VALUES (9, 1234567.89)",
        "INSERT INTO t (id, f) VALUES (9, 1e400)",
        "INSERT INTO t (id, f) VALUES (9, -1e400)",
        "INSERT INTO t (id, f) SELECT 9, 1e400",
        &format!("INSERT INTO t (id, f) VALUES (9, {})", "9".repeat(400)),
        "INSERT INTO t (id, at) VALUES (9, 'tomorrow')",
        "INSERT INTO t (id, at) VALUES (9, '2024-02-30')",
        "INSERT INTO t (id, at) VALUES (9, 5)",
        "INSERT INTO t (id) SELECT id FROM t",
        "INSERT INTO t (id, n) SELECT id + 10, s FROM t",
        "INSERT INTO t (id) SELECT id, n FROM t",
        "INSERT INTO k VALUES ('longer than eight', '2024-01-01', NULL)",
        "INSERT INTO k VALUES (NULL, '2024-01-01', NULL)",
        "INSERT INTO k VALUES ('x', '2024-01-01', 'no hex')",
        "UPDATE t SET id = 5",
        "UPDATE t SET id = 5 WHERE id = 1",
        "UPDATE t SET n = 'x'",
        "UPDATE t SET n = 5",
        "UPDATE t SET n = n / 0",
        "UPDATE t SET n = (SELECT id FROM t)",
        "UPDATE t SET n = n + 9223372036854775807",
        "SELECT 1 / 0",
        "SELECT 1 % 0",
        "SELECT 1.5 / 0",
        "SELECT f / 0 FROM t",
        "SELECT 9223372036854775807 + 1",
        "SELECT -9223372036854775807 - 2",
        "SELECT 9223372036854775807 * id FROM t",
        "SELECT sum(9223372036854775807) FROM t",
        "SELECT CAST(3000000000 AS INTEGER)",
        "SELECT CAST('x' AS INTEGER)",
        "SELECT CAST(s AS INTEGER) FROM t",
        "SELECT CAST('2024-13-01' AS DATE)",
        "SELECT CAST(1 AS nope)",
        "SELECT id FROM t WHERE id = 'x'",
        "SELECT id FROM t WHERE at > 'x'",
        "SELECT id FROM t WHERE at > 5",
        "SELECT id FROM t WHERE s > at",
        "SELECT id FROM t WHERE s + 1 > 1",
        "SELECT id FROM t WHERE id LIKE 5",
        "SELECT id FROM t WHERE n",
        "SELECT id FROM t WHERE s AND true",
        "SELECT NOT s FROM t",
        "SELECT - s FROM t",
        "SELECT sum(s) FROM t",
        "SELECT (SELECT id FROM t)",
        "SELECT (SELECT id, n FROM t WHERE id = 1)",
        "SELECT id FROM t WHERE id IN (SELECT id, n FROM t)",
        "SELECT 1 UNION SELECT 1, 2",
        "SELECT id FROM t LIMIT -1",
        "SELECT id FROM t OFFSET -1",
        "SELECT id FROM t LIMIT 1.5",
        "SELECT id FROM t LIMIT n",
        "SELECT to_char(at, 'nonsense %Q') FROM t",
        "SELECT to_char(5, 'YYYY')",
        "SELECT md5_bucket(id) FROM t",
        "SELECT md5_bucket(id, 0) FROM t",
        "SELECT md5(1, 2)",
        "SELECT lpad('x')",
        "SELECT lpad('x', 'y')",
        "SELECT lpad('x', 999999999999)",
        "SELECT repeat('x', 9999999999999)",
        "SELECT substr('x')",
        "SELECT coalesce()",
        "SELECT $1",
        "SELECT $0",
        "SELECT $99999999999",
        "SELECT ?",
    ]);
}

#[test]
fn layouts_that_cannot_be() {
    refused(&[
        "CREATE TABLE x ()",
        "CREATE TABLE x (id BIGINT, PRIMARY KEY ())",
        "CREATE TABLE x (id BIGINT, PRIMARY KEY (nope))",
        "CREATE TABLE x (id BIGINT, PRIMARY KEY (id + 1))",
        "CREATE TABLE x (id BIGINT, PRIMARY KEY (upper(id)))",
        "CREATE TABLE x (id BIGINT, PRIMARY KEY ('_'))",
        "CREATE TABLE x (id BIGINT PRIMARY KEY, id TEXT)",
        "CREATE TABLE x (id BIGINT PRIMARY KEY, b TEXT PRIMARY KEY)",
        "CREATE TABLE x (id nope PRIMARY KEY)",
        "CREATE TABLE x (id DECIMAL(99,2) PRIMARY KEY)",
        "CREATE TABLE x (id DECIMAL(2,9) PRIMARY KEY)",
        "CREATE TABLE x (id BIGINT, PRIMARY KEY (lpad(id, 0)))",
        "CREATE TABLE x (id BIGINT, PRIMARY KEY (lpad(id, -4)))",
        "CREATE TABLE x (id BIGINT, PRIMARY KEY (lpad(id, 99999999999)))",
        "CREATE TABLE x (id BIGINT, PRIMARY KEY (id % 0))",
        "CREATE TABLE x (id BIGINT, PRIMARY KEY (md5_bucket(id, 0), id))",
        "CREATE TABLE x (id BIGINT, PRIMARY KEY (left(md5(id), 99)))",
        "CREATE TABLE x (id BIGINT, PRIMARY KEY (random(0), id))",
        "CREATE TABLE x (a TEXT, b TEXT, PRIMARY KEY (code(a, 'x=1, y=22'), b))",
        "CREATE TABLE x (a TEXT, PRIMARY KEY (to_char(a, 'YYYY')))",
        "CREATE TABLE x (a TIMESTAMP, PRIMARY KEY (to_char(a, 'QQ')))",
        "CREATE TABLE x (a TEXT, PRIMARY KEY (code(a, 'nonsense')))",
        "CREATE TABLE x (id BIGINT PRIMARY KEY DEFAULT nope)",
        "CREATE TABLE x (id BIGINT PRIMARY KEY DEFAULT 'x')",
        "CREATE TABLE x (id BIGINT PRIMARY KEY, n INT CHECK (nope > 1))",
        "CREATE TABLE x (id BIGINT PRIMARY KEY, n INT CHECK (n + 1))",
        "CREATE TABLE x (id BIGINT PRIMARY KEY, n INT DEFAULT $1)",
        "CREATE TABLE x (id BIGINT PRIMARY KEY, n INT DEFAULT count(*))",
        "CREATE TABLE x (id BIGINT PRIMARY KEY, n INT DEFAULT 1 + max(2))",
        "CREATE TABLE x (id BIGINT PRIMARY KEY, n INT DEFAULT (SELECT 1))",
        "CREATE TABLE x (id BIGINT PRIMARY KEY, n INT DEFAULT row_number() OVER ())",
        "CREATE TABLE x (id BIGINT PRIMARY KEY, n INT CHECK (count(*) > 1))",
        "CREATE TABLE x (id BIGINT PRIMARY KEY, n INT CHECK (n > max(n)))",
        "CREATE TABLE x (id BIGINT PRIMARY KEY, n INT CHECK (n > sum(n) OVER ()))",
        "CREATE TABLE x (id BIGINT PRIMARY KEY, n INT CHECK (n > (SELECT max(id) FROM t)))",
        "CREATE TABLE x (id BIGINT PRIMARY KEY, n INT CHECK (n IN (SELECT id FROM t)))",
        "CREATE TABLE x (id BIGINT PRIMARY KEY, n INT CHECK (EXISTS (SELECT 1 FROM t)))",
        "CREATE TABLE x (id BIGINT PRIMARY KEY, n INT NOT NULL NULL)",
        "CREATE TABLE x (id BIGINT PRIMARY KEY, n INT NULL NOT NULL)",
        "CREATE TABLE x (id BIGINT PRIMARY KEY, n INT DEFAULT 1 DEFAULT 2)",
        "CREATE TABLE x (id BIGINT PRIMARY KEY, n INT DEFAULT 1 GENERATED ALWAYS AS IDENTITY)",
        "CREATE TABLE x (id BIGINT PRIMARY KEY, n SERIAL DEFAULT 1)",
        "CREATE TABLE x (id BIGINT PRIMARY KEY, at TIMESTAMP(0))",
        "CREATE TABLE x (id BIGINT, PRIMARY KEY (lpad(id, 4, ' ')))",
        "CREATE TABLE x (id BIGINT, PRIMARY KEY (rpad(id, 4)))",
        "CREATE TABLE x (a DATE, PRIMARY KEY (a % 4, a))",
        "CREATE INDEX x ON t (upper(s), nope(n))",
        "CREATE INDEX x ON t (n) WHERE (SELECT true)",
        "CREATE INDEX x ON t (n) WHERE nope = 1",
        "CREATE INDEX x ON t (n) INCLUDE (nope)",
        "CREATE INDEX x ON t ()",
    ]);
}

#[test]
fn strange_but_right() {
    let db = database();
    let mut session = db.session();
    for (sql, rows) in [
        ("SELECT id FROM t LIMIT 0", 0),
        ("SELECT id FROM t LIMIT 9223372036854775807", 3),
        ("SELECT id FROM t OFFSET 9223372036854775807", 0),
        ("SELECT id FROM t LIMIT 2 OFFSET 2", 1),
        ("SELECT id FROM t LIMIT NULL", 3),
        ("SELECT id FROM t WHERE 1 = 0", 0),
        ("SELECT id FROM t WHERE NULL", 0),
        ("SELECT id FROM t WHERE id > 5 AND id < 2", 0),
        ("SELECT id FROM t WHERE id = 99999999999999999999999999999999", 0),
        ("SELECT id FROM t WHERE id < 99999999999999999999999999999999", 3),
        ("SELECT id FROM t WHERE id > 1e300", 0),
        ("SELECT id FROM t WHERE id = 1.5", 0),
        ("SELECT id FROM t WHERE id BETWEEN 2 AND 1", 0),
        ("SELECT id FROM t WHERE s LIKE ''", 0),
        ("SELECT id FROM t WHERE s LIKE '%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%o'", 1),
        ("SELECT id FROM t WHERE s = 'o\u{0}ne'", 0),
        ("SELECT 1 AS \"\u{0}\"", 1),
        ("SELECT '🦀' AS \"🦀\"", 1),
        ("SELECT 1 WHERE false", 0),
        ("DELETE FROM t WHERE false", 0),
        ("DELETE FROM t WHERE id IN (SELECT id FROM t WHERE false)", 0),
        ("DELETE FROM t LIMIT 0", 0),
        ("UPDATE t SET n = 7 WHERE NULL", 0),
        ("INSERT INTO t SELECT * FROM t WHERE false", 0),
        ("SELECT * FROM t, t AS b, t AS c, t AS d", 81),
        (" ( SELECT 1 ) ", 1),
        ("SELECT count(*) FROM (SELECT 1 FROM t WHERE false)", 1),
        ("SELECT count(*) FROM (t JOIN t AS u USING (rowkey))", 1),
        ("SELECT sum(n ORDER BY s), sum(DISTINCT n ORDER BY s), array_agg(n ORDER BY s) FROM t", 1),
        (
            "SELECT sum(n ORDER BY s), count(n ORDER BY s), avg(f ORDER BY s), max(s ORDER BY n) FROM t GROUP BY id",
            3,
        ),
        (
            "SELECT stddev(f ORDER BY s), median(f ORDER BY s), bool_and(n > 0 ORDER BY s) FROM t GROUP BY n",
            3,
        ),
        ("SELECT N'x', U&'\\0041'", 1),
        ("SELECT id FROM t WHERE id < 1_0e2 AND id > -1_000", 3),
        ("SELECT id FROM t FOR UPDATE", 3),
        ("-- nothing but\nSELECT /* a /* nested */ remark */ 1", 1),
    ] {
        match run(&mut session, sql, &[]) {
            Ok(n) => assert_eq!(n, rows, "{sql}"),
            Err(e) => panic!("{sql}: {}", e.render(sql)),
        }
    }
    check(&db);
}

#[test]
fn parameters_that_do_not_fit() {
    let db = database();
    let mut session = db.session();
    let text = || Value::from("x");
    for (sql, params) in [
        ("SELECT $1", vec![]),
        ("SELECT $2", vec![text()]),
        ("SELECT id FROM t WHERE id = $1", vec![text()]),
        ("SELECT id FROM t WHERE at = $1", vec![Value::Int(5)]),
        ("INSERT INTO t (id) VALUES ($1)", vec![text()]),
        ("INSERT INTO t (id) VALUES ($1)", vec![]),
        ("INSERT INTO t (id) VALUES (-$1)", vec![text()]),
        ("INSERT INTO t (id) VALUES (-$1)", vec![Value::Int(i64::MIN)]),
        ("INSERT INTO t (id) VALUES (- - $1)", vec![Value::Int(i64::MIN)]),
        ("UPDATE t SET n = $1", vec![Value::Bytes(vec![0xff])]),
        ("SELECT id FROM t LIMIT $1", vec![Value::Int(-1)]),
        ("SELECT id FROM t LIMIT $1", vec![text()]),
    ] {
        // More than once: a plan may be kept.
        for _ in 0..3 {
            match run(&mut session, sql, &params) {
                Ok(rows) => panic!("{rows} rows for {sql} with {params:?}"),
                Err(e) => check_error(sql, &e),
            }
        }
    }
    for (sql, params, rows) in [
        ("SELECT id FROM t WHERE id = $1", vec![Value::Null], 0),
        ("SELECT id FROM t WHERE id = $1", vec![Value::Double(f64::NAN)], 0),
        ("SELECT id FROM t WHERE f < $1", vec![Value::Double(f64::NAN)], 2),
        ("SELECT id FROM t WHERE id < $1", vec![Value::Double(f64::INFINITY)], 3),
        ("SELECT id FROM t WHERE id = $1", vec![Value::Decimal(10i128.pow(38) - 1, 38)], 0),
        ("SELECT id FROM t WHERE id > $1", vec![Value::Decimal(10i128.pow(38) - 1, 38)], 3),
        ("SELECT id FROM t WHERE s > $1", vec![Value::Text("\u{10ffff}".repeat(5_000))], 0),
        ("SELECT id FROM t WHERE id = $1", vec![Value::Text("2".into())], 1),
    ] {
        for _ in 0..3 {
            match run(&mut session, sql, &params) {
                Ok(n) => assert_eq!(n, rows, "{sql} with {params:?}"),
                Err(e) => panic!("{sql} with {params:?}: {e}"),
            }
        }
    }
    check(&db);
}
