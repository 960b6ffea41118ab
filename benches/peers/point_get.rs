//! One order by its number.

use rowkeydb::{Row, Value};
use rusqlite::{Params, Statement};

use super::market::{FIRST_ORDER, Market};
use super::race::{Race, Unit, their_turn, turn};

/// GETs a turn: one alone is too short for the clock.
const GETS: usize = 20;

pub fn run(market: &Market, race: &Race) {
    let (ours, theirs) = market.full();
    let mut their_query = theirs.prepare(THEIR_QUERY).expect("their statement");
    let there = |n| ids(n, |n| market.some_order(n));
    prepared(market, race, "one order by number, prepared SQL", &|n| market.some_order(n));
    prepared(market, race, "one order that is not there, prepared SQL", &|n| FIRST_ORDER - 1 - n as i64);

    race.run(
        "one order by number, SQL text with the number in it",
        Unit::Each(GETS),
        |n| turn(|| sum(there(n), |id| buyer(ours.query(&by_id(id))?.next().transpose()?))),
        |n| their_turn(|| sum(there(n), |id| their_buyer(&mut theirs.prepare(&by_id(id))?, ()))),
    );

    let table = ours.table("orders").expect("our table");
    let native = |id: i64| {
        let key: String = format!("{id:012}").chars().rev().collect();
        buyer(table.get(key.as_str())?)
    };
    race.run(
        "one order by key, without SQL (SQLite: prepared)",
        Unit::Each(GETS),
        |n| turn(|| sum(there(n), native)),
        |n| their_turn(|| sum(there(n), |id| their_buyer(&mut their_query, [id]))),
    );
}

const THEIR_QUERY: &str = "SELECT * FROM orders WHERE order_id = ?";

/// Asks for the orders with these numbers.
pub fn prepared(market: &Market, race: &Race, what: &str, id: &dyn Fn(usize) -> i64) {
    let (ours, theirs) = market.full();
    let mut query = ours.prepare("SELECT * FROM orders WHERE order_id = $1").expect("our statement");
    let mut their_query = theirs.prepare(THEIR_QUERY).expect("their statement");
    let mut get = |id| buyer(query.query(&[Value::Int(id)])?.next().transpose()?);
    race.run(
        what,
        Unit::Each(GETS),
        |n| turn(|| sum(ids(n, id), &mut get)),
        |n| their_turn(|| sum(ids(n, id), |id| their_buyer(&mut their_query, [id]))),
    );
}

fn by_id(id: i64) -> String {
    format!("SELECT * FROM orders WHERE order_id = {id}")
}

/// Numbers of the orders to get in turn `n`.
fn ids(n: usize, id: impl Fn(usize) -> i64) -> impl Iterator<Item = i64> {
    (n * GETS..(n + 1) * GETS).map(id)
}

fn sum<E>(
    mut ids: impl Iterator<Item = i64>,
    mut buyer: impl FnMut(i64) -> Result<i64, E>,
) -> Result<f64, E> {
    ids.try_fold(0.0, |sum, id| Ok(sum + buyer(id)? as f64))
}

/// -1 stands for no order.
fn buyer(row: Option<Row>) -> rowkeydb::Result<i64> {
    row.map_or(Ok(-1), |row| row.get("buyer"))
}

fn their_buyer(query: &mut Statement<'_>, params: impl Params) -> rusqlite::Result<i64> {
    query.query(params)?.next()?.map_or(Ok(-1), |row| row.get("buyer"))
}
