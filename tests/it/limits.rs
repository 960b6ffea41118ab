//! Long statements end when they are told to.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use arrow::array::AsArray;
use arrow::datatypes::Int32Type;
use rowkeydb::{Database, Kind};

/// Rows of `t`: more than a walk looks at before it lets go, of every bucket.
const ROWS: i64 = 150_000;

/// Three buckets, and a column behind the one that orders them.
fn bucketed() -> Database {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id INT, a INT, b INT, PRIMARY KEY (id % 3, a, b, id))").unwrap();
    let rows = format!(
        "INSERT INTO t SELECT value, value / 100, value * 7919 % 1000 FROM generate_series(0, {})",
        ROWS - 1
    );
    db.execute(&rows).unwrap();
    db
}

#[test]
fn a_merged_walk_that_passes_over_many_entries_loses_none_and_can_be_stopped() {
    let db = bucketed();
    let ids = |sql: &str| -> Vec<i64> {
        db.query(sql).unwrap().map(|row| row.unwrap().get::<i64>("id").unwrap()).collect()
    };
    let plan: Vec<String> = db
        .query("EXPLAIN SELECT id FROM t WHERE b = 77 ORDER BY a, b, id")
        .unwrap()
        .map(|row| row.unwrap().get("plan").unwrap())
        .collect();
    assert!(plan[0].starts_with("SkipScan t"), "{plan:?}");
    for b in [77, 1000] {
        let mut expected: Vec<i64> = (0..ROWS).filter(|id| id * 7919 % 1000 == b).collect();
        assert_eq!(ids(&format!("SELECT id FROM t WHERE b = {b} ORDER BY a, b, id")), expected);
        expected.reverse();
        assert_eq!(
            ids(&format!("SELECT id FROM t WHERE b = {b} ORDER BY a DESC, b DESC, id DESC")),
            expected
        );
    }
    let mut session = db.session();
    let cancel = session.cancel_handle();
    let sql = "SELECT id FROM t WHERE b = 1000 ORDER BY a, b, id";
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        // A request is for the statement that runs, and may come between two.
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(2));
                cancel.cancel();
            }
        });
        let run =
            |_| session.query(sql, &[]).and_then(|rows| rows.collect::<rowkeydb::Result<Vec<_>>>()).err();
        let error = (0..1000).find_map(run);
        is_over.store(true, Ordering::SeqCst);
        assert_eq!(error.expect("one of them was cancelled").kind(), Kind::Cancelled);
    });
}

/// Joins which have read both sides never wait for anything, and make rows without end.
#[test]
fn a_join_that_makes_rows_without_end_can_be_stopped() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT, s TEXT)").unwrap();
    db.execute("INSERT INTO t SELECT value, value % 10, 's' FROM generate_series(1, 3000)").unwrap();
    let mut session = db.session();
    session.execute("SET statement_timeout = '50ms'", &[]).unwrap();
    for sql in [
        "SELECT a.n, count(*) FROM t a, t b, t c GROUP BY a.n",
        "SELECT count(*) FROM t a, t b, t c WHERE a.s || b.s LIKE '%x%'",
        "SELECT max(b.id) FROM t a JOIN t b ON a.n = b.n JOIN t c ON b.n = c.n",
        "SELECT count(*) FROM t a JOIN t b ON a.n < b.n JOIN t c ON b.id <> c.id",
    ] {
        let ended = session.query(sql, &[]).and_then(|rows| rows.collect::<rowkeydb::Result<Vec<_>>>());
        assert_eq!(ended.unwrap_err().kind(), Kind::Cancelled, "{sql}");
    }
}

/// What comes too late to stop a statement stops nothing: it said once that nothing was written.
#[test]
fn a_write_that_is_timed_out_wrote_nothing_and_one_that_wrote_is_not() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT)").unwrap();
    db.execute("INSERT INTO t SELECT value, 0 FROM generate_series(1, 5000)").unwrap();
    let sum =
        || db.query("SELECT sum(n) AS n FROM t").unwrap().next().unwrap().unwrap().get::<i64>("n").unwrap();
    let (mut done, mut stopped) = (0, 0);
    for wait_ms in (0..200).step_by(5) {
        // A new one: what sets the next time has to end in the one before.
        let mut session = db.session();
        session.execute(&format!("SET statement_timeout = '{}ms'", wait_ms + 1), &[]).unwrap();
        let outcome = session.execute("UPDATE t SET n = n + 1", &[]);
        // The rows of the answer are read as the shell does.
        let read = outcome.and_then(|outcome| {
            thread::sleep(Duration::from_millis(2));
            outcome.rows.collect::<rowkeydb::Result<Vec<_>>>()
        });
        match read {
            Ok(_) => done += 1,
            Err(e) => {
                assert_eq!(e.kind(), Kind::Cancelled, "{e}");
                stopped += 1;
            }
        }
        assert_eq!(sum(), done * 5000, "{stopped} stopped");
    }
    assert!(stopped > 0, "none was stopped");
}

#[test]
fn a_statement_that_needs_more_memory_than_it_may_take_says_what_it_reads() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, note TEXT)").unwrap();
    db.execute("INSERT INTO t SELECT value, repeat('x', 50) || value FROM generate_series(1, 20000)")
        .unwrap();
    let mut session = db.session();
    session.execute("SET memory_limit = '256KB'", &[]).unwrap();
    let sql = "SELECT count(DISTINCT note) AS n FROM t";
    let error =
        session.query(sql, &[]).and_then(|rows| rows.collect::<rowkeydb::Result<Vec<_>>>()).unwrap_err();
    assert_eq!((error.kind(), error.sqlstate()), (Kind::Unavailable, "53200"));
    assert!(error.reason().unwrap().contains("the plan is FullScan t "), "{error}");
    session.execute("RESET memory_limit", &[]).unwrap();
    assert_eq!(session.query(sql, &[]).unwrap().count(), 1);
}

#[test]
fn long_values_come_in_batches_of_some_megabytes() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, k INT, note TEXT)").unwrap();
    db.execute("CREATE INDEX t_k ON t (k)").unwrap();
    for first in [1, 101] {
        let rows = format!(
            "INSERT INTO t SELECT v, v * 7 % 200, repeat('x', 500000) FROM generate_series({first}, {}) s(v)",
            first + 99
        );
        db.execute(&rows).unwrap();
    }
    let (plain, of_index) = ("SELECT id, note FROM t", "SELECT /*+ INDEX(t_k) */ id, note FROM t");
    for (sql, plan) in [
        (plain.to_owned(), "FullScan t"),
        (format!("{plain} ORDER BY id DESC"), "FullScan t reverse=true"),
        (format!("{of_index} WHERE k >= 0"), "IndexScan t_k"),
        (format!("{of_index} WHERE k >= 0 ORDER BY k"), "IndexScan t_k"),
        (format!("{of_index} WHERE k >= 0 AND note LIKE '%xx' ORDER BY k LIMIT 1000"), "IndexScan t_k"),
        (
            format!(
                "{plain} WHERE id IN ({})",
                (1..201).map(|n| n.to_string()).collect::<Vec<_>>().join(", ")
            ),
            "MultiGet t",
        ),
    ] {
        let text: String =
            db.query(&format!("EXPLAIN {sql}")).unwrap().next().unwrap().unwrap().get("plan").unwrap();
        assert!(text.starts_with(plan), "{sql:.60}: {text:.60}");
        let mut ids: Vec<i32> = Vec::new();
        for batch in db.query(&sql).unwrap().batches() {
            let batch = batch.unwrap();
            // Together with the first of them 63 others are read, at the most.
            assert!(batch.num_rows() <= 34 + 64, "{sql:.60}: {} rows", batch.num_rows());
            ids.extend(batch.column(0).as_primitive::<Int32Type>().values());
        }
        if sql.contains("ORDER BY k") {
            let order: Vec<i32> = ids.iter().map(|id| id * 7 % 200).collect();
            assert!(order.is_sorted(), "{sql:.60}: {order:?}");
        }
        ids.sort_unstable();
        assert_eq!(ids, (1..201).collect::<Vec<_>>(), "{sql:.60}");
        // One by one, too.
        let rows = db.query(&sql).unwrap().map(|row| row.unwrap().get::<String>("note").unwrap().len());
        assert!(rows.eq([500_000; 200]), "{sql:.60}");
    }
}

/// Several threads read the larger side of the outer join, which itself joins two tables. They have to wait for the keys
/// that the few rows of the smaller side tell: this fails if one of them reads everything.
#[test]
fn threads_below_a_join_read_what_its_smaller_side_tells() {
    let db = Database::in_memory().unwrap();
    for sql in [
        "CREATE TABLE b (id BIGINT PRIMARY KEY, c BIGINT)",
        "CREATE INDEX b_by_c ON b (c)",
        "CREATE TABLE t (f BIGINT, s BIGINT, b BIGINT, PRIMARY KEY (f, s))",
        "CREATE INDEX t_by_b ON t (b)",
        "CREATE TABLE f (id BIGINT PRIMARY KEY, d BIGINT)",
        "INSERT INTO b SELECT value, value % 10000 FROM generate_series(1, 30000)",
        "INSERT INTO t SELECT value % 30000, value, value % 30000 + 1 FROM generate_series(1, 60000)",
        "INSERT INTO f SELECT value, value % 1000 FROM generate_series(0, 30000)",
    ] {
        db.execute(sql).unwrap();
    }
    let mut session = db.session();
    session.execute("SET max_full_scan_rows = 40000", &[]).unwrap();
    let sql = "SELECT b.id FROM b WHERE b.c = 17 AND EXISTS (SELECT 1 FROM t JOIN f ON f.id = t.f + 0 WHERE t.b = b.id)";
    for _ in 0..5 {
        let rows = session.query(sql, &[]).and_then(|rows| rows.collect::<rowkeydb::Result<Vec<_>>>());
        assert_eq!(rows.unwrap().len(), 3);
    }
}
