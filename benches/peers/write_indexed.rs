//! Writes with 0, 1 and 3 index tables: whole loads, batches, single orders.

use std::cell::Cell;

use rusqlite::params;

use super::market::{Market, Order, their_insert};
use super::race::{Race, Unit, their_turn, turn};

/// Rows of one INSERT.
const BATCH: usize = 100;

pub fn run(market: &Market, race: &Race) {
    for indexes in [0, 1, 3] {
        load(market, race, indexes);
    }
    for indexes in [0, 1, 3] {
        batches(market, race, indexes);
    }
    single(market, race);
}

fn load(market: &Market, race: &Race, indexes: usize) {
    race.run(
        &format!("load from CSV, {indexes} index tables, one step"),
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

/// One INSERT, as text, of orders to come, durable when it returns.
fn batches(market: &Market, race: &Race, indexes: usize) {
    let (ours, theirs) = (market.our_empty("batches", indexes), market.their_empty("batches", indexes));
    let statement = |n: usize, time: &dyn Fn(&Order) -> String| {
        let row = |order: Order| {
            let Order { id, buyer, seller, status, item, .. } = &order;
            let (time, amount) = (time(&order), order.amount_text());
            format!("({id}, {buyer}, {seller}, {time}, '{status}', {amount}, '{item}')")
        };
        let rows: Vec<String> = (n * BATCH..(n + 1) * BATCH).map(|n| row(market.order(n))).collect();
        format!("INSERT INTO orders VALUES {}", rows.join(", "))
    };
    race.run(
        &format!("INSERT of {BATCH} orders, {indexes} index tables, durable"),
        Unit::Rate(BATCH),
        |n| {
            let sql = statement(n, &|order| format!("'{}'", order.time_text()));
            turn(|| Ok(ours.execute(&sql)? as f64))
        },
        |n| {
            let sql = statement(n, &|order| order.time.to_string());
            their_turn(|| Ok(theirs.execute(&sql, [])? as f64))
        },
    );
    drop((ours, theirs));
    market.remove("batches");
}

/// Prepared INSERTs of one order each into the full databases.
fn single(market: &Market, race: &Race) {
    let (ours, theirs) = market.full();
    let mut insert = ours.prepare("INSERT INTO orders VALUES ($1, $2, $3, $4, $5, $6, $7)").expect("ours");
    let mut their_insert = theirs.prepare(their_insert()).expect("theirs");
    // Taken from the end of those to come, and deleted again afterwards: other sections count orders.
    let written = Cell::new(0);
    race.run(
        "INSERT of one order, 3 index tables, durable",
        Unit::Time,
        |n| {
            written.set(n + 1);
            let values = market.order(market.orders + n).values();
            turn(|| Ok(insert.execute(&values)? as f64))
        },
        |n| {
            let Order { id, buyer, seller, time, status, cents, item } = market.order(market.orders + n);
            let amount = cents as f64 / 100.0;
            their_turn(|| {
                let rows = their_insert.execute(params![id, buyer, seller, time, status, amount, item])?;
                Ok(rows as f64)
            })
        },
    );
    let delete = format!("DELETE FROM orders WHERE order_id >= {}", market.order(market.orders).id);
    let deleted = (ours.execute(&delete).expect("ours"), theirs.execute(&delete, []).expect("theirs"));
    assert_eq!(deleted, (written.get() as u64, written.get()));
}
