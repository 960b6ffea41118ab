//! Files and directories that are not what they are taken for, and definitions that change under their users: each gets
//! one clear error or the right answer, and nothing is broken.

use std::fs;
use std::path::Path;

use rowkeydb::{Database, Engine, Kind, Value};

use crate::crash::problems;
use crate::engines;
use crate::hostile::{check_error, flaw, run};

/// Opening it fails, and says what is wrong; the files stay as they were.
fn does_not_open(path: &Path, case: &str) {
    match Database::open(path) {
        Ok(_) => panic!("{case} was opened"),
        Err(e) => {
            // Damage may be called that.
            assert!(e.kind() == Kind::Corrupt || flaw(&e).is_none(), "{case}: {e}");
            assert!(!e.what().is_empty() && e.to_string().contains("hint: "), "{case}: {e}");
        }
    }
}

#[test]
fn what_is_no_database_is_not_opened() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("file"), "hello").unwrap();
    fs::create_dir(path("photos")).unwrap();
    fs::write(path("photos/cat.jpg"), "meow").unwrap();
    std::os::unix::fs::symlink(path("nowhere/at/all"), path("dangling")).unwrap();
    for (case, found) in [
        ("a file", path("file")),
        ("a folder of files", path("photos")),
        ("a link to nothing", path("dangling")),
        ("a folder in no folder", path("a/b/c")),
        ("a folder in a file", path("file/db")),
        ("a folder that nobody may write to", "/sys/kernel".into()),
        ("a new folder where none may be", "/sys/kernel/db".into()),
        ("a name too long", path(&"x".repeat(5_000))),
        ("a name with a zero", path("a\0b")),
        ("no name", "".into()),
    ] {
        does_not_open(&found, case);
    }
    assert_eq!(fs::read_dir(path("photos")).unwrap().count(), 1);
}

#[test]
fn a_database_with_a_file_that_is_not_its_own_is_not_opened() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    for engine in Engine::ALL {
        let files = match engine {
            Engine::Lmdb => vec!["FORMAT", "data.mdb"],
            Engine::Lsm => vec!["FORMAT", "lsm/log-1", "lsm/acknowledged", "lsm/tree/current"],
        };
        for name in files {
            for (case, bytes) in [
                ("gone", None),
                ("empty", Some(Vec::new())),
                ("text", Some(b"rowkeydb format 99\n".to_vec())),
                ("noise", Some((0..70_000u32).map(|n| ((n * 7919) >> 3) as u8).collect())),
                ("a folder", None),
            ] {
                let _ = fs::remove_dir_all(&path);
                {
                    let db = engines::open(&path, engine);
                    db.execute("CREATE TABLE t (id INT PRIMARY KEY)").unwrap();
                    db.execute("INSERT INTO t SELECT value FROM generate_series(1, 1000)").unwrap();
                }
                fs::remove_file(path.join(name)).unwrap();
                match bytes {
                    Some(bytes) => fs::write(path.join(name), bytes).unwrap(),
                    None if case == "a folder" => fs::create_dir(path.join(name)).unwrap(),
                    None => {}
                }
                does_not_open(&path, &format!("{engine} with {name}: {case}"));
            }
        }
    }
}

/// Loads a file; gives the ids that are in the table then.
fn loaded(db: &Database, path: &Path, options: &str) -> Result<Vec<i64>, rowkeydb::Error> {
    db.execute("TRUNCATE TABLE t").unwrap();
    let sql = format!("COPY t FROM '{}' ({options})", path.display());
    let copied = run(&mut db.session(), &sql, &[]);
    let ids: Vec<i64> =
        db.query("SELECT id FROM t").unwrap().map(|row| row.unwrap().get("id").unwrap()).collect();
    match copied {
        Ok(_) => Ok(ids),
        Err(e) => {
            check_error(&sql, &e);
            assert!(ids.is_empty(), "{sql}: {ids:?}");
            Err(e)
        }
    }
}

fn table() -> Database {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, s TEXT, n DOUBLE, j JSON)").unwrap();
    db.execute("CREATE INDEX by_s ON t (s) INCLUDE (n)").unwrap();
    db
}

#[test]
fn a_file_of_another_kind_is_refused() {
    let db = table();
    let directory = tempfile::tempdir().unwrap();
    let utf16 = |text: &str, mark: u16, swap: bool| -> Vec<u8> {
        let units = std::iter::once(mark).chain(text.encode_utf16());
        units.flat_map(|unit| if swap { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
    };
    let csv = "id,s\n1,one\n2,two\n";
    let gzip =
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcbL\xd1)\xe62\xd4\xc9\xcfK\xe52\xd2))\xcf\xe7\x02\x00";
    let parquet = directory.path().join("right.parquet");
    db.execute("INSERT INTO t VALUES (1, 'one', 1, '[1]'), (2, 'two', 2, NULL)").unwrap();
    db.execute(&format!("COPY t TO '{}' (FORMAT parquet)", parquet.display())).unwrap();
    let parquet = fs::read(parquet).unwrap();
    let wide = format!("id,{}\n1\n", (0..10_000).map(|n| format!("c{n}")).collect::<Vec<_>>().join(","));
    let long = "x".repeat(1_000_000);
    let cases: Vec<(&str, &str, Vec<u8>)> = vec![
        ("UTF-16, little end first", "csv", utf16(csv, 0xFEFF, false)),
        ("UTF-16, big end first", "csv", utf16(csv, 0xFEFF, true)),
        ("UTF-16 without a mark", "csv", utf16(csv, 0x20, false)),
        ("UTF-16 lines", "jsonl", utf16("{\"id\": 1}\n", 0xFEFF, false)),
        ("gzip", "csv", gzip.to_vec()),
        ("gzip as lines", "jsonl", gzip.to_vec()),
        ("gzip as Parquet", "parquet", gzip.to_vec()),
        ("Parquet as CSV", "csv", parquet.clone()),
        ("Parquet as lines", "jsonl", parquet.clone()),
        ("CSV as Parquet", "parquet", csv.into()),
        ("CSV as lines", "jsonl", csv.into()),
        ("nothing as Parquet", "parquet", Vec::new()),
        ("lines as CSV", "csv", b"{\"id\": 1, \"s\": \"one\"}\n".to_vec()),
        ("a column twice", "csv", b"id,s,s\n1,a,b\n".to_vec()),
        ("ten thousand columns", "csv", wide.into()),
        ("a column of a megabyte", "csv", format!("id,{long}\n1,1\n").into()),
        ("a member of a megabyte", "jsonl", format!("{{\"id\": 1, \"{long}\": 1}}\n").into()),
        ("a number of a megabyte", "csv", format!("id\n{}\n", "9".repeat(1_000_000)).into()),
        ("other line ends", "csv", b"id,s\r1,one\r2,two\r".to_vec()),
        ("another delimiter", "csv", b"id;s\n1;one\n".to_vec()),
        ("an id twice", "csv", b"id,s\n1,one\n1,two\n".to_vec()),
        ("a member twice", "jsonl", b"{\"id\": 1, \"id\": 2}\n".to_vec()),
        ("zeros", "csv", vec![0; 100_000]),
        ("zeros as lines", "jsonl", vec![0; 100_000]),
        ("zeros as Parquet", "parquet", vec![0; 100_000]),
        ("half a character", "jsonl", b"{\"id\": 1, \"s\": \"\\ud800\"}\n".to_vec()),
        ("no number", "jsonl", b"{\"id\": 1e999}\n".to_vec()),
        ("a list", "jsonl", b"[{\"id\": 1}]\n".to_vec()),
        ("two on a line", "jsonl", b"{\"id\": 1}{\"id\": 2}\n".to_vec()),
    ];
    for (case, format, bytes) in cases {
        let path = directory.path().join("file");
        fs::write(&path, bytes).unwrap();
        let header = if format == "csv" { ", HEADER" } else { "" };
        let found = loaded(&db, &path, &format!("FORMAT {format}{header}"));
        assert!(found.is_err(), "{case}: {found:?}");
    }
    for (path, format) in
        [("/dev/zero", "csv"), ("/dev/zero", "jsonl"), ("/proc", "csv"), ("/nowhere", "parquet")]
    {
        assert!(loaded(&db, Path::new(path), &format!("FORMAT {format}")).is_err(), "{path} as {format}");
    }
    for to in ["/sys/kernel/out.csv", "/nowhere/out.csv", "/proc", "", "a\0b"] {
        let sql = format!("COPY t TO '{to}' (FORMAT csv)");
        check_error(&sql, &run(&mut db.session(), &sql, &[]).unwrap_err());
        let sql = format!("BACKUP TO '{to}'");
        check_error(&sql, &run(&mut db.session(), &sql, &[]).unwrap_err());
    }
    assert_eq!(problems(&db), [""; 0]);
}

/// What is there is loaded if it is whole, or nothing is: no file that was cut off is taken for a shorter one, but
/// where it was cut between two rows.
#[test]
fn a_file_that_was_cut_off_is_loaded_by_whole_rows_or_not_at_all() {
    let db = table();
    let directory = tempfile::tempdir().unwrap();
    db.execute("INSERT INTO t SELECT value, 'a \"b\", c' || value, value / 7.0, '[1, {\"a\": 2}]' FROM generate_series(10, 40)")
        .unwrap();
    let whole: Vec<i64> = (10..=40).collect();
    for format in ["csv", "jsonl", "parquet"] {
        let (full, cut) = (directory.path().join("full"), directory.path().join("cut"));
        db.execute("TRUNCATE TABLE t").unwrap();
        db.execute("INSERT INTO t SELECT value, 'a \"b\", c' || value, value / 7.0, '[1, {\"a\": 2}]' FROM generate_series(10, 40)")
            .unwrap();
        let header = if format == "csv" { ", HEADER" } else { "" };
        db.execute(&format!("COPY t TO '{}' (FORMAT {format}{header})", full.display())).unwrap();
        let bytes = fs::read(&full).unwrap();
        assert_eq!(loaded(&db, &full, &format!("FORMAT {format}{header}")).unwrap(), whole);
        let mut refused = 0;
        for length in (0..bytes.len()).step_by(11) {
            fs::write(&cut, &bytes[..length]).unwrap();
            match loaded(&db, &cut, &format!("FORMAT {format}{header}")) {
                Err(_) => refused += 1,
                Ok(ids) => {
                    assert_ne!(format, "parquet", "{length} bytes");
                    assert!(whole.starts_with(&ids), "{length} bytes of {format}: {ids:?}");
                }
            }
        }
        assert!(refused > bytes.len() / 11 / 2, "{format}: {refused} refused");
        assert_eq!(problems(&db), [""; 0]);
    }
}

#[test]
fn a_file_of_nothing_but_bad_rows_can_be_stopped() {
    let db = table();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bad.csv");
    fs::write(&path, format!("id\n{}", "x\n".repeat(3_000_000))).unwrap();
    let mut session = db.session();
    session.execute("SET statement_timeout = '50ms'", &[]).unwrap();
    let sql = format!("COPY t FROM '{}' (FORMAT csv, HEADER, ON_ERROR skip)", path.display());
    let started = std::time::Instant::now();
    assert_eq!(run(&mut session, &sql, &[]).unwrap_err().kind(), Kind::Cancelled);
    assert!(started.elapsed().as_millis() < 1050, "{:?}", started.elapsed());
}

/// Definitions go from under whoever uses them: what was begun ends as it began, what comes after says what is gone.
#[test]
fn definitions_may_change_while_they_are_used() {
    engines::over_each_store(|db| {
        let changes = [
            "DROP TABLE t",
            "DROP INDEX by_s",
            "TRUNCATE TABLE t",
            "ALTER TABLE t DROP COLUMN spare",
            "ALTER TABLE t RENAME COLUMN s TO text",
            "ALTER TABLE t RENAME TO other",
            "ALTER TABLE t ADD COLUMN more INT",
            "ALTER TABLE t REKEY (s, id)",
            "CREATE UNIQUE INDEX more ON t (s, id)",
            "CREATE OR REPLACE VIEW v AS SELECT 1 AS id",
            "DROP VIEW v",
            "DROP SNAPSHOT before",
        ];
        // On the disk some of them.
        let step = if db.engine().is_some() { 4 } else { 1 };
        for change in changes.into_iter().step_by(step) {
            db.execute("CREATE TABLE t (id INT PRIMARY KEY, s TEXT, spare INT)").unwrap();
            db.execute("CREATE INDEX by_s ON t (s)").unwrap();
            db.execute("CREATE VIEW v AS SELECT id, s FROM t WHERE id > 5").unwrap();
            db.execute("CREATE SNAPSHOT before").ok();
            db.execute("INSERT INTO t SELECT value, 's' || value % 100, 1 FROM generate_series(1, 1000)")
                .unwrap();
            let mut session = db.session();
            session.execute("PREPARE p AS SELECT s FROM t WHERE id = $1", &[]).unwrap();
            let uses = [
                "SELECT id, s FROM t ORDER BY s, id",
                "SELECT count(*) FROM t WHERE s = 's7'",
                "SELECT /*+ INDEX(by_s) */ id FROM t WHERE s = 's7'",
                "SELECT id FROM v WHERE s > 's5'",
                "SELECT count(*) FROM t AS OF SNAPSHOT before",
                "SELECT * FROM by_s LIMIT 3",
                "EXECUTE p (7)",
                "UPDATE t SET s = s || '!' WHERE id = 3",
                "INSERT INTO t (id, s) VALUES (30000, 'new')",
                "DELETE FROM t WHERE s = 's9'",
                "CHECK TABLE t",
            ];
            // Often enough for plans to be kept.
            for sql in uses.iter().cycle().take(3 * uses.len()).filter(|sql| !sql.starts_with("INSERT")) {
                let _ = run(&mut session, sql, &[]);
            }
            let mut prepared = db.prepare("SELECT id FROM t WHERE s = $1").unwrap();
            let handle = db.table("t").unwrap();
            let mut stream = db.query("SELECT id, s, spare FROM t").unwrap();
            let first = stream.next().unwrap().unwrap();
            let mut index_stream = db.query("SELECT id FROM t WHERE s >= 's1'").unwrap();
            index_stream.next().unwrap().unwrap();
            if let Err(e) = db.execute(change) {
                check_error(change, &e);
            }
            assert_eq!(first.get::<i64>("id").unwrap(), 1);
            // Ten were deleted.
            assert_eq!(stream.map(Result::unwrap).count(), 989, "{change}");
            assert!(index_stream.map(Result::unwrap).count() > 500, "{change}");
            for sql in uses.iter().cycle().take(2 * uses.len()) {
                if let Err(e) = run(&mut session, sql, &[]) {
                    check_error(sql, &e);
                }
            }
            for used in [
                prepared.query(&[Value::from("s7")]).and_then(Iterator::collect::<Result<Vec<_>, _>>),
                handle.get("7").map(|row| row.into_iter().collect()),
                handle.scan::<&str>(..).rows().and_then(Iterator::collect),
            ] {
                used.err().iter().for_each(|e| check_error(change, e));
            }
            assert_eq!(problems(&db), [""; 0], "{change}");
            let _ = db.execute("DROP SNAPSHOT IF EXISTS before");
            db.execute("DROP VIEW IF EXISTS v").unwrap();
            db.execute("DROP TABLE IF EXISTS t, other").unwrap();
            assert_eq!((db.table_names().len(), db.index_names().len()), (0, 0), "{change}");
        }
    });
}

/// Rows that a handle reads after these changes are as the table is then.
#[test]
fn a_table_handle_reads_columns_that_were_altered_since() {
    engines::over_each_store(|db| {
        db.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL, note TEXT NOT NULL)").unwrap();
        db.execute("INSERT INTO t VALUES (1, 7, 'one')").unwrap();
        let handle = db.table("t").unwrap();
        let key = |id: i64| handle.key(&[("id", id.into())]).unwrap();
        db.execute("ALTER TABLE t ALTER COLUMN note DROP NOT NULL").unwrap();
        db.execute("INSERT INTO t VALUES (2, 8, NULL)").unwrap();
        let row = handle.get(key(2)).unwrap().unwrap();
        assert_eq!(row.get::<Option<String>>("note").unwrap(), None);
        db.execute("ALTER TABLE t ALTER COLUMN n TYPE TEXT").unwrap();
        let batches = handle.scan::<&str>(..).rows().unwrap().batches();
        assert_eq!(batches.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 2);
        let row = handle.get(key(1)).unwrap().unwrap();
        assert_eq!(row.get::<String>("n").unwrap(), "7");
        db.execute("ALTER TABLE t RENAME COLUMN note TO text").unwrap();
        db.execute("CREATE INDEX by_text ON t (text)").unwrap();
        let row = handle.get(key(1)).unwrap().unwrap();
        assert_eq!(row.get::<String>("text").unwrap(), "one");
        db.execute("ALTER TABLE t RENAME COLUMN id TO number").unwrap();
        assert_eq!(
            handle.key(&[("number", 1.into())]).unwrap(),
            db.table("t").unwrap().key(&[("number", 1.into())]).unwrap()
        );
        assert_eq!(handle.load([vec![3.into(), "9".into(), Value::Null]]).unwrap(), 1);
        assert_eq!(handle.scan::<&str>(..).rows().unwrap().count(), 3);
        db.execute("ALTER TABLE t ADD COLUMN more INT").unwrap();
        assert_eq!(handle.get("1").unwrap_err().kind(), Kind::Conflict);
    });
}

/// Values are public, so a program can make decimals that no DECIMAL is.
#[test]
fn decimals_of_too_many_digits_are_refused_where_they_are_given() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (d DECIMAL(38, 10) PRIMARY KEY, i INT)").unwrap();
    db.execute("INSERT INTO t VALUES (1, 1), (2, 2)").unwrap();
    let handle = db.table("t").unwrap();
    for wrong in [
        Value::Decimal(1, 39),
        Value::Decimal(1, 255),
        Value::Decimal(i128::MIN, 0),
        Value::Decimal(10i128.pow(38), 38),
    ] {
        let params = std::slice::from_ref(&wrong);
        let of_query = |sql: &str| db.query_with(sql, params).map(drop);
        let mut prepared = db.prepare("SELECT i FROM t WHERE d < $1").unwrap();
        let refused = [
            of_query("SELECT i FROM t WHERE d = $1"),
            of_query("SELECT d + $1 FROM t"),
            of_query("SELECT d FROM t WHERE i > $1"),
            of_query("SELECT d FROM t LIMIT $1"),
            db.execute_with("INSERT INTO t VALUES ($1, 3)", params).map(drop),
            db.execute_with("UPDATE t SET i = $1", params).map(drop),
            prepared.query(params).map(drop),
            handle.key(&[("d", wrong.clone())]).map(drop),
            handle.load([vec![wrong.clone(), Value::Null]]).map(drop),
        ];
        for refusal in refused {
            assert_eq!(refusal.unwrap_err().sqlstate(), "22003", "{wrong:?}");
        }
    }
    let most = Value::Decimal(10i128.pow(38) - 1, 38);
    let found = db.query_with("SELECT i FROM t WHERE d > $1 ORDER BY d", &[most]).unwrap();
    assert_eq!(found.count(), 2);
}
