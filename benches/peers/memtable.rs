//! The whole table grouped, against DataFusion over the same rows in memory: what reading them from the store costs.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::{Decimal128Type, DecimalType};
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;

use super::market::Market;
use super::race::{Race, Turn, Unit, turn};

const QUESTION: &str = "count and sum of all orders by status (for SQLite: DataFusion's MemTable)";

const SQL: &str =
    "SELECT status, count(*) + sum(amount) AS amount FROM orders GROUP BY status ORDER BY status";

pub fn run(market: &Market, race: &Race) {
    if !race.wants(QUESTION) {
        return;
    }
    let ours = &market.full().0;
    let rows = ours.query("SELECT * FROM orders").expect("all orders").batches();
    let batches: Vec<_> = rows.map(|batch| batch.expect("some of them")).collect();
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = batches.len().div_ceil(threads).max(1);
    let partitions = batches.chunks(share).map(<[_]>::to_vec).collect();
    let table = MemTable::try_new(batches[0].schema(), partitions).expect("a table of them");
    let context = SessionContext::new();
    context.register_table("orders", Arc::new(table)).expect("its name");
    let mut query = ours.prepare(SQL).expect("our statement");
    race.run(
        QUESTION,
        Unit::Time,
        |_| turn(|| query.query(&[])?.map(|row| row?.get::<f64>("amount")).sum()),
        |_| in_memory(&runtime, &context),
    );
}

fn in_memory(runtime: &tokio::runtime::Runtime, context: &SessionContext) -> Turn {
    turn(|| {
        let answer = async { context.sql(SQL).await?.collect().await };
        let batches = runtime.block_on(answer).expect("its answer");
        let amounts = batches.iter().flat_map(|batch| {
            let amounts = batch.column(1).as_primitive::<Decimal128Type>();
            let scale = amounts.scale();
            amounts.iter().map(move |amount| {
                let text = Decimal128Type::format_decimal(amount.unwrap_or_default(), 38, scale);
                text.parse::<f64>().expect("a number")
            })
        });
        Ok(amounts.sum())
    })
}
