//! Files cut short, bits flipped, files gone or strange: every answer is right, or an error says what is wrong.
//!
//! Each damaged copy is opened in a process of its own, since a damaged tree is read out of mapped memory.
//! `DAMAGE_ROUNDS` (default 40) says how many bits are flipped, `DAMAGE_SEED` which.

mod index;
mod row;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rowkeydb::{Database, Engine, Kind};
use serde_json::Value;

use crate::dice::{Dice, setting};
use crate::engines;
use crate::fuzz::targets::disk::files;

/// Every way to reach rows, then a write, then the whole again.
const QUESTIONS: [&str; 9] = [
    "SELECT /*+ FULL */ * FROM orders ORDER BY id",
    "SELECT id FROM orders WHERE id IN (7, 77, 277)",
    "SELECT /*+ INDEX(by_buyer) */ buyer, id FROM orders WHERE buyer < 40 ORDER BY buyer, id",
    "SELECT /*+ INDEX(by_buyer) */ buyer, note FROM orders WHERE buyer = 7 ORDER BY id",
    "SELECT id FROM orders WHERE code = 'c77'",
    "SELECT count(*) AS n, sum(amount) AS total FROM orders",
    "UPDATE orders SET amount = amount + 1 WHERE buyer = 3",
    "DELETE FROM orders WHERE id = 5",
    "SELECT /*+ FULL */ * FROM orders ORDER BY id DESC",
];

struct Original {
    directory: tempfile::TempDir,
    /// Relative to its folder, those aside that hold nothing that lasts.
    files: Vec<PathBuf>,
    /// What each question is answered.
    answers: Vec<Value>,
}

impl Original {
    fn new(engine: Engine) -> Original {
        let directory = tempfile::tempdir().unwrap();
        let db = engines::open(directory.path().join("whole"), engine);
        // So many bytes that the LSM engine makes tables of them; what comes later stays in its log.
        let padding = if engine == Engine::Lsm { ".".repeat(8000) } else { String::new() };
        let line = |id| format!("{id},{},c{id},{},a note of order {id}{padding}\n", id % 50, id * 3);
        let csv = directory.path().join("orders.csv");
        let lines: String = (1..=400).map(line).collect();
        fs::write(&csv, format!("id,buyer,code,amount,note\n{lines}")).unwrap();
        for sql in [
            "CREATE TABLE orders (id INT, buyer INT, code TEXT, amount BIGINT, note TEXT, PRIMARY KEY (lpad(id, 8)))",
            "CREATE INDEX by_buyer ON orders (buyer) INCLUDE (amount)",
            "CREATE UNIQUE INDEX by_code ON orders (code)",
            &format!("COPY orders FROM '{}'", csv.display()),
            "UPDATE orders SET note = note || ', seen' WHERE buyer < 10",
            "DELETE FROM orders WHERE buyer = 49",
        ] {
            db.execute(sql).unwrap();
        }
        drop(db);
        // The LSM engine leaves lists of its tables behind that no longer count, and removes them when it is opened.
        drop(Database::open(directory.path().join("whole")).unwrap());
        let files = files(&directory.path().join("whole"));
        let mut original = Original { directory, files, answers: Vec::new() };
        let copy = original.copy("answers");
        let (answers, crashed) = ask(&copy);
        assert!(!crashed && answers.iter().all(|answer| answer.get("error").is_none()), "{answers:?}");
        original.answers = answers.iter().map(essence).collect();
        original
    }

    fn copy(&self, name: &str) -> PathBuf {
        let copy = self.directory.path().join(name);
        let _ = fs::remove_dir_all(&copy);
        for file in &self.files {
            fs::create_dir_all(copy.join(file).parent().unwrap()).unwrap();
            fs::copy(self.directory.path().join("whole").join(file), copy.join(file)).unwrap();
        }
        copy
    }

    fn data(&self) -> Vec<u8> {
        self.read(Path::new("data.mdb"))
    }

    fn read(&self, file: &Path) -> Vec<u8> {
        fs::read(self.directory.path().join("whole").join(file)).unwrap()
    }

    /// Files that hold data.
    fn data_files(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.iter().filter(|file| !["FORMAT", "LOCK"].map(Path::new).contains(&&***file))
    }

    /// Sorts what a damaged copy answers.
    fn outcome(&self, copy: &Path) -> Outcome {
        let (answers, crashed) = ask(copy);
        let (mut outcome, mut written) = (Outcome::Right, true);
        for ((answer, expected), sql) in answers.iter().zip(&self.answers).zip(QUESTIONS) {
            match answer.get("error") {
                Some(error) if ["corrupt", "unavailable"].contains(&error["kind"].as_str().unwrap()) => {
                    outcome = Outcome::Refused(error["message"].to_string());
                    written &= sql.starts_with("SELECT");
                }
                Some(error) => return Outcome::Wrong(error.to_string()),
                None if essence(answer) == *expected => {}
                // A write that was refused is missing from what comes after.
                None if !written => {}
                None => return Outcome::Wrong(format!("{sql}: {}", differing(&essence(answer), expected))),
            }
        }
        if crashed { Outcome::Crashed } else { outcome }
    }
}

#[derive(Debug, PartialEq)]
enum Outcome {
    Right,
    Refused(String),
    Wrong(String),
    Crashed,
}

/// Rows that only one of two answers has.
fn differing(found: &Value, expected: &Value) -> String {
    let rows = |answer: &Value| answer[0].as_array().cloned().unwrap_or_default();
    let without = |a: &Value, b: &Value| -> Vec<String> {
        let (a, b) = (rows(a), rows(b));
        a.iter().filter(|row| !b.contains(row)).map(Value::to_string).collect()
    };
    let (more, less) = (without(found, expected), without(expected, found));
    format!("{} of {} rows, more: {more:?}, less: {less:?}", rows(found).len(), rows(expected).len())
}

/// What counts of an answer.
fn essence(answer: &Value) -> Value {
    serde_json::json!([answer["rows"], answer["affected"]])
}

/// The answers of a process to all questions, and whether it died otherwise than by its own decision.
fn ask(database: &Path) -> (Vec<Value>, bool) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rowkeydb"));
    command.args(["run", "--keep-going", "--format", "jsonl", "--db"]).arg(database);
    command.args(QUESTIONS.iter().flat_map(|sql| ["-c", sql]));
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut answers: Vec<Value> = text.lines().map_while(|line| serde_json::from_str(line).ok()).collect();
    let panicked = String::from_utf8_lossy(&output.stderr).contains("panicked");
    let crashed = panicked || !matches!(output.status.code(), Some(0 | 1));
    if answers.is_empty() && !crashed {
        // It was refused when it was opened.
        let text = String::from_utf8_lossy(&output.stderr);
        answers.push(serde_json::json!({ "error": { "kind": "corrupt", "message": text } }));
    }
    (answers, crashed)
}

/// What became of many damages.
#[derive(Default)]
struct Tally(BTreeMap<&'static str, Vec<String>>);

impl Tally {
    fn add(&mut self, place: String, outcome: Outcome) {
        let (name, what) = match outcome {
            Outcome::Right => ("right", String::new()),
            Outcome::Refused(what) => ("refused", what),
            Outcome::Wrong(what) => ("wrong", what),
            Outcome::Crashed => ("crashed", String::new()),
        };
        let what: String = what.chars().take(400).collect();
        self.0.entry(name).or_default().push(format!("{place}: {what}"));
    }

    fn count(&self, name: &str) -> usize {
        self.0.get(name).map_or(0, Vec::len)
    }

    fn report(&self, of: &str) {
        let counts =
            ["right", "refused", "wrong", "crashed"].map(|name| format!("{} {name}", self.count(name)));
        println!("{of}: {}", counts.join(", "));
        for name in ["wrong", "crashed"] {
            self.0.get(name).into_iter().flatten().for_each(|line| println!("  {name}: {line}"));
        }
    }
}

/// LMDB's pages have no checksums. What is read of them is proved by what has, and looked at before LMDB reads it.
#[test]
fn a_flipped_bit_is_harmless_or_refused() {
    let original = Original::new(Engine::Lmdb);
    let data = original.data();
    let (rounds, seed) = (setting("DAMAGE_ROUNDS", 40), setting("DAMAGE_SEED", 1));
    let mut dice = Dice::new(seed, 0);
    let mut tally = Tally::default();
    for _ in 0..rounds {
        let at = dice.below(data.len() * 8);
        let copy = original.copy("flipped");
        let mut hurt = data.clone();
        hurt[at / 8] ^= 1 << (at % 8);
        fs::write(copy.join("data.mdb"), hurt).unwrap();
        let place = format!("page {} byte {} bit {}", at / 8 / 4096, at / 8 % 4096, at % 8);
        tally.add(place, original.outcome(&copy));
    }
    tally.report(&format!("{rounds} flipped bits, seed {seed}"));
    assert_eq!((tally.count("wrong"), tally.count("crashed")), (0, 0));
    assert!(tally.count("refused") > 0);
}

/// The LSM engine verifies each block that it reads, each record of its log, and what it had acknowledged. So
/// whatever is hurt, nothing is answered wrongly.
#[test]
fn a_flipped_bit_in_any_file_of_the_lsm_engine_is_harmless_or_refused() {
    let original = Original::new(Engine::Lsm);
    let files: Vec<&PathBuf> = original.data_files().collect();
    let (rounds, seed) = (setting("DAMAGE_ROUNDS", 40), setting("DAMAGE_SEED", 1));
    let mut dice = Dice::new(seed, 2);
    let mut tally = Tally::default();
    for round in 0..rounds {
        let file = files[round as usize % files.len()];
        let mut hurt = original.read(file);
        // The log is zeros behind its records.
        let used = hurt.len() - hurt.iter().rev().take_while(|byte| **byte == 0).count();
        let at = dice.below(used * 8);
        hurt[at / 8] ^= 1 << (at % 8);
        let copy = original.copy("flipped");
        fs::write(copy.join(file), hurt).unwrap();
        let place = format!("{} byte {} of {used} bit {}", file.display(), at / 8, at % 8);
        tally.add(place, original.outcome(&copy));
    }
    tally.report(&format!("lsm: {rounds} flipped bits, seed {seed}"));
    assert_eq!((tally.count("wrong"), tally.count("crashed")), (0, 0));
    assert!(tally.count("refused") > 0);
}

#[test]
fn a_file_of_the_lsm_engine_that_is_cut_short_or_gone_is_refused() {
    let original = Original::new(Engine::Lsm);
    let mut dice = Dice::new(setting("DAMAGE_SEED", 1), 3);
    let mut tally = Tally::default();
    for file in original.data_files() {
        let whole = original.read(file);
        let used = whole.len() - whole.iter().rev().take_while(|byte| **byte == 0).count();
        let lengths = (0..setting("DAMAGE_ROUNDS", 40) / 20).map(|_| dice.below(used));
        for len in lengths.chain([0, used - 1]) {
            let copy = original.copy("short");
            fs::write(copy.join(file), &whole[..len]).unwrap();
            tally.add(format!("{} at {len} bytes", file.display()), original.outcome(&copy));
        }
        let copy = original.copy("gone");
        fs::remove_file(copy.join(file)).unwrap();
        tally.add(format!("{} gone", file.display()), original.outcome(&copy));
    }
    tally.report("lsm: files cut short or gone");
    assert_eq!((tally.count("right"), tally.count("wrong"), tally.count("crashed")), (0, 0, 0));
}

#[test]
fn a_file_cut_short_is_refused() {
    let original = Original::new(Engine::Lmdb);
    let data = original.data();
    let mut dice = Dice::new(setting("DAMAGE_SEED", 1), 1);
    let mut tally = Tally::default();
    let lengths = (0..setting("DAMAGE_ROUNDS", 40) / 4).map(|_| dice.below(data.len()));
    for len in lengths.chain([0, 1, 4095, 4096, 8192, data.len() - 4096, data.len() - 1]) {
        let copy = original.copy("short");
        fs::write(copy.join("data.mdb"), &data[..len]).unwrap();
        tally.add(format!("{len} bytes"), original.outcome(&copy));
    }
    tally.report("files cut short");
    assert_eq!((tally.count("wrong"), tally.count("crashed")), (0, 0));
    assert!(tally.count("refused") > tally.count("right"));
}

#[test]
fn a_file_that_is_gone_or_something_else_is_refused() {
    let original = Original::new(Engine::Lmdb);
    let len = original.data().len();
    let garbage: Vec<u8> = (0..len).map(|i| (i * 31 + i / 7) as u8).collect();
    for (name, bytes) in [
        ("data.mdb", None),
        ("data.mdb", Some(&garbage[..])),
        ("data.mdb", Some(b"")),
        ("FORMAT", None),
        ("FORMAT", Some(b"\xff\xfe")),
        ("FORMAT", Some(b"")),
    ] {
        let copy = original.copy("strange");
        match bytes {
            Some(bytes) => fs::write(copy.join(name), bytes).unwrap(),
            None => fs::remove_file(copy.join(name)).unwrap(),
        }
        let error = Database::open(&copy).expect_err(name);
        assert!(matches!(error.kind(), Kind::Corrupt | Kind::Invalid), "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
    // The lock and the table of readers hold nothing that lasts.
    let copy = original.copy("unlocked");
    fs::remove_file(copy.join("LOCK")).unwrap();
    fs::write(copy.join("lock.mdb"), &garbage[..9000]).unwrap();
    assert_eq!(original.outcome(&copy), Outcome::Right);
}

/// The system lets the file grow no further, as a full disk does.
#[cfg(unix)]
#[test]
fn on_a_full_disk_statements_are_refused_and_what_was_acknowledged_stays() {
    fill_the_disk(Engine::Lmdb, "data.mdb");
    fill_the_disk(Engine::Lsm, "lsm/log-1");
}

#[cfg(unix)]
fn fill_the_disk(engine: Engine, file: &str) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("full");
    engines::open(&path, engine).execute("CREATE TABLE t (id INT PRIMARY KEY, note TEXT)").unwrap();
    // In blocks of 512 bytes.
    let blocks = fs::metadata(path.join(file)).unwrap().len() / 512 + 400;
    let script: String =
        (1..=200).map(|id| format!("INSERT INTO t VALUES ({id}, '{}');\n", "x".repeat(3000))).collect();
    let script = script + "SELECT count(*) FROM t;\n";
    fs::write(directory.path().join("fill.sql"), script).unwrap();
    let output = Command::new("sh")
        .args(["-c", &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"")])
        .arg(env!("CARGO_BIN_EXE_rowkeydb"))
        .args(["run", "--keep-going", "--format", "jsonl", "--db"])
        .arg(&path)
        .arg(directory.path().join("fill.sql"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 201);
    let is_refused = |answer: &&Value| answer.get("error").is_some();
    let refused: Vec<&Value> = answers.iter().filter(is_refused).collect();
    assert!(!refused.is_empty() && refused.len() < 200, "{} refused", refused.len());
    refused.iter().for_each(|answer| assert_eq!(answer["error"]["kind"], "unavailable", "{answer}"));
    // There is room again.
    let db = Database::open(&path).unwrap();
    let there: Vec<i64> =
        db.query("SELECT id FROM t").unwrap().map(|row| row.unwrap().get("id").unwrap()).collect();
    let acknowledged: Vec<i64> =
        (1..=200).zip(&answers).filter(|(_, answer)| !is_refused(answer)).map(|(id, _)| id).collect();
    assert_eq!(there, acknowledged);
    assert_eq!(db.query("CHECK DATABASE").unwrap().count(), 1);
    db.execute("INSERT INTO t VALUES (1000, 'there is room')").unwrap();
}

#[test]
fn damaged_statistics_count_as_none_and_analyze_mends_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let db = Database::open(path("db")).unwrap();
    for table in ["a", "b", "c"] {
        db.execute(&format!("CREATE TABLE {table} (id INT PRIMARY KEY, s VARCHAR)")).unwrap();
        db.execute(&format!("INSERT INTO {table} VALUES (1, 'known of {table} alone')")).unwrap();
        db.execute(&format!("ANALYZE {table}")).unwrap();
    }
    db.execute("CREATE VIEW v AS SELECT count(*) AS n FROM a, b, c").unwrap();
    drop(db);
    let data = path("db").join("data.mdb");
    for damaged in [&["a"][..], &["b"], &["c"], &["a", "c"], &["a", "b", "c"]] {
        let mut bytes = fs::read(&data).unwrap();
        for table in damaged {
            // In statistics texts stand in quotes, in rows they do not.
            let text = format!("\"known of {table} alone\"").into_bytes();
            let places: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(&text)).collect();
            assert!(!places.is_empty());
            places.into_iter().for_each(|at| bytes[at + 1] ^= 1);
        }
        fs::write(&data, bytes).unwrap();
        let db = Database::open(path("db")).unwrap();
        let n: i64 = db.query("SELECT n FROM v").unwrap().next().unwrap().unwrap().get("n").unwrap();
        assert_eq!(n, 1);
        let problem = db.query("CHECK DATABASE").unwrap().next().unwrap().unwrap();
        assert_eq!(problem.get::<String>("problem").unwrap(), "checksum");
        assert_eq!(problem.get::<String>("table").unwrap(), damaged[0]);
        let hint = format!("ANALYZE {} writes its statistics anew", damaged[0]);
        assert!(problem.get::<String>("detail").unwrap().ends_with(&hint), "{problem:?}");
        let refused = db.execute(&format!("BACKUP TO '{}'", path("backup").display())).unwrap_err();
        assert_eq!((refused.kind(), refused.fix()), (Kind::Corrupt, Some(&hint[..])));
        for table in damaged {
            db.execute(&format!("ANALYZE {table}")).unwrap();
        }
        drop(db);
        let db = Database::open(path("db")).unwrap();
        assert_eq!(db.query("CHECK DATABASE").unwrap().count(), 1, "{damaged:?}");
        db.execute(&format!("BACKUP TO '{}'", path("backup").display())).unwrap();
        drop(db);
        fs::remove_dir_all(path("backup")).unwrap();
    }
}

/// Sound pages, at the places where they once were.
#[test]
fn a_page_of_an_earlier_commit_is_found_by_check_and_no_backup_takes_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let data = path("db").join("data.mdb");
    let mut files = Vec::new();
    for round in 0..10 {
        let db = Database::open(path("db")).unwrap();
        db.execute("CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY, n INT)").unwrap();
        db.execute(&format!("UPSERT INTO t VALUES ({}, {round}), (100, {round})", round % 3)).unwrap();
        drop(db);
        files.push(fs::read(&data).unwrap());
    }
    let rows = |db: &Database| -> rowkeydb::Result<Vec<Vec<rowkeydb::Value>>> {
        db.query("SELECT * FROM t")?.map(|row| row?.values()).collect()
    };
    let expected = rows(&Database::open(path("db")).unwrap()).unwrap();
    let whole = fs::read(&data).unwrap();
    let page_bytes = u32::from_ne_bytes(*whole[40..].first_chunk().unwrap()) as usize;
    let mut unseen = 0;
    for earlier in &files {
        for at in (2 * page_bytes..earlier.len().min(whole.len())).step_by(page_bytes) {
            let page = at..at + page_bytes;
            let mut stale = whole.clone();
            stale[page.clone()].copy_from_slice(&earlier[page]);
            fs::write(&data, stale).unwrap();
            let opened = Database::open(path("db"));
            match opened.as_ref().map_err(|e| e.copied()).and_then(rows) {
                Err(e) => assert_eq!(e.kind(), Kind::Corrupt, "{e}"),
                Ok(rows) if rows == expected => {}
                Ok(_) => {
                    unseen += 1;
                    let db = opened.unwrap();
                    let found = db.query("CHECK DATABASE FAST").unwrap().next().unwrap().unwrap();
                    assert_eq!(found.get::<String>("problem").unwrap(), "checksum");
                    let refused =
                        db.execute(&format!("BACKUP TO '{}'", path("backup").display())).unwrap_err();
                    assert_eq!(refused.kind(), Kind::Corrupt, "{refused}");
                    assert!(!path("backup").exists());
                }
            }
        }
    }
    assert!(unseen > 0, "none of them fits where it was");
}
