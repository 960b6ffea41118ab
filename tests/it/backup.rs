//! A backup is the database at one moment, whole, whatever is written meanwhile.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rowkeydb::sql::Splitter;
use rowkeydb::store::{KeyspaceId, MemoryStore, Store, WriteBatch};
use rowkeydb::{Database, Engine, Kind, Row};

use crate::engines::over_each_store;

/// Where definitions are kept.
const CATALOG: KeyspaceId = KeyspaceId(0);

fn rows(db: &Database, sql: &str) -> Vec<String> {
    let shown = |row: Row| format!("{row:?}");
    db.query(sql).unwrap().map(|row| shown(row.unwrap())).collect()
}

fn number(db: &Database, sql: &str) -> i64 {
    db.query(sql).unwrap().next().unwrap().unwrap().get("n").unwrap()
}

fn assert_sound(db: &Database) {
    assert_eq!(db.query("CHECK DATABASE").unwrap().count(), 1);
}

#[test]
fn a_backup_has_everything_and_goes_on_where_it_was() {
    over_each_store(|db| {
        let directory = tempfile::tempdir().unwrap();
        for sql in [
            "CREATE TABLE t (id BIGINT, day DATE, note TEXT, price DECIMAL(9, 2), raw BYTEA, n INT GENERATED ALWAYS AS IDENTITY,
             FAMILY f (note, raw) WITH (compression = 'lz4'), PRIMARY KEY (id % 4, reverse(lpad(id, 9))))",
            "CREATE UNIQUE INDEX by_note ON t (note) INCLUDE (price)",
            "CREATE INDEX dear ON t (price DESC) WHERE price > 100",
            "CREATE VIEW cheap AS SELECT id FROM t WHERE price <= 100",
            "INSERT INTO t (id, day, note, price, raw) SELECT value, '2024-02-29', 'it''s ' || value, value * 1.5, '\\x00ff' FROM generate_series(1, 300)",
            "DELETE FROM t WHERE id % 3 = 0",
            "ANALYZE t",
        ] {
            db.execute(sql).unwrap_or_else(|e| panic!("{}", e.render(sql)));
        }
        let copy = directory.path().join("copy");
        assert!(db.backup(&copy).unwrap() > 700);
        let error = db.backup(&copy).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid, "{error}");
        let copied = Database::open(&copy).unwrap();
        assert_eq!(copied.engine(), db.engine().or(Some(Engine::Lmdb)));
        for sql in [
            "SELECT rowkey, * FROM t ORDER BY id",
            "SELECT * FROM by_note",
            "SELECT * FROM dear",
            "SELECT * FROM cheap ORDER BY id",
            "SHOW INDEXES",
            "SHOW CREATE TABLE t",
        ] {
            assert_eq!(rows(&copied, sql), rows(&db, sql), "{sql}");
        }
        assert_sound(&copied);
        for db in [&copied, &db] {
            db.execute("INSERT INTO t (id, note) VALUES (1000, 'next')").unwrap();
            assert_eq!(number(db, "SELECT n FROM t WHERE id = 1000"), 301);
            db.execute("CREATE TABLE another (k INT PRIMARY KEY)").unwrap();
        }
    });
}

#[test]
fn a_backup_is_of_one_moment() {
    over_each_store(|db| {
        let directory = tempfile::tempdir().unwrap();
        db.execute("CREATE TABLE a (id INT PRIMARY KEY, v INT)").unwrap();
        db.execute("CREATE INDEX a_v ON a (v)").unwrap();
        db.execute("INSERT INTO a SELECT value, 0 FROM generate_series(1, 50)").unwrap();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    // Their sum is zero after each.
                    db.execute("UPDATE a SET v = v + CASE WHEN id % 2 = 0 THEN 1 ELSE -1 END").unwrap();
                }
            });
            for n in 0..5 {
                let to = directory.path().join(format!("copy{n}"));
                db.execute(&format!("BACKUP TO '{}'", to.display())).unwrap();
                let copy = Database::open(&to).unwrap();
                assert_eq!(number(&copy, "SELECT sum(v) AS n FROM a"), 0);
                assert_sound(&copy);
            }
            done.store(true, Ordering::SeqCst);
        });
    });
}

#[test]
fn the_command_line_restores_a_backup_and_refuses_what_is_none() {
    let directory = tempfile::tempdir().unwrap();
    let restore = |from: &str, to: &str, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rowkeydb"));
        command
            .arg("restore")
            .args([directory.path().join(from), directory.path().join(to)])
            .args(more)
            .output()
            .unwrap()
    };
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id INT PRIMARY KEY)").unwrap();
    db.execute("INSERT INTO t VALUES (1), (2)").unwrap();
    db.backup(directory.path().join("backup")).unwrap();
    assert!(restore("backup", "db", &[]).status.success());
    assert!(restore("backup", "lsm", &["--engine", "lsm"]).status.success());
    for (name, engine) in [("db", Engine::Lmdb), ("lsm", Engine::Lsm)] {
        let restored = Database::open(directory.path().join(name)).unwrap();
        assert_eq!(restored.engine(), Some(engine));
        assert_eq!(number(&restored, "SELECT count(*) AS n FROM t"), 2);
    }
    for (from, to) in [("nowhere", "new"), ("backup", "db")] {
        let output = restore(from, to, &[]);
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8(output.stderr).unwrap().contains("hint:"));
    }
    assert!(!directory.path().join("new").exists());
    let error = db.backup(directory.path().join("no/such/place")).unwrap_err();
    assert_eq!(error.kind(), Kind::Unavailable, "{error}");
}

/// Every type, names and texts that would break a careless script, numbers at the ends of their ranges.
const HOSTILE: &str = r#"
    CREATE TABLE "Select" (id BIGINT, "a ""b""" TEXT, s SMALLINT, i INT, r REAL, d DOUBLE, m DECIMAL(38, 10), v VARCHAR(9),
        raw VARBINARY, day DATE, ts TIMESTAMP, tz TIMESTAMPTZ, u UUID, j JSON, ok BOOLEAN DEFAULT true,
        n BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 5 INCREMENT BY 3), CONSTRAINT small CHECK (i < 2147483648),
        FAMILY f (j, raw) WITH (compression = 'lz4'), PRIMARY KEY (id DESC, rpad(v, 9, ' ')));
    CREATE UNIQUE INDEX "Index" ON "Select" (u) INCLUDE (day);
    CREATE INDEX part ON "Select" (ts DESC, "a ""b""") WHERE s > 0;
    INSERT INTO "Select" (id, v, "a ""b""", s, i, r, d, m, raw, day, ts, tz, u, j, ok) VALUES
        (9223372036854775807, 'max', 'it''s; -- "no" /* comment */', 32767, 2147483647, 3.4e38, 1.7976931348623157e308,
         9999999999999999999999999999.9999999999, X'00ff27', '9999-12-31', '2024-02-29 23:59:59.999999', '2024-02-29 12:00:00+02:00',
         '00112233-4455-6677-8899-aabbccddeeff', '{"a": [1, "it''s"]}', false),
        (-9223372036854775808, 'min', '', -32768, -2147483648, -3.4e38, 5e-324, -0.0000000001, X'', '0001-01-01', '0001-01-01',
         '1969-12-31 23:59:59.000001+00:00', NULL, 'null', NULL),
        (0, 'odd', E'line\nbreak\ttab\\ \\n' || chr(0) || '''', NULL, 0, 0.1, 'NaN', 0, X'5c', NULL, '1970-01-01', NULL, NULL, NULL, true),
        (1, 'inf', '$1 :name é 🦀', 1, 1, '-Infinity', 'Infinity', 1, NULL, '2000-01-01', NULL, NULL, NULL, '[]', true);
    DELETE FROM "Select" WHERE id = 1 AND v = 'never';
    CREATE TABLE empty (k INT PRIMARY KEY, gone INT, kept TEXT);
    ALTER TABLE empty DROP COLUMN gone;
    ALTER TABLE empty ADD COLUMN later BIGINT;
    CREATE TABLE many (k INT PRIMARY KEY, note TEXT);
    INSERT INTO many SELECT value, 'note ' || value FROM generate_series(1, 5000);
    CREATE VIEW zero (number) AS SELECT k FROM many WHERE k < 10;
    CREATE VIEW above AS SELECT number + 1 AS next FROM zero"#;

fn run(db: &Database, script: &str) {
    let mut splitter = Splitter::new();
    splitter.push(&format!("{script};"));
    while let Some(statement) = splitter.next_statement() {
        db.execute(&statement.text).unwrap_or_else(|e| panic!("{}", e.render(&statement.text)));
    }
}

fn dumped(db: &Database) -> String {
    let mut script = Vec::new();
    db.dump(&mut script).unwrap();
    String::from_utf8(script).unwrap()
}

#[test]
fn a_dump_orders_views_by_what_they_read_and_leaves_out_what_would_fail() {
    let store = Arc::new(MemoryStore::new());
    let open = || Database::over_store(Box::new(Arc::clone(&store))).unwrap();
    let db = open();
    run(
        &db,
        "CREATE TABLE t (id INT PRIMARY KEY, name TEXT);
         INSERT INTO t VALUES (1, 'x'), (2, 'x');
         CREATE VIEW z AS SELECT id AS b FROM t;
         CREATE VIEW b AS SELECT b FROM z;
         CREATE VIEW other AS SELECT id FROM t;
         CREATE VIEW lost AS SELECT id
           FROM other;
         CREATE VIEW lost_too AS SELECT * FROM lost",
    );
    drop(db);
    // As CREATE OR REPLACE did once: today it looks at the views above.
    let other =
        store.snapshot().unwrap().reader().unwrap().get(CATALOG, b"view/other").unwrap().unwrap().to_vec();
    let mut batch = WriteBatch::default();
    batch.put(
        CATALOG,
        "view/other",
        String::from_utf8(other).unwrap().replace("SELECT id", "SELECT name").into_bytes(),
    );
    store.commit(batch).unwrap();
    let db = open();
    db.execute("CREATE UNIQUE INDEX once ON t (name) WHERE id > 0\n OR id = 0").unwrap_err();
    let script = dumped(&db);
    for left_out in [
        "-- Broken, so left out:\n-- CREATE UNIQUE INDEX once ON t (name) WHERE id > 0\n--  OR id = 0;\n",
        "-- it cannot be read (there is no column \"id\"), so left out:\n-- CREATE VIEW lost AS SELECT id\n",
        "so left out:\n-- CREATE VIEW lost_too AS SELECT * FROM lost;\n",
    ] {
        assert!(script.contains(left_out), "{script}");
    }
    let again = Database::in_memory().unwrap();
    run(&again, &script);
    assert_eq!(rows(&again, "SELECT * FROM b ORDER BY b"), rows(&db, "SELECT * FROM b ORDER BY b"));
    let error = db.query("SELECT * FROM lost_too").unwrap_err();
    assert_eq!((error.what(), error.reason()), ("there is no column \"id\"", Some("in view \"lost\"")));
}

#[test]
fn a_dump_makes_the_same_database_again() {
    let db = Database::in_memory().unwrap();
    run(&db, HOSTILE);
    let script = dumped(&db);
    let again = Database::in_memory().unwrap();
    run(&again, &script);
    for sql in [
        r#"SELECT rowkey, * FROM "Select""#,
        r#"SELECT * FROM "Index""#,
        "SELECT * FROM part",
        "SELECT * FROM empty",
        "SELECT * FROM many",
        "SELECT * FROM above ORDER BY next",
        "SHOW INDEXES",
        "SHOW CREATE TABLE empty",
        "SHOW CREATE TABLE zero",
        r#"SHOW CREATE TABLE "Index""#,
    ] {
        assert_eq!(rows(&again, sql), rows(&db, sql), "{sql}\n{script}");
    }
    assert_sound(&again);
    for db in [&db, &again] {
        db.execute(r#"INSERT INTO "Select" (id, v) VALUES (77, 'next')"#).unwrap();
        assert_eq!(number(db, r#"SELECT n FROM "Select" WHERE id = 77"#), 17);
        assert!(
            db.execute(
                r#"INSERT INTO "Select" (id, v, u) VALUES (78, 'x', '00112233-4455-6677-8899-aabbccddeeff')"#
            )
            .is_err()
        );
    }
    // Another dump says the same, but for what was just added.
    again.execute(r#"DELETE FROM "Select" WHERE id = 77"#).unwrap();
    assert_eq!(dumped(&again).replace("START WITH 20", "START WITH 17"), script);
}
