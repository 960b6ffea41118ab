//! Pages of a sorted table, by OFFSET and by the last row of the page before, are the rows that a sort of all gives.

use rowkeydb::{Database, Value};

use crate::dice::{Dice, planned_once, setting};

/// What a page is sorted by; NULLs are smallest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    a: Option<String>,
    id: i64,
    g: i64,
    v: Option<i64>,
}

fn table(dice: &mut Dice) -> Database {
    let db = Database::in_memory().unwrap();
    let n = 600 + dice.below(5000);
    let equal = *dice.pick(&[&3, &40, &900]);
    let key = dice.pick(&["id", "reverse(lpad(id, 6))", "md5_bucket(id, 3), id"]);
    let (ty, a) = *dice.pick(&[
        &("INT", "x / {equal}"),
        &("TEXT", "'t' || x / {equal}"),
        &("DATE", "DATE '2026-01-01' + CAST(x / {equal} AS INT)"),
        &("DECIMAL(9,2)", "x / {equal} / 4.0"),
        &("DOUBLE", "x / {equal} / 4.0"),
    ]);
    let a = a.replace("{equal}", &equal.to_string());
    let null = dice.below(9);
    for sql in [
        format!("CREATE TABLE t (id INT, g INT, a {ty}, v INT, note TEXT, PRIMARY KEY ({key}))"),
        format!(
            "INSERT INTO t SELECT x * 7919 % 10007, x % 3, CASE WHEN x % 11 < {null} - 5 THEN NULL ELSE {a} END,
             nullif(x % 5, 2), 'n' || x FROM generate_series(1, {n}) s(x)"
        ),
    ] {
        db.execute(&sql).unwrap_or_else(|e| panic!("{sql}\n{e}"));
    }
    for (at, parts) in ["a", "a DESC", "g, a", "g, a DESC"].into_iter().enumerate() {
        let rest = dice.pick(&["", " INCLUDE (v)", " INCLUDE (id, v)"]);
        if dice.chance(60) {
            db.execute(&format!("CREATE INDEX t_{at} ON t ({parts}){rest}")).unwrap();
        }
    }
    if dice.chance(50) {
        db.execute("ANALYZE").unwrap();
    }
    db
}

fn rows(db: &Database, sql: &str) -> Vec<Row> {
    let int = |value: &Value| match value {
        Value::Int(n) => Some(*n),
        _ => None,
    };
    let row = |values: Vec<Value>| Row {
        a: (values[0] != Value::Null).then(|| values[0].to_string()),
        id: int(&values[1]).expect("an id"),
        g: int(&values[2]).expect("a group"),
        v: int(&values[3]),
    };
    let found = db.query(sql).unwrap_or_else(|e| panic!("{sql}\n{e}"));
    found.map(|found| row(found.unwrap_or_else(|e| panic!("{sql}\n{e}")).values().unwrap())).collect()
}

#[test]
fn pages_are_the_rows_that_a_sort_of_all_gives() {
    let seed = setting("FIRSTS_SEED", 1);
    let mut passed_over = 0;
    for n in 0..setting("FIRSTS", 5) * 3 {
        let mut dice = Dice::new(seed, n);
        let db = table(&mut dice);
        // The order of its values as the table has them, which their texts may not have.
        let ordered = rows(&db, "SELECT a, id, g, v FROM t ORDER BY a, id OFFSET 0");
        for _ in 0..12 {
            let group = dice.chance(40).then(|| dice.below(3) as i64);
            let some = dice.chance(40);
            let (desc, by_desc) = (dice.chance(50), dice.chance(50));
            let of_group = group.map_or("true".to_owned(), |g| format!("g = {g}"));
            let only = if some { "v > 0" } else { "true" };
            let (first, then) = (if desc { "DESC" } else { "ASC" }, if by_desc { "DESC" } else { "ASC" });
            let wanted =
                |row: &&Row| group.is_none_or(|g| row.g == g) && (!some || row.v.is_some_and(|v| v > 0));
            let mut all: Vec<&Row> = ordered.iter().filter(wanted).collect();
            // Groups of equal values, in either order, each in either order.
            let mut groups: Vec<Vec<&Row>> = Vec::new();
            for row in all.drain(..) {
                match groups.last_mut().filter(|group| group[0].a == row.a) {
                    Some(group) => group.push(row),
                    None => groups.push(vec![row]),
                }
            }
            if desc {
                groups.reverse();
            }
            let mut all: Vec<&Row> = Vec::new();
            for mut group in groups {
                group.sort_by_key(|row| if by_desc { -row.id } else { row.id });
                all.extend(group);
            }
            let skip = *dice.pick(&[&0, &3, &499, &500, &777, &1500, &4000]);
            let limit = 1 + dice.below(40);
            let sql = format!(
                "SELECT a, id, g, v, note FROM t WHERE {of_group} AND {only} ORDER BY a {first}, id {then} LIMIT {limit} OFFSET {skip}"
            );
            let expected: Vec<Row> = all.iter().skip(skip).take(limit).map(|row| (*row).clone()).collect();
            // The second makes a plan that is kept, the third takes it.
            for sql in [&planned_once(&sql), &sql, &sql] {
                let given = rows(&db, sql);
                assert!(given == expected, "seed {seed}, {n}: {sql}\ngiven {given:?}\nnot   {expected:?}");
            }
            let plan = db.query(&format!("EXPLAIN {sql}")).unwrap();
            let is_page = |row: &rowkeydb::Row| row.values().unwrap()[0].to_string().contains("PageExec");
            passed_over += plan.map(Result::unwrap).filter(is_page).count();
        }
    }
    assert!(passed_over > 10, "{passed_over}");
}
