//! CHECK and REPAIR: damage done by hand is found, named as exactly what it is, and mended.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use rowkeydb::key::KeyRange;
use rowkeydb::store::{
    BulkWriter, Cursor, Direction, KeyspaceId, MemoryStore, Reader, Snapshot, Store, WriteBatch,
};
use rowkeydb::{Database, Error, Kind, Rows};

/// Keyspaces are given out in order: the table, then its indexes.
const TABLE: KeyspaceId = KeyspaceId(1);
const BY_V: KeyspaceId = KeyspaceId(2);
const BY_NOTE: KeyspaceId = KeyspaceId(3);

fn database() -> (Arc<MemoryStore>, Database) {
    let store = Arc::new(MemoryStore::new());
    let db = Database::over_store(Box::new(Arc::clone(&store))).unwrap();
    for sql in [
        "CREATE TABLE t (id INT, v INT, note TEXT, PRIMARY KEY (lpad(id, 4)))",
        "CREATE INDEX by_v ON t (lpad(v, 3)) INCLUDE (note)",
        "CREATE UNIQUE INDEX by_note ON t (note)",
        "INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two'), (3, 30, 'three'), (4, 40, NULL)",
    ] {
        db.execute(sql).unwrap();
    }
    (store, db)
}

/// Key and value of each entry of a keyspace.
fn entries(store: &MemoryStore, keyspace: KeyspaceId) -> Vec<(Vec<u8>, Vec<u8>)> {
    let snapshot = store.snapshot().unwrap();
    let reader = snapshot.reader().unwrap();
    let mut cursor = reader.cursor(keyspace, &KeyRange::all(), Direction::Forward).unwrap();
    let mut entries = Vec::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        entries.push((key.to_vec(), value.to_vec()));
    }
    entries
}

fn change(store: &MemoryStore, change: impl FnOnce(&mut WriteBatch)) {
    let mut batch = WriteBatch::default();
    change(&mut batch);
    store.commit(batch).unwrap();
}

/// The findings of a CHECK but for the words, without the summary.
fn findings(db: &Database, sql: &str) -> Vec<String> {
    let rows = db.query(sql).unwrap().map(Result::unwrap);
    let columns = ["problem", "index", "primary_key", "index_key", "column", "table_value", "index_value"];
    let row = |row: rowkeydb::Row| columns.map(|column| row.get::<String>(column).unwrap()).join("|");
    let mut rows: Vec<String> = rows.map(row).collect();
    assert_eq!(rows.pop().as_deref(), Some("summary||||||"));
    rows
}

#[test]
fn a_row_under_a_key_that_its_columns_do_not_make_is_found() {
    let store = Arc::new(MemoryStore::new());
    let db = Database::over_store(Box::new(Arc::clone(&store))).unwrap();
    db.execute("CREATE TABLE t (id INT, v INT, PRIMARY KEY (random(4), left(md5(id), 2), id))").unwrap();
    db.execute("INSERT INTO t SELECT value, 1 FROM generate_series(1, 50)").unwrap();
    assert_eq!(findings(&db, "CHECK TABLE t"), [""; 0]);
    let (key, value) = entries(&store, TABLE).swap_remove(7);
    let mut other = key.clone();
    other[1] ^= 1;
    change(&store, |batch| {
        batch.delete(TABLE, key);
        batch.put(TABLE, other, value);
    });
    for check in ["CHECK TABLE t", "CHECK TABLE t FAST"] {
        let found = findings(&db, check);
        assert!(found.len() == 1 && found[0].starts_with("key_not_canonical||"), "{found:?}");
    }
}

/// A store that notes how many GETs a reader has served at the most, and can refuse to read a keyspace.
struct WatchedStore {
    inner: Arc<MemoryStore>,
    watched: Arc<Watched>,
}

#[derive(Default)]
struct Watched {
    most: AtomicUsize,
    /// 0: none.
    refused: AtomicU32,
}

impl Watched {
    fn check(&self, keyspace: KeyspaceId) -> Result<(), Error> {
        match self.refused.load(Ordering::Relaxed) {
            0 => Ok(()),
            refused if keyspace.0 != refused => Ok(()),
            _ => Err(Error::new(Kind::Unavailable, "the disk is away")),
        }
    }
}

fn watched() -> (Arc<Watched>, Database) {
    let (inner, watched) = (Arc::new(MemoryStore::new()), Arc::<Watched>::default());
    let store = WatchedStore { inner, watched: Arc::clone(&watched) };
    (watched, Database::over_store(Box::new(store)).unwrap())
}

struct WatchedSnapshot(Arc<dyn Snapshot>, Arc<Watched>);

struct WatchedReader<'s> {
    inner: Box<dyn Reader + 's>,
    gets: AtomicUsize,
    watched: Arc<Watched>,
}

impl Store for WatchedStore {
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>, Error> {
        Ok(Arc::new(WatchedSnapshot(self.inner.snapshot()?, Arc::clone(&self.watched))))
    }

    fn commit(&self, batch: WriteBatch) -> Result<(), Error> {
        self.inner.commit(batch)
    }

    fn bulk(&self) -> Result<Box<dyn BulkWriter + '_>, Error> {
        self.inner.bulk()
    }
}

impl Snapshot for WatchedSnapshot {
    fn reader(&self) -> Result<Box<dyn Reader + '_>, Error> {
        let (inner, gets, watched) = (self.0.reader()?, AtomicUsize::new(0), Arc::clone(&self.1));
        Ok(Box::new(WatchedReader { inner, gets, watched }))
    }

    fn version(&self) -> u64 {
        self.0.version()
    }
}

impl Reader for WatchedReader<'_> {
    fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<&[u8]>, Error> {
        self.watched.check(keyspace)?;
        self.watched.most.fetch_max(self.gets.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.inner.get(keyspace, key)
    }

    fn cursor<'a>(
        &'a self,
        keyspace: KeyspaceId,
        range: &KeyRange,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + 'a>, Error> {
        self.inner.cursor(keyspace, range, direction)
    }

    fn entries(&self, keyspace: KeyspaceId) -> Result<u64, Error> {
        self.inner.entries(keyspace)
    }

    fn count(&self, keyspace: KeyspaceId) -> Result<Option<u64>, Error> {
        self.inner.count(keyspace)
    }

    fn verify(
        &self,
        keyspace: KeyspaceId,
        watch: &mut dyn FnMut(u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.inner.verify(keyspace, watch)
    }
}

/// A reader may keep what it has lent: the `lsm` engine's does, so that a CHECK needed as much memory as the table.
#[test]
fn long_walks_renew_the_reader_of_their_gets() {
    let (store, db) = watched();
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT, note TEXT, FAMILY n (note))").unwrap();
    db.execute("INSERT INTO t SELECT value, value, 'note' FROM generate_series(1, 12000)").unwrap();
    for sql in [
        "CREATE INDEX by_note ON t (note)",
        "CREATE INDEX by_v ON t (v)",
        "CHECK TABLE t",
        "CHECK TABLE t FAST",
        "ALTER TABLE t REKEY (v)",
    ] {
        store.most.store(0, Ordering::Relaxed);
        db.execute(sql).unwrap();
        let most = store.most.load(Ordering::Relaxed);
        assert!(most < 5000, "{sql}: {most}");
    }
}

/// They were reported as damage, and hidden where an index's entries were followed to their rows.
#[test]
fn errors_of_reading_that_are_no_damage_are_errors_of_the_check() {
    let (store, db) = watched();
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT, note TEXT, FAMILY n (note))").unwrap();
    db.execute("CREATE UNIQUE INDEX by_v ON t (v)").unwrap();
    db.execute("INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two')").unwrap();
    // The rows, the notes, the entries.
    for refused in 1..=3 {
        store.refused.store(refused, Ordering::Relaxed);
        let error = db.execute("CHECK TABLE t").unwrap_err();
        assert_eq!((error.kind(), error.what()), (Kind::Unavailable, "the disk is away"), "{refused}");
    }
    store.refused.store(0, Ordering::Relaxed);
    assert_eq!(findings(&db, "CHECK TABLE t"), [""; 0]);
}

type Damage = fn(&MemoryStore);

const DAMAGES: [(Damage, &[&str]); 7] = [
    (
        |store| change(store, |batch| batch.delete(BY_V, entries(store, BY_V).swap_remove(1).0)),
        &["missing_index_entry|by_v|0002|020|||"],
    ),
    (
        |store| {
            let (mut key, value) = entries(store, BY_V).swap_remove(1);
            key[..3].copy_from_slice(b"025");
            change(store, |batch| batch.put(BY_V, key, value));
        },
        &["dangling_index_entry|by_v|0002|025|||"],
    ),
    (
        |store| {
            let entries = entries(store, BY_V);
            change(store, |batch| batch.put(BY_V, entries[0].0.clone(), entries[1].1.clone()));
        },
        &["index_value_differs|by_v|0001|010|note|'one'|'two'"],
    ),
    (
        |store| {
            let entries = entries(store, BY_NOTE);
            let at =
                |key: &[u8]| entries.iter().position(|(k, _)| k.windows(3).any(|part| part == key)).unwrap();
            let (one, two) = (at(b"one"), at(b"two"));
            change(store, |batch| batch.put(BY_NOTE, entries[one].0.clone(), entries[two].1.clone()));
        },
        &["index_value_differs|by_note|0001|'one'|primary_rowkey|0001|0002"],
    ),
    (
        |store| change(store, |batch| batch.put(BY_V, entries(store, BY_V).swap_remove(2).0, vec![])),
        &["bad_index_encoding|by_v|0003|030|||"],
    ),
    (
        |store| {
            let entries = entries(store, BY_V);
            let mut of_no_row = entries[1].0.clone();
            of_no_row[..3].copy_from_slice(b"025");
            change(store, |batch| {
                let keys = [entries[1].0.clone(), entries[2].0.clone(), of_no_row];
                keys.into_iter().for_each(|key| batch.put(BY_V, key, vec![]));
            });
        },
        &[
            "bad_index_encoding|by_v|0002|020|||",
            "bad_index_encoding|by_v|0003|030|||",
            "bad_index_encoding|by_v||025|||",
        ],
    ),
    (
        |store| change(store, |batch| batch.clear(BY_V)),
        &[
            "missing_index_entry|by_v|0001|010|||",
            "missing_index_entry|by_v|0002|020|||",
            "missing_index_entry|by_v|0003|030|||",
            "missing_index_entry|by_v|0004|040|||",
        ],
    ),
];

#[test]
fn damage_is_named_as_what_it_is_and_mended() {
    for (damage, expected) in DAMAGES {
        let (store, db) = database();
        damage(&store);
        for depth in ["", "FULL", "FAST"] {
            assert_eq!(findings(&db, &format!("CHECK TABLE t {depth}")), expected, "{depth}");
            assert_eq!(findings(&db, &format!("CHECK DATABASE {depth}")), expected, "{depth}");
        }
        let (hurt, whole) = match expected[0].contains("|by_v|") {
            true => ("by_v", "by_note"),
            false => ("by_note", "by_v"),
        };
        assert_eq!(findings(&db, &format!("CHECK INDEX {hurt}")), expected);
        assert_eq!(findings(&db, &format!("CHECK INDEX {whole} FAST")), [""; 0]);
        assert_eq!(findings(&db, &format!("REPAIR INDEX {hurt} DRY RUN")), expected, "nothing is mended yet");
        for _ in 0..2 {
            db.execute(&format!("REPAIR INDEX {hurt}")).unwrap();
            assert_eq!(findings(&db, "CHECK DATABASE"), [""; 0]);
        }
    }
}

/// Two of them undid each other's work, and the index was Ready and empty.
#[test]
fn an_index_is_repaired_by_one_at_a_time() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)").unwrap();
    db.execute("INSERT INTO t SELECT value, value % 50 FROM generate_series(1, 3000) WHERE value > 0")
        .unwrap();
    db.execute("CREATE INDEX by_v ON t (v)").unwrap();
    let repaired = std::sync::atomic::AtomicUsize::new(0);
    let repair = || {
        for _ in 0..30 {
            match db.execute("REPAIR INDEX by_v") {
                Ok(_) => drop(repaired.fetch_add(1, std::sync::atomic::Ordering::Relaxed)),
                Err(e) => {
                    assert_eq!((e.kind(), e.what()), (Kind::Unavailable, "index \"by_v\" is being built"))
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..3).map(|_| scope.spawn(repair)).collect();
        while !workers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            let found = db.query("SELECT count(*) FROM t WHERE v = 7").unwrap().one().unwrap();
            assert_eq!(found.get::<i64>(0).unwrap(), 60);
        }
    });
    assert!(repaired.into_inner() > 0);
    assert_eq!(findings(&db, "CHECK DATABASE"), [""; 0]);
}

#[test]
fn a_row_that_cannot_be_read_is_named() {
    let (store, db) = database();
    change(&store, |batch| batch.put(TABLE, "0002", vec![0xFF; 9]));
    for depth in ["FULL", "FAST"] {
        let found = findings(&db, &format!("CHECK TABLE t {depth}"));
        assert_eq!(found, ["bad_row_encoding||0002||||"], "{depth}");
    }
}

#[test]
fn a_null_where_none_may_be_and_a_family_without_its_row_are_found() {
    let store = Arc::new(MemoryStore::new());
    let db = Database::over_store(Box::new(Arc::clone(&store))).unwrap();
    for sql in [
        "CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL, note TEXT, FAMILY n (note))",
        "CREATE TABLE u (id INT PRIMARY KEY, v INT, note TEXT, FAMILY n (note))",
        "INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two')",
        "INSERT INTO u VALUES (2, NULL, NULL), (3, NULL, 'three')",
    ] {
        db.execute(sql).unwrap();
    }
    let [rows_t, notes_t, rows_u, notes_u] = [1, 2, 3, 4].map(KeyspaceId);
    let (key, without_v) = entries(&store, rows_u).swap_remove(0);
    let (other_key, note) = entries(&store, notes_u).swap_remove(0);
    assert_eq!((entries(&store, rows_t).len(), entries(&store, notes_t).len()), (2, 2));
    change(&store, |batch| {
        batch.put(rows_t, key, without_v);
        batch.put(notes_t, other_key, note);
    });
    for check in ["CHECK TABLE t", "CHECK TABLE t FAST", "CHECK DATABASE"] {
        assert_eq!(findings(&db, check), ["null_in_not_null||2||v|NULL|", "orphan_data||3||||"], "{check}");
    }
    for sql in
        ["SELECT v FROM t", "SELECT sum(v) FROM t GROUP BY id", "SELECT * FROM t x JOIN t y ON x.v = y.id"]
    {
        let values = |rows: Rows| rows.map(|row| row?.values()).collect::<Result<Vec<_>, _>>();
        let error = db.query(sql).and_then(values).unwrap_err();
        assert_eq!(error.kind(), Kind::Corrupt, "{sql}: {error}");
        assert_eq!(error.reason(), Some("its column \"v\" is NOT NULL and has no value"), "{sql}");
    }
}

/// A transaction has its own definitions, and CHECK looks at what is committed.
#[test]
fn inside_a_transaction_what_others_changed_since_is_no_damage() {
    let (_, db) = database();
    let mut session = db.session();
    session.execute("BEGIN", &[]).unwrap();
    session.execute("INSERT INTO t VALUES (5, 50, 'five')", &[]).unwrap();
    for sql in ["DROP INDEX by_v", "ALTER TABLE t REKEY (id)", "CREATE INDEX by_v ON t (v DESC)"] {
        db.execute(sql).unwrap();
        for check in ["CHECK TABLE t", "CHECK DATABASE FAST", "CHECK INDEX by_note"] {
            let rows = session.query(check, &[]).unwrap().map(Result::unwrap);
            let found: Vec<String> = rows.map(|row| row.get("problem").unwrap()).collect();
            assert_eq!(found, ["summary"], "{check} after {sql}");
        }
    }
}

#[test]
fn a_limit_ends_the_check_and_the_summary_says_so() {
    let (store, db) = database();
    change(&store, |batch| batch.clear(BY_V));
    assert_eq!(findings(&db, "CHECK TABLE t LIMIT 2").len(), 2);
    let last = db.query("CHECK TABLE t LIMIT 2").unwrap().last().unwrap().unwrap();
    let detail = last.get::<String>("detail").unwrap();
    assert!(detail.starts_with("2 problems") && detail.ends_with("stopped at the limit"), "{detail}");
}

#[test]
fn rows_that_a_unique_index_cannot_hold_are_listed_until_they_are_changed() {
    let (_, db) = database();
    db.execute("CREATE TABLE u (id INT PRIMARY KEY, email TEXT)").unwrap();
    db.execute("INSERT INTO u VALUES (1, 'a'), (2, 'b'), (3, 'a'), (4, NULL), (5, NULL), (6, 'a')").unwrap();
    let error = db.execute("CREATE UNIQUE INDEX once ON u (email)").unwrap_err();
    assert_eq!(
        (error.sqlstate(), error.reason()),
        ("23505", Some("'a' in rows 1 and 3, 'a' in rows 1 and 6"))
    );
    assert_eq!(
        findings(&db, "CHECK INDEX once"),
        [
            "index_not_ready|once|||||",
            "duplicate_unique_value|once|3|'a'|primary_rowkey|3|1",
            "duplicate_unique_value|once|6|'a'|primary_rowkey|6|1",
        ]
    );
    // The table is as it was, by whatever path, and can be changed.
    assert_eq!(db.query("SELECT id FROM u WHERE email = 'a'").unwrap().count(), 3);
    db.execute("REPAIR INDEX once").unwrap_err();
    db.execute("DELETE FROM u WHERE id IN (3, 6)").unwrap();
    db.execute("REPAIR INDEX once").unwrap();
    assert_eq!(findings(&db, "CHECK DATABASE"), [""; 0]);
    assert_eq!(db.execute("INSERT INTO u VALUES (7, 'b')").unwrap_err().sqlstate(), "23505");
}

#[test]
fn the_exit_status_tells_whether_something_was_found() {
    let directory = tempfile::tempdir().unwrap();
    let run = |sql: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rowkeydb"));
        command.args(["run", "--db"]).arg(directory.path()).args(["-c", sql]).output().unwrap().status.code()
    };
    assert_eq!(
        run("CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1), (2, 1)"),
        Some(0)
    );
    assert_eq!(run("CHECK DATABASE"), Some(0));
    assert_eq!(run("CREATE UNIQUE INDEX once ON t (v)"), Some(1));
    assert_eq!(run("CHECK DATABASE FAST"), Some(1));
    assert_eq!(run("DROP INDEX once; CHECK DATABASE"), Some(0));
}

/// The catalog of a database with one table, that table's entry changed.
fn opened_with(from: &str, to: &str) -> Result<Database, Error> {
    let store = Arc::new(MemoryStore::new());
    let open = || Database::over_store(Box::new(Arc::clone(&store)));
    let db = open()?;
    db.execute("CREATE TABLE t (a INT, b TEXT, FAMILY f (b), PRIMARY KEY (left(md5(a), 4), a % 16, a))")?;
    db.execute("CREATE INDEX i ON t (upper(b), b) INCLUDE (a) WHERE a > 2")?;
    let snapshot = store.snapshot()?;
    let reader = snapshot.reader()?;
    let stored = reader.get(KeyspaceId(0), b"table/t")?.unwrap().to_vec();
    let changed = String::from_utf8(stored).unwrap().replacen(from, to, 1);
    assert!(from == to || changed.contains(to), "{from} is not in {changed}");
    let mut batch = WriteBatch::default();
    batch.put(KeyspaceId(0), &b"table/t"[..], changed.into_bytes());
    store.commit(batch)?;
    open()
}

#[test]
fn a_definition_that_no_statement_makes_is_refused_when_the_database_is_opened() {
    opened_with("", "").unwrap();
    for (from, to) in [
        (r#""name":"t""#, r#""name":"u""#),
        (r#""name":"b""#, r#""name":"a""#),
        (r#""family":1"#, r#""family":2"#),
        (r#"[{"Column":1}]"#, r#"[{"Column":3}]"#),
        (r#"[{"Column":1}]"#, r#"[{"Column":2}]"#),
        // Of the key.
        (r#"{"Column":0}"#, r#"{"Column":7}"#),
        (r#"{"Column":0}"#, r#"{"Column":1}"#),
        (r#""types":["Integer"]"#, r#""types":["Varchar"]"#),
        (r#""len":4"#, r#""len":33"#),
        (r#""buckets":16"#, r#""buckets":0"#),
        (r#"{"Bytes":2}"#, r#"{"Bytes":3}"#),
        (r#""givers":[2]"#, r#""givers":[9]"#),
        (r#""undoable":[0]"#, r#""undoable":[256]"#),
        (r#""undoable":[0]"#, r#""undoable":[]"#),
        // Of the index.
        (r#""undoable":[2,1]"#, r#""undoable":[2,9]"#),
        (r#""include":[]"#, r#""include":[5]"#),
        (r#"{"field":{"Column":0}"#, r#"{"field":{"Column":9}"#),
        (r#""holds_primary":false"#, r#""holds_primary":true"#),
    ] {
        let error = opened_with(from, to).err().unwrap_or_else(|| panic!("{from} became {to}"));
        assert_eq!(error.kind(), Kind::Corrupt, "{error}");
        assert_eq!(error.what(), "catalog entry \"table/t\" cannot be read", "{error}");
    }
}
