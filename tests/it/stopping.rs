//! Whatever takes long ends soon after it is cancelled, and when its time is up.

use std::path::Path;
use std::sync::mpsc::channel;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use rowkeydb::{Database, Kind, Session};

use crate::crash::{problems, shown};
use crate::engines::over_each_store;

/// Rows of `t`: what is done with all of them takes long.
const ROWS: usize = 100_000;

/// A statement is told to end after that.
const LONG: Duration = Duration::from_millis(100);

/// It ends within that, of a build that is not optimised, on a machine that does other things too.
const SOON: Duration = Duration::from_secs(1);

fn database(directory: &Path) -> Database {
    let db = Database::in_memory().unwrap();
    let csv = directory.join("t.csv");
    let rows: String = (0..ROWS).map(|id| format!("{id},{},s{}\n", id % 97, id * 7919 % ROWS)).collect();
    std::fs::write(&csv, format!("id,n,s\n{rows}")).unwrap();
    db.execute("CREATE TABLE t (id INT, n INT, s TEXT, PRIMARY KEY (lpad(id, 8)))").unwrap();
    db.execute(&format!("COPY t FROM '{}'", csv.display())).unwrap();
    db.execute("CREATE TABLE e (id INT, n INT, s TEXT, PRIMARY KEY (lpad(id, 8)))").unwrap();
    db.execute("CREATE INDEX by_n ON t (n) INCLUDE (s)").unwrap();
    db
}

/// Runs a statement, its rows read, and gives how long it took and how it ended.
fn ended(session: &mut Session, sql: &str) -> (Duration, Option<rowkeydb::Error>) {
    let began = Instant::now();
    let outcome = session.execute(sql, &[]);
    let read = outcome.and_then(|outcome| outcome.rows.collect::<rowkeydb::Result<Vec<_>>>());
    (began.elapsed(), read.err())
}

/// Tells a statement to end a while after it began, and gives how long it then took and how it ended.
fn told_to_end(db: &Database, sql: &str, by_time: bool) -> (Duration, Option<rowkeydb::Error>) {
    let mut session = db.session();
    if by_time {
        session.execute(&format!("SET statement_timeout = '{}ms'", LONG.as_millis()), &[]).unwrap();
        let (took, error) = ended(&mut session, sql);
        return (took.saturating_sub(LONG), error);
    }
    let cancel = session.cancel_handle();
    thread::scope(|scope| {
        let running = scope.spawn(|| ended(&mut session, sql));
        thread::sleep(LONG);
        let told = Instant::now();
        cancel.cancel();
        let (_, error) = running.join().unwrap();
        (told.elapsed(), error)
    })
}

/// What an error may say is written of a statement that was stopped.
const WRITTEN: [&str; 3] = [
    "nothing of the statement was written",
    "no query reads the index until REPAIR INDEX has run to its end",
    "what it had written could not be undone",
];

/// What takes long, of each kind.
fn statements(path: &Path) -> Vec<String> {
    let path = path.display();
    vec![
        "SELECT count(*) FROM t a, t b WHERE regexp_like(a.s || b.s, '^(.*9){3}(.*8){3}$')".to_owned(),
        "SELECT count(*) FROM t WHERE regexp_like(repeat(s, 3000), '(.*9){3}(.*8){3}x')".into(),
        "SELECT max(length(rpad(s, 20000, 'x'))) FROM t".into(),
        "SELECT max(length(replace(repeat(s, 20000), 's', 'tt'))) FROM t".into(),
        "SELECT sum(length(md5(repeat(s, 3000)))) FROM t".into(),
        "SELECT * FROM t ORDER BY s DESC, n".into(),
        "SELECT s, count(*), max(n) FROM t GROUP BY s".into(),
        "SELECT count(DISTINCT s || n) FROM t".into(),
        "SELECT sum(n) OVER (PARTITION BY n % 5 ORDER BY s) FROM t".into(),
        "SELECT max(s) OVER (ORDER BY id ROWS BETWEEN 30000 PRECEDING AND CURRENT ROW) FROM t".into(),
        "SELECT count(*) OVER () , s FROM t ORDER BY s".into(),
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 100000000) SELECT count(*) FROM r".into(),
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r, generate_series(1, 10)) SELECT count(*) FROM r".into(),
        "SELECT count(*) FROM generate_series(1, 1000000000000)".into(),
        "SELECT string_agg(s, ',') FROM t, generate_series(1, 1000)".into(),
        "SELECT array_agg(s) FROM t, generate_series(1, 1000)".into(),
        "SELECT median(a.n) FROM t a, generate_series(1, 1000)".into(),
        "SELECT a.id FROM t a JOIN t b ON a.n = b.n ORDER BY a.s LIMIT 3".into(),
        "SELECT count(*) FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.s > a.s AND b.n <> a.n)".into(),
        "SELECT count(*) FROM t a WHERE s NOT IN (SELECT b.s || c.s FROM t b, t c)".into(),
        "SELECT s FROM t UNION SELECT s || n FROM t INTERSECT SELECT s FROM t".into(),
        "EXPLAIN ANALYZE SELECT s, count(*), max(n) FROM t GROUP BY s".into(),
        "UPDATE t SET n = n + 1".into(),
        "UPDATE t SET s = repeat(s, 30000)".into(),
        "DELETE FROM t WHERE n >= 0".into(),
        "INSERT INTO e SELECT id, n, s FROM t".into(),
        "INSERT INTO e SELECT id, n, s FROM t ON CONFLICT DO NOTHING".into(),
        "UPSERT INTO t SELECT id, n + 1, s FROM t".into(),
        "INSERT INTO e SELECT value, 1, 's' FROM generate_series(1, 99999999)".into(),
        "CREATE INDEX more ON t (s, n)".into(),
        "CREATE UNIQUE INDEX more ON t (s, n)".into(),
        "CREATE INDEX more ON t (upper(s || n || s))".into(),
        "ALTER TABLE t REKEY (n, id)".into(),
        "REPAIR INDEX by_n".into(),
        "CHECK TABLE t FULL".into(),
        "CHECK TABLE t FAST".into(),
        "CHECK DATABASE".into(),
        format!("COPY e FROM '{path}/t.csv'"),
        format!("COPY e FROM '{path}/t.csv' WITH (ON_ERROR skip)"),
        format!("COPY t TO '{path}/out.csv'"),
        format!("COPY t TO '{path}/out.jsonl' WITH (FORMAT jsonl)"),
        format!("COPY t TO '{path}/out.parquet' WITH (FORMAT parquet)"),
        format!("BACKUP TO '{path}/backup'"),
        "ANALYZE t".into(),
        "ADVISE FOR (SELECT * FROM t WHERE s = 's5'), (SELECT id FROM t WHERE s LIKE 's1%' ORDER BY n)".into(),
        "EXPLAIN WHATIF (INDEX (s, n)) SELECT * FROM t WHERE s = 's5'".into(),
        "LINT TABLE t".into(),
        "SIMULATE WRITES ON t FROM (SELECT * FROM t ORDER BY id) INTO 8 REGIONS UNDER LAYOUT (reverse(lpad(id, 8))), LAYOUT (n, id)".into(),
        "SIMULATE WRITES ON t FROM (SELECT value AS id, 1 AS n, 's' AS s FROM generate_series(1, 1000000) ORDER BY value) INTO 8 REGIONS".into(),
        "ALTER TABLE t SPLIT INTO 8 FROM DATA".into(),
        "SHOW REGIONS FROM t".into(),
        format!("SELECT count(*) FROM t WHERE s IN ({})", (0..3000).map(|n| format!("'s{n}'")).collect::<Vec<_>>().join(",")),
        format!("SELECT count(*) FROM t WHERE {}", (0..200).map(|n| format!("n + {n} = id * {n}")).collect::<Vec<_>>().join(" OR ")),
        format!("INSERT INTO e VALUES {}", (0..3000).map(|n| format!("({n}, 1, 's' || 'x')")).collect::<Vec<_>>().join(",")),
    ]
}

#[test]
fn a_long_statement_ends_soon_after_it_is_told_to() {
    let directory = tempfile::tempdir().unwrap();
    let db = database(directory.path());
    let statements = statements(directory.path());
    let (mut stopped, mut slowest) = (0, (Duration::ZERO, ""));
    for (sql, by_time) in statements.iter().flat_map(|sql| [(sql, true), (sql, false)]) {
        let (mut took, mut error) = told_to_end(&db, sql, by_time);
        // On a busy machine anything may take long once.
        for _ in 0..2 {
            if took >= SOON && error.as_ref().is_some_and(|e| e.kind() == Kind::Cancelled) {
                (took, error) = told_to_end(&db, sql, by_time);
            }
        }
        let how = error.map_or("done".to_owned(), |e| {
            assert_eq!(e.kind(), Kind::Cancelled, "{sql:.100}: {e}");
            assert!(
                e.reason().is_some_and(|why| WRITTEN.iter().any(|text| why.contains(text))),
                "{sql:.100}: {e}"
            );
            stopped += 1;
            "stopped".to_owned()
        });
        println!("{:4} ms, {how}: {sql:.100}", took.as_millis());
        assert!(took < SOON, "{took:?} after it was told to end: {sql:.100}");
        slowest = slowest.max((took, sql));
        let _ = std::fs::remove_dir_all(directory.path().join("backup"));
        let _ = db.execute("DROP INDEX IF EXISTS more");
    }
    println!("{stopped} of {} were stopped, the last after {slowest:?}", 2 * statements.len());
    assert!(stopped > statements.len(), "only {stopped} took long");
    assert_eq!(problems(&db), [""; 0]);
}

/// A load has the writer for as long as its rows take to come. Who reads does not notice, and who writes can stop
/// waiting; so can who changes definitions, without keeping anybody from reading meanwhile.
#[test]
fn whoever_waits_for_a_load_can_be_stopped_and_readers_do_not_wait() {
    over_each_store(|db| {
        db.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT)").unwrap();
        db.execute("INSERT INTO t VALUES (1, 1)").unwrap();
        let (more, rows) = channel::<i64>();
        let (begun, is_loading) = channel();
        thread::scope(|scope| {
            let loading = scope.spawn(|| {
                let rows = rows.into_iter().inspect(|_| begun.send(()).unwrap());
                db.table("t").unwrap().load(rows.map(|id| vec![id.into(), 0.into()]))
            });
            more.send(100).unwrap();
            is_loading.recv().unwrap();
            let mut session = db.session();
            session.execute("BEGIN", &[]).unwrap();
            session.execute("UPDATE t SET n = 2 WHERE id = 1", &[]).unwrap();
            session.execute("SET statement_timeout = '100ms'", &[]).unwrap();
            for sql in [
                "COMMIT",
                "INSERT INTO t VALUES (2, 2)",
                "INSERT INTO t SELECT value, 0 FROM generate_series(1000, 40000)",
                "CREATE TABLE u (id INT PRIMARY KEY)",
                "CREATE INDEX i ON t (n)",
                "CREATE VIEW v AS SELECT 1 AS n",
                "ALTER TABLE t ADD COLUMN m INT",
                "ALTER TABLE t ADD COLUMN m INT DEFAULT 7",
                "ALTER TABLE t ADD CHECK (n > 0)",
                "ALTER TABLE t ALTER COLUMN n SET NOT NULL",
                "ALTER TABLE t REKEY (n, id)",
                "TRUNCATE TABLE t",
                "ANALYZE t",
            ] {
                let (_, error) = ended(&mut session, sql);
                assert_eq!(error.map(|e| e.kind()), Some(Kind::Cancelled), "{sql}");
            }
            // One that waits on.
            let creating = scope.spawn(|| db.execute("CREATE TABLE later (id INT PRIMARY KEY)"));
            thread::sleep(LONG);
            assert!(!creating.is_finished());
            // Whoever waited for the load would wait for ever.
            session.execute("SET statement_timeout = '30s'", &[]).unwrap();
            let (took, error) = ended(&mut session, "SELECT count(*) FROM t");
            assert!(error.is_none(), "{took:?} to read: {error:?}");
            more.send(101).unwrap();
            drop(more);
            assert_eq!(loading.join().unwrap().unwrap(), 2);
            creating.join().unwrap().unwrap();
        });
        assert_eq!(db.query("SELECT id FROM t").unwrap().count(), 3);
        assert_eq!(db.table_names(), ["later", "t"]);
        assert_eq!(problems(&db), [""; 0]);
    });
}

/// Runs a statement until it has been interrupted `times` (count), and drops it; `true` if it ended before.
fn dropped(session: &mut Session, sql: &str, times: usize) -> bool {
    // Outlives the statement, for whose threads it waits.
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut ended = Box::pin(session.execute_async(sql, &[]));
    let mut left = times;
    runtime.block_on(std::future::poll_fn(|context| match ended.as_mut().poll(context) {
        Poll::Ready(outcome) => Poll::Ready(outcome.map(|_| true).unwrap_or_else(|e| panic!("{sql}: {e}"))),
        Poll::Pending if left == 0 => Poll::Ready(false),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    }))
}

/// Also for whoever stops waiting for it, which drops it where it is.
#[test]
fn a_statement_of_several_steps_is_done_or_undone() {
    let directory = tempfile::tempdir().unwrap();
    let csv = directory.path().join("r.csv");
    let rows: String = (0..3000).map(|id| format!("{id}\n")).collect();
    std::fs::write(&csv, format!("id\n{rows}")).unwrap();
    let copy = format!("COPY r (id) FROM '{}' WITH (FORMAT csv, ON_ERROR skip)", csv.display());
    let alter = "ALTER TABLE r ADD COLUMN a INT, ADD COLUMN c TEXT DEFAULT md5(repeat('a', 3)) || 'b'";
    for (sql, is_in_transaction) in [(&*copy, false), (&copy, true), (alter, false), (alter, true)] {
        let mut seen = 0;
        for times in [0; 20].into_iter().chain([1]).chain((1..).map(|n| 3 << n)) {
            let db = Database::in_memory().unwrap();
            let deep = "(".repeat(70) + "md5(repeat('x', 2))" + &")".repeat(70);
            let create = format!(
                "CREATE TABLE r (id INT, b TEXT DEFAULT {deep}, PRIMARY KEY (random(4), lpad(id, 8)))"
            );
            db.execute(&create).unwrap();
            db.execute("INSERT INTO r (id) VALUES (99999)").unwrap();
            let before = shown(&db);
            let mut session = db.session();
            // Whatever may be stopped runs apart.
            let _stops = session.cancel_handle();
            if is_in_transaction {
                session.execute("BEGIN", &[]).unwrap();
            }
            if dropped(&mut session, sql, times) {
                // What another thread computes may have been there at once.
                if times == 0 {
                    continue;
                }
                break;
            }
            seen += 1;
            assert_eq!(session.in_transaction(), is_in_transaction, "{sql}, {times}");
            if is_in_transaction {
                session.execute("COMMIT", &[]).unwrap();
            }
            assert_eq!(shown(&db), before, "{sql}, {times}");
        }
        assert!(seen > 0, "{sql} is never interrupted");
    }
}
