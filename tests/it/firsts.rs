//! The first rows of a table, of its groups, and of a join, read in order until there are enough, are the first of all.

use std::cmp::Ordering;

use rowkeydb::{Database, Value};

use crate::dice::{Dice, setting};

/// Rows of a query as text.
fn rows(db: &Database, sql: &str) -> Vec<String> {
    let rows = db.query(sql).unwrap_or_else(|e| panic!("{sql}\n{e}"));
    let text = |values: Vec<Value>| values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    rows.map(|row| text(row.unwrap().values().unwrap())).collect()
}

/// Two tables that rows of a third point to, some of them in vain.
fn tables(dice: &mut Dice) -> Database {
    let db = Database::in_memory().unwrap();
    let (n, known) = (1 + dice.below(3000), *dice.pick(&[&7, &900, &2000]));
    let key = dice.pick(&["id", "reverse(lpad(id, 6))", "md5_bucket(id, 4), id"]);
    let order = dice.pick(&["t, id", "t DESC, id DESC", "k, t, id"]);
    // The rows that are pointed to, but for some.
    let left_out = dice.pick(&["false", "id % 2 = 0", "id % 7 < 6", "id > 3"]);
    for sql in [
        "CREATE TABLE a (id INT PRIMARY KEY, t INT, k INT NOT NULL, b INT, c INT)".to_owned(),
        format!("CREATE TABLE b (id INT, name TEXT, PRIMARY KEY ({key}))"),
        "CREATE TABLE c (id INT PRIMARY KEY, name TEXT)".to_owned(),
        "CREATE TABLE d (a INT, line INT, name TEXT, PRIMARY KEY (a, line))".to_owned(),
        "CREATE TABLE e (id INT PRIMARY KEY, a INT, k INT, name TEXT)".to_owned(),
        "CREATE INDEX e_by ON e (a)".to_owned(),
        format!("CREATE INDEX a_by ON a ({order})"),
        format!(
            "INSERT INTO a SELECT v, nullif(v * 7 % 41, 40), v % 3, nullif(v * 13 % {known}, 5), v * 3 % 1700
             FROM generate_series(1, {n}) s(v)"
        ),
        format!("INSERT INTO b SELECT v, 'b' || v FROM generate_series(0, {known}) s(v)"),
        "INSERT INTO c SELECT v, 'c' || v FROM generate_series(0, 1500) s(v)".to_owned(),
        "INSERT INTO d SELECT v % 900, v / 900, 'd' || v FROM generate_series(0, 2500) s(v)".to_owned(),
        "INSERT INTO e SELECT v, nullif(v * 11 % 1300, 7), v % 3, 'e' || v FROM generate_series(0, 2500) s(v)"
            .to_owned(),
        format!("DELETE FROM b WHERE {left_out}"),
    ] {
        db.execute(&sql).unwrap_or_else(|e| panic!("{sql}\n{e}"));
    }
    db
}

#[test]
fn the_first_rows_of_a_join_are_the_first_of_all() {
    let seed = setting("FIRSTS_SEED", 1);
    let (mut early, mut lookups) = (0, 0);
    for n in 0..setting("FIRSTS", 5) {
        let mut dice = Dice::new(seed, n);
        let db = tables(&mut dice);
        for _ in 0..15 {
            let b = dice.pick(&[
                "a JOIN b ON b.id = a.b",
                "b JOIN a ON b.id = a.b",
                "a LEFT JOIN b ON b.id = a.b",
                "b RIGHT JOIN a ON b.id = a.b",
            ]);
            let c = dice.pick(&[
                "",
                "JOIN c ON c.id = a.c",
                "LEFT JOIN c ON a.c = c.id",
                "LEFT JOIN c ON c.id = a.c + 1",
                "JOIN d c ON c.a = a.id",
                "LEFT JOIN d c ON c.a = a.id",
                "JOIN e c ON c.a = a.id",
                "LEFT JOIN e c ON c.a = a.id AND c.k = a.k",
            ]);
            let name = if c.is_empty() { "a.k" } else { "c.name" };
            let tie = if c.is_empty() { "" } else { ", c.name" };
            let filter = dice.pick(&["", "WHERE a.k = 1", "WHERE a.k < 2 AND a.t > 3", "WHERE b.id > 4"]);
            let order = dice.pick(&[
                "a.t, a.id",
                "a.t DESC, a.id DESC",
                "a.k, a.t, a.id",
                "a.id DESC",
                "a.t, b.name, a.id",
            ]);
            let all = format!("SELECT a.id, a.t, b.name, {name} FROM {b} {c} {filter} ORDER BY {order}");
            // Rows of one place in that order are compared as a set, by their beginnings.
            let expected = rows(&db, &format!("{all}{tie}"));
            // The third run is by a plan that is kept, for other rows than it was made for.
            for _ in 0..3 {
                let (limit, offset) = (1 + dice.below(12), dice.below(3) * dice.below(20));
                let few = format!("{all} LIMIT {limit} OFFSET {offset}");
                let first = expected.iter().skip(offset).take(limit);
                let found = rows(&db, &few);
                let places = |rows: &mut dyn Iterator<Item = &String>| -> Vec<String> {
                    rows.map(|row| row.split(' ').take(3).collect::<Vec<_>>().join(" ")).collect()
                };
                let case = format!("seed {seed}, data {n}: {few}");
                assert_eq!(places(&mut found.iter()), places(&mut first.clone()), "{case}");
                let mut distinct = found.clone();
                distinct.sort();
                distinct.dedup();
                assert_eq!(distinct.len(), found.len(), "{case}");
                assert!(found.iter().all(|row| expected.contains(row)), "{case}");
                let plan = rows(&db, &format!("EXPLAIN {few}")).join("\n");
                early += usize::from(plan.contains("LookupJoinExec") && !plan.contains("SortExec"));
                // Any of them, where no order is asked for.
                let any = format!(
                    "SELECT a.id, a.t, b.name, {name} FROM {b} {c} {filter} LIMIT {limit} OFFSET {offset}"
                );
                let mut found = rows(&db, &any);
                assert_eq!(found.len(), first.count(), "seed {seed}, data {n}: {any}");
                assert!(found.iter().all(|row| expected.contains(row)), "seed {seed}, data {n}: {any}");
                found.sort();
                let all = found.len();
                found.dedup();
                assert_eq!(found.len(), all, "seed {seed}, data {n}: {any}");
                lookups +=
                    usize::from(rows(&db, &format!("EXPLAIN {any}")).join("\n").contains("LookupJoinExec"));
            }
        }
    }
    assert!(early > 12 && lookups > 50, "{early} and {lookups} of them stop early");
}

/// A table of all kinds of values, with keys and indexes that begin like some order.
fn table(dice: &mut Dice) -> Database {
    let db = Database::in_memory().unwrap();
    let most = *dice.pick(&[&50, &7000]);
    let n = 1 + dice.below(most);
    let key = dice.pick(&["id", "g, id", "id % 4, id", "g, s, id DESC", "md5_bucket(g, 3), g, id"]);
    let index = dice.pick(&[
        "g, n DESC",
        "s, at DESC",
        "at, g",
        "lpad(s, 9), g DESC, n",
        "d DESC",
        "md5_bucket(s, 4), s, n",
    ]);
    let (groups, texts) = (1 + dice.below(30), 1 + dice.below(9));
    for sql in [
        format!(
            "CREATE TABLE t (id INT, g INT NOT NULL, n INT, s VARCHAR(9), d DOUBLE, m DECIMAL(9, 2), at TIMESTAMP,
             PRIMARY KEY ({key}))"
        ),
        format!("CREATE INDEX t_by ON t ({index})"),
        format!(
            "INSERT INTO t SELECT v, v * 7 % {groups}, nullif(v * 31 % 97, 5), left('abcdefghijk', 1 + v % {texts}),
                CASE v % 50 WHEN 7 THEN CAST('NaN' AS DOUBLE) WHEN 8 THEN -1e300 WHEN 9 THEN NULL
                    ELSE v * 37 % 211 / 8e0 - 9 END,
                v * 53 % 307 / 4.0, TIMESTAMP '2026-01-01' + (v * 17 % 400) * INTERVAL '1 minute'
             FROM generate_series(1, {n}) x(v)"
        ),
    ] {
        db.execute(&sql).unwrap_or_else(|e| panic!("{sql}\n{e}"));
    }
    if dice.below(2) == 0 {
        db.execute("ANALYZE t").unwrap();
    }
    db
}

/// `ORDER BY` some of these columns, and how rows compare in that order; NULLs are smallest, unless it says otherwise.
fn order(
    dice: &mut Dice,
    columns: &[&str],
    last: &str,
) -> (String, impl Fn(&[Value], &[Value]) -> Ordering + use<>) {
    let mut by: Vec<(usize, bool, Option<bool>)> = Vec::new();
    for _ in 0..dice.below(4) {
        let nulls_first = *dice.pick(&[&None, &None, &None, &Some(true), &Some(false)]);
        by.push((dice.below(columns.len()), dice.below(2) == 0, nulls_first));
    }
    // Without ties.
    for name in last.split(' ') {
        let at = columns.iter().position(|column| *column == name).unwrap();
        by.push((at, dice.below(2) == 0, None));
    }
    let written = by.iter().map(|(at, descending, nulls_first)| {
        let nulls = nulls_first.map_or("", |first| if first { " NULLS FIRST" } else { " NULLS LAST" });
        format!("{}{}{nulls}", columns[*at], if *descending { " DESC" } else { "" })
    });
    let written = written.collect::<Vec<_>>().join(", ");
    let compare = move |a: &[Value], b: &[Value]| {
        let by_one = |(at, descending, nulls_first): &(usize, bool, Option<bool>)| {
            let (a, b) = (&a[*at], &b[*at]);
            match (nulls_first, a == &Value::Null, b == &Value::Null) {
                (Some(first), true, false) => {
                    if *first {
                        Ordering::Less
                    } else {
                        Ordering::Greater
                    }
                }
                (Some(first), false, true) => {
                    if *first {
                        Ordering::Greater
                    } else {
                        Ordering::Less
                    }
                }
                _ if *descending => b.cmp(a),
                _ => a.cmp(b),
            }
        };
        by.iter().map(by_one).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    (written, compare)
}

fn values(db: &Database, sql: &str) -> Vec<Vec<Value>> {
    let rows = db.query(sql).unwrap_or_else(|e| panic!("{sql}\n{e}"));
    rows.map(|row| row.unwrap().values().unwrap()).collect()
}

#[test]
fn the_first_rows_and_groups_are_the_first_of_all() {
    let seed = setting("FIRSTS_SEED", 1);
    let mut seen =
        [("merge=true", 0), ("sort_prefix", 0), ("ordering_mode=Sorted", 0), ("offset=", 0), ("each=", 0)];
    for n in 0..setting("FIRSTS", 5) * 2 {
        let mut dice = Dice::new(seed, n);
        let db = table(&mut dice);
        for _ in 0..15 {
            let filter = dice.pick(&[
                "",
                "",
                "WHERE g IN (1, 2, 5)",
                "WHERE s IN ('a', 'abc') AND g < 9",
                "WHERE g IN (0, 3) AND s IN ('ab', 'a')",
                "WHERE at > '2026-01-01 03:00'",
                "WHERE n % 2 = 0",
                "WHERE n BETWEEN 5 AND 60 OR d > 3",
            ]);
            let (what, last) = *dice.pick(&[
                &("id, g, n, s, d, m, at", "id"),
                &("id, g, n, s, d, m, at", "id"),
                &("n, id, at", "id"),
                &("DISTINCT g", "g"),
                &("DISTINCT s, g", "g s"),
                &("g, count(*), sum(n), max(s)", "g"),
                &("g, min(n)", "g"),
                &("g, max(n), min(n)", "g"),
                &("s, g, avg(m)", "g s"),
                &("at, g, count(d)", "at g"),
                &("s, max(at)", "s"),
                &("id, g, row_number() OVER (PARTITION BY g ORDER BY id)", "id"),
                &("id, s, sum(n) OVER (PARTITION BY s ORDER BY at, id)", "id"),
            ]);
            let names: Vec<&str> = what.trim_start_matches("DISTINCT ").split(", ").collect();
            let group = match what.contains('(') && !what.contains("OVER") {
                true => format!("GROUP BY {}", last.replace(' ', ", ")),
                false => String::new(),
            };
            let plain: Vec<&str> = names.iter().copied().take_while(|name| !name.contains('(')).collect();
            let (order, compare) = order(&mut dice, &plain, last);
            let all = format!("SELECT {what} FROM t {filter} {group}");
            let mut expected = values(&db, &all.replace("PARTITION BY ", "PARTITION BY '' || "));
            expected.sort_by(|a, b| compare(a, b));
            for _ in 0..3 {
                let (limit, offset) = (1 + dice.below(12), dice.below(2) * dice.below(60));
                let few = format!("{all} ORDER BY {order} LIMIT {limit} OFFSET {offset}");
                let first: Vec<_> = expected.iter().skip(offset).take(limit).cloned().collect();
                assert_eq!(values(&db, &few), first, "seed {seed}, data {n}: {few}");
                let plan = rows(&db, &format!("EXPLAIN {few}")).join("\n");
                seen.iter_mut().for_each(|(word, n)| *n += usize::from(plan.contains(*word)));
            }
        }
    }
    assert!(seen.iter().all(|(_, n)| *n > 3), "{seen:?}");
}
