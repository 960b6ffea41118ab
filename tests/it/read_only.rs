//! A database that is only read, by a process beside the one that writes it: what was acknowledged shows with the next
//! statement, whole, whatever happens to the writer, and nothing is written.
//!
//! Here the process of the tests reads, or writes, and the command does the other. `BESIDE_MILLIS` (default 3000) says
//! how long readers look at what changes.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rowkeydb::error::Kind;
use rowkeydb::{Database, Durability, Engine, Options, Row, Value};
use serde_json::{Value as Json, json};

use crate::crash::problems;
use crate::dice::{Dice, setting};

/// The command, which runs statements as they come.
struct Process {
    child: Child,
    statements: ChildStdin,
    results: BufReader<ChildStdout>,
}

impl Process {
    fn start(db: &Path, options: &[&str]) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rowkeydb"));
        command.args(["run", "--input", "jsonl", "--keep-going", "--db"]).arg(db).args(options).arg("-");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (statements, results) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Process { child, statements, results: BufReader::new(results) }
    }

    /// What one statement prints.
    fn ask(&mut self, sql: &str) -> Json {
        writeln!(self.statements, "{}", json!({ "sql": sql })).unwrap();
        let mut line = String::new();
        self.results.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"))
    }

    fn run(&mut self, sql: &str) {
        let result = self.ask(sql);
        assert!(result.get("error").is_none(), "{sql}: {result}");
    }

    fn rows(&mut self, sql: &str) -> Json {
        self.ask(sql)["rows"].take()
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Three numbers of the only row.
fn three(db: &Database, sql: &str) -> [i64; 3] {
    let row = db.query(sql).unwrap().next().unwrap().unwrap();
    [0, 1, 2].map(|n| row.get::<i64>(n).unwrap())
}

const TABLE: &str = "CREATE TABLE t (id INT, v INT, s TEXT, PRIMARY KEY (reverse(lpad(id, 7))))";
/// By the rows, by an index, and by what keyspaces say of themselves.
const SUMS: [&str; 3] = [
    "SELECT count(s), sum(id), sum(v) FROM t",
    "SELECT count(v), sum(id), sum(v) FROM t WHERE v >= 0",
    "SELECT count(*), (SELECT sum(id) FROM t), (SELECT sum(v) FROM t) FROM t",
];

/// Commits of all sizes, by the log and by the tree, definitions in between.
#[test]
fn what_was_acknowledged_shows_with_the_next_statement() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("db");
    let db = Database::open(&path).unwrap();
    db.execute(TABLE).unwrap();
    db.execute("CREATE INDEX by_v ON t (v) INCLUDE (id)").unwrap();
    let mut reader = Process::start(&path, &["--read-only"]);
    let (mut dice, mut last) = (Dice::new(1, 0), 0);
    for step in 0..40 {
        match dice.below(12) {
            0 => drop(db.execute("DELETE FROM t WHERE id % 3 = 0").unwrap()),
            1 => drop(db.execute("UPDATE t SET v = v + 1 WHERE id % 2 = 0").unwrap()),
            2 => drop(db.execute(&format!("CREATE TABLE t{step} (id INT PRIMARY KEY)")).unwrap()),
            3 => drop(db.execute(&format!("ALTER TABLE t ADD COLUMN c{step} INT DEFAULT {step}")).unwrap()),
            4 => thread::sleep(Duration::from_millis(250)),
            5 => drop(db.execute("REPAIR INDEX by_v").unwrap()),
            _ => {
                let rows = *[1, 1, 7, 300, 2000].get(dice.below(5)).unwrap();
                let series = format!("generate_series({}, {})", last + 1, last + rows);
                let sql =
                    format!("INSERT INTO t (id, v, s) SELECT value, value % 50, 'x' || value FROM {series}");
                db.execute(&sql).unwrap();
                last += rows;
            }
        }
        for sql in SUMS {
            let [count, ids, vs] =
                match three(&db, "SELECT count(*), coalesce(sum(id), 0), coalesce(sum(v), 0) FROM t") {
                    [0, ..] => continue,
                    sums => sums,
                };
            assert_eq!(reader.rows(sql), json!([[count, ids, vs]]), "{sql}, step {step}");
        }
        let mut tables = reader.rows("SHOW TABLES");
        let tables: Vec<_> = tables.as_array_mut().unwrap().iter_mut().map(|row| row[0].take()).collect();
        assert_eq!(tables, db.table_names());
    }
    assert!(last > 2000, "{last}");
    let refused = reader.ask("DELETE FROM t");
    assert_eq!(refused["error"]["sqlstate"], "25006");
    // Whoever is killed while it reads is forgotten.
    reader.kill();
    db.execute("DELETE FROM t").unwrap();
}

/// Amounts move between accounts, and their sum stays; so does what indexes say.
#[test]
fn readers_see_whole_transactions_beside_a_writer_who_is_killed_now_and_then() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("db");
    let mut writer = Process::start(&path, &[]);
    writer.run("CREATE TABLE a (id INT PRIMARY KEY, amount INT, pad TEXT)");
    writer.run("CREATE INDEX by_amount ON a (amount)");
    writer.run("INSERT INTO a SELECT value, 100, repeat('p', 500) FROM generate_series(1, 1000)");
    let reader = Database::open_read_only(&path).unwrap();
    let (done, until) =
        (AtomicBool::new(false), Instant::now() + Duration::from_millis(setting("BESIDE_MILLIS", 3000)));
    let looked = thread::scope(|scope| {
        let writer = &mut writer;
        let looks = [
            "SELECT count(*), sum(amount), count(pad) FROM a",
            "SELECT count(*), sum(amount), 1000 FROM a WHERE amount BETWEEN -100000 AND 100000",
        ]
        .map(|sql| {
            let (reader, done) = (&reader, &done);
            scope.spawn(move || {
                let mut looked = 0;
                while !done.load(Ordering::Relaxed) {
                    assert_eq!(three(reader, sql), [1000, 100_000, 1000], "{sql}");
                    looked += 1;
                }
                looked
            })
        });
        let mut dice = Dice::new(2, 0);
        while Instant::now() < until {
            let (from, to) = (dice.below(1000) + 1, dice.below(1000) + 1);
            let amount = dice.below(50);
            let many = if dice.chance(5) { 400 } else { 0 };
            writer.run("BEGIN");
            writer.run(&format!(
                "UPDATE a SET amount = amount - {amount} WHERE id BETWEEN {from} AND {from} + {many}"
            ));
            writer.run(&format!(
                "UPDATE a SET amount = amount + {amount} * (SELECT count(*) FROM a WHERE id BETWEEN {from} AND {from} + {many}) WHERE id = {to}"
            ));
            writer.run("COMMIT");
            if dice.chance(10) {
                writer.kill();
                *writer = Process::start(&path, &[]);
            }
        }
        done.store(true, Ordering::Relaxed);
        looks.map(|look| look.join().unwrap())
    });
    assert!(looked.iter().all(|looked| *looked > 5), "{looked:?}");
    assert_eq!(problems(&reader), [""; 0]);
    writer.kill();
    assert_eq!(three(&reader, "SELECT count(*), sum(amount), 0 FROM a"), [1000, 100_000, 0]);
}

/// One transaction, one moment; a view of it is there for as long as it is held.
#[test]
fn a_transaction_sees_one_moment_and_a_view_keeps_it() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("db");
    let mut writer = Process::start(&path, &[]);
    writer.run(TABLE);
    writer.run("INSERT INTO t VALUES (1, 1, 'a')");
    let reader = Database::open_read_only(&path).unwrap();
    assert!(reader.is_read_only());
    let mut session = reader.session();
    session.execute("BEGIN", &[]).unwrap();
    let count = |row: Row| row.get::<i64>(0).unwrap();
    let mut counted =
        || count(session.query("SELECT count(*) FROM t", &[]).unwrap().next().unwrap().unwrap());
    assert_eq!(counted(), 1);
    let view = reader.read_view().unwrap();
    for n in 0..40 {
        writer
            .run(&format!("UPSERT INTO t SELECT value, {n}, repeat('y', 900) FROM generate_series(1, 300)"));
        writer.run("ALTER TABLE t RENAME COLUMN s TO s1");
        writer.run("ALTER TABLE t RENAME COLUMN s1 TO s");
        assert_eq!(three(&reader, "SELECT count(*), min(v), max(v) FROM t"), [300, n, n]);
    }
    assert_eq!(counted(), 1);
    let held = view.query("SELECT id, v, 0 FROM t").unwrap().next().unwrap().unwrap();
    assert_eq!([0, 1].map(|n| held.get::<i64>(n).unwrap()), [1, 1]);
    writer.run("DROP TABLE t");
    assert_eq!(reader.table_names(), [""; 0]);
    assert_eq!(counted(), 1);
    session.execute("COMMIT", &[]).unwrap();
    assert!(reader.query("SELECT * FROM t").is_err());
}

/// Nobody writes, and nothing is written: neither by what was left in the log, nor where the folder of spills is.
#[test]
fn without_a_writer_all_that_it_left_is_there_and_stays_as_it_is() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("db");
    for options in [Options::default(), Options { durability: Durability::Relaxed, ..Options::default() }] {
        let db = Database::open_with(&path, options).unwrap();
        db.execute("CREATE TABLE IF NOT EXISTS n (n SERIAL PRIMARY KEY, at INT)").unwrap();
        for at in 0..20 {
            db.execute(&format!("INSERT INTO n (at) VALUES ({at})")).unwrap();
        }
        drop(db);
        let before = files(&path);
        let reader = Database::open_read_only(&path).unwrap();
        let rows = three(&reader, "SELECT count(*), max(n), max(at) FROM n");
        assert_eq!(rows[0], rows[1]);
        let mut session = reader.session();
        session.execute("SET memory_limit = '16MB'", &[]).unwrap();
        let sorted = session.query("SELECT at FROM n ORDER BY at + n", &[]).unwrap();
        assert_eq!(sorted.count() as i64, rows[0]);
        drop(session);
        for sql in [
            "INSERT INTO n (at) VALUES (1)",
            "CREATE TABLE m (id INT PRIMARY KEY)",
            "ANALYZE n",
            "TRUNCATE n",
        ] {
            assert_eq!(reader.execute(sql).unwrap_err().sqlstate(), "25006", "{sql}");
        }
        let loaded = reader.table("n").unwrap().load([vec![Value::Int(1), Value::Int(1)]]);
        assert_eq!(loaded.unwrap_err().sqlstate(), "25006");
        drop(reader);
        assert_eq!(files(&path), before);
    }
}

/// A machine that lost its power has an older mark of what was acknowledged than it should: all that is whole counts, as it
/// will for the next writer.
#[test]
fn what_the_log_alone_knows_of_is_read() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("db");
    let mark = path.join("log/acknowledged");
    let mut writer = Process::start(&path, &[]);
    writer.run("CREATE TABLE n (n INT PRIMARY KEY)");
    let older = std::fs::read(&mark).unwrap();
    for n in 1..6 {
        writer.run(&format!("INSERT INTO n VALUES ({n})"));
    }
    writer.kill();
    std::fs::write(&mark, older).unwrap();
    let sums = |db: Database| three(&db, "SELECT count(*), max(n), sum(n) FROM n");
    assert_eq!(sums(Database::open_read_only(&path).unwrap()), [5, 5, 15]);
    assert_eq!(sums(Database::open(&path).unwrap()), [5, 5, 15]);
}

/// Names and bytes of what is in a folder, LMDB's table of readers apart.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.display().to_string();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false if !name.ends_with("lock.mdb") => found.push((name, std::fs::read(&path).unwrap())),
            false => {}
        }
    }
    found.sort();
    found
}

#[test]
fn what_cannot_be_read_beside_a_writer_says_so() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("db");
    let none = Database::open_read_only(&path).unwrap_err();
    assert_eq!(none.kind(), Kind::Invalid);
    assert!(none.what().starts_with("there is no database in "), "{none}");
    assert!(!path.exists());
    let lsm =
        Database::open_with(&path, Options { engine: Some(Engine::Lsm), ..Options::default() }).unwrap();
    lsm.execute("CREATE TABLE t (id INT PRIMARY KEY)").unwrap();
    assert_eq!(Database::open_read_only(&path).unwrap_err().kind(), Kind::Unavailable);
    drop(lsm);
    let alone = Database::open_read_only(&path).unwrap();
    assert_eq!(alone.table_names(), ["t"]);
    assert_eq!(alone.execute("INSERT INTO t VALUES (1)").unwrap_err().sqlstate(), "25006");
    // In one process there is one handle, to be shared.
    let twice = place.path().join("twice");
    let db = Database::open(&twice).unwrap();
    let error = Database::open_read_only(&twice).unwrap_err();
    assert_eq!(error.what(), "the database is open in this process already");
    drop(db);
}
