//! An access in EXPLAIN's words: one line, every literal range listed.
//!
//! ```text
//! Get customer_order keys=1 ['000000100042' <- order_id=240001000000]
//! RangeScan customer_order ranges=1 ['000123_2017-01-01' .. '000123_2017-01-02') reverse=false limit=10 residual=(status = 'paid')
//! SkipScan weather skip=(city = 'Oslo') reverse=false
//! IndexScan payments_by_customer ranges=1 [...] reverse=true fetch=customer_order
//! ```

use std::fmt::Write;

use super::choose::{Access, Method, Path};
use crate::key::{End, KeyLayout, KeyRange, Rowkey, hex};
use crate::plan::{Field, Predicate};
use crate::schema::{IndexDef, TableDef};
use crate::store::Direction;
use crate::value::{Literal, ValueRef};

/// Ranges or keys listed before the rest is counted.
const LISTED: usize = 10;

/// The line of one access. `as_table`: the index table is read as a table of its own. `verbose` adds
/// each range in bytes.
pub fn describe(
    table: &TableDef,
    index: Option<&IndexDef>,
    as_table: bool,
    access: &Access,
    limit: Option<u64>,
    verbose: bool,
) -> String {
    let (name, layout) = match index {
        Some(index) => (&index.name, &index.layout),
        None => (&table.name, &table.key),
    };
    let names = |field: Field| match field {
        Field::Column(id) => table.column_name(id).to_owned(),
        Field::Rowkey => "rowkey".to_owned(),
        Field::PrimaryRowkey if as_table => "primary_rowkey".to_owned(),
        Field::PrimaryRowkey => "rowkey".to_owned(),
    };
    let mut line = String::new();
    match &access.method {
        Method::Empty => return format!("Empty {name}"),
        Method::Get(keys) => {
            let class = if keys.len() == 1 { "Get" } else { "MultiGet" };
            let shown = keys.iter().map(|key| show_key(table, key, verbose));
            line = format!("{class} {name} keys={} [{}]", keys.len(), listed(shown, keys.len()));
        }
        Method::Scan { ranges, direction, merge, skip } => {
            let ranges = ranges.as_slice();
            let shown = ranges.iter().map(|range| show_range(layout, range, verbose));
            let whole = matches!(ranges, [only] if *only == KeyRange::all());
            let class = match (index, access.path) {
                _ if skip.is_some() => "SkipScan",
                (Some(_), Path::IndexOnly(_) | Path::IndexFetch(_)) => "IndexScan",
                _ if whole => "FullScan",
                _ => "RangeScan",
            };
            let _ = write!(line, "{class} {name}");
            if !(whole && matches!(class, "FullScan" | "SkipScan")) {
                let _ = write!(line, " ranges={} {}", ranges.len(), listed(shown, ranges.len()));
            }
            if let Some(skipping) = skip {
                let _ = write!(line, " skip=({})", skipping.by.show(&names));
            }
            let _ = write!(line, " reverse={}", *direction == Direction::Reverse);
            if merge.is_some() {
                line.push_str(" merge=true");
            }
        }
    }
    if let Some(limit) = limit {
        let _ = write!(line, " limit={limit}");
    }
    match access.path {
        Path::IndexOnly(_) if !as_table => line.push_str(" covering=true"),
        Path::IndexFetch(_) => {
            let _ = write!(line, " fetch={}", table.name);
        }
        _ => {}
    }
    let filters: Vec<Predicate> =
        [&access.entry_filter, &access.filter].into_iter().filter(|p| !p.is_true()).cloned().collect();
    if !filters.is_empty() {
        let _ = write!(line, " residual=({})", Predicate::and(filters).show(&names));
    }
    line
}

fn listed(shown: impl Iterator<Item = String>, n: usize) -> String {
    let mut out = shown.take(LISTED).collect::<Vec<_>>().join(", ");
    if n > LISTED {
        let _ = write!(out, ", ... {} more", n - LISTED);
    }
    out
}

/// `'000000100042' <- order_id=240001000000`
fn show_key(table: &TableDef, key: &Rowkey, verbose: bool) -> String {
    let mut shown = quoted(&table.key, key, table.key.show(key));
    let mut columns: Vec<String> = Vec::new();
    let decoded = table.key.decode(key, &mut |id, value: ValueRef<'_>| {
        columns.push(format!("{}={}", table.column_name(id), Literal(value)));
    });
    if decoded.is_ok() && !columns.is_empty() {
        let _ = write!(shown, " <- {}", columns.join(", "));
    }
    if verbose {
        let _ = write!(shown, " bytes={}", hex(key));
    }
    shown
}

fn quoted(layout: &KeyLayout, bytes: &[u8], shown: String) -> String {
    if layout.is_text() && std::str::from_utf8(bytes).is_ok() {
        format!("'{}'", shown.replace('\'', "''"))
    } else {
        shown
    }
}

/// `['000123_2017-01-01' .. '000123_2017-01-02')`; a bound that is the end of a prefix reads as the
/// last key of that prefix, and the successor of a text as that text: excluded at the start and
/// included at the end.
fn show_range(layout: &KeyLayout, range: &KeyRange, verbose: bool) -> String {
    let bound = |key: &[u8]| quoted(layout, key, layout.show_prefix(key));
    let before = |key: &Rowkey| match key.strip_suffix(b"\0") {
        Some(text) if layout.is_text() && !text.is_empty() && !text.ends_with(b"\0") => Some(bound(text)),
        _ => layout.show_before(key),
    };
    let start = match before(&range.start) {
        _ if range.start.is_empty() => "[-∞".to_owned(),
        Some(last) => format!("({last}"),
        None => format!("[{}", bound(&range.start)),
    };
    let mut shown = match &range.end {
        End::Open => format!("{start} .. ∞)"),
        End::Before(end) => match before(end) {
            Some(last) => format!("{start} .. {last}]"),
            None => format!("{start} .. {})", bound(end)),
        },
    };
    if verbose {
        let end = match &range.end {
            End::Before(end) => hex(end),
            End::Open => "∞".into(),
        };
        let _ = write!(shown, " bytes={} .. {end}", hex(&range.start));
    }
    shown
}
