//! Transactions are serializable: every outcome is one that some order of whole transactions gives.
//!
//! First the anomalies one by one, then many threads at once, in memory and on each engine. `ISOLATION_ROUNDS`
//! (default 8) sets how many transactions a thread makes, `ISOLATION_SEED` what they do.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rowkeydb::{Database, Kind, Result, Session};

use crate::dice::{Dice, setting};
use crate::engines;

const THREADS: u64 = 8;

/// Runs `test` over an empty database of each store.
fn over_each_store(test: impl Fn(&Database)) {
    engines::over_each_store(|db| test(&db));
}

fn run(db: &Database, script: &str) {
    for sql in script.split(';').filter(|sql| !sql.trim().is_empty()) {
        db.execute(sql).unwrap_or_else(|e| panic!("{}", e.render(sql)));
    }
}

fn number(session: &mut Session, sql: &str) -> Result<i64> {
    let row = session.query(sql, &[])?.next().expect("a row")?;
    Ok(row.get::<Option<i64>>("n")?.unwrap_or(0))
}

fn assert_sound(db: &Database) {
    let rows = db.query("CHECK DATABASE").unwrap().map(Result::unwrap);
    let problems: Vec<String> = rows.map(|row| row.get("problem").unwrap()).collect();
    assert_eq!(problems, ["summary"]);
}

/// Begins two transactions that see the same, lets each do its part, and gives the kind of error of the one
/// that commits second.
fn race(db: &Database, first: &[&str], second: &[&str]) -> Option<Kind> {
    let mut sessions = [db.begin().unwrap(), db.begin().unwrap()];
    for (session, statements) in sessions.iter_mut().zip([first, second]) {
        for sql in statements {
            // Rows are read to the end, as a program would.
            session.query(sql, &[]).unwrap().for_each(|row| drop(row.unwrap()));
        }
    }
    let [a, b] = &mut sessions;
    a.execute("COMMIT", &[]).unwrap();
    let ended = b.execute("COMMIT", &[]).err();
    if let Some(error) = &ended {
        assert_eq!(error.sqlstate(), "40001");
        assert!(!b.in_transaction());
    }
    ended.map(|e| e.kind())
}

#[test]
fn write_skew_is_refused() {
    over_each_store(|db| {
        run(
            db,
            "CREATE TABLE doctors (name TEXT PRIMARY KEY, on_call BOOLEAN); CREATE INDEX calls ON doctors (on_call)",
        );
        for hint in ["FULL", "INDEX(calls)"] {
            run(db, "UPSERT INTO doctors VALUES ('ann', true), ('bob', true)");
            let look = format!("SELECT /*+ {hint} */ count(*) AS n FROM doctors WHERE on_call");
            let off = |name: &str| format!("UPDATE doctors SET on_call = false WHERE name = '{name}'");
            let ended = race(db, &[&look, &off("ann")], &[&look, &off("bob")]);
            assert_eq!(ended, Some(Kind::Conflict), "{hint}");
            assert_eq!(number(&mut db.session(), &look).unwrap(), 1, "{hint}");
        }
        assert_sound(db);
    });
}

#[test]
fn a_phantom_is_a_conflict_and_a_row_elsewhere_is_none() {
    over_each_store(|db| {
        run(
            db,
            "CREATE TABLE orders (id INT, buyer INT, PRIMARY KEY (lpad(id, 4))); CREATE INDEX by_buyer ON orders (buyer);
             CREATE TABLE totals (buyer INT PRIMARY KEY, n INT);
             INSERT INTO orders SELECT value, value % 10 FROM generate_series(1, 100)",
        );
        let cases = [
            ("count(*) AS n FROM orders WHERE buyer = 7", "INSERT INTO orders VALUES (500, 7)", true),
            ("count(*) AS n FROM orders WHERE buyer = 7", "INSERT INTO orders VALUES (501, 8)", false),
            ("count(*) AS n FROM orders WHERE buyer = 6", "UPDATE orders SET buyer = 6 WHERE id = 9", true),
            ("count(*) AS n FROM orders WHERE buyer = 5", "DELETE FROM orders WHERE id = 15", true),
            (
                "count(*) AS n FROM orders WHERE id BETWEEN 10 AND 20",
                "DELETE FROM orders WHERE id = 20",
                true,
            ),
            (
                "count(*) AS n FROM orders WHERE id BETWEEN 10 AND 20",
                "DELETE FROM orders WHERE id = 21",
                false,
            ),
            ("id AS n FROM orders ORDER BY id LIMIT 3", "DELETE FROM orders WHERE id = 2", true),
            ("id AS n FROM orders ORDER BY id LIMIT 3", "DELETE FROM orders WHERE id = 50", false),
            ("id AS n FROM orders ORDER BY id DESC LIMIT 3", "INSERT INTO orders VALUES (600, 1)", true),
            ("id AS n FROM orders WHERE id = 700", "INSERT INTO orders VALUES (700, 1)", true),
            ("id AS n FROM orders WHERE id = 701", "INSERT INTO orders VALUES (702, 1)", false),
            ("id AS n FROM orders WHERE id IN (30, 31)", "UPDATE orders SET buyer = 0 WHERE id = 31", true),
            ("max(id) AS n FROM orders", "INSERT INTO orders VALUES (800, 1)", true),
            ("count(*) AS n FROM orders", "INSERT INTO orders VALUES (801, 1)", true),
            ("id AS n FROM orders WHERE buyer = 4 OR id = 900", "INSERT INTO orders VALUES (900, 1)", true),
            ("id AS n FROM orders WHERE buyer = 4 OR id = 901", "INSERT INTO orders VALUES (902, 4)", true),
            ("id AS n FROM orders WHERE buyer = 4 OR id = 903", "INSERT INTO orders VALUES (904, 1)", false),
            ("count(*) AS n FROM totals", "TRUNCATE TABLE totals", true),
        ];
        for (n, (read, write, conflicts)) in cases.into_iter().enumerate() {
            let read = format!("SELECT {read}");
            let mut reader = db.begin().unwrap();
            reader.query(&read, &[]).unwrap().for_each(|row| drop(row.unwrap()));
            reader.execute(&format!("UPSERT INTO totals VALUES (7, {n})"), &[]).unwrap();
            db.execute(write).unwrap();
            let ended = reader.execute("COMMIT", &[]).err().map(|e| e.kind());
            assert_eq!(ended, conflicts.then_some(Kind::Conflict), "{read}; {write}");
        }
        assert_sound(db);
    });
}

#[test]
fn of_two_that_write_what_neither_read_both_commit() {
    over_each_store(|db| {
        run(db, "CREATE TABLE t (id INT PRIMARY KEY, v INT)");
        let insert = |id: i32| format!("INSERT INTO t VALUES ({id}, 0)");
        assert_eq!(race(db, &[&insert(1)], &[&insert(2)]), None);
        assert_eq!(race(db, &[&insert(3)], &[&insert(3)]), Some(Kind::Conflict));
        let update = |id: i32| format!("UPDATE t SET v = v + 1 WHERE id = {id}");
        assert_eq!(race(db, &[&update(1)], &[&update(2)]), None);
        assert_eq!(race(db, &[&update(1)], &[&update(1)]), Some(Kind::Conflict));
        // One that only reads is never in anyone's way, nor anyone in its.
        assert_eq!(race(db, &[&update(1)], &["SELECT sum(v) AS n FROM t"]), None);
        assert_eq!(race(db, &["SELECT sum(v) AS n FROM t"], &[&update(1)]), None);
    });
}

#[test]
fn a_transaction_that_reads_only_keeps_its_snapshot_and_refuses_writes() {
    over_each_store(|db| {
        run(db, "CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1)");
        let mut session = db.session();
        session.execute("BEGIN READ ONLY", &[]).unwrap();
        db.execute("INSERT INTO t VALUES (2)").unwrap();
        assert_eq!(number(&mut session, "SELECT count(*) AS n FROM t").unwrap(), 1);
        for write in ["INSERT INTO t VALUES (3)", "UPDATE t SET id = 4", "DELETE FROM t", "DROP TABLE t"] {
            let error = session.execute(write, &[]).unwrap_err();
            assert_eq!(error.sqlstate(), "25006", "{write}: {error}");
        }
        session.execute("COMMIT", &[]).unwrap();
        assert_eq!(number(&mut session, "SELECT count(*) AS n FROM t").unwrap(), 2);
    });
}

#[test]
fn a_transaction_of_the_api_is_done_again_until_it_lands() {
    over_each_store(|db| {
        run(db, "CREATE TABLE t (id INT PRIMARY KEY, v BIGINT); INSERT INTO t VALUES (1, 0)");
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..10 {
                        db.transaction(|tx| {
                            let v = number(tx, "SELECT v AS n FROM t")?;
                            tx.execute("UPDATE t SET v = $1 WHERE id = 1", &[(v + 1).into()])
                        })
                        .unwrap();
                    }
                });
            }
        });
        assert_eq!(number(&mut db.session(), "SELECT v AS n FROM t").unwrap(), 10 * THREADS as i64);
        let given_up = db.transaction(|tx| -> Result<()> {
            tx.execute("UPDATE t SET v = -1", &[])?;
            Err(tx.execute("no statement", &[]).unwrap_err())
        });
        assert_eq!(given_up.unwrap_err().kind(), Kind::Invalid);
        assert_eq!(number(&mut db.session(), "SELECT v AS n FROM t").unwrap(), 10 * THREADS as i64);
    });
}

/// One that has priority after some defeats gives it up with its commit, or what it writes then would wait for itself.
#[test]
fn after_its_commit_a_transaction_of_the_api_waits_for_nobody() {
    over_each_store(|db| {
        run(db, "CREATE TABLE t (id INT PRIMARY KEY, n INT); INSERT INTO t VALUES (1, 0)");
        let mut tries = 0;
        let waited = db.transaction(|tx| {
            tries += 1;
            tx.execute("UPDATE t SET n = n + 1 WHERE id = 1", &[])?;
            if tries <= 3 {
                db.execute("UPDATE t SET n = n + 1 WHERE id = 1")?;
            }
            tx.commit()?;
            let began = Instant::now();
            tx.execute("INSERT INTO t VALUES (2, 0)", &[])?;
            Ok(began.elapsed())
        });
        assert_eq!(tries, 4);
        assert!(waited.unwrap() < Duration::from_millis(1500));
    });
}

/// A statement that reads much, among others that never stop writing into it.
#[test]
fn a_long_statement_gets_through_a_crowd_of_short_ones() {
    over_each_store(|db| {
        run(
            db,
            "CREATE TABLE t (id INT PRIMARY KEY, v BIGINT); CREATE TABLE sums (at INT PRIMARY KEY, v BIGINT)",
        );
        run(db, "INSERT INTO t SELECT value, 0 FROM generate_series(1, 3000)");
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for thread in 0..3 {
                let done = &done;
                scope.spawn(move || {
                    for n in (1..).take_while(|_| !done.load(Ordering::SeqCst)) {
                        let id = (n * 7 + thread) % 3000 + 1;
                        db.execute(&format!("UPDATE t SET v = v + 1 WHERE id = {id}")).unwrap();
                    }
                });
            }
            for at in 0..5 {
                db.execute(&format!("INSERT INTO sums SELECT {at}, sum(v) FROM t")).unwrap();
            }
            done.store(true, Ordering::SeqCst);
        });
        assert_eq!(number(&mut db.session(), "SELECT count(*) AS n FROM sums").unwrap(), 5);
    });
}

/// Money moves between accounts; nobody ever sees more or less of it, by whichever way the accounts are read,
/// while an index comes and goes.
#[test]
fn a_bank_keeps_its_money() {
    const ACCOUNTS: usize = 12;
    const EACH: i64 = 100;
    let rounds = setting("ISOLATION_ROUNDS", 8);
    over_each_store(|db| {
        run(
            db,
            "CREATE TABLE accounts (id INT, balance BIGINT NOT NULL, PRIMARY KEY (reverse(lpad(id, 4))));
                 CREATE INDEX by_balance ON accounts (balance)",
        );
        run(
            db,
            &format!("INSERT INTO accounts SELECT value, {EACH} FROM generate_series(0, {})", ACCOUNTS - 1),
        );
        let done = AtomicBool::new(false);
        let ways = ["FULL", "INDEX(by_balance)"]
            .map(|hint| format!("SELECT /*+ {hint} */ sum(balance) AS n FROM accounts"));
        let total = EACH * ACCOUNTS as i64;
        thread::scope(|scope| {
            let transfers: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let ways = &ways;
                    scope.spawn(move || {
                        let mut dice = Dice::new(setting("ISOLATION_SEED", 1), thread);
                        for _ in 0..rounds {
                            let (from, to, amount) = (dice.below(ACCOUNTS), dice.below(ACCOUNTS), dice.below(50));
                            let (way, sums) = (&ways[dice.below(2)], dice.chance(30));
                            db.transaction(|tx| {
                                let from_sql = format!("SELECT balance AS n FROM accounts WHERE id = {from}");
                                if number(tx, &from_sql)? < amount as i64 {
                                    return Ok(());
                                }
                                for (id, sign) in [(from, '-'), (to, '+')] {
                                    let sql = format!("UPDATE accounts SET balance = balance {sign} {amount} WHERE id = {id}");
                                    tx.execute(&sql, &[])?;
                                }
                                // It sees its own writes, and all of them.
                                if sums {
                                    assert_eq!(number(tx, way)?, total, "{way}");
                                }
                                Ok(())
                            })
                            .unwrap();
                            assert_eq!(number(&mut db.session(), way).unwrap(), total, "{way}");
                        }
                    })
                })
                .collect();
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    run(db, "CREATE INDEX passing ON accounts (balance DESC, id); CHECK INDEX passing; DROP INDEX passing");
                    // A change of definitions makes every transaction begin anew: let some come through.
                    thread::sleep(Duration::from_millis(100));
                }
            });
            let ended: Vec<_> = transfers.into_iter().map(thread::ScopedJoinHandle::join).collect();
            done.store(true, Ordering::SeqCst);
            ended.into_iter().for_each(|ended| ended.unwrap());
        });
        let poor = "SELECT count(*) AS n FROM accounts WHERE balance < 0";
        assert_eq!(number(&mut db.session(), poor).unwrap(), 0);
        assert_sound(db);
    });
}

/// A list of numbers under each key: what a transaction found in it tells exactly who was before it.
#[derive(Default, Debug)]
struct Done {
    /// Key and number, appended.
    appended: Vec<(usize, u64)>,
    /// Key and the numbers found there, without its own.
    found: Vec<(usize, Vec<u64>)>,
}

/// One transaction of appends and looks at single keys or at a group of them.
fn lists_transaction(tx: &mut Session, dice: &mut Dice, keys: usize, next: &mut u64) -> Result<Done> {
    let mut done = Done::default();
    for _ in 0..1 + dice.below(4) {
        let key = dice.below(keys);
        if dice.chance(50) {
            *next += 1;
            tx.execute(
                &format!(
                    "INSERT INTO lists VALUES ({key}, {}, ' {next}')
                     ON CONFLICT (id) DO UPDATE SET numbers = lists.numbers || excluded.numbers",
                    key % 3
                ),
                &[],
            )?;
            done.appended.push((key, *next));
            continue;
        }
        let (asked, condition): (Vec<usize>, String) = match dice.chance(50) {
            true => (vec![key], format!("id = {key}")),
            false => ((0..keys).filter(|k| k % 3 == key % 3).collect(), format!("part = {}", key % 3)),
        };
        let mut lists: BTreeMap<usize, Vec<u64>> = asked.into_iter().map(|key| (key, Vec::new())).collect();
        for row in tx.query(&format!("SELECT id, numbers FROM lists WHERE {condition}"), &[])? {
            let row = row?;
            let numbers = row.get::<String>("numbers")?;
            let numbers = numbers.split_whitespace().map(|n| n.parse().expect("a number"));
            lists.insert(row.get::<i64>("id")? as usize, numbers.collect());
        }
        for (key, mut list) in lists {
            let own = done.appended.iter().filter(|(k, _)| *k == key).count();
            let own: Vec<u64> = list.split_off(list.len() - own);
            assert!(own.iter().all(|n| done.appended.contains(&(key, *n))), "it sees its own, at the end");
            done.found.push((key, list));
        }
    }
    Ok(done)
}

/// Whether some order of the transactions explains everything they found (Adya 1999: no cycle of who wrote
/// before whom, who read from whom, and who read before whom wrote).
fn has_an_order(history: &[Done], lists: &HashMap<usize, Vec<u64>>) -> bool {
    let mut writer = HashMap::new();
    for (at, done) in history.iter().enumerate() {
        writer.extend(done.appended.iter().map(|appended| (*appended, at)));
    }
    let written: usize = lists.values().map(Vec::len).sum();
    assert_eq!(written, writer.len(), "every append is there once, and none of a transaction that failed");
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); history.len()];
    let mut edge = |a: usize, b: usize| {
        if a != b {
            after[a].push(b);
        }
    };
    for (key, list) in lists {
        list.windows(2).for_each(|pair| edge(writer[&(*key, pair[0])], writer[&(*key, pair[1])]));
    }
    let nothing = Vec::new();
    for (at, done) in history.iter().enumerate() {
        for (key, found) in &done.found {
            let list = lists.get(key).unwrap_or(&nothing);
            assert!(list.starts_with(found), "key {key}: {found:?} is no beginning of {list:?}");
            if let Some(last) = found.last() {
                edge(writer[&(*key, *last)], at);
            }
            if let Some(next) = list.get(found.len()) {
                edge(at, writer[&(*key, *next)]);
            }
        }
    }
    // Take away whoever nobody has to precede, until nobody is left or a cycle is.
    let mut before = vec![0; history.len()];
    after.iter().flatten().for_each(|b| before[*b] += 1);
    let mut free: Vec<usize> = (0..history.len()).filter(|at| before[*at] == 0).collect();
    let mut ordered = 0;
    while let Some(at) = free.pop() {
        ordered += 1;
        for b in &after[at] {
            before[*b] -= 1;
            if before[*b] == 0 {
                free.push(*b);
            }
        }
    }
    ordered == history.len()
}

#[test]
fn histories_of_lists_have_an_order() {
    const KEYS: usize = 9;
    let rounds = setting("ISOLATION_ROUNDS", 8);
    over_each_store(|db| {
        run(
            db,
            "CREATE TABLE lists (id INT, part INT, numbers TEXT, PRIMARY KEY (lpad(id, 3))); CREATE INDEX by_part ON lists (part)",
        );
        let history = Mutex::new(Vec::new());
        let conflicts = Mutex::new(0);
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (history, conflicts) = (&history, &conflicts);
                scope.spawn(move || {
                    let mut dice = Dice::new(setting("ISOLATION_SEED", 1), 100 + thread);
                    let mut next = thread * 1_000_000;
                    for _ in 0..rounds {
                        let mut session = db.begin().unwrap();
                        let done = lists_transaction(&mut session, &mut dice, KEYS, &mut next);
                        match done.and_then(|done| session.execute("COMMIT", &[]).map(|_| done)) {
                            Ok(done) => history.lock().unwrap().push(done),
                            Err(e) => {
                                assert_eq!(e.kind(), Kind::Conflict, "{e}");
                                *conflicts.lock().unwrap() += 1;
                            }
                        }
                    }
                });
            }
        });
        let mut lists = HashMap::new();
        for row in db.query("SELECT id, numbers FROM lists").unwrap().map(Result::unwrap) {
            let numbers: Vec<u64> = row
                .get::<String>("numbers")
                .unwrap()
                .split_whitespace()
                .map(|n| n.parse().unwrap())
                .collect();
            lists.insert(row.get::<i64>("id").unwrap() as usize, numbers);
        }
        let history = history.into_inner().unwrap();
        assert!(history.len() as u64 > rounds, "{} committed", history.len());
        assert!(has_an_order(&history, &lists), "a cycle among {} transactions", history.len());
        assert_sound(db);
    });
}

/// The checker itself: it finds the cycles that weaker isolation makes.
#[test]
fn write_skew_and_a_lost_update_have_no_order() {
    let lists = HashMap::from([(1, vec![10]), (2, vec![20])]);
    let looked = |found: usize, appended| Done { appended: vec![appended], found: vec![(found, Vec::new())] };
    assert!(!has_an_order(&[looked(2, (1, 10)), looked(1, (2, 20))], &lists), "write skew");
    let after = Done { appended: vec![(2, 20)], found: vec![(1, vec![10])] };
    assert!(has_an_order(&[looked(2, (1, 10)), after], &lists), "one after the other");
    let twice = HashMap::from([(1, vec![10, 11])]);
    assert!(!has_an_order(&[looked(1, (1, 10)), looked(1, (1, 11))], &twice), "a lost update");
}
