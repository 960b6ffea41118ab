//! The marketplace: orders of two years by skewed buyers, from the same numbers every time.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use chrono::DateTime;
use rowkeydb::{Database, Engine, Options, Value};
use rusqlite::{Connection, params};
use tempfile::TempDir;

/// 2023-01-01 and two years, in seconds.
const START: i64 = 1_672_531_200;
const SPAN: i64 = 2 * 365 * 86_400;

/// Number of the first order.
pub const FIRST_ORDER: i64 = 230_001_000_000;

const COLUMNS: &str = "order_id, buyer, seller, order_time, status, amount, item";

/// Our index tables and theirs, in the order in which a load with few of them gets them.
const INDEXES: [(&str, &str); 3] = [
    (
        "CREATE INDEX orders_by_buyer ON orders (buyer, order_time DESC)",
        "CREATE INDEX orders_by_buyer ON orders (buyer, order_time DESC)",
    ),
    (
        "CREATE INDEX orders_by_seller ON orders (seller, order_time DESC)",
        "CREATE INDEX orders_by_seller ON orders (seller, order_time DESC)",
    ),
    (
        "CREATE INDEX orders_by_time ON orders (order_time) INCLUDE (amount)",
        "CREATE INDEX orders_by_time ON orders (order_time, amount)",
    ),
];

/// One order.
pub struct Order {
    pub id: i64,
    pub buyer: i64,
    pub seller: i64,
    /// Seconds since 1970.
    pub time: i64,
    pub status: &'static str,
    pub cents: i64,
    pub item: String,
}

impl Order {
    /// `2023-01-01 00:00:00`
    pub fn time_text(&self) -> String {
        DateTime::from_timestamp(self.time, 0).map_or_else(String::new, |t| t.format("%F %T").to_string())
    }

    /// `12.34`
    pub fn amount_text(&self) -> String {
        format!("{}.{:02}", self.cents / 100, self.cents % 100)
    }

    /// Parameters of our prepared INSERT.
    pub fn values(&self) -> Vec<Value> {
        vec![
            Value::Int(self.id),
            Value::Int(self.buyer),
            Value::Int(self.seller),
            Value::Timestamp(self.time * 1_000_000),
            Value::Text(self.status.to_owned()),
            Value::Decimal(i128::from(self.cents), 2),
            Value::Text(self.item.clone()),
        ]
    }
}

/// How many orders there are, and both databases full of them once somebody asks.
pub struct Market {
    pub orders: usize,
    pub buyers: usize,
    pub engine: Option<Engine>,
    directory: TempDir,
    full: OnceCell<(Database, Connection)>,
}

impl Market {
    /// Of so many orders, ours kept by this engine; writes them to a CSV file.
    pub fn new(orders: usize, engine: Option<Engine>) -> Market {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let market = Market { orders, buyers: orders / 20 + 1, engine, directory, full: OnceCell::new() };
        market.write_csv();
        market
    }

    /// Order number `n`. Orders at and past [`Market::orders`] are those still to come.
    pub fn order(&self, n: usize) -> Order {
        let mut random = Random(n as u64);
        // The cube of an even share: one buyer in a hundred has a fifth of the orders.
        let mut skewed = |of: usize| (random.share().powi(3) * of as f64) as i64;
        let (buyer, seller) = (1 + skewed(self.buyers), 1 + skewed(self.orders / 200 + 1));
        let status = match random.below(20) {
            0 => "cancelled",
            1..=2 => "open",
            3..=5 => "shipped",
            _ => "done",
        };
        Order {
            id: FIRST_ORDER + n as i64,
            buyer,
            seller,
            time: START + SPAN * n as i64 / self.orders as i64,
            status,
            cents: 100 + random.below(50_000) as i64,
            item: format!("item {:06} in size {}", random.below(1_000_000), random.below(9)),
        }
    }

    /// An order to ask about, another one for each `n`.
    pub fn asked(&self, n: usize) -> Order {
        self.order(Random(n as u64).below(self.orders))
    }

    /// An order that is there, another one for each `n`.
    pub fn some_order(&self, n: usize) -> i64 {
        FIRST_ORDER + Random(!(n as u64)).below(self.orders) as i64
    }

    /// Seconds at which month `n` of 24 begins, a month being a twelfth of 365 days.
    pub fn month(n: usize) -> i64 {
        START + SPAN * n as i64 / 24
    }

    /// Both databases with all orders and three index tables.
    pub fn full(&self) -> &(Database, Connection) {
        self.full.get_or_init(|| {
            let (ours, theirs) = (self.our_empty("full", 3), self.their_empty("full", 3));
            self.our_load(&ours).expect("ours loads");
            self.their_load(&theirs).expect("theirs loads");
            let buyers = self.buyers;
            let all = format!("SELECT value, 'buyer ' || value FROM generate_series(1, {buyers})");
            ours.execute("CREATE TABLE buyers (buyer BIGINT PRIMARY KEY, name VARCHAR)").expect("our buyers");
            ours.execute(&format!("INSERT INTO buyers {all}")).expect("all of them");
            let all = format!(
                "WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < {buyers})
                 SELECT value, 'buyer ' || value FROM n"
            );
            theirs
                .execute_batch(&format!(
                    "CREATE TABLE buyers (buyer INTEGER PRIMARY KEY, name TEXT); INSERT INTO buyers {all}"
                ))
                .expect("their buyers");
            (ours, theirs)
        })
    }

    /// A database of ours on disk, with the first `indexes` index tables.
    pub fn our_empty(&self, name: &str, indexes: usize) -> Database {
        let options = Options { engine: self.engine, ..Options::default() };
        let db = Database::open_with(self.path(name, ""), options).expect("a new database");
        let table = "CREATE TABLE orders (order_id BIGINT, buyer BIGINT NOT NULL, seller BIGINT NOT NULL, \
                     order_time TIMESTAMP NOT NULL, status VARCHAR NOT NULL, amount DECIMAL(12, 2) NOT NULL, \
                     item VARCHAR, PRIMARY KEY (reverse(lpad(order_id, 12))))";
        for sql in std::iter::once(table).chain(INDEXES.iter().take(indexes).map(|(ours, _)| *ours)) {
            db.execute(sql).expect("our definitions");
        }
        db
    }

    /// A database of SQLite's on disk, the same.
    pub fn their_empty(&self, name: &str, indexes: usize) -> Connection {
        let db = their_open(&self.path(name, ".sqlite"));
        db.execute_batch(
            "CREATE TABLE orders (order_id INTEGER PRIMARY KEY, buyer INTEGER NOT NULL,
                seller INTEGER NOT NULL, order_time INTEGER NOT NULL, status TEXT NOT NULL,
                amount REAL NOT NULL, item TEXT)",
        )
        .expect("their table");
        for (_, sql) in INDEXES.iter().take(indexes) {
            db.execute_batch(sql).expect("their index");
        }
        db
    }

    fn csv(&self) -> PathBuf {
        self.directory.path().join("orders.csv")
    }

    fn write_csv(&self) {
        let mut csv = csv::Writer::from_path(self.csv()).expect("a CSV file");
        csv.write_record(COLUMNS.split(", ")).expect("its header");
        for n in 0..self.orders {
            let order = self.order(n);
            let numbers = [order.id, order.buyer, order.seller].map(|n| n.to_string());
            let texts = [order.time_text(), order.status.into(), order.amount_text(), order.item];
            csv.write_record(numbers.iter().chain(&texts)).expect("a row of it");
        }
        csv.flush().expect("all of it");
    }

    /// Loads the file in one step; gives the number of orders.
    pub fn our_load(&self, db: &Database) -> rowkeydb::Result<f64> {
        Ok(db.execute(&self.our_copy())? as f64)
    }

    /// The statement that loads the file.
    pub fn our_copy(&self) -> String {
        format!("COPY orders FROM '{}'", self.csv().display())
    }

    /// Loads the file in one transaction; gives the number of orders.
    pub fn their_load(&self, db: &Connection) -> rusqlite::Result<f64> {
        db.execute_batch("BEGIN")?;
        let mut insert = db.prepare(their_insert())?;
        let mut rows = 0.0;
        for record in csv::Reader::from_path(self.csv()).expect("the CSV file").records() {
            let record = record.expect("a row of it");
            let number = |at: usize| record[at].parse::<i64>().expect("a number");
            let time = chrono::NaiveDateTime::parse_from_str(&record[3], "%F %T").expect("a time");
            let amount: f64 = record[5].parse().expect("an amount");
            let time = time.and_utc().timestamp();
            insert.execute(params![number(0), number(1), number(2), time, &record[4], amount, &record[6]])?;
            rows += 1.0;
        }
        db.execute_batch("COMMIT")?;
        Ok(rows)
    }

    /// Where a database of this name lies: ours without a suffix, SQLite's files with theirs.
    pub fn path(&self, name: &str, suffix: &str) -> PathBuf {
        self.directory.path().join(format!("{name}{suffix}"))
    }

    /// Removes a database made by [`Market::our_empty`] and its counterpart; both are closed.
    pub fn remove(&self, name: &str) {
        let _ = std::fs::remove_dir_all(self.path(name, ""));
        for suffix in THEIR_FILES {
            let _ = std::fs::remove_file(self.path(name, suffix));
        }
    }
}

/// Suffixes of the files of a database of SQLite's.
pub const THEIR_FILES: [&str; 3] = [".sqlite", ".sqlite-wal", ".sqlite-shm"];

/// Opens a database of SQLite's, as safe as ours: a commit is on the disk when it returns.
pub fn their_open(path: &Path) -> Connection {
    let db = Connection::open(path).expect("a file of theirs");
    db.busy_timeout(std::time::Duration::from_secs(60)).expect("patience");
    db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -262144")
        .expect("their settings");
    db
}

/// SQLite's INSERT of one order.
pub fn their_insert() -> &'static str {
    "INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?)"
}

/// splitmix64 (Steele et al. 2014), one stream for each seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 up to 1.
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}
