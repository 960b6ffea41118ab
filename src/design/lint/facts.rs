//! Facts: what LINT measures of a table before judging it.

use std::collections::{BTreeMap, BTreeSet};

use crate::key::{ColumnId, KeyLayout, Rowkey};
use crate::schema::{IndexId, TableDef, TableStatistics};
use crate::store::KeyspaceId;
use crate::value::Value;

/// Delimiters looked for in keys that users concatenated themselves.
pub(super) const DELIMITERS: &[u8] = b"_:|/#-.,;~";
/// Share of neighbours in order from which a column counts as growing with another.
const GROWS_SHARE: f64 = 0.98;

/// The measurements of one table.
#[derive(Clone, Debug, Default)]
pub struct TableFacts {
    /// ANALYZE's statistics.
    pub statistics: TableStatistics,
    /// Facts of key columns.
    pub columns: Vec<(ColumnId, ColumnFacts)>,
    /// Facts of families and indexes.
    pub keyspaces: Vec<(KeyspaceId, KeyspaceFacts)>,
    /// Queries in the plan cache that read the table.
    pub queries: Vec<QueryFacts>,
}

/// Facts of a column, from a sample of its values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnFacts {
    /// Characters of the shortest value's text form.
    pub chars_min: usize,
    /// Characters of the longest.
    pub chars_max: usize,
    /// Characters on average.
    pub chars_mean: f64,
    /// Share of the values that consist of digits.
    pub numerals: f64,
    /// How it grows.
    pub growth: Option<Growth>,
}

/// Evidence that new values are greater than old ones.
#[derive(Clone, Debug, PartialEq)]
pub enum Growth {
    /// Consecutive numbers, from and to.
    Sequence(i64, i64),
    /// A time column grows with it, in this share of neighbours.
    With(ColumnId, f64),
}

/// Counts of a keyspace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyspaceFacts {
    /// Entries.
    pub entries: u64,
    /// Bytes of all keys.
    pub key_bytes: u64,
    /// Bytes of all values, as stored.
    pub value_bytes: u64,
    /// Bytes of the largest value.
    pub value_bytes_max: u64,
    /// Entries of each bucket of the leading part, if it has buckets.
    pub buckets: BTreeMap<Vec<u8>, u64>,
    /// Keys (count) that continue the key before them, which ends in a digit, with another digit.
    pub bleeding: u64,
    /// The first such pair.
    pub bleeding_example: Option<(Vec<u8>, Vec<u8>)>,
    /// Entries between split points.
    pub regions: Vec<u64>,
    /// For each of [`DELIMITERS`] and each number of occurrences, the number of keys.
    pub delimiters: BTreeMap<(u8, usize), u64>,
    last: Vec<u8>,
}

/// How a query in the plan cache reads the table.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryFacts {
    /// Its text, literals lifted out.
    pub sql: String,
    /// The index it reads; `None` for the table itself.
    pub index: Option<IndexId>,
    /// Ranges read (count).
    pub ranges: usize,
    /// The ranges lie in several buckets.
    pub fans_out: bool,
}

impl TableFacts {
    /// Facts of one column.
    pub fn column(&self, id: ColumnId) -> Option<&ColumnFacts> {
        self.columns.iter().find(|(c, _)| *c == id).map(|(_, facts)| facts)
    }

    /// Facts of one keyspace.
    pub fn keyspace(&self, id: KeyspaceId) -> Option<&KeyspaceFacts> {
        self.keyspaces.iter().find(|(k, _)| *k == id).map(|(_, facts)| facts)
    }

    /// Number of distinct queries that read the table.
    pub fn known_queries(&self) -> usize {
        self.queries.iter().map(|query| &query.sql).collect::<BTreeSet<_>>().len()
    }

    /// Rows of the table.
    pub fn rows(&self) -> u64 {
        self.statistics.rows
    }
}

impl KeyspaceFacts {
    /// Counts the next entry; entries come in key order.
    pub fn count(&mut self, layout: &KeyLayout, splits: &[Rowkey], key: &[u8], value: &[u8]) {
        let passed = splits[self.regions.len().saturating_sub(1)..].iter().take_while(|cut| key >= &cut[..]);
        let region = self.regions.len().max(1) + passed.count();
        self.regions.resize(region, 0);
        self.regions[region - 1] += 1;
        self.entries += 1;
        self.key_bytes += key.len() as u64;
        self.value_bytes += value.len() as u64;
        self.value_bytes_max = self.value_bytes_max.max(value.len() as u64);
        if let Some(end) = bucket_end(layout, key) {
            match self.buckets.get_mut(&key[..end]) {
                Some(n) => *n += 1,
                None => drop(self.buckets.insert(key[..end].to_vec(), 1)),
            }
        }
        if is_made_by_hand(layout) {
            self.count_by_hand(key);
            self.last.clear();
            self.last.extend_from_slice(key);
        }
    }

    fn count_by_hand(&mut self, key: &[u8]) {
        let goes_on = key.strip_prefix(&self.last[..]).and_then(<[u8]>::first);
        if goes_on.is_some_and(u8::is_ascii_digit) && self.last.last().is_some_and(u8::is_ascii_digit) {
            self.bleeding += 1;
            self.bleeding_example.get_or_insert_with(|| (self.last.clone(), key.to_vec()));
        }
        for &delimiter in DELIMITERS {
            let n = key.iter().filter(|b| **b == delimiter).count();
            if n > 0 {
                *self.delimiters.entry((delimiter, n)).or_default() += 1;
            }
        }
    }
}

/// End of the leading part, if it is a bucket.
fn bucket_end(layout: &KeyLayout, key: &[u8]) -> Option<usize> {
    let first = layout.parts().first()?;
    if first.columns().is_empty() && !first.is_random() {
        return None;
    }
    first.buckets().is_some().then(|| layout.end_of(0, key, 0)).flatten()
}

/// Is the key a single text, so that any structure in it is the user's own?
pub(super) fn is_made_by_hand(layout: &KeyLayout) -> bool {
    matches!(layout.parts(), [part] if part.is_plain_text())
}

impl ColumnFacts {
    /// Facts of a sample of values of one type.
    pub fn of(values: &[Value]) -> ColumnFacts {
        let mut facts = ColumnFacts { chars_min: usize::MAX, ..ColumnFacts::default() };
        let (mut n, mut chars, mut numerals) = (0, 0, 0);
        for value in values.iter().filter(|value| !value.is_null()) {
            let text = value.to_string();
            let len = text.chars().count();
            (n, chars) = (n + 1, chars + len);
            facts.chars_min = facts.chars_min.min(len);
            facts.chars_max = facts.chars_max.max(len);
            numerals += usize::from(is_numeral(&text));
        }
        if n == 0 {
            return ColumnFacts::default();
        }
        facts.chars_mean = chars as f64 / n as f64;
        facts.numerals = numerals as f64 / n as f64;
        facts
    }
}

fn is_numeral(text: &str) -> bool {
    (1..=18).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
}

/// How `column` grows, from a sample (by column) of a table with `rows` rows.
pub fn growth(
    table: &TableDef,
    column: ColumnId,
    rows: u64,
    sample: &[(ColumnId, Vec<Value>)],
) -> Option<Growth> {
    let values_of = |id: ColumnId| sample.iter().find(|(c, _)| *c == id).map(|(_, values)| values);
    let values = values_of(column)?;
    let mut order: Vec<usize> = (0..values.len()).filter(|&at| !values[at].is_null()).collect();
    order.sort_by(|&a, &b| values[a].cmp(&values[b]));
    let times = table.live_columns().filter(|(id, c)| *id != column && c.ty.is_time() && !c.nullable);
    let share = |time: &[Value]| {
        // Only count neighbours that differ in both columns.
        let pairs = || order.windows(2).filter(|p| values[p[0]] != values[p[1]] && time[p[0]] != time[p[1]]);
        let rising = pairs().filter(|p| time[p[0]] < time[p[1]]).count();
        let all = pairs().count();
        (all * 2 >= order.len()).then(|| rising as f64 / all as f64)
    };
    let mut known: Vec<(ColumnId, f64)> =
        times.filter_map(|(id, _)| Some((id, share(values_of(id)?)?))).collect();
    if let Some(at) = known.iter().position(|(_, share)| *share >= GROWS_SHARE) {
        let (id, share) = known.swap_remove(at);
        return Some(Growth::With(id, share));
    }
    if !known.is_empty() {
        // There are time columns, but none grows with it.
        return None;
    }
    let (first, last) = (&values[*order.first()?], &values[*order.last()?]);
    let (Value::Int(from), Value::Int(to)) = (first, last) else { return None };
    let repeats = order.windows(2).any(|pair| values[pair[0]] == values[pair[1]]);
    let span = i128::from(*to) - i128::from(*from) + 1;
    (!repeats && span <= i128::from(rows) + i128::from(rows / 20)).then_some(Growth::Sequence(*from, *to))
}
