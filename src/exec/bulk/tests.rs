//! Loads of many runs: in tests a few hundred rows make one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::engine::{Database, Options};
use crate::error::{Kind, sqlstate};
use crate::store::Engine;
use crate::value::Value;

const TABLE: &str = "CREATE TABLE t (id BIGINT PRIMARY KEY, u BIGINT NOT NULL, v BIGINT, note VARCHAR, \
                     FAMILY n (note))";

/// Runs `test` over a new database of each engine, and one in memory.
fn over_each_store(test: impl Fn(&Database)) {
    test(&Database::in_memory().unwrap());
    for engine in Engine::ALL {
        let folder = tempfile::tempdir().unwrap();
        test(&create(folder.path(), engine));
    }
}

fn create(folder: &Path, engine: Engine) -> Database {
    let options = Options { engine: Some(engine), ..Options::default() };
    Database::open_with(folder.join("db"), options).unwrap()
}

fn define(db: &Database) {
    for sql in [TABLE, "CREATE UNIQUE INDEX by_u ON t (u)", "CREATE INDEX by_v ON t (v) INCLUDE (note)"] {
        db.execute(sql).unwrap();
    }
}

fn row(id: i64, u: i64) -> Vec<Value> {
    vec![id.into(), u.into(), (id % 17).into(), Value::from(format!("the note of {id}"))]
}

/// The numbers below `n`, shuffled.
fn shuffled(n: i64) -> impl Iterator<Item = i64> {
    (0..n).map(move |i| i * 7919 % n)
}

fn load(db: &Database, rows: impl Iterator<Item = Vec<Value>>) -> crate::error::Result<u64> {
    db.table("t").unwrap().load(rows)
}

fn sound(db: &Database) {
    assert_eq!(db.query("CHECK DATABASE").unwrap().count(), 1, "the summary alone");
}

fn count(db: &Database, what: &str) -> i64 {
    let sql = format!("SELECT count(*) AS n FROM {what}");
    db.query(&sql).unwrap().next().unwrap().unwrap().get("n").unwrap()
}

#[test]
fn every_row_of_every_run_is_there() {
    over_each_store(|db| {
        define(db);
        assert_eq!(load(db, shuffled(6000).map(|id| row(id, -id))).unwrap(), 6000);
        sound(db);
        // The same into a table with rows: before, between and behind them.
        assert_eq!(
            load(db, shuffled(6001).map(|id| row(id * 2 - 6001, id + 1))).unwrap_err().sqlstate(),
            sqlstate::UNIQUE
        );
        assert_eq!(load(db, shuffled(6001).map(|id| row(-1 - id, id + 1))).unwrap(), 6001);
        assert_eq!(load(db, shuffled(6001).map(|id| row(10_000 + id, id + 10_000))).unwrap(), 6001);
        assert_eq!(count(db, "t"), 18_002);
        assert_eq!(
            count(db, "t WHERE v = 3 AND note = 'the note of ' || id"),
            count(db, "t WHERE id % 17 = 3")
        );
        sound(db);
    });
}

#[test]
fn keys_taken_by_another_run_or_before_are_refused_by_name() {
    over_each_store(|db| {
        define(db);
        let rows = |changed: (i64, i64)| {
            (0..6000).map(move |n| if n == 5500 { row(changed.0, changed.1) } else { row(n, n) })
        };
        let error = load(db, rows((70, -1))).unwrap_err();
        assert_eq!(error.what(), "rowkey 70 exists already in table \"t\"");
        let error = load(db, rows((-1, 70))).unwrap_err();
        assert_eq!(error.what(), "key 70 exists already in unique index \"by_u\"");
        assert!(error.reason().is_some_and(|why| why.contains("70") && why.contains("-1")), "{error}");
        assert_eq!(count(db, "t"), 0, "nothing is left behind");
        load(db, [row(-1, 3)].into_iter()).unwrap();
        let error = load(db, rows((-5, -5))).unwrap_err();
        assert!(error.reason().is_some_and(|why| why.contains("rowkeys -1 and 3 of")), "{error}");
        let error = load(db, rows((-1, -5))).unwrap_err();
        assert_eq!(error.sqlstate(), sqlstate::UNIQUE);
        assert_eq!(count(db, "t"), 1);
        sound(db);
    });
}

/// Each new row has the rowkey of one expired row and the unique key of another, and the entry of the first in the
/// other index.
#[test]
fn rows_take_the_keys_of_expired_ones() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("t.csv");
    let new = || shuffled(3000).map(|id| (id, 2999 - id));
    // A row that is alive has one of the last two's keys each.
    let rows = new().chain([(-1, 3005), (3005, -1)]);
    let text: String = rows.map(|(id, u)| format!("{id},{u},{}\n", id % 17)).collect();
    fs::write(&csv, format!("id,u,v\n{text}")).unwrap();
    let copy = format!("COPY t (id, u, v) FROM '{}' WITH (ON_ERROR skip)", csv.display());
    over_each_store(|db| {
        for skips in [false, true] {
            db.execute("DROP TABLE IF EXISTS t").unwrap();
            define(db);
            db.execute("ALTER TABLE t SET (ttl = '1 day')").unwrap();
            load(db, (0..3000).map(|id| row(id, id))).unwrap();
            db.pass(2 * 86_400_000_000);
            load(db, (3000..3010).map(|id| row(id, id))).unwrap();
            if skips {
                assert_eq!(db.execute(&copy).unwrap(), 3000);
            } else {
                for taken in [row(-1, 3005), row(3005, -1)] {
                    let rows = new().map(|(id, u)| row(id, u)).chain([taken]);
                    assert_eq!(load(db, rows).unwrap_err().sqlstate(), sqlstate::UNIQUE);
                }
                assert_eq!(load(db, new().map(|(id, u)| row(id, u))).unwrap(), 3000);
            }
            assert_eq!(count(db, "t WHERE u = 2999 - id"), 3000);
            assert_eq!(count(db, "t"), 3010);
            sound(db);
        }
    });
}

/// Many more keys than are kept in memory.
#[test]
fn rows_are_skipped_whose_keys_any_row_before_has() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("t.csv");
    let rows: Vec<(i64, i64)> = (0..9000).map(|n| (n * 7919 % 7001, n * 104_729 % 7507)).collect();
    let text: String = rows.iter().map(|(id, u)| format!("{id},{u}\n")).collect();
    fs::write(&csv, format!("id,u\n{text}")).unwrap();
    let copy = format!("COPY t (id, u) FROM '{}' WITH (ON_ERROR skip)", csv.display());
    over_each_store(|db| {
        for before in [vec![], vec![(5, 7506), (7000, 5)]] {
            db.execute("DROP TABLE IF EXISTS t").unwrap();
            define(db);
            load(db, before.iter().map(|(id, u)| row(*id, *u))).unwrap();
            let (mut expected, mut taken) = (BTreeMap::new(), BTreeMap::new());
            for (id, u) in before.iter().chain(&rows) {
                if !expected.contains_key(id) && !taken.contains_key(u) {
                    expected.insert(*id, *u);
                    taken.insert(*u, *id);
                }
            }
            assert_eq!(db.execute(&copy).unwrap() as usize, expected.len() - before.len());
            let found = db.query("SELECT id, u FROM t ORDER BY id").unwrap();
            let found = found.map(|row| row.map(|row| (row.get("id").unwrap(), row.get("u").unwrap())));
            assert_eq!(found.collect::<Result<Vec<(i64, i64)>, _>>().unwrap(), Vec::from_iter(expected));
            sound(db);
        }
    });
}

/// Some are too long for a key, which only a store would notice; some do not fit a key part.
#[test]
fn rows_are_skipped_that_an_index_cannot_hold_and_nothing_of_them_stays() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("t.csv");
    let note = |id: i64| match id {
        10 | 4000 => "long".repeat(800),
        _ => format!("note {id}"),
    };
    let width = |id: i64| if id % 1000 == 11 { 1000 } else { id % 1000 };
    let is_fit = |id: &i64| note(*id).len() < 1000 && width(*id) < 1000;
    let text: String = (0..9000).map(|id| format!("{id},{id},{},{}\n", width(id), note(id))).collect();
    fs::write(&csv, format!("id,u,v,note\n{text}")).unwrap();
    let copy = format!("COPY t FROM '{}' WITH (ON_ERROR skip)", csv.display());
    over_each_store(|db| {
        define(db);
        db.execute("CREATE INDEX by_note ON t (note)").unwrap();
        db.execute("CREATE INDEX by_width ON t (lpad(v, 3))").unwrap();
        assert_eq!(db.execute(&copy).unwrap() as usize, (0..9000).filter(is_fit).count());
        let found =
            db.query("SELECT id FROM t ORDER BY id").unwrap().map(|row| row.unwrap().get("id").unwrap());
        assert_eq!(found.collect::<Vec<i64>>(), (0..9000).filter(is_fit).collect::<Vec<_>>());
        assert_eq!(count(db, "t WHERE note = 'note 77'"), 1);
        sound(db);
    });
}

#[test]
fn a_load_of_many_runs_fills_pages_as_one_in_order_does() {
    let bytes = |ids: &mut dyn Iterator<Item = i64>| {
        let folder = tempfile::tempdir().unwrap();
        let db = create(folder.path(), Engine::Lmdb);
        db.execute(TABLE).unwrap();
        db.execute("CREATE INDEX by_v ON t (v, id) INCLUDE (note)").unwrap();
        load(&db, ids.map(|id| row(id, id))).unwrap();
        drop(db);
        let strangers = fs::read_dir(folder.path().join("db")).unwrap().map(|file| file.unwrap().file_name());
        let known = ["FORMAT", "LOCK", "data.mdb", "lock.mdb", "log"];
        assert!(strangers.into_iter().all(|name| known.iter().any(|known| name == *known)), "files stay");
        fs::metadata(folder.path().join("db/data.mdb")).unwrap().len()
    };
    let (in_order, mixed) = (bytes(&mut (0..20_000)), bytes(&mut shuffled(20_000)));
    assert!(mixed <= in_order + (16 << 10), "{mixed} bytes instead of {in_order}");
}

#[test]
fn it_can_be_cancelled_while_runs_are_merged() {
    over_each_store(|db| {
        define(db);
        let mut session = db.session();
        let cancel = session.cancel_handle();
        session.on_progress(Arc::new(move |progress| {
            if progress.label == "writing by_v" && progress.done > 0 {
                cancel.cancel();
            }
        }));
        let sql = "INSERT INTO t SELECT value, value, value % 7, 'n' FROM generate_series(1, 20000)";
        assert_eq!(session.execute(sql, &[]).unwrap_err().kind(), Kind::Cancelled);
        assert_eq!(count(db, "t"), 0);
        session.on_progress(Arc::new(|_| {}));
        assert_eq!(session.execute(sql, &[]).unwrap().affected, Some(20_000));
        sound(db);
    });
}
