//! Lint rules about one layout of a table or an index.

use super::facts::{DELIMITERS, is_made_by_hand};
use super::fixes::parts_of;
use super::values::SPARE_DIGITS;
use super::{Finding, Growth, LintRule, ROWS_ENOUGH, Severity, Subject, percent};
use crate::design::grouped;
use crate::key::{ColumnId, Concern};
use crate::schema::{ColumnStatistics, IndexDef};
use crate::sql::name_sql;

/// Buckets (count) proposed where there were none.
const BUCKETS: usize = 16;
/// A salt is skewed if its largest bucket exceeds the average by this factor.
const SKEW: f64 = 1.5;
/// An index has few keys if it has at most this many.
const FEW_KEYS: u64 = 20;
/// A key is rare if it has less than this share of the rows of an average key.
const RARE: f64 = 0.1;
/// The same as `FEW_KEYS`, for the first of several parts.
const FEW_STARTS: u64 = 8;

pub(super) fn judge(subject: &Subject<'_>) -> Vec<Finding> {
    let rules = [hotspot, known_from_the_layout, bleeding, skewed_salt, fan_out, few_keys, stray_delimiter];
    rules.iter().flat_map(|rule| rule(subject)).collect()
}

/// Growing keys: by type, or by the data.
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
    let why = match s.index {
        None => "all new rows go to one end of the key space: one region takes every write",
        Some(_) => {
            "all new entries go to one end of the index: one region takes every write, however the table spreads"
        }
    };
    let sql = name_sql(name);
    let is_number = s.table.column(*column).ty.is_integer();
    let width = facts.map_or(0, |facts| facts.chars_max) + SPARE_DIGITS;
    let of = s.table.sources(*column).into_iter().map(|id| name_sql(s.table.column_name(id)));
    let bucket = format!("md5_bucket({}, {BUCKETS})", of.collect::<Vec<_>>().join(", "));
    let same = part.written();
    let better = match is_number && s.index.is_none() && layout.parts().len() == 1 && facts.is_some() {
        true => format!("reverse(lpad({sql}, {width}))"),
        false => format!("{bucket}, {same}"),
    };
    vec![s.finding(LintRule::Hotspot, seen, why, s.with_layout(&layout.sql_with(at, &better)))]
}

/// Warnings of CREATE that do not depend on data.
fn known_from_the_layout(s: &Subject<'_>) -> Vec<Finding> {
    let layout = s.layout();
    let warnings = layout.warnings(&|id| s.table.column_info(id)).into_iter();
    let settled = |concern| {
        // Other rules handle these, with data.
        matches!(concern, Concern::Hotspot | Concern::FanOut | Concern::LongKey | Concern::Unpadded)
    };
    let finding = |w: crate::key::Warning| {
        let fix = better(s, &w).map(|sql| s.with_layout(&layout.sql_with(w.part, &sql)));
        s.finding(w.concern.into(), w.what, &w.why, fix.unwrap_or(w.hint))
    };
    // A random bucket is no concern in an index: its entries are found through their rows.
    let matters = |w: &crate::key::Warning| w.concern != Concern::DrawnKey || s.index.is_none();
    warnings.filter(|w| !settled(w.concern)).filter(matters).map(finding).collect()
}

/// A better part, or parts, in place of the one that CREATE warns of.
fn better(s: &Subject<'_>, warning: &crate::key::Warning) -> Option<String> {
    let layout = s.layout();
    let part = layout.parts().get(warning.part)?;
    let [column] = part.columns() else { return None };
    let name = name_sql(s.table.column_name(*column));
    match warning.concern {
        Concern::UnsortedTime => {
            let fine = ["HH", "MI", "SS"].iter().any(|unit| part.sql().to_ascii_uppercase().contains(unit));
            Some(format!("to_char({name}, 'YYYY-MM-DD{}')", if fine { " HH24:MI:SS" } else { "" }))
        }
        Concern::IdlePart => Some(String::new()),
        Concern::ReversedTime => Some(format!("reverse_bytes({name})")),
        Concern::PaddedText => Some(format!("rpad({name}, {}, ' ')", part.pad()?.width)),
        Concern::WholeScan if warning.part == 0 => {
            let alone = layout.parts()[1..].iter().all(|other| !other.columns().contains(column));
            Some(format!(
                "md5_bucket({name}, {BUCKETS}){}",
                if alone { format!(", {name}") } else { String::new() }
            ))
        }
        _ => None,
    }
}

/// Keys that are a single text, in which `host1` is a prefix of `host12`.
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
    vec![s.finding(LintRule::Bleeding, seen, &why, fix)]
}

/// Buckets that are too full, or empty.
fn skewed_salt(s: &Subject<'_>) -> Vec<Finding> {
    let (Some(counted), Some(part)) = (s.counted(), s.layout().parts().first()) else { return Vec::new() };
    let Some(count) = part.buckets() else { return Vec::new() };
    let average = counted.entries as f64 / f64::from(count);
    if count < 2 || average < 20.0 {
        return Vec::new();
    }
    let mut buckets = part.fan_out(usize::MAX).unwrap_or_default();
    let null = part.null_bytes();
    buckets.retain(|bytes| Some(bytes) != null.as_ref());
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
        count,
        percent(of(fullest) as f64 / counted.entries as f64),
        grouped(counted.entries),
        percent(1.0 / f64::from(count)),
    );
    let why = "a salt is there to spread writes, and this one sends them to few places";
    // A hash of the key columns spreads best.
    let names: Vec<String> =
        s.table.key.columns().iter().map(|id| name_sql(s.table.column_name(*id))).collect();
    let hashed = format!("md5_bucket({}, {})", names.join(", "), count);
    let better = if part.sql() == hashed { format!("random({})", count) } else { hashed };
    vec![s.finding(LintRule::SkewedSalt, seen, why, s.with_layout(&s.layout().sql_with(0, &better)))]
}

/// Queries that read all buckets: those in the plan cache, or any range scan.
fn fan_out(s: &Subject<'_>) -> Vec<Finding> {
    let layout = s.layout();
    let warnings = layout.warnings(&|id| s.table.column_info(id)).into_iter();
    let here = s.index.map(|index| index.id);
    let known: Vec<_> = s.facts.queries.iter().filter(|query| query.index == here).collect();
    let mut found = Vec::new();
    for warning in warnings.filter(|w| w.concern == Concern::FanOut) {
        let fanned: Vec<_> = known.iter().filter(|query| query.fans_out).collect();
        let part = &layout.parts()[warning.part];
        let Some(buckets) = part.buckets() else { continue };
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
        // Without the bucket, the index would grow at one end.
        let next = layout.parts().get(warning.part + 1).filter(|_| s.index.is_some());
        let is_needed = next.is_some_and(|next| match next.columns() {
            &[column] => {
                let column = s.table.column(column);
                next.facts().order.is_some() && (column.ty.is_time() || column.identity.is_some())
            }
            _ => false,
        });
        if is_needed && (severity == Severity::Note || fewer == buckets) {
            continue;
        }
        let fix = match layout.sql_with(warning.part, "") {
            rest if s.index.is_some() && !is_needed => s.with_layout(&rest),
            rest if rest.is_empty() => warning.hint,
            _ => {
                // In each form, the last number is that of buckets.
                let (before, after) =
                    part.sql().rsplit_once(&buckets.to_string()).unwrap_or((part.sql(), ""));
                let sql = format!("{before}{fewer}{after}");
                s.with_layout(&layout.sql_with(warning.part, &sql))
            }
        };
        found.push(Finding { severity, ..s.finding(LintRule::FanOut, seen, &warning.why, fix) });
    }
    found
}

/// An index that selects only large parts of the table, by its whole key or by its first part, and that
/// serves no query in the plan cache.
fn few_keys(s: &Subject<'_>) -> Vec<Finding> {
    let (Some(index), Some(counted)) = (s.index, s.counted()) else { return Vec::new() };
    let layout = &index.layout;
    let keys = |parts: usize| s.facts.statistics.prefixes(index.keyspace, parts);
    let (Some(all), Some(leading)) = (keys(layout.parts().len()), keys(1)) else { return Vec::new() };
    let is_read = s.facts.queries.iter().any(|query| query.index == Some(index.id));
    if index.filter.is_some() || is_read || counted.entries < 10 * ROWS_ENOUGH {
        return Vec::new();
    }
    if all <= FEW_KEYS {
        if has_rare_keys(s, index) || s.table.included(index).next().is_some() {
            return Vec::new();
        }
        let seen = format!("{} entries have {all} different keys", grouped(counted.entries));
        let why = "one value stands for so many rows that reading the whole table is as cheap as fetching them one by one";
        let fix = format!("DROP INDEX {}", name_sql(&index.name));
        return vec![s.finding(LintRule::FewKeys, seen, why, fix)];
    }
    // Buckets are few on purpose, and leading with a time would be worse.
    let is_better = layout.parts().get(1).is_some_and(|next| match next.columns() {
        [column] => !grows(s, *column),
        _ => false,
    });
    if leading > FEW_STARTS || layout.parts()[0].buckets().is_some() || index.unique || !is_better {
        return Vec::new();
    }
    let mut parts = parts_of(layout);
    parts.rotate_left(1);
    let seen = format!(
        "{} is the first part of the key and has {leading} different values in {} entries",
        parts[parts.len() - 1],
        grouped(counted.entries)
    );
    let why = "a query that gives nothing but this part reads a large share of the index, and one that does not give it \
               has to look under each value";
    let fix = s.with_layout(&parts.join(", "));
    vec![Finding { severity: Severity::Note, ..s.finding(LintRule::FewKeys, seen, why, fix) }]
}

/// Do some of its keys have far fewer rows than most?
fn has_rare_keys(s: &Subject<'_>, index: &IndexDef) -> bool {
    let rarest = |statistics: &ColumnStatistics| {
        let others = (statistics.others() > 0.0).then(|| statistics.rare());
        statistics.common.iter().map(|(_, share)| *share).chain(others).fold(1.0, f64::min)
    };
    let columns = index.layout.columns();
    let mut known = columns.iter().filter_map(|id| s.facts.statistics.column(*id));
    known.any(|statistics| rarest(statistics) < RARE / statistics.distinct.max(1.0))
}

/// Do values of the column grow with time?
fn grows(s: &Subject<'_>, column: ColumnId) -> bool {
    let info = s.table.column(column);
    info.ty.is_time()
        || info.identity.is_some()
        || s.facts.column(column).is_some_and(|facts| facts.growth.is_some())
}

/// Keys concatenated by the user in which the delimiter does not occur equally often.
fn stray_delimiter(s: &Subject<'_>) -> Vec<Finding> {
    let Some(counted) = s.counted().filter(|_| is_made_by_hand(s.layout())) else { return Vec::new() };
    let mut found = Vec::new();
    for &delimiter in DELIMITERS {
        let times = || counted.delimiters.iter().filter(|((d, _), _)| *d == delimiter);
        let with: u64 = times().map(|(_, n)| n).sum();
        let Some((&(_, usual), &most)) = times().max_by_key(|(_, n)| **n) else { continue };
        let others = counted.entries - most;
        // A character is a delimiter if it is in almost every key, mostly equally often.
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
        found.push(s.finding(LintRule::StrayDelimiter, seen, why, fix));
    }
    found
}
