//! UPDATE and DELETE of many rows, written in parts: the result must be the same as if written at once.

use std::thread;

use crate::engine::{CancelHandle, Database, Engine, Options, Session};
use crate::error::Kind;

/// More than fit into one part.
const ROWS: usize = 3000;

/// A database of each engine, and a table with families and indexes of all kinds.
fn databases() -> Vec<(tempfile::TempDir, Database)> {
    let engines = [None, Some(Engine::Lmdb), Some(Engine::Lsm)];
    let made = engines.into_iter().map(|engine| {
        let folder = tempfile::tempdir().unwrap();
        let db = match engine {
            None => Database::in_memory().unwrap(),
            Some(_) => {
                Database::open_with(folder.path().join("db"), Options { engine, ..Options::default() })
                    .unwrap()
            }
        };
        db.execute_batch(&format!(
            "CREATE TABLE t (id BIGINT, a INT NOT NULL, b INT, c TEXT, d TEXT, u BIGINT, FAMILY far (d),
                 CHECK (a < 1000000), PRIMARY KEY (md5_bucket(id, 4), reverse(lpad(id, 9))));
             CREATE INDEX t_by_a ON t (a, b DESC) INCLUDE (c);
             CREATE INDEX t_by_c ON t (upper(c)) WHERE b > 2;
             CREATE UNIQUE INDEX t_by_u ON t (u);
             INSERT INTO t SELECT value, value % 97, value % 7, 'c' || value % 13, 'far ' || value, value * 2
             FROM generate_series(1, {ROWS});"
        ))
        .unwrap();
        (folder, db)
    });
    made.collect()
}

fn rows(db: &Database) -> Vec<String> {
    let rows = db.query("SELECT rowkey, * FROM t ORDER BY id").unwrap();
    rows.map(|row| format!("{:?}", row.unwrap())).collect()
}

fn problems(db: &Database) -> u64 {
    db.execute("CHECK DATABASE").unwrap()
}

fn number(db: &Database, sql: &str) -> i64 {
    db.query(sql).unwrap().one().unwrap().get(0).unwrap()
}

/// Inside a transaction all rows are written at once, which serves as reference.
#[test]
fn what_is_written_in_parts_is_what_is_written_at_once() {
    let statements = [
        "UPDATE t SET a = a + 1, c = 'd' || b",
        "UPDATE t SET b = NULL, d = NULL WHERE id % 3 = 0",
        "UPDATE t SET d = 'near', b = 5",
        "UPDATE t SET u = u + 1",
        "UPDATE t SET c = other.c FROM (SELECT a AS b, max(c) AS c FROM t GROUP BY a) AS other WHERE t.a = other.b",
        "DELETE FROM t WHERE a % 2 = 0",
        "UPDATE t SET a = 7",
        "DELETE FROM t USING t AS other WHERE t.id = other.id + 1 AND other.id % 5 < 3",
        "DELETE FROM t WHERE id > 0",
    ];
    for ((_in_parts, in_parts), (_at_once, at_once)) in databases().into_iter().zip(databases()) {
        for sql in statements {
            let written = in_parts.execute(sql).unwrap();
            let expected = at_once.transaction(|tx| Ok(tx.execute(sql, &[])?.affected)).unwrap();
            assert_eq!(Some(written), expected, "{sql}");
            assert!(rows(&in_parts) == rows(&at_once), "{sql}");
            assert_eq!((problems(&in_parts), problems(&at_once)), (0, 0), "{sql}");
        }
        assert_eq!(number(&in_parts, "SELECT count(*) FROM t"), 0);
    }
}

#[test]
fn one_that_fails_or_is_stopped_in_the_middle_leaves_nothing() {
    for (_folder, db) in databases() {
        let before = rows(&db);
        let late = format!("UPDATE t SET a = CASE WHEN id = {ROWS} THEN 1000000 ELSE 8 END");
        assert_eq!(db.execute(&late).unwrap_err().what(), "check \"t_check_1\" does not hold");
        assert!(rows(&db) == before);

        let mut session = db.session();
        let cancel: CancelHandle = session.cancel_handle();
        session.on_progress(std::sync::Arc::new(move |progress| {
            assert_eq!((progress.label.as_str(), progress.total), ("changing rows", Some(ROWS as u64)));
            cancel.cancel();
        }));
        for sql in ["UPDATE t SET a = 9", "DELETE FROM t WHERE id > 0"] {
            let error = session.execute(sql, &[]).map(drop).unwrap_err();
            assert_eq!(error.kind(), Kind::Cancelled, "{error}");
            assert!(rows(&db) == before);
        }
        assert_eq!(problems(&db), 0);
        // Other writers are let in again.
        assert_eq!(db.execute("UPDATE t SET a = 9 WHERE id = 1").unwrap(), 1);
    }
}

#[test]
fn nothing_that_others_write_meanwhile_is_lost() {
    const TIMES: i64 = 3;
    for (_folder, db) in databases() {
        let before = number(&db, "SELECT sum(a) FROM t");
        thread::scope(|scope| {
            let all = || (0..TIMES).for_each(|_| assert!(db.execute("UPDATE t SET a = a + 1").is_ok()));
            let one = |id: i64| {
                let mut session: Session = db.session();
                for _ in 0..TIMES * 10 {
                    session.execute("UPDATE t SET a = a + 100 WHERE id = $1", &[id.into()]).unwrap();
                }
            };
            (0..2).for_each(|_| drop(scope.spawn(all)));
            (1..3).for_each(|id| drop(scope.spawn(move || one(id))));
        });
        let expected = before + 2 * TIMES * ROWS as i64 + 2 * TIMES * 10 * 100;
        assert_eq!(number(&db, "SELECT sum(a) FROM t"), expected);
        assert_eq!(problems(&db), 0);
    }
}
