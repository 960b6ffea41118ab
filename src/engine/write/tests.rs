//! Repeated statements: each run must behave like the first.

use crate::engine::{Database, Engine, Options, Session};
use crate::error::Result;
use crate::value::Value;

const TABLE: &str =
    "CREATE TABLE t (k INT PRIMARY KEY, n INT DEFAULT (1 + 1), s TEXT DEFAULT 'first', CHECK (n < 1000));
    CREATE TABLE u (k INT PRIMARY KEY, n INT);
    INSERT INTO t SELECT v, v, 's' || v FROM generate_series(1, 9) g(v);
    INSERT INTO u SELECT v, v * 10 FROM generate_series(1, 9) g(v)";

const REFILL: &str =
    "DELETE FROM t; INSERT INTO t (k, n, s) SELECT v, v, 's' || v FROM generate_series(1, 9) g(v)";

/// Statements with a key and a second value of any type as parameters.
const STATEMENTS: [&str; 19] = [
    "UPDATE t SET n = $2 WHERE k = $1",
    "UPDATE t SET n = -$2 WHERE k = $1",
    "UPDATE t SET n = n + $2, s = s || $1 WHERE k = $1 RETURNING *",
    "UPDATE t SET n = DEFAULT, s = DEFAULT WHERE k = $1 AND n <> $2 RETURNING n, s",
    "UPDATE t SET s = coalesce(s, '') || $2, n = DEFAULT WHERE k = $1",
    "UPDATE t SET n = (SELECT max(u.n) FROM u WHERE u.k < $2) WHERE k = $1",
    "UPDATE t SET n = u.n FROM u WHERE u.k = t.k AND t.k = $1 AND u.n > $2",
    "UPDATE t AS x SET n = u.n + $2 FROM u WHERE u.k = x.k AND x.k = $1 RETURNING x.*, u.*",
    "UPDATE t SET s = DATE '2024-02-03' WHERE k IN (SELECT k FROM u WHERE n = $1 * 10) AND k <> $2",
    "INSERT INTO t VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET n = t.n + excluded.n, s = excluded.s",
    "INSERT INTO t AS x VALUES ($1, -$2) ON CONFLICT (k) DO UPDATE SET n = -$2, s = upper(x.s) WHERE x.n <> $2 RETURNING *",
    "INSERT INTO t (k) VALUES ($1 + 2) ON CONFLICT (k) DO UPDATE SET n = DEFAULT, s = DEFAULT WHERE t.n <> $2",
    "INSERT INTO t (k, s) VALUES ($1, $2), ($1 + 3, lower('X' || $2)) ON CONFLICT DO NOTHING",
    "INSERT INTO t (k, n) SELECT k + 20, n + $2 FROM u WHERE k = $1 ON CONFLICT (k) DO UPDATE SET n = excluded.n + t.n",
    "UPSERT INTO t (k, n) VALUES ($1, $2 * 2)",
    "UPSERT INTO t (k) VALUES ($1 + $2)",
    "DELETE FROM t WHERE k = $1 AND n <> $2 RETURNING *",
    "DELETE FROM t USING u WHERE u.k = t.k AND t.k = $1 AND u.n <> $2 RETURNING u.*",
    "DELETE FROM t WHERE n > $2 ORDER BY k DESC LIMIT $1 - $1 + 1",
];

/// Changes between the rounds.
const CHANGES: [&str; 5] = [
    "SELECT 1",
    "CREATE INDEX t_by_n ON t (n) INCLUDE (s); ANALYZE",
    "ALTER TABLE u ADD COLUMN more INT; ALTER TABLE t ADD COLUMN more INT; DROP INDEX t_by_n",
    "DROP TABLE t; CREATE TABLE t (n INT DEFAULT (40 + 2), k INT PRIMARY KEY, s VARCHAR(20) DEFAULT lower('OTHER'), z TEXT, CHECK (n < 500));
     CREATE UNIQUE INDEX t_by_s ON t (s)",
    "DROP TABLE u; CREATE TABLE u (z INT, n INT, k INT PRIMARY KEY); INSERT INTO u SELECT 5, v * 20, v FROM generate_series(1, 9) g(v)",
];

fn second_values(run: i64) -> [Value; 5] {
    [
        Value::Int(run),
        Value::Text(format!("{run}")),
        Value::Null,
        Value::Double(run as f64 + 0.5),
        Value::Int(-run),
    ]
}

/// Everything that a statement returns, and the table's rows after it.
fn said(db: &Database, run: impl FnOnce(&mut Session) -> Result<String>) -> String {
    let mut session = db.session();
    let said = run(&mut session).unwrap_or_else(|e| e.to_string());
    let rows = db.query("SELECT * FROM t ORDER BY k").unwrap();
    rows.fold(said, |said, row| format!("{said}\n{:?}", row.unwrap()))
}

fn run(session: &mut Session, statement: &crate::engine::Prepared, params: &[Value]) -> Result<String> {
    let rows = statement.query_in(session, params)?;
    rows.map(|row| row.map(|row| format!("{row:?}\n"))).collect()
}

fn databases() -> [Database; 2] {
    [(); 2].map(|()| {
        let db = Database::in_memory().unwrap();
        db.execute_batch(TABLE).unwrap();
        db
    })
}

#[test]
fn each_run_is_as_the_first_whatever_has_changed_before_it() {
    let [again, anew] = databases();
    let prepared = STATEMENTS.map(|sql| again.prepare(sql).unwrap());
    let mut done = 0;
    for change in CHANGES {
        for db in [&again, &anew] {
            db.execute_batch(change).unwrap();
        }
        for at in 0..5 {
            for db in [&again, &anew] {
                db.execute_batch(REFILL).unwrap();
            }
            for (sql, prepared) in STATEMENTS.iter().zip(&prepared) {
                let first = at as i64 + 2;
                let params = [Value::Int(first), second_values(first)[at].clone()];
                let found = said(&again, |session| run(session, prepared, &params));
                let expected = said(&anew, |session| run(session, &anew.prepare(sql)?, &params));
                assert_eq!(found, expected, "{sql} {params:?} after {change}");
                done += usize::from(!found.contains("error"));
            }
        }
    }
    assert!(done > 300, "{done}");
}

#[test]
fn a_statement_goes_by_the_definitions_of_the_database_it_runs_in() {
    let [one, other] = [1, 100].map(|n| {
        let db = Database::in_memory().unwrap();
        db.execute(&format!("CREATE TABLE t (k INT PRIMARY KEY, n INT DEFAULT ({n} + abs(-1)))")).unwrap();
        db
    });
    let statements = [
        "INSERT INTO t VALUES (1, 0) ON CONFLICT (k) DO UPDATE SET n = DEFAULT RETURNING n",
        "UPDATE t SET n = DEFAULT WHERE k = 1 RETURNING n",
    ];
    for statement in statements.map(|sql| one.prepare(sql).unwrap()) {
        for _ in 0..3 {
            for (db, n) in [(&one, 2), (&other, 101)] {
                db.execute("UPSERT INTO t VALUES (1, 7)").unwrap();
                let rows = statement.query_in(&mut db.session(), &[]).unwrap();
                assert_eq!(rows.one().unwrap().get::<i64>(0).unwrap(), n);
            }
        }
    }
}

#[test]
fn chance_and_the_time_are_those_of_the_run() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, x DOUBLE DEFAULT random(), at TIMESTAMP DEFAULT now())")
        .unwrap();
    let statements = [
        "INSERT INTO t VALUES (1, random(), now()) ON CONFLICT (k) DO UPDATE SET x = random(), at = now()",
        "INSERT INTO t (k) VALUES (1) ON CONFLICT (k) DO UPDATE SET x = DEFAULT, at = excluded.at",
        "UPSERT INTO t VALUES (1, DEFAULT, DEFAULT)",
        "UPSERT INTO t VALUES ($1, random(), DEFAULT)",
        "UPDATE t SET x = random(), at = now() WHERE k = 1 AND at <= now()",
        "UPDATE t SET x = DEFAULT, at = DEFAULT WHERE k = 1",
    ];
    for sql in statements {
        let mut seen = Vec::new();
        let statement = db.prepare(sql).unwrap();
        let params = [Value::Int(1)];
        let params = if sql.contains("$1") { &params[..] } else { &[] };
        let mut run = |session: &mut Session| {
            statement.execute_in(session, params).unwrap();
            let query = db.prepare("SELECT x, at FROM t").unwrap();
            let row = query.query_in(session, &[]).unwrap().one().unwrap();
            seen.push((row.get::<f64>(0).unwrap(), row.value(1).unwrap()));
        };
        let mut transaction = db.begin().unwrap();
        (0..3).for_each(|_| run(&mut transaction));
        transaction.commit().unwrap();
        (0..3).for_each(|_| run(&mut db.session()));
        for (at, (x, time)) in seen.iter().enumerate() {
            assert!(seen[..at].iter().all(|(before, then)| before != x && then < time), "{sql}: {seen:?}");
        }
    }
}

/// Tables, each with a key `k`, a number `n` and a text `s`.
const TABLES: [&str; 5] = [
    "CREATE TABLE t (k INT PRIMARY KEY, n INT NOT NULL DEFAULT (40 + 2), s TEXT, CHECK (n < 5000));
     CREATE INDEX t_by_n ON t (n DESC) INCLUDE (s); CREATE INDEX t_by_s ON t (upper(s)) WHERE n > 100",
    "CREATE TABLE t (k INT, n INT, s TEXT, FAMILY more (s), PRIMARY KEY (md5_bucket(k, 16), k));
     CREATE INDEX t_by_n ON t (n)",
    "CREATE TABLE t (k INT PRIMARY KEY, n INT, s TEXT) WITH (versions = 3); CREATE INDEX t_by_s ON t (s)",
    "CREATE TABLE t (k INT PRIMARY KEY, n INT, s TEXT) WITH (ttl = '1 day'); CREATE INDEX t_by_n ON t (n)",
    "CREATE TABLE t (k INT PRIMARY KEY, n INT, s TEXT, number BIGINT GENERATED BY DEFAULT AS IDENTITY);
     CREATE INDEX t_by_number ON t (number)",
];

/// Statements that write `source`, whose keys come several times.
const MERGES: [&str; 8] = [
    "UPSERT INTO t (k, n, s) SELECT k, n, s FROM source",
    "UPSERT INTO t (k, n) SELECT k, n FROM source WHERE n > 300",
    "UPSERT INTO t (s, k) SELECT s, k FROM source ORDER BY n DESC",
    "UPSERT INTO t (k, n) SELECT k, n * 3 FROM source",
    "INSERT INTO t (k, n, s) SELECT k, n, s FROM source",
    "INSERT INTO t (k, s) SELECT DISTINCT k + 500, 'more' FROM source",
    "INSERT INTO t (k, n) SELECT k, n FROM source ON CONFLICT DO NOTHING",
    "INSERT INTO t AS x (k, n, s) SELECT k, max(n), min(s) FROM source GROUP BY k ON CONFLICT (k) DO UPDATE
     SET n = x.n - excluded.n, s = (SELECT max(s) FROM source WHERE source.k = x.k) WHERE excluded.n % 3 <> 0",
];

#[test]
fn many_rows_are_merged_in_parts_as_they_are_in_one_batch() {
    let (mut merged, mut failed) = (0, 0);
    let engines = [None, Some(Engine::Lmdb), Some(Engine::Lsm)];
    for (table, engine) in TABLES.iter().zip(engines.iter().cycle()) {
        let folder = tempfile::tempdir().unwrap();
        let [parts, batch] = [*engine, None].map(|engine| {
            let options = Options { engine, ..Options::default() };
            let db = match engine {
                Some(_) => Database::open_with(folder.path().join("db"), options).unwrap(),
                None => Database::in_memory().unwrap(),
            };
            let source = "CREATE TABLE source (id BIGINT PRIMARY KEY, k INT, n INT, s TEXT);
                INSERT INTO source SELECT v, (v * 7919) % 2100, v % 1700, 's' || v % 13
                FROM generate_series(1, 2600) g(v)";
            db.execute_batch(source).unwrap();
            db.execute_batch(table).unwrap();
            db.execute("INSERT INTO t (k, n, s) SELECT v * 3, v, 'old' FROM generate_series(1, 60) g(v)")
                .unwrap();
            db
        });
        for merge in MERGES {
            let in_parts = parts.execute(merge);
            let mut transaction = batch.begin().unwrap();
            let in_one = transaction.execute(merge, &[]).map(|done| done.affected.unwrap_or_default());
            match &in_one {
                Ok(_) => transaction.commit().unwrap(),
                Err(_) => transaction.rollback().unwrap(),
            }
            merged += usize::from(in_one.is_ok());
            failed += usize::from(in_one.is_err());
            let said = |said: Result<_>| said.map(|said| format!("{said:?}")).map_err(|e| e.sqlstate());
            assert_eq!(said(in_parts), said(in_one), "{table}\n{merge}");
            let versions = if table.contains("versions") {
                "SELECT k, n, s FROM VERSIONS OF t ORDER BY k, n, s"
            } else {
                "SELECT 1"
            };
            for query in ["SELECT * FROM t ORDER BY k", "SELECT n FROM t ORDER BY n, k", versions] {
                let [found, expected] = [&parts, &batch].map(|db| {
                    let rows = db.query(query).unwrap();
                    rows.map(|row| format!("{:?}", row.unwrap())).collect::<Vec<_>>()
                });
                assert_eq!(found, expected, "{table}\n{merge}\n{query}");
            }
            assert_eq!(parts.execute("CHECK DATABASE").unwrap(), 0, "{table}\n{merge}");
        }
    }
    assert!(merged > 20 && failed > 5, "{merged} {failed}");
}

#[test]
fn many_computed_cells_are_computed_in_parts() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, n INT, s TEXT)").unwrap();
    let cells = |k: i32| format!("({k}, abs({}), upper('s{k}'))", -k);
    let values: Vec<String> = (0..500).map(cells).collect();
    let insert = format!("INSERT INTO t VALUES {}", values.join(", "));
    for _ in 0..2 {
        db.execute("DELETE FROM t").unwrap();
        assert_eq!(db.execute(&insert).unwrap(), 500);
        let wrong = db.query("SELECT count(*) FROM t WHERE n <> k OR s <> 'S' || k").unwrap();
        assert_eq!(wrong.one().unwrap().get::<i64>(0).unwrap(), 0);
    }
}
