//! Regions: the split points of CREATE and ALTER TABLE, and SHOW REGIONS.
//!
//! The embedded store keeps a table in one piece. Here regions are split points with counters; a store with
//! servers would start from these split points.

use arrow::array::RecordBatch;
use sqlparser::ast::{Expr, Ident};

use super::traffic::done;
use crate::design::keys::KeyspaceLayout;
use crate::design::lint::LintRule;
use crate::design::splits::{self, REGIONS_MAX};
use crate::engine::outcome::Warning;
use crate::engine::rows;
use crate::engine::show::{numbers, rows_of, text};
use crate::engine::view::StatementView;
use crate::error::{Error, Result, sqlstate};
use crate::exec::stored;
use crate::exec::watch::Watch;
use crate::key::{Digits, KeyPart, KeyRange, Rowkey, hex};
use crate::schema::{TableDef, TrafficKind};
use crate::sql::{Split, SplitMethod, name_sql, span_of};
use crate::store::{Direction, Reader};
use crate::value::{Literal, Value};

/// Digits of hex and decimal cuts, where the layout does not fix the number of digits.
const DIGITS: usize = 16;

/// The split points of a table after a SPLIT. `rows`: a reader and a watch, unless the table is new and
/// empty.
///
/// Errors: points that are no keys, are out of order, or exist already; no region, or too many; a method that
/// the layout or the data does not allow.
pub fn cuts(table: &TableDef, split: &Split, rows: Option<(&dyn Reader, &Watch)>) -> Result<Vec<Rowkey>> {
    match split {
        Split::At(points) => at(table, points),
        Split::Into { regions, method, span } => {
            let regions = usize::try_from(*regions).ok().filter(|n| (1..=REGIONS_MAX).contains(n));
            let regions = regions.ok_or_else(|| {
                Error::invalid(format!("a table has 1 to {REGIONS_MAX} regions"))
                    .state(sqlstate::OUT_OF_RANGE)
                    .at(*span)
            })?;
            into(table, regions, method, rows).map_err(|e| e.at(*span))
        }
    }
}

fn at(table: &TableDef, points: &[Expr]) -> Result<Vec<Rowkey>> {
    let mut cuts = table.splits.clone();
    let mut last: Option<Rowkey> = None;
    for expr in points {
        let key = point(table, expr).map_err(|e| e.at(span_of(expr)))?;
        let wrong = |what: String, hint: &str| {
            Error::invalid(what).hint(hint).state(sqlstate::INVALID_TABLE_DEFINITION).at(span_of(expr))
        };
        if key.is_empty() {
            return Err(wrong("an empty key splits nothing".into(), "the first region begins there anyway"));
        }
        if last.as_ref().is_some_and(|last| *last == key) || cuts.binary_search(&key).is_ok() {
            return Err(wrong(format!("{expr} is a split point twice"), "leave one out"));
        }
        if last.as_ref().is_some_and(|last| *last > key) {
            let what = format!("split point {expr} is out of order");
            return Err(wrong(what, "write them in the order of their bytes, smallest first"));
        }
        last = Some(key);
        let place = cuts.partition_point(|cut| Some(cut) < last.as_ref());
        cuts.insert(place, last.clone().unwrap_or_default());
    }
    if cuts.len() >= REGIONS_MAX {
        return Err(
            Error::invalid(format!("a table has {REGIONS_MAX} regions at the most")).state(sqlstate::LIMIT)
        );
    }
    Ok(cuts)
}

/// A split point as written: a rowkey or a prefix of one, or the values of the first key columns.
fn point(table: &TableDef, expr: &Expr) -> Result<Rowkey> {
    let not_a_literal = || {
        Error::invalid(format!("{expr} is not a literal"))
            .hint("write a rowkey or the start of one: '4000', X'80'; or the value that the key begins with")
    };
    let values = match expr {
        Expr::Tuple(items) => {
            items.iter().map(|item| rows::literal(item, &[])?.ok_or_else(not_a_literal)).collect()
        }
        one => rows::literal(one, &[])?.map(|value| vec![value]).ok_or_else(not_a_literal),
    };
    let values: Vec<Value> = values?;
    match &values[..] {
        [Value::Bytes(bytes)] => return Ok(bytes.as_slice().into()),
        [Value::Text(text)] if table.key.is_text() => return Ok(text.as_str().into()),
        [Value::Text(text)] if KeyspaceLayout::of_table(table).has_in_hex(text) => {
            return Err(Error::invalid(format!(
                "{expr} is a text, and a rowkey of \"{}\" in hex digits",
                table.name
            ))
            .why("a text is a value of the first key column here")
            .hint(format!("write X{expr}"))
            .state(sqlstate::DATATYPE_MISMATCH));
        }
        _ => {}
    }
    let mut key = Vec::new();
    let mut values = values.into_iter().peekable();
    for part in table.key.parts() {
        if values.peek().is_none() {
            break;
        }
        match values.next_if(|_| !part.is_literal()) {
            None => part.bytes_of(&|_| &Value::Null, &mut key)?,
            Some(value) => put(table, part, value, &mut key)?,
        }
    }
    match values.next() {
        None => Ok(key.into()),
        Some(_) => Err(Error::invalid(format!("{expr} has more values than the key has parts"))),
    }
}

/// Appends a value as a part of the key: encoded like its column, or, for a hash or a bucket, as text.
fn put(table: &TableDef, part: &KeyPart, value: Value, key: &mut Vec<u8>) -> Result<()> {
    match part.columns() {
        [column] if part.facts().decodable => {
            let value = value.cast(table.column(*column).ty)?;
            Ok(part.bytes_of(&|_| &value, key)?)
        }
        _ => {
            key.extend_from_slice(value.to_string().as_bytes());
            Ok(())
        }
    }
}

fn into(
    table: &TableDef,
    regions: usize,
    method: &SplitMethod,
    rows: Option<(&dyn Reader, &Watch)>,
) -> Result<Vec<Rowkey>> {
    let first = table.key.parts().first();
    let too_many = |digits: Digits| {
        Error::invalid(format!("{regions} regions are more than there are values to begin a key with"))
            .why(format!("the key begins with one of {} values", digits.count))
            .hint(format!("SPLIT INTO {}", digits.count))
            .state(sqlstate::INVALID_TABLE_DEFINITION)
    };
    let over = |radix: u32| {
        if let Some(part) = first.filter(|part| part.is_binary()) {
            return Err(Error::invalid("no key here begins with digits")
                .why(format!("the key begins with {}, in binary", part.sql()))
                .hint("SPLIT ON (..) cuts where you say, ALTER TABLE .. SPLIT INTO n FROM DATA where the rows are")
                .state(sqlstate::INVALID_TABLE_DEFINITION));
        }
        let own = first.and_then(KeyPart::digits).filter(|digits| digits.radix == radix);
        let digits = own.unwrap_or(Digits::all(radix, DIGITS));
        splits::over_digits(digits, regions).ok_or_else(|| too_many(digits))
    };
    match method {
        _ if regions == 1 => Ok(Vec::new()),
        SplitMethod::Hex => over(16),
        SplitMethod::Decimal => over(10),
        SplitMethod::Uniform => Ok(splits::uniform(regions)),
        SplitMethod::Between(bounds) => {
            let key = |expr: &Expr| point(table, expr).map_err(|e: Error| e.at(span_of(expr)));
            let (first, last) = (key(&bounds[0])?, key(&bounds[1])?);
            splits::between(&first, &last, regions).ok_or_else(|| {
                Error::invalid(format!("{regions} regions cannot be cut from there to there"))
                    .why("three regions or more end at the first key, lie between, and begin at the last")
                    .hint("give a smaller key first, and at least 3 regions")
                    .state(sqlstate::INVALID_TABLE_DEFINITION)
            })
        }
        SplitMethod::FromData => match rows {
            Some((reader, watch)) => even(table, regions, reader, watch),
            None => Err(Error::invalid("a new table has no data to split by")
                .hint(format!(
                    "load it first, then ALTER TABLE {} SPLIT INTO {regions} FROM DATA",
                    name_sql(&table.name)
                ))
                .state(sqlstate::OBJECT_STATE)),
        },
        SplitMethod::Suited => splits::suited(&table.key, regions).ok_or_else(|| unsuited(table, regions)),
    }
}

fn unsuited(table: &TableDef, regions: usize) -> Error {
    let Some(part) = table.key.parts().first() else { return Error::internal("a layout without parts") };
    let (name, sql) = (name_sql(&table.name), part.sql());
    match part.digits() {
        Some(digits) if part.facts().order.is_none() => {
            Error::invalid(format!("{regions} regions are more than {sql} has values"))
                .hint(format!("SPLIT INTO {}", digits.count))
        }
        _ => Error::invalid(format!("the key begins with {sql}, which does not tell where keys will lie"))
            .why("its values are not spread evenly over all there could be")
            .hint(format!(
                "name the points: SPLIT ON (...); or load it first, then ALTER TABLE {name} SPLIT INTO {regions} FROM DATA"
            )),
    }
    .state(sqlstate::INVALID_TABLE_DEFINITION)
}

/// Split points with equally many rows between them, each as short as possible.
fn even(table: &TableDef, regions: usize, reader: &dyn Reader, watch: &Watch) -> Result<Vec<Rowkey>> {
    let rows = stored::count(table, reader, watch)?;
    if rows < regions as u64 {
        return Err(Error::invalid(format!(
            "{} no {regions} regions",
            if rows == 1 { "1 row makes".to_owned() } else { format!("{rows} rows make") }
        ))
        .hint("load more rows first, or name the points: SPLIT ON (...)")
        .state(sqlstate::OBJECT_STATE));
    }
    let mut cuts = Vec::with_capacity(regions - 1);
    let mut last: Vec<u8> = Vec::new();
    stored::each_rowkey(table, reader, &format!("splitting {}", table.name), watch, |n, key| {
        let next = (cuts.len() as u64 + 1) * rows / regions as u64;
        if n == next && cuts.len() + 1 < regions {
            cuts.push(splits::separator(&table.key, &last, key));
        }
        last.clear();
        last.extend_from_slice(key);
    })?;
    Ok(cuts)
}

/// Warnings about a table's split points that are allowed but useless.
pub fn warnings(table: &TableDef) -> Vec<Warning> {
    let idle = splits::unreachable(&table.key, &table.splits);
    if idle.is_empty() {
        return Vec::new();
    }
    // Of growing numbers, SPLIT INTO alone does not know where they will be.
    let n = table.splits.len() + 1;
    let digits = table.key.parts().first().and_then(KeyPart::digits);
    let how = match digits.filter(|_| splits::suited(&table.key, n).is_none()).map(|digits| digits.radix) {
        None => "",
        Some(16) => " HEX",
        Some(_) => " DECIMAL",
    };
    vec![Warning {
        code: Some(LintRule::LumpyRegions.code()),
        what: format!("{} of {n} regions can hold no key", idle.len()),
        why: "the key begins with digits, and the bytes between those regions' bounds are none".into(),
        hint: format!("SPLIT INTO {n}{how} cuts where the keys are"),
    }]
}

/// A split point as an SQL literal.
pub fn literal(table: &TableDef, key: &Rowkey) -> String {
    match std::str::from_utf8(key) {
        Ok(text) if table.key.is_text() && !text.contains(char::is_control) => {
            Literal(Value::from(text).as_ref()).to_string()
        }
        _ => format!("X'{}'", hex(key)),
    }
}

/// SHOW REGIONS: a row for each region of a table.
pub fn show(view: &StatementView, name: &Ident) -> Result<RecordBatch> {
    let table = view.table(name)?;
    let reader = view.snapshot.reader()?;
    let n = table.splits.len() + 1;
    let (mut counts, mut sizes) = (vec![0_i64; n], vec![0_i64; n]);
    for (at, id) in table.family_ids().enumerate() {
        let mut region = 0;
        let mut cursor = reader.cursor(table.family(id).keyspace, &KeyRange::all(), Direction::Forward)?;
        let mut seen: u64 = 0;
        while let Some((key, value)) = cursor.next()? {
            view.watch.cancel.tick(seen)?;
            seen += 1;
            while table.splits.get(region).is_some_and(|cut| key >= &cut[..]) {
                region += 1;
            }
            counts[region] += i64::from(at == 0);
            sizes[region] += (key.len() + value.len()) as i64;
        }
    }
    let ends = |unbound: &str, shown: fn(&TableDef, &Rowkey) -> String| {
        let cuts: Vec<String> = table.splits.iter().map(|key| shown(&table, key)).collect();
        let first = [vec![unbound.replace('∞', "-∞")], cuts.clone()].concat();
        (text(first), text([cuts, vec![unbound.to_owned()]].concat()))
    };
    let (from, to) = ends("∞", |table, key| table.key.show_bound(key));
    let (from_bytes, to_bytes) = ends("", |_, key| hex(key));
    rows_of(vec![
        ("region", numbers((1..=n as i64).collect())),
        ("from", from),
        ("to", to),
        ("from_bytes", from_bytes),
        ("to_bytes", to_bytes),
        ("rows", numbers(counts)),
        ("bytes", numbers(sizes)),
        ("reads", done(&table, TrafficKind::Read)),
        ("writes", done(&table, TrafficKind::Write)),
    ])
}
