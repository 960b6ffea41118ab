//! SHOW TRAFFIC: reads and writes per region, live, as a table or a heat map.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arrow::array::RecordBatch;
use sqlparser::ast::Ident;

use crate::design::heatmap::{Heatmap, Panel};
use crate::engine::show::{ShowColumn, numbers, rows_of, text};
use crate::engine::view::StatementView;
use crate::error::{Error, Result, sqlstate};
use crate::schema::{Lately, TableDef, TrafficKind};
use crate::sql::name_sql;
use crate::value::Value;

/// The counters of each region; a table of one region is not counted.
pub fn done(table: &TableDef, access: TrafficKind) -> ShowColumn {
    let counts = table.traffic.counts();
    let of = |at: usize| counts.get(at).map_or(0, |n| n[access as usize] as i64);
    match table.splits.len() {
        0 => ShowColumn::Unknown(1),
        cuts => numbers((0..=cuts).map(of).collect()),
    }
}

/// The table, which must be counted. Errors: it has one region only.
fn counted(view: &StatementView, name: &Ident) -> Result<Arc<TableDef>> {
    let table = view.table(name)?;
    if table.splits.is_empty() {
        return Err(Error::invalid(format!("table \"{}\" has one region", table.name))
            .why("what is read and written is counted region by region")
            .hint(format!(
                "ALTER TABLE {} SPLIT INTO 16 FROM DATA cuts it, if it has 16 rows or more",
                name_sql(&table.name)
            ))
            .state(sqlstate::OBJECT_STATE));
    }
    Ok(table)
}

/// SHOW TRAFFIC: a row for each region, with a sparkline of the last minutes; reads no rows.
pub fn show(view: &StatementView, name: &Ident) -> Result<RecordBatch> {
    let table = counted(view, name)?;
    let n = table.splits.len() + 1;
    let cuts = table.splits.iter().map(|key| table.key.show(key));
    let lately = |access| {
        let slices = table.traffic.lately().map_or_else(Vec::new, |lately| slices(&lately, access));
        text(pictures(&slices, n))
    };
    rows_of(vec![
        ("region", numbers((1..=n as i64).collect())),
        ("from", text(std::iter::once("-∞".to_owned()).chain(cuts).collect())),
        ("reads", done(&table, TrafficKind::Read)),
        ("writes", done(&table, TrafficKind::Write)),
        ("reads_lately", lately(TrafficKind::Read)),
        ("writes_lately", lately(TrafficKind::Write)),
    ])
}

/// A heat map of a table's last minutes, reads beside writes.
pub fn heatmap(view: &StatementView, name: &Ident, source: String) -> Result<Heatmap> {
    let table = counted(view, name)?;
    let lately = table.traffic.lately();
    let panel = |access, unit| {
        let (counts, times) = match &lately {
            Some(lately) => (slices(lately, access), times(lately, SystemTime::now())),
            None => (Vec::new(), Vec::new()),
        };
        Panel::of_counts(unit, (&table.key, &table.splits), &counts, times)
    };
    let since = match &lately {
        Some(lately) => format!("in slices of {} s", lately.slice_ms / 1000),
        None => "if there were any".to_owned(),
    };
    Ok(Heatmap {
        title: format!("Reads and writes of {}", table.name),
        source,
        about: format!(
            "Rows that were read and written lately, {since}, counted while the database was in use. The key space \
             runs down, region after region, all of one height, however many rows they hold. What a query reads of an index \
             table alone is not counted."
        ),
        is_comparison: false,
        panels: vec![panel(TrafficKind::Read, "reads"), panel(TrafficKind::Write, "writes")],
    })
}

/// Rows per slice of time and region; the last slice is the current one.
fn slices(lately: &Lately, access: TrafficKind) -> Vec<Vec<u64>> {
    let Some((first, counts)) = lately.slices.first() else { return Vec::new() };
    let mut all = vec![vec![0; counts.len()]; (lately.now - first) as usize + 1];
    for (number, counts) in &lately.slices {
        all[(number - first) as usize] = counts.iter().map(|n| n[access as usize]).collect();
    }
    all
}

/// When each slice began, and now, in UTC.
fn times(lately: &Lately, clock: SystemTime) -> Vec<String> {
    let Some((first, _)) = lately.slices.first() else { return Vec::new() };
    let ago = |slice: u64| (lately.now - slice) * lately.slice_ms + lately.passed_ms;
    let time = |ago_ms: u64| {
        let at = clock - Duration::from_millis(ago_ms);
        let seconds = at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        format!("{} UTC", Value::Timestamp(seconds as i64 * 1_000_000))
    };
    (*first..=lately.now).map(|slice| time(ago(slice))).chain([time(0)]).collect()
}

/// Levels of a sparkline: nothing, then eighths of the maximum.
const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Sparklines: a line for each region, a character for each slice of time. The height is relative to the
/// maximum of all regions and slices.
fn pictures(slices: &[Vec<u64>], regions: usize) -> Vec<String> {
    let most = slices.iter().flatten().copied().max().unwrap_or(0);
    let level = |rows: u64| LEVELS[(rows * 8).div_ceil(most.max(1)) as usize];
    (0..regions).map(|region| slices.iter().map(|slice| level(slice[region])).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lately() -> Lately {
        let slice = |number, writes: [u64; 3]| (number, writes.map(|n| [1, n]).to_vec());
        Lately {
            slice_ms: 2_000,
            slices: vec![slice(10, [800, 0, 1]), slice(12, [400, 100, 0])],
            now: 13,
            passed_ms: 500,
        }
    }

    #[test]
    fn a_picture_has_a_line_a_region_and_a_character_a_slice() {
        assert_eq!(pictures(&slices(&lately(), TrafficKind::Write), 3), ["█ ▄ ", "  ▁ ", "▁   "]);
        assert_eq!(pictures(&slices(&lately(), TrafficKind::Read), 3), ["█ █ "; 3]);
        assert_eq!(pictures(&[], 2), ["", ""]);
    }

    #[test]
    fn times_are_when_slices_began_and_now() {
        let clock = SystemTime::UNIX_EPOCH + Duration::from_millis(86_406_700);
        let clocks = ["00:00:00", "00:00:02", "00:00:04", "00:00:06", "00:00:06"];
        assert_eq!(times(&lately(), clock), clocks.map(|time| format!("1970-01-02 {time} UTC")));
    }
}
