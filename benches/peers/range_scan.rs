//! Questions that read many entries, each a line of a table: text, parameters, how it is counted.

use rowkeydb::Value;

use super::market::{Market, Order};
use super::race::{Race, Unit, their_turn, turn};

/// A parameter: of SQLite's it is the number, of ours a number or a time.
enum Param {
    Number(i64),
    /// Seconds since 1970.
    Time(i64),
}

/// What is asked in turn `n`. Answers are compared by the sum of their column `amount`.
pub struct Question {
    pub what: &'static str,
    sql: &'static str,
    params: fn(&Market, usize) -> Vec<Param>,
}

pub const QUESTIONS: [Question; 9] = [
    Question {
        what: "last ten orders of a buyer",
        sql: "SELECT * FROM orders WHERE buyer = $1 ORDER BY order_time DESC LIMIT 10",
        params: |market, n| vec![Param::Number(market.asked(n).buyer)],
    },
    Question {
        what: "orders of a buyer in a month",
        sql: "SELECT * FROM orders WHERE buyer = $1 AND order_time >= $2 AND order_time < $3",
        params: |market, n| of(&market.asked(n), |order| order.buyer, 30),
    },
    Question {
        what: "orders of a seller on a day",
        sql: "SELECT * FROM orders WHERE seller = $1 AND order_time >= $2 AND order_time < $3",
        params: |market, n| of(&market.asked(n), |order| order.seller, 1),
    },
    Question {
        what: "count and sum of a buyer's orders in a month",
        sql: "SELECT count(*) + sum(amount) AS amount FROM orders \
              WHERE buyer = $1 AND order_time >= $2 AND order_time < $3",
        params: |market, n| of(&market.asked(n), |order| order.buyer, 30),
    },
    Question {
        what: "count and sum of a month, covered by an index table",
        sql: "SELECT count(*) + sum(amount) AS amount FROM orders WHERE order_time >= $1 AND order_time < $2",
        params: |_, n| month(n),
    },
    Question {
        what: "top ten buyers of a month by amount",
        sql: "SELECT buyer, sum(amount) AS amount FROM orders WHERE order_time >= $1 AND order_time < $2 \
              GROUP BY buyer ORDER BY amount DESC LIMIT 10",
        params: |_, n| month(n),
    },
    Question {
        what: "orders of a seller, joined with their buyers",
        sql: "SELECT o.order_id, b.name, o.amount AS amount FROM orders o JOIN buyers b ON b.buyer = o.buyer \
              WHERE o.seller = $1",
        params: |market, n| vec![Param::Number(market.asked(n).seller)],
    },
    Question {
        what: "count and sum of all orders by status",
        sql: "SELECT status, count(*) + sum(amount) AS amount FROM orders GROUP BY status ORDER BY status",
        params: |_, _| Vec::new(),
    },
    Question {
        what: "count of all orders",
        sql: "SELECT CAST(count(*) AS DOUBLE) AS amount FROM orders",
        params: |_, _| Vec::new(),
    },
];

/// A buyer or seller of an order, and so many days that end with the order's.
fn of(order: &Order, whose: fn(&Order) -> i64, days: i64) -> Vec<Param> {
    let end = order.time + 1;
    vec![Param::Number(whose(order)), Param::Time(end - days * 86_400), Param::Time(end)]
}

fn month(n: usize) -> Vec<Param> {
    [n % 24, n % 24 + 1].map(|n| Param::Time(Market::month(n))).into()
}

pub fn run(market: &Market, race: &Race) {
    for question in QUESTIONS {
        question.ask(market, race, "");
    }
}

impl Question {
    /// `of`: what is said behind it.
    pub fn ask(&self, market: &Market, race: &Race, of: &str) {
        let Question { what, sql, params } = *self;
        let (ours, theirs) = market.full();
        let mut query = ours.prepare(sql).expect("our statement");
        let mut their_query = theirs.prepare(sql).expect("their statement");
        race.run(
            &format!("{what}{of}"),
            Unit::Time,
            |n| {
                let params = params(market, n).into_iter().map(|param| match param {
                    Param::Number(number) => Value::Int(number),
                    Param::Time(seconds) => Value::Timestamp(seconds * 1_000_000),
                });
                let params: Vec<Value> = params.collect();
                turn(|| query.query(&params)?.map(|row| row?.get::<f64>("amount")).sum())
            },
            |n| {
                let params = params(market, n).into_iter().map(|param| match param {
                    Param::Number(number) | Param::Time(number) => number,
                });
                let params: Vec<i64> = params.collect();
                their_turn(|| {
                    let rows = their_query
                        .query_map(rusqlite::params_from_iter(params), |row| row.get::<_, f64>("amount"))?;
                    rows.sum()
                })
            },
        );
    }
}
