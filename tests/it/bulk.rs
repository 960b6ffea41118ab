//! INSERT ... SELECT of more rows than a write batch should hold.

use std::sync::{Arc, Mutex};

use rowkeydb::{Database, Kind, Session};

use crate::engines::over_each_store;

const ROWS: i64 = 20_000;

const TABLE: &str = "CREATE TABLE t (id BIGINT, buyer INTEGER NOT NULL, note TEXT, \
                     FAMILY n (note), PRIMARY KEY (reverse(lpad(id, 9))))";

fn fill(db: &Database) {
    db.execute(TABLE).unwrap();
    db.execute("CREATE INDEX t_by_buyer ON t (buyer, id DESC) INCLUDE (note)").unwrap();
    let rows = "INSERT INTO t SELECT value, value % 100, 'n' || value FROM generate_series(1, 20000)";
    assert_eq!(db.execute(rows).unwrap(), ROWS as u64);
}

fn number(db: &Database, sql: &str) -> i64 {
    db.query(sql).unwrap().next().unwrap().unwrap().get::<i64>("n").unwrap()
}

/// The index table holds exactly what a recomputation from the table gives.
fn assert_index_follows(db: &Database) {
    let differing = "SELECT count(*) AS n FROM (SELECT buyer, id, note, primary_rowkey AS k FROM t_by_buyer) i \
                     FULL JOIN (SELECT buyer AS b, id AS d, note AS t, rowkey AS r FROM t) t \
                     ON k = r AND buyer = b AND id = d AND note = t WHERE k IS NULL OR r IS NULL";
    assert_eq!(number(db, differing), 0);
    assert_eq!(number(db, "SELECT count(*) AS n FROM t"), number(db, "SELECT count(*) AS n FROM t_by_buyer"));
}

#[test]
fn a_table_can_be_inserted_into_itself() {
    over_each_store(|db| {
        fill(&db);
        let again = "INSERT INTO t (note, id, buyer) SELECT note, id + 20000, buyer + 100 FROM t";
        assert_eq!(db.execute(again).unwrap(), ROWS as u64);
        assert_eq!(number(&db, "SELECT count(*) AS n FROM t"), 2 * ROWS);
        assert_eq!(number(&db, "SELECT count(*) AS n FROM t WHERE buyer = 107"), ROWS / 100);
        assert_eq!(number(&db, "SELECT id AS n FROM t WHERE buyer = 107 ORDER BY id DESC LIMIT 1"), 39_907);
        assert_index_follows(&db);
    });
}

#[test]
fn a_duplicate_at_the_end_leaves_nothing_behind() {
    over_each_store(|db| {
        fill(&db);
        let sql = "INSERT INTO t SELECT CASE WHEN id = 20000 THEN 7 ELSE id + 20000 END, buyer, note FROM t";
        let error = db.execute(sql).unwrap_err();
        assert_eq!(error.what(), "rowkey 700000000 exists already in table \"t\"");
        let sql = "INSERT INTO t SELECT 100000 + value % 19999, 1, 'x' FROM generate_series(1, 20000)";
        assert!(db.execute(sql).is_err(), "two of the new rows have one key");
        assert_eq!(number(&db, "SELECT count(*) AS n FROM t"), ROWS);
        assert_index_follows(&db);
    });
}

#[test]
fn an_error_names_the_row_of_the_statement() {
    over_each_store(|db| {
        db.execute(TABLE).unwrap();
        let sql = "INSERT INTO t SELECT value, nullif(value, 18000), NULL FROM generate_series(1, 20000) ORDER BY 1";
        let error = db.execute(sql).unwrap_err().to_string();
        assert!(error.contains("column \"buyer\" cannot be NULL"), "{error}");
        assert!(error.contains("in row 18000"), "{error}");
    });
}

#[test]
fn identities_go_on_where_they_were() {
    over_each_store(|db| {
        db.execute("CREATE TABLE i (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v BIGINT)").unwrap();
        db.execute("INSERT INTO i (v) VALUES (-1)").unwrap();
        db.execute("INSERT INTO i (v) SELECT value FROM generate_series(1, 20000)").unwrap();
        db.execute("INSERT INTO i (v) VALUES (-2)").unwrap();
        assert_eq!(number(&db, "SELECT id AS n FROM i WHERE v = -1"), 1);
        assert_eq!(number(&db, "SELECT max(id) AS n FROM i"), ROWS + 2);
        assert_eq!(number(&db, "SELECT count(DISTINCT id) AS n FROM i"), ROWS + 2);
    });
}

#[test]
fn a_handle_loads_by_the_definitions_of_now() {
    over_each_store(|db| {
        db.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT)").unwrap();
        let handle = db.table("t").unwrap();
        let load = |ids: std::ops::Range<i64>| handle.load(ids.map(|id| vec![id.into(), (id % 10).into()]));
        let check = || assert_eq!(db.query("CHECK DATABASE").unwrap().count(), 1, "the summary alone");
        db.execute("CREATE INDEX by_v ON t (v)").unwrap();
        load(0..100).unwrap();
        assert_eq!(number(&db, "SELECT count(*) AS n FROM by_v"), 100);
        check();
        // The next index gets the keyspace of the one that is gone.
        db.execute("DROP INDEX by_v").unwrap();
        load(100..200).unwrap();
        db.execute("CREATE INDEX by_v ON t (v DESC)").unwrap();
        check();
        db.execute("ALTER TABLE t ADD COLUMN w BIGINT").unwrap();
        assert_eq!(load(200..300).unwrap_err().kind(), Kind::Conflict);
        assert_eq!(number(&db, "SELECT count(*) AS n FROM t"), 200);
    });
}

#[test]
fn inside_a_transaction_it_can_be_rolled_back() {
    over_each_store(|db| {
        fill(&db);
        let mut session: Session = db.begin().unwrap();
        session.execute("INSERT INTO t SELECT id + 20000, buyer, note FROM t", &[]).unwrap();
        assert_eq!(number(&db, "SELECT count(*) AS n FROM t"), ROWS, "nobody else sees it");
        session.execute("ROLLBACK", &[]).unwrap();
        assert_eq!(number(&db, "SELECT count(*) AS n FROM t"), ROWS);
    });
}

#[test]
fn progress_is_reported() {
    let db = Database::in_memory().unwrap();
    fill(&db);
    let mut session = db.session();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let reports = Arc::clone(&seen);
    session.on_progress(Arc::new(move |p| reports.lock().unwrap().push(p.clone())));
    session.execute("INSERT INTO t SELECT id + 20000, buyer, note FROM t", &[]).unwrap();
    let seen = seen.lock().unwrap();
    let inserting: Vec<_> = seen.iter().filter(|p| p.label == "inserting into t").collect();
    assert!(inserting.len() > 1 && inserting.windows(2).all(|pair| pair[0].done <= pair[1].done));
    assert_eq!(inserting.last().map(|p| (p.done, p.finished)), Some((ROWS as u64, true)));
}

#[test]
fn the_widths_of_query_and_table_must_agree() {
    let db = Database::in_memory().unwrap();
    fill(&db);
    let error = db.execute("INSERT INTO t SELECT 1, 2, 'a', 4 WHERE false").unwrap_err();
    assert_eq!(error.what(), "row 1 has 4 values for 3 columns");
    assert_eq!(db.execute("INSERT INTO t SELECT 100000, 2").unwrap(), 1, "the last column is NULL");
}
