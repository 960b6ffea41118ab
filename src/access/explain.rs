//! An access in EXPLAIN's words: one line, every literal range listed.
//!
//! ```text
//! Get customer_order keys=1 ['000000100042' <- order_id=240001000000]
//! RangeScan customer_order ranges=1 ['000123_2017-01-01' .. '000123_2017-01-02') reverse=false limit=10 residual=(status = 'paid')
//! SkipScan weather skip=(city = 'Oslo') reverse=false
//! IndexScan payments_by_customer ranges=1 [...] reverse=true fetch=customer_order
//! ```

use std::fmt::{self, Write};
use std::ops::Range;

use serde::Serialize;

use super::path::{Access, Method, Path, SetOp, Source};
use crate::key::{ColumnId, End, KeyLayout, KeyPart, KeyRange, Rowkey, hex};
use crate::plan::{CmpOp, Field, Predicate};
use crate::schema::TableDef;
use crate::store::Direction;
use crate::value::{Literal, Value, ValueRef};

/// Ranges or keys listed before the rest is only counted.
const LISTED: usize = 10;

/// One access, described.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Described {
    /// `RangeScan`, `Get` and so on.
    pub class: &'static str,
    /// The table or index read.
    pub name: String,
    /// Number of keys in a GET.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_count: Option<usize>,
    /// The first of these keys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// For each row of a join, the keys it asks for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_row: Vec<String>,
    /// For each value found by another part of the plan, the keys it asks for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_value: Vec<String>,
    /// Number of ranges scanned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range_count: Option<usize>,
    /// The first of these ranges.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<String>,
    /// The conditions of a skip scan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip: Option<String>,
    /// The key parts of which one key per combination is enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub each: Option<String>,
    /// How many keys per combination are enough, if more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
    /// The key parts in which other keys may tie with the last of these, which are needed, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ties: Option<String>,
    /// Reverse scan, greatest key first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverse: Option<bool>,
    /// The ranges are merged.
    #[serde(skip_serializing_if = "is_false")]
    pub merge: bool,
    /// Rows, at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Rows skipped by OFFSET.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The index is covering.
    #[serde(skip_serializing_if = "is_false")]
    pub covering: bool,
    /// Accesses whose rowkeys are combined.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<Described>,
    /// The table from which rows are fetched for index entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetch: Option<String>,
    /// The column families that are read, if the table has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub families: Vec<String>,
    /// The residual filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub residual: Option<String>,
}

/// What drives an access that gets its keys at run time, in words.
#[derive(Clone, Debug)]
pub enum RuntimeKeys {
    /// Each row of a join.
    ByRow(Vec<String>),
    /// Each value that a join or a subquery finds.
    ByValue(Vec<String>),
}

fn is_false(b: &bool) -> bool {
    !b
}

/// Describes an access. `verbose` adds the bytes of each range.
pub fn describe(source: Source<'_>, access: &Access, limit: Option<u64>, verbose: bool) -> Described {
    let (Source::Table(table) | Source::Index(table, _)) = source;
    let index = access.index(source);
    let as_table = matches!(source, Source::Index(..));
    // A bound longer than the index's own layout goes on into the pointer.
    let (name, layout, sorted) = match index {
        Some(index) if as_table => (&index.name, &index.layout, &index.layout),
        Some(index) => (&index.name, &index.layout, &index.sorted_by(&table.key).layout),
        None => (&table.name, &table.key, &table.key),
    };
    let names = |field: Field| match field {
        Field::Column(id) => table.column_name(id).to_owned(),
        Field::Rowkey => "rowkey".to_owned(),
        Field::PrimaryRowkey if as_table => "primary_rowkey".to_owned(),
        Field::PrimaryRowkey => "rowkey".to_owned(),
    };
    let mut out = Described { class: "Empty", name: name.clone(), ..Described::default() };
    match &access.method {
        Method::Empty => return out,
        Method::Get(keys) => {
            out.class = if keys.len() == 1 { "Get" } else { "MultiGet" };
            out.key_count = Some(keys.len());
            let asked = if keys.len() == 1 { asked_for(table, access) } else { Vec::new() };
            out.keys = keys.iter().take(LISTED).map(|key| show_key(table, key, &asked, verbose)).collect();
        }
        Method::Scan { ranges, direction, merge, skip } => {
            let whole = ranges.is_all();
            let ranges = ranges.as_slice();
            out.class = match (index, access.path) {
                _ if skip.is_some() => "SkipScan",
                (Some(_), Path::IndexOnly(_) | Path::IndexFetch(_)) => "IndexScan",
                _ if whole => "FullScan",
                _ => "RangeScan",
            };
            if !(whole && matches!(out.class, "FullScan" | "SkipScan")) {
                out.range_count = Some(ranges.len());
                let bounded_by = |key: &[u8]| match layout.len_in(key) {
                    Ok(len) if len < key.len() => sorted,
                    _ => layout,
                };
                let shown = ranges.iter().take(LISTED).map(|range| show_range(&bounded_by, range, verbose));
                out.ranges = shown.collect();
            }
            out.skip = skip.as_ref().filter(|s| !s.by.is_true()).map(|skipping| skipping.by.show(&names));
            let each = skip.as_ref().and_then(|skipping| skipping.skip.each_of());
            out.first = each.map(|each| each.rows).filter(|rows| *rows > 1);
            let shown_parts = |parts: Range<usize>| {
                // Columns that the layout has given need not be shown again for the pointer.
                let is_told = |part: &KeyPart| part.columns().iter().all(|c| layout.decodable().contains(c));
                let own = layout.parts().len();
                let parts = parts.map(|at| (at, &sorted.parts()[at]));
                let parts = parts.filter(|(at, part)| *at < own || !is_told(part));
                let shown = parts.filter(|(_, part)| !part.is_literal()).map(|(_, part)| part.sql());
                shown.collect::<Vec<_>>().join(", ")
            };
            out.each = each.map(|each| shown_parts(0..each.parts));
            out.ties = each.and_then(|each| Some(shown_parts(each.parts..each.tied?)));
            out.reverse = Some(*direction == Direction::Reverse);
            out.merge = merge.is_some();
        }
        Method::Gather { set, branches, direction, covering } => {
            out.class = match set {
                SetOp::Union => "Union",
                SetOp::Intersection => "Intersection",
            };
            out.branches = branches.iter().map(|branch| describe(source, branch, None, verbose)).collect();
            out.reverse = Some(*direction == Direction::Reverse);
            out.covering = *covering;
            out.fetch = (!covering).then(|| table.name.clone());
        }
    }
    out.limit = limit;
    match access.path {
        Path::IndexOnly(_) => out.covering = !as_table,
        Path::IndexFetch(_) => out.fetch = Some(table.name.clone()),
        Path::Primary => {}
    }
    let filters = [&access.entry_filter, &access.filter].into_iter().filter(|p| !p.is_true());
    let filters: Vec<Predicate> = filters.cloned().map(Predicate::from).collect();
    out.residual = (!filters.is_empty()).then(|| Predicate::and(filters).show(&names));
    out
}

impl Described {
    /// Describes one GET or range for each driving row or value.
    pub fn told(&mut self, told: RuntimeKeys) {
        if matches!(self.class, "Get" | "MultiGet" | "Empty") {
            self.class = "Get";
        }
        (self.key_count, self.range_count) = (None, None);
        (self.keys, self.ranges) = Default::default();
        match told {
            RuntimeKeys::ByRow(words) => self.by_row = words,
            RuntimeKeys::ByValue(words) => self.by_value = words,
        }
    }

    /// Its own line, and one for each combined access.
    pub fn lines(&self) -> Vec<String> {
        let below = self.branches.iter().flat_map(Described::lines).map(|line| format!("  {line}"));
        std::iter::once(self.to_string()).chain(below).collect()
    }
}

/// Its own line, in EXPLAIN's words.
impl fmt::Display for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.class, self.name)?;
        if !self.branches.is_empty() {
            write!(f, " branches={}", self.branches.len())?;
        }
        if let Some(n) = self.key_count {
            write!(f, " keys={n} [{}]", listed(&self.keys, n))?;
        }
        let of_what = if self.class == "Get" { "keys" } else { "ranges" };
        for (each, words) in [("row", &self.by_row), ("value", &self.by_value)] {
            if !words.is_empty() {
                write!(f, " {of_what}=one per {each} [{}]", words.join(", "))?;
            }
        }
        if let Some(n) = self.range_count {
            write!(f, " ranges={n} {}", listed(&self.ranges, n))?;
        }
        if let Some(skip) = &self.skip {
            write!(f, " skip=({skip})")?;
        }
        if let Some(each) = &self.each {
            write!(f, " each=({each})")?;
        }
        if let Some(first) = self.first {
            write!(f, " first={first}")?;
        }
        if let Some(ties) = &self.ties {
            write!(f, " ties=({ties})")?;
        }
        if let Some(reverse) = self.reverse {
            write!(f, " reverse={reverse}")?;
        }
        if self.merge {
            f.write_str(" merge=true")?;
        }
        if let Some(limit) = self.limit {
            write!(f, " limit={limit}")?;
        }
        if let Some(offset) = self.offset {
            write!(f, " offset={offset}")?;
        }
        if self.covering {
            f.write_str(" covering=true")?;
        }
        if let Some(table) = &self.fetch {
            write!(f, " fetch={table}")?;
        }
        if !self.families.is_empty() {
            let shown = &self.families[..LISTED.min(self.families.len())];
            write!(f, " families=[{}]", listed(shown, self.families.len()))?;
        }
        match &self.residual {
            Some(residual) => write!(f, " residual=({residual})"),
            None => Ok(()),
        }
    }
}

fn listed(shown: &[String], n: usize) -> String {
    let mut out = shown.join(", ");
    if n > shown.len() {
        let _ = write!(out, ", ... {} more", n - shown.len());
    }
    out
}

/// The values that the filter gives key columns which cannot be told from the key, such as that of `md5(id)`.
fn asked_for(table: &TableDef, access: &Access) -> Vec<(ColumnId, Value)> {
    let is_lost = |id: ColumnId| table.is_key_column(id) && !table.key.decodable().contains(&id);
    let filter = Predicate::from(access.filter.clone());
    let asked = filter.conjuncts().into_iter().filter_map(|term| match term {
        Predicate::Compare { field: Field::Column(id), op: CmpOp::Eq, value } if is_lost(id) => {
            Some((id, value))
        }
        _ => None,
    });
    asked.collect()
}

/// `'000000100042' <- order_id=240001000000`; `asked`: values that the key does not tell.
fn show_key(table: &TableDef, key: &Rowkey, asked: &[(ColumnId, Value)], verbose: bool) -> String {
    let mut shown = table.key.show_quoted(key);
    let mut columns: Vec<String> = Vec::new();
    let mut show = |id, value: ValueRef<'_>| {
        columns.push(format!("{}={}", table.column_name(id), Literal(value)));
    };
    asked.iter().for_each(|(id, value)| show(*id, value.as_ref()));
    let decoded = table.key.decode(key, &mut show);
    if decoded.is_ok() && !columns.is_empty() {
        let _ = write!(shown, " <- {}", columns.join(", "));
    }
    if verbose {
        let _ = write!(shown, " bytes={}", hex(key));
    }
    shown
}

/// `['000123_2017-01-01' .. '000123_2017-01-02')`, in the order of keys; a bound that is the end of a prefix is shown as
/// the last key of that prefix, and the successor of a text or of a number with a fraction as that: exclusive at the
/// start and inclusive at the end. The keys begin with `∞` if the first part is descending.
fn show_range<'l>(layout: &dyn Fn(&[u8]) -> &'l KeyLayout, range: &KeyRange, verbose: bool) -> String {
    let bound = |key: &[u8]| layout(key).show_bound(key);
    let before = |key: &Rowkey| match key.strip_suffix(b"\0") {
        Some(text) if layout(key).is_text() && !text.is_empty() && !text.ends_with(b"\0") => {
            Some(bound(text))
        }
        _ => layout(key).show_before(key),
    };
    let is_descending = layout(&[]).parts().first().is_some_and(KeyPart::is_descending);
    let (first, last) = if is_descending { ("∞", "-∞") } else { ("-∞", "∞") };
    let start = match before(&range.start) {
        _ if range.start.is_empty() => format!("[{first}"),
        Some(last) => format!("({last}"),
        None => format!("[{}", bound(&range.start)),
    };
    let mut shown = match &range.end {
        _ if range.as_point().is_some() => format!("[{0} .. {0}]", bound(&range.start)),
        End::Open => format!("{start} .. {last})"),
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
