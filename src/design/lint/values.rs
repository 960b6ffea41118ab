//! Lint rules about the values in a layout's keys: their width, and better representations.

use super::{ColumnFacts, Finding, LintRule, ROWS_ENOUGH, Severity, Subject, bytes, percent};
use crate::design::grouped;
use crate::error::counted;
use crate::key::{ColumnId, Concern, KeyPart};
use crate::sql::name_sql;
use crate::value::{ColumnType, Value};

/// Spare digits of a pad (count), which allow ten thousand times the values.
pub(super) const SPARE_DIGITS: usize = 4;
/// Share of a pad's numbers from which it is almost full.
const ALMOST_FULL: f64 = 0.8;
/// Distinct names (count), at most, for which codes are proposed.
const CODES_MAX: usize = 50;

pub(super) fn judge(subject: &Subject<'_>) -> Vec<Finding> {
    let rules = [unpadded, narrow_pad, wide_pad, long_key, numbers_as_text, names_as_text];
    rules.iter().flat_map(|rule| rule(subject)).collect()
}

/// Parts that are one column's plain text, with the facts of the column.
fn texts<'a>(s: &Subject<'a>) -> Vec<(usize, &'a KeyPart, ColumnId, &'a ColumnFacts)> {
    let rows = s.facts.rows();
    let parts = s.layout().parts().iter().enumerate().filter(|(_, part)| part.is_plain_text());
    let known = parts.filter_map(|(at, part)| match part.columns() {
        [column] => Some((at, part, *column, s.facts.column(*column)?)),
        _ => None,
    });
    known.filter(|_| rows >= ROWS_ENOUGH).collect()
}

/// Text parts with numbers of several lengths.
fn unpadded(s: &Subject<'_>) -> Vec<Finding> {
    let layout = s.layout();
    let why =
        "text sorts character by character: 11 comes before 2, and a range of numbers is not a range of keys";
    let said =
        layout.warnings(&|id| s.table.column_info(id)).into_iter().filter(|w| w.concern == Concern::Unpadded);
    let mut found: Vec<Finding> = said
        .map(|w| {
            let column = layout.parts()[w.part].columns().first();
            let name = column.map_or_else(String::new, |id| name_sql(s.table.column_name(*id)));
            s.finding(LintRule::Unpadded, w.what, why, s.with_layout(&layout.sql_with(w.part, &name)))
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
            let retyped =
                if facts.numerals == 1.0 { s.with_type(at, column, ColumnType::BigInt) } else { None };
            let fix = retyped.unwrap_or_else(|| {
                let padded = format!("lpad({}, {})", name_sql(name), facts.chars_max + 2);
                s.with_layout(&layout.sql_with(at, &padded))
            });
            found.push(s.finding(LintRule::Unpadded, seen, why, fix));
        }
    }
    found
}

/// Padded parts with the facts of their column: index, part, column, characters of the widest value,
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

/// Pads whose values are close to the greatest that fits.
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
        let why = "a row whose value does not fit is refused, and another width writes every key anew";
        let wider = part.sql_padded_to(&name_sql(name), (width + 2).max(width * 5 / 4) as u16);
        let mut finding =
            s.finding(LintRule::NarrowPad, seen, why, s.with_layout(&s.layout().sql_with(at, &wider)));
        if filled >= 0.95 && is_number {
            finding.severity = Severity::Error;
        }
        found.push(finding);
    }
    found
}

/// The greatest value of a numeric column in the sample.
fn greatest(s: &Subject<'_>, column: ColumnId) -> Option<f64> {
    let column = s.facts.statistics.column(column)?;
    let values = column.bounds.last().into_iter().chain(column.common.iter().map(|(value, _)| value));
    let numbers = values.filter(|value| matches!(value, Value::Int(_) | Value::Decimal(..)));
    let numbers = numbers.filter_map(|value| value.as_ref().place());
    numbers.fold(None, |most: Option<f64>, n| Some(most.map_or(n, |m| m.max(n))))
}

/// Pads that put many zeros before every value.
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
        found.push(s.finding(
            LintRule::WidePad,
            seen,
            why,
            s.with_layout(&s.layout().sql_with(at, &narrower)),
        ));
    }
    found
}

/// Keys that take up most of the storage.
fn long_key(s: &Subject<'_>) -> Vec<Finding> {
    const LONG: f64 = 64.0;
    let warnings = s.layout().warnings(&|id| s.table.column_info(id)).into_iter();
    let said = warnings.filter(|w| w.concern == Concern::LongKey);
    let mut found: Vec<Finding> =
        said.map(|w| s.finding(LintRule::LongKey, w.what, &w.why, w.hint)).collect();
    if let (Some(counted), true) = (s.counted(), found.is_empty()) {
        let (key, value) = (
            counted.key_bytes as f64 / counted.entries as f64,
            counted.value_bytes as f64 / counted.entries as f64,
        );
        if key > LONG && key > value {
            let seen = format!(
                "keys take {key:.0} bytes on average, their values {value:.0}: {} of keys{}",
                bytes(counted.key_bytes as f64),
                widest(s).map_or_else(String::new, |(name, chars)| format!(
                    ", mostly \"{name}\", of {chars:.0} characters"
                ))
            );
            let why = "every row and every index entry carries its key, and nothing of it is compressed";
            let fix =
                "use numbers and codes instead of text, and keep what no query looks for out of the key";
            found.push(s.finding(LintRule::LongKey, seen, why, fix.to_owned()));
        }
    }
    found
}

/// The text column that contributes most to the keys' length, and its average length in characters.
fn widest<'a>(s: &Subject<'a>) -> Option<(&'a str, f64)> {
    let texts =
        texts(s).into_iter().map(|(_, _, column, facts)| (s.table.column_name(column), facts.chars_mean));
    texts.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Text such as `'2015122410'` where an integer would do.
fn numbers_as_text(s: &Subject<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (at, _, column, facts) in texts(s) {
        let (ty, width) =
            if facts.chars_max <= 9 { (ColumnType::Integer, 4) } else { (ColumnType::BigInt, 8) };
        let saved = facts.chars_mean - f64::from(width);
        if facts.numerals < 1.0 || facts.chars_min < facts.chars_max || saved < 2.0 {
            continue;
        }
        let name = s.table.column_name(column);
        let entries = s.facts.rows();
        let seen = format!(
            "\"{name}\" holds whole numbers only, as text of {}: {} more than as {ty}",
            counted(facts.chars_max, "character"),
            bytes(saved * entries as f64),
        );
        let why =
            format!("a number takes {width} bytes in the key, whatever its digits, and sorts as numbers do");
        let fix = s.with_type(at, column, ty).unwrap_or_else(|| format!("declare {} {ty}", name_sql(name)));
        found.push(s.finding(LintRule::NumbersAsText, seen, &why, fix));
    }
    found
}

/// Text such as `'Taobao'` where a code such as `tb` would do.
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
        // What the list of codes cannot spell.
        let is_odd = |name: &&str| name.is_empty() || name.trim() != *name || name.contains([',', '=', '\'']);
        if names.iter().any(is_odd) {
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
        found.push(s.finding(
            LintRule::NamesAsText,
            seen,
            why,
            s.with_layout(&s.layout().sql_with(at, &coded)),
        ));
    }
    found
}

/// A code for each name, all of one length: its first letters, as many as tell the names apart.
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
