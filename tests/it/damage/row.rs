//! Damaged rows: what is beside them can be read and written, CHECK names each, no statement destroys more, and REPAIR
//! TABLE gives them up.

use std::fs;

use rowkeydb::{Database, Error, Kind, Row};

const ROWS: i64 = 3000;

struct Ledger(tempfile::TempDir);

impl Ledger {
    fn new() -> Ledger {
        let ledger = Ledger(tempfile::tempdir().unwrap());
        let db = ledger.open();
        for sql in [
            "CREATE TABLE t (id INT PRIMARY KEY, a TEXT, c TEXT, b TEXT)",
            "CREATE INDEX t_a ON t (a) INCLUDE (c)",
            &format!(
                "INSERT INTO t SELECT value, 'payload_' || value, 'c of ' || lpad(CAST(value AS TEXT), 6, '0'),
                 'text of ' || lpad(CAST(value AS TEXT), 6, '0') FROM generate_series(1, {ROWS})"
            ),
        ] {
            db.execute(sql).unwrap();
        }
        ledger
    }

    fn open(&self) -> Database {
        Database::open(self.0.path().join("db")).unwrap()
    }

    /// Flips a bit so many bytes behind the start of a text, on all pages that have it and not the other one.
    fn hurt(&self, text: &str, behind: usize, but_not: &str) {
        let path = self.0.path().join("db/data.mdb");
        let mut data = fs::read(&path).unwrap();
        let (text, but_not) = (text.as_bytes(), but_not.as_bytes());
        let find = |page: &[u8], text: &[u8]| page.windows(text.len()).position(|bytes| bytes == text);
        let mut hurt = 0;
        for page in data.chunks_mut(4096) {
            if let Some(at) = find(page, text).filter(|_| but_not.is_empty() || find(page, but_not).is_none())
            {
                page[at + behind] ^= 4;
                hurt += 1;
            }
        }
        assert!(hurt > 0, "nothing has {text:?}");
        fs::write(path, data).unwrap();
    }

    /// A ledger with two damaged rows: a bit of the text of one, and of the checksum behind that of the other.
    fn with_damaged_rows() -> Ledger {
        let ledger = Ledger::new();
        ledger.hurt("text of 000732", 3, "");
        ledger.hurt("text of 001500", "text of 001500".len() + 1, "");
        ledger
    }
}

fn number(db: &Database, sql: &str) -> i64 {
    db.query(sql).unwrap_or_else(|e| panic!("{sql}: {e}")).one().unwrap().get(0).unwrap()
}

fn refusal(db: &Database, sql: &str) -> Error {
    let read = db.query(sql).and_then(|rows| rows.collect::<Result<Vec<Row>, Error>>());
    let error = read.map(|_| ()).expect_err(sql);
    assert_eq!(error.kind(), Kind::Corrupt, "{sql}: {error}");
    error
}

/// These columns of all rows.
fn shown(db: &Database, sql: &str, columns: &[&str]) -> Vec<String> {
    let row = |row: Row| columns.iter().map(|c| row.get::<String>(*c).unwrap()).collect::<Vec<_>>().join("|");
    db.query(sql).unwrap().map(|found| row(found.unwrap())).collect()
}

fn is_clean(db: &Database) {
    let found = shown(db, "CHECK DATABASE", &["problem", "detail"]);
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn ranges_beside_a_damaged_row_are_read_in_both_directions() {
    let ledger = Ledger::with_damaged_rows();
    let db = ledger.open();
    for (range, rows) in
        [("id < 732", 731), ("id > 732 AND id < 1500", 767), ("id > 1500", 1500), ("id <= 731", 731)]
    {
        assert_eq!(number(&db, &format!("SELECT count(b) FROM t WHERE {range}")), rows, "{range}");
        for order in ["", "DESC"] {
            let ids = format!("SELECT id FROM t WHERE {range} AND b <> '' ORDER BY id {order}");
            assert_eq!(db.query(&ids).unwrap().map(Result::unwrap).count() as i64, rows, "{ids}");
        }
    }
    for damaged in ["id <= 732", "id >= 732 AND id < 1000", "id = 732", "id BETWEEN 1400 AND 1500"] {
        let error = refusal(&db, &format!("SELECT b FROM t WHERE {damaged}"));
        assert!(error.what().ends_with(" of table \"t\" is damaged"), "{error}");
        assert!(error.fix().is_some_and(|hint| hint.contains("REPAIR TABLE t removes them")), "{error}");
    }
    for sql in [
        "DELETE FROM t WHERE id = 731",
        "INSERT INTO t VALUES (731, 'payload_731', 'c', 'anew')",
        "UPSERT INTO t VALUES (733, 'payload_733', 'c', 'anew')",
        "UPDATE t SET b = 'seen' WHERE id > 732 AND id < 800",
    ] {
        db.execute(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    }
    assert_eq!(number(&db, "SELECT count(b) FROM t WHERE id < 732"), 731);
}

#[test]
fn check_names_every_damaged_row_and_counts_all() {
    let db = Ledger::with_damaged_rows();
    let db = db.open();
    for sql in ["CHECK TABLE t", "CHECK TABLE t FAST", "CHECK DATABASE"] {
        let found = shown(&db, sql, &["problem", "table", "index", "primary_key"]);
        assert_eq!(found, ["checksum|t||732", "checksum|t||1500", "summary|||"], "{sql}");
        let summary = shown(&db, sql, &["detail"]).pop().unwrap();
        assert!(summary.starts_with("2 problems, 3000 rows and 3000 index entries checked"), "{summary}");
    }
}

#[test]
fn repair_index_leaves_a_sound_index_as_it_is_when_a_row_is_damaged() {
    let ledger = Ledger::with_damaged_rows();
    let db = ledger.open();
    let by_index = "SELECT /*+ INDEX(t_a) */ count(*) FROM t WHERE a LIKE 'payload_%'";
    assert_eq!(number(&db, by_index), ROWS);
    let error = refusal(&db, "REPAIR INDEX t_a");
    assert!(error.what().ends_with(" of table \"t\" is damaged"), "{error}");
    assert_eq!(shown(&db, "SHOW INDEXES FROM t", &["state"]), ["Ready"]);
    assert_eq!(number(&db, by_index), ROWS);
}

#[test]
fn repair_table_gives_up_the_damaged_rows_and_nothing_else() {
    let ledger = Ledger::with_damaged_rows();
    let db = ledger.open();
    let columns = ["problem", "index", "primary_key", "index_key"];
    let expected = [
        "damaged_row||732|",
        "damaged_row||1500|",
        "entry_of_damaged_row|t_a|1500|'payload_1500'",
        "entry_of_damaged_row|t_a|732|'payload_732'",
        "summary|||",
    ];
    for sql in ["REPAIR TABLE t DRY RUN", "REPAIR TABLE t DRY RUN", "REPAIR TABLE t"] {
        assert_eq!(shown(&db, sql, &columns), expected, "{sql}");
        assert_eq!(number(&db, "SELECT count(b) FROM t WHERE id < 732"), 731);
    }
    assert_eq!(shown(&db, "REPAIR TABLE t", &columns), ["summary|||"], "it is done");
    is_clean(&db);
    drop(db);
    let db = ledger.open();
    is_clean(&db);
    assert_eq!(number(&db, "SELECT count(b) FROM t"), ROWS - 2);
    assert_eq!(number(&db, "SELECT count(*) FROM t WHERE id IN (732, 1500)"), 0);
    let backup = ledger.0.path().join("backup");
    for sql in [
        "CREATE INDEX t_b ON t (b)",
        "REPAIR INDEX t_a",
        "INSERT INTO t VALUES (732, 'payload_732', 'c', 'from a backup')",
        &format!("BACKUP TO '{}'", backup.display()),
    ] {
        db.execute(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    }
    is_clean(&db);
}

#[test]
fn what_an_index_still_has_of_a_damaged_row_is_said() {
    let ledger = Ledger::with_damaged_rows();
    let said = shown(&ledger.open(), "REPAIR TABLE t DRY RUN", &["detail"]);
    assert!(said[0].contains("its checksum does not match its bytes"), "{said:?}");
    assert_eq!(said[2..4], ["has c = 'c of 001500'", "has c = 'c of 000732'"]);
    assert_eq!(said[4], "2 damaged rows of 3000, and 2 index entries of them, would be removed");
}

#[test]
fn a_damaged_row_of_a_second_family_is_given_up_as_a_whole() {
    let ledger = Ledger(tempfile::tempdir().unwrap());
    let db = ledger.open();
    for sql in [
        "CREATE TABLE t (id INT PRIMARY KEY, a TEXT, b TEXT, FAMILY f (b))",
        "INSERT INTO t SELECT value, 'a', 'text of ' || value || '.' FROM generate_series(1, 500)",
    ] {
        db.execute(sql).unwrap();
    }
    drop(db);
    ledger.hurt("text of 77.", 2, "");
    let db = ledger.open();
    assert_eq!(number(&db, "SELECT count(a) FROM t"), 500, "the other family is sound");
    let found = shown(&db, "CHECK TABLE t", &["problem", "primary_key"]);
    assert_eq!(found, ["bad_row_encoding|77", "summary|"]);
    assert_eq!(shown(&db, "REPAIR TABLE t", &["problem", "primary_key"]), ["damaged_row|77", "summary|"]);
    assert_eq!(number(&db, "SELECT count(b) FROM t"), 499);
    is_clean(&db);
}

#[test]
fn a_damaged_index_entry_gets_the_same_advice_from_every_query_and_repair_index_mends_it() {
    let ledger = Ledger::new();
    ledger.hurt("c of 000077", 3, "text of");
    let db = ledger.open();
    for sql in [
        "SELECT c FROM t WHERE a = 'payload_77'",
        "SELECT /*+ INDEX(t_a) */ count(c) FROM t WHERE a LIKE 'payload_%'",
        "SELECT /*+ INDEX(t_a) */ a, c FROM t WHERE a LIKE 'payload_7%' ORDER BY a",
    ] {
        let error = refusal(&db, sql);
        assert_eq!(error.what(), "index table \"t_a\" is damaged", "{sql}: {error}");
        assert_eq!(error.fix(), Some("REPAIR INDEX t_a builds it anew; check the disk"), "{sql}");
    }
    let found = shown(&db, "CHECK TABLE t", &["problem", "index", "index_key"]);
    assert_eq!(found, ["checksum|t_a|'payload_77'", "summary||"]);
    assert_eq!(shown(&db, "REPAIR TABLE t", &["problem"]), ["summary"], "its rows are sound");
    db.execute("REPAIR INDEX t_a").unwrap();
    is_clean(&db);
}
