//! SIMULATE WRITES: rows of the table, or of a query, replayed onto regions under several layouts.

use arrow::array::RecordBatch;
use futures::TryStreamExt;

use super::measure::{KnownScan, known_scans};
use crate::design::grouped;
use crate::design::heatmap::Panel;
use crate::design::simulate::{Setup, Simulation, replay};
use crate::design::splits::{REGIONS_MAX, suited};
use crate::engine::Session;
use crate::engine::ddl::primary_layout;
use crate::engine::rows::{assign, quote, values_of};
use crate::engine::show::{Cells, numbers, rows_of, text};
use crate::engine::view::View;
use crate::error::{Error, Result, sqlstate};
use crate::exec::dml::drawn;
use crate::key::{ColumnId, KeyLayout, Rowkey};
use crate::plan::{Limits, Target, ranges};
use crate::schema::TableDef;
use crate::sql::{Design, Simulate, SimulateBy, Statement, parse, parse_query, span_of};
use crate::value::{ColumnType, Value};

/// Regions, unless the statement or the table says otherwise.
const REGIONS: usize = 16;
/// Writes at the most: their keys are held in memory, once for each layout.
const WRITES_MAX: usize = 2_000_000;

/// SIMULATE: a row for each layout, region or slice.
pub async fn rows(view: &View, wanted: &Simulate) -> Result<RecordBatch> {
    let all = run(view, wanted).await?;
    match wanted.by {
        SimulateBy::Layout => by_layout(&all),
        SimulateBy::Region => by_region(&all),
        SimulateBy::Slice => by_slice(&all),
    }
}

/// Replays the writes under the table's own layout, then under each other one.
pub async fn run(view: &View, wanted: &Simulate) -> Result<Vec<Panel>> {
    let table = view.table(&wanted.table)?;
    let own = table.splits.len() + 1;
    let n = match wanted.regions {
        None if own > 1 => own,
        None => REGIONS,
        Some((n, place)) => {
            usize::try_from(n).ok().filter(|n| (1..=REGIONS_MAX).contains(n)).ok_or_else(|| {
                Error::invalid(format!("writes go to 1 to {REGIONS_MAX} regions"))
                    .state(sqlstate::OUT_OF_RANGE)
                    .at(place)
            })?
        }
    };
    let mut layouts = vec![table.key.clone()];
    for keys in &wanted.layouts {
        layouts.push(primary_layout(&table, keys)?);
    }
    let arrival = if wanted.source.is_none() { Some(arrival(&table)?) } else { None };
    let rows = source(view, &table, wanted, &layouts, arrival).await?;
    let time = |write: usize| match (arrival, rows.get(write)) {
        (Some(id), Some(row)) => row[usize::from(id.0)].to_string(),
        _ => format!("write {}", grouped((write + 1) as u64)),
    };
    let known = known_scans(view, &table)?;
    let mut all = Vec::with_capacity(layouts.len());
    for (at, layout) in layouts.into_iter().enumerate() {
        let keys = keys(&table, &layout, &rows)?;
        let splits = match at {
            0 if wanted.regions.is_none() && own > 1 => table.splits.clone(),
            // Regions that keys do not spread over evenly grow out of one.
            _ => suited(&layout, n).unwrap_or_default(),
        };
        let setup = Setup { splits, rows_max: (2 * keys.len()).div_ceil(n), regions: n };
        let simulation = replay(&keys, &setup);
        let last = keys.len().saturating_sub(1);
        all.push(Panel {
            layout: layout.sql(),
            stripes: simulation.stripes.iter().map(|key| layout.show(key)).collect(),
            splits: simulation.regions.iter().skip(1).map(|region| layout.show(&region.from)).collect(),
            times: simulation.slices.iter().map(|slice| slice.first).chain([last]).map(time).collect(),
            read_fan_out: read_fan_out(&layout, &known, &simulation),
            simulation,
        });
        view.watch.cancel.check()?;
    }
    Ok(all)
}

impl Session {
    /// The pictures of a SIMULATE statement, one for each layout.
    ///
    /// Errors: another statement; whatever SIMULATE itself runs into.
    pub fn heatmap(&mut self, sql: &str) -> Result<Vec<Panel>> {
        let statement = parse(sql)?;
        let wanted = match &statement {
            Statement::Design(design) => match &**design {
                Design::Simulate(wanted) => Some(wanted),
                _ => None,
            },
            _ => None,
        };
        let Some(wanted) = wanted else {
            return Err(Error::invalid(format!(
                "a heatmap shows writes, and this is {}",
                statement.kind_name()
            ))
            .hint("SIMULATE WRITES ON t [FROM (query)] [INTO n REGIONS] [UNDER LAYOUT (...), ...]"));
        };
        let view = self.view()?;
        self.database().runtime().block_on(run(&view, wanted))
    }
}

/// Values of the columns that the layouts are made of, in the order they are written.
async fn source(
    view: &View,
    table: &TableDef,
    wanted: &Simulate,
    layouts: &[KeyLayout],
    arrival: Option<ColumnId>,
) -> Result<Vec<Vec<Value>>> {
    let mut columns: Vec<ColumnId> = layouts.iter().flat_map(KeyLayout::columns).chain(arrival).collect();
    columns.sort_unstable();
    columns.dedup();
    let query = match &wanted.source {
        Some(query) if query.order_by.is_none() => {
            return Err(Error::invalid("the query does not say in which order its rows are written")
                .hint("end it with ORDER BY")
                .at(span_of(&**query)));
        }
        Some(query) => (**query).clone(),
        None => {
            let names: Vec<String> = columns.iter().map(|id| quote(table.column_name(*id))).collect();
            let order: Vec<String> = arrival.iter().map(|id| quote(table.column_name(*id))).collect();
            let (names, order) = (names.join(", "), order.join(", "));
            let sql = format!("SELECT {names} FROM {} ORDER BY {order}", quote(&table.name));
            parse_query(&sql)?
        }
    };
    let (mut stream, schema) = view.stream(query, &[]).await?;
    let place = |id: &ColumnId| {
        let name = table.column_name(*id);
        let found = schema.fields().iter().position(|field| field.name() == name);
        found.ok_or_else(|| {
            Error::invalid(format!("the query has no column \"{name}\""))
                .why("a layout makes keys of it")
                .hint(format!("SELECT ... AS {name}"))
                .state(sqlstate::UNDEFINED_COLUMN)
        })
    };
    let places = columns.iter().map(place).collect::<Result<Vec<usize>>>()?;
    let mut rows = Vec::new();
    while let Some(batch) = stream.try_next().await? {
        view.watch.step("replaying", rows.len() as u64, None, "writes")?;
        for mut values in values_of(&batch)? {
            let mut row = vec![Value::Null; table.columns.len()];
            for (id, place) in columns.iter().zip(&places) {
                row[usize::from(id.0)] =
                    assign(std::mem::replace(&mut values[*place], Value::Null), table.column(*id))?;
            }
            rows.push(row);
        }
        if rows.len() > WRITES_MAX {
            return Err(Error::invalid(format!("there are more than {WRITES_MAX} writes"))
                .why("a simulation holds their keys in memory")
                .hint("FROM (SELECT ... LIMIT n), or FROM (SELECT ... WHERE ... ) for a stretch of time")
                .state(sqlstate::LIMIT));
        }
    }
    if rows.is_empty() {
        return Err(Error::invalid("there are no writes to replay")
            .hint("load rows first, or FROM (SELECT value AS id FROM generate_series(1, 100000) ORDER BY 1)")
            .state(sqlstate::OBJECT_STATE));
    }
    Ok(rows)
}

/// The column that tells in which order rows came.
fn arrival(table: &TableDef) -> Result<ColumnId> {
    let is = |ty: &[ColumnType]| table.live_columns().find(|(_, c)| ty.contains(&c.ty)).map(|(id, _)| id);
    let identity = table.live_columns().find(|(_, c)| c.identity.is_some()).map(|(id, _)| id);
    let time = || is(&[ColumnType::Timestamp, ColumnType::TimestampTz]).or_else(|| is(&[ColumnType::Date]));
    identity.or_else(time).ok_or_else(|| {
        let name = &table.name;
        Error::invalid(format!("nothing tells in which order the rows of \"{name}\" came"))
            .why("it has no identity column and no time")
            .hint(format!("say it: SIMULATE WRITES ON {name} FROM (SELECT * FROM {name} ORDER BY ...)"))
            .state(sqlstate::OBJECT_STATE)
    })
}

fn keys(table: &TableDef, layout: &KeyLayout, rows: &[Vec<Value>]) -> Result<Vec<Rowkey>> {
    let key = |(n, row): (usize, &Vec<Value>)| {
        let mut key = Vec::with_capacity(32);
        // Chance is the same in every run.
        layout.encode(row, &|id| table.column_name(id), drawn(n as u64 + 1), &mut key).map_err(|e| {
            let error = Error::from(e);
            let why = error.reason().map_or_else(String::new, |why| format!(": {why}"));
            error.why(format!("in row {} under LAYOUT ({}){why}", n + 1, layout.sql()))
        })?;
        Ok(Rowkey::from(key))
    };
    rows.iter().enumerate().map(key).collect()
}

/// Regions that the known queries which read the table itself would ask under `layout`, on average.
fn read_fan_out(layout: &KeyLayout, known: &[KnownScan], simulation: &Simulation) -> Option<f64> {
    let reads_table = |scan: &&KnownScan| scan.spec.access.indexes().next().is_none() && !scan.spec.as_table;
    let asked = known.iter().filter(reads_table);
    let asked = asked.map(|scan| {
        let found = ranges(&scan.predicate, layout, Target::Primary, Limits::default());
        simulation.regions_asked(&found.ranges) as f64
    });
    let asked: Vec<f64> = asked.collect();
    (!asked.is_empty()).then(|| asked.iter().sum::<f64>() / asked.len() as f64)
}

/// To four digits, as figures are read.
fn rounded(n: f64) -> f64 {
    (n * 10_000.0).round() / 10_000.0
}

fn doubles(values: impl Iterator<Item = f64>) -> Cells {
    Cells::Doubles(values.map(rounded).collect())
}

fn by_layout(all: &[Panel]) -> Result<RecordBatch> {
    let fan_out = |s: &Panel| s.read_fan_out.map_or_else(String::new, |n| rounded(n).to_string());
    rows_of(vec![
        ("layout", text(all.iter().map(|s| s.layout.clone()).collect())),
        (
            "writes",
            numbers(all.iter().map(|s| s.simulation.slices.iter().map(|s| s.writes as i64).sum()).collect()),
        ),
        ("regions", numbers(all.iter().map(|s| s.simulation.regions.len() as i64).collect())),
        ("hottest", doubles(all.iter().map(|s| s.simulation.hottest))),
        ("parallelism", doubles(all.iter().map(|s| s.simulation.parallelism))),
        ("idle", doubles(all.iter().map(|s| s.simulation.idle))),
        ("read_fan_out", text(all.iter().map(fan_out).collect())),
    ])
}

fn by_region(all: &[Panel]) -> Result<RecordBatch> {
    let each =
        || all.iter().flat_map(|s| s.simulation.regions.iter().enumerate().map(move |(at, r)| (s, at, r)));
    let bound = |s: &Panel, at: usize, none: &str| {
        let cut = at.checked_sub(1).and_then(|at| s.splits.get(at));
        cut.cloned().unwrap_or_else(|| none.to_owned())
    };
    let share = |(s, _, r): (&Panel, usize, &crate::design::simulate::Region)| {
        r.rows as f64 / s.simulation.regions.iter().map(|r| r.rows).sum::<usize>().max(1) as f64
    };
    rows_of(vec![
        ("layout", text(each().map(|(s, _, _)| s.layout.clone()).collect())),
        ("region", numbers(each().map(|(_, at, _)| at as i64 + 1).collect())),
        ("from", text(each().map(|(s, at, _)| bound(s, at, "-∞")).collect())),
        ("to", text(each().map(|(s, at, _)| bound(s, at + 1, "∞")).collect())),
        ("rows", numbers(each().map(|(_, _, r)| r.rows as i64).collect())),
        ("share", doubles(each().map(share))),
        ("peak", doubles(each().map(|(_, _, r)| r.peak))),
    ])
}

fn by_slice(all: &[Panel]) -> Result<RecordBatch> {
    let each =
        || all.iter().flat_map(|s| s.simulation.slices.iter().enumerate().map(move |(at, r)| (s, at, r)));
    rows_of(vec![
        ("layout", text(each().map(|(s, _, _)| s.layout.clone()).collect())),
        ("slice", numbers(each().map(|(_, at, _)| at as i64 + 1).collect())),
        ("writes", numbers(each().map(|(_, _, r)| r.writes as i64).collect())),
        ("regions", numbers(each().map(|(_, _, r)| r.regions as i64).collect())),
        ("hottest", doubles(each().map(|(_, _, r)| r.hottest))),
        ("parallelism", doubles(each().map(|(_, _, r)| r.parallelism))),
        ("idle", numbers(each().map(|(_, _, r)| r.idle as i64).collect())),
    ])
}
