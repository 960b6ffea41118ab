//! More of something than there should be.

use std::time::{Duration, Instant};

use rowkeydb::Database;

use super::{check, check_error, database, run, shown};

#[test]
fn too_much_of_everything() {
    let db = database();
    let mut session = db.session();
    let nested = |open: &str, inner: &str, close: &str, n: usize| {
        format!("{}{inner}{}", open.repeat(n), close.repeat(n))
    };
    let long = "x".repeat(1_000_000);
    let list = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>().join(", ");
    let names: Vec<String> = (0..2_000).map(|i| format!("c{i} INT")).collect();
    let refused_or_right = [
        nested("SELECT (", "1", ")", 10_000),
        format!("SELECT {}", nested("(", "1", ")", 10_000)),
        format!("SELECT {}", nested("- ", "1", "", 10_000)),
        format!("SELECT {}", nested("NOT ", "true", "", 10_000)),
        format!("SELECT {}", nested("abs(", "1", ")", 1_000)),
        format!("SELECT {}", nested("coalesce(", "NULL", ", 1)", 60)),
        format!("SELECT {}", nested("CASE WHEN true THEN ", "1", " END", 500)),
        format!("SELECT * FROM {}", nested("(SELECT * FROM ", "t", ") x", 100)),
        format!("SELECT {}", nested("abs(0 < ", "1", " < 2)", 60)),
        format!("SELECT {}", nested("((", "1 = 1", ", 1) < (true, 2))", 60)),
        format!("SELECT {}", nested("(", "1 = 1", ", 1) IN ((true, 1), (false, 2))", 60)),
        format!("SELECT {}", nested("(", "1 = 1", ", 1) BETWEEN (true, 1) AND (false, 2)", 60)),
        format!("SELECT id FROM t WHERE {}", nested("id IN (SELECT id FROM t WHERE ", "true", ")", 40)),
        format!("SELECT {}", vec!["1"; 20_000].join(" + ")),
        format!("SELECT {}", vec!["1"; 5_000].join(", ")),
        format!("SELECT id FROM t WHERE {}", vec!["id = 1"; 5_000].join(" OR ")),
        format!("SELECT id FROM t WHERE {}", vec!["id > 0"; 5_000].join(" AND ")),
        vec!["SELECT 1"; 300].join(" UNION ALL "),
        format!("SELECT {long}"),
        format!("SELECT \"{long}\" FROM t"),
        format!("SELECT 1 AS \"{long}\""),
        format!("SELECT * FROM {long}"),
        format!("CREATE TABLE \"{long}\" (id BIGINT PRIMARY KEY)"),
        format!("CREATE TABLE wide (id BIGINT PRIMARY KEY, {})", names.join(", ")),
        format!("SELECT '{long}'"),
        format!("SELECT id FROM t WHERE s = '{long}'"),
        format!("SELECT id FROM t WHERE s LIKE '{}'", "%_".repeat(50_000)),
        format!("SELECT {}", "9".repeat(100_000)),
        format!("INSERT INTO k VALUES ('{long}', '2024-01-01', NULL)"),
        format!("SELECT id FROM t ORDER BY {}", vec!["id"; 1_000].join(", ")),
        format!("SELECT id FROM {}", (0..12).map(|i| format!("t x{i}")).collect::<Vec<_>>().join(", ")),
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 1000) SELECT max(n) FROM r"
            .to_owned(),
    ];
    for sql in &refused_or_right {
        if let Err(e) = run(&mut session, sql, &[]) {
            check_error(sql, &e);
        }
    }
    for (sql, rows) in [
        (format!("SELECT id FROM t WHERE id IN ({})", list(100_000)), 3),
        (format!("SELECT id FROM t WHERE id NOT IN ({})", list(20_000)), 0),
        (format!("SELECT id FROM t WHERE n IN ({}) OR s IN ('one', 'two')", list(20_000)), 2),
        (format!("SELECT id FROM t WHERE n IN ({0}) AND id IN ({0})", list(10_000)), 2),
        (format!("SELECT id FROM t WHERE f IN ({}, 0.5)", list(20_000)), 2),
    ] {
        match run(&mut session, &sql, &[]) {
            Ok(n) => assert_eq!(n, rows, "{}", &sql[..60]),
            Err(e) => panic!("{}: {e}", &sql[..60]),
        }
    }
    check(&db);
}

/// Written out, each of these is longer than the universe; each is planned in time that grows with its length.
#[test]
fn an_index_is_no_deeper_than_it_can_be_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut refused = 0;
    for depth in [20, 40, 43, 63, 64, 80, 110] {
        let joined = "(b || ".repeat(depth) + "b" + &")".repeat(depth);
        let nested = "b <> 'v' AND (b <> 'w' OR (".repeat(depth / 2) + "b <> 'x'" + &"))".repeat(depth / 2);
        for index in
            [format!("CREATE INDEX i ON t ({joined})"), format!("CREATE INDEX i ON t (b) WHERE {nested}")]
        {
            let db = Database::open(folder.path()).unwrap_or_else(|e| panic!("{depth}: {e}"));
            db.execute("CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY, b TEXT)").unwrap();
            let mut session = db.session();
            run(&mut session, "BEGIN", &[]).unwrap();
            let made = run(&mut session, &index, &[]);
            if let Err(e) = &made {
                refused += 1;
                assert!(e.to_string().contains("nested too deeply"), "{depth}: {}", e.render(&index));
            }
            run(&mut session, "COMMIT", &[]).unwrap();
            if made.is_ok() {
                db.execute("DROP INDEX i").unwrap();
                db.execute(&index).unwrap();
                db.execute("DROP INDEX i").unwrap();
            }
        }
    }
    assert!((4..=12).contains(&refused), "{refused} of 14");
}

#[test]
fn conditions_of_many_terms() {
    let db = database();
    let mut session = db.session();
    let terms = |n: usize, joined: &str, term: &dyn Fn(usize) -> String| {
        let terms: Vec<String> = (10..n + 10).map(term).collect();
        format!("SELECT id FROM t WHERE {}", terms.join(joined))
    };
    for (sql, rows) in [
        (terms(60, " AND ", &|i| format!("(id = {i} OR n <> {i})")), 2),
        (terms(60, " AND ", &|i| format!("(id = {i} OR f IS NULL OR s = 'one')")), 2),
        (terms(60, " AND ", &|i| format!("(id <> {i} OR n = {i} OR s LIKE '{i}%')")), 3),
        (terms(30, " AND ", &|i| format!("((id = 1 AND n < {i}) OR (s = 'two' AND n < {i}) OR p = 3)")), 3),
        (terms(3_000, " AND ", &|i| format!("id <> {i}")), 3),
        (terms(300, " OR ", &|i| format!("(id = {} AND n = {})", i - 9, i - 9)), 2),
        (terms(300, " OR ", &|i| format!("(id > {} AND id < {})", 4 * i, 4 * i + 3)), 0),
    ] {
        match run(&mut session, &sql, &[]) {
            Ok(n) => assert_eq!(n, rows, "{}", shown(&sql)),
            Err(e) => panic!("{}: {e}", shown(&sql)),
        }
    }
    let rows: Vec<String> = (0..300).map(|i| format!("({i}, {i})")).collect();
    let sql = format!("SELECT id FROM t WHERE (n, id) IN ({})", rows.join(", "));
    assert_eq!(run(&mut session, &sql, &[]).unwrap(), 2);
}

/// Each of these views asks for the columns of the one below it several times before it is planned.
#[test]
fn views_over_views_are_planned_once() {
    const SOON: Duration = Duration::from_secs(5);
    let db = database();
    let mut session = db.session();
    let mut soon = |sql: &str| {
        let started = Instant::now();
        let done = run(&mut session, sql, &[]);
        assert!(started.elapsed() < SOON, "{:?} for {sql}", started.elapsed());
        done
    };
    // The view w at the bottom is a level, too.
    for n in 1..32 {
        let below = if n == 1 { "t".to_owned() } else { format!("v{}", n - 1) };
        let joined = if n % 2 == 0 { "NATURAL JOIN w" } else { "JOIN (SELECT id FROM w) x USING (id)" };
        let sql = format!("CREATE VIEW v{n} AS SELECT id, v.n FROM {below} v {joined} ORDER BY v.id");
        soon(&sql).unwrap_or_else(|e| panic!("{}", e.render(&sql)));
    }
    assert_eq!(soon("DESCRIBE v31").unwrap(), 2);
    assert_eq!(soon("SELECT * FROM v20 NATURAL JOIN t").unwrap(), 1);
    soon("ALTER TABLE t ADD COLUMN more INT").unwrap();
    for (sql, error) in [
        ("CREATE VIEW v32 AS SELECT id FROM v20 NATURAL JOIN v31", "views nest more than 32 deep"),
        ("CREATE OR REPLACE VIEW v1 AS SELECT * FROM v31 JOIN w USING (id, n)", "view \"v1\" reads itself"),
        ("ALTER TABLE t RENAME COLUMN n TO m", "view \"v1\" reads what this would change"),
    ] {
        assert_eq!(soon(sql).unwrap_err().what(), error);
    }
    check(&db);
}

#[test]
fn files_that_are_no_tables() {
    let db = database();
    let mut session = db.session();
    let directory = tempfile::tempdir().unwrap();
    let files: [(&str, &[u8]); 10] = [
        ("utf8.csv", b"id,s\n9,\xff\xfe\n"),
        ("quote.csv", b"id,s\n9,\"never closed\n"),
        ("few.csv", b"id,s\n9\n"),
        ("many.csv", b"id,s\n9,a,b,c\n"),
        ("type.csv", b"id,n\nnine,9\n"),
        ("header.csv", b"id,nope\n9,9\n"),
        ("nul.csv", b"id,s\n\0\0\0,\0\n"),
        ("broken.jsonl", b"{\"id\": 9\n"),
        ("list.jsonl", b"[1, 2]\n"),
        ("noise.parquet", b"PAR1 this is none PAR1"),
    ];
    for (name, bytes) in files {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let format = name.rsplit('.').next().unwrap();
        let header = if format == "csv" { ", HEADER" } else { "" };
        let sql = format!("COPY t FROM '{}' (FORMAT {format}{header})", path.display());
        match run(&mut session, &sql, &[]) {
            Ok(_) => panic!("{name} was loaded"),
            Err(e) => check_error(&sql, &e),
        }
    }
    let sql = format!("COPY t FROM '{}' (FORMAT csv)", directory.path().display());
    check_error(&sql, &run(&mut session, &sql, &[]).unwrap_err());
    check(&db);
}
