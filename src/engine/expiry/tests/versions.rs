//! Tables that keep versions: AS OF a time must return what was returned at that time.

use std::collections::BTreeMap;

use super::{INDEXES, WRITES, count_from, said};
use crate::engine::Database;
use crate::exec::dml::drawn;
use crate::value::Value;

const HOUR_US: i64 = 3_600_000_000;

/// Queries with two numbers as parameters.
const QUERIES: [&str; 9] = [
    "SELECT * FROM t ORDER BY id",
    "SELECT * FROM t WHERE id = $1",
    "SELECT id, v FROM t WHERE who = 'a' ORDER BY v DESC, id LIMIT 3",
    "SELECT count(*), sum(v), min(v), max(who) FROM t",
    "SELECT who, count(*) FROM t GROUP BY who ORDER BY who",
    "SELECT id FROM t WHERE v = $2 OR id IN ($1, 3) ORDER BY id",
    "SELECT id FROM t WHERE upper(who) = 'A' AND note > 'w' ORDER BY id",
    "SELECT a.id, b.id FROM t AS a JOIN t AS b ON b.id = a.id + 1 ORDER BY a.id",
    "SELECT id FROM t AS a WHERE NOT EXISTS (SELECT 1 FROM t AS b WHERE b.v = a.v + 1) ORDER BY id",
];

/// The query, of the tables as they were at a time.
fn as_of(sql: &str, time_us: i64) -> String {
    let time = Value::TimestampTz(time_us);
    sql.replace("FROM t", &format!("FROM t AS OF TIMESTAMP '{time}'"))
        .replace("JOIN t", &format!("JOIN t AS OF TIMESTAMP '{time}'"))
}

/// A time, and the parameters and answers of all queries then.
type Moment = (i64, Vec<Value>, Vec<Result<Vec<String>, String>>);

struct Bench {
    db: Database,
    drawn: u64,
    steps: Vec<String>,
}

impl Bench {
    fn new(seed: u64, options: &str) -> Bench {
        let mut bench = Bench { db: Database::in_memory().unwrap(), drawn: seed << 32, steps: Vec::new() };
        let key =
            ["reverse(lpad(id, 6))", "id", "left(md5(id), 2), id", "md5_bucket(id, 4), id"][bench.below(4)];
        let create = format!(
            "CREATE TABLE t (id BIGINT, who TEXT, v INT, note TEXT DEFAULT 'new', FAMILY f (note) WITH (compression = 'lz4'), PRIMARY KEY ({key}))"
        );
        let (with, set) = match bench.below(2) {
            0 => (format!(" WITH ({options})"), None),
            _ => (String::new(), Some(format!("ALTER TABLE t SET ({options})"))),
        };
        bench.db.execute_batch(&format!("{create}{with}")).unwrap();
        INDEXES.iter().for_each(|index| bench.db.execute_batch(index).unwrap());
        bench.db.execute_batch("INSERT INTO t VALUES (1, 'a', 1, 'x'), (2, 'b', 2, NULL)").unwrap();
        set.iter().for_each(|set| bench.db.execute_batch(set).unwrap());
        bench
    }

    fn below(&mut self, n: u64) -> usize {
        self.drawn += 1;
        (drawn(self.drawn) % n) as usize
    }

    fn numbers(&mut self) -> Vec<Value> {
        // Few rows, many values.
        [8, 300, 8, 300].map(|below| Value::Int(self.below(below) as i64)).to_vec()
    }

    /// One statement, or three in one transaction.
    fn write(&mut self) {
        let mut session = self.db.session();
        let together = self.below(4) == 0;
        if together {
            session.execute("BEGIN", &[]).unwrap();
        }
        for _ in 0..if together { 3 } else { 1 } {
            let sql = WRITES[self.below(WRITES.len() as u64)];
            let params = self.numbers();
            self.steps.push(format!("{sql} {params:?}"));
            let _ = said(&mut session, sql, &params);
        }
        if together {
            session.execute("COMMIT", &[]).unwrap();
        }
    }

    fn moment(&mut self) -> Moment {
        let params = self.numbers()[..2].to_vec();
        let answers = QUERIES.map(|sql| said(&mut self.db.session(), sql, &params)).to_vec();
        self.db.pass(HOUR_US);
        let now_us = self.db.now_us();
        self.db.pass(HOUR_US);
        (now_us, params, answers)
    }
}

#[test]
fn a_time_is_answered_as_it_was() {
    let first = count_from("EXPIRY_SEED", 1);
    for seed in first..first + count_from("EXPIRY_ROUNDS", 4) {
        let mut bench = Bench::new(seed, "versions = 1000");
        let mut moments = vec![bench.moment()];
        for _ in 0..25 {
            bench.write();
            moments.push(bench.moment());
        }
        for (time_us, params, answers) in &moments {
            for (sql, answer) in QUERIES.iter().zip(answers) {
                let sql = as_of(sql, *time_us);
                let now = said(&mut bench.db.session(), &sql, params);
                assert_eq!(now, *answer, "{sql} {params:?} seed {seed}\n{}", bench.steps.join("\n"));
            }
        }
        let problems = said(&mut bench.db.session(), "CHECK DATABASE", &[]).unwrap();
        assert_eq!(problems.len(), 1, "{problems:#?}");
    }
}

/// Versions that have expired by now are gone, also from AS OF an earlier time.
#[test]
fn versions_expire_as_rows_do() {
    for seed in 1..4 {
        let mut bench = Bench::new(seed, "versions = 1000, ttl = '40 hours'");
        let mut moments = Vec::new();
        for n in 0..25_i64 {
            let row = [(n % 5).into(), n.into()];
            bench.db.execute_with("UPSERT INTO t (id, v) VALUES ($1, $2)", &row).unwrap();
            moments.push(bench.moment());
        }
        let asked = |bench: &Bench| {
            let all = "SELECT * FROM VERSIONS OF t ORDER BY id, written_at".to_owned();
            let then = moments.iter().map(|(time_us, ..)| as_of(QUERIES[0], *time_us));
            then.chain([all]).map(|sql| said(&mut bench.db.session(), &sql, &[]).unwrap()).collect::<Vec<_>>()
        };
        let before = asked(&bench);
        bench.db.execute("PURGE t").unwrap();
        assert_eq!(asked(&bench), before);
        let [first, .., last, all] = &before[..] else { panic!("{before:?}") };
        assert!(first.is_empty() && !last.is_empty() && all.len() > last.len(), "{before:#?}");
        bench.db.pass(40 * HOUR_US);
        assert_eq!(asked(&bench).concat(), [""; 0]);
        bench.db.execute("PURGE").unwrap();
        let checked = said(&mut bench.db.session(), "CHECK TABLE t", &[]).unwrap().concat();
        assert!(checked.contains("0 problems, 0 rows and 0 index entries"), "{checked}");
    }
}

#[test]
fn the_newest_versions_are_kept() {
    let first = count_from("EXPIRY_SEED", 1);
    for seed in first..first + count_from("EXPIRY_ROUNDS", 4) {
        let versions = 1 + (seed % 4) as usize;
        let [mut few, mut many] = [versions + 1, 1000].map(|n| Bench::new(seed, &format!("versions = {n}")));
        for _ in 0..30 {
            for bench in [&mut few, &mut many] {
                bench.write();
                bench.db.pass(HOUR_US);
            }
        }
        let all = "SELECT id, ended_at IS NULL AS is_now, who, v, note FROM VERSIONS OF t ORDER BY id, written_at DESC";
        let [kept, all] = [&few, &many].map(|bench| {
            let mut of_row: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for row in said(&mut bench.db.session(), all, &[]).unwrap() {
                let id = row.split(',').next().unwrap().to_owned();
                of_row.entry(id).or_default().push(row);
            }
            of_row
        });
        for (id, all) in &all {
            // A live row has one version more than its ended ones.
            let is_there = all[0].contains("Boolean(true)");
            let newest = &all[..all.len().min(versions + usize::from(is_there))];
            assert_eq!(kept[id], newest, "{id} seed {seed}\n{}", few.steps.join("\n"));
        }
    }
}

#[test]
fn versions_begin_and_end_with_their_option() {
    let db = Database::in_memory().unwrap();
    db.execute_batch("CREATE TABLE t (id INT PRIMARY KEY, n INT); INSERT INTO t VALUES (1, 0)").unwrap();
    let of = |sql: &str| said(&mut db.session(), sql, &[]);
    assert!(of("SELECT * FROM VERSIONS OF t").unwrap_err().contains("keeps no versions"));
    db.execute("ALTER TABLE t SET (versions = 2)").unwrap();
    for n in 1..4 {
        db.pass(HOUR_US);
        db.execute_with("UPDATE t SET n = $1", &[n.into()]).unwrap();
    }
    assert_eq!(of("SELECT n FROM VERSIONS OF t ORDER BY n").unwrap().len(), 2);
    // Added and renamed columns apply to all versions.
    db.execute_batch(
        "ALTER TABLE t ADD COLUMN more TEXT NOT NULL DEFAULT 'x'; ALTER TABLE t RENAME COLUMN n TO m",
    )
    .unwrap();
    let rows = of("SELECT m, more FROM VERSIONS OF t ORDER BY m").unwrap();
    assert!(rows[0].contains("Int(2)") && rows[0].contains("Null"), "{rows:?}");
    assert!(
        rows[1].contains("Int(3)") && rows[1].contains("'x'") | rows[1].contains("Text(\"x\")"),
        "{rows:?}"
    );
    assert!(db.execute("ALTER TABLE t REKEY (lpad(id, 4))").is_err());
    db.execute("TRUNCATE t").unwrap();
    assert!(of("SELECT * FROM VERSIONS OF t").unwrap().is_empty());
    db.execute("ALTER TABLE t SET (versions = 1)").unwrap();
    assert!(of("SELECT * FROM VERSIONS OF t").is_err());
    db.execute("ALTER TABLE t REKEY (lpad(id, 4))").unwrap();
    db.execute("ALTER TABLE t SET (versions = 5, ttl = '10 days')").unwrap();
    assert_eq!(
        db.definitions(Some("t")).unwrap()[0].lines().last(),
        Some(") WITH (ttl = '10 days', versions = 5)")
    );
}

/// A version has a longer rowkey than its row; an INSERT must fail already if the version would not fit.
#[test]
fn what_can_be_inserted_can_be_deleted() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id TEXT PRIMARY KEY, n INT) WITH (versions = 3)").unwrap();
    for (length, fits) in [(100, true), (1972, true), (1973, false), (1982, false)] {
        let key: [Value; 1] = ["k".repeat(length).as_str().into()];
        let inserted = db.execute_with("INSERT INTO t VALUES ($1, 1)", &key);
        assert_eq!(inserted.is_ok(), fits, "{length}");
        if fits {
            db.pass(HOUR_US);
            db.execute_with("UPDATE t SET n = 2 WHERE id = $1", &key).unwrap();
            db.pass(HOUR_US);
            db.execute_with("DELETE FROM t WHERE id = $1", &key).unwrap();
        }
    }
    assert_eq!(said(&mut db.session(), "SELECT n FROM VERSIONS OF t", &[]).unwrap().len(), 4);
}

#[test]
fn a_clock_that_goes_back_loses_no_version() {
    let db = Database::in_memory().unwrap();
    db.execute_batch("CREATE TABLE t (id INT PRIMARY KEY, n INT) WITH (versions = 9)").unwrap();
    db.execute_batch("INSERT INTO t VALUES (1, 0), (2, 0)").unwrap();
    for n in 1..4 {
        db.pass(-HOUR_US);
        db.execute_with("UPDATE t SET n = $1", &[n.into()]).unwrap();
    }
    db.pass(-HOUR_US);
    db.execute("DELETE FROM t WHERE id = 2").unwrap();
    let rows =
        said(&mut db.session(), "SELECT id, n FROM VERSIONS OF t ORDER BY id, written_at", &[]).unwrap();
    let expected: Vec<String> = (1..=2)
        .flat_map(|id| (0..4).map(move |n| format!("{{\"id\": Int({id}), \"n\": Int({n})}}")))
        .collect();
    assert_eq!(rows, expected);
    let none = "SELECT * FROM VERSIONS OF t WHERE ended_at <= written_at";
    assert_eq!(said(&mut db.session(), none, &[]).unwrap(), [""; 0]);
}
