//! One order by its number.

use rowkeydb::Value;

use super::market::{FIRST_ORDER, Market};
use super::race::{Race, Unit, their_turn, turn};

/// GETs a turn: one alone is too short for the clock.
const GETS: usize = 20;

pub fn run(market: &Market, race: &Race) {
    let (ours, theirs) = market.full();
    let mut query = ours.prepare("SELECT * FROM orders WHERE order_id = $1").expect("our statement");
    let mut their_query = theirs.prepare("SELECT * FROM orders WHERE order_id = ?").expect("their statement");
    // Answers are the buyers' numbers; -1 stands for no row.
    let mut their_get = |id: i64| {
        let mut rows = their_query.query([id])?;
        let buyer = rows.next()?.map(|row| row.get::<_, i64>("buyer")).transpose()?;
        Ok(buyer.unwrap_or(-1) as f64)
    };

    race.run(
        &format!("{GETS} orders by number, prepared SQL"),
        Unit::Time,
        |n| {
            turn(|| {
                (0..GETS).try_fold(0.0, |sum, i| {
                    let id = Value::Int(market.some_order(n * GETS + i));
                    let row = query.query(&[id])?.next().transpose()?;
                    Ok(sum + row.map_or(Ok(-1), |row| row.get::<i64>("buyer"))? as f64)
                })
            })
        },
        |n| {
            their_turn(|| {
                (0..GETS).try_fold(0.0, |sum, i| Ok(sum + their_get(market.some_order(n * GETS + i))?))
            })
        },
    );

    let table = ours.table("orders").expect("our table");
    race.run(
        &format!("{GETS} orders by number, without SQL (SQLite: prepared)"),
        Unit::Time,
        |n| {
            turn(|| {
                (0..GETS).try_fold(0.0, |sum, i| {
                    let key: String =
                        format!("{:012}", market.some_order(n * GETS + i)).chars().rev().collect();
                    let row = table.get(key.as_str())?;
                    Ok(sum + row.map_or(Ok(-1), |row| row.get::<i64>("buyer"))? as f64)
                })
            })
        },
        |n| {
            their_turn(|| {
                (0..GETS).try_fold(0.0, |sum, i| Ok(sum + their_get(market.some_order(n * GETS + i))?))
            })
        },
    );

    race.run(
        &format!("{GETS} orders that are not there, prepared SQL"),
        Unit::Time,
        |n| {
            turn(|| {
                (0..GETS).try_fold(0.0, |sum, i| {
                    let id = Value::Int(FIRST_ORDER - 1 - (n * GETS + i) as i64);
                    let row = query.query(&[id])?.next().transpose()?;
                    Ok(sum + row.map_or(Ok(-1), |row| row.get::<i64>("buyer"))? as f64)
                })
            })
        },
        |n| {
            their_turn(|| {
                (0..GETS)
                    .try_fold(0.0, |sum, i| Ok(sum + their_get(FIRST_ORDER - 1 - (n * GETS + i) as i64)?))
            })
        },
    );
}
