//! Conditions on what a key part computes, on a table that has such a key and on a copy that has none.

use rowkeydb::{Database, Session, Value};

use crate::dice::{Dice, setting};

const COLUMNS: &str = "id BIGINT, t TEXT, u TEXT NOT NULL, i INT, n DECIMAL(6, 1), s SMALLINT NOT NULL, \
                       ts TIMESTAMP NOT NULL, day DATE, tz TIMESTAMPTZ";

/// Values that pads fit, NULLs, and negative numbers in `s`.
const ROWS: &str = "SELECT v, CASE WHEN v % 11 > 0 THEN repeat(chr(97 + v % 26), v % 4) || (v % 30) END, \
    (v % 50)::text, CASE WHEN v % 13 > 0 THEN v % 300 END, CASE WHEN v % 17 > 0 THEN (v % 97) / 2.0 END, v % 7 - 3, \
    TIMESTAMP '2017-01-01' + (v * 37 % 5000) * INTERVAL '1 minute', \
    CASE WHEN v % 9 > 0 THEN DATE '2017-01-01' + (v % 40)::int END, \
    CASE WHEN v % 9 > 1 THEN TIMESTAMPTZ '2017-01-01 00:00:00+00' + (v % 100) * INTERVAL '1 hour' END \
    FROM generate_series(1, 400) t(v)";

/// Key parts, and the same as a query writes it, where that differs: a key pads texts with zeros, too.
const PARTS: [(&str, &str); 34] = [
    ("i % 5", ""),
    ("s % 4", ""),
    ("mod(s, 12)", "s % 12"),
    ("left(md5(i), 1)", ""),
    ("right(md5(t), 2)", ""),
    ("substr(md5(ts), 2, 2)", ""),
    ("md5(t)", ""),
    ("md5(i)", "md5(i::text)"),
    ("md5_bucket(t, 8)", ""),
    ("md5_bucket(u, s, 12)", ""),
    ("lpad(i, 3)", ""),
    ("lpad(i, 5)", "lpad(i, 5, '0')"),
    ("lpad(t, 6)", "lpad(t, 6, '0')"),
    ("lpad(t, 6, 'x')", ""),
    ("lpad(n, 7)", ""),
    ("rpad(t, 6, ' ')", "rpad(t, 6)"),
    ("rpad(t, 6, 'x')", ""),
    ("reverse(lpad(i, 4))", ""),
    ("reverse(lpad(n, 7))", ""),
    ("reverse(lpad(t, 6))", "reverse(lpad(t, 6, '0'))"),
    ("reverse(t)", ""),
    ("reverse(s)", ""),
    ("reverse(id)", "right(reverse(id), 3)"),
    ("reverse(u)", "right(u, 1)"),
    ("300 - i", ""),
    ("5 - s", ""),
    ("lpad(300 - i, 3)", ""),
    ("lpad(300 - i, 5)", ""),
    ("to_char(ts, 'DD-MM-YYYY HH24:MI')", ""),
    ("to_char(ts, 'HH24:MI DD-MM-YYYY')", ""),
    ("to_char(ts, 'MI')", ""),
    ("to_char(day, 'DD-MM-YYYY')", ""),
    ("to_char(day, 'MM-DD')", ""),
    ("to_char(tz, 'DD.MM.YYYY HH24')", ""),
];

/// A value of an expression, changed a little.
fn near(dice: &mut Dice, value: &Value) -> Value {
    match value {
        Value::Int(n) if dice.chance(30) => Value::Int(n + [-9, 1, 9][dice.below(3)]),
        Value::Text(text) if dice.chance(40) => {
            let kept = text.chars().take(dice.below(text.len() + 1));
            Value::Text(kept.collect::<String>() + dice.pick(&["", "0", "z", "+"]))
        }
        value => value.clone(),
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
        other => other.to_string(),
    }
}

/// A condition on an expression, with some values of it.
fn condition(dice: &mut Dice, of: &str, values: &[Value]) -> String {
    let mut drawn = || {
        let at = dice.below(values.len());
        near(dice, &values[at])
    };
    let (one, other) = (drawn(), drawn());
    let (v, w) = (literal(&one), literal(&other));
    let op = dice.pick(&["=", "<>", "<", "<=", ">", ">="]);
    match dice.below(10) {
        0 | 1 => format!("{of} = {v}"),
        2 => format!("{of} IN ({v}, {w})"),
        3 => format!("{of} NOT IN ({v}, {w})"),
        4 => format!("{of} BETWEEN {v} AND {w}"),
        5 => format!("NOT ({w} {op} {of})"),
        6 => format!("{of} = {v} AND (i BETWEEN 3 AND 200 OR t LIKE 'b%')"),
        7 => format!("{of} = {v} OR id = 5 OR {of} {op} {w}"),
        8 if matches!(one, Value::Text(_)) => format!("{of} LIKE '{}%'", v.trim_matches('\'')),
        _ => format!("{of} {op} {v}"),
    }
}

/// Conditions on times around a day, which a format may show.
fn of_time(dice: &mut Dice) -> String {
    let minute = dice.below(4800);
    let until = minute + [0, 1, 7, 60, 600, 1440][dice.below(6)];
    let at = |m: usize| format!("2017-01-{:02} {:02}:{:02}:00", 1 + m / 1440, m / 60 % 24, m % 60);
    let (from, to) = (at(minute), at(until));
    let column = dice.pick(&["ts", "tz", "day"]);
    match dice.below(5) {
        0 => format!("{column} >= '{}' AND {column} < '{}'", &from[..10], &at(until + 1440)[..10]),
        1 => format!("date_trunc('hour', ts) = '{}:00:00'", &from[..13]),
        2 => format!("to_char(ts, 'DD-MM-YYYY') = '{}-01-2017'", &from[8..10]),
        3 => format!("{column}::date = '{}'", &from[..10]),
        _ => format!("ts > '{from}' AND ts <= '{to}'"),
    }
}

fn ids(session: &mut Session, table: &str, condition: &str) -> Result<Vec<i64>, String> {
    let sql = format!("SELECT id FROM {table} WHERE {condition} ORDER BY id");
    let rows = session.query(&sql, &[]).map_err(|e| e.what().to_owned())?;
    rows.map(|row| row.and_then(|row| row.get("id")).map_err(|e| e.what().to_owned())).collect()
}

/// Compares the answers of both tables, and counts the plans that read no whole table.
fn compare(n: u64) -> usize {
    let mut dice = Dice::new(setting("KEY_PARTS_SEED", 1), n);
    let (part, written) = PARTS[n as usize % PARTS.len()];
    let of = if written.is_empty() { part } else { written };
    let mut session = Database::in_memory().unwrap().session();
    let direction = dice.pick(&["", " DESC"]);
    // Nothing may follow a text of any length.
    let has_end = !part.starts_with("reverse(") || part.contains("lpad");
    let index =
        format!("CREATE INDEX parts ON keyed ({part}{direction}{})", if has_end { ", s" } else { "" });
    let mut words = part.split(|c: char| !c.is_alphanumeric());
    let key =
        match has_end && dice.chance(50) && !words.any(|word| ["t", "i", "n", "day", "tz"].contains(&word)) {
            true => format!("{part}{direction}, id, s, u, ts"),
            false => "id".to_owned(),
        };
    for sql in [
        format!("CREATE TABLE plain ({COLUMNS}, PRIMARY KEY (id))"),
        format!("CREATE TABLE keyed ({COLUMNS}, PRIMARY KEY ({key}))"),
        if key == "id" { index } else { "SELECT 1".to_owned() },
        format!("INSERT INTO plain {ROWS}"),
        format!("INSERT INTO keyed {ROWS}"),
    ] {
        session.execute(&sql, &[]).unwrap_or_else(|e| panic!("{sql}\n{e}"));
    }
    let values = session.query(&format!("SELECT DISTINCT {of} AS x FROM plain WHERE {of} IS NOT NULL"), &[]);
    let values: Vec<Value> = values.unwrap().map(|row| row.unwrap().values().unwrap().remove(0)).collect();
    let mut bound = 0;
    for _ in 0..setting("KEY_PARTS_CONDITIONS", 10) {
        let condition = match part.starts_with("to_char") && dice.chance(50) {
            true => of_time(&mut dice),
            false => condition(&mut dice, of, &values),
        };
        let expected = ids(&mut session, "plain", &condition);
        assert_eq!(ids(&mut session, "keyed", &condition), expected, "{part}{direction}: {condition}");
        let plan = session.query(&format!("EXPLAIN SELECT id FROM keyed WHERE {condition}"), &[]).unwrap();
        let lines: Vec<String> = plan.map(|row| row.unwrap().get("plan").unwrap()).collect();
        bound += usize::from(!lines[0].starts_with("FullScan"));
    }
    bound
}

#[test]
fn a_condition_on_a_part_finds_the_same_rows_with_the_key() {
    let bound: usize = (0..setting("KEY_PARTS", PARTS.len() as u64)).map(compare).sum();
    assert!(bound > 0, "no condition bounds a part");
}
