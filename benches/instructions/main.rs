//! Instructions that the hot paths take, counted by callgrind over the store in memory: numbers that do not
//! depend on what else the machine does.
//!
//! `cargo bench --bench instructions` counts them and compares with `recorded.txt` beside this file; a path that
//! takes 5 % more than recorded is a failure. `UPDATE_EXPECT=1` records anew: then read the diff. Without
//! valgrind there is a note and nothing to compare. `REGIONS=16` cuts the table, so that what is read and
//! written is counted region by region: the difference is what that costs.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use rowkeydb::{Database, Value};

/// As the `rowkeydb` command has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Orders in the table, each buyer having [`ORDERS_PER_BUYER`].
const ORDERS: i64 = 4_000;
const ORDERS_PER_BUYER: i64 = 20;

/// Times (count) a path runs in the two runs whose difference is counted: what comes before it is in both.
const TIMES: (i64, i64) = (100, 300);

/// More than this share of what is recorded is too much.
const TOLERANCE: f64 = 1.05;

/// Runs a path so many times.
type Run = fn(&Database, i64) -> rowkeydb::Result<()>;

/// The paths by name.
const PATHS: [(&str, Run); 22] = [
    ("get_prepared", |db, times| {
        each(db, times, "SELECT * FROM orders WHERE order_id = $1", |n| vec![Value::Int(n)])
    }),
    ("get_missing_prepared", |db, times| {
        each(db, times, "SELECT * FROM orders WHERE order_id = $1", |n| vec![Value::Int(n + ORDERS)])
    }),
    ("get_text", |db, times| {
        (0..times).try_for_each(|n| rows(db.query(&format!("SELECT * FROM orders WHERE order_id = {n}"))?))
    }),
    ("get_native", |db, times| {
        let table = db.table("orders")?;
        (0..times).try_for_each(|n| table.get(format!("{n:06}").as_str()).map(|row| assert!(row.is_some())))
    }),
    ("last_ten", |db, times| {
        let sql = "SELECT * FROM orders WHERE buyer = $1 ORDER BY order_time DESC LIMIT 10";
        each(db, times, sql, |n| vec![Value::Int(n % (ORDERS / ORDERS_PER_BUYER))])
    }),
    ("some_of_buyer", |db, times| each(db, times, &format!("SELECT * {SOME}"), some)),
    ("sum_of_some", |db, times| each(db, times, &format!("SELECT count(*), sum(amount) {SOME}"), some)),
    ("covered_1000", |db, times| {
        let sql = "SELECT order_time, amount FROM orders WHERE order_time >= $1 AND order_time < $2";
        each(db, times, sql, |n| [n, n + 1_000].map(|n| Value::Timestamp(n * 1_000_000)).into())
    }),
    ("covered_total_1000", |db, times| {
        let sql = "SELECT count(*), sum(amount) FROM orders WHERE order_time >= $1 AND order_time < $2";
        each(db, times, sql, |n| [n, n + 1_000].map(|n| Value::Timestamp(n * 1_000_000)).into())
    }),
    ("grouped_4000", |db, times| {
        each(db, times, "SELECT status, sum(amount) FROM orders GROUP BY status", |_| Vec::new())
    }),
    ("joined_250", |db, times| {
        let sql = "SELECT o.order_id, b.name, o.amount FROM orders o JOIN buyers b ON b.buyer = o.buyer
                   WHERE o.order_time >= $1 AND o.order_time < $2";
        each(db, times, sql, |n| [n, n + 250].map(|n| Value::Timestamp(n % 3_000 * 1_000_000)).into())
    }),
    ("upsert_one", |db, times| {
        let mut upsert = db.prepare("UPSERT INTO orders VALUES ($1, $2, $3, $4, $5)")?;
        (0..times).try_for_each(|n| upsert.execute(&order(n, n % 7)).map(|rows| assert_eq!(rows, 1)))
    }),
    ("on_conflict_one", |db, times| {
        let sql = "INSERT INTO orders VALUES ($1, $2, $3, $4, $5)
                   ON CONFLICT (order_id) DO UPDATE SET amount = orders.amount + excluded.amount";
        each(db, times, sql, |n| order(n, n % 7))
    }),
    ("update_one", |db, times| {
        let sql = "UPDATE orders SET status = $2, amount = amount + 1 WHERE order_id = $1";
        each(db, times, sql, |n| vec![Value::Int(n), Value::Text("paid".into())])
    }),
    ("delete_one", |db, times| {
        each(db, times, "DELETE FROM orders WHERE order_id = $1", |n| vec![Value::Int(n)])
    }),
    ("insert_one_text", |db, times| {
        (0..times).try_for_each(|n| {
            let row = row_text(ORDERS + n);
            db.execute(&format!("INSERT INTO orders VALUES {row} ON CONFLICT DO NOTHING")).map(drop)
        })
    }),
    ("update_one_text", |db, times| {
        (0..times).try_for_each(|n| {
            let to = n % 10;
            db.execute(&format!("UPDATE orders SET status = 'sent {to}' WHERE order_id = {n}")).map(drop)
        })
    }),
    ("insert_100_text", |db, times| {
        (0..times).try_for_each(|n| {
            let first = ORDERS + n * 100;
            let rows: Vec<String> = (first..first + 100).map(row_text).collect();
            db.execute(&format!("INSERT INTO orders VALUES {}", rows.join(", "))).map(drop)
        })
    }),
    ("update_100_text", |db, times| {
        (0..times).try_for_each(|n| {
            db.execute(&format!("UPDATE orders SET buyer = buyer + 1 WHERE order_id IN ({})", hundred(n)))
                .map(drop)
        })
    }),
    ("delete_100_text", |db, times| {
        (0..times).try_for_each(|n| {
            db.execute(&format!("DELETE FROM orders WHERE order_id IN ({})", hundred(n))).map(drop)
        })
    }),
    ("insert_1000_selected", |db, times| {
        let sql = "INSERT INTO orders SELECT order_id + $1, buyer, order_time, status, amount FROM orders
                   WHERE order_id < 1000";
        each(db, times, sql, |n| vec![Value::Int(ORDERS + n * 1_000)])
    }),
    ("update_1000", |db, times| {
        let sql = "UPDATE orders SET status = left(status, 4) || $2 WHERE order_id BETWEEN $1 AND $1 + 999";
        each(db, times, sql, |n| vec![Value::Int(n), Value::Text((n % 10).to_string())])
    }),
];

/// An order as a row of VALUES.
fn row_text(n: i64) -> String {
    format!("({n}, {}, '2024-01-01 00:00:{:02}', 'open', {}.25)", n % 7, n % 60, n % 90)
}

/// Five orders of a buyer.
const SOME: &str = "FROM orders WHERE buyer = $1 AND order_time >= $2 AND order_time < $3";

fn some(n: i64) -> Vec<Value> {
    let buyer = n % (ORDERS / ORDERS_PER_BUYER);
    let [from, to] = [0, 5].map(|n| Value::Timestamp((buyer * ORDERS_PER_BUYER + n) * 1_000_000));
    vec![Value::Int(buyer), from, to]
}

/// A hundred order numbers, far from each other.
fn hundred(n: i64) -> String {
    let numbers: Vec<String> = (0..100).map(|i| ((n + i * 37) % ORDERS).to_string()).collect();
    numbers.join(", ")
}

fn order(n: i64, buyer: i64) -> Vec<Value> {
    let status = ["open", "shipped", "done"][(n % 3) as usize];
    let (time, amount) = (Value::Timestamp(n * 1_000_000), Value::Decimal((n % 500).into(), 2));
    vec![Value::Int(n), Value::Int(buyer), time, Value::Text(status.into()), amount]
}

fn filled() -> rowkeydb::Result<Database> {
    let db = Database::in_memory()?;
    db.execute(
        "CREATE TABLE orders (order_id BIGINT, buyer BIGINT, order_time TIMESTAMP, status VARCHAR,
                              amount DECIMAL(12, 2), PRIMARY KEY (lpad(order_id, 6)))",
    )?;
    db.execute("CREATE INDEX orders_by_buyer ON orders (buyer, order_time DESC)")?;
    db.execute("CREATE INDEX orders_by_time ON orders (order_time) INCLUDE (amount)")?;
    db.table("orders")?.load((0..ORDERS).map(|n| order(n, n / ORDERS_PER_BUYER)))?;
    db.execute("CREATE TABLE buyers (buyer BIGINT PRIMARY KEY, name VARCHAR)")?;
    let buyer = |n| vec![Value::Int(n), Value::Text(format!("buyer {n}"))];
    db.table("buyers")?.load((0..2 * ORDERS / ORDERS_PER_BUYER).map(buyer))?;
    if let Ok(regions) = std::env::var("REGIONS") {
        db.execute(&format!("ALTER TABLE orders SPLIT INTO {regions} FROM DATA"))?;
    }
    Ok(db)
}

fn each(db: &Database, times: i64, sql: &str, params: fn(i64) -> Vec<Value>) -> rowkeydb::Result<()> {
    let mut query = db.prepare(sql)?;
    (0..times).try_for_each(|n| rows(query.query(&params(n))?))
}

fn rows(rows: rowkeydb::Rows) -> rowkeydb::Result<()> {
    rows.into_iter().try_for_each(|row| row.map(drop))
}

/// Instructions of this program running a path so many times; `None` without valgrind.
fn counted(path: &str, times: i64) -> Option<i64> {
    let this = std::env::current_exe().expect("this program");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(this)
        .args(["run", path, &times.to_string()])
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{path}: {said}");
    let collected = said.split("Collected :").nth(1).and_then(|rest| rest.split_whitespace().next());
    Some(collected.and_then(|n| n.parse().ok()).expect("a number of instructions"))
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [run, path, times] = &args[..]
        && run == "run"
    {
        let (_, work) = PATHS.iter().find(|(name, _)| name == path).expect("a path");
        let db = filled().expect("a full table");
        work(&db, times.parse().expect("a number")).expect("it runs");
        return ExitCode::SUCCESS;
    }
    if !args.iter().any(|arg| arg == "--bench") {
        // `cargo test --all-targets`: that the paths run is all there is to see.
        let db = filled().expect("a full table");
        PATHS.iter().for_each(|(name, work)| work(&db, 3).unwrap_or_else(|e| panic!("{name}: {e}")));
        return ExitCode::SUCCESS;
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/instructions/recorded.txt");
    let recorded = std::fs::read_to_string(&file).unwrap_or_default();
    let (mut now, mut is_worse) = (String::new(), false);
    for (path, _) in PATHS {
        let Some((few, many)) = counted(path, TIMES.0).zip(counted(path, TIMES.1)) else {
            println!("valgrind is not there: no instructions were counted");
            return ExitCode::SUCCESS;
        };
        let each = (many - few) / (TIMES.1 - TIMES.0);
        let before = recorded.lines().find_map(|line| line.strip_prefix(path)?.trim().parse::<i64>().ok());
        let share = before.map_or(1.0, |before| each as f64 / before as f64);
        println!("{path:24} {each:>10}  {share:.2} of what is recorded");
        is_worse |= share > TOLERANCE;
        // Writing to a string cannot fail.
        let _ = writeln!(now, "{path:24} {each:>10}");
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&file, now).expect("the record can be written");
        return ExitCode::SUCCESS;
    }
    if is_worse { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
