//! Many threads, one database: nothing is lost, no index drifts.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arrow::array::AsArray;
use arrow::datatypes::{Int32Type, Int64Type};
use rowkeydb::{Database, Kind, Session};

use crate::dice::{Dice, setting};
use crate::engines::over_each_store;

const THREADS: i64 = 8;
const ROUNDS: i64 = 25;

fn number(db: &Database, sql: &str) -> i64 {
    db.query(sql).unwrap().next().unwrap().unwrap().get("n").unwrap()
}

fn problems(db: &Database, table: &str) -> Vec<String> {
    let rows = db.query(&format!("CHECK TABLE {table}")).unwrap();
    let rows = rows.map(|row| row.unwrap()).filter(|row| row.get::<String>("problem").unwrap() != "summary");
    rows.map(|row| row.get::<String>("detail").unwrap()).collect()
}

#[test]
fn counters_are_atomic() {
    over_each_store(|db| {
        db.execute("CREATE TABLE t (id INT PRIMARY KEY, hits BIGINT)").unwrap();
        db.execute("CREATE INDEX by_hits ON t (hits DESC)").unwrap();
        db.execute("INSERT INTO t VALUES (1, 0), (2, 0)").unwrap();
        thread::scope(|scope| {
            for n in 0..THREADS {
                let db = db.clone();
                scope.spawn(move || {
                    for _ in 0..ROUNDS {
                        db.execute(&format!("UPDATE t SET hits = hits + 1 WHERE id = {}", n % 2 + 1))
                            .unwrap();
                    }
                });
            }
        });
        assert_eq!(number(&db, "SELECT sum(hits) AS n FROM t"), THREADS * ROUNDS);
        assert_eq!(problems(&db, "t"), [""; 0]);
    });
}

/// Its queries come again and again, so their plans are kept, and must not read what others read.
#[test]
fn a_read_view_stays_as_it_was_for_every_thread() {
    let dir = tempfile::tempdir().unwrap();
    for db in [Database::in_memory().unwrap(), Database::open(dir.path().join("db")).unwrap()] {
        db.execute("CREATE TABLE t (id INT PRIMARY KEY, v BIGINT)").unwrap();
        db.execute("CREATE INDEX by_v ON t (v)").unwrap();
        db.execute("INSERT INTO t SELECT value, 1 FROM generate_series(1, 100)").unwrap();
        let (before, sum) = (db.read_view().unwrap(), "SELECT sum(v) AS n FROM t WHERE v >= 0");
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    db.execute("UPDATE t SET v = v + 1").unwrap();
                }
            });
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let row = before.query(sum).unwrap().next().unwrap().unwrap();
                        assert_eq!(row.get::<i64>("n").unwrap(), 100);
                        assert_eq!(number(&db, sum) % 100, 0);
                    }
                });
            }
        });
        assert_eq!(number(&db, sum), 100 * (1 + ROUNDS));
        assert_eq!(before.query("DELETE FROM t").unwrap_err().sqlstate(), "25006");
        db.execute("DROP TABLE t").unwrap();
        assert_eq!(before.query("SELECT * FROM t").unwrap().count(), 100);
    }
}

#[test]
fn traffic_is_counted_by_region() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT) SPLIT ON (100, 200)").unwrap();
    thread::scope(|scope| {
        for n in 0..THREADS {
            let db = db.clone();
            scope.spawn(move || {
                for i in 0..ROUNDS {
                    db.execute(&format!("INSERT INTO t VALUES ({}, 0)", n * ROUNDS + i)).unwrap();
                    db.query(&format!("SELECT v FROM t WHERE id = {}", n * ROUNDS)).unwrap().for_each(drop);
                }
            });
        }
    });
    let rows = db.query("SHOW TRAFFIC FROM t").unwrap().map(|row| row.unwrap());
    let counted = rows.map(|row| {
        let lately: String = row.get("writes_lately").unwrap();
        (row.get("reads").unwrap(), row.get("writes").unwrap(), lately.contains('█'))
    });
    let counted: Vec<(i64, i64, bool)> = counted.collect();
    assert_eq!(counted, [(100, 100, true), (100, 100, true), (0, 0, false)]);
}

#[test]
fn rows_written_during_an_analyze_are_counted() {
    over_each_store(|db| {
        db.execute("CREATE TABLE t (id INT PRIMARY KEY)").unwrap();
        db.execute("INSERT INTO t SELECT value FROM generate_series(1, 100)").unwrap();
        let (mut session, beside, id) = (db.session(), db.clone(), AtomicI64::new(1000));
        session.on_progress(Arc::new(move |_| {
            let id = id.fetch_add(1, Ordering::Relaxed);
            beside.execute(&format!("INSERT INTO t VALUES ({id})")).unwrap();
        }));
        session.execute("ANALYZE t", &[]).unwrap();
        let shown = db.query("SHOW TABLES").unwrap().next().unwrap().unwrap();
        let rows = number(&db, "SELECT count(*) AS n FROM t");
        assert!(rows > 100);
        assert_eq!(shown.get::<i64>("rows").unwrap(), rows);
    });
}

#[test]
fn a_unique_key_is_taken_once() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, email TEXT)").unwrap();
    db.execute("CREATE UNIQUE INDEX by_email ON t (email)").unwrap();
    let won: usize = thread::scope(|scope| {
        let tries: Vec<_> = (0..THREADS)
            .map(|n| {
                let db = db.clone();
                scope.spawn(move || {
                    (0..ROUNDS)
                        .filter(|i| {
                            db.execute(&format!("INSERT INTO t VALUES ({}, 'mail{i}')", n * 1000 + i)).is_ok()
                        })
                        .count()
                })
            })
            .collect();
        tries.into_iter().map(|t| t.join().unwrap()).sum()
    });
    assert_eq!(won as i64, ROUNDS);
    assert_eq!(number(&db, "SELECT count(*) AS n FROM t"), ROUNDS);
    assert_eq!(problems(&db, "t"), [""; 0]);
}

/// Once two have been in each other's way, they no longer are.
#[test]
fn numbers_are_reserved_for_writers_that_meet() {
    over_each_store(|db| {
        db.execute("CREATE TABLE t (id INT GENERATED BY DEFAULT AS IDENTITY, who TEXT, PRIMARY KEY (id))")
            .unwrap();
        let add = |session: &mut Session| -> i64 {
            let sql = "INSERT INTO t (who) VALUES ('somebody') RETURNING id";
            let rows = session.execute(sql, &[]).unwrap().rows.next().unwrap().unwrap();
            rows.column(0).as_primitive::<Int32Type>().value(0).into()
        };
        let last = |db: &Database| number(db, "SELECT max(id) AS n FROM t");
        let mut both = [db.session(), db.session()];
        let meet = |both: &mut [Session; 2]| {
            both.iter_mut().for_each(|session| drop(session.execute("BEGIN", &[]).unwrap()));
            let ids = both.each_mut().map(add);
            (ids, both.each_mut().map(|session| session.execute("COMMIT", &[]).map(drop)))
        };
        let (ids, [first, second]) = meet(&mut both);
        assert_eq!(ids, [1, 1]);
        first.unwrap();
        assert_eq!(second.unwrap_err().kind(), Kind::Conflict);
        // A machine that sleeps for a second in between has them meet once more.
        let meet_again = |both: &mut [Session; 2]| {
            let once = |both: &mut [Session; 2]| {
                let (ids, committed) = meet(both);
                committed.iter().all(Result::is_ok).then_some(ids)
            };
            (0..20).find_map(|_| once(both)).expect("they stay out of each other's way")
        };
        let ids = meet_again(&mut both);
        assert_eq!(ids[0] + 1, ids[1]);
        // What the block has left goes on, whoever else gives numbers.
        let next = add(&mut db.session());
        assert_eq!(next, ids[1] + 1);
        let given = next + 3;
        db.execute(&format!("INSERT INTO t VALUES ({given}, 'given'), ({}, 'too')", next + 2)).unwrap();
        let behind = add(&mut both[0]);
        assert!(behind > given, "{behind}");
        db.execute("INSERT INTO t VALUES (5000, 'far')").unwrap();
        assert_eq!(add(&mut both[1]), 5001);
        let ids = meet_again(&mut both);
        assert_ne!(ids[0], ids[1]);
        // RESTART counts from there, in its own transaction, too.
        both[0].execute("BEGIN", &[]).unwrap();
        both[0].execute("ALTER TABLE t ALTER COLUMN id RESTART WITH 9000", &[]).unwrap();
        assert_eq!(add(&mut both[0]), 9000);
        both[0].execute("COMMIT", &[]).unwrap();
        assert_eq!((add(&mut both[1]), last(&db)), (9001, 9001));
        assert_eq!(problems(&db, "t"), [""; 0]);
    });
}

#[test]
fn numbers_come_once_however_many_write() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = Database::open(&path).unwrap();
    db.execute_batch("CREATE TABLE t (id BIGSERIAL PRIMARY KEY, who INT); CREATE TABLE log (who INT)")
        .unwrap();
    thread::scope(|scope| {
        for n in 0..THREADS {
            let db = db.clone();
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    match n % 4 {
                        0 => db.execute("INSERT INTO t (who) VALUES (0), (0)").map(drop),
                        1 => db.transaction(|tx| {
                            tx.execute("INSERT INTO t (who) VALUES (1)", &[])?;
                            tx.execute("INSERT INTO log VALUES (1)", &[]).map(drop)
                        }),
                        2 => {
                            db.execute("INSERT INTO t (who) SELECT 2 FROM generate_series(1, 300)").map(drop)
                        }
                        // Numbers that another may have by now.
                        _ => {
                            let given = number(&db, "SELECT coalesce(max(id), 0) + 5 AS n FROM t");
                            let sql =
                                format!("INSERT INTO t VALUES ({}, 3) ON CONFLICT DO NOTHING", given + round);
                            db.execute(&sql).map(drop)
                        }
                    }
                    .unwrap();
                }
            });
        }
    });
    let last = number(&db, "SELECT max(id) AS n FROM t");
    let each = (0..3).map(|who| number(&db, &format!("SELECT count(*) AS n FROM t WHERE who = {who}")));
    assert_eq!(each.collect::<Vec<_>>(), [2, 1, 300].map(|rows| rows * 2 * ROUNDS));
    assert_eq!(number(&db, "SELECT count(*) AS n FROM log"), 2 * ROUNDS);
    assert_eq!([problems(&db, "t"), problems(&db, "log")], [[""; 0]; 2]);
    drop(db);
    let db = Database::open(&path).unwrap();
    db.execute("INSERT INTO t (who) VALUES (4)").unwrap();
    assert!(number(&db, "SELECT id AS n FROM t WHERE who = 4") > last);
}

#[test]
fn an_index_built_under_writes_misses_nothing() {
    over_each_store(|db| {
        db.execute("CREATE TABLE t (id INT, v INT, PRIMARY KEY (reverse(lpad(id, 6))))").unwrap();
        db.execute("INSERT INTO t SELECT value, value FROM generate_series(1, 2000)").unwrap();
        thread::scope(|scope| {
            for n in 0..3 {
                let db = db.clone();
                scope.spawn(move || {
                    for i in 0..40 {
                        let id = (i * 37 + n * 601) % 2000 + 1;
                        db.execute(&format!("UPDATE t SET v = v + 10000 WHERE id = {id}")).unwrap();
                        db.execute(&format!("UPSERT INTO t VALUES ({}, {i})", 3000 + n * 100 + i)).unwrap();
                        db.execute(&format!("DELETE FROM t WHERE id = {}", (id + 5) % 2000 + 1)).unwrap();
                    }
                });
            }
            db.execute("CREATE INDEX by_v ON t (v)").unwrap();
        });
        assert_eq!(problems(&db, "t"), [""; 0]);
        assert_eq!(number(&db, "SELECT count(*) AS n FROM by_v"), number(&db, "SELECT count(*) AS n FROM t"));
    });
}

#[test]
fn a_lost_race_in_a_transaction_is_a_conflict() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)").unwrap();
    db.execute("INSERT INTO t VALUES (1, 1)").unwrap();
    let mut first = db.begin().unwrap();
    first.execute("UPDATE t SET v = v + 1 WHERE id = 1", &[]).unwrap();
    db.execute("UPDATE t SET v = 100 WHERE id = 1").unwrap();
    assert_eq!(number(&db, "SELECT v AS n FROM t"), 100);
    let error = first.execute("COMMIT", &[]).unwrap_err();
    assert_eq!(error.kind(), Kind::Conflict);
    assert_eq!(number(&db, "SELECT v AS n FROM t"), 100);
}

#[test]
fn a_running_query_keeps_its_snapshot() {
    over_each_store(|db| {
        db.execute("CREATE TABLE t (id INT PRIMARY KEY)").unwrap();
        db.execute("INSERT INTO t SELECT value FROM generate_series(1, 20000)").unwrap();
        let mut rows = db.query("SELECT id FROM t").unwrap();
        let first: i32 = rows.next().unwrap().unwrap().get("id").unwrap();
        assert_eq!(first, 1);
        db.execute("DROP TABLE t").unwrap();
        assert_eq!(rows.count(), 19_999);
    });
}

/// The one row of a query of numbers.
fn sums(session: &mut Session, sql: &str) -> Vec<i64> {
    let batches: Vec<_> = session.execute(sql, &[]).unwrap().rows.map(|batch| batch.unwrap()).collect();
    let row = batches.iter().find(|batch| batch.num_rows() == 1).unwrap();
    row.columns().iter().map(|column| column.as_primitive::<Int64Type>().value(0)).collect()
}

#[test]
fn several_threads_share_a_long_scan_and_give_every_row_once() {
    over_each_store(|db| {
        db.execute("CREATE TABLE t (id BIGINT, note TEXT, n BIGINT, PRIMARY KEY (lpad(id, 12)))").unwrap();
        db.execute("CREATE INDEX by_n ON t (n) INCLUDE (note)").unwrap();
        db.execute("INSERT INTO t SELECT value, 'x', value % 7 FROM generate_series(1, 20000)").unwrap();
        let mut old = db.begin().unwrap();
        let whole = "SELECT count(*), count(note), sum(id), min(n), max(n) FROM t WHERE note = 'x'";
        let covered = "SELECT count(*), count(note) FROM t WHERE n < 7";
        assert_eq!(sums(&mut old, whole), [20_000, 20_000, 200_010_000, 0, 6]);
        // What others commit now does not show, though it ends the threads' ways of their own into the snapshot.
        db.execute("DELETE FROM t WHERE id > 10000").unwrap();
        assert_eq!(sums(&mut old, whole), [20_000, 20_000, 200_010_000, 0, 6]);
        assert_eq!(sums(&mut old, covered), [20_000, 20_000]);
        assert_eq!(sums(&mut old, "SELECT count(*) FROM t"), [20_000]);
        // Its own writes do.
        old.execute("UPDATE t SET note = 'y' WHERE id <= 5000", &[]).unwrap();
        old.execute("INSERT INTO t VALUES (20001, 'x', 8)", &[]).unwrap();
        assert_eq!(sums(&mut old, whole), [15_001, 15_001, 187_527_501, 0, 8]);
        assert_eq!(sums(&mut old, "SELECT count(*) FROM t"), [20_001]);
        assert_eq!(number(&db, "SELECT count(*) AS n FROM t"), 10_000);
    });
}

/// Runs of one plan at the same time: each reads the value of its own subquery.
#[test]
fn a_subquery_gives_each_run_its_own_value() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)").unwrap();
    db.execute("INSERT INTO t SELECT value, value % 10 FROM generate_series(1, 500)").unwrap();
    thread::scope(|scope| {
        for n in 0..THREADS {
            let db = db.clone();
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let most = 1 + (round * 37 + n * 101) % 500;
                    let last = format!("(SELECT max(id) FROM t WHERE id <= {most})");
                    assert_eq!(
                        number(&db, &format!("SELECT count(*) AS n FROM t WHERE id < {last}")),
                        most - 1
                    );
                    assert_eq!(number(&db, &format!("SELECT id AS n FROM t WHERE id = {last}")), most);
                    let sum = format!("(SELECT sum(v) FROM t WHERE id <= {most})");
                    let expected = (1..=most).map(|id| id % 10).sum::<i64>();
                    assert_eq!(
                        number(&db, &format!("SELECT {sum} + id AS n FROM t WHERE id = 3")),
                        expected + 3
                    );
                }
            });
        }
    });
}

/// The same of a recursive query, whose steps read what the step before gave, and of a join that looks rows up until
/// there are enough.
#[test]
fn a_recursive_query_and_a_lookup_read_their_own_run() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, g INT NOT NULL, v INT NOT NULL)").unwrap();
    db.execute("CREATE INDEX t_by ON t (g, v DESC)").unwrap();
    db.execute("INSERT INTO t SELECT value, value % 50, value FROM generate_series(1, 3000)").unwrap();
    thread::scope(|scope| {
        for n in 0..THREADS {
            let db = db.clone();
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let first = 1 + (round * 37 + n * 101) % 500;
                    let steps = format!(
                        "WITH RECURSIVE r(id, d) AS (SELECT CAST(id AS BIGINT), 0 FROM t WHERE id = {first} UNION ALL
                         SELECT t.id + 0, r.d + 1 FROM r JOIN t ON t.id = r.id + 7 WHERE r.d < 20) SELECT sum(id) AS n FROM r"
                    );
                    let expected = (0..=20).map(|d| first + 7 * d).sum::<i64>();
                    assert_eq!(number(&db, &steps), expected);
                    let newest = format!(
                        "SELECT sum(v) AS n FROM (SELECT b.v FROM t a JOIN t b ON b.g = a.g + 1 WHERE a.id = {first}
                         ORDER BY b.v DESC LIMIT 3) x"
                    );
                    let mut found: Vec<i64> = (1..=3000).filter(|v| v % 50 == first % 50 + 1).collect();
                    found.sort_by(|a, b| b.cmp(a));
                    if !found.is_empty() {
                        assert_eq!(number(&db, &newest), found.iter().take(3).sum::<i64>());
                    }
                }
            });
        }
    });
}

/// Rows expire all the time, are taken away by whoever meets them, and are written anew.
#[test]
fn rows_expire_while_others_write() {
    const LASTING: Duration = Duration::from_millis(2500);
    let count = |session: &mut Session, sql: &str| -> i64 {
        session.query(sql, &[]).unwrap().next().unwrap().unwrap().get(0).unwrap()
    };
    over_each_store(|db| {
        db.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT, n INT) WITH (ttl = '1 second')").unwrap();
        db.execute("CREATE UNIQUE INDEX by_v ON t (v)").unwrap();
        db.execute("CREATE INDEX by_n ON t (n DESC) INCLUDE (v)").unwrap();
        let began = Instant::now();
        thread::scope(|scope| {
            for writer in 0..4 {
                let (db, mut dice) = (&db, Dice::new(setting("EXPIRY_SEED", 1), writer));
                scope.spawn(move || {
                    while began.elapsed() < LASTING {
                        let (id, v) = (dice.below(40), dice.below(60));
                        let sql = match dice.below(6) {
                            0 | 1 => format!("INSERT INTO t VALUES ({id}, {v}, 0)"),
                            2 => format!("UPSERT INTO t (id, v) VALUES ({id}, {v})"),
                            3 => format!("UPDATE t SET v = {v} WHERE id = {id}"),
                            4 => format!("UPDATE t SET n = coalesce(n, 0) + 1 WHERE v < {v}"),
                            _ => "PURGE t".to_owned(),
                        };
                        match db.execute(&sql) {
                            Err(e) => {
                                assert!(e.sqlstate() == "23505" || e.kind() == Kind::Conflict, "{sql}: {e}")
                            }
                            Ok(_) => thread::sleep(Duration::from_millis(dice.below(30) as u64)),
                        }
                    }
                });
            }
            scope.spawn(|| {
                let mut session = db.session();
                while began.elapsed() < LASTING {
                    session.execute("BEGIN READ ONLY", &[]).unwrap();
                    let rows = count(&mut session, "SELECT /*+ FULL */ count(*) FROM t");
                    for index in ["by_v", "by_n"] {
                        thread::sleep(Duration::from_millis(10));
                        assert_eq!(count(&mut session, &format!("SELECT count(*) FROM {index}")), rows);
                    }
                    session.execute("COMMIT", &[]).unwrap();
                    assert_eq!(problems(&db, "t"), [""; 0]);
                }
            });
        });
        thread::sleep(Duration::from_millis(1100));
        assert_eq!(count(&mut db.session(), "SELECT count(*) FROM t"), 0);
        db.execute("PURGE").unwrap();
        let summary = db.query("CHECK TABLE t").unwrap().last().unwrap().unwrap();
        let summary: String = summary.get("detail").unwrap();
        assert!(summary.starts_with("0 problems, 0 rows and 0 index entries"), "{summary}");
    });
}
