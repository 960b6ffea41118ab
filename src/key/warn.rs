//! Warnings of CREATE: layouts that work, but probably not as intended.

use super::part::{ColumnInfo, KeyPart};
use super::problem::{Concern, Warning};
use super::text;
use super::transform::{ColumnId, Transform};
use crate::value::{ColumnType, Literal, ValueRef, name_sql};

type ColumnLookup<'f, 'a> = &'f dyn Fn(ColumnId) -> ColumnInfo<'a>;

/// Bytes of a key, and characters of a part, beyond which they are called long.
const LONG_KEY: usize = 256;
const LONG_PART: u16 = 100;

/// All warnings about a layout.
pub(super) fn warnings(parts: &[KeyPart], column: ColumnLookup<'_, '_>) -> Vec<Warning> {
    let mut out: Vec<Warning> = hotspot(parts, column).into_iter().collect();
    for (part, key) in parts.iter().enumerate() {
        let found = about(key, part + 1 < parts.len(), column);
        let warning = |(concern, what, why, hint)| Warning { concern, part, what, why, hint };
        out.extend(found.into_iter().map(warning));
    }
    out.extend(idle_parts(parts));
    out.extend(drawn_key(parts, column));
    out.extend(long_key(parts));
    out
}

/// Warns of a leading part that grows with time, which sends every write to one place.
fn hotspot(parts: &[KeyPart], column: ColumnLookup<'_, '_>) -> Option<Warning> {
    let (part, key) = parts.iter().enumerate().find(|(_, p)| !p.is_literal())?;
    let info = column(*key.columns().first()?);
    let grows = info.identity || info.ty.is_time();
    // The text form of a time, or of numbers with equally many digits, grows as well.
    let follows = key.facts().order.is_some()
        || matches!(&key.form.time, Some(format) if format.sorts())
        || matches!(key.form.transform, Transform::Text(_));
    let (name, sql) = (info.name, name_sql(info.name));
    (grows && follows).then(|| Warning {
        concern: Concern::Hotspot,
        part,
        what: format!("keys grow with \"{name}\": all new rows go to one end of the table"),
        why: "regions split by key, so one of them takes every write (a hotspot)".into(),
        hint: if info.ty.is_time() {
            format!("lead with another column, or with md5_bucket({sql}, 16)")
        } else {
            format!("lead with another column, or use reverse(lpad({sql}, n)) or left(md5({sql}), 4), {sql}")
        },
    })
}

/// The concern, what, why, and the hint.
type Remark = (Concern, String, String, String);

/// Warnings about one part by itself.
fn about(key: &KeyPart, followed: bool, column: ColumnLookup<'_, '_>) -> Vec<Remark> {
    let sql = &key.sql;
    let info = key.columns().first().map(|&c| column(c));
    let name = info.map_or_else(String::new, |info| name_sql(info.name));
    let ty = key.form.ty();
    let number = ty.and_then(text::scale_of).is_some();
    let remark = |concern, what: String, why: &str, hint: String| vec![(concern, what, why.to_owned(), hint)];
    match &key.form.transform {
        Transform::ToChar { .. } if key.form.time.as_ref().is_some_and(|format| !format.sorts()) => remark(
            Concern::UnsortedTime,
            format!("{sql} does not sort by time"),
            "its text does not start with the year and go on to finer units, so ranges of time are not ranges of keys",
            "write the year first, such as 'YYYY-MM-DD HH24:MI:SS'".into(),
        ),
        Transform::Reverse { .. } if ty.is_some_and(ColumnType::is_time) => remark(
            Concern::ReversedTime,
            format!("{sql} scatters times: a scan may fetch unwanted rows"),
            "reversed formatted times have no order that a query can use",
            format!("use reverse_bytes({name}), or left(md5({name}), 4), {name}"),
        ),
        Transform::Text(_) if number => remark(
            Concern::Unpadded,
            format!("{sql} is unpadded: 11 sorts before 2"),
            "text sorts character by character",
            format!("use lpad({name}, n), or {name} itself, which is shorter"),
        ),
        padded @ (Transform::Lpad { .. } | Transform::Reverse { width: Some(_), .. }) if !number => {
            let pad = if let Transform::Lpad { pad, .. } = padded { *pad } else { '0' };
            remark(
                Concern::PaddedText,
                format!("{sql} makes '9' and {} one key", Literal(ValueRef::Text(&format!("{pad}9")))),
                "padding a text hides how long it was",
                format!(
                    "store \"{}\" as a number, or use rpad({name}, n, ' ')",
                    info.map_or("", |info| info.name)
                ),
            )
        }
        Transform::Modulo { buckets, .. }
        | Transform::Md5Bucket { buckets, .. }
        | Transform::Random { buckets }
            if followed && *buckets > 1 =>
        {
            remark(
                Concern::FanOut,
                format!("{sql} makes a range scan read {buckets} ranges"),
                "rows that sort together lie in different buckets, whose ranges are merged",
                "use as few buckets as spread the writes well".into(),
            )
        }
        Transform::Md5Hex { .. } if followed => remark(
            Concern::WholeScan,
            format!("{sql} makes a range scan read the whole table"),
            "only equality with the hashed column finds its place",
            format!("use md5_bucket({name}, 16), whose buckets can be scanned one by one"),
        ),
        _ => Vec::new(),
    }
}

/// Warns of parts that are made of columns which the parts before them give back.
fn idle_parts(parts: &[KeyPart]) -> Vec<Warning> {
    let is_given = |id: &ColumnId, by: &[KeyPart]| {
        by.iter().any(|part| part.columns() == [*id] && part.facts().decodable)
    };
    let warning = |(part, key): (usize, &KeyPart)| {
        let columns = key.columns();
        if columns.is_empty() || !columns.iter().all(|id| is_given(id, &parts[..part])) {
            return None;
        }
        Some(Warning {
            concern: Concern::IdlePart,
            part,
            what: format!("{} adds nothing to the key", key.written()),
            why: "what is in front of it tells its value already".into(),
            hint: match key.form.transform {
                Transform::Column(_) => "leave it out".into(),
                _ => "leave it out, or put it first".into(),
            },
        })
    };
    parts.iter().enumerate().filter_map(warning).collect()
}

/// Warns of a rowkey that is unique only together with its random part.
fn drawn_key(parts: &[KeyPart], column: ColumnLookup<'_, '_>) -> Option<Warning> {
    let part = parts.iter().position(KeyPart::is_random)?;
    let buckets = parts[part].form.transform.buckets()?;
    let mut named: Vec<_> = Vec::new();
    for id in parts.iter().flat_map(|part| part.columns()) {
        let name = name_sql(column(*id).name);
        if !named.contains(&name) {
            named.push(name);
        }
    }
    let names = named.join(", ");
    Some(Warning {
        concern: Concern::DrawnKey,
        part,
        what: format!("up to {buckets} rows can have the same {names}: {} is drawn for each", parts[part].sql),
        why: "a rowkey is unique with its bucket: INSERT does not notice the other row, UPSERT does not overwrite it"
            .into(),
        hint: format!("md5_bucket({names}, {buckets}) spreads as well, and is the same for the same {names}"),
    })
}

fn long_key(parts: &[KeyPart]) -> Option<Warning> {
    let total: usize = parts.iter().map(KeyPart::least_bytes).sum();
    let long = |p: &KeyPart| matches!(p.form.transform, Transform::Lpad { width, .. } | Transform::Rpad { width, .. } if width > LONG_PART);
    let part = match parts.iter().position(long) {
        Some(part) => part,
        None if total > LONG_KEY => (0..parts.len()).max_by_key(|&i| parts[i].least_bytes())?,
        None => return None,
    };
    Some(Warning {
        concern: Concern::LongKey,
        part,
        what: format!(
            "keys take {total} bytes or more, {} of them for {}",
            parts[part].least_bytes(),
            parts[part].sql
        ),
        why: "every index entry and every row carries its key".into(),
        hint: "pad no wider than values need, and use numbers and codes instead of text".into(),
    })
}
