//! What each row finds in a range of its own is what a loop over both tables finds.

use rowkeydb::{Database, Value};

use crate::dice::{Dice, planned_once, setting};

/// A row that looks for others, or one that is looked for.
#[derive(Clone, Debug)]
struct Row {
    id: i64,
    k: Option<i64>,
    s: Option<String>,
    /// Of a row that looks: where its range begins and ends. Of one that is looked for: where it lies, and another number.
    lo: Option<i64>,
    hi: Option<i64>,
}

fn rows(db: &Database, sql: &str) -> Vec<Row> {
    let int = |value: &Value| match value {
        Value::Int(n) => Some(*n),
        _ => None,
    };
    let row = |values: Vec<Value>| Row {
        id: int(&values[0]).expect("an id"),
        k: int(&values[1]),
        s: match &values[2] {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        },
        lo: int(&values[3]),
        hi: int(&values[4]),
    };
    db.query(sql).unwrap().map(|found| row(found.unwrap().values().unwrap())).collect()
}

/// Rows that look for others, `r`, and those others, `t`.
fn tables(dice: &mut Dice) -> Database {
    let db = Database::in_memory().unwrap();
    let (n, m) = (1 + dice.below(6000), 1 + dice.below(40));
    let (groups, texts, span) =
        (*dice.pick(&[&2, &30, &400]), *dice.pick(&[&1, &7]), *dice.pick(&[&20, &500]));
    let keys =
        ["id", "reverse(lpad(id, 6))", "md5_bucket(id, 3), id", "pos, id", "pos", "k, pos", "pos DESC, k"];
    let key = dice.pick(&keys.each_ref());
    let [k, pos] = ["k", "pos"].map(|column| if key.contains(column) { "NOT NULL" } else { "" });
    let [no_k, no_pos] = [(k, 3), (pos, 5)].map(|(column, null)| if column.is_empty() { null } else { -1 });
    for sql in [
        "CREATE TABLE r (id INT PRIMARY KEY, k INT, s TEXT, lo INT, hi INT)".to_owned(),
        format!("CREATE TABLE t (id INT, k INT {k}, s TEXT, pos INT {pos}, v INT, PRIMARY KEY ({key}))"),
        format!(
            "INSERT INTO r SELECT x, nullif(x * 7 % {groups}, 4), nullif('s' || x % {texts}, 's3'),
             nullif(x * 13 % {span}, 6), nullif(x * 13 % {span} + x * 5 % {span} / 3, 9) FROM generate_series(1, {m}) g(x)"
        ),
        format!(
            "UPSERT INTO t SELECT x, nullif(x * 11 % {groups}, {no_k}), nullif('s' || x * 3 % {texts}, 's2'),
             nullif(x * 17 % {span}, {no_pos}), nullif(x % 9, 8) FROM generate_series(1, {n}) g(x)"
        ),
    ] {
        db.execute(&sql).unwrap_or_else(|e| panic!("{sql}\n{e}"));
    }
    for n in 0..1 + dice.below(3) {
        let parts = dice.pick(&[
            "k, pos",
            "k, pos DESC, id",
            "pos",
            "pos DESC",
            "s, k, pos",
            "k, s, pos DESC",
            "k",
            "s, id DESC",
        ]);
        let rest = dice.pick(&["", " INCLUDE (v)", " INCLUDE (v, s, k)", " WHERE v = 3"]);
        db.execute(&format!("CREATE INDEX t_{n} ON t ({parts}){rest}")).unwrap();
    }
    if dice.chance(50) {
        db.execute("ANALYZE").unwrap();
    }
    db
}

/// A condition in SQL, and of a pair.
type Term = (&'static str, fn(&Row, &Row) -> Option<bool>);

const EQUAL: [Term; 3] = [
    ("t.k = r.k", |r, t| Some(t.k? == r.k?)),
    ("r.s = t.s", |r, t| Some(t.s.as_ref()? == r.s.as_ref()?)),
    ("t.k = r.k AND t.s = r.s", |r, t| Some(t.k? == r.k? && t.s.as_ref()? == r.s.as_ref()?)),
];

/// Either is true; what is unknown counts as false.
fn or(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    Some(a == Some(true) || b == Some(true))
}

const RANGES: [Term; 16] = [
    ("t.pos BETWEEN r.hi AND r.hi", |r, t| Some(t.lo? == r.hi?)),
    ("t.pos > r.lo", |r, t| Some(t.lo? > r.lo?)),
    ("t.pos < r.lo", |r, t| Some(t.lo? < r.lo?)),
    ("r.lo <= t.pos AND t.pos <= r.hi", |r, t| Some(t.lo? >= r.lo? && t.lo? <= r.hi?)),
    ("t.pos BETWEEN r.lo AND r.hi + 2", |r, t| Some(t.lo? >= r.lo? && t.lo? <= r.hi? + 2)),
    ("t.id > r.id", |r, t| Some(t.id > r.id)),
    ("t.pos >= r.hi", |r, t| Some(t.lo? >= r.hi?)),
    ("t.pos < r.lo AND t.id < r.hi", |r, t| Some(t.lo? < r.lo? && t.id < r.hi?)),
    ("(t.pos = r.lo OR r.hi = t.pos)", |r, t| {
        or(r.lo.map(|lo| t.lo == Some(lo)), r.hi.map(|hi| t.lo == Some(hi)))
    }),
    ("(r.id = t.id OR t.id = r.lo OR t.id = r.hi)", |r, t| {
        or(Some(t.id == r.id), or(r.lo.map(|lo| t.id == lo), r.hi.map(|hi| t.id == hi)))
    }),
    ("(t.k = r.id OR t.k = r.hi)", |r, t| or(Some(t.k == Some(r.id)), r.hi.map(|hi| t.k == Some(hi)))),
    ("(t.k = r.id OR t.pos = r.lo)", |r, t| or(t.k.map(|k| k == r.id), r.lo.map(|lo| t.lo == Some(lo)))),
    ("(t.pos = r.hi OR t.id = r.id AND t.v > 2)", |r, t| {
        or(r.hi.map(|hi| t.lo == Some(hi)), Some(t.id == r.id && t.hi.is_some_and(|v| v > 2)))
    }),
    ("(t.k = r.k OR t.pos > r.hi AND r.s = t.s OR r.lo = t.id)", |r, t| {
        let (k, s) = (r.k.is_some() && r.k == t.k, r.s.is_some() && r.s == t.s);
        let pos = t.lo.zip(r.hi).is_some_and(|(pos, hi)| pos > hi);
        or(Some(k || pos && s), Some(r.lo == Some(t.id)))
    }),
    ("(t.k = r.lo OR t.k = r.hi OR t.pos = r.k)", |r, t| {
        let is = |a: Option<i64>, b: Option<i64>| a.is_some() && a == b;
        Some(is(t.k, r.lo) || is(t.k, r.hi) || is(t.lo, r.k))
    }),
    ("t.pos > r.lo AND t.pos > r.hi", |r, t| Some(t.lo? > r.lo? && t.lo? > r.hi?)),
];

const MORE: [Term; 6] = [
    ("true", |_, _| Some(true)),
    ("true", |_, _| Some(true)),
    ("t.v = 3", |_, t| Some(t.hi? == 3)),
    ("t.v <> r.k", |r, t| Some(t.hi? != r.k?)),
    ("t.v + r.id > 20", |r, t| Some(t.hi? + r.id > 20)),
    ("t.v > 2", |_, t| Some(t.hi? > 2)),
];

fn text(value: Option<i64>) -> String {
    value.map_or("NULL".to_owned(), |n| n.to_string())
}

#[test]
fn what_a_row_finds_in_its_range_is_what_a_loop_over_both_tables_finds() {
    let seed = setting("FIRSTS_SEED", 1);
    let mut seen = [
        (" IN (", 0),
        (" OR ", 0),
        ("Inner", 0),
        ("Left", 0),
        ("Semi", 0),
        ("Anti", 0),
        ("first=1", 0),
        ("filter=", 0),
    ];
    for n in 0..setting("FIRSTS", 5) * 3 {
        let mut dice = Dice::new(seed, n);
        let db = tables(&mut dice);
        let (all, t) =
            (rows(&db, "SELECT id, k, s, lo, hi FROM r"), rows(&db, "SELECT id, k, s, pos, v FROM t"));
        for _ in 0..22 {
            let mut terms = vec![*dice.pick(&MORE.each_ref())];
            let has_range = dice.chance(80);
            if has_range {
                terms.push(*dice.pick(&RANGES.each_ref()));
            }
            if !has_range || dice.chance(75) {
                terms.push(*dice.pick(&EQUAL.each_ref()));
            }
            dice.shuffle(&mut terms);
            let on: Vec<&str> = terms.iter().map(|(sql, _)| *sql).collect();
            let on = on.join(" AND ");
            let form = if dice.chance(75) { dice.below(7) } else { 7 + dice.below(5) };
            // The first is planned for one run, the second makes a plan that is kept, the third takes it.
            for (run, below) in [30, 50, 1 + dice.below(50) as i64].into_iter().enumerate() {
                let r: Vec<&Row> = all.iter().filter(|r| r.id < below).collect();
                let found = |r: &Row| -> Vec<&Row> {
                    let passes = |t: &&Row| terms.iter().all(|(_, passes)| passes(r, t) == Some(true));
                    t.iter().filter(passes).collect()
                };
                let by_pos = |t: &&Row| (t.lo, t.id);
                let (sql, expected): (String, Vec<String>) = match form {
                    0 => (
                        format!("SELECT r.id, t.id FROM r JOIN t ON {on} WHERE r.id < {below}"),
                        r.iter().flat_map(|r| found(r).into_iter().map(|t| format!("{} {}", r.id, t.id))).collect(),
                    ),
                    1 => (
                        format!("SELECT r.id, t.id FROM r LEFT JOIN t ON {on} WHERE r.id < {below}"),
                        r.iter()
                            .flat_map(|r| {
                                let ids = found(r).into_iter().map(|t| format!("{} {}", r.id, t.id));
                                let ids: Vec<String> = ids.collect();
                                if ids.is_empty() { vec![format!("{} NULL", r.id)] } else { ids }
                            })
                            .collect(),
                    ),
                    2 | 3 => {
                        let not = if form == 2 { "" } else { "NOT " };
                        (
                            format!("SELECT r.id FROM r WHERE r.id < {below} AND {not}EXISTS (SELECT 1 FROM t WHERE {on})"),
                            r.iter()
                                .filter(|r| found(r).is_empty() == (form == 3))
                                .map(|r| r.id.to_string())
                                .collect(),
                        )
                    }
                    4 => (
                        format!("SELECT r.id, (SELECT max(t.pos) FROM t WHERE {on}) FROM r WHERE r.id < {below}"),
                        r.iter()
                            .map(|r| format!("{} {}", r.id, text(found(r).into_iter().filter_map(|t| t.lo).max())))
                            .collect(),
                    ),
                    5 => (
                        format!("SELECT r.id, (SELECT min(t.pos) FROM t WHERE {on}) FROM r WHERE r.id < {below}"),
                        r.iter()
                            .map(|r| format!("{} {}", r.id, text(found(r).into_iter().filter_map(|t| t.lo).min())))
                            .collect(),
                    ),
                    6 => (
                        format!(
                            "SELECT r.id, (SELECT t.id FROM t WHERE {on} ORDER BY t.pos DESC, t.id DESC LIMIT 1)
                             FROM r WHERE r.id < {below}"
                        ),
                        r.iter()
                            .map(|r| {
                                let last = found(r).into_iter().max_by_key(by_pos);
                                format!("{} {}", r.id, text(last.map(|t| t.id)))
                            })
                            .collect(),
                    ),
                    7 => (
                        format!(
                            "SELECT r.id, x.id FROM r LEFT JOIN LATERAL (SELECT t.id FROM t WHERE {on}
                             ORDER BY t.pos, t.id DESC LIMIT 2) x ON true WHERE r.id < {below}"
                        ),
                        r.iter()
                            .flat_map(|r| {
                                let mut found = found(r);
                                found.sort_by_key(|t| (t.lo, std::cmp::Reverse(t.id)));
                                let ids = found.into_iter().take(2).map(|t| format!("{} {}", r.id, t.id));
                                let ids: Vec<String> = ids.collect();
                                if ids.is_empty() { vec![format!("{} NULL", r.id)] } else { ids }
                            })
                            .collect(),
                    ),
                    8 | 9 => {
                        let not = if form == 8 { "" } else { "NOT " };
                        (
                            format!(
                                "SELECT r.id, CASE WHEN {not}EXISTS (SELECT 1 FROM t WHERE {on}) THEN 1 ELSE 0 END
                                 FROM r WHERE r.id < {below}"
                            ),
                            r.iter()
                                .map(|r| format!("{} {}", r.id, i64::from(found(r).is_empty() == (form == 9))))
                                .collect(),
                        )
                    }
                    // The greatest of each group, which the terms have no part in.
                    10 => (
                        format!(
                            "SELECT r.id, t.id FROM r JOIN t ON t.k = r.k WHERE r.id < {below}
                             AND t.pos = (SELECT max(x.pos) FROM t x WHERE x.k = r.k AND x.v > 2)"
                        ),
                        r.iter()
                            .flat_map(|r| {
                                let of_group = || t.iter().filter(|t| t.k.is_some() && t.k == r.k);
                                let last = of_group().filter(|t| t.hi > Some(2)).filter_map(|t| t.lo).max();
                                let are_last = of_group().filter(move |t| last.is_some() && t.lo == last);
                                are_last.map(|t| format!("{} {}", r.id, t.id)).collect::<Vec<_>>()
                            })
                            .collect(),
                    ),
                    _ => (
                        format!(
                            "SELECT r.id FROM r WHERE r.id < {below} AND r.lo >=
                             (SELECT count(*) FROM t WHERE {on})"
                        ),
                        r.iter()
                            .filter(|r| r.lo.is_some_and(|lo| lo >= found(r).len() as i64))
                            .map(|r| r.id.to_string())
                            .collect(),
                    ),
                };
                let line =
                    |values: Vec<Value>| values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
                let asked = if run == 0 { planned_once(&sql) } else { sql.clone() };
                let given = db.query(&asked).unwrap_or_else(|e| panic!("{sql}\n{e}"));
                let mut given: Vec<String> = given
                    .map(|row| line(row.unwrap_or_else(|e| panic!("{sql}\n{e}")).values().unwrap()))
                    .collect();
                let mut expected = expected;
                given.sort();
                expected.sort();
                assert!(given == expected, "seed {seed}, {n}: {sql}\ngiven {given:?}\nnot   {expected:?}");
                let plan: Vec<String> = db
                    .query(&format!("EXPLAIN {sql}"))
                    .unwrap()
                    .map(|row| line(row.unwrap().values().unwrap()))
                    .filter(|line| line.contains("SeekJoinExec"))
                    .collect();
                for (what, times) in &mut seen {
                    *times += usize::from(plan.iter().any(|line| line.contains(*what)));
                }
            }
        }
    }
    assert!(seen.iter().all(|(_, times)| *times > 2), "{seen:?}");
}
