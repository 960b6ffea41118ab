//! The Rust API: what calls by themselves may do, scripts, rows and their columns.

use rowkeydb::{Database, Kind, OutputColumn, Result, Value};

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
    db.query("SELECT count(*) FROM t").unwrap().one().unwrap().get(0).unwrap()
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
    // By a plan that is kept.
    (0..3).for_each(|_| assert_eq!(rows(1), 8950));
    let before = read();
    assert_eq!(rows(2), 5);
    assert_eq!(read() - before, 5, "rows of buyers that were read");
    assert_eq!(rows(1), 8950);
}

#[test]
fn a_row_is_asked_for_and_its_columns_by_name_or_place() {
    let db = database();
    let row = db.query("SELECT id, note, id FROM t WHERE id = 7").unwrap().one().unwrap();
    assert_eq!(row.columns().collect::<Vec<_>>(), ["id", "note", "id"]);
    assert_eq!((row.get::<u8>("id").unwrap(), row.get::<String>(1).unwrap()), (7, "note; 7".to_owned()));
    assert_eq!(row.get::<i64>(2).unwrap(), 7);
    for (error, what) in [
        (row.get::<i64>(3).unwrap_err(), "the result has no column 3"),
        (row.get::<i64>("x").unwrap_err(), "the result has no column \"x\""),
        (row.get::<i64>(1).unwrap_err(), "column \"note\" is 'note; 7', not a i64"),
        (db.query("SELECT * FROM t WHERE id < 0").unwrap().one().unwrap_err(), "the query gives no row"),
        (db.query("SELECT * FROM t").unwrap().one().unwrap_err(), "the query gives more than one row"),
        (db.query("SELECT * FROM t").unwrap().optional().unwrap_err(), "the query gives more than one row"),
    ] {
        assert_eq!(error.what(), what);
    }
    assert!(db.query("SELECT * FROM t WHERE id < 0").unwrap().optional().unwrap().is_none());
    let error = db.query("SELECT 300 AS n").unwrap().one().unwrap().get::<u8>(0).unwrap_err();
    assert_eq!(error.what(), "column \"n\" is 300, not a u8");
}

#[test]
fn a_prepared_statement_runs_in_transactions_and_a_text_with_parameters_on_any_table_of_its_name() {
    let db = database();
    let put = db.prepare("UPSERT INTO t (id, note) VALUES ($1, $2)").unwrap();
    let find = db.prepare("SELECT note FROM t WHERE id = $1").unwrap();
    let note = |tx: &mut rowkeydb::Session, id: i64| -> Result<String> {
        find.query_in(tx, &[id.into()])?.one()?.get(0)
    };
    db.transaction(|tx| {
        assert_eq!(put.execute_in(tx, &[1.into(), "one".into()])?, 1);
        tx.execute("UPDATE t SET note = $2 WHERE id = $1", &[2.into(), "two".into()])?;
        assert_eq!((note(tx, 1)?, note(tx, 2)?), ("one".to_owned(), "two".to_owned()));
        assert_eq!(note(&mut db.session(), 1)?, "note; 1");
        Ok(())
    })
    .unwrap();
    let mut tx = db.begin().unwrap();
    put.execute_in(&mut tx, &[1.into(), "undone".into()]).unwrap();
    tx.rollback().unwrap();
    assert!(tx.commit().unwrap_err().what().contains("no transaction is open"));
    assert_eq!(note(&mut db.session(), 1).unwrap(), "one");
    // The same text after its table became another one.
    let insert = "INSERT INTO u VALUES ($1, $2)";
    for ty in ["TEXT", "BIGINT"] {
        db.execute_batch(&format!("DROP TABLE IF EXISTS u; CREATE TABLE u (id INT PRIMARY KEY, v {ty})"))
            .unwrap();
        for id in 0..3 {
            db.execute_with(insert, &[id.into(), id.into()]).unwrap();
        }
        assert!(db.execute_with(insert, &[0.into(), 0.into()]).is_err());
        assert!(db.execute_with(insert, &[9.into()]).is_err());
    }
    assert_eq!(db.query("SELECT sum(v) FROM u").unwrap().one().unwrap().get::<i64>(0).unwrap(), 3);
}

#[test]
fn rust_values_come_back_as_they_were() {
    let db = Database::in_memory().unwrap();
    db.execute(
        "CREATE TABLE v (id INT PRIMARY KEY, d DATE, ts TIMESTAMP, tz TIMESTAMPTZ, u UUID, n BIGINT, b VARBINARY)",
    )
    .unwrap();
    let date = chrono::NaiveDate::from_ymd_opt(1899, 12, 31).unwrap();
    let time = date.and_hms_micro_opt(23, 59, 59, 123_456).unwrap();
    let id = uuid::Uuid::from_u128(0x1234_5678_9abc_def0_0fed_cba9_8765_4321);
    let values = [
        1.into(),
        date.into(),
        time.into(),
        time.and_utc().into(),
        id.into(),
        7u32.into(),
        vec![0u8, 1].into(),
    ];
    db.execute_with("INSERT INTO v VALUES ($1, $2, $3, $4, $5, $6, $7)", &values).unwrap();
    let row = db.query("SELECT * FROM v").unwrap().one().unwrap();
    assert_eq!(row.get::<chrono::NaiveDate>("d").unwrap(), date);
    assert_eq!(row.get::<chrono::NaiveDateTime>("ts").unwrap(), time);
    assert_eq!(row.get::<chrono::DateTime<chrono::Utc>>("tz").unwrap(), time.and_utc());
    assert_eq!(row.get::<uuid::Uuid>("u").unwrap(), id);
    assert_eq!((row.get::<usize>("n").unwrap(), row.get::<Option<u16>>("n").unwrap()), (7, Some(7)));
    assert_eq!(row.get::<String>("ts").unwrap(), "1899-12-31 23:59:59.123456");
    assert!(row.get::<chrono::NaiveDate>("ts").is_err());
}

#[test]
fn keys_are_made_of_their_columns() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE o (id BIGINT, day DATE, n INT, PRIMARY KEY (reverse(lpad(id, 6)), '_', to_char(day, 'YYYYMMDD')))")
        .unwrap();
    db.execute("INSERT INTO o VALUES (123, '2024-02-29', 5)").unwrap();
    let table = db.table("o").unwrap();
    let key = |values: &[(&str, Value)]| table.key(values);
    let found = key(&[("day", "2024-02-29".into()), ("id", 123.into())]).unwrap();
    assert_eq!(found, "321000_20240229".into());
    assert_eq!(table.get(found).unwrap().unwrap().get::<i64>("n").unwrap(), 5);
    for (values, what) in [
        (vec![("id", 123.into())], "column \"day\" has no value"),
        (vec![("idd", 123.into())], "table \"o\" has no column \"idd\""),
        (vec![("id", 1_234_567.into()), ("day", "2024-02-29".into())], "does not fit the rowkey part"),
        (vec![("id", "x".into()), ("day", "2024-02-29".into())], "'x' is no"),
    ] {
        let error = key(&values).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    db.execute("CREATE TABLE r (id INT, PRIMARY KEY (random(4), id))").unwrap();
    let error = db.table("r").unwrap().key(&[("id", 1.into())]).unwrap_err();
    assert_eq!(error.what(), "keys of table \"r\" are drawn");
}

/// A plan that is kept gives rows as they lie in the store; the first one gives batches.
#[test]
fn rows_that_are_taken_apart_later_have_the_values_of_batches() {
    let db = Database::in_memory().unwrap();
    db.execute_batch(
        "CREATE TABLE e (id BIGINT, name VARCHAR(8), u UUID, j JSON, ok BOOLEAN, r REAL, x DOUBLE, m DECIMAL(9, 2),
             day DATE, ts TIMESTAMP, tz TIMESTAMPTZ, raw VARBINARY, long VARCHAR, aside VARCHAR, FAMILY f (aside),
             PRIMARY KEY (reverse(lpad(id, 6)), name));
         CREATE INDEX e_by_name ON e (name, m DESC) INCLUDE (day, r, u);
         CREATE INDEX e_by_day ON e (day)",
    )
    .unwrap();
    let mut put = db
        .prepare("INSERT INTO e VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)")
        .unwrap();
    for n in 0..40_i64 {
        let or_null = |value: Value| if n % 7 == 3 { Value::Null } else { value };
        put.execute(&[
            n.into(),
            ["a", "b\0c", "", "ddd"][n as usize % 4].into(),
            or_null(Value::Uuid([n as u8; 16])),
            or_null(Value::Text(format!("{{\"n\": {n}}}"))),
            or_null((n % 2 == 0).into()),
            or_null(Value::Double(f64::from(n as f32 * 0.1))),
            or_null(Value::Double(n as f64 / 3.0)),
            or_null(Value::Decimal(i128::from(n % 5) - 2, 2)),
            or_null(Value::Date(n as i32 - 20)),
            or_null(Value::Timestamp(n * 1_000_003)),
            or_null(Value::TimestampTz(-n * 1_000_003)),
            or_null(Value::Bytes(vec![n as u8; n as usize])),
            or_null("long ".repeat(n as usize * 20).into()),
            or_null("aside".into()),
        ])
        .unwrap();
    }
    for sql in [
        "SELECT * FROM e",
        "SELECT rowkey, * FROM e ORDER BY rowkey DESC",
        "SELECT long, id, name FROM e WHERE id = 39",
        "SELECT x, id, x FROM e WHERE r > 1 AND ok",
        "SELECT u, j, ok, r, x, m, day, ts, tz, raw, name, id, long FROM e",
        "SELECT name, m, day, r, u, id, rowkey FROM e WHERE name >= 'b' ORDER BY name, m DESC",
        "SELECT m, name FROM e WHERE name = 'a' AND day > '1970-01-01'",
        "SELECT rowkey, primary_rowkey, name, m, u FROM e_by_name",
        "SELECT * FROM e_by_name ORDER BY rowkey DESC LIMIT 11",
        "SELECT raw, id, day FROM e WHERE day < '1970-01-05' ORDER BY day DESC LIMIT 9",
        "SELECT * FROM e WHERE day = '1970-01-05' OR name = 'ddd'",
        "SELECT id, day FROM e WHERE day = '1970-01-05' OR name = 'ddd'",
        "SELECT aside, id FROM e WHERE id IN (1, 2, 3)",
        "SELECT u FROM e WHERE id = 77",
    ] {
        let mut query = db.prepare(sql).unwrap();
        let mut rows = || -> Vec<Vec<Value>> {
            query.query(&[]).unwrap().map(|row| row.unwrap().values().unwrap()).collect()
        };
        let first = format!("{:?}", rows());
        for _ in 0..3 {
            assert_eq!(format!("{:?}", rows()), first, "{sql}");
        }
    }
}

#[test]
fn nothing_comes_after_an_error() {
    let db = Database::in_memory().unwrap();
    db.execute_batch(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT);
         INSERT INTO t SELECT v, v FROM generate_series(0, 20000) t(v)",
    )
    .unwrap();
    let mut rows = db.query("SELECT id FROM t WHERE 10 / n > 1").unwrap();
    assert!(rows.by_ref().any(|row| row.is_err()));
    assert!(rows.next().is_none());
    // Read without streams, batch by batch and row by row.
    for sql in ["SELECT * FROM t", "SELECT id, n + 1 FROM t"] {
        let mut session = db.session();
        let cancel = session.cancel_handle();
        let mut rows = session.query(sql, &[]).unwrap();
        rows.next().unwrap().unwrap();
        cancel.cancel();
        assert!(rows.by_ref().any(|row| row.is_err()), "{sql}");
        assert!(rows.next().is_none(), "{sql}");
    }
}

#[test]
fn rows_become_newtypes_enums_and_short_floats() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct OrderId(i64);
    #[derive(Debug, PartialEq, serde::Deserialize)]
    enum Status {
        Open,
        #[serde(rename = "paid in full")]
        Paid,
    }
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Order {
        id: OrderId,
        status: Status,
        amount: f32,
        before: Option<Status>,
    }
    let db = Database::in_memory().unwrap();
    let sql =
        "SELECT 7 AS id, 'paid in full' AS status, CAST(1.5 AS DECIMAL(5, 2)) AS amount, 'Open' AS before";
    let order: Order = db.query(sql).unwrap().one().unwrap().deserialize().unwrap();
    assert_eq!(
        order,
        Order { id: OrderId(7), status: Status::Paid, amount: 1.5, before: Some(Status::Open) }
    );
    let unknown = db.query("SELECT 1 AS id, 'lost' AS status, 0.5 AS amount, NULL AS before").unwrap().one();
    assert!(unknown.unwrap().deserialize::<Order>().is_err());
}

#[test]
fn a_statement_takes_as_many_values_as_it_has_parameters() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id INT PRIMARY KEY)").unwrap();
    let error = db.execute_with("INSERT INTO t VALUES ($1)", &[Value::Int(1), Value::Int(2)]).unwrap_err();
    assert_eq!((error.what(), error.reason()), ("the statement takes 1 value", Some("2 are given")));
    let mut select = db.prepare("SELECT id FROM t WHERE id = $1").unwrap();
    for _ in 0..3 {
        assert!(select.query(&[]).is_err());
        assert!(select.query(&[Value::Int(1), Value::Int(2)]).is_err());
        assert_eq!(select.query(&[Value::Int(1)]).unwrap().count(), 0);
    }
}
