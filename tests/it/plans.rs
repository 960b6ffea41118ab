//! Plans that are kept answer as those that are made anew: for other parameters, other data, other
//! definitions, inside transactions and from many threads.

use rowkeydb::{Database, Result, Value};

fn market() -> Database {
    let db = Database::in_memory().unwrap();
    db.execute(
        "CREATE TABLE orders (id BIGINT, buyer INT NOT NULL, at TIMESTAMP NOT NULL, note TEXT, price DECIMAL(8, 2),
         weight DOUBLE, PRIMARY KEY (reverse(lpad(id, 6))))",
    )
    .unwrap();
    db.execute("CREATE INDEX by_buyer ON orders (buyer, at DESC) INCLUDE (price)").unwrap();
    let mut put = db.prepare("INSERT INTO orders VALUES ($1, $2, $3, $4, $5, $6)").unwrap();
    for n in 1..=200_i64 {
        let at = Value::Timestamp(1_704_067_200_000_000 + n * 3_600_000_000);
        let note = if n % 3 == 0 { Value::Null } else { format!("note {n}").into() };
        let price = Value::Decimal(i128::from(n) * 125, 2);
        put.execute(&[n.into(), (n % 7).into(), at, note, price, (n as f64 / 4.0).into()]).unwrap();
    }
    db
}

/// Rows of a query as text.
fn rows(db: &Database, sql: &str, params: &[Value]) -> Result<Vec<String>> {
    db.query_with(sql, params)?
        .map(|row| Ok(format!("{:?}", row?.deserialize::<serde_json::Value>()?)))
        .collect()
}

/// Asserts that the query says the same with a plan that was kept for other literals, and without.
fn same(db: &Database, sql: &str, literals: &[&str]) {
    for literal in literals.iter().chain(literals) {
        let whole = sql.replace("{}", literal);
        let kept = rows(db, &whole, &[]);
        // A comment inside makes it a text that was never seen: it is planned by itself.
        let alone = rows(db, &format!("SELECT /* {literal} {} */ {}", rand(), &whole["SELECT".len()..]), &[]);
        match (kept, alone) {
            (Ok(kept), Ok(alone)) => assert_eq!(kept, alone, "{whole}"),
            (Err(kept), Err(alone)) => assert_eq!(kept.what(), alone.what(), "{whole}"),
            (kept, alone) => panic!("{whole}: {kept:?} kept, {alone:?} alone"),
        }
    }
}

/// [`same`] for a query whose rows come in any order.
fn same_rows(db: &Database, sql: &str, literals: &[&str]) {
    for literal in literals.iter().chain(literals) {
        let whole = sql.replace("{}", literal);
        let sorted = |sql: &str| {
            let mut rows = rows(db, sql, &[]).unwrap();
            rows.sort();
            rows
        };
        let alone = sorted(&format!("SELECT /* {literal} {} */ {}", rand(), &whole["SELECT".len()..]));
        assert_eq!(sorted(&whole), alone, "{whole}");
    }
}

/// Another number each time.
fn rand() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[test]
fn parameters_alone() {
    let db = market();
    let text =
        "SELECT length($1) AS n, lpad($1, 3) AS p, md5($1) AS m, id FROM orders WHERE id < 3 ORDER BY id";
    let totals = "SELECT n FROM (SELECT count(*) AS n FROM orders) q WHERE $1 = 'ab'";
    for value in ["a", "ab", "a", "ab"] {
        let literal = |sql: &str| rows(&db, &sql.replace("$1", &format!("'{value}'")), &[]).unwrap();
        for sql in [text, totals] {
            let kept = rows(&db, sql, &[value.into()]).unwrap();
            assert_eq!(kept, literal(sql), "{sql}: {value}");
            assert_eq!(kept.len(), if sql == text { 2 } else { usize::from(value == "ab") });
        }
    }
}

#[test]
fn one_key_from_parameters() {
    let db = Database::in_memory().unwrap();
    let numbers = ["7", "-7", "0", "70000", "7.0", "7.5", "'7'", "NULL", "99999999999999999999"];
    let keys = ["id", "id DESC", "lpad(id, 3)", "lpad(999 - id, 3)", "left(md5(id), 2), id", "id % 4, id"];
    for (n, key) in keys.into_iter().enumerate() {
        for ty in ["SMALLINT", "BIGINT"] {
            let t = format!("t{n}_{ty}");
            db.execute(&format!("CREATE TABLE {t} (id {ty}, note TEXT, PRIMARY KEY ({key}))")).unwrap();
            db.execute(&format!("INSERT INTO {t} VALUES (0, 'none'), (7, 'seven'), (9, 'nine')")).unwrap();
            same(&db, &format!("SELECT * FROM {t} WHERE id = {{}}"), &numbers);
            same(&db, &format!("SELECT note FROM {t} WHERE {{}} = id AND note > 'o'"), &numbers);
        }
    }
    db.execute("CREATE TABLE two (a INT, b SMALLINT, PRIMARY KEY (b, '_', lpad(a, 4)))").unwrap();
    db.execute("INSERT INTO two VALUES (1, 2), (2, 1), (2, 2)").unwrap();
    same(&db, "SELECT * FROM two WHERE a = {} AND b = 2", &["1", "2", "3", "70000"]);
    same(&db, "SELECT * FROM two WHERE b = {} AND a = 2", &["1", "2", "3", "70000"]);
    let changed = "SELECT * FROM two WHERE a = 5 AND b = 5";
    assert_eq!(rows(&db, changed, &[]).unwrap().len(), 0);
    db.execute("INSERT INTO two VALUES (5, 5)").unwrap();
    assert_eq!(rows(&db, changed, &[]).unwrap().len(), 1);
}

#[test]
fn other_literals_of_any_kind() {
    let db = market();
    let numbers = ["7", "8", "-1", "7.0", "7.5", "1e1", "99999999999", "'7'", "NULL", "'x'"];
    same(&db, "SELECT * FROM orders WHERE id = {}", &numbers);
    same(&db, "SELECT id, note FROM orders WHERE buyer = {} ORDER BY at DESC LIMIT 3", &numbers);
    same(&db, "SELECT id FROM orders WHERE price = {} ORDER BY id", &numbers);
    same(&db, "SELECT id FROM orders WHERE weight > {} ORDER BY id LIMIT 5", &numbers);
    same(&db, "SELECT id AS \"ID\", buyer, id AS again FROM orders WHERE id IN ({}, 3)", &["7", "8", "3"]);
    let times =
        ["'2024-01-02'", "TIMESTAMP '2024-01-05 03:00:00'", "DATE '2024-01-03'", "'2024-01-02 07:00'"];
    same(&db, "SELECT count(*), sum(price) FROM orders WHERE at >= {}", &times);
    same(&db, "SELECT count(*) AS n FROM orders WHERE buyer = 3 AND at BETWEEN {} AND '2024-01-09'", &times);
    let texts = ["'note 1%'", "'%9'", "'note 100'", "'_ote 2'", "5"];
    same(&db, "SELECT id FROM orders WHERE note LIKE {} ORDER BY id", &texts);
    same(&db, "SELECT buyer, max(price) FROM orders WHERE note > {} GROUP BY buyer ORDER BY buyer", &texts);
    same(
        &db,
        "SELECT a.id FROM orders a JOIN orders b ON a.id = b.id + 1 WHERE b.buyer = {} ORDER BY a.id",
        &["2", "5"],
    );
    same(&db, "SELECT id FROM orders WHERE id > {} AND id < 20 ORDER BY id", &["5", "19", "30"]);
    same(
        &db,
        "SELECT rowkey FROM orders WHERE rowkey < {} ORDER BY rowkey LIMIT 4",
        &["'100000'", "'5'", "''"],
    );
}

#[test]
fn other_literals_above_the_scans() {
    let db = market();
    let numbers = ["7", "28", "28.5", "1e1", "99999999999", "'28'", "NULL", "'x'"];
    for having in
        ["count(*) > {}", "sum(price) > {}", "avg(weight) < {}", "max(note) > {}", "sum(id) / 5 <> {}"]
    {
        same(
            &db,
            &format!("SELECT buyer FROM orders GROUP BY buyer HAVING {having} ORDER BY buyer"),
            &numbers,
        );
    }
    same(
        &db,
        "SELECT buyer, max(at) AS a FROM orders GROUP BY buyer HAVING max(at) > {} ORDER BY buyer",
        &["'2024-01-09 06:00'", "DATE '2024-01-09'", "TIMESTAMP '2024-01-09 07:00:00'", "'x'"],
    );
    same(
        &db,
        "SELECT id, CASE WHEN price > {} THEN 'dear' END AS a FROM orders ORDER BY id LIMIT 30",
        &numbers,
    );
    same(&db, "SELECT sum(price) > {} AS a, count(*) AS n FROM orders WHERE buyer = 3", &numbers);
    same(&db, "SELECT count(*) AS n FROM orders WHERE weight + id > {}", &numbers);
    same(
        &db,
        "SELECT count(*) AS n FROM orders WHERE upper(note) LIKE {}",
        &["'%9'", "'NOTE 1%'", "'note%'"],
    );
    same(&db, "SELECT sum(CASE WHEN buyer = {} THEN 1 ELSE 0 END) AS n FROM orders", &numbers);
    same(
        &db,
        "SELECT a.id FROM orders a LEFT JOIN orders b ON a.id = b.id + 1 AND b.weight + a.id > {} ORDER BY a.id, b.id",
        &["2", "50"],
    );
}

#[test]
fn parameters_of_other_kinds() {
    let db = market();
    let mut get = db.prepare("SELECT id FROM orders WHERE id = $1").unwrap();
    let mut ids = |value: Value| -> Vec<i64> {
        get.query(&[value]).unwrap().map(|row| row.unwrap().get("id").unwrap()).collect()
    };
    for _ in 0..3 {
        assert_eq!(ids(7.into()), [7]);
        assert_eq!(ids(Value::Decimal(700, 2)), [7]);
        assert_eq!(ids(Value::Decimal(701, 2)), [] as [i64; 0]);
        assert_eq!(ids(Value::Double(7.0)), [7]);
        assert_eq!(ids(Value::Null), [] as [i64; 0]);
        assert_eq!(ids(1_000_000.into()), [] as [i64; 0], "wider than the key's pad");
    }
    for _ in 0..3 {
        assert!(get.query(&[]).is_err(), "one parameter is missing");
    }
}

#[test]
fn other_data_and_definitions() {
    let db = market();
    let count = || rows(&db, "SELECT count(*) AS n FROM orders WHERE buyer = 3", &[]).unwrap();
    let star = || rows(&db, "SELECT * FROM orders WHERE id = 11", &[]).unwrap();
    let (before, narrow) = ([count(), count(), count()], [star(), star(), star()]);
    assert!(before.iter().all(|n| *n == before[0]) && narrow.iter().all(|row| *row == narrow[0]));
    db.execute("DELETE FROM orders WHERE buyer = 3 AND id < 50").unwrap();
    assert_ne!(count(), before[0]);
    db.execute("ALTER TABLE orders ADD COLUMN city TEXT").unwrap();
    assert!((0..3).all(|_| star()[0].contains("city")));
    db.execute("DROP INDEX by_buyer").unwrap();
    let without = [count(), count(), count()];
    assert!(without.iter().all(|n| *n == without[0]));
    db.execute("DROP TABLE orders").unwrap();
    assert!(rows(&db, "SELECT * FROM orders WHERE id = 11", &[]).is_err());
}

#[test]
fn statistics_reach_the_plans_that_are_kept() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)").unwrap();
    db.execute("CREATE INDEX by_a ON t (a)").unwrap();
    db.execute("INSERT INTO t SELECT value, value / 19900, value FROM generate_series(1, 20000) AS s(value)")
        .unwrap();
    let sum = |session: &mut rowkeydb::Session| -> Result<usize> {
        let rows = session.execute("SELECT sum(b) AS b FROM t WHERE a = 0", &[])?.rows;
        rows.map(|batch| Ok(batch?.num_rows())).sum()
    };
    // Without statistics the index seems to serve, with a GET for almost every row.
    let mut session = db.session();
    for _ in 0..3 {
        assert_eq!(sum(&mut session).unwrap(), 1);
    }
    session.execute("SET max_gets = 1000", &[]).unwrap();
    let refused = sum(&mut session).unwrap_err();
    assert!(refused.to_string().contains("max_gets"), "{refused}");
    db.execute("ANALYZE t").unwrap();
    assert_eq!(sum(&mut session).unwrap(), 1, "with them the table is read");
}

#[test]
fn a_transaction_sees_its_own_writes() {
    let db = market();
    let sql = "SELECT note FROM orders WHERE id = 10";
    let note = |session: &mut rowkeydb::Session| -> String {
        let batches: Vec<_> = session.execute(sql, &[]).unwrap().rows.collect::<Result<_>>().unwrap();
        format!("{:?}", batches[0].column(0))
    };
    let (mut inside, mut outside) = (db.session(), db.session());
    let before: Vec<String> = (0..3).map(|_| note(&mut outside)).collect();
    inside.execute("BEGIN", &[]).unwrap();
    inside.execute("UPDATE orders SET note = 'mine' WHERE id = 10", &[]).unwrap();
    for _ in 0..3 {
        assert!(note(&mut inside).contains("mine"));
        assert_eq!(note(&mut outside), before[0]);
    }
    inside.execute("COMMIT", &[]).unwrap();
    assert!(note(&mut outside).contains("mine"));
}

#[test]
fn rows_are_found_for_writes_too() {
    let db = market();
    for n in 1..=20_i64 {
        let sql = format!("UPDATE orders SET price = price + {n} WHERE id = {n}");
        assert_eq!(db.execute(&sql).unwrap(), 1, "{sql}");
        let sql = format!("UPDATE orders SET note = 'b' || buyer WHERE buyer = {} AND id > {}", n % 7, n * 9);
        let expected = (n * 9 + 1..=200).filter(|id| id % 7 == n % 7).count() as u64;
        assert_eq!(db.execute(&sql).unwrap(), expected, "{sql}");
    }
    for n in (1..=20_i64).rev() {
        let row =
            db.query(&format!("SELECT price FROM orders WHERE id = {n}")).unwrap().next().unwrap().unwrap();
        assert_eq!(row.get::<f64>("price").unwrap(), n as f64 * 2.25);
        let mut delete = db.prepare("DELETE FROM orders WHERE id = $1").unwrap();
        for expected in [1, 0, 0] {
            assert_eq!(delete.execute(&[n.into()]).unwrap(), expected);
        }
    }
    assert_eq!(db.execute("DELETE FROM orders WHERE id = 1.5").unwrap(), 0);
    assert_eq!(rows(&db, "CHECK TABLE orders", &[]).unwrap().len(), 1);
    assert_eq!(rows(&db, "SELECT count(*) AS n FROM orders", &[]).unwrap(), ["Object {\"n\": Number(180)}"]);
}

#[test]
fn the_time_is_not_kept() {
    let db = market();
    let now = || rows(&db, "SELECT now() AS t, id FROM orders WHERE id = 10", &[]).unwrap();
    let first: Vec<_> = (0..3).map(|_| now()).collect();
    std::thread::sleep(std::time::Duration::from_millis(5));
    assert!(!first.contains(&now()));
    db.execute("CREATE VIEW clock AS SELECT now() AS t, id FROM orders").unwrap();
    let now = || rows(&db, "SELECT * FROM clock WHERE id = 10", &[]).unwrap();
    let first: Vec<_> = (0..3).map(|_| now()).collect();
    std::thread::sleep(std::time::Duration::from_millis(5));
    assert!(!first.contains(&now()), "a view hides the time");
}

#[test]
fn many_threads_share_a_plan() {
    let db = market();
    std::thread::scope(|scope| {
        for thread in 0..8_i64 {
            let db = &db;
            scope.spawn(move || {
                for n in 0..100_i64 {
                    let buyer = (thread + n) % 7;
                    let sql =
                        format!("SELECT count(*) AS n, sum(id) AS ids FROM orders WHERE buyer = {buyer}");
                    let row = db.query(&sql).unwrap().next().unwrap().unwrap();
                    let expected: Vec<i64> = (1..=200).filter(|id| id % 7 == buyer).collect();
                    assert_eq!(row.get::<i64>("n").unwrap(), expected.len() as i64);
                    assert_eq!(row.get::<i64>("ids").unwrap(), expected.iter().sum::<i64>());
                }
            });
        }
    });
}

#[test]
fn what_a_join_learned_is_forgotten_with_the_run() {
    let db = market();
    let pairs =
        "SELECT max(p.price) AS greatest, count(*) AS n FROM orders o JOIN orders p ON p.id = o.id WHERE";
    same(&db, &format!("{pairs} o.buyer = {{}}"), &["1", "6", "3", "99", "0"]);
    same(&db, &format!("{pairs} o.id = {{}} AND p.price < 200"), &["150", "1", "77", "1000"]);
    let top = "SELECT p.id FROM orders o JOIN orders p ON p.buyer = o.buyer WHERE o.id = {} ORDER BY p.id DESC LIMIT 2";
    same(&db, top, &["199", "3", "20"]);
}

/// A few rows look their partners up, many are joined otherwise; either way they find the same.
#[test]
fn what_few_rows_look_up_is_what_many_are_joined_with() {
    let db = Database::in_memory().unwrap();
    db.execute_batch(
        "CREATE TABLE rooms (room INT, title TEXT, kind INT, PRIMARY KEY (reverse(lpad(room, 5))));
         CREATE TABLE people (land TEXT, no INT, name TEXT, PRIMARY KEY (land, no));
         CREATE TABLE seats (room INT, seat INT, land TEXT, no INT, since INT, PRIMARY KEY (room, seat));
         CREATE INDEX by_person ON seats (land, no);
         INSERT INTO rooms SELECT v, 'room ' || v, v % 5 FROM generate_series(1, 2000) t(v) WHERE v % 9 > 0;
         INSERT INTO people SELECT 'L' || v % 7, v, CASE WHEN v % 4 > 0 THEN 'p' || v END
             FROM generate_series(1, 3000) t(v);
         INSERT INTO seats SELECT CASE WHEN v > 2000 THEN 1 ELSE v % 700 END, v,
             CASE WHEN v % 11 > 0 THEN 'L' || v % 7 END, v % 3500, v % 13 FROM generate_series(1, 6000) t(v);
         ANALYZE rooms; ANALYZE people; ANALYZE seats",
    )
    .unwrap();
    let on = "p.land = s.land AND p.no = s.no";
    for sql in [
        format!("SELECT s.seat, p.name FROM seats s JOIN people p ON {on} WHERE s.room = {{}}"),
        format!("SELECT s.seat, p.name, p.no FROM seats s LEFT JOIN people p ON {on} WHERE s.room = {{}}"),
        format!("SELECT p.name FROM people p RIGHT JOIN seats s ON {on} AND p.name > 'p2' WHERE s.room = {{}}"),
        format!("SELECT r.title, p.name FROM seats s JOIN rooms r ON r.room = s.room JOIN people p ON {on} WHERE s.room = {{}}"),
        format!("SELECT r.kind, count(p.name) AS n FROM seats s JOIN rooms r ON r.room = s.since LEFT JOIN people p ON {on} WHERE s.room = {{}} GROUP BY r.kind"),
        format!("SELECT s.seat FROM seats s WHERE s.room = {{}} AND EXISTS (SELECT 1 FROM people p WHERE {on})"),
        format!("SELECT s.seat FROM seats s WHERE s.room = {{}} AND NOT EXISTS (SELECT 1 FROM people p WHERE {on} AND p.no > 9)"),
        "SELECT title FROM rooms WHERE room IN (SELECT since FROM seats WHERE room = {})".into(),
        "SELECT title FROM rooms WHERE kind < 3 AND room IN (SELECT seat FROM seats WHERE room = {})".into(),
        "SELECT title FROM rooms WHERE room NOT IN (SELECT since FROM seats WHERE room = {})".into(),
        "SELECT name FROM people p WHERE land = 'L1' AND no < 50 AND EXISTS (SELECT 1 FROM seats s WHERE s.land = p.land AND s.no = p.no AND s.since <> {})".into(),
        "SELECT r.title, s.seat FROM rooms r JOIN seats s ON s.room = r.room WHERE r.room = {} AND s.since < 7".into(),
        "SELECT r.title, s.seat FROM rooms r LEFT JOIN seats s ON s.room = r.room WHERE r.room IN ({}, 9, 12)".into(),
        "SELECT a.seat, b.seat AS other FROM seats a JOIN seats b ON b.land = a.land AND b.no = a.no WHERE a.room = {} AND a.seat < 3000".into(),
    ] {
        same_rows(&db, &sql, &["7", "1", "33", "0", "-1", "5000", "12"]);
    }
    let in_order = "SELECT r.title, s.seat FROM seats s JOIN rooms r ON r.room = s.since WHERE s.room = {} ORDER BY r.title DESC, r.room";
    same(&db, &format!("{in_order}, s.seat"), &["7", "1", "33", "0"]);
    same(
        &db,
        "SELECT title FROM rooms WHERE room IN (SELECT since FROM seats WHERE room = {}) ORDER BY title",
        &["7", "1", "33"],
    );
    // As many as are wanted, and no more.
    let some = format!("SELECT s.seat FROM seats s JOIN people p ON {on} WHERE s.room = {{}} LIMIT 3");
    for room in [7, 7, 7, 1, 1, 12] {
        assert_eq!(rows(&db, &some.replace("{}", &room.to_string()), &[]).unwrap().len(), 3, "{room}");
    }
}

#[test]
fn what_subqueries_give_stays_with_the_run() {
    let db = market();
    let ask = |buyer: i64| {
        let sql =
            format!("SELECT id FROM orders WHERE id = (SELECT max(id) FROM orders WHERE buyer = {buyer})");
        rows(&db, &sql, &[]).unwrap()
    };
    let expected: Vec<Vec<String>> = (0..7).map(ask).collect();
    let ask_all = || {
        for _ in 0..40 {
            (0..7).for_each(|buyer| assert_eq!(ask(buyer), expected[buyer as usize]));
        }
    };
    std::thread::scope(|scope| {
        (0..3).for_each(|_| drop(scope.spawn(ask_all)));
    });
}

/// The newest that passes a filter, of few and of many, in another order than that of their rowkeys.
#[test]
fn the_first_match_that_passes_is_found_among_many() {
    let db = Database::in_memory().unwrap();
    db.execute_batch(
        "CREATE TABLE follows (who INT, whom INT, PRIMARY KEY (who, whom));
         CREATE TABLE posts (id INT PRIMARY KEY, author INT, at INT, is_open BOOLEAN);
         CREATE INDEX posts_by ON posts (author, at);
         INSERT INTO posts SELECT v, CASE WHEN v < 900 THEN 1 ELSE v % 50 END, v * 7 % 3001, v % 3 > 0 FROM generate_series(1, 3000) t(v);
         INSERT INTO follows SELECT v % 9, v FROM generate_series(1, 49) t(v)",
    )
    .unwrap();
    for newest in ["max(at)", "min(at)"] {
        let found = format!("(SELECT {newest} FROM posts p WHERE p.author = f.whom AND is_open)");
        let query = format!("SELECT whom, {found} AS newest FROM follows f WHERE who = {{}} ORDER BY whom");
        let plain = "SELECT whom, {newest} AS newest FROM follows JOIN posts ON author = whom AND is_open WHERE who + 0 = {} GROUP BY whom ORDER BY whom";
        for who in [3, 4, 5, 1, 1, 2, 1] {
            let asked = rows(&db, &query.replace("{}", &who.to_string()), &[]).unwrap();
            let plain = plain.replace("{newest}", newest).replace("{}", &who.to_string());
            assert_eq!(asked, rows(&db, &plain, &[]).unwrap(), "{newest} for {who}");
        }
    }
}
