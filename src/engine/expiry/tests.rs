//! A table whose rows expire, beside one where a test deletes them in time: every query and write must give
//! the same result on both.

mod versions;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use super::micros;
use crate::engine::{Database, Session};
use crate::error::{Error, Kind};
use crate::exec::dml::{ROWS_READ, drawn};
use crate::exec::watch::CancelHandle;
use crate::value::Value;

const DAY_US: i64 = 86_400_000_000;

/// Days that rows last.
const TTL: i64 = 10;

const COLUMNS: &str = "(id BIGINT, who TEXT, v INT, note TEXT DEFAULT 'new', FAMILY f (note), PRIMARY KEY (";

/// Indexes of every kind.
const INDEXES: [&str; 5] = [
    "CREATE INDEX t_who ON t (who, v DESC)",
    "CREATE UNIQUE INDEX t_v ON t (v) INCLUDE (who)",
    "CREATE INDEX t_note ON t (note) WHERE who = 'a'",
    "CREATE INDEX t_upper ON t (upper(who)) INCLUDE (v, note)",
    "CREATE INDEX t_bucket ON t (id % 4, v)",
];

/// Writes with some of four numbers as parameters.
const WRITES: [&str; 13] = [
    "INSERT INTO t VALUES ($1, 'a', $2, 'x'), ($3, 'b', $4, 'y') RETURNING id",
    "INSERT INTO t VALUES ($1, 'c', $2, NULL) RETURNING id",
    "INSERT INTO t (id, who, v) VALUES ($1, 'd', $2), ($3, 'a', $4) ON CONFLICT DO NOTHING RETURNING id",
    "INSERT INTO t VALUES ($1, 'e', $2, 'z') ON CONFLICT (id) DO UPDATE SET who = excluded.who, v = t.v RETURNING id",
    "INSERT INTO t VALUES ($1, 'f', $2, 'z') ON CONFLICT (v) DO UPDATE SET note = t.who WHERE t.id <> 3 RETURNING id",
    "INSERT INTO t SELECT id + 1, who, v + 100, note FROM t WHERE v > $2 AND who < 'c' RETURNING id",
    "UPSERT INTO t (id, who) VALUES ($1, 'u'), ($3, 'a') RETURNING id",
    "UPSERT INTO t VALUES ($1, 'a', $2, 'w') RETURNING id",
    "UPDATE t SET who = 'a' || id % 3 WHERE v < $2 RETURNING id",
    "UPDATE t SET v = $2, note = coalesce(note, '') || 'n' WHERE id = $1 RETURNING id",
    "UPDATE t SET note = note WHERE id % 5 = $1 % 5 RETURNING id",
    "UPDATE t SET v = t.v + 1000 FROM t AS o WHERE o.id = t.id + 1 AND t.v > $2 RETURNING t.id",
    "DELETE FROM t WHERE id IN ($1, $3) OR who = 'u' AND v < $2 RETURNING id",
];

/// Queries with two numbers as parameters; their rows are ordered.
const QUERIES: [&str; 27] = [
    "SELECT * FROM t ORDER BY id",
    "SELECT rowkey, * FROM t WHERE id = $1",
    "SELECT count(*) FROM t",
    "SELECT count(*), sum(v), min(v), max(v), min(who) FROM t",
    "SELECT min(v) FROM t",
    "SELECT who, count(*), sum(v) FROM t GROUP BY who ORDER BY who",
    "SELECT * FROM t WHERE who = 'a' ORDER BY v DESC LIMIT 3",
    "SELECT v, who FROM t WHERE v = $2",
    "SELECT v FROM t WHERE v >= $2 ORDER BY v LIMIT 4 OFFSET 1",
    "SELECT count(*) FROM t WHERE who = 'a'",
    "SELECT id FROM t WHERE who = 'a' AND note > 'w' ORDER BY note, id",
    "SELECT upper(who), v, note FROM t WHERE upper(who) = 'A1' ORDER BY v NULLS FIRST, note",
    "SELECT DISTINCT who FROM t ORDER BY who",
    "SELECT id FROM t WHERE id IN ($1, $2, 3, 5) ORDER BY id",
    "SELECT id FROM t WHERE v = $2 OR who = 'b' OR id = $1 ORDER BY id",
    "SELECT a.id, b.id FROM t a JOIN t b ON b.id = a.id + 1 WHERE a.who = 'a' ORDER BY a.id",
    "SELECT a.id, b.v FROM t a LEFT JOIN t b ON b.v = a.id ORDER BY a.id",
    "SELECT id FROM t a WHERE NOT EXISTS (SELECT 1 FROM t b WHERE b.id = a.id + 1) ORDER BY id",
    "SELECT id FROM t WHERE id IN (SELECT v FROM t WHERE who <> 'a') ORDER BY id",
    "SELECT id, (SELECT max(v) FROM t b WHERE b.who = a.who AND b.v < a.v) FROM t a ORDER BY id",
    "SELECT who, v FROM (SELECT who, v, row_number() OVER (PARTITION BY who ORDER BY v DESC, id) n FROM t) WHERE n <= 2 ORDER BY who, v DESC",
    "SELECT who, v, primary_rowkey FROM t_who WHERE who = 'a' ORDER BY v DESC, primary_rowkey",
    "SELECT count(*) FROM t_who",
    "SELECT * FROM t_v ORDER BY v, primary_rowkey",
    "SELECT id FROM t UNION ALL SELECT v FROM t WHERE who = 'b' ORDER BY 1",
    "SELECT id FROM t ORDER BY rowkey LIMIT 3",
    "SELECT id FROM t WHERE v IS NULL OR note IS NULL ORDER BY id DESC",
];

/// Everything that a statement returns, errors included.
fn said(session: &mut Session, sql: &str, params: &[Value]) -> Result<Vec<String>, String> {
    let shown = |e: Error| e.to_string();
    let rows = session.query(sql, params).map_err(shown)?;
    rows.map(|row| row.map(|row| format!("{row:?}")).map_err(shown)).collect()
}

/// The two databases, and when each row of the second was written.
struct Pair {
    expiring: Database,
    kept: Database,
    day: i64,
    written: BTreeMap<i64, i64>,
    drawn: u64,
    /// The seed and the statements so far, for messages.
    seed: u64,
    steps: Vec<String>,
}

impl Pair {
    fn new(seed: u64) -> Pair {
        let [expiring, kept] = [(); 2].map(|()| Database::in_memory().unwrap());
        let mut pair = Pair {
            expiring,
            kept,
            day: 0,
            written: BTreeMap::new(),
            drawn: seed << 32,
            seed,
            steps: Vec::new(),
        };
        let key = ["reverse(lpad(id, 6))", "id", "left(md5(id), 2), id"][pair.below(3)];
        let create = format!("CREATE TABLE t {COLUMNS}{key}))");
        // With a `ttl` from the beginning, or later by ALTER TABLE.
        match pair.below(2) {
            0 => {
                pair.expiring.execute_batch(&format!("{create} WITH (ttl = '{TTL} days')")).unwrap();
                pair.indexes();
            }
            _ => {
                pair.expiring.execute_batch(&create).unwrap();
                pair.indexes();
                pair.expiring
                    .execute_batch("INSERT INTO t VALUES (1, 'a', 1, 'x'), (2, 'b', 2, NULL)")
                    .unwrap();
                pair.expiring.execute_batch(&format!("ALTER TABLE t SET (ttl = '{TTL} days')")).unwrap();
                pair.written.extend([(1, 0), (2, 0)]);
            }
        }
        pair.kept.execute_batch(&create).unwrap();
        INDEXES.iter().for_each(|index| pair.kept.execute_batch(index).unwrap());
        if !pair.written.is_empty() {
            pair.kept.execute_batch("INSERT INTO t VALUES (1, 'a', 1, 'x'), (2, 'b', 2, NULL)").unwrap();
        }
        pair
    }

    fn indexes(&self) {
        INDEXES.iter().for_each(|index| self.expiring.execute_batch(index).unwrap());
    }

    fn below(&mut self, n: u64) -> usize {
        self.drawn += 1;
        (drawn(self.drawn) % n) as usize
    }

    fn numbers(&mut self) -> Vec<Value> {
        (0..4).map(|_| Value::Int(self.below(24) as i64)).collect()
    }

    fn pass_a_day(&mut self) {
        self.day += 1;
        self.expiring.pass(DAY_US);
        let gone: Vec<i64> =
            self.written.iter().filter(|(_, day)| self.day - **day >= TTL).map(|(id, _)| *id).collect();
        for id in gone {
            self.written.remove(&id);
            self.kept.execute_with("DELETE FROM t WHERE id = $1", &[id.into()]).unwrap();
        }
    }

    fn write(&mut self) {
        let sql = WRITES[self.below(WRITES.len() as u64)];
        let params = self.numbers();
        self.steps.push(format!("day {}: {sql} {params:?}", self.day));
        let [expiring, kept] = [&self.expiring, &self.kept].map(|db| said(&mut db.session(), sql, &params));
        assert_eq!(expiring, kept, "seed {}\n{}", self.seed, self.steps.join("\n"));
        if let Ok(rows) = kept {
            self.note(&rows, sql.starts_with("DELETE"));
        }
    }

    fn note(&mut self, rows: &[String], deleted: bool) {
        for row in rows {
            let digits: String = row.chars().filter(char::is_ascii_digit).collect();
            let id: i64 = digits.parse().unwrap();
            if deleted {
                self.written.remove(&id)
            } else {
                self.written.insert(id, self.day)
            };
        }
    }

    fn load(&mut self) {
        let ids = [self.below(40) as i64, self.below(40) as i64 + 40];
        let v = self.below(40) as i64;
        let rows: Vec<Vec<Value>> =
            ids.iter().map(|id| vec![(*id).into(), "l".into(), (v + id).into(), Value::Null]).collect();
        self.steps.push(format!("day {}: load {rows:?}", self.day));
        let load = |db: &Database| db.table("t").unwrap().load(rows.clone()).map_err(|e| e.to_string());
        let [expiring, kept] = [&self.expiring, &self.kept].map(load);
        assert_eq!(expiring, kept, "seed {}\n{}", self.seed, self.steps.join("\n"));
        if kept.is_ok() {
            self.written.extend(ids.map(|id| (id, self.day)));
        }
    }

    /// Runs each query, and reads without SQL.
    fn compare(&mut self) {
        let params = self.numbers()[..2].to_vec();
        for sql in QUERIES {
            let [expiring, kept] =
                [&self.expiring, &self.kept].map(|db| said(&mut db.session(), sql, &params));
            assert_eq!(expiring, kept, "{sql} {params:?} seed {}\n{}", self.seed, self.steps.join("\n"));
        }
        let native = |db: &Database| {
            let table = db.table("t").unwrap();
            let all: Vec<String> =
                table.scan::<&str>(..).rows().unwrap().map(|row| format!("{:?}", row.unwrap())).collect();
            let key = table.key(&[("id", params[0].clone())]).unwrap();
            (all, table.get(key).unwrap().map(|row| format!("{row:?}")))
        };
        assert_eq!(native(&self.expiring), native(&self.kept), "seed {}", self.seed);
        let problems: Vec<String> = said(&mut self.expiring.session(), "CHECK TABLE t", &[]).unwrap();
        assert_eq!(problems.len(), 1, "seed {}\n{}\n{problems:#?}", self.seed, self.steps.join("\n"));
    }

    fn both(&mut self, sql: &str) {
        self.steps.push(format!("day {}: {sql}", self.day));
        let run = |db: &Database| db.execute_batch(sql).map_err(|e| e.to_string());
        let [expiring, kept] = [&self.expiring, &self.kept].map(run);
        assert_eq!(expiring, kept, "seed {}\n{}", self.seed, self.steps.join("\n"));
    }
}

fn count_from(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

#[test]
fn an_expired_row_is_as_good_as_deleted() {
    let first = count_from("EXPIRY_SEED", 1);
    for seed in first..first + count_from("EXPIRY_ROUNDS", 12) {
        let mut pair = Pair::new(seed);
        for step in 0..60 {
            match pair.below(20) {
                0..4 => (0..=pair.below(6)).for_each(|_| pair.pass_a_day()),
                4 => pair.load(),
                5 => {
                    pair.expiring.execute("PURGE").unwrap();
                }
                6 if step > 40 => {
                    pair.both("ALTER TABLE t REKEY (lpad(id % 1000, 4), id)");
                }
                7 => pair.both("DROP INDEX t_v; CREATE UNIQUE INDEX t_v ON t (v)"),
                _ => pair.write(),
            }
            if step % 10 == 9 {
                pair.compare();
            }
        }
        (0..=TTL).for_each(|_| pair.pass_a_day());
        pair.compare();
        assert!(said(&mut pair.expiring.session(), "SELECT * FROM t", &[]).unwrap().is_empty());
        pair.expiring.execute("PURGE t").unwrap();
        let (catalog, snapshot) = pair.expiring.moment();
        let reader = snapshot.reader().unwrap();
        for keyspace in catalog.table("t").unwrap().keyspaces() {
            assert_eq!(reader.entries(keyspace).unwrap(), 0, "seed {seed}");
        }
    }
}

/// Three rows, written on three days.
fn three_days(ttl: &str) -> Database {
    let db = Database::in_memory().unwrap();
    db.execute_batch(&format!("CREATE TABLE t (id INT PRIMARY KEY, n INT) WITH (ttl = '{ttl}')")).unwrap();
    for id in 1..=3 {
        db.execute_with("INSERT INTO t VALUES ($1, 0)", &[i64::from(id).into()]).unwrap();
        db.pass(DAY_US);
    }
    db
}

fn ids(session: &mut Session, sql: &str) -> Vec<i64> {
    session.query(sql, &[]).unwrap().map(|row| row.unwrap().get(0).unwrap()).collect()
}

#[test]
fn transactions_and_snapshots_have_their_own_time() {
    let db = three_days("4 days");
    let mut session = db.session();
    session.execute("BEGIN", &[]).unwrap();
    db.execute("CREATE SNAPSHOT before").unwrap();
    let view = db.read_view().unwrap();
    let all = "SELECT id FROM t ORDER BY id";
    assert_eq!(ids(&mut session, all), [1, 2, 3]);
    db.pass(2 * DAY_US);
    assert_eq!(ids(&mut db.session(), all), [3]);
    db.execute("PURGE").unwrap();
    assert_eq!(ids(&mut session, all), [1, 2, 3]);
    assert_eq!(ids(&mut db.session(), "SELECT id FROM t AS OF SNAPSHOT before ORDER BY id"), [1, 2, 3]);
    assert_eq!(view.query(all).unwrap().count(), 3);
    session.execute("COMMIT", &[]).unwrap();
    assert_eq!(ids(&mut session, all), [3]);
}

#[test]
fn a_purge_does_not_undo_who_writes_a_row_anew() {
    let db = three_days("2 days");
    let mut session = db.session();
    session.execute("BEGIN", &[]).unwrap();
    session.execute("UPSERT INTO t VALUES (1, 7)", &[]).unwrap();
    db.execute("PURGE").unwrap();
    // The purge did not change what the transaction has read (no such row), but it wrote to the same key.
    let committed = session.execute("COMMIT", &[]);
    assert!(committed.is_ok() || committed.is_err_and(|e| e.kind() == Kind::Conflict));
    db.execute("UPSERT INTO t VALUES (1, 7)").unwrap();
    db.execute("PURGE").unwrap();
    assert_eq!(ids(&mut session, "SELECT n FROM t WHERE id = 1"), [7]);
}

#[test]
fn explain_shows_when_rows_had_to_be_written() {
    let db = three_days("4 days");
    db.execute("CREATE INDEX t_n ON t (n)").unwrap();
    let explained = |sql: &str| {
        let first = said(&mut db.session(), &format!("EXPLAIN {sql}"), &[]).unwrap().remove(0);
        let (before, behind) = first.split_once("written_at > '20").expect("it is among the filters");
        format!("{before}written_at > ..{}", &behind[behind.find('\'').unwrap()..])
    };
    for (sql, shown) in [
        ("SELECT n FROM t WHERE id = 1", "Get t keys=1"),
        ("SELECT id FROM t WHERE n = 0", "IndexScan t_n ranges=1"),
        ("SELECT primary_rowkey FROM t_n WHERE n = 0", "IndexScan t_n ranges=1"),
        ("SELECT count(*) FROM t WHERE id > 2 OR n = 3", "written_at"),
    ] {
        let explained = explained(sql);
        assert!(explained.contains(shown), "{sql}: {explained}");
    }
    // Nearly all rows pass the expiry filter, so EXPLAIN must not suggest an index for it.
    let all = said(&mut db.session(), "EXPLAIN VERBOSE SELECT * FROM t", &[]).unwrap().join("\n");
    assert!(!all.contains("CREATE INDEX"), "{all}");
}

#[test]
fn how_long_rows_last_can_change() {
    let db = three_days("4 days");
    let all = || ids(&mut db.session(), "SELECT id FROM t ORDER BY id");
    assert_eq!(all(), [1, 2, 3]);
    db.execute("ALTER TABLE t SET (ttl = '3 days')").unwrap();
    assert_eq!(all(), [2, 3]);
    // Expired rows do not come back.
    db.execute("ALTER TABLE t SET (ttl = forever)").unwrap();
    assert_eq!(all(), [2, 3]);
    assert_eq!(db.definitions(Some("t")).unwrap()[0].lines().last(), Some(")"));
    db.pass(100 * DAY_US);
    assert_eq!(all(), [2, 3]);
    assert!(db.execute("PURGE t").unwrap_err().to_string().contains("do not expire"));
    db.execute("ALTER TABLE t SET (ttl = 3600)").unwrap();
    db.execute("ALTER TABLE t SET (ttl = forever)").unwrap();
    assert!(all().is_empty());
}

#[test]
fn rows_that_expire_while_a_longer_ttl_waits_do_not_come_back() {
    let db = three_days("4 days");
    let changing = db.shared.definitions.change(db.store(), &CancelHandle::default()).unwrap();
    thread::scope(|scope| {
        let longer = scope.spawn(|| db.execute("ALTER TABLE t SET (ttl = '1000 days')"));
        // It purges what has expired by now, and waits for the other change.
        thread::sleep(Duration::from_millis(100));
        db.pass(100 * DAY_US);
        assert!(ids(&mut db.session(), "SELECT id FROM t").is_empty());
        drop(changing);
        longer.join().unwrap().unwrap();
    });
    assert!(ids(&mut db.session(), "SELECT id FROM t").is_empty());
    db.execute("INSERT INTO t VALUES (1, 1)").unwrap();
    assert_eq!(said(&mut db.session(), "CHECK TABLE t", &[]).unwrap().len(), 1);
}

/// Expired rows, though invisible, must neither get in the way nor come back.
#[test]
fn what_comes_later_holds_for_all_rows_that_can_be_seen_ever() {
    for as_one in [false, true] {
        let db = Database::in_memory().unwrap();
        db.execute_batch("CREATE TABLE t (id INT PRIMARY KEY, n INT, w TEXT) WITH (ttl = '2 days')").unwrap();
        db.execute("INSERT INTO t VALUES (1, -5, NULL), (3, 5, 'of a key')").unwrap();
        let mut before = db.session();
        before.execute("BEGIN", &[]).unwrap();
        db.pass(3 * DAY_US);
        let mut session = db.session();
        if as_one {
            session.execute("BEGIN", &[]).unwrap();
        }
        for sql in [
            "ALTER TABLE t ADD CHECK (n > 0)",
            "ALTER TABLE t ALTER COLUMN w SET NOT NULL",
            "INSERT INTO t VALUES (2, 5, 'x')",
            "CREATE UNIQUE INDEX t_n ON t (n)",
            "ALTER TABLE t SET (ttl = '100 days')",
        ] {
            session.execute(sql, &[]).unwrap();
        }
        if as_one {
            session.execute("COMMIT", &[]).unwrap();
        }
        assert_eq!(ids(&mut db.session(), "SELECT id FROM t"), [2]);
        assert_eq!(said(&mut db.session(), "CHECK TABLE t", &[]).unwrap().len(), 1);
        assert_eq!(ids(&mut before, "SELECT id FROM t"), [1, 3]);
    }
}

#[test]
fn no_definition_fails_on_expired_rows() {
    for sql in [
        "CREATE INDEX t_n ON t (lpad(n, 4))",
        "CREATE INDEX t_w ON t (w, '_', n)",
        "CREATE UNIQUE INDEX t_v ON t (v)",
        "ALTER TABLE t ADD CHECK (n > 0)",
        "ALTER TABLE t ALTER COLUMN v SET NOT NULL",
        "ALTER TABLE t ALTER COLUMN n TYPE SMALLINT",
        "ALTER TABLE t ADD COLUMN c INT NOT NULL",
    ] {
        for as_one in [false, true] {
            let db = Database::in_memory().unwrap();
            db.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT, w TEXT, v INT) WITH (ttl = '2 days')")
                .unwrap();
            db.execute("INSERT INTO t VALUES (1, -100000, 'a_b', 1), (2, 1, 'a', 1), (3, 1, 'a', NULL)")
                .unwrap();
            assert!(db.execute(sql).is_err(), "{sql}");
            // A UNIQUE one is Broken.
            db.execute("DROP INDEX IF EXISTS t_v").unwrap();
            db.pass(3 * DAY_US);
            let mut session = db.session();
            if as_one {
                session.execute("BEGIN", &[]).unwrap();
            }
            session.execute(sql, &[]).unwrap_or_else(|e| panic!("{sql}: {e}"));
            if as_one {
                session.execute("COMMIT", &[]).unwrap();
            }
            assert_eq!(said(&mut session, "CHECK TABLE t", &[]).unwrap().len(), 1, "{sql}");
        }
    }
}

/// Such a row has no entry yet, or one that the build has just written.
#[test]
fn a_row_that_expires_while_a_unique_index_is_built_holds_no_key() {
    for (first, second) in [(1, 2), (2, 1)] {
        let db = Database::in_memory().unwrap();
        db.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT, w TEXT) WITH (ttl = '2 days')").unwrap();
        db.execute("CREATE INDEX t_w ON t (w)").unwrap();
        db.execute_with("INSERT INTO t VALUES ($1, 7, 'old'), (5, 8, 'old')", &[first.into()]).unwrap();
        let mut session = db.session();
        let (beside, has_run) = (db.clone(), AtomicBool::new(false));
        session.on_progress(Arc::new(move |progress| {
            if progress.label.starts_with("building") && !has_run.swap(true, Relaxed) {
                beside.pass(3 * DAY_US);
                let params = [second.into()];
                beside.execute_with("INSERT INTO t VALUES ($1, 7, 'new')", &params).unwrap();
            }
        }));
        session.execute("CREATE UNIQUE INDEX t_v ON t (v)", &[]).unwrap();
        assert_eq!(ids(&mut session, "SELECT id FROM t WHERE v = 7"), [i64::from(second)]);
        for _ in 0..2 {
            assert_eq!(said(&mut session, "CHECK TABLE t", &[]).unwrap().len(), 1);
            db.execute("PURGE t").unwrap();
        }
        assert_eq!(ids(&mut session, "SELECT id FROM t WHERE v = 7"), [i64::from(second)]);
    }
}

#[test]
fn a_thread_takes_expired_rows_away() {
    let db = Database::in_memory().unwrap();
    db.execute_batch(
        "CREATE TABLE t (id INT PRIMARY KEY) WITH (ttl = '16 seconds'); INSERT INTO t VALUES (1)",
    )
    .unwrap();
    db.pass(DAY_US);
    let entries = || {
        let (catalog, snapshot) = db.moment();
        snapshot.reader().unwrap().entries(catalog.table("t").unwrap().rows()).unwrap()
    };
    assert_eq!(entries(), 1);
    let began = std::time::Instant::now();
    while entries() > 0 {
        assert!(began.elapsed().as_secs() < 60, "nobody came");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn how_long_rows_last_as_it_is_written() {
    assert_eq!(micros(&"1 minute".into()), Some(Some(60_000_000)));
    assert_eq!(micros(&Value::Int(60)), Some(Some(60_000_000)));
    assert_eq!(micros(&"Forever".into()), Some(None));
    for wrong in
        [Value::Boolean(true), Value::Int(0), Value::Int(i64::MAX), "0 days".into(), "a while".into()]
    {
        assert_eq!(micros(&wrong), None, "{wrong:?}");
    }
}

#[test]
fn a_purge_that_is_stopped_says_that_rows_are_gone() {
    let db = Database::in_memory().unwrap();
    let rows = ROWS_READ * 3;
    db.execute("CREATE TABLE t (id INT PRIMARY KEY) WITH (ttl = '1 day')").unwrap();
    db.execute(&format!("INSERT INTO t SELECT value FROM generate_series(1, {rows})")).unwrap();
    db.pass(2 * DAY_US);
    let mut session = db.session();
    let cancel = session.cancel_handle();
    session.on_progress(Arc::new(move |progress| {
        if progress.done >= ROWS_READ as u64 {
            cancel.cancel();
        }
    }));
    let stopped = session.execute("PURGE t", &[]).unwrap_err();
    assert_eq!(stopped.kind(), Kind::Cancelled);
    let why = "some expired rows are purged; nothing else of the statement was written";
    assert_eq!(stopped.reason(), Some(why));
    assert_eq!(db.execute("PURGE t").unwrap(), 2 * ROWS_READ as u64);
    db.execute("INSERT INTO t VALUES (1)").unwrap();
    let cancel = session.cancel_handle();
    session.on_progress(Arc::new(move |_| cancel.cancel()));
    let stopped = session.execute("ANALYZE t", &[]).unwrap_err();
    assert_eq!(stopped.reason(), Some("nothing of the statement was written"));
}

#[test]
fn what_an_expired_row_refers_to_may_go_and_is_asked_for_again() {
    let db = Database::in_memory().unwrap();
    db.execute_batch(
        "CREATE TABLE p (id INT PRIMARY KEY);
         CREATE TABLE c (id INT PRIMARY KEY, p INT REFERENCES p) WITH (ttl = '1 day');
         INSERT INTO p VALUES (1);
         INSERT INTO c VALUES (1, 1)",
    )
    .unwrap();
    assert_eq!(db.execute("DELETE FROM p").unwrap_err().sqlstate(), "23503");
    db.pass(2 * DAY_US);
    db.execute("DELETE FROM p").unwrap();
    assert_eq!(db.session().execute("CHECK TABLE c", &[]).unwrap().affected, Some(0));
    for sql in ["UPSERT INTO c VALUES (1, 1)", "INSERT INTO c VALUES (1, 1)"] {
        assert_eq!(db.execute(sql).unwrap_err().sqlstate(), "23503", "{sql}");
    }
    assert_eq!(db.query("SELECT * FROM c").unwrap().count(), 0);
}
