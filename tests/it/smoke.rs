use rowkeydb::Database;

#[test]
fn smoke() {
    let db = Database::in_memory().unwrap();
    let mut s = db.session();
    for sql in [
        "CREATE TABLE orders (order_id BIGINT, buyer INT NOT NULL, ts TIMESTAMP NOT NULL, amount DECIMAL(10,2), status TEXT, PRIMARY KEY (reverse(lpad(order_id, 12))))",
        "CREATE INDEX by_buyer ON orders (lpad(buyer, 6), ts DESC) INCLUDE (amount)",
        "INSERT INTO orders SELECT value, value % 100, to_timestamp(1704067200 + value * 60), value * 1.5, CASE WHEN value % 3 = 0 THEN 'paid' ELSE 'open' END FROM generate_series(1, 5000)",
        "SELECT * FROM orders WHERE order_id = 42",
        "SELECT rowkey, * FROM orders WHERE order_id IN (42, 43)",
        "EXPLAIN SELECT * FROM orders WHERE order_id = 42",
        "EXPLAIN ANALYZE SELECT * FROM orders WHERE buyer = 7 ORDER BY ts DESC LIMIT 10",
        "EXPLAIN ANALYZE SELECT amount, ts FROM orders WHERE buyer = 7 AND ts >= '2024-01-02' ORDER BY ts LIMIT 10",
        "EXPLAIN SELECT status, sum(amount) FROM orders GROUP BY status",
        "SELECT status, sum(amount), count(*) FROM orders GROUP BY status",
        "UPDATE orders SET status = 'closed' WHERE buyer = 7 RETURNING order_id",
        "DELETE FROM orders WHERE buyer IN (SELECT buyer FROM orders WHERE order_id = 3)",
        "SELECT count(*) FROM orders",
        "UPDATE orders SET order_id = 3 WHERE order_id = 4",
        "SELECT nope FROM orders",
        "SELECT rowkey, * FROM by_buyer LIMIT 3",
        "INSERT INTO orders VALUES (1, 2, '2024-01-01', 3.5, 'x')",
        "INSERT INTO orders VALUES (1, 2, '2024-01-01', 3.5, 'x') ON CONFLICT (order_id) DO UPDATE SET amount = orders.amount + excluded.amount RETURNING *",
        "DESCRIBE orders",
        "SHOW INDEXES",
        "SHOW CREATE TABLE orders",
    ] {
        println!("> {sql}");
        match s.execute(sql, &[]) {
            Err(e) => println!("{}", e.render(sql)),
            Ok(o) => {
                for w in &o.warnings {
                    println!("{w}");
                }
                if let Some(n) = o.affected {
                    println!("{} {n}", o.tag);
                }
                let batches: Result<Vec<_>, _> = o.rows.collect();
                match batches {
                    Err(e) => println!("{}", e.render(sql)),
                    Ok(b) => println!("{}", arrow::util::pretty::pretty_format_batches(&b).unwrap()),
                }
            }
        }
    }
}
