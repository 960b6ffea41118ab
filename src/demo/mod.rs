//! `rowkeydb demo`: a marketplace of any size, to try things on.
//!
//! [`run`] creates three tables and three indexes, loads rows made by [`market`] through the bulk door
//! (skewed buyers and sellers, two years with seasons, the same in every run), and returns what it did and
//! five queries to try.

mod calendar;
mod market;
mod random;
mod words;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::design::grouped;
use crate::engine::{Database, OnProgress, Progress};
use crate::error::{Error, Result, sqlstate};
use market::{Market, Sizes, customer_of};

/// Orders (count), at most.
pub const ORDERS_MAX: u64 = 10_000_000;

/// Orders between two progress reports (count).
const REPORT_ORDERS: u64 = 4096;

const TABLES: [&str; 3] = ["sellers", "buyers", "orders"];

/// The definitions, as a user would write them. Indexes come before the rows: a bulk load maintains them.
const SCHEMA: [&str; 6] = [
    "CREATE TABLE sellers (
  seller_id INTEGER,
  name TEXT NOT NULL,
  category TEXT NOT NULL,
  city TEXT NOT NULL,
  rating DECIMAL(2, 1) NOT NULL,
  since DATE NOT NULL,
  PRIMARY KEY (lpad(seller_id, 6))
)",
    "CREATE TABLE buyers (
  buyer_id INTEGER,
  customer_id INTEGER NOT NULL,
  name TEXT NOT NULL,
  email TEXT NOT NULL,
  city TEXT NOT NULL,
  since DATE NOT NULL,
  PRIMARY KEY (lpad(buyer_id, 8))
)",
    "CREATE TABLE orders (
  order_id BIGINT,
  buyer_id INTEGER NOT NULL,
  customer_id INTEGER NOT NULL,
  seller_id INTEGER NOT NULL,
  order_time TIMESTAMP NOT NULL,
  status TEXT NOT NULL,
  item TEXT NOT NULL,
  quantity SMALLINT NOT NULL,
  amount DECIMAL(10, 2) NOT NULL,
  street TEXT NOT NULL,
  city TEXT NOT NULL,
  carrier TEXT NOT NULL,
  delivered_at TIMESTAMP,
  FAMILY delivery (street, city, carrier, delivered_at),
  PRIMARY KEY (reverse(lpad(order_id, 12)))
)",
    "CREATE INDEX orders_by_seller ON orders \
     (lpad(seller_id, 6), to_char(order_time, 'YYYYMMDDHH24MISS')) INCLUDE (amount)",
    "CREATE INDEX orders_by_buyer ON orders (lpad(buyer_id, 8), order_time DESC)",
    "CREATE INDEX orders_by_customer ON orders (lpad(customer_id, 8), order_time) INCLUDE (status, amount)",
];

/// What was loaded, and queries to try.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Orders loaded (count).
    pub orders: u64,
    /// Index entries of orders (count).
    pub index_entries: u64,
    /// Time for orders and index entries: to generate, sort and write them, and make them durable.
    pub elapsed: Duration,
    /// Queries to start with.
    pub queries: Vec<Query>,
}

/// A query to try.
#[derive(Clone, Debug)]
pub struct Query {
    /// What it finds, and how.
    pub title: &'static str,
    /// SQL, with its semicolon.
    pub sql: String,
}

impl fmt::Display for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed.as_secs_f64();
        writeln!(
            f,
            "{} orders and {} index entries in {seconds:.1} s ({} orders a second)",
            grouped(self.orders),
            grouped(self.index_entries),
            grouped((self.orders as f64 / seconds.max(0.001)) as u64),
        )?;
        writeln!(f, "\nTry these, and each with EXPLAIN in front:")?;
        self.queries.iter().try_for_each(|query| write!(f, "\n-- {}\n{}\n", query.title, query.sql))
    }
}

/// Creates the tables in `db` and loads them with this many orders.
///
/// Errors: one of the tables exists; those of the store. Each table is loaded completely or not at all.
pub fn run(db: &Database, orders: u64, on_progress: OnProgress) -> Result<Loaded> {
    refuse_if_taken(db)?;
    let sizes = Sizes::of(orders);
    let market = Market::new(sizes);
    SCHEMA.iter().try_for_each(|sql| db.execute(sql).map(drop))?;
    db.table("sellers")?.load((1..=sizes.sellers).map(Market::seller))?;
    let buyers = (1..=sizes.buyers).map(|n| Market::buyer(sizes, n));
    db.table("buyers")?.load_with(buyers, Some(Arc::clone(&on_progress)))?;

    let started = Instant::now();
    let report = Arc::clone(&on_progress);
    let rows = (0..orders).map(|n| {
        if n.is_multiple_of(REPORT_ORDERS) {
            report(&progress(n, orders));
        }
        market.order(sizes, n)
    });
    let loaded = db.table("orders")?.load_with(rows, Some(on_progress))?;
    let elapsed = started.elapsed();
    Ok(Loaded { orders: loaded, index_entries: 3 * loaded, elapsed, queries: queries(&market, sizes) })
}

fn refuse_if_taken(db: &Database) -> Result<()> {
    let names = db.table_names();
    let Some(taken) = TABLES.iter().find(|table| names.iter().any(|name| name == *table)) else {
        return Ok(());
    };
    Err(Error::invalid(format!("the database has a table \"{taken}\" already"))
        .why("the demo makes its own")
        .hint("load it into another folder, or open this one without demo: rowkeydb FOLDER")
        .state(sqlstate::DUPLICATE_TABLE))
}

fn progress(done: u64, total: u64) -> Progress {
    Progress { label: "making orders".into(), done, total: Some(total), unit: "orders", finished: false }
}

fn queries(market: &Market, sizes: Sizes) -> Vec<Query> {
    let query = |title, sql: String| Query { title, sql };
    let buyer = market.buyer_ranked(3);
    vec![
        query(
            "One order by its number: one GET.",
            format!("SELECT * FROM orders WHERE order_id = {};", market.some_order()),
        ),
        query(
            "The last ten orders of a buyer: ten index entries, newest first as they lie.",
            format!(
                "SELECT order_time, item, amount, status FROM orders\n\
                 WHERE buyer_id = {buyer} ORDER BY order_time DESC LIMIT 10;"
            ),
        ),
        query(
            "A busy day of a seller: one range of one index table.",
            format!(
                "SELECT order_time, item, quantity, amount FROM orders\n\
                 WHERE seller_id = {} AND order_time >= '2025-11-11' AND order_time < '2025-11-12'\n\
                 ORDER BY order_time;",
                market.seller_ranked(5)
            ),
        ),
        query(
            "What a customer spent in a year: read from the index table alone.",
            format!(
                "SELECT status, count(*) AS orders, sum(amount) AS spent FROM orders\n\
                 WHERE customer_id = {} AND order_time >= '2025-01-01' AND order_time < '2026-01-01'\n\
                 GROUP BY status ORDER BY spent DESC;",
                customer_of(sizes, buyer)
            ),
        ),
        query(
            "The top sellers of a month: a join, and of each seller a range of one index table.",
            "SELECT seller_id, name, count(*) AS orders, sum(amount) AS revenue\n\
             FROM orders JOIN sellers USING (seller_id)\n\
             WHERE order_time >= '2025-11-01' AND order_time < '2025-12-01'\n\
             GROUP BY seller_id, name ORDER BY revenue DESC LIMIT 5;"
                .into(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet() -> OnProgress {
        Arc::new(|_| {})
    }

    #[test]
    fn every_query_finds_something_by_the_path_it_promises() {
        let db = Database::in_memory().unwrap();
        let loaded = run(&db, 3000, quiet()).unwrap();
        assert_eq!((loaded.orders, loaded.index_entries), (3000, 9000));
        let paths = [
            "Get orders keys=1",
            "IndexScan orders_by_buyer ranges=1",
            "IndexScan orders_by_seller ranges=1",
            "IndexScan orders_by_customer ranges=1",
            "IndexScan orders_by_seller ranges=one per value",
        ];
        for (query, path) in loaded.queries.iter().zip(paths) {
            let sql = query.sql.trim_end_matches(';');
            assert!(db.query(sql).unwrap().count() > 0, "{sql}");
            let lines = db.query(&format!("EXPLAIN {sql}")).unwrap();
            let plan: Vec<String> = lines.map(|row| row.unwrap().get("plan").unwrap()).collect();
            assert!(plan.iter().any(|line| line.contains(path)), "{}", plan.join("\n"));
        }
    }

    #[test]
    fn index_tables_have_an_entry_for_every_order() {
        let db = Database::in_memory().unwrap();
        run(&db, 500, quiet()).unwrap();
        for index in ["orders_by_seller", "orders_by_buyer", "orders_by_customer"] {
            let mut rows = db.query(&format!("SELECT count(*) AS n FROM {index}")).unwrap();
            assert_eq!(rows.next().unwrap().unwrap().get::<i64>("n").unwrap(), 500, "{index}");
        }
    }

    #[test]
    fn tables_of_the_user_are_left_alone() {
        let db = Database::in_memory().unwrap();
        db.execute("CREATE TABLE buyers (id INT PRIMARY KEY)").unwrap();
        let error = run(&db, 10, quiet()).unwrap_err();
        assert_eq!(error.what(), "the database has a table \"buyers\" already");
        assert_eq!(db.table_names(), ["buyers"]);
    }
}
