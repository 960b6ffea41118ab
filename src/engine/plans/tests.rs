//! Which queries get a cached plan, and that later runs give the same rows as the first.

mod runs;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{DependsOn, KEYS_BYTES, Keyed, PlanCacheEntry, Plans, QUERIES, Statements};
use crate::access::Guards;
use crate::df::table::Binding;
use crate::engine::{Database, clock};
use crate::value::Value;

#[test]
fn a_text_is_parsed_once() {
    let statements = Statements::default();
    let parse = || statements.parse("INSERT INTO t VALUES ($1)").unwrap();
    assert!(Arc::ptr_eq(&parse(), &parse()));
    assert!(statements.parse("INSERT INTO").is_err());
    assert_eq!(statements.0.read().len(), 1);
}

#[test]
fn types_of_parameters_are_told_apart() {
    let lifted = crate::sql::lift("SELECT a FROM t WHERE a = $1 AND b = $2 AND c = $3").unwrap();
    let key =
        |params: [Value; 3]| Keyed::new("", &lifted, &params, Guards::default(), clock::now).unwrap().key;
    let of_scale = |scale| Value::Decimal(1, scale);
    let one = key([of_scale(1), Value::Null, of_scale(10)]);
    assert_ne!(one, key([of_scale(10), of_scale(1), Value::Null]));
    assert_eq!(one, key([of_scale(1), Value::Null, of_scale(10)]));
}

#[test]
fn a_full_cache_keeps_half_of_its_plans() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id INT PRIMARY KEY)").unwrap();
    let (catalog, _) = db.view().unwrap();
    let query = |n: usize| {
        let lifted = crate::sql::lift(&format!("SELECT id AS c{n} FROM t")).unwrap();
        Keyed::new("", &lifted, &[], Guards::default(), clock::now).unwrap()
    };
    let plans = Plans::default();
    let put = |n| plans.put(&query(n), catalog.identity(), PlanCacheEntry::Each);
    let is_kept = |n: &usize| plans.find(&mut query(*n), catalog.identity()).is_some();
    (0..QUERIES).for_each(put);
    assert_eq!((0..QUERIES).filter(is_kept).count(), QUERIES);
    put(QUERIES);
    assert_eq!((0..=QUERIES).filter(is_kept).count(), QUERIES / 2 + 1);
    assert!(is_kept(&QUERIES));
}

#[test]
fn plans_of_long_texts_are_few() {
    let plans = Plans::default();
    let put = |n: usize| {
        let list = vec!["1"; 20_000].join(", ");
        let lifted = crate::sql::lift(&format!("SELECT a{n} FROM t WHERE b IN ({list})")).unwrap();
        let query = Keyed::new("", &lifted, &[], Guards::default(), clock::now).unwrap();
        plans.put(&query, 1, PlanCacheEntry::Each);
        assert!(plans.0.read().contains_key(&query.key));
    };
    for n in 0..40 {
        put(n);
        assert!(plans.0.read().keys().map(String::len).sum::<usize>() <= KEYS_BYTES);
    }
}

#[test]
fn a_scan_of_a_range_in_an_order_that_it_does_not_have_runs_again() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (a INT, id INT, b INT, v INT, PRIMARY KEY (a, id))").unwrap();
    db.execute("CREATE INDEX t_by_b ON t (b, v DESC) INCLUDE (id)").unwrap();
    db.execute("INSERT INTO t SELECT v % 7, v, v % 3, v FROM generate_series(1, 100) t(v)").unwrap();
    let queries = [
        "SELECT sum(v) FROM (SELECT v, b FROM t WHERE a = 5 ORDER BY b OFFSET 0)",
        "SELECT sum(v) FROM (SELECT v, id FROM t WHERE b = 2 ORDER BY id OFFSET 0)",
        "SELECT min(r) FROM (SELECT rowkey AS r, primary_rowkey AS p FROM t_by_b WHERE b = 2 ORDER BY p OFFSET 0)",
    ];
    for query in queries {
        let value = || db.query(query).unwrap().one().unwrap().value(0).unwrap();
        let first = value();
        (0..3).for_each(|_| assert_eq!(value(), first, "{query}"));
    }
}

/// One page comes in index order, the other must be sorted: only the plan of the latter depends on its
/// values.
#[test]
fn pages_that_are_read_in_different_ways_come_again() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT, s TEXT)").unwrap();
    db.execute("CREATE INDEX x ON t (a, s)").unwrap();
    db.execute("INSERT INTO t SELECT v, v % 50, 's' || v FROM generate_series(1, 2000) t(v)").unwrap();
    let page = |limit: i64, offset: i64| {
        let sql = format!("SELECT id FROM t WHERE a = 3 ORDER BY id LIMIT {limit} OFFSET {offset}");
        let ids: Vec<i64> = db.query(&sql).unwrap().map(|row| row.unwrap().get(0).unwrap()).collect();
        let from = 50 * offset + 3;
        assert_eq!(ids, (0..limit.min(40 - offset)).map(|n| from + 50 * n).collect::<Vec<_>>(), "{sql}");
    };
    let pages = [(10, 0), (10, 10), (40, 0), (1, 0), (1000, 0), (1, 39)];
    for first in pages {
        for second in pages {
            for (limit, offset) in [first, second, first, first, first, second, second] {
                page(limit, offset);
            }
        }
    }
}

/// Pages of a join: of nested lookups, of operators, of groups, and of a union.
#[test]
fn pages_of_about_the_same_length_share_a_plan() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT, s TEXT)").unwrap();
    db.execute("CREATE TABLE u (id INT PRIMARY KEY, name TEXT)").unwrap();
    db.execute("INSERT INTO t SELECT v, v % 50, 's' || v FROM generate_series(1, 3000) t(v)").unwrap();
    db.execute("INSERT INTO u SELECT v, 'u' || v FROM generate_series(0, 49) t(v)").unwrap();
    let queries = [
        "SELECT t.id, u.name FROM t JOIN u ON u.id = t.a WHERE t.id < 40 ORDER BY t.id",
        "SELECT t.id, upper(u.name) FROM t JOIN u ON u.id = t.a AND u.name <> 'u3' ORDER BY t.id",
        "SELECT a, count(*), max(s) FROM t GROUP BY a ORDER BY a DESC",
        "SELECT id FROM t WHERE id < 9 UNION ALL SELECT id FROM t WHERE id BETWEEN 2000 AND 2020 ORDER BY id",
        "SELECT id, a * 2 FROM t WHERE id > 5 ORDER BY a, id DESC",
        "SELECT x.id, y.id FROM t x JOIN t y ON y.a = x.a WHERE x.id <= 20 ORDER BY x.id, y.id",
    ];
    for query in queries {
        let rows = |sql: &str| -> Vec<Vec<Value>> {
            let rows = db.query(sql).unwrap();
            let columns = rows.columns().len();
            rows.map(|row| (0..columns).map(|at| row.as_ref().unwrap().value(at).unwrap()).collect())
                .collect()
        };
        let all = rows(query);
        let end = all.len();
        let offsets =
            [0, 1, 0, 2, 3, 5, 7, 6, 9, 11, 30, 19, 31, 33, 40, 55, 60, 70, 1000, 1010, 990, 1030, 5000];
        for offset in offsets {
            let page = rows(&format!("{query} LIMIT 10 OFFSET {offset}"));
            assert_eq!(page, all[offset.min(end)..(offset + 10).min(end)], "{query} OFFSET {offset}");
            let rest = rows(&format!("{query} OFFSET {offset}"));
            assert_eq!(rest, all[offset.min(end)..], "{query} OFFSET {offset}");
        }
        let limits = [0, 1, 2, 3, 4, 4, 9, 10, 12, 20, 21, 22];
        let mut paged = db.prepare(&format!("{query} LIMIT $1 OFFSET $2")).unwrap();
        for (limit, offset) in limits.iter().flat_map(|limit| [1, 5, 4].map(|offset| (*limit, offset))) {
            let count = paged.query(&[Value::Int(limit as i64), Value::Int(offset as i64)]).unwrap().count();
            assert_eq!(count, limit.min(end - offset), "{query} LIMIT {limit} OFFSET {offset}");
        }
    }
    // For each query: its rows, its rest, and pages that end by 16, 32, 64 and 128, or behind 1024.
    let (catalog, _) = db.view().unwrap();
    let kept = db.plans().kept(catalog.version()).len();
    assert!(kept <= 3 * queries.len(), "{kept}");
    assert!(known(&db).0 <= 15 * queries.len(), "{:?}", known(&db));
    assert_eq!(known(&db).1, 0);
}

#[test]
fn a_row_of_no_table_is_planned_once() {
    let db = Database::in_memory().unwrap();
    let ask = |sql: &str, params: &[Value], columns: usize| -> Vec<Value> {
        let row = db.prepare(sql).unwrap().query(params).unwrap().one().unwrap();
        (0..columns).map(|at| row.value(at).unwrap()).collect()
    };
    for n in 0..4 {
        assert_eq!(ask("SELECT 1", &[], 1), [Value::Int(1)]);
        let (text, params) = (Value::Text(format!("x{n}")), [Value::Int(n), Value::Text(n.to_string())]);
        assert_eq!(ask("SELECT $1 + 1 AS next, 'x' || $2", &params, 2), [Value::Int(n + 1), text]);
    }
    assert_ne!(ask("SELECT random()", &[], 1), ask("SELECT random()", &[], 1));
    assert_ne!(ask("SELECT random()", &[], 1), ask("SELECT random()", &[], 1));
    let (catalog, _) = db.view().unwrap();
    assert_eq!(db.plans().kept(catalog.version()).len(), 3);
}

#[test]
fn parameters_above_the_scans_do_not_keep_a_plan_from_being_kept() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, a INT, d DOUBLE, note TEXT)").unwrap();
    db.execute("INSERT INTO t SELECT v, v % 7, v / 2.0, 'n' || v FROM generate_series(1, 100) t(v)").unwrap();
    let queries = [
        "SELECT a, count(*) FROM t GROUP BY a HAVING count(*) > 14",
        "SELECT a, sum(d) FROM t WHERE k > 3 GROUP BY a HAVING max(note) <> 'n9' AND avg(d) < 30",
        "SELECT k, CASE WHEN a = 3 THEN 'three' END FROM t",
        "SELECT sum(a) > 5 FROM t",
        "SELECT k FROM t WHERE a + d > 30",
        "SELECT k FROM t WHERE (a, k) > (3, 50) ORDER BY a, k LIMIT 3",
    ];
    for query in queries {
        for _ in 0..3 {
            let rows = db.query(query).unwrap().map(Result::unwrap).count();
            assert!(rows > 0, "{query}");
        }
    }
    let (catalog, _) = db.view().unwrap();
    assert_eq!(db.plans().kept(catalog.version()).len(), queries.len());
}

#[test]
fn texts_that_come_once_do_not_cost_others_their_plans() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (k INT PRIMARY KEY)").unwrap();
    for _ in 0..2 {
        db.query("SELECT k FROM t WHERE k = 1").unwrap();
    }
    for n in 0..2 * super::QUERIES {
        db.query(&format!("SELECT k FROM t ORDER BY k LIMIT {n}")).unwrap();
    }
    let (catalog, _) = db.view().unwrap();
    assert_eq!(db.plans().kept(catalog.version()).len(), 1);
}

/// The number of queries that came again and have a cached plan, and of those planned each time.
fn known(db: &Database) -> (usize, usize) {
    let plans = db.plans().0.read();
    let came_again = || plans.values().filter(|known| known.came_again.load(Ordering::Relaxed));
    let count = |is_it: fn(&PlanCacheEntry) -> bool| came_again().filter(|known| is_it(&known.entry)).count();
    (
        count(|known| matches!(known, PlanCacheEntry::Plan(_) | PlanCacheEntry::Map(_))),
        count(|known| matches!(known, PlanCacheEntry::Each)),
    )
}

#[test]
fn parameters_that_shape_the_plan_are_in_the_plan() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, n INT, note TEXT)").unwrap();
    db.execute(
        "INSERT INTO t SELECT v, v % 5, CASE WHEN v > 2 THEN 'n' || v END FROM generate_series(1, 20) t(v)",
    )
    .unwrap();
    let (int, text) = (Value::Int, |text: &str| Value::Text(text.to_owned()));
    // Runs with other values of the first parameter share the plan for the values of the others.
    let statements: [(&str, Vec<Value>, usize); 6] = [
        ("SELECT k FROM t WHERE k > $1 ORDER BY k LIMIT $2 OFFSET $3", vec![int(2), int(1)], 1),
        ("SELECT count(*) FROM t WHERE k > $1 GROUP BY n + $2", vec![int(1)], 1),
        ("SELECT k FROM t WHERE k > $1 ORDER BY abs(k - $2), k", vec![int(7)], 1),
        ("SELECT coalesce(note, $2) FROM t WHERE k > $1", vec![text("none")], 1),
        ("SELECT a.k FROM t a LEFT JOIN t b ON b.k = a.k + $2 WHERE a.k > $1", vec![int(3)], 1),
        (
            "WITH RECURSIVE r(k) AS (SELECT CAST($1 AS INT) UNION SELECT t.k FROM r JOIN t ON t.k = r.k + $2) SELECT k FROM r",
            vec![int(3)],
            1,
        ),
    ];
    for (sql, settled, plans) in statements {
        let (before, _) = known(&db);
        let mut statement = db.prepare(sql).unwrap();
        for first in [3, 4, 5, 6, 7] {
            let mut params = vec![int(first)];
            params.extend(settled.iter().cloned());
            let mut rows = || -> Vec<Value> {
                statement.query(&params).unwrap().map(|row| row.unwrap().value(0).unwrap()).collect()
            };
            let mut plain = sql.to_owned();
            for (at, value) in params.iter().enumerate() {
                let literal = crate::value::Literal(value.as_ref()).to_string();
                plain = plain.replace(&format!("${}", at + 1), &literal);
            }
            let expected: Vec<Value> =
                db.query(&plain).unwrap().map(|row| row.unwrap().value(0).unwrap()).collect();
            let sorted = |mut values: Vec<Value>| {
                if !sql.contains("ORDER") {
                    values.sort();
                }
                values
            };
            assert_eq!(sorted(rows()), sorted(expected), "{sql} {params:?}");
        }
        let (after, each) = known(&db);
        assert!(after >= before + plans && each == 0, "{sql}: {before} {after} {each}");
    }
}

#[test]
fn one_plan_is_enough_for_all_values() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, n INT, total DOUBLE, price DECIMAL(10,2), s TEXT, at TIMESTAMP, d DATE)").unwrap();
    db.execute(
        "INSERT INTO t SELECT v, v % 5, v * 1.5, v * 1.25, CASE WHEN v > 2 THEN 'n' || v END,
         CAST(current_date AS TIMESTAMP) - v * INTERVAL '1 day' + INTERVAL '5 days 1 hour', current_date + (3 - v) FROM generate_series(1, 20) t(v)",
    )
    .unwrap();
    let statements = [
        "SELECT k FROM t WHERE k > $1 AND at < current_date",
        "SELECT k FROM t WHERE k > $1 AND d < current_date",
        "SELECT k FROM t WHERE k > $1 AND at < current_timestamp",
        "SELECT k FROM t WHERE k > $1 AND d >= current_date - 7",
        "SELECT k FROM t WHERE k > $1 AND at >= now() - INTERVAL '7' DAY",
        "SELECT k FROM t WHERE k > $1 AND at >= current_date - INTERVAL '7 days'",
        "SELECT k FROM t WHERE $1 = 0 OR total > $1",
        "SELECT k FROM t WHERE $1 = 0 OR n > $1",
        "SELECT k FROM t WHERE total > $1 * 1.5",
        "SELECT k FROM t WHERE price > $1 * 1.5",
        "SELECT k FROM t WHERE k > $1 * 2",
        "SELECT k FROM t WHERE s LIKE '%' || $1 || '%'",
        "SELECT sum(CASE WHEN n > $1 THEN 1 ELSE 0 END) FROM t",
        "SELECT n, sum(total + $1), count(*) FROM t GROUP BY n",
        "SELECT coalesce(s, CAST($1 AS TEXT)) FROM t",
        "SELECT coalesce(s, $1 || '') FROM t",
        "SELECT k FROM t WHERE starts_with(s, 'n' || $1)",
    ];
    let (_, snapshot) = db.view().unwrap();
    let mut others = Vec::new();
    for sql in statements {
        let lifted = crate::sql::lift(sql).unwrap();
        let kinds: [fn(i64) -> Value; 3] =
            [Value::Int, |n| Value::Double(n as f64 + 0.5), |n| Value::Decimal((n * 10 + 5).into(), 1)];
        let text: &[fn(i64) -> Value] = &[|n| Value::Text(n.to_string())];
        // An integer compared with a number that has a fraction is compared as another type.
        let kinds = match ["||", "k > $1 AND", "n > $1"].map(|what| sql.contains(what)) {
            [true, ..] => text,
            [_, false, false] => &kinds[..],
            _ => &kinds[..1],
        };
        for (kind, value) in kinds.iter().enumerate() {
            for n in [0, 3, 4, 0, 3, 4, 5, 6, 7] {
                let rows = |rows: crate::engine::Rows| -> Vec<Value> {
                    let mut values: Vec<Value> = rows.map(|row| row.unwrap().value(0).unwrap()).collect();
                    values.sort();
                    values
                };
                let literal = crate::value::Literal(value(n).as_ref()).to_string();
                let exact = sql.replace("$1", &format!("({literal}{})", if kind == 1 { "e0" } else { "" }));
                let expected = rows(db.query(&exact).unwrap());
                let found = rows(db.prepare(sql).unwrap().query(&[value(n)]).unwrap());
                assert_eq!(found, expected, "{sql} {literal}");
            }
            // The cached plan must also hold for other values.
            let holds = |n| {
                let mut query = Keyed::new("", &lifted, &[value(n)], Guards::default(), clock::now).unwrap();
                let (catalog, _) = db.view().unwrap();
                let Some(PlanCacheEntry::Plan(kept)) = db.plans().find(&mut query, catalog.version()) else {
                    return false;
                };
                let (snapshot, params) = (Arc::clone(&snapshot), Arc::clone(&query.params));
                let binding =
                    Binding { snapshot, params, guards: Guards::default(), as_of_us: 0, may_sort: true };
                query.depends_on == DependsOn::default() && kept.plan.bind(&binding).unwrap().is_some()
            };
            let held = [3, 8, 9].map(holds);
            if held != [true; 3] {
                others.push((sql, kind, held));
            }
        }
    }
    assert_eq!(others, []);
}

#[test]
fn pages_of_a_scan_have_one_plan() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, n INT, note TEXT)").unwrap();
    db.execute("INSERT INTO t SELECT v, v % 5, 'n' || v FROM generate_series(1, 50) t(v)").unwrap();
    let int = Value::Int;
    let some = |from: i64, rows: i64, most: i64| (from + 1..=(from + rows).min(most)).collect::<Vec<_>>();
    let numbers =
        |rows: crate::engine::Rows| -> Vec<i64> { rows.map(|row| row.unwrap().get(0).unwrap()).collect() };
    // The number of rows without LIMIT, and whether one plan suffices.
    let statements = [
        ("SELECT k FROM t ORDER BY k LIMIT $1 OFFSET $2", 50, true),
        ("SELECT k, note FROM t WHERE k > 0 LIMIT $1 OFFSET $2", 50, true),
        ("SELECT k FROM (SELECT k FROM t ORDER BY k LIMIT 9) x LIMIT $1 OFFSET $2", 9, false),
        ("SELECT k FROM t ORDER BY k + 0 LIMIT $1 OFFSET $2", 50, false),
        ("SELECT k FROM t WHERE k < 50 + $1 ORDER BY k LIMIT $1 OFFSET $2", 50, true),
    ];
    for (sql, most, is_one) in statements {
        let (before, _) = known(&db);
        let mut statement = db.prepare(sql).unwrap();
        for n in [1, 2, 3, 1, 2, 3, 1, 2, 3, 4, 0] {
            let found = numbers(statement.query(&[int(n), int(2 * n)]).unwrap());
            assert_eq!(found, some(2 * n, n, most), "{sql}");
        }
        assert!(statement.query(&[int(-1), int(2)]).is_err(), "{sql}");
        assert!(statement.query(&[int(1), int(-2)]).is_err(), "{sql}");
        let (after, _) = known(&db);
        assert_eq!(after == before + 1, is_one, "{sql}");
    }
    // LIMIT and OFFSET as literals.
    let (before, _) = known(&db);
    for offset in [10, 20, 30, 45, 0, 60] {
        let found =
            numbers(db.query(&format!("SELECT k FROM t ORDER BY k LIMIT 10 OFFSET {offset}")).unwrap());
        assert_eq!(found, some(offset, 10, 50));
    }
    assert_eq!(known(&db).0, before + 1);
}

#[test]
fn what_statements_compute_is_planned_once() {
    let db = Database::in_memory().unwrap();
    db.execute_batch(
        "CREATE TABLE t (k INT PRIMARY KEY, n INT DEFAULT (1 + 1), at TIMESTAMP DEFAULT now(), note TEXT, CHECK (n > 0));
         INSERT INTO t (k, n) SELECT v, v FROM generate_series(1, 20) t(v)",
    )
    .unwrap();
    let int = Value::Int;
    let statements: [(&str, &[Value]); 9] = [
        (
            "INSERT INTO t (k, note) VALUES ($1, lower($2)) ON CONFLICT DO NOTHING",
            &[int(50), Value::Text("X".into())],
        ),
        (
            "INSERT INTO t (k, n) VALUES ($1, 1) ON CONFLICT (k) DO UPDATE SET n = n + excluded.n RETURNING n",
            &[int(7)],
        ),
        ("UPDATE t SET n = $2, at = now(), note = 'x' WHERE k = $1", &[int(3), int(4)]),
        ("UPDATE t SET n = n + $2 WHERE k = $1 RETURNING *", &[int(3), int(4)]),
        ("DELETE FROM t WHERE k = $1 RETURNING note", &[int(9)]),
        ("UPSERT INTO t (k, n) SELECT k + 100, n FROM t WHERE k = $1", &[int(4)]),
        ("SELECT k FROM t WHERE at > now() - INTERVAL '1 hour' AND k = 5", &[]),
        ("SELECT k FROM t WHERE k BETWEEN $1 AND $1 + 3", &[int(5)]),
        (
            "SELECT k FROM t WHERE at > $1 - INTERVAL '1 day' AND at < current_date + 1",
            &[Value::Timestamp(0)],
        ),
    ];
    for (sql, params) in statements {
        let (kept_before, _) = known(&db);
        let mut statement = db.prepare(sql).unwrap();
        for _ in 0..3 {
            statement.execute(params).unwrap();
        }
        let (kept, each) = known(&db);
        assert!(kept > kept_before && each == 0, "{sql}");
    }
}

#[test]
fn other_rows_of_values_share_a_plan() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, n INT, note TEXT)").unwrap();
    db.execute("INSERT INTO t SELECT v, v % 7, 'n' || v FROM generate_series(1, 5000) t(v)").unwrap();
    let notes = |a: i64, b: i64| -> Vec<String> {
        let sql = format!(
            "WITH w (k, s) AS (VALUES ({a}, 'a'), ({b}, 'b')) SELECT note FROM w JOIN t ON t.k = w.k ORDER BY t.k"
        );
        let rows = db.query(&sql).unwrap();
        rows.map(|row| row.unwrap().get(0).unwrap()).collect()
    };
    assert_eq!(notes(3, 4), ["n3", "n4"]);
    assert_eq!(notes(4999, 17), ["n17", "n4999"]);
    assert_eq!(notes(i64::MAX, 5000), ["n5000"]);
    assert_eq!(known(&db), (1, 0));
    for (note, rows) in [("x", "(1, 'x'), (2, 'x')"), ("it''s", "(10, 'it''s'), (7000, 'it''s')")] {
        db.execute(&format!("UPDATE t SET note = v.s FROM (VALUES {rows}) AS v (k, s) WHERE v.k = t.k"))
            .unwrap();
        let rows = db.query(&format!("SELECT count(*) FROM t WHERE note = '{note}'")).unwrap();
        let changed: i64 = rows.one().unwrap().get(0).unwrap();
        assert_eq!(changed, if note == "x" { 2 } else { 1 });
    }
    // Those of the UPDATE and the count as well.
    assert_eq!(known(&db), (3, 0));
}

#[test]
fn literals_in_the_names_of_outputs_do_not_cost_a_plan() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, n INT, note TEXT)").unwrap();
    db.execute("INSERT INTO t SELECT v, v % 7, 'n' || v FROM generate_series(1, 5000) t(v)").unwrap();
    for (a, b, exists) in [(7, "n7", true), (8, "n7", false), (9, "it''s", false)] {
        let text = format!("EXISTS (SELECT 1 FROM t WHERE k = {a} AND note = '{b}')");
        let rows = || db.query(&format!("SELECT {text}, n = {a} AND k < {a}, n FROM t WHERE k = 3")).unwrap();
        let row = rows().one().unwrap();
        assert_eq!((row.get::<bool>(0).unwrap(), row.get::<bool>(&*text).unwrap()), (exists, exists));
        let names = [text.clone(), format!("n = {a} AND k < {a}"), "n".to_owned()];
        assert_eq!(row.columns().collect::<Vec<_>>(), names);
        assert_eq!(rows().columns().iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), names);
        let batch = rows().batches().next().unwrap().unwrap();
        assert_eq!(batch.schema().fields().iter().map(|f| f.name().as_str()).collect::<Vec<_>>(), names);
        assert_eq!(batch.num_rows(), 1);
    }
    assert_eq!(known(&db), (1, 0));
}

#[test]
fn changes_with_other_literals_are_parsed_once() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT, s TEXT, CHECK (a < 1000))").unwrap();
    db.execute("INSERT INTO t SELECT value, value, 's' FROM generate_series(1, 9)").unwrap();
    let texts = || db.shared.statements.0.read().len();
    let before = texts();
    for n in 1..=5 {
        assert_eq!(db.execute(&format!("UPDATE t SET a = a + {n}, s = 'x{n}' WHERE id = {n}")).unwrap(), 1);
        assert_eq!(
            db.execute(&format!("DELETE FROM t WHERE id = {} AND s = 's'", n + 5)).unwrap(),
            u64::from(n < 5)
        );
    }
    assert_eq!(texts(), before + 2);
    for n in 1..=5 {
        let kept = "ON CONFLICT (id) DO UPDATE SET a = t.a + excluded.a RETURNING a";
        let sql = format!("INSERT INTO t VALUES ({n}, {}, 's'), ({}, NULL, 'u') {kept}", 10 * n, n + 20);
        let a = db.query(&sql).unwrap().map(|row| row.unwrap().get(0).unwrap());
        assert_eq!(a.collect::<Vec<Option<i64>>>(), [Some(2 * n + 10 * n), None]);
        assert_eq!(db.execute("DELETE FROM t WHERE id = (SELECT max(id) FROM t)").unwrap(), 1);
        assert_eq!(db.execute(&format!("UPDATE t SET a = a - {} WHERE id = {n}", 10 * n)).unwrap(), 1);
    }
    assert_eq!(texts(), before + 5);
    let rows = db.query("SELECT a, s FROM t ORDER BY id").unwrap();
    let rows: Vec<(i64, String)> =
        rows.map(|row| row.unwrap()).map(|row| (row.get(0).unwrap(), row.get(1).unwrap())).collect();
    assert_eq!(rows, [1, 2, 3, 4, 5].map(|n| (2 * n, format!("x{n}"))));
    // What is wrong with one is told of its own text.
    for (sql, at) in [
        ("UPDATE t SET a = 'many', s = 'y' WHERE id = 1", "'many'"),
        ("UPDATE t SET a = 7 / 0 WHERE id = 1", "0"),
        ("UPDATE t SET b = 7 WHERE id = 1", "b"),
        ("DELETE FROM t WHERE id = 'seven'", "'seven'"),
        ("DELETE FROM t WHERE id == 7 7", "7"),
        ("INSERT INTO t VALUES (70, 1, 's'), (71, 'many', 's')", "'many'"),
    ] {
        let error = db.execute(sql).unwrap_err();
        let span = error.span().map(|span| &sql[span.column as usize - 1..][..span.len as usize]);
        assert_eq!(span, Some(at), "{sql}: {error}");
        assert!(!error.to_string().contains('$'), "{error}");
    }
    let error = db.execute("UPDATE t SET a = a + 5000, s = 'z' WHERE id = 1").unwrap_err();
    assert_eq!(error.reason(), Some("a < 1000 is false for id=1, a=5002, s='z'"));
}
