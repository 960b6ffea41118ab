//! Changes of definitions, beside open transactions above all: those that touched its table lose, the others do not
//! notice.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rowkeydb::{Database, Kind};

use crate::crash::problems;
use crate::engines::over_each_store;

const SCHEMA: [&str; 9] = [
    "CREATE TABLE t (id INT, n INT, s TEXT, spare INT, PRIMARY KEY (lpad(id, 4)))",
    "CREATE INDEX by_n ON t (n)",
    "CREATE INDEX by_s ON t (s) INCLUDE (n)",
    "INSERT INTO t SELECT value, value % 3, 's' || value FROM generate_series(1, 20)",
    "CREATE TABLE other (id INT PRIMARY KEY, n INT, s TEXT, spare INT)",
    "INSERT INTO other VALUES (1, 1, 'one')",
    "CREATE INDEX others ON other (n)",
    "CREATE VIEW seen AS SELECT n FROM t WHERE id < 3",
    "CREATE VIEW unseen AS SELECT n FROM other",
];

/// Changes of `{t}`, one of whose indexes is `{i}`.
const CHANGES: [&str; 16] = [
    "ALTER TABLE {t} ADD COLUMN more INT",
    "ALTER TABLE {t} ADD COLUMN more INT NOT NULL DEFAULT 7",
    "ALTER TABLE {t} ADD CHECK (id > 0)",
    "ALTER TABLE {t} ALTER COLUMN id SET DEFAULT 7",
    "ALTER TABLE {t} ALTER COLUMN spare DROP NOT NULL",
    "ALTER TABLE {t} DROP COLUMN spare",
    "ALTER TABLE {t} RENAME COLUMN spare TO rest",
    "ALTER TABLE {t} RENAME TO renamed",
    "ALTER TABLE {t} SPLIT AT ('5')",
    "ALTER TABLE {t} REKEY (n, id)",
    "CREATE INDEX later ON {t} (n DESC, id)",
    "CREATE UNIQUE INDEX later ON {t} (s, id)",
    "DROP INDEX {i}",
    "REPAIR INDEX {i}",
    "TRUNCATE TABLE {t}",
    "DROP TABLE {t}",
];

/// What a transaction may do to be one that touched `t`; it writes into `log` in any case.
const TOUCHES: [&str; 8] = [
    "INSERT INTO t VALUES (100, 1, 'new')",
    "UPSERT INTO t VALUES (5, 7, 'over')",
    "UPDATE t SET n = n + 1 WHERE id = 3",
    "DELETE FROM t WHERE n = 1",
    "INSERT INTO log SELECT id, 'read' FROM t WHERE id BETWEEN 2 AND 4",
    "INSERT INTO log SELECT n, 'counted' FROM (SELECT count(*) AS n FROM t)",
    "INSERT INTO log SELECT DISTINCT n, 'through an index' FROM t WHERE s >= 's1' AND s < 's2'",
    "INSERT INTO log SELECT DISTINCT n, 'through a view' FROM seen",
];

fn prepared(db: &Database) {
    drop_views(db);
    for name in db.table_names() {
        db.execute(&format!("DROP TABLE {name}")).unwrap();
    }
    db.execute("CREATE TABLE log (n INT PRIMARY KEY, what TEXT)").unwrap();
    for sql in SCHEMA {
        db.execute(sql).unwrap();
    }
}

fn drop_views(db: &Database) {
    for view in ["seen", "unseen"] {
        db.execute(&format!("DROP VIEW IF EXISTS {view}")).unwrap();
    }
}

/// A view of the table would not work any more.
fn is_refused_below_a_view(change: &str) -> bool {
    change.starts_with("DROP TABLE") || change.contains("RENAME TO")
}

/// How a transaction ends that does `touch`, if definitions change before it commits.
fn beside(db: &Database, touch: &str, change: &str) -> rowkeydb::Result<()> {
    if is_refused_below_a_view(change) {
        assert_eq!(db.execute(change).unwrap_err().sqlstate(), "2BP01", "{change}");
        drop_views(db);
    }
    let mut transaction = db.begin().unwrap();
    transaction.execute("INSERT INTO log VALUES (-1, 'begun')", &[]).unwrap();
    transaction.execute(touch, &[]).unwrap_or_else(|e| panic!("{}", e.render(touch)));
    db.execute(change).unwrap_or_else(|e| panic!("{}", e.render(change)));
    let committed = transaction.execute("COMMIT", &[]).map(drop);
    assert_eq!(problems(db), [""; 0], "{touch}; {change}");
    let logged = db.query("SELECT n FROM log").unwrap().count();
    assert_eq!(logged > 0, committed.is_ok(), "{touch}; {change}");
    committed
}

#[test]
fn whoever_touched_a_table_loses_to_a_change_of_its_definition() {
    over_each_store(|db| {
        for (n, touch) in TOUCHES.iter().enumerate() {
            for (m, change) in CHANGES.iter().enumerate() {
                // On the disk each of both once, in memory each pair.
                if db.engine().is_some() && m % TOUCHES.len() != n {
                    continue;
                }
                if touch.contains("seen") && is_refused_below_a_view(change) {
                    continue;
                }
                prepared(&db);
                let error = beside(&db, touch, &change.replace("{t}", "t").replace("{i}", "by_n"));
                assert_eq!(error.unwrap_err().kind(), Kind::Conflict, "{touch}; {change}");
            }
        }
    });
}

#[test]
fn whoever_did_not_touch_it_does_not_notice() {
    over_each_store(|db| {
        let elsewhere = ["CREATE TABLE fresh (id INT PRIMARY KEY)", "ANALYZE other", "ANALYZE t"];
        let changes = CHANGES.iter().map(|change| change.replace("{t}", "other").replace("{i}", "others"));
        for (n, change) in changes.chain(elsewhere.map(str::to_owned)).enumerate() {
            prepared(&db);
            beside(&db, TOUCHES[n % (TOUCHES.len() - 1)], &change)
                .unwrap_or_else(|e| panic!("{change}: {e}"));
        }
    });
}

#[test]
fn a_change_of_a_view_is_one_for_everybody() {
    let db = Database::in_memory().unwrap();
    for change in [
        "CREATE OR REPLACE VIEW unseen AS SELECT 1 AS n",
        "DROP VIEW unseen",
        "CREATE VIEW later AS SELECT 1 AS n",
    ] {
        prepared(&db);
        let error = beside(&db, TOUCHES[0], change);
        assert_eq!(error.unwrap_err().kind(), Kind::Conflict, "{change}");
    }
}

/// A DEFAULT that waits for other DDL was checked against the column of before.
#[test]
fn a_default_fits_the_type_that_its_column_has_by_then() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, c TEXT)").unwrap();
    db.execute("INSERT INTO t VALUES (1, '7')").unwrap();
    let (mut session, beside, waiting) = (db.session(), db.clone(), Arc::new(Mutex::new(None)));
    let waits = Arc::clone(&waiting);
    // Reports come while other DDL waits.
    session.on_progress(Arc::new(move |_| {
        waits.lock().unwrap().get_or_insert_with(|| {
            let db = beside.clone();
            let other = thread::spawn(move || db.execute("ALTER TABLE t ALTER c SET DEFAULT 'abc'"));
            thread::sleep(Duration::from_millis(100));
            other
        });
    }));
    session.execute("ALTER TABLE t ALTER c TYPE INT USING CAST(c AS INT)", &[]).unwrap();
    let other = waiting.lock().unwrap().take().unwrap();
    assert!(other.join().unwrap().is_err());
    db.execute("INSERT INTO t (id) VALUES (2)").unwrap();
}

/// A load is one step, and reads its file or its query before it takes it.
#[test]
fn loads_go_on_beside_changes_of_other_tables_and_miss_none_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let csv = directory.path().join("rows.csv");
    let rows: String = (100..30_000).map(|id| format!("{id},{},s{id}\n", id % 7)).collect();
    std::fs::write(&csv, format!("id,n,s\n{rows}")).unwrap();
    let db = Database::in_memory().unwrap();
    for round in 0..4 {
        prepared(&db);
        let load = match round % 2 {
            0 => format!("COPY other FROM '{}'", csv.display()),
            _ => "INSERT INTO other SELECT value, value % 7, 's' FROM generate_series(100, 29999)".into(),
        };
        std::thread::scope(|scope| {
            let loading = scope.spawn(|| db.execute(&load));
            for n in 0..20 {
                db.execute(&format!("CREATE INDEX i{n} ON t (n, s)")).unwrap();
                if n == 7 {
                    // Before the load, behind it, or it begins anew.
                    db.execute("CREATE INDEX later ON other (s, n)").unwrap();
                }
            }
            assert_eq!(loading.join().unwrap().unwrap(), 29_900);
        });
        assert_eq!(problems(&db), [""; 0]);
    }
}

#[test]
fn nobody_waits_for_a_split_that_looks_at_the_rows_and_it_can_be_stopped() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id INT PRIMARY KEY)").unwrap();
    db.execute("INSERT INTO t SELECT value FROM generate_series(1, 10000)").unwrap();
    let mut session = db.session();
    let (cancel, beside) = (session.cancel_handle(), db.clone());
    session.on_progress(Arc::new(move |progress| {
        if progress.label == "splitting t" {
            beside.execute("INSERT INTO t VALUES (0) ON CONFLICT DO NOTHING").unwrap();
            cancel.cancel();
        }
    }));
    let stopped = session.execute("ALTER TABLE t SPLIT INTO 4 FROM DATA", &[]).unwrap_err();
    assert_eq!(stopped.kind(), Kind::Cancelled, "{stopped}");
    assert_eq!(db.query("SHOW REGIONS FROM t").unwrap().count(), 1);
}

#[test]
fn regions_by_data_are_even_however_often_the_rows_were_written() {
    over_each_store(|db| {
        db.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT)").unwrap();
        db.execute("INSERT INTO t SELECT value, 0 FROM generate_series(1, 400)").unwrap();
        for _ in 0..3 {
            db.execute("UPDATE t SET n = n + 1").unwrap();
        }
        db.execute("ALTER TABLE t SPLIT INTO 4 FROM DATA").unwrap();
        let rows = db.query("SHOW REGIONS FROM t").unwrap().map(|row| row.unwrap().get("rows"));
        assert_eq!(rows.collect::<rowkeydb::Result<Vec<i64>>>().unwrap(), [100; 4]);
    });
}

#[test]
fn names_that_the_engine_gives_can_be_written_again() {
    let db = Database::in_memory().unwrap();
    for name in ["t".repeat(124), "表".repeat(40)] {
        db.execute(&format!(
            "CREATE TABLE \"{name}\" (id INT PRIMARY KEY, a INT UNIQUE, CHECK (a > 0), CHECK (id > 0))"
        ))
        .unwrap();
        let shown = db.query(&format!("SHOW CREATE TABLE \"{name}\"")).unwrap().one().unwrap();
        let again = Database::in_memory().unwrap();
        again.execute_batch(&shown.get::<String>(1).unwrap()).unwrap();
    }
}
