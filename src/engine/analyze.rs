//! ANALYZE: statistics of a table, from a sample of its rows and a count of the distinct prefixes of its
//! keys. They are collected again when a table has doubled or halved, by the statement that made it so.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::Database;
use crate::error::Result;
use crate::exec::stored;
use crate::exec::watch::Watch;
use crate::key::{ColumnId, KeyLayout, KeyRange};
use crate::plan::Values;
use crate::schema::{ColumnStatistics, TableDef, TableId, TableStatistics};
use crate::store::{Direction, KeyspaceId, Reader};
use crate::value::{ColumnType, Value};

/// Rows in a sample (count), about.
const SAMPLE_ROWS: u64 = 30_000;
/// Common values kept for a column (count), at most.
const COMMON_MAX: usize = 50;
/// Smaller tables count as having this many rows when we ask whether a table has grown or shrunk.
const REFRESH_ROWS_MIN: u64 = 1000;
/// Buckets of a histogram (count).
const PARTS: usize = 100;

/// Collects the statistics of `table` and stores them.
pub fn analyze(db: &Database, table: &TableDef, watch: &Watch) -> Result<()> {
    let snapshot = db.store().snapshot()?;
    let reader = snapshot.reader()?;
    // A store's count is not part of a snapshot: what others write during the walk must not seem counted too often.
    let counted = reader.entries(table.rows())?;
    let (found, _) = look(&*reader, table, watch)?;
    db.store().recount(table.rows(), found.rows as i64 - counted as i64);
    db.change_catalog(&watch.cancel, |catalog| Ok(((), catalog.with_statistics(table, found)?)))?;
    // Plans were chosen by the statistics before.
    db.plans().forget();
    Ok(())
}

/// A sample of a table's rows, column by column, in key order.
pub type Sample = Vec<(ColumnId, Vec<Value>)>;

/// Collects the statistics of `table`; also gives the sample they come from.
pub fn look(reader: &dyn Reader, table: &TableDef, watch: &Watch) -> Result<(TableStatistics, Sample)> {
    let (mut found, sample) = sampled(reader, table, watch)?;
    let indexes = table.indexes.iter().map(|index| (index.keyspace, &index.layout));
    for (keyspace, layout) in std::iter::once((table.rows(), &table.key)).chain(indexes) {
        found.prefixes.push((keyspace, prefixes(reader, keyspace, layout, &table.name, watch)?));
    }
    Ok((found, sample))
}

/// Tables whose statistics could not be refreshed: rows (count) at that time, and rows in the old statistics.
pub type Failed = HashMap<TableId, (u64, u64)>;

/// Refreshes the statistics of this table, or of all, where there are twice or half as many rows as when they were
/// collected. Until then, their shares of all rows are assumed to hold. One writer refreshes, the others go on. After a
/// failure (a timeout, say) nobody tries again before the table has doubled or halved once more, or ANALYZE is run.
pub fn refresh(db: &Database, table: Option<&str>, watch: &Watch) {
    let Some(mut failed) = db.shared.refreshing.try_lock() else { return };
    let catalog = db.catalog();
    let written: Vec<Arc<TableDef>> = match table {
        Some(name) => catalog.table(name).into_iter().collect(),
        None => catalog.tables().cloned().collect(),
    };
    let mut analyzed = written.iter().filter_map(|t| Some((t, catalog.statistics(t.id)?))).peekable();
    if analyzed.peek().is_none() {
        return;
    }
    let Ok(snapshot) = db.store().snapshot() else { return };
    let rows_of = |table: &TableDef| snapshot.reader().and_then(|reader| reader.entries(table.rows()));
    for (table, statistics) in analyzed {
        let Ok(rows) = rows_of(table) else { continue };
        let tried = failed.get(&table.id).filter(|(_, collected)| *collected == statistics.rows);
        let then = tried.map_or(statistics.rows, |(rows, _)| *rows);
        let (now, then) = (rows.max(REFRESH_ROWS_MIN), then.max(REFRESH_ROWS_MIN));
        if now < 2 * then && 2 * now > then {
            continue;
        }
        if analyze(db, table, watch).is_err() {
            failed.insert(table.id, (rows, statistics.rows));
        }
    }
}

/// Reads the sample.
fn sampled(reader: &dyn Reader, table: &TableDef, watch: &Watch) -> Result<(TableStatistics, Sample)> {
    let (label, rows) = (format!("analyzing {}", table.name), reader.entries(table.rows())?);
    let every = rows.div_ceil(SAMPLE_ROWS).max(1);
    let known = |ty: ColumnType| !matches!(ty, ColumnType::Json | ColumnType::Varbinary);
    let columns = table.live_columns().map(|(id, _)| id).chain(table.formulas().map(|(id, _)| id));
    let mut sample: Sample =
        columns.filter(|id| known(table.column(*id).ty)).map(|id| (id, Vec::new())).collect();
    // One row of each stretch, at a varying offset (Weyl's sequence), in case the data is periodic.
    let place = |stretch: u64| (stretch.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % every;
    let mut cursor = reader.cursor(table.rows(), &KeyRange::all(), Direction::Forward)?;
    let (mut n, mut sampled) = (0, 0);
    while let Some((key, value)) = cursor.next()? {
        watch.tick(&label, n, Some(rows), "rows")?;
        if n % every == place(n / every) {
            let row = stored::values_of(reader, table, key, value)?;
            sampled += 1;
            for (id, values) in &mut sample {
                values.push(match &table.column(*id).formula {
                    // A row for which the formula has no value has no index entry either.
                    Some(formula) => formula.eval(&Values(&row)).unwrap_or(Value::Null),
                    None => row[usize::from(id.0)].clone(),
                });
            }
        }
        n += 1;
    }
    // The store's row count may be an estimate; this one is exact.
    let rows = n;
    let columns = sample.iter().map(|(id, values)| (*id, column(values, rows))).collect();
    Ok((TableStatistics { rows, sampled, columns, prefixes: Vec::new() }, sample))
}

/// Statistics of a column from a sample of its values, of `rows` in all.
fn column(values: &[Value], rows: u64) -> ColumnStatistics {
    let sample = values.len() as f64;
    let mut counts: BTreeMap<Value, u64> = BTreeMap::new();
    let mut nulls = 0.0;
    for value in values {
        match value {
            Value::Null => nulls += 1.0,
            value => *counts.entry(cut(value.clone())).or_default() += 1,
        }
    }
    if sample == 0.0 {
        return ColumnStatistics::default();
    }
    let distinct = distinct(&counts, sample - nulls, rows as f64 * (1.0 - nulls / sample));
    let mut by_count: Vec<(&Value, u64)> = counts.iter().map(|(value, n)| (value, *n)).collect();
    by_count.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    // A value is common if it was seen more than once and more often than average; all are if there are few.
    let average = (sample - nulls) / counts.len().max(1) as f64;
    let few = counts.len() <= COMMON_MAX && distinct < counts.len() as f64 * 1.1;
    let is_common = |n: u64| few || (n > 1 && n as f64 > 1.25 * average);
    let common: Vec<(Value, f64)> = by_count
        .iter()
        .take(COMMON_MAX)
        .filter(|(value, n)| is_common(*n) && can_be_kept(value))
        .map(|(value, n)| ((*value).clone(), *n as f64 / sample))
        .collect();
    let rest: Vec<(&Value, u64)> =
        counts.iter().filter(|(v, _)| !common.iter().any(|(c, _)| c == *v)).map(|(v, n)| (v, *n)).collect();
    ColumnStatistics { nulls: nulls / sample, distinct, bounds: bounds(&rest), common }
}

/// Estimate of the distinct values among `rows`, from a sample (Haas and Stokes 1998, as in PostgreSQL).
fn distinct(counts: &BTreeMap<Value, u64>, sample: f64, rows: f64) -> f64 {
    let seen = counts.len() as f64;
    let once = counts.values().filter(|n| **n == 1).count() as f64;
    if sample <= 0.0 || rows <= sample {
        return seen;
    }
    (sample * seen / (sample - once + once * sample / rows)).clamp(seen, rows)
}

/// Histogram bounds: buckets hold equally many values.
fn bounds(values: &[(&Value, u64)]) -> Vec<Value> {
    let total: u64 = values.iter().map(|(_, n)| n).sum();
    let values: Vec<&(&Value, u64)> = values.iter().filter(|(v, _)| can_be_kept(v)).collect();
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return Vec::new() };
    let parts = (PARTS as u64).min(total).max(1);
    let mut bounds = vec![first.0.clone()];
    let mut passed = 0;
    for (value, n) in values.iter().map(|v| (v.0, v.1)) {
        passed += n;
        while (bounds.len() as u64) < parts && passed * parts >= bounds.len() as u64 * total {
            bounds.push(value.clone());
        }
    }
    bounds.push(last.0.clone());
    bounds
}

/// JSON, in which statistics are stored, cannot express NaN and infinity.
fn can_be_kept(value: &Value) -> bool {
    !matches!(value, Value::Double(d) if !d.is_finite())
}

fn cut(value: Value) -> Value {
    match value {
        Value::Text(mut text) => {
            text.truncate(text.floor_char_boundary(TableStatistics::TEXT_BYTES));
            Value::Text(text)
        }
        other => other,
    }
}

/// Number of distinct key prefixes of one part, of two parts, ...
fn prefixes(
    reader: &dyn Reader,
    keyspace: KeyspaceId,
    layout: &KeyLayout,
    table: &str,
    watch: &Watch,
) -> Result<Vec<u64>> {
    let label = format!("analyzing {table}");
    let mut counts = vec![0; layout.parts().len()];
    let mut last: Vec<u8> = Vec::new();
    let mut cursor = reader.cursor(keyspace, &KeyRange::all(), Direction::Forward)?;
    let mut n = 0;
    while let Some((key, _)) = cursor.next()? {
        watch.tick(&label, n, None, "entries")?;
        let same = if n == 0 { 0 } else { key.iter().zip(&last).take_while(|(a, b)| a == b).count() };
        let mut at = 0;
        for (part, count) in counts.iter_mut().enumerate() {
            let Some(end) = layout.end_of(part, key, at) else { break };
            if n == 0 || end > same {
                *count += 1;
            }
            at = end;
        }
        last.clear();
        last.extend_from_slice(key);
        n += 1;
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_in_numbers() {
        // Half sevens, a tenth NULL, the rest all different.
        let value = |n: i64| match n % 10 {
            0 => Value::Null,
            1..6 => Value::Int(7),
            _ => Value::Int(1000 + n),
        };
        let found = column(&(0..1000).map(value).collect::<Vec<_>>(), 100_000);
        assert_eq!(found.nulls, 0.1);
        assert_eq!(found.common, [(Value::Int(7), 0.5)]);
        assert!((700.0..1000.0).contains(&found.distinct), "{}", found.distinct);
        assert_eq!(found.bounds.len(), 101);
        assert!(found.bounds.is_sorted());
        assert_eq!(column(&[], 0), ColumnStatistics::default());
        assert_eq!(column(&[Value::Double(f64::NAN)], 1).common, []);
    }

    #[test]
    fn few_values_are_all_common() {
        let found = column(&(0..300).map(|n| Value::Int(n % 3)).collect::<Vec<_>>(), 300);
        assert_eq!((found.distinct, found.common.len(), found.bounds.len()), (3.0, 3, 0));
    }
}
