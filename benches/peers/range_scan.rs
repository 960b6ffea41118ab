//! The last orders of a buyer, a month of orders, all orders.

use rowkeydb::Value;

use super::market::Market;
use super::race::{Race, Unit, their_turn, turn};

pub fn run(market: &Market, race: &Race) {
    last_ten(market, race);
    one_month(market, race);
    aggregate(market, race);
}

fn last_ten(market: &Market, race: &Race) {
    let (ours, theirs) = market.full();
    let sql = "SELECT order_id, order_time, status, amount FROM orders WHERE buyer = $1 \
               ORDER BY order_time DESC LIMIT 10";
    let mut query = ours.prepare(sql).expect("our statement");
    let mut their_query = theirs.prepare(sql).expect("their statement");
    race.run(
        "last ten orders of a buyer",
        Unit::Time,
        |n| {
            turn(|| {
                let rows = query.query(&[Value::Int(market.buyer(n))])?;
                rows.map(|row| row?.get::<f64>("amount")).sum()
            })
        },
        |n| {
            their_turn(|| {
                let rows = their_query.query_map([market.buyer(n)], |row| row.get::<_, f64>("amount"))?;
                rows.sum()
            })
        },
    );
}

fn one_month(market: &Market, race: &Race) {
    let (ours, theirs) = market.full();
    let sql =
        "SELECT count(*) + sum(amount) AS answer FROM orders WHERE order_time >= $1 AND order_time < $2";
    let mut query = ours.prepare(sql).expect("our statement");
    let mut their_query = theirs.prepare(sql).expect("their statement");
    race.run(
        "count and sum of a month, covered by an index table",
        Unit::Time,
        |n| {
            turn(|| {
                let bounds = [n % 24, n % 24 + 1].map(|m| Value::Timestamp(Market::month(m) * 1_000_000));
                query.query(&bounds)?.map(|row| row?.get::<f64>("answer")).sum()
            })
        },
        |n| {
            their_turn(|| {
                let bounds = [n % 24, n % 24 + 1].map(Market::month);
                their_query.query_row(bounds, |row| row.get("answer"))
            })
        },
    );
}

fn aggregate(market: &Market, race: &Race) {
    let (ours, theirs) = market.full();
    let sql =
        "SELECT status, count(*) AS n, sum(amount) AS total FROM orders GROUP BY status ORDER BY status";
    let mut query = ours.prepare(sql).expect("our statement");
    let mut their_query = theirs.prepare(sql).expect("their statement");
    race.run(
        "count and sum of all orders by status",
        Unit::Rate(market.orders),
        |_| {
            turn(|| {
                let rows = query.query(&[])?;
                rows.map(|row| row.and_then(|row| Ok(row.get::<i64>("n")? as f64 + row.get::<f64>("total")?)))
                    .sum()
            })
        },
        |_| {
            their_turn(|| {
                let rows = their_query
                    .query_map([], |row| Ok(row.get::<_, i64>("n")? as f64 + row.get::<_, f64>("total")?))?;
                rows.sum()
            })
        },
    );
}
