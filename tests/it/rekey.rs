//! ALTER TABLE REKEY while others read and write: what they see, what they may do, and what is there in the end.
//!
//! Others act when the statement reports how far it is: after each step, and between its stages.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rowkeydb::{Database, Error, Kind};

fn number(db: &Database, sql: &str) -> i64 {
    db.query(sql).unwrap().next().unwrap().unwrap().get("n").unwrap()
}

/// Rows and index entries agree.
fn check(db: &Database) {
    let rows = db.query("CHECK DATABASE").unwrap().map(|row| row.unwrap());
    let found = rows.filter(|row| row.get::<String>("problem").unwrap() != "summary");
    let found: Vec<String> = found.map(|row| row.get("detail").unwrap()).collect();
    assert_eq!(found, [""; 0]);
}

/// Runs `sql`, and `other` after each report of progress, with its number and the label.
fn while_running(
    db: &Database,
    sql: &str,
    other: impl Fn(&Database, usize, &str) + Send + Sync + 'static,
) -> Result<(), Error> {
    let (reports, beside) = (AtomicUsize::new(0), db.clone());
    let mut session = db.session();
    session.on_progress(Arc::new(move |progress| {
        other(&beside, reports.fetch_add(1, Ordering::Relaxed), &progress.label);
    }));
    session.execute(sql, &[]).map(drop)
}

/// Another writer, in the way of nothing but what is done beside all writers: from then on steps are locked.
fn disturb(db: &Database, n: usize) {
    db.execute(&format!("CREATE VIEW beside_{n} AS SELECT 1 AS one")).unwrap();
}

/// Reports of a REKEY that nobody disturbs: the beginning and the end of the keys, of the rows, and a comparison.
const QUIET: usize = 5;

/// Reports of one that is disturbed: two steps more each.
const DISTURBED: usize = 9;

/// Rows enough for three locked steps: 512, 1024, and the rest.
const ROWS: i64 = 2000;

fn filled() -> Database {
    filled_by(", PRIMARY KEY (id)")
}

fn filled_by(key: &str) -> Database {
    let db = Database::in_memory().unwrap();
    for sql in [
        &format!(
            "CREATE TABLE t (id BIGINT, a INT NOT NULL, b INT, note TEXT, FAMILY n (note) WITH (compression = 'lz4'){key})"
        ),
        "CREATE INDEX by_a ON t (a, id DESC) INCLUDE (b)",
        "CREATE UNIQUE INDEX by_note ON t (note) WHERE b IS NOT NULL",
        &format!(
            "INSERT INTO t SELECT value, value % 7, value, 'n' || value FROM generate_series(1, {ROWS})"
        ),
    ] {
        db.execute(sql).unwrap();
    }
    db
}

fn shown(db: &Database) -> Vec<String> {
    let rows = db.query("SELECT * FROM t ORDER BY id").unwrap();
    rows.map(|row| {
        let row = row.unwrap();
        ["id", "a", "b", "note"].map(|column| row.value(column).unwrap().to_string()).join(" ")
    })
    .collect()
}

#[test]
fn whatever_is_written_meanwhile_is_there_in_the_end() {
    let layouts =
        ["reverse(lpad(id, 8))", "a, id", "random(4), id", "md5_bucket(id, 3), a DESC, id", "note", "b DESC"];
    let changes = layouts.map(|layout| (", PRIMARY KEY (id)", format!("REKEY ({layout})")));
    let added = ["reverse(lpad(id, 8))", "b DESC"].map(|layout| ("", format!("ADD PRIMARY KEY ({layout})")));
    for (key, change) in changes.into_iter().chain(added) {
        let (db, twin) = (filled_by(key), filled_by(key));
        let write = |db: &Database, n: usize| {
            for sql in [
                // Rows at both ends and in the middle: before and behind where the steps are.
                format!(
                    "UPDATE t SET a = a + 1, note = note || '!' WHERE id IN ({}, {}, {})",
                    n + 1,
                    700 + n,
                    1990 - n
                ),
                format!("DELETE FROM t WHERE id IN ({}, {}, {})", n + 20, 800 + n, 1970 - n),
                format!(
                    "INSERT INTO t VALUES ({n}0000, {n}, {n}0000, 'new {n}'), ({n}0001, 1, {n}0001, '-{n}')"
                ),
                // Half of the row's values move, but not its key.
                format!("UPDATE t SET b = -b WHERE id = {}", 900 + n),
                // More rows than a batch is made for.
                format!(
                    "INSERT INTO t SELECT value, 3, value, 'load ' || value FROM generate_series({n}100000, {n}100020)"
                ),
            ] {
                db.execute(&sql).unwrap_or_else(|e| panic!("{}", e.render(&sql)));
            }
        };
        let last = Arc::new(AtomicUsize::new(0));
        let (reports, rekey) = (Arc::clone(&last), format!("ALTER TABLE t {change}"));
        while_running(&db, &rekey, move |db, n, _| {
            write(db, n + 1);
            reports.store(n + 1, Ordering::Relaxed);
        })
        .unwrap();
        let reports = last.load(Ordering::Relaxed);
        assert_eq!(reports, DISTURBED);
        (1..=reports).for_each(|n| write(&twin, n));
        assert_eq!(shown(&db), shown(&twin), "{change}");
        assert_eq!(
            number(&db, "SELECT count(*) AS n FROM t WHERE a = 3"),
            number(&twin, "SELECT count(*) AS n FROM t WHERE a = 3")
        );
        check(&db);
    }
}

#[test]
fn a_row_that_is_left_out_does_not_take_anothers_entry_with_it() {
    let db = filled();
    db.execute("UPDATE t SET note = 'same' WHERE id = 1 AND b IS NOT NULL").unwrap();
    db.execute("UPDATE t SET b = NULL, note = 'same' WHERE id = 1990").unwrap();
    // Row 1 has its entry after the first step; row 1990, which would share it, is not reached.
    while_running(&db, "CREATE UNIQUE INDEX late ON t (note)", |db, n, _| match n {
        0 => disturb(db, n),
        1 => assert_eq!(db.execute("DELETE FROM t WHERE id = 1990").unwrap(), 1),
        _ => {}
    })
    .unwrap();
    check(&db);
    assert_eq!(number(&db, "SELECT /*+ INDEX(late) */ id AS n FROM t WHERE note = 'same'"), 1);
    let (db, layout) = (filled(), "ALTER TABLE t REKEY (b)");
    db.execute("UPDATE t SET b = 1 WHERE id = 1990").unwrap();
    while_running(&db, layout, |db, n, _| match n {
        0 => disturb(db, n),
        1 => assert_eq!(db.execute("DELETE FROM t WHERE id = 1990").unwrap(), 1),
        _ => {}
    })
    .unwrap();
    assert_eq!(number(&db, "SELECT id AS n FROM t WHERE b = 1"), 1);
    check(&db);
}

#[test]
fn rows_left_out_before_a_truncate_are_forgotten() {
    for build in ["CREATE UNIQUE INDEX late ON t (note)", "ALTER TABLE t REKEY (note)"] {
        let db = filled();
        db.execute("UPDATE t SET b = NULL, note = 'same' WHERE id < 3").unwrap();
        // The first step leaves one of the two rows out.
        while_running(&db, build, |db, n, _| match n {
            0 => disturb(db, n),
            1 => {
                db.execute("TRUNCATE TABLE t").unwrap();
                db.execute("INSERT INTO t VALUES (77, 1, 2, 'after')").unwrap();
            }
            _ => {}
        })
        .unwrap_or_else(|e| panic!("{build}: {e}"));
        assert_eq!(shown(&db), ["77 1 2 after"]);
        let broken = db.query("SHOW INDEXES").unwrap().filter_map(|row| {
            let state: String = row.unwrap().get("state").unwrap();
            (state != "Ready").then_some(state)
        });
        assert_eq!(broken.collect::<Vec<_>>(), [""; 0], "{build}");
        check(&db);
    }
}

#[test]
fn rows_that_the_next_layout_cannot_hold_are_refused_meanwhile() {
    let db = filled();
    let refused = Arc::new(Mutex::new(Vec::new()));
    let errors = Arc::clone(&refused);
    while_running(&db, "ALTER TABLE t REKEY (lpad(b, 6))", move |db, n, label| {
        if n == 0 {
            // No row has its next key yet.
            return;
        }
        for sql in [
            "INSERT INTO t VALUES (9000, 1, 5, 'x')",
            "UPDATE t SET b = NULL WHERE id = 3",
            "UPDATE t SET b = -1 WHERE id = 3",
        ] {
            errors.lock().unwrap().push(format!("{label}: {}", db.execute(sql).unwrap_err()));
        }
    })
    .unwrap();
    let refused = refused.lock().unwrap();
    assert_eq!(refused.len(), 3 * (QUIET - 1));
    assert!(refused[0].contains("keys: error: rowkey 000005 is taken in the next layout"), "{}", refused[0]);
    let last = &refused[3 * (QUIET - 1) - 1];
    assert!(last.contains("comparing") && last.contains("digits only"), "{last}");
    // What is refused at last is what is always refused.
    assert_eq!(number(&db, "SELECT count(*) AS n FROM t"), ROWS);
    check(&db);
}

/// The next rowkey of a row fits, but makes an index entry too long, which only the copying of the rows finds out.
#[test]
fn a_row_whose_entries_do_not_fit_can_be_deleted_meanwhile() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, a TEXT, b TEXT NOT NULL)").unwrap();
    db.execute("CREATE INDEX by_a ON t (a)").unwrap();
    db.execute("INSERT INTO t SELECT value, repeat('a', 1500), repeat('b', 1500) || value FROM generate_series(1, 3)")
        .unwrap();
    let error = while_running(&db, "ALTER TABLE t REKEY (b)", |db, _, label| {
        if label.ends_with(": rows") {
            assert_eq!(db.execute("UPDATE t SET a = 'a' WHERE id = 1").unwrap(), 1);
            assert_eq!(db.execute("DELETE FROM t WHERE id = 2").unwrap(), 1);
            assert_eq!(db.execute("UPDATE t SET a = 'b' WHERE id = 3").unwrap(), 1);
            db.execute("ALTER TABLE t REKEY CANCEL").unwrap();
        }
    });
    assert_eq!(error.unwrap_err().kind(), Kind::Cancelled);
    assert_eq!(number(&db, "SELECT count(*) AS n FROM t"), 2);
    check(&db);
    db.execute("ALTER TABLE t REKEY (b)").unwrap();
    check(&db);
}

#[test]
fn definitions_stay_while_it_runs_and_another_one_waits() {
    let db = filled();
    db.execute_batch("CREATE TABLE u (id INT PRIMARY KEY); ALTER TABLE t ADD COLUMN u INT REFERENCES u")
        .unwrap();
    let seen = Arc::new(Mutex::new(0));
    let times = Arc::clone(&seen);
    while_running(&db, "ALTER TABLE t REKEY (a, id)", move |db, _, _| {
        for sql in [
            "ALTER TABLE t REKEY (b, id)",
            "ALTER TABLE u REKEY (id DESC)",
            "ALTER TABLE t ADD COLUMN more INT",
            "ALTER TABLE t RENAME TO s",
            "CREATE INDEX more ON t (b)",
            "DROP INDEX by_a",
            "REPAIR INDEX by_a",
            "DROP TABLE u CASCADE",
        ] {
            let error = db.execute(sql).unwrap_err();
            assert_eq!((error.kind(), error.sqlstate()), (Kind::Unavailable, "55000"), "{sql}: {error}");
        }
        assert_eq!(texts_of_plan(db), "Get t keys=1 [5 <- id=5] families=[default, n]");
        *times.lock().unwrap() += 1;
    })
    .unwrap();
    assert_eq!(*seen.lock().unwrap(), QUIET);
    db.execute("ALTER TABLE t ADD COLUMN more INT").unwrap();
    check(&db);
}

/// How a row is found by its number.
fn texts_of_plan(db: &Database) -> String {
    let plan = db.query("EXPLAIN SELECT * FROM t WHERE id = 5").unwrap();
    plan.map(|line| line.unwrap().get::<String>("plan").unwrap()).next().unwrap()
}

#[test]
fn cancelled_dropped_or_stopped_it_leaves_the_table_as_it_was() {
    let rekey = "ALTER TABLE t REKEY (reverse(lpad(id, 8)))";
    let quiet = (0..QUIET).map(|at| (at, false));
    for (at, disturbed) in quiet.chain((0..DISTURBED).map(|at| (at, true))) {
        let disturb = move |db: &Database, n: usize| {
            if disturbed {
                disturb(db, n);
            }
        };
        let db = filled();
        let before = shown(&db);
        let cancelled = while_running(&db, rekey, move |db, n, _| {
            disturb(db, n);
            if n == at {
                db.execute("ALTER TABLE t REKEY CANCEL").unwrap();
            }
        });
        assert_eq!(cancelled.unwrap_err().kind(), Kind::Cancelled, "{at}");
        assert_eq!(shown(&db), before);
        check(&db);
        // Its place is free, and nothing of it is left that would be taken for the next one's.
        db.execute(rekey).unwrap();
        assert_eq!(shown(&db), before);
        check(&db);

        let db = filled();
        let dropped = while_running(&db, rekey, move |db, n, _| {
            disturb(db, n);
            if n == at {
                db.execute("DROP TABLE t").unwrap();
            }
        });
        assert!(dropped.is_err());
        assert!(!db.table_names().contains(&"t".to_owned()));

        let db = filled();
        let mut session = db.session();
        let (handle, reports, beside) = (session.cancel_handle(), AtomicUsize::new(0), db.clone());
        session.on_progress(Arc::new(move |_| {
            disturb(&beside, reports.load(Ordering::Relaxed));
            if reports.fetch_add(1, Ordering::Relaxed) == at {
                handle.cancel();
            }
        }));
        // The last steps are over before anybody looks.
        if let Err(e) = session.execute(rekey, &[]) {
            assert_eq!(e.kind(), Kind::Cancelled);
            db.execute("ALTER TABLE t ADD COLUMN more INT").unwrap();
        }
        assert_eq!(shown(&db), before);
        check(&db);

        let db = filled();
        while_running(&db, rekey, move |db, n, _| {
            disturb(db, n);
            if n == at {
                db.execute("TRUNCATE TABLE t").unwrap();
                db.execute("INSERT INTO t VALUES (77, 1, 2, 'after')").unwrap();
            }
        })
        .unwrap();
        assert_eq!(shown(&db), ["77 1 2 after"]);
        check(&db);
    }
}

#[test]
fn a_handle_of_before_loads_into_the_next_table_too() {
    let db = filled();
    let handle = db.table("t").unwrap();
    let rekey = "ALTER TABLE t REKEY (reverse(lpad(id, 8)))";
    while_running(&db, rekey, move |_, n, _| {
        let id = ROWS + 1 + n as i64;
        // Behind the last step the rows lie elsewhere.
        match handle.load([vec![id.into(), 1.into(), id.into(), format!("n{id}").into()]]) {
            Ok(loaded) => assert_eq!(loaded, 1),
            Err(e) => assert_eq!(e.kind(), Kind::Conflict),
        }
    })
    .unwrap();
    assert!(number(&db, "SELECT count(*) AS n FROM t") > ROWS);
    check(&db);
}

#[test]
fn an_index_includes_what_it_was_declared_to_whichever_the_rowkey() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id INT, a INT, b INT, c INT, d INT, PRIMARY KEY (a, id))").unwrap();
    db.execute("CREATE INDEX by_b ON t (b) INCLUDE (a, c)").unwrap();
    db.execute(
        "INSERT INTO t SELECT value, value % 7, value % 100, value, value FROM generate_series(1, 2000)",
    )
    .unwrap();
    let seen = || {
        let stored: String =
            db.query("SHOW INDEXES").unwrap().next().unwrap().unwrap().get("include").unwrap();
        let mut script = Vec::new();
        db.dump(&mut script).unwrap();
        let script = String::from_utf8(script).unwrap();
        assert!(script.contains("CREATE INDEX by_b ON t (b) INCLUDE (a, c);"), "{script}");
        let plan = db.query("EXPLAIN SELECT a, c, id FROM t WHERE b = 5").unwrap().next().unwrap().unwrap();
        assert!(plan.get::<String>("plan").unwrap().starts_with("IndexScan by_b"), "{plan:?}");
        assert_eq!(number(&db, "SELECT sum(a) AS n FROM t WHERE b = 5"), 60);
        check(&db);
        stored
    };
    assert_eq!(seen(), "c");
    for (layout, stored) in [("id", "a, c"), ("c, id", "a"), ("d, id, a", "c"), ("a, id", "c")] {
        db.execute(&format!("ALTER TABLE t REKEY ({layout})")).unwrap();
        assert_eq!(seen(), stored, "{layout}");
    }
}

#[test]
fn sessions_plans_and_handles_notice_the_switch() {
    let db = filled();
    let mut session = db.session();
    let one = "SELECT note AS t FROM t WHERE id = 5";
    let ask = |session: &mut rowkeydb::Session| -> usize {
        let outcome = session.execute(one, &[]).unwrap();
        outcome.rows.map(|batch| batch.unwrap().num_rows()).sum()
    };
    // By a plan that is kept.
    (0..3).for_each(|_| assert_eq!(ask(&mut session), 1));
    let (handle, mut prepared) = (db.table("t").unwrap(), db.prepare(one).unwrap());
    let mut reading = db.session();
    reading.execute("BEGIN READ ONLY", &[]).unwrap();
    let mut writing = db.session();
    for sql in ["BEGIN", "UPDATE t SET a = 100 WHERE id = 5"] {
        writing.execute(sql, &[]).unwrap();
    }
    db.execute("ALTER TABLE t REKEY (reverse(lpad(id, 8)))").unwrap();
    assert_eq!(ask(&mut session), 1);
    assert_eq!(prepared.query(&[]).unwrap().count(), 1);
    assert_eq!(handle.get("x").unwrap_err().kind(), Kind::Conflict);
    assert!(db.table("t").unwrap().get("50000000").unwrap().is_some());
    // A snapshot is what it was; a transaction that wrote by the old layout has to begin anew.
    assert_eq!(ask(&mut reading), 1);
    assert_eq!(writing.execute("COMMIT", &[]).unwrap_err().kind(), Kind::Conflict);
    assert_eq!(number(&db, "SELECT a AS n FROM t WHERE id = 5"), 5);
    check(&db);
}
