//! Foreign keys: the same statements as in SQLite have the same end, and no row is left without its parent by writers
//! who do not wait for each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rowkeydb::{Database, Kind, Session};

use crate::dice::{Dice, setting};
use crate::engines::over_each_store;

/// What may become of a child.
const ACTIONS: [&str; 4] = ["", " ON DELETE CASCADE", " ON DELETE SET NULL", " ON DELETE SET DEFAULT"];

const TABLES: [&str; 6] = ["p", "c", "g", "t", "q", "r"];

/// When a foreign key is checked.
const TIMES: [&str; 3] = ["", " DEFERRABLE", " DEFERRABLE INITIALLY DEFERRED"];

/// Parents with a UNIQUE column, children, children of these, a tree, and a key of two columns.
fn definitions(dice: &mut Dice) -> Vec<String> {
    let mut action = || format!("{}{}", dice.pick(&ACTIONS.each_ref()), dice.pick(&TIMES.each_ref()));
    vec![
        "CREATE TABLE p (id INT PRIMARY KEY, u INT UNIQUE)".into(),
        format!(
            "CREATE TABLE c (id INT PRIMARY KEY, p INT DEFAULT 2 REFERENCES p{}, u INT REFERENCES p (u){})",
            action(),
            action()
        ),
        format!("CREATE TABLE g (id INT PRIMARY KEY, c INT DEFAULT 1 REFERENCES c{})", action()),
        format!("CREATE TABLE t (id INT PRIMARY KEY, up INT REFERENCES t{})", action()),
        "CREATE TABLE q (a INT, b INT, PRIMARY KEY (a, b))".into(),
        format!(
            "CREATE TABLE r (id INT PRIMARY KEY, a INT, b INT DEFAULT 1, FOREIGN KEY (a, b) REFERENCES q (a, b){})",
            action()
        ),
    ]
}

/// A statement that both databases know, and that does not depend on the order of rows.
fn statement(dice: &mut Dice) -> String {
    let mut n = || dice.below(7);
    let (a, b, c, d) = (n(), n(), n(), n());
    let null_or = |n: usize| if n == 0 { "NULL".to_owned() } else { n.to_string() };
    let values = match dice.below(6) {
        0 => ("p", format!("({a}, {0}), ({b}, {1})", null_or(c), null_or(d))),
        1 => ("c", format!("({a}, {}, NULL), ({b}, {}, {})", null_or(c), null_or(d), null_or(a))),
        2 => ("g", format!("({a}, {}), ({b}, {})", null_or(c), null_or(d))),
        3 => ("t", format!("({a}, {}), ({b}, {})", null_or(c), null_or(d))),
        4 => ("q", format!("({a}, {b}), ({c}, {d})")),
        _ => ("r", format!("({a}, {}, {}), ({b}, {c}, {d})", null_or(c), null_or(d))),
    };
    let table = *dice.pick(&TABLES.each_ref());
    let (key, column) = match table {
        "p" => ("id", "u"),
        "c" => ("id", *dice.pick(&[&"p", &"u"])),
        "g" => ("id", "c"),
        "t" => ("id", "up"),
        "q" => ("a", "b"),
        _ => ("id", *dice.pick(&[&"a", &"b"])),
    };
    match dice.below(10) {
        0..=2 => format!("INSERT INTO {} VALUES {}", values.0, values.1),
        3 => format!("INSERT INTO {} VALUES {} ON CONFLICT DO NOTHING", values.0, values.1),
        4 if values.0 == "c" => {
            format!("INSERT INTO c VALUES ({a}, {b}, NULL) ON CONFLICT (id) DO UPDATE SET p = excluded.p")
        }
        4 if values.0 == "p" => {
            format!("INSERT INTO p VALUES ({a}, {b}) ON CONFLICT (id) DO UPDATE SET u = excluded.u")
        }
        5 if table != "q" => format!("UPDATE {table} SET {column} = {} WHERE {key} = {b}", null_or(a)),
        6 if table != "q" && table != "p" => format!("UPDATE {table} SET {column} = {a} WHERE {key} > {b}"),
        7 => format!("DELETE FROM {table} WHERE {key} IN ({a}, {b}, {c})"),
        8 if a == 0 => format!("DELETE FROM {table}"),
        _ => format!("DELETE FROM {table} WHERE {key} = {a}"),
    }
}

fn theirs(sqlite: &rusqlite::Connection, table: &str) -> Vec<String> {
    let mut query = sqlite.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2")).unwrap();
    let columns = query.column_count();
    let row = |row: &rusqlite::Row<'_>| {
        let values = (0..columns).map(|at| row.get::<_, Option<i64>>(at).unwrap());
        Ok(format!("{:?}", values.collect::<Vec<_>>()))
    };
    query.query_map([], row).unwrap().map(Result::unwrap).collect()
}

fn ours(session: &mut Session, table: &str) -> Vec<String> {
    let rows = session.query(&format!("SELECT * FROM {table} ORDER BY 1, 2"), &[]).unwrap();
    rows.map(|row| {
        let row = row.unwrap();
        let columns = row.values().unwrap().len();
        format!("{:?}", (0..columns).map(|at| row.get::<Option<i64>>(at).unwrap()).collect::<Vec<_>>())
    })
    .collect()
}

/// More of them: `FOREIGN_KEYS=200 FOREIGN_KEYS_SEED=7`.
#[test]
fn statements_end_as_in_sqlite() {
    let seed = setting("FOREIGN_KEYS_SEED", 1);
    for n in 0..setting("FOREIGN_KEYS", 40) {
        let mut dice = Dice::new(seed, n);
        let sqlite = rusqlite::Connection::open_in_memory().unwrap();
        sqlite.execute_batch("PRAGMA foreign_keys = ON").unwrap();
        let mut session = Database::in_memory().unwrap().session();
        let mut history = definitions(&mut dice);
        for sql in &history {
            sqlite.execute_batch(sql).unwrap();
            session.execute(sql, &[]).unwrap_or_else(|e| panic!("{sql}: {e}"));
        }
        if dice.chance(50) {
            session.execute("CREATE INDEX ON c (p DESC)", &[]).unwrap();
            session.execute("CREATE INDEX ON g (c % 4, c)", &[]).unwrap();
            session.execute("CREATE INDEX ON r (b, a)", &[]).unwrap();
        }
        let mut in_transaction = false;
        for _ in 0..60 {
            let sql = match dice.below(12) {
                0 if in_transaction => "COMMIT".to_owned(),
                1 if in_transaction => "ROLLBACK".to_owned(),
                0 | 1 => "BEGIN".to_owned(),
                _ => statement(&mut dice),
            };
            history.push(sql.clone());
            let (their, our) = (sqlite.execute_batch(&sql), session.execute(&sql, &[]));
            let told = || {
                format!("seed {seed}, run {n}:\n{};\nSQLite: {their:?}\nhere: {our:?}", history.join(";\n"))
            };
            assert_eq!(their.is_ok(), our.is_ok(), "{}", told());
            // A COMMIT that is refused leaves the transaction open.
            in_transaction = match sql.as_str() {
                "BEGIN" => true,
                "COMMIT" | "ROLLBACK" if our.is_ok() => false,
                _ => in_transaction,
            };
            for table in TABLES {
                assert_eq!(theirs(&sqlite, table), ours(&mut session, table), "{table} after {}", told());
            }
        }
        if in_transaction && session.execute("COMMIT", &[]).is_err() {
            session.execute("ROLLBACK", &[]).unwrap();
        }
        let checked = session.execute("CHECK DATABASE", &[]).unwrap();
        assert_eq!(checked.affected, Some(0), "{}", history.join(";\n"));
    }
}

#[test]
fn writers_beside_each_other_leave_no_child_alone() {
    over_each_store(|db| {
        db.execute_batch(
            "CREATE TABLE p (id INT, u INT UNIQUE, PRIMARY KEY (reverse(lpad(id, 4))));
             CREATE TABLE c (id BIGINT PRIMARY KEY, p INT REFERENCES p, u INT REFERENCES p (u) ON DELETE CASCADE);
             CREATE INDEX ON c (u)",
        )
        .unwrap();
        let run = |sql: &str| {
            if let Err(e) = db.execute(sql) {
                let may_be = ["23503", "23505"].contains(&e.sqlstate()) || e.kind() == Kind::Conflict;
                assert!(may_be, "{sql}: {e}");
            }
        };
        thread::scope(|scope| {
            for n in 0..6 {
                scope.spawn(move || {
                    let mut dice = Dice::new(3, n);
                    for at in 0..60 {
                        let (p, id) = (dice.below(5), 1000 * n + at);
                        match dice.below(6) {
                            0 | 1 => run(&format!("INSERT INTO p VALUES ({p}, {p})")),
                            2 => run(&format!("DELETE FROM p WHERE id = {p}")),
                            3 => run(&format!("INSERT INTO c VALUES ({id}, {p}, NULL)")),
                            4 => run(&format!("INSERT INTO c VALUES ({id}, NULL, {p})")),
                            _ => run(&format!("DELETE FROM c WHERE p = {p}")),
                        }
                    }
                });
            }
        });
        let problems: Vec<String> = db
            .query("CHECK DATABASE")
            .unwrap()
            .map(|row| row.unwrap().get::<String>("problem").unwrap())
            .collect();
        assert_eq!(problems, ["summary"]);
    });
}

/// Ends the threads that wait for it, also when a test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_foreign_key_holds_from_the_moment_it_is_added_whoever_writes_meanwhile() {
    over_each_store(|db| {
        db.execute_batch(
            "CREATE TABLE p (id INT PRIMARY KEY);
             CREATE TABLE c (id BIGINT PRIMARY KEY, p INT);
             CREATE INDEX ON c (p)",
        )
        .unwrap();
        let is_over = AtomicBool::new(false);
        let writer = &|n: u64| {
            let mut dice = Dice::new(4, n);
            while !is_over.load(Ordering::Relaxed) {
                let p = dice.below(40);
                // Without the key, rows come without their parents now and then.
                let sql = match dice.below(40) {
                    0 => format!("DELETE FROM p WHERE id = {p}"),
                    1..20 => format!("INSERT INTO p VALUES ({p}) ON CONFLICT DO NOTHING"),
                    _ => format!("UPSERT INTO c VALUES ({}, {p})", dice.below(50)),
                };
                if let Err(e) = db.execute(&sql) {
                    assert!(e.sqlstate() == "23503" || e.kind() == Kind::Conflict, "{sql}: {e}");
                }
            }
        };
        let mut held = 0;
        thread::scope(|scope| {
            let _over = Over(&is_over);
            for n in 0..3 {
                scope.spawn(move || writer(n));
            }
            for _ in 0..setting("FOREIGN_KEYS", 40) {
                match db.execute("ALTER TABLE c ADD CONSTRAINT k FOREIGN KEY (p) REFERENCES p") {
                    Err(e) => assert_eq!(e.sqlstate(), "23503", "{e}"),
                    Ok(_) => {
                        thread::sleep(Duration::from_millis(2));
                        assert_eq!(db.session().execute("CHECK TABLE c", &[]).unwrap().affected, Some(0));
                        db.execute("ALTER TABLE c DROP CONSTRAINT k").unwrap();
                        held += 1;
                    }
                }
                db.execute("DELETE FROM c WHERE NOT EXISTS (SELECT 1 FROM p WHERE p.id = c.p)").unwrap();
            }
        });
        assert!(held > 0);
    });
}

#[test]
fn files_are_loaded_in_any_order_and_rows_without_a_parent_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, rows: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, rows).unwrap();
        path.to_str().unwrap().to_owned()
    };
    over_each_store(|db| {
        db.execute_batch(
            "CREATE TABLE p (id INT PRIMARY KEY);
             CREATE TABLE c (id INT PRIMARY KEY, p INT REFERENCES p, v INT);
             CREATE TABLE tree (id INT PRIMARY KEY, up INT REFERENCES tree);
             INSERT INTO p VALUES (1), (2)",
        )
        .unwrap();
        let told = |sql: &str| db.execute(sql).unwrap_err().what().to_owned();
        let children = file("c.csv", "id,p,v\n1,1,0\n2,,0\n3,7,0\n4,2,0\n");
        let refused = told(&format!("COPY c FROM '{children}'"));
        assert!(refused.ends_with("c.csv: line 4: table \"p\" has no row with id = 7"), "{refused}");
        let loaded =
            db.session().execute(&format!("COPY c FROM '{children}' WITH (ON_ERROR skip)"), &[]).unwrap();
        assert_eq!((loaded.affected, loaded.warnings.len()), (Some(3), 1));
        db.execute(&format!("COPY tree FROM '{}'", file("up.csv", "id,up\n3,2\n2,1\n1,\n4,4\n"))).unwrap();
        let lost = format!("COPY tree FROM '{}'", file("lost.csv", "id,up\n5,6\n6,9\n"));
        assert!(told(&lost).ends_with("lost.csv: table \"tree\" has no row with id = 9"));
        // A table of a million rows or so, at once.
        db.execute("INSERT INTO p SELECT v FROM generate_series(3, 9000) g(v)").unwrap();
        db.execute("INSERT INTO c SELECT v + 10, v, 0 FROM generate_series(3, 9000) g(v)").unwrap();
        let many = "INSERT INTO c SELECT v + 9100, v, 0 FROM generate_series(3, 9001) g(v)";
        assert_eq!(told(many), "table \"p\" has no row with id = 9001");
        db.execute("UPDATE c SET p = p + 1 WHERE p BETWEEN 3 AND 8999").unwrap();
        assert_eq!(told("UPDATE c SET p = p + 1"), "table \"p\" has no row with id = 9001");
        assert_eq!(told("DELETE FROM p"), "rows of \"c\" refer to id = 1 of \"p\"");
        assert_eq!(db.execute("DELETE FROM p WHERE id = 3").unwrap(), 1);
        db.execute("DELETE FROM c").unwrap();
        assert_eq!(db.execute("DELETE FROM p").unwrap(), 8999);
        assert_eq!(db.session().execute("CHECK DATABASE", &[]).unwrap().affected, Some(0));
    });
}

#[test]
fn a_dump_brings_them_back() {
    let db = Database::in_memory().unwrap();
    db.execute_batch(
        "CREATE TABLE b (id INT PRIMARY KEY, u TEXT, a INT);
         CREATE TABLE a (id INT PRIMARY KEY, b INT REFERENCES b ON DELETE SET NULL, u TEXT);
         CREATE UNIQUE INDEX ON b (reverse(u));
         INSERT INTO b VALUES (1, 'x', 1);
         INSERT INTO a VALUES (1, 1, 'x'), (2, NULL, NULL);
         ALTER TABLE b ADD CONSTRAINT back FOREIGN KEY (a) REFERENCES a DEFERRABLE INITIALLY DEFERRED;
         ALTER TABLE a ADD FOREIGN KEY (u) REFERENCES b (u) ON DELETE CASCADE",
    )
    .unwrap();
    let dumped = |db: &Database| {
        let mut script = Vec::new();
        db.dump(&mut script).unwrap();
        String::from_utf8(script).unwrap()
    };
    let again = Database::in_memory().unwrap();
    again.execute_batch(&dumped(&db)).unwrap();
    assert_eq!(dumped(&again), dumped(&db));
    assert_eq!(again.execute("DELETE FROM a WHERE id = 1").unwrap_err().sqlstate(), "23503");
    assert_eq!(again.definitions(None).unwrap(), db.definitions(None).unwrap());
}

/// It keeps its entries until it has the new ones: nobody writes a key twice meanwhile, and whoever stops it loses nothing.
#[test]
fn repair_leaves_no_gap_in_a_unique_index() {
    over_each_store(|db| {
        db.execute_batch(
            "CREATE TABLE p (id INT PRIMARY KEY, a INT UNIQUE);
             INSERT INTO p SELECT value, value FROM generate_series(1, 2000);
             CREATE TABLE c (id INT PRIMARY KEY, a INT REFERENCES p (a));
             INSERT INTO c VALUES (1, 7)",
        )
        .unwrap();
        let mut session = db.session();
        let cancel = session.cancel_handle();
        session.on_progress(Arc::new(move |progress| {
            if progress.label.starts_with("building") {
                cancel.cancel();
            }
        }));
        assert_eq!(session.execute("REPAIR INDEX p_a_key", &[]).unwrap_err().kind(), Kind::Cancelled);
        for _ in 0..2 {
            let twice = db.execute("INSERT INTO p VALUES (3000, 7)").unwrap_err();
            assert_eq!(twice.sqlstate(), "23505", "{twice}");
            db.execute("DELETE FROM c").unwrap();
            db.execute("INSERT INTO c VALUES (1, 7), (2, 2000)").unwrap();
            assert_eq!(db.session().execute("CHECK DATABASE", &[]).unwrap().affected, Some(0));
            db.execute("REPAIR INDEX p_a_key").unwrap();
        }
    });
}
