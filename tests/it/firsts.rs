//! The first rows of a join, read in order until there are enough, are the first of all its rows.

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
    let mut early = 0;
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
            }
        }
    }
    assert!(early > 12, "{early} of them stop early");
}
