//! LINT: finds problems in a table's design, and the SQL that fixes them.
//!
//! Each [`LintRule`] is one small function over a table or one of its layouts and the measured [`TableFacts`]. Without
//! data, only the layout is judged ([`KeyLayout::warnings`](crate::key::KeyLayout::warnings), which CREATE
//! prints).

mod facts;
mod fixes;
mod layouts;
mod tables;
mod values;

pub use facts::{ColumnFacts, Growth, KeyspaceFacts, QueryFacts, TableFacts, growth};

use crate::key::{Concern, KeyLayout};
use crate::schema::{IndexDef, TableDef};
use crate::store::KeyspaceId;

/// Rows (count) from which what is seen in them is more than chance.
const ROWS_ENOUGH: u64 = 100;

/// The rules. Codes are permanent: that of a removed rule is not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LintRule {
    /// New rows all go to one end of the table or index.
    Hotspot = 1,
    /// One key's text is a prefix of another's: `host1`, `host12`.
    Bleeding = 2,
    /// Numbers as text of no fixed width.
    Unpadded = 3,
    /// Values almost fill their pad.
    NarrowPad = 4,
    /// The pad is far wider than any value.
    WidePad = 5,
    /// Formatted time that does not sort.
    UnsortedTime = 6,
    /// Formatted time, reversed.
    ReversedTime = 7,
    /// Text padded in front.
    PaddedText = 8,
    /// Buckets that are too full, or empty.
    SkewedSalt = 9,
    /// Queries read all buckets.
    FanOut = 10,
    /// A hash in front makes range scans read everything.
    WholeScan = 11,
    /// An index with few distinct keys.
    FewKeys = 12,
    /// The delimiter of keys concatenated by the user occurs in their values.
    StrayDelimiter = 13,
    /// Keys longer than necessary.
    LongKey = 14,
    /// Whole numbers in text.
    NumbersAsText = 15,
    /// Few names, spelt out in every key.
    NamesAsText = 16,
    /// An index that another one makes redundant.
    RedundantIndex = 17,
    /// An index that no query reads.
    UnusedIndex = 18,
    /// A family with far fewer entries than the table has rows.
    SparseFamily = 19,
    /// Very large rows.
    WideRows = 20,
    /// Regions that are empty, or too full.
    LumpyRegions = 21,
    /// A rowkey that is unique only with its random bucket.
    DrawnKey = 22,
    /// A part of the key that says nothing new.
    IdlePart = 23,
    /// A foreign key whose rows nothing finds.
    UnindexedReference = 24,
    /// A table without a PRIMARY KEY.
    Unkeyed = 25,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Writes will fail, or answers are not what was meant.
    Error,
    /// It costs time or space, more as the table grows.
    Warning,
    /// It could be smaller or simpler.
    Note,
}

impl Severity {
    /// The name, as LINT prints it.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

impl LintRule {
    /// The code, such as `RK001`.
    pub fn code(self) -> String {
        format!("RK{:03}", self as u8)
    }

    fn severity(self) -> Severity {
        match self {
            LintRule::Hotspot
            | LintRule::Bleeding
            | LintRule::Unpadded
            | LintRule::NarrowPad
            | LintRule::UnsortedTime
            | LintRule::ReversedTime
            | LintRule::SkewedSalt
            | LintRule::WholeScan
            | LintRule::FewKeys
            | LintRule::StrayDelimiter
            | LintRule::WideRows
            | LintRule::LumpyRegions
            | LintRule::DrawnKey
            | LintRule::IdlePart
            | LintRule::LongKey
            | LintRule::UnindexedReference
            | LintRule::Unkeyed => Severity::Warning,
            LintRule::PaddedText
            | LintRule::WidePad
            | LintRule::FanOut
            | LintRule::NumbersAsText
            | LintRule::NamesAsText
            | LintRule::RedundantIndex
            | LintRule::UnusedIndex
            | LintRule::SparseFamily => Severity::Note,
        }
    }
}

impl From<Concern> for LintRule {
    fn from(concern: Concern) -> LintRule {
        match concern {
            Concern::Hotspot => LintRule::Hotspot,
            Concern::UnsortedTime => LintRule::UnsortedTime,
            Concern::ReversedTime => LintRule::ReversedTime,
            Concern::Unpadded => LintRule::Unpadded,
            Concern::PaddedText => LintRule::PaddedText,
            Concern::FanOut => LintRule::FanOut,
            Concern::DrawnKey => LintRule::DrawnKey,
            Concern::WholeScan => LintRule::WholeScan,
            Concern::LongKey => LintRule::LongKey,
            Concern::IdlePart => LintRule::IdlePart,
        }
    }
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: LintRule,
    /// How bad it is.
    pub severity: Severity,
    /// The table.
    pub table: String,
    /// The index; empty for the table itself.
    pub index: String,
    /// What was seen, in the data if there is any.
    pub seen: String,
    /// Why it matters.
    pub why: String,
    /// The SQL that fixes it, or advice if there is none.
    pub fix: String,
}

/// A table or one of its indexes, to be judged.
#[derive(Clone, Copy)]
struct Subject<'a> {
    table: &'a TableDef,
    index: Option<&'a IndexDef>,
    facts: &'a TableFacts,
}

impl<'a> Subject<'a> {
    fn layout(&self) -> &'a KeyLayout {
        self.index.map_or(&self.table.key, |index| &index.layout)
    }

    fn id(&self) -> KeyspaceId {
        self.index.map_or(self.table.rows(), |index| index.keyspace)
    }

    /// The counts, if there are enough entries to judge.
    fn counted(&self) -> Option<&'a KeyspaceFacts> {
        self.facts.keyspace(self.id()).filter(|counted| counted.entries >= ROWS_ENOUGH)
    }

    fn finding(&self, rule: LintRule, seen: String, why: &str, fix: String) -> Finding {
        Finding {
            rule,
            severity: rule.severity(),
            table: self.table.name.clone(),
            index: self.index.map_or_else(String::new, |index| index.name.clone()),
            seen,
            why: why.to_owned(),
            fix,
        }
    }
}

/// All findings about a table and its indexes, the worst first.
pub fn lint(table: &TableDef, facts: &TableFacts) -> Vec<Finding> {
    let whole = Subject { table, index: None, facts };
    let indexes = table.indexes.iter().map(|index| Subject { index: Some(index), ..whole });
    let mut found: Vec<Finding> = Vec::new();
    for subject in std::iter::once(whole).chain(indexes) {
        // That rows are numbered is nobody's layout.
        if subject.index.is_some() || table.row_number().is_none() {
            found.extend(layouts::judge(&subject));
        }
        found.extend(values::judge(&subject));
    }
    found.extend(tables::judge(&whole));
    found.sort_by(|a, b| (a.severity, a.rule, &a.index).cmp(&(b.severity, b.rule, &b.index)));
    found
}

/// `41%`; below one percent, `0.3%`.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 1.0 { format!("{percent:.1}%") } else { format!("{percent:.0}%") }
}

/// `18 bytes`, `7.0 KB`, `1.2 MB`.
fn bytes(n: f64) -> String {
    match n {
        n if n < 2_000.0 => format!("{n:.0} bytes"),
        n if n < 1_000_000.0 => format!("{:.1} KB", n / 1e3),
        n => format!("{:.1} MB", n / 1e6),
    }
}
