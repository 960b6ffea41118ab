//! The Rust API: what calls by themselves may do, scripts, rows and their columns.

use rowkeydb::{Database, Kind, OutputColumn};

fn database() -> Database {
    let db = Database::in_memory().unwrap();
    db.execute_batch(
        "CREATE TABLE t (id BIGINT PRIMARY KEY, note TEXT, weight DOUBLE);
         INSERT INTO t SELECT value, 'note; ' || value, value / 4.0 FROM generate_series(1, 1000)",
    )
    .unwrap();
    db
}

fn count(db: &Database) -> i64 {
    db.query("SELECT count(*) AS n FROM t").unwrap().next().unwrap().unwrap().get("n").unwrap()
}

#[test]
fn statements_for_later_ones_are_refused_where_there_are_none() {
    let db = database();
    for sql in ["BEGIN", "BEGIN READ ONLY", "SET statement_timeout = '1s'", "PREPARE p AS SELECT 1"] {
        let error = db.execute(sql).unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported, "{sql}: {error}");
        assert!(error.fix().unwrap().contains("db.session()"), "{error}");
        assert!(db.query(sql).is_err(), "{sql}");
        assert!(db.prepare(sql).unwrap().execute(&[]).is_err(), "{sql}");
        db.session().execute(sql, &[]).unwrap();
    }
}

#[test]
fn a_script_runs_to_its_first_error() {
    let db = database();
    let error = db.execute_batch("DELETE FROM t WHERE id = 1; DELETE FROM u; DELETE FROM t").unwrap_err();
    assert_eq!(error.what(), "there is no table \"u\"");
    assert_eq!(count(&db), 999);
    db.execute_batch("BEGIN; DELETE FROM t WHERE id = 2; COMMIT;").unwrap();
    assert_eq!(count(&db), 998);
    let error = db.execute_batch("BEGIN; DELETE FROM t").unwrap_err();
    assert_eq!(error.what(), "the script ends inside a transaction");
    assert_eq!(count(&db), 998);
}

#[test]
fn batches_go_on_where_rows_have_stopped() {
    let db = database();
    // By a plan of its own, by one that is made to be kept, and by the one that was kept.
    for _ in 0..3 {
        for taken in [0, 1, 300, 1000] {
            let mut rows = db.query("SELECT id, note FROM t WHERE id > 0").unwrap();
            let column = |name: &str, ty: &str| OutputColumn { name: name.into(), type_name: ty.into() };
            assert_eq!(rows.columns()[..], [column("id", "BIGINT"), column("note", "VARCHAR")]);
            assert_eq!(rows.by_ref().take(taken).filter(Result::is_ok).count(), taken);
            let schema = rows.batches();
            let left: Vec<_> = schema.map(Result::unwrap).collect();
            assert_eq!(left.iter().map(|batch| batch.num_rows()).sum::<usize>(), 1000 - taken);
            assert!(left.iter().all(|batch| batch.schema() == left[0].schema()));
        }
    }
}

#[test]
fn numbers_are_read_as_what_can_hold_them() {
    let row =
        database().query("SELECT 7 AS i, -7 AS minus, 1.25 AS x, 0.1 AS y FROM t LIMIT 1").unwrap().next();
    let row = row.unwrap().unwrap();
    assert_eq!((row.get::<u32>("i").unwrap(), row.get::<i16>("minus").unwrap()), (7, -7));
    assert!(row.get::<u32>("minus").is_err());
    let row = database().query("SELECT weight AS x, weight / 10 AS y FROM t WHERE id = 1").unwrap().next();
    let row = row.unwrap().unwrap();
    assert_eq!(row.get::<f32>("x").unwrap(), 0.25);
    assert!(row.get::<f32>("y").is_err(), "a part of it would be lost");
}

/// A plan is kept by its text; what it does with a join is up to each run.
#[test]
fn a_join_that_was_planned_for_many_rows_looks_few_of_them_up() {
    let db = Database::in_memory().unwrap();
    db.execute_batch(
        "CREATE TABLE buyers (id BIGINT PRIMARY KEY, name TEXT) SPLIT ON (1000);
         INSERT INTO buyers SELECT value, 'buyer ' || value FROM generate_series(1, 2000);
         CREATE TABLE orders (id BIGINT PRIMARY KEY, seller BIGINT, buyer BIGINT);
         CREATE INDEX by_seller ON orders (seller);
         INSERT INTO orders SELECT value, CASE WHEN value > 50 THEN 1 ELSE value % 10 + 2 END, value % 2000 + 1
             FROM generate_series(1, 9000) WHERE value <> 0;
         ANALYZE buyers; ANALYZE orders",
    )
    .unwrap();
    let read = || -> i64 {
        let regions = db.query("SHOW REGIONS FROM buyers").unwrap();
        regions.map(|region| region.unwrap().get::<i64>("reads").unwrap()).sum()
    };
    let sql = "SELECT o.id, b.name FROM orders o JOIN buyers b ON b.id = o.buyer WHERE o.seller = $1";
    let mut join = db.prepare(sql).unwrap();
    let mut rows = |seller: i64| join.query(&[seller.into()]).unwrap().map(Result::unwrap).count();
    // The third time by a plan that is kept.
    (0..3).for_each(|_| assert_eq!(rows(1), 8950));
    let before = read();
    assert_eq!(rows(2), 5);
    assert_eq!(read() - before, 5, "rows of buyers that were read");
    assert_eq!(rows(1), 8950);
}
