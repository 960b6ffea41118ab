//! Rules about one layout: that of a table or of an index.

use super::facts::{DELIMITERS, is_made_by_hand};
use super::{ColumnFacts, Finding, Growth, ROWS_ENOUGH, Rule, Severity, Subject, bytes, percent};
use crate::design::grouped;
use crate::key::{ColumnId, Concern, KeyOrder, KeyPart};
use crate::sql::name_sql;
use crate::value::Value;

/// Buckets to spread writes with, where there were none.
const BUCKETS: usize = 16;
/// Largest bucket, in shares of the average one, above which a salt is skewed.
const SKEW: f64 = 1.5;
/// Digits that a pad may have beyond those needed for ten thousand times the values.
const SPARE_DIGITS: usize = 4;
/// Share of a pad's numbers from which on it is almost full.
const ALMOST_FULL: f64 = 0.8;
/// Keys an index may have for its rows before it is said to have few.
const FEW_KEYS: u64 = 20;
/// Names that are worth a code each, at the most.
const CODES_MAX: usize = 50;

pub(super) fn judge(subject: &Subject<'_>) -> Vec<Finding> {
    let rules = [
        hotspot,
        known_from_the_layout,
        bleeding,
        unpadded,
        narrow_pad,
        wide_pad,
        skewed_salt,
        fan_out,
        few_keys,
        stray_delimiter,
        long_key,
        numbers_as_text,
        names_as_text,
    ];
    rules.iter().flat_map(|rule| rule(subject)).collect()
}

/// Keys that grow: by their type, or as the data shows.
fn hotspot(s: &Subject<'_>) -> Vec<Finding> {
    let layout = s.layout();
    let Some((at, part)) = layout.leading() else { return Vec::new() };
    let [column] = part.columns() else { return Vec::new() };
    let name = s.table.column_name(*column);
    let said =
        layout.warnings(&|id| s.table.column_info(id)).into_iter().find(|w| w.concern == Concern::Hotspot);
    let facts = s.facts.column(*column).filter(|_| s.counted().is_some());
    let growth = facts.and_then(|facts| facts.growth.as_ref()).filter(|_| part.facts().order.is_some());
    let seen = match (growth, &said) {
        (Some(Growth::Sequence(from, to)), _) => {
            format!(
                "\"{name}\" looks like a sequence: {} to {} with hardly a gap",
                grouped(*from),
                grouped(*to)
            )
        }
        (Some(Growth::With(time, share)), _) => format!(
            "\"{name}\" grows with \"{}\" in {} of neighbouring rows",
            s.table.column_name(*time),
            percent(*share)
        ),
        (None, Some(_)) => match s.table.column(*column).identity {
            Some(_) => format!("the key begins with \"{name}\", which numbers itself"),
            None => format!("the key begins with \"{name}\", a {}", s.table.column(*column).ty),
        },
        (None, None) => return Vec::new(),
    };
    let why = "all new rows go to one end of the key space: one region takes every write";
    let sql = name_sql(name);
    let is_number = s.table.column(*column).ty.is_integer();
    let width = facts.map_or(0, |facts| facts.chars_max) + 2;
    let bucket = format!("md5_bucket({sql}, {BUCKETS})");
    let direction = if part.facts().order == Some(KeyOrder::Descending) { " DESC" } else { "" };
    let same =
        if part.is_descending() { format!("{}{direction}", part.sql()) } else { part.sql().to_owned() };
    let better = match is_number && s.index.is_none() && layout.parts().len() == 1 && facts.is_some() {
        true => format!("reverse(lpad({sql}, {width}))"),
        false => format!("{bucket}, {same}"),
    };
    vec![s.finding(Rule::Hotspot, seen, why, s.with_layout(&layout.sql_with(at, &better)))]
}

/// What CREATE warns of and no data can make better or worse.
fn known_from_the_layout(s: &Subject<'_>) -> Vec<Finding> {
    let layout = s.layout();
    let warnings = layout.warnings(&|id| s.table.column_info(id)).into_iter();
    let settled = |concern| {
        // These say more, or nothing, with data at hand.
        matches!(concern, Concern::Hotspot | Concern::FanOut | Concern::LongKey | Concern::Unpadded)
    };
    let finding = |w: crate::key::Warning| s.finding(w.concern.into(), w.what, &w.why, w.hint);
    warnings.filter(|w| !settled(w.concern)).map(finding).collect()
}

/// `host1` and `host12` in keys that are one text.
fn bleeding(s: &Subject<'_>) -> Vec<Finding> {
    let Some(counted) = s.counted().filter(|counted| counted.bleeding > 0) else { return Vec::new() };
    let (Some((short, long)), [part]) = (&counted.bleeding_example, s.layout().parts()) else {
        return Vec::new();
    };
    let (short, long) = (String::from_utf8_lossy(short), String::from_utf8_lossy(long));
    let seen = format!(
        "{} of {} keys go on in digits where another one ends, such as '{short}' and '{long}'",
        grouped(counted.bleeding),
        grouped(counted.entries)
    );
    let why = format!("a scan of rowkeys that start with '{short}' also reads '{long}'");
    let [column] = part.columns() else { return Vec::new() };
    let width = s.facts.column(*column).map_or(0, |facts| facts.chars_max);
    let fix = s.with_layout(&format!("rpad({}, {width}, ' ')", name_sql(s.table.column_name(*column))));
    vec![s.finding(Rule::Bleeding, seen, &why, fix)]
}

/// Parts that are one column's text as it is, with what was seen of it.
fn texts<'a>(s: &Subject<'a>) -> Vec<(usize, &'a KeyPart, ColumnId, &'a ColumnFacts)> {
    let rows = s.facts.rows();
    let parts = s.layout().parts().iter().enumerate().filter(|(_, part)| part.is_plain_text());
    let known = parts.filter_map(|(at, part)| match part.columns() {
        [column] => Some((at, part, *column, s.facts.column(*column)?)),
        _ => None,
    });
    known.filter(|_| rows >= ROWS_ENOUGH).collect()
}

/// Numbers of several lengths in text.
fn unpadded(s: &Subject<'_>) -> Vec<Finding> {
    let layout = s.layout();
    let why =
        "text sorts character by character: 11 comes before 2, and a range of numbers is no range of keys";
    let said =
        layout.warnings(&|id| s.table.column_info(id)).into_iter().filter(|w| w.concern == Concern::Unpadded);
    let mut found: Vec<Finding> = said
        .map(|w| {
            let column = layout.parts()[w.part].columns().first();
            let name = column.map_or_else(String::new, |id| name_sql(s.table.column_name(*id)));
            s.finding(Rule::Unpadded, w.what, why, s.with_layout(&layout.sql_with(w.part, &name)))
        })
        .collect();
    for (at, _, column, facts) in texts(s) {
        if facts.numerals > 0.95 && facts.chars_min < facts.chars_max {
            let name = s.table.column_name(column);
            let seen = format!(
                "{} of the values of \"{name}\" are numbers, of {} to {} digits",
                percent(facts.numerals),
                facts.chars_min,
                facts.chars_max
            );
            let padded = format!("lpad({}, {})", name_sql(name), facts.chars_max + 2);
            let fix = format!(
                "declare {} BIGINT, or {}",
                name_sql(name),
                s.with_layout(&layout.sql_with(at, &padded))
            );
            found.push(s.finding(Rule::Unpadded, seen, why, fix));
        }
    }
    found
}

/// Padded parts with what was seen of their column: place, part, column, characters of the widest value,
/// characters of the pad.
fn pads<'a>(s: &Subject<'a>) -> Vec<(usize, &'a KeyPart, ColumnId, usize, usize)> {
    if s.counted().is_none() {
        return Vec::new();
    }
    let parts = s.layout().parts().iter().enumerate();
    let known = parts.filter_map(|(at, part)| match (part.columns(), part.pad()) {
        ([column], Some(pad)) => {
            let widest = s.facts.column(*column)?.chars_max;
            Some((at, part, *column, widest, usize::from(pad.width)))
        }
        _ => None,
    });
    known.filter(|(_, _, _, widest, _)| *widest > 0).collect()
}

/// Values close to the greatest that fits.
fn narrow_pad(s: &Subject<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (at, part, column, widest, width) in pads(s) {
        let name = s.table.column_name(column);
        let filled = match (part.pad().is_some_and(|pad| pad.number), greatest(s, column)) {
            (true, Some(greatest)) => greatest / 10f64.powi(width as i32),
            _ => widest as f64 / width as f64,
        };
        let is_number = part.pad().is_some_and(|pad| pad.number);
        if (is_number && filled < ALMOST_FULL) || (!is_number && widest < width) {
            continue;
        }
        let seen = match is_number {
            true => format!("\"{name}\" has used {} of the numbers that fit {}", percent(filled), part.sql()),
            false => format!("values of \"{name}\" are as wide as {} is", part.sql()),
        };
        let why = "a row whose value does not fit is refused, and the width of a key cannot be changed later";
        let wider = part.sql_padded_to(&name_sql(name), (width + 2).max(width * 5 / 4) as u16);
        let mut finding =
            s.finding(Rule::NarrowPad, seen, why, s.with_layout(&s.layout().sql_with(at, &wider)));
        if filled >= 0.95 && is_number {
            finding.severity = Severity::Error;
        }
        found.push(finding);
    }
    found
}

/// The greatest value of a column of numbers, as far as the sample shows.
fn greatest(s: &Subject<'_>, column: ColumnId) -> Option<f64> {
    let column = s.facts.statistics.column(column)?;
    let values = column.bounds.last().into_iter().chain(column.common.iter().map(|(value, _)| value));
    let numbers = values.filter_map(|value| match value {
        Value::Int(n) => Some(*n as f64),
        Value::Decimal(n, scale) => Some(*n as f64 / 10f64.powi(i32::from(*scale))),
        _ => None,
    });
    numbers.fold(None, |most: Option<f64>, n| Some(most.map_or(n, |m| m.max(n))))
}

/// Many zeros before every value.
fn wide_pad(s: &Subject<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (at, part, column, widest, width) in pads(s) {
        let wanted = widest + SPARE_DIGITS;
        let entries = s.counted().map_or(0, |counted| counted.entries);
        if width <= wanted + 1 || entries < 10 * ROWS_ENOUGH {
            continue;
        }
        let name = s.table.column_name(column);
        let saved = (width - wanted) as u64;
        let seen = format!(
            "values of \"{name}\" have {widest} characters at the most, {} has {width}: {saved} bytes too many in \
             each of {} keys",
            part.sql(),
            grouped(entries)
        );
        let why = "every row and every index entry carries its key: short keys are read and compared faster";
        let narrower = part.sql_padded_to(&name_sql(name), wanted as u16);
        found.push(s.finding(Rule::WidePad, seen, why, s.with_layout(&s.layout().sql_with(at, &narrower))));
    }
    found
}

/// Buckets that are too full, or empty.
fn skewed_salt(s: &Subject<'_>) -> Vec<Finding> {
    let (Some(counted), Some(part)) = (s.counted(), s.layout().parts().first()) else { return Vec::new() };
    let Some(all) = part.fan_out() else { return Vec::new() };
    let null = part.null_bytes();
    let buckets: Vec<&Vec<u8>> = all.iter().filter(|bytes| Some(*bytes) != null.as_ref()).collect();
    let average = counted.entries as f64 / buckets.len() as f64;
    if buckets.len() < 2 || average < 20.0 {
        return Vec::new();
    }
    let of = |bucket: &Vec<u8>| counted.buckets.get(bucket).copied().unwrap_or(0);
    let empty = buckets.iter().filter(|bucket| of(bucket) == 0).count();
    let Some(fullest) = buckets.iter().max_by_key(|bucket| of(bucket)) else { return Vec::new() };
    if empty == 0 && of(fullest) as f64 <= SKEW * average {
        return Vec::new();
    }
    let empties = if empty > 0 { format!(", and {empty} are empty") } else { String::new() };
    let seen = format!(
        "bucket {} of {} holds {} of {} keys, where an even share is {}{empties}",
        String::from_utf8_lossy(fullest),
        buckets.len(),
        percent(of(fullest) as f64 / counted.entries as f64),
        grouped(counted.entries),
        percent(1.0 / buckets.len() as f64),
    );
    let why = "a salt is there to spread writes, and this one sends them to few places";
    // A hash of what tells rows apart spreads best.
    let names: Vec<String> =
        s.table.key.columns().iter().map(|id| name_sql(s.table.column_name(*id))).collect();
    let hashed = format!("md5_bucket({}, {})", names.join(", "), buckets.len());
    let better = if part.sql() == hashed { format!("random({})", buckets.len()) } else { hashed };
    vec![s.finding(Rule::SkewedSalt, seen, why, s.with_layout(&s.layout().sql_with(0, &better)))]
}

/// Buckets read one by one: by the queries that are known, or by any range scan.
fn fan_out(s: &Subject<'_>) -> Vec<Finding> {
    let layout = s.layout();
    let warnings = layout.warnings(&|id| s.table.column_info(id)).into_iter();
    let here = s.index.map(|index| index.id);
    let known: Vec<_> = s.facts.queries.iter().filter(|query| query.index == here).collect();
    let mut found = Vec::new();
    for warning in warnings.filter(|w| w.concern == Concern::FanOut) {
        let fanned: Vec<_> = known.iter().filter(|query| query.fans_out).collect();
        let part = &layout.parts()[warning.part];
        let Some(buckets) = part.fan_out().map(|all| all.len()) else { continue };
        let mut severity = Severity::Note;
        let seen = match (known.len(), fanned.iter().max_by_key(|query| query.ranges)) {
            (0, _) => warning.what,
            (_, None) => continue,
            (n, Some(worst)) => {
                severity = Severity::Warning;
                format!(
                    "{} of {n} known queries read many buckets, as {} ranges for {}",
                    fanned.len(),
                    worst.ranges,
                    worst.sql
                )
            }
        };
        let fewer = (buckets / 4).max(2);
        let fix = match layout.sql_with(warning.part, "") {
            rest if s.index.is_some() => s.with_layout(&rest),
            rest if rest.is_empty() => warning.hint,
            _ => {
                // The number of buckets is the last number of each form.
                let (before, after) =
                    part.sql().rsplit_once(&buckets.to_string()).unwrap_or((part.sql(), ""));
                let sql = format!("{before}{fewer}{after}");
                s.with_layout(&layout.sql_with(warning.part, &sql))
            }
        };
        found.push(Finding { severity, ..s.finding(Rule::FanOut, seen, &warning.why, fix) });
    }
    found
}

/// An index by which only a large part of the table can be told from the rest.
fn few_keys(s: &Subject<'_>) -> Vec<Finding> {
    let (Some(index), Some(counted)) = (s.index, s.counted()) else { return Vec::new() };
    let parts = index.layout.parts().len();
    let Some(keys) = s.facts.statistics.prefixes(index.keyspace, parts) else { return Vec::new() };
    if index.filter.is_some() || keys > FEW_KEYS || counted.entries < 10 * ROWS_ENOUGH {
        return Vec::new();
    }
    let seen = format!("{} entries have {keys} different keys", grouped(counted.entries));
    let why = "one value stands for so many rows that reading the whole table is as cheap as fetching them one by one";
    let fix = format!("DROP INDEX {}", name_sql(&index.name));
    vec![s.finding(Rule::FewKeys, seen, why, fix)]
}

/// Keys made by hand that do not all hold their delimiter equally often.
fn stray_delimiter(s: &Subject<'_>) -> Vec<Finding> {
    let Some(counted) = s.counted().filter(|_| is_made_by_hand(s.layout())) else { return Vec::new() };
    let mut found = Vec::new();
    for &delimiter in DELIMITERS {
        let times = || counted.delimiters.iter().filter(|((d, _), _)| *d == delimiter);
        let with: u64 = times().map(|(_, n)| n).sum();
        let Some((&(_, usual), &most)) = times().max_by_key(|(_, n)| **n) else { continue };
        let others = counted.entries - most;
        // A delimiter is in almost every key, mostly equally often.
        if (with as f64) < 0.9 * counted.entries as f64
            || (most as f64) < 0.8 * counted.entries as f64
            || others == 0
        {
            continue;
        }
        let c = char::from(delimiter);
        let seen = format!(
            "{} of keys hold {usual} '{c}', and {} keys more or fewer: the values between hold it too",
            percent(most as f64 / counted.entries as f64),
            grouped(others)
        );
        let why = "what stands between two delimiters is then not the same column in every key, and two rows could meet in one key";
        let columns: Vec<String> = (1..=usual + 1).map(|n| format!("part{n}")).collect();
        let fix = s.with_layout(&columns.join(&format!(", '{c}', ")));
        let fix = format!("make the parts columns of their own, which may not hold '{c}': {fix}");
        found.push(s.finding(Rule::StrayDelimiter, seen, why, fix));
    }
    found
}

/// Keys that are most of what is stored.
fn long_key(s: &Subject<'_>) -> Vec<Finding> {
    const LONG: f64 = 64.0;
    let warnings = s.layout().warnings(&|id| s.table.column_info(id)).into_iter();
    let said = warnings.filter(|w| w.concern == Concern::LongKey);
    let mut found: Vec<Finding> = said.map(|w| s.finding(Rule::LongKey, w.what, &w.why, w.hint)).collect();
    if let (Some(counted), true) = (s.counted(), found.is_empty()) {
        let (key, value) = (
            counted.key_bytes as f64 / counted.entries as f64,
            counted.value_bytes as f64 / counted.entries as f64,
        );
        if key > LONG && key > value {
            let seen = format!(
                "keys have {key:.0} bytes on average, what they hold {value:.0}: {} of keys",
                bytes(counted.key_bytes as f64)
            );
            let why = "every row and every index entry carries its key, and nothing of it is compressed";
            let fix =
                "use numbers and codes instead of text, and keep what no query looks for out of the key";
            found.push(s.finding(Rule::LongKey, seen, why, fix.to_owned()));
        }
    }
    found
}

/// `'2015122410'` where a LONG would do.
fn numbers_as_text(s: &Subject<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (_, _, column, facts) in texts(s) {
        let (ty, width) = if facts.chars_max <= 9 { ("INTEGER", 4) } else { ("BIGINT", 8) };
        let saved = facts.chars_mean - f64::from(width);
        if facts.numerals < 1.0 || facts.chars_min < facts.chars_max || saved < 2.0 {
            continue;
        }
        let name = s.table.column_name(column);
        let entries = s.facts.rows();
        let seen = format!(
            "\"{name}\" holds whole numbers only, as text of {} characters: {} more than as {ty}",
            facts.chars_max,
            bytes(saved * entries as f64),
        );
        let why =
            format!("a number takes {width} bytes in the key, whatever its digits, and sorts as numbers do");
        found.push(s.finding(Rule::NumbersAsText, seen, &why, format!("declare {} {ty}", name_sql(name))));
    }
    found
}

/// `'Taobao'` where `tb` would do.
fn names_as_text(s: &Subject<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (at, _, column, facts) in texts(s) {
        let Some(statistics) = s.facts.statistics.column(column) else { continue };
        let names: Option<Vec<&str>> = statistics
            .common
            .iter()
            .map(|(value, _)| match value {
                Value::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        let Some(mut names) = names else { continue };
        let all = names.len() as f64 >= statistics.distinct && !names.is_empty();
        if !all || names.len() > CODES_MAX || facts.chars_mean < 5.0 || s.facts.rows() < 10 * ROWS_ENOUGH {
            continue;
        }
        if names.iter().any(|name| name.contains([',', '=', '\''])) {
            continue;
        }
        names.sort_unstable();
        let name = s.table.column_name(column);
        let codes = codes(&names);
        let code_len = codes.iter().map(String::len).max().unwrap_or(1);
        let saved = (facts.chars_mean - code_len as f64) * s.facts.rows() as f64;
        let seen = format!(
            "\"{name}\" has {} different values of {:.0} characters on average, spelt out in every key: codes of \
             {code_len} save {}",
            names.len(),
            facts.chars_mean,
            bytes(saved)
        );
        let listed: Vec<String> =
            names.iter().zip(&codes).map(|(name, code)| format!("{name}={code}")).collect();
        let coded = format!("code({}, '{}')", name_sql(name), listed.join(", "));
        let why = "every row and every index entry carries its key; a name without a code is refused, so list all there will be";
        found.push(s.finding(Rule::NamesAsText, seen, why, s.with_layout(&s.layout().sql_with(at, &coded))));
    }
    found
}

/// A code for each name: its first letters as far as they differ, of one length.
fn codes(names: &[&str]) -> Vec<String> {
    let letters = |name: &str| -> Vec<char> {
        name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
    };
    let short = |len: usize| -> Option<Vec<String>> {
        let codes: Vec<String> = names
            .iter()
            .map(|name| letters(name).get(..len).map(|c| c.iter().collect()))
            .collect::<Option<_>>()?;
        let mut seen = std::collections::BTreeSet::new();
        codes.iter().all(|code| seen.insert(code.clone())).then_some(codes)
    };
    let width = if names.len() > 10 { 2 } else { 1 };
    (1..=2).find_map(short).unwrap_or_else(|| (0..names.len()).map(|n| format!("{n:0width$}")).collect())
}
