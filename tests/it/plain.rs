//! Queries of one table, planned without DataFusion, are what DataFusion makes of them.
//!
//! `1 = 1` says nothing, and is no comparison of a column: with it, DataFusion plans the same query. So each statement
//! has a twin.

use arrow::util::pretty::pretty_format_batches;
use rowkeydb::{Database, Session, Value};

use crate::dice::{Dice, setting};

/// Columns: names, types, how the value of row `v` is made, and literals that may be compared with them.
const COLUMNS: [(&str, &str, &str, &[&str]); 13] = [
    ("id", "INT", "v", &["7", "-1", "40", "2.5", "'9'", "'x'", "5000000000", "1e1", "NULL"]),
    ("a", "SMALLINT", "v % 6", &["3", "0", "70000", "2.0", "'4'", "NULL"]),
    ("n", "BIGINT", "nullif(v * 37 % 19, 4)", &["8", "-3", "10.5", "'11'", "1e300", "NULL"]),
    ("s", "TEXT", "nullif('s' || v % 11, 's3')", &["'s1'", "'s10'", "''", "'it''s'", "5", "NULL"]),
    ("d", "DATE", "DATE '2024-01-01' + v % 20", &["'2024-01-05'", "DATE '2024-01-11'", "'soon'", "7"]),
    (
        "at",
        "TIMESTAMP",
        "TIMESTAMP '2024-01-01' + v % 50 * INTERVAL '1 hour'",
        &["'2024-01-01 12:00:00'", "DATE '2024-01-02'", "TIMESTAMP '2024-01-02 03:00:00'", "now()"],
    ),
    ("z", "TIMESTAMPTZ", "TIMESTAMP '2024-01-01' + v % 9 * INTERVAL '1 day'", &["'2024-01-04'", "now()"]),
    ("price", "DECIMAL(9, 2)", "nullif(v % 30, 8) * 1.25", &["12.5", "3", "1.234", "'7.50'", "2e0"]),
    ("w", "DOUBLE", "CASE WHEN v % 7 > 0 THEN v * 0.25 END", &["5", "2.25", "1e1", "'3'", "NULL"]),
    ("r", "REAL", "v * 0.5", &["4", "2.5", "1.1"]),
    ("ok", "BOOLEAN", "CASE WHEN v % 5 > 0 THEN v % 2 = 0 END", &["TRUE", "FALSE", "NULL", "'yes'"]),
    (
        "u",
        "UUID",
        "'00000000-0000-0000-0000-0000000000' || lpad(CAST(v % 90 AS TEXT), 2, '0')",
        &["'00000000-0000-0000-0000-000000000007'", "'none'"],
    ),
    ("x", "VARBINARY", "CAST('b' || v % 4 AS VARBINARY)", &["'\\x6231'", "X'6232'", "'b3'"]),
];

const COMPARISONS: [&str; 6] = ["=", "<>", "<", "<=", ">", ">="];

fn table(dice: &mut Dice) -> Database {
    let db = Database::in_memory().unwrap();
    let key = dice.pick(&[
        "id",
        "id DESC",
        "reverse(lpad(id, 6))",
        "a, id",
        "md5_bucket(a, 3), a, at, id",
        "d, id",
        "u, id",
        "a, id DESC",
    ]);
    let columns =
        COLUMNS.map(|(name, ty, ..)| format!("{name} {ty}{}", ["", " NOT NULL"][usize::from(name == "a")]));
    let values = COLUMNS.map(|(_, _, value, _)| value).join(", ");
    let families = dice.pick(&["", "FAMILY main (n, s), FAMILY more (w, price),"]);
    let index =
        dice.pick(&["(s)", "(n, at DESC)", "(a, d)", "(s, n) INCLUDE (price)", "(ok)", "(price, w DESC)"]);
    let other = dice.pick(&["(at)", "(a) WHERE n IS NOT NULL", "(d DESC, a)", "(z)", "(w)", "(lpad(n, 4))"]);
    let rows = dice.below(300);
    for sql in [
        format!("CREATE TABLE t ({}, {families} PRIMARY KEY ({key}))", columns.join(", ")),
        format!("CREATE INDEX one ON t {index}"),
        format!("CREATE INDEX two ON t {other}"),
        format!("INSERT INTO t SELECT {values} FROM generate_series(1, {rows}) g(v)"),
    ] {
        db.execute(&sql).unwrap_or_else(|e| panic!("{sql}\n{e}"));
    }
    if dice.chance(30) {
        db.execute("ANALYZE").unwrap();
    }
    db
}

/// A name as somebody may write it.
fn name(dice: &mut Dice, column: &str, table: &str) -> String {
    match dice.below(8) {
        0 => format!("{table}.{column}"),
        1 => column.to_uppercase(),
        2 => format!("\"{column}\""),
        _ => column.to_owned(),
    }
}

/// A condition, whatever it asks.
fn term(dice: &mut Dice, table: &str) -> String {
    if dice.chance(15) {
        let [one, other] = [(); 2].map(|()| term(dice, table));
        return match dice.below(3) {
            0 => format!("NOT ({one} AND {other})"),
            _ => format!("({one} OR {other})"),
        };
    }
    let (column, _, _, literals) = COLUMNS[dice.below(COLUMNS.len())];
    let literal = |dice: &mut Dice| literals[dice.below(literals.len())];
    let (one, other) = (literal(dice), literal(dice));
    let op = COMPARISONS[dice.below(6)];
    let column = name(dice, column, table);
    match dice.below(13) {
        0 => format!("{column}{} BETWEEN {one} AND {other}", dice.pick(&["", " NOT"])),
        1 => format!("{column} IN ({one}, {other}, {one})"),
        2 => format!("{column} NOT IN ({one}, {other})"),
        3 => format!("{column} IS NULL"),
        4 => format!("{column} IS NOT NULL"),
        5 => format!("{one} {op} {column}"),
        6 => dice.pick(&["ok", "NOT ok", "ok = TRUE", "t.ok <> FALSE"]).to_owned(),
        7 => format!("({column} {op} {one})"),
        8 => format!("rowkey {op} '0{}'", dice.below(60)),
        9 => {
            let text = dice.pick(&["s", "S", "rowkey", "d", "u"]);
            let pattern = dice.pick(&["s1%", "S_", "%0", "s1", "0000%", "%", "2024-01-%", "\\", "s\\1%"]);
            format!("{text} {} '{pattern}'", dice.pick(&["LIKE", "NOT LIKE", "ILIKE", "NOT ILIKE"]))
        }
        _ => format!("{column} {op} {one}"),
    }
}

/// A query, but for its conditions: what stands before and behind them.
fn query(dice: &mut Dice) -> (String, String, String) {
    let (from, called) =
        [("t", "t"), ("t", "t"), ("public.t", "t"), ("t AS q", "q"), ("T", "t"), ("one", "one")]
            [dice.below(6)];
    let column = |dice: &mut Dice| {
        let (column, ..) = COLUMNS[dice.below(COLUMNS.len())];
        name(dice, column, called)
    };
    let total = |dice: &mut Dice| match dice.below(4) {
        0 => "count(*)".to_owned(),
        1 => format!("COUNT({})", column(dice)),
        2 => format!("sum({})", column(dice)),
        _ => format!("max({})", column(dice)),
    };
    let alias =
        |dice: &mut Dice| dice.pick(&["", "", "", " AS b", " AS id", " total", " AS \"A b\""]).to_owned();
    let several = |dice: &mut Dice, item: &dyn Fn(&mut Dice) -> String| {
        let items = 1 + dice.below(3);
        (0..items).map(|_| item(dice) + &alias(dice)).collect::<Vec<_>>().join(", ")
    };
    let is_total = dice.chance(20);
    let items = match dice.below(6) {
        _ if is_total => several(dice, &total),
        0 | 1 => "*".to_owned(),
        2 => format!("rowkey, {}", column(dice)),
        _ => several(dice, &column),
    };
    let mut behind = String::new();
    if !is_total && dice.chance(50) {
        let by = |dice: &mut Dice| column(dice) + dice.pick(&["", " DESC", " ASC", " NULLS LAST"]);
        let order = (0..1 + dice.below(2)).map(|_| by(dice)).collect::<Vec<_>>().join(", ");
        let whole = if from == "one" { "primary_rowkey".to_owned() } else { format!("{called}.id") };
        behind += &format!(" ORDER BY {order}, {whole}");
    }
    if dice.chance(40) {
        behind += &format!(" LIMIT {}", dice.below(12));
    }
    if dice.chance(20) {
        behind += &format!(" OFFSET {}", dice.below(5));
    }
    (format!("SELECT {items} FROM {from}"), behind, called.to_owned())
}

/// What a statement gives: its columns and rows, or its error. Rows in no order are compared in any, and of a part of
/// them how many they are.
fn outcome(session: &mut Session, sql: &str) -> Result<(String, Vec<String>), String> {
    let failed = |e: rowkeydb::Error| format!("{} {}", e.sqlstate(), e.what());
    let outcome = session.execute(sql, &[]).map_err(failed)?;
    let head = format!("{:?} {:?}", outcome.columns, outcome.affected);
    let batches = outcome.rows.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let batches: Vec<_> = batches.into_iter().filter(|batch| batch.num_rows() > 0).collect();
    let lines = pretty_format_batches(&batches).unwrap().to_string();
    let mut rows: Vec<String> = lines.lines().skip(3).map(str::to_owned).collect();
    match ["ORDER BY", "LIMIT", "OFFSET"].map(|word| sql.contains(word)) {
        [true, ..] => {}
        [false, false, false] => rows.sort(),
        _ => rows.iter_mut().for_each(String::clear),
    }
    Ok((head, rows))
}

#[test]
fn plain_queries_are_what_datafusion_makes_of_them() {
    let seed = setting("PLAIN_SEED", 1);
    for n in 0..setting("PLAIN", 6) {
        let mut dice = Dice::new(seed, n);
        let db = table(&mut dice);
        let mut session = db.session();
        for _ in 0..150 {
            let (before, behind, called) = query(&mut dice);
            let terms: Vec<String> = (0..dice.below(4)).map(|_| term(&mut dice, &called)).collect();
            let condition = terms.join(" AND ");
            let (plain, twin) = match terms.is_empty() {
                true => (format!("{before}{behind}"), format!("{before} WHERE 1 = 1{behind}")),
                false => (
                    format!("{before} WHERE {condition}{behind}"),
                    format!("{before} WHERE {condition} AND 1 = 1{behind}"),
                ),
            };
            let expected = outcome(&mut session, &twin);
            // What is wrong in a condition that decides nothing is not seen once the plan is kept.
            let turns = if expected.is_err() { 1 } else { 3 };
            for _ in 0..turns {
                assert_eq!(outcome(&mut session, &plain), expected, "seed {seed}, item {n}: {plain}");
            }
        }
        let count = db.prepare("SELECT count(*), sum(id) FROM t").unwrap();
        for _ in 0..30 {
            let condition =
                (0..1 + dice.below(2)).map(|_| term(&mut dice, "t")).collect::<Vec<_>>().join(" AND ");
            let change =
                dice.pick(&["DELETE FROM t", "UPDATE t SET n = 5, s = 'new'", "UPDATE t SET n = n + 1"]);
            let mut changed = |sql: &str| {
                session.execute("BEGIN", &[]).unwrap();
                let outcome = outcome(&mut session, sql);
                let left = count.query_in(&mut session, &[]).unwrap().one().unwrap();
                let left: Vec<Value> = left.values().unwrap();
                session.execute("ROLLBACK", &[]).unwrap();
                (outcome, left)
            };
            let plain = format!("{change} WHERE {condition}");
            let expected = changed(&format!("{plain} AND 1 = 1"));
            assert_eq!(changed(&plain), expected, "seed {seed}, item {n}: {plain}");
        }
    }
}
