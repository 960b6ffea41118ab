//! What becomes of cost and memory as the data grows: from 10,000 orders to as many as are asked for, ten times as many
//! each time.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use super::market::Market;
use super::race::{Race, grouped};
use super::{point_get, range_scan};

/// Orders in the smallest market.
const FEWEST: usize = 10_000;

/// One that should cost the same however many there are, and one that reads a share of them.
const GROWING: [&str; 2] =
    ["last ten orders of a buyer", "count and sum of a month, covered by an index table"];

pub fn run(largest: &Market, race: &Race) {
    let sizes = std::iter::successors(Some(FEWEST), |n| Some(n * 10)).take_while(|n| *n < largest.orders);
    for orders in sizes {
        ask(&Market::new(orders, largest.engine), race);
    }
    ask(largest, race);
}

fn ask(market: &Market, race: &Race) {
    let of = format!(", of {} orders", grouped(market.orders as u64));
    point_get::prepared(market, race, &format!("one order by number{of}"), &|n| market.some_order(n));
    for question in range_scan::QUESTIONS.iter().filter(|question| GROWING.contains(&question.what)) {
        question.ask(market, race, &of);
    }
    drop(market.our_empty("memory", 3));
    for (what, sql) in [
        ("a load with 3 index tables", market.our_copy()),
        (
            "totals of all by status",
            "SELECT status, count(*), sum(amount) FROM orders GROUP BY status".into(),
        ),
        ("a sort of all that may take 64 MB", SORT.into()),
    ] {
        race.note(&format!("memory of {what}{of}"), &peak(market, "memory", &sql));
    }
    market.remove("memory");
}

/// What it is for makes sure that it is done.
const SORT: &str = "SET memory_limit = '64MB'; \
     SELECT max(n) FROM (SELECT row_number() OVER (ORDER BY item, order_id) AS n FROM orders)";

/// Memory of its own that a process takes at the most to run some SQL.
fn peak(market: &Market, name: &str, sql: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rowkeydb"));
    command.arg(market.path(name, "")).args(["-c", sql]).stdout(Stdio::null());
    let mut child = command.spawn().expect("a process");
    let status = format!("/proc/{}/status", child.id());
    let mut kib = 0;
    while child.try_wait().expect("it is a child").is_none() {
        let told = fs::read_to_string(&status).unwrap_or_default();
        let anonymous =
            told.lines().find_map(|line| line.strip_prefix("RssAnon:")?.split_whitespace().next());
        kib = kib.max(anonymous.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0));
        thread::sleep(Duration::from_millis(5));
    }
    format!("{} MiB", kib / 1024)
}
