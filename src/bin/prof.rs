use rowkeydb::{Database, Value};
#[inline(never)]
fn measured(q: &mut rowkeydb::engine::Prepared, n: i64) -> i64 {
    let mut s = 0;
    for i in 0..n {
        let row = q.query(&[Value::Int(230_001_000_000 + i % 1000)]).unwrap().next().unwrap().unwrap();
        s += row.get::<i64>("buyer").unwrap();
    }
    s
}
fn main() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE orders (order_id BIGINT, buyer BIGINT NOT NULL, seller BIGINT NOT NULL, order_time TIMESTAMP NOT NULL, status VARCHAR NOT NULL, amount DECIMAL(12, 2) NOT NULL, item VARCHAR, PRIMARY KEY (reverse(lpad(order_id, 12))))").unwrap();
    db.execute("CREATE INDEX orders_by_buyer ON orders (buyer, order_time DESC)").unwrap();
    db.execute("CREATE INDEX orders_by_seller ON orders (seller, order_time DESC)").unwrap();
    db.execute("CREATE INDEX orders_by_time ON orders (order_time) INCLUDE (amount)").unwrap();
    let mut put = db.prepare("INSERT INTO orders VALUES ($1, $2, $3, '2024-01-01 00:00:00', 'done', 12.34, 'item 000001 in size 3')").unwrap();
    for i in 0..1000i64 {
        put.execute(&[Value::Int(230_001_000_000 + i), Value::Int(i % 50), Value::Int(i % 20)]).unwrap();
    }
    let what = std::env::args().nth(1).unwrap_or_default();
    if what == "insert" {
        let mut put = db.prepare("INSERT INTO orders VALUES ($1, $2, $3, $4, $5, $6, $7)").unwrap();
        inserts(&mut put, 100);
    } else if what == "text" {
        texts(&db, 10);
    } else if what == "ten" {
        let mut q = db.prepare("SELECT order_id, order_time, status, amount FROM orders WHERE buyer = $1 ORDER BY order_time DESC LIMIT 10").unwrap();
        ten(&mut q, 3);
        println!("{}", ten(&mut q, 500));
    } else {
        let mut q = db.prepare("SELECT * FROM orders WHERE order_id = $1").unwrap();
        measured(&mut q, 5);
        println!("{}", measured(&mut q, 1000));
    }
}
#[inline(never)]
fn ten(q: &mut rowkeydb::engine::Prepared, n: i64) -> i64 {
    let mut s = 0;
    for i in 0..n {
        for row in q.query(&[Value::Int(i % 50)]).unwrap() {
            s += row.unwrap().get::<i64>("order_id").unwrap();
        }
    }
    s
}
#[inline(never)]
fn inserts(put: &mut rowkeydb::engine::Prepared, n: i64) {
    for i in 0..n {
        put.execute(&[
            Value::Int(240_001_000_000 + i),
            Value::Int(i % 50),
            Value::Int(i % 20),
            Value::Timestamp(1_700_000_000_000_000 + i),
            Value::Text("done".into()),
            Value::Decimal(1234, 2),
            Value::Text("item 00001 in size 3".into()),
        ])
        .unwrap();
    }
}
#[inline(never)]
fn texts(db: &Database, n: i64) {
    for k in 0..n {
        let rows: Vec<String> = (0..100)
            .map(|i| {
                format!(
                    "({}, {}, {}, '2024-01-01 00:00:00', 'done', 12.34, 'item 0001 in size 3')",
                    250_001_000_000i64 + k * 100 + i,
                    i % 50,
                    i % 20
                )
            })
            .collect();
        db.execute(&format!("INSERT INTO orders VALUES {}", rows.join(", "))).unwrap();
    }
}
