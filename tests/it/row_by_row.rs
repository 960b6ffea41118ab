//! What a few rows are joined with, sorted by or computed to, one row after the other, is what DataFusion's operators
//! make of them.
//!
//! A query runs row by row if its rows are few. A session that counts what a statement
//! reads leaves that to operators: it is the reference.

mod by_chance;

use rowkeydb::{Database, Session, Value};

use crate::dice::{Dice, setting};

/// A prepared query's rows. Doubles are such that their sums are exact, in whatever order they are added.
fn rows(session: &mut Session, sql: &str, params: &[Value], same: Same) -> Result<Vec<String>, String> {
    // It does not matter whether it is the query that fails or its first row.
    let failed = |e: rowkeydb::Error| format!("{} {}", e.sqlstate(), e.what());
    let rows = session.query(sql, params).map_err(failed)?;
    let mut found = Vec::new();
    for row in rows {
        let values = row.and_then(|row| row.values());
        found.push(values.map(|values| format!("{values:?}")).map_err(failed)?);
    }
    match same {
        Same::Order => {}
        Same::Rows => found.sort(),
        Same::Count => found.iter_mut().for_each(String::clear),
    }
    Ok(found)
}

/// Customers, their orders, the lines of these, and products: keys, index tables and blanks by chance.
fn tables(dice: &mut Dice) -> Database {
    let db = Database::in_memory().unwrap();
    let customer_key = dice.pick(&["id", "reverse(lpad(id, 4))", "md5_bucket(id, 3), id", "id DESC"]);
    let order_key = dice.pick(&[
        "id",
        "reverse(lpad(id, 6))",
        "customer, id",
        "md5_bucket(customer, 4), customer, at, id",
    ]);
    let line_key = dice.pick(&["order_id, n", "order_id, n DESC", "reverse(lpad(order_id, 6)), n"]);
    let by_customer = dice.pick(&[
        "(customer, at DESC)",
        "(customer) INCLUDE (amount)",
        "(lpad(customer, 4), at)",
        "(md5_bucket(customer, 3), customer)",
        "(customer, status) WHERE status IS NOT NULL",
    ]);
    let by_product = dice.pick(&["(product)", "(product, amount)", "(code)", "(n)", "(n, product)"]);
    let (customers, orders) = (1 + dice.below(60), 1 + dice.below(400));
    let lines = 2 * orders;
    for sql in [
        format!("CREATE TABLE customers (id INT, name TEXT, city TEXT NOT NULL, PRIMARY KEY ({customer_key}))"),
        format!(
            "CREATE TABLE orders (id INT, customer INT NOT NULL, by_whom INT, at TIMESTAMP NOT NULL, status TEXT,
             amount DECIMAL(9, 2), weight DOUBLE, FAMILY main (customer, at, by_whom), FAMILY more (weight),
             PRIMARY KEY ({order_key}))"
        ),
        format!(
            "CREATE TABLE lines (order_id INT, n INT, product INT, code TEXT, amount INT, PRIMARY KEY ({line_key}))"
        ),
        "CREATE TABLE products (id INT PRIMARY KEY, code TEXT UNIQUE, title TEXT)".to_owned(),
        format!("CREATE INDEX orders_by_customer ON orders {by_customer}"),
        format!("CREATE INDEX lines_by_product ON lines {by_product}"),
        "CREATE INDEX orders_by_whom ON orders (by_whom)".to_owned(),
        format!(
            "INSERT INTO customers SELECT v, nullif('n' || v % 17, 'n3'), 'c' || v % 5
             FROM generate_series(1, {customers}) s(v)"
        ),
        format!(
            "INSERT INTO orders SELECT v, 1 + v * 7 % ({customers} + 3), nullif(v * 11 % ({customers} + 5), 0),
             TIMESTAMP '2024-01-01' + v % 40 * INTERVAL '1 hour', nullif('s' || v % 4, 's0'),
             nullif(v % 90, 8) * 1.25, CASE WHEN v % 9 > 0 THEN v * 0.125 END FROM generate_series(1, {orders}) s(v)"
        ),
        format!(
            "INSERT INTO lines SELECT v % ({orders} + 9), v / ({orders} + 9), nullif(v * 13 % 41, 6),
             nullif('p' || v * 3 % 43, 'p5'), v % 8 FROM generate_series(1, {lines}) s(v)"
        ),
        "INSERT INTO products SELECT v, nullif('p' || v, 'p7'), 't' || v % 6 FROM generate_series(0, 38) s(v)".to_owned(),
    ] {
        db.execute(&sql).unwrap_or_else(|e| panic!("{sql}\n{e}"));
    }
    if dice.chance(50) {
        db.execute("ANALYZE").unwrap();
    }
    db
}

/// What is the same of two answers to a query.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Same {
    /// Rows and their order.
    Order,
    Rows,
    /// How many there are: ties leave open which.
    Count,
}

/// Queries of `$1`, a customer's, an order's or a product's number; whether their order is whole.
const QUERIES: [(&str, bool); 79] = [
    (
        "SELECT o.id, o.amount, c.name FROM orders o JOIN customers c ON c.id = o.customer WHERE o.id = $1",
        false,
    ),
    ("SELECT * FROM orders o JOIN customers c ON c.id = o.by_whom WHERE o.customer = $1", false),
    (
        "SELECT o.id, c.city FROM orders o LEFT JOIN customers c ON c.id = o.by_whom WHERE o.customer = $1",
        false,
    ),
    ("SELECT c.*, o.weight FROM customers c LEFT JOIN orders o ON o.customer = c.id WHERE c.id = $1", false),
    (
        "SELECT c.id, o.id FROM customers c LEFT JOIN orders o ON o.customer = c.id AND o.status = 's1' WHERE c.id < $1",
        false,
    ),
    ("SELECT o.id, l.n, l.amount FROM orders o JOIN lines l ON l.order_id = o.id WHERE o.id = $1", false),
    (
        "SELECT o.id, l.n, p.title FROM orders o JOIN lines l ON l.order_id = o.id JOIN products p ON p.id = l.product WHERE o.id = $1",
        false,
    ),
    (
        "SELECT o.id, l.n, p.title FROM orders o LEFT JOIN lines l ON l.order_id = o.id LEFT JOIN products p ON p.id = l.product WHERE o.id = $1",
        false,
    ),
    (
        "SELECT o.id, l.n, p.title FROM orders o LEFT JOIN lines l ON l.order_id = o.id LEFT JOIN products p ON p.code = l.code WHERE o.customer = $1",
        false,
    ),
    (
        "SELECT l.n, p.title FROM lines l JOIN products p ON p.id = l.product WHERE l.order_id = $1 ORDER BY l.n",
        true,
    ),
    (
        "SELECT l.n, p.title FROM lines l JOIN products p ON p.id = l.product WHERE l.order_id = $1 ORDER BY p.title DESC, l.n DESC",
        true,
    ),
    (
        "SELECT o.id, c.name FROM orders o JOIN customers c ON c.id = o.customer WHERE o.customer = $1 ORDER BY o.at DESC, o.id LIMIT 3",
        true,
    ),
    (
        "SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON c.id = o.by_whom WHERE o.customer = $1 ORDER BY c.name, o.id LIMIT 4",
        true,
    ),
    (
        "SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON c.id = o.by_whom WHERE o.customer = $1 ORDER BY c.name DESC NULLS LAST, o.weight, o.id DESC",
        true,
    ),
    (
        "SELECT o.id, o.amount FROM orders o WHERE o.customer = $1 ORDER BY o.amount DESC NULLS FIRST, o.id LIMIT 5",
        true,
    ),
    ("SELECT o.id FROM orders o WHERE o.customer = $1 ORDER BY o.weight, o.id DESC", true),
    (
        "SELECT c.name, (SELECT count(*) FROM orders o WHERE o.customer = c.id) FROM customers c WHERE c.id = $1",
        false,
    ),
    (
        "SELECT c.id, (SELECT count(o.status) FROM orders o WHERE o.customer = c.id) AS n FROM customers c WHERE c.id <= $1 ORDER BY n DESC, c.id",
        true,
    ),
    (
        "SELECT c.id, (SELECT sum(o.amount) FROM orders o WHERE o.customer = c.id AND o.status <> 's2') FROM customers c WHERE c.id <= $1",
        false,
    ),
    (
        "SELECT c.id, (SELECT sum(o.weight) FROM orders o WHERE o.customer = c.id), (SELECT max(o.at) FROM orders o WHERE o.by_whom = c.id) FROM customers c WHERE c.id <= $1",
        false,
    ),
    (
        "SELECT c.id, (SELECT avg(o.amount) FROM orders o WHERE o.customer = c.id) + $1 FROM customers c WHERE c.id <= $1",
        false,
    ),
    (
        "SELECT c.id, t.n, t.s FROM customers c LEFT JOIN (SELECT customer, count(*) AS n, sum(amount) AS s, min(at) AS m FROM orders GROUP BY customer) t ON t.customer = c.id WHERE c.id = $1",
        false,
    ),
    (
        "SELECT c.id, t.n FROM customers c JOIN (SELECT customer, count(weight) AS n FROM orders GROUP BY customer) t ON t.customer = c.id WHERE c.id <= $1",
        false,
    ),
    (
        "SELECT c.id, t.n FROM customers c JOIN (SELECT by_whom, status, count(*) AS n FROM orders GROUP BY by_whom, status) t ON t.by_whom = c.id WHERE c.id <= $1",
        false,
    ),
    (
        "SELECT c.name FROM customers c WHERE c.id = $1 AND EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id AND o.at > TIMESTAMP '2024-01-01 09:00:00')",
        false,
    ),
    (
        "SELECT c.id FROM customers c WHERE c.id <= $1 AND EXISTS (SELECT 1 FROM orders o WHERE o.by_whom = c.id AND o.status = 's2')",
        false,
    ),
    (
        "SELECT c.id FROM customers c WHERE c.id <= $1 AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.by_whom = c.id AND o.amount > 50)",
        false,
    ),
    (
        "SELECT o.id FROM orders o WHERE o.customer = $1 AND NOT EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.id)",
        false,
    ),
    (
        "SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON c.id = o.by_whom WHERE o.customer = $1 AND EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.id AND l.amount > 3)",
        false,
    ),
    (
        "SELECT id FROM orders WHERE customer = $1 AND by_whom IN (SELECT id FROM customers WHERE city = 'c1')",
        false,
    ),
    ("SELECT id FROM orders WHERE id IN (SELECT order_id FROM lines WHERE product = $1)", false),
    (
        "SELECT id, amount * 2, CASE WHEN weight > $1 THEN 'heavy' ELSE status END FROM orders WHERE customer = $1",
        false,
    ),
    (
        "SELECT o.id + 1, upper(c.name) || c.city FROM orders o LEFT JOIN customers c ON c.id = o.by_whom WHERE o.customer = $1 ORDER BY o.id",
        true,
    ),
    ("SELECT id, 100 / (amount - 5) FROM orders WHERE customer = $1", false),
    (
        "SELECT o.id, l.n FROM orders o JOIN lines l ON l.order_id = o.id WHERE o.customer = $1 LIMIT 1000",
        false,
    ),
    ("SELECT a.id, b.id FROM orders a JOIN orders b ON b.customer = a.by_whom WHERE a.customer = $1", false),
    (
        "SELECT a.id, b.n FROM lines a JOIN lines b ON b.order_id = a.order_id AND b.n = a.n WHERE a.product = $1",
        false,
    ),
    (
        "SELECT a.order_id, b.n FROM lines a JOIN lines b ON b.order_id = a.order_id AND b.product = a.product WHERE a.product = $1",
        false,
    ),
    ("SELECT c.id, o.rowkey FROM customers c JOIN orders o ON o.customer = c.id WHERE c.id = $1", false),
    ("SELECT p.id, l.order_id, l.n FROM products p JOIN lines l ON l.code = p.code WHERE p.id <= $1", false),
    (
        "SELECT p.id, count(*) FROM products p JOIN lines l ON l.product = p.id WHERE p.id = $1 GROUP BY p.id",
        false,
    ),
    (
        "SELECT c.id, o.id FROM customers c JOIN orders o ON o.customer = c.id AND o.id = $1 WHERE c.id <= $1",
        false,
    ),
    (
        "SELECT c.id, o.id FROM customers c JOIN orders o ON o.by_whom = c.id AND o.customer = c.id WHERE c.id <= $1",
        false,
    ),
    (
        "SELECT DISTINCT c.city FROM orders o JOIN customers c ON c.id = o.customer WHERE o.customer = $1",
        false,
    ),
    (
        "SELECT o.id, s.x FROM orders o JOIN (SELECT order_id, max(amount) AS x FROM lines WHERE amount < $1 GROUP BY order_id) s ON s.order_id = o.id WHERE o.customer = $1",
        false,
    ),
    (
        "SELECT c.city, count(*), sum(o.amount) FROM customers c JOIN orders o ON o.customer = c.id WHERE c.id <= $1 GROUP BY c.city",
        false,
    ),
    (
        "SELECT c.id, count(o.id) AS n FROM customers c LEFT JOIN orders o ON o.by_whom = c.id WHERE c.id <= $1 GROUP BY c.id HAVING count(o.id) <> 2 ORDER BY n, c.id",
        true,
    ),
    (
        "SELECT count(*), max(l.amount) FROM orders o JOIN lines l ON l.order_id = o.id WHERE o.customer = $1",
        false,
    ),
    (
        "SELECT o.id, row_number() OVER (ORDER BY o.at, o.id) FROM orders o JOIN customers c ON c.id = o.customer WHERE c.id = $1",
        false,
    ),
    (
        "SELECT o.id FROM orders o JOIN customers c ON c.id = o.by_whom WHERE o.customer = $1 UNION SELECT l.n FROM lines l JOIN products p ON p.id = l.product WHERE l.order_id = $1",
        false,
    ),
    (
        "SELECT o.id, x.n FROM orders o JOIN customers c ON c.id = o.customer JOIN (SELECT v AS n FROM (VALUES (1), (2)) t(v)) x ON x.n <= c.id WHERE o.id = $1",
        false,
    ),
    (
        "WITH RECURSIVE r(id, depth) AS (SELECT id, 0 FROM customers WHERE id = $1 UNION SELECT o.by_whom, r.depth + 1 FROM r JOIN orders o ON o.customer = r.id JOIN customers c ON c.id = o.by_whom WHERE r.depth < 2) SELECT id, depth FROM r",
        false,
    ),
    (
        "SELECT t.customer, c.name, t.n FROM customers c JOIN (SELECT customer, count(*) AS n FROM orders GROUP BY customer) t ON t.customer = c.id WHERE c.id <= $1 ORDER BY t.customer",
        true,
    ),
    (
        "SELECT o.id, c.name, (SELECT max(amount) FROM lines) FROM orders o JOIN customers c ON c.id = o.customer WHERE o.id = $1",
        false,
    ),
    (
        "SELECT c.id, (SELECT count(*) FROM products) + c.id FROM customers c WHERE c.id <= $1 AND EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id)",
        false,
    ),
    (
        "SELECT DISTINCT c.city, (SELECT max(id) FROM customers) FROM orders o LEFT JOIN customers c ON c.id = o.by_whom WHERE o.customer = $1",
        false,
    ),
    (
        "SELECT o.id FROM orders o JOIN customers c ON c.id = o.customer WHERE o.customer = $1 AND o.amount < (SELECT max(amount) FROM lines)",
        false,
    ),
    (
        "SELECT o.id, l.n, (SELECT city FROM customers WHERE id = 1) AS city FROM orders o JOIN lines l ON l.order_id = o.id WHERE o.id <= $1 ORDER BY o.id, l.n",
        true,
    ),
    (
        "SELECT status, count(*), (SELECT max(id) FROM customers) FROM orders WHERE customer = $1 GROUP BY status",
        false,
    ),
    (
        "SELECT status, count(*) AS n FROM orders WHERE customer = $1 GROUP BY status HAVING count(*) > (SELECT min(n) FROM lines)",
        false,
    ),
    ("SELECT count(*), (SELECT max(title) FROM products) FROM orders WHERE customer = $1", false),
    ("SELECT order_id, product FROM lines WHERE n = $1 % 3", false),
    ("SELECT count(*), max(order_id) FROM lines WHERE n = $1 % 3 AND order_id < 40", false),
    ("SELECT order_id, amount FROM lines WHERE n = 1 AND product = $1 ORDER BY order_id", true),
    (
        "SELECT l.n, p.id FROM lines l JOIN products p ON p.code = l.code WHERE l.order_id = $1 AND p.code <> 'p9'",
        false,
    ),
    ("SELECT status, count(*), sum(amount) FROM orders WHERE customer = $1 GROUP BY status", false),
    (
        "SELECT status, count(*) AS n, sum(weight), min(at) FROM orders WHERE customer = $1 GROUP BY status ORDER BY n DESC, status LIMIT 2",
        true,
    ),
    (
        "SELECT by_whom, status, avg(amount), avg(weight), max(id) FROM orders WHERE customer = $1 GROUP BY status, by_whom",
        false,
    ),
    ("SELECT DISTINCT weight FROM orders WHERE customer = $1", false),
    ("SELECT DISTINCT status, at FROM orders WHERE customer < $1 ORDER BY at DESC, status LIMIT 7", true),
    (
        "SELECT city, count(*) * 2 + $1 FROM customers WHERE id <= $1 GROUP BY city HAVING count(*) > 1 AND min(name) < 'n5'",
        false,
    ),
    (
        "SELECT product, sum(amount) FROM lines WHERE order_id = $1 GROUP BY product HAVING sum(amount) > $1 % 5",
        false,
    ),
    ("SELECT n, count(code) AS c FROM lines WHERE product = $1 GROUP BY n ORDER BY c, n OFFSET 1", true),
    ("SELECT at, count(*) FROM orders WHERE customer = $1 OR by_whom = $1 GROUP BY at", false),
    ("SELECT customer, sum(amount) FROM orders WHERE customer = $1 GROUP BY customer", false),
    ("SELECT amount, code, count(*) FROM lines WHERE n = $1 % 3 GROUP BY code, amount", false),
    (
        "SELECT id, status FROM orders WHERE customer = $1 UNION ALL SELECT id, status FROM orders WHERE by_whom = $1",
        false,
    ),
    (
        "SELECT id FROM orders WHERE id = $1 UNION ALL SELECT order_id FROM lines WHERE order_id = $1 UNION ALL SELECT count(*) FROM lines WHERE product = $1",
        false,
    ),
    (
        "SELECT status, count(*) AS n FROM orders WHERE customer = $1 GROUP BY status UNION ALL SELECT name, id FROM customers WHERE id = $1 ",
        false,
    ),
];

#[test]
fn row_by_row_is_what_operators_make_of_it() {
    let seed = setting("ROWS_SEED", 1);
    for n in 0..setting("ROWS", 6) {
        let mut dice = Dice::new(seed, n);
        let db = tables(&mut dice);
        let mut counting = db.session();
        counting.execute("SET max_gets = 1000000000", &[]).unwrap();
        let mut session = db.session();
        if dice.chance(30) {
            // What is not committed is seen as well.
            session.execute("BEGIN", &[]).unwrap();
            counting.execute("BEGIN", &[]).unwrap();
            for each in [&mut session, &mut counting] {
                each.execute("DELETE FROM orders WHERE id % 5 = 1", &[]).unwrap();
                each.execute("UPDATE lines SET product = 3 WHERE n = 0", &[]).unwrap();
            }
        }
        let queries =
            QUERIES.map(|(sql, ordered)| (sql.to_owned(), if ordered { Same::Order } else { Same::Rows }));
        let others: Vec<_> = (0..25).map(|_| by_chance::query(&mut dice)).collect();
        for (sql, same) in queries.into_iter().chain(others) {
            for _ in 0..6 {
                let params = [Value::Int(dice.below(66) as i64)];
                let expected = rows(&mut counting, &sql, &params, same);
                let found = rows(&mut session, &sql, &params, same);
                assert_eq!(found, expected, "seed {seed}, item {n}: {sql} {params:?}");
            }
        }
    }
}

/// The first rows tell whether the way is the short one; where they are many, now and then or always, it is the other.
#[test]
fn few_and_many_rows_of_one_query() {
    let db = Database::in_memory().unwrap();
    db.execute_batch(
        "CREATE TABLE a (id INT PRIMARY KEY, k INT NOT NULL);
         CREATE TABLE b (id INT PRIMARY KEY, v INT);
         CREATE INDEX a_by_k ON a (k);
         INSERT INTO a SELECT v, CASE WHEN v < 1000 THEN 0 WHEN v < 1064 THEN 1 WHEN v < 1129 THEN 2 ELSE v END
             FROM generate_series(0, 1300) s(v);
         INSERT INTO b SELECT v, v % 7 FROM generate_series(0, 1300) s(v)",
    )
    .unwrap();
    let mut query = db.prepare("SELECT a.id, b.v FROM a JOIN b ON b.id = a.id WHERE a.k = $1").unwrap();
    let mut sorted = db.prepare("SELECT id FROM a WHERE k = $1 ORDER BY id * 0 + id DESC").unwrap();
    let mut first =
        db.prepare("SELECT a.id, b.v FROM a JOIN b ON b.id = a.id WHERE a.k = $1 LIMIT 10").unwrap();
    // Of the first rows few have a partner.
    let few = "SELECT a.id, b.v FROM a JOIN b ON b.id = a.id AND b.v = 3 WHERE a.k = $1 LIMIT 20";
    let mut few = db.prepare(few).unwrap();
    let counts = [(0, 1000), (1, 64), (2, 65), (1200, 1), (5, 0)];
    for turn in 0..200 {
        let (k, count) = counts[turn * turn % counts.len()];
        let params = [Value::Int(k)];
        assert_eq!(query.query(&params).unwrap().map(Result::unwrap).count(), count, "{k}");
        assert_eq!(sorted.query(&params).unwrap().map(Result::unwrap).count(), count, "{k}");
        assert_eq!(first.query(&params).unwrap().map(Result::unwrap).count(), count.min(10), "{k}");
        let partners = partners(k).min(20);
        assert_eq!(few.query(&params).unwrap().map(Result::unwrap).count(), partners, "{k}");
    }
}

/// Partners (count) that are wanted of the rows of `k`.
fn partners(k: i64) -> usize {
    let of = |id: i64| match id {
        ..1000 => 0,
        1000..1064 => 1,
        1064..1129 => 2,
        id => id,
    };
    (0..=1300).filter(|id| of(*id) == k && id % 7 == 3).count()
}

/// However rows are joined, no more of them come than a LIMIT says.
#[test]
fn a_limit_counts_what_is_joined() {
    let db = Database::in_memory().unwrap();
    db.execute_batch(
        "CREATE TABLE a (id INT PRIMARY KEY, k INT);
         CREATE TABLE b (id INT PRIMARY KEY, a INT, v INT);
         CREATE INDEX b_by_a ON b (a);
         INSERT INTO a SELECT v, v % 4 FROM generate_series(1, 40) s(v);
         INSERT INTO b SELECT v, v % 50, v FROM generate_series(1, 3000) s(v)",
    )
    .unwrap();
    let groups = "(SELECT a, count(*) AS n FROM b GROUP BY a)";
    for sql in [
        format!("SELECT a.id, t.n FROM a JOIN {groups} t ON t.a = a.id WHERE a.id > $1 LIMIT 2"),
        format!("SELECT a.id, t.n FROM a LEFT JOIN {groups} t ON t.a = a.id WHERE a.id > $1 LIMIT 2"),
        format!(
            "SELECT a.id, t.n + 1 FROM a JOIN {groups} t ON t.a = a.id WHERE a.id > $1 ORDER BY t.n, a.id LIMIT 2"
        ),
        "SELECT a.id, (SELECT count(*) FROM b WHERE b.a = a.id) FROM a WHERE a.id > $1 LIMIT 2".to_owned(),
        "SELECT a.id, b.v FROM a JOIN b ON b.a = a.id WHERE a.id > $1 LIMIT 2".to_owned(),
        "SELECT DISTINCT x.v FROM (SELECT b.v FROM a JOIN b ON b.a = a.id WHERE a.id > $1 LIMIT 2) x"
            .to_owned(),
        format!(
            "SELECT count(*) FROM (SELECT t.n FROM a JOIN {groups} t ON t.a = a.id WHERE a.id > $1 LIMIT 2) x GROUP BY n % 2, n / 1000 HAVING count(*) < 3 ORDER BY 1 LIMIT 2"
        ),
    ] {
        let mut query = db.prepare(&sql).unwrap();
        for from in [1, 2, 3, 4, 5, 20, 38, 40] {
            let rows = query.query(&[Value::Int(from)]).unwrap().map(Result::unwrap).count();
            let most = (40 - from).min(2) as usize;
            assert!(rows <= most && (rows == most || sql.contains("GROUP BY n")), "{sql} {from}: {rows}");
        }
    }
}

/// Half of the rows may be taken one by one, and the rest as batches.
#[test]
fn joined_rows_as_batches() {
    let db = Database::in_memory().unwrap();
    db.execute_batch(
        "CREATE TABLE a (id INT PRIMARY KEY, note TEXT);
         CREATE TABLE b (a INT, n INT, v DOUBLE, PRIMARY KEY (a, n));
         INSERT INTO a SELECT v, nullif('n' || v, 'n2') FROM generate_series(1, 5) s(v);
         INSERT INTO b SELECT v % 5, v, v / 2.0 FROM generate_series(1, 1000) s(v)",
    )
    .unwrap();
    let mut query =
        db.prepare("SELECT a.note, b.n, b.v FROM a JOIN b ON b.a = a.id WHERE a.id < $1").unwrap();
    let params = [Value::Int(4)];
    for _ in 0..4 {
        let all: Vec<Vec<Value>> =
            query.query(&params).unwrap().map(|row| row.unwrap().values().unwrap()).collect();
        assert_eq!(all.len(), 600);
        let mut rows = query.query(&params).unwrap();
        let first: Vec<Vec<Value>> =
            rows.by_ref().take(7).map(|row| row.unwrap().values().unwrap()).collect();
        let left: usize = rows.batches().map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!((&first[..], left), (&all[..7], 593));
        let whole: usize = query.query(&params).unwrap().batches().map(|b| b.unwrap().num_rows()).sum();
        assert_eq!(whole, 600);
    }
}
