//! How kept plans run: row by row, without operators, or by several threads.

use std::sync::Arc;

use super::{Keyed, PlanCacheEntry};
use crate::access::{Guards, Method, Path};
use crate::df::cached::alone::Alone;
use crate::df::cached::plan::BoundPlan;
use crate::df::table::Binding;
use crate::engine::{Database, clock};
use crate::value::Value;

/// Binds the cached plan of a query with one number as its parameter.
fn run_again(db: &Database, sql: &str, param: i64, guards: Guards) -> Option<BoundPlan> {
    let lifted = crate::sql::lift(sql).unwrap();
    let mut query = Keyed::new("", &lifted, &[Value::Int(param)], guards, clock::now).unwrap();
    let (catalog, snapshot) = db.view().unwrap();
    let Some(PlanCacheEntry::Plan(kept)) = db.plans().find(&mut query, catalog.version()) else {
        return None;
    };
    let params = Arc::clone(&query.params);
    kept.plan.bind(&Binding { snapshot, params, guards, as_of_us: 0, may_sort: true }).unwrap()
}

#[test]
fn a_second_plan_is_kept_for_values_whose_first_rows_a_path_has_in_front() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, a INT, v INT)").unwrap();
    db.execute("CREATE INDEX t_by_a ON t (a)").unwrap();
    db.execute("INSERT INTO t SELECT v, v / 20, v FROM generate_series(1, 20000) t(v)").unwrap();
    let sql = "SELECT v FROM t WHERE a > $1 ORDER BY id LIMIT 5";
    let lifted = crate::sql::lift(sql).unwrap();
    let mut few = db.prepare(sql).unwrap();
    let mut rows = |a: i64| -> Vec<i64> {
        let rows = few.query(&[Value::Int(a)]).unwrap();
        rows.map(|row| row.unwrap().get(0).unwrap()).collect()
    };
    let kept = |a: i64, is_other: bool| {
        let first = Keyed::new("", &lifted, &[Value::Int(a)], Guards::default(), clock::now).unwrap();
        let (catalog, snapshot) = db.view().unwrap();
        let plan = |query: &mut Keyed| match db.plans().find(query, catalog.identity()) {
            Some(PlanCacheEntry::Plan(kept)) => Some(kept),
            _ => None,
        };
        let mut query = first.clone();
        let known = plan(&mut query)?;
        let kept = if is_other { plan(&mut first.other(&known)?)? } else { known };
        let params = Arc::clone(&first.params);
        let binding = Binding {
            snapshot: Arc::clone(&snapshot),
            params,
            guards: Guards::default(),
            as_of_us: 0,
            may_sort: is_other,
        };
        Some(kept.plan.bind(&binding).unwrap().is_some())
    };
    assert_eq!(rows(998), [19_980, 19_981, 19_982, 19_983, 19_984]);
    assert_eq!((kept(998, false), kept(0, false), kept(0, true)), (Some(true), Some(false), None));
    assert_eq!(rows(0), [20, 21, 22, 23, 24]);
    assert_eq!((kept(998, false), kept(0, false), kept(0, true)), (Some(true), Some(false), Some(true)));
    assert_eq!(rows(998), [19_980, 19_981, 19_982, 19_983, 19_984]);
    assert_eq!(rows(500), [10_020, 10_021, 10_022, 10_023, 10_024]);
}

/// The plan is made for ten rows of 20,000. Of others, more than one in thirteen take longer to fetch than to read all.
#[test]
fn rows_are_fetched_along_the_same_index_unless_the_whole_table_is_cheaper() {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::open(folder.path()).unwrap();
    db.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, a INT, v INT, note TEXT)").unwrap();
    db.execute("CREATE INDEX t_by_a ON t (a, v)").unwrap();
    let of_a = [(1, 10), (2, 400), (3, 1_000), (4, 5_000), (5, 13_590)];
    let mut id = 0;
    for (a, rows) in of_a {
        let insert =
            format!("INSERT INTO t SELECT {id} + v, {a}, v, 'n' FROM generate_series(1, {rows}) t(v)");
        id += db.execute(&insert).unwrap();
    }
    let sql = "SELECT * FROM t WHERE a = $1";
    let mut query = db.prepare(sql).unwrap();
    for (a, rows) in of_a {
        assert_eq!(query.query(&[Value::Int(a)]).unwrap().count() as u64, rows, "{a}");
    }
    for (a, rows) in of_a {
        let path = path_again(&db, sql, a).0;
        assert_eq!(matches!(path, Path::IndexFetch(_)), rows <= 1_000, "{a}");
    }
}

/// The way of a later run, where it is a scan.
fn path_again(db: &Database, sql: &str, param: i64) -> (Path, bool) {
    match run_again(db, sql, param, Guards::default()) {
        Some(BoundPlan::Alone(alone)) => match &*alone {
            Alone::Scan(scan) => {
                let access = &scan.spec().access;
                let skips = matches!(&access.method, Method::Scan { skip: Some(_), .. });
                (access.path, skips)
            }
            _ => panic!("{sql}: more than a scan"),
        },
        _ => panic!("{sql}: no plan at hand"),
    }
}

/// Ways that are cheaper for other values than that of the first run.
#[test]
fn what_may_be_cheaper_for_other_values_is_priced() {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::open(folder.path()).unwrap();
    db.execute_batch(
        "CREATE TABLE jumps (id BIGINT PRIMARY KEY, a INT, kind INT, at INT, note TEXT);
         CREATE INDEX jumps_by_a ON jumps (a, kind, at);
         INSERT INTO jumps SELECT v, v / 5000, v % 10, v % 5000, 'n' FROM generate_series(0, 99999) t(v);
         CREATE TABLE partial (id BIGINT PRIMARY KEY, a INT, n INT, note TEXT);
         CREATE INDEX partial_by_a ON partial (a);
         CREATE INDEX partial_of_2 ON partial (n) INCLUDE (note) WHERE a = 2;
         INSERT INTO partial SELECT v, CASE WHEN v < 10 THEN 1 WHEN v < 1000 THEN 2 ELSE v END, v, 'n'
         FROM generate_series(0, 29999) t(v);
         CREATE TABLE two (id BIGINT PRIMARY KEY, a INT, x INT, y INT, note TEXT);
         CREATE INDEX two_x ON two (a, x);
         CREATE INDEX two_y ON two (a, y);
         INSERT INTO two SELECT v, CASE WHEN v < 10 THEN 1 WHEN v < 1000 THEN 2 ELSE v END, v, v, repeat('n', 50)
         FROM generate_series(0, 29999) t(v)",
    )
    .unwrap();
    let rows = |sql: &str, param: i64| db.prepare(sql).unwrap().query(&[Value::Int(param)]).unwrap().count();

    let jumps = "SELECT * FROM jumps WHERE a = $1 AND at >= 4990";
    assert_eq!((rows(jumps, 3), rows(jumps, 4)), (10, 10));
    assert!(path_again(&db, jumps, 5).1, "ten jumps, not 5,000 fetches");

    let partial = "SELECT n, note FROM partial WHERE a = $1";
    assert_eq!((rows(partial, 1), rows(partial, 2)), (10, 990));
    assert!(matches!(path_again(&db, partial, 1).0, Path::IndexFetch(_)));
    assert!(matches!(path_again(&db, partial, 2).0, Path::IndexOnly(_)), "its own WHERE tells `a`");

    let two = "SELECT x, y FROM two WHERE a = $1";
    assert_eq!((rows(two, 1), rows(two, 2)), (10, 990));
    let explained =
        db.query(&format!("EXPLAIN {}", two.replace("$1", "2"))).unwrap().next().unwrap().unwrap();
    let explained: String = explained.get(0).unwrap();
    let run = run_again(&db, two, 2, Guards::default());
    let Some(BoundPlan::Alone(alone)) = run else { panic!("no plan at hand") };
    assert_eq!(alone.plan_text()().0.lines().next(), Some(&explained[..]));
}

#[test]
fn a_few_rows_are_joined_one_by_one() {
    let db = Database::in_memory().unwrap();
    db.execute_batch(
        "CREATE TABLE a (id INT PRIMARY KEY, k INT, note TEXT);
         CREATE TABLE b (a INT, n INT, v DOUBLE, PRIMARY KEY (a, n));
         CREATE INDEX a_by_k ON a (k);
         INSERT INTO a SELECT v, v % 50, 'n' || v FROM generate_series(1, 5000) t(v);
         INSERT INTO b SELECT v / 4, v % 4, v FROM generate_series(1, 20000) t(v);
         ANALYZE",
    )
    .unwrap();
    let queries = [
        "SELECT a.note, b.v FROM a JOIN b ON b.a = a.id WHERE a.id = $1",
        "SELECT a.note, b.v FROM a LEFT JOIN b ON b.a = a.id WHERE a.id = $1 ORDER BY b.v DESC LIMIT 2",
        "SELECT b.n, a.note FROM b JOIN a ON a.id = b.a WHERE b.a = $1",
        "SELECT x.id, y.id FROM b JOIN a x ON x.id = b.n JOIN a y ON y.id = x.k WHERE b.a = $1",
        "SELECT note FROM a WHERE id = $1 AND EXISTS (SELECT 1 FROM b WHERE b.a = a.id AND b.v > 3)",
        "SELECT note FROM a WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM b WHERE b.a = a.id)",
        "SELECT a.id, (SELECT count(*) FROM b WHERE b.a = a.id) FROM a WHERE a.id = $1",
        "SELECT a.id, (SELECT max(n) FROM b WHERE b.a = a.id), (SELECT min(n) FROM b WHERE b.a = a.k) FROM a WHERE id = $1",
        "SELECT a.id, EXISTS (SELECT 1 FROM b WHERE b.a = a.id AND b.v > 9) FROM a WHERE a.id BETWEEN $1 AND $1 + 9",
        "SELECT a.id, NOT EXISTS (SELECT 1 FROM b WHERE b.a = a.id AND b.v > 9) AS x FROM a WHERE a.id BETWEEN $1 AND $1 + 9",
        "SELECT a.id, (SELECT v FROM b WHERE b.a = a.id ORDER BY n DESC LIMIT 1) FROM a WHERE a.id BETWEEN $1 AND $1 + 9",
        "SELECT a.id, x.n, x.v FROM a CROSS JOIN LATERAL (SELECT n, v FROM b WHERE b.a = a.id ORDER BY n DESC LIMIT 2) x WHERE a.id BETWEEN $1 AND $1 + 5",
        "SELECT b.a, b.v FROM a JOIN b ON b.a = a.id WHERE a.k = $1 AND b.n = (SELECT max(n) FROM b x WHERE x.a = a.id)",
        "SELECT a.id, x.v FROM a LEFT JOIN LATERAL (SELECT v FROM b WHERE b.a = a.k ORDER BY n LIMIT 3) x ON true WHERE a.id = $1",
        "SELECT v FROM b WHERE a = $1 ORDER BY v DESC LIMIT 3",
        // Ranges and other conditions on the rows found, EXISTS of a join, groups and windows above.
        "SELECT a.id, (SELECT v FROM b WHERE b.a = a.id AND b.n <= a.k ORDER BY n DESC LIMIT 1) FROM a WHERE a.id BETWEEN $1 AND $1 + 9",
        "SELECT a.id, b.n FROM a LEFT JOIN b ON b.a = a.id AND b.n > a.k - 10 AND b.n < a.k + 10 WHERE a.id BETWEEN $1 AND $1 + 9",
        "SELECT a.id FROM a WHERE a.id BETWEEN $1 AND $1 + 9 AND NOT EXISTS (SELECT 1 FROM b WHERE b.a = a.id AND b.n >= a.k)",
        "SELECT a.id, b.n FROM a JOIN b ON b.a = a.id WHERE a.id = $1 AND b.v * 2 <> a.k + b.n + $1",
        "SELECT a.id FROM a WHERE a.id BETWEEN $1 AND $1 + 9 AND EXISTS (SELECT 1 FROM b JOIN a c ON c.id = b.n WHERE b.a = a.id AND c.k < 3)",
        "SELECT a.k, count(*), sum(b.v) FROM a JOIN b ON b.a = a.id WHERE a.id BETWEEN $1 AND $1 + 9 GROUP BY a.k HAVING count(*) > 1 ORDER BY a.k",
        "SELECT b.n, b.v, sum(b.v) OVER (PARTITION BY b.a ORDER BY b.n) FROM a JOIN b ON b.a = a.id WHERE a.id BETWEEN $1 AND $1 + 9",
        // Top rows, each with a subquery.
        "SELECT id, (SELECT count(*) FROM b WHERE b.a = a.id) FROM a WHERE k < 3 + $1 ORDER BY k DESC LIMIT 20",
        "SELECT id, (SELECT sum(v) FROM b WHERE b.a = a.id) FROM a WHERE id > $1 ORDER BY id LIMIT 20 OFFSET 5",
        "SELECT id, (SELECT count(*) FROM b WHERE b.a = a.id) AS c FROM a WHERE id BETWEEN $1 AND $1 + 9 ORDER BY c DESC, id LIMIT 3",
        "SELECT x.id, y.note, (SELECT count(*) FROM b WHERE b.a = x.id), (SELECT max(n) FROM b WHERE b.a = x.k) FROM a x JOIN a y ON y.id = x.k WHERE x.id > $1 ORDER BY x.id DESC LIMIT 20",
        "SELECT x.id, y.note, z.note FROM a x JOIN a y ON y.id = x.k LEFT JOIN a z ON z.id = y.k WHERE x.id > $1 ORDER BY x.id DESC LIMIT 20",
        "SELECT x.id, y.note FROM a x JOIN a y ON y.id = x.k WHERE x.id > $1 ORDER BY x.id LIMIT 20 OFFSET 10",
        "SELECT x.id, b.v FROM (SELECT id FROM a WHERE id BETWEEN $1 AND $1 + 20 ORDER BY note DESC LIMIT 4) x JOIN b ON b.a = x.id",
        "SELECT x.id, b.v FROM (SELECT id FROM a WHERE id > $1 ORDER BY id LIMIT 4) x LEFT JOIN b ON b.a = x.id ORDER BY b.v LIMIT 6 OFFSET 2",
    ];
    let runs_one_by_one = |sql: &str, first: i64, guards: Guards| {
        let run = run_again(&db, sql, first, guards)?;
        Some(matches!(run, BoundPlan::Alone(alone) if matches!(*alone, Alone::Nested(_))))
    };
    for sql in queries {
        let mut statement = db.prepare(sql).unwrap();
        (3..6).for_each(|id| statement.query(&[Value::Int(id)]).unwrap().for_each(|row| drop(row.unwrap())));
        assert_eq!(runs_one_by_one(sql, 7, Guards::default()), Some(true), "{sql}");
        let guards = Guards { gets: Some(1000), ..Guards::default() };
        let limited = runs_one_by_one(sql, 7, guards);
        assert_ne!(limited, Some(true), "{sql}");
        // Under limits on reads, pages do not share plans.
        let shares_pages = sql.contains("OFFSET") && sql.matches("LIMIT").count() == 1;
        assert!(limited.is_none() || !shares_pages, "{sql}");
    }
    // Each row has a hundred partners: for few rows they are counted one by one, for many in one pass.
    let partners = "SELECT x.id, (SELECT count(*) FROM a y WHERE y.k = x.k) FROM a x WHERE x.id <= $1";
    let mut statement = db.prepare(partners).unwrap();
    (3..6).for_each(|id| assert_eq!(statement.query(&[Value::Int(id)]).unwrap().count(), id as usize));
    assert_eq!(runs_one_by_one(partners, 7, Guards::default()), Some(true));
    assert_eq!(runs_one_by_one(partners, 63, Guards::default()), Some(true));
    // The first long run has no plan for threads.
    (0..2).for_each(|_| assert_eq!(statement.query(&[Value::Int(1500)]).unwrap().count(), 1500));
    assert_eq!(runs_one_by_one(partners, 1500, Guards::default()), Some(false));
    // No key leads to the partners.
    let whole = "SELECT x.id, (SELECT count(*) FROM b WHERE b.n = x.k) FROM a x WHERE x.id = $1";
    let mut statement = db.prepare(whole).unwrap();
    (3..6).for_each(|id| assert_eq!(statement.query(&[Value::Int(id)]).unwrap().count(), 1));
    assert_eq!(runs_one_by_one(whole, 7, Guards::default()), Some(false));
    // One row after the other is slower for many rows, so that is tried ever more rarely.
    let many = "SELECT a.id, b.v FROM a JOIN b ON b.a = a.id AND b.n = 1 WHERE a.k = $1";
    let mut statement = db.prepare(many).unwrap();
    (3..6).for_each(|k| assert_eq!(statement.query(&[Value::Int(k)]).unwrap().count(), 100));
    assert_eq!(runs_one_by_one(many, 7, Guards::default()), Some(false));
    let none = (0..70).find(|_| runs_one_by_one(many, 77, Guards::default()) == Some(true));
    assert!(none.is_some());
    assert_eq!(runs_one_by_one(many, 77, Guards::default()), Some(true));
}

/// What is computed of few rows of a table needs no operators.
#[test]
fn few_rows_are_computed_with_at_once() {
    let db = Database::in_memory().unwrap();
    db.execute_batch(
        "CREATE TABLE b (a INT, n INT, v DOUBLE, PRIMARY KEY (a, n));
         INSERT INTO b SELECT v / 4, v % 4, v FROM generate_series(1, 20000) t(v)",
    )
    .unwrap();
    let is_alone = |sql: &str| {
        let run = run_again(&db, sql, 7, Guards::default())?;
        Some(matches!(run, BoundPlan::Alone(alone) if matches!(*alone, Alone::Rows(..))))
    };
    for (sql, expected) in [
        ("SELECT v * 2 FROM b WHERE a = $1", true),
        ("SELECT DISTINCT v > n FROM b WHERE a = $1", true),
        (
            "SELECT n % 2, count(DISTINCT v), max(n) FILTER (WHERE v > 3) FROM b WHERE a = $1 GROUP BY n % 2",
            true,
        ),
        ("SELECT n, v - lag(v) OVER (ORDER BY n) AS step FROM b WHERE a = $1 ORDER BY step", true),
        // The limit stops the window.
        ("SELECT n, sum(v) OVER (ORDER BY n) FROM b WHERE a = $1 ORDER BY n LIMIT 2", false),
        ("SELECT DISTINCT v > n FROM b WHERE a > $1", false),
    ] {
        let mut statement = db.prepare(sql).unwrap();
        (3..6).for_each(|id| statement.query(&[Value::Int(id)]).unwrap().for_each(|row| drop(row.unwrap())));
        assert_eq!(is_alone(sql), Some(expected), "{sql}");
    }
}

/// Of many rows the first few are wanted: these are looked up, not all of them.
#[test]
fn rows_are_sorted_before_they_are_looked_up() {
    let db = Database::in_memory().unwrap();
    db.execute_batch(
        "CREATE TABLE c (id INT PRIMARY KEY, name TEXT, city INT);
         CREATE TABLE o (id INT PRIMARY KEY, c INT, p INT, at INT, amount INT);
         CREATE INDEX o_at ON o (at);
         INSERT INTO c SELECT v, 'c' || v, v % 50 FROM generate_series(1, 3000) t(v);
         INSERT INTO o SELECT v, v * 7 % 3000 + 1, v * 11 % 3000 + 1, v, v * 7919 % 10007 FROM generate_series(1, 20000) t(v)",
    )
    .unwrap();
    let from = "SELECT o.id, c.name FROM o";
    let sorted = |rest: &str| {
        let sql = format!("{from} {rest}");
        let mut statement = db.prepare(&sql).unwrap();
        let mut ids = |at| -> Vec<i64> {
            statement.query(&[Value::Int(at)]).unwrap().map(|row| row.unwrap().get(0).unwrap()).collect()
        };
        let found: Vec<_> = [100, 5000, 9000, 100].map(&mut ids).into();
        assert_eq!(found[0], found[3], "{sql}");
        assert!(found.iter().all(|found| found.len() == 5), "{sql}");
        let Some(BoundPlan::Plan(plan)) = run_again(&db, &sql, 700, Guards::default()) else { return None };
        let plan = format!("{plan:?}");
        let places = ["GlobalLimitExec", "LookupJoinExec", "SortExec"].map(|name| plan.find(name));
        Some(places.iter().all(Option::is_some) && places.is_sorted())
    };
    let range = "WHERE o.at BETWEEN $1 AND $1 + 2000";
    let by_amount = "ORDER BY o.amount DESC, o.id LIMIT 5";
    assert_eq!(sorted(&format!("JOIN c ON c.id = o.c {range} {by_amount}")), Some(true));
    let twice = "JOIN c ON c.id = o.c JOIN c p ON p.id = o.p";
    assert_eq!(sorted(&format!("{twice} {range} {by_amount}")), Some(true));
    // Few customers pass, and the order is not the orders'.
    assert_eq!(sorted(&format!("JOIN c ON c.id = o.c AND c.city = 7 {range} {by_amount}")), Some(false));
    assert_eq!(sorted(&format!("JOIN c ON c.id = o.c {range} ORDER BY c.name, o.id LIMIT 5")), Some(false));
}

#[test]
fn few_rows_of_a_table_without_statistics_are_not_shared() {
    let db = Database::in_memory().unwrap();
    db.execute_batch(
        "CREATE TABLE a (id INT PRIMARY KEY, k INT);
         CREATE TABLE b (id INT PRIMARY KEY, a INT, v INT);
         CREATE INDEX b_by_a ON b (a);
         INSERT INTO a SELECT v, v % 50 FROM generate_series(1, 20000) t(v);
         INSERT INTO b SELECT v, v / 3, v FROM generate_series(1, 60000) t(v)",
    )
    .unwrap();
    let counts =
        "SELECT id, (SELECT count(*) FROM b WHERE b.a = a.id) FROM a WHERE id > $1 ORDER BY id DESC LIMIT ";
    let is_shared = |rows: usize| {
        let sql = format!("{counts}{rows}");
        let mut statement = db.prepare(&sql).unwrap();
        (3..6).for_each(|id| assert_eq!(statement.query(&[Value::Int(id)]).unwrap().count(), rows));
        let Some(BoundPlan::Plan(plan)) =
            run_again(&db, &sql, 7, Guards { gets: Some(1000), ..Guards::default() })
        else {
            panic!("operators count what they read");
        };
        format!("{plan:?}").contains("RepartitionExec")
    };
    assert_eq!([20, 200, 15000].map(is_shared), [false, false, true]);
}

#[test]
fn a_plan_for_threads_is_made_once_a_run_is_long() {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::open(folder.path()).unwrap();
    db.execute_batch(
        "CREATE TABLE t (id INT PRIMARY KEY, v DOUBLE);
         INSERT INTO t SELECT v, v % 7 FROM generate_series(1, 20000) t(v)",
    )
    .unwrap();
    let sql = "SELECT v, avg(v) FROM t WHERE id <= $1 GROUP BY v";
    let mut statement = db.prepare(sql).unwrap();
    let mut groups = |most| statement.query(&[Value::Int(most)]).unwrap().map(Result::unwrap).count();
    let lacks_threads = || {
        let (catalog, _) = db.view().unwrap();
        let kept = db.plans().kept(catalog.version());
        kept.iter().map(|(_, kept)| kept.plan.lacks_threads()).collect::<Vec<_>>()
    };
    assert_eq!([30, 3].map(&mut groups), [7, 3]);
    assert_eq!(lacks_threads(), [false]);
    assert_eq!(groups(20000), 7);
    assert_eq!(lacks_threads(), [true]);
    // The next plan has threads for long runs.
    assert_eq!([3, 20000, 3, 20000].map(&mut groups), [3, 7, 3, 7]);
    assert_eq!(lacks_threads(), [false]);
}

#[test]
fn groups_and_unions_of_few_rows_need_no_operators() {
    let db = Database::in_memory().unwrap();
    db.execute_batch(
        "CREATE TABLE t (a INT, id INT, s TEXT, v DOUBLE, PRIMARY KEY (a, id));
         INSERT INTO t SELECT CASE WHEN v > 300 THEN 0 ELSE v % 9 + 1 END, v, 's' || v % 5, v FROM generate_series(1, 20000) t(v);
         ANALYZE",
    )
    .unwrap();
    let queries = [
        "SELECT s, count(*), sum(v) FROM t WHERE a = $1 GROUP BY s",
        "SELECT s, avg(v) AS mean FROM t WHERE a = $1 GROUP BY s HAVING count(*) > 1 ORDER BY mean DESC LIMIT 2",
        "SELECT DISTINCT s FROM t WHERE a = $1",
        "SELECT s FROM t WHERE a = $1 AND id < 40 UNION ALL SELECT DISTINCT s FROM t WHERE a = $1",
    ];
    for sql in queries {
        let mut statement = db.prepare(sql).unwrap();
        let mut rows = |a| statement.query(&[Value::Int(a)]).unwrap().map(Result::unwrap).count();
        assert!([3, 4, 5, 0].map(&mut rows).iter().all(|rows| *rows >= 2), "{sql}");
        assert_eq!(rows(77), 0, "{sql}");
        let is_alone =
            |a: i64| matches!(run_again(&db, sql, a, Guards::default()), Some(BoundPlan::Alone(_)));
        assert_eq!([3, 0].map(is_alone), [true, false], "{sql}");
    }
}
