//! SIMULATE WRITES: replays the rows of a table, a query or a file onto regions, under several layouts.

use arrow::array::RecordBatch;
use futures::TryStreamExt;
use sqlparser::ast::Query;

use super::measure::{KnownScan, known_scans};
use crate::design::grouped;
use crate::design::heatmap::{Heatmap, Panel};
use crate::design::simulate::{Setup, Simulation, replay};
use crate::design::splits::{REGIONS_MAX, suited};
use crate::design::spread::Spread;
use crate::engine::copy::FileRows;
use crate::engine::ddl::primary_layout;
use crate::engine::outcome::Warning;
use crate::engine::rows::{assign, values_of};
use crate::engine::show::{ShowColumn, numbers, rows_of, text};
use crate::engine::view::StatementView;
use crate::error::{Error, Result, sqlstate};
use crate::exec::dml::drawn;
use crate::key::{ColumnId, KeyLayout, Rowkey};
use crate::plan::{LayoutRole, ranges};
use crate::schema::TableDef;
use crate::sql::rewrite::ROWKEY;
use crate::sql::{CopyFile, Simulate, SimulateBy, WritesFrom, name_of, name_sql, parse_query, span_of};
use crate::value::{ColumnType, Value, quoted_name};

/// Regions (count), unless the statement or the table says otherwise.
const REGIONS: usize = 16;
/// Writes (count), at most: their keys are held in memory, once for each layout.
const WRITES_MAX: usize = 2_000_000;

/// What the writes do under one layout.
struct Under {
    layout: KeyLayout,
    simulation: Simulation,
    read_fan_out: Option<f64>,
    /// Warns that different rows would have one key.
    collision: Option<Warning>,
}

/// SIMULATE: a row for each layout, region or slice; a warning for each layout that cannot hold the rows.
pub async fn rows(view: &StatementView, wanted: &Simulate) -> Result<(RecordBatch, Vec<Warning>)> {
    let (all, _) = run(view, wanted).await?;
    let rows = match wanted.by {
        SimulateBy::Layout => by_layout(&all)?,
        SimulateBy::Region => by_region(&all)?,
        SimulateBy::Slice => by_slice(&all)?,
        SimulateBy::RegionAndSlice => by_region_and_slice(&all)?,
    };
    Ok((rows, all.into_iter().filter_map(|under| under.collision).collect()))
}

/// SIMULATE as a heat map.
pub async fn heatmap(view: &StatementView, wanted: &Simulate, source: String) -> Result<Heatmap> {
    let (all, time) = run(view, wanted).await?;
    let panel = |under: Under| {
        let writes = under.simulation.slices.iter().map(|slice| slice.first);
        let last = under.simulation.slices.iter().map(|slice| slice.spread.rows as usize).sum::<usize>();
        let times = writes.chain([last.saturating_sub(1)]).map(&time).collect();
        let panel = Panel::of_simulation(&under.layout, under.simulation, times);
        Panel { read_fan_out: under.read_fan_out, ..panel }
    };
    Ok(Heatmap {
        title: format!("Where the writes of {} go", name_of(&wanted.table)),
        source,
        about: "The same writes under each layout, in the order they came; figures are those of the second half. The \
                key space runs down, in stripes of equally many writes."
            .into(),
        is_comparison: true,
        panels: all.into_iter().map(panel).collect(),
    })
}

/// Replays the writes under the table's own layout, then under each other one. Also gives the time of each
/// write.
async fn run(view: &StatementView, wanted: &Simulate) -> Result<(Vec<Under>, impl Fn(usize) -> String)> {
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
        let layout = primary_layout(&table, keys)?;
        if !layouts.contains(&layout) {
            layouts.push(layout);
        }
    }
    let tells_order = wanted.source.is_some() || table.row_number().is_some();
    let arrival = if tells_order { None } else { Some(arrival(&table)?) };
    let rows = source(view, &table, wanted, &layouts, arrival).await?;
    let known = known_scans(view, &table)?;
    let mut all = Vec::with_capacity(layouts.len());
    for (at, layout) in layouts.into_iter().enumerate() {
        let keys = keys(&table, &layout, &rows)?;
        let splits = match at {
            0 if wanted.regions.is_none() && own > 1 => table.splits.clone(),
            // If keys do not spread evenly over fixed regions, the regions grow out of one.
            _ => suited(&layout, n).unwrap_or_default(),
        };
        let setup = Setup { splits, rows_max: (2 * keys.len()).div_ceil(n), regions: n };
        let simulation = replay(&keys, &setup);
        let collision = collision(&table, &layout, &rows, &keys);
        let read_fan_out = read_fan_out(&layout, &known, &simulation);
        all.push(Under { read_fan_out, layout, simulation, collision });
        view.watch.cancel.check()?;
    }
    let time = move |write: usize| match (arrival, rows.get(write)) {
        (Some(id), Some(row)) => row[usize::from(id.0)].to_string(),
        _ => format!("write {}", grouped((write + 1) as u64)),
    };
    Ok((all, time))
}

/// Rows with the values of all columns in the layouts, in write order.
async fn source(
    view: &StatementView,
    table: &TableDef,
    wanted: &Simulate,
    layouts: &[KeyLayout],
    arrival: Option<ColumnId>,
) -> Result<Vec<Vec<Value>>> {
    let row_number = table.row_number();
    let mut columns: Vec<ColumnId> = layouts.iter().flat_map(KeyLayout::columns).chain(arrival).collect();
    columns.retain(|id| Some(*id) != row_number);
    columns.sort_unstable();
    columns.dedup();
    let mut rows = match &wanted.source {
        Some(WritesFrom::File(file)) => of_file(view, table, file)?,
        Some(WritesFrom::Query(query)) if query.order_by.is_none() => {
            return Err(Error::invalid("the query does not say in which order its rows are written")
                .hint("end it with ORDER BY")
                .at(span_of(&**query)));
        }
        Some(WritesFrom::Query(query)) => of_query(view, table, (**query).clone(), &columns).await?,
        None => {
            let name = |id: ColumnId| quoted_name(table.column_name(id));
            // Without a PRIMARY KEY, rowkeys are in the order of writes.
            let order = arrival.map_or_else(|| ROWKEY.to_owned(), name);
            let mut names: Vec<String> = columns.iter().map(|id| name(*id)).collect();
            names.extend(names.is_empty().then(|| order.clone()));
            let (names, from) = (names.join(", "), quoted_name(&table.name));
            let sql = format!("SELECT {names} FROM {from} ORDER BY {order}");
            of_query(view, table, parse_query(&sql)?, &columns).await?
        }
    };
    if let Some(id) = row_number {
        rows.iter_mut().zip(1..).for_each(|(row, n)| row[usize::from(id.0)] = Value::Int(n));
    }
    if rows.is_empty() {
        return Err(Error::invalid("there are no writes to replay")
            .hint("load rows first, or FROM (SELECT value AS id FROM generate_series(1, 100000) ORDER BY 1)")
            .state(sqlstate::OBJECT_STATE));
    }
    Ok(rows)
}

/// The rows of a file in a COPY format.
fn of_file(view: &StatementView, table: &TableDef, file: &CopyFile) -> Result<Vec<Vec<Value>>> {
    let columns: Vec<ColumnId> = table.live_columns().map(|(id, _)| id).collect();
    let mut file = FileRows::open(file, None, table, &columns)?;
    let mut rows = Vec::new();
    while let Some(chunk) = file.next(&view.watch)? {
        for cells in chunk {
            let mut row = vec![Value::Null; table.columns.len()];
            for (id, cell) in columns.iter().zip(cells) {
                row[usize::from(id.0)] = cell.unwrap_or(Value::Null);
            }
            rows.push(row);
        }
        bounded(rows.len())?;
    }
    Ok(rows)
}

/// The rows of a query that outputs at least these columns.
async fn of_query(
    view: &StatementView,
    table: &TableDef,
    query: Query,
    columns: &[ColumnId],
) -> Result<Vec<Vec<Value>>> {
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
        bounded(rows.len())?;
    }
    Ok(rows)
}

fn bounded(writes: usize) -> Result<()> {
    if writes <= WRITES_MAX {
        return Ok(());
    }
    Err(Error::invalid(format!("there are more than {} writes", grouped(WRITES_MAX as u64)))
        .why("a simulation holds their keys in memory")
        .hint("FROM (SELECT ... LIMIT n), or FROM (SELECT ... WHERE ... ) for a stretch of time")
        .state(sqlstate::LIMIT))
}

/// The column that tells the order in which rows were written.
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
        // `random(n)` draws the same in every run.
        layout.encode(row, &|id| table.column_name(id), drawn(n as u64 + 1), &mut key).map_err(|e| {
            let error = Error::from(e);
            let why = error.reason().map_or_else(String::new, |why| format!(": {why}"));
            error.why(format!("in row {} under LAYOUT ({}){why}", n + 1, layout.sql()))
        })?;
        Ok(Rowkey::from(key))
    };
    rows.iter().enumerate().map(key).collect()
}

/// Warns if `layout` gives one key to rows that differ in a column of the table's own key.
fn collision(table: &TableDef, layout: &KeyLayout, rows: &[Vec<Value>], keys: &[Rowkey]) -> Option<Warning> {
    let own = table.key.columns();
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_unstable_by_key(|write| &keys[*write]);
    let differ =
        |a: usize, b: usize| own.iter().any(|id| rows[a][usize::from(id.0)] != rows[b][usize::from(id.0)]);
    let lost = |pair: &&[usize]| keys[pair[0]] == keys[pair[1]] && differ(pair[0], pair[1]);
    let (first, n) = (order.windows(2).find(lost)?, order.windows(2).filter(lost).count());
    let added = own.iter().filter(|id| !layout.columns().contains(id));
    let added: Vec<String> = added.map(|id| name_sql(table.column_name(*id))).collect();
    Some(Warning {
        code: None,
        what: format!("LAYOUT ({}) cannot hold these rows", layout.sql()),
        why: format!(
            "{} of {} writes have the key of another row, the first is {}",
            grouped(n as u64),
            grouped(keys.len() as u64),
            layout.show(&keys[first[0]])
        ),
        hint: match &added[..] {
            [] => "keep more of its columns in it".to_owned(),
            added => format!("add the rest of the table's own key: ({}, {})", layout.sql(), added.join(", ")),
        },
    })
}

/// Regions that a query in the plan cache which reads the table itself would ask under `layout`, on average.
fn read_fan_out(layout: &KeyLayout, known: &[KnownScan], simulation: &Simulation) -> Option<f64> {
    let reads_table = |scan: &&KnownScan| scan.spec.access.indexes().next().is_none() && !scan.spec.as_table;
    let asked = known.iter().filter(reads_table);
    let asked = asked.map(|scan| {
        let found = ranges(&scan.predicate, layout, LayoutRole::Primary);
        simulation.regions_asked(&found.ranges) as f64
    });
    let asked: Vec<f64> = asked.collect();
    (!asked.is_empty()).then(|| asked.iter().sum::<f64>() / asked.len() as f64)
}

/// Rounded to four decimals.
fn rounded(n: f64) -> f64 {
    (n * 10_000.0).round() / 10_000.0
}

fn doubles(values: impl Iterator<Item = f64>) -> ShowColumn {
    ShowColumn::Doubles(values.map(rounded).collect())
}

fn by_layout(all: &[Under]) -> Result<RecordBatch> {
    let fan_out = |s: &Under| s.read_fan_out.map_or_else(String::new, |n| rounded(n).to_string());
    let writes = |s: &Under| s.simulation.slices.iter().map(|slice| slice.spread.rows as i64).sum();
    let spread = |of: fn(&Spread) -> f64| doubles(all.iter().map(move |s| of(&s.simulation.spread)));
    rows_of(vec![
        ("layout", text(all.iter().map(|s| s.layout.sql()).collect())),
        ("writes", numbers(all.iter().map(writes).collect())),
        ("regions", numbers(all.iter().map(|s| s.simulation.regions.len() as i64).collect())),
        ("hottest", spread(|s| s.hottest)),
        ("parallelism", spread(|s| s.parallelism)),
        ("idle", spread(|s| s.idle)),
        ("read_fan_out", text(all.iter().map(fan_out).collect())),
    ])
}

/// Bounds of a region, from the first keys of all regions.
fn bounds(layout: &KeyLayout, starts: &[&Rowkey], at: usize) -> (String, String) {
    let shown = |key: &&Rowkey| layout.show(key);
    let from = if at == 0 { None } else { starts.get(at).map(shown) };
    let to = starts.get(at + 1).map(shown);
    (from.unwrap_or_else(|| "-∞".to_owned()), to.unwrap_or_else(|| "∞".to_owned()))
}

fn by_region(all: &[Under]) -> Result<RecordBatch> {
    let (mut names, mut places, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    let (mut shares, mut peaks) = (Vec::new(), Vec::new());
    for under in all {
        let regions = &under.simulation.regions;
        let starts: Vec<&Rowkey> = regions.iter().map(|region| &region.from).collect();
        let total: u64 = regions.iter().map(|region| region.rows).sum();
        for (at, region) in regions.iter().enumerate() {
            names.push(under.layout.sql());
            places.push((at as i64 + 1, bounds(&under.layout, &starts, at)));
            rows.push(region.rows as i64);
            shares.push(region.rows as f64 / total.max(1) as f64);
            peaks.push(region.peak);
        }
    }
    rows_of(vec![
        ("layout", text(names)),
        ("region", numbers(places.iter().map(|(n, _)| *n).collect())),
        ("from", text(places.iter().map(|(_, (from, _))| from.clone()).collect())),
        ("to", text(places.iter().map(|(_, (_, to))| to.clone()).collect())),
        ("rows", numbers(rows)),
        ("share", doubles(shares.into_iter())),
        ("peak", doubles(peaks.into_iter())),
    ])
}

fn by_region_and_slice(all: &[Under]) -> Result<RecordBatch> {
    let (mut names, mut places, mut writes, mut shares) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for under in all {
        for (n, slice) in under.simulation.slices.iter().enumerate() {
            let starts: Vec<&Rowkey> = slice.regions.iter().map(|(from, _)| from).collect();
            for (at, (_, rows)) in slice.regions.iter().enumerate() {
                names.push(under.layout.sql());
                places.push((n as i64 + 1, at as i64 + 1, bounds(&under.layout, &starts, at)));
                writes.push(*rows as i64);
                shares.push(*rows as f64 / slice.spread.rows.max(1) as f64);
            }
        }
    }
    rows_of(vec![
        ("layout", text(names)),
        ("slice", numbers(places.iter().map(|(slice, ..)| *slice).collect())),
        ("region", numbers(places.iter().map(|(_, region, _)| *region).collect())),
        ("from", text(places.iter().map(|(.., (from, _))| from.clone()).collect())),
        ("to", text(places.iter().map(|(.., (_, to))| to.clone()).collect())),
        ("writes", numbers(writes)),
        ("share", doubles(shares.into_iter())),
    ])
}

fn by_slice(all: &[Under]) -> Result<RecordBatch> {
    let each = || {
        all.iter().flat_map(|s| s.simulation.slices.iter().enumerate().map(move |(at, r)| (s, at, r.spread)))
    };
    rows_of(vec![
        ("layout", text(each().map(|(s, _, _)| s.layout.sql()).collect())),
        ("slice", numbers(each().map(|(_, at, _)| at as i64 + 1).collect())),
        ("writes", numbers(each().map(|(_, _, r)| r.rows as i64).collect())),
        ("regions", numbers(each().map(|(_, _, r)| r.regions as i64).collect())),
        ("hottest", doubles(each().map(|(_, _, r)| r.hottest))),
        ("parallelism", doubles(each().map(|(_, _, r)| r.parallelism))),
        ("idle", numbers(each().map(|(_, _, r)| r.idle as i64).collect())),
    ])
}
