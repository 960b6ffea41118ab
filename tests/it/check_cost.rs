//! What CHECK takes: time like a scan or two, and no more memory for more rows.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rowkeydb::{Database, Engine};

use crate::engines;

fn fill(db: &Database, rows: std::ops::Range<usize>) {
    let (first, last) = (rows.start, rows.end - 1);
    db.execute(&format!(
        "INSERT INTO t SELECT value, value % 1000, 's' || value, repeat('n', 60) FROM generate_series({first}, {last})"
    ))
    .unwrap();
}

fn create(db: &Database) {
    db.execute("CREATE TABLE t (id INT, a INT, s TEXT, note TEXT, PRIMARY KEY (lpad(id, 8)))").unwrap();
    db.execute("CREATE INDEX by_a ON t (a, id) INCLUDE (s)").unwrap();
}

fn took(db: &Database, sql: &str) -> Duration {
    let began = Instant::now();
    db.query(sql).unwrap().batches().for_each(|batch| drop(batch.unwrap()));
    began.elapsed()
}

#[test]
fn check_fast_takes_less_than_two_scans_of_what_it_reads() {
    for engine in Engine::ALL {
        let directory = tempfile::tempdir().unwrap();
        let db = engines::open(directory.path().join("db"), engine);
        create(&db);
        fill(&db, 0..20_000);
        let statements =
            ["SELECT /*+ FULL */ * FROM t", "SELECT * FROM by_a", "CHECK TABLE t FAST", "CHECK TABLE t"];
        // The least of some, taken in turns, and of more where others use the machine as well.
        let mut least = [Duration::MAX; 4];
        for round in 0..50 {
            least.iter_mut().zip(statements).for_each(|(least, sql)| *least = took(&db, sql).min(*least));
            if round >= 4 && least[2] < 2 * (least[0] + least[1]) {
                break;
            }
        }
        let [rows, entries, fast, full] = least;
        println!("{engine}: rows {rows:?}, entries {entries:?}; CHECK FAST {fast:?}, FULL {full:?}");
        assert!(fast < 2 * (rows + entries), "{engine}: {fast:?} for scans of {rows:?} and {entries:?}");
    }
}

/// Memory of its own that a process has taken at the most, in KiB, while it checks a database.
fn peak(path: &Path) -> u64 {
    let mut child = Command::new(env!("CARGO_BIN_EXE_rowkeydb"))
        .args(["run", "-c", "CHECK DATABASE FAST; CHECK DATABASE", "--db"])
        .arg(path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let told = fs::read_to_string(&status).unwrap_or_default();
        let anonymous =
            told.lines().find_map(|line| line.strip_prefix("RssAnon:")?.trim().strip_suffix(" kB"));
        peak = peak.max(anonymous.and_then(|kib| kib.parse().ok()).unwrap_or(0));
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(child.wait().unwrap().success());
    peak
}

#[test]
#[cfg(target_os = "linux")]
fn check_takes_no_more_memory_for_more_rows() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let grown = |rows| {
        let db = engines::open(&path, Engine::Lmdb);
        if db.table_names().is_empty() {
            create(&db);
        }
        fill(&db, rows);
        drop(db);
        peak(&path)
    };
    let (few, many) = (grown(0..5_000), grown(5_000..60_000));
    println!("{few} KiB for 5,000 rows, {many} KiB for 60,000");
    assert!(many < few + 4096, "{few} KiB for 5,000 rows, {many} KiB for 60,000");
}
