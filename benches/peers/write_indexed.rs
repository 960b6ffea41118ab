//! Writes with 0, 1 and 3 index tables: whole loads, batches, single orders, many threads, changes.

use std::thread;

use rowkeydb::Database;
use rusqlite::{Connection, params};

use super::market::{FIRST_ORDER, Market, Order, their_insert, their_open};
use super::race::{Race, Unit, their_turn, turn};

/// Rows of one INSERT into a table of nothing else, and into the full one.
const BATCHES: (usize, usize) = (100, 1_000);

/// Rows of one UPDATE or DELETE.
const CHANGED: usize = 100;

/// Commits of each of many threads in a turn.
const COMMITS: usize = 10;

pub fn run(market: &Market, race: &Race) {
    for indexes in [0, 1, 3] {
        load(market, race, indexes);
    }
    for indexes in [0, 1, 3] {
        let dbs = (market.our_empty("batches", indexes), market.their_empty("batches", indexes));
        let what = format!("INSERT of {} orders, {}, durable", BATCHES.0, index_tables(indexes));
        batches(market, race, &what, (&dbs.0, &dbs.1), 0, BATCHES.0);
        drop(dbs);
        market.remove("batches");
    }
    // Orders written to the full databases are deleted again afterwards: other sections count orders.
    let (ours, theirs) = market.full();
    let what = format!("INSERT of {} orders into all of them, 3 index tables, durable", BATCHES.1);
    batches(market, race, &what, (ours, theirs), market.orders, BATCHES.1);
    delete_new(market);
    single(market, race);
    delete_new(market);
    for threads in [8, 64] {
        many(market, race, threads);
        delete_new(market);
    }
}

fn index_tables(n: usize) -> String {
    if n == 1 { "1 index table".to_owned() } else { format!("{n} index tables") }
}

fn delete_new(market: &Market) {
    let (ours, theirs) = market.full();
    let delete = format!("DELETE FROM orders WHERE order_id >= {}", FIRST_ORDER + market.orders as i64);
    let ours = ours.execute(&delete).expect("ours are deleted");
    assert_eq!(ours, theirs.execute(&delete, []).expect("theirs are deleted") as u64);
}

fn load(market: &Market, race: &Race, indexes: usize) {
    race.run(
        &format!("load from CSV, {}, one step", index_tables(indexes)),
        Unit::Rate(market.orders),
        |_| {
            let db = market.our_empty("load", indexes);
            let turn = turn(|| market.our_load(&db));
            drop(db);
            market.remove("load");
            turn
        },
        |_| {
            let db = market.their_empty("load", indexes);
            let turn = their_turn(|| market.their_load(&db));
            drop(db);
            market.remove("load");
            turn
        },
    );
}

/// One INSERT, as text, of `rows` orders from number `first` on, durable when it returns.
fn batches(
    market: &Market,
    race: &Race,
    what: &str,
    (ours, theirs): (&Database, &Connection),
    first: usize,
    rows: usize,
) {
    let statement = |n: usize, time: &dyn Fn(&Order) -> String| {
        let row = |order: Order| {
            let Order { id, buyer, seller, status, item, .. } = &order;
            let (time, amount) = (time(&order), order.amount_text());
            format!("({id}, {buyer}, {seller}, {time}, '{status}', {amount}, '{item}')")
        };
        let first = first + n * rows;
        let rows: Vec<String> = (first..first + rows).map(|n| row(market.order(n))).collect();
        format!("INSERT INTO orders VALUES {}", rows.join(", "))
    };
    race.run(
        what,
        Unit::Rate(rows),
        |n| {
            let sql = statement(n, &|order| format!("'{}'", order.time_text()));
            turn(|| Ok(ours.execute(&sql)? as f64))
        },
        |n| {
            let sql = statement(n, &|order| order.time.to_string());
            their_turn(|| Ok(theirs.execute(&sql, [])? as f64))
        },
    );
}

const OUR_INSERT: &str = "INSERT INTO orders VALUES ($1, $2, $3, $4, $5, $6, $7)";

fn their_row(insert: &mut rusqlite::Statement<'_>, order: &Order) -> rusqlite::Result<usize> {
    let Order { id, buyer, seller, time, status, cents, item } = order;
    insert.execute(params![id, buyer, seller, time, status, *cents as f64 / 100.0, item])
}

/// Prepared INSERTs of one order each into the full databases.
fn single(market: &Market, race: &Race) {
    let (ours, theirs) = market.full();
    let mut insert = ours.prepare(OUR_INSERT).expect("ours");
    let mut their_insert = theirs.prepare(their_insert()).expect("theirs");
    race.run(
        "INSERT of one order, 3 index tables, durable",
        Unit::Time,
        |n| {
            let values = market.order(market.orders + n).values();
            turn(|| Ok(insert.execute(&values)? as f64))
        },
        |n| {
            let order = market.order(market.orders + n);
            their_turn(|| Ok(their_row(&mut their_insert, &order)? as f64))
        },
    );
}

/// The same by many threads, each with a connection of its own.
fn many(market: &Market, race: &Race, threads: usize) {
    let ours = &market.full().0;
    let path = market.path("full", ".sqlite");
    // Orders of each thread in turn `n`.
    let shares = |n: usize| -> Vec<Vec<Order>> {
        let first = |t: usize| market.orders + (n * threads + t) * COMMITS;
        (0..threads).map(|t| (first(t)..first(t) + COMMITS).map(|n| market.order(n)).collect()).collect()
    };
    race.run(
        &format!("INSERT of one order by each of {threads} threads, 3 index tables, durable"),
        Unit::Rate(threads * COMMITS),
        |n| {
            let shares = shares(n);
            let insert = |orders: &Vec<Order>| {
                let mut insert = ours.prepare(OUR_INSERT).expect("ours");
                orders.iter().map(|order| insert.execute(&order.values()).expect("a row")).sum::<u64>()
            };
            turn(|| Ok(all(&shares, insert) as f64))
        },
        |n| {
            let shares = shares(n);
            let insert = |orders: &Vec<Order>| {
                let db = their_open(&path);
                let mut insert = db.prepare(their_insert()).expect("theirs");
                orders.iter().map(|order| their_row(&mut insert, order).expect("a row") as u64).sum::<u64>()
            };
            their_turn(|| Ok(all(&shares, insert) as f64))
        },
    );
}

/// What `work` adds up to, each share in a thread of its own.
fn all(shares: &[Vec<Order>], work: impl Fn(&Vec<Order>) -> u64 + Sync) -> u64 {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = shares.iter().map(|share| scope.spawn(move || work(share))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread")).sum()
    })
}

/// UPDATE of an indexed column and DELETE by key. The orders are gone then: this comes after other questions.
pub fn changes(market: &Market, race: &Race) {
    let (ours, theirs) = market.full();
    let keys = |n: usize| {
        let ids = (0..CHANGED).map(|i| market.some_order(n * CHANGED + i).to_string());
        ids.collect::<Vec<_>>().join(", ")
    };
    let run = |what: &str, sql: &dyn Fn(usize) -> String| {
        race.run(
            what,
            Unit::Rate(CHANGED),
            |n| turn(|| Ok(ours.execute(&sql(n))? as f64)),
            |n| their_turn(|| Ok(theirs.execute(&sql(n), [])? as f64)),
        );
    };
    let what = format!("UPDATE of an indexed column of {CHANGED} orders by number, durable");
    run(&what, &|n| format!("UPDATE orders SET seller = seller + 1 WHERE order_id IN ({})", keys(n)));
    let what = format!("DELETE of {CHANGED} orders by number, durable");
    run(&what, &|n| format!("DELETE FROM orders WHERE order_id IN ({})", keys(n)));
}
